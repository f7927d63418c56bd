"""Puts the stand-ins in place for the time of an exploration, and takes them away again.

Three doors lead to threads: the package's own (`runtime.primitives`), the modules of the standard library, and names
that a module under exploration has imported from those, `from threading import Lock`, or under which it holds one of
them, or a lock that was made before, in a class, in a closure, as a default. Each is changed in one place, `installed`,
and restored when the block ends, whatever happened in it. Production classes are not touched but for three methods of
`threading.Thread`, which are needed for the classes that derive from it.
"""

from __future__ import annotations

import _thread
import concurrent.futures
import concurrent.futures._base
import concurrent.futures.process
import concurrent.futures.thread
import contextlib
import copyreg
import datetime
import functools
import gc
import logging
import multiprocessing
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import is_not
from types import CellType, FunctionType, ModuleType
from typing import Any, Final, NoReturn

from reactive_runtime._core.drains import trampoline
from reactive_runtime._core.failures import dropping, exits
from reactive_runtime._core.fusion import fuse
from reactive_runtime._core.runtime import primitives
from reactive_runtime._executors import shared_clock
from reactive_runtime.errors import ExploreError, ScenarioError
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import Aborted
from reactive_runtime.explore._shared_state.kinds import module_of, names_of
from reactive_runtime.explore._standins import (
    between_processes,
    conditions,
    instrumented,
    living,
    open_files,
    process_world,
    threads,
)

__all__ = ["READ", "installed"]

READ: Final = "explore·read"
"""The attribute of a handler of before whose records the program reads: a location."""

_NAMES: Final[dict[str, Any]] = {
    "Lock": instrumented.Lock,
    "RLock": instrumented.RLock,
    "Condition": conditions.Condition,
    "Event": conditions.Event,
    "Semaphore": conditions.Semaphore,
}
_new_lock: Final = threading.Lock
_REAL_LOCK: Final = type(_new_lock())
_REAL_RLOCK: Final = type(threading.RLock())
_REAL_LOCKS: Final = (_REAL_LOCK, _REAL_RLOCK)
_REAL_LOCAL: Final = threading.local


def _changes() -> Iterator[tuple[Any, Any, Any]]:
    """Yields modules or classes, a name of each, and the stand-in for that name."""
    for name, item in _NAMES.items():
        yield threading, name, item
        yield primitives, name, item
    yield threading, "BoundedSemaphore", conditions.BoundedSemaphore
    yield threading, "_allocate_lock", _for_waiting
    yield threading, "_time", threads.standing
    yield _thread, "start_new_thread", threads.start_new_thread
    yield threading, "current_thread", living.current_thread
    yield threading, "main_thread", living.main_thread
    yield threading, "enumerate", living.living
    yield threading, "active_count", living.active_count
    yield threading.Thread, "start", threads.start
    yield threading.Thread, "join", threads.join
    yield threading.Thread, "is_alive", threads.is_alive
    for module in (queue, primitives):
        yield module, "SimpleQueue", conditions.SimpleQueue
    if hasattr(functools, "RLock"):
        yield functools, "RLock", instrumented.RLock  # of each `cached_property`, until 3.12
    yield queue, "time", threads.standing
    for module in (concurrent.futures, concurrent.futures.thread, primitives):
        yield module, "ThreadPoolExecutor", threads.Pool
    yield concurrent.futures.thread.ThreadPoolExecutor, "submit", _pool_from_outside
    submit = concurrent.futures.process.ProcessPoolExecutor.submit
    yield (
        concurrent.futures.process.ProcessPoolExecutor,
        "submit",
        _processes(submit, "a task was submitted to a pool of processes"),
    )
    yield concurrent.futures._base, "_AcquireFutures", threads.AcquiredFutures
    yield concurrent.futures.Future, "__hash__", threads.hash_of_future
    yield sys, "unraisablehook", _unless_aborted(sys.unraisablehook)
    yield time, "sleep", threads.sleep
    yield time, "time", threads.time_of_day
    yield time, "time_ns", threads.time_of_day_ns
    yield datetime, "datetime", threads.DateTime
    yield datetime, "date", threads.Date
    for kind, stand_in in ((threads.real_datetime, threads.DateTime), (threads.real_date, threads.Date)):
        yield copyreg.dispatch_table, kind, _pickled_as(stand_in)
    for name in ("monotonic", "perf_counter"):
        yield time, name, threads.monotonic
        yield time, f"{name}_ns", threads.now_ns
    yield primitives, "monotonic", threads.standing
    yield primitives, "now_ns", threads.now_ns
    yield primitives, "pause", threads.pause
    yield primitives, "sleep", threads.sleep
    yield primitives, "SPINS", 1
    yield shared_clock, "_shared", None
    yield dropping, "active_handler", _outside(dropping.active_handler)
    yield logging.Logger, "handle", _reporting(logging.Logger.handle)
    yield logging.Handler, "handle", _of_the_program_or(logging.Handler.handle)
    for name in ("fork", "forkpty"):
        if hasattr(os, name):
            yield os, name, _processes(getattr(os, name), "a process was forked")
    yield from between_processes.changes()
    yield from open_files.changes()
    if "sqlite3" in sys.modules:
        from reactive_runtime.explore._standins import databases

        yield from databases.changes()
    import asyncio  # takes longer than all the rest

    from reactive_runtime.explore._standins import event_loop

    yield asyncio.events, "new_event_loop", event_loop.ExploredEventLoop
    yield asyncio, "new_event_loop", event_loop.ExploredEventLoop
    yield asyncio, "SelectorEventLoop", event_loop.ExploredEventLoop


