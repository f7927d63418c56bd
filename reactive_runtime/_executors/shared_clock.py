"""Which clock a flow has: that of its context, or one of real time that all flows share."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import ClassVar, Final, TypeVar

from reactive_runtime._core.drains.combinator import Clock
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.exits import contained
from reactive_runtime._core.runtime import activity, primitives
from reactive_runtime._core.runtime.arguments import check_clock
from reactive_runtime._core.runtime.primitives import Future
from reactive_runtime._core.sources.naming import executor_name
from reactive_runtime._executors.executor_threads import runs_here
from reactive_runtime._executors.timers import ScheduledExecutor, with_threads

__all__ = ["SharedClock", "Workers", "clock_in", "clock_of", "clock_used", "forget_shared_clock", "shared_clock"]

C = TypeVar("C", bound="Clock")


class Workers:
    """A few daemon threads that make the calls of timers, so that no call keeps the thread of the timers.

    A thread begins when all others are at work.
    """

    MOST: ClassVar[int] = min(32, (os.cpu_count() or 1) + 4)

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = primitives.Condition()
        self._calls: deque[Callable[[], object]] = deque()  # _changed; the calls that no thread has taken yet
        self._idle = 0  # _changed; how many threads wait for a call
        self._threads: set[primitives.Thread] = set()  # _changed
        with_threads.add(self)

    def take(self, call: Callable[[], object]) -> None:
        """Make this call on one of the threads, in the order of coming. An error of the call goes to the hook."""
        with self._changed:
            self._calls.append(call)
            if len(self._calls) <= self._idle:
                self._changed.notify()
                return
            if len(self._threads) == self.MOST or self._begun() or self._threads:
                return
            call = self._calls.pop()
        self._make(call)  # the machine gives no thread: make the call here, late for other timers, rather than never

    def _begun(self) -> bool:
        """Begin one more thread. False: the machine gives none. The caller holds _changed."""
        name = f"{self._name}-{len(self._threads) + 1}"
        thread = primitives.Thread(target=contained, args=(self._run,), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._threads.add(thread)
        return True

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._calls:
                    self._idle += 1
                    self._changed.wait()
                    self._idle -= 1
                call = self._calls.popleft()
            self._make(call)
            del call  # it may be the last reference to a stream

    def _make(self, call: Callable[[], object]) -> None:
        try:
            call()
        except BaseException as error:
            dropping.raised("what a timer woke raised", error)

    def runs_here(self) -> bool:
        """Whether this is one of the threads."""
        with self._changed:
            return primitives.current_thread() in self._threads

    def _begin_anew(self) -> None:
        """Forget the calls and the threads of the parent, in a child of `os.fork`; a thread that forked goes on."""
        self._changed = primitives.Condition()
        self._calls.clear()
        self._idle = 0
        self._threads &= {primitives.current_thread()}


class SharedClock:
    """Real time for all flows that were given no clock. `clock_in` gives it; its threads begin with the first timer.

    One thread waits until a timer is due, and hands the call to a few others. So a subscriber that keeps its thread
    holds up no timer of another flow, unless as many subscribers do so as there are threads: slow work has its place on
    an executor. All are daemons, which do not keep the interpreter. In a child of `os.fork` it begins anew.
    """

    def __init__(self) -> None:
        self._timers = ScheduledExecutor("reactive-timers")
        self._workers = Workers("reactive-timers")

    def __repr__(self) -> str:
        return "the shared clock"

    def now(self) -> float:
        """Monotonic seconds."""
        return self._timers.now()

    def schedule(self, delay: float, fn: Callable[[], object], /) -> Future[None]:
        """Run `fn` in `delay` seconds; the future's `cancel()` takes it back until then."""
        return self._timers.schedule(delay, self._workers.take, fn)

    def runs_here(self) -> bool:
        """Whether this is one of its threads."""
        return self._workers.runs_here() or self._timers.runs_here()


_sharing = primitives.Lock()
_shared: SharedClock | None = None  # _sharing; made at first use, and for each run of an exploration anew


_clock: Final[ContextVar[Clock | None]] = ContextVar("clock", default=None)


@contextmanager
def clock_of(clock: C) -> Iterator[C]:
    """Within the block, `clock` is that of each flow that is subscribed to, where its operators were given none.

    It belongs to the context, as a context variable does: a flow keeps the clock of the context it was subscribed to
    in, on whatever threads it goes on. Without one, all flows share a clock of real time.

    Args:
        clock: An executor with a clock: `ScheduledExecutor`, `VirtualTimeExecutor`, or another with `now` and
            `schedule`.

    Yields:
        `clock`.

    Raises:
        TypeError: `clock` is None, or has no `now` or no `schedule`. It is raised where the block is entered.

    Example:
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.executors import VirtualTimeExecutor
        >>> with clock_of(VirtualTimeExecutor()) as clock:
        ...     _ = Flow.interval(60).take(2).subscribe(print)
        >>> clock.advance(120)
        0
        1
    """
    if clock is None:
        raise TypeError("clock_of: an executor with a clock is needed, not None")
    token = _clock.set(check_clock("clock_of", clock))
    counts = getattr(clock, "activity", None)
    counted = activity.of_context.set(() if counts is None else (counts,))
    try:
        yield clock
    finally:
        activity.of_context.reset(counted)
        _clock.reset(token)


def clock_in(context: Context | None = None) -> Clock:
    """The clock of a context: that of `clock_of`, or the one that all share.

    Args:
        context: The context to ask. None: the one of the caller.

    Returns:
        The clock. The shared one is made at its first use; its threads are daemons.
    """
    chosen = _clock.get() if context is None else context.get(_clock)
    return shared_clock() if chosen is None else chosen


def shared_clock() -> SharedClock:
    """The clock of real time that all flows share. Internal: a program has no use for it."""
    global _shared
    with _sharing:
        if _shared is None:
            _shared = SharedClock()
        return _shared


def forget_shared_clock() -> None:
    """Forget the shared clock, so that the next flow makes it anew: the threads of an exploration have ended.

    The explorer calls it while no flow runs, and without the lock: to take the lock would be a step of the program that
    it explores.
    """
    global _shared
    _shared = None


class _ContextClock:
    """Stands for the clock of the context in which a flow is subscribed to: a sink asks it whose thread this is."""

    def runs_here(self) -> bool:
        return runs_here(clock_in())

    def __repr__(self) -> str:
        return executor_name(clock_in())


_context_clock: Final = _ContextClock()


def clock_used(clock: Clock | None) -> object:
    """The object whose thread a flow needs that has an operator with this `clock`; see `uses` of `combinator_flow`."""
    return _context_clock if clock is None else clock


def _begin_anew() -> None:
    global _sharing
    _sharing = primitives.Lock()
    for thread in list(with_threads):
        thread._begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
