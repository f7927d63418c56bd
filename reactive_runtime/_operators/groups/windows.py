"""Windows: flows of the elements that follow each other, cut by number, time, another publisher, or a predicate.

`group_source` deals the elements out. A window begins with its first element, so none is empty.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from reactive_runtime._core.drains.combinator import END, PENDING, Clock, InnerSubscription, Timer
from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.fusion.step import describe
from reactive_runtime._core.runtime.arguments import PREFETCH, at_least, check_callable, check_clock, seconds_of
from reactive_runtime._executors.shared_clock import clock_used
from reactive_runtime._executors.virtual_time import SECOND, nanoseconds_of, now_ns
from reactive_runtime._operators.flow_base import FlowBase, as_flow, combinator_flow
from reactive_runtime._operators.groups.group_flow import Given, Group
from reactive_runtime._operators.groups.group_source import AHEAD, BATCH, Split
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._spec import Publisher
from reactive_runtime.executors import clock_in

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["WindowOperators"]

T_co = TypeVar("T_co", covariant=True)


class WindowOperators(FlowBase[T_co]):
    """Windows: flows of the elements that follow each other."""

    __slots__ = ()

    @stateful
    def window(self, n: int, *, skip: int | None = None) -> Flow[Flow[T_co]]:
        """Flows of `n` elements each; a window begins with every `skip`-th element.

        With a `skip` below `n` the windows overlap; with one above `n`, the elements between two windows are dropped,
        to the hook. A window is for one subscriber, and buffers its elements until they are demanded. A window that is
        not full completes, or fails, with the source. If its subscriber cancels, the hook gets the elements that it has
        not delivered, and its further ones.

        Args:
            n: How many elements are in a window, 1 or more. The last window may have fewer.
            skip: How many elements there are from the first of a window to the first of the next, 1 or more. None: `n`.

        Returns:
            A flow of flows, the outer flow. It completes when the source has, and the last window is delivered. If the
            source fails, the hook gets the elements of a window that was not demanded.

        Raises:
            TypeError: `n` or `skip` is not an int.
            ValueError: `n` or `skip` is below 1.

        Demand:
            Elements are requested while the next window is demanded, or one that has a subscriber is not full. If the
            source is not pulled on the same thread (an executor, another publisher, an asynchronous operator), up to
            256 elements are requested ahead.

        Cancellation:
            If the outer flow is cancelled, the windows that have a subscriber go on, and the source is cancelled when
            they are over. The hook gets the elements of a window that has no subscriber and is not full; a subscriber
            that comes to it later gets a RejectedError. A delivered window that is full or complete keeps its elements
            for its subscriber; the hook gets them if an operator drops the window, or the program has no reference to
            it any more.

        Thread:
            The source runs on the thread that demands a window or an element; with `subscribe_on`, on its executor.
            Windows and elements are signalled there, or on the thread that requests those that wait.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(5).window(2).concat_map(lambda window: window.to_list()))
            [[0, 1], [2, 3], [4]]

        Origin:
            `window` of Rx.
        """
        at_least("window", "n", 1, n)
        if skip is not None:
            at_least("window", "skip", 1, skip)
        title = f"window({n})" if skip is None else f"window({n}, skip={skip})"
        return combinator_flow(title, lambda: Given(lambda: _ByCount(self, n, n if skip is None else skip)), self)

    @stateful
    def window_time(
        self, seconds: float, *, every: float | None = None, clock: Clock | None = None, prefetch: int = PREFETCH
    ) -> Flow[Flow[T_co]]:
        """Flows of the elements that come in `seconds`; a window begins `every` so many seconds.

        With an `every` below `seconds` the windows overlap; with one above, the elements between two windows are
        dropped, to the hook. The time of the first window begins with the first demand; the others keep to it, and do
        not drift. A window is for one subscriber. It comes with its first element, and completes when its time is over,
        or with the source.

        Args:
            seconds: How long a window takes elements; above 0.
            every: From the beginning of a window to that of the next; above 0. None: `seconds`.
            clock: An executor with a clock: `ScheduledExecutor`, or `VirtualTimeExecutor` in tests. None: the clock of
                the context; see `executors.clock_of`.
            prefetch: How many elements may wait in each window, 1 or more.

        Returns:
            A flow of flows, the outer flow. It completes when the source has, and the last window is delivered. It
            fails with OverflowError if an element finds the buffer of a window without a subscriber full, and with
            RejectedError when the clock is shut down. If the source fails, the hook gets the elements of windows that
            were not demanded.

        Raises:
            TypeError: `seconds` or `every` is no number, `clock` has no clock, or `prefetch` is not an int.
            ValueError: `seconds` or `every` is not above 0 or not finite, or `prefetch` is below 1.

        Demand:
            Elements are requested while the next window is demanded, or one that has a subscriber demands more. The
            full buffer of such a window holds the source back; an element that waits for room is still in its window
            when the time of that is over. If the source is not pulled on the same thread (an executor, another
            publisher, an asynchronous operator), up to 256 elements are requested ahead.

        Cancellation:
            As that of `window`. Cancels the timer.

        Thread:
            Windows and elements come on the thread of the source; a source without an executor runs on the thread that
            demands a window or an element. A window completes on the clock's thread, or on one of the few daemon
            threads of the shared clock.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> windows = Flow.interval(1, clock=clock).take(4).window_time(2.5, clock=clock)
            >>> _ = windows.concat_map(lambda window: window.to_list()).subscribe(print)
            >>> clock.advance(9)
            [0, 1]
            [2, 3]

        Origin:
            `window` of RxJava and Reactor with a time, `windowTime` of RxJS.
        """
        seconds_of("window_time", "seconds", seconds, positive=True)
        if every is not None:
            seconds_of("window_time", "every", every, positive=True)
        check_clock("window_time", clock)
        at_least("window_time", "prefetch", 1, prefetch)
        return combinator_flow(
            f"window_time({seconds:g} s{'' if every is None else f', every {every:g} s'})",
            lambda: Given(lambda: _ByTime(self, seconds, every, clock, prefetch)),
            self,
            uses=(clock_used(clock),),
        )

    @stateful
    def window_timeout(self, n: int, seconds: float, *, clock: Clock | None = None) -> Flow[Flow[T_co]]:
        """Flows of `n` elements, or of those that come in `seconds` after the first of them.

        A window is for one subscriber. It comes with its first element, and completes when it is full, when its time is
        over, or with the source.

        Args:
            n: How many elements a window has, at most; 1 or more.
            seconds: How long a window takes elements, from its first one on; above 0.
            clock: An executor with a clock: `ScheduledExecutor`, or `VirtualTimeExecutor` in tests. None: the clock of
                the context; see `executors.clock_of`.

        Returns:
            A flow of flows, the outer flow. It completes when the source has, and the last window is delivered. It
            fails with RejectedError when the clock is shut down. If the source fails, the hook gets the elements of a
            window that was not demanded.

        Raises:
            TypeError: `n` is no int, `seconds` is no number, or `clock` has no clock.
            ValueError: `n` is below 1, or `seconds` is not above 0 or not finite.

        Demand:
            Elements are requested while the next window is demanded, or the present one has a subscriber and is not
            full. If the source is not pulled on the same thread (an executor, another publisher, an asynchronous
            operator), up to 256 elements are requested ahead.

        Cancellation:
            As that of `window`. Cancels the timer.

        Thread:
            Windows and elements come on the thread of the source; a source without an executor runs on the thread that
            demands a window or an element. A window that is not full completes on the clock's thread, or on one of the
            few daemon threads of the shared clock.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> windows = Flow.interval(1, clock=clock).take(4).window_timeout(3, 1.5, clock=clock)
            >>> _ = windows.concat_map(lambda window: window.to_list()).subscribe(print)
            >>> clock.advance(9)
            [0, 1]
            [2, 3]

        Origin:
            `windowTimeout` of Reactor.
        """
        at_least("window_timeout", "n", 1, n)
        seconds_of("window_timeout", "seconds", seconds, positive=True)
        check_clock("window_timeout", clock)
        return combinator_flow(
            f"window_timeout({n}, {seconds:g} s)",
            lambda: Given(lambda: _ByCountAndTime(self, n, seconds, clock)),
            self,
            uses=(clock_used(clock),),
        )

    @stateful
    def window_when(self, boundary: Publisher[object], *, prefetch: int = PREFETCH) -> Flow[Flow[T_co]]:
        """Flows of the elements that come between two elements of `boundary`; none where nothing came.

        A window is for one subscriber. It comes with its first element.

        Args:
            boundary: A publisher, each element of which ends a window. It is subscribed to before the source.
            prefetch: How many elements may wait in each window, 1 or more.

        Returns:
            A flow of flows, the outer flow. It completes with either, the present window too, and cancels the other. It
            fails with OverflowError if an element finds the buffer of a window without a subscriber full. If either
            fails, the hook gets the elements of windows that were not demanded.

        Raises:
            TypeError: `boundary` is no publisher, or `prefetch` is not an int.
            ValueError: `prefetch` is below 1.

        Demand:
            Of `boundary` everything is requested, 256 elements at a time. Elements are requested while the next window
            is demanded, or one that has a subscriber demands more. The full buffer of such a window holds the source
            back; an element that waits for room is still in its window. If the source is not pulled on the same thread
            (an executor, another publisher, an asynchronous operator), up to 256 elements are requested ahead.

        Cancellation:
            As that of `window`; `boundary` is cancelled with the source.

        Thread:
            Windows and elements come on the thread of the source; a source without an executor runs on the thread that
            demands a window or an element. A window completes on the thread on which `boundary` signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> windows = Flow.interval(1, clock=clock).take(5).window_when(Flow.interval(2.5, clock=clock))
            >>> _ = windows.concat_map(lambda window: window.to_list()).subscribe(print)
            >>> clock.advance(9)
            [0, 1]
            [2, 3]
            [4]

        Origin:
            `window` of RxJava and Reactor, with another publisher.
        """
        at_least("window_when", "prefetch", 1, prefetch)
        flow = as_flow("window_when", "boundary", boundary)
        return combinator_flow("window_when", lambda: Given(lambda: _ByBoundary(self, flow, prefetch)), self, flow)

    @stateful
    def window_until(
        self, predicate: Callable[[T_co], object], *, cut_before: bool = False, prefetch: int = PREFETCH
    ) -> Flow[Flow[T_co]]:
        """Flows that end with an element for which `predicate(element)` is true.

        A window is for one subscriber. It comes with its first element.

        Args:
            predicate: Called once for each element.
            cut_before: Such an element begins the next window, and does not end the present one.
            prefetch: How many elements may wait in each window, 1 or more.

        Returns:
            A flow of flows, the outer flow. It completes when the source has, and the last window is delivered. It
            fails with OverflowError if an element finds the buffer of a window without a subscriber full, and with the
            error that `predicate` raises. If the source fails, the hook gets the elements of windows that were not
            demanded.

        Raises:
            TypeError: `predicate` cannot be called, or `prefetch` is not an int.
            ValueError: `prefetch` is below 1.

        Demand:
            Elements are requested while the next window is demanded, or one that has a subscriber demands more. The
            full buffer of such a window holds the source back. If the source is not pulled on the same thread (an
            executor, another publisher, an asynchronous operator), up to 256 elements are requested ahead.

        Cancellation:
            As that of `window`.

        Thread:
            The source and `predicate` run on the thread that demands a window or an element; with `subscribe_on`, on
            its executor. Windows and elements are signalled there, or on the thread that requests those that wait.

        Example:
            >>> from reactive_runtime import Flow
            >>> windows = Flow.just(1, 2, 0, 3, 0).window_until(lambda n: n == 0)
            >>> list(windows.concat_map(lambda window: window.to_list()))
            [[1, 2, 0], [3, 0]]

        Origin:
            `windowUntil` of Reactor.
        """
        check_callable("window_until", "predicate", predicate)
        at_least("window_until", "prefetch", 1, prefetch)
        return combinator_flow(
            f"window_until({describe(predicate)})",
            lambda: Given(lambda: _ByPredicate(self, predicate, cut_before, prefetch)),
            self,
        )


class _Windows(Split):
    """Puts each element into all windows that are open."""

    # The owner of the source's drain owns all of it.

    def __init__(self, source: FlowBase[Any], capacity: int) -> None:
        super().__init__(source)
        self.capacity = capacity
        self.number = 0
        self.present: deque[Group] = deque()  # those that have begun and not ended, also the cancelled ones
        self.placed = False  # a window has taken the element in hand

    def begin(self, element: Any) -> None:
        """Open the windows that begin with an element, and close those that end before it."""
        if not self.present:
            self.open_window()

    def complete(self, window: Group) -> bool:
        """Whether the element that it has just had is its last one."""
        return False

    def open_window(self) -> None:
        """Open a window, unless the outer flow is cancelled."""
        if self.outer_cancelled:
            return
        self.number += 1
        window = Group(self, self.number, self.capacity)
        self.open_groups[window.key] = self.buffers[window.buffer] = window
        self.new_groups.append(window)
        self.present.append(window)

    def close_first(self) -> None:
        """Complete the window that has begun first."""
        window = self.present.popleft()
        self._end(window)
        window.buffer.wake()
        window.ended()

    def _end(self, window: Group) -> None:
        self.open_groups.pop(window.key, None)
        self.buffers.pop(window.buffer, None)
        window.buffer.end()

    # -- as `Split` calls them ---------------------------------------------------------------------------------

    def key_of(self, element: Any) -> list[Group]:
        self.placed = False
        self.begin(element)
        return list(self.present)

    def _deal(self, key: list[Group], element: Any) -> bool:
        self.in_hand = None
        wanted = not key and not self.outer_cancelled  # it is between two windows
        while key:
            window = key[0]
            if window.buffer.put(element):
                self.placed = True
            elif not window.buffer.gone():
                self.in_hand = key, element
                self._doubt(window)
                return False
            del key[0]
            window.size += 1
            last = self.complete(window)
            if last:
                self.present.remove(window)
                self._end(window)
            window.buffer.wake()
            if last:
                window.ended()
        if not self.placed:
            self.discard(element, wanted=wanted)
        return True

    def given(self, group: Group) -> Any:
        return group.flow(f"window({group.key})")

    def full(self, group: Group) -> Exception:
        return self.fault(
            OverflowError(
                f"{self.title}: {self.capacity} elements wait in window {group.key}, and it has no subscriber:"
                " consume every window (flat_map, if they overlap), or raise prefetch"
            )
        )


class _ByCount(_Windows):
    """Its windows have room for all their elements: none is ever without."""

    def __init__(self, source: FlowBase[Any], n: int, skip: int) -> None:
        super().__init__(source, n)
        self.skip = skip
        self.index = 0  # of the next element, from the first of the last window on

    def begin(self, element: Any) -> None:
        if self.index == 0:
            self.open_window()
        self.index = (self.index + 1) % self.skip

    def complete(self, window: Group) -> bool:
        return window.size == self.capacity

    def wants_more(self, group: Group) -> bool:
        return group.taken() and not group.buffer.gone()


class _Clocked(_Windows):
    """Its windows end at a time."""

    def __init__(self, source: FlowBase[Any], seconds: float, clock: Clock | None, capacity: int) -> None:
        super().__init__(source, capacity)
        self.ns = nanoseconds_of(seconds)
        self.chosen = clock
        self.clock: Clock  # set once, by attach
        self.ends: deque[int] = deque()  # of the present windows
        self.timer_set: Timer | None = None
        self.set_to: int | None = None

    def attach(self, drain: DrainContext) -> None:
        super().attach(drain)
        self.clock = clock_in(drain.context) if self.chosen is None else self.chosen

    def _settle(self) -> None:
        super()._settle()
        # An element in hand is in its windows already.
        while self.in_hand is None and self.present and self.ends[0] <= now_ns(self.clock):
            self.close_first()
        if self.present and self.ends[0] != self.set_to:
            self.set_to = self.ends[0]
            left = max(0, self.set_to - now_ns(self.clock)) / SECOND
            if self.timer_set is None:
                self.timer_set = self.timer(self.clock, left)
            else:
                self.timer_set.again(left)

    def close_first(self) -> None:
        self.ends.popleft()
        super().close_first()


class _ByTime(_Clocked):
    def __init__(
        self, source: FlowBase[Any], seconds: float, every: float | None, clock: Clock | None, prefetch: int
    ) -> None:
        super().__init__(source, seconds, clock, prefetch)
        self.every = self.ns if every is None else nanoseconds_of(every)
        self.start: int | None = None  # when the next window begins

    def _wanting(self) -> bool:
        wanting = super()._wanting()
        if wanting and self.start is None:
            self.start = now_ns(self.clock)
        return wanting

    def begin(self, element: Any) -> None:
        now = now_ns(self.clock)
        while self.present and self.ends[0] <= now:  # the time goes on since `_settle`
            self.close_first()
        assert self.start is not None
        if (late := now - self.start - self.ns) >= 0:  # these windows would be empty
            self.start += (late // self.every + 1) * self.every
        while self.start <= now and not self.outer_cancelled:
            self.open_window()
            self.ends.append(self.start + self.ns)
            self.start += self.every


class _ByCountAndTime(_Clocked):
    def __init__(self, source: FlowBase[Any], n: int, seconds: float, clock: Clock | None) -> None:
        super().__init__(source, seconds, clock, n)

    def begin(self, element: Any) -> None:
        now = now_ns(self.clock)
        if self.present and self.ends[0] <= now:
            self.close_first()
        if not self.present and not self.outer_cancelled:
            self.open_window()
            self.ends.append(now + self.ns)

    def complete(self, window: Group) -> bool:
        full = window.size == self.capacity
        if full:
            self.ends.popleft()
        return full

    def wants_more(self, group: Group) -> bool:
        return group.taken() and not group.buffer.gone()


class _ByBoundary(_Windows):
    def __init__(self, source: FlowBase[Any], boundary: FlowBase[Any], prefetch: int) -> None:
        super().__init__(source, prefetch)
        self.boundary = boundary
        self.heard_at: InnerSubscription | None = None  # the subscription to it

    def _settle(self) -> None:
        super()._settle()
        if self.heard_at is None:
            self.heard_at = self.inner(self.boundary, AHEAD)  # first: the source may keep the thread that subscribes
        if self.in_hand is not None or self.cut_short:  # an element in hand is in its window already
            return
        for _ in range(BATCH):
            news = self.heard_at.next_signal()
            if news is PENDING:
                return
            if self.present:
                self.close_first()
            # The boundary may have ended with its last element.
            if news is END or self.heard_at.peek_end() is END:
                self.cut_short = True
                return
        self.wake()  # the rest of them later: a boundary without end lets the source have its turn


class _ByPredicate(_Windows):
    def __init__(
        self, source: FlowBase[Any], predicate: Callable[[Any], object], cut_before: bool, prefetch: int
    ) -> None:
        super().__init__(source, prefetch)
        self.predicate = predicate
        self.cut_before = cut_before
        self.last = False  # the element in hand ends its window

    def begin(self, element: Any) -> None:
        cuts = bool(self.call(self.predicate, element))
        if cuts and self.cut_before and self.present:
            self.close_first()
        self.last = cuts and not self.cut_before
        super().begin(element)

    def complete(self, window: Group) -> bool:
        return self.last