def _pickled_as(stand_in: Any) -> Callable[[Any], Any]:
    """A function that pickles an instance: the stand-in has the name of its class meanwhile."""
    return lambda item: (stand_in, item.__reduce_ex__(2)[1])


def _for_waiting() -> Any:
    """What `wait` of a condition sleeps on. Conditions of before work on, for threads of before: with real locks."""
    return _new_lock() if instrumented.foreign() else instrumented.Lock()


def _reporting(report: Callable[..., object]) -> Callable[..., None]:
    """Something that reports what the program does.

    What is reported while a run is taken down says nothing about the program, and is left out; so is what comes of it
    afterwards, and out of garbage, of which it is not known whether its run was taken down.
    """

    def reported(*arguments: Any) -> None:
        scheduler = instrumented.active
        if scheduler is None or not scheduler.active:
            remains = scheduler is not None and (scheduler.aborting or scheduler.collecting)
            if not remains or instrumented.foreign():
                report(*arguments)
        elif not scheduler.aborting:
            report(*arguments)

    return reported


def _outside(report: Callable[..., object]) -> Callable[..., None]:
    """The same, which was there before the program, and has locks of its own: nothing in it is a point."""

    def undisturbed(*arguments: Any) -> None:
        scheduler = instrumented.active
        with contextlib.nullcontext() if scheduler is None or not scheduler.active else scheduler.undisturbed():
            report(*arguments)

    return _reporting(undisturbed)


