"""What one exploration has learned: which sites are points, and which names of attributes may race."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reactive_runtime.explore._instrument.sites import SITES

__all__ = ["POINT", "SHOWN", "Points"]

POINT: Final = 1
"""Of a site: a point."""
SHOWN: Final = 2
"""Of a site: no point, but to be shown."""
_ALL_SHOWN: Final = bytes(entry or SHOWN for entry in range(256))
_NONE_SHOWN: Final = bytes(0 if entry == SHOWN else entry for entry in range(256))
_FURTHER: Final = 1_024
"""Room for sites of modules that are rewritten later."""

_Before = tuple[bytes, frozenset[str], frozenset[str], int]


class Points:
    """Which sites are points, and what will be one from the next run on.

    The holder of the turn owns it; between two runs the main thread does. The sets, and `racing`, stay the same
    objects as long as the exploration goes on: hooks keep them.
    """

    __slots__ = (
        "_new",
        "_new_called_back",
        "_new_of_classes",
        "blind",
        "by_name",
        "called",
        "called_back",
        "calling",
        "found",
        "frozen",
        "mappings",
        "methods",
        "new_mappings",
        "new_methods",
        "of_classes",
        "pending",
        "racing",
        "shown",
        "stored_methods",
        "written",
    )

    def __init__(self) -> None:
        self.racing: bytearray = bytearray(len(SITES) + _FURTHER)
        """Of each site: 0, `POINT` or `SHOWN`."""
        self.found: int = 0
        """How many sites are; more of them: what was seen before does not hold any more."""
        self.frozen = False
        """Whether there shall be no further points."""
        self.pending: set[int] = set()
        """Sites that are points from the next run on."""
        self.blind: set[int] = set()
        """Where what raced was handed to code that is not looked into."""
        self.written: set[str] = set()
        """Names of attributes that are stored while threads run: others can't race."""
        self.shown: set[str] = set()
        """Of these names, those that are looked at for a run that is shown."""
        self._new: set[str] = set()
        self.by_name: set[str] = set()
        """Names of attributes that are stored by `setattr` and its like."""
        self.of_classes: set[str] = set()
        """Names of attributes of classes that are stored while threads run: they are loaded through others, too."""
        self._new_of_classes: set[str] = set()
        self.mappings: set[str] = set()
        """Titles of what has attributes that are reached through a mapping, too."""
        self.new_mappings: set[str] = set()
        self.methods: dict[int, type] = {}
        """Where an attribute of that type is a method."""
        self.called: set[str] = set()
        """Names of these methods."""
        self.stored_methods: set[str] = set()
        """Such as are stored nevertheless, while threads run."""
        self.new_methods: set[str] = set()

        self.called_back: set[int] = set()
        """Operations in C that have called back into the program."""
        self._new_called_back: set[int] = set()
        self.calling: set[int] = set()
        """Those of them that are points: each call back is one as well."""

    # -- what is learned ---------------------------------------------------------------------------------------

    @property
    def has_more(self) -> bool:
        """Whether there is something to learn."""
        self.pending = {site for site in self.pending if not self.racing[site]}
        calling = any(self.racing[site] == POINT for site in self._new_called_back)
        return bool(self.pending or self._new or self.new_methods or self.new_mappings or calling)

    def learn(self) -> None:
        """Make points of what has raced, or waited in a loop, since."""
        if self.pending:
            self.mark(sorted(self.pending))
            self.pending.clear()
        if self._new_called_back:
            self.called_back |= self._new_called_back
            self._new_called_back.clear()
            known = len(self.calling)
            self._find_calling()
            self.found += len(self.calling) - known
        if self.new_methods:
            self.stored_methods |= self.new_methods
            self._new |= self.new_methods
            self.new_methods.clear()
            self.methods.clear()
        if self._new or self.new_mappings:
            self.written |= self._new
            self.of_classes |= self._new_of_classes
            self.mappings |= self.new_mappings
            self.found += len(self._new) + len(self.new_mappings)
            self._new.clear()
            self._new_of_classes.clear()
            self.new_mappings.clear()

    def points(self) -> _Before:
        """What is a point, for `go_back`."""
        return bytes(self.racing), frozenset(self.written), frozenset(self.of_classes), self.found

    def go_back(self, points: _Before) -> None:
        """What has become a point since is none. What is to be learned is forgotten."""
        racing, written, of_classes, self.found = points
        self.racing[: len(racing)] = racing
        self._find_calling()
        self.written.intersection_update(written)
        self.of_classes.intersection_update(of_classes)
        self.pending.clear()
        self._new.clear()
        self._new_of_classes.clear()
        self.new_methods.clear()
        self.new_mappings.clear()
        self._new_called_back.clear()

    def calls_back(self, site: int) -> None:
        """An operation in C has called back into the program."""
        if site not in self.called_back:
            self._new_called_back.add(site)

    def _find_calling(self) -> None:
        self.calling.intersection_update(self.called_back)
        for site in self.called_back:
            (self.calling.add if self.racing[site] == POINT else self.calling.discard)(site)

    def write(self, name: str, *, of_class: bool = False) -> None:
        """Attributes of that name are stored: from the next run on their loads are looked at."""
        self._new.add(name)
        if of_class:
            self._new_of_classes.add(name)

    def may_race(self, names: Iterable[str], of_classes: Iterable[str]) -> None:
        """Attributes of these names are stored while threads run."""
        self.of_classes |= set(of_classes)
        self.by_name |= set(names)
        self.written |= self.by_name

    def mark(self, sites: list[int]) -> None:
        """Make points of these."""
        for site in sites:
            if not self.racing[site]:
                self.racing[site] = POINT
                self.found += 1
                self.methods.pop(site, None)
                self.written.add(SITES[site].what.rpartition(" ")[2].rpartition(".")[2])
        self._find_calling()

    def show(self, yes: bool) -> None:
        """Have `scheduler.step_log` hear of all accesses, also of those that are no points."""
        if yes:
            self.shown |= {site.stores for site in SITES} - self.written - {""}
            self.written |= self.shown
        else:
            self.written -= self.shown
            self.shown.clear()
        self.racing[:] = self.racing.translate(_ALL_SHOWN if yes else _NONE_SHOWN)

    def make_room(self) -> None:
        """Modules may have been rewritten since: each of their sites has its place."""
        if len(self.racing) < len(SITES):
            self.racing.extend(bytes(len(SITES) - len(self.racing) + _FURTHER))
