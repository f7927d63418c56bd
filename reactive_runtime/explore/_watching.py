"""Finds the fields that threads race for, and makes points of them.

Every access of rewritten code comes by here. Two accesses of one location, by two threads, one of them a store, that
no primitive puts in order, are a race: from the next run on, all sites that accessed it are points of choice. What is
always guarded by a lock never becomes one: the order of the guarded pieces is chosen where the lock is acquired, and
no other order can be distinguished. So a schedule has few points, and those are where threads can disagree.

Order is kept by vector clocks: a release leaves the clock of its thread behind, an acquire takes it over. A race that
one schedule hides, because a lock happened to be taken in between, is seen in another; an exhaustive search begins
anew when it has seen one.

Locations live for one run: an attribute of an object, a built-in container as a whole, a shared name. They keep their
objects alive until the run has ended, so that no two of them have the same `id`; what has a finaliser, a generator or
an object with `__del__`, dies when the program lets go of it, and takes its locations along.

What is reached in several ways has one location. A name that functions share is one with the attribute of its module.
Where threads access a mapping of attributes, `__dict__`, all attributes in it have the location of that container:
from the next run on, since only then it is known from the beginning.
"""

from __future__ import annotations

import builtins
import linecache
import os
import sys
import weakref
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial, reduce
from importlib.util import resolve_name
from operator import attrgetter, itemgetter, methodcaller
from types import (
    BuiltinFunctionType,
    FrameType,
    FunctionType,
    GeneratorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, Final

import reactive_runtime
from reactive_runtime.explore._carriers import real_ident
from reactive_runtime.explore._code_patcher import stored_in
from reactive_runtime.explore._kinds import (
    BUILTIN,
    CACHE,
    FILES,
    OPAQUE,
    OUTSIDE,
    PLAIN,
    STEPPING,
    VIEW,
    Kinds,
    contents_of,
    has_own,
    holders_of,
    mapping_of,
    module_of,
    mro,
    names_of,
    slots_of,
)
from reactive_runtime.explore._rewriting import (
    HIDDEN,
    HIDDEN_STORES,
    IDENTITIES,
    IN_PLACE,
    OPERATIONS,
    SITES,
    Augmented,
    Compared,
    Site,
    Target,
    Valued,
)
from reactive_runtime.explore._scheduler import Scheduler
from reactive_runtime.explore._task import CUT, Several, Stop, Task
from reactive_runtime.explore._threads import real_current_thread

__all__ = ["Watcher", "kept"]

_ALL_SHOWN: Final = bytes(entry or 2 for entry in range(256))
_NONE_SHOWN: Final = bytes(0 if entry == 2 else entry for entry in range(256))
TURNS: Final = 1_000
"""How often a loop may go round without a point."""
SHOWN: Final = 2
"""Of a site: no point, but to be shown. (1: a point.)"""
_LONGEST: Final = 60
"""Characters that are shown of a call."""
_BOUND: Final = BUILTIN | {MethodWrapperType}
_METHODS: Final = _BOUND | {MethodType}
_GETTERS: Final = (attrgetter, itemgetter, methodcaller)
_CALLED: Final = BUILTIN | {CACHE, partial, *_GETTERS}
"""Types of functions of which a function in C, which calls them, does not show what they do."""
_NAMED: Final = _BOUND | {FunctionType, MethodType, WrapperDescriptorType, MethodDescriptorType}
_qualname: Final = type.__dict__["__qualname__"].__get__
_PACKAGE: Final = os.path.dirname(reactive_runtime.__file__)
_OF_THE_FRAME: Final = (vars, globals, locals, dir, eval, exec)
"""Functions that look at the frame they are called from."""
_OF_A_DESCRIPTOR: Final = ("__get__", "__set__", "__delete__")
_MOST_LOOKED_AT: Final = 100
"""Objects whose attributes are looked at by one call."""
_SCALARS: Final = frozenset({int, str, bytes, float, bool, type(None)})
_DEEPEST_PATTERN: Final = 6
_self_of_super: Final = super.__dict__["__self__"].__get__
_WHOLE: Final = ("", "next")
"""Of a location: no attribute, but what a container has in it, or what comes next of an iterator."""
_LASTING: Final = (ModuleType, type(None))
_SIMPLE: Final = frozenset({list, dict, set})
"""Types of containers of which all is one location, as a rule."""


_finalised: Final[weakref.WeakKeyDictionary[type, bool]] = weakref.WeakKeyDictionary()
"""Whether objects of a type have a finaliser; written by the one exploration that runs."""


def kept(entry: Any, gone: Callable[[Any], object] | None = None) -> Any:
    """What keeps the id of `it` from being given to another object: itself; a weak reference, if it has a finaliser."""
    kind = type(entry)
    finalised = _finalised.get(kind)
    if finalised is None:
        finalised = kind is GeneratorType or any("__del__" in names_of(base) for base in mro(kind))
        _finalised[kind] = finalised
    if not finalised:
        return entry
    try:
        return weakref.ref(entry, gone)
    except TypeError:  # has slots, and none for this
        return entry


def _title(entry: Any) -> str:
    """What an object, a class or the names of a module are called in each run, with all that are like it."""
    kind = type(entry)
    if issubclass(kind, type):
        return f"class {module_of(entry)}.{_qualname(entry)}"
    if kind is dict:
        return f"module {entry.get('__name__')}"
    return f"{module_of(kind)}.{_qualname(kind)}"


class _Namespaces:
    """The names of modules, and the files whose functions share them. Those that share a file count as one."""

    def __init__(self, functions: Iterable[FunctionType]) -> None:
        self._homes: dict[int, str] = {}  # by the id of the names: one of their files
        self._files: dict[str, str] = {}  # that of each file
        self._first: dict[str, dict[str, Any]] = {}  # and its names
        for function in functions:
            self._join(function.__code__.co_filename, function.__globals__)

    def _join(self, file: str, names: dict[str, Any]) -> None:
        one, other = self._homes.get(id(names)), self._files.get(file)
        home = one or other or file
        if one is None or other is None:
            self._homes[id(names)] = self._files[file] = home
            self._first.setdefault(home, names)
        elif one != other:
            self._homes.update((key, home) for key, value in self._homes.items() if value == other)
            self._files.update((key, home) for key, value in self._files.items() if value == other)

    def home(self, entry: Any) -> str:
        """One of the files whose functions share these names; empty, where it is none of them."""
        return self._homes.get(id(entry), "")

    def home_of_file(self, file: str) -> str:
        """The same, of what the functions of a file share."""
        return self._files.get(file, "")

    def of(self, home: str) -> dict[str, Any] | None:
        """The names that the functions of a file share."""
        return self._first.get(home)

    def first(self, entry: Any) -> Any:
        """What stands for these names; what is none of them stands for itself."""
        return self._first.get(self.home(entry), entry)


class _Mapping:
    """What has the attributes of an object, of several, of a class or of a module, in one run."""

    __slots__ = ("contents", "it", "titles")

    def __init__(self, found: dict[str, Any]) -> None:
        self.it = found
        self.titles: set[str] = set()  # of what has it
        self.contents: dict[str, Any] | None = None  # when it was last looked at; None: no thread has accessed it


class _Location:
    """One location, in one run."""

    __slots__ = ("blind", "it", "looked", "r", "sites", "stored", "stored_by", "w")

    def __init__(self, entry: Any) -> None:
        self.it: Any = entry
        self.w: int = 0  # chains, as those of stand-ins
        self.r: int = 0
        self.stored_by: int = -1  # the thread that stored last,
        self.stored: int = 0  # and when, by its own clock
        self.looked: dict[int, int] = {}  # thread: when it looked last, since then
        self.sites: set[int] = set()  # where it was accessed
        self.blind: set[int] = set()  # where by code that is not looked into


_Access = tuple[_Location, int, bool, Any, str, Any]
"""A location, the site, whether it is changed; the object and the attribute, if any; what is stored."""


class Watcher:
    """Watches the accesses of one exploration."""

    def __init__(
        self,
        scheduler: Scheduler,
        files: Iterable[str] = (),
        modules: Iterable[str] = (),
        functions: Iterable[FunctionType] = (),
    ) -> None:
        self._scheduler = scheduler
        self._namespaces = _Namespaces(functions)
        self._files = frozenset(files)
        self._kinds = Kinds(modules)
        self.racing: bytearray = bytearray(len(SITES) + 1024)
        """Which sites are points."""
        self.found: int = 0
        """How many sites are; more of them: what was seen before does not hold any more."""
        self.frozen = False
        """Whether there shall be no further points."""
        self._locations: dict[Any, _Location] = {}
        self._written: set[str] = set()  # names of attributes that are stored while threads run: others can't race
        self._shown: set[str] = set()  # of these names, those that are looked at for a run that is shown
        self._new: set[str] = set()
        self.by_name: set[str] = set()
        """Names of attributes that are stored by `setattr` and its like."""
        self.of_classes: set[str] = set()
        """Names of attributes of classes that are stored while threads run: they are loaded through others, too."""
        self._new_of_classes: set[str] = set()
        self._mappings: set[str] = set()  # of what attributes are reached through a mapping, too: see `_title`
        self._new_mappings: set[str] = set()
        self._mapped: dict[int, _Mapping] = {}  # by id: such mappings in this run
        self._asked: dict[int, list[Any]] = {}  # by thread: the caches that it asks, in this run
        self._alive: list[Any] = []  # what has a location under its mapping
        self._methods: dict[int, type] = {}  # where an attribute of that type is a method
        self._called: set[str] = set()  # names of these methods
        self._stored_methods: set[str] = set()  # such as are stored nevertheless, while threads run
        self._new_methods: set[str] = set()
        self._safe: dict[int, Any] = {}  # where this is called, which needs no look
        self._wrapped: dict[int, tuple[Any, Any]] = {}  # where this is called, and what is called instead
        self._blind: set[int] = set()  # where what raced was handed to code that is not looked into
        self._pending: set[int] = set()  # sites that are points from the next run on
        self.last: int = 0
        self.turns: int = 0  # how often a loop has gone round since that step
        self._by_site: dict[int, _Location] = {}  # where a load was last
        self._raced: set[_Location] = set()  # seen in this run
        self.entered: _Location | None = None  # the generator that is about to go on

    def prepare(self) -> None:
        """When all sites are known: attributes that are stored outside of `__init__` may race from the first run on."""
        self._written |= frozenset().union(*map(stored_in, self._files))

    def forget(self) -> None:
        """After the last run: drop what the program made, while its functions still are what they were."""
        self._drop()
        self._methods.clear()
        self._safe.clear()
        self._wrapped.clear()

    def _drop(self) -> None:
        if self._mapped or self._alive:
            for mapping in self._mapped.values():
                if mapping.contents is not None:
                    self._compare(mapping)
            self._mapped.clear()
            self._alive.clear()
        self._locations.clear()
        self._by_site.clear()
        self.entered = None
        self._asked.clear()
        for entry in self._raced:
            self._pending |= entry.sites
            self._blind |= entry.blind
        self._raced.clear()

    def not_looked_into(self) -> list[str]:
        """The calls that have changed, in code that is not looked into, what another thread accessed meanwhile."""
        for entry in self._raced:
            self._blind |= entry.blind
        sites = sorted((SITES[site] for site in self._blind), key=lambda site: (site.filename, site.line, site.column))
        found = (f"`{_text(site)}` at {_base(site.filename)}:{site.line}" for site in sites)
        return list(dict.fromkeys(found))

    def begin(self) -> None:
        """Before each run."""
        self._drop()
        self.last = -1
        if not self.frozen:
            self.learn()
        if len(self.racing) < len(SITES):
            self.racing.extend(bytes(len(SITES) - len(self.racing) + 1024))

    @property
    def has_more(self) -> bool:
        """Whether there is something to learn."""
        self._pending = {site for site in self._pending if not self.racing[site]}
        return bool(self._pending or self._new or self._new_methods or self._new_mappings)

    def learn(self) -> None:
        """Make points of what has raced, or waited in a loop, since."""
        if self._pending:
            self.mark(sorted(self._pending))
            self._pending.clear()
        if self._new_methods:
            self._stored_methods |= self._new_methods
            self._new |= self._new_methods
            self._new_methods.clear()
            self._methods.clear()
        if self._new or self._new_mappings:
            self._written |= self._new
            self.of_classes |= self._new_of_classes
            self._mappings |= self._new_mappings
            self.found += len(self._new) + len(self._new_mappings)
            self._new.clear()
            self._new_of_classes.clear()
            self._new_mappings.clear()

    def points(self) -> tuple[bytes, frozenset[str], frozenset[str], int]:
        """What is a point, for `go_back`."""
        return bytes(self.racing), frozenset(self._written), frozenset(self.of_classes), self.found

    def go_back(self, points: tuple[bytes, frozenset[str], frozenset[str], int]) -> None:
        """What has become a point since is none. What is to be learned is forgotten."""
        racing, written, of_classes, self.found = points
        self.racing[: len(racing)] = racing
        self._written.intersection_update(written)
        self.of_classes.intersection_update(of_classes)
        self._pending.clear()
        self._new.clear()
        self._new_of_classes.clear()
        self._new_methods.clear()
        self._new_mappings.clear()

    def write(self, name: str, *, of_class: bool = False) -> None:
        """Attributes of that name are stored: from the next run on their loads are looked at."""
        self._new.add(name)
        if of_class:
            self._new_of_classes.add(name)

    def _reached_by_mapping(self, entry: Any) -> None:
        """The program asks for the mapping that has the attributes of an object, a class or a module."""
        found = entry if self._namespaces.home(entry) else mapping_of(entry)
        if found is not None:
            mapping = self._mapped.get(id(found))
            if mapping is None:
                mapping = self._mapped[id(found)] = _Mapping(found)
            mapping.titles.add(_title(found if issubclass(type(entry), ModuleType) else entry))

    def _known_otherwise(self, entry: Any, name: str) -> _Location | None:
        """The location of an attribute, or of what a container has in it, where another key stands for it as well."""
        namespaces = self._namespaces
        found: _Location | None = None
        if name in _WHOLE:
            first = namespaces.first(entry)
            return None if first is entry else self._of_mapping(first)
        whole = mapping_of(entry)
        if whole is not None and _title(whole if issubclass(type(entry), ModuleType) else entry) in self._mappings:
            found = self._of_mapping(whole)
        elif home := namespaces.home(whole):
            found = self._of_name(f"{home}:{name}")
        if found is not None:
            key = (id(entry), name)
            self._alive.append(kept(entry, lambda _: self._locations.pop(key, None)))
        return found

    def _of_mapping(self, mapping: Any) -> _Location:
        """The one location of all that a mapping has in it."""
        mapping = self._namespaces.first(mapping)
        key = (id(mapping), "")
        location = self._locations.get(key)
        if location is None:
            location = self._locations[key] = _Location(mapping)
        return location

    def _of_name(self, key: str) -> _Location:
        """The location of a name that functions share: of their module, or of the function around them."""
        location = self._locations.get(key)
        if location is None:
            file, _, name = key.rpartition(":")
            home = self._namespaces.home_of_file(file)
            namespace = self._namespaces.of(home)
            if namespace is not None and _title(namespace) in self._mappings:
                location = self._of_mapping(namespace)
            elif home in ("", file):
                location = _Location(key)
            else:
                location = self._of_name(f"{home}:{name}")
            self._locations[key] = location
        return location

    def _is_one_place(self, mapping: _Mapping) -> None:
        """From the next run on, what it has in it has one location, however it is reached."""
        self._new_mappings |= mapping.titles - self._mappings

    def _compare(self, mapping: _Mapping) -> None:
        """What has changed in a mapping, since the last look, are attributes that are stored while threads run."""
        now = {name: value for name, value in dict.items(mapping.it) if type(name) is str}
        before = now if mapping.contents is None else mapping.contents
        mapping.contents = now
        for name in {**before, **now}:
            if before.get(name, mapping) is not now.get(name, mapping) and name not in self._written:
                self._new.add(name)
                self.by_name.add(name)

    def may_race(self, names: Iterable[str], of_classes: Iterable[str]) -> None:
        """Attributes of these names are stored while threads run."""
        self.of_classes |= set(of_classes)
        self.by_name |= set(names)
        self._written |= self.by_name

    def mark(self, sites: list[int]) -> None:
        """Make points of these."""
        for site in sites:
            if not self.racing[site]:
                self.racing[site] = 1
                self.found += 1
                self._methods.pop(site, None)
                self._written.add(SITES[site].what.rpartition(" ")[2].rpartition(".")[2])

    def show(self, yes: bool) -> None:
        """Tell `scheduler.step_log` of all accesses, also of those that are no points."""
        if yes:
            self._shown |= {site.stores for site in SITES} - self._written - {""}
            self._written |= self._shown
        else:
            self._written -= self._shown
            self._shown.clear()
        self.racing[:] = self.racing.translate(_ALL_SHOWN if yes else _NONE_SHOWN)

    def hooks(self) -> dict[str, Any]:
        """What the calls of rewritten code call."""
        scheduler, watcher = self._scheduler, self
        locations, racing = self._locations, self.racing
        reached, touched = self._reached, self._touched

        mappings, in_mappings = self._mappings, self._mapped
        by_site, written, methods = self._by_site, self._written, self._methods
        of_classes = self.of_classes
        called_names, stored_methods, new_methods = self._called, self._stored_methods, self._new_methods
        safe, wrapped = self._safe, self._wrapped
        kinds = self._kinds
        plain = kinds.plain

        def load(entry: Any, name: str, site: int) -> Any:
            """An attribute, to look into further. `access`, written out: most accesses are of this kind."""
            if name not in written or not scheduler.watching:
                return getattr(entry, name)
            location = by_site.get(site)
            if location is None or location.it is not entry:
                if name in of_classes:
                    accessed([(find(one, name), site, False, one, name, None) for one in holders_of(entry)])
                    return getattr(entry, name)
                location = by_site[site] = find(entry, name)
                location.sites.add(site)
            me = scheduler.current
            if racing[site]:
                if scheduler.step_log is None and real_ident() == me.ident:  # `reached`, written out
                    me.location, me.writes, me.what = location, False, site
                    scheduler.step(me)
                    if scheduler.tracking:  # `Scheduler.note`, written out
                        me.chain = chain = hash((me.chain, location.w))
                        location.r = (location.r + chain) & 0xFFFF_FFFF_FFFF_FFFF
                        if scheduler.observer is not None:
                            scheduler.observer.noted(me, location, False)
                else:
                    reached(location, site, False, entry, name)
            index = me.index
            by = location.stored_by
            if by >= 0 and by != index and (by >= len(me.vc) or me.vc[by] < location.stored):
                touched(location, False)
            else:
                location.looked[index] = me.vc[index]
            return getattr(entry, name)

        def take(entry: Any, name: str, site: int) -> Any:
            """An attribute that is kept, or handed on: a method of a container is then called where it is not seen."""
            kind = type(entry)
            if name in written and (kind in plain or kinds.of(kind) is PLAIN or kinds.method(kind, name) is None):
                value = load(entry, name, site)
            else:
                value = getattr(entry, name)
            if type(value) in _METHODS and scheduler.watching and kinds.of(type(value.__self__)) is not PLAIN:
                if type(value) is MethodType and kinds.shows(value.__func__):
                    return value
                return _Method(handing, value, site)
            return value

        def call(entry: Any, name: str, site: int) -> Any:
            """An attribute that is called: mostly a method, which is never stored."""
            if methods.get(site) is type(entry):
                return getattr(entry, name)
            return dispatched(entry, name, site)

        def dispatched(entry: Any, name: str, site: int) -> Any:
            if not scheduler.watching:
                return getattr(entry, name)
            kind = type(entry)
            if not issubclass(kind, ModuleType):
                method = kinds.method(kind, name)
                if kinds.of(kind) is not PLAIN and method is not None:
                    value = getattr(entry, name)
                    return value if kinds.shows(getattr(value, "__func__", value)) else handing(value, site, entry)
                if (
                    type(method) is FunctionType
                    and kinds.known(method)
                    and racing[site] != 1
                    and name not in stored_methods
                    and not has_own(entry, kind, name)
                ):
                    called_names.add(name)
                    methods[site] = kind
                    return getattr(entry, name)
            return function(load(entry, name, site), site)

        def function(called: Any, site: int) -> Any:
            """What is called, or what is called instead: it says first what is about to be accessed."""
            if safe.get(site) is called or not scheduler.watching:
                return called
            known = wrapped.get(site)
            if known is not None and known[0] is called:
                return known[1]
            kind = type(called)
            if kind is BuiltinFunctionType and called in _OF_THE_FRAME:
                return of_the_frame(called, site, sys._getframe(1))
            if kind is FunctionType:
                if kinds.known(called):
                    if called.__closure__ is None:
                        safe[site] = called
                    return called
            elif kind is MethodType:
                if kinds.shows(called.__func__) or (
                    kinds.known(called.__func__) and kinds.of(type(called.__self__)) is PLAIN
                ):
                    return called
            elif kind is _Method:
                return handing(called.method, site)
            elif issubclass(kind, type):
                if kinds.builds(called):
                    safe[site] = called
                    return called
            elif kind in BUILTIN:
                if kinds.is_free(called):
                    safe[site] = called
                    return called
            elif type(kinds.method(kind, "__call__")) is FunctionType and kinds.of(kind) is PLAIN:
                return called
            instead = handing(called, site)
            if (
                kind is not MethodType
                and type(getattr(called, "__self__", None) if kind in _BOUND else None) in _LASTING
            ):
                wrapped[site] = (called, instead)
            return instead

        def of_the_frame(called: Any, site: int, frame: FrameType) -> Any:
            """A function that looks at the frame it is called from, by another name."""
            if called is vars:
                return lambda *given: mapping(called, given, {}, site) if given else frame.f_locals
            if called is globals:
                return lambda: mapped(frame.f_globals)
            return unseen(called, site) if called in (eval, exec) else called

        def handing(called: Any, site: int, owner: Any = None) -> Any:
            """`called`, which is code that is not rewritten: what it is handed is accessed as it is called."""
            kind = type(called)
            name = called.__name__ if kind in _NAMED else ""
            if (special := specials.get(called) if kind in BUILTIN else None) is not None:
                return lambda *arguments, **keywords: special(called, arguments, keywords, site)
            if name in _ATTRIBUTE and kind in (MethodWrapperType, WrapperDescriptorType):
                return lambda *arguments: attribute(called, arguments, site)
            if kind is MethodWrapperType and type(called.__self__) is MemberDescriptorType and name in _OF_A_DESCRIPTOR:
                return lambda *arguments: slot(called, arguments, site)
            if kinds.is_partial(kind):
                inner = function(called.func, site)
                return lambda *arguments, **keywords: inner(*called.args, *arguments, **{**called.keywords, **keywords})
            if kind in _GETTERS:
                return getting(called, site)
            if kind is CACHE:
                return asking(called, site)
            if kind is MethodType and type(called.__func__) is CACHE:
                return partial(asking(called.__func__, site), called.__self__)
            if owner is None and kind in _METHODS:
                owner = called.__self__
            if type(owner) is ModuleType:
                owner = None
            depth = kinds.looks_at_attributes(called, name)
            whole = owner
            if owner is not None and kinds.of(type(owner)) is PLAIN and type(owner) not in kinds.records:
                owner = None
            if kinds.evaluates(called):
                unseen(called, site)
            writes = kinds.changes(called, name, owner)
            blind, place = kinds.place(called)
            calls = kinds.calls(called, name, owner)
            anything = blind and kinds.reaches_further(called, name, owner)

            def instead(*arguments: Any, **keywords: Any) -> Any:
                if scheduler.watching:
                    found: list[_Access] = []
                    for entry in arguments:
                        if type(entry) not in plain:
                            gather(found, entry, site, writes and owner is None, blind)
                    for entry in keywords.values():
                        if type(entry) not in plain:
                            gather(found, entry, site, writes and owner is None, blind)
                    if owner is not None and not (found or depth or blind):
                        touch(owner, site, writes)
                    elif owner is not None:
                        gather(found, owner, site, writes, blind)
                    elif place is not None:
                        at_place(found, place, site, blind)
                    if depth:
                        attributes(found, [*arguments, *keywords.values(), whole], site, depth, blind)
                    before = handed(found, [*arguments, *keywords.values(), whole], site) if anything else []
                    if found:
                        accessed(found)
                    if before:
                        try:
                            return called(*arguments, **keywords)
                        finally:
                            stored_since(before, site)
                    if calls:
                        arguments = tuple(function(x, site) if type(x) in _CALLED else x for x in arguments)
                        keywords = {k: function(x, site) if type(x) in _CALLED else x for k, x in keywords.items()}
                return called(*arguments, **keywords)

            if called is namedtuple:  # which asks for the module that its caller stands in
                return lambda *given, **named: instead(
                    *given, **{"module": sys._getframe(1).f_globals.get("__name__"), **named}
                )
            return instead

        def touch(entry: Any, site: int, writes: bool) -> None:
            """`entry` is looked into, or changed."""
            if type(entry) in _SIMPLE and id(entry) not in in_mappings:
                access(entry, "", entry, site, writes)
                return
            found: list[_Access] = []
            gather(found, entry, site, writes)
            if found:
                accessed(found)

        def gather(found: list[_Access], entry: Any, site: int, writes: bool, blind: bool = False) -> None:
            """`entry` is looked into, or changed: what is accessed then depends on what it is."""
            if type(entry) in _SIMPLE and not blind and id(entry) not in in_mappings:
                found.append((find(entry, ""), site, writes, entry, "", entry))
                return
            kind = kinds.of(type(entry))
            if type(entry) in kinds.records:
                attributes(found, [entry], site, 1, blind, writes)
            if kind is PLAIN:
                return
            if id(entry) in in_mappings:
                watcher._is_one_place(in_mappings[id(entry)])
                watcher._compare(in_mappings[id(entry)])
            if kind in (FILES, OUTSIDE):
                at_place(found, kinds.outside(type(entry)), site, kind is OUTSIDE)
                return
            if type(entry) is GeneratorType:
                watcher.entered = find(entry, "next")
            if kind is not VIEW:
                name = "next" if kind is STEPPING else ""
                location = find(entry, name)
                found.append((location, site, writes or kind is STEPPING, entry, name, entry))
                if blind or kind is OPAQUE:
                    location.blind.add(site)
            if kind in (VIEW, STEPPING, OPAQUE):
                for other in kinds.beneath(entry):
                    gather(found, other, site, writes and kind is not STEPPING, blind or kind is OPAQUE)

        def attributes(
            found: list[_Access], entries: list[Any], site: int, depth: int, blind: bool, writes: bool = False
        ) -> None:
            """All attributes are looked at, and those of what these are, to a depth."""
            seen: set[int] = set()
            while entries and depth:
                further: list[Any] = []
                for entry in entries:
                    kind = type(entry)
                    if id(entry) in seen or issubclass(kind, ModuleType | type) or len(seen) > _MOST_LOOKED_AT:
                        continue
                    seen.add(id(entry))
                    if kind in (list, tuple, dict, set):
                        if kind is not tuple:
                            gather(found, entry, site, writes, blind)
                        further.extend(entry.values() if kind is dict else entry)
                        continue
                    if kinds.of(kind) is not PLAIN:
                        continue
                    for name in slots_of(entry):
                        if name in written:
                            found.append((find(entry, name), site, writes, entry, name, None))
                    for name in of_classes:
                        found.extend((find(one, name), site, writes, one, name, None) for one in holders_of(entry)[1:])
                    held = mapping_of(entry)
                    if held is not None:
                        mapped(entry)
                        gather(found, held, site, writes, blind)
                        further.extend(dict.values(held))
                entries, depth = further, depth - 1

        def handed(found: list[_Access], entries: list[Any], site: int) -> list[tuple[Any, dict[str, Any]]]:
            """Code that is not looked into may read and store all attributes that it comes to: gives what they are."""
            before: list[tuple[Any, dict[str, Any]]] = []
            seen: set[int] = set()
            while entries and len(seen) <= _MOST_LOOKED_AT:
                entry = entries.pop()
                kind = type(entry)
                if kind in _SCALARS or id(entry) in seen:
                    continue
                seen.add(id(entry))
                if kind in (list, tuple, set, dict):
                    entries.extend((entry.values() if kind is dict else entry) if len(entry) <= _MOST_LOOKED_AT else ())
                    continue
                of_class = issubclass(kind, type)
                if not kinds.has_state(entry if of_class else kind):
                    continue
                held = contents_of(entry)
                before.append((entry, held))
                for name in held.keys() | watcher.by_name:
                    if name in written:
                        location = find(entry, name)
                        location.blind.add(site)
                        found.append((location, site, True, entry, name, None))
                if not of_class:
                    entries.extend(held.values())
            return before

        def stored_since(before: list[tuple[Any, dict[str, Any]]], site: int) -> None:
            """Attributes that have changed since are stored while threads run."""
            for entry, held in before:
                now = contents_of(entry)
                for name in held.keys() | now.keys():
                    if held.get(name, before) is not now.get(name, before):
                        watcher.by_name.add(name)
                        writing(entry, name, site)

        def matched(value: Any, names: tuple[str, ...], classes: tuple[tuple[str, str | None], ...], site: int) -> Any:
            """A value is looked into by patterns, one after the other: as one step, which it is not."""
            if not scheduler.watching:
                return value
            found: list[_Access] = []
            for name, key in classes:  # those of the patterns are found by these names
                if key is None:
                    if name in written:
                        unseen(value, site)
                elif not name or name in written:
                    found.append((watcher._of_name(key), site, False, None, key, None))
            entries, depth = [value], _DEEPEST_PATTERN
            while entries and depth:
                further: list[Any] = []
                for entry in entries:
                    kind = type(entry)
                    if kind in _SCALARS:
                        continue
                    gather(found, entry, site, False)
                    if kind in (list, tuple):
                        further.extend(entry[:_MOST_LOOKED_AT])
                    elif kind is dict:
                        further.extend(list(dict.values(entry))[:_MOST_LOOKED_AT])
                    elif kinds.of(kind) is PLAIN:
                        given = kinds.method(kind, "__match_args__")
                        for name in {*names, *(given if type(given) is tuple else ())}:
                            if name in of_classes:
                                found.extend(
                                    (find(one, name), site, False, one, name, None) for one in holders_of(entry)
                                )
                            elif name in written:
                                found.append((find(entry, name), site, False, entry, name, None))
                            further.append(dict.get(mapping_of(entry) or {}, name))
                entries, depth = further, depth - 1
            for location, *_ in found:
                location.blind.add(site)
            if found:
                accessed(found)
            return value

        def inherited(entry: Any, name: str, site: int) -> Any:
            """An attribute of `super()`: of one of the classes."""
            if scheduler.watching and name in of_classes:
                holders = holders_of(_self_of_super(entry))[1:]
                accessed([(find(one, name), site, False, one, name, None) for one in holders])
            return getattr(entry, name)

        def unseen(entry: Any, site: int) -> Any:
            """What is done with it can't be seen: code is run from a text, a name is reached through its cell."""
            if scheduler.watching and not SITES[site].filename.startswith(_PACKAGE):  # which has rewritten what it runs
                watcher._blind.add(site)
            return entry

        def binding(key: str, site: int) -> Callable[[Any], Any]:
            """A function or a class gets its name, which functions share."""

            def bound(entry: Any) -> Any:
                at(key, site, True)
                return entry

            return bound

        def imported(name: str, package: str | None, names: tuple[str, ...], site: int) -> None:
            """Names of a module are imported."""
            if scheduler.watching:
                if package is not None:
                    name = resolve_name(name, package)
                module = sys.modules.get(name)
                if module is not None:
                    accessed([(find(module, one), site, False, module, one, None) for one in names if one in written])

        def slot(called: Any, arguments: tuple[Any, ...], site: int) -> Any:
            """A slot is read or stored through its descriptor."""
            if scheduler.watching and arguments and arguments[0] is not None:
                name = called.__self__.__name__
                given = arguments if called.__name__ == "__set__" else arguments[:1]
                changed(called.__name__ != "__get__", (given[0], name, *given[1:]), site)
            return called(*arguments)

        def at_place(found: list[_Access], place: str, site: int, blind: bool) -> None:
            """Something that no object stands for: files, a database, the state of a package."""
            location = locations.get(place)
            if location is None:
                location = locations[place] = _Location(place)
            if blind:
                location.blind.add(site)
            if place.startswith("·"):  # to stop in the middle of a transaction would block others for real
                touched(location, True)
            else:
                found.append((location, site, True, None, place, None))

        def attribute(called: Any, arguments: tuple[Any, ...], site: int) -> Any:
            """`object.__setattr__` and its like."""
            given = arguments if type(called) is WrapperDescriptorType else (called.__self__, *arguments)
            if scheduler.watching and len(given) > 1:
                changed(called.__name__ != "__getattribute__", given, site)
                if given[1] == "__dict__" and len(given) > 2:
                    return replaced(given[0], lambda: called(*arguments))
            return called(*arguments)

        def changed(writes: bool, given: tuple[Any, ...], site: int) -> None:
            entry, name = given[:2]
            if name == "__dict__":
                mapped(entry)
            if name in HIDDEN_STORES and (writes or name in HIDDEN):
                unseen(entry, site)
            if writes and type(name) is str:
                watcher.by_name.add(name)
                writing(entry, name, site)
            found: list[_Access] = []
            if not writes and name in of_classes:
                found.extend((find(one, name), site, False, one, name, None) for one in holders_of(entry)[1:])
            if name in written and not (racing[site] == 1 and name in watcher._shown):  # a point for another name
                value = given[2] if len(given) > 2 else None
                found.append((find(entry, name), site, writes, entry, name, value))
            accessed(found)

        def by_name(called: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], site: int) -> Any:
            """`getattr`, `setattr` and their like."""
            if scheduler.watching and len(arguments) > 1:
                changed(called in (setattr, delattr), arguments if called is setattr else arguments[:2], site)
                if called is setattr and arguments[1] == "__dict__":
                    return replaced(arguments[0], lambda: called(*arguments))
            return called(*arguments, **keywords)

        def asking(called: Any, site: int) -> Callable[..., Any]:
            """`functools.cache` and `lru_cache`: a look, and, where there is nothing yet, a change: see `filled`."""
            orders = called.cache_parameters()["maxsize"] is not None  # by when each was asked for last

            def asked(*arguments: Any, **keywords: Any) -> Any:
                if not scheduler.watching:
                    return called(*arguments, **keywords)
                access(called, "", None, site, orders)
                mine = watcher._asked.setdefault(scheduler.current.index, [])
                mine.append(called)
                try:
                    return called(*arguments, **keywords)
                finally:
                    mine.pop()

            return asked

        def filled(value: Any, name: str, owner: Any, line: int, site: int) -> Any:
            """A function returns to a cache, which keeps the value, under the name in its owner or by the arguments."""
            if scheduler.watching:
                mine = watcher._asked.get(scheduler.current.index)
                if mine and _stands_at(mine[-1], SITES[site].filename, line):
                    access(mine[-1], "", None, site, True)
                elif isinstance(kinds.method(type(owner), name), cached_property):
                    access(owner, name, value, site, True)
            return value

        def getting(called: Any, site: int) -> Callable[[Any], Any]:
            """`operator.attrgetter`, `itemgetter` and `methodcaller`: each does what an expression does."""
            made, given = called.__reduce__()
            if type(called) is itemgetter:
                return lambda entry: only([item(entry, key, site) for key in given])
            if type(called) is attrgetter:
                paths = [path.split(".") for path in given]
                return lambda entry: only(
                    [reduce(lambda one, name: got(one, name, site), path, entry) for path in paths]
                )
            keywords = made.keywords if kinds.is_partial(type(made)) else {}
            name, *rest = (*made.args, *given) if keywords else given
            return lambda entry: function(got(entry, name, site), site)(*rest, **keywords)

        def only(found: list[Any]) -> Any:
            return found[0] if len(found) == 1 else tuple(found)

        def got(entry: Any, name: str, site: int) -> Any:
            """An attribute, by its name."""
            if scheduler.watching:
                changed(False, (entry, name), site)
            return getattr(entry, name)

        def mapped(entry: Any) -> Any:
            """The mapping that has its attributes is asked for."""
            if scheduler.active and not scheduler.quiet and real_ident() == scheduler.current.ident:
                watcher._reached_by_mapping(entry)
            return entry

        def mapping(called: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], site: int) -> Any:
            """`vars`, by another name."""
            return called(*map(mapped, arguments), **keywords)

        specials: dict[Any, Any] = {**dict.fromkeys((getattr, setattr, delattr, hasattr), by_name), vars: mapping}

        def look(value: Any, site: int) -> Any:
            """A value that is tested, compared, unpacked."""
            if type(value) in plain or not scheduler.watching:
                return value
            touch(value, site, False)
            return value

        def changing(value: Any, target: Any, site: int, operand: int) -> Any:
            """A local name is assigned to with an operator, by `value`."""
            if scheduler.watching and not (type(target) in plain and type(value) in plain):
                both(value, target, operand, site, True)
            return value

        def both(one: Any, other: Any, at_one: int, at_other: int, changes: bool = False) -> None:
            """The two values of an operation are looked into at once; the other is perhaps changed."""
            if type(one) in plain:
                touch(other, at_other, changes)
            elif type(other) in plain:
                touch(one, at_one, False)
            else:
                found: list[_Access] = []
                gather(found, one, at_one, False)
                gather(found, other, at_other, changes)
                if found:
                    accessed(found)

        def resumed(value: Any, site: int) -> Any:
            """A generator goes on: another thread that asks it for its next is refused from here on."""
            location = watcher.entered
            if location is not None and scheduler.watching:
                watcher.entered = None
                if racing[site]:
                    reached(location, site, True, None, "next")
                location.sites.add(site)
                touched(location, True)
            return value

        def each(entries: Any, site: int) -> Any:
            """What a loop goes through."""
            if type(entries) in plain or not scheduler.watching or kinds.of(type(entries)) is PLAIN:
                return entries
            return steps(entries, site)

        def steps(entries: Any, site: int) -> Iterator[Any]:
            if scheduler.watching and kinds.of(type(entries)) is not STEPPING:
                touch(entries, site, False)  # an iterator remembers what it was made of: a later change may end it
            iterator = iter(entries)
            while True:
                if scheduler.watching:
                    touch(entries, site, False)
                try:
                    entry = next(iterator)
                except StopIteration:
                    return
                yield entry

        def in_place(operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any, int, int], Any]:
            def operated(value: Any, operand: Any, site: int, at_operand: int) -> Any:
                if scheduler.watching and not (type(value) in plain and type(operand) in plain):
                    both(operand, value, at_operand, site, True)
                return operator(value, operand)

            return operated

        def operation(operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any, int, int], Any]:
            def operated(one: Any, other: Any, at_one: int, at_other: int) -> Any:
                if not (type(one) in plain and type(other) in plain) and scheduler.watching:
                    both(one, other, at_one, at_other)
                return operator(one, other)

            return operated

        def find(entry: Any, name: str) -> _Location:
            key = (id(entry), name)
            location = locations.get(key)
            if location is None:
                if mappings or issubclass(type(entry), ModuleType):
                    location = watcher._known_otherwise(entry, name)
                if location is None:
                    location = _Location(kept(entry, lambda _: locations.pop(key, None)))
                locations[key] = location
            return location

        def use(entry: Any, name: str, site: int) -> Any:
            """An attribute whose value is looked into."""
            value = load(entry, name, site) if name in written else getattr(entry, name)
            if type(value) not in plain and scheduler.watching:
                touch(value, site, False)
            return value

        def writing(entry: Any, name: str, site: int) -> None:
            """An attribute is about to be stored: that of a class is read through others, too."""
            if issubclass(type(entry), ModuleType) and (entry is builtins or name in vars(builtins)):
                unseen(entry, site)  # it is another builtin, or stands before one
            if issubclass(type(entry), type) and name not in of_classes:
                watcher.write(name, of_class=True)
            elif name not in written:
                watcher.write(name)
            if name in called_names and name not in stored_methods:
                new_methods.add(name)

        def store(value: Any, entry: Any, name: str, site: int) -> None:
            if scheduler.watching:
                writing(entry, name, site)
                access(entry, name, value, site, True)
            setattr(entry, name, value)

        def store_mapping(value: Any, entry: Any, name: str, site: int) -> None:
            """`entry.__dict__ = value`: other objects may have the same."""
            replaced(entry, lambda: store(value, entry, name, site))

        def replaced(entry: Any, store: Callable[[], object]) -> Any:
            """An object gets another mapping, which others may have, too. What it has in it stays where it was."""
            before = mapping_of(entry)
            result = store()
            mapped(entry)
            after = mapping_of(entry)
            if scheduler.active and after is not None:
                if id(after) in in_mappings:
                    watcher._is_one_place(in_mappings[id(after)])
                if before is not None and before is not after:
                    watcher._alive.append(before)
                    locations.setdefault((id(after), ""), watcher._of_mapping(before))
            return result

        def delete(entry: Any, name: str, site: int) -> None:
            if scheduler.watching:
                writing(entry, name, site)
                access(entry, name, None, site, True)
            delattr(entry, name)

        def access(entry: Any, name: str, value: Any, site: int, writes: bool) -> None:
            location = find(entry, name)
            if racing[site]:
                reached(location, site, writes, entry, name, value)
            location.sites.add(site)
            touched(location, writes)

        def accessed(found: list[_Access]) -> None:
            """All that one operation accesses, which is at one point: what it is to read may change until then."""
            if len(found) == 1:
                location, site, writes, entry, name, value = found[0]
                if racing[site]:
                    reached(location, site, writes, entry, name, value)
                location.sites.add(site)
                touched(location, writes)
                return
            points = [one for one in found if racing[one[1]]]
            if len(points) == 1:
                reached(*points[0])
            elif points:
                watcher._reached_together(points)
            for location, site, writes, *_ in found:
                location.sites.add(site)
                touched(location, writes)

        def item(entry: Any, key: Any, site: int) -> Any:
            if type(entry) not in plain and scheduler.watching:
                touch(entry, site, type(entry) in kinds.filling)
            return entry[key]

        def set_item(value: Any, entry: Any, key: Any, site: int) -> None:
            if type(entry) not in plain and scheduler.watching:
                touch(entry, site, True)
            entry[key] = value

        def delete_item(entry: Any, key: Any, site: int) -> None:
            if type(entry) not in plain and scheduler.watching:
                touch(entry, site, True)
            del entry[key]

        def at(key: str, site: int, writes: bool) -> None:
            """A name that functions share."""
            if scheduler.watching:
                location = locations.get(key)
                if location is None:
                    location = watcher._of_name(key)
                if racing[site]:
                    reached(location, site, writes, None, key)
                location.sites.add(site)
                touched(location, writes)

        def named(name: str, key: str, site: int) -> None:
            """A name of the module is loaded, which functions may share by an attribute of the module."""
            if name in written:
                at(key, site, False)

        def turn(site: int) -> None:
            """A loop goes round once more: perhaps it waits for another thread, and does nothing that is a point."""
            if not scheduler.watching:
                return
            me = scheduler.current
            if real_ident() != me.ident:
                return
            if racing[site] and racing[site] != SHOWN:
                me.location, me.writes, me.what = None, False, site
                scheduler.pause(me, site, sys._getframe(1))
                if scheduler.tracking:
                    me.chain = hash((me.chain, 4))
                return
            if watcher.last != scheduler.steps:
                watcher.last, watcher.turns = scheduler.steps, 0
                if me.turned != me.acts:
                    me.turned, me.rounds = me.acts, 0
                elif me.rounds < 4:  # most loops end soon
                    me.rounds += 1
                else:
                    scheduler.came_round(me, site, sys._getframe(1))
            watcher.turns += 1
            if watcher.turns > TURNS:
                if not watcher.frozen:
                    watcher._pending.add(site)
                scheduler.abort(Stop(CUT, "a loop without a point: it has one from now on"))

        return {
            "load": load,
            "take": take,
            "call": call,
            "function": function,
            "turn": turn,
            "undisturbed": scheduler.undisturbed,
            "use": use,
            "look": look,
            "changing": changing,
            "filled": filled,
            "resumed": resumed,
            "each": each,
            "mapped": mapped,
            "unseen": unseen,
            "inherited": inherited,
            "matched": matched,
            "valued": Valued,
            "compared": Compared,
            "target": Target,
            "augmented": Augmented,
            **IDENTITIES,
            "binding": binding,
            "imported": imported,
            "store": store,
            "store_mapping": store_mapping,
            "store_name": lambda value, key, _, site: at(key, site, True),
            "delete": delete,
            "item": item,
            "set_item": set_item,
            "delete_item": delete_item,
            "at": at,
            "named": named,
            "first": lambda one, other: one,
            "second": lambda one, other: other,
            **IN_PLACE,
            **{f"{name}_at": in_place(operator) for name, operator in IN_PLACE.items()},
            **{f"{name}_of": operation(operator) for name, operator in OPERATIONS.items()},
        }

    def _reached(self, location: _Location, site: int, writes: bool, entry: Any, name: str, value: Any = None) -> None:
        """A point, before a racing access."""
        scheduler = self._scheduler
        me = scheduler.current
        if real_ident() != me.ident:
            self._intruded(location, site)
            return
        if self.racing[site] == SHOWN:
            scheduler.step_log.access(me, entry, name, site, writes, value)
            return
        me.location, me.writes, me.what = location, writes, site
        if scheduler.step_log is not None:
            scheduler.step_log.about(me, entry, name, writes, value)
        scheduler.step(me)
        if scheduler.tracking:
            scheduler.note(me, location, writes)

    def _reached_together(self, accesses: list[_Access]) -> None:
        """One point, before racing accesses that take place at once."""
        scheduler = self._scheduler
        me = scheduler.current
        if real_ident() != me.ident:
            for location, site, *_ in accesses:
                self._intruded(location, site)
            return
        step_log = scheduler.step_log
        if step_log is not None:
            for _, site, writes, entry, name, value in accesses:
                if self.racing[site] == SHOWN:
                    step_log.access(me, entry, name, site, writes, value)
            accesses = [one for one in accesses if self.racing[one[1]] != SHOWN]
            if not accesses:
                return
            _, _, writes, entry, name, value = accesses[0]
            step_log.about(me, entry, name, writes, value)
        parts: dict[Any, bool] = {}
        for location, _, writes, *_ in accesses:
            parts[location] = writes or parts.get(location, False)
        me.location = Several(parts) if len(parts) > 1 else accesses[0][0]
        me.writes, me.what = any(parts.values()), accesses[0][1]
        scheduler.step(me)
        if step_log is not None:
            for _, site, writes, entry, name, value in accesses[1:]:
                step_log.access(me, entry, name, site, writes, value)
        if scheduler.tracking:
            for location, writes in parts.items():
                scheduler.note(me, location, writes)

    def _intruded(self, location: _Location, site: int) -> None:
        """On a thread from outside: if the program has accessed this, the run is not what the schedule says."""
        if location.stored_by >= 0 or location.looked:
            where = SITES[site]
            note = f"{real_current_thread().name} came to `{where.what}` at {_base(where.filename)}:{where.line}"
            if note not in self._scheduler.escaped:
                self._scheduler.escaped.append(note)

    def _touched(self, location: _Location, writes: bool) -> None:
        """An access takes place: is it in order with those before?"""
        me: Task = self._scheduler.current
        index, vc = me.index, me.vc
        by = location.stored_by
        if by >= 0 and by != index and (by >= len(vc) or vc[by] < location.stored):
            self._raced.add(location)
        looked = location.looked
        if writes:
            for other, when in looked.items():
                if other != index and (other >= len(vc) or vc[other] < when):
                    self._raced.add(location)
            looked.clear()
            me.acts += 1
            location.stored_by, location.stored = index, vc[index]
        else:
            looked[index] = vc[index]


