"""Broken implementations, each in one place, and the check that has to catch it.

The name of the class and its first line are what the table in docs/tck-evidence.md shows.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from sinks import until
from small_publisher import Publisher, Signal, Subscription

from reactive_runtime import MAX_DEMAND
from reactive_runtime.tck import (
    IdentityProcessorVerification,
    PublisherVerification,
    SubscriberBlackboxVerification,
    SubscriberWhiteboxVerification,
    Verification,
)
from tck import sound


@dataclass(frozen=True)
class Mutant:
    """One broken implementation."""

    name: str
    says: str
    check: str
    make: Callable[[], Verification]
    rule: str
    """What the failure names; "" where it is the rule of the check."""


MUTANTS: list[Mutant] = []

FAILURE = OSError("broken on purpose")


def breaks(*checks: str, rule: str = "") -> Callable[[type], type]:
    """Register a class for each of `checks`; how the kit makes one follows from what it derives from.

    `rule`: the one that it breaks, where the check is about another.
    """

    def register(broken: type) -> type:
        for check in checks:
            says = (broken.__doc__ or "").strip().splitlines()[0].rstrip(".")
            MUTANTS.append(Mutant(broken.__name__, says, check, partial(verification_of, broken), rule))
        return broken

    return register


def publisher_of(subscription: type[Subscription]) -> type[Publisher]:
    """A class of publishers with these subscriptions."""
    return type(subscription.__name__, (Publisher,), {"subscription": subscription})


def verification_of(broken: type) -> Verification:
    """A verification of `broken`."""
    if issubclass(broken, Verification):
        return broken()
    if issubclass(broken, Subscription):
        broken = publisher_of(broken)
    if issubclass(broken, sound.WhiteboxSubscriber):
        return Whitebox(broken)
    if issubclass(broken, sound.BlackboxSubscriber):
        return Blackbox(broken)
    if issubclass(broken, sound.Processor):
        return Processors(broken)
    return Publishers(broken)


class Publishers(PublisherVerification[Any]):
    def __init__(self, publisher: Any = Publisher) -> None:
        self.publisher = publisher

    def create_publisher(self, elements: int) -> Any:
        return self.publisher(elements)

    def create_failed_publisher(self) -> Any:
        return self.publisher(0, FAILURE)

    def create_publisher_failing_after(self, elements: int) -> Any:
        return self.publisher(elements, FAILURE)


class Whitebox(SubscriberWhiteboxVerification[Any]):
    def __init__(self, subscriber: Any = sound.WhiteboxSubscriber) -> None:
        self.subscriber = subscriber

    def create_subscriber(self, probe: Any) -> Any:
        return self.subscriber(probe)


class Blackbox(SubscriberBlackboxVerification[Any]):
    def __init__(self, subscriber: Any = sound.BlackboxSubscriber) -> None:
        self.subscriber = subscriber

    def create_subscriber(self) -> Any:
        return self.subscriber()

    def trigger_request(self, subscriber: Any) -> None:
        subscriber.ask()


class Processors(IdentityProcessorVerification[Any]):
    does_coordinated_emission = True

    def __init__(self, processor: Any = sound.Processor) -> None:
        self.processor = processor

    def create_identity_processor(self, buffer_size: int) -> Any:
        return self.processor()


# -- what the kit makes ---------------------------------------------------------------------------------------


@breaks("required_create_publisher_1_must_produce_a_stream_of_exactly_1_element")
class AtLeastTwo(Publisher):
    """Has two elements where one was asked for."""

    def __init__(self, elements: int, failure: BaseException | None = None) -> None:
        super().__init__(max(2, elements), failure)


@breaks("required_create_publisher_3_must_produce_a_stream_of_exactly_3_elements")
class AtMostTwo(Publisher):
    """Has two elements where three were asked for."""

    def __init__(self, elements: int, failure: BaseException | None = None) -> None:
        super().__init__(min(2, elements), failure)


@breaks("required_validate_max_elements_from_publisher")
class FewerThanNone(Publishers):
    """Says that it can give at most -1 elements."""

    max_elements_from_publisher = -1


@breaks("required_validate_bounded_depth_of_on_next_and_request_recursion")
class NoDepth(Publishers):
    """Says that on_next may be 0 deep."""

    bounded_depth_of_on_next_and_request_recursion = 0


# -- 1: the publisher -----------------------------------------------------------------------------------------


@breaks("required_spec101_subscription_request_must_result_in_the_correct_number_of_produced_elements")
class OneTooMany(Subscription):
    """Takes every request for one more than it says."""

    def add(self, n: int) -> None:
        super().add(n + 1)


@breaks("required_spec101_subscription_request_must_result_in_the_correct_number_of_produced_elements")
class TooEager(Subscription):
    """Gives an element before any request."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.demand = 1


@breaks("required_spec101_subscription_request_must_result_in_the_correct_number_of_produced_elements", rule="3.8")
class LastRequestCounts(Subscription):
    """Takes a request for the demand, and not for more of it (3.8)."""

    def wake(self) -> None:
        self.drain()

    def add(self, n: int) -> None:
        self.demand = n - 1 if n == 2 else n


@breaks("required_spec101_subscription_request_must_result_in_the_correct_number_of_produced_elements")
class Unsolicited(Subscription):
    """Takes any request as one for everything."""

    def add(self, n: int) -> None:
        super().add(MAX_DEMAND)


@breaks("extra_spec101_a_large_request_must_be_met_to_the_element")
class BatchOverrun(Subscription):
    """The reference AsyncIterablePublisher of the JVM: its demand is not counted down at the end of a batch."""

    in_batch = 1024

    def due(self) -> Signal | None:
        self.in_batch -= 1
        if not self.in_batch:
            self.in_batch = 1024
            self.demand += 1
        return super().due()


@breaks("required_spec102_may_signal_less_than_requested_and_terminate_subscription", rule="1.5")
class WaitsForAllDemand(Subscription):
    """Does not complete while more was requested than it had."""

    def finished(self) -> Signal | None:
        return self.idle() if self.demand > 1 else super().finished()


@breaks("stochastic_spec103_must_signal_on_methods_sequentially")
class OnManyThreads(Subscription):
    """Signals each element on another thread, while the one that asked is still inside on_next."""

    def wake(self) -> None:
        helper = threading.Thread(target=self.drain)
        helper.start()
        helper.join()


@breaks("extra_spec103_a_signal_must_wait_until_the_one_before_has_returned")
class DoesNotWait(Subscription):
    """Signals each element on a thread of its own, and does not wait for it."""

    def emit(self, element: Any) -> None:
        threading.Thread(target=self.subscriber.on_next, args=(element,), daemon=True).start()


@breaks("extra_spec103_an_element_must_wait_until_on_subscribe_has_returned")
class SignalsBesideOnSubscribe(Subscription):
    """Has no owner while on_subscribe runs: a thread that requests meanwhile signals beside it."""

    def start(self) -> None:
        with self.lock:
            self.owned = False
        self.subscriber.on_subscribe(self)
        self.wake()


@breaks("extra_spec309_an_invalid_request_inside_on_subscribe_must_be_answered", rule="1.3")
class AnswersBesideOnSubscribe(SignalsBesideOnSubscribe):
    """Answers an invalid request on another thread, and does not wait until on_subscribe has returned."""

    def run(self) -> None:
        if self.fault is None:
            self.drain()
        else:
            answer = threading.Timer(0.001, self.drain)
            answer.daemon = True
            answer.start()


