"""Each row of the table of values in docs/spark.md: what is taken and kept whole, what is refused, and by whom."""

from __future__ import annotations

import array
import datetime
import enum
import re
import time
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy
import pandas
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types
from sinks import PATIENCE

from reactive_runtime import Flow
from reactive_runtime.errors import SparkError
from reactive_runtime.spark._write.schemas import Elements, spark_schema

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("a_zone_with_summer_time")]

REFUSED: Final = "refused"
"""Stands for an error of `createDataFrame`."""

STAMPS: Final = types.StructType().add("v", "timestamp_ntz")
DOUBLES: Final = types.StructType().add("v", "double")

moment = datetime.datetime
Stamp = pandas.Timestamp
SUMMER: Final = datetime.timezone(timedelta(hours=2))
UTC: Final = datetime.UTC


class Level(enum.IntEnum):
    HIGH = 3


class Flags(enum.IntFlag):
    READ = 1
    WRITE = 2


class Name(enum.StrEnum):
    ONE = "one"


class Weight(float, enum.Enum):
    HALF = 0.5


class Plain(enum.Enum):
    ONE = 1


class Whole(int):
    pass


class Real(float):
    pass


class Text(str):
    __slots__ = ()


class Bytes(bytes):
    pass


class Amount(Decimal):
    pass


class Moment(moment):
    pass


class Day(date):
    pass


class Span(timedelta):
    pass


class Row(NamedTuple):
    """Of the table: values that are taken, each with what comes out; and those that are refused.

    A refused one has the words of the error, and what `createDataFrame` makes of it.
    """

    taken: list[tuple[Any, Any]]
    refused: list[tuple[Any, str, Any]]


INTEGERS = [
    (True, "is no int", REFUSED),
    (1.0, "is no int", REFUSED),
    (numpy.float64(2), "is no int", REFUSED),
    (Decimal(1), "is no int", REFUSED),
    ("1", "is no int", REFUSED),
    (Plain.ONE, "is no int", REFUSED),
    (numpy.datetime64(5, "ns"), "is no int", REFUSED),
    (numpy.timedelta64(5), "is no int", REFUSED),
]

