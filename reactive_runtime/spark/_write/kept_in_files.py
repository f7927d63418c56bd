"""Formats whose files can't keep each value: the options that make them keep it, and checks that refuse the rest.

    csv, json, xml   Spark's default keeps milliseconds: an option asks for microseconds
    csv, text        a reader drops U+FEFF where a file begins
    csv              has no bytes; docs/spark.md has the options that a reader needs to find each text
    json             the keys of a map are texts
    xml              an element that is not there is a null, an empty array and an empty map
    orc, parquet     the calendar may lack the days from 1582-10-05 to 1582-10-14, and Spark writes later ones
    parquet          a setting may drop microseconds
    partitionBy      the name of a folder is the value, as text: an empty one is null, and a time has no offset

Options come first, and a check is made where Spark has none that helps.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reactive_runtime._support.shown import shown
from reactive_runtime.errors import SparkError
from reactive_runtime.spark._write.described import described
from reactive_runtime.spark._write.kept_in_tables import change_of, columns_for
from reactive_runtime.spark._write.values import Misfit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

__all__ = ["Check", "Files", "checks_of", "options_of"]

Check = Callable[[str, Any], None]
"""Is given the name of a column and an array of Arrow; Misfit where Spark would write another value."""

_TYPE: Final = "spark.sql.parquet.outputTimestampType"
_CALENDAR: Final = "spark.sql.parquet.datetimeRebaseModeInWrite"
_CALENDAR_96: Final = "spark.sql.parquet.int96RebaseModeInWrite"
_POLICY: Final = "spark.sql.legacy.timeParserPolicy"
_ZONE: Final = "spark.sql.session.timeZone"

_TEXTS: Final = ("csv", "json", "xml")
"""Formats that write a time as text, in a pattern which is an option."""

_OTHERS: Final = (*_TEXTS, "orc", "text", "avro", "jdbc", "kafka", "noop", "console")
"""Formats whose files are not Parquet."""

_MARKED: Final = ("csv", "text")
"""Formats whose files begin with the first column, and of which a reader drops a byte order mark."""

_MARK: Final = "a reader drops U+FEFF where a file begins: write it behind another column, or take parquet"
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""The name of the folder of the rows whose column is null."""

_FIRST, _LAST = datetime.date(1582, 10, 5), datetime.date(1582, 10, 14)
_DAY: Final = datetime.timedelta(1)  # of which zone Spark takes the day of a timestamp is for another setting to say
_WHOLE_OFFSETS: Final = datetime.datetime(1972, 5, 1, tzinfo=datetime.UTC)
"""Since then the offset of each zone is a whole number of minutes."""


class Files(NamedTuple):
    """Where a flow writes."""

    format: str | None
    """The format that the sink was given. None: that of the table, or of the session."""
    table: str | None = None
    """The name of a table, which is there or is made. None: a path."""
    partitions: Sequence[str] = ()
    """The columns that the sink was given to partition by."""
    options: frozenset[str] = frozenset()
    """The names of the options that the sink was given, in small letters."""
    by_position: bool = False
    """Whether the sink writes to the columns of the table by their position; those of its partitions are the last."""
    anew: bool = False
    """Whether the sink makes the table, or writes nothing: one that is there does not count then."""


