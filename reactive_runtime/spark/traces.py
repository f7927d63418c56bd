"""The trace pipeline: judges any number of recorded runs by docs/judging.md, as one DataFrame program.

The plan has one shuffle, by run and subscription, and one sort, by `begin`. Over that order a single window says
for each record what came before it; from this and the record alone, each rule is a column that is true where the
record breaks it. A second aggregation on the same keys, which moves nothing, counts them.

What every row has to carry through the shuffle is little: numbers and flags, no text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime.spec import MAX_DEMAND
from reactive_runtime.testing.records import Record, Signal
from reactive_runtime.testing.rules import RULES
from reactive_runtime.testing.trace import check_files

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["Verdict", "breaches", "read_runs", "summary", "verify", "violations"]

FOREVER: Final = 2**63 - 1
"""The `end` of a call that has not returned."""

_SHOWN: Final = 100_000
"""How many records of a broken subscription the driver looks at, to show the few around the breach."""

KEYS: Final = ("run", "scenario", "subscription")


def read_runs(spark: SparkSession, folders: Sequence[Path | str]) -> DataFrame:
    """The records of all runs below the folders; TraceError names a folder or a file that is none."""
    files = [str(file) for folder in folders for file in check_files(folder)]
    return spark.read.parquet(*files)


def breaches(signals: DataFrame, late_signals: int = 1) -> DataFrame:
    """For each subscription one row: how often each rule was broken, and where first; and what it amounted to."""
    from pyspark.sql import functions as F

    rows = _with_the_past(_numbered(signals))
    columns = []
    for rule, breaks in _BREAKS.items():
        columns += [
            F.count_if(F.expr(breaks)).alias(f"count {rule}"),
            F.min(F.expr(f"if({breaks}, begin, null)")).alias(f"first {rule}"),
        ]
    for name, late in _LATE.items():
        columns.append(F.sort_array(F.collect_list(F.expr(f"if({late}, begin, null)"))).alias(name))
    found = rows.groupBy(*KEYS).agg(*columns, *_amounts())
    allowed = F.when(F.col("outside"), F.lit(late_signals)).otherwise(F.lit(0))
    found = _beyond(found, "1.8", "late_begins", allowed)
    found = _beyond(found, "3.9", "after_invalid", F.lit(1))
    return found.withColumn("late", F.size("late_begins")).drop(*_LATE)


def _beyond(found: DataFrame, rule: str, begins: str, allowed: Column) -> DataFrame:
    """Add to a rule's breaches those of `begins` that are more than `allowed`."""
    from pyspark.sql import functions as F

    count, first = f"count {rule}", f"first {rule}"
    beyond = F.greatest(F.size(begins) - allowed, F.lit(0))
    if rule in _BREAKS:
        more = F.col(f"`{count}`") + beyond
        earliest = F.least(F.col(f"`{first}`"), F.try_element_at(begins, allowed + 1))
    else:
        more, earliest = beyond, F.try_element_at(begins, allowed + 1)
    return found.withColumns({count: more, first: earliest})


def violations(found: DataFrame) -> DataFrame:
    """One row for each rule broken in each subscription: run, scenario, subscription, rule, count, first."""
    from pyspark.sql import functions as F

    broken = F.array(
        *(
            F.struct(
                F.lit(rule).alias("rule"),
                F.col(f"`count {rule}`").cast("long").alias("count"),
                F.col(f"`first {rule}`").alias("first"),
            )
            for rule in RULES
        )
    )
    return (
        found.select(*KEYS, F.explode(F.filter(broken, lambda it: it["count"] > 0)).alias("broken"))
        .select(*KEYS, "broken.*")
        .orderBy("run", "subscription", "rule")
    )


def summary(found: DataFrame) -> DataFrame:
    """One row for each scenario of each run: how much was judged, how it ended, and how long cancels took.

    `late_*` counts the signals that began after a `cancel` had returned; `silence_ns_*` is the time from its
    return to the beginning of the last of them, 0 where there was none; both over the cancelled subscriptions.
    """
    from pyspark.sql import functions as F

    sums = ("signals", "elements", "requests", "cancels")
    cancelled = F.col("cancels") > 0
    percentiles = [
        column
        for name, value in (("late", F.col("late")), ("silence_ns", F.col("silence_ns")))
        for column in (
            *(
                F.percentile_approx(F.when(cancelled, value), p).alias(f"{name}_p{round(100 * p)}")
                for p in (0.5, 0.9, 0.99)
            ),
            F.max(F.when(cancelled, value)).alias(f"{name}_max"),
        )
    ]
    return (
        found.groupBy("run", "scenario")
        .agg(
            F.count("*").alias("subscriptions"),
            *(F.sum(name).alias(name) for name in sums),
            *(F.count_if(name).alias(name) for name in ("completed", "failed")),
            F.count_if(cancelled).alias("cancelled"),
            *percentiles,
        )
        .orderBy("run", "scenario")
    )


