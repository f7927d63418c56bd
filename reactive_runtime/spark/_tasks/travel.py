"""A function that goes to the tasks has to be picklable: an error names the part that is not, with the way to it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import CellType, CodeType
from typing import Any

from reactive_runtime.errors import SparkError
from reactive_runtime.pipeline import Pipeline

__all__ = ["travels"]


def travels(what: str, fn: Callable[..., Any]) -> None:
    """SparkError names what `fn` captures that can't be pickled."""
    error = _unpicklable(fn)
    if error is None:
        return
    path = _captured(fn)
    if not path:
        raise SparkError(f"{what}: fn can't travel to the tasks: {error}") from error
    raise SparkError(
        f"{what}: fn can't travel to the tasks: {' in '.join(reversed(path))} can't be pickled: {error};"
        " make it inside fn, or use Threads and Timers for executors"
    ) from error


def _unpicklable(item: object) -> Exception | None:
    from pyspark import cloudpickle

    dumps: Callable[[Any], bytes] = cloudpickle.dumps
    try:
        dumps(item)
    except Exception as error:
        return error
    return None


def _captured(item: object, known: frozenset[int] = frozenset()) -> list[str]:
    """The way to what can't be pickled: names, from the outside in."""
    for name, value in _inside(item).items():
        if id(value) not in known and _unpicklable(value) is not None:
            inner = _captured(value, known | {id(value)})
            return [name if inner else f"{name!r} ({type(value).__name__})", *inner]
    return []


def _inside(item: object) -> dict[str, Any]:
    if isinstance(item, Pipeline):
        _, calls = item.__reduce__()
        return {name: argument for name, args, named in calls for argument in (*args, *named.values())}
    if isinstance(item, tuple | list):
        return {f"item {place}": value for place, value in enumerate(item)}
    if not inspect.isfunction(item):
        return dict(getattr(item, "__dict__", {}))
    cells = zip(item.__code__.co_freevars, item.__closure__ or (), strict=True)
    found = {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
    found |= {name: item.__globals__[name] for name in _names(item.__code__) if name in item.__globals__}
    return found | dict(zip(item.__code__.co_varnames, item.__defaults__ or (), strict=False))


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _names(code: CodeType) -> set[str]:
    """The globals that code may ask for, and functions inside it."""
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)
