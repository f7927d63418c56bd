"""One subscription to the source for many subscribers.

Elements go through a multicaster: at most `capacity` (1 or more) wait for each subscriber, and the source is asked for
no more than the slowest of them has room for. Subscribers without an executor are called on the source's thread. With
`subscribe_on`, the subscriber that connects subscribes to the source on its executor.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from reactive_runtime._core.queues.multicaster import Multicaster, Reader
from reactive_runtime._core.runtime import activity, primitives
from reactive_runtime._core.runtime.arguments import at_least
from reactive_runtime._core.sources.core_flow import Use, uses_of
from reactive_runtime._core.sources.flow_source import Hot
from reactive_runtime._operators.flow_base import FlowBase, connectable_of, flow_of

if TYPE_CHECKING:
    from reactive_runtime._flow import ConnectableFlow, Flow

__all__ = ["ConnectableSource", "SharingOperators"]

T_co = TypeVar("T_co", covariant=True)

CAPACITY = 256


class SharingOperators(FlowBase[T_co]):
    """One subscription to the source for many subscribers."""

    __slots__ = ()

    def publish(self, *, capacity: int = CAPACITY) -> ConnectableFlow[T_co]:
        """A flow whose subscribers share one subscription to the source, which `connect()` makes.

        A subscriber gets what comes from then on, and nothing before `connect`. When the source has ended, a further
        `connect` begins anew.

        Args:
            capacity: How many elements may wait for each subscriber, 1 or more.

        Returns:
            A `ConnectableFlow`. All its subscribers get the end, or the error, of the source.

        Raises:
            TypeError: `capacity` is not an int.
            ValueError: `capacity` is below 1.

        Demand:
            The source is asked for as much as the slowest subscriber has room for; while there is none, for nothing.

        Cancellation:
            A subscriber that cancels leaves the others alone. The handle that `connect` returns cancels the source.

        Thread:
            `connect` subscribes to the source, on the thread that calls it. Subscribers without an executor are called
            on the source's thread, or on the thread that requests what waits.

        Example:
            >>> from reactive_runtime import Flow
            >>> numbers = Flow.range(2).publish()
            >>> a = numbers.subscribe(lambda n: print("a", n))
            >>> b = numbers.subscribe(lambda n: print("b", n))
            >>> _ = numbers.connect()
            a 0
            b 0
            a 1
            b 1

        Origin:
            `publish` of Rx.
        """
        at_least("publish", "capacity", 1, capacity)
        return connectable_of(ConnectableSource(f"{self} publish()", self, lambda: Multicaster(capacity, anew=True)))

    def replay(self, n: int, *, capacity: int = CAPACITY) -> ConnectableFlow[T_co]:
        """As `publish`, and a subscriber gets the last `n` elements first, also after the end.

        A further `connect` after the end begins anew, with nothing to replay. So does one after the connection was
        cancelled.

        Args:
            n: How many elements are kept for later subscribers, 0 or more. They take no room of `capacity`.
            capacity: How many other elements may wait for each subscriber, 1 or more.

        Returns:
            A `ConnectableFlow`. All its subscribers get the end, or the error, of the source, also those that come
            after it.

        Raises:
            TypeError: `n` or `capacity` is not an int.
            ValueError: `n` is below 0, or `capacity` is below 1.

        Demand:
            The source is asked for as much as the slowest subscriber has room for. While there is none, it goes on for
            up to `capacity` elements.

        Cancellation:
            A subscriber that cancels leaves the others alone. The handle that `connect` returns cancels the source;
            then what is kept, and no subscriber has had, goes to the hook. It goes there at a further `connect`, too.
            An element that falls out of the last `n` goes nowhere.

        Thread:
            `connect` subscribes to the source, on the thread that calls it. Subscribers without an executor are called
            on the source's thread, or on the thread that requests what waits.

        Example:
            >>> from reactive_runtime import Flow
            >>> numbers = Flow.range(5).replay(2)
            >>> _ = numbers.connect()
            >>> _ = numbers.subscribe(print)
            3
            4

        Origin:
            `replay` of Rx, bounded.
        """
        at_least("replay", "n", 0, n)
        at_least("replay", "capacity", 1, capacity)
        return connectable_of(
            ConnectableSource(f"{self} replay({n})", self, lambda: Multicaster(capacity, n, waits=False), keeps=True)
        )

    def share(self, *, capacity: int = CAPACITY) -> Flow[T_co]:
        """One subscription to the source for all subscribers: `publish().ref_count()`.

        The first subscriber connects. One that comes after the end begins anew.

        Args:
            capacity: How many elements may wait for each subscriber, 1 or more.

        Returns:
            A flow whose subscribers get what comes from their subscription on, and the end, or the error, of the
            source.

        Raises:
            TypeError: `capacity` is not an int.
            ValueError: `capacity` is below 1.

        Demand:
            The source is asked for as much as the slowest subscriber has room for.

        Cancellation:
            A subscriber that cancels leaves the others alone. The last one cancels the source.

        Thread:
            The source is subscribed to on the thread of the first subscriber; with `subscribe_on`, on its executor.
            Subscribers without an executor are called on the source's thread, or on the thread that requests what
            waits.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(3).share())
            [0, 1, 2]

        Origin:
            `share` of Rx.
        """
        at_least("share", "capacity", 1, capacity)
        return ConnectableSource(f"{self} share()", self, lambda: Multicaster(capacity, anew=True)).ref_count(1)

    def cache(self) -> Flow[T_co]:
        """The source is run once, for the first subscriber, and all subscribers get all of its elements.

        It holds every element: for finite flows.

        Returns:
            A flow whose subscribers get every element, and the end, or the error, of the source, however late they
            come.

        Demand:
            The source is asked without bound. Each subscriber reads at its own pace, and none holds up another.

        Cancellation:
            Never reaches the source, which goes on also when it has no subscriber left.

        Thread:
            The source is subscribed to on the thread of the first subscriber; with `subscribe_on`, on its executor.
            Subscribers without an executor are called on the source's thread, or on the thread that requests what
            waits.

        Example:
            >>> from reactive_runtime import Flow
            >>> rows = Flow.range(2).do_on_next(lambda n: print("reading", n)).cache()
            >>> list(rows), list(rows)
            reading 0
            reading 1
            ([0, 1], [0, 1])

        Origin:
            `cache` of Rx.
        """
        connectable = ConnectableSource(
            f"{self} cache()", self, lambda: Multicaster(None, None, waits=False), keeps=True
        )
        return connectable.ref_count(1, stays=True)


class _Connection:
    """One subscription to the source, before or after `connect` makes it, and the multicaster that gets its signals."""

    __slots__ = ("counted", "entered", "made", "multicaster")

    def __init__(self, multicaster: Multicaster) -> None:
        self.multicaster: Multicaster = multicaster
        self.made: bool = False  # ConnectableSource._lock; a thread subscribes to the source, or has done so
        self.entered: int = 0  # ConnectableSource._lock; how many subscribers of `ref_count` have come, or are coming
        self.counted: int = 0  # ConnectableSource._lock; 0 <= counted <= entered; how many have their subscription

    def end(self, *, forgets: bool) -> None:
        """Cancel the source. `forgets`: no later subscriber belongs to this connection."""
        try:
            self.multicaster.disconnect()
        finally:
            if forgets:
                self.multicaster.forget()


class ConnectableSource:
    """A source, and its present connection.

        waiting ──connect──▶ connected ──end──▶ over
           ▲                     │                │
           └─────disconnect──────┘                │
           └──connect, or, unless it `keeps`, the next subscriber

    Each arrow to `waiting` is a new connection: present subscribers stay with the old one, and count there.
    """

    def __init__(
        self,
        title: str,
        source: FlowBase[Any],
        make: Callable[[], Multicaster],
        *,
        keeps: bool = False,
    ) -> None:
        """`keeps`: after the end new subscribers get the elements and the end there were; otherwise they begin anew."""
        self.title = title
        self.source = source
        self.beside: tuple[Use, ...] = uses_of(source)
        self.make = make
        self.keeps = keeps
        self._lock = primitives.Lock()
        self._connection = _Connection(make())  # _lock

    def _current(self) -> _Connection:
        """Return the connection of a new subscriber. The caller holds the lock."""
        if not self.keeps and self._connection.multicaster.over():
            self._connection = _Connection(self.make())
        return self._connection

    def flow_source(self) -> Hot[Any]:
        """Make the source of a flow of its elements."""
        return Hot(self.title, self.enter, beside=self.beside, ahead=self.enter)

    def enter(self, ahead: int = 0) -> Reader:
        """Let one more subscriber in; see `Multicaster.enter`."""
        with self._lock:
            return self._current().multicaster.enter(ahead)

    def connect(self) -> Callable[[], None]:
        """Subscribe to the source, unless a connection goes on; return a function that ends the connection."""
        with self._lock:
            before = self._connection if self._connection.multicaster.over() else None
            if before is not None:
                self._connection = _Connection(self.make())
            connection = self._connection
            first, connection.made = not connection.made, True
        if before is not None:
            before.multicaster.forget()
        if first:
            self._subscribe(connection.multicaster)
        return lambda: self.disconnect(connection)

    def _subscribe(self, multicaster: Multicaster) -> None:
        try:
            if activity.in_use:
                activity.spreading(self.source._run, multicaster)
            else:
                self.source._run(multicaster)
        except BaseException as error:  # 1.9: only an exception that nothing may swallow comes here
            multicaster.abandoned(error)
            raise

    def disconnect(self, connection: _Connection) -> None:
        """Cancel the source, unless it has ended; its present subscribers get no more elements, and no end."""
        with self._lock:
            replaced = self._replace(connection)
        connection.end(forgets=replaced)

    def _replace(self, connection: _Connection) -> bool:
        """Give later subscribers another connection, unless this one has ended. The caller holds the lock."""
        replaced = self._connection is connection and not connection.multicaster.over()
        if replaced:
            self._connection = _Connection(self.make())
        return replaced

    def ref_count(self, n: int, *, stays: bool = False) -> Flow[Any]:
        """Make a flow that connects with the n-th subscriber, and disconnects, unless it `stays`, after the last."""
        counting = partial(self._counting, n, stays=stays)
        return flow_of(Hot(self.title, partial(counting, 0), beside=self.beside, ahead=counting))

    def _counting(self, n: int, ahead: int, *, stays: bool) -> Reader:
        with self._lock:
            connection = self._current()
            connection.entered += 1
            reader = connection.multicaster.enter(ahead)
        counted = _Counted(self, connection, n, stays=stays)
        reader.on_connect, reader.on_gone = counted.come, counted.leave
        return reader


class _Counted:
    """One subscriber of `ref_count`.

    It counts towards the connection once it has its subscription, so a subscriber that cancels inside `on_subscribe`
    connects nothing. It keeps the connection that it entered: the subscriber before may leave in the meantime.
    """

    __slots__ = ("_connectable", "_connection", "_context", "_here", "_n", "_over", "_stays")

    def __init__(self, connectable: ConnectableSource, connection: _Connection, n: int, *, stays: bool) -> None:
        self._connectable = connectable
        self._connection = connection
        self._context = copy_context()  # the source runs in the context of the subscriber that connects, on any thread
        self._n = n
        self._stays = stays
        self._here = False  # ConnectableSource._lock
        self._over = False  # ConnectableSource._lock; the subscriber has left

    def come(self) -> None:
        """Count a subscriber that has its subscription; the n-th connects."""
        connectable, connection = self._connectable, self._connection
        with connectable._lock:
            if self._over:
                return
            self._here = True
            connection.counted += 1
            first = connection.counted >= self._n and not connection.made and connectable._connection is connection
            if first:
                connection.made = True
        if first:
            self._context.run(connectable._subscribe, connection.multicaster)
        connection.multicaster.more_room()

    def leave(self) -> None:
        """Let a subscriber go that has cancelled, or has had the end; the last one disconnects."""
        connectable, connection = self._connectable, self._connection
        with connectable._lock:
            self._over = True
            connection.entered -= 1
            connection.counted -= self._here
            last = connection.made and not connection.entered and not self._stays
            replaced = last and connectable._replace(connection)  # under the same lock: no subscriber comes in between
        if last:
            connection.end(forgets=replaced)
