"""In the region of `with_context` an element is handled in the context it was emitted in."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from operators.catalogue import CASES, Case, Place
from sinks import PATIENCE, Sink

from reactive_runtime import Flow
from reactive_runtime._core.runtime.arguments import PREFETCH
from reactive_runtime.context import ContextFlow, InContext, in_context
from reactive_runtime.executors import ScheduledExecutor, VirtualTimeExecutor
from reactive_runtime.hot import BehaviorProcessor, PublishProcessor, ReplayProcessor, UnicastProcessor

REQUEST: contextvars.ContextVar[int] = contextvars.ContextVar("request", default=-1)


class Room:
    """Pools and a clock whose threads have a context of their own, and spans that are kept."""

    def __init__(self, pool: ThreadPoolExecutor, clock: ScheduledExecutor) -> None:
        self.pool = pool
        self.clock = clock
        self.spans = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.spans))
        self.tracer = provider.get_tracer("test")

    def work(self, n: int) -> int:
        """The handling of an element, as a span whose parent is that of the context."""
        self.span("handle", n)
        return n

    def span(self, name: str, n: int) -> None:
        with self.tracer.start_as_current_span(name, attributes={"n": n}):
            pass

    def works(self, n: int) -> bool:
        return self.work(n) >= 0

    async def awaited(self, n: int) -> int:
        await asyncio.sleep(0)
        return self.work(n)

    async def several(self, n: int) -> AsyncIterator[int]:
        await asyncio.sleep(0)
        yield self.work(n)

    def twice(self) -> Callable[[int], int]:
        """A function that fails at the first call for each element."""
        failed: set[int] = set()

        def attempt(n: int) -> int:
            if n not in failed:
                failed.add(n)
                raise OSError
            return self.work(n)

        return attempt


@pytest.fixture
def room() -> Iterator[Room]:
    with ThreadPoolExecutor(2, "pool") as pool, ScheduledExecutor() as clock:
        contextvars.Context().run(lambda: [pool.submit(int).result() for _ in range(2)])
        contextvars.Context().run(lambda: clock.schedule(0, int).result())
        yield Room(pool, clock)


Region = Callable[[ContextFlow[int], Room], ContextFlow[int]]

OPERATORS: dict[str, Region] = {
    "map": lambda f, room: f.map(room.work),
    "filter": lambda f, room: f.filter(room.works),
    "do_on_next": lambda f, room: f.do_on_next(room.work),
    "publish_on": lambda f, room: f.publish_on(room.pool).map(room.work),
    "publish_on, twice": lambda f, room: f.publish_on(room.pool, prefetch=1).publish_on(room.pool).map(room.work),
    "map_parallel": lambda f, room: f.map_parallel(room.work, room.pool, concurrency=2),
    "map_parallel, unordered": lambda f, room: f.map_parallel(room.work, room.pool, ordered=False),
    "map_parallel, coroutine": lambda f, room: f.map_parallel(room.awaited),
    "behind map_parallel": lambda f, room: f.map_parallel(lambda n: n, room.pool).map(room.work),
    "flat_map": lambda f, room: f.flat_map(lambda n: Flow.just(n).map(room.work)),
    "flat_map, coroutine": lambda f, room: f.flat_map(room.awaited),
    "flat_map, its function": lambda f, room: f.flat_map(lambda n: Flow.just(room.work(n))),
    "flat_map, on a pool": lambda f, room: f.flat_map(lambda n: Flow.just(n).map(room.work).subscribe_on(room.pool)),
    "flat_map, behind a boundary": lambda f, room: f.flat_map(
        lambda n: Flow.just(n).publish_on(room.pool).map(room.work)
    ),
    "flat_map, timer": lambda f, room: f.flat_map(
        lambda n: Flow.timer(0.001, clock=room.clock).map(lambda _: room.work(n))
    ),
    "flat_map, retry": lambda f, room: f.flat_map(lambda n: Flow.just(n).map(room.twice()).retry(1)),
    "flat_map, retry_backoff": lambda f, room: f.flat_map(
        lambda n: Flow.just(n).map(room.twice()).retry_backoff(1, clock=room.clock, first=0.001)
    ),
    "flat_map, map_parallel": lambda f, room: f.flat_map(lambda n: Flow.just(n).map_parallel(room.work, room.pool)),
    "flat_map, concat": lambda f, room: f.flat_map(
        lambda n: Flow.timer(0.001, clock=room.clock).ignore_elements().concat_with(Flow.just(n).map(room.work))
    ),
    "flat_map, from_async": lambda f, room: f.flat_map(lambda n: Flow.from_async(lambda: room.several(n))),
    "behind flat_map": lambda f, room: f.flat_map(lambda n: Flow.just(n).subscribe_on(room.pool)).map(room.work),
    "through delay": lambda f, room: f.through(lambda g: g.delay(0.001, clock=room.clock)).map(room.work),
    "through rate_limit": lambda f, room: f.through(lambda g: g.rate_limit(50, clock=room.clock)).map(room.work),
    "through merge": lambda f, room: f.through(lambda g: g.merge_with(Flow.empty())).map(room.work),
    "through share": lambda f, room: f.through(lambda g: g.share()).map(room.work),
    "through buffer, the last": lambda f, room: f.through(lambda g: g.buffer(1).map(lambda xs: xs[-1])).map(room.work),
    "through parallel": lambda f, room: f.through(lambda g: g.parallel(2).run_on(room.pool).sequential()).map(
        room.work
    ),
    "through window": lambda f, room: f.through(lambda g: g.window(2).concat_map(lambda part: part)).map(room.work),
    "through retry": lambda f, room: f.through(lambda g: g.retry(1)).map(room.work),
    "through timeout": lambda f, room: f.through(lambda g: g.timeout(PATIENCE, clock=room.clock)).map(room.work),
}


def number(span: ReadableSpan, attribute: str) -> int:
    assert span.attributes is not None
    value = span.attributes[attribute]
    assert isinstance(value, int)
    return value


def parents(room: Room, name: str = "handle") -> dict[int, int]:
    """The number in each span's attributes, and the number of the request whose span is its parent."""
    spans = room.spans.get_finished_spans()
    requests = {span.context.span_id: number(span, "request") for span in spans if span.name == "request"}
    handled = [span for span in spans if span.name == name]
    found = {(number(span, "n"), requests[span.parent.span_id] if span.parent else -1) for span in handled}
    assert len(found) == len(dict(found)), found
    return dict(found)


