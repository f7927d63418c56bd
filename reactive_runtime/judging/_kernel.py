"""The judge: all rules in one pass over columns, with the verdict of `reactive_runtime.testing._reference`.

The records are put in order of (run, subscription, begin); a subscription is then a stretch of rows, and what came
before a record lies above it. Each rule is a function that gives the rows that break it. Why they are the same rows:

- What is known "so far" leaves out the row itself. A running maximum is the `maximum.accumulate` of
  `group * m + rank`, so that it can't leak from one subscription into the next, and says which row it is of.
- Overlap (1.3, 2.7) and the order of values: begins rise, so an earlier end lies beyond a begin exactly if that is so
  for a neighbouring pair somewhere in the subscription. Only subscriptions with such a pair are looked at closely.
- Late signals: begins rise and the least end of a cancel falls, so they are the tail of a subscription: it has some if
  its last signal is one.
- Demand, where it is compared with a count of rows, may be summed from requests cut to 2**31: there are fewer rows.
  Where it is compared with MAX_DEMAND it is summed in two halves of 32 bits, exactly.
- Tickets beyond 0 to 2**61 are replaced by their ranks, so that ends of none lie above them without overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.judging._rows import (
    ASCENDING,
    DEEP,
    KINDS,
    NEVER,
    NONE,
    RAISED,
    SHARED,
    UNCLOCKED,
    UNKNOWN,
    VALUED,
    Array,
    Rows,
)
from reactive_runtime.testing._latency import DEMAND, EDGES, LONGEST, SILENCE
from reactive_runtime.testing._records import UNDER_WAY
from reactive_runtime.testing._reference import in_order
from reactive_runtime.testing._rule_checks import RULES

__all__ = ["SUBSCRIPTIONS", "VIOLATIONS", "WAITS", "Judged", "judge", "order_of", "schema_of"]

_KIND: Final = {signal: number for number, signal in enumerate(KINDS)}
_SUBSCRIBED, _NEXT, _ERROR, _COMPLETE, _REQUEST, _CANCEL, _SUBSCRIBE, _SETTLED = range(UNKNOWN)
assert [signal.value for signal in KINDS[:6]] == [
    *("on_subscribe", "on_next", "on_error", "on_complete"),
    *("request", "cancel"),
]
_LAST_SIGNAL: Final = _COMPLETE

_HIGHEST: Final = UNDER_WAY
"""Tickets lie below; ends of none lie above."""
_OPEN: Final = 2**62
_CUT: Final = 2**31
"""What a request counts for where it is compared with a number of rows, which are fewer."""


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
    """What the judge found, as Arrow tables of the schemas above."""

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
        What was found, as Arrow tables.
    """
    if upto:
        rows = rows.upto(upto)
    if not len(rows):
        return Judged(SUBSCRIPTIONS.empty_table(), VIOLATIONS.empty_table(), WAITS.empty_table())
    trace = _Trace(rows.ranked(), late_signals)
    return Judged(*_tables(trace))


# -- the order ------------------------------------------------------------------------------------------------


def _bits(number: int) -> int:
    return int(number).bit_length()


def order_of(rows: Rows) -> Array | None:
    """Where each row goes: by run, subscription and begin; of equal begins as the reference has it. None: as it is."""
    run, subscription, begin = rows.run, rows.subscription, rows.begin
    several = len(rows.runs) > 1 and bool((run[1:] != run[:-1]).any())
    order = None
    if not _is_sorted(run if several else None, subscription, begin):
        order = _sorted(run if several else None, subscription, begin)
        run, subscription, begin = run[order], subscription[order], begin[order]
    same = (begin[1:] == begin[:-1]) & (subscription[1:] == subscription[:-1]) & (run[1:] == run[:-1])
    if same.any():
        order = np.arange(len(rows)) if order is None else order
        _untie(rows, order, np.concatenate([[False], same]))
    return order


