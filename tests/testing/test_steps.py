"""Steps: late and missing `on_subscribe`, a cancel anywhere, what raises in a comparison, and what pytest shows."""

from __future__ import annotations

import asyncio
import itertools
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE

from reactive_runtime import Flow, Publisher
from reactive_runtime.executors import VirtualTimeExecutor, clock_in
from reactive_runtime.hot import PublishProcessor
from reactive_runtime.testing import Probe, Recorder, StepVerifier, TestPublisher, check
from reactive_runtime.testing import _step_run as steps


class Late:
    """Connects its subscriber when, and where, `later` calls what it is given."""

    def __init__(self, later: Callable[[Callable[[], object]], object]) -> None:
        self.later = later

    def subscribe(self, subscriber: Any, /) -> None:
        self.later(lambda: Flow.range(3).subscribe(subscriber))


def on_a_thread(call: Callable[[], object]) -> None:
    threading.Thread(target=call).start()


def on_a_timer(call: Callable[[], object]) -> None:
    threading.Timer(0.02, call).start()


def on_a_loop(call: Callable[[], object]) -> None:
    async def later() -> None:
        await asyncio.sleep(0.01)
        call()

    on_a_thread(lambda: asyncio.run(later()))


LATER = {"a thread": on_a_thread, "a timer": on_a_timer, "an event loop": on_a_loop}


@pytest.mark.parametrize("later", LATER)
def test_on_subscribe_may_come_later(later: str) -> None:
    publisher = Late(LATER[later])
    StepVerifier(publisher).expect_next(0, 1, 2).expect_complete().verify(timeout=PATIENCE)
    StepVerifier(publisher, demand=0).then_request(1).expect_next(0).then_cancel().verify(timeout=PATIENCE)
    StepVerifier(publisher, demand=1).then_cancel().verify(timeout=PATIENCE)
    probe = Probe(publisher)
    StepVerifier(probe, demand=1).expect_next(0).then_request(2).expect_next(1, 2).expect_complete().verify()
    assert (probe.requests, probe.subscribed) == ([1, 2], 1)


def test_on_subscribe_may_come_when_the_virtual_clock_has_moved() -> None:
    clock = VirtualTimeExecutor()
    publisher = Late(lambda call: clock.schedule(60, call))
    verifier = StepVerifier(publisher, clock=clock).expect_no_event(59).then_wait(1)
    verifier.expect_next(0, 1, 2).expect_complete().verify()


@pytest.mark.parametrize("then", ["expect_next", "then_request", "then_cancel", "nothing"])
def test_an_on_subscribe_that_never_comes_is_named_with_how_long_it_was_waited_for(then: str) -> None:
    verifier: Any = StepVerifier(Late(lambda _: None))
    verifier = {
        "expect_next": lambda: verifier.expect_next(0),
        "then_request": lambda: verifier.then_request(1),
        "then_cancel": verifier.then_cancel,
        "nothing": lambda: verifier,
    }[then]()
    with pytest.raises(AssertionError) as raised:
        verifier.verify(timeout=0.01)
    text = str(raised.value)
    if then == "nothing":
        assert "the end was neither expected nor cancelled" in text
    else:
        assert text.startswith(f"step 1, {then}(")
        assert "no on_subscribe came in 0.01 s; verify(timeout=) says how long" in text
        assert "(rule 1.9)" in text


def test_an_on_subscribe_that_comes_when_all_is_over_is_cancelled() -> None:
    calls: list[Callable[[], object]] = []
    probe = Probe(Flow.range(3))

    class Keeps:
        def subscribe(self, subscriber: Any, /) -> None:
            calls.append(lambda: probe.subscribe(subscriber))

    with pytest.raises(AssertionError, match="no on_subscribe came"):
        StepVerifier(Keeps()).expect_next(0).verify(timeout=0.01)
    calls[0]()
    assert (probe.cancelled, probe.requests) == (1, [])


# -- then_cancel --------------------------------------------------------------------------------------------------


def endless() -> Flow[int]:
    return Flow.from_supplier(itertools.count)


