"""Values of Python as columns of Arrow, as `createDataFrame` takes them; a nested column goes by its children.

Arrow alone would make 1.5 a 1, so the writer compares the Python types of a column with those that it takes, in one
pass of C, before Arrow converts the column. The writer looks for the value to name only where a column does not fit.

    timestamp     datetime: one without a zone is local
    timestamp_ntz datetime, no zone
    date          date, or a datetime at midnight, no zone
    struct        mapping, Row by its names, sequence, or object with these attributes
    array         list, tuple, array, set, or array of NumPy
    map           dict
    variant, geometry, a type of the user's    their own classes

Others are as for `createDataFrame`: an int where the column is of ints, a float where it is of floats, and so on. The
writer takes a value of a class derived from one of these (`IntEnum`, `pandas.Timestamp`), or of NumPy, as one of the
class itself. A value that a column can't keep whole is a Misfit.
"""

from __future__ import annotations

import array
import datetime
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain, pairwise
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime._support.shown import shown
from reactive_runtime.spark._write.arrow_types import arrow_type, first_line, twice
from reactive_runtime.spark._write.plain_values import PLAIN, of_python, prepared, taken_types

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

__all__ = ["DOUBLED", "Misfit", "Write", "doubled", "in_range", "mapping_of", "names_of", "writer"]

Write = Callable[[list[Any], "Sequence[bool] | None"], Any]
"""The column of Arrow of values; the flags say of which rows there is none, since what would hold it is null itself."""


class Misfit(Exception):  # noqa: N818
    """A value that does not fit: which one of those that were given, where in it, and why."""

    def __init__(self, place: int, path: str, why: str) -> None:
        super().__init__(why)
        self.place = place
        self.path = path
        self.why = why


def writer(kind: DataType, *, nullable: bool) -> Write:
    """Writes columns of a type; Misfit where one of the values does not fit."""
    from pyspark.sql import types

    write: Write
    if isinstance(kind, types.ArrayType):
        write = _ListWriter(kind, writer(kind.elementType, nullable=kind.containsNull))
    elif isinstance(kind, types.MapType):
        write = _MapWriter(
            kind, writer(kind.keyType, nullable=False), writer(kind.valueType, nullable=kind.valueContainsNull)
        )
    elif isinstance(kind, types.StructType):
        write = _StructWriter(kind, [writer(field.dataType, nullable=field.nullable) for field in kind])
    elif isinstance(kind, types.UserDefinedType):
        write = _UserWriter(kind, writer(kind.sqlType(), nullable=True))
    else:
        write = _PlainWriter(kind)
    return partial(_required, write) if not nullable else write


def _required(write: Write, values: list[Any], absent: Sequence[bool] | None) -> Any:
    column = write(values, absent)
    if column.null_count > (sum(absent) if absent else 0):
        there = column.is_valid().to_pylist()
        place = next(at for at, valid in enumerate(there) if not (valid or (absent and absent[at])))
        raise Misfit(place, "", f"{shown(values[place])}, in a field that is required")
    return _all_there(column) if column.null_count else column


def _all_there(column: Any) -> Any:
    """The column with something, whatever it is, where there was nothing.

    Of rows that what holds them lacks: Arrow can't cast a struct whose required field is null where the struct is.
    """
    import pyarrow as pa

    kind = column.type
    children: list[Any] | None = None
    if pa.types.is_map(kind):
        children = [pa.StructArray.from_arrays([column.keys, column.items], fields=[kind.key_field, kind.item_field])]
    elif pa.types.is_list(kind):
        children = [column.values]
    elif pa.types.is_struct(kind):
        children = [column.field(place) for place in range(kind.num_fields)]
    own = column.buffers()[1 : kind.num_buffers]
    buffers = [None, *(pa.py_buffer(b"") if buffer is None else buffer for buffer in own)]
    return pa.Array.from_buffers(kind, len(column), buffers, null_count=0, children=children)


