"""On which thread a flow runs."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import TYPE_CHECKING, TypeVar

from reactive_runtime._core.arguments import PREFETCH, at_least, check_executor
from reactive_runtime._core.flow_base import FlowBase
from reactive_runtime._core.flow_source import Boundary, flow_of

if TYPE_CHECKING:
    from reactive_runtime.flow import Flow

__all__ = ["SchedulingOperators"]

T_co = TypeVar("T_co", covariant=True)


class SchedulingOperators(FlowBase[T_co]):
    """On which thread a flow runs."""

    __slots__ = ()

    def publish_on(self, executor: Executor, prefetch: int = PREFETCH) -> Flow[T_co]:
        """What comes after this runs on `executor`: an asynchronous boundary.

        At most `prefetch` elements (1 or more) wait in the boundary; they are asked for at once, and refilled when
        three quarters have been consumed, whatever the demand downstream. What had arrived before an error or the
        end is delivered first. Signals stay serial on any pool (1.3); the thread is given back after each batch.

        A cold source that has no executor of its own (`subscribe_on`) runs on the thread that asks for elements.
        Behind a boundary that is the boundary's: it is then pulled by demand straight through, without prefetch.
        A group, or a window, that has none has a buffer already: its elements are taken out of it on `executor`.
        Any other upstream without an executor, such as `retry`, `flat_map` or somebody else's publisher, runs on the
        thread that asks it: first the one that subscribes, then, as the boundary is refilled, the executor's.

        A full or shut-down executor is an `on_error(RejectedError)`, on the thread that noticed. Cancellation passes
        upstream, and what waits in the boundary goes to the hook of dropped elements.
        Origin: `observeOn` of Rx, `publishOn` of Reactor.

        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from reactive_runtime import Flow
        >>> with ThreadPoolExecutor(2) as pool:
        ...     Flow.range(3).subscribe_on(pool).publish_on(pool, prefetch=2).to_list().block()
        [0, 1, 2]
        """
        check_executor("publish_on", executor)
        at_least("publish_on", "prefetch", 1, prefetch)
        return flow_of(Boundary(self, executor, prefetch))

    def subscribe_on(self, executor: Executor) -> Flow[T_co]:
        """The source runs on `executor`: its iterator is made, pulled and closed there.

        It does not matter where in the flow this stands; where it stands twice, the one nearest to the source counts.
        One task at a time is submitted; it gives the thread back after a batch of elements. Demand and cancellation
        pass through, from whatever thread. A full or shut-down executor is an `on_error(RejectedError)`.
        Origin: `subscribeOn` of Rx.

        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from reactive_runtime import Flow
        >>> with ThreadPoolExecutor(1) as pool:
        ...     Flow.range(3).subscribe_on(pool).to_list().block()
        [0, 1, 2]
        """
        return self._on(check_executor("subscribe_on", executor))
