"""Traces on disk: one folder a run, with Parquet files of its signals and a metadata.json.

    <folder>/date=<day>/run=<run>/signals-00000.parquet   a row for each `Record`, by subscription and `begin`
    <folder>/date=<day>/run=<run>/metadata.json           version, commit, Python, machine, seed; files and their rows

What a run holds is what its metadata counts. Every two seconds at the latest the writer asks the recorder up to which
ticket nothing is missing, and writes one file of all that there is up to there. A call that had not returned is in a
file of such calls, `open-00000.parquet`, which the next one replaces. Then `_metadata.json`, which counts them,
is replaced, in one rename. So a run that is killed is a prefix of what happened, whatever its threads were at: what
the metadata does not count is not judged. When the run is complete, the metadata is `metadata.json`.

A call that had not returned where a run was cut off has an `end` beyond all tickets (`CUT` - `begin`): it may have
returned later, and is not accused of what it did not do. An `end` of None says that the run came to its end without it.

Each page of a file has a checksum, which its footer and the heads of its pages have not: so the metadata has one of
each file, which is compared before the file is judged.

A file is written under a name that begins with `_`, which readers pass over, and gets its own name when it is whole.
Each file says which schema it has: 1 had no `depth` and no `late_signals`, 2 no `large_value`, 3 no `none`, 4 is what
is written here; docs/traces.md has the columns. Needs pyarrow, which is imported on first use.
"""

from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime.testing._traces.trace_columns import SCHEMA, records_of, schema, table_of
from reactive_runtime.testing._traces.trace_files import (
    Held,
    arrived,
    check_files,
    checked,
    different_runs,
    holds,
    metadata_of,
    read_through,
    read_trace,
    run_folders,
)
from reactive_runtime.testing._traces.trace_writer import Source, TraceWriter

__all__ = [
    "SCHEMA",
    "Held",
    "Source",
    "TraceWriter",
    "arrived",
    "check_files",
    "checked",
    "different_runs",
    "holds",
    "metadata_of",
    "read_through",
    "read_trace",
    "records_of",
    "run_folders",
    "schema",
    "table_of",
]

_all_at_home(globals())
