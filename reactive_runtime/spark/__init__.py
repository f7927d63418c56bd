"""Spark: the session, the pipeline that judges recorded runs, and its connectors to flows. Imports pyspark on use.

A name is imported when it is first asked for: a task of `map_flow` begins a process, and needs little of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from reactive_runtime.spark._feed.segments import elements_fed, read_feed
    from reactive_runtime.spark._lakehouse.kept_nights import KeptNight, keep_nights, read_as_of
    from reactive_runtime.spark._session.spark_session import session
    from reactive_runtime.spark._tasks.job_limits import JobLimits
    from reactive_runtime.spark._tasks.task_flows import TaskFlow, map_flow
    from reactive_runtime.spark._tasks.task_metrics import TaskMetrics
    from reactive_runtime.spark._verdict.following import follow
    from reactive_runtime.spark._verdict.judging import Found, explain, judge_files, judge_frame
    from reactive_runtime.spark._verdict.progress import Estimate, estimate
    from reactive_runtime.spark._verdict.traces import Verdict, read_runs, summary, verify
    from reactive_runtime.spark._write.marks import elements_written
    from reactive_runtime.spark._write.spark_sink import SparkFeed, SparkSink
    from reactive_runtime.spark._write.table_sink import SparkTableSink

__all__ = [
    "Estimate",
    "Found",
    "JobLimits",
    "KeptNight",
    "SparkFeed",
    "SparkSink",
    "SparkTableSink",
    "TaskFlow",
    "TaskMetrics",
    "Verdict",
    "elements_fed",
    "elements_written",
    "estimate",
    "explain",
    "follow",
    "judge_files",
    "judge_frame",
    "keep_nights",
    "map_flow",
    "read_as_of",
    "read_feed",
    "read_runs",
    "session",
    "summary",
    "verify",
]

_HOMES: Final = {
    "Estimate": "_verdict.progress",
    "Found": "_verdict.judging",
    "JobLimits": "_tasks.job_limits",
    "KeptNight": "_lakehouse.kept_nights",
    "SparkFeed": "_write.spark_sink",
    "SparkSink": "_write.spark_sink",
    "SparkTableSink": "_write.table_sink",
    "TaskFlow": "_tasks.task_flows",
    "TaskMetrics": "_tasks.task_metrics",
    "Verdict": "_verdict.traces",
    "elements_fed": "_feed.segments",
    "elements_written": "_write.marks",
    "estimate": "_verdict.progress",
    "explain": "_verdict.judging",
    "follow": "_verdict.following",
    "judge_files": "_verdict.judging",
    "judge_frame": "_verdict.judging",
    "keep_nights": "_lakehouse.kept_nights",
    "map_flow": "_tasks.task_flows",
    "read_as_of": "_lakehouse.kept_nights",
    "read_feed": "_feed.segments",
    "read_runs": "_verdict.traces",
    "session": "_session.spark_session",
    "summary": "_verdict.traces",
    "verify": "_verdict.traces",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value
