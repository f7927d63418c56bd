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
OPEN: Final = 2**62
"""A call that has not returned ends at FOREVER - begin, beyond OPEN: of two such, the first to begin is the later."""

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

    rows = _with_the_past(_packed(signals))
    bits = {rule: 1 << place for place, rule in enumerate(_BREAKS)}
    mask = " | ".join(f"if({breaks}, {bits[rule]}, 0)" for rule, breaks in _BREAKS.items())
    marked = rows.select(
        *_KEPT, F.expr(mask).alias("broken"), F.expr(_LATE).alias("late"), F.expr(_AFTER).alias("after")
    )
    columns = []
    for rule, bit in bits.items():
        columns += [
            F.count_if(F.expr(f"broken & {bit} != 0")).alias(f"count {rule}"),
            F.min(F.expr(f"if(broken & {bit} != 0, begin, null)")).alias(f"first {rule}"),
        ]
    found = marked.groupBy("subscription", "run", "scenario").agg(*columns, *_amounts())
    allowed = f"if(first_cancel % 2 = 1, {late_signals}, 0)"
    return found.withColumns(
        {
            "count 1.8": F.expr(f"if(late > {allowed}, late, 0)"),
            "first 1.8": F.col("first_late"),
            "count 3.9": F.expr("`count 3.9` + if(after > 1, after, 0)"),
            "first 3.9": F.expr("if(after > 1, least(first_after, `first 3.9`), `first 3.9`)"),
            "silence_ns": F.expr("if(late > 0, greatest(last_late_ns - first_cancel_ns, 0), 0)"),
        }
    )


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
    upto = mine.where(F.col("begin") <= at).orderBy("begin").limit(_SHOWN)
    beyond = mine.where(F.col("begin") > at).orderBy("begin").limit(1_000)  # one too many may come some way after
    rows = upto.union(beyond).orderBy("begin").collect()
    return [Record(*(row[name] for name in Record._fields)) for row in rows]


# -- what a record is, and what came before it ---------------------------------------------------------------


_KIND: Final = {signal: code for code, signal in enumerate(Signal)}
_SIGNAL = "kind <= 3"
_CALL = "kind in (4, 5)"
_TERMINAL = "kind in (2, 3)"
_INVALID = "kind = 4 and (n is null or n <= 0)"
assert [signal for signal in Signal if _KIND[signal] <= 3] == ["on_subscribe", "on_next", "on_error", "on_complete"]
assert (_KIND[Signal.REQUEST], _KIND[Signal.CANCEL]) == (4, 5)


