"""Rows on their way to the judge, however many: on disk, beyond what may be held, and judged a part at a time.

rows ──▶ held ──▶ judged at once
          │ too many
          ▼
     files by (run, subscription) ──▶ each held, judged
                                       │ one subscription, too many still
                                       ▼
                                 sorted stretches ──merged──▶ the reference, a record at a time
"""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reactive_runtime.judging._kernel import Judged, judge
from reactive_runtime.judging._ordered import order_of
from reactive_runtime.judging._rows import PACKED, Array, Rows
from reactive_runtime.judging._slow import judge_in_order
from reactive_runtime.testing._records import Record, rank

__all__ = ["MOST", "Gathered", "scattered"]

MOST: Final = 6_000_000
"""Records that are held at once: some 80 bytes each as they lie, four times that while they are judged."""

_FILES: Final = 16
_STRETCH: Final = 10_000
"""Records of each sorted stretch that are held while stretches are merged."""


class Gathered:
    """Rows of whole subscriptions, added in parts. A context manager, which removes what is on disk.

    Args:
        late_signals: How many signals may follow a cancel from outside, where the records do not say.
        upto: The ticket of each run that is judged as it was at that ticket. None: all runs are judged whole.
        most: How many records are held in memory at once; more go to disk.

    Thread:
        One thread at a time.
    """

    def __init__(self, *, late_signals: int = 1, upto: Mapping[str, int] | None = None, most: int = MOST) -> None:
        self._late_signals = late_signals
        self._upto = upto or {}
        self._most = most
        self._held: list[Rows] = []
        self._size = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files: _Files | None = None

    def __enter__(self) -> Gathered:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._files is not None:
            self._files.close()
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def held(self) -> int:
        """Records in memory."""
        return self._size

    @property
    def folder(self) -> Path | None:
        """The folder of the rows that were too many for memory; None where none were."""
        return None if self._folder is None else Path(self._folder.name)

    def add(self, rows: Rows) -> None:
        """Add some more rows.

        Args:
            rows: Records in any order; a subscription may be added in several parts.
        """
        if self._upto:
            rows = rows.upto(self._upto)
        for at in range(0, len(rows), self._most):
            part = rows.where(slice(at, at + self._most))
            if self._size and self._size + len(part) > self._most:
                self._put_away()
            self._held.append(part)
            self._size += len(part)

    def judged(self) -> Iterator[Judged]:
        """Judge all rows that were added; once.

        Yields:
            The findings, a part of the subscriptions at a time.
        """
        if self._files is None:
            rows, self._held = self._held, []
            if self._size:
                yield judge(Rows.together(rows), late_signals=self._late_signals)
            return
        self._put_away()
        yield from self._judged_from(self._files, 0)

    def _put_away(self) -> None:
        if self._files is None:
            self._folder = tempfile.TemporaryDirectory(prefix="reactive-runtime-judge-")
            self._files = _Files(Path(self._folder.name), 0)
        self._files.add(Rows.together(self._held))
        self._held, self._size = [], 0

    def _judged_from(self, files: _Files, level: int) -> Iterator[Judged]:
        files.close()
        for path, size, several in files.written():
            if size <= self._most:
                yield judge(Rows.together(list(_read(path))), late_signals=self._late_signals)
            elif several:
                inner = _Files(path.with_suffix(""), level + 1)
                for rows in _read(path):
                    inner.add(rows)
                path.unlink()
                yield from self._judged_from(inner, level + 1)
            else:
                yield judge_in_order(_merged(path), self._late_signals)


class _Files:
    """Files of packed rows; those of a subscription are in one of them."""

    def __init__(self, folder: Path, level: int) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._level = level
        self._open: dict[int, Any] = {}
        self._sizes: dict[int, int] = {}
        self._whose: dict[int, tuple[str, int] | None] = {}  # the one subscription of a file; None where it has several

    def add(self, rows: Rows) -> None:
        places = scattered(rows, self._level) % np.uint64(_FILES)
        for place in np.unique(places).tolist():
            mine = rows.where(places == place)
            if place not in self._open:
                self._open[place] = pa.ipc.new_stream(str(self._path(place)), PACKED)
                self._sizes[place] = 0
                self._whose[place] = (mine.runs[mine.run[0]], int(mine.subscription[0]))
            self._open[place].write_batch(mine.packed())
            self._sizes[place] += len(mine)
            whose = self._whose[place]
            one = (mine.subscription == mine.subscription[0]).all() and (mine.run == mine.run[0]).all()
            if whose != (mine.runs[mine.run[0]], int(mine.subscription[0])) or not one:
                self._whose[place] = None

    def written(self) -> Iterator[tuple[Path, int, bool]]:
        """Each file, how many rows it has, and whether they are of several subscriptions."""
        for place, size in self._sizes.items():
            yield self._path(place), size, self._whose[place] is None

    def close(self) -> None:
        for item in self._open.values():
            item.close()
        self._open = {}

    def _path(self, place: int) -> Path:
        return self._folder / f"{place}.arrows"


def scattered(rows: Rows, level: int) -> Array:
    """A number for each row, the same for all of a subscription, and another at each level."""
    runs = np.array([int.from_bytes(run.encode()[-8:].rjust(8, b"\0"), "big") for run in rows.runs], np.uint64)
    mixed = rows.subscription.astype(np.uint64) + runs[rows.run] * np.uint64(0x9E3779B97F4A7C15) + np.uint64(level)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):  # splitmix64
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    found: Array = mixed >> np.uint64(5 * level % 60)
    return found


def _read(path: Path) -> Iterator[Rows]:
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as stream:
        for batch in stream:
            yield Rows.of_packed(batch)


def _merged(path: Path) -> Iterator[Record]:
    """The records of a file in the order of the reference: each batch is sorted, and then they are merged."""
    stretches = []
    for number, rows in enumerate(_read(path)):
        order = order_of(rows)
        there = path.with_suffix(f".{number}")
        with pa.ipc.new_stream(str(there), PACKED) as stream:
            sorted_rows = rows if order is None else rows.where(order)
            for at in range(0, len(rows), _STRETCH):
                stream.write_batch(sorted_rows.where(slice(at, at + _STRETCH)).packed())
        stretches.append(there)
    path.unlink()
    return heapq.merge(*(_records(stretch) for stretch in stretches), key=rank)


def _records(path: Path) -> Iterable[Record]:
    return chain.from_iterable(rows.records(slice(None)) for rows in _read(path))
