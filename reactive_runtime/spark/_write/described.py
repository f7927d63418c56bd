"""A table of a catalogue, as Spark describes it."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Described", "described"]


class Described(NamedTuple):
    """The facts that Spark reports of a table."""

    provider: str
    """The format, in small letters; empty where Spark does not say it."""
    location: str
    """The address of the files; empty where there is none."""
    partitions: tuple[str, ...]
    """The columns that are in the names of folders."""
    options: frozenset[str]
    """The names of the options that the table reads and writes files with, in small letters."""


def described(spark: SparkSession, table: str) -> Described:
    """The facts that Spark reports of a table; raises the error of Spark where there is none."""
    rows = [tuple(row) for row in spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()]
    names = [row[0] for row in rows]
    facts = {row[0]: row[1] or "" for row in rows}
    partitions: list[str] = []
    if "# Partition Information" in names:
        below = takewhile(bool, names[names.index("# Partition Information") + 1 :])
        partitions = [name for name in below if not name.startswith("#")]
    properties = facts.get("Storage Properties", "")
    options = re.findall(r"[\[,]\s*([\w.]+)=", properties)
    return Described(
        facts.get("Provider", "").lower(),
        facts.get("Location", ""),
        tuple(partitions),
        frozenset(map(str.lower, options)),
    )
