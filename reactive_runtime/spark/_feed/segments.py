"""Segments: files that are filled by a flow and emptied by a streaming query of Spark, a bounded number at a time.

    folder/
      segments/00000000000000000000-1000.parquet     elements 0 to 999, until Spark has committed and removed them
      .next/00000000000000001000-1000.parquet        being written
      position.json                                  how many elements are in segments that were ever finished, and of
                                                     which feed, with which schema: no other folder ever has the same
                                                     name of its own
      query                                          the name of the query that removes segments, from the first on
      .lock                                          held by the one flow that feeds the folder

A segment is finished in three steps, each of which survives a kill: its file is written and synchronised below `.next`;
the position takes it in, in one rename; the file is moved to where Spark looks. A feed that begins after a kill finds
either no mention of it, and throws the file away, or the position, and moves the file. So an element that the position
counts is in one segment, once.

Spark reads them as a data source of its own, whose offset is a number of elements of this feed. It keeps that in its
checkpoint, and whenever it plans a batch says where the last one that it has committed came to an end: what lies before
is removed. A checkpoint of another feed, and a second query, are refused before they remove or leave out anything.
(Its file source can remove files too. But it removes those of a batch once, when it begins the next, and never if it is
killed then: after a few kills there is no room left.)
"""

from __future__ import annotations

import json
import os
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from reactive_runtime._core.runtime import primitives
from reactive_runtime._support.public_names import at_home
from reactive_runtime.errors import SparkError
from reactive_runtime.spark._feed.locks import FolderLock, HeldError
from reactive_runtime.spark._session.spark_session import session as made_session
from reactive_runtime.spark._session.spark_session import workers_can
from reactive_runtime.spark._write.schemas import spark_schema

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = [
    "QUERY",
    "READY",
    "Segments",
    "bounds",
    "elements_fed",
    "folder_of",
    "local_path",
    "position_of",
    "read_feed",
    "schema_of",
]

READY: Final = "segments"
"""Where Spark looks, below the folder."""

QUERY: Final = "query"
"""A file below the folder: it names the query that removes segments."""

_POSITION: Final = "position.json"

_FORMAT: Final = "{first:020d}-{rows}.parquet"


def bounds(name: str) -> tuple[int, int]:
    """The number of the first element of a segment, and of the first that comes after it."""
    first, _, rows = name.removesuffix(".parquet").partition("-")
    return int(first), int(first) + int(rows)