ROWS: dict[str, Row] = {
    "boolean": Row(
        [(True, True), (numpy.False_, False)], [(1, "is no bool", REFUSED), (Level.HIGH, "no bool", REFUSED)]
    ),
    "byte": Row([(-128, -128), (127, 127)], [(128, "is no int8", REFUSED), (-129, "is no int8", REFUSED), *INTEGERS]),
    "short": Row([(2**15 - 1, 2**15 - 1)], [(2**15, "is no int16", REFUSED), *INTEGERS]),
    "int": Row([(-(2**31), -(2**31)), (Level.HIGH, 3)], [(2**31, "is no int32", REFUSED), *INTEGERS]),
    "long": Row(
        [
            *((n, n) for n in (2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63))),
            *((Level.HIGH, 3), (Flags.READ | Flags.WRITE, 3), (Whole(7), 7), (numpy.uint64(7), 7)),
        ],
        [(2**63, "is no int64", REFUSED), (numpy.uint64(2**63), "is no int64", REFUSED), *INTEGERS],
    ),
    "float": Row(
        [
            (1.5, 1.5),
            (0.1, 0.10000000149011612),
            (numpy.float32(0.1), 0.10000000149011612),
            (1e-45, 1.401298464324817e-45),
        ],
        [
            (1e300, "too large for 32 bits: take the type double", float("inf")),
            (3.4028235677973366e38, "too large", float("inf")),
            (-1e300, "too large", float("-inf")),
            (1e-50, "too small for 32 bits: take the type double", 0.0),
            (1, "is no float", REFUSED),
            (True, "is no float", REFUSED),
        ],
    ),
    "double": Row(
        [(0.1, 0.1), (-0.0, -0.0), (5e-324, 5e-324), (Real(1.5), 1.5), (Weight.HALF, 0.5), (numpy.float64(0.1), 0.1)],
        [
            *((n, "is no double", REFUSED) for n in (1, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**53) - 1)),
            *((value, "is no double", REFUSED) for value in (True, Level.HIGH, numpy.int64(3), Decimal("1.5"), "1.5")),
        ],
    ),
    "decimal(5, 2)": Row(
        [(Decimal("1.5"), Decimal("1.50")), (Decimal("1.500"), Decimal("1.50")), (Amount("999.99"), Decimal("999.99"))],
        [
            (Decimal("1.001"), "would cause data loss", Decimal("1.00")),
            (Decimal("NaN"), "neither NaN nor infinity", None),
            (Decimal("1000"), "precision", REFUSED),
            (1, "is no decimal", REFUSED),
            (1.5, "is no decimal", REFUSED),
        ],
    ),
    "string": Row(
        [("ü", "ü"), ("", ""), ("a\0b", "a\0b"), (Name.ONE, "one"), (Text("x"), "x"), (numpy.str_("x\0"), "x\0")],
        [
            ("a\ud800", "surrogates not allowed", "a\ufffd"),
            (7, "is no string", "7"),
            (b"a", "is no string", "b'a'"),
            (Plain.ONE, "is no string", "Plain.ONE"),
        ],
    ),
    "binary": Row(
        [
            *((b"a\0", b"a\0"), (bytearray(b"a"), b"a"), (memoryview(b"abcd")[::2], b"ac")),
            *((Bytes(b"a"), b"a"), (numpy.bytes_(b"a\0"), b"a\0")),
        ],
        [
            ("a", "is no binary", REFUSED),
            ([1], "is no binary", REFUSED),
            (memoryview(array.array("i", [1])), r"call \.tobytes\(\)", REFUSED),
        ],
    ),
    "date": Row(
        [
            *(
                (date(1, 1, 1), date(1, 1, 1)),
                (date(9999, 12, 31), date(9999, 12, 31)),
                (Day(2026, 7, 1), date(2026, 7, 1)),
            ),
            *((moment(2026, 7, 1), date(2026, 7, 1)), (Stamp("2026-07-01"), date(2026, 7, 1))),
            (numpy.datetime64("2026-07-01"), date(2026, 7, 1)),
        ],
        [
            (moment(2026, 7, 1, 12), r"call \.date\(\)", date(2026, 7, 1)),
            (moment(2026, 7, 1, tzinfo=SUMMER), r"call \.date\(\)", date(2026, 7, 1)),
            (Stamp("2026-07-01 12:00"), r"call \.date\(\)", REFUSED),
            (pandas.NaT, "give None", REFUSED),
            (numpy.datetime64("NaT"), "give None", REFUSED),
            ("2026-07-01", "is no date", REFUSED),
            (5, "is no date", REFUSED),
        ],
    ),
    "timestamp": Row(
        [
            (moment(2026, 7, 1, 12), moment(2026, 7, 1, 12)),
            (moment(2026, 7, 1, 12, tzinfo=UTC), moment(2026, 7, 1, 14)),
            (moment(2026, 10, 25, 2, 30), moment(2026, 10, 25, 2, 30)),  # `createDataFrame` takes the later one
            (moment(2026, 10, 25, 2, 30, fold=1), moment(2026, 10, 25, 2, 30, fold=1)),
            (moment(9999, 12, 31, 23, 59, 59, 999_999), moment(9999, 12, 31, 23, 59, 59, 999_999)),
            (Stamp("2026-07-01 12:00:00.000001"), moment(2026, 7, 1, 12, 0, 0, 1)),
            (Stamp("2026-07-01 12:00", tz="Asia/Kathmandu"), moment(2026, 7, 1, 8, 15)),
            (Moment(2026, 7, 1), moment(2026, 7, 1)),
            (numpy.datetime64("2026-07-01"), moment(2026, 7, 1)),
            (numpy.datetime64("2026-07-01T12:00:00.000001000"), moment(2026, 7, 1, 12, 0, 0, 1)),
        ],
        [
            (Stamp("2026-07-01 12:00:00.000000001"), r"call \.floor\('us'\)", REFUSED),
            (numpy.datetime64("2026-07-01T12:00:00.000000001"), "Spark keeps microseconds", REFUSED),
            (moment(2026, 3, 29, 2, 30), "give it with its zone", moment(2026, 3, 29, 3, 30)),
            (moment(1, 1, 1), "out of range", REFUSED),
            (moment(1, 1, 1, tzinfo=SUMMER), "out of range", REFUSED),
            (pandas.NaT, "give None", REFUSED),
            (date(2026, 7, 1), "is no timestamp", REFUSED),
            ("2026-07-01", "is no timestamp", REFUSED),
        ],
    ),
    "timestamp_ntz": Row(
        [
            *((moment(1, 1, 1), moment(1, 1, 1)), (moment(2026, 3, 29, 2, 30), moment(2026, 3, 29, 2, 30))),
            *((Stamp("2026-07-01 12:00"), moment(2026, 7, 1, 12)), (Moment(2026, 7, 1), moment(2026, 7, 1))),
        ],
        [
            (moment(2026, 7, 1, 12, tzinfo=SUMMER), r"call \.replace\(tzinfo=None\)", moment(2026, 7, 1, 12)),
            (Stamp("2026-07-01", tz="UTC"), r"call \.replace\(tzinfo=None\)", REFUSED),
            (Stamp("2026-07-01 12:00:00.000000001"), r"call \.floor\('us'\)", REFUSED),
            (date(2026, 7, 1), "is no timestamp", REFUSED),
        ],
    ),
    "time": Row(
        [(datetime.time(23, 59, 59, 999_999), datetime.time(23, 59, 59, 999_999))],
        [
            (datetime.time(1, tzinfo=SUMMER), "the column keeps no zone", datetime.time(1)),
            (moment(2026, 7, 1), "is no time", REFUSED),
        ],
    ),
    "time(3)": Row(
        [(datetime.time(1, 2, 3, 4000), datetime.time(1, 2, 3, 4000))],
        [(datetime.time(1, 2, 3, 4567), "keeps 3 places of a second", datetime.time(1, 2, 3, 4567))],
    ),
    "interval day to second": Row(
        [
            *((timedelta(-1, 2, 3), timedelta(-1, 2, 3)), (timedelta(106_751_991), timedelta(106_751_991))),
            (timedelta(microseconds=-(2**63)), timedelta(microseconds=-(2**63))),
            *((pandas.Timedelta("1s"), timedelta(seconds=1)), (Span(1), timedelta(1))),
            (numpy.timedelta64(1_000, "ns"), timedelta(microseconds=1)),
        ],
        [
            (timedelta(106_751_992), "too large", None),
            (pandas.Timedelta("1ns"), r"call \.floor\('us'\)", REFUSED),
            (numpy.timedelta64(1, "ns"), "Spark keeps microseconds", REFUSED),
            (5, "is no duration", REFUSED),
        ],
    ),
    "interval day": Row(
        [(timedelta(2), timedelta(2))],
        [(timedelta(2, 3600), "take the type interval day to second", timedelta(2, 3600))],
    ),
    "array": Row(
        [
            *(([1, None], [1, None]), ((1, 2), [1, 2]), ({3}, [3]), (frozenset({3}), [3])),
            *((array.array("q", [1]), [1]), (numpy.array([1, 2]), [1, 2]), ([], [])),
        ],
        [
            ([1.5], r"1\.5 \(float\) is no int64", REFUSED),
            ("ab", "is no list", REFUSED),
            (range(2), "is no list", REFUSED),
            (numpy.array([[1]]), r"\[1\] \(list\) is no int64", REFUSED),
        ],
    ),
    "map": Row(
        [({}, {}), ({1.5: None, 2.5: 1}, {1.5: None, 2.5: 1})],
        [
            ({1.0: 2.5}, r"2\.5 \(float\) is no int64", REFUSED),
            ({float("nan"): 1, -float("nan"): 2}, "a key: nan is one that is there already", {"nan": 1}),
            ([(1.0, 1)], "is no map", REFUSED),
        ],
    ),
    "struct": Row(
        [((1, "a"), (1, "a")), ({"p": 1, "q": "b"}, (1, "b")), ({"p": 1}, (1, None))],
        [
            ({"p": 1, "r": 2}, "is not in the schema", (1, None)),
            ((1,), "has 1 values, and the schema 2 fields", REFUSED),
            ((1.5, "a"), r"1\.5 \(float\) is no int64", REFUSED),
        ],
    ),
}

