"""Processors: stages that are a subscriber on one side and a publisher on the other (4.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.fusion.step import describe
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import check_callable, not_none, signalled_error
from reactive_runtime._core.sources.naming import is_publisher, kind_of, no_publisher
from reactive_runtime._flow import Flow
from reactive_runtime._spec import Subscriber, Subscription
from reactive_runtime.errors import RejectedError

__all__ = ["FlowProcessor"]

A = TypeVar("A")
B = TypeVar("B")


class FlowProcessor(Generic[A, B]):
    """A processor made of operators, to put a piece of a flow between two parties that know the protocol only.

    Unicast: it has one upstream, and one subscriber; a second upstream is cancelled (2.5), a second subscriber is
    refused (`on_subscribe`, then `on_error(RejectedError)`). Either side may come first.

    Args:
        assemble: Is given the flow of what comes in, and returns the flow of what goes out. It is called once, at once.

    Raises:
        TypeError: `assemble` cannot be called.

    Demand:
        Goes through as the operators have it: exactly where they are synchronous, by prefetch behind `publish_on`. The
        end of the upstream waits for no demand.

    Cancellation:
        A cancel downstream cancels upstream.

    Thread:
        The operators run on the threads of the upstream and of the subscriber, as in any flow.

    Example:
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.processors import FlowProcessor
        >>> squares = FlowProcessor(lambda numbers: numbers.map(lambda n: n * n))
        >>> handle = Flow.from_publisher(squares).subscribe(print)
        >>> _ = Flow.range(3).subscribe(squares)
        0
        1
        4
    """

    __slots__ = ("__weakref__", "_connected", "_end", "_inner", "_lock", "_out", "_upstream")

    def __init__(self, assemble: Callable[[Flow[A]], Flow[B]]) -> None:
        check_callable("FlowProcessor", "assemble", assemble)
        self._lock = primitives.Lock()
        self._upstream: Subscription | None = None  # _lock; set once
        self._inner: Subscriber[A] | None = None  # _lock; set once: the subscriber with which the operators begin
        self._connected = False  # _lock; `on_subscribe` has passed on, so the two sides know each other
        self._end: Callable[[Subscriber[A]], object] | None = (
            None  # _lock; an end that came before `on_subscribe` had passed on
        )
        out = assemble(Flow.from_publisher(_Entry(self)))
        if not is_publisher(out):
            raise TypeError(f"FlowProcessor: {describe(assemble)} must return a flow, not {no_publisher(out)}")
        self._out = out

    # -- downstream --------------------------------------------------------------------------------------------

    def subscribe(self, subscriber: Subscriber[B], /) -> None:
        """Connect the one subscriber (1.9).

        Args:
            subscriber: The subscriber. A second one is refused: `on_subscribe`, then `on_error(RejectedError)`.

        Raises:
            TypeError: `subscriber` is None, or no subscriber. Nothing else is raised (1.9).
        """
        self._out.subscribe(subscriber)

    def _enter(self, inner: Subscriber[A]) -> None:
        """Let the operators subscribe to the elements that come in."""
        with self._lock:
            taken = self._inner is not None
            if not taken:
                self._inner = inner
            upstream = self._upstream
        if taken:
            inner.on_subscribe(_Nothing())
            inner.on_error(RejectedError("this FlowProcessor has its one subscriber already"))
        elif upstream is not None:
            self._connect(inner, upstream)

    # -- upstream ----------------------------------------------------------------------------------------------

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Take the one upstream; a further one is cancelled (2.5).

        Args:
            subscription: The link to the upstream.

        Raises:
            TypeError: `subscription` is None (2.13).
        """
        not_none("on_subscribe", subscription)
        with self._lock:
            taken = self._upstream is not None
            if not taken:
                self._upstream = subscription
            inner = self._inner
        if taken:
            subscription.cancel()
        elif inner is not None:
            self._connect(inner, subscription)

    def _connect(self, inner: Subscriber[A], upstream: Subscription) -> None:
        """Connect the two sides. The side that comes second calls it, once."""
        inner.on_subscribe(upstream)
        with self._lock:
            self._connected = True
            end = self._end
        if end is not None:
            end(inner)

    def on_next(self, element: A, /) -> None:
        """Pass `element` on.

        Args:
            element: Anything but None. One that was not asked for goes to the hook of dropped elements, and the flow
                fails with ProtocolError (1.1). Without a subscriber, an element goes to the hook.

        Raises:
            TypeError: `element` is None (2.13).
        """
        not_none("on_next", element)
        with self._lock:
            inner = self._inner
        if inner is None:
            dropping.element_dropped("it came to a FlowProcessor that has no subscriber", element)
        else:
            inner.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        """Pass `error` on at once (4.2), or as soon as there is a subscriber.

        Args:
            error: The error of the upstream.

        Raises:
            TypeError: `error` is None (2.13).
        """
        error = signalled_error(error, f"the publisher of {kind_of(self)}")
        self._ends(lambda inner: inner.on_error(error))

    def on_complete(self) -> None:
        """Pass the end on at once, or as soon as there is a subscriber and an upstream."""
        self._ends(lambda inner: inner.on_complete())

    def _ends(self, end: Callable[[Subscriber[A]], object]) -> None:
        with self._lock:
            if not self._connected:
                self._end = self._end or end
                return
            inner = self._inner
        assert inner is not None
        end(inner)


class _Entry(Generic[A]):
    """The elements that come in, as a publisher."""

    def __init__(self, processor: FlowProcessor[A, Any]) -> None:
        self._processor = processor

    def subscribe(self, subscriber: Subscriber[A], /) -> None:
        self._processor._enter(subscriber)


class _Nothing:
    """The subscription of a subscriber that is refused."""

    def request(self, n: int, /) -> None:
        pass

    def cancel(self) -> None:
        pass
