"""The trace pipeline: the same verdict as the checker's, on every trace; and what it writes and refuses."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from breaches import BREACHES, INNOCENT, LARGE, TWO_RULES, element, named_lists, request, trace
from judges import by_reference, rows_of, same
from pyspark.sql import functions as F
from random_traces import LAYOUTS, dirty, likely, shuffled, written
from sinks import Sink
from spark.test_follow import arrives
from typer.testing import CliRunner

from reactive_runtime import Flow
from reactive_runtime._cli.commands import app
from reactive_runtime.errors import TraceError
from reactive_runtime.judging._compacting import compact
from reactive_runtime.judging._stores import FewFiles
from reactive_runtime.spark import Found, explain, judge_files, judge_frame, read_runs, summary, verify
from reactive_runtime.spark._verdict import judging, sources
from reactive_runtime.spark._verdict.percentiles import percentiles
from reactive_runtime.spark._verdict.regressions import FEWEST
from reactive_runtime.spark._verdict.tables import Draft, Together, settled, together
from reactive_runtime.spark._verdict.traces import TABLES
from reactive_runtime.testing import RULES, Record
from reactive_runtime.testing._latency import DEMAND
from reactive_runtime.testing.trace import TraceWriter, check_files, read_trace, table_of

LISTS = int(os.environ.get("JUDGE_TRACES", "200"))
"""Random lists of traces, of each kind, judged in each plan; 2,000 at night (`make nightly PART=judge`)."""


def in_tables(found: Found) -> Any:
    kept = found.kept()
    tables = {"subscriptions": kept.subscriptions, "violations": kept.violations, "waits": kept.waits}
    return rows_of({name: table.toArrow() for name, table in tables.items()})


def runs_of(named: dict[str, list[Record]]) -> list[Record]:
    """Each trace as a run of its own."""
    return [record._replace(run=name) for name, records in named.items() for record in records]


@pytest.mark.parametrize("make", [likely, dirty])
def test_random_traces_get_the_verdict_of_the_reference_in_every_plan(make: Any, spark: Any, tmp_path: Path) -> None:
    rng = random.Random(f"{make.__name__} spark")
    lists = {f"run {number}": make(rng, f"run {number}") for number in range(LISTS)}
    upto = {run: rng.choice(of).begin for run, of in lists.items() if rng.random() < 0.3}
    records = shuffled(rng, [item for of in lists.values() for item in of])
    expected = by_reference(records, 2, upto)
    files = written(tmp_path, "foreign", records, row_group_size=1_000)
    for way in ("ranges", "moved"):
        for most in (10_000, 4_000_000):
            found = judge_files(spark, files, late_signals=2, upto=upto, way=way, most=most)
            assert found.plan.startswith(way)
            same(in_tables(found), expected, records)
    found = judge_frame(read_any(spark, files), late_signals=2, upto=upto)
    assert found.plan.startswith("frame")
    same(in_tables(found), expected, records)


def test_order_is_by_value_beyond_64_bits_in_every_plan(spark: Any, tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, "run")
    for elements, _ in LARGE:
        writer.recorder().wrap(Flow.from_iterable(elements), ascending=True).subscribe(Sink())
    writer.close()
    files = check_files(tmp_path)
    ways = [judge_files(spark, files, way=way) for way in ("ranges", "moved")]
    for found in (*ways, judge_frame(read_any(spark, files)), judge_frame(read_runs(spark, [tmp_path]))):
        broken = {(row[2], row[3]) for row in in_tables(found)["violations"]}
        assert broken == {(number, rule) for number, (_, rules) in enumerate(LARGE) for rule in rules}
    with pytest.raises(TraceError, match="column 'large_value' should be of strings, and is bigint"):
        judge_frame(read_any(spark, files).withColumn("large_value", F.lit(1).cast("bigint")))


def read_any(spark: Any, files: Sequence[Path]) -> Any:
    """As Spark reads files of which it knows nothing, in partitions of its own."""
    return spark.read.parquet(*map(str, files)).repartition(3)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_gets_the_plan_that_costs_least_and_the_same_verdict(
    layout: str, spark: Any, tmp_path: Path
) -> None:
    one = trace(request(2, 3, 4), element(0, 5, 6), element(1, 7, 8), element(2, 9, 10))
    records = [item._replace(run=f"run {n % 2}", subscription=n) for n in range(200) for item in one]
    files = written(tmp_path, layout, shuffled(random.Random(1), records) if layout != "one file" else records)
    found = judge_files(spark, files, most=100)
    ways = {"many files": "ranges", "one file": "ranges"}
    assert found.plan.split(":")[0] == ways.get(layout, "moved"), found.plan
    same(in_tables(found), by_reference(records), records)
    assert explain(spark, [tmp_path]).startswith("ranges: 1,000 records")  # so few are not worth a second task


def test_compacted_runs_have_the_same_verdict_and_nothing_moves(spark: Any, tmp_path: Path) -> None:
    for name in ("one", "two"):
        writer = TraceWriter(tmp_path, name)
        flows = [Flow.range(40), Flow.from_iterable([3, 1, 2, 2]), Flow.error(OSError())] * 4
        for flow in flows:
            writer.recorder().wrap(flow, ascending=True).subscribe(Sink())
            writer.flush()
        writer.close()
    files = check_files(tmp_path)
    expected = in_tables(judge_files(spark, files))
    assert {row[3] for row in expected["violations"]} == {"order"}
    said: list[object] = []
    left = [run.left for run in compact(tmp_path, note=said.append, unable=said.append)]
    assert (left, len(files), said) == ([1, 1], 24, [])
    found = judge_files(spark, check_files(tmp_path), most=300)
    assert found.plan.startswith("ranges: ")
    same(in_tables(found), expected, read_trace(tmp_path))


def test_every_breach_is_found_and_nothing_else_is_accused(spark: Any) -> None:
    lists = named_lists()
    records = runs_of(lists)
    found = in_tables(judge_frame(spark.createDataFrame(table_of(records))))
    same(found, by_reference(records), records)
    assert {(row[0], row[3]): row[4] for row in found["violations"] if row[0] in BREACHES} == {
        (name, rule): count for name, (rule, count, _) in BREACHES.items()
    }
    assert not {row[0] for row in found["violations"]} & INNOCENT.keys()


def test_a_frame_of_other_types_and_older_columns_is_judged_and_one_that_is_no_trace_is_named(spark: Any) -> None:
    records = [item._replace(depth=0, late_signals=None) for item in likely(random.Random(9), most=20)]
    frame = spark.createDataFrame(table_of(records)).drop("depth", "late_signals")
    frame = frame.withColumn("begin", F.col("begin").cast("int")).withColumn("more", F.lit(1))
    same(in_tables(judge_frame(frame)), by_reference(records), records)
    with pytest.raises(TraceError, match="the DataFrame is no trace: it has no column 'thread', 'error'"):
        judge_frame(frame.drop("thread", "error"))
    with pytest.raises(Exception, match="column 'thread' has nulls"):
        judge_frame(frame.withColumn("thread", F.lit(None).cast("bigint"))).kept()


def test_a_damaged_file_is_named_by_the_task_that_reads_it(spark: Any, tmp_path: Path) -> None:
    files = written(tmp_path, "many files", likely(random.Random(1), most=40))
    planned = judge_files(spark, files)
    bytes_ = bytearray(files[1].read_bytes())
    bytes_[60:90] = bytes(30)
    files[1].write_bytes(bytes_)
    with pytest.raises(Exception, match=rf"{files[1].name}: is no whole Parquet file"):
        planned.kept()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two runs: one of a conformant flow, one of a trace that breaks 1.1."""
    writer = TraceWriter(tmp_path, "good")
    recorder = writer.recorder()
    publisher = recorder.wrap(Flow.range(100), "numbers", ascending=True, elements=100)
    for _ in range(5):
        publisher.subscribe(Sink())
    sink = Sink(demand=3, then=lambda sink, n: sink.subscription.cancel() if n == 2 else None)
    publisher.subscribe(sink)
    recorder.settle()
    writer.close({})
    (tmp_path / "bad").mkdir()
    broken = trace(request(1, 3, 4), *(element(n, 5 + 2 * n, 6 + 2 * n) for n in range(50)), run="bad")
    parquet.write_table(table_of(broken), tmp_path / "bad" / "signals-00000.parquet")
    return tmp_path


