"""Objects that stand in for an element: all threads compare them by `is`, for each element.

Each is a class of its own. Without a GIL an object counts its references, and threads that read one instance send its
count from core to core; classes are exempt (docs/free-threading.md).
"""

from __future__ import annotations

__all__ = ["sentinel"]


class _Sentinel(type):
    """The type of a sentinel, which is shown by its name."""

    def __repr__(cls) -> str:
        return cls.__name__


def sentinel(name: str, module: str) -> type:
    """An object that `module` has by that name, so that pickle finds the same one in another process."""
    return _Sentinel(name, (), {"__slots__": (), "__module__": module})
