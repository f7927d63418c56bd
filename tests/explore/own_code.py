"""The package's own asynchronous code, as programs for the explorer.

An operator with a pool is an `OnPool` of `declared`; a new executor is one line here.

A publisher is explored with each of `PROGRAMS` (one thread against those of its pools) and, unless it says
otherwise (`Reach`), with each of `PAIRS` (two threads beside those). What has no more than two threads is searched
to its end for 2 preemptions; beyond, it is sampled.
"""

from __future__ import annotations

import enum
import queue
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from declared.kinds import OnPool
from declared.table import parts
from declared.values import on, pool, same

from explore.own_acked import ACKED, LARGE_ACKED
from explore.own_dealing import DEALING, LARGE_DEALING
from explore.own_scopes import LARGE_SCOPES, SCOPES
from explore.own_shutdowns import LARGE_SHUTDOWNS, SHUTDOWNS
from reactive_runtime import Flow
from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.atomics import AtomicInteger
from reactive_runtime.executors import ScheduledExecutor, SerialExecutor, TrampolineExecutor, VirtualTimeExecutor
from reactive_runtime.explore import cancel, request
from reactive_runtime.hot import EmitResult, PublishProcessor, SubmissionPublisher, UnicastProcessor
from reactive_runtime.processors import FlowProcessor
from reactive_runtime.subscribers import BufferedSubscriber

PROGRAMS: dict[str, list[Any]] = {
    "request": [request(2)],
    "request all": [request(MAX_DEMAND)],
    "cancel": [cancel()],
    "request, cancel": [[request(1), cancel()]],
    "request 0": [request(0)],
}
PAIRS: dict[str, list[Any]] = {
    "request | request all": [request(1), request(MAX_DEMAND)],
    "request | cancel": [request(2), cancel()],
    "request | request 0": [request(2), request(0)],
    "cancel | cancel": [cancel(), cancel()],
}


class Closed:
    """Numbers, from a generator that counts how often it was closed."""

    def __init__(self) -> None:
        self.opened = AtomicInteger()
        self.closed = AtomicInteger()

    def numbers(self) -> Iterator[int]:
        self.opened.add_and_get(1)
        try:
            yield 0
            yield 1
            yield 2
        finally:
            self.closed.add_and_get(1)


def fails_at_2() -> Iterator[int]:
    yield 0
    yield 1
    raise OSError("broken")


def one_pool(size: int = 2) -> Flow[int]:
    shared = pool()
    return Flow.range(3).subscribe_on(shared).publish_on(shared, prefetch=size)


def processor() -> FlowProcessor[int, int]:
    shared = pool()
    made: FlowProcessor[int, int] = FlowProcessor(lambda flow: flow.publish_on(shared, prefetch=2))
    Flow.range(3).subscribe(made)
    return made


def fed(hot: Any) -> Any:
    on(pool(), 2).subscribe(hot)
    return hot


def submitted() -> SubmissionPublisher[int]:
    executor = pool()
    publisher: SubmissionPublisher[int] = SubmissionPublisher(executor, max_buffer=1)

    def submit() -> None:
        publisher.offer(0)
        publisher.offer(1)
        publisher.close()

    executor.submit(submit)
    return publisher


class Reach(enum.Enum):
    """Which programs a publisher is put to."""

    WIDE = "`PROGRAMS` and `PAIRS`, to the end of 2 preemptions"
    NARROW = "`PROGRAMS`, to the end of 2 preemptions"
    SAMPLED = "`PROGRAMS`, sampled: it has three threads and more"


@dataclass(frozen=True)
class Own:
    """A publisher of 0, 1, 2 (or as many `elements`)."""

    name: str
    factory: Callable[[], Any]
    elements: int | None = 3
    """None: not known, because it fails."""
    reach: Reach = Reach.WIDE
    ascending: bool = True
    """Each element is larger than the one before."""


