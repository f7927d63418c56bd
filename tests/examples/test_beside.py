"""The six programs of `make bench PART=beside`: every way in Python gives the result of its program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
try:
    from beside_programs import DEPTH, RESULTS, WAITED, WAYS, close, stream  # type: ignore[import-not-found]
finally:
    sys.path.pop(0)

PAIRS = [(program, peer) for program, ways in WAYS.items() for peer in ways]


@pytest.fixture
def threads() -> Iterator[None]:
    yield
    close()


@pytest.mark.parametrize(("program", "peer"), PAIRS)
def test_each_way_of_a_program_has_its_result(program: str, peer: str, threads: None) -> None:
    for n in (0, 1, 100):
        assert WAYS[program][peer](n) == RESULTS[program](n)


@pytest.mark.parametrize("peer", ["reactive_runtime", "queue.Queue", "asyncio.Queue"])
def test_rows_before_a_slow_consumer_are_bounded(peer: str, threads: None) -> None:
    WAYS["slow"][peer](600)
    assert WAITED[0] <= DEPTH + 2  # and one in the hands of each side


def test_every_program_has_ours_and_a_peer() -> None:
    assert set(WAYS) == set(RESULTS)
    assert all("reactive_runtime" in ways and len(ways) > 2 for ways in WAYS.values())


def test_aiostream_has_its_ways() -> None:
    if stream is None:
        pytest.skip("aiostream is not installed: its ways are left out")
    assert [program for program, ways in WAYS.items() if "aiostream" in ways] == [
        "chain", "calls", "short calls", "flatten", "slow",
    ]  # fmt: skip
