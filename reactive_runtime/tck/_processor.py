"""Is a processor conformant? It has to pass as a publisher, as a subscriber (4.1), and the checks of its own.

The original kit delegates to both verifications; this one inherits their checks, under their own names.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from reactive_runtime._spec import MAX_DEMAND, Processor, Publisher, Subscriber, Subscription
from reactive_runtime.tck._publisher.probes import ManualSubscriber
from reactive_runtime.tck._publisher.publisher_extra import LONG
from reactive_runtime.tck._publisher.publisher_verification import PublisherVerification
from reactive_runtime.tck._running.environment import TestEnvironment
from reactive_runtime.tck._running.failures import FACTORY, FactoryError, described, same, shown
from reactive_runtime.tck._subscriber.helper import HelperPublisher
from reactive_runtime.tck._subscriber.manual_publishers import (
    ManualPublisher,
    SubscriberPuppet,
    WhiteboxSubscriberProbe,
)
from reactive_runtime.tck._subscriber.subscriber import Stage, TckError
from reactive_runtime.tck._subscriber.whitebox import SubscriberWhiteboxVerification
from reactive_runtime.tck._verification import check

__all__ = ["IdentityProcessorVerification"]

T = TypeVar("T")


class IdentityProcessorVerification(PublisherVerification[T], SubscriberWhiteboxVerification[T]):
    """Checks of a processor that passes on each element as it is."""

    processor_buffer_size: int = 16
    """The argument for `create_identity_processor`."""

    max_supported_subscribers: int = MAX_DEMAND
    """How many subscribers a processor may have at once; checks that need more are skipped."""

    goes_on_without_subscribers: bool = False
    """Whether it keeps its subscription upstream when its last subscriber has left: more may come."""

    does_coordinated_emission: bool = False
    """Whether an element goes out only when every subscriber has requested one."""

    def create_identity_processor(self, buffer_size: int) -> Processor[T, T]:
        """A new processor that passes on each element as it is.

        Args:
            buffer_size: The most elements that it may buffer: `processor_buffer_size`.

        Returns:
            The processor. It has to be defined by the subclass.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define create_identity_processor(self, buffer_size)")

    def create_publisher(self, elements: int) -> Publisher[T]:
        """A new processor, subscribed to a helper publisher of so many elements, at most as many as checks look at.

        A processor may request all elements, and the helper signals inside of that request, which has to return.
        """
        processor = self._processor()
        self.create_helper_publisher(min(elements, LONG)).subscribe(processor)
        return processor

    def create_failed_publisher(self) -> Publisher[T] | None:
        """A new processor, subscribed to a helper publisher that fails at once."""
        return self.create_publisher_failing_after(0)

    def create_publisher_failing_after(self, elements: int) -> Publisher[T] | None:
        """A new processor, subscribed to a helper publisher that fails after `elements`."""
        processor = self._processor()
        HelperPublisher(elements, self.create_element, failure=TckError()).subscribe(processor)
        return processor

    def create_subscriber(self, probe: WhiteboxSubscriberProbe[T]) -> Subscriber[T]:
        """A new processor, with a subscriber that registers the signals that come through with the probe."""
        processor = self._processor()
        processor.subscribe(_Registering(probe))
        return processor

    def _processor(self) -> Processor[T, T]:
        made_by = f"create_identity_processor({self.processor_buffer_size})"
        try:
            processor: Any = self.create_identity_processor(self.processor_buffer_size)
        except Exception as error:
            raise FactoryError(f"{made_by} raised {described(error)}") from error
        methods = ("subscribe", "on_subscribe", "on_next", "on_error", "on_complete")
        missing = [name for name in methods if not callable(getattr(processor, name, None))]
        if missing:
            raise FactoryError(
                f"{made_by} returned {shown(processor)}, which is no Processor: it has no {', '.join(missing)}"
            )
        made: Processor[T, T] = processor
        return made

    # -- the processor itself ----------------------------------------------------------------------------------

    @check("1.4")
    def required_spec104_must_call_on_error_on_all_its_subscribers_if_it_encounters_a_non_recoverable_error(
        self, env: TestEnvironment
    ) -> None:
        """An error of the upstream reaches both subscribers, as it is."""
        self._needs_two_subscribers(env)
        setup = _TestSetup(self, env)
        one, two = setup.subscribe(may_fail=True), setup.subscribe(may_fail=True)
        one.request(1)
        if self.does_coordinated_emission:
            two.request(1)
        setup.publisher.expect_request("if it waits for all its subscribers, set does_coordinated_emission")
        element = setup.send_next()
        setup.expect(one, element)
        if self.does_coordinated_emission:
            setup.expect(two, element)
            two.request(1)
        one.request(1)
        self._both_fail(env, setup, one, two)

    def _both_fail(self, env: TestEnvironment, setup: _TestSetup[T], *subscribers: ManualSubscriber[T]) -> None:
        error = TckError()
        setup.publisher.send_error(error)
        for subscriber in subscribers:
            got = subscriber.expect_error(rule=env.rule)
            env.check(got is error, f"{subscriber.name} got on_error({shown(got)}), not the error of the upstream")

    @check("1.4")
    def extra_spec104_a_subscriber_that_comes_after_an_error_must_not_be_notified_of_completion(
        self, env: TestEnvironment
    ) -> None:
        """To a subscriber that comes after an error of the upstream, `on_error` is signalled."""
        setup = _TestSetup(self, env)
        early = setup.subscribe(may_fail=True)
        setup.publisher.send_error(TckError())
        early.expect_error()
        late = setup.subscribe(may_fail=True)
        if not late.ends:
            late.request(1)
        env.expect(late.has_ended, "no on_error came to a subscriber that came after the error", "1.4")
        env.check(not late.completions, "on_complete came to a subscriber that came after an error")

    @check("2.3")
    def extra_spec203_must_not_call_back_in_an_end_that_comes_before_its_subscribers(
        self, env: TestEnvironment
    ) -> None:
        """Each end comes from upstream before any subscriber: nothing is called in it, and a subscriber hears it."""
        for error in (None, TckError()):
            setup = _TestSetup(self, env)
            setup.publisher.send_end(error)
            late = setup.subscribe(may_fail=True)
            if not late.ends:
                late.request(1)
            rule = "1.5" if error is None else "1.4"
            env.expect(late.has_ended, "no end came to a subscriber that came after it", rule)

    @check("4.1")
    def extra_each_element_must_be_passed_on_as_it_is(self, env: TestEnvironment) -> None:
        """Each of ten elements of the upstream comes out, in order, and then the end."""
        setup = _TestSetup(self, env)
        one = setup.subscribe()
        one.request(20)
        requested = 0
        for number in range(10):
            if requested <= number:
                requested += setup.publisher.expect_request("twenty elements were requested downstream", "4.1")
            setup.expect(one, setup.send_next())
        setup.publisher.send_completion()
        one.expect_completion()

    @check("4.1")
    def extra_a_cancel_of_one_subscriber_must_not_cancel_upstream_for_another(self, env: TestEnvironment) -> None:
        """Of two subscribers one cancels: the subscription upstream is not cancelled, since the other one is there."""
        self._needs_two_subscribers(env)
        setup = _TestSetup(self, env)
        one, two = setup.subscribe(may_fail=True), setup.subscribe(may_fail=True)
        if one.ends or two.ends:
            env.skip("the processor accepts one subscriber at a time")
        one.cancel()
        two.request(1)
        env.silence(lambda: setup.publisher.cancels)
        env.check(not setup.publisher.cancels, "the subscription upstream was cancelled, and a subscriber is left")

    @check("2.6")
    def extra_spec206_must_cancel_upstream_when_its_last_subscriber_was_refused(self, env: TestEnvironment) -> None:
        """An invalid request of the only subscriber is answered, and the subscription upstream is cancelled."""
        setup = _TestSetup(self, env)
        one = setup.subscribe(may_fail=True)
        one.request(1)
        setup.publisher.expect_request("an element was requested downstream")
        one.request(0)
        one.expect_error(ValueError, "3.9")
        if not self.goes_on_without_subscribers and not setup.publisher.answered:
            setup.publisher.expect_cancelling()

    @check("2.5")
    def extra_spec205_must_cancel_a_second_subscription_before_it_has_a_subscriber(self, env: TestEnvironment) -> None:
        """A second subscription is cancelled, also where no subscriber has come yet."""
        setup = _TestSetup(self, env)
        setup.refuses_a_second_subscription()

    @check("4.2")
    def must_immediately_pass_on_on_error_events_received_from_its_upstream_to_its_downstream(
        self, env: TestEnvironment
    ) -> None:
        """An error of the upstream reaches a subscriber that has requested nothing."""
        setup = _TestSetup(self, env)
        self._both_fail(env, setup, setup.subscribe(may_fail=True))

    @check("4.1")
    def required_must_request_from_upstream_for_elements_that_have_been_requested_long_ago(
        self, env: TestEnvironment
    ) -> None:
        """The processor goes on requesting for 20 elements of the first subscriber, also when a second one comes."""
        self._needs_two_subscribers(env)
        setup = _TestSetup(self, env)
        one = setup.subscribe()
        one.request(20)
        requested = setup.publisher.expect_request(rule="4.1")
        for number in (1, 2):
            setup.expect(one, setup.send_next())
            if requested == number:
                requested += setup.publisher.expect_request("twenty elements were requested downstream", "4.1")
        two = setup.subscribe()
        if self.does_coordinated_emission:
            two.expect_none("it has requested nothing")
            two.request(1)
            element = setup.send_next()
            setup.expect(one, element)
            setup.expect(two, element)
        else:
            element = setup.send_next()
            setup.expect(one, element)
            two.expect_none("it has requested nothing")
            two.request(1)
            setup.expect(two, element)
        if requested == 3:
            setup.publisher.expect_request("twenty elements were requested downstream", "4.1")
        setup.publisher.send_completion()
        one.expect_completion()
        two.expect_completion()

    def _needs_two_subscribers(self, env: TestEnvironment) -> None:
        if self.max_supported_subscribers < 2:
            env.skip(f"needs 2 subscribers; max_supported_subscribers is {self.max_supported_subscribers}")