@breaks("extra_spec103_two_requests_at_once_must_not_signal_at_once")
class LooksThenOwns(Subscription):
    """Looks whether it is owned, and then owns: two threads may both find it free."""

    def wake(self) -> None:
        if self.owned:
            return
        self.owned = True
        self.drain()


@breaks("optional_spec104_must_signal_on_error_when_fails")
class CompletesWhenItFails(Subscription):
    """Takes a failure for the end."""

    def finished(self) -> Signal | None:
        return self.completed()


@breaks("optional_spec104_must_signal_on_error_when_fails", rule="1.9")
class RaisesWhenItFails(Publisher):
    """Lets the failure out of subscribe."""

    def subscribe(self, subscriber: Any, /) -> None:
        if self.failure is not None:
            raise self.failure
        super().subscribe(subscriber)


@breaks("extra_spec104_must_signal_on_error_when_a_stream_fails_midway")
class SilentWhenItFails(Subscription):
    """Stops where it fails, and says nothing."""

    def finished(self) -> Signal | None:
        return self.over() if self.publisher.failure is not None and self.sent else super().finished()


@breaks("required_spec105_must_signal_on_complete_when_finite_stream_terminates")
class NeverCompletes(Subscription):
    """Stops at its end, and says nothing."""

    def completed(self) -> Signal | None:
        return self.idle()


@breaks("optional_spec105_empty_stream_must_terminate_by_signalling_on_complete")
class NeverCompletesEmpty(Subscription):
    """Completes after an element only."""

    def completed(self) -> Signal | None:
        return super().completed() if self.sent else self.idle()


class _Remembers(Publisher):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.remembered: list[Any] = []


@breaks(
    "extra_spec106_must_consider_subscription_cancelled_after_on_complete",
    "extra_spec106_must_consider_subscription_cancelled_after_on_error",
    "extra_spec106_the_subscribers_of_ended_streams_must_be_dropped",
    "extra_spec106_the_subscribers_of_failed_streams_must_be_dropped",
    "extra_spec106_a_subscriber_whose_invalid_request_was_answered_must_be_dropped",
)
class RemembersTheEnded(_Remembers):
    """Keeps its subscribers when their streams have ended."""

    def subscribe(self, subscriber: Any, /) -> None:
        self.remembered.append(subscriber)
        super().subscribe(subscriber)


@breaks("extra_spec106_must_consider_subscription_cancelled_after_on_complete", rule="1.7")
class AnswersAfterTheEnd(Subscription):
    """Answers an invalid request after the end with on_error."""

    def __init__(self, publisher: Any, subscriber: Any) -> None:
        super().__init__(publisher, subscriber)
        self.kept = subscriber

    def invalid(self, n: int) -> None:
        if self.ended:
            self.kept.on_error(ValueError("demand is at least 1 (3.9)"))
        super().invalid(n)


@breaks("required_spec107_must_not_emit_further_signals_once_on_complete_has_been_signalled")
class CompletesTwice(Subscription):
    """Completes once more at each further request."""

    done = 0

    def completed(self) -> Signal | None:
        if self.elements != 1:
            return super().completed()
        self.idle()
        self.done += 1
        return self.subscriber.on_complete if self.done < 3 else None


@breaks(
    "extra_spec107_must_not_emit_further_signals_once_a_failed_publisher_has_signalled_on_error",
    "extra_spec107_must_not_emit_further_signals_once_a_stream_has_failed_midway",
)
class FailsThenCompletes(Subscription):
    """The reference AsyncIterablePublisher of the JVM: where hasNext raises, on_complete follows on_error."""

    def failed(self, error: BaseException) -> Signal | None:
        subscriber = self.subscriber
        fail = super().failed(error)
        if fail is None or isinstance(error, ValueError):
            return fail

        def both() -> None:
            fail()
            subscriber.on_complete()

        return both


@breaks("extra_spec107_must_not_emit_further_signals_once_an_invalid_request_was_answered")
class GoesOnAfterInvalid(Subscription):
    """Answers an invalid request, and goes on."""

    def invalid(self, n: int) -> None:
        self.subscriber.on_error(ValueError("demand is at least 1 (3.9)"))


@breaks("extra_spec104_must_signal_on_error_when_a_stream_fails_midway", rule="1.3")
class FailsBesideItsLast(Subscription):
    """Signals on_error while the element before it is signalled on another thread (1.3)."""

    def emit(self, element: Any) -> None:
        if self.publisher.failure is not None and self.sent == self.elements:
            before = len(self.subscriber.elements)
            threading.Thread(target=self.subscriber.on_next, args=(element,)).start()
            until(lambda: len(self.subscriber.elements) > before)  # it is inside of on_next
        else:
            super().emit(element)


@breaks("extra_spec107_must_not_emit_further_signals_once_a_stream_has_failed_midway")
class OneLastElement(Subscription):
    """Signals one more element after on_error."""

    def failed(self, error: BaseException) -> Signal | None:
        subscriber = self.subscriber
        fail = super().failed(error)

        def both() -> None:
            if fail is not None:
                fail()
            subscriber.on_next(99)

        return both


@breaks("extra_spec108_cancelled_subscription_must_stop_being_signalled_whatever_was_requested")
class DeafWhenUnbounded(Subscription):
    """Does not look for a cancel while its demand is unbounded."""

    def due(self) -> Signal | None:
        self.cancelled = self.cancelled and self.demand != MAX_DEMAND
        return super().due()


@breaks("extra_optional_spec108_a_cancel_inside_the_last_on_next_should_be_the_end")
class CompletesTheCancelled(Subscription):
    """Completes after a cancel, where it has no element left."""

    def over(self) -> Signal | None:
        return self.completed() if self.at_end() and not self.ended else super().over()


@breaks("required_spec109_subscribe_throw_npe_on_null_subscriber")
class AcceptsNone(Publisher):
    """Accepts None for a subscriber."""

    def subscribe(self, subscriber: Any, /) -> None:
        if subscriber is not None:
            super().subscribe(subscriber)


@breaks("required_spec109_subscribe_throw_npe_on_null_subscriber")
class RaisesAnotherForNone(Publisher):
    """Raises AttributeError for None."""

    def subscribe(self, subscriber: Any, /) -> None:
        self.subscription(self, subscriber).start()


@breaks("required_spec109_must_issue_on_subscribe_for_non_null_subscriber")
class NoOnSubscribe(Publisher):
    """Begins without on_subscribe."""

    def subscribe(self, subscriber: Any, /) -> None:
        if subscriber is None:
            raise TypeError("subscribe(None)")


@breaks("required_spec109_must_issue_on_subscribe_for_non_null_subscriber", rule="2.12")
class SubscribesTwice(Publisher):
    """Calls on_subscribe twice (2.12)."""

    def subscribe(self, subscriber: Any, /) -> None:
        super().subscribe(subscriber)
        subscriber.on_subscribe(self.subscription(self, subscriber))


@breaks("required_spec109_must_issue_on_subscribe_for_non_null_subscriber")
class SubscribesWithNone(Publisher):
    """Calls on_subscribe with None."""

    def subscribe(self, subscriber: Any, /) -> None:
        subscriber.on_subscribe(None)


@breaks("required_spec109_must_issue_on_subscribe_for_non_null_subscriber")
class CompletesFirst(Publisher):
    """Completes before on_subscribe."""

    def subscribe(self, subscriber: Any, /) -> None:
        if not self.elements and subscriber is not None:
            subscriber.on_complete()
        super().subscribe(subscriber)


