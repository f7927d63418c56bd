"""Is a subscriber conformant, seen from outside? The 26 checks of the original kit, under their names."""

from __future__ import annotations

from typing import TypeVar

from reactive_runtime.spec import Subscriber
from reactive_runtime.tck.environment import TestEnvironment
from reactive_runtime.tck.subscriber import ElementFactory, Stage, TckError, created, not_seen
from reactive_runtime.tck.verification import Skipped, check

__all__ = ["SubscriberBlackboxVerification"]

T = TypeVar("T")


class SubscriberBlackboxVerification(ElementFactory[T]):
    """Checks of a subscriber as it is."""

    def create_subscriber(self) -> Subscriber[T]:
        """A new subscriber, which requests by itself, or when `trigger_request` makes it.

        Returns:
            The subscriber. It has to be defined by the subclass.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define create_subscriber(self)")

    def trigger_request(self, subscriber: Subscriber[T]) -> None:
        """Make `subscriber` request something. By default it does nothing: the subscriber requests by itself.

        Args:
            subscriber: What `create_subscriber` made.
        """

    def _stage(self, env: TestEnvironment) -> Stage[T]:
        stage = Stage(env, self._elements(env))
        stage.subscribe(created(env, "create_subscriber()", self.create_subscriber))
        return stage

    def _triggered(self, env: TestEnvironment) -> tuple[Stage[T], int]:
        stage = self._stage(env)
        env.call("trigger_request(subscriber)", self.trigger_request, stage.subscriber)
        return stage, stage.publisher.expect_request("if it does not request by itself, define trigger_request")

    @check("2.1")
    def required_spec201_blackbox_must_signal_demand_via_subscription_request(self, env: TestEnvironment) -> None:
        """The subscriber requests, and gets the elements, up to 512 of them."""
        stage, requested = self._triggered(env)
        for _ in range(min(requested, 512)):
            if stage.publisher.cancels:
                break
            stage.signal_next()
        stage.publisher.send_completion()

    untested_spec202_blackbox_should_asynchronously_dispatch: Skipped = not_seen(
        "untested_spec202_blackbox_should_asynchronously_dispatch"
    )

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

    untested_spec204_blackbox_must_consider_the_subscription_as_cancelled_in_after_recieving_on_complete_or_on_error: Skipped = not_seen(  # noqa: E501
        "untested_spec204_blackbox_must_consider_the_subscription_as_cancelled_in_after_recieving_on_complete_or_on_error"
    )

    @check("2.5")
    def required_spec205_blackbox_must_call_subscription_cancel_if_it_already_has_an_subscription_and_receives_another_on_subscribe_signal(  # noqa: E501
        self, env: TestEnvironment
    ) -> None:
        """A second subscription is cancelled."""
        stage = self._stage(env)
        stage.cancels_a_second_subscription()
        stage.publisher.send_completion()

    untested_spec206_blackbox_must_call_subscription_cancel_if_it_is_no_longer_valid: Skipped = not_seen(
        "untested_spec206_blackbox_must_call_subscription_cancel_if_it_is_no_longer_valid"
    )
    untested_spec207_blackbox_must_ensure_all_calls_on_its_subscription_take_place_from_the_same_thread_or_take_care_of_synchronization: Skipped = not_seen(  # noqa: E501
        "untested_spec207_blackbox_must_ensure_all_calls_on_its_subscription_take_place_from_the_same_thread_or_take_care_of_synchronization"
    )
    untested_spec208_blackbox_must_be_prepared_to_receive_on_next_signals_after_having_called_subscription_cancel: Skipped = not_seen(  # noqa: E501
        "untested_spec208_blackbox_must_be_prepared_to_receive_on_next_signals_after_having_called_subscription_cancel"
    )

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

    untested_spec211_blackbox_must_make_sure_that_all_calls_on_its_methods_happen_before_the_processing_of_the_respective_events: Skipped = not_seen(  # noqa: E501
        "untested_spec211_blackbox_must_make_sure_that_all_calls_on_its_methods_happen_before_the_processing_of_the_respective_events"
    )
    untested_spec212_blackbox_must_not_call_on_subscribe_more_than_once_based_on_object_equality: Skipped = not_seen(
        "untested_spec212_blackbox_must_not_call_on_subscribe_more_than_once_based_on_object_equality"
    )
    untested_spec213_blackbox_failing_on_signal_invocation: Skipped = not_seen(
        "untested_spec213_blackbox_failing_on_signal_invocation"
    )

    @check("2.13")
    def required_spec213_blackbox_on_subscribe_must_throw_null_pointer_exception_when_parameters_are_null(
        self, env: TestEnvironment
    ) -> None:
        """`on_subscribe(None)` raises TypeError."""
        stage = Stage[T](env, self._elements(env))
        stage.publisher.subscriber = created(env, "create_subscriber()", self.create_subscriber)
        stage.must_refuse_none("on_subscribe")

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

    untested_spec301_blackbox_must_not_be_called_outside_subscriber_context: Skipped = not_seen(
        "untested_spec301_blackbox_must_not_be_called_outside_subscriber_context"
    )
    untested_spec308_blackbox_request_must_register_given_number_elements_to_be_produced: Skipped = not_seen(
        "untested_spec308_blackbox_request_must_register_given_number_elements_to_be_produced"
    )
    untested_spec310_blackbox_request_may_synchronously_call_on_next_on_subscriber: Skipped = not_seen(
        "untested_spec310_blackbox_request_may_synchronously_call_on_next_on_subscriber"
    )
    untested_spec311_blackbox_request_may_synchronously_call_on_complete_or_on_error: Skipped = not_seen(
        "untested_spec311_blackbox_request_may_synchronously_call_on_complete_or_on_error"
    )
    untested_spec314_blackbox_cancel_may_cause_the_publisher_to_shutdown_if_no_other_subscription_exists: Skipped = (
        not_seen("untested_spec314_blackbox_cancel_may_cause_the_publisher_to_shutdown_if_no_other_subscription_exists")
    )
    untested_spec315_blackbox_cancel_must_not_throw_exception_and_must_signal_on_error: Skipped = not_seen(
        "untested_spec315_blackbox_cancel_must_not_throw_exception_and_must_signal_on_error"
    )
    untested_spec316_blackbox_request_must_not_throw_exception_and_must_on_error_the_subscriber: Skipped = not_seen(
        "untested_spec316_blackbox_request_must_not_throw_exception_and_must_on_error_the_subscriber"
    )
