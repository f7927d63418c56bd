"""Every single change of a transition of the machines is found, under its rule; the others change nothing to be seen.

`mutants.json` says which check finds which mutant, and which rule that names. WRITE_MUTANTS=1 makes it anew, by the
whole kit; WRITE_DOCS=1 then writes the table in docs/tck-evidence.md. By day each mutant is judged by its check; at
night by the whole kit, five times, and what is said to change nothing is accused of nothing.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reactive_runtime.tck import Outcome, Verification
from tck import machines
from tck.broken import MUTANTS as BY_HAND
from tck.machines import KINDS, MUTANTS, Machine, MachineMutant, sound_machines
from tck.page import table_is

FOUND: dict[str, list[str]] = json.loads((Path(__file__).parent / "mutants.json").read_text())
"""By the name of a mutant, the check that finds it, and the rule."""

AT_ONCE = 6
"""Mutants that are judged side by side; most of the time the kit waits."""

SAME: dict[str, str] = {
    # done twice
    r".*: (end|stop|leave|forget|blame|admit|remember|run) doubled( later)?": (
        "a field that is set again is as it was, and what begins a loop finds that it has begun"
    ),
    r"((white|black)box: new|processor: downstream), on_subscribe: keep doubled": (
        "a field that is set again is as it was"
    ),
    r".*: (cancel|cancel_it|cancel_upstream) doubled": "a second cancel does nothing (3.7)",
    r".*: refuse doubled": "what raises has raised",
    r"processor: ended, subscribe: tell doubled": "it tells while it is joined, and then it is over",
    r"whitebox: new, on_subscribe: register doubled": "a probe that has a puppet takes another",
    # on another thread
    r"(white|black)box: .* elsewhere": (
        "what a subscriber does may come on any thread, if it comes one after the other (2.7)"
    ),
    r"publisher: busy, (a failure|an answer|the end) is due: \w+ elsewhere": "it comes after all others (1.3)",
    r"processor: (joined, on_(error|complete)|ended, subscribe): (pass_the_(error|end)|tell) elsewhere": (
        "it comes after all others (1.3)"
    ),
    r"processor: \w+, (on_)?subscribe: (join|turn_away) elsewhere": "a subscription may come on any thread",
    r"processor: .*: (cancel_it|cancel_upstream|request_upstream) elsewhere": (
        "calls may come on any thread, if they come one after the other (2.7)"
    ),
    # requests and cancels of a subscriber
    r"(white|black)box: subscribed, asked to request: request (doubled( later)?|dropped later)": (
        "to request more, or no more, is allowed (2.1)"
    ),
    r"(white|black)box: subscribed, on_next: replenish (doubled|dropped)( later)?": (
        "to request more, or no more, is allowed (2.1)"
    ),
    r"whitebox: subscribed, on_next: replenish late": "with a probe it replenishes nothing",
    r"((white|black)box: (new|subscribed)|processor: (downstream|upstream|joined)), on_subscribe: "
    r"one_more_is_requested added": "a subscriber may request whenever it has a subscription (2.1)",
    r"(white|black)box: subscribed, (on_next|asked to request): one_more_is_requested added": (
        "a subscriber may request whenever it has a subscription (2.1)"
    ),
    r"(blackbox: (new, on_subscribe|subscribed, (on_next|asked to request))|processor: upstream, on_subscribe): "
    r"a_cancel added": "a subscriber may cancel whenever it likes (2.6)",
    r"whitebox: (subscribed, asked to cancel|over, (on_next|asked to request)): "
    r"(one_more_is_requested|a_cancel) added": (
        "it has cancelled: another cancel, and a request, do nothing (3.6, 3.7)"
    ),
    r"processor: (joined, (invalid request|cancel)|over, (subscribe|on_next|(invalid )?request|cancel)|"
    r"ended, subscribe): (one_more_is_requested|a_cancel) added": (
        "its upstream has ended, or was cancelled: another cancel, and a request, do nothing (3.6, 3.7)"
    ),
    # after the end
    r"publisher: over, (cancel|(invalid )?request): as in \w+": (
        "after its end it signals nothing, whatever it notes of a call (1.7)"
    ),
    r"whitebox: over, (on_next|on_complete|on_error|asked to request): as in subscribed": (
        "it has cancelled: what it takes is its own matter (2.8), and a request does nothing (3.6)"
    ),
    r"processor: over, (request|cancel): as in joined": "its upstream has ended, or was cancelled (3.6, 3.7)",
    r"processor: over, on_(error|complete): as in upstream": "what it remembers is for a subscriber that does not come",
    # late, or not at all
    r"publisher: (idle|busy), cancel: stop late": "what follows, a request or the next turn of the loop, stops it",
    r"publisher: busy, nothing is due: leave late": "what follows, a request, has it leave",
    r"(white|black)box: subscribed, (on_complete|on_error|asked to cancel): end (dropped|late)": (
        "nothing is signalled to what has ended, and the calls of what has cancelled do nothing (1.7, 3.6, 3.7)"
    ),
    r"processor: joined, (on_error: end (dropped|late)|on_complete: end late)": (
        "its upstream signals nothing more (1.7), and it has forgotten its subscriber"
    ),
    # as in another state
    r"publisher: fresh, invalid request: as in idle": "inside of on_subscribe it may answer, on the same thread",
    r"publisher: busy, (invalid )?request: as in idle": "a loop that runs is not begun again",
    r"processor: ended, subscribe: as in (downstream|joined|over)": (
        "a subscriber that comes late may be refused, in place of hearing the end"
    ),
    r"processor: upstream, subscribe: as in ended": "without an end there is nothing to tell",
    # unseen
    r"blackbox: \w+, \w+: (take|register|note_completion|note_error) (dropped|late|doubled)( later)?": (
        "from outside, what a subscriber does with a signal can't be seen"
    ),
    r"blackbox: subscribed, (on_next|on_complete|on_error): as in over": "from outside, it can't be seen either",
}
"""Mutants that break no rule that can be seen from outside, by a pattern of their names; and why."""

NOT_REACHED: dict[str, str] = {
    r"processor: new, on_subscribe\(None\)": "the checks of a subscriber give a processor its own subscriber first",
    r"processor: downstream, subscribe": "a second subscriber comes after the upstream, in each check",
    r"(whitebox|blackbox|processor): over, on_subscribe": "a second subscription comes before the end (2.5)",
    r"(white|black)box: over, on_\w+\(None\)": "None comes before the end (2.13)",
    r"whitebox: over, asked to cancel": "a puppet is asked for one cancel, and for none after the end",
    r"blackbox: over, (on_\w+|asked to request)": "without a probe no check signals after the end (1.7)",
}
"""Rows of the tables that no check comes to; and why."""


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
    if mutant.change.what == "elsewhere":
        verification.default_poll_timeout = 0.1  # a signal stays inside so long for one that comes beside it
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


def row_of(name: str) -> str:
    """The row of the table that a mutant changes: kind, state and event."""
    return name.rpartition(": ")[0]


def not_reached(row: str) -> bool:
    return any(re.fullmatch(pattern, row) for pattern in NOT_REACHED)


def judged(mutants: list[MachineMutant], **how: Any) -> Iterator[tuple[MachineMutant, Outcome | None]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from zip(mutants, pool.map(lambda item: first_failure(item, **how), mutants), strict=True)


@pytest.mark.parametrize("kind", sound_machines())
def test_the_machines_are_sound_and_come_to_each_row_but_those_that_are_excused(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, *_ = KINDS[kind]
    reached: set[tuple[str, str]] = set()  # of a set, to add is one step
    make = Machine.make

    def noted(self: Machine, state: str, event: str, *arguments: Any) -> None:
        if self.TABLE is table:
            reached.add((state, event))
        make(self, state, event, *arguments)

    monkeypatch.setattr(Machine, "make", noted)
    verification = sound_machines()[kind]
    assert [item for item in verification.outcomes() if item.status == "failed"] == []
    rows = {(state, event): f"{kind}: {state}, {event}" for state, event in table}
    assert {row for key, row in rows.items() if key not in reached} == set(filter(not_reached, rows.values()))


def test_each_mutant_is_found_or_changes_nothing() -> None:
    names = {mutant.name for mutant in MUTANTS}
    assert len(names) == len(MUTANTS)
    assert set(FOUND) <= names
    left = [name for name in sorted(names - set(FOUND)) if not not_reached(row_of(name))]
    assert [name for name in left if not any(re.fullmatch(pattern, name) for pattern in SAME)] == []


@pytest.mark.parametrize("pattern", [*SAME, *NOT_REACHED])
def test_what_excuses_a_mutant_excuses_none_that_is_found(pattern: str) -> None:
    """An argument that is wrong of one mutant may be wrong of another."""
    names = [mutant.name for mutant in MUTANTS]
    excused = [name for name in names if re.fullmatch(pattern, name if pattern in SAME else row_of(name))]
    assert excused
    assert [name for name in excused if name in FOUND] == []


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
        same = sum(not not_reached(row_of(name)) for name in left)
        order = sorted(filter(None, rules), key=lambda rule: [int(part) for part in rule.split(".")])
        counts = f"{rules.total()} | {same} | {len(left) - same}"
        rows.append(f"| {kind} | {counts} | {', '.join(f'{rule}: {rules[rule]}' for rule in order)} |")
    table_is("machines", rows)


if os.environ.get("WRITE_MUTANTS"):

    @pytest.mark.timeout(3_600)
    def test_write() -> None:
        found = {m.name: [o.check.name, o.rule] for m, o in judged(MUTANTS) if o is not None}
        (Path(__file__).parent / "mutants.json").write_text(json.dumps(found, indent=1) + "\n")


ELSEWHERE = [mutant for mutant in MUTANTS if mutant.name in FOUND and mutant.change.what == "elsewhere"]


@pytest.mark.parametrize("mutant", ELSEWHERE, ids=lambda mutant: mutant.name)
def test_a_signal_on_another_thread_is_found_however_late_that_one_begins(
    mutant: MachineMutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(threading.Thread):
        def run(self) -> None:
            time.sleep(0.02)
            super().run()

    monkeypatch.setattr(machines, "threading", SimpleNamespace(**vars(threading) | {"Thread": Late}))
    assert_found(mutant)


@pytest.mark.parametrize("mutant", ELSEWHERE, ids=lambda mutant: mutant.name)
def test_a_signal_on_another_thread_is_found_however_late_this_one_goes_on(
    mutant: MachineMutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a busy machine: the signal on the other thread was over before this one gave the next."""
    has_begun = machines.Source.has_begun

    def late(machine: machines.Source, thread: threading.Thread, subscriber: Any) -> bool:
        begun = has_begun(machine, thread, subscriber)
        if begun:
            time.sleep(0.02)
        return begun

    monkeypatch.setattr(machines.Source, "has_begun", late)
    assert_found(mutant)


def assert_found(mutant: MachineMutant) -> None:
    outcome = first_failure(mutant, FOUND[mutant.name][:1])
    assert outcome is not None
    assert [outcome.check.name, outcome.rule] == FOUND[mutant.name]
