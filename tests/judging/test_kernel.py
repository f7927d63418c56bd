"""The fast judge gives the reference's verdict, row by row: rules, counts, firsts, amounts and how long things took."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from breaches import BREACHES, TWO_RULES, element, named_lists, request, trace
from judges import by_reference, rows_of, same
from listing import lists_each
from random_traces import dirty, likely, shuffled

from reactive_runtime.errors import TraceError
from reactive_runtime.judging import Rows, judge
from reactive_runtime.judging._kernel import BREAKS
from reactive_runtime.judging._rows import PACKED
from reactive_runtime.testing import RULES, Record, check
from reactive_runtime.testing._records import in_order
from reactive_runtime.testing._reference import CONDITIONS
from reactive_runtime.testing.trace import table_of

LISTS = int(os.environ.get("JUDGE_TRACES", "500"))
"""Random lists of traces, of each kind; 2,000 at night (`make nightly PART=judge`)."""

BATCH = 50
"""Lists that are judged in one go, each a run."""


def batches(make: Callable[..., list[Record]], seed: int) -> Any:
    """So many lists, some of them to be cut; the records of a batch come in any order."""
    for batch in range(LISTS // BATCH):
        rng = random.Random(f"{seed} {batch}")
        lists = {f"run {number}": make(rng, f"run {number}") for number in range(BATCH)}
        upto = {run: rng.choice(of).begin for run, of in lists.items() if rng.random() < 0.3}
        yield shuffled(rng, [item for of in lists.values() for item in of]), rng.randint(0, 2), upto


@pytest.mark.parametrize("make", [likely, dirty])
def test_random_traces_get_the_verdict_of_the_reference(make: Any) -> None:
    broken = set()
    for records, late_signals, upto in batches(make, 1):
        expected = by_reference(records, late_signals, upto)
        same(rows_of(judge(Rows.of_table(table_of(records)), late_signals=late_signals, upto=upto)), expected, records)
        broken |= {row[3] for row in expected["violations"]}
    lists_each(f"what traces of {make.__name__}() in tests/random_traces.py break", broken, RULES)


@pytest.mark.parametrize("make", [likely, dirty])
def test_the_reference_accuses_as_the_checker_shows(make: Any) -> None:
    for records, late_signals, _ in batches(make, 2):
        found = {
            (item.run, item.scenario, item.subscription, item.rule, item.count, item.first)
            for item in check(records, late_signals=late_signals)
        }
        assert found == set(by_reference(records, late_signals)["violations"])
        break


def test_every_breach_is_found_and_nothing_else_is_accused() -> None:
    lists = named_lists()
    records = [item._replace(run=name) for name, of in lists.items() for item in of]
    found = judge(Rows.of_table(table_of(records)))
    same(rows_of(found), by_reference(records), records)
    rules: dict[str, set[str]] = {}
    for row in found.violations.to_pylist():
        rules.setdefault(row["run"], set()).add(row["rule"])
    assert rules == {name: {rule} for name, (rule, _, _) in BREACHES.items()} | {
        name: broken for name, (broken, _) in TWO_RULES.items()
    }


def test_each_rule_of_the_table_has_a_function_in_both_judges() -> None:
    lists_each("reactive_runtime/testing/_reference.py", {rule for of in CONDITIONS.values() for rule, _ in of}, RULES)
    assert list(BREAKS) == list(RULES)
    lists_each("reactive_runtime/judging/_kernel.py", {rule for rule, judges in BREAKS.items() if judges}, RULES)


def test_rows_travel_packed_and_come_back() -> None:
    rng = random.Random(3)
    records = [item for number in range(20) for item in dirty(rng, f"run {number}")]
    rows = Rows.of_table(table_of(records))
    half = len(rows) // 2
    batches = [item.packed() for item in (rows.where(slice(half)), rows.where(slice(half, None)))]
    assert all(batch.schema == PACKED for batch in batches)
    again = Rows.together([Rows.of_packed(batch) for batch in batches])
    same(rows_of(judge(again)), by_reference(records), records)
    known = list(rows.records(slice(None)))
    assert by_reference(known) == by_reference(records)


@pytest.mark.parametrize("layout", ["strings", "dictionaries", "large strings", "small numbers", "chunks", "old"])
def test_columns_of_any_layout_are_read(layout: str) -> None:
    records = [item for number in range(5) for item in likely(random.Random(number), f"run {number}")]
    if layout == "old":
        records = [record._replace(depth=0, late_signals=None) for record in records]
    table = table_of(records)
    words = ("run", "scenario", "signal", "error")
    for name in words if layout in ("dictionaries", "large strings") else ():
        at = table.column_names.index(name)
        column = table[name].dictionary_encode() if layout == "dictionaries" else table[name].cast(pa.large_string())
        table = table.set_column(at, name, column)
    if layout == "small numbers":
        for name in ("subscription", "thread", "begin", "end"):
            table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.int32()))
    if layout == "chunks":
        table = pa.concat_tables([table.slice(at, 7) for at in range(0, len(table), 7)])
    if layout == "old":
        table = table.drop_columns(["depth", "late_signals"])
    same(rows_of(judge(Rows.of_table(table.select(sorted(table.column_names))))), by_reference(records), records)


@pytest.mark.parametrize("name", ["run", "subscription", "begin", "thread", "ascending"])
def test_a_column_that_must_not_have_nulls_is_named(name: str) -> None:
    table = table_of(trace(request(1, 3, 4)))
    at = table.column_names.index(name)
    holes = table.set_column(at, name, pa.nulls(len(table), table[name].type))
    with pytest.raises(TraceError, match=rf"column '{name}' has nulls"):
        Rows.of_table(holes)
    with pytest.raises(TraceError, match=name):
        Rows.of_table(table.drop_columns([name]))
    with pytest.raises(TraceError, match=name):
        Rows.of_table(table.set_column(at, name, pa.array([b"x"] * len(table))))


def test_nothing_is_judged_of_nothing() -> None:
    assert [len(item) for item in judge(Rows.of_table(table_of([])))] == [0, 0, 0]


def test_a_cut_accuses_of_no_absence() -> None:
    records = trace(
        request(9, 3, 4),
        ("on_next", 5, 20, {"value": 0}),
        ("request", 6, 21, {"n": 1}),
        ("settled", 30, 31),
        elements=9,
    )
    assert [item.rule for item in check(records)] == ["3.8"]
    never = [
        record._replace(end=None) if record.signal == "request" and record.begin == 6 else record for record in records
    ]
    assert {item.rule for item in check(never)} == {"3.2", "3.8"}
    for these in (records, never):
        for upto in range(1, 30):
            assert check(these, upto=upto) == []
            assert len(judge(Rows.of_table(table_of(these)), upto={"run": upto}).violations) == 0


def test_records_that_begin_together_are_judged_in_one_order_however_they_are_found() -> None:
    records = trace(request(1, 3, 4), element(0, 5, 6), element(0, 5, 6, thread=2), ("cancel", 5, 5), request(0, 5, 7))
    expected = by_reference(records)
    for seed in range(20):
        mixed = shuffled(random.Random(seed), records)
        assert in_order(mixed) == in_order(records)
        same(rows_of(judge(Rows.of_table(table_of(mixed)))), expected, records)


def test_of_two_that_end_at_one_ticket_the_first_to_begin_counts() -> None:
    inside = ("cancel", 6, 10)
    outside = ("cancel", 7, 10, {"thread": 2})
    cancels = trace(request(9, 3, 4), element(0, 5, 20), inside, outside, element(1, 30, 31), shared_callers=True)
    calls = trace(request(1, 3, 10), request(1, 4, 10, thread=2), request(1, 5, 6))
    for records, broken in ((cancels, {("1.8", 1)}), (calls, {("2.7", 1)})):
        assert {(item.rule, item.count) for item in check(records)} == broken
        same(rows_of(judge(Rows.of_table(table_of(records)))), by_reference(records), records)