_REFUSED: Final = (TypeError, ValueError, OverflowError, ArithmeticError)  # those of Arrow among them


class _PlainWriter:
    """Of a type that has no other in it."""

    def __init__(self, kind: DataType) -> None:
        taken = taken_types(kind)
        self._arrow = arrow_type(kind)
        self._takes = frozenset({NoneType, *taken} - {memoryview})
        self._known = tuple(self._takes)
        self._plain = [(base, PLAIN[base]) for base in taken if base in PLAIN]
        self._prepared = prepared(kind)

    def __call__(self, values: list[Any], absent: Sequence[bool] | None) -> Any:
        if not self._takes.issuperset(map(type, values)):
            values = [
                value if type(value) in self._takes else self._made_plain(place, value)
                for place, value in enumerate(values)
            ]
        try:
            return self._column(values)
        except _REFUSED as error:
            for place, value in enumerate(values):
                try:
                    self._column([value])
                except _REFUSED as misfit:
                    raise Misfit(place, "", f"{self._why(value)}: {first_line(misfit)}") from misfit
            raise Misfit(0, "", first_line(error)) from error

    def _made_plain(self, place: int, value: Any) -> Any:
        """The value as one of the types that Arrow is given: of a class derived from these, and of NumPy."""
        try:
            if not isinstance(value, self._known):
                made = of_python(value)
                value = made if made is value else self._with_an_hour(made)
            if type(value) in self._takes:
                return value
            if not isinstance(value, bool):  # an int to Python
                for base, plain in self._plain:
                    if isinstance(value, base):
                        return plain(value)
        except _REFUSED as error:
            raise Misfit(place, "", f"{self._why(value)}: {first_line(error)}") from error
        raise Misfit(place, "", self._why(value))

    def _with_an_hour(self, value: Any) -> Any:
        """The midnight that a `datetime64` of days stands for, where the column keeps no days."""
        if type(value) is not datetime.date or datetime.datetime not in self._takes or datetime.date in self._takes:
            return value
        return datetime.datetime.combine(value, datetime.time())

    def _column(self, values: list[Any]) -> Any:
        import pyarrow as pa

        made = pa.array(values if self._prepared is None else self._prepared(values), self._arrow)
        return in_range(values, made) if pa.types.is_float32(self._arrow) else made

    def _why(self, value: Any) -> str:
        return f"{shown(value)} ({type(value).__name__}) is no {self._arrow}"


def in_range(values: Iterable[Any], made: Any) -> Any:
    """The column of 32 bits; OverflowError for a number that Arrow made an infinity there, or a 0."""
    import pyarrow.compute as pc

    compute: Any = pc
    edges: Any = compute.or_(compute.is_inf(made), compute.equal(made, 0))
    if compute.any(edges).as_py():
        for value, became in zip(values, edges.to_pylist(), strict=True):
            if became and value and not math.isinf(value):
                size = "large" if abs(value) > 1 else "small"
                raise OverflowError(f"{value!r} is too {size} for 32 bits: take the type double")
    return made


class _ListWriter:
    """Of arrays: their elements as one column, and where each begins."""

    def __init__(self, kind: Any, write: Write) -> None:
        self._arrow = arrow_type(kind)
        self._write = write
        self._takes = frozenset({NoneType, list, tuple, array.array, set, frozenset})

    def __call__(self, values: list[Any], absent: Sequence[bool] | None) -> Any:
        import pyarrow as pa

        if not self._takes.issuperset(map(type, values)):
            values = list(map(_of_array, values))
            for place, value in enumerate(values):
                if not isinstance(value, NoneType | list | tuple | array.array | set | frozenset):
                    raise Misfit(place, "", f"{shown(value)} ({type(value).__name__}) is no {self._arrow}")
        offsets, nulls = _offsets(values)
        try:
            elements = self._write(list(chain.from_iterable(value or () for value in values)), None)
        except Misfit as misfit:
            place = _holding(offsets, misfit.place)
            raise Misfit(place, f"[{misfit.place - offsets[place]}]{misfit.path}", misfit.why) from misfit
        make: Any = pa.ListArray.from_arrays
        return make(pa.array(offsets, pa.int32()), elements, type=self._arrow, mask=nulls)