NESTED = {"array": "array<long>", "map": "map<double, long>", "struct": "struct<p: long, q: string>"}


def ddl(name: str) -> str:
    return NESTED.get(name, name)


def table() -> list[list[str]]:
    """The cells of the table in the page."""
    section = Path("docs/spark.md").read_text().partition("### Each type")[2].partition("\n#")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in rows]


def test_the_page_has_a_row_for_each_type_that_is_shown() -> None:
    rows = table()
    assert [name for row in rows for name in re.findall(r"`([^`]+)`", row[0])] == list(ROWS)
    assert {len(row) for row in rows} == {4}


def same(value: Any) -> str:
    """As text: 1.0 is not 1, and -0.0 is not 0.0."""
    if isinstance(value, tuple):
        return repr(tuple(value))
    return repr(sorted((str(key), str(one)) for key, one in value.items())) if isinstance(value, dict) else repr(value)


@pytest.fixture
def times(spark: Any) -> Any:
    spark.conf.set("spark.sql.timeType.enabled", "true")
    yield spark
    spark.conf.unset("spark.sql.timeType.enabled")


@pytest.mark.parametrize("name", ROWS)
def test_a_value_that_is_taken_comes_out_as_it_went_in(name: str, times: Any, tmp_path: Path) -> None:
    taken = ROWS[name].taken
    kind = ddl(name)
    schema = f"n int, v {kind}, a array<{kind}>, s struct<p: {kind}>, m map<string, {kind}>"
    rows = [(n, value, [None, value], (value,), {"k": value}) for n, (value, _) in enumerate(taken)]
    written = Flow.from_iterable(rows).to_spark(times, schema).option("compression", "none").save(tmp_path / "v")
    assert written.result(PATIENCE) == len(taken)
    df = times.read.schema(schema).parquet(str(tmp_path / "v")).orderBy("n")
    for row, (_, expected) in zip(Flow.from_dataframe(df), taken, strict=True):
        found = [row["v"], row["a"][1], row["s"].p, row["m"]["k"]]
        assert list(map(same, found)) == [same(expected)] * 4
        assert row["a"][0] is None


