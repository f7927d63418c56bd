"""A loop over a flow ends in time, and gets the elements of others, though a source on its thread never rests.

The source looks into an empty queue, or drops whatever it has; the clock is moved on another thread. The flow ends in
the same way however it is read.
"""

from __future__ import annotations

import asyncio
import itertools
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing
from typing import Any

import pytest
from searching import one_pair_each_by_day
from sinks import PATIENCE

from operators.test_elsewhere import ENDING, KEEPING, Foreign, Held, move_until, tick, words
from reactive_runtime import Flow, hooks
from reactive_runtime.executors import VirtualTimeExecutor


class Restless(Held):
    """Its code ends the source when it is released, so that no test leaves a thread that works for ever."""

    def loops(self) -> None:
        super().loops()
        if self.release.is_set():
            raise SystemError("the source was to be cancelled")

    def get(self, block: bool, timeout: float) -> int:
        """For `from_queue`: a queue that is empty."""
        self.loops()
        raise queue.Empty


RESTLESS: dict[str, Callable[[Restless], Flow[Any]]] = {
    **{name: source for name, source in KEEPING.items() if "waits" not in name},
    "an empty queue": Flow.from_queue,
    "an empty queue behind a step": lambda held: Flow.from_queue(held).map(str),
    "an endless repeat of an empty flow": lambda held: Flow.empty().do_on_complete(held.loops).repeat(),
    "a defer to an endless repeat": lambda held: Flow.defer(lambda: nothing_again(held)),
    "an empty queue behind share": lambda held: Flow.from_queue(held).share(),
    "an empty queue, dealt out": lambda held: Flow.from_queue(held).balance(1)[0],
    "an empty queue behind another publisher": lambda held: Flow.from_publisher(Foreign(Flow.from_queue(held))),
    "two empty queues": lambda held: Flow.merge(Flow.from_queue(held), Flow.from_queue(held)),
}


def nothing_again(held: Restless) -> Flow[Any]:
    return Flow.range(1).filter(held.spin).repeat()


MORE_ENDING: dict[str, Callable[[Flow[Any], VirtualTimeExecutor], Flow[Any]]] = {
    **ENDING,
    "deadline": lambda flow, clock: flow.deadline(1, clock=clock),
    "take_until of an inner flow": lambda flow, clock: Flow.just(1).concat_map(lambda n: flow.take_until(tick(clock))),
    "another source of three": lambda flow, clock: Flow.merge(flow, Flow.interval(1, clock=clock)).take(3),
    "what comes after a timeout": lambda flow, clock: Flow.concat(
        flow.timeout(1, clock=clock).on_error_return(lambda error: -1), Flow.range(3)
    ),
}


def looked_at(flow: Flow[Any]) -> list[Any]:
    """With a time limit for each look, which is over at once."""
    got: list[Any] = []
    with closing(flow.iterate()) as elements:
        while True:
            try:
                got.append(elements.next(timeout=0))
            except TimeoutError as error:
                if "The flow goes on" not in str(error):
                    raise
            except StopIteration:
                return got


async def awaited(flow: Flow[Any]) -> list[Any]:
    async with aclosing(flow.iterate_async(prefetch=1)) as elements:
        return [element async for element in elements]


async def awaited_in_moments(flow: Flow[Any]) -> list[Any]:
    """Each wait is cancelled at once: the event loop has to get its turn."""
    got: list[Any] = []
    async with aclosing(flow.iterate_async()) as elements:
        while True:
            task = asyncio.ensure_future(elements.__anext__())
            for _ in range(3):
                await asyncio.sleep(0)
            task.cancel()
            try:
                got.append(await task)
            except asyncio.CancelledError:
                pass
            except StopAsyncIteration:
                return got


def in_a_loop_of_a_step(flow: Flow[Any]) -> list[Any]:
    """A loop within another flow, which runs on the same thread."""
    got: list[Any] = []
    Flow.just(1).map(lambda n: list(flow)).for_each(got.extend)
    return got


def for_each(flow: Flow[Any]) -> list[Any]:
    got: list[Any] = []
    flow.for_each(got.append)
    return got


READING: dict[str, Callable[[Flow[Any]], list[Any]]] = {
    "for": list,
    "iterate(prefetch=1)": lambda flow: list(flow.iterate(prefetch=1)),
    "next(timeout=0)": looked_at,
    "async for": lambda flow: asyncio.run(awaited(flow)),
    "async for, in moments": lambda flow: asyncio.run(awaited_in_moments(flow)),
    "a loop of a step": in_a_loop_of_a_step,
    "block": lambda flow: flow.to_list().block() or [],
    "for_each": for_each,
}


class Reading:
    """Reads on a thread of its own."""

    def __init__(self, read: Callable[[Flow[Any]], list[Any]], flow: Flow[Any]) -> None:
        self.elements: list[Any] | None = None
        self.error = ""
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(read, flow), daemon=True)
        self.thread.start()

    def run(self, read: Callable[[Flow[Any]], list[Any]], flow: Flow[Any]) -> None:
        try:
            self.elements = read(flow)
        except Exception as error:
            self.error = type(error).__name__
        finally:
            self.ended.set()

    def outcome(self) -> tuple[list[Any] | None, str]:
        assert self.ended.wait(PATIENCE)
        return self.elements, self.error


