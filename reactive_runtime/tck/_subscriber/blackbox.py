"""Is a subscriber conformant, seen from outside? The 26 checks of the original kit, under their names."""

from __future__ import annotations

import time
from typing import TypeVar

from reactive_runtime._spec import Subscriber
from reactive_runtime.tck._running.environment import LONG_ENOUGH, TestEnvironment
from reactive_runtime.tck._running.failures import shown
from reactive_runtime.tck._subscriber.subscriber import (
    ElementFactory,
    NotSeen,
    Stage,
    TckError,
    created,
    refuses_none_at_first,
    signals_inside_request,
)
from reactive_runtime.tck._verification import check

__all__ = ["SubscriberBlackboxVerification"]

T = TypeVar("T")


class SubscriberBlackboxVerification(ElementFactory[T]):
    """Checks of a subscriber as it is."""

    def create_subscriber(self) -> Subscriber[T]:
        """A new subscriber, which requests without help, or when `trigger_request` makes it.

        Returns:
            The subscriber. It has to be defined by the subclass.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define create_subscriber(self)")

    def trigger_request(self, subscriber: Subscriber[T]) -> None:
        """Make `subscriber` request something. Does nothing by default: the subscriber requests without help.

        Args:
            subscriber: A result of `create_subscriber`.
        """

    def _subscriber(self, env: TestEnvironment) -> Subscriber[T]:
        return created(env, "create_subscriber()", self.create_subscriber)

    def _stage(self, env: TestEnvironment) -> Stage[T]:
        stage = Stage(env, self._elements(env))
        stage.subscribe(self._subscriber(env))
        return stage

    def _triggered(self, env: TestEnvironment) -> tuple[Stage[T], int]:
        stage = self._stage(env)
        return stage, self._first_request(env, stage)

    def _first_request(self, env: TestEnvironment, stage: Stage[T]) -> int:
        """The number that it requests first; a subscriber that cancels instead wants nothing."""
        env.call("trigger_request(subscriber)", self.trigger_request, stage.subscriber)
        env.happens(lambda: stage.publisher.requests or stage.publisher.cancels)
        if stage.publisher.cancels and not stage.publisher.requests:
            env.skip("the subscriber cancels, and requests nothing")
        return stage.publisher.expect_request("if it does not request by itself, define trigger_request")

    @check("2.1")
    def required_spec201_blackbox_must_signal_demand_via_subscription_request(self, env: TestEnvironment) -> None:
        """The subscriber requests, and gets the elements: up to 512 of them, or as many as it takes in two seconds."""
        stage, requested = self._triggered(env)
        until = time.monotonic() + LONG_ENOUGH
        for _ in range(min(requested, 512)):
            if stage.publisher.cancels or time.monotonic() > until:
                break
            stage.signal_next()
        stage.publisher.send_completion()

    @check("2.13")
    def extra_spec213_blackbox_must_return_normally_from_every_signal(self, env: TestEnvironment) -> None:
        """Each of up to ten elements that it requests, and then an error, is taken without an error."""
        stage = self._after_elements(env, 10)
        stage.publisher.send_error(TckError())

    @check("2.13")
    def extra_spec213_blackbox_must_return_normally_from_signals_inside_its_own_request(
        self, env: TestEnvironment
    ) -> None:
        """A publisher may signal inside `request` (3.10, 3.11): an element or more is taken there, and each end."""
        for error in (None, TckError()):
            subscriber = self._subscriber(env)
            came = signals_inside_request(env, subscriber, [self.create_element(0)], error)
            env.call("trigger_request(subscriber)", self.trigger_request, subscriber)
            env.happens(came)

    @check("2.13")
    def extra_spec213_blackbox_must_refuse_none_after_elements_have_come(self, env: TestEnvironment) -> None:
        """After elements, each signal with None raises TypeError."""
        stage = self._after_elements(env, 3)
        if not stage.publisher.cancels:
            for method in ("on_next", "on_error", "on_subscribe"):
                stage.must_refuse_none(method)

    @check("2.13")
    def extra_spec213_blackbox_must_refuse_none_for_its_first_subscription(self, env: TestEnvironment) -> None:
        """Before any other signal, `on_subscribe(None)` raises TypeError."""
        refuses_none_at_first(env, self._subscriber(env))

    @check("2.3")
    def extra_spec203_blackbox_must_not_call_back_in_on_complete_after_elements(self, env: TestEnvironment) -> None:
        """The subscriber calls neither `request` nor `cancel` inside an `on_complete` that follows elements."""
        self._after_elements(env, 2).publisher.send_completion()

    @check("2.4")
    def extra_spec204_blackbox_must_not_request_after_the_end(self, env: TestEnvironment) -> None:
        """The subscriber is given all that it requested, and is at rest; after each end it requests nothing."""
        for error in (None, TckError()):
            stage = self._after_elements(env, 5)
            stage.publisher.rest()
            requests = stage.publisher.requests
            before = len(requests)
            stage.publisher.send_end(error)
            env.silence(lambda requests=requests: len(requests))  # type: ignore[misc]
            env.check(len(requests) == before, f"after the end it called request({shown(requests[before:][:1])})")

    @check("2.5")
    def extra_spec205_blackbox_must_keep_its_subscription_when_a_second_one_comes_later(
        self, env: TestEnvironment
    ) -> None:
        """After an element a second subscription is cancelled, and the first one is not."""
        stage = self._after_elements(env, 1)
        if stage.publisher.cancels:
            env.skip("the subscriber has cancelled, and may take another subscription")
        stage.cancels_a_second_subscription()
        env.check(not stage.publisher.cancels, "the first subscription was cancelled")

    @check("2.7")
    def extra_spec207_blackbox_must_call_its_subscription_serially(self, env: TestEnvironment) -> None:
        """Each `request` and `cancel` is kept inside for a moment: no other one comes on another thread."""
        stage = Stage(env, self._elements(env))
        stage.publisher.hold = env.settings.default_poll_timeout
        stage.subscribe(self._subscriber(env))
        self._feed(env, stage, 5)
        env.silence(lambda: len(stage.publisher.requests))

    def _after_elements(self, env: TestEnvironment, most: int) -> Stage[T]:
        """A stage whose subscriber has been given as many elements as it requested, at most so many."""
        stage = self._stage(env)
        self._feed(env, stage, most)
        return stage

    def _feed(self, env: TestEnvironment, stage: Stage[T], most: int) -> None:
        self._first_request(env, stage)
        publisher = stage.publisher
        for number in range(most):
            enough = publisher.wants_more_than(number)
            if not env.happens(enough, env.settings.default_no_signals_timeout) or publisher.cancels:
                return
            stage.signal_next()

    untested_spec202_blackbox_should_asynchronously_dispatch: NotSeen = NotSeen()

    @check("2.3")
    def required_spec203_blackbox_must_not_call_methods_on_subscription_or_publisher_in_on_complete(
        self, env: TestEnvironment
    ) -> None:
        """The subscriber calls neither `request` nor `cancel` inside `on_complete`."""
        self._stage(env).publisher.send_completion()

    @check("2.3")
    def required_spec203_blackbox_must_not_call_methods_on_subscription_or_publisher_in_on_error(
        self, env: TestEnvironment
    ) -> None:
        """The subscriber calls neither `request` nor `cancel` inside `on_error`."""
        self._stage(env).publisher.send_error(TckError())

    untested_spec204_blackbox_must_consider_the_subscription_as_cancelled_in_after_recieving_on_complete_or_on_error: NotSeen = NotSeen()  # noqa: E501

    @check("2.5")
    def required_spec205_blackbox_must_call_subscription_cancel_if_it_already_has_an_subscription_and_receives_another_on_subscribe_signal(  # noqa: E501
        self, env: TestEnvironment
    ) -> None:
        """A second subscription is cancelled."""
        stage = self._stage(env)
        stage.cancels_a_second_subscription()
        stage.publisher.send_completion()

    untested_spec206_blackbox_must_call_subscription_cancel_if_it_is_no_longer_valid: NotSeen = NotSeen()
    untested_spec207_blackbox_must_ensure_all_calls_on_its_subscription_take_place_from_the_same_thread_or_take_care_of_synchronization: NotSeen = NotSeen()  # noqa: E501
    untested_spec208_blackbox_must_be_prepared_to_receive_on_next_signals_after_having_called_subscription_cancel: NotSeen = NotSeen()  # noqa: E501

    @check("2.9")
    def required_spec209_blackbox_must_be_prepared_to_receive_an_on_complete_signal_with_preceding_request_call(
        self, env: TestEnvironment
    ) -> None:
        """`on_complete` after a request returns normally."""
        stage, _ = self._triggered(env)
        stage.publisher.send_completion()

    @check("2.9")
    def required_spec209_blackbox_must_be_prepared_to_receive_an_on_complete_signal_without_preceding_request_call(
        self, env: TestEnvironment
    ) -> None:
        """`on_complete` without a request returns normally."""
        self._stage(env).publisher.send_completion()

    @check("2.10")
    def required_spec210_blackbox_must_be_prepared_to_receive_an_on_error_signal_with_preceding_request_call(
        self, env: TestEnvironment
    ) -> None:
        """`on_error` after a request returns normally."""
        stage, _ = self._triggered(env)
        stage.publisher.send_error(TckError())

    @check("2.10")
    def required_spec210_blackbox_must_be_prepared_to_receive_an_on_error_signal_without_preceding_request_call(
        self, env: TestEnvironment
    ) -> None:
        """`on_error` without a request returns normally."""
        self._stage(env).publisher.send_error(TckError())

    untested_spec211_blackbox_must_make_sure_that_all_calls_on_its_methods_happen_before_the_processing_of_the_respective_events: NotSeen = NotSeen()  # noqa: E501
    untested_spec212_blackbox_must_not_call_on_subscribe_more_than_once_based_on_object_equality: NotSeen = NotSeen()
    untested_spec213_blackbox_failing_on_signal_invocation: NotSeen = NotSeen()

    @check("2.13")
    def required_spec213_blackbox_on_subscribe_must_throw_null_pointer_exception_when_parameters_are_null(
        self, env: TestEnvironment
    ) -> None:
        """`on_subscribe(None)` raises TypeError."""
        refuses_none_at_first(env, self._subscriber(env))

    @check("2.13")
    def required_spec213_blackbox_on_next_must_throw_null_pointer_exception_when_parameters_are_null(
        self, env: TestEnvironment
    ) -> None:
        """`on_next(None)` raises TypeError."""
        self._stage(env).must_refuse_none("on_next")

    @check("2.13")
    def required_spec213_blackbox_on_error_must_throw_null_pointer_exception_when_parameters_are_null(
        self, env: TestEnvironment
    ) -> None:
        """`on_error(None)` raises TypeError."""
        self._stage(env).must_refuse_none("on_error")

    untested_spec301_blackbox_must_not_be_called_outside_subscriber_context: NotSeen = NotSeen()
    untested_spec308_blackbox_request_must_register_given_number_elements_to_be_produced: NotSeen = NotSeen()
    untested_spec310_blackbox_request_may_synchronously_call_on_next_on_subscriber: NotSeen = NotSeen()
    untested_spec311_blackbox_request_may_synchronously_call_on_complete_or_on_error: NotSeen = NotSeen()
    untested_spec314_blackbox_cancel_may_cause_the_publisher_to_shutdown_if_no_other_subscription_exists: NotSeen = (
        NotSeen()
    )
    untested_spec315_blackbox_cancel_must_not_throw_exception_and_must_signal_on_error: NotSeen = NotSeen()
    untested_spec316_blackbox_request_must_not_throw_exception_and_must_on_error_the_subscriber: NotSeen = NotSeen()
