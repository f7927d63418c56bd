"""The recorder: every signal, in both directions, with its beginning and its end."""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from types import FrameType
from typing import Any

import pytest
from sinks import PATIENCE, Sink

from reactive_runtime import MAX_DEMAND, Flow
from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import ReactiveError
from reactive_runtime.testing import Chunk, Record, Recorder, Signal, check
from reactive_runtime.testing import _buffers as buffers
from reactive_runtime.testing import _recorder as module
from reactive_runtime.testing._records import UNDER_WAY


def recorded(flow: Any, sink: Any, **facts: Any) -> list[Record]:
    recorder = Recorder("test")
    recorder.wrap(flow, "scenario", **facts).subscribe(sink)
    return recorder.records()


def test_all_signals_are_recorded_in_order_with_their_nesting() -> None:
    records = recorded(Flow.range(2), Sink(demand=5))
    assert [record.signal for record in records] == [
        "subscribe",
        "on_subscribe",
        "request",
        "on_next",
        "on_next",
        "on_complete",
    ]
    subscribe, on_subscribe, request, first, *_ = records
    assert subscribe.begin < on_subscribe.begin < request.begin
    assert request.end is not None
    assert on_subscribe.end is not None
    assert request.end < on_subscribe.end < first.begin
    assert (request.n, first.value) == (5, 0)


def test_tickets_are_unique_and_times_do_not_run_backwards() -> None:
    records = recorded(Flow.range(100), Sink())
    tickets = [ticket for record in records for ticket in (record.begin, record.end)]
    assert len(set(tickets)) == len(tickets)
    assert [record.begin_ns for record in records] == sorted(record.begin_ns for record in records)


@pytest.mark.parametrize(
    ("element", "value"),
    [(7, 7), (2**63 - 1, 2**63 - 1), (2**63, 2**63), ("x", hash("x")), ([], 0), (True, hash(True))],
    ids=["an int", "the largest", "too large", "a text", "no hash", "a bool"],
)
def test_an_element_is_kept_if_it_is_an_int_and_else_its_hash(element: Any, value: int) -> None:
    records = recorded(Flow.just(element), Sink())
    assert [record.value for record in records if record.signal == "on_next"] == [value]


class Level(IntEnum):
    TWO = 2


@pytest.mark.parametrize(
    ("n", "kept"),
    [
        (3, 3),
        (0, 0),
        (-1, -1),
        (MAX_DEMAND, MAX_DEMAND),
        (-(2**63), -(2**63)),
        (Level.TWO, 2),
        (MAX_DEMAND + 1, MAX_DEMAND),
        (-(2**63) - 1, -(2**63)),
        ("1", None),
        (1.0, None),
        (True, None),
    ],
)
def test_a_request_is_kept_with_its_argument_where_that_is_an_int(n: Any, kept: int | None) -> None:
    sink = Sink(demand=0)
    recorder = Recorder()
    recorder.wrap(Flow.range(3)).subscribe(sink)
    sink.subscription.request(n)
    assert [record.n for record in recorder.records() if record.signal == "request"] == [kept]


def test_what_a_call_raises_is_recorded_and_raised_on() -> None:
    class Raising:
        def subscribe(self, subscriber: Any, /) -> None:
            subscriber.on_subscribe(self)
            raise OSError("no")

        def request(self, n: int, /) -> None:
            raise ValueError("never")

        def cancel(self) -> None: ...

    recorder = Recorder()
    with pytest.raises(ValueError, match="never"):
        recorder.wrap(Raising()).subscribe(Sink())
    errors = {record.signal: record.error for record in recorder.records()}
    assert errors == {
        "request": "raised ValueError('never')",
        "on_subscribe": "raised ValueError('never')",
        "subscribe": "raised ValueError('never')",
    }


def test_the_error_of_a_stream_is_recorded() -> None:
    records = recorded(Flow.error(OSError("no disk")), Sink())
    assert records[-1].signal == "on_error"
    assert records[-1].error == "OSError('no disk')"


def test_a_call_that_has_not_returned_is_recorded_as_under_way() -> None:
    inside, leave = threading.Event(), threading.Event()

    def stay(sink: Sink, element: int) -> None:
        inside.set()
        leave.wait(PATIENCE)

    recorder = Recorder()
    publisher = recorder.wrap(Flow.range(1))
    thread = threading.Thread(target=lambda: publisher.subscribe(Sink(then=stay)))
    thread.start()
    assert inside.wait(PATIENCE)
    open_calls = {record.signal for record in recorder.records() if (record.end or 0) >= UNDER_WAY}
    assert open_calls == {"on_next", "subscribe"}
    leave.set()
    thread.join(PATIENCE)