def _is_sorted(run: Array | None, subscription: Array, begin: Array) -> bool:
    fits = (subscription[1:] > subscription[:-1]) | (
        (subscription[1:] == subscription[:-1]) & (begin[1:] >= begin[:-1])
    )
    if run is not None:
        fits = (run[1:] > run[:-1]) | ((run[1:] == run[:-1]) & fits)
    return bool(fits.all())


def _sorted(run: Array | None, subscription: Array, begin: Array) -> Array:
    """One sort of one number, where all fits into it."""
    low, least = int(begin.min()), int(subscription.min())
    ticket_bits = _bits(int(begin.max()) - low)
    bits = ticket_bits + _bits(int(subscription.max()) - least)
    if bits + (0 if run is None else _bits(int(run.max()))) < 64:
        key = (subscription - least << ticket_bits) | (begin - low)
        if run is not None:
            key |= run.astype(np.int64) << bits
        return np.argsort(key, kind="stable")
    keys = (begin, subscription) if run is None else (begin, subscription, run)
    return np.lexsort(keys)


def _untie(rows: Rows, order: Array, same: Array) -> None:
    """Put rows with one begin in the order of the reference. No recorder writes such: this may take its time."""
    starts = np.flatnonzero(~same[:-1] & same[1:])
    stops = np.append(np.flatnonzero(same[:-1] & ~same[1:]) + 1, len(same) if same[-1] else [])
    for start, stop in zip(starts.tolist(), stops.astype(int).tolist(), strict=True):
        places = order[start:stop]
        tied = list(rows.records(places))
        place_of = {id(record): place for record, place in zip(tied, places, strict=True)}
        order[start:stop] = [place_of[id(record)] for record in in_order(tied)]


# -- the trace in order ---------------------------------------------------------------------------------------


