"""A picture of a night and a machine a pixel, as PNG: it has the same size, whatever is in it."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Final

__all__ = ["png_of"]

_MARK: Final = b"\x89PNG\r\n\x1a\n"
_PALETTE: Final = 3


def png_of(rows: Sequence[bytes], colours: Sequence[tuple[int, int, int, int]]) -> bytes:
    """The picture.

    Args:
        rows: For each row a byte a pixel: the number of its colour.
        colours: Red, green, blue and alpha, each up to 255.

    Returns:
        The file.
    """
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, _PALETTE, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    palette = bytes(part for colour in colours for part in colour[:3])
    alpha = bytes(colour[3] for colour in colours)
    parts = ((b"IHDR", head), (b"PLTE", palette), (b"tRNS", alpha), (b"IDAT", pixels), (b"IEND", b""))
    return _MARK + b"".join(_part(kind, data) for kind, data in parts)


def _part(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