def good(folder: Path) -> Path:
    (run,) = folder.glob("date=*/run=good")
    return run


def test_verify_names_the_rule_shows_the_signals_and_writes_both_tables(spark: Any, folder: Path) -> None:
    verdict = verify(spark, [folder], folder / "verdict")
    assert not verdict.clean
    (found,) = verdict.violations
    assert (found["rule"], found["subscriptions"], found["count"]) == ("1.1", 1, 49)
    assert found["example"]["run"] == "bad"
    shown = verdict.examples["1.1"]
    assert (shown.rule, shown.first, shown.count) == ("1.1", found["example"]["first"], 49)
    assert shown.first in [item.begin for item in shown.around]
    written = spark.read.parquet(str(folder / "verdict" / "violations")).collect()
    assert [row["rule"] for row in written] == ["1.1"]
    assert spark.read.parquet(str(folder / "verdict" / "summary")).count() == 2


def test_a_breach_of_each_run_is_shown_by_the_tasks_plan(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "FEW", FewFiles(-1, -1))
    monkeypatch.setattr(sources, "_AROUND", 1)  # row group of each
    for number in range(4):
        arrives(tmp_path / "runs", f"run-{number}", number + 2)
    verify(spark, [tmp_path / "runs"], tmp_path / "out")
    shown = rows(tmp_path / "out", "examples")
    assert sorted(item["run"] for item in shown) == [f"run-{number}" for number in range(4)]
    assert all(">>          7 " in item["diagram"] for item in shown)


