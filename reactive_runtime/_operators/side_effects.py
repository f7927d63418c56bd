"""Side effects: functions that get each signal, and change none.

A function that raises here ends the flow with its error, as a function of an operator does. If the flow has ended
already, the error goes to the hook. The functions run where the flow runs, one signal at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from reactive_runtime._core.drains.combinator import END, PENDING, Combinator, Elements
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.error_carrier import signalled
from reactive_runtime._core.fusion.step import Each, Step, describe
from reactive_runtime._core.queues.upstream import Relayed
from reactive_runtime._core.runtime.arguments import check_callable, is_coroutine_function
from reactive_runtime._core.sources.core_flow import CoreFlow, Gate, gated
from reactive_runtime._core.sources.flow_source import PublisherSource
from reactive_runtime._core.sources.naming import instead, kind_of
from reactive_runtime._operators.flow_base import FlowBase, combinator_flow, flow_of
from reactive_runtime._spec import Subscriber, Subscription

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["DoOnNext", "Listener", "SideEffectOperators", "tapped"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Way = Literal["complete", "error", "cancel"]


class SideEffectOperators(FlowBase[T_co]):
    """Side effects: functions that get each signal, and change none."""

    __slots__ = ()

    def tap(self, listener: Listener) -> Flow[T_co]:
        """All signals go to `listener` before they go on.

        Args:
            listener: A `Listener`. One listener serves all subscriptions, each of which calls it on its own thread.

        Returns:
            A flow of the same signals. It fails with the error that the listener raises; one of `on_cancel` or
            `on_finally` goes to the hook.

        Raises:
            TypeError: `listener` is no `Listener`, or a method of it is a coroutine function.

        Demand:
            Passes through.

        Cancellation:
            Passes through.

        Thread:
            The listener is called on the thread that signals, one signal of a subscription at a time.

        Example:
            >>> from reactive_runtime import Flow, Listener
            >>> class Count(Listener):
            ...     elements = 0
            ...     def on_next(self, element):
            ...         self.elements += 1
            >>> count = Count()
            >>> _ = Flow.range(3).tap(count).block()
            >>> count.elements
            3

        Origin:
            `tap` of Reactor.
        """
        if not isinstance(listener, Listener):
            raise TypeError(f"tap: a Listener is needed, not {instead(listener)}")
        for signal in _SIGNALS:
            if is_coroutine_function(getattr(listener, signal)):
                raise TypeError(
                    f"tap: {signal} of {kind_of(listener)} is a coroutine function, which no thread awaits: make it a"
                    " plain function, or use flat_map or map_parallel"
                )
        return tapped("tap()", self, listener)

    def do_on_subscribe(self, fn: Callable[[], object]) -> Flow[T_co]:
        """`fn()` is called when a subscription begins.

        Args:
            fn: Called once for each subscription, when the subscriber has it; not for a subscriber that cancels inside
                `on_subscribe`.

        Returns:
            A flow of the same signals. It fails with the error that `fn` raises.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Passes through. `fn` is called without demand.

        Cancellation:
            Passes through.

        Thread:
            `fn` is called on the thread that subscribes, or where the flow runs.

        Example:
            >>> from reactive_runtime import Flow
            >>> _ = Flow.range(1).do_on_subscribe(lambda: print("begins")).subscribe(print)
            begins
            0

        Origin:
            `doOnSubscribe` of Rx.
        """
        return tapped(f"do_on_subscribe({describe(fn)})", self, _Says("on_subscribe", "do_on_subscribe", fn))

    def do_on_error(self, fn: Callable[[Exception], object]) -> Flow[T_co]:
        """`fn(error)` is called when the source has failed, before the error goes on.

        Args:
            fn: Called with the error, at most once for each subscription.

        Returns:
            A flow of the same signals. An error that `fn` raises takes the place of the source's.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Passes through. `fn` is called without demand.

        Cancellation:
            Passes through.

        Thread:
            `fn` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> _ = Flow.error(OSError("gone")).do_on_error(print).subscribe(print, on_error=repr)
            gone

        Origin:
            `doOnError` of Rx.
        """
        return tapped(f"do_on_error({describe(fn)})", self, _Says("on_error", "do_on_error", fn))

    def do_on_complete(self, fn: Callable[[], object]) -> Flow[T_co]:
        """`fn()` is called when the source has completed, before the end goes on.

        Args:
            fn: Called at most once for each subscription.

        Returns:
            A flow of the same signals. It fails with the error that `fn` raises.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Passes through.

        Cancellation:
            Passes through.

        Thread:
            `fn` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(1).do_on_complete(lambda: print("done")))
            done
            [0]

        Origin:
            `doOnComplete` of Rx.
        """
        return tapped(f"do_on_complete({describe(fn)})", self, _Says("on_complete", "do_on_complete", fn))

    def do_on_cancel(self, fn: Callable[[], object]) -> Flow[T_co]:
        """`fn()` is called when the flow is cancelled before the source has ended.

        Args:
            fn: Called at most once for each subscription: also where an operator cancels, as `take`, or one further
                downstream fails.

        Returns:
            A flow of the same signals. An error that `fn` raises goes to the hook.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Passes through.

        Cancellation:
            Passes through. `fn` is called when the source has been released.

        Thread:
            `fn` is called on the thread that closes the flow.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(9).do_on_cancel(lambda: print("cancelled")).take(1))
            cancelled
            [0]

        Origin:
            `doOnCancel` of Reactor.
        """
        return tapped(f"do_on_cancel({describe(fn)})", self, _Says("on_cancel", "do_on_cancel", fn))

    def do_finally(self, fn: Callable[[Way], object]) -> Flow[T_co]:
        """`fn(way)` is called once, when the subscription is over.

        Args:
            fn: Called with "complete", "error" or "cancel", when the source has been released, and before the
                subscriber gets the end.

        Returns:
            A flow of the same signals. An error that `fn` raises goes to the hook.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Passes through.

        Cancellation:
            Passes through. It is the way "cancel", also where an operator cancels, as `take`, or one further downstream
            fails.

        Thread:
            `fn` is called on the thread that closes the flow.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(1).do_finally(print))
            complete
            [0]

        Origin:
            `doFinally` of Rx.
        """
        return tapped(f"do_finally({describe(fn)})", self, _Says("on_finally", "do_finally", fn))

    def finalize(self, fn: Callable[[], object]) -> Flow[T_co]:
        """`fn()` is called exactly once for each subscription, whichever way it ends.

        Args:
            fn: Called before the subscriber gets the end. A source that has not ended is closed after that.

        Returns:
            A flow of the same signals. An error that `fn` raises goes to the hook.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Passes through.

        Cancellation:
            Passes through, and `fn` is called.

        Thread:
            `fn` is called on the thread that closes the flow.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(9).finalize(lambda: print("over")).take(1))
            over
            [0]

        Origin:
            `finalize` of RxJS.
        """
        return self._then(_Finalize(check_callable("finalize", "fn", fn)))

    def do_on_next(self, fn: Callable[[T_co], object]) -> Flow[T_co]:
        """`fn(element)` is called before each element goes on.

        Args:
            fn: Called once for each element. Its result is not used.

        Returns:
            A flow of the same signals. It fails with the error that `fn` raises.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Passes through.

        Cancellation:
            Passes through.

        Thread:
            `fn` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(2).do_on_next(print))
            0
            1
            [0, 1]

        Origin:
            `doOnNext` of Rx.
        """
        return self._then(DoOnNext(check_callable("do_on_next", "fn", fn)))

    def do_on_discard(self, fn: Callable[[Any], object]) -> Flow[T_co]:
        """`fn(element)` is called for each element that was accepted here or upstream and will not be delivered.

        Such an element waits in a buffer at a cancel, finds one full, or is in a batch that is half full when its
        source fails. A dropped group or window drops the elements that it holds, one by one. All operators upstream are
        covered, across boundaries, and none downstream: not what becomes of an element that has passed here. A shared
        flow (`share`, `publish`, `replay`, `cache`) is a source of its own: what it drops for one subscriber is
        covered, and what is dropped upstream of the sharing is not.

        Args:
            fn: Called once for each such element, which goes to the hook as well.

        Returns:
            A flow of the same signals. An error that `fn` raises goes to the hook.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Passes through.

        Cancellation:
            Passes through. `fn` gets the elements that were waiting.

        Thread:
            `fn` is called on the thread that notices, which may be one of an executor upstream.

        Example:
            >>> from reactive_runtime import Flow
            >>> flow = Flow.range(3).concat_with(Flow.error(OSError())).batch(2).do_on_discard(print)
            >>> _ = flow.subscribe(print, on_error=repr)
            [0, 1]
            2

        Origin:
            `doOnDiscard` of Reactor.
        """
        return self._then(_DoOnDiscard(check_callable("do_on_discard", "fn", fn)))

    def do_on_request(self, fn: Callable[[int], object]) -> Flow[T_co]:
        """`fn(n)` is called for each demand that is passed upstream here, before it is.

        Args:
            fn: Called with what the operators downstream request: as they need it, not call by call.

        Returns:
            A flow of the same signals. An error that `fn` raises goes to the hook, and the demand goes on.

        Raises:
            TypeError: `fn` cannot be called.

        Demand:
            Passes through.

        Cancellation:
            Passes through.

        Thread:
            `fn` is called on the thread that requests.

        Example:
            >>> from reactive_runtime import Flow
            >>> _ = Flow.range(9).do_on_request(print).take(2).subscribe(print)
            2
            0
            1

        Origin:
            `doOnRequest` of Reactor.
        """
        check_callable("do_on_request", "fn", fn)
        return flow_of(PublisherSource(f"do_on_request({describe(fn)})", _Requests(self, fn), above=self))


class Listener:
    """A listener that `Flow.tap` calls for each signal; override the methods that are wanted."""

    def on_subscribe(self) -> None:
        """A subscription begins."""

    def on_next(self, element: Any) -> None:
        """An element is about to go on.

        Args:
            element: The element.
        """

    def on_error(self, error: Exception) -> None:
        """The source has failed.

        Args:
            error: The error that it failed with.
        """

    def on_complete(self) -> None:
        """The source has completed."""

    def on_cancel(self) -> None:
        """The flow was cancelled, or failed further downstream, before the source had ended."""

    def on_finally(self, way: Way) -> None:
        """The subscription is over; called once, after any of the three.

        Args:
            way: "complete", "error" or "cancel".
        """


_SIGNALS: Final = ("on_subscribe", "on_next", "on_error", "on_complete", "on_cancel", "on_finally")


def tapped(title: str, source: FlowBase[T], listener: Listener) -> Flow[T]:
    return combinator_flow(title, lambda: _Tap(source, listener), source)


class _Tap(Combinator):
    def __init__(self, source: FlowBase[Any], listener: Listener) -> None:
        super().__init__()
        self.source = source
        self.listener = listener
        self.way: Way = "cancel"

    def elements(self) -> Elements:
        listener = self.listener
        self.call(listener.on_subscribe)
        inner = self.inner(self.source)
        seen = type(listener).on_next is not Listener.on_next
        while True:
            try:
                element = inner.next_if_demanded()
            except Exception as error:
                self.way = "error"
                self.call(listener.on_error, signalled(error))
                raise
            if element is END:
                break
            if seen and element is not PENDING:
                self.call(listener.on_next, element)
            yield element
        self.way = "complete"
        self.call(listener.on_complete)

    def closed(self) -> None:
        try:
            if self.way == "cancel":
                self._quietly(self.listener.on_cancel)
        finally:
            self._quietly(partial(self.listener.on_finally, self.way))


class _Says(Listener):
    """A listener for one kind of signal."""

    def __init__(self, signal: str, operator: str, fn: Callable[..., object]) -> None:
        setattr(self, signal, check_callable(operator, "fn", fn))


class _Finalize(Step[T, T]):
    name = "finalize"

    def __init__(self, fn: Callable[[], object]) -> None:
        self.fn = fn

    def on_next(self, element: T) -> Each[T]:
        yield element

    def dispose(self) -> Iterable[object]:
        self.fn()
        return ()

    def __str__(self) -> str:
        return f"finalize({describe(self.fn)})"


class DoOnNext(Step[T, T]):
    name = "do_on_next"

    def __init__(self, fn: Callable[[T], object], operator: str = "do_on_next") -> None:
        self.fn = fn
        self.operator = operator  # the name of the operator that was called

    def on_next(self, element: T) -> Each[T]:
        self.fn(element)
        yield element

    def __str__(self) -> str:
        return f"{self.operator}({describe(self.fn)})"


class _DoOnDiscard(Step[T, T]):
    name = "do_on_discard"

    def __init__(self, fn: Callable[[Any], object]) -> None:
        self.hears = fn

    def on_next(self, element: T) -> Each[T]:
        yield element

    def __str__(self) -> str:
        assert self.hears is not None
        return f"do_on_discard({describe(self.hears)})"


class _Requests:
    """A publisher whose subscriptions report each request."""

    def __init__(self, source: CoreFlow[Any], fn: Callable[[int], object]) -> None:
        self.source = source
        self.fn = fn

    def gated(self, gate: Gate) -> _Requests:
        """The same, with `gate` at the sources."""
        return _Requests(gated(self.source, gate), self.fn)

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self.source._run(_Requesting(subscriber, self.fn))


class _Requesting(Relayed):
    """Stands between a subscriber and its subscription."""

    def __init__(self, subscriber: Subscriber[Any], fn: Callable[[int], object]) -> None:
        self.subscriber = subscriber
        self.on_next = subscriber.on_next
        self.on_error = subscriber.on_error
        self.on_complete = subscriber.on_complete
        self.fn = fn
        self.subscription: Subscription

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        self.subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        try:
            self.fn(n)
        except BaseException as error:
            dropping.raised(f"do_on_request raised on request({n})", error)
        self.subscription.request(n)

    def cancel(self) -> None:
        self.subscription.cancel()
