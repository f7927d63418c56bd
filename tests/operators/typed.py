"""What mypy and Pyright make of each operator; `test_typing.py` has it checked, and nothing here is ever run."""

from __future__ import annotations

import queue
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from decimal import Decimal
from typing import Any, Never, assert_type

import pyarrow
from pyspark.sql import DataFrame, SparkSession

from reactive_runtime import (
    AsyncIteration,
    Disposable,
    Flow,
    Iteration,
    KillSwitch,
    Listener,
    Metrics,
    Notification,
    ParallelFlow,
    Valve,
)
from reactive_runtime._flow import ConnectableFlow
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.pipeline import Pipeline
from reactive_runtime.spark._write.spark_sink import SparkSink

pool = ThreadPoolExecutor()
clock = VirtualTimeExecutor()
f = Flow.range(3)


def text(n: int) -> str:
    return str(n)


def texts(n: int) -> Flow[str]:
    return Flow.just(str(n))


async def text_async(n: int) -> str:
    return str(n)


async def numbers() -> AsyncIterator[int]:
    yield 1


def repeated(n: int, a: str) -> str:
    return a * n


def add(total: float, n: int) -> float:
    return total + n


def sources() -> None:
    assert_type(Flow.just(1, 2), Flow[int])
    assert_type(Flow.empty(), Flow[Never])
    assert_type(Flow.never(), Flow[Never])
    assert_type(Flow.error(OSError()), Flow[Never])
    assert_type(Flow.range(3), Flow[int])
    assert_type(Flow.range(1, 3), Flow[int])
    assert_type(Flow.range(1, 9, 3), Flow[int])
    assert_type(Flow.from_iterable("ab"), Flow[str])
    assert_type(Flow.from_supplier(lambda: [1]), Flow[int])
    assert_type(Flow.from_callable(lambda: 1), Flow[int])
    assert_type(Flow.from_future(Future[int]()), Flow[int])
    assert_type(Flow.from_async(numbers), Flow[int])
    assert_type(Flow.from_publisher(f), Flow[int])
    assert_type(Flow.from_file("x"), Flow[str])
    assert_type(Flow.generate(0, lambda n: ("a", n + 1)), Flow[str])
    assert_type(Flow.defer(lambda: f), Flow[int])
    assert_type(Flow.using(lambda: nullcontext(3), Flow.range), Flow[int])
    assert_type(Flow.interval(1, clock=clock), Flow[int])
    assert_type(Flow.timer(1, clock=clock), Flow[int])
    assert_type(Flow.interval(0.1), Flow[int])
    assert_type(Flow.timer(0.1), Flow[int])
    assert_type(Flow.concat(f, f), Flow[int])
    assert_type(Flow.merge(f, f), Flow[int])
    assert_type(Flow.merge_comparing(f, f), Flow[int])
    assert_type(Flow.zip(f, Flow.just("a")), Flow[tuple[int, str]])
    assert_type(Flow.zip(f, f, Flow.just("a"), f), Flow[tuple[int, int, str, int]])
    assert_type(Flow.zip(f, f, f, f, f), Flow[tuple[int, ...]])
    assert_type(Flow.combine_latest(f, Flow.just("a")), Flow[tuple[int, str]])
    assert_type(Flow.combine_latest(f, Flow.just("a"), f), Flow[tuple[int, str, int]])
    assert_type(Flow.combine_latest(f, Flow.just("a"), f, f), Flow[tuple[int, str, int, int]])
    assert_type(Flow.combine_latest(f, f, f, f, f), Flow[tuple[int, ...]])
    assert_type(Flow.race(f, f), Flow[int])