PUBLISHERS = [
    Own("range", lambda: Flow.range(3)),
    Own("a generator", lambda: Flow.from_supplier(Closed().numbers)),
    Own("a source that fails", lambda: Flow.from_supplier(fails_at_2), None),
    Own("map, filter", lambda: Flow.range(4).map(lambda n: n).filter(lambda n: n != 3)),
    Own("take", lambda: Flow.range(100).take(3)),
    Own("to_list", lambda: Flow.range(3).to_list(), 1),
    Own("subscribe_on", lambda: Flow.range(3).subscribe_on(pool())),
    Own("publish_on", lambda: Flow.range(3).publish_on(pool())),
    Own("publish_on a failing source", lambda: Flow.from_supplier(fails_at_2).publish_on(pool()), None),
    Own("publish_on a TrampolineExecutor", lambda: Flow.range(3).publish_on(TrampolineExecutor())),
    Own("publish_on a ScheduledExecutor", lambda: Flow.range(3).publish_on(ScheduledExecutor()), reach=Reach.NARROW),
    Own("publish_on a SerialExecutor", lambda: Flow.range(3).publish_on(SerialExecutor(pool())), reach=Reach.NARROW),
    Own(
        "from_publisher, publish_on",
        lambda: Flow.from_publisher(Flow.range(3)).publish_on(pool(), prefetch=2),
        reach=Reach.NARROW,
    ),
    Own("from_publisher", lambda: Flow.from_publisher(Flow.range(3))),
    Own("subscribe_on, publish_on", one_pool, reach=Reach.NARROW),
    Own("subscribe_on, publish_on, prefetch 1", lambda: one_pool(1), reach=Reach.NARROW),
    Own("a processor", processor, reach=Reach.NARROW),
    *(Own(name, each.factory, each.elements, Reach.SAMPLED, each.ascending) for name, each in parts(OnPool).items()),
    Own("PublishProcessor", lambda: fed(PublishProcessor(capacity=1)), None, reach=Reach.SAMPLED),
    Own("UnicastProcessor", lambda: fed(UnicastProcessor(capacity=1)), 2, reach=Reach.SAMPLED),
    Own("SubmissionPublisher", submitted, None, reach=Reach.SAMPLED),
]


# -- programs of another kind ---------------------------------------------------------------------------------


class Serial:
    """Two threads submit to a serial executor on a pool of two: tasks run one at a time, in order of submission."""

    def __init__(self) -> None:
        self.serial = SerialExecutor(ThreadPoolExecutor(1))
        self.running = AtomicInteger()
        self.log: list[str] = []

    def task(self, name: str) -> None:
        assert self.running.add_and_get(1) == 1, "two tasks at the same time"
        self.log.append(name)
        self.running.add_and_get(-1)

    def actor_a(self) -> None:
        self.serial.submit(self.task, "a1")
        self.serial.submit(self.task, "a2")

    def actor_b(self) -> None:
        self.serial.submit(self.task, "b")

    def at_end(self) -> None:
        assert sorted(self.log) == ["a1", "a2", "b"], self.log
        assert self.log.index("a1") < self.log.index("a2"), self.log


class SerialShutdown:
    """One submits, one shuts down: the future has a result, or `submit` raises; and `shutdown` comes back."""

    def __init__(self) -> None:
        self.serial = SerialExecutor(ThreadPoolExecutor(1))
        self.future: Future[int] | None = None

    def actor_submits(self) -> None:
        with suppress(RuntimeError):
            self.future = self.serial.submit(int)

    def actor_shuts_down(self) -> None:
        self.serial.shutdown()

    def at_end(self) -> None:
        assert self.future is None or self.future.result() == 0


class SerialCancel:
    """A waiting task is cancelled while the line moves."""

    def __init__(self) -> None:
        self.serial = SerialExecutor(ThreadPoolExecutor(1))
        self.ran = AtomicInteger()
        self.future: Future[int] = self.serial.submit(self.ran.add_and_get, 1)

    def actor_cancels(self) -> None:
        self.future.cancel()

    def actor_submits(self) -> None:
        self.serial.submit(int).result()

    def at_end(self) -> None:
        assert self.future.done()
        assert self.ran.get() == (0 if self.future.cancelled() else 1)


