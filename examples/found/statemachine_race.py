"""An event that is sent while another thread has just processed its last one stays in the queue."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from examples.found import Find


class Sent:
    """Two threads send an event each; each event is a transition."""

    def __init__(self) -> None:
        library: Any = import_module("statemachine")

        class Machine(library.StateMachine):  # type: ignore[misc]
            one = library.State(initial=True)
            two = library.State()
            flip = one.to(two) | two.to(one)

            def on_flip(self) -> None:
                self.flips = getattr(self, "flips", 0) + 1

        self.machine: Any = Machine()

    def actor_a(self) -> None:
        self.machine.send("flip")

    def actor_b(self) -> None:
        self.machine.send("flip")

    def at_end(self) -> None:
        assert self.machine.flips == 2, "an event was sent, and no thread processes it"


FIND = Find(
    package="python-statemachine==3.2.2",
    promise="thread-safe; an event is processed by the thread that processes already, and no event is lost.",
    what=(
        "The thread that processes finds the queue empty, and then releases its lock. In between another thread puts"
        " an event into the queue, finds the lock taken, and returns. The event stays there until a further one is"
        " sent."
    ),
    mended="look at the queue again after the lock is released.",
    program=Sent,
    message="an event was sent, and no thread processes it",
    counted=True,
    gil=True,
)
