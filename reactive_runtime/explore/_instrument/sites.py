"""The places in the source of the accesses of rewritten code, by number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["SITES", "Site"]


@dataclass(frozen=True, slots=True)
class Site:
    """Where an access stands."""

    filename: str
    line: int
    column: int
    end: tuple[int, int]
    """The line and the column behind it."""
    called: tuple[int, int] | None
    """Where the call ends that it is a part of, if it is what is called."""
    what: str
    """In words: `store self.demand`."""
    building: bool
    """Whether it is an attribute in an `__init__`, where an object is not shared yet, as a rule."""
    stores: str
    """The attribute, or the name that functions share, that is stored or deleted; empty, where none is."""


SITES: Final[list[Site]] = []
"""Where the accesses of all rewritten files stand, by number. Written by the one exploration that runs."""
