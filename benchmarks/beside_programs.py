"""Six programs, each written with reactive_runtime, by hand, and with the peers that can do it.

A program is a function of `n` that returns a result; the ways of one program return the same result for the same `n`.
`beside.py` measures them, beside `java/Beside.java`, which has the same six in RxJava and Reactor.
"""

from __future__ import annotations

import asyncio
import importlib.util
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import reactivex
from reactivex import operators as rx
from reactivex.scheduler import EventLoopScheduler, ThreadPoolScheduler

from reactive_runtime import Flow

stream: Any = importlib.import_module("aiostream.stream") if importlib.util.find_spec("aiostream") else None
"""None where aiostream is not installed: its ways are left out, and `beside.py` says so."""

DEPTH = 256
"""How many elements may wait between two threads, or tasks."""

THREADS, UNDER_WAY = 8, 16
"""Threads that call, and calls that are under way or wait for their turn."""

GROUPS, INNER = 50, 10
"""The groups of `group_by`, and the elements of an inner flow of `flat_map`."""

ROW, PACK, PAUSE = 1024, 64, 0.005
"""The slow consumer: bytes of a row, rows in a pack, and seconds that it takes to write a pack."""

T = TypeVar("T")
R = TypeVar("R")

Way = Callable[[int], Any]

WAYS: dict[str, dict[str, Way]] = {}
"""The ways of each program, by peer."""

RESULTS: dict[str, Way] = {
    "chain": lambda n: sum(range(2, n + 2, 2)),
    "boundary": lambda n: sum(range(n)),
    "calls": lambda n: digest(range(1, n + 1)),
    "short calls": lambda n: digest(range(1, n + 1)),
    "flatten": lambda n: n // INNER * sum(range(INNER)),
    "group": lambda n: [sum(range(name, n, GROUPS)) for name in range(min(n, GROUPS))],
    "slow": lambda n: sum(k % 251 for k in range(n)),
}
"""The result of each program, by other means."""


def way(program: str, peer: str) -> Callable[[Way], Way]:
    """Register a function as the `peer`'s way of a program."""

    def register(function: Way) -> Way:
        WAYS.setdefault(program, {})[peer] = function
        return function

    return register


POOLS: dict[str, ThreadPoolExecutor] = {}
LOOPS: dict[str, EventLoopScheduler] = {}
"""The threads of reactivex: of its schedulers the one with the fastest `observe_on`."""


def pool(name: str, threads: int = 1) -> ThreadPoolExecutor:
    """The same threads in each round."""
    if name not in POOLS:
        POOLS[name] = ThreadPoolExecutor(threads, name)
    return POOLS[name]


def event_loop(name: str) -> EventLoopScheduler:
    """The same thread in each round, for reactivex."""
    if name not in LOOPS:
        LOOPS[name] = EventLoopScheduler()
    return LOOPS[name]


def close() -> None:
    """End all these threads."""
    for executor in POOLS.values():
        executor.shutdown()
    for loop in LOOPS.values():
        loop.dispose()
    POOLS.clear()
    LOOPS.clear()


class Sum:
    """The same `on_next` for all."""

    def __init__(self) -> None:
        self.total = 0
        self.done = threading.Event()

    def on_next(self, n: int) -> None:
        self.total += n

    def of(self, flow: Flow[int]) -> int:
        """Subscribe with unbounded demand, and wait for the end."""
        flow.subscribe(self.on_next, on_complete=self.done.set)
        self.done.wait()
        return self.total

    def of_rx(self, observable: reactivex.Observable[int]) -> int:
        observable.subscribe(self.on_next, on_completed=self.done.set)
        self.done.wait()
        return self.total

    async def of_stream(self, elements: Any) -> int:
        async with elements.stream() as streamer:
            async for n in streamer:
                self.on_next(n)
        return self.total


def run(main: Callable[[int], Coroutine[Any, Any, Any]]) -> Way:
    """A coroutine function as a way: with an event loop of its own."""
    return lambda n: asyncio.run(main(n))


# -- 1. A chain on one thread -----------------------------------------------------------------------------------------


def add(n: int) -> int:
    return n + 1


def odd(n: int) -> bool:
    return n % 2 == 1


@way("chain", "reactive_runtime")
def chain(n: int) -> int:
    return Sum().of(Flow.range(n).map(add).filter(odd).map(add))


