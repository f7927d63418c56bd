"""On which thread a flow runs, and on how many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reactive_runtime._core.drains.combinator import (
    END,
    PENDING,
    Elements,
    InnerSubscription,
    ReadySet,
)
from reactive_runtime._core.queues.subscriber_buffer import SubscriberBuffer
from reactive_runtime._core.runtime.arguments import (
    PREFETCH,
    at_least,
    check_callable,
    check_executor,
)
from reactive_runtime._core.sources.flow_source import Boundary, Hot
from reactive_runtime._operators.backpressure import Passing
from reactive_runtime._operators.flow_base import FlowBase, combinator_flow, flow_of

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["ParallelFlow", "SchedulingOperators"]

S = TypeVar("S")
T_co = TypeVar("T_co", covariant=True)


class SchedulingOperators(FlowBase[T_co]):
    """On which thread a flow runs, and on how many."""

    __slots__ = ()

    def publish_on(self, executor: Executor, *, prefetch: int = PREFETCH) -> Flow[T_co]:
        """The operators after this run on `executor`: an asynchronous boundary.

        Elements that arrived before an error or the end are delivered first. Signals stay serial on any pool (1.3).

        Args:
            executor: Any `concurrent.futures.Executor` of threads; one of processes is for `map_parallel`.
            prefetch: How many elements may wait in the boundary, 1 or more.

        Returns:
            A flow of the same signals. It fails with RejectedError, on the thread that notices, where the executor is
            full or was shut down.

        Raises:
            TypeError: `executor` is no executor, or one of processes, or `prefetch` is not an int.
            ValueError: `prefetch` is below 1.

        Demand:
            `prefetch` elements are requested upstream at once, and more when three quarters of them have been consumed,
            whatever the demand downstream. A cold source without an executor of its own is pulled by demand straight
            through the boundary, without prefetch.

        Cancellation:
            Passes upstream. Elements that wait in the boundary are dropped, to the hook.

        Thread:
            The operators that follow run on `executor`. They give the thread back after 1,024 elements; and after 10 ms
            of work, and the call of a user's function that is under way then, if another task waits in a pool of the
            standard library. While none waits they keep it. A timer or a cancel waits for one such call. A cold source
            that has no executor of its own (`subscribe_on`) runs on the thread that requests: behind a boundary on the
            boundary's. A group, or a window, that has none has a buffer already: its elements are taken out of it on
            `executor`. Any other upstream without an executor, such as `retry`, `flat_map` or a publisher of another
            library, runs on the thread that requests: first the one that subscribes, then, as the boundary is refilled,
            the executor's.

        Example:
            >>> from concurrent.futures import ThreadPoolExecutor
            >>> from reactive_runtime import Flow
            >>> with ThreadPoolExecutor(2) as pool:
            ...     Flow.range(3).subscribe_on(pool).publish_on(pool, prefetch=2).to_list().block()
            [0, 1, 2]

        Origin:
            `observeOn` of Rx, `publishOn` of Reactor.
        """
        check_executor("publish_on", executor)
        at_least("publish_on", "prefetch", 1, prefetch)
        return flow_of(Boundary(self, executor, prefetch))

    def subscribe_on(self, executor: Executor) -> Flow[T_co]:
        """The source runs on `executor`: its iterator is made, pulled and closed there.

        It does not matter where in the flow this stands. If it stands twice, the one nearest to the source counts.

        Args:
            executor: Any `concurrent.futures.Executor` of threads; one of processes is for `map_parallel`.

        Returns:
            A flow of the same signals. It fails with RejectedError where the executor is full or was shut down.

        Raises:
            TypeError: `executor` is no executor, or one of processes.

        Demand:
            Passes through, from any thread.

        Cancellation:
            Passes through, from any thread.

        Thread:
            The source, and what follows up to the next boundary, runs on `executor`. One task at a time is submitted.
            It gives the thread back as that of `publish_on` does.

        Example:
            >>> from concurrent.futures import ThreadPoolExecutor
            >>> from reactive_runtime import Flow
            >>> with ThreadPoolExecutor(1) as pool:
            ...     Flow.range(3).subscribe_on(pool).to_list().block()
            [0, 1, 2]

        Origin:
            `subscribeOn` of Rx.
        """
        return self._on(check_executor("subscribe_on", executor))

    def parallel(self, n: int, *, prefetch: int = PREFETCH) -> ParallelFlow[T_co]:
        """Deals the elements out to `n` rails, which work at the same time.

        Name the executor with `run_on`, the work with `map`, `filter` or `rails`, and bring the rails together with
        `sequential`.

        Args:
            n: How many rails; 1 or more.
            prefetch: How many elements wait for each rail, at most; 1 or more.

        Returns:
            A `ParallelFlow`. The next element goes to a rail that has room.

        Raises:
            TypeError: `n` or `prefetch` is no int.
            ValueError: `n` or `prefetch` is below 1.

        Demand:
            Elements of the source are dealt out from the first demand on, as long as a rail has room. Of a source with
            an executor, or of another library, `prefetch` elements are requested ahead.

        Cancellation:
            Passes to the rails and to the source. A rail that cancels (`rail.take(9)`) gets no more; when all have, the
            source is cancelled.

        Thread:
            The source runs on its executor, or on the thread that requests; the rails on the executor of `run_on`. What
            follows `sequential` goes on on a thread of the rails, or on the one that requests.

        Example:
            >>> from concurrent.futures import ThreadPoolExecutor
            >>> from reactive_runtime import Flow
            >>> with ThreadPoolExecutor(2) as pool:
            ...     squares = Flow.range(4).parallel(2).run_on(pool).map(lambda n: n * n).sequential()
            ...     sorted(squares)
            [0, 1, 4, 9]

        Origin:
            `parallel` of RxJava and Reactor.
        """
        at_least("parallel", "n", 1, n)
        at_least("parallel", "prefetch", 1, prefetch)
        return ParallelFlow(self, n, prefetch, None, ())


class ParallelFlow(Generic[T_co]):
    """A flow on several rails; see `Flow.parallel`.

    It is immutable: each method returns another one.
    """

    __slots__ = ("_executor", "_n", "_prefetch", "_source", "_work")

    def __init__(
        self,
        source: FlowBase[Any],
        n: int,
        prefetch: int,
        executor: Executor | None,
        work: tuple[Callable[[Flow[Any]], Flow[Any]], ...],
    ) -> None:
        """For `parallel`; `work` is what is done with each rail, one after the other."""
        self._source = source
        self._n = n
        self._prefetch = prefetch
        self._executor = executor
        self._work = work

    def run_on(self, executor: Executor) -> ParallelFlow[T_co]:
        """Each rail works on `executor`, in tasks of its own.

        Args:
            executor: A `concurrent.futures.Executor` of threads. A later one takes the place of an earlier one.

        Returns:
            The same rails, on that executor.

        Raises:
            TypeError: `executor` is no executor, or one of processes.
        """
        check_executor("run_on", executor)
        return ParallelFlow(self._source, self._n, self._prefetch, executor, self._work)

    def rails(self, fn: Callable[[Flow[T_co]], Flow[S]]) -> ParallelFlow[S]:
        """Each rail becomes `fn(rail)`: any operators.

        Args:
            fn: Called once for each rail and subscription. Takes a flow, and returns one.

        Returns:
            The rails that `fn` returns.

        Raises:
            TypeError: `fn` cannot be called.
        """
        check_callable("rails", "fn", fn)
        return ParallelFlow(self._source, self._n, self._prefetch, self._executor, (*self._work, fn))

    def map(self, fn: Callable[[T_co], S]) -> ParallelFlow[S]:
        """`map` on each rail.

        Args:
            fn: Called for each element, on the executor of the rails.

        Returns:
            The same rails, of the results.

        Raises:
            TypeError: `fn` cannot be called.
        """
        check_callable("map", "fn", fn)
        return self.rails(lambda rail: rail.map(fn))

    def filter(self, predicate: Callable[[T_co], object]) -> ParallelFlow[T_co]:
        """`filter` on each rail.

        Args:
            predicate: Called for each element, on the executor of the rails. A false answer drops the element.

        Returns:
            The same rails, of the elements that pass.

        Raises:
            TypeError: `predicate` cannot be called.
        """
        check_callable("filter", "predicate", predicate)
        return self.rails(lambda rail: rail.filter(predicate))

    def sequential(self) -> Flow[T_co]:
        """The elements of all rails, as they come.

        Returns:
            A flow. An error of one rail cancels the others and ends it.

        Raises:
            ValueError: The rails have no executor: `run_on` has to come before.
        """
        executor = self._executor
        if executor is None:
            raise ValueError("sequential: name the executor of the rails before it, with run_on(executor)")
        source, n, prefetch, work = self._source, self._n, self._prefetch, self._work
        title = f"parallel({n}) sequential()"
        return combinator_flow(title, lambda: _Rails(source, n, prefetch, executor, work), source, uses=(executor,))


def _itself(buffer: SubscriberBuffer) -> SubscriberBuffer:
    return buffer


class _Rails(Passing):
    hears = True  # the rails wake it

    def __init__(
        self,
        source: FlowBase[Any],
        n: int,
        prefetch: int,
        executor: Executor,
        work: Sequence[Callable[[Flow[Any]], Flow[Any]]],
    ) -> None:
        super().__init__(source)
        self.n = n
        self.prefetch = prefetch
        self.workers = executor
        self.work = work
        # The owner of the drain owns all fields but `changed`.
        self.buffers: list[SubscriberBuffer] = []  # one for each rail
        self.ended = False  # the rails know that the source has ended
        self.held: Any = PENDING  # an element that no rail had room for
        self.rooms: list[int] = []  # the room of each rail when the owner last looked, less the elements since
        # A rail has made room, or cancelled. Any thread sets the flag and then wakes the drain; the owner clears it
        # and then looks at the rails, so it looks once more at a change that comes in between.
        self.changed = True

    def _wake(self) -> None:
        self.changed = True
        self.drain.wake()

    def elements(self) -> Elements:
        ready_set = ReadySet(self)
        for _ in range(self.n):
            buffer = SubscriberBuffer(self.prefetch, self._wake, self._wake)
            self.buffers.append(buffer)
            rail: FlowBase[Any] = flow_of(Hot("rail", partial(_itself, buffer), self.workers))
            for fn in self.work:
                rail = self.call(fn, rail)
            ready_set.add(self.inner(rail, self.prefetch, apart=False, made=True))
        outer = self.inner(self.source, self.prefetch)
        begun = False
        while len(ready_set):
            begun = begun or self.drain.demanded
            if not begun:
                outer.peek_end()
            dealt = (begun or outer.over) and not self.drain.stopped and self._deal(outer)
            element = ready_set.next_if_demanded()
            if element is not END and not (dealt and element is PENDING):
                yield element

    def _deal(self, outer: InnerSubscription) -> bool:
        """Give the next element to the rail with the most room. False: there is no element, or no room.

        A rail sets `changed` when it has taken a quarter, or all, of the elements that may wait for it. The owner looks
        at its room then.
        """
        if self.changed:
            self.changed = False
            if all(buffer.has_cancelled() for buffer in self.buffers):  # the rails can give the rest without the source
                self.leave(outer)
            self.rooms = [buffer.room_left() for buffer in self.buffers]
        most = max(self.rooms)
        if not most:
            return False
        element, self.held = self.held, PENDING
        if element is PENDING:
            element = outer.next_signal()
        if element is PENDING:
            return False
        if element is END:
            if not self.ended:
                self.ended = True
                for buffer in self.buffers:
                    buffer.end()
                    buffer.wake()
            return False
        at = self.rooms.index(most)
        taken, rests = self.buffers[at].deal(element)
        if taken:
            self.rooms[at] -= 1
            if rests is not None:
                rests.wake()
        else:  # the rail has just cancelled: another one gets the element
            self.rooms[at] = 0
            self.held = element
        return True

    def closed(self) -> None:
        for buffer in self.buffers:
            buffer.end()
            self.discard(*buffer.abandoned())
        if self.held is not PENDING:
            self.discard(self.held)
