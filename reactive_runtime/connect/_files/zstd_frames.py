"""Zstandard out of a file, with an error where the file ends too early.

The problem: the reader of `zstandard` takes a file that was cut off for one that has ended, and the rest of the data is
missing without an error.

The answer: look at the frames as the reader takes their bytes. A file may end between two frames, and nowhere else. The
reader itself checks what is in the blocks.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from fsspec import compression  # type: ignore[import-untyped]

__all__ = ["checks_no_end", "whole_frames"]

KNOWN: Final[Any] = compression.compr
"""The readers and writers of fsspec, by the names of compressions. fsspec fills it when it is imported."""

SKIPPABLE: Final = range(0x184D2A50, 0x184D2A60)
"""The magic numbers of frames without data."""

RLE: Final = 1
"""The type of a block that is one byte, repeated."""


def checks_no_end() -> bool:
    """Whether fsspec reads Zstandard by `zstandard`. Other clients notice the end themselves."""
    return getattr(KNOWN.get("zstd"), "__module__", "") == "fsspec.compression"


def whole_frames(file: Any) -> Any:
    """Reads the data of this file, opened for bytes."""
    return KNOWN["zstd"](_Frames(file), mode="rb")


class _Frames:
    """A file whose bytes are frames of Zstandard.

    Args:
        file: Opened for bytes.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        # The thread that reads:
        self._between = True  # whether no frame has begun
        self._parts = self._each_part()
        self._wanted: int = next(self._parts)  # bytes of the present part, below 0 if their values don't matter
        self._known = b""  # of the present part

    def read(self, n: int = -1) -> bytes:
        """Up to `n` bytes. EOFError where the file ends in a frame."""
        read: bytes = self._file.read(n)
        if read:
            self._look(read)
        elif n and (self._known or not self._between):
            raise EOFError("the compressed file ends too early, and the rest of its data is missing")
        return read

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _look(self, read: bytes) -> None:
        at = 0
        while True:
            if self._wanted > 0:
                part = read[at : at + self._wanted - len(self._known)]
                at += len(part)
                self._known += part
                if len(self._known) < self._wanted:
                    return
            else:
                skipped = min(-self._wanted, len(read) - at)
                at += skipped
                self._wanted += skipped
                if self._wanted:
                    return
            known, self._known = self._known, b""
            self._wanted = self._parts.send(known)

    def _each_part(self) -> Generator[int, bytes]:
        """The parts of each frame (RFC 8878): how many bytes, below 0 if their values don't matter."""
        while True:
            self._between = True
            magic = int.from_bytes((yield 4), "little")
            self._between = False
            if magic in SKIPPABLE:
                yield -int.from_bytes((yield 4), "little")
                continue
            [descriptor] = yield 1
            single = descriptor >> 5 & 1
            yield -((1 - single) + (0, 1, 2, 4)[descriptor & 3] + (single, 2, 4, 8)[descriptor >> 6])
            last = False
            while not last:
                block = int.from_bytes((yield 3), "little")
                last = bool(block & 1)
                yield -(1 if block >> 1 & 3 == RLE else block >> 3)
            yield -4 if descriptor >> 2 & 1 else 0  # the checksum
