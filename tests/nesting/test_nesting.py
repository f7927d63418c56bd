"""Flows of flows end, and lose nothing: some cells of the grid by day, all of them by night."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nesting.cells import CONSUMERS, INNERS, MAKERS, SOURCES, Cell, all_cells, some_cells
from nesting.readers import LEAVING, READERS
from nesting.watching import Watched, findings

BY_DAY = 1_000


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    made = Watched()
    yield made
    made.close()


@pytest.mark.parametrize("cell", some_cells(BY_DAY), ids=str)
def test_a_flow_of_flows_ends_and_loses_nothing(cell: Cell, watched: Watched) -> None:
    assert watched.finding(cell) is None


WITH_POOL = [cell for cell in some_cells(3 * BY_DAY) if cell.source == "on a pool" or cell.inner == "a boundary"]


@pytest.mark.parametrize("at", [1, 6])
@pytest.mark.parametrize("cell", WITH_POOL[:150], ids=str)
def test_a_pool_that_is_shut_down_ends_the_cell(cell: Cell, at: int, watched: Watched) -> None:
    assert watched.finding(cell, shut_down_at=at) is None


def test_the_cells_by_day_have_each_name() -> None:
    cells = some_cells(BY_DAY)
    assert len(cells) == BY_DAY
    assert {cell.maker for cell in cells} == set(MAKERS)
    assert {cell.inner for cell in cells} == set(INNERS)
    assert {cell.consumer for cell in cells} == set(CONSUMERS)
    assert {cell.reader for cell in cells} == set(READERS | LEAVING)
    assert {cell.source for cell in cells} == set(SOURCES)


@pytest.mark.nightly
@pytest.mark.timeout(7_200)
def test_every_cell_ends_and_loses_nothing() -> None:
    found = [(cell, wrong) for cell, wrong in findings(all_cells()) if wrong is not None]
    assert found == []