CANCELLED: dict[str, Callable[[Publisher[int]], StepVerifier[int]]] = {
    "at first": lambda flow: StepVerifier(flow).then_cancel(),
    "after an element": lambda flow: StepVerifier(flow).expect_next(0).then_cancel(),
    "after a count": lambda flow: StepVerifier(flow).expect_next_count(2).then_cancel(),
    "after a predicate": lambda flow: StepVerifier(flow).expect_next_matches(lambda n: n == 0).then_cancel(),
    "after a request": lambda flow: (
        StepVerifier(flow, demand=1).expect_next(0).then_request(9).expect_next(1).then_cancel()
    ),
    "twice": lambda flow: StepVerifier(flow).expect_next(0).then_cancel().then_cancel(),
    "and silence": lambda flow: StepVerifier(flow).expect_next(0).then_cancel().expect_no_event(0.01),
    "before anything is asked": lambda flow: StepVerifier(flow, demand=0).then_cancel(),
}


@pytest.mark.parametrize("made", [lambda: Flow.range(3), endless], ids=["longer", "endless"])
@pytest.mark.parametrize("where", CANCELLED)
def test_a_cancel_may_stand_anywhere(where: str, made: Callable[[], Flow[int]]) -> None:
    probe = Probe(made())
    CANCELLED[where](probe).verify(timeout=PATIENCE)
    assert probe.cancelled == (2 if where == "twice" else 1)


def test_a_cancel_at_first_comes_before_any_request() -> None:
    probe = Probe(Flow.range(3))
    StepVerifier(probe).then_cancel().verify()
    assert (probe.requests, probe.cancelled) == ([], 1)


