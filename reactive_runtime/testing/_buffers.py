"""The rows that one thread has recorded, and the calls that it is inside of.

How a call that has not returned is found, without a lock on the path of a signal: each buffer has the innermost of
the calls its thread is inside of, which has the one it began inside of, and so on; none of them changes. A call gets
there when it begins; when it returns, its row is added first, and then the call around it is the innermost. `flush`
looks at the calls first, and then at the rows: a call that returns meanwhile is seen in both, where its row counts,
and never in neither. Where a thread has added a row and does not go on, its call is still the innermost when the next
look comes, and the row is gone: so a look keeps in mind which calls have had their row. So each call has one row: with
its end, or, once `flush` has said that it had none, without.

A row is packed to 64 bytes where it can be, as nearly all can: a tuple of ten is four times the memory, is looked at by
each garbage collection, and costs a quarter of a microsecond to be made into columns, which is the same for one and for
thousands of packed rows. A row that has an error, or no number where there should be one, stays a tuple.

How it is known up to which ticket nothing is missing (`checkpoint`): a thread says in its buffer that it is about to
draw a ticket, and takes that back when what the ticket is for can be seen there. A look draws a ticket of its own
first. A buffer that is then seen at rest shows all that its thread has drawn before. Rows that were taken and have not
reached the sink are counted in the buffer, and waited for.

Assumed: `append`, a slice and the removal of a slice of one list are each atomic, and so are the reading and the
writing of an attribute in `__slots__`. They are on every build of CPython; free-threaded ones lock the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Any, Final, NamedTuple
from weakref import ref

from reactive_runtime._core.runtime import primitives
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.testing._records import Signal

__all__ = [
    "CANCEL",
    "NONE",
    "ON_COMPLETE",
    "ON_ERROR",
    "ON_NEXT",
    "ON_SUBSCRIBE",
    "PACKED",
    "REQUEST",
    "SETTLED",
    "SIGNALS",
    "SUBSCRIBE",
    "Buffer",
    "Buffers",
    "Checkpoint",
    "Chunk",
    "Life",
    "Packed",
    "Row",
    "Sink",
    "comes_true",
    "demand_of",
    "depth_of",
    "hash_of",
    "pack",
    "text_of",
]

SIGNALS: Final = tuple(Signal)
ON_SUBSCRIBE, ON_NEXT, ON_ERROR, ON_COMPLETE, REQUEST, CANCEL, SUBSCRIBE, SETTLED = range(len(SIGNALS))


TEXT: Final = 1_000
"""Characters that are kept of an error."""

NONE: Final = False
"""The value of a signal whose argument was None (2.13): no int, and JSON can have it."""


class Row(NamedTuple):
    """A signal as it is recorded; `Recorder.record_of` makes a `Record` of it."""

    subscription: int
    signal: int
    n: Any
    begin: int
    end: int | None
    begin_ns: int
    end_ns: int | None
    value: Any
    error: str | None
    depth: int


PACKED: Final = 8
"""Numbers in a packed row."""

_ROW: Final = Struct(f"{PACKED}q")
_BEGIN: Final = Struct("q")
pack: Final = _ROW.pack

Packed = bytes | tuple[Any, ...]
"""A row as it is recorded: its fields, or these of them, packed: subscription, signal, n or value, begin, end,
begin_ns, end_ns, depth."""


def _unpacked(row: Packed) -> tuple[Any, ...]:
    if type(row) is tuple:
        return row
    number, signal, argument, begin, end, begin_ns, end_ns, depth = _ROW.unpack(row)  # type: ignore[arg-type]
    n, value = argument if signal == REQUEST else None, argument if signal == ON_NEXT else None
    return number, signal, n, begin, end, begin_ns, end_ns, value, None, depth


def _begin(row: Packed) -> int:
    begin: int = row[3] if type(row) is tuple else _BEGIN.unpack_from(row, 3 * _BEGIN.size)[0]  # type: ignore[arg-type]
    return begin


class Chunk:
    """The rows that one thread has recorded."""

    __slots__ = ("packed", "thread")

    def __init__(self, thread: int, packed: Sequence[Packed]) -> None:
        self.thread: int = thread
        self.packed: Sequence[Packed] = packed

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The fields of `Row` of each, as plain tuples."""
        return [_unpacked(row) for row in self.packed]


class Checkpoint(NamedTuple):
    """The knowledge of a recorder at one moment of its run."""

    ticket: int
    """Of every call that began before, the sink has the row, or the call is among those under way."""
    under_way: list[tuple[int, tuple[Any, ...]]]
    """Calls that had begun by then and had not returned: thread and row, whose `end` is None."""


Sink = Callable[[Chunk], object]


