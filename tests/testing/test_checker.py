"""The rule checker: a breach of each rule is found, what only looks like one is not, by the page in docs/."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from breaches import BREACHES, INNOCENT, TWO_RULES, element, request, trace
from hypothesis import given
from hypothesis import strategies as st
from listing import lists_each
from strategies import record, traces

from reactive_runtime.testing import RULES, Record, RuleChecker, check
from reactive_runtime.testing._records import COLUMNS, CUT
from reactive_runtime.testing._rule_checks import TABLE


@pytest.mark.parametrize("breach", BREACHES)
def test_a_breach_is_found_by_its_rule(breach: str) -> None:
    rule, count, records = BREACHES[breach]
    assert [(found.rule, found.count) for found in check(records)] == [(rule, count)]


@pytest.mark.parametrize("breach", TWO_RULES)
def test_a_breach_of_two_rules_is_found_by_both(breach: str) -> None:
    rules, records = TWO_RULES[breach]
    assert {found.rule for found in check(records)} == rules


@pytest.mark.parametrize("innocent", INNOCENT)
def test_what_is_no_breach_is_not_accused(innocent: str) -> None:
    assert check(INNOCENT[innocent]) == []


def test_there_is_a_breach_for_each_rule() -> None:
    broken = {rule for rule, _, _ in BREACHES.values()}.union(*(rules for rules, _ in TWO_RULES.values()))
    lists_each("BREACHES of tests/breaches.py", broken, RULES)


ROWS = re.compile(r"(?<=\n\| --- \| --- \| --- \| --- \|\n)(?:\|.*\n)+")
"""The table of docs/judging.md."""


@pytest.mark.parametrize("page", [Path("docs/judging.md"), Path("CHANGELOG.md")], ids=str)
def test_what_the_docs_say_of_the_rules_is_what_the_table_says(page: Path) -> None:
    text = page.read_text()
    rows = "".join(f"| {item.id} | {item.broken} | {', '.join(item.needs)} | {item.known} |\n" for item in TABLE)
    said = re.sub(r"\b\d+ checks\b", f"{len(TABLE)} checks", text)
    said = ROWS.sub(lambda _: rows, said) if page.name == "judging.md" else said
    assert rows in said or f"{len(TABLE)} checks" in said
    if os.environ.get("WRITE_DOCS"):
        page.write_text(said)
    assert page.read_text() == said, "WRITE_DOCS=1 pytest tests/testing/test_checker.py writes it"


def unfinished(records: list[Record]) -> list[Record]:
    """The same trace where nothing says that the subscription is over."""
    return [
        item._replace(end=CUT - item.begin) if item.end is None else item
        for item in records
        if item.signal != "settled"
    ]


def test_the_table_says_which_breaches_are_known_at_once_and_which_at_the_end() -> None:
    known: dict[str, set[str]] = {rule: set() for rule in RULES}
    for rules, records in (*(({rule}, of) for rule, _, of in BREACHES.values()), *TWO_RULES.values()):
        found = {item.rule for item in check(unfinished(records))}
        for rule in rules:
            known[rule].add("at once" if rule in found else "at the end")
    said = {item.id: {"at once", "at the end"} if item.known == "both" else {item.known} for item in TABLE}
    wrong = {rule: sorted(found) for rule, found in known.items() if found != said[rule]}
    assert not wrong, f"the breaches of tests/breaches.py are known {wrong}: not as `known` of rule_checks.py says"


@given(traces(most=2), st.integers(0, 60))
def test_what_is_found_up_to_a_ticket_is_found_of_the_whole(records: list[Record], ticket: int) -> None:
    records = [item for item in records if item.signal != "settled"]
    whole = {(item.rule, item.subscription): item for item in check(records)}
    for item in check(records, upto=ticket):
        later = whole[item.rule, item.subscription]
        assert item.count <= later.count
        assert later.first <= item.first


def test_the_table_names_the_columns_that_a_rule_needs_and_no_others() -> None:
    """Without them, or with all that they say taken away, no breach of the rule is found any more."""
    assert all(set(rule.needs) <= set(COLUMNS) for rule in TABLE)
    nothing = dict(record("settled", 1)._asdict(), end=2**62, thread=0, shared_callers=True)
    for rule, _, records in BREACHES.values():
        of = next(item for item in TABLE if item.id == rule)
        kept = {"run", "scenario", "subscription", "signal", "begin", *of.needs}
        needed = [
            item._replace(**{name: nothing[name] for name in Record._fields if name not in kept}) for item in records
        ]
        assert rule in {item.rule for item in check(needed)}, (rule, "needs more than it says")


def test_late_signals_can_be_allowed() -> None:
    records = BREACHES["two elements after a cancel from outside"][2]
    assert check(records, late_signals=2) == []


def test_a_violation_names_the_rule_and_shows_the_signals_around_it() -> None:
    text = str(check(BREACHES["two elements at once"][2])[0])
    assert text.splitlines()[0] == f"rule 1.3: {RULES['1.3']}"
    assert "seen: on_next begins while another signal is still under way" in text
    assert any(line.startswith("  >>          6 ") and "on_next(1)" in line for line in text.splitlines())
    assert "request(2)" in text


def test_what_follows_a_breach_is_shown_too() -> None:
    records = trace(request(1, 3, 4), *(element(n, 5 + 2 * n, 6 + 2 * n) for n in range(20)))
    (found,) = check(records)
    assert found.first == 7
    assert any(item.begin > found.first for item in found.around)
    assert len(found.around) <= 12


def test_the_first_of_the_late_signals_is_shown_however_far_back_it_lies() -> None:
    late = trace(
        request(99, 3, 4),
        ("cancel", 5, 6, {"thread": 2}),
        element(0, 7, 8),
        *(request(1, 9 + 2 * n, 10 + 2 * n) for n in range(20)),
        element(1, 49, 50),
    )
    (found,) = check(late)
    assert (found.rule, found.count, found.first) == ("1.8", 2, 7)
    (marked,) = [line for line in str(found).splitlines() if line.startswith("  >>")]
    assert marked.split() == [">>", "7", "on_next(0)"]


def test_demand_is_summed_exactly_up_to_the_cap() -> None:
    nearly = trace(request(2**62, 3, 4), request(2**62 - 2, 5, 6), ("settled", 7, 8), elements=9)
    capped = trace(request(2**62, 3, 4), request(2**62 - 1, 5, 6), ("settled", 7, 8), elements=9)
    assert [[item.rule for item in check(records)] for records in (nearly, capped)] == [["3.8"], ["3.17"]]


def test_a_record_of_no_known_signal_is_not_judged() -> None:
    (settled,) = trace(("settled", 3, 4))[1:]
    assert [item.rule for item in check([settled])] == ["1.9"]
    assert check([settled._replace(signal="other", error="raised OSError()")]) == []


def test_subscriptions_are_judged_by_themselves() -> None:
    checker = RuleChecker()
    for number in range(3):
        for item in trace(request(1, 3, 4), element(0, 5, 6), subscription=number):
            checker.feed(item)
    assert checker.violations == []
