"""The judge on one thread, and in Spark's tasks on `local[2]` in each of its ways, beside DuckDB with two threads.

The same checks, on the same files, warm, in turn.

python benchmarks/trace_pipeline.py [--records 5000000] [--before FOLDER]

With --before also an earlier version of the package, from a checkout in that folder (`git worktree add FOLDER
15a0b45`), in a process and a JVM of its own. How the cost grows with the records: benchmarks/scale.py.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import PIPE
from typing import Any

import duckdb
from made_traces import LENGTH, Run, processor_seconds, write
from rich.table import Table
from side_by_side import console

from reactive_runtime.judging import judge_runs
from reactive_runtime.spark import explain, judge_files, judge_frame, session
from reactive_runtime.spark._session.spark_session import JUDGING
from reactive_runtime.spark._verdict.judging import Way
from reactive_runtime.testing._rule_checks import RULES
from reactive_runtime.testing.trace import check_files

DUCKDB = """
with numbered as (
  select run, scenario, subscription, shared_callers, ascending, elements, thread, n, begin, depth,
    coalesce("end", 9223372036854775807 - begin) as fin, "end" is null as open, value,
    error is not null and (signal != 'on_error' or starts_with(error, 'raised ')) as raised,
    case signal when 'on_subscribe' then 0 when 'on_next' then 1 when 'on_error' then 2 when 'on_complete' then 3
      when 'request' then 4 when 'cancel' then 5 when 'subscribe' then 6 else 7 end::tinyint as kind
  from read_parquet('{files}', hive_partitioning = false)),
past as (
  select *,
    coalesce(count(*) filter (kind = 1) over earlier, 0) as delivered,
    coalesce(sum(n::double) filter (kind = 4 and n > 0) over earlier, 0) as requested,
    max(value) filter (kind = 1) over earlier as largest,
    coalesce(count(*) filter (kind = 0) over earlier, 0) as subscribed,
    min(begin) filter (kind in (2, 3)) over earlier as first_end,
    first_value(case when kind in (2, 3) then fin end ignore nulls) over earlier as end_end,
    first_value(case when kind in (2, 3) then thread end ignore nulls) over earlier as end_thread,
    max(begin) filter (kind = 5) over earlier as cancel_begun,
    min(fin) filter (kind = 5 and not open) over earlier as cancel_end,
    coalesce(max(fin) filter (kind between 1 and 3) over earlier, 0) as signals_end,
    max(begin) filter (kind = 0) over earlier as subscribe_begin,
    coalesce(max(fin) filter (kind = 0) over earlier, 0) as subscribe_end,
    arg_max(thread, fin) filter (kind = 0) over earlier as subscribe_thread,
    max(begin) filter (kind = 4) over earlier as request_begin,
    max(fin) filter (kind in (4, 5)) over earlier as calls_end,
    arg_max(thread, fin) filter (kind in (4, 5)) over earlier as calls_thread,
    last_value(case when kind <= 3 then thread end ignore nulls) over earlier as signal_thread,
    min(begin) filter (kind = 4 and (n is null or n <= 0)) over earlier as invalid_begin,
    first_value(case when kind = 4 and (n is null or n <= 0) then fin end ignore nulls) over earlier as invalid_end,
    coalesce(max(case when raised and kind <= 4 then if(kind = 4, 1, 2) end) over earlier, 0) as gave_up
  from numbered
  window earlier as (partition by run, subscription order by begin rows between unbounded preceding and 1 preceding)),
known as (
  select *,
    coalesce(signal_thread = thread and greatest(signals_end, subscribe_end) > begin, false) as inside,
    kind = 7 and first_end is null and cancel_begun is null and gave_up != 2 as owing,
    invalid_begin is not null and (first_end is null or invalid_begin < first_end) as unanswered,
    kind = 5 and coalesce(cancel_end < begin, false) and (raised or open) as again,
    kind <= 3 and coalesce(cancel_end < begin, false) as late,
    coalesce(delivered >= elements, false) as delivered_all,
    owing and invalid_begin is null and gave_up = 0 and delivered < requested as unmet,
    requested >= 9223372036854775807::double as everything
  from past),
