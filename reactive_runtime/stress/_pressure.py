"""Threads that hesitate in the publisher's own code: races that are a few instructions wide are met in seconds.

A thread switches where its switch interval runs out, which hardly ever is between two given lines. An actor
under pressure is traced (`sys.settrace`), and at some lines, at random, hesitates: it gives way to the others, or spins
for a moment; not in the standard library, nor in the harness. A thread that gives way with a GIL has to wait until it
gets it back, and the others get some way meanwhile, often past the same lines. Without a GIL it would go on at once
where a core is free, so it sleeps for a part of a millisecond instead. Whether an actor is traced is drawn for each
round, and in every other it is not: tracing slows a thread down, and some races need speed.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from reactive_runtime._core.runtime import primitives

__all__ = ["CHANCES", "HESITANT", "pressure"]

CHANCES: Final = (0.0, 0.03)
"""Of hesitating at a line; one is drawn for each round."""

HESITANT: Final = 0.75
"""The part of the actors that hesitate in such a round: the others run past them at full speed."""

SPIN: Final = 200
"""Turns of a loop that does nothing: some microseconds."""

SPIN_MOST: Final = 4 * SPIN
"""The most turns where there is no GIL; so many, or fewer, are drawn each time."""

SPINNING: Final = {True: 0.25, False: 0.5}
"""The part of the times that a thread hesitates in which it spins, with a GIL and without one; else it gives way."""

SLEEP_MOST: Final = 0.0002
"""The most seconds that a thread asks to sleep for, where there is no GIL; so many, or fewer, are drawn each time."""

_HERE: Final = os.path.dirname(os.path.realpath(__file__))
_OUTSIDE: Final = (
    os.path.join(os.path.dirname(os.path.realpath(os.__file__)), ""),
    os.path.join(_HERE, ""),
    os.path.join(os.path.dirname(_HERE), "testing", ""),
)
"""Folders whose lines are passed without a stop: the standard library, the harness, the recorder."""

_PLANTED: Final = os.path.join(_HERE, "_faults.py")
"""In the harness's folder, and what is under load."""


@contextmanager
def pressure(chance: float, rng: random.Random) -> Iterator[None]:
    """Let this thread hesitate while the block runs, at each line with this chance (0 to 1)."""
    if not chance:
        yield
        return
    inside: dict[str, bool] = {}
    takes_turns = primitives.has_gil()
    spins = chance * SPINNING[takes_turns]

    def entered(frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if file not in inside:
            path = os.path.realpath(file)
            inside[file] = not path.startswith(_OUTSIDE) or "site-packages" in path or path == _PLANTED
        return hesitate if inside[file] else None

    def hesitate(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and (throw := rng.random()) < chance:
            if throw < spins:
                for _ in range(SPIN if takes_turns else int(SPIN_MOST * throw / spins)):
                    pass
            elif takes_turns:
                primitives.pause()
            else:
                primitives.sleep(SLEEP_MOST * (throw - spins) / (chance - spins))
        return hesitate

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        yield
    finally:
        sys.settrace(before)