@way("chain", "loop")
def chain_by_hand(n: int) -> int:
    total = Sum()
    on_next = total.on_next
    for k in range(n):
        m = add(k)
        if odd(m):
            on_next(add(m))
    return total.total


@way("chain", "reactivex")
def chain_rx(n: int) -> int:
    return Sum().of_rx(reactivex.from_iterable(range(n)).pipe(rx.map(add), rx.filter(odd), rx.map(add)))


# -- 2. A boundary between two threads --------------------------------------------------------------------------------


@way("boundary", "reactive_runtime")
def boundary(n: int) -> int:
    return Sum().of(Flow.range(n).subscribe_on(pool("one")).publish_on(pool("two"), prefetch=DEPTH))


@way("boundary", "queue.Queue")
def boundary_by_queue(n: int) -> int:
    numbers: queue.Queue[int] = queue.Queue(DEPTH)
    total = Sum()

    def produce() -> None:
        for k in range(n):
            numbers.put(k)
        numbers.put(-1)

    def consume() -> None:
        while (k := numbers.get()) != -1:
            total.on_next(k)

    both = [pool("one").submit(produce), pool("two").submit(consume)]
    for thread in both:
        thread.result()
    return total.total


@way("boundary", "Executor.map")
def boundary_by_map(n: int) -> int:
    total = Sum()
    for _ in mapped(pool("two"), total.on_next, range(n), DEPTH):
        pass
    return total.total


def mapped(executor: ThreadPoolExecutor, function: Callable[[T], R], elements: Iterable[T], ahead: int) -> Iterator[R]:
    """`Executor.map`, which can bound what it takes ahead from Python 3.14 on."""
    if sys.version_info >= (3, 14):
        return executor.map(function, elements, buffersize=ahead)
    return executor.map(function, elements)


@way("boundary", "asyncio.Queue")
@run
async def boundary_by_tasks(n: int) -> int:
    numbers: asyncio.Queue[int] = asyncio.Queue(DEPTH)
    total = Sum()

    async def produce() -> None:
        for k in range(n):
            await numbers.put(k)
        await numbers.put(-1)

    producer = asyncio.create_task(produce())
    while (k := await numbers.get()) != -1:
        total.on_next(k)
    await producer
    return total.total


@way("boundary", "reactivex")
def boundary_rx(n: int) -> int:
    source = reactivex.from_iterable(range(n), event_loop("one"))
    return Sum().of_rx(source.pipe(rx.observe_on(event_loop("two"))))


# -- 3. Concurrent calls, their results in order ----------------------------------------------------------------------


def call(n: int) -> int:
    """A call of a service that takes a millisecond."""
    time.sleep(0.001)
    return n + 1


def digest(results: Iterable[int]) -> int:
    """A number that another order of the results changes."""
    known = 0
    for n in results:
        known = (known * 31 + n) % 1_000_003
    return known


def callers() -> ThreadPoolExecutor:
    return pool("callers", THREADS)


Calls = Callable[[int, Callable[[int], int]], int]


def both(peer: str) -> Callable[[Calls], Calls]:
    """Register a way of two programs: calls that wait, and calls that return at once."""

    def register(function: Calls) -> Calls:
        way("calls", peer)(lambda n: function(n, call))
        way("short calls", peer)(lambda n: function(n, add))
        return function

    return register


@both("reactive_runtime")
def calls(n: int, function: Callable[[int], int]) -> int:
    return digest(Flow.range(n).map_parallel(function, callers(), concurrency=UNDER_WAY))


@both("queue.Queue")
def calls_by_queue(n: int, function: Callable[[int], int]) -> int:
    futures: queue.Queue[Future[int] | None] = queue.Queue(UNDER_WAY)
    threads = callers()

    def produce() -> None:
        for k in range(n):
            futures.put(threads.submit(function, k))
        futures.put(None)

    producer = pool("one").submit(produce)
    known = digest(future.result() for future in iter(futures.get, None))
    producer.result()
    return known


@both("Executor.map")
def calls_by_map(n: int, function: Callable[[int], int]) -> int:
    return digest(mapped(callers(), function, range(n), UNDER_WAY))


