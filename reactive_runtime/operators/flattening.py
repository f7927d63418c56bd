"""A flow of flows, or of tasks, to one: each element becomes a publisher, a call on an executor, a coroutine.

`concurrency` bounds how many are in flight, and thereby the source: no more elements of it are asked for than can be
worked on, and the next one when one that is in flight has ended. An error of one, or of the function, cancels the
others and ends the flow; what had been delivered before stays delivered. Cancellation passes to the source and to all
that is in flight.
"""

from __future__ import annotations

import inspect
import reprlib
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Executor, Future
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from reactive_runtime._core import eventloop, hooks
from reactive_runtime._core.arguments import a_function, an_executor, at_least
from reactive_runtime._core.exits import contained, interrupts, submitted
from reactive_runtime._core.gather import END, PENDING, Crowd, Elements, Gather, Lane
from reactive_runtime._core.naming import executor_name
from reactive_runtime._core.origin import as_flow, gathered
from reactive_runtime._core.place import an_exception
from reactive_runtime._core.step import describe
from reactive_runtime.errors import RejectedError
from reactive_runtime.operators.combining import raise_all
from reactive_runtime.spec import Publisher

if TYPE_CHECKING:
    import asyncio

    from reactive_runtime.flow import Flow

__all__ = ["concat_map", "expand", "flat_map", "flat_map_sequential", "map_parallel", "switch_map"]

T = TypeVar("T")
R = TypeVar("R")

PREFETCH = 32


class _Bounded(Gather):
    """Works on several elements at once; the source begins with the first demand."""

    hears = True  # from those that are under way

    source: Flow[Any]
    concurrency: int
    begun = False
    delay_error: bool = False

    def __init__(self) -> None:
        super().__init__()
        self.delayed: list[Exception] = []  # errors that come at the end; the owner's

    def delay(self, error: Exception) -> None:
        """Keep the error for the end, or raise it."""
        if not self.delay_error:
            raise error
        self.delayed.append(error)

    def raise_delayed(self) -> None:
        """This is the end."""
        errors, self.delayed = self.delayed, []
        raise_all(errors)

    def closed(self) -> None:
        for error in self.delayed:
            hooks.error_dropped(f"{self.title}: it was kept for the end, which did not come", error)

    def outer(self) -> Lane:
        """The source. It is asked for what can be worked on, and not for what is demanded downstream."""
        lane = self.lane(self.source)
        self._relaying.pop(lane, None)
        return lane

    def news(self, outer: Lane, busy: int) -> Any:
        """What to begin next, where `busy` are under way; PENDING; or END."""
        if self.host._stop:
            return PENDING
        self.begun = self.begun or self.host.demanded
        if not self.begun or busy >= self.concurrency:
            return outer.look()
        news = self.pulled(outer)
        if news is PENDING:
            outer.want(self.lacking(busy))
        return news

    def pulled(self, outer: Lane) -> Any:
        """The next element, PENDING, or END."""
        return outer.signal()

    def lacking(self, busy: int) -> int:
        """How many more elements can be worked on."""
        return self.concurrency - busy


class _OfPublishers(_Bounded):
    """Each element becomes a publisher."""

    ahead = False
    """What a publisher does goes on while its elements are not polled."""

    def __init__(self, source: Flow[Any], fn: Callable[[Any], Publisher[Any]], prefetch: int | None) -> None:
        super().__init__()
        self.source = source
        self.fn = fn
        self.prefetch = prefetch

    def inner(self, element: Any) -> Lane:
        """Subscribe to what the function makes of `element`."""
        publisher = self.call(self.fn, element)
        if not callable(getattr(publisher, "subscribe", None)):
            raise self.fault(
                TypeError(
                    f"{self.title}: {describe(self.fn)} must return a publisher, not {type(publisher).__name__},"
                    f" for {element!r}"
                )
            )
        flow = as_flow(self.title, "the result", publisher)
        # As long as all of them are pulled on this thread, there is nothing to hear from elsewhere.
        return self.lane(flow, self.prefetch, apart=self.apart and self.elsewhere, ahead=self.ahead, made=True)


