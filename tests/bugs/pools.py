"""Tasks of a pool: threads that are not started by name."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait


class PoolCounter:
    """Two tasks add to one number."""

    def __init__(self) -> None:
        self.count = 0

    def add(self) -> None:
        self.count += 1

    def actor_main(self) -> None:
        with ThreadPoolExecutor(2) as pool:
            wait([pool.submit(self.add), pool.submit(self.add)])
        assert self.count == 2, self.count


class OneWorkerCounter(PoolCounter):
    """A pool of one is serial."""

    def actor_main(self) -> None:
        with ThreadPoolExecutor(1) as pool:
            wait([pool.submit(self.add), pool.submit(self.add)])
        assert self.count == 2, self.count


class OrderOfTasks:
    """Relies on tasks that run in the order of their submission, on a pool of two."""

    workers = 2

    def __init__(self) -> None:
        self.log: list[int] = []

    def actor_main(self) -> None:
        with ThreadPoolExecutor(self.workers) as pool:
            for n in range(3):
                pool.submit(self.log.append, n)
        assert self.log == [0, 1, 2], self.log


class OrderOfOne(OrderOfTasks):
    workers = 1


class CancelledTooLate:
    """Takes it that `cancel` of a future means that its task does not run, without looking at the answer."""

    def __init__(self) -> None:
        self.closed = False

    def work(self) -> None:
        assert not self.closed, "works on what is closed"

    def close(self, future: Future[None]) -> None:
        future.cancel()
        self.closed = True

    def actor_main(self) -> None:
        pool = ThreadPoolExecutor(1)
        future = pool.submit(self.work)
        self.close(future)
        pool.shutdown()
        if not future.cancelled():
            future.result()


class CancelledInTime(CancelledTooLate):
    def close(self, future: Future[None]) -> None:
        if not future.cancel():
            wait([future])
        self.closed = True


class SubmitAfterShutdown:
    """Looks whether the pool is open, and submits; another thread shuts it down in between."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)
        self.open = True
        self.lock = threading.Lock()

    def submit(self) -> None:
        if self.open:
            self.pool.submit(int)

    def close(self) -> None:
        self.open = False
        self.pool.shutdown()

    def actor_submits(self) -> None:
        self.submit()

    def actor_closes(self) -> None:
        self.close()


class GuardedShutdown(SubmitAfterShutdown):
    def submit(self) -> None:
        with self.lock:
            super().submit()

    def close(self) -> None:
        with self.lock:
            self.open = False
        self.pool.shutdown()


class CallbackFirst:
    """Uses in a callback what is stored after the callback was added."""

    def __init__(self) -> None:
        self.seen: list[Future[int] | None] = []
        self.future: Future[int] | None = None

    def done(self, future: Future[int]) -> None:
        self.seen.append(self.future)

    def actor_main(self) -> None:
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(int)
            self.add(future)
        assert self.seen == [future], "the callback came before the field was set"

    def add(self, future: Future[int]) -> None:
        future.add_done_callback(self.done)
        self.future = future


class FieldFirst(CallbackFirst):
    def add(self, future: Future[int]) -> None:
        self.future = future
        future.add_done_callback(self.done)


PAIRS = [
    (PoolCounter, OneWorkerCounter),
    (OrderOfTasks, OrderOfOne),
    (CancelledTooLate, CancelledInTime),
    (SubmitAfterShutdown, GuardedShutdown),
    (CallbackFirst, FieldFirst),
]
