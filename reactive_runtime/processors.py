"""Processors: stages that are a subscriber on one side and a publisher on the other (4.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.fusion.step import describe
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import check_callable, not_none, signalled_error
from reactive_runtime._core.sources.naming import instead, is_publisher, is_subscriber, kind_of, no_publisher
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
        A cancel downstream cancels upstream. So does an end downstream, also where the operators reach it without what
        comes in (`take(0)`, `zip` with a source that is empty). An upstream that comes after that is cancelled.

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

    __slots__ = ("__weakref__", "_connected", "_end", "_inner", "_lock", "_out", "_over", "_subscribers", "_upstream")

    def __init__(self, assemble: Callable[[Flow[A]], Flow[B]]) -> None:
        check_callable("FlowProcessor", "assemble", assemble)
        self._lock = primitives.Lock()
        self._upstream: Subscription | None = None  # _lock; set once
        self._inner: Subscriber[A] | None = None  # _lock; set once: the subscriber with which the operators begin
        self._connected = False  # _lock; `on_subscribe` has passed on, so the two sides know each other
        # _lock; an end that came before `on_subscribe` had passed on, and its error
        self._end: tuple[BaseException | None] | None = None
        self._subscribers = 0  # _lock; subscriptions downstream that are being made, or are not over
        self._over = False  # _lock; final: the last of them is over, and no operator has begun with what comes in
        out = assemble(Flow.from_publisher(_Entry(self)))
        if not is_publisher(out):
            raise TypeError(f"FlowProcessor: {describe(assemble)} must return a flow, not {no_publisher(out)}")
        flow: Flow[B] = out if isinstance(out, Flow) else Flow.from_publisher(out)
        self._out = flow.finalize(self._left)

    # -- downstream --------------------------------------------------------------------------------------------

    def subscribe(self, subscriber: Subscriber[B], /) -> None:
        """Connect the one subscriber (1.9).

        Args:
            subscriber: The subscriber. A second one is refused: `on_subscribe`, then `on_error(RejectedError)`.

        Raises:
            TypeError: `subscriber` is None, or no subscriber. Nothing else is raised (1.9).
        """
        if not is_subscriber(subscriber) or isinstance(subscriber, type):
            raise TypeError(f"subscribe: a Subscriber is needed, not {instead(subscriber)} (1.9)")
        with self._lock:
            self._subscribers += 1
        self._out.subscribe(subscriber)

    def _left(self) -> None:
        """A subscription downstream is over. The upstream is needed no more if no operator has begun with it."""
        with self._lock:
            self._subscribers -= 1
            if self._subscribers or self._inner is not None or self._over:
                return
            self._over = True
            upstream, end = self._upstream, self._end
        if end is not None:
            _error_dropped(end)
        elif upstream is not None:
            upstream.cancel()

    def _enter(self, inner: Subscriber[A]) -> None:
        """Let the operators subscribe to the elements that come in."""
        with self._lock:
            taken, over = self._inner is not None, self._over
            if not (taken or over):
                self._inner = inner
            upstream = self._upstream
        if taken or over:
            nothing = _Nothing()
            inner.on_subscribe(nothing)
            if nothing.cancelled:  # it has left meanwhile
                return
            reason = "has its one subscriber already" if taken else "is over: its one subscriber has left"
            inner.on_error(RejectedError(f"this FlowProcessor {reason}"))
        elif upstream is not None:
            self._connect(inner, upstream)

    # -- upstream ----------------------------------------------------------------------------------------------

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Take the one upstream; a further one is cancelled (2.5), and so is one that comes after the end.

        Args:
            subscription: The link to the upstream.

        Raises:
            TypeError: `subscription` is None (2.13).
        """
        not_none("on_subscribe", subscription)
        with self._lock:
            unwanted = self._upstream is not None or self._over
            if self._upstream is None:
                self._upstream = subscription
            inner = self._inner
        if unwanted:
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
            _signal(inner, end)

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
        self._ends((error,))

    def on_complete(self) -> None:
        """Pass the end on at once, or as soon as there is a subscriber and an upstream."""
        self._ends((None,))

    def _ends(self, end: tuple[BaseException | None]) -> None:
        with self._lock:
            over = self._over
            if not (over or self._connected):
                self._end = self._end or end
                return
            inner = self._inner
        if over:
            _error_dropped(end)
            return
        assert inner is not None
        _signal(inner, end)


def _signal(inner: Subscriber[Any], end: tuple[BaseException | None]) -> None:
    (error,) = end
    if error is None:
        inner.on_complete()
    else:
        inner.on_error(error)


def _error_dropped(end: tuple[BaseException | None]) -> None:
    (error,) = end
    if error is not None:
        dropping.error_dropped("it came to a FlowProcessor that was over", error)


class _Entry(Generic[A]):
    """The elements that come in, as a publisher."""

    def __init__(self, processor: FlowProcessor[A, Any]) -> None:
        self._processor = processor

    def subscribe(self, subscriber: Subscriber[A], /) -> None:
        self._processor._enter(subscriber)


class _Nothing:
    """The subscription of a subscriber that is refused."""

    def __init__(self) -> None:
        self.cancelled = False  # any thread sets it; the one that refuses reads it

    def request(self, n: int, /) -> None:
        pass

    def cancel(self) -> None:
        self.cancelled = True
