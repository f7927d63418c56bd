"""Spark: the session, and the pipeline that judges recorded runs. Imports pyspark on use."""

from reactive_runtime.spark.judging import breaches, violations
from reactive_runtime.spark.session import session
from reactive_runtime.spark.traces import Verdict, follow, read_runs, summary, verify

__all__ = ["Verdict", "breaches", "follow", "read_runs", "session", "summary", "verify", "violations"]