@breaks("required_spec109_must_issue_on_subscribe_for_non_null_subscriber")
class SubscribeRaises(Publisher):
    """Raises out of subscribe."""

    def subscribe(self, subscriber: Any, /) -> None:
        raise RuntimeError("no more subscribers")


@breaks("required_spec109_must_issue_on_subscribe_for_non_null_subscriber")
class SubscribeHangs(Publisher):
    """Does not come back from subscribe."""

    def subscribe(self, subscriber: Any, /) -> None:
        threading.Event().wait(60)


@breaks(
    "required_spec109_may_reject_calls_to_subscribe_if_publisher_is_unable_or_unwilling_to_serve_them_rejection_must_trigger_on_error_after_on_subscribe"
)
class RefusesAtOnce(Publisher):
    """Refuses with on_error alone, as version 0.3 had it."""

    def subscribe(self, subscriber: Any, /) -> None:
        if self.failure is not None:
            subscriber.on_error(self.failure)
        else:
            super().subscribe(subscriber)


class _Counts(_Remembers):
    def first(self, subscriber: Any) -> bool:
        self.remembered.append(id(subscriber))
        return len(self.remembered) == 1


@breaks("extra_spec110_subscribe_must_keep_its_rules_however_often_it_is_called", rule="1.9")
class RaisesTheSecondTime(_Counts):
    """Raises where it is subscribed to a second time."""

    def subscribe(self, subscriber: Any, /) -> None:
        if not self.first(subscriber):
            raise RuntimeError("one subscriber only")
        super().subscribe(subscriber)


@breaks("extra_spec110_subscribe_must_keep_its_rules_however_often_it_is_called")
class DeafTheSecondTime(_Counts):
    """Has nothing for its second subscriber, and no end either."""

    def subscribe(self, subscriber: Any, /) -> None:
        if self.first(subscriber):
            super().subscribe(subscriber)
        else:
            subscriber.on_subscribe(Subscription(self, subscriber))


@breaks("extra_spec110_subscribe_must_keep_its_rules_however_often_it_is_called")
class DeafTheSixtiethTime(_Counts):
    """Has nothing for its sixtieth subscriber, and no end either."""

    def subscribe(self, subscriber: Any, /) -> None:
        self.first(subscriber)
        if len(self.remembered) != 60:
            super().subscribe(subscriber)
        else:
            subscriber.on_subscribe(Subscription(self, subscriber))


@breaks("extra_spec110_the_same_subscriber_twice_must_not_break_its_first_subscription")
class OneSubscriptionEach(_Remembers):
    """Keeps one subscription for each subscriber: the second one cancels the first."""

    last: Any

    def subscribe(self, subscriber: Any, /) -> None:
        if subscriber in self.remembered:
            self.last.cancel()
        self.remembered.append(subscriber)
        self.last = self.subscription(self, subscriber)
        self.last.start()


@breaks("optional_spec111_may_support_multi_subscribe")
class Unicast(_Counts):
    """Refuses its second subscriber, as it may."""

    def subscribe(self, subscriber: Any, /) -> None:
        if self.first(subscriber):
            super().subscribe(subscriber)
        else:
            Publisher(0, RuntimeError("one subscriber only")).subscribe(subscriber)


@breaks("optional_spec111_registered_subscribers_must_receive_on_next_or_on_complete_signals")
class ForgetsTheSecond(DeafTheSecondTime):
    """Has nothing for its second subscriber."""


@breaks(
    "optional_spec111_multicast_must_produce_the_same_elements_in_the_same_sequence_to_all_of_its_subscribers_when_requesting_one_by_one",
    "optional_spec111_multicast_must_produce_the_same_elements_in_the_same_sequence_to_all_of_its_subscribers_when_requesting_many_upfront",
    "optional_spec111_multicast_must_produce_the_same_elements_in_the_same_sequence_to_all_of_its_subscribers_when_requesting_many_upfront_and_complete_as_expected",
)
class DealsOut(_Counts):
    """Gives its second subscriber other elements than its first."""

    def subscribe(self, subscriber: Any, /) -> None:
        offset = 0 if self.first(subscriber) else 100

        class Shifted(Subscription):
            def emit(self, element: Any) -> None:
                self.subscriber.on_next(element + offset)

        self.subscription = Shifted
        super().subscribe(subscriber)


@breaks("required_spec102_may_signal_less_than_requested_and_terminate_subscription", rule="2.13")
class GivesNone(Subscription):
    """Signals None for an element (2.13)."""

    def emit(self, element: Any) -> None:
        self.subscriber.on_next(None)


@breaks("required_spec105_must_signal_on_complete_when_finite_stream_terminates", rule="3.8")
class LosesOne(Subscription):
    """Loses its second element."""

    def emit(self, element: Any) -> None:
        if element != 1:
            super().emit(element)


# -- 3: the subscription --------------------------------------------------------------------------------------


@breaks("required_spec302_must_allow_synchronous_request_calls_from_on_next_and_on_subscribe")
class DeafInOnSubscribe(Subscription):
    """Forgets what was requested in on_subscribe."""

    began = False

    def add(self, n: int) -> None:
        if self.began:
            super().add(n)

    def drain(self) -> None:
        self.began = True
        super().drain()


@breaks("required_spec302_must_allow_synchronous_request_calls_from_on_next_and_on_subscribe", rule="3.16")
class LocksItselfOut(Subscription):
    """Holds a lock that is not re-entrant while it signals: a request in on_next never returns."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.signalling = threading.Lock()

    def emit(self, element: Any) -> None:
        with self.signalling:
            super().emit(element)

    def add(self, n: int) -> None:
        with self.signalling:
            super().add(n)


@breaks("required_spec303_must_not_allow_unbounded_recursion")
class Recurses(Subscription):
    """Signals inside of request, and inside of that again."""

    def wake(self) -> None:
        self.drain()


class _Holds(Subscription):
    """Holds a lock while it signals."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.signalling = threading.RLock()

    def emit(self, element: Any) -> None:
        with self.signalling:
            super().emit(element)


@breaks("extra_spec304_request_must_return_while_the_subscriber_is_busy_elsewhere")
class RequestWaits(_Holds):
    """Holds a lock while it signals, which request needs."""

    def add(self, n: int) -> None:
        with self.signalling:
            super().add(n)


