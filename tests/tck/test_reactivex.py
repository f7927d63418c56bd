"""The kit's verdicts on RxPY's observables: as they push, and as flows; docs/tck-evidence.md has the table."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.abc import DisposableBase
from reactivex.disposable import SingleAssignmentDisposable
from reactivex.scheduler import CurrentThreadScheduler, EventLoopScheduler
from reactivex.subject import Subject

from reactive_runtime import MAX_DEMAND, Emitter, Flow, hooks
from reactive_runtime.tck import Outcome, PublisherVerification
from reactive_runtime.testing import Recorder, check
from tck.page import PAGE, row_is
from tck.test_unusual import SIDE_BY_SIDE, tried

MOST = 1_000
"""Below it the kit has no reason to end the thread of a publisher, which would be one of RxPY's schedulers."""


class Pushed:
    """An observable as a publisher, with nothing added: a request has no effect, a cancel disposes."""

    def __init__(self, observable: rx.Observable[Any]) -> None:
        self.observable = observable

    def subscribe(self, subscriber: Any, /) -> None:
        if subscriber is None:
            raise TypeError("subscribe: a subscriber is needed, not None")
        disposable = SingleAssignmentDisposable()
        subscriber.on_subscribe(Unasked(disposable))
        pushed_to(self.observable, disposable, subscriber.on_next, subscriber.on_error, subscriber.on_complete)


@dataclass
class Unasked:
    """The subscription of `Pushed`."""

    disposable: DisposableBase

    def request(self, n: int, /) -> None:
        """There is no way to ask an observable."""

    def cancel(self) -> None:
        self.disposable.dispose()


def as_flow(observable: rx.Observable[Any]) -> Flow[Any]:
    """As docs/how-to/from-rxpy.md shows it."""

    def push(emitter: Emitter[Any]) -> None:
        disposable = SingleAssignmentDisposable()
        emitter.on_cancel(disposable.dispose)
        pushed_to(observable, disposable, emitter.emit, emitter.error, emitter.complete)

    return Flow.create(push, capacity=MOST)


def pushed_to(observable: rx.Observable[Any], disposable: SingleAssignmentDisposable, *functions: Any) -> None:
    """Subscribe on RxPY's trampoline: there the disposable is known before the first element, as RxPY's own are."""

    def subscribe(*_: object) -> None:
        disposable.disposable = observable.subscribe(*functions)

    CurrentThreadScheduler.singleton().schedule(subscribe)


LOOPS: list[EventLoopScheduler] = []
"""Of the running test."""


@pytest.fixture(autouse=True)
def _loops_end() -> Iterator[None]:
    yield
    while LOOPS:
        LOOPS.pop().dispose()


def loop() -> EventLoopScheduler:
    LOOPS.append(EventLoopScheduler())
    return LOOPS[-1]


def fed(elements: int) -> rx.Observable[int]:
    """A subject for each subscriber, which is fed, and completed, when that has subscribed."""

    def subscribe(observer: Any, _: Any = None) -> DisposableBase:
        subject: Subject[int] = Subject()
        disposable = subject.subscribe(observer)

        def feed(*_: object) -> None:
            for number in range(elements):
                subject.on_next(number)
            subject.on_completed()

        CurrentThreadScheduler.singleton().schedule(feed)
        return disposable

    return rx.Observable(subscribe)


def fed_by_two(elements: int) -> rx.Observable[int]:
    """As `fed`, by two threads that take turns to begin, and do not wait for each other's calls to return."""

    def subscribe(observer: Any, _: Any = None) -> DisposableBase:
        subject: Subject[int] = Subject()
        disposable = subject.subscribe(observer)
        both_done = threading.Barrier(2, subject.on_completed)

        def feed(numbers: range) -> None:
            for number in numbers:
                subject.on_next(number)
            both_done.wait()

        for first in range(2):
            threading.Thread(target=feed, args=(range(first, elements, 2),), daemon=True).start()
        return disposable

    return rx.Observable(subscribe)


@dataclass(frozen=True)
class Theirs:
    """An observable of a number of elements; and failing after them."""

    name: str
    create: Callable[[int], rx.Observable[Any]]
    failing_after: Callable[[int], rx.Observable[Any]] | None = None
    most: int = MOST
    waits: float = 5.0
    """Seconds for what has to come."""
    settings: dict[str, float] = field(default_factory=dict)
    """Where it is pushed, and something never comes: it is not waited for any longer."""
    seen: dict[str, str] = field(default_factory=dict)
    """Of a rule that is broken, what the kit and the page say."""

    def failing(self, elements: int) -> rx.Observable[Any] | None:
        return None if self.failing_after is None or elements > self.most else self.failing_after(elements)


def failed(*_: object) -> rx.Observable[Any]:
    return rx.throw(OSError("no net"))


BUSY = {"call_timeout": 1.0}
"""Where the kit's subscriber is busy in an element, which it gets inside `subscribe`: that returns when it is not."""

