"""The tools for users' tests: they pass what is right, and name what is not."""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from typing import Any

import pytest
from sinks import PATIENCE, Sink

from reactive_runtime import Flow
from reactive_runtime._executors.shared_clock import SharedClock
from reactive_runtime.errors import ProtocolError
from reactive_runtime.executors import VirtualTimeExecutor, clock_in
from reactive_runtime.hooks import Dropped
from reactive_runtime.hot import PublishProcessor
from reactive_runtime.testing import Probe, Recorder, RuleChecker, StepVerifier, TestPublisher, check


def test_steps_pass_a_flow_that_does_what_is_expected() -> None:
    clock = VirtualTimeExecutor()
    flow = Flow.interval(10, clock=clock).take(3).concat_with(Flow.error(OSError("no disk")))
    (
        StepVerifier(flow, demand=1, clock=clock)
        .expect_no_event(9)
        .then_wait(1)
        .expect_next(0)
        .then_request(5)
        .then_wait(20)
        .expect_next_matches(lambda n: n == 1)
        .expect_next_count(1)
        .expect_error(OSError, match="no disk")
        .verify()
    )
    StepVerifier(Flow.never()).expect_no_event(0.01).then_cancel().verify()


@pytest.mark.parametrize(
    ("verifier", "text"),
    [
        (StepVerifier(Flow.range(2)).expect_next(0, 2), "step 2, expect_next(2): on_next(1) came"),
        (StepVerifier(Flow.range(1)).expect_complete(), "step 1, expect_complete(): on_next(0) came"),
        (StepVerifier(Flow.range(1)).expect_next(0), "after the last step, on_complete came"),
        (StepVerifier[int](Flow.never()).expect_next(0), "nothing came in 0.01 s"),
        (StepVerifier(Flow.range(1)).expect_no_event(0), "on_next(0) came"),
        (StepVerifier(Flow.range(1), demand=0), "the end was neither expected nor cancelled"),
        (StepVerifier(Flow.error(OSError())).expect_error(KeyError), "OSError() came"),
    ],
)
def test_steps_name_what_came_instead(verifier: StepVerifier[int], text: str) -> None:
    with pytest.raises(AssertionError) as raised:
        verifier.verify(timeout=0.01)
    assert text in str(raised.value)


def test_a_probe_knows_what_was_asked() -> None:
    probe, sink = Probe(Flow.range(9)), Sink(demand=2)
    Flow.from_publisher(probe).subscribe(sink)
    sink.subscription.request(3)
    sink.subscription.cancel()
    assert (probe.requests, probe.subscribed, probe.cancelled) == ([2, 3], 1, 1)


def test_a_test_publisher_keeps_the_rules() -> None:
    publisher: TestPublisher[int] = TestPublisher()
    sink = Sink(demand=1)
    publisher.subscribe(sink)
    publisher.emit(1)
    with pytest.raises(AssertionError, match="asked for no more"):
        publisher.emit(2)
    sink.subscription.cancel()
    publisher.emit(3)
    publisher.complete()
    assert sink.elements == [1]
    assert sink.end is None
    assert (publisher.cancelled, publisher.subscribers) == (1, 1)


def test_the_demand_of_a_test_publisher_is_that_of_the_subscribers_that_are_left() -> None:
    publisher: TestPublisher[int] = TestPublisher()
    leaves, stays = Sink(demand=1), Sink(demand=5)
    publisher.subscribe(leaves)
    publisher.subscribe(stays)
    publisher.emit(1)
    assert publisher.demand == 0
    leaves.subscription.cancel()
    assert publisher.demand == 4
    publisher.emit(2, 3, 4, 5)
    assert stays.elements == [1, 2, 3, 4, 5]
    stays.subscription.request(2)
    publisher.complete()
    assert publisher.demand == 0


@pytest.mark.parametrize("rule", ["1.1", "1.3", "1.7", "1.8", "1.9"])
def test_a_test_publisher_breaks_the_rule_that_it_is_asked_to(rule: str, dropped: list[Dropped]) -> None:
    publisher: TestPublisher[int] = TestPublisher(breaks=rule)
    recorder, sink = Recorder(), Sink(demand=0 if rule == "1.1" else 5)
    recorder.wrap(publisher).subscribe(sink)
    if rule == "1.9":
        publisher._all()[0].request(1)
    publisher.emit(0)
    if rule == "1.7":
        publisher.complete()
        publisher.emit(1)
    if rule == "1.8":
        sink.subscription.cancel()
        publisher.emit(1, 2)
    found = {violation.rule for violation in check(recorder.records())}
    assert rule in found


