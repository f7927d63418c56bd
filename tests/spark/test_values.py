"""Values out of Spark are those of `collect`, and into Spark those that `createDataFrame` takes, nested ones too."""

from __future__ import annotations

import array
import datetime
import decimal
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import types
from pyspark.testing.objects import ExamplePoint, ExamplePointUDT
from sinks import PATIENCE

from reactive_runtime import Flow
from reactive_runtime.errors import SparkError
from reactive_runtime.spark import map_flow
from reactive_runtime.spark._read import arrow_jobs
from reactive_runtime.spark._write.schemas import Elements, spark_schema

EXAMPLES = int(os.environ.get("VALUE_EXAMPLES", "10"))
"""Random schemas that are tried; 2,000 in a night."""

pytestmark = [pytest.mark.timeout(120 + 3 * EXAMPLES), pytest.mark.usefixtures("a_zone_with_summer_time")]


SETTINGS: dict[str, tuple[str, ...]] = {
    "spark.sql.execution.arrow.useLargeVarTypes": ("false", "true"),
    "spark.sql.execution.arrow.maxRecordsPerBatch": ("10000", "1", "3", "0"),
    "spark.sql.execution.arrow.pyspark.enabled": ("true", "false"),
    "spark.sql.execution.pyspark.binaryAsBytes": ("true", "false"),
    "spark.sql.session.timeZone": ("UTC", "America/New_York", "Asia/Kathmandu", "+01:00"),
    "spark.sql.ansi.enabled": ("true", "false"),
}
"""What changes the form in which rows are sent; the first of each is where it stands."""

READ_AND_WRITTEN: dict[str, tuple[str, ...]] = {
    "spark.sql.timestampType": ("TIMESTAMP_LTZ", "TIMESTAMP_NTZ"),
    "spark.sql.pyspark.inferNestedDictAsStruct.enabled": ("false", "true"),
    "spark.sql.parquet.outputTimestampType": ("TIMESTAMP_MICROS", "INT96"),
    "spark.sql.parquet.datetimeRebaseModeInWrite": ("CORRECTED", "LEGACY", "EXCEPTION"),
    "spark.sql.parquet.datetimeRebaseModeInRead": ("CORRECTED", "LEGACY", "EXCEPTION"),
    "spark.sql.parquet.int96RebaseModeInWrite": ("CORRECTED", "LEGACY"),
    "spark.sql.parquet.int96RebaseModeInRead": ("CORRECTED", "LEGACY"),
    "spark.sql.parquet.writeLegacyFormat": ("false", "true"),
    "spark.sql.parquet.inferTimestampNTZ.enabled": ("true", "false"),
}
"""Settings that change types and files; likewise."""

ALL_SETTINGS = {**SETTINGS, **READ_AND_WRITTEN}


@pytest.fixture
def configured(spark: Any) -> Iterator[Callable[[dict[str, str]], None]]:
    """Sets what is given, and all others to where they stand."""

    def configure(chosen: dict[str, str]) -> None:
        spark.conf.set("spark.sql.timeType.enabled", "true")
        for key, choices in ALL_SETTINGS.items():
            spark.conf.set(key, chosen.get(key, choices[0]))

    yield configure
    configure({})
    for key in READ_AND_WRITTEN:
        spark.conf.unset(key)
    spark.conf.unset("spark.sql.timeType.enabled")


def seen(value: Any) -> Any:
    """As text, in which NaN is NaN, -0.0 is not 0.0, and a map has no order."""
    if isinstance(value, types.Row):
        return ("Row", getattr(value, "__fields__", None), [seen(item) for item in value])
    if isinstance(value, list | tuple):
        return (type(value).__name__, [seen(item) for item in value])
    if isinstance(value, dict):
        return ("map", sorted((seen(key), seen(item)) for key, item in value.items()))
    return repr(value)


def rows_of(df: Any) -> list[Any]:
    """What `collect` has, as plain tuples of values."""
    return [seen(tuple(row)) for row in df.collect()]


