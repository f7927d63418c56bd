"""Frames and schemas that are unusual: no columns, names that PySpark reads as paths, two of one name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types

from reactive_runtime import Flow
from reactive_runtime.errors import SparkError
from reactive_runtime.spark import TaskFlow, map_flow
from reactive_runtime.spark._read.frames import Rows
from reactive_runtime.spark._write.schemas import Elements

pytestmark = pytest.mark.timeout(300)

NAMES = ["a.b", "c`d", "*", "x", "X"]


def test_a_schema_without_columns_is_refused(spark: Any) -> None:
    for schema in (types.StructType([]), pa.schema([])):
        words = "the schema has no columns, and Spark loses rows without any: give it one"
        with pytest.raises(SparkError, match=f"^map_flow: {words}"):
            map_flow(spark.range(3), lambda flow: flow.map(lambda row: {}), schema)
        with pytest.raises(SparkError, match=f"^to_spark: {words}"):
            Flow.just({}).to_spark(spark, schema)
        with pytest.raises(SparkError, match=f"^TaskFlow: {words}"):
            TaskFlow(lambda flow: flow, schema)


def test_a_frame_without_columns_is_refused_by_map_flow(spark: Any) -> None:
    with pytest.raises(SparkError, match=r"^map_flow: the DataFrame has no columns"):
        map_flow(spark.range(5).select(), lambda flow: flow.map(lambda row: {"n": 1}), "n long")
    assert list(Flow.from_dataframe(spark.range(2).select())) == [{}, {}]


@pytest.mark.parametrize("form", ["dicts", "tuples", "batches"])
def test_columns_of_any_name_go_through_a_map_flow(form: Rows, spark: Any) -> None:
    df = (
        spark.range(3)
        .toDF("n")
        .selectExpr(*(f"n + {at} as `{name.replace('`', '``')}`" for at, name in enumerate(NAMES)))
    )
    schema = df.schema
    seen = map_flow(df, lambda flow: flow, schema, form=form, batch_rows=2)
    assert [tuple(row) for row in sorted(seen.collect())] == [tuple(range(n, n + 5)) for n in range(3)]
    assert seen.columns == NAMES


@pytest.mark.parametrize("form", ["tuples", "batches"])
def test_two_columns_of_one_name_go_through_a_map_flow(form: Rows, spark: Any) -> None:
    df = spark.sql("select id as a, id + 7 as a from range(2)")

    def seen(flow: Flow[Any]) -> Flow[Any]:
        return flow if form == "tuples" else flow.map(lambda batch: batch.rename_columns(["p", "q"]))

    rows = map_flow(df, seen, "p long, q long", form=form).collect()
    assert sorted(map(tuple, rows)) == [(0, 7), (1, 8)]


def test_a_struct_with_two_fields_of_one_name_comes_into_a_task(spark: Any) -> None:
    df = spark.sql("select named_struct('a', id, 'a', 'x') as s from range(1)")
    assert (
        map_flow(df, lambda flow: flow.map(lambda row: (str(row["s"]),)), "t string").collect()[0].t
        == "Row(a=0, a='x')"
    )


def test_texts_with_a_length_come_out_as_collect_has_them(spark: Any) -> None:
    key = "spark.sql.preserveCharVarcharTypeInfo"
    spark.conf.set(key, "true")
    try:
        df = spark.sql("select cast('1' as char(5)) c, cast('ab' as varchar(3)) v")
        assert list(Flow.from_dataframe(df, form="tuples")) == [tuple(row) for row in df.collect()]
    finally:
        spark.conf.unset(key)


@pytest.mark.parametrize("on_error", ["fail", "column"])
def test_an_error_that_is_no_utf_8_is_one_of_its_task(on_error: Any, spark: Any) -> None:
    def failing(row: Any) -> Any:
        raise ValueError("\ud800 x") from KeyError("\udfff")

    rows = map_flow(spark.range(2), lambda flow: flow.map(failing), "id long", on_error=on_error)
    if on_error == "column":
        assert all("ValueError: \\ud800 x" in row["_error"]["error"] for row in rows.collect())
        return
    with pytest.raises(Exception, match=r"row 0 \{'id': [01]\}: ValueError: \\+ud800 x"):
        rows.collect()


@pytest.mark.parametrize(
    ("column", "kind", "words"),
    [
        (pa.array([[1, 2], None], pa.list_view(pa.int32())), "array<int>", "an Arrow batch: .*Offsets buffer"),
        (pa.array([-0.0]), "int", r"an Arrow batch: -0\.0 \(double\) would be 0 \(int32\)"),
        (pa.array([-0.0]), "decimal(5, 2)", r"an Arrow batch: -0\.0 \(double\) would be 0"),
        (
            pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"]),
            "struct<x: int>",
            "an Arrow batch: ",
        ),
    ],
    ids=["view", "negative zero", "decimal", "two fields"],
)
def test_what_arrow_cannot_cast_names_element_and_field(column: Any, kind: str, words: str, spark: Any) -> None:
    elements = Elements("to_spark", f"a {kind}")
    nothing = spark.range(0).selectExpr(f"cast(null as {kind}) a").toArrow()
    with pytest.raises(SparkError, match=rf"^to_spark: element 1, field 'a[.x]*': {words}"):
        elements.table([nothing, pa.table({"a": column})])


def test_a_struct_with_two_fields_of_one_name_is_cast_by_position(spark: Any) -> None:
    column = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    schema = types.StructType().add("a", types.StructType().add("x", "integer").add("x", "integer"))
    made: Any = Elements("to_spark", schema).table([pa.table({"a": column})]).column("a").chunk(0)
    assert [made.field(place).to_pylist() for place in range(2)] == [[1], [2]]