class PoolBelowShutDown:
    """The pool under a serial executor is shut down: every future ends, and none hangs."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)
        self.serial = SerialExecutor(self.pool)
        self.futures: list[Future[int]] = []

    def actor_submits(self) -> None:
        for _ in range(2):
            with suppress(RuntimeError):
                self.futures.append(self.serial.submit(int))

    def actor_shuts_down(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)

    def at_end(self) -> None:
        assert all(future.done() for future in self.futures), "a future that will never be completed"


class TimersInOrder:
    """Two threads schedule; each task runs when it is due, and not before."""

    def __init__(self) -> None:
        self.timers = ScheduledExecutor()
        self.log: list[str] = []

    def actor_a(self) -> None:
        self.timers.schedule(2, self.log.append, "late").result()

    def actor_b(self) -> None:
        self.timers.schedule(1, self.log.append, "early").result()

    def at_end(self) -> None:
        assert self.log == ["early", "late"], self.log


class TimerCancelled:
    """A task is cancelled as it becomes due: it runs, or it is cancelled, and never both."""

    def __init__(self) -> None:
        self.timers = ScheduledExecutor()
        self.ran = AtomicInteger()

    def actor_main(self) -> None:
        future = self.timers.schedule(0, self.ran.add_and_get, 1)
        self.cancelled = future.cancel()
        self.timers.shutdown()

    def at_end(self) -> None:
        assert self.ran.get() == (0 if self.cancelled else 1)


class TimersShutDown:
    """`shutdown` waits for what is scheduled, and what comes after it is refused."""

    def __init__(self) -> None:
        self.timers = ScheduledExecutor()
        self.future: Future[int] | None = None

    def actor_schedules(self) -> None:
        with suppress(RuntimeError):
            self.future = self.timers.schedule(1, int)

    def actor_shuts_down(self) -> None:
        self.timers.shutdown()

    def at_end(self) -> None:
        assert self.future is None or self.future.result() == 0


class VirtualTime:
    """One schedules while another one moves the clock: what was scheduled in time runs."""

    def __init__(self) -> None:
        self.clock = VirtualTimeExecutor()
        self.future: Future[int] | None = None

    def actor_schedules(self) -> None:
        self.future = self.clock.schedule(1, int)

    def actor_advances(self) -> None:
        self.clock.advance(2)

    def at_end(self) -> None:
        assert self.future is not None
        self.clock.advance(2)
        assert self.future.result() == 0


class BlockingIterator:
    """A `for` loop over a flow that runs on a pool."""

    def __init__(self) -> None:
        self.flow = Flow.range(3).subscribe_on(ThreadPoolExecutor(1))

    def actor_loop(self) -> None:
        assert list(self.flow) == [0, 1, 2]


class LoopOverGroups:
    """A loop over groups, one after the other: the group that it reads asks its source for more, and wakes the loop."""

    def actor_loops(self) -> None:
        groups = Flow.just(0, 1, 2, 3).group_by(lambda n: n)
        assert list(groups.concat_map(lambda pair: pair[1])) == [0, 1, 2, 3]


class LoopOverGroupsOfAPool:
    """The same, where the source has a thread of its own."""

    def __init__(self) -> None:
        self.groups = on(pool(), 3).group_by(same)

    def actor_loops(self) -> None:
        assert list(self.groups.concat_map(lambda pair: pair[1]).iterate(prefetch=1)) == [0, 1, 2]


class Looks:
    """A queue that is empty for some looks, and then gives its end."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    def get(self, block: bool, timeout: float) -> None:
        self.left -= 1
        if self.left >= 0:
            raise queue.Empty


