"""Pieces of long subscriptions, spread over tasks, get the reference's verdict; and long ones are found by a sample."""

from __future__ import annotations

import os
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from judges import by_reference, rows_of, same
from listing import lists_each
from random_traces import dirty, likely, shuffled

from reactive_runtime.errors import TraceError
from reactive_runtime.judging import Rows, judge
from reactive_runtime.judging._here import together
from reactive_runtime.judging._long import Long, Pieces, before_each, counted, long_of, pieces_of, verdict_of
from reactive_runtime.testing import RULES, Record
from reactive_runtime.testing.trace import table_of

LISTS = int(os.environ.get("JUDGE_TRACES", "500"))
"""Random lists of records; 2,000 at night (`make nightly PART=judge`)."""


def long_in(rng: random.Random, records: list[Record]) -> tuple[Long, ...]:
    """Some of the subscriptions, each cut anywhere, also where it has no record."""
    found: dict[tuple[str, int], list[int]] = {}
    for record in records:
        found.setdefault((record.run, record.subscription), []).append(record.begin)
    chosen = rng.sample(sorted(found), rng.randint(1, len(found)))
    cuts = []
    for run, subscription in chosen:
        begins = found[run, subscription]
        first, last = min(begins), max(begins)
        width = max(1, min((last - first) // rng.randint(1, 6), 2**62))
        cuts.append(Long(run, subscription, first + rng.randint(-2, 2) * width, width, rng.randint(1, 8)))
    return tuple(item for item in cuts if -(2**63) <= item.first < 2**62) or (Long("none", 1, 0, 1, 1),)


def by_tasks(rng: random.Random, records: list[Record], long: tuple[Long, ...], late_signals: int) -> Any:
    """As tasks do it, whose rows come in several parts."""
    rows = Rows.of_table(table_of(shuffled(rng, records)))
    places = pieces_of(rows, long)
    tasks = rng.randint(1, 3)
    parts = [rows.where(np.flatnonzero((places >= 0) & (places % tasks == task))) for task in range(tasks)]
    settings: Any = (long, late_signals, {}, rng.choice([1, 5, 1_000]))
    summaries: dict[int, Any] = {}
    findings: dict[int, Any] = {}
    for mine in parts:
        with Pieces(*settings) as pieces:
            _fill(rng, pieces, mine)
            summaries.update((piece, pickle.dumps(of)) for piece, of in pieces.summed_up())
    before, totals = before_each(long, {piece: pickle.loads(of) for piece, of in summaries.items()})
    for mine in parts:
        with Pieces(*settings) as pieces:
            _fill(rng, pieces, mine)
            findings.update((piece, pickle.dumps(of)) for piece, of in pieces.judged(before.__getitem__))
    found = list(verdict_of(long, totals, {piece: pickle.loads(of) for piece, of in findings.items()}))
    rest = rows.where(np.flatnonzero(places < 0))
    return rows_of(together([*found, *([judge(rest, late_signals=late_signals)] if len(rest) else [])]))


def _fill(rng: random.Random, pieces: Pieces, rows: Rows) -> None:
    at = 0
    while at < len(rows):
        step = rng.randint(1, 9)
        pieces.add(rows.where(slice(at, at + step)))
        at += step


def test_pieces_spread_over_tasks_get_the_verdict_of_the_reference() -> None:
    broken: set[str] = set()
    for seed in range(10 * LISTS):  # until each rule was broken
        if seed >= LISTS and broken == set(RULES):
            break
        rng = random.Random(seed)
        records = rng.choice([likely, dirty])(rng)
        late_signals = rng.randint(0, 2)
        expected = by_reference(records, late_signals)
        broken |= {row[3] for row in expected["violations"]}
        same(by_tasks(rng, records, long_in(rng, records), late_signals), expected, records)
    lists_each("what these traces break", broken, RULES)


def test_a_cut_run_is_judged_up_to_its_ticket_in_pieces() -> None:
    for seed in range(LISTS // 5):
        rng = random.Random(seed)
        records = likely(rng)
        upto = {"run": rng.randint(1, max(record.begin for record in records))}
        long, rows = long_in(rng, records), Rows.of_table(table_of(records))
        with Pieces(long, 1, upto, 100) as pieces:
            pieces.add(rows.where(np.flatnonzero(pieces_of(rows, long) >= 0)))
            before, totals = before_each(long, dict(pieces.summed_up()))
        with Pieces(long, 1, upto, 100) as pieces:
            pieces.add(rows.where(np.flatnonzero(pieces_of(rows, long) >= 0)))
            found = list(verdict_of(long, totals, dict(pieces.judged(before.__getitem__))))
        numbers = {item.subscription for item in long}
        mine = [record for record in records if record.subscription in numbers]
        same(rows_of(together(found)), by_reference(mine, 1, upto), mine)


@pytest.mark.parametrize(
    ("first", "width", "pieces", "begin", "piece"),
    [
        (10, 5, 3, [-9, 0, 9, 10, 14, 15, 24, 25, 999], [0, 0, 0, 0, 0, 1, 2, 2, 2]),
        (-(2**63), 2**63, 2, [-(2**63), -1, 0, 2**63 - 1], [0, 0, 1, 1]),
        (2**63 - 2, 1, 5, [0, 2**63 - 2, 2**63 - 1], [0, 0, 1]),
        (0, 1, 1, [-(2**63), 2**63 - 1], [0, 0]),
    ],
)
def test_the_piece_of_a_record_is_that_of_its_ticket(
    first: int, width: int, pieces: int, begin: list[int], piece: list[int]
) -> None:
    assert Long("run", 1, first, width, pieces).piece(np.array(begin, np.int64)).tolist() == piece


def written(path: Path, numbers: list[int], group: int) -> Path:
    table = {"run": ["a"] * len(numbers), "subscription": numbers, "begin": list(range(len(numbers)))}
    parquet.write_table(pa.table(table), path, row_group_size=group)
    return path


def test_a_sample_of_row_groups_counts_the_long_ones_first(tmp_path: Path) -> None:
    numbers = [7 if at % 2 else at for at in range(16_000)]
    file = str(written(tmp_path / "a.parquet", numbers, 1_000))
    found = [row for batch in counted([(file, at) for at in range(16)]) for row in batch.to_pylist()]
    assert found[0] == {"run": "a", "subscription": 7, "count": 8_000, "least": 1, "most": 8_999}
    assert len(found) == 16


def test_a_file_that_is_none_is_named_by_the_count(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(TraceError, match=r"a\.parquet: is no whole Parquet file"):
        list(counted([(str(tmp_path / "a.parquet"), 0)]))


def test_long_subscriptions_are_cut_into_pieces_of_a_size() -> None:
    row: dict[str, int | str] = {"run": "a", "subscription": 1, "count": 95, "least": 100, "most": 199}
    assert long_of([row], 10) == (Long("a", 1, 100, 10, 10),)
    assert long_of([{**row, "least": 5, "most": 5}], 10) == (Long("a", 1, 5, 1, 1),)
    many = long_of([{**row, "subscription": number, "count": number} for number in range(200)], 10)
    assert [item.subscription for item in many] == list(range(199, 135, -1))
    assert long_of([{**row, "count": 10**12, "most": 10**13}], 10)[0].pieces == 2_000


def test_pieces_of_all_long_subscriptions_are_bounded_together() -> None:
    row: dict[str, int | str] = {"run": "a", "least": 0, "most": 10**13}
    for count in (1, 7, 64, 200):
        many = long_of([{**row, "subscription": number, "count": 10**9 + number} for number in range(count)], 10)
        assert 1_900 < sum(item.pieces for item in many) <= 2_000
    uneven = long_of([{**row, "subscription": number, "count": 10**number} for number in range(1, 64)], 10)
    assert sum(item.pieces for item in uneven) <= 2_000
    assert min(item.pieces for item in uneven) == 1
