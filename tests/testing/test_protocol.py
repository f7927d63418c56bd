"""What a verifier and a probe see of the rules: each single fault of a publisher, at each moment, is named by its rule.

A sound publisher, with `on_subscribe` at once or late, on the same thread or on another, is not accused.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Sink
from tck.built_in import OPERATORS, PUBLISHERS

from reactive_runtime.executors import TrampolineExecutor
from reactive_runtime.testing import Probe, StepVerifier
from reactive_runtime.testing import _step_run as steps
from reactive_runtime.testing._protocol import Breach

BEFORE, INSIDE, FIRST, END, CANCEL = (
    *("before on_subscribe", "inside on_subscribe"),
    *("after the first element", "at the end", "after a cancel"),
)


class Scripted:
    """Two elements and the end, on an executor of one thread; at one moment it does something else as well."""

    def __init__(self, executor: Executor, moment: str = "", fault: Callable[[Scripted], object] | None = None) -> None:
        self.executor = executor
        self.moment = moment
        self.fault = fault
        self.subscriber: Any = None
        self.demand = self.delivered = 0
        self.over = self.busy = self.opening = False

    def subscribe(self, subscriber: Any, /) -> None:
        self.subscriber = subscriber
        self.executor.submit(self.open)

    def open(self) -> None:
        self.at(BEFORE)
        self.opening = True
        self.subscriber.on_subscribe(self)
        self.opening = False
        self.run()

    def at(self, moment: str) -> None:
        if moment == self.moment and self.fault is not None:
            fault, self.fault = self.fault, None
            fault(self)

    def request(self, n: int, /) -> None:
        self.demand += n
        if self.opening:
            self.at(INSIDE)
        else:
            self.executor.submit(self.run)

    def cancel(self) -> None:
        if not self.over:
            self.over = True
            self.executor.submit(self.at, CANCEL)

    def next(self, element: Any) -> None:
        self.demand -= 1
        self.subscriber.on_next(element)

    def run(self) -> None:
        if self.busy:
            return
        self.busy = True
        while self.demand > 0 and not self.over:
            self.delivered += 1
            self.next(self.delivered)
            if self.delivered == 1:
                self.at(FIRST)
                if self.moment == CANCEL:
                    break  # it waits for the cancel
            if self.delivered == 2 and not self.over:
                self.over = True
                self.subscriber.on_complete()
                self.at(END)
        self.busy = False


def beyond(publisher: Scripted) -> None:
    for _ in range(max(publisher.demand, 0) + 1):
        publisher.next(7)


def at_once(publisher: Scripted) -> None:
    """Two threads, each of which is inside of its signal until the other one begins."""
    together = threading.Barrier(2)

    def signal() -> None:
        together.wait(PATIENCE)
        publisher.subscriber.on_next("at once")

    threads = [threading.Thread(target=signal) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)


def ended(publisher: Scripted) -> None:
    publisher.over = True
    publisher.subscriber.on_complete()


def ended_twice(publisher: Scripted) -> None:
    ended(publisher)
    publisher.subscriber.on_error(OSError("a second end"))


def ended_and_goes_on(publisher: Scripted) -> None:
    ended(publisher)
    publisher.next(7)


FAULTS: dict[str, tuple[Callable[[Scripted], object], dict[str, str]]] = {
    "elements beyond demand": (beyond, {BEFORE: "1.9", INSIDE: "1.1", FIRST: "1.1", END: "1.7", CANCEL: "1.1"}),
    "signals that overlap": (
        at_once,
        {
            BEFORE: "1.9",
            INSIDE: "1.3",
            FIRST: "1.3",
            END: "1.[37]",
            CANCEL: "1.3",
        },  # after the end: both, in either order
    ),
    "two ends": (ended_twice, {BEFORE: "1.9", INSIDE: "1.7", FIRST: "1.7", END: "1.7", CANCEL: "1.7"}),
    "an element after the end": (
        ended_and_goes_on,
        {BEFORE: "1.9", INSIDE: "1.7", FIRST: "1.7", END: "1.7", CANCEL: "1.7"},
    ),
    "two on_subscribe": (
        lambda publisher: publisher.subscriber.on_subscribe(publisher),
        dict.fromkeys((BEFORE, INSIDE, FIRST, END, CANCEL), "2.12"),
    ),
    "None as an element": (
        lambda publisher: publisher.next(None),
        {BEFORE: "1.9", INSIDE: "2.13", FIRST: "2.13", END: "1.7", CANCEL: "2.13"},
    ),
    "None as an error": (
        lambda publisher: publisher.subscriber.on_error(None),
        {BEFORE: "1.9", INSIDE: "2.13", FIRST: "2.13", END: "1.7", CANCEL: "2.13"},
    ),
}
"""Each with the rule that it breaks, by the moment."""

CELLS = [(fault, moment) for fault, (_, rules) in FAULTS.items() for moment in rules]


@pytest.fixture(params=["here", "on another thread"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    if request.param == "here":
        yield TrampolineExecutor()
        return
    with ThreadPoolExecutor(1) as pool:
        yield pool


def verifier_of(publisher: Scripted, signals: list[tuple[Any, ...]], moment: str) -> StepVerifier[Any]:
    """Steps that expect what such a publisher signals: what breaks a rule does so though it was expected."""
    verifier = StepVerifier(publisher, demand=2)
    if moment == CANCEL:
        return verifier.expect_next(1).then_cancel()
    for signal, *_ in signals:
        if signal == "on_next":
            verifier.expect_next_count(1)
        elif signal == "on_complete":
            verifier.expect_complete()
        elif signal == "on_error":
            verifier.expect_error(BaseException)
    return verifier


def signals_of(fault: str, moment: str) -> list[tuple[Any, ...]]:
    """What it signals, as a subscriber hears it that checks nothing."""
    sink = Sink(demand=2)
    Scripted(TrampolineExecutor(), moment, FAULTS[fault][0]).subscribe(sink)
    return sink.signals


@pytest.mark.parametrize(("fault", "moment"), CELLS)
def test_a_verifier_names_the_rule_that_is_broken(
    fault: str, moment: str, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "LINGER", PATIENCE)  # it ends with the fault
    broken, rules = FAULTS[fault]

    def breaking(publisher: Scripted) -> None:
        if broken is at_once:
            monkeypatch.setattr(steps, "OVERLAP", PATIENCE)
        broken(publisher)

    verifier = verifier_of(Scripted(executor, moment, breaking), signals_of(fault, moment), moment)
    with pytest.raises(AssertionError) as raised:
        verifier.verify(timeout=PATIENCE)
    text = str(raised.value)
    assert re.search(f"rule {rules[moment]}: ", text)
    assert text.startswith(("step ", "after the last step: "))
    assert "; all signals: " in text


def test_a_rule_that_is_broken_while_the_last_step_is_taken_is_not_lost() -> None:
    """The thread that breaks it looks where the verification is; that went on between two looks, and it raised."""

    class GoesOn(list[Any]):
        def __len__(self) -> int:
            run._at = 1  # the thread that verifies has just taken the step
            return super().__len__()

    run = steps.Run([steps.Step("expect_complete()")], 1, None, PATIENCE)
    run._steps = GoesOn(run._steps)
    run._breaks(Breach("2.12", "a second on_subscribe"))
    assert str(run._failure).startswith("step 1, expect_complete(): ")


@pytest.mark.parametrize(("fault", "moment"), CELLS)
def test_a_probe_names_the_rule_that_is_broken(fault: str, moment: str, executor: Executor) -> None:
    broken, rules = FAULTS[fault]
    inside, done = threading.Barrier(2), threading.Event()

    def then(sink: Sink, element: Any) -> None:
        if element == "at once":
            inside.wait(PATIENCE)
        elif moment == CANCEL and element == 1:
            sink.subscription.cancel()

    def breaking(publisher: Scripted) -> None:
        try:
            broken(publisher)
        finally:
            done.set()

    probe: Probe[Any] = Probe(Scripted(executor, moment, breaking))
    probe.subscribe(Sink(demand=2, then=then))
    assert done.wait(PATIENCE)
    executor.shutdown()
    with pytest.raises(AssertionError, match=rf"^rule {rules[moment]}: .*; all signals: "):
        probe.verify()
    assert re.match(f"rule {rules[moment]}: ", probe.violations[0])
    for name in ("requests", "requested", "subscribed", "cancelled"):
        with pytest.raises(AssertionError, match=f"rule {rules[moment]}"):
            getattr(probe, name)


@pytest.mark.parametrize("demand", [1, 2, 9])
def test_a_sound_publisher_is_not_accused(demand: int, executor: Executor) -> None:
    verifier = StepVerifier(Scripted(executor), demand=demand).expect_next(1)
    (verifier.then_request(1) if demand == 1 else verifier).expect_next(2).expect_complete().verify(timeout=PATIENCE)
    StepVerifier(Scripted(executor), demand=demand).expect_next(1).then_cancel().verify(timeout=PATIENCE)
    StepVerifier(Scripted(executor), demand=0).then_cancel().verify(timeout=PATIENCE)
    sink, probe = Sink(demand, lambda sink, _: sink.subscription.request(1)), Probe(Scripted(executor))
    probe.subscribe(sink)
    assert sink.wait().elements == [1, 2]
    executor.shutdown()
    probe.verify()
    assert probe.requests == [demand, 1, 1]


# -- calls that raise ---------------------------------------------------------------------------------------------


class Raising(Scripted):
    def __init__(self, what: str) -> None:
        super().__init__(TrampolineExecutor())
        self.what = what

    def raises(self, what: str) -> None:
        if what == self.what:
            raise OSError("mine")

    def subscribe(self, subscriber: Any, /) -> None:
        super().subscribe(subscriber)
        self.raises("subscribe")

    def request(self, n: int, /) -> None:
        self.raises("request(1)")
        super().request(n)

    def cancel(self) -> None:
        self.raises("cancel")


@pytest.mark.parametrize(("what", "rule"), [("subscribe", "1.9"), ("request(1)", "3.16"), ("cancel", "3.15")])
def test_a_call_that_raises_is_named_by_its_rule(what: str, rule: str) -> None:
    with pytest.raises(
        AssertionError, match=rf"rule {rule}: {what.replace('(', '.').replace(')', '.')} raised"
    ) as raised:
        StepVerifier(Raising(what), demand=1).expect_next(1).then_cancel().verify()
    assert isinstance(raised.value.__cause__, OSError)

    probe, sink = Probe(Raising(what)), Sink(demand=0)

    def all_of_it() -> None:
        probe.subscribe(sink)
        sink.subscription.request(1)
        sink.subscription.cancel()

    with pytest.raises(OSError, match="mine"):  # it is passed through
        all_of_it()
    with pytest.raises(AssertionError, match=rf"rule {rule}: "):
        probe.verify()


def test_what_a_subscriber_raises_is_no_fault_of_its_publisher() -> None:
    def fails(sink: Sink, element: Any) -> None:
        raise OSError("the subscriber's")

    class Direct(Scripted):
        def request(self, n: int, /) -> None:
            self.subscriber.on_next(1)

    probe, sink = Probe(Direct(TrampolineExecutor())), Sink(demand=0, then=fails)
    probe.subscribe(sink)
    with pytest.raises(OSError, match="the subscriber's"):
        sink.subscription.request(1)
    probe.verify()


# -- publishers of the package ------------------------------------------------------------------------------------

SOUND = {item.name: item for item in (*PUBLISHERS, *OPERATORS) if item.most >= 3}

ENDS_ON_REQUEST = {"from_queue"}
"""They take nothing out, so no end either, without demand."""


@pytest.mark.parametrize("name", SOUND)
def test_a_publisher_of_the_package_is_not_accused(name: str) -> None:
    probe, last = Probe(SOUND[name].create(3)), 2 if name in ENDS_ON_REQUEST else 1
    StepVerifier(probe).expect_next_count(3).expect_complete().verify(timeout=PATIENCE)
    StepVerifier(probe, demand=2 + last).expect_next_count(3).expect_complete().verify(timeout=PATIENCE)
    one = StepVerifier(probe, demand=1).expect_next_count(1).then_request(1).expect_next_count(1).then_request(last)
    one.expect_next_count(1).expect_complete().verify(timeout=PATIENCE)
    StepVerifier(probe, demand=0).then_cancel().verify(timeout=PATIENCE)
    StepVerifier(probe, demand=2).expect_next_count(1).then_cancel().verify(timeout=PATIENCE)
    StepVerifier(probe, demand=0).then_request(0).expect_error().verify(timeout=PATIENCE)
    probe.verify()


@pytest.mark.parametrize("name", [name for name, item in SOUND.items() if item.fails is not None])
def test_a_publisher_of_the_package_that_fails_is_not_accused(name: str) -> None:
    fails = SOUND[name].fails
    assert fails is not None
    probe = Probe(fails(2))
    StepVerifier(probe).expect_next_count(2).expect_error(OSError).verify(timeout=PATIENCE)
    probe.verify()
