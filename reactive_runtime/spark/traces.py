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

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from reactive_runtime.errors import TraceError
from reactive_runtime.spark.judging import KEYS, breaches, violations
from reactive_runtime.spark.latency import histogram, percentiles
from reactive_runtime.spark.regressions import regressions
from reactive_runtime.spark.tables import EXAMPLES, RUNS, clear, facts, table, write
from reactive_runtime.testing.checker import Violation, check
from reactive_runtime.testing.diagram import diagram
from reactive_runtime.testing.records import Record
from reactive_runtime.testing.rules import RULES
from reactive_runtime.testing.trace import check_files, run_folders

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["TABLES", "Verdict", "follow", "read_runs", "summary", "verify"]

TABLES: Final = ("runs", "violations", "summary", "latency", "histogram", "examples")
"""What is written for each run."""

_SHOWN: Final = 100_000
"""How many records of a broken subscription the driver looks at, to show the few around the breach."""

_BEYOND: Final = 1_000
"""How many of them may come after it: one signal too many after a cancel may come some way after the first."""

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
    return found.groupBy("run", "scenario").agg(
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


@dataclass(frozen=True)
class Verdict:
    """What the pipeline found."""

    violations: list[dict[str, Any]]
    """By rule: rule, subscriptions, count, and an example (run, scenario, subscription, first)."""
    summary: list[dict[str, Any]]
    regressions: list[dict[str, Any]] = field(default_factory=list)
    """What the newest run was slower at than those before it."""
    examples: dict[str, Violation] = field(default_factory=dict)
    """For each rule broken, one breach, with the signals around it."""

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


def _verdict(spark: SparkSession, folders: Sequence[Path], out: Path, late_signals: int) -> Verdict:
    files = [file for folder in folders for file in check_files(folder)]
    signals = _read(spark, files)
    partitions = spark.conf.get(_PARTITIONS) or "200"
    try:
        spark.conf.set(_PARTITIONS, str(_fitting(int(partitions), files)))
        # Each is computed once, and what is made of it is planned without how it came about: planning takes its time.
        rows = breaches(signals, late_signals).localCheckpoint()
        totals = summary(rows).toArrow().sort_by([("run", "ascending"), ("scenario", "ascending")])
        sums = totals.to_pylist()
        runs = sorted({row["run"] for row in sums})
        counts = histogram(signals, rows).localCheckpoint()
        broken: list[dict[str, Any]] = []
        clear(out / "violations", runs)
        if any(row["broken"] for row in sums):
            found = violations(signals, rows).localCheckpoint()
            found.repartition(1).write.mode("append").partitionBy("run").parquet(str(out / "violations"))
            broken = _by_run(found)
        examples = _examples(spark, signals, broken)
        write(totals, out / "summary", runs)
        write(counts.toArrow(), out / "histogram", runs)
        write(percentiles(counts).toArrow(), out / "latency", runs)
        write(table([_drawn(it) for it in examples], EXAMPLES), out / "examples", runs)
        write(table(facts(folders, runs), RUNS), out / "runs", runs)
        shown = {it.rule: it for it in reversed(examples)}
        return Verdict(_by_rule(broken), sums, regressions(spark, out), dict(sorted(shown.items())))
    finally:
        spark.conf.set(_PARTITIONS, partitions)


def _fitting(most: int, files: Sequence[Path]) -> int:
    """As many partitions as there are, for much; fewer for little, where each costs more than what it does."""
    size = sum(file.stat().st_size for file in files)
    return max(min(most, 2), min(most, size // _PARTITION))


def _by_run(found: DataFrame) -> list[dict[str, Any]]:
    """A row for each rule and run: run, rule, subscriptions, count, and an example (scenario, subscription, first)."""
    from pyspark.sql import functions as F

    rules = found.groupBy("run", "rule").agg(
        F.count("*").alias("subscriptions"),
        F.sum("count").alias("count"),
        F.min_by(F.struct(*KEYS, "first"), "first").alias("example"),
    )
    return [row.asDict(recursive=True) for row in rules.collect()]


def _by_rule(broken: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    rules: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for it in broken:
        rules[it["rule"]].append(it)
    return [
        {
            "rule": rule,
            "subscriptions": sum(it["subscriptions"] for it in of),
            "count": sum(it["count"] for it in of),
            "example": min((it["example"] for it in of), key=lambda it: (it["first"], it["run"])),
        }
        for rule, of in sorted(rules.items())
    ]


def _examples(spark: SparkSession, signals: DataFrame, broken: Sequence[dict[str, Any]]) -> list[Violation]:
    """Of rules that were broken one breach each, with the signals around it; of the newest runs first."""
    from pyspark.sql import functions as F

    newest = sorted(sorted(broken, key=lambda it: str(it["rule"])), key=lambda it: str(it["run"]), reverse=True)
    chosen = newest[:_EXAMPLES]
    if not chosen:
        return []
    ids = ("run", "subscription")
    wanted = [(place, *(it["example"][name] for name in (*ids, "first"))) for place, it in enumerate(chosen)]
    breach = spark.createDataFrame(wanted, "place int, run string, subscription bigint, first bigint")
    mine = signals
    for name in ids:  # so that the files need not be read as a whole
        mine = mine.where(F.col(name).isin({it["example"][name] for it in chosen}))
    order = "over (partition by place order by begin)"
    rows = (
        mine.join(F.broadcast(breach), list(ids))
        .selectExpr("*", f"row_number() {order} as nth", f"count_if(begin > first) {order} as beyond")
        .where(f"nth <= {_SHOWN} and beyond <= {_BEYOND}")
        .select("place", *Record._fields)
        .collect()
    )
    records: dict[int, list[Record]] = defaultdict(list)
    for place, *values in rows:
        records[place].append(Record(*values))
    found: list[Violation] = []
    for place, it in enumerate(chosen):
        # Spark has found it; what is shown is what the checker sees there.
        judged = check(sorted(records[place], key=lambda record: record.begin), context=12)
        found.extend(breach for breach in judged if breach.rule == it["rule"])
    return found


def _drawn(breach: Violation) -> dict[str, Any]:
    """A row of the table of examples."""
    known = {name: getattr(breach, name) for name in ("run", "scenario", "subscription", "rule", "seen")}
    return {**known, "diagram": diagram(breach.around, breach.first)}
