"""`map_parallel`: elements become calls on an executor, or coroutines."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from reactive_runtime._core.drains.combinator import PENDING, InnerSubscription
from reactive_runtime._core.failures.assembly import an_exception, notes_of
from reactive_runtime._core.failures.exits import contained, interrupts, submitted, taken_back
from reactive_runtime._core.fusion.step import describe
from reactive_runtime._core.runtime import activity, eventloop
from reactive_runtime._core.runtime.arguments import (
    PREFETCH,
    at_least,
    check_callable,
    check_executor,
    is_coroutine_function,
    works_apart,
)
from reactive_runtime._core.sources.naming import executor_name
from reactive_runtime._operators.concurrent.adaptive import Adaptive, check_concurrency, most_calls
from reactive_runtime._operators.concurrent.coroutines import Coroutines
from reactive_runtime._operators.concurrent.tasks import Flight, Tasks
from reactive_runtime._operators.flow_base import FlowBase, combinator_flow
from reactive_runtime._support.shown import shown
from reactive_runtime.errors import RejectedError

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["TaskOperators"]

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


Outcome = tuple[list[Any], BaseException | None]


class TaskOperators(FlowBase[T_co]):
    """`map_parallel`: elements become calls on an executor, or coroutines."""

    __slots__ = ()

    @overload
    def map_parallel(
        self,
        fn: Callable[[T_co], Coroutine[Any, Any, R]],
        executor: None = None,
        *,
        concurrency: int | Literal["auto"] = ...,
        ordered: bool = ...,
        chunk: Literal[1] = ...,
    ) -> Flow[R]: ...

    @overload
    def map_parallel(
        self,
        fn: Callable[[T_co], R],
        executor: Executor,
        *,
        concurrency: int | Literal["auto"] = ...,
        ordered: bool = ...,
        chunk: int = ...,
    ) -> Flow[R]: ...

    def map_parallel(
        self,
        fn: Callable[[T_co], Any],
        executor: Executor | None = None,
        *,
        concurrency: int | Literal["auto"] = 16,
        ordered: bool = True,
        chunk: int = 1,
    ) -> Flow[Any]:
        """Each element becomes `fn(element)`, called on `executor`: threads, processes, interpreters.

        `fn` may be a coroutine function, without an executor: coroutines run on one event loop thread, as those of
        `flat_map`.

        Args:
            fn: Called once for each element. A result of None is a TypeError (2.13). On processes and interpreters
                `fn`, the elements and the results are pickled.
            executor: A `concurrent.futures.Executor`. None: for a coroutine function, and for nothing else.
            concurrency: How many calls are in flight, or done and waiting to be delivered, at most; 1 or more. With
                `chunk` it counts tasks. "auto": as many calls are in flight as the service bears, found from their
                latency; at most one for each worker of `executor`, and 256. It begins with 16, tries more while that
                makes more calls a second, and fewer while they only wait for each other. The trials cost less than a
                tenth of the throughput if the calls take about the same time. Beside the calls in flight results may
                wait: together 8 times as many as may be in flight, at most, and 256.
            ordered: True: results come in the order of the source. False: as they are done.
            chunk: How many elements share a task; 1 or more. That pays where a task is dear, as on processes.
                Coroutines have a task each.

        Returns:
            A flow of the results. It fails with an error of `fn` after what came before it, in its chunk too; with an
            error of the source after the results of all that came before it. An error that can't be pickled and made
            again comes back from a process as a RuntimeError that says what it was. A worker that dies
            (`BrokenProcessPool`), or an executor that refuses, is an `on_error` as well.

        Raises:
            TypeError: `fn` cannot be called, `executor` is no executor or is missing, a coroutine function was given
                one, or `concurrency` or `chunk` is no int.
            ValueError: `concurrency` or `chunk` is below 1, or `concurrency` is another string than "auto".

        Demand:
            The source begins with the first demand. No more of it is requested than `concurrency` tasks can take.

        Cancellation:
            Passes to the source. Tasks that have not begun are cancelled, but on a process pool of a Python whose pools
            do not bear that: there they run (3.11). The results of those that have begun are dropped, to the hook.
            Coroutines are cancelled.

        Thread:
            `fn` runs on `executor`, or, a coroutine, on the event loop. What follows goes on, up to the next boundary,
            on the thread on which a call ended, or on the one that is at work for the flow.

        Example:
            >>> from concurrent.futures import ThreadPoolExecutor
            >>> from reactive_runtime import Flow
            >>> with ThreadPoolExecutor(4) as pool:
            ...     Flow.range(4).map_parallel(lambda n: n * n, pool, concurrency=2).to_list().block()
            [0, 1, 4, 9]

        Origin:
            `Executor.map`, with demand.
        """
        check_callable("map_parallel", "fn", fn, awaited=True)
        check_concurrency("map_parallel", concurrency)
        at_least("map_parallel", "chunk", 1, chunk)
        title = f"map_parallel({describe(fn)}, {concurrency})"
        if is_coroutine_function(fn):
            if executor is not None:
                raise TypeError("map_parallel: a coroutine function runs on the event loop, and takes no executor")
            coroutines, most = (Coroutines, concurrency) if concurrency != "auto" else (_AutoCoroutines, PREFETCH)
            return combinator_flow(
                title, lambda: coroutines(self, fn, most, ordered=ordered), self, uses=(eventloop.OURS,)
            )
        check_executor("map_parallel", executor, apart=True)
        assert executor is not None
        calls, most = (_Calls, concurrency) if concurrency != "auto" else (_AutoCalls, most_calls(executor))
        return combinator_flow(
            title,
            lambda: calls(self, fn, executor, most, ordered=ordered, chunk=chunk),
            self,
            uses=(executor,),
        )


class _Calls(Tasks):
    """The calls are tasks on an executor."""

    def __init__(
        self,
        source: FlowBase[Any],
        fn: Callable[[Any], Any],
        executor: Executor,
        concurrency: int,
        *,
        ordered: bool,
        chunk: int,
    ) -> None:
        super().__init__(source, fn, concurrency, ordered=ordered)
        self.workers = executor
        self.chunk = chunk
        self.gathered: list[Any] = []
        self.far = works_apart(executor)
        self.reported = False  # the drain's lock; the user has had the error that all tasks of a broken pool get

    def take_back(self, flight: Flight) -> None:
        taken_back(self.workers, flight.task)

    def is_news(self, error: BaseException) -> bool:
        if not isinstance(error, BrokenExecutor):
            return True
        with self.drain.lock:
            reported, self.reported = self.reported, True
        return not reported

    def where(self) -> str:
        return executor_name(self.workers)

    def count(self, news: Any) -> int:
        return len(news)

    def given(self, flight: Flight, number: int) -> str:
        chunk = f", element {number + 1} of a chunk of {len(flight.element)}" if self.chunk > 1 else ""
        return f"{shown(flight.element[number])} at index {flight.index + number} of the source{chunk}"

    def pulled(self, outer: InnerSubscription) -> Any:
        news = outer.next_signals(self.gathered, self.chunk)
        if not self.gathered or (news is PENDING and self.flying):
            return news
        elements, self.gathered = self.gathered, []
        return elements

    def lacking(self, busy: int) -> int:
        return super().lacking(busy) * self.chunk - len(self.gathered)

    def launch(self, flight: Flight) -> None:
        if self.far:
            task: Any = partial(_apply, self.fn, flight.element, far=True)
        else:
            task = partial(self.drain.context.copy().run, self._work, flight)
        under_way = activity.begun(self.drain.context, self.workers) if activity.in_use else None
        if under_way is not None and not self.far:
            task = partial(under_way.run, task)
        try:
            flight.task = submitted(self.workers, task)
        except BaseException as error:
            if under_way is not None:
                under_way.end()
            if not isinstance(error, Exception):
                raise
            self.discard(*flight.element)
            refused = RejectedError(f"{self.title}: {executor_name(self.workers)} refused a task: {error}")
            refused.__cause__ = error
            raise refused from error
        done = partial(self._done, flight)
        flight.task.add_done_callback(done if under_way is None else under_way.last(done))

    def _work(self, flight: Flight) -> None:
        """Run the task on a thread of the executor. Put the outcome into the flight: to read the future costs more."""
        elements = flight.element
        flight.begun = True
        if self.shut:  # `taken_back` could not cancel it; a stale False only calls `fn` in vain
            self.discard(*elements)
            flight.outcome = ([], None)
        elif len(elements) == 1:
            flight.outcome = ([self.fn(elements[0])], None)
        else:
            flight.outcome = _apply(self.fn, elements, far=False)

    def _done(self, flight: Flight, future: Future[Any]) -> None:
        outcome, flight.outcome = flight.outcome, None
        if outcome is None or outcome[1] is not None:
            contained(self._settle, flight, future, outcome)
        elif self.land(flight, deque(outcome[0]), None):
            self.drain.heard_from()

    def _settle(self, flight: Flight, future: Future[Any], outcome: Outcome | None) -> None:
        """Land a task. `outcome`: that of `_work`; None: the task was cancelled, it raised, or it ran elsewhere."""
        made: list[Any] = []
        raised: BaseException | None = None
        unsent: BaseException | None = None  # the executor could not pickle a chunk, or its results
        if outcome is not None:
            made, raised = outcome
        elif not future.cancelled():
            raised = future.exception()
            if self.far and len(flight.element) > 1:
                unsent = raised
            if raised is None:
                made, raised = self._returned(future.result())
            elif not (self.far or flight.begun or isinstance(raised, BrokenExecutor)):
                _note(raised, f"before the call: {self._never_called()}")
        if outcome is None and future.cancelled():
            error: BaseException | None = RejectedError(f"{self.title}: a task was cancelled in the executor's queue")
            self.discard(*flight.element)  # no call of the function had them
        else:
            error = None if raised is None else an_exception(raised)
            if isinstance(raised, BrokenExecutor):
                self.discard(*flight.element)  # nothing tells which of them the function had
                # The pool may hold its lock while it fails these tasks: this thread may go on to `news`, and must begin
                # no task. Any thread writes 0, and nothing else; the pool refuses one that still sees another number.
                self.concurrency = 0
            elif unsent is not None:
                _note(unsent, f"for a chunk of {len(flight.element)} elements, or for their results")
                self.discard(*flight.element)
            elif raised is not None:
                self.discard(*flight.element[len(made) + 1 :])  # the elements of a chunk behind the one that failed
        if isinstance(error, Exception):
            self.fault(error)
        results = None if error is not None and not made else deque(made)
        if self.land(flight, results, error):
            self.drain.heard_from()

    def _returned(self, result: Any) -> Outcome:
        """Read what a task of another process has returned."""
        if self.far and isinstance(result, tuple):
            return result
        error = RuntimeError(f"{self.title}: {self._never_called()}, and gave {shown(result)} as the task's result")
        return [], error

    def _never_called(self) -> str:
        """Say that the executor has finished a task that it did not run, or ran elsewhere."""
        advice = "" if self.far else ": one that uses processes can't; give map_parallel their pool itself"
        where = "in a worker" if self.far else "on a thread of this process"
        return f"{executor_name(self.workers)} did not call {describe(self.fn)} {where}{advice}"

    def closed(self) -> None:
        super().closed()
        self.discard(*self.gathered)


class _AutoCalls(Adaptive, _Calls):
    """The calls are tasks on an executor, as many at a time as their latency allows."""


class _AutoCoroutines(Adaptive, Coroutines):
    """The calls are coroutines, as many at a time as their latency allows."""


def _apply(fn: Callable[[Any], Any], elements: list[Any], *, far: bool) -> Outcome:
    """Run a task: return the results, and the error after them. A function of the module, since pickle needs one."""
    made: list[Any] = []
    for number, element in enumerate(elements, start=1):
        try:
            made.append(fn(element))
        except BaseException as raised:
            error = _picklable(raised) if far else raised
            if len(elements) > 1:
                _note(error, f"for element {number} of a chunk of {len(elements)}: {shown(element)}")
            # Raise the error as it is; the executor adds to it. A chunk of another process returns its error: if it
            # raises one, the executor could not send the chunk, or its results.
            if (not made and not (far and len(elements) > 1)) or (interrupts(error) and not far):
                if error is raised:
                    raise
                raise error from raised
            if far:  # pickle drops the traceback
                _note(error, f"in the worker:\n{traceback.format_exc()}")
            return made, error
    return made, None


def _picklable(error: BaseException) -> BaseException:
    """The error; or a RuntimeError that says the same, if pickle can't make it again, which would end the pool."""
    import pickle  # only processes need it

    try:
        pickle.loads(pickle.dumps(error))  # bytes of this process
    except Exception as failed:
        text = f"{type(error).__qualname__}: {shown(error)} in a worker; it can't be pickled and made again: {failed}"
        return RuntimeError(f"{text}. Give its class an `__init__` that takes its `args`, or a `__reduce__`")
    return error


def _note(error: BaseException, note: str) -> None:
    """Add a note to the error, in place of one of the same kind: a function may raise one instance again and again."""
    kind = note.split(maxsplit=2)[:2]
    others = [item for item in notes_of(error) if item.split(maxsplit=2)[:2] != kind]
    with suppress(Exception):  # an error that takes no notes goes on without one
        error.__notes__ = [*others, note]
