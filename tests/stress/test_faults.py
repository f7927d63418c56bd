"""The planted faults: what they are made from is right, and each breaks its own rule, and no other but in its wake."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sinks import Sink

from reactive_runtime import Flow
from reactive_runtime._core.fusion.subscription import PulledSubscription
from reactive_runtime.stress import FAULTS, Load, Result, answered, find, planted, run, verdict_on
from reactive_runtime.stress import _faults as faults
from reactive_runtime.stress._faults import TextbookSubscription, swapped
from reactive_runtime.testing import Chunk, Recorder, Violation, check
from reactive_runtime.testing._rule_checks import RULES

SECONDS = float(os.environ.get("TEXTBOOK_SECONDS", "4"))
"""Of load on what the faults are made from; at night there is more."""

FOUND_WITHIN = 60.0
"""Seconds of load, where the machine has other work; it ends with the breach."""

EACH_WITHIN = 240.0
"""Seconds until each scenario has had a round, where the machine has other work."""

pytestmark = pytest.mark.timeout(EACH_WITHIN + 60 + SECONDS)


def judged(found: list[Violation], wanted: str = "") -> tuple[Recorder, Callable[[Result], bool]]:
    """A recorder, and what judges each round by itself into `found`, until the wanted rule is broken."""
    chunks: list[Chunk] = []
    recorder = Recorder("run", chunks.append)

    def judge(_: Result) -> bool:
        recorder.flush()
        taken = chunks[:]
        del chunks[: len(taken)]
        found.extend(check(recorder.record_of(chunk.thread, row) for chunk in taken for row in chunk.rows))
        return any(finding.rule == wanted for finding in found)

    return recorder, judge


def test_the_textbooks_subscription_is_clean_in_every_scenario_that_it_has_an_answer_for(dropped: list[Any]) -> None:
    scenarios, _ = answered(find("stress"))
    made: list[TextbookSubscription] = []

    class Counted(TextbookSubscription):
        def __init__(self, *what: Any) -> None:
            super().__init__(*what)
            made.append(self) if len(made) < 100 else None

    found: list[Violation] = []
    recorder, judge = judged(found)

    def over(result: Result) -> bool:
        """On a machine with other work, it takes longer until each has had a round."""
        broken = judge(result)
        return broken or (result.seconds >= SECONDS and all(item.rounds for item in result.load.values()))

    with swapped(Counted):
        result = run(scenarios, Load(12, SECONDS + EACH_WITHIN, 1), recorder, over)
    assert not found, str(found[0])
    assert not result.failures
    assert {scenario.name for scenario in scenarios} == {name for name, item in result.load.items() if item.rounds}
    assert len(made) == 100


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_breaks_its_own_rule_and_no_other_but_in_its_wake(fault: str, dropped: list[Any]) -> None:
    kind = FAULTS[fault]
    found: list[Violation] = []
    recorder, judge = judged(found, kind.rule)
    with planted(fault):
        result = run(answered(find("stress"))[0], Load(12, FOUND_WITHIN, 1), recorder, judge)
    broken = {finding.rule for finding in found}
    assert kind.rule in broken
    others = [finding for finding in found if finding.rule != kind.rule and finding.rule not in kind.wake]
    assert not others, str(others[0])
    assert not result.failures


def test_those_left_out_are_those_whose_executor_stops() -> None:
    there = find("stress")
    found, left_out = answered(there)
    assert {item.name for item in left_out} == {"the_pool_is_shut_down", "the_pool_of_the_source_is_shut_down"}
    assert [item for item in there if item not in left_out] == found


def test_every_rule_of_the_table_is_one_and_its_wake_has_others() -> None:
    for name, kind in FAULTS.items():
        assert {kind.rule, *kind.wake} <= RULES.keys(), name
        assert kind.rule not in kind.wake
    assert len({fault.rule for fault in FAULTS.values()}) == len(FAULTS)


def test_the_docs_have_the_same_table() -> None:
    page = Path("docs/stress.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+?) \| ([\d.]+) \| (.+?) \|$", page, re.MULTILINE)
    told = [(name, what, rule, wake) for name, what, rule, wake in rows if name in FAULTS]
    assert told == [
        (name, kind.summary, kind.rule, "; ".join(f"{rule}: {why}" for rule, why in kind.wake.items()))
        for name, kind in FAULTS.items()
    ]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_planted_where_the_subscription_itself_is_judged_and_not_inside_of_a_pipeline(fault: str) -> None:
    made: list[str] = []
    kind = FAULTS[fault]

    class Noted(kind):  # type: ignore[misc, valid-type]
        def __init__(self, *what: Any) -> None:
            super().__init__(*what)
            made.append("planted")

    recorder = Recorder()
    with swapped(Noted):
        recorder.wrap(Flow.range(3)).subscribe(Sink(5))
        assert made == ["planted"]
        recorder.wrap(Flow.range(3).concat_with(Flow.range(2))).subscribe(Sink(9))
        assert made == ["planted"]
        Flow.range(3).subscribe(Sink(5))
        assert made == ["planted"] * 2


def test_the_subscription_is_the_packages_own_again_when_the_block_is_over() -> None:
    with planted("overflow"):
        assert faults.core_flow.PulledSubscription is not PulledSubscription  # type: ignore[attr-defined]
    assert faults.core_flow.PulledSubscription is PulledSubscription  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"1.3"}, "two-drains is named by its rule 1.3"),
        ({"1.3", "1.1", "order"}, "two-drains is named by its rule 1.3; its consequences: 1.1, order"),
        (set(), "two-drains is NOT named: nothing broke its rule 1.3"),
        ({"1.1"}, "two-drains is NOT named: nothing broke its rule 1.3; its consequences: 1.1"),
        ({"1.3", "2.7"}, "two-drains is named by its rule 1.3; NOT its consequences: 2.7"),
    ],
)
def test_the_verdict_says_whether_the_fault_was_named(broken: set[str], told: str) -> None:
    assert verdict_on("two-drains", broken) == told
