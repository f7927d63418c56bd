"""Operators that go on after an end: with another source, with another error, or once more from the beginning.

An operator here subscribes to its source, or to the one that follows, and requests exactly what is demanded downstream;
what is still owed when a source ends is requested of the next. However often that is, it needs no stack and no memory.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from reactive_runtime._core.drains.combinator import END, PENDING, Clock, Combinator, Elements, InnerSubscription
from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import raised_over
from reactive_runtime._core.failures.error_carrier import carried, signalled
from reactive_runtime._core.fusion.step import describe
from reactive_runtime._core.runtime.arguments import When, at_least, check_callable, check_clock, failures, seconds_of
from reactive_runtime._core.sources.naming import is_publisher, no_publisher
from reactive_runtime._executors.shared_clock import clock_used
from reactive_runtime._operators.flow_base import FlowBase, as_flow, combinator_flow
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._spec import Publisher
from reactive_runtime.executors import clock_in

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["Again", "ErrorHandlingOperators"]

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")

Outcome = Generator[Any, None, Exception | None]


class ErrorHandlingOperators(FlowBase[T_co]):
    """Operators that go on after an end: with another source, with another error, or once more from the beginning."""

    __slots__ = ()

    def on_error_resume(self, fn: Callable[[Exception], Publisher[R]], *, when: When = Exception) -> Flow[T_co | R]:
        """The source; where it fails, then the publisher `fn(error)`, instead of the error.

        Args:
            fn: Called with the error, once. Returns a publisher.
            when: Which errors: a class of exceptions, a tuple of classes, or a function of the error. Others go on.

        Returns:
            A flow of the elements of the source, and, where that fails, of those of the publisher, with its end. An
            error of `fn` or `when` ends it, and has the source's as its context; so does a TypeError where `fn` returns
            no publisher.

        Raises:
            TypeError: `fn` cannot be called, or `when` is neither a class of exceptions, nor a tuple of them, nor a
                function.

        Demand:
            Passes to the source, exactly. The demand that is left when it fails goes to the publisher.

        Cancellation:
            Passes to the one that is under way.

        Thread:
            `fn` and `when` are called on the thread on which the source fails. A publisher without an executor runs
            there, or on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just(1, 0).map(lambda n: 1 // n).on_error_resume(lambda error: Flow.just(-1)))
            [1, -1]

        Origin:
            `onErrorResume` of Reactor.
        """
        check_callable("on_error_resume", "fn", fn)
        wanted = failures("on_error_resume", when)
        return combinator_flow(f"on_error_resume({describe(fn)})", lambda: _Resume(self, fn, wanted), self)

    def on_error_return(self, fn: Callable[[Exception], R], *, when: When = Exception) -> Flow[T_co | R]:
        """The source; where it fails, then the element `fn(error)`, and the end, instead of the error.

        Args:
            fn: Called with the error, once. Returns the element; a result of None is a TypeError (2.13).
            when: Which errors: a class of exceptions, a tuple of classes, or a function of the error. Others go on.

        Returns:
            A flow of the elements of the source, and, where that fails, of one element more; it then completes. An
            error of `fn` or `when` ends it, and has the source's as its context.

        Raises:
            TypeError: `fn` cannot be called, or `when` is neither a class of exceptions, nor a tuple of them, nor a
                function.

        Demand:
            Passes to the source, exactly. The element waits for demand.

        Cancellation:
            Passes through. The element that waits then goes to the hook.

        Thread:
            `fn` and `when` are called on the thread on which the source fails. If the element waits, it comes on the
            thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just(1, 0).map(lambda n: 1 // n).on_error_return(lambda error: -1))
            [1, -1]

        Origin:
            `onErrorReturn` of Rx.
        """
        check_callable("on_error_return", "fn", fn)
        wanted = failures("on_error_return", when)
        return combinator_flow(f"on_error_return({describe(fn)})", lambda: _Return(self, fn, wanted), self)

    def map_error(self, fn: Callable[[Exception], Exception]) -> Flow[T_co]:
        """The source; where it fails, `fn(error)` in place of the error, which becomes its cause.

        Args:
            fn: Called with the error, once. Returns an exception. A result that is none is a TypeError.

        Returns:
            A flow of the elements of the source. An error of `fn` itself ends it.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Passes through.

        Cancellation:
            Passes through.

        Thread:
            `fn` is called on the thread on which the source fails.

        Example:
            >>> from reactive_runtime import Flow
            >>> flow = Flow.error(OSError("gone")).map_error(lambda error: LookupError(str(error)))
            >>> _ = flow.subscribe(print, on_error=lambda error: print(repr(error)))
            LookupError('gone')

        Origin:
            `onErrorMap` of Reactor.
        """
        check_callable("map_error", "fn", fn)
        return combinator_flow(f"map_error({describe(fn)})", lambda: _MapError(self, fn), self)

    def retry(self, n: int | None = None, *, when: When | None = None) -> Flow[T_co]:
        """The source; where it fails, the source once more, up to `n` times.

        Elements that it gave before it failed stay delivered.

        Args:
            n: How often it is subscribed to again, at most; 0 or more. None: without end.
            when: Which errors are worth it: a class of exceptions, a tuple of classes, or a function of the error.
                None: each `Exception`.

        Returns:
            A flow of the elements of all attempts. It completes with the first attempt that does. The last error ends
            it, and so does an error of `when`.

        Raises:
            TypeError: `n` is no int, or `when` is neither a class of exceptions, nor a tuple of them, nor a function.
            ValueError: `n` is below 0.

        Demand:
            Passes to the source, exactly. The demand that is left goes to the new subscription.

        Cancellation:
            Passes to the attempt that is under way; none follows.

        Thread:
            `when` is called, and the source subscribed to again, on the thread on which it fails.

        Example:
            >>> from reactive_runtime import Flow
            >>> attempts = iter([OSError("busy"), None])
            >>> def read():
            ...     if error := next(attempts):
            ...         raise error
            ...     return "done"
            >>> Flow.from_callable(read).retry(3).block()
            'done'

        Origin:
            `retry` of Rx.
        """
        if n is not None:
            at_least("retry", "n", 0, n)
        wanted = failures("retry", Exception if when is None else when)
        return combinator_flow(f"retry({'' if n is None else n})", lambda: _Retry(self, n, wanted), self)

    def retry_when(self, fn: Callable[[Exception, int], Publisher[object]]) -> Flow[T_co]:
        """The source; where it fails, it comes once more as soon as the publisher `fn(error, attempt)` has an element.

        Args:
            fn: Called with each error and the number of attempts, counted from 1. Returns a publisher.

        Returns:
            A flow of the elements of all attempts. It completes with the first attempt that does. A publisher that
            completes without an element lets the error through; one that fails ends the flow with its own. An error of
            `fn` ends it, and so does a TypeError where `fn` returns no publisher.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Passes to the source, exactly. Of the publisher one element is requested, demand or not. The demand that is
            left goes to the new subscription.

        Cancellation:
            Passes to the source, or to the publisher that is waited for. The publisher is cancelled with its first
            element.

        Thread:
            `fn` is called on the thread on which the source fails. The source is subscribed to again on the thread on
            which the publisher signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> busy = Flow.error(OSError("busy"))
            >>> flow = busy.retry_when(lambda error, n: Flow.just("again") if n < 3 else Flow.empty())
            >>> _ = flow.subscribe(print, on_error=print)
            busy

        Origin:
            `retryWhen` of Rx, with a publisher for each error.
        """
        check_callable("retry_when", "fn", fn)
        return combinator_flow(f"retry_when({describe(fn)})", lambda: _RetryWhen(self, fn), self)

    def retry_backoff(
        self,
        n: int,
        *,
        clock: Clock | None = None,
        first: float = 0.1,
        most: float = 30.0,
        jitter: float = 0.5,
        when: When | None = None,
    ) -> Flow[T_co]:
        """`retry`, after a pause of `first` seconds, then twice that, and so on, but never more than `most`.

        Args:
            n: How often the source is subscribed to again, at most; 0 or more.
            clock: An executor with a clock: `ScheduledExecutor`, or `VirtualTimeExecutor` in tests. None: the clock of
                the context; see `executors.clock_of`.
            first: The first pause, in seconds; above 0.
            most: The longest pause, in seconds; above 0.
            jitter: Each pause is made longer or shorter at random, by a fraction of up to that; 0 to 1.
            when: Which errors are worth it, as for `retry`.

        Returns:
            A flow of the elements of all attempts. It completes with the first attempt that does. The last error ends
            it. A clock that is shut down ends it with RejectedError.

        Raises:
            TypeError: `n` is no int, `first`, `most` or `jitter` is no number, `clock` has no clock, or `when` is
                neither a class of exceptions, nor a tuple of them, nor a function.
            ValueError: `n` is below 0, `first` or `most` is not above 0 or not finite, or `jitter` is not from 0 to 1.

        Demand:
            Passes to the source, exactly. The demand that is left goes to the new subscription.

        Cancellation:
            Passes to the attempt that is under way. In a pause it cancels the timer.

        Thread:
            The source is subscribed to again on its executor; where it has none, on the clock's thread, or on one of
            the few daemon threads of the shared clock, and goes on there.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.executors import VirtualTimeExecutor
            >>> clock = VirtualTimeExecutor()
            >>> _ = Flow.error(OSError("busy")).retry_backoff(2, clock=clock, first=1).subscribe(print, on_error=print)
            >>> clock.advance(10)
            busy

        Origin:
            `retryBackoff` of Reactor.
        """
        at_least("retry_backoff", "n", 0, n)
        check_clock("retry_backoff", clock)
        seconds_of("retry_backoff", "first", first, positive=True)
        seconds_of("retry_backoff", "most", most, positive=True)
        if seconds_of("retry_backoff", "jitter", jitter) > 1:
            raise ValueError(f"retry_backoff: jitter must be a fraction from 0 to 1, not {jitter}")
        wanted = failures("retry_backoff", Exception if when is None else when)
        return combinator_flow(
            f"retry_backoff({n})",
            lambda: _RetryBackoff(self, n, clock, first, most, jitter, wanted),
            self,
            uses=(clock_used(clock),),
        )

    @stateful
    def repeat(self, n: int | None = None) -> Flow[T_co]:
        """The source `n` times, one after the other.

        Args:
            n: How often; 0 or more. None: without end.

        Returns:
            A flow of the elements of all rounds. It completes with the last of them. An error ends it.

        Raises:
            TypeError: `n` is no int.
            ValueError: `n` is below 0.

        Demand:
            Passes to the source, exactly. The demand that is left goes to the next subscription; without demand there
            is none.

        Cancellation:
            Passes to the round that is under way; none follows.

        Thread:
            The source is subscribed to again on the thread on which it completes, or on the one that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(2).repeat(2))
            [0, 1, 0, 1]

        Origin:
            `repeat` of Rx.
        """
        if n is not None:
            at_least("repeat", "n", 0, n)
        return combinator_flow(f"repeat({'' if n is None else n})", lambda: _Repeat(self, n), self)

    @stateful
    def repeat_when(self, fn: Callable[[int], Publisher[object]]) -> Flow[T_co]:
        """The source; where it completes, once more as soon as the publisher `fn(times)` has an element.

        Args:
            fn: Called with the number of completions, counted from 1. Returns a publisher.

        Returns:
            A flow of the elements of all rounds. A publisher that completes without an element ends it, one that fails
            ends it with its error. An error of the source or of `fn` ends it, and so does a TypeError where `fn`
            returns no publisher.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Passes to the source, exactly. Of the publisher one element is requested, demand or not. The demand that is
            left goes to the next subscription.

        Cancellation:
            Passes to the source, or to the publisher that is waited for. The publisher is cancelled with its first
            element.

        Thread:
            `fn` is called on the thread on which the source completes. The source is subscribed to again on the thread
            on which the publisher signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(2).repeat_when(lambda times: Flow.just("again") if times < 2 else Flow.empty()))
            [0, 1, 0, 1]

        Origin:
            `repeatWhen` of Rx, with a publisher for each end.
        """
        check_callable("repeat_when", "fn", fn)
        return combinator_flow(f"repeat_when({describe(fn)})", lambda: _RepeatWhen(self, fn), self)


class Again(Combinator):
    """Runs sources one after the other."""

    def __init__(self, source: FlowBase[Any]) -> None:
        super().__init__()
        self.source = source
        self.last: tuple[Exception, TracebackType | None] | None = None  # the failure before, and its traceback

    def run(self, source: FlowBase[Any]) -> Outcome:
        """Give the elements of `source`; return the error that it ended with, or None."""
        inner = self.inner(source)
        failure: Exception | None = None
        try:
            while (element := inner.next_if_demanded()) is not END:
                yield element
        except Exception as error:
            failure = signalled(error)
            self._shorten(failure)
        self.leave(inner)
        if failure is None:
            yield from self.pause()
        try:
            return failure
        finally:
            failure = None  # a reference cycle: the traceback of the error has this frame

    def pause(self) -> Elements:
        """Let the drain look at a cancel, or another note, even if each source ends at once."""
        if self.drain.stopped or self.drain.has_note():
            yield PENDING

    def _shorten(self, error: Exception) -> None:
        """Keep the traceback of the last time only, if sources raise one instance again and again."""
        if self.last is not None and self.last[0] is error and (old := self.last[1]) is not None:
            at = error.__traceback__
            while at is not None and at.tb_next is not old:
                at = at.tb_next
            if at is not None:
                at.tb_next = None
        self.last = error, error.__traceback__

    def closed(self) -> None:
        self.last = None  # a reference cycle: the traceback has the frames of this operator

    def signal_of(self, publisher: Publisher[Any]) -> Generator[Any, None, bool]:
        """Wait for `publisher`. Return True with its first element, False if it completes without one."""
        inner: InnerSubscription = self.inner(as_flow(self.title, "the companion", publisher), 1, made=True)
        while (news := inner.next_signal()) is PENDING:
            yield PENDING
        self.leave(inner)
        return news is not END

    def asked(self, fn: Callable[..., Any], *arguments: Any) -> Any:
        """Call a user's function. If it raises, the failure that it was given becomes the context of its error."""
        try:
            return self.call(fn, *arguments)
        except BaseException as error:
            if isinstance(arguments[0], BaseException):
                raised_over(error, arguments[0])
            raise

    def publisher_from(self, fn: Callable[..., Publisher[Any]], *arguments: Any) -> Flow[Any]:
        """Make a flow of the publisher that a user's function returns."""
        publisher = self.asked(fn, *arguments)
        if not is_publisher(publisher):
            kind = no_publisher(publisher)
            raise self.fault(TypeError(f"{self.title}: {describe(fn)} must return a publisher, not {kind}"))
        return as_flow(self.title, "the result", publisher)


