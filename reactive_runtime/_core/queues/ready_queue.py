"""The elements that have arrived for one drain and wait for it, and the end behind them.

A boundary, a task, a hot source and a group take elements on any thread, and the owner of a drain comes for them later.
The first two belong to one drain, and share its lock (`DrainQueue`); the others may be filled before they have a drain
(`FilledQueue`). The end comes once, behind the elements (`_end`). The reader raises it when it has come to it
(`_at_end`). A queue that is closed before that drops the elements that wait, and answers for an error that no reader
has come to (`_dropped`).

    open ──_end──▶ ended ──read to the last──▶ closed
      └──close──▶ closed (final: nothing is taken)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSequence
from typing import Any

from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.drains.ownership import with_lock
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.failure import Failure
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.pollable import Pollable

__all__ = ["DrainQueue", "FilledQueue", "ReadyQueue"]


class ReadyQueue(Pollable):
    """A pollable source of elements that any thread may put down here."""

    __slots__ = ("_closed", "_failure", "_items", "_lock", "_over", "_to_notify")

    waits = True

    def __init__(self, items: MutableSequence[Any]) -> None:
        self._lock: primitives.Lock  # set once, by a subclass
        self._items: Any = items  # lock
        self._over = False  # lock; there will be no more elements
        self._failure: Failure | None = None  # lock; the reason for that, if it is an error
        self._closed = False  # lock; the drain wants no more
        # lock; the list that gets an object, once, when there is news
        self._to_notify: tuple[list[Any], Any] | None = None

    # -- with the lock held ------------------------------------------------------------------------------------

    @with_lock
    def _end(self, failure: Failure | None) -> bool:
        """There will be no more elements. False: that was known, or the queue is closed."""
        if self._over or self._closed:
            return False
        self._over, self._failure = True, failure
        return True

    @with_lock
    def _arrived(self) -> None:
        """There is news for the inner subscription that waits. The lock is that of the drain."""
        if self._to_notify is not None:
            ready, who = self._to_notify
            self._to_notify = None
            ready.append(who)

    # -- the owner of the drain --------------------------------------------------------------------------------

    def failure(self) -> Exception | None:
        with self._lock:
            failure = self._failure
        return None if failure is None else failure.reached(self.reader())

    def exhausted(self) -> bool:
        with self._lock:
            return self._over and not self._items

    def notify_when_ready(self, ready: list[Any], who: Any) -> bool:
        with self._lock:
            if self._items or self._over:
                return False
            self._to_notify = ready, who
            return True

    def reader(self) -> DrainContext | None:
        """The drain that takes the elements."""
        raise NotImplementedError

    def _at_end(self, failure: Failure | None) -> Exception:
        """The exception that the iterator raises where no element waits or will come. Without the lock."""
        return StopIteration() if failure is None else failure.reached(self.reader())

    def _dropped(self, left: Iterable[Any], failure: Failure | None) -> None:
        """The queue is closed, and delivers neither `left` nor `failure`, if the reader has not come to that."""
        try:
            dropping.elements_dropped(dropping.UNDELIVERED, left, self.heard)
        finally:
            if failure is not None:
                failure.left(self.reader())


class DrainQueue(ReadyQueue):
    """A ready queue that belongs to one drain, shares its lock, and gives it elements in chunks."""

    __slots__ = ("_chunk", "_drain")

    def __init__(self) -> None:
        super().__init__([])
        self._drain: DrainContext  # set once, by attach
        self._chunk: Iterator[Any] = iter(())  # the owner's; taken out of the queue, and not handed on

    def attach(self, drain: DrainContext) -> None:
        self._drain = drain
        self._lock = drain.lock

    def reader(self) -> DrainContext:
        return self._drain

    def exhausted(self) -> bool:
        with self._lock:
            return self._over and not self._items and self._chunk.__length_hint__() == 0  # type: ignore[attr-defined]


class FilledQueue(ReadyQueue):
    """A ready queue with a lock of its own: any thread fills it, and wakes its drain later (`wake`)."""

    __slots__ = ("_drain",)

    def __init__(self, items: MutableSequence[Any]) -> None:
        super().__init__(items)
        self._lock = primitives.Lock()
        self._drain: DrainContext | None = None  # lock; set once, by attach

    def attach(self, drain: DrainContext) -> None:
        with self._lock:
            self._drain = drain

    def drain(self) -> DrainContext | None:
        """The drain that it gives its elements to, once there is one."""
        with self._lock:
            return self._drain

    reader = drain

    def gone(self) -> bool:
        """Whether the subscriber wants no more."""
        with self._lock:
            return self._closed

    def wake(self) -> None:
        """Have the subscriber see to the news. May call it, on this thread."""
        drain = self.news()
        if drain is not None:
            drain.wake()

    def news(self) -> DrainContext | None:
        """Note that there is news, and return the drain, for the caller to wake. None: there is no drain."""
        with self._lock:
            drain, to_notify, self._to_notify = self._drain, self._to_notify, None
        if drain is not None and to_notify is not None:
            ready, who = to_notify
            with drain.lock:
                ready.append(who)
        return drain
