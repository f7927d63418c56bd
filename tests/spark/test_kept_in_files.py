"""Values that files of each format keep: written, read, and the same, or refused before anything is written."""

from __future__ import annotations

import datetime
import random
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import Row
from sinks import PATIENCE

from reactive_runtime import Flow
from reactive_runtime.errors import SparkError

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("a_zone_with_summer_time")]

moment = datetime.datetime
TWICE: Final = moment(2026, 10, 25, 2, 30)
LEFT_OUT: Final = moment(1582, 10, 10)

STAMPS: Final = [
    *(moment(2026, 7, 1, 12, 0, 0, 123_456), TWICE, TWICE.replace(fold=1), moment(1890, 1, 1, 0, 0, 0, 1)),
    *(moment(2, 1, 1), moment(9999, 12, 30, 23, 59, 59, 999_999)),
]
LOCAL: Final = [moment(1, 1, 1), LEFT_OUT, moment(2026, 3, 29, 2, 30), moment(9999, 12, 31, 23, 59, 59, 999_999)]
ENDS: Final = ["", " ", " a ", "\t", "a\nb", "a\rb", "a\r\nb", "\n", '"', "\\", 'a"b', '\\"', "a,b", "#", "\ufeff", "ü"]
random_ = random.Random(4)
TEXTS: Final = [*ENDS, *("".join(random_.choices('"\\,ab \n\r\t#', k=random_.randrange(6))) for _ in range(300))]

COLUMNS: Final[dict[str, tuple[str, list[Any]]]] = {
    "text": ("string", TEXTS),
    "stamp": ("timestamp", STAMPS),
    "local": ("timestamp_ntz", LOCAL),
    "day": ("date", [date(1, 1, 1), date(9999, 12, 31)]),
    "clock": ("time", [datetime.time(1, 2, 3, 4)]),
    "span": ("interval day to second", [timedelta(microseconds=1), timedelta(microseconds=-(2**63))]),
    "real": ("double", [0.1, -0.0, float("inf"), 5e-324]),
    "flag": ("boolean", [True, False]),
}
NESTED: Final[dict[str, tuple[str, list[Any]]]] = {
    "bytes": ("binary", [b"", b"\0\xff"]),
    "texts": ("array<string>", [[], [None], ["", "a\n"]]),
    "marks": ("map<string, timestamp>", [{}, {"a": STAMPS[0]}, {"": None}]),
}
IN_XML: Final[dict[str, tuple[str, list[Any]]]] = {
    "bytes": ("binary", [b"", b"\0\xff"]),
    "texts": ("array<string>", [[""], [" ", "a\n"]]),
    "marks": ("map<string, timestamp>", [{"a": STAMPS[0], "b": STAMPS[1]}]),
    "pairs": (
        "array<struct<p: string, q: array<int>>>",
        [[Row(p="", q=[1]), Row(p=None, q=[1, 2])], [Row(p="a", q=None)]],
    ),
}
READ: Final[dict[str, dict[str, Any]]] = {
    "csv": {"multiLine": True, "nullValue": "\0"},
    "xml": {"rowTag": "row", "ignoreSurroundingSpaces": False},
}
"""As the page has it."""


@pytest.fixture
def times(spark: Any) -> Any:
    spark.conf.set("spark.sql.timeType.enabled", "true")
    yield spark
    for name in ("timeType.enabled", "legacy.timeParserPolicy", "session.timeZone"):
        spark.conf.unset(f"spark.sql.{name}")


@pytest.mark.parametrize("format", ["parquet", "orc", "json", "csv", "xml"])
def test_what_a_file_is_given_comes_out_again(format: str, times: Any, tmp_path: Path) -> None:
    columns = COLUMNS | {"csv": {}, "xml": IN_XML}.get(format, NESTED)
    if format == "xml":
        del columns["span"], columns["clock"]  # of which Spark has no text in XML
    most = max(len(values) for _, values in columns.values())
    rows = [(n, *(values[n] if n < len(values) else None for _, values in columns.values())) for n in range(most + 1)]
    schema = "n int, " + ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items())
    sink = Flow.from_iterable(rows).to_spark(times, schema)
    if format == "xml":
        sink = sink.option("rowTag", "row")
    assert sink.format(format).save(tmp_path / "v").result(PATIENCE) == len(rows)
    read = times.read.schema(schema).format(format).options(**READ.get(format, {}))
    found = list(Flow.from_dataframe(read.load(str(tmp_path / "v")).orderBy("n"), form="tuples"))
    assert list(map(repr, found)) == list(map(repr, rows))