@dataclass(frozen=True)
class Verdict:
    """What the pipeline found."""

    violations: list[dict[str, Any]]
    """By rule: rule, subscriptions, count, and an example (run, scenario, subscription, first)."""
    summary: list[dict[str, Any]]
    examples: dict[str, list[Record]]
    """For each rule broken, all records of one subscription that breaks it, in order."""

    @property
    def clean(self) -> bool:
        """Whether no rule was broken."""
        return not self.violations


def verify(spark: SparkSession, folders: Sequence[Path | str], out: Path | str, late_signals: int = 1) -> Verdict:
    """Judge all runs, write `violations` and `summary` as Parquet below `out`, and return the verdict."""
    from pyspark.sql import functions as F

    signals = read_runs(spark, folders)
    rows = breaches(signals, late_signals).persist()
    try:
        found = violations(rows)
        found.write.mode("overwrite").parquet(str(Path(out) / "violations"))
        totals = summary(rows)
        totals.write.mode("overwrite").parquet(str(Path(out) / "summary"))
        by_rule = found.groupBy("rule").agg(
            F.count("*").alias("subscriptions"),
            F.sum("count").alias("count"),
            F.min_by(F.struct(*KEYS, "first"), "first").alias("example"),
        )
        broken = [row.asDict(recursive=True) for row in by_rule.orderBy("rule").collect()]
        examples = {it["rule"]: _records(signals, it["example"]) for it in broken}
        return Verdict(broken, [row.asDict() for row in totals.collect()], examples)
    finally:
        rows.unpersist()


def _records(signals: DataFrame, example: dict[str, Any]) -> list[Record]:
    """The records of the subscription up to a breach and a few after it, for the driver to show."""
    from pyspark.sql import functions as F

    mine = signals.where((F.col("run") == example["run"]) & (F.col("subscription") == example["subscription"]))
    at = example["first"]
    before = mine.where(F.col("begin") <= at).orderBy("begin").limit(_SHOWN)
    after = mine.where(F.col("begin") > at).orderBy("begin").limit(6)
    rows = before.union(after).orderBy("begin").collect()
    return [Record(*(row[name] for name in Record._fields)) for row in rows]


# -- what a record is, and what came before it ---------------------------------------------------------------


_KIND: Final = {signal: code for code, signal in enumerate(Signal)}
_SIGNAL = "kind <= 3"
_CALL = "kind in (4, 5)"
_TERMINAL = "kind in (2, 3)"
assert [s for s in Signal if _KIND[s] <= 3] == ["on_subscribe", "on_next", "on_error", "on_complete"]


def _numbered(signals: DataFrame) -> DataFrame:
    """The columns that are judged, with the signal as a number and the error as a flag."""
    from pyspark.sql import functions as F

    kind = F.lit(None)
    for signal, code in reversed(_KIND.items()):
        kind = F.when(F.col("signal") == signal.value, F.lit(code)).otherwise(kind)
    return signals.select(
        *KEYS,
        "shared_callers",
        "ascending",
        "elements",
        "thread",
        "n",
        "begin",
        F.coalesce("end", F.lit(FOREVER)).alias("end"),
        "begin_ns",
        "end_ns",
        "value",
        kind.cast("byte").alias("kind"),
        F.col("error").isNotNull().alias("raised"),
    )