def test_many_threads_lose_no_record() -> None:
    recorder = Recorder()
    publisher = recorder.wrap(Flow.range(1_000))
    threads = [threading.Thread(target=lambda: publisher.subscribe(Sink())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    records = recorder.records()
    assert len(records) == 8 * 1_004
    assert len({record.thread for record in records}) >= 1
    assert {record.subscription for record in records} == set(range(8))


def test_full_chunks_go_to_the_sink_and_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 100)
    chunks: list[Chunk] = []
    recorder = Recorder(sink=chunks.append)
    recorder.wrap(Flow.range(1_000)).subscribe(Sink())
    assert [len(chunk.rows) for chunk in chunks] == [100] * 10
    recorder.flush()
    assert sum(len(chunk.rows) for chunk in chunks) == 1_004


def test_settle_marks_every_subscription() -> None:
    recorder = Recorder()
    publisher = recorder.wrap(Flow.range(1))
    for _ in range(3):
        publisher.subscribe(Sink())
    recorder.settle()
    settled = [record.subscription for record in recorder.records() if record.signal == Signal.SETTLED]
    assert settled == [0, 1, 2]


def test_spec109_subscribing_none_through_the_recorder_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        Recorder().wrap(Flow.range(1)).subscribe(None)  # type: ignore[arg-type]


def test_what_is_no_subscriber_is_refused_before_it_has_a_number() -> None:
    recorder = Recorder()
    with pytest.raises(AttributeError):
        recorder.wrap(Flow.range(1)).subscribe(object())  # type: ignore[arg-type]
    recorder.settle()
    assert recorder.records() == []


def test_spec213_a_subscription_of_none_reaches_the_subscriber_as_it_is() -> None:
    class Nothing:
        def subscribe(self, subscriber: Any, /) -> None:
            subscriber.on_subscribe(None)

    got: list[Any] = []

    class Looking(Sink):
        def on_subscribe(self, subscription: Any, /) -> None:
            got.append(subscription)

    Recorder().wrap(Nothing()).subscribe(Looking())
    assert got == [None]


# -- foreign code inside a recording ------------------------------------------------------------------------------


class Unhashable:
    def __hash__(self) -> int:
        raise OSError("no hash")


class UnspeakableError(Exception):
    def __repr__(self) -> str:
        raise OSError("no repr")


class LongError(Exception):
    def __repr__(self) -> str:
        return "half a pair: \ud800" + 2_000 * "!"


class Failing:
    """A publisher that fails at once."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def subscribe(self, subscriber: Any, /) -> None:
        subscriber.on_subscribe(self)
        subscriber.on_error(self._error)

    def request(self, n: int, /) -> None: ...

    def cancel(self) -> None: ...


def test_an_element_whose_hash_raises_passes_and_has_the_value_0() -> None:
    sink = Sink()
    records = recorded(Flow.just(Unhashable()), sink)
    assert len(sink.elements) == 1
    assert [record.value for record in records if record.signal == "on_next"] == [0]


def test_an_error_whose_repr_raises_passes_and_is_named_by_its_type() -> None:
    records = recorded(Failing(UnspeakableError()), Sink())
    assert records[-1].error == "<UnspeakableError, whose repr raises>"


def test_an_error_is_kept_as_text_that_any_file_can_hold_and_of_bounded_length() -> None:
    (text,) = [item.error for item in recorded(Failing(LongError()), Sink()) if item.error]
    assert text.startswith("half a pair: \\ud800!")
    assert len(text.encode()) < 1_100


# -- one row for each call ----------------------------------------------------------------------------------------


class Held:
    """A subscription in whose first element a thread stays until it is released."""

    def __init__(self, recorder: Recorder) -> None:
        self._inside, self._leave = threading.Event(), threading.Event()
        publisher = recorder.wrap(Flow.range(1))
        self._thread = threading.Thread(target=lambda: publisher.subscribe(Sink(then=self._stay)))
        self._thread.start()
        assert self._inside.wait(PATIENCE)

    def _stay(self, sink: Sink, element: int) -> None:
        self._inside.set()
        self._leave.wait(PATIENCE)

    def release(self) -> None:
        self._leave.set()
        self._thread.join(PATIENCE)


def test_looking_twice_finds_a_call_under_way_once_and_its_end_when_it_has_one() -> None:
    recorder = Recorder()
    held = Held(recorder)
    first, second = recorder.records(), recorder.records()
    held.release()
    last = recorder.records()
    assert first == second
    assert {item.signal for item in first if (item.end or 0) >= UNDER_WAY} == {"subscribe", "on_next"}
    assert all(item.end is not None and item.end < UNDER_WAY for item in last)
    assert len({item.begin for item in last}) == len(last) == 5


def test_what_flush_has_said_of_a_call_under_way_is_final() -> None:
    chunks: list[Chunk] = []
    recorder = Recorder(sink=chunks.append)
    held = Held(recorder)
    recorder.flush()
    recorder.flush()
    held.release()
    recorder.flush()
    rows = [recorder.record_of(chunk.thread, row) for chunk in chunks for row in chunk.rows]
    assert len({item.begin for item in rows}) == len(rows) == 5
    assert {item.signal for item in rows if item.end is None} == {"subscribe", "on_next"}


def test_flushing_while_threads_record_neither_loses_nor_doubles_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 7)
    chunks: list[Chunk] = []
    recorder = Recorder(sink=chunks.append)
    publisher = recorder.wrap(Flow.range(300))
    together = threading.Barrier(5)

    def load() -> None:
        together.wait(PATIENCE)
        for _ in range(10):
            publisher.subscribe(Sink())

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    together.wait(PATIENCE)
    while any(thread.is_alive() for thread in threads):
        recorder.flush()
    recorder.flush()
    begins = [row[3] for chunk in chunks for row in chunk.rows]
    assert len(begins) == len(set(begins)) == 4 * 10 * 304


class Stepwise(list[Any]):
    """A list that lets another thread move before and after each operation."""

    def __init__(self, items: Any = (), move: Callable[[], None] = lambda: None) -> None:
        super().__init__(items)
        self.move = move

    def append(self, item: Any) -> None:
        self.move()
        super().append(item)
        self.move()

    def __getitem__(self, index: Any) -> Any:
        self.move()
        items = super().__getitem__(index)
        self.move()
        return items

    def __delitem__(self, index: Any) -> None:
        self.move()
        super().__delitem__(index)
        self.move()


_CALL: Any = vars(buffers.Buffer)["call"]


class StepwiseBuffer(buffers.Buffer):
    """A buffer that lets another thread move before and after each operation, as its rows do."""

    __slots__ = ()

    @property
    def call(self) -> Any:
        self.rows.move()  # type: ignore[attr-defined]
        call = _CALL.__get__(self)
        self.rows.move()  # type: ignore[attr-defined]
        return call

    @call.setter
    def call(self, call: Any) -> None:
        self.rows.move()  # type: ignore[attr-defined]
        _CALL.__set__(self, call)
        self.rows.move()  # type: ignore[attr-defined]


def stepwise(buffer: Any, move: Callable[[], None]) -> None:
    """Other threads move at each step of this buffer from now on."""
    buffer.rows = Stepwise(buffer.rows, move)
    buffer.__class__ = StepwiseBuffer


def test_a_look_at_any_step_of_recording_finds_every_call_that_an_earlier_look_found() -> None:
    recorder = Recorder()
    seen: set[int] = set()
    looks: list[int] = []

    def look() -> None:
        buffer.rows.move = lambda: None
        begins = [record.begin for record in recorder.records()]
        buffer.rows.move = look
        assert len(set(begins)) == len(begins)
        assert seen <= set(begins)
        seen.update(begins)
        looks.append(len(begins))

    buffer: Any = recorder._local.buffer
    stepwise(buffer, look)
    recorder.wrap(Flow.range(2)).subscribe(Sink())
    assert (len(seen), len(looks)) == (6, 6 * 8)


def held_buffer() -> Any:
    """A buffer with a row (ticket 1), inside of two calls (3 and 5)."""
    buffer: Any = Recorder()._local.buffer
    buffer.rows.append((0, 0, None, 1, 2, 0, 0, None, None))
    buffer.call = (0, 1, None, 5, 0, 1, (0, 1, None, 3, 0, 0, None))
    buffer.thread = -1  # another one's
    return buffer


def row_of(begin: int) -> tuple[Any, ...]:
    return (0, 1, None, begin, begin + 1, 0, 0, None, None)


def returning(begin: int, *inside: Callable[[Any], None]) -> list[Callable[[Any], None]]:
    """What a thread does, step by step, when its innermost call returns; `inside` comes when its row is there."""
    return [
        lambda buffer: setattr(buffer, "drawing", True),
        lambda buffer: list.append(buffer.rows, row_of(begin)),
        *inside,
        lambda buffer: _CALL.__set__(buffer, _CALL.__get__(buffer)[6]),
        lambda buffer: setattr(buffer, "drawing", False),
    ]


# A collection of garbage, there and then, may close a generator, which cancels: a call inside of one that has its row.
COLLECTED: list[Callable[[Any], None]] = [
    lambda buffer: _CALL.__set__(buffer, (0, 1, None, 7, 0, 2, _CALL.__get__(buffer))),
    lambda buffer: list.append(buffer.rows, row_of(7)),
    lambda buffer: _CALL.__set__(buffer, _CALL.__get__(buffer)[6]),
]


def rows_of_two_looks(steps: list[Callable[[Any], None]], at: tuple[int, ...], final: bool) -> list[int]:
    """The `begin` of each row, where the steps come at these of the four operations of each of two looks."""
    buffer, asked, done = held_buffer(), 0, 0

    def move() -> None:
        """Before and after each operation; after one is before the next."""
        nonlocal asked, done
        while done < len(steps) and at[done] <= (asked + 1) // 2:
            steps[done](buffer)
            done += 1
        asked += 1

    stepwise(buffer, move)
    rows: list[int] = []
    for look in (1, 2):
        before = set(rows)
        taken, under_way = buffer.take(final=final)
        assert asked <= 8 * look
        asked = 8 * look
        told = [row[3] for row in under_way]
        assert not before.intersection(told), at
        rows += [row[3] for row in taken]
        assert {3, 5} <= {*rows, *told}, at
        rows += told if final else []
    move()
    assert done == len(steps)
    buffer.rows.move = lambda: None
    return rows + [row[3] for row in buffer.take(final=True)[0]]


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize(
    ("steps", "begins"),
    [
        (returning(5), [1, 3, 5]),
        ([*returning(5)[:3], *returning(3)[1:]], [1, 3, 5]),
        (returning(5, *COLLECTED), [1, 3, 5, 7]),
    ],
    ids=["one returns", "two return", "with a collection"],
)
def test_a_call_that_returns_while_others_look_has_one_row(
    steps: list[Callable[[Any], None]], begins: list[int], final: bool
) -> None:
    """Whatever of it two looks see: its thread adds a row, and later takes the call away."""
    for at in itertools.combinations_with_replacement(range(9), len(steps)):
        rows = rows_of_two_looks(steps, at, final)
        assert sorted({*rows, 3}) == begins
        assert len(rows) == len(set(rows)), at


def test_a_collection_between_a_row_and_the_end_of_its_call_may_flush() -> None:
    """On the very thread: the call has its row, and is not under way as well."""

    class Collected(list[Any]):
        collects = True

        def append(self, row: Any) -> None:
            super().append(row)
            if self.collects:
                self.collects = False
                call._call(buffers.CANCEL, recorder.flush, None, None)

    chunks: list[Chunk] = []
    recorder = Recorder(sink=chunks.append)
    call = module._Recorded(recorder, 0)
    buffer: Any = recorder._local.buffer
    buffer.rows = Collected()
    call._call(buffers.REQUEST, lambda: None, 1, None)
    recorder.flush()
    rows = [(row[3], row[4]) for chunk in chunks for row in chunk.rows]
    assert sorted(rows) == [(1, 2), (3, None)]
    assert buffer._had == set()


def test_a_collection_at_any_instruction_of_recording_may_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends a generator, whose `finally` cancels: then the thread signals in the middle of whatever it is doing."""
    monkeypatch.setattr(module, "CHUNK", 2)
    monkeypatch.setattr(primitives, "has_gil", lambda: False)  # so that tickets are drawn under a lock
    files = {module.__file__, buffers.__file__, primitives.__file__}
    collected, at = True, 0
    while collected:
        chunks: list[Chunk] = []
        recorder = Recorder(sink=chunks.append)
        collected = run_with_a_collection(recorder, files, at)
        recorder.flush()
        begins = [row[3] for chunk in chunks for row in chunk.rows]
        assert len(begins) == len(set(begins)) == 6 + collected, at
        at += 1
    assert at > 300


def run_with_a_collection(recorder: Recorder, files: set[str], at: int) -> bool:
    """Whether there was an instruction of these files with that number; there the thread has cancelled."""
    instructions = itertools.count()
    met: list[bool] = []
    publisher, call = recorder.wrap(Flow.range(2)), module._Recorded(recorder, 0)

    def enter(frame: FrameType, event: str, argument: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return step if frame.f_code.co_filename in files else None

    def step(frame: FrameType, event: str, argument: object) -> Any:
        if event == "opcode" and next(instructions) == at:
            met.append(True)
            call._call(buffers.CANCEL, lambda: None, None, None)
        return step

    def load() -> None:
        sys.settrace(enter)
        try:
            publisher.subscribe(Sink())
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), f"it waits for itself, at instruction {at}"
    return bool(met)


def test_a_collection_while_the_rows_of_an_ended_thread_are_taken_may_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a thread that has no buffer yet: to make one hands over the rows of threads that have ended."""
    chunks: list[Chunk] = []
    recorder = Recorder(sink=chunks.append)
    publisher = recorder.wrap(Flow.range(3))
    thread = threading.Thread(target=lambda: publisher.subscribe(Sink()))
    thread.start()
    thread.join()
    (buffer,) = recorder._buffers
    buffer.thread = -1  # the next thread may get the number of one that has ended
    begin = buffers._begin
    collects = [module._Recorded(recorder, 0)]

    def collected(row: Any) -> int:
        if collects:
            collects.pop()._call(buffers.CANCEL, lambda: None, None, None)
        return begin(row)

    monkeypatch.setattr(buffers, "_begin", collected)
    flushing = threading.Thread(target=recorder.flush, daemon=True)
    flushing.start()
    flushing.join(PATIENCE)
    assert not flushing.is_alive(), "it waits for itself"
    recorder.flush()
    begins = [row[3] for chunk in chunks for row in chunk.rows]
    assert len(begins) == len(set(begins)) == 8


def test_a_row_that_is_added_to_what_was_just_taken_is_not_lost() -> None:
    buffer = held_buffer()
    held = buffer.rows  # as its thread has it in hand, about to append
    first = list(buffer.take()[0])
    held.append((0, 1, None, 5, 6, 0, 0, None, None))
    assert [row[3] for row in first + buffer.take()[0]] == [1, 5]


# -- the sink -----------------------------------------------------------------------------------------------------


def test_what_the_sink_raises_reaches_flush_and_not_the_publisher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 10)
    calls: list[Chunk] = []

    def full(chunk: Chunk) -> None:
        calls.append(chunk)
        raise OSError("full")

    recorder, sink = Recorder(sink=full), Sink()
    recorder.wrap(Flow.range(100)).subscribe(sink)
    assert len(sink.elements) == 100
    assert len(calls) == 1
    with pytest.raises(OSError, match="full"):
        recorder.flush()


def test_no_lock_is_held_while_the_sink_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 10)
    looked: list[int] = []
    recorder = Recorder(sink=lambda _: looked.append(len(recorder.records())))
    recorder.wrap(Flow.range(15)).subscribe(Sink())
    assert looked


def test_what_ended_threads_leave_goes_to_the_sink_when_another_begins(no_thread_left: None) -> None:
    chunks: list[Chunk] = []
    recorder = Recorder(sink=chunks.append)
    publisher = recorder.wrap(Flow.range(10))
    for _ in range(20):
        thread = threading.Thread(target=lambda: publisher.subscribe(Sink()))
        thread.start()
        thread.join(PATIENCE)
    assert sum(len(chunk.rows) for chunk in chunks) == 19 * 14
    recorder.flush()
    assert sum(len(chunk.rows) for chunk in chunks) == 20 * 14


# -- up to where nothing is missing -------------------------------------------------------------------------------


def test_a_checkpoint_at_any_step_of_recording_knows_of_every_ticket_before_it_or_says_nothing() -> None:
    chunks: list[Chunk] = []
    recorder = Recorder(sink=chunks.append)
    plain, looking = recorder._draw, False
    drawn: set[int] = set()
    known, refused = 0, 0

    def look() -> None:
        nonlocal looking, known, refused
        if looking:
            return
        looking = True
        seen = recorder.checkpoint(patience=0)
        looking = False
        if seen is None:
            refused += 1
            return
        known += 1
        rows = [row for chunk in chunks for row in chunk.rows]
        told = {row[3] for row in rows} | {row[4] for row in rows} | {row[3] for _, row in seen.under_way}
        assert {ticket for ticket in drawn if ticket <= seen.ticket} <= told
        assert all(row[4] is None and row[3] <= seen.ticket for _, row in seen.under_way)

    def draw() -> int:
        ticket = plain()
        if not looking:
            drawn.add(ticket)
            look()  # here the ticket is drawn, and nothing says so yet
        return ticket

    recorder._draw = draw
    buffer: Any = recorder._local.buffer
    stepwise(buffer, look)
    recorder.wrap(Flow.range(3)).subscribe(Sink())
    look()
    assert (refused > 10, known) == (True, 1)


def test_a_checkpoint_while_threads_record_has_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 7)
    chunks: list[Chunk] = []
    recorder = Recorder(sink=chunks.append)
    publisher = recorder.wrap(Flow.range(300))
    together = threading.Barrier(5)

    def load() -> None:
        together.wait(PATIENCE)
        for _ in range(10):
            publisher.subscribe(Sink())

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    together.wait(PATIENCE)
    looks = 0
    while any(thread.is_alive() for thread in threads):
        seen = recorder.checkpoint()
        if seen is None:
            continue
        looks += 1
        rows = [row for chunk in list(chunks) for row in chunk.rows]
        tickets = [row[3] for row in rows] + [row[4] for row in rows] + [row[3] for _, row in seen.under_way]
        # Each ticket is drawn once, the looks' own among them; what is missing before this one is one of those.
        missing = seen.ticket - len({ticket for ticket in tickets if ticket <= seen.ticket})
        assert missing == looks
    assert looks > 0
    recorder.flush()


def test_rows_that_can_not_be_packed_are_kept_as_they_are() -> None:
    chunks: list[Chunk] = []
    recorder = Recorder(sink=chunks.append)
    sink = Sink(demand=0)
    recorder.wrap(Flow.just(1, 2**63 - 1, -(2**63), 2**70)).subscribe(sink)
    sink.subscription.request(MAX_DEMAND)
    sink.subscription.request(0)
    recorder.flush()
    packed = [type(row) for chunk in chunks for row in chunk.packed]
    assert packed.count(tuple) == 1  # one has no 64 bits
    rows = [recorder.record_of(chunk.thread, row) for chunk in chunks for row in chunk.rows]
    assert [item.value for item in rows if item.signal == "on_next"] == [1, 2**63 - 1, -(2**63), 2**70]
    assert [item.n for item in rows if item.signal == "request"] == [MAX_DEMAND, 0]


# -- what comes late ----------------------------------------------------------------------------------------------


class Slotted:
    """A subscriber that can't be referred to weakly, and does not keep its subscription."""

    __slots__ = ("heard",)

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_subscribe(self, subscription: Any, /) -> None:
        self.heard.append("on_subscribe")

    def on_next(self, element: Any, /) -> None:
        self.heard.append("on_next")

    def on_error(self, error: BaseException, /) -> None:
        self.heard.append("on_error")

    def on_complete(self) -> None:
        self.heard.append("on_complete")


class Weakly:
    """Refers to its subscriber weakly from the end or a cancel on, where that can be, as the bridge to Java does."""

    def __init__(self) -> None:
        self.of: Callable[[], Any] = lambda: None

    def subscribe(self, subscriber: Any, /) -> None:
        self.of = lambda: subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None: ...

    def cancel(self) -> None:
        self.release()

    def release(self) -> None:
        subscriber = self.of()
        try:
            self.of = weakref.ref(subscriber)
        except TypeError:
            self.of = lambda: None

    def complete(self) -> None:
        subscriber = self.of()
        if subscriber is not None:
            self.release()
            subscriber.on_complete()


@pytest.mark.parametrize("subscriber", [Slotted, lambda: Sink(demand=0)], ids=["slots", "any"])
def test_a_late_end_is_recorded_of_a_publisher_that_refers_to_its_subscriber_weakly(subscriber: Any) -> None:
    recorder, publisher, made = Recorder(), Weakly(), subscriber()
    recorder.wrap(publisher).subscribe(made)
    publisher.complete()
    gc.collect()
    publisher.complete()
    assert [item.rule for item in check(recorder.records())] == ["1.7"]


class Careless(Slotted):
    """Does not keep its subscription, and can be referred to weakly."""


class Dropping(Sink):
    """Keeps its subscription up to the end."""

    def on_complete(self) -> None:
        super().on_complete()
        self.__dict__.pop("subscription", None)


class Cancelling(Sink):
    """Cancels, and drops its subscription."""

    def on_subscribe(self, subscription: Any, /) -> None:
        subscription.cancel()


@pytest.mark.parametrize("kind", [Careless, Dropping])
def test_a_late_end_is_recorded_of_a_subscriber_without_its_subscription(kind: type[Any]) -> None:
    recorder, publisher, subscriber = Recorder(), Weakly(), kind()
    recorder.wrap(recorder.wrap(publisher)).subscribe(subscriber)
    publisher.complete()
    gc.collect()
    publisher.complete()
    assert [(item.rule, item.subscription) for item in check(recorder.records())] == [("1.7", 1), ("1.7", 0)]
    heard = subscriber.heard if kind is Careless else [signal[0] for signal in subscriber.signals]
    assert heard == ["on_subscribe", "on_complete", "on_complete"]


def test_signals_after_a_cancel_are_recorded_of_a_subscriber_without_its_subscription() -> None:
    recorder, publisher, sink = Recorder(), Weakly(), Cancelling()
    recorder.wrap(publisher).subscribe(sink)
    gc.collect()
    publisher.complete()
    assert [item.rule for item in check(recorder.records())] == ["1.8"]


def test_a_subscriber_without_its_subscription_is_collected_when_it_is_settled() -> None:
    recorder, publisher, sink = Recorder(), Weakly(), Cancelling()
    recorder.wrap(publisher).subscribe(sink)
    left = weakref.ref(sink)
    del sink
    gc.collect()
    assert left() is not None
    recorder.settle()
    gc.collect()
    assert left() is None


def test_a_late_end_is_recorded_by_each_of_two_recorders() -> None:
    recorder, publisher, sink = Recorder(), Weakly(), Sink(demand=0)
    recorder.wrap(recorder.wrap(publisher)).subscribe(sink)
    publisher.complete()
    gc.collect()
    publisher.complete()
    assert [(item.rule, item.subscription) for item in check(recorder.records())] == [("1.7", 1), ("1.7", 0)]


def test_of_subscribers_that_are_kept_for_late_signals_there_are_so_many_and_none_that_is_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "KEPT", 3)
    recorder, sources = Recorder(), [Weakly() for _ in range(5)]
    for source in sources:
        recorder.wrap(source).subscribe(Slotted())
        source.complete()
    assert [source.of() is not None for source in sources] == [False, False, True, True, True]
    recorder.settle([2, 4])
    assert [source.of() is not None for source in sources] == [False, False, False, True, False]
    recorder.settle()
    assert [source.of() for source in sources] == [None] * 5


