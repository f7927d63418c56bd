"""What threads access, in one run: an attribute of an object, a built-in container as a whole, a shared name.

Locations live for one run. An object that can have weak references dies when the program drops it, and another object
that gets its `id` has locations of its own. A list, a dict and an object with slots can have none: locations keep such
objects until the run has ended, or, in programs that see objects die, until `free_the_dead` finds that nothing else
refers to them.

What is reached in several ways has one location. A name that functions share is one with the attribute of its module.
Where threads access a mapping of attributes, `__dict__`, all attributes in it have the location of that container:
from the next run on, since only then it is known from the beginning.
"""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Callable, Iterable
from sys import getrefcount
from types import FunctionType, ModuleType
from typing import Any, Final

from reactive_runtime.explore._shared_state.kinds import mapping_of, module_of
from reactive_runtime.explore._shared_state.points import Points

__all__ = ["Access", "Location", "Locations", "reference_to"]

_qualname: Final = type.__dict__["__qualname__"].__get__
_OF_MEMORY: Final = ("_SimpleCData", "Structure", "Union", "Array", "_Pointer")
_WHOLE: Final = ("", "next")
"""Of a location: no attribute, but what a container has in it, or what comes next of an iterator."""

_weak_at: Final = type.__dict__["__weakrefoffset__"].__get__
"""The offset of the weak references in objects of a type; 0: they can have none."""


def reference_to(entry: Any) -> Callable[[], Any]:
    """Return a function that gives the object: by a weak reference, None once it is dead, or by a strong one."""
    return weakref.ref(entry) if _weak_at(type(entry)) else itertools.repeat(entry).__next__


def _nothing() -> None:
    """Give the object of a location that belongs to no object."""


_an_object: Final = reference_to([])
_ALONE: Final = getrefcount(_an_object())
"""References that `free_the_dead` counts to an object that nothing else refers to."""


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


class Location:
    """One location, in one run. The holder of the turn owns it."""

    __slots__ = ("blind", "it", "looked", "r", "sites", "stored", "stored_by", "w")

    def __init__(self, gives: Callable[[], Any]) -> None:
        self.it = gives  # what gives the object
        self.w: int = 0  # chains, as those of stand-ins
        self.r: int = 0
        self.stored_by: int = -1  # the thread that stored last,
        self.stored: int = 0  # and when, by its own clock
        self.looked: dict[int, int] = {}  # thread: when it looked last, since then
        self.sites: set[int] = set()  # where it was accessed
        self.blind: set[int] = set()  # where by code that is not looked into


_Held = tuple[Callable[[], Any], dict[str, Location]]
"""A function that gives an object, and the locations of that object, by attribute."""

Access = tuple[Location, int, bool, Any, str, Any]
"""A location, the site, whether it is changed; the object and the attribute, if any; what is stored."""


