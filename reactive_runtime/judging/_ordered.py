"""The records of a trace in order, as numpy columns, and the questions that the rules of the judge ask."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.judging._rows import ASCENDING, KINDS, NEVER, RAISED, UNCLOCKED, UNKNOWN, VALUED, Array, Rows
from reactive_runtime.testing._latency import LONGEST
from reactive_runtime.testing._records import UNDER_WAY, in_order

__all__ = [
    "CANCEL",
    "COMPLETE",
    "ERROR",
    "LAST_SIGNAL",
    "NEXT",
    "REQUEST",
    "SETTLED",
    "SUBSCRIBE",
    "SUBSCRIBED",
    "Trace",
    "order_of",
]

SUBSCRIBED, NEXT, ERROR, COMPLETE, REQUEST, CANCEL, SUBSCRIBE, SETTLED = range(UNKNOWN)
assert [signal.value for signal in KINDS[:6]] == [
    *("on_subscribe", "on_next", "on_error", "on_complete"),
    *("request", "cancel"),
]
LAST_SIGNAL: Final = COMPLETE

_HIGHEST: Final = UNDER_WAY
"""Tickets lie below; ends of none lie above."""
_OPEN: Final = 2**62
_CUT: Final = 2**31
"""The most that a request counts for where a rule compares it with a number of rows, which are fewer."""


# -- the order ------------------------------------------------------------------------------------------------


def _bits(number: int) -> int:
    return int(number).bit_length()


def order_of(rows: Rows) -> Array | None:
    """The order of the rows by run, subscription and begin; equal begins as in the reference. None: they are so."""
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


class Trace:
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
        return np.flatnonzero(self.kind <= LAST_SIGNAL)

    @cached_property
    def elements(self) -> Array:
        return self.kinds(NEXT)

    @cached_property
    def requests(self) -> Array:
        return self.kinds(REQUEST)

    @cached_property
    def cancels(self) -> Array:
        return self.kinds(CANCEL)

    @cached_property
    def calls(self) -> Array:
        return self.kinds(REQUEST, CANCEL)

    @cached_property
    def settled(self) -> Array:
        return self.kinds(SETTLED)

    @cached_property
    def subscribed(self) -> Array:
        return self.kinds(SUBSCRIBED)

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
        return self.first(self.kinds(ERROR, COMPLETE))

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

    def overlapping(self, rows: Array) -> Array:
        """The subscriptions, as a mask, where one of `rows` begins before one of the earlier has ended."""
        places = np.flatnonzero(self.end[rows[:-1]] > self.begin[rows[1:]])
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
        """The demand of each request; 0 where it is invalid."""
        return self.of("n", self.requests)

    @property
    def asked(self) -> Array:
        """The demand that each request adds to the sum."""
        return self.demand

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
        return np.cumsum(self.kind == REQUEST, dtype=np.int32)[self.elements]

    def asks_for_all(self, rows: Array) -> Array:
        """Whether the demand before each of these rows is MAX_DEMAND or more."""
        low = np.concatenate([[0], np.cumsum(self.asked & 0xFFFFFFFF)])
        high = np.concatenate([[0], np.cumsum(self.asked >> 32)])
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

    def delivered_before(self, rows: Array) -> Array:
        """How many elements came before each of these rows."""
        return self.count_before(rows, self.elements)

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
        return self._late()

    def _late(self) -> tuple[Array, Array]:
        has = self.effective < self.size
        last = self.last(self.signals)
        least = np.full(self.groups, _OPEN)
        least[has] = self.end[self.effective[has]]
        mask = has & (last >= 0) & (self.begin[np.maximum(last, 0)] > least)
        rows = self.inside_of(np.flatnonzero((self.kind <= LAST_SIGNAL) | (self.kind == CANCEL)), mask)
        cancels = (self.kind[rows] == CANCEL) & (self.end[rows] < _OPEN)
        earlier = self.most_before(rows, cancels, -self.end[rows])
        late = (self.kind[rows] <= LAST_SIGNAL) & (earlier >= 0)
        late[late] = self.end[rows[earlier[late]]] < self.begin[rows[late]]
        return rows[late], rows[earlier[late]]

    def beyond(self, rows: Array, allowed: Array | int) -> Array:
        """The rows, where they are more in their subscription than are allowed in it."""
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
        """The `settled` that are owed something."""
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
        delivered = self.delivered_before(rows)
        rows, delivered = rows[(less := delivered < self.requested(rows))], delivered[less]
        return rows, delivered, self.of("elements", rows)

    # -- how long things took -----------------------------------------------------------------------------

    @cached_property
    def answers(self) -> tuple[Array, Array]:
        """The elements that answer a request that found no demand outstanding, and how long that took."""
        valid = self.requests[self.demand > 0]
        idle = np.zeros(self.size, bool)
        idle[valid[self._found_no_demand(valid)]] = True
        counts = self.kind == NEXT
        counts[valid] = True
        rows = np.flatnonzero(counts)
        pairs = idle[rows[:-1]] & (self.kind[rows[1:]] == NEXT)
        pairs &= self.group[rows[1:]] == self.group[rows[:-1]]
        requests, answers = rows[:-1][pairs], rows[1:][pairs]
        return answers, _since(self.of("ns", requests), self.of("ns", answers))

    def _found_no_demand(self, requests: Array) -> Array:
        """Mask the valid requests that found no demand outstanding."""
        found: Array = self.delivered_before(requests) == self.requested(requests)
        return found

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
