"""One subscription to the source for many subscribers.

Elements go through a hub: at most `capacity` (1 or more) wait for each subscriber, and the source is asked for no more
than the slowest of them has room for. Subscribers without an executor are called on the source's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from reactive_runtime._core import primitives
from reactive_runtime._core.arguments import at_least
from reactive_runtime._core.hub import Hub
from reactive_runtime._core.origin import Hot, connectable_of, flow_of
from reactive_runtime._core.outbox import Outbox

if TYPE_CHECKING:
    from reactive_runtime.flow import ConnectableFlow, Flow

__all__ = ["Line", "cache", "publish", "replay", "share"]

T = TypeVar("T")

CAPACITY = 256


def publish(source: Flow[T], capacity: int = CAPACITY) -> ConnectableFlow[T]:
    """A flow whose subscribers share one subscription to the source, which `connect()` makes.

    A subscriber gets what comes from then on; before `connect`, nothing. When the source has ended, a further `connect`
    begins anew. Origin: `publish` of Rx.

    >>> from reactive_runtime import Flow
    >>> numbers = Flow.range(2).publish()
    >>> a = numbers.subscribe(lambda n: print("a", n))
    >>> b = numbers.subscribe(lambda n: print("b", n))
    >>> _ = numbers.connect()
    a 0
    b 0
    a 1
    b 1
    """
    at_least("publish", "capacity", 1, capacity)
    return connectable_of(Line(f"{source} publish()", source, lambda: Hub(capacity)))


def replay(source: Flow[T], n: int, /, capacity: int = CAPACITY) -> ConnectableFlow[T]:
    """As `publish`, and a subscriber gets the last `n` elements first (0 or more), also after the end.

    Origin: `replay` of Rx, bounded.

    >>> from reactive_runtime import Flow
    >>> numbers = Flow.range(5).replay(2)
    >>> _ = numbers.connect()
    >>> _ = numbers.subscribe(print)
    3
    4
    """
    at_least("replay", "n", 0, n)
    at_least("replay", "capacity", 1, capacity)
    return connectable_of(Line(f"{source} replay({n})", source, lambda: Hub(capacity, n, waits=False), keeps=True))


def share(source: Flow[T], capacity: int = CAPACITY) -> Flow[T]:
    """`publish().ref_count()`: the first subscriber connects, and when the last one has gone the source is cancelled.

    Origin: `share` of Rx.

    >>> from reactive_runtime import Flow
    >>> list(Flow.range(3).share())
    [0, 1, 2]
    """
    at_least("share", "capacity", 1, capacity)
    return Line(f"{source} share()", source, lambda: Hub(capacity)).ref_count(1)


def cache(source: Flow[T], /) -> Flow[T]:
    """The source is run once, for the first subscriber; all get all of its elements, however late they come.

    Holds everything: for finite flows. Runs on when its subscribers have gone. Origin: `cache` of Rx.

    >>> from reactive_runtime import Flow
    >>> rows = Flow.range(2).do_on_next(lambda n: print("reading", n)).cache()
    >>> list(rows), list(rows)
    reading 0
    reading 1
    ([0, 1], [0, 1])
    """
    line = Line(f"{source} cache()", source, lambda: Hub(CAPACITY, None, waits=False), keeps=True)
    return line.ref_count(1, stays=True)


class Line:
    """A source, and the hub that it is, or will be, connected to."""

    def __init__(
        self,
        title: str,
        source: Flow[Any],
        make: Callable[[], Hub],
        *,
        keeps: bool = False,
    ) -> None:
        """`keeps`: what has ended stays as it is; otherwise a new subscriber, or `connect`, begins anew."""
        self.title = title
        self.source = source
        self.make = make
        self.keeps = keeps
        self._lock = primitives.Lock()
        self._hub = make()  # _lock
        self._connected = False  # _lock; that hub has the source
        self._counted = 0  # _lock; subscribers of `ref_count` that are there

    def _current(self) -> Hub:
        """The hub that counts now. Called with the lock held."""
        if self._hub.over() and not self.keeps:
            self._hub, self._connected = self.make(), False
        return self._hub

    def origin(self) -> Hot[Any]:
        """Where the flow of its elements begins."""
        return Hot(self.title, self.enter, source=self.source)

    def enter(self) -> Outbox:
        """One more subscriber."""
        with self._lock:
            hub = self._current()
        return hub.enter()

    def connect(self) -> Callable[[], None]:
        """Subscribe the hub to the source, unless it is; what ends that."""
        with self._lock:
            hub = self._current()
            first, self._connected = not self._connected, True
        if first:
            self.source._run(hub)
        return lambda: self.disconnect(hub)

    def disconnect(self, hub: Hub) -> None:
        """Cancel the source; who is still there will get nothing more, and no end."""
        with self._lock:
            if self._hub is hub and not self.keeps:
                self._hub, self._connected = self.make(), False
        hub.disconnect()

    def ref_count(self, n: int, *, stays: bool = False) -> Flow[Any]:
        """Connect with the n-th subscriber; disconnect, unless it `stays`, when none is left."""
        return flow_of(Hot(self.title, lambda: self._count(n, stays=stays), source=self.source))

    def _count(self, n: int, *, stays: bool) -> Outbox:
        with self._lock:
            hub = self._current()
            self._counted += 1
            enough = self._counted >= n
        outbox = hub.enter()
        ready, leave = outbox.on_connect, outbox.on_gone

        def connected() -> None:
            ready()
            if enough:
                self.connect()

        def gone() -> None:
            leave()
            with self._lock:
                self._counted -= 1
                last = not self._counted
            if last and not stays:
                self.disconnect(hub)

        outbox.on_connect, outbox.on_gone = connected, gone
        return outbox
