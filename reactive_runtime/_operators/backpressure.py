"""Demand, changed on its way: in portions, held back, or let through without.

The three `on_overflow` operators are for sources that push: each requests everything of its source. They do nothing
for a source that is pulled: its demand pulls it, so it never overflows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from reactive_runtime._core.drains.combinator import (
    END,
    PENDING,
    Clock,
    Combinator,
    Elements,
)
from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.failures.exits import contained, each
from reactive_runtime._core.queues.prefetch_queue import Overflow
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import (
    at_least,
    check_clock,
    one_of,
    seconds_of,
)
from reactive_runtime._core.sources.naming import instead
from reactive_runtime._operators.flow_base import FlowBase, combinator_flow
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.executors import clock_in

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["BackpressureOperators", "KillSwitch", "Passing", "Valve"]

T_co = TypeVar("T_co", covariant=True)

BUSY = 256
"""How many elements may wait, beyond demand, while the subscriber is at work."""


class BackpressureOperators(FlowBase[T_co]):
    """Demand, changed on its way: in portions, held back, or let through without."""

    __slots__ = ()

    def limit_rate(self, n: int) -> Flow[T_co]:
        """The source is asked for `n` elements at a time: first, and again when three quarters are through.

        So a demand without bound becomes one that the source can plan for.

        Args:
            n: How many elements at a time, and how many wait here, at most; 1 or more.

        Returns:
            A flow of the same elements.

        Raises:
            TypeError: `n` is no int.
            ValueError: `n` is below 1.

        Demand:
            `n` elements are requested, whatever is demanded, and more when three quarters of them are through. A source
            that is pulled is pulled by demand.

        Cancellation:
            Passes through. Elements that wait here go to the hook.

        Thread:
            Passes through. Elements that waited for demand come on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(3).limit_rate(2))
            [0, 1, 2]

        Origin:
            `limitRate` of Reactor, `rebatchRequests` of RxJava.
        """
        at_least("limit_rate", "n", 1, n)
        return combinator_flow(f"limit_rate({n})", lambda: _LimitRate(self, n), self)

    def on_overflow_buffer(self, n: int, *, drop: Literal["oldest", "newest", "error"] = "error") -> Flow[T_co]:
        """Elements that come without demand are kept, up to `n` of them.

        It is for sources that push; one that is pulled never overflows. While the subscriber is at work, as many again
        may wait.

        Args:
            n: How many elements wait, at most; 1 or more.
            drop: The effect of one more element. "oldest": it takes the place of the oldest. "newest": it is dropped
                itself. "error": it ends the flow with an OverflowError, and the elements that wait are dropped. Dropped
                elements go to the hook.

        Returns:
            A flow of the elements that were not dropped. The end of the source, an error too, comes after what waits.

        Raises:
            TypeError: `n` is no int.
            ValueError: `n` is below 1, or `drop` is another word.

        Demand:
            Of a source that pushes everything is requested, demand or not; one that is pulled is pulled by demand.

        Cancellation:
            Passes through. Elements that wait here go to the hook.

        Thread:
            Elements go on on the thread of the source; those that waited, on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.hot import PublishProcessor
            >>> numbers = PublishProcessor()
            >>> handle = numbers.on_overflow_buffer(2, drop="oldest").subscribe(print, demand=0)
            >>> for n in range(5):
            ...     _ = numbers.emit(n)
            >>> handle.request(9)
            3
            4

        Origin:
            `onBackpressureBuffer` of Rx.
        """
        at_least("on_overflow_buffer", "n", 1, n)
        one_of("on_overflow_buffer", "drop", ("oldest", "newest", "error"), drop)
        title = f"on_overflow_buffer({n}, {drop})"
        return combinator_flow(title, lambda: _Buffer(self, Overflow(n, drop)), self)

    @stateful
    def on_overflow_drop(self) -> Flow[T_co]:
        """Elements that come without demand are dropped, to the hook.

        It is for sources that push; one that is pulled never overflows. While the subscriber is at work, up to 256
        elements wait.

        Returns:
            A flow of the elements that were not dropped, with the end of the source.

        Demand:
            Of a source that pushes everything is requested, demand or not; one that is pulled is pulled by demand.

        Cancellation:
            Passes through.

        Thread:
            Passes through.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.hot import PublishProcessor
            >>> numbers = PublishProcessor()
            >>> handle = numbers.on_overflow_drop().subscribe(print, demand=1)
            >>> for n in range(3):
            ...     _ = numbers.emit(n)
            0
            >>> handle.request(1)
            >>> _ = numbers.emit(9)
            9

        Origin:
            `onBackpressureDrop` of Rx.
        """
        return combinator_flow("on_overflow_drop()", lambda: _Drop(self, Overflow(BUSY, "newest")), self)

    @stateful
    def on_overflow_latest(self) -> Flow[T_co]:
        """An element that comes without demand takes the place of the one before: only the latest is kept.

        It is for sources that push; one that is pulled never overflows. While the subscriber is at work, up to 256
        elements wait.

        Returns:
            A flow of the elements that were kept. The others go to the hook. The end of the source, an error too, comes
            after the one that waits.

        Demand:
            Of a source that pushes everything is requested, demand or not; one that is pulled is pulled by demand.

        Cancellation:
            Passes through. The element that waits goes to the hook.

        Thread:
            Elements go on on the thread of the source; one that waited, on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.hot import PublishProcessor
            >>> numbers = PublishProcessor()
            >>> handle = numbers.on_overflow_latest().subscribe(print, demand=0)
            >>> for n in range(3):
            ...     _ = numbers.emit(n)
            >>> handle.request(1)
            2

        Origin:
            `onBackpressureLatest` of Rx.
        """
        return combinator_flow("on_overflow_latest()", lambda: _Latest(self, Overflow(BUSY, "oldest")), self)

    def pausable(self, valve: Valve) -> Flow[T_co]:
        """Demand passes while `valve` is open; while it is paused, nothing is requested, and the source is held back.

        Args:
            valve: A `Valve`, which any number of flows may share.

        Returns:
            A flow of the same elements. The end of the source passes also while the valve is paused.

        Raises:
            TypeError: `valve` is no `Valve`.

        Demand:
            Passes exactly, or, while the valve is paused, not at all. Elements that were requested before may still
            come, and wait: at most as many as were demanded.

        Cancellation:
            Passes through, also while the valve is paused.

        Thread:
            Passes through. If the valve has held demand back, the thread that calls `resume` passes it on, and a source
            without an executor goes on there.

        Example:
            >>> from reactive_runtime import Flow, Valve
            >>> valve = Valve(paused=True)
            >>> _ = Flow.range(2).pausable(valve).subscribe(print)
            >>> valve.resume()
            0
            1

        Origin:
            `valve` of the RxJava extensions.
        """
        if not isinstance(valve, Valve):
            raise TypeError(f"pausable: a Valve is needed, not {instead(valve)}")
        return combinator_flow("pausable()", lambda: _Pausable(self, valve), self)

    def kill_switch(self, switch: KillSwitch) -> Flow[T_co]:
        """The source, until `switch` is thrown: then it is cancelled, and the flow completes.

        Elements that have passed here are drained: put it near the source.

        Args:
            switch: A `KillSwitch`, which any number of flows may share. If it was thrown before, the flow completes at
                once.

        Returns:
            A flow of the same elements. It fails with TimeoutError where it has not ended in the time that
            `KillSwitch.throw` was given.

        Raises:
            TypeError: `switch` is no `KillSwitch`.

        Demand:
            Passes through.

        Cancellation:
            Passes through. A switch that is thrown cancels the source.

        Thread:
            Elements go on on the thread of the source; without an executor it runs on the thread that requests, and
            does not hold up the switch. The completion comes on the thread that throws the switch, or on the one at
            work for the flow.

        Example:
            >>> from reactive_runtime import Flow, KillSwitch
            >>> switch = KillSwitch()
            >>> _ = Flow.never().kill_switch(switch).subscribe(print, on_complete=lambda: print("drained"))
            >>> switch.throw().result()
            drained

        Origin:
            `KillSwitches` of Akka and Pekko Streams.
        """
        if not isinstance(switch, KillSwitch):
            raise TypeError(f"kill_switch: a KillSwitch is needed, not {instead(switch)}")
        return combinator_flow("kill_switch()", lambda: Switched(self, switch), self)

    def serialize(self) -> Flow[T_co]:
        """For a source that breaks rule 1.3, and signals on several threads at once: its signals, one at a time.

        `from_publisher` does so in any case; this operator says it.

        Returns:
            A flow of the same elements, with the end of the source.

        Demand:
            Passes exactly.

        Cancellation:
            Passes through.

        Thread:
            A signal goes on on the thread that brings it; one that comes while another thread is at work goes on on
            that one.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(3).serialize())
            [0, 1, 2]

        Origin:
            `serialize` of Rx.
        """
        return combinator_flow("serialize()", lambda: _Relaying(self), self)


class Passing(Combinator):
    """Has one source."""

    def __init__(self, source: FlowBase[Any]) -> None:
        super().__init__()
        self.source = source


class _Relaying(Passing):
    def elements(self) -> Elements:
        yield from self.relay(self.inner(self.source))


class _LimitRate(Passing):
    def __init__(self, source: FlowBase[Any], n: int) -> None:
        super().__init__(source)
        self.n = n

    def elements(self) -> Elements:
        yield from self.relay(self.inner(self.source, self.n))


class _Buffer(Passing):
    def __init__(self, source: FlowBase[Any], overflow: Overflow) -> None:
        super().__init__(source)
        self.overflow = overflow
        self.waiting: deque[Any] = deque()

    def elements(self) -> Elements:
        # Request everything of a source that pushes, whatever the subscriber demands: through a drain of its own if
        # operators stand in between. Demand pulls a source that is pulled, so it never overflows.
        pulled = self.source._source.free()
        inner = self.inner(self.source, MAX_DEMAND, self.overflow, apart=not pulled)
        while True:
            try:
                element = PENDING if self.waiting and self.drain.demanded else self._next(inner)
            except Exception as error:
                element = END
                self.put_off(error)
            if element is END and not self.waiting:
                return
            if element is not PENDING and element is not END:
                self.keep(element)
            elif self.waiting and self.drain.demanded:
                yield self.waiting.popleft()
            else:
                yield PENDING

    def _next(self, inner: Any) -> Any:
        """Take the next element. Without demand, take it only from a source that pushes."""
        return inner.next_signal() if inner.pushes() or inner.over else inner.next_if_demanded()

    def keep(self, element: Any) -> None:
        """Keep an element that has come, or drop it or another one."""
        self.waiting.append(element)
        if len(self.waiting) > self.overflow.capacity and not self.drain.demanded:
            if self.overflow.drop == "error":
                raise self.fault(OverflowError(f"{self.title}: one more element has no room"))
            self.discard(self.waiting.popleft() if self.overflow.drop == "oldest" else self.waiting.pop(), wanted=True)

    def closed(self) -> None:
        self.discard(*self.waiting)


class _Drop(_Buffer):
    def keep(self, element: Any) -> None:
        if self.drain.demanded:
            self.waiting.append(element)
        else:
            self.discard(element, wanted=True)


class _Latest(_Buffer):
    def keep(self, element: Any) -> None:
        if self.waiting and not self.drain.demanded:
            self.discard(self.waiting.popleft(), wanted=True)
        self.waiting.append(element)


class _Handle:
    """Knows the flows that go through it, and wakes them."""

    def __init__(self) -> None:
        self._lock = primitives.Lock()
        self._gathers: dict[Combinator, DrainContext] = {}  # _lock; each with the drain at the end of its tree

    def _enter(self, combinator: Combinator) -> None:
        with self._lock:
            self._gathers[combinator] = combinator.drain.root()

    def _leave(self, combinator: Combinator) -> None:
        with self._lock:
            self._gathers.pop(combinator, None)

    def _hosts(self) -> list[DrainContext]:
        with self._lock:
            return [combinator.drain for combinator in self._gathers]

    def _wake(self) -> None:
        each([drain.wake for drain in self._hosts()])


class Valve(_Handle):
    """Holds the demand of flows back, and passes it on again; see `Flow.pausable`.

    Its methods may be called from any thread.

    Args:
        paused: Whether it begins paused.
    """

    def __init__(self, *, paused: bool = False) -> None:
        super().__init__()
        self._paused = paused  # _lock

    def pause(self) -> None:
        """Request nothing more."""
        with self._lock:
            self._paused = True

    def resume(self) -> None:
        """Pass on the demand that was held back."""
        with self._lock:
            self._paused = False
        self._wake()

    def is_paused(self) -> bool:
        """Whether demand is held back."""
        with self._lock:
            return self._paused


class _Pausable(Passing):
    def __init__(self, source: FlowBase[Any], valve: Valve) -> None:
        super().__init__(source)
        self.valve = valve

    def elements(self) -> Elements:
        self.valve._enter(self)
        inner = self.inner(self.source)
        while True:
            element = inner.peek_end() if self.valve.is_paused() else inner.next_if_demanded()
            if element is END:
                return
            yield element

    def waits_for(self) -> str:
        """See `Combinator.waits_for`."""
        return "its valve, which is paused" if self.valve.is_paused() else super().waits_for()

    def request(self, n: int) -> None:
        if not self.valve.is_paused():
            super().request(n)

    def closed(self) -> None:
        self.valve._leave(self)


class KillSwitch(_Handle):
    """Ends the flows that go through it, in good order; see `Flow.kill_switch`.

    Its methods may be called from any thread.
    """

    def __init__(self) -> None:
        super().__init__()
        self._thrown = False  # _lock; final
        self._over: Future[None] = Future()

    def throw(self, within: float | None = None, *, clock: Clock | None = None) -> Future[None]:
        """Cancel the sources and complete; what is under way downstream is drained.

        Args:
            within: How many seconds the flows have; 0 or more. Those that have not ended by then fail with a
                TimeoutError. None: there is no limit.
            clock: An executor with a clock, by which `within` is counted. None: the clock of this context; see
                `executors.clock_of`.

        Returns:
            A future that is done when all flows have ended, each as far as its next boundary.

        Raises:
            TypeError: `within` is no number, or `clock` has no clock.
            ValueError: `within` is negative or not finite.
        """
        if within is not None:
            seconds_of("KillSwitch.throw", "within", within)
            check_clock("KillSwitch.throw", clock)
        with self._lock:
            self._thrown = True
        try:
            self._wake()
        finally:  # an exit that one flow raises does not keep the others from ending in time
            self._check()
            if within is not None and not self._over.done():
                timer = (clock_in() if clock is None else clock).schedule(within, partial(contained, self._too_late))
                self._over.add_done_callback(lambda _: timer.cancel())
        return self._over

    def is_thrown(self) -> bool:
        """Whether `throw` was called."""
        with self._lock:
            return self._thrown

    def _too_late(self) -> None:
        with self._lock:
            roots = dict.fromkeys(self._gathers.values())
        late = TimeoutError("kill_switch: the flow had not ended in time")
        runs: list[tuple[DrainContext, Callable[..., Any]]] = [(drain, drain.context.copy().run) for drain in roots]
        each([partial(run, drain.fail, late) for drain, run in runs])

    def _check(self) -> None:
        with self._lock:
            over = self._thrown and not self._gathers and not self._over.running() and not self._over.done()
            if over:  # the thread that sets it running sets its result
                over = self._over.set_running_or_notify_cancel()
        if over:
            self._over.set_result(None)


class Switched(Passing):
    hears = True
    calls = False

    def __init__(self, source: FlowBase[Any], switch: KillSwitch) -> None:
        super().__init__(source)
        self.switch = switch

    def elements(self) -> Elements:
        self.switch._enter(self)
        self.drain.root().at_end(self._ended)
        inner = self.inner(self.source)
        while not self.switch.is_thrown():
            element = inner.next_if_demanded()
            if element is END:
                return
            yield element
        self.leave(inner)

    def _ended(self) -> None:
        """Note that the drain has ended, and all that follows it as far as the next boundary."""
        self.switch._leave(self)
        self.switch._check()


class Gated(Switched):
    """The gate of a scope: a switch that loses nothing, and a valve, on the drain that the source is on anyway.

    The drain looks at the switch between two elements. An element that the source is making goes on, the end behind it.
    """

    hears = False

    def __init__(self, source: FlowBase[Any], switch: KillSwitch, valve: Valve) -> None:
        super().__init__(source, switch)
        self.valve = valve

    def elements(self) -> Elements:
        self.valve._enter(self)
        self.switch._enter(self)
        self.drain.root().at_end(self._ended)
        inner = self.inner(self.source)
        while not self.switch.is_thrown():
            element = inner.peek_end() if self.valve.is_paused() else inner.next_if_demanded()
            if element is END:
                return
            yield element
        inner.ask_no_more()
        yield from self.relay(inner)

    def waits_for(self) -> str:
        """See `Combinator.waits_for`."""
        return "its scope, which is paused" if self.valve.is_paused() else super().waits_for()

    def request(self, n: int) -> None:
        if not self.valve.is_paused():
            super().request(n)

    def closed(self) -> None:
        self.valve._leave(self)
