"""Sources that are not pulled: a function that pushes, a future, an async iterable."""

from __future__ import annotations

import concurrent.futures
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar
from weakref import WeakKeyDictionary

from reactive_runtime._core.drains.combinator import PENDING, Combinator, Elements
from reactive_runtime._core.drains.drain import BATCH
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import an_exception, assembly_location, note_assembly
from reactive_runtime._core.failures.error_carrier import carried
from reactive_runtime._core.failures.exits import contained, goes_up
from reactive_runtime._core.failures.failure import Failure
from reactive_runtime._core.fusion.fuse import name_source, none_element
from reactive_runtime._core.fusion.step import describe
from reactive_runtime._core.queues.emit_result import EmitResult
from reactive_runtime._core.queues.subscriber_buffer import SubscriberBuffer
from reactive_runtime._core.runtime import activity, eventloop, primitives
from reactive_runtime._core.runtime.arguments import PREFETCH, an_error, at_least, check_callable, not_none, one_of
from reactive_runtime._core.sources.flow_source import Hot
from reactive_runtime._core.sources.naming import instead
from reactive_runtime._operators.flow_base import combinator_flow, flow_of
from reactive_runtime._support.shown import shown

if TYPE_CHECKING:
    import asyncio

    from reactive_runtime._flow import Flow

__all__ = ["CreatingSources", "Emitter", "OfAsync"]

T = TypeVar("T")

CAPACITY = 256


