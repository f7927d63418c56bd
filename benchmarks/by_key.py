"""`map_by_key` beside `flat_map` and beside a hand-written shard of single-thread executors: the time of the same work.

A million elements of 10,000 keys, on four threads, medians of pairs in turn. Each way checks the order of each key.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from side_by_side import console, pairs, reached

from reactive_runtime import Flow

N = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
KEYS = 10_000
THREADS = 4
HELD = 256


def key_of(n: int) -> int:
    return n * 7919 % KEYS


def work(n: int) -> int:
    return n + 1


class Order:
    """The last result of each key. One thread at a time calls `take`."""

    def __init__(self) -> None:
        self.count = 0
        self.last = [-1] * KEYS
        self.kept = True

    def take(self, result: int) -> None:
        key = key_of(result - 1)
        self.kept = self.kept and self.last[key] < result
        self.last[key] = result
        self.count += 1


def checked(way: Callable[[Order], None], *, order_kept: bool = True) -> Callable[[], None]:
    def run() -> None:
        order = Order()
        way(order)
        assert order.count == N, f"{order.count} results"
        assert order.kept or not order_kept, "the order of a key was not kept"

    return run


def by_key(order: Order) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        flow = Flow.range(N).map_by_key(work, key_of, pool, concurrency=THREADS, prefetch=HELD)
        flow.for_each(order.take)


def flat_map(order: Order) -> None:
    """The same calls, and no order: a flow on the pool for each element. With 4, 64 and 256 at once it is slower."""
    with ThreadPoolExecutor(THREADS) as pool:

        def later(n: int) -> Flow[int]:
            return Flow.from_callable(lambda: work(n)).subscribe_on(pool)

        Flow.range(N).flat_map(later, concurrency=16).for_each(order.take)


def shard(order: Order) -> None:
    """A key has one of the single-thread executors; so many elements are held, and results come to one function."""
    shards = [ThreadPoolExecutor(1) for _ in range(THREADS)]
    room, lock = threading.BoundedSemaphore(HELD), threading.Lock()

    def done(future: Future[int]) -> None:
        with lock:
            order.take(future.result())
        room.release()

    for n in range(N):
        room.acquire()
        shards[hash(key_of(n)) % THREADS].submit(work, n).add_done_callback(done)
    for executor in shards:
        executor.shutdown()


def main() -> None:
    ours = checked(by_key)
    for name, other, most in (
        ("flat_map", checked(flat_map, order_kept=False), 1.3),
        ("a hand-written shard of single-thread executors", checked(shard), 1.5),
    ):
        low, middle, high = pairs(ours, other, 3, time.perf_counter)
        console.print(f"map_by_key, in the time of {name}: {middle:.2f} ({low:.2f} to {high:.2f}), at most {most}")
        reached(f"map_by_key, {N:,} elements, {KEYS:,} keys: x {name}", middle, at_most=most)


if __name__ == "__main__":
    main()
