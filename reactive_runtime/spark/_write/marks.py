"""How many elements of a flow a table has, said by the table itself, in the very commit that adds them.

    Delta       the version of the transaction of an application (`txnAppId`, `txnVersion`)
    Iceberg     properties of the snapshot

So a write is in the table with its mark, or neither is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime._support.public_names import at_home
from reactive_runtime.errors import SparkError
from reactive_runtime.spark._session.spark_errors import is_connected, not_stopped, spark_error
from reactive_runtime.spark._session.spark_session import session as made_session
from reactive_runtime.spark._write.described import described

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Marks", "Once", "elements_written", "marked"]

_APP: Final = "reactive-runtime.app"

_ELEMENTS: Final = "reactive-runtime.elements"

_MISSING: Final = ("42P01", "42704")
"""States of SQL where a table, or the schema it would be in, is not there."""


def elements_written(table: str, app: str, *, session: SparkSession | None = None) -> int:
    """How many elements of a flow a table has: a flow that is begun again should skip as many.

    Args:
        table: The name of a table of Delta or Iceberg; a path of Delta as Spark SQL has it, ``delta.`/data/orders```.
        app: The name of the flow in `SparkSink.exactly_once`.
        session: The session that reads. None: that of `session()`, which is the one there is.

    Returns:
        The number of elements; 0 where there is no such table yet, or the flow has written none to it.

    Raises:
        SparkError: The table is of another kind, or can't be read.

    Example:
        >>> from reactive_runtime.spark import session
        >>> spark = session("local[2]")
        >>> elements_written("a_table_that_is_not_there", "orders")
        0
    """
    spark = session or made_session()
    not_stopped("elements_written", spark)
    return Marks("elements_written", spark, table, Once(app, 0)).position() or 0


@dataclass(frozen=True)
class Once:
    """The promise that each element is in the table once."""

    app: str
    """The name of the flow in the table."""
    position: int
    """How many of its elements are there already."""


def marked(once: Once | None, spark: SparkSession, table: str | None) -> Marks | None:
    """The marks of a flow, where it has some; SparkError where `table` is none that could have them."""
    if once is not None and table is None:
        raise SparkError(
            "to_spark: exactly_once is for appending to a table of Delta or Iceberg: with saveAsTable,"
            " writeTo(…).append, or save in the format of Delta"
        )
    return None if once is None or table is None else Marks("to_spark", spark, table, once)


class Marks:
    """The marks of one flow in a table. Any thread may use it."""

    def __init__(self, what: str, spark: SparkSession, table: str, once: Once) -> None:
        self._what = what
        self._spark = spark
        self._table = table
        self._app = once.app
        self.begin: int = once.position
        """How many elements the table should have where the flow begins."""

    def position(self) -> int | None:
        """How many elements of the flow the table has; None where there is no table."""
        try:
            provider, location, _, _ = described(self._spark, self._table)
        except Exception as error:
            state: Any = getattr(error, "getSqlState", lambda: None)()
            if state in _MISSING or _is_no_delta(error):
                return None
            raise spark_error(self._what, error) from error
        if provider == "delta":
            return self._of_delta(location)
        if provider == "iceberg":
            return self._of_iceberg()
        raise SparkError(
            f"{self._what}: {self._table} is a table of {provider or 'another kind'}: exactly once is for tables of"
            " Delta and Iceberg, which keep the number of elements with them"
        )

    def options(self, position: int) -> dict[str, str]:
        """The options for the writer of a batch after which the table has so many elements."""
        return {
            "txnAppId": self._app,
            "txnVersion": str(position),
            f"snapshot-property.{_APP}": self._app,
            f"snapshot-property.{_ELEMENTS}": str(position),
        }

    def expect(self, position: int, found: int | None) -> None:
        """SparkError where the table has another number of elements than the flow goes on with."""
        if found != position:
            raise SparkError(
                f"{self._what}: {self._table} has {found or 0} elements of {self._app!r}, and the flow goes on with"
                f" element {position}: begin it with skip(n) and exactly_once(…, position=n), where n is"
                " elements_written(…), and write no other flow under that name meanwhile"
            )

    def _of_delta(self, location: str) -> int:
        if is_connected(self._spark):
            raise SparkError(
                f"{self._what}: exactly once into Delta needs a session with a master: with Spark Connect the log of"
                " the table can't be asked"
            )
        java: Any = self._spark._jvm
        context: Any = self._spark.sparkContext._jsc
        engine = java.io.delta.kernel.defaults.engine.DefaultEngine.create(context.hadoopConfiguration())
        snapshot = java.io.delta.kernel.Table.forPath(engine, location).getLatestSnapshot(engine)
        version = snapshot.getLatestTransactionVersion(engine, self._app)
        return int(version.get()) if version.isPresent() else 0

    def _of_iceberg(self) -> int:
        snapshots, history = (self._spark.table(f"{self._table}.{part}") for part in ("snapshots", "history"))
        ours = snapshots.where(snapshots["summary"][_APP] == self._app)
        current = history.where(history["is_current_ancestor"]).select("snapshot_id").distinct()
        found = ours.join(current, "snapshot_id").selectExpr(f"max(cast(summary['{_ELEMENTS}'] as bigint))").first()
        return int(found[0]) if found is not None and found[0] is not None else 0


def _is_no_delta(error: Exception) -> bool:
    """Whether it says that a path has no table of Delta yet."""
    condition: Any = getattr(error, "getCondition", lambda: None)()
    return condition in ("DELTA_MISSING_DELTA_TABLE", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_TABLE_NOT_FOUND")


at_home("reactive_runtime.spark", elements_written)