@breaks("extra_spec304_a_request_of_one_subscriber_must_return_while_another_is_busy")
class OneLockForAll(Publisher):
    """Holds one lock of the publisher while it signals to any subscriber."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        lock = threading.RLock()

        class Locking(Subscription):
            def drain(self) -> None:
                with lock:
                    super().drain()

        self.subscription = Locking


@breaks("extra_spec308_no_demand_may_be_lost_where_a_request_leaves")
class LeavesUnlocked(Subscription):
    """Finds under its lock that nothing is due, and leaves after that: what was requested meanwhile stays."""

    def idle(self) -> Signal | None:
        return None

    def drain(self) -> None:
        super().drain()
        self.owned = False


@breaks("extra_spec105_a_long_stream_must_give_each_of_its_elements")
class LosesThe257th(Subscription):
    """Loses the element after its first 256."""

    def taken(self) -> Any:
        self.sent += self.sent == 256
        return super().taken()


@breaks("extra_spec101_requests_of_each_size_must_be_met_exactly")
class SevenAreEight(Subscription):
    """Takes a request of 7 for one of 8."""

    def add(self, n: int) -> None:
        super().add(n + (n == 7))


@breaks("extra_spec101_requests_of_each_size_must_be_met_exactly", rule="1.5")
class CompletesAfterSixteen(Subscription):
    """Completes after 16 elements where a request of 16 came."""

    def add(self, n: int) -> None:
        super().add(n)
        if n == 16:
            self.elements = self.sent + n


@breaks("extra_spec309_every_invalid_request_must_be_answered")
class DeafToTheLeast(Subscription):
    """Ignores a request of the least number of 64 bits: its absolute value is negative there."""

    def request(self, n: int, /) -> None:
        if n != -(2**63):
            super().request(n)


@breaks("extra_spec317_every_large_request_must_be_met", rule="3.8")
class CountsIn32Bits(Subscription):
    """Takes the lower 32 bits of a request, with their sign, and 1 for none."""

    def add(self, n: int) -> None:
        super().add(((n + 2**31) % 2**32 - 2**31) or 1)


@breaks("extra_spec317_a_request_of_the_most_must_add_up_with_others")
class BoundedAgain(Subscription):
    """Takes a request after one of MAX_DEMAND for all that is requested."""

    def add(self, n: int) -> None:
        with self.lock:
            self.demand = n if self.demand == MAX_DEMAND else min(self.demand + n, MAX_DEMAND)


@breaks("extra_spec317_a_request_of_the_most_must_add_up_with_others")
class NotTheMost(Subscription):
    """Ignores a request of MAX_DEMAND while demand is left."""

    def add(self, n: int) -> None:
        if n != MAX_DEMAND or not self.demand:
            super().add(n)


@breaks("extra_spec312_a_cancel_of_one_subscriber_must_not_stop_another")
class CancelsAll(Publisher):
    """Cancels every subscription when one is cancelled."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        everyone: weakref.WeakSet[Subscription] = weakref.WeakSet()

        class Cancelling(Subscription):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                everyone.add(self)

            def cancel(self) -> None:
                for item in tuple(everyone):
                    Subscription.cancel(item)

        self.subscription = Cancelling


@breaks("extra_spec305_cancel_must_return_while_the_subscriber_is_busy_elsewhere")
class CancelWaits(_Holds):
    """Holds a lock while it signals, which cancel needs."""

    def cancel(self) -> None:
        with self.signalling:
            super().cancel()


@breaks("required_spec306_after_subscription_is_cancelled_request_must_be_nops")
class Resurrects(Subscription):
    """Forgets a cancel when something is requested."""

    def cancel(self) -> None:
        self.cancelled = True

    def add(self, n: int) -> None:
        self.cancelled = False
        super().add(n)


@breaks("required_spec307_after_subscription_is_cancelled_additional_cancelations_must_be_nops", rule="3.15")
class CancelsOnce(Subscription):
    """Raises out of a second cancel."""

    def cancel(self) -> None:
        if self.cancelled:
            raise RuntimeError("cancelled already")
        super().cancel()


@breaks("required_spec307_after_subscription_is_cancelled_additional_cancelations_must_be_nops", rule="3.15")
class CancelTells(Subscription):
    """Answers a cancel with on_complete."""

    def over(self) -> Signal | None:
        return self.completed()


@breaks("required_spec307_after_subscription_is_cancelled_additional_cancelations_must_be_nops", rule="3.15")
class CancelHangs(Subscription):
    """Does not come back from cancel."""

    def cancel(self) -> None:
        threading.Event().wait(60)


@breaks("extra_spec308_no_demand_may_be_lost_between_two_requests")
class LosesDemand(Subscription):
    """Looks whether a drain is at work, and then leaves its demand there: the drain may have gone meanwhile."""

    def request(self, n: int) -> None:
        if n > 0 and (self.demand > 0 or self.owned):
            self.add(n)
        else:
            super().request(n)


@breaks("extra_spec308_no_demand_may_be_lost_between_two_requests", rule="1.1")
class PlainCounter(Subscription):
    """Adds to the demand with += and no lock."""

    def add(self, n: int) -> None:
        self.demand += n


@breaks("required_spec309_request_zero_must_signal_illegal_argument_exception")
class IgnoresZero(Subscription):
    """Takes request(0) for nothing."""

    def invalid(self, n: int) -> None:
        if n:
            super().invalid(n)


@breaks("required_spec309_request_zero_must_signal_illegal_argument_exception", rule="3.16")
class RaisesForZero(Subscription):
    """Raises ValueError at the caller (3.16)."""

    def invalid(self, n: int) -> None:
        raise ValueError("demand is at least 1")


@breaks("required_spec309_request_negative_number_must_signal_illegal_argument_exception")
class AnotherErrorForNegative(Subscription):
    """Answers a negative request with a RuntimeError."""

    def invalid(self, n: int) -> None:
        self.fault = RuntimeError("3.9")


@breaks("optional_spec309_request_negative_number_may_signal_illegal_argument_exception_with_specific_message")
class SaysNothing(Subscription):
    """Answers an invalid request, and does not say why."""

    def invalid(self, n: int) -> None:
        self.fault = ValueError("bad")


@breaks("required_spec312_cancel_must_make_the_publisher_to_eventually_stop_signaling", rule="1.1")
class CancelFlushes(Subscription):
    """Gives all it has when it is cancelled."""

    def cancel(self) -> None:
        self.demand = MAX_DEMAND
        self.wake()


@breaks("required_spec312_cancel_must_make_the_publisher_to_eventually_stop_signaling", rule="3.15")
class CancelRaises(Subscription):
    """Raises out of cancel (3.15)."""

    def cancel(self) -> None:
        raise RuntimeError("not now")


@breaks("required_spec313_cancel_must_make_the_publisher_eventually_drop_all_references_to_the_subscriber")
class RemembersTheCancelled(_Remembers):
    """Keeps its subscribers when they have cancelled."""

    def subscribe(self, subscriber: Any, /) -> None:
        self.remembered.append(subscriber)
        super().subscribe(subscriber)


@breaks("required_spec317_must_support_a_pending_element_count_up_to_long_max_value")
class TooMuch(Subscription):
    """Refuses a request of MAX_DEMAND."""

    def add(self, n: int) -> None:
        super().add(n)
        if n == MAX_DEMAND:
            self.fault = ValueError("too much")


@breaks("required_spec317_must_support_a_cumulative_pending_element_count_up_to_long_max_value")
class TooMuchTogether(Subscription):
    """Refuses requests that add up to MAX_DEMAND."""

    asked = 0

    def add(self, n: int) -> None:
        super().add(n)
        self.asked += n
        if self.asked >= MAX_DEMAND > n:
            self.fault = ValueError("too much")

    def wake(self) -> None:
        if self.asked >= MAX_DEMAND or self.asked < MAX_DEMAND // 2 or self.fault or self.cancelled:
            super().wake()


@breaks("extra_spec317_a_request_of_the_most_must_add_up_with_others")
class DemandOf32Bits(Subscription):
    """Keeps the lower 32 bits of a request."""

    def add(self, n: int) -> None:
        super().add(n if n >= MAX_DEMAND - 1 else n & 0xFFFF_FFFF)


@breaks("extra_spec317_a_request_of_the_most_must_add_up_with_others")
class SignedDemandOf32Bits(Subscription):
    """Takes a request for an int of 32 bits, whose first bit is the sign."""

    def add(self, n: int) -> None:
        if n >= MAX_DEMAND - 1 or n & 0x8000_0000 == 0:
            super().add(n)