@pytest.mark.parametrize("name", ROWS)
def test_a_value_that_is_refused_is_named_with_its_field(name: str, times: Any, tmp_path: Path) -> None:
    kind = ddl(name)
    fields = {"v": (kind, "v"), "a": (f"array<{kind}>", r"a\[1\]"), "s": (f"struct<p: {kind}>", r"s\.p")}
    for value, words, _ in ROWS[name].refused:
        sink = Flow.from_iterable([(None,), (value,)]).to_spark(times, f"v {kind}")
        with pytest.raises(SparkError, match=rf"^to_spark: element 1, field ['\"]v\b.*{words}"):
            sink.parquet(tmp_path / "never").result(PATIENCE)
        for nested, (outer, path) in fields.items():
            given: dict[str, Any] = {"v": value, "a": [None, value], "s": (value,)}
            with pytest.raises(SparkError, match=rf"^to_spark: element 1, field ['\"]{path}.*{words}"):
                Elements("to_spark", f"{nested} {outer}").table([(None,), (given[nested],)])
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("name", ROWS)
def test_create_data_frame_does_to_what_is_refused_what_is_noted(name: str, times: Any) -> None:
    for value, _, theirs in ROWS[name].refused:
        found: Any = REFUSED
        try:
            found = times.createDataFrame([(value,)], f"v {ddl(name)}").collect()[0][0]
        except Exception:
            assert theirs == REFUSED, value
        assert same(found) == same(theirs), value


