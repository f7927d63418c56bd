"""The checks of a publisher that the kit of the JVM leaves open, or can't see."""

from __future__ import annotations

import functools
import math
import sys
import threading
import time
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any, Generic, TypeVar

from reactive_runtime._spec import MAX_DEMAND, Publisher, Subscription
from reactive_runtime.tck._factories import MIN_ELEMENTS, STEPS, PublisherFactory
from reactive_runtime.tck._publisher.probes import ManualSubscriber, at_its_turn
from reactive_runtime.tck._running.environment import LONG_ENOUGH, TURN, TestEnvironment, started
from reactive_runtime.tck._running.failures import shown
from reactive_runtime.tck._running.preemption import NEVER, HeldCall
from reactive_runtime.tck._verification import check

__all__ = ["ExtraPublisherChecks"]

T = TypeVar("T")

LONG = 5_000
"""Elements of a stream that is long: longer than the batches in which publishers work. No check looks at more."""

MANY = 1_000
"""Elements of a stream that are requested one by one."""

SUBSCRIBERS = 100
"""The number of subscribers that a publisher gets, one after the other."""

FEWEST_SUBSCRIBERS = 10
"""The least number for a slow publisher."""

TURNS = 2
"""On a busy machine a thread may have no turn in so many turns of the kit."""

LONGEST_RACE = 30.0
"""Seconds after which a race ends: a request that waits in a loop has steps without end. After half of them the race
leaves out more and more steps, so that it reaches the last steps of a long request."""

IN_VAIN = 2
"""After waits in vain in so many races, the kit knows them to be in vain: in one race a thread may have been late."""


