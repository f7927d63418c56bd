"""The rows that the tables of nights have: records as tasks read them, the tables of a verdict, and the lineage."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as parquet

from reactive_runtime.errors import TraceError
from reactive_runtime.judging._examining import EXAMINED, HELD, Examined
from reactive_runtime.judging._kernel import SUBSCRIPTIONS, VIOLATIONS, WAITS, schema_of
from reactive_runtime.judging._stores import FILE, LISTED, RUN, batches, below, few, opened
from reactive_runtime.spark._session.spark_session import literal
from reactive_runtime.spark._verdict import judging
from reactive_runtime.spark._verdict.lineage import entries_of, index_of
from reactive_runtime.spark._verdict.percentiles import percentiles
from reactive_runtime.spark._verdict.planning import Kept, parts_for, spark_schema
from reactive_runtime.spark._verdict.run_planning import RunsInTasks
from reactive_runtime.spark._verdict.sources import ByDriver, ByTasks
from reactive_runtime.spark._verdict.tables import EXAMPLES, RUNS, table
from reactive_runtime.spark._verdict.traces import source_of, summary
from reactive_runtime.testing._traces.trace_files import digest_of
from reactive_runtime.testing.trace import metadata_of, run_folders, schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LINEAGE", "RECORDS", "judged_in", "lineage_rows", "planned", "records_of_files", "verdict_tables"]

RECORDS: Final = pa.schema([(item.name, item.type) for item in schema()])
"""The columns of a trace; each may have nulls, as older traces have not all of them."""

LINEAGE: Final = schema_of(
    run=pa.string(),
    folder=pa.string(),
    identity=pa.string(),
    contents=pa.string(),
    records=pa.int64(),
    file=pa.string(),
    file_records=pa.int64(),
    checksum=pa.string(),
    rules=pa.int64(),
    judged=pa.string(),
    version=pa.string(),
)
"""A row for each file of a night. `rules`, `judged`: of the verdict that the tables have on the run, and when it was
made; null where they have none. `version`: of the program that has written the row."""

_EACH: Final = 1_000_000
"""Records that are worth a task."""


def records_of_files(files: DataFrame, records: int, cores: int) -> DataFrame:
    """The records of files (rows with folder and file), as tasks read them, sorted within each task."""
    parts = files.select("folder", "file").repartition(parts_for(records, _EACH, cores))
    found = parts.mapInArrow(_read_records, spark_schema(RECORDS))
    return found.sortWithinPartitions("run", "subscription", "begin")


def _read_records(some: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: the records of its files."""
    for batch in some:
        for item in batch.to_pylist():
            path = below(item["folder"], item["file"])
            try:
                with opened(path) as data:
                    for records in parquet.ParquetFile(data, page_checksum_verification=True).iter_batches():
                        yield _with_all_columns(records)
            except (OSError, pa.ArrowException) as error:
                what = next(iter(str(error).splitlines()), "")
                raise TraceError(f"{path}: can't be read ({what})") from error


def _with_all_columns(records: pa.RecordBatch) -> pa.RecordBatch:
    known = set(records.schema.names)
    columns = [
        records.column(item.name).cast(item.type) if item.name in known else pa.nulls(len(records), item.type)
        for item in RECORDS
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORDS)


def lineage_rows(plan: RunsInTasks, runs: DataFrame, version: str) -> DataFrame:
    """A row of LINEAGE for each file of these runs."""
    from pyspark.sql import functions as F

    counted = plan.groups.where(f"kind = {HELD}").select("folder", "file", F.col("rows").alias("file_records"))
    rows = plan.files.join(runs, "folder").join(counted, ["folder", "file"])
    return rows.withColumn("version", F.lit(version)).select(*LINEAGE.names).coalesce(1)


def planned(
    spark: SparkSession,
    roots: Sequence[str],
    unable: Callable[[TraceError], object],
    note: Callable[[str], object],
) -> RunsInTasks:
    """The runs below these folders that are as they were written; this process looks at a few, tasks at more."""
    is_few = few(roots, judging.FEW)
    folders = [run for root in roots for run in run_folders(root)] if is_few else None
    source = source_of(spark, roots, folders, unable, note)
    if isinstance(source, ByTasks):
        for line in source.plan.notes:
            note(line)
        return source.plan
    assert isinstance(source, ByDriver)
    runs, files, held = [], [], []
    for item in source.held:
        folder, metadata = str(item.folder), metadata_of(item.folder) or {}
        counted = metadata.pop("files", None) or {}
        contents = digest_of([file.name for file in item.files], item.checksums, item.rows, item.complete)
        known = (folder, item.run, item.identity, item.rows, item.complete, None, contents)
        runs.append((RUN, 0, 0, *known, json.dumps(metadata, default=str), None))
        for file in item.files:
            checksum = item.checksums.get(file.name)
            files.append((FILE, 0, 0, folder, *[None] * 4, file.name, checksum, None, None))
            size = file.stat().st_size
            held.append(Examined(HELD, folder, file.name, rows=counted.get(file.name), size=size, checksum=checksum))
    listed, named = (_frame(spark, rows, LISTED) for rows in (runs, files))
    sums = {"size": sum(item.size or 0 for item in held), "files": len(held)}
    chosen = named.select("folder", "file", "checksum")
    return RunsInTasks(listed, _frame(spark, held, EXAMINED), chosen, len(runs), sums, Kept())


def _frame(spark: SparkSession, rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_batches(batches(iter(rows), schema), schema))


def judged_in(spark: SparkSession, verdict: Path) -> DataFrame:
    """A row for each run that was judged: what it held then, by which rules, and when."""
    index = spark.createDataFrame(index_of(entries_of(verdict).values()))
    return index.selectExpr(
        "run", "identity as judged_identity", "contents as judged_contents", "records as judged_records",
        "rules", "judged",
    )  # fmt: skip


def verdict_tables(spark: SparkSession, verdict: Path) -> dict[str, DataFrame]:
    """The rows of each table of a verdict; none of one that is not there."""
    subscriptions = spark.createDataFrame([], spark_schema(SUBSCRIPTIONS))
    columns = {
        "runs": spark_schema(table([], RUNS).schema),
        "violations": spark_schema(VIOLATIONS),
        "summary": summary(subscriptions).schema,
        "latency": spark_schema(percentiles(WAITS.empty_table()).schema),
        "histogram": spark_schema(WAITS),
        "examples": spark_schema(table([], EXAMPLES).schema),
    }
    frames = {}
    for name, of in columns.items():
        if any((verdict / name).glob("run=*")):
            frames[name] = spark.read.schema(of).parquet(literal(verdict / name))
        else:
            frames[name] = spark.createDataFrame([], of)
    return frames
