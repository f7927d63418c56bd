"""A signal from elsewhere, of a clock, a switch, another publisher, never waits for the user's code upstream.

The source is held in a user's function, or spins without result, on a thread of its own; the clock is moved on another.
What the clock brings has to be signalled before the source is released, and a source that spins has to be cancelled.
"""

from __future__ import annotations

import collections
import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
from searching import one_pair_each_by_day
from sinks import PATIENCE, Sink

from reactive_runtime import Flow, KillSwitch, hooks
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hot import PublishProcessor

pytestmark = pytest.mark.usefixtures("unhurried")


class Held:
    """A source's code: it tells when a thread is inside of it, and keeps that thread until it is released."""

    def __init__(self) -> None:
        self.inside = threading.Event()
        self.release = threading.Event()
        self.calls = 0  # of a loop's code, on one thread at a time

    def loops(self) -> None:
        self.inside.set()
        self.calls += 1

    def wait(self, *_: Any) -> int:
        self.inside.set()
        assert self.release.wait(PATIENCE)
        return 1

    def spin(self, *_: Any) -> bool:
        """For a loop without result that is cancelled."""
        self.loops()
        return False

    def fail(self, *_: Any) -> int:
        self.loops()
        raise OSError("again")

    def rows(self) -> Iterator[int]:
        yield 0
        yield self.wait()


KEEPING: dict[str, Callable[[Held], Flow[Any]]] = {
    "a callable that waits": lambda held: Flow.from_callable(held.wait),
    "a map that waits": lambda held: Flow.range(3).map(held.wait),
    "a hot source's map that waits": lambda held: hot().map(held.wait),
    "a filter that drops everything": lambda held: Flow.from_supplier(itertools.count).filter(held.spin),
    "an endless retry": lambda held: Flow.from_callable(held.fail).retry(),
    "an endless retry of a step": lambda held: Flow.range(1).map(held.fail).retry(),
    "an endless repeat of nothing": lambda held: Flow.range(1).filter(held.spin).repeat(),
    "an element without end, of which all is dropped": lambda held: (
        Flow.just(1).flat_map_iterable(lambda n: itertools.count()).filter(held.spin)
    ),
    "a flat_map to nothing": lambda held: Flow.from_supplier(itertools.count).flat_map(lambda n: nothing(held)),
    "windows of nothing": lambda held: Flow.from_supplier(itertools.count).filter(held.spin).window(3),
    "a concat_map to nothing": lambda held: Flow.from_supplier(itertools.count).concat_map(lambda n: nothing(held)),
}


def nothing(held: Held) -> Flow[Any]:
    held.loops()
    return Flow.empty()


def hot() -> Flow[Any]:
    """A source that pushes on the thread that subscribes."""
    return Flow.create(lambda emitter: emitter.emit(1))


def thrown(flow: Flow[Any], clock: VirtualTimeExecutor) -> Flow[Any]:
    switch = KillSwitch()
    clock.schedule(1, switch.throw)
    return flow.kill_switch(switch)


def tick(clock: VirtualTimeExecutor) -> Flow[int]:
    return Flow.timer(1, clock=clock)


