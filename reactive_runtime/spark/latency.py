"""How long things took: from demand to the element, and from a cancel to silence.

*demand → element*: from the beginning of a `request` that found no demand outstanding, to the beginning of the element
that answers it; where more requests come in between, it is not measured. *cancel → silence*: from the return of the
first `cancel` to the beginning of the last signal that followed, 0 where none did.

Both are kept as counts in buckets, an eighth of an octave wide, so that runs can be put together and drawn; a
percentile is the largest value of its bucket, which is at most nine percent above the exact one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reactive_runtime.spark.judging import together

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["DEMAND", "SILENCE", "histogram", "percentiles"]

DEMAND: Final = "demand → element"
SILENCE: Final = "cancel → silence"

_BUCKETS: Final = 8  # an octave


def histogram(signals: DataFrame, found: DataFrame) -> DataFrame:
    """One row a bucket: run, scenario, what, bucket, count, largest (ns). `found` are the breaches of `signals`."""
    from pyspark.sql import functions as F

    earlier = "over (partition by subscription, run order by begin rows between unbounded preceding and 1 preceding)"
    past = {
        "delivered": "count_if(kind = 1)",
        "requested": "try_sum(if(kind = 4 and n > 0, n, 0L))",
        "last_n": "last_value(if(kind = 4 and n > 0, n, null)) ignore nulls",
        "asked": "max(if(kind = 4 and n > 0, begin, null))",
        "signalled": "max(if(kind = 1, begin, null))",
        "asked_ns": "last_value(if(kind = 4 and n > 0, ns, null)) ignore nulls",
    }
    waits = (
        together(signals)
        .selectExpr("run", "scenario", "kind", "ns", *(f"{text} {earlier} as {name}" for name, text in past.items()))
        .where("kind = 1 and delivered = requested - last_n and coalesce(signalled < asked, true)")
        .selectExpr("run", "scenario", f"'{DEMAND}' as what", "greatest(ns - asked_ns, 0L) as ns")
    )
    silences = found.where("cancels > 0").selectExpr("run", "scenario", f"'{SILENCE}' as what", "silence_ns as ns")
    bucket = f"cast(floor({_BUCKETS} * log2(ns + 1)) as int)"
    return (
        waits.unionByName(silences)
        .groupBy("run", "scenario", "what", F.expr(bucket).alias("bucket"))
        .agg(F.count("*").alias("count"), F.max("ns").alias("largest"))
    )


def percentiles(counts: DataFrame) -> DataFrame:
    """One row for each scenario of each run and what was measured: run, scenario, what, count, p50, p90, p99, max."""
    from pyspark.sql import functions as F

    keys = ("run", "scenario", "what")
    upto = "over (partition by run, scenario, what order by bucket)"
    ranked = counts.selectExpr(
        "*", f"sum(count) {upto} as upto", "sum(count) over (partition by run, scenario, what) as total"
    )
    return ranked.groupBy(*keys).agg(
        F.sum("count").alias("count"),
        *(
            F.min(F.when(F.expr(f"upto >= {p} * total"), F.col("largest"))).alias(f"p{round(100 * p)}")
            for p in (0.5, 0.9, 0.99)
        ),
        F.max("largest").alias("max"),
    )
