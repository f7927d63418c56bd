"""Stand-ins for what starts and ends processes, and says which there are.

`multiprocessing.process` is written in Python, and runs unchanged; `Popen` stands in for what it starts a process with.
"""

from __future__ import annotations

import multiprocessing.context as contexts
import multiprocessing.process as real
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from reactive_runtime.errors import ExploreError
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import Aborted, Task
from reactive_runtime.explore._standins import instrumented
from reactive_runtime.explore._standins.process_world import FIRST, Ordered, Process, World, dumped, loaded, world

__all__ = ["changes"]

_real_getpid: Final = os.getpid
_SIGNALS: Final = {"SIGTERM": 15, "SIGKILL": 9}
_real_getppid: Final = os.getppid
_real_kill: Final = os.kill
_real_exit: Final = os._exit
_real_cleanup: Final[Callable[[], None]] = vars(real)["_cleanup"]


class _Counter:
    """Numbers the processes that the real process makes, in each run from 1."""

    def __init__(self) -> None:
        self._run = -1
        self._last = 0

    def __next__(self) -> int:
        scheduler = instrumented.running()
        if self._run != scheduler.run:
            self._run, self._last = scheduler.run, 0
        self._last += 1
        return self._last


# -- a process ------------------------------------------------------------------------------------------------


