"""Is a publisher conformant? The 38 checks of the original kit, under their names, and fourteen of our own.

A check says what it does in the order it does it, and judges its own rule; what else is wrong on the way fails it
too, with the rule that it broke.
"""

from __future__ import annotations

import functools
import random
import threading
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from reactive_runtime.spec import MAX_DEMAND, Publisher, Subscription
from reactive_runtime.tck.preemption import HeldCall
from reactive_runtime.tck.probes import ManualSubscriber
from reactive_runtime.tck.trial import NotVerified, Trial, shown
from reactive_runtime.tck.verification import Verification, check, untested

__all__ = ["PublisherVerification"]

T = TypeVar("T")

LONG = 5_000
"""Elements of a stream that is long: longer than the batches in which publishers work."""


class PublisherVerification(Verification, Generic[T]):
    """Checks of a publisher. Subclass it in a test module, name the subclass `Test…`, and say how to make one."""

    max_elements_from_publisher: int = MAX_DEMAND - 1
    """How many elements `create_publisher` can be asked for; checks that need more are skipped.

    MAX_DEMAND says that the publisher never completes, and skips every check that needs `on_complete`.
    """

    bounded_depth_of_on_next_and_request_recursion: int = 1
    """How deep `request` → `on_next` → `request` may recurse (3.3)."""

    skip_stochastic_tests: bool = False
    """Skip what can only be tested by repetition."""

    requests_may_be_concurrent: bool = True
    """Whether `request` is thread-safe. The letter of 2.7 lets a publisher leave that to its subscribers."""

    STOCHASTIC_RUNS: ClassVar[int] = 100

    def create_publisher(self, elements: int) -> Publisher[T]:
        """A new publisher of exactly `elements` elements; of MAX_DEMAND: of a stream without end."""
        raise NotImplementedError(f"{type(self).__name__} has to define create_publisher(self, elements)")

    def create_failed_publisher(self) -> Publisher[T] | None:
        """A new publisher that gives `on_subscribe` and then `on_error`; None skips the checks that need one."""
        return None

    def create_publisher_failing_after(self, elements: int) -> Publisher[T] | None:
        """A new publisher of `elements` elements that then fails; None skips the checks that need one."""
        return None

    # -- setting up --------------------------------------------------------------------------------------------

    def _publisher(self, trial: Trial, elements: int, *, completes: bool = False) -> Publisher[T]:
        most = self.max_elements_from_publisher
        if elements > most:
            raise NotVerified(f"rule {trial.rule}: needs {elements} elements; max_elements_from_publisher is {most}")
        if completes and most == MAX_DEMAND:
            raise NotVerified(f"rule {trial.rule}: needs on_complete; max_elements_from_publisher says it never comes")
        trial.elements = elements
        return self._created(trial, f"create_publisher({elements})", self.create_publisher, elements)

    def _failed_publisher(self, trial: Trial) -> Publisher[T]:
        made = trial.call("create_failed_publisher()", self.create_failed_publisher)
        if made is None:
            raise NotVerified(f"rule {trial.rule}: create_failed_publisher returned None: there is none to test")
        return self._created(trial, "create_failed_publisher()", lambda: made)

    def _publisher_failing_after(self, trial: Trial, elements: int) -> Publisher[T]:
        made = trial.call(f"create_publisher_failing_after({elements})", self.create_publisher_failing_after, elements)
        if made is None:
            raise NotVerified(f"rule {trial.rule}: create_publisher_failing_after returned None: there is none to test")
        return self._created(trial, "create_publisher_failing_after()", lambda: made)

    def _created(self, trial: Trial, text: str, factory: Callable[..., Any], *arguments: int) -> Publisher[T]:
        publisher = trial.call(text, factory, *arguments)
        if publisher is None:
            trial.fail(f"{text} returned None, where a Publisher is needed")
        if not callable(getattr(publisher, "subscribe", None)):
            trial.fail(f"{text} returned {shown(publisher)}, which is no Publisher: it has no subscribe")
        made: Publisher[T] = publisher
        return made

    def _subscribe(self, trial: Trial, publisher: Publisher[T], **how: Any) -> ManualSubscriber[T]:
        """Subscribe one of ours, and wait for its `on_subscribe`."""
        subscriber = ManualSubscriber[T](trial, **how)
        self._connect(trial, publisher, subscriber)
        return subscriber

    def _connect(self, trial: Trial, publisher: Publisher[T], subscriber: ManualSubscriber[T]) -> None:
        trial.call("subscribe(subscriber)", publisher.subscribe, subscriber)
        trial.happens(lambda: subscriber.subscriptions)
        trial.check(subscriber.subscriptions, f"no on_subscribe within {trial.settings.default_timeout:g} s (1.9)")

    # -- the verification itself -------------------------------------------------------------------------------

    @check("1.5")
    def required_create_publisher_1_must_produce_a_stream_of_exactly_1_element(self, trial: Trial) -> None:
        self._exactly(trial, 1)

    @check("1.5")
    def required_create_publisher_3_must_produce_a_stream_of_exactly_3_elements(self, trial: Trial) -> None:
        self._exactly(trial, 3)

    def _exactly(self, trial: Trial, elements: int) -> None:
        subscriber = self._subscribe(trial, self._publisher(trial, elements, completes=True))
        for _ in range(elements):
            subscriber.request_next()
        subscriber.request_end()

    @check("1.5")
    def required_validate_max_elements_from_publisher(self, trial: Trial) -> None:
        most: Any = self.max_elements_from_publisher
        valid = isinstance(most, int) and not isinstance(most, bool) and 0 <= most <= MAX_DEMAND
        trial.check(valid, f"max_elements_from_publisher is {most!r}, and has to be an int from 0 to MAX_DEMAND")

    @check("3.3")
    def required_validate_bounded_depth_of_on_next_and_request_recursion(self, trial: Trial) -> None:
        depth: Any = self.bounded_depth_of_on_next_and_request_recursion
        valid = isinstance(depth, int) and not isinstance(depth, bool) and depth >= 1
        trial.check(valid, f"bounded_depth_of_on_next_and_request_recursion is {depth!r}, and has to be an int from 1")

    # -- 1: the publisher --------------------------------------------------------------------------------------

    @check("1.1")
    def required_spec101_subscription_request_must_result_in_the_correct_number_of_produced_elements(
        self, trial: Trial
    ) -> None:
        subscriber = self._subscribe(trial, self._publisher(trial, 5))
        subscriber.expect_none("nothing was requested yet")
        subscriber.request_next()
        subscriber.expect_none("one element was requested, and came")
        subscriber.request(1)
        subscriber.request(2)
        subscriber.next_elements(3)
        subscriber.expect_none("four elements were requested, and came")

    @check("1.2")
    def required_spec102_may_signal_less_than_requested_and_terminate_subscription(self, trial: Trial) -> None:
        subscriber = self._subscribe(trial, self._publisher(trial, 3, completes=True))
        subscriber.request(10)
        subscriber.next_elements(3)
        subscriber.expect_completion()

    @check("1.3")
    def stochastic_spec103_must_signal_on_methods_sequentially(self, trial: Trial) -> None:
        if self.skip_stochastic_tests:
            raise NotVerified("rule 1.3: skip_stochastic_tests is set")
        elements = 10
        for run in range(self.STOCHASTIC_RUNS):
            subscriber = _SerialSubscriber[T](trial)
            subscriber.subscribed = lambda it: _ask(it, 1)
            subscriber.then = lambda it, element: _ask(it, 1)
            self._connect(trial, self._publisher(trial, elements, completes=True), subscriber)
            trial.happens(subscriber.has_ended, elements * trial.settings.default_timeout)
            trial.check(
                subscriber.ends,
                f"run {run}: no end after {len(subscriber.elements)} of {elements} elements, one by one",
            )

    @check("1.4")
    def optional_spec104_must_signal_on_error_when_fails(self, trial: Trial) -> None:
        publisher = self._failed_publisher(trial)
        subscriber = self._subscribe(trial, publisher, may_fail=True)
        subscriber.expect_error()
        trial.silence(lambda: subscriber.count)
        trial.check(len(subscriber.errors) == 1, f"on_error came {len(subscriber.errors)} times (1.7)")

    @check("1.4")
    def extra_spec104_must_signal_on_error_when_a_stream_fails_midway(self, trial: Trial) -> None:
        subscriber = self._subscribe(trial, self._publisher_failing_after(trial, 3), may_fail=True)
        subscriber.request(10)
        subscriber.expect_error()
        trial.check(len(subscriber.elements) <= 3, f"{len(subscriber.elements)} elements came, and it fails after 3")

    @check("1.5")
    def required_spec105_must_signal_on_complete_when_finite_stream_terminates(self, trial: Trial) -> None:
        subscriber = self._subscribe(trial, self._publisher(trial, 3, completes=True))
        for _ in range(3):
            subscriber.request_next()
        subscriber.request_end()
        subscriber.expect_none("the stream has ended")

    @check("1.5")
    def optional_spec105_empty_stream_must_terminate_by_signalling_on_complete(self, trial: Trial) -> None:
        subscriber = self._subscribe(trial, self._publisher(trial, 0, completes=True))
        if not subscriber.ends:
            subscriber.request(1)
        subscriber.expect_completion()
        subscriber.expect_none("the stream has ended")

    untested_spec106_must_consider_subscription_cancelled_after_on_error_or_on_complete_has_been_called = untested(
        "1.6",
        "untested_spec106_must_consider_subscription_cancelled_after_on_error_or_on_complete_has_been_called",
        "the original leaves it open; here the two extra_spec106 checks make it",
    )

    @check("1.6")
    def extra_spec106_must_consider_subscription_cancelled_after_on_complete(self, trial: Trial) -> None:
        self._cancelled_at_the_end(trial, self._publisher(trial, 1, completes=True))

    @check("1.6")
    def extra_spec106_must_consider_subscription_cancelled_after_on_error(self, trial: Trial) -> None:
        self._cancelled_at_the_end(trial, self._failed_publisher(trial))

    def _cancelled_at_the_end(self, trial: Trial, publisher: Publisher[T]) -> None:
        reference = self._ended_and_asked_again(trial, publisher)
        trial.check(trial.collected(reference), f"{shown(publisher)} still refers to the subscriber of an ended stream")

    def _ended_and_asked_again(self, trial: Trial, publisher: Publisher[T]) -> weakref.ref[Any]:
        subscriber = self._subscribe(trial, publisher, may_fail=True)
        if not subscriber.ends:
            subscriber.request(10)
        trial.happens(lambda: subscriber.ends)
        trial.check(subscriber.ends, "the stream did not end")
        signals = subscriber.count
        subscriber.request(1)
        subscriber.request(-1)
        subscriber.cancel()
        subscriber.request(1)
        trial.silence(lambda: subscriber.count)
        trial.check(subscriber.count == signals, "request, after the end, was answered with a signal")
        return weakref.ref(subscriber)

    @check("1.7")
    def required_spec107_must_not_emit_further_signals_once_on_complete_has_been_signalled(self, trial: Trial) -> None:
        subscriber = self._subscribe(trial, self._publisher(trial, 1, completes=True))
        subscriber.request(10)
        subscriber.next()
        subscriber.expect_completion()
        subscriber.request(10)
        subscriber.expect_none("on_complete was signalled")
        trial.check(subscriber.ends == 1, f"{subscriber.ends} terminal signals came")

    untested_spec107_must_not_emit_further_signals_once_on_error_has_been_signalled = untested(
        "1.7",
        "untested_spec107_must_not_emit_further_signals_once_on_error_has_been_signalled",
        "the original leaves it open; here the three extra_spec107 checks make it",
    )

    @check("1.7")
    def extra_spec107_must_not_emit_further_signals_once_a_failed_publisher_has_signalled_on_error(
        self, trial: Trial
    ) -> None:
        subscriber = self._subscribe(trial, self._failed_publisher(trial), may_fail=True)
        if not subscriber.ends:
            subscriber.request(10)
        self._nothing_after_on_error(trial, subscriber)

    @check("1.7")
    def extra_spec107_must_not_emit_further_signals_once_a_stream_has_failed_midway(self, trial: Trial) -> None:
        subscriber = self._subscribe(trial, self._publisher_failing_after(trial, 3), may_fail=True)
        subscriber.request(10)
        self._nothing_after_on_error(trial, subscriber)

    @check("1.7")
    def extra_spec107_must_not_emit_further_signals_once_an_invalid_request_was_answered(self, trial: Trial) -> None:
        subscriber = self._subscribe(trial, self._publisher(trial, 10), may_fail=True)
        subscriber.request(0)
        self._nothing_after_on_error(trial, subscriber)

    def _nothing_after_on_error(self, trial: Trial, subscriber: ManualSubscriber[T]) -> None:
        subscriber.expect_error()
        subscriber.request(10)
        trial.silence(lambda: subscriber.ends)
        trial.check(subscriber.ends == 1, f"after on_error {subscriber.ends - 1} more terminal signals came")
        signals = subscriber.count
        subscriber.request(10)
        trial.check(not trial.silence(lambda: subscriber.count), "after on_error, request was answered with a signal")
        trial.check(subscriber.count == signals, "a signal came after on_error")

    untested_spec108_possibly_canceled_subscription_should_not_receive_on_error_or_on_complete_signals = untested(
        "1.8",
        "untested_spec108_possibly_canceled_subscription_should_not_receive_on_error_or_on_complete_signals",
        "the original leaves it open; here the two extra spec108 checks make it",
    )

    @check("1.8")
    def extra_spec108_cancelled_subscription_must_stop_being_signalled_whatever_was_requested(
        self, trial: Trial
    ) -> None:
        subscriber = self._subscribe(
            trial,
            self._publisher(trial, LONG),
            then=lambda it, element: it.cancel() if len(it.elements) == 5 else None,
        )
        subscriber.request(MAX_DEMAND)
        subscriber.next_elements(5)
        while trial.silence(lambda: subscriber.count):
            pass
        late = subscriber.count - 5
        trial.check(
            len(subscriber.elements) < LONG,
            f"cancelled from inside the fifth on_next, it signalled all {LONG} elements, {late} after the cancel",
        )

    @check("1.8")
    def extra_optional_spec108_a_cancel_inside_the_last_on_next_should_be_the_end(self, trial: Trial) -> None:
        subscriber = self._subscribe(
            trial,
            self._publisher(trial, 3, completes=True),
            then=lambda it, element: it.cancel() if len(it.elements) == 3 else None,
        )
        subscriber.request(10)
        subscriber.next_elements(3)
        trial.silence(lambda: subscriber.ends)
        trial.check(not subscriber.ends, "a terminal signal came after a cancel from inside the last on_next")

    untested_spec109_subscribe_should_not_throw_non_fatal_throwable = untested(
        "1.9",
        "untested_spec109_subscribe_should_not_throw_non_fatal_throwable",
        "no check can make every publisher fail; every check that subscribes fails where subscribe raises",
    )

    @check("1.9")
    def required_spec109_subscribe_throw_npe_on_null_subscriber(self, trial: Trial) -> None:
        publisher = self._publisher(trial, 0)
        with trial.calling("subscribe(None)"):
            try:
                publisher.subscribe(None)  # type: ignore[arg-type]
            except TypeError:
                return
            except Exception as error:
                trial.fail(f"subscribe(None) raised {type(error).__name__}, where TypeError is due")
        trial.fail("subscribe(None) did not raise TypeError")

    @check("1.9")
    def required_spec109_must_issue_on_subscribe_for_non_null_subscriber(self, trial: Trial) -> None:
        subscriber = self._subscribe(trial, self._publisher(trial, 0), may_fail=True)
        trial.check(subscriber.subscriptions == 1, f"on_subscribe came {subscriber.subscriptions} times")

    @check("1.9")
    def required_spec109_may_reject_calls_to_subscribe_if_publisher_is_unable_or_unwilling_to_serve_them_rejection_must_trigger_on_error_after_on_subscribe(  # noqa: E501
        self, trial: Trial
    ) -> None:
        subscriber = self._subscribe(trial, self._failed_publisher(trial), may_fail=True)
        subscriber.expect_error()
        trial.check(len(subscriber.errors) == 1, f"on_error came {len(subscriber.errors)} times")

    untested_spec110_reject_a_subscription_request_if_the_same_subscriber_subscribes_twice = untested(
        "1.10",
        "untested_spec110_reject_a_subscription_request_if_the_same_subscriber_subscribes_twice",
        "the original leaves it open; here the two extra_spec110 checks make it",
    )

    @check("1.10")
    def extra_spec110_subscribe_must_keep_its_rules_however_often_it_is_called(self, trial: Trial) -> None:
        publisher = self._publisher(trial, 1)
        for number in range(1, 11):
            subscriber = self._subscribe(trial, publisher, may_fail=True)
            if not subscriber.ends:
                subscriber.request(1)
            trial.happens(subscriber.was_signalled)
            trial.check(subscriber.count, f"subscriber {number} got neither an element nor an end nor a refusal")
            subscriber.cancel()

    @check("1.10")
    def extra_spec110_the_same_subscriber_twice_must_not_break_its_first_subscription(self, trial: Trial) -> None:
        publisher = self._publisher(trial, 2)
        subscriber = _TwiceSubscriber[T](trial, may_fail=True)
        self._connect(trial, publisher, subscriber)
        trial.call("subscribe(subscriber), a second time", publisher.subscribe, subscriber)
        trial.happens(lambda: subscriber.subscriptions == 2 or subscriber.ends)
        if not subscriber.ends:
            subscriber.request(2)
        trial.happens(lambda: len(subscriber.elements) == 2 or subscriber.ends)
        trial.check(
            len(subscriber.elements) == 2 or subscriber.ends, "the first subscription gave neither elements nor an end"
        )
        trial.check(len(subscriber.elements) <= 2, f"{len(subscriber.elements)} elements came, and 2 were requested")

    @check("1.11")
    def optional_spec111_may_support_multi_subscribe(self, trial: Trial) -> None:
        publisher = self._publisher(trial, 1)
        first, second = self._subscribe(trial, publisher), self._subscribe(trial, publisher)
        trial.silence(lambda: first.count + second.count)
        trial.verify()

    @check("1.11")
    def optional_spec111_registered_subscribers_must_receive_on_next_or_on_complete_signals(self, trial: Trial) -> None:
        publisher = self._publisher(trial, 1)
        both = self._subscribe(trial, publisher), self._subscribe(trial, publisher)
        for subscriber in both:
            if not subscriber.ends:
                subscriber.request(1)
            trial.happens(subscriber.was_signalled)
            trial.check(subscriber.count, f"{subscriber.name} got neither an element nor the end")

    @check("1.11")
    def optional_spec111_multicast_must_produce_the_same_elements_in_the_same_sequence_to_all_of_its_subscribers_when_requesting_one_by_one(  # noqa: E501
        self, trial: Trial
    ) -> None:
        publisher = self._publisher(trial, 5, completes=True)
        one, two, three = (self._subscribe(trial, publisher) for _ in range(3))
        for subscriber, n in (
            (one, 1),
            (two, 2),
            (one, 1),
            (three, 3),
            (three, 1),
            (three, 1),
            (two, 3),
            (one, 2),
            (one, 1),
        ):
            subscriber.request(n)
            subscriber.next_elements(n)
        for subscriber in (one, two, three):
            subscriber.request_end()
        self._all_got_the_same(trial, one, two, three)

    @check("1.11")
    def optional_spec111_multicast_must_produce_the_same_elements_in_the_same_sequence_to_all_of_its_subscribers_when_requesting_many_upfront(  # noqa: E501
        self, trial: Trial
    ) -> None:
        self._all_got_the_same(trial, *self._many_upfront(trial, self._publisher(trial, 3)))

    @check("1.11")
    def optional_spec111_multicast_must_produce_the_same_elements_in_the_same_sequence_to_all_of_its_subscribers_when_requesting_many_upfront_and_complete_as_expected(  # noqa: E501
        self, trial: Trial
    ) -> None:
        subscribers = self._many_upfront(trial, self._publisher(trial, 3, completes=True))
        for subscriber in subscribers:
            subscriber.expect_completion()
        self._all_got_the_same(trial, *subscribers)

    def _many_upfront(self, trial: Trial, publisher: Publisher[T]) -> list[ManualSubscriber[T]]:
        subscribers = [self._subscribe(trial, publisher) for _ in range(3)]
        for subscriber in subscribers:
            subscriber.request(4)
        for subscriber in subscribers:
            subscriber.next_elements(3)
        return subscribers

    def _all_got_the_same(self, trial: Trial, *subscribers: ManualSubscriber[T]) -> None:
        first = subscribers[0]
        for other in subscribers[1:]:
            trial.check(
                other.elements == first.elements,
                f"{first.name} got {shown(first.elements)}, {other.name} got {shown(other.elements)}",
            )

    # -- 2 and 3: the subscription -----------------------------------------------------------------------------

    @check("3.2")
    def required_spec302_must_allow_synchronous_request_calls_from_on_next_and_on_subscribe(self, trial: Trial) -> None:
        def three(subscriber: ManualSubscriber[T]) -> None:
            for _ in range(3):
                _ask(subscriber, 1)

        subscriber = self._subscribe(
            trial, self._publisher(trial, 6), subscribed=three, then=lambda it, element: _ask(it, 1)
        )
        came = trial.happens(lambda: len(subscriber.elements) >= 6 or subscriber.ends)
        trial.check(came, f"{len(subscriber.elements)} of 6 elements came, all requested from on_subscribe and on_next")

    @check("3.3")
    def required_spec303_must_not_allow_unbounded_recursion(self, trial: Trial) -> None:
        bound = self.bounded_depth_of_on_next_and_request_recursion
        depth = threading.local()

        def deeper(subscriber: ManualSubscriber[T], element: T) -> None:
            depth.now = getattr(depth, "now", 0) + 1
            if depth.now > bound:
                trial.fault(f"on_next ran inside on_next, {depth.now} deep on one thread; the bound is {bound}")
            elif len(subscriber.elements) <= bound:
                _ask(subscriber, 1)
            depth.now -= 1

        subscriber = self._subscribe(trial, self._publisher(trial, bound + 1), then=deeper)
        subscriber.request(1)
        trial.happens(lambda: len(subscriber.elements) > bound or subscriber.ends)
        trial.check(
            len(subscriber.elements) > bound or subscriber.ends,
            f"{len(subscriber.elements)} of {bound + 1} elements came, each requested from the on_next before",
        )

    untested_spec304_request_should_not_perform_heavy_computations = untested(
        "3.4",
        "untested_spec304_request_should_not_perform_heavy_computations",
        "the original leaves it open; here extra_spec304 makes it, for a request that waits for its subscriber",
    )

    @check("3.4")
    def extra_spec304_request_must_return_while_the_subscriber_is_busy_elsewhere(self, trial: Trial) -> None:
        self._returns_while_busy(trial, "request", lambda subscription: subscription.request(1))

    untested_spec305_cancel_must_not_synchronously_perform_heavy_computation = untested(
        "3.5",
        "untested_spec305_cancel_must_not_synchronously_perform_heavy_computation",
        "the original leaves it open; here extra_spec305 makes it, for a cancel that waits for its subscriber",
    )

    @check("3.5")
    def extra_spec305_cancel_must_return_while_the_subscriber_is_busy_elsewhere(self, trial: Trial) -> None:
        self._returns_while_busy(trial, "cancel", lambda subscription: subscription.cancel())

    def _returns_while_busy(self, trial: Trial, name: str, call: Callable[[Any], object]) -> None:
        """While one thread is inside `on_next`, another one calls."""
        if name == "request" and not self.requests_may_be_concurrent:
            raise NotVerified("rule 3.4: requests_may_be_concurrent is False")
        gate, returned = threading.Event(), threading.Event()
        subscriber = self._subscribe(trial, self._publisher(trial, 3), then=_waiting_for(gate))
        first = threading.Thread(target=_quietly, args=(lambda: _ask(subscriber, 1),), name="tck-first", daemon=True)
        first.start()

        def second() -> None:
            trial.note(f"{subscriber.name}: {name}() -> while on_next runs")
            _quietly(lambda: call(subscriber.subscription))
            returned.set()

        try:
            trial.happens(lambda: subscriber.elements)
            trial.check(subscriber.elements, "an element was due")
            threading.Thread(target=second, name="tck-second", daemon=True).start()
            limit = trial.settings.default_timeout
            if not returned.wait(limit):
                trial.fail(f"{name} did not return within {limit:g} s, while on_next was running on another thread")
        finally:
            gate.set()
        first.join(trial.settings.call_timeout)

    @check("3.6")
    def required_spec306_after_subscription_is_cancelled_request_must_be_nops(self, trial: Trial) -> None:
        subscriber = self._subscribe(trial, self._publisher(trial, 3))
        subscriber.cancel()
        for _ in range(3):
            subscriber.request(1)
        subscriber.expect_none("the subscription was cancelled")

    @check("3.7")
    def required_spec307_after_subscription_is_cancelled_additional_cancelations_must_be_nops(
        self, trial: Trial
    ) -> None:
        subscriber = self._subscribe(trial, self._publisher(trial, 1))
        for _ in range(3):
            subscriber.cancel()
        subscriber.expect_none("the subscription was cancelled")

    @check("3.8")
    def extra_spec308_no_demand_may_be_lost_between_two_requests(self, trial: Trial) -> None:
        """The race of the textbook: one thread finds the drain at work and is about to add, the other leaves it."""

        def race(it: _Race[T]) -> None:
            it.first.start()
            it.trial.happens(lambda: it.subscriber.elements)
            it.trial.check(it.subscriber.elements, "an element was due")
            it.held.start()
            it.wait(lambda: it.held.reached or it.held.ended)
            it.gate.set()
            it.wait(lambda: it.first.ended and (it.first.thread in it.subscriber.threads or it.delivered()))
            it.held.let_go()

        self._race(trial, race, 2, "request(1) came while request(2) was being served")

    @check("1.3")
    def extra_spec103_two_requests_at_once_must_not_signal_at_once(self, trial: Trial) -> None:
        """Both find the drain idle: one is held before it can say so, the other goes to work."""

        def race(it: _Race[T]) -> None:
            it.held.start()
            it.wait(lambda: it.held.reached or it.held.ended)
            it.first.start()
            it.wait(lambda: it.settled(it.first))
            it.held.let_go()
            it.wait(lambda: it.settled(it.first) and it.settled(it.held))
            it.gate.set()

        self._race(trial, race, 1, "two threads called request(1) at once")

    def _race(self, trial: Trial, race: Callable[[_Race[T]], None], first: int, what: str) -> None:
        """Hold a request(1) at each of its steps in turn, and let a request(`first`) by; all of it has to come."""
        if not self.requests_may_be_concurrent:
            raise NotVerified(f"rule {trial.rule}: requests_may_be_concurrent is False")
        step, more = 0, True
        while more:
            gate = threading.Event()
            subscriber = _SerialSubscriber[T](trial, then=_waiting_for(gate))
            self._connect(trial, self._publisher(trial, 6), subscriber)
            it = _Race(trial, subscriber, gate, step, first)
            try:
                race(it)
            finally:
                gate.set()
                it.held.let_go()
            trial.happens(it.returned, trial.settings.call_timeout)
            trial.check(it.held.ended and it.first.ended, f"request(1) did not return; one was held at step {step}")
            for call in (it.first, it.held):
                if call.error is not None:
                    trial.fail(f"request(1) raised {shown(call.error)} (3.16)")
            trial.happens(it.delivered)
            came = len(subscriber.elements)
            trial.check(
                came == it.due, f"{what}: {came} of {it.due} elements came; the request(1) was held at its step {step}"
            )
            subscriber.cancel()
            step, more = step + 1, it.held.reached

    @check("3.9")
    def required_spec309_request_zero_must_signal_illegal_argument_exception(self, trial: Trial) -> None:
        self._refused(trial, 0)

    @check("3.9")
    def required_spec309_request_negative_number_must_signal_illegal_argument_exception(self, trial: Trial) -> None:
        self._refused(trial, -random.randrange(1, 2**31))

    @check("3.9")
    def optional_spec309_request_negative_number_may_signal_illegal_argument_exception_with_specific_message(
        self, trial: Trial
    ) -> None:
        error = self._refused(trial, -random.randrange(1, 2**31))
        wanted = ("3.9", "non-positive subscription request", "negative subscription request")
        trial.check(any(it in str(error) for it in wanted), f"the message {str(error)!r} says none of {wanted}")

    def _refused(self, trial: Trial, n: int) -> BaseException:
        subscriber = self._subscribe(trial, self._publisher(trial, 10), may_fail=True)
        subscriber.request(n)
        return subscriber.expect_error(ValueError)

    @check("3.12")
    def required_spec312_cancel_must_make_the_publisher_to_eventually_stop_signaling(self, trial: Trial) -> None:
        subscriber = self._subscribe(trial, self._publisher(trial, 20))
        subscriber.request(10)
        subscriber.request(5)
        subscriber.next()
        subscriber.cancel()
        while trial.silence(lambda: len(subscriber.elements)):
            trial.verify()
        trial.check(
            len(subscriber.elements) <= 15,
            f"{len(subscriber.elements)} elements came; 15 were requested, then cancelled",
        )

    @check("3.13")
    def required_spec313_cancel_must_make_the_publisher_eventually_drop_all_references_to_the_subscriber(
        self, trial: Trial
    ) -> None:
        publisher = self._publisher(trial, 3)
        reference = self._cancelled(trial, publisher)
        trial.check(trial.collected(reference), f"{shown(publisher)} still refers to the subscriber that has cancelled")

    def _cancelled(self, trial: Trial, publisher: Publisher[T]) -> weakref.ref[Any]:
        subscriber = self._subscribe(trial, publisher)
        subscriber.request_next()
        subscriber.cancel()
        return weakref.ref(subscriber)

    @check("3.17")
    def required_spec317_must_support_a_pending_element_count_up_to_long_max_value(self, trial: Trial) -> None:
        subscriber = self._subscribe(trial, self._publisher(trial, 3, completes=True))
        subscriber.request(MAX_DEMAND)
        subscriber.next_elements(3)
        subscriber.expect_completion()

    @check("3.17")
    def required_spec317_must_support_a_cumulative_pending_element_count_up_to_long_max_value(
        self, trial: Trial
    ) -> None:
        subscriber = self._subscribe(trial, self._publisher(trial, 3, completes=True))
        for n in (MAX_DEMAND // 2, MAX_DEMAND // 2, 1):
            subscriber.request(n)
        subscriber.next_elements(3)
        subscriber.expect_completion()

    @check("3.17")
    def required_spec317_must_not_signal_on_error_when_pending_above_long_max_value(self, trial: Trial) -> None:
        left = [10]

        def more(subscriber: ManualSubscriber[T], element: T) -> None:
            if left[0] > 0:
                _ask(subscriber, MAX_DEMAND - 1)
                left[0] -= 1  # after the request: where that recurses (3.3), it does so without end
            else:
                subscriber.cancel()

        subscriber = self._subscribe(trial, self._publisher(trial, 2**31 - 1), then=more)
        subscriber.request(1)
        while trial.silence(lambda: subscriber.count):
            pass
        trial.verify()

    @check("3.17")
    def extra_spec317_demand_beyond_the_most_must_not_wrap(self, trial: Trial) -> None:
        """Two requests of MAX_DEMAND that meet: a sum of 64 bits turns negative, and the elements stop."""

        def twice(subscriber: ManualSubscriber[T], element: T) -> None:
            if len(subscriber.elements) == 1:
                _ask(subscriber, MAX_DEMAND)
                _ask(subscriber, MAX_DEMAND)

        subscriber = self._subscribe(trial, self._publisher(trial, 10), then=twice)
        subscriber.request(1)
        came = trial.happens(lambda: len(subscriber.elements) == 10 or subscriber.ends)
        trial.check(
            came and len(subscriber.elements) == 10,
            f"after request(1) and twice request(MAX_DEMAND), {len(subscriber.elements)} of 10 elements came",
        )

    @check("1.1")
    def extra_spec101_a_large_request_must_be_met_to_the_element(self, trial: Trial) -> None:
        """Publishers work in batches; at the end of one it is easy to give an element too many."""
        subscriber = self._subscribe(trial, self._publisher(trial, LONG))
        subscriber.request(LONG - 1_000)
        subscriber.next_elements(LONG - 1_000)
        subscriber.expect_none(f"{LONG - 1_000} elements were requested, and came")
        subscriber.request(1)
        subscriber.next()
        subscriber.expect_none("one more element was requested, and came")


class _Race(Generic[T]):
    """Two requests of two threads; one of them is held at a step. The gate holds `on_next`."""

    def __init__(
        self, trial: Trial, subscriber: _SerialSubscriber[T], gate: threading.Event, step: int, first: int
    ) -> None:
        request = _held(subscriber).request
        self.due = subscriber.demand = first + 1
        self.trial = trial
        self.subscriber = subscriber
        self.gate = gate
        self.held = HeldCall(functools.partial(request, 1), step, trial.wake, "tck-held")
        self.first = HeldCall(functools.partial(request, first), None, trial.wake, "tck-first")

    def wait(self, condition: Callable[[], object]) -> None:
        """Wait for what happens soon, if nobody is in its way: the thread that is held may hold a lock."""
        self.trial.happens(condition, self.trial.settings.default_poll_timeout)

    def settled(self, call: HeldCall) -> bool:
        """It has ended, or is inside a signal, and will move no further."""
        return call.ended or call.thread in self.subscriber.inside

    def returned(self) -> bool:
        return self.held.ended and self.first.ended

    def delivered(self) -> bool:
        return len(self.subscriber.elements) >= self.due


class _SerialSubscriber(ManualSubscriber[T]):
    """Finds signals that overlap (1.3)."""

    def __init__(self, trial: Trial, **how: Any) -> None:
        super().__init__(trial, **how)
        self.inside: list[int] = []  # the trial's lock; the threads that are inside a signal
        self.threads: set[int] = set()  # the trial's lock; those that were

    def _alone(self, signal: str, receive: Callable[..., None], *arguments: Any) -> None:
        thread = threading.get_ident()
        with self.trial.lock:
            others = [it for it in self.inside if it != thread]
            self.inside.append(thread)
            self.threads.add(thread)
            if others:
                self.trial.fault(f"{signal} began on one thread while a signal was running on another")
        receive(*arguments)
        with self.trial.lock:
            self.inside.remove(thread)

    def on_subscribe(self, subscription: Any, /) -> None:
        self._alone("on_subscribe", super().on_subscribe, subscription)

    def on_next(self, element: T, /) -> None:
        self._alone("on_next", super().on_next, element)

    def on_error(self, error: BaseException, /) -> None:
        self._alone("on_error", super().on_error, error)

    def on_complete(self) -> None:
        self._alone("on_complete", super().on_complete)


class _TwiceSubscriber(ManualSubscriber[T]):
    """Is subscribed twice on purpose, and cancels the second subscription (2.5)."""

    def on_subscribe(self, subscription: Any, /) -> None:
        with self.trial.lock:
            first = self.subscription is None
            self.subscriptions += 0 if first else 1
        if first:
            super().on_subscribe(subscription)
        else:
            self.trial.note(f"{self.name}: on_subscribe, again")
            subscription.cancel()


def _waiting_for(gate: threading.Event) -> Callable[[ManualSubscriber[Any], Any], object]:
    """An `on_next` that does not return before the gate is open."""
    return lambda subscriber, element: gate.wait(30)


def _held(subscriber: ManualSubscriber[Any]) -> Subscription:
    assert subscriber.subscription is not None
    return subscriber.subscription


def _ask(subscriber: ManualSubscriber[Any], n: int) -> None:
    """`request(n)`, from inside a signal or from another thread than the check's."""
    subscription = subscriber.subscription
    if subscription is None:
        return
    trial = subscriber.trial
    with trial.lock:
        trial.note(f"{subscriber.name}: request({n}) ->")
        subscriber.demand = min(subscriber.demand + n, MAX_DEMAND)
    with trial.calling(f"request({n})"):
        subscription.request(n)


def _quietly(call: Callable[[], object]) -> None:
    """Run `call`; what it raises on this thread of the kit's own is found by what it leaves undone."""
    try:
        call()
    except Exception:
        return
