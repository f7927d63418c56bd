"""A thread of the program, and the reason for which a run ends early. The holder of the turn owns both."""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from reactive_runtime._core.failures.exits import Unwinding

if TYPE_CHECKING:
    from reactive_runtime.explore._schedule.carriers import Carrier

__all__ = [
    "CUT",
    "ENDED",
    "KILLED",
    "READING",
    "READY",
    "RESTING",
    "WAITING",
    "Aborted",
    "Several",
    "Stop",
    "Task",
    "choice",
    "parts_of",
]

READY: Final = "ready"
"""It can go on, and may be chosen."""
RESTING: Final = "resting"
"""It can go on, and ranks below another one that can."""
WAITING: Final = "waiting"
"""It can't go on until it is woken."""
KILLED: Final = "killed"
"""It does no further step in this run: its process was killed. It is unwound with the others, after the run."""
ENDED: Final = "ended"

READING: Final = 9_000
"""Choices of how late a thread reads the clock have this number and the next; those of an event loop come after."""

PERSISTENCE: Final = 400
"""Steps that a thread does in a row at most, at first, while others could go on: it may loop until they do a step."""

CUT: Final = "cut"
"""The kind of a stop that is no failure: the run leads nowhere new."""


class Aborted(Unwinding):
    """Unwinds a thread whose run is over. Not an Exception: a program that catches those does not catch this."""


class Stop:
    """The reason for which a run ended before its threads did."""

    __slots__ = ("error", "kind", "thread", "what")

    def __init__(self, kind: str, what: str, thread: Task | None = None, error: BaseException | None = None) -> None:
        self.kind: str = kind
        self.what: str = what
        self.thread: Task | None = thread
        self.error: BaseException | None = error


class Several:
    """Several locations that one operation touches at once, after one point. The holder of the turn owns it."""

    __slots__ = ("parts",)

    def __init__(self, parts: dict[Any, bool]) -> None:
        self.parts: dict[Any, bool] = parts  # each, and whether it is changed

    @property
    def w(self) -> int:
        """A number for what has happened to them, as far as the operation depends on that."""
        return hash(tuple((item.w, item.r if writes else 0) for item, writes in self.parts.items()))

    @property
    def r(self) -> int:
        """0: `w` has both."""
        return 0


def parts_of(location: Any) -> Collection[Any]:
    """The locations that a thread is about to touch; `location` is what it said."""
    return location.parts if type(location) is Several else (location,)


UNLOCKED: Final = 3
"""A loop that takes locks counts as one that changes nothing after so many turns: code that the explorer does not look
into may change something under the lock."""

_SIMPLE: Final = frozenset({int, float, bool, str, bytes, type(None)})


def _known(value: Any) -> Any:
    """The value of a local name as far as it counts: the value itself if it is simple, or else its identity."""
    kind = type(value)
    if kind in _SIMPLE:
        return value
    if kind is tuple:
        return tuple(map(_known, value))
    return id(value)


class Task:
    """One thread of the program, in one run."""

    __slots__ = (
        "acts",
        "allowance",
        "below",
        "briefly",
        "carrier",
        "chain",
        "children",
        "daemon",
        "deadline",
        "done",
        "early",
        "go",
        "ident",
        "index",
        "joiners",
        "location",
        "locks",
        "name",
        "number",
        "object",
        "parent",
        "parts",
        "priority",
        "readings",
        "rights",
        "rounds",
        "said",
        "started",
        "state",
        "still",
        "still_at",
        "target",
        "timed_out",
        "turned",
        "until",
        "vc",
        "wait",
        "waited",
        "what",
        "windows",
        "writes",
    )

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
        self.parts: dict[int, tuple[Any, dict[str, Any]]] = {}  # its parts of thread-locals, by the id of each
        self.started: bool = False
        self.state: str = READY  # changed by `TaskStates` only
        self.parent: int = 0  # the index of the thread that made it
        self.number: int = 0  # its place among the threads of its parent, from 1
        # What it is about to do, said at its point:
        self.what: Any = "start"
        self.location: Any = None  # what it touches: an object with the fields `w` and `r`, perhaps `Several`
        self.writes: bool = True
        # For its waits:
        self.deadline: float | None = None  # of the timer that is set; None if a thread has woken it
        self.until: float | None = None  # the same, kept until its wait is over
        self.timed_out: bool = False
        self.early: str = ""  # if time has passed early for its next step: what a diagram says of that
        self.joiners: list[Task] = []
        # For fairness; see `TaskStates` and `Scheduler.came_round`:
        self.below: int = 0  # bits by index: threads that it ranks below
        self.briefly: bool = False  # until any of them has done a step
        self.allowance: int = PERSISTENCE
        self.acts: int = 0  # how often it has changed something that others see
        self.locks: int = 0  # how often it has released a lock
        self.waited: int = 0  # how often it has waited, or given way
        self.turned: int = -1  # `acts`, when it came round any loop last
        self.rounds: int = 0  # turns of loops since `acts` was `turned`
        self.windows: dict[Any, list[Any]] = {}  # by loop: the state at its last turn; see `repeats`
        self.still: int = 0  # turns of loops without a change by any thread
        self.still_at: int = 0  # the acts of all threads at these turns
        self.readings: dict[Any, int] = {}  # of the clock, by place
        self.done: Any = None  # what it did last, under a GIL that is assumed
        # For strategies and watchers:
        self.priority: float = 0.0
        self.chain: int = 0  # a number for everything that happened before what it does next
        self.children: int = 0
        self.vc: list[int] = []  # vector clock, by index
        self.rights: int = 0  # points that it has passed since its run was aborted
        self.said: Any = None  # about its next step, for the one that shows it

    @property
    def ended(self) -> bool:
        """Whether its life is over."""
        return self.state is ENDED

    def repeats(self, where: Any, frame: FrameType | None) -> bool:
        """Whether it comes round at `where` again, and neither it nor its local names have changed anything since."""
        seen = self.windows.get(where)
        if seen is None or seen[0] != self.acts or frame is None:
            self.windows[where] = [self.acts, None, self.waited, self.locks, 0]
            return False
        names = (id(frame), *map(_known, frame.f_locals.values()))
        if seen[1] != names:
            seen[1], seen[4] = names, 0
            seen[2], seen[3] = self.waited, self.locks
            return False
        if seen[2] != self.waited:
            seen[2], seen[3] = self.waited, self.locks
            return False
        seen[4] += 1
        locked = seen[3] != self.locks
        seen[3] = self.locks
        return not locked or seen[4] >= UNLOCKED


def choice(number: int, name: str) -> Task:
    """An entry that a strategy can choose as it chooses a thread; `number` is its index."""
    carrier: Any = _NoCarrier
    made = Task(number, name, lambda: None, carrier, daemon=True)
    made.started = True
    return made


class _NoCarrier:
    """A choice is no thread: it is never handed the turn."""

    ident = -1

    @staticmethod
    def go() -> NoReturn:
        raise AssertionError("a choice was given the turn of a thread")

    wait = go
