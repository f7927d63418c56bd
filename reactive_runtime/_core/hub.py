"""One line of elements to many subscribers, each with an outbox: the heart of every hot source.

Under the hub's lock an element is put into every outbox, so that all subscribers see one order, and a late one sees a
suffix of it. They are woken afterwards, without the lock. An element goes to all or to none: where one subscriber has
no room, the emission is refused. Behind an upstream that never happens, since the hub asks for no more than the
slowest has room for.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from typing import Any

from reactive_runtime._core import hooks, primitives
from reactive_runtime._core.arguments import not_none
from reactive_runtime._core.exits import Unwinding, goes_up
from reactive_runtime._core.inbox import Upstream
from reactive_runtime._core.outbox import Outbox, wake_all
from reactive_runtime._core.place import an_exception
from reactive_runtime.errors import ProtocolError
from reactive_runtime.spec import Subscription

__all__ = ["Emission", "Hub"]


class Emission(enum.Enum):
    """What became of an element that was emitted. Only `OK` delivers it, to every subscriber there is."""

    OK = "ok"
    OVERFLOW = "overflow"
    """A subscriber has no room."""
    CANCELLED = "cancelled"
    """The only subscriber there can be has cancelled."""
    TERMINATED = "terminated"
    """The source has completed or failed."""
    NO_SUBSCRIBER = "no subscriber"
    """Nobody is there, and nothing is kept for those who come later."""


class Hub:
    """Spreads elements, on any thread, to the outboxes of those who have entered."""

    def __init__(
        self,
        capacity: int,
        replay: int | None = 0,
        *,
        waits: bool = True,
    ) -> None:
        """`capacity`: how many elements may wait for each subscriber. `replay`: how many the late ones get; None: all.

        `waits`: while there is no subscriber, nothing is asked of the upstream.
        """
        self.capacity = capacity
        self.replay = replay
        self.waits = waits
        self.on_empty: Callable[[], object] | None = None  # set once, before anybody enters; the last one has gone
        self._lock = primitives.Lock()
        self._outboxes: tuple[Outbox, ...] = ()  # _lock; replaced, never changed
        self._history: deque[Any] = deque(maxlen=replay)  # _lock
        self._over = False  # _lock
        self._error: BaseException | None = None  # _lock
        self._room = 0  # _lock; so many elements fit into every outbox, for certain
        self._upstream: Upstream | None = None  # _lock; set once
        self._outstanding = 0  # _lock; asked of the upstream, and not yet here

    # -- the side of the subscribers ---------------------------------------------------------------------------

    def enter(self) -> Outbox:
        """The feed of one more subscriber, which begins with what is replayed."""
        outbox = Outbox(self.capacity, self._more_room, lambda: self._leave(outbox), self._more_room)
        with self._lock:
            history, over, error = tuple(self._history), self._over, self._error
            outbox.capacity += len(history)  # what is replayed takes no room from what comes
            for element in history:
                outbox.put(element)
            if over:
                outbox.end(error)
            else:
                self._outboxes = (*self._outboxes, outbox)
                self._room = 0
        return outbox

    def _leave(self, outbox: Outbox) -> None:
        with self._lock:
            was_there = outbox in self._outboxes
            self._outboxes = tuple(it for it in self._outboxes if it is not outbox)
            empty = was_there and not self._outboxes and not self._over
            self._room = 0
        if empty and self.on_empty is not None:
            self.on_empty()
        elif was_there:
            self._more_room()

    def outboxes(self) -> tuple[Outbox, ...]:
        """Those that are there."""
        with self._lock:
            return self._outboxes

    # -- the side of those who emit ----------------------------------------------------------------------------

    def emit(self, element: Any) -> Emission:
        """Put `element` into every outbox, or into none."""
        with self._lock:
            if self._over:
                return Emission.TERMINATED
            outboxes = self._outboxes
            if not outboxes and self.replay == 0:
                return Emission.NO_SUBSCRIBER
            if not self._room:
                self._room = self._least_room()
                if not self._room:
                    return Emission.OVERFLOW
            self._room -= 1
            taken = 0
            for outbox in outboxes:
                taken += outbox.put(element)
            if not taken and self.replay == 0:
                return Emission.NO_SUBSCRIBER  # those who are there have gone, and not left yet
            self._history.append(element)
        wake_all(outboxes)
        return Emission.OK

    def _least_room(self) -> int:
        """Called with the lock held. One who has gone, and has not left yet, needs none."""
        rooms = [room for outbox in self._outboxes if (room := outbox.needs()) is not None]
        return min(rooms, default=self.capacity)

    def end(self, error: BaseException | None = None) -> bool:
        """No more elements; False: it had ended."""
        with self._lock:
            if self._over:
                return False
            self._over, self._error = True, error
            outboxes, self._outboxes = self._outboxes, ()
        for outbox in outboxes:
            outbox.end(error)
        wake_all(outboxes)
        return True

    def over(self) -> bool:
        """Whether it has ended."""
        with self._lock:
            return self._over

    def forget(self) -> None:
        """Keep nothing of the past."""
        with self._lock:
            self._history.clear()

    # -- the side of an upstream: a subscriber -----------------------------------------------------------------

    def on_subscribe(self, subscription: Subscription, /) -> None:
        not_none("on_subscribe", subscription)
        with self._lock:
            refused = self._upstream is not None or self._over
            if not refused:
                self._upstream = Upstream(subscription, self)
        if refused:
            subscription.cancel()  # 2.5
        else:
            self._more_room()

    def on_next(self, element: Any, /) -> None:
        not_none("on_next", element)
        with self._lock:
            self._outstanding = max(0, self._outstanding - 1)
            upstream = self._upstream
        try:
            emission = self.emit(element)
        except BaseException as error:  # an exit on its way up: this upstream is about to close, and nothing follows
            if not isinstance(error, Unwinding):
                self.end(an_exception(error))
            raise
        if emission is Emission.OK:
            return
        hooks.element_dropped(f"a hot source could not take it: {emission.value}", element)
        if emission is Emission.OVERFLOW and upstream is not None:
            self.on_error(ProtocolError("the upstream signalled more elements than were requested (1.1)"))
            upstream.cancel()
        elif emission is Emission.NO_SUBSCRIBER:
            self._more_room()

    def on_error(self, error: BaseException, /) -> None:
        not_none("on_error", error)
        if not self.end(error):
            hooks.error_dropped("an error after its stream had ended", error)

    def on_complete(self) -> None:
        self.end()

    def _raised(self, error: BaseException, fault: Exception) -> None:
        """A call on the upstream raised `error`; an exit on its way up has signalled already, if it is from within."""
        if not goes_up(error):
            self.on_error(fault)
            return
        if not isinstance(error, Unwinding):
            self.end(fault)
        raise error

    def disconnect(self) -> None:
        """Cancel the upstream."""
        with self._lock:
            upstream = self._upstream
        if upstream is not None:
            upstream.cancel()

    def _more_room(self) -> None:
        """Ask the upstream for what the slowest has room for; in batches, while there is something under way."""
        with self._lock:
            upstream = self._upstream
            if upstream is None or self._over or (self.waits and not self._outboxes):
                return
            n = self._least_room() - self._outstanding
            if n <= 0 or (self._outstanding and n < self.capacity - (self.capacity >> 2)):
                return
            self._outstanding += n
        upstream.request(n)
