"""Types of Spark as Arrow has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import DataType, StructType

__all__ = ["LARGE", "arrow_fields", "arrow_type", "first_line", "mapped", "nullable_void", "twice", "without_tags"]

LARGE: Final = "spark.sql.execution.arrow.useLargeVarTypes"
"""The setting with which Spark sends strings and bytes with offsets of 64 bits."""


def twice(names: Iterable[str]) -> str | None:
    """The first name that is there twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def first_line(error: BaseException) -> str:
    """The first line of the text of an error."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def mapped(kind: DataType, change: Callable[[DataType], DataType]) -> DataType:
    """The type with each one in it changed, from the inside out."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if isinstance(kind, ArrayType):
        return change(ArrayType(mapped(kind.elementType, change), kind.containsNull))
    if isinstance(kind, MapType):
        key, value = mapped(kind.keyType, change), mapped(kind.valueType, change)
        return change(MapType(key, value, kind.valueContainsNull))
    if isinstance(kind, StructType):
        fields = [StructField(f.name, mapped(f.dataType, change), f.nullable, f.metadata) for f in kind]
        return change(StructType(fields))
    return change(kind)


def arrow_fields(schema: StructType, zone: str = "UTC", *, large: bool = False) -> pyarrow.Schema:
    """The schema as Arrow has it.

    Args:
        schema: As Spark has it.
        zone: Of its timestamps: only a name, since what they hold is UTC.
        large: The setting `LARGE` of the session.
    """
    import pyarrow as pa

    return pa.schema(arrow_type(schema, zone, large=large))


def without_tags(schema: StructType) -> StructType:
    """The schema with a plain struct for each type that is one with a mark in Arrow: variants and places."""
    from pyspark.sql import types

    def plain(kind: DataType) -> DataType:
        if isinstance(kind, types.VariantType):
            return types.StructType().add("value", "binary", False).add("metadata", "binary", False)
        if isinstance(kind, types.GeometryType | types.GeographyType):
            return types.StructType().add("srid", "int", False).add("wkb", "binary", False)
        return kind

    made: Any = mapped(schema, plain)
    return made  # type: ignore[no-any-return]


def arrow_type(kind: DataType, zone: str = "UTC", *, large: bool = False) -> Any:
    """The type as Arrow has it; the arguments are those of `arrow_fields`."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_type

    named: dict[str, Any] = {"timezone": zone} if _names_the_zone() else {}
    made = to_arrow_type(mapped(kind, nullable_void), **named)
    # Spark enlarges all of them, those in a variant too; PySpark's own function does not.
    return _enlarged(pa, made) if large else made


@lru_cache(maxsize=1)
def _names_the_zone() -> bool:
    """Whether PySpark lets a type of Arrow have another zone than UTC, as 4.2 does and 4.1 does not."""
    from pyspark.sql.pandas.types import to_arrow_type

    return "timezone" in signature(to_arrow_type).parameters


def nullable_void(kind: DataType) -> DataType:
    """The type; one that holds what is void may hold null, whatever Spark says of it: Arrow knows no other."""
    from pyspark.sql.types import ArrayType, MapType, NullType, StructField, StructType

    if isinstance(kind, ArrayType) and isinstance(kind.elementType, NullType):
        return ArrayType(kind.elementType)
    if isinstance(kind, MapType) and isinstance(kind.valueType, NullType):
        return MapType(kind.keyType, kind.valueType)
    if isinstance(kind, StructType):
        return StructType(
            [StructField(f.name, f.dataType, f.nullable or isinstance(f.dataType, NullType), f.metadata) for f in kind]
        )
    return kind


def _enlarged(pa: Any, kind: Any) -> Any:
    if pa.types.is_string(kind):
        return pa.large_string()
    if pa.types.is_binary(kind):
        return pa.large_binary()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_enlarged(pa, kind.value_type)))
    if pa.types.is_map(kind):
        fields = (kind.key_field, kind.item_field)
        return pa.map_(*(field.with_type(_enlarged(pa, field.type)) for field in fields))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_enlarged(pa, field.type)) for field in kind])
    return kind
