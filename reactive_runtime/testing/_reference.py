"""The rules of docs/judging.md as a state machine over the records of one subscription: the specification.

`Past` is what is known from the earlier records, in the words of the page; below it each rule is one function, of the
past and the record at hand. The work and the memory for a record are constant. Tests hold the
faster judge (`reactive_runtime.judging`) to the same verdict: the same rules, counts, firsts and amounts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.testing._latency import DEMAND, LONGEST, SILENCE, bucket
from reactive_runtime.testing._records import LATER, Record, Signal, end_of, raised, returned, value_as_text
from reactive_runtime.testing._rule_checks import RECURSION

__all__ = ["CONDITIONS", "Amounts", "Finding", "Past", "Reference", "Waits"]

_NEVER: Final = -LATER
"""Before all tickets."""

_SIGNALS: Final = (Signal.ON_SUBSCRIBE, Signal.ON_NEXT, Signal.ON_ERROR, Signal.ON_COMPLETE)
_CALLS: Final = (Signal.REQUEST, Signal.CANCEL)

Waits = dict[tuple[str, int], tuple[int, int]]
"""How long things took: what and the bucket, to the count and the longest, in nanoseconds."""


# -- what is known --------------------------------------------------------------------------------------------


class Amounts(NamedTuple):
    """The totals of a subscription."""

    signals: int
    elements: int
    requests: int
    cancels: int
    completed: bool
    failed: bool
    late: int
    """Signals that began after a cancel had returned."""
    cancel_inside: bool | None
    """Whether the first cancel to return came from inside a signal; None where none did."""
    silence_ns: int
    """From the return of that cancel to the beginning of the last signal after it; 0 where there was none."""


@dataclass(slots=True, eq=False)
class Past:
    """The earlier records of one subscription, summed up."""

    late_signals: int
    """Allowed where a record does not say."""
    signals: int = 0
    requests: int = 0
    cancels: int = 0
    late: int = 0
    requested: int = 0
    """The sum of valid demand, capped."""
    delivered: int = 0
    largest: int | None = None
    subscribed: int = 0
    """How often."""
    terminated: bool = False
    completed: bool = False
    failed: bool = False
    request_raised: bool = False
    signal_raised: bool = False
    terminal_begin: int = LATER
    """Of the first end, as its `terminal_end` and `terminal_thread`."""
    terminal_end: int = LATER
    terminal_thread: int = 0
    last_request: int = _NEVER
    """Its `begin`, as of `last_subscribe` and `last_cancel`."""
    last_subscribe: int = _NEVER
    last_cancel: int = _NEVER
    subscribe_end: int = _NEVER
    """The latest, as `signals_end` (of signals but on_subscribe) and `calls_end`."""
    signals_end: int = _NEVER
    calls_end: int = _NEVER
    subscribe_thread: int = 0
    """Of the one that ends latest, as `calls_thread`."""
    calls_thread: int = 0
    signal_thread: int = 0
    """Of the last to begin."""
    cancel_end: int = LATER
    """Of the first to end, as `cancel_inside` and `cancel_ns`."""
    cancel_inside: bool | None = None
    cancel_ns: int | None = None
    last_late_ns: int | None = None
    allowed: int = 0
    """Late signals, as the first of them has it."""
    invalid_end: int | None = None
    """Of the first invalid request that counts."""
    asked_at: int | None = None
    """In ns; of a request that found no demand outstanding, until it is answered."""
    waits: Waits = field(default_factory=dict)

    def inside(self, call: Record) -> bool:
        """Whether the call comes from inside a signal of its thread."""
        return max(self.signals_end, self.subscribe_end) > call.begin and self.signal_thread == call.thread

    def owing(self) -> bool:
        """Whether a subscription that is settled is owed something."""
        return not (self.terminated or self.cancels or self.signal_raised)

    def unmet(self) -> bool:
        """Whether besides it finds demand unmet."""
        served = self.invalid_end is not None or self.request_raised or self.delivered >= self.requested
        return self.owing() and not served

    def all_delivered(self, elements: int | None) -> bool:
        """Whether the publisher has delivered all that it has."""
        return elements is not None and self.delivered >= elements

    def allowance(self, late: Record) -> int:
        """How many signals may be late, where this one is."""
        if self.late:
            return self.allowed
        if self.cancel_inside:
            return 0
        return self.late_signals if late.late_signals is None else late.late_signals

    def take(self, record: Record) -> None:
        """The record belongs to the past from now on."""
        take = _TAKES.get(record.signal)
        if take is not None:
            take(self, record)

    def _signal(self, record: Record) -> None:
        self.signals += 1
        if self.cancel_end < record.begin:  # it is late
            self.allowed = self.allowance(record)
            self.late += 1
            before = self.last_late_ns
            self.last_late_ns = record.begin_ns if before is None else max(before, record.begin_ns)
        if record.error is not None and raised(record):
            self.signal_raised = True
        self.signal_thread = record.thread

    def _subscribe(self, record: Record) -> None:
        self._signal(record)
        self.subscribed += 1
        self.last_subscribe = record.begin
        end = end_of(record)
        if end > self.subscribe_end:
            self.subscribe_end, self.subscribe_thread = end, record.thread

    def _ended(self, record: Record) -> None:
        self._signal(record)
        end = end_of(record)
        self.signals_end = max(self.signals_end, end)
        self.completed = self.completed or record.signal == Signal.ON_COMPLETE
        self.failed = self.failed or record.signal == Signal.ON_ERROR
        if not self.terminated:
            self.terminated = True
            self.terminal_begin, self.terminal_end, self.terminal_thread = record.begin, end, record.thread

    def _element(self, record: Record) -> None:
        self._signal(record)
        end = end_of(record)
        if end > self.signals_end:
            self.signals_end = end
        self.delivered += 1
        if record.value is not None and (self.largest is None or record.value > self.largest):
            self.largest = record.value
        if self.asked_at is not None:
            self._waited(DEMAND, record.begin_ns - self.asked_at)
            self.asked_at = None

    def _request(self, record: Record) -> None:
        self._call(record)
        self.requests += 1
        self.last_request = record.begin
        if record.error is not None:
            self.request_raised = True
        if record.n is not None and record.n > 0:
            self.asked_at = record.begin_ns if self.delivered == self.requested else None
            self.requested = min(self.requested + record.n, MAX_DEMAND)
        elif self.invalid_end is None and not self.cancels and not self.terminated:
            self.invalid_end = end_of(record)

    def _cancel(self, record: Record) -> None:
        self._call(record)
        end = record.end
        if end is not None and returned(record) and end < self.cancel_end:
            self.cancel_end, self.cancel_ns = end, record.end_ns
            self.cancel_inside = self.inside(record)
        self.cancels += 1
        self.last_cancel = record.begin

    def _call(self, record: Record) -> None:
        end = end_of(record)
        if end > self.calls_end:
            self.calls_end, self.calls_thread = end, record.thread

    def _waited(self, what: str, ns: int) -> None:
        ns = min(max(ns, 0), LONGEST)
        count, longest = self.waits.get((what, bucket(ns)), (0, 0))
        self.waits[what, bucket(ns)] = (count + 1, max(longest, ns))

    def silence_ns(self) -> int:
        """How long signals still came after a cancel had returned."""
        if self.last_late_ns is None or self.cancel_ns is None:
            return 0
        return min(max(self.last_late_ns - self.cancel_ns, 0), LONGEST)

    def amounts(self) -> Amounts:
        """Its totals so far."""
        counts = (self.signals, self.delivered, self.requests, self.cancels)
        return Amounts(*counts, self.completed, self.failed, self.late, self.cancel_inside, self.silence_ns())

    def all_waits(self) -> Waits:
        """How long things took so far: one silence for a subscription that was cancelled."""
        if not self.cancels:
            return self.waits
        silence = self.silence_ns()
        return {**self.waits, (SILENCE, bucket(silence)): (1, silence)}


_TAKES: Final[dict[str, Callable[[Past, Record], None]]] = {
    Signal.ON_SUBSCRIBE.value: Past._subscribe,
    Signal.ON_NEXT.value: Past._element,
    Signal.ON_ERROR.value: Past._ended,
    Signal.ON_COMPLETE.value: Past._ended,
    Signal.REQUEST.value: Past._request,
    Signal.CANCEL.value: Past._cancel,
}


# -- the rules ------------------------------------------------------------------------------------------------


class _Breach(NamedTuple):
    """The answer of a rule to a record that breaks it."""

    seen: str
    allowed: int | None = None
    """How often this may happen in the subscription; beyond that all of them break the rule. None: not once."""


_Condition = Callable[[Past, Record], "_Breach | None"]

CONDITIONS: Final[dict[str, list[tuple[str, _Condition]]]] = {}
"""By the signal of the record: the rules that it may break, and their functions."""


def _rule(rule: str, *signals: Signal) -> Callable[[_Condition], _Condition]:
    """The function judges records of these signals by that rule."""

    def listed(condition: _Condition) -> _Condition:
        for signal in signals:
            CONDITIONS.setdefault(signal.value, []).append((rule, condition))
        return condition

    return listed


@_rule("1.3", *_SIGNALS)
def _serial_signals(past: Past, record: Record) -> _Breach | None:
    beside_first = past.subscribe_end > record.begin and past.subscribe_thread != record.thread
    if past.signals_end > record.begin or beside_first:
        return _Breach(f"{record.signal} begins while another signal is still under way")
    return None


@_rule("1.7", *_SIGNALS)
def _nothing_after_the_end(past: Past, record: Record) -> _Breach | None:
    return _Breach(f"{record.signal} after the end") if past.terminated else None


@_rule("1.8", *_SIGNALS)
def _signals_stop(past: Past, record: Record) -> _Breach | None:
    if past.cancel_end >= record.begin:
        return None
    allowed = past.allowance(record)
    return _Breach(f"{past.late + 1} signal(s) began after a cancel had returned, allowed: {allowed}", allowed)


@_rule("3.6", Signal.ON_NEXT)
def _no_demand_after_cancel(past: Past, record: Record) -> _Breach | None:
    if past.cancel_end >= record.begin or past.last_request <= past.cancel_end:
        return None
    allowed = past.allowance(record)
    return _Breach(f"more elements after a request that came after a cancel than are allowed: {allowed}", allowed)


@_rule("1.9", Signal.ON_NEXT, Signal.ON_ERROR, Signal.ON_COMPLETE, Signal.SETTLED)
def _on_subscribe_first(past: Past, record: Record) -> _Breach | None:
    if past.subscribed:
        return None
    return _Breach(f"{record.signal} {'without' if record.signal == Signal.SETTLED else 'before'} on_subscribe")


@_rule("1.9", Signal.SUBSCRIBE)
def _subscribe_returns(past: Past, record: Record) -> _Breach | None:
    return _Breach(f"subscribe {record.error}") if raised(record) else None


@_rule("2.12", Signal.ON_SUBSCRIBE)
def _on_subscribe_once(past: Past, record: Record) -> _Breach | None:
    return _Breach("a second on_subscribe") if past.subscribed else None


@_rule("2.13", *_SIGNALS)
def _none_is_no_argument(past: Past, record: Record) -> _Breach | None:
    return _Breach(f"{record.signal}(None)") if record.none else None


@_rule("1.1", Signal.ON_NEXT)
def _no_more_than_requested(past: Past, record: Record) -> _Breach | None:
    if past.delivered < past.requested:
        return None
    return _Breach(f"element {past.delivered + 1} delivered, {past.requested} requested so far")


@_rule("1.6", Signal.ON_NEXT)
def _an_end_cancels(past: Past, record: Record) -> _Breach | None:
    if past.last_request > past.terminal_begin:
        return _Breach("an element after a request that came after the end")
    return None


@_rule("3.3", Signal.ON_NEXT)
def _no_unbounded_recursion(past: Past, record: Record) -> _Breach | None:
    if record.depth is None or record.depth <= RECURSION:
        return None
    return _Breach(f"an element inside of {record.depth} calls of its thread, allowed: {RECURSION}")


@_rule("order", Signal.ON_NEXT)
def _in_the_order_of_the_source(past: Past, record: Record) -> _Breach | None:
    if not record.ascending or record.value is None or past.largest is None or record.value >= past.largest:
        return None
    return _Breach(f"element {value_as_text(record.value)} after {value_as_text(past.largest)}")


@_rule("conservation", Signal.ON_NEXT)
def _nothing_twice_or_too_much(past: Past, record: Record) -> _Breach | None:
    if record.ascending and record.value is not None and record.value == past.largest:
        return _Breach(f"element {value_as_text(record.value)} twice")
    if record.elements is not None and past.delivered >= record.elements:
        return _Breach(f"element {past.delivered + 1} of a publisher that has {record.elements}")
    return None


@_rule("conservation", Signal.ON_COMPLETE)
def _nothing_lost(past: Past, record: Record) -> _Breach | None:
    if record.elements is None or past.all_delivered(record.elements) or past.cancels:
        return None
    return _Breach(f"completed after {past.delivered} of {record.elements} elements")


@_rule("3.9", Signal.ON_NEXT)
def _invalid_demand_stops(past: Past, record: Record) -> _Breach | None:
    if past.invalid_end is None or past.invalid_end >= record.begin or past.cancels:
        return None
    return _Breach("elements began after an invalid request, more than may have been under way", 1)


@_rule("2.7", *_CALLS)
def _serial_calls(past: Past, record: Record) -> _Breach | None:
    if record.shared_callers or past.calls_end <= record.begin or past.calls_thread == record.thread:
        return None
    return _Breach(f"{record.signal} begins while another thread's call is under way")


@_rule("2.3", *_CALLS)
def _no_call_from_an_end(past: Past, record: Record) -> _Breach | None:
    if past.terminated and past.terminal_end > record.begin and past.terminal_thread == record.thread:
        return _Breach(f"{record.signal} from inside the end")
    return None


@_rule("3.7", Signal.CANCEL)
def _a_cancel_again_is_nothing(past: Past, record: Record) -> _Breach | None:
    if past.cancel_end < record.begin and (raised(record) or record.end is None):
        return _Breach(f"a cancel after a cancel {record.error or 'has not returned'}")
    return None


@_rule("3.16", *_CALLS)
def _calls_return(past: Past, record: Record) -> _Breach | None:
    if not raised(record) or (record.signal == Signal.CANCEL and past.cancel_end < record.begin):
        return None
    return _Breach(f"{record.signal} {record.error}")


@_rule("2.4", Signal.REQUEST)
def _no_demand_after_the_end(past: Past, record: Record) -> _Breach | None:
    if record.shared_callers or past.terminal_end >= record.begin:
        return None
    return _Breach("a request after the end had returned")


@_rule("3.2", Signal.REQUEST)
def _a_request_inside_returns(past: Past, record: Record) -> _Breach | None:
    if record.end is None and past.inside(record):
        return _Breach("a request from inside a signal has not returned")
    return None


@_rule("2.5", Signal.SETTLED)
def _a_second_subscription_is_cancelled(past: Past, record: Record) -> _Breach | None:
    if past.subscribed < 2 or past.last_cancel > past.last_subscribe:
        return None
    return _Breach("a second subscription was not cancelled")


@_rule("3.9", Signal.SETTLED)
def _invalid_demand_is_answered(past: Past, record: Record) -> _Breach | None:
    if past.owing() and past.invalid_end is not None:
        return _Breach("an invalid request was never answered")
    return None


@_rule("1.4", Signal.SETTLED)
def _a_failure_is_signalled(past: Past, record: Record) -> _Breach | None:
    if past.owing() and past.invalid_end is None and past.request_raised:
        return _Breach("a request raised, and no on_error came")
    return None


def _unmet(past: Past) -> _Breach:
    return _Breach(f"nothing runs any more: {past.delivered} delivered, {past.requested} requested")


@_rule("1.5", Signal.SETTLED)
def _a_success_ends(past: Past, record: Record) -> _Breach | None:
    return _unmet(past) if past.unmet() and past.all_delivered(record.elements) else None


@_rule("3.17", Signal.SETTLED)
def _unbounded_demand_is_met(past: Past, record: Record) -> _Breach | None:
    more = past.requested == MAX_DEMAND and not past.all_delivered(record.elements)
    return _unmet(past) if past.unmet() and more else None


@_rule("1.2", Signal.SETTLED)
def _less_is_followed_by_an_end(past: Past, record: Record) -> _Breach | None:
    unknown = past.requested < MAX_DEMAND and record.elements is None
    return _unmet(past) if past.unmet() and unknown else None


@_rule("3.8", Signal.SETTLED)
def _demand_is_met(past: Past, record: Record) -> _Breach | None:
    more = past.requested < MAX_DEMAND and record.elements is not None and not past.all_delivered(record.elements)
    return _unmet(past) if past.unmet() and more else None


# -- one subscription -----------------------------------------------------------------------------------------


class Finding(NamedTuple):
    """A rule that a record has broken, now or once more."""

    rule: str
    seen: str
    times: int
    """How many records break it by this: the record at hand, and those that had been allowed until now."""
    first: Record
    """The first of them."""


_NOTHING: Final[tuple[Finding, ...]] = ()


class _Tally:
    """How often something happened that may happen a few times."""

    __slots__ = ("count", "first", "over")

    def __init__(self, first: Record) -> None:
        self.count = 0
        self.first = first
        self.over = False


class Reference:
    """Judges the records of one subscription, fed in the order of `in_order`."""

    def __init__(self, late_signals: int = 1) -> None:
        """`late_signals`: how many may follow a cancel that came from outside, where the record does not say."""
        self.past: Past = Past(late_signals)
        self._tallies: dict[_Condition, _Tally] = {}

    def feed(self, record: Record) -> Sequence[Finding]:
        """Judge one more record: what it breaks."""
        past, found = self.past, _NOTHING
        for rule, condition in CONDITIONS.get(record.signal, ()):
            breach = condition(past, record)
            if breach is not None:
                found = (*found, *self._counted(rule, condition, breach, record))
        past.take(record)
        return found

    def _counted(self, rule: str, condition: _Condition, breach: _Breach, record: Record) -> list[Finding]:
        if breach.allowed is None:
            return [Finding(rule, breach.seen, 1, record)]
        tally = self._tallies.setdefault(condition, _Tally(record))
        tally.count += 1
        if tally.over:
            return [Finding(rule, breach.seen, 1, record)]
        if tally.count <= breach.allowed:
            return []
        tally.over = True  # one too many, and all of them break the rule
        return [Finding(rule, breach.seen, tally.count, tally.first)]
