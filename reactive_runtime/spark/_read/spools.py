"""The batches of one partition, between the task that sends them and the flow that takes them.

A task is never held back: it would keep its place on an executor for as long as the flow has no demand, and a job that
the flow itself waits for might need that place. So what is not taken yet waits here: a little of it in memory, the rest
in a file without a name, which ends with the process however that ends.
"""

from __future__ import annotations

import tempfile
import zlib
from collections import deque
from collections.abc import Iterable
from typing import IO, Any, Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import SparkError

__all__ = ["IN_MEMORY", "Attempt", "Spool"]

IN_MEMORY: Final = 1 << 24
"""Bytes of a partition that wait in memory at the most; what comes beyond waits in a file."""


class Attempt:
    """One run of the task of a partition: Spark may run it again, or twice at once."""

    def __init__(self) -> None:
        self.batches = 0
        """How many it has sent; for the thread that receives them."""


class Spool:
    """The batches of one partition, in order: one thread takes them, others put them.

    A second attempt sends all batches again. Those that are equal are not taken twice; where one is not, and the first
    attempt's was taken, the partition fails.
    """

    def __init__(self, what: str, partition: int) -> None:
        self._where = f"{what}: partition {partition}"
        self._changed = primitives.Condition()
        self._attempt: Attempt | None = None  # _changed; the latest: what others send is dropped
        self._whole = False  # _changed; whether that attempt has sent its last batch
        self._sums: list[int] = []  # _changed; of all batches there have been, taken ones too
        self._waiting: deque[Any] = deque()  # _changed; the last of them, in memory, or their place in the file
        self._in_memory = 0  # _changed; bytes of those
        self._end: BaseException | bool = False  # _changed; True: the last batch is here; or why there is none
        self._file_lock = primitives.Lock()
        self._file: IO[bytes] | None = None  # _file_lock
        self._closed = False  # _file_lock
        self.bytes: int = 0
        """How many were taken; for the thread that takes them."""
        self.too_large: bool = False  # written once, before `take` gives the end
        """Whether it was left, since a job of many partitions takes small ones only."""

    # -- for the thread that takes them ----------------------------------------------------------------------------

    def take(self) -> Any | None:
        """The next batch, when it is there; None after the last, or where it was closed. Raises why there is none."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._end)
            if not self._waiting:
                if isinstance(self._end, BaseException):
                    raise self._end
                return None
            batch = self._waiting.popleft()
            if not isinstance(batch, tuple):
                self._in_memory -= len(batch)
        message = self._read(*batch) if isinstance(batch, tuple) else batch
        self.bytes += len(message)
        return message

    def close(self) -> None:
        """Nothing is taken any more."""
        with self._changed:
            self._attempt = None
            self._waiting.clear()
            self._end = True
            self._changed.notify_all()
        with self._file_lock:
            file, self._file, self._closed = self._file, None, True
        if file is not None:
            file.close()

    # -- for those that put them -----------------------------------------------------------------------------------

    def begin(self) -> Attempt:
        """An attempt begins; what others still send is dropped."""
        with self._changed:
            self._attempt, self._whole = Attempt(), False
            return self._attempt

    def put(self, attempt: Attempt, sum: int, batch: Any) -> bool:
        """The next batch of an attempt; False where it is of no use any more. It may fail as a file does."""
        attempt.batches += 1
        with self._changed:
            if self._attempt is not attempt:
                return False
            if self._again(attempt.batches, sum):
                return True
            if self._end:
                return False
            if self._in_memory + len(batch) <= IN_MEMORY:
                self._in_memory += len(batch)
                self._add(sum, batch)
                return True
        place = self._write(batch)
        with self._changed:
            if self._attempt is attempt and not self._end:
                self._add(sum, (place, len(batch)))
        return True

    def whole(self, attempt: Attempt) -> None:
        """An attempt has sent its last batch."""
        with self._changed:
            if self._attempt is attempt:
                self._cut(attempt.batches)
                self._whole = True

    def returned(self, batches: Iterable[Any]) -> None:
        """All batches of an attempt at once, and Spark says that they are the ones."""
        attempt = self.begin()
        for batch in batches:
            self.put(attempt, zlib.crc32(batch) << 32 | zlib.adler32(batch), batch)
        self.whole(attempt)
        self.done()

    def done(self) -> None:
        """Spark says that the partition is computed."""
        with self._changed:
            if not self._end:
                self._end = self._whole or SparkError(f"{self._where}: it was computed, and not all of it has come")
            self._changed.notify_all()

    def found_large(self) -> None:
        """It was left: another job has to fetch it."""
        self.too_large = True
        self.whole(self.begin())
        self.done()

    def fail(self, error: BaseException) -> None:
        """There are no more batches; those that are here are taken first."""
        with self._changed:
            self._end = self._end or error
            self._changed.notify_all()

    def _again(self, number: int, sum: int) -> bool:
        """With the lock: whether the n-th batch was here before."""
        if number > len(self._sums):
            return False
        if self._sums[number - 1] == sum:
            return True
        self._cut(number - 1)
        return False

    def _cut(self, number: int) -> None:
        """With the lock: the batches after the n-th are not those of the latest attempt."""
        if number >= len(self._sums):
            return
        taken = len(self._sums) - len(self._waiting)
        if number < taken:
            self._waiting.clear()
            self._end = SparkError(
                f"{self._where}: its task was lost, and had other rows when it ran again, where some of the first had"
                " been taken: sort the rows, or persist the DataFrame"
            )
            self._changed.notify_all()
            return
        while len(self._sums) > number:
            self._sums.pop()
            batch = self._waiting.pop()
            if not isinstance(batch, tuple):
                self._in_memory -= len(batch)

    def _add(self, sum: int, batch: Any) -> None:
        """With the lock."""
        self._sums.append(sum)
        self._waiting.append(batch)
        self._changed.notify_all()

    # -- the file --------------------------------------------------------------------------------------------------

    def _write(self, batch: Any) -> int:
        with self._file_lock:
            if self._closed:
                return 0
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="reactive-runtime-")  # noqa: SIM115  # `close` does
            place = self._file.seek(0, 2)
            self._file.write(batch)
            return place

    def _read(self, place: int, size: int) -> Any:
        import pyarrow as pa

        batch = pa.allocate_buffer(size)
        with self._file_lock:
            if self._file is not None:
                self._file.seek(place)
                self._file.readinto(memoryview(batch))  # type: ignore[attr-defined]
        return batch
