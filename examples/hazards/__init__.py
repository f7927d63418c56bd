"""Hazards of concurrency as a course: one file a lesson, a folder a group, in the order of the course.

`python -m examples.hazards` prints all lessons, `python -m examples.hazards lost_update` prints one, and so does
`python -m examples.hazards.atomicity.lost_update`. `lesson.py` says what a lesson has.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from examples.hazards.lesson import Lesson

__all__ = ["COURSE", "GROUPS", "WORDS", "Group", "group_of", "lesson", "module_of"]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Lessons that belong together."""

    letter: str
    title: str
    folder: str
    about: str
    """What they have in common, and what the literature calls it."""
    lessons: tuple[str, ...]
    """The names of their modules, in order."""


GROUPS = (
    Group(
        letter="A",
        title="Atomicity",
        folder="atomicity",
        about="""Steps that belong together are torn apart by another thread. Lu and others call it an atomicity
        violation, and found it in two of three bugs that are no deadlocks.""",
        lessons=(
            "lost_update",
            "check_then_act",
            "check_await_act",
            "torn_read",
            "changed_while_iterated",
            "write_skew",
            "stale_cache",
            "spin_lock",
        ),
    ),
    Group(
        letter="B",
        title="Order",
        folder="order",
        about="""What has to come first does not always come first. Lu and others call it an order violation.""",
        lessons=(
            "escaping_this",
            "unsafe_publication",
            "double_checked_locking",
            "submit_after_shutdown",
            "store_buffering",
        ),
    ),
    Group(
        letter="C",
        title="Hand-over",
        folder="hand_over",
        about="""One thread waits for what another one leaves, and the message is lost, or goes to the wrong one.""",
        lessons=("lost_notify", "if_instead_of_while", "one_condition_for_two", "lost_by_cancelling"),
    ),
    Group(
        letter="D",
        title="Progress",
        folder="progress",
        about="""Every step is right, and yet nothing comes to an end: deadlock, livelock, starvation.""",
        lessons=(
            "lock_order",
            "philosophers",
            "self_deadlock",
            "lock_across_await",
            "leaked_lock",
            "nested_monitor",
            "calling_out_with_a_lock",
            "starved_pool",
            "polite_livelock",
            "backed_off_livelock",
            "starved_writer",
        ),
    ),
    Group(
        letter="E",
        title="No races, but met together",
        folder="together",
        about="""One thread is enough for these, and the explorer finds them with its first schedule. They are here
        since programs with threads are where they are met.""",
        lessons=("listener_removes_itself", "unread_exception", "left_in_a_thread"),
    ),
    Group(
        letter="F",
        title="The same in Reactive Streams",
        folder="streams",
        about="""What A to E are where a publisher signals to a subscriber, under the rules of Reactive Streams. Each
        lesson says which kind it is.""",
        lessons=(
            "lost_demand",
            "missed_wake_up",
            "two_drains",
            "signal_after_completion",
            "double_close",
            "recycled_subscription",
            "demand_overflow",
            "unbounded_recursion",
        ),
    ),
)
"""The groups, in order: general ones first, those of Reactive Streams last."""

WORDS = {
    "invariant": "what holds whatever the order of steps; a scenario asserts it at its end, or at each step",
    "*exhausted*": "the verdict on a program of which every schedule was looked at, at the points there are",
    "*held*, sampled": "the verdict on a program of which so many schedules were looked at, and not all",
    "point": "where the explorer may change from one thread to another",
    "atomicity violation": "steps that belong together, with those of another thread in between (Lu and others, 2008)",
    "order violation": "what has to come first does not (Lu and others, 2008)",
    "data race": "two threads access one location, one of them stores, and nothing orders the two",
    "deadlock": "threads that wait for each other in a circle, for ever",
    "livelock": "threads that work, and do the same again and again",
    "starvation": "a thread that could go on, and is overtaken each time",
    "happens-before": "what a release does to what comes after the next acquire; likewise set and wait, put and get",
}
"""What the words of the course mean; drain, demand, schedule and preemption stand in the glossary of the project."""

COURSE = tuple(name for group in GROUPS for name in group.lessons)
"""The lessons, in order. No two have the same name."""


def group_of(name: str) -> Group:
    """The group that the lesson of that name is in; KeyError where there is none."""
    for group in GROUPS:
        if name in group.lessons:
            return group
    raise KeyError(f"no lesson is called {name!r}; there are {', '.join(COURSE)}")


def module_of(name: str) -> str:
    """The module of the lesson of that name, for `python -m`."""
    return f"examples.hazards.{group_of(name).folder}.{name}"


def lesson(name: str) -> Lesson:
    """The lesson of that name."""
    found: Lesson = importlib.import_module(module_of(name)).LESSON
    return found
