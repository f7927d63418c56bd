"""The buffer of one group, or of the outer flow: the source's drain fills it, the subscriber's takes from it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from reactive_runtime._core.drains.combinator import PENDING
from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.failures.failure import Failure, Spread
from reactive_runtime._core.queues.ready_queue import FilledQueue

if TYPE_CHECKING:
    from reactive_runtime._operators.groups.group_source import Split

__all__ = ["GroupBuffer", "way_of"]


def way_of(drain: DrainContext | None) -> list[DrainContext]:
    """The drain, and all drains downstream of it, across each boundary."""
    way = []
    while drain is not None:
        way.append(drain)
        queue = drain.behind()
        drain = None if queue is None else queue.drain()
    return way


class GroupBuffer(FilledQueue):
    """Feeds one subscriber: the source's drain puts elements in, the subscriber's drain takes them out."""

    __slots__ = (
        "_ahead",
        "_fail",
        "_left",
        "_noted",
        "_short",
        "_split",
        "_taken",
        "_way",
        "capacity",
    )

    def __init__(self, split: Split, capacity: int) -> None:
        super().__init__(deque())  # len(_items) <= capacity
        self.heard = ()  # until a subscriber comes
        self._split = split
        self.capacity = capacity  # lock; grows once, when the subscriber comes
        self._left: list[Any] = []  # lock; the elements that waited when the subscriber cancelled
        self._fail: Callable[[], Failure] | None = (
            None  # lock; makes the failure that it ended with, anew for each subscriber
        )
        self._taken = False  # lock; a subscriber has come, or is coming
        self._ahead: int | None = None  # lock; how many elements may wait without demand; None: as many as are demanded
        self._short = False  # lock; it had no room, and the source's drain does not know of room since
        self._noted = False  # lock; the subscriber's drain will wake the source's drain when its owner leaves
        # lock; the drains that its elements go through, the subscriber's first; until the subscriber has gone
        self._way: list[DrainContext] = []

    def source(self) -> Split:
        """Its source, which deals out the elements: a look from any thread."""
        return self._split

    # -- the source's drain ------------------------------------------------------------------------------------

    def put(self, element: Any) -> bool:
        """Take `element`. False: there is no room, or no need. It does not wake the subscriber: see `wake`."""
        with self._lock:
            if self._over or self._closed:
                return False
            self._short = len(self._items) >= self.capacity
            if not self._short:
                self._items.append(element)
            return not self._short

    def end(self, error: BaseException | None = None, spread: Spread | None = None, *, kept: bool = False) -> None:
        """End: no more elements come. For the error see `Failure`."""
        with self._lock:
            if self._over or self._closed:
                return
            self._fail = None if error is None else partial(Failure, error, spread, kept=kept)
            self._end(self._fail() if self._fail is not None and self._taken else None)

    def wants(self) -> bool:
        """Whether one more element is demanded, or may wait. If not, the buffer wakes the source's drain later."""
        with self._lock:
            waiting, drain, ahead = len(self._items), self._drain, self._ahead
            if self._over or self._closed:
                return False
            self._short = True  # until the answer is known, so that no note is missed
            room = waiting < self.capacity
        if not room or drain is None:
            return False
        wanted = waiting < (drain.demand() if ahead is None else ahead)
        if wanted:
            with self._lock:
                self._short = False
        return wanted

    def lag(self) -> int:
        """How many elements wait. If any do, the buffer wakes the source's drain when the subscriber takes one."""
        with self._lock:
            self._short = self._short or bool(self._items)
            return len(self._items)

    def left(self) -> list[Any]:
        """Take the elements that waited when the subscriber cancelled."""
        with self._lock:
            left, self._left = self._left, []
        return left

    def way(self) -> list[DrainContext]:
        """Take the list of drains that the subscriber's signals go through."""
        with self._lock:
            way, self._way = self._way, []
        return way

    def take_out(self) -> list[Any]:
        """Take all elements that wait."""
        with self._lock:
            items = list(self._items)
            self._items.clear()
        return items

    # -- the pollable source: the owner of the subscriber's drain ------------------------------------------------------

    def ask_ahead(self, n: int | None) -> None:
        """Let so many elements wait without demand: the subscriber has room for them. Called before `attach`."""
        with self._lock:
            self._ahead = n
            self.capacity = max(self.capacity, n or 0)
        self.taken()

    def taken(self) -> None:
        """Note that a subscriber has come, or is coming."""
        with self._lock:
            self._taken = True
            self._failure = self._fail and self._fail()

    def attach(self, drain: DrainContext) -> None:
        way = way_of(drain)
        super().attach(drain)
        with self._lock:
            self._way = way

    def connect(self) -> None:
        self.rouse(owned=False)

    def open(self) -> Iterator[Any]:
        return self

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        element, short = None, False
        with self._lock:
            if not self._items and not self._over:
                return PENDING
            ended, failure = not self._items, self._failure
            if not ended:
                element = self._items.popleft()
                short, self._short = self._short, False
        if ended:
            raise self._at_end(failure)
        if short:
            self.rouse()
        return element

    def relays(self) -> bool:
        with self._lock:
            return self._ahead is None

    def request(self, n: int) -> None:
        with self._lock:
            short, self._short = self._short, False
        if short:
            self.rouse()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._left = list(self._items)
            self._items.clear()
            drain, failure = self._drain, self._failure
        try:
            if failure is not None:
                failure.left(drain)
        finally:
            if self._split.departed(self):
                self.rouse()

    def rouse(self, *, owned: bool = True) -> None:
        """Make the source's drain look at the buffer. `owned`: the owner of the subscriber's drain calls."""
        with self._lock:
            drain = self._drain
        if self._split.note():
            return
        if drain is None or drain.stopped:  # that drain makes no more calls
            self._split.wake()
            return
        with self._lock:
            noted, self._noted = self._noted, True
        if not noted:
            drain.later(self._wake)
        if not owned:
            drain.wake()

    def _wake(self) -> None:
        with self._lock:
            self._noted = False
        self._split.wake()