judged as (
  select run, scenario, subscription,
    arg_min(inside, fin) filter (kind = 5 and not open) as cancel_inside,
    count(*) filter (late) as lates,
    count(*) filter (late and kind = 1 and coalesce(request_begin > cancel_end, false)) as asked,
    count(*) filter (kind = 1 and cancel_begun is null and unanswered and invalid_end < begin) as after,
    count(*) filter (kind = 1 and delivered + 1 > requested) as "1.1",
    count(*) filter (unmet and elements is null and not everything) as "1.2",
    count(*) filter (kind <= 3 and (signals_end > begin or (subscribe_end > begin and subscribe_thread != thread)))
      as "1.3",
    count(*) filter (owing and invalid_begin is null and gave_up = 1) as "1.4",
    count(*) filter (unmet and delivered_all) as "1.5",
    count(*) filter (kind = 1 and request_begin > first_end) as "1.6",
    count(*) filter (kind <= 3 and first_end is not null) as "1.7",
    if(lates > if(cancel_inside, 0, 1), lates, 0) as "1.8",
    count(*) filter ((kind in (1, 2, 3) and subscribed = 0) or (kind = 6 and raised) or (kind = 7 and subscribed = 0))
      as "1.9",
    count(*) filter (kind in (4, 5) and end_end > begin and end_thread = thread) as "2.3",
    count(*) filter (kind = 4 and not shared_callers and end_end < begin) as "2.4",
    count(*) filter (kind = 7 and subscribed > 1 and coalesce(cancel_begun, 0) < subscribe_begin) as "2.5",
    count(*) filter (kind in (4, 5) and not shared_callers and calls_end > begin and calls_thread != thread) as "2.7",
    count(*) filter (kind = 0 and subscribed > 0) as "2.12",
    count(*) filter (kind = 4 and open and inside) as "3.2",
    count(*) filter (kind = 1 and depth > 16) as "3.3",
    if(asked > if(cancel_inside, 0, 1), asked, 0) as "3.6",
    count(*) filter (again) as "3.7",
    count(*) filter (unmet and not delivered_all and elements is not null and not everything) as "3.8",
    count(*) filter (owing and unanswered) + if(after > 1, after, 0) as "3.9",
    count(*) filter (kind in (4, 5) and raised and not again) as "3.16",
    count(*) filter (unmet and not delivered_all and everything) as "3.17",
    count(*) filter ((kind = 1 and (coalesce(ascending and value = largest, false)
      or coalesce(delivered + 1 > elements, false))) or (kind = 3 and cancel_begun is null
      and coalesce(delivered < elements, false))) as "conservation",
    count(*) filter (kind = 1 and ascending and value < largest) as "order"
  from known group by run, scenario, subscription)
select rule, count(*) as subscriptions, sum(broken)::bigint as broken
from (unpivot judged on columns('^([1-3]|conservation|order)') into name rule value broken)
where broken > 0 group by rule order by rule
"""


def lacks() -> list[str]:
    """Rules of the table that DuckDB's query does not have."""
    return [rule for rule in RULES if f'as "{rule}"' not in DUCKDB]


