"""The calls that a subscriber of the package makes on its upstream.

Calls of `request` and `cancel` are serial, as 2.7 asks of every subscriber. They go through a drain of their own
(`Upstream`), since a `request` may still be on the stack of one thread, emitting, while the elements it brought are
consumed on another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

from reactive_runtime._core.drains.drain import CLOSED, Drain
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import caused
from reactive_runtime._core.failures.exits import Unwinding, goes_up
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.naming import kind_of
from reactive_runtime._spec import MAX_DEMAND, Subscriber, Subscription
from reactive_runtime.errors import ProtocolError, RejectedError

__all__ = ["NoneSignalledError", "Relayed", "Upstream", "call_raised"]


class NoneSignalledError(TypeError):
    """The error that a publisher gets for None. It may come back out of the call that was made on the publisher."""

    def __init__(self, to: object, publisher: str) -> None:
        super().__init__(f"{publisher} called on_next(None), and None is not an element (2.13)")
        self._to = ref(to)

    def was_raised_by(self, to: object) -> bool:
        """Whether it came out of `on_next` of this subscriber."""
        return self._to() is to


def call_raised(subscriber: Any, error: BaseException, fault: Exception, end: Callable[[Exception], object]) -> None:
    """A call of `subscriber` on its upstream raised `error`: signal `fault` to the subscriber.

    An exit on its way up has signalled already, if it is from within; then call `end`, and raise it.
    """
    if isinstance(error, NoneSignalledError) and error.was_raised_by(subscriber):
        fault = caused(ProtocolError(str(error)), error)  # that is wrong, and not the call
    if not goes_up(error):
        subscriber.on_error(fault)
        return
    if not isinstance(error, Unwinding):
        end(fault)
    raise error


class Relayed:
    """A subscription that stands before one of ours, and hands `cancel` on to it at once."""

    __slots__ = ()

    subscriber: Subscriber[Any]
    subscription: Subscription

    @property
    def shown_as(self) -> str:
        """The name of the user's subscriber."""
        return kind_of(self.subscriber)

    @staticmethod
    def unwrapped(subscription: Subscription) -> Subscription:
        """The subscription that all of these stand before."""
        while isinstance(subscription, Relayed):
            subscription = subscription.subscription
        return subscription


class Upstream(Drain):
    """Makes the calls on one upstream subscription, one at a time (2.7).

    A `cancel` that comes while another thread is inside `request` waits for it to return, as it soon does (3.4). Two
    kinds pass at once. One comes from further up the stack of that very `request`: the upstream emits from it, perhaps
    without end. The other one goes to a subscription of our own, whose `cancel` is a note to its drain, welcome at any
    time (3.5): its `request` may run a source that never gives an element.
    """

    __slots__ = ("_caller", "_cancelled", "_ended", "_ours", "_raised", "_subscription", "_unbounded", "submits")

    def __init__(self, subscription: Subscription, raised: Callable[[BaseException, Exception], None]) -> None:
        super().__init__()
        self._raised = raised
        self._ours = isinstance(subscription, Drain | Relayed)
        self.submits: bool = isinstance(subscription, Drain) and subscription.executor is not None
        self._subscription: Subscription | None = subscription  # lock; None once it has been cancelled
        self._cancelled = False  # lock; a cancel is wanted
        self._ended = False  # lock; it has signalled its end, and a request that waits here is not made (2.4)
        self._caller = 0  # lock; the thread that is inside `request`
        self._unbounded = False  # the owner's; everything has been asked for, and there is no more to ask

    def request(self, n: int) -> None:
        if not self.submits:
            self.add(n)
            return
        with self.lock:  # it only adds to a count, and submits a task: any thread may do that (3.4)
            subscription = None if self._cancelled or self._ended else self._subscription
        if subscription is not None:
            self._request(subscription, n)

    def _request(self, subscription: Subscription, n: int) -> None:
        try:
            subscription.request(n)
        except BaseException as error:
            fault = ProtocolError(f"the upstream's request({n}) raised (3.16): {error}")
            self._raised(error, caused(fault, error))

    def cancel(self) -> None:
        with self.lock:
            self._cancelled = True
            at_once = self._ours or self._caller == primitives.get_ident()
        if at_once:
            self._cancel_now()
        else:
            self.wake()

    def subscription(self) -> Subscription | None:
        """The upstream's, until it is cancelled."""
        with self.lock:
            return self._subscription

    def ended(self) -> None:
        """The upstream has signalled its end."""
        with self.lock:
            self._ended = True

    def still_to_come(self) -> int | None:
        """How many elements it has yet, as far as it is our own and knows."""
        with self.lock:
            subscription = self._subscription
        return subscription.still_to_come() if isinstance(subscription, Drain) else None

    def is_cancelled(self) -> bool:
        with self.lock:
            return self._cancelled

    def _turn(self, allowance: int) -> int:
        with self.lock:
            cancelled, subscription = self._cancelled, self._subscription
            ended = self._ended
            self._caller = primitives.get_ident()
        try:
            if cancelled or subscription is None:
                self._cancel_now()
                return CLOSED
            if allowance and not (self._unbounded or ended):
                self._unbounded = allowance == MAX_DEMAND
                self._request(subscription, allowance)
        finally:
            with self.lock:
                self._caller = 0
        return 0 if self._unbounded or ended else allowance  # what is not accounted for would come round for ever

    def _cancel_now(self) -> None:
        with self.lock:
            subscription, self._subscription = self._subscription, None
        if subscription is None:
            return
        try:
            subscription.cancel()
        except BaseException as error:
            dropping.raised("an upstream's cancel raised (3.15)", error)

    def rejected(self, error: RejectedError) -> None:
        raise AssertionError("drains without an executor are never rejected")
