"""The rule checker: a breach of each rule is found, what only looks like one is not, by the page in docs/."""

from __future__ import annotations

from pathlib import Path

import pytest
from breaches import BREACHES, INNOCENT, TWO_RULES, element, request, trace
from hypothesis import given, settings
from strategies import traces

from reactive_runtime import MAX_DEMAND
from reactive_runtime.testing import RULES, Record, RuleChecker, Signal, check


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


def test_there_is_a_breach_for_each_rule_and_a_row_for_it_in_the_docs() -> None:
    assert {rule for rule, _, _ in BREACHES.values()}.union(*(rules for rules, _ in TWO_RULES.values())) == set(RULES)
    page = Path("docs/judging.md").read_text()
    assert all(f"\n| {rule} |" in page for rule in RULES)


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
    assert any(it.begin > found.first for it in found.around)
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
    assert [[it.rule for it in check(records)] for records in (nearly, capped)] == [["3.8"], ["3.17"]]


def test_a_record_of_no_known_signal_is_not_judged() -> None:
    (settled,) = trace(("settled", 3, 4))[1:]
    assert [it.rule for it in check([settled])] == ["1.9"]
    assert check([settled._replace(signal="other", error="raised OSError()")]) == []


def test_subscriptions_are_judged_by_themselves() -> None:
    checker = RuleChecker()
    for number in range(3):
        for it in trace(request(1, 3, 4), element(0, 5, 6), subscription=number):
            checker.feed(it)
    assert checker.violations == []


# -- against the page itself, written out without any thought of speed ------------------------------------------

SIGNALS = {Signal.ON_SUBSCRIBE, Signal.ON_NEXT, Signal.ON_ERROR, Signal.ON_COMPLETE}
CALLS = {Signal.REQUEST, Signal.CANCEL}
ENDS = {Signal.ON_ERROR, Signal.ON_COMPLETE}


def end_of(it: Record) -> float:
    return float("inf") if it.end is None else it.end


def raised(it: Record) -> bool:
    return it.error is not None and (it.signal != Signal.ON_ERROR or it.error.startswith("raised "))


