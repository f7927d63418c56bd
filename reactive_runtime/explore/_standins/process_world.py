"""The processes of a run: each is a task thread of the explorer, with a copy of what a real one has of its own.

`explored_processes` starts and ends them.

A process gets a pickled copy of its arguments, as with the start method *spawn*, whichever is asked for. Names of the
program's modules, and data that their classes have, are its own: where another process gets the turn, its values are
put in place (`World.enter`). Their values are copied when a process starts, as far as they can be pickled. All
else is shared: the settings of `sys`, the environment, the working folder, loggers, the state of other packages.

A process that is killed stands still where it is, and its locks stay as they are; what the system frees is freed:
connections, locks of files, transactions of databases. A thread of it that could have gone on has one more step, in
which it does nothing: so a search sees that it could have gone on before.

Ownership: the holder of the turn owns all of it. `World` lives for one run.
"""

from __future__ import annotations

import io
import itertools
import multiprocessing.process as real
import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing.reduction import ForkingPickler
from types import BuiltinFunctionType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any, Final, NoReturn

from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import READY, RESTING, Aborted, Task
from reactive_runtime.explore._standins import instrumented
from reactive_runtime.explore._standins.instrumented import Location

__all__ = [
    "FIRST",
    "Ordered",
    "Process",
    "Shared",
    "World",
    "closed",
    "dumped",
    "loaded",
    "look_into",
    "put_back",
    "world",
]

FIRST: Final = 5_000_000
"""The number of the first process of a run: Linux gives none above 4,194,304, so no real one is meant by it."""

_OF_A_PROCESS: Final = ("_current_process", "_parent_process", "_process_counter", "_children")
"""Names of `multiprocessing.process` that each process has of its own."""

_NOT_COPIED: Final = (
    *(int, float, complex, bool, str, bytes, type(None), range, frozenset),
    *(type, ModuleType, FunctionType, BuiltinFunctionType),
)
"""Types of values that can't change, or that all processes have from an import."""

_NO_DATA: Final = (
    *(FunctionType, BuiltinFunctionType, classmethod, staticmethod, property, type),
    *(MemberDescriptorType, GetSetDescriptorType),
)
"""Types of what a class has under a name that is no data of the program's."""

_OF_CLASSES: Final = -1
"""Stands for the number of a module."""


_real_getpid: Final = os.getpid
_real_close: Final = os.close

_modules: list[ModuleType] = []
"""Modules whose names each process has of its own; written before an exploration, by its thread."""


