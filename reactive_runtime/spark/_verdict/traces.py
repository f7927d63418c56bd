"""The trace pipeline: judges any number of recorded runs, measures how long things took, and keeps a history.

`verify` judges what is there; `follow` does the same for each run as it arrives, as a Structured Streaming job. Both
write the same tables below one folder, each partitioned by run, so that a run that is judged again replaces itself:

    runs        one row a run: when, where, which version and commit, whether it is complete
    violations  one row for each rule broken in each subscription
    summary     one row for each scenario: how much was judged, how it ended, and what came after a cancel
    latency     percentiles of demand → element and cancel → silence, for each scenario
    histogram   the same, as counts
    examples    of each rule broken, the signals around one breach, drawn
    lineage     a row for each file that was judged: by which rules, by which version of the program, and when
    regressions the newest run against those before it (written anew each time)
    judged      one row a run: which were judged, and by which rules (`lineage`)
    nights      one row for each scenario of each run, a file a month (`nights`)
    series      what is known of each machine and Python, for the next run (`comparing`)

All tables of a verdict take the place of those before at once (`tables`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime._support.public_names import at_home
from reactive_runtime.errors import TraceError
from reactive_runtime.judging._examples import examples_in
from reactive_runtime.judging._stores import few, is_remote, roots_of
from reactive_runtime.spark._session.spark_errors import is_of_reading
from reactive_runtime.spark._session.spark_session import literal
from reactive_runtime.spark._verdict import judging
from reactive_runtime.spark._verdict.comparing import compared
from reactive_runtime.spark._verdict.judging import Found
from reactive_runtime.spark._verdict.lineage import Entry, Outstanding, entries_of, index_of, newer, outstanding
from reactive_runtime.spark._verdict.nights import months_with, rows_of
from reactive_runtime.spark._verdict.percentiles import percentiles
from reactive_runtime.spark._verdict.run_planning import no_runs, plan_runs
from reactive_runtime.spark._verdict.sources import ByDriver, ByTasks, Source
from reactive_runtime.spark._verdict.tables import EXAMPLES, RUNS, Draft, Together, one_verifier, table, together
from reactive_runtime.testing._checker import Violation
from reactive_runtime.testing._diagram import diagram
from reactive_runtime.testing._rule_checks import RULES
from reactive_runtime.testing.trace import (
    Held,
    check_files,
    checked,
    different_runs,
    run_folders,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["TABLES", "Verdict", "judged_runs", "nothing_judged", "read_runs", "source_of", "summary", "verify"]

TABLES: Final = ("runs", "violations", "summary", "latency", "histogram", "examples", "lineage")
"""What is written for each run."""

_FINDINGS: Final = "findings"
"""Folder of the tasks' findings, beside the tables that are made of it; no part of a verdict."""

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
    return (
        spark.read.schema(_SCHEMA).option("parquet.page.verify-checksum.enabled", "true").parquet(*map(literal, files))
    )


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
    before: int = 0
    """Runs that were judged before, and not again."""
    older: int = 0
    """Those of them that an older version of the rules has judged."""

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
    note: Callable[[str], object] | None = None,
    incremental: bool = False,
    again: bool = False,
) -> Verdict:
    """Judge the runs below `folders`, write the tables below `out`, and return the verdict.

    A run that is found twice is judged once. A verdict that a newer version of the rules has made stays as it is.

    Args:
        spark: The session.
        folders: Folders of runs.
        out: The folder of the tables.
        late_signals: How many signals may follow a cancel that came from outside, where the trace does not say.
        unreadable: Called for each run that can't be judged; the others are. None: the first such run is an error.
        note: Called with a line on each run that is judged and of which there is something else to say: it was cut off,
            it is a copy of another, its machine's clock is hours ahead; of many, on the first 1,000.
        incremental: Judge only runs that were not judged, or have changed since: those whose metadata are others. The
            verdict is on these; where there are none, the one before stays as it is.
        again: With `incremental`: judge again runs that an older version of the rules has judged.

    Returns:
        The verdict on the runs that were judged.

    Raises:
        TraceError: Names a run that does not hold what its metadata says; a file that is no trace, of a newer schema,
            or can't be read; a table that can't be written; or another verifier at work below `out`.
    """
    to = Path(out)
    if incremental:
        with one_verifier(to):
            left = outstanding(folders, to, late_signals=late_signals, again=again, note=note)
            mine, roots = left.folders, [str(folder) for folder in left.folders]
            runs = mine if not mine or few(roots, judging.FEW) else None
            return judged_runs(spark, roots, runs, to, late_signals, unreadable or _raised, note=note, left=left)
    roots = roots_of(map(str, folders))
    runs = [run for root in roots for run in run_folders(root)] if few(roots, judging.FEW) else None
    for root in roots:
        if not is_remote(root) and not Path(root).is_dir():
            raise TraceError(no_runs(root))
    with one_verifier(to):
        return judged_runs(spark, roots, runs, to, late_signals, unreadable or _raised, note=note)