def by_the_page(records: list[Record], late_signals: int = 1) -> dict[tuple[int, str], tuple[int, int]]:
    """(subscription, rule) to (count, first), for each rule broken."""
    broken: dict[tuple[int, str], list[int]] = {}
    for number in {it.subscription for it in records}:
        mine = sorted((it for it in records if it.subscription == number), key=lambda it: it.begin)
        late_begins, after_begins, asked_begins = [], [], []
        for place, it in enumerate(mine):
            earlier, b = mine[:place], it.begin
            rules = set()
            signals = [e for e in earlier if e.signal in SIGNALS]
            elements = [e for e in earlier if e.signal == Signal.ON_NEXT]
            cancels = [e for e in earlier if e.signal == Signal.CANCEL]
            requests = [e for e in earlier if e.signal == Signal.REQUEST]
            ends = [e for e in earlier if e.signal in ENDS]
            firsts = [e for e in signals if e.signal == Signal.ON_SUBSCRIBE]
            subscribed = bool(firsts)
            asked = min(sum(e.n for e in requests if e.n is not None and e.n >= 1), MAX_DEMAND)
            invalid = [
                e
                for e in requests
                if (e.n is None or e.n < 1)
                and not any(x.begin < e.begin and (x.signal == Signal.CANCEL or x.signal in ENDS) for x in earlier)
            ]
            if it.signal in SIGNALS:
                others = [e for e in signals if e.signal != Signal.ON_SUBSCRIBE]
                last = max(firsts, key=end_of, default=None)
                if any(end_of(e) > b for e in others) or (last and end_of(last) > b and last.thread != it.thread):
                    rules.add("1.3")
                if ends:
                    rules.add("1.7")
                ended = [e for e in cancels if end_of(e) < b]
                if ended:
                    late_begins.append(b)
                    cancel = min(ended, key=end_of)
                    before = [e for e in signals if e.begin < cancel.begin]
                    inside = bool(before) and before[-1].thread == cancel.thread
                    inside = inside and any(end_of(e) > cancel.begin for e in before)
                    promised = late_signals if it.late_signals is None else it.late_signals
                    allowed = 0 if inside else promised
                    if len(late_begins) > allowed:
                        broken.setdefault((number, "1.8"), late_begins[:-1]).append(b)
                    first_end = min(end_of(e) for e in ended)
                    if it.signal == Signal.ON_NEXT and any(e.begin > first_end for e in requests):
                        asked_begins.append(b)
                        if len(asked_begins) > allowed:
                            broken.setdefault((number, "3.6"), asked_begins[:-1]).append(b)
                if it.signal == Signal.ON_SUBSCRIBE and subscribed:
                    rules.add("2.12")
                if it.signal != Signal.ON_SUBSCRIBE and not subscribed:
                    rules.add("1.9")
            if it.signal == Signal.ON_NEXT:
                if len(elements) + 1 > asked:
                    rules.add("1.1")
                if ends and any(e.begin > ends[0].begin for e in requests):
                    rules.add("1.6")
                if it.depth is not None and it.depth > 16:
                    rules.add("3.3")
                values = [e.value for e in elements if e.value is not None]
                if it.ascending and it.value is not None and values and it.value == max(values):
                    rules.add("conservation")
                if it.ascending and it.value is not None and values and it.value < max(values):
                    rules.add("order")
                if it.elements is not None and len(elements) + 1 > it.elements:
                    rules.add("conservation")
                if not cancels and invalid and end_of(invalid[0]) < b:
                    after_begins.append(b)
                    if len(after_begins) > 1:
                        new = after_begins if len(after_begins) == 2 else [b]
                        broken.setdefault((number, "3.9"), []).extend(new)
            if (
                it.signal == Signal.ON_COMPLETE
                and it.elements is not None
                and len(elements) < it.elements
                and not cancels
            ):
                rules.add("conservation")
            if it.signal in CALLS:
                calls = [e for e in earlier if e.signal in CALLS]
                longest = max(calls, key=end_of, default=None)
                if not it.shared_callers and longest and end_of(longest) > b and longest.thread != it.thread:
                    rules.add("2.7")
                if ends and end_of(ends[0]) > b and ends[0].thread == it.thread:
                    rules.add("2.3")
                again = it.signal == Signal.CANCEL and any(end_of(e) < b for e in cancels)
                if again and (raised(it) or it.end is None):
                    rules.add("3.7")
                elif raised(it):
                    rules.add("3.16")
            if it.signal == Signal.REQUEST:
                if not it.shared_callers and ends and end_of(ends[0]) < b:
                    rules.add("2.4")
                inside = bool(signals) and signals[-1].thread == it.thread and any(end_of(e) > b for e in signals)
                if it.end is None and inside:
                    rules.add("3.2")
            if it.signal == Signal.SUBSCRIBE and it.error is not None:
                rules.add("1.9")
            if it.signal == Signal.SETTLED:
                if not subscribed:
                    rules.add("1.9")
                if len(firsts) > 1 and not any(e.begin > firsts[-1].begin for e in cancels):
                    rules.add("2.5")
                if not ends and not cancels and not any(raised(e) for e in signals):
                    if invalid:
                        rules.add("3.9")
                    elif any(raised(e) for e in requests):
                        rules.add("1.4")
                    elif len(elements) < asked and it.elements is not None and len(elements) >= it.elements:
                        rules.add("1.5")
                    elif len(elements) < asked and asked == MAX_DEMAND:
                        rules.add("3.17")
                    elif len(elements) < asked:
                        rules.add("1.2" if it.elements is None else "3.8")
            for rule in rules:
                broken.setdefault((number, rule), []).append(b)
    return {key: (len(begins), min(begins)) for key, begins in broken.items()}


@settings(max_examples=400, deadline=None)
@given(traces())
def test_the_checker_judges_as_the_page_does(records: list[Record]) -> None:
    found = {(it.subscription, it.rule): (it.count, it.first) for it in check(records)}
    assert found == by_the_page(records)
