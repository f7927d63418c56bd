"""A `Row` goes by its names, whatever stands beside it and wherever a batch begins."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark.sql
import pytest
from pyspark.sql import types
from sinks import PATIENCE

from reactive_runtime import Flow
from reactive_runtime.errors import SparkError
from reactive_runtime.spark import TaskFlow
from reactive_runtime.spark._write.schemas import Elements

Row: Any = pyspark.sql.Row  # its types know of no values without names

pytestmark = pytest.mark.timeout(300)

TWO = types.StructType().add("a", "integer").add("b", "integer")
INSIDE = types.StructType().add("s", TWO)
DOUBLE = types.StructType().add("x", "integer").add("x", "integer")


def kept(schema: Any, *elements: Any) -> list[Any]:
    return [tuple(row.values()) for row in Elements("to_spark", schema).table(elements).to_pylist()]


def refused(schema: Any, *elements: Any) -> str:
    with pytest.raises(SparkError) as caught:
        Elements("to_spark", schema).table(elements)
    return str(caught.value)


@pytest.mark.parametrize("beside", [{"a": 1, "b": 2}, (1, 2), SimpleNamespace(a=1, b=2), Row(1, 2), Row(a=1, b=2)])
def test_a_row_goes_by_its_names_beside_whatever_there_is(beside: Any) -> None:
    assert kept(TWO, beside, Row(b=20, a=10)) == [(1, 2), (10, 20)]
    assert kept(TWO, Row(b=20, a=10), beside) == [(10, 20), (1, 2)]
    assert kept(TWO, Row(b=20, a=10), Row(b=3)) == [(10, 20), (None, 3)]
    assert refused(TWO, beside, Row(x=1, y=2)) == "to_spark: element 1, field 'a': {'x': 1, 'y': 2} has no such field"
    assert refused(TWO, Row(a=1, b=2), beside, Row(a=1, b=2, c=3)).startswith("to_spark: element 2, field 'c': is not")
    assert refused(TWO, beside, Row("a", "a")(1, 2)).startswith("to_spark: element 1, field 'a': two fields of")


def test_a_row_inside_is_kept_by_name_or_refused() -> None:
    assert kept(INSIDE, (Row(b=2, a=1),), Row(s=Row(1, 2)), ((1, 2),)) == [({"a": 1, "b": 2},)] * 3
    assert refused(INSIDE, (Row(x=1, y=2),)) == "to_spark: element 0, field 's.x': is not in the schema"
    assert refused(INSIDE, (Row(1, 2, 3),)).startswith("to_spark: element 0, field 's': <Row(1, 2, 3)> has 3 values")


def test_a_row_with_a_name_twice_has_that_of_the_schema() -> None:
    assert Elements("to_spark", DOUBLE).table([Row("x", "x")(1, 2)]).num_rows == 1
    assert refused(DOUBLE, Row(x=1)).startswith("to_spark: element 0, field 'x': two fields have that name")


def test_what_has_fields_by_position_or_key_is_not_read_by_attributes() -> None:
    for other in ({"a": 1, "b": 2}, (1, 2)):
        assert "and no attributes, as the first was" in refused(TWO, SimpleNamespace(a=1, b=2), other)


@pytest.mark.parametrize("batch_rows", [1, 2])
def test_where_a_batch_begins_changes_no_value(batch_rows: int, spark: Any, tmp_path: Path) -> None:
    flow = Flow.from_iterable([{"a": 1, "b": 2}, Row(b=20, a=10)])
    flow.to_spark(spark, "a int, b int", batch_rows=batch_rows).parquet(tmp_path / "out").result(PATIENCE)
    assert sorted(map(tuple, spark.read.parquet(str(tmp_path / "out")).collect())) == [(1, 2), (10, 20)]


def test_rows_of_a_task_flow_go_by_their_names() -> None:
    assert list(TaskFlow(lambda flow: flow, TWO).rows([Row(b=20, a=10), Row(1, 2)])) == [Row(a=10, b=20), Row(a=1, b=2)]
    with pytest.raises(SparkError, match="has not the fields of the schema: a, b"):
        list(TaskFlow(lambda flow: flow, TWO).rows([Row(x=1, y=2)]))