REFUSED: Final[list[tuple[str, str, Any, str]]] = [
    ("orc", "date", LEFT_OUT.date(), "the calendar of ORC has no such day"),
    ("orc", "timestamp", LEFT_OUT, "the calendar of ORC has no such day"),
    ("csv", "string", "a\0b", "CSV loses a NUL"),
    ("csv", "binary", b"a", "CSV has no bytes"),
    ("json", "map<date, int>", {date(2026, 7, 1): 1}, "the keys of a map are texts in JSON, and no date"),
    ("json", "array<struct<p: map<binary, int>>>", [({b"a": 1},)], "are texts in JSON, and no binary"),
    ("xml", "array<int>", [], "XML loses an array or a map with nothing in it"),
    ("xml", "struct<p: array<string>>", (["a", None],), "XML loses an array or a map .* and a null in one"),
    ("xml", "map<string, string>", {"a": None}, "XML loses an array or a map .* and a null in one"),
    ("xml", "array<map<string, int>>", [{}], "XML loses an array or a map with nothing in it"),
    ("xml", "map<string, string>", {"_a": "b"}, "XML takes a key that begins with _ for an attribute"),
    ("xml", "string", "a\ufffe", "XML has no such character"),
    ("xml", "array<string>", ["a", "\x0b"], "XML has no such character"),
    ("xml", "struct<p: array<array<int>>>", ([[1]],), "XML loses an array in an array or a map"),
    ("xml", "map<string, array<int>>", {"a": [1]}, "XML loses an array in an array or a map"),
    ("text", "string", "a\nb", "a text file ends a row there"),
    ("text", "string", "\ufeffa", "a reader drops U\\+FEFF where a file begins"),
    ("text", "string", None, "a text file has no null"),
]


def test_what_a_file_would_change_is_refused(spark: Any, tmp_path: Path) -> None:
    for format, kind, value, words in REFUSED:
        fields = f"v {kind}" if format == "text" else f"n int, v {kind}"
        row = (value,) if format == "text" else (1, value)
        with pytest.raises(SparkError, match=rf"^to_spark: (element 0, )?field 'v': .*{words}"):
            Flow.just(row).to_spark(spark, fields).format(format).save(tmp_path / "never").result(PATIENCE)
    with pytest.raises(SparkError, match="element 1, field 'n': None: a row with nothing else is an empty line"):
        Flow.from_iterable([(1,), (None,)]).to_spark(spark, "n int").csv(tmp_path / "never").result(PATIENCE)
    with pytest.raises(SparkError, match=r"element 0, field 'v': '\\ufeffa': a reader drops U\+FEFF"):
        Flow.just(("\ufeffa", 1)).to_spark(spark, "v string, n int").csv(tmp_path / "never").result(PATIENCE)
    assert not (tmp_path / "never").exists()


def test_the_old_policy_for_times_changes_none_in_a_file(times: Any, tmp_path: Path) -> None:
    times.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    rows = [(moment(2026, 7, 1, 12, 0, 0, 123_000), moment(1890, 1, 1, 0, 0, 0, 1))]
    for format in ("json", "csv"):
        sink = Flow.from_iterable(rows).to_spark(times, "v timestamp, w timestamp_ntz")
        sink.format(format).save(tmp_path / format).result(PATIENCE)
        df = times.read.schema("v timestamp, w timestamp_ntz").format(format).load(str(tmp_path / format))
        assert list(Flow.from_dataframe(df, form="tuples")) == rows
        for value, words in ((STAMPS[0], "keeps milliseconds here"), (moment(1890, 1, 1), "drops the seconds of old")):
            with pytest.raises(SparkError, match=f"element 0, field 'v': .*{words}"):
                Flow.just((value,)).to_spark(times, "v timestamp").format(format).save(tmp_path).result(PATIENCE)


def test_an_option_of_the_user_goes_before_ours(spark: Any, tmp_path: Path) -> None:
    sink = Flow.just((STAMPS[0],)).to_spark(spark, "v timestamp").option("TIMESTAMPformat", "yyyy")
    sink.json(tmp_path / "v").result(PATIENCE)
    assert [row.value for row in spark.read.text(str(tmp_path / "v")).collect()] == ['{"v":"2026"}']


IN_FOLDERS: Final[list[tuple[str, list[Any], list[Any]]]] = [
    ("string", ["a", "01", "a/b=c %", " ", "ü", "a\nb"], ["", "__HIVE_DEFAULT_PARTITION__", "a\0"]),
    ("binary", [b"a", "ü".encode()], [b"", b"\xff", b"\0"]),
    ("timestamp", [stamp for stamp in STAMPS if not stamp.fold] + [LEFT_OUT], [TWICE.replace(fold=1)]),
    ("timestamp_ntz", LOCAL, []),
    ("double", [0.1, -0.0, float("nan")], []),
    ("interval day to second", [timedelta(microseconds=-1)], []),
]