TWICE = moment(2026, 10, 25, 2, 30)

TAKEN_OTHERWISE: dict[tuple[str, str], list[Any]] = {
    ("string", repr(numpy.str_("x\0"))): ["x"],
    ("timestamp", repr(TWICE)): [TWICE, TWICE.replace(fold=1)],  # as the C library's last call left it
    ("timestamp", repr(TWICE.replace(fold=1))): [TWICE, TWICE.replace(fold=1)],
}
"""Values that could be kept, and that `createDataFrame` changes, or changes now and then."""


@pytest.mark.parametrize("name", ROWS)
def test_create_data_frame_takes_the_same_or_refuses_it(name: str, times: Any) -> None:
    for value, ours in ROWS[name].taken:
        try:
            found = times.createDataFrame([(value,)], f"v {ddl(name)}").collect()[0][0]
        except Exception:
            assert type(value) not in (bool, int, float, Decimal, str, bytes, date, timedelta, dict), value
        else:
            theirs = TAKEN_OTHERWISE.get((name, repr(value)), [ours])
            assert same(found) in map(same, theirs), value


def test_a_day_that_the_local_clock_left_out_is_refused(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samoa had no 30 December in 2011; each of these hours is there in other years."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Pacific/Apia")
        time.tzset()
        rows = Elements("to_spark", "v timestamp")
        rows.table([(moment(2011, 12, 29, 12),), (moment(2011, 12, 31),)])
        with pytest.raises(SparkError, match=r"element 2, field 'v': .* give it with its zone"):
            rows.table([(moment(2011, 12, 30, 12),)])
    time.tzset()


def test_a_place_of_another_system_than_its_column_is_refused(spark: Any) -> None:
    point = bytes.fromhex("0101000000000000000000f03f0000000000000040")
    for kind, make in (("geometry", types.Geometry), ("geography", types.Geography)):
        for srid, places in ((4326, [4326]), ("any", [4326] if kind == "geography" else [0, 4326])):
            rows = Elements("to_spark", f"v {kind}({srid})")
            for place in places:
                (row,) = rows.table([(make.fromWKB(point, place),)]).to_pylist()
                assert row["v"]["srid"] == place
        rows = Elements("to_spark", f"v array<{kind}(4326)>")
        with pytest.raises(
            SparkError, match=r"element 0, field 'v\[1\]': .* its SRID is 0, and that of the column 4326"
        ):
            rows.table([([None, make.fromWKB(point, 0)],)])


@dataclass
class Order:
    level: Level
    name: Name | None
    at: pandas.Timestamp
    by: dict[Name, list[Flags]]


def test_derived_classes_are_fields_of_a_schema(spark: Any) -> None:
    rows = Elements("to_spark", Order)
    kinds = [field.dataType.simpleString() for field in spark_schema("to_spark", Order)]
    assert kinds == ["bigint", "string", "timestamp", "map<string,array<bigint>>"]
    at = Stamp("2026-07-01 12:00", tz="UTC")
    (row,) = rows.table([Order(Level.HIGH, Name.ONE, at, {Name.ONE: [Flags.READ]})]).to_pylist()
    assert row == {"level": 3, "name": "one", "at": at.to_pydatetime(), "by": [("one", [1])]}


@given(st.integers(-(2**62), 2**62) | st.integers(-(2**52), 2**52).map(lambda n: 1000 * n))
def test_a_stamp_of_whole_microseconds_is_kept(nanoseconds: int) -> None:
    rows = Elements("to_spark", STAMPS)
    microseconds, rest = divmod(nanoseconds, 1000)
    for value in (Stamp(nanoseconds), numpy.datetime64(nanoseconds, "ns")):
        if rest:
            with pytest.raises(SparkError, match=r"field 'v': .* Spark keeps microseconds"):
                rows.table([(value,)])
        else:
            assert rows.table([(value,)])["v"].cast(pa.int64()).to_pylist() == [microseconds]