QUERIES = {
    "numbers": "select 1Y a, 2S b, 3 c, 4L d, 1.5F e, double('nan') f, double('-0.0') g, float('-inf') h, true i",
    "decimals": "select 3.50BD a, cast(0 as decimal(38,18)) b, cast(null as decimal(5,2)) c, -99.99BD d",
    "timestamps": "select timestamp'2026-07-01 12:00:00' a, timestamp_ntz'2026-07-01 12:00:00.123456' b,"
    " timestamp'1883-01-01 00:00:00.000001' c, timestamp_ntz'0001-01-01 00:00:00' d",
    "the hour that is there twice": "select timestamp'2026-10-25 00:30:00Z' a, timestamp'2026-10-25 01:30:00Z' b",
    "dates": "select date'1582-10-04' a, date'0001-01-01' b, date'9999-12-31' c, cast(null as date) d",
    "times": "select time'12:13:14.123456' a, cast(null as time) b, array(time'00:00:00') c",
    "intervals": "select interval '-1 02:03:04.5' day to second a, interval '3' hour b, map(interval '1' day, 1) c",
    "variants": """select parse_json('{"a": [1, 2, null]}') a, array(parse_json('1'), null) b, cast(null as variant) c,
        named_struct('v', parse_json('"x"')) d""",
    "maps": "select map('k', 1, 'l', null) a, map(1, map('x', array(1, null))) b, map() c, array(map()) d,"
    " map(timestamp'2026-01-01 00:00:00', named_struct('p', 1)) e, cast(null as map<int, int>) f",
    "structs": "select named_struct('p', 1, 'q', named_struct('r', timestamp'2026-07-01 12:00:00')) a,"
    " array(named_struct('x', 1), null) b, cast(null as struct<a: int>) c",
    "structs with a name that is there twice": "select 1 b, named_struct('p', 1, 'p', array(named_struct('x', 2, 'x',"
    " 3))) a, map(1, named_struct('p', 1, 'p', 'q')) b",
    "binary": "select binary('x') a, array(binary('y'), null) b, map('k', binary('z')) c",
    "strings": "select 'a' a, cast('b' as char(3)) b, cast('c' as varchar(3)) c, 'x' collate utf8_lcase d, '' e",
    "nothing": "select null a, array() b, array(null) c, named_struct('n', null) d",
    "places": "select st_geomfromwkb(X'0101000000000000000000F03F0000000000000040') a, array(st_geogfromwkb("
    "X'0101000000000000000000F03F0000000000000040')) b",
    "no columns": "",
    "many rows": "select id, if(id % 3 = 0, null, repeat('ü', int(id))) s, array_repeat(id, int(id % 4)) l,"
    " if(id % 5 = 0, null, named_struct('m', map(id, binary(string(id))))) m from range(0, 50, 1, 3)",
}


@pytest.mark.parametrize("large", ["false", "true"], ids=["small", "large"])
@pytest.mark.parametrize("name", QUERIES)
def test_what_comes_out_is_what_collect_has(name: str, large: str, spark: Any, configured: Any) -> None:
    configured({"spark.sql.execution.arrow.useLargeVarTypes": large})
    df = spark.sql(QUERIES[name]) if QUERIES[name] else spark.range(3).select()
    assert [seen(row) for row in Flow.from_dataframe(df, form="tuples", batch_rows=7)] == rows_of(df)


def test_by_public_names_alone_the_values_are_the_same(
    spark: Any, configured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(context: Any) -> Any:
        raise AttributeError("SparkContext has no _jvm")

    monkeypatch.setattr(arrow_jobs, "_sender_of", missing)
    configured({})
    for name, query in QUERIES.items():
        df = spark.sql(query) if query else spark.range(3).select()
        assert [seen(row) for row in Flow.from_dataframe(df, form="tuples", batch_rows=7)] == rows_of(df), name


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in SETTINGS.items() for value in values[1:]])
def test_settings_that_change_the_form_do_not_change_the_values(
    key: str, value: str, spark: Any, configured: Any
) -> None:
    configured({key: value})
    for name in ("timestamps", "binary", "many rows"):
        df = spark.sql(QUERIES[name])
        assert [seen(row) for row in Flow.from_dataframe(df, form="tuples")] == rows_of(df)


MIXED = (
    "t timestamp, n timestamp_ntz, d date, f double, e decimal(38,18), s string, b binary, i interval day to second,"
    " l array<struct<t: timestamp, n: timestamp_ntz>>, m map<string, timestamp>, r struct<p: struct<q: long>>"
)


def mixed(at: datetime.datetime) -> tuple[Any, ...]:
    exact = decimal.Decimal("1.000000000000000001")
    interval = datetime.timedelta(1, 2, 3)
    return (at, at, at.date(), 0.1, exact, "a\0b", b"\xff", interval, [(at, at)], {"k": at}, {"p": {"q": 2**53 + 1}})


