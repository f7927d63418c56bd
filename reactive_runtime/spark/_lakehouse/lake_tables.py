"""Tables that are partitioned by night: one commit replaces a night, and says in the table which night that was.

    Delta       the user metadata of the commit
    Iceberg     a property of the snapshot
    Parquet     a table of Spark's own: it has no versions

So a reader finds the version that a night has made in the table itself, also after commits of others.
"""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from reactive_runtime.spark._write.described import described

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["FORMATS", "Format", "LakeTables", "Version"]

Format = Literal["delta", "iceberg", "parquet"]

FORMATS: Final = ("delta", "iceberg", "parquet")

_MARK: Final = "reactive-runtime.night"

_PART: Final = r"`(?:[^`]|``)+`|[^.`]+"
"""A part of a name, as it is or as Spark SQL quotes it."""


class Version(NamedTuple):
    """A version of a table."""

    number: int
    """Of Iceberg: the number of the snapshot."""
    when: float
    """When it was made: seconds since 1970."""
    night: str | None
    """The night that has made it, if one has."""


class LakeTables:
    """The tables of a namespace."""

    def __init__(self, what: str, spark: SparkSession, namespace: str) -> None:
        """ValueError where the namespace is neither names with dots between nor a folder of tables of Delta."""
        self._spark = spark
        self.is_folder: bool = "/" in namespace
        if self.is_folder:
            self._begin = f"delta.{_quoted(namespace.rstrip('/'))[:-1]}/"
        elif re.fullmatch(rf"(?:{_PART})(?:\.(?:{_PART}))*", namespace):
            parts = re.findall(_PART, namespace)
            self._namespace = ".".join(part if part[0] == "`" else _quoted(part) for part in parts)
            self._begin = f"{self._namespace}."
        else:
            raise ValueError(
                f"{what}: {namespace!r} is no namespace: should be names with dots between, as lake.nights, or a"
                " folder of tables of Delta"
            )

    def name(self, table: str) -> str:
        """The name of a table, quoted for SQL."""
        return f"{self._begin}{table}`" if self.is_folder else f"{self._begin}{_quoted(table)}"

    def make(self, table: str, columns: Any, format: Format) -> None:
        """Make a table with these columns and `night`, unless it is there."""
        if not self.is_folder:
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self._namespace}")
        each = ", ".join(f"{_quoted(item.name)} {item.dataType.simpleString()}" for item in columns)
        # The rows of a night come in many tasks, and each of them writes: by default Iceberg sends them all to one.
        properties = " TBLPROPERTIES ('write.distribution-mode' = 'none')" if format == "iceberg" else ""
        self._spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self.name(table)} ({each}, night date) USING {format}"
            f" PARTITIONED BY (night){properties}"
        )

    def frame(self, table: str) -> DataFrame:
        """The rows of a table, as it is now."""
        return self._spark.table(self.name(table))

    def replace(self, table: str, night: date, rows: DataFrame, format: Format) -> None:
        """Let the table have these rows, and no others, of a night: one commit."""
        from pyspark.sql import functions as F

        names = [name for name in self.frame(table).columns if name != "night"]
        rows = rows.select(*map(_quoted, names))
        if format == "parquet":
            name = self.name(table).replace("{", "{{").replace("}", "}}")
            to = f"{name} PARTITION (night = DATE'{night}')"
            self._spark.sql(f"INSERT OVERWRITE {to} SELECT * FROM {{rows}}", rows=rows)
            return
        marks = {"userMetadata": f"{_MARK}={night}", f"snapshot-property.{_MARK}": str(night)}
        writer = rows.withColumn("night", F.lit(night)).writeTo(self.name(table)).options(**marks)
        writer.overwrite(F.col("night") == F.lit(night))

    def versions(self, table: str, night: date) -> list[Version]:
        """The versions of a table that a night has made, in order; none where the format has no versions."""
        return [version for version in self._history(table) if version.night == str(night)]

    def as_of(self, table: str, when: float) -> DataFrame:
        """The rows that a table had at that time."""
        before = [version.number for version in self._history(table) if version.when <= when]
        if not before:
            return self.frame(table).where("false")
        return self._spark.sql(f"SELECT * FROM {self.name(table)} VERSION AS OF {before[-1]}")

    def _history(self, table: str) -> list[Version]:
        """All versions of a table that led to what it is now, in order."""
        from pyspark.sql import functions as F

        provider = described(self._spark, self.name(table)).provider
        if provider == "delta":
            history = self._spark.sql(f"DESCRIBE HISTORY {self.name(table)}")
            night = F.regexp_extract("userMetadata", rf"^{_MARK}=(.*)", 1).alias("night")
            found = history.select("version", F.col("timestamp").cast("double").alias("at"), night).orderBy("version")
        elif provider == "iceberg":
            snapshots, history = (self._spark.table(f"{self.name(table)}.{of}") for of in ("snapshots", "history"))
            current = history.where("is_current_ancestor").groupBy("snapshot_id")
            made = current.agg(F.max("made_current_at").cast("double").alias("at"))
            night = snapshots["summary"][_MARK].alias("night")
            found = snapshots.join(made, "snapshot_id").select("snapshot_id", "at", night).orderBy("at")
        else:
            return []
        return [Version(*row) for row in found.collect()]


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