@both("asyncio.Queue")
def calls_by_tasks(n: int, function: Callable[[int], int]) -> int:
    async def main() -> int:
        futures: asyncio.Queue[asyncio.Future[int] | None] = asyncio.Queue(UNDER_WAY)
        loop, threads = asyncio.get_running_loop(), callers()

        async def produce() -> None:
            for k in range(n):
                await futures.put(loop.run_in_executor(threads, function, k))
            await futures.put(None)

        producer = asyncio.create_task(produce())
        results = []
        while (future := await futures.get()) is not None:
            results.append(await future)
        await producer
        return digest(results)

    return asyncio.run(main())


@both("reactivex")
def calls_rx(n: int, function: Callable[[int], int]) -> int:
    """`start` begins a call at once, so all of them are submitted; `merge` of one at a time keeps their order."""
    threads = ThreadPoolScheduler(1)
    threads.executor = callers()
    results: list[int] = []
    done = threading.Event()

    def begun(k: int) -> reactivex.Observable[int]:
        return reactivex.start(lambda: function(k), threads)

    source = reactivex.from_iterable(range(n)).pipe(rx.map(begun), rx.merge(max_concurrent=1))
    source.subscribe(results.append, on_completed=done.set)
    done.wait()
    return digest(results)


# -- 4. Many small inner flows ----------------------------------------------------------------------------------------