@pytest.mark.parametrize("rule", ["1.1", "1.3", "1.7", "1.8"])
def test_a_flow_stands_what_a_publisher_does_against_the_rules(rule: str, dropped: list[Dropped]) -> None:
    publisher: TestPublisher[int] = TestPublisher(breaks=rule)
    sink = Sink(demand=0 if rule == "1.1" else 4)
    Flow.from_publisher(publisher).subscribe(sink)
    publisher.emit(7)
    if rule == "1.7":
        publisher.complete()
        publisher.emit(8)
    if rule == "1.8":
        sink.subscription.cancel()
        publisher.emit(8)
    assert sink.elements == {"1.1": [], "1.3": [7, 7], "1.7": [7], "1.8": [7]}[rule]
    if rule == "1.1":
        assert isinstance(sink.error, ProtocolError)


def test_a_step_verifier_sets_its_clock() -> None:
    flow = Flow.interval(3600).take(2)
    for _ in range(2):
        verifier = StepVerifier(flow, clock=VirtualTimeExecutor()).expect_no_event(3599).then_wait(1).expect_next(0)
        verifier.then_wait(3600).expect_next(1).expect_complete().verify()


def test_a_step_verifiers_clock_is_there_for_what_its_steps_begin_and_gone_after() -> None:
    source, heard = PublishProcessor[int](), list[Any]()
    clock = VirtualTimeExecutor()

    def begin() -> None:
        Flow.timer(5).subscribe(heard.append)

    verifier = StepVerifier(source, clock=clock).then(begin).then_wait(5)
    verifier.then(source.on_complete).expect_complete().verify()
    assert heard == [0]
    assert isinstance(clock_in(), SharedClock)


# -- a test publisher and the rules that it sees -------------------------------------------------------------------


@pytest.mark.parametrize("n", ["a", 0, -1, None, 1.5, True])
def test_a_request_that_is_no_int_from_1_is_answered_by_the_rule(n: Any) -> None:
    publisher: TestPublisher[int] = TestPublisher()
    sink = Sink(demand=0)
    publisher.subscribe(sink)
    sink.subscription.request(n)
    assert "(3.9)" in str(sink.error)
    assert (publisher.demand, sink.elements) == (0, [])

    verifier = StepVerifier(TestPublisher[int](), demand=0).then_request(n)
    verifier.expect_error(ValueError, match="(3.9)").verify()


@pytest.mark.parametrize("n", ["a", 0, -1, None, True])
def test_a_probe_counts_only_what_asks_for_something(n: Any) -> None:
    publisher: TestPublisher[int] = TestPublisher()
    probe, sink = Probe(publisher), Sink(demand=2)
    probe.subscribe(sink)
    sink.subscription.request(n)
    assert "(3.9)" in str(sink.error)
    assert (probe.requests, probe.requested) == ([2, n], 2)


def test_an_answer_to_a_request_waits_for_the_signal_that_is_under_way() -> None:
    publisher: TestPublisher[int] = TestPublisher()
    probe = Probe(publisher)
    sink = Sink(demand=1, then=lambda sink, _: sink.subscription.request(0))
    probe.subscribe(sink)
    publisher.emit(7)
    assert [signal[0] for signal in sink.signals] == ["on_subscribe", "on_next", "on_error"]
    probe.verify()

    probe, sink = Probe(TestPublisher[int]()), Sink(demand=-1)  # from inside on_subscribe
    probe.subscribe(sink)
    assert "(3.9)" in str(sink.error)
    probe.verify()


def test_an_answer_to_a_request_of_another_thread_waits_for_the_signal_that_is_under_way() -> None:
    publisher: TestPublisher[int] = TestPublisher()

    def asks(sink: Sink, _: Any) -> None:
        thread = threading.Thread(target=sink.subscription.request, args=(0,))
        thread.start()
        thread.join(PATIENCE)

    probe, sink = Probe(publisher), Sink(demand=1, then=asks)
    probe.subscribe(sink)
    publisher.emit(7)
    assert [signal[0] for signal in sink.signals] == ["on_subscribe", "on_next", "on_error"]
    probe.verify()


