"""Decide the state of each scenario, and of all of them: the one place that does.

JUnit's XML, the report and its summaries, the table on the terminal and the exit status derive from these states. A
scenario of which not all was looked at is never clean, and so is a run that has one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

__all__ = [
    "NO_ROUND",
    "Finding",
    "State",
    "cut_short_of",
    "findings_of",
    "grouped",
    "joined",
    "label_of",
    "line_of",
    "link_of",
    "scenario_of",
    "state_of",
    "unfound",
]


class State(Enum):
    """The state of a scenario, or of all; the value is the word that all outputs have for it."""

    BROKEN = "broken"
    """A rule was broken."""
    STUCK = "stuck"
    """It did not end; no broken rule was seen."""
    GIVEN_UP = "given up"
    """Of a scenario: it could not go on."""
    NOT_JUDGED = "not judged"
    """Of a scenario: there are records, or were, that could not be judged."""
    INCOMPLETE = "incomplete"
    """Of a scenario: its run was cut off, or ended before its time, and no rule was broken in what there is. Of all:
    not all was looked at."""
    CLEAN = "clean"
    """All was looked at, and no rule was broken."""
    RECORDED = "recorded"
    """All was recorded, and no verdict was asked for."""
    SKIPPED = "skipped"
    """Of a scenario: it had no round."""
    UNUSABLE = "unusable"
    """Of all: nothing could be judged."""

    @property
    def unseen(self) -> bool:
        """Whether a scenario in this state is one that was not looked at as a whole: no test case that passed."""
        return self not in (State.BROKEN, State.STUCK, State.CLEAN)


_ORDER: Final = list(State)
"""Of several runs with a scenario, the state that comes first here is the scenario's."""

NO_ROUND: Final = "it had no round: give the load more --seconds"
_CUT_BEFORE: Final = "nothing was recorded of it before the run was cut off"
_CUT: Final = "the run was cut off: no rule was broken in what was recorded until then"
_CUT_UNJUDGED: Final = "the run was cut off: what was recorded until then was not judged"
_STOPPED: Final = "the load was ended before its time: the rest was not run"
_RECORDED: Final = "its records were not judged: add --verify"
_NO_RECORD: Final = "no record of it was judged"


@dataclass(frozen=True)
class Finding:
    """The state of one scenario, and why."""

    state: State
    why: str = ""
    """In a line; none where it is clean."""
    rules: tuple[str, ...] = ()
    """Those that it broke."""
    partly: bool = False
    """One of several runs has looked at it, and another has not."""

    @property
    def looked_at(self) -> bool:
        """Whether something of it was judged, or recorded where no verdict was asked for."""
        return self.partly or self.state not in (State.GIVEN_UP, State.NOT_JUDGED, State.SKIPPED)


_LINK: Final = ", link"


def link_of(scenario: str) -> str:
    """The name that the records of a link inside of the scenario's pipeline have."""
    return scenario + _LINK


def scenario_of(name: str) -> str:
    """The scenario that the records of that name belong to: a link inside of a pipeline counts for its scenario."""
    return name.removesuffix(_LINK)