class _Trace:
    """The rows in order, and what rules ask of them. A row is named by its place; "none" is a place past the last."""

    def __init__(self, rows: Rows, late_signals: int) -> None:
        self.rows = rows
        self._order = order_of(rows)
        self._late_signals = late_signals
        self.size = len(rows)
        self.flags = self.of("flags")
        self.kind = (self.flags & 15).astype(np.uint8)
        run, subscription = self.of("run"), self.of("subscription")
        self.ticket = self.of("begin")
        """The begin that the records say; `begin` is one that counts can be made with."""
        self.begin, self.end = self._tickets()
        new = np.empty(self.size, bool)
        new[0] = True
        new[1:] = (subscription[1:] != subscription[:-1]) | (run[1:] != run[:-1])
        self.start = np.flatnonzero(new)
        """Of each subscription, its first row."""
        self.groups = len(self.start)
        self.group = np.cumsum(new, dtype=np.int32) - 1
        self.subscription = subscription[self.start]
        self.run = run[self.start]
        self.scenario = self.of("scenario", self.start)

    def of(self, column: str, places: Array | None = None) -> Array:
        """A column, in order, at these places or all."""
        values: Array = getattr(self.rows, column)
        if self._order is None:
            return values if places is None else values[places]
        return values[self._order] if places is None else values[self._order[places]]

    def _tickets(self) -> tuple[Array, Array]:
        begin, end = self.ticket, self.of("end")
        is_open = end >= UNDER_WAY
        some_open = bool(is_open.any())
        ended = end[~is_open] if some_open else end
        lowest = min(int(begin.min()), int(ended.min()) if len(ended) else 0)
        highest = max(int(begin.max()), int(ended.max()) if len(ended) else 0)
        if lowest < 0 or highest > _HIGHEST:
            _, ranks = np.unique(np.concatenate([begin, end]), return_inverse=True)
            begin, end = ranks[: self.size], ranks[self.size :]
        if some_open:
            end = np.where(is_open, _OPEN + (_HIGHEST - begin), end)
        return begin, end

    # -- rows of a kind -----------------------------------------------------------------------------------

    def kinds(self, *kinds: int) -> Array:
        """The rows of these signals."""
        found = self.kind == kinds[0]
        for kind in kinds[1:]:
            found |= self.kind == kind
        return np.flatnonzero(found)

    @cached_property
    def signals(self) -> Array:
        """on_subscribe, on_next, on_error, on_complete."""
        return np.flatnonzero(self.kind <= _LAST_SIGNAL)

    @cached_property
    def elements(self) -> Array:
        return self.kinds(_NEXT)

    @cached_property
    def requests(self) -> Array:
        return self.kinds(_REQUEST)

    @cached_property
    def cancels(self) -> Array:
        return self.kinds(_CANCEL)

    @cached_property
    def calls(self) -> Array:
        return self.kinds(_REQUEST, _CANCEL)

    @cached_property
    def settled(self) -> Array:
        return self.kinds(_SETTLED)

    @cached_property
    def subscribed(self) -> Array:
        return self.kinds(_SUBSCRIBED)

    def marked(self, rows: Array, flag: int) -> Array:
        """Those of the rows that have the flag."""
        found: Array = rows[self.flags[rows] & flag != 0]
        return found

    def has(self, flag: int, rows: Array) -> Array:
        """Which of the rows have the flag."""
        found: Array = self.flags[rows] & flag != 0
        return found

    # -- groups -------------------------------------------------------------------------------------------

    def first(self, rows: Array) -> Array:
        """Of each subscription the first of these rows, or none."""
        found = np.full(self.groups, self.size)
        group = self.group[rows]
        found[group[::-1]] = rows[::-1]  # the last to be written stays
        return found

    def last(self, rows: Array) -> Array:
        """Of each subscription the last of these rows, or -1."""
        found = np.full(self.groups, -1)
        found[self.group[rows]] = rows
        return found

    def inside_of(self, rows: Array, groups: Array) -> Array:
        """Those of the rows that belong to the marked subscriptions."""
        chosen: Array = rows[groups[self.group[rows]]] if groups.any() else rows[:0]
        return chosen

    def groups_with(self, rows: Array) -> Array:
        """The subscriptions of these rows, as a mask."""
        mask = np.zeros(self.groups, bool)
        mask[self.group[rows]] = True
        return mask

    def after(self, rows: Array, first: Array) -> Array:
        """Those of the rows that come after the row that `first` has for their subscription."""
        if not (self.last(rows) > first).any():
            return rows[:0]
        return rows[rows > first[self.group[rows]]]

    @cached_property
    def first_end(self) -> Array:
        """The first on_error or on_complete of each subscription, or none."""
        return self.first(self.kinds(_ERROR, _COMPLETE))

    @cached_property
    def first_subscribed(self) -> Array:
        return self.first(self.subscribed)

    @cached_property
    def first_cancel(self) -> Array:
        return self.first(self.cancels)

    @cached_property
    def first_invalid(self) -> Array:
        """The first invalid request, where neither a cancel nor an end came before it."""
        rows = self.requests[self.demand == 0]
        found = self.first(rows)
        return np.where((found < self.first_cancel) & (found < self.first_end), found, self.size)

    # -- what came before ---------------------------------------------------------------------------------

    def before(self, rows: Array, among: Array) -> Array:
        """For each of `rows` the last of `among` before it in its subscription, as a place in `among`; -1 for none."""
        if not len(among):
            return np.full(len(rows), -1)
        place = np.searchsorted(among, rows) - 1
        return np.where((place >= 0) & (self.group[among[place]] == self.group[rows]), place, -1)

    def count_before(self, rows: Array, among: Array) -> Array:
        """How many of `among` came before each of `rows`, in its subscription."""
        found: Array = np.searchsorted(among, rows) - np.searchsorted(among, self.start)[self.group[rows]]
        return found

    def most_before(self, rows: Array, counts: Array, number: Array) -> Array:
        """For each of `rows`, that of the earlier ones which has the largest number.

        Only rows of its subscription that `counts` are looked at; of equal ones the first is taken. As a place in
        `rows`; -1 for none.
        """
        size = len(rows)
        order = np.lexsort((-np.arange(size), number))
        rank = np.empty(size, np.int64)
        rank[order] = np.arange(1, size + 1)
        base = self.group[rows].astype(np.int64) * (size + 1)
        most = np.maximum.accumulate(base + np.where(counts, rank, 0))
        earlier = np.zeros(size, np.int64)
        earlier[1:] = np.maximum(most[:-1] - base[1:], 0)  # of another subscription: less than its base
        return np.where(earlier > 0, order[earlier - 1], -1)

    def overlapping(self, rows: Array, counts: Array | None = None) -> Array:
        """The subscriptions, as a mask, where one of `rows` begins before one of the earlier has ended."""
        beyond = self.end[rows[:-1]] > self.begin[rows[1:]]
        if counts is not None:
            beyond &= counts[:-1]
        places = np.flatnonzero(beyond)
        places = places[self.group[rows[places]] == self.group[rows[places + 1]]]
        return self.groups_with(rows[places])

    def inside(self, rows: Array) -> Array:
        """Which of these calls come from inside a signal of their thread."""
        signals = self.signals
        begins = np.searchsorted(signals, self.start[self.group[rows]])
        ends = np.searchsorted(signals, rows)
        found = np.zeros(len(rows), bool)
        some = np.flatnonzero(ends > begins)
        if not len(some):
            return found
        begins, ends, rows = begins[some], ends[some], rows[some]
        stretches = np.stack([begins, ends], 1).ravel()
        latest = np.maximum.reduceat(np.append(self.end[signals], 0), stretches)[::2]
        last = signals[ends - 1]
        thread = self.of("thread", last) == self.of("thread", rows)
        found[some] = (latest > self.begin[rows]) & thread
        return found

    # -- demand -------------------------------------------------------------------------------------------

    @cached_property
    def demand(self) -> Array:
        """What each request asks for; 0 where it is invalid."""
        return self.of("n", self.requests)

    @cached_property
    def _demand_before(self) -> tuple[Array, Array]:
        """Sums of demand, cut: up to each request, and before the first of each subscription."""
        sums = np.concatenate([[0], np.cumsum(np.minimum(self.demand, _CUT))])
        return sums, sums[np.searchsorted(self.requests, self.start)]

    def requested(self, rows: Array) -> Array:
        """The demand before each of these rows; exact below 2**31, and at least that where it is more."""
        sums, base = self._demand_before
        some: Array = rows
        upto = self._requests_before_elements if rows is self.elements else np.searchsorted(self.requests, some)
        found: Array = sums[upto] - base[self.group[rows]]
        return found

    @cached_property
    def _requests_before_elements(self) -> Array:
        return np.cumsum(self.kind == _REQUEST, dtype=np.int32)[self.elements]

    def asks_for_all(self, rows: Array) -> Array:
        """Whether the demand before each of these rows is MAX_DEMAND or more."""
        low = np.concatenate([[0], np.cumsum(self.demand & 0xFFFFFFFF)])
        high = np.concatenate([[0], np.cumsum(self.demand >> 32)])
        upto, base = (np.searchsorted(self.requests, item) for item in (rows, self.start[self.group[rows]]))
        below = low[upto] - low[base]
        above = high[upto] - high[base] + (below >> 32)
        most = MAX_DEMAND >> 32
        found: Array = (above > most) | ((above == most) & (below & 0xFFFFFFFF == MAX_DEMAND & 0xFFFFFFFF))
        return found

    @cached_property
    def delivered(self) -> Array:
        """For each element, how many came before it."""
        firsts = np.searchsorted(self.elements, self.start)
        found: Array = np.arange(len(self.elements)) - firsts[self.group[self.elements]]
        return found

    @cached_property
    def unordered(self) -> tuple[Array, Array, Array, Array]:
        """The elements of ascending subscriptions whose values do not all rise.

        Their rows, their values, which of them are ascending and have an earlier one, and the largest earlier value.
        """
        rows = self.marked(self.elements, VALUED)
        value = self.of("value", rows)
        places = np.flatnonzero(value[1:] <= value[:-1])
        places = places[self.group[rows[places]] == self.group[rows[places + 1]]]
        groups = self.groups_with(rows[places]) & self.groups_with(self.marked(rows, ASCENDING))
        chosen = groups[self.group[rows]]
        rows, value = rows[chosen], value[chosen]
        largest = self.most_before(rows, np.ones(len(rows), bool), value)
        return rows, value, self.has(ASCENDING, rows) & (largest >= 0), value[largest]

    # -- after a cancel -----------------------------------------------------------------------------------

    @cached_property
    def returned(self) -> Array:
        """The cancels that have returned."""
        return self.cancels[self.end[self.cancels] < _OPEN]

    @cached_property
    def effective(self) -> Array:
        """Of each subscription the first cancel to end, or none."""
        found = np.full(self.groups, self.size)
        rows = self.returned
        if len(rows):
            order = np.lexsort((rows, self.end[rows]))[::-1]
            found[self.group[rows[order]]] = rows[order]  # the first to end is written last
        return found

    @cached_property
    def late(self) -> tuple[Array, Array]:
        """The late signals, and of each the cancel that counts: the first of the earlier ones to end."""
        has = self.effective < self.size
        last = self.last(self.signals)
        least = np.full(self.groups, _OPEN)
        least[has] = self.end[self.effective[has]]
        mask = has & (last >= 0) & (self.begin[np.maximum(last, 0)] > least)
        rows = self.inside_of(np.flatnonzero((self.kind <= _LAST_SIGNAL) | (self.kind == _CANCEL)), mask)
        cancels = (self.kind[rows] == _CANCEL) & (self.end[rows] < _OPEN)
        earlier = self.most_before(rows, cancels, -self.end[rows])
        late = (self.kind[rows] <= _LAST_SIGNAL) & (earlier >= 0)
        late[late] = self.end[rows[earlier[late]]] < self.begin[rows[late]]
        return rows[late], rows[earlier[late]]

    def beyond(self, rows: Array, allowed: Array) -> Array:
        """The rows, where they are more in their subscription than are allowed in it."""
        if not len(rows):
            return rows
        counts = np.bincount(self.group[rows], minlength=self.groups)
        return rows[(counts > allowed)[self.group[rows]]]

    @cached_property
    def allowed(self) -> Array:
        """How many late signals each subscription may have, as the first of them has it."""
        rows, cancels = self.late
        firsts = np.flatnonzero(np.diff(self.group[rows], prepend=-1))
        said = self.of("late_signals", rows[firsts])
        promised = np.where(said < 0, self._late_signals, said)
        allowed = np.zeros(self.groups, np.int64)
        allowed[self.group[rows[firsts]]] = np.where(self.inside(cancels[firsts]), 0, promised)
        return allowed

    @cached_property
    def cancelled_again(self) -> tuple[Array, Array]:
        """The cancels that raised or never returned, and whether an earlier one had ended."""
        rows = self.cancels
        odd = self.flags[rows] & (RAISED | NEVER) != 0
        if not odd.any():
            return rows[:0], odd[:0]
        rows = self.inside_of(rows, self.groups_with(rows[odd]))
        earlier = self.most_before(rows, self.end[rows] < _OPEN, -self.end[rows])
        again = (earlier >= 0) & (self.end[rows[earlier]] < self.begin[rows])
        odd = self.flags[rows] & (RAISED | NEVER) != 0
        return rows[odd], again[odd]

    # -- settled ------------------------------------------------------------------------------------------

    @cached_property
    def owing(self) -> Array:
        """The `settled` that something is owed."""
        rows = self.settled
        raised = self.first(self.marked(self.signals, RAISED))
        limit = np.minimum(np.minimum(self.first_end, self.first_cancel), raised)
        return rows[rows < limit[self.group[rows]]]

    @cached_property
    def unmet(self) -> tuple[Array, Array, Array]:
        """The `settled` that find demand unmet; how much was delivered; and how many elements there are, or -1."""
        raised = self.first(self.marked(self.requests, RAISED))
        limit = np.minimum(self.first_invalid, raised)
        rows = self.owing[self.owing < limit[self.group[self.owing]]]
        delivered = self.count_before(rows, self.elements)
        rows, delivered = rows[(less := delivered < self.requested(rows))], delivered[less]
        return rows, delivered, self.of("elements", rows)

    # -- how long things took -----------------------------------------------------------------------------

    @cached_property
    def answers(self) -> tuple[Array, Array]:
        """The elements that answer a request that found no demand outstanding, and how long that took."""
        valid = self.requests[self.demand > 0]
        idle = self.count_before(valid, self.elements) == self.requested(valid)
        asked = np.zeros(self.size, bool)
        asked[valid[idle]] = True
        counts = self.kind == _NEXT
        counts[valid] = True
        rows = np.flatnonzero(counts)
        pairs = asked[rows[:-1]] & (self.kind[rows[1:]] == _NEXT)
        pairs &= self.group[rows[1:]] == self.group[rows[:-1]]
        requests, answers = rows[:-1][pairs], rows[1:][pairs]
        return answers, _since(self.of("ns", requests), self.of("ns", answers))

    @cached_property
    def silence(self) -> Array:
        """Of each subscription, how long signals still came after a cancel."""
        silence = np.zeros(self.groups, np.int64)
        rows, _ = self.late
        if len(rows):
            firsts = np.flatnonzero(np.diff(self.group[rows], prepend=-1))
            groups = self.group[rows[firsts]]
            latest = np.maximum.reduceat(self.of("ns", rows), firsts)
            cancels = self.effective[groups]
            took = _since(self.of("ns", cancels), latest)
            silence[groups] = np.where(self.has(UNCLOCKED, cancels), 0, took)
        return silence