def flat(row: Any) -> list[Any]:
    """The values of a row that went in, or that came out, as text."""
    *plain, listed, mapping, nested = row
    ((one, other),) = listed
    (inner,) = nested.values() if isinstance(nested, dict) else nested
    (number,) = inner.values() if isinstance(inner, dict) else inner
    plain = [bytes(value) if isinstance(value, bytearray) else value for value in plain]  # `binaryAsBytes`
    return list(map(repr, [*plain, one, other, mapping, number]))


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in ALL_SETTINGS.items() for value in values], ids=str
)
def test_no_setting_changes_a_value_on_its_way(
    key: str, value: str, spark: Any, configured: Any, tmp_path: Path
) -> None:
    configured({"spark.sql.parquet.outputTimestampType": "INT96"} if "int96" in key else {})
    spark.conf.set(key, value)
    moments = [datetime.datetime(2026, 7, 1, 12, 0, 0, 123_456)]
    if value != "EXCEPTION":  # it raises where a day is before 1900
        moments += [datetime.datetime(1899, 12, 31, 23, 59, 59, 1), datetime.datetime(1500, 1, 1, 3, 4, 5, 6)]
    rows = list(map(mixed, moments))
    written = Flow.from_iterable(rows).to_spark(spark, MIXED).parquet(tmp_path / "rows")
    assert written.result(PATIENCE) == len(rows)
    df = spark.read.schema(MIXED).parquet(str(tmp_path / "rows")).coalesce(1)
    expected = list(map(flat, rows))
    assert list(map(flat, Flow.from_dataframe(df, form="tuples"))) == expected
    through = map_flow(df, lambda flow: flow, MIXED)
    assert list(map(flat, Flow.from_dataframe(through, form="tuples"))) == expected


@pytest.mark.parametrize("kind", ["timestamp", "array<timestamp>", "map<string, timestamp>", "struct<p: timestamp>"])
def test_microseconds_that_a_setting_would_drop_are_refused(
    kind: str, spark: Any, configured: Any, tmp_path: Path
) -> None:
    key = "spark.sql.parquet.outputTimestampType"

    def value(microsecond: int) -> Any:
        at = datetime.datetime(2026, 7, 1, 12, 0, 0, microsecond)
        return {"timestamp": at, "array<timestamp>": [at], "struct<p: timestamp>": (at,)}.get(kind, {"k": at})

    configured({})
    spark.conf.set(key, "TIMESTAMP_MILLIS")
    rows = Flow.just((value(1_000),), (None,), (value(1),)).to_spark(spark, f"v {kind}")
    words = rf"^to_spark: element 2, field 'v': .*: {key} is TIMESTAMP_MILLIS, which drops its microseconds: set"
    writes: list[Callable[[], Any]] = [
        lambda: rows.parquet(tmp_path / "never"),
        lambda: rows.save(tmp_path / "never"),
        rows.writeTo("never").using("parquet").create,
    ]
    for write in writes:
        with pytest.raises(SparkError, match=words):
            write().result(PATIENCE)
    whole = Flow.just((value(1_000),), (None,)).to_spark(spark, f"v {kind}")
    assert whole.parquet(tmp_path / "whole").result(PATIENCE) == 2
    assert rows.orc(tmp_path / "orc").result(PATIENCE) == 3


def test_days_that_a_calendar_leaves_out_are_refused(spark: Any, configured: Any, tmp_path: Path) -> None:
    key = "spark.sql.parquet.datetimeRebaseModeInWrite"
    configured({key: "LEGACY"})
    days = [datetime.date(1582, 10, 4), datetime.date(1582, 10, 15)]
    kept = Flow.from_iterable(days).map(lambda day: (day,)).to_spark(spark, "d date").parquet(tmp_path / "kept")
    assert kept.result(PATIENCE) == 2
    assert sorted(row["d"] for row in Flow.from_dataframe(spark.read.parquet(str(tmp_path / "kept")))) == days
    left_out = datetime.datetime(1582, 10, 10, 12)
    words = rf"^to_spark: element 0, field 'v': .*1582.*: {key} is LEGACY, which has no such day: set CORRECTED"
    for kind, value in (("date", left_out.date()), ("timestamp", left_out), ("array<date>", [left_out.date()])):
        with pytest.raises(SparkError, match=words):
            Flow.just((value,)).to_spark(spark, f"v {kind}").parquet(tmp_path / "never").result(PATIENCE)