@given(st.integers(-(2**63), 2**63 - 1) | st.integers(2**53 - 2, 2**53 + 2))
def test_a_batch_of_ints_is_no_batch_of_other_floats(number: int) -> None:
    rows = Elements("to_spark", DOUBLES)
    batch = pa.RecordBatch.from_pydict({"v": [number]})
    if -(2**53) <= number <= 2**53:
        assert rows.table([batch])["v"].to_pylist() == [number]
    else:
        with pytest.raises(SparkError, match=r"field 'v': an Arrow batch: Integer value"):
            rows.table([batch])


def test_a_key_that_would_be_another_is_refused(spark: Any) -> None:
    two = {moment(2026, 7, 1, 14): 1, moment(2026, 7, 1, 12, tzinfo=UTC): 2}
    pairs = [
        ("timestamp", two),
        ("date", {date(2026, 7, 1): 1, moment(2026, 7, 1): 2}),
        ("float", {0.1: 1, 0.1 + 1e-12: 2}),
    ]
    for kind, value in pairs:
        with pytest.raises(SparkError, match=r"element 1, field 'm': a key: .* is one that is there already"):
            Elements("to_spark", f"m map<{kind}, int>").table([({},), (value,)])


# -- batches of Arrow -------------------------------------------------------------------------------------------

MOMENT = moment(2026, 7, 1, 12)

BATCHES: list[tuple[Any, str, Any]] = [
    (pa.array([2**53, None]), "double", [2.0**53, None]),
    (pa.array([0.1]), "float", [0.10000000149011612]),
    (pa.array([1000], pa.timestamp("ns")), "timestamp_ntz", [moment(1970, 1, 1, 0, 0, 0, 1)]),
    (pa.array([moment(2026, 7, 1)]), "date", [date(2026, 7, 1)]),
    (pa.array(["7"]), "long", [7]),
    (pa.array([0.1]), "decimal(5, 2)", [Decimal("0.10")]),
    (pa.array(["a", "a"]).dictionary_encode(), "string", ["a", "a"]),
    (pa.array([[1.5], None, []]), "array<float>", [[1.5], None, []]),
    (pa.array([{"p": 1}, None, {"p": 2}]).slice(1), "struct<p: int>", [None, {"p": 2}]),
    (pa.array([[("a", 1.5)], None], pa.map_(pa.string(), pa.float64())), "map<string, float>", [[("a", 1.5)], None]),
]


@pytest.mark.parametrize(("column", "kind", "expected"), BATCHES)
def test_a_batch_is_cast_where_each_value_stays(column: Any, kind: str, expected: Any, spark: Any) -> None:
    made = Elements("to_spark", f"v {kind}").table([pa.RecordBatch.from_pydict({"v": column})])
    assert made["v"].to_pylist() == expected


CHANGED: list[tuple[Any, str, str]] = [
    (pa.array([2**53 + 1]), "double", "'v': an Arrow batch: Integer value"),
    (pa.array([1e300]), "float", "'v': an Arrow batch: .* too large"),
    (pa.array([1e-50]), "float", "'v': an Arrow batch: .* too small"),
    (pa.array([1.5]), "long", "'v': an Arrow batch: Float value"),
    (pa.array(["07"]), "long", r"'v': an Arrow batch: '07' \(string\) would be 7"),
    (pa.array([2]), "boolean", "'v': an Arrow batch: 2 .* would be True"),
    (pa.array([0.125]), "decimal(5, 2)", "'v': an Arrow batch: 0.125 .* would be Decimal"),
    (pa.array([MOMENT]), "date", "'v': an Arrow batch: .* would be datetime.date"),
    (pa.array([1], pa.timestamp("ns")), "timestamp_ntz", "'v': an Arrow batch: .* would lose data"),
    (pa.array([MOMENT], pa.timestamp("us", "Asia/Tokyo")), "timestamp_ntz", "'v': .* say of which zone"),
    (pa.array([MOMENT]), "timestamp", "'v': an Arrow batch: .* say of which zone"),
    (pa.array([None, 1]), "long not null", "'v': an Arrow batch: None, in a field that is required"),
    (pa.array([{"p": 1, "q": 2}]), "struct<p: long>", r"'v\.q': an Arrow batch: is not in the schema"),
    (pa.array([{"q": 2}]), "struct<p: long>", r"'v\.p': an Arrow batch: the batch has no such field"),
    (pa.array([[1e300]]), "array<float>", r"'v\[\]': an Arrow batch: .* too large"),
    (pa.array([[("a", 1e300)]], pa.map_(pa.string(), pa.float64())), "map<string, float>", r"'v\[\]': .* too large"),
    (pa.array([{"p": [1e300]}]), "struct<p: array<float>>", r"'v\.p\[\]': an Arrow batch: .* too large"),
]