def _since(earlier: Array, later: Array) -> Array:
    """Nanoseconds from the one to the other, 0 to LONGEST, without overflow."""
    took = later.astype(np.uint64) - earlier.astype(np.uint64)
    return np.where(later > earlier, np.minimum(took, np.uint64(LONGEST)), 0).astype(np.int64)


# -- the rules ------------------------------------------------------------------------------------------------

_Judge = Callable[[_Trace], Any]

BREAKS: Final[dict[str, list[_Judge]]] = {rule: [] for rule in RULES}
"""By rule: functions that give the rows that break it, in order; a row is given by one of them."""


def _rule(rule: str) -> Callable[[_Judge], _Judge]:
    def listed(judge: _Judge) -> _Judge:
        BREAKS[rule].append(judge)
        return judge

    return listed


@_rule("1.1")
def _no_more_than_requested(trace: _Trace) -> Array:
    return trace.elements[trace.delivered >= trace.requested(trace.elements)]


@_rule("1.3")
def _serial_signals(trace: _Trace) -> Array:
    rows = trace.inside_of(trace.signals, trace.overlapping(trace.signals))
    if not len(rows):
        return rows
    first = trace.kind[rows] == _SUBSCRIBED
    broken = np.zeros(len(rows), bool)
    thread, end, begin = trace.of("thread", rows), trace.end[rows], trace.begin[rows]
    others = trace.most_before(rows, ~first, end)
    broken |= (others >= 0) & (end[others] > begin)
    firsts = trace.most_before(rows, first, end)
    broken |= (firsts >= 0) & (end[firsts] > begin) & (thread[firsts] != thread)
    return rows[broken]


