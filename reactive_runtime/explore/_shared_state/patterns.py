"""`match`: patterns that look into a value."""

from __future__ import annotations

from typing import Any, Final

from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._shared_state.accesses import Accesses
from reactive_runtime.explore._shared_state.contents import MOST_LOOKED_AT, SCALARS, Contents
from reactive_runtime.explore._shared_state.kinds import PLAIN, Kinds, holders_of, mapping_of
from reactive_runtime.explore._shared_state.locations import Access, Locations
from reactive_runtime.explore._shared_state.points import Points

__all__ = ["Patterns"]

_DEEPEST: Final = 6
"""How deep patterns are taken to look."""


class Patterns:
    """The hook for patterns. Its fields stay as they are; what they refer to belongs to the holder of the turn."""

    __slots__ = ("_accesses", "_contents", "_kinds", "_locations", "_points", "_scheduler")

    def __init__(
        self,
        scheduler: Scheduler,
        points: Points,
        locations: Locations,
        kinds: Kinds,
        accesses: Accesses,
        contents: Contents,
    ) -> None:
        self._scheduler = scheduler
        self._points = points
        self._locations = locations
        self._kinds = kinds
        self._accesses = accesses
        self._contents = contents

    def matched(
        self, value: Any, names: tuple[str, ...], classes: tuple[tuple[str, str | None], ...], site: int
    ) -> Any:
        """A value is looked into by patterns, one after the other: as one step, which it is not."""
        if not self._scheduler.watching:
            return value
        found: list[Access] = []
        written = self._points.written
        for name, key in classes:  # those of the patterns are found by these names
            if key is None:
                if name in written:
                    self._accesses.unseen(value, site)
            elif not name or name in written:
                found.append((self._locations.of_name(key), site, False, None, key, None))
        entries, depth = [value], _DEEPEST
        while entries and depth:
            entries = [inner for entry in entries for inner in self._looked_into(found, entry, names, site)]
            depth -= 1
        for location, *_ in found:
            location.blind.add(site)
        if found:
            self._accesses.accessed(found)
        return value

    def _looked_into(self, found: list[Access], entry: Any, names: tuple[str, ...], site: int) -> list[Any]:
        """What patterns may look into next, of a value that they have looked into."""
        kind = type(entry)
        if kind in SCALARS:
            return []
        self._contents.gather(found, entry, site, False)
        if kind in (list, tuple):
            return list(entry[:MOST_LOOKED_AT])
        if kind is dict:
            return list(dict.values(entry))[:MOST_LOOKED_AT]
        if self._kinds.of(kind) is not PLAIN:
            return []
        further: list[Any] = []
        find, points = self._locations.find, self._points
        given = self._kinds.method(kind, "__match_args__")
        for name in {*names, *(given if type(given) is tuple else ())}:
            if name in points.of_classes:
                found.extend((find(one, name), site, False, one, name, None) for one in holders_of(entry))
            elif name in points.written:
                found.append((find(entry, name), site, False, entry, name, None))
            further.append(dict.get(mapping_of(entry) or {}, name))
        return further