class Shared:
    """Something that processes share if one hands it to another as it starts it."""

    __slots__ = ()

    def handed(self, process: Process | None) -> Any:
        """The object that `process` gets; None: the process that reads it from a pipe."""
        return self

    def arrived(self, process: Process) -> None:
        """`process` has got it."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise RuntimeError(
            f"{type(self).__name__} objects should only be shared between processes through inheritance: hand it over"
            " as an argument of the process"
        )


class Process(Location):
    """A process of one run. As a location: whether it has ended."""

    __slots__ = ("code", "daemon", "exits", "joiners", "leaving", "main", "names", "parent", "pid", "title")

    def __init__(self, name: str, pid: int, parent: Process | None, daemon: bool) -> None:
        super().__init__()
        self.title: str = name
        self.pid: int = pid
        self.parent: Process | None = parent
        self.daemon: bool = daemon
        self.code: int | None = None  # its exit code
        self.main: Task | None = None
        self.joiners: list[Task] = []
        self.exits: list[Callable[[], None]] = []  # waits, at its end, for what it has still to hand on
        self.leaving: dict[int, Callable[[Scheduler, Task], None]] = {}  # by id: frees what it has
        self.names: dict[int, dict[str, Any]] = {}  # by the number of a module: its names, while another one runs

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("cannot pickle a process that was started")


class World:
    """The processes of one run."""

    __slots__ = (
        "attributes", "by_task", "databases", "doomed", "here", "inside", "locks", "opened", "raw", "run", "scheduler",
        "shared", "started", "unclosed",
    )  # fmt: skip

    def __init__(self, scheduler: Scheduler | None) -> None:
        self.scheduler = scheduler
        self.run: int = -1 if scheduler is None else scheduler.run
        self.here = self.inside = Process("main", _real_getpid(), None, False)
        self.by_task: dict[int, Process] = {0: self.here}
        self.attributes: list[tuple[type, str]] = []  # data that classes of the program have
        self.started: list[Process] = []
        self.doomed: set[int] = set()  # threads that have been killed, and have their last step still to do
        self.locks: dict[tuple[int, int], Any] = {}  # by device and number of a file
        self.databases: dict[str, Any] = {}  # by path
        self.shared: dict[int, Any] = {}  # by id: what was handed over
        self.opened: dict[int, tuple[int, int]] = {}  # by descriptor: the device and number of a file of a process
        self.unclosed: list[Callable[[], None]] = []  # closes, if it is open, what the system closes with a process
        self.raw: dict[int, Any] = {}  # by id: memory that processes share, and that is no `Shared`

    def of(self, task: Task) -> Process:
        """The process that a task thread is in."""
        found = self.by_task.get(task.index)
        if found is None:
            assert self.scheduler is not None
            found = self.by_task[task.index] = self.of(self.scheduler.threads[task.parent])
        return found

    # -- descriptors -------------------------------------------------------------------------------------------

    def has_opened(self, number: int) -> None:
        """A process has opened a file by `os.open`. The first process closes its own, or keeps them."""
        if self.inside is not self.here:
            status = os.fstat(number)
            self.opened[number] = (status.st_dev, status.st_ino)

    def close_left(self) -> None:
        """After a run, when no thread is left: close what processes have opened, as the system does at their end."""
        for number, file in self.opened.items():
            with suppress(OSError):
                status = os.fstat(number)
                if file == (status.st_dev, status.st_ino):
                    _real_close(number)
        self.opened.clear()
        for close in self.unclosed:
            close()
        self.unclosed.clear()

    # -- names of its own --------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Before the first process is started: from now on a thread with the turn finds the names of its process."""
        scheduler = self.scheduler
        assert scheduler is not None
        if scheduler.placed is None:
            scheduler.placed = self._placed
            self.attributes = list(_attributes())
            for task in scheduler.threads:
                self._placed(task)

    def _placed(self, task: Task) -> None:
        go, wait, target, doomed = task.go, task.wait, task.target, self.doomed

        def gone() -> object:
            process = self.of(task)
            if process is not self.inside:
                self.enter(process)
            return go()

        def waited() -> object:
            result = wait()
            if task.index in doomed:
                self._die(task)
            return result

        def begun() -> object:
            if task.index in doomed:
                self._die(task)
            return target()

        task.go, task.wait, task.target = gone, waited, begun

    def _die(self, task: Task) -> NoReturn:
        """The last step of a thread that was killed."""
        scheduler = self.scheduler
        assert scheduler is not None
        self.doomed.discard(task.index)
        if not scheduler.aborting:
            if scheduler.tracking:
                scheduler.note(task, self.of(task), True)
            task.what = "killed"
            scheduler.schedule.append(task.index)
            if scheduler.step_log is not None:
                scheduler.step_log.step(task)
                scheduler.step_log.shown_as("killed", None)
            scheduler.kill(task)
            scheduler.wait(task)
        raise Aborted

    def enter(self, process: Process) -> None:
        """The names of `process` are in place from now on."""
        if process is self.inside:
            return
        before, self.inside = self.inside, process
        for number, names in enumerate(_namespaces()):
            kept = before.names[number] = dict(names)
            mine = process.names.get(number, kept)
            if number == len(_modules):  # of `multiprocessing.process`
                names.update({name: mine[name] for name in _OF_A_PROCESS})
                continue
            names.update(mine)
            for name in kept.keys() - mine.keys():
                del names[name]
        kept = before.names[_OF_CLASSES] = self._of_classes()
        for key, value in process.names.get(_OF_CLASSES, kept).items():
            if value is not kept[key]:
                cls, name = self.attributes[int(key)]
                type.__setattr__(cls, name, value)

    def _of_classes(self) -> dict[str, Any]:
        return {str(at): vars(cls)[name] for at, (cls, name) in enumerate(self.attributes) if name in vars(cls)}

    def copy_names(self, child: Process) -> None:
        """`child` gets a copy of the names of the process that is in place."""
        for number, names in enumerate(_namespaces()):
            mine = child.names[number] = dict(names)
            if number == len(_modules):
                mine.update(_children=Ordered(), _process_counter=itertools.count(1))
                continue
            own = {
                name: value
                for name, value in names.items()
                if not name.startswith("__") and not isinstance(value, _NOT_COPIED)
            }
            mine.update(self._copied(own, child))
        of_classes = child.names[_OF_CLASSES] = self._of_classes()
        own = {key: value for key, value in of_classes.items() if not isinstance(value, _NOT_COPIED)}
        of_classes.update(self._copied(own, child))

    def _copied(self, values: dict[str, Any], child: Process) -> dict[str, Any]:
        """The values, copied together; if that can't be, each alone, and as it is if that can't be either."""
        try:
            copies: dict[str, Any] = loaded(dumped(values, self, child, lenient=True), self, child)
        except Exception:
            if len(values) <= 1:
                return {}
            copies = {}
            for name, value in values.items():
                copies.update(self._copied({name: value}, child))
        return copies

    # -- the end of a process ----------------------------------------------------------------------------------

    def bury(self, process: Process, code: int, scheduler: Scheduler, me: Task) -> None:
        """`process` has ended: its threads do no further step, and what the system frees is free."""
        process.code = code
        for task in scheduler.threads:
            if task is me or task.ended or task is scheduler.main or self.of(task) is not process:
                continue
            if task.state in (READY, RESTING):
                self.doomed.add(task.index)
            else:
                scheduler.kill(task)
        for leaves in list(process.leaving.values()):
            leaves(scheduler, me)
        process.leaving.clear()
        if scheduler.tracking:
            scheduler.note(me, process, True)
        instrumented.left(scheduler, me, process)
        me.acts += 1
        for joiner in process.joiners:
            scheduler.wake(joiner)
        process.joiners.clear()