def test_values_of_a_type_of_the_users_are_their_own(spark: Any, tmp_path: Path) -> None:
    schema = types.StructType(
        [
            types.StructField("p", ExamplePointUDT()),
            types.StructField("l", types.ArrayType(ExamplePointUDT())),
        ]
    )
    point: Any = ExamplePoint
    rows: list[Any] = [(point(1.0, 2.0), [point(3.0, 4.0), None]), (None, None)]
    df = spark.createDataFrame(rows, schema).coalesce(1)
    found = list(Flow.from_dataframe(df, form="tuples"))
    assert [seen(row) for row in found] == rows_of(df)
    assert Flow.from_iterable(found).to_spark(spark, schema).parquet(tmp_path / "p").result(PATIENCE) == 2
    assert rows_of(spark.read.schema(schema).parquet(str(tmp_path / "p"))) == rows_of(df)


@pytest.mark.parametrize("query", ["select interval '1-2' year to month a", "select make_interval(1, 2, 3) a"])
def test_what_collect_refuses_is_refused_where_the_flow_is_made(query: str, spark: Any) -> None:
    with pytest.raises(
        SparkError, match=r"^from_dataframe: field 'a': \[NOT_IMPLEMENTED\] \w+IntervalType.fromInternal"
    ):
        Flow.from_dataframe(spark.sql(query))


def test_dicts_that_would_lose_a_column_are_refused(spark: Any) -> None:
    df = spark.sql("select 1 a, 2 a")
    words = "dicts would lose a column, since two are named 'a': rename one, or use tuples"
    with pytest.raises(ValueError, match=f"^from_dataframe: {words}"):
        Flow.from_dataframe(df)
    with pytest.raises(ValueError, match=f"^map_flow: {words}"):
        map_flow(df, lambda rows: rows, "a int")
    assert list(Flow.from_dataframe(df, form="tuples")) == [(1, 2)]
    with pytest.raises(
        SparkError, match=r"^to_spark: element 0, field 'a': two fields have that name, and {'a': 1} has"
    ):
        Elements("to_spark", "a int, a int").table([{"a": 1}])


def test_tasks_have_the_values_that_collect_has_and_give_them_back(spark: Any) -> None:
    df = spark.sql(
        "select timestamp'2026-07-01 12:00:00Z' a, map('k', named_struct('x', 1, 'y', array(1.5D))) b, binary('x') c,"
        " parse_json('[1]') d, timestamp_ntz'2026-07-01 12:00:00' e"
    )

    def looked_at(row: Any) -> Any:
        assert row["b"]["k"].x == 1
        assert row["a"].tzinfo is None
        assert row["e"] == datetime.datetime(2026, 7, 1, 12)
        return row

    through = map_flow(df, lambda rows: rows.map(looked_at), df.schema)
    assert rows_of(through) == rows_of(df)


def test_variants_go_in_where_spark_sends_large_types(spark: Any, configured: Any, tmp_path: Path) -> None:
    """PySpark's own `createDataFrame` reads memory wrongly there."""
    configured({"spark.sql.execution.arrow.useLargeVarTypes": "true"})
    df = spark.sql("select parse_json('[1, \"x\"]') v, array(named_struct('w', parse_json('1'))) l, 'a' s")
    rows = list(Flow.from_dataframe(df))
    assert Flow.from_iterable(rows).to_spark(spark, df.schema).parquet(tmp_path / "v").result(PATIENCE) == 1
    assert rows_of(spark.read.parquet(str(tmp_path / "v"))) == rows_of(df)


@pytest.mark.parametrize("most", ["0", "-1"])
def test_batches_of_arrow_may_be_without_a_limit(most: str, spark: Any, configured: Any, tmp_path: Path) -> None:
    """PySpark's own `createDataFrame` refuses that; the session is left as it was."""
    key = "spark.sql.execution.arrow.maxRecordsPerBatch"
    configured({key: most})
    written = Flow.range(10).map(lambda n: (n,)).to_spark(spark, "n long", batch_rows=4).parquet(tmp_path / "n")
    assert written.result(PATIENCE) == 10
    assert spark.conf.get(key) == most


# -- in ---------------------------------------------------------------------------------------------------------

BERLIN = datetime.timezone(datetime.timedelta(hours=2))

