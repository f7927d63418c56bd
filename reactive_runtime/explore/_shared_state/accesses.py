"""Before an access of something that threads share: a point, where it has raced; then, whether it races.

Order is kept by vector clocks: a release leaves the clock of its thread behind, an acquire takes it over. Two accesses
of one location, by two threads, one of them a store, that no primitive puts in order, are a race. A race that one
schedule hides, because a lock happened to be taken in between, is seen in another; an exhaustive search begins anew
when it has seen one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import resolve_name
from typing import Any, Final

import reactive_runtime
from reactive_runtime.explore._instrument.sites import SITES, Site
from reactive_runtime.explore._schedule.carriers import real_ident
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import Several, Task
from reactive_runtime.explore._shared_state.locations import Access, Location, Locations
from reactive_runtime.explore._shared_state.points import SHOWN, Points
from reactive_runtime.explore._standins.living import real_current_thread

__all__ = ["PACKAGE", "Accesses", "place_of"]

PACKAGE: Final = os.path.dirname(reactive_runtime.__file__) + os.sep
"""The folder of the package itself."""


class Accesses:
    """What all hooks come to. Its fields stay as they are; what they refer to belongs to the holder of the turn."""

    __slots__ = ("_by_key", "_locations", "_points", "_racing", "_scheduler", "_written", "call_backs")

    def __init__(self, scheduler: Scheduler, points: Points, locations: Locations) -> None:
        self._scheduler = scheduler
        self._points = points
        self._locations = locations
        self._by_key = locations.by_key
        self._racing, self._written = points.racing, points.written
        self.call_backs: Any = None  # hears of each generator that goes on

    def access(self, entry: Any, name: str, value: Any, site: int, writes: bool) -> None:
        """One location is accessed; `value` is what is stored."""
        location = self._locations.find(entry, name)
        if self._racing[site]:
            self.reached(location, site, writes, entry, name, value)
        location.sites.add(site)
        self.touched(location, writes)

    def accessed(self, found: list[Access]) -> None:
        """All that one operation accesses, which is at one point: what it is to read may change until then."""
        racing = self._racing
        if len(found) == 1:
            location, site, writes, entry, name, value = found[0]
            if racing[site]:
                self.reached(location, site, writes, entry, name, value)
            location.sites.add(site)
            self.touched(location, writes)
            return
        points = [one for one in found if racing[one[1]]]
        if len(points) == 1:
            self.reached(*points[0])
        elif points:
            self._reached_together(points)
        for location, site, writes, *_ in found:
            location.sites.add(site)
            self.touched(location, writes)

    def reached(self, location: Location, site: int, writes: bool, entry: Any, name: str, value: Any = None) -> None:
        """A point, before a racing access."""
        scheduler = self._scheduler
        me = scheduler.current
        if real_ident() != me.ident:
            self._intruded(location, site)
            return
        if self._racing[site] == SHOWN:
            scheduler.step_log.access(me, entry, name, site, writes, value)
            return
        me.location, me.writes, me.what = location, writes, site
        if scheduler.step_log is not None:
            scheduler.step_log.about(me, entry, name, writes, value)
        scheduler.step(me)
        if scheduler.tracking:
            scheduler.note(me, location, writes)

    def _reached_together(self, accesses: list[Access]) -> None:
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
                if self._racing[site] == SHOWN:
                    step_log.access(me, entry, name, site, writes, value)
            accesses = [one for one in accesses if self._racing[one[1]] != SHOWN]
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

    def _intruded(self, location: Location, site: int) -> None:
        """On a thread from outside: if the program has accessed this, the run is not what the schedule says."""
        if location.stored_by >= 0 or location.looked:
            where = SITES[site]
            note = f"{real_current_thread().name} came to `{where.what}` at {place_of(where)}"
            if note not in self._scheduler.escaped:
                self._scheduler.escaped.append(note)

    def touched(self, location: Location, writes: bool) -> None:
        """An access takes place: is it in order with those before?"""
        me: Task = self._scheduler.current
        index, vc = me.index, me.vc
        by = location.stored_by
        if by >= 0 and by != index and (by >= len(vc) or vc[by] < location.stored):
            self._locations.raced.add(location)
        looked = location.looked
        if writes:
            for other, when in looked.items():
                if other != index and (other >= len(vc) or vc[other] < when):
                    self._locations.raced.add(location)
            looked.clear()
            me.acts += 1
            location.stored_by, location.stored = index, vc[index]
        else:
            looked[index] = vc[index]

    # -- what is not an attribute, nor in a container ----------------------------------------------------------

    def at(self, key: str, site: int, writes: bool) -> None:
        """A name that functions share."""
        if self._scheduler.watching:
            location = self._by_key.get(key)
            if location is None:
                location = self._locations.of_name(key)
            if self._racing[site]:
                self.reached(location, site, writes, None, key)
            location.sites.add(site)
            self.touched(location, writes)

    def store_name(self, value: Any, key: str, _: Any, site: int) -> None:
        """A name that functions share is about to be bound."""
        self.at(key, site, True)

    def named(self, name: str, key: str, site: int) -> None:
        """A name of the module is loaded, which functions may share by an attribute of the module."""
        if name in self._written:
            self.at(key, site, False)

    def binding(self, key: str, site: int) -> Callable[[Any], Any]:
        """A function or a class gets its name, which functions share."""

        def bound(entry: Any) -> Any:
            self.at(key, site, True)
            return entry

        return bound

    def imported(self, name: str, package: str | None, names: tuple[str, ...], site: int) -> None:
        """Names of a module are imported."""
        if self._scheduler.watching:
            if package is not None:
                name = resolve_name(name, package)
            module = sys.modules.get(name)
            if module is not None:
                find, written = self._locations.find, self._written
                self.accessed([(find(module, one), site, False, module, one, None) for one in names if one in written])

    def at_place(self, found: list[Access], place: str, site: int, blind: bool) -> None:
        """Something that no object stands for: files, a database, the state of a package."""
        location = self._locations.of_place(place)
        if blind:
            location.blind.add(site)
        if place.startswith("·"):  # to stop in the middle of a transaction would block others for real
            self.touched(location, True)
        else:
            found.append((location, site, True, None, place, None))

    def resumed(self, value: Any, site: int) -> Any:
        """A generator goes on: another thread that asks it for its next is refused from here on."""
        self.call_backs.entered = True
        location = self._locations.entered
        if location is not None and self._scheduler.watching:
            self._locations.entered = None
            if self._racing[site]:
                self.reached(location, site, True, None, "next")
            location.sites.add(site)
            self.touched(location, True)
        return value

    def mapped(self, entry: Any) -> Any:
        """The mapping that has its attributes is asked for."""
        scheduler = self._scheduler
        if scheduler.active and not scheduler.quiet and real_ident() == scheduler.current.ident:
            self._locations.reached_by_mapping(entry)
        return entry

    def unseen(self, entry: Any, site: int) -> Any:
        """What is done with it can't be seen: code is run from a text, a name is reached through its cell."""
        # The package itself has rewritten what it runs.
        if self._scheduler.watching and not SITES[site].filename.startswith(PACKAGE):
            self._points.blind.add(site)
        return entry


def place_of(site: Site) -> str:
    """Its file, without the folders, and its line."""
    name = site.filename.replace("\\", "/").rpartition("/")[2]
    return f"{name}:{site.line}"