_world = World(None)


def world() -> World:
    """The processes of the run that is under way."""
    global _world
    scheduler = instrumented.active
    if scheduler is not None and (_world.run != scheduler.run or _world.scheduler is not scheduler):
        put_back()
        _world = World(scheduler)
        real._children.clear()  # type: ignore[attr-defined]
    return _world


def put_back() -> None:
    """After a run: the names are those of the real process."""
    _world.enter(_world.here)
    _world.close_left()


def closed(number: int) -> None:
    """A descriptor is closed, or belongs to an open file from now on, which closes it."""
    _world.opened.pop(number, None)


def look_into(modules: Iterable[ModuleType]) -> None:
    """Before an exploration: the modules of the program."""
    _modules[:] = [module for module in modules if not module.__name__.startswith("reactive_runtime")]


def _attributes() -> Iterator[tuple[type, str]]:
    """The data that classes of the program's modules have."""
    for module in _modules:
        for cls in list(vars(module).values()):
            if issubclass(type(cls), type) and vars(cls).get("__module__") == module.__name__:
                for name, value in vars(cls).items():
                    if not name.startswith("__") and not isinstance(value, _NO_DATA):
                        yield cls, name


def _namespaces() -> Iterator[dict[str, Any]]:
    yield from (module.__dict__ for module in _modules)
    yield real.__dict__


class Ordered(dict[Any, None]):
    """A set in the order of insertion, which is the same in every run."""

    def add(self, item: Any) -> None:
        """As `set.add`."""
        self[item] = None

    def discard(self, item: Any) -> None:
        """As `set.discard`."""
        self.pop(item, None)


# -- what is handed over --------------------------------------------------------------------------------------


class _Pickler(ForkingPickler):
    def __init__(self, file: io.BytesIO, here: World, child: Process | None, lenient: bool) -> None:
        super().__init__(file, 5)
        self._world = here
        self._child = child
        self._lenient = lenient

    def persistent_id(self, item: Any) -> Any:
        if isinstance(item, Shared) and (self._child is not None or getattr(item, "travels", False)):
            handed = item.handed(self._child)
            self._world.shared[id(handed)] = handed
            return id(handed)
        if self._child is not None and id(item) in self._world.raw:
            return id(item)
        if self._lenient and isinstance(item, instrumented.Lock):
            return type(item)  # a lock of threads: each process has its own
        return None


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, here: World, process: Process) -> None:
        super().__init__(io.BytesIO(data))
        self._world = here
        self._process = process

    def persistent_load(self, key: Any) -> Any:
        if isinstance(key, type):
            return key()
        shared = self._world.shared.get(key)
        if shared is None:
            return self._world.raw[key]
        shared.arrived(self._process)
        return shared


def dumped(item: Any, here: World, child: Process | None = None, *, lenient: bool = False) -> bytes:
    """An object, pickled for another process: for `child`, which is about to start, or for one that reads a pipe.

    `lenient`: a lock of threads becomes another one.
    """
    file = io.BytesIO()
    _Pickler(file, here, child, lenient).dump(item)
    return file.getvalue()


def loaded(data: bytes, here: World, process: Process) -> Any:
    """The object that `process` gets of it."""
    return _Unpickler(data, here, process).load()
