"""Subscribers and sources that tests look into."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import Any

from reactive_runtime import MAX_DEMAND, Subscription
from reactive_runtime._core.runtime import eventloop

PATIENCE = 60.0
"""Seconds that a test waits for what must happen. Nothing is ever asserted about how long it took."""


def until(what: Callable[[], bool]) -> None:
    """Wait for what no call reports: a file, a job of another process."""
    for _ in range(int(PATIENCE * 400)):
        if what():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it did not come to that")


def settle(pool: Executor, workers: int) -> None:
    """Wait until what flows have left to the pool, of so many workers, and to the event loop of coroutines is done."""
    for _ in range(3):  # each thread of the pool does something else
        barrier = threading.Barrier(workers)
        for done in [pool.submit(barrier.wait, PATIENCE) for _ in range(workers)]:
            done.result()
    assert eventloop.wait_until_ended(PATIENCE), "a coroutine still runs"


class Sink:
    """Keeps the signals it gets, in order; `ended` is set by the last one."""

    def __init__(self, demand: int = MAX_DEMAND, then: Callable[[Any, Any], object] | None = None) -> None:
        self.demand = demand
        self.then = then
        self.signals: list[tuple[Any, ...]] = []
        self.threads: set[str] = set()
        self.ended = threading.Event()
        self.subscribed = threading.Event()
        self.arrived = threading.Semaphore(0)
        self.subscription: Subscription

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        self.signals.append(("on_subscribe",))
        self.subscribed.set()
        if self.demand:
            subscription.request(self.demand)

    def on_next(self, element: Any, /) -> None:
        self.signals.append(("on_next", element))
        self.threads.add(threading.current_thread().name)
        self.arrived.release()
        if self.then is not None:
            self.then(self, element)

    def on_error(self, error: BaseException, /) -> None:
        self.signals.append(("on_error", error))
        self.ended.set()

    def on_complete(self) -> None:
        self.signals.append(("on_complete",))
        self.ended.set()

    def wait(self) -> Sink:
        """Wait for the end."""
        assert self.ended.wait(PATIENCE), f"no end after {self.signals[-3:]}"
        return self

    def wait_for(self, n: int) -> Sink:
        """Wait for `n` more elements."""
        for _ in range(n):
            assert self.arrived.acquire(timeout=PATIENCE), f"no element after {self.signals[-3:]}"
        return self

    @property
    def elements(self) -> list[Any]:
        return [signal[1] for signal in self.signals if signal[0] == "on_next"]

    @property
    def end(self) -> tuple[Any, ...] | None:
        ends = [signal for signal in self.signals if signal[0] in ("on_error", "on_complete")]
        assert len(ends) <= 1, ends
        assert not ends or self.signals[-1] == ends[0], "a signal after the end (1.7)"
        return ends[0] if ends else None

    @property
    def error(self) -> BaseException:
        end = self.end
        assert end is not None
        assert end[0] == "on_error", end
        error: BaseException = end[1]
        return error


def submit_until(pool: Executor, inside: threading.Event) -> None:
    """Let `pool.submit` return when a task is `inside`: a limit that begins then is not over before, on any machine."""
    submit = pool.submit

    def submitted(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = submit(fn, *args, **kwargs)
        assert inside.wait(PATIENCE), "no task has come there"
        return future

    pool.submit = submitted  # type: ignore[method-assign]


class Numbers:
    """An iterator of 0, 1, 2 … that notes how it was used: how often pulled and closed, and on which threads."""

    def __init__(
        self, stop: int | None = None, fail_at: int | None = None, failure: BaseException | None = None
    ) -> None:
        self.stop = stop
        self.fail_at = fail_at
        self.failure = failure or OSError("the source is broken")
        self.pulled = 0
        self.closed = 0
        self.inside = 0
        self.closed_while_running = False
        self.threads: set[str] = set()

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        self.inside += 1
        try:
            self.threads.add(threading.current_thread().name)
            if self.pulled == self.fail_at:
                raise self.failure
            if self.pulled == self.stop:
                raise StopIteration
            self.pulled += 1
            return self.pulled - 1
        finally:
            self.inside -= 1

    def close(self) -> None:
        self.closed += 1
        self.closed_while_running |= bool(self.inside)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread is about to do."""
    turn = threading.Event()
    for _ in range(int(PATIENCE * 1000)):
        if condition():
            return
        turn.wait(0.001)
    raise AssertionError("it did not happen")
