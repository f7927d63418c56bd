"""Small programs with a bug in their concurrency, each beside its twin without.

What they share with the lessons in `examples/hazards` is their form; these are for the explorer's own tests: bugs of
the kind that is found in pools, timers, conditions, queues, threads that start threads, and in the literature.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from bugs import classics, conditions, data, pools, publishers, threads, timers

__all__ = ["ALL", "LESSONS", "Pair"]

LESSONS = (
    "lost_update",
    "check_then_act",
    "lost_demand",
    "demand_overflow",
    "missed_wake_up",
    "two_drains",
    "signal_after_completion",
    "escaping_this",
    "unbounded_recursion",
    "calling_out_with_a_lock",
    "lock_order",
    "recycled_subscription",
    "double_close",
    "starved_pool",
)
"""The lessons that searches are measured and compared by, beside these bugs; what each lesson shows it tests itself."""


class Pair(NamedTuple):
    """A broken program, and the same put right."""

    broken: Any
    fixed: Any


ALL = [
    Pair(broken, fixed)
    for module in (data, classics, conditions, pools, timers, threads, publishers)
    for broken, fixed in module.PAIRS
]
