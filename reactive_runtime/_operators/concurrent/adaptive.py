"""`concurrency="auto"`: tasks, as many in flight as their measured latency allows."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Executor
from typing import Any, Final

from reactive_runtime._core.drains.combinator import PENDING, InnerSubscription
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import PREFETCH, at_least
from reactive_runtime._executors.executor_threads import threads_of
from reactive_runtime._operators.concurrent.limiter import Limiter
from reactive_runtime._operators.concurrent.tasks import Flight, Tasks
from reactive_runtime._support.shown import shown

__all__ = ["Adaptive", "check_concurrency", "most_calls"]

HELD: Final = 8
"""So many times the limit are in flight, or done and waiting: in order, a slow call keeps the results of others."""


def check_concurrency(operator: str, value: object) -> None:
    """Raise TypeError if `value` is neither an int nor a string, ValueError if it is below 1 or not "auto"."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f'{operator}: concurrency must be an int from 1, or "auto", not {shown(value)}')
        return
    at_least(operator, "concurrency", 1, value)  # type: ignore[arg-type]  # it raises TypeError


def most_calls(executor: Executor) -> int:
    """How many calls may be in flight on an executor, at most: one for each worker, where their number is known."""
    return min(max(1, threads_of(executor) or PREFETCH), PREFETCH)


class Adaptive(Tasks):
    """A mixin before a class of tasks. It moves the limit of calls in flight, up to the `concurrency` of the class."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.limiter = Limiter(self.concurrency)  # the drain's lock
        self.begun_at: dict[Flight, float] = {}  # the drain's lock

    def waits_for(self) -> str:
        """See `Combinator.waits_for`."""
        calls = super().waits_for()
        return f"{calls}, of which {self.limiter.limit} may be in flight" if calls else ""

    def news(self, outer: InnerSubscription, busy: int) -> Any:
        limiter = self.limiter
        # A look without the lock: a thread that lands a task, and may move the limit, leaves a note after that.
        limit = limiter.limit
        room = min(limit - limiter.running, min(HELD * limit, PREFETCH) - busy)
        most = self.concurrency  # 0: the pool is broken, and no task may begin
        news = super().news(outer, most - room if room > 0 and most else most)
        if news is PENDING and room > 0:
            now = primitives.monotonic()
            with self.drain.lock:
                limiter.starves(now)
        return news

    def launch(self, flight: Flight) -> None:
        now = primitives.monotonic()
        with self.drain.lock:
            self.begun_at[flight] = now
            self.limiter.began(now)
        super().launch(flight)

    def land(self, flight: Flight, results: deque[Any] | None, error: BaseException | None) -> bool:
        now = primitives.monotonic()
        with self.drain.lock:
            begun = self.begun_at.pop(flight, None)
            if begun is not None:
                self.limiter.ended(begun, now)
        return super().land(flight, results, error)
