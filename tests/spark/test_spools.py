"""What waits between the tasks of partitions and a flow: each batch once, in order, whatever attempts Spark makes."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sinks import PATIENCE, until

from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import SparkError
from reactive_runtime.spark._read import listener as module
from reactive_runtime.spark._read import spools
from reactive_runtime.spark._read.listener import Listener
from reactive_runtime.spark._read.spools import Spool


def sum_of(batch: bytes) -> int:
    return zlib.crc32(batch) << 32 | zlib.adler32(batch)


def put(spool: Spool, *batches: bytes, whole: bool = True) -> None:
    """One attempt."""
    attempt = spool.begin()
    for batch in batches:
        spool.put(attempt, sum_of(batch), batch)
    if whole:
        spool.whole(attempt)


def take(spool: Spool, count: int) -> list[bytes]:
    found = []
    for _ in range(count):
        batch = spool.take()
        assert batch is not None
        found.append(bytes(batch))
    return found


def rest(spool: Spool) -> list[bytes]:
    found = []
    while (batch := spool.take()) is not None:
        found.append(bytes(batch))
    return found


@pytest.fixture
def spool() -> Iterator[Spool]:
    made = Spool("from_dataframe", 3)
    yield made
    made.close()


@pytest.mark.parametrize("in_memory", [0, 5, 1 << 20], ids=["file", "both", "memory"])
def test_batches_come_in_order_from_memory_and_file(
    in_memory: int, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spools, "IN_MEMORY", in_memory)
    batches = [b"one", b"two", b"three", b"four"]
    attempt = spool.begin()
    for place, batch in enumerate(batches):
        spool.put(attempt, sum_of(batch), batch)
        if place == 1:
            assert take(spool, 1) == [b"one"]
    spool.whole(attempt)
    spool.done()
    assert rest(spool) == batches[1:]
    assert spool.bytes == sum(map(len, batches))


def test_a_second_attempt_goes_on_where_the_first_was_lost(spool: Spool) -> None:
    put(spool, b"a", b"b", whole=False)
    assert take(spool, 1) == [b"a"]
    put(spool, b"a", b"b", b"c")
    spool.done()
    assert rest(spool) == [b"b", b"c"]


def test_what_was_not_taken_of_a_lost_attempt_is_replaced(spool: Spool) -> None:
    put(spool, b"a", b"b", b"c", whole=False)
    assert take(spool, 1) == [b"a"]
    put(spool, b"a", b"x")
    spool.done()
    assert rest(spool) == [b"x"]


@pytest.mark.parametrize("second", [[b"x", b"b"], [b"a", b"x"], [b"a"], []], ids=["first", "later", "fewer", "none"])
def test_an_attempt_without_what_was_taken_of_another_fails_the_partition(second: list[bytes], spool: Spool) -> None:
    put(spool, b"a", b"b", whole=False)
    assert take(spool, 2) == [b"a", b"b"]
    put(spool, *second)
    spool.done()
    words = "^from_dataframe: partition 3: its task was lost, and had other rows when it ran again, .*: sort the rows"
    with pytest.raises(SparkError, match=words):
        spool.take()


def test_what_an_attempt_sends_after_another_has_begun_is_dropped(spool: Spool) -> None:
    late = spool.begin()
    spool.put(late, sum_of(b"a"), b"a")
    put(spool, b"a", b"b", whole=False)
    assert not spool.put(late, sum_of(b"late"), b"late")
    spool.whole(late)
    spool.done()
    assert take(spool, 2) == [b"a", b"b"]
    with pytest.raises(SparkError, match=r"^from_dataframe: partition 3: it was computed, and not all of it has come$"):
        spool.take()


def test_an_error_comes_after_the_batches_that_are_there(spool: Spool) -> None:
    put(spool, b"a", whole=False)
    spool.fail(SparkError("out of luck"))
    assert take(spool, 1) == [b"a"]
    with pytest.raises(SparkError, match="out of luck"):
        spool.take()


def test_a_close_ends_the_wait_for_a_batch(spool: Spool) -> None:
    found: list[object] = []
    waits = threading.Thread(target=lambda: found.append(spool.take()))
    waits.start()
    spool.close()
    waits.join(PATIENCE)
    assert found == [None]
    attempt = spool.begin()
    assert not spool.put(attempt, sum_of(b"a"), b"a")


few = st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=4)


@settings(max_examples=300)
@given(st.lists(st.tuples(few, st.integers(0, 4)), max_size=3), few, st.booleans())
def test_what_is_taken_is_what_the_last_attempt_has_or_an_error(
    lost: list[tuple[list[bytes], int]], last: list[bytes], small: bool
) -> None:
    """Attempts that are lost, some of the batches of each taken, then one that Spark says is the one."""
    spool = Spool("from_dataframe", 0)
    taken: list[bytes] = []
    differs = False  # whether an attempt had other batches than those that were taken of others
    try:
        for batches, count in lost:
            differs |= any(one != other for one, other in zip(batches, taken, strict=False))
            put(spool, *batches, whole=False)
            with contextlib.suppress(SparkError):
                taken += take(spool, min(count, len(spool._waiting)))
        differs |= last[: len(taken)] != taken
        if small:
            spool.returned(last)
        else:
            put(spool, *last)
            spool.done()
        if differs:
            with pytest.raises(SparkError, match="had other rows when it ran again"):
                rest(spool)
        else:
            assert taken + rest(spool) == last
    finally:
        spool.close()


_opened: list[socket.socket] = []


class Task:
    """What the task of a partition does, by hand."""

    def __init__(self, listener: Listener, partition: int, secret: str | None = None) -> None:
        self.socket = socket.create_connection(("127.0.0.1", listener.port), PATIENCE)
        _opened.append(self.socket)
        self.socket.sendall((secret or listener.secret).encode() + struct.pack(">i", partition))

    def send(self, *batches: bytes) -> None:
        for batch in batches:
            self.socket.sendall(struct.pack(">iq", len(batch), struct.unpack(">q", sum_of(batch).to_bytes(8))[0]))
            self.socket.sendall(batch)

    def end(self) -> bytes:
        self.socket.sendall(struct.pack(">iq", -1, 0))
        return self.answer()

    def answer(self) -> bytes:
        """The one byte; nothing where it was cut off."""
        try:
            return self.socket.recv(1)
        except ConnectionResetError:
            return b""


@pytest.fixture
def listener() -> Iterator[Listener]:
    before = set(threading.enumerate())
    made = Listener("from_dataframe", "127.0.0.1")
    yield made
    made.close()
    while _opened:
        _opened.pop().close()
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE)
        assert not thread.is_alive(), thread


def test_batches_of_several_partitions_go_to_their_spools(listener: Listener) -> None:
    one, two = Spool("", 1), Spool("", 2)
    listener.expect(1, one)
    listener.expect(2, two)
    first, second = Task(listener, 1), Task(listener, 2)
    second.send(b"x")
    first.send(b"a", b"b" * 100_000)
    assert first.end() == second.end() == b"\1"
    for spool in (one, two):
        spool.done()
    assert (rest(one), rest(two)) == ([b"a", b"b" * 100_000], [b"x"])


def test_a_connection_without_the_secret_is_cut_off(listener: Listener) -> None:
    spool = Spool("", 1)
    listener.expect(1, spool)
    assert Task(listener, 1, secret="0" * 32).answer() == b""
    spool.fail(SparkError("nothing came"))
    with pytest.raises(SparkError, match="nothing came"):
        spool.take()


def test_a_second_attempt_cuts_off_the_first(listener: Listener) -> None:
    spool = Spool("", 1)
    listener.expect(1, spool)
    first = Task(listener, 1)
    first.send(b"a")
    assert take(spool, 1) == [b"a"]
    second = Task(listener, 1)
    assert first.answer() == b""
    second.send(b"a", b"b")
    assert second.end() == b"\1"
    spool.done()
    assert rest(spool) == [b"b"]


@pytest.mark.parametrize("at", ["_hello", "_fill"])
def test_what_a_task_has_sent_before_it_was_lost_is_received_before_its_partition_is_settled(
    at: str, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The threads of the listener are held where they receive, as on a busy machine."""
    spool, free, order = Spool("", 1), threading.Event(), list[str]()
    of: Any = Listener if at == "_hello" else module
    held = getattr(of, at)

    def waits(*arguments: Any) -> Any:
        if threading.current_thread() is first[0]:
            free.wait(PATIENCE)
        return held(*arguments)

    first: list[threading.Thread] = []

    def begins(*arguments: Any, **named: Any) -> threading.Thread:
        first.append(threading.Thread(*arguments, **named))
        return first[-1]

    monkeypatch.setattr(of, at, waits)
    monkeypatch.setattr(primitives, "Thread", begins)
    listener.expect(1, spool)
    task = Task(listener, 1)
    task.send(b"a", b"b")
    task.socket.close()  # as a task that has failed

    def settle() -> None:
        listener.settle(1)
        order.append(f"settled, {len(spool._waiting)} there")

    settles = threading.Thread(target=settle)
    settles.start()
    settles.join(0.1)  # one that did not wait would be over by now
    free.set()
    settles.join(PATIENCE)
    assert order == ["settled, 2 there"]


