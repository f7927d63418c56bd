"""What the kit puts behind a publisher: subscribers that a check drives by hand."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from reactive_runtime.spec import MAX_DEMAND, Subscription
from reactive_runtime.tck.environment import Over, TestEnvironment, shown

__all__ = ["ManualSubscriber", "SerialSubscriber", "ask"]

T = TypeVar("T")

FLOOD = 2_000
"""So many elements beyond the demand, or the length of the stream, and the kit ends the thread they come on."""

FLOOD_AFTER_CANCEL = 100_000
"""So many elements after a cancel, and the kit ends the thread they come on."""


class ManualSubscriber(Generic[T]):
    """A subscriber that a check drives by hand. What it receives is owned by the trial's lock.

    A signal before `on_subscribe`, a second `on_subscribe` or an `on_error` that is not expected is a fault.
    """

    def __init__(
        self,
        env: TestEnvironment,
        *,
        then: Callable[[ManualSubscriber[T], T], object] | None = None,
        subscribed: Callable[[ManualSubscriber[T]], object] | None = None,
        may_fail: bool = False,
    ) -> None:
        """`then` runs inside `on_next`, `subscribed` inside `on_subscribe`; with `may_fail` on_error is no fault."""
        self.env = env
        self.name: str = env.name("subscriber")
        self.then = then
        self.subscribed = subscribed
        self.may_fail = may_fail
        self.subscription: Subscription | None = None
        self.subscriptions: int = 0
        self.elements: list[T] = []
        self.taken: int = 0  # how many of the elements a check has looked at
        self.errors: list[BaseException] = []
        self.completions: int = 0
        self.demand: int = 0
        self.cancelled_after: int | None = None  # how many elements had come
        env.follow(self)

    # -- signals: any thread -----------------------------------------------------------------------------------

    def on_subscribe(self, subscription: Subscription | None, /) -> None:
        """Keep the first subscription; None, or a second one, is a fault (2.12)."""
        with self.env.lock:
            self.env.note(f"{self.name}: on_subscribe({type(subscription).__name__})")
            self.subscriptions += 1
            again = self.subscription is not None
            if not again:
                self.subscription = subscription
        if subscription is None:
            self.env.fault("on_subscribe(None): a subscription is needed")
        elif again:
            self.env.fault("on_subscribe came a second time (2.12)")
            subscription.cancel()
        elif self.subscribed is not None:
            self.subscribed(self)

    def on_next(self, element: T, /) -> None:
        """Keep the element; None, or one before `on_subscribe` or after the end, is a fault (2.13, 1.9, 1.7)."""
        with self.env.lock:
            self.env.note(f"{self.name}: on_next({shown(element)})")
            self._must_be_subscribed("on_next")
            if element is None:
                self.env.fault("on_next(None): None is not an element (2.13)")
            if self.ends:
                self.env.fault("on_next came after a terminal signal (1.7)")
            self.elements.append(element)
            self._not_without_end()
        if self.then is not None:
            self.then(self, element)

    def _not_without_end(self) -> None:
        """End the thread of a publisher that goes on and on; under the lock."""
        came, elements = len(self.elements), self.env.elements
        if came - self.demand > FLOOD:
            why = f"{came - self.demand} elements more than were requested (1.1), and no end"
        elif came - elements > FLOOD:
            why = f"it was asked for a stream of {elements} elements, and {came} came, and no end"
        elif self.cancelled_after is not None and came - self.cancelled_after > FLOOD_AFTER_CANCEL:
            why = f"{came - self.cancelled_after} elements after cancel (1.8), and no end"
        else:
            return
        self.env.fault(why)
        raise Over

    def on_error(self, error: BaseException, /) -> None:
        """Keep the error; one before `on_subscribe`, after an end, or not expected, is a fault (1.9, 1.7)."""
        with self.env.lock:
            self.env.note(f"{self.name}: on_error({shown(error)})")
            self._must_be_subscribed("on_error")
            self.errors.append(error)
            self._only_one_end()
            if not self.may_fail:
                self.env.fault(f"an unexpected on_error({shown(error)})")

    def on_complete(self) -> None:
        """Count it; before `on_subscribe`, or after an end, it is a fault (1.9, 1.7)."""
        with self.env.lock:
            self.env.note(f"{self.name}: on_complete()")
            self._must_be_subscribed("on_complete")
            self.completions += 1
            self._only_one_end()

    def _only_one_end(self) -> None:
        if self.ends > 1:
            self.env.fault(f"terminal signal number {self.ends} came (1.7)")

    def _must_be_subscribed(self, signal: str) -> None:
        if not self.subscriptions:
            self.env.fault(f"{signal} came before on_subscribe (1.9)")

    @property
    def ends(self) -> int:
        """How many terminal signals came."""
        return len(self.errors) + self.completions

    @property
    def count(self) -> int:
        """How many signals came, but for on_subscribe."""
        return len(self.elements) + self.ends

    def has_ended(self) -> bool:
        """Whether a terminal signal came."""
        return self.ends > 0

    def was_signalled(self) -> bool:
        """Whether any signal came, but for on_subscribe."""
        return self.count > 0

    # -- what a check does with it: the thread of the body -----------------------------------------------------

    def request(self, n: int) -> None:
        """Call `request(n)`."""
        subscription = self._held("request")
        with self.env.lock:
            self.env.note(f"{self.name}: request({n}) ->")
            self.demand = min(self.demand + max(n, 0), MAX_DEMAND)
        self.env.call(f"request({n})", subscription.request, n)

    def cancel(self) -> None:
        """Call `cancel()`."""
        subscription = self._held("cancel")
        with self.env.lock:
            self.env.note(f"{self.name}: cancel() ->")
            if self.cancelled_after is None:
                self.cancelled_after = len(self.elements)
        self.env.call("cancel()", subscription.cancel)

    def leave(self) -> None:
        """Cancel, if there is anything left to cancel: the check is over."""
        if self.subscription is not None and not self.ends:
            with contextlib.suppress(Exception), self.env.calling("cancel(), to clean up"):
                self.subscription.cancel()

    def _held(self, call: str) -> Subscription:
        if self.subscription is None:
            self.env.fail(f"there is no subscription to {call}: on_subscribe has not come")
        return self.subscription

    def next(self) -> T:
        """Wait for one more element."""
        return self.next_elements(1)[0]

    def next_elements(self, n: int) -> list[T]:
        """Wait for `n` more elements, for each as long as `default_timeout`."""
        begin, end, came = self.taken, self.taken + n, -1
        while len(self.elements) < end and not self.ends and len(self.elements) > came:
            came = len(self.elements)
            self.env.happens(lambda came=came: len(self.elements) > came or self.ends)  # type: ignore[misc]
        self.env.check(
            len(self.elements) >= end,
            f"{self._missing(n)}; {len(self.elements)} of {end} elements came{self._end()}",
        )
        self.taken = end
        return self.elements[begin:end]

    def request_next(self) -> T:
        """Request one element, and wait for it."""
        self.request(1)
        return self.next()

    def request_end(self) -> None:
        """Request once more, also where the end has come by itself, and wait for `on_complete`."""
        self.request(1)
        self.expect_completion()

    def expect_completion(self) -> None:
        """Wait for `on_complete`, with no element before it that the check has not taken."""
        surplus = self.taken + 1
        self.env.happens(lambda: self.ends or len(self.elements) >= surplus)
        self.env.check(
            len(self.elements) < surplus, f"an element more than expected: {shown(self.elements[self.taken :][:1])}"
        )
        self.env.check(self.completions, f"no on_complete within {self.env.settings.default_timeout:g} s")

    def expect_error(self, kind: type[BaseException] = BaseException) -> BaseException:
        """Wait for `on_error` with an exception of this `kind`."""
        self.env.happens(lambda: self.ends)
        self.env.check(self.errors, f"no on_error within {self.env.settings.default_timeout:g} s{self._end()}")
        error = self.errors[0]
        self.env.check(isinstance(error, kind), f"on_error({shown(error)}), where a {kind.__name__} is due")
        return error

    def expect_none(self, what: str = "nothing was due") -> None:
        """No signal comes for `default_no_signals_timeout`, and none has come that the check has not taken."""
        more = self.elements[self.taken :] or self.env.silence(lambda: self.count)
        surplus = self.elements[self.taken :]
        came = f"on_next({shown(surplus[0])})" if surplus else "a signal"
        self.env.check(not more, f"{what}, and {came} came")

    def _missing(self, n: int) -> str:
        return "an element was due" if n == 1 else f"{n} elements were due"

    def _end(self) -> str:
        if self.errors:
            return f", then on_error({shown(self.errors[0])})"
        return ", then on_complete" if self.completions else ""


class SerialSubscriber(ManualSubscriber[T]):
    """Finds signals that overlap (1.3)."""

    def __init__(self, env: TestEnvironment, **how: Any) -> None:
        super().__init__(env, **how)
        self.inside: list[int] = []  # the trial's lock; the threads that are inside a signal
        self.threads: set[int] = set()  # the trial's lock; those that were

    def _alone(self, signal: str, receive: Callable[..., None], *arguments: Any) -> None:
        thread = threading.get_ident()
        with self.env.lock:
            others = [item for item in self.inside if item != thread]
            self.inside.append(thread)
            self.threads.add(thread)
            if others:
                self.env.fault(f"{signal} began on one thread while a signal was running on another")
        receive(*arguments)
        with self.env.lock:
            self.inside.remove(thread)

    def on_subscribe(self, subscription: Any, /) -> None:
        """As above; it is a fault while another signal runs (1.3)."""
        self._alone("on_subscribe", super().on_subscribe, subscription)

    def on_next(self, element: T, /) -> None:
        """As above; it is a fault while another signal runs (1.3)."""
        self._alone("on_next", super().on_next, element)

    def on_error(self, error: BaseException, /) -> None:
        """As above; it is a fault while another signal runs (1.3)."""
        self._alone("on_error", super().on_error, error)

    def on_complete(self) -> None:
        """As above; it is a fault while another signal runs (1.3)."""
        self._alone("on_complete", super().on_complete)


def ask(subscriber: ManualSubscriber[Any], n: int) -> None:
    """`request(n)`, from inside a signal or from another thread than the check's."""
    subscription = subscriber.subscription
    if subscription is None:
        return
    env = subscriber.env
    with env.lock:
        env.note(f"{subscriber.name}: request({n}) ->")
        subscriber.demand = min(subscriber.demand + n, MAX_DEMAND)
    with env.calling(f"request({n})"):
        subscription.request(n)
