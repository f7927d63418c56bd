"""The steps of `AckedFlow`: each calls a function with a value, and settles the element where that is its end."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final, NoReturn, TypeVar

from reactive_runtime._core.fusion.step import Each, Step, describe
from reactive_runtime._support.shown import shown
from reactive_runtime.connect._elements.acked import Acked, acked, claim_of, joined

__all__ = [
    "Acknowledge",
    "Check",
    "Do",
    "Filter",
    "Join",
    "Map",
    "awaited",
    "called",
    "key_of",
    "refuse",
    "value_of",
]

T = TypeVar("T")

_new: Final = object.__new__
"""Makes an element in half of the time of a call of its class."""


class _OfFunction(Step[Any, Any]):
    """A step with a function."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def __str__(self) -> str:
        return f"{self.name}({describe(self.fn)})"


class Map(_OfFunction):
    """Give the result of the function, with the claim of the element."""

    name = "map"

    def on_next(self, element: Acked[Any]) -> Each[Acked[Any]]:
        try:
            value = self.fn(element.value)
        except BaseException as error:
            element.refuse(error)
            raise
        if value is None:
            _no_result(self.fn, element)
        mapped = _new(Acked)
        mapped.value, mapped.claim = value, element.claim
        yield mapped


class Filter(_OfFunction):
    """Acknowledge what the predicate drops."""

    name = "filter"

    def on_next(self, element: Acked[Any]) -> Each[Acked[Any]]:
        if _passes(self.fn, element):
            yield element


class Do(_OfFunction):
    """Call the function, and give the element on."""

    name = "for_each"

    def on_next(self, element: Acked[Any]) -> Each[Acked[Any]]:
        value_of(self.fn, element)
        yield element


class Join(Step[list[Any], Acked[Any]]):
    """One element for a list of them; its claim settles all."""

    name = "joined claims"

    def on_next(self, element: list[Acked[Any]]) -> Each[Acked[Any]]:
        yield acked([one.value for one in element], joined([claim_of(one) for one in element]))


class Check(Step[Any, Acked[Any]]):
    """Fail at an element that is not `Acked`."""

    name = "AckedFlow"

    def __init__(self, where: str) -> None:
        self.where = where

    def on_next(self, element: Any) -> Each[Acked[Any]]:
        if type(element) is not Acked:
            raise TypeError(f"{self.where}: {shown(element)} came, and is not Acked")
        yield element


class Acknowledge(Step[Acked[T], T]):
    """Acknowledge, and give the value."""

    name = "acknowledge"

    def on_next(self, element: Acked[T]) -> Each[T]:
        element.claim.settle(None)
        yield element.value


def refuse(element: Any) -> None:
    """An element that will not be delivered, of whichever operator."""
    if isinstance(element, Acked):
        element.refuse()


def value_of(fn: Callable[[Any], Any], element: Acked[Any]) -> Any:
    """The result of `fn` for the value. If `fn` raises an error, the element is refused."""
    try:
        return fn(element.value)
    except BaseException as error:
        element.refuse(error)
        raise


def _result_of(element: Acked[Any], operator: str, fn: Callable[..., Any], result: Any) -> Acked[Any]:
    if result is None:
        value, where = shown(element.value), f"{operator}({describe(fn)})" if operator else describe(fn)
        error = TypeError(f"{where}: the function returned None for {value}, and None is not an element (2.13)")
        element.refuse(error)
        raise error
    return element.with_value(result)


def _no_result(fn: Callable[..., Any], element: Acked[Any]) -> NoReturn:
    _result_of(element, "map", fn, None)
    raise AssertionError


def _passes(predicate: Callable[[Any], object], element: Acked[Any]) -> bool:
    if value_of(predicate, element):
        return True
    element.acknowledge()
    return False


def called(fn: Callable[[Any], Any], element: Acked[Any]) -> Acked[Any]:
    """The result of `fn` for the value, with the claim."""
    return _result_of(element, "", fn, value_of(fn, element))


def key_of(key: Callable[[Any], Hashable], element: Acked[Any]) -> Hashable:
    """The key of the value."""
    of_element: Hashable = value_of(key, element)
    return of_element


def awaited(fn: Callable[[Any], Coroutine[Any, Any, Any]]) -> Callable[[Acked[Any]], Coroutine[Any, Any, Acked[Any]]]:
    """`called`, for a coroutine function."""

    async def call(element: Acked[Any]) -> Acked[Any]:
        try:
            result = await fn(element.value)
        except BaseException as error:
            element.refuse(error)
            raise
        return _result_of(element, "", fn, result)

    return call