class ExtraPublisherChecks(PublisherFactory[T]):
    """The checks whose names begin with `extra_`."""

    @check("1.4", plain=3)
    def extra_spec104_must_signal_on_error_when_a_stream_fails_midway(self, env: TestEnvironment) -> None:
        """A stream that fails after three elements signals `on_error`, after three at most, when they have returned."""
        publisher = self._publisher_failing_after(env, 3)
        subscriber = self._subscribe(env, publisher, may_fail=True, then=self._lingers(env))
        subscriber.request(10)
        subscriber.expect_failure_after(3)

    @check("1.6")
    def extra_spec106_must_consider_subscription_cancelled_after_on_complete(self, env: TestEnvironment) -> None:
        """After `on_complete`, requests and a cancel have no effect, and the subscriber can be collected."""
        self._cancelled_at_the_end(env, self._publisher(env, 1, completes=True), "1.5")

    @check("1.6")
    def extra_spec106_must_consider_subscription_cancelled_after_on_error(self, env: TestEnvironment) -> None:
        """After `on_error`, requests and a cancel have no effect, and the subscriber can be collected."""
        self._cancelled_at_the_end(env, self._failed_publisher(env), "1.4")

    def _cancelled_at_the_end(self, env: TestEnvironment, publisher: Publisher[T], rule: str) -> None:
        reference = self._ended_and_asked_again(env, publisher, rule)
        # Until then the subscriber finds each signal after its end (1.7), and later none can come: no silence needed.
        env.collected(reference, f"{shown(publisher)} still refers to the subscriber of an ended stream")

    def _ended_and_asked_again(self, env: TestEnvironment, publisher: Publisher[T], rule: str) -> weakref.ref[Any]:
        """`rule` demands the end."""
        subscriber = self._subscribe(env, publisher, may_fail=True)
        if not subscriber.ends:
            subscriber.request(10)
        env.expect(subscriber.has_ended, "the stream did not end", rule)
        subscriber.request(1)
        subscriber.request(-1)
        subscriber.cancel()
        subscriber.request(1)
        return weakref.ref(subscriber)

    @check("1.7")
    def extra_spec107_must_not_emit_further_signals_once_a_failed_publisher_has_signalled_on_error(
        self, env: TestEnvironment
    ) -> None:
        """After the `on_error` of a publisher that fails at once, requests are answered with no signal."""
        subscriber = self._subscribe(env, self._failed_publisher(env), may_fail=True)
        if not subscriber.ends:
            subscriber.request(10)
        self._nothing_after_on_error(env, subscriber)

    @check("1.7")
    def extra_spec107_must_not_emit_further_signals_once_a_stream_has_failed_midway(self, env: TestEnvironment) -> None:
        """After the `on_error` of a stream that fails after three elements, requests are answered with no signal."""
        subscriber = self._subscribe(env, self._publisher_failing_after(env, 3), may_fail=True)
        subscriber.request(10)
        self._nothing_after_on_error(env, subscriber)

    @check("1.7")
    def extra_spec107_must_not_emit_further_signals_once_an_invalid_request_was_answered(
        self, env: TestEnvironment
    ) -> None:
        """After the `on_error` that answers `request(0)`, requests are answered with no signal."""
        subscriber = self._subscribe(env, self._publisher(env, 10), may_fail=True)
        subscriber.request(0)
        subscriber.expect_error(rule="3.9")
        self._nothing_after_on_error(env, subscriber)

    def _nothing_after_on_error(self, env: TestEnvironment, subscriber: ManualSubscriber[T]) -> None:
        subscriber.expect_error()
        for _ in range(2):
            subscriber.request(10)
        env.silence(lambda: subscriber.count)
        env.verify()  # the subscriber itself finds what comes after its end

    @check("1.8", plain=5)
    def extra_spec108_cancelled_subscription_must_stop_being_signalled_whatever_was_requested(
        self, env: TestEnvironment
    ) -> None:
        """After a cancel inside the fifth `on_next` a long stream, all of which was requested, stops before its end."""
        publisher = self._publisher(env, LONG)
        subscriber = self._subscribe(env, publisher, turn=5, then=at_its_turn(ManualSubscriber.quit))
        subscriber.request(MAX_DEMAND)
        subscriber.next_elements(5)
        while env.silence(lambda: subscriber.count):
            pass
        late = subscriber.count - 5
        env.check(
            len(subscriber.elements) < LONG,
            f"cancelled from inside the fifth on_next, it signalled all {LONG} elements, {late} after the cancel",
        )

    @check("1.8")
    def extra_optional_spec108_a_cancel_inside_the_last_on_next_should_be_the_end(self, env: TestEnvironment) -> None:
        """After a cancel inside the last `on_next` no terminal signal comes."""
        publisher = self._publisher(env, 3, completes=True)
        subscriber = self._subscribe(env, publisher, turn=3, then=at_its_turn(ManualSubscriber.quit))
        subscriber.request(10)
        subscriber.next_elements(3)
        env.silence(lambda: subscriber.ends)
        env.check(not subscriber.ends, "a terminal signal came after a cancel from inside the last on_next")

    @check("1.10", plain=1)
    def extra_spec110_subscribe_must_keep_its_rules_however_often_it_is_called(self, env: TestEnvironment) -> None:
        """Each of a hundred subscribers, one after the other, gets an element, an end or a refusal.

        Of a slow publisher it takes as many subscribers as come in two seconds, ten at least.
        """
        publisher = self._publisher(env, 1)
        until = time.monotonic() + LONG_ENOUGH
        for number in range(1, SUBSCRIBERS + 1):
            if number > FEWEST_SUBSCRIBERS and time.monotonic() > until:
                return
            subscriber = self._subscribe(env, publisher, may_fail=True)
            if not subscriber.ends:
                subscriber.request(1)
            seen = f"subscriber {number} got neither an element nor an end nor a refusal"
            env.expect(subscriber.was_signalled, seen)
            subscriber.cancel()

    @check("1.10", plain=1)
    def extra_spec110_the_same_subscriber_twice_must_not_break_its_first_subscription(
        self, env: TestEnvironment
    ) -> None:
        """A subscriber that subscribes twice gets from its first subscription what it requests, or an end."""
        publisher = self._publisher(env, 2)
        subscriber = _TwiceSubscriber[T](env, may_fail=True)
        self._connect(env, publisher, subscriber)
        env.call("subscribe(subscriber), a second time", publisher.subscribe, subscriber, rule="1.9")
        env.happens(lambda: subscriber.subscriptions == 2 or subscriber.ends)
        if not subscriber.ends:
            subscriber.request(2)
        served = "the first subscription gave neither elements nor an end"
        env.expect(lambda: len(subscriber.elements) == 2 or subscriber.ends, served)

    @check("1.5", plain=3)
    def extra_spec105_a_long_stream_must_give_each_of_its_elements(self, env: TestEnvironment) -> None:
        """A thousand elements are requested one by one, or as many as come in two seconds: they come, and the end."""
        most = self.max_elements_from_publisher
        elements = max(1, min(self._as_many(MANY), most))
        subscriber = self._subscribe(env, self._publisher(env, elements, completes=True))
        until = time.monotonic() + LONG_ENOUGH
        for _ in range(elements):
            subscriber.request_next()
            if time.monotonic() > until:
                return
        subscriber.request_end()

    @check("3.4", plain=1)
    def extra_spec304_request_must_return_while_the_subscriber_is_busy_elsewhere(self, env: TestEnvironment) -> None:
        """A request returns while `on_next` runs on another thread."""
        self._returns_while_busy(env, "request", lambda subscriber: subscriber.ask(1))

    @check("3.5", plain=1)
    def extra_spec305_cancel_must_return_while_the_subscriber_is_busy_elsewhere(self, env: TestEnvironment) -> None:
        """A cancel returns while `on_next` runs on another thread."""
        self._returns_while_busy(env, "cancel", lambda subscriber: subscriber.quit())

    @check("3.4", plain=1)
    def extra_spec304_a_request_of_one_subscriber_must_return_while_another_is_busy(self, env: TestEnvironment) -> None:
        """A request of the second subscriber returns while the `on_next` of the first one runs on another thread."""
        self._returns_while_busy(env, "request", lambda subscriber: subscriber.ask(1), of_another=True)

    def _returns_while_busy(
        self, env: TestEnvironment, name: str, call: Callable[[Any], object], *, of_another: bool = False
    ) -> None:
        """While one thread is inside `on_next`, another one calls; for the same subscriber, or for another."""
        if name == "request":
            self._needs_concurrent_requests(env)
        gate, returned = threading.Event(), threading.Event()
        publisher = self._publisher(env, 3)
        if of_another:
            self._needs_two_subscribers_at_once(env)
        subscriber = self._subscribe(env, publisher, then=_waiting_for(gate))
        caller = self._subscribe(env, publisher) if of_another else subscriber
        first = started(functools.partial(subscriber.ask, 1), "tck-first")

        def second() -> None:
            call(caller)
            returned.set()

        try:
            came = env.happens(lambda: subscriber.elements)
            if of_another and not came:
                env.skip("the publisher waits for a request of each of its subscribers")
            env.due(came, "an element was due", "3.8")
            started(second, "tck-second")
            limit = min(env.settings.default_timeout, env.settings.call_timeout / 2)  # before it counts as hanging
            if not returned.wait(limit):
                env.fail(f"{name} did not return within {limit:g} s, while on_next was running on another thread")
        finally:
            gate.set()
        first.join(env.settings.call_timeout)

    @check("3.8", plain=4)
    def extra_spec308_no_demand_may_be_lost_between_two_requests(self, env: TestEnvironment) -> None:
        """The race of the textbook: one thread finds the drain at work and is about to add, the other leaves it."""

        def race(item: _Race[T]) -> bool:
            item.first.start()
            item.env.happens(lambda: item.subscriber.elements or item.first.wrong)
            item.kept()
            item.env.check(item.subscriber.elements, "an element was due")
            item.held.start()
            item.wait(item.held, lambda: item.held.reached or item.held.ended)
            item.gate.set()
            item.past(lambda: item.first.ended)
            item.wait(item.first, lambda: item.first.thread in item.subscriber.threads or item.delivered())
            return True

        self._race(env, race, 2, "request(1) came while request(2) was being served")

    @check("3.8", plain=2)
    def extra_spec308_no_demand_may_be_lost_where_a_request_leaves(self, env: TestEnvironment) -> None:
        """One request serves its element, and finds no more to do; another one comes before it has left.

        The stream has two elements: they come, and one end.
        """

        def race(item: _Race[T]) -> bool:
            item.gate.set()
            item.held.start()
            item.env.happens(lambda: item.held.reached or item.held.ended, env.settings.call_timeout)
            reached = item.held.reached
            item.first.start()
            item.past(lambda: item.first.ended)
            return reached

        self._race(env, race, 1, "request(1) came while another request(1) was leaving", 2)

    @check("1.3", plain=4)
    def extra_spec103_two_requests_at_once_must_not_signal_at_once(self, env: TestEnvironment) -> None:
        """Both find the drain idle: one is held before it can say so, the other goes to work."""

        def race(item: _Race[T]) -> bool:
            item.held.start()
            item.env.happens(lambda: item.held.reached or item.settled(item.held), env.settings.call_timeout)
            reached = item.held.reached  # else it is inside a signal, and its race for the drain is over
            item.first.start()
            item.past(lambda: item.settled(item.first))
            item.held.release()
            item.wait(item.first, lambda: item.settled(item.first))
            item.wait(item.held, lambda: item.settled(item.held))
            item.gate.set()
            return reached

        self._race(env, race, 1, "two threads called request(1) at once")

    def _race(
        self, env: TestEnvironment, race: Callable[[_Race[T]], bool], first: int, what: str, elements: int = 6
    ) -> None:
        """Hold a request(1) at each of its steps in turn while a request(`first`) runs; all elements have to come.

        `race` returns whether to go on. A request that it never held has no further steps. With a slow publisher the
        kit tries every n-th step, so that the race takes about `LONG_ENOUGH` seconds.
        """
        self._needs_concurrent_requests(env)
        cost = self._cost(first + 1)
        # Checks that run side by side may have counts of their own: then they only learn less from each other.
        in_vain = self._once("_in_vain", InVain(), lambda _: InVain())
        step, stride, more, patience = 0, self._stride(env, cost), True, _Patience(env, cost, in_vain)
        begin = time.monotonic()
        while more and (took := time.monotonic() - begin) < LONGEST_RACE:
            if took > LONGEST_RACE / 2:
                stride *= 2
            gate = threading.Event()
            subscriber = ManualSubscriber[T](env, then=_waiting_for(gate))
            self._connect(env, self._publisher(env, elements), subscriber)
            patience.next()
            with _Race(patience, subscriber, gate, step, first) as item:
                more = race(item)
                item.release()
                env.happens(item.returned, env.settings.call_timeout)
            returned = item.held.ended and item.first.ended
            env.check(returned, f"request(1) did not return; one was held at step {step}", "3.16")
            item.kept()
            env.happens(item.delivered)
            came = len(subscriber.elements)
            env.due(
                came == item.due,
                f"{what}: {came} of {item.due} elements came; the request(1) was held at its step {step}",
                subscriber.stalled(item.due),
            )
            subscriber.cancel()
            more = more and (item.held.reached or item.held.at > step)
            step += stride

    def _cost(self, elements: int) -> float:
        """Seconds of a subscription and so many elements."""
        first, each = self._paces()
        return first + elements * each

    def _stride(self, env: TestEnvironment, cost: float) -> int:
        """The distance of the steps to try, if each try takes so many seconds."""
        if cost * STEPS < LONG_ENOUGH:
            return 1
        subscriber = self._subscribe(env, self._publisher(env, 6))
        subscriber.demand = 1
        whole = HeldCall(functools.partial(_held(subscriber).request, 1), sys.maxsize, env.wake, "tck-held")
        whole.start()  # never held: it counts its steps
        try:
            env.happens(lambda: whole.ended, env.settings.call_timeout)
        finally:
            whole.leave()
        subscriber.cancel()
        return max(1, math.ceil(whole.steps * cost / LONG_ENOUGH))

    @check("3.17", plain=5)
    def extra_spec317_a_request_of_the_most_must_add_up_with_others(self, env: TestEnvironment) -> None:
        """MAX_DEMAND is requested while demand is left, before a request of 1, after one, and less 1: all comes.

        So it does after requests whose lower 32 bits are 0, or the sign of an int of 32 bits.
        """
        for first, *others in (
            (2, MAX_DEMAND),
            (MAX_DEMAND, 1),
            (1, MAX_DEMAND, 1),
            (MAX_DEMAND - 1,),
            (2**32,),
            (2**31,),
        ):

            def then(subscriber: ManualSubscriber[T], element: T, others: list[int] = others) -> None:
                if len(subscriber.elements) == 1:
                    for n in others:
                        subscriber.ask(n)

            subscriber = self._subscribe(env, self._publisher(env, 5, completes=True), then=then)
            subscriber.request(first)
            subscriber.arrive(5)
            env.due(len(subscriber.elements) == 5, f"{len(subscriber.elements)} of 5 elements came")
            subscriber.taken = 5
            subscriber.expect_completion()

    @check("3.17", plain=10)
    def extra_spec317_demand_beyond_the_most_must_not_wrap(self, env: TestEnvironment) -> None:
        """Two requests of MAX_DEMAND that meet: a sum of 64 bits turns negative, and the elements stop."""

        def twice(subscriber: ManualSubscriber[T], element: T) -> None:
            if len(subscriber.elements) == 1:
                subscriber.ask(MAX_DEMAND)
                subscriber.ask(MAX_DEMAND)
            elif len(subscriber.elements) == 10:
                subscriber.quit()

        subscriber = self._subscribe(env, self._publisher(env, 10), then=twice)
        subscriber.request(1)
        subscriber.arrive(10)
        env.due(
            len(subscriber.elements) >= 10,
            f"after request(1) and twice request(MAX_DEMAND), {len(subscriber.elements)} of 10 elements came",
        )

    @check("1.1", plain=20)
    def extra_spec101_a_large_request_must_be_met_to_the_element(self, env: TestEnvironment) -> None:
        """Publishers work in batches; at the end of one it is easy to give an element too many.

        Of a slow publisher it requests as many elements as come in a second.
        """
        long = LONG
        subscriber = self._many(env, long, LONG_ENOUGH / 2)
        if (came := subscriber.cancelled_after) is not None:  # it is slow: so many as came are enough
            long = max(MIN_ELEMENTS, min(came, LONG))
            subscriber = self._many(env, long)
        subscriber.next_elements(long - 2)
        subscriber.expect_none_now(f"{long - 2} elements were requested, and came")  # one too many is so below, too
        subscriber.request(1)
        subscriber.next()
        subscriber.expect_none("one more element was requested, and came")

    def _many(self, env: TestEnvironment, elements: int, seconds: float = math.inf) -> ManualSubscriber[T]:
        """A subscriber that has requested all but two of so many; it cancels where they take more `seconds`."""
        until = time.monotonic() + seconds
        subscriber = self._subscribe(
            env,
            self._publisher(env, elements),
            then=lambda item, element: item.quit() if time.monotonic() > until else None,
        )
        subscriber.request(elements - 2)
        subscriber.arrive(elements - 2)
        return subscriber