def local_path(place: str | Path) -> Path | None:
    """A place as a path of this machine; None where it is an address of another kind, of an object store, say."""
    text = str(place)
    if not (scheme := re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", text)):  # one letter is a drive of Windows
        return Path(place)
    if scheme[1].lower() != "file":
        return None
    path = re.sub(r"^//(localhost)?(?=/)", "", text[scheme.end() :])
    return None if path.startswith("//") else Path(unquote(path))


def folder_of(what: str, folder: str | Path) -> Path:
    """The folder of a feed; SparkError where it is none of a file system that this process sees by its path."""
    path = local_path(folder)
    if path is None:
        raise SparkError(
            f"{what}: {folder}: a feed is a folder that this process and the executors see by its path, and this is an"
            " address: mount it, or write to it with `format`"
        )
    return path


def position_of(folder: Path) -> dict[str, Any]:
    """The position file of a feed: its `feed`, its `schema`, its `elements`. Empty where it has not begun."""
    position = folder / _POSITION
    known: dict[str, Any] = json.loads(position.read_text()) if position.exists() else {}
    return known


def elements_fed(folder: str | Path) -> int:
    """How many elements the feed in `folder` has ever taken: a flow that is begun again should skip as many.

    An element that this counts survives the end of either process, and comes to the query once.

    Args:
        folder: The folder of the feed, as `SparkSink.stream` takes it.

    Returns:
        The number of elements; 0 where there is no feed yet.

    Example:
        >>> from reactive_runtime import Flow
        >>> Flow.range(5).skip(elements_fed("a folder that is not there")).count().block()
        5
    """
    elements: int = position_of(folder_of("elements_fed", folder)).get("elements", 0)
    return elements


def schema_of(what: str, folder: Path) -> StructType:
    """The schema of the feed in a folder; SparkError where there is none."""
    from pyspark.sql.types import StructType

    known = position_of(folder).get("schema")
    if known is None:
        raise SparkError(f"{what}: {folder}: there is no feed in this folder: `SparkSink.stream` begins one")
    return StructType.fromJson(json.loads(known))


def read_feed(folder: str | Path, *, session: SparkSession | None = None) -> DataFrame:
    """The elements that a flow feeds into `folder`, as a streaming DataFrame, in any process.

    The flow may go on meanwhile, in another process. A feed is for one query, which removes the elements that it has
    committed, and should have a checkpoint.

    Args:
        folder: The folder of the feed, as `SparkSink.stream` takes it.
        session: The session that reads. None: that of `session()`, which is the one there is.

    Returns:
        The DataFrame for the query, with the schema of the feed.

    Raises:
        SparkError: There is no feed in the folder, or the folder is an address.

    Example:
        >>> import tempfile
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.spark import read_feed, session
        >>> spark = session("local[2]")
        >>> folder = tempfile.mkdtemp()
        >>> Flow.range(3).map(lambda n: (n,)).to_spark(spark, "n long").stream(folder).done.result()
        3
        >>> rows = Flow.from_stream(read_feed(folder), trigger={"availableNow": True})
        >>> list(rows)
        [{'n': 0}, {'n': 1}, {'n': 2}]
    """
    place = folder_of("read_feed", folder)
    schema = schema_of("read_feed", place)
    return _frame("read_feed", session or made_session(), place, schema)


def _frame(what: str, spark: SparkSession, folder: Path, schema: StructType) -> DataFrame:
    from reactive_runtime.spark._feed.segment_source import SegmentSource

    workers_can(what, spark)
    spark.dataSource.register(SegmentSource)
    return spark.readStream.format(SegmentSource.name()).schema(schema).load(str(folder.absolute()))


_feeding: dict[Path, Segments] = {}  # _feeding_lock; those of this process that hold the lock of their folder

_feeding_lock = primitives.Lock()


class Segments:
    """A folder of segments. One flow writes to it; calls of `put` are serial."""

    def __init__(self, folder: Path, schema: Any, most: int) -> None:
        self._folder = folder
        self._schema = spark_schema("to_spark", schema)
        self._most = most
        self._state = primitives.Lock()
        self._lock: FolderLock | None = None  # _state; the file that holds the lock of the folder, while we have that
        self._writes = False  # _state
        self._closed = False  # _state; it will not write any more, or once more
        self._free = primitives.Event()
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
            self._take_lock()
        except OSError as error:
            raise SparkError(f"to_spark: {self._folder}: can't be used for segments: {error}") from error
        try:
            return self._recovered()
        except BaseException:
            self.close()
            raise

    def _take_lock(self) -> None:
        place = self._folder.resolve()
        with _feeding_lock:
            before = _feeding.get(place)
        if before is not None and before.closed():  # it finishes the segment that it writes
            before._free.wait()
        try:
            lock = FolderLock(self._folder / ".lock")
        except HeldError as error:
            raise SparkError(
                f"to_spark: {self._folder}: another flow feeds this folder ({error}): one at a time does; wait for it,"
                " or use another folder"
            ) from error
        with self._state:
            self._lock = lock
        with _feeding_lock:
            _feeding[place] = self

    def closed(self) -> bool:
        """Whether `close` was called."""
        with self._state:
            return self._closed

    def close(self) -> None:
        """Give the lock of the folder back: at once, or when the segment that is being written is finished."""
        with self._state:
            self._closed = True
            lock = None if self._writes else self._lock
            self._lock = self._lock if self._writes else None
        self._give_back(lock)

    def _give_back(self, lock: FolderLock | None) -> None:
        if lock is None:
            return
        with _feeding_lock:
            for place in [place for place, one in _feeding.items() if one is self]:
                del _feeding[place]
        lock.close()
        self._free.set()

    def _recovered(self) -> int:
        try:
            known = position_of(self._folder)
            if not known:
                self._tell(0)
        except (OSError, ValueError) as error:
            raise SparkError(f"to_spark: {self._folder}: can't be used for segments: {error}") from error
        if known.get("schema", self._schema.json()) != self._schema.json():
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
        """One more segment; how many elements it has. None is written after `close`."""
        with self._state:
            if self._closed:
                return 0
            self._writes = True
        try:
            return self._put(table)
        finally:
            with self._state:
                self._writes = False
                lock = self._lock if self._closed else None
                self._lock = None if self._closed else self._lock
            self._give_back(lock)

    def _put(self, table: pyarrow.Table) -> int:
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

    def frame(self, spark: SparkSession) -> DataFrame:
        """The segments as a streaming DataFrame, which removes what its query has committed."""
        return _frame("to_spark", spark, self._folder, self._schema)

    def _tell(self, elements: int) -> None:
        """The position, in one rename."""
        draft = self._next / "position"
        draft.write_text(json.dumps({"feed": self._feed, "elements": elements, "schema": self._schema.json()}))
        _synchronised(draft)
        draft.replace(self._folder / _POSITION)
        _synchronised(self._folder)


def _synchronised(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


at_home("reactive_runtime.spark", elements_fed, read_feed)