@pytest.mark.parametrize("way", OPERATORS)
def test_a_span_has_its_requests_span_as_parent(way: str, room: Room) -> None:
    def ask(n: int) -> InContext[int]:
        with room.tracer.start_as_current_span("request", attributes={"request": n}):
            return in_context(n)

    sink = Sink()
    Flow.range(6).map(ask).with_context(lambda flow: OPERATORS[way](flow, room)).subscribe(sink)
    assert sorted(sink.wait().elements) == list(range(6))
    assert sink.end == ("on_complete",)
    assert parents(room) == {n: n for n in range(6)}
    assert trace.get_current_span() is trace.INVALID_SPAN


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_operator_runs_an_inner_flow_in_its_elements_context(case: Case, room: Room) -> None:
    clock = VirtualTimeExecutor()

    def ask(n: int) -> InContext[int]:
        with room.tracer.start_as_current_span("request", attributes={"request": n}):
            return in_context(n)

    def inner(n: int) -> Flow[Any]:
        source = Flow.range(10).do_on_next(lambda k: room.work(n))
        made: Flow[Any] = case.apply(source, Place(room.pool, clock))
        return made.do_on_next(lambda k: room.span("behind", n))

    def pooled(n: int) -> Flow[Any]:
        return inner(n).subscribe_on(room.pool) if n % 2 else inner(n)

    sink = Sink()
    Flow.range(4).map(ask).with_context(lambda flow: flow.flat_map(pooled)).subscribe(sink)
    while not sink.ended.wait(0.001):
        clock.advance(0.25)
    assert sink.end == ("on_complete",)
    assert parents(room) == {n: n for n in range(4)}
    assert parents(room, "behind") == ({n: n for n in range(4)} if case.expected else {})