def _packed(signals: DataFrame) -> DataFrame:
    """The columns that are judged, brought together by subscription. Flags cross the shuffle in one number."""
    from pyspark.sql import functions as F

    kind = " ".join(f"when '{signal.value}' then {code}" for signal, code in _KIND.items())
    packed = signals.select(
        "run",
        "scenario",
        "subscription",
        F.expr(
            f"case signal {kind} end + if(shared_callers, 8, 0) + if(ascending, 16, 0) + if(error is null, 0, 32)"
        ).alias("flags"),
        "elements",
        "thread",
        "n",
        "begin",
        F.expr(f"coalesce(end, {FOREVER} - begin)").alias("end"),
        F.expr("if(signal = 'cancel', end_ns, begin_ns)").alias("ns"),
        "value",
    )
    unpacked = {
        "kind": "flags & 7",
        "shared_callers": "flags & 8 != 0",
        "ascending": "flags & 16 != 0",
        "raised": "flags & 32 != 0",
    }
    # A number of partitions that adaptive execution leaves alone: sorting is cheapest where a partition fits the
    # processor's cache, far below the size that moving it would ask for.
    partitions = int(signals.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    together = packed.repartition(partitions, "subscription", "run")
    return together.withColumns({name: F.expr(text) for name, text in unpacked.items()}).drop("flags")


def _with_the_past(rows: DataFrame) -> DataFrame:
    """Each record with what is known, at its `begin`, of the earlier records of its subscription."""

    earlier = "over (partition by subscription, run order by begin rows between unbounded preceding and 1 preceding)"
    past = {
        "delivered": "count_if(kind = 1)",
        "requested": "try_sum(if(kind = 4 and n > 0, n, 0L))",  # null once it is past 64 bits
        "largest": "max(if(kind = 1, value, null))",
        "subscribed": "max(kind = 0)",
        "first_end": f"min(if({_TERMINAL}, begin, null))",
        "cancel_begun": "max(kind = 5)",
        "cancel_end": f"min(if(kind = 5 and end < {OPEN}, end, null))",
        "signals_end": f"max(if({_SIGNAL} and kind > 0, end, null))",
        "subscribe_end": "max(if(kind = 0, end, null))",
        "subscribe_thread": "max_by(thread, if(kind = 0, end, null))",
        "calls_end": f"max(if({_CALL}, end, null))",
        "calls_thread": f"max_by(thread, if({_CALL}, end, null))",
        "signal_thread": f"last_value(if({_SIGNAL}, thread, null)) ignore nulls",
        "invalid_begin": f"min(if({_INVALID}, begin, null))",
        "invalid_end": f"first_value(if({_INVALID}, end, null)) ignore nulls",
    }
    return rows.selectExpr("*", *(f"{text} {earlier} as {name}" for name, text in past.items()))


# -- the rules ------------------------------------------------------------------------------------------------

_REQUESTED: Final = f"if(subscribed is null, 0L, coalesce(requested, {MAX_DEMAND}L))"
"""The sum of valid demand, capped (3.17); 0 at the first record of a subscription, which has no past."""

_OPEN: Final = "first_end is null and not coalesce(cancel_begun, false)"
"""Neither ended nor cancelled so far."""

_UNANSWERED: Final = "invalid_begin is not null and (first_end is null or invalid_begin < first_end)"
"""There was an invalid request before any end; without a cancel so far, it was before any cancel as well."""

_UNMET: Final = f"coalesce(delivered, 0) < {_REQUESTED}"

_BREAKS: Final[dict[str, str]] = {
    "1.1": f"kind = 1 and coalesce(delivered, 0) + 1 > {_REQUESTED}",
    "1.3": f"{_SIGNAL} and (coalesce(signals_end > begin, false)"
    " or coalesce(subscribe_end > begin and subscribe_thread != thread, false))",
    "1.7": f"{_SIGNAL} and first_end is not null",
    "1.9": f"({_SIGNAL} and (kind = 0) = coalesce(subscribed, false)) or (kind = 6 and raised)"
    " or (kind = 7 and not coalesce(subscribed, false))",
    "2.7": f"{_CALL} and not shared_callers and coalesce(calls_end > begin and calls_thread != thread, false)",
    "3.8": f"kind = 7 and {_OPEN} and invalid_begin is null and {_UNMET} and {_REQUESTED} < {MAX_DEMAND}L",
    "3.9": f"kind = 7 and {_OPEN} and {_UNANSWERED}",
    "3.16": f"{_CALL} and raised",
    "3.17": f"kind = 7 and {_OPEN} and invalid_begin is null and {_UNMET} and {_REQUESTED} = {MAX_DEMAND}L",
    "conservation": "(kind = 1 and (coalesce(ascending and value <= largest, false)"
    " or coalesce(coalesce(delivered, 0) + 1 > elements, false)))"
    " or (kind = 3 and not coalesce(cancel_begun, false) and coalesce(coalesce(delivered, 0) < elements, false))",
}
"""When a record breaks a rule: docs/judging.md in SQL. 1.8, and a part of 3.9, are judged by the subscription."""

_LATE: Final = f"{_SIGNAL} and coalesce(cancel_end < begin, false)"
"""1.8: the signal began after a cancel had returned."""

_AFTER: Final = (
    f"kind = 1 and not coalesce(cancel_begun, false) and {_UNANSWERED} and coalesce(invalid_end < begin, false)"
)
"""3.9: the element began after an invalid request had returned."""

_INSIDE: Final = "signal_thread <=> thread and greatest(coalesce(signals_end, 0), coalesce(subscribe_end, 0)) > begin"
"""Of a cancel: it came from inside a signal."""

_KEPT: Final = (
    *("run", "scenario", "subscription", "kind", "begin", "end", "ns", "thread"),
    *("signal_thread", "signals_end", "subscribe_end"),
)
"""What the aggregation needs of a record, beside what it breaks."""


def _amounts() -> list[Column]:
    """What a subscription amounted to."""
    from pyspark.sql import functions as F

    texts = {
        "signals": f"count_if({_SIGNAL})",
        "elements": "count_if(kind = 1)",
        "requests": "count_if(kind = 4)",
        "cancels": "count_if(kind = 5)",
        "completed": "count_if(kind = 3) > 0",
        "failed": "count_if(kind = 2) > 0",
        # The first cancel to end: for every signal that is late it is the same one.
        # Whether it came from outside is the last bit, so that the minimum is of one number.
        "first_cancel": f"min(if(kind = 5 and end < {OPEN}, end * 2 + if({_INSIDE}, 0, 1), null))",
        "first_cancel_ns": f"min(if(kind = 5 and end < {OPEN}, ns, null))",
        "late": "count_if(late)",
        "first_late": "min(if(late, begin, null))",
        "last_late_ns": "max(if(late, ns, null))",
        "after": "count_if(after)",
        "first_after": "min(if(after, begin, null))",
    }
    return [F.expr(text).alias(name) for name, text in texts.items()]
