"""Operations in C that call back into the program: a comparison by `__lt__`, a key, a factory, a generator.

Such an operation is not one step: other threads may go on while the program's code runs. Each rewritten function
sets `entered` first. An operation in C clears it before, looks at it afterwards, and sets it again where it was set.
From the run on in which the operation races, each call back is a point too, at which the operation accesses all that
it is handed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any, Final

from reactive_runtime.explore._instrument.operations import OPERATIONS
from reactive_runtime.explore._schedule.carriers import real_ident
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._shared_state.accesses import Accesses
from reactive_runtime.explore._shared_state.locations import Access
from reactive_runtime.explore._shared_state.points import Points

__all__ = ["CallBacks"]


class CallBacks:
    """The hook that rewritten functions tell when they begin. The holder of the turn owns it."""

    __slots__ = ("_accesses", "_inside", "_points", "_scheduler", "entered")

    def __init__(self, scheduler: Scheduler, points: Points, accesses: Accesses) -> None:
        self._scheduler = scheduler
        self._points = points
        self._accesses = accesses
        self._inside: dict[int, list[list[Access]]] = {}  # by thread: what its operations that call back access
        self.entered: bool = True
        """Whether a function of the program has begun since an operation in C was begun; True outside of one."""

    def begin(self) -> None:
        """Before each run."""
        self._inside.clear()
        if self._points.calling:
            self.__class__ = _Stepping  # pyright: ignore[reportAttributeAccessIssue]

    def begun(self) -> None:
        """A lambda begins."""
        self.entered = True

    def notice(self, *sites: int) -> None:
        """An operation in C has called back into the program; these are its sites."""
        if self._scheduler.watching and not self._points.frozen:
            for site in sites:
                self._points.calls_back(site)

    def during(self, found: list[Access], operation: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """Do an operation that is known to call back, and accesses what was found."""
        self._accesses.accessed(found)
        operations = self._inside.setdefault(self._scheduler.current.index, [])
        operations.append(found)
        try:
            return operation(*arguments, **keywords)
        finally:
            operations.pop()
            self._until_now(found)

    def _until_now(self, found: list[Access]) -> None:
        """The step that runs has accessed this, at some moment since its point."""
        scheduler = self._scheduler
        if scheduler.watching and not scheduler.aborting:
            for location, _, writes, *_ in found:
                self._accesses.touched(location, writes)
                if scheduler.tracking:
                    scheduler.note(scheduler.current, location, writes)


_DURING: Final[CodeType] = CallBacks.during.__code__
_entered: Final[Any] = vars(CallBacks)["entered"]


class _Stepping(CallBacks):
    """The same, where some calls back are points."""

    __slots__ = ()

    def _is_entered(self) -> bool:
        return bool(_entered.__get__(self))

    def _enter(self, value: bool) -> None:
        _entered.__set__(self, value)
        scheduler = self._scheduler
        if value and scheduler.watching and real_ident() == scheduler.current.ident:
            operations = self._inside.get(scheduler.current.index)
            if operations and _is_called_back(sys._getframe(1)):
                self._until_now(operations[-1])
                self._accesses.accessed(operations[-1])

    entered = property(_is_entered, _enter)  # pyright: ignore[reportAssignmentType]


def _is_called_back(frame: FrameType) -> bool:
    """Whether the function of the program that begins was called by an operation in C itself."""
    while frame.f_code.co_filename in _HOOKS and frame.f_back is not None:
        frame = frame.f_back
    caller = None if frame.f_code.co_filename.startswith(_HERE) else frame.f_back
    if caller is not None and caller.f_code in _OPERATORS:
        caller = caller.f_back
    return caller is not None and caller.f_code is _DURING


_HERE: Final = os.path.dirname(__file__) + os.sep
_HOOKS: Final = frozenset({_DURING.co_filename, Accesses.resumed.__code__.co_filename})
_OPERATORS: Final = frozenset(operator.__code__ for operator in OPERATIONS.values() if type(operator) is FunctionType)
"""Of operators that are no functions in C."""
