"""Is a subscriber conformant? With a look inside (whitebox: it tells a probe what it receives), or without (blackbox).

The checks of the original kit, under their names: 27 and 26, of which most are declared there and can't be made; those
are skipped here, and say why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from reactive_runtime.spec import MAX_DEMAND, Publisher, Subscriber
from reactive_runtime.tck.helper import HelperPublisher
from reactive_runtime.tck.probes import ManualPublisher, ManualSubscriber, WhiteboxSubscriberProbe
from reactive_runtime.tck.trial import Trial, shown
from reactive_runtime.tck.verification import Verification, check, untested

__all__ = ["ElementFactory", "SubscriberBlackboxVerification", "SubscriberWhiteboxVerification", "TckError"]

T = TypeVar("T")

NOT_SEEN = {
    "2.2": "whether a subscriber is slow, and for whom, is not to be seen from outside",
    "2.4": "a subscription that counts as cancelled looks like one that is not used",
    "2.6": "only the subscriber knows whether it still needs its subscription",
    "2.7": "the order of calls from inside a subscriber is its own; RuleChecker judges it on recorded signals",
    "2.8": "whether a subscriber has cancelled can be made to happen with a probe only: see the whitebox check",
    "2.11": "what a subscriber does with a signal after its method has returned is not to be seen",
    "2.12": "it is a rule for publishers; every publisher check fails where on_subscribe comes twice",
    "2.13": "a subscriber can't be made to fail from outside",
    "3.1": "from which context a subscriber calls is not to be seen",
    "3.8": "how much a subscriber requests can be made to happen with a probe only: see the whitebox check",
    "3.10": "it is a freedom of publishers, and no duty of a subscriber",
    "3.11": "it is a freedom of publishers, and no duty of a subscriber",
    "3.14": "it is a freedom of publishers, and no duty of a subscriber",
    "3.15": "it is a duty of subscriptions; every publisher check fails where cancel raises",
    "3.16": "it is a duty of subscriptions; every publisher check fails where request raises",
}


class TckError(RuntimeError):
    """What the kit fails a stream with."""

    def __init__(self) -> None:
        super().__init__("the kit's own error: a stream fails on purpose")


def _untested(name: str) -> Callable[[Verification], None]:
    digits = name.split("_")[1].removeprefix("spec")
    rule = f"{digits[0]}.{int(digits[1:])}"
    return untested(rule, name, NOT_SEEN[rule])


class ElementFactory(Verification, Generic[T]):
    """Where the elements come from that the kit signals."""

    def create_element(self, number: int) -> T:
        """The `number`-th element, different from all others; an int, if it is not overridden."""
        element: Any = number
        return element  # type: ignore[no-any-return]

    def create_helper_publisher(self, elements: int) -> Publisher[T]:
        """A conformant publisher of `create_element(0)`, `create_element(1)`, …; of MAX_DEMAND: without end."""
        return HelperPublisher(elements, self.create_element)

    def _elements(self, trial: Trial) -> ManualSubscriber[T]:
        """One of ours, to take elements from."""
        subscriber = ManualSubscriber[T](trial)
        subscriber.name = "elements"
        trial.call(
            "create_helper_publisher().subscribe", self.create_helper_publisher(MAX_DEMAND).subscribe, subscriber
        )
        return subscriber


class _Stage(Generic[T]):
    """A subscriber under test, subscribed to a publisher of ours."""

    def __init__(self, trial: Trial, elements: ManualSubscriber[T]) -> None:
        self.trial = trial
        self.publisher = ManualPublisher[T](trial)
        self._elements = elements

    def subscribe(self, subscriber: Subscriber[T]) -> None:
        self.publisher.subscribe(subscriber)

    @property
    def subscriber(self) -> Subscriber[T]:
        assert self.publisher.subscriber is not None
        return self.publisher.subscriber

    def signal_next(self) -> T:
        element = self._elements.request_next()
        self.publisher.send_next(element)
        return element

    def must_refuse_none(self, method: str) -> None:
        """2.13: `method(None)` raises TypeError, and nothing else does."""
        self.trial.note(f"publisher: {method}(None) ->")
        with self.trial.calling(f"{method}(None)"):
            try:
                getattr(self.subscriber, method)(None)
            except TypeError:
                return
            except Exception as error:
                self.trial.fail(f"{method}(None) raised {type(error).__name__}, where TypeError is due")
        self.trial.fail(f"{method}(None) did not raise TypeError")

    def cancels_a_second_subscription(self) -> None:
        second = _SecondSubscription(self.trial)
        self.trial.call("on_subscribe(a second subscription)", self.subscriber.on_subscribe, second)
        self.trial.happens(lambda: second.cancelled)
        self.trial.check(second.cancelled, "the second subscription was not cancelled")


class _SecondSubscription:
    """Has to be cancelled, and not to be asked for anything."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self.cancelled = False  # the trial's lock

    def request(self, n: int, /) -> None:
        self._trial.fault(f"request({n!r}) was called on the second subscription")

    def cancel(self) -> None:
        with self._trial.lock:
            self._trial.note("second subscription: <- cancel()")
            self.cancelled = True


