"""Every publisher, subscriber and processor of the package, as both kits make them.

A publisher is a function of `elements`. What can't give any number says how many it can.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from threading import Barrier
from typing import Any

from declared.values import queue_with

from reactive_runtime import MAX_DEMAND, Disposable, Emitter, Flow
from reactive_runtime._core.fusion.subscription import PulledSubscription
from reactive_runtime._core.queues.prefetch_queue import PrefetchQueue
from reactive_runtime._operators.sinks import terminal
from reactive_runtime.executors import ScheduledExecutor, SerialExecutor, TrampolineExecutor
from reactive_runtime.hot import (
    BehaviorProcessor,
    PublishProcessor,
    ReplayProcessor,
    SubmissionPublisher,
    UnicastProcessor,
)
from reactive_runtime.processors import FlowProcessor
from reactive_runtime.subscribers import AsyncSubscriber, BaseSubscriber, BufferedSubscriber
from reactive_runtime.tck import HelperPublisher, SubscriberPuppet, WhiteboxSubscriberProbe
from reactive_runtime.testing import Recorder

HUGE = MAX_DEMAND - 1
"""Any number."""

IN_MEMORY = 10_000
"""As many as a test holds in a list."""


THREADS = 4


@cache
def pool() -> Executor:
    return ThreadPoolExecutor(THREADS, "tck-pool")


@cache
def timer() -> ScheduledExecutor:
    return ScheduledExecutor()


def at_rest() -> None:
    """All that `pool` was given has been done: an `AsyncSubscriber` hears its last signal there, after its check."""
    met = Barrier(THREADS)
    for met_by_each in [pool().submit(met.wait, 30) for _ in range(THREADS)]:
        met_by_each.result()


def failing_after(elements: int) -> Iterator[int]:
    """Fails at once where there is no element before: the end of a generator is only known by asking for it."""
    if not elements:
        raise OSError("the source is broken")
    return _failing_after(elements)


def _failing_after(elements: int) -> Iterator[int]:
    yield from range(elements)
    raise OSError("the source is broken")


@dataclass(frozen=True)
class BuiltIn:
    """A publisher of the package."""

    name: str
    create: Callable[[int], Any]
    most: int = HUGE
    fails: Callable[[int], Any] | None = None
    """Of so many elements, and then failing; None: it can't fail, or not midway."""
    failed: Callable[[], Any] | None = None
    """Failing at once; where there is none, `fails(0)`."""

    def create_failed(self) -> Any:
        if self.failed is not None:
            return self.failed()
        return None if self.fails is None else self.fails(0)


def through(name: str, assemble: Callable[[Flow[Any]], Flow[Any]], most: int = HUGE) -> BuiltIn:
    """An operator, or several."""
    return BuiltIn(
        name,
        lambda n: assemble(Flow.range(n)),
        most,
        fails=lambda n: assemble(Flow.from_supplier(lambda: failing_after(n))),
    )


def same(n: int) -> int:
    return n


def helper(elements: int, failure: BaseException | None = None) -> Any:
    return HelperPublisher(elements, same, failure=failure)