def _with_the_past(rows: DataFrame) -> DataFrame:
    """Each record with what is known, at its `begin`, of the earlier records of its subscription."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    ordered = Window.partitionBy(*KEYS).orderBy("begin")
    earlier = ordered.rowsBetween(Window.unboundedPreceding, -1)

    def latest(of: str, value: str) -> Column:
        return F.max(F.when(F.expr(of), F.struct("end", value))).over(earlier)

    past = rows.withColumns(
        {
            "delivered": F.coalesce(F.count_if(F.expr("kind = 1")).over(earlier), F.lit(0)),
            "requested": F.coalesce(F.sum(F.expr("if(kind = 4 and n > 0, double(n), 0D)")).over(earlier), F.lit(0.0)),
            "largest": F.max(F.expr("if(kind = 1, value, null)")).over(earlier),
            "subscribed": F.coalesce(F.count_if(F.expr("kind = 0")).over(earlier), F.lit(0)) > 0,
            "terminated": F.coalesce(F.count_if(F.expr(_TERMINAL)).over(earlier), F.lit(0)) > 0,
            "cancel_begun": F.coalesce(F.count_if(F.expr("kind = 5")).over(earlier), F.lit(0)) > 0,
            "signals_end": F.coalesce(F.max(F.expr(f"if({_SIGNAL} and kind > 0, end, null)")).over(earlier), F.lit(0)),
            "subscribing": latest("kind = 0", "thread"),
            "calling": latest(_CALL, "thread"),
            "signal_thread": F.last(F.expr(f"if({_SIGNAL}, thread, null)"), ignorenulls=True).over(earlier),
        }
    )
    # Where a cancel came from, and which request was invalid, depends on the past of that record: a second look,
    # over the same order.
    inside = "(signal_thread <=> thread) and greatest(signals_end, coalesce(subscribing.end, 0)) > begin"
    marked = past.withColumns(
        {
            "cancel": F.expr(f"if(kind = 5 and end < {FOREVER}, struct(end, not ({inside}) as outside, end_ns), null)"),
            "invalid_end": F.expr(
                "if(kind = 4 and (n is null or n <= 0) and not cancel_begun and not terminated, end, null)"
            ),
        }
    )
    return marked.withColumns(
        {
            "first_cancel": F.min("cancel").over(earlier),
            "first_invalid_end": F.min("invalid_end").over(earlier),
        }
    )


# -- the rules, one column each ------------------------------------------------------------------------------

_BREAKS: Final[dict[str, str]] = {
    "1.1": "kind = 1 and delivered + 1 > requested",
    "1.3": f"{_SIGNAL} and (signals_end > begin"
    " or coalesce(subscribing.end > begin and subscribing.thread != thread, false))",
    "1.7": f"{_SIGNAL} and terminated",
    "1.9": f"({_SIGNAL} and (kind = 0) = subscribed) or (kind = 6 and raised) or (kind = 7 and not subscribed)",
    "2.7": f"{_CALL} and not shared_callers and coalesce(calling.end > begin and calling.thread != thread, false)",
    "3.8": f"kind = 7 and not terminated and not cancel_begun and first_invalid_end is null"
    f" and delivered < requested and requested < {MAX_DEMAND}D",
    "3.16": f"{_CALL} and raised",
    "3.17": f"kind = 7 and not terminated and not cancel_begun and first_invalid_end is null"
    f" and delivered < requested and requested >= {MAX_DEMAND}D",
    "conservation": "(kind = 1 and (coalesce(ascending and value <= largest, false)"
    " or coalesce(delivered + 1 > elements, false)))"
    " or (kind = 3 and not cancel_begun and coalesce(delivered < elements, false))",
    "3.9": "kind = 7 and not terminated and not cancel_begun and first_invalid_end is not null",
}
"""When a record breaks a rule: docs/judging.md in SQL."""

_LATE: Final = {
    "late_begins": f"{_SIGNAL} and coalesce(first_cancel.end < begin, false)",
    "after_invalid": "kind = 1 and not cancel_begun and coalesce(first_invalid_end < begin, false)",
}
"""What may happen a number of times, and breaks 1.8 or 3.9 beyond that."""


def _amounts() -> list[Column]:
    """What a subscription amounted to."""
    from pyspark.sql import functions as F

    late = _LATE["late_begins"]
    return [
        F.count_if(F.expr(_SIGNAL)).alias("signals"),
        F.count_if(F.expr("kind = 1")).alias("elements"),
        F.count_if(F.expr("kind = 4")).alias("requests"),
        F.count_if(F.expr("kind = 5")).alias("cancels"),
        (F.count_if(F.expr("kind = 3")) > 0).alias("completed"),
        (F.count_if(F.expr("kind = 2")) > 0).alias("failed"),
        F.coalesce(F.bool_or(F.expr(f"if({late}, first_cancel.outside, null)")), F.lit(False)).alias("outside"),
        F.coalesce(F.max(F.expr(f"if({late}, greatest(begin_ns - first_cancel.end_ns, 0), null)")), F.lit(0)).alias(
            "silence_ns"
        ),
    ]
