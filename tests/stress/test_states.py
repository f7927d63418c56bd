"""What became of a scenario, and of all, is decided in one place; figures and exit statuses are in words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from reactive_runtime._cli import verdict
from reactive_runtime._cli._exits import EPILOG, EXITS, STATUS, status_of
from reactive_runtime._cli.commands import JUDGES, app
from reactive_runtime._results.ci_files import UnwrittenError
from reactive_runtime._results.figures import in_words, times
from reactive_runtime._results.states import (
    NO_ROUND,
    Finding,
    State,
    findings_of,
    grouped,
    joined,
    label_of,
    line_of,
    state_of,
    unfound,
)
from reactive_runtime.errors import (
    ExploreError,
    MissingDependencyError,
    ReactiveError,
    ScenarioError,
    SparkError,
    TargetError,
    TraceError,
)

ROUND, NONE = {"rounds": 1, "signals": 9, "seconds": 0.1}, {"rounds": 0, "signals": 0, "seconds": 0.0}
WHOLE: dict[str, Any] = {"scenarios": ["a"], "load": {"a": ROUND}, "complete": True}


@pytest.mark.parametrize(
    ("run", "judged", "unable", "state"),
    [
        (WHOLE, {"a": []}, "", State.CLEAN),
        (WHOLE, None, "", State.RECORDED),
        (WHOLE, {}, "", State.NOT_JUDGED),
        (WHOLE, {"a": []}, "a run is damaged", State.NOT_JUDGED),
        (WHOLE, {"a": ["1.3"]}, "a run is damaged", State.BROKEN),
        (WHOLE, {"a, link": ["1.3"], "a": []}, "", State.BROKEN),
        (WHOLE | {"load": {"a": NONE}}, {}, "", State.SKIPPED),
        (WHOLE | {"load": {"a": NONE}}, None, "", State.SKIPPED),
        (WHOLE | {"load": {"b": ROUND}}, {}, "", State.SKIPPED),
        (WHOLE | {"load": {}}, {"a": []}, "", State.CLEAN),
        (WHOLE | {"complete": False}, {"a": []}, "", State.INCOMPLETE),
        (WHOLE | {"complete": False, "load": {}}, {}, "", State.SKIPPED),
        (WHOLE | {"complete": False}, None, "", State.INCOMPLETE),
        ({}, {"a": []}, "", State.INCOMPLETE),
        (WHOLE | {"given_up": {"a": "no database"}}, {"a": []}, "", State.GIVEN_UP),
        (WHOLE | {"given_up": {"a": "it hangs"}, "failed": {"a": "stuck"}}, {}, "", State.STUCK),
        (WHOLE | {"given_up": {"a": "it is kept"}, "failed": {"a": "3.13"}}, {"a": []}, "", State.BROKEN),
        (WHOLE | {"cut_short": {"a": "the rest was not run"}}, {"a": []}, "", State.INCOMPLETE),
        (WHOLE | {"cut_short": {"a": "the rest was not run"}}, None, "", State.INCOMPLETE),
        (WHOLE | {"cut_short": '{"a": "the rest was not run"}'}, {"a": ["1.3"]}, "", State.BROKEN),
        (WHOLE | {"cut_short": {"a": "it had no round"}, "load": {"a": NONE}}, {}, "", State.INCOMPLETE),
        (WHOLE | {"cut_short": {"a": "the rest was not run"}}, {}, "a run is damaged", State.NOT_JUDGED),
        (WHOLE | {"cut_short": {"b": "the rest was not run"}}, {"a": []}, "", State.CLEAN),
        (WHOLE | {"stopped": True}, {"a": []}, "", State.INCOMPLETE),
        (WHOLE | {"stopped": True, "cut_short": {}}, {"a": []}, "", State.CLEAN),
        (WHOLE | {"load": "nonsense", "given_up": [1], "failed": None}, {"a": []}, "", State.CLEAN),
        ({"scenarios": '["a"]', "load": '{"a": {"rounds": 0}}', "complete": True}, {}, "", State.SKIPPED),
    ],
)
def test_a_scenario_has_the_state_that_its_run_and_the_judge_say(
    run: dict[str, Any], judged: Any, unable: str, state: State
) -> None:
    finding = findings_of(run, judged, unable)["a"]
    assert finding.state is state
    assert bool(finding.why) == (state is not State.CLEAN)
    assert finding.state.unseen == (state not in (State.CLEAN, State.BROKEN, State.STUCK))


CLEAN, SKIPPED = Finding(State.CLEAN), Finding(State.SKIPPED, NO_ROUND)
GIVEN_UP, CUT = Finding(State.GIVEN_UP, "no database"), Finding(State.INCOMPLETE, "it was cut off")
BROKEN, STUCK = Finding(State.BROKEN, "rule 1.3 was broken", ("1.3",)), Finding(State.STUCK, "it hangs")
RECORDED, UNJUDGED = Finding(State.RECORDED, "add --verify"), Finding(State.NOT_JUDGED, "it is damaged")


@pytest.mark.parametrize(
    ("findings", "lost", "state", "status"),
    [
        ([CLEAN], [], State.CLEAN, 0),
        ([RECORDED], [], State.RECORDED, 0),
        ([CLEAN, BROKEN, SKIPPED], ["a run"], State.BROKEN, 1),
        ([CLEAN, STUCK], [], State.STUCK, 1),
        ([CLEAN, SKIPPED], [], State.INCOMPLETE, 3),
        ([CLEAN, GIVEN_UP], [], State.INCOMPLETE, 3),
        ([CLEAN, UNJUDGED], [], State.INCOMPLETE, 3),
        ([CLEAN, CUT], [], State.INCOMPLETE, 3),
        ([CUT], [], State.INCOMPLETE, 3),
        ([RECORDED, SKIPPED], [], State.INCOMPLETE, 3),
        ([CLEAN], ["a run could not be judged"], State.INCOMPLETE, 3),
        ([SKIPPED, UNJUDGED, GIVEN_UP], [], State.UNUSABLE, 4),
        ([], ["a run could not be judged"], State.UNUSABLE, 4),
    ],
)
def test_all_have_the_state_of_the_worst_and_its_exit_status(
    findings: list[Finding], lost: list[str], state: State, status: int
) -> None:
    named = {str(number): item for number, item in enumerate(findings)}
    assert state_of(named, lost) is state
    assert STATUS[state] == status
    assert bool(line_of(named, lost)) == (state not in (State.CLEAN, State.RECORDED))


def test_of_several_runs_the_worst_counts() -> None:
    other = Finding(State.BROKEN, "rule 1.1 was broken", ("1.1",))
    one, another = {"b": CLEAN, "c": BROKEN, "d": SKIPPED}, {"b": CUT, "c": other, "d": SKIPPED}
    found = joined([("run x", one), ("run y", another)])
    assert {name: item.state for name, item in found.items()} == {
        "b": State.INCOMPLETE,
        "c": State.BROKEN,
        "d": State.SKIPPED,
    }
    assert (found["c"].rules, found["c"].why) == (("1.1", "1.3"), "rule 1.1, 1.3 was broken")
    assert line_of({"d": found["d"]}).startswith("1 of 1 scenarios had no round, and nothing is known of them: give")


@pytest.mark.parametrize("looked_at", [CLEAN, RECORDED])
def test_a_run_without_a_round_is_named_and_the_whole_incomplete(looked_at: Finding) -> None:
    runs = [{"a": looked_at, "b": looked_at}, {"a": SKIPPED, "b": looked_at}, {"b": looked_at}]
    labels = [label_of({"run": "x", "python": "3.11.2"}), label_of({"run": "y", "python": "3.13.5t"}), label_of({})]
    found = joined(zip(labels, runs, strict=True))
    assert found["a"] == Finding(State.INCOMPLETE, f"run y (Python 3.13.5t): {NO_ROUND}", partly=True)
    assert found["b"] == looked_at
    assert state_of(found) is State.INCOMPLETE
    assert line_of(found) == "1 of 2 scenarios had no round in a part of the runs: a"


@pytest.mark.parametrize("worst", [GIVEN_UP, UNJUDGED])
def test_what_one_run_has_looked_at_is_not_unusable(worst: Finding) -> None:
    found = joined([("run x", {"a": CLEAN}), ("run y", {"a": worst})])
    assert (found["a"].state, found["a"].why) == (worst.state, worst.why)
    assert state_of(found) is State.INCOMPLETE
    assert line_of(found).endswith(" in a part of the runs: a")


def test_of_many_runs_without_a_round_a_few_are_named() -> None:
    found = joined([("run x", {"a": CLEAN}), *((f"run {number}", {"a": SKIPPED}) for number in range(9))])
    assert found["a"].why == f"run 0, run 1, run 2, run 3, run 4 and 4 more: {NO_ROUND}"


def test_a_planted_fault_that_no_run_has_found_is_said() -> None:
    planted = {"fault": "two-drains", "fault_rule": "1.3"}
    assert unfound([(planted, {"a": set()}), (planted, {"a": {"1.3"}}), ({}, {"a": set()})]) == []
    line = "the planted fault two-drains was not found: no scenario has broken its rule 1.3"
    assert unfound([(planted, {"a": {"1.1"}}), (planted, {})]) == [line]
    assert state_of({"a": CLEAN}, [line]) is State.INCOMPLETE


def test_what_was_not_looked_at_is_grouped_and_said_in_a_line() -> None:
    findings = {f"s{number}": SKIPPED for number in range(7)} | {"x": CLEAN, "y": GIVEN_UP}
    assert grouped(findings) == [
        (State.GIVEN_UP, "no database", ["y"]),
        (State.SKIPPED, NO_ROUND, [f"s{number}" for number in range(7)]),
    ]
    assert line_of(findings, ["a run is damaged"]) == (
        "7 of 9 scenarios had no round, and nothing is known of them: give the load more --seconds, or name fewer"
        " scenarios: s0, s1, s2, s3, s4 and 2 more; 1 of 9 scenarios was given up: y; a run is damaged"
    )


# -- exit statuses -------------------------------------------------------------------------------------------------


def test_the_docs_have_the_table_of_the_exit_statuses() -> None:
    rows = re.findall(r"^\| (\d) \| (\w+) \| (.+) \|$", Path("docs/stress.md").read_text(), re.MULTILINE)
    assert rows == [(str(status), name, when) for status, (name, when) in EXITS.items()]


@pytest.mark.parametrize("command", JUDGES)
def test_the_help_of_each_command_that_judges_has_the_same_table(command: str) -> None:
    """Typer fills the lines anew: the words are compared."""
    assert {item.epilog for item in app.registered_commands if item.epilog} == {EPILOG}
    shown = " ".join(CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "100"}).output.split())
    for status, (name, when) in EXITS.items():
        assert f"{status} {name}: {when.replace('`', '')}." in shown


def test_no_other_command_has_it() -> None:
    commands: dict[str, Any] = dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    assert {name for name, item in commands.items() if item.epilog} == set(JUDGES)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ReactiveError("--debug goes with --replay"), 2),
        (ValueError("strategy must be one of"), 2),
        (ScenarioError("no scenario 'x'"), 2),
        (TargetError("x:y: importing x raised"), 2),
        (MissingDependencyError("needs Java"), 2),
        (KeyboardInterrupt(), 3),
        (SystemExit(0), 3),
        (TraceError("runs: is no folder"), 4),
        (SparkError("can't be started"), 4),
        (ExploreError("is no token"), 4),
        (UnwrittenError("x.xml: can't be written"), 4),
        (OSError("full"), 4),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), 4),
    ],
)
def test_an_error_has_the_status_of_what_another_try_would_have_to_change(error: BaseException, status: int) -> None:
    assert status_of(error) == status


def test_a_rule_that_was_broken_before_a_key_is_pressed_is_what_verify_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("pyspark")
    for state, status in ((State.BROKEN, 1), (State.CLEAN, 3), (None, 3)):

        def followed(*of: Any, state: State | None = state) -> None:
            of[-1].state = state
            raise KeyboardInterrupt

        monkeypatch.setattr(verdict, "_followed", followed)
        done = CliRunner().invoke(app, ["verify", str(tmp_path), "--follow"])
        assert (done.exit_code, "reactive-runtime: interrupted" in done.stderr) == (status, True)


# -- figures -------------------------------------------------------------------------------------------------------

SLOWER = {"scenario": "merged", "what": "demand → element", "usual": 3_900, "slower": True}


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (
            {"now": 4_000, "ratio": 1.03, "nights": 2, "before": 4_100, "since": "x"},
            "4 µs, as slow as on the two nights before; the usual is 3.9 µs, since run x",
        ),
        (
            {"now": 9_000, "ratio": 2.3, "nights": 1, "before": 9_100, "since": None},
            "9 µs, as slow as on the night before; the usual is 3.9 µs",
        ),
        (
            {"now": 9_000, "ratio": 2.3, "nights": 12, "before": 6_000, "since": None},
            "9 µs, slower than on the 12 nights before; the usual is 3.9 µs",
        ),
        (
            {"now": 5_000, "ratio": 1.3, "nights": 3, "before": 8_000, "since": None},
            "5 µs, faster than on the three nights before; the usual is 3.9 µs",
        ),
        ({"now": 9_000, "ratio": 2.3, "since": "x"}, "9 µs, 2.3 times the usual, which is 3.9 µs, since run x"),
        (
            {"now": 4_000, "ratio": 1.03, "since": None},
            "4 µs, close to the usual, which is 3.9 µs; the nights before speak for a change",
        ),
    ],
)
def test_a_figure_is_in_words(item: dict[str, Any], said: str) -> None:
    assert in_words(SLOWER | item) == f"merged, demand → element: {said}"


def test_that_all_scenarios_are_slower_is_in_words() -> None:
    of_all = {"scenario": "all scenarios", "what": "", "now": 2_300, "usual": 1_000, "since": "x"}
    assert in_words(of_all | {"ratio": 2.3}) == "all scenarios: 2.3 times as long as usual, since run x"
    again = in_words(of_all | {"ratio": 1.0, "nights": 2})
    assert again == "all scenarios: close to the usual, and slow on the two nights before, since run x"


@pytest.mark.parametrize(("ratio", "said"), [(1.0, ""), (1.14, ""), (1.3, "1.3"), (20.4, "20")])
def test_once_the_usual_is_not_said(ratio: float, said: str) -> None:
    assert times(ratio) == said
