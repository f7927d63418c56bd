"""Executors are killed at random moments of a verdict: it is the same, or ends with an error that says why.

With n kills at moments spread evenly, a moment that lasts a share p of a verdict, and can't bear a kill, stays unseen
with a chance of (1 - p)^n. A hundred kills find one of 3 percent with a chance of 95 percent: the night has as many.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from sinks import until
from spark.test_cluster import cluster
from spark.test_follow import arrives, counts

KILLS = int(os.environ.get("EXECUTOR_KILLS", "1"))
"""How many executors are killed, each in a verdict of its own."""

RUNS = 12 if KILLS > 1 else 3

pytestmark = pytest.mark.timeout(1_200 + 60 * KILLS)

JUDGES = """
import json, sys
from pathlib import Path
from reactive_runtime.judging._stores import FewFiles
from reactive_runtime.spark import session, verify
from reactive_runtime.spark._session.spark_session import BRIEF
from reactive_runtime.spark._verdict import judging

judging.FEW = FewFiles(-1, -1)  # all is planned by tasks
folder = Path(sys.argv[2])
spark = session(sys.argv[1], {**BRIEF, "spark.executor.memory": "512m", "spark.driver.memory": "1g",
                              "spark.sql.shuffle.partitions": "4"})
for _ in sys.stdin:
    print("begins", flush=True)
    try:
        found = verify(spark, [folder / "runs"], folder / "out")
        print(json.dumps([found.violations[0]["count"], len(found.summary)]), flush=True)
    except Exception as error:
        print(f"ended: {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
"""


def executors(groups: Iterable[int]) -> list[int]:
    """The executors in these groups of processes."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"CoarseGrainedExecutorBackend" in (process / "cmdline").read_bytes():
                pid = int(process.name)
                if os.getpgid(pid) in groups:
                    found.append(pid)
    return found


class Verdicts:
    """A driver that judges the same runs again and again."""

    def __init__(self, master: str, folder: Path) -> None:
        self.folder = folder
        for number in range(RUNS):
            arrives(folder / "runs", f"run-{number:02}", number + 2)
        command = [sys.executable, "-c", JUDGES, master, str(folder)]
        log = (folder / "log").open("wb")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
        log.close()

    def begin(self) -> None:
        assert self.process.stdin is not None
        print("judge", file=self.process.stdin, flush=True)
        assert self._line() == "begins"

    def judges_still(self, seconds: float) -> bool:
        """Whether the verdict that has begun does not end within these seconds."""
        assert self.process.stdout is not None
        return not select.select([self.process.stdout], [], [], seconds)[0]

    def end(self) -> str:
        return self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line, (self.folder / "log").read_text()[-4_000:]
        return line

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()  # which closes both pipes


def killed_again_and_again(verdicts: Verdicts, groups: list[int]) -> tuple[int, int]:
    """How many verdicts were whole, and how many ended with an error, of KILLS whose executor was killed meanwhile."""
    rng = random.Random(KILLS)
    expected = {f"run=run-{number:02}": [("1.1", number + 1)] for number in range(RUNS)}
    whole = json.dumps([sum(range(1, RUNS + 1)), RUNS])
    for _ in range(2):  # the second is as long as those that follow: the first starts the processes
        begin = time.monotonic()
        verdicts.begin()
        assert verdicts.end() == whole
        took = time.monotonic() - begin
    same = ended = idle = 0
    while same + ended < KILLS:
        until(lambda: len(executors(groups)) > 0)
        verdicts.begin()
        moment = rng.uniform(0, took)
        killed = verdicts.judges_still(moment) and killed_one_of(executors(groups), rng)
        line = verdicts.end()
        assert line == whole or line.startswith("ended: "), line
        same += killed and line == whole
        ended += killed and line != whole
        idle += not killed
        assert counts(verdicts.folder / "out") == expected  # this verdict, or the one before
        if killed and (same + ended) % 10 == 0:
            print(f"{same + ended} kills, {same} with the same verdict", flush=True)
    verdicts_of = f"{same} verdicts are the same, {ended} ended with an error"
    print(f"{KILLS} kills: {verdicts_of}; of {idle} more no executor was killed")
    return same, ended


def killed_one_of(there: list[int], rng: random.Random) -> bool:
    """Whether there was one."""
    if not there:
        return False
    try:
        os.kill(rng.choice(there), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def test_a_verdict_is_the_same_when_an_executor_is_killed(tmp_path: Path) -> None:
    verdicts = Verdicts("local-cluster[2,1,512]", tmp_path)
    try:
        assert killed_again_and_again(verdicts, [verdicts.process.pid]) == (KILLS, 0)
    finally:
        verdicts.close()


@pytest.mark.nightly
def test_a_verdict_is_the_same_when_executors_of_workers_are_killed(tmp_path: Path) -> None:
    with cluster(tmp_path, 2) as (address, workers):
        verdicts = Verdicts(address, tmp_path)
        try:
            same, ended = killed_again_and_again(verdicts, [*workers])
        finally:
            verdicts.close()
    assert same + ended == KILLS
    assert same > 0
