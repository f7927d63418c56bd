"""The judge: all rules in one pass over columns, with the verdict of `reactive_runtime.testing._reference`.

The records are put in order of (run, subscription, begin); a subscription is then a stretch of rows, and what came
before a record lies above it. Each rule is a function that gives the rows that break it. Why they are the same rows:

- A running value leaves out the row itself. A running maximum is the `maximum.accumulate` of `group * m + rank`, so
  that it can't leak from one subscription into the next, and tells the row that has it.
- Overlap (1.3, 2.7) and the order of values: begins rise, so an earlier end lies beyond a begin exactly if that is so
  for a neighbouring pair somewhere in the subscription. Only subscriptions with such a pair are looked at closely.
- Late signals: begins rise and the least end of a cancel falls, so they are the tail of a subscription: it has some if
  its last signal is one.
- Demand that is compared with a count of rows may be summed from requests cut to 2**31: there are fewer rows. Demand
  that is compared with MAX_DEMAND is summed in two halves of 32 bits, exactly.
- Tickets beyond 0 to 2**61 are replaced by their ranks, so that ends of none lie above them without overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from reactive_runtime.judging._ordered import (
    CANCEL,
    COMPLETE,
    ERROR,
    LAST_SIGNAL,
    NEXT,
    REQUEST,
    SETTLED,
    SUBSCRIBE,
    SUBSCRIBED,
    Trace,
)
from reactive_runtime.judging._rows import DEEP, NEVER, NONE, RAISED, SHARED, Array, Rows
from reactive_runtime.testing._latency import DEMAND, EDGES, SILENCE
from reactive_runtime.testing._rule_checks import RULES

__all__ = [
    "AS_LATE",
    "BREAKS",
    "SUBSCRIPTIONS",
    "VIOLATIONS",
    "WAITS",
    "Condition",
    "Judged",
    "buckets_of",
    "judge",
    "schema_of",
]


def schema_of(**columns: pa.DataType) -> pa.Schema:
    """A schema with these columns."""
    return pa.schema(list(columns.items()))


SUBSCRIPTIONS: Final = schema_of(
    run=pa.string(),
    scenario=pa.string(),
    subscription=pa.int64(),
    signals=pa.int64(),
    elements=pa.int64(),
    requests=pa.int64(),
    cancels=pa.int64(),
    completed=pa.bool_(),
    failed=pa.bool_(),
    late=pa.int64(),
    cancel_inside=pa.bool_(),
    silence_ns=pa.int64(),
    broken=pa.int32(),
)
"""One row for each subscription: what it amounted to (`Amounts` of the reference), and how many rules it broke."""

VIOLATIONS: Final = schema_of(
    run=pa.string(),
    scenario=pa.string(),
    subscription=pa.int64(),
    rule=pa.string(),
    count=pa.int64(),
    first=pa.int64(),
)
"""One row for each rule broken in each subscription."""

WAITS: Final = schema_of(
    run=pa.string(),
    scenario=pa.string(),
    what=pa.string(),
    bucket=pa.int32(),
    count=pa.int64(),
    largest=pa.int64(),
)
"""One row for each bucket of each scenario of each run."""


class Judged(NamedTuple):
    """The findings of the judge, as Arrow tables of the schemas above."""

    subscriptions: pa.Table
    violations: pa.Table
    waits: pa.Table


def judge(rows: Rows, *, late_signals: int = 1, upto: Mapping[str, int] | None = None) -> Judged:
    """Judge records that have whole subscriptions.

    Args:
        rows: The records, in any order.
        late_signals: How many signals may follow a cancel from outside, where the records do not say.
        upto: The ticket of each run that is judged as it was at that ticket. None: all runs are judged whole.

    Returns:
        The findings, as Arrow tables.
    """
    if upto:
        rows = rows.upto(upto)
    if not len(rows):
        return Judged(SUBSCRIPTIONS.empty_table(), VIOLATIONS.empty_table(), WAITS.empty_table())
    trace = Trace(rows.ranked(), late_signals)
    return Judged(*_tables(trace))


# -- the rules ------------------------------------------------------------------------------------------------

_Judge = Callable[[Trace], Any]

AS_LATE: Final = -1
"""As many rows as late signals are allowed."""


class Condition(NamedTuple):
    """A function that gives the rows that meet the condition of a rule, in order."""

    rows: _Judge
    allowed: int = 0
    """How many such rows a subscription may have, or AS_LATE; beyond that all of them break the rule."""

    def broken(self, trace: Trace) -> Array:
        """The rows that break the rule."""
        rows: Array = self.rows(trace)
        if not self.allowed or not len(rows):
            return rows
        return trace.beyond(rows, trace.allowed if self.allowed == AS_LATE else self.allowed)


BREAKS: Final[dict[str, list[Condition]]] = {rule: [] for rule in RULES}
"""By rule: its conditions; a row meets one of them."""


def _rule(rule: str, allowed: int = 0) -> Callable[[_Judge], _Judge]:
    def listed(judge: _Judge) -> _Judge:
        BREAKS[rule].append(Condition(judge, allowed))
        return judge

    return listed


@_rule("1.1")
def _no_more_than_requested(trace: Trace) -> Array:
    return trace.elements[trace.delivered >= trace.requested(trace.elements)]


@_rule("1.3")
def _serial_signals(trace: Trace) -> Array:
    rows = trace.inside_of(trace.signals, trace.overlapping(trace.signals))
    if not len(rows):
        return rows
    first = trace.kind[rows] == SUBSCRIBED
    broken = np.zeros(len(rows), bool)
    thread, end, begin = trace.of("thread", rows), trace.end[rows], trace.begin[rows]
    others = trace.most_before(rows, ~first, end)
    broken |= (others >= 0) & (end[others] > begin)
    firsts = trace.most_before(rows, first, end)
    broken |= (firsts >= 0) & (end[firsts] > begin) & (thread[firsts] != thread)
    return rows[broken]


@_rule("1.6")
def _an_end_cancels(trace: Trace) -> Array:
    rows = trace.after(trace.elements, trace.first_end)
    if not len(rows):
        return rows
    place = trace.before(rows, trace.requests)
    request = trace.begin[trace.requests[place]] if len(trace.requests) else np.zeros(len(rows))
    return rows[(place >= 0) & (request > trace.begin[trace.first_end[trace.group[rows]]])]


@_rule("1.7")
def _nothing_after_the_end(trace: Trace) -> Array:
    return trace.after(trace.signals, trace.first_end)


@_rule("1.8", AS_LATE)
def _signals_stop(trace: Trace) -> Array:
    rows, _ = trace.late
    return rows


@_rule("3.6", AS_LATE)
def _no_demand_after_cancel(trace: Trace) -> Array:
    rows, cancels = trace.late
    place = trace.before(rows, trace.requests)
    request = trace.begin[trace.requests[place]] if len(trace.requests) else np.zeros(len(rows))
    asked: Array = rows[(trace.kind[rows] == NEXT) & (place >= 0) & (request > trace.end[cancels])]
    return asked


@_rule("1.9")
def _on_subscribe_first(trace: Trace) -> Array:
    rows = trace.kinds(NEXT, ERROR, COMPLETE, SETTLED)
    rows = trace.inside_of(rows, trace.first(rows) < trace.first_subscribed)
    return rows[rows < trace.first_subscribed[trace.group[rows]]]


@_rule("1.9")
def _subscribe_returns(trace: Trace) -> Array:
    return trace.marked(trace.kinds(SUBSCRIBE), RAISED)


@_rule("2.12")
def _on_subscribe_once(trace: Trace) -> Array:
    return trace.after(trace.subscribed, trace.first_subscribed)


@_rule("2.13")
def _none_is_no_argument(trace: Trace) -> Array:
    return trace.marked(trace.signals, NONE)


@_rule("3.3")
def _no_unbounded_recursion(trace: Trace) -> Array:
    return trace.marked(trace.elements, DEEP)


@_rule("order")
def _in_the_order_of_the_source(trace: Trace) -> Array:
    rows, value, counts, largest = trace.unordered
    return rows[counts & (value < largest)]


@_rule("conservation")
def _nothing_twice_or_too_much(trace: Trace) -> Array:
    rows, value, counts, largest = trace.unordered
    twice: Array = rows[counts & (value == largest)]
    if int(trace.rows.elements.max()) < 0:
        return twice
    elements = trace.of("elements", trace.elements)
    return np.union1d(twice, trace.elements[(elements >= 0) & (trace.delivered >= elements)])


@_rule("conservation")
def _nothing_lost(trace: Trace) -> Array:
    rows = trace.kinds(COMPLETE)
    rows = rows[(trace.of("elements", rows) >= 0) & (rows < trace.first_cancel[trace.group[rows]])]
    return rows[trace.delivered_before(rows) < trace.of("elements", rows)]


@_rule("3.9", 1)
def _invalid_demand_stops(trace: Trace) -> Array:
    invalid = trace.first_invalid
    rows = trace.after(trace.elements, invalid)
    rows = rows[rows < trace.first_cancel[trace.group[rows]]]
    return rows[trace.end[invalid[trace.group[rows]]] < trace.begin[rows]]


@_rule("2.7")
def _serial_calls(trace: Trace) -> Array:
    calls = trace.calls
    thread = trace.of("thread", calls)
    others = calls[1:][(thread[1:] != thread[:-1]) & (trace.group[calls[1:]] == trace.group[calls[:-1]])]
    rows = trace.inside_of(calls, trace.groups_with(others) & trace.overlapping(calls))
    thread, end, begin = trace.of("thread", rows), trace.end[rows], trace.begin[rows]
    earlier = trace.most_before(rows, np.ones(len(rows), bool), end)
    beside = (earlier >= 0) & (end[earlier] > begin) & (thread[earlier] != thread)
    broken: Array = rows[beside & ~trace.has(SHARED, rows)]
    return broken


@_rule("2.3")
def _no_call_from_an_end(trace: Trace) -> Array:
    rows = trace.after(trace.calls, trace.first_end)
    end = trace.first_end[trace.group[rows]]
    inside: Array = (trace.end[end] > trace.begin[rows]) & (trace.of("thread", end) == trace.of("thread", rows))
    return rows[inside]


@_rule("2.4")
def _no_demand_after_the_end(trace: Trace) -> Array:
    rows = trace.after(trace.requests, trace.first_end)
    end = trace.first_end[trace.group[rows]]
    return rows[(trace.end[end] < trace.begin[rows]) & ~trace.has(SHARED, rows)]


@_rule("3.7")
def _a_cancel_again_is_nothing(trace: Trace) -> Array:
    rows, again = trace.cancelled_again
    return rows[again]


@_rule("3.16")
def _calls_return(trace: Trace) -> Array:
    rows, again = trace.cancelled_again
    return np.union1d(trace.marked(trace.requests, RAISED), trace.marked(rows[~again], RAISED))


@_rule("3.2")
def _a_request_inside_returns(trace: Trace) -> Array:
    rows = trace.marked(trace.requests, NEVER)
    return rows[trace.inside(rows)]


@_rule("2.5")
def _a_second_subscription_is_cancelled(trace: Trace) -> Array:
    rows, subscribed = trace.settled, trace.subscribed
    rows = rows[trace.count_before(rows, subscribed) > 1]
    if not len(rows):
        return rows
    begun = trace.begin[subscribed[trace.before(rows, subscribed)]]
    place = trace.before(rows, trace.cancels)
    cancel = trace.begin[trace.cancels[place]] if len(trace.cancels) else begun
    return rows[(place < 0) | (cancel <= begun)]


@_rule("3.9")
def _invalid_demand_is_answered(trace: Trace) -> Array:
    rows = trace.owing
    return rows[rows > trace.first_invalid[trace.group[rows]]]


@_rule("1.4")
def _a_failure_is_signalled(trace: Trace) -> Array:
    rows = trace.owing
    raised = trace.first(trace.marked(trace.requests, RAISED))
    return rows[(rows < trace.first_invalid[trace.group[rows]]) & (rows > raised[trace.group[rows]])]


@_rule("1.5")
def _a_success_ends(trace: Trace) -> Array:
    rows, delivered, elements = trace.unmet
    return rows[(elements >= 0) & (delivered >= elements)]


@_rule("3.17")
def _unbounded_demand_is_met(trace: Trace) -> Array:
    rows, delivered, elements = trace.unmet
    return rows[((elements < 0) | (delivered < elements)) & trace.asks_for_all(rows)]


@_rule("1.2")
def _less_is_followed_by_an_end(trace: Trace) -> Array:
    rows, _, elements = trace.unmet
    return rows[(elements < 0) & ~trace.asks_for_all(rows)]


@_rule("3.8")
def _demand_is_met(trace: Trace) -> Array:
    rows, delivered, elements = trace.unmet
    return rows[(elements >= 0) & (delivered < elements) & ~trace.asks_for_all(rows)]


# -- what comes of it -----------------------------------------------------------------------------------------


def _tables(trace: Trace) -> tuple[pa.Table, pa.Table, pa.Table]:
    parts, broken = [], np.zeros(trace.groups, np.int32)
    for rule, judges in BREAKS.items():
        found = [rows for item in judges if len(rows := item.broken(trace))]
        if not found:
            continue
        rows = found[0] if len(found) == 1 else np.sort(np.concatenate(found))
        firsts = np.flatnonzero(np.diff(trace.group[rows], prepend=-1))
        groups = trace.group[rows[firsts]]
        broken[groups] += 1
        counts = np.diff(firsts, append=len(rows))
        named = [*_named(trace, groups), np.full(len(groups), rule), counts, trace.ticket[rows[firsts]]]
        parts.append(pa.Table.from_arrays(_arrays(named, VIOLATIONS), schema=VIOLATIONS))
    violations = pa.concat_tables(parts) if parts else VIOLATIONS.empty_table()
    return _amounts(trace, broken), violations, _waits(trace)


def _arrays(columns: list[Any], schema: pa.Schema) -> list[Any]:
    return [
        item if isinstance(item, pa.Array) else pa.array(item, field.type)
        for item, field in zip(columns, schema, strict=True)
    ]


def _words(words: list[str], places: Array) -> Any:
    at: Any = pa.array(places)
    return pa.array(words, pa.string()).take(at)


def _named(trace: Trace, groups: Array) -> list[Any]:
    rows = trace.rows
    names = [_words(rows.runs, trace.run[groups]), _words(rows.scenarios, trace.scenario[groups])]
    return [*names, trace.subscription[groups]]


def _amounts(trace: Trace, broken: Array) -> pa.Table:
    width = 16
    kinds = np.bincount(trace.group * np.int64(width) + trace.kind, minlength=trace.groups * width)
    kinds = kinds.reshape(trace.groups, width)
    late = np.bincount(trace.group[trace.late[0]], minlength=trace.groups)
    has = trace.effective < trace.size
    inside = np.zeros(trace.groups, bool)
    inside[has] = trace.inside(trace.effective[has])
    columns = [
        *_named(trace, np.arange(trace.groups)),
        kinds[:, : LAST_SIGNAL + 1].sum(1),
        *(kinds[:, kind] for kind in (NEXT, REQUEST, CANCEL)),
        *(kinds[:, kind] > 0 for kind in (COMPLETE, ERROR)),
        late,
        pa.array(inside, mask=~has),
        trace.silence,
        broken,
    ]
    return pa.Table.from_arrays(_arrays(columns, SUBSCRIPTIONS), schema=SUBSCRIPTIONS)


_FROM: Final = np.array(EDGES, np.int64)
_BUCKETS: Final = len(EDGES)


def buckets_of(ns: Array) -> Array:
    """The number of the bucket that each of these times is counted in."""
    return np.searchsorted(_FROM, ns, side="right") - 1


def _waits(trace: Trace) -> pa.Table:
    answers, took = trace.answers
    cancelled = np.flatnonzero(trace.first_cancel < trace.size)
    parts = []
    for what, groups, ns in ((DEMAND, trace.group[answers], took), (SILENCE, cancelled, trace.silence[cancelled])):
        if not len(ns):
            continue
        bucket = buckets_of(ns)
        scenario = trace.run[groups].astype(np.int64) * len(trace.rows.scenarios) + trace.scenario[groups]
        key = scenario * _BUCKETS + bucket
        keys, places, counts = np.unique(key, return_inverse=True, return_counts=True)
        largest = np.zeros(len(keys), np.int64)
        np.maximum.at(largest, places, ns)
        of, bucket = np.divmod(keys, _BUCKETS)
        run, scenario = np.divmod(of, len(trace.rows.scenarios))
        named = [_words(trace.rows.runs, run), _words(trace.rows.scenarios, scenario), np.full(len(keys), what)]
        parts.append(pa.Table.from_arrays(_arrays([*named, bucket, counts, largest], WAITS), schema=WAITS))
    return pa.concat_tables(parts) if parts else WAITS.empty_table()
