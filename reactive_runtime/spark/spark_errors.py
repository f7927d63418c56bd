"""What Spark says when something fails, put so that the reason comes first."""

from __future__ import annotations

from typing import Any

from reactive_runtime.errors import SparkError

__all__ = ["a_dataframe", "is_connected", "not_stopped", "reason", "spark_error"]


def spark_error(what: str, error: BaseException) -> SparkError:
    """A SparkError that begins with Spark's reason; `error`, with the Java stack, should be made its cause."""
    if isinstance(error, SparkError):
        return error
    return SparkError(f"{what}: {reason(error)}")


def reason(error: BaseException) -> str:
    """One line: the innermost cause that says anything; of an error in a Python worker, the exception there."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    said = _innermost(java) if java is not None else str(error)
    lines = [line for line in said.splitlines() if line.strip()]
    traces = [at for at, line in enumerate(lines) if "Traceback (most recent call last)" in line]
    if traces:  # what it ends with is the first line that is not indented
        lines = [line for line in lines[traces[-1] + 1 :] if not line[0].isspace()] or lines
    return lines[0].strip() if lines else type(error).__name__


def _innermost(throwable: Any) -> str:
    found = ""
    while throwable is not None:
        message = throwable.getMessage()
        if message:
            found = message
        throwable = throwable.getCause()
    return found


def is_connected(of_spark: object) -> bool:
    """Whether a session or a DataFrame is one of Spark Connect: its jobs and its JVM are elsewhere."""
    return type(of_spark).__module__.startswith("pyspark.sql.connect.")


def not_stopped(what: str, session: Any) -> None:
    """SparkError where the session is over."""
    if not is_connected(session) and session.sparkContext._jsc is None:
        raise SparkError(f"{what}: the session of Spark was stopped: make another, and its DataFrames anew")


def a_dataframe(what: str, df: object) -> None:
    """TypeError where it is no DataFrame, or one of Spark Connect, which has no jobs to fetch by."""
    if not all(hasattr(df, name) for name in ("schema", "sparkSession", "mapInArrow")):
        raise TypeError(f"{what}: a DataFrame is needed, not {type(df).__name__}")
    if is_connected(df):
        raise TypeError(
            f"{what}: a DataFrame of Spark Connect can't be used here, whose partitions only its server sees: use a"
            " session with a master, or map_flow, which runs on the executors"
        )
