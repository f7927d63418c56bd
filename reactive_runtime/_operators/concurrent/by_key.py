"""`map_by_key`: parallel calls on an executor; those for one key run one after the other.

A task for each element would cost more than most calls do. So a task is a *worker*: it makes the calls that are ready,
one after the other, until no call is ready, or other tasks need the thread. A call is ready if no call for its key is
under way. When a call returns, the worker notes its result and makes the next call for the key ready, in one step under
the lock. So workers note the results of a key in its order, and the owner of the drain delivers them in that order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from reactive_runtime._core.drains.combinator import END, PENDING, Elements, InnerSubscription
from reactive_runtime._core.drains.pace import QUANTUM, tasks_wait
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import an_exception
from reactive_runtime._core.failures.error_carrier import carried
from reactive_runtime._core.failures.exits import contained, goes_up, interrupts, not_run_by, submitted, taken_back
from reactive_runtime._core.fusion.step import describe
from reactive_runtime._core.runtime import activity, primitives
from reactive_runtime._core.runtime.arguments import PREFETCH, at_least, check_callable, check_executor
from reactive_runtime._core.sources.naming import executor_name
from reactive_runtime._operators.concurrent.concurrency import Bounded
from reactive_runtime._operators.flow_base import FlowBase, combinator_flow
from reactive_runtime._support.shown import shown
from reactive_runtime.errors import RejectedError

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["KeyedOperators"]

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


class KeyedOperators(FlowBase[T_co]):
    """`map_by_key`: calls side by side on an executor, those for one key one after the other."""

    __slots__ = ()

    def map_by_key(
        self,
        fn: Callable[[T_co], R],
        key: Callable[[T_co], Hashable],
        executor: Executor,
        *,
        concurrency: int = 16,
        prefetch: int = PREFETCH,
    ) -> Flow[R]:
        """`fn(element)`, called on `executor`: for one key one after the other, for several keys in parallel.

        The operator makes the calls for one key one after the other, in the order of the source, and delivers their
        results in that order. There may be any number of keys: the operator forgets a key when it has no more elements
        of it.

        Args:
            fn: Called once for each element. A result of None is a TypeError (2.13).
            key: Called once for each element. Returns its key, which must be hashable.
            executor: A `concurrent.futures.Executor` whose threads share memory.
            concurrency: How many calls are made at the same time, at most; 1 or more.
            prefetch: How many elements the operator holds, at most; 1 or more. These are elements that wait for a call
                of their key, elements in a call, and results that wait for delivery. A key with slow calls may fill all
                of it: then the other keys wait.

        Returns:
            A flow of the results, in the order of the source for one key, and as they are ready for different keys. If
            `fn` raises an error, the flow delivers the results that came before, and fails. If the source, `key`, or
            the hash of a key raises one, it delivers the results of all earlier elements, and fails. It also fails if
            the executor refuses a task, or breaks, and with RuntimeError if the hash or the equality of a key changes
            meanwhile. The hook gets the elements for which `fn` was not called.

        Raises:
            TypeError: `fn` or `key` cannot be called, `executor` is no executor or works apart, or `concurrency` or
                `prefetch` is no int.
            ValueError: `concurrency` or `prefetch` is below 1.

        Demand:
            The source begins with the first demand. The operator holds at most `prefetch` elements. When it has
            delivered a quarter of them, or no call is ready, it requests as many again.

        Cancellation:
            Passes to the source. The operator begins no more calls: the hook gets the elements without a call, and the
            results of calls that have begun.

        Thread:
            `fn` runs on `executor`, in tasks that make one call after the other; if other tasks wait for the pool, a
            task returns its thread after some milliseconds. `key` runs on the thread of the source, or on one on which
            a call ended, and so do the operators behind `map_by_key`, up to the next boundary.

        Example:
            >>> from concurrent.futures import ThreadPoolExecutor
            >>> from reactive_runtime import Flow
            >>> with ThreadPoolExecutor(4) as pool:
            ...     orders = Flow.just(("ann", 1), ("bob", 1), ("ann", 2), ("ann", 3))
            ...     done = orders.map_by_key(lambda order: order, lambda order: order[0], pool).to_list().block()
            >>> [order for order in done if order[0] == "ann"]
            [('ann', 1), ('ann', 2), ('ann', 3)]

        Origin:
            `group_by` and `concat_map` in one; `mapAsyncPartitionedUnordered` of Pekko.
        """
        check_callable("map_by_key", "fn", fn)
        check_callable("map_by_key", "key", key)
        check_executor("map_by_key", executor)
        at_least("map_by_key", "concurrency", 1, concurrency)
        at_least("map_by_key", "prefetch", 1, prefetch)
        return combinator_flow(
            f"map_by_key({describe(fn)}, {describe(key)}, {concurrency})",
            lambda: _ByKey(self, fn, key, executor, concurrency, prefetch),
            self,
            uses=(executor,),
        )


class _KeyQueue:
    """A key that has elements here."""

    __slots__ = ("behind", "busy", "held", "key")

    def __init__(self, key: Any) -> None:
        self.key = key
        self.held = 0  # the owner's; its elements that are not delivered
        self.busy = False  # the drain's lock; a call for it is ready or under way
        self.behind: deque[Any] | None = None  # the drain's lock; the elements that wait for that call


class _Outcome(NamedTuple):
    """The outcome of a call. Nothing but an `error`: no call was made."""

    queue: _KeyQueue | None
    element: Any
    result: Any
    error: BaseException | None


class _ByKey(Bounded):
    def __init__(
        self,
        source: FlowBase[Any],
        fn: Callable[[Any], Any],
        key: Callable[[Any], Any],
        executor: Executor,
        concurrency: int,
        prefetch: int,
    ) -> None:
        super().__init__()
        self.source = source
        self.fn = fn
        self.key = key
        self.workers = executor
        self.concurrency = prefetch  # the elements that it works on at once
        self.refill = max(1, prefetch // 4)
        self.full = False  # the owner's; wait for room for `refill` elements
        self.held = 0  # the owner's
        self.key_queues: dict[Any, _KeyQueue] = {}  # the owner's: to look for a key calls a user's `__hash__`
        self.done: deque[_Outcome] = deque()  # the owner's; to be delivered in this order
        # The drain's lock:
        self.ready: deque[tuple[_KeyQueue, Any]] = deque()
        self.landed: deque[_Outcome] = deque()  # the owner has not looked at them
        self.free = concurrency  # workers that may begin
        self.tasks: dict[Future[Any], None] = {}  # of the workers that are not done
        self.shut = False  # the operator has closed, or a call has failed: no further call is made

    def waits_for(self) -> str:
        """See `Combinator.waits_for`."""
        return f"{len(self.tasks)} tasks on {executor_name(self.workers)}" if self.tasks else ""

    def elements(self) -> Elements:
        outer = self.outer()
        while True:
            taken = self._take(outer)
            if self.ready and self.free:  # a look without the lock: a call gets ready with a note, or on this thread
                self.begin_worker()
            if not self.done and self.landed:  # a look without the lock: the thread that lands one leaves a note
                with self.drain.lock:
                    self.done, self.landed = self.landed, self.done
            if self.done and (self.drain.demanded or self.done[0].error is not None):
                yield self._result()
            elif outer.over and not self.held:
                self.raise_delayed()
                return
            elif not taken:
                yield PENDING

    def _take(self, outer: InnerSubscription) -> bool:
        """Take an element of the source, if there is room and one is at hand."""
        room = self.concurrency - self.held
        self.full = not room or (self.full and room < self.refill and bool(self.ready))
        try:
            news = self.news(outer, self.concurrency if self.full else self.held)
            if news is PENDING or news is END:
                return False
            queue = self._queue_of(news)
        except Exception as error:
            self.delayed.append(error)
            if not outer.over:
                self.leave(outer)  # an element without a key: those after it are not looked at
            return True
        self.held += 1
        queue.held += 1
        with self.drain.lock:
            if queue.busy:
                if queue.behind is None:
                    queue.behind = deque()
                queue.behind.append(news)
            else:
                queue.busy = True
                self.ready.append((queue, news))
        return True

    def _queue_of(self, element: Any) -> _KeyQueue:
        try:
            key = self.call(self.key, element)
            queue = self.key_queues.get(key)
            if queue is None:
                queue = self.key_queues[key] = _KeyQueue(key)
        except Exception as error:
            self.discard(element)
            raise self.fault(error)  # noqa: B904  # the same error
        return queue

    def _result(self) -> Any:
        """The result of the next outcome. Raises its error."""
        queue, element, result, error = self.done.popleft()
        if queue is not None:
            self.held -= 1
            queue.held -= 1
        if error is not None:
            raise carried(an_exception(error))
        if queue is not None and not queue.held:
            self._forget(queue, result)
        if result is None:
            what = f"{self.title}: {describe(self.fn)} returned None for {shown(element)}"
            raise self.fault(TypeError(f"{what}, and None is not an element (2.13)"))
        return result

    def _forget(self, queue: _KeyQueue, result: Any) -> None:
        """The key has no more elements here. Raises where it is not found again, and drops the result."""
        try:
            if self.key_queues.get(queue.key) is not queue:
                what = f"the hash, or the equality, of the key {shown(queue.key)} has changed since its element came"
                raise RuntimeError(f"{self.title}: {what}: return a key that stays as it is")
            del self.key_queues[queue.key]
        except Exception as error:
            if result is not None:
                self.discard(result)
            raise self.fault(error)  # noqa: B904  # the same error

    # -- the workers -----------------------------------------------------------------------------------------------

    def begin_worker(self, again: int = 0) -> None:
        """Submit a worker, if a call is ready, and one may begin. `again`: 1 if a worker ends, and begins anew.

        Any thread, without a lock.
        """
        with self.drain.lock:
            self.free += again
            needed = bool(self.ready) and self.free > 0 and not self.shut
            self.free -= needed
        if not needed:
            return
        worker = _Worker(self)
        under_way = activity.begun(self.drain.context, self.workers) if activity.in_use else None
        try:
            future = submitted(self.workers, worker.run if under_way is None else partial(under_way.run, worker.run))
        except BaseException as error:
            if under_way is not None:
                under_way.end()
            refused = RejectedError(f"{self.title}: {executor_name(self.workers)} refused a task: {error}")
            refused.__cause__ = error
            self._fail(refused)
            if not isinstance(error, Exception):
                raise
            return
        with self.drain.lock:
            shut = self.shut
            if not shut:
                self.tasks[future] = None
        if shut:
            taken_back(self.workers, future)
        future.add_done_callback(worker.settled if under_way is None else under_way.last(worker.settled))

    def next_call(self) -> tuple[_KeyQueue, Any] | None:
        """The next call to make; None: the worker ends. Any thread, without a lock."""
        with self.drain.lock:
            if self.ready and not self.shut:
                return self.ready.popleft()
            self.free += 1
            return None

    def returned(self, queue: _KeyQueue, outcome: _Outcome) -> None:
        """Note the outcome of a call, and wake the owner. Any thread, without a lock."""
        drain = self.drain
        if outcome.error is not None and isinstance(outcome.error, Exception):
            self.fault(outcome.error)
        with drain.lock:
            shut, owner = self.shut, False
            if not shut:
                if queue.behind:
                    self.ready.append((queue, queue.behind.popleft()))
                else:
                    queue.busy = False
                self.landed.append(outcome)
                self.shut = outcome.error is not None
                owner = drain.claim()
        if shut:
            contained(self._too_late, outcome)
        elif owner:
            drain.context.copy().run(contained, drain.element_came)

    def _fail(self, error: Exception) -> None:
        """End with an error that is not of a call. Any thread, without a lock. No worker begins after this."""
        with self.drain.lock:
            if self.shut:
                return
            self.shut = True
            self.landed.append(_Outcome(None, None, None, self.fault(error)))
        self.drain.heard_from()

    def settled(self, worker: _Worker, future: Future[Any]) -> None:
        """A worker is done: its task has ended, or will not run."""
        with self.drain.lock:
            self.tasks.pop(future, None)
        if future.cancelled():
            self._fail(RejectedError(f"{self.title}: a task was cancelled in the executor's queue"))
        elif (error := future.exception()) is None:
            if not worker.began:
                self._fail(not_run_by(self.workers))
        elif not worker.began:
            self._fail(an_exception(error))
        elif not goes_up(error):
            dropping.error_dropped("a stream's task raised in its executor", error)

    def _too_late(self, outcome: _Outcome) -> None:
        if outcome.error is not None:
            dropping.error_dropped(f"{self.title} failed after its stream had ended", outcome.error)
        elif outcome.result is not None:
            self.discard(outcome.result)

    def closed(self) -> None:
        with self.drain.lock:
            self.shut = True
            ready, self.ready = self.ready, deque()
            tasks, self.tasks = self.tasks, {}
            behind = [element for queue in self.key_queues.values() for element in queue.behind or ()]
            left, self.landed = (*self.done, *self.landed), deque()
        self.key_queues, self.done = {}, deque()
        try:
            for task in tasks:
                taken_back(self.workers, task)
            for outcome in left:
                self._too_late(outcome)
            self.discard(*(element for _, element in ready), *behind)
        finally:
            super().closed()


class _Worker:
    """A task that makes the calls that are ready."""

    __slots__ = ("_by_key", "began")

    def __init__(self, by_key: _ByKey) -> None:
        self._by_key = by_key
        self.began = False  # owned by the thread that runs it until the future is done, then by the callback

    def run(self) -> None:
        """Make one call after the other, on a thread of the executor."""
        self.began = True
        by_key = self._by_key
        fn, context = by_key.fn, by_key.drain.context
        monotonic = primitives.monotonic
        until = monotonic() + QUANTUM
        while (call := by_key.next_call()) is not None:
            queue, element = call
            try:
                outcome = _Outcome(queue, element, context.copy().run(fn, element), None)
            except BaseException as error:
                by_key.returned(queue, _Outcome(queue, element, None, error))
                if interrupts(error):
                    raise
            else:
                by_key.returned(queue, outcome)
            if monotonic() >= until and tasks_wait(by_key.workers):
                by_key.begin_worker(again=1)
                return

    def settled(self, future: Future[Any]) -> None:
        """The future is done."""
        contained(self._by_key.settled, self, future)