@pytest.mark.parametrize(("column", "kind", "words"), CHANGED)
def test_a_batch_whose_values_would_change_is_refused(column: Any, kind: str, words: str, spark: Any) -> None:
    rows = Elements("to_spark", f"v {kind}")
    good = pa.RecordBatch.from_pydict({"v": pa.array([], column.type)})
    rows.table([good])
    with pytest.raises(SparkError, match=rf"^to_spark: element 1, field {words}"):
        rows.table([pa.RecordBatch.from_pydict({"v": column})])


def of_fields(**columns: Any) -> Any:
    """An array of structs whose fields are required, whatever is in them."""
    fields = [pa.field(name, column.type, nullable=False) for name, column in columns.items()]
    return pa.StructArray.from_arrays(list(columns.values()), fields=fields)


HOURS: Final = pa.array([timedelta(hours=24), timedelta(hours=25)])
TWICE_A: Any = pa.array([[("a", 1), ("b", 1)], None, [("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64()))
ARROW: Any = pa  # its types know less than it takes
REQUIRED: Final = pa.list_(pa.field("element", pa.int64(), nullable=False))
MAP_REQUIRED: Final = ARROW.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))
KEYS: Final = pa.struct([pa.field("p", pa.int64())])

CLOCKS: Any = pa.array([datetime.time(1), datetime.time(1, 2, 3, 4567)], pa.time64("ns"))

EQUAL: list[tuple[Any, Any, str]] = [
    (HOURS, "interval day", r"'v': an Arrow batch: datetime.timedelta\(days=1, .* whole ones only"),
    (pa.array([timedelta(minutes=1)]), "interval day to hour", "'v': .* whole ones only"),
    (pa.array([timedelta(seconds=-1)]), "interval minute", "'v': .* whole ones only"),
    (pa.array([[timedelta(hours=1)]]), "array<interval day>", r"'v\[\]': .* whole ones only"),
    (pa.array([{"p": timedelta(hours=1)}]), "struct<p: interval day>", r"'v\.p': .* whole ones only"),
    (pa.array([timedelta(hours=1)]).cast(pa.duration("s")), "interval day", "'v': .* whole ones only"),
    (TWICE_A, "map<string, long>", "'v': an Arrow batch: a key: 'a' is one that is there already"),
    (TWICE_A.slice(1), "map<string, long>", "'v': an Arrow batch: a key: 'a' is one"),
    (TWICE_A.cast(pa.map_(pa.string(), pa.int32())), "map<string, long>", "'v': .* a key: 'a' is one"),
    (pa.array([[(0.0, 1), (-0.0, 1)]], pa.map_(pa.float64(), pa.int64())), "map<double, long>", "'v': .* 0.0 is one"),
    (
        pa.array([[({"p": 1}, 1), ({"p": 1}, 1)]], pa.map_(KEYS, pa.int64())),
        "map<struct<p: long>, long>",
        "'v': .* a key: {'p': 1} is one",
    ),
    (pa.array([TWICE_A.to_pylist()], pa.list_(TWICE_A.type)), "array<map<string, long>>", r"'v\[\]': .* a key: 'a' is"),
    (of_fields(p=pa.array([1, None])), "struct<p: long not null>", r"'v\.p': an Arrow batch: None, in a field that"),
    (pa.array([[1, None]], REQUIRED), REQUIRED, r"'v\[\]': an Arrow batch: None, in a field that is required"),
    (pa.array([[("a", None)]], MAP_REQUIRED), MAP_REQUIRED, r"'v\[\]': an Arrow batch: None, in a field that is"),
    (pa.array([None, 1]), pa.field("v", pa.int64(), nullable=False), "'v': an Arrow batch: None, in a field that is"),
    (CLOCKS, "time(3)", "'v': an Arrow batch: .* keeps 3 places"),
    (CLOCKS.cast(pa.time64("us")), "time(0)", "'v': .* keeps 0 places"),
    (pa.array([[None, datetime.time(1, 2, 3, 4567)]]), "array<time(3)>", r"'v\[\]': .* keeps 3 places"),
    (pa.array([1001], pa.time64("ns")), "time", "'v': .* keeps 6 places"),
]
"""Values of types that are Spark's, so that Arrow has nothing to cast."""


@pytest.mark.parametrize(("column", "kind", "words"), EQUAL)
def test_a_batch_of_equal_types_is_refused_for_its_values(column: Any, kind: Any, words: str, spark: Any) -> None:
    field = pa.field("v", kind) if isinstance(kind, pa.DataType) else kind
    rows = Elements("to_spark", f"v {field}" if isinstance(field, str) else pa.schema([field]))
    shape = pa.schema([field if isinstance(field, pa.Field) else pa.field("v", column.type)])
    rows.table([pa.RecordBatch.from_arrays([column.slice(0, 0)], schema=shape)])
    with pytest.raises(SparkError, match=rf"^to_spark: element 1, field ['\"]{words[1:]}"):
        rows.table([pa.RecordBatch.from_arrays([column], schema=shape)])


HIDDEN: Final = ARROW.MapArray.from_arrays(
    pa.array([0, 2, 3]), ["a", "a", "b"], [1, 2, 3], mask=pa.array([True, False])
)

WHOLE: list[tuple[Any, str]] = [
    (pa.array([timedelta(days=-1), None, timedelta(days=2)]), "interval day"),
    (pa.array([[("a", 1), ("b", 2)], None, [("a", 1)]], pa.map_(pa.string(), pa.int64())), "map<string, long>"),
    (pa.array([[({"p": 1}, 1), ({"p": 2}, 1)]], pa.map_(KEYS, pa.int64())), "map<struct<p: long>, long>"),
    (HIDDEN, "map<string, long>"),  # what is behind a null is no value
    (of_fields(p=pa.array([1, 2])), "struct<p: long not null>"),
    (CLOCKS, "time"),
    (CLOCKS.slice(0, 1), "time(0)"),
]


@pytest.mark.parametrize(("column", "kind"), WHOLE)
def test_a_batch_of_equal_types_and_good_values_is_taken(column: Any, kind: str, spark: Any) -> None:
    batch = pa.RecordBatch.from_arrays([column], names=["v"])
    assert Elements("to_spark", f"v {kind}").table([batch])["v"].to_pylist() == column.to_pylist()


def test_a_batch_with_other_columns_is_refused(spark: Any) -> None:
    rows = Elements("to_spark", "a long, b long")
    assert rows.table([pa.RecordBatch.from_pydict({"b": [1], "a": [2]})]).to_pylist() == [{"a": 2, "b": 1}]
    with pytest.raises(SparkError, match=r"^to_spark: element 1, field 'c': a column of an Arrow batch, is not in the"):
        rows.table([pa.RecordBatch.from_pydict({"a": [1], "b": [1], "c": [1]})])
    with pytest.raises(SparkError, match=r"^to_spark: element 1, field 'b': an Arrow batch has 0 such columns"):
        rows.table([pa.RecordBatch.from_pydict({"a": [1]})])
    with pytest.raises(SparkError, match=r"^to_spark: element 2: .* is no batch, as the first was"):
        rows.table([pa.RecordBatch.from_pydict({"a": [1], "b": [1]}), (1, 2)])
