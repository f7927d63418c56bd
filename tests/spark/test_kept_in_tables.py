"""A table whose columns have other types than the flow keeps each value, or the flow fails before it writes."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

import pytest
from sinks import PATIENCE

from reactive_runtime import Flow
from reactive_runtime.errors import SparkError

pytestmark = pytest.mark.timeout(300)

NOON, MIDNIGHT = datetime.datetime(2026, 7, 1, 12), datetime.datetime(2026, 7, 1)
CASES: Final[list[tuple[str, str, list[Any], list[Any]]]] = [
    ("decimal(5, 2)", "decimal(5, 1)", [Decimal("1.20"), None], [Decimal("1.26")]),
    ("decimal(5, 2)", "int", [Decimal("7.00")], [Decimal("7.50")]),
    ("double", "int", [2.0], [1.7, -0.0, 1e300]),
    ("double", "float", [0.5, float("inf")], [1e300]),
    ("double", "decimal(5, 2)", [0.25], [1.267, float("nan")]),
    ("long", "tinyint", [-128], [300]),
    ("long", "double", [2**53], [2**53 + 1]),
    ("long", "decimal(5, 2)", [999], [1000]),
    ("timestamp", "date", [MIDNIGHT], [NOON]),
    ("timestamp_ntz", "date", [MIDNIGHT, datetime.datetime(1, 1, 1)], [NOON]),
    ("array<double>", "array<int>", [[1.0, None], None, []], [[2.0, 1.5]]),
    ("map<string, double>", "map<string, int>", [{"a": 1.0}, None], [{"a": 1.5}]),
    ("map<double, int>", "map<int, int>", [{1.0: 1}], [{1.5: 1}]),
    ("struct<p: double, q: double>", "struct<p: double, q: int>", [(1.5, 1.0), None], [(1.0, 1.5)]),
]
OLD: Final[list[tuple[str, str, list[Any], list[Any]]]] = [
    ("interval day to second", "interval day", [timedelta(2)], [timedelta(2, 1)]),
]
"""Pairs of types that Spark refuses under its own policy."""


@pytest.fixture
def table(spark: Any) -> Iterator[str]:
    spark.sql("DROP TABLE IF EXISTS narrow")
    yield "narrow"
    spark.sql("DROP TABLE IF EXISTS narrow")


@pytest.mark.parametrize("policy", ["ANSI", "LEGACY"])
def test_a_narrower_table_keeps_a_value_or_refuses_it(policy: str, spark: Any, table: str) -> None:
    cases = CASES + OLD if policy == "LEGACY" else CASES
    columns = ", ".join(f"c{place} {column}" for place, (_, column, _, _) in enumerate(cases))
    fields = ", ".join(f"c{place} {kind}" for place, (kind, _, _, _) in enumerate(cases))
    spark.sql(f"CREATE TABLE {table} ({columns}) USING parquet")
    spark.conf.set("spark.sql.storeAssignmentPolicy", policy)
    try:
        most = max(len(kept) for *_, kept, _ in cases)
        rows = [tuple(kept[n] if n < len(kept) else None for *_, kept, _ in cases) for n in range(most)]
        assert Flow.from_iterable(rows).to_spark(spark, fields).insertInto(table).result(PATIENCE) == most
        found = list(Flow.from_dataframe(spark.table(table), form="tuples"))
        assert all(any(row[place] is not None for row in found) for place in range(len(cases)))
        nothing = (None,) * len(cases)
        for place, (_, column, _, refused) in enumerate(cases):
            for value in refused:
                bad = Flow.from_iterable([nothing, (*nothing[:place], value, *nothing[place + 1 :])])
                words = rf"^to_spark: element 1, field 'c{place}': .*: the table has {re.split('[(<]', column)[0]}"
                with pytest.raises(SparkError, match=words):
                    bad.to_spark(spark, fields).insertInto(table).result(PATIENCE)
        assert spark.table(table).count() == most
    finally:
        spark.conf.unset("spark.sql.storeAssignmentPolicy")


def test_columns_of_a_narrower_table_are_found_by_name(spark: Any, table: str) -> None:
    spark.sql(f"CREATE TABLE {table} (n int, v double) USING parquet")
    sink = Flow.just((1.5, 7)).to_spark(spark, "V double, N long")
    assert sink.saveAsTable(table).result(PATIENCE) == 1
    bad = Flow.just((1.5, 2**40)).to_spark(spark, "V double, N long")
    for write in (bad.saveAsTable, lambda name: bad.writeTo(name).append()):
        with pytest.raises(SparkError, match=f"element 0, field 'N': {2**40}: the table has int there"):
            write(table).result(PATIENCE)
    with pytest.raises(SparkError, match=r"element 0, field 'V': 1\.5: the table has int there"):
        sink.insertInto(table).result(PATIENCE)
    assert sink.mode("overwrite").saveAsTable(table).result(PATIENCE) == 1  # which makes another table


def test_the_session_zone_says_what_day_a_time_is(spark: Any, table: str) -> None:
    spark.sql(f"CREATE TABLE {table} (v date) USING parquet")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        tokyo = datetime.timezone(timedelta(hours=9))
        sink = Flow.just((MIDNIGHT.replace(tzinfo=tokyo),)).to_spark(spark, "v timestamp")
        assert sink.insertInto(table).result(PATIENCE) == 1
        assert [row.v for row in spark.table(table).collect()] == [MIDNIGHT.date()]
        other = Flow.just((MIDNIGHT.replace(tzinfo=datetime.UTC),)).to_spark(spark, "v timestamp")
        with pytest.raises(SparkError, match="the table has date there"):
            other.insertInto(table).result(PATIENCE)
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