@way("flatten", "reactive_runtime")
def flatten(n: int) -> int:
    return Sum().of(Flow.range(n // INNER).flat_map(lambda _: Flow.range(INNER), concurrency=UNDER_WAY, prefetch=DEPTH))


@way("flatten", "loop")
def flatten_by_hand(n: int) -> int:
    total = Sum()
    for _ in range(n // INNER):
        for k in range(INNER):
            total.on_next(k)
    return total.total


@way("flatten", "asyncio.Queue")
@run
async def flatten_by_tasks(n: int) -> int:
    numbers: asyncio.Queue[int] = asyncio.Queue(DEPTH)
    under_way = asyncio.Semaphore(UNDER_WAY)
    total = Sum()

    async def inner() -> None:
        for k in range(INNER):
            await numbers.put(k)
        under_way.release()

    async def outer() -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(n // INNER):
                await under_way.acquire()
                tasks.create_task(inner())
        await numbers.put(-1)

    producer = asyncio.create_task(outer())
    while (k := await numbers.get()) != -1:
        total.on_next(k)
    await producer
    return total.total


@way("flatten", "reactivex")
def flatten_rx(n: int) -> int:
    outer = reactivex.from_iterable(range(n // INNER))
    return Sum().of_rx(
        outer.pipe(rx.map(lambda _: reactivex.from_iterable(range(INNER))), rx.merge(max_concurrent=UNDER_WAY))
    )


# -- 5. An aggregate for each group -----------------------------------------------------------------------------------


def key(n: int) -> int:
    return n % GROUPS


def plus(total: int, n: int) -> int:
    return total + n


@way("group", "reactive_runtime")
def group(n: int) -> list[int]:
    groups = Flow.range(n).group_by(key, groups=GROUPS, prefetch=DEPTH)
    return sorted(groups.flat_map(lambda pair: pair[1].reduce(plus), concurrency=GROUPS))


@way("group", "loop")
def group_by_hand(n: int) -> list[int]:
    totals: dict[int, int] = {}
    for k in range(n):
        name = key(k)
        totals[name] = plus(totals.get(name, 0), k)
    return sorted(totals.values())


@way("group", "asyncio.Queue")
@run
async def group_by_tasks(n: int) -> list[int]:
    queues: dict[int, asyncio.Queue[int]] = {}

    async def total(numbers: asyncio.Queue[int]) -> int:
        result = 0
        while (k := await numbers.get()) != -1:
            result = plus(result, k)
        return result

    async with asyncio.TaskGroup() as tasks:
        totals = []
        for k in range(n):
            name = key(k)
            if name not in queues:
                queues[name] = asyncio.Queue(DEPTH)
                totals.append(tasks.create_task(total(queues[name])))
            await queues[name].put(k)
        for numbers in queues.values():
            await numbers.put(-1)
    return sorted(task.result() for task in totals)


@way("group", "reactivex")
def group_rx(n: int) -> list[int]:
    results: list[int] = []

    def total(numbers: reactivex.Observable[int]) -> reactivex.Observable[int]:
        return numbers.pipe(rx.reduce(plus))

    source = reactivex.from_iterable(range(n)).pipe(rx.group_by(key), rx.flat_map(total))
    source.subscribe(results.append)
    return sorted(results)


# -- 6. A slow consumer behind a fast producer ------------------------------------------------------------------------


class Rows:
    """Rows of a kilobyte, and a consumer that writes them in packs. Counts the rows that wait in between."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.made = 0  # written by the producer alone
        self.taken = 0  # this and the others by the consumer alone
        self.waiting = 0
        self.total = 0

    def __iter__(self) -> Iterator[bytes]:
        for k in range(self.n):
            self.made += 1
            yield bytes((k % 251,)) * ROW

    def take(self, row: bytes) -> bool:
        """Whether a pack is full, and has to be written."""
        self.waiting = max(self.waiting, self.made - self.taken)
        self.taken += 1
        self.total += row[0]
        return self.taken % PACK == 0

    def write(self, row: bytes) -> None:
        if self.take(row):
            time.sleep(PAUSE)

    async def write_async(self, row: bytes) -> None:
        if self.take(row):
            await asyncio.sleep(PAUSE)


WAITED: deque[int] = deque(maxlen=1)
"""How many rows waited at most, in the last run of the sixth program."""


def slow(function: Callable[[Rows], None]) -> Way:
    def run(n: int) -> int:
        rows = Rows(n)
        function(rows)
        WAITED.append(rows.waiting)
        return rows.total

    return run


@way("slow", "reactive_runtime")
@slow
def slow_flow(rows: Rows) -> None:
    done = threading.Event()
    made = Flow.from_iterable(rows).subscribe_on(pool("one")).publish_on(pool("two"), prefetch=DEPTH)
    made.subscribe(rows.write, on_complete=done.set)
    done.wait()


@way("slow", "loop")
@slow
def slow_by_hand(rows: Rows) -> None:
    for row in rows:
        rows.write(row)


@way("slow", "queue.Queue")
@slow
def slow_by_queue(rows: Rows) -> None:
    waiting: queue.Queue[bytes] = queue.Queue(DEPTH)

    def produce() -> None:
        for row in rows:
            waiting.put(row)
        waiting.put(b"")

    def consume() -> None:
        while row := waiting.get():
            rows.write(row)

    both = [pool("one").submit(produce), pool("two").submit(consume)]
    for thread in both:
        thread.result()


@way("slow", "Executor.map")
@slow
def slow_by_map(rows: Rows) -> None:
    for _ in mapped(pool("two"), rows.write, rows, DEPTH):
        pass


@way("slow", "asyncio.Queue")
@slow
def slow_by_tasks(rows: Rows) -> None:
    async def main() -> None:
        waiting: asyncio.Queue[bytes] = asyncio.Queue(DEPTH)

        async def produce() -> None:
            for row in rows:
                await waiting.put(row)
            await waiting.put(b"")

        producer = asyncio.create_task(produce())
        while row := await waiting.get():
            await rows.write_async(row)
        await producer

    asyncio.run(main())


@way("slow", "reactivex")
@slow
def slow_rx(rows: Rows) -> None:
    done = threading.Event()
    source = reactivex.from_iterable(rows, event_loop("one"))
    source.pipe(rx.observe_on(event_loop("two"))).subscribe(rows.write, on_completed=done.set)
    done.wait()


# -- aiostream, whose streams have one thread and no buffers ----------------------------------------------------------

if stream is not None:

    @way("chain", "aiostream")
    @run
    async def chain_aiostream(n: int) -> int:
        first = stream.map(stream.range(n), add)
        return await Sum().of_stream(stream.map(stream.filter(first, odd), add))

    @both("aiostream")
    def calls_aiostream(n: int, function: Callable[[int], int]) -> int:
        async def main() -> int:
            loop, threads = asyncio.get_running_loop(), callers()

            async def on_a_thread(k: int) -> int:
                return await loop.run_in_executor(threads, function, k)

            results = stream.list(stream.map(stream.range(n), on_a_thread, task_limit=UNDER_WAY))
            return digest(await results or ())

        return asyncio.run(main())

    @way("flatten", "aiostream")
    @run
    async def flatten_aiostream(n: int) -> int:
        inner = stream.flatmap(stream.range(n // INNER), lambda _: stream.range(INNER), task_limit=UNDER_WAY)
        return await Sum().of_stream(inner)

    @way("slow", "aiostream")
    @slow
    def slow_aiostream(rows: Rows) -> None:
        async def main() -> None:
            async with stream.iterate(rows).stream() as streamer:
                async for row in streamer:
                    await rows.write_async(row)

        asyncio.run(main())
