"""How many elements pass in a time.

`timing` says which clock an operator has, and on which thread a timer signals.
"""

from __future__ import annotations

import sys
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from reactive_runtime._core.drains.combinator import END, PENDING, Clock, Elements, Timer
from reactive_runtime._core.runtime.arguments import at_least, check_clock, seconds_of
from reactive_runtime._executors.shared_clock import clock_used
from reactive_runtime._operators.flow_base import FlowBase, combinator_flow
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._operators.time.timing import WAITING, Timed, TimingOperators, seconds_or_flow
from reactive_runtime._spec import Publisher

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["RateOperators"]

T_co = TypeVar("T_co", covariant=True)


class RateOperators(FlowBase[T_co]):
    """How many elements pass in a time."""

    __slots__ = ()

    @stateful
    def debounce(self, seconds: float, *, clock: Clock | None = None) -> Flow[T_co]:
        """An element when `seconds` have passed without another one; those that are followed sooner are dropped.

        Dropped elements go to the hook.

        Args:
            seconds: How long no other element comes; 0 or more.
            clock: An executor with a clock: `ScheduledExecutor`, or `VirtualTimeExecutor` in tests. None: the clock of
                the context; see `executors.clock_of`.

        Returns:
            A flow of some of the elements. The last element comes with the end. An error of the source comes at once,
            and what waits goes to the hook. It fails with RejectedError when the clock is shut down.

        Raises:
            TypeError: `seconds` is no number, or `clock` has no clock.
            ValueError: `seconds` is negative or not finite.

        Demand:
            Of the source everything is requested, 256 elements at a time. An element that is due and has no demand
            waits, until a newer one is due.

        Cancellation:
            Passes through. Elements that wait then go to the hook.

        Thread:
            Elements come on the clock's thread, or on one of the few daemon threads of the shared clock; the last one
            on the thread on which the source completes; one that waited for demand, on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> keys = Flow.interval(1, clock=clock).take(3)
            >>> _ = keys.debounce(2, clock=clock).subscribe(print)
            >>> clock.advance(9)
            2

        Origin:
            `debounce` of Rx.
        """
        seconds_of("debounce", "seconds", seconds)
        check_clock("debounce", clock)
        return combinator_flow(
            f"debounce({seconds:g} s)", lambda: _Debounce(seconds, clock, self), self, uses=(clock_used(clock),)
        )

    @stateful
    def throttle(self, seconds: float, *, clock: Clock | None = None) -> Flow[T_co]:
        """An element, and then none for `seconds`; those that come meanwhile are dropped, to the hook.

        Args:
            seconds: How long no other element goes on; 0 or more.
            clock: An executor with a clock: `ScheduledExecutor`, or `VirtualTimeExecutor` in tests. None: the clock of
                the context; see `executors.clock_of`. It is asked for the time, and runs nothing.

        Returns:
            A flow of some of the elements, with the end of the source.

        Raises:
            TypeError: `seconds` is no number, or `clock` has no clock.
            ValueError: `seconds` is negative or not finite.

        Demand:
            Passes to the source, exactly. For each element that is dropped, one more is requested.

        Cancellation:
            Passes through.

        Thread:
            Elements go on on the thread of the source; without an executor it runs on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> _ = Flow.interval(1, clock=clock).take(5).throttle(2, clock=clock).subscribe(print)
            >>> clock.advance(9)
            0
            2
            4

        Origin:
            `throttleFirst` of Rx.
        """
        seconds_of("throttle", "seconds", seconds)
        check_clock("throttle", clock)
        return combinator_flow(
            f"throttle({seconds:g} s)", lambda: _Throttle(seconds, clock, self), self, uses=(clock_used(clock),)
        )

    @stateful
    def sample(self, sampler: Publisher[object] | float, *, clock: Clock | None = None) -> Flow[T_co]:
        """The latest element of the source, every so many seconds, or whenever `sampler` has an element.

        There is none where there was nothing new.

        Elements that are followed before the next sample are dropped, to the hook.

        Args:
            sampler: Seconds from one sample to the next, above 0; or a publisher, each element of which takes a sample.
                It is subscribed to before the source.
            clock: An executor with a clock: `ScheduledExecutor`, or `VirtualTimeExecutor` in tests. None: the clock of
                the context; see `executors.clock_of`. A publisher does not need it.

        Returns:
            A flow of some of the elements. It completes with either, the last element first, and cancels the other. An
            error of either comes at once, and what waits goes to the hook. It fails with RejectedError when the clock
            is shut down.

        Raises:
            TypeError: `sampler` is neither a number nor a publisher, or `clock` has no clock.
            ValueError: `sampler` is not above 0 or not finite.

        Demand:
            Of both everything is requested, 256 elements at a time. An element that was sampled and has no demand
            waits, until the next sample takes its place.

        Cancellation:
            Passes to both. Elements that wait then go to the hook.

        Thread:
            Elements come on the thread on which `sampler` signals: with seconds, the clock's, or one of the few daemon
            threads of the shared clock. The last one comes on that of the one that completes; one that waited for
            demand, on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> _ = Flow.interval(1, clock=clock).take(5).sample(2.4, clock=clock).subscribe(print)
            >>> clock.advance(9)
            1
            3
            4

        Origin:
            `sample` of Rx.
        """
        check_clock("sample", clock)
        found = seconds_or_flow("sample", "sampler", sampler, positive=True)
        flow = found if isinstance(found, FlowBase) else TimingOperators.interval(found, clock=clock)
        return combinator_flow("sample", lambda: _Sample(self, flow), self, flow)

    def rate_limit(self, n: int, *, clock: Clock | None = None, per: float = 1.0) -> Flow[T_co]:
        """At most `n` elements in any stretch of `per` seconds; nothing is dropped.

        Args:
            n: How many elements; 1 or more.
            clock: An executor with a clock: `ScheduledExecutor`, or `VirtualTimeExecutor` in tests. None: the clock of
                the context; see `executors.clock_of`.
            per: In how many seconds; above 0.

        Returns:
            A flow of the same elements, some of them later. It fails with RejectedError when the clock is shut down.

        Raises:
            TypeError: `n` is no int, `per` is no number, or `clock` has no clock.
            ValueError: `n` is below 1, or `per` is not above 0 or not finite.

        Demand:
            More elements are requested when their time has come: a source that is pulled waits, one that pushes is held
            back by its demand. At most `n` elements wait here.

        Cancellation:
            Passes through, and cancels the timer.

        Thread:
            Elements go on on the thread of the source; without an executor it runs on the thread that requests. After a
            wait they may come on the clock's thread, or on one of the few daemon threads of the shared clock, where a
            source without an executor then goes on.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> _ = Flow.range(3).rate_limit(2, clock=clock, per=5).subscribe(print)
            0
            1
            >>> clock.advance(5)
            2

        Origin:
            The rate limiters of back-ends.
        """
        at_least("rate_limit", "n", 1, n)
        check_clock("rate_limit", clock)
        seconds_of("rate_limit", "per", per, positive=True)
        return combinator_flow(
            f"rate_limit({n}, {per:g} s)", lambda: _RateLimit(n, per, clock, self), self, uses=(clock_used(clock),)
        )


