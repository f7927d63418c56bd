"""Kills at random moments, of `stress`, `verify` and `--follow`: no false accusation, and nothing judged is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from spark.test_follow import arrives, counts

from reactive_runtime.report import load
from reactive_runtime.testing import check
from reactive_runtime.testing.trace import metadata_of, read_trace

KILLS = int(os.environ.get("TRACE_KILLS", "2"))
"""How often each is killed, at least; half of that for those that take Spark's time to start."""

SPARK_KILLS = (KILLS + 1) // 2

HANG = 300
"""Seconds after which a process has hung; on a machine with other work, Spark takes more than one minute to start."""

pytestmark = pytest.mark.timeout(HANG * (2 + KILLS))

COMMAND = [sys.executable, "-m", "reactive_runtime"]
SPARK = ["--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2"]

THEIRS = """
from reactive_runtime import Flow
from reactive_runtime.stress import scenario

@scenario(elements=200, live=6)
def from_thread_to_thread(context):
    return Flow.range(200).subscribe_on(context.pool(2, "A")).publish_on(context.pool(2, "B"), prefetch=4)

@scenario(elements=100, live=8)
def on_the_callers(context):
    return Flow.range(100).map(lambda n: n)
"""


def killed(command: list[str], log: Path, ready: Callable[[], bool], seconds: float) -> None:
    """Start it, wait until it is at work, let it work for so long, and kill it."""
    with log.open("wb") as told:
        job = subprocess.Popen(command, stdout=told, stderr=told, start_new_session=True)
        over = time.monotonic() + HANG
        while not ready():
            assert job.poll() is None, log.read_text()
            assert time.monotonic() < over
            time.sleep(0.005)
        time.sleep(seconds)
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def ended(folder: Path) -> bool:
    """Whether nothing is written there any more: who is killed takes a moment to be gone."""

    def seen() -> list[tuple[str, int]]:
        return sorted((str(item), item.stat().st_mtime_ns) for item in folder.glob("date=*/run=*/*"))

    before = seen()
    time.sleep(1.5)  # longer than between two files
    return seen() == before


@pytest.mark.parametrize("pool", ["threads", pytest.param("processes-per-scenario", marks=pytest.mark.nightly)])
def test_stress_that_is_killed_leaves_what_it_had_counted_and_accuses_no_publisher(tmp_path: Path, pool: str) -> None:
    (tmp_path / "theirs.py").write_text(THEIRS)
    rng = random.Random(KILLS)
    judged = 0
    for kill in range((KILLS + 1) // 2):
        out = tmp_path / f"runs-{kill}"
        load = ["stress", "--scenarios", tmp_path, "--seconds", "600", "--threads", "6", "--out", out, "--pool", pool]
        seen = 0

        def at_work(out: Path = out) -> bool:
            nonlocal seen
            seen = max([seen, *(int((metadata_of(run) or {}).get("records", 0)) for run in out.glob("date=*/run=*"))])
            return seen > 0

        killed([*COMMAND, *map(str, load)], tmp_path / "log", at_work, rng.uniform(0, 3))
        assert ended(out), "a process of it goes on"
        (run,) = out.glob("date=*/run=*")
        records = read_trace(run)
        assert (metadata_of(run) or {})["complete"] is False
        assert len(records) >= seen
        assert [str(item) for item in check(records, context=12)] == []
        judged += len(records)
    assert judged > 0


@pytest.mark.nightly
def test_verify_that_is_killed_leaves_the_verdict_as_it_was_or_as_it_will_be(tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    for number in range(3):
        arrives(runs, f"run-{number}", number + 2)
    command = [*COMMAND, "verify", str(runs), "--out", str(out), *SPARK]
    begin = time.monotonic()
    assert subprocess.run(command, capture_output=True, timeout=HANG, check=False).returncode == 1
    took = time.monotonic() - begin
    expected = {f"run=run-{number}": [("1.1", number + 1)] for number in range(3)}
    assert counts(out) == expected
    rng = random.Random(KILLS)
    for _ in range(SPARK_KILLS):
        killed(command, tmp_path / "log", (out / ".next").exists, rng.uniform(0, took / 10))
        report = load(out)  # as any reader may look, now
        assert report.verdict == "broken"
        assert sorted((item["run"], item["count"]) for item in report.broken) == [(f"run-{n}", n + 1) for n in range(3)]
        assert counts(out) == expected
        assert parquet_rows(out, "summary") == 3


def parquet_rows(out: Path, table: str) -> int:
    return sum(parquet.read_metadata(item).num_rows for item in out.glob(f"{table}/run=*/*.parquet"))


@pytest.mark.nightly
def test_follow_that_is_killed_goes_on_and_loses_and_doubles_nothing(tmp_path: Path) -> None:
    runs, out = tmp_path / "runs", tmp_path / "out"
    command = [*COMMAND, "verify", str(runs), "--out", str(out), "--follow", *SPARK]
    rng = random.Random(KILLS)
    expected: dict[str, Any] = {}
    for kill in range(SPARK_KILLS):
        for number in range(2):
            arrives(runs, f"run-{kill}-{number}", kill + number + 2)
            expected[f"run=run-{kill}-{number}"] = [("1.1", kill + number + 1)]
        offset = out / "checkpoint" / "offsets" / str(kill)
        killed(command, tmp_path / "log", offset.exists, rng.uniform(0, 6))
        for run, found in counts(out).items():
            assert found == expected[run]  # whatever is there is right
    done = subprocess.run([*command, "--once"], capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 0: all had been judged before
    assert counts(out) == expected
