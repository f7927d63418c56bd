"""Records every signal between a publisher and its subscribers, in both directions, with its beginning and end.

A recorder stands between the two: what it passes to the publisher is a subscriber, what it passes to the
subscriber is a subscription, and each call through either becomes a row when it returns. Rows are kept in a
buffer of the thread that made the call, so that recording adds no lock, and with it no order, to what it looks
at. A full buffer goes to the sink, on the thread that filled it: a sink that can't keep up slows the load down,
and nothing is dropped.

Cost: less than a microsecond a signal (`benchmarks/recorder.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final, Generic, NamedTuple, TypeVar

from reactive_runtime._core import primitives
from reactive_runtime.spec import Publisher, Subscriber, Subscription
from reactive_runtime.testing.records import Facts, Record, Signal

__all__ = ["Chunk", "Recorder", "Row", "Sink"]

T = TypeVar("T")

SIGNALS: Final = tuple(Signal)
_CODE: Final = {signal: code for code, signal in enumerate(SIGNALS)}
ON_SUBSCRIBE, ON_NEXT, ON_ERROR, ON_COMPLETE, REQUEST, CANCEL, SUBSCRIBE, SETTLED = range(len(SIGNALS))

CHUNK: Final = 10_000
"""Rows that a thread gathers before it hands them to the sink."""


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


class Chunk(NamedTuple):
    """What one thread has recorded."""

    thread: int
    rows: list[tuple[Any, ...]]  # of the fields of Row, as plain tuples: they are made on the path of every signal


Sink = Callable[[Chunk], object]


class Recorder:
    """Records a run."""

    def __init__(self, run: str = "run", sink: Sink | None = None) -> None:
        """`sink` receives full chunks, on the threads that filled them, without a lock held; without one all is kept.

        `run` names the run in every record.
        """
        self.run = run
        self.facts: list[Facts] = []  # _lock for writing; index: the number of the subscription
        self._lock = primitives.Lock()
        self._buffers: list[_Buffer] = []  # _lock
        self._kept: list[Chunk] = []  # _lock
        self._sink = sink or self._keep
        self._local = _Local(self)
        self._draw = primitives.tickets()

    def wrap(
        self,
        publisher: Publisher[T],
        scenario: str = "",
        *,
        shared_callers: bool = False,
        ascending: bool = False,
        elements: int | None = None,
    ) -> RecordedPublisher[T]:
        """`publisher`, each subscription of which is recorded; the other arguments are those of `Facts`."""
        facts = Facts(-1, scenario, shared_callers=shared_callers, ascending=ascending, elements=elements)
        return RecordedPublisher(self, publisher, facts)

    def settle(self, subscriptions: Iterable[int] | None = None) -> None:
        """Record that nothing which could still signal these subscriptions (all, by default) is running."""
        with self._lock:
            numbers = range(len(self.facts)) if subscriptions is None else subscriptions
        for number in numbers:
            ticket, ns = self._draw(), primitives.now_ns()
            self._local.buffer.add((number, SETTLED, None, ticket, self._draw(), ns, ns, None, None))

    def flush(self) -> None:
        """Hand what is left to the sink. Call it when the recorded threads are quiet, or have ended.

        A call that has not returned is recorded with an `end` of None; should it return after all, it is
        recorded once more.
        """
        with self._lock:
            buffers = list(self._buffers)
        for buffer in buffers:
            buffer.rows.extend((*call, None, None, None) for call in buffer.under_way())
            buffer.hand_over()

    def records(self) -> list[Record]:
        """All that was recorded, in order of `begin`; for recorders without a sink. Flushes."""
        self.flush()
        with self._lock:
            chunks = list(self._kept)
        found = [self.record_of(chunk.thread, row) for chunk in chunks for row in chunk.rows]
        return sorted(found, key=lambda record: record.begin)

    def record_of(self, thread: int, row: tuple[Any, ...]) -> Record:
        """The record of a row."""
        number, signal, n, begin, end, begin_ns, end_ns, value, error = row
        facts = self.facts[number]
        return Record(
            self.run,
            facts.scenario,
            number,
            facts.shared_callers,
            facts.ascending,
            facts.elements,
            thread,
            SIGNALS[signal].value,
            fitting(n),
            begin,
            end,
            begin_ns,
            end_ns,
            fitting(value),
            error,
        )

    def _keep(self, chunk: Chunk) -> None:
        with self._lock:
            self._kept.append(chunk)

    def _buffer(self) -> _Buffer:
        """A buffer for the thread that calls."""
        buffer = _Buffer(self._sink)
        with self._lock:
            self._buffers.append(buffer)
        return buffer

    def _number(self, facts: Facts) -> Facts:
        with self._lock:
            numbered = replace(facts, subscription=len(self.facts))
            self.facts.append(numbered)
        return numbered


def fitting(n: Any) -> int | None:
    """An int of 64 bits, as traces hold them; larger ones by their hash; None for what is no int."""
    if type(n) is not int:
        return None
    return n if -(2**63) <= n < 2**63 else hash(n)


class _Buffer:
    """The rows of one thread, and the calls it is inside of. Owned by that thread, but for `flush`."""

    __slots__ = ("calls", "rows", "sink", "thread")

    def __init__(self, sink: Sink) -> None:
        self.thread = primitives.get_ident()
        self.sink = sink
        self.rows: list[tuple[Any, ...]] = []
        self.calls: list[tuple[int, int, Any, int, int]] = []  # innermost last

    def add(self, row: tuple[Any, ...]) -> None:
        self.rows.append(row)
        if len(self.rows) >= CHUNK:
            self.hand_over()

    def hand_over(self) -> None:
        rows, self.rows = self.rows, []
        if rows:
            self.sink(Chunk(self.thread, rows))

    def under_way(self) -> list[tuple[Any, ...]]:
        return [(number, signal, n, begin, None, ns) for number, signal, n, begin, ns in self.calls]


class _Local(primitives.ThreadLocal):
    """Each thread's buffer."""

    def __init__(self, recorder: Recorder) -> None:
        self.buffer = recorder._buffer()