def test_verify_of_a_run_by_itself_is_clean(spark: Any, folder: Path, tmp_path: Path) -> None:
    verdict = verify(spark, [good(folder)], tmp_path / "out")
    assert verdict.clean
    (row,) = verdict.summary
    assert (row["scenario"], row["subscriptions"], row["elements"]) == ("numbers", 6, 503)
    assert (row["completed"], row["failed"], row["cancelled"]) == (5, 0, 1)
    assert (row["late_max"], row["silence_ns_max"]) == (0, 0)


def test_the_summary_measures_what_came_after_a_cancel(spark: Any) -> None:
    records = runs_of(
        {
            f"run {number}": trace(
                request(99, 3, 4),
                ("cancel", 5, 6, {"thread": 2, "end_ns": 1_000}),
                *(element(n, 7 + 2 * n, 8 + 2 * n, begin_ns=1_000 + 100 * (n + 1)) for n in range(late)),
            )
            for number, late in enumerate([0, 1, 3])
        }
    )
    rows = summary(judge_frame(spark.createDataFrame(table_of(records))).subscriptions).orderBy("run").collect()
    assert [(row["late_max"], row["silence_ns_max"]) for row in rows] == [(0, 0), (1, 100), (3, 300)]
    assert [row["late_p50"] for row in rows] == [0, 1, 3]


def test_latency_is_measured_from_demand_to_element_and_from_cancel_to_silence(spark: Any) -> None:
    records = trace(
        ("request", 3, 4, {"n": 1, "begin_ns": 1_000}),
        ("on_next", 5, 6, {"value": 0, "begin_ns": 4_000}),  # 3,000 ns after the request that it answers
        ("request", 7, 8, {"n": 2, "begin_ns": 5_000}),
        ("on_next", 9, 10, {"value": 1, "begin_ns": 15_000}),  # 10,000
        ("on_next", 11, 12, {"value": 2, "begin_ns": 99_000}),  # demand was outstanding
        ("request", 13, 14, {"n": 1, "begin_ns": 100_000}),
        ("request", 15, 16, {"n": 1, "begin_ns": 101_000}),
        ("on_next", 17, 18, {"value": 3, "begin_ns": 200_000}),  # of which request? not measured
        ("cancel", 19, 20, {"thread": 2, "end_ns": 300_000}),
        ("on_next", 21, 22, {"value": 4, "begin_ns": 300_700}),  # 700
        shared_callers=True,
    )
    counts = judge_frame(spark.createDataFrame(table_of(records))).waits.toArrow()
    found = {row["what"]: row for row in percentiles(counts).to_pylist()}
    wait, silence = found["demand → element"], found["cancel → silence"]
    assert (wait["count"], wait["p50"], wait["p99"], wait["max"]) == (2, 3_000, 10_000, 10_000)
    assert (silence["count"], silence["p50"], silence["max"]) == (1, 700, 700)
    buckets = {row["bucket"]: row["count"] for row in counts.to_pylist() if row["what"].startswith("demand")}
    assert sum(buckets.values()) == 2
    assert all(2 ** (bucket / 8) - 1 <= 10_000 for bucket in buckets)


def test_a_subscription_with_half_of_all_records_is_judged_as_the_others_are(spark: Any, tmp_path: Path) -> None:
    def subscription(number: int, elements: int) -> list[Record]:
        signals = [request(elements, 3, 4), *(element(n, 5 + 2 * n, 6 + 2 * n) for n in range(elements + 1))]
        return trace(*signals, subscription=number, run="skewed")

    records = [*subscription(0, 20_000), *(item for number in range(1, 201) for item in subscription(number, 100))]
    (tmp_path / "skewed").mkdir()
    parquet.write_table(table_of(records), tmp_path / "skewed" / "signals-00000.parquet")
    (found,) = verify(spark, [tmp_path], tmp_path / "verdict").violations
    assert (found["rule"], found["subscriptions"], found["count"]) == ("1.1", 201, 201)


