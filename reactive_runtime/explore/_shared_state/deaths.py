"""The death of objects that threads look at through weak references: it changes what these give.

An object dies in the middle of a step, that of the thread which drops it. There is no point before that, but there is
one before each look at a reference, once a look and the death have raced.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime.explore._schedule.carriers import real_ident
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._shared_state.accesses import Accesses
from reactive_runtime.explore._shared_state.kinds import is_heap
from reactive_runtime.explore._shared_state.locations import Location

__all__ = ["WEAK", "Deaths"]

WEAK: Final = (weakref.WeakValueDictionary, weakref.WeakKeyDictionary, weakref.WeakSet)
"""Containers that drop what has died."""
_MOST: Final = 100
"""Elements of such a container that are watched."""


def _nothing() -> None:
    """Give the object of a location that keeps none."""


class Deaths:
    """The hook for weak references. The holder of the turn owns it; between two runs the main thread does."""

    __slots__ = ("_accesses", "_held", "_known", "_scheduler")

    def __init__(self, scheduler: Scheduler, accesses: Accesses) -> None:
        self._scheduler = scheduler
        self._accesses = accesses
        self._held: dict[int, tuple[Any, list[Location]]] = {}  # by the id of an object: what its death changes
        self._known: dict[int, Location] = {}  # by the id of a reference: for when the object is dead

    def forget(self) -> None:
        """A run has ended."""
        self._held.clear()
        self._known.clear()

    def begin(self) -> None:
        """Before a run: what is there is no longer young, so that `find` need not look at it."""
        if primitives.has_gil():  # the collector of the other builds has no generations
            self._scheduler.collect(0)

    def find(self) -> None:
        """The set-up has ended: watch the objects of the program that it has made weak references to."""
        for item in gc.get_objects(0):
            if issubclass(type(item), weakref.ReferenceType):
                self._watch(item)

    def making(self, *given: Any) -> Any:
        """`weakref.ref`."""
        made = weakref.ref(*given)
        self._watch(made)
        return made

    def asking(self, called: Any, site: int) -> Callable[[], Any]:
        """A call of a weak reference."""

        def asked() -> Any:
            location = self._watch(called) if self._scheduler.watching else None
            if location is not None:
                self._accesses.accessed([(location, site, False, None, "a weak reference", None)])
            return called()

        return asked

    def _watch(self, reference: Any) -> Location | None:
        """The location that the death of a referent changes; of one that is dead, if it is known."""
        referent = weakref.ReferenceType.__call__(reference)
        if referent is None:
            return self._known.get(id(reference))
        if not is_heap(type(referent)):
            return None
        changed = self._changed_by(referent)
        if not changed:
            changed.append(Location(_nothing))
        self._known[id(reference)] = changed[0]
        return changed[0]

    def held_in(self, container: Any, location: Location) -> None:
        """A container of weak references is accessed: the deaths of its elements change it."""
        for reference in islice(_references(container), _MOST):
            self._watch(reference)
            referent = weakref.ReferenceType.__call__(reference)
            if referent is not None:
                changed = self._changed_by(referent)
                if location not in changed:
                    changed.append(location)

    def _changed_by(self, referent: Any) -> list[Location]:
        """The locations that the death of an object changes."""
        held = self._held.get(id(referent))
        if held is None or held[0]() is not referent:
            changed: list[Location] = []
            held = self._held[id(referent)] = (weakref.ref(referent, lambda _: self._died(changed)), changed)
        return held[1]

    def _died(self, changed: list[Location]) -> None:
        """On the thread that has dropped the object, in the middle of a step."""
        scheduler = self._scheduler
        if scheduler.watching and not scheduler.aborting and real_ident() == scheduler.current.ident:
            for location in changed:
                self._accesses.touched(location, True)
                if scheduler.tracking:
                    scheduler.note(scheduler.current, location, True)


def _references(container: Any) -> Iterator[Any]:
    held = object.__getattribute__(container, "__dict__").get("data", ())
    elements = held.values() if isinstance(container, weakref.WeakValueDictionary) else held
    return (item for item in elements if issubclass(type(item), weakref.ReferenceType))
