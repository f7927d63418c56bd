"""How a sink that blocks waits for its flow, and refuses to wait where the flow needs its thread."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from reactive_runtime._core.drains.drain_context import Waiter
from reactive_runtime._core.fusion.subscription import PulledSubscription
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.core_flow import Use, resources_of, uses_of
from reactive_runtime._core.sources.flow_source import IterableSource
from reactive_runtime._core.sources.naming import executor_name
from reactive_runtime._core.timeout_reason import kept_by
from reactive_runtime._executors.shared_clock import shared_clock
from reactive_runtime._operators.flow_base import FlowBase
from reactive_runtime.executors import blocking_is_allowed, runs_here

__all__ = ["Overrun", "Wait"]

logger: Final = logging.getLogger("reactive_runtime")

SEEN: Final = 16
"""How many executors a sink that waits remembers. It looks at any other whenever a flow begins there."""


class Wait:
    """How a sink waits for its flow, on the thread that makes this.

    A flow that needs the very thread that waits for it may never end. The plan of the flow names its executors, but not
    those of flows that a user's function makes: an operator that is about to subscribe to one reports it (`begins`), on
    any thread. Only the waiting thread knows whether an executor runs on it: `begins` wakes it for each new executor,
    and it looks (`_look`).
    """

    __slots__ = ("_lock", "_news", "_over", "_seen", "_sink", "_source", "_wake_up", "thread")

    def __init__(self, sink: str, source: FlowBase[Any]) -> None:
        """Raise RuntimeError if the plan of the flow needs this thread."""
        self._sink = sink
        self._source = source
        self.thread: int = primitives.get_ident()  # set once; for a look from outside
        self._wake_up: primitives.Semaphore | None = None  # _lock; set once, by `prepare`
        self._lock = primitives.Lock()
        self._over = blocking_is_allowed()  # _lock; the wait is over
        self._news: list[tuple[FlowBase[Any], str]] = []  # _lock; flows that functions made, each with its operator
        self._seen: tuple[Any, ...] = ()  # _lock; executors that the thread has looked at; read without the lock
        if not self._over:
            self._refuse((use for part in source._parts() for use in part.uses()), "")

    def begins(self, source: FlowBase[Any], operator: str) -> None:
        """See `Waiter`."""
        seen = self._seen
        if self._over:  # a look without the lock saves the rest
            return
        flow_source = source._source
        # Most flows are of this kind; the rest would find the same.
        if type(flow_source) is IterableSource and flow_source.executor in seen:
            return
        for resource in resources_of(source):
            if resource not in seen:
                with self._lock:
                    if self._over or resource in self._seen:
                        continue
                    self._seen = (*self._seen[1 - SEEN :], resource)
                    self._news.append((source, operator))
                    wake_up = self._wake_up
                if wake_up is not None:
                    wake_up.release()

    def stands_for(self, waiter: Waiter) -> bool:
        """See `Waiter`."""
        return self is waiter

    def prepare(self) -> None:
        """Let other threads wake this one from now on. Called before it waits."""
        with self._lock:
            self._wake_up = primitives.Semaphore(0)

    def wake(self) -> None:
        """Wake the thread: the flow has an element, or has ended. Any thread calls it, after `prepare`."""
        assert self._wake_up is not None
        self._wake_up.release()

    def a_moment(self, seconds: float | None = None) -> bool:
        """Wait until another thread calls `wake`. False: `seconds`, or the longest wait, have passed.

        Raise RuntimeError if the flow needs this thread.
        """
        if self._news:  # a look without the lock: a later report wakes this thread
            self._look()
        assert self._wake_up is not None
        return self._wake_up.acquire(timeout=primitives.one_wait(seconds))

    def has_news(self) -> bool:
        """Whether there is something to `look` at. Reads without the lock: a later report wakes the thread."""
        return bool(self._news)

    def look(self) -> None:
        """Raise RuntimeError if a flow that has begun needs this thread."""
        if self.has_news():
            self._look()

    def until(self, future: primitives.Future[Any], seconds: float | None) -> None:
        """Wait until the future is done; TimeoutError when `seconds` have passed."""
        end = None if seconds is None else primitives.monotonic() + seconds
        self.prepare()
        future.add_done_callback(lambda _: self.wake())
        while not future.done():
            left = None if end is None else max(0.0, end - primitives.monotonic())
            woken = self.a_moment(left)
            if not woken and not future.done() and left is not None and left <= primitives.LONGEST_WAIT:
                raise TimeoutError

    def over(self) -> None:
        """End the wait."""
        with self._lock:
            self._over = True
            self._news, self._seen = [], ()

    def _look(self) -> None:
        with self._lock:
            news, self._news = self._news, []
        for source, operator in news:
            self._refuse(uses_of(source), f", a flow that `{operator}` has begun")

    def _refuse(self, uses: Iterable[Use], begun: str) -> None:
        for what, resource in uses:
            if runs_here(resource):
                here = primitives.current_thread().name
                raise RuntimeError(
                    f"{self._sink}: this thread, {here}, belongs to {executor_name(resource)}, which the flow needs for"
                    f" `{what}`{begun}: to wait here for the elements of `{self._source}` can be for ever. Subscribe"
                    " instead, or wait on another thread (executors.blocking_allowed() switches this check off)"
                )


class Overrun:
    """Logs a warning when a flow has kept the thread that waits for it as long as it was to take; once.

    Such a flow is not interrupted, and the wait does not end: without the warning nothing would say why.
    """

    __slots__ = ("_future", "_ident", "_seconds", "_shown", "_sink", "_subscription", "_thread")

    def __init__(
        self, sink: str, shown: FlowBase[Any], seconds: float, subscription: Callable[[], PulledSubscription | None]
    ) -> None:
        """The thread that makes this is about to run the flow. `subscription`: gives it, once there is one."""
        self._sink = sink
        self._shown = shown
        self._seconds = seconds
        self._subscription = subscription
        self._ident = primitives.get_ident()
        self._thread = primitives.current_thread().name
        self._future: primitives.Future[None] | None = None
        with suppress(RuntimeError):  # no thread begins at the end of the interpreter
            self._future = shared_clock().schedule(seconds, self._log)

    def over(self) -> None:
        """Note that the flow has given the thread back."""
        if self._future is not None:
            self._future.cancel()

    def _log(self) -> None:
        logger.warning(
            "%s: `%s` has kept the thread that waits for it, %s, for %g s, and is not interrupted: %s. Give it a thread"
            " of its own (subscribe_on), and the wait ends in time",
            self._sink,
            self._shown,
            self._thread,
            self._seconds,
            kept_by(self._subscription(), self._ident),
        )
