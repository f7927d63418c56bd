"""The trace pipeline: judges any number of recorded runs, measures how long things took, and keeps a history.

`verify` judges what is there; `follow` does the same for each run as it arrives, as a Structured Streaming job. Both
write the same tables below one folder, each partitioned by run, so that a run that is judged again replaces itself:

    runs        one row a run: when, where, which version and commit, whether it is complete
    violations  one row for each rule broken in each subscription
    summary     one row for each scenario: how much was judged, how it ended, and what came after a cancel
    latency     percentiles of demand → element and cancel → silence, for each scenario
    histogram   the same, as counts
    examples    of each rule broken, the signals around one breach, drawn
    regressions the newest run against those before it (written anew each time)
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from reactive_runtime.errors import TraceError
from reactive_runtime.spark.judging import KEYS, breaches, violations
from reactive_runtime.spark.latency import histogram, percentiles
from reactive_runtime.spark.regressions import regressions
from reactive_runtime.testing.checker import check
from reactive_runtime.testing.diagram import diagram
from reactive_runtime.testing.records import Record
from reactive_runtime.testing.rules import RULES
from reactive_runtime.testing.trace import check_files, metadata_of, run_folders

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["TABLES", "Verdict", "follow", "read_runs", "summary", "verify"]

TABLES: Final = ("runs", "violations", "summary", "latency", "histogram", "examples")
"""What is written for each run."""

_SHOWN: Final = 100_000
"""How many records of a broken subscription the driver looks at, to show the few around the breach."""

_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_PARTITION: Final = 1_000_000
"""Bytes of a file that a partition is made of, where there is little: some 60,000 records."""

_EXAMPLES: Final = 2 * len(RULES)
"""How many breaches are drawn, at most, in one go."""

_SCHEMA: Final = (
    "run string, scenario string, subscription bigint, shared_callers boolean, ascending boolean, elements bigint,"
    " thread bigint, signal string, n bigint, begin bigint, end bigint, begin_ns bigint, end_ns bigint, value bigint,"
    " error string, depth int, late_signals int"
)

_RUNS: Final = (
    "run string, started string, complete boolean, version string, commit string, python string, machine string,"
    " seed bigint, threads bigint, seconds double, records bigint, given_up string"
)

_EXAMPLE: Final = "run string, scenario string, subscription bigint, rule string, seen string, diagram string"


def read_runs(spark: SparkSession, folders: Sequence[Path | str]) -> DataFrame:
    """The records of all runs below the folders; TraceError names a folder or a file that is none."""
    return _read(spark, [file for folder in folders for file in check_files(folder)])


def _read(spark: SparkSession, files: Sequence[Path]) -> DataFrame:
    return spark.read.schema(_SCHEMA).parquet(*map(str, files))


def summary(found: DataFrame) -> DataFrame:
    """One row for each scenario of each run: how much was judged, how it ended, and what came after a cancel.

    `late_*` counts the signals that began after a `cancel` had returned, `late_inside_max` of cancels from inside a
    signal, on the subscriber's own thread; `silence_ns_*` is the time from the return of the cancel to the beginning
    of the last of them, 0 where there was none. All over the cancelled subscriptions.
    """
    from pyspark.sql import functions as F

    sums = ("signals", "elements", "requests", "cancels")
    cancelled = F.col("cancels") > 0
    after = {"late": F.col("late"), "silence_ns": F.col("silence_ns")}
    return (
        found.groupBy("run", "scenario")
        .agg(
            F.count("*").alias("subscriptions"),
            F.count_if(F.expr("bits != 0 or too_late + too_asked + too_after > 0")).alias("broken"),
            *(F.sum(name).alias(name) for name in sums),
            *(F.count_if(name).alias(name) for name in ("completed", "failed")),
            F.count_if(cancelled).alias("cancelled"),
            *(
                F.percentile_approx(F.when(cancelled, value), p).alias(f"{name}_p{round(100 * p)}")
                for name, value in after.items()
                for p in (0.5, 0.9, 0.99)
            ),
            *(F.max(F.when(cancelled, value)).alias(f"{name}_max") for name, value in after.items()),
            F.max(F.when(cancelled & F.col("cancel_inside"), F.col("late"))).alias("late_inside_max"),
        )
        .orderBy("run", "scenario")
    )


@dataclass(frozen=True)
class Verdict:
    """What the pipeline found."""

    violations: list[dict[str, Any]]
    """By rule: rule, subscriptions, count, and an example (run, scenario, subscription, first)."""
    summary: list[dict[str, Any]]
    regressions: list[dict[str, Any]] = field(default_factory=list)
    """What the newest run was slower at than those before it."""
    examples: dict[str, list[Record]] = field(default_factory=dict)
    """For each rule broken, all records of one subscription that breaks it, in order."""

    @property
    def clean(self) -> bool:
        """Whether no rule was broken."""
        return not self.violations


def verify(spark: SparkSession, folders: Sequence[Path | str], out: Path | str, late_signals: int = 1) -> Verdict:
    """Judge all runs below `folders`, write the tables below `out`, and return the verdict.

    `late_signals`: how many may follow a cancel that came from outside. TraceError names a file that is no trace, of a
    newer schema, or can't be read, or a table that can't be written.
    """
    runs = [run for folder in folders for run in run_folders(folder)]
    return _verdict(spark, runs, Path(out), late_signals)


def follow(
    spark: SparkSession,
    folder: Path | str,
    out: Path | str,
    judged: Callable[[Verdict], object],
    unreadable: Callable[[TraceError], object],
    *,
    late_signals: int = 1,
    once: bool = False,
    runs_at_once: int = 16,
) -> None:
    """Judge each run below `folder` when it is complete, until interrupted; `once`: what is there by now, and return.

    A Structured Streaming job: it takes note of which runs it has judged below `out` (`checkpoint`), and goes on from
    there when it is started again, however it ended. Each run is judged once; a batch that was cut off is judged again
    from its beginning, and replaces what it had written. `judged` is called with the verdict of each batch of up to
    `runs_at_once` runs, on a thread of its own, and `unreadable` for a run that can't be judged: the others are. A run
    that was killed has no end, and is left to `verify`. TraceError where the folder is none; what a batch raises ends
    the job, and is raised here.
    """
    if not Path(folder).is_dir():
        raise TraceError(f"{folder}: is no folder")

    def judge(batch: DataFrame, _: int) -> None:
        from pyspark.sql import functions as F

        found = batch.select(F.input_file_name().alias("file")).distinct().collect()
        runs = sorted(_path(row["file"]).parent for row in found)
        readable = []
        for run in runs:
            if any(run.glob("signals-*.parquet")):  # one may have recorded nothing
                try:
                    check_files(run)
                    readable.append(run)
                except TraceError as error:
                    unreadable(error)
        if readable:
            judged(_verdict(spark, readable, Path(out), late_signals))

    failure: list[BaseException] = []

    def batch(rows: DataFrame, number: int) -> None:
        try:
            judge(rows, number)
        except BaseException as error:
            failure.append(error)
            raise

    ended = (
        spark.readStream.format("text")
        .option("wholetext", "true")
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", "metadata.json")
        .option("maxFilesPerTrigger", runs_at_once)
        .option("maxFileAge", "36500d")  # by default, a file a week older than the newest is passed over
        .load(str(folder))
    )
    writer = ended.writeStream.foreachBatch(batch).option("checkpointLocation", str(Path(out) / "checkpoint"))
    query = (writer.trigger(availableNow=True) if once else writer.trigger(processingTime="2 seconds")).start()
    try:
        query.awaitTermination()
    except Exception as error:
        if failure:
            raise failure[0] from error
        raise
    finally:
        query.stop()


def _path(uri: str) -> Path:
    """The file that Spark names so."""
    return Path(unquote(urlsplit(uri).path))


def _verdict(spark: SparkSession, runs: Sequence[Path], out: Path, late_signals: int) -> Verdict:
    files = [file for run in runs for file in check_files(run)]
    signals = _read(spark, files)
    partitions = spark.conf.get(_PARTITIONS) or "200"
    try:
        spark.conf.set(_PARTITIONS, str(_fitting(int(partitions), files)))
        # Each is computed once, and what is made of it is planned without how it came about: planning takes its time.
        rows = breaches(signals, late_signals).localCheckpoint()
        found = violations(signals, rows).localCheckpoint()
        totals = summary(rows).localCheckpoint()
        counts = histogram(signals, rows).localCheckpoint()
        sums = [row.asDict() for row in totals.collect()]
        examples = _examples(signals, found)
        tables = {
            "violations": found,
            "summary": totals,
            "histogram": counts,
            "latency": percentiles(counts),
            "examples": spark.createDataFrame([_drawn(*it) for it in examples], _EXAMPLE),
            "runs": spark.createDataFrame(_facts(runs, sorted({row["run"] for row in sums})), _RUNS),
        }
        for name, table in tables.items():
            _write(table, out / name, {row["run"] for row in sums})
        first = dict(reversed(examples))
        return Verdict(_by_rule(found), sums, regressions(spark, out), first)
    finally:
        spark.conf.set(_PARTITIONS, partitions)


def _fitting(most: int, files: Sequence[Path]) -> int:
    """As many partitions as there are, for much; fewer for little, where each costs more than what it does."""
    size = sum(file.stat().st_size for file in files)
    return max(min(most, 2), min(most, size // _PARTITION))


def _facts(folders: Sequence[Path], runs: Sequence[str]) -> list[tuple[Any, ...]]:
    """A row of the table of runs for each; what is not known of a run is null."""
    known: dict[str, dict[str, Any]] = {}
    for folder in folders:
        facts = metadata_of(folder) or {}
        facts["given_up"] = json.dumps(facts.get("given_up") or {})
        known[facts.get("run", folder.name.removeprefix("run="))] = facts
    kinds: dict[str, tuple[type, ...]] = {
        "boolean": (bool,),
        "bigint": (int,),
        "double": (int, float),
        "string": (str,),
    }
    rows = []
    for run in runs:
        facts = {**known.get(run, {}), "run": run}
        row = []
        for column in _RUNS.split(", "):
            name, kind = column.split()
            value = facts.get(name)
            if not isinstance(value, kinds[kind]) or (isinstance(value, bool) and kind != "boolean"):
                value = None
            elif kind == "double":
                value = float(value)  # type: ignore[arg-type]
            row.append(value)
        rows.append(tuple(row))
    return rows


def _write(table: DataFrame, to: Path, runs: set[str]) -> None:
    """Write a table, a partition a run; what it said of these runs before is gone."""
    try:
        to.mkdir(parents=True, exist_ok=True)
        for partition in to.glob("run=*"):
            if unquote(partition.name.removeprefix("run=")) in runs:
                shutil.rmtree(partition)
    except OSError as error:
        raise TraceError(f"{to}: can't be written: {error.strerror}") from error
    table.repartition(1).write.mode("append").partitionBy("run").parquet(str(to))


def _by_rule(found: DataFrame) -> list[dict[str, Any]]:
    from pyspark.sql import functions as F

    rules = found.groupBy("rule").agg(
        F.count("*").alias("subscriptions"),
        F.sum("count").alias("count"),
        F.min_by(F.struct(*KEYS, "first"), "first").alias("example"),
    )
    return [row.asDict(recursive=True) for row in rules.orderBy("rule").collect()]


def _examples(signals: DataFrame, found: DataFrame) -> list[tuple[str, list[Record]]]:
    """Rules that were broken, each with the records of one subscription that breaks it; of the newest runs first."""
    from pyspark.sql import functions as F

    one = found.groupBy("run", "rule").agg(F.min_by(F.struct(*KEYS, "first"), "first").alias("example"))
    chosen = one.orderBy(F.desc("run"), "rule").limit(_EXAMPLES).collect()
    return [(row["rule"], _records(signals, row["example"].asDict())) for row in chosen]


def _drawn(rule: str, records: list[Record]) -> tuple[str, str, int, str, str, str]:
    """A row of the table of examples."""
    first = records[0]
    shown = next((it for it in check(records, context=12) if it.rule == rule), None)
    seen, picture = (shown.seen, diagram(shown.around, shown.first)) if shown else ("", "")
    return first.run, first.scenario, first.subscription, rule, seen, picture


def _records(signals: DataFrame, example: dict[str, Any]) -> list[Record]:
    """The records of the subscription up to a breach and a few after it, for the driver to show."""
    from pyspark.sql import functions as F

    mine = signals.where((F.col("run") == example["run"]) & (F.col("subscription") == example["subscription"]))
    at = example["first"]
    upto = mine.where(F.col("begin") <= at).orderBy("begin").limit(_SHOWN)
    beyond = mine.where(F.col("begin") > at).orderBy("begin").limit(1_000)  # one too many may come some way after
    rows = upto.union(beyond).orderBy("begin").collect()
    return [Record(*(row[name] for name in Record._fields)) for row in rows]