def test_a_subscriber_that_can_be_referred_to_weakly_is_collected_when_its_publisher_releases_it() -> None:
    recorder, source, sink = Recorder(), Weakly(), Sink(demand=0)
    recorder.wrap(source).subscribe(sink)
    sink.subscription.cancel()
    left = weakref.ref(sink)
    del sink
    gc.collect()
    assert left() is None


# -- in the middle of a run ---------------------------------------------------------------------------------------


def test_depth_counts_the_calls_of_one_subscription() -> None:
    recorder, sink = Recorder(), Sink(demand=1, then=lambda sink, _: sink.subscription.request(1))
    flow: Any = Flow.range(3)
    for _ in range(9):
        flow = Flow.from_publisher(recorder.wrap(flow))
    flow.subscribe(sink)
    records = recorder.records()
    assert sink.elements == [0, 1, 2]
    assert check(records) == []
    assert max(item.depth or 0 for item in records) < 16


def test_recursion_of_one_subscription_is_still_found_however_many_others_are_between() -> None:
    class Recursive:
        """Signals from inside `request`, as often as it is asked."""

        def subscribe(self, subscriber: Any, /) -> None:
            self.subscriber = subscriber
            subscriber.on_subscribe(self)

        def request(self, n: int, /) -> None:
            self.subscriber.on_next(0)

        def cancel(self) -> None: ...

    def again(sink: Sink, _: Any) -> None:
        if len(sink.elements) < 9:
            sink.subscription.request(1)

    recorder = Recorder()
    recorder.wrap(recorder.wrap(Recursive())).subscribe(Sink(demand=1, then=again))
    found = {(item.rule, item.subscription) for item in check(recorder.records())}
    assert {("3.3", 0), ("3.3", 1)} <= found