class _TestSetup(Generic[T]):
    """A processor between a publisher and subscribers of the kit."""

    def __init__(self, verification: IdentityProcessorVerification[T], env: TestEnvironment) -> None:
        self.env = env
        self._verification = verification
        self._elements = verification._elements(env)
        self._processor = env.call("create_identity_processor", verification._processor, rule=FACTORY)
        self.publisher = ManualPublisher[T](env)
        self.publisher.answers = True
        self.publisher.subscribe(self._processor)

    def subscribe(self, **how: Any) -> ManualSubscriber[T]:
        return self._verification._subscribe(self.env, self._processor, **how)

    def refuses_a_second_subscription(self) -> None:
        stage = Stage(self.env, self._elements)
        stage.publisher.subscriber = self._processor
        stage.cancels_a_second_subscription()

    def send_next(self) -> T:
        element = self._elements.next()
        self.publisher.send_next(element)
        return element

    def expect(self, subscriber: ManualSubscriber[T], element: T) -> None:
        got = subscriber.next()
        self.env.check(same(element, got), f"{subscriber.name} got {shown(got)}, where {shown(element)} was sent")


class _Registering:
    """A subscriber that registers the signals of a processor with a probe."""

    def __init__(self, probe: WhiteboxSubscriberProbe[Any]) -> None:
        self._probe = probe
        self._subscribed = False  # the thread that signals owns it; signals are serial (1.3)
        self.on_next = probe.register_on_next
        self.on_error = probe.register_on_error
        self.on_complete = probe.register_on_complete

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self._subscribed:
            subscription.cancel()
            return
        self._subscribed = True
        self._probe.register_on_subscribe(_SubscriptionPuppet(subscription))


class _SubscriptionPuppet(SubscriberPuppet):
    """The puppet of a subscription: it requests and cancels as the kit says."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    def trigger_request(self, elements: int) -> None:
        self._subscription.request(elements)

    def signal_cancel(self) -> None:
        self._subscription.cancel()
