"""The stream publisher of the textbook, step by step: which checks each version passes and fails, and its page."""

from __future__ import annotations

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from examples.stream_publisher import __main__ as lesson
from examples.stream_publisher.conformance import STEPS, explored, verification_of
from reactive_runtime.tck import Outcome
from tck.page import table_is

MARKS = {"passed": "✓", "failed": "✗", "skipped": "-"}


@cache
def all_outcomes() -> dict[str, dict[str, Outcome]]:
    """Of all steps, side by side: where something is broken the kit mostly waits."""
    with ThreadPoolExecutor(len(STEPS)) as pool:
        found = pool.map(lambda step: list(verification_of(step).outcomes()), STEPS.values())
        return {name: {item.check.name: item for item in items} for name, items in zip(STEPS, found, strict=True)}


def outcomes_of(step: str) -> dict[str, Outcome]:
    return all_outcomes()[step]


def failures(step: str) -> list[Outcome]:
    return [item for item in outcomes_of(step).values() if item.status == "failed"]


def counted(step: str) -> tuple[int, int, int]:
    """Of the checks that the original kit has too: passed, failed, skipped."""
    counts = Counter(item.status for item in outcomes_of(step).values() if item.check.original)
    return counts["passed"], counts["failed"], counts["skipped"]


def failed(step: str, *, original: bool) -> set[str]:
    return {item.check.name.partition("_spec")[2][:3] for item in failures(step) if item.check.original is original}


def test_the_naive_one_keeps_next_to_nothing() -> None:
    # The textbook reports 3 passed, 20 failed, 15 skipped; docs/tck-evidence.md says which checks make the difference.
    assert counted("1 naive") == (2, 29, 7)


@pytest.mark.parametrize(
    ("step", "counts"),
    [
        ("2 with on_subscribe", (2, 29, 7)),
        ("3 with a subscription", (14, 16, 8)),
        ("4 with termination", (21, 9, 8)),
        ("5 with 3.9 and 1.4", (27, 4, 7)),
        ("6 with demand", (31, 0, 7)),
        ("7 with an atomic get-and-add", (31, 0, 7)),
        ("8 with a capped compare-and-set", (31, 0, 7)),
        ("9 with one drain", (31, 0, 7)),
    ],
)
def test_each_step_mends_something(step: str, counts: tuple[int, int, int]) -> None:
    assert counted(step) == counts


def test_at_step_5_only_the_recursion_is_left_of_what_the_original_kit_sees() -> None:
    assert {item.rule for item in failures("5 with 3.9 and 1.4") if item.check.original} == {"3.3"}
    assert failed("5 with 3.9 and 1.4", original=True) == {"103", "302", "303", "317"}


def test_at_step_6_the_original_kit_is_content_and_demand_is_lost_all_the_same() -> None:
    assert failed("6 with demand", original=True) == set()
    lost = outcomes_of("6 with demand")["extra_spec308_no_demand_may_be_lost_between_two_requests"]
    assert "request(1) came while request(2) was being served: 2 of 3 elements came" in lost.why


def test_at_step_7_the_overflow_is_left_and_an_error_beside_an_element() -> None:
    assert failed("7 with an atomic get-and-add", original=False) == {"103", "317", "309"}


def test_at_step_8_signals_come_beside_an_element_and_beside_on_subscribe() -> None:
    beside, answer = failures("8 with a capped compare-and-set")
    assert answer.check.name == "extra_spec309_an_invalid_request_from_another_thread_must_be_answered"
    assert answer.rule == "1.3"
    assert "on_error began on one thread while a signal was running on another" in answer.why
    assert beside.check.name == "extra_spec103_an_element_must_wait_until_on_subscribe_has_returned"
    assert "on_next began on one thread while a signal was running on another" in beside.why


def test_at_step_9_no_check_of_any_kit_fails() -> None:
    assert failures("9 with one drain") == []


def test_the_table_of_the_docs_is_true() -> None:
    checks = [item.check for item in outcomes_of("1 naive").values() if item.check.kind != "untested"]
    table_is(
        "stream publisher",
        (
            f"| {check.rule} | {check.sentence} | "
            + " | ".join(MARKS[outcomes_of(step)[check.name].status] for step in STEPS)
            + " |"
            for check in checks
        ),
    )


def test_the_command_prints_what_it_teaches(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lesson, "STEPS", {name: STEPS[name] for name in ("3 with a subscription", "9 with one drain")})
    lesson.main()
    head, third, last = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "step"
    assert re.split("  +", third)[:2] == ["3 with a subscription", "14 passed, 16 failed, 8 skipped"]
    assert re.split("  +", last)[1:] == [
        "31 passed, 0 failed, 7 skipped",
        "nothing",
        "nothing: exhausted within 2 preemptions",
    ]


@cache
def by_the_explorer(step: str) -> dict[str, str]:
    """The rule that each program breaks, with the preemptions that it takes."""
    failures = {program: result.failure for program, result in explored(step).items()}
    return {
        program: "" if failure is None else f"{failure.rule} ({failure.preemptions})"
        for program, failure in failures.items()
    }


def test_the_explorer_breaks_each_step_but_the_last() -> None:
    assert [step for step in STEPS if not any(by_the_explorer(step).values())] == ["9 with one drain"]


def test_the_explorer_breaks_the_last_step_of_the_textbook_by_two_requests() -> None:
    assert by_the_explorer("8 with a capped compare-and-set")["request(1) twice"] == "1.1 (2)"


def test_the_last_step_holds_in_every_schedule_with_two_preemptions() -> None:
    verdicts = {str(result.verdict) for result in explored("9 with one drain").values()}
    assert verdicts == {"exhausted within 2 preemptions"}


def test_the_table_of_the_textbooks_page_is_true() -> None:
    rows = []
    for step in STEPS:
        passed, failed, _ = counted(step)
        found = " | ".join(text or "holds" for text in by_the_explorer(step).values())
        rows.append(f"| {step} | {passed} of {passed + failed} | {lesson.broken(failures(step))} | {found} |")
    table_is("textbook", rows, Path("docs/textbook.md"))