@breaks("required_spec317_must_not_signal_on_error_when_pending_above_long_max_value")
class ErrorOnOverflow(Subscription):
    """Answers demand above MAX_DEMAND with on_error."""

    def add(self, n: int) -> None:
        if self.demand + n > MAX_DEMAND:
            self.fault = OverflowError("too much")
        super().add(n)


@breaks("extra_spec317_demand_beyond_the_most_must_not_wrap")
class Wraps(Subscription):
    """Adds up its demand in 64 bits, which wrap: it turns negative, and the elements stop."""

    def add(self, n: int) -> None:
        with self.lock:
            self.demand = (self.demand + n + 2**63) % 2**64 - 2**63


@breaks("required_spec317_must_support_a_pending_element_count_up_to_long_max_value", rule="3.16")
class RequestHangs(Subscription):
    """Does not come back from a request of MAX_DEMAND."""

    def add(self, n: int) -> None:
        if n == MAX_DEMAND:
            threading.Event().wait(60)
        super().add(n)


@breaks("required_spec317_must_support_a_pending_element_count_up_to_long_max_value", rule="1.5")
class NeverEnds(Subscription):
    """Gives elements without end where everything was requested of a finite stream."""

    def due(self) -> Signal | None:
        self.elements += 1
        return super().due()


# -- in some states only --------------------------------------------------------------------------------------


@breaks("extra_spec101_each_of_many_requests_must_be_met_exactly")
class TheSeventhCountsMore(Subscription):
    """Takes its seventh request for one more than it says."""

    requests = 0

    def add(self, n: int) -> None:
        self.requests += 1
        super().add(n + (self.requests == 7))


@breaks("extra_spec101_demand_of_one_subscriber_must_not_serve_another")
class SharesDemand(Publisher):
    """Takes a request of one subscriber for one of each."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        everyone: list[Subscription] = []

        class Shared(Subscription):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                everyone.append(self)

            def request(self, n: int, /) -> None:
                for item in everyone:
                    Subscription.request(item, n)

        self.subscription = Shared


@breaks("extra_spec308_demand_must_add_up_whenever_it_comes")
class OneRequestWhileItSignals(Subscription):
    """Keeps one request of those that come while it signals: the last one."""

    base: int | None = None

    def emit(self, element: Any) -> None:
        self.base = self.demand
        super().emit(element)
        self.base = None

    def add(self, n: int) -> None:
        if self.base is None:
            super().add(n)
        else:
            self.demand = min(self.base + n, MAX_DEMAND)


@breaks("extra_spec104_must_signal_on_error_also_where_all_was_requested")
class SilentWhereAllIsWanted(Subscription):
    """Swallows a failure under unbounded demand."""

    def finished(self) -> Signal | None:
        return self.over() if self.publisher.failure and self.demand == MAX_DEMAND else super().finished()


@breaks("extra_spec107_a_stream_must_end_once_whatever_is_called_in_its_end")
class EndsOnceMoreWhereAskedInside(Subscription):
    """Completes once more where something is requested inside its last element."""

    late = False

    def add(self, n: int) -> None:
        super().add(n)
        self.late = self.late or (self.owned and self.at_end())

    def completed(self) -> Signal | None:
        subscriber = self.subscriber
        signal = super().completed()

        def both() -> None:
            if signal is not None:
                signal()
            if self.late:
                subscriber.on_complete()

        return both


class _RevivedInside(Subscription):
    inside = False

    def emit(self, element: Any) -> None:
        self.inside = True
        super().emit(element)
        self.inside = False

    def cancel(self) -> None:
        with self.lock:
            self.cancelled = True

    def add(self, n: int) -> None:
        if self.inside:
            self.cancelled = False
        super().add(n)


@breaks(
    "extra_spec306_a_request_after_a_cancel_inside_on_next_must_be_a_nop",
    "extra_spec306_a_request_after_a_cancel_must_be_a_nop_while_a_signal_runs",
)
class RevivedInsideOnNext(_RevivedInside):
    """Forgets a cancel inside on_next when something is requested there."""


@breaks("extra_spec306_an_invalid_request_after_a_cancel_must_be_a_nop")
class AnswersTheCancelled(Subscription):
    """Answers an invalid request also after a cancel."""

    def __init__(self, publisher: Any, subscriber: Any) -> None:
        super().__init__(publisher, subscriber)
        self.fail = subscriber.on_error

    def invalid(self, n: int) -> None:
        super().invalid(n)
        if self.cancelled:
            self.fail(self.fault)


@breaks("extra_spec312_a_cancel_before_the_demand_is_used_up_must_be_heard")
class DeafInsideTheFirst(Subscription):
    """Forgets a cancel inside its first on_next."""

    def cancel(self) -> None:
        if not (self.owned and self.sent == 1):
            super().cancel()


@breaks("extra_spec312_a_cancel_inside_on_subscribe_must_be_heard")
class DeafInsideOnSubscribe(Subscription):
    """Forgets a cancel inside on_subscribe."""

    begun = False

    def start(self) -> None:
        self.subscriber.on_subscribe(self)
        self.begun = True
        self.run()

    def cancel(self) -> None:
        if self.begun:
            super().cancel()


@breaks("extra_spec312_a_cancel_inside_on_subscribe_must_be_heard_by_later_requests")
class RevivedAfterOnSubscribe(DeafInsideOnSubscribe):
    """Forgets a cancel inside on_subscribe, and serves later requests."""


@breaks("extra_spec312_a_cancel_from_another_thread_must_be_heard")
class DeafToOtherThreads(Subscription):
    """Loses a cancel from another thread than the one that it signals on."""

    signalling: int | None = None

    def emit(self, element: Any) -> None:
        self.signalling = threading.get_ident()
        super().emit(element)
        self.signalling = None

    def cancel(self) -> None:
        if self.signalling in (None, threading.get_ident()):
            super().cancel()


@breaks("extra_spec312_a_cancel_before_the_demand_is_used_up_must_be_heard")
class UsesUpItsDemand(Subscription):
    """Looks for a cancel when its demand is used up."""

    def stopped(self) -> bool:
        return self.ended or (self.cancelled and (not self.demand or self.at_end()))


@breaks("extra_spec309_an_invalid_request_inside_on_subscribe_must_be_answered")
class NoAnswerInOnSubscribe(DeafInsideOnSubscribe):
    """Ignores an invalid request inside on_subscribe."""

    def cancel(self) -> None:
        Subscription.cancel(self)

    def invalid(self, n: int) -> None:
        if self.begun:
            super().invalid(n)


@breaks(
    "extra_spec309_an_invalid_request_inside_on_next_must_be_answered",
    "extra_spec309_an_invalid_request_must_be_answered_while_demand_is_left",
    "extra_spec309_an_invalid_request_must_be_answered_where_all_was_requested",
    "extra_spec309_an_invalid_request_from_another_thread_must_be_answered",
)
class NoAnswerWhileItSignals(Subscription):
    """Ignores an invalid request that comes while it signals."""

    def invalid(self, n: int) -> None:
        if not self.owned:
            super().invalid(n)


@breaks("extra_spec309_an_invalid_request_must_be_answered_where_all_was_requested")
class NoAnswerWhereAllIsWanted(Subscription):
    """Ignores an invalid request under unbounded demand."""

    def invalid(self, n: int) -> None:
        if self.demand != MAX_DEMAND:
            super().invalid(n)


@breaks("extra_spec309_an_invalid_request_must_be_answered_after_elements_have_come")
class NoAnswerAfterElements(Subscription):
    """Ignores an invalid request after the first element."""

    def invalid(self, n: int) -> None:
        if not self.sent:
            super().invalid(n)


@breaks(
    "extra_spec309_an_invalid_request_inside_on_next_must_be_answered",
    "extra_spec309_an_invalid_request_from_another_thread_must_be_answered",
)
class NoAnswerInTheFirst(Subscription):
    """Ignores an invalid request inside its first on_next."""

    def invalid(self, n: int) -> None:
        if not (self.owned and self.sent == 1):
            super().invalid(n)


@breaks("extra_spec308_demand_must_add_up_whenever_it_comes")
class DeafToRequestsInTheFirst(Subscription):
    """Forgets what is requested inside its first on_next, while more is due."""

    def add(self, n: int) -> None:
        if not (self.owned and self.sent == 1 and self.demand > 0):
            super().add(n)


@breaks("extra_spec309_an_invalid_request_of_the_second_subscriber_must_be_answered")
class AnswersTheFirst(Publisher):
    """Answers an invalid request of any subscriber to its first one."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        first: list[Subscription] = []

        class Answering(Subscription):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments)
                first.append(self)

            def invalid(self, n: int) -> None:
                Subscription.invalid(first[0], n)
                first[0].wake()

        self.subscription = Answering


