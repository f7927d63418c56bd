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
"""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from types import FunctionType, GeneratorType
from typing import Any, Final

from reactive_runtime.explore.rewriting import IN_PLACE, SITES
from reactive_runtime.explore.scheduler import Scheduler
from reactive_runtime.explore.task import CUT, Stop, Task

__all__ = ["Watcher", "kept"]

CONTAINERS: Final = frozenset({list, dict, set, deque, bytearray})
TURNS: Final = 1_000
"""How often a loop may go round without a point."""
SHOWN: Final = 2
"""Of a site: no point, but to be shown. (1: a point.)"""
_LOOKING: Final = frozenset(
    [
        "get",
        "keys",
        "values",
        "items",
        "copy",
        "index",
        "count",
        "difference",
        "intersection",
        "isdisjoint",
        "issubset",
        "issuperset",
        "union",
        "symmetric_difference",
        "find",
        "rfind",
        "startswith",
        "endswith",
        "decode",
        "hex",
        "__len__",
        "__contains__",
        "__getitem__",
        "__iter__",
    ]
)
"""Methods of containers that do not change them."""


def kept(entry: Any, gone: Callable[[Any], object] | None = None) -> Any:
    """What keeps the id of `it` from being given to another object: itself; a weak reference, if it has a finaliser."""
    if type(entry) is not GeneratorType and not hasattr(type(entry), "__del__"):
        return entry
    try:
        return weakref.ref(entry, gone)
    except TypeError:  # has slots, and none for this
        return entry


class _Location:
    """One location, in one run."""

    __slots__ = ("it", "looked", "r", "sites", "stored", "stored_by", "w")

    def __init__(self, entry: Any) -> None:
        self.it = entry
        self.w = self.r = 0  # chains, as those of stand-ins
        self.stored_by = -1  # the thread that stored last,
        self.stored = 0  # and when, by its own clock
        self.looked: dict[int, int] = {}  # thread: when it looked last, since then
        self.sites: set[int] = set()  # where it was accessed


class Watcher:
    """Watches the accesses of one exploration."""

    def __init__(self, scheduler: Scheduler, files: Iterable[str] = ()) -> None:
        self._scheduler = scheduler
        self._files = frozenset(files)
        self.racing: bytearray = bytearray(len(SITES) + 1024)
        """Which sites are points."""
        self.found: int = 0
        """How many sites are; more of them: what was seen before does not hold any more."""
        self.frozen = False
        """Whether there shall be no further points."""
        self._locations: dict[Any, _Location] = {}
        self._written: set[str] = set()  # names of attributes that are stored while threads run: others can't race
        self._new: set[str] = set()
        self._methods: dict[int, type] = {}  # where an attribute of that type is a method
        self._pending: set[int] = set()  # sites that are points from the next run on
        self.last = self.turns = 0  # how often a loop has gone round since that step
        self._by_site: dict[int, _Location] = {}  # where a load was last
        self._raced: set[_Location] = set()  # seen in this run

    def prepare(self) -> None:
        """When all sites are known: attributes that are stored outside of `__init__` may race from the first run on."""
        self._written |= {
            site.stores for site in SITES if not site.building and site.filename in self._files and site.stores
        }

    def forget(self) -> None:
        """After the last run: drop what the program made, while its functions still are what they were."""
        self._locations.clear()
        self._by_site.clear()

    def begin(self) -> None:
        """Before each run."""
        self.forget()
        self.last = -1
        for entry in self._raced:
            self._pending |= entry.sites
        self._raced.clear()
        if not self.frozen:
            self.learn()
        if len(self.racing) < len(SITES):
            self.racing.extend(bytes(len(SITES) - len(self.racing) + 1024))

    @property
    def has_more(self) -> bool:
        """Whether there is something to learn."""
        self._pending = {site for site in self._pending if not self.racing[site]}
        return bool(self._pending or self._new)

    def learn(self) -> None:
        """Make points of what has raced, or waited in a loop, since."""
        self.mark(sorted(self._pending))
        self._pending.clear()
        self._written |= self._new
        self.found += len(self._new)
        self._new.clear()

    def write(self, name: str) -> None:
        """Attributes of that name are stored: from the next run on their loads are looked at."""
        self._new.add(name)

    def mark(self, sites: list[int]) -> None:
        """Make points of these."""
        for site in sites:
            if not self.racing[site]:
                self.racing[site] = 1
                self.found += 1
                self._written.add(SITES[site].what.rpartition(".")[2])

    def show(self, yes: bool) -> None:
        """Tell `scheduler.step_log` of all accesses, also of those that are no points."""
        if yes:
            self._written |= {name for site in SITES if (name := site.stores)}
        self.racing[:] = bytes((entry or SHOWN) if yes else (entry % SHOWN) for entry in self.racing)

    def hooks(self) -> dict[str, Any]:
        """What the calls of rewritten code call."""
        scheduler, watcher = self._scheduler, self
        locations, racing = self._locations, self.racing
        reached, touched = self._reached, self._touched

        by_site, written, methods = self._by_site, self._written, self._methods

        def load(entry: Any, name: str, site: int) -> Any:
            """An attribute, to look into further. `access`, written out: most accesses are of this kind."""
            if name not in written or not scheduler.watching:
                return getattr(entry, name)
            location = by_site.get(site)
            if location is None or location.it is not entry:
                location = by_site[site] = find(entry, name)
                location.sites.add(site)
            me = scheduler.current
            if racing[site]:
                if scheduler.step_log is None:  # `reached`, written out
                    me.location, me.writes, me.what = location, False, site
                    scheduler.step(me)
                    if scheduler.tracking:
                        scheduler.note(me, location, False)
                else:
                    reached(location, site, False, entry, name)
            index = me.index
            by = location.stored_by
            if by >= 0 and by != index and (by >= len(me.vc) or me.vc[by] < location.stored):
                touched(location, False)
            else:
                location.looked[index] = me.vc[index]
            return getattr(entry, name)

        def call(entry: Any, name: str, site: int) -> Any:
            """An attribute that is called: mostly a method, which is never stored."""
            kind = type(entry)
            if methods.get(site) is kind:
                return getattr(entry, name)
            if kind in CONTAINERS:
                return _Method(watcher, entry, name, site)
            if isinstance(getattr(kind, name, None), FunctionType) and name not in getattr(entry, "__dict__", ()):
                methods[site] = kind
                return getattr(entry, name)
            return load(entry, name, site)

        def find(entry: Any, name: str) -> _Location:
            key = (id(entry), name)
            location = locations.get(key)
            if location is None:
                location = locations[key] = _Location(kept(entry, lambda _: locations.pop(key, None)))
            return location

        def use(entry: Any, name: str, site: int) -> Any:
            """An attribute whose value is looked at: a container's contents count as read."""
            value = _Method(watcher, entry, name, site) if type(entry) in CONTAINERS else load(entry, name, site)
            if type(value) in CONTAINERS and scheduler.watching:
                access(value, "", value, site, False)
                return getattr(entry, name)
            return value

        def give(entry: Any, name: str, site: int) -> Any:
            """An attribute that is handed to a function: it may change a container."""
            value = _Method(watcher, entry, name, site) if type(entry) in CONTAINERS else load(entry, name, site)
            if type(value) in CONTAINERS and scheduler.watching:
                access(value, "", value, site, True)
                return getattr(entry, name)
            return value

        def store(value: Any, entry: Any, name: str, site: int) -> None:
            if scheduler.watching:
                if name not in written:
                    watcher.write(name)
                access(entry, name, value, site, True)
            setattr(entry, name, value)

        def delete(entry: Any, name: str, site: int) -> None:
            if scheduler.watching:
                if name not in written:
                    watcher.write(name)
                access(entry, name, None, site, True)
            delattr(entry, name)

        def access(entry: Any, name: str, value: Any, site: int, writes: bool) -> None:
            location = find(entry, name)
            if racing[site]:
                reached(location, site, writes, entry, name, value)
            location.sites.add(site)
            touched(location, writes)

        def item(entry: Any, key: Any, site: int) -> Any:
            if type(entry) in CONTAINERS and scheduler.watching:
                access(entry, "", None, site, False)
            return entry[key]

        def set_item(value: Any, entry: Any, key: Any, site: int) -> None:
            if type(entry) in CONTAINERS and scheduler.watching:
                access(entry, "", value, site, True)
            entry[key] = value

        def delete_item(entry: Any, key: Any, site: int) -> None:
            if type(entry) in CONTAINERS and scheduler.watching:
                access(entry, "", None, site, True)
            del entry[key]

        def next_of(site: int, *arguments: Any) -> Any:
            if scheduler.watching:
                access(arguments[0], "next", None, site, True)
            return next(*arguments)

        def at(key: str, site: int, writes: bool) -> None:
            """A name that functions share."""
            if scheduler.watching:
                location = locations.get(key)
                if location is None:
                    location = locations[key] = _Location(key)
                if racing[site]:
                    reached(location, site, writes, None, key)
                location.sites.add(site)
                touched(location, writes)

        def turn(site: int) -> None:
            """A loop goes round once more: perhaps it waits for another thread, and does nothing that is a point."""
            if not scheduler.watching:
                return
            me = scheduler.current
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
                elif me.rounds < 2:  # most loops end soon
                    me.rounds += 1
                else:
                    scheduler.came_round(me, site, sys._getframe(1))
            watcher.turns += 1
            if watcher.turns > TURNS:
                if not watcher.frozen:
                    watcher._pending.add(site)
                scheduler.abort(Stop(CUT, "a loop without a point: it has one from now on"))

        self._access = access
        return {
            "load": load,
            "call": call,
            "turn": turn,
            "use": use,
            "give": give,
            "store": store,
            "delete": delete,
            "item": item,
            "set_item": set_item,
            "delete_item": delete_item,
            "next_of": next_of,
            "at": at,
            "first": lambda one, other: one,
            "second": lambda one, other: other,
            **IN_PLACE,
        }

    def method(self, entry: Any, name: str, site: int, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """A method of a container is called."""
        if self._scheduler.watching:
            self._access(entry, "", arguments, site, name not in _LOOKING)
        return getattr(entry, name)(*arguments, **keywords)

    def _reached(self, location: _Location, site: int, writes: bool, entry: Any, name: str, value: Any = None) -> None:
        """A point, before a racing access."""
        scheduler = self._scheduler
        me = scheduler.current
        if self.racing[site] == SHOWN:
            scheduler.step_log.access(me, entry, name, site, writes, value)
            return
        me.location, me.writes, me.what = location, writes, site
        if scheduler.step_log is not None:
            scheduler.step_log.about(me, entry, name, writes, value)
        scheduler.step(me)
        if scheduler.tracking:
            scheduler.note(me, location, writes)

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
    """A method of a built-in container, which is a point when it is called, not when it is looked up."""

    __slots__ = ("_it", "_name", "_site", "_watcher")

    def __init__(self, watcher: Watcher, entry: Any, name: str, site: int) -> None:
        self._watcher = watcher
        self._it = entry
        self._name = name
        self._site = site

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._watcher.method(self._it, self._name, self._site, arguments, keywords)

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(self._it, self._name), name)