@overload
def flat_map(
    source: Flow[T],
    fn: Callable[[T], Coroutine[Any, Any, R]],
    /,
    concurrency: int = ...,
    prefetch: int = ...,
    *,
    delay_error: bool = ...,
) -> Flow[R]: ...
@overload
def flat_map(
    source: Flow[T],
    fn: Callable[[T], Publisher[R]],
    /,
    concurrency: int = ...,
    prefetch: int = ...,
    *,
    delay_error: bool = ...,
) -> Flow[R]: ...
def flat_map(
    source: Flow[T],
    fn: Callable[[T], Any],
    /,
    concurrency: int = 16,
    prefetch: int = PREFETCH,
    *,
    delay_error: bool = False,
) -> Flow[Any]:
    """Each element becomes the publisher `fn(element)`; the elements of up to `concurrency` of them, as they come.

    Holds at most `concurrency` x `prefetch` elements (both 1 or more): that much is asked for ahead of publishers that
    have an executor, or are somebody else's; the others are pulled by demand, in turn, on the thread that asks. The
    source begins with the first demand. Between two turns of one publisher each other that has an element has its turn.

    With `delay_error`, errors of the source, of `fn` and of the publishers come when all publishers have ended, several
    of them as an ExceptionGroup; where that end does not come, they go to the hook.

    `fn` may be a coroutine function: its result is the one element. Coroutines run on one event loop thread, where
    what follows goes on, up to the next boundary; cancelling the flow cancels them.
    Origin: `flatMap` of Rx.

    >>> from reactive_runtime import Flow
    >>> sorted(Flow.range(3).flat_map(lambda n: Flow.just(n, n * 10)))
    [0, 0, 1, 2, 10, 20]
    """
    a_function("flat_map", "fn", fn)
    at_least("flat_map", "concurrency", 1, concurrency)
    at_least("flat_map", "prefetch", 1, prefetch)
    title = f"flat_map({describe(fn)}, {concurrency})"
    if inspect.iscoroutinefunction(fn):
        return gathered(
            title,
            lambda: _Coroutines(source, fn, concurrency, ordered=False, delay_error=delay_error, after=delay_error),
            source,
            uses=(eventloop.OURS,),
        )
    return gathered(title, lambda: _FlatMap(source, fn, concurrency, prefetch, delay_error=delay_error), source)


class _FlatMap(_OfPublishers):
    def __init__(
        self,
        source: Flow[Any],
        fn: Callable[[Any], Publisher[Any]],
        concurrency: int,
        prefetch: int,
        *,
        delay_error: bool,
    ) -> None:
        super().__init__(source, fn, prefetch)
        self.concurrency = concurrency
        self.delay_error = delay_error

    def elements(self) -> Elements:
        crowd = Crowd(self)
        outer = self.outer()
        while True:
            try:
                crowd.settle()
                news = self.news(outer, len(crowd))
                if news is not PENDING and news is not END:
                    crowd.add(lane := self.inner(news))
                    lane.begin()
                element = crowd.poll()
            except Exception as error:
                self.delay(error)
                continue
            if element is END or (element is PENDING and news is not PENDING and news is not END):
                continue  # there is room for another one
            if element is PENDING and outer.over and not len(crowd):
                break
            yield element
        self.raise_delayed()


