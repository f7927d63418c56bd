"""Twelve planted stalls are named with their cause; the healthy twin of each is not accused."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from sinks import Sink, until

from reactive_runtime import MAX_DEMAND, Bulkhead, Flow, Subscriber, Valve, live
from reactive_runtime.executors import blocking_allowed
from reactive_runtime.scopes import scope


class Stage:
    """A stall, or its twin: what is to be undone in the end, and how far the flow has come."""

    def __init__(self, stack: ExitStack, healthy: bool) -> None:
        self.stack = stack
        self.healthy = healthy
        self.over = threading.Event()
        self.stuck = threading.Event()
        self.count = 0

    def pool(self, workers: int, name: str) -> ThreadPoolExecutor:
        pool = self.stack.enter_context(ThreadPoolExecutor(workers, name))
        self.stack.callback(self.over.set)  # before the pool is waited for
        return pool

    def until_stuck(self) -> None:
        """In the function that is planted."""
        if self.healthy:
            self.count += 1
            self.over.wait(0.001)
        else:
            self.stuck.set()
            self.over.wait()

    def run(self, flow: Flow[Any]) -> None:
        """Subscribe, and cancel it in the end."""
        self.stack.enter_context(flow.subscribe(self.took, lambda error: None))

    def paced(self, element: Any) -> None:
        """Elements in a hurry would keep the machine busy."""
        self.over.wait(0.001)

    def took(self, element: Any) -> None:
        self.count += 1


PLANTED: dict[str, tuple[Callable[[Stage], None], str, tuple[str, ...]]] = {}
"""By the name of a stall: what plants it, the kind of its cause, and what the text has to name."""


def planted(name: str, kind: str, *named: str) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    def add(plant: Callable[[Stage], None]) -> Callable[[Stage], None]:
        PLANTED[name] = plant, kind, named
        return plant

    return add


class Forgets:
    """A publisher that loses the demand after its third element, unless it is healthy."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        stage, publisher = self.stage, self

        class LosesDemand:
            def __init__(self) -> None:
                self.wanted = threading.Semaphore(0)
                self.thread = threading.Thread(target=self.emit)
                self.thread.start()
                stage.stack.callback(self.thread.join)

            def request(self, n: int, /) -> None:
                for _ in range(min(n, 1000)):
                    self.wanted.release()

            def cancel(self) -> None:
                stage.over.set()
                self.wanted.release()

            def emit(self) -> None:
                for n in range(1 << 30):
                    if n == 3 and not publisher.stage.healthy:
                        stage.stuck.set()
                        return
                    self.wanted.acquire()
                    if stage.over.wait(0.001):
                        return
                    subscriber.on_next(n)

        subscriber.on_subscribe(LosesDemand())


@planted("lost demand upstream", "upstream", "LosesDemand", "lost demand")
def lost_demand(stage: Stage) -> None:
    stage.run(Flow.from_publisher(Forgets(stage)).publish_on(stage.pool(1, "cpu"), prefetch=4).map(str))


@planted("full pool", "pool", 'pool "io" is full', "until_stuck", "all 2 threads", "test_stalls.py")
def full_pool(stage: Stage) -> None:
    pool = stage.pool(2, "io")
    for _ in range(1 if stage.healthy else 2):
        pool.submit(stage.over.wait if stage.healthy else stage.until_stuck)
    stage.run(Flow.generate(0, lambda n: (n, n + 1)).do_on_next(stage.paced).subscribe_on(pool))


@planted("nested block", "nested", 'pool "io" is full', "waits in a sink", "blocks at")
def nested_block(stage: Stage) -> None:
    pool, other = stage.pool(1, "io"), stage.pool(1, "other")

    def blocks(n: int) -> int:
        with blocking_allowed():
            if not stage.healthy:
                stage.stuck.set()
            answer = Flow.just(n).subscribe_on(other if stage.healthy else pool).block()
        assert answer is not None
        stage.over.wait(0.001)
        return answer

    flow = Flow.generate(0, lambda n: (n, n + 1)).map(blocks).subscribe_on(pool)
    stage.run(flow if stage.healthy else flow.take(1))
    stage.stack.callback(one_more_thread, pool)


def one_more_thread(pool: Any) -> None:
    """Let the flow inside end: it waits for the thread that waits for it."""
    pool._max_workers = 2
    pool.submit(int)


@planted("slow user function", "function", "map(slow)", "slow at", "test_stalls.py", "io_0")
def slow_function(stage: Stage) -> None:
    def slow(n: int) -> int:
        if stage.healthy:
            stage.until_stuck()
        else:
            stage.stuck.set()
            while not stage.over.is_set():
                time.sleep(0.01)
        return n

    pool = stage.pool(1, "io")
    stage.run(Flow.generate(0, lambda n: (n, n + 1)).subscribe_on(pool).map(slow).publish_on(stage.pool(1, "cpu")))