def test_every_table_is_written_and_a_run_without_metadata_is_judged(spark: Any, folder: Path) -> None:
    verify(spark, [folder], folder / "verdict")
    tables = {name: parquet.read_table(folder / "verdict" / name).to_pylist() for name in TABLES}
    known = {row["run"]: row for row in tables["runs"]}
    assert (known["good"]["complete"], known["bad"]["complete"]) == (True, None)
    assert [row["rule"] for row in tables["examples"]] == ["1.1"]
    assert ">>" in tables["examples"][0]["diagram"]
    assert {row["run"] for row in tables["summary"]} == {"good", "bad"}
    assert {row["what"] for row in tables["latency"]} == {"demand → element", "cancel → silence"}


def test_a_folder_that_cannot_be_written_to_is_named(spark: Any, folder: Path) -> None:
    (folder / "file").write_text("in the way")
    with pytest.raises(TraceError, match=r"/file: can't be written: "):
        verify(spark, [good(folder)], folder / "file")


def test_reading_names_what_is_no_trace(spark: Any, folder: Path) -> None:
    with pytest.raises(TraceError, match="nowhere: is no folder"):
        read_runs(spark, [folder / "nowhere"])
    next(good(folder).glob("signals-*.parquet")).write_bytes(b"PAR1 and no more")
    with pytest.raises(TraceError, match=r"good/signals-00000\.parquet: is no whole Parquet file"):
        read_runs(spark, [folder])


# -- nights that one can trust ------------------------------------------------------------------------------------


def rows(out: Path, name: str) -> list[dict[str, Any]]:
    """A table of the verdict."""
    return [
        {**row, "run": file.parent.name.removeprefix("run=")}
        for file in sorted(out.glob(f"{name}/run=*/*.parquet"))
        for row in parquet.ParquetFile(file).read().to_pylist()
    ]