@breaks(
    "extra_spec313_a_subscriber_that_cancels_before_it_requests_must_be_dropped",
    "extra_spec313_a_subscriber_that_cancels_inside_on_subscribe_must_be_dropped",
)
class RemembersTheIdle(_Remembers):
    """Keeps a subscriber that has cancelled before it was given anything."""

    def subscribe(self, subscriber: Any, /) -> None:
        kept = self.remembered

        class Keeping(Subscription):
            def cancel(self) -> None:
                if not self.sent:
                    kept.append(self.subscriber)
                super().cancel()

        self.subscription = Keeping
        super().subscribe(subscriber)


@breaks("extra_spec313_a_subscriber_that_cancels_inside_on_next_must_be_dropped")
class RemembersWhoLeavesInside(_Remembers):
    """Keeps a subscriber that has cancelled inside on_next."""

    def subscribe(self, subscriber: Any, /) -> None:
        kept = self.remembered

        class Keeping(Subscription):
            def cancel(self) -> None:
                if self.owned and self.sent:
                    kept.append(self.subscriber)
                super().cancel()

        self.subscription = Keeping
        super().subscribe(subscriber)


@breaks("required_spec303_must_not_allow_unbounded_recursion")
class RecursesFromTheThird(Subscription):
    """Signals inside of request from the third element on."""

    def wake(self) -> None:
        if self.sent >= 3:
            self.drain()
        else:
            super().wake()


@breaks("extra_spec104_each_of_three_subscribers_must_be_notified_of_a_failure")
class SilentToTheThird(_Counts):
    """Fails, and does not say so to its third subscriber."""

    def subscribe(self, subscriber: Any, /) -> None:
        self.first(subscriber)
        third = len(self.remembered) == 3

        class Fails(Subscription):
            def failed(self, error: BaseException) -> Signal | None:
                return self.over() if third else super().failed(error)

        self.subscription = Fails
        super().subscribe(subscriber)


@breaks(
    "extra_spec110_subscribe_must_keep_its_rules_however_often_it_is_called",
    "extra_spec107_each_of_three_subscribers_must_get_its_elements_and_one_end",
    rule="1.7",
)
class EndsTwiceForTheThird(_Counts):
    """Completes twice for its third subscriber."""

    def subscribe(self, subscriber: Any, /) -> None:
        self.first(subscriber)
        third = len(self.remembered) == 3

        class Ends(Subscription):
            def completed(self) -> Signal | None:
                subscriber, signal = self.subscriber, super().completed()

                def both() -> None:
                    if signal is not None:
                        signal()
                    if third:
                        subscriber.on_complete()

                return both

        self.subscription = Ends
        super().subscribe(subscriber)


# -- 2: the subscriber, from inside ---------------------------------------------------------------------------


@breaks("required_exercise_whitebox_happy_path")
class CancelsNot(sound.WhiteboxSubscriber):
    """Does not cancel when it should."""

    def cancel(self) -> None:
        pass


@breaks("required_exercise_whitebox_happy_path")
class HearsTwice(sound.WhiteboxSubscriber):
    """Takes each element twice."""

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        super().on_next(element)


@breaks("required_spec201_must_signal_demand_via_subscription_request")
class RequestsNot(sound.WhiteboxSubscriber):
    """Does not request."""

    def request(self, n: int) -> None:
        pass


@breaks("required_spec201_must_signal_demand_via_subscription_request", rule="3.9")
class RequestsNothing(sound.WhiteboxSubscriber):
    """Requests 0 (3.9)."""

    def request(self, n: int) -> None:
        self.subscription.request(0)


@breaks("required_spec203_must_not_call_methods_on_subscription_or_publisher_in_on_complete")
class CancelsInOnComplete(sound.WhiteboxSubscriber):
    """Cancels in on_complete."""

    def on_complete(self) -> None:
        super().on_complete()
        self.subscription.cancel()


@breaks("required_spec203_must_not_call_methods_on_subscription_or_publisher_in_on_error")
class RequestsInOnError(sound.WhiteboxSubscriber):
    """Requests in on_error."""

    def on_error(self, error: BaseException, /) -> None:
        super().on_error(error)
        self.subscription.request(1)


@breaks(
    "required_spec205_must_call_subscription_cancel_if_it_already_has_an_subscription_and_receives_another_on_subscribe_signal"
)
class TakesBoth(sound.WhiteboxSubscriber):
    """Takes a second subscription for its own."""

    def again(self, subscription: Any) -> None:
        self.subscription = subscription


@breaks(
    "required_spec208_must_be_prepared_to_receive_on_next_signals_after_having_called_subscription_cancel", rule="2.13"
)
class SurprisedByElements(sound.WhiteboxSubscriber):
    """Raises at an element that comes after its cancel."""

    def on_next(self, element: Any, /) -> None:
        if self.cancelled:
            raise RuntimeError("I have cancelled")
        super().on_next(element)


@breaks("required_spec209_must_be_prepared_to_receive_an_on_complete_signal_with_preceding_request_call")
class ExpectsElements(sound.WhiteboxSubscriber):
    """Ignores an end that comes before what it requested."""

    def on_complete(self) -> None:
        if not self.requested:
            super().on_complete()


@breaks(
    "required_spec209_must_be_prepared_to_receive_an_on_complete_signal_without_preceding_request_call", rule="2.13"
)
class SurprisedByTheEnd(sound.WhiteboxSubscriber):
    """Raises at an end that comes before it has requested anything."""

    def on_complete(self) -> None:
        if not self.requested:
            raise RuntimeError("I have requested nothing")
        super().on_complete()


@breaks("required_spec210_must_be_prepared_to_receive_an_on_error_signal_with_preceding_request_call")
class WrapsErrors(sound.WhiteboxSubscriber):
    """Registers another error than it got."""

    def on_error(self, error: BaseException, /) -> None:
        super().on_error(RuntimeError(str(error)) if self.requested else error)


@breaks("required_spec210_must_be_prepared_to_receive_an_on_error_signal_without_preceding_request_call")
class DeafToErrors(sound.WhiteboxSubscriber):
    """Ignores an error that comes before it has requested anything."""

    def on_error(self, error: BaseException, /) -> None:
        if self.requested:
            super().on_error(error)


