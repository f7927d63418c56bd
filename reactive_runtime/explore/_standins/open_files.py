"""Stand-ins for files: what opens and closes one, and the locks of `fcntl`.

Files are real. A program that opens one gets the classes of `io` on a raw file (`Raw`) that says when it is read and
written for real: where its buffer is filled or flushed. An open file closes its locks with it.

`flock` belongs to a descriptor, `lockf` to a process, which loses its locks of a file when it closes any descriptor
of that file. Both are kept here, by the file itself, and nothing is locked for real. A descriptor from `os.dup` is
another one; a deadlock that the kernel reports as EDEADLK stays a deadlock.

Ownership: the holder of the turn owns the locks, which live for one run.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._schedule.task import Task
from reactive_runtime.explore._shared_state.kinds import ACTING
from reactive_runtime.explore._standins import instrumented
from reactive_runtime.explore._standins.instrumented import Location
from reactive_runtime.explore._standins.process_world import Process, closed, world

__all__ = ["Raw", "changes"]

_SHARED, _EXCLUSIVE, _WITHOUT_WAITING, _UNLOCK = 1, 2, 4, 8
_END: Final = 2**63
"""The end of a range that reaches to the end of the file."""

_real_open: Final[Any] = io.open
_real_close: Final = os.close
_real_os_open: Final = os.open
_EXPLORER: Final = os.path.dirname(os.path.dirname(__file__)) + os.sep


def _is_explored() -> bool:
    scheduler = instrumented.active
    return scheduler is not None and scheduler.active and not scheduler.quiet and not instrumented.foreign()


class Raw(io.FileIO):
    """A file whose reads and writes are accesses of it."""

    def _accessed(self, writes: bool) -> None:
        scheduler = instrumented.active
        if scheduler is not None and scheduler.watching and _is_explored():
            scheduler.files.raw(self, writes, sys._getframe(2))

    def readinto(self, buffer: Any, /) -> Any:
        """As `FileIO.readinto`."""
        self._accessed(False)
        return super().readinto(buffer)

    def read(self, size: int | None = -1, /) -> Any:
        """As `FileIO.read`."""
        self._accessed(False)
        return super().read(-1 if size is None else size)

    def readall(self) -> Any:
        """As `FileIO.readall`."""
        self._accessed(False)
        return super().readall()

    def write(self, data: Any, /) -> Any:
        """As `FileIO.write`."""
        self._accessed(True)
        return super().write(data)

    def truncate(self, size: int | None = None, /) -> Any:
        """As `FileIO.truncate`."""
        self._accessed(True)
        return super().truncate(size)

    def close(self) -> None:
        """As `FileIO.close`; its locks are released."""
        if self.closed or not self.closefd:
            super().close()
            return
        number = self.fileno()
        held = _held(number)
        super().close()
        _closed(number, held)


class _Guard:
    """Keeps a thread from a buffer that another one is in the middle of: for real it would block.

    The holder of the turn owns it.
    """

    _inside: Task | None = None
    _depth: int = 0

    def _guarded(self, method: Callable[..., Any], *given: Any, **named: Any) -> Any:
        me = instrumented.active.current if instrumented.active is not None and _is_explored() else None
        if me is None:
            return method(self, *given, **named)
        scheduler = instrumented.running()
        while self._inside not in (None, me) and not scheduler.aborting:
            scheduler.pause(me, id(self), None)
        self._inside, self._depth = me, self._depth + 1
        try:
            return method(self, *given, **named)
        finally:
            self._depth -= 1
            if not self._depth:
                self._inside = None


def _guarding(kind: Any) -> Any:
    """A class of buffers whose methods that come to the file are guarded."""

    def guarded(name: str) -> Callable[..., Any]:
        method = getattr(kind, name)
        return lambda self, *given, **named: self._guarded(method, *given, **named)

    names = (
        "write", "flush", "close", "seek", "truncate", "read", "read1", "readinto", "readline", "peek", "detach"
    )  # fmt: skip
    return type(kind.__name__, (_Guard, kind), {name: guarded(name) for name in names if hasattr(kind, name)})


_Reader: Final = _guarding(io.BufferedReader)
_Writer: Final = _guarding(io.BufferedWriter)
_Random: Final = _guarding(io.BufferedRandom)


def open_(
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Any = None,
) -> Any:
    """Stands in for `open`."""
    given = (file, mode, buffering, encoding, errors, newline, closefd, opener)
    binary = "b" in mode if isinstance(mode, str) else True
    known = isinstance(mode, str) and sorted(mode.replace("b", "").replace("t", "").replace("+", "")) in _MODES
    text_only = encoding is not None or errors is not None or newline is not None
    if not _is_explored() or not known or (binary and (text_only or "t" in mode)) or (buffering == 0 and not binary):
        return _real_open(*given)  # which says what is wrong
    raw = Raw(file, mode.replace("b", "").replace("t", ""), closefd, opener)
    if closefd:
        closed(raw.fileno())
    try:
        if raw.isatty():
            raise OSError(errno.ENOTTY, "a terminal")
        if buffering == 0:
            return raw
        kind = _Random if "+" in mode else _Reader if "r" in mode else _Writer
        buffer = kind(raw, buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE)
        if binary:
            return buffer
        text = io.TextIOWrapper(buffer, io.text_encoding(encoding), errors, newline, buffering == 1)
        text.mode = mode  # type: ignore[misc]
        return text
    except BaseException:
        raw.close()
        raise


_MODES: Final = (["r"], ["w"], ["a"], ["x"])


def open_number(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    """Stands in for `os.open`; what a process does not close is closed after the run."""
    number = _real_os_open(path, flags, mode, dir_fd=dir_fd)
    if _is_explored():
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(_EXPLORER):
            frame = frame.f_back
        # A file object of the standard library closes its descriptor itself.
        if frame is not None and frame.f_code.co_filename in instrumented.running().hooked:
            world().has_opened(number)
    return number


def close(number: int) -> None:
    """Stands in for `os.close`; the locks of the descriptor are released."""
    held = _held(number) if isinstance(number, int) else None
    _real_close(number)
    closed(number)
    _closed(number, held)


# -- locks ----------------------------------------------------------------------------------------------------


_Range = tuple[Process, int, int, int]
"""A process, the first byte, the one behind the last, and whether the lock is shared or exclusive."""


class FileLock(Location):
    """The locks of one file."""

    __slots__ = ("flocks", "owners", "ranges", "wanted")

    def __init__(self) -> None:
        super().__init__()
        self.flocks: dict[int, int] = {}  # by descriptor
        self.owners: dict[int, Process] = {}
        self.ranges: list[_Range] = []
        self.wanted: list[tuple[Task, Callable[[], bool]]] = []  # threads that wait, and whether each could go on

    def take(self, is_free: Callable[[], bool], take: Callable[[], None], what: str, *, waits: bool) -> None:
        """A point of choice, and a wait; then the lock is taken."""
        me = instrumented.caller()
        scheduler = instrumented.active
        if me is None or scheduler is None or scheduler.aborting:
            take()
            return
        entry = (me, is_free)
        if not waits:
            scheduler.tried = True
            instrumented.point(scheduler, me, self, f"{what} without waiting")
            instrumented.met(scheduler, me, self)
            if not is_free():
                scheduler.only_looked(me, sys._getframe(2))
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        else:
            self.wanted.append(entry)
            me.location, me.writes, me.what = self, True, what
            if is_free():
                scheduler.step(me)
            else:
                scheduler.wait(me)
            self.wanted.remove(entry)
            instrumented.met(scheduler, me, self)
        take()
        me.acts += 1
        for task, could in self.wanted:
            if not could():
                scheduler.hold_back(task)

    def released(self, scheduler: Scheduler, me: Task) -> None:
        """A lock is no longer held."""
        if scheduler.tracking:
            scheduler.note(me, self, True)
        instrumented.left(scheduler, me, self)
        me.locks += 1
        for task, could in self.wanted:
            if could():
                scheduler.wake(task)

    def drop(self, number: int, process: Process | None) -> bool:
        """The descriptor is closed: whether that releases a lock."""
        held = self.flocks.pop(number, None) is not None
        self.owners.pop(number, None)
        before = len(self.ranges)
        if process is not None:
            self.ranges = [entry for entry in self.ranges if entry[0] is not process]
        return held or len(self.ranges) != before

    def leave(self, process: Process) -> Callable[[Scheduler, Task], None]:
        """A function that releases all that a process has here."""

        def left(scheduler: Scheduler, me: Task) -> None:
            numbers = [number for number, owner in self.owners.items() if owner is process]
            dropped = [self.drop(number, process) for number in [*numbers, -1]]
            if any(dropped):
                self.released(scheduler, me)

        return left


def _lock(number: int) -> FileLock:
    status = os.fstat(number)
    here = world()
    lock = here.locks.get((status.st_dev, status.st_ino))
    if lock is None:
        lock = here.locks[status.st_dev, status.st_ino] = FileLock()
    here.inside.leaving[id(lock)] = lock.leave(here.inside)
    return lock


def _held(number: int) -> FileLock | None:
    """The locks of the file that a descriptor is of, if there are any."""
    if not _is_explored() or not world().locks:
        return None
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return world().locks.get((status.st_dev, status.st_ino))


def _closed(number: int, held: FileLock | None) -> None:
    if held is not None and held.drop(number, world().inside):
        me = instrumented.caller()
        if me is not None:
            held.released(instrumented.running(), me)


def _number(file: Any) -> int:
    return file if isinstance(file, int) else file.fileno()


def flock(file: Any, operation: int, /) -> None:
    """Stands in for `fcntl.flock`."""
    if instrumented.foreign():
        _real("flock")(file, operation)
        return
    number = _number(file)
    lock, kind = _lock(number), operation & ~_WITHOUT_WAITING
    if kind == _UNLOCK:
        _unlock(lock, lambda: lock.flocks.pop(number, None) is not None)
        return
    if kind not in (_SHARED, _EXCLUSIVE):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    def is_free() -> bool:
        others = [other for at, other in lock.flocks.items() if at != number]
        return not others or (kind == _SHARED and _EXCLUSIVE not in others)

    def take() -> None:
        lock.flocks[number] = kind
        lock.owners[number] = world().inside

    if number in lock.flocks and not is_free():  # a lock of another kind is released first
        _unlock(lock, lambda: lock.flocks.pop(number, None) is not None)
    lock.take(is_free, take, "flock", waits=not operation & _WITHOUT_WAITING)


def lockf(file: Any, cmd: int, len: int = 0, start: int = 0, whence: int = 0, /) -> None:
    """Stands in for `fcntl.lockf`."""
    if instrumented.foreign():
        _real("lockf")(file, cmd, len, start, whence)
        return
    number = _number(file)
    lock, kind, process = _lock(number), cmd & ~_WITHOUT_WAITING, world().inside
    if whence == os.SEEK_CUR:
        start += os.lseek(number, 0, os.SEEK_CUR)
    elif whence == os.SEEK_END:
        start += os.fstat(number).st_size
    end = start + len if len else _END

    def without_mine() -> list[_Range]:
        kept: list[_Range] = []
        for owner, first, last, held in lock.ranges:
            if owner is not process or last <= start or first >= end:
                kept.append((owner, first, last, held))
                continue
            kept.extend([(owner, first, start, held)] if first < start else [])
            kept.extend([(owner, end, last, held)] if last > end else [])
        return kept

    def is_free() -> bool:
        return not any(
            owner is not process and first < end and last > start and _EXCLUSIVE in (kind, held)
            for owner, first, last, held in lock.ranges
        )

    def take() -> None:
        lock.ranges = [*without_mine(), (process, start, end, kind)]

    def unlock() -> bool:
        before, lock.ranges = lock.ranges, without_mine()
        return before != lock.ranges

    if kind == _UNLOCK:
        _unlock(lock, unlock)
    elif kind in (_SHARED, _EXCLUSIVE):
        lock.take(is_free, take, "lockf", waits=not cmd & _WITHOUT_WAITING)
    else:
        raise ValueError("unrecognized lockf argument")


def _unlock(lock: FileLock, release: Callable[[], bool]) -> None:
    me = instrumented.caller()
    scheduler = instrumented.active
    if me is None or scheduler is None or scheduler.aborting:
        release()
        return
    if scheduler.releases:
        instrumented.point(scheduler, me, lock, "unlock")
    if release():
        lock.released(scheduler, me)


def _real(name: str) -> Any:
    return _reals[name]


_reals: Final[dict[str, Any]] = {}
"""The functions of `fcntl`; written before an exploration."""

ACTING[id(open_)] = _real_open
ACTING[id(close)] = _real_close
ACTING[id(open_number)] = _real_os_open


def changes() -> Iterator[tuple[Any, str, Any]]:
    """Yields modules, a name of each, and the stand-in for that name."""
    yield builtins, "open", open_
    yield io, "open", open_
    yield os, "close", close
    yield os, "open", open_number
    fcntl = sys.modules.get("fcntl")
    if fcntl is not None:
        _reals.update(flock=vars(fcntl)["flock"], lockf=vars(fcntl)["lockf"])
        yield fcntl, "flock", flock
        yield fcntl, "lockf", lockf