def flat_map_sequential(
    source: Flow[T],
    fn: Callable[[T], Publisher[R]],
    /,
    concurrency: int = 16,
    prefetch: int = PREFETCH,
    *,
    delay_error: bool = False,
) -> Flow[R]:
    """Each element becomes the publisher `fn(element)`; up to `concurrency` are under way, their elements in order.

    The elements of one come when all before it have completed; meanwhile at most `prefetch` of each wait. A publisher
    whose last operator is an asynchronous one goes on too, and is asked for `prefetch` elements. Otherwise as
    `flat_map`. Origin: `flatMapSequential` of Reactor, `concatMapEager` of RxJava.

    >>> from reactive_runtime import Flow
    >>> list(Flow.range(3).flat_map_sequential(lambda n: Flow.just(n, n * 10)))
    [0, 0, 1, 10, 2, 20]
    """
    a_function("flat_map_sequential", "fn", fn)
    at_least("flat_map_sequential", "concurrency", 1, concurrency)
    at_least("flat_map_sequential", "prefetch", 1, prefetch)
    title = f"flat_map_sequential({describe(fn)}, {concurrency})"
    return gathered(title, lambda: _Sequential(source, fn, concurrency, prefetch, delay_error=delay_error), source)


def concat_map(source: Flow[T], fn: Callable[[T], Publisher[R]], /, *, delay_error: bool = False) -> Flow[R]:
    """Each element becomes the publisher `fn(element)`; the elements of one after the other.

    One at a time is subscribed to, and asked for what is demanded, no more. Otherwise as `flat_map`.
    Origin: `concatMap` of Rx.

    >>> from reactive_runtime import Flow
    >>> list(Flow.range(3).concat_map(lambda n: Flow.just(n, n * 10)))
    [0, 0, 1, 10, 2, 20]
    """
    a_function("concat_map", "fn", fn)
    title = f"concat_map({describe(fn)})"
    return gathered(title, lambda: _ConcatMap(source, fn, delay_error=delay_error), source)


class _Sequential(_FlatMap):
    ahead = True

    def elements(self) -> Elements:
        line: deque[Lane] = deque()
        outer = self.outer()
        while True:
            element: Any = PENDING
            try:
                if line and line[0].spent() and line[0].look() is END:  # cancelled before the source is asked for more
                    self.leave(line.popleft())
                news = self.news(outer, len(line))
                if news is not PENDING and news is not END:
                    line.append(self.inner(news))
                if line:
                    element = line[0].poll()
            except Exception as error:
                self.delay(error)
                if line and line[0].over:
                    self.leave(line.popleft())
                continue
            if element is END:
                self.leave(line.popleft())
            elif element is not PENDING:
                yield element
            elif outer.over and not line:
                break
            elif news is PENDING or news is END:
                yield PENDING
        self.raise_delayed()


class _ConcatMap(_OfPublishers):
    hears = False  # but for its source, only one is under way
    makes = True

    def __init__(self, source: Flow[Any], fn: Callable[[Any], Publisher[Any]], *, delay_error: bool) -> None:
        super().__init__(source, fn, None)  # exactly what is demanded
        self.delay_error = delay_error

    def elements(self) -> Elements:
        outer = self.lane(self.source, 2)
        lane: Lane | None = None
        while True:
            try:
                element = outer.poll() if lane is None else lane.poll()
                if lane is None:
                    if element is END:
                        break
                    if element is not PENDING:
                        lane = self.inner(element)
                        continue
                elif element is PENDING:
                    outer.look()
            except Exception as error:
                self.delay(error)
                if lane is not None and lane.over:
                    self.leave(lane)
                    lane = None
                continue
            if lane is not None and element is END:
                self.leave(lane)
                lane = None
            else:
                yield element
        self.raise_delayed()


def switch_map(source: Flow[T], fn: Callable[[T], Publisher[R]], /, prefetch: int = PREFETCH) -> Flow[R]:
    """Each element becomes the publisher `fn(element)`, which takes the place of the one before it: that is cancelled.

    The source is asked for everything, and a new element switches at once, demand or not. At most `prefetch` elements
    of the current publisher (1 or more) wait, and are dropped with it. A source that is pulled is asked for its next
    element when the current publisher has nothing. Completes when the source and the current publisher have.
    Origin: `switchMap` of Rx.

    >>> from reactive_runtime import Flow
    >>> list(Flow.range(3).switch_map(lambda n: Flow.just(n, n * 10)))
    [0, 0, 1, 10, 2, 20]
    """
    a_function("switch_map", "fn", fn)
    at_least("switch_map", "prefetch", 1, prefetch)
    return gathered(f"switch_map({describe(fn)})", lambda: _SwitchMap(source, fn, prefetch), source)


