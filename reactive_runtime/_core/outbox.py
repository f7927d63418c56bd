"""The sending end of a hot source: what was offered to one subscriber, until it is demanded.

An inbox asks its upstream; nobody asks for what comes into an outbox. So it has a capacity, and an offer tells whether
there was room. It may be filled before it has a subscriber. Whoever fills it hears of it, without a lock held, when
there is room again, and when the subscriber has gone.

    open ──end──▶ ended ──taken to the last──▶ gone
      └──the subscriber cancels──▶ gone (final)
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import chain
from types import TracebackType
from typing import Any

from reactive_runtime._core import hooks, primitives
from reactive_runtime._core.exits import each
from reactive_runtime._core.feed import Feed
from reactive_runtime._core.fuse import PENDING
from reactive_runtime._core.host import Host
from reactive_runtime._core.place import an_exception

__all__ = ["Outbox", "wake_all"]


def _nobody() -> None:
    """Nobody wants to hear of it."""


def wake_all(outboxes: Sequence[Outbox]) -> None:
    """Let every subscriber see to what has come, also where one of them has an exit go up (`_core.exits`)."""
    if len(outboxes) == 1:
        outboxes[0].wake()
    elif outboxes:
        each([outbox.wake for outbox in outboxes])


class Outbox(Feed):
    """Feeds one drain with what is offered, on any thread."""

    __slots__ = (
        "__weakref__",
        "_chunk",
        "_error",
        "_host",
        "_items",
        "_lock",
        "_over",
        "_taken",
        "_traceback",
        "capacity",
        "gone",
        "on_connect",
        "on_gone",
        "on_room",
    )

    waits = True

    def __init__(
        self,
        capacity: int,
        on_room: Callable[[], object] = _nobody,
        on_gone: Callable[[], object] = _nobody,
        on_connect: Callable[[], object] = _nobody,
    ) -> None:
        self.heard = ()
        self.capacity = capacity
        self.on_room = on_room
        self.on_gone = on_gone
        self.on_connect = on_connect
        self._lock = primitives.Lock()
        self._items: list[Any] = []  # _lock; len + _taken <= capacity
        self._taken = 0  # _lock; out of _items, and not yet handed on
        self._over = False  # _lock; there will be no more
        self._error: BaseException | None = None  # _lock; and this is why
        self._traceback: TracebackType | None = None  # _lock; of that error, as it came
        self.gone = False  # _lock; the subscriber wants no more
        self._host: Host | None = None  # _lock; set once, by attach
        self._chunk: Iterator[Any] = iter(())  # the drain's

    # -- whoever fills it: any thread --------------------------------------------------------------------------

    def put(self, element: Any) -> bool:
        """Take `element`; False: there is no room for it, or no need. The subscriber is not woken: see `wake`."""
        with self._lock:
            if self._over or self.gone or len(self._items) + self._taken >= self.capacity:
                return False
            self._items.append(element)
            return True

    def put_out(self) -> list[Any]:
        """Take back the oldest element that waits, to make room."""
        with self._lock:
            oldest, self._items = self._items[:1], self._items[1:]
        return oldest

    def end(self, error: BaseException | None = None) -> bool:
        """There will be no more; False: that was known."""
        with self._lock:
            if self._over or self.gone:
                return False
            self._over, self._error = True, error
            self._traceback = None if error is None else error.__traceback__
            return True

    def over(self) -> bool:
        """Whether it has ended."""
        with self._lock:
            return self._over

    def has_cancelled(self) -> bool:
        """Whether the subscriber has gone before the end."""
        with self._lock:
            return self.gone and not self._over

    def wake(self) -> None:
        """Let the subscriber see to what has come. May call it, on this thread."""
        with self._lock:
            host = self._host
        if host is not None:
            host._add(0)

    def lag(self) -> int:
        """How many elements wait."""
        with self._lock:
            return len(self._items) + self._taken

    def demand(self) -> int:
        """How many elements could be delivered beyond those that wait; less than 0: how many are not asked for."""
        with self._lock:
            host, waiting = self._host, len(self._items) + self._taken
        if host is None:
            return -waiting
        with host._lock:
            return host._demand - waiting

    def needs(self) -> int | None:
        """How many elements there is room for; None: the subscriber has gone, and needs none. Known in one look."""
        with self._lock:
            return None if self.gone else self.capacity - len(self._items) - self._taken

    def room(self) -> int:
        """How many elements there is room for."""
        with self._lock:
            return 0 if self._over or self.gone else self.capacity - len(self._items) - self._taken

    # -- the feed ----------------------------------------------------------------------------------------------

    def attach(self, host: Host) -> None:
        with self._lock:
            self._host = host

    def connect(self) -> None:
        self.on_connect()

    def open(self) -> Iterator[Any]:
        return chain.from_iterable(self._chunks())

    def _chunks(self) -> Generator[Iterator[Any], None, None]:
        most = max(1, self.capacity >> 2)
        while True:
            with self._lock:
                items, self._items = self._items[:most], self._items[most:]
                self._taken = len(items)
                over, error = self._over, self._error
            if items:
                self._chunk = iter(items)
                yield self._chunk
                with self._lock:
                    self._taken = 0
                self.on_room()
            elif not over:
                yield iter((PENDING,))
            elif error is not None:
                raise an_exception(error)
            else:
                return

    def exhausted(self) -> bool:
        with self._lock:
            return self._over and not self._items and self._chunk.__length_hint__() == 0  # type: ignore[attr-defined]

    def close(self) -> None:
        with self._lock:
            self.gone = True
            items, self._items = self._items, []
            self._taken = 0
            host, error, traceback = self._host, self._error, self._traceback
        if error is not None and host is not None:
            host._raised = error, traceback
        left, self._chunk = chain(self._chunk, items), iter(())
        try:
            hooks.elements_dropped("a stream ended before it was delivered", left, self.heard)
        finally:
            self.on_gone()
