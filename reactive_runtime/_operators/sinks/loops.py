"""Loops over a flow: a drain whose owner is the thread of a `for` loop, or the coroutine of an `async for` loop.

The owner pulls. If there is nothing, it leaves the drain, and sleeps; the thread that brings an element takes the drain
in its name (`_launch`), and wakes it. A wait that is given up, by a time limit or a cancelled coroutine, changes
nothing: the drain has no owner, or is kept for the next call, which looks first.

    awake ──nothing there: leave──▶ asleep ──element, end: taken in its name──▶ awake
                                      └──the wait is given up: still asleep; the next call waits on

Sources without an executor run on the thread of the loop, before it sleeps. One that never rests, as an empty queue, or
a generator of which all is dropped, would keep that thread for ever. So its drain gives way when the loop is awake, and
the loop keeps it: it goes on with the next element (`drains.trampoline`). Between two turns a `for` loop looks at its
time limit, and an `async for` loop lets its event loop run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from reactive_runtime._core import garbage_collection
from reactive_runtime._core.drains import trampoline
from reactive_runtime._core.drains.combinator import END, InnerSubscription
from reactive_runtime._core.drains.drain_context import DrainContext, Waiter
from reactive_runtime._core.drains.pace import QUANTUM
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import no_end, note_step
from reactive_runtime._core.failures.error_carrier import own_copy
from reactive_runtime._core.fusion.fuse import PENDING, Unstopped, name_source, none_element, pulled
from reactive_runtime._core.fusion.step import note_end, release_held, show_watching
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import seconds_of
from reactive_runtime._core.runtime.sentinels import sentinel
from reactive_runtime._core.timeout_reason import awaited_by_loop
from reactive_runtime._operators.flow_base import FlowBase
from reactive_runtime._operators.sinks.waiting import Wait
from reactive_runtime.errors import RejectedError

if TYPE_CHECKING:
    import asyncio

__all__ = ["AsyncIteration", "Iteration", "each"]

T = TypeVar("T")

LATE: Final = sentinel("LATE", __name__)
"""The answer of a loop if no element came in time."""


def each(source: FlowBase[T], prefetch: int) -> Generator[T, None, None]:
    """The elements of a flow, for a `for` loop."""
    return _pull_here(source) if _runs_here(source) else _wait_for_each(source, prefetch, _Limit())


def _runs_here(source: FlowBase[Any]) -> bool:
    plan = source._source.plan()
    return plan.pulls and plan.executor is None


class Iteration(Iterator[T]):
    """The elements of a flow, for a loop, or one by one with a time limit; see `Flow.iterate`.

    One thread takes elements at a time; any thread closes it. It is closed when the flow has ended, by `close`, at the
    end of a `with` block, and when it is freed.

    Args:
        source: The flow.
        prefetch: How many elements are requested ahead of the loop.

    Example:
        >>> from reactive_runtime import Flow
        >>> elements = Flow.range(3).iterate()
        >>> elements.next(timeout=1)
        0
        >>> list(elements)
        [1, 2]
    """

    __slots__ = ("_elements", "_limit", "_turn")

    def __init__(self, source: FlowBase[T], prefetch: int) -> None:
        # The thread that is inside of the generator, or closes it, holds this lock; no thread waits for it.
        self._turn = primitives.Lock()
        self._limit = None if _runs_here(source) else _Limit()
        self._elements = _pull_here(source) if self._limit is None else _wait_for_each(source, prefetch, self._limit)

    def __iter__(self) -> Iteration[T]:
        return self

    def __next__(self) -> T:
        if not self._turn.acquire(blocking=False):
            raise _taken()
        try:
            return next(self._elements)
        finally:
            self._left()

    def _left(self) -> None:
        """Let the next thread in; close the loop if another thread has asked for that meanwhile."""
        self._turn.release()
        if self._limit is not None and self._limit.closed:
            self.close()

    def next(self, *, timeout: float | None = None) -> T:
        """Wait for the next element, no longer than `timeout`.

        Args:
            timeout: Seconds; 0 or more. 0 takes what is there. None: there is no limit.

        Returns:
            The element.

        Raises:
            TimeoutError: No element came in time. The flow goes on, and nothing is lost: the next call waits for the
                same element.
            StopIteration: The flow has completed, or the loop was closed.
            TypeError: `timeout` is no number.
            ValueError: `timeout` is negative or not finite; or another thread waits here.
            Exception: A copy of the error that the flow ended with.

        Demand:
            As `iterate`: a call that is late has asked for its element, and asks for no other.

        Thread:
            That of the loop. A flow without a boundary runs in this call, and is not interrupted.

        Example:
            >>> from reactive_runtime import Flow
            >>> elements = Flow.never().iterate()
            >>> try:
            ...     elements.next(timeout=0.01)
            ... except TimeoutError:
            ...     print("nothing yet")
            nothing yet
            >>> elements.close()

        Origin:
            `Queue.get` of Python.
        """
        limit = self._limit
        if timeout is None or limit is None:
            return next(self)
        seconds_of("next", "timeout", timeout)
        if not self._turn.acquire(blocking=False):
            raise _taken()
        try:
            limit.end = primitives.monotonic() + timeout
            element = next(self._elements)
        finally:
            limit.end = None
            self._left()
        if element is LATE:
            raise TimeoutError(f"next: no element came in {timeout:g} s; {limit.waited}. The flow goes on")
        return element

    def close(self) -> None:
        """Cancel the flow, unless it has ended, and release it. No call raises an error after it but StopIteration.

        Raises:
            ValueError: Another thread runs the flow inside of its loop, since the flow has no boundary: close it there.

        Cancellation:
            The source is closed on the thread where it runs. Elements that wait for the loop go to the hook.

        Thread:
            Any. A thread that waits for an element is woken, and its loop ends; it releases the flow.
        """
        if self._closed():
            return
        if self._limit is None:
            raise ValueError(
                "iterate: another call runs this flow inside of its loop, and none can end it: close it on that"
                " thread, or put a boundary (`publish_on`) before the loop"
            )
        self._limit.close()
        self._closed()  # the thread inside may have left before it could see `closed`

    def _closed(self) -> bool:
        """Close the generator, unless a thread is inside of it."""
        if not self._turn.acquire(blocking=False):
            return False
        try:
            self._elements.close()
        finally:
            self._turn.release()
        return True

    def __enter__(self) -> Iteration[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _taken() -> ValueError:
    return ValueError(
        "iterate: another call waits for the next element already: take elements on one thread, or share the flow"
        " (`share`), and give each thread a loop of its own"
    )


class _ClosedError(Exception):
    """Another thread has closed the loop."""


class _Limit:
    """How long the thread of a loop waits for the next element, and whether another thread has closed the loop."""

    __slots__ = ("_lock", "_waiting", "closed", "end", "waited")

    def __init__(self) -> None:
        self.end: float | None = None  # the loop's thread; when the time is over; None: there is no limit
        self.waited = ""  # the loop's thread; what it waited for when the time was over
        self._lock = primitives.Lock()
        self._waiting: _Waiting | None = None  # _lock; the loop to wake
        self.closed = False  # _lock; the loop reads it without the lock after each element

    def left(self) -> float | None:
        """The seconds that are left."""
        return None if self.end is None else max(0.0, self.end - primitives.monotonic())

    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.end is not None and self.end <= primitives.monotonic()

    def begins(self, waiting: _Waiting) -> None:
        with self._lock:
            self._waiting = waiting
            closed = self.closed
        if closed:
            waiting.fail(_ClosedError())

    def ends(self) -> None:
        """Drop the reference to a loop that has ended: there is nothing to wake."""
        with self._lock:
            self._waiting = None

    def close(self) -> None:
        """End the loop of another thread."""
        with self._lock:
            self.closed = True
            waiting = self._waiting
        if waiting is not None:
            waiting.fail(_ClosedError())


def _pull_here(source: FlowBase[T]) -> Generator[T, None, None]:
    plan = source._source.plan()
    pollable = plan.pollable(None)
    steps = [step.copy() for step in (*plan.steps, *source._steps)]
    failed: list[Exception] = []
    show_watching(None, pollable, steps)
    try:
        for element in pulled(pollable.open(), steps, Unstopped()):
            if element is None:
                raise none_element()
            yield element
        note_end(steps, "complete")
    except Exception as error:
        name_source(error, pollable.where)
        note_step(error)
        pollable.note_source(error)
        note_end(steps, error)
        failed.append(own_copy(no_end(error)))
    finally:
        held: dropping.Held = []
        try:
            held = release_held(steps, ())
        finally:
            try:
                pollable.close()
            finally:
                dropping.held_dropped(held, "a loop ended before it was delivered")
    if failed:  # here: inside of `except` the carrier of the error would become its context
        raise failed.pop()


def _wait_for_each(source: FlowBase[T], prefetch: int, limit: _Limit) -> Generator[T, None, None]:
    waiting = _Waiting(source, prefetch, Wait("for", source), limit)
    limit.begins(waiting)
    try:
        while (element := waiting.next()) is not END:
            yield element
            if limit.closed:
                break
    except GeneratorExit:  # the program has left the loop, or freed it
        if garbage_collection:  # modules are empty at the end of the interpreter
            garbage_collection.outside(waiting.close)
        raise
    except _ClosedError:
        pass
    except BaseException:
        waiting.close()
        raise
    waiting.close()


class AsyncIteration(AsyncIterator[T]):
    """The elements of a flow, for `async for`; see `Flow.iterate_async`.

    A wait that is cancelled, as `asyncio.wait_for` does when its time is over, leaves the flow alive, and loses
    nothing: the next `anext` waits for the same element. One task waits at a time, all on one event loop.

    Args:
        source: The flow.
        prefetch: How many elements are requested ahead of the loop.

    Example:
        >>> import asyncio
        >>> from reactive_runtime import Flow
        >>> async def main():
        ...     elements = Flow.timer(0.05).iterate_async()
        ...     try:
        ...         await asyncio.wait_for(anext(elements), 0.001)
        ...     except TimeoutError:
        ...         print("nothing yet")
        ...     return await anext(elements)
        >>> asyncio.run(main())
        nothing yet
        0
    """

    __slots__ = ("__weakref__", "_over", "_prefetch", "_source", "_under_way", "_waiting")

    def __init__(self, source: FlowBase[T], prefetch: int) -> None:
        # The thread of the event loop owns all fields.
        self._source = source
        self._prefetch = prefetch
        self._waiting: _Awaiting | None = None  # the first `anext` makes it, and subscribes
        self._under_way = False  # a task is inside of `__anext__`
        self._over = False  # the flow has ended, or was closed

    def __aiter__(self) -> AsyncIteration[T]:
        return self

    async def __anext__(self) -> T:
        if self._under_way:
            raise RuntimeError(
                "iterate_async: another task waits for the next element already: await one `anext` after the other,"
                " or share the flow (`share`), and give each task a loop of its own"
            )
        if self._over:
            raise StopAsyncIteration
        waiting = self._begun()
        self._under_way = True
        try:
            element = await waiting.next()
        except StopAsyncIteration as error:
            self._close()
            raise RuntimeError("the flow failed with StopAsyncIteration, which is no end of this loop") from error
        except Exception:
            self._close()
            raise
        finally:
            self._under_way = False
        if element is END:
            self._close()
            raise StopAsyncIteration
        return element  # type: ignore[no-any-return]

    def _begun(self) -> _Awaiting:
        import asyncio  # only coroutines need it

        loop = asyncio.get_running_loop()
        if self._waiting is None:
            self._waiting = _Awaiting(self._source, self._prefetch, loop, asyncio.Event())
        elif self._waiting.event_loop is not loop:
            raise RuntimeError(
                "iterate_async: the loop over this flow began on another event loop: call `iterate_async` anew there"
            )
        return self._waiting

    async def aclose(self) -> None:
        """Cancel the flow, unless it has ended, and release it; `anext` raises StopAsyncIteration from then on.

        Raises:
            RuntimeError: A task waits for an element: cancel it first.

        Cancellation:
            The source is closed on the thread where it runs. Elements that wait for the loop go to the hook.
        """
        if self._under_way:
            raise RuntimeError("aclose: a task waits for the next element: cancel it, and await it, before")
        self._close()

    def _close(self) -> None:
        self._over = True
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.close()

    def __del__(self) -> None:
        # Any thread may run this, at any instruction: `garbage_collection` puts the call off.
        if garbage_collection and self._waiting is not None:  # modules are empty at the end of the interpreter
            garbage_collection.outside(self._waiting.close)


class _Puller(DrainContext):
    """A drain whose owner pulls: `_launch` wakes it when there is something to pull."""

    __slots__ = ("_failure", "_gave_way", "_inner", "kept")

    def __init__(self, source: FlowBase[Any], prefetch: int, waiter: Waiter) -> None:
        super().__init__()
        self.waiter = waiter
        self._failure: Exception | None = None  # lock; ends the loop
        # The loop's thread owns these two; the thread that closes the loop, when no other is inside of it.
        self.kept: deque[DrainContext] = deque()  # see `trampoline.Loop`
        self._gave_way = False  # a source on this very drain has worked for a while, and has more to do
        self._demand = 1  # the element that the loop waits for, or has: operators compare their elements with it
        self._inner = InnerSubscription(self, source, prefetch, heard=self._heard)

    def fail(self, error: Exception) -> None:
        """End the loop with `error`, after the element that its thread is at."""
        with self.lock:
            if self._failure is None:
                self._failure = error
            self.stopped.append(True)
        self.wake()

    def next_if_demanded(self) -> Any:
        """The next element, or END; PENDING: the drain has no owner now, and `_launch` wakes the loop later."""
        while True:
            element: Any = END
            failed: list[Exception] = []
            try:
                element = self._inner.next_if_demanded()
            except Exception as error:
                failed.append(own_copy(no_end(error)))
            if failed:  # here: inside of `except` the carrier of the error would become its context
                raise failed.pop()
            if element is not PENDING:
                if self.kept:
                    self._finish_stopped()
                return element
            self._inner.request(1)
            if self._spent:
                self._spent = False
                self._gave_way = bool(self.kept) or self._calls is not None or self._has_to_look()
            with self.lock:
                failure = self._failure
                if failure is None:
                    if self._gave_way:
                        self._missed = self._busy = False
                    elif not self.leave():
                        continue
            if failure is not None:
                raise own_copy(failure)
            self._go_on()
            return PENDING

    def awake(self) -> bool:
        """See `trampoline.Loop`."""
        return self.is_owned()

    def late(self) -> bool:
        """See `trampoline.Loop`."""
        return self._gave_way or self._has_to_look()

    def _has_to_look(self) -> bool:
        """Whether something other than an element or an end may be there for the loop's thread."""
        raise NotImplementedError

    def keeps(self, drain: Any) -> bool:
        """See `trampoline.Loop`."""
        waiter = drain.waiter if isinstance(drain, DrainContext) else None
        return waiter is not None and self.waiter is not None and waiter.stands_for(self.waiter)

    def _go_on(self) -> None:
        """Make the calls that were noted, and have the drains that are kept go on. The loop's thread, asleep."""
        if self._calls is None and not self.kept:  # a look without the lock, see `_left`
            return
        with self.lock:
            calls, self._calls = self._calls, None
        trampoline.work_for(self, calls or ())

    def _come_back(self) -> None:
        """Own the drain again, which gave way to others. The loop's thread, asleep."""
        self._gave_way = False
        with self.lock:
            self._busy = True  # if another thread has taken it, it was in the name of this one

    def _finish_stopped(self) -> None:
        """Have the drains that are kept, and were cancelled, release their sources."""
        stopped = [drain for drain in self.kept if drain.stopped]
        if stopped:
            for drain in stopped:
                self.kept.remove(drain)
            trampoline.work([drain.run for drain in stopped])

    def close(self) -> None:
        """Release the flow. The owner calls it, or, if there is none, the thread that would have come back."""
        with self.lock:
            self.stopped.append(True)
            self._busy = True
        try:
            trampoline.closes(self._inner.close)
        finally:
            try:
                self._release()
            finally:
                self._end_for_good()
                self._left()
                kept = [drain.run for drain in self.kept]  # they were cancelled, and release their sources
                self.kept.clear()
                trampoline.work(kept)

    def rejected(self, error: RejectedError) -> None:
        raise AssertionError("drains without an executor are never rejected")