def _created(trial: Trial, text: str, factory: Callable[..., Any], *arguments: Any) -> Any:
    """What `factory` made, if it is a subscriber."""
    made = trial.call(text, factory, *arguments)
    if made is None:
        trial.fail(f"{text} returned None, where a Subscriber is needed")
    methods = ("on_subscribe", "on_next", "on_error", "on_complete")
    missing = [name for name in methods if not callable(getattr(made, name, None))]
    if missing:
        trial.fail(f"{text} returned {shown(made)}, which is no Subscriber: it has no {', '.join(missing)}")
    return made


class SubscriberWhiteboxVerification(ElementFactory[T]):
    """Checks of a subscriber that can be told what to do, and tells what it received."""

    def create_subscriber(self, probe: WhiteboxSubscriberProbe[T]) -> Subscriber[T]:
        """A new subscriber that tells `probe` each signal it gets, and gives it a puppet in `on_subscribe`."""
        raise NotImplementedError(f"{type(self).__name__} has to define create_subscriber(self, probe)")

    def _stage(self, trial: Trial) -> tuple[_Stage[T], WhiteboxSubscriberProbe[T]]:
        stage, probe = _Stage(trial, self._elements(trial)), WhiteboxSubscriberProbe[T](trial)
        stage.subscribe(_created(trial, "create_subscriber(probe)", self.create_subscriber, probe))
        probe.puppet()
        return stage, probe

    @check("2.1")
    def required_exercise_whitebox_happy_path(self, trial: Trial) -> None:
        stage, probe = self._stage(trial)
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
    def required_spec201_must_signal_demand_via_subscription_request(self, trial: Trial) -> None:
        stage, probe = self._stage(trial)
        probe.trigger_request(1)
        stage.publisher.expect_request("a subscriber without demand receives nothing")
        stage.signal_next()

    untested_spec202_should_asynchronously_dispatch = _untested("untested_spec202_should_asynchronously_dispatch")

    @check("2.3")
    def required_spec203_must_not_call_methods_on_subscription_or_publisher_in_on_complete(self, trial: Trial) -> None:
        stage, _ = self._stage(trial)
        stage.publisher.send_completion()

    @check("2.3")
    def required_spec203_must_not_call_methods_on_subscription_or_publisher_in_on_error(self, trial: Trial) -> None:
        stage, _ = self._stage(trial)
        stage.publisher.send_error(TckError())

    untested_spec204_must_consider_the_subscription_as_cancelled_in_after_recieving_on_complete_or_on_error = _untested(
        "untested_spec204_must_consider_the_subscription_as_cancelled_in_after_recieving_on_complete_or_on_error"
    )

    @check("2.5")
    def required_spec205_must_call_subscription_cancel_if_it_already_has_an_subscription_and_receives_another_on_subscribe_signal(  # noqa: E501
        self, trial: Trial
    ) -> None:
        stage, _ = self._stage(trial)
        stage.cancels_a_second_subscription()

    untested_spec206_must_call_subscription_cancel_if_it_is_no_longer_valid = _untested(
        "untested_spec206_must_call_subscription_cancel_if_it_is_no_longer_valid"
    )
    untested_spec207_must_ensure_all_calls_on_its_subscription_take_place_from_the_same_thread_or_take_care_of_synchronization = _untested(  # noqa: E501
        "untested_spec207_must_ensure_all_calls_on_its_subscription_take_place_from_the_same_thread_or_take_care_of_synchronization"
    )

    @check("2.8")
    def required_spec208_must_be_prepared_to_receive_on_next_signals_after_having_called_subscription_cancel(
        self, trial: Trial
    ) -> None:
        stage, probe = self._stage(trial)
        probe.trigger_request(1)
        stage.publisher.expect_request()
        probe.signal_cancel()
        stage.publisher.expect_cancelling()
        stage.signal_next()
        probe.trigger_request(1)
        probe.trigger_request(1)
        trial.verify()

    @check("2.9")
    def required_spec209_must_be_prepared_to_receive_an_on_complete_signal_with_preceding_request_call(
        self, trial: Trial
    ) -> None:
        stage, probe = self._stage(trial)
        probe.trigger_request(1)
        stage.publisher.send_completion()
        probe.expect_completion()

    @check("2.9")
    def required_spec209_must_be_prepared_to_receive_an_on_complete_signal_without_preceding_request_call(
        self, trial: Trial
    ) -> None:
        stage, probe = self._stage(trial)
        stage.publisher.send_completion()
        probe.expect_completion()

    @check("2.10")
    def required_spec210_must_be_prepared_to_receive_an_on_error_signal_with_preceding_request_call(
        self, trial: Trial
    ) -> None:
        stage, probe = self._stage(trial)
        probe.trigger_request(1)
        probe.trigger_request(1)
        error = TckError()
        stage.publisher.send_error(error)
        probe.expect_error(error)

    @check("2.10")
    def required_spec210_must_be_prepared_to_receive_an_on_error_signal_without_preceding_request_call(
        self, trial: Trial
    ) -> None:
        stage, probe = self._stage(trial)
        error = TckError()
        stage.publisher.send_error(error)
        probe.expect_error(error)

    untested_spec211_must_make_sure_that_all_calls_on_its_methods_happen_before_the_processing_of_the_respective_events = _untested(  # noqa: E501
        "untested_spec211_must_make_sure_that_all_calls_on_its_methods_happen_before_the_processing_of_the_respective_events"
    )
    untested_spec212_must_not_call_on_subscribe_more_than_once_based_on_object_equality_spec_violation = _untested(
        "untested_spec212_must_not_call_on_subscribe_more_than_once_based_on_object_equality_spec_violation"
    )
    untested_spec213_failing_on_signal_invocation = _untested("untested_spec213_failing_on_signal_invocation")

    @check("2.13")
    def required_spec213_on_subscribe_must_throw_null_pointer_exception_when_parameters_are_null(
        self, trial: Trial
    ) -> None:
        stage, _ = self._stage(trial)
        stage.must_refuse_none("on_subscribe")

    @check("2.13")
    def required_spec213_on_next_must_throw_null_pointer_exception_when_parameters_are_null(self, trial: Trial) -> None:
        stage, _ = self._stage(trial)
        stage.must_refuse_none("on_next")

    @check("2.13")
    def required_spec213_on_error_must_throw_null_pointer_exception_when_parameters_are_null(
        self, trial: Trial
    ) -> None:
        stage, _ = self._stage(trial)
        stage.must_refuse_none("on_error")

    untested_spec301_must_not_be_called_outside_subscriber_context = _untested(
        "untested_spec301_must_not_be_called_outside_subscriber_context"
    )

    @check("3.8")
    def required_spec308_request_must_register_given_number_elements_to_be_produced(self, trial: Trial) -> None:
        stage, probe = self._stage(trial)
        probe.trigger_request(2)
        requested = stage.publisher.expect_request()
        probe.expect_next(stage.signal_next())
        if requested < 2:
            stage.publisher.expect_request("two elements were to be requested")
        probe.expect_next(stage.signal_next())
        probe.expect_none()
        probe.trigger_request(3)
        trial.verify()

    untested_spec310_request_may_synchronously_call_on_next_on_subscriber = _untested(
        "untested_spec310_request_may_synchronously_call_on_next_on_subscriber"
    )
    untested_spec311_request_may_synchronously_call_on_complete_or_on_error = _untested(
        "untested_spec311_request_may_synchronously_call_on_complete_or_on_error"
    )
    untested_spec314_cancel_may_cause_the_publisher_to_shutdown_if_no_other_subscription_exists = _untested(
        "untested_spec314_cancel_may_cause_the_publisher_to_shutdown_if_no_other_subscription_exists"
    )
    untested_spec315_cancel_must_not_throw_exception_and_must_signal_on_error = _untested(
        "untested_spec315_cancel_must_not_throw_exception_and_must_signal_on_error"
    )
    untested_spec316_request_must_not_throw_exception_and_must_on_error_the_subscriber = _untested(
        "untested_spec316_request_must_not_throw_exception_and_must_on_error_the_subscriber"
    )


