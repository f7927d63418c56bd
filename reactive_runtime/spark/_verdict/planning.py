"""Plans made by Spark's tasks, for more files than the driver should look at one by one.

    folders ──▶ listed, a level after the other ──▶ runs, each once ──▶ files examined ──▶ row groups of each run, cut
                                                                          │ large                into ranges, by tasks
                                                                          ▼
                                                                     bytes compared

Each arrow is a job. Rows that a job has found stay on the disks of the executors, from where the next job takes them;
if an executor is lost, Spark computes its part again. The driver receives sums: how many runs, files, row groups and
records there are, a row for each task that plans (`_PARTS` at most), and the first `SAID` lines on bad runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa

from reactive_runtime.judging._examining import GROUP
from reactive_runtime.judging._files import (
    RANGE,
    READ_AGAIN,
    WORTH_A_LOOK,
    Group,
    Range,
    cut,
    cut_apart,
    is_cheap_apart,
    long_from,
)
from reactive_runtime.judging._kernel import schema_of
from reactive_runtime.judging._stores import batches

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Kept", "PlannedInTasks", "parts_for", "path_of", "plan_groups", "spark_schema"]

_PARTS: Final = 1_000
"""Tasks of a job that plans, at most; more where there are more cores."""

_TASKS: Final = 10_000
"""Tasks that judge, at most: the driver keeps some of each. Beyond, a task judges several ranges one by one."""

_OPENED: Final = 1_000
"""Records that could be judged in the time that it takes to open a row group."""

_SUMS: Final = schema_of(part=pa.int32(), packs=pa.int32(), ranges=pa.int64(), read=pa.int64(), largest=pa.int64())
_PACKS: Final = schema_of(task=pa.int32(), what=pa.string())


class Kept:
    """DataFrames that stay on the disks of the executors, until they are released."""

    def __init__(self) -> None:
        self._frames: list[DataFrame] = []

    def add(self, frame: DataFrame) -> DataFrame:
        """Keep what the next action computes of it.

        Spark takes what is kept for each frame with an equal plan, also where files have changed since. So the plan of
        each frame here is another one.
        """
        from pyspark import StorageLevel
        from pyspark.sql import functions as F

        alone = frame.where(F.lit(uuid4().hex).isNotNull())
        kept = alone.persist(StorageLevel.DISK_ONLY)
        self._frames.append(kept)
        return kept

    def release(self) -> None:
        """Remove it from the disks; what still uses a frame computes it again."""
        for frame in self._frames:
            frame.unpersist()
        self._frames = []


def parts_for(count: int, each: int, cores: int) -> int:
    """How many tasks share so many things."""
    return max(min(-(-count // each), max(_PARTS, 4 * cores)), min(cores, count), 1)


def spark_schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


@dataclass(frozen=True)
class PlannedInTasks:
    """How many files are judged: as `Plan`, but its row groups and ranges are in DataFrames."""

    way: str
    packs: DataFrame
    """A row a task, with what it has to do, as JSON."""
    tasks: int
    """How many."""
    rows: int
    size: int
    """Bytes of all files."""
    files: int
    groups: int
    unknown: int
    """Row groups without statistics."""
    ranges: int
    again: float
    largest: int

    def explain(self) -> str:
        """The plan in a line, as that of `Plan`."""
        found = f"{self.rows:,} records in {self.groups} row groups of {self.files} files"
        if self.unknown:
            found += f", {self.unknown} of them without statistics"
        would = "read" if self.way == "ranges" else "would read"
        cost = f"{self.ranges} ranges of subscriptions {would} each record {self.again:.1f} times"
        return f"{self.way}: {found}; {cost}, one of them {self.largest:,} records"


# -- ranges ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cut:
    """In a task: the row groups of each run that it is given, cut into ranges, and these packed into tasks that judge.

    Gives the sums of that; or, knowing the number of the first pack of each task (`first`), the packs.
    """

    size: int
    """Records of a range."""
    pack: int
    """Of a task that judges."""
    way: str | None = None
    first: dict[int, int] | None = None
    too_long: int | None = None
    """If long subscriptions have ranges of their own: as of `long_from`."""

    def __call__(self, some: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        if self.first is None:
            yield from self._sums(part, some)
        elif self.way == "moved":
            yield from self._packs(part, some, self._groups, lambda item: ([item.file, item.number], item.rows))
        else:
            yield from self._packs(part, some, self._ranges, lambda item: (asdict(item), item.rows))

    def _groups(self, some: Iterator[pa.RecordBatch]) -> Iterator[Any]:
        for _, of in _by_key(some):
            yield from of

    def _ranges(self, some: Iterator[pa.RecordBatch]) -> Iterator[Any]:
        for key, of in _by_key(some):
            yield from self._cut(key, of)

    def _cut(self, key: str | None, of: Sequence[Group]) -> Iterator[Range]:
        return cut(key, of, self.size) if self.too_long is None else cut_apart(key, of, self.size, self.too_long)

    def _sums(self, part: int, some: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        ranges = read = largest = 0
        by_ranges, by_groups = _Packing(self.pack), _Packing(self.pack)
        for key, of in _by_key(some):
            for group in of:
                by_groups.add(group.rows, 1)
            for span in self._cut(key, of):
                ranges += 1
                read += span.rows
                largest = max(largest, span.rows)
                by_ranges.add(span.rows, _row_groups(span))
        packs = by_groups.count if self.way == "moved" else by_ranges.count
        yield from batches([(part, packs, ranges, read, largest)], _SUMS)

    def _packs(
        self,
        part: int,
        some: Iterator[pa.RecordBatch],
        items: Callable[[Iterator[pa.RecordBatch]], Iterator[Any]],
        told: Callable[[Any], tuple[Any, int]],
    ) -> Iterator[pa.RecordBatch]:
        assert self.first is not None
        held: list[Any] = []
        packing, at = _Packing(self.pack), self.first[part]
        for item in items(some):
            what, rows = told(item)
            if packing.add(rows, _row_groups(item)) and held:
                yield from batches([(at, json.dumps(held))], _PACKS)
                at, held = at + 1, []
            held.append(what)
        if held:
            yield from batches([(at, json.dumps(held))], _PACKS)


class _Packing:
    """Puts things together until they are enough for a task."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._left = 0
        self.count = 0

    def add(self, rows: int, groups: int) -> bool:
        """Whether a new pack begins with it."""
        cost = rows + _OPENED * (groups - 1)
        begins = self._left <= 0 or cost > self._left + self._size // 4
        if begins:
            self.count += 1
            self._left = self._size
        self._left -= cost
        return begins