class _Waiting(_Puller):
    """The owner is the thread of a `for` loop, which sleeps when there is nothing."""

    __slots__ = ("_asleep", "_limit", "_wait")

    def __init__(self, source: FlowBase[Any], prefetch: int, wait: Wait, limit: _Limit) -> None:
        wait.prepare()
        self._wait = wait
        self._limit = limit
        self._asleep = (
            False  # the loop's thread; it has left the drain, and does not know yet that it owns the drain again
        )
        super().__init__(source, prefetch, wait)

    def _launch(self) -> None:
        self._wait.wake()

    def _has_to_look(self) -> bool:
        return self._limit.is_over() or self._wait.has_news()

    def next(self) -> Any:
        """Wait for the next element; END at the end; LATE. Raises the error that the flow ended with."""
        if self._asleep and not self._woken():
            return LATE
        while (element := self.next_if_demanded()) is PENDING:
            self._asleep = True
            if self._gave_way and self._limit.is_over():
                self._limit.waited = awaited_by_loop(self, self._inner)
                return LATE
            if not self._woken():
                return LATE
        return element

    def _woken(self) -> bool:
        """Wait until another thread, or a source on this one, has taken the drain for this one. False: no time left."""
        if self._gave_way:
            self._wait.look()
            self._come_back()
        elif not self.kept:
            self._wait.a_moment(self._limit.left())
        while not self.is_owned():
            if self.kept:
                self._go_on()
                self._wait.look()
                if self.is_owned():
                    break
            if self._limit.is_over():
                self._limit.waited = awaited_by_loop(self, self._inner)
                return False
            if not self.kept:  # another thread may wake it to look at the executors of a made flow (`Wait.begins`)
                self._wait.a_moment(self._limit.left())
        self._asleep = False
        return True

    def close(self) -> None:
        self._wait.over()
        self._limit.ends()
        super().close()


