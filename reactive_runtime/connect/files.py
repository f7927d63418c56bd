"""Files and objects, wherever fsspec opens them: lines, JSON lines, CSV, Arrow and Parquet, in and out.

Needs the extra `files`. The sources are in `_files.readers` and `_files.table_readers`, and read by demand. The sinks
are in `_files.writers` and `_files.table_writers`; a file is in place when all of it is written, or not at all. `lines`
and `write_lines` say what holds for the others too.
"""

from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime.connect._files.place import FilesError
from reactive_runtime.connect._files.readers import csv, json_lines, lines
from reactive_runtime.connect._files.table_readers import arrow, parquet
from reactive_runtime.connect._files.table_writers import write_arrow, write_parquet
from reactive_runtime.connect._files.writers import write_csv, write_json_lines, write_lines

__all__ = [
    "FilesError",
    "arrow",
    "csv",
    "json_lines",
    "lines",
    "parquet",
    "write_arrow",
    "write_csv",
    "write_json_lines",
    "write_lines",
    "write_parquet",
]

_all_at_home(globals())
