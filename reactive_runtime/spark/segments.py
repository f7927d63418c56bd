"""Segments: files that are filled by a flow and emptied by a streaming query of Spark, a bounded number at a time.

    folder/
      segments/00000000000000000000-1000.parquet     elements 0 to 999, until Spark has committed and removed them
      .next/00000000000000001000-1000.parquet        being written
      position.json                                  how many elements are in segments that were ever finished

A segment is finished in three steps, each of which survives a kill: its file is written and synchronised below `.next`;
the position takes it in, in one rename; the file is moved to where Spark looks. Who comes after a kill finds either no
mention of it, and throws the file away, or the position, and moves the file. So an element that the position counts is
in one segment, once.

Spark reads them as a data source of its own, whose offset is a number of elements. It keeps that in its checkpoint, and
whenever it plans a batch says where the last one that it has committed came to an end: what lies before is removed.
(Its file source can remove files too. But it removes those of a batch once, when it begins the next, and never if it is
killed then: after a few kills there is no room left.)
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime.errors import SparkError

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Segments", "bounds"]

_FORMAT: Final = "{first:020d}-{rows}.parquet"


def bounds(name: str) -> tuple[int, int]:
    """The number of the first element of a segment, and of the first that comes after it."""
    first, _, rows = name.removesuffix(".parquet").partition("-")
    return int(first), int(first) + int(rows)


class Segments:
    """A folder of segments. One flow writes to it; calls of `put` are serial."""

    def __init__(self, folder: Path, schema: pyarrow.Schema, most: int) -> None:
        self._folder = folder
        self._schema = schema
        self._most = most
        self._ready = folder / "segments"
        self._next = folder / ".next"
        self._position = folder / "position.json"
        self.position = 0
        """Elements in segments that were ever finished."""

    def recovered(self) -> int:
        """Finish, or undo, what a kill has left behind; the position. SparkError where the folder is another's."""
        try:
            for place in (self._ready, self._next):
                place.mkdir(parents=True, exist_ok=True)
            told = json.loads(self._position.read_text()) if self._position.exists() else {"elements": 0}
        except (OSError, ValueError) as error:
            raise SparkError(f"to_spark: {self._folder}: can't be used for segments: {error}") from error
        if told.get("schema", str(self._schema)) != str(self._schema):
            raise SparkError(f"to_spark: {self._folder}: holds segments of another schema: use another folder")
        self.position = told["elements"]
        for left in self._next.iterdir():
            if left.suffix == ".parquet" and bounds(left.name)[0] < self.position:
                left.replace(self._ready / left.name)
            else:
                left.unlink()
        return self.position

    def told(self) -> int:
        """The position, as it is on the disk."""
        elements: int = self._told()["elements"]
        return elements

    def _told(self) -> dict[str, Any]:
        known: dict[str, Any] = json.loads(self._position.read_text()) if self._position.exists() else {"elements": 0}
        return known

    def outstanding(self) -> int:
        """Segments that Spark has not yet committed and removed."""
        return sum(1 for name in os.listdir(self._ready) if name.endswith(".parquet"))

    def room(self) -> bool:
        """Whether there may be one more."""
        return self.outstanding() < self._most

    def put(self, table: pyarrow.Table) -> int:
        """One more segment; how many elements it has."""
        import pyarrow.parquet as parquet

        name = _FORMAT.format(first=self.position, rows=table.num_rows)
        made = self._next / name
        parquet.write_table(table, made)
        _synchronised(made)
        told = {"elements": self.position + table.num_rows, "schema": str(self._schema)}
        draft = self._next / "position"
        draft.write_text(json.dumps(told))
        _synchronised(draft)
        draft.replace(self._position)
        _synchronised(self._folder)
        self.position += table.num_rows
        made.replace(self._ready / name)
        return table.num_rows

    def frame(self, spark: SparkSession, schema: Any) -> DataFrame:
        """The segments as a streaming DataFrame, which removes what its query has committed."""
        from reactive_runtime.spark.segment_source import SegmentSource

        spark.dataSource.register(SegmentSource)
        return spark.readStream.format(SegmentSource.name()).schema(schema).load(str(self._ready))


def _synchronised(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
