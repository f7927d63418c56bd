"""The subscribers of the kit, which a check drives by hand."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from reactive_runtime._spec import MAX_DEMAND, Subscription
from reactive_runtime.tck._running.environment import TestEnvironment
from reactive_runtime.tck._running.failures import Over, shown

__all__ = ["ManualSubscriber", "at_its_turn"]

T = TypeVar("T")

FLOOD = 2_000
"""After so many elements beyond the demand, or the length of the stream, the kit ends their thread."""

LONGEST_PAUSE = 0.005
"""The most seconds that a subscriber which has cancelled takes for an element."""

SHORTEST_PAUSE = 0.001
"""Seconds of the shortest sleep: the system needs most of the time of a shorter one for itself."""

FLOOD_AFTER_CANCEL = 100_000
"""After so many elements after a cancel, the kit ends their thread; after `FLOOD` if a rule was broken."""


class ManualSubscriber(Generic[T]):
    """A subscriber that a check drives by hand. The lock of the trial owns its fields.

    In every check it finds: an element without demand (1.1), signals that overlap (1.3), on_next inside
    on_next (3.3), a second on_subscribe (2.12), None for an element (2.13), a signal before on_subscribe (1.9) or after
    the end (1.7). An `on_error` that the check does not expect is a fault too.

    It can't distinguish the signals of two subscriptions, each of which may overlap with the other, or follow its end:
    after a second on_subscribe it judges neither 1.3 nor 1.7.
    """

    def __init__(
        self,
        env: TestEnvironment,
        *,
        then: Callable[[ManualSubscriber[T], T], object] | None = None,
        subscribed: Callable[[ManualSubscriber[T]], object] | None = None,
        may_fail: bool = False,
        turn: int = 0,
    ) -> None:
        """`then` runs inside `on_next`, `subscribed` inside `on_subscribe`; with `may_fail` on_error is no fault.

        `turn` is the number of the element at which `then` acts, in the checks that need it.
        """
        self.env = env
        self.name: str = env.name("subscriber")
        self.then = then
        self.subscribed = subscribed
        self.may_fail = may_fail
        self.turn = turn
        self.subscription: Subscription | None = None
        self.subscriptions: int = 0
        self.ready: bool = False  # on_subscribe, with `subscribed` in it, has returned
        self.elements: list[T] = []
        self.taken: int = 0  # the number of elements that the check has looked at
        self.errors: list[BaseException] = []
        self.completions: int = 0
        self.demand: int = 0  # the sum of all requests
        self.cancelled_after: int | None = None  # the number of elements at the cancel
        self.paused: float = 0.0  # seconds that it has still to wait since
        self.asked_after_cancel: bool = False  # whether it has requested since
        self.inside: list[int] = []  # the threads that are inside a signal, once for each
        self.deep: list[int] = []  # the threads inside on_next
        self.threads: set[int] = set()  # the threads that have signalled
        env.follow(self)

    # -- signals: any thread -----------------------------------------------------------------------------------

    def on_subscribe(self, subscription: Subscription | None, /) -> None:
        """Keep the first subscription; None, or a second one, is a fault (1.9, 2.12)."""
        with self._signal(f"on_subscribe({type(subscription).__name__})", "on_subscribe"):
            usable = self._usable(subscription)
            with self.env.lock:
                self.subscriptions += 1
                if self.subscriptions > FLOOD:
                    raise Over
                again = self.subscription is not None
                if not again:
                    self.subscription = usable
                self.env.wake()
            if usable is not None and again:
                self.env.fault("on_subscribe came a second time", "2.12")
                self.env.call_inside("cancel()", usable.cancel, rule="3.15")
            elif usable is not None and self.subscribed is not None:
                self.subscribed(self)
        with self.env.lock:
            self.ready = True
            self.env.wake()

    def _usable(self, subscription: Subscription | None) -> Subscription | None:
        """Return the subscription if it has `request` and `cancel`; otherwise note a fault (1.9)."""
        missing = [name for name in ("request", "cancel") if not callable(getattr(subscription, name, None))]
        if not missing:
            return subscription
        has = "" if subscription is None else f", and this has no {' and no '.join(missing)}"
        self.env.fault(f"on_subscribe({shown(subscription)}): a subscription is needed{has}", "1.9")
        return None

    def on_next(self, element: T, /) -> None:
        """Keep the element; one without demand, None, or one before `on_subscribe` or after the end, is a fault."""
        with self._signal(f"on_next({shown(element)})", "on_next"):
            with self.env.lock:
                self._not_too_deep()
                if element is None:
                    self.env.fault("on_next(None): None is not an element", "2.13")
                if self.ends and self.subscriptions < 2:
                    self.env.fault("on_next came after a terminal signal", "1.7")
                self.elements.append(element)
                self._only_what_was_requested()
                self._not_without_end()
                self.env.wake()
            try:
                self._give_a_cancel_time()
                if self.then is not None:
                    self.then(self, element)
            finally:
                with self.env.lock:
                    self.deep.remove(threading.get_ident())

    def _give_a_cancel_time(self) -> None:
        """Slow down a stream after a cancel: it hears the cancel eventually (3.12), within `default_timeout`.

        Pauses that are too short to sleep add up. Without the lock: an element later is soon enough.
        """
        if self.cancelled_after is not None and not self.env.over:
            self.paused += min(LONGEST_PAUSE, self.env.settings.default_timeout / max(self.env.elements, 1))
            if self.paused >= SHORTEST_PAUSE:
                pause, self.paused = self.paused, 0.0
                time.sleep(pause)

    def _not_too_deep(self) -> None:
        """Find on_next inside on_next (3.3); on_next inside on_subscribe is no recursion."""
        thread = threading.get_ident()
        self.deep.append(thread)
        depth = self.deep.count(thread)
        if depth > self.env.depth:
            self.env.fault(
                f"on_next ran inside on_next, {depth} deep on one thread; the bound is {self.env.depth}", "3.3"
            )

    @contextlib.contextmanager
    def _signal(self, text: str, name: str) -> Iterator[None]:
        """Note a signal; it has to come after on_subscribe, and alone."""
        thread = threading.get_ident()
        with self.env.lock:
            self.env.note(f"{self.name}: {text}")
            if name != "on_subscribe" and not self.subscriptions:
                self.env.fault(f"{name} came before on_subscribe", "1.9")
            if self.subscriptions < 2 and any(item != thread for item in self.inside):
                self.env.fault(f"{name} began on one thread while a signal was running on another", "1.3")
            self.inside.append(thread)
            self.threads.add(thread)
        try:
            yield
        finally:
            with self.env.lock:
                self.inside.remove(thread)
                self.env.wake()

    def _only_what_was_requested(self) -> None:
        if len(self.elements) > self.demand:
            came = f"{len(self.elements)} element{'s' if len(self.elements) > 1 else ''} came"
            self.env.fault(f"{came}, and {self.demand} {'was' if self.demand == 1 else 'were'} requested", "1.1")

    def _not_without_end(self) -> None:
        """End the thread of a publisher that signals without end; under the lock."""
        came, elements = len(self.elements), self.env.elements
        after_cancel = FLOOD if self.env.decided else FLOOD_AFTER_CANCEL
        if came - self.demand > FLOOD:
            why, rule = f"{came - self.demand} elements more than were requested, and no end", "1.1"
        elif came - elements > FLOOD:
            why, rule = f"it was asked for a stream of {elements} elements, and {came} came, and no end", "1.5"
        elif self.cancelled_after is not None and came - self.cancelled_after > after_cancel:
            why, rule = f"{came - self.cancelled_after} elements after cancel, and no end", "1.8"
        else:
            return
        self.env.fault(why, rule)
        raise Over

    def on_error(self, error: BaseException, /) -> None:
        """Keep the error; one before `on_subscribe`, after an end, or not expected, is a fault (1.9, 1.7)."""
        text = f"on_error({shown(error)})"  # before the lock: its repr is foreign
        with self._signal(text, "on_error"), self.env.lock:
            self.errors.append(error)
            self._only_one_end()
            if not self.may_fail:
                self.env.fault(f"an unexpected {text}", self._broken_by_an_error(), must=False)
            self.env.wake()

    def _broken_by_an_error(self) -> str:
        """The rule that an unexpected `on_error` breaks."""
        if self.cancelled_after is not None:
            return "3.6" if self.asked_after_cancel else "1.8"  # after a request it may be an answer
        return "" if self.env.rule in ("1.11", "3.17") else "1.5"  # what these ask for may be refused by an error

    def on_complete(self) -> None:
        """Count it; before `on_subscribe`, or after an end, it is a fault (1.9, 1.7)."""
        with self._signal("on_complete()", "on_complete"), self.env.lock:
            self.completions += 1
            self._only_one_end()
            self.env.wake()

    def _only_one_end(self) -> None:
        if self.ends > 1 and self.subscriptions < 2:
            self.env.fault(f"terminal signal number {self.ends} came", "1.7")
        if self.ends > FLOOD:
            raise Over

    @property
    def ends(self) -> int:
        """The number of terminal signals."""
        return len(self.errors) + self.completions

    @property
    def count(self) -> int:
        """The number of signals, without on_subscribe."""
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
        self._requesting(n)
        self.env.call(f"request({n})", subscription.request, n, rule="3.16")

    def cancel(self) -> None:
        """Call `cancel()`."""
        subscription = self._held("cancel")
        self._cancelling()
        self.env.call("cancel()", subscription.cancel, rule="3.15")

    def ask(self, n: int) -> None:
        """Call `request(n)` inside a signal, or on another thread than the check's: an error is a fault."""
        if self.subscription is not None:
            self._requesting(n)
            self.env.call_inside(f"request({n})", self.subscription.request, n, rule="3.16")

    def quit(self) -> None:
        """Call `cancel()` inside a signal, or on another thread than the check's: an error is a fault."""
        if self.subscription is not None:
            self._cancelling()
            self.env.call_inside("cancel()", self.subscription.cancel, rule="3.15")

    def _requesting(self, n: int) -> None:
        with self.env.lock:
            self.env.note(f"{self.name}: request({n}) ->")
            self.demand = min(self.demand + max(n, 0), MAX_DEMAND)
            self.asked_after_cancel = self.cancelled_after is not None

    def _cancelling(self) -> None:
        with self.env.lock:
            self.env.note(f"{self.name}: cancel() ->")
            if self.cancelled_after is None:
                self.cancelled_after = len(self.elements)

    def leave(self) -> None:
        """Cancel a subscription that has not ended: the check is over."""
        if self.subscription is not None and not self.ends:
            try:
                with self.env.calling("cancel(), to clean up", "3.15"):
                    self.subscription.cancel()
            except Over:
                raise  # it did not end: try no other one
            except BaseException:
                return  # the check is over

    def _held(self, call: str) -> Subscription:
        if self.subscription is None:
            self.env.fail(f"there is no subscription to {call}: on_subscribe has not come", "1.9")
        return self.subscription

    def next(self) -> T:
        """Wait for one more element."""
        return self.next_elements(1)[0]

    def arrive(self, elements: int) -> bool:
        """Wait for so many elements in all, the end or a cancel; `default_timeout` for each element."""
        came = -1
        while len(self.elements) < elements and not self._is_over() and len(self.elements) > came:
            came = len(self.elements)
            self.env.happens(lambda came=came: len(self.elements) > came or self._is_over())  # type: ignore[misc]
        self.env.verify()
        return len(self.elements) >= elements or self.ends > 0

    def _is_over(self) -> bool:
        return self.ends > 0 or self.cancelled_after is not None

    def next_elements(self, n: int) -> list[T]:
        """Wait for `n` more elements, `default_timeout` for each."""
        begin, end = self.taken, self.taken + n
        self.arrive(end)
        seen = f"{self._missing(n)}; {len(self.elements)} of {end} elements came{self._end()}"
        self.env.due(len(self.elements) >= end, seen, self.stalled(end))
        self.taken = end
        return self.elements[begin:end]

    def stalled(self, elements: int) -> str:
        """The rule that a stream of so many elements breaks if it stops now: 3.8 with elements due, else 1.5."""
        return "1.5" if self.ends or len(self.elements) >= elements else "3.8"

    def request_next(self) -> T:
        """Request one element, and wait for it."""
        self.request(1)
        return self.next()

    def request_end(self) -> None:
        """Request once more, also after the end, and wait for `on_complete`."""
        self.request(1)
        self.expect_completion()

    def expect_completion(self) -> None:
        """Wait for `on_complete`; no element may come before it that the check has not taken."""
        surplus = self.taken + 1
        self.env.happens(lambda: self.ends or len(self.elements) >= surplus)
        self.env.due(
            len(self.elements) < surplus,
            f"an element more than expected: {shown(self.elements[self.taken :][:1])}",
            "1.5",
        )
        self.env.due(self.completions, f"no on_complete came{self._end()}", "1.5")

    def expect_error(self, kind: type[BaseException] = BaseException, rule: str = "1.4") -> BaseException:
        """Wait for `on_error` with an exception of this `kind`, which `rule` demands."""
        self.env.happens(lambda: self.ends)
        self.env.due(self.errors, f"no on_error came{self._end()}", rule)
        error = self.errors[0]
        self.env.check(isinstance(error, kind), f"on_error({shown(error)}), where a {kind.__name__} is due", rule)
        return error

    def expect_failure_after(self, elements: int) -> None:
        """Wait for `on_error`, after so many elements at most."""
        self.expect_error()
        came = len(self.elements)
        self.env.due(came <= elements, f"{came} elements came, and it fails after {elements}", "1.5")

    def expect_none(self, what: str = "nothing was due") -> None:
        """Fail if a signal comes within `default_no_signals_timeout`, or has come that the check has not taken."""
        more = self.elements[self.taken :] or self.env.silence(lambda: self.count)
        surplus = self.elements[self.taken :]
        came = f"on_next({shown(surplus[0])})" if surplus else "a signal"
        self.env.due(not more, f"{what}, and {came} came", self._surplus(surplus))

    def expect_none_now(self, what: str) -> None:
        """Fail if a signal has come that the check has not taken; the check has waited before."""
        surplus = self.elements[self.taken :]
        came = f"on_next({shown(surplus[0])})" if surplus else "a terminal signal"
        self.env.due(not surplus and not self.ends, f"{what}, and {came} came", self._surplus(surplus))

    def _surplus(self, elements: list[T]) -> str:
        """The rule that a surplus signal breaks: 1.5 for an early end, otherwise the check's own."""
        return "" if elements or self.cancelled_after is not None else "1.5"

    def _missing(self, n: int) -> str:
        return "an element was due" if n == 1 else f"{n} elements were due"

    def _end(self) -> str:
        if self.errors:
            return f", then on_error({shown(self.errors[0])})"
        return ", then on_complete" if self.completions else ""


def at_its_turn(act: Callable[[ManualSubscriber[Any]], object]) -> Callable[[ManualSubscriber[Any], object], object]:
    """The act of a subscriber inside the `on_next` of its turn."""
    return lambda subscriber, element: act(subscriber) if len(subscriber.elements) == subscriber.turn else None