THEIRS = [
    Theirs(
        "`range`",
        rx.range,
        lambda n: rx.concat(rx.range(n), failed()),
        settings=BUSY,
        seen={"1.1": "1 element came, and 0 were requested"},
    ),
    Theirs("`of`", lambda n: rx.of(*range(n)), lambda n: rx.concat(rx.of(*range(n)), failed()), settings=BUSY),
    Theirs(
        "`from_iterable`",
        lambda n: rx.from_iterable(range(n)),
        lambda n: rx.concat(rx.from_iterable(range(n)), failed()),
        settings=BUSY,
    ),
    Theirs("a `Subject`, fed by one thread", fed, settings=BUSY),
    Theirs(
        "a `Subject`, fed by two threads",
        fed_by_two,
        settings={"default_poll_timeout": 0.5},  # so long its subscriber is inside a signal, where it waits for another
        seen={"1.3": "on_next began on one thread while a signal was running on another"},
    ),
    Theirs("`throw`", failed, failed, most=0),
    Theirs(
        "`throw`, `observe_on` an `EventLoopScheduler`",
        lambda n: failed().pipe(ops.observe_on(loop())),
        lambda n: failed().pipe(ops.observe_on(loop())),
        most=0,
        settings={"publisher_reference_gc_timeout": 0.5},
        seen={"1.6": "still refers to the subscriber of an ended stream"},
    ),
    Theirs("`never`", lambda n: rx.never(), most=0, waits=0.2),
]


class Judged(PublisherVerification[Any]):
    default_no_signals_timeout = 0.01
    default_poll_timeout = 0.01
    publisher_reference_gc_timeout = 5.0
    call_timeout = 10.0

    def __init__(self, theirs: Theirs, way_in: Callable[[rx.Observable[Any]], Any]) -> None:
        self.theirs = theirs
        self.way_in = way_in
        self.max_elements_from_publisher = theirs.most
        self.default_timeout = theirs.waits

    def create_publisher(self, elements: int) -> Any:
        return self.way_in(self.theirs.create(elements))

    def create_failed_publisher(self) -> Any:
        return self.create_publisher_failing_after(0)

    def create_publisher_failing_after(self, elements: int) -> Any:
        made = self.theirs.failing(elements)
        return None if made is None else self.way_in(made)


def outcomes(*verifications: Judged) -> list[list[Outcome]]:
    """Of each, all checks, side by side: where something is broken the kit mostly waits."""
    for verification in verifications:
        if verification.theirs.most:
            tried(verification)
    with hooks.captured(), ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
        found = [threads.map(verification.outcome, verification.checks()) for verification in verifications]
        return [list(items) for items in found]


def verdict(found: list[Outcome]) -> str:
    assert any(item.status == "passed" and not item.check.asks_nothing for item in found)
    rules = {item.rule for item in found if item.status == "failed"}
    return f"breaks {', '.join(sorted(rules))}" if rules else "conforms"


@pytest.mark.parametrize("theirs", THEIRS, ids=lambda theirs: theirs.name)
def test_the_verdict_on_an_observable_is_that_of_the_page(theirs: Theirs) -> None:
    found, of_flow = outcomes(Judged(theirs, Pushed).configure(**theirs.settings), Judged(theirs, as_flow))
    assert verdict(of_flow) == "conforms"
    row_is("observables of RxPY", f"| {theirs.name} | {verdict(found)} | {verdict(of_flow)} |")
    for rule, words in theirs.seen.items():
        assert any(item.rule == rule and words in item.why for item in found)
        assert f'{words}" ({rule})' in PAGE.read_text()


def test_an_invalid_request_gets_no_answer() -> None:
    """Of a stream without end, in which no element comes before the answer is due."""
    endless = Theirs("`never`", lambda n: rx.never(), most=MAX_DEMAND, waits=0.2)
    verification = Judged(endless, Pushed)
    found = [verification.outcome(item) for item in verification.checks() if "required_spec309" in item.name]
    assert {(item.status, item.rule) for item in found} == {("failed", "3.9")}
    assert all("no on_error came" in item.why for item in found)
    assert '"no on_error came" (3.9)' in PAGE.read_text()


SERIAL = [item for item in THEIRS if item.name not in ("`never`", "a `Subject`, fed by two threads")]


@pytest.mark.parametrize("theirs", SERIAL, ids=lambda theirs: theirs.name)
def test_where_all_is_requested_the_signals_of_an_observable_break_no_rule(theirs: Theirs) -> None:
    for observable in (theirs.create(5), theirs.failing(5)):
        if observable is not None:
            recorder = Recorder()
            signals = Flow.from_publisher(recorder.wrap(Pushed(observable))).materialize().to_list().block(timeout=30)
            assert signals is not None
            assert signals
            assert check(recorder.records()) == []


class Idle:
    """Requests nothing."""

    def on_subscribe(self, subscription: Any, /) -> None: ...
    def on_next(self, element: Any, /) -> None: ...
    def on_error(self, error: BaseException, /) -> None: ...
    def on_complete(self) -> None: ...


def test_what_was_not_requested_comes_all_the_same() -> None:
    recorder = Recorder()
    recorder.wrap(Pushed(rx.range(3))).subscribe(Idle())
    assert [(found.rule, found.count) for found in check(recorder.records())] == [("1.1", 3)]