def made(folder: Path, records: int) -> int:
    """Write a trace of about `records`; a few subscriptions break 1.1."""
    subscriptions = max(records // LENGTH, 10)
    run = Run("run", subscriptions, broken=range(7, subscriptions, 500))
    write(run, folder)
    return run.records


Rows = list[tuple[str, int, int]]
"""Rule, subscriptions, how often."""


def counted(violations: Any) -> Rows:
    found = violations.groupBy("rule").agg({"*": "count", "count": "sum"}).collect()
    return sorted((row["rule"], row["count(1)"], row["sum(count)"]) for row in found)


def by_spark(spark: Any, folder: Path, way: Way | None = None) -> Rows:
    return counted(judge_files(spark, check_files(folder), way=way).violations)


def by_frame(spark: Any, folder: Path) -> Rows:
    return counted(judge_frame(spark.read.parquet(*map(str, check_files(folder)))).violations)


def by_this_process(folder: Path) -> Rows:
    rules = judge_runs([folder]).violations.group_by("rule").aggregate([("count", "count"), ("count", "sum")])
    return sorted((row["rule"], row["count_count"], row["count_sum"]) for row in rules.to_pylist())


def by_duckdb(folder: Path) -> Rows:
    connection = duckdb.connect(config={"threads": 2})
    return connection.sql(DUCKDB.format(files=f"{folder}/*/*/*.parquet")).fetchall()


BEFORE = """
import json, sys, time
from pathlib import Path
from reactive_runtime.spark import breaches, read_runs, session, violations

spark = session("local[2]")
for line in sys.stdin:
    signals = read_runs(spark, [Path(line.strip())])
    rows = breaches(signals).persist()
    found = violations(signals, rows).groupBy("rule").agg({"*": "count", "count": "sum"}).collect()
    rows.unpersist()
    print("found", json.dumps(sorted((row["rule"], row["count(1)"], row["sum(count)"]) for row in found)), flush=True)
"""


class Before:
    """An earlier version, in a process of its own."""

    def __init__(self, checkout: Path) -> None:
        there = {**os.environ, "PYTHONPATH": str(checkout)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", BEFORE], env=there, cwd=checkout, stdin=PIPE, stdout=PIPE, text=True
        )

    def judge(self, folder: Path) -> Rows:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(folder, file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            if line.startswith("found "):
                return [tuple(row) for row in json.loads(line.removeprefix("found "))]
        raise SystemExit("the earlier version has ended")

    @property
    def process(self) -> int:
        return self._process.pid

    def close(self) -> None:
        self._process.communicate()


Clock = Callable[[str], float]


def in_turn(ways: dict[str, Callable[[], Rows]], warm: int, rounds: int, clocks: Sequence[Clock]) -> tuple[Any, Any]:
    """For each way, medians by each clock, after `warm` rounds that do not count; and what it found."""
    found: dict[str, Rows] = {}
    took: dict[str, list[list[float]]] = {way: [] for way in ways}
    for number in range(warm + rounds):
        for way, work in ways.items():
            begins = [clock(way) for clock in clocks]
            found[way] = work()
            ends = [clock(way) for clock in clocks]
            if number >= warm:
                took[way].append([end - begin for begin, end in zip(begins, ends, strict=True)])
    return {way: [statistics.median(of) for of in zip(*all_of, strict=True)] for way, all_of in took.items()}, found


AIMS = {
    "Spark, ranges": "0.25 of before, 0.4 of DuckDB",
    "Spark, any DataFrame": "0.6 of before",
    "one thread, no Spark": "2,000,000 a second",
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--warm", type=int, default=2, help="rounds that do not count")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", type=Path)
    asked = parser.parse_args()
    before = Before(asked.before) if asked.before else None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records = made(folder, asked.records)
        spark = session("local[2]", JUDGING)
        console.print(explain(spark, [folder]))
        ways: dict[str, Callable[[], Rows]] = {
            "Spark, ranges": lambda: by_spark(spark, folder, "ranges"),
            "Spark, moved": lambda: by_spark(spark, folder, "moved"),
            "Spark, any DataFrame": lambda: by_frame(spark, folder),
            "one thread, no Spark": lambda: by_this_process(folder),
            "DuckDB, 2 threads": lambda: by_duckdb(folder),
        }
        if before is not None:
            ways["before, Spark"] = lambda: before.judge(folder)
        mine = os.getpid()
        other = None if before is None else before.process

        def processor(way: str) -> float:
            return processor_seconds(other) if way.startswith("before") and other else processor_seconds(mine, other)

        took, found = in_turn(ways, asked.warm, asked.rounds, [lambda way: time.perf_counter(), processor])
        begin = time.thread_time()
        by_this_process(folder)
        of_thread = time.thread_time() - begin
    if before is not None:
        before.close()
    spark.stop()
    table = Table(title=f"{records:,} records, all checks, warm, in turn", title_justify="left")
    peers = {"DuckDB": "DuckDB, 2 threads", "before": "before, Spark"}
    for column in (
        "way",
        "seconds",
        "processor s",
        "records a second",
        *(f"{item} = 1" for item in peers),
        "must reach",
    ):
        table.add_column(column, justify="left" if column == "way" else "right")
    for way, (seconds, used) in took.items():
        shown = []
        for peer in peers.values():
            of = took.get(peer)
            shown.append("" if of is None else f"{seconds / of[0]:.2f} ({used / of[1]:.2f})")
        table.add_row(way, f"{seconds:.2f}", f"{used:.1f}", f"{records / seconds:,.0f}", *shown, AIMS.get(way, ""))
    console.print(table)
    console.print("in brackets: by processor time, which other work on the machine changes less")
    console.print(f"one thread, by its own clock: {records / of_thread:,.0f} records a second")
    if lacks():
        console.print(f"DuckDB's query lacks {', '.join(lacks())}: it has less to do")
    agree = all(rows == found["Spark, ranges"] for rows in found.values())
    console.print(f"the same verdict: {agree}, {found['Spark, ranges']}")


if __name__ == "__main__":
    main()
