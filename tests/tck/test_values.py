"""A publisher that is wrong for one value of `request` is found, under the rule that it breaks; a sound one passes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from reactive_runtime.tck import Check, Outcome
from reactive_runtime.tck._publisher import publisher_values as _publisher_values
from reactive_runtime.tck._publisher.publisher_values import ValuePublisherChecks
from tck.broken import Publishers
from tck.test_mutants import AT_ONCE, quick
from tck.values import MUTANTS, RANDOM, ValueMutant

OWN = [item for item in Publishers.checks() if item.name in vars(ValuePublisherChecks)]
"""The checks that call `request` with many values: they are asked first."""

OTHERS = [item for item in Publishers.checks() if item not in OWN]

BY_DAY = {0, 1, 7, 65, 2**31, 2**63 - 1, -7, -(2**63)}
"""Values whose mutants are judged in `make test`."""

ENOUGH = 0.95


def first_failure(mutant: ValueMutant, checks: list[Check]) -> Outcome | None:
    verification = quick(mutant.make())
    failed = (item for item in map(verification.outcome, checks) if item.status == "failed")
    return next(failed, None)


def is_found(mutant: ValueMutant, outcome: Outcome | None) -> bool:
    """Whether it failed for what was planted: by its rule, with the value named."""
    return (
        outcome is not None
        and outcome.rule in mutant.rules
        and re.search(rf"(?<![\d-]){mutant.n}(?!\d)", outcome.why) is not None
    )


def missed(mutants: list[ValueMutant], others: list[Check] = OTHERS) -> Iterator[str]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for mutant, outcome in zip(mutants, pool.map(lambda item: first_failure(item, OWN), mutants), strict=True):
            if not is_found(mutant, outcome or first_failure(mutant, others)):
                yield mutant.name


def test_three_checks_call_request_with_many_values() -> None:
    assert len(OWN) == 3


@pytest.mark.parametrize("check", OWN, ids=lambda check: check.name)
def test_sound_publisher_passes(check: Check) -> None:
    assert Publishers().outcome(check).status == "passed"


@pytest.mark.parametrize("n", sorted(BY_DAY))
def test_fault_of_one_value_is_found(n: int) -> None:
    mutants = [item for item in MUTANTS if item.n == n]
    assert len(mutants) >= 4
    assert list(missed(mutants)) == []


@pytest.mark.parametrize(
    ("n", "kind", "values"),
    [(7, "one too many", "SIZES"), (2**31 + 1, "never met", "LARGE"), (-(2**40), "ignored", "INVALID")],
)
def test_fault_is_found_by_its_value_alone(n: int, kind: str, values: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the checks leave out the one value, they pass: nothing else accuses this publisher."""
    mutant = next(item for item in MUTANTS if (item.n, item.kind) == (n, kind))
    assert is_found(mutant, first_failure(mutant, OWN))
    monkeypatch.setattr(_publisher_values, values, [item for item in getattr(_publisher_values, values) if item != n])
    assert first_failure(mutant, OWN) is None


def found_of(mutants: list[ValueMutant], what: str, others: list[Check] = OTHERS) -> float:
    left = list(missed(mutants, others))
    print(*left[:10], sep="\n")
    share = 1 - len(left) / len(mutants)
    print(f"{what}: {len(mutants) - len(left)} of {len(mutants)} publishers wrong for one value are found, {share:.1%}")
    return share


@pytest.mark.nightly
@pytest.mark.timeout(3_600)
def test_faults_at_the_edges_are_found() -> None:
    assert found_of(MUTANTS, "at the edges") >= ENOUGH


@pytest.mark.nightly
@pytest.mark.timeout(3_600)
def test_share_of_random_faults_is_small() -> None:
    """By the checks that call `request` with many values; the others are not asked, which takes long."""
    assert found_of(RANDOM, "at random", others=[]) < ENOUGH, "docs/tck-evidence.md says that the kit misses these"