SIGNALLED: dict[str, Any] = {
    "emit": lambda publisher: publisher.emit(8),
    "complete": lambda publisher: publisher.complete(),
    "fail": lambda publisher: publisher.fail(OSError()),
}


@pytest.mark.parametrize("signal", SIGNALLED)
def test_a_test_publisher_signals_nothing_from_inside_a_signal(signal: str) -> None:
    publisher: TestPublisher[int] = TestPublisher()
    failed: list[str] = []

    def then(sink: Sink, _: Any) -> None:
        with pytest.raises(AssertionError) as raised:
            SIGNALLED[signal](publisher)
        failed.append(str(raised.value))

    sink = Sink(then=then)
    publisher.subscribe(sink)
    publisher.emit(7)
    assert failed == [f"{signal}: the subscriber is inside of on_next (1.3)"]
    assert sink.elements == [7]
    publisher.complete()
    assert sink.end == ("on_complete",)


@pytest.mark.parametrize("signal", SIGNALLED)
def test_a_test_publisher_signals_nothing_beside_on_subscribe(signal: str) -> None:
    publisher: TestPublisher[int] = TestPublisher()
    failed: list[str] = []

    class Opening(Sink):
        def on_subscribe(self, subscription: Any, /) -> None:
            super().on_subscribe(subscription)

            def beside() -> None:
                try:
                    SIGNALLED[signal](publisher)
                except AssertionError as error:
                    failed.append(str(error))

            thread = threading.Thread(target=beside)
            thread.start()
            thread.join(PATIENCE)
            publisher.emit(7)  # on the same thread it may come before on_subscribe has returned

    sink = Opening()
    publisher.subscribe(sink)
    assert failed == [f"{signal}: the subscriber is inside of on_subscribe (1.3)"]
    assert sink.elements == [7]


def test_a_test_publisher_is_not_driven_by_none() -> None:
    publisher: TestPublisher[Any] = TestPublisher()
    sink = Sink()
    publisher.subscribe(sink)
    with pytest.raises(TypeError, match=r"2\.13"):
        publisher.emit(1, None)
    with pytest.raises(TypeError, match=r"2\.13"):
        publisher.fail(None)  # type: ignore[arg-type]
    assert sink.signals == [("on_subscribe",)]


@pytest.mark.parametrize("error", ["x", OSError])
def test_a_test_publisher_fails_by_an_exception_alone(error: Any) -> None:
    publisher: TestPublisher[int] = TestPublisher()
    sink = Sink()
    publisher.subscribe(sink)
    with pytest.raises(TypeError, match=r"^fail: error must be an exception, not ('x'|<class 'OSError'>)$"):
        publisher.fail(error)
    assert sink.signals == [("on_subscribe",)]


