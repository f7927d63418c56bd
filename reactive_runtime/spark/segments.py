"""Segments: files that are filled by a flow and emptied by a streaming query of Spark, a bounded number at a time.

    folder/
      segments/00000000000000000000-1000.parquet     elements 0 to 999, until Spark has committed and removed them
      .next/00000000000000001000-1000.parquet        being written
      position.json                                  how many elements are in segments that were ever finished, and of
                                                     which feed: no other folder ever has the same name of its own

A segment is finished in three steps, each of which survives a kill: its file is written and synchronised below `.next`;
the position takes it in, in one rename; the file is moved to where Spark looks. A feed that begins after a kill finds
either no mention of it, and throws the file away, or the position, and moves the file. So an element that the position
counts is in one segment, once.

Spark reads them as a data source of its own, whose offset is a number of elements of this feed. It keeps that in its
checkpoint, and whenever it plans a batch says where the last one that it has committed came to an end: what lies before
is removed. A checkpoint of another feed, and a second query, are refused before anything is removed or left out.
(Its file source can remove files too. But it removes those of a batch once, when it begins the next, and never if it is
killed then: after a few kills there is no room left.)
"""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime.errors import SparkError

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["READY", "Segments", "bounds", "elements_fed", "position_of"]

READY: Final = "segments"
"""Where Spark looks, below the folder."""

_POSITION: Final = "position.json"

_FORMAT: Final = "{first:020d}-{rows}.parquet"


def bounds(name: str) -> tuple[int, int]:
    """The number of the first element of a segment, and of the first that comes after it."""
    first, _, rows = name.removesuffix(".parquet").partition("-")
    return int(first), int(first) + int(rows)


def position_of(folder: Path) -> dict[str, Any]:
    """The position file of a feed: its `feed`, its `schema`, its `elements`. Empty where it has not begun."""
    position = folder / _POSITION
    known: dict[str, Any] = json.loads(position.read_text()) if position.exists() else {}
    return known


def elements_fed(folder: str | Path) -> int:
    """How many elements the feed in `folder` has ever taken: a flow that is begun again should skip as many.

    What it counts survives the end of either process, and comes to the query once.

    Args:
        folder: The folder of the feed, as `SparkSink.stream` takes it.

    Returns:
        The number of elements; 0 where there is no feed yet.

    Example:
        >>> from reactive_runtime import Flow
        >>> Flow.range(5).skip(elements_fed("a folder that is not there")).count().block()
        5
    """
    elements: int = position_of(Path(folder)).get("elements", 0)
    return elements


class Segments:
    """A folder of segments. One flow writes to it; calls of `put` are serial."""

    def __init__(self, folder: Path, schema: pyarrow.Schema, most: int) -> None:
        self._folder = folder
        self._schema = schema
        self._most = most
        self._ready = folder / READY
        self._next = folder / ".next"
        self._feed = uuid.uuid4().hex
        self.position: int = 0
        """Elements in segments that were ever finished."""

    def recovered(self) -> int:
        """Finish, or undo, what a kill has left behind; the position. SparkError where the folder is another's."""
        try:
            for place in (self._ready, self._next):
                place.mkdir(parents=True, exist_ok=True)
            known = position_of(self._folder)
            if not known:
                self._tell(0)
        except (OSError, ValueError) as error:
            raise SparkError(f"to_spark: {self._folder}: can't be used for segments: {error}") from error
        if known.get("schema", str(self._schema)) != str(self._schema):
            raise SparkError(f"to_spark: {self._folder}: holds segments of another schema: use another folder")
        self.position = known.get("elements", 0)
        self._feed = known.get("feed", self._feed)
        for left in self._next.iterdir():
            if left.suffix == ".parquet" and bounds(left.name)[0] < self.position:
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
        _synchronised(self._next)  # its name as well
        self._tell(self.position + table.num_rows)
        self.position += table.num_rows
        made.replace(self._ready / name)
        return table.num_rows

    def frame(self, spark: SparkSession, schema: Any) -> DataFrame:
        """The segments as a streaming DataFrame, which removes what its query has committed."""
        from reactive_runtime.spark.segment_source import SegmentSource

        spark.dataSource.register(SegmentSource)
        return spark.readStream.format(SegmentSource.name()).schema(schema).load(str(self._folder))

    def _tell(self, elements: int) -> None:
        """The position, in one rename."""
        draft = self._next / "position"
        draft.write_text(json.dumps({"feed": self._feed, "elements": elements, "schema": str(self._schema)}))
        _synchronised(draft)
        draft.replace(self._folder / _POSITION)
        _synchronised(self._folder)


def _synchronised(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
