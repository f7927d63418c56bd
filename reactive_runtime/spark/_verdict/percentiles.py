"""Percentiles of how long things took, from counts in buckets (`reactive_runtime.testing._latency`).

A percentile is the largest value of its bucket, which is at most nine percent above the exact one.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

__all__ = ["percentiles"]

_PERCENTS: Final = (50, 90, 99)

_NAMES: Final[dict[str, pa.DataType]] = dict.fromkeys(("run", "scenario", "what"), pa.string())
_NUMBERS: Final[dict[str, pa.DataType]] = dict.fromkeys(("count", "p50", "p90", "p99", "max"), pa.int64())
_SCHEMA: Final = pa.schema({**_NAMES, **_NUMBERS})


def percentiles(counts: pa.Table) -> pa.Table:
    """One row for each scenario of each run and what was measured: run, scenario, what, count, p50, p90, p99, max.

    `counts` has a row for each bucket (`WAITS` of `reactive_runtime.judging._kernel`).
    """
    buckets: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in counts.to_pylist():
        buckets.setdefault((row["run"], row["scenario"], row["what"]), []).append(row)
    rows = []
    for whose, of in sorted(buckets.items()):
        total = sum(row["count"] for row in of)
        found = dict(zip(("run", "scenario", "what"), whose, strict=True)) | {"count": total}
        upto = 0
        for row in sorted(of, key=lambda row: row["bucket"]):
            upto += row["count"]
            for percent in _PERCENTS:
                if 100 * upto >= percent * total:
                    found.setdefault(f"p{percent}", row["largest"])
        rows.append({**found, "max": max(row["largest"] for row in of)})
    return pa.Table.from_pylist(rows, schema=_SCHEMA)