def test_a_thread_that_can_not_be_had_cuts_its_task_off_and_the_next_is_received(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool, refused = Spool("", 1), threading.Event()
    listener.expect(1, spool)

    class NoThread:
        def __init__(self, **_: Any) -> None: ...

        def start(self) -> None:
            monkeypatch.undo()
            refused.set()
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(primitives, "Thread", NoThread)
    assert Task(listener, 1).answer() == b""
    assert refused.is_set()
    again = Task(listener, 1)
    again.send(b"a")
    assert again.end() == b"\1"
    listener.settle(1)
    spool.done()
    assert rest(spool) == [b"a"]


def test_stop_answers_tasks_at_once_and_drops_what_they_send(listener: Listener) -> None:
    spool = Spool("", 1)
    listener.expect(1, spool)
    runs = Task(listener, 1)
    runs.send(b"a")
    assert take(spool, 1) == [b"a"]
    listener.stop()
    assert runs.answer() == b"\1"
    runs.send(b"b")
    late = Task(listener, 2)
    assert late.answer() == b"\1"
    assert not spool._waiting


def test_a_partition_that_no_job_fetches_is_cut_off(listener: Listener) -> None:
    listener.expect(1, Spool("", 1))
    listener.forget(1)
    assert Task(listener, 1).answer() == b""


def test_close_ends_what_is_received(listener: Listener) -> None:
    spool = Spool("", 1)
    listener.expect(1, spool)
    task = Task(listener, 1)
    task.send(b"a")
    assert take(spool, 1) == [b"a"]
    listener.close()
    assert task.answer() == b""
    until(lambda: not any(thread.name.startswith("from_dataframe: ") for thread in threading.enumerate()))


def test_a_file_that_can_not_be_written_fails_the_partition(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spools, "IN_MEMORY", 0)
    spool = Spool("", 1)

    def full(batch: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spool, "_write", full)
    listener.expect(1, spool)
    Task(listener, 1).send(b"a")
    words = "^from_dataframe: partition 1: what is not taken yet can't be kept in a file: .*No space .*set TMPDIR$"
    with pytest.raises(SparkError, match=words):
        spool.take()
