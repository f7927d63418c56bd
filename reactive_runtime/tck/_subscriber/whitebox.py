"""Is a subscriber conformant, seen from inside? The 27 checks of the original kit, with a probe, under their names."""

from __future__ import annotations

from typing import TypeVar

from reactive_runtime._spec import Subscriber
from reactive_runtime.tck._running.environment import TestEnvironment
from reactive_runtime.tck._subscriber.manual_publishers import WhiteboxSubscriberProbe
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

__all__ = ["SubscriberWhiteboxVerification"]

T = TypeVar("T")


class SubscriberWhiteboxVerification(ElementFactory[T]):
    """Checks of a subscriber that does what the kit says, and registers with a probe what it received."""

    def create_subscriber(self, probe: WhiteboxSubscriberProbe[T]) -> Subscriber[T]:
        """A new subscriber that registers with `probe` each signal it gets.

        Args:
            probe: The subscriber calls its `register_on_subscribe` with a puppet in `on_subscribe`, and its
                `register_on_next`, `register_on_error` and `register_on_complete` in the other signals.

        Returns:
            The subscriber. It has to be defined by the subclass.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define create_subscriber(self, probe)")

    def _subscriber(self, env: TestEnvironment, probe: WhiteboxSubscriberProbe[T]) -> Subscriber[T]:
        return created(env, "create_subscriber(probe)", self.create_subscriber, probe)

    def _stage(self, env: TestEnvironment) -> tuple[Stage[T], WhiteboxSubscriberProbe[T]]:
        stage, probe = Stage(env, self._elements(env)), WhiteboxSubscriberProbe[T](env)
        stage.subscribe(self._subscriber(env, probe))
        probe.puppet()
        return stage, probe

    @check("2.1")
    def required_exercise_whitebox_happy_path(self, env: TestEnvironment) -> None:
        """The subscriber requests, gets two elements, and cancels, as the kit says."""
        stage, probe = self._stage(env)
        probe.trigger_request(1)
        probe.trigger_request(1)
        requested = stage.publisher.expect_request()
        probe.expect_next(stage.signal_next())
        probe.trigger_request(1)
        if requested == 1:
            stage.publisher.expect_request()
        probe.expect_next(stage.signal_next())
        probe.signal_cancel()
        stage.publisher.expect_cancelling()

    @check("2.1")
    def required_spec201_must_signal_demand_via_subscription_request(self, env: TestEnvironment) -> None:
        """The subscriber requests, and gets an element."""
        stage, probe = self._stage(env)
        probe.trigger_request(1)
        stage.publisher.expect_request("a subscriber without demand receives nothing")
        stage.signal_next()

    @check("2.13")
    def extra_spec213_must_return_normally_from_every_signal(self, env: TestEnvironment) -> None:
        """Of ten elements, every second one on another thread, each is registered; then the end is, on one more."""
        stage, probe = self._stage(env)
        probe.trigger_request(10)
        for _ in range(5):
            probe.expect_next(stage.signal_next())
            probe.expect_next(stage.signal_next_elsewhere())
        env.elsewhere(stage.publisher.send_completion)
        probe.expect_completion()

    @check("2.13")
    def extra_spec213_must_return_normally_from_signals_inside_its_own_request(self, env: TestEnvironment) -> None:
        """A publisher may signal inside `request` (3.10, 3.11): three elements and each end are registered."""
        elements = [self.create_element(number) for number in range(3)]
        for error in (None, TckError()):
            probe = WhiteboxSubscriberProbe[T](env)
            subscriber = self._subscriber(env, probe)
            signals_inside_request(env, subscriber, elements, error)
            probe.trigger_request(4)
            if error is not None:  # which may come before elements that are buffered
                probe.expect_error(error)
                continue
            for element in elements:
                probe.expect_next(element)
            probe.expect_completion()

    @check("2.13")
    def extra_spec213_must_refuse_none_after_elements_have_come(self, env: TestEnvironment) -> None:
        """After three elements, `on_next(None)` and `on_error(None)` raise TypeError."""
        stage, probe = self._stage(env)
        probe.trigger_request(5)
        _passes(stage, probe, 3)
        stage.must_refuse_none("on_next")
        stage.must_refuse_none("on_error")

    @check("2.13")
    def extra_spec213_must_refuse_none_for_its_first_subscription(self, env: TestEnvironment) -> None:
        """Before any other signal, `on_subscribe(None)` raises TypeError."""
        probe = WhiteboxSubscriberProbe[T](env)
        refuses_none_at_first(env, self._subscriber(env, probe))

    @check("2.3")
    def extra_spec203_must_not_call_back_in_on_complete_after_elements(self, env: TestEnvironment) -> None:
        """The subscriber calls neither `request` nor `cancel` inside an `on_complete` that follows elements."""
        stage, probe = self._stage(env)
        probe.trigger_request(3)
        _passes(stage, probe, 2)
        stage.publisher.send_completion()
        probe.expect_completion()

    @check("2.3")
    def extra_spec203_must_not_call_back_in_on_error_after_elements(self, env: TestEnvironment) -> None:
        """The subscriber calls neither `request` nor `cancel` inside an `on_error` that follows elements."""
        stage, probe = self._stage(env)
        probe.trigger_request(3)
        _passes(stage, probe, 2)
        error = TckError()
        stage.publisher.send_error(error)
        probe.expect_error(error)

    @check("2.5")
    def extra_spec205_must_keep_its_subscription_when_a_second_one_comes_later(self, env: TestEnvironment) -> None:
        """After an element a second subscription is cancelled, and the first one goes on."""
        stage, probe = self._stage(env)
        probe.trigger_request(2)
        probe.expect_next(stage.signal_next())
        stage.cancels_a_second_subscription()
        probe.expect_next(stage.signal_next())
        env.check(not stage.publisher.cancels, "the first subscription was cancelled")

    @check("2.8")
    def extra_spec208_must_be_prepared_for_signals_after_a_cancel_at_a_later_element(
        self, env: TestEnvironment
    ) -> None:
        """After three elements and a cancel, an element and each end are taken without an error."""
        for error in (None, TckError()):
            stage, probe = self._stage(env)
            probe.trigger_request(10)
            _passes(stage, probe, 3)
            probe.signal_cancel()
            stage.publisher.expect_cancelling()
            if sum(stage.publisher.requests) > stage.publisher.sent:  # else none may come (1.1)
                stage.signal_next()
            stage.publisher.send_end(error)
            env.verify()

    untested_spec202_should_asynchronously_dispatch: NotSeen = NotSeen()

    @check("2.3")
    def required_spec203_must_not_call_methods_on_subscription_or_publisher_in_on_complete(
        self, env: TestEnvironment
    ) -> None:
        """The subscriber calls neither `request` nor `cancel` inside `on_complete`."""
        stage, _ = self._stage(env)
        stage.publisher.send_completion()

    @check("2.3")
    def required_spec203_must_not_call_methods_on_subscription_or_publisher_in_on_error(
        self, env: TestEnvironment
    ) -> None:
        """The subscriber calls neither `request` nor `cancel` inside `on_error`."""
        stage, _ = self._stage(env)
        stage.publisher.send_error(TckError())

    untested_spec204_must_consider_the_subscription_as_cancelled_in_after_recieving_on_complete_or_on_error: NotSeen = (
        NotSeen()
    )

    @check("2.5")
    def required_spec205_must_call_subscription_cancel_if_it_already_has_an_subscription_and_receives_another_on_subscribe_signal(  # noqa: E501
        self, env: TestEnvironment
    ) -> None:
        """A second subscription is cancelled."""
        stage, _ = self._stage(env)
        stage.cancels_a_second_subscription()

    untested_spec206_must_call_subscription_cancel_if_it_is_no_longer_valid: NotSeen = NotSeen()
    untested_spec207_must_ensure_all_calls_on_its_subscription_take_place_from_the_same_thread_or_take_care_of_synchronization: NotSeen = NotSeen()  # noqa: E501

    @check("2.8")
    def required_spec208_must_be_prepared_to_receive_on_next_signals_after_having_called_subscription_cancel(
        self, env: TestEnvironment
    ) -> None:
        """An element that comes after the cancel is taken without an error."""
        stage, probe = self._stage(env)
        probe.trigger_request(1)
        stage.publisher.expect_request()
        probe.signal_cancel()
        stage.publisher.expect_cancelling()
        stage.signal_next()
        probe.trigger_request(1)
        probe.trigger_request(1)
        env.verify()

    @check("2.9")
    def required_spec209_must_be_prepared_to_receive_an_on_complete_signal_with_preceding_request_call(
        self, env: TestEnvironment
    ) -> None:
        """`on_complete` after a request is registered."""
        stage, probe = self._stage(env)
        probe.trigger_request(1)
        stage.publisher.send_completion()
        probe.expect_completion()

    @check("2.9")
    def required_spec209_must_be_prepared_to_receive_an_on_complete_signal_without_preceding_request_call(
        self, env: TestEnvironment
    ) -> None:
        """`on_complete` without a request is registered."""
        stage, probe = self._stage(env)
        stage.publisher.send_completion()
        probe.expect_completion()

    @check("2.10")
    def required_spec210_must_be_prepared_to_receive_an_on_error_signal_with_preceding_request_call(
        self, env: TestEnvironment
    ) -> None:
        """`on_error` after a request is registered."""
        stage, probe = self._stage(env)
        probe.trigger_request(1)
        probe.trigger_request(1)
        error = TckError()
        stage.publisher.send_error(error)
        probe.expect_error(error)

    @check("2.10")
    def required_spec210_must_be_prepared_to_receive_an_on_error_signal_without_preceding_request_call(
        self, env: TestEnvironment
    ) -> None:
        """`on_error` without a request is registered."""
        stage, probe = self._stage(env)
        error = TckError()
        stage.publisher.send_error(error)
        probe.expect_error(error)

    untested_spec211_must_make_sure_that_all_calls_on_its_methods_happen_before_the_processing_of_the_respective_events: NotSeen = NotSeen()  # noqa: E501
    untested_spec212_must_not_call_on_subscribe_more_than_once_based_on_object_equality_spec_violation: NotSeen = (
        NotSeen()
    )
    untested_spec213_failing_on_signal_invocation: NotSeen = NotSeen()

    @check("2.13")
    def required_spec213_on_subscribe_must_throw_null_pointer_exception_when_parameters_are_null(
        self, env: TestEnvironment
    ) -> None:
        """`on_subscribe(None)` raises TypeError."""
        stage, _ = self._stage(env)
        stage.must_refuse_none("on_subscribe")

    @check("2.13")
    def required_spec213_on_next_must_throw_null_pointer_exception_when_parameters_are_null(
        self, env: TestEnvironment
    ) -> None:
        """`on_next(None)` raises TypeError."""
        stage, _ = self._stage(env)
        stage.must_refuse_none("on_next")

    @check("2.13")
    def required_spec213_on_error_must_throw_null_pointer_exception_when_parameters_are_null(
        self, env: TestEnvironment
    ) -> None:
        """`on_error(None)` raises TypeError."""
        stage, _ = self._stage(env)
        stage.must_refuse_none("on_error")

    untested_spec301_must_not_be_called_outside_subscriber_context: NotSeen = NotSeen()

    @check("3.8")
    def required_spec308_request_must_register_given_number_elements_to_be_produced(self, env: TestEnvironment) -> None:
        """A request of two reaches the publisher, at once or in parts, and both elements are registered."""
        stage, probe = self._stage(env)
        probe.trigger_request(2)
        requested = stage.publisher.expect_request()
        probe.expect_next(stage.signal_next())
        if requested < 2:
            stage.publisher.expect_request("two elements were to be requested", "3.8")
        probe.expect_next(stage.signal_next())
        probe.expect_none()
        probe.trigger_request(3)
        env.verify()

    untested_spec310_request_may_synchronously_call_on_next_on_subscriber: NotSeen = NotSeen()
    untested_spec311_request_may_synchronously_call_on_complete_or_on_error: NotSeen = NotSeen()
    untested_spec314_cancel_may_cause_the_publisher_to_shutdown_if_no_other_subscription_exists: NotSeen = NotSeen()
    untested_spec315_cancel_must_not_throw_exception_and_must_signal_on_error: NotSeen = NotSeen()
    untested_spec316_request_must_not_throw_exception_and_must_on_error_the_subscriber: NotSeen = NotSeen()


def _passes(stage: Stage[T], probe: WhiteboxSubscriberProbe[T], elements: int) -> None:
    """So many elements are signalled, and registered."""
    for _ in range(elements):
        probe.expect_next(stage.signal_next())