class _SwitchMap(_OfPublishers):
    def elements(self) -> Elements:
        outer = self.lane(self.source, PREFETCH)
        current: Lane | None = None
        first = 0  # of the current one, at most: what it has at hand goes on before the source is looked at again
        while True:
            element: Any = PENDING
            news: Any = PENDING
            if first and current is not None:
                element = current.poll()
                first = 0 if element is PENDING or element is END else first - 1
            if element is PENDING and (outer.pushes() or current is None):
                news = outer.signal() if outer.pushes() else outer.poll()
            if element is PENDING and (news is PENDING or news is END):
                element = PENDING if current is None else current.poll()
                if element is PENDING and not outer.pushes() and self.host.demanded:
                    news = outer.poll()
            if news is not PENDING and news is not END:
                if current is not None:
                    self.leave(current)
                current = self.inner(news)
                first = PREFETCH
                continue
            if element is END:
                assert current is not None
                self.leave(current)
                current = None
                element = PENDING
                if not outer.over:
                    continue
            if current is None and outer.over:
                return
            yield element


def expand(source: Flow[T], fn: Callable[[T], Publisher[T]], /, concurrency: int = 16) -> Flow[T]:
    """Each element, then those of the publisher `fn(element)`, each of which is expanded in turn: a tree.

    The next element is expanded when no publisher under way has anything to give: so sources that are pulled give the
    tree level by level. Up to `concurrency` publishers (1 or more) are under way, in turn; elements that wait to be
    expanded are kept, and their number has no other bound than the tree's breadth. Errors and cancellation are those of
    `flat_map`. Origin: `expand` of Reactor.

    >>> from reactive_runtime import Flow
    >>> list(Flow.just(1).expand(lambda n: Flow.just(2 * n, 2 * n + 1) if n < 4 else Flow.empty()))
    [1, 2, 3, 4, 5, 6, 7]
    """
    a_function("expand", "fn", fn)
    at_least("expand", "concurrency", 1, concurrency)
    return gathered(f"expand({describe(fn)})", lambda: _Expand(source, fn, concurrency), source)


class _Expand(_OfPublishers):
    def __init__(self, source: Flow[Any], fn: Callable[[Any], Publisher[Any]], concurrency: int) -> None:
        super().__init__(source, fn, PREFETCH)
        self.concurrency = concurrency

    def elements(self) -> Elements:
        crowd = Crowd(self)
        crowd.add(self.lane(self.source, PREFETCH))
        waiting: deque[Any] = deque()
        while len(crowd) or waiting:
            element = crowd.poll() if len(crowd) else PENDING
            if element is END:
                continue
            if element is PENDING:
                if waiting and len(crowd) < self.concurrency and self.host.demanded:
                    crowd.add(self.inner(waiting.popleft()))
                    continue
                yield PENDING
                continue
            waiting.append(element)
            yield element