class CreatingSources:
    """Sources that are not pulled: a function that pushes, a future, an async iterable."""

    __slots__ = ()

    @staticmethod
    def create(
        fn: Callable[[Emitter[T]], object],
        *,
        overflow: Literal["error", "newest", "oldest"] = "error",
        capacity: int = CAPACITY,
    ) -> Flow[T]:
        """The elements that `fn(emitter)` pushes: for sources with callbacks.

        Demand without bound does not mean that no element waits. Elements wait where they are taken on another thread
        (`subscribe_on`, `publish_on`), by an operator that requests a bounded number (`map_parallel`, `race`), or
        beside other sources of the same thread (`merge`, `flat_map`, `zip`), which have their turns when `fn` has
        returned. A function that emits a burst needs a `capacity` for it. One that may wait for room takes
        `overflow="newest"`, and emits again where `emit` returns `OVERFLOW`. A source that can be pulled is better
        pulled (`from_supplier`).

        Args:
            fn: Called once for each subscriber, with an `Emitter`. `emitter.on_cancel` is the place to unregister.
            overflow: The effect of one element more than `capacity`. "error": the flow fails with OverflowError, and
                the element is dropped. "newest": that element is dropped. "oldest": the one that has waited longest is
                dropped. Dropped elements go to the hook.
            capacity: How many elements may wait for demand, 1 or more.

        Returns:
            A flow of what is emitted. It fails with the error that `fn` raises, or that is given to `emitter.error`.

        Raises:
            TypeError: `fn` cannot be called, or `capacity` is not an int.
            ValueError: `overflow` is none of the three, or `capacity` is below 1.

        Demand:
            Does not hold `fn` back: elements wait for demand, up to `capacity`. `emitter.demand()` says how many more
            are demanded than wait.

        Cancellation:
            Elements that wait are dropped, to the hook, and the functions given to `emitter.on_cancel` are called. `fn`
            is not called for a subscriber that cancels inside `on_subscribe`.

        Thread:
            `fn` is called on the thread that subscribes, also with `subscribe_on`. Any thread may emit. An element is
            signalled on the thread that emits it, or on the one that requests it later; with `subscribe_on` or
            `publish_on`, on that executor.

        Example:
            >>> from reactive_runtime import Flow
            >>> def two(emitter):
            ...     emitter.emit("a")
            ...     emitter.emit("b")
            ...     emitter.complete()
            >>> list(Flow.create(two))
            ['a', 'b']

        Origin:
            `create` of Rx.
        """
        check_callable("create", "fn", fn)
        one_of("create", "overflow", ("error", "newest", "oldest"), overflow)
        at_least("create", "capacity", 1, capacity)
        title, location = f"create({describe(fn)})", assembly_location()

        def enter() -> SubscriberBuffer:
            buffer = SubscriberBuffer(capacity)
            emitter = Emitter[T](buffer, overflow, partial(note_assembly, operator=title, location=location))

            def begin() -> None:
                if emitter.is_cancelled():
                    return
                try:
                    fn(emitter)
                except BaseException as error:
                    note_assembly(error, title, location)
                    emitter.error(an_exception(error))
                    if goes_up(error):
                        raise

            buffer.on_connect, buffer.on_gone = begin, emitter._gone
            return buffer

        return flow_of(Hot(title, enter))

    @staticmethod
    def from_future(future: concurrent.futures.Future[T] | asyncio.Future[T]) -> Flow[T]:
        """The result of a future, of `concurrent.futures` or of asyncio.

        Args:
            future: Any object with the methods of such a future. All subscribers get the same result.

        Returns:
            A flow of one element; of none where the result is None. It fails with the future's exception, and with
            CancelledError where the future is cancelled. It fails with RuntimeError where the future takes no callback,
            since its event loop is closed.

        Raises:
            TypeError: `future` has no `add_done_callback`.

        Demand:
            The result waits for demand. An error, a cancelled future and a result of None end the flow without demand.

        Cancellation:
            Leaves the future alone.

        Thread:
            Signals on the thread that finishes the future (of asyncio: its event loop's), or that subscribes or
            requests later.

        Example:
            >>> from concurrent.futures import Future
            >>> from reactive_runtime import Flow
            >>> future = Future()
            >>> future.set_result(7)
            >>> list(Flow.from_future(future))
            [7]

        Origin:
            `fromFuture` of Rx.
        """
        if isinstance(future, type) or not callable(getattr(future, "add_done_callback", None)):
            raise TypeError(f"from_future: a future is needed, not {instead(future)}")
        get_loop = getattr(future, "get_loop", None)
        loop = None if get_loop is None else get_loop()
        return combinator_flow(
            "from_future()", lambda: _OfFuture(future), uses=() if loop is None else (eventloop.Loop(loop),)
        )

    @staticmethod
    def from_async(source: AsyncIterable[T] | Callable[[], AsyncIterable[T]], *, prefetch: int = PREFETCH) -> Flow[T]:
        """The elements of an async iterable.

        `async for` over a flow is the way back.

        Args:
            source: An async iterable, or a function that makes one for each subscriber.
            prefetch: How many elements may wait ahead of demand, 1 or more. One more may be held, until there is room
                for it.

        Returns:
            A flow of the elements. It fails with the error that `source` or the iterable raises, and with TypeError
            where `source()` is no async iterable, or None is among the elements (2.13).

        Raises:
            TypeError: `source` is neither, or a coroutine function, or `prefetch` is not an int.
            ValueError: `prefetch` is below 1.

        Demand:
            The first demand begins the iteration, which goes on as far as demand and `prefetch` allow.

        Cancellation:
            Cancels the wait for the next element, and closes the iterator.

        Thread:
            The iterable runs on one event loop, which has a thread of its own and is shared by all flows. What follows
            runs there too, up to the next boundary.

        Example:
            >>> from reactive_runtime import Flow
            >>> async def ticks():
            ...     for n in range(3):
            ...         yield n
            >>> list(Flow.from_async(ticks))
            [0, 1, 2]

        Origin:
            The async iterables of Python.
        """
        if not (callable(source) or isinstance(source, AsyncIterable)):
            raise TypeError(f"from_async: an async iterable, or a function, is needed, not {instead(source)}")
        supplier: Callable[[], AsyncIterable[T]]
        supplier = check_callable("from_async", "source", source) if callable(source) else lambda: source
        at_least("from_async", "prefetch", 1, prefetch)
        title = describe(source) if callable(source) else type(source).__name__
        return combinator_flow(f"from_async({title})", lambda: OfAsync(supplier, prefetch), uses=(eventloop.OURS,))