def outcome(read: str, ending: str, restless: str) -> tuple[list[Any] | None, str]:
    held, clock = Restless(), VirtualTimeExecutor(timeout=0)
    with hooks.captured():
        reading = Reading(READING[read], MORE_ENDING[ending](RESTLESS[restless](held), clock))
        try:
            assert held.inside.wait(PATIENCE)
            move_until(reading.ended, clock)
            return reading.outcome()
        finally:
            held.release.set()
            reading.thread.join(PATIENCE)


RESULTS: dict[str, tuple[list[Any] | None, str]] = {
    "timeout": (None, "TimeoutError"),
    "timeout with a fallback": ([7], ""),
    "timeout of a timeout": (None, "TimeoutError"),
    "take_until": ([], ""),
    "kill_switch": ([], ""),
    "race": ([0], ""),
    "merge": ([0], ""),
    "merge of what fails": (None, "ZeroDivisionError"),
    "zip": ([], ""),
    "combine_latest": ([], ""),
    "with_latest_from": (None, "ZeroDivisionError"),
    "sample": ([], ""),
    "flat_map": ([0], ""),
    "buffer_timeout, behind": ([], ""),
    "debounce, behind": ([], ""),
    "rate_limit, behind": ([], ""),
    "group_by, behind": ([], ""),
    "deadline": (None, "TimeoutError"),
    "take_until of an inner flow": ([], ""),
    "another source of three": ([0, 1, 2], ""),
    "what comes after a timeout": ([-1, 0, 1, 2], ""),
}


@pytest.mark.parametrize(
    ("restless_ending", "read"),
    one_pair_each_by_day(itertools.product(RESTLESS, MORE_ENDING), list(READING)),
    ids=words,
)
def test_a_flow_ends_alike_however_it_is_read(restless_ending: tuple[str, str], read: str) -> None:
    restless, ending = restless_ending
    assert outcome(read, ending, restless) == RESULTS[ending]


def waits_in_vain(flow: Flow[Any]) -> list[Any]:
    with closing(flow.iterate()) as elements:
        return [elements.next(timeout=0)]


async def waits_in_vain_on_an_event_loop(flow: Flow[Any]) -> list[Any]:
    async with aclosing(flow.iterate_async()) as elements:
        return [await asyncio.wait_for(anext(elements), 0.01)]


@pytest.mark.parametrize("read", [waits_in_vain, lambda flow: asyncio.run(waits_in_vain_on_an_event_loop(flow))])
@pytest.mark.parametrize("restless", ["an empty queue", "two empty queues", "a flat_map to nothing"])
def test_a_wait_with_a_limit_comes_back(restless: str, read: Callable[[Flow[Any]], list[Any]]) -> None:
    held = Restless()
    with hooks.captured():
        reading = Reading(read, RESTLESS[restless](held))
        try:
            assert reading.outcome() == (None, "TimeoutError")
        finally:
            held.release.set()


@pytest.mark.parametrize("restless", ["an empty queue", "two empty queues", "a flat_map to nothing"])
def test_another_thread_closes_a_loop(restless: str) -> None:
    held = Restless()
    with hooks.captured():
        elements = RESTLESS[restless](held).iterate()
        reading = Reading(lambda flow: list(elements), Flow.never())
        try:
            assert held.inside.wait(PATIENCE)
            elements.close()
            assert reading.outcome() == ([], "")
        finally:
            held.release.set()


def test_a_source_that_was_cancelled_is_closed_before_the_loop_goes_on() -> None:
    held, clock = Restless(), VirtualTimeExecutor(timeout=0)
    closed = threading.Event()

    def nothing_for_ever() -> Iterator[int]:
        try:
            while True:
                held.loops()
                yield 0
        finally:
            closed.set()

    def read(flow: Flow[int]) -> list[Any]:
        return [(n, closed.is_set()) for n in flow]

    with hooks.captured():
        first = Flow.from_supplier(nothing_for_ever).filter(lambda n: n > 0).take_until(tick(clock))
        reading = Reading(read, Flow.concat(first, Flow.range(3)))
        try:
            assert held.inside.wait(PATIENCE)
            move_until(reading.ended, clock)
            assert reading.outcome() == ([(0, True), (1, True), (2, True)], "")
        finally:
            held.release.set()


def test_what_a_step_subscribed_to_is_done_when_the_loop_has_its_element() -> None:
    """Only sources of the loop itself wait for its next element: its body may wait for anything else."""
    held = Restless()
    counted: list[Any] = []

    def begins(n: int) -> int:
        counted.append(Flow.range(9_000).map(str).timeout(9).filter(lambda text: False).count().to_future())
        return n

    def read(flow: Flow[int]) -> list[Any]:
        return [(n, counted[0].result(PATIENCE)) for n in flow.take(1)]

    with hooks.captured():
        begun = Flow.just(1).map(begins).concat_with(Flow.never()).timeout(9)
        reading = Reading(read, Flow.merge(Flow.from_queue(held), begun))
        try:
            assert reading.outcome() == ([(1, 0)], "")
        finally:
            held.release.set()
