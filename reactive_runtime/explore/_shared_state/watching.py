"""Finds the fields that threads race for, and makes points of them.

Every access of rewritten code comes by here. Two accesses of one location, by two threads, one of them a store, that
no primitive puts in order, are a race: from the next run on, all sites that accessed it are points of choice. What is
always guarded by a lock never becomes one: the order of the guarded pieces is chosen where the lock is acquired, and
no other order can be distinguished. So a schedule has few points, and those are where threads can disagree.

What the calls of rewritten code call are *hooks*. Each family of them stands in a module of its own, and comes to the
ones before it:

    accesses        a point before an access, and whether it races; names that functions share
    contents        what a container, an iterator, a view has in it
    attributes      attributes, also by name and through descriptors
    caches          those of `functools`
    call_backs      what operations in C call
    deaths          looks at weak references
    file_places     paths, and what is read and written of a file
    foreign_calls   calls of code that is not rewritten
    calls           all other calls, and which are foreign
    patterns        `match`
    loop_turns      loops that wait for another thread

They share what one exploration learns (`points`), and what one run accesses (`locations`).
"""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, Final

from reactive_runtime.explore._instrument.code_patcher import sites_of, stored_in
from reactive_runtime.explore._instrument.operations import (
    IDENTITIES,
    IN_PLACE,
    OPERATIONS,
    Augmented,
    Compared,
    Target,
    Valued,
)
from reactive_runtime.explore._instrument.sites import SITES, Site
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._shared_state import accesses as _accesses
from reactive_runtime.explore._shared_state import attributes as _attributes
from reactive_runtime.explore._shared_state import caches as _caches
from reactive_runtime.explore._shared_state import call_backs as _call_backs
from reactive_runtime.explore._shared_state import calls as _calls
from reactive_runtime.explore._shared_state import contents as _contents
from reactive_runtime.explore._shared_state import deaths as _deaths
from reactive_runtime.explore._shared_state import file_places as _file_places
from reactive_runtime.explore._shared_state import foreign_calls as _foreign_calls
from reactive_runtime.explore._shared_state import locations as _locations
from reactive_runtime.explore._shared_state import loop_turns as _loop_turns
from reactive_runtime.explore._shared_state import patterns as _patterns
from reactive_runtime.explore._shared_state import points as _points
from reactive_runtime.explore._shared_state.accesses import PACKAGE, Accesses, place_of
from reactive_runtime.explore._shared_state.attributes import Attributes
from reactive_runtime.explore._shared_state.caches import Caches
from reactive_runtime.explore._shared_state.call_backs import CallBacks
from reactive_runtime.explore._shared_state.calls import Calls
from reactive_runtime.explore._shared_state.contents import Contents
from reactive_runtime.explore._shared_state.deaths import Deaths
from reactive_runtime.explore._shared_state.file_places import FilePlaces
from reactive_runtime.explore._shared_state.foreign_calls import CALLED, ForeignCalls
from reactive_runtime.explore._shared_state.kinds import Kinds
from reactive_runtime.explore._shared_state.locations import Locations
from reactive_runtime.explore._shared_state.loop_turns import LoopTurns
from reactive_runtime.explore._shared_state.patterns import Patterns
from reactive_runtime.explore._shared_state.points import Points

__all__ = ["HOOK_FILES", "Watcher"]

HOOK_FILES: Final = frozenset(
    str(module.__file__)
    for module in (
        _accesses, _attributes, _caches, _call_backs, _calls, _contents, _deaths, _file_places, _foreign_calls,
        _locations, _loop_turns, _patterns, _points,
    )
)  # fmt: skip
"""Where the frames stand that a thread has between its program and what that calls."""
_LONGEST: Final = 60
"""Characters that are shown of a call."""

_OF_DEATH: Final = frozenset({"weakref", "__del__", *weakref.__all__})
"""Names in programs that see objects die."""
_NO_HOOKS: Final = frozenset({"entry", "begun", "undisturbed", "valued", "compared", "target", "augmented", "turn"})
"""Classes, and what looks at the frame that it is called from."""