@pytest.mark.parametrize(
    "make", [PublishProcessor, lambda: ReplayProcessor(9), lambda: BehaviorProcessor(in_context(0)), UnicastProcessor]
)
def test_elements_of_many_request_threads_keep_their_contexts(make: Callable[[], Any], room: Room) -> None:
    hot, n = make(), 4
    seen: list[tuple[int, int]] = []  # appended to by the flow's own serial signals
    sink = Sink()
    begun = threading.Barrier(n)

    def handle(flow: ContextFlow[int]) -> ContextFlow[int]:
        return flow.do_on_next(lambda k: seen.append((k, REQUEST.get())))

    hot.filter(lambda given: given.element > 0).with_context(handle).subscribe(sink)

    def request(first: int) -> int:
        begun.wait(PATIENCE)
        for k in range(first, first + 50):
            REQUEST.set(k)
            hot.emit(in_context(k))
        return REQUEST.get()

    with ThreadPoolExecutor(n) as threads:
        mine = list(threads.map(request, range(1, 1 + 50 * n, 50)))
    hot.on_complete()
    sink.wait()
    assert sorted(seen) == [(k, k) for k in range(1, 1 + 50 * n)]
    assert mine == [50, 100, 150, 200]  # a thread that worked for others keeps its own values


def test_the_context_is_taken_where_the_element_reaches_the_operator(room: Room) -> None:
    numbers = Flow.range(5).do_on_next(REQUEST.set)
    found = numbers.with_context(lambda flow: flow.publish_on(room.pool).map(lambda n: (n, REQUEST.get())))
    assert contextvars.copy_context().run(lambda: found.to_list().block(timeout=PATIENCE)) == [(n, n) for n in range(5)]


def test_a_value_that_a_function_sets_stays_in_its_call() -> None:
    heard: list[int] = []
    flow = Flow.just(1, 2).with_context(
        lambda part: part.do_on_next(REQUEST.set).do_on_next(lambda n: heard.append(REQUEST.get()))
    )
    assert list(flow) == [1, 2]
    assert heard == [-1, -1]
    assert REQUEST.get() == -1


INNERS: dict[str, Callable[[Room, int], Flow[int]]] = {
    "here": lambda room, n: Flow.just(n, n),
    "behind a boundary": lambda room, n: Flow.just(n, n).publish_on(room.pool),
    "on a pool": lambda room, n: Flow.just(n, n).subscribe_on(room.pool),
    "by a clock": lambda room, n: Flow.just(n, n).delay(0.0001, clock=room.clock),
}


@pytest.mark.parametrize("where", INNERS)
def test_an_inner_flow_keeps_its_context_from_the_flow_around(where: str, room: Room) -> None:
    before: list[int] = []
    after: list[int] = []

    def emitted(n: int) -> InContext[int]:
        before.append(REQUEST.get())
        context = contextvars.copy_context()
        context.run(REQUEST.set, n)
        return InContext(n, context)

    def run() -> list[tuple[int, int]] | None:
        REQUEST.set(-2)
        numbers = (
            Flow.range(50)
            .map(emitted)
            .with_context(
                lambda flow: flow.flat_map(
                    lambda n: INNERS[where](room, n).map(lambda n: (n, REQUEST.get())), concurrency=1
                )
            )
        )
        return numbers.do_on_next(lambda pair: after.append(REQUEST.get())).to_list().block(timeout=PATIENCE)

    found = contextvars.copy_context().run(run)
    assert found == [(n, n) for n in range(50) for _ in range(2)]
    assert before == [-2] * 50
    assert after == [-2] * 100


def test_a_function_that_raises_leaves_the_threads_context() -> None:
    def fail(n: int) -> int:
        REQUEST.set(n)
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        list(Flow.just(1).with_context(lambda flow: flow.map(fail)))
    assert REQUEST.get() == -1


