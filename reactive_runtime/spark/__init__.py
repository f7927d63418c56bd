"""Spark: the session, and the pipeline that judges recorded runs. Imports pyspark on use."""

from reactive_runtime.spark.session import session
from reactive_runtime.spark.traces import Verdict, breaches, read_runs, summary, verify, violations

__all__ = ["Verdict", "breaches", "read_runs", "session", "summary", "verify", "violations"]
