"""Segments: files that are filled by a flow and emptied by a streaming query of Spark, a bounded number at a time.

    folder/
      segments/00000000000000000000-1000.parquet     elements 0 to 999, until Spark has committed and removed them
      .next/00000000000000001000-1000.parquet        being written
      position.json                                  how many elements are in segments that were ever finished

A segment is finished in three steps, each of which survives a kill: its file is written and synchronised below `.next`;
the position takes it in, in one rename; the file is moved to where Spark looks. Who comes after a kill finds either no
mention of it, and throws the file away, or the position, and moves the file. So an element that the position counts is
in one segment, once; Spark's checkpoint knows which segments it has committed, and the file source removes those.
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

__all__ = ["Segments"]

_FORMAT: Final = "{first:020d}-{rows}.parquet"


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
            first = int(left.name.partition("-")[0]) if left.name[0].isdigit() else self.position
            if first < self.position:
                left.replace(self._ready / left.name)
            else:
                left.unlink()
        return self.position

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
        """The segments as a streaming DataFrame, half of them at most in a batch, which removes what it has committed.

        Spark removes the files of a batch when it begins the next; with half of the room in a batch there is always
        room for a next one.
        """
        return (
            spark.readStream.format("parquet")
            .schema(schema)
            .option("maxFilesPerTrigger", self._most // 2)
            .option("maxFileAge", "36500d")  # a file that is older than others is not passed over
            .option("cleanSource", "delete")
            .load(str(self._ready))
        )


def _synchronised(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