@_rule("1.6")
def _an_end_cancels(trace: _Trace) -> Array:
    rows = trace.after(trace.elements, trace.first_end)
    if not len(rows):
        return rows
    place = trace.before(rows, trace.requests)
    request = trace.begin[trace.requests[place]] if len(trace.requests) else np.zeros(len(rows))
    return rows[(place >= 0) & (request > trace.begin[trace.first_end[trace.group[rows]]])]


@_rule("1.7")
def _nothing_after_the_end(trace: _Trace) -> Array:
    return trace.after(trace.signals, trace.first_end)


@_rule("1.8")
def _signals_stop(trace: _Trace) -> Array:
    rows, _ = trace.late
    return trace.beyond(rows, trace.allowed)


@_rule("3.6")
def _no_demand_after_cancel(trace: _Trace) -> Array:
    rows, cancels = trace.late
    place = trace.before(rows, trace.requests)
    request = trace.begin[trace.requests[place]] if len(trace.requests) else np.zeros(len(rows))
    asked = (trace.kind[rows] == _NEXT) & (place >= 0) & (request > trace.end[cancels])
    return trace.beyond(rows[asked], trace.allowed)


@_rule("1.9")
def _on_subscribe_first(trace: _Trace) -> Array:
    rows = trace.kinds(_NEXT, _ERROR, _COMPLETE, _SETTLED)
    rows = trace.inside_of(rows, trace.first(rows) < trace.first_subscribed)
    return rows[rows < trace.first_subscribed[trace.group[rows]]]


