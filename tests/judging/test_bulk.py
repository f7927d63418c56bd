"""A large trace in memory is judged by columns first: the same violations, word by word, as by the reference alone."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import pytest
from breaches import INNOCENT, element, named_lists, request, trace
from random_traces import dirty, likely, shuffled

from reactive_runtime.judging import _bulk as bulk
from reactive_runtime.testing import Record, check
from reactive_runtime.testing import _checker as checker

LISTS = 150


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Traces of any size go through the judge; how many records were left to the reference each time."""
    left: list[int] = []
    suspects = bulk.suspects

    def counted(records: Any, late_signals: int) -> Any:
        found = suspects(records, late_signals)
        left.append(len(found))
        return found

    monkeypatch.setattr(bulk, "suspects", counted)
    monkeypatch.setattr(checker, "MANY", 0)
    return left


def by_reference(records: list[Record], **options: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checker, "MANY", sys.maxsize)
        return check(records, **options)


@pytest.mark.parametrize("make", [likely, dirty])
def test_random_traces_get_the_same_violations_and_messages(make: Any, at_once: list[int]) -> None:
    for batch in range(LISTS // 10):
        rng = random.Random(f"{make.__name__} {batch}")
        records = shuffled(rng, [item for number in range(10) for item in make(rng, f"run {number}")])
        upto = rng.choice([None, rng.choice(records).begin])
        late_signals, context = rng.randint(0, 2), rng.choice([1, 6, 12])
        expected = by_reference(records, late_signals=late_signals, context=context, upto=upto)
        found = check(iter(records), late_signals=late_signals, context=context, upto=upto)
        assert found == expected
        assert [str(finding) for finding in found] == [str(item) for item in expected]
    assert len(at_once) == LISTS // 10


def test_what_breaks_no_rule_is_not_looked_at_again(at_once: list[int]) -> None:
    lists = named_lists()
    records = [item._replace(run=name) for name, of in lists.items() for item in of]
    assert check(records) == by_reference(records)
    innocent = sum(map(len, INNOCENT.values()))
    assert at_once == [len(records) - innocent]
    assert check([record for record in records if record.run in INNOCENT]) == []
    assert at_once[1:] == [0]


def test_more_than_so_many_records_are_judged_by_columns_and_fewer_are_not(at_once: list[int]) -> None:
    checker.MANY = 750  # type: ignore[misc]  # put back by the fixture
    clean = trace(request(1, 3, 4), element(0, 5, 6))
    records = [item._replace(subscription=number) for number in range(250) for item in clean]
    assert len(records) == checker.MANY
    assert check(records) == []
    assert at_once == []
    (found,) = check([*records, trace(element(1, 7, 8))[-1]])
    assert (found.rule, found.subscription, found.first) == ("1.1", 0, 7)
    assert at_once == [4]


BEYOND = [
    {"n": 2**70},
    {"begin": 2**70},
    {"depth": 2**40},
    {"thread": None},
    {"error": "\udc80"},
    {"end": 8.5},
    {"run": 7},
    {"signal": 7},
    {"ascending": 1},
]


@pytest.mark.parametrize("fields", BEYOND, ids=str)
def test_what_a_column_cannot_hold_is_judged_by_the_reference(fields: dict[str, Any], at_once: list[int]) -> None:
    records = trace(request(1, 3, 4), element(0, 5, 6), element(1, 7, 8), ("request", 9, 10, {"n": 1}))
    records = [*records[:-1], records[-1]._replace(**fields)]
    assert check(records) == by_reference(records)
    assert at_once == [len(records)]


def test_without_pyarrow_the_reference_judges() -> None:
    program = """
import sys
sys.modules["pyarrow"] = None
from breaches import element, request, trace
from reactive_runtime.testing import check, _checker as checker
checker.MANY = 0
print([str(it) for it in check(trace(request(1, 3, 4), element(0, 5, 6), element(1, 7, 8)))])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False, cwd="tests"
    )
    assert "rule 1.1" in done.stdout, done.stderr
