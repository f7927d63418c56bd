"""What a flow does: demand, cancellation, completion, on one thread and across boundaries."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Numbers, Sink, wait_until

from reactive_runtime import MAX_DEMAND, Flow, Processor, Publisher, Subscriber, Subscription, hooks
from reactive_runtime._core.failures import dropping as hooks_of_core
from reactive_runtime._core.fusion import fuse
from reactive_runtime.executors import TrampolineExecutor
from reactive_runtime.hooks import Dropped
from reactive_runtime.testing import TestPublisher


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4, "pool") as executor:
        yield executor


PLACES: dict[str, Callable[[Flow[Any], Executor], Flow[Any]]] = {
    "here": lambda flow, pool: flow,
    "on a pool": lambda flow, pool: flow.subscribe_on(pool),
    "pulled through a boundary": lambda flow, pool: flow.publish_on(pool, prefetch=4),
    "behind a boundary": lambda flow, pool: flow.subscribe_on(pool).publish_on(pool, prefetch=4),
    "behind three": lambda flow, pool: (
        flow.subscribe_on(pool).publish_on(pool, prefetch=1).publish_on(pool, prefetch=2).publish_on(pool, prefetch=256)
    ),
    "from a foreign publisher": lambda flow, pool: Flow.from_publisher(flow),
    "from a foreign publisher, on a pool": lambda flow, pool: Flow.from_publisher(flow).subscribe_on(pool),
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, pool: Executor) -> Callable[[Flow[Any]], Flow[Any]]:
    return lambda flow: PLACES[request.param](flow, pool)


Place = Callable[[Flow[Any]], Flow[Any]]


# -- demand ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("demand", [1, 2, 7, 1000, MAX_DEMAND])
def test_spec105_all_elements_arrive_in_order_and_then_the_end(place: Place, demand: int) -> None:
    def again(sink: Sink, element: int) -> None:
        if demand < 1000 and (element + 1) % demand == 0:
            sink.subscription.request(demand)

    sink = Sink(demand, again)
    place(Flow.range(500)).subscribe(sink)
    assert sink.wait().elements == list(range(500))
    assert sink.end == ("on_complete",)


def test_spec101_no_more_arrive_than_were_requested(place: Place) -> None:
    source = Numbers()
    sink = Sink(demand=3)
    place(Flow.from_supplier(lambda: source)).subscribe(sink)
    sink.wait_for(3)
    sink.subscription.request(2)
    sink.wait_for(2)
    sink.subscription.cancel()
    assert sink.elements == [0, 1, 2, 3, 4]


def test_an_inline_source_is_pulled_no_further_than_demanded() -> None:
    source, sink = Numbers(), Sink(demand=3)
    Flow.from_supplier(lambda: source).map(str).subscribe(sink)
    assert source.pulled == 3
    sink.subscription.request(4)
    assert source.pulled == 7
    sink.subscription.cancel()


@pytest.mark.parametrize("prefetch", [1, 2, 3, 4, 16, 256])
def test_a_boundary_asks_for_no_more_than_its_prefetch_ahead_of_demand(pool: Executor, prefetch: int) -> None:
    source, sink = Numbers(), Sink(demand=0)
    Flow.from_supplier(lambda: source).subscribe_on(pool).publish_on(pool, prefetch=prefetch).subscribe(sink)
    for _ in range(50):
        sink.subscription.request(1)
        sink.wait_for(1)
    sink.subscription.cancel()
    assert len(sink.elements) <= source.pulled <= len(sink.elements) + prefetch


def test_a_boundary_refills_at_three_quarters(pool: Executor) -> None:
    class Probe:
        def __init__(self) -> None:
            self.requested: list[int] = []

        def subscribe(self, subscriber: Any, /) -> None:
            self.subscriber = subscriber
            subscriber.on_subscribe(self)

        def request(self, n: int, /) -> None:
            self.requested.append(n)

        def cancel(self) -> None: ...

    probe, sink = Probe(), Sink()
    Flow.from_publisher(probe).publish_on(TrampolineExecutor(), prefetch=8).subscribe(sink)
    for n in range(100):
        probe.subscriber.on_next(n)
    # The foreign publisher sees exact demand: 8 at first, then 6 for each 6 that were consumed.
    assert probe.requested[0] == 8
    assert set(probe.requested[1:]) == {6}
    sink.subscription.cancel()


def test_spec303_request_from_inside_on_next_does_not_recurse(place: Place) -> None:
    depths: list[int] = []
    inside = [0]

    def again(sink: Sink, element: int) -> None:
        inside[0] += 1
        depths.append(inside[0])
        sink.subscription.request(1)
        inside[0] -= 1

    sink = Sink(1, again)
    place(Flow.range(5_000)).subscribe(sink)
    assert len(sink.wait().elements) == 5_000
    assert set(depths) == {1}


def test_spec317_demand_adds_up_to_max_demand_and_never_wraps(place: Place) -> None:
    sink = Sink(demand=0)
    place(Flow.range(100)).subscribe(sink)
    barrier = threading.Barrier(3)

    def request() -> None:
        barrier.wait(PATIENCE)
        sink.subscription.request(MAX_DEMAND)

    threads = [threading.Thread(target=request) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sink.wait().elements == list(range(100))


def test_spec308_requests_of_many_threads_add_up(place: Place) -> None:
    sink = Sink(demand=0)
    place(Flow.range(10_000)).subscribe(sink)
    barrier = threading.Barrier(4)

    def request() -> None:
        barrier.wait(PATIENCE)
        for _ in range(250):
            sink.subscription.request(1)

    threads = [threading.Thread(target=request) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    sink.wait_for(1_000)
    sink.subscription.cancel()
    assert sink.elements == list(range(1_000))


# -- the end --------------------------------------------------------------------------------------------------


def test_a_subscriber_may_make_its_signals_when_they_are_looked_for() -> None:
    sink = Sink()

    class Proxy:
        """Of a subscriber, as mocks are: `inspect.getattr_static` sees no signal of it."""

        def __getattr__(self, name: str) -> Any:
            return getattr(sink, name)

    proxy: Any = Proxy()
    Flow.range(2).subscribe(proxy)
    assert sink.wait().elements == [0, 1]


def test_spec209_an_empty_flow_completes_without_demand(place: Place) -> None:
    sink = Sink(demand=0)
    place(Flow.empty()).subscribe(sink)
    assert sink.wait().signals == [("on_subscribe",), ("on_complete",)]


def test_spec210_a_failed_flow_fails_without_demand(place: Place) -> None:
    failure, sink = OSError("failed"), Sink(demand=0)
    place(Flow.error(failure)).subscribe(sink)
    assert sink.wait().error is failure


def test_spec209_a_flow_of_known_length_completes_with_its_last_element(place: Place) -> None:
    for flow in (Flow.range(3), Flow.just(0, 1, 2), Flow.from_iterable([0, 1, 2]), Flow.range(9).take(3)):
        sink = Sink(demand=3)
        place(flow).subscribe(sink)
        assert sink.wait().elements == [0, 1, 2]


def test_never_neither_delivers_nor_ends(place: Place) -> None:
    sink = Sink()
    place(Flow.never()).subscribe(sink)
    sink.subscription.cancel()
    assert sink.signals == [("on_subscribe",)]


def test_what_waited_in_a_boundary_is_delivered_before_the_error(pool: Executor) -> None:
    source = Numbers(fail_at=5)
    sink = Sink(demand=0)
    Flow.from_supplier(lambda: source).subscribe_on(pool).publish_on(pool).subscribe(sink)
    sink.subscription.request(5)
    assert sink.wait().elements == [0, 1, 2, 3, 4]
    assert sink.error is source.failure


def test_spec110_a_flow_can_be_subscribed_to_many_times(place: Place) -> None:
    flow = place(Flow.range(100))
    sinks = [Sink() for _ in range(10)]
    for sink in sinks:
        flow.subscribe(sink)
    assert [sink.wait().elements for sink in sinks] == [list(range(100))] * 10


# -- cancel ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("demand", [MAX_DEMAND, 100, 1])
def test_spec108_a_cancel_from_inside_on_next_is_the_last_thing_that_happens(place: Place, demand: int) -> None:
    source = Numbers()

    def cancel(sink: Sink, element: int) -> None:
        if element == 5:
            sink.subscription.cancel()
            sink.ended.set()
        elif demand == 1:
            sink.subscription.request(1)

    sink = Sink(demand, cancel)
    place(Flow.from_supplier(lambda: source)).subscribe(sink)
    sink.wait()
    wait_until(lambda: source.closed == 1)
    assert sink.elements == [0, 1, 2, 3, 4, 5]
    assert not source.closed_while_running


def test_spec108_a_cancel_from_inside_on_subscribe_lets_nothing_through(place: Place) -> None:
    class Refusing(Sink):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            super().on_subscribe(subscription)
            subscription.cancel()

    sink = Refusing()
    place(Flow.range(100)).subscribe(sink)
    assert sink.signals == [("on_subscribe",)]


def test_spec305_a_cancel_from_another_thread_during_on_next_closes_once_and_not_while_running(place: Place) -> None:
    source, inside, cancelled = Numbers(), threading.Event(), threading.Event()

    def stay(sink: Sink, element: int) -> None:
        if element == 3:
            inside.set()
            assert cancelled.wait(PATIENCE)

    sink = Sink(then=stay)
    flow = place(Flow.from_supplier(lambda: source))
    subscriber = threading.Thread(target=lambda: flow.subscribe(sink))
    subscriber.start()
    assert inside.wait(PATIENCE)
    for _ in range(3):
        sink.subscription.cancel()
    cancelled.set()
    subscriber.join(PATIENCE)
    wait_until(lambda: source.closed == 1)
    assert sink.elements == [0, 1, 2, 3]
    assert not source.closed_while_running


def test_spec312_a_cancel_reaches_a_flow_that_drops_everything(place: Place) -> None:
    source = Numbers()
    sink = Sink()
    flow = place(Flow.from_supplier(lambda: source).filter(lambda n: False))
    subscriber = threading.Thread(target=lambda: flow.subscribe(sink))
    subscriber.start()
    assert sink.subscribed.wait(PATIENCE)
    sink.subscription.cancel()
    subscriber.join(PATIENCE)
    assert not subscriber.is_alive()
    if source.pulled:
        wait_until(lambda: source.closed == 1)


def test_elements_that_wait_at_a_cancel_are_discarded_once_each(pool: Executor, dropped: list[hooks.Dropped]) -> None:
    source, sink = Numbers(), Sink(demand=3)
    Flow.from_supplier(lambda: source).subscribe_on(pool).publish_on(pool, prefetch=16).subscribe(sink)
    sink.wait_for(3)
    wait_until(lambda: source.pulled == 16)
    sink.subscription.cancel()
    wait_until(lambda: len(dropped) == 13)
    assert [drop.element for drop in dropped] == list(range(3, 16))


def test_take_requests_no_more_than_it_takes_and_cancels_once() -> None:
    class Probe:
        def __init__(self) -> None:
            self.requested: list[int] = []
            self.cancelled = 0

        def subscribe(self, subscriber: Any, /) -> None:
            self.subscriber = subscriber
            subscriber.on_subscribe(self)

        def request(self, n: int, /) -> None:
            self.requested.append(n)
            for _ in range(n):
                self.subscriber.on_next("x")

        def cancel(self) -> None:
            self.cancelled += 1

    probe, sink = Probe(), Sink()
    Flow.from_publisher(probe).take(3).subscribe(sink)
    assert sink.wait().elements == ["x"] * 3
    assert (probe.requested, probe.cancelled) == ([3], 1)


def test_filter_asks_for_one_more_for_each_it_drops() -> None:
    class Probe:
        n = 0

        def subscribe(self, subscriber: Any, /) -> None:
            self.subscriber = subscriber
            subscriber.on_subscribe(self)

        def request(self, n: int, /) -> None:
            for _ in range(n):
                self.n += 1
                self.subscriber.on_next(self.n)

        def cancel(self) -> None: ...

    probe, sink = Probe(), Sink(demand=3)
    Flow.from_publisher(probe).filter(lambda n: n % 10 == 0).subscribe(sink)
    assert sink.elements == [10, 20, 30]
    assert probe.n == 30
    sink.subscription.cancel()


# -- threads --------------------------------------------------------------------------------------------------


def test_each_part_runs_on_the_executor_it_was_given() -> None:
    def name(n: int) -> str:
        return threading.current_thread().name.rsplit("_", 1)[0]

    with ThreadPoolExecutor(1, "A") as a, ThreadPoolExecutor(1, "B") as b:
        flow = Flow.range(10).map(name).subscribe_on(a).publish_on(b).map(lambda at: (at, name(0)))
        assert set(flow) == {("A", "B")}


def test_a_pulled_source_runs_on_the_boundary_that_asks_for_it(pool: Executor) -> None:
    source = Numbers(stop=10)
    assert Flow.from_supplier(lambda: source).publish_on(pool).to_list().block(timeout=PATIENCE) == list(range(10))
    assert all(name.startswith("pool") for name in source.threads)


def test_the_subscribe_on_nearest_to_the_source_counts() -> None:
    with ThreadPoolExecutor(1, "A") as a, ThreadPoolExecutor(1, "B") as b:
        source = Numbers(stop=10)
        flow = Flow.from_supplier(lambda: source).subscribe_on(a).publish_on(b).subscribe_on(b)
        flow.to_list().block(timeout=PATIENCE)
    assert {name.split("_")[0] for name in source.threads} == {"A"}


def test_many_publishers_on_a_small_pool_progress_together() -> None:
    """None of 100 endless publishers on 2 threads is starved: each delivers while all the others have demand."""
    with ThreadPoolExecutor(2) as pool:
        sinks = [Sink() for _ in range(100)]
        for sink in sinks:
            Flow.from_supplier(Numbers).subscribe_on(pool).subscribe(sink)
        for sink in sinks:
            sink.wait_for(10)
        for sink in sinks:
            sink.subscription.cancel()


# -- sinks ----------------------------------------------------------------------------------------------------


def test_functions_get_the_signals_and_the_handle_drives_them() -> None:
    seen: list[Any] = []
    handle = Flow.range(4).subscribe(seen.append, seen.append, lambda: seen.append("end"), demand=1)
    assert seen == [0]
    handle.request(2)
    assert seen == [0, 1, 2]
    handle.request(1)
    assert seen == [0, 1, 2, 3, "end"]


def test_an_error_without_on_error_goes_to_the_hook(dropped: list[hooks.Dropped]) -> None:
    failure = OSError("no one listens")
    Flow.error(failure).subscribe(print)
    assert [drop.error for drop in dropped] == [failure]


def test_a_for_loop_pulls_one_element_at_a_time_and_closes_when_it_is_left() -> None:
    source = Numbers()
    for n in Flow.from_supplier(lambda: source).map(lambda n: n * 2):
        if n == 6:
            break
    assert (source.pulled, source.closed) == (4, 1)


def test_a_for_loop_over_a_boundary_cancels_when_it_is_left(pool: Executor, dropped: list[hooks.Dropped]) -> None:
    source = Numbers()
    for n in Flow.from_supplier(lambda: source).subscribe_on(pool).publish_on(pool, prefetch=4):
        if n == 100:
            break
    wait_until(lambda: source.closed == 1)
    assert source.pulled <= n + 1 + 4 + 256
    assert all(drop.error is None for drop in dropped)


def test_a_for_loop_raises_what_the_flow_fails_with(place: Place) -> None:
    source = Numbers(fail_at=3)
    seen: list[int] = []
    elements = iter(place(Flow.from_supplier(lambda: source)))
    with pytest.raises(OSError, match="the source is broken"):
        seen.extend(elements)
    assert seen == [0, 1, 2]
    wait_until(lambda: source.closed == 1)


def test_block_waits_for_the_last_element_and_raises_the_error(place: Place) -> None:
    assert place(Flow.range(5)).to_list().block(timeout=PATIENCE) == [0, 1, 2, 3, 4]
    assert place(Flow.range(5)).block(timeout=PATIENCE) == 4
    assert place(Flow.empty()).block(timeout=PATIENCE) is None
    with pytest.raises(OSError, match="broken"):
        place(Flow.from_supplier(lambda: Numbers(fail_at=2))).block(timeout=PATIENCE)


def test_a_block_that_times_out_cancels_the_flow() -> None:
    publisher: TestPublisher[int] = TestPublisher()
    with pytest.raises(TimeoutError):
        Flow.from_publisher(publisher).block(timeout=0.01)
    assert publisher.cancelled == 1


def test_cancelling_the_future_cancels_the_flow(pool: Executor) -> None:
    source = Numbers()
    future = Flow.from_supplier(lambda: source).subscribe_on(pool).to_future()
    wait_until(lambda: source.pulled > 0)  # a source that is cancelled before is never opened
    assert future.cancel()
    wait_until(lambda: source.closed == 1)
    with pytest.raises(CancelledError):
        future.result(0)


def test_to_list_needs_one_request_whatever_the_source(place: Place) -> None:
    for flow in (Flow.range(1_000), Flow.from_supplier(lambda: (n for n in range(1_000)))):
        sink = Sink(demand=1)
        place(flow.to_list()).subscribe(sink)
        assert sink.wait().elements == [list(range(1_000))]


# -- shape ----------------------------------------------------------------------------------------------------


def test_explain_draws_the_boundaries_and_the_resources() -> None:
    def f(n: int) -> int:
        return n

    with ThreadPoolExecutor(2, "io") as io, ThreadPoolExecutor(1, "cpu") as cpu:
        flow = Flow.range(10).subscribe_on(io).publish_on(cpu).map(f).filter(f)
        assert flow.explain() == "\n".join(
            [
                "range(10) | map(f) filter(f) consume",
                "--- R1 -- | ---------- R2 ----------",
                "R1 = ThreadPoolExecutor(io, 2 workers)",
                "R2 = ThreadPoolExecutor(cpu, 1 workers)",
            ]
        )
    assert Flow.range(10).map(f).explain().splitlines()[1] == "-------- caller --------"


BEFORE: dict[str, Callable[[Executor], Flow[int]]] = {
    "a cold source": lambda other: Flow.range(4),
    "a cold source and steps": lambda other: Flow.from_supplier(lambda: range(4)).take(3),
    "subscribe_on": lambda other: Flow.range(4).subscribe_on(other),
    "an operator": lambda other: Flow.range(4).retry(1),
    "an operator on an executor": lambda other: Flow.range(4).retry(1).subscribe_on(other),
    "publishers": lambda other: Flow.range(4).flat_map(Flow.just),
    "another library's publisher": lambda other: Flow.from_publisher(Flow.range(4).retry(1)),
    "a boundary": lambda other: Flow.range(4).publish_on(other),
    "an operator and a boundary": lambda other: Flow.range(4).retry(1).publish_on(other),
    "a shared source": lambda other: Flow.range(4).share(),
}


@pytest.mark.parametrize("before", BEFORE)
def test_explain_names_the_executor_that_a_step_before_a_boundary_begins_on(before: str) -> None:
    on: list[str] = []

    def step(n: int) -> int:
        on.append(threading.current_thread().name.rpartition("_")[0] or "caller")
        return n

    with ThreadPoolExecutor(1, "other") as other, ThreadPoolExecutor(1, "behind") as behind:
        flow = BEFORE[before](other).map(step).publish_on(behind)
        flow.subscribe(sink := Sink())
        sink.wait()
        drawn, resources, *legend = flow.explain().splitlines()
        mark = resources.split(" | ")[drawn.count(" | ", 0, drawn.index("map"))].strip("- ")
        names = dict(line.split(" = ThreadPoolExecutor(") for line in legend)
        assert (names[mark].partition(",")[0] if mark in names else mark) == on[0]


def test_the_interfaces_are_structural() -> None:
    class Stage:
        def subscribe(self, subscriber: object, /) -> None: ...
        def on_subscribe(self, subscription: object, /) -> None: ...
        def on_next(self, element: object, /) -> None: ...
        def on_error(self, error: BaseException, /) -> None: ...
        def on_complete(self) -> None: ...

    assert isinstance(Stage(), Processor)
    assert isinstance(Stage(), Publisher)
    assert isinstance(Stage(), Subscriber)
    assert isinstance(Flow.range(1), Publisher)
    assert not isinstance(Flow.range(1), Subscriber)


def test_importing_the_package_needs_the_standard_library_only() -> None:
    code = (
        "import sys; before = set(sys.modules); import reactive_runtime; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "print(sorted(name for name in new - {'reactive_runtime'} if name not in sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=".")
    assert done.stdout.strip() == "[]"


# -- a cancel while the next element is being made ------------------------------------------------------------


class Slow:
    """An iterator whose second `next` takes until it is let through."""

    def __init__(self) -> None:
        self.n = 0
        self.inside, self.go = threading.Event(), threading.Event()

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        self.n += 1
        if self.n == 2:
            self.inside.set()
            assert self.go.wait(PATIENCE)
        return self.n

    def wait(self, n: int) -> int:
        """The same as a function."""
        return next(self)


SAME_THREAD = TrampolineExecutor()
SLOW: dict[str, Callable[[Slow], Flow[Any]]] = {
    "next": lambda slow: Flow.from_supplier(lambda: slow),
    "next, and a step": lambda slow: Flow.from_supplier(lambda: slow).map(lambda n: n),
    "a function": lambda slow: Flow.range(9).map(slow.wait),
    "a function, and an end": lambda slow: Flow.range(9).map(slow.wait).default_if_empty(0),
    "an iterator of a step": lambda slow: Flow.just(1).flat_map_iterable(lambda n: slow),
    "a combinator": lambda slow: Flow.from_supplier(lambda: slow).do_on_complete(lambda: None),
    "a combinator, and a step": lambda slow: Flow.from_supplier(lambda: slow).retry(1).map(lambda n: n),
    "a boundary": lambda slow: Flow.from_supplier(lambda: slow).retry(1).publish_on(SAME_THREAD),
}


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("demand", [9, MAX_DEMAND])
@pytest.mark.parametrize("name", SLOW)
def test_what_is_still_being_made_when_cancel_returns_is_not_delivered(
    name: str, demand: int, fused: bool, dropped: list[Dropped]
) -> None:
    """It goes to the hook, and to do_on_discard."""
    slow, sink = Slow(), Sink(demand)
    heard: list[Any] = []
    flow = SLOW[name](slow).do_on_discard(heard.append)

    def run() -> None:
        with fuse.fusing(fused):
            flow.subscribe(sink)

    thread = threading.Thread(target=run)
    thread.start()
    assert slow.inside.wait(PATIENCE)
    sink.subscription.cancel()
    slow.go.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert sink.elements == [1]
    assert [drop.element for drop in dropped] == heard == [2]
    assert slow.n == 2


# -- what is dropped because it is wanted ---------------------------------------------------------------------


def test_what_an_operator_is_there_to_drop_can_be_distinguished_from_what_is_lost(
    dropped: list[Dropped], caplog: pytest.LogCaptureFixture
) -> None:
    hooks_of_core.element_dropped("sampled", 1, wanted=True)
    hooks_of_core.element_dropped("cancelled", 2)
    assert [(drop.element, drop.wanted) for drop in dropped] == [(1, True), (2, False)]
    with caplog.at_level("DEBUG", "reactive_runtime"):
        for drop in dropped:
            hooks.log_dropped(drop)
    assert [record.getMessage() for record in caplog.records] == [
        "sampled: element 1 dropped, as is wanted",
        "cancelled: element 2 discarded",
    ]


@pytest.mark.parametrize(("level", "said"), [("DEBUG", ["cancelled: element 1 discarded"]), ("INFO", [])])
def test_the_default_handler_logs_each_element_and_flows_are_left(
    level: str, said: list[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[object] = []
    monkeypatch.setattr(hooks_of_core, "_abandoned", left.append)
    monkeypatch.setattr(hooks_of_core, "active_handler", hooks.log_dropped)
    flow = Flow.never()
    with caplog.at_level(level, "reactive_runtime"):
        hooks_of_core.elements_dropped("cancelled", iter([1, (flow,)]))
    assert [record.getMessage() for record in caplog.records][:1] == said
    assert left == [flow]