class _Resume(Again):
    def __init__(
        self, source: FlowBase[Any], fn: Callable[[Exception], Any], when: Callable[[Exception], object]
    ) -> None:
        super().__init__(source)
        self.fn = fn
        self.when = when

    def elements(self) -> Elements:
        failure = yield from self.run(self.source)
        if failure is None:
            return
        if self.is_shut() or not self.asked(self.when, failure):
            raise carried(failure)
        yield from self.relay(self.inner(self.publisher_from(self.fn, failure), alone=True))


class _Return(_Resume):
    element: Any = None  # the owner's; the result of the function, which waits for demand

    def elements(self) -> Elements:
        failure = yield from self.run(self.source)
        if failure is None:
            return
        if not self.asked(self.when, failure):
            raise carried(failure)
        self.element = self.asked(self.fn, failure)
        if self.element is None:
            raise self.fault(TypeError(f"{self.title}: the function returned None, which is no element (2.13)"))
        yield from self.demand()
        element, self.element = self.element, None
        yield element

    def closed(self) -> None:
        super().closed()
        if self.element is not None:
            self.discard(self.element)


class _MapError(Again):
    def __init__(self, source: FlowBase[Any], fn: Callable[[Exception], Exception]) -> None:
        super().__init__(source)
        self.fn = fn

    def elements(self) -> Elements:
        failure = yield from self.run(self.source)
        if failure is None:
            return
        error = self.asked(self.fn, failure)
        if not isinstance(error, BaseException):
            kind = type(error).__name__
            raise self.fault(TypeError(f"{self.title}: the function must return an exception, not {kind}"))
        if error is not failure:
            error.__cause__ = failure
        raise carried(error) if isinstance(error, Exception) else error