def _of_array(value: Any) -> Any:
    """An array of NumPy as a list; what has no elements as it is."""
    return of_python(value) if getattr(value, "ndim", 0) else value


def _offsets(values: list[Any]) -> tuple[list[int], Any]:
    """Where the elements of each begin, and where the last end; which of the values are null, None where none is."""
    import pyarrow as pa

    offsets = list(accumulate((0 if value is None else len(value) for value in values), initial=0))
    nulls = [value is None for value in values]
    return offsets, pa.array(nulls) if any(nulls) else None


def _holding(offsets: Sequence[int], place: int) -> int:
    """Which of the lists has the element in that place: the last that begins there or before, empty ones left out."""
    return bisect_right(offsets, place) - 1


class _MapWriter:
    """Of maps: their keys and their values as two columns."""

    def __init__(self, kind: Any, write_key: Write, write_value: Write) -> None:
        self._arrow = arrow_type(kind)
        self._merges = _merges(kind.keyType)
        self._write_key = write_key
        self._write_value = write_value

    def __call__(self, values: list[Any], absent: Sequence[bool] | None) -> Any:
        import pyarrow as pa

        for place, value in enumerate(values):
            if not isinstance(value, dict | NoneType):
                raise Misfit(place, "", f"{shown(value)} ({type(value).__name__}) is no {self._arrow}")
        offsets, nulls = _offsets(values)
        keys = list(chain.from_iterable(value or () for value in values))
        items = list(chain.from_iterable(value.values() for value in values if value))
        try:
            key_column = self._write_key(keys, None)
        except Misfit as misfit:
            place = _holding(offsets, misfit.place)
            raise Misfit(place, misfit.path, f"a key: {misfit.why}") from misfit
        merges = self._merges or not _PLAIN.issuperset(map(type, keys))  # a derived class may compare in its own way
        several = merges and any(value is not None and len(value) > 1 for value in values)
        if several and (found := doubled(offsets, key_column)):
            raise Misfit(found[0], "", f"a key: {shown(keys[found[1]])} {DOUBLED}")
        try:
            value_column = self._write_value(items, None)
        except Misfit as misfit:
            place = _holding(offsets, misfit.place)
            raise Misfit(place, f"[{shown(keys[misfit.place])}]{misfit.path}", misfit.why) from misfit
        make: Any = pa.MapArray.from_arrays
        return make(pa.array(offsets, pa.int32()), key_column, value_column, type=self._arrow, mask=nulls)


_PLAIN: Final = frozenset({str, int, bool, bytes})


def _merges(kind: DataType) -> bool:
    """Whether keys that differ in Python may be one in Spark: a time with and without its zone, for instance."""
    from pyspark.sql import types

    return not isinstance(kind, types.StringType | types.IntegralType | types.BooleanType | types.BinaryType)


DOUBLED: Final = "is one that is there already, as Spark keeps it"


def doubled(offsets: Sequence[int], column: Any) -> tuple[int, int] | None:
    """The first map with a key twice, and the place of that in the column of all keys; `offsets` are of the maps."""
    import pyarrow as pa

    numbers = column.view("int64") if pa.types.is_timestamp(column.type) else column
    made = list(map(repr, numbers.to_pylist()))
    for place, (first, last) in enumerate(pairwise(offsets)):
        if len(set(made[first:last])) < last - first:
            return place, next(at for at in range(first, last) if made[at] in made[first:at])
    return None