def nothing_judged(out: Path, unable: Sequence[str], *, before: bool = False) -> None:
    """Write down that no run could be judged, and why: the verdict below `out` is no longer that of an earlier night.

    Args:
        out: The folder of the tables, which stay.
        unable: Why each run could not be judged.
        before: Whether the verdict is still that on the runs that were judged together the last time.

    Raises:
        TraceError: It can't be written, or another verifier is at work there.
    """
    with one_verifier(out):
        Draft(out).commit(Together(_stays(out) if before else [], list(unable)), [], TABLES, [])


def _raised(error: TraceError) -> None:
    raise error


def judged_runs(
    spark: SparkSession,
    roots: Sequence[str],
    folders: Sequence[Path] | None,
    out: Path,
    late_signals: int,
    unreadable: Callable[[TraceError], object],
    *,
    follows: bool = False,
    note: Callable[[str], object] | None = None,
    left: Outstanding | None = None,
) -> Verdict:
    """The verdict on the runs that can be judged, which is the verdict below `out` then.

    `folders` are those of the runs below the `roots`; None: they are many, and tasks list them.
    """
    unable: list[str] = []
    before = (len(left.before), len(left.older)) if left is not None else (0, 0)

    def skipped(error: TraceError) -> None:
        unreadable(error)
        unable.append(str(error))

    entries = left.entries if left is not None else entries_of(out, note)
    for line in left.newer if left is not None else ():
        skipped(line)
    source = source_of(spark, roots, folders, skipped, note)
    try:
        by_newer, lines = newer(out, entries, source.names)
        for line in lines:
            skipped(line)
        source = source.without(by_newer) if by_newer else source
        if note is not None:
            for text in source.notes:
                note(text)
        while source.names:
            try:
                verdict = _verdict(spark, source, out, late_signals, unable, follows, entries)
                return replace(verdict, before=before[0], older=before[1])
            except TraceError:
                raise
            except Exception as error:
                # A file without a checksum may be found damaged only now; other errors are no reason to read all again.
                rest = source.whole(skipped) if is_of_reading(error) else None
                if rest is None:
                    raise
                source = rest
    finally:
        source.release()
    if unable or not before[0]:
        stay = _as_before(out, []) if follows else _stays(out) if before[0] else []
        Draft(out).commit(Together(stay, unable), [], TABLES, [])
    return Verdict([], [], before=before[0], older=before[1])


def source_of(
    spark: SparkSession,
    roots: Sequence[str],
    folders: Sequence[Path] | None,
    skipped: Callable[[TraceError], object],
    note: Callable[[str], object] | None,
) -> Source:
    """The runs that can be judged."""
    if folders is None:
        return ByTasks(spark, plan_runs(spark, roots, skipped, judging.cores_of(spark)))
    runs: list[Held] = []
    for held in different_runs(folders, skipped, note):
        try:
            files = checked(held)
        except TraceError as error:
            skipped(error)
            continue
        if not files or held.rows == 0:
            skipped(TraceError(f"{held.folder}: nothing was recorded there that could be judged"))
        else:
            runs.append(held)
    return ByDriver(runs)


def _as_before(out: Path, runs: Sequence[str]) -> list[str]:
    """The runs that `follow` has judged by now of the nights that these are of: a night comes in many batches."""
    earlier = together(out)
    if earlier is None:
        return list(runs)
    nights = {item[:8] for item in runs} or {item[:8] for item in earlier.runs[-1:]}
    return [*(item for item in earlier.runs if item[:8] in nights and item not in runs), *runs]


def _stays(out: Path) -> list[str]:
    """The runs that were judged together the last time."""
    last = together(out)
    return [] if last is None else last.runs