class LoopBesideAQueue:
    """A loop whose thread looks into a queue, while another thread brings elements, and the end of them."""

    def __init__(self) -> None:
        self.other: UnicastProcessor[int] = UnicastProcessor()
        self.flow = Flow.merge(Flow.from_queue(Looks(2)), self.other)

    def actor_loop(self) -> None:
        assert list(self.flow) == [7]

    def actor_emits(self) -> None:
        self.other.emit(7)
        self.other.on_complete()


class LoopEndedBesideAQueue:
    """The same, where the signal of the other thread ends the loop, or the end of the queue does."""

    def __init__(self) -> None:
        self.other: UnicastProcessor[int] = UnicastProcessor()
        self.flow: Flow[int] = Flow.from_queue(Looks(2)).take_until(self.other)

    def actor_loop(self) -> None:
        assert list(self.flow) == []

    def actor_emits(self) -> None:
        self.other.emit(7)


class LoopClosedBesideAQueue:
    """The same, where the other thread closes the loop."""

    def __init__(self) -> None:
        flow: Flow[int] = Flow.merge(Flow.from_queue(Looks(2)), Flow.from_queue(Looks(1)))
        self.elements = flow.iterate()

    def actor_loop(self) -> None:
        with suppress(ValueError):  # the other thread closes it at the very moment when this one comes back to it
            assert list(self.elements) == []

    def actor_closes(self) -> None:
        self.elements.close()


class BlockingIteratorLeft:
    """The loop is left early: the source is closed, and no thread waits for anything."""

    def __init__(self) -> None:
        self.source = Closed()
        self.flow = Flow.from_supplier(self.source.numbers).subscribe_on(ThreadPoolExecutor(1))

    def actor_loop(self) -> None:
        elements = iter(self.flow)
        assert next(elements) == 0
        elements.close()  # type: ignore[attr-defined]

    def at_end(self) -> None:
        assert self.source.closed.get() == self.source.opened.get(), "the source's iterator was left open"


class FutureCancelled:
    """The future of a flow is cancelled while the flow runs on a pool."""

    def __init__(self) -> None:
        self.source = Closed()
        flow = Flow.from_supplier(self.source.numbers).subscribe_on(ThreadPoolExecutor(1))
        self.future = flow.to_future()

    def actor_cancels(self) -> None:
        self.future.cancel()

    def at_end(self) -> None:
        assert self.future.done()
        assert self.future.cancelled() or self.future.result() == 2
        assert self.source.closed.get() == self.source.opened.get(), "the source's iterator was left open"