InVain = dict[tuple[str, CodeType | None], int]
"""The number of races with a wait in vain, by the thread waited for, and the function in which the other was held. All
races of a verification share it, also side by side: each reads and writes in one operation; a lost count costs one
more wait."""


class _Patience:
    """How long a race waits for a thread.

    A thread that does not move waits for a lock of the other one, or is slow, or has had no turn yet on a busy machine.
    So the race waits as long as the thread may take, and a few turns more. After waits in vain in two races, while the
    other thread was held in one function, it waits only briefly whenever the other one is held there again.
    """

    def __init__(self, env: TestEnvironment, seconds: float, in_vain: InVain) -> None:
        self._env = env
        self._most = seconds + TURNS * TURN
        self._in_vain = in_vain
        # The thread that races owns these:
        self._lately: set[tuple[str, CodeType | None]] = set()  # the cases with a wait in vain in this race
        self._locked = range(0)  # the steps at which `first` waited for a lock of the one that is held
        self._last, self._left = 0, 0  # the last step at which it is known to wait, the first at which it does not
        self._sure = False  # two races say so

    def wait(self, call: HeldCall, held: HeldCall, condition: Callable[[], object]) -> bool:
        """Wait for `condition`, a move of `call`; return whether it holds. `held` may be held, or be the same call."""
        if self._env.happens(condition, self._env.settings.default_poll_timeout):
            return True
        if call.ended:  # a pool does the rest, or waits for the held call
            case: tuple[str, CodeType | None] = ("ended", None)
        else:
            case = ("held" if call is held else "first", held.inside)
        known = self._in_vain.get(case, 0)
        if known >= IN_VAIN or case in self._lately:
            return False
        came = self._env.happens(condition, self._most)
        if came:
            self._in_vain[case] = 0
        elif call.begun:
            self._in_vain[case] = known + 1
            self._lately.add(case)
        return came

    def next(self) -> None:
        """The next race begins."""
        self._lately.clear()

    def left(self, begin: int, last: int, at: int) -> None:
        """Learn that `first` waited for the call held at steps `begin` to `last`, and no more at step `at`."""
        low, high = max(last, self._last), min(at, self._left)
        start = self._locked.start
        self._sure = begin in self._locked and low < high
        if not self._sure:  # another lock, or a thread was late, in this race or in the one before
            start, low, high = begin, last, at
        self._locked, self._last, self._left = range(start, low + 1), low, high

    def ahead(self, step: int) -> int:
        """The steps after which a call held at this step releases the lock; 0 if the kit does not know them."""
        return self._left - step if self._sure and step in self._locked else 0


