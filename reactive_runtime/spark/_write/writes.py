"""How the batches of a flow become writes of Spark.

    append      each batch is one write
    create      the first batch is one that fails where something is there; the others are appended
    replace     all batches are one write, at the end of the flow: until then what was there stays

Batches that replace something wait in Spark's own store, on the disks of the executors. A batch that replaced the rows
of the one before it would lose them, and no error would report it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from reactive_runtime._core.failures import dropping
from reactive_runtime.errors import SparkError
from reactive_runtime.spark._write.marks import Marks, Once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "NO_OPTIONS",
    "Append",
    "Call",
    "Each",
    "IsThereError",
    "Replace",
    "Write",
    "called",
    "names_of_options",
    "no_transaction",
    "replacing",
]

NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})

Call: TypeAlias = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A method of a writer of Spark, and what it is called with."""

Make: TypeAlias = "Callable[[], DataFrame]"
"""Makes the DataFrame of a batch, once more for a second try."""


class Write(Protocol):
    """A writer of the batches of one flow. Calls are serial: `put` for each, and then `end`."""

    def put(self, make: Make, rows: int, /) -> object:
        """One more batch."""

    def end(self, empty: Make, /) -> object:
        """There are no more. `empty` is a batch without rows."""


class IsThereError(SparkError):
    """The table or folder that a flow should make is there. In mode "ignore" this ends the flow, and is no error."""


class Each:
    """Calls `write` with each batch and its number; once more, with the same, where it fails."""

    def __init__(self, write: Callable[[DataFrame, int], object], over: Callable[[], bool]) -> None:
        self._write = write
        self._over = over
        self._number = 0  # of the thread that writes: its calls are serial

    def put(self, make: Make, rows: int) -> None:
        """One more batch."""
        _twice(lambda: self._write(make(), self._number), self._over)
        self._number += 1

    def end(self, empty: Make) -> None:
        """There are no more; a function that is called for each batch is called for none."""


class Append:
    """Each batch is a write of its own; where `create` is given, the first is that, and fails where something is there.

    With `marks` each write says in the table how many elements of the flow it has then.
    """

    def __init__(
        self,
        append: Callable[[DataFrame, Mapping[str, str]], object],
        over: Callable[[], bool],
        *,
        create: Callable[[DataFrame], object] | None = None,
        marks: Marks | None = None,
    ) -> None:
        self._append = append
        self._over = over
        self._create = create
        self._marks = marks
        # All of these belong to the thread that writes: its calls are serial.
        self._position = 0 if marks is None else marks.begin
        self._any = False

    def put(self, make: Make, rows: int) -> None:
        """One more batch."""
        if self._marks is not None:
            self._marked(self._marks, make, rows)
        elif self._create is not None and not self._any:
            self._created(self._create, make())
        else:
            _twice(lambda: self._append(make(), NO_OPTIONS), self._over)
        self._any = True

    def end(self, empty: Make) -> None:
        """There are no more; where there were none, a write without rows makes the table, or the folder."""
        if self._any or (self._marks is not None and self._marks.position() is not None):
            return
        if self._create is not None:
            self._created(self._create, empty())
        else:
            self._append(empty(), NO_OPTIONS)

    def _created(self, create: Callable[[DataFrame], object], frame: DataFrame) -> None:
        # Not twice: what the first try has left would be taken for what was there before.
        try:
            create(frame)
        except Exception as error:
            if _is_there(error):
                raise IsThereError(f"to_spark: {_first_line(error)}") from error
            raise

    def _marked(self, marks: Marks, make: Make, rows: int) -> None:
        position = self._position
        found = marks.position()
        if found is None and position == 0:
            self._append(make().limit(0), NO_OPTIONS)  # the table first: what makes one need not take marks
            found = marks.position()
        marks.expect(position, found)

        def write() -> None:
            if tried and marks.position() == position + rows:
                return  # it failed after its commit
            tried.append(True)
            self._append(make(), marks.options(position + rows))

        tried: list[bool] = []
        _twice(write, self._over)
        self._position = position + rows


class Replace:
    """All batches are one write, at the end."""

    def __init__(self, replace: Callable[[DataFrame], object]) -> None:
        self._replace = replace
        self._kept: list[tuple[int, DataFrame]] = []  # of the thread that writes: its calls are serial

    def put(self, make: Make, rows: int) -> None:
        """One more batch, which waits on disk."""
        from pyspark import StorageLevel

        size, frame = 1, make().localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)
        while self._kept and self._kept[-1][0] == size:  # as deep as the logarithm of their number, for the planner
            frame = self._kept.pop()[1].union(frame)
            size *= 2
        self._kept.append((size, frame))

    def end(self, empty: Make) -> None:
        """There are no more: the write."""
        frames = [frame for _, frame in self._kept] or [empty()]
        self._kept = []
        self._replace(reduce(lambda one, other: one.union(other), frames))


_THERE: Final = ("42K04", "42P07")
"""States of SQL where a path or a table is there already. That of a folder in the way of a table is 42710."""


def _is_there(error: Exception) -> bool:
    state: Any = getattr(error, "getSqlState", lambda: None)()
    return state in _THERE or (state is None and "already exists" in _first_line(error))


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _twice(write: Callable[[], object], over: Callable[[], bool]) -> None:
    from pyspark.errors import AnalysisException

    try:
        write()
    except Exception as error:
        if over() or isinstance(error, AnalysisException):  # which is not of the moment
            raise
        dropping.error_dropped("to_spark: a micro-batch was not written, and is tried once more", error)
        write()


def replacing(replace: Callable[[DataFrame], object], once: Once | None) -> Replace:
    """A write that replaces; SparkError where each element is to be in the table once."""
    if once is not None:
        raise SparkError("to_spark: exactly_once is for appending, and this write replaces what is there")
    return Replace(replace)


def called(writer: Any, calls: Iterable[Call]) -> Any:
    """A writer of Spark after some calls."""
    for name, arguments, named in calls:
        writer = getattr(writer, name)(*arguments, **named)
    return writer


def names_of_options(calls: Iterable[Call]) -> frozenset[str]:
    """The options that the calls give to a writer, in small letters."""
    return frozenset(key.lower() for name, _, options in calls if name == "options" for key in options)


def no_transaction(options: Mapping[str, Any]) -> None:
    """ValueError for what says of a write which one it is: a flow has many."""
    for name in options:
        if name.lower() in ("txnappid", "txnversion"):
            raise ValueError(
                f"to_spark: {name} is of one write, and a flow is written in batches, of which Delta would leave out"
                " all but the first: use exactly_once(app)"
            )