def _of_the_program_or(handle: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """`Handler.handle`, where nothing is a point in a handler that was there before the program.

    The call itself is one, if the program is known to read what the handler gets.
    """

    def handled(self: Any, record: Any) -> Any:
        scheduler = instrumented.active
        own = self.lock is None or isinstance(self.lock, instrumented.Lock)
        if own or scheduler is None or not scheduler.active or instrumented.foreign():
            return handle(self, record)
        at: instrumented.Location | None = self.__dict__.get(READ)
        me = None if at is None else instrumented.caller()
        if at is not None and me is not None and not scheduler.aborting:
            instrumented.point(scheduler, me, at, "log")
            instrumented.met(scheduler, me, at)
        with scheduler.undisturbed():
            return handle(self, record)

    return handled


def _unless_aborted(hook: Callable[[Any], object]) -> Callable[[Any], None]:
    """A run that is taken down may reach a thread inside of a finaliser, which can't pass that on."""

    def unraisable(item: Any) -> None:
        if item.exc_type is not Aborted:
            hook(item)

    return unraisable


def _pool_from_outside(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> NoReturn:
    raise ExploreError(
        "a task was submitted to a pool that was made outside of the scenario, whose threads are not controlled:"
        " make the pool in the scenario's set-up, or in an actor"
    )


def _processes(begin: Callable[..., Any], what: str) -> Callable[..., Any]:
    """Wrap a function that begins a process, or hands work to one: it refuses to do so on an explored thread."""

    def begun(*args: Any, **kwargs: Any) -> Any:
        if instrumented.foreign():
            return begin(*args, **kwargs)
        raise ExploreError(f"{what}: the explorer orders threads, not processes")

    return begun


class _Undo:
    """What was there before."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, bool, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        namespace = _names_of(owner)
        had, before = name in namespace, namespace.get(name)
        _set(owner, name, value)
        self._before.append((owner, name, had, before))

    def set_unless_refused(self, owner: Any, name: str, value: Any) -> None:
        """`set`, but for a name that a descriptor of the metaclass guards: it stays as it is."""
        with contextlib.suppress(AttributeError, TypeError):
            self.set(owner, name, value)

    def undo(self) -> None:
        """All of it, although something can't be undone; that is raised then."""
        failed: list[Exception] = []
        while self._before:
            owner, name, had, value = self._before.pop()
            try:
                if had:
                    _set(owner, name, value)
                elif type(owner) is dict:
                    del owner[name]
                else:
                    delattr(owner, name)
            except Exception as error:
                failed.append(error)
        if failed:
            raise failed[0]


def _set(owner: Any, name: str, value: Any) -> None:
    """Of a class, without its metaclass, whose code is the program's and may refuse."""
    if type(owner) is dict:
        owner[name] = value
    else:
        (type.__setattr__ if issubclass(type(owner), type) else setattr)(owner, name, value)


@contextlib.contextmanager
def installed(scheduler: Scheduler, modules: Sequence[ModuleType], owners: Sequence[Any]) -> Iterator[None]:
    """Stand in for the primitives while the block runs, in `modules` also under the names they have imported.

    `owners` are of the program, outlive a run, and may hold by name locks, made before, and what makes some.
    """
    undo = _Undo()
    collecting, freezes = gc.isenabled(), not _has_frozen()
    before = instrumented.standing_for(scheduler)
    originals: dict[int, dict[str, Any]] = {}
    imported: frozenset[str] | None = None
    process_world.look_into(modules)
    try:
        changes = list(_changes())
        if scheduler.carriers.greenlets:
            changes += [(item, "get_ident", threads.get_ident) for item in (threading, primitives)]
            changes += [(threading, "local", threads.Local), (primitives, "ThreadLocal", threads.Local)]
            changes += [(owner, "here", threads.local_like(owner.here)) for owner in (exits, trampoline)]
        renamed = {
            id(vars(owner)[name]): change for owner, name, change in changes if _is_api(owner) and name in vars(owner)
        }
        originals = _originals(changes)
        renamed |= {id(_REAL_LOCK): instrumented.Lock}
        locks: dict[int, Any] = {}  # the stand-in of each lock, by its identity
        for module in modules:
            _rename(module, renamed, undo, scheduler)
        for owner in owners:
            for name, value in list(_names_of(owner).items()):
                stand_in = _standing_for(value, locks, {} if type(owner) is ModuleType else renamed, scheduler)
                if stand_in is not value:
                    if issubclass(type(owner), type) and type(stand_in) is FunctionType:
                        stand_in = staticmethod(stand_in)  # it is no method, as a function in C is none
                    undo.set_unless_refused(owner, name, stand_in)
        names = {module.__name__ for module in modules}
        for handler in _handlers():
            if module_of(type(handler)) in names:
                undo.set(handler, "lock", _standing_for(handler.lock, locks, {}, scheduler))
        for owner, name, entry in changes:
            undo.set(owner, name, entry)
        fuse.forget()
        gc.disable()
        if freezes:
            gc.freeze()  # what was there before is not looked at when garbage is collected between runs
        imported = frozenset(sys.modules)
        yield
    finally:
        try:
            process_world.put_back()
            undo.undo()
        finally:
            instrumented.standing_for(before)
            _free_all(_imported_since(imported), originals)
            fuse.forget()
            if freezes:
                gc.unfreeze()
            if collecting:
                gc.enable()


def _rename(module: ModuleType, renamed: dict[int, Any], undo: _Undo, scheduler: Scheduler) -> None:
    """Put stand-ins under the names that a module has imported, and in place of its thread-locals."""
    for name, value in list(vars(module).items()):
        stand_in = renamed.get(id(value))
        if stand_in is not None and module is not primitives and callable(value):
            undo.set(module, name, stand_in)
        elif issubclass(type(value), _REAL_LOCAL) and module not in (exits, trampoline):
            made = threads.local_like(value)
            if made is not None:
                undo.set(module, name, made)
            elif scheduler.carriers.greenlets:
                raise ScenarioError(
                    f"{module.__name__}.{name} is a thread-local whose class needs arguments or has slots:"
                    " no stand-in can be made, so use engine='threads'"
                )


def _originals(changes: list[tuple[Any, Any, Any]]) -> dict[int, dict[str, Any]]:
    """By the id of a stand-in: for what it stands, by name."""
    found: dict[int, dict[str, Any]] = {}
    for owner, name, change in changes:
        if _is_api(owner) and name in vars(owner):
            found.setdefault(id(change), {})[name] = vars(owner)[name]
    return found


def _imported_since(before: frozenset[str] | None) -> list[Any]:
    return [] if before is None else [module for name, module in list(sys.modules.items()) if name not in before]


def _free_all(modules: list[Any], originals: dict[int, dict[str, Any]]) -> None:
    for module in modules:
        _free(module, originals)


def _free(module: Any, originals: dict[int, dict[str, Any]]) -> None:
    """A run has imported a module: put back the originals of the stand-ins that it has got under its names."""
    for name, value in list(vars(module).items()) if type(module) is ModuleType else ():
        if (known := originals.get(id(value))) is not None:
            vars(module)[name] = known.get(name, next(iter(known.values())))
        elif type(value) in (instrumented.Lock, instrumented.RLock) and not value.locked():
            vars(module)[name] = _new_lock() if type(value) is instrumented.Lock else _REAL_RLOCK()


def _handlers() -> list[logging.Handler]:
    """The handlers that loggers have."""
    loggers = [logging.root, *logging.root.manager.loggerDict.values()]
    return [handler for logger in loggers if isinstance(logger, logging.Logger) for handler in logger.handlers]


def _has_frozen() -> bool:
    """Whether the user has frozen objects, for the garbage collector: that stays as it is. To count them takes time."""
    if not _frozen and gc.get_freeze_count():
        _frozen.append(True)
    return bool(_frozen)


_frozen: Final[list[bool]] = []
"""Not empty once the user had frozen objects; written by the one exploration that runs."""


def _is_api(owner: Any) -> bool:
    modules = (threading, _thread, time, datetime, concurrent.futures, multiprocessing, os, queue)
    return owner in modules or (type(owner) is ModuleType and owner.__name__ in ("fcntl", "sqlite3"))


def _standing_for(
    value: Any, locks: dict[int, Any], renamed: dict[int, Any], scheduler: Scheduler, depth: int = 3
) -> Any:
    """What stands in for a lock that was made before, which may have several names, and for what makes one.

    In a tuple, for each; so defaults are, which may be tuples themselves.
    """
    kind = type(value)
    if kind is tuple and depth:
        items = tuple(_standing_for(item, locks, renamed, scheduler, depth - 1) for item in value)
        return items if any(map(is_not, items, value)) else value
    if id(value) in renamed and callable(value):
        return renamed[id(value)]
    between = between_processes.LOCKS.get((kind.__module__, kind.__name__))
    if between is None and (not issubclass(kind, _REAL_LOCKS) or (kind is _REAL_LOCK and value.locked())):
        return value
    if id(value) not in locks:
        lock = (between or (instrumented.RLock if issubclass(kind, _REAL_RLOCK) else instrumented.Lock))()
        scheduler.lasting.append(lock)
        locks[id(value)] = lock
    return locks[id(value)]


def _names_of(owner: Any) -> Mapping[str, Any]:
    """What an owner has under which name; nothing of a metaclass runs for it."""
    kind = type(owner)
    if issubclass(kind, type):
        return names_of(owner)
    if kind is CellType:
        return {"cell_contents": owner.cell_contents}
    if kind is FunctionType:
        return {"__defaults__": owner.__defaults__}
    found: Mapping[str, Any] = owner if kind is dict else vars(owner)
    return found