class _OfLatest(Timed):
    """Keeps the latest element until its time has come, and then until there is demand for it."""

    latest: Any = PENDING

    due: Any = PENDING
    """An element that is due, and waits for demand. A newer element waits until it is due itself."""

    def keep(self, element: Any) -> None:
        if self.latest is not PENDING:
            self.discard(self.latest, wanted=True)
        self.latest = element

    def take(self) -> Any:
        latest, self.latest = self.latest, PENDING
        return latest

    def let_through(self) -> None:
        """Make the latest element due. It takes the place of one that still waits for demand."""
        self.followed()
        self.due = self.take()

    def take_due(self) -> Any:
        due, self.due = self.due, PENDING
        return due

    def followed(self, *, wanted: bool = True) -> None:
        """Drop the element that is due: a newer one takes its place, or (not `wanted`) the flow has ended."""
        if self.due is not PENDING:
            self.discard(self.take_due(), wanted=wanted)

    def last_one(self) -> Elements:
        """Deliver the last element at the end."""
        if self.latest is not PENDING:
            self.let_through()
        while self.due is not PENDING and not self.drain.demanded:
            yield PENDING
        if self.due is not PENDING:
            yield self.take_due()

    def closed(self) -> None:
        self.followed(wanted=False)
        if self.latest is not PENDING:
            self.discard(self.take())