ENDING: dict[str, Callable[[Flow[Any], VirtualTimeExecutor], Flow[Any]]] = {
    "timeout": lambda flow, clock: flow.timeout(1, clock=clock),
    "timeout with a fallback": lambda flow, clock: flow.timeout(1, clock=clock, fallback=Flow.just(7)),
    "timeout of a timeout": lambda flow, clock: flow.timeout(9, clock=clock).timeout(1, clock=clock),
    "take_until": lambda flow, clock: flow.take_until(tick(clock)),
    "kill_switch": thrown,
    "race": lambda flow, clock: Flow.race(tick(clock), flow),
    "merge": lambda flow, clock: Flow.merge(tick(clock), flow).take(1),
    "merge of what fails": lambda flow, clock: Flow.merge(tick(clock).map(lambda n: 1 // n), flow),
    "zip": lambda flow, clock: Flow.zip(tick(clock).ignore_elements(), flow),
    "combine_latest": lambda flow, clock: Flow.combine_latest(tick(clock).ignore_elements(), flow),
    "with_latest_from": lambda flow, clock: flow.with_latest_from(tick(clock).map(lambda n: 1 // n)),
    "sample": lambda flow, clock: flow.sample(tick(clock).ignore_elements()),
    "flat_map": lambda flow, clock: Flow.just(tick(clock), flow).flat_map(lambda item: item).take(1),
    "buffer_timeout, behind": lambda flow, clock: flow.buffer_timeout(5, 1, clock=clock).take_until(tick(clock)),
    "debounce, behind": lambda flow, clock: flow.debounce(1, clock=clock).take_until(tick(clock)),
    "rate_limit, behind": lambda flow, clock: flow.rate_limit(5, clock=clock).take_until(tick(clock)),
    "group_by, behind": lambda flow, clock: flow.group_by(lambda n: n).take_until(tick(clock)),
}

PLACES = ("caller", "subscribe_on before", "subscribe_on behind", "publish_on behind")


@contextmanager
def at_work(flow: Flow[Any], sink: Sink) -> Iterator[None]:
    """Subscribed on a thread of its own, which has to come back."""
    thread = threading.Thread(target=flow.subscribe, args=(sink,))
    thread.start()
    yield
    thread.join(PATIENCE)
    assert not thread.is_alive()


def move_until(ended: threading.Event, clock: VirtualTimeExecutor) -> None:
    """Move the clock on: its timers may be set at any moment, before the source is inside its code or after."""
    for _ in range(int(PATIENCE * 100)):
        clock.advance(1)
        if ended.wait(0.01):
            return
    raise AssertionError("the clock moved on, and the flow did not end while its source kept its thread")


def words(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else "-".join(value)


@pytest.mark.parametrize(
    ("keeping_ending", "place"), one_pair_each_by_day(itertools.product(KEEPING, ENDING), PLACES), ids=words
)
def test_a_clock_ends_a_flow_whose_source_keeps_its_thread(keeping_ending: tuple[str, str], place: str) -> None:
    keeping, ending = keeping_ending
    held, clock, sink = Held(), VirtualTimeExecutor(timeout=0), Sink()
    with hooks.captured(), ThreadPoolExecutor(1) as pool:
        flow = KEEPING[keeping](held)
        if place == "subscribe_on before":
            flow = flow.subscribe_on(pool)
        flow = ENDING[ending](flow, clock)
        if place == "subscribe_on behind":
            flow = flow.subscribe_on(pool)
        with at_work(flow if place != "publish_on behind" else flow.publish_on(ThreadPoolExecutor(1)), sink):
            assert held.inside.wait(PATIENCE)
            move_until(sink.ended, clock)
            held.release.set()


class Foreign:
    """A flow that is not known to be one."""

    def __init__(self, flow: Flow[Any]) -> None:
        self.flow = flow

    def subscribe(self, subscriber: Any, /) -> None:
        self.flow.subscribe(subscriber)


BETWEEN: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "retry": lambda flow: flow.retry(0),
    "repeat": lambda flow: flow.repeat(1),
    "map_error": lambda flow: flow.map_error(lambda error: OSError(str(error))),
    "on_error_return": lambda flow: flow.on_error_return(lambda error: 0),
    "on_error_resume": lambda flow: flow.on_error_resume(Flow.error, when=KeyError),
    "retry_when": lambda flow: flow.retry_when(lambda error, attempt: Flow.empty()),
    "a step and retry": lambda flow: flow.map(lambda n: n).retry(0).map(lambda n: n),
    "concat_map": lambda flow: Flow.just(1).concat_map(lambda n: flow),
    "flat_map": lambda flow: Flow.just(1).flat_map(lambda n: flow),
    "switch_map": lambda flow: Flow.just(1).switch_map(lambda n: flow),
    "serialize": lambda flow: flow.serialize(),
    "limit_rate": lambda flow: flow.limit_rate(4),
    "defer": lambda flow: Flow.defer(lambda: flow),
    "using": lambda flow: Flow.using(lambda: nullcontext(1), lambda n: flow),
    "concat": lambda flow: Flow.concat(Flow.empty(), flow),
    "start_with": lambda flow: flow.start_with(Flow.just(0)),
    "cache": lambda flow: flow.cache(),
    "share": lambda flow: flow.share(),
    "replay": lambda flow: flow.replay(1).ref_count(),
    "from_publisher": lambda flow: Flow.from_publisher(Foreign(flow)),
    "many steps": lambda flow: functools.reduce(lambda flow, _: flow.flat_map_iterable(lambda n: [n]), range(60), flow),
}


HEARD = ["timeout", "take_until", "kill_switch", "merge of what fails", "buffer_timeout, behind"]


@pytest.mark.parametrize(
    ("keeping_between", "ending"), one_pair_each_by_day(itertools.product(KEEPING, BETWEEN), HEARD), ids=words
)
def test_a_clock_is_heard_though_operators_stand_between_it_and_the_pool(
    keeping_between: tuple[str, str], ending: str
) -> None:
    keeping, between = keeping_between
    held, clock, sink = Held(), VirtualTimeExecutor(timeout=0), Sink()
    with hooks.captured(), ThreadPoolExecutor(1) as pool:
        BETWEEN[between](ENDING[ending](KEEPING[keeping](held), clock)).subscribe_on(pool).subscribe(sink)
        assert held.inside.wait(PATIENCE)
        try:
            move_until(sink.ended, clock)
        finally:
            sink.subscription.cancel()
            held.release.set()


KEPT = ("from_publisher", "cache", "share", "replay")
"""What begins its source on the thread that connects, and has no executor to give way to."""


LOOPS_BEHIND_AN_OPERATOR = one_pair_each_by_day(
    [item for item in BETWEEN if item not in KEPT], [item for item in KEEPING if "waits" not in item]
)


@pytest.mark.parametrize(("between", "keeping"), LOOPS_BEHIND_AN_OPERATOR)
def test_a_loop_without_result_gives_way_and_is_cancelled_behind_an_operator(keeping: str, between: str) -> None:
    held, sink = Held(), Sink()
    with hooks.captured(), ThreadPoolExecutor(1) as pool:
        BETWEEN[between](KEEPING[keeping](held)).subscribe_on(pool).subscribe(sink)
        try:
            assert held.inside.wait(PATIENCE)
            assert Flow.range(5_000).subscribe_on(pool).count().to_future().result(PATIENCE) == 5_000
        finally:
            sink.subscription.cancel()
        assert pool.submit(lambda: 1).result(PATIENCE) == 1


class ByHand(Executor):
    """Keeps its tasks until they are run, one at a time, by hand."""

    def __init__(self) -> None:
        self.tasks: collections.deque[Callable[[], object]] = collections.deque()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.tasks.append(lambda: future.set_result(fn(*args, **kwargs)))
        return future


@pytest.mark.parametrize(("between", "keeping"), LOOPS_BEHIND_AN_OPERATOR)
def test_no_turn_of_a_loop_without_result_is_longer_than_a_batch(keeping: str, between: str) -> None:
    held, sink, executor = Held(), Sink(), ByHand()
    turns: list[int] = []
    with hooks.captured():
        BETWEEN[between](KEEPING[keeping](held)).subscribe_on(executor).subscribe(sink)
        while held.calls < 5_000:
            before = held.calls
            executor.tasks.popleft()()
            turns.append(held.calls - before)
        sink.subscription.cancel()
    assert max(turns) <= 2_100


HEARING: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "timeout": lambda flow: flow.timeout(9),
    "take_until": lambda flow: flow.take_until(Flow.never()),
    "merge": lambda flow: Flow.merge(flow, Flow.never()),
    "with_latest_from": lambda flow: flow.with_latest_from(Flow.never()),
    "debounce": lambda flow: flow.debounce(0.001),
    "flat_map": lambda flow: flow.flat_map(lambda n: Flow.timer(0)),
}


AROUND = itertools.product(HEARING, HEARING, ["behind", "behind, and one more after it"])


@pytest.mark.parametrize(("around", "between"), one_pair_each_by_day(AROUND, ["nothing", "a step", "retry"]), ids=words)
def test_a_source_runs_where_subscribe_on_says_whatever_hears_from_elsewhere(
    around: tuple[str, str, str], between: str
) -> None:
    before, after, place = around
    on: set[str] = set()
    taken = threading.Event()

    def rows() -> Iterator[int]:
        for n in range(3):
            on.add(threading.current_thread().name.partition("_")[0])
            yield n
        taken.set()

    flow: Flow[Any] = HEARING[before](Flow.from_supplier(rows))
    flow = flow.map(str) if between == "a step" else flow.retry(0) if between == "retry" else flow
    with hooks.captured(), ThreadPoolExecutor(2, "pool") as pool:
        flow = HEARING[after](flow).subscribe_on(pool)
        (flow.timeout(9) if "after" in place else flow).subscribe(sink := Sink())
        assert taken.wait(PATIENCE)
        sink.subscription.cancel()
    assert on == {"pool"}


@pytest.mark.parametrize("between", [item for item in BETWEEN if item not in KEPT])
def test_elements_of_another_thread_do_not_wait_for_a_source_that_keeps_the_pool(between: str) -> None:
    held, sink = Held(), Sink()
    hot: PublishProcessor[int] = PublishProcessor()
    with hooks.captured(), ThreadPoolExecutor(1) as pool:
        slow = Flow.from_callable(held.wait).subscribe_on(pool)
        BETWEEN[between](Flow.merge(hot, slow)).subscribe_on(pool).subscribe(sink)
        assert held.inside.wait(PATIENCE)
        hot.emit(5)
        sink.wait_for(2 if between == "start_with" else 1)
        assert sink.elements[-1] == 5
        sink.subscription.cancel()
        held.release.set()


OTHERS: dict[str, Callable[[], Flow[int]]] = {
    "just": lambda: Flow.just(7),
    "retry": lambda: Flow.just(7).retry(1),
    "start_with": lambda: Flow.never().start_with(7),
    "concat_with": lambda: Flow.just(7).concat_with(Flow.never()),
    "switch_if_empty": lambda: Flow.empty().switch_if_empty(Flow.just(7)),
    "a step": lambda: Flow.just(6).map(lambda n: n + 1).concat_with(Flow.never()),
    "flat_map": lambda: Flow.just(7).flat_map(Flow.just),
    "defer": lambda: Flow.defer(lambda: Flow.just(7).concat_with(Flow.never())),
    "from_publisher": lambda: Flow.from_publisher(Foreign(Flow.just(7))),
    "serialize": lambda: Flow.just(7).serialize(),
}
BESIDE: dict[str, tuple[Callable[[Flow[int], Flow[int]], Flow[Any]], list[Any]]] = {
    "take_until": (lambda flow, other: flow.take_until(other), []),
    "skip_until": (lambda flow, other: flow.skip_until(other), [0, 1, 2]),
    "with_latest_from": (lambda flow, other: flow.with_latest_from(other), [(0, 7), (1, 7), (2, 7)]),
}


@pytest.mark.parametrize("on", ["the caller", "a pool of one thread"])
@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("other", OTHERS)
def test_what_the_other_publisher_has_at_once_comes_before_the_source(other: str, beside: str, on: str) -> None:
    operator, expected = BESIDE[beside]
    with ThreadPoolExecutor(1) as pool:
        flow = operator(Flow.range(3), OTHERS[other]())
        (flow if on == "the caller" else flow.subscribe_on(pool)).subscribe(sink := Sink())
        assert sink.wait().elements == expected


def test_the_source_begins_though_the_other_publisher_has_no_end() -> None:
    def others() -> Iterator[int]:
        for n in itertools.count():
            if sink.ended.is_set():
                return
            yield n

    sink = Sink()
    with ThreadPoolExecutor(1) as pool:
        Flow.range(3).subscribe_on(pool).with_latest_from(Flow.from_supplier(others)).subscribe(sink)
        assert [n for n, _ in sink.wait().elements] == [0, 1, 2]


def test_a_batch_is_given_in_time_though_operators_stand_between() -> None:
    held, clock, sink = Held(), VirtualTimeExecutor(timeout=0), Sink()
    with ThreadPoolExecutor(1) as pool:
        Flow.from_supplier(held.rows).buffer_timeout(5, 1, clock=clock).retry(1).subscribe_on(pool).subscribe(sink)
        assert held.inside.wait(PATIENCE)
        clock.advance(1)
        sink.wait_for(1)
        assert sink.elements == [[0]]
        held.release.set()
        sink.wait()
    assert sink.elements == [[0], [1]]


def test_the_next_attempt_runs_on_the_pool_and_its_timeout_is_heard() -> None:
    held, clock, sink = Held(), VirtualTimeExecutor(timeout=0), Sink()
    ran: list[str] = []

    def slow() -> int:
        ran.append(threading.current_thread().name)
        return held.wait()

    with hooks.captured(), ThreadPoolExecutor(2, "pool") as pool:
        Flow.from_callable(slow).timeout(1, clock=clock).retry(1).subscribe_on(pool).subscribe(sink)
        assert held.inside.wait(PATIENCE)
        held.inside.clear()
        clock.advance(1)
        assert held.inside.wait(PATIENCE), "the second attempt"
        assert not sink.ended.is_set()
        move_until(sink.ended, clock)
        held.release.set()
    assert len(ran) == 2
    assert all(name.startswith("pool") for name in ran)


MADE: dict[str, Callable[[Flow[int], Callable[[], Flow[int]]], Flow[int]]] = {
    "defer, after an error": lambda late, make: late.on_error_resume(lambda error: Flow.defer(make)),
    "defer, once more": lambda late, make: Flow.concat(
        late.on_error_resume(lambda error: Flow.empty()), Flow.defer(make)
    ),
    "using, after an error": lambda late, make: late.on_error_resume(
        lambda error: Flow.using(lambda: nullcontext(make()), lambda flow: flow)
    ),
    "defer, retried": lambda late, make: _after(late, make).retry(1),
    "defer, for the next element": lambda late, make: Flow.range(2).concat_map(
        lambda n: Flow.defer(make) if n else late.on_error_resume(lambda error: Flow.empty())
    ),
}
"""What is made after a clock has ended what was there before."""


def _after(late: Flow[int], make: Callable[[], Flow[int]]) -> Flow[int]:
    attempts = itertools.count()
    return Flow.defer(lambda: make() if next(attempts) else late)


@pytest.mark.parametrize("way", MADE)
def test_a_source_is_made_on_the_pool_and_not_on_the_thread_of_the_clock_that_ended_the_one_before(way: str) -> None:
    clock, sink = VirtualTimeExecutor(), Sink()
    on: list[str] = []

    def make() -> Flow[int]:
        on.append(threading.current_thread().name)
        return Flow.just(1)

    with ThreadPoolExecutor(1, "pool") as pool:
        late: Flow[int] = Flow.never().map(int).timeout(1, clock=clock)
        MADE[way](late, make).subscribe_on(pool).subscribe(sink)
        move_until(sink.ended, clock)
    assert sink.elements == [1]
    assert [name.startswith("pool") for name in on] == [True]


def test_a_batch_is_given_in_time_though_the_source_waits() -> None:
    held, clock, sink = Held(), VirtualTimeExecutor(timeout=0), Sink()
    with at_work(Flow.from_supplier(held.rows).buffer_timeout(5, 1, clock=clock), sink):
        assert held.inside.wait(PATIENCE)
        clock.advance(1)
        sink.wait_for(1)
        assert sink.elements == [[0]]
        held.release.set()
    assert sink.elements == [[0], [1]]


def test_an_element_is_debounced_in_time_though_the_source_waits() -> None:
    held, clock, sink = Held(), VirtualTimeExecutor(timeout=0), Sink()
    with at_work(Flow.from_supplier(held.rows).debounce(1, clock=clock), sink):
        assert held.inside.wait(PATIENCE)
        clock.advance(1)
        sink.wait_for(1)
        assert sink.elements == [0]
        held.release.set()
    assert sink.elements == [0, 1]


def test_another_source_is_heard_while_the_first_waits() -> None:
    held, other, sink = Held(), PublishProcessor[int](), Sink()
    with at_work(Flow.merge(other, Flow.from_supplier(held.rows)), sink):
        assert held.inside.wait(PATIENCE)
        other.emit(7)
        assert sink.elements == [0, 7]
        other.on_complete()
        held.release.set()
    assert sink.elements == [0, 7, 1]


def test_a_cancel_does_not_wait_for_a_request_that_gives_nothing() -> None:
    held, sink = Held(), Sink()
    with at_work(Flow.from_supplier(itertools.count).filter(held.spin).do_on_request(lambda n: None), sink):
        assert held.inside.wait(PATIENCE)
        sink.subscription.cancel()


@pytest.mark.parametrize("keeping", [item for item in KEEPING if "waits" not in item])
def test_a_loop_without_result_gives_its_pool_to_other_flows(keeping: str) -> None:
    held, sink = Held(), Sink()
    with ThreadPoolExecutor(1) as pool:
        KEEPING[keeping](held).subscribe_on(pool).subscribe(sink)
        assert held.inside.wait(PATIENCE)
        assert Flow.range(5_000).subscribe_on(pool).count().to_future().result(PATIENCE) == 5_000
        sink.subscription.cancel()


def test_explain_shows_where_an_upstream_has_a_drain_of_its_own() -> None:
    clock = VirtualTimeExecutor()
    assert "map(str) ¦ timeout(1 s)" in Flow.range(3).map(str).timeout(1, clock=clock).explain()
    assert "range(3) timeout(1 s)" in Flow.range(3).timeout(1, clock=clock).explain(), "a range keeps no thread"
    twice = Flow.range(3).map(str).timeout(1, clock=clock).timeout(2, clock=clock).explain()
    assert "¦ timeout(1 s) timeout(2 s)" in twice, "one is enough"
    with ThreadPoolExecutor(1) as pool:
        assert "¦" not in Flow.range(3).map(str).subscribe_on(pool).timeout(1, clock=clock).explain(), "it has a thread"


@pytest.mark.parametrize("between", ["share", "replay"])
@pytest.mark.parametrize("keeping", [item for item in KEEPING if "waits" not in item])
def test_a_shared_loop_without_result_is_cancelled(keeping: str, between: str) -> None:
    held, sink = Held(), Sink()
    with hooks.captured(), ThreadPoolExecutor(1) as pool:
        BETWEEN[between](KEEPING[keeping](held)).subscribe_on(pool).subscribe(sink)
        assert held.inside.wait(PATIENCE)
        sink.subscription.cancel()
        assert pool.submit(lambda: 1).result(PATIENCE) == 1


def test_a_shared_source_does_not_depend_on_the_pool_of_a_subscriber_that_has_gone() -> None:
    rows = Flow.range(300_000).map(lambda n: n).cache()
    with ThreadPoolExecutor(1) as pool:
        assert rows.subscribe_on(pool).take(3).to_list().block(timeout=PATIENCE) == [0, 1, 2]
    assert rows.count().block(timeout=PATIENCE) == 300_000


class Locked(Executor):
    """Drops its tasks while it holds a lock that `submit` needs, as the pools of the standard library do."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tasks: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        assert self.lock.acquire(timeout=PATIENCE / 10), "a submission from inside of a cancelled task"
        self.tasks.append((future, lambda: fn(*args, **kwargs)))
        self.lock.release()
        return future

    def step(self) -> None:
        future, task = self.tasks.pop(0)
        if future.set_running_or_notify_cancel():
            task()
            future.set_result(None)

    def drop(self) -> None:
        with self.lock:
            for future, _ in self.tasks:
                future.cancel()


@pytest.mark.parametrize("steps", range(12))
def test_a_pool_that_drops_its_tasks_is_not_asked_meanwhile(steps: int) -> None:
    clock, pool, sink = VirtualTimeExecutor(), Locked(), Sink()
    with hooks.captured():
        inner = Flow.range(50).map(lambda n: n).timeout(5, clock=clock)
        Flow.range(9).flat_map(lambda n: inner).subscribe_on(pool).publish_on(pool).subscribe(sink)
        for _ in range(steps):
            if pool.tasks:
                pool.step()
        left = bool(pool.tasks)
        pool.drop()
    assert not left or sink.end is not None


def test_an_inner_subscription_that_was_not_asked_away_from_home_is_not_parked() -> None:
    gate, inside, given_back = threading.Event(), threading.Event(), threading.Event()
    sink = Sink()

    class One:
        """Gives one element, and is silent."""

        def subscribe(self, subscriber: Any, /) -> None:
            class Given:
                def request(self, n: int) -> None:
                    if not inside.is_set():
                        subscriber.on_next(1)

                def cancel(self) -> None: ...

            subscriber.on_subscribe(Given())

    def wait_at_the_gate() -> None:
        given_back.set()
        gate.wait(PATIENCE)

    def many(n: int) -> Iterator[int]:
        for at in range(1_500):
            if at == 900:
                pool.submit(wait_at_the_gate)
                inside.set()
            yield at

    other = PublishProcessor[str]()
    with ThreadPoolExecutor(1) as pool:
        one = Flow.from_publisher(One()).flat_map_iterable(many)
        both = Flow.just(0, 1).flat_map(lambda n: other.map(str) if n else one)
        Flow.just(1).concat_map(lambda _: both).subscribe_on(pool).subscribe(sink)
        assert given_back.wait(PATIENCE)
        other.emit("b")
        gate.set()
        sink.wait_for(1_501)
        sink.subscription.cancel()
    assert len(sink.elements) == 1_501