@breaks("required_spec213_on_subscribe_must_throw_null_pointer_exception_when_parameters_are_null")
class NoSubscriptionIsFine(sound.WhiteboxSubscriber):
    """Accepts None for a subscription."""

    def on_subscribe(self, subscription: Any, /) -> None:
        if subscription is not None:
            super().on_subscribe(subscription)


@breaks("required_spec213_on_next_must_throw_null_pointer_exception_when_parameters_are_null")
class NoneIsFine(sound.WhiteboxSubscriber):
    """Accepts None for an element."""

    def on_next(self, element: Any, /) -> None:
        self.probe.register_on_next(element)


@breaks("required_spec213_on_error_must_throw_null_pointer_exception_when_parameters_are_null")
class NoErrorIsFine(sound.WhiteboxSubscriber):
    """Raises ValueError for an error of None."""

    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise ValueError("None")
        super().on_error(error)


@breaks("required_spec308_request_must_register_given_number_elements_to_be_produced")
class RequestsOneOnly(sound.WhiteboxSubscriber):
    """Requests one where it should request two."""

    def request(self, n: int) -> None:
        super().request(1 if n == 2 else n)


@breaks("extra_spec213_must_return_normally_from_every_signal")
class RaisesAtTheThird(sound.WhiteboxSubscriber):
    """Raises at its third element."""

    heard = 0

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        self.heard += 1
        if self.heard == 3:
            raise RuntimeError("three are enough")


@breaks("extra_spec213_must_return_normally_from_every_signal")
class OneThreadOnly(sound.WhiteboxSubscriber):
    """Raises at an element on another thread than the one it was subscribed on."""

    def __init__(self, probe: Any) -> None:
        super().__init__(probe)
        self.thread = threading.get_ident()

    def on_next(self, element: Any, /) -> None:
        if threading.get_ident() != self.thread:
            raise RuntimeError("another thread")
        super().on_next(element)


@breaks("extra_spec213_must_return_normally_from_signals_inside_its_own_request")
class RequestsWithALock(sound.WhiteboxSubscriber):
    """Holds a lock that is not re-entrant while it requests, which its on_next needs."""

    def __init__(self, probe: Any) -> None:
        super().__init__(probe)
        self.lock = threading.Lock()

    def request(self, n: int) -> None:
        with self.lock:
            super().request(n)

    def on_next(self, element: Any, /) -> None:
        with self.lock:
            super().on_next(element)


@breaks("extra_spec213_must_refuse_none_after_elements_have_come")
class NoneIsFineLater(sound.WhiteboxSubscriber):
    """Accepts None for an element, once it has had one."""

    heard = False

    def on_next(self, element: Any, /) -> None:
        if not self.heard or element is not None:
            super().on_next(element)
        self.heard = True


@breaks("extra_spec213_must_refuse_none_for_its_first_subscription")
class NoneIsFineAtFirst(sound.WhiteboxSubscriber):
    """Accepts None for its first subscription."""

    def on_subscribe(self, subscription: Any, /) -> None:
        if subscription is not None or self.subscription is not None:
            super().on_subscribe(subscription)


@breaks("extra_spec203_must_not_call_back_in_on_complete_after_elements")
class CancelsInTheEnd(sound.WhiteboxSubscriber):
    """Cancels in an on_complete that comes after elements."""

    heard = False

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        self.heard = True

    def on_complete(self) -> None:
        super().on_complete()
        if self.heard:
            self.subscription.cancel()


@breaks("extra_spec203_must_not_call_back_in_on_error_after_elements")
class RequestsInTheEnd(sound.WhiteboxSubscriber):
    """Requests in an on_error that comes after elements."""

    heard = False

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        self.heard = True

    def on_error(self, error: BaseException, /) -> None:
        super().on_error(error)
        if self.heard:
            self.subscription.request(1)


@breaks("extra_spec205_must_keep_its_subscription_when_a_second_one_comes_later")
class TakesALaterOne(sound.WhiteboxSubscriber):
    """Cancels the subscription that it has, once it has had an element, for a second one."""

    heard = False

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        self.heard = True

    def again(self, subscription: Any) -> None:
        if self.heard:
            self.subscription.cancel()
        subscription.cancel()


@breaks("extra_spec208_must_be_prepared_for_signals_after_a_cancel_at_a_later_element", rule="2.13")
class SurprisedLater(sound.WhiteboxSubscriber):
    """Raises at an element after its cancel, where it has had some."""

    heard = 0

    def on_next(self, element: Any, /) -> None:
        self.heard += 1
        if self.cancelled and self.heard > 2:
            raise RuntimeError("I have cancelled")
        super().on_next(element)


# -- 2: the subscriber, from outside --------------------------------------------------------------------------


@breaks("required_spec201_blackbox_must_signal_demand_via_subscription_request")
class NeverAsks(sound.BlackboxSubscriber):
    """Does not request, even when it is asked to."""

    def ask(self) -> None:
        pass


@breaks("required_spec203_blackbox_must_not_call_methods_on_subscription_or_publisher_in_on_complete")
class LeavesInOnComplete(sound.BlackboxSubscriber):
    """Cancels in on_complete."""

    def on_complete(self) -> None:
        self.subscription.cancel()


@breaks("required_spec203_blackbox_must_not_call_methods_on_subscription_or_publisher_in_on_error")
class LeavesInOnError(sound.BlackboxSubscriber):
    """Cancels in on_error."""

    def on_error(self, error: BaseException, /) -> None:
        super().on_error(error)
        self.subscription.cancel()


@breaks(
    "required_spec205_blackbox_must_call_subscription_cancel_if_it_already_has_an_subscription_and_receives_another_on_subscribe_signal"
)
class AsksBoth(sound.BlackboxSubscriber):
    """Requests from a second subscription."""

    def again(self, subscription: Any) -> None:
        subscription.request(1)
        subscription.cancel()


@breaks(
    "required_spec209_blackbox_must_be_prepared_to_receive_an_on_complete_signal_with_preceding_request_call",
    rule="2.13",
)
class RaisesAtTheEnd(sound.BlackboxSubscriber):
    """Raises at an end that comes before what it requested."""

    def on_complete(self) -> None:
        if self.asked:
            raise RuntimeError("there is more to come")


@breaks(
    "required_spec209_blackbox_must_be_prepared_to_receive_an_on_complete_signal_without_preceding_request_call",
    rule="2.13",
)
class RaisesAtTheBeginning(sound.BlackboxSubscriber):
    """Raises at an end that comes before it has requested anything."""

    def on_complete(self) -> None:
        if not self.asked:
            raise RuntimeError("I have requested nothing")


@breaks(
    "required_spec210_blackbox_must_be_prepared_to_receive_an_on_error_signal_with_preceding_request_call", rule="2.13"
)
class RaisesErrors(sound.BlackboxSubscriber):
    """Raises the error it gets."""

    def on_error(self, error: BaseException, /) -> None:
        super().on_error(error)
        if self.asked:
            raise error


@breaks(
    "required_spec210_blackbox_must_be_prepared_to_receive_an_on_error_signal_without_preceding_request_call",
    rule="2.13",
)
class HangsOnErrors(sound.BlackboxSubscriber):
    """Does not come back from on_error."""

    def on_error(self, error: BaseException, /) -> None:
        super().on_error(error)
        threading.Event().wait(60)


