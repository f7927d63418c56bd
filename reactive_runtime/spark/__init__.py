"""Spark: the session, the pipeline that judges recorded runs, and its connectors to flows. Imports pyspark on use.

A name is imported when it is first asked for: a task of `map_flow` begins a process, and needs little of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from reactive_runtime.spark._job_limits import JobLimits
    from reactive_runtime.spark._judging import Found, explain, judge_files, judge_frame
    from reactive_runtime.spark._marks import elements_written
    from reactive_runtime.spark._segments import elements_fed, read_feed
    from reactive_runtime.spark._spark_session import session
    from reactive_runtime.spark._spark_sink import SparkFeed, SparkSink
    from reactive_runtime.spark._table_sink import SparkTableSink
    from reactive_runtime.spark._task_flows import TaskFlow, map_flow
    from reactive_runtime.spark._task_metrics import TaskMetrics
    from reactive_runtime.spark._traces import Verdict, follow, read_runs, summary, verify

__all__ = [
    "Found",
    "JobLimits",
    "SparkFeed",
    "SparkSink",
    "SparkTableSink",
    "TaskFlow",
    "TaskMetrics",
    "Verdict",
    "elements_fed",
    "elements_written",
    "explain",
    "follow",
    "judge_files",
    "judge_frame",
    "map_flow",
    "read_feed",
    "read_runs",
    "session",
    "summary",
    "verify",
]

_HOMES: Final = {
    "Found": "judging",
    "JobLimits": "job_limits",
    "SparkFeed": "spark_sink",
    "SparkSink": "spark_sink",
    "SparkTableSink": "table_sink",
    "TaskFlow": "task_flows",
    "TaskMetrics": "task_metrics",
    "Verdict": "traces",
    "elements_fed": "segments",
    "elements_written": "marks",
    "explain": "judging",
    "follow": "traces",
    "judge_files": "judging",
    "judge_frame": "judging",
    "map_flow": "task_flows",
    "read_feed": "segments",
    "read_runs": "traces",
    "session": "spark_session",
    "summary": "traces",
    "verify": "traces",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}._{home}"), name)
    return value
