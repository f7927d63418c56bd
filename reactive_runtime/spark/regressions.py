"""Is the newest run slower than those before it? By a test that noise does not pass.

A series is the median latency of one scenario, run by run (`latency`, p50, no less than a microsecond), as logarithm.

1. The newest run is held against up to 14 complete runs before it, on the same machine and Python; a series with fewer
   than 7 is not judged.
2. A night on which everything is slow says something of the machine: from each run the median difference of all its
   series from what they usually are is taken off, where there are 8 of them or more.
3. Of what is left, usual is the median, and the spread is the median absolute deviation (times 1.4826), or that of
   the median series where that is larger: fourteen values may be close together by chance.
4. Slower is what is above the usual by more than six spreads, and more than half, and a quarter above the worst run.

On made-up histories of 62 scenarios this cries wolf in at most one night of a hundred where the noise is normal, and in
at most one of ten where it has the heavy tails of Student's t with four degrees of freedom; a scenario that takes three
times as long is found in nine nights of ten where its runs differ by ten percent (benchmarks/regressions.py).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BEFORE", "compared", "regressions"]

BEFORE: Final = 14
"""Runs that the newest one is held against, at most."""

FEWEST: Final = 7
_SERIES: Final = 8
_SPREADS: Final = 6
_LEAST: Final = 1.5
_ABOVE_THE_WORST: Final = 1.25

_LATENCY: Final = "scenario string, what string, p50 bigint, run string"
_RUNS: Final = "started string, complete boolean, python string, machine string, run string"


def regressions(spark: SparkSession, tables: Path) -> list[dict[str, Any]]:
    """Hold the newest run of the history below `tables` against those before it, and write what came of it there.

    Returns what is slower, the worst first. Where there are too few runs to judge by, no table is written.
    """
    if sum(1 for _ in (tables / "latency").glob("run=*")) <= FEWEST:
        shutil.rmtree(tables / "regressions", ignore_errors=True)
        return []
    latency = spark.read.schema(_LATENCY).parquet(str(tables / "latency"))
    runs = spark.read.schema(_RUNS).parquet(str(tables / "runs"))
    found = compared(latency, runs).persist()
    try:
        found.repartition(1).write.mode("overwrite").parquet(str(tables / "regressions"))
        return [row.asDict() for row in found.where("slower").orderBy("ratio", ascending=False).collect()]
    finally:
        found.unpersist()


def compared(latency: DataFrame, runs: DataFrame) -> DataFrame:
    """One row a series: run, scenario, what, now, usual (ns), ratio, spread (as a factor), runs, slower."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    newest = runs.groupBy().agg(F.max(F.struct("started", "run", "machine", "python")).alias("newest"))
    places = runs.join(F.broadcast(newest)).where(
        "run = newest.run or (complete and machine <=> newest.machine and python <=> newest.python)"
    )
    order = Window.orderBy(F.desc("started"), F.desc("run"))
    chosen = places.select("run", (F.row_number().over(order) - 1).alias("ago")).where(f"ago <= {BEFORE}")
    values = latency.join(F.broadcast(chosen), "run").selectExpr(
        "run", "ago", "scenario", "what", "p50", "ln(greatest(p50, 1000)) as y"
    )
    series = "partition by scenario, what"
    known = values.selectExpr(
        "*",
        f"median(if(ago > 0, y, null)) over ({series}) as m",
        f"count_if(ago > 0) over ({series}) as runs",
    ).where(f"runs >= {FEWEST}")
    of_run = "partition by run"
    even = known.selectExpr(
        "*", f"y - if(count(*) over ({of_run}) >= {_SERIES}, median(y - m) over ({of_run}), 0) as h"
    )
    centred = even.selectExpr("*", f"median(if(ago > 0, h, null)) over ({series}) as centre")
    judged = centred.groupBy("scenario", "what").agg(
        F.max("runs").alias("runs"),
        F.max("centre").alias("centre"),
        F.expr("1.4826 * median(if(ago > 0, abs(h - centre), null))").alias("own"),
        F.expr("max(if(ago > 0, h, null))").alias("worst"),
        F.expr("max(if(ago = 0, h, null))").alias("h"),
        F.expr("max(if(ago = 0, p50, null))").alias("now"),
        F.expr("max(if(ago = 0, run, null))").alias("run"),
    )
    limit = f"greatest({_SPREADS} * spread, ln({_LEAST}))"
    return (
        judged.where("h is not null")
        .selectExpr("*", "greatest(own, median(own) over ()) as spread")
        .selectExpr(
            *("run", "scenario", "what", "now", "runs"),
            "cast(now / exp(h - centre) as bigint) as usual",
            "exp(h - centre) as ratio",
            "exp(spread) as spread",
            f"h - centre > {limit} and h - worst > ln({_ABOVE_THE_WORST}) as slower",
        )
    )