@overload
def map_parallel(
    source: Flow[T],
    fn: Callable[[T], Coroutine[Any, Any, R]],
    executor: None = None,
    concurrency: int = ...,
    *,
    ordered: bool = ...,
    chunk: Literal[1] = ...,
) -> Flow[R]: ...
@overload
def map_parallel(
    source: Flow[T],
    fn: Callable[[T], R],
    executor: Executor,
    concurrency: int = ...,
    *,
    ordered: bool = ...,
    chunk: int = ...,
) -> Flow[R]: ...
def map_parallel(
    source: Flow[T],
    fn: Callable[[T], Any],
    executor: Executor | None = None,
    concurrency: int = 16,
    *,
    ordered: bool = True,
    chunk: int = 1,
) -> Flow[Any]:
    """Each element becomes `fn(element)`, called on `executor`: threads, processes, interpreters.

    At most `concurrency` calls (1 or more) are in flight, or done and waiting to be delivered; the source is asked for
    no more. `ordered`: in the order of the source; otherwise as they are done. `chunk` elements share a task (1 or
    more), which pays where a task is dear, as on processes; then `concurrency` counts tasks. The source begins with
    the first demand.

    `fn` may be a coroutine function, without an executor: see `flat_map`. What follows goes on, up to the next
    boundary, on the thread on which a call ended.

    An error of `fn` ends the flow after what came before it, in its chunk too; an error of the source, after the
    results of all that came before it. A result of None is a TypeError. A worker that dies (`BrokenProcessPool`), or an
    executor that refuses, is an `on_error`. Cancelling the flow cancels the tasks that have not begun; the results of
    those that have are dropped, to the hook.
    Origin: `Executor.map`, with demand.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from reactive_runtime import Flow
    >>> with ThreadPoolExecutor(4) as pool:
    ...     Flow.range(4).map_parallel(lambda n: n * n, pool, concurrency=2).to_list().block()
    [0, 1, 4, 9]
    """
    a_function("map_parallel", "fn", fn)
    at_least("map_parallel", "concurrency", 1, concurrency)
    at_least("map_parallel", "chunk", 1, chunk)
    title = f"map_parallel({describe(fn)}, {concurrency})"
    if inspect.iscoroutinefunction(fn):
        if executor is not None:
            raise TypeError("map_parallel: a coroutine function runs on the event loop, and takes no executor")
        return gathered(
            title, lambda: _Coroutines(source, fn, concurrency, ordered=ordered), source, uses=(eventloop.OURS,)
        )
    an_executor("map_parallel", executor)
    assert executor is not None
    return gathered(
        title,
        lambda: _Calls(source, fn, executor, concurrency, ordered=ordered, chunk=chunk),
        source,
        uses=(executor,),
    )


Outcome = tuple[list[Any], BaseException | None]


class _Flight:
    """One task, and what became of it."""

    __slots__ = ("element", "error", "results", "task")

    def __init__(self, element: Any) -> None:
        self.element = element
        self.task: Any = None  # the owner's
        self.results: deque[Any] | None = None  # the host's lock; set once: it is done
        self.error: BaseException | None = None  # the host's lock; instead, or after them


