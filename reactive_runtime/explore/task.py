"""One thread of the program, and how its run may end before it does. The holder of the turn owns both."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime._core.exits import Unwinding

if TYPE_CHECKING:
    from reactive_runtime.explore.carriers import Carrier

__all__ = ["CUT", "Aborted", "Stop", "Task"]

CUT: Final = "cut"
"""The kind of a stop that is no failure: the run leads nowhere new."""


class Aborted(Unwinding):
    """Unwinds a thread whose run is over. Not an Exception: a program that catches those does not catch this."""


class Stop:
    """Why a run came to an end before its threads did."""

    __slots__ = ("error", "kind", "thread", "what")

    def __init__(self, kind: str, what: str, thread: Task | None = None, error: BaseException | None = None) -> None:
        self.kind: str = kind
        self.what: str = what
        self.thread: Task | None = thread
        self.error: BaseException | None = error


class Task:
    """One thread of the program, in one run."""

    __slots__ = (
        "carrier",
        "chain",
        "children",
        "daemon",
        "deadline",
        "ended",
        "go",
        "ident",
        "index",
        "joiners",
        "location",
        "name",
        "object",
        "priority",
        "rights",
        "said",
        "started",
        "target",
        "timed_out",
        "vc",
        "wait",
        "what",
        "writes",
    )

    ended: bool
    started: bool

    def __init__(self, index: int, name: str, target: Callable[[], object], carrier: Carrier, daemon: bool) -> None:
        self.index: int = index  # in order of creation: the same in every run that goes the same way
        self.name: str = name
        self.target: Callable[[], object] = target
        self.carrier: Carrier = carrier
        self.go: Callable[[], object] = carrier.go
        self.wait: Callable[[], object] = carrier.wait
        self.ident: int = carrier.ident
        self.daemon: bool = daemon
        self.object: Any = None  # the threading.Thread that the program sees, if it made one
        self.started = self.ended = False
        # What it is about to do, said at its point:
        self.what: Any = "start"
        self.location: Any = None  # what it touches: an object with the fields `w` and `r`
        self.writes: bool = True
        # What it waits for:
        self.deadline: float | None = None
        self.timed_out: bool = False
        self.joiners: list[Task] = []
        # For strategies and watchers:
        self.priority: float = 0.0
        self.chain: int = 0  # a number for everything that happened before what it does next
        self.children: int = 0
        self.vc: list[int] = []  # vector clock, by index
        self.rights: int = 0  # how often it may pass through after its run was aborted
        self.said: Any = None  # about its next step, for the one that shows it
