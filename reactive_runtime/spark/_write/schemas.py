"""Elements to Arrow: what a schema may be given as, and what does not fit one.

A schema is a `pyarrow.Schema`, a `StructType` or a DDL string of Spark, or a class whose fields are annotated: a
dataclass, a TypedDict, a model of pydantic. `X | None` is a column that may be null; others may not.

    int float bool str bytes    long, double, boolean, string, binary
    date datetime time timedelta    date, timestamp, time, interval
    Decimal                     decimal(38, 18)
    a class derived from one of these (IntEnum, pandas.Timestamp)   as of that one
    list[X] set[X] tuple[X, ...] dict[K, V]     array, array, array, map
    a class with annotated fields               struct
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from reactive_runtime._support.shown import shown
from reactive_runtime.errors import SparkError
from reactive_runtime.spark._write.arrow_types import arrow_fields, first_line, mapped, nullable_void, twice
from reactive_runtime.spark._write.casts import cast
from reactive_runtime.spark._write.values import Misfit, mapping_of, names_of, writer

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Elements", "arrow_schema", "spark_schema"]

_PLAIN: Final[dict[Any, Callable[[Any], Any]]] = {
    bool: lambda pa: pa.bool_(),
    int: lambda pa: pa.int64(),
    float: lambda pa: pa.float64(),
    str: lambda pa: pa.string(),
    bytes: lambda pa: pa.binary(),
    datetime.date: lambda pa: pa.date32(),
    datetime.datetime: lambda pa: pa.timestamp("us", tz="UTC"),
    datetime.time: lambda pa: pa.time64("us"),
    datetime.timedelta: lambda pa: pa.duration("us"),
    decimal.Decimal: lambda pa: pa.decimal128(38, 18),
}

_SERIES: Final = (list, set, frozenset, tuple, Sequence)


def arrow_schema(what: str, schema: Any) -> pyarrow.Schema:
    """The schema of Arrow, or that of a class; TypeError for a value that is none.

    SparkError for a field whose type Spark has not. `what` is the operator that wants the schema, for the message.
    """
    import pyarrow as pa

    if isinstance(schema, pa.Schema):
        return schema
    if isinstance(schema, type) and (hints := _hints(schema)):
        return pa.schema([_field(what, name, hint, (schema,)) for name, hint in hints.items()])
    raise TypeError(
        f"{what}: a schema is a pyarrow.Schema, a StructType, a DDL string or a class with annotated fields,"
        f" not {schema!r}"
    )


def spark_schema(what: str, schema: Any) -> Any:
    """The schema as Spark has it; SparkError where it has no columns."""
    if isinstance(schema, str) or hasattr(schema, "fieldNames"):
        made = _writable(what, _struct(what, schema))
    else:
        made = _of_arrow(what, arrow_schema(what, schema))
    if not len(made):
        raise SparkError(f"{what}: the schema has no columns, and Spark loses rows without any: give it one")
    return made


def _of_arrow(what: str, schema: pyarrow.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    try:
        return from_arrow_schema(schema)
    except Exception as error:
        raise SparkError(f"{what}: Spark has no such type: {first_line(error)}") from error


def _writable(what: str, schema: Any) -> Any:
    """The schema; SparkError names a field whose type a flow can't write.

    Spark has texts with a length for tables, and not for rows; Arrow lacks intervals of months, for instance.
    """
    from pyspark.sql.types import CharType, StructType, VarcharType

    for field in schema:

        def refuse(kind: Any, name: str = field.name) -> Any:
            if isinstance(kind, CharType | VarcharType):
                raise SparkError(
                    f"{what}: field {name!r} has the type {kind.simpleString()}, which Spark has for columns of tables,"
                    " and for no rows: take string, and let the table check the length"
                )
            return kind

        mapped(field.dataType, refuse)
        try:
            arrow_fields(StructType([field]))
            writer(field.dataType, nullable=field.nullable)
        except Exception as error:
            raise SparkError(
                f"{what}: field {field.name!r} has the type {field.dataType.simpleString()}, which a flow can't write:"
                f" {first_line(error)}"
            ) from error
    return mapped(schema, nullable_void)


def _struct(what: str, schema: Any) -> Any:
    """A DDL string, or a StructType, as the latter."""
    from pyspark.sql.types import StructType

    try:
        return StructType.fromDDL(schema) if isinstance(schema, str) else schema
    except Exception as error:
        if "SESSION_OR_CONTEXT_NOT_EXISTS" in str(error):
            raise SparkError(
                f"{what}: {schema!r} is read by a session of Spark, and there is none, or it was stopped"
            ) from error
        raise SparkError(f"{what}: {schema!r} is no schema of Spark: {first_line(error)}") from error


def _hints(kind: type) -> dict[str, Any]:
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    if typing.is_typeddict(kind) or hasattr(kind, "model_fields"):
        hints, marked = get_type_hints(kind), get_type_hints(kind, include_extras=True)
        optional = {name for name, hint in marked.items() if get_origin(hint) is NotRequired}
        if not getattr(kind, "__total__", True):
            optional = {name for name, hint in marked.items() if get_origin(hint) is not Required}
        return {
            name: hints[name] | None if name in optional else hints[name]
            for name in getattr(kind, "model_fields", hints)
        }
    return {}


def _field(what: str, name: str, hint: Any, within: tuple[type, ...]) -> Any:
    import pyarrow as pa

    kinds = [argument for argument in get_args(hint) if argument is not type(None)] if _is_union(hint) else [hint]
    if len(kinds) != 1:
        raise SparkError(f"{what}: field {name!r}: {hint} has no type in Spark; use one type, or one and None")
    nullable = _is_union(hint) and type(None) in get_args(hint)
    return pa.field(name, _type(what, name, kinds[0], within), nullable)


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)


def _type(what: str, name: str, hint: Any, within: tuple[type, ...]) -> Any:
    import pyarrow as pa

    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint](pa)
    if origin is Literal and len({type(argument) for argument in arguments}) == 1:
        return _type(what, name, type(arguments[0]), within)
    if origin in _SERIES and arguments and (origin is not tuple or arguments[1:] == (...,)):
        return pa.list_(_field(what, f"{name}[]", arguments[0], within).with_name("element"))
    if origin in (dict, Mapping) and len(arguments) == 2:
        value = _field(what, f"{name}[]", arguments[1], within).with_name("value")
        return pa.map_(_type(what, name, arguments[0], within), value)
    if isinstance(hint, type) and (hints := _hints(hint)):
        if hint in within:
            raise SparkError(f"{what}: field {name!r}: {hint.__name__} is in itself, which no type of Spark can be")
        inside = (*within, hint)
        fields = ((inner, _field(what, f"{name}.{inner}", item, inside)) for inner, item in hints.items())
        return pa.struct([field.with_name(inner) for inner, field in fields])
    if isinstance(hint, type) and (base := next((kind for kind in hint.__mro__ if kind in _PLAIN), None)):
        return _PLAIN[base](pa)
    raise SparkError(f"{what}: field {name!r}: {hint} has no type in Spark; convert it, or give the schema by hand")


class Elements:
    """Makes Arrow tables of elements: mappings, sequences in the order of the fields, objects, or Arrow batches.

    A `Row` with names is read by these, whatever stands beside it, as a mapping is; one without names is a sequence.

    One for each subscription, which it counts the elements of; calls are serial.
    """

    def __init__(self, what: str, schema: Any, checks: Sequence[Callable[[str, Any], None]] = ()) -> None:
        struct = spark_schema(what, schema)
        self._checks = checks  # each is given each column with its name, and raises Misfit
        self._what = what
        self._schema = arrow_fields(struct)
        self._kinds = [field.dataType for field in struct]
        self._writes = [writer(field.dataType, nullable=field.nullable) for field in struct]
        self._twice = twice(self._schema.names)
        self._seen = 0  # elements of earlier tables

    def table(self, elements: Sequence[Any]) -> pyarrow.Table:
        """The elements as a table; SparkError names the element, counted from 0, and the field that does not fit."""
        import pyarrow as pa

        if isinstance(elements[0], pa.RecordBatch | pa.Table):
            table = self._together(elements)
        else:
            table = pa.Table.from_arrays(self._columns(elements), schema=self._schema)
        self._seen += len(elements)
        return table

    def count_anew(self) -> None:
        """The next element is number 0."""
        self._seen = 0

    def _together(self, batches: Sequence[Any]) -> pyarrow.Table:
        import pyarrow as pa

        return pa.concat_tables([self._of_batch(place, batch) for place, batch in enumerate(batches)])

    def _of_batch(self, place: int, batch: Any) -> pyarrow.Table:
        import pyarrow as pa

        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        if not isinstance(table, pa.Table):
            number = self._seen + place
            raise SparkError(f"{self._what}: element {number}: {shown(batch)} is no batch, as the first was")
        names = self._schema.names
        if table.schema.names != names:
            given = table.schema.names
            for name in names:
                if given.count(name) != 1:
                    raise self._misfit(place, name, f"an Arrow batch has {given.count(name)} such columns")
            for name in given:
                if name not in names:
                    raise self._misfit(place, name, "a column of an Arrow batch, is not in the schema")
            table = table.select(names)
        columns = []
        for at, (field, kind) in enumerate(zip(self._schema, self._kinds, strict=True)):
            try:
                column = cast(table.column(at), field, kind)
                for chunk in column.chunks:
                    self._checked(field.name, chunk)
                columns.append(column)
            except Misfit as misfit:
                why = f"an Arrow batch: {misfit.why}"
                raise self._misfit(place, f"{field.name}{misfit.path}", why) from misfit
        return pa.Table.from_arrays(columns, schema=self._schema)

    def _columns(self, elements: Sequence[Any]) -> list[Any]:
        names = self._schema.names
        elements, first = self._rows_by_name(elements)
        if self._twice is not None and not _is_series(type(first)):
            raise self._misfit(0, self._twice, f"two fields have that name, and {shown(first)} has one: use tuples")
        if isinstance(first, Mapping):
            plain = set(map(type, elements)) == {dict}  # else a key that is missing may be made up (`__missing__`)
            if not plain:
                self._all_are(elements, lambda element: isinstance(element, Mapping), "mapping")
            columns = [self._picked(elements, itemgetter(name) if plain else _held(name), name) for name in names]
            self._nothing_beside(elements)
        elif _is_series(type(first)):
            self._as_many(elements)
            # A ninth of the time of zip(*elements), which makes an iterator of each.
            columns = [list(map(itemgetter(place), elements)) for place in range(len(names))]
        else:
            self._all_are(elements, lambda element: not (isinstance(element, Mapping) or _is_series(type(element))), "")
            columns = [self._picked(elements, _attribute(name), name) for name in names]
        return [self._column(place, values) for place, values in enumerate(columns)]

    def _all_are(self, elements: Sequence[Any], fits: Callable[[Any], bool], kind: str) -> None:
        """How an element is read is for its class to say, and not for where a batch begins: all are of one kind."""
        for place, element in enumerate(elements):
            if not fits(element):
                said = f"is no {kind}, as" if kind else "has fields by key or by position, and no attributes, as"
                raise SparkError(f"{self._what}: element {self._seen + place}: {shown(element)} {said} the first was")

    def _rows_by_name(self, elements: Sequence[Any]) -> tuple[Sequence[Any], Any]:
        """The elements with each `Row` that has names put by these, and the first, whose kind all others have to be.

        Where there are only such, they are tuples; else they are of the kind of the others.
        """
        from pyspark.sql.types import Row

        if not any(issubclass(kind, Row) for kind in set(map(type, elements))):
            return elements, elements[0]
        named = [names_of(element) if isinstance(element, Row) else None for element in elements]
        first: Any = next((element for element, own in zip(elements, named, strict=True) if own is None), ())
        series, names = _is_series(type(first)), self._schema.names
        made = list(elements)
        for place, own in enumerate(named):
            if own is None or (own == names and series):
                continue
            if self._twice is not None:
                why = f"two fields have that name, and {shown(made[place])} has others: use tuples"
                raise self._misfit(place, self._twice, why)
            try:
                row: Any = mapping_of(made[place], own)
            except Misfit as misfit:
                raise self._misfit(place, misfit.path[1:], misfit.why) from misfit
            if not isinstance(first, Mapping):
                self._nothing_beside([row], place)
                values = [self._picked([row], _held(name), name, place)[0] for name in names]
                row = tuple(values) if series else types.SimpleNamespace(**dict(zip(names, values, strict=True)))
            made[place] = row
        return made, first

    def _picked(self, elements: Sequence[Any], pick: Callable[[Any], Any], name: str, begin: int = 0) -> list[Any]:
        try:
            return list(map(pick, elements))
        except (KeyError, AttributeError, TypeError, IndexError):
            pass
        nullable = self._schema.field(name).nullable
        values = []
        for place, element in enumerate(elements, begin):
            try:
                values.append(pick(element))
            except (KeyError, AttributeError, TypeError, IndexError) as error:
                if not (nullable and isinstance(element, Mapping) and element.keys() <= set(self._schema.names)):
                    raise self._misfit(place, name, f"{shown(element)} has no such field") from error
                values.append(None)
        return values

    def _nothing_beside(self, elements: Sequence[Mapping[str, Any]], begin: int = 0) -> None:
        # One that has all fields has as many, or more; one that lacks some was looked at.
        known = set(self._schema.names)
        if set(map(len, elements)) != {len(known)}:
            for place, element in enumerate(elements, begin):
                if beside := sorted(map(str, element.keys() - known)):
                    raise self._misfit(place, beside[0], "is not in the schema")

    def _as_many(self, elements: Sequence[Sequence[Any]]) -> None:
        many = len(self._schema.names)
        if all(map(_is_series, set(map(type, elements)))) and set(map(len, elements)) == {many}:
            return
        for place, element in enumerate(elements):
            if not _is_series(type(element)):
                raise SparkError(
                    f"{self._what}: element {self._seen + place}: {shown(element)} is no sequence, as the first was"
                )
            if len(element) != many:
                raise SparkError(
                    f"{self._what}: element {self._seen + place}: {shown(element)} has {len(element)} values, and the"
                    f" schema {many} fields"
                )

    def _column(self, place: int, values: list[Any]) -> Any:
        try:
            return self._checked(self._schema.names[place], self._writes[place](values, None))
        except Misfit as misfit:
            name = f"{self._schema.names[place]}{misfit.path}"
            raise self._misfit(misfit.place, name, misfit.why) from misfit

    def _checked(self, name: str, column: Any) -> Any:
        for check in self._checks:
            check(name, column)
        return column

    def _misfit(self, place: int, name: str, why: str) -> SparkError:
        return SparkError(f"{self._what}: element {self._seen + place}, field {name!r}: {why}")


def _held(name: str) -> Callable[[Any], Any]:
    """The value that a mapping has under a key."""

    def pick(element: Any) -> Any:
        if name not in element:
            raise KeyError(name)
        return element[name]

    return pick


def _attribute(name: str) -> Callable[[Any], Any]:
    """The attribute of that very name; `attrgetter` takes a dot for a path."""
    return attrgetter(name) if "." not in name else lambda element: getattr(element, name)


def _is_series(kind: type) -> bool:
    return issubclass(kind, Sequence) and not issubclass(kind, str | bytes)
