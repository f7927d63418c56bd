"""Each rule in the states that matter: which checks come where, seen by watching them, and why a blank is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from reactive_runtime.tck import Verification
from reactive_runtime.tck._publisher.probes import ManualSubscriber
from reactive_runtime.tck._running import environment as _environment
from reactive_runtime.tck._verification import check
from tck.broken import Blackbox, Publishers, Whitebox
from tck.page import table_is
from tck.states import (
    AFTER,
    DEMANDS,
    INSIDE,
    PUBLISHER_STATES,
    SUBSCRIBER_STATES,
    Event,
    PublisherWatch,
    SubscriberWatch,
)

STEPPED = (
    "extra_spec103_two_requests_at_once_must_not_signal_at_once",
    "extra_spec308_no_demand_may_be_lost_between_two_requests",
    "extra_spec308_no_demand_may_be_lost_where_a_request_leaves",
)
"""They hold a thread at each of its steps, also inside of what would watch them."""

REASONS = {
    "a": "after a cancel or an end nothing is due; 1.6, 1.7, 3.6 and 3.7 judge what is called then",
    "b": "there is no subscription yet: `subscribe` comes before all of it",
    "c": "a signal comes inside no other one (1.3)",
    "d": "no element comes without demand, and a request leaves some (1.1)",
    "e": "a stream that ends with so much demand is judged under 1.2, 1.5 or 1.7",
    "f": "the rule does not depend on it; a state of each kind is judged",
    "g": "a call in that place is judged under another rule of the same column: 3.8 and 3.17, or 1.8 and 3.12",
    "h": "three subscribers in turn are judged under 1.1, 1.4, 1.7, 3.8 and 3.9",
    "i": "a subscriber hears `on_subscribe` first, or it is a fault of the publisher (1.9)",
    "j": "the rule speaks of another state",
    "k": "a cancelled subscription has no demand",
    "l": "the same signal is judged there under 2.13",
}


class Row(NamedTuple):
    """What a rule is judged by, and why states are blank, by the letter of the reason."""

    rule: str
    kinds: tuple[str, ...]
    blank: Mapping[str, tuple[str, ...]]
    everywhere: bool = False
    """In every check, whatever it is about; else in those of the rule."""

    where: str = ""
    """Only in this state: the rule speaks of it."""


REQUEST, INVALID, CANCEL, SUBSCRIBE = ("request",), ("invalid request",), ("cancel",), ("subscribe",)
ENDS = ("on_complete", "on_error")
ORDERS = ("2nd", "3rd")
CALLED = (*INSIDE, "beside a signal")

PLACES = (*INSIDE, "beside a signal", "before elements", "after elements")

OF_PUBLISHERS = [
    Row("1.1", REQUEST, {"d": ("demand 0",)}, everywhere=True),
    Row(
        "1.2",
        ("on_complete",),
        {
            "c": CALLED,
            "j": ("before elements", "demand 0", "1", "some", "the rest"),
            "e": ("unbounded",),
            "a": AFTER,
            "h": ORDERS,
        },
    ),
    Row("1.3", ("on_next",), {"c": CALLED, "d": ("demand 0",), "a": AFTER}, everywhere=True),
    Row("1.4", ("on_error",), {"c": CALLED, "f": ("1", "the rest", "more"), "a": AFTER}),
    Row("1.5", ("on_complete",), {"c": CALLED, "e": DEMANDS[1:], "a": AFTER, "h": ORDERS}),
    Row("1.6", ENDS, {"c": CALLED, "f": ("1", "the rest", "unbounded"), "a": AFTER}),
    Row("1.7", (*REQUEST, *INVALID, *CANCEL), {}, everywhere=True),
    Row(
        "1.8",
        CANCEL,
        {
            "g": ("in on_subscribe", "in the first on_next", "beside a signal", "before elements", "after elements"),
            "f": DEMANDS[:4],
            "a": AFTER,
            "h": ORDERS,
        },
    ),
    Row("1.9", SUBSCRIBE, {"b": (*CALLED, *DEMANDS, *AFTER)}, everywhere=True),
    Row("1.10", SUBSCRIBE, {"b": (*CALLED, *DEMANDS, *AFTER)}),
    Row("1.11", SUBSCRIBE, {"b": (*CALLED, *DEMANDS, *AFTER), "j": ("after elements",)}),
    Row("3.2", REQUEST, {"d": ("demand 0",)}, everywhere=True),
    Row("3.3", REQUEST, {"d": ("demand 0",)}, everywhere=True),
    Row("3.4", REQUEST, {"d": ("demand 0",)}, everywhere=True),
    Row("3.5", CANCEL, {"f": ("1",)}, everywhere=True),
    Row("3.6", (*REQUEST, *INVALID), {"k": DEMANDS}, everywhere=True, where="after cancel"),
    Row("3.7", CANCEL, {"f": ("after elements", *AFTER[1:]), "k": DEMANDS}, everywhere=True, where="after cancel"),
    Row(
        "3.8",
        REQUEST,
        {
            "d": ("demand 0",),
            "g": ("beside a signal", "before elements", "the rest", "more", "unbounded"),
            "a": AFTER,
        },
    ),
    Row("3.9", INVALID, {"f": ("1", "the rest", "more"), "a": AFTER}),
    Row("3.12", CANCEL, {"f": ("1", "some", "more"), "a": AFTER[1:]}),
    Row("3.13", CANCEL, {"f": ("1", "the rest", "more", "unbounded"), "a": AFTER}),
    Row("3.15", CANCEL, {"f": ("1",)}, everywhere=True),
    Row("3.16", (*REQUEST, *INVALID), {}, everywhere=True),
    Row(
        "3.17",
        REQUEST,
        {
            "g": ("in on_subscribe", "beside a signal"),
            "d": ("demand 0",),
            "f": ("the rest",),
            "a": ("after cancel", "after on_error"),
            "h": ORDERS,
        },
    ),
]

FIRST, NOT_YET, *WHEN, ALL_CAME, INSIDE_REQUEST, ELSEWHERE, CANCELLED = SUBSCRIBER_STATES
MOVED = (INSIDE_REQUEST, ELSEWHERE, CANCELLED)
UNASKED = (NOT_YET, ALL_CAME)

OF_SUBSCRIBERS = [
    Row("2.1", ("on_next",), {"i": (FIRST,), "d": UNASKED, "l": MOVED}),
    Row("2.3", ENDS, {"i": (FIRST,), "f": (WHEN[1],)}, everywhere=True),
    Row("2.4", ("on_complete",), {"i": (FIRST,), "j": (NOT_YET, *WHEN[:2]), "l": MOVED}),
    Row("2.5", ("a second on_subscribe",), {"b": (FIRST,), "f": (WHEN[0], WHEN[2], ALL_CAME, *MOVED)}),
    Row("2.7", ("on_next",), {"i": (FIRST,), "d": UNASKED, "f": MOVED}),
    Row(
        "2.8",
        ("on_next", *ENDS),
        {"i": (FIRST,), "d": (NOT_YET, ALL_CAME), "f": (WHEN[1], *MOVED[:2])},
        where=CANCELLED,
    ),
    Row("2.9", ("on_complete",), {"i": (FIRST,), "l": (*WHEN[1:], ALL_CAME, *MOVED)}),
    Row("2.10", ("on_error",), {"i": (FIRST,), "l": (*WHEN[1:], ALL_CAME, *MOVED)}),
    Row("2.13", ("on_subscribe", "on_next", *ENDS), {}, everywhere=True),
    Row("2.13", ("None",), {"f": (*WHEN[:2], *MOVED)}),
    Row("3.8", ("on_next",), {"i": (FIRST,), "d": UNASKED, "f": (WHEN[2], *MOVED)}),
]


def by_kit(checks: set[str]) -> str:
    """Of subscribers: how many with a probe, and how many without."""
    without = sum("blackbox" in name for name in checks)
    return f"{len(checks) - without}, {without}"


def seen_in(
    rows: list[Row],
    states: tuple[str, ...],
    seen: set[Event],
    rules: Mapping[str, str],
    count: Callable[[set[str]], str] = lambda checks: str(len(checks)),
) -> Iterator[str]:
    """The rows of a table: in each cell how many checks, or why there is none."""
    for row in rows:
        cells = []
        for state in states:
            checks = {
                event.check
                for event in seen
                if event.what in row.kinds
                and {state, row.where or state} <= event.states
                and (row.everywhere or rules[event.check] == row.rule)
            }
            reasons = [letter for letter, blank in row.blank.items() if state in blank]
            assert len(reasons) == (0 if checks else 1), f"{row.rule}, {state}: {len(checks)} checks, reasons {reasons}"
            cells.append(count(checks) if checks else reasons[0])
        yield f"| {row.rule} | {', '.join(row.kinds)} | {' | '.join(cells)} |"


@pytest.fixture
def patient() -> dict[str, float]:
    """What has to come has its time; what must not come is no matter here."""
    return {"default_timeout": 5.0, "default_no_signals_timeout": 0.001}


def test_each_rule_of_publishers_in_the_states_that_matter(
    monkeypatch: pytest.MonkeyPatch, patient: dict[str, float]
) -> None:
    verification = Publishers().configure(**patient)
    seen = PublisherWatch(monkeypatch).judge(verification, without=STEPPED)
    table_is("states of publishers", seen_in(OF_PUBLISHERS, PUBLISHER_STATES, seen, rules_of(verification)))


def test_each_rule_of_subscribers_in_the_states_that_matter(
    monkeypatch: pytest.MonkeyPatch, patient: dict[str, float]
) -> None:
    both = Whitebox().configure(**patient), Blackbox().configure(**patient)
    watch = SubscriberWatch(monkeypatch)
    for verification in both:
        seen = watch.judge(verification)
    table_is("states of subscribers", seen_in(OF_SUBSCRIBERS, SUBSCRIBER_STATES, seen, rules_of(*both), by_kit))


def test_a_call_is_of_the_check_that_its_subscriber_is_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before: ManualSubscriber[int] = ManualSubscriber(_environment.TestEnvironment("1.1", Verification().settings()))
    left: list[ManualSubscriber[int]] = []

    class Two(Verification):
        @check("1.1")
        def required_spec101_one(self, env: Any) -> None:
            left.append(ManualSubscriber(env))

        @check("1.1")
        def required_spec101_two(self, env: Any) -> None:
            left[0]._cancelling()
            before._requesting(1)

    seen = PublisherWatch(monkeypatch).judge(Two())
    assert {(event.what, event.check) for event in seen} == {("cancel", "required_spec101_one")}


def test_the_page_gives_each_reason() -> None:
    used = {letter for row in (*OF_PUBLISHERS, *OF_SUBSCRIBERS) for letter in row.blank}
    assert used == set(REASONS)
    table_is("blank states", (f"| {letter} | {why} |" for letter, why in REASONS.items()))


def test_each_rule_that_a_check_is_about_has_a_row() -> None:
    rows = {row.rule for row in (*OF_PUBLISHERS, *OF_SUBSCRIBERS)}
    judged = {
        check.rule for kit in (Publishers, Whitebox, Blackbox) for check in kit.checks() if check.kind != "untested"
    }
    assert judged <= rows


def rules_of(*verifications: Verification) -> dict[str, str]:
    return {check.name: check.rule for verification in verifications for check in verification.checks()}
