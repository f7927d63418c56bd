"""A publisher in between, which counts what was asked of the one behind it, and checks what that one signals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.naming import kind_of
from reactive_runtime._spec import MAX_DEMAND, Publisher, Subscriber, Subscription
from reactive_runtime.testing._protocol import (
    Breach,
    SubscriptionCheck,
    check_publisher,
    is_valid,
    meeting,
    not_awaited,
    shown,
)

__all__ = ["Probe"]

T = TypeVar("T")


class Probe(Generic[T]):
    """Passes everything through, notes each subscription, request and cancel, and checks the signals, on any thread.

    A rule that the publisher behind breaks is an AssertionError of `verify` and of each property, and is in
    `violations`: elements beyond demand (1.1), signals that overlap (1.3), a signal after the end (1.7), one before
    `on_subscribe`, or a `subscribe` that raises (1.9), a second `on_subscribe` (2.12), None (2.13), a `cancel` or
    `request` that raises (3.15, 3.16). What breaks a rule is passed through all the same.

    Args:
        publisher: The publisher behind it.

    Raises:
        TypeError: `publisher` has no `subscribe`.

    Example:
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.testing import Probe
        >>> probe = Probe(Flow.range(9))
        >>> list(Flow.from_publisher(probe).take(2))
        [0, 1]
        >>> probe.requested, probe.cancelled
        (2, 1)

    Origin:
        `PublisherProbe` of Reactor.
    """

    def __init__(self, publisher: Publisher[T]) -> None:
        check_publisher("Probe", publisher)
        self._publisher = publisher
        self._lock = primitives.Lock()
        self._requests: list[Any] = []  # _lock
        self._subscribed = 0  # _lock
        self._cancelled = 0  # _lock
        self._violations: list[str] = []  # _lock

    @property
    def violations(self) -> list[str]:
        """The rules that the publisher has broken so far, each with what was seen and the signals; in order."""
        with self._lock:
            return list(self._violations)

    def verify(self) -> None:
        """Check that the publisher has broken no rule so far.

        Raises:
            AssertionError: It has. The text has the rule, what was seen, and the signals of that subscription.

        Thread:
            Any.
        """
        __tracebackhide__ = True
        violations = self.violations
        if violations:
            more = f"; and {len(violations) - 1} more: Probe.violations" if len(violations) > 1 else ""
            raise AssertionError(f"{violations[0]}{more}")

    @property
    def requests(self) -> list[int]:
        """The argument of each request so far, of all subscriptions, in order; also of those that ask for nothing."""
        __tracebackhide__ = True
        self.verify()
        with self._lock:
            return list(self._requests)

    @property
    def requested(self) -> int:
        """The sum of all valid requests so far, at most MAX_DEMAND. What is no int from 1 asks for nothing (3.9)."""
        __tracebackhide__ = True
        return min(sum(n for n in self.requests if is_valid(n)), MAX_DEMAND)

    @property
    def subscribed(self) -> int:
        """How many subscribers there have been."""
        __tracebackhide__ = True
        self.verify()
        with self._lock:
            return self._subscribed

    @property
    def cancelled(self) -> int:
        """How many calls of `cancel` there have been."""
        __tracebackhide__ = True
        self.verify()
        with self._lock:
            return self._cancelled

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """Subscribe `subscriber` to the publisher behind; see `Publisher.subscribe`.

        Args:
            subscriber: The subscriber. None is passed on, for the publisher to refuse.
        """
        with self._lock:
            self._subscribed += 1
        if subscriber is None:
            self._publisher.subscribe(subscriber)  # type: ignore[unreachable]  # of callers without types
            return
        between = _Between(self, subscriber)
        between.watched("1.9", "subscribe", partial(self._publisher.subscribe, between))

    def _found(self, violation: str) -> None:
        with self._lock:
            self._violations.append(violation)


class _Between(Generic[T]):
    """The subscriber that the publisher sees."""

    @property
    def shown_as(self) -> str:
        """The subscriber is the user's."""
        return kind_of(self._subscriber)

    def __init__(self, probe: Probe[T], subscriber: Subscriber[T]) -> None:
        self._probe = probe
        self._subscriber: Any = subscriber
        self._check = SubscriptionCheck()
        self._raised = primitives.ThreadLocal()  # what the subscriber has raised on this thread: it is no publisher's

    def watched(self, rule: str, what: str, call: Callable[[], object]) -> None:
        """What the publisher raises from such a call breaks the rule, and goes on up. A coroutine breaks it too."""
        try:
            answer = call()
        except Exception as error:
            if error is not getattr(self._raised, "error", None):
                self._breaks(Breach(rule, f"{what} raised {shown(error)}"))
            raise
        breach = not_awaited(rule, what, answer)
        if breach is not None:
            self._breaks(breach)

    def _breaks(self, breach: Breach) -> None:
        self._probe._found(f"{breach}; {self._check.history()}")

    def _signal(self, signal: str, *arguments: Any) -> None:
        self._pass_on(partial(self._call, signal), signal, *arguments)

    def _call(self, signal: str, *arguments: Any) -> None:
        getattr(self._subscriber, signal)(*arguments)

    def _pass_on(self, call: Callable[..., object], signal: str, *arguments: Any) -> None:
        breach = self._check.begin(signal, *arguments)
        if breach is not None:
            self._breaks(breach)
        try:
            call(*arguments)
        except Exception as error:
            self._raised.error = error
            raise
        finally:
            self._check.end(signal)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        between = None if subscription is None else _Subscription(self._probe, self, subscription)
        self._signal("on_subscribe", between)

    def on_next(self, element: T, /) -> None:
        self._signal("on_next", element)

    def on_error(self, error: BaseException, /) -> None:
        self._signal("on_error", error)

    def on_complete(self) -> None:
        self._signal("on_complete")

    def meeting_in_on_next(self, both: primitives.Barrier) -> Callable[[Any], object]:
        """See `reactive_runtime.testing._protocol.meeting`."""
        return partial(self._pass_on, meeting(self._subscriber, both), "on_next")

    def asked(self, n: Any) -> None:
        self._check.request(n)


class _Subscription:
    """The subscription that the subscriber sees."""

    def __init__(self, probe: Probe[Any], between: _Between[Any], subscription: Subscription) -> None:
        self._probe = probe
        self._between = between
        self._subscription = subscription

    def request(self, n: int, /) -> None:
        with self._probe._lock:
            self._probe._requests.append(n)
        self._between.asked(n)
        self._between.watched("3.16", f"request({shown(n)})", partial(self._subscription.request, n))

    def cancel(self) -> None:
        with self._probe._lock:
            self._probe._cancelled += 1
        self._between.watched("3.15", "cancel", self._subscription.cancel)
