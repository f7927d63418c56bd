"""`from_queue`: which elements it gets, how it ends, and what becomes of an element that comes too late."""

from __future__ import annotations

import multiprocessing
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from declared.values import queue_with
from sinks import PATIENCE, Sink

from reactive_runtime import Flow, hooks
from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import RejectedError


class Held:
    """A queue whose `get` has an element when the test says so."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.gate = threading.Event()

    def get(self, block: bool, timeout: float) -> int:
        self.entered.set()
        assert self.gate.wait(PATIENCE)
        return 7


class Counted(queue.Queue[Any]):
    """A queue that counts the calls of `get`."""

    gets = 0

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        self.gets += 1
        return super().get(block, timeout)


class Raising:
    """A queue that raises."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def get(self, block: bool, timeout: float) -> int:
        raise self.error


def test_a_cancel_waits_for_no_get_and_the_hook_gets_its_element() -> None:
    held, discarded, sink = Held(), list[int](), Sink()
    with hooks.captured() as drops, ThreadPoolExecutor(1) as pool:
        Flow.from_queue(held).subscribe_on(pool).do_on_discard(discarded.append).subscribe(sink)
        assert held.entered.wait(PATIENCE)
        sink.subscription.cancel()  # returns, although `get` has not returned
        held.gate.set()
    assert sink.elements == []
    assert [drop.element for drop in drops] == discarded == [7]


def test_a_cancel_gives_the_thread_of_an_empty_queue_back() -> None:
    sink = Sink()
    with ThreadPoolExecutor(1) as pool:
        Flow.from_queue(queue.Queue[int]()).subscribe_on(pool).subscribe(sink)
        sink.subscription.cancel()
    assert sink.end is None


def test_tasks_of_the_pool_have_their_turn_while_the_queue_is_empty() -> None:
    empty, sink = Counted(), Sink()
    with ThreadPoolExecutor(1) as pool:
        Flow.from_queue(empty).subscribe_on(pool).subscribe(sink)
        pool.submit(empty.put, 1).result(PATIENCE)
        pool.submit(empty.put, None).result(PATIENCE)
        sink.wait()
    assert sink.elements == [1]


def test_a_pool_that_shuts_down_ends_the_flow() -> None:
    sink = Sink()
    with ThreadPoolExecutor(1) as pool:
        Flow.from_queue(queue.Queue[int]()).subscribe_on(pool).subscribe(sink)
    assert isinstance(sink.wait().error, RejectedError)


def test_an_empty_queue_lets_another_have_the_thread() -> None:
    first: queue.Queue[Any] = queue.Queue()
    second = Flow.from_queue(queue_with(1, None)).do_on_next(lambda n: first.put(None))
    assert list(Flow.merge(Flow.from_queue(first), second)) == [1]


def test_each_get_answers_a_demand() -> None:
    given, sink = Counted(), Sink(2)
    for n in range(5):
        given.put(n)
    Flow.from_queue(given).subscribe(sink)
    assert (sink.elements, given.gets) == ([0, 1], 2)
    sink.subscription.request(1)
    assert (sink.elements, given.gets) == ([0, 1, 2], 3)
    sink.subscription.cancel()
    assert list(Flow.from_queue(given).take(1)) == [3]
    assert given.get_nowait() == 4


def test_one_end_ends_one_subscription() -> None:
    given = queue_with(1, None, 2, None)
    flow = Flow.from_queue(given)
    assert (list(flow), list(flow)) == ([1], [2])


def test_the_end_may_be_a_copy_out_of_another_process() -> None:
    given = multiprocessing.get_context("spawn").Queue()
    for element in (1, ("over",)):
        given.put(element)
    assert list(Flow.from_queue(given, end=("over",))) == [1]
    given.close()
    given.join_thread()


def test_only_objects_of_its_type_are_compared_with_the_end() -> None:
    class Array:
        def __eq__(self, other: object) -> bool:
            raise ValueError("ambiguous")

        __hash__ = None  # type: ignore[assignment]

    array = Array()
    assert next(iter(Flow.from_queue(queue_with(array, "over"), end="over"))) is array
    assert list(Flow.from_queue(queue_with(1, array), end=array)) == [1]
    with pytest.raises(ValueError, match="ambiguous"):
        list(Flow.from_queue(queue_with(Array()), end=array))


def test_a_queue_that_is_shut_down_completes_the_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    given = queue_with(1)
    shutdown: Any = getattr(given, "shutdown", None)
    if shutdown is not None:  # Python 3.13
        shutdown()
        assert list(Flow.from_queue(given)) == [1]
    monkeypatch.setattr(primitives, "SHUT_DOWN", (ConnectionError,))
    assert list(Flow.from_queue(Raising(ConnectionError()))) == []


def test_an_error_of_get_fails_the_flow_and_names_it() -> None:
    with pytest.raises(OSError, match="closed") as raised:
        Flow.from_queue(Raising(OSError("closed"))).block()
    assert any(note.startswith("in from_queue(Raising), ") for note in raised.value.__notes__)


def test_none_is_no_element_where_the_end_is_another() -> None:
    with pytest.raises(TypeError, match=r"from_queue\(Queue\).*2\.13"):
        Flow.from_queue(queue_with(None), end="over").block()
