"""Four executors: in order, on this very thread, at a time, and in virtual time; and which clock a flow has.

All are `concurrent.futures.Executor`s: what a task raises is its future's, `submit` after `shutdown` raises
RuntimeError, and `shutdown(cancel_futures=True)` cancels what has not begun. No lock is held while a task, a
future's callback or another executor is called.
"""

from __future__ import annotations

import heapq
import math
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import Context, ContextVar
from functools import partial
from typing import Any, ClassVar, Final, ParamSpec, TypeVar
from weakref import WeakSet

from reactive_runtime._core.drains.combinator import Clock, Timer
from reactive_runtime._core.drains.drain import Drain
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.exits import contained
from reactive_runtime._core.fusion.step import describe
from reactive_runtime._core.fusion.subscription import PulledSubscription
from reactive_runtime._core.runtime import activity, primitives
from reactive_runtime._core.runtime.arguments import check_clock, seconds_of
from reactive_runtime._core.runtime.primitives import Future
from reactive_runtime._core.sources.naming import executor_name
from reactive_runtime._support.public_names import at_home
from reactive_runtime.errors import RejectedError

__all__ = [
    "Clock",
    "ScheduledExecutor",
    "SerialExecutor",
    "TrampolineExecutor",
    "VirtualTimeExecutor",
    "blocking_allowed",
    "blocking_is_allowed",
    "clock_in",
    "clock_of",
    "runs_here",
    "threads_of",
]

at_home(__name__, Clock)

T = TypeVar("T")
P = ParamSpec("P")
C = TypeVar("C", bound="Clock")


class _Task:
    """A call to be made, and the future of its result."""

    __slots__ = ("args", "fn", "future", "kwargs")

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.future: Future[Any] = Future()

    def run(self) -> BaseException | None:
        """Make the call, unless it was cancelled; return what it raised, which the future has too."""
        if not self.future.set_running_or_notify_cancel():
            return None
        try:
            result = self.fn(*self.args, **self.kwargs)
        except BaseException as error:  # as the pools of the standard library: a task's error is its future's
            _settle(self.future.set_exception, error)
            return error
        _settle(self.future.set_result, result)
        return None

    def run_here(self) -> None:
        """`run` on a thread that is the user's: what is no Exception (Ctrl-C) goes on up as well."""
        error = self.run()
        if error is not None and not isinstance(error, Exception):
            raise error


def _settle(settle: Callable[[Any], object], outcome: Any) -> None:
    """Make a future done. It logs the errors of its callbacks, and lets their exits through (`failures.exits`)."""
    try:
        settle(outcome)
    except BaseException as error:
        dropping.raised("a callback of a future raised", error)


class _Book:
    """Which futures of an executor are unfinished, and whether it still takes tasks."""

    def __init__(self, executor: Executor) -> None:
        self._name = type(executor).__name__
        self._changed = primitives.Condition()
        self._open = True  # _changed
        self._unfinished: dict[Future[Any], None] = {}  # _changed; in the order of submission

    def enter(self, future: Future[Any]) -> None:
        """Take a task on; RuntimeError after shutdown."""
        with self._changed:
            if not self._open:
                raise RuntimeError(f"cannot schedule new futures after shutdown of this {self._name}")
            self._unfinished[future] = None
        future.add_done_callback(self._leave)

    def _leave(self, future: Future[Any]) -> None:
        with self._changed:
            self._unfinished.pop(future, None)
            self._changed.notify_all()

    def close(self, cancel_futures: bool) -> None:
        """Take no more; cancel what has not begun, if asked to."""
        with self._changed:
            self._open = False
            waiting = list(self._unfinished) if cancel_futures else []
        for future in waiting:
            future.cancel()

    def begin_anew(self) -> None:
        """In a child of `os.fork`: the unfinished tasks are the parent's."""
        self._changed = primitives.Condition()
        self._unfinished = {}

    def wait(self) -> None:
        """Return when every task has finished."""
        with self._changed:
            self._changed.wait_for(lambda: not self._unfinished)