def elements() -> None:
    assert_type(f.map(text), Flow[str])
    assert_type(f.map(lambda n: n / 2), Flow[float])
    assert_type(f.enumerate().starmap(lambda i, n: str(i + n)), Flow[str])
    assert_type(Flow.just((1, "a")).starmap(repeated), Flow[str])
    rows: Flow[tuple[Any, ...]] = Flow.empty()
    assert_type(rows.starmap(lambda a, b: str(a)), Flow[str])
    assert_type(f.map_not_none({1: "a"}.get), Flow[str])
    assert_type(f.flat_map_iterable(text), Flow[str])
    assert_type(f.map(text).flatten(), Flow[str])
    assert_type(f.enumerate(), Flow[tuple[int, int]])
    assert_type(f.pairwise(), Flow[tuple[int, int]])
    assert_type(f.scan(add, 0.0), Flow[float])
    assert_type(f.batch(2), Flow[list[int]])
    assert_type(f.buffer(2), Flow[list[int]])
    assert_type(f.start_with(1), Flow[int])
    assert_type(f.end_with(1), Flow[int])
    assert_type(f.materialize(), Flow[Notification[int]])
    assert_type(f.materialize().dematerialize(), Flow[int])
    assert_type(f.transform(lambda flow: flow.map(text)), Flow[str])
    assert_type(f.filter(bool), Flow[int])
    assert_type(f.distinct(), Flow[int])
    assert_type(f.distinct_until_changed(key=text), Flow[int])
    assert_type(f.take(1), Flow[int])
    assert_type(f.take_while(bool), Flow[int])
    assert_type(f.take_until(f), Flow[int])
    assert_type(f.skip(1), Flow[int])
    assert_type(f.skip_while(bool), Flow[int])
    assert_type(f.skip_until(f), Flow[int])
    assert_type(f.first(), Flow[int])
    assert_type(f.last(), Flow[int])
    assert_type(f.element_at(1), Flow[int])
    assert_type(f.default_if_empty(1), Flow[int])
    assert_type(f.switch_if_empty(f), Flow[int])
    assert_type(f.ignore_elements(), Flow[int])


def folds() -> None:
    assert_type(f.reduce(add, 0.0), Flow[float])
    assert_type(f.reduce(lambda a, b: a + b), Flow[int])
    assert_type(f.collect(list[int], list[int].append), Flow[list[int]])
    assert_type(f.to_list(), Flow[list[int]])
    assert_type(f.to_dict(text, text), Flow[dict[str, str]])
    assert_type(f.to_dict(text), Flow[dict[str, int]])
    assert_type(f.count(), Flow[int])
    assert_type(f.sum(), Flow[int])
    assert_type(Flow.just(True).sum(), Flow[int])
    assert_type(Flow.just(0.5).sum(), Flow[float])
    assert_type(Flow.just(Decimal(1)).sum(), Flow[Decimal])
    assert_type(f.min(), Flow[int])
    assert_type(f.max(key=text), Flow[int])
    assert_type(f.all(), Flow[bool])
    assert_type(f.any(), Flow[bool])
    assert_type(f.contains(1), Flow[bool])


def several() -> None:
    assert_type(f.concat_with(f), Flow[int])
    assert_type(f.merge_with(f), Flow[int])
    assert_type(f.zip_with(Flow.just("a")), Flow[tuple[int, str]])
    assert_type(f.zip_with(Flow.just("a"), f), Flow[tuple[int, str, int]])
    assert_type(f.zip_with(Flow.just("a"), f, f), Flow[tuple[int, str, int, int]])
    assert_type(f.zip_with(f, f, f, Flow.just(1)), Flow[tuple[int, ...]])
    assert_type(f.with_latest_from(f, f, f, f), Flow[tuple[int, ...]])
    assert_type(f.with_latest_from(Flow.just("a")), Flow[tuple[int, str]])
    assert_type(f.with_latest_from(Flow.just("a"), Flow.just(b"")), Flow[tuple[int, str, bytes]])
    assert_type(f.flat_map(texts), Flow[str])
    assert_type(f.flat_map(text_async), Flow[str])
    assert_type(f.flat_map_sequential(texts), Flow[str])
    assert_type(f.concat_map(texts), Flow[str])
    assert_type(f.switch_map(texts), Flow[str])
    assert_type(f.map_parallel(text, pool), Flow[str])
    assert_type(f.map_parallel(text_async), Flow[str])
    assert_type(f.expand(Flow.range), Flow[int])
    assert_type(f.group_by(text), Flow[tuple[str, Flow[int]]])
    assert_type(f.window(2), Flow[Flow[int]])


