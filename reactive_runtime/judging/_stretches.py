"""The rows of one subscription on disk, put in order: an external sort, by whole arrays.

Rows that come in order are written as they are, in blocks. Others are held, some millions of them are sorted at once,
and written as another stretch. At the end stretches are merged: blocks are read in order of their begins, and what
begins up to a ticket is a piece, whichever stretches it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from reactive_runtime.judging._rows import PACKED, Rows

__all__ = ["Stretches"]

_BLOCK: Final = 20_000
"""Rows of each stretch that are held while stretches are merged."""


@dataclass(frozen=True)
class _Block:
    """Some rows in a file.

    Args:
        at: The byte at which they begin.
        size: Bytes.
        rows: How many.
        last: The last begin.
    """

    at: int
    size: int
    rows: int
    last: int


@dataclass
class _Stretch:
    """Blocks whose rows are in order; and those rows of the block at hand that were not given yet.

    Args:
        blocks: The blocks.
        read: How many of them were read.
        rest: Those rows.
    """

    blocks: list[_Block] = field(default_factory=list)
    read: int = 0
    rest: Rows | None = None


class Stretches:
    """Rows of one subscription, added in any order and given back in order. The folder is the caller's to remove.

    Args:
        path: For its file.

    Thread:
        One thread at a time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: Any = None
        self._stretches: list[_Stretch] = []
        self._parts: list[Rows] = []
        self.held = 0
        """Rows in memory, which `put_away` writes."""

    def add(self, parts: Sequence[Rows]) -> None:
        """Add some more rows.

        Args:
            parts: The rows, in parts; a part has one at least.
        """
        if self._parts or not _in_order(parts) or (self._stretches and parts[0].begin[0] < self._last):
            self._parts += parts
            self.held += sum(map(len, parts))
        else:
            self._write(parts)

    def put_away(self) -> None:
        """Write what is held."""
        if not self._parts:
            return
        parts, self._parts, self.held = self._parts, [], 0
        if not _in_order(parts):
            rows = Rows.together(parts)
            parts = [rows.where(np.argsort(rows.begin, kind="stable"))]
        self._write(parts)

    def pieces(self, size: int) -> Iterator[list[Rows]]:
        """Give all rows back, once; then the file is removed.

        Args:
            size: How many rows a piece should have; it has up to a block of each stretch more, and all rows that
                begin together.

        Yields:
            Pieces, in parts: each begins after the one before has begun. Their rows are in no order.
        """
        self.put_away()
        self.close()
        with self._path.open("rb") as self._file:
            for ticket in self._cuts(size):
                parts = [part for stretch in self._stretches for part in self._upto(ticket, stretch)]
                if parts:
                    yield parts
        self._path.unlink()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    @property
    def _last(self) -> int:
        return self._stretches[-1].blocks[-1].last

    def _write(self, parts: Sequence[Rows]) -> None:
        """Write rows in order."""
        if self._file is None:
            self._file = self._path.open("wb")
        if not self._stretches or parts[0].begin[0] < self._last:
            self._stretches.append(_Stretch())
        for part in parts:
            for at in range(0, len(part), _BLOCK):
                rows = part.where(slice(at, at + _BLOCK))
                where = self._file.tell()
                with pa.ipc.new_stream(self._file, PACKED) as stream:
                    stream.write_batch(rows.packed())
                size = self._file.tell() - where
                self._stretches[-1].blocks.append(_Block(where, size, len(rows), int(rows.begin[-1])))

    def _cuts(self, size: int) -> list[int]:
        """Begins up to which the blocks have a piece more."""
        blocks = [block for stretch in self._stretches for block in stretch.blocks]
        lasts, rows = np.array([block.last for block in blocks]), np.array([block.rows for block in blocks])
        order = np.argsort(lasts)
        number = (np.cumsum(rows[order]) - 1) // size
        ends = np.flatnonzero(np.diff(number, append=-1))
        cuts: list[int] = lasts[order[ends]].tolist()
        return cuts

    def _upto(self, ticket: int, stretch: _Stretch) -> Iterator[Rows]:
        """The rows of a stretch that have not been given yet, and begin at that ticket or before."""
        while stretch.rest is not None or stretch.read < len(stretch.blocks):
            rows = stretch.rest
            if rows is None:
                block = stretch.blocks[stretch.read]
                stretch.read += 1
                self._file.seek(block.at)
                with pa.ipc.open_stream(self._file.read(block.size)) as stream:
                    rows = Rows.of_packed(stream.read_next_batch())
            count = int(np.searchsorted(rows.begin, ticket, side="right"))
            if count:
                yield rows if count == len(rows) else rows.where(slice(count))
            stretch.rest = None if count == len(rows) else rows.where(slice(count, None))
            if stretch.rest is not None:
                return


def _in_order(parts: Sequence[Rows]) -> bool:
    if any(after.begin[0] < part.begin[-1] for part, after in pairwise(parts)):
        return False
    return all((part.begin[1:] >= part.begin[:-1]).all() for part in parts)
