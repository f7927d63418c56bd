"""`snapshot`: several looks, and the causes in the last of them."""

from __future__ import annotations

import os
from typing import Any, Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import seconds_of
from reactive_runtime.live._causes import Causes
from reactive_runtime.live._history import History, Look, look
from reactive_runtime.live._model import IDLE, MOVES, Cause, FlowState, Snapshot, Stage
from reactive_runtime.live._reading import (
    Node,
    elements_of,
    executor_text,
    operators_of,
    queued_in,
    subscriber_of,
)

__all__ = ["history", "of_look", "snapshot"]

LOOKS: Final = 7
"""Looks of one snapshot: a part moves if it differs between any two of them."""

history: Final = History()
"""Of this process: the looks of all snapshots, and those that an open socket takes in between."""


def snapshot(*, within: float = 0.3) -> Snapshot:
    """Every live flow of this process, and why stalled ones are stuck.

    A *look* reads the state of all flows. A flow moves if two looks differ, and counts as moving until it has been
    still for `within` seconds. Its age counts from the first look that saw it; with an open socket (`open`), a thread
    looks now and then, so ages are nearly right.

    Args:
        within: For how many seconds it looks; 0 or more. 0: it takes one look, and every flow seems to be still.

    Returns:
        The flows, those that are stalled first.

    Raises:
        TypeError: `within` is no number.
        ValueError: `within` is below 0, or not finite.

    Thread:
        May be called on any thread, also in the handler of a signal. It takes no lock of a flow and calls no code of a
        user, so it returns while all pools are stuck. It leaves out the calling thread.

    Example:
        >>> from reactive_runtime import Flow, live
        >>> handle = Flow.range(9).subscribe(print, demand=1)
        0
        >>> [flow.cause.kind for flow in live.snapshot().stalled]
        ['demand']
        >>> handle.cancel()
    """
    seconds_of("snapshot", "within", within)
    seen = look()
    begin = seen.at
    history.take(seen)
    for _ in range(LOOKS - 1 if within else 0):
        primitives.sleep(within / (LOOKS - 1))
        seen = look()
        history.take(seen)
    return of_look(seen, min(within, seen.at - begin) * 0.99)


def of_look(seen: Look, still: float) -> Snapshot:
    """The snapshot of a look with its ages. `still`: a flow that has been still for less counts as moving."""
    causes = Causes(seen, still)
    flows = []
    for root in seen.trees:
        try:
            flows.append(_flow(root, causes))
        except (AttributeError, RuntimeError):  # it has ended while it was read
            continue
    flows.sort(
        key=lambda flow: (("stalled", "idle", "moving").index(flow.state), -flow.cause.seconds if flow.cause else 0)
    )
    return Snapshot(os.getpid(), tuple(flows), complete=seen.complete)


def _flow(root: Node, causes: Causes) -> FlowState:
    nodes = list(root.parts())
    kind, text = causes.of(root)
    cause = None if kind == MOVES else Cause(kind, text, round(root.seconds, 3))
    state = "moving" if cause is None else "idle" if kind in IDLE else "stalled"
    counts = [n for node in nodes if (n := elements_of(node)) is not None]
    return FlowState(
        id=f"{id(root.drain):x}",
        subscriber=subscriber_of(root.drain),
        state=state,
        cause=cause,
        stages=tuple(_stage(node, causes) for node in nodes),
        elements=sum(counts) if counts else None,
        rate=history.rates.get(id(root.drain)),
    )


def _stage(node: Node, causes: Causes) -> Stage:
    drain: Any = node.drain
    executor = drain.executor or drain.home
    thread = causes.thread_of(drain) if node.begins else None
    return Stage(
        depth=node.depth,
        operators=operators_of(node),
        runs_on="caller" if executor is None else executor_text(executor),
        thread=None if thread is None else thread.name,
        demand=drain._demand if node.begins else None,
        queued=queued_in(node),
        elements=elements_of(node),
        seconds=round(node.seconds, 3),
    )