_Call = tuple[int, int, Any, int, int, int, Any]
"""A call that has begun: subscription, signal, n, begin, begin_ns, depth, and the `_Call` that it began inside of."""


class Buffer:
    """The rows of one thread, and the calls it is inside of. That thread alone adds; any may take."""

    __slots__ = ("_had", "_life", "_lock", "_taken", "call", "drawing", "rows", "thread")

    def __init__(self, life: Life) -> None:
        self.thread = primitives.get_ident()
        self.rows: list[Packed] = []  # appended by the thread; taken from the front under _lock
        self.call: _Call | None = None  # written by the thread, read by any; the innermost, which has the others
        self.drawing = False  # the thread; True from before a ticket is drawn until what it is for can be seen here
        self._life = ref(life)  # gone when the thread is
        self._lock = primitives.Lock()  # one takes at a time
        self._taken = 0  # _lock; how many have taken, and are on their way to the sink
        self._had: set[int] = set()  # _lock; the `begin` of calls that have had their row, and may still be seen

    def ended(self) -> bool:
        """Whether the thread has ended."""
        return self._life() is None

    def take(self, final: bool = False) -> tuple[list[Packed], list[tuple[Any, ...]]]:
        """The rows so far, which are taken away, and rows for the calls under way; `final`: those stay as they are."""
        with self._lock:
            self._taken += 1
            innermost = self.call  # before the rows: see above
            size = len(self.rows)
            rows = self.rows[:size]
            del self.rows[:size]
            if self._had:
                rows = [row for row in rows if _begin(row) not in self._had]
            # Else its own thread takes, between two rows: no call that it is inside of has had its row.
            if self._had or self.drawing or self.thread != primitives.get_ident():
                among = {call[3] for call in (*_chain(innermost), *_chain(self.call))}
                self._had = among.intersection((*self._had, *map(_begin, rows)))
            under_way = [
                (*call[:4], None, call[4], None, None, None, call[5])
                for call in reversed(list(_chain(innermost)))
                if call[3] not in self._had
            ]
            if final:
                self._had.update(row[3] for row in under_way)
            return rows, under_way

    def is_taken(self) -> bool:
        """Whether a thread takes: perhaps this one, where a collection of garbage ends what signals then."""
        return self._lock.locked()

    def delivered(self) -> None:
        """Note that the rows which were taken have reached the sink."""
        with self._lock:
            self._taken -= 1

    def delivered_all(self) -> bool:
        """Whether nothing is on its way to the sink."""
        with self._lock:
            return self._taken == 0

    def at_rest(self) -> bool:
        """Whether all that its thread has drawn tickets for can be seen."""
        return not self.drawing


def comes_true(condition: Callable[[], bool], over: float) -> bool:
    """Whether it does before that time. A thread needs a few instructions for it, once it may run."""
    while not condition():
        if primitives.monotonic() > over:
            return False
        primitives.Event().wait(0.0005)
    return True


class Life:
    """Lives as long as its thread."""

    __slots__ = ("__weakref__",)


class Buffers(primitives.ThreadLocal):
    """Each thread's buffer, made when it is asked for.

    A collection of garbage while it is made may end what signals then: that is recorded in one of its own.
    """

    __slots__ = ("made",)  # of all threads; what is no slot is of each thread
    life: Life
    made: Callable[[Life], Buffer]  # written once, before the recorder is known to any thread

    def __getattr__(self, name: str) -> Any:
        if name != "buffer":
            raise AttributeError(name)
        life = Life()
        buffer = self.made(life)
        self.life, self.buffer = life, buffer
        return buffer


def _chain(call: _Call | None) -> Iterator[_Call]:
    """The call, and those that it began inside of, from the inside out."""
    while call is not None:
        yield call
        call = call[6]


def depth_of(innermost: _Call, number: int) -> int:
    """How many calls of that subscription the thread is inside of."""
    return next((call[5] + 1 for call in _chain(innermost) if call[0] == number), 0)


def demand_of(n: Any) -> int | None:
    """The argument of a `request`, within 64 bits: more than MAX_DEMAND is that (3.17). None for what is no int."""
    if not isinstance(n, int) or isinstance(n, bool):
        return None
    return max(-MAX_DEMAND - 1, min(int.__int__(n), MAX_DEMAND))


def text_of(error: object) -> str:
    """The text of an error; its __repr__ is foreign too."""
    try:
        text = repr(error)
    except BaseException:
        text = f"<{type(error).__name__}, whose repr raises>"
    return text[:TEXT].encode("utf-8", "backslashreplace").decode()


def hash_of(element: object) -> int:
    """The hash of an element; 0 where it has none."""
    try:
        return hash(element)
    except BaseException:  # the elements are foreign, and so is their __hash__
        return 0
