"""The checks of a publisher that the kit of the JVM has, under its names."""

from __future__ import annotations

import time
import weakref
from typing import Any, ClassVar, TypeVar

from reactive_runtime._spec import MAX_DEMAND, Publisher
from reactive_runtime.tck._factories import PublisherFactory
from reactive_runtime.tck._publisher.probes import ManualSubscriber
from reactive_runtime.tck._running.environment import LONG_ENOUGH, TestEnvironment
from reactive_runtime.tck._running.failures import same, shown
from reactive_runtime.tck._verification import Skipped, check

__all__ = ["OriginalPublisherChecks"]

T = TypeVar("T")

DEEP = 20
"""More elements than the allowed depth, each requested inside of the one before."""


class OriginalPublisherChecks(PublisherFactory[T]):
    """The 38 checks; seven of them can't be made there, and say which of the extra ones here makes it."""

    STOCHASTIC_RUNS: ClassVar[int] = 100

    def _elements_at_hand(self, wanted: int) -> int:
        """So many elements as are wanted, or as there are."""
        most = self.max_elements_from_publisher
        return min(wanted, most) if isinstance(most, int) and most >= self._depth() + 1 else wanted

    @check("1.5")
    def required_create_publisher_1_must_produce_a_stream_of_exactly_1_element(self, env: TestEnvironment) -> None:
        """One element is requested and comes; then the stream completes."""
        self._exactly(env, 1)

    @check("1.5")
    def required_create_publisher_3_must_produce_a_stream_of_exactly_3_elements(self, env: TestEnvironment) -> None:
        """Three elements are requested one by one and come; then the stream completes."""
        self._exactly(env, 3)

    def _exactly(self, env: TestEnvironment, elements: int) -> None:
        subscriber = self._subscribe(env, self._publisher(env, elements, completes=True))
        for _ in range(elements):
            subscriber.request_next()
        subscriber.request_end()

    @check("1.5")
    def required_validate_max_elements_from_publisher(self, env: TestEnvironment) -> None:
        """The setting `max_elements_from_publisher` is an int from 0 to MAX_DEMAND."""
        most: Any = self.max_elements_from_publisher
        valid = isinstance(most, int) and not isinstance(most, bool) and 0 <= most <= MAX_DEMAND
        env.check(valid, f"max_elements_from_publisher is {shown(most)}, and has to be an int from 0 to MAX_DEMAND")

    @check("3.3")
    def required_validate_bounded_depth_of_on_next_and_request_recursion(self, env: TestEnvironment) -> None:
        """The setting `bounded_depth_of_on_next_and_request_recursion` is an int from 1."""
        depth: Any = self.bounded_depth_of_on_next_and_request_recursion
        valid = isinstance(depth, int) and not isinstance(depth, bool) and depth >= 1
        env.check(valid, f"bounded_depth_of_on_next_and_request_recursion is {shown(depth)}, and has to be an int ≥ 1")

    @check("1.1", plain=5)
    def required_spec101_subscription_request_must_result_in_the_correct_number_of_produced_elements(
        self, env: TestEnvironment
    ) -> None:
        """No element comes before a request, and after requests of 1, 1 and 2 as many as that."""
        subscriber = self._subscribe(env, self._publisher(env, 5))
        subscriber.expect_none("nothing was requested yet")
        subscriber.request_next()
        subscriber.expect_none("one element was requested, and came")
        subscriber.request(1)
        subscriber.request(2)
        subscriber.next_elements(3)
        subscriber.expect_none("four elements were requested, and came")

    @check("1.2", plain=3)
    def required_spec102_may_signal_less_than_requested_and_terminate_subscription(self, env: TestEnvironment) -> None:
        """A stream of three elements of which ten are requested gives three, and completes."""
        subscriber = self._subscribe(env, self._publisher(env, 3, completes=True))
        subscriber.request(10)
        subscriber.next_elements(3)
        subscriber.expect_completion()

    @check("1.3", plain=10)
    def stochastic_spec103_must_signal_on_methods_sequentially(self, env: TestEnvironment) -> None:
        """In 100 streams, each element of which is requested inside the signal before, no two signals overlap.

        Of a slow publisher it sees as many streams as there are in two seconds, and two at least.
        """
        if self.skip_stochastic_tests:
            env.skip("skip_stochastic_tests is set")
        elements, until = 10, time.monotonic() + LONG_ENOUGH
        for run in range(self.STOCHASTIC_RUNS):
            if run >= 2 and time.monotonic() > until:
                break
            subscriber = ManualSubscriber[T](env)
            subscriber.subscribed = lambda item: item.ask(1)
            subscriber.then = lambda item, element: item.ask(1)
            self._connect(env, self._publisher(env, elements, completes=True), subscriber)
            env.happens(subscriber.has_ended, elements * env.settings.default_timeout)
            env.due(
                subscriber.ends,
                f"run {run}: no end after {len(subscriber.elements)} of {elements} elements, one by one",
                subscriber.stalled(elements),
            )

    @check("1.4", plain=3)
    def optional_spec104_must_signal_on_error_when_fails(self, env: TestEnvironment) -> None:
        """A publisher that fails signals `on_error`, once."""
        publisher = self._failed_publisher(env)
        subscriber = self._subscribe(env, publisher, may_fail=True)
        subscriber.expect_error()
        env.silence(lambda: subscriber.count)
        env.verify()  # the subscriber itself finds what comes after its end

    @check("1.5", plain=3)
    def required_spec105_must_signal_on_complete_when_finite_stream_terminates(self, env: TestEnvironment) -> None:
        """After the last of three elements `on_complete` comes, and nothing after it."""
        subscriber = self._subscribe(env, self._publisher(env, 3, completes=True))
        for _ in range(3):
            subscriber.request_next()
        subscriber.request_end()
        subscriber.expect_none("the stream has ended")

    @check("1.5")
    def optional_spec105_empty_stream_must_terminate_by_signalling_on_complete(self, env: TestEnvironment) -> None:
        """An empty stream completes, at the latest when an element is requested."""
        subscriber = self._subscribe(env, self._publisher(env, 0, completes=True))
        if not subscriber.ends:
            subscriber.request(1)
        subscriber.expect_completion()
        subscriber.expect_none("the stream has ended")

    untested_spec106_must_consider_subscription_cancelled_after_on_error_or_on_complete_has_been_called: Skipped = (
        Skipped("the original leaves it open; here the two extra_spec106 checks make it")
    )

    @check("1.7", plain=1)
    def required_spec107_must_not_emit_further_signals_once_on_complete_has_been_signalled(
        self, env: TestEnvironment
    ) -> None:
        """After `on_complete`, a request of ten elements is answered with no signal."""
        subscriber = self._subscribe(env, self._publisher(env, 1, completes=True))
        subscriber.request(10)
        subscriber.next()
        subscriber.expect_completion()
        subscriber.request(10)
        subscriber.expect_none("on_complete was signalled")

    untested_spec107_must_not_emit_further_signals_once_on_error_has_been_signalled: Skipped = Skipped(
        "the original leaves it open; here the three extra_spec107 checks make it"
    )

    untested_spec108_possibly_canceled_subscription_should_not_receive_on_error_or_on_complete_signals: Skipped = (
        Skipped("the original leaves it open; here the two extra spec108 checks make it")
    )

    untested_spec109_subscribe_should_not_throw_non_fatal_throwable: Skipped = Skipped(
        "no check can make every publisher fail; every check that subscribes fails where subscribe raises"
    )

    @check("1.9")
    def required_spec109_subscribe_throw_npe_on_null_subscriber(self, env: TestEnvironment) -> None:
        """`subscribe(None)` raises TypeError."""
        env.refuses_none("subscribe(None)", self._publisher(env, 0).subscribe)

    @check("1.9")
    def required_spec109_must_issue_on_subscribe_for_non_null_subscriber(self, env: TestEnvironment) -> None:
        """`subscribe` calls `on_subscribe`, once."""
        self._subscribe(env, self._publisher(env, 0), may_fail=True)

    @check("1.9")
    def required_spec109_may_reject_calls_to_subscribe_if_publisher_is_unable_or_unwilling_to_serve_them_rejection_must_trigger_on_error_after_on_subscribe(  # noqa: E501
        self, env: TestEnvironment
    ) -> None:
        """A publisher that fails calls `on_subscribe` first, and then `on_error`, once."""
        subscriber = self._subscribe(env, self._failed_publisher(env), may_fail=True)
        subscriber.expect_error()

    untested_spec110_reject_a_subscription_request_if_the_same_subscriber_subscribes_twice: Skipped = Skipped(
        "the original leaves it open; here the two extra_spec110 checks make it"
    )

    @check("1.11")
    def optional_spec111_may_support_multi_subscribe(self, env: TestEnvironment) -> None:
        """A second subscriber is accepted, and nothing is signalled to either without a request."""
        publisher = self._publisher(env, 1)
        both = self._subscribe(env, publisher), self._subscribe(env, publisher)
        env.silence(lambda: sum(subscriber.count for subscriber in both))
        env.verify()
        for subscriber in both:  # one that is refused may hear of it on another thread, and late
            subscriber.ask(1)
        env.happens(both[1].was_signalled)

    @check("1.11")
    def optional_spec111_registered_subscribers_must_receive_on_next_or_on_complete_signals(
        self, env: TestEnvironment
    ) -> None:
        """Each of two subscribers gets an element or an end."""
        publisher = self._publisher(env, 1)
        both = self._subscribe(env, publisher), self._subscribe(env, publisher)
        for subscriber in both:
            if not subscriber.ends:
                subscriber.request(1)
            env.expect(subscriber.was_signalled, f"{subscriber.name} got neither an element nor the end")

    @check("1.11")
    def optional_spec111_multicast_must_produce_the_same_elements_in_the_same_sequence_to_all_of_its_subscribers_when_requesting_one_by_one(  # noqa: E501
        self, env: TestEnvironment
    ) -> None:
        """Three subscribers that request at different times get the same elements in the same order."""
        publisher = self._publisher(env, 5, completes=True)
        one, two, three = (self._subscribe(env, publisher) for _ in range(3))
        requests = (one, 1), (two, 2), (one, 1), (three, 3), (three, 1), (three, 1), (two, 3), (one, 2), (one, 1)
        for subscriber, n in requests:
            subscriber.request(n)
            subscriber.next_elements(n)
        for subscriber in (one, two, three):
            subscriber.request_end()
        self._all_got_the_same(env, one, two, three)

    @check("1.11")
    def optional_spec111_multicast_must_produce_the_same_elements_in_the_same_sequence_to_all_of_its_subscribers_when_requesting_many_upfront(  # noqa: E501
        self, env: TestEnvironment
    ) -> None:
        """Three subscribers that request all elements at once get the same ones in the same order."""
        self._all_got_the_same(env, *self._many_upfront(env, self._publisher(env, 3)))

    @check("1.11")
    def optional_spec111_multicast_must_produce_the_same_elements_in_the_same_sequence_to_all_of_its_subscribers_when_requesting_many_upfront_and_complete_as_expected(  # noqa: E501
        self, env: TestEnvironment
    ) -> None:
        """Three subscribers that request all elements at once get the same ones in the same order, and then the end."""
        subscribers = self._many_upfront(env, self._publisher(env, 3, completes=True))
        for subscriber in subscribers:
            subscriber.expect_completion()
        self._all_got_the_same(env, *subscribers)

    def _many_upfront(self, env: TestEnvironment, publisher: Publisher[T]) -> list[ManualSubscriber[T]]:
        subscribers = [self._subscribe(env, publisher) for _ in range(3)]
        for subscriber in subscribers:
            subscriber.request(4)
        for subscriber in subscribers:
            subscriber.next_elements(3)
        return subscribers

    def _all_got_the_same(self, env: TestEnvironment, *subscribers: ManualSubscriber[T]) -> None:
        first = subscribers[0]
        for other in subscribers[1:]:
            env.check(
                len(other.elements) == len(first.elements) and all(map(same, first.elements, other.elements)),
                f"{first.name} got {shown(first.elements)}, {other.name} got {shown(other.elements)}",
            )

    @check("3.2", plain=6)
    def required_spec302_must_allow_synchronous_request_calls_from_on_next_and_on_subscribe(
        self, env: TestEnvironment
    ) -> None:
        """Elements that are requested inside `on_subscribe` and inside `on_next` come."""

        def three(subscriber: ManualSubscriber[T]) -> None:
            for _ in range(3):
                subscriber.ask(1)

        def one(subscriber: ManualSubscriber[T], element: T) -> None:
            if len(subscriber.elements) <= 3:
                subscriber.ask(1)

        subscriber = self._subscribe(env, self._publisher(env, 6), subscribed=three, then=one)
        came = subscriber.arrive(6)
        env.due(came, f"{len(subscriber.elements)} of 6 elements came, all requested from on_subscribe and on_next")

    @check("3.3", plain=2)
    def required_spec303_must_not_allow_unbounded_recursion(self, env: TestEnvironment) -> None:
        """`on_next` does not run inside `on_next` on one thread, deeper than the setting allows."""
        elements = self._elements_at_hand(self._depth() + DEEP)

        def again(subscriber: ManualSubscriber[T], element: T) -> None:
            if len(subscriber.elements) < elements and not env.faulty:  # it counts how deep it is
                subscriber.ask(1)

        subscriber = self._subscribe(env, self._publisher(env, elements), then=again)
        subscriber.request(1)
        came = subscriber.arrive(elements)
        env.due(
            came,
            f"{len(subscriber.elements)} of {elements} elements came, each requested from the on_next before",
            "3.8",
        )

    untested_spec304_request_should_not_perform_heavy_computations: Skipped = Skipped(
        "the original leaves it open; here extra_spec304 makes it, for a request that waits for its subscriber"
    )

    untested_spec305_cancel_must_not_synchronously_perform_heavy_computation: Skipped = Skipped(
        "the original leaves it open; here extra_spec305 makes it, for a cancel that waits for its subscriber"
    )

    @check("3.6")
    def required_spec306_after_subscription_is_cancelled_request_must_be_nops(self, env: TestEnvironment) -> None:
        """After a cancel, requests are answered with no signal."""
        subscriber = self._subscribe(env, self._publisher(env, 3))
        subscriber.cancel()
        for _ in range(3):
            subscriber.request(1)
        subscriber.expect_none("the subscription was cancelled")

    @check("3.7")
    def required_spec307_after_subscription_is_cancelled_additional_cancelations_must_be_nops(
        self, env: TestEnvironment
    ) -> None:
        """Three cancels return normally, and are answered with no signal."""
        subscriber = self._subscribe(env, self._publisher(env, 1))
        for _ in range(3):
            subscriber.cancel()
        subscriber.expect_none("the subscription was cancelled")

    @check("3.9")
    def required_spec309_request_zero_must_signal_illegal_argument_exception(self, env: TestEnvironment) -> None:
        """`request(0)` is answered with `on_error(ValueError)`."""
        self._refused(env, 0)

    @check("3.9")
    def required_spec309_request_negative_number_must_signal_illegal_argument_exception(
        self, env: TestEnvironment
    ) -> None:
        """A request of a negative number is answered with `on_error(ValueError)`."""
        self._refused(env, -1)

    @check("3.9")
    def optional_spec309_request_negative_number_may_signal_illegal_argument_exception_with_specific_message(
        self, env: TestEnvironment
    ) -> None:
        """The message of that error names rule 3.9."""
        error = self._refused(env, -(2**31))
        wanted = ("3.9", "non-positive subscription request", "negative subscription request")
        env.check(any(item in str(error) for item in wanted), f"the message {str(error)!r} says none of {wanted}")

    def _refused(self, env: TestEnvironment, n: int) -> BaseException:
        subscriber = self._subscribe(env, self._publisher(env, 10), may_fail=True)
        subscriber.request(n)
        return subscriber.expect_error(ValueError, "3.9")

    @check("3.12", plain=1)
    def required_spec312_cancel_must_make_the_publisher_to_eventually_stop_signaling(
        self, env: TestEnvironment
    ) -> None:
        """After a cancel the signals stop, with no more elements than were requested."""
        subscriber = self._subscribe(env, self._publisher(env, 20))
        subscriber.request(10)
        subscriber.request(5)
        subscriber.next()
        subscriber.cancel()
        while env.silence(lambda: len(subscriber.elements)):
            env.verify()  # the subscriber itself finds an element that was not requested

    @check("3.13", plain=1)
    def required_spec313_cancel_must_make_the_publisher_eventually_drop_all_references_to_the_subscriber(
        self, env: TestEnvironment
    ) -> None:
        """After a cancel the subscriber can be collected while the publisher is kept."""
        publisher = self._publisher(env, 3)
        reference = self._cancelled(env, publisher)
        env.collected(reference, f"{shown(publisher)} still refers to the subscriber that has cancelled")

    def _cancelled(self, env: TestEnvironment, publisher: Publisher[T]) -> weakref.ref[Any]:
        subscriber = self._subscribe(env, publisher)
        subscriber.request_next()
        subscriber.cancel()
        return weakref.ref(subscriber)

    @check("3.17", plain=3)
    def required_spec317_must_support_a_pending_element_count_up_to_long_max_value(self, env: TestEnvironment) -> None:
        """After `request(MAX_DEMAND)` all elements come, and `on_complete`."""
        subscriber = self._subscribe(env, self._publisher(env, 3, completes=True))
        subscriber.request(MAX_DEMAND)
        subscriber.next_elements(3)
        subscriber.expect_completion()

    @check("3.17", plain=3)
    def required_spec317_must_support_a_cumulative_pending_element_count_up_to_long_max_value(
        self, env: TestEnvironment
    ) -> None:
        """After requests whose sum is MAX_DEMAND all elements come, and `on_complete`."""
        subscriber = self._subscribe(env, self._publisher(env, 3, completes=True))
        for n in (MAX_DEMAND // 2, MAX_DEMAND // 2, 1):
            subscriber.request(n)
        subscriber.next_elements(3)
        subscriber.expect_completion()

    @check("3.17", plain=3)
    def required_spec317_must_not_signal_on_error_when_pending_above_long_max_value(self, env: TestEnvironment) -> None:
        """Requests whose sum is beyond MAX_DEMAND are not answered with `on_error`."""
        left = [10]

        def more(subscriber: ManualSubscriber[T], element: T) -> None:
            if left[0] > 0:
                subscriber.ask(MAX_DEMAND - 1)
                left[0] -= 1  # after the request: where that recurses (3.3), it does so without end
            else:
                subscriber.quit()

        subscriber = self._subscribe(env, self._publisher(env, 2**31 - 1), then=more)
        subscriber.request(1)
        while env.silence(lambda: subscriber.count):
            pass
        env.verify()