class SubscriberBlackboxVerification(ElementFactory[T]):
    """Checks of a subscriber as it is."""

    def create_subscriber(self) -> Subscriber[T]:
        """A new subscriber, which requests by itself, or when `trigger_request` says so."""
        raise NotImplementedError(f"{type(self).__name__} has to define create_subscriber(self)")

    def trigger_request(self, subscriber: Subscriber[T]) -> None:
        """Make `subscriber` request something; nothing, if it does so by itself."""

    def _stage(self, trial: Trial) -> _Stage[T]:
        stage = _Stage(trial, self._elements(trial))
        stage.subscribe(_created(trial, "create_subscriber()", self.create_subscriber))
        return stage

    def _triggered(self, trial: Trial) -> tuple[_Stage[T], int]:
        stage = self._stage(trial)
        trial.call("trigger_request(subscriber)", self.trigger_request, stage.subscriber)
        return stage, stage.publisher.expect_request("if it does not request by itself, define trigger_request")

    @check("2.1")
    def required_spec201_blackbox_must_signal_demand_via_subscription_request(self, trial: Trial) -> None:
        stage, requested = self._triggered(trial)
        for _ in range(min(requested, 512)):
            if stage.publisher.cancels:
                break
            stage.signal_next()
        stage.publisher.send_completion()

    untested_spec202_blackbox_should_asynchronously_dispatch = _untested(
        "untested_spec202_blackbox_should_asynchronously_dispatch"
    )

    @check("2.3")
    def required_spec203_blackbox_must_not_call_methods_on_subscription_or_publisher_in_on_complete(
        self, trial: Trial
    ) -> None:
        self._stage(trial).publisher.send_completion()

    @check("2.3")
    def required_spec203_blackbox_must_not_call_methods_on_subscription_or_publisher_in_on_error(
        self, trial: Trial
    ) -> None:
        self._stage(trial).publisher.send_error(TckError())

    untested_spec204_blackbox_must_consider_the_subscription_as_cancelled_in_after_recieving_on_complete_or_on_error = _untested(  # noqa: E501
        "untested_spec204_blackbox_must_consider_the_subscription_as_cancelled_in_after_recieving_on_complete_or_on_error"
    )

    @check("2.5")
    def required_spec205_blackbox_must_call_subscription_cancel_if_it_already_has_an_subscription_and_receives_another_on_subscribe_signal(  # noqa: E501
        self, trial: Trial
    ) -> None:
        stage = self._stage(trial)
        stage.cancels_a_second_subscription()
        stage.publisher.send_completion()

    untested_spec206_blackbox_must_call_subscription_cancel_if_it_is_no_longer_valid = _untested(
        "untested_spec206_blackbox_must_call_subscription_cancel_if_it_is_no_longer_valid"
    )
    untested_spec207_blackbox_must_ensure_all_calls_on_its_subscription_take_place_from_the_same_thread_or_take_care_of_synchronization = _untested(  # noqa: E501
        "untested_spec207_blackbox_must_ensure_all_calls_on_its_subscription_take_place_from_the_same_thread_or_take_care_of_synchronization"
    )
    untested_spec208_blackbox_must_be_prepared_to_receive_on_next_signals_after_having_called_subscription_cancel = _untested(  # noqa: E501
        "untested_spec208_blackbox_must_be_prepared_to_receive_on_next_signals_after_having_called_subscription_cancel"
    )

    @check("2.9")
    def required_spec209_blackbox_must_be_prepared_to_receive_an_on_complete_signal_with_preceding_request_call(
        self, trial: Trial
    ) -> None:
        stage, _ = self._triggered(trial)
        stage.publisher.send_completion()

    @check("2.9")
    def required_spec209_blackbox_must_be_prepared_to_receive_an_on_complete_signal_without_preceding_request_call(
        self, trial: Trial
    ) -> None:
        self._stage(trial).publisher.send_completion()

    @check("2.10")
    def required_spec210_blackbox_must_be_prepared_to_receive_an_on_error_signal_with_preceding_request_call(
        self, trial: Trial
    ) -> None:
        stage, _ = self._triggered(trial)
        stage.publisher.send_error(TckError())

    @check("2.10")
    def required_spec210_blackbox_must_be_prepared_to_receive_an_on_error_signal_without_preceding_request_call(
        self, trial: Trial
    ) -> None:
        self._stage(trial).publisher.send_error(TckError())

    untested_spec211_blackbox_must_make_sure_that_all_calls_on_its_methods_happen_before_the_processing_of_the_respective_events = _untested(  # noqa: E501
        "untested_spec211_blackbox_must_make_sure_that_all_calls_on_its_methods_happen_before_the_processing_of_the_respective_events"
    )
    untested_spec212_blackbox_must_not_call_on_subscribe_more_than_once_based_on_object_equality = _untested(
        "untested_spec212_blackbox_must_not_call_on_subscribe_more_than_once_based_on_object_equality"
    )
    untested_spec213_blackbox_failing_on_signal_invocation = _untested(
        "untested_spec213_blackbox_failing_on_signal_invocation"
    )

    @check("2.13")
    def required_spec213_blackbox_on_subscribe_must_throw_null_pointer_exception_when_parameters_are_null(
        self, trial: Trial
    ) -> None:
        stage = _Stage[T](trial, self._elements(trial))
        stage.publisher.subscriber = _created(trial, "create_subscriber()", self.create_subscriber)
        stage.must_refuse_none("on_subscribe")

    @check("2.13")
    def required_spec213_blackbox_on_next_must_throw_null_pointer_exception_when_parameters_are_null(
        self, trial: Trial
    ) -> None:
        self._stage(trial).must_refuse_none("on_next")

    @check("2.13")
    def required_spec213_blackbox_on_error_must_throw_null_pointer_exception_when_parameters_are_null(
        self, trial: Trial
    ) -> None:
        self._stage(trial).must_refuse_none("on_error")

    untested_spec301_blackbox_must_not_be_called_outside_subscriber_context = _untested(
        "untested_spec301_blackbox_must_not_be_called_outside_subscriber_context"
    )
    untested_spec308_blackbox_request_must_register_given_number_elements_to_be_produced = _untested(
        "untested_spec308_blackbox_request_must_register_given_number_elements_to_be_produced"
    )
    untested_spec310_blackbox_request_may_synchronously_call_on_next_on_subscriber = _untested(
        "untested_spec310_blackbox_request_may_synchronously_call_on_next_on_subscriber"
    )
    untested_spec311_blackbox_request_may_synchronously_call_on_complete_or_on_error = _untested(
        "untested_spec311_blackbox_request_may_synchronously_call_on_complete_or_on_error"
    )
    untested_spec314_blackbox_cancel_may_cause_the_publisher_to_shutdown_if_no_other_subscription_exists = _untested(
        "untested_spec314_blackbox_cancel_may_cause_the_publisher_to_shutdown_if_no_other_subscription_exists"
    )
    untested_spec315_blackbox_cancel_must_not_throw_exception_and_must_signal_on_error = _untested(
        "untested_spec315_blackbox_cancel_must_not_throw_exception_and_must_signal_on_error"
    )
    untested_spec316_blackbox_request_must_not_throw_exception_and_must_on_error_the_subscriber = _untested(
        "untested_spec316_blackbox_request_must_not_throw_exception_and_must_on_error_the_subscriber"
    )
