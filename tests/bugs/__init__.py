"""Small programs with a bug in their concurrency, each beside its twin without.

What they share with the lessons in `examples/hazards` is their form; these are for the explorer's own tests: bugs of
the kind that is found in pools, timers, conditions, queues, threads that start threads, and in the literature.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from bugs import classics, conditions, data, pools, publishers, threads, timers

__all__ = ["ALL", "Pair"]


class Pair(NamedTuple):
    """A broken program, and the same put right."""

    broken: Any
    fixed: Any


ALL = [
    Pair(broken, fixed)
    for module in (data, classics, conditions, pools, timers, threads, publishers)
    for broken, fixed in module.PAIRS
]
