"""Names for each hazard the rule of Reactive Streams that forbids it, and the part of this package that avoids it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["AVOIDED", "Avoided"]


class Avoided(NamedTuple):
    """A way to do the work of a lesson's program without its hazard."""

    rule: str
    """The rule that forbids the hazard between a publisher and its subscriber; empty if no rule is about it."""
    by: str
    """A member of `Flow`, or a public name of the package with its module."""
    how: str
    """Why the hazard does not happen there."""


AVOIDED = {
    "lost_update": Avoided("1.3", "scan", "one thread at a time folds, and sees the last result"),
    "check_then_act": Avoided("", "atomics.AtomicInteger", "`get_and_update` looks and acts in one step"),
    "check_await_act": Avoided("1.3", "concat_map", "the next element's coroutine starts when the last has ended"),
    "torn_read": Avoided("1.3", "hot.BehaviorProcessor", "the state is one element, and is replaced as a whole"),
    "changed_while_iterated": Avoided("1.3", "collect", "the container is delivered when nothing adds to it any more"),
    "write_skew": Avoided("1.3", "serialize", "each decision sees all decisions before it"),
    "stale_cache": Avoided("1.8", "switch_map", "a newer element cancels the work of the older one"),
    "spin_lock": Avoided(
        "1.3", "serialize", "a thread that finds another at work queues its element, and does not wait"
    ),
    "escaping_this": Avoided("1.9", "defer", "each subscription makes its publisher, and gets it complete"),
    "unsafe_publication": Avoided("1.3", "publish_on", "an element goes through a queue that orders store and load"),
    "double_checked_locking": Avoided("", "cache", "the source runs once, and all subscribers get its elements"),
    "submit_after_shutdown": Avoided("1.7", "hot.EmitResult", "`emit` says whether the element was taken"),
    "store_buffering": Avoided(
        "", "atomics.AtomicBoolean", "all threads see its steps in one order; those of plain fields need no such order"
    ),
    "lost_notify": Avoided(
        "3.8", "hot.UnicastProcessor", "an element waits until it is requested, and a request is kept"
    ),
    "if_instead_of_while": Avoided(
        "1.1", "balance", "an element goes to one worker that has demand, with no second look"
    ),
    "one_condition_for_two": Avoided(
        "1.1", "publish_on", "`request` announces room, `on_next` an element: neither wakes the wrong side"
    ),
    "lost_by_cancelling": Avoided("", "do_on_discard", "it gets each element that was taken and is not delivered"),
    "lock_order": Avoided("", "zip", "it waits for both sources, and holds no lock while it waits"),
    "philosophers": Avoided("", "bulkhead", "it admits one subscription fewer than a circle needs"),
    "self_deadlock": Avoided(
        "3.3", "serialize", "a call from inside `on_next` queues its signal for the loop that runs already"
    ),
    "lock_across_await": Avoided("", "concat_map", "it orders coroutines without a lock"),
    "leaked_lock": Avoided("", "using", "it closes the resource at the end, on an error and on a cancel"),
    "nested_monitor": Avoided("3.4", "publish_on", "no thread waits for room: `request` returns at once"),
    "calling_out_with_a_lock": Avoided("", "hot.PublishProcessor", "it calls its subscribers with no lock held"),
    "starved_pool": Avoided(
        "2.2", "publish_on", "the rest of the flow is a task of its own, for which no thread waits"
    ),
    "polite_livelock": Avoided("", "race", "one step decides which source has won"),
    "backed_off_livelock": Avoided("", "retry_backoff", "pauses grow, and the number of attempts is limited"),
    "starved_writer": Avoided("", "merge", "sources that have elements take turns"),
    "listener_removes_itself": Avoided("1.8", "share", "a subscriber may cancel inside `on_next`; others miss nothing"),
    "unread_exception": Avoided(
        "1.4", "from_coroutine", "the error is a signal, and the subscriber gets it in place of the value"
    ),
    "left_in_a_thread": Avoided("", "with_context", "functions run in a copy of the element's own context"),
    "lost_demand": Avoided("3.8", "create", "it counts demand in one atomic step"),
    "missed_wake_up": Avoided(
        "3.8", "hot.UnicastProcessor", "a thread looks for signals and leaves in one atomic step"
    ),
    "two_drains": Avoided("1.3", "serialize", "one thread delivers, and the others queue their signals"),
    "signal_after_completion": Avoided(
        "1.7", "create", "a hook gets elements after the end, and the subscriber does not"
    ),
    "double_close": Avoided("1.6", "using", "one atomic step decides which thread closes the resource, once"),
    "recycled_subscription": Avoided("", "repeat", "each round has a subscription of its own"),
    "demand_overflow": Avoided("3.17", "limit_rate", "demand is capped, and goes upstream in small parts"),
    "unbounded_recursion": Avoided(
        "3.3", "generate", "the loop that runs already serves a request from inside `on_next`"
    ),
}
"""By lesson."""