class _Debounce(_OfLatest):
    def elements(self) -> Elements:
        inner = self.inner(self.source, WAITING)
        timer: Timer | None = None
        while (element := inner.next_signal()) is not END:
            if element is not PENDING:
                self.keep(element)
                if timer is None:
                    timer = self.after(self.ns)
                else:
                    self.again(timer, self.ns)
                continue
            if timer is not None and self.latest is not PENDING and timer.due():
                self.let_through()
            if self.due is not PENDING and self.drain.demanded:
                yield self.take_due()
            else:
                yield PENDING
        yield from self.last_one()


class _Throttle(Timed):
    hears = False  # the operator only reads the clock

    def elements(self) -> Elements:
        inner = self.inner(self.source)
        until: int | None = None
        while (element := inner.next_if_demanded()) is not END:
            if element is not PENDING:
                if until is not None and self.now() < until:
                    self.discard(element, wanted=True)
                    continue
                until = self.now() + self.ns
            yield element


class _Sample(_OfLatest):
    def __init__(self, source: FlowBase[Any], sampler: FlowBase[Any]) -> None:
        super().__init__(0, None, source)  # the sampler is its clock
        self.sampler = sampler

    def elements(self) -> Elements:
        sampler = self.inner(self.sampler, WAITING)  # first: the source may keep the thread that subscribes
        inner = self.inner(self.source, WAITING)
        while True:
            element = inner.next_signal()
            if element is END:
                break
            if element is not PENDING:
                self.keep(element)
                if inner.pushes():
                    continue
            news = sampler.next_signal()
            # The sampler may have ended with its last element.
            if news is END or (news is not PENDING and sampler.peek_end() is END):
                break
            if news is not PENDING and self.latest is not PENDING:
                self.let_through()
            if self.due is not PENDING and self.drain.demanded:
                yield self.take_due()
            elif element is PENDING and news is PENDING:
                yield PENDING
        self.leave(inner)  # the operator needs neither any more: the last element may wait for demand
        self.leave(sampler)
        yield from self.last_one()


class _RateLimit(Timed):
    def __init__(self, n: int, per: float, clock: Clock | None, source: FlowBase[Any]) -> None:
        super().__init__(per, clock, source)
        self.n = n
        self.held = False  # no element may go on for now

    def elements(self) -> Elements:
        inner = self.inner(self.source, self.n)
        times: deque[int] = deque(maxlen=min(self.n, sys.maxsize))
        timer: Timer | None = None
        while True:
            left = times[0] + self.ns - self.now() if len(times) == self.n else 0  # read the clock once: time goes on
            self.held = left > 0
            if self.held:
                if timer is None:
                    timer = self.after(left)
                elif timer.due():
                    self.again(timer, left)
                if inner.peek_end() is END:
                    return
                yield PENDING
                continue
            if timer is not None:
                timer.cancel()
                self.timers.remove(timer)
                timer = None
            element = inner.next_if_demanded()
            if element is END:
                return
            if element is not PENDING:
                times.append(self.now())
            yield element

    def request(self, n: int) -> None:
        if not self.held:
            super().request(n)

    def pushes(self) -> bool:
        return super(Timed, self).pushes()