class _Retry(Again):
    def __init__(self, source: FlowBase[Any], n: int | None, when: Callable[[Exception], object]) -> None:
        super().__init__(source)
        self.n = n
        self.when = when

    def elements(self) -> Elements:
        attempt = 0
        while (failure := (yield from self.run(self.source))) is not None:
            if attempt == self.n or self.is_shut() or not self.asked(self.when, failure):
                raise carried(failure)
            attempt += 1
            yield from self.pause()
            yield from self.before(attempt, failure)
            if self.is_shut():
                raise carried(failure)
            dropping.retried(self.drain.context)

    def before(self, attempt: int, failure: Exception) -> Elements:
        """Wait before the next attempt."""
        yield from ()


class _RetryWhen(_Retry):
    def __init__(self, source: FlowBase[Any], fn: Callable[[Exception, int], Publisher[Any]]) -> None:
        super().__init__(source, None, failures("retry_when", Exception))
        self.fn = fn

    def before(self, attempt: int, failure: Exception) -> Elements:
        if not (yield from self.signal_of(self.publisher_from(self.fn, failure, attempt))):
            raise carried(failure)


class _RetryBackoff(_Retry):
    def __init__(
        self,
        source: FlowBase[Any],
        n: int,
        clock: Clock | None,
        first: float,
        most: float,
        jitter: float,
        when: Callable[[Exception], object],
    ) -> None:
        super().__init__(source, n, when)
        self.given = clock
        self.clock: Clock  # set once, by attach
        self.first = first
        self.most = most
        self.jitter = jitter

    def attach(self, drain: DrainContext) -> None:
        super().attach(drain)
        self.clock = clock_in(drain.context) if self.given is None else self.given

    def before(self, attempt: int, failure: Exception) -> Elements:
        pause = min(self.most, self.first * 2.0 ** min(attempt - 1, 1000))
        timer = self.timer(self.clock, min(self.most, pause * random.uniform(1 - self.jitter, 1 + self.jitter)))
        while not timer.due():
            yield PENDING
        self.timers.remove(timer)


class _Repeat(Again):
    def __init__(self, source: FlowBase[Any], n: int | None) -> None:
        super().__init__(source)
        self.n = n

    def elements(self) -> Elements:
        times = 0
        while times != self.n and not (times and self.is_shut()):
            if times:
                yield from self.demand()
            failure = yield from self.run(self.source)
            if failure is not None:
                raise carried(failure)
            times += 1


class _RepeatWhen(Again):
    def __init__(self, source: FlowBase[Any], fn: Callable[[int], Publisher[Any]]) -> None:
        super().__init__(source)
        self.fn = fn

    def elements(self) -> Elements:
        times = 0
        while True:
            failure = yield from self.run(self.source)
            if failure is not None:
                raise carried(failure)
            times += 1
            if self.is_shut() or not (yield from self.signal_of(self.publisher_from(self.fn, times))):
                return
