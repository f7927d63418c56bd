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
from reactive_runtime.testing.rules import RECURSION, RULES

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
        "asked_late",
        "calls_end",
        "calls_thread",
        "cancel_begun",
        "cancel_end",
        "cancel_inside",
        "delivered",
        "first_after",
        "first_asked",
        "first_late",
        "following",
        "invalid_end",
        "largest",
        "last_cancel",
        "last_request",
        "last_subscribe",
        "late",
        "recent",
        "request_raised",
        "requested",
        "signal_raised",
        "signal_thread",
        "signals_end",
        "subscribe_end",
        "subscribe_thread",
        "subscribed",
        "terminal_begin",
        "terminal_end",
        "terminal_thread",
        "terminated",
        "violations",
    )

    def __init__(self, context: int) -> None:
        self.requested = 0
        self.delivered = 0
        self.largest: int | None = None
        self.subscribed = 0  # how often
        self.terminated = self.cancel_begun = False
        self.request_raised = self.signal_raised = False
        self.terminal_begin = self.terminal_end = FOREVER  # of the first end
        self.terminal_thread = 0
        self.last_request = self.last_subscribe = self.last_cancel = 0  # the `begin` of the latest
        self.subscribe_end = self.signals_end = self.calls_end = 0  # the latest end of earlier records
        self.subscribe_thread = self.calls_thread = 0  # the thread of the one that ends latest
        self.signal_thread = 0  # the thread of the latest earlier signal
        self.cancel_end = FOREVER  # of the first cancel to end
        self.cancel_inside = False
        self.late = 0
        self.first_late: Record | None = None
        self.asked_late = 0  # of the late elements, those after a request that came after the cancel
        self.first_asked: Record | None = None
        self.invalid_end: int | None = None  # of the first one that counts
        self.after_invalid = 0
        self.first_after: Record | None = None
        self.recent: deque[Record] = deque(maxlen=context)
        self.following: list[tuple[Violation, int]] = []  # violations that still gather what follows
        self.violations: dict[str, Violation] = {}


