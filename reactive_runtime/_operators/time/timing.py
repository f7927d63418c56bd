"""Operators with a clock, and the two sources that are one.

`clock` is an executor with a clock: `ScheduledExecutor` for real time, `VirtualTimeExecutor` in tests. Without one it
is that of the context in which the flow is subscribed to (`executors.clock_of`), or one of real time that all flows
share. A timer wakes a source that is one on its executor; without one, and in the operators, what a timer brings goes
on on the clock's thread, or on one of a few daemon threads of the shared one. Seconds are numbers from 0. A clock that
is shut down ends the flow with RejectedError. With the end of the flow its timers are cancelled.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from reactive_runtime._core.drains.combinator import END, PENDING, Clock, Combinator, Elements, Timer
from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.runtime.arguments import at_least, check_clock, one_of, seconds_of
from reactive_runtime._core.sources.naming import instead, is_publisher
from reactive_runtime._executors.shared_clock import clock_used
from reactive_runtime._executors.virtual_time import SECOND, nanoseconds_of, now_ns
from reactive_runtime._operators.flow_base import FlowBase, as_flow, combinator_flow
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._spec import Publisher
from reactive_runtime.executors import clock_in

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["WAITING", "Timed", "TimingOperators", "seconds_or_flow"]

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")

WAITING = 256
"""How many elements an operator keeps for later, at most."""


class TimingOperators(FlowBase[T_co]):
    """Operators with a clock, and the two sources that are one."""

    __slots__ = ()

    @staticmethod
    def timer(seconds: float, *, clock: Clock | None = None) -> Flow[int]:
        """One element, 0, when `seconds` have passed.

        Args:
            seconds: How long after the subscription; 0 or more.
            clock: An executor with a clock: `ScheduledExecutor`, or `VirtualTimeExecutor` in tests. None: the clock of
                the context; see `executors.clock_of`.

        Returns:
            A flow of one element. It fails with RejectedError when the clock is shut down.

        Raises:
            TypeError: `seconds` is no number, or `clock` has no clock.
            ValueError: `seconds` is negative or not finite.

        Demand:
            The time runs from the subscription. The element waits for demand.

        Cancellation:
            Cancels the timer.

        Thread:
            The element comes on the executor of `subscribe_on`; without one on the clock's thread, or on one of the few
            daemon threads of the shared clock; where it waited for demand, on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> _ = Flow.timer(5, clock=clock).subscribe(print)
            >>> clock.advance(5)
            0

        Origin:
            `timer` of Rx.
        """
        seconds_of("timer", "seconds", seconds)
        check_clock("timer", clock)
        return combinator_flow(f"timer({seconds:g} s)", lambda: _Timer(seconds, clock), uses=(clock_used(clock),))

    @staticmethod
    def interval(
        seconds: float,
        *,
        clock: Clock | None = None,
        overflow: Literal["drop", "buffer", "latest"] = "drop",
        capacity: int = WAITING,
    ) -> Flow[int]:
        """0, 1, 2 …, one every `seconds`, the first after as many.

        A clock does not wait for demand: `overflow` says what becomes of a tick that comes without. Ticks keep to the
        beginning, and do not drift.

        Args:
            seconds: From one tick to the next; above 0.
            clock: An executor with a clock: `ScheduledExecutor`, or `VirtualTimeExecutor` in tests. None: the clock of
                the context; see `executors.clock_of`.
            overflow: A tick without demand is dropped ("drop"), or kept in place of the one before ("latest"), or kept
                ("buffer"), up to `capacity`; one more is an OverflowError. Dropped ticks go to the hook.
            capacity: How many ticks wait for demand, at most, with "buffer"; 1 or more; 256.

        Returns:
            A flow without end. It fails with OverflowError when the buffer is full, and with RejectedError when the
            clock is shut down.

        Raises:
            TypeError: `seconds` is no number, `clock` has no clock, or `capacity` is no int.
            ValueError: `seconds` is not above 0 or not finite, `overflow` is another word, or `capacity` is below 1.

        Demand:
            Ticks come at their times, whatever is demanded. `publish_on` requests its `prefetch`: a tick that finds as
            many waiting there has no demand.

        Cancellation:
            Cancels the timer. Ticks that wait go to the hook.

        Thread:
            Ticks come on the executor of `subscribe_on`; without one on the clock's thread, or on one of the few daemon
            threads of the shared clock; one that waited for demand, on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> _ = Flow.interval(1, clock=clock).take(2).subscribe(print)
            >>> clock.advance(5)
            0
            1

        Origin:
            `interval` of Rx.
        """
        seconds_of("interval", "seconds", seconds, positive=True)
        check_clock("interval", clock)
        one_of("interval", "overflow", ("drop", "buffer", "latest"), overflow)
        at_least("interval", "capacity", 1, capacity)
        return combinator_flow(
            f"interval({seconds:g} s)", lambda: _Interval(seconds, clock, overflow, capacity), uses=(clock_used(clock),)
        )

    def delay(self, seconds: float, *, clock: Clock | None = None) -> Flow[T_co]:
        """Each element `seconds` later, and so the end; an error comes at once.

        Args:
            seconds: How much later; 0 or more.
            clock: An executor with a clock: `ScheduledExecutor`, or `VirtualTimeExecutor` in tests. None: the clock of
                the context; see `executors.clock_of`.

        Returns:
            A flow of the same elements. With an error of the source, what waits is dropped, to the hook. It fails with
            RejectedError when the clock is shut down.

        Raises:
            TypeError: `seconds` is no number, or `clock` has no clock.
            ValueError: `seconds` is negative or not finite.

        Demand:
            At most 256 elements wait for their time; when so many do, no more are requested. An element whose time has
            come waits for demand.

        Cancellation:
            Passes through. Elements that wait then go to the hook.

        Thread:
            A source without an executor runs on the thread that requests. Elements and the end come on the clock's
            thread, or on one of the few daemon threads of the shared clock; one that waited for demand, on the thread
            that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> _ = Flow.range(2).delay(5, clock=clock).subscribe(print)
            >>> clock.advance(5)
            0
            1

        Origin:
            `delay` of Rx.
        """
        seconds_of("delay", "seconds", seconds)
        check_clock("delay", clock)
        return combinator_flow(
            f"delay({seconds:g} s)", lambda: _Delay(seconds, clock, self), self, uses=(clock_used(clock),)
        )

    @overload
    def timeout(self, seconds: float, *, clock: Clock | None = None, fallback: None = None) -> Flow[T_co]: ...

    @overload
    def timeout(self, seconds: float, *, clock: Clock | None = None, fallback: Publisher[R]) -> Flow[T_co | R]: ...

    def timeout(
        self, seconds: float, *, clock: Clock | None = None, fallback: Publisher[Any] | None = None
    ) -> Flow[Any]:
        """The source; where an element that is demanded takes longer than `seconds`, a TimeoutError, or `fallback`.

        The time runs from when there is demand, and anew from each element; a subscriber that requests nothing is not
        timed.

        Args:
            seconds: How long an element may take; above 0.
            clock: An executor with a clock: `ScheduledExecutor`, or `VirtualTimeExecutor` in tests. None: the clock of
                the context; see `executors.clock_of`.
            fallback: A publisher that follows in place of the TimeoutError. None: the error.

        Returns:
            A flow of the elements of the source, and then of those of `fallback`. When the time is over, the source is
            cancelled. It fails with RejectedError when the clock is shut down.

        Raises:
            TypeError: `seconds` is no number, `clock` has no clock, or `fallback` is no publisher.
            ValueError: `seconds` is not above 0 or not finite.

        Demand:
            Passes to the source, exactly. The demand that is left goes to `fallback`.

        Cancellation:
            Passes to the one that is under way, and cancels the timer.

        Thread:
            Elements go on on the thread of the source; without an executor it runs on the thread that requests, and is
            timed all the same. The error comes on the clock's thread, or on one of the few daemon threads of the shared
            clock, and `fallback` goes on there where it has no executor.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> _ = Flow.never().timeout(5, clock=clock).subscribe(print, on_error=print)
            >>> clock.advance(5)
            timeout(5 s): no element in 5 s

        Origin:
            `timeout` of Rx.
        """
        seconds_of("timeout", "seconds", seconds, positive=True)
        check_clock("timeout", clock)
        flow = None if fallback is None else as_flow("timeout", "fallback", fallback)
        uses = (clock_used(clock),) if flow is None else (clock_used(clock), flow)
        return combinator_flow(f"timeout({seconds:g} s)", lambda: _Timeout(seconds, clock, self, flow), self, uses=uses)

    @stateful
    def buffer_timeout(self, n: int, seconds: float, *, clock: Clock | None = None) -> Flow[list[T_co]]:
        """Lists of `n` elements, or of those there are when `seconds` have passed since the first of them.

        A list is begun when one is demanded: until then no time runs.

        Args:
            n: How many elements a list has, at most; 1 or more.
            seconds: How long a list is filled, from its first element on; above 0.
            clock: An executor with a clock: `ScheduledExecutor`, or `VirtualTimeExecutor` in tests. None: the clock of
                the context; see `executors.clock_of`.

        Returns:
            A flow of lists, none of them empty. The last one comes with the end. A list that is not full when the flow
            fails is dropped, to the hook. It fails with RejectedError when the clock is shut down.

        Raises:
            TypeError: `n` is no int, `seconds` is no number, or `clock` has no clock.
            ValueError: `n` is below 1, or `seconds` is not above 0 or not finite.

        Demand:
            Up to `n` elements are requested ahead, and may wait before a list is demanded. A list that is due and has
            no demand waits, and takes no more than `n`.

        Cancellation:
            Passes through. The elements of a list that has not been delivered go to the hook.

        Thread:
            A list that is full comes on the thread of the source, and so does the last one; one whose time has come, on
            the clock's thread, or on one of the few daemon threads of the shared clock; one that waited for demand, on
            the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> _ = Flow.interval(1, clock=clock).take(4).buffer_timeout(3, 1.5, clock=clock).subscribe(print)
            >>> clock.advance(9)
            [0, 1]
            [2, 3]

        Origin:
            `bufferTimeout` of Reactor.
        """
        at_least("buffer_timeout", "n", 1, n)
        seconds_of("buffer_timeout", "seconds", seconds, positive=True)
        check_clock("buffer_timeout", clock)
        return combinator_flow(
            f"buffer_timeout({n}, {seconds:g} s)",
            lambda: _BufferTimeout(n, seconds, clock, self),
            self,
            uses=(clock_used(clock),),
        )


def seconds_or_flow(operator: str, argument: str, value: Any, *, positive: bool = False) -> float | FlowBase[Any]:
    """`value` as a flow, or as a number of seconds; TypeError where it is neither."""
    if is_publisher(value):
        return as_flow(operator, argument, value)
    if not isinstance(value, int | float):
        raise TypeError(f"{operator}: {argument} must be a publisher or a number of seconds, not {instead(value)}")
    return seconds_of(operator, argument, value, positive=positive)


class Timed(Combinator):
    """Has a clock, and, but for `timer` and `interval`, a source."""

    hears = True
    calls = False

    def __init__(self, seconds: float, clock: Clock | None, source: FlowBase[Any] | None = None) -> None:
        super().__init__()
        self.seconds = seconds
        self.ns = nanoseconds_of(seconds)
        self.given = clock
        self.clock: Clock  # set once, by attach
        self.source: FlowBase[Any] = source  # type: ignore[assignment]  # the two that have none do not use it

    def attach(self, drain: DrainContext) -> None:
        super().attach(drain)
        self.clock = clock_in(drain.context) if self.given is None else self.given

    def now(self) -> int:
        """The time in whole nanoseconds, as all times here: their sums are exact."""
        return now_ns(self.clock)

    def after(self, ns: int) -> Timer:
        return self.timer(self.clock, ns / SECOND)

    def again(self, timer: Timer, ns: int) -> None:
        timer.again(ns / SECOND)

    def pushes(self) -> bool:
        return True


class _Timer(Timed):
    def elements(self) -> Elements:
        timer = self.after(self.ns)
        while not (timer.due() and self.drain.demanded):
            yield PENDING
        yield 0


class _Interval(Timed):
    def __init__(self, seconds: float, clock: Clock | None, overflow: str, capacity: int) -> None:
        super().__init__(seconds, clock)
        self.overflow = overflow
        self.capacity = 1 if overflow == "latest" else capacity
        self.waiting: deque[int] = deque()

    def elements(self) -> Elements:
        begin = self.now()
        timer = self.after(self.ns)
        tick = 0
        while True:
            if timer.due():
                yield from self._tick(tick)
                tick += 1
                self.again(timer, max(0, begin + (tick + 1) * self.ns - self.now()))
            elif self.waiting and self.drain.demanded:
                yield self.waiting.popleft()
            else:
                yield PENDING

    def _tick(self, tick: int) -> Elements:
        if self.drain.demanded and not self.waiting:
            yield tick
        elif self.overflow == "drop":
            self.discard(tick, wanted=True)
        else:
            self.waiting.append(tick)
            if len(self.waiting) > self.capacity:
                oldest = self.waiting.popleft()
                self.discard(oldest, wanted=self.overflow != "buffer")
                if self.overflow == "buffer":
                    message = f"{self.title}: {self.capacity} ticks wait, and none is demanded (capacity=, overflow=)"
                    raise self.fault(OverflowError(message))

    def closed(self) -> None:
        self.discard(*self.waiting)


class _Delay(Timed):
    def __init__(self, seconds: float, clock: Clock | None, source: FlowBase[Any]) -> None:
        super().__init__(seconds, clock, source)
        self.waiting: deque[tuple[int, Any]] = deque()
        self.ticked = False  # an element that waits is due

    def _overdue(self) -> bool:
        """Whether the first element became due while it waited behind another one: it needs no timer."""
        self.ticked = self.ticked and bool(self.waiting)
        return self.ticked and self.waiting[0][0] <= self.now()

    def elements(self) -> Elements:
        inner = self.inner(self.source, WAITING)
        timer: Timer | None = None
        begun = False
        while True:
            begun = begun or self.drain.demanded
            while not inner.over and len(self.waiting) < WAITING:
                element = inner.next_signal() if begun else inner.peek_end()
                if element is PENDING:
                    break
                self.waiting.append((self.now() + self.ns, element))
            due = self._overdue() if timer is None else timer.due()
            if due:
                element = self.waiting[0][1]
                if element is END:
                    self.waiting.clear()
                    return
                if self.drain.demanded:
                    self.waiting.popleft()
                    if timer is not None:
                        self.timers.remove(timer)
                        timer, self.ticked = None, True
                    yield element
                    continue
            if timer is None and self.waiting and not due:
                timer = self.after(max(0, self.waiting[0][0] - self.now()))
                continue
            yield PENDING

    def closed(self) -> None:
        self.discard(*(element for _, element in self.waiting if element is not END))


class _Timeout(Timed):
    def __init__(
        self, seconds: float, clock: Clock | None, source: FlowBase[Any], fallback: FlowBase[Any] | None
    ) -> None:
        super().__init__(seconds, clock, source)
        self.fallback = fallback

    def elements(self) -> Elements:
        inner = self.inner(self.source)
        timer: Timer | None = None
        since = self.now()
        timed = False
        while (element := inner.next_if_demanded()) is not END:
            if element is not PENDING:
                timed = False
                yield element
                continue
            if self.drain.demanded and not timed:
                timed, since = True, self.now()
                if timer is None:
                    timer = self.after(self.ns)
            if timer is not None and timer.due():
                left = since + self.ns - self.now()
                if timed and left <= 0:
                    break
                self.timers.remove(timer)
                timer = self.after(left) if timed else None
                continue
            yield PENDING
        else:
            return
        self.leave(inner)
        if self.fallback is None:
            raise self.fault(TimeoutError(f"{self.title}: no element in {self.seconds:g} s"))
        yield from self.relay(self.inner(self.fallback, made=True))


class _BufferTimeout(Timed):
    def __init__(self, n: int, seconds: float, clock: Clock | None, source: FlowBase[Any]) -> None:
        super().__init__(seconds, clock, source)
        self.n = n
        self.batch: list[Any] = []

    def elements(self) -> Elements:
        inner = self.inner(self.source, self.n)
        timer: Timer | None = None
        while True:
            takes = len(self.batch) < self.n and (self.drain.demanded or self.batch)
            element = inner.next_signal() if takes else inner.peek_end()
            if element is not PENDING and element is not END:
                self.batch.append(element)
                if len(self.batch) == 1:
                    if timer is None:
                        timer = self.after(self.ns)
                    else:
                        self.again(timer, self.ns)
            due = self.batch and (len(self.batch) == self.n or element is END or (timer is not None and timer.due()))
            if due and self.drain.demanded:
                batch, self.batch = self.batch, []
                if timer is not None:
                    timer.cancel()
                yield batch
            elif element is END and not self.batch:
                return
            elif element is PENDING or element is END:
                yield PENDING

    def closed(self) -> None:
        self.discard(*self.batch)
