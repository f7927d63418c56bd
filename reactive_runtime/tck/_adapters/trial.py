"""One run of one check: the pools, readers and processes that it has, and how long it waits."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from reactive_runtime._support.thread_frames import thread_frames
from reactive_runtime.tck._adapters.demanding_reader import Reader, until
from reactive_runtime.tck._adapters.description import Adapter
from reactive_runtime.tck._adapters.workers import Worker
from reactive_runtime.tck._running.environment import started
from reactive_runtime.tck._running.failures import KIT, ConformanceError, described

__all__ = ["Limits", "Trial", "bounded"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long the checks wait, and how much they do.

    Args:
        patience: Seconds that the check waits for what must happen.
        quiet: Seconds in which nothing may happen.
        cancel_within: Seconds that `cancel` may take.
        tries: How often the kit measures `cancel`: the shortest time counts.
        backlog: How many messages the check of memory handles.
        growth: Bytes by which the memory may grow from its first tenth to its last.
    """

    patience: float
    quiet: float
    cancel_within: float
    tries: int
    backlog: int
    growth: int


class Trial:
    """The thread of the check owns it."""

    def __init__(self, rule: str, adapter: Adapter, limits: Limits) -> None:
        self.rule = rule
        self.adapter = adapter
        self.limits = limits
        self._pools: list[ThreadPoolExecutor] = []
        self._readers: list[Reader] = []
        self._workers: list[Worker] = []

    def fail(self, seen: str) -> NoReturn:
        """The adapter breaks the rule of this check."""
        raise ConformanceError(self.rule, seen, "")

    def until(self, what: Callable[[], object]) -> bool:
        """Wait for what must happen; whether it has."""
        return until(what, self.limits.patience)

    def progress(self, what: Callable[[], object], count: Callable[[], int]) -> bool:
        """Wait for what must happen, as long as a count grows within the patience."""
        while not what():
            before = count()
            if not until(lambda before=before: what() or count() > before, self.limits.patience):  # type: ignore[misc]
                return False
        return True

    def never(self, what: Callable[[], object]) -> bool:
        """Wait for what may not happen; whether it has not."""
        return not until(what, self.limits.quiet)

    def pool(self, threads: int = 2) -> Executor:
        """A pool that the trial shuts down."""
        pool = ThreadPoolExecutor(threads, thread_name_prefix="tck-adapter")
        self._pools.append(pool)
        return pool

    def read(
        self,
        demand: int = 0,
        *,
        consumer: str = "reader",
        keeps: bool = True,
        then: Callable[[Any], object] | None = None,
    ) -> Reader:
        """Open the flow for a reader with so much demand."""
        return self.subscribe(
            self.adapter.open(consumer, self.pool()).elements(), self.adapter.number, demand, keeps=keeps, then=then
        )

    def subscribe(self, flow: Any, number: Callable[[Any], int], demand: int, **how: Any) -> Reader:
        reader = Reader(number, **how)
        self._readers.append(reader)
        reader.request(demand)
        flow.subscribe(reader)
        return reader

    def wait(self, reader: Reader, n: int) -> None:
        """Wait for `n` elements of a reader: without them there is nothing to judge."""
        if self.progress(lambda: reader.count >= n or reader.ended, lambda: reader.count) and reader.count >= n:
            return
        why = f": {described(reader.error)}" if reader.error is not None else ""
        how = f"the flow ended{why}" if reader.ended else f"no more came within {self.limits.patience:g} s"
        self.fail(f"{reader.count} of {n} messages were delivered, and then {how}")

    def leave(self, reader: Reader) -> None:
        """Cancel, on another thread, and wait until the connection is closed, where that can be seen."""
        reader.refuse_rest()
        self.cancelled(reader)
        with suppress(Exception):  # it is not described, or the check of `cancel` finds it
            until(lambda: self.adapter.connections() == 0, self.limits.quiet * 5)

    def cancelled(self, reader: Reader) -> bool:
        """Cancel on another thread; whether it has returned within the patience."""
        thread = started(reader.cancel, "tck-cancel")
        thread.join(self.limits.patience)
        return not thread.is_alive()

    def start(self, consumer: str) -> Worker:
        """Start a worker in another process."""
        worker = Worker(self.adapter.worker(consumer))
        self._workers.append(worker)
        return worker

    def close(self) -> None:
        """End what is left."""
        for worker in self._workers:
            worker.kill()
        for reader in self._readers:
            reader.refuse_rest()
            with suppress(Exception):
                self.cancelled(reader)
        for pool in self._pools:
            pool.shutdown(wait=False)


def bounded(body: Callable[[], object], seconds: float, fail: Callable[[str], NoReturn]) -> None:
    """Run the body of a check on a thread of its own, and leave it behind where it does not end."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            body()
        except BaseException as error:
            raised.append(error)

    thread = started(run, "tck-check")
    thread.join(seconds)
    if thread.is_alive():
        fail(f"the check did not end within {seconds:g} s{_place(thread)}")
    if raised:
        raise raised[0]


def _place(thread: threading.Thread) -> str:
    frame = thread_frames().get(thread.ident or 0)
    frames = [item for item in traceback.extract_stack(frame) if not item.filename.startswith(KIT)]
    return f"; it was at {frames[-1].filename}:{frames[-1].lineno}, in {frames[-1].name}" if frames else ""
