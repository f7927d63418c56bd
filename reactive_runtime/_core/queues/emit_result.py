"""The answer to an emission into a hot source."""

from __future__ import annotations

import enum

__all__ = ["EmitResult"]


class EmitResult(enum.Enum):
    """The fate of an element that was emitted. Only `OK` delivers it, to every subscriber there is."""

    OK = "ok"
    OVERFLOW = "overflow"
    """A subscriber has no room."""
    CANCELLED = "cancelled"
    """The only subscriber there can be has cancelled."""
    TERMINATED = "terminated"
    """The source has completed or failed."""
    NO_SUBSCRIBER = "no subscriber"
    """There is no subscriber, and nothing is kept for later ones."""