class _Tasks(_Bounded):
    """Elements become tasks, at most `concurrency` at a time, delivered in order or as they are done."""

    def __init__(
        self,
        source: Flow[Any],
        fn: Callable[[Any], Any],
        concurrency: int,
        *,
        ordered: bool,
        delay_error: bool = False,
        after: bool = True,
    ) -> None:
        """`delay_error`: errors come at the end. `after`: that of the source comes after what the tasks still give."""
        super().__init__()
        self.source = source
        self.fn = fn
        self.concurrency = concurrency
        self.ordered = ordered
        self.delay_error = delay_error
        self.after = after
        self.flying: dict[_Flight, None] = {}  # in the order of the source
        self.landed: list[_Flight] = []  # the host's lock; done, and not yet looked at
        self.shut = False  # the host's lock; nobody wants to know any more

    def launch(self, flight: _Flight) -> None:
        """Begin; `land` when it is done."""
        raise NotImplementedError

    def waits_for(self) -> str:
        """See `Gather.waits_for`."""
        return f"{len(self.flying)} calls on {self.where()}" if self.flying else ""

    def where(self) -> str:
        """What the calls run on."""
        return "the event loop of coroutines"

    def land(self, flight: _Flight, results: deque[Any] | None, error: BaseException | None) -> bool:
        """It is done: any thread, without a lock. False: nobody wants to know any more."""
        with self.host._lock:
            shut = self.shut
            if not shut:
                flight.results, flight.error = results, error
                self.landed.append(flight)
        if shut:
            self._too_late(results, error)
        return not shut

    def _too_late(self, results: deque[Any] | None, error: BaseException | None) -> None:
        if error is not None and not isinstance(error, RejectedError):
            hooks.error_dropped(f"{self.title} failed after its stream had ended", error)
        self.discard(*(result for result in results or () if result is not None))

    def elements(self) -> Elements:
        outer = self.outer()
        done: deque[_Flight] = deque()
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
                flight = _Flight(news)
                self.flying[flight] = None
                self.launch(flight)
            with self.host._lock:
                if self.landed:
                    done.extend(self.landed)
                    self.landed.clear()
            flight_or_none = self._first(done)
            if flight_or_none is not None and (self.host.demanded or flight_or_none.error is not None):
                yield from self._deliver(flight_or_none)
            elif outer.over and not self.flying:
                self.raise_delayed()
                return
            elif not started:
                yield PENDING

    def _first(self, done: deque[_Flight]) -> _Flight | None:
        """What is delivered next, if it is done."""
        if not self.ordered:
            return done.popleft() if done and (self.host.demanded or done[0].error is not None) else None
        first = next(iter(self.flying), None)
        done.clear()
        return first if first is not None and (first.results is not None or first.error is not None) else None

    def _deliver(self, flight: _Flight) -> Elements:
        try:
            yield from self._results(flight)
        except Exception as error:
            self.delay(error)
        del self.flying[flight]
        flight.task = flight.results = None  # the task has the results, and refers to the flight: a circle

    def _results(self, flight: _Flight) -> Elements:
        results = flight.results
        while results:
            if results[0] is None:
                raise self.fault(TypeError(f"{self.title}: the function returned None, which is no element (2.13)"))
            yield from self.demand()
            yield results.popleft()  # what waits for demand is the flight's, which `closed` discards
        error, flight.error = flight.error, None
        if error is not None:
            raise error

    def closed(self) -> None:
        with self.host._lock:
            self.shut = True
        flying, self.flying = self.flying, {}
        for flight in flying:  # nobody else changes them any more
            if flight.results is not None or flight.error is not None:
                self._too_late(flight.results, flight.error)
            elif flight.task is not None:
                flight.task.cancel()
        super().closed()


class _Calls(_Tasks):
    """On an executor."""

    def __init__(
        self,
        source: Flow[Any],
        fn: Callable[[Any], Any],
        executor: Executor,
        concurrency: int,
        *,
        ordered: bool,
        chunk: int,
    ) -> None:
        super().__init__(source, fn, concurrency, ordered=ordered)
        self.workers = executor
        self.chunk = chunk
        self.gathered: list[Any] = []
        kinds = {kind.__name__ for kind in type(executor).__mro__}
        self.far = bool(kinds & {"ProcessPoolExecutor", "InterpreterPoolExecutor"})  # what it is given is pickled

    def where(self) -> str:
        return executor_name(self.workers)

    def pulled(self, outer: Lane) -> Any:
        while (news := outer.signal()) is not PENDING and news is not END:
            self.gathered.append(news)
            if len(self.gathered) == self.chunk:
                break
        if not self.gathered or (news is PENDING and self.flying):
            return news
        elements, self.gathered = self.gathered, []
        return elements

    def lacking(self, busy: int) -> int:
        return super().lacking(busy) * self.chunk - len(self.gathered)

    def launch(self, flight: _Flight) -> None:
        task = partial(_apply, self.fn, flight.element, far=self.far)
        if not self.far:
            task = partial(self.host._context.copy().run, task)
        try:
            flight.task = submitted(self.workers, task)
        except Exception as error:
            self.discard(*flight.element)
            refused = RejectedError(f"{self.title}: {executor_name(self.workers)} refused a task: {error}")
            refused.__cause__ = error
            raise refused from error
        flight.task.add_done_callback(partial(contained, self._done, flight))

    def _done(self, flight: _Flight, future: Future[Outcome]) -> None:
        made: list[Any] = []
        raised: BaseException | None = None
        if future.cancelled():
            error: BaseException | None = RejectedError(f"{self.title}: a task was cancelled in the executor's queue")
            self.discard(*flight.element)  # the function never saw them
        else:
            raised = future.exception()
            if raised is None:
                made, raised = future.result()
            error = None if raised is None else an_exception(raised)
            if raised is not None:
                self.discard(*flight.element[len(made) + 1 :])  # those of a chunk behind the one that failed
        if isinstance(error, Exception):
            self.fault(error)
        results = None if error is not None and not made else deque(made)
        if self.land(flight, results, error):
            self.host._heard_from()

    def closed(self) -> None:
        super().closed()
        self.discard(*self.gathered)