PUBLISHERS = [
    BuiltIn("range", Flow.range),
    BuiltIn("just", lambda n: Flow.just(*range(n)), IN_MEMORY),
    BuiltIn("empty", lambda n: Flow.empty(), 0),
    BuiltIn("error", lambda n: Flow.error(OSError("broken")), 0, failed=lambda: Flow.error(OSError("broken"))),
    BuiltIn("never", lambda n: Flow.never(), 0),
    BuiltIn("from_iterable", lambda n: Flow.from_iterable(range(n))),
    BuiltIn(
        "from_supplier",
        lambda n: Flow.from_supplier(lambda: iter(range(n))),
        fails=lambda n: Flow.from_supplier(lambda: failing_after(n)),
    ),
    BuiltIn(
        "from_publisher",
        lambda n: Flow.from_publisher(helper(n)),
        fails=lambda n: Flow.from_publisher(helper(n, OSError("broken"))),
    ),
    through("map", lambda flow: flow.map(same)),
    through("filter", lambda flow: flow.filter(lambda n: True)),
    BuiltIn(
        "take",
        lambda n: Flow.range(HUGE).take(n),
        fails=lambda n: Flow.from_supplier(lambda: failing_after(n)).take(HUGE),
    ),
    BuiltIn(
        "to_list",
        lambda n: Flow.range(3).to_list().take(n),
        1,
        failed=lambda: Flow.from_supplier(lambda: failing_after(0)).to_list(),
    ),
    through("subscribe_on", lambda flow: flow.subscribe_on(pool())),
    through("publish_on", lambda flow: flow.publish_on(pool())),
    through("subscribe_on, publish_on", lambda flow: flow.subscribe_on(pool()).publish_on(pool())),
    through("publish_on, prefetch 1", lambda flow: flow.subscribe_on(pool()).publish_on(pool(), prefetch=1)),
    BuiltIn(
        "from_publisher, publish_on",
        lambda n: Flow.from_publisher(helper(n)).publish_on(pool(), prefetch=4),
        fails=lambda n: Flow.from_publisher(helper(n, OSError("broken"))).publish_on(pool(), prefetch=4),
    ),
    through("publish_on a SerialExecutor", lambda flow: flow.subscribe_on(pool()).publish_on(SerialExecutor(pool()))),
    through("publish_on a TrampolineExecutor", lambda flow: flow.publish_on(TrampolineExecutor())),
    through("publish_on a ScheduledExecutor", lambda flow: flow.publish_on(timer())),
    through(
        "three boundaries",
        lambda flow: (
            flow.subscribe_on(pool())
            .map(same)
            .publish_on(pool(), prefetch=8)
            .filter(lambda n: True)
            .publish_on(pool(), prefetch=2)
            .take(HUGE)
        ),
    ),
    BuiltIn(
        "recorded",
        lambda n: Recorder().wrap(Flow.range(n)),
        fails=lambda n: Recorder().wrap(Flow.from_supplier(lambda: failing_after(n))),
    ),
]

OPERATORS = [
    through("merge", lambda flow: Flow.merge(flow.subscribe_on(pool()), Flow.empty())),
    through("zip", lambda flow: Flow.zip(flow.subscribe_on(pool()), Flow.range(HUGE)).map(min)),
    through("concat_map", lambda flow: flow.subscribe_on(pool()).concat_map(Flow.just), IN_MEMORY),
    through("map_parallel", lambda flow: flow.map_parallel(same, pool(), concurrency=4), IN_MEMORY),
    through("map_parallel, auto", lambda flow: flow.map_parallel(same, pool(), concurrency="auto"), IN_MEMORY),
    through("map_parallel of coroutines", lambda flow: flow.map_parallel(same_async, concurrency=4), IN_MEMORY),
    through("timeout", lambda flow: flow.timeout(60, clock=timer())),
    through("flat_map", lambda flow: flow.flat_map(Flow.just, concurrency=2), IN_MEMORY),
    through(
        "flat_map of tasks",
        lambda flow: flow.flat_map(lambda n: Flow.just(n).subscribe_on(pool()), concurrency=1),
        IN_MEMORY,
    ),
    through("partition", lambda flow: Flow.merge(*flow.partition(lambda n: True))),
    through("balance", lambda flow: Flow.merge(*flow.balance(2, prefetch=1))),
    BuiltIn("from_queue", lambda n: Flow.defer(lambda: Flow.from_queue(queue_with(*range(n), None))), IN_MEMORY),
    BuiltIn("from_async", lambda n: Flow.from_async(lambda: counting(n))),
    BuiltIn("create", lambda n: Flow.create(lambda emitter: emit_all(emitter, n), capacity=IN_MEMORY), IN_MEMORY),
    BuiltIn("SubmissionPublisher", lambda n: Fed(partial(submitted, n)), IN_MEMORY),
    BuiltIn("BehaviorProcessor", lambda n: Fed(partial(behaved, n)), IN_MEMORY),
]
"""Asynchronous ones; for our own kit, which asks more than the original, and takes less time."""


