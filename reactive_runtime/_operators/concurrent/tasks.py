"""Elements become tasks, of which a bounded number is in flight: the base of calls on an executor and of coroutines."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reactive_runtime._core.drains.combinator import END, PENDING, Elements
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import an_exception
from reactive_runtime._core.failures.error_carrier import carried
from reactive_runtime._core.failures.exits import contained
from reactive_runtime._operators.concurrent.concurrency import Bounded
from reactive_runtime._support.shown import shown
from reactive_runtime.errors import RejectedError

if TYPE_CHECKING:
    from reactive_runtime._operators.flow_base import FlowBase

__all__ = ["Flight", "Tasks"]


class Flight:
    """One task, and its outcome."""

    __slots__ = ("begun", "element", "error", "index", "outcome", "results", "task")

    def __init__(self, element: Any, index: int) -> None:
        self.element = element
        self.index = index  # its place in the source
        self.begun = False  # owned by the thread that runs the task until the future is done, then by the callback
        self.task: Any = None  # the owner's
        self.outcome: Any = (
            None  # owned by the thread that runs the task until the future is done, then by the callback
        )
        self.results: deque[Any] | None = None  # the drain's lock; set once, when the task is done
        self.error: BaseException | None = None  # the drain's lock; in place of the results, or after them


class Tasks(Bounded):
    """Elements become tasks, at most `concurrency` at a time, delivered in order or as they are done."""

    def __init__(
        self,
        source: FlowBase[Any],
        fn: Callable[[Any], Any],
        concurrency: int,
        *,
        ordered: bool,
        delay_error: bool = False,
        after: bool = True,
    ) -> None:
        """`delay_error`: errors come at the end. `after`: an error of the source comes after the tasks' results."""
        super().__init__()
        self.source = source
        self.fn = fn
        self.concurrency = concurrency
        self.ordered = ordered
        self.delay_error = delay_error
        self.after = after
        # In the order of the source. To find the first one of a dict, one passes all that have gone.
        self.flying: OrderedDict[Flight, None] = OrderedDict()
        self.index = 0  # the owner's; how many elements it has taken
        self.landed: list[Flight] = []  # the drain's lock; done, and the owner has not looked at them
        self.shut = False  # the drain's lock; the operator has closed

    def launch(self, flight: Flight) -> None:
        """Begin the task, which calls `land` when it is done."""
        raise NotImplementedError

    def take_back(self, flight: Flight) -> None:
        """Cancel a task that the operator needs no more."""
        flight.task.cancel()

    def is_news(self, error: BaseException) -> bool:
        """Whether this error is new to the user, in the stream and at the hook. Any thread calls it, without a lock."""
        return True

    def count(self, news: Any) -> int:
        """How many elements of the source a task has."""
        return 1

    def waits_for(self) -> str:
        """See `Combinator.waits_for`."""
        return f"{len(self.flying)} calls on {self.where()}" if self.flying else ""

    def given(self, flight: Flight, number: int) -> str:
        """The element that the result of that number was made of, for a message."""
        return f"{shown(flight.element)} at index {flight.index} of the source"

    def where(self) -> str:
        """The name of the place where the calls run."""
        return "the event loop of coroutines"

    def land(self, flight: Flight, results: deque[Any] | None, error: BaseException | None) -> bool:
        """Note that a task is done. Any thread calls it, without a lock. False: the operator has closed."""
        with self.drain.lock:
            shut = self.shut
            if not shut:
                flight.results, flight.error = results, error
                self.landed.append(flight)
        if shut:
            contained(self._too_late, results, error)
        return not shut

    def _too_late(self, results: deque[Any] | None, error: BaseException | None) -> None:
        if error is not None and not isinstance(error, RejectedError) and self.is_news(error):
            dropping.error_dropped(f"{self.title} failed after its stream had ended", error)
        self.discard(*(result for result in results or () if result is not None))

    def elements(self) -> Elements:
        outer = self.outer()
        done: deque[Flight] = deque()
        while True:
            try:
                news = self.news(outer, len(self.flying))
            except Exception as error:
                if not self.after:
                    raise
                self.delayed.append(error)
                continue
            started = news is not PENDING and news is not END
            if started:
                flight = Flight(news, self.index)
                self.index += self.count(news)
                self.flying[flight] = None
                self.launch(flight)
            with self.drain.lock:
                if self.landed:
                    done.extend(self.landed)
                    self.landed.clear()
            flight_or_none = self._first(done)
            if flight_or_none is not None and (self.drain.demanded or flight_or_none.error is not None):
                yield from self._deliver(flight_or_none)
            elif outer.over and not self.flying:
                self.raise_delayed()
                return
            elif not started:
                yield PENDING

    def _first(self, done: deque[Flight]) -> Flight | None:
        """The flight to deliver next, if it is done."""
        if not self.ordered:
            return done.popleft() if done and (self.drain.demanded or done[0].error is not None) else None
        first = next(iter(self.flying), None)
        done.clear()
        return first if first is not None and (first.results is not None or first.error is not None) else None

    def _deliver(self, flight: Flight) -> Elements:
        results = flight.results
        number = 0
        try:
            while results:
                if results[0] is None:
                    what = f"{self.title}: the function returned None for {self.given(flight, number)}"
                    raise self.fault(TypeError(f"{what}, and None is not an element (2.13)"))
                while not self.drain.demanded:
                    yield PENDING
                yield results.popleft()  # the flight keeps the results that wait for demand, and `closed` discards them
                number += 1
            error, flight.error = flight.error, None
            if error is not None:
                self.is_news(error)
                raise carried(an_exception(error))
        except Exception as error:
            self.delay(error)
        del self.flying[flight]
        flight.task = flight.results = None  # break a cycle: the task has the results, and refers to the flight

    def closed(self) -> None:
        with self.drain.lock:
            self.shut = True
        flying, self.flying = self.flying, OrderedDict()
        try:
            for flight in flying:  # no other thread changes a flight any more
                if flight.results is not None or flight.error is not None:
                    self._too_late(flight.results, flight.error)
                elif flight.task is not None:
                    self.take_back(flight)
        finally:
            super().closed()
