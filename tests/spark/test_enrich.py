"""The worked job: every row enriched once, however often the service is busy, and however the job was ended."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sinks import until

from examples.spark_enrich.job import IN_FLIGHT, run
from examples.spark_enrich.service import service

pytestmark = pytest.mark.timeout(300)


class StopError(Exception):
    """The job ends half way."""


def test_a_job_that_ended_half_way_goes_on_where_it_was(spark: Any, tmp_path: Path) -> None:
    def stops(part: int) -> None:
        if part == 1:
            raise StopError

    def written() -> list[tuple[int, str]]:
        return sorted((row["id"], row["name"]) for row in spark.read.parquet(str(tmp_path)).collect())

    told: list[int] = []
    with service() as address:
        with pytest.raises(StopError):
            run(spark, address, 40, tmp_path, 4, 1_000_000, stops)
        assert written() == [(n, f"customer {n}") for n in range(20)]
        metrics = run(spark, address, 40, tmp_path, 4, 1_000_000, told.append)
    assert told == list(range(4))
    assert metrics.given == 20
    assert 1 <= metrics.in_flight <= IN_FLIGHT
    assert written() == [(n, f"customer {n}") for n in range(40)]


@pytest.mark.nightly
def test_a_job_that_was_killed_half_way_goes_on_where_it_was(spark: Any, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "examples.spark_enrich",
        "--rows",
        "4000",
        "--parts",
        "400",
        "--out",
        str(tmp_path),
    ]
    job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: (tmp_path / "part=2").exists() or job.poll() is not None)
        assert job.poll() is None
    finally:
        job.send_signal(signal.SIGKILL)
        job.wait()
    there = len(list(tmp_path.glob("part=*")))
    assert 3 <= there < 400
    for part in range(there, 397):  # a part is a part: the last three show the rest
        (tmp_path / f"part={part}").mkdir()
    with service() as address:
        told: list[int] = []
        metrics = run(spark, address, 4000, tmp_path, 400, 1_000_000, told.append)
    assert told == list(range(400))
    assert metrics.given == 30
    assert 1 <= metrics.in_flight <= IN_FLIGHT
    found = spark.read.parquet(*(str(item) for item in tmp_path.glob("part=*") if any(item.iterdir())))
    rows = sorted((row["id"], row["name"]) for row in found.collect())
    assert rows == [(n, f"customer {n}") for n in [*range(10 * there), *range(3970, 4000)]]