@breaks("required_spec213_blackbox_on_subscribe_must_throw_null_pointer_exception_when_parameters_are_null")
class NothingToSubscribeTo(sound.BlackboxSubscriber):
    """Accepts None for a subscription."""

    def on_subscribe(self, subscription: Any, /) -> None:
        if subscription is not None:
            super().on_subscribe(subscription)


@breaks("required_spec213_blackbox_on_next_must_throw_null_pointer_exception_when_parameters_are_null")
class NothingToTake(sound.BlackboxSubscriber):
    """Accepts None for an element."""

    def on_next(self, element: Any, /) -> None:
        pass


@breaks("required_spec213_blackbox_on_error_must_throw_null_pointer_exception_when_parameters_are_null")
class NothingWentWrong(sound.BlackboxSubscriber):
    """Accepts None for an error."""

    def on_error(self, error: BaseException, /) -> None:
        pass


@breaks("extra_spec213_blackbox_must_return_normally_from_every_signal")
class RaisesAtItsThird(sound.BlackboxSubscriber):
    """Raises at its third element."""

    heard = 0

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        self.heard += 1
        if self.heard == 3:
            raise RuntimeError("three are enough")


@breaks("extra_spec213_blackbox_must_return_normally_from_signals_inside_its_own_request")
class CountsItsRequestLate(sound.BlackboxSubscriber):
    """Takes an element for one too many that comes before its request has returned."""

    open = 0

    def ask(self) -> None:
        super().ask()
        self.open += 3

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        if not self.open:
            raise RuntimeError("it was not requested")
        self.open -= 1


@breaks("extra_spec213_blackbox_must_refuse_none_after_elements_have_come")
class NothingToTakeLater(sound.BlackboxSubscriber):
    """Accepts None for an element, once it has had one."""

    heard = False

    def on_next(self, element: Any, /) -> None:
        if not self.heard or element is not None:
            super().on_next(element)
        self.heard = True


@breaks("extra_spec213_blackbox_must_refuse_none_for_its_first_subscription")
class NothingAtFirst(sound.BlackboxSubscriber):
    """Accepts None for its first subscription."""

    def on_subscribe(self, subscription: Any, /) -> None:
        if subscription is not None or self.subscription is not None:
            super().on_subscribe(subscription)


@breaks("extra_spec203_blackbox_must_not_call_back_in_on_complete_after_elements")
class LeavesInTheEnd(sound.BlackboxSubscriber):
    """Cancels in an on_complete that comes after elements."""

    heard = False

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        self.heard = True

    def on_complete(self) -> None:
        if self.heard:
            self.subscription.cancel()


@breaks("extra_spec204_blackbox_must_not_request_after_the_end")
class AsksAfterTheEnd(sound.BlackboxSubscriber):
    """Requests once more when the stream has ended, on another thread."""

    def on_complete(self) -> None:
        threading.Timer(0.01, self.subscription.request, (1,)).start()


@breaks("extra_spec204_blackbox_must_not_request_after_the_end")
class AsksAfterAnError(sound.BlackboxSubscriber):
    """Requests once more when the stream has failed, on another thread."""

    def on_error(self, error: BaseException, /) -> None:
        super().on_error(error)
        threading.Timer(0.01, self.subscription.request, (1,)).start()


@breaks("extra_spec205_blackbox_must_keep_its_subscription_when_a_second_one_comes_later")
class IgnoresALaterOne(sound.BlackboxSubscriber):
    """Cancels a second subscription before its first element only."""

    heard = False

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        self.heard = True

    def again(self, subscription: Any) -> None:
        if not self.heard:
            super().again(subscription)


@breaks("extra_spec207_blackbox_must_call_its_subscription_serially")
class AsksOnTwoThreads(sound.BlackboxSubscriber):
    """Requests on two threads at once."""

    def ask(self) -> None:
        threads = [threading.Thread(target=self.subscription.request, args=(1,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


# -- 4: the processor -----------------------------------------------------------------------------------------


@breaks("required_spec104_must_call_on_error_on_all_its_subscribers_if_it_encounters_a_non_recoverable_error")
class TellsTheFirst(sound.Processor):
    """Tells its first subscriber of an error, and not the others."""

    def ends(self) -> list[Signal]:
        return super().ends()[: 1 if self.failing else None]


@breaks("extra_spec203_must_not_call_back_in_an_end_that_comes_before_its_subscribers")
class CancelsInAnEarlyEnd(sound.Processor):
    """Cancels upstream in an on_complete that comes before any subscriber."""

    def on_complete(self) -> None:
        if not self.ports:
            self.upstream.cancel()
        super().on_complete()


@breaks("extra_a_cancel_of_one_subscriber_must_not_cancel_upstream_for_another")
class OneLeavesAllLeave(sound.Processor):
    """Cancels upstream when any of its subscribers cancels."""

    def due(self) -> list[Signal]:
        with self.lock:
            leaving = any(port.cancelled for port in self.ports) and self.upstream is not None and not self.end
        return [*([self.upstream.cancel] if leaving else []), *super().due()]


@breaks("must_immediately_pass_on_on_error_events_received_from_its_upstream_to_its_downstream")
class ErrorWaits(sound.Processor):
    """Keeps an error until an element is requested."""

    def ends(self) -> list[Signal]:
        if self.failing and not any(port.demand for port in self.ports):
            self.owned = False
            return []
        return super().ends()


@breaks("required_must_request_from_upstream_for_elements_that_have_been_requested_long_ago")
class ForgetsOldDemand(sound.Processor):
    """Requests one element from upstream, and no further one."""

    forgotten = False

    def wants_more(self) -> bool:
        wanted = super().wants_more() and not self.forgotten
        self.forgotten = self.forgotten or wanted
        return wanted


@breaks("extra_spec104_a_subscriber_that_comes_after_an_error_must_not_be_notified_of_completion")
class CompletesTheLate(sound.Processor):
    """Completes a subscriber that comes after an error."""

    def subscribe(self, subscriber: Any, /) -> None:
        if self.failing:
            subscriber.on_subscribe(sound.Port(self, subscriber))
            subscriber.on_complete()
        else:
            super().subscribe(subscriber)


@breaks("extra_each_element_must_be_passed_on_as_it_is")
class DoublesTheFifth(sound.Processor):
    """Passes on its fifth element as another one."""

    heard = 0

    def on_next(self, element: Any, /) -> None:
        self.heard += element is not None
        super().on_next(-1 if self.heard == 5 else element)


@breaks("extra_spec206_must_cancel_upstream_when_its_last_subscriber_was_refused")
class KeepsUpstream(sound.Processor):
    """Keeps its subscription when its last subscriber was refused."""

    def due(self) -> list[Signal]:
        signals = super().due()
        return [
            signal for signal in signals if not any(port.fault for port in self.faulty) or "cancel" not in str(signal)
        ]

    @property
    def faulty(self) -> list[sound.Port]:
        return [port for port in self.known if port.fault]

    def __init__(self) -> None:
        super().__init__()
        self.known: list[sound.Port] = []

    def subscribe(self, subscriber: Any, /) -> None:
        super().subscribe(subscriber)
        self.known.extend(self.ports)


@breaks("extra_spec205_must_cancel_a_second_subscription_before_it_has_a_subscriber")
class KeepsTheSecond(sound.Processor):
    """Keeps a second subscription, while it has no subscriber."""

    def on_subscribe(self, subscription: Any, /) -> None:
        if self.upstream is None or self.ports or subscription is None:
            super().on_subscribe(subscription)
