"""Every single change of a transition of the machines is found, under its rule; the others change nothing to be seen.

`mutants.json` says which check finds which mutant, and which rule that names. WRITE_DOCS=1 makes it anew, by the whole
kit, and the table in docs/tck.md with it. By day each mutant is judged by its check; at night by the whole kit, five
times, and what is said to change nothing is accused of nothing.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reactive_runtime.tck import Outcome, Verification
from tck.broken import MUTANTS as BY_HAND
from tck.machines import MUTANTS, MachineMutant, sound_machines
from tck.page import table_is

FOUND: dict[str, list[str]] = json.loads((Path(__file__).parent / "mutants.json").read_text())
"""By the name of a mutant, the check that finds it, and the rule."""

AT_ONCE = 6
"""Mutants that are judged side by side; most of the time the kit waits."""

SAME: dict[str, str] = {
    r".*: \w+ doubled( later)?": (
        "done twice is done once: a field is set again, a second cancel does nothing (3.7), and what raises has raised"
    ),
    r".*: \w+ elsewhere( later)?": (
        "signals and calls may come on any thread, if they come one after the other (1.3, 2.7)"
    ),
    r".*: one_more_is_requested added": (
        "a subscriber may request whenever it has a subscription (2.1), and a request after the end does nothing (3.6)"
    ),
    r".*: a_cancel added": (
        "a subscriber may cancel whenever it likes (2.6), and a cancel after the end does nothing (3.7)"
    ),
    r"\w+: over, .*": (
        "a publisher that keeps the rules signals nothing after the end (1.7), and calls do nothing (3.6)"
    ),
    r".*: (end|stop|leave) (dropped|late)": (
        "the next transition finds the same: what has ended is neither signalled to, nor does it signal, "
        "since its peer has forgotten it"
    ),
    r"publisher: fresh, invalid request: as in idle": ("inside of on_subscribe it may answer, on the same thread"),
    r"publisher: busy, (invalid )?request: as in idle": ("a loop that runs is not begun again"),
    r"(white|black)box: subscribed, (on_next: replenish|asked to request: request) .*": (
        "to request no more, or later, is allowed (2.1)"
    ),
    r"blackbox: .*: (take|register|note_completion|note_error) .*": (
        "from outside, what a subscriber does with a signal can't be seen"
    ),
    r"blackbox: subscribed, (on_next|on_complete|on_error): as in over": ("from outside, it can't be seen either"),
}
"""Mutants that break no rule that can be seen from outside, by a pattern of their names; and why."""

NOT_REACHED: dict[str, str] = {
    r"processor: new, on_subscribe\(None\): .*": (
        "the checks of a subscriber give a processor its own subscriber first"
    ),
    r"processor: downstream, subscribe: .*": ("a second subscriber comes after the upstream, in each check"),
    r"processor: (ended|upstream), .*": ("a stream that ends before anything was requested of it is optional (1.5)"),
    r"blackbox: subscribed, on_subscribe\(None\): .*": ("a second subscription of None is tried with a probe only"),
}
"""Mutants in states that no check comes to; and why."""


BY_CHANCE = re.compile("stochastic|a_large_request|at_once|be_lost")
"""Checks that find some races by the number of tries; those that leave nothing to chance are asked first."""


def quick(verification: Verification) -> Verification:
    """Broken implementations make the kit wait, each time; so it waits shortly."""
    verification.default_timeout, verification.default_no_signals_timeout = 0.5, 0.03
    verification.call_timeout, verification.publisher_reference_gc_timeout = 1.0, 0.2
    return verification


def first_failure(mutant: MachineMutant, names: list[str] | None = None) -> Outcome | None:
    """What the kit finds first, of these checks."""
    verification = quick(mutant.make())
    unjudged: Outcome | None = None
    try:
        for check in sorted(verification.checks(), key=lambda item: bool(BY_CHANCE.search(item.name))):
            if names is None or check.name in names:
                outcome = verification.outcome(check)
                if outcome.status == "failed" and outcome.rule:
                    return outcome
                unjudged = unjudged or (outcome if outcome.status == "failed" else None)
        return unjudged
    finally:
        if (given_up := getattr(verification, "given_up", None)) is not None:
            given_up.set()


def why_the_same(name: str) -> str | None:
    return next((why for pattern, why in (SAME | NOT_REACHED).items() if re.fullmatch(pattern, name)), None)


def judged(mutants: list[MachineMutant], **how: Any) -> Iterator[tuple[MachineMutant, Outcome | None]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from zip(mutants, pool.map(lambda item: first_failure(item, **how), mutants), strict=True)


@pytest.mark.parametrize("kind", sound_machines())
def test_the_machines_are_sound(kind: str) -> None:
    verification = sound_machines()[kind]
    assert [item for item in verification.outcomes() if item.status == "failed"] == []


def test_each_mutant_is_found_or_changes_nothing() -> None:
    names = {mutant.name for mutant in MUTANTS}
    assert len(names) == len(MUTANTS)
    assert set(FOUND) <= names
    assert [name for name in sorted(names - set(FOUND)) if why_the_same(name) is None] == []


def test_there_are_at_least_250_that_are_found() -> None:
    assert len(FOUND) + len({mutant.name for mutant in BY_HAND}) >= 250


@pytest.mark.timeout(300)
def test_each_mutant_is_found_by_its_check_under_its_rule() -> None:
    wrong = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = [mutant for mutant in MUTANTS if mutant.name in FOUND]
        for mutant, outcome in zip(found, pool.map(lambda m: first_failure(m, FOUND[m.name][:1]), found), strict=True):
            seen = None if outcome is None else [outcome.check.name, outcome.rule]
            if seen != FOUND[mutant.name]:
                wrong.append((mutant.name, FOUND[mutant.name], seen))
    assert wrong == []


@pytest.mark.nightly
@pytest.mark.timeout(3_600)
def test_the_whole_kit_says_the_same_five_times() -> None:
    for _ in range(5):
        wrong = [
            (mutant.name, FOUND.get(mutant.name), outcome)
            for mutant, outcome in judged(MUTANTS)
            if (None if outcome is None else [outcome.check.name, outcome.rule]) != FOUND.get(mutant.name)
        ]
        assert wrong == []


def test_the_table_of_the_docs_is_true() -> None:
    kinds = {mutant.name: mutant.kind for mutant in MUTANTS}
    rows = []
    for kind in sound_machines():
        rules = Counter(rule for name, (_, rule) in FOUND.items() if kinds[name] == kind)
        left = [name for name, of in kinds.items() if of == kind and name not in FOUND]
        same = sum(any(re.fullmatch(pattern, name) for pattern in SAME) for name in left)
        order = sorted(filter(None, rules), key=lambda rule: [int(part) for part in rule.split(".")])
        counts = f"{rules.total()} | {same} | {len(left) - same}"
        rows.append(f"| {kind} | {counts} | {', '.join(f'{rule}: {rules[rule]}' for rule in order)} |")
    table_is("machines", rows)


if os.environ.get("WRITE_MUTANTS"):

    @pytest.mark.timeout(3_600)
    def test_write() -> None:
        found = {m.name: [o.check.name, o.rule] for m, o in judged(MUTANTS) if o is not None}
        (Path(__file__).parent / "mutants.json").write_text(json.dumps(found, indent=1) + "\n")
