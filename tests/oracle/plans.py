"""Plans: a source, operators, and what the subscriber asks for, as JSON. `plans()` draws them.

    {"source": ["just", 1, 2], "ops": [["map", ["add", 1]], ["take", 3]], "demand": 2, "refill": 0,
     "cancel_after": 0, "steps": [[1000003, 5], [7000021, 0]], "until": 60000000}

`demand` is asked for at once; `steps` are times and what is asked for then, 0 for a cancel; `refill` is asked for with
each element; `cancel_after` so many elements comes a cancel (0: none). Times are microseconds. No two times of a plan
come from one number, so that nothing happens at the same time by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st

from reactive_runtime import MAX_DEMAND

__all__ = ["LEFT_OUT", "OPERATORS", "SOURCES", "names", "plans", "words"]

LEFT_OUT = (
    "by-demand",
    "dropped-by-demand",
    "order-in-the-middle",
    "error-in-the-middle",
    "at-one-moment",
    "late-begin",
    "second-subscriber",
    "pulled-one-at-a-time",
    "refill-by-demand",
    "cut-before-by-demand",
)
"""What is not drawn, since no one promises what comes of it; docs/differences.md has the reasons."""

T = TypeVar("T")

Plan = dict[str, Any]
Spec = list[Any]

UNIT = 1_000_000
UNTIL = 60 * UNIT


class Draw:
    """Draws the parts of one plan."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.times = 0
        self.at_once = True  # whether what the chain has so far may come at the moment of the subscription
        self.unbounded = False

    def one_of(self, *values: T) -> T:
        return self.draw(st.sampled_from(values))

    def time(self, most: int = 5) -> int:
        """A duration that no other one is a multiple, or a sum, of."""
        self.times += 1
        return self.int(1, most) * UNIT + self.times * self.times * 7919 % 100_003

    def elements(self, most: int = 5) -> list[int]:
        return self.draw(st.lists(st.integers(0, 9), max_size=most))

    def fn(self) -> Spec:
        return self.one_of(["add", 1], ["mul", 3], ["mod", 2], ["mod", 3], ["fail_on", 3], ["none_on", 4])

    def key(self) -> Spec:
        return self.one_of(["same"], ["mod", 2], ["mod", 3], ["fail_on", 3])

    def test(self) -> Spec:
        return self.one_of(["odd"], ["less", 3], ["less", 6], ["not", 2], ["fail_on", 3])

    def timeline(self) -> Spec:
        events = [[self.time(4), n] for n in self.elements()]
        for event in events[1:]:
            if self.int(0, 3) == 0:
                event[0] = 0
        return [events, self.one_of("complete", "complete", "error", "none"), self.time(4)]

    def source(self, *names: str) -> Spec:
        name = self.one_of(*(item for item in names if self.unbounded or item not in BY_DEMAND))
        return [name, *SOURCES[name](self)]

    def simple(self) -> Spec:
        """A source that has no other one in it."""
        return self.source(*SIMPLE)

    def apart(self) -> Spec:
        """A source whose elements do not come at one moment with those of the chain so far."""
        return self.source(*LATER) if self.at_once else self.simple()

    def zipped(self) -> list[Spec]:
        return self.several_apart() if self.bool() else [self.source(*SAFE) for _ in range(self.int(1, 3))]

    def several(self) -> list[Spec]:
        return [self.simple() for _ in range(self.int(1, 3))]

    def several_apart(self) -> list[Spec]:
        """No more than one of them has something at once."""
        sources = [self.source(*LATER) for _ in range(self.int(1, 3))]
        if self.bool():
            sources[self.int(0, len(sources) - 1)] = self.simple()
        return sources

    def inner(self) -> Spec:
        choices: list[Callable[[], Spec]] = [
            lambda: ["just_twice"],
            lambda: ["just"],
            lambda: ["empty"],
            lambda: ["to_range", self.int(1, 4)],
            lambda: ["fail_on", self.int(0, 4)],
            lambda: ["raise_on", self.int(0, 4)],
            lambda: ["later", self.time()],
            lambda: ["now_and_later", self.time()],
            lambda: ["fail_later", self.time()],
            lambda: ["never"],
            lambda: ["given", self.source(*(item for item in SIMPLE if self.unbounded or item not in BY_ITERATOR))],
        ]
        return self.one_of(*choices)()

    def switched(self) -> Spec:
        """Of `switch_map`: one that is switched away at the moment it begins has given what was at hand, no more."""
        choices: list[Callable[[], Spec]] = [
            lambda: ["just_twice"],
            lambda: ["just"],
            lambda: ["empty"],
            lambda: ["to_range", self.int(1, 4)],
            lambda: ["raise_on", self.int(0, 4)],
            lambda: ["later", self.time()],
            lambda: ["never"],
        ]
        return self.one_of(*choices)()

    def companion(self) -> Spec:
        return [self.int(0, 2), self.one_of(0, self.time()), self.one_of("empty", "error", "never")]

    def second(self) -> int:
        """When a second subscriber comes; 0: none does."""
        return self.time() if self.unbounded and self.bool() else 0

    def some(self) -> Spec:
        return self.elements(3)

    def default(self) -> Spec:
        return self.one_of([], [77])

    def int(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def bool(self) -> bool:
        return self.draw(st.booleans())


SOURCES: dict[str, Callable[[Draw], Spec]] = {
    "just": Draw.elements,
    "empty": lambda d: [],
    "never": lambda d: [],
    "error": lambda d: [],
    "range": lambda d: [d.int(0, 5), d.int(0, 6)],
    "from_iterable": lambda d: [d.elements()],
    "from_supplier": lambda d: [d.elements(), d.bool()],
    "from_callable": lambda d: [d.fn(), d.int(0, 9)],
    "from_publisher": lambda d: [d.simple()],
    "generate": lambda d: [d.int(0, 6)],
    "create": lambda d: [d.elements(), d.bool()],
    "defer": lambda d: [d.simple()],
    "using": lambda d: [d.simple()],
    "timer": lambda d: [d.time()],
    "interval": lambda d: [d.time(), d.one_of("drop", "latest", "buffer")],
    "timed": Draw.timeline,
    "hot": Draw.timeline,
    "concat": lambda d: [d.bool(), *d.several()],
    "merge": lambda d: [d.bool(), *d.several_apart()],
    "merge_comparing": Draw.zipped,
    "zip": Draw.zipped,
    "combine_latest": Draw.several_apart,
    "race": Draw.several_apart,
}

COMPOUND = ("from_publisher", "defer", "using", "concat", "merge", "merge_comparing", "zip", "combine_latest", "race")
SIMPLE = tuple(item for item in SOURCES if item not in COMPOUND and item != "hot")
LATER = ("timed", "timer", "interval", "never")
"""Nothing comes from these at the moment of the subscription."""

BY_ITERATOR = ("from_supplier", "generate", "from_callable")
"""Sources that are asked for their end, which takes demand."""

SAFE = ("just", "empty", "range", "from_iterable", "generate")

BETWEEN = {
    "merge",
    "merge_with",
    "combine_latest",
    "flat_map",
    "expand",
    "group_by",
    "parallel",
    "zip",
    "zip_with",
    "merge_comparing",
    "share",
    "publish",
    "replay",
    "cache",
}
"""What these make of several sources has an order only by time. Where that does not settle it, nothing follows them."""

OVERTAKEN = {
    "flat_map",
    "flat_map_sequential",
    "concat_map",
    "flat_map_iterable",
    "flatten",
    "merge",
    "merge_with",
    "zip",
    "zip_with",
    "combine_latest",
    "window",
    "group_by",
    "publish",
    "share",
    "replay",
    "cache",
    "switch_map",
    "expand",
    "publish_on",
    "delay",
    "merge_comparing",
    "race",
    "parallel",
    "window_until",
    "window_when",
    "window_time",
    "window_timeout",
}
"""An error overtakes the elements that wait in these, in RxJava."""

ERROR_HANDLING = {
    "on_error_complete",
    "on_error_resume",
    "on_error_return",
    "retry",
    "retry_when",
    "retry_backoff",
    "materialize",
    "tap",
    "do_on_error",
    "map_error",
    "do_finally",
    "finalize",
    "do_on_cancel",
    "do_on_next",
}
"""These show when an error came."""

LAZY = {
    "single",
    "take_last",
    "skip_last",
    "sort",
    "reduce",
    "collect",
    "to_list",
    "to_dict",
    "count",
    "sum",
    "min",
    "max",
    "all",
    "any",
    "contains",
    "last",
    "ignore_elements",
    "flat_map",
    "flat_map_sequential",
    "concat_map",
    "switch_map",
    "expand",
    "group_by",
    "window",
    "parallel",
    "from_supplier",
    "generate",
    "using",
    "repeat",
    "delay",
    "limit_rate",
    "first",
    "element_at",
    "race",
    "merge_comparing",
    "merge",
    "zip",
    "combine_latest",
    "merge_with",
    "zip_with",
    "pairwise",
    "skip",
    "from_callable",
    "flat_map_iterable",
    "flatten",
    "publish_on",
    "buffer_time",
    "buffer_when",
    "window_until",
    "window_when",
    "window_time",
    "window_timeout",
}
"""These ask their sources with the first demand, here; with the subscription, there."""

BY_TIME = {
    "delay_subscription",
    "timestamp",
    "elapsed",
    "take_until",
    "skip_until",
    "with_latest_from",
    "sample",
    "timeout",
    "debounce",
    "throttle",
    "delay",
    "buffer_timeout",
    "retry_backoff",
    "retry_when",
    "repeat_when",
    "using",
    "race",
    "merge",
    "merge_with",
    "combine_latest",
    "flat_map",
    "concat_map",
    "switch_map",
    "flat_map_sequential",
    "expand",
    "concat",
    "concat_with",
    "start_with",
    "switch_if_empty",
    "on_error_resume",
    "repeat",
    "retry",
    "share",
    "publish",
    "replay",
    "cache",
    "buffer_time",
    "buffer_when",
    "window_when",
    "window_time",
    "window_timeout",
}
"""What comes of these depends on when their sources were asked."""

BY_CLOCK = {
    "delay_subscription",
    "timestamp",
    "elapsed",
    "timed",
    "hot",
    "timer",
    "delay",
    "debounce",
    "sample",
    "buffer_timeout",
    "later",
    "now_and_later",
    "fail_later",
    "buffer_time",
    "window_time",
    "window_timeout",
}
"""The same, where the source is subscribed to once more."""

BY_DEMAND = {
    "timestamp",
    "elapsed",
    "combine_latest",
    "expand",
    "race",
    "switch_map",
    "throttle",
    "using",
    "timeout",
    "on_overflow_buffer",
    "on_overflow_drop",
    "on_overflow_latest",
    "interval",
    "buffer_when",
    "window_when",
    "window_time",
    "window_timeout",
}
"""What comes of these depends on how much is asked for ahead."""

LOSSY = {
    "switch_map",
    "interval",
    "on_overflow_buffer",
    "on_overflow_drop",
    "on_overflow_latest",
    "throttle",
    "timeout",
    "timestamp",
    "elapsed",
    "buffer_when",
    "window_when",
    "window_time",
    "window_timeout",
}
"""The demand decides how much these drop, and which elements they give."""

TIMELY = {"with_latest_from", "skip_until", "take_until", "sample", "debounce", "buffer_timeout", "buffer_time"}
"""The demand also decides what these make of a source that waits for it."""

FOLLOWED = {
    "on_error_resume",
    "switch_if_empty",
    "concat_with",
    "retry",
    "retry_when",
    "retry_backoff",
    "repeat",
    "repeat_when",
    "timeout",
}
"""And when the next source begins."""

HOLDING = {
    "concat_map",
    "flat_map",
    "flat_map_sequential",
    "expand",
    "publish_on",
    "limit_rate",
    "zip_with",
    "merge_with",
    "window",
    "group_by",
    "parallel",
    "flat_map_iterable",
    "flatten",
    "buffer_timeout",
    "subscribe_on",
    "window_until",
    "window_when",
    "window_time",
    "window_timeout",
}
"""These ask for what they can hold, and no more."""

HALF_FULL = {"buffer_timeout", "window_timeout"}
"""An error here drops what they hold; there, it comes first."""

AGAIN = {"retry", "retry_when", "retry_backoff", "repeat", "repeat_when"}
"""These subscribe to their source once more."""

FLATTENING = ("flat_map", "flat_map_sequential", "concat_map")

SHARED = {"share", "publish", "replay", "cache"}

KEEPS_TIME = {
    "buffer",
    "buffer_until",
    "skip_last",
    "delay_subscription",
    "timestamp",
    "elapsed",
    "map",
    "starmap",
    "map_not_none",
    "handle",
    "flat_map_iterable",
    "flatten",
    "enumerate",
    "pairwise",
    "scan",
    "batch",
    "filter",
    "distinct",
    "distinct_until_changed",
    "take",
    "take_while",
    "skip",
    "skip_while",
    "first",
    "element_at",
    "transform",
    "finalize",
    "do_finally",
    "do_on_subscribe",
    "do_on_request",
    "do_on_next",
    "do_on_error",
    "do_on_complete",
    "do_on_cancel",
    "tap",
    "serialize",
    "delay",
    "retry",
    "repeat",
    "map_error",
    "on_overflow_drop",
    "on_overflow_latest",
    "buffer_time",
}
"""Behind these, what comes later than the subscription still does."""


def _none(d: Draw) -> Spec:
    return []


OPERATORS: dict[str, Callable[[Draw], Spec]] = {
    "map": lambda d: [d.fn()],
    "starmap": lambda d: [d.int(0, 3)],
    "map_not_none": lambda d: [d.fn()],
    "handle": lambda d: [d.test()],
    "flat_map_iterable": lambda d: [d.int(1, 4)],
    "flatten": _none,
    "enumerate": lambda d: [d.int(0, 2)],
    "pairwise": _none,
    "scan": lambda d: [d.int(0, 3)],
    "batch": lambda d: [d.int(1, 3)],
    "buffer": lambda d: [d.int(1, 3), d.int(1, 4)],
    "buffer_until": lambda d: [d.test(), d.unbounded and d.bool()],
    "start_with": Draw.some,
    "end_with": Draw.some,
    "materialize": _none,
    "dematerialize": _none,
    "transform": _none,
    "filter": lambda d: [d.test()],
    "distinct": lambda d: [d.key()],
    "distinct_until_changed": lambda d: [d.key()],
    "take": lambda d: [d.int(0, 4)],
    "take_while": lambda d: [d.test()],
    "skip": lambda d: [d.int(0, 3)],
    "skip_while": lambda d: [d.test()],
    "first": Draw.default,
    "last": Draw.default,
    "single": Draw.default,
    "take_last": lambda d: [d.int(0, 3)],
    "skip_last": lambda d: [d.int(0, 3)],
    "sort": lambda d: [d.one_of(1, 2, 256)],
    "element_at": lambda d: [d.int(0, 3), *d.default()],
    "default_if_empty": lambda d: [77],
    "ignore_elements": _none,
    "reduce": lambda d: d.one_of([], [1]),
    "collect": _none,
    "to_list": _none,
    "to_dict": _none,
    "count": _none,
    "sum": _none,
    "min": _none,
    "max": _none,
    "all": lambda d: [d.test()],
    "any": lambda d: [d.test()],
    "contains": lambda d: [d.int(0, 4)],
    "concat_with": lambda d: [d.simple()],
    "merge_with": lambda d: [d.apart()],
    "zip_with": lambda d: [d.source(*LATER) if d.bool() else d.source(*SAFE)],
    "with_latest_from": lambda d: [d.source(*LATER)],
    "switch_if_empty": lambda d: [d.simple()],
    "take_until": lambda d: [d.apart()],
    "skip_until": lambda d: [d.apart()],
    "flat_map": lambda d: [d.inner(), d.int(1, 3), d.bool()],
    "flat_map_sequential": lambda d: [d.inner(), d.int(1, 3), d.bool()],
    "concat_map": lambda d: [d.inner(), d.bool()],
    "switch_map": lambda d: [d.switched()],
    "expand": _none,
    "group_by": lambda d: [d.int(1, 3)],
    "window": lambda d: [d.int(1, 3)],
    "window_until": lambda d: [d.test(), d.bool()],
    "window_when": lambda d: [d.apart()],
    "window_time": lambda d: [d.time(), d.time() if d.bool() else 0],
    "window_timeout": lambda d: [d.int(1, 3), d.time()],
    "buffer_when": lambda d: [d.apart()],
    "buffer_time": lambda d: [d.time(), d.time() if d.bool() else 0],
    "buffer_timeout": lambda d: [d.int(1, 3), d.time()],
    "debounce": lambda d: [d.time()],
    "delay": lambda d: [d.time()],
    "delay_subscription": lambda d: [d.time()],
    "timestamp": _none,
    "elapsed": _none,
    "sample": lambda d: [d.time() if d.bool() else d.apart()],
    "throttle": lambda d: [d.time()],
    "timeout": lambda d: [d.time(), *d.one_of(list, lambda: [d.simple()])()],
    "publish_on": lambda d: [d.int(1, 4)],
    "subscribe_on": _none,
    "limit_rate": lambda d: [d.int(1, 5)],
    "on_overflow_buffer": lambda d: [d.int(1, 3), d.one_of("error", "oldest", "newest")],
    "on_overflow_drop": _none,
    "on_overflow_latest": _none,
    "serialize": _none,
    "parallel": lambda d: [d.int(1, 3)],
    "share": lambda d: [d.second()],
    "publish": lambda d: [d.second()],
    "replay": lambda d: [d.second(), d.int(1, 3)],
    "cache": lambda d: [d.second()],
    "on_error_resume": lambda d: [d.simple()],
    "on_error_return": _none,
    "on_error_complete": _none,
    "map_error": _none,
    "retry": lambda d: [d.int(0, 2)],
    "retry_when": Draw.companion,
    "retry_backoff": lambda d: [d.int(0, 3), d.time()],
    "repeat": lambda d: [d.int(0, 3)],
    "repeat_when": Draw.companion,
    "finalize": _none,
    "do_finally": _none,
    "do_on_subscribe": _none,
    "do_on_request": _none,
    "do_on_next": _none,
    "do_on_error": _none,
    "do_on_complete": _none,
    "do_on_cancel": _none,
    "tap": _none,
}


@st.composite
def plans(
    draw: st.DrawFn, operators: tuple[str, ...] = tuple(OPERATORS), sources: tuple[str, ...] = tuple(SOURCES)
) -> Plan:
    """A plan of 1 to 4 operators."""
    d = Draw(draw)
    d.unbounded = d.bool()
    source = d.source(*sources)
    d.at_once = source[0] not in (*LATER, "hot")
    settled = source[0] not in BETWEEN or d.unbounded
    turns = source[0] in BETWEEN  # of its sources, where it is asked for less than all that there is
    overtaken = source[0] in OVERTAKEN
    lossy = bool(words(source) & LOSSY) or ("concat" in words(source) and words(source) & {*LATER} and not d.unbounded)
    if d.bool():
        source = ["probe", "source", source]
    replayed = False  # and is subscribed to once: `replay-after-end`
    ops: list[Spec] = []
    for _ in range(d.one_of(1, 1, 1, 2, 2, 3, 4)):
        allowed = [
            operator
            for operator in operators
            if (d.unbounded or operator not in BY_DEMAND)
            and not (overtaken and operator in ERROR_HANDLING)
            and not (lossy and operator in HOLDING | SHARED)
            and not (turns and operator in HOLDING)
            and not (replayed and operator in AGAIN | SHARED)
        ]
        if not settled or not allowed:
            break
        name = d.one_of(*allowed)
        ops.append([name, *OPERATORS[name](d)])
        lossy = lossy or bool(words(ops[-1]) & LOSSY) or (name in FOLLOWED | TIMELY and not d.unbounded)
        replayed = replayed or name == "replay"
        turns = turns or name in BETWEEN
        settled = name not in BETWEEN or (
            d.unbounded and not d.at_once and not (name in SHARED and ops[-1][1]) and name != "expand"
        )
        settled = settled and not (name in FLATTENING and ops[-1][1][0] == "raise_on" and ops[-1][-1] is True)
        overtaken = overtaken or name in HALF_FULL or (name in OVERTAKEN and (d.at_once or not d.unbounded))
        d.at_once = d.at_once or name not in KEEPS_TIME
    plan: Plan = {"source": source, "ops": ops, "demand": MAX_DEMAND, "refill": 0, "cancel_after": 0, "steps": []}
    if not d.unbounded:
        plan["demand"] = d.int(0, 4)
        plan["refill"] = d.one_of(0, 0, 1)
        time = 0
        for _ in range(d.int(0, 3)):
            time += d.time(8)
            plan["steps"].append([time, d.one_of(1, 1, 2, 3, MAX_DEMAND)])
        several = len(names(plan) & BETWEEN) > 1 or "now_and_later" in names(plan)  # its clock begins behind an element
        late = names(plan) & {*FLATTENING} and several and names(plan) & BY_CLOCK
        if late or "buffer_timeout" in names(plan):
            plan["steps"].clear()
    if settled and d.int(0, 3) == 0:
        plan["cancel_after"] = d.int(1, 3)
    elif d.int(0, 3) == 0:
        time = d.time(20)
        plan["steps"] = [item for item in plan["steps"] if item[0] < time] + [[time, 0]]
    if not plan["demand"] and names(plan) & LAZY and names(plan) & BY_TIME:
        plan["demand"] = 1
    if names(plan) & AGAIN and names(plan) & LAZY and names(plan) & BY_CLOCK:  # the next run may begin without demand
        plan["demand"] = MAX_DEMAND
    return {**plan, "until": UNTIL}


def words(spec: Any) -> set[str]:
    """The first words of all lists in a part of a plan."""
    if not isinstance(spec, list):
        return set()
    found = {spec[0]} if spec and isinstance(spec[0], str) else set()
    return found.union(*map(words, spec))


def names(plan: Plan) -> set[str]:
    """All operators and sources that a plan has, the inner ones too."""
    return words(plan["source"]) | words(plan["ops"])