def test_a_request_under_way_is_not_accused_of_never_returning_until_it_is_settled() -> None:
    recorder = Recorder()
    looks: list[list[Any]] = []

    class Looking:
        """Looks at the records while a request from inside `on_next` is under way."""

        def subscribe(self, subscriber: Any, /) -> None:
            self.subscriber, self.asked = subscriber, 0
            subscriber.on_subscribe(self)
            subscriber.on_next(0)

        def request(self, n: int, /) -> None:
            self.asked += 1
            if self.asked == 2:
                looks.append(check(recorder.records()))
                recorder.settle()
                looks.append(check(recorder.records()))

        def cancel(self) -> None: ...

    recorder.wrap(Looking(), elements=1).subscribe(Sink(demand=1, then=lambda sink, _: sink.subscription.request(1)))
    first, settled = looks
    assert first == []
    assert "3.2" in {item.rule for item in settled}


def test_a_look_while_threads_record_has_no_element_without_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread requests, another signals; both go on after the one and before the other is looked at."""
    recorder = Recorder()

    class Split:
        def subscribe(self, subscriber: Any, /) -> None:
            self.subscriber = subscriber
            subscriber.on_subscribe(self)

        def request(self, n: int, /) -> None: ...

        def cancel(self) -> None: ...

    publisher, sink = Split(), Sink(demand=0)
    with ThreadPoolExecutor(1) as requests, ThreadPoolExecutor(1) as signals:
        recorder.wrap(publisher).subscribe(sink)

        def one() -> None:
            requests.submit(sink.subscription.request, 1).result(PATIENCE)
            signals.submit(publisher.subscriber.on_next, 0).result(PATIENCE)

        one()
        hand_over = recorder._hand_over

        def looked_at(buffer: Any, final: bool = False) -> Any:
            found = hand_over(buffer, final)
            one()
            return found

        monkeypatch.setattr(recorder, "_hand_over", looked_at)
        records = recorder.records()
        monkeypatch.undo()
        assert check(records) == []
        assert len(sink.elements) == 4
        assert check(recorder.records()) == []
        assert len(recorder.records()) == 2 + 8


@pytest.mark.parametrize(
    "elements", [[0.1, 0.2, 0.3, 1.5, 2.0], ["a", "b", "c", "d"], [(1,), (2,), (3,)], [1, 1.5, 2, [], []]], ids=str
)
def test_what_is_no_int_is_not_compared(elements: list[Any]) -> None:
    for some in (elements, elements[::-1]):  # in one of the two the hashes come down
        found = check(
            recorded(Flow.from_iterable(item for item in some if type(item) is not int), Sink(), ascending=True)
        )
        assert found == []
    assert check(recorded(Flow.from_iterable(elements), Sink(), ascending=True)) == []
    assert [item.rule for item in check(recorded(Flow.just(3, "x", 2), Sink(), ascending=True))] == ["order"]


def test_order_is_by_value_beyond_64_bits() -> None:
    large = [2**61 - 2, 2**61, 2**63 - 1, 2**63, 2**64, 2**70, 10**30]
    assert sorted(large, key=hash) != large
    assert check(recorded(Flow.from_iterable(large), Sink(), ascending=True)) == []
    found = check(recorded(Flow.just(2**63, 2**63 + 1, 2**63), Sink(), ascending=True))
    assert [item.rule for item in found] == ["order"]
    found = check(recorded(Flow.just(2**70, 2**70), Sink(), ascending=True))
    assert [item.rule for item in found] == ["conservation"]


def test_a_look_at_a_thread_that_stays_in_the_middle_of_a_row_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONG", 0.01)
    recorder = Recorder()
    held = Held(recorder)
    buffer = recorder._buffers[-1]
    buffer.drawing = True
    with pytest.raises(ReactiveError, match=rf"records: thread {buffer.thread} was in the middle of a row for 0.01 s"):
        recorder.records()
    buffer.drawing = False
    held.release()
    assert len(recorder.records()) == 5


@pytest.mark.parametrize("numbers", [[99], [-1], [0, 1], ["0"]])
def test_only_a_subscription_that_there_is_can_be_settled(numbers: list[Any]) -> None:
    recorder = Recorder()
    recorder.wrap(Flow.just(1)).subscribe(Sink())
    before = recorder.records()
    with pytest.raises(ValueError, match=r"settle: .* is no subscription: there are 1, numbered from 0"):
        recorder.settle(numbers)
    assert recorder.records() == before
