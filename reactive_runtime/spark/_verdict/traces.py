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

All tables of a verdict take the place of those before at once (`tables`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from reactive_runtime._core.runtime import primitives
from reactive_runtime._support.public_names import at_home
from reactive_runtime.errors import TraceError
from reactive_runtime.judging._examples import examples
from reactive_runtime.spark._verdict.judging import judge_files
from reactive_runtime.spark._verdict.percentiles import percentiles
from reactive_runtime.spark._verdict.regressions import regressions
from reactive_runtime.spark._verdict.tables import EXAMPLES, RUNS, Draft, Together, facts, one_verifier, table, together
from reactive_runtime.testing._checker import Violation
from reactive_runtime.testing._diagram import diagram
from reactive_runtime.testing._rule_checks import RULES
from reactive_runtime.testing.trace import (
    Held,
    arrived,
    check_files,
    checked,
    different_runs,
    read_through,
    run_folders,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["TABLES", "Verdict", "follow", "nothing_judged", "read_runs", "summary", "verify"]

TABLES: Final = ("runs", "violations", "summary", "latency", "histogram", "examples")
"""What is written for each run."""

LOOK_SECONDS: Final = 2
"""Between two looks of `follow` for runs that have not come as a whole."""

_EXAMPLES: Final = 2 * len(RULES)
"""How many breaches are drawn, at most, in one go."""

_SCHEMA: Final = (
    "run string, scenario string, subscription bigint, shared_callers boolean, ascending boolean, elements bigint,"
    " thread bigint, signal string, n bigint, begin bigint, end bigint, begin_ns bigint, end_ns bigint, value bigint,"
    " error string, depth int, late_signals int, none boolean, large_value string"
)


def read_runs(spark: SparkSession, folders: Sequence[Path | str]) -> DataFrame:
    """The records of all runs below the folders.

    Args:
        spark: The session.
        folders: As `testing.trace.check_files` takes each.

    Returns:
        A DataFrame with the columns of a trace.

    Raises:
        TraceError: Names a folder that has no runs, or a file that is no trace.
    """
    return _read(spark, [file for folder in folders for file in check_files(folder)])


def _read(spark: SparkSession, files: Sequence[Path]) -> DataFrame:
    # Bytes that have changed since they were written are no trace, even where they can be read as values.
    return spark.read.schema(_SCHEMA).option("parquet.page.verify-checksum.enabled", "true").parquet(*map(str, files))


def summary(found: DataFrame) -> DataFrame:
    """One row for each scenario of each run: how much was judged, how it ended, and what came after a cancel.

    `late_*` counts the signals that began after a `cancel` had returned, `late_inside_max` of cancels from inside a
    signal, on the subscriber's own thread; `silence_ns_*` is the time from the return of the cancel to the beginning
    of the last of them, 0 where there was none. All over the cancelled subscriptions.

    Args:
        found: The subscriptions of a judge, as `Found.subscriptions` has them.

    Returns:
        A DataFrame.
    """
    from pyspark.sql import functions as F

    sums = ("signals", "elements", "requests", "cancels")
    cancelled = F.col("cancels") > 0
    after = {"late": F.col("late"), "silence_ns": F.col("silence_ns")}
    return found.groupBy("run", "scenario").agg(
        F.count("*").alias("subscriptions"),
        F.count_if(F.col("broken") > 0).alias("broken"),
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
    plan: str = ""
    """How it was judged, in a line."""

    @property
    def clean(self) -> bool:
        """Whether no rule was broken."""
        return not self.violations


def verify(
    spark: SparkSession,
    folders: Sequence[Path | str],
    out: Path | str,
    *,
    late_signals: int = 1,
    unreadable: Callable[[TraceError], object] | None = None,
) -> Verdict:
    """Judge all runs below `folders`, write the tables below `out`, and return the verdict.

    A run that is found twice is judged once.

    Args:
        spark: The session.
        folders: Folders of runs.
        out: The folder of the tables.
        late_signals: How many signals may follow a cancel that came from outside, where the trace does not say.
        unreadable: Called for each run that can't be judged; the others are. None: the first such run is an error.

    Returns:
        The verdict on all these runs.

    Raises:
        TraceError: Names a run that does not hold what its metadata says; a file that is no trace, of a newer schema,
            or can't be read; a table that can't be written; or another verifier at work below `out`.
    """
    runs = [run for folder in folders for run in run_folders(folder)]
    with one_verifier(Path(out)):
        return _judged(spark, runs, Path(out), late_signals, unreadable or _raised)


def nothing_judged(out: Path, unable: Sequence[str]) -> None:
    """Write down that no run could be judged, and why: the verdict below `out` is no longer that of an earlier night.

    Args:
        out: The folder of the tables, which stay.
        unable: Why each run could not be judged.

    Raises:
        TraceError: It can't be written, or another verifier is at work there.
    """
    with one_verifier(out):
        Draft(out).commit(Together([], list(unable)), [], TABLES, [])


def _raised(error: TraceError) -> None:
    raise error


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
    """Judge each run below `folder` when it is complete, until interrupted.

    A Structured Streaming job: it writes down below `out` (`checkpoint`) which runs it has judged, and goes on from
    there when it is started again, however it ended. Each run is judged once; a batch that was cut off is judged again
    from its beginning, and replaces what it had written. A run whose metadata have come before its files is reported to
    `unreadable` as well, and waited for (`waiting.json` names it), however long that takes; with `once`, until the next
    time. A run that was killed has no end, and is left to `verify`.

    Args:
        spark: The session.
        folder: Where runs appear.
        out: The folder of the tables.
        judged: Called with the verdict of each batch.
        unreadable: Called for each run that can't be judged; the others are.
        late_signals: How many signals may follow a cancel that came from outside, where the trace does not say.
        once: Whether to judge what is there by now, and return.
        runs_at_once: The most runs of a batch.

    Raises:
        TraceError: `folder` is none, or another verifier is at work below `out`.
        Exception: What a batch raises ends the job, and is raised here.

    Thread:
        `judged` and `unreadable` are called on threads of the job, one batch at a time.
    """
    if not Path(folder).is_dir():
        raise TraceError(f"{folder}: is no folder")
    with one_verifier(Path(out)):
        _Followed(spark, Path(folder), Path(out), judged, unreadable, late_signals).run(once, runs_at_once)


class _Followed:
    """The job of `follow`."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        out: Path,
        judged: Callable[[Verdict], object],
        unreadable: Callable[[TraceError], object],
        late_signals: int,
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._out = out
        self._on_judged = judged
        self._unreadable = unreadable
        self._late_signals = late_signals
        self._once = False
        self._one_batch = primitives.Lock()  # held while one is judged: there are those of Spark, and those that waited
        self._waiting = _Waiting(out / "waiting.json")  # _one_batch
        self._failure: BaseException | None = None  # _one_batch; the first

    def run(self, once: bool, runs_at_once: int) -> None:
        """Until interrupted, or once."""
        self._once = once
        ended = (
            self._spark.readStream.format("text")
            .option("wholetext", "true")
            .option("recursiveFileLookup", "true")
            .option("pathGlobFilter", "metadata.json")
            .option("maxFilesPerTrigger", runs_at_once)
            .option("maxFileAge", "36500d")  # by default, a file a week older than the newest is passed over
            .load(str(self._folder))
        )
        writer = ended.writeStream.foreachBatch(self._batch)
        writer = writer.option("checkpointLocation", str(self._out / "checkpoint"))
        query = (writer.trigger(availableNow=True) if once else writer.trigger(processingTime="2 seconds")).start()
        try:
            while not query.awaitTermination(LOOK_SECONDS):
                if not once:
                    self._judge([])
            self._judge([])
            for run in self._waiting.runs if once else ():
                self._not_yet(run)
        except Exception as error:
            if self._failure is not None:
                raise self._failure from error
            raise
        finally:
            query.stop()

    def _not_yet(self, run: Path) -> None:
        self._unreadable(
            TraceError(f"{run}: not all files that it says it holds are there: it is judged when they are")
        )

    def _batch(self, rows: DataFrame, _: int) -> None:
        from pyspark.sql import functions as F

        try:
            found = rows.select(F.input_file_name().alias("file")).distinct().collect()
            self._judge(sorted(_path(row["file"]).parent for row in found))
        except BaseException as error:
            with self._one_batch:
                self._failure = self._failure or error
            raise

    def _judge(self, new: Sequence[Path]) -> None:
        """The runs that are new, and those that were waited for and are there."""
        with self._one_batch:
            there = []
            for run in dict.fromkeys([*self._waiting.runs, *new]):
                if arrived(run):
                    there.append(run)
                elif run not in self._waiting.runs:
                    self._waiting.add(run)
                    if not self._once:
                        self._not_yet(run)
            if there:
                verdict = _judged(self._spark, there, self._out, self._late_signals, self._unreadable, follows=True)
                if verdict.summary:
                    self._on_judged(verdict)
                self._waiting.remove(there)  # last: what is killed before is judged again


class _Waiting:
    """The runs whose metadata have come, and their files have not; kept in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self.runs = [Path(load) for load in json.loads(file.read_text(encoding="utf-8"))]
        except (OSError, ValueError):
            self.runs = []

    def add(self, run: Path) -> None:
        """One more."""
        self._write([*self.runs, run])

    def remove(self, runs: Sequence[Path]) -> None:
        """These are there."""
        left = [item for item in self.runs if item not in runs]
        if left != self.runs:
            self._write(left)

    def _write(self, runs: list[Path]) -> None:
        draft = self._file.with_suffix(".next")
        draft.write_text(json.dumps([str(item) for item in runs]), encoding="utf-8")
        draft.replace(self._file)
        self.runs = runs


def _path(uri: str) -> Path:
    """The file that Spark names so."""
    return Path(unquote(urlsplit(uri).path))


def _judged(
    spark: SparkSession,
    folders: Sequence[Path],
    out: Path,
    late_signals: int,
    unreadable: Callable[[TraceError], object],
    *,
    follows: bool = False,
) -> Verdict:
    """The verdict on the runs in these folders that can be judged, which is the verdict below `out` then."""
    unable: list[str] = []

    def skipped(error: TraceError) -> None:
        unreadable(error)
        unable.append(str(error))

    runs: list[Held] = []
    for held in different_runs(folders, skipped):
        try:
            files = checked(held)
        except TraceError as error:
            skipped(error)
            continue
        if not files or held.rows == 0:
            skipped(TraceError(f"{held.folder}: nothing was recorded there that could be judged"))
        else:
            runs.append(held)
    while runs:
        try:
            return _verdict(spark, runs, out, late_signals, unable, follows)
        except TraceError:
            raise
        except Exception:
            damaged = [item for item in runs if not _whole(item, skipped)]
            if not damaged:
                raise
            runs = [item for item in runs if item not in damaged]
    Draft(out).commit(Together(_as_before(out, []) if follows else [], unable), [], TABLES, [])
    return Verdict([], [])


def _whole(held: Held, skipped: Callable[[TraceError], object]) -> bool:
    """Whether all its files can be read to their end."""
    try:
        read_through(held)
    except TraceError as error:
        skipped(error)
        return False
    return True


def _as_before(out: Path, runs: Sequence[str]) -> list[str]:
    """The runs that `follow` has judged by now of the nights that these are of: a night comes in many batches."""
    earlier = together(out)
    if earlier is None:
        return list(runs)
    nights = {item[:8] for item in runs} or {item[:8] for item in earlier.runs[-1:]}
    return [*(item for item in earlier.runs if item[:8] in nights and item not in runs), *runs]


def _verdict(
    spark: SparkSession, held: Sequence[Held], out: Path, late_signals: int, unable: Sequence[str], follows: bool
) -> Verdict:
    judged = judge_files(spark, [file for item in held for file in item.files], late_signals=late_signals).kept()
    totals = summary(judged.subscriptions).toArrow().sort_by([("run", "ascending"), ("scenario", "ascending")])
    sums = totals.to_pylist()
    counts = judged.waits.toArrow()
    broken: list[dict[str, Any]] = []
    draft = Draft(out)
    if any(row["broken"] for row in sums):
        judged.violations.repartition(1).write.mode("append").partitionBy("run").parquet(str(draft.path / "violations"))
        broken = _by_run(judged.violations)
    found = _examples(held, broken, late_signals)
    medians = percentiles(counts)
    known = table(facts(held, {row["run"] for row in sums}), RUNS)
    draft.add(totals, "summary")
    draft.add(counts, "histogram")
    draft.add(medians, "latency")
    draft.add(table([_drawn(finding) for finding in found], EXAMPLES), "examples")
    draft.add(known, "runs")
    slower = regressions(out, medians, known)
    if slower is not None:
        draft.whole("regressions", slower)
    runs = sorted({item.run for item in held} | {row["run"] for row in sums})
    last = Together(_as_before(out, runs) if follows else runs, list(unable))
    draft.commit(last, runs, TABLES, ["regressions"])
    shown = {finding.rule: finding for finding in reversed(found)}
    worst = [] if slower is None else [item for item in slower.to_pylist() if item["slower"]]
    return Verdict(_by_rule(broken), sums, worst, dict(sorted(shown.items())), judged.plan)


def _by_run(found: DataFrame) -> list[dict[str, Any]]:
    """A row for each rule and run: run, rule, subscriptions, count, and an example (scenario, subscription, first)."""
    from pyspark.sql import functions as F

    example = F.struct("run", "scenario", "subscription", "first", F.col("count").alias("times"))
    rules = found.groupBy("run", "rule").agg(
        F.count("*").alias("subscriptions"),
        F.sum("count").alias("count"),
        F.min_by(example, F.struct("first", "subscription")).alias("example"),
    )
    return [row.asDict(recursive=True) for row in rules.collect()]


def _by_rule(broken: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    rules: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in broken:
        rules[entry["rule"]].append(entry)
    return [
        {
            "rule": rule,
            "subscriptions": sum(item["subscriptions"] for item in of),
            "count": sum(item["count"] for item in of),
            "example": min((item["example"] for item in of), key=lambda item: (item["first"], item["run"])),
        }
        for rule, of in sorted(rules.items())
    ]


def _examples(held: Sequence[Held], broken: Sequence[dict[str, Any]], late_signals: int) -> list[Violation]:
    """Of rules that were broken one breach each, with the signals around it; of the newest runs first."""
    newest = sorted(sorted(broken, key=lambda item: str(item["rule"])), key=lambda item: str(item["run"]), reverse=True)
    chosen = [
        {"rule": item["rule"], **item["example"], "count": item["example"]["times"]} for item in newest[:_EXAMPLES]
    ]
    return examples([file for item in held for file in item.files], chosen, late_signals)


def _drawn(breach: Violation) -> dict[str, Any]:
    """A row of the table of examples."""
    known = {name: getattr(breach, name) for name in ("run", "scenario", "subscription", "rule", "seen")}
    return {**known, "diagram": diagram(breach.around, breach.first)}


at_home("reactive_runtime.spark", Verdict, follow, read_runs, summary, verify)
