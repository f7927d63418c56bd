"""Functions of the standard library with a state of their own, in modules that are trusted with the rest.

A call of one reads or changes that state, as an access of a place that no object stands for. Some state is read by
operations that no call shows: `isinstance` reads that of `ABC.register`. A call that changes such state is named, if
other threads live meanwhile.
"""

from __future__ import annotations

import abc
import codecs
import contextlib
import copyreg
import functools
import logging
import threading
import warnings
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, Final

__all__ = ["CHANGES", "NAMED", "USES", "place_and_use", "stored_in_exception"]

_dispatching: Final[Any] = functools.singledispatch(lambda _: None)


class _Dispatching:
    method = functools.singledispatchmethod(lambda _: None)


def _key(function: Any) -> int:
    """A number that tells a function from all others; those that are made anew for each use have one code."""
    function = function.__func__ if type(function) is MethodType else function
    return id(function.__code__ if type(function) is FunctionType else function)


READS: Final = "reads"
CHANGES: Final = "changes"
NAMED: Final = "named"

USES: Final[dict[int, tuple[str, str]]] = {
    _key(_dispatching): ("functools.singledispatch", READS),
    _key(_dispatching.dispatch): ("functools.singledispatch", READS),
    _key(_dispatching.register): ("functools.singledispatch", CHANGES),
    **(
        {_key(_Dispatching().method): ("functools.singledispatch", READS)}
        if type(_Dispatching().method) is FunctionType
        else {}
    ),
    _key(functools.singledispatchmethod.register): ("functools.singledispatch", CHANGES),
    _key(threading.stack_size): ("threading.stack_size", CHANGES),
    _key(logging.addLevelName): ("logging.levels", CHANGES),
    _key(logging.getLevelName): ("logging.levels", READS),
    _key(logging.setLogRecordFactory): ("logging.factory", CHANGES),
    _key(logging.getLogRecordFactory): ("logging.factory", READS),
    **{
        _key(function): (f"{function.__module__}.{function.__qualname__}", NAMED)
        for function in (
            abc.ABCMeta.register, codecs.register, codecs.register_error, copyreg.pickle, logging.disable,
            logging.setLoggerClass, logging.captureWarnings, warnings.simplefilter, warnings.filterwarnings,
            warnings.resetwarnings, warnings.catch_warnings, contextlib.redirect_stdout, contextlib.redirect_stderr,
            contextlib.chdir,
        )
    },
}  # fmt: skip


def place_and_use(called: Any, kind: type) -> tuple[str, str] | None:
    """The place that a function or a class of a trusted module works on, and whether it reads or changes it.

    None: it has none. NAMED: what it changes is read unseen.
    """
    if kind is FunctionType:
        return USES.get(id(called.__code__))
    if kind is MethodType:
        function = called.__func__
        return USES.get(id(function.__code__ if type(function) is FunctionType else function))
    return USES.get(id(called))


def stored_in_exception(called: Any, name: str) -> Callable[..., list[str]] | None:
    """For a method in C of an exception that stores attributes: what gives their names, from what it is handed."""
    stored = _STORED.get(name)
    return stored if stored is not None and isinstance(called.__self__, BaseException) else None


def _notes(_: object) -> list[str]:
    return ["__notes__"]


def _names(state: object) -> list[str]:
    return list(state) if type(state) is dict else []


_STORED: Final[dict[str, Callable[..., list[str]]]] = {"add_note": _notes, "__setstate__": _names}