def of_two_types() -> None:
    """Flows of two types are one of their union, and so is what takes the place of an element."""
    a = Flow.just("a")
    assert_type(Flow.merge(f, a), Flow[int | str])
    assert_type(Flow.merge(f, a, Flow.just(b"")), Flow[int | str | bytes])
    assert_type(Flow.concat(f, a), Flow[int | str])
    assert_type(Flow.concat(f, a, Flow.just(b"")), Flow[int | str | bytes])
    assert_type(Flow.race(f, a), Flow[int | str])
    assert_type(Flow.race(f, a, Flow.just(b"")), Flow[int | str | bytes])
    assert_type(Flow.merge(*[f, f]), Flow[int])
    assert_type(f.merge_with(a), Flow[int | str])
    assert_type(f.concat_with(a), Flow[int | str])
    assert_type(f.start_with("a"), Flow[int | str])
    assert_type(f.end_with("a"), Flow[int | str])
    assert_type(f.first("a"), Flow[int | str])
    assert_type(f.last("a"), Flow[int | str])
    assert_type(f.element_at(1, "a"), Flow[int | str])
    assert_type(f.default_if_empty("a"), Flow[int | str])
    assert_type(f.switch_if_empty(a), Flow[int | str])
    assert_type(f.on_error_return(repr), Flow[int | str])
    assert_type(f.on_error_resume(lambda error: a), Flow[int | str])
    assert_type(f.timeout(1, fallback=a), Flow[int | str])
    assert_type(f.switch_if_empty(Flow.error(OSError())), Flow[int])
    assert_type(Flow.empty().default_if_empty(1), Flow[int])


def time() -> None:
    assert_type(f.buffer_timeout(2, 1, clock=clock), Flow[list[int]])
    assert_type(f.debounce(1, clock=clock), Flow[int])
    assert_type(f.delay(1, clock=clock), Flow[int])
    assert_type(f.rate_limit(1, clock=clock), Flow[int])
    assert_type(f.sample(f), Flow[int])
    assert_type(f.throttle(1, clock=clock), Flow[int])
    assert_type(f.timeout(1, clock=clock, fallback=f), Flow[int])
    assert_type(f.timeout(0.5).delay(0.1), Flow[int])


def control() -> None:
    assert_type(f.publish_on(pool), Flow[int])
    assert_type(f.subscribe_on(pool), Flow[int])
    assert_type(f.parallel(2), ParallelFlow[int])
    assert_type(f.parallel(2).run_on(pool).map(text).filter(bool), ParallelFlow[str])
    assert_type(f.parallel(2).rails(lambda rail: rail.map(text)).sequential(), Flow[str])
    assert_type(f.limit_rate(2), Flow[int])
    assert_type(f.on_overflow_buffer(2), Flow[int])
    assert_type(f.on_overflow_drop(), Flow[int])
    assert_type(f.on_overflow_latest(), Flow[int])
    assert_type(f.pausable(Valve()), Flow[int])
    assert_type(f.kill_switch(KillSwitch()), Flow[int])
    assert_type(f.serialize(), Flow[int])
    assert_type(f.share(), Flow[int])
    assert_type(f.publish(), ConnectableFlow[int])
    assert_type(f.replay(2), ConnectableFlow[int])
    assert_type(f.publish().ref_count(), Flow[int])
    assert_type(f.cache(), Flow[int])


def errors() -> None:
    assert_type(f.on_error_resume(lambda error: f), Flow[int])
    assert_type(f.on_error_return(lambda error: 1), Flow[int])
    assert_type(f.map_error(lambda error: OSError()), Flow[int])
    assert_type(f.retry(2), Flow[int])
    assert_type(f.retry_when(lambda error, n: f), Flow[int])
    assert_type(f.retry_backoff(2, clock=clock), Flow[int])
    assert_type(f.repeat(2), Flow[int])
    assert_type(f.repeat_when(lambda n: f), Flow[int])
    assert_type(f.finalize(int), Flow[int])


def side_effects() -> None:
    assert_type(f.tap(Listener()), Flow[int])
    assert_type(f.do_on_subscribe(int), Flow[int])
    assert_type(f.do_on_request(text), Flow[int])
    assert_type(f.do_on_next(text), Flow[int])
    assert_type(f.do_on_error(repr), Flow[int])
    assert_type(f.do_on_complete(int), Flow[int])
    assert_type(f.do_on_cancel(int), Flow[int])
    assert_type(f.do_on_discard(repr), Flow[int])
    assert_type(f.do_finally(repr), Flow[int])
    assert_type(f.log(), Flow[int])
    assert_type(f.named("a"), Flow[int])
    assert_type(f.checkpoint("a"), Flow[int])
    assert_type(f.metrics(Metrics()), Flow[int])
    assert_type(f.progress(text), Flow[int])