@dataclass(frozen=True)
class Fed:
    """A hot source for each subscriber, which is fed, and closed, when that has subscribed."""

    subscribe: Callable[[Any], None]


def submitted(n: int, subscriber: Any) -> None:
    hot: SubmissionPublisher[int] = SubmissionPublisher(pool(), max_buffer=n + 1)
    hot.subscribe(subscriber)
    for number in range(n):
        hot.submit(number)
    hot.close()


def behaved(n: int, subscriber: Any) -> None:
    hot = BehaviorProcessor(0, capacity=n + 1)
    hot.take(n).subscribe(subscriber)
    for number in range(1, n):
        hot.emit(number)
    hot.on_complete()


async def same_async(n: int) -> int:
    return n


async def counting(n: int) -> AsyncIterator[int]:
    for number in range(n):
        yield number


def emit_all(emitter: Emitter[int], n: int) -> None:
    for number in range(n):
        emitter.emit(number)
    emitter.complete()


PROCESSORS: dict[str, Callable[[int], Any]] = {
    "FlowProcessor of map": lambda size: FlowProcessor(lambda flow: flow.map(same)),
    "FlowProcessor of publish_on": lambda size: FlowProcessor(lambda flow: flow.publish_on(pool(), prefetch=size)),
    "FlowProcessor of a chain": lambda size: FlowProcessor(
        lambda flow: flow.map(same).publish_on(pool(), prefetch=size).filter(lambda n: True).take(HUGE)
    ),
}

HOT_PROCESSORS: dict[str, Callable[[int], Any]] = {
    "FlowProcessor of merge": lambda size: FlowProcessor(lambda flow: Flow.merge(flow, Flow.empty(), prefetch=size)),
    "PublishProcessor": lambda size: PublishProcessor(capacity=size),
    "ReplayProcessor": lambda size: ReplayProcessor(IN_MEMORY, capacity=size),
    "UnicastProcessor": lambda size: UnicastProcessor(capacity=size),
}
"""And more of them; for our own kit."""


def nothing(*_: object) -> None:
    """For what is done with an element."""


def receiving_end() -> Any:
    """The receiving end of a boundary: what `publish_on` subscribes with."""
    queue = PrefetchQueue(nothing, 4)
    subscription = PulledSubscription(terminal._Functions(nothing, nothing, nothing, HUGE), queue)
    subscription.start()
    return queue


SUBSCRIBERS: dict[str, Callable[[], Any]] = {
    "subscribe(functions)": lambda: terminal._Functions(nothing, nothing, nothing, 3),
    "to_future": terminal._Last,
    "BaseSubscriber": BaseSubscriber,
    "AsyncSubscriber": lambda: AsyncSubscriber(pool(), demand=2),
    "BufferedSubscriber": lambda: BufferedSubscriber(capacity=4),
    "the receiving end of publish_on": receiving_end,
}


class Told:
    """A subscriber of functions that a probe pulls the strings of: `Flow.subscribe(functions)`, and its handle."""

    def __init__(self, probe: WhiteboxSubscriberProbe[Any]) -> None:
        self.inner = terminal._Functions(probe.register_on_next, probe.register_on_error, probe.register_on_complete, 0)
        self.on_next, self.on_error, self.on_complete = self.inner.on_next, self.inner.on_error, self.inner.on_complete
        self.probe = probe

    def on_subscribe(self, subscription: Any, /) -> None:
        self.inner.on_subscribe(subscription)
        self.probe.register_on_subscribe(Handle(Disposable(subscription)))


class Handle(SubscriberPuppet):
    def __init__(self, handle: Disposable) -> None:
        self.handle = handle

    def trigger_request(self, elements: int) -> None:
        self.handle.request(elements)

    def signal_cancel(self) -> None:
        self.handle.cancel()