class _Race(Generic[T]):
    """Two requests of two threads, one of them held at a step, in a `with` block. The gate holds `on_next`."""

    def __init__(
        self, patience: _Patience, subscriber: ManualSubscriber[T], gate: threading.Event, step: int, first: int
    ) -> None:
        request = _held(subscriber).request
        self.asks = first
        self.due = subscriber.demand = first + 1
        self.env = subscriber.env
        self.patience = patience
        self.subscriber = subscriber
        self.gate = gate
        self.held = HeldCall(functools.partial(request, 1), step, self.env.wake, "tck-held")
        self.first = HeldCall(functools.partial(request, first), NEVER, self.env.wake, "tck-first")

    def __enter__(self) -> _Race[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self.held.leave()

    def release(self) -> None:
        """Hold neither a request nor a signal any more."""
        self.gate.set()
        self.held.release()

    def wait(self, call: HeldCall, condition: Callable[[], object]) -> bool:
        """Wait for `condition`, a move of `call`; return whether it holds."""
        return self.patience.wait(call, self.held, condition)

    def past(self, settled: Callable[[], object]) -> None:
        """Wait until `first` has settled. If it waits for a lock of the held call, move that one on to release it.

        The held call goes on by one step, two, four …, so that only one of them moves at a time: then the kit finds
        the same each time.
        """
        until = time.monotonic() + LONGEST_RACE / 4
        begin = last = self.held.at
        steps = 1
        while not (free := self.wait(self.first, settled)) and self.held.reached and time.monotonic() < until:
            last = self.held.at
            self.held.advance(self.patience.ahead(last) or steps)
            steps *= 2
            self.wait(self.held, lambda: self.held.reached or self.settled(self.held))
        if free and self.held.at > begin:
            self.patience.left(begin, last, self.held.at)

    def kept(self) -> None:
        """Fail if a request did not return normally: the elements that were due do not come then."""
        for call, n in ((self.first, self.asks), (self.held, 1)):
            if call.wrong is not None:
                raise self.env.failure(f"request({n}) {call.wrong}", "3.16", observed=True)

    def settled(self, call: HeldCall) -> bool:
        """Whether it has ended, or stays inside a signal."""
        return call.ended or call.thread in self.subscriber.inside

    def returned(self) -> bool:
        """Whether both requests have returned."""
        return self.held.ended and self.first.ended

    def delivered(self) -> bool:
        """Whether all elements that were requested have come."""
        return len(self.subscriber.elements) >= self.due


class _TwiceSubscriber(ManualSubscriber[T]):
    """Subscribes twice on purpose, and cancels the second subscription (2.5)."""

    def on_subscribe(self, subscription: Any, /) -> None:
        with self.env.lock:
            first = self.subscription is None
            self.subscriptions += 0 if first else 1
        if first:
            super().on_subscribe(subscription)
        else:
            self.env.note(f"{self.name}: on_subscribe, again")
            if (second := self._usable(subscription)) is not None:
                self.env.call_inside("cancel()", second.cancel, rule="3.15")


def _waiting_for(gate: threading.Event) -> Callable[[ManualSubscriber[Any], Any], object]:
    """An `on_next` that does not return before the gate is open."""
    return lambda subscriber, element: gate.wait(30)


def _held(subscriber: ManualSubscriber[Any]) -> Subscription:
    assert subscriber.subscription is not None
    return subscriber.subscription
