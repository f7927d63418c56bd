"""The judge of one subscription in pieces, for those that do not fit into memory, or that several tasks share.

A piece is a contiguous stretch of the subscription's records, in their order. Two things are made of it, and each can
be combined with that of the next piece, in any association:

    Summary    what later records have to know of the earlier ones
    Findings   which rules the records of the piece broke, what they amounted to, and how long things took

A summary needs its piece alone. Findings need the summary of all records before the piece, so pieces can be judged

    in turn     a fold: each piece is read once, judged after the summary of the last, and gives the next
    at once     two passes: all pieces are summed up, the summaries are combined, then all pieces are judged

One pass can't do it at once with a summary of constant size: how many elements break 1.1 in a piece depends on the
demand that was left before it, for each possible number in another way. The same is so for the largest value
(`order`, `conservation`), for the number delivered (`conservation`), and for the end of the first cancel (1.8).

How a summary stays small: of the earlier records, a rule asks for the first or the last of some kind, for the one with
the largest or the least number, or for a sum. So a summary has at most 18 records, and sums beside them. The kernel
judges a piece behind these records as if they were all that came before, and keeps what it finds in the piece:

    kept                                                  for
    the first record                                      scenario
    the first on_error or on_complete                     1.6, 1.7, 2.3, 2.4, all about a `settled`
    the first and the last on_subscribe                   1.9, 2.12, 2.5 (more than one: two are kept)
    the first and the last cancel                         conservation, 3.9, 2.5, a `settled`
    the first invalid request                             3.9, 1.4, a `settled`
    the first signal, and the first request, that raised  1.4, a `settled`
    the last request                                      1.6, 3.6
    the last signal                                       3.2, and whether a cancel came from inside
    the last element and the last valid request           demand → element
    the on_subscribe that ends last                       1.3, 3.2: what is still under way at the cut
    the other signal that ends last                       1.3, 3.2: the same
    the call that ends last                               2.7: the same
    the cancel that ends first                            1.8, 3.6, 3.7, 3.16, cancel → silence
    the largest value                                     order, conservation
    how much was delivered and requested                  1.1, 1.2, 1.5, 3.8, 3.17, conservation, demand → element
    whether the cancel that ends first came from inside   1.8, 3.6

Of records with equal numbers the first is kept, as the reference does. Whether a cancel came from inside depends on
the signals before it, some of which may lie before its piece: a summary has that in two halves (`over`, `same`).

Rules that allow some breaches (1.8, 3.6, 3.9) are counted in findings, and decided when the last piece is judged.
Counts are exact as long as no more than 2**38 elements were delivered beyond demand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.judging._kernel import AS_LATE, BREAKS, SUBSCRIPTIONS, VIOLATIONS, WAITS, Judged, buckets_of
from reactive_runtime.judging._ordered import CANCEL, COMPLETE, ERROR, LAST_SIGNAL, NEXT, REQUEST, SUBSCRIBED, Trace
from reactive_runtime.judging._rows import RAISED, UNCLOCKED, VALUED, Array, Rows
from reactive_runtime.testing._latency import DEMAND, LONGEST, SILENCE, bucket

__all__ = ["Findings", "Summary", "judge_in_pieces", "judge_piece"]

_KINDS: Final = 16
_MANY: Final = 2**32
"""More than a piece has rows."""


# -- summaries ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """The facts about earlier records of a subscription that later ones need.

    Args:
        rows: Those of the earlier records that rules ask for. None: there are no earlier records.
        delivered: How many elements there were.
        requested: The sum of valid demand, capped at MAX_DEMAND.
        requested_before_last: The same, without the last valid request.
        over: Whether an earlier signal had not ended when the cancel that ends first began.
        same: Whether the last signal before that cancel was of its thread; None where there was no signal.
    """

    rows: Rows | None = None
    delivered: int = 0
    requested: int = 0
    requested_before_last: int = 0
    over: bool = False
    same: bool | None = None

    @classmethod
    def of(cls, rows: Rows) -> Summary:
        """Sum up records, in any order.

        Args:
            rows: Records of one subscription.

        Returns:
            The summary.
        """
        return Piece([rows], cls()).summary() if len(rows) else cls()

    def then(self, later: Summary) -> Summary:
        """Put the summary of the records that follow behind this one.

        Args:
            later: That summary.

        Returns:
            The summary of both.
        """
        if self.rows is None or later.rows is None:
            return later if self.rows is None else self
        trace = Piece([later.rows], self)
        cancel, over, same = int(trace.effective[0]), self.over, self.same
        if trace.carried <= cancel < trace.size:
            over, same = trace.signals_before(cancel, trace.carried)
            over, same = over or later.over, same if later.same is None else later.same
        last = self.requested_before_last
        if len(trace.valid) and trace.valid[-1] >= trace.carried:
            last = self.requested + later.requested_before_last
        return Summary(
            trace.kept(),
            self.delivered + later.delivered,
            min(self.requested + later.requested, MAX_DEMAND),
            min(last, MAX_DEMAND),
            over,
            same,
        )


class Piece(Trace):
    """A piece in order, behind the records that the summary of the earlier ones has.

    Those are its first rows, `carried` of them. A finding there was counted before, and does not count again.
    """

    def __init__(self, parts: Sequence[Rows], before: Summary, late_signals: int = 1) -> None:
        self._all = Rows.together(parts if before.rows is None else [before.rows, *parts])
        super().__init__(self._all.ranked(), late_signals)
        assert self.groups == 1
        self._summed = before
        self.carried = 0 if before.rows is None else len(before.rows)

    @property
    def _inside(self) -> bool:
        """Whether the carried cancel that ends first came from inside a signal."""
        return bool(self._summed.over and self._summed.same)

    def new(self, rows: Array) -> Array:
        """Those of the rows, which are in order, that are not carried."""
        found: Array = rows[np.searchsorted(rows, self.carried) :]
        return found

    def _carried(self, rows: Array) -> int:
        """How many of the rows, which are in order, are carried."""
        return int(np.searchsorted(rows, self.carried))

    # -- what the kernel asks, of a piece -----------------------------------------------------------------

    @cached_property
    def delivered(self) -> Array:
        return np.arange(len(self.elements)) + (self._summed.delivered - self._carried(self.elements))

    def delivered_before(self, rows: Array) -> Array:
        found: Array = super().delivered_before(rows) + (self._summed.delivered - self._carried(self.elements))
        return found

    @property
    def asked(self) -> Array:
        return self._asked

    @cached_property
    def _asked(self) -> Array:
        asked: Array = self.demand.copy()
        if carried := self._carried(self.requests):
            asked[:carried] = 0
            asked[0] = self._summed.requested
        return asked

    @cached_property
    def _demand_before(self) -> tuple[Array, Array]:
        # Cut as in `Trace`, but above what can have been delivered beyond demand.
        asked = np.minimum(self.asked, 2**61 // self.size)
        if self._carried(self.requests):
            asked[0] = min(self._summed.requested, self._summed.delivered + _MANY)
        return np.concatenate([[0], np.cumsum(asked)]), np.zeros(1, np.int64)

    def requested(self, rows: Array) -> Array:
        sums, _ = self._demand_before
        every = rows is self.elements
        found: Array = sums[self._requests_before_elements if every else np.searchsorted(self.requests, rows)]
        return found

    def first(self, rows: Array) -> Array:
        return rows[:1] if len(rows) else np.array([self.size])

    def last(self, rows: Array) -> Array:
        return rows[-1:] if len(rows) else np.array([-1])

    def inside_of(self, rows: Array, groups: Array) -> Array:
        return rows if groups[0] else rows[:0]

    def groups_with(self, rows: Array) -> Array:
        return np.array([len(rows) > 0])

    def after(self, rows: Array, first: Array) -> Array:
        return rows[np.searchsorted(rows, first[0], side="right") :]

    def most_before(self, rows: Array, counts: Array, number: Array) -> Array:
        among = np.flatnonzero(counts)
        if not len(among):
            return np.full(len(rows), -1)
        number = number[among]
        most = np.maximum.accumulate(number)
        rises = np.flatnonzero(most[1:] > most[:-1]) + 1
        best = np.zeros(len(among), np.int64)
        best[rises] = rises
        best = among[np.maximum.accumulate(best)]
        earlier = np.cumsum(counts) - counts
        return np.where(earlier > 0, best[np.maximum(earlier, 1) - 1], -1)

    def inside(self, rows: Array) -> Array:
        found = super().inside(rows)
        found[(rows < self.carried) & (self.kind[rows] == CANCEL)] = self._inside
        return found

    def _late(self) -> tuple[Array, Array]:
        rows, cancels = super()._late()
        first = self._carried(rows)
        return rows[first:], cancels[first:]

    def _found_no_demand(self, requests: Array) -> Array:
        found = super()._found_no_demand(requests)
        if carried := self._carried(requests):
            found[carried - 1] = self._summed.delivered == self._summed.requested_before_last
        return found

    # -- its summary --------------------------------------------------------------------------------------

    @cached_property
    def valid(self) -> Array:
        """The valid requests."""
        return self.requests[self.demand > 0]

    def signals_before(self, cancel: int, upto: int) -> tuple[bool, bool | None]:
        """Of the signals before the row `upto`: `over` and `same` of a summary, for that cancel."""
        signals = self.signals[: np.searchsorted(self.signals, upto)]
        if not len(signals):
            return False, None
        thread = self.of("thread", np.array([signals[-1], cancel]))
        return bool(self.end[signals].max() > self.begin[cancel]), bool(thread[0] == thread[1])

    def kept(self) -> Rows:
        """The rows that later records ask for."""
        signals, elements, subscribed = self.signals, self.elements, self.subscribed
        requests, cancels, returned = self.requests, self.cancels, self.returned
        raised = self.flags & RAISED != 0
        valued = self.marked(elements, VALUED)
        others = signals[self.kind[signals] != SUBSCRIBED]
        firsts = [
            *(self.kinds(ERROR, COMPLETE), subscribed, cancels),
            *(requests[self.demand == 0], signals[raised[signals]], requests[raised[requests]]),
        ]
        lasts = [subscribed, cancels, requests, self.valid, signals, elements]
        most = [(rows, self.end[rows]) for rows in (subscribed, others, self.calls)]
        most += [(returned, -self.end[returned]), (valued, self.of("value", valued))]
        places = {0, *(int(rows[0]) for rows in firsts if len(rows)), *(int(rows[-1]) for rows in lasts if len(rows))}
        places |= {int(rows[np.argmax(number)]) for rows, number in most if len(rows)}
        order = np.array(sorted(places))
        return _alone(self._all.where(order if self._order is None else self._order[order]))

    def summary(self) -> Summary:
        """The summary of the earlier records and the piece."""
        before, cancel = self._summed, int(self.effective[0])
        over, same = before.over, before.same
        if self.carried <= cancel < self.size:
            over, same = self.signals_before(cancel, cancel)
        demand = self.demand[self._carried(self.requests) :]
        sum_ = int((demand & 0xFFFFFFFF).sum()) + (int((demand >> 32).sum()) << 32) + before.requested
        last = before.requested_before_last
        if len(self.new(self.valid)):
            last = sum_ - int(self.of("n", self.valid[-1:])[0])
        delivered = before.delivered + len(self.new(self.elements))
        return Summary(self.kept(), delivered, min(sum_, MAX_DEMAND), min(last, MAX_DEMAND), over, same)


def _alone(rows: Rows) -> Rows:
    """The rows, with no more words and large values than they have."""
    unvalued = (rows.flags & VALUED == 0) & (rows.value > 0)
    at = np.flatnonzero(unvalued)
    value = rows.value.copy()
    value[at] = np.arange(1, len(at) + 1)
    runs, run = np.unique(rows.run, return_inverse=True)
    scenarios, scenario = np.unique(rows.scenario, return_inverse=True)
    return replace(
        rows,
        runs=[rows.runs[place] for place in runs],
        scenarios=[rows.scenarios[place] for place in scenarios],
        run=run.astype(np.int32),
        scenario=scenario.astype(np.int32),
        value=value,
        large=[rows.large[place - 1] for place in rows.value[at].tolist()],
    )


# -- findings -------------------------------------------------------------------------------------------------

Counts = tuple[int, int]


@dataclass(frozen=True)
class Findings:
    """The findings in some pieces.

    Args:
        kinds: How many records there were of each signal.
        late: How many signals were late.
        allowed: How many may be, as the first of them has it.
        last_late_ns: When the last of them began; None where there was none.
        broken: For each rule: how many records broke it, and the `begin` of the first.
        perhaps: The same for the records that break it where there are more than are allowed.
        waits: For each bucket of demand → element, how many there were, and the longest.
    """

    kinds: tuple[int, ...] = (0,) * _KINDS
    late: int = 0
    allowed: int = 0
    last_late_ns: int | None = None
    broken: Mapping[str, Counts] = field(default_factory=dict)
    perhaps: Mapping[str, Counts] = field(default_factory=dict)
    waits: Mapping[int, Counts] = field(default_factory=dict)

    @classmethod
    def of(cls, piece: Piece) -> Findings:
        """Judge a piece.

        Args:
            piece: The piece.

        Returns:
            The findings in it.
        """
        broken: dict[str, Counts] = {}
        perhaps: dict[str, Counts] = {}
        for rule, conditions in BREAKS.items():
            for condition in conditions:
                rows = piece.new(condition.rows(piece))
                if len(rows):
                    found = {rule: (len(rows), int(piece.ticket[rows[0]]))}
                    to = perhaps if condition.allowed else broken
                    to.update(_counted(to, found))
        late, _ = piece.late
        some = len(late) > 0
        return cls(
            tuple(np.bincount(piece.kind[piece.carried :], minlength=_KINDS).tolist()),
            len(late),
            int(piece.allowed[0]) if some else 0,
            int(piece.of("ns", late).max()) if some else None,
            broken,
            perhaps,
            _waits(piece),
        )

    def then(self, later: Findings) -> Findings:
        """Put the findings in the pieces that follow behind these.

        Args:
            later: Those findings.

        Returns:
            The findings in all of these pieces.
        """
        moments = [moment for moment in (self.last_late_ns, later.last_late_ns) if moment is not None]
        return Findings(
            tuple(mine + theirs for mine, theirs in zip(self.kinds, later.kinds, strict=True)),
            self.late + later.late,
            self.allowed if self.late else later.allowed,
            max(moments, default=None),
            _counted(self.broken, later.broken),
            _counted(self.perhaps, later.perhaps),
            _added(self.waits, later.waits),
        )

    def violations(self) -> dict[str, Counts]:
        """The rules that were broken, where these are the findings in all pieces."""
        beyond: dict[str, Counts] = {}
        for rule, conditions in BREAKS.items():
            for condition in conditions:
                count, first = self.perhaps.get(rule, (0, 0))
                if condition.allowed and count > (self.allowed if condition.allowed == AS_LATE else condition.allowed):
                    beyond[rule] = (count, first)
        return _counted(self.broken, beyond)


def _counted(mine: Mapping[str, Counts], theirs: Mapping[str, Counts]) -> dict[str, Counts]:
    """Both counts, and the least of the firsts."""
    found = dict(mine)
    for rule, (count, first) in theirs.items():
        before, least = found.get(rule, (0, first))
        found[rule] = (before + count, min(least, first))
    return found


def _added(mine: Mapping[int, Counts], theirs: Mapping[int, Counts]) -> dict[int, Counts]:
    """Both counts, and the longest."""
    found = dict(mine)
    for place, (count, longest) in theirs.items():
        before, most = found.get(place, (0, longest))
        found[place] = (before + count, max(most, longest))
    return found


def _waits(piece: Piece) -> dict[int, Counts]:
    answers, took = piece.answers
    took = took[len(answers) - len(piece.new(answers)) :]
    places, at, counts = np.unique(buckets_of(took), return_inverse=True, return_counts=True)
    longest = np.zeros(len(places), np.int64)
    np.maximum.at(longest, at, took)
    return dict(zip(places.tolist(), zip(counts.tolist(), longest.tolist(), strict=True), strict=True))


def judge_piece(parts: Sequence[Rows], before: Summary, late_signals: int = 1) -> tuple[Findings, Summary]:
    """Judge a piece of a subscription.

    Args:
        parts: Its records, in any order; one at least.
        before: The summary of all earlier records.
        late_signals: How many signals may follow a cancel from outside, where the records do not say.

    Returns:
        The findings in it, and the summary of all records up to its end.
    """
    piece = Piece(parts, before, late_signals)
    return Findings.of(piece), piece.summary()


def judge_in_pieces(pieces: Iterable[Sequence[Rows]], late_signals: int = 1) -> Judged:
    """Judge a subscription, a piece after the other; memory holds one of them.

    Args:
        pieces: All records of the subscription, each piece in parts: those of a piece come before those of the next.
            One piece at least.
        late_signals: As for `judge_piece`.

    Returns:
        The findings, as Arrow tables.
    """
    findings, summary = Findings(), Summary()
    for parts in pieces:
        found, summary = judge_piece(parts, summary, late_signals)
        findings = findings.then(found)
    return verdict(findings, summary)


def verdict(findings: Findings, summary: Summary) -> Judged:
    """The verdict on a subscription.

    Args:
        findings: Those in all its pieces.
        summary: That of all its records.

    Returns:
        The findings, as Arrow tables.
    """
    assert summary.rows is not None
    rows, trace = summary.rows, Piece([summary.rows], Summary())
    whose = {"run": rows.runs[rows.run[0]], "scenario": rows.scenarios[rows.scenario[0]]}
    subscription = {"subscription": int(rows.subscription[0])}
    cancels = findings.kinds[CANCEL]
    silence, inside = 0, None
    if (cancel := int(trace.effective[0])) < trace.size:
        inside = bool(summary.over and summary.same)
        if findings.last_late_ns is not None and not trace.flags[cancel] & UNCLOCKED:
            since = findings.last_late_ns - int(trace.of("ns")[cancel])
            silence = min(max(since, 0), LONGEST)
    violations = findings.violations()
    amounts = {
        "signals": sum(findings.kinds[: LAST_SIGNAL + 1]),
        "elements": findings.kinds[NEXT],
        "requests": findings.kinds[REQUEST],
        "cancels": cancels,
        "completed": findings.kinds[COMPLETE] > 0,
        "failed": findings.kinds[ERROR] > 0,
        "late": findings.late,
        "cancel_inside": inside,
        "silence_ns": silence,
        "broken": len(violations),
    }
    waits = [(DEMAND, at, *counts) for at, counts in findings.waits.items()]
    if cancels:
        waits.append((SILENCE, bucket(silence), 1, silence))
    broken = [
        whose | subscription | {"rule": rule, "count": count, "first": first}
        for rule, (count, first) in violations.items()
    ]
    took = [dict(zip(("what", "bucket", "count", "largest"), wait, strict=True)) for wait in waits]
    return Judged(
        pa.Table.from_pylist([whose | subscription | amounts], schema=SUBSCRIPTIONS),
        pa.Table.from_pylist(broken, schema=VIOLATIONS),
        pa.Table.from_pylist([whose | wait for wait in took], schema=WAITS),
    )