@planted("forgotten request", "demand", "no demand from Forgetful", "has requested no more")
def forgotten_request(stage: Stage) -> None:
    class Forgetful(Sink):
        def on_next(self, element: Any, /) -> None:
            super().on_next(element)
            if stage.healthy:
                stage.count += 1
                self.subscription.request(1)
            elif len(self.signals) == 4:
                stage.stuck.set()

    sink = Forgetful(1 if stage.healthy else 3)
    Flow.interval(0.001).on_overflow_drop().subscribe(sink)
    stage.stack.callback(sink.subscription.cancel)


class Dead(Executor):
    """Takes every task, and runs none after it has died."""

    def __init__(self, stage: Stage, pool: ThreadPoolExecutor) -> None:
        self.stage = stage
        self.pool = pool
        self.left = 3

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.left -= not self.stage.healthy
        if self.left < 0:
            self.stage.stuck.set()
            lost: Future[Any] = Future()
            self.stage.stack.callback(lost.cancel)
            return lost
        return self.pool.submit(fn, *args, **kwargs)


@planted("dead executor", "executor", "Dead has not run the task", "|")
def dead_executor(stage: Stage) -> None:
    dead = Dead(stage, stage.pool(1, "below"))
    stage.run(Flow.interval(0.001).on_overflow_drop().publish_on(dead, prefetch=1).map(str))


@planted("stuck cancel", "cancel", "was cancelled", "rows at", "test_stalls.py")
def stuck_cancel(stage: Stage) -> None:
    def rows() -> Iterator[int]:
        try:
            for n in range(1 << 30):
                stage.count += 1
                stage.over.wait(0.001)
                yield n
        finally:
            if not stage.healthy:
                stage.stuck.set()
                stage.over.wait()

    flow = Flow.from_iterable(rows()).subscribe_on(stage.pool(1, "io"))
    handle = flow.subscribe(lambda row: None)
    stage.stack.callback(handle.cancel)
    until(lambda: stage.count > 2)
    if not stage.healthy:
        handle.cancel()


@planted("paused valve", "valve", "valve of `pausable()` is paused")
def paused_valve(stage: Stage) -> None:
    valve = Valve(paused=not stage.healthy)
    stage.stuck.set()
    stage.run(Flow.interval(0.001).on_overflow_drop().pausable(valve).publish_on(stage.pool(1, "cpu")))


@planted("starving key", "key", "group_by", "the key 'slow' is full", "no demand from")
def starving_key(stage: Stage) -> None:
    def key(n: int) -> str:
        return "slow" if n % 2 else "quick"

    def subscribe(keyed: Any) -> None:
        name, group = keyed
        demand = 1 if name == "slow" and not stage.healthy else MAX_DEMAND
        stage.stack.enter_context(group.subscribe(stage.took, lambda error: None, demand=demand))

    source = Flow.interval(0.001).on_overflow_drop()
    handle = source.group_by(key, prefetch=4).subscribe(subscribe, lambda error: None)
    stage.stack.enter_context(handle)
    if not stage.healthy:
        until(lambda: stage.count > 4)
        stage.stuck.set()


@planted("full queue", "queue", "the queue of `to_queue`", "a Queue", "room for 2", "is full")
def full_queue(stage: Stage) -> None:
    taken: queue.Queue[int | None] = queue.Queue(2)
    done = Flow.generate(0, lambda n: (n, n + 1)).subscribe_on(stage.pool(1, "io")).to_queue(taken)

    def empty() -> None:
        while not done.done() or not taken.empty():
            with_timeout(taken)

    def reader() -> None:
        while not stage.over.wait(0.001):
            with_timeout(taken)
            stage.count += 1

    def end() -> None:
        done.cancel()
        empty()

    stage.stack.callback(end)
    if stage.healthy:
        thread = threading.Thread(target=reader)
        thread.start()
        stage.stack.callback(thread.join)
        stage.stack.callback(stage.over.set)
    else:
        until(taken.full)
        stage.stuck.set()


def with_timeout(taken: queue.Queue[Any]) -> None:
    try:
        taken.get(timeout=0.05)
    except queue.Empty:
        return


@planted("stuck event loop", "loop", "is stuck", "fetch at", "flat_map")
def stuck_event_loop(stage: Stage) -> None:
    async def fetch(n: int) -> int:
        if stage.healthy:
            stage.count += 1
            await asyncio.sleep(0.001)
        else:
            stage.until_stuck()
        return n

    stage.run(Flow.generate(0, lambda n: (n, n + 1)).subscribe_on(stage.pool(1, "io")).flat_map(fetch, concurrency=2))