class SerialExecutor(Executor):
    """Runs tasks one at a time, in the order of submission, on the threads of another executor.

    At most one task of the other executor is under way; it gives its thread back after 64 of ours, so that many
    serial executors on a small pool progress together. What a task wrote the next one sees. Where the other
    executor refuses, or drops what was queued there, all waiting futures fail with RejectedError, and `submit`
    raises it from then on. `shutdown` waits for our tasks, and does not shut the other executor down.

    Args:
        executor: Where the tasks run, one at a time.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with ThreadPoolExecutor(4) as pool, SerialExecutor(pool) as serial:
        ...     list(serial.map(str, range(3)))
        ['0', '1', '2']
    """

    def __init__(self, executor: Executor) -> None:
        self._book = _Book(self)
        self._serial = _SerialTasks(executor)
        self.activity: Any = getattr(
            executor, "activity", None
        )  # its tasks wait for the clock that those of `executor` do

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn` after all that was submitted before.

        Args:
            fn: The call to make.
            *args: Its arguments.
            **kwargs: Its named arguments.

        Returns:
            The future of its result. What `fn` raises is its future's.

        Raises:
            RejectedError: The executor below refuses, or refused before.
            RuntimeError: After `shutdown`.

        Thread:
            May be called on any thread. `fn` runs on a thread of the executor below.
        """
        task = _Task(fn, args, kwargs)
        self._book.enter(task.future)
        self._serial.join(task)
        return task.future

    def runs_here(self) -> bool:
        """Whether this thread is one of the other executor's.

        Returns:
            True or False, as `runs_here` of the module says of the executor below.
        """
        return runs_here(self._serial.executor)

    def threads(self) -> int | None:
        """How many threads can run the next task: inside of one, this thread only.

        Returns:
            1 inside a task; else as many as the executor below has, or None where that cannot be known.
        """
        return 1 if self._serial.runner == primitives.get_ident() else threads_of(self._serial.executor)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks; wait for those there are, unless called by one of them.

        Args:
            wait: Whether to return only when every task has finished.
            cancel_futures: Whether to cancel the tasks that have not begun.
        """
        self._book.close(cancel_futures)
        if wait and self._serial.runner != primitives.get_ident():
            self._book.wait()


class _SerialTasks(Drain):
    """The tasks of a serial executor: the drain's demand is how many they are."""

    __slots__ = ("_refused", "_tasks", "runner")

    batch: ClassVar[int] = 64

    def __init__(self, executor: Executor) -> None:
        super().__init__(executor)
        self._tasks: deque[_Task] = deque()  # lock
        self._refused: RejectedError | None = None  # lock; final
        self.runner = 0  # the thread inside a task; written by the drain's owner, which is that thread

    def join(self, task: _Task) -> None:
        with self.lock:
            refused = self._refused
            self._tasks.append(task)
        if refused is None:
            self.add(1)
            with self.lock:
                refused = self._refused
        if refused is not None:
            self.rejected(refused)
            raise refused

    def _turn(self, allowance: int) -> int:
        self.runner = primitives.get_ident()
        for _ in range(allowance):
            with self.lock:
                task = self._tasks.popleft()
            task.run()
        self.runner = 0
        return allowance

    def rejected(self, error: RejectedError) -> None:
        with self.lock:
            self._refused = error
            tasks, self._tasks = self._tasks, deque()
        for task in tasks:
            if task.future.set_running_or_notify_cancel():
                _settle(task.future.set_exception, error)


class TrampolineExecutor(Executor):
    """Runs tasks on the thread that submits them; a task submitted from inside a task runs after it.

    So tasks that submit tasks need no stack, and each thread's run in order. An interrupt in a task goes on up
    through `submit`; what was still waiting on that thread is cancelled.

    Example:
        >>> with TrampolineExecutor() as here:
        ...     def task():
        ...         here.submit(print, "inner")
        ...         print("outer")
        ...     _ = here.submit(task)
        outer
        inner
    """

    def __init__(self) -> None:
        self._book = _Book(self)
        self._here = primitives.ThreadLocal()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn` now, or after the task that this thread is inside of.

        Args:
            fn: The call to make.
            *args: Its arguments.
            **kwargs: Its named arguments.

        Returns:
            The future of its result. What `fn` raises is its future's.

        Raises:
            RuntimeError: After `shutdown`.

        Thread:
            May be called on any thread, and `fn` runs on it.
        """
        task = _Task(fn, args, kwargs)
        self._book.enter(task.future)
        waiting: deque[_Task] | None = getattr(self._here, "waiting", None)
        if waiting is not None:
            waiting.append(task)
        else:
            self._bounce(task)
        return task.future

    def _bounce(self, task: _Task) -> None:
        waiting: deque[_Task] = deque([task])
        self._here.waiting = waiting
        try:
            while waiting:
                waiting.popleft().run_here()
        finally:
            self._here.waiting = None
            for left in waiting:
                left.future.cancel()

    def runs_here(self) -> bool:
        """Whether this thread is inside a task: what is submitted now begins when that has ended.

        Returns:
            True inside a task of this executor.
        """
        return getattr(self._here, "waiting", None) is not None

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks; wait for those of other threads, unless called by a task.

        Args:
            wait: Whether to return only when every task has finished.
            cancel_futures: Whether to cancel the tasks that have not begun.
        """
        self._book.close(cancel_futures)
        if wait and getattr(self._here, "waiting", None) is None:
            self._book.wait()


