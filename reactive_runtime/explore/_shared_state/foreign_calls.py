"""Calls of code that is not rewritten: what they are handed is accessed as they are called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from operator import attrgetter, itemgetter, methodcaller
from types import MethodType, MethodWrapperType, ModuleType
from typing import Any, Final

from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._shared_state.accesses import Accesses
from reactive_runtime.explore._shared_state.attributes import Attributes
from reactive_runtime.explore._shared_state.call_backs import CallBacks
from reactive_runtime.explore._shared_state.contents import MOST_LOOKED_AT, SCALARS, Contents
from reactive_runtime.explore._shared_state.file_places import FilePlaces
from reactive_runtime.explore._shared_state.kinds import BUILTIN, CACHE, FILES_PLACE, OPAQUE, PLAIN, Kinds, contents_of
from reactive_runtime.explore._shared_state.locations import Access, Locations
from reactive_runtime.explore._shared_state.points import Points

__all__ = ["BOUND", "CALLED", "GETTERS", "METHODS", "ForeignCalls"]

BOUND: Final = BUILTIN | {MethodWrapperType}
"""Types of methods in C."""
METHODS: Final = BOUND | {MethodType}
GETTERS: Final = (attrgetter, itemgetter, methodcaller)
CALLED: Final = BUILTIN | {CACHE, partial, *GETTERS}
"""Types of functions of which a function in C, which calls them, does not show what they do."""

_Before = list[tuple[Any, dict[str, Any]]]
"""Objects and classes, and the attributes that they had."""


class ForeignCalls:
    """What such calls have in common. Its fields stay as they are; the holder of the turn owns what they refer to."""

    __slots__ = (
        "_by_name", "_written", "accesses", "attributes", "call_backs", "calling", "contents", "files", "find", "kinds",
        "plain", "scheduler",
    )  # fmt: skip

    def __init__(
        self,
        scheduler: Scheduler,
        points: Points,
        locations: Locations,
        kinds: Kinds,
        accesses: Accesses,
        contents: Contents,
        attributes: Attributes,
        call_backs: CallBacks,
        files: FilePlaces,
    ) -> None:
        self.files = files
        self._by_name, self._written = points.by_name, points.written
        self.scheduler = scheduler
        self.find = locations.find
        self.kinds, self.plain = kinds, kinds.plain
        self.accesses = accesses
        self.contents = contents
        self.attributes = attributes
        self.call_backs, self.calling = call_backs, points.calling

    def handed(self, found: list[Access], entries: list[Any], site: int) -> _Before:
        """Code that is not looked into may read and store all attributes that it comes to: gives what they are."""
        before: _Before = []
        seen: set[int] = set()
        while entries and len(seen) <= MOST_LOOKED_AT:
            entry = entries.pop()
            kind = type(entry)
            if kind in SCALARS or id(entry) in seen:
                continue
            seen.add(id(entry))
            if kind in (list, tuple, set, dict):
                entries.extend((entry.values() if kind is dict else entry) if len(entry) <= MOST_LOOKED_AT else ())
                continue
            of_class = issubclass(kind, type)
            if not self.kinds.has_state(entry if of_class else kind):
                continue
            held = contents_of(entry)
            before.append((entry, held))
            for name in held.keys() | self._by_name:
                if name in self._written:
                    location = self.find(entry, name)
                    location.blind.add(site)
                    found.append((location, site, True, entry, name, None))
            if not of_class:
                entries.extend(held.values())
        return before

    def stored_since(self, before: _Before, site: int) -> None:
        """Attributes that have changed since are stored while threads run."""
        for entry, held in before:
            now = contents_of(entry)
            for name in held.keys() | now.keys():
                if held.get(name, before) is not now.get(name, before):
                    self._by_name.add(name)
                    self.attributes.writing(entry, name, site)


class ForeignCall:
    """One call, or all of one function at one site: what `called` is, is known before what it is handed.

    Made by the thread that calls, and not changed afterwards.
    """

    __slots__ = (
        "_blind", "_called", "_calls", "_depth", "_owner", "_place", "_reaches_further", "_shared", "_shown", "_site",
        "_whole", "_writes",
    )  # fmt: skip

    def __init__(
        self, shared: ForeignCalls, called: Any, name: str, site: int, owner: Any, shown: Callable[[Any, int], Any]
    ) -> None:
        kinds = shared.kinds
        if owner is None and type(called) in METHODS:
            owner = called.__self__
        elif owner is None:
            owner = called if kinds.of(type(called)) is OPAQUE else kinds.owner_of(called)
        if type(owner) is ModuleType:
            owner = None
        self._shared = shared
        self._called = called
        self._site = site
        self._shown = shown  # what is called instead of a function that is handed on
        self._depth = kinds.looks_at_attributes(called, name)
        self._whole = owner
        if owner is not None and kinds.of(type(owner)) is PLAIN and type(owner) not in kinds.records:
            owner = None
        self._owner = owner
        if kinds.evaluates(called):
            shared.accesses.unseen(called, site)
        self._writes = kinds.changes(called, name, owner)
        self._blind, self._place = kinds.place(called)
        self._calls = kinds.calls(called, name, owner)
        self._reaches_further = self._blind and kinds.reaches_further(called, name, owner)

    def run(self, *arguments: Any, **keywords: Any) -> Any:
        """Say what is accessed, and call."""
        shared, called, site = self._shared, self._called, self._site
        if not shared.scheduler.watching:
            return called(*arguments, **keywords)
        call_backs = shared.call_backs
        around = call_backs.entered
        found: list[Access] = []
        calling = site in shared.calling
        self._gather(found, arguments, keywords, calling)
        before: _Before = []
        if self._reaches_further:
            before = shared.handed(found, [*arguments, *keywords.values(), self._whole], site)
        if self._calls:
            arguments = tuple(self._in_c(x) if type(x) in CALLED else x for x in arguments)
            keywords = {k: self._in_c(x) if type(x) in CALLED else x for k, x in keywords.items()}
        if calling:
            return call_backs.during(found, called, *arguments, **keywords)
        if found:
            shared.accesses.accessed(found)
        call_backs.entered = False
        try:
            return called(*arguments, **keywords)
        finally:
            if call_backs.entered and not self._blind:  # which is named anyway
                call_backs.notice(site)
            call_backs.entered = call_backs.entered or around
            if before:
                shared.stored_since(before, site)

    def _in_c(self, function: Any) -> Callable[..., Any]:
        """Wrap a function in C that the program hands on: its calls are no call backs into the program."""
        shown, shared = self._shown(function, self._site), self._shared

        def called(*arguments: Any, **keywords: Any) -> Any:
            around, steps = shared.call_backs.entered, shared.scheduler.steps
            try:
                return shown(*arguments, **keywords)
            finally:
                if shared.scheduler.steps != steps:  # other threads have begun functions meanwhile
                    shared.call_backs.entered = around

        return called

    def _gather(self, found: list[Access], arguments: tuple[Any, ...], keywords: dict[str, Any], calling: bool) -> None:
        """What is accessed of the owner, of what it is handed, and outside."""
        shared, owner, site, blind = self._shared, self._owner, self._site, self._blind
        contents, plain = shared.contents, shared.plain
        for entry in arguments:
            if type(entry) not in plain:
                contents.gather(found, entry, site, self._writes and owner is None, blind)
        for entry in keywords.values():
            if type(entry) not in plain:
                contents.gather(found, entry, site, self._writes and owner is None, blind)
        if self._called is print:
            file = keywords.get("file", sys.stdout)
            if file is not None and file is not shared.kinds.stdout and file is not sys.__stdout__:
                contents.gather(found, file, site, True, blind)
        if owner is not None and not (found or self._depth or blind or calling):
            contents.touch(owner, site, self._writes)
        elif owner is not None:
            contents.gather(found, owner, site, self._writes, blind)
        elif self._place is FILES_PLACE and not blind:
            shared.files.gather(found, self._called, arguments, keywords, site)
        elif self._place is not None:
            shared.accesses.at_place(found, self._place, site, blind)
        if self._depth:
            contents.attributes(found, [*arguments, *keywords.values(), self._whole], site, self._depth, blind)
