"""Functions that rewritten code calls in place of operators, and of assignments that no expression can do."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, Final

__all__ = [
    "BINARY",
    "IDENTITIES",
    "IDENTITY",
    "IN_PLACE",
    "IN_PLACE_OF",
    "OPERATIONS",
    "Augmented",
    "Compared",
    "Target",
    "Valued",
]

_OPERATORS: Final = "iadd isub imul itruediv ifloordiv imod ipow ilshift irshift ior ixor iand imatmul"
IN_PLACE: Final = {name: getattr(operator, name) for name in _OPERATORS.split()}
"""What an assignment with an operator does to the value."""

IN_PLACE_OF: Final = {
    ast.Add: "iadd", ast.Sub: "isub", ast.Mult: "imul", ast.Div: "itruediv", ast.FloorDiv: "ifloordiv",
    ast.Mod: "imod", ast.Pow: "ipow", ast.LShift: "ilshift", ast.RShift: "irshift", ast.BitOr: "ior",
    ast.BitXor: "ixor", ast.BitAnd: "iand", ast.MatMult: "imatmul",
}  # fmt: skip
"""The same, by the operator."""

BINARY: Final = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitOr: "or_", ast.BitXor: "xor",
    ast.BitAnd: "and_", ast.MatMult: "matmul", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
    ast.Eq: "eq", ast.NotEq: "ne", ast.In: "is_in", ast.NotIn: "is_not_in",
}  # fmt: skip
IDENTITY: Final = {ast.Is: "is", ast.IsNot: "is_not"}
OPERATIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **{name: getattr(operator, name) for name in BINARY.values() if not name.startswith("is_")},
    "is_in": lambda one, other: one in other,
    "is_not_in": lambda one, other: one not in other,
}
"""What an operator between two values does."""

IDENTITIES: Final[dict[str, Callable[[Any, Any, int, int], bool]]] = {
    "is_of": lambda one, other, at_one, at_other: one is other,
    "is_not_of": lambda one, other, at_one, at_other: one is not other,
}
"""The same of those that look into nothing."""


class Target:
    """What is assigned to in place of an attribute or an item, where no expression can give the value: in a loop.

    It is made, and stored, in its turn, as what it stands for.
    """

    __slots__ = ("_entry", "_key", "_site", "_store")

    def __init__(self, store: Callable[[Any, Any, Any, int], object], entry: Any, key: Any, site: int) -> None:
        self._store = store
        self._entry = entry
        self._key = key
        self._site = site

    def _stored(self, value: Any) -> None:
        self._store(value, self._entry, self._key, self._site)

    value = property(None, _stored)


class Augmented(Target):
    """The same for an assignment with an operator: what it is of is evaluated once."""

    __slots__ = ("_at_load", "_load", "_operation")

    def __init__(
        self,
        load: Callable[[Any, Any, int], Any],
        at_load: int,
        operation: tuple[Callable[[Any, Any, int, int], Any], int, int] | None,
        store: Callable[[Any, Any, Any, int], object],
        entry: Any,
        key: Any,
        site: int,
    ) -> None:
        super().__init__(store, entry, key, site)
        self._load = load
        self._at_load = at_load
        self._operation = operation  # and the sites of the two values; None: they are not looked into

    def _loaded(self) -> Any:
        value = self._load(self._entry, self._key, self._at_load)
        return value if self._operation is None else _Operated(value, *self._operation)

    value = property(_loaded, Target._stored)


class _Operated:
    """A value that is to be changed by an operator."""

    def __init__(
        self, value: Any, operation: Callable[[Any, Any, int, int], Any], at_value: int, at_operand: int
    ) -> None:
        self._value = value
        self._operation = operation
        self._sites = at_value, at_operand

    def _operate(self, operand: Any) -> Any:
        return self._operation(self._value, operand, *self._sites)


for _name in IN_PLACE:
    setattr(_Operated, f"__{_name}__", _Operated._operate)


class Compared:
    """One of the values that are compared in a chain: each pair is looked into as it is compared."""

    __slots__ = ("_operation", "_site", "_value")

    def __init__(self, value: Any, site: int, operation: Callable[[Any, Any, int, int], Any] | None = None) -> None:
        self._value = value
        self._site = site
        self._operation = operation  # with the next one; of the last, none

    def __eq__(self, other: Any) -> Any:
        assert self._operation is not None
        return self._operation(self._value, other._value, self._site, other._site)

    __hash__ = None  # type: ignore[assignment]


class Valued:
    """A value in a pattern, where only an attribute may stand."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value
