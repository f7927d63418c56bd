"""Attributes: loaded, stored and deleted by a line of the program, by their names, and through descriptors."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import ModuleType, WrapperDescriptorType
from typing import Any, Final

from reactive_runtime.explore._instrument.expressions import HIDDEN, HIDDEN_STORES
from reactive_runtime.explore._schedule.carriers import real_ident
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._shared_state.accesses import Accesses
from reactive_runtime.explore._shared_state.contents import Contents
from reactive_runtime.explore._shared_state.kinds import Kinds, holders_of, mapping_of
from reactive_runtime.explore._shared_state.locations import Access, Locations
from reactive_runtime.explore._shared_state.points import POINT, Points

__all__ = ["Attributes"]

_self_of_super: Final = super.__dict__["__self__"].__get__


class Attributes:
    """The hooks for attributes. Its fields stay as they are; what they refer to belongs to the holder of the turn."""

    __slots__ = (
        "_accesses", "_by_site", "_contents", "_find", "_locations", "_of_classes", "_plain", "_points", "_racing",
        "_scheduler", "_written",
    )  # fmt: skip

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
        self._racing, self._written, self._of_classes = points.racing, points.written, points.of_classes
        self._locations, self._by_site, self._find = locations, locations.by_site, locations.find
        self._plain = kinds.plain
        self._accesses = accesses
        self._contents = contents

    # Sixteen ways: `Accesses.access`, written out, since most accesses are of this kind.
    def load(self, entry: Any, name: str, site: int) -> Any:
        """An attribute, to look into further."""
        scheduler = self._scheduler
        if name not in self._written or not scheduler.watching:
            return getattr(entry, name)
        location = self._by_site.get(site)
        if location is None or location.it() is not entry:
            if name in self._of_classes:
                find = self._find
                self._accesses.accessed([(find(one, name), site, False, one, name, None) for one in holders_of(entry)])
                return getattr(entry, name)
            location = self._by_site[site] = self._find(entry, name)
            location.sites.add(site)
        me = scheduler.current
        if self._racing[site]:
            if scheduler.step_log is None and real_ident() == me.ident:  # `Accesses.reached`, written out
                me.location, me.writes, me.what = location, False, site
                scheduler.step(me)
                if scheduler.tracking:  # `Scheduler.note`, written out
                    me.chain = chain = hash((me.chain, location.w))
                    location.r = (location.r + chain) & 0xFFFF_FFFF_FFFF_FFFF
                    if scheduler.observer is not None:
                        scheduler.observer.noted(me, location, False)
            else:
                self._accesses.reached(location, site, False, entry, name)
        index = me.index
        by = location.stored_by
        if by >= 0 and by != index and (by >= len(me.vc) or me.vc[by] < location.stored):
            self._accesses.touched(location, False)
        else:
            location.looked[index] = me.vc[index]
        return getattr(entry, name)

    def use(self, entry: Any, name: str, site: int) -> Any:
        """An attribute whose value is looked into."""
        value = self.load(entry, name, site) if name in self._written else getattr(entry, name)
        if type(value) not in self._plain and self._scheduler.watching:
            self._contents.touch(value, site, False)
        return value

    def inherited(self, entry: Any, name: str, site: int) -> Any:
        """An attribute of `super()`: of one of the classes."""
        if self._scheduler.watching and name in self._of_classes:
            holders = holders_of(_self_of_super(entry))[1:]
            self._accesses.accessed([(self._find(one, name), site, False, one, name, None) for one in holders])
        return getattr(entry, name)

    def store(self, value: Any, entry: Any, name: str, site: int) -> None:
        """`entry.name = value`."""
        if self._scheduler.watching:
            self.writing(entry, name, site)
            self._accesses.access(entry, name, value, site, True)
        setattr(entry, name, value)

    def store_mapping(self, value: Any, entry: Any, name: str, site: int) -> None:
        """`entry.__dict__ = value`: other objects may have the same."""
        self.replaced(entry, lambda: self.store(value, entry, name, site))

    def delete(self, entry: Any, name: str, site: int) -> None:
        """`del entry.name`."""
        if self._scheduler.watching:
            self.writing(entry, name, site)
            self._accesses.access(entry, name, None, site, True)
        delattr(entry, name)

    def writing(self, entry: Any, name: str, site: int) -> None:
        """An attribute is about to be stored: that of a class is read through others, too."""
        points = self._points
        if issubclass(type(entry), ModuleType) and (entry is builtins or name in vars(builtins)):
            self._accesses.unseen(entry, site)  # it is another builtin, or stands before one
        if issubclass(type(entry), type) and name not in self._of_classes:
            points.write(name, of_class=True)
        elif name not in self._written:
            points.write(name)
        if name in points.called and name not in points.stored_methods:
            points.new_methods.add(name)

    def replaced(self, entry: Any, store: Callable[[], object]) -> Any:
        """An object gets another mapping, which others may have, too. What it has in it stays where it was."""
        before = mapping_of(entry)
        result = store()
        self._accesses.mapped(entry)
        after = mapping_of(entry)
        if self._scheduler.active and after is not None:
            self._locations.is_one_place(after)
            if before is not None and before is not after:
                self._locations.takes_over(after, before)
        return result

    # -- by name, and through descriptors ----------------------------------------------------------------------

    def got(self, entry: Any, name: str, site: int) -> Any:
        """An attribute, by its name."""
        if self._scheduler.watching:
            self._changed(False, (entry, name), site)
        return getattr(entry, name)

    def by_name(self, called: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], site: int) -> Any:
        """`getattr`, `setattr` and their like."""
        if self._scheduler.watching and len(arguments) > 1:
            self._changed(called in (setattr, delattr), arguments if called is setattr else arguments[:2], site)
            if called is setattr and arguments[1] == "__dict__":
                return self.replaced(arguments[0], lambda: called(*arguments))
        return called(*arguments, **keywords)

    def configuring(self, called: Any, name: str, site: int) -> Callable[..., Any]:
        """A method that stores an attribute, or changes what it holds, in code that is trusted."""
        entry = called.__self__

        def configured(*arguments: Any, **keywords: Any) -> Any:
            if self._scheduler.watching:
                held = mapping_of(entry) or {}
                if type(held.get(name)) is list:
                    self._contents.touch(held[name], site, True)
                else:
                    self._changed(True, (entry, name), site)
            return called(*arguments, **keywords)

        return configured

    def storing(self, called: Any, stored: Callable[..., list[str]], site: int) -> Callable[..., Any]:
        """A method in C that stores attributes of its object, whose names `stored` gives."""

        def storing(*arguments: Any) -> Any:
            if self._scheduler.watching and arguments:
                for name in stored(arguments[0]):
                    self._changed(True, (called.__self__, name), site)
            return called(*arguments)

        return storing

    def mapping(self, called: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], site: int) -> Any:
        """`vars`, by another name."""
        return called(*map(self._accesses.mapped, arguments), **keywords)

    def by_slot_wrapper(self, called: Any, arguments: tuple[Any, ...], site: int) -> Any:
        """`object.__setattr__` and its like."""
        given = arguments if type(called) is WrapperDescriptorType else (called.__self__, *arguments)
        if self._scheduler.watching and len(given) > 1:
            self._changed(called.__name__ != "__getattribute__", given, site)
            if given[1] == "__dict__" and len(given) > 2:
                return self.replaced(given[0], lambda: called(*arguments))
        return called(*arguments)

    def by_descriptor(self, called: Any, arguments: tuple[Any, ...], site: int) -> Any:
        """A slot is read or stored through its descriptor."""
        if self._scheduler.watching and arguments and arguments[0] is not None:
            name = called.__self__.__name__
            given = arguments if called.__name__ == "__set__" else arguments[:1]
            self._changed(called.__name__ != "__get__", (given[0], name, *given[1:]), site)
        return called(*arguments)

    def _changed(self, writes: bool, given: tuple[Any, ...], site: int) -> None:
        """An attribute is about to be looked at, or stored: of what is given, by its name, and perhaps a value."""
        entry, name = given[:2]
        if name == "__dict__":
            self._accesses.mapped(entry)
        if name in HIDDEN_STORES and (writes or name in HIDDEN):
            self._accesses.unseen(entry, site)
        if writes and type(name) is str:
            self._points.by_name.add(name)
            self.writing(entry, name, site)
        found: list[Access] = []
        find = self._find
        if not writes and name in self._of_classes:
            found.extend((find(one, name), site, False, one, name, None) for one in holders_of(entry)[1:])
        for_another = self._racing[site] == POINT and name in self._points.shown  # a point for another name
        if name in self._written and not for_another:
            value = given[2] if len(given) > 2 else None
            found.append((find(entry, name), site, writes, entry, name, value))
        self._accesses.accessed(found)
