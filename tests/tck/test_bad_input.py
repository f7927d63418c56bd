"""What is wrong with a factory, and not with what it makes: the check says so in time, and the rest goes on."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from small_publisher import Publisher, Subscription

from reactive_runtime.tck import (
    IdentityProcessorVerification,
    Outcome,
    PublisherVerification,
    Settings,
    SubscriberBlackboxVerification,
    SubscriberWhiteboxVerification,
    Verification,
)
from tck import sound
from tck.broken import Publishers, publisher_of

FIRST = "required_spec101_subscription_request_must_result_in_the_correct_number_of_produced_elements"
IN_ITS_REQUEST = "extra_spec213_blackbox_must_return_normally_from_signals_inside_its_own_request"
REST = "required_validate_max_elements_from_publisher"


def outcome(verification: Verification, name: str) -> Outcome:
    return verification.outcome(next(check for check in verification.checks() if check.name == name))


class Made(PublisherVerification[Any]):
    def __init__(self, create: Any, **settings: Any) -> None:
        self.create_publisher = create  # type: ignore[method-assign]
        self.configure(**settings)


def raising(elements: int) -> Any:
    raise OSError("no such table")


def hanging(elements: int) -> Any:
    threading.Event().wait(60)


@pytest.mark.parametrize(
    ("create", "said"),
    [
        (raising, "create_publisher(5) raised OSError: no such table"),
        (lambda elements: None, "create_publisher(5) returned None, where a Publisher is needed"),
        (lambda elements: 7, "create_publisher(5) returned 7, which is no Publisher: it has no subscribe"),
        (
            lambda elements: Publisher,
            "create_publisher(5) returned a class, <class 'small_publisher.Publisher'>, where",
        ),
        (hanging, "create_publisher(3) has not returned within 1 s (on tck; 5 times call_timeout), before the checks"),
        (lambda elements: Publisher(elements - 2), "4 of 5 elements came"),
    ],
    ids=["raises", "none", "no publisher", "class", "hangs", "too few"],
)
def test_a_bad_factory_is_named(create: Any, said: str) -> None:
    verification = Made(create, call_timeout=0.2)
    result = outcome(verification, FIRST)
    if said == "4 of 5 elements came":  # the check takes four, and then has nothing to say: another one does
        result = outcome(verification, "required_create_publisher_3_must_produce_a_stream_of_exactly_3_elements")
        said = "an element was due; 1 of 2 elements came, then on_complete"
    assert result.status == "failed"
    assert said in result.why
    assert result.rule == ("1.5" if "was due" in said else "")
    assert outcome(verification, REST).status == "passed"


def test_a_failure_says_that_it_waited_only_where_it_did() -> None:
    name = "required_create_publisher_3_must_produce_a_stream_of_exactly_3_elements"
    ended = outcome(Made(lambda elements: Publisher(elements - 1), default_timeout=0.1), name)
    assert "2 of 3 elements came, then on_complete\n" in ended.why

    class Loses(Subscription):
        def emit(self, element: Any) -> None:
            if element < 2:
                super().emit(element)

        def at_end(self) -> bool:
            return False

    silent = outcome(Made(publisher_of(Loses), default_timeout=0.1), name)
    assert "2 of 3 elements came; waited 0.1 s for it (default_timeout, as given)\n" in silent.why


@pytest.mark.parametrize("first", [1, 2, 3, 4])
def test_a_factory_that_hung_is_waited_for_once(first: int) -> None:
    """Whichever call of it hangs: in what is tried before the checks, or in a check."""
    calls: list[int] = []

    def create(elements: int) -> Any:
        calls.append(elements)
        return hanging(elements) if len(calls) >= first else Publisher(elements)

    verification = Made(create, default_timeout=0.1, default_no_signals_timeout=0.01, call_timeout=0.1)
    verification.seconds()  # as the command does first
    failed = [item for item in verification.outcomes() if item.status == "failed"]
    assert len(calls) == first
    assert len(failed) > 50
    assert {item.rule for item in failed} == {""}
    said = f"create_publisher({calls[-1]}) has not returned within 0.5 s (on tck; 5 times call_timeout)"
    assert all(said in item.why for item in failed)
    assert "before the checks" in failed[1].why or "in an earlier check" in failed[1].why
    assert outcome(Made(Publisher), FIRST).status == "passed"  # another verification


class NoElements(SubscriberBlackboxVerification[int]):
    def create_subscriber(self) -> Any:
        return sound.BlackboxSubscriber()

    def trigger_request(self, subscriber: Any) -> None:
        subscriber.ask()


@pytest.mark.parametrize("name", ["create_element", "create_helper_publisher"])
def test_factory_of_elements_that_raises_breaks_no_rule(name: str) -> None:
    verification = NoElements()
    setattr(verification, name, raising)
    for check in ("required_spec201_blackbox_must_signal_demand_via_subscription_request", IN_ITS_REQUEST):
        result = outcome(verification, check)
        if check == IN_ITS_REQUEST and name == "create_helper_publisher":
            assert result.status == "passed"  # it makes its elements itself
        else:
            assert (result.status, result.rule) == ("failed", "")
            assert "OSError: no such table" in result.why


def test_more_elements_than_asked_for_are_named() -> None:
    result = outcome(
        Made(lambda elements: Publisher(elements + 2)),
        "required_create_publisher_1_must_produce_a_stream_of_exactly_1_element",
    )
    assert "an element more than expected: [1]" in result.why


def test_an_endless_stream_where_a_finite_one_was_asked_for_is_named_and_stopped() -> None:
    class Endless(Subscription):
        def due(self) -> Any:
            self.elements += 1
            return super().due()

    publisher = publisher_of(Endless)
    result = outcome(
        Publishers(publisher), "required_spec317_must_support_a_pending_element_count_up_to_long_max_value"
    )
    assert "it was asked for a stream of 3 elements, and 2004 came, and no end" in result.why


@pytest.mark.parametrize("signal", ["on_subscribe", "on_error", "on_complete"])
def test_signals_without_end_are_named_and_stopped(signal: str) -> None:
    class Endless(Subscription):
        def start(self) -> None:
            self.subscriber.on_subscribe(self)
            while True:
                arguments = {"on_subscribe": (self,), "on_error": (OSError(),), "on_complete": ()}[signal]
                getattr(self.subscriber, signal)(*arguments)

    publisher = publisher_of(Endless)
    result = outcome(Publishers(publisher), FIRST)
    assert (result.status, result.rule) == ("failed", "2.12" if signal == "on_subscribe" else "1.7")


class WithoutEnd(Subscription):
    """A stream that does not end by itself."""

    def due(self) -> Any:
        self.elements = 2**80
        return super().due()


def endless(subscription: type[Subscription]) -> Made:
    publisher = publisher_of(subscription)
    return Made(publisher, max_elements_from_publisher=2**63 - 1, default_timeout=0.2, call_timeout=0.2)


ALL_REQUESTED = "extra_spec309_an_invalid_request_must_be_answered_where_all_was_requested"


def test_a_call_that_signals_without_end_is_ended() -> None:
    class Ignores(WithoutEnd):
        def request(self, n: int, /) -> None:
            if n > 0:
                super().request(n)

    before = set(threading.enumerate())
    result = outcome(endless(Ignores), ALL_REQUESTED)
    assert (result.status, result.rule) == ("failed", "3.9")
    assert "request(9223372036854775807) went on signalling for 2 s (on tck; 5 times default_timeout" in result.why
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()


def test_a_slow_stream_that_a_check_ends_inside_of_a_call_is_not_accused() -> None:
    class Slow(WithoutEnd):
        def emit(self, element: Any) -> None:
            time.sleep(0.03)
            super().emit(element)

    assert outcome(endless(Slow), ALL_REQUESTED).status == "passed"
    name = "extra_spec101_a_large_request_must_be_met_to_the_element"
    assert outcome(endless(Slow), name).status == "passed"  # one call, of several times `call_timeout`


def test_a_verification_without_a_factory_says_what_to_define() -> None:
    assert "has to define create_publisher(self, elements)" in outcome(PublisherVerification(), FIRST).why
    whitebox: Verification = SubscriberWhiteboxVerification()
    name = "required_spec201_must_signal_demand_via_subscription_request"
    assert "has to define create_subscriber(self, probe)" in outcome(whitebox, name).why
    processor: Verification = IdentityProcessorVerification()
    assert "has to define create_identity_processor(self, buffer_size)" in outcome(processor, FIRST).why


def test_a_class_whose_methods_are_its_own_is_a_publisher() -> None:
    class Source:
        elements = 20

        @classmethod
        def subscribe(cls, subscriber: Any, /) -> None:
            Publisher(cls.elements).subscribe(subscriber)

    assert outcome(Made(lambda elements: Source), FIRST).status == "passed"


class Taking:
    """A subscriber that takes nothing."""

    def on_subscribe(self, subscription: Any, /) -> None: ...

    def on_next(self, element: Any, /) -> None: ...

    def on_error(self, error: BaseException, /) -> None: ...

    def on_complete(self) -> None: ...


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (None, "create_subscriber() returned None, where a Subscriber is needed"),
        (Taking, "create_subscriber() returned a class, <class 'tck.test_bad_input.Taking'>, where an instance of it"),
        ("text", "which is no Subscriber: it has no on_subscribe, on_next, on_error, on_complete"),
    ],
)
def test_a_bad_factory_of_subscribers_is_named(made: Any, said: str) -> None:
    class Bad(SubscriberBlackboxVerification[Any]):
        def create_subscriber(self) -> Any:
            return made

    name = "required_spec209_blackbox_must_be_prepared_to_receive_an_on_complete_signal_without_preceding_request_call"
    assert said in outcome(Bad(), name).why


def test_a_bad_factory_of_processors_is_named() -> None:
    class Bad(IdentityProcessorVerification[Any]):
        def create_identity_processor(self, buffer_size: int) -> Any:
            return Publisher(3)

    class Raises(IdentityProcessorVerification[Any]):
        def create_identity_processor(self, buffer_size: int) -> Any:
            raise OSError("none left")

    assert "seen: create_identity_processor(16) raised OSError: none left" in outcome(Raises(), FIRST).why
    said = "seen: create_identity_processor(16) returned"
    assert said in outcome(Bad(), FIRST).why
    said = "which is no Processor: it has no on_subscribe, on_next, on_error, on_complete"
    assert said in outcome(Bad(), FIRST).why
    assert said in outcome(Bad(), "required_spec201_must_signal_demand_via_subscription_request").why


def test_a_subscriber_that_never_registers_is_named() -> None:
    class Bad(SubscriberWhiteboxVerification[Any]):
        def create_subscriber(self, probe: Any) -> Any:
            return sound.BlackboxSubscriber()

    name = "required_spec201_must_signal_demand_via_subscription_request"
    assert "the subscriber did not call probe.register_on_subscribe in on_subscribe" in outcome(Bad(), name).why


# -- settings -------------------------------------------------------------------------------------------------


def test_a_timeout_is_an_attribute_or_a_variable_of_the_original_kit_or_the_default() -> None:
    variables = {"DEFAULT_TIMEOUT_MILLIS": "250", "PUBLISHER_REFERENCE_GC_TIMEOUT_MILLIS": "50"}
    settings = Settings.of({"publisher_reference_gc_timeout": 2, "default_timeout": None}, variables)
    assert settings.default_timeout == settings.default_no_signals_timeout == 0.25
    assert settings.publisher_reference_gc_timeout == 2
    assert settings.call_timeout == 1.0


@pytest.mark.parametrize("wrong", [0, -1, True, "long", float("nan")])
def test_a_timeout_that_is_none_is_named(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"default_timeout: a number of seconds above 0 is needed, not"):
        Settings.of({"default_timeout": wrong}, {})
    with pytest.raises(ValueError, match=r"DEFAULT_TIMEOUT_MILLIS='.*': a number of milliseconds above 0 is needed"):
        Settings.of({}, {"DEFAULT_TIMEOUT_MILLIS": "0" if wrong == 0 else "-3"})


def test_an_argument_that_is_no_setting_is_named() -> None:
    with pytest.raises(TypeError, match="patience is no setting of Publishers"):
        Publishers().configure(patience=3)


def test_checks_that_need_more_than_there_is_are_skipped_and_say_so() -> None:
    few = Made(Publisher, max_elements_from_publisher=3)
    assert outcome(few, FIRST).why == "rule 1.1: needs 5 elements; max_elements_from_publisher is 3"
    endless = Made(Publisher, max_elements_from_publisher=2**63 - 1)
    name = "required_spec105_must_signal_on_complete_when_finite_stream_terminates"
    assert outcome(endless, name).why == "rule 1.5: needs on_complete; max_elements_from_publisher says it never comes"


def test_what_is_only_tested_by_repetition_can_be_skipped() -> None:
    skipping = Made(Publisher, skip_stochastic_tests=True)
    result = outcome(skipping, "stochastic_spec103_must_signal_on_methods_sequentially")
    assert (result.status, result.why) == ("skipped", "rule 1.3: skip_stochastic_tests is set")


def test_a_deeper_recursion_can_be_allowed() -> None:
    class Recurses(Subscription):
        def wake(self) -> None:
            self.drain()

    publisher = publisher_of(Recurses)
    name = "required_spec303_must_not_allow_unbounded_recursion"
    assert outcome(Made(publisher), name).status == "failed"
    assert (
        "3 deep on one thread; the bound is 2"
        in outcome(Made(publisher, bounded_depth_of_on_next_and_request_recursion=2), name).why
    )


def test_publishers_that_leave_2_7_to_their_subscribers_may_say_so() -> None:
    serial = Made(Publisher, requests_may_be_concurrent=False)
    result = outcome(serial, "extra_spec308_no_demand_may_be_lost_between_two_requests")
    assert (result.status, result.why) == ("skipped", "rule 3.8: requests_may_be_concurrent is False")