class RuleChecker:
    """Turns records into violations."""

    def __init__(self, late_signals: int = 1, context: int = 6) -> None:
        """`late_signals` (0 to 15): how many may follow a cancel that came from outside, where the record does not say.

        `context`: records shown.
        """
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
            self._late(state, record)
        if signal != Signal.ON_SUBSCRIBE and not state.subscribed:
            self._breach(state, record, "1.9", f"{signal} before on_subscribe")
        if signal == Signal.ON_SUBSCRIBE:
            self._on_subscribe(state, record)
        else:
            if signal == Signal.ON_NEXT:
                self._element(state, record)
            else:
                self._terminal(state, record)
            state.signals_end = max(state.signals_end, end)
        state.signal_raised = state.signal_raised or _raised(record)
        state.signal_thread = record.thread

    def _late(self, state: _State, record: Record) -> None:
        promised = self._late_signals if record.late_signals is None else record.late_signals
        allowed = 0 if state.cancel_inside else promised
        state.late += 1
        state.first_late = state.first_late or record
        seen = f"{state.late} signal(s) began after a cancel had returned, allowed: {allowed}"
        self._tolerated(state, record, "1.8", seen, state.late, allowed, state.first_late)
        if record.signal != Signal.ON_NEXT or state.last_request <= state.cancel_end:
            return
        state.asked_late += 1
        state.first_asked = state.first_asked or record
        seen = f"{state.asked_late} element(s) after a request that came after a cancel, allowed: {allowed}"
        self._tolerated(state, record, "3.6", seen, state.asked_late, allowed, state.first_asked)

    def _on_subscribe(self, state: _State, record: Record) -> None:
        if state.subscribed:
            self._breach(state, record, "2.12", "a second on_subscribe")
        state.subscribed += 1
        state.last_subscribe = record.begin
        end = _end(record)
        if end > state.subscribe_end:
            state.subscribe_end, state.subscribe_thread = end, record.thread

    def _terminal(self, state: _State, record: Record) -> None:
        elements = record.elements
        lacks = elements is not None and state.delivered < elements
        if record.signal == Signal.ON_COMPLETE and lacks and not state.cancel_begun:
            self._breach(state, record, "conservation", f"completed after {state.delivered} of {elements} elements")
        if not state.terminated:
            state.terminated = True
            state.terminal_begin, state.terminal_end, state.terminal_thread = record.begin, _end(record), record.thread

    def _element(self, state: _State, record: Record) -> None:
        state.delivered += 1
        if state.delivered > state.requested:
            self._breach(
                state, record, "1.1", f"element {state.delivered} delivered, {state.requested} requested so far"
            )
        if state.last_request > state.terminal_begin:
            self._breach(state, record, "1.6", "an element after a request that came after the end")
        if record.depth is not None and record.depth > RECURSION:
            seen = f"an element inside of {record.depth} calls of its thread, allowed: {RECURSION}"
            self._breach(state, record, "3.3", seen)
        value, largest = record.value, state.largest
        known = record.ascending and value is not None and largest is not None
        if known and value < largest:  # type: ignore[operator]
            self._breach(state, record, "order", f"element {value} after {largest}")
        if known and value == largest:
            self._breach(state, record, "conservation", f"element {value} twice")
        elif record.elements is not None and state.delivered > record.elements:
            self._breach(
                state, record, "conservation", f"element {state.delivered} of a publisher that has {record.elements}"
            )
        if value is not None and (largest is None or value > largest):
            state.largest = value
        if state.invalid_end is not None and state.invalid_end < record.begin and not state.cancel_begun:
            state.after_invalid += 1
            state.first_after = state.first_after or record
            seen = f"{state.after_invalid} elements began after an invalid request"
            self._tolerated(state, record, "3.9", seen, state.after_invalid, 1, state.first_after)

    def _call(self, state: _State, record: Record) -> None:
        begin, end = record.begin, _end(record)
        thread, serial = record.thread, not record.shared_callers
        if serial and state.calls_end > begin and state.calls_thread != thread:
            self._breach(state, record, "2.7", f"{record.signal} begins while another thread's call is under way")
        if end > state.calls_end:
            state.calls_end, state.calls_thread = end, thread
        if state.terminated and state.terminal_end > begin and state.terminal_thread == thread:
            self._breach(state, record, "2.3", f"{record.signal} from inside the end")
        if record.signal == Signal.CANCEL:
            self._cancel(state, record)
        else:
            self._request(state, record)

    def _cancel(self, state: _State, record: Record) -> None:
        end, again = _end(record), state.cancel_end < record.begin
        if again and (_raised(record) or record.end is None):
            self._breach(state, record, "3.7", f"a cancel after a cancel {record.error or 'has not returned'}")
        elif _raised(record):
            self._breach(state, record, "3.16", f"cancel {record.error}")
        state.cancel_begun, state.last_cancel = True, record.begin
        if record.end is not None and end < state.cancel_end:
            state.cancel_end = end
            state.cancel_inside = self._inside(state, record)

    def _request(self, state: _State, record: Record) -> None:
        if _raised(record):
            self._breach(state, record, "3.16", f"request {record.error}")
            state.request_raised = True
        if not record.shared_callers and state.terminal_end < record.begin:
            self._breach(state, record, "2.4", "a request after the end had returned")
        if record.end is None and self._inside(state, record):
            self._breach(state, record, "3.2", "a request from inside a signal has not returned")
        state.last_request = record.begin
        if record.n is not None and record.n > 0:
            state.requested = min(state.requested + record.n, MAX_DEMAND)
        elif state.invalid_end is None and not state.cancel_begun and not state.terminated:
            state.invalid_end = _end(record)

    @staticmethod
    def _inside(state: _State, record: Record) -> bool:
        """Whether a call comes from inside a signal of its thread."""
        return max(state.signals_end, state.subscribe_end) > record.begin and state.signal_thread == record.thread

    def _settled(self, state: _State, record: Record) -> None:
        if not state.subscribed:
            self._breach(state, record, "1.9", "settled without on_subscribe")
        if state.subscribed > 1 and state.last_cancel < state.last_subscribe:
            self._breach(state, record, "2.5", "a second subscription was not cancelled")
        if state.terminated or state.cancel_begun or state.signal_raised:
            return
        if state.invalid_end is not None:
            self._breach(state, record, "3.9", "an invalid request was never answered")
        elif state.request_raised:
            self._breach(state, record, "1.4", "a request raised, and no on_error came")
        elif state.delivered < state.requested:
            seen = f"nothing runs any more: {state.delivered} delivered, {state.requested} requested"
            self._breach(state, record, self._unmet(state, record.elements), seen)

    @staticmethod
    def _unmet(state: _State, elements: int | None) -> str:
        """The rule that unmet demand breaks: it depends on whether the publisher had more."""
        if elements is not None and state.delivered >= elements:
            return "1.5"
        if state.requested == MAX_DEMAND:
            return "3.17"
        return "1.2" if elements is None else "3.8"

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

    def _tolerated(
        self, state: _State, record: Record, rule: str, seen: str, count: int, allowed: int, first: Record
    ) -> None:
        """The `count`th of what is `allowed` so often: one too many, and all of them break the rule, `first` first."""
        if count <= allowed:
            return
        self._breach(state, record, rule, seen)
        violation = state.violations[rule]
        if count == allowed + 1:
            violation.count += allowed  # those that were not counted so far
        if first.begin < violation.first:
            violation.first = first.begin
            if first not in violation.around:  # it lies further back than what is kept
                violation.around.insert(0, first)

    @staticmethod
    def _follow(state: _State, record: Record) -> None:
        for violation, _ in state.following:
            violation.around.append(record)
        state.following = [(violation, most) for violation, most in state.following if len(violation.around) < most]


def _raised(record: Record) -> bool:
    """Whether the call raised to its caller. The error of an `on_error` is not that."""
    return record.error is not None and (record.signal != Signal.ON_ERROR or record.error.startswith("raised "))


def _end(record: Record) -> int:
    """An end of none is later than every other; of two such, the one of the first to begin."""
    return FOREVER - record.begin if record.end is None else record.end


def check(records: Iterable[Record], late_signals: int = 1, context: int = 6) -> list[Violation]:
    """The violations in a whole trace, its records in any order; the arguments are those of `RuleChecker`."""
    checker = RuleChecker(late_signals, context)
    for record in sorted(records, key=lambda record: record.begin):
        checker.feed(record)
    return checker.violations
