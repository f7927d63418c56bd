"""A flow runs in the context of its subscriber, whichever thread a clock, a pool or an event loop brings along."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Sink

from reactive_runtime import Flow, KillSwitch
from reactive_runtime.errors import RejectedError
from reactive_runtime.executors import ScheduledExecutor, VirtualTimeExecutor

REQUEST: contextvars.ContextVar[str] = contextvars.ContextVar("request", default="none")


class Room:
    """Executors whose threads have been started in another context."""

    def __init__(self, pool: ThreadPoolExecutor, clock: ScheduledExecutor) -> None:
        self.pool = pool
        self.clock = clock

    def later(self) -> Future[int]:
        """Done on a thread of the pool, when it is waited for."""
        future: Future[int] = Future()
        gate = threading.Event()

        def give() -> None:
            gate.wait(PATIENCE)
            future.set_result(1)

        contextvars.Context().run(self.pool.submit, give)
        self.clock.schedule(0.001, gate.set)
        return future


@pytest.fixture
def room() -> Iterator[Room]:
    with ThreadPoolExecutor(2, "pool") as pool, ScheduledExecutor() as clock:
        contextvars.Context().run(lambda: [pool.submit(int).result() for _ in range(2)])
        contextvars.Context().run(lambda: clock.schedule(0, int).result())
        yield Room(pool, clock)


def seen(element: object = None) -> str:
    return REQUEST.get()


async def given(element: int) -> int:
    await asyncio.sleep(0)
    return element


async def two() -> AsyncIterator[int]:
    yield 0
    await asyncio.sleep(0)
    yield 1


def failing(times: int) -> Callable[[], str]:
    attempts = iter(range(times))

    def attempt() -> str:
        if next(attempts, None) is not None:
            raise OSError
        return seen()

    return attempt


def stays(element: int = 0) -> Flow[int]:
    """An element, and no end."""
    return Flow.just(element).concat_with(Flow.never())


FLOWS: dict[str, Callable[[Room], Flow[str]]] = {
    "timer": lambda item: Flow.timer(0.001, clock=item.clock).map(seen),
    "interval": lambda item: Flow.interval(0.001, clock=item.clock).map(seen).take(3),
    "delay": lambda item: Flow.range(2).delay(0.001, clock=item.clock).map(seen),
    "rate_limit": lambda item: Flow.range(3).rate_limit(1, clock=item.clock, per=0.002).map(seen).skip(1),
    "debounce": lambda item: stays().debounce(0.001, clock=item.clock).map(seen).take(1),
    "buffer_timeout": lambda item: stays().buffer_timeout(5, 0.001, clock=item.clock).map(seen).take(1),
    "sample": lambda item: stays().sample(Flow.timer(0.001, clock=item.clock)).map(seen),
    "timeout": lambda item: Flow.never().timeout(0.001, clock=item.clock, fallback=Flow.from_callable(seen)),
    "timeout, its error": lambda item: Flow.never().timeout(0.001, clock=item.clock).on_error_return(seen),
    "retry_backoff": lambda item: Flow.from_callable(failing(2)).retry_backoff(3, clock=item.clock, first=0.001),
    "retry_when": lambda item: Flow.from_callable(failing(1)).retry_when(
        lambda *_: Flow.timer(0.001, clock=item.clock)
    ),
    "repeat_when": lambda item: (
        Flow.from_callable(seen).repeat_when(lambda n: Flow.timer(0.001, clock=item.clock)).skip(1).take(1)
    ),
    "take_until": lambda item: (
        Flow.never().take_until(Flow.timer(0.001, clock=item.clock)).concat_with(Flow.from_callable(seen))
    ),
    "inner of flat_map": lambda item: Flow.range(2).flat_map(lambda n: Flow.timer(0.001, clock=item.clock).map(seen)),
    "inner of switch_map": lambda item: Flow.range(2).switch_map(
        lambda n: Flow.timer(0.001, clock=item.clock).map(seen)
    ),
    "behind an inner": lambda item: Flow.range(2).concat_map(lambda n: Flow.timer(0.001, clock=item.clock)).map(seen),
    "behind share": lambda item: Flow.timer(0.001, clock=item.clock).share().map(seen),
    "behind balance": lambda item: Flow.merge(*Flow.timer(0.001, clock=item.clock).balance(2)).map(seen),
    "from_future": lambda item: Flow.defer(lambda: Flow.from_future(item.later())).map(seen),
    "map_parallel": lambda item: Flow.range(2).map_parallel(seen, item.pool),
    "behind map_parallel": lambda item: Flow.range(9).map_parallel(lambda n: n, item.pool, concurrency=2).map(seen),
    "behind one on a pool": lambda item: (
        Flow.range(9).flat_map(lambda n: Flow.just(n).subscribe_on(item.pool)).map(seen)
    ),
    "behind parallel": lambda item: Flow.range(9).parallel(2).run_on(item.pool).sequential().map(seen),
    "behind a coroutine": lambda item: Flow.range(9).flat_map(given, concurrency=2).map(seen),
    "behind one started by a clock": lambda item: Flow.timer(0.001, clock=item.clock).flat_map(given).map(seen),
    "from_async": lambda item: Flow.from_async(two).map(seen),
    "from_coroutine": lambda item: Flow.from_coroutine(lambda: given(0)).map(seen),
}


@pytest.mark.parametrize("way", FLOWS)
def test_a_flow_runs_in_its_subscribers_context(way: str, room: Room) -> None:
    context = contextvars.copy_context()
    context.run(REQUEST.set, "mine")
    flow = FLOWS[way](room)
    heard: list[str] = []
    sink = Sink(then=lambda item, element: heard.append(REQUEST.get()))
    context.run(flow.subscribe, sink)
    assert set(sink.wait().elements) == {"mine"}
    assert set(heard) == {"mine"}
    assert REQUEST.get() == "none"


def test_a_clock_that_a_test_moves_runs_the_flow_in_the_subscribers_context() -> None:
    clock, context, sink = VirtualTimeExecutor(), contextvars.copy_context(), Sink()
    context.run(REQUEST.set, "mine")
    context.run(Flow.interval(1, clock=clock).map(seen).subscribe, sink)
    clock.advance(2)
    assert sink.elements == ["mine", "mine"]


class Hearing(Sink):
    """Notes what the variable was at the end."""

    heard = "nothing"

    def on_error(self, error: BaseException, /) -> None:
        self.heard = REQUEST.get()
        super().on_error(error)


def test_a_kill_switchs_patience_ends_in_the_subscribers_context() -> None:
    clock, switch, context, sink = VirtualTimeExecutor(), KillSwitch(), contextvars.copy_context(), Hearing()
    context.run(REQUEST.set, "mine")
    context.run(Flow.never().kill_switch(switch).delay(60, clock=clock).subscribe, sink)
    switch.throw(5, clock=clock)
    clock.advance(5)
    assert isinstance(sink.wait().error, TimeoutError)
    assert sink.heard == "mine"


@pytest.mark.parametrize("way", ["subscribe_on", "publish_on", "one on a pool"])
def test_a_refusal_is_signalled_in_the_subscribers_context(way: str) -> None:
    """The task is dropped from the pool's queue, on a thread of another party."""
    pool = ThreadPoolExecutor(1)
    gate = threading.Event()
    pool.submit(gate.wait, PATIENCE)
    flows: dict[str, Callable[[Executor], Flow[Any]]] = {
        "subscribe_on": Flow.range(9).subscribe_on,
        "publish_on": Flow.range(9).concat_with(Flow.never()).publish_on,
        "one on a pool": lambda item: Flow.range(1).flat_map(lambda n: Flow.just(n).subscribe_on(item)),
    }
    context, sink = contextvars.copy_context(), Hearing()
    context.run(REQUEST.set, "mine")
    context.run(flows[way](pool).subscribe, sink)
    pool.shutdown(wait=False, cancel_futures=True)
    gate.set()
    assert isinstance(sink.wait().error, RejectedError)
    assert sink.heard == "mine"
