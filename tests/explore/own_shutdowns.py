"""Executors that are shut down under a flow, for the explorer."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from declared.values import same
from sinks import Sink

from reactive_runtime import Flow
from reactive_runtime.executors import ScheduledExecutor


class PoolShutDown:
    """The pool of a flow is shut down under it: the subscriber gets an end, whichever."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)
        self.future: Future[Any] | None = None

    def actor_runs(self) -> None:
        self.future = Flow.range(3).subscribe_on(self.pool).to_list().to_future()

    def actor_shuts_down(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)

    def at_end(self) -> None:
        assert self.future is not None
        assert self.future.done(), "the flow neither ended nor failed"


class MapParallelShutDown(PoolShutDown):
    """The pool of `map_parallel` is shut down under it."""

    def actor_runs(self) -> None:
        self.future = Flow.range(3).map_parallel(same, self.pool, concurrency=2).to_list().to_future()


class AutoShutDown(PoolShutDown):
    """The same, with a limit that the operator finds."""

    def actor_runs(self) -> None:
        self.future = Flow.range(3).map_parallel(same, self.pool, concurrency="auto").to_list().to_future()


class PublishOnShutDown(PoolShutDown):
    """The pool of a boundary is shut down under it."""

    def actor_runs(self) -> None:
        self.future = Flow.from_publisher(Flow.range(3)).publish_on(self.pool, prefetch=2).to_list().to_future()


class ClockShutDown:
    """The clock of a flow is shut down under it: the subscriber gets an end, whichever."""

    def __init__(self) -> None:
        self.clock = ScheduledExecutor()
        self.future: Future[Any] | None = None

    def actor_runs(self) -> None:
        self.future = Flow.interval(1, clock=self.clock).take(2).to_list().to_future()

    def actor_shuts_down(self) -> None:
        self.clock.shutdown(wait=False, cancel_futures=True)

    def at_end(self) -> None:
        assert self.future is not None
        assert self.future.done(), "the flow neither ended nor failed"


class CancelThenShutDown:
    """The subscriber cancels, then the pool is shut down: no boundary needs the pool, so its refusal is no news.

    An error that goes to the hook fails the test (`nothing_vanishes`).
    """

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)
        self.sink = Sink(1)
        Flow.range(3).subscribe_on(self.pool).publish_on(self.pool, prefetch=1).subscribe(self.sink)

    def actor_leaves(self) -> None:
        self.sink.subscription.cancel()
        self.pool.shutdown(wait=False, cancel_futures=True)

    def at_end(self) -> None:
        assert self.sink.end is None


SHUTDOWNS = [PoolShutDown, ClockShutDown]

LARGE_SHUTDOWNS = [MapParallelShutDown, AutoShutDown, PublishOnShutDown, CancelThenShutDown]
