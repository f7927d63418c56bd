"""Looking into a value, or changing what it holds: containers, iterators, what they show, and records."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from types import GeneratorType, ModuleType
from typing import Any, Final

from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._shared_state.accesses import Accesses
from reactive_runtime.explore._shared_state.call_backs import CallBacks
from reactive_runtime.explore._shared_state.deaths import WEAK, Deaths
from reactive_runtime.explore._shared_state.kinds import (
    CONTAINER,
    FILES,
    OPAQUE,
    OUTSIDE,
    PLAIN,
    STAND_INS,
    STEPPING,
    VIEW,
    Kinds,
    holders_of,
    mapping_of,
    module_of,
    slots_of,
)
from reactive_runtime.explore._shared_state.locations import Access, Locations
from reactive_runtime.explore._shared_state.points import Points

__all__ = ["MOST_LOOKED_AT", "SCALARS", "Contents"]

MOST_LOOKED_AT: Final = 100
"""Objects whose attributes are looked at by one call."""
SCALARS: Final = frozenset({int, str, bytes, float, bool, type(None)})
"""Types of values that have nothing in them."""
_SIMPLE: Final = frozenset({list, dict, set})
"""Types of containers of which all is one location, as a rule. A look-up by a scalar calls no code of the program."""
_HASHED: Final = frozenset({dict, set})
"""Those of them that find an element by its hash."""


def _says_itself(file: Any) -> bool:
    """Whether a file says when it is read and written for real: it is on a stand-in."""
    try:
        raw = getattr(file, "buffer", file)
        return module_of(type(getattr(raw, "raw", raw))).startswith(STAND_INS)
    except ValueError:  # detached
        return False


class Contents:
    """The hooks for what a value holds. Its fields stay as they are; what they refer to the holder of the turn owns."""

    __slots__ = (
        "_accesses", "_call_backs", "_calling", "_deaths", "_kinds", "_locations", "_mapped", "_of_classes", "_plain",
        "_scheduler", "_written",
    )  # fmt: skip

    def __init__(
        self,
        scheduler: Scheduler,
        points: Points,
        locations: Locations,
        kinds: Kinds,
        accesses: Accesses,
        call_backs: CallBacks,
        deaths: Deaths,
    ) -> None:
        self._deaths = deaths
        self._scheduler = scheduler
        self._written, self._of_classes = points.written, points.of_classes
        self._locations, self._mapped = locations, locations.mapped
        self._kinds, self._plain = kinds, kinds.plain
        self._accesses = accesses
        self._call_backs, self._calling = call_backs, points.calling

    def touch(self, entry: Any, site: int, writes: bool) -> None:
        """`entry` is looked into, or changed."""
        if type(entry) in _SIMPLE and id(entry) not in self._mapped:
            self._accesses.access(entry, "", entry, site, writes)
            return
        found: list[Access] = []
        self.gather(found, entry, site, writes)
        if found:
            self._accesses.accessed(found)

    def gather(self, found: list[Access], entry: Any, site: int, writes: bool, blind: bool = False) -> None:
        """`entry` is looked into, or changed: what is accessed then depends on what it is."""
        if type(entry) in _SIMPLE and not blind and id(entry) not in self._mapped:
            found.append((self._locations.find(entry, ""), site, writes, entry, "", entry))
            return
        kinds = self._kinds
        kind = kinds.of(type(entry))
        if type(entry) in kinds.records:
            self.attributes(found, [entry], site, 1, blind, writes)
        if kind is PLAIN:
            return
        if id(entry) in self._mapped:
            self._locations.is_one_place(entry)
            self._locations.compare(entry)
        if kind is FILES and _says_itself(entry):  # this is the buffer, and perhaps the position
            found.append((self._locations.find(entry, ""), site, True, entry, "", entry))
            return
        if kind in (FILES, OUTSIDE):
            self._accesses.at_place(found, kinds.outside(type(entry)), site, kind is OUTSIDE)
            return
        if kind is CONTAINER and (base := kinds.base_of(entry)) is not None:
            self.gather(found, base, site, writes, blind)
            return
        if kind is not VIEW:
            self._whole(found, entry, kind, site, writes, blind)
        if kind in (VIEW, STEPPING, OPAQUE):
            for other in kinds.beneath(entry):
                self.gather(found, other, site, writes and kind is not STEPPING, blind or kind is OPAQUE)

    def _whole(self, found: list[Access], entry: Any, kind: int, site: int, writes: bool, blind: bool) -> None:
        """All that a container has in it is one location; so is what comes next of an iterator."""
        name = "next" if kind is STEPPING else ""
        location = self._locations.find(entry, name)
        if type(entry) is GeneratorType:
            self._locations.entered = location
        if isinstance(entry, WEAK):
            self._deaths.held_in(entry, location)
        found.append((location, site, writes or kind is STEPPING, entry, name, entry))
        if blind or kind is OPAQUE:
            location.blind.add(site)

    def attributes(
        self, found: list[Access], entries: list[Any], site: int, depth: int, blind: bool, writes: bool = False
    ) -> None:
        """All attributes are looked at, and those of what these are, to a depth."""
        seen: set[int] = set()
        while entries and depth:
            further: list[Any] = []
            for entry in entries:
                kind = type(entry)
                if id(entry) in seen or issubclass(kind, ModuleType | type) or len(seen) > MOST_LOOKED_AT:
                    continue
                seen.add(id(entry))
                if kind in (list, tuple, dict, set):
                    if kind is not tuple:
                        self.gather(found, entry, site, writes, blind)
                    further.extend(entry.values() if kind is dict else entry)
                elif self._kinds.of(kind) is PLAIN:
                    further.extend(self._own(found, entry, site, writes, blind))
            entries, depth = further, depth - 1

    def _own(self, found: list[Access], entry: Any, site: int, writes: bool, blind: bool) -> list[Any]:
        """The attributes of one object are looked at: gives the values of those that are in its mapping."""
        find = self._locations.find
        for name in slots_of(entry):
            if name in self._written:
                found.append((find(entry, name), site, writes, entry, name, None))
        for name in self._of_classes:
            found.extend((find(one, name), site, writes, one, name, None) for one in holders_of(entry)[1:])
        held = mapping_of(entry)
        if held is None:
            return []
        self._accesses.mapped(entry)
        self.gather(found, held, site, writes, blind)
        return list(dict.values(held))

    # -- the hooks of expressions and statements ---------------------------------------------------------------

    def look(self, value: Any, site: int) -> Any:
        """A value that is tested, compared, unpacked."""
        if type(value) in self._plain or not self._scheduler.watching:
            return value
        self.touch(value, site, False)
        return value

    def item(self, entry: Any, key: Any, site: int) -> Any:
        """An item is loaded."""
        if type(entry) in self._plain or not self._scheduler.watching:
            return entry[key]
        if type(key) in SCALARS and type(entry) in _SIMPLE:
            self.touch(entry, site, False)
            return entry[key]
        return self._done(operator.getitem, ((entry, site, type(entry) in self._kinds.filling),), entry, key)

    def set_item(self, value: Any, entry: Any, key: Any, site: int) -> None:
        """An item is stored."""
        if type(entry) in self._plain or not self._scheduler.watching:
            entry[key] = value
        elif type(key) in SCALARS and type(entry) in _SIMPLE:
            self.touch(entry, site, True)
            entry[key] = value
        else:
            self._done(operator.setitem, ((entry, site, True),), entry, key, value)

    def delete_item(self, entry: Any, key: Any, site: int) -> None:
        """An item is deleted."""
        if type(entry) in self._plain or not self._scheduler.watching:
            del entry[key]
        elif type(key) in SCALARS and type(entry) in _SIMPLE:
            self.touch(entry, site, True)
            del entry[key]
        else:
            self._done(operator.delitem, ((entry, site, True),), entry, key)

    def changing(self, value: Any, target: Any, site: int, operand: int) -> Any:
        """A local name is assigned to with an operator, by `value`."""
        plain = self._plain
        if self._scheduler.watching and not (type(target) in plain and type(value) in plain):
            self._both(value, target, operand, site, True)
        return value

    def in_place(self, operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any, int, int], Any]:
        """The hook for an operator that may change its first value."""
        scheduler, plain, both, done = self._scheduler, self._plain, self._both, self._done

        def operated(value: Any, operand: Any, site: int, at_operand: int) -> Any:
            if not scheduler.watching or (type(value) in plain and type(operand) in plain):
                return operator(value, operand)
            if type(value) is list and type(operand) is list:
                both(operand, value, at_operand, site, True)
                return operator(value, operand)
            return done(operator, ((operand, at_operand, False), (value, site, True)), value, operand)

        return operated

    def operation(self, operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any, int, int], Any]:
        """The hook for an operator that changes neither of its values."""
        scheduler, plain, touch, done = self._scheduler, self._plain, self.touch, self._done

        def operated(one: Any, other: Any, at_one: int, at_other: int) -> Any:
            if (type(one) in plain and type(other) in plain) or not scheduler.watching:
                return operator(one, other)
            if type(one) in SCALARS and type(other) in _HASHED:
                touch(other, at_other, False)
                return operator(one, other)
            return done(operator, ((one, at_one, False), (other, at_other, False)), one, other)

        return operated

    def _both(self, one: Any, other: Any, at_one: int, at_other: int, changes: bool) -> None:
        """The two values of an operation are looked into at once; the other is perhaps changed."""
        if type(one) in self._plain:
            self.touch(other, at_other, changes)
        elif type(other) in self._plain:
            self.touch(one, at_one, False)
        else:
            found: list[Access] = []
            self.gather(found, one, at_one, False)
            self.gather(found, other, at_other, changes)
            if found:
                self._accesses.accessed(found)

    def _done(self, operation: Callable[..., Any], values: tuple[tuple[Any, int, bool], ...], *given: Any) -> Any:
        """Do an operation that looks into values, or changes them, and may call back into the program."""
        call_backs = self._call_backs
        around = call_backs.entered
        found: list[Access] = []
        calling = False
        for entry, site, writes in values:
            if type(entry) not in self._plain:
                self.gather(found, entry, site, writes)
                calling = calling or site in self._calling
        if calling:
            return call_backs.during(found, operation, *given)
        if found:
            self._accesses.accessed(found)
        call_backs.entered = False
        try:
            return operation(*given)
        finally:
            if call_backs.entered:
                call_backs.notice(*(site for _, site, _ in values))
            call_backs.entered = call_backs.entered or around

    def each(self, entries: Any, site: int) -> Any:
        """What a loop goes through."""
        if type(entries) in self._plain or not self._scheduler.watching or self._kinds.of(type(entries)) is PLAIN:
            return entries
        return self._steps(entries, site)

    def delegated(self, entries: Any, site: int) -> Any:
        """The operand of `yield from`: as `each`, unless it may be sent values."""
        kinds, kind = self._kinds, type(entries)
        if hasattr(kind, "send") or kinds.of(kind) is OPAQUE or kinds.is_python(kinds.method(kind, "__iter__")):
            return self.look(entries, site)
        return self.each(entries, site)

    def _steps(self, entries: Any, site: int) -> Iterator[Any]:
        scheduler = self._scheduler
        if scheduler.watching and self._kinds.of(type(entries)) is not STEPPING:
            self.touch(entries, site, False)  # an iterator remembers what it was made of: a later change may end it
        iterator = iter(entries)
        while True:
            if scheduler.watching:
                self.touch(entries, site, False)
            try:
                entry = next(iterator)
            except StopIteration:
                return
            yield entry