_FULL: Final = "it found the buffer of its emitter full"


class Emitter(Generic[T]):
    """The pushing end of `create`, for one subscriber.

    Any thread may call it, several at once.
    """

    def __init__(self, buffer: SubscriberBuffer, overflow: str, note_assembly: Callable[[BaseException], None]) -> None:
        """`note_assembly` adds the line of the program that made the flow to an error of the emitter."""
        self._buffer = buffer
        self._note_assembly = note_assembly
        self._overflow = overflow
        self._lock = primitives.Lock()
        self._on_cancel: list[Callable[[], object]] = []  # _lock; the functions of `on_cancel` that are not yet called
        self._over = False  # _lock; the subscriber has gone, or has had the end

    def emit(self, element: T) -> EmitResult:
        """Push one element; never blocks.

        Args:
            element: It waits for demand. If the buffer is full, `overflow` of `create` says what is dropped.

        Returns:
            `OK` where the element was taken; with "oldest", another may have been dropped for it. `OVERFLOW` where the
            buffer is full; the element is dropped, and with "error" the flow has failed. `CANCELLED` where the
            subscriber has gone. `TERMINATED` where there was an end.

        Raises:
            TypeError: `element` is None (2.13). It raises nothing else.
        """
        not_none("emit", element)
        buffer = self._buffer
        dropped = buffer.push(element) if self._overflow == "oldest" else [] if buffer.put(element) else None
        if dropped is not None:
            for oldest in dropped:
                dropping.element_dropped(_FULL, oldest, buffer.heard, wanted=True)
            buffer.wake()
            return EmitResult.OK
        if buffer.gone():
            return EmitResult.CANCELLED
        if buffer.over():
            return EmitResult.TERMINATED
        dropping.element_dropped(_FULL, element, buffer.heard, wanted=self._overflow == "newest")
        if self._overflow == "error":
            full = OverflowError(
                f"create: more than {buffer.capacity} elements wait to be asked for, or to be taken: give it a capacity"
                ' for as many as it emits at once, or overflow="newest" or "oldest", and heed what emit returns'
            )
            self._note_assembly(full)
            self.error(full)
        return EmitResult.OVERFLOW

    def complete(self) -> bool:
        """The end of the flow, once what waits is delivered.

        Returns:
            False if there was an end already, or the subscriber has gone.
        """
        return self._end(None)

    def error(self, error: BaseException) -> bool:
        """The end of the flow, by failure, once what waits is delivered.

        Args:
            error: The error that the flow fails with. If there was an end already, or the subscriber has gone, it goes
                to the hook.

        Returns:
            False if there was an end already, or the subscriber has gone.

        Raises:
            TypeError: `error` is None (2.13), or no exception.
        """
        an_error("error", error)
        ended = self._end(error)
        if not ended:
            dropping.error_dropped("an error after its stream had ended", error)
        return ended

    def _end(self, error: BaseException | None) -> bool:
        ended = self._buffer.end(None if error is None else Failure(error))
        self._buffer.wake()
        return ended

    def demand(self) -> int:
        """How many more elements are demanded than wait; 0 or less: none."""
        return self._buffer.demand()

    def is_cancelled(self) -> bool:
        """Whether the subscriber has gone: it cancelled, or has had the end."""
        with self._lock:
            return self._over

    def on_cancel(self, fn: Callable[[], object]) -> None:
        """Call `fn()` once when the flow is over, whichever way it ends.

        Args:
            fn: Called at once, if the flow is over. Several are called in the order in which they were given. An error
                that one raises goes to the hook.

        Raises:
            TypeError: `fn` cannot be called.
        """
        check_callable("on_cancel", "fn", fn)
        with self._lock:
            over = self._over
            if not over:
                self._on_cancel.append(fn)
        if over:
            _quietly(fn)

    def _gone(self) -> None:
        with self._lock:
            self._over = True
            functions, self._on_cancel = self._on_cancel, []
        for fn in functions:
            _quietly(fn)