def findings_of(
    run: Mapping[str, Any], judged: Mapping[str, Collection[str]] | None, unable: str = ""
) -> dict[str, Finding]:
    """The state of each scenario of one run.

    Args:
        run: The run's metadata. Of these, `scenarios`, `load`, `given_up`, `failed`, `cut_short` and `complete` are
            looked at, and `stopped`; a run from elsewhere may lack each, or have anything there.
        judged: The rules that each scenario broke, by the name in the records, of those that were judged. None: no
            verdict was asked for.
        unable: Why not all records could be judged.

    Returns:
        A finding for each scenario that the run names, or that was judged.
    """
    given_up, failed, load = (_mapping(run.get(name)) for name in ("given_up", "failed", "load"))
    cut_short = cut_short_of(run)
    rules: dict[str, set[str]] = {}
    for name, broken in (judged or {}).items():
        rules.setdefault(scenario_of(name), set()).update(broken)
    names = [name for name in _list(run.get("scenarios")) if isinstance(name, str)]
    whole = run.get("complete") is True
    found = {}
    for name in dict.fromkeys([*names, *given_up, *sorted(rules)]):
        how = failed.get(name)
        no_round = name not in rules and _no_round(name, load, whole)
        broken_here = rules.get(name, set()) | ({str(how)} if how and how != State.STUCK.value else set())
        if broken_here:
            named = tuple(sorted(broken_here))
            found[name] = Finding(State.BROKEN, f"rule {', '.join(named)} was broken", named)
        elif name in given_up:
            stuck = how == State.STUCK.value
            found[name] = Finding(State.STUCK if stuck else State.GIVEN_UP, str(given_up[name]))
        elif unable and not no_round:
            found[name] = Finding(State.NOT_JUDGED, unable)
        elif name in cut_short:
            found[name] = Finding(State.INCOMPLETE, str(cut_short[name]))
        elif no_round:
            found[name] = Finding(State.SKIPPED, NO_ROUND)
        elif not whole:
            found[name] = _cut_off(name in rules, judged is not None)
        elif judged is None:
            found[name] = Finding(State.RECORDED, _RECORDED)
        else:
            found[name] = Finding(State.CLEAN) if name in rules else Finding(State.NOT_JUDGED, _NO_RECORD)
    return found


def cut_short_of(run: Mapping[str, Any]) -> Mapping[str, Any]:
    """By scenario: which part of its load a run has not had. Early versions wrote only that it was `stopped`."""
    if run.get("stopped") is True and "cut_short" not in run:
        return {name: _STOPPED for name in _list(run.get("scenarios")) if isinstance(name, str)}
    return _mapping(run.get("cut_short"))


def _no_round(name: str, load: Mapping[str, Any], whole: bool) -> bool:
    """Whether the run says that the scenario had no round."""
    if name not in load:
        return whole and bool(load)
    return isinstance(load[name], Mapping) and load[name].get("rounds") == 0


def _cut_off(recorded: bool, wanted: bool) -> Finding:
    if not wanted:
        return Finding(State.INCOMPLETE, _CUT_UNJUDGED)
    return Finding(State.INCOMPLETE, _CUT) if recorded else Finding(State.SKIPPED, _CUT_BEFORE)


def label_of(run: Mapping[str, Any]) -> str:
    """A run in a line on several: its name and its interpreter, as far as its metadata say them."""
    python = run.get("python")
    return f"run {run.get('run') or 'without a name'}{f' (Python {python})' if python else ''}"


def joined(runs: Iterable[tuple[str, Mapping[str, Finding]]]) -> dict[str, Finding]:
    """The worst state of each scenario in several runs.

    Args:
        runs: For each run its label, and what became of its scenarios there.

    Returns:
        A finding for each scenario. One that a run did not look at is not clean; its reason names that run.
    """
    of_each: dict[str, list[tuple[str, Finding]]] = {}
    for run, findings in runs:
        for name, item in findings.items():
            of_each.setdefault(name, []).append((run, item))
    return {name: _worst(items) for name, items in of_each.items()}


def _worst(items: Sequence[tuple[str, Finding]]) -> Finding:
    """Of one scenario in several runs."""
    worst = min((item for _, item in items), key=lambda item: _ORDER.index(item.state))
    if rules := tuple(sorted({rule for _, item in items for rule in item.rules})):
        return Finding(worst.state, f"rule {', '.join(rules)} was broken", rules)
    unseen = [(run, item.why) for run, item in items if not item.looked_at]
    if not unseen or len(unseen) == len(items):
        return worst
    if not worst.looked_at:
        return replace(worst, partly=True)
    if worst.state not in (State.CLEAN, State.RECORDED):
        return worst
    more = f" and {len(unseen) - _SHOWN} more" if len(unseen) > _SHOWN else ""
    where = ", ".join(run for run, _ in unseen[:_SHOWN])
    return Finding(State.INCOMPLETE, f"{where}{more}: {unseen[0][1]}", partly=True)