@pytest.mark.parametrize(
    "verifier",
    [
        StepVerifier(endless()).expect_next(0),
        StepVerifier(endless()).expect_next(1),
        StepVerifier(endless()).expect_complete(),
        StepVerifier(endless()).expect_next(0).then(lambda: None),
        StepVerifier(endless()).expect_no_event(0),
    ],
    ids=["more", "another", "an end", "then", "silence"],
)
def test_what_is_endless_and_not_as_expected_ends(verifier: StepVerifier[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MOST", 100)
    with pytest.raises(AssertionError):
        verifier.verify(timeout=PATIENCE)


def test_steps_that_wait_for_an_endless_call_name_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MOST", 100)
    with pytest.raises(AssertionError, match=r"^step 2, then\(\): 101 signals came .* request less \(demand=\)"):
        StepVerifier(endless()).expect_next(0).then(lambda: None).expect_next(1).then_cancel().verify()


def test_silence_is_broken_by_the_first_signal_of_an_endless_call() -> None:
    came: list[int] = []
    flow = endless().do_on_next(came.append)
    with pytest.raises(AssertionError, match=r"^step 2, expect_no_event\(0\.1\): on_next\(1\) came"):
        StepVerifier(flow).expect_next(0).expect_no_event(0.1).then_cancel().verify()
    assert came == [0, 1]


def test_steps_wait_for_an_endless_call_no_longer_than_for_a_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MANY", 100)
    monkeypatch.setattr(steps, "MOST", 1_000_000_000)
    with pytest.raises(AssertionError, match=r"^step 2, then\(\): [\d,]+ signals came from a call"):
        StepVerifier(endless()).expect_next(0).then(lambda: None).then_cancel().verify(timeout=0.05)
    StepVerifier(Flow.range(90)).then(lambda: None).expect_next_count(90).expect_complete().verify(timeout=0)


def test_a_publisher_that_goes_on_for_ever_after_a_cancel_is_named_by_its_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf:
        def subscribe(self, subscriber: Any, /) -> None:
            self.subscriber = subscriber
            subscriber.on_subscribe(self)

        def request(self, n: int, /) -> None:
            for element in itertools.count():
                self.subscriber.on_next(element)

        def cancel(self) -> None: ...

    monkeypatch.setattr(steps, "MOST", 100)
    with pytest.raises(AssertionError, match=r"rule 1\.8: 101 signals came after cancel had returned"):
        StepVerifier(Deaf()).expect_next(0).then_cancel().verify()


def test_the_first_cause_is_what_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes of the failure, an element that the publisher still signals, is not."""
    publisher: TestPublisher[int] = TestPublisher(breaks="1.8")
    verifier = StepVerifier(publisher, demand=1).then(lambda: publisher.emit(7)).expect_next(1)
    with pytest.raises(
        AssertionError, match=r"^step 2, expect_next\(1\): on_next\(7\) came; all signals: on_next\(7\)$"
    ):
        verifier.verify()


# -- what raises --------------------------------------------------------------------------------------------------


class Uncomparable:
    def __eq__(self, other: object) -> bool:
        raise OSError("no comparison")

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        raise OSError("no text")


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise OSError("no text")


def fails(_: object) -> bool:
    raise KeyError("the predicate's")


def asserts(_: object) -> bool:
    raise AssertionError("the predicate's own")


uncomparable: list[Any] = [Uncomparable()]


@pytest.mark.parametrize(
    ("verifier", "step", "cause"),
    [
        (
            StepVerifier(Flow.range(2)).expect_next(0).expect_next_matches(fails),
            "step 2, expect_next_matches()",
            KeyError,
        ),
        (StepVerifier(Flow.range(1)).expect_next_matches(asserts), "step 1, expect_next_matches()", AssertionError),
        (StepVerifier(Flow.from_iterable(uncomparable)).expect_next(0), "step 1, expect_next(0)", OSError),
        (StepVerifier(Flow.just(1)).expect_next(*uncomparable), "step 1, expect_next(<Uncomparable", OSError),
        (
            StepVerifier(Flow.error(UnspeakableError())).expect_error(match="x"),
            "step 1, expect_error(Exception)",
            OSError,
        ),
        (StepVerifier(Flow.never()).then(lambda: asserts(0)), "step 1, then()", AssertionError),
    ],
    ids=["a predicate", "an assertion", "the element", "what is expected", "an error", "then"],
)
def test_what_a_comparison_raises_is_reported_with_its_step_and_the_signals(
    verifier: StepVerifier[Any], step: str, cause: type[Exception]
) -> None:
    with pytest.raises(AssertionError) as raised:
        verifier.verify(timeout=PATIENCE)
    assert str(raised.value).startswith(step)
    assert "; all signals: " in str(raised.value)
    assert isinstance(raised.value.__cause__, cause)


async def refuses(_: object = None) -> bool:
    return False


def begins(_: object = None) -> Iterator[bool]:
    yield asserts(1)


async def begins_later(_: object = None) -> AsyncIterator[bool]:
    yield asserts(1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("verifier", "text"),
    [
        (
            StepVerifier(Flow.just(1)).expect_next_matches(lambda n: refuses(n)).expect_complete(),  # noqa: PLW0108
            "step 1, expect_next_matches(): the predicate returned a coroutine: nothing awaits it",
        ),
        (
            StepVerifier(Flow.just(1)).then(lambda: refuses()).expect_next(1).expect_complete(),  # noqa: PLW0108
            "step 1, then(): fn returned a coroutine: nothing awaits it",
        ),
        (
            StepVerifier(Flow.just(1)).expect_next_matches(begins).expect_complete(),
            "step 1, expect_next_matches(): the predicate returned a generator: nothing iterates it",
        ),
        (
            StepVerifier(Flow.just(1)).expect_next_matches(begins_later).expect_complete(),
            "step 1, expect_next_matches(): the predicate returned a generator: nothing iterates it",
        ),
        (
            StepVerifier(Flow.just(1)).then(begins).expect_next(1).expect_complete(),
            "step 1, then(): fn returned a generator: nothing iterates it",
        ),
    ],
    ids=["a predicate", "then", "a generator", "an async generator", "then, a generator"],
)
def test_a_function_that_has_not_run_has_checked_nothing(verifier: StepVerifier[int], text: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(text)):
        verifier.verify(timeout=PATIENCE)


def test_a_virtual_clock_that_no_step_moves_is_named() -> None:
    verifier = StepVerifier(Flow.interval(1), clock=VirtualTimeExecutor()).expect_next(0)
    with pytest.raises(AssertionError, match="the virtual clock moves only by then_wait and expect_no_event"):
        verifier.verify(timeout=0.01)


def test_what_a_step_raises_is_raised_with_a_note_of_its_step() -> None:
    def fn() -> None:
        raise OSError("mine")

    with pytest.raises(OSError, match="mine") as raised:
        StepVerifier(Flow.never()).expect_no_event(0).then(fn).verify()
    assert raised.value.__notes__ == ["step 2, then(); all signals: none"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_exit_of_a_predicate_is_verifys(error: type[BaseException]) -> None:
    def leaves(_: object) -> bool:
        raise error

    probe = Probe(Flow.range(9))
    with pytest.raises(error):
        StepVerifier(probe).expect_next_matches(leaves).verify()
    assert probe.cancelled == 1


def shown_by_pytest(verifier: StepVerifier[Any]) -> str:
    with pytest.raises(AssertionError) as raised:
        verifier.verify(timeout=0.01)  # the user's line
    return str(raised.getrepr(style="short"))


@pytest.mark.parametrize(
    "verifier",
    [
        StepVerifier(Flow.range(1)).expect_next(1),
        StepVerifier[int](Flow.never()).expect_next(1),
        StepVerifier(Flow.never()),
    ],
    ids=["another", "nothing", "no end"],
)
def test_pytest_shows_the_users_line_and_none_of_the_verifiers(verifier: StepVerifier[Any]) -> None:
    text = shown_by_pytest(verifier)
    assert "# the user's line" in text
    assert "reactive_runtime/testing" not in text


def test_pytest_shows_the_users_line_where_a_probe_fails() -> None:
    publisher: TestPublisher[int] = TestPublisher(breaks="1.1")
    probe = Probe(publisher)
    with pytest.raises(AssertionError, match="the end was neither"):
        StepVerifier(probe, demand=0).then(lambda: None).verify()
    Flow.from_publisher(probe).subscribe(lambda _: None, demand=0, on_error=lambda _: None)
    publisher.emit(1)
    with pytest.raises(AssertionError, match=r"rule 1\.1") as raised:
        _ = probe.requested  # the user's line
    text = str(raised.getrepr(style="short"))
    assert "# the user's line" in text
    assert "reactive_runtime/testing" not in text


def test_only_the_last_signals_are_shown() -> None:
    with pytest.raises(AssertionError, match=r"all signals: 151 more, on_next.151., ") as raised:
        StepVerifier(Flow.range(250)).expect_next_count(250).expect_next(0).verify()
    assert len(str(raised.value)) < 3_000
    with pytest.raises(AssertionError) as raised:
        StepVerifier(Flow.just("x" * 10**6)).expect_complete().verify()
    assert len(str(raised.value)) < 1_000


# -- coroutines, of which nothing is awaited ------------------------------------------------------------------------


class AsyncSubscribe:
    async def subscribe(self, subscriber: Any, /) -> None: ...


class HandsOut:
    """Gives its subscriber the subscription; a call of an attribute of it, in place of a method, is one of these."""

    def __init__(self, subscription: Any) -> None:
        self.subscription = subscription

    def subscribe(self, subscriber: Any, /) -> None:
        subscriber.on_subscribe(self.subscription)


class AsyncRequest:
    async def request(self, n: int, /) -> None: ...

    def cancel(self) -> None: ...


class AsyncCancel:
    def request(self, n: int, /) -> None: ...

    async def cancel(self) -> None: ...


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("subscription", "text"),
    [
        (AsyncRequest(), "rule 3.16: request(3) returned a coroutine: nothing awaits it"),
        (AsyncCancel(), "rule 3.15: cancel returned a coroutine: nothing awaits it"),
    ],
)
def test_a_method_that_returns_a_coroutine_is_a_breach(subscription: Any, text: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(text)):
        StepVerifier[int](HandsOut(subscription), demand=3).expect_no_event(0).then_cancel().verify()
    probe = Probe[int](HandsOut(subscription))
    StepVerifier(probe, demand=3).expect_no_event(0).then_cancel().verify()
    assert [text in violation for violation in probe.violations] == [True]


def test_an_error_that_is_no_exception_is_named() -> None:
    class Says:
        def subscribe(self, subscriber: Any, /) -> None:
            subscriber.on_subscribe(AsyncCancel())
            subscriber.on_error("x")

    with pytest.raises(AssertionError, match=r"on_error\('x'\) came, whose argument is no exception"):
        StepVerifier(Says()).expect_error().verify()


# -- the arguments ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: StepVerifier(3), TypeError, "StepVerifier: a publisher is needed, not 3"),  # type: ignore[arg-type]
        (lambda: StepVerifier(Flow), TypeError, "StepVerifier: a publisher is needed"),  # type: ignore[arg-type]
        (lambda: StepVerifier(Flow.never(), clock=3), TypeError, "clock must be a VirtualTimeExecutor, not 3"),  # type: ignore[arg-type]
        (lambda: StepVerifier(Flow.never()).expect_error(3), TypeError, "kind must be a class of exceptions, not 3"),  # type: ignore[arg-type]
        (lambda: StepVerifier(Flow.never()).expect_error(match=3), TypeError, "match must be a str, not int"),  # type: ignore[arg-type]
        (lambda: StepVerifier(AsyncSubscribe()), TypeError, "subscribe is a coroutine function: nothing awaits it"),
        (
            lambda: StepVerifier(Flow.range(1)).then_cancel().expect_next(0),
            ValueError,
            r"expect_next\(0\) after then_cancel\(\)",
        ),
        (
            lambda: StepVerifier(Flow.range(1)).then_cancel().then_cancel().expect_complete(),
            ValueError,
            r"expect_complete\(\) after then_cancel\(\)",
        ),
        (lambda: StepVerifier(Flow.never()).verify(timeout=-1), ValueError, "verify: timeout must be"),
        (lambda: Probe(3), TypeError, "Probe: a publisher is needed, not 3"),  # type: ignore[arg-type]
    ],
)
def test_what_can_not_be_verified_is_refused(call: Callable[[], object], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


# -- one clock ----------------------------------------------------------------------------------------------------


def test_the_flow_needs_no_clock_where_the_verifier_has_one() -> None:
    flow = Flow.interval(0.1).take(3).delay(0.2).timeout(1)  # no clock in it
    verifier = StepVerifier(flow, clock=VirtualTimeExecutor())
    verifier.then_wait(0.3).expect_next(0).then_wait(0.2).expect_next(1, 2).expect_complete().verify()
    assert not isinstance(clock_in(), VirtualTimeExecutor)


def test_what_a_step_emits_is_held_against_the_steps_behind_it() -> None:
    source = PublishProcessor[int]()
    verifier = StepVerifier(source).then(lambda: source.emit(1)).expect_next(1).then(lambda: source.emit(2))
    verifier.expect_next(2).then(source.on_complete).expect_complete().verify()


def test_a_verifier_fails_also_where_python_runs_without_assertions() -> None:
    code = (
        "from reactive_runtime import Flow\n"
        "from reactive_runtime.testing import StepVerifier\n"
        "StepVerifier(Flow.range(1)).expect_next(1).verify()\n"
    )
    done = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "AssertionError: step 1, expect_next(1): on_next(0) came" in done.stderr


@pytest.mark.parametrize("publisher", [Flow.range(1), Late(on_a_thread)], ids=["here", "on a thread"])
def test_a_step_after_the_end_does_not_wait_for_what_can_not_come(publisher: Publisher[int]) -> None:
    verifier = StepVerifier(publisher).expect_next_count(1 if isinstance(publisher, Flow) else 3)
    verifier.expect_complete().expect_next(1)
    with pytest.raises(AssertionError, match=r"^step \d, expect_next\(1\): nothing came after the end; all signals: "):
        verifier.verify(timeout=PATIENCE)


def test_a_signal_after_the_end_is_still_a_breach() -> None:
    publisher: TestPublisher[int] = TestPublisher(breaks="1.7")
    verifier = StepVerifier(publisher).then(publisher.complete).expect_complete()
    verifier.then(lambda: publisher.emit(1)).expect_next(1)
    with pytest.raises(AssertionError, match=r"rule 1\.7: on_next\(1\) came after on_complete"):
        verifier.verify(timeout=PATIENCE)


LEAVING: dict[str, Callable[[Any], StepVerifier[Any]]] = {
    "subscribe": lambda leave: StepVerifier(Flow.just(1).map(leave)).expect_next(1).expect_complete(),
    "expect_no_event": lambda leave: (
        StepVerifier(Flow.interval(1).map(leave), clock=VirtualTimeExecutor()).expect_no_event(1).then_cancel()
    ),
    "then_wait": lambda leave: (
        StepVerifier(Flow.interval(1).map(leave), clock=VirtualTimeExecutor()).then_wait(1).expect_next(0).then_cancel()
    ),
    "then_request": lambda leave: (
        StepVerifier(Flow.just(1).map(leave), demand=0).then_request(1).expect_next(1).then_cancel()
    ),
    "then": lambda leave: emitting(leave).expect_next(1).then_cancel(),
}


def emitting(leave: Any) -> StepVerifier[Any]:
    publisher: TestPublisher[int] = TestPublisher()
    return StepVerifier(Flow.from_publisher(publisher).map(leave)).then(lambda: publisher.emit(1))


OUTCOMES = [pytest.fail.Exception("no"), pytest.skip.Exception("later")]
"""They go up from the calls of the test itself; on the way from a timer a flow takes them for errors."""


@pytest.mark.parametrize(
    ("step", "exit"),
    [
        *((step, KeyboardInterrupt()) for step in LEAVING),
        *((step, outcome) for step in ("subscribe", "then_request", "then") for outcome in OUTCOMES),
    ],
    ids=str,
)
def test_an_exit_inside_of_the_flow_goes_before_each_failure(step: str, exit: BaseException) -> None:
    def leave(_: int) -> int:
        raise exit

    with pytest.raises(type(exit)):
        LEAVING[step](leave).verify()


def cancelled_at_its_end(flow: Flow[int]) -> list[StepVerifier[int]]:
    return [
        StepVerifier(flow.take(2)).expect_next(0, 1).expect_complete().then_cancel(),
        StepVerifier(flow.take(1).concat_with(Flow.error(OSError())))
        .expect_next(0)
        .expect_error(OSError)
        .then_cancel(),
        StepVerifier(flow.take(1), demand=0).then_request(1).then_cancel(),
    ]


def test_a_cancel_after_the_end_is_not_made_inside_of_it() -> None:
    for number in range(3):
        recorder = Recorder()
        for flow in (Flow.range(5), Flow.range(5).do_on_next(lambda n: None)):
            steps = cancelled_at_its_end(flow)[number]
            steps._publisher = recorder.wrap(steps._publisher)
            steps.verify()
        assert check(recorder.records()) == []


def test_the_first_signal_decides_where_none_is_expected() -> None:
    came: list[int] = []
    steps = StepVerifier(Flow.timer(0).repeat().do_on_next(came.append), clock=VirtualTimeExecutor())
    with pytest.raises(AssertionError, match=r"^step 1, expect_no_event\(1\): on_next\(0\) came"):
        steps.expect_no_event(1).then_cancel().verify()
    assert came == [0]


def test_signals_without_end_name_the_step_that_is_being_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MOST", 100)
    endless = StepVerifier(Flow.timer(0).repeat(), clock=VirtualTimeExecutor())
    with pytest.raises(AssertionError, match=r"^step 1, then_wait\(1\): 101 signals came"):
        endless.then_wait(1).then(lambda: None).then_cancel().verify()


@pytest.mark.parametrize("seconds", [threading.TIMEOUT_MAX, 1e10, 1e300])
def test_a_limit_of_centuries_is_taken(seconds: float) -> None:
    with ThreadPoolExecutor(1) as pool:
        steps = StepVerifier(Flow.just(1).subscribe_on(pool), clock=VirtualTimeExecutor(timeout=seconds))
        steps.then_wait(1).expect_next(1).expect_complete().verify(timeout=seconds)
    with pytest.raises(AssertionError, match="on_next"):
        StepVerifier(Late(on_a_timer)).expect_no_event(seconds).then_cancel().verify()