@_rule("1.9")
def _subscribe_returns(trace: _Trace) -> Array:
    return trace.marked(trace.kinds(_SUBSCRIBE), RAISED)


@_rule("2.12")
def _on_subscribe_once(trace: _Trace) -> Array:
    return trace.after(trace.subscribed, trace.first_subscribed)


@_rule("2.13")
def _none_is_no_argument(trace: _Trace) -> Array:
    return trace.marked(trace.signals, NONE)


@_rule("3.3")
def _no_unbounded_recursion(trace: _Trace) -> Array:
    return trace.marked(trace.elements, DEEP)


@_rule("order")
def _in_the_order_of_the_source(trace: _Trace) -> Array:
    rows, value, counts, largest = trace.unordered
    return rows[counts & (value < largest)]


@_rule("conservation")
def _nothing_twice_or_too_much(trace: _Trace) -> Array:
    rows, value, counts, largest = trace.unordered
    twice: Array = rows[counts & (value == largest)]
    if int(trace.rows.elements.max()) < 0:
        return twice
    elements = trace.of("elements", trace.elements)
    return np.union1d(twice, trace.elements[(elements >= 0) & (trace.delivered >= elements)])


@_rule("conservation")
def _nothing_lost(trace: _Trace) -> Array:
    rows = trace.kinds(_COMPLETE)
    rows = rows[(trace.of("elements", rows) >= 0) & (rows < trace.first_cancel[trace.group[rows]])]
    return rows[trace.count_before(rows, trace.elements) < trace.of("elements", rows)]


