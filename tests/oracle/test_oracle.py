"""Random chains mean here what they mean in RxJava and Reactor."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from oracle import ours, plans
from oracle.comparing import ROWS
from oracle.running import compare, explore
from oracle.theirs import Java

HERE = Path(__file__).parent
REGRESSIONS = json.loads((HERE / "regressions.json").read_text())
"""Plans that have shown a difference once."""


def test_a_thousand_chains_agree(java: Java) -> None:
    counts, differences = explore(java, 1000, random=14)
    assert not differences, differences[0]
    assert counts.chains == 1000
    assert counts.rows, "some rows were needed"
    assert not [row for row, fault in counts.excused if fault == "wrong"], "and none hides an element that is wrong"


@pytest.mark.parametrize(
    "name", ["window_until", "window_when", "window_time", "window_timeout", "buffer_when", "buffer_time", "sample"]
)
def test_chains_of_one_operator_agree(java: Java, name: str) -> None:
    counts, differences = explore(java, 100, random=14, operators=(name,))
    assert not differences, differences[0]
    assert counts.operators[name], "it was among them"


@pytest.mark.parametrize("name", list(REGRESSIONS))
def test_what_differed_once_agrees(java: Java, name: str) -> None:
    assert compare(java, REGRESSIONS[name]) == ""


def test_every_operator_of_the_catalogue_can_be_run_on_both_sides() -> None:
    assert set(plans.OPERATORS) == set(ours.OPERATORS)
    assert set(plans.SOURCES) == set(ours.SOURCES) - {"probe"}
    assert len({*plans.OPERATORS, *plans.SOURCES}) >= 70


def test_each_row_of_the_page_is_one_in_code_and_the_other_way_round() -> None:
    page = (HERE.parents[1] / "docs" / "differences.md").read_text()
    java = (HERE / "java" / "src" / "main" / "java" / "oracle" / "Oracle.java").read_text()
    told = re.findall(r"// row: ([a-z-]+)", java)
    in_code = [*{row.name for row in ROWS}, *plans.LEFT_OUT, *told]
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)) == sorted(in_code)


def test_a_difference_that_no_row_explains_is_found(java: Java) -> None:
    plan: Any = {"source": ["just", 1, 2], "ops": [["map", ["add", 1]]], "demand": 9, "refill": 0, "cancel_after": 0}
    plan |= {"steps": [], "until": plans.UNTIL}
    changed = {**plan, "ops": [["map", ["add", 2]]]}

    class Another:
        def run(self, plan: Any) -> Any:
            return java.run(changed)

    assert compare(java, plan) == ""
    assert compare(Another(), plan).startswith("signals")  # type: ignore[arg-type]
