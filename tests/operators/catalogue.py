"""Every operator once, as the grid, the explorer and the kit run it: a new one is one line here.

The source has 0 to 9; `FAILING` gives 0, 1, 2 and fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

from reactive_runtime import Flow, KillSwitch, Listener, Metrics, Valve
from reactive_runtime.executors import VirtualTimeExecutor

__all__ = ["CASES", "FAILED", "SINKS", "SOURCES", "Case", "Place", "failing", "numbers"]


@dataclass
class Place:
    """What an operator may need."""

    pool: Executor
    clock: VirtualTimeExecutor


FAILED = OSError("the source is broken")


def numbers() -> Iterator[int]:
    yield from range(10)


def failing() -> Iterator[int]:
    yield from range(3)
    raise FAILED


@dataclass(frozen=True)
class Case:
    """An operator, and what it makes of 0 to 9."""

    name: str
    apply: Callable[[Flow[Any], Place], Any]
    expected: list[Any]
    ordered: bool = True
    survives: list[Any] | None = None
    """What it makes of a source that fails, where it does not fail with it. None: it fails."""
    lossy: bool = False
    """What comes through depends on who is quicker."""


ALL = list(range(10))


def case(name: str, apply: Callable[[Flow[Any]], Any], expected: list[Any], **more: Any) -> Case:
    return Case(name, lambda flow, place: apply(flow), expected, **more)


def plus(n: int) -> int:
    return n + 1


async def plus_async(n: int) -> int:
    return n + 1


async def awaited(elements: AsyncIterator[Any]) -> list[Any]:
    return [element async for element in elements]


def odd(n: int) -> bool:
    return n % 2 == 1


def emitted(n: int, emit: Callable[[int], None]) -> None:
    for _ in range(n % 3):
        emit(n)


CASES = [
    case("map", lambda f: f.map(plus), list(range(1, 11))),
    case("starmap", lambda f: f.map(lambda n: (n, 1)).starmap(lambda a, b: a + b), list(range(1, 11))),
    case("map_not_none", lambda f: f.map_not_none(lambda n: n if odd(n) else None), [1, 3, 5, 7, 9]),
    case("handle", lambda f: f.handle(emitted), [1, 2, 2, 4, 5, 5, 7, 8, 8]),
    case("flat_map_iterable", lambda f: f.flat_map_iterable(lambda n: [n] * (n % 3)), [1, 2, 2, 4, 5, 5, 7, 8, 8]),
    case("flatten", lambda f: f.map(lambda n: (n,) * (n % 2)).flatten(), [1, 3, 5, 7, 9]),
    case("enumerate", lambda f: f.enumerate(1).map(sum), [2 * n + 1 for n in ALL]),
    case("pairwise", lambda f: f.pairwise(), [(n, n + 1) for n in range(9)]),
    case("scan", lambda f: f.scan(lambda a, n: a + n, 0), [0, 1, 3, 6, 10, 15, 21, 28, 36, 45]),
    case("batch", lambda f: f.batch(4), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]),
    case("buffer", lambda f: f.buffer(5), [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]),
    case("end_with", lambda f: f.end_with(10, 11), list(range(12))),
    case("start_with", lambda f: f.start_with(-2, -1), list(range(-2, 10))),
    case(
        "materialize",
        lambda f: f.materialize().map(lambda item: item.signal),
        ["on_next"] * 10 + ["on_complete"],
        survives=["on_next"] * 3 + ["on_error"],
    ),
    case("dematerialize", lambda f: f.materialize().dematerialize(), ALL),
    case("transform", lambda f: f.transform(lambda item: item.map(plus)), list(range(1, 11))),
    case("filter", lambda f: f.filter(odd), [1, 3, 5, 7, 9]),
    case("distinct", lambda f: f.map(lambda n: n % 4).distinct(), [0, 1, 2, 3]),
    case("distinct_until_changed", lambda f: f.map(lambda n: n // 3).distinct_until_changed(), [0, 1, 2, 3]),
    case("take", lambda f: f.take(3), [0, 1, 2], survives=[0, 1, 2]),
    case("take_while", lambda f: f.take_while(lambda n: n < 2), [0, 1], survives=[0, 1]),
    case("take_until", lambda f: f.take_until(Flow.never()), ALL),
    case("skip", lambda f: f.skip(7), [7, 8, 9]),
    case("skip_while", lambda f: f.skip_while(lambda n: n < 7), [7, 8, 9]),
    case("skip_until", lambda f: f.skip_until(Flow.just("now")), ALL),
    case("first", lambda f: f.first(), [0], survives=[0]),
    case("last", lambda f: f.last(), [9]),
    case("element_at", lambda f: f.element_at(2), [2], survives=[2]),
    case("default_if_empty", lambda f: f.filter(lambda n: n > 99).default_if_empty(7), [7]),
    case("switch_if_empty", lambda f: f.filter(lambda n: n > 99).switch_if_empty(Flow.just(7)), [7]),
    case("ignore_elements", lambda f: f.ignore_elements(), []),
    case("reduce", lambda f: f.reduce(lambda a, n: a + n, 0), [45]),
    case("collect", lambda f: f.collect(set, set.add), [set(ALL)]),
    case("to_list", lambda f: f.to_list(), [ALL]),
    case("to_dict", lambda f: f.to_dict(odd), [{False: 8, True: 9}]),
    case("count", lambda f: f.count(), [10]),
    case("sum", lambda f: f.sum(), [45]),
    case("min", lambda f: f.min(key=lambda n: -n), [9]),
    case("max", lambda f: f.max(), [9]),
    case("all", lambda f: f.all(lambda n: n < 2), [False], survives=[False]),
    case("any", lambda f: f.any(lambda n: n > 99), [False]),
    case("contains", lambda f: f.contains(2), [True], survives=[True]),
    case("concat_with", lambda f: f.concat_with(Flow.just(10)), list(range(11))),
    case("merge_with", lambda f: f.merge_with(Flow.just(10)), list(range(11)), ordered=False),
    case("zip_with", lambda f: f.zip_with(Flow.range(3)), [(0, 0), (1, 1), (2, 2)], lossy=True),
    case("with_latest_from", lambda f: f.with_latest_from(Flow.just(7)), [(n, 7) for n in ALL]),
    case("concat", lambda f: Flow.concat(Flow.just(-1), f), [-1, *ALL]),
    case("merge", lambda f: Flow.merge(f, Flow.just(10, 11)), list(range(12)), ordered=False),
    case("merge_comparing", lambda f: Flow.merge_comparing(f, Flow.just(3, 20)), [0, 1, 2, 3, *range(3, 10), 20]),
    case("zip", lambda f: Flow.zip(f, Flow.range(99), Flow.range(99)), [(n, n, n) for n in ALL]),
    case("combine_latest", lambda f: Flow.combine_latest(Flow.just("a"), f), [("a", n) for n in ALL]),
    case("race", lambda f: Flow.race(f, Flow.never()), ALL),
    case("flat_map", lambda f: f.flat_map(lambda n: Flow.just(n, n + 100)), ALL + list(range(100, 110)), ordered=False),
    Case(
        "flat_map (on a pool)",
        lambda f, p: f.flat_map(lambda n: Flow.just(n, n).subscribe_on(p.pool), concurrency=3, prefetch=1),
        sorted(ALL * 2),
        ordered=False,
    ),
    case("flat_map (coroutines)", lambda f: f.flat_map(plus_async, concurrency=3), list(range(1, 11)), ordered=False),
    case("flat_map_sequential", lambda f: f.flat_map_sequential(lambda n: Flow.just(n, n)), sorted(ALL * 2)),
    Case(
        "flat_map_sequential (on a pool)",
        lambda f, p: f.flat_map_sequential(lambda n: Flow.just(n, n).subscribe_on(p.pool), concurrency=3, prefetch=1),
        sorted(ALL * 2),
    ),
    case("concat_map", lambda f: f.concat_map(lambda n: Flow.just(n, n)), sorted(ALL * 2)),
    case("switch_map", lambda f: f.switch_map(lambda n: Flow.just(n, -1)).filter(lambda n: n >= 0), ALL, lossy=True),
    Case("map_parallel", lambda f, p: f.map_parallel(plus, p.pool, concurrency=3), list(range(1, 11))),
    Case(
        "map_parallel (unordered, in chunks)",
        lambda f, p: f.map_parallel(plus, p.pool, concurrency=3, ordered=False, chunk=2),
        list(range(1, 11)),
        ordered=False,
    ),
    case("map_parallel (coroutines)", lambda f: f.map_parallel(plus_async, concurrency=3), list(range(1, 11))),
    case(
        "expand",
        lambda f: f.expand(lambda n: Flow.just(n + 10) if n < 10 else Flow.empty()),
        list(range(20)),
        ordered=False,
    ),
    case(
        "group_by",
        lambda f: f.group_by(odd).flat_map(lambda item: item[1].map(lambda n: (item[0], n))),
        [(odd(n), n) for n in ALL],
        ordered=False,
    ),
    case("window", lambda f: f.window(4).concat_map(lambda item: item.to_list()), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]),
    Case("buffer_timeout", lambda f, p: f.buffer_timeout(10, 1000, clock=p.clock), [ALL]),
    Case("debounce", lambda f, p: f.debounce(0.5, clock=p.clock), [9], lossy=True),
    Case("delay", lambda f, p: f.delay(0.5, clock=p.clock), ALL),
    Case("rate_limit", lambda f, p: f.rate_limit(3, clock=p.clock), ALL),
    Case("sample", lambda f, p: f.sample(Flow.interval(0.5, clock=p.clock)), [9], lossy=True),
    Case("throttle", lambda f, p: f.throttle(1000, clock=p.clock), [0], lossy=True),
    Case("timeout", lambda f, p: f.timeout(1e9, clock=p.clock), ALL),
    Case("publish_on", lambda f, p: f.publish_on(p.pool, prefetch=3), ALL),
    Case("subscribe_on", lambda f, p: f.subscribe_on(p.pool), ALL),
    Case(
        "parallel",
        lambda f, p: f.parallel(2, prefetch=3).run_on(p.pool).map(plus).sequential(),
        list(range(1, 11)),
        ordered=False,
    ),
    case("limit_rate", lambda f: f.limit_rate(3), ALL),
    case("on_overflow_buffer", lambda f: f.on_overflow_buffer(100), ALL),
    case("on_overflow_drop", lambda f: f.on_overflow_drop(), ALL, lossy=True),
    case("on_overflow_latest", lambda f: f.on_overflow_latest(), ALL, lossy=True),
    case("pausable", lambda f: f.pausable(Valve()), ALL),
    case("kill_switch", lambda f: f.kill_switch(KillSwitch()), ALL),
    case("serialize", lambda f: f.serialize(), ALL),
    case("share", lambda f: f.share(capacity=3), ALL),
    case("publish", lambda f: f.publish(capacity=3).ref_count(), ALL),
    case("replay", lambda f: f.replay(99).ref_count(), ALL),
    case("cache", lambda f: f.cache(), ALL),
    case("on_error_resume", lambda f: f.on_error_resume(lambda e: Flow.just(7)), ALL, survives=[0, 1, 2, 7]),
    case("on_error_return", lambda f: f.on_error_return(lambda e: 7), ALL, survives=[0, 1, 2, 7]),
    case("map_error", lambda f: f.map_error(lambda e: e), ALL),
    case("retry", lambda f: f.retry(1), ALL),
    case("retry_when", lambda f: f.retry_when(lambda e, n: Flow.just(1) if n < 2 else Flow.empty()), ALL),
    Case("retry_backoff", lambda f, p: f.retry_backoff(1, clock=p.clock), ALL),
    case("repeat", lambda f: f.repeat(2), ALL * 2),
    case("repeat_when", lambda f: f.repeat_when(lambda n: Flow.just(1) if n < 2 else Flow.empty()), ALL * 2),
    case("finalize", lambda f: f.finalize(int), ALL),
    case("tap", lambda f: f.tap(Listener()), ALL),
    case("do_on_subscribe", lambda f: f.do_on_subscribe(int), ALL),
    case("do_on_request", lambda f: f.do_on_request(int), ALL),
    case("do_on_next", lambda f: f.do_on_next(int), ALL),
    case("do_on_error", lambda f: f.do_on_error(repr), ALL),
    case("do_on_complete", lambda f: f.do_on_complete(int), ALL),
    case("do_on_cancel", lambda f: f.do_on_cancel(int), ALL),
    case("do_on_discard", lambda f: f.do_on_discard(int), ALL),
    case("do_finally", lambda f: f.do_finally(repr), ALL),
    case("log", lambda f: f.log("tests"), ALL),
    case("named", lambda f: f.named("numbers"), ALL),
    case("checkpoint", lambda f: f.checkpoint("here"), ALL),
    case("metrics", lambda f: f.metrics(Metrics()), ALL),
    case("progress", lambda f: f.progress(int, every=3), ALL),
]


async def numbers_async() -> Any:
    for n in range(10):
        yield n


def done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def pushed(emitter: Any) -> None:
    for n in range(10):
        emitter.emit(n)
    emitter.complete()


SOURCES: dict[str, tuple[Callable[[Place], Flow[Any]], list[Any]]] = {
    "just": (lambda p: Flow.just(*ALL), ALL),
    "empty": (lambda p: Flow.empty(), []),
    "never": (lambda p: Flow.never().take_until(Flow.timer(1, clock=p.clock)), []),
    "error": (lambda p: Flow.error(FAILED).on_error_resume(lambda e: Flow.empty()), []),
    "range": (lambda p: Flow.range(10), ALL),
    "from_iterable": (lambda p: Flow.from_iterable(ALL), ALL),
    "from_supplier": (lambda p: Flow.from_supplier(numbers), ALL),
    "from_callable": (lambda p: Flow.from_callable(lambda: 7), [7]),
    "from_future": (lambda p: Flow.from_future(done(7)), [7]),
    "from_async": (lambda p: Flow.from_async(numbers_async, prefetch=3), ALL),
    "from_publisher": (lambda p: Flow.from_publisher(Flow.range(10)), ALL),
    "from_file": (lambda p: Flow.from_file("LICENSE").take(1), ["MIT License"]),
    "generate": (lambda p: Flow.generate(0, lambda n: (n, n + 1) if n < 10 else None), ALL),
    "create": (lambda p: Flow.create(pushed), ALL),
    "defer": (lambda p: Flow.defer(lambda: Flow.range(10)), ALL),
    "using": (lambda p: Flow.using(lambda: contextlib.nullcontext(10), Flow.range), ALL),
    "interval": (lambda p: Flow.interval(1, clock=p.clock, overflow="buffer").take(10), ALL),
    "timer": (lambda p: Flow.timer(1, clock=p.clock), [0]),
}
"""And `concat`, `merge`, `merge_comparing`, `zip`, `combine_latest`, `race`, which are among the operators."""

SINKS: dict[str, Callable[[Flow[int]], Any]] = {
    "subscribe": lambda flow: flow.subscribe(int),
    "to_future": lambda flow: flow.to_future().result(30),
    "to_queue": lambda flow: flow.to_queue(queue.SimpleQueue()).result(30),
    "block": lambda flow: flow.block(timeout=30),
    "run": lambda flow: flow.run(timeout=30),
    "for_each": lambda flow: flow.for_each(int, timeout=30),
    "iterate": lambda flow: list(flow.iterate(prefetch=1)),
    "iterate_async": lambda flow: asyncio.run(awaited(flow.iterate_async(prefetch=1))),
    "explain": lambda flow: flow.explain(),
}