def _row_groups(item: Any) -> int:
    return 1 if isinstance(item, Group) else sum(len(numbers) for _, numbers in item.groups)


def _by_key(some: Iterator[pa.RecordBatch]) -> Iterator[tuple[str | None, list[Group]]]:
    rows = (row for batch in some for row in batch.to_pylist())
    for key, of in groupby(rows, lambda row: row["key"]):
        yield key, [Group(row["path"], *(row[name] for name in ("number", "rows", "run", "low", "high"))) for row in of]


_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


def plan_groups(
    examined: DataFrame, sums: Mapping[str, int], cores: int, way: str | None, little: int, most: int = RANGE
) -> PlannedInTasks:
    """The plan of what was examined, as `judging._files.plan` makes it of what it has in memory."""
    total = sums["rows"]
    used = max(min(cores, total // little), 1)
    tasks = used * max(-(-total // (most * used)), 1)
    size = max(-(-total // tasks), 1)
    pack = max(size, -(-(total + _OPENED * sums["groups"]) // _TASKS))
    keyed = _keyed(examined.where(f"kind = {GROUP}"), alone=not sums["mixed"], parts=min(_PARTS, 2 * cores))
    parts = keyed.mapInArrow(_Cut(size, pack, way), spark_schema(_SUMS)).collect()
    ranges, read, largest = _of_all(parts)
    chosen = way or ("ranges" if read <= READ_AGAIN * total and largest <= READ_AGAIN * size else "moved")
    too_long = None
    if way is None and not sums["mixed"] and read > WORTH_A_LOOK * total:
        limit = long_from(total, used)
        apart = keyed.mapInArrow(_Cut(size, pack, too_long=limit), spark_schema(_SUMS)).collect()
        found = _of_all(apart)
        if is_cheap_apart(*found[1:], total, used) and (chosen == "moved" or found[1] < read):
            chosen, parts, too_long, (ranges, read, largest) = "ranges", apart, limit, found
    if chosen == "moved" and way is None:
        parts = keyed.mapInArrow(_Cut(size, pack, "moved"), spark_schema(_SUMS)).collect()
    again = read / max(total, 1)
    first, count = {}, 0
    for row in sorted(parts, key=lambda row: row["part"]):
        first[row["part"]] = count
        count += row["packs"]
    packs = keyed.mapInArrow(_Cut(size, pack, chosen, first, too_long), spark_schema(_PACKS))
    packs = packs.repartitionById(max(count, 1), "task")
    known = (sums["size"], sums["files"], sums["groups"], sums["unknown"])
    return PlannedInTasks(chosen, packs, count, total, *known, ranges, again, largest)


def _of_all(parts: Sequence[Any]) -> tuple[int, int, int]:
    """Of the sums of parts: how many ranges, how many records they read, and the largest."""
    ranges, read = (sum(row[name] for row in parts) for name in ("ranges", "read"))
    return ranges, read, max((row["largest"] for row in parts), default=0)


def _keyed(groups: DataFrame, alone: bool, parts: int) -> DataFrame:
    """Row groups, those of a run one after the other in one task; or all of them in one, if any has several runs."""
    from pyspark.sql import functions as F

    key = F.col("run") if alone else F.lit(None).cast("string")
    rows = groups.select(key.alias("key"), path_of().alias("path"), "number", "rows", "run", "low", "high")
    spread = rows.repartition(parts if alone else 1, "key") if alone else rows.repartition(1)
    return spread.sortWithinPartitions("key", "path", "number")


def path_of() -> Column:
    """The path of a file in a folder, which may be a URI with options; of a file that was named itself, its name."""
    from pyspark.sql import functions as F

    folder, file = F.col("folder"), F.col("file")
    before, options = F.split_part(folder, F.lit("?"), F.lit(1)), F.regexp_extract(folder, r"\?.*$", 0)
    local = F.concat(F.regexp_replace(folder, "/$", ""), F.lit("/"), file)
    remote = F.concat(F.regexp_replace(before, "/$", ""), F.lit("/"), file, options)
    return F.when(folder == "", file).when(folder.contains("://"), remote).otherwise(local)