def options_of(spark: SparkSession, format: str | None) -> dict[str, str]:
    """The options of a writer before those of the user, so that files keep each value.

    Args:
        spark: The session that writes.
        format: Of the sink. None: that of the session.
    """
    name = _format(spark, format)
    options = {"timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"} if name in _TEXTS else {}
    if name in _TEXTS and not _is_legacy(spark, _POLICY):  # that one knows no offset of seconds
        options["timestampFormat"] = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXXXX"
    if name == "csv":
        options |= {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
    if name == "xml":  # for readers of the table that is made so
        options["ignoreSurroundingSpaces"] = "false"
    return options


def checks_of(spark: SparkSession, schema: StructType, files: Files) -> list[Check]:
    """The checks of each column before it is written; SparkError where the format has no room for a type."""
    found = None
    columns: dict[str, DataType] = {}
    if files.table is not None and not files.anew:
        with suppress(Exception):  # it is not there yet, or the write says what is wrong
            found = described(spark, files.table)
            columns = columns_for(schema, spark.table(files.table).schema, by_position=files.by_position)
    if found is None:
        format, partitions = _format(spark, files.format), files.partitions
        options = files.options | set(map(str.lower, options_of(spark, files.format)))
    else:
        format, partitions, options = found.provider, found.partitions, found.options
        if files.by_position:
            partitions = tuple(schema.names[len(schema) - len(partitions) :])
    by_folder = {name.lower() for name in partitions} if format != "iceberg" else set()
    in_files = [name for name in columns or schema.names if name.lower() not in by_folder]
    refused: dict[str, list[_Refused]] = {}
    for field in schema:
        if field.name.lower() in by_folder:
            here = _in_folders(spark, field.name, field.dataType)
        else:
            _refuse_type(format, field.name, field.dataType)
            here = _in_files(spark, format, options, in_table=files.table is not None, alone=len(in_files) == 1)
            if format in _MARKED and field.name in in_files[:1]:
                here.append((_has_text("\\A\\x{FEFF}"), _MARK))
        refused[field.name] = [(partial(_in_leaves, changes), why) for changes, why in here]
    for name, column in columns.items():
        if (changed := change_of(schema[name].dataType, column, str(spark.conf.get(_ZONE)))) is not None:
            why = f"the table has {column.simpleString()} there, which does not keep it: cast it, or alter the table"
            refused[name].append((changed, why))

    def check(name: str, column: Any) -> None:
        for changes, why in refused[name]:
            if changes(column):
                place = next(at for at in range(len(column)) if changes(column.slice(at, 1)))
                value = column[place].as_py()
                raise Misfit(place, "", f"{shown(value) if isinstance(value, str | bytes) else value}: {why}")

    return [check] if any(refused.values()) else []


def _format(spark: SparkSession, format: str | None) -> str:
    return (format or spark.conf.get("spark.sql.sources.default") or "").lower()


def _is_legacy(spark: SparkSession, setting: str) -> bool:
    return (spark.conf.get(setting, None) or "").upper() == "LEGACY"


# -- what is refused, and why -----------------------------------------------------------------------------------

_Refused = tuple[Callable[[Any], bool], str]
"""Whether a column has a value that would be another, and why; most look at columns that are no structs."""


def _refuse_type(format: str, name: str, kind: DataType) -> None:
    from pyspark.sql import types

    if format == "csv" and isinstance(kind, types.BinaryType):
        raise SparkError(f"to_spark: field {name!r}: CSV has no bytes: write a text, by base64 for instance")
    if format == "json" and (key := _key_of_json(kind)) is not None:
        raise SparkError(f"to_spark: field {name!r}: the keys of a map are texts in JSON, and no {key.simpleString()}")
    if format == "xml" and _has_array_within(kind):
        raise SparkError(f"to_spark: field {name!r}: XML loses an array in an array or a map: put a struct in between")


def _has_array_within(kind: DataType) -> bool:
    """Whether an array is the element of another, or the value of a map."""
    from pyspark.sql import types

    if isinstance(kind, types.StructType):
        return any(_has_array_within(field.dataType) for field in kind)
    if isinstance(kind, types.ArrayType | types.MapType):
        inner = kind.elementType if isinstance(kind, types.ArrayType) else kind.valueType
        return isinstance(inner, types.ArrayType) or _has_array_within(inner)
    return False


def _key_of_json(kind: DataType) -> DataType | None:
    """The type of a key that JSON can't say."""
    from pyspark.sql import types

    if isinstance(kind, types.MapType):
        if not isinstance(kind.keyType, types.StringType | types.IntegralType | types.BooleanType):
            return kind.keyType
        return _key_of_json(kind.valueType)
    if isinstance(kind, types.ArrayType):
        return _key_of_json(kind.elementType)
    if isinstance(kind, types.StructType):
        return next(filter(None, (_key_of_json(field.dataType) for field in kind)), None)
    return None


def _in_files(
    spark: SparkSession, format: str, options: Iterable[str], *, in_table: bool, alone: bool
) -> list[_Refused]:
    """Of a column in the files. `options` are those of the writer, or of a table that reads with them again."""
    refused: list[_Refused] = []
    if format not in _OTHERS:
        refused += _in_parquet(spark)
    if format == "orc":
        refused.append((_is_left_out, "the calendar of ORC has no such day: take parquet"))
    if format in _TEXTS:
        if "timestampformat" not in options:
            refused.append((_has_microseconds, f"{format} keeps milliseconds here: give the option timestampFormat"))
            if _is_legacy(spark, _POLICY):
                why = f"{_POLICY} is LEGACY, which drops the seconds of old offsets: set CORRECTED"
                refused.append((_may_have_an_odd_offset, why))
        if "timestampntzformat" not in options:
            why = f"{format} keeps milliseconds here: give the option timestampNTZFormat"
            refused.append((_has_local_microseconds, why))
    if format == "csv":
        refused.append((_has_text("\\x00"), "CSV loses a NUL"))
        if alone:
            refused.append((_has_null, "a row with nothing else is an empty line in CSV: write a second column"))
        if in_table and "nullvalue" not in options:
            refused.append((_has_text("\\A\\z"), "a table of CSV reads it as null: make it with the option nullValue"))
        if in_table and "multiline" not in options:
            why = "a table of CSV ends a row there: make it with the option multiLine"
            refused.append((_has_text("[\r\n]"), why))
    if format == "xml":
        refused += _in_xml(options, in_table=in_table)
    if format == "text":
        refused += [(_has_null, "a text file has no null"), (_has_text("[\r\n]"), "a text file ends a row there")]
    return refused


def _in_xml(options: Iterable[str], *, in_table: bool) -> list[_Refused]:
    refused: list[_Refused] = [
        (_has_a_gap, "XML loses an array or a map with nothing in it, and a null in one"),
        (_has_text("[\\x00-\\x08\\x0B\\x0C\\x0E-\\x1F\\x{FFFE}\\x{FFFF}]"), "XML has no such character"),
        (_has_key("\\A_"), "XML takes a key that begins with _ for an attribute"),
    ]
    if in_table and "ignoresurroundingspaces" not in options:
        why = "a table of XML reads it without the spaces at its ends: make it with the option ignoreSurroundingSpaces"
        refused.append((_has_text("\\A[\\x00- ]|[\\x00- ]\\z"), why))
    return refused


def _in_parquet(spark: SparkSession) -> list[_Refused]:
    refused: list[_Refused] = []
    as_type = (spark.conf.get(_TYPE) or "").upper()
    if as_type == "TIMESTAMP_MILLIS":
        why = f"{_TYPE} is TIMESTAMP_MILLIS, which drops its microseconds: set TIMESTAMP_MICROS"
        refused.append((_has_microseconds, why))
    for name in [_CALENDAR, _CALENDAR_96] if as_type == "INT96" else [_CALENDAR]:
        if _is_legacy(spark, name):
            refused.append((_is_left_out, f"{name} is LEGACY, which has no such day: set CORRECTED"))
    return refused


def _in_folders(spark: SparkSession, name: str, kind: DataType) -> list[_Refused]:
    """Of a column in the names of folders."""
    from pyspark.sql import types

    if isinstance(kind, types.StringType):
        return [(_has_text(f"\\A({_NULL})?\\z|\\x00"), _NO_NAME)]
    if isinstance(kind, types.BinaryType):
        return [(_is_no_name, _NO_NAME)]
    if isinstance(kind, types.TimestampType):
        zone = str(spark.conf.get(_ZONE))
        if not re.fullmatch(r"Z|(UTC|GMT|UT)?([+-][\d:]+)?", zone):
            return [(_read_as_earlier(name, zone), _EARLIER)]
    return []


_NO_NAME: Final = "the folder of a partition can't have that name, or is that of null: partition by another column"

_EARLIER: Final = (
    "the clock of the session shows that time twice, and the folder of a partition has no offset: partition by another"
    " column, or set spark.sql.session.timeZone to UTC"
)


# -- looking ----------------------------------------------------------------------------------------------------


def _leaves(column: Any) -> Iterator[Any]:
    """The columns in a column that are no structs, without what is null outside of them."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_struct(kind):
        there = column.filter(column.is_valid())
        for place in range(kind.num_fields):
            yield from _leaves(there.field(place))
    elif pa.types.is_map(kind):
        there = column.filter(column.is_valid())
        yield there
        for child in (there.keys, there.items):
            yield from _leaves(child)
    elif pa.types.is_list(kind):
        yield column.filter(column.is_valid())
        yield from _leaves(column.flatten())
    else:
        yield column


def _in_leaves(changes: Callable[[Any], bool], column: Any) -> bool:
    return any(map(changes, _leaves(column)))


def _any(flags: Any) -> bool:
    import pyarrow.compute as pc

    compute: Any = pc
    return bool(compute.any(flags).as_py())


def _has_null(leaf: Any) -> bool:
    return bool(leaf.null_count)


def _has_text(pattern: str) -> Callable[[Any], bool]:
    """Whether a text has the pattern somewhere."""

    def found(leaf: Any) -> bool:
        import pyarrow as pa
        import pyarrow.compute as pc

        is_text = pa.types.is_string(leaf.type) or pa.types.is_large_string(leaf.type)
        return is_text and _any(pc.match_substring_regex(leaf, pattern))

    return found


def _has_a_gap(leaf: Any) -> bool:
    """Whether it is a column of arrays or maps, of which one has nothing in it, or a null."""
    import pyarrow as pa

    if pa.types.is_map(leaf.type):
        inner = leaf.items
    elif pa.types.is_list(leaf.type):
        inner = leaf.flatten()
    else:
        return False
    return bool(inner.null_count) or not all(leaf.to_pylist())


def _has_key(pattern: str) -> Callable[[Any], bool]:
    """Whether a map has the pattern in a key."""
    has = _has_text(pattern)

    def found(leaf: Any) -> bool:
        import pyarrow as pa

        return bool(pa.types.is_map(leaf.type)) and has(leaf.keys)

    return found


def _is_no_name(leaf: Any) -> bool:
    for value in leaf.to_pylist():
        try:
            if value is not None and (value.decode() in ("", _NULL) or b"\0" in value):
                return True
        except UnicodeDecodeError:
            return True
    return False


def _is_instant(leaf: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_timestamp(leaf.type) and leaf.type.tz is not None)


def _has_microseconds(leaf: Any) -> bool:
    return _is_instant(leaf) and _is_finer(leaf)


def _has_local_microseconds(leaf: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_timestamp(leaf.type)) and not _is_instant(leaf) and _is_finer(leaf)


def _is_finer(leaf: Any) -> bool:
    import pyarrow as pa

    try:
        leaf.cast(pa.timestamp("ms", leaf.type.tz))
    except pa.ArrowInvalid:
        return True
    return False


def _may_have_an_odd_offset(leaf: Any) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc
    return _is_instant(leaf) and _any(compute.less(leaf, pa.scalar(_WHOLE_OFFSETS, leaf.type)))


def _read_as_earlier(name: str, zone: str) -> Callable[[Any], bool]:
    """Whether the local time, read in the zone, is an earlier one: the clock was put back over it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc

    def found(leaf: Any) -> bool:
        local = compute.local_timestamp(leaf.cast(pa.timestamp("us", zone)))
        back = compute.assume_timezone(local, zone, ambiguous="earliest", nonexistent="latest")
        return _any(compute.not_equal(back.cast(pa.int64()), leaf.cast(pa.int64())))

    try:
        found(pa.array([0], pa.timestamp("us", "UTC")))
    except pa.ArrowException as error:
        raise SparkError(
            f"to_spark: field {name!r}: of the zone {zone!r} is not known here when its clock is put back: set"
            f" {_ZONE} to the name of a region, such as Europe/Berlin, or partition by another column"
        ) from error
    return found


def _is_left_out(leaf: Any) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    first: datetime.date = _FIRST
    last: datetime.date = _LAST
    if _is_instant(leaf):
        midnight = datetime.time(tzinfo=datetime.UTC)
        first = datetime.datetime.combine(_FIRST - _DAY, midnight)
        last = datetime.datetime.combine(_LAST + 2 * _DAY, midnight)
    elif not pa.types.is_date(leaf.type):
        return False
    compute: Any = pc
    later = compute.greater_equal(leaf, pa.scalar(first, leaf.type))
    return _any(compute.and_(later, compute.less_equal(leaf, pa.scalar(last, leaf.type))))
