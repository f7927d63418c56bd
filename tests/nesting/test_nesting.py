"""Flows of flows end, and lose nothing: some cells of the grid by day, all of them by night."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nesting.cells import (
    CONSUMERS,
    FAILURES,
    INNERS,
    MAKERS,
    NOTHING,
    SOURCES,
    THE_SOURCE,
    Cell,
    Source,
    all_cells,
    is_of_an_earlier_cell,
    some_cells,
)
from nesting.readers import LEAVING, READERS
from nesting.watching import Watched, findings

BY_DAY = 1_000
MORE = some_cells(6 * BY_DAY)


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    made = Watched()
    yield made
    made.close()


@pytest.mark.parametrize("cell", MORE[:BY_DAY], ids=str)
def test_a_flow_of_flows_ends_and_loses_nothing(cell: Cell, watched: Watched) -> None:
    assert watched.finding(cell) is None


LATE = "windows of 1 - groups in it - {} of each - publish_on - {} - the source fails"
"""The window is dropped while the operator in it is about to subscribe, and its own subscriber has left."""


@pytest.mark.parametrize("source", ["here", "hot"])
@pytest.mark.parametrize("consumer", ["race", "merge"])
def test_a_refusal_is_not_at_the_hook_of_one_who_has_left(consumer: str, source: str, watched: Watched) -> None:
    cell = Cell(*LATE.format(consumer, source).split(" - "))
    assert [found for _ in range(20) if (found := watched.finding(cell)) is not None] == []


WITH_POOL = [
    cell for cell in MORE if cell.fails == NOTHING and (cell.source == "on a pool" or cell.inner == "a boundary")
]


@pytest.mark.parametrize("at", [1, 6])
@pytest.mark.parametrize("cell", WITH_POOL[:150], ids=str)
def test_a_pool_that_is_shut_down_ends_the_cell(cell: Cell, at: int, watched: Watched) -> None:
    assert watched.finding(cell, shut_down_at=at) is None


def test_only_an_error_that_a_source_failed_with_may_come_late() -> None:
    earlier, present = Source(-1_000_000, fails=THE_SOURCE), Source(-2_000_000)
    assert not is_of_an_earlier_cell(earlier.failure, present)
    with pytest.raises(OSError, match="one of -1000000 fails"):
        list(earlier.numbers())
    assert is_of_an_earlier_cell(earlier.failure, present)
    assert not is_of_an_earlier_cell(earlier.failure, earlier)
    assert not is_of_an_earlier_cell(OSError("another"), present)
    assert not is_of_an_earlier_cell(RuntimeError(*earlier.failure.args), present)


def test_the_cells_by_day_have_each_name() -> None:
    cells = some_cells(BY_DAY)
    assert cells == MORE[:BY_DAY]
    assert len(cells) == BY_DAY
    assert {cell.maker for cell in cells} == set(MAKERS)
    assert {cell.inner for cell in cells} == set(INNERS)
    assert {cell.consumer for cell in cells} == set(CONSUMERS)
    assert {cell.reader for cell in cells} == set(READERS | LEAVING)
    assert {cell.source for cell in cells} == set(SOURCES)
    assert {cell.fails for cell in cells} == set(FAILURES)


@pytest.mark.nightly
@pytest.mark.timeout(7_200)
def test_every_cell_ends_and_loses_nothing() -> None:
    found = [(cell, wrong) for cell, wrong in findings(all_cells()) if wrong is not None]
    assert found == []