def _apply(fn: Callable[[Any], Any], elements: list[Any], *, far: bool) -> Outcome:
    """A task: what was made, and the error that came after it. Of the module, so that it can be pickled."""
    made: list[Any] = []
    for number, element in enumerate(elements, start=1):
        try:
            made.append(fn(element))
        except BaseException as error:
            if len(elements) > 1:
                _note(error, f"for element {number} of a chunk of {len(elements)}: {reprlib.repr(element)}")
            if not made or interrupts(error):  # as it is, with what the executor adds to it
                raise
            if far:  # what is pickled has no traceback
                _note(error, f"in the worker:\n{traceback.format_exc()}")
            return made, error
    return made, None


def _note(error: BaseException, note: str) -> None:
    """In place of the one before it, where one instance is raised again and again."""
    kind = note.split(maxsplit=2)[:2]
    others = [it for it in getattr(error, "__notes__", ()) if it.split(maxsplit=2)[:2] != kind]
    error.__notes__ = [*others, note]


class _Coroutines(_Tasks):
    """On the event loop."""

    def __init__(
        self,
        source: Flow[Any],
        fn: Callable[[Any], Awaitable[Any]],
        concurrency: int,
        *,
        ordered: bool,
        delay_error: bool = False,
        after: bool = True,
    ) -> None:
        super().__init__(source, fn, concurrency, ordered=ordered, delay_error=delay_error, after=after)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.woken = False  # the loop's thread; the drain is about to be woken

    def launch(self, flight: _Flight) -> None:
        if self.loop is None:
            self.loop = eventloop.borrow()
        flight.task = _Task(flight, self)
        eventloop.call(self.loop, flight.task.begin)

    def wake(self) -> None:
        """On the loop's thread: once for all that were done in one turn of the loop."""
        self.woken = False
        self.host._heard_from()

    def closed(self) -> None:
        super().closed()
        loop, self.loop = self.loop, None
        if loop is not None:
            eventloop.give_back(loop)


class _Task:
    """One coroutine. Its fields belong to the loop's thread."""

    __slots__ = ("cancelled", "flight", "gather", "loop", "task")

    def __init__(self, flight: _Flight, gather: _Coroutines) -> None:
        self.flight = flight
        self.gather = gather
        assert gather.loop is not None
        self.loop = gather.loop
        self.task: asyncio.Task[Any] | None = None
        self.cancelled = False

    def begin(self) -> None:
        gather = self.gather
        if self.cancelled:
            gather.discard(self.flight.element)
            return
        try:
            coroutine = eventloop.outcome(gather.fn, self.flight.element)
            self.task = self.loop.create_task(coroutine, context=gather.host._context.copy())
        except BaseException as error:
            self._land(None, an_exception(error))
        else:
            self.task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self.task = None
        if task.cancelled():
            error: BaseException | None = RejectedError(f"{self.gather.title}: the coroutine was cancelled")
        else:
            raised = task.exception()
            error = None if raised is None else an_exception(raised)
        self._land(deque((task.result(),)) if error is None else None, error)

    def _land(self, results: deque[Any] | None, error: BaseException | None) -> None:
        gather = self.gather
        if isinstance(error, Exception):
            gather.fault(error)
        if not gather.land(self.flight, results, error):
            if results is None:
                gather.discard(self.flight.element)
        elif not gather.woken:
            gather.woken = True
            self.loop.call_soon(gather.wake)

    def cancel(self) -> None:
        """From any thread."""
        eventloop.call(self.loop, self._cancel)

    def _cancel(self) -> None:
        self.cancelled = True
        if self.task is not None:
            self.task.cancel()
