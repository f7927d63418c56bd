"""Which value of an element goes into which field of a schema; no session is needed for that."""

from __future__ import annotations

from collections import Counter, UserDict, defaultdict
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import IntegerType, LongType, MapType, Row, StringType, StructField, StructType

from reactive_runtime.errors import SparkError
from reactive_runtime.spark._write.schemas import Elements

pytestmark = pytest.mark.spark

LONGS = StructType([StructField("a", LongType()), StructField("b", LongType())])


def kept(schema: StructType, *elements: Any) -> list[dict[str, Any]]:
    return Elements("to_spark", schema).table(elements).to_pylist()


@pytest.mark.parametrize("kind", [Counter, lambda **items: defaultdict(int, **items), UserDict, dict])
def test_a_key_beside_the_schema_is_refused_in_any_mapping(kind: Any) -> None:
    element = kind(a=1, typo=2)
    with pytest.raises(SparkError, match=r"typo|field .?b"):
        kept(LONGS, {"a": 1, "b": 2}, element)
    with pytest.raises(SparkError, match=r"typo|field .?b"):
        kept(LONGS, element)


@pytest.mark.parametrize("element", [Counter(a=1), defaultdict(int, a=1), UserDict(a=1), {"a": 1}], ids=repr)
def test_a_key_that_is_missing_is_null_and_no_value_is_made_up(element: Any) -> None:
    before = dict(element)
    assert kept(LONGS, element) == [{"a": 1, "b": None}]
    assert dict(element) == before


def test_a_name_with_a_dot_is_that_of_one_attribute() -> None:
    class Element:
        def __init__(self) -> None:
            setattr(self, "a.b", 1)
            self.a = type("Inner", (), {"b": 7})()

    assert kept(StructType([StructField("a.b", LongType())]), Element()) == [{"a.b": 1}]


def test_a_row_after_a_dict_goes_by_its_names() -> None:
    first = {"a": 1, "b": 2}
    assert kept(LONGS, first, Row(b=4, a=3)) == [first, {"a": 3, "b": 4}]
    assert kept(LONGS, first, Row(a=3)) == [first, {"a": 3, "b": None}]
    with pytest.raises(SparkError, match=r"^to_spark: element 1, field 'c': is not in the schema"):
        kept(LONGS, first, Row(a=3, b=4, c=5))
    with pytest.raises(SparkError, match=r"^to_spark: element 1, field 'a': two fields of"):
        kept(LONGS, first, Row("a", "a")(3, 4))
    for other in ((3, 4), 7):
        with pytest.raises(SparkError, match=r"^to_spark: element 1: .* is no mapping, as the first was"):
            kept(LONGS, first, other)


@dataclass
class Tree:
    size: int
    below: list[Tree | None]


@dataclass
class Wood:
    one: Tree
    other: Tree


@dataclass
class Leaf:
    size: int


@dataclass
class Pair:
    one: Leaf
    other: Leaf


def test_a_class_that_is_in_itself_is_no_schema() -> None:
    for schema, field in ((Tree, r"below\[\]"), (Wood, r"one.below\[\]")):
        with pytest.raises(SparkError, match=f"^to_spark: field '{field}': Tree is in itself, which no type of Spark"):
            Elements("to_spark", schema)
    assert Elements("to_spark", Pair).table([Pair(Leaf(1), Leaf(2))]).num_rows == 1


class Text(str):
    """Compares by identity."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class Number(int):
    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


@pytest.mark.parametrize(
    ("kind", "keys"),
    [(StringType(), (Text("a"), Text("a"))), (IntegerType(), (Number(1), Number(1)))],
    ids=["str", "int"],
)
def test_two_keys_that_become_one_are_refused_whatever_their_class(kind: Any, keys: tuple[Any, Any]) -> None:
    schema = StructType([StructField("found", MapType(kind, LongType()))])
    first, second = keys
    with pytest.raises(SparkError, match="is one that is there already"):
        kept(schema, {"found": {first: 1, second: 2}})
    [row] = kept(schema, {"found": {first: 1}})
    assert len(row["found"]) == 1
