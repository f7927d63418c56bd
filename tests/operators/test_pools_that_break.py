"""A pool whose worker dies, or whose initializer fails, ends every flow that has tasks on it."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sinks import PATIENCE, Sink, wait_until

from reactive_runtime import Flow
from reactive_runtime.hooks import Dropped

WAITING = 8
"""Tasks of each flow: more than the pool has handed to its workers."""


def die_when(fifo: str, n: int) -> int:
    """End the worker when the test opens the other end."""
    with Path(fifo).open("rb"):
        os._exit(n + 1)


class Pool:
    """One worker, which breaks when the test says so."""

    def __init__(self, executor: Executor, fn: Callable[[int], int], let_it_break: Callable[[], None]) -> None:
        self.executor = executor
        self.fn = fn
        self.let_it_break = let_it_break


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Pool]:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with ProcessPoolExecutor(1) as executor:
        yield Pool(executor, partial(die_when, str(fifo)), lambda: fifo.open("wb").close())


@pytest.fixture
def threads() -> Iterator[Pool]:
    gate = threading.Event()

    def fail() -> None:
        gate.wait(PATIENCE)
        raise OSError("no licence")

    with ThreadPoolExecutor(1, initializer=fail) as executor:
        yield Pool(executor, abs, gate.set)
        gate.set()


@pytest.fixture(params=["processes", "threads"])
def broken(request: pytest.FixtureRequest) -> Pool:
    pool: Pool = request.getfixturevalue(request.param)
    return pool


def calls(pool: Pool, **options: Any) -> Flow[int]:
    return Flow.range(WAITING).map_parallel(pool.fn, pool.executor, concurrency=WAITING, **options)


@pytest.mark.parametrize("ordered", [True, False])
def test_a_pool_that_breaks_ends_all_flows_on_it(broken: Pool, ordered: bool, dropped: list[Dropped]) -> None:
    sinks = [Sink(), Sink(), Sink()]
    for sink in sinks:
        calls(broken, ordered=ordered).subscribe(sink)
    broken.let_it_break()
    assert [isinstance(sink.wait().error, BrokenExecutor) for sink in sinks] == [True] * 3


def test_tasks_of_a_cancelled_flow_do_not_keep_other_flows(broken: Pool, dropped: list[Dropped]) -> None:
    cancelled, other = Sink(), Sink()
    calls(broken).subscribe(cancelled)
    calls(broken).subscribe(other)
    cancelled.subscription.cancel()
    broken.let_it_break()
    assert isinstance(other.wait().error, BrokenExecutor)


def test_a_broken_pool_discards_elements_and_reports_once(broken: Pool, dropped: list[Dropped]) -> None:
    sink = Sink()
    discarded: list[int] = []
    calls(broken, chunk=2).do_on_discard(discarded.append).subscribe(sink)
    broken.let_it_break()
    assert isinstance(sink.wait().error, BrokenExecutor)
    wait_until(lambda: len(discarded) == WAITING)
    assert sorted(discarded) == list(range(WAITING))
    assert [signal for signal in dropped if signal.error is not None] == []


def test_no_call_begins_on_a_pool_that_is_breaking(broken: Pool, dropped: list[Dropped]) -> None:
    sink = Sink()
    Flow.range(WAITING).map_parallel(broken.fn, broken.executor, concurrency=2 * WAITING).concat_with(
        Flow.never()
    ).subscribe(sink)
    broken.let_it_break()
    assert isinstance(sink.wait().error, BrokenExecutor)


def test_single_tasks_of_a_pool_that_breaks_all_end(threads: Pool, dropped: list[Dropped]) -> None:
    sinks = [Sink(), Sink()]
    for sink in sinks:
        single = Flow.from_callable(lambda: 1).subscribe_on(threads.executor)
        Flow.range(WAITING).flat_map(lambda _: single).subscribe(sink)  # noqa: B023
    threads.let_it_break()
    assert [isinstance(sink.wait().error, BrokenExecutor) for sink in sinks] == [True] * 2


def test_calls_of_a_cancelled_flow_are_not_made_later(dropped: list[Dropped]) -> None:
    began, gate = threading.Event(), threading.Event()
    made: list[int] = []
    discarded: list[int] = []

    def call(n: int) -> int:
        made.append(n)
        began.set()
        gate.wait(PATIENCE)
        return n

    with ThreadPoolExecutor(1, initializer=lambda: None) as pool:
        sink = Sink()
        Flow.range(4).map_parallel(call, pool).do_on_discard(discarded.append).subscribe(sink)
        assert began.wait(PATIENCE)
        sink.subscription.cancel()
        gate.set()
    assert made == [0]
    assert sorted(discarded) == [0, 1, 2, 3]


class Delegating(Executor):
    """Hands its tasks over to processes, and does not look like it."""

    def __init__(self, processes: Executor) -> None:
        self.processes = processes

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self.processes.submit(fn, *args, **kwargs)


class TwoPartError(Exception):
    """Pickled, it can't be made again: it has one argument then."""

    def __init__(self, left: int, right: int) -> None:
        super().__init__(f"{left} and {right}")


