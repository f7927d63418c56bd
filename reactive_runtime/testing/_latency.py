"""How long things took, as counts in buckets that are an eighth of an octave wide, so that runs can be put together.

*demand → element*: from the beginning of a `request` that found no demand outstanding, to the beginning of the element
that answers it; where more requests come in between, it is not measured. *cancel → silence*: from the return of the
first `cancel` to the beginning of the last signal that followed, 0 where none did.
"""

from __future__ import annotations

from bisect import bisect_right
from math import isqrt
from typing import Final

__all__ = ["DEMAND", "EDGES", "LONGEST", "SILENCE", "bucket"]

DEMAND: Final = "demand → element"
SILENCE: Final = "cancel → silence"

LONGEST: Final = 2**63 - 1
"""Nanoseconds: what is longer is this long."""


def _edge(place: int) -> int:
    """The smallest ns with floor(8 * log2(ns + 1)) at least `place`: by integers, so that all judges agree on it."""
    at_least = 1 << place
    root = isqrt(isqrt(isqrt(at_least)))  # rounded down three times is rounded down once
    return root - 1 if root**8 == at_least else root


EDGES: Final = tuple(_edge(place) for place in range(8 * 63 + 1))
"""Where each bucket begins; some of the first are empty."""


def bucket(ns: int) -> int:
    """The number of the bucket that 0 to LONGEST nanoseconds are counted in."""
    return bisect_right(EDGES, ns) - 1
