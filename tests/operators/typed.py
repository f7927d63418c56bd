"""What mypy and Pyright make of what is not one operator, or needs PySpark: nothing calls these functions.

The types of operators are the `Typed` of `declared`.
"""

from __future__ import annotations

from typing import Any, assert_type

import pyarrow
from declared.values import add, clock, f, text, text_async, texts, threads
from pyspark.sql import DataFrame, SparkSession

from reactive_runtime import Flow, ParallelFlow
from reactive_runtime.pipeline import Pipeline
from reactive_runtime.spark._write.spark_sink import SparkSink


def beside_flow() -> None:
    assert_type(list(f), list[int])
    assert_type(f.parallel(2).run_on(threads).map(text).filter(bool), ParallelFlow[str])
    assert_type(f.parallel(2).rails(lambda rail: rail.map(text)).sequential(), Flow[str])
    assert_type(f.publish().ref_count(), Flow[int])


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