def _verdict(
    spark: SparkSession,
    source: Source,
    out: Path,
    late_signals: int,
    unable: Sequence[str],
    follows: bool,
    entries: Mapping[str, Entry],
) -> Verdict:
    draft = Draft(out)
    draft.is_shared = judging.is_shared(spark, draft.path)
    judged = source.judged(spark, late_signals)
    judged = judged.kept(draft.path / _FINDINGS if draft.is_shared else None)
    try:
        return _written(source, draft, judged, out, late_signals, unable, follows, entries)
    finally:
        judged.release()


def _written(
    source: Source,
    draft: Draft,
    judged: Found,
    out: Path,
    late_signals: int,
    unable: Sequence[str],
    follows: bool,
    entries: Mapping[str, Entry],
) -> Verdict:
    totals = summary(judged.subscriptions).toArrow().sort_by([("run", "ascending"), ("scenario", "ascending")])
    sums = totals.to_pylist()
    counts = judged.waits.toArrow()
    broken: list[dict[str, Any]] = []
    if any(row["broken"] for row in sums):
        draft.add_frame(judged.violations, "violations")
        broken = _by_run(judged.violations)
    found = _examples(source, broken, late_signals)
    medians = percentiles(counts)
    known = table(source.facts({row["run"] for row in sums}), RUNS)
    draft.add(totals, "summary")
    draft.add(counts, "histogram")
    draft.add(medians, "latency")
    draft.add(table([_drawn(finding) for finding in found], EXAMPLES), "examples")
    draft.add(known, "runs")
    went = compared(out, medians, known)
    mine = source.entries(late_signals)
    source.write_lineage(mine, draft)
    whole = _whole_tables(out, entries, mine, known.to_pylist(), sums, medians.to_pylist(), broken)
    whole |= went.kept
    if went.table is not None:
        whole["regressions"] = went.table
    for name, rows in whole.items():
        draft.whole(name, rows)
    draft.discard(_FINDINGS)
    runs = sorted({*source.names} | {row["run"] for row in sums})
    last = Together(_as_before(out, runs) if follows else runs, list(unable))
    draft.commit(last, runs, TABLES, sorted({"regressions", *whole}))
    slower = went.table
    shown = {finding.rule: finding for finding in reversed(found)}
    worst = [] if slower is None else [item for item in slower.to_pylist() if item["slower"]]
    return Verdict(_by_rule(broken), sums, worst, dict(sorted(shown.items())), judged.plan)


def _whole_tables(
    out: Path,
    entries: Mapping[str, Entry],
    mine: Mapping[str, Entry],
    runs: Sequence[dict[str, Any]],
    sums: Sequence[dict[str, Any]],
    medians: Sequence[dict[str, Any]],
    broken: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """The tables `judged` and `nights` with what was judged now: they replace those before."""
    rules: dict[tuple[str, str], set[str]] = defaultdict(set)
    for item in broken:
        for scenario in item["scenarios"]:
            rules[item["run"], scenario].add(item["rule"])
    replaced = {row["run"]: known.month if (known := entries.get(row["run"])) else None for row in runs}
    whole = months_with(out, rows_of(runs, sums, medians, rules), replaced)
    return {"judged": index_of({**entries, **mine}.values()), **whole}


def _by_run(found: DataFrame) -> list[dict[str, Any]]:
    """A row for each rule and run: run, rule, scenarios, subscriptions, count, and an example of it."""
    from pyspark.sql import functions as F

    example = F.struct("run", "scenario", "subscription", "first", F.col("count").alias("times"))
    rules = found.groupBy("run", "rule").agg(
        F.count("*").alias("subscriptions"),
        F.sum("count").alias("count"),
        F.min_by(example, F.struct("first", "subscription")).alias("example"),
        F.collect_set("scenario").alias("scenarios"),
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


def _examples(source: Source, broken: Sequence[dict[str, Any]], late_signals: int) -> list[Violation]:
    """Of rules that were broken one breach each, with the signals around it; of the newest runs first."""
    newest = sorted(sorted(broken, key=lambda item: str(item["rule"])), key=lambda item: str(item["run"]), reverse=True)
    chosen = [
        {"rule": item["rule"], **item["example"], "count": item["example"]["times"]} for item in newest[:_EXAMPLES]
    ]
    return examples_in(source.groups(chosen), chosen, late_signals)


def _drawn(breach: Violation) -> dict[str, Any]:
    """A row of the table of examples."""
    known = {name: getattr(breach, name) for name in ("run", "scenario", "subscription", "rule", "seen")}
    return {**known, "diagram": diagram(breach.around, breach.first)}


at_home("reactive_runtime.spark", Verdict, read_runs, summary, verify)
