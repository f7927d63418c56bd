"""The thread that looks at the observed flows while there are any."""

from __future__ import annotations

from typing import Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime.telemetry._looking import Look, Stacks, stacks
from reactive_runtime.telemetry._observations import Run, logger, observations

__all__ = ["EVERY", "awake", "look_at"]

EVERY: Final = 0.05
"""Seconds from one look to the next."""

IDLE: Final = 40
"""How often the thread finds no flow before it ends: to start one costs more than a look."""

_lock = primitives.Lock()
_thread: primitives.Thread | None = None  # _lock; alive, or on its way out
_idle = False  # _lock; it has found no flow, and ends


def awake() -> None:
    """Start the thread that looks, unless it runs. Any thread."""
    global _thread, _idle
    with _lock:
        if _thread is not None and not _idle and _thread.is_alive():
            return
        _idle = False
        _thread = primitives.Thread(target=_run, name="reactive-telemetry", daemon=True)
        _thread.start()


def _run() -> None:
    global _idle
    last, idle = primitives.monotonic(), 0
    while True:
        primitives.sleep(EVERY)
        now = primitives.monotonic()
        live = _live()
        idle = 0 if live else idle + 1
        if idle >= IDLE:
            with _lock:  # a flow that begins now finds the thread idle, or is seen here
                _idle = not _live()
                if _idle:
                    return
        frames = stacks() if live else []
        for run in live:
            look_at(run, frames, now - last)
        last = now


def _live() -> list[Run]:
    return [run for observation in observations() for run in observation.live()]


def look_at(run: Run, frames: Stacks, seconds: float) -> None:
    """Add one look, which counts for so many seconds, to the metrics of a flow."""
    try:
        look = Look(run.known(), run.drain, run.pollable, run.steps)
        where = look.look(frames)
    except Exception as error:  # the flow changes while this thread looks
        logger.debug("a look at the flow %r failed", run.observation.name, exc_info=error)
        return
    run.last_look = look
    run.observation.looked(look.busy, where, seconds)