class _Coroutine:
    """A waiter that no flow can keep from its thread: a coroutine has none of its own."""

    def begins(self, source: FlowBase[Any], operator: str) -> None:
        """See `Waiter`."""

    def stands_for(self, waiter: Waiter) -> bool:
        """See `Waiter`."""
        return self is waiter


class _Awaiting(_Puller):
    """The owner is a coroutine."""

    __slots__ = ("_asleep", "_began", "_event", "event_loop")

    def __init__(
        self, source: FlowBase[Any], prefetch: int, loop: asyncio.AbstractEventLoop, event: asyncio.Event
    ) -> None:
        self.event_loop = loop
        self._event = event
        self._asleep = False  # the event loop's thread; the coroutine has left the drain, and may own it again
        self._began = 0.0  # the event loop's thread; when the loop has had its last turn, as far as is known
        super().__init__(source, prefetch, _Coroutine())

    def _has_to_look(self) -> bool:
        return primitives.monotonic() - self._began > QUANTUM  # the event loop has other things to do

    def _launch(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: no coroutine comes back
            self.event_loop.call_soon_threadsafe(self._event.set)

    async def next(self) -> Any:
        """Wait for the next element; END at the end. Raises the error that the flow ended with.

        Only the wait raises a cancel: an element that the coroutine has taken is returned.
        """
        import asyncio  # only coroutines need it

        while True:
            while self._asleep:
                if self._gave_way:
                    if self._has_to_look():
                        await asyncio.sleep(0)
                        self._began = primitives.monotonic()
                    self._come_back()
                if self.is_owned():
                    self._asleep = False
                elif self.kept:
                    await asyncio.sleep(0)
                    self._began = primitives.monotonic()
                    self._go_on()
                else:
                    self._event.clear()
                    await self._event.wait()
                    self._began = primitives.monotonic()
            element = self.next_if_demanded()
            if element is not PENDING:
                return element
            self._asleep = True
