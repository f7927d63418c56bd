"""Hazards of concurrency, one file a lesson, in the order of a course.

Each has a small program that is broken, and one that is not. `python -m examples.hazards` prints all of them, and
`python -m examples.hazards.lost_demand` prints one: the hazard in two sentences, a schedule that shows it, found there
and then, the fix, and that the fixed program survives the same exploration.
"""

from __future__ import annotations

import importlib

from examples.hazards.lesson import Lesson

__all__ = ["COURSE", "lesson"]

COURSE = (
    "lost_update",
    "check_then_act",
    "lost_demand",
    "demand_overflow",
    "missed_wake_up",
    "two_drains",
    "signal_after_completion",
    "unsafe_publication",
    "unbounded_recursion",
    "calling_out_with_a_lock",
    "lock_order",
    "recycled_subscription",
    "double_close",
    "starved_pool",
)
"""The lessons, in order."""


def lesson(name: str) -> Lesson:
    """The lesson of that name."""
    found: Lesson = importlib.import_module(f"examples.hazards.{name}").LESSON
    return found