class _StructWriter:
    """Of structs: a column for each field."""

    def __init__(self, kind: StructType, writes: Sequence[Write]) -> None:
        self._fields = list(arrow_type(kind))
        self._names: list[str] = kind.names
        self._required = [field.name for field in kind if not field.nullable]
        self._writes = writes

    def __call__(self, values: list[Any], absent: Sequence[bool] | None) -> Any:
        import pyarrow as pa

        nothing = (None,) * len(self._names)
        rows = [nothing if value is None else self._row(place, value) for place, value in enumerate(values)]
        nulls = [value is None for value in values]
        if not self._fields:
            return pa.array([None if null else {} for null in nulls], pa.struct([]))
        columns = []
        for place, (name, write) in enumerate(zip(self._names, self._writes, strict=True)):
            try:
                columns.append(write([row[place] for row in rows], nulls))
            except Misfit as misfit:
                raise Misfit(misfit.place, f".{name}{misfit.path}", misfit.why) from misfit
        return pa.StructArray.from_arrays(columns, fields=self._fields, mask=pa.array(nulls, pa.bool_()))

    def _row(self, place: int, value: Any) -> Sequence[Any]:
        try:
            return _fields_of(value, self._names, self._required)
        except Misfit as misfit:
            raise Misfit(place, misfit.path, misfit.why) from misfit


def names_of(value: Any) -> list[str] | None:
    """The names of the fields of a `Row`; None of a tuple that is none, and of a `Row` without names."""
    from pyspark.sql.types import Row

    own: Any = getattr(value, "__fields__", None) if isinstance(value, Row) else None
    return None if own is None else list(own)


def mapping_of(row: tuple[Any, ...], names: Sequence[str]) -> dict[str, Any]:
    """A `Row` by its names, which say where its values belong; Misfit where two are one."""
    if name := twice(names):
        raise Misfit(0, f".{name}", f"two fields of {shown(row)} have that name: rename one")
    if len(names) != len(row):
        raise Misfit(0, "", f"{shown(row)} has {len(row)} values, and {len(names)} names")
    return dict(zip(names, row, strict=True))


def _fields_of(value: Any, names: Sequence[str], required: Iterable[str]) -> Sequence[Any]:
    """The fields of a value for the names; Misfit where it lacks one, or has others.

    A mapping may lack one that is not required, if all in it is known: what is not would be one misspelt. So may a
    `Row` with names.
    """
    if isinstance(value, tuple) and (own := names_of(value)) is not None:
        if own == names:
            return value
        value = mapping_of(value, own)
    if isinstance(value, tuple | list):
        if len(value) != len(names):
            raise Misfit(0, "", f"{shown(value)} has {len(value)} values, and the schema {len(names)} fields")
        return value
    if name := twice(names):
        raise Misfit(0, f".{name}", f"two fields have that name, and {shown(value)} has one: use a tuple")
    if isinstance(value, Mapping):
        if beside := sorted(map(str, value.keys() - set(names))):
            raise Misfit(0, f".{beside[0]}", "is not in the schema")
        for name in required:
            if name not in value:
                raise Misfit(0, f".{name}", f"{shown(value)} has no such field")
        return [value.get(name) for name in names]
    try:
        return [getattr(value, name) for name in names]
    except AttributeError as error:
        missing = next(name for name in names if not hasattr(value, name))
        raise Misfit(0, f".{missing}", f"{shown(value)} has no such field") from error


class _UserWriter:
    """Of a type of the user's: what it serialises its values to."""

    def __init__(self, kind: Any, write: Write) -> None:
        self._kind = kind
        self._write = write

    def __call__(self, values: list[Any], absent: Sequence[bool] | None) -> Any:
        for place, value in enumerate(values):
            if value is not None and getattr(value, "__UDT__", None) != self._kind:
                raise Misfit(place, "", f"{shown(value)} ({type(value).__name__}) is no {self._kind.simpleString()}")
        return self._write([None if value is None else self._kind.serialize(value) for value in values], absent)
