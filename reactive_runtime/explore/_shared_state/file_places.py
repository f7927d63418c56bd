"""Files as locations: an access of a path is one of that path, and reads the folder around it.

A call whose paths are not known accesses all files. Two names of one file, by a hard link, are two locations.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from types import FrameType, MethodType
from typing import Any, Final

from reactive_runtime.explore._instrument.code_patcher import sites_of
from reactive_runtime.explore._instrument.sites import SITES
from reactive_runtime.explore._schedule.scheduler import Scheduler
from reactive_runtime.explore._shared_state.accesses import Accesses
from reactive_runtime.explore._shared_state.kinds import ACTING, FILES_PLACE
from reactive_runtime.explore._shared_state.locations import Access, Locations

__all__ = ["FilePlaces"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_READING: Final = _words(
    "stat lstat fstat access readlink read pread getxattr listxattr exists lexists islink isfile isdir getsize getmtime"
    " getatime getctime is_file is_dir is_symlink read_text read_bytes"
)
_WRITING: Final = _words(
    "unlink remove mkdir rmdir chmod chown utime truncate ftruncate mknod mkfifo setxattr write pwrite write_text"
    " write_bytes touch"
)
_MOVING: Final = _words("rename replace")
_OPENING: Final = _words("open fdopen")
_NOTHING: Final = _words("close fsync fdatasync lseek isatty get_inheritable set_inheritable expanduser")
"""Calls that neither read nor change what is in a file."""
_NAMES_OF_PATHS: Final = ("file", "path", "fd", "src", "dst", "target")


class FilePlaces:
    """The accesses of files in one exploration. The holder of the turn owns it."""

    __slots__ = ("_accesses", "_locations", "_scheduler", "_sites")

    def __init__(self, scheduler: Scheduler, locations: Locations, accesses: Accesses) -> None:
        self._scheduler = scheduler
        self._locations = locations
        self._accesses = accesses
        self._sites: dict[tuple[str, int], int] = {}  # by file and line: a call there

    def raw(self, raw: Any, writes: bool, frame: FrameType | None) -> None:
        """An open file is read or written for real, by what the program calls, or as a block ends."""
        hooked = self._scheduler.hooked
        while frame is not None and frame.f_code.co_filename not in hooked:
            frame = frame.f_back
        site = -1 if frame is None else self._site(frame.f_code.co_filename, frame.f_lineno)
        if site >= 0:
            found: list[Access] = []
            self._path(found, raw.fileno(), writes, site)
            self._accesses.accessed(found)

    def _site(self, file: str, line: int) -> int:
        known = self._sites.get((file, line))
        if known is None:
            there = [at for at in sites_of(file) if SITES[at].line == line]
            calls = [at for at in there if SITES[at].called is not None]
            known = self._sites[file, line] = (calls or there or [-1])[0]
        return known

    def gather(
        self, found: list[Access], called: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any], site: int
    ) -> None:
        """A call of a function that works on files: what it accesses."""
        called = ACTING.get(id(called), called)
        name = getattr(called, "__name__", "")
        if name in _NOTHING:
            return
        paths = [item for item in [*arguments, *map(keywords.get, _NAMES_OF_PATHS)] if _may_be_path(item)]
        if type(called) is MethodType and isinstance(called.__self__, PurePath):
            paths.insert(0, called.__self__)
            arguments = (called.__self__, *arguments)
        elif paths[:1] != list(arguments[:1]) and not keywords:
            paths = []
        whole = not paths or "dir_fd" in keywords or keywords.get("parents", False)
        if whole:
            self._all(found, site)
        elif name in _READING or name in _WRITING:
            self._path(found, paths[0], name in _WRITING, site)
        elif name in _OPENING:
            self._path(found, paths[0], _opens_to_write(arguments[1:2], keywords), site)
        elif name in _MOVING and len(paths) > 1 and not _is_folder(paths[0]):
            self._path(found, paths[0], True, site)
            self._path(found, paths[1], True, site)
        else:
            self._all(found, site)

    def _all(self, found: list[Access], site: int) -> None:
        found.append((self._locations.of_place(FILES_PLACE), site, True, None, FILES_PLACE, None))

    def _path(self, found: list[Access], path: Any, writes: bool, site: int) -> None:
        if type(path) is int:
            try:
                path = os.readlink(f"/proc/self/fd/{path}")
            except OSError:
                self._all(found, site)
                return
        path = os.path.realpath(os.fsdecode(path))
        of_place = self._locations.of_place
        for place, changes in ((path, writes), (os.path.dirname(path), False), (None, False)):
            name = FILES_PLACE if place is None else f"file {place}"
            found.append((of_place(name), site, changes, None, name, None))


def _may_be_path(item: Any) -> bool:
    return isinstance(item, str | bytes | PurePath) or type(item) is int


def _is_folder(path: Any) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _opens_to_write(given: Iterable[Any], keywords: Mapping[str, Any]) -> bool:
    mode = next(iter(given), keywords.get("mode", keywords.get("flags", "r")))
    if isinstance(mode, int):
        return bool(mode & (os.O_CREAT | os.O_TRUNC))
    return not isinstance(mode, str) or any(letter in mode for letter in "wax")
