"""Spark: the session, the pipeline that judges recorded runs, and its connectors to flows. Imports pyspark on use."""

from reactive_runtime.spark.judging import Found, explain, judge_files, judge_frame
from reactive_runtime.spark.segments import elements_fed, read_feed
from reactive_runtime.spark.spark_session import session
from reactive_runtime.spark.spark_sink import SparkFeed, SparkSink
from reactive_runtime.spark.tasks import TaskMetrics, map_flow
from reactive_runtime.spark.traces import Verdict, follow, read_runs, summary, verify

__all__ = [
    "Found",
    "SparkFeed",
    "SparkSink",
    "TaskMetrics",
    "Verdict",
    "elements_fed",
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