class Popen:
    """Stands in for what `multiprocessing.process` starts a process with, and asks for it."""

    method = "spawn"

    def __init__(self, process: Any) -> None:
        me = instrumented.caller()
        if me is None:
            raise ExploreError(
                "an invariant (at_end, at_each_step, outcome) has started a process: it must only look; do it in an"
                " actor"
            )
        scheduler = instrumented.running()
        if scheduler.aborting:
            raise Aborted
        here = world()
        here.begin()
        parent = here.of(me)
        self.process = child = Process(
            process.name, FIRST + len(here.started), parent, process._config.get("daemon", False)
        )
        with scheduler.undisturbed():
            starting: Any = self
            contexts.set_spawning_popen(starting)  # `authkey` is pickled if there is one
            try:
                data = dumped(process, here, child)
            except Exception as error:
                error.add_note(f"{process.name} gets a pickled copy of its arguments, as with the start method spawn")
                raise
            finally:
                contexts.set_spawning_popen(None)
            here.copy_names(child)
        here.started.append(child)
        child.main = task = scheduler.spawn(child.title, lambda: _live(child, data), child.daemon)
        here.by_task[task.index] = child
        if scheduler.tracking:
            me.chain = hash((me.chain, 2))

    @property
    def pid(self) -> int:
        """Of the process."""
        return self.process.pid

    sentinel: Final = None
    """`multiprocessing.connection.wait` is refused anyway."""

    @property
    def returncode(self) -> int | None:
        """The exit code, if it has ended."""
        return self.process.code

    def poll(self, flag: int = 0) -> int | None:
        """Its exit code: a point of choice."""
        me = instrumented.caller()
        if me is not None and not instrumented.running().aborting:
            scheduler = instrumented.running()
            instrumented.point(scheduler, me, self.process, "poll", writes=False)
            instrumented.met(scheduler, me, self.process, writes=False)
            scheduler.only_looked(me, sys._getframe(2))
        return self.process.code

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for its end."""
        me = instrumented.caller()
        child = self.process
        if me is None:
            return child.code
        scheduler = instrumented.running()
        if scheduler.aborting:
            raise Aborted
        if child.code is not None or (timeout is not None and timeout <= 0):
            instrumented.point(scheduler, me, child, "join", writes=False)
        else:
            child.joiners.append(me)
            me.location, me.writes, me.what = child, False, "join"
            scheduler.wait(me, instrumented.until(scheduler, timeout))
            if me in child.joiners:
                child.joiners.remove(me)
        instrumented.met(scheduler, me, child, writes=False)
        return child.code

    def terminate(self) -> None:
        """It ends where it is, and calls no handler of the signal."""
        _kill(self.process, -_SIGNALS["SIGTERM"], "terminate")

    def kill(self) -> None:
        """The same."""
        _kill(self.process, -_SIGNALS["SIGKILL"], "kill")

    def close(self) -> None:
        """Does nothing."""

    def duplicate_for_child(self, descriptor: int) -> int:
        """Asked by what pickles a descriptor."""
        return descriptor


def _live(child: Process, data: bytes) -> None:
    """The life of a process, on its main thread."""
    here, scheduler = world(), instrumented.running()
    me = scheduler.current
    with scheduler.undisturbed():
        process = loaded(data, here, child)
        real.__dict__.update(
            _current_process=process, _parent_process=_Parent(process._parent_name, process._parent_pid)
        )
    try:
        process.run()
        code = 0
    except SystemExit as error:
        code = 0 if error.code is None else error.code if isinstance(error.code, int) else 1
    _leave(child, code, here, scheduler, me)


class _Parent:
    """The parent, as `multiprocessing.parent_process` gives it."""

    exitcode: Any = None

    def __init__(self, name: str, pid: int) -> None:
        self.name = name
        self.pid = self.ident = pid


def _leave(child: Process, code: int, here: World, scheduler: Scheduler, me: Task) -> None:
    """The last steps of a process: it waits for its threads and processes, and for what it has still to hand on."""
    for process in list(real._children):  # type: ignore[attr-defined]
        if process.daemon:
            process.terminate()
        process.join()
    for task in list(scheduler.threads):
        if task is not me and not task.ended and not task.daemon and here.of(task) is child:
            task.joiners.append(me)
            me.location, me.what = None, "exit"
            scheduler.wait(me)
            if scheduler.tracking:
                me.chain = hash((me.chain, task.chain))
                if scheduler.observer is not None:
                    scheduler.observer.noted(me, task, False)
    for exits in child.exits:
        exits()
    me.location, me.writes, me.what = child, True, "exit"
    scheduler.step(me)
    here.bury(child, code, scheduler, me)


def _kill(process: Process, code: int, what: str) -> None:
    """A point of choice; then a process does no further step."""
    me = instrumented.caller()
    if me is None:
        return
    scheduler = instrumented.running()
    if scheduler.aborting:
        raise Aborted
    here = world()
    instrumented.point(scheduler, me, None, what)
    if scheduler.observer is not None:
        scheduler.observer.concerns_all()
    if scheduler.tracking:
        chains = [task.chain for task in scheduler.threads if here.of(task) is process]
        me.chain = hash((me.chain, process.pid, *chains))
    if process.code is not None:
        return
    itself = here.of(me) is process
    here.bury(process, code, scheduler, me)
    if itself:
        scheduler.kill(me)
        scheduler.wait(me)  # which does not return


# -- what the system says and does ----------------------------------------------------------------------------


def getpid() -> int:
    """`os.getpid`."""
    return _real_getpid() if instrumented.foreign() else world().inside.pid


def getppid() -> int:
    """`os.getppid`."""
    parent = None if instrumented.foreign() else world().inside.parent
    return _real_getppid() if parent is None else parent.pid


def kill(pid: int, signal: int, /) -> None:
    """`os.kill` of a process of the run; the signal is one that ends a process, or 0."""
    if instrumented.foreign() or pid < FIRST:
        _real_kill(pid, signal)
        return
    here = world()
    if not 0 <= pid - FIRST < len(here.started):
        raise ProcessLookupError(3, "No such process")
    process = here.started[pid - FIRST]
    me = instrumented.caller()
    if me is not None and not signal:
        scheduler = instrumented.running()
        instrumented.point(scheduler, me, process, "kill", writes=False)
        instrumented.met(scheduler, me, process, writes=False)
        scheduler.only_looked(me, sys._getframe(1))
    if process.code is not None:
        raise ProcessLookupError(3, "No such process")
    if int(signal) in _SIGNALS.values():
        _kill(process, -int(signal), "kill")
    elif signal:
        raise ExploreError(f"os.kill with signal {int(signal)}: only SIGTERM, SIGKILL and 0 are modelled")


def exit_at_once(status: int) -> None:
    """`os._exit` of a process of the run."""
    here = None if instrumented.foreign() else world()
    if here is None or here.inside is here.here:
        _real_exit(status)
    else:
        _kill(here.inside, status, "_exit")


def _cleanup() -> None:
    """`multiprocessing.process._cleanup`, which looks for processes that have ended, but not where one is started."""
    if instrumented.foreign() or sys._getframe(1).f_code.co_name != "start":
        _real_cleanup()


def _started(real_popen: Any) -> Any:
    return staticmethod(lambda process: real_popen(process) if instrumented.foreign() else Popen(process))


def changes() -> Iterator[tuple[Any, str, Any]]:
    """Yields modules or classes, a name of each, and the stand-in for that name."""
    yield os, "getpid", getpid
    yield os, "getppid", getppid
    yield os, "kill", kill
    yield os, "_exit", exit_at_once
    yield real, "_cleanup", _cleanup
    yield real, "_process_counter", _Counter()
    yield real, "_children", Ordered()
    for name in ("Process", "ForkProcess", "SpawnProcess", "ForkServerProcess"):
        if (kind := getattr(contexts, name, None)) is not None:
            yield kind, "_Popen", _started(kind._Popen)