def unfound(runs: Iterable[tuple[Mapping[str, Any], Mapping[str, Collection[str]]]]) -> list[str]:
    """A line for each fault that was planted on purpose, and that no run has found by the fault's own rule.

    Args:
        runs: For each run its metadata, of which `fault` and `fault_rule` are looked at; and the rules that each
            scenario broke.
    """
    found: dict[tuple[str, str], bool] = {}
    for run, judged in runs:
        fault, rule = run.get("fault"), run.get("fault_rule")
        if isinstance(fault, str) and isinstance(rule, str):
            broken = any(rule in rules for rules in judged.values())
            found[fault, rule] = found.get((fault, rule), False) or broken
    return [
        f"the planted fault {fault} was not found: no scenario has broken its rule {rule}"
        for (fault, rule), is_found in found.items()
        if not is_found
    ]


def state_of(findings: Mapping[str, Finding], lost: Sequence[str] = ()) -> State:
    """The state of all.

    Args:
        findings: What became of each scenario.
        lost: What else was not looked at, a line each: a run that was cut off, or could not be judged.

    Returns:
        Broken or stuck, where one scenario is; else unusable, where nothing was looked at; else incomplete, where
        something was not; else clean, or recorded.
    """
    states = {item.state for item in findings.values()}
    for state in (State.BROKEN, State.STUCK):
        if state in states:
            return state
    if not any(item.looked_at for item in findings.values()):
        return State.UNUSABLE
    if lost or states - {State.CLEAN, State.RECORDED}:
        return State.INCOMPLETE
    return State.RECORDED if State.RECORDED in states else State.CLEAN


def grouped(findings: Mapping[str, Finding]) -> list[tuple[State, str, list[str]]]:
    """The scenarios that are not clean, by state and reason; the worst first."""
    found: dict[tuple[State, str], list[str]] = {}
    for name, item in findings.items():
        if item.state is not State.CLEAN:
            found.setdefault((item.state, item.why), []).append(name)
    return sorted(
        ((state, why, names) for (state, why), names in found.items()), key=lambda item: _ORDER.index(item[0])
    )


_SHOWN: Final = 5
"""Scenarios, or runs, that are named in a line."""

_SAID: Final = {
    (State.SKIPPED, False): "had no round, and nothing is known of them",
    (State.STUCK, False): "{were} stuck",
    (State.GIVEN_UP, False): "{were} given up",
    (State.GIVEN_UP, True): "{were} given up in a part of the runs",
    (State.NOT_JUDGED, False): "{were} not judged",
    (State.NOT_JUDGED, True): "{were} not judged in a part of the runs",
    (State.INCOMPLETE, False): "{were} cut off",
    (State.INCOMPLETE, True): "had no round in a part of the runs",
}
"""By state, and whether one of several runs has looked at the scenario."""


def line_of(findings: Mapping[str, Finding], lost: Sequence[str] = ()) -> str:
    """A line on what was not looked at to its end; empty where all was."""
    parts = []
    for key, said in _SAID.items():
        of = [(name, item.why) for name, item in findings.items() if (item.state, item.partly) == key]
        if of:
            names = ", ".join(name for name, _ in of[:_SHOWN])
            more = f" and {len(of) - _SHOWN} more" if len(of) > _SHOWN else ""
            advice = ": give the load more --seconds, or name fewer scenarios" if of[0][1] == NO_ROUND else ""
            word = said.format(were="was" if len(of) == 1 else "were")
            parts.append(f"{len(of)} of {len(findings)} scenarios {word}{advice}: {names}{more}")
    return "; ".join([*parts, *lost])


def _mapping(value: object) -> Mapping[str, Any]:
    made = _parsed(value)
    return made if isinstance(made, Mapping) else {}


def _list(value: object) -> Sequence[Any]:
    made = _parsed(value)
    return made if isinstance(made, list) else []


def _parsed(value: object) -> object:
    """The value, or what it says where it is a text of JSON, as the tables of a verdict have it."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None
