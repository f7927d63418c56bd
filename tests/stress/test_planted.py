"""Each of thirty races is found by the harness, at its default settings; on a machine of its own within seconds."""

from __future__ import annotations

from typing import Any

import pytest
from planted import PLANTED, Planted, Sound

from reactive_runtime.stress import Context, Load, Result, run, scenario
from reactive_runtime.testing import Chunk, Recorder, RuleChecker, Violation

SECONDS = 150.0
"""Of load, at the most, where the machine has other work: it ends with the first breach."""

pytestmark = pytest.mark.timeout(300)


class FoundError(Exception):
    """A breach: there is no need for more."""


def first_breach(kind: type[Sound], seconds: float, rules: set[str]) -> list[Violation]:
    """Put it under load until it breaks one of these rules, or any if there are none."""

    @scenario(elements=kind.count, live=24, **({"workload": kind.workload} if hasattr(kind, "workload") else {}))
    def planted(context: Context) -> Any:
        return Planted(kind, context.pool(3))

    chunks: list[Chunk] = []
    recorder = Recorder("run", chunks.append)
    checker = RuleChecker()

    def judge(result: Result) -> None:
        recorder.flush()
        taken = chunks[:]
        del chunks[: len(taken)]
        for record in sorted(
            (recorder.record_of(chunk.thread, row) for chunk in taken for row in chunk.rows),
            key=lambda item: item.begin,
        ):
            checker.feed(record)
        if any(not rules or violation.rule in rules for violation in checker.violations):
            raise FoundError

    try:
        run([planted.scenario], Load(12, seconds, 1), recorder, judge)
    except FoundError:
        return checker.violations
    return []


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_race_is_found_by_its_rule(name: str, dropped: list[Any]) -> None:
    kind = PLANTED[name]
    found = first_breach(kind, SECONDS, kind.rules)
    assert {finding.rule for finding in found} & kind.rules, name


def test_there_are_thirty_of_them_each_of_a_kind_of_its_own() -> None:
    assert len(PLANTED) == 30
    assert len({item.__doc__ for item in PLANTED.values()}) == 30


@pytest.mark.parametrize("pooled", [False, True])
def test_what_they_were_made_from_is_not_accused(pooled: bool) -> None:
    kind = type("Pooled", (Sound,), {"pooled": pooled})
    assert first_breach(kind, 6.0, set()) == []