@planted("lock", "lock", "the lock `lock`", "map(locked)", "locked at", "io_0")
def lock(stage: Stage) -> None:
    lock = threading.Lock()
    if not stage.healthy:
        lock.acquire()
        stage.stuck.set()

    def locked(n: int) -> int:
        with lock:
            stage.count += 1
        stage.over.wait(0.001)
        return n

    stage.run(Flow.generate(0, lambda n: (n, n + 1)).subscribe_on(stage.pool(1, "io")).map(locked))
    if not stage.healthy:
        stage.stack.callback(lock.release)


@contextmanager
def on_stage(name: str, *, healthy: bool) -> Iterator[Stage]:
    """The stall, once it has come to that, or its twin, once it runs."""
    with ExitStack() as stack:
        stage = Stage(stack, healthy)
        stack.callback(stage.over.set)
        PLANTED[name][0](stage)
        until(lambda: stage.count > 3 if healthy else stage.stuck.is_set())
        yield stage


def still(name: str) -> live.FlowState | None:
    """The stalled flow with the planted cause, if there is one."""
    _, kind, named = PLANTED[name]
    for flow in live.snapshot().stalled:
        if flow.cause is not None and flow.cause.kind == kind and all(part in flow.cause.text for part in named):
            return flow
    return None


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_stall_is_named(name: str) -> None:
    with on_stage(name, healthy=False):
        until(lambda: still(name) is not None)  # the thread that is to be stuck may be on its way


@pytest.mark.parametrize("name", PLANTED)
def test_the_healthy_twin_is_not_accused(name: str) -> None:
    with on_stage(name, healthy=True) as stage:
        snapshots: list[live.Snapshot] = []

        def has_run() -> bool:
            """Meanwhile; else the machine, and not the flow, has stood still."""
            before = stage.count
            snapshots.append(live.snapshot())
            return stage.count - before > 3

        until(has_run)
        assert [str(flow) for flow in snapshots[-1].stalled] == []


def test_there_are_twelve_planted_stalls() -> None:
    assert len(PLANTED) == 12


def keyed_in_a_full_pool(stuck: Any, pool: ThreadPoolExecutor) -> Flow[int]:
    pool.submit(stuck, 0)
    return Flow.range(9).map_by_key(int, bool, pool)


def two_in_a_bulkhead(bulkhead: Bulkhead) -> Flow[int]:
    return Flow.merge(Flow.timer(3600).bulkhead(bulkhead), Flow.just(1).bulkhead(bulkhead))


BELOW: dict[str, tuple[Callable[[Any, ThreadPoolExecutor], Flow[Any]], str, str]] = {
    "map_by_key": (lambda stuck, pool: Flow.range(9).map_by_key(stuck, bool, pool), "lock", "map_by_key("),
    "the pool of map_by_key": (keyed_in_a_full_pool, "pool", "to run the calls of `map_by_key("),
    "flat_map": (
        lambda stuck, pool: Flow.range(9).flat_map(lambda n: Flow.just(n).subscribe_on(pool).map(stuck)),
        "lock", "stuck at",
    ),
    "concat_map": (
        lambda stuck, pool: Flow.range(9).concat_map(lambda n: Flow.just(n).publish_on(pool).map(stuck)),
        "lock", "stuck at",
    ),
    "a timer in flat_map": (lambda stuck, pool: Flow.range(9).flat_map(lambda n: Flow.timer(3600)), "timer", "timer("),
    "delay": (lambda stuck, pool: Flow.range(9).delay(3600), "timer", "delay("),
    "bulkhead": (lambda stuck, pool: two_in_a_bulkhead(Bulkhead(1)), "queue", "waits for room"),
}  # fmt: skip
"""Flows whose operator waits for another part than its source: the flow, the kind of its cause, and what it names."""


@pytest.mark.parametrize("name", BELOW)
def test_an_operator_that_has_asked_enough_is_looked_into(name: str) -> None:
    make, kind, named = BELOW[name]
    over = threading.Event()

    def stuck(n: int) -> int:
        over.wait()
        return n

    def is_named() -> bool:
        causes = [flow.cause for flow in live.snapshot().flows if flow.id == f"{id(handle._subscription):x}"]
        return [cause is not None and (cause.kind, named in cause.text) for cause in causes] == [(kind, True)]

    with ThreadPoolExecutor(1, "io") as pool, make(stuck, pool).subscribe(lambda n: None) as handle:
        try:
            until(is_named)
        finally:
            over.set()


def test_the_pause_of_a_scope_is_named() -> None:
    paused = ("valve", "the scope of the flow is paused")
    with scope() as s:
        s.pause()
        s.start(Flow.range(9).map(str))
        until(lambda: [(f.cause.kind, f.cause.text) for f in live.snapshot().stalled if f.cause] == [paused])
        s.resume()