def test_a_column_to_partition_by_is_kept_or_refused(times: Any, tmp_path: Path) -> None:
    times.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    for place, (kind, kept, refused) in enumerate(IN_FOLDERS):
        rows = [*enumerate(kept), (len(kept), None)]
        sink = Flow.from_iterable(rows).to_spark(times, f"n int, P {kind}").partitionBy("p")
        sink.parquet(tmp_path / str(place)).result(PATIENCE)
        df = times.read.schema(f"n int, P {kind}").parquet(str(tmp_path / str(place))).orderBy("n")
        assert list(map(repr, Flow.from_dataframe(df, form="tuples"))) == list(map(repr, rows))
        for value in refused:
            bad = Flow.from_iterable([(1, None), (2, value)]).to_spark(times, f"n int, P {kind}")
            with pytest.raises(SparkError, match=r"element 1, field 'P': .* partition by another"):
                bad.parquet(tmp_path / "never", partitionBy="P").result(PATIENCE)
    assert not (tmp_path / "never").exists()


def test_a_zone_that_is_not_known_partitions_by_no_time(times: Any, tmp_path: Path) -> None:
    for zone, words in (("UTC", None), ("+02:00", None), ("GMT+2", None), ("PST", "of the zone 'PST' is not known")):
        times.conf.set("spark.sql.session.timeZone", zone)
        sink = Flow.just((1, TWICE.replace(fold=1))).to_spark(times, "n int, p timestamp").partitionBy("p")
        if words is None:
            sink.parquet(tmp_path / zone).result(PATIENCE)
            assert Flow.from_dataframe(times.read.parquet(str(tmp_path / zone))).map(lambda row: row["p"].fold).block()
        else:
            with pytest.raises(SparkError, match=words):
                sink.parquet(tmp_path / "never").result(PATIENCE)


def test_a_table_that_is_there_says_what_it_keeps(spark: Any) -> None:
    made = {
        "plain": "USING csv",
        "whole": "USING csv OPTIONS (timestampFormat 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX', multiLine true, nullValue '?')",
        "parts": "USING parquet PARTITIONED BY (w)",
        "made": "",
    }
    for name, how in made.items():
        spark.sql(f"DROP TABLE IF EXISTS kept_{name}")
        if how:
            spark.sql(f"CREATE TABLE kept_{name} (n int, v timestamp, w string) {how}")
    row = (1, STAMPS[0], "a\nb")
    refused = [
        *(("plain", row, "keeps milliseconds"), ("plain", (1, None, "a\nb"), "ends a row")),
        *(("plain", (1, None, ""), "reads it as null"), ("parts", (1, None, ""), "partition by another")),
    ]
    for name, one, words in refused:
        sink = Flow.just(one).to_spark(spark, "n int, v timestamp, w string")
        for write in (sink.insertInto, sink.saveAsTable, lambda table, to=sink.writeTo: to(table).append()):
            with pytest.raises(SparkError, match=rf"element 0, field '[vw]': .*{words}"):
                write(f"kept_{name}").result(PATIENCE)
    renamed = Flow.just((1, None, "")).to_spark(spark, "w int, n timestamp, v string")  # it goes by position
    with pytest.raises(SparkError, match=r"element 0, field 'v': .*partition by another"):
        renamed.insertInto("kept_parts").result(PATIENCE)
    rows = [row, (2, None, "")]
    sink = Flow.from_iterable(rows).to_spark(spark, "n int, v timestamp, w string").format("csv")
    sink.saveAsTable("kept_whole").result(PATIENCE)
    sink.options(multiLine=True, nullValue="?").saveAsTable("kept_made").result(PATIENCE)
    for name in ("whole", "made"):
        assert list(Flow.from_dataframe(spark.table(f"kept_{name}").orderBy("n"), form="tuples")) == rows
    anew = Flow.from_iterable(rows).to_spark(spark, "n int, v timestamp, w string").mode("overwrite").format("json")
    anew.saveAsTable("kept_plain").result(PATIENCE)
    assert list(Flow.from_dataframe(spark.table("kept_plain").orderBy("n"), form="tuples")) == rows
    left_alone = Flow.just((1, None, "")).to_spark(spark, "n int, v timestamp, w string").mode("ignore")
    assert left_alone.saveAsTable("kept_parts").result(PATIENCE) == 0
    for name in made:
        spark.sql(f"DROP TABLE kept_{name}")


def test_a_table_of_xml_keeps_the_spaces_at_ends_or_refuses(spark: Any) -> None:
    for name in ("theirs", "ours"):
        spark.sql(f"DROP TABLE IF EXISTS kept_{name}")
    spark.sql("CREATE TABLE kept_theirs (v string) USING xml OPTIONS (rowTag 'row')")
    sink = Flow.just((" a ",)).to_spark(spark, "v string")
    with pytest.raises(SparkError, match="element 0, field 'v': ' a ': a table of XML reads it without the spaces"):
        sink.insertInto("kept_theirs").result(PATIENCE)
    sink.format("xml").option("rowTag", "row").saveAsTable("kept_ours").result(PATIENCE)
    assert list(Flow.from_dataframe(spark.table("kept_ours"), form="tuples")) == [(" a ",)]
    for name in ("theirs", "ours"):
        spark.sql(f"DROP TABLE kept_{name}")
