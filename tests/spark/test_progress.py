"""The lines that say how far a verdict has come."""

from __future__ import annotations

import queue
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reactive_runtime.spark._verdict import progress
from reactive_runtime.spark._verdict.planning import Kept, PlannedInTasks
from reactive_runtime.spark._verdict.progress import Progress

pytestmark = pytest.mark.spark

SECONDS = 120.0


def test_progress_counts_the_tasks_that_have_ended_and_those_that_run(spark: Any, tmp_path: Path) -> None:
    gate = tmp_path / "open"
    file = str(gate)

    def all_but_the_first_wait(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            until = time.monotonic() + SECONDS
            while batch.column(0)[0].as_py() and not Path(file).exists() and time.monotonic() < until:
                time.sleep(0.01)
            yield batch

    lines: queue.Queue[str] = queue.Queue()
    with ThreadPoolExecutor(1) as pool:
        with Progress(spark, lines.put, every=0.05):
            rows = pool.submit(spark.range(0, 4, 1, 4).mapInArrow(all_but_the_first_wait, "id long").count)
            try:
                while not re.fullmatch(r"1 of 4 tasks have ended, [123] run; \d+ s so far", lines.get(timeout=SECONDS)):
                    pass
            finally:
                gate.touch()
            assert rows.result(SECONDS) == 4
        said = lines.qsize()
    assert lines.qsize() == said  # none behind its end


def test_progress_says_nothing_while_no_task_runs(spark: Any) -> None:
    lines: list[str] = []
    with Progress(spark, lines.append, every=0.001) as progress:
        assert progress._line() == ""
    assert lines == []


def test_a_dry_run_counts_executors_that_have_come_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = iter([2, 8])
    how = PlannedInTasks("ranges", cast(Any, None), 16, 10**8, 10**9, 1, 1, 0, 16, 1.0, 10**6)
    runs = SimpleNamespace(kept=Kept(), count=1)
    monkeypatch.setattr(progress, "cores_of", lambda _: next(cores))
    monkeypatch.setattr(progress, "plan_runs", lambda *_, **__: runs)
    monkeypatch.setattr(progress, "plan_runs_found", lambda *_: how)
    assert progress.estimate(cast(Any, None), [], print).cores == 8