@_rule("3.9")
def _invalid_demand_stops(trace: _Trace) -> Array:
    invalid = trace.first_invalid
    rows = trace.after(trace.elements, invalid)
    rows = rows[rows < trace.first_cancel[trace.group[rows]]]
    rows = rows[trace.end[invalid[trace.group[rows]]] < trace.begin[rows]]
    return trace.beyond(rows, np.ones(trace.groups))


@_rule("2.7")
def _serial_calls(trace: _Trace) -> Array:
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
def _no_call_from_an_end(trace: _Trace) -> Array:
    rows = trace.after(trace.calls, trace.first_end)
    end = trace.first_end[trace.group[rows]]
    inside: Array = (trace.end[end] > trace.begin[rows]) & (trace.of("thread", end) == trace.of("thread", rows))
    return rows[inside]


@_rule("2.4")
def _no_demand_after_the_end(trace: _Trace) -> Array:
    rows = trace.after(trace.requests, trace.first_end)
    end = trace.first_end[trace.group[rows]]
    return rows[(trace.end[end] < trace.begin[rows]) & ~trace.has(SHARED, rows)]


@_rule("3.7")
def _a_cancel_again_is_nothing(trace: _Trace) -> Array:
    rows, again = trace.cancelled_again
    return rows[again]


@_rule("3.16")
def _calls_return(trace: _Trace) -> Array:
    rows, again = trace.cancelled_again
    return np.union1d(trace.marked(trace.requests, RAISED), trace.marked(rows[~again], RAISED))


@_rule("3.2")
def _a_request_inside_returns(trace: _Trace) -> Array:
    rows = trace.marked(trace.requests, NEVER)
    return rows[trace.inside(rows)]