VALUES: dict[str, list[Any]] = {
    "boolean": [True, None, 1, 0.0, "true"],
    "byte": [1, -128, 128, True, 1.0],
    "short": [32767, 32768],
    "int": [1, 2**31, 1.5, True, "1"],
    "long": [1, None, 1.5, -2.999, decimal.Decimal("1.7"), True, 2**63, "7", 2.0, float("nan")],
    "float": [1.5, 1, True, float("nan"), -0.0, decimal.Decimal(1)],
    "double": [1.5, 1, None, "1.5", True, -0.0],
    "decimal(5, 2)": [decimal.Decimal("1.5"), None, 1, 1.5, decimal.Decimal(10**6), "1"],
    "string": ["a", "", None],
    "binary": [b"a", bytearray(b"b"), "a", 1, [1]],
    "date": [datetime.date(1582, 10, 4), datetime.datetime(2026, 1, 1), 5, "2026-01-01", 1.5],
    "timestamp": [
        datetime.datetime(2026, 7, 1, 12),
        datetime.datetime(2026, 7, 1, 12, tzinfo=BERLIN),
        datetime.datetime(1883, 1, 1, 0, 0, 0, 1),
        datetime.date(2026, 1, 1),
        5,
        "2026",
    ],
    "timestamp_ntz": [
        datetime.datetime(2026, 7, 1, 12),
        datetime.datetime(1, 1, 1),
        datetime.date(2026, 1, 1),
        5,
    ],
    "time": [datetime.time(1, 2, 3, 4), datetime.datetime(2026, 1, 1), 5],
    "interval day to second": [datetime.timedelta(-1, 2, 3), 5, 1.5],
    "array<long>": [[1, None], (1, 2), [], [1.5], [True], [[1]], "ab", {1: 2}, 5, range(2)],
    "array<array<int>>": [[[1], None, []], [[1, 2**31]], [["a"]]],
    "map<string, int>": [{"a": 2}, {}, {"a": None}, {"a": 2.7}, {"a": True}, [("a", 1)], {None: 1}, 5],
    "struct<p: int, q: string>": [(1, "a"), [1, None], {"p": 1, "q": "b"}, {"p": 1}, (1,), (1.5, "a"), {"p": "1"}, 5],
    "array<struct<p: int>>": [[(1,), None, {"p": 2}], [(1.5,)]],
    "variant": [None],
}


@pytest.mark.parametrize("kind", VALUES)
def test_what_goes_in_is_what_create_data_frame_takes(kind: str, spark: Any, configured: Any) -> None:
    configured({})
    schema = spark_schema("to_spark", f"v {kind}")
    for value in VALUES[kind]:
        try:
            expected = rows_of(spark.createDataFrame([(value,)], schema))
        except Exception:
            with pytest.raises(SparkError, match=r"^to_spark: element 0, field ('v|\"v)"):
                Elements("to_spark", schema).table([(value,)])
        else:
            table = Elements("to_spark", schema).table([(value,)])
            assert rows_of(spark.createDataFrame(table, schema)) == expected, value


NESTED = "s struct<p: int not null, l: array<struct<x: long, m: map<string, double>>>>"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ((1.5, []), r"'s\.p': 1\.5 \(float\) is no int32"),
        ((None, []), r"'s\.p': None, in a field that is required"),
        ({"p": 1, "l": [(1, {}), (2.5, {})]}, r"'s\.l\[1\]\.x': 2\.5 \(float\) is no int64"),
        ({"p": 1, "l": [None, {"x": 1, "m": {"k": 1.0, "j": 2}}]}, r"\"s\.l\[1\]\.m\['j'\]\": 2 \(int\) is no double"),
        ({"p": 1, "l": [(1, {5: 1.0})]}, r"'s\.l\[0\]\.m': a key: 5 \(int\) is no string"),
        ({"p": 1, "k": []}, r"'s\.k': is not in the schema"),
        ({"l": []}, r"'s\.p': {'l': \[\]} has no such field"),
        ((1, [(1, {}, 3)]), r"'s\.l\[0\]': \(1, {}, 3\) has 3 values, and the schema 2 fields"),
        ((1, 7), r"'s\.l': 7 \(int\) is no list"),
        (7, r"'s\.p': 7 has no such field"),
    ],
)
def test_a_nested_value_that_does_not_fit_is_named_with_its_place(value: Any, words: str, spark: Any) -> None:
    rows = Elements("to_spark", NESTED)
    good = (1, [(1, {"a": 1.0}), None, (None, None)])
    rows.table([(good,), (None,)])
    with pytest.raises(SparkError, match=f"^to_spark: element 4, field {words}"):
        rows.table([(good,), ({"p": 1},), (value,), (None,)])