def _quietly(fn: Callable[[], object]) -> None:
    try:
        fn()
    except BaseException as error:
        dropping.raised(f"on_cancel({describe(fn)}) raised", error)


class _OfFuture(Combinator):
    def __init__(self, future: Any) -> None:
        super().__init__()
        self.future = future
        self.waiting: _Waiting | None = None

    def elements(self) -> Elements:
        self.waiting = _waiting_for(self.future)
        self.waiting.add(self)
        while not self.future.done():
            try:
                self.waiting.check()
            except RuntimeError as refused:
                raise self.fault(refused)  # noqa: B904  # it is the same
            yield PENDING
        if self.future.cancelled():
            raise self.fault(concurrent.futures.CancelledError("from_future: the future was cancelled"))
        if (error := self.future.exception()) is not None:
            raise carried(self.fault(an_exception(error)))
        result = self.future.result()
        if result is not None:
            yield from self.demand()
            yield result

    def waits_for(self) -> str:
        """See `Combinator.waits_for`."""
        return f"its future, {shown(self.future)}"

    def wake(self) -> None:
        """Wake the drain: the future is done."""
        self.drain.heard_from()

    def closed(self) -> None:
        if self.waiting is not None:
            self.waiting.remove(self)

    def pushes(self) -> bool:
        return True


class _Waiting:
    """The flows that wait for one future, with one callback: a future keeps its callbacks until it is done."""

    def __init__(self) -> None:
        self.lock = primitives.Lock()
        self.flows: dict[_OfFuture, None] = {}  # lock
        self.done = False  # lock; final
        self.error: BaseException | None = None  # lock; the future took no callback

    def add(self, flow: _OfFuture) -> None:
        """Wake the flow when the future is done; a flow that comes later looks at the future."""
        with self.lock:
            if not self.done:
                self.flows[flow] = None

    def remove(self, flow: _OfFuture) -> None:
        """Remove a flow that waits no more."""
        with self.lock:
            self.flows.pop(flow, None)

    def fail(self, error: BaseException) -> None:
        """Note that the future took no callback."""
        with self.lock:
            self.error = error
        self.called(None)

    def check(self) -> None:
        """Raise the error that the future raised when it got the callback."""
        with self.lock:
            error = self.error
        if error is not None:
            raise RuntimeError(f"from_future: the future takes no callback: {error}") from error

    def called(self, future: Any) -> None:
        """Wake all flows. The future calls it."""
        with self.lock:
            self.done = True
            flows, self.flows = self.flows, {}
        for flow in flows:
            flow.wake()


_lock: Final = primitives.Lock()
_waiting: Final[WeakKeyDictionary[Any, _Waiting]] = (
    WeakKeyDictionary()
)  # _lock; one for each future that flows wait for


def _waiting_for(future: Any) -> _Waiting:
    """The `_Waiting` of a future; the first flow that asks gives the future its callback."""
    mine = _Waiting()
    try:
        with _lock:
            waiting = _waiting.setdefault(future, mine)
    except TypeError:  # a future of another kind can't be a key: it gets a callback for each flow
        waiting = mine
    if waiting is mine:
        called = partial(contained, waiting.called)  # on a pool's worker, on a user's loop
        try:
            if hasattr(future, "get_loop"):  # a future of asyncio belongs to the thread of its loop
                future.get_loop().call_soon_threadsafe(future.add_done_callback, called)
            else:
                future.add_done_callback(called)
        except BaseException as error:
            with _lock, suppress(TypeError):
                _waiting.pop(future, None)
            waiting.fail(error)
            raise
    return waiting


