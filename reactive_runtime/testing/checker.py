"""Judges a trace, record by record, by docs/judging.md: the work and the memory for a record are constant.

Feed it the records of a subscription in order of `begin`; those of other subscriptions may come in between.
The Spark pipeline judges by the same page, and a property test holds the two together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from reactive_runtime.spec import MAX_DEMAND
from reactive_runtime.testing.diagram import diagram
from reactive_runtime.testing.records import Record, Signal
from reactive_runtime.testing.rules import RULES

__all__ = ["RuleChecker", "Violation", "check"]

FOREVER: Final = 2**63 - 1
"""Later than any ticket."""

_SIGNALS: Final = frozenset({Signal.ON_SUBSCRIBE, Signal.ON_NEXT, Signal.ON_ERROR, Signal.ON_COMPLETE})


@dataclass
class Violation:
    """One rule, broken in one subscription, as often as `count` says."""

    rule: str
    run: str
    scenario: str
    subscription: int
    first: int
    """The `begin` of the record that broke it first."""
    seen: str
    """What was seen there, in words."""
    count: int = 1
    around: list[Record] = field(default_factory=list)
    """The records before the breach, the breach, and some that followed."""

    def __str__(self) -> str:
        head = f"rule {self.rule}: {RULES[self.rule]}\n  seen: {self.seen}"
        where = f"  in subscription {self.subscription} of {self.scenario or self.run}, {self.count} time(s)"
        return "\n".join([head, where, diagram(self.around, self.first)] if self.around else [head, where])


class _State:
    """What is known of one subscription so far."""

    __slots__ = (
        "after_invalid",
        "calls_end",
        "calls_thread",
        "cancel_begun",
        "cancel_end",
        "cancel_inside",
        "delivered",
        "first_after",
        "first_late",
        "following",
        "invalid_end",
        "largest",
        "late",
        "recent",
        "requested",
        "signal_thread",
        "signals_end",
        "subscribe_end",
        "subscribe_thread",
        "subscribed",
        "terminated",
        "violations",
    )

    def __init__(self, context: int) -> None:
        self.requested = 0
        self.delivered = 0
        self.largest: int | None = None
        self.subscribed = self.terminated = self.cancel_begun = False
        self.subscribe_end = self.signals_end = self.calls_end = 0  # the latest end of earlier records
        self.subscribe_thread = self.calls_thread = 0  # the thread of the one that ends latest
        self.signal_thread = 0  # the thread of the latest earlier signal
        self.cancel_end = FOREVER  # of the first cancel to end
        self.cancel_inside = False
        self.late = 0
        self.first_late: Record | None = None
        self.invalid_end: int | None = None  # of the first one that counts
        self.after_invalid = 0
        self.first_after: Record | None = None
        self.recent: deque[Record] = deque(maxlen=context)
        self.following: list[tuple[Violation, int]] = []  # violations that still gather what follows
        self.violations: dict[str, Violation] = {}


class RuleChecker:
    """Turns records into violations."""

    def __init__(self, late_signals: int = 1, context: int = 6) -> None:
        """`late_signals`: how many may follow a cancel that came from outside; `context`: records shown."""
        self._late_signals = late_signals
        self._context = context
        self._states: dict[tuple[str, int], _State] = {}
        self.violations: list[Violation] = []
        """What was found so far, one entry for each rule broken in each subscription."""

    def feed(self, record: Record) -> None:
        """Judge one more record."""
        key = (record.run, record.subscription)
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _State(self._context)
        state.recent.append(record)
        if state.following:
            self._follow(state, record)
        signal = record.signal
        if signal in _SIGNALS:
            self._signal(state, record)
        elif signal == Signal.REQUEST or signal == Signal.CANCEL:
            self._call(state, record)
        elif signal == Signal.SUBSCRIBE:
            if record.error is not None:
                self._breach(state, record, "1.9", f"subscribe {record.error}")
        elif signal == Signal.SETTLED:
            self._settled(state, record)

    def _signal(self, state: _State, record: Record) -> None:
        begin, signal, end = record.begin, record.signal, _end(record)
        if (state.signals_end > begin) or (state.subscribe_end > begin and state.subscribe_thread != record.thread):
            self._breach(state, record, "1.3", f"{signal} begins while another signal is still under way")
        if state.terminated:
            self._breach(state, record, "1.7", f"{signal} after the end")
        if state.cancel_end < begin:
            state.late += 1
            state.first_late = state.first_late or record
            allowed = 0 if state.cancel_inside else self._late_signals
            if state.late > allowed:
                seen = f"{state.late} signal(s) began after a cancel had returned, allowed: {allowed}"
                new = state.late if state.late == allowed + 1 else 1
                self._breaches(state, record, "1.8", seen, new, state.first_late)
        if (signal == Signal.ON_SUBSCRIBE) == state.subscribed:
            twice = "a second on_subscribe" if state.subscribed else f"{signal} before on_subscribe"
            self._breach(state, record, "1.9", twice)
        if signal == Signal.ON_NEXT:
            self._element(state, record)
        elif signal == Signal.ON_COMPLETE:
            elements = record.elements
            if elements is not None and state.delivered < elements and not state.cancel_begun:
                self._breach(state, record, "conservation", f"completed after {state.delivered} of {elements} elements")
        if signal == Signal.ON_SUBSCRIBE:
            state.subscribed = True
            if end > state.subscribe_end:
                state.subscribe_end, state.subscribe_thread = end, record.thread
        else:
            state.signals_end = max(state.signals_end, end)
            state.terminated = state.terminated or signal != Signal.ON_NEXT
        state.signal_thread = record.thread

    def _element(self, state: _State, record: Record) -> None:
        state.delivered += 1
        if state.delivered > state.requested:
            self._breach(
                state, record, "1.1", f"element {state.delivered} delivered, {state.requested} requested so far"
            )
        value, largest = record.value, state.largest
        if record.ascending and value is not None and largest is not None and value <= largest:
            self._breach(state, record, "conservation", f"element {value} after {largest}")
        elif record.elements is not None and state.delivered > record.elements:
            self._breach(
                state, record, "conservation", f"element {state.delivered} of a publisher that has {record.elements}"
            )
        if value is not None and (largest is None or value > largest):
            state.largest = value
        if state.invalid_end is not None and state.invalid_end < record.begin and not state.cancel_begun:
            state.after_invalid += 1
            state.first_after = state.first_after or record
            if state.after_invalid > 1:
                seen = f"{state.after_invalid} elements began after an invalid request"
                new = 2 if state.after_invalid == 2 else 1
                self._breaches(state, record, "3.9", seen, new, state.first_after)

    def _call(self, state: _State, record: Record) -> None:
        begin, end = record.begin, _end(record)
        if not record.shared_callers and state.calls_end > begin and state.calls_thread != record.thread:
            self._breach(state, record, "2.7", f"{record.signal} begins while another thread's call is under way")
        if end > state.calls_end:
            state.calls_end, state.calls_thread = end, record.thread
        if record.error is not None:
            self._breach(state, record, "3.16", f"{record.signal} {record.error}")
        if record.signal == Signal.CANCEL:
            state.cancel_begun = True
            if record.end is not None and end < state.cancel_end:
                signals_end = max(state.signals_end, state.subscribe_end)
                state.cancel_end = end
                state.cancel_inside = signals_end > begin and state.signal_thread == record.thread
        elif record.n is not None and record.n > 0:
            state.requested = min(state.requested + record.n, MAX_DEMAND)
        elif state.invalid_end is None and not state.cancel_begun and not state.terminated:
            state.invalid_end = end

    def _settled(self, state: _State, record: Record) -> None:
        if not state.subscribed:
            self._breach(state, record, "1.9", "settled without on_subscribe")
        if state.terminated or state.cancel_begun:
            return
        if state.invalid_end is not None:
            self._breach(state, record, "3.9", "an invalid request was never answered")
        elif state.delivered < state.requested:
            rule = "3.17" if state.requested == MAX_DEMAND else "3.8"
            self._breach(
                state, record, rule, f"nothing runs any more: {state.delivered} delivered, {state.requested} requested"
            )

    def _breach(self, state: _State, record: Record, rule: str, seen: str) -> None:
        violation = state.violations.get(rule)
        if violation is not None:
            violation.count += 1
            return
        violation = Violation(rule, record.run, record.scenario, record.subscription, record.begin, seen)
        violation.around = list(state.recent)
        state.violations[rule] = violation
        state.following.append((violation, len(violation.around) + self._context // 2))
        self.violations.append(violation)

    def _breaches(self, state: _State, record: Record, rule: str, seen: str, count: int, first: Record) -> None:
        """A rule that allows some is broken by one too many: by all `count` of them, from `first` on."""
        self._breach(state, record, rule, seen)
        violation = state.violations[rule]
        violation.count += count - 1
        if first.begin < violation.first:
            violation.first = first.begin
            if first not in violation.around:  # it lies further back than what is kept
                violation.around.insert(0, first)

    @staticmethod
    def _follow(state: _State, record: Record) -> None:
        for violation, _ in state.following:
            violation.around.append(record)
        state.following = [(violation, most) for violation, most in state.following if len(violation.around) < most]


def _end(record: Record) -> int:
    """An end of none is later than every other; of two such, the one of the first to begin."""
    return FOREVER - record.begin if record.end is None else record.end


def check(records: Iterable[Record], late_signals: int = 1, context: int = 6) -> list[Violation]:
    """The violations in a whole trace, its records in any order; the arguments are those of `RuleChecker`."""
    checker = RuleChecker(late_signals, context)
    for record in sorted(records, key=lambda record: record.begin):
        checker.feed(record)
    return checker.violations