class _Recorded:
    """Calls through to the other side, and records the call."""

    __slots__ = ("_draw", "_local", "_number")

    def __init__(self, recorder: Recorder, number: int) -> None:
        self._draw = recorder._draw
        self._local = recorder._local
        self._number = number

    def _call(self, signal: int, call: Callable[..., Any], n: Any, error: str | None, *arguments: Any) -> None:
        buffer, draw, now = self._local.buffer, self._draw, primitives.now_ns
        begin, begin_ns = draw(), now()
        buffer.calls.append((self._number, signal, n, begin, begin_ns))
        try:
            call(*arguments)
        except BaseException as raised:
            error = f"raised {raised!r}"
            raise
        finally:
            buffer.calls.pop()
            buffer.add((self._number, signal, n, begin, draw(), begin_ns, now(), None, error))


class RecordedPublisher(Generic[T]):
    """A publisher whose subscriptions are recorded, each under a number of its own."""

    def __init__(self, recorder: Recorder, publisher: Publisher[T], facts: Facts) -> None:
        self._recorder = recorder
        self._publisher = publisher
        self._facts = facts

    def subscribe(self, subscriber: Subscriber[T], /) -> int:
        """Subscribe through the recorder; returns the number of the subscription."""
        if subscriber is None:
            raise TypeError("subscribe(None): a Subscriber is needed (1.9)")
        number = self._recorder._number(self._facts).subscription
        recorded = _RecordedSubscriber(self._recorder, number, subscriber)
        recorded._call(SUBSCRIBE, self._publisher.subscribe, None, None, recorded)
        return number


class _RecordedSubscriber(_Recorded, Generic[T]):
    __slots__ = ("_on_next", "_recorder", "_subscriber")

    def __init__(self, recorder: Recorder, number: int, subscriber: Subscriber[T]) -> None:
        super().__init__(recorder, number)
        self._recorder = recorder
        self._subscriber = subscriber
        self._on_next = subscriber.on_next

    def on_subscribe(self, subscription: Subscription, /) -> None:
        recorded = _RecordedSubscription(self._recorder, self._number, subscription)
        self._call(ON_SUBSCRIBE, self._subscriber.on_subscribe, None, None, recorded)

    def on_next(self, element: T, /) -> None:
        # `_call`, written out: this is the path of every element.
        buffer, draw, now = self._local.buffer, self._draw, primitives.now_ns
        begin, begin_ns = draw(), now()
        buffer.calls.append((self._number, ON_NEXT, None, begin, begin_ns))
        error = None
        try:
            self._on_next(element)
        except BaseException as raised:
            error = f"raised {raised!r}"
            raise
        finally:
            buffer.calls.pop()
            value = element if type(element) is int else _hash(element)
            buffer.add((self._number, ON_NEXT, None, begin, draw(), begin_ns, now(), value, error))

    def on_error(self, error: BaseException, /) -> None:
        self._call(ON_ERROR, self._subscriber.on_error, None, repr(error), error)

    def on_complete(self) -> None:
        self._call(ON_COMPLETE, self._subscriber.on_complete, None, None)


class _RecordedSubscription(_Recorded):
    __slots__ = ("_subscription",)

    def __init__(self, recorder: Recorder, number: int, subscription: Subscription) -> None:
        super().__init__(recorder, number)
        self._subscription = subscription

    def request(self, n: int, /) -> None:
        self._call(REQUEST, self._subscription.request, n, None, n)

    def cancel(self) -> None:
        self._call(CANCEL, self._subscription.cancel, None, None)


def _hash(element: object) -> int:
    try:
        return hash(element)
    except TypeError:
        return 0
