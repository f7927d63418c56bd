"""Calls: of functions whose code is rewritten, which show what they do, and of all others."""

from __future__ import annotations

import os
import sys
from collections import namedtuple
from collections.abc import Callable
from functools import partial, reduce
from operator import attrgetter, itemgetter
from types import (
    BuiltinFunctionType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, Final, cast
from weakref import ReferenceType

from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._shared_state.caches import Caches
from reactive_runtime.explore._shared_state.deaths import Deaths
from reactive_runtime.explore._shared_state.foreign_calls import BOUND, GETTERS, METHODS, ForeignCall, ForeignCalls
from reactive_runtime.explore._shared_state.kinds import BUILTIN, CACHE, CONFIGURED, PLAIN, has_own, names_of
from reactive_runtime.explore._shared_state.outer_state import CHANGES, NAMED, place_and_use, stored_in_exception
from reactive_runtime.explore._shared_state.points import POINT, Points

__all__ = ["Calls"]

_NAMED: Final = BOUND | {FunctionType, MethodType, WrapperDescriptorType, MethodDescriptorType}
_OF_THE_FRAME: Final = (vars, globals, locals, dir, eval, exec)
"""Functions that look at the frame they are called from."""
_OF_AN_ATTRIBUTE: Final = ("__setattr__", "__delattr__", "__getattribute__")
_OF_A_DESCRIPTOR: Final = ("__get__", "__set__", "__delete__")
_HERE: Final = os.path.dirname(__file__) + os.sep
_NO_METHODS: Final = (type(None), GetSetDescriptorType, MemberDescriptorType)
"""Types of what a class has under the name of an attribute that is no method."""
_LASTING: Final = (ModuleType, type(None))
"""Types of what builtin functions are methods of, which live as long as the process."""
_OF_A_CLASS: Final = (WrapperDescriptorType, MethodDescriptorType)


class Calls:
    """The hooks for what is called, or kept to be called later.

    The holder of the turn owns its dictionaries, which outlive a run: they have nothing that a run frees, or it would
    die in a later run, in the middle of a step. Its other fields stay as they are.
    """

    __slots__ = (
        "_attributes", "_caches", "_deaths", "_foreign", "_kinds", "_methods", "_points", "_racing", "_safe",
        "_scheduler", "_special", "_wrapped", "_written",
    )  # fmt: skip

    def __init__(
        self, scheduler: Scheduler, points: Points, foreign: ForeignCalls, caches: Caches, deaths: Deaths
    ) -> None:
        self._deaths = deaths
        self._scheduler = scheduler
        self._points = points
        self._racing, self._written, self._methods = points.racing, points.written, points.methods
        self._foreign = foreign
        self._kinds = foreign.kinds
        self._attributes = attributes = foreign.attributes
        self._caches = caches
        self._special: dict[Any, Callable[..., Any]] = {
            **dict.fromkeys((getattr, setattr, delattr, hasattr), attributes.by_name),
            vars: attributes.mapping,
        }
        self._safe: dict[int, Any] = {}  # where this is called, which needs no look
        self._wrapped: dict[int, tuple[Any, Any]] = {}  # where this is called, and what is called instead

    def forget(self) -> None:
        """After the last run."""
        self._safe.clear()
        self._wrapped.clear()

    # -- hooks -------------------------------------------------------------------------------------------------

    def take(self, entry: Any, name: str, site: int) -> Any:
        """An attribute that is kept, or handed on: a method of a container is then called where it is not seen."""
        kind, kinds = type(entry), self._kinds
        if name in self._written and (
            kind in kinds.plain or kinds.of(kind) is PLAIN or type(kinds.method(kind, name)) in _NO_METHODS
        ):
            value = self._attributes.load(entry, name, site)
        else:
            value = getattr(entry, name)
        if type(value) in METHODS and self._scheduler.watching and kinds.of(type(value.__self__)) is not PLAIN:
            if type(value) is MethodType and kinds.shows(value.__func__):
                return value
            return _Method(self._handing, value, site)
        return value

    def call(self, entry: Any, name: str, site: int) -> Any:
        """An attribute that is called: mostly a method, which is never stored."""
        if self._methods.get(site) is type(entry):
            return getattr(entry, name)
        return self._dispatched(entry, name, site)

    def _dispatched(self, entry: Any, name: str, site: int) -> Any:
        if not self._scheduler.watching:
            return getattr(entry, name)
        kind, kinds = type(entry), self._kinds
        if not issubclass(kind, ModuleType):
            method = kinds.method(kind, name)
            if kinds.of(kind) is not PLAIN and method is not None:
                value = getattr(entry, name)
                return value if kinds.shows(getattr(value, "__func__", value)) else self._handing(value, site, entry)
            if (
                type(method) is FunctionType
                and kinds.known(method)
                and self._racing[site] != POINT
                and name not in self._points.stored_methods
                and not has_own(entry, kind, name)
            ):
                self._points.called.add(name)
                self._methods[site] = kind
                return getattr(entry, name)
        return self.function(self._attributes.load(entry, name, site), site)

    def function(self, called: Any, site: int) -> Any:
        """What is called, or what is called instead: it says first what is about to be accessed."""
        if self._safe.get(site) is called or not self._scheduler.watching:
            return called
        known = self._wrapped.get(site)
        if known is not None and known[0] is called:
            return known[1]
        kind = type(called)
        if kind is BuiltinFunctionType and called in _OF_THE_FRAME:
            return self._of_the_frame(called, site, _frame_of_the_program())
        if kind is _Method:
            return self._handing(called.method, site)
        use = place_and_use(called, kind)
        if use is not None:
            return self._at_place(called, *use, site)
        if called is ReferenceType:
            return self._deaths.making
        if self._shows(called, kind, site):
            return called
        instead = self._handing(called, site)
        if _lasts(called, kind):
            self._wrapped[site] = (called, instead)
        return instead

    def _shows(self, called: Any, kind: type, site: int) -> bool:
        """Whether a call shows what it does, or does nothing that others see: as it is, or always at that site."""
        kinds = self._kinds
        always = True
        if kind is FunctionType:
            shows = kinds.known(called)
            always = called.__closure__ is None and _lasts(called, kind)
        elif kind is MethodType:
            return kinds.shows(called.__func__) or (
                kinds.known(called.__func__) and kinds.of(type(called.__self__)) is PLAIN
            )
        elif issubclass(kind, type):
            shows = kinds.builds(called)
        elif kind in BUILTIN:
            shows = kinds.is_free(called)
        else:
            return type(kinds.method(kind, "__call__")) is FunctionType and kinds.of(kind) is PLAIN
        if shows and always:
            self._safe[site] = called
        return shows

    def handed_on(self, called: Any, site: int) -> Any:
        """A function that a thread is to call, as points."""
        return self._handing(called, site)

    # -- what is called instead --------------------------------------------------------------------------------

    def _at_place(self, called: Any, place: str, use: str, site: int) -> Callable[..., Any]:
        """A function with a state of its own."""
        accesses = self._foreign.accesses

        def in_turn(*arguments: Any, **keywords: Any) -> Any:
            if use is not NAMED:
                accesses.at(place, site, use is CHANGES)
            elif self._scheduler.has_others():
                accesses.unseen(called, site)
            return called(*arguments, **keywords)

        return in_turn

    def _of_the_frame(self, called: Any, site: int, frame: FrameType) -> Any:
        """A function that looks at the frame it is called from, by another name."""
        attributes, accesses = self._attributes, self._foreign.accesses
        if called is vars:
            return lambda *given: attributes.mapping(called, given, {}, site) if given else frame.f_locals
        if called is globals:
            return lambda: accesses.mapped(frame.f_globals)
        return accesses.unseen(called, site) if called in (eval, exec) else called

    def _handing(self, called: Any, site: int, owner: Any = None) -> Any:
        """`called`, which is code that is not rewritten: what it is handed is accessed as it is called."""
        kind = type(called)
        name = called.__name__ if kind in _NAMED else ""
        if kind in BUILTIN:
            special = self._special.get(called)
            if special is not None:
                return lambda *arguments, **keywords: special(called, arguments, keywords, site)
            if (stored := stored_in_exception(called, name)) is not None:
                return self._attributes.storing(called, stored, site)
        else:
            instead = self._standing_in(called, kind, name, site)
            if instead is not None:
                return instead
        run = ForeignCall(self._foreign, called, name, site, owner, self.function).run
        if called is namedtuple:  # which asks for the module that its caller stands in
            return lambda *given, **named: run(
                *given, **{"module": _frame_of_the_program().f_globals.get("__name__"), **named}
            )
        return run

    def _standing_in(self, called: Any, kind: type, name: str, site: int) -> Callable[..., Any] | None:
        """What does the same as `called` does, if that is known, and says what it accesses."""
        attributes = self._attributes
        if name in _OF_AN_ATTRIBUTE and kind in (MethodWrapperType, WrapperDescriptorType):
            return lambda *arguments: attributes.by_slot_wrapper(called, arguments, site)
        if kind is MethodWrapperType and type(called.__self__) is MemberDescriptorType and name in _OF_A_DESCRIPTOR:
            return lambda *arguments: attributes.by_descriptor(called, arguments, site)
        if self._kinds.is_partial(kind):
            inner = self.function(called.func, site)
            return lambda *arguments, **keywords: inner(*called.args, *arguments, **{**called.keywords, **keywords})
        if kind in GETTERS:
            return self._getting(called, site)
        if kind is MethodType and (changed := CONFIGURED.get(id(called.__func__))) is not None:
            return attributes.configuring(called, changed, site)
        if issubclass(kind, ReferenceType):
            return self._deaths.asking(called, site)
        if kind is CACHE:
            return self._caches.asking(called, site)
        if kind is MethodType and type(called.__func__) is CACHE:
            return partial(self._caches.asking(called.__func__, site), called.__self__)
        return None

    def _getting(self, called: Any, site: int) -> Callable[[Any], Any]:
        """`operator.attrgetter`, `itemgetter` and `methodcaller`: each does what an expression does."""
        got, item = self._attributes.got, self._foreign.contents.item
        made, given = called.__reduce__()
        if type(called) is itemgetter:
            return lambda entry: _only([item(entry, key, site) for key in given])
        if type(called) is attrgetter:
            paths = [path.split(".") for path in given]
            return lambda entry: _only([reduce(lambda one, name: got(one, name, site), path, entry) for path in paths])
        keywords = made.keywords if self._kinds.is_partial(type(made)) else {}
        name, *rest = (*made.args, *given) if keywords else given
        return lambda entry: self.function(got(entry, name, site), site)(*rest, **keywords)


class _Method:
    """A method of a container that was taken: it is a point when it is called, not when it is looked up."""

    __slots__ = ("__weakref__", "_handing", "_site", "method")

    def __init__(self, handing: Callable[[Any, int], Any], method: Any, site: int) -> None:
        self._handing = handing
        self._site = site
        self.method = method

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._handing(self.method, self._site)(*arguments, **keywords)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The program takes it for the method."""
        return type(self.method)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.method, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.method.__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return repr(self.method)

    def __eq__(self, other: object) -> bool:
        return bool(self.method == (other.method if isinstance(other, _Method) else other))

    def __hash__(self) -> int:
        return hash(self.method)


def _lasts(called: Any, kind: type) -> bool:
    """Whether no run frees it: a builtin, a class, or a function that its module, or a class there, has by its name.

    The garbage collector alone frees a class, and it does not work in a run.
    """
    if kind in BOUND:
        return type(called.__self__) in _LASTING
    if kind is not FunctionType:
        return kind in _OF_A_CLASS or issubclass(kind, type)
    names = called.__globals__
    *outer, last = called.__qualname__.split(".")
    for name in outer:
        found = cast("Any", names.get(name))
        if not issubclass(type(found), type):
            return False
        names = names_of(found)
    found = cast("Any", names.get(last))
    return called is (found.__func__ if type(found) in (staticmethod, classmethod) else found)


def _frame_of_the_program() -> FrameType:
    """The innermost frame that is none of a hook."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_HERE) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _only(found: list[Any]) -> Any:
    return found[0] if len(found) == 1 else tuple(found)
