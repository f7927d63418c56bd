"""`deadline`: a time limit of the whole flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from reactive_runtime._core.drains.combinator import END, PENDING, Clock, Elements
from reactive_runtime._core.runtime.arguments import check_clock, seconds_of
from reactive_runtime._executors.shared_clock import clock_used
from reactive_runtime._operators.flow_base import FlowBase, combinator_flow
from reactive_runtime._operators.time.timing import Timed

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["DeadlineOperators"]

T_co = TypeVar("T_co", covariant=True)


class DeadlineOperators(FlowBase[T_co]):
    """`deadline`: a time limit of the whole flow."""

    __slots__ = ()

    def deadline(self, seconds: float, *, clock: Clock | None = None) -> Flow[T_co]:
        """The source; if it has not ended after `seconds`, the flow fails with TimeoutError.

        The time runs from the subscription to the end of the flow, also while no element comes and none is demanded. To
        limit the wait for each element, use `timeout`.

        Args:
            seconds: The time that the whole flow has; above 0.
            clock: An executor with a clock: `ScheduledExecutor`, or `VirtualTimeExecutor` in tests. None: the clock of
                the context; see `executors.clock_of`.

        Returns:
            A flow of the elements of the source. At the deadline it cancels the source, and fails with TimeoutError,
            also without demand. If the clock is shut down, the flow fails with RejectedError.

        Raises:
            TypeError: `seconds` is no number, or `clock` has no clock.
            ValueError: `seconds` is not above 0, or not finite.

        Demand:
            Passes to the source, exactly.

        Cancellation:
            Passes to the source, and cancels the timer. An element that the source is making at the deadline goes to
            the hook.

        Thread:
            Elements come on the thread of the source, or on the one that requests; the error on the clock's thread, or
            on one of the few daemon threads of the shared clock.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> ticks = Flow.interval(1, clock=clock).deadline(2.5, clock=clock)
            >>> _ = ticks.subscribe(print, on_error=print)
            >>> clock.advance(10)
            0
            1
            deadline(2.5 s): not at its end in 2.5 s, with 2 elements

        Origin:
            `completionTimeout` of Pekko Streams.
        """
        seconds_of("deadline", "seconds", seconds, positive=True)
        check_clock("deadline", clock)
        return combinator_flow(
            f"deadline({seconds:g} s)", lambda: _Deadline(seconds, clock, self), self, uses=(clock_used(clock),)
        )


class _Deadline(Timed):
    def elements(self) -> Elements:
        timer = self.after(self.ns)
        inner = self.inner(self.source)
        count = 0
        while not timer.due():
            element = inner.next_if_demanded()
            if element is END:
                return
            count += element is not PENDING
            yield element
        self.leave(inner)
        raise self.fault(TimeoutError(f"{self.title}: not at its end in {self.seconds:g} s, with {count} elements"))