class _Method:
    """A method of a container that was taken: it is a point when it is called, not when it is looked up."""

    __slots__ = ("_handing", "_site", "method")

    def __init__(self, handing: Callable[[Any, int], Any], method: Any, site: int) -> None:
        self._handing = handing
        self._site = site
        self.method = method

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._handing(self.method, self._site)(*arguments, **keywords)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.method, name)

    def __eq__(self, other: object) -> bool:
        return bool(self.method == (other.method if isinstance(other, _Method) else other))

    def __hash__(self) -> int:
        return hash(self.method)


_ATTRIBUTE: Final = ("__setattr__", "__delattr__", "__getattribute__")


def _stands_at(cache: Any, filename: str, line: int) -> bool:
    """Whether what a cache asks, or what that wraps, is the function there."""
    while (cache := getattr(cache, "__wrapped__", None)) is not None:
        code = getattr(cache, "__code__", None)
        if code is not None and (code.co_filename, code.co_firstlineno) == (filename, line):
            return True
        cache = getattr(cache, "__func__", cache)
    return False


def _base(filename: str) -> str:
    return filename.replace("\\", "/").rpartition("/")[2]


def _text(site: Site) -> str:
    """What stands at a site: of a call, all of it."""
    if site.called is None:
        return site.what.partition(" ")[2]
    last, column = site.called
    lines = [linecache.getline(site.filename, number).encode() for number in range(site.line, last + 1)]
    lines[-1] = lines[-1][:column]
    lines[0] = lines[0][site.column :]
    text = " ".join(line.decode(errors="replace").strip() for line in lines)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