class OfAsync(Combinator):
    """The elements of an async iterable, which one task on the event loop iterates."""

    def __init__(self, supplier: Callable[[], AsyncIterable[Any]], prefetch: int) -> None:
        super().__init__()
        self.supplier = supplier
        self.buffer = SubscriberBuffer(prefetch, on_room=self._more)
        self.loop: asyncio.AbstractEventLoop | None = None
        # The loop's thread owns these fields:
        self.task: asyncio.Task[None] | None = None
        self.room: asyncio.Event | None = None
        self.under_way: activity.UnderWay | None = None  # also None while the task waits for room; set before it begins
        self.asking = True  # the task waits for the iterable; otherwise it looks whether more is demanded

    def elements(self) -> Elements:
        self.buffer.heard = self.heard
        self.buffer.attach(self.drain)
        elements = self.buffer.open()
        yield from self.demand()
        self.loop = eventloop.borrow()
        eventloop.borrow()  # borrow the loop once more, for the task: at the end it may have an iterator to close
        self.under_way = self._begun()
        eventloop.call(self.loop, self._begin, self.loop)
        while True:
            while not (self.drain.demanded or self.buffer.exhausted()):
                yield PENDING
            element = next(elements, None)
            if element is None:
                return
            yield element

    def _begun(self) -> activity.UnderWay | None:
        return activity.begun(self.drain.context, f"the event loop, of `{self.title}`") if activity.in_use else None

    def _more(self) -> None:
        if self.loop is not None:
            eventloop.call(self.loop, self._signal, self._begun())

    def _signal(self, under_way: activity.UnderWay | None) -> None:
        """Let the task go on; the activity counts it from now on."""
        if under_way is not None and self.under_way is None and self.task is not None and not self.task.done():
            self.under_way, under_way = under_way, None
        if self.room is not None:
            self.room.set()
        if under_way is not None:
            under_way.end()

    def _rests(self) -> None:
        """The task waits for room, or is done."""
        under_way, self.under_way = self.under_way, None
        if under_way is not None:
            under_way.end()

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        import asyncio

        self.room = asyncio.Event()
        self.task = loop.create_task(self._iterate(), context=self.drain.context.copy())
        self.task.add_done_callback(lambda _: self._done(loop))

    def _done(self, loop: asyncio.AbstractEventLoop) -> None:
        eventloop.give_back(loop)
        self._rests()

    async def _iterate(self) -> None:
        import asyncio

        assert self.room is not None
        given = 0
        try:
            iterator: AsyncIterator[Any] = aiter(self.supplier())
            try:
                async for element in iterator:
                    self.asking = False
                    if element is None:
                        raise none_element()
                    while not self.buffer.put(element):
                        if self.buffer.gone():
                            self.discard(element)
                            return
                        self.room.clear()
                        if not self.buffer.room():
                            self._rests()
                            await self.room.wait()
                    self.buffer.wake()
                    if self.buffer.gone():
                        return
                    given += 1
                    if given % BATCH == 0:  # let the other tasks of the loop have a turn, if the iterable never waits
                        await asyncio.sleep(0)
                    self.asking = True
            finally:
                self.asking = False
                close = getattr(iterator, "aclose", None)
                if close is not None:
                    await close()
        except BaseException as error:
            name_source(error, lambda: f"the source {self.title} at index {given}")
            note_assembly(error, self.title, self.location)
            if not self.buffer.end(Failure(an_exception(error))) and not isinstance(error, asyncio.CancelledError):
                dropping.error_dropped(f"{self.title} failed after its stream had ended", error)
        else:
            self.buffer.end()
        self.buffer.wake()

    def closed(self) -> None:
        self.buffer.close()
        loop, self.loop = self.loop, None
        if loop is not None:
            eventloop.call(loop, self._cancel, self._begun())
            eventloop.give_back(loop)

    def _cancel(self, under_way: activity.UnderWay | None) -> None:
        if self.asking and self.task is not None:
            self.task.cancel()
        self._signal(under_way)  # elsewhere a cancel would interrupt the close of the iterator

    def pushes(self) -> bool:
        return True