class Locations:
    """The locations of one run. The holder of the turn owns them; between two runs the main thread does."""

    __slots__ = (
        "_alive", "_held", "_namespaces", "_of_memory", "_points", "_strong", "by_key", "by_site", "entered", "mapped",
        "raced",
    )  # fmt: skip

    def __init__(self, points: Points, functions: Iterable[FunctionType]) -> None:
        self._points = points
        ctypes = sys.modules.get("_ctypes")
        self._of_memory = (
            frozenset(map(type, ()))
            if ctypes is None
            else frozenset(type(getattr(ctypes, name)) for name in _OF_MEMORY)
        )  # metaclasses of objects that may stand for the same memory
        self._namespaces = _Namespaces(functions)
        self._alive: list[Any] = []  # mappings that objects had before
        self._held: dict[int, _Held] = {}  # by the id of an object: what gives it, and its locations by attribute
        self._strong: list[int] = []  # ids of those that are kept
        self.by_key: dict[str, Location] = {}
        """By the name that functions share, or by the place."""
        self.mapped: dict[int, _Mapping] = {}
        """By id: mappings that attributes are reached through."""
        self.by_site: dict[int, Location] = {}
        """Where a load was last."""
        self.raced: set[Location] = set()
        """Those that threads have raced for."""
        self.entered: Location | None = None
        """The generator that is about to go on."""

    def find(self, entry: Any, name: str) -> Location:
        """The location of an attribute; with a name of `_WHOLE`, of what is in a container, or comes of an iterator."""
        gives, locations = self._of_object(entry)
        location = locations.get(name)
        if location is None:
            if self._points.mappings or issubclass(type(entry), ModuleType):
                location = self._known_otherwise(entry, name)
            if type(type(entry)) in self._of_memory:
                location = self.of_place("·ctypes")
            if location is None:
                location = Location(gives)
            locations[name] = location
        return location

    def _of_object(self, entry: Any) -> _Held:
        """Return a function that gives the object, and its locations: none, if the object before it is dead."""
        held = self._held.get(id(entry))
        if held is None or held[0]() is not entry:
            gives = reference_to(entry)
            if type(gives) is not weakref.ref:
                self._strong.append(id(entry))
            held = self._held[id(entry)] = (gives, {})
        return held

    def free_the_dead(self) -> None:
        """Drop the objects that only locations refer to."""
        held = self._held
        while True:
            dead = next((key for key in self._strong if getrefcount(held[key][0]()) <= _ALONE), None)
            if dead is None:
                return
            self._strong.remove(dead)
            for location in held[dead][1].values():
                location.it = _nothing
            del held[dead]  # a finaliser may run here, whose hooks free others

    def of_name(self, key: str) -> Location:
        """The location of a name that functions share: of their module, or of the function around them."""
        location = self.by_key.get(key)
        if location is None:
            file, _, name = key.rpartition(":")
            home = self._namespaces.home_of_file(file)
            namespace = self._namespaces.of(home)
            if namespace is not None and _title(namespace) in self._points.mappings:
                location = self.of_mapping(namespace)
            elif home in ("", file):
                location = Location(_nothing)
            else:
                location = self.of_name(f"{home}:{name}")
            self.by_key[key] = location
        return location

    def of_place(self, place: str) -> Location:
        """The location of something that no object stands for."""
        location = self.by_key.get(place)
        if location is None:
            location = self.by_key[place] = Location(_nothing)
        return location

    def of_mapping(self, mapping: Any) -> Location:
        """The one location of all that a mapping has in it."""
        mapping = self._namespaces.first(mapping)
        gives, locations = self._of_object(mapping)
        location = locations.get("")
        if location is None:
            location = locations[""] = Location(gives)
        return location

    def _known_otherwise(self, entry: Any, name: str) -> Location | None:
        """The location of an attribute, or of what a container has in it, where another key stands for it as well."""
        namespaces, points = self._namespaces, self._points
        found: Location | None = None
        if name in _WHOLE:
            first = namespaces.first(entry)
            return None if first is entry else self.of_mapping(first)
        whole = mapping_of(entry)
        if whole is not None and _title(whole if issubclass(type(entry), ModuleType) else entry) in points.mappings:
            found = self.of_mapping(whole)
        elif home := namespaces.home(whole):
            found = self.of_name(f"{home}:{name}")
        return found

    # -- mappings of attributes --------------------------------------------------------------------------------

    def reached_by_mapping(self, entry: Any) -> None:
        """The program asks for the mapping that has the attributes of an object, a class or a module."""
        found = entry if self._namespaces.home(entry) else mapping_of(entry)
        if found is not None:
            mapping = self.mapped.get(id(found))
            if mapping is None:
                mapping = self.mapped[id(found)] = _Mapping(found)
            mapping.titles.add(_title(found if issubclass(type(entry), ModuleType) else entry))

    def is_one_place(self, found: Any) -> None:
        """From the next run on, what is in this, if it is such a mapping, has one location, however it is reached."""
        mapping = self.mapped.get(id(found))
        if mapping is not None:
            self._points.new_mappings |= mapping.titles - self._points.mappings

    def takes_over(self, after: Any, before: Any) -> None:
        """An object had its attributes in one mapping, and has them in another: the location stays."""
        self._alive.append(before)
        self._of_object(after)[1].setdefault("", self.of_mapping(before))

    def compare(self, found: Any) -> None:
        """What has changed in a mapping, since the last look, are attributes that are stored while threads run."""
        self._compare(self.mapped[id(found)])

    def _compare(self, mapping: _Mapping) -> None:
        points = self._points
        now = {name: value for name, value in dict.items(mapping.it) if type(name) is str}
        before = now if mapping.contents is None else mapping.contents
        mapping.contents = now
        for name in {**before, **now}:
            if before.get(name, mapping) is not now.get(name, mapping) and name not in points.written:
                points.write(name)
                points.by_name.add(name)

    # -- a run -------------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """A run has ended: learn from it what has raced, and drop what it made."""
        if self.mapped or self._alive:
            for mapping in self.mapped.values():
                if mapping.contents is not None:
                    self._compare(mapping)
            self.mapped.clear()
            self._alive.clear()
        self._held.clear()
        self._strong.clear()
        self.by_key.clear()
        self.by_site.clear()
        self.entered = None
        for entry in self.raced:
            self._points.pending |= entry.sites
            self._points.blind |= entry.blind
        self.raced.clear()
