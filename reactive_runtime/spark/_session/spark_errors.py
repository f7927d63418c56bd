"""Errors of Spark, with the reason first."""

from __future__ import annotations

from typing import Any, Final

from reactive_runtime.errors import SparkError

__all__ = [
    "a_dataframe",
    "found_no_more",
    "is_connected",
    "is_of_reading",
    "lost",
    "not_stopped",
    "reason",
    "spark_error",
    "worker_was_late",
]


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
    said = lines[0].strip() if lines else type(error).__name__
    return " ".join([said, *map(str.strip, lines[1:4])]) if said.endswith(":") else said


def is_of_reading(error: BaseException) -> bool:
    """Whether a job has failed for what a task has read; not for a lost executor, say, or too little memory."""
    return "TraceError" in reason(error) or "FAILED_READ_FILE" in str(error)


def _innermost(throwable: Any) -> str:
    found = ""
    while throwable is not None:
        message = throwable.getMessage()
        # A class that is not there is the reason of a format that is not, and says less.
        if message and not (found and throwable.getClass().getName() == "java.lang.ClassNotFoundException"):
            found = message
        throwable = throwable.getCause()
    return found


def is_connected(of_spark: object) -> bool:
    """Whether a session or a DataFrame is one of Spark Connect: its jobs and its JVM are elsewhere."""
    return type(of_spark).__module__.startswith("pyspark.sql.connect.")


def lost(what: str, session: Any) -> SparkError | None:
    """The error where the session was stopped, or its JVM is gone; None where neither is so.

    It asks the JVM.
    """
    if is_connected(session):
        return None
    context = session.sparkContext
    try:
        stopped = context._jsc is None or context._jsc.sc().isStopped()
    except Exception as error:
        if context._jsc is not None:  # it is not that it was stopped meanwhile
            gone = SparkError(
                f"{what}: the JVM of Spark is gone: it was killed, or has run out of memory; begin another process"
            )
            gone.__cause__ = error
            return gone
        stopped = True
    if not stopped:
        return None
    return SparkError(f"{what}: the session of Spark was stopped: make another, and its DataFrames anew")


def worker_was_late(error: BaseException) -> bool:
    """Whether Spark gave a process of Python up that had not connected within 10 s, as on a busy machine.

    Spark has no setting for these seconds.
    """
    return "waiting for the Python worker to connect back" in reason(error)


def not_stopped(what: str, session: Any) -> None:
    """SparkError where the session is over."""
    error = lost(what, session)
    if error is not None:
        raise error


def a_dataframe(what: str, df: object) -> None:
    """TypeError where it is no DataFrame."""
    if not all(hasattr(df, name) for name in ("schema", "sparkSession", "mapInArrow")):
        raise TypeError(f"{what}: a DataFrame is needed, not {type(df).__name__}")


def found_no_more(query: Any, *, batches: bool) -> bool:
    """Whether a query that has ended had looked for more, and there was none.

    Or had the one batch that it makes of all there is; `batches` says whether it had any. Spark says it in no public
    way. Where it can't be asked, a query that ended without an error is at its end.
    """
    try:
        execution = query._jsq.streamingQuery()
        return bool(execution.noNewData()) or (batches and _has_one_batch(execution))
    except Exception:
        return True


_WRAPS: Final = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"


def _has_one_batch(execution: Any) -> bool:
    """Whether Spark makes one batch of all there is: where a source does not say what that is."""
    from pyspark import SparkContext

    java: Any = SparkContext._jvm
    sources = execution.sources()
    wraps: str = execution.sparkSession().conf().get(_WRAPS, "false")
    finite = "org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow"
    return wraps != "true" and not all(
        java.py4j.reflection.TypeUtil.isInstanceOf(finite, sources.apply(place)) for place in range(sources.size())
    )
