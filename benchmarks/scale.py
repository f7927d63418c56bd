"""The cost of the verdict as records, runs and machines become more; and whether it is the right one.

python benchmarks/scale.py [--unit 10000000] [--runs 100] [--run-records 1000000] [--one 8000000] [--rounds 2]
    [--only local]

Records are judged from their folders to the verdict, by `local[2]` and by a standalone cluster of a master and two
workers with a core each, on this machine, in turn, warm:

    once, twice and four times `--unit` records of one run, whose subscriptions are alike;
    `--runs` runs of `--run-records` each, in each of which one subscription has half of the records;
    one run of `--unit` records, of which one subscription has half;
    one run in which a subscription has `--one` records: more than a task holds, it is judged in pieces; four times
    whatever `--rounds` says.

Each is judged twice a round: as it is, where nothing breaks a rule, and with one run in which a subscription breaks
1.1: the one that has half of the records, where there is one. The time is the median of all. A wrong verdict is
printed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
from made_traces import LENGTH, Run, ended, processor_seconds, write_all
from rich.table import Table
from side_by_side import console

from reactive_runtime.spark import judge_files, session
from reactive_runtime.testing.trace import check_files

PATIENCE = 120.0
"""Seconds that a cluster may take to begin, and a session to end."""

WARM = 3
"""Times that each judges something that does not count, before anything does."""

SKEWED = 1.3
"""The factor that a run may cost of which one subscription has half, beside as many records that are alike."""

LINEAR = 0.05
"""How far the time of four times the records may lie above four times the time."""

# -- what is judged -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """Runs that keep all rules, and the same with one of them in another version, which breaks one."""

    what: str
    clean: Sequence[Run]
    broken: Sequence[Run]

    @property
    def records(self) -> int:
        return sum(run.records for run in self.clean)


def with_one_broken(what: str, runs: Sequence[Run], which: int, *numbers: int) -> Data:
    """`numbers`: the subscriptions of that run that break a rule in the other version."""
    item = runs[which]
    broken = Run(item.name, item.subscriptions, item.first, item.long, numbers, item.length)
    return Data(what, runs, [*runs[:which], broken, *runs[which + 1 :]])


def growing(unit: int) -> list[Data]:
    """Once, twice and four times as many records of one run."""
    each = unit // LENGTH
    parts = [Run("alike", each, first=part * each) for part in range(4)]
    return [with_one_broken("alike", parts[:many], 0, 1, each // 2) for many in (1, 2, 4)]


def skewed(runs: int, records: int) -> Data:
    """Runs in each of which one subscription has half of the records. In one run, that one breaks a rule."""
    of = [Run(f"skewed-{number:03}", records // 2 // LENGTH, long=records // 2) for number in range(runs)]
    longest = of[runs // 3].longest
    assert longest is not None
    return with_one_broken(f"{runs} run{'s' * (runs > 1)}, half in one", of, runs // 3, longest)


def beyond(records: int) -> Data:
    """One subscription of so many records, and a few others."""
    run = Run("beyond", 64, long=records)
    return with_one_broken("one subscription", [run], 0, 64)


@dataclass(frozen=True)
class Verdict:
    """The breaches that a judge has to find in the runs, and those it found."""

    subscriptions: int
    elements: int
    violations: list[tuple[str, int, str, int, int]]

    @classmethod
    def due(cls, runs: Sequence[Run]) -> Verdict:
        """The breaches that the records have."""
        found = sorted(finding for run in runs for finding in run.findings())
        return cls(sum(len(run.numbers) for run in runs), sum(run.elements for run in runs), found)


class Written:
    """Runs on disk, each once, whatever it is a part of; removed at the end."""

    def __init__(self, data: Iterable[Data]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="scale-")
        runs = list(dict.fromkeys(run for datum in data for run in (*datum.clean, *datum.broken)))
        begin = time.perf_counter()
        folders = [Path(self._folder.name) / f"{number:04}" for number in range(len(runs))]
        try:
            places = write_all(zip(runs, folders, strict=True))
        except BaseException:
            self._folder.cleanup()
            raise
        self._places = dict(zip(runs, places, strict=True))
        size = sum(file.stat().st_size for place in places for file in place.glob("*.parquet"))
        records, took = sum(run.records for run in runs), time.perf_counter() - begin
        console.print(f"{records:,} records, {size / 1e6:,.0f} MB, written in {took:.0f} s", style="dim")

    def __enter__(self) -> Written:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def places(self, runs: Sequence[Run]) -> list[Path]:
        return [self._places[run] for run in runs]


# -- who judges -----------------------------------------------------------------------------------------------


def verdict(spark: Any, folders: Sequence[Path], way: Any = None) -> tuple[Verdict, str]:
    """The findings in these folders, as `verify` has them; and the plan."""
    found = judge_files(spark, [file for folder in folders for file in check_files(folder)], way=way).kept()
    sums = found.subscriptions.agg({"*": "count", "elements": "sum"}).collect()[0]
    rows = found.violations.select("run", "subscription", "rule", "count", "first").collect()
    return Verdict(sums["count(1)"], sums["sum(elements)"] or 0, sorted(map(tuple, rows))), found.plan


SERVED = "verdict "


def serve(master: str) -> None:
    """Judge the folders on each line of the standard input."""
    spark = session(master, {"spark.driver.memory": "2g", "spark.executor.memory": "1g"})
    for line in sys.stdin:
        made, plan = verdict(spark, [Path(load) for load in json.loads(line)])
        told = {"plan": plan, "verdict": [made.subscriptions, made.elements, made.violations]}
        print(SERVED + json.dumps(told), flush=True)
    spark.stop()


@dataclass
class Judge:
    """A session of Spark in a process of its own, so that two masters take turns."""

    name: str
    process: subprocess.Popen[str]
    cluster: Sequence[int] = ()
    """Processes that work for it, besides its own."""

    def judge(self, folders: Sequence[Path]) -> tuple[Verdict, str]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([str(folder) for folder in folders]), file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            if line.startswith(SERVED):
                told = json.loads(line.removeprefix(SERVED))
                subscriptions, elements, violations = told["verdict"]
                return Verdict(subscriptions, elements, [tuple(violation) for violation in violations]), told["plan"]
        raise SystemExit(f"{self.name}: the session has ended, with status {self.process.wait()}")

    def used(self) -> float:
        return sum(map(processor_seconds, (self.process.pid, *self.cluster)))


def environment(scratch: Path) -> dict[str, str]:
    """For Spark's processes: where Python finds the package and the scripts, and what they keep is in the folder."""
    here = Path(__file__).resolve().parent
    paths = [str(here.parent), str(here), *filter(None, [os.environ.get("PYTHONPATH")])]
    spark = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(scratch), "PYSPARK_PYTHON": sys.executable}
    return {**os.environ, **spark, "PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(scratch)}


@contextmanager
def judging(name: str, master: str, scratch: Path, cluster: Sequence[int] = ()) -> Iterator[Judge]:
    command = [sys.executable, __file__, "--serve", master]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=environment(scratch), start_new_session=True, **pipes)
    with ended(process):
        yield Judge(name, process, cluster)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(PATIENCE)


