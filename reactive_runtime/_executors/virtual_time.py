"""A clock that only `advance` moves, for tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from reactive_runtime._core.drains.combinator import Clock, Timer
from reactive_runtime._core.fusion.step import describe
from reactive_runtime._core.fusion.subscription import PulledSubscription
from reactive_runtime._core.runtime import activity, primitives
from reactive_runtime._core.runtime.arguments import seconds_of
from reactive_runtime._executors.task_book import Task
from reactive_runtime._executors.timers import TimedExecutor

__all__ = ["SECOND", "VirtualTimeExecutor", "nanoseconds_of", "now_ns"]


def nanoseconds_of(seconds: float) -> int:
    """The nearest whole number of nanoseconds; at least 1 where `seconds` is above 0."""
    fraction, whole = math.modf(seconds) if isinstance(seconds, float) else (0, seconds)
    return int(whole) * SECOND + round(fraction * SECOND) or int(seconds > 0)


def now_ns(clock: Clock) -> int:
    """The time of a clock in nanoseconds; exact if the clock counts nanoseconds."""
    counted: Callable[[], int] | None = getattr(clock, "now_ns", None)
    return round(clock.now() * SECOND) if counted is None else counted()


SECOND: Final = 10**9
"""Nanoseconds."""


def _begin_of(start: float) -> float:
    """Check `start`, the time at which a clock begins."""
    if isinstance(start, bool) or not isinstance(start, int | float):
        raise TypeError(f"VirtualTimeExecutor: start must be a number of seconds, not {type(start).__name__}")
    if not math.isfinite(start):
        raise ValueError(f"VirtualTimeExecutor: start must be a finite number of seconds, not {start}")
    return start


AT_ONCE: Final = 100_000
"""How many tasks may run at one virtual time before their real time counts."""


STANDS_STILL: Final = 10.0
"""Seconds of real time for tasks of one virtual time, where a clock waits for nothing (`timeout=0`)."""


class VirtualTimeExecutor(TimedExecutor):
    """Timers on a clock that only `advance` moves; tasks run on the thread that advances it. For tests.

    Time is counted in whole nanoseconds: seconds are rounded to the nearest, a delay above 0 to 1 at least. So three
    times 0.1 seconds are 0.3 seconds.

    A flow may have boundaries. Before time moves on, and before `advance` returns, the clock waits until the tasks on
    executors and the coroutines are done that flows on this clock have begun: those that were subscribed to in its
    context (`clock_of`, `StepVerifier`), those with an operator that was given it, and all that a task of the clock has
    set off. A flow on two clocks is waited for by both. The clock does not wait for work that a thread of the program
    does outside of flows, nor for a task that the program submits and hands to `from_future`, nor for a timer of real
    time, nor for a coroutine of `from_async` whose buffer is full.

    Args:
        start: The time at the beginning, in seconds.
        timeout: How many seconds of real time they may take, each time; 0 or more. 0: they are not waited for.

    Raises:
        TypeError: `start` or `timeout` is no number.
        ValueError: `start` or `timeout` is not finite, or `timeout` is below 0.

    Example:
        >>> clock = VirtualTimeExecutor()
        >>> _ = clock.schedule(60, print, "a minute has passed")
        >>> clock.advance(59)
        >>> clock.advance(1)
        a minute has passed
    """

    def __init__(self, start: float = 0.0, *, timeout: float = 10.0) -> None:
        super().__init__()
        self.activity: activity.Activity = activity.Activity()
        self._timeout = seconds_of("VirtualTimeExecutor", "timeout", timeout)
        self._time = nanoseconds_of(_begin_of(start))  # _changed
        self._advancing = 0  # _changed; the thread that moves the clock; 0: none does

    def runs_here(self) -> bool:
        """Whether this thread moves the clock, and is inside a task: it moves on when that has ended.

        Returns:
            True inside `advance`, on its thread.
        """
        with self._changed:
            return self._advancing == primitives.get_ident()

    def threads(self) -> int:
        """How many threads run tasks at once.

        Returns:
            Always one.
        """
        return 1

    def now(self) -> float:
        """Virtual seconds, from `start`.

        Returns:
            The virtual time. Inside a task it is the time at which that was due.
        """
        return self.now_ns() / SECOND

    def now_ns(self) -> int:
        """Virtual nanoseconds, from `start`. Operators with a clock count by them.

        Returns:
            The virtual time, exactly.
        """
        with self._changed:
            return self._time

    def _due(self, delay: float) -> int:
        return self.now_ns() + nanoseconds_of(delay)

    def advance(self, seconds: float = 0.0) -> None:
        """Move the clock on by `seconds`, stopping at each task that is due on the way to run it.

        Tasks that are scheduled meanwhile run too, if they are due by then. An error of a task goes to its future.

        Args:
            seconds: Seconds, from 0. 0 runs what is due now.

        Raises:
            TypeError: `seconds` is no number.
            ValueError: `seconds` is below 0, or not finite.
            RuntimeError: The clock is moving already: called inside a task, or while another thread advances it. Or
                this thread is inside of a task that the clock would wait for.
            TimeoutError: Tasks that the flows have begun on other threads did not come to rest in `timeout` seconds of
                real time. It says where that is. Or tasks have scheduled one another with a delay of 0 for that long
                (10 seconds where `timeout` is 0), and more than 100,000 of them. The clock has stopped at the time that
                it had reached.
            BaseException: An interrupt in a task, what is no `Exception`, goes on up.

        Thread:
            May be called on any thread; the tasks run on it.
        """
        seconds_of("advance", "seconds", seconds)
        with self._changed:
            if self._advancing:
                raise RuntimeError("advance: the clock is moving already; schedule a task instead")
            self._advancing = primitives.get_ident()
            now = self._time
            end = now + nanoseconds_of(seconds)
        try:
            with activity.inside((self.activity,)):
                self._advance(now, end)
        finally:
            with self._changed:
                self._advancing = 0

    def _advance(self, now: int, end: int) -> None:
        at_once, began = 0, primitives.monotonic()
        while True:
            task = self._next_until(now)
            if task is None:
                self.rest("advance")  # the tasks on other threads may schedule more, for now or later
                task = self._next_until(end)
            if task is None:
                return
            task.run_here()
            before, now = now, self.now_ns()
            at_once += 1
            if now != before:
                at_once, began = 0, primitives.monotonic()
            elif at_once % AT_ONCE == 0 and primitives.monotonic() - began > (self._timeout or STANDS_STILL):
                raise TimeoutError(
                    f"advance: {at_once:,} tasks have run at {now / SECOND:g} s of virtual time, which does not move"
                    f" on: the last was {_in_words(task.fn)}. Tasks that schedule one another with a delay of 0 do so"
                    " for ever: give one of them a delay, or an end"
                )

    def rest(self, caller: str) -> None:
        """Wait until nothing that flows on this clock have begun on other threads is under way.

        Args:
            caller: The caller that an error names.

        Raises:
            TimeoutError: It did not come to rest in `timeout` seconds of real time.
            RuntimeError: This thread is inside of a task that the clock would wait for.
        """
        if self._timeout:
            self.activity.wait(caller, self._timeout)

    def _next_until(self, end: int) -> Task | None:
        with self._changed:
            due = self._timers.next_due()
            if due is None or due > end:
                self._time = max(self._time, end)
                return None
            self._time = max(self._time, int(due))
            return self._timers.pop()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks. Does not wait: what is left runs when the clock is advanced.

        Args:
            wait: Has no effect.
            cancel_futures: Whether to cancel the tasks that have not begun.
        """
        self._book.close(cancel_futures)


def _in_words(task: Callable[..., Any]) -> str:
    """Say what a task of a clock is."""
    while isinstance(task, partial):
        task = task.func
    timer = getattr(task, "__self__", None)
    if not isinstance(timer, Timer):
        return describe(task)
    from reactive_runtime._core.timeout_reason import awaited_by  # here: it imports modules that import this one

    return f"a timer of a flow; {awaited_by(timer.drain)}" if isinstance(timer.drain, PulledSubscription) else "a timer"
