"""Segments as Spark reads them: a streaming data source in Python. Its offset is a number of elements of one feed.

Spark runs it in processes of its own: one that plans, one for each segment that is read.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from reactive_runtime.errors import SparkError
from reactive_runtime.spark._feed.segments import QUERY, READY, bounds, folder_of, position_of, schema_of

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import StructType

__all__ = ["SegmentSource"]


class SegmentSource(DataSource):
    """A folder of segments."""

    @classmethod
    def name(cls) -> str:
        """The name of the format, for `readStream.format`."""
        return "reactive_runtime_segments"

    def schema(self) -> StructType:
        """The schema of the feed, where `readStream` was given none."""
        return schema_of("readStream", folder_of("readStream", self.options["path"]))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        """The reader of the folder that the option `path` names."""
        return _Reader(folder_of("readStream", self.options["path"]))


class _Segment(InputPartition):
    """One file."""

    def __init__(self, path: Path) -> None:
        super().__init__(None)
        self.path = path


class _Reader(DataSourceStreamReader):
    """Finds the segments that a query has not read, and removes those that it has committed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        known = position_of(folder)
        if "feed" not in known:
            raise SparkError(f"{folder}: there is no feed in this folder any more")
        self._feed: str = known["feed"]

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """The beginning, under the name of the query, which its checkpoint keeps.

        It is that of the query that has removed segments: Spark may ask one that goes on, and a second one will find
        that the first segment is not there.
        """
        return {"feed": self._feed, "elements": 0, "query": self._query() or uuid.uuid4().hex}

    def latestOffset(self, start: dict[str, Any], limit: object) -> dict[str, Any]:  # noqa: N802
        """All there is. Spark asks after it has committed what comes before `start`."""
        self.commit(start)
        elements = max((bounds(segment.name)[1] for segment in self._segments()), default=start["elements"])
        return {**start, "elements": elements}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The segments from `start` to `end`, all of them: a gap would be lost elements."""
        at = self._elements(start)
        if self._query() == start.get("query", "") != end.get("query", ""):
            # `triggerAvailableNowWrapper` has counted from an initial offset: the query goes on under that name.
            self._draft(end["query"]).replace(self._folder / QUERY)
        found = []
        for segment in self._segments():
            first, after = bounds(segment.name)
            if first == at < end["elements"]:
                found.append(_Segment(segment))
                at = after
        if at != end["elements"]:
            raise SparkError(
                f"{self._folder}: the segment that begins with element {at} is not there: another query has committed"
                " and removed it; go on with the checkpoint of that query, or feed another folder"
            )
        return found

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow.parquet as parquet

        assert isinstance(partition, _Segment)
        with parquet.ParquetFile(partition.path) as file:
            yield from file.iter_batches()

    def commit(self, end: dict[str, Any]) -> None:
        """Remove the segments before `end`, which was committed; SparkError where another query has removed some."""
        elements = self._elements(end)
        if elements:
            self._claim(end.get("query", ""))  # of a checkpoint of an earlier release it has no name
        for segment in self._segments():
            if bounds(segment.name)[1] <= elements:
                with suppress(FileNotFoundError):  # another process of the query was first
                    segment.unlink()

    def _claim(self, query: str) -> None:
        """Keep the name of the first query that removes segments: the file is there whole, or not at all."""
        if self._query() is None:
            draft = self._draft(query)
            with suppress(FileExistsError):  # another was first
                os.link(draft, self._folder / QUERY)
            draft.unlink()
        if self._query() != query:
            raise SparkError(
                f"{self._folder}: another query has committed elements of this feed, which this one may have had too:"
                " go on with the checkpoint of that query, or feed another folder"
            )

    def _query(self) -> str | None:
        place = self._folder / QUERY
        return place.read_text() if place.exists() else None

    def _draft(self, query: str) -> Path:
        draft = self._folder / f".{QUERY}-{uuid.uuid4().hex}"
        draft.write_text(query)
        return draft

    def _elements(self, offset: dict[str, Any]) -> int:
        """The number of elements of an offset; SparkError where it is of another feed."""
        if offset["feed"] != self._feed:
            raise SparkError(
                f"{self._folder}: the checkpoint is of a query that read another feed: use the folder of that feed, or"
                " another checkpoint"
            )
        elements: int = offset["elements"]
        return elements

    def _segments(self) -> list[Path]:
        return sorted((self._folder / READY).glob("*.parquet"))