@contextmanager
def _spark_class(log: Path, scratch: Path, name: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """One of Spark's own programs, which finds ports of its own and writes them to the log."""
    command = [str(Path(pyspark.__path__[0]) / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
    options = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0", *arguments]
    there = {**environment(scratch), "SPARK_DAEMON_MEMORY": "256m"}
    with log.open("wb") as to:
        process = subprocess.Popen([*command, *options], env=there, stdout=to, stderr=to, start_new_session=True)
        with ended(process):
            yield process


def _logged(log: Path, process: subprocess.Popen[bytes], pattern: str) -> str:
    """The text that the log has, as soon as it has it."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.1)
    raise SystemExit(f"the cluster has not begun: no {pattern!r} in\n{log.read_text(errors='replace')}")


@contextmanager
def cluster(scratch: Path, workers: int = 2) -> Iterator[tuple[str, list[int]]]:
    """A standalone cluster on this machine, its workers with a core each: its address, and its processes."""
    with ExitStack() as stack:
        log = scratch / "master.log"
        master = stack.enter_context(_spark_class(log, scratch, "master.Master"))
        address = _logged(log, master, r"Starting Spark master at (spark://\S+)")
        begun = [master]
        for number in range(workers):
            log = scratch / f"worker-{number}.log"
            of = ("--cores", "1", "--memory", "1200m", "--work-dir", str(scratch / f"work-{number}"), address)
            worker = stack.enter_context(_spark_class(log, scratch, "worker.Worker", *of))
            begun.append(worker)
            _logged(log, worker, r"(Successfully registered with master)")
        yield address, [item.pid for item in begun]


# -- how long it takes ----------------------------------------------------------------------------------------


@dataclass
class Took:
    """The time of one judge for one set of data."""

    seconds: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)
    plan: str = ""
    right: bool = True

    @property
    def wall(self) -> float:
        return statistics.median(self.seconds)

    @property
    def processor(self) -> float:
        return statistics.median(self.used)


def take(judge: Judge, data: Data, written: Written, took: Took) -> None:
    """Both versions once."""
    for runs, how in ((data.clean, "clean"), (data.broken, "broken")):
        folders, due = written.places(runs), Verdict.due(runs)
        used, begin = judge.used(), time.perf_counter()
        made, took.plan = judge.judge(folders)
        took.seconds.append(time.perf_counter() - begin)
        took.used.append(judge.used() - used)
        told = f"{judge.name}, {data.records:,}, {data.what}: {took.seconds[-1]:.1f} s, {how}"
        if made == due:
            console.print(told, style="dim")
        else:
            took.right = False
            console.print(f"{told}: WRONG: found {made}, and the records say {due}")


def warm_up(judge: Judge) -> None:
    """Warm up; these rounds do not count."""
    data = skewed(2, 200_000)
    with Written([data]) as written:
        for _ in range(WARM):
            judge.judge(written.places(data.clean))


def away(of: float, base: float, times: float) -> float:
    """How far it is from so many times the base."""
    return of / (base * times) - 1


Row = tuple[Judge, Data, Took, Took | None, float]
"""With what it is compared to, and how many times as many records it has."""


def shown(title: str, against: str, rows: Sequence[Row]) -> None:
    table = Table(title=title, title_justify="left")
    for column in ("records", "of", "where", "plan", "seconds", "processor s", "µs a record", against, "verdict"):
        table.add_column(column, justify="left" if column in ("of", "where", "plan", "verdict") else "right")
    for judge, data, took, base, times in rows:
        off = ""
        if base is not None:
            wall, used = away(took.wall, base.wall, times), away(took.processor, base.processor, times)
            off = f"{wall:+.0%} ({used:+.0%})" if abs(wall) >= 1 else f"{wall:+.1%} ({used:+.1%})"
        each = f"{took.wall / data.records * 1e6:.2f} ({took.processor / data.records * 1e6:.2f})"
        seen = "right" if took.right else "WRONG"
        plan = took.plan.partition(":")[0]
        cells = [data.what, judge.name, plan, f"{took.wall:.1f}", f"{took.processor:.1f}", each, off, seen]
        table.add_row(f"{data.records:,}", *cells)
    console.print(table)


def status(took: Iterable[Took]) -> int:
    """Of the process: 1 where a verdict was wrong."""
    right = all(item.right for item in took)
    console.print(f"every verdict is right: {right}")
    return 0 if right else 1


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--unit", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--run-records", type=int, default=1_000_000)
    parser.add_argument("--one", type=int, default=8_000_000, help="0: without")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=("local",), help="without the cluster")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(asked.serve)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was begun is ended
    even, tall = growing(asked.unit), skewed(1, asked.unit)
    many = skewed(asked.runs, asked.run_records)
    slow = [beyond(asked.one)] if asked.one else []
    least, most = even[0], even[-1]
    took: dict[tuple[str, int], Took] = {}

    def row(judge: Judge, data: Data, base: Data) -> Row:
        of = None if base is data else took[judge.name, id(base)]
        return judge, data, took[judge.name, id(data)], of, data.records / base.records

    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="scale-spark-")))
        judges = [stack.enter_context(judging("local[2]", "local[2]", scratch))]
        if not asked.only:
            address, processes = stack.enter_context(cluster(scratch))
            judges.append(stack.enter_context(judging("cluster", address, scratch, processes)))

        def done(data: Sequence[Data], rounds: int) -> None:
            with Written(data) as written:
                for item in [*data] * rounds:
                    for judge in judges:
                        take(judge, item, written, took.setdefault((judge.name, id(item)), Took()))

        for judge in judges:
            warm_up(judge)
        done(even, asked.rounds)
        shown("more records", "from linear", [row(judge, data, least) for judge in judges for data in even])
        for data, rounds in ((many, 1), (tall, asked.rounds), *((item, 1) for item in slow)):
            done([data], rounds)
            shown("skew", "beside alike", [row(judge, data, most) for judge in judges])
    console.print("in brackets: by processor time, of all processes, which other work on the machine changes less")
    for data in (most, many, tall):
        for judge in judges:
            entry = took[judge.name, id(data)]
            seconds, used = (of / data.records * 1e9 for of in (entry.wall, entry.processor))
            by = f"as {data.records:,} of {data.what}"
            console.print(f"100 runs of 10 million, {by}, {judge.name}: {seconds:,.0f} s, {used:,.0f} core-seconds")
    for judge in judges:
        one, four, half = (took[judge.name, id(data)] for data in (least, most, tall))
        off = away(four.wall, one.wall, 4), away(four.processor, one.processor, 4)
        said = f"{'at most' if max(off) <= LINEAR else 'more than'} {LINEAR:.0%} above"
        console.print(f"{judge.name}: four times the records, {off[0]:+.1%} ({off[1]:+.1%}) from linear: {said}")
        off = half.wall / one.wall, half.processor / one.processor
        said = f"{'at most' if max(off) <= SKEWED else 'more than'} {SKEWED}"
        console.print(f"{judge.name}: half in one, {off[0]:.2f} ({off[1]:.2f}) times as many alike: {said}")
    return status(took.values())


if __name__ == "__main__":
    sys.exit(main())
