"""Segments as Spark reads them: a streaming data source in Python. Its offset is a number of elements.

Spark runs it in processes of its own: one that plans, one for each segment that is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from reactive_runtime.spark.segments import bounds

if TYPE_CHECKING:
    import pyarrow

__all__ = ["SegmentSource"]


class SegmentSource(DataSource):
    """A folder of segments."""

    @classmethod
    def name(cls) -> str:
        return "reactive_runtime_segments"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        return _Reader(Path(self.options["path"]))


class _Segment(InputPartition):
    """One file."""

    def __init__(self, path: Path) -> None:
        super().__init__(None)
        self.path = path


class _Reader(DataSourceStreamReader):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"elements": 0}

    def latestOffset(self, start: dict[str, int], limit: object) -> dict[str, int]:  # noqa: N802
        """All there is. Spark asks after it has committed what comes before `start`."""
        self.commit(start)
        return {"elements": max((bounds(it.name)[1] for it in self._segments()), default=start["elements"])}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        low, high = start["elements"], end["elements"]
        return [_Segment(it) for it in self._segments() if low <= bounds(it.name)[0] < high]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow.parquet as parquet

        assert isinstance(partition, _Segment)
        with parquet.ParquetFile(partition.path) as file:
            yield from file.iter_batches()

    def commit(self, end: dict[str, int]) -> None:
        """What comes before `end` was committed."""
        for it in self._segments():
            if bounds(it.name)[1] <= end["elements"]:
                with suppress(FileNotFoundError):  # another process of the query was first
                    it.unlink()

    def _segments(self) -> list[Path]:
        return sorted(self._folder.glob("*.parquet"))
