"""The kit is tested: each check passes what is conformant, and fails what breaks its rule, by name."""

from __future__ import annotations

from collections import Counter

import pytest
from listing import lists_each

from reactive_runtime.rules import RULES
from reactive_runtime.tck import Check, Verification
from tck.broken import MUTANTS, Blackbox, Mutant, Processors, Publishers, Whitebox
from tck.page import table_is

CONFORMANT: list[Verification] = [Publishers(), Whitebox(), Blackbox(), Processors()]
CHECKS = {check.name: check for verification in CONFORMANT for check in verification.checks()}
NOT_OFFERED = {  # the conformant processor sends an element out when all have asked for one
    "extra_spec304_a_request_of_one_subscriber_must_return_while_another_is_busy",
    "optional_spec111_registered_subscribers_must_receive_on_next_or_on_complete_signals",
    "optional_spec111_multicast_must_produce_the_same_elements_in_the_same_sequence_to_all_of_its_subscribers_when_requesting_one_by_one",
}


def named(parameter: object) -> str | None:
    if isinstance(parameter, Mutant):
        return f"{parameter.name}-{CHECKS[parameter.check].rule}"
    return type(parameter).__name__ if isinstance(parameter, Verification) else None


@pytest.mark.parametrize("verification", CONFORMANT, ids=named)
def test_what_is_conformant_passes(verification: Verification) -> None:
    verification.default_timeout = verification.call_timeout = verification.publisher_reference_gc_timeout = 3.0
    verification.default_no_signals_timeout = 0.05
    not_passed = {outcome.check.name: outcome.why for outcome in verification.outcomes() if outcome.status != "passed"}
    for name in [name for name in not_passed if CHECKS[name].kind == "untested"]:
        assert CHECKS[name].rule in not_passed.pop(name)
    if isinstance(verification, Processors):
        assert set(not_passed) <= NOT_OFFERED
    else:
        assert not_passed == {}


@pytest.mark.parametrize("mutant", MUTANTS, ids=named)
def test_what_breaks_a_rule_is_caught_by_the_check_for_it(mutant: Mutant) -> None:
    verification = mutant.make()
    verification.default_poll_timeout = 0.1  # how long a race is given to be lost
    check = CHECKS[mutant.check]
    outcome = verification.outcome(check)
    optional = check.kind == "optional" and outcome.status == "skipped"
    assert outcome.status == "failed" or optional, outcome
    rule = mutant.rule or check.rule
    assert f"rule {rule}: {RULES[rule]}" in outcome.why
    assert outcome.rule == ("" if optional else rule)
    assert "seen: " in outcome.why
    assert "signals" in outcome.why


def test_every_check_has_something_that_it_catches() -> None:
    caught = {mutant.check for mutant in MUTANTS}
    lists_each("tests/tck/broken.py", caught, {name for name, check in CHECKS.items() if check.kind != "untested"})


def test_the_table_of_the_docs_is_true() -> None:
    rows = {}
    for check in CHECKS.values():
        for mutant in (item for item in MUTANTS if item.check == check.name):
            says = mutant.says[0].lower() + mutant.says[1:]
            rows[check.name, mutant.name] = f"| {check.rule} | `{check.name}` | `{mutant.name}`: {says} |"
    table_is("broken", rows.values())


def test_there_are_no_fewer_than_sixty_broken_implementations() -> None:
    assert len({mutant.name for mutant in MUTANTS}) >= 60


def test_every_check_of_the_original_is_there() -> None:
    counts = [Counter(check.original for check in verification.checks()) for verification in CONFORMANT]
    assert [count[True] for count in counts] == [38, 27, 26, 38 + 27 + 3]  # tests/jvm holds the names to the original


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda check: check.name)
def test_a_check_says_which_rule_it_is_about(check: Check) -> None:
    assert check.rule in RULES
    digits = check.name.partition("_spec")[2].partition("_")[0]
    assert not digits or check.rule == f"{digits[0]}.{int(digits[1:])}"