def sinks() -> None:
    assert_type(f.subscribe(text), Disposable)
    assert_type(f.to_future(), Future[int | None])
    ends_with_none: queue.Queue[int | None] = queue.Queue()
    ends_with_a_word: queue.Queue[int | str] = queue.Queue()
    assert_type(f.to_queue(ends_with_none), Future[None])
    assert_type(f.to_queue(ends_with_a_word, end="over"), Future[None])
    assert_type(f.to_queue(queue.Queue()), Future[None])
    assert_type(f.block(), int | None)
    assert_type(f.run(), None)
    assert_type(f.iterate(prefetch=8), Iteration[int])
    assert_type(f.iterate_async(prefetch=8), AsyncIteration[int])
    assert_type(f.for_each(text), None)
    assert_type(f.explain(), str)
    assert_type(list(f), list[int])


def spark(df: DataFrame, session: SparkSession) -> None:
    assert_type(Flow.from_dataframe(df), Flow[dict[str, Any]])
    assert_type(Flow.from_dataframe(df, form="dicts"), Flow[dict[str, Any]])
    assert_type(Flow.from_dataframe(df, form="tuples"), Flow[tuple[Any, ...]])
    assert_type(Flow.from_dataframe(df, prefetch_partitions=2, form="batches"), Flow[pyarrow.RecordBatch])
    assert_type(Flow.from_stream(df), Flow[dict[str, Any]])
    assert_type(Flow.from_stream(df, form="tuples"), Flow[tuple[Any, ...]])
    assert_type(Flow.from_stream(df, checkpoint="folder", mode="append", form="batches"), Flow[pyarrow.RecordBatch])
    assert_type(f.to_spark(session, "n long"), SparkSink[int])
    assert_type(Pipeline[int, str]()(f), Flow[str])
    assert_type(Pipeline[int, int]().filter(lambda n: n > 1).map(str).batch(2), Pipeline[int, list[str]])
    assert_type(Pipeline[int, int]().flat_map(texts), Pipeline[int, str])
    assert_type(Pipeline[int, int]().map_parallel(text_async), Pipeline[int, str])
    assert_type(Pipeline[int, int]().group_by(text), Pipeline[int, tuple[str, Flow[int]]])
    assert_type(Pipeline[int, int]().sum(), Pipeline[int, int])
    assert_type(Pipeline[int, int]().reduce(add, 0.0).first("a"), Pipeline[int, float | str])
    assert_type(Pipeline[int, int]().zip_with(Flow.just("a")), Pipeline[int, tuple[int, str]])
    assert_type(Pipeline[int, int]().buffer(2).flatten(), Pipeline[int, int])
    Pipeline[int, int]().take("2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Pipeline[int, int]().retry(count=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Pipeline[str, str]().sum()  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    assert_type(Pipeline[int, int]().concat_map(texts).take(1), Pipeline[int, str])
    Pipeline[int, int]().mpa(str)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  # no such operator

    def odd_as_text(numbers: Flow[int]) -> Flow[str]:
        return numbers.filter(lambda n: n % 2).map(str)

    assert_type(Pipeline.of(odd_as_text), Pipeline[int, str])


def handled(n: int, emit: Any) -> None:
    emit(str(n))


def untyped() -> None:
    """What can't be inferred from the arguments, and is said at the left."""
    a: Flow[str] = f.handle(handled)
    b: Flow[int] = Flow.create(lambda emitter: emitter.complete())
    assert_type(a, Flow[str])
    assert_type(b, Flow[int])


def refused() -> None:
    """What is wrong is an error of the checkers: without the error, the comment that expects it is one."""
    Flow.just("a").sum()  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    f.mpa(str)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    f.take("2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    f.delay(1, clock)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Flow.range()  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    Flow.range("a")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    Flow([1, 2, 3])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Flow.just(object()).max()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Flow.merge_comparing(Flow.just(object()))  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
    f.to_queue([])  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