def raise_at_two(n: int) -> int:
    if n == 2:
        raise TwoPartError(3, 4)
    return n


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_an_error_that_cannot_travel_leaves_the_processes_alive(chunk: int) -> None:
    with ProcessPoolExecutor(1) as processes:
        for _ in range(2):  # the pool goes on
            failed = pytest.raises(RuntimeError, match=r"^TwoPartError: .*3 and 4.* in a worker; it can't be pickled")
            with failed as raised:
                Flow.range(4).map_parallel(raise_at_two, processes, chunk=chunk).to_list().block()
        assert "__reduce__" in str(raised.value)
        assert Flow.range(2).map_parallel(raise_at_two, processes).to_list().block() == [0, 1]


@pytest.mark.parametrize("chunk", [1, 2])
def test_an_executor_over_processes_is_named_and_what_to_do(chunk: int) -> None:
    with ProcessPoolExecutor(1) as processes, pytest.raises(TypeError, match="cannot pickle") as raised:
        Flow.range(chunk).map_parallel(abs, Delegating(processes), chunk=chunk).block()
    notes = " ".join(raised.value.__notes__)
    assert "Delegating did not call abs on a thread of this process" in notes
    assert "give map_parallel their pool itself" in notes
    assert "map_parallel(abs, 16)" in notes


def test_the_error_of_a_function_has_no_such_note() -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(TypeError) as raised:
        Flow.just(1).map_parallel(len, pool).block()  # type: ignore[arg-type]
    assert "did not call" not in " ".join(raised.value.__notes__)


def unpicklable_at_two(n: int) -> object:
    return (lambda: n) if n == 2 else n


@pytest.mark.parametrize("what", ["an element", "a result"])
def test_a_chunk_that_cannot_be_pickled_is_discarded_whole(what: str) -> None:
    elements: list[object] = [0, 1, threading.Lock(), 3] if what == "an element" else [0, 1, 2, 3]
    fn: Any = unpicklable_at_two if what == "a result" else same
    discarded: list[object] = []
    with ProcessPoolExecutor(1) as processes, pytest.raises(Exception, match=r"pickle|local object") as raised:
        Flow.from_iterable(elements).map_parallel(fn, processes, chunk=4).do_on_discard(discarded.append).block()
    assert discarded == elements
    assert "for a chunk of 4 elements, or for their results" in raised.value.__notes__


def same(element: object) -> object:
    return element


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    number: int


def with_notes(notes: object) -> Exception:
    error = ValueError("bad row")
    error.__notes__ = notes  # type: ignore[assignment]
    return error


class RaisesNotesError(ValueError):
    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        raise OSError("no notes")


ODD: dict[str, Callable[[], Exception]] = {
    "no notes": lambda: with_notes(None),
    "a number": lambda: with_notes([5]),
    "a property": lambda: RaisesNotesError("bad row"),
    "frozen": lambda: FrozenError(2),
}


async def in_a_coroutine(fn: Callable[[int], int], n: int) -> int:
    return fn(n)


@pytest.mark.parametrize("way", ["map", "coroutine", "chunks of 1", "chunks of 3", "a boundary", "again"])
@pytest.mark.parametrize("odd", ODD)
def test_an_error_that_takes_no_notes_comes_out_as_it_is(odd: str, way: str) -> None:
    def fn(n: int) -> int:
        if n == 2:
            raise ODD[odd]()
        return n

    got: list[int] = []
    with ThreadPoolExecutor(2) as pool:
        source = Flow.range(5)
        flow = {
            "map": source.map(fn),
            "coroutine": source.flat_map(partial(in_a_coroutine, fn), concurrency=1),
            "chunks of 1": source.map_parallel(fn, pool),
            "chunks of 3": source.map_parallel(fn, pool, chunk=3),
            "a boundary": source.map(fn).publish_on(pool),
            "again": source.map(fn).retry(1),
        }[way]
        with pytest.raises((ValueError, FrozenError)) as raised:
            flow.do_on_next(got.append).to_list().block(timeout=PATIENCE)
    assert type(raised.value) is type(ODD[odd]())
    assert got[:2] == [0, 1]
