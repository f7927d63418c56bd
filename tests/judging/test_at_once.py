"""The verdict at once: without Spark, and held against Spark's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from breaches import element, request, trace

from reactive_runtime._cli.verdict_here import agree, judge_at_once
from reactive_runtime.errors import ReactiveError
from reactive_runtime.judging import judge_runs
from reactive_runtime.testing import Record
from reactive_runtime.testing.trace import table_of


def run_of(folder: Path, name: str, elements: int) -> Path:
    records: list[Record] = trace(
        request(1, 3, 4), *(element(n, 5 + 2 * n, 6 + 2 * n) for n in range(elements)), run=name
    )
    (folder / name).mkdir()
    parquet.write_table(table_of(records), folder / name / "signals-00000.parquet")
    (folder / name / "metadata.json").write_text(json.dumps({"run": name, "complete": True}))
    return folder / name


def sparks(verdict: Path, run: Path, violations: pa.Table) -> None:
    """The table of violations as Spark writes it."""
    (verdict / "violations" / run.name).mkdir(parents=True)
    parquet.write_table(violations.drop_columns(["run"]), verdict / "violations" / run.name / "part.parquet")


def test_clean_or_broken_is_said_and_shown_where_nothing_else_will(tmp_path: Path, capsys: Any) -> None:
    clean, broken = run_of(tmp_path, "clean", 1), run_of(tmp_path, "broken", 4)
    assert judge_at_once([clean], show=True).judged == {clean: {"scenario": set()}}
    assert capsys.readouterr().out.startswith("clean    no rule was broken; 3 signals and calls judged in ")
    here = judge_at_once([clean, broken], show=True, seed=7)
    assert here.judged == {clean: {"scenario": set()}, broken: {"scenario": {"1.1"}}}
    said = capsys.readouterr().out
    assert "BROKEN   rule 1.1, with seed 7; 9 signals and calls judged in " in said
    assert ">>          7 " in said
    judge_at_once([broken], show=False)
    assert ">>" not in capsys.readouterr().out
    (broken / "signals-00000.parquet").write_bytes(b"PAR1")
    here = judge_at_once([clean, broken], show=False)
    assert list(here.violations) == [clean]
    assert "is no whole Parquet file" in here.unable[0]


def test_two_verdicts_that_differ_are_an_error_that_names_both(tmp_path: Path, capsys: Any) -> None:
    clean, broken = run_of(tmp_path, "clean", 1), run_of(tmp_path, "broken", 4)
    here = judge_at_once([clean, broken], show=False)
    found = judge_runs([broken]).violations
    sparks(tmp_path / "same", broken, found)
    agree(here, tmp_path / "same")
    assert "agree    Spark and the judge of this process have found the same: 1 violation(s)" in capsys.readouterr().out
    counts = found.column_names.index("count")
    sparks(tmp_path / "other", broken, found.set_column(counts, "count", pa.array([2])))
    with pytest.raises(
        ReactiveError, match=r"of this process alone found rule 1\.1 broken 3 time.*Spark alone found .* 2 time"
    ):
        agree(here, tmp_path / "other")
    with pytest.raises(ReactiveError, match=r"the judge in Spark alone found nothing"):
        agree(here, tmp_path / "nothing")
    sparks(tmp_path / "more", clean, found)
    sparks(tmp_path / "more", broken, found)
    with pytest.raises(ReactiveError, match=r"of this process alone found nothing; the judge in Spark alone"):
        agree(here, tmp_path / "more")


def stress(*arguments: object) -> subprocess.CompletedProcess[str]:
    no_java = {**os.environ, "JAVA_HOME": "/nowhere"}
    command = [sys.executable, "-m", "reactive_runtime", "stress", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=no_java)


def test_the_local_engine_judges_without_java(tmp_path: Path) -> None:
    load = ("range_on_the_callers", "--seconds", "0.3", "--threads", "2", "--out", tmp_path, "--verify")
    done = stress(*load, "--engine", "local")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "clean    no rule was broken; " in done.stdout
    assert not (tmp_path / "verdict").exists()
    other = stress(*load, "--engine", "flink")
    assert (other.returncode, other.stderr) == (2, "reactive-runtime: --engine flink: should be spark, or local\n")
    report = stress(*load, "--engine", "local", "--report", tmp_path / "report.html")
    assert report.returncode == 2
    assert "--engine local: --report and --fail-on-regression need the tables that Spark writes" in report.stderr
