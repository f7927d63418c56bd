"""The maps of names are true: what stands on the left is an operator there, what stands on the right is one here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import reactivex
from reactivex import operators

from reactive_runtime import Flow

PAGES = ("from-rxpy", "from-reactor")


def rows(page: str) -> list[tuple[str, str]]:
    """The first two columns of the map of names."""
    _, _, table = Path(f"docs/how-to/{page}.md").read_text().partition("<!-- names")
    return re.findall(r"^\| `(\w+)` \| `(\w+)` \|", table.partition("\n## ")[0], re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_what_stands_on_the_right_is_a_member_of_flow(page: str) -> None:
    assert len(rows(page)) > 50
    assert [ours for _, ours in rows(page) if not hasattr(Flow, ours)] == []


def test_what_stands_on_the_left_is_an_operator_of_rxpy() -> None:
    assert [theirs for theirs, _ in rows("from-rxpy") if not hasattr(operators, theirs)] == []
    assert reactivex.__version__


def test_what_stands_on_the_left_is_a_method_of_reactor() -> None:
    """As far as that can be seen without a JVM: it is written as Java writes it, and stands there once."""
    theirs = [name for name, _ in rows("from-reactor")]
    assert len(set(theirs)) == len(theirs)
    assert [name for name in theirs if not re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", name)] == []
