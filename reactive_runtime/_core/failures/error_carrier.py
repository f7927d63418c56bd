"""The carrier of an error that an upstream has signalled: operators raise the carrier in place of the error.

The problem: operators are generators, and pass errors on by raising them. To raise an exception writes to it: Python
puts each frame that it leaves in front of its traceback, and the exception being handled becomes its context. But many
subscribers, on many threads at once, may get one instance: that of `Flow.error(...)`, of a hot source, of a future.
Then one thread reads the traceback of another thread, whose frames keep that thread's subscribers alive (3.13), and the
traceback after the end is not the one before. Without a GIL that is so in most runs, with one in few.

The answer: no operator raises an error that was signalled. Inside a drain it raises a *carrier*: `carried` makes one, a
`SignalledError`, for one drain. `signalled` takes the error out, to hand it to a user, or to keep it. The error is the
carrier's cause, for code that looks at the exception being handled: `logging.exception` in an `on_error`. A sink that
raises the error to its user raises a copy, `own_copy`, one for each thread that waits.
"""

from __future__ import annotations

import builtins
import struct
from contextlib import suppress
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final, TypeVar

from reactive_runtime._support.shown import shown

__all__ = ["SignalledError", "carried", "own_copy", "signalled"]

E = TypeVar("E", bound=BaseException)

ATTRIBUTES: Final = vars(BaseException)
"""Python's own access to the attributes of an exception, whatever its class does with the names."""

PYTHONS: Final = frozenset(
    item for item in vars(builtins).values() if isinstance(item, type) and issubclass(item, BaseException)
)
DICTIONARIES: Final = ("__dict__", "__weakref__")
POINTER: Final = struct.calcsize("P")


class SignalledError(Exception):
    """An error of an upstream, on its way through the generators of one drain. The drain's owner alone has it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error: Exception = error
        self.__cause__: BaseException | None = error

    def __str__(self) -> str:
        return f"an upstream signalled {shown(self.error)}"


def carried(error: Exception) -> SignalledError:
    """The carrier to raise for an error that was signalled, or that another thread raised."""
    return error if isinstance(error, SignalledError) else SignalledError(error)


def signalled(error: Exception) -> Exception:
    """The error itself, where it may be in a carrier."""
    return error.error if isinstance(error, SignalledError) else error


def own_copy(error: E) -> E:
    """A copy of an error that was signalled, for one thread that waits: raising it changes the copy's traceback only.

    It has the class, arguments, attributes, notes, cause, context and traceback of the error. It takes over whatever
    `__init__` made of the arguments: no code of the class is called. An error that cannot be copied like that is
    returned as it is: its class is written in C, and not Python's own, or has a `__del__`.
    """
    try:
        return _copied(error)
    except Exception:  # it has arguments, or attributes, that its class does not declare
        return error


def _copied(error: E) -> E:
    kind = type(error)
    if hasattr(kind, "__del__"):
        return error
    copy: E = _native(kind).__new__(kind, *ATTRIBUTES["args"].__get__(error))
    if type(copy) is not kind:
        return error
    for base in kind.__mro__:
        for name, attribute in vars(base).items():
            if isinstance(attribute, (MemberDescriptorType, GetSetDescriptorType)) and name not in DICTIONARIES:
                _take_over(attribute, error, copy)
    ATTRIBUTES["__suppress_context__"].__set__(
        copy, ATTRIBUTES["__suppress_context__"].__get__(error)
    )  # a cause set it
    values: dict[str, Any] = ATTRIBUTES["__dict__"].__get__(copy)
    values.update(ATTRIBUTES["__dict__"].__get__(error))
    if isinstance(notes := values.get("__notes__"), list):
        values["__notes__"] = notes.copy()
    return copy


def _native(kind: type[BaseException]) -> type[BaseException]:
    """The class of Python's own that lays out its instances. TypeError: one in between adds fields that only C sees."""
    while kind not in PYTHONS:
        base: type[BaseException] | None = kind.__base__
        assert base is not None
        seen = sum(isinstance(item, (MemberDescriptorType, GetSetDescriptorType)) for item in vars(kind).values())
        if kind.__basicsize__ - base.__basicsize__ > seen * POINTER:
            raise TypeError(f"instances of {kind.__name__} have more than their attributes")
        kind = base
    return kind


def _take_over(attribute: Any, error: BaseException, copy: BaseException) -> None:
    with suppress(AttributeError, TypeError):  # it has no value; or cannot be written, and was made of the arguments
        value = attribute.__get__(error)
        try:
            same = attribute.__get__(copy) is value  # also for what is not set in C, and reads as None
        except AttributeError:
            same = False
        if not same:
            attribute.__set__(copy, value)
