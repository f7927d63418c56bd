"""The sending end of a hot source: elements offered to one subscriber wait here until it demands them.

A prefetch queue asks its upstream; a subscriber buffer does not. So it has a capacity, and an offer says whether there
was room. It may be filled before it has a subscriber. It calls its filler, without a lock held, when there is room
again, and when the subscriber has gone.

It hands on one element at a time, which has left it then: all that wait can still be counted, and dropped.

    open ──end──▶ ended ──taken to the last──▶ gone
      └──the subscriber cancels──▶ gone (final)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.drains.ownership import with_lock
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.failure import Failure
from reactive_runtime._core.fusion.fuse import PENDING
from reactive_runtime._core.queues.ready_queue import FilledQueue
from reactive_runtime._core.sources.pollable import paced
from reactive_runtime._spec import MAX_DEMAND

__all__ = ["SubscriberBuffer"]


def _nothing() -> None:
    """There is nothing to do."""


class SubscriberBuffer(FilledQueue):
    """Gives one drain the elements that any thread offers."""

    __slots__ = (
        "__weakref__",
        "_dry",
        "_finished",
        "_full",
        "_given",
        "_handed",
        "_paced",
        "capacity",
        "on_connect",
        "on_gone",
        "on_room",
    )

    queues = True

    def __init__(
        self,
        capacity: int,
        on_room: Callable[[], object] = _nothing,
        on_gone: Callable[[], object] = _nothing,
        on_connect: Callable[[], object] = _nothing,
    ) -> None:
        super().__init__(deque())  # len(_items) <= capacity
        self.heard: dropping.Listeners = ()
        self.capacity: int = capacity
        self.on_room: Callable[[], object] = on_room
        self.on_gone: Callable[[], object] = on_gone
        self.on_connect: Callable[[], object] = on_connect
        self._dry = True  # lock; the subscriber has found nothing, and rests until it is woken
        self._full = False  # lock; there was no room for an element, and `on_room` has not been called since
        self._finished = False  # lock; the end is the wish of the subscriber
        self._handed = 0  # lock; handed on in this turn, and not yet subtracted from the drain's demand
        self._paced = False  # set once, before it is opened
        self._given = 0  # the drain's; elements handed on since `on_room` was called

    # -- the filler: any thread --------------------------------------------------------------------------------

    def put(self, element: Any) -> bool:
        """Take `element`; False: there is no room for it, or no need. The subscriber is not woken: see `wake`."""
        with self._lock:
            if self._over or self._closed:
                return False
            if len(self._items) >= self.capacity:
                self._full = True
                return False
            self._items.append(element)
            return True

    def deal(self, element: Any) -> tuple[bool, DrainContext | None]:
        """`put`, and the drain to wake for it: none while the subscriber is at work, and looks itself."""
        with self._lock:
            if self._over or self._closed or len(self._items) >= self.capacity:
                return False, None
            self._items.append(element)
            rests, self._dry = self._dry or self._to_notify is not None, False
        return True, self.news() if rests else None

    def push(self, element: Any) -> list[Any] | None:
        """Take `element`, and make room for it: returns the oldest that waited, if it had to go. None: no need."""
        with self._lock:
            if self._over or self._closed:
                return None
            dropped = [self._items.popleft()] if len(self._items) >= self.capacity else []
            self._items.append(element)
            return dropped

    def end(self, failure: Failure | None = None) -> bool:
        """There will be no more; False: that was known."""
        with self._lock:
            return self._end(failure)

    def over(self) -> bool:
        """Whether it has ended."""
        with self._lock:
            return self._over

    def has_cancelled(self) -> bool:
        """Whether the subscriber has gone before the end."""
        with self._lock:
            return self._closed and (self._finished or not self._over)

    def lag(self) -> int:
        """How many elements wait."""
        with self._lock:
            return len(self._items)

    def demand(self) -> int:
        """How many elements could be delivered beyond those that wait; less than 0: how many are not asked for."""
        with self._lock:
            drain, waiting, handed = self._drain, len(self._items), self._handed
        if drain is None:
            return -waiting
        demand = drain.demand()
        return demand - waiting if demand == MAX_DEMAND else demand - handed - waiting

    def room(self) -> int:
        """How many elements there is room for. Where there is none, the buffer calls `on_room` as soon as there is."""
        with self._lock:
            room = self._room()
            self._full = self._full or not room
            return room

    def room_left(self) -> int:
        """How many elements there is room for; the buffer calls `on_room` when the subscriber has passed some on."""
        with self._lock:
            return self._room()

    @with_lock
    def _room(self) -> int:
        return 0 if self._over or self._closed else self.capacity - len(self._items)

    def abandoned(self) -> list[Any]:
        """The elements for a subscriber that has not come, and will not. Called once, after the end."""
        with self._lock:
            if self._drain is not None:
                return []
            items = list(self._items)
            self._items.clear()
            return items

    # -- the pollable source -------------------------------------------------------------------------------------------

    def connect(self) -> None:
        assert self._drain is not None
        if not self._drain.stopped:  # cancelled inside `on_subscribe`: there is nothing to begin
            self.on_connect()

    def pace(self) -> None:
        self._paced = True

    def open(self) -> Iterator[Any]:
        assert self._drain is not None
        return paced(self, self._drain) if self._paced else self

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._given >= self.capacity >> 2:
            self._made_room()
        while True:
            element, full = None, False
            with self._lock:
                if self._items:
                    element = self._items.popleft()
                    full, self._full = self._full, False
                    self._handed += 1
                    break
                if not (self._over or self._given):
                    self._dry = True
                    return PENDING
                failure = self._failure
            if not self._given:
                raise self._at_end(failure)
            self._made_room()  # every element handed on has gone its way, and more may come of that
        self._given += 1
        if full:
            self._freed()
        return element

    def _made_room(self) -> None:
        if self._given:
            self._given = 0
            self.on_room()

    def _freed(self) -> None:
        """There is room for one that found none. Called by the drain's owner, before the element goes its way."""
        assert self._drain is not None
        self._drain.later(self.on_room)  # as soon as the element has gone

    def request(self, n: int) -> None:
        with self._lock:
            self._handed = 0  # the turn is over

    def exhausted(self) -> bool:
        with self._lock:
            self._handed = 0
            return self._over and not self._items

    def ask_no_more(self) -> bool:
        with self._lock:
            self._finished = self._end(None)
        return True

    def close(self) -> None:
        with self._lock:
            self._closed = True
            items = list(self._items)
            self._items.clear()
            failure = self._failure
        try:
            self._dropped(items, failure)
        finally:
            self.on_gone()
