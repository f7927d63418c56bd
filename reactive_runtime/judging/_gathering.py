"""Rows on their way to the judge: those that are too many for memory go to disk, and are judged a part at a time.

rows ──▶ held ──▶ judged at once
          │ too many
          ├───▶ those of a long subscription ──▶ stretches, in order ──▶ judged in pieces
          ▼                                          ▲
     files by (run, subscription) ──▶ each held, judged
          ▲   │ too many still, most of them of long subscriptions
          └───┴──────────────────────────────────────┘
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reactive_runtime.judging._kernel import Judged, judge
from reactive_runtime.judging._pieces import judge_in_pieces
from reactive_runtime.judging._rows import PACKED, Array, Rows
from reactive_runtime.judging._stretches import Stretches

__all__ = ["MOST", "Gathered", "scattered"]

MOST: Final = 6_000_000
"""Records that memory holds at once: some 80 bytes each, and four times that while they are judged."""

_FILES: Final = 16
_LOOKED_AT: Final = 1_000
"""Rows of each batch that are looked at, to find long subscriptions."""
_LONG: Final = 64
"""Long subscriptions that are taken from a file at once."""
_PIECE: Final = 500_000
"""Records of a long subscription that are judged at once."""


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
        self._apart = _Apart()

    def __enter__(self) -> Gathered:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._files is not None:
            self._files.close()
        self._apart.close()
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def held(self) -> int:
        """Records in memory."""
        return self._size + self._apart.held

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
            if self.held and self.held + len(part) > self._most:
                self._put_away()
            for rest in self._apart.without([part]):
                self._held.append(rest)
                self._size += len(rest)

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
        yield from self._judged_apart(self._apart)

    def _put_away(self) -> None:
        if self._files is None:
            self._folder = tempfile.TemporaryDirectory(prefix="reactive-runtime-judge-")
            self._files = _Files(Path(self._folder.name), 0)
        self._apart.put_away()
        parts, self._held, self._size = self._held, [], 0
        seen: Counter[_Subscription] = Counter()
        for part in parts:
            self._files.look_at(part, seen)
        self._apart.begin(self._files.folder, [whose for whose, about in seen.items() if 4 * about > seen.total()])
        self._files.add(self._apart.without(parts))
        self._apart.put_away()

    def _judged_from(self, files: _Files, level: int) -> Iterator[Judged]:
        files.close()
        for path, size, long in files.written(self._most):
            if size <= self._most:
                rest = self._apart.without(list(_read(path)))
                self._apart.put_away()
                if rest:
                    yield judge(Rows.together(rest), late_signals=self._late_signals)
                path.unlink()
                continue
            inner, apart = _Files(path.with_suffix(""), level + 1), _Apart()
            apart.begin(inner.folder, [whose for whose in long if whose not in self._apart.stretches])
            for rows in _read(path):
                inner.add(apart.without(self._apart.without([rows])))
                apart.put_away()
                self._apart.put_away()
            path.unlink()
            yield from self._judged_apart(apart)
            yield from self._judged_from(inner, level + 1)

    def _judged_apart(self, apart: _Apart) -> Iterator[Judged]:
        for stretches in apart.stretches.values():
            yield judge_in_pieces(stretches.pieces(min(self._most, _PIECE)), self._late_signals)


_Subscription = tuple[str, int]
"""Its run and its number."""


class _Apart:
    """Long subscriptions, whose rows are kept apart from the others."""

    def __init__(self) -> None:
        self.stretches: dict[_Subscription, Stretches] = {}

    def begin(self, folder: Path, long: Iterable[_Subscription]) -> None:
        """Keep these apart from now on, with files in that folder, but no more than _LONG."""
        for whose in long:
            if whose not in self.stretches and len(self.stretches) < _LONG:
                self.stretches[whose] = Stretches(folder / f"long-{len(self.stretches)}")

    @property
    def held(self) -> int:
        """Rows in memory."""
        return sum(item.held for item in self.stretches.values())

    def put_away(self) -> None:
        """Write what is held."""
        for item in self.stretches.values():
            item.put_away()

    def close(self) -> None:
        """Close all files."""
        for item in self.stretches.values():
            item.close()

    def without(self, parts: list[Rows]) -> list[Rows]:
        """Put the rows that are kept apart where they belong; the others."""
        for whose, stretches in self.stretches.items():
            mine, others = [], []
            for rows in parts:
                which = _of(rows, whose)
                if which.all():
                    mine.append(rows)
                elif which.any():
                    mine.append(rows.where(which))
                    others.append(rows.where(~which))
                else:
                    others.append(rows)
            if mine:
                stretches.add(mine)
            parts = others
        return parts


def _of(rows: Rows, whose: _Subscription) -> Array:
    """Mask the rows of that subscription."""
    run, subscription = whose
    mine: Array = rows.subscription == subscription
    if rows.runs != [run]:
        mine &= np.array([of == run for of in rows.runs], bool)[rows.run]
    return mine


class _Files:
    """Files of packed rows; those of a subscription are in one of them."""

    def __init__(self, folder: Path, level: int) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._level = level
        self._open: dict[int, Any] = {}
        self._sizes: Counter[int] = Counter()
        self._seen: dict[int, Counter[_Subscription]] = {}  # about how many rows of a file each subscription has
        self._dice = np.random.default_rng(level)

    def add(self, parts: list[Rows]) -> None:
        """Write the rows of all parts."""
        if not parts:
            return
        rows = Rows.together(parts)
        places = scattered(rows, self._level) % np.uint64(_FILES)
        for place in np.unique(places).tolist():
            mine = rows.where(places == place)
            if place not in self._open:
                self._open[place] = pa.ipc.new_stream(str(self._path(place)), PACKED)
            self._open[place].write_batch(mine.packed())
            self._sizes[place] += len(mine)
            self.look_at(mine, self._seen.setdefault(place, Counter()))

    def look_at(self, rows: Rows, seen: Counter[_Subscription]) -> None:
        """Count the subscriptions of the rows, or of some of them."""
        each = max(len(rows) // _LOOKED_AT, 1)
        places = self._dice.integers(len(rows), size=_LOOKED_AT) if each > 1 else slice(None)
        for run, subscription in zip(rows.run[places].tolist(), rows.subscription[places].tolist(), strict=True):
            seen[rows.runs[run], subscription] += each
        if len(seen) > 10 * _LOOKED_AT:  # long ones are among the first
            kept = seen.most_common(_LOOKED_AT)
            seen.clear()
            seen.update(dict(kept))

    def written(self, most: int) -> Iterator[tuple[Path, int, list[_Subscription]]]:
        """Each file, how many rows it has, and subscriptions of which it may have more than `most`."""
        for place, size in self._sizes.items():
            long = [whose for whose, about in self._seen[place].most_common(_LONG) if about > most // 2]
            yield self._path(place), size, long

    def close(self) -> None:
        for item in self._open.values():
            item.close()
        self._open = {}

    def _path(self, place: int) -> Path:
        return self.folder / f"{place}.arrows"


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
