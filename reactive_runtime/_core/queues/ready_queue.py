"""What has arrived for one drain and waits there, and the end behind it.

A boundary, a task, a hot source, a group: each takes elements on any thread, and the owner of a drain comes for them
later. The first two belong to one drain, whose lock is theirs; the others may be filled before they have a drain
(`FilledQueue`). What they have in common is the end. It comes once, behind the elements (`_end`); the reader raises it
when it has come to it (`_at_end`); a queue that is closed before that drops what waits, and answers for an error
that no reader has come to (`_dropped`).

    open ──_end──▶ ended ──read to the last──▶ closed
      └──close──▶ closed (final: nothing is taken)
"""

from __future__ import annotations

from collections.abc import Iterable, MutableSequence
from typing import Any

from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.drains.ownership import with_lock
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.failure import Failure
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.pollable import Pollable

__all__ = ["FilledQueue", "ReadyQueue"]


class ReadyQueue(Pollable):
    """A pollable source of what has been put down here, on any thread."""

    __slots__ = ("_closed", "_failure", "_items", "_lock", "_over", "_to_notify")

    waits = True

    def __init__(self, items: MutableSequence[Any], lock: primitives.Lock | None = None) -> None:
        """`lock`: of its own; None: that of the drain, set by `attach`."""
        if lock is not None:
            self._lock = lock  # set once
        self._items: Any = items  # lock
        self._over = False  # lock; there will be no more
        self._failure: Failure | None = None  # lock; and this is why
        self._closed = False  # lock; the drain wants no more
        self._to_notify: tuple[list[Any], Any] | None = None  # lock; who is put where, once, when there is news

    # -- with the lock held ------------------------------------------------------------------------------------

    @with_lock
    def _end(self, failure: Failure | None) -> bool:
        """There will be no more. False: that was known, or it is closed."""
        if self._over or self._closed:
            return False
        self._over, self._failure = True, failure
        return True

    @with_lock
    def _arrived(self) -> None:
        """There is news for the one that waits. The lock is that of the drain."""
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
        """The drain that takes what waits."""
        raise NotImplementedError

    def _at_end(self, failure: Failure | None) -> Exception:
        """What the iterator raises where nothing waits, and there will be no more. Without the lock."""
        return StopIteration() if failure is None else failure.reached(self.reader())

    def _dropped(self, left: Iterable[Any], failure: Failure | None) -> None:
        """It is closed: `left` will not be delivered, nor `failure`, if the reader has not come to it."""
        try:
            dropping.elements_dropped("a stream ended before it was delivered", left, self.heard)
        finally:
            if failure is not None:
                failure.left(self.reader())


class FilledQueue(ReadyQueue):
    """A ready queue with a lock of its own, which is filled without a word to its drain: see `wake`."""

    __slots__ = ("_drain",)

    def __init__(self, items: MutableSequence[Any]) -> None:
        super().__init__(items, primitives.Lock())
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
        """Have the subscriber see to what has come. May call it, on this thread."""
        drain = self.news()
        if drain is not None:
            drain.wake()

    def news(self) -> DrainContext | None:
        """There is news for the one that waits; the drain is still to be woken. None: there is no drain."""
        with self._lock:
            drain, to_notify, self._to_notify = self._drain, self._to_notify, None
        if drain is not None and to_notify is not None:
            ready, who = to_notify
            with drain.lock:
                ready.append(who)
        return drain
