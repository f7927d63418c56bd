"""Lists of elements: by their number, a predicate, another publisher, or the time.

No list is empty. `buffer_timeout`, in `time/`, ends a list by number or by time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final, TypeVar

from reactive_runtime._core.drains.combinator import END, PENDING, Clock, Combinator, Elements, Timer
from reactive_runtime._core.fusion.step import Each, Step, describe
from reactive_runtime._core.runtime.arguments import at_least, check_callable, check_clock, seconds_of
from reactive_runtime._executors.shared_clock import clock_used
from reactive_runtime._executors.virtual_time import nanoseconds_of
from reactive_runtime._operators.flow_base import FlowBase, as_flow, combinator_flow
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._operators.time.timing import WAITING, Timed
from reactive_runtime._spec import Publisher

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["BufferOperators"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

CAPACITY: Final = 65_536
"""How many elements a list has, at most, if nothing else says how many."""


class BufferOperators(FlowBase[T_co]):
    """Lists of elements: by their number, a predicate, another publisher, or the time."""

    __slots__ = ()

    @stateful
    def batch(self, n: int, *, skip: int | None = None) -> Flow[list[T_co]]:
        """Lists of `n` elements; a list begins with every `skip`-th element.

        With a `skip` below `n` the lists overlap; with one above `n`, the elements between two lists are dropped.
        `buffer_timeout` also gives a list when a time has passed.

        Args:
            n: Elements in a list, 1 or more.
            skip: How many elements there are from the first element of a list to the first element of the next, 1 or
                more. None: `n`.

        Returns:
            A flow of lists. If the source completes, the lists that have begun and are not full come as well. If the
            source fails, the hook gets the elements that have been in no list.

        Raises:
            TypeError: `n` or `skip` is not an int.
            ValueError: `n` or `skip` is below 1.

        Demand:
            The operator requests `n` elements upstream for each demanded list. With `skip`, it requests `skip` elements
            for each list, and those that the first list lacks.

        Cancellation:
            Passes through. The hook gets the elements that are kept and have been in no list.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(5).batch(2))
            [[0, 1], [2, 3], [4]]
            >>> list(Flow.range(5).batch(3, skip=2))
            [[0, 1, 2], [2, 3, 4], [4]]

        Origin:
            `itertools.batched`, `buffer` of Rx.
        """
        return self._then(_batch("batch", n, skip))

    @stateful
    def buffer(self, n: int, *, skip: int | None = None) -> Flow[list[T_co]]:  # the docstring is that of `batch`
        return self._then(_batch("buffer", n, skip))

    buffer.__doc__ = batch.__doc__

    @stateful
    def buffer_until(
        self, predicate: Callable[[T_co], object], *, cut_before: bool = False, capacity: int = CAPACITY
    ) -> Flow[list[T_co]]:
        """Lists that end with an element for which `predicate(element)` is true.

        Args:
            predicate: Called once for each element.
            cut_before: True: an element for which `predicate` is true begins the next list, instead of ending its own
                list.
            capacity: How many elements a list has, at most; 1 or more; 65,536.

        Returns:
            A flow of lists, none of them empty. The last list comes when the source completes. If the flow fails, the
            hook gets the elements of a list that has not ended. It fails with OverflowError if a list has more than
            `capacity` elements, and with the error that `predicate` raises.

        Raises:
            TypeError: `predicate` cannot be called, or `capacity` is not an int.
            ValueError: `capacity` is below 1.

        Demand:
            The operator requests one element for each demanded list, and one more for each element that ends no list.

        Cancellation:
            Passes through. The hook gets the elements of a list that has not ended.

        Thread:
            `predicate` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> words = Flow.just("a", "b.", "c", "d.", "e")
            >>> list(words.buffer_until(lambda word: word.endswith(".")))
            [['a', 'b.'], ['c', 'd.'], ['e']]

        Origin:
            `bufferUntil` of Reactor.
        """
        check_callable("buffer_until", "predicate", predicate)
        at_least("buffer_until", "capacity", 1, capacity)
        return self._then(_CutBefore(predicate, capacity) if cut_before else _CutBehind(predicate, capacity))

    @stateful
    def buffer_when(self, boundary: Publisher[object], *, capacity: int = CAPACITY) -> Flow[list[T_co]]:
        """Lists of the elements that come between two elements of `boundary`; no list if none came.

        Args:
            boundary: A publisher; each of its elements ends a list. The operator subscribes to `boundary` before the
                source.
            capacity: How many elements a list has, at most; 1 or more; 65,536. A full list holds the source back until
                `boundary` ends it.

        Returns:
            A flow of lists, none of them empty. When the source or `boundary` completes, the flow delivers the last
            list, completes, and cancels the other. If one of them fails, the flow fails at once, and the hook gets the
            elements that wait.

        Raises:
            TypeError: `boundary` is no publisher, or `capacity` is not an int.
            ValueError: `capacity` is below 1.

        Demand:
            With the first demand, the operator requests everything from both. It keeps at most `capacity` elements, and
            requests up to as many ahead, or 256. A list that has ended waits for demand, takes no more elements, and
            holds the source back; elements of `boundary` then have no effect.

        Cancellation:
            Passes to both. The elements of a list that has not been delivered go to the hook.

        Thread:
            A list comes on the thread on which `boundary` signals; the last list, on the thread of the publisher that
            completes; a list that waited for demand, on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> ticks = Flow.interval(2.5, clock=clock)
            >>> _ = Flow.interval(1, clock=clock).take(5).buffer_when(ticks).subscribe(print)
            >>> clock.advance(9)
            [0, 1]
            [2, 3]
            [4]

        Origin:
            `buffer` of RxJava and Reactor, with another publisher.
        """
        at_least("buffer_when", "capacity", 1, capacity)
        flow = as_flow("buffer_when", "boundary", boundary)
        return combinator_flow("buffer_when", lambda: _BufferWhen(self, flow, capacity), self, flow)

    @stateful
    def buffer_time(
        self, seconds: float, *, every: float | None = None, clock: Clock | None = None, capacity: int = CAPACITY
    ) -> Flow[list[T_co]]:
        """Lists of elements by time: a list takes elements for `seconds`; the next one begins after `every` seconds.

        If `every` is below `seconds`, the lists overlap; if it is above, the hook gets the elements between two lists.
        The first list begins with the first demand; the later ones keep to that schedule, and do not drift.

        Args:
            seconds: How long a list takes elements; above 0.
            every: Seconds from the beginning of a list to the beginning of the next; above 0. None: `seconds`.
            clock: An executor with a clock: `ScheduledExecutor`, or `VirtualTimeExecutor` in tests. None: the clock of
                the context; see `executors.clock_of`.
            capacity: How many elements the operator keeps, at most; 1 or more; 65,536. When it keeps so many, it holds
                the source back until a list has ended.

        Returns:
            A flow of lists, none of them empty. If the source completes, the flow delivers the lists that have begun,
            and completes. If the source fails, the flow fails at once, and the hook gets the elements that have been in
            no list. The flow fails with RejectedError if the clock is shut down.

        Raises:
            TypeError: `seconds` or `every` is no number, `clock` has no clock, or `capacity` is not an int.
            ValueError: `seconds` or `every` is not above 0 or not finite, or `capacity` is below 1.

        Demand:
            With the first demand, the operator requests everything. It keeps at most `capacity` elements, and requests
            up to as many ahead, or 256. A list that has ended waits for demand; the operator still keeps its elements.

        Cancellation:
            Passes through, and cancels the timer. The hook gets the elements that are kept and have been in no list.

        Thread:
            A list comes on the clock's thread, or on one of the few daemon threads of the shared clock; the last lists,
            on the thread on which the source completes; a list that waited for demand, on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> _ = Flow.interval(1, clock=clock).take(4).buffer_time(2.5, clock=clock).subscribe(print)
            >>> clock.advance(9)
            [0, 1]
            [2, 3]

        Origin:
            `buffer` of RxJava and Reactor with a time, `bufferTime` of RxJS.
        """
        seconds_of("buffer_time", "seconds", seconds, positive=True)
        if every is not None:
            seconds_of("buffer_time", "every", every, positive=True)
        check_clock("buffer_time", clock)
        at_least("buffer_time", "capacity", 1, capacity)
        title = f"buffer_time({seconds:g} s{'' if every is None else f', every {every:g} s'})"
        return combinator_flow(
            title, lambda: _BufferTime(self, seconds, every, clock, capacity), self, uses=(clock_used(clock),)
        )


def _batch(operator: str, n: int, skip: int | None) -> Step[Any, list[Any]]:
    at_least(operator, "n", 1, n)
    if skip is None or at_least(operator, "skip", 1, skip) == n:
        return _Batch(n, operator)
    return _Strided(n, skip, operator)


class _Batch(Step[T, list[T]]):
    name = "batch"
    calls = False

    def __init__(self, n: int, operator: str) -> None:
        self.n = n
        self.operator = operator  # the name of the operator that was called

    def reset(self) -> None:
        self.elements: list[T] = []

    def on_next(self, element: T) -> Each[list[T]]:
        elements = self.elements
        elements.append(element)
        if len(elements) == self.n:
            self.elements = []
            yield elements

    def on_complete(self) -> Iterator[list[T]]:
        elements = self.elements
        self.elements = []
        if elements:
            yield elements

    def upstream_demand(self, n: int) -> int:
        return n * self.n - len(self.elements)

    def dispose(self) -> Iterable[object]:
        elements, self.elements = self.elements, []
        return elements

    def __str__(self) -> str:
        return f"{self.operator}({self.n})"


class _Strided(Step[T, list[T]]):
    """Lists that overlap, or have elements between them."""

    name = "batch"
    calls = False

    def __init__(self, n: int, skip: int, operator: str) -> None:
        self.n = n
        self.skip = skip
        self.operator = operator
        self.gap = 0  # how many elements are between the last list and the next
        self.in_lists = 0  # how many of the elements that are kept, the first ones, have been in a list

    def reset(self) -> None:
        self.elements: list[T] = []

    def on_next(self, element: T) -> Each[list[T]]:
        if self.gap:
            self.gap -= 1
        else:
            elements = self.elements
            elements.append(element)
            if len(elements) == self.n:
                self.elements = elements[self.skip :]
                self.in_lists = len(self.elements)
                self.gap = max(0, self.skip - self.n)
                yield elements

    def on_complete(self) -> Iterator[list[T]]:
        while self.elements:
            elements = self.elements
            self.elements = elements[self.skip :]
            self.in_lists = len(self.elements)
            yield elements

    def upstream_demand(self, n: int) -> int:
        return self.gap + self.n - len(self.elements) + (n - 1) * self.skip

    def dispose(self) -> Iterable[object]:
        elements, self.elements = self.elements, []
        return elements[self.in_lists :]

    def __str__(self) -> str:
        return f"{self.operator}({self.n}, skip={self.skip})"


class _Until(Step[T, list[T]]):
    """A list that a predicate ends."""

    name = "buffer_until"

    def __init__(self, predicate: Callable[[T], object], capacity: int) -> None:
        self.predicate = predicate
        self.capacity = capacity

    def reset(self) -> None:
        self.elements: list[T] = []

    def on_complete(self) -> Iterator[list[T]]:
        elements = self.elements
        self.elements = []
        if elements:
            yield elements

    def dispose(self) -> Iterable[object]:
        elements, self.elements = self.elements, []
        return elements

    def __str__(self) -> str:
        return f"buffer_until({describe(self.predicate)})"


class _CutBehind(_Until[T]):
    def on_next(self, element: T) -> Each[list[T]]:
        last = self.predicate(element)
        elements = self.elements
        elements.append(element)
        if len(elements) > self.capacity:
            raise OverflowError(
                f"{self}: a list has more than {self.capacity} elements, and the predicate ended it nowhere:"
                " raise capacity"
            )
        if last:
            self.elements = []
            yield elements


class _CutBefore(_Until[T]):
    def on_next(self, element: T) -> Each[list[T]]:
        first = self.predicate(element)
        elements = self.elements
        if first and elements:
            self.elements = [element]
            yield elements
        else:
            elements.append(element)
            if len(elements) > self.capacity:
                raise OverflowError(
                    f"{self}: a list has more than {self.capacity} elements, and the predicate ended it nowhere:"
                    " raise capacity"
                )


class _BufferWhen(Combinator):
    hears = True
    calls = False

    def __init__(self, source: FlowBase[Any], boundary: FlowBase[Any], capacity: int) -> None:
        super().__init__()
        self.source = source
        self.boundary = boundary
        self.capacity = capacity
        self.kept: list[Any] = []

    def elements(self) -> Elements:
        boundary = self.inner(self.boundary, WAITING)  # first: the source may keep the thread that subscribes
        inner = self.inner(self.source, min(self.capacity, WAITING))
        begun = due = False
        while True:
            begun = begun or self.drain.demanded
            takes = begun and not due and len(self.kept) < self.capacity
            element = inner.next_signal() if takes else inner.peek_end()
            if element is END:
                break
            if element is not PENDING:
                self.kept.append(element)
                if inner.pushes():
                    continue
            news = boundary.next_signal() if begun else boundary.peek_end()
            # The boundary may have ended with its last element.
            if news is END or (news is not PENDING and boundary.peek_end() is END):
                break
            due = due or (news is not PENDING and bool(self.kept))
            if due and self.drain.demanded:
                due = False
                yield self.take()
            elif element is PENDING and news is PENDING:
                yield PENDING
        self.leave(inner)  # the operator needs neither any more: the last list may wait for demand
        self.leave(boundary)
        if self.kept:
            yield from self.demand()
            yield self.take()

    def take(self) -> list[Any]:
        kept, self.kept = self.kept, []
        return kept

    def closed(self) -> None:
        self.discard(*self.take())


class _BufferTime(Timed):
    """It keeps the elements, each with its time, and no lists: a list is made when it is due and demanded."""

    def __init__(
        self, source: FlowBase[Any], seconds: float, every: float | None, clock: Clock | None, capacity: int
    ) -> None:
        super().__init__(seconds, clock, source)
        self.every = self.ns if every is None else nanoseconds_of(every)
        self.capacity = capacity
        self.start = 0  # when the next list begins
        self.kept: deque[tuple[int, Any]] = deque()  # from `start` on
        self.in_lists = 0  # how many of them, the first ones, have been in a list

    def elements(self) -> Elements:
        inner = self.inner(self.source, min(self.capacity, WAITING))
        timer: Timer | None = None
        set_to: int | None = None
        begun = False
        while True:
            if not begun and self.drain.demanded:
                begun, self.start = True, self.now()
            takes = begun and len(self.kept) < self.capacity
            element = inner.next_signal() if takes else inner.peek_end()
            if element is not PENDING and element is not END:
                self._keep(self.now(), element)
            end = self.start + self.ns
            due = bool(self.kept) and (element is END or end <= self.now())
            if due and self.drain.demanded:
                yield self._cut(end)
            elif element is END and not self.kept:
                return
            elif element is PENDING or element is END:
                if self.kept and not due and end != set_to:
                    set_to, left = end, max(0, end - self.now())
                    if timer is None:
                        timer = self.after(left)
                    else:
                        self.again(timer, left)
                yield PENDING

    def _keep(self, now: int, element: Any) -> None:
        if (now - self.start) % self.every >= self.ns:
            self.discard(element, wanted=True)  # it is between two lists
            return
        self.kept.append((now, element))
        self._pass_empty()

    def _pass_empty(self) -> None:
        """Pass the lists that would be empty."""
        if self.kept and (late := self.kept[0][0] - self.start - self.ns) >= 0:
            self.start += (late // self.every + 1) * self.every

    def _cut(self, end: int) -> list[Any]:
        """The list that ends then."""
        made = [element for _, element in takewhile(lambda item: item[0] < end, self.kept)]
        self.start += self.every
        self.in_lists = len(made)
        while self.kept and self.kept[0][0] < self.start:
            self.kept.popleft()
            self.in_lists -= 1
        self._pass_empty()
        return made

    def closed(self) -> None:
        self.discard(*(element for _, element in islice(self.kept, self.in_lists, None)))
