"""Sends the batches that a task has given to Spark's worker to the JVM at once.

The worker writes batches into a buffer of 64 KiB, and empties it when it is full, or at the end. So a small batch of a
slow task would wait there. The stream has a `flush`, but Spark hands the stream to no function: `sent` finds it on the
stack, in the frame that writes. Without it batches without rows fill the buffer, and push out those before them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

__all__ = ["sent"]


def sent(batches: Iterable[pyarrow.RecordBatch], empty: pyarrow.RecordBatch) -> Iterator[pyarrow.RecordBatch]:
    """The batches for the worker, which have left it when the iterator ends.

    Args:
        batches: The batches of the task.
        empty: A batch of the same schema without rows.
    """
    yield from batches
    stream = _stream()
    if stream is not None:
        stream.flush()
        return
    import pyarrow as pa

    room = int(os.environ.get("SPARK_BUFFER_SIZE", "65536"))
    for _ in range(room // pa.ipc.get_record_batch_size(empty) + 1):
        yield empty


def _stream() -> Any:
    """The stream that the worker writes to, where this runs below the call that writes; else None."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "dump_stream":
        frame = frame.f_back
    stream = None if frame is None else frame.f_locals.get("stream")
    return stream if callable(getattr(stream, "flush", None)) else None
