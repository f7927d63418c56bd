"""Positions that a source commits in order, whatever the order in which its elements are handled.

The problem: a log such as Kafka's keeps one number for its reader, the position up to which all is handled. Elements
are handled side by side, and the tenth may be done before the first.

The answer: a queue of the positions that were handed out. A position is committed when it is handled and all before it
are; the last of a row is committed for them all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import check_callable
from reactive_runtime.connect._elements.acked import Acked

__all__ = ["InOrder"]

P = TypeVar("P")
T = TypeVar("T")


class _Open(Generic[P]):
    """A position that was handed out."""

    __slots__ = ("handled", "position")

    def __init__(self, position: P) -> None:
        self.position = position
        self.handled = False  # InOrder._lock


class InOrder(Generic[P]):
    """Commits positions in order: each stands for all before it.

    A refused element stops the commits there: no position from it on is committed any more, so that a reader that comes
    later gets it again.

    Args:
        commit: Called with the last position of those that are handled without a gap; by one thread at a time, and with
            ever later positions. An error that it raises goes to the one who acknowledged, and the next call of it has
            a later position.
        refused: Called once, with the position and the error of the first element that is refused. None: not at all.

    Raises:
        TypeError: `commit` or `refused` cannot be called.

    Thread:
        `element` is called by one thread at a time. Elements are settled on any thread.

    Example:
        >>> order = InOrder(lambda position: print("commit", position))
        >>> first, second = order.element("a", 1), order.element("b", 2)
        >>> second.acknowledge(), first.acknowledge()
        commit 2
        (True, True)

    Origin:
        `Committer` of Alpakka Kafka.
    """

    def __init__(
        self, commit: Callable[[P], object], *, refused: Callable[[P, BaseException], object] | None = None
    ) -> None:
        self._commit = check_callable("InOrder", "commit", commit)
        self._refused = None if refused is None else check_callable("InOrder", "refused", refused)
        self._lock = primitives.Lock()
        self._open: deque[_Open[P]] = deque()  # _lock; in the order of the source
        self._stopped: bool = False  # _lock; final: an element was refused
        self._ready: list[P] = []  # _lock; the position that is to be committed next, if there is one
        self._commits: bool = False  # _lock; whether a thread commits

    def element(self, value: T, position: P) -> Acked[T]:
        """The next element of the source.

        Args:
            value: Its value.
            position: Its position, behind those of all elements before.

        Returns:
            The element.
        """
        entry = _Open(position)
        with self._lock:
            self._open.append(entry)

        def settle(error: BaseException | None) -> None:
            if error is None:
                self._handled(entry)
            else:
                self._stop(entry, error)

        return Acked(value, settle)

    @property
    def open(self) -> int:
        """How many positions have been handed out and not committed."""
        with self._lock:
            return len(self._open)

    def _handled(self, entry: _Open[P]) -> None:
        with self._lock:
            entry.handled = True
            while self._open and self._open[0].handled:
                self._ready = [self._open.popleft().position]
            if self._commits or not self._ready:
                return  # the thread that commits looks again
            self._commits = True
        self._work()

    def _work(self) -> None:
        """Commit what is ready, by one thread at a time; after an error too, as others may have handled more."""
        failed: BaseException | None = None
        while True:
            with self._lock:
                ready, self._ready = self._ready, []
                if not ready:
                    self._commits = False
                    break
            try:
                self._commit(ready[0])
            except BaseException as error:
                failed = failed or error
        if failed is not None:
            raise failed

    def _stop(self, entry: _Open[P], error: BaseException) -> None:
        with self._lock:
            first, self._stopped = not self._stopped, True
        if first and self._refused is not None:
            self._refused(entry.position, error)
