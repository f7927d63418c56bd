"""The settings of a session are those of its tasks: a flow has the rows that `DataFrame.collect` has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reactive_runtime import Flow
from reactive_runtime.spark import map_flow

pytestmark = pytest.mark.timeout(300)

LEGACY = {"spark.sql.legacy.timeParserPolicy": "LEGACY", "spark.sql.ansi.enabled": "false"}

CASES: dict[str, tuple[dict[str, str], str]] = {
    "json": (
        {"spark.sql.jsonGenerator.ignoreNullFields": "false"},
        "select to_json(struct(id, cast(null as int) z)) j from range(0, 3, 1, 2)",
    ),
    "keys": (
        {"spark.sql.mapKeyDedupPolicy": "LAST_WIN"},
        "select map_from_arrays(array(id, id), array(1, 2)) m from range(0, 3, 1, 2)",
    ),
    "parser": (LEGACY, "select to_date(concat('2020-1-', id + 31), 'yyyy-MM-dd') d from range(0, 3, 1, 2)"),
    "nested": (
        LEGACY,
        "select from_json(concat('{\"t\":\"2020-1-', id + 31, '\"}'), 't date') j from range(0, 3, 1, 2)",
    ),
    "case": (
        {"spark.sql.caseSensitive": "true"},
        "select from_json(concat('{\"A\":', id, '}'), 'a int') j from range(0, 3, 1, 2)",
    ),
    "before a shuffle": (
        {"spark.sql.mapKeyDedupPolicy": "LAST_WIN"},
        "select k, count(*) n from (select map_from_arrays(array(id, id), array(1, id))[id] k from range(0, 9, 1, 2))"
        " group by k order by k",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_flow_has_the_rows_that_collect_has(name: str, spark: Any) -> None:
    settings, query = CASES[name]
    other = spark.newSession()
    for key, value in settings.items():
        other.conf.set(key, value)
    df = other.sql(query)
    rows = sorted(map(tuple, df.collect()), key=repr)
    assert sorted(Flow.from_dataframe(df, form="tuples"), key=repr) == rows
    assert sorted(map(tuple, map_flow(df, lambda flow: flow, df.schema).collect()), key=repr) == rows
    assert spark.sparkContext.getLocalProperty(next(iter(settings))) is None


def test_all_partitions_have_the_settings_of_the_first(spark: Any) -> None:
    other = spark.newSession()
    key = "spark.sql.jsonGenerator.ignoreNullFields"
    other.conf.set(key, "false")
    df = other.sql("select to_json(struct(id % 1 as n, cast(null as int) z)) j from range(0, 40, 1, 40)")
    rows = iter(Flow.from_dataframe(df, form="tuples"))
    first = next(rows)
    other.conf.set(key, "true")
    assert {first, *rows} == {('{"n":0,"z":null}',)}


def test_a_stream_has_the_settings_of_its_session(spark: Any, tmp_path: Path) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.jsonGenerator.ignoreNullFields", "false")
    other.range(3).write.parquet(str(tmp_path / "in"))
    read = other.readStream.schema("id long").parquet(str(tmp_path / "in"))
    read = read.selectExpr("to_json(struct(id % 1 as n, cast(null as int) z)) j")
    rows = Flow.from_stream(read, checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True}, form="tuples")
    assert list(rows) == [('{"n":0,"z":null}',)] * 3