@dataclass
class Inner:
    x: int
    at: datetime.datetime | None = None


@dataclass
class Outer:
    one: Inner
    many: list[Inner]
    by: dict[str, Inner]
    maybe: Inner | None = None


def test_objects_in_objects_are_rows_in_rows(spark: Any, tmp_path: Path) -> None:
    at = datetime.datetime(2026, 7, 1, 12)
    objects = [Outer(Inner(1, at), [Inner(2)], {"k": Inner(3)}), Outer(Inner(4), [], {}, Inner(5))]
    assert Flow.from_iterable(objects).to_spark(spark, Outer).parquet(tmp_path / "o").result(PATIENCE) == 2
    first, second = sorted(map(tuple, spark.read.parquet(str(tmp_path / "o")).collect()))
    assert first == ((1, at), [(2, None)], {"k": (3, None)}, None)
    assert second == ((4, None), [], {}, (5, None))
    with pytest.raises(SparkError, match=r"^to_spark: element 0, field 'many\[1\]\.x': '2' \(str\) is no int64"):
        Elements("to_spark", Outer).table([Outer(Inner(1), [Inner(1), Inner("2")], {})])  # type: ignore[arg-type]


def test_what_is_taken_beside_what_create_data_frame_takes(spark: Any) -> None:
    """Sets, arrays of Python, and values of NumPy: nothing of them is lost."""
    rows = Elements("to_spark", "l array<double>, n long, s array<long>")
    table = rows.table([(numpy.array([1.5, 2.0]), numpy.int64(7), {3}), (numpy.array([]), None, array.array("q", [4]))])
    assert table.to_pylist() == [{"l": [1.5, 2.0], "n": 7, "s": [3]}, {"l": [], "n": None, "s": [4]}]
    for value in (numpy.float64(1.5), numpy.array([1.5])):
        with pytest.raises(SparkError, match=r"element 2, field 'n': .* is no int64"):
            rows.table([([], value, [])])


def test_what_is_refused_though_create_data_frame_would_change_it(spark: Any) -> None:
    """What it makes a string, a null or an infinity of, or rounds."""
    changed = [
        *(("string", 7), ("string", [1]), ("decimal(5, 2)", decimal.Decimal("1.005"))),
        *(("decimal(5, 2)", decimal.Decimal(text)) for text in ("NaN", "sNaN", "Infinity", "-Infinity")),
        *(("float", value) for value in (1e300, -1e300, 3.5e38)),
    ]
    for kind, value in changed:
        with pytest.raises(SparkError, match=r"^to_spark: element 1, field 'v': .* is no "):
            Elements("to_spark", f"v {kind}").table([(None,), (value,), (None,)])
        with pytest.raises(SparkError, match=r"^to_spark: element 1, field 'v\[1\]': .* is no "):
            Elements("to_spark", f"v array<{kind}>").table([(None,), ([None, value],)])


def test_an_infinity_that_was_given_is_kept_as_a_float(spark: Any) -> None:
    infinite = float("inf")
    table = Elements("to_spark", "v float").table([(infinite,), (None,), (-infinite,), (3.4e38,)])
    assert [row["v"] for row in table.to_pylist()][:3] == [infinite, None, -infinite]


@pytest.mark.parametrize("kind", ["char(3)", "varchar(3)", "array<char(3)>", "struct<a: varchar(3)>"])
def test_a_text_with_a_length_is_refused_with_its_field(kind: str, spark: Any) -> None:
    with pytest.raises(SparkError, match=r"^to_spark: field 'v' has the type (var)?char\(3\), .*: take string"):
        Elements("to_spark", f"n long, v {kind}")
    with pytest.raises(SparkError, match=r"^to_spark: field 'v' has the type (var)?char\(3\)"):
        spark_schema("to_spark", f"v {kind}")


# -- there and back ---------------------------------------------------------------------------------------------

LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (types.BooleanType(), st.booleans()),
    (types.ByteType(), st.integers(-(2**7), 2**7 - 1)),
    (types.ShortType(), st.integers(-(2**15), 2**15 - 1)),
    (types.IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    (types.LongType(), st.integers(-(2**63), 2**63 - 1)),
    (types.DecimalType(38, 18), st.decimals(-(10**19), 10**19, places=18)),
    (types.DecimalType(5, 2), st.decimals(-999, 999, places=2) | st.just(decimal.Decimal("NaN"))),
    (types.StringType(), st.text(max_size=8)),
    (types.BinaryType(), st.binary(max_size=8)),
    (types.DateType(), st.dates()),
    (types.TimeType(), st.times()),
    (
        types.TimestampType(),
        st.datetimes(datetime.datetime(1500, 1, 1), datetime.datetime(9998, 1, 1))
        | st.datetimes(
            datetime.datetime(2026, 10, 25), datetime.datetime(2026, 10, 26), timezones=st.just(datetime.UTC)
        ),
    ),
    (types.TimestampNTZType(), st.datetimes()),
    (
        types.DayTimeIntervalType(),
        st.timedeltas(datetime.timedelta(-100_000_000), datetime.timedelta(100_000_000)),
    ),
    (types.FloatType(), st.floats(width=32)),
    (types.DoubleType(), st.floats()),
    (types.VariantType(), st.sampled_from(['{"a": [1, null]}', "1.5", '"x"']).map(types.VariantVal.parseJson)),
    (ExamplePointUDT(), st.builds(ExamplePoint, st.floats(), st.floats())),
]

KEYS = [*LEAVES[:8], *LEAVES[9:13]]
"""What a map may have as keys: 0.0 and -0.0 are one in Spark, and bytearrays are none in Python."""

Typed = tuple[Any, st.SearchStrategy[Any]]
"""A type, and its values, None not among them."""


def maybe(nullable: bool, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.none() | values
        if nullable
        else values.filter(lambda value: value == value or not isinstance(value, decimal.Decimal))
    )


def arrays(element: Typed, nullable: bool) -> Typed:
    return types.ArrayType(element[0], nullable), st.lists(maybe(nullable, element[1]), max_size=3)


def maps(key: Typed, value: Typed, nullable: bool) -> Typed:
    keys = maybe(False, key[1])
    return types.MapType(key[0], value[0], nullable), st.dictionaries(keys, maybe(nullable, value[1]), max_size=2)


def structs(fields: list[Typed], nullables: list[bool]) -> Typed:
    flags = [nullables[place % len(nullables)] for place in range(len(fields))]
    named = [
        types.StructField(f"ü {place}", kind, flag)
        for place, ((kind, _), flag) in enumerate(zip(fields, flags, strict=True))
    ]
    values = (maybe(flag, values) for (_, values), flag in zip(fields, flags, strict=True))
    return types.StructType(named), st.tuples(*values)


FLAGS = st.lists(st.booleans(), min_size=1, max_size=3)
TYPES: st.SearchStrategy[Typed] = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.builds(arrays, inner, st.booleans()),
        st.builds(maps, st.sampled_from(KEYS), inner, st.booleans()),
        st.builds(structs, st.lists(inner, min_size=1, max_size=3), FLAGS),
    ),
    max_leaves=4,
)
TABLES = st.builds(structs, st.lists(TYPES, min_size=1, max_size=4), FLAGS).flatmap(
    lambda made: st.tuples(st.just(made[0]), st.lists(made[1], min_size=1, max_size=6))
)


@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],  # to make one small takes hundreds of jobs
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(TABLES, st.fixed_dictionaries({key: st.sampled_from(values) for key, values in SETTINGS.items()}))
def test_random_rows_of_random_schemas_go_out_and_in_unchanged(
    spark: Any,
    configured: Any,
    tmp_path_factory: pytest.TempPathFactory,
    table: tuple[Any, list[Any]],
    chosen: dict[str, str],
) -> None:
    schema, rows = table
    configured(chosen)
    df = spark.createDataFrame(rows, schema)
    expected = rows_of(df)
    found = list(Flow.from_dataframe(df, form="tuples", batch_rows=2))
    assert [seen(row) for row in found] == expected
    folder = tmp_path_factory.mktemp("rows") / "out"
    written = Flow.from_iterable(found).to_spark(spark, schema, batch_rows=100).parquet(folder)
    assert written.result(PATIENCE * 4) == len(rows)
    assert rows_of(spark.read.schema(schema).parquet(str(folder))) == expected
