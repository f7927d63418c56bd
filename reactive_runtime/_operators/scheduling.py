"""On which thread a flow runs."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import TYPE_CHECKING, TypeVar

from reactive_runtime._core.runtime.arguments import PREFETCH, at_least, check_executor
from reactive_runtime._core.sources.flow_source import Boundary
from reactive_runtime._operators.flow_base import FlowBase, flow_of

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["SchedulingOperators"]

T_co = TypeVar("T_co", covariant=True)


class SchedulingOperators(FlowBase[T_co]):
    """On which thread a flow runs."""

    __slots__ = ()

    def publish_on(self, executor: Executor, *, prefetch: int = PREFETCH) -> Flow[T_co]:
        """What comes after this runs on `executor`: an asynchronous boundary.

        What had arrived before an error or the end is delivered first. Signals stay serial on any pool (1.3).

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
            Passes upstream. What waits in the boundary is dropped, to the hook.

        Thread:
            What follows runs on `executor`, and gives the thread back after each batch. A cold source that has no
            executor of its own (`subscribe_on`) runs on the thread that requests: behind a boundary on the boundary's.
            A group, or a window, that has none has a buffer already: its elements are taken out of it on `executor`.
            Any other upstream without an executor, such as `retry`, `flat_map` or a publisher of another library, runs
            on the thread that requests: first the one that subscribes, then, as the boundary is refilled, the
            executor's.

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

        It does not matter where in the flow this stands. Where it stands twice, the one nearest to the source counts.

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
            It gives the thread back after a batch of elements.

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