class Waited:
    """`block` waits for a flow with a boundary."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)

    def actor_waits(self) -> None:
        assert Flow.range(3).subscribe_on(self.pool).publish_on(self.pool, prefetch=2).to_list().block() == [0, 1, 2]


class CallsUpstream:
    """Two threads note calls on an upstream, and leave: both calls are made."""

    def __init__(self) -> None:
        self.drain = DrainContext()
        self.made = AtomicInteger()

    def note(self) -> None:
        self.drain.later(lambda: self.made.add_and_get(1))
        self.drain._left()

    actor_a = note
    actor_b = note

    def at_end(self) -> None:
        assert self.made.get() == 2, "a call was lost"


class Shared:
    """Two subscribers of one flow that is shared: what one of them gets, the other gets too, or comes too late for."""

    def __init__(self) -> None:
        self.source = Closed()
        self.flow = Flow.from_supplier(self.source.numbers).share(capacity=1)
        self.elements: dict[str, list[int]] = {"a": [], "b": []}

    def actor_a(self) -> None:
        self.flow.subscribe(self.elements["a"].append)

    def actor_b(self) -> None:
        self.flow.subscribe(self.elements["b"].append)

    def at_end(self) -> None:
        for elements in self.elements.values():
            assert elements == [0, 1, 2][3 - len(elements) :], self.elements
        assert self.source.closed.get() == self.source.opened.get(), "the source's iterator was left open"


class ManyEmitters:
    """Two threads emit into one hot source: each element is delivered, or refused, and none is lost."""

    def __init__(self) -> None:
        self.hot: PublishProcessor[int] = PublishProcessor(capacity=1)
        self.elements: list[int] = []
        self.accepted = AtomicInteger()
        self.hot.subscribe(self.elements.append)

    def emit(self) -> None:
        for n in range(2):
            if self.hot.emit(n) is EmitResult.OK:
                self.accepted.add_and_get(1)

    actor_a = emit
    actor_b = emit

    def at_end(self) -> None:
        assert len(self.elements) == self.accepted.get() > 0, self.elements


class CancelBesideEmission:
    """One of two subscribers cancels while an element is emitted: who has gone needs no room, and nothing overflows."""

    def __init__(self) -> None:
        self.hot: PublishProcessor[int] = PublishProcessor(capacity=1)
        self.elements: list[int] = []
        self.hot.subscribe(self.elements.append)
        self.other = self.hot.subscribe(int)

    def actor_emits(self) -> None:
        self.emission = self.hot.emit(7)

    def actor_cancels(self) -> None:
        self.other.cancel()

    def at_end(self) -> None:
        assert self.emission is EmitResult.OK, self.emission
        assert self.elements == [7]


class Submitters:
    """Two threads submit to a publisher whose buffer has room for one; one closes it: what was submitted arrives."""

    def __init__(self) -> None:
        self.publisher: SubmissionPublisher[int] = SubmissionPublisher(pool(), max_buffer=1)
        self.future = self.publisher.count().to_future()
        self.submitted = AtomicInteger()

    def submit(self) -> None:
        with suppress(RuntimeError):
            self.publisher.submit(1)
            self.submitted.add_and_get(1)

    actor_a = submit

    def actor_b(self) -> None:
        self.submit()
        self.publisher.close()

    def at_end(self) -> None:
        assert self.future.done(), "the end was lost"
        assert self.future.result() == self.submitted.get(), "an element was lost"


class AsTaken:
    """A thread takes from a buffered subscriber while the publisher fills it."""

    def __init__(self) -> None:
        self.buffer: BufferedSubscriber[int] = BufferedSubscriber(capacity=1)
        self.pool = pool()

    def actor_takes(self) -> None:
        Flow.range(2).subscribe_on(self.pool).subscribe(self.buffer)
        assert list(self.buffer) == [0, 1]


class Counters:
    """Atomic steps of every kind, from two threads."""

    def __init__(self) -> None:
        self.number = AtomicInteger()

    def actor_a(self) -> None:
        self.number.get_and_add(2)
        self.number.update_and_get(lambda n: n * 1 + 1)

    def actor_b(self) -> None:
        self.number.get_and_update(lambda n: n + 4)
        while not self.number.compare_and_set(before := self.number.get(), before + 8):
            pass

    def at_end(self) -> None:
        assert self.number.get() == 15, self.number.get()


SCENARIOS = [
    Serial,
    SerialShutdown,
    SerialCancel,
    PoolBelowShutDown,
    TimersInOrder,
    TimerCancelled,
    TimersShutDown,
    VirtualTime,
    BlockingIterator,
    LoopOverGroups,
    BlockingIteratorLeft,
    LoopBesideAQueue,
    LoopEndedBesideAQueue,
    LoopClosedBesideAQueue,
    FutureCancelled,
    Waited,
    CallsUpstream,
    ManyEmitters,
    CancelBesideEmission,
    AsTaken,
    Counters,
    *SCOPES,
    *ACKED,
    *DEALING,
    *SHUTDOWNS,
]

LARGE = [
    LoopOverGroupsOfAPool,
    Shared,
    Submitters,
    *LARGE_SCOPES,
    *LARGE_ACKED,
    *LARGE_DEALING,
    *LARGE_SHUTDOWNS,
]
"""Too many schedules for all of them."""