def test_a_run_that_is_found_twice_is_judged_once(spark: Any, folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "a copy"
    shutil.copytree(good(folder), copy)
    verdict = verify(spark, [folder, folder, good(folder), copy], tmp_path / "out")
    assert sum(item["subscriptions"] for item in verdict.summary if item["run"] == "good") == 6
    assert [(violation["rule"], violation["subscriptions"]) for violation in verdict.violations] == [("1.1", 1)]


def test_a_file_that_is_missing_accuses_no_publisher(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = TraceWriter(tmp_path / "runs", "cut")
    sink = Sink(demand=0)
    writer.recorder().wrap(Flow.range(100)).subscribe(sink)
    for _ in range(3):
        sink.subscription.request(20)
        writer.flush()
    writer.close({})
    file = writer.path / "signals-00001.parquet"
    whole = file.read_bytes()
    file.unlink()
    told: list[TraceError] = []
    assert verify(spark, [tmp_path / "runs"], tmp_path / "out", unreadable=told.append).summary == []
    assert ["signals-00001.parquet: is not there" in str(message) for message in told] == [True]
    file.write_bytes(whole)
    assert verify(spark, [tmp_path / "runs"], tmp_path / "out").clean


def test_a_verdict_is_on_the_disk_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[str, bool]] = []
    draft = Draft(tmp_path)

    def watched(file: int) -> None:
        synced.append((os.readlink(f"/proc/self/fd/{file}"), (tmp_path / ".commit").exists()))

    monkeypatch.setattr(os, "fsync", watched)
    draft.commit(Together(["a"]), ["a"], TABLES, [])
    word = str(draft.path / "verdict.json")
    assert synced == [(word, False), (str(draft.path), False), (str(tmp_path), True)]


def test_a_verdict_that_is_cut_off_before_it_is_whole_leaves_the_one_before(
    spark: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    verify(spark, [folder / "bad"], out)
    before = {name: rows(out, name) for name in TABLES}
    assert [item["rule"] for item in before["violations"]] == ["1.1"]

    class KilledError(BaseException):
        pass

    def killed(*_: Any) -> None:
        raise KilledError

    for step in ("add", "whole", "commit"):
        with monkeypatch.context() as patch:
            patch.setattr(Draft, step, killed)
            with pytest.raises(KilledError):
                verify(spark, [folder / "bad"], out)
        settled(out)
        assert {name: rows(out, name) for name in TABLES} == before


def test_a_verdict_that_is_whole_is_the_verdict_wherever_it_is_cut_off_as_it_is_moved(
    spark: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = tmp_path / "expected"
    verify(spark, [folder], expected)
    after = {name: rows(expected, name) for name in TABLES}
    earlier = tmp_path / "earlier"
    verify(spark, [folder / "bad"], earlier)

    class KilledError(BaseException):
        pass

    moves, rename = 0, Path.rename
    for step in itertools.count():
        out = tmp_path / f"out {step}"
        shutil.copytree(earlier, out)
        moves = 0

        def counted(path: Path, target: Path, step: int = step) -> Path:
            nonlocal moves
            moves += 1
            if moves == step + 2:  # the first makes it the verdict
                raise KilledError
            return rename(path, target)

        draft = Draft(out)
        for name in TABLES:
            if (expected / name).is_dir():
                shutil.copytree(expected / name, draft.path / name)
        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", counted)
            try:
                draft.commit(Together(["good", "bad"]), ["good", "bad"], TABLES, ["regressions"])
            except KilledError:
                pass
            else:
                break
        settled(out)
        settled(out)
        assert {name: rows(out, name) for name in TABLES} == after
        assert together(out) == Together(["good", "bad"])
    assert step > 5


def test_folders_whose_names_look_like_patterns_are_taken_as_they_are(spark: Any, folder: Path, tmp_path: Path) -> None:
    runs, out = tmp_path / "runs [of {all}*", tmp_path / "verdict [of {all}*"
    shutil.copytree(good(folder), runs / "run=good")
    assert verify(spark, [runs], out).clean
    assert read_runs(spark, [runs]).count() == read_runs(spark, [good(folder)]).count()


def test_there_is_one_verifier_a_folder(spark: Any, folder: Path, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom reactive_runtime.spark._verdict.tables import one_verifier\n"
        "with one_verifier(Path(sys.argv[1])):\n    print('at work', flush=True)\n    sys.stdin.read()\n"
    )
    out = tmp_path / "out"
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == "at work\n"
        with pytest.raises(TraceError, match=rf"out: a verifier is at work there \(process {other.pid} on "):
            verify(spark, [folder], out)
        other.kill()
        other.wait()
    assert verify(spark, [good(folder)], out).clean  # it is free when that is gone, however it went


def test_what_is_slower_is_named_and_is_exit_status_1_where_that_is_asked_for(spark: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for night in range(FEWEST + 1):
        facts = {"started": f"2026-11-{night:02}", "complete": True, "python": "3.11.7", "machine": "here"}
        amounts = {"subscriptions": 1, "signals": 1, "cancelled": 0, "late_max": 0, "late_inside_max": 0}
        rows = {
            "runs": facts,
            "summary": {"scenario": "", "broken": 0, **amounts},
            "latency": {"scenario": "", "what": DEMAND, "p50": 5_000},
        }
        for name, row in rows.items():
            (out / name / f"run={night}").mkdir(parents=True)
            parquet.write_table(pa.Table.from_pylist([row]), out / name / f"run={night}" / "part-0.parquet")
    run = tmp_path / "runs" / "date=2026-11-22" / "run=slow"
    run.mkdir(parents=True)
    waits = [
        signal
        for n in range(9)
        for signal in (
            ("request", 3 + 4 * n, 4 + 4 * n, {"n": 1, "begin_ns": 10**9 * n}),
            ("on_next", 5 + 4 * n, 6 + 4 * n, {"value": n, "begin_ns": 10**9 * n + 100_000}),
        )
    ]
    records = [item._replace(scenario="", run="slow") for item in trace(*waits)]
    parquet.write_table(table_of(records), run / "signals-00000.parquet")
    facts = {"run": "slow", "started": "2026-11-22", "complete": True, "python": "3.11.7", "machine": "here"}
    (run / "metadata.json").write_text(json.dumps({**facts, "files": {"signals-00000.parquet": len(records)}}))
    arguments = ["verify", str(tmp_path / "runs"), "--out", str(out), "--master", "local[2]"]
    said = CliRunner().invoke(app, arguments)
    assert (said.exit_code, "slower   " in said.output) == (0, True), said.output
    assert "100 µs, 20 times the usual, which is 5 µs, since run slow" in " ".join(said.output.split())
    assert CliRunner().invoke(app, [*arguments, "--fail-on-regression"]).exit_code == 1


def test_every_rule_of_the_table_is_judged() -> None:
    assert {rule for rule, _, _ in BREACHES.values()}.union(*(rules for rules, _ in TWO_RULES.values())) == set(RULES)