@pytest.mark.parametrize("signal", SIGNALLED)
def test_a_test_publisher_signals_nothing_before_on_subscribe(signal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher: TestPublisher[int] = TestPublisher()
    # As another thread finds it that comes while a thread is about to call on_subscribe.
    monkeypatch.setattr("reactive_runtime.testing._publisher._Driven.begin", lambda driven: driven.request(1))
    sink = Sink()
    publisher.subscribe(sink)
    with pytest.raises(AssertionError, match=rf"^{signal}: the subscriber's on_subscribe has not begun \(1\.9\)"):
        SIGNALLED[signal](publisher)
    assert sink.signals == []


def test_signals_at_the_same_time_are_seen_of_a_quick_subscriber() -> None:
    for _ in range(20):
        publisher: TestPublisher[int] = TestPublisher(breaks="1.3")
        recorder, sink = Recorder(), Sink(demand=5)
        probe = Probe(recorder.wrap(publisher))
        recorder.wrap(Probe(probe)).subscribe(sink)
        publisher.emit(7)
        assert [(found.rule, found.subscription) for found in check(recorder.records())] == [("1.3", 1), ("1.3", 0)]
        with pytest.raises(AssertionError, match=r"rule 1\.3"):
            probe.verify()
        assert sink.elements == [7, 7]


class Noneful:
    """Signals None (2.13)."""

    def __init__(self, signal: str) -> None:
        self.signal = signal

    def subscribe(self, subscriber: Any, /) -> None:
        if self.signal != "on_subscribe":
            subscriber.on_subscribe(self)
        getattr(subscriber, self.signal)(None)

    def request(self, n: int, /) -> None: ...

    def cancel(self) -> None: ...


class Refusing(Sink):
    """Answers None as a subscriber has to."""

    def on_subscribe(self, subscription: Any, /) -> None:
        if subscription is None:
            raise TypeError("None")
        super().on_subscribe(subscription)

    def on_next(self, element: Any, /) -> None:
        raise TypeError("None")

    def on_error(self, error: BaseException, /) -> None:
        raise TypeError("None")


@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
@pytest.mark.parametrize("kind", [Sink, Refusing])
@pytest.mark.parametrize("signal", ["on_subscribe", "on_next", "on_error"])
def test_none_is_seen_by_the_recorder_and_named_by_the_checker(
    signal: str, kind: type[Sink], many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if many:  # as of a large trace: by columns first
        monkeypatch.setattr("reactive_runtime.testing._checker.MANY", 0)
    recorder = Recorder()
    with suppress(TypeError, AttributeError):
        recorder.wrap(Noneful(signal)).subscribe(kind())
    recorder.wrap(Flow.just(0)).subscribe(Sink())
    found = [violation for violation in check(recorder.records()) if violation.rule == "2.13"]
    assert [(violation.subscription, violation.count, violation.seen) for violation in found] == [
        (0, 1, f"{signal}(None)")
    ]
    assert ">>" in str(found[0])
    assert str(found[0]).startswith("rule 2.13: ")


def test_a_test_publisher_that_signals_none_is_found_by_a_recorder() -> None:
    publisher: TestPublisher[int] = TestPublisher(breaks="2.13")
    recorder = Recorder()
    recorder.wrap(publisher, ascending=True).subscribe(Sink(demand=2))
    publisher.emit(1, 2)
    assert [(found.rule, found.count) for found in check(recorder.records())] == [("2.13", 2)]


def test_an_error_whose_text_is_none_is_no_none() -> None:
    class NoneError(Exception):
        def __repr__(self) -> str:
            return "None"

    recorder = Recorder()
    recorder.wrap(Flow.error(NoneError())).subscribe(Sink())
    assert check(recorder.records()) == []


UNTYPED: Any = check
WRAP: Any = Recorder().wrap
RULE_CHECKER: Any = RuleChecker


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: WRAP(None), TypeError, "wrap: a publisher is needed, not None"),
        (lambda: WRAP(Flow), TypeError, "wrap: a publisher is needed, not <class"),
        (lambda: Recorder().wrap(Flow.range(1), elements=-1), ValueError, "wrap: elements must be at least 0, not -1"),
        (lambda: WRAP(Flow.range(1), elements=2**63), ValueError, "wrap: elements must be at most 2**63 - 1, not"),
        (lambda: WRAP(Flow.range(1), elements=1.5), TypeError, "wrap: elements must be an int, not float"),
        (lambda: Recorder().wrap(Flow.range(1), late_signals=-1), ValueError, "wrap: late_signals must be at least 0"),
        (lambda: Recorder().wrap(Flow.range(1), late_signals=16), ValueError, "wrap: late_signals must be at most 15"),
        (lambda: check([], late_signals=-1), ValueError, "check: late_signals must be at least 0, not -1"),
        (lambda: check([], late_signals=99), ValueError, "check: late_signals must be at most 15, not 99"),
        (lambda: check([], context=-1), ValueError, "check: context must be at least 0, not -1"),
        (lambda: RULE_CHECKER(late_signals="1"), TypeError, "check: late_signals must be an int, not str"),
        (lambda: UNTYPED(Recorder()), TypeError, ">: check(recorder.records())"),
        (lambda: UNTYPED(None), TypeError, "check: records are needed, not None"),
    ],
)
def test_what_a_recorder_or_a_check_can_not_take_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()
    assert check([], late_signals=15, context=0) == []
    Recorder().wrap(Flow.range(1), elements=0, late_signals=0)


@pytest.mark.parametrize("item", [3, object(), print])
def test_what_is_no_subscriber_is_refused_and_not_counted(item: Any) -> None:
    publisher = TestPublisher[int]()
    with pytest.raises(TypeError, match=r"^subscribe\(.*\): a Subscriber is needed, and that has no on_subscribe$"):
        publisher.subscribe(item)
    assert publisher.subscribers == 0