class _Timers:
    """Tasks by the time they are due, then by the order they came in. The executor's lock owns it."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, _Task]] = []
        self._count = 0

    def add(self, due: float, task: _Task) -> None:
        self._count += 1
        heapq.heappush(self._heap, (due, self._count, task))

    def next_due(self) -> float | None:
        """When the next task that was not cancelled is due."""
        while self._heap and self._heap[0][2].future.cancelled():
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self) -> _Task:
        return heapq.heappop(self._heap)[2]

    def purge(self) -> None:
        """Forget the cancelled ones: they must not pile up until they would have been due."""
        self._heap = [entry for entry in self._heap if not entry[2].future.cancelled()]
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)


class _TimedExecutor(Executor):
    """What the two executors with a clock share."""

    def __init__(self) -> None:
        self._book = _Book(self)
        self._changed = primitives.Condition()
        self._timers = _Timers()  # _changed
        self._cancelled = 0  # _changed; cancelled since the last purge

    def now(self) -> float:
        """The time, in seconds from some beginning."""
        raise NotImplementedError

    def _due(self, delay: float) -> float:
        """When a task is due that is scheduled now, by the measure of the timers."""
        return self.now() + delay

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn` as soon as can be, after what is due already.

        Args:
            fn: The call to make.
            *args: Its arguments.
            **kwargs: Its named arguments.

        Returns:
            The future of its result. What `fn` raises is its future's.

        Raises:
            RuntimeError: After `shutdown`.
        """
        return self.schedule(0, fn, *args, **kwargs)

    def schedule(self, delay: float, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn` in `delay` seconds.

        Args:
            delay: Seconds, from 0.
            fn: The call to make.
            *args: Its arguments.
            **kwargs: Its named arguments.

        Returns:
            The future of its result. Its `cancel()` takes the call back, until it runs.

        Raises:
            TypeError: `delay` is no number.
            ValueError: `delay` is below 0, or not finite.
            RuntimeError: After `shutdown`.

        Thread:
            May be called on any thread. `fn` runs on the thread that advances the clock.
        """
        if isinstance(delay, bool) or not isinstance(delay, int | float):
            raise TypeError(f"schedule: delay must be a number of seconds, not {type(delay).__name__}")
        if not (0 <= delay < math.inf):
            raise ValueError(f"schedule: delay must be a number of seconds from 0, not {delay}")
        task = _Task(fn, args, kwargs)
        self._book.enter(task.future)
        with self._changed:
            self._timers.add(self._due(delay), task)
            self._changed.notify_all()
        task.future.add_done_callback(self._forget)
        return task.future

    def _forget(self, future: Future[Any]) -> None:
        if not future.cancelled():
            return
        with self._changed:
            self._cancelled += 1
            if self._cancelled * 2 > len(self._timers):
                self._timers.purge()
                self._cancelled = 0
            self._changed.notify_all()


class ScheduledExecutor(_TimedExecutor):
    """Timers: runs tasks when they are due, one at a time, on one thread of its own.

    The thread starts with the first task, is a daemon, and ends with `shutdown`, when nothing is left to wait
    for: tasks that are not yet due are waited for as well, unless they are cancelled. In a child of `os.fork` it begins
    anew, without the tasks that wait in the parent.

    Args:
        name: The name of the thread.

    Example:
        >>> with ScheduledExecutor() as timers:
        ...     timer = timers.schedule(0.01, print, "ten milliseconds later")
        ten milliseconds later
    """

    def __init__(self, name: str = "timers") -> None:
        super().__init__()
        self._name = name
        self._thread: primitives.Thread | None = None  # _changed
        self._ending = False  # _changed
        _with_threads.add(self)

    def _begin_anew(self) -> None:
        """In a child of `os.fork`, where no other thread is, and the locks may be held for ever."""
        self._changed = primitives.Condition()
        if self._thread is not None and self._thread is not primitives.current_thread():
            self._thread = None
            self._timers = _Timers()
            self._book.begin_anew()

    def now(self) -> float:
        """Monotonic seconds.

        Returns:
            The time of `time.monotonic`.
        """
        return primitives.monotonic()

    def schedule(self, delay: float, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `fn` in `delay` seconds, on the thread of this executor.

        Args:
            delay: Seconds, from 0.
            fn: The call to make.
            *args: Its arguments.
            **kwargs: Its named arguments.

        Returns:
            The future of its result. Its `cancel()` takes the call back, until it runs.

        Raises:
            TypeError: `delay` is no number.
            ValueError: `delay` is below 0, or not finite.
            RuntimeError: After `shutdown`, or where the machine gives no thread.

        Thread:
            May be called on any thread. `fn` runs on the timers' thread.
        """
        future = super().schedule(delay, fn, *args, **kwargs)
        try:
            with self._changed:
                if self._thread is None:
                    thread = primitives.Thread(target=contained, args=(self._run,), name=self._name, daemon=True)
                    thread.start()
                    self._thread = thread
        except RuntimeError:  # the machine gives no thread: the next task may have one
            future.cancel()
            raise
        return future

    def runs_here(self) -> bool:
        """Whether this is the timers' thread.

        Returns:
            True inside a task.
        """
        with self._changed:
            return self._thread is primitives.current_thread()

    def threads(self) -> int:
        """How many threads it has.

        Returns:
            Always one.
        """
        return 1

    def _run(self) -> None:
        while (task := self._wait_for_one()) is not None:
            task.run()

    def _wait_for_one(self) -> _Task | None:
        with self._changed:
            while True:
                due = self._timers.next_due()
                if due is None and self._ending:
                    return None
                left = None if due is None else due - self.now()
                if left is not None and left <= 0:
                    return self._timers.pop()
                self._changed.wait(primitives.one_wait(left))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks; wait for those there are, unless called by one of them.

        Args:
            wait: Whether to return only when every task has finished, those that are not yet due as well.
            cancel_futures: Whether to cancel the tasks that have not begun.
        """
        self._book.close(cancel_futures)
        with self._changed:
            self._ending = True
            thread = self._thread
            self._changed.notify_all()
        if wait and thread is not None and thread.ident != primitives.get_ident():
            thread.join()


class _Workers:
    """Daemon threads, a few at most, each begun when all others are at work, for what must not keep the timers'."""

    MOST: ClassVar[int] = min(32, (os.cpu_count() or 1) + 4)

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = primitives.Condition()
        self._calls: deque[Callable[[], object]] = deque()  # _changed; those that no thread has taken yet
        self._idle = 0  # _changed; threads that wait for a call
        self._threads: set[primitives.Thread] = set()  # _changed
        _with_threads.add(self)

    def take(self, call: Callable[[], object]) -> None:
        """Make this call on one of the threads, in the order of coming. What it raises goes to the hook."""
        with self._changed:
            self._calls.append(call)
            if len(self._calls) <= self._idle:
                self._changed.notify()
                return
            if len(self._threads) == self.MOST or self._begun() or self._threads:
                return
            call = self._calls.pop()
        self._make(call)  # the machine gives no thread: here, and late for others, rather than never

    def _begun(self) -> bool:
        """One more thread; False where the machine gives none. Under _changed."""
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
            del call  # it may be all that a stream was held by

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
        """In a child of `os.fork`: the one thread that may be here goes on, when its call has returned."""
        self._changed = primitives.Condition()
        self._calls.clear()
        self._idle = 0
        self._threads &= {primitives.current_thread()}


class SharedClock:
    """Real time for all flows that were given no clock. `clock_in` gives it; nothing of it begins before it is used.

    One thread waits for what is due, and only hands it over: to a few others, which make the calls. So a subscriber
    that keeps its thread holds up no other flow's timer, unless as many do as there are threads: slow work has its
    place on an executor. All are daemons, and do not keep the interpreter. In a child of `os.fork` it begins anew.
    """

    def __init__(self) -> None:
        self._timers = ScheduledExecutor("reactive-timers")
        self._workers = _Workers("reactive-timers")

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


_with_threads: WeakSet[ScheduledExecutor | _Workers] = WeakSet()
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
    """The clock of real time that all flows share. Not exported: a program has no use for it."""
    global _shared
    with _sharing:
        if _shared is None:
            _shared = SharedClock()
        return _shared


def forget_shared_clock() -> None:
    """The next flow without a clock of its own makes the shared one anew. For an exploration, whose threads have ended.

    Called while no flow runs, and without the lock: to take it would be a step of the program that is explored. Not
    exported: a program has no use for it.
    """
    global _shared
    _shared = None


class _ContextClock:
    """Stands for the clock of whichever context a flow is subscribed to in, where a sink asks whose thread it is on."""

    def runs_here(self) -> bool:
        return runs_here(clock_in())

    def __repr__(self) -> str:
        return executor_name(clock_in())


_context_clock: Final = _ContextClock()


def clock_used(clock: Clock | None) -> object:
    """What a flow with an operator that was given `clock` needs a thread of; see `uses` of `combinator_flow`."""
    return _context_clock if clock is None else clock


def _begin_anew() -> None:
    global _sharing
    _sharing = primitives.Lock()
    for thread in list(_with_threads):
        thread._begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def nanoseconds_of(seconds: float) -> int:
    """The nearest whole number of nanoseconds; at least 1 where `seconds` is above 0."""
    fraction, whole = math.modf(seconds) if isinstance(seconds, float) else (0, seconds)
    return int(whole) * SECOND + round(fraction * SECOND) or int(seconds > 0)


def now_ns(clock: Clock) -> int:
    """The time of a clock in nanoseconds, exactly where the clock counts them."""
    counted: Callable[[], int] | None = getattr(clock, "now_ns", None)
    return round(clock.now() * SECOND) if counted is None else counted()


SECOND: Final = 10**9
"""Nanoseconds."""


def _begin_of(start: float) -> float:
    """`start`, where it is a number that a clock may begin at."""
    if isinstance(start, bool) or not isinstance(start, int | float):
        raise TypeError(f"VirtualTimeExecutor: start must be a number of seconds, not {type(start).__name__}")
    if not math.isfinite(start):
        raise ValueError(f"VirtualTimeExecutor: start must be a finite number of seconds, not {start}")
    return start


AT_ONCE: Final = 100_000
"""So many tasks may run at one virtual time before their real time counts."""

STANDS_STILL: Final = 10.0
"""Seconds of real time for tasks of one virtual time, where a clock waits for nothing (`timeout=0`)."""


class VirtualTimeExecutor(_TimedExecutor):
    """Timers on a clock that only `advance` moves; tasks run on the thread that advances it. For tests.

    Time is counted in whole nanoseconds: seconds are rounded to the nearest, a delay above 0 to 1 at least. So three
    times 0.1 seconds are 0.3 seconds.

    A flow may have boundaries. Before time moves on, and before `advance` returns, the clock waits until the tasks on
    executors and the coroutines are done that flows on this clock have begun: those that were subscribed to in its
    context (`clock_of`, `StepVerifier`), those with an operator that was given it, and all that a task of the clock has
    set off. A flow on two clocks is waited for by both. The clock does not wait for what a thread of the program does
    by itself, nor for a task that the program submits and hands to `from_future`, nor for a timer of real time, nor for
    a coroutine of `from_async` whose buffer is full.

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

        Tasks that are scheduled meanwhile run too, if they are due by then. What a task raises is its future's.

        Args:
            seconds: Seconds, from 0. 0 runs what is due now.

        Raises:
            TypeError: `seconds` is no number.
            ValueError: `seconds` is below 0, or not finite.
            RuntimeError: The clock is moving already: called inside a task, or while another thread advances it. Or
                this thread is inside of a task that the clock would wait for.
            TimeoutError: What the flows have begun on other threads did not come to rest in `timeout` seconds of real
                time. It says where that is. Or tasks have scheduled one another with a delay of 0 for that long (10
                seconds where `timeout` is 0), and more than 100,000 of them. The clock has stopped at the time that it
                had reached.
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
                self.rest("advance")  # it may schedule more, for now or later
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
            caller: What an error names.

        Raises:
            TimeoutError: It did not come to rest in `timeout` seconds of real time.
            RuntimeError: This thread is inside of a task that the clock would wait for.
        """
        if self._timeout:
            self.activity.wait(caller, self._timeout)

    def _next_until(self, end: int) -> _Task | None:
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
    """What a task of a clock is."""
    while isinstance(task, partial):
        task = task.func
    timer = getattr(task, "__self__", None)
    if not isinstance(timer, Timer):
        return describe(task)
    from reactive_runtime._core.timeout_reason import awaited_by  # which stands on what has tasks

    return f"a timer of a flow; {awaited_by(timer.drain)}" if isinstance(timer.drain, PulledSubscription) else "a timer"


def runs_here(executor: Any) -> bool:
    """Whether this thread is one of those that run the executor's tasks, as far as that can be known.

    An executor that knows it has a method `runs_here()`, as those of the package have; so has an event loop of a flow.
    Pools of the standard library are asked for their threads.

    Args:
        executor: The executor to ask; any object is taken.

    Returns:
        True where this thread is known to be one of them.
    """
    knows = getattr(executor, "runs_here", None)
    if callable(knows):
        return bool(knows())
    here = primitives.current_thread()
    if here is getattr(executor, "_executor_manager_thread", None):  # a ProcessPoolExecutor's, which ends its futures
        return True
    # A ThreadPoolExecutor has no way to ask: it keeps a set of its threads, to which a new one is added when it may
    # have been running for a while, and gives them its name and a number.
    name = getattr(executor, "_thread_name_prefix", None)
    return here in getattr(executor, "_threads", ()) or (name is not None and here.name.rpartition("_")[0] == name)


def threads_of(executor: Any) -> int | None:
    """How many threads run the executor's tasks, where this is one of them.

    An executor that knows it has a method `threads()`, or is a pool of the standard library.

    Args:
        executor: The executor to ask; any object is taken.

    Returns:
        The number of threads, or None where that cannot be known.
    """
    knows = getattr(executor, "threads", None)
    threads = knows() if callable(knows) else getattr(executor, "_max_workers", None)
    return threads if isinstance(threads, int) else None


_allowed: ContextVar[bool] = ContextVar("blocking_allowed", default=False)


@contextmanager
def blocking_allowed() -> Iterator[None]:
    """Within the block, a sink may wait on a thread of the very executor that its flow needs.

    Otherwise it is refused, whatever the number of threads: where no other is to spare, it waits for ever. Where the
    plan needs the executor, it is refused before the flow begins; where a flow that a function returns needs it, when
    that is begun, unless the flow ends before the sink would wait.

    Yields:
        None. The block holds for this context, as a context variable does.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from reactive_runtime import Flow
        >>> def total(pool):
        ...     with blocking_allowed():
        ...         return Flow.range(4).subscribe_on(pool).sum().block()
        >>> with ThreadPoolExecutor(2) as pool:
        ...     pool.submit(total, pool).result()
        6
    """
    token = _allowed.set(True)
    try:
        yield
    finally:
        _allowed.reset(token)


def blocking_is_allowed() -> bool:
    """Whether this is within `blocking_allowed`.

    Returns:
        True inside such a block, in this context.
    """
    return _allowed.get()