class Watcher(Points):
    """Watches the accesses of one exploration."""

    __slots__ = (
        "_accesses", "_attributes", "_caches", "_call_backs", "_calls", "_contents", "_deaths", "_files", "_locations",
        "_loops", "_patterns", "_scheduler", "_sees_death",
    )  # fmt: skip

    def __init__(
        self,
        scheduler: Scheduler,
        files: Iterable[str] = (),
        modules: Iterable[str] = (),
        functions: Iterable[FunctionType] = (),
    ) -> None:
        super().__init__()
        self._scheduler = scheduler
        self._files = frozenset(files)
        functions = list(functions)
        codes = [function.__code__ for function in functions]
        self._sees_death = any(_sees_death(code) for code in codes if not code.co_filename.startswith(PACKAGE))
        kinds = Kinds(modules)
        self._locations = locations = Locations(self, functions)
        self._accesses = accesses = Accesses(scheduler, self, locations)
        self._call_backs = call_backs = accesses.call_backs = CallBacks(scheduler, self, accesses)
        self._deaths = Deaths(scheduler, accesses)
        self._contents = contents = Contents(scheduler, self, locations, kinds, accesses, call_backs, self._deaths)
        self._attributes = attributes = Attributes(scheduler, self, locations, kinds, accesses, contents)
        self._caches = Caches(scheduler, kinds, accesses)
        scheduler.files = places = FilePlaces(scheduler, locations, accesses)
        foreign = ForeignCalls(scheduler, self, locations, kinds, accesses, contents, attributes, call_backs, places)
        self._calls = Calls(scheduler, self, foreign, self._caches, self._deaths)
        self._patterns = Patterns(scheduler, self, locations, kinds, accesses, contents)
        self._loops = LoopTurns(scheduler, self)
        scheduler.shown = self._shown

    def prepare(self) -> None:
        """When all sites are known: attributes that are stored outside of `__init__` may race from the first run on."""
        self.written |= frozenset().union(*map(stored_in, self._files))

    def begin(self) -> None:
        """Before each run."""
        self._forget_run()
        self._loops.begin()
        if not self.frozen:
            self.learn()
        self._call_backs.begin()
        self.make_room()
        if self._sees_death:
            self._deaths.begin()

    def watch(self) -> None:
        """After the set-up of each run."""
        if self._sees_death:
            self._deaths.find()

    def forget(self) -> None:
        """After the last run: drop what the program made, while its functions still are what they were."""
        self._forget_run()
        self.methods.clear()
        self._calls.forget()

    def _forget_run(self) -> None:
        self._locations.forget()
        self._caches.forget()
        self._deaths.forget()

    def not_looked_into(self) -> list[str]:
        """The calls that have changed, in code that is not looked into, what another thread accessed meanwhile."""
        for entry in self._locations.raced:
            self.blind |= entry.blind
        sites = sorted((SITES[site] for site in self.blind), key=lambda site: (site.filename, site.line, site.column))
        return list(dict.fromkeys(f"`{_text(site)}` at {place_of(site)}" for site in sites))

    def _shown(self, called: Any, frame: FrameType | None) -> Any:
        """A function that a thread is to call, as points at the line of the program that hands it on.

        Only functions in C and caches need that: no line of the program calls them.
        """
        inner = called.__func__ if type(called) is MethodType else called
        if type(inner) not in CALLED:
            return called
        while frame is not None and frame.f_code.co_filename not in self._scheduler.hooked:
            frame = frame.f_back
        if frame is None:
            return called
        line = frame.f_lineno
        site = next((at for at in sites_of(frame.f_code.co_filename) if SITES[at].line == line), None)
        return called if site is None else self._calls.handed_on(called, site)

    def hooks(self) -> dict[str, Any]:
        """What the calls of rewritten code call."""
        hooks = self._hooks()
        if self._sees_death:
            hooks |= {name: self._freeing(hook) for name, hook in hooks.items() if name not in _NO_HOOKS}
        return hooks

    def _freeing(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        """The hook, for a program that sees objects die: they do so when the program drops them."""
        scheduler, locations = self._scheduler, self._locations

        def freeing(*arguments: Any) -> Any:
            if not scheduler.watching:
                return hook(*arguments)
            if scheduler.step_log is not None:
                scheduler.step_log.settle()
            locations.free_the_dead()
            result = hook(*arguments)
            locations.free_the_dead()
            return result

        return freeing

    def _hooks(self) -> dict[str, Any]:
        accesses, attributes, calls, contents = self._accesses, self._attributes, self._calls, self._contents
        return {
            "load": attributes.load,
            "use": attributes.use,
            "inherited": attributes.inherited,
            "store": attributes.store,
            "store_mapping": attributes.store_mapping,
            "delete": attributes.delete,
            "take": calls.take,
            "call": calls.call,
            "function": calls.function,
            "filled": self._caches.filled,
            "entry": self._call_backs,
            "begun": self._call_backs.begun,
            "look": contents.look,
            "item": contents.item,
            "set_item": contents.set_item,
            "delete_item": contents.delete_item,
            "changing": contents.changing,
            "each": contents.each,
            "delegated": contents.delegated,
            **{f"{name}_at": contents.in_place(operator) for name, operator in IN_PLACE.items()},
            **{f"{name}_of": contents.operation(operator) for name, operator in OPERATIONS.items()},
            "matched": self._patterns.matched,
            "turn": self._loops.turn,
            "at": accesses.at,
            "named": accesses.named,
            "store_name": accesses.store_name,
            "binding": accesses.binding,
            "imported": accesses.imported,
            "resumed": accesses.resumed,
            "mapped": accesses.mapped,
            "unseen": accesses.unseen,
            "undisturbed": self._scheduler.undisturbed,
            "valued": Valued,
            "compared": Compared,
            "target": Target,
            "augmented": Augmented,
            "first": lambda one, other: one,
            "second": lambda one, other: other,
            **IDENTITIES,
            **IN_PLACE,
        }


def _sees_death(code: CodeType) -> bool:
    """Whether a function, or one inside of it, may notice that an object dies, by a finaliser or a weak reference."""
    return not _OF_DEATH.isdisjoint((code.co_name, *code.co_names)) or any(map(_sees_death, _inner(code)))


def _inner(code: CodeType) -> Iterator[CodeType]:
    return (item for item in code.co_consts if type(item) is CodeType)


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
