"""The time of each element, and of the subscription."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from reactive_runtime._core.drains.combinator import END, PENDING, Clock, Elements
from reactive_runtime._core.runtime.arguments import check_clock
from reactive_runtime._executors.shared_clock import clock_used
from reactive_runtime._executors.virtual_time import SECOND
from reactive_runtime._operators.flow_base import FlowBase, combinator_flow
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._operators.time.timing import Timed, seconds_or_flow
from reactive_runtime._spec import Publisher

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["StampOperators"]

T_co = TypeVar("T_co", covariant=True)


class StampOperators(FlowBase[T_co]):
    """The time of each element, and of the subscription."""

    __slots__ = ()

    def timestamp(self, *, clock: Clock | None = None) -> Flow[tuple[float, T_co]]:
        """Each element with its time: pairs `(seconds, element)`.

        Args:
            clock: An executor with a clock: `ScheduledExecutor`, or `VirtualTimeExecutor` in tests. None: the clock of
                the context; see `executors.clock_of`. It is asked for the time, and runs nothing.

        Returns:
            A flow of pairs. The time is that of the clock, in seconds from some beginning, when the element comes here.
            It is the time of day only if the clock has that.

        Raises:
            TypeError: `clock` has no clock.

        Demand:
            Passes through, exactly.

        Cancellation:
            Passes through.

        Thread:
            Elements go on on the thread of the source; without an executor it runs on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> _ = Flow.interval(2, clock=clock).take(2).timestamp(clock=clock).subscribe(print)
            >>> clock.advance(5)
            (2.0, 0)
            (4.0, 1)

        Origin:
            `timestamp` of Rx.
        """
        check_clock("timestamp", clock)
        return combinator_flow("timestamp()", lambda: _Timestamp(clock, self), self, uses=(clock_used(clock),))

    @stateful
    def elapsed(self, *, clock: Clock | None = None) -> Flow[tuple[float, T_co]]:
        """Each element with the time since the one before: pairs `(seconds, element)`.

        Args:
            clock: An executor with a clock: `ScheduledExecutor`, or `VirtualTimeExecutor` in tests. None: the clock of
                the context; see `executors.clock_of`. It is asked for the time, and runs nothing.

        Returns:
            A flow of pairs. The first has the time since the subscription.

        Raises:
            TypeError: `clock` has no clock.

        Demand:
            Passes through, exactly. The time in which nothing is demanded counts.

        Cancellation:
            Passes through.

        Thread:
            Elements go on on the thread of the source; without an executor it runs on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> _ = Flow.interval(2, clock=clock).take(2).elapsed(clock=clock).subscribe(print)
            >>> clock.advance(5)
            (2.0, 0)
            (2.0, 1)

        Origin:
            `elapsed` of Reactor, `timeInterval` of RxJava.
        """
        check_clock("elapsed", clock)
        return combinator_flow("elapsed()", lambda: _Elapsed(clock, self), self, uses=(clock_used(clock),))

    def delay_subscription(self, delay: float | Publisher[object], *, clock: Clock | None = None) -> Flow[T_co]:
        """The source, which is subscribed to when so many seconds have passed, or another publisher has signalled.

        Args:
            delay: Seconds, 0 or more; or a publisher: its first element, or its completion, ends the wait.
            clock: An executor with a clock: `ScheduledExecutor`, or `VirtualTimeExecutor` in tests. None: the clock of
                the context; see `executors.clock_of`. A publisher does not need it.

        Returns:
            A flow of the same elements. It fails with the error of the publisher that ends the wait, and with
            RejectedError when the clock is shut down; the source is then not subscribed to.

        Raises:
            TypeError: `delay` is neither a number nor a publisher, or `clock` has no clock.
            ValueError: `delay` is negative or not finite.

        Demand:
            The time runs from the subscription. The demand that has come meanwhile passes to the source, exactly. One
            element is requested of the publisher.

        Cancellation:
            Passes to the one that is under way; the source is not subscribed to after that.

        Thread:
            A source without an executor runs on the thread that ends the wait, if there is demand: the clock's, one of
            the few daemon threads of the shared clock, or that of the publisher; later on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> _ = Flow.range(2).delay_subscription(5, clock=clock).subscribe(print)
            >>> clock.advance(5)
            0
            1

        Origin:
            `delaySubscription` of Rx.
        """
        check_clock("delay_subscription", clock)
        found = seconds_or_flow("delay_subscription", "delay", delay)
        if isinstance(found, FlowBase):
            return combinator_flow("delay_subscription", lambda: _AfterOther(self, found), self, found)
        return combinator_flow(
            f"delay_subscription({found:g} s)",
            lambda: _AfterTime(found, clock, self),
            self,
            uses=(clock_used(clock),),
        )


class _Timestamp(Timed):
    hears = False  # the operator only reads the clock

    def __init__(self, clock: Clock | None, source: FlowBase[Any]) -> None:
        super().__init__(0, clock, source)

    def elements(self) -> Elements:
        inner = self.inner(self.source)
        while (element := inner.next_if_demanded()) is not END:
            yield element if element is PENDING else (float(self.clock.now()), element)

    def pushes(self) -> bool:
        return super(Timed, self).pushes()


class _Elapsed(_Timestamp):
    def elements(self) -> Elements:
        before = self.now()
        inner = self.inner(self.source)
        while (element := inner.next_if_demanded()) is not END:
            if element is PENDING:
                yield PENDING
                continue
            now = self.now()
            since, before = now - before, now
            yield since / SECOND, element


class _AfterTime(Timed):
    def elements(self) -> Elements:
        timer = self.after(self.ns)
        while not timer.due():
            yield PENDING
        self.timers.remove(timer)
        yield from self.relay(self.inner(self.source))


class _AfterOther(Timed):
    def __init__(self, source: FlowBase[Any], other: FlowBase[Any]) -> None:
        super().__init__(0, None, source)  # the other publisher is its clock
        self.other = other

    def elements(self) -> Elements:
        other = self.inner(self.other, 1)
        while other.next_signal() is PENDING:
            yield PENDING
        self.leave(other)
        yield from self.relay(self.inner(self.source))