@_rule("2.5")
def _a_second_subscription_is_cancelled(trace: _Trace) -> Array:
    rows, subscribed = trace.settled, trace.subscribed
    rows = rows[trace.count_before(rows, subscribed) > 1]
    if not len(rows):
        return rows
    begun = trace.begin[subscribed[trace.before(rows, subscribed)]]
    place = trace.before(rows, trace.cancels)
    cancel = trace.begin[trace.cancels[place]] if len(trace.cancels) else begun
    return rows[(place < 0) | (cancel <= begun)]


@_rule("3.9")
def _invalid_demand_is_answered(trace: _Trace) -> Array:
    rows = trace.owing
    return rows[rows > trace.first_invalid[trace.group[rows]]]


@_rule("1.4")
def _a_failure_is_signalled(trace: _Trace) -> Array:
    rows = trace.owing
    raised = trace.first(trace.marked(trace.requests, RAISED))
    return rows[(rows < trace.first_invalid[trace.group[rows]]) & (rows > raised[trace.group[rows]])]


@_rule("1.5")
def _a_success_ends(trace: _Trace) -> Array:
    rows, delivered, elements = trace.unmet
    return rows[(elements >= 0) & (delivered >= elements)]


@_rule("3.17")
def _unbounded_demand_is_met(trace: _Trace) -> Array:
    rows, delivered, elements = trace.unmet
    return rows[((elements < 0) | (delivered < elements)) & trace.asks_for_all(rows)]


@_rule("1.2")
def _less_is_followed_by_an_end(trace: _Trace) -> Array:
    rows, _, elements = trace.unmet
    return rows[(elements < 0) & ~trace.asks_for_all(rows)]


@_rule("3.8")
def _demand_is_met(trace: _Trace) -> Array:
    rows, delivered, elements = trace.unmet
    return rows[(elements >= 0) & (delivered < elements) & ~trace.asks_for_all(rows)]


# -- what comes of it -----------------------------------------------------------------------------------------


def _tables(trace: _Trace) -> tuple[pa.Table, pa.Table, pa.Table]:
    parts, broken = [], np.zeros(trace.groups, np.int32)
    for rule, judges in BREAKS.items():
        found = [rows for item in judges if len(rows := item(trace))]
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


def _named(trace: _Trace, groups: Array) -> list[Any]:
    rows = trace.rows
    names = [_words(rows.runs, trace.run[groups]), _words(rows.scenarios, trace.scenario[groups])]
    return [*names, trace.subscription[groups]]


def _amounts(trace: _Trace, broken: Array) -> pa.Table:
    width = 16
    kinds = np.bincount(trace.group * np.int64(width) + trace.kind, minlength=trace.groups * width)
    kinds = kinds.reshape(trace.groups, width)
    late = np.bincount(trace.group[trace.late[0]], minlength=trace.groups)
    has = trace.effective < trace.size
    inside = np.zeros(trace.groups, bool)
    inside[has] = trace.inside(trace.effective[has])
    columns = [
        *_named(trace, np.arange(trace.groups)),
        kinds[:, : _LAST_SIGNAL + 1].sum(1),
        *(kinds[:, kind] for kind in (_NEXT, _REQUEST, _CANCEL)),
        *(kinds[:, kind] > 0 for kind in (_COMPLETE, _ERROR)),
        late,
        pa.array(inside, mask=~has),
        trace.silence,
        broken,
    ]
    return pa.Table.from_arrays(_arrays(columns, SUBSCRIPTIONS), schema=SUBSCRIPTIONS)


_FROM: Final = np.array(EDGES, np.int64)
_BUCKETS: Final = len(EDGES)


def _waits(trace: _Trace) -> pa.Table:
    answers, took = trace.answers
    cancelled = np.flatnonzero(trace.first_cancel < trace.size)
    parts = []
    for what, groups, ns in ((DEMAND, trace.group[answers], took), (SILENCE, cancelled, trace.silence[cancelled])):
        if not len(ns):
            continue
        bucket = np.searchsorted(_FROM, ns, side="right") - 1
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
