"""Plans from footers, memory that is bounded, the judge of runs on disk: however the files look, one verdict."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from breaches import LARGE, element, request, trace
from judges import by_reference, rows_of, same
from random_traces import LAYOUTS, dirty, likely, shuffled, written
from sinks import Sink
from strategies import record as call

from reactive_runtime import Flow
from reactive_runtime.errors import TraceError
from reactive_runtime.judging import Gathered, Rows, _examples, judge_runs, plan, shown
from reactive_runtime.judging._files import footers, read_range
from reactive_runtime.judging._here import judge_range, together
from reactive_runtime.testing import Record, check
from reactive_runtime.testing.trace import TraceWriter, read_trace, table_of

RUNS = 6


def recorded(seed: int, make: Any = likely, runs: int = RUNS) -> list[Record]:
    rng = random.Random(seed)
    return [item for number in range(runs) for item in make(rng, f"run {number}", 12)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("make", [likely, dirty])
@pytest.mark.parametrize("size", [30, 10_000])
def test_ranges_hold_each_record_once_and_whole_subscriptions(
    layout: str, make: Any, size: int, tmp_path: Path
) -> None:
    records = recorded(1, make)
    files = written(tmp_path, layout, records)
    planned = plan(files, most=size)
    assert planned.rows == len(records)
    assert planned.explain().startswith(f"{planned.way}: {len(records):,} records in ")
    seen: dict[tuple[str, int], int] = {}
    total = 0
    for number, span in enumerate(planned.ranges):
        for rows in read_range(span):
            total += len(rows)
            for record in rows.records(slice(None)):
                assert seen.setdefault((record.run, record.subscription), number) == number
    assert total == len(records)
    same(rows_of(judge_runs([tmp_path])), by_reference(records), records)
    same(rows_of(judge_runs([tmp_path], most=size)), by_reference(records), records)


@pytest.mark.parametrize(("elements", "rules"), LARGE)
def test_order_is_by_value_beyond_64_bits(elements: list[int], rules: list[str], tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run")
    for of in (elements, range(3)):
        writer.recorder().wrap(Flow.from_iterable(of), ascending=True).subscribe(Sink())
    writer.close()
    assert [item.rule for item in check(read_trace(tmp_path))] == rules
    for most in (2, 10_000):  # at once; and in parts, a record at a time
        found = judge_runs([tmp_path], most=most)
        assert found.violations["rule"].to_pylist() == rules
    assert [item.rule for item in shown([tmp_path], found)] == rules


def test_a_plan_reads_what_lies_together_once_and_moves_what_is_scattered(tmp_path: Path) -> None:
    records = [
        item
        for number in range(60)
        for item in trace(request(1, 3, 4), element(0, 5, 6), subscription=number, run="run")
    ]
    ways = {}
    for layout in ("many files", "overlapping", "no statistics"):
        (tmp_path / layout).mkdir()
        planned = plan(written(tmp_path / layout, layout, shuffled(random.Random(1), records)), most=20)
        ways[layout] = planned.way
        assert planned.rows == 180
    assert ways == {"many files": "ranges", "overlapping": "moved", "no statistics": "moved"}
    sorted_ = plan(sorted((tmp_path / "many files").glob("*/*.parquet")), most=20)
    assert len(sorted_.ranges) >= 8
    assert sorted_.again < 3
    (one,) = plan(sorted((tmp_path / "no statistics").glob("*/*.parquet"))).ranges
    assert one.rows == 180
    forced = plan(sorted((tmp_path / "many files").glob("*/*.parquet")), way="moved")
    assert forced.explain().startswith("moved: 180 records in ")


def test_a_long_subscription_has_a_range_of_its_own(tmp_path: Path) -> None:
    records = [
        call("on_next", 10 * at + 1, 10 * at + 2, run="run", subscription=30 if at % 2 else at // 4, value=at)
        for at in range(240)
    ]
    table = table_of(records)
    files = [tmp_path / f"signals-{number:05}.parquet" for number in range(20)]
    for number, file in enumerate(files):
        parquet.write_table(table.slice(12 * number, 12), file)
    assert plan(files, most=20).way == "moved"
    planned = plan(files, most=20, apart=True)
    assert planned.way == "ranges"
    assert (planned.ranges[0].low, planned.ranges[0].high, planned.ranges[0].rows) == (30, 30, len(records))
    held = [[one for rows in read_range(item) for one in rows.records(slice(None))] for item in planned.ranges]
    assert {one.subscription for one in held[0]} == {30}
    assert all(one.subscription != 30 for some in held[1:] for one in some)
    assert sorted(one.begin for some in held for one in some) == table["begin"].to_pylist()
    same(
        rows_of(together(part for item in planned.ranges for part in judge_range(item))), by_reference(records), records
    )


def test_at_least_so_many_ranges_where_there_is_enough(tmp_path: Path) -> None:
    files = written(tmp_path, "many files", recorded(2))
    assert len(plan(files).ranges) == RUNS
    assert len(plan(files, cores=12).ranges) > RUNS
    assert plan(files, cores=12).tasks == 12
    assert len(plan(files, cores=12, little=10_000).ranges) == RUNS


@pytest.mark.parametrize("most", [1, 7, 50, 5_000])
def test_rows_beyond_what_may_be_held_go_to_disk_and_get_the_same_verdict(most: int) -> None:
    records = recorded(3, dirty)
    cut = {"run 1": records[20].begin}
    mixed = shuffled(random.Random(4), records)
    with Gathered(late_signals=0, upto=cut, most=most) as gathered:
        for at in range(0, len(mixed), 31):
            gathered.add(Rows.of_table(table_of(mixed[at : at + 31])))
            assert gathered.held <= most
        same(rows_of(together(gathered.judged())), by_reference(records, 0, cut), records)
        folder = gathered.folder
    assert (folder is None) == (most >= len(records))
    assert folder is None or not folder.exists()


def test_what_is_shown_of_a_breach_is_what_the_checker_shows(tmp_path: Path) -> None:
    records = [
        *trace(request(1, 3, 4), *(element(n, 5 + 2 * n, 6 + 2 * n) for n in range(60)), run="bad", subscription=3),
        *trace(request(9, 3, 4), element(0, 5, 6), run="good"),
    ]
    written(tmp_path, "many files", records)
    judged = judge_runs([tmp_path])
    (found,) = shown([tmp_path], judged)
    assert (found.rule, found.run, found.subscription, found.first, found.count) == ("1.1", "bad", 3, 7, 59)
    assert ">>          7 " in str(found)


def test_no_more_is_read_for_a_breach_than_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = trace(request(1, 3, 4), *(element(n, 5 + 2 * n, 6 + 2 * n) for n in range(600)), run="bad")
    file = tmp_path / "signals-00000.parquet"
    parquet.write_table(table_of(records), file, row_group_size=100)
    judged = judge_runs([tmp_path])
    (whole,) = shown([tmp_path], judged)
    read: list[int] = []
    records_in = _examples._records

    def watched(file: str, number: int, *of: Any) -> list[Record]:
        read.append(number)
        found = records_in(file, number, *of)
        assert len(found) <= _examples._SHOWN
        return found

    monkeypatch.setattr(_examples, "_records", watched)
    monkeypatch.setattr(_examples, "_BEYOND", 50)
    groups = [*reversed(footers([file]))]
    (found,) = _examples.examples_in(groups, judged.violations.to_pylist())
    assert (str(found), read) == (str(whole), [0])  # of the others no record begins before those that are shown
    read.clear()
    monkeypatch.setattr(_examples, "_READ", 150)
    without = [replace(group, least=-(2**63)) for group in groups]  # as where there are no statistics
    (found,) = _examples.examples_in(without, judged.violations.to_pylist())
    assert (str(found), read) == (str(whole), [0, 1])


def test_a_file_that_is_no_trace_is_named(tmp_path: Path) -> None:
    files = written(tmp_path, "many files", recorded(6))
    files[0].write_bytes(b"PAR1")
    with pytest.raises(TraceError, match=r"signals-00000\.parquet: is no whole Parquet file"):
        footers(files)
    with pytest.raises(TraceError, match=r"signals-00000\.parquet: is no whole Parquet file"):
        judge_runs([tmp_path])
    table = table_of(recorded(7))
    at = table.column_names.index("thread")
    parquet.write_table(table.set_column(at, "thread", pa.nulls(len(table), pa.int64())), files[0])
    (item, *_) = plan(files[:1]).ranges
    with pytest.raises(TraceError, match=r"signals-00000\.parquet: is no trace: column 'thread' "):
        list(read_range(item))