def test_a_log_record_has_the_request_of_its_element(room: Room) -> None:
    class OfRequest(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            record.request = REQUEST.get()
            return True

    records: list[tuple[str, int]] = []
    log = logging.getLogger("test_signal_contexts")
    log.setLevel(logging.INFO)
    handler = logging.Handler()
    handler.emit = lambda record: records.append((record.getMessage(), record.request))  # type: ignore[method-assign, attr-defined]
    handler.addFilter(OfRequest())
    log.addHandler(handler)
    try:
        Flow.range(3).map(lambda n: (REQUEST.set(n), in_context(n))[1]).with_context(
            lambda flow: flow.publish_on(room.pool).do_on_next(lambda n: log.info("handles %s", n))
        ).to_list().block(timeout=PATIENCE)
    finally:
        log.removeHandler(handler)
        REQUEST.set(-1)
    assert records == [(f"handles {n}", n) for n in range(3)]


class Hanging:
    """A publisher that never signals, and notes the context of a cancel."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.heard: list[int] = []

    def subscribe(self, subscriber: Any) -> None:
        subscriber.on_subscribe(self)

    def request(self, n: int) -> None:
        self.heard.append(REQUEST.get())
        self.asked.set()

    def cancel(self) -> None:
        self.heard.append(REQUEST.get())


def test_a_request_and_a_cancel_reach_an_inner_in_its_context() -> None:
    inner = Hanging()

    def source(n: int) -> InContext[int]:
        context = contextvars.copy_context()
        context.run(REQUEST.set, n)
        return InContext(n, context)

    sink = Sink()
    Flow.just(7).map(source).with_context(lambda flow: flow.flat_map(lambda n: inner)).subscribe(sink)
    assert inner.asked.wait(PATIENCE)
    sink.subscription.cancel()
    assert inner.heard == [7, 7]


def test_an_inner_that_is_refilled_runs_in_its_context() -> None:
    def source(n: int) -> InContext[int]:
        context = contextvars.copy_context()
        context.run(REQUEST.set, n)
        return InContext(n, context)

    def inner(n: int) -> Flow[int]:
        return Flow.range(5 * PREFETCH).map(lambda k: REQUEST.get())

    sink = Sink(1)
    Flow.just(7).map(source).with_context(lambda flow: flow.flat_map(inner)).subscribe(sink)
    for _ in range(5):
        sink.subscription.request(PREFETCH)
    assert sink.wait().elements == [7] * 5 * PREFETCH


def test_a_cancel_reaches_a_coroutine_in_its_context() -> None:
    begun, ended = threading.Event(), threading.Event()

    async def hang(n: int) -> int:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return n

    sink = Sink()
    Flow.just(1).with_context(lambda flow: flow.flat_map(hang)).subscribe(sink)
    assert begun.wait(PATIENCE)
    sink.subscription.cancel()
    assert ended.wait(PATIENCE)


@pytest.mark.parametrize(
    ("region", "said"),
    [
        (lambda flow: 3, "with_context: .* must return a ContextFlow, not int"),
        (lambda flow: flow.through(lambda part: 3), "through: .* must return a Flow, not int"),
        (lambda flow: flow.map(3), "map: fn must be"),
        (lambda flow: flow.filter(3), "filter: predicate must be"),
        (lambda flow: flow.flat_map(3), "flat_map: fn must be"),
    ],
)
def test_a_wrong_region_is_an_error_at_once(region: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        Flow.range(3).with_context(region)


def test_a_pool_of_processes_is_refused() -> None:
    with (
        ProcessPoolExecutor(1) as processes,
        pytest.raises(TypeError, match=r"map_parallel: .* a context can't go to another process"),
    ):
        Flow.range(3).with_context(lambda flow: flow.map_parallel(abs, processes))


NONE: dict[str, Callable[[ContextFlow[int], Room], ContextFlow[Any]]] = {
    "map": lambda f, room: f.map(lambda n: None),
    "map_parallel": lambda f, room: f.map_parallel(lambda n: None, room.pool),
    "flat_map": lambda f, room: f.flat_map(lambda n: Flow.just(n).map(lambda k: None)),
    "through": lambda f, room: f.through(lambda g: g.map(lambda pair: pair[0])),  # type: ignore[arg-type, return-value]
}


@pytest.mark.parametrize("way", NONE)
def test_what_is_no_element_is_a_type_error_of_the_flow(way: str, room: Room) -> None:
    with pytest.raises(TypeError, match=r"None is not an element|let pairs through"):
        Flow.just(1).with_context(lambda flow: NONE[way](flow, room)).to_list().block(timeout=PATIENCE)
