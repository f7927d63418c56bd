"""`bulkhead`: several flows share one limit of subscriptions at the same time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from reactive_runtime._core.drains.combinator import PENDING, Elements
from reactive_runtime._core.failures.error_carrier import carried
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import at_least
from reactive_runtime._core.sources.naming import instead
from reactive_runtime._operators.error_handling import Again
from reactive_runtime._operators.flow_base import FlowBase, combinator_flow
from reactive_runtime.errors import BulkheadFullError

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["Bulkhead", "BulkheadOperators"]

T_co = TypeVar("T_co", covariant=True)


class Bulkhead:
    """Limits how many subscriptions run at the same time; flows that use one resource share it.

    More subscriptions wait in a queue, and begin in the order in which they came.

    Args:
        limit: How many subscriptions are under way, at most; 1 or more.
        waiting: How many subscriptions may wait, 0 or more. Any further subscription fails with BulkheadFullError.

    Raises:
        TypeError: An argument is no int.
        ValueError: `limit` is below 1, or `waiting` is below 0.

    Example:
        >>> from reactive_runtime import Bulkhead
        >>> Bulkhead(4)
        <Bulkhead 0 of 4 under way, 0 waiting>
    """

    def __init__(self, limit: int, *, waiting: int = 256) -> None:
        self._limit = at_least("Bulkhead", "limit", 1, limit)
        self._most = at_least("Bulkhead", "waiting", 0, waiting)
        self._lock = primitives.Lock()
        self._under_way: set[_Ticket] = set()  # _lock
        # _lock; in the order in which they came. To find the first one of a dict, one passes all that have gone.
        self._waiting: OrderedDict[_Ticket, None] = OrderedDict()

    def _enter(self, ticket: _Ticket, operator: str) -> bool:
        """A subscription comes. True: it begins; False: it waits, and is woken. Raises BulkheadFullError."""
        with self._lock:
            if len(self._under_way) < self._limit:
                self._under_way.add(ticket)
                return True
            if len(self._waiting) < self._most:
                self._waiting[ticket] = None
                return False
        raise BulkheadFullError(
            f"{operator}: {self._limit} subscriptions are under way, and {self._most} wait: raise limit or waiting, or"
            " retry later"
        )

    def _begins(self, ticket: _Ticket) -> bool:
        with self._lock:
            return ticket in self._under_way

    def _leave(self, ticket: _Ticket) -> None:
        """A subscription is over, or waits no more. The next one is woken, without the lock."""
        following: _Ticket | None = None
        with self._lock:
            self._waiting.pop(ticket, None)
            if ticket in self._under_way:
                self._under_way.remove(ticket)
                if self._waiting:
                    following, _ = self._waiting.popitem(last=False)
                    self._under_way.add(following)
        if following is not None:
            following.wake()

    def __repr__(self) -> str:
        with self._lock:
            under_way, waiting = len(self._under_way), len(self._waiting)
        return f"<Bulkhead {under_way} of {self._limit} under way, {waiting} waiting>"


class _Ticket:
    """A subscription that is under way, or waits."""

    __slots__ = ("wake",)

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wake = wake


class BulkheadOperators(FlowBase[T_co]):
    """`bulkhead`: a limit of the subscriptions under way at the same time."""

    __slots__ = ()

    def bulkhead(self, bulkhead: Bulkhead) -> Flow[T_co]:
        """The source; a subscription waits until `bulkhead` has room for it.

        To limit the calls to a service, put `bulkhead` on the flow of each call, inside `flat_map` or
        `on_error_continue`. The `concurrency` of these operators limits one flow; a bulkhead limits all flows that
        share it, together.

        Args:
            bulkhead: The limit; all flows that use one resource share it.

        Returns:
            A flow of the elements of the source, with its end. It fails with BulkheadFullError if no more subscriptions
            may wait.

        Raises:
            TypeError: `bulkhead` is no Bulkhead.

        Demand:
            The subscription enters the bulkhead with the first demand. Demand passes to the source, exactly.

        Cancellation:
            Passes to the source, and makes room for the next subscription. A subscription that waits leaves the queue.

        Thread:
            A source without an executor runs on the thread that requests. After a wait, it runs on the thread that made
            room: where the subscription before it ended.

        Example:
            >>> from reactive_runtime import Bulkhead, Flow
            >>> database = Bulkhead(2)
            >>> def query(n):
            ...     return Flow.from_callable(lambda: n * n).bulkhead(database)
            >>> sorted(Flow.range(4).flat_map(query))
            [0, 1, 4, 9]

        Origin:
            `Bulkhead` of resilience4j.
        """
        if not isinstance(bulkhead, Bulkhead):
            raise TypeError(f"bulkhead: a Bulkhead is needed, not {instead(bulkhead)}")
        return combinator_flow("bulkhead()", lambda: _InBulkhead(self, bulkhead), self)


class _InBulkhead(Again):
    def __init__(self, source: FlowBase[Any], bulkhead: Bulkhead) -> None:
        super().__init__(source)
        self.bulkhead = bulkhead
        self.ticket: _Ticket | None = None  # the owner's

    def elements(self) -> Elements:
        yield from self.demand()
        ticket = _Ticket(self.drain.heard_from)
        try:
            begins = self.bulkhead._enter(ticket, self.title)
        except BulkheadFullError as error:
            raise self.fault(error)  # noqa: B904  # the same error
        self.ticket = ticket
        if not begins:
            while not self.bulkhead._begins(ticket):
                yield PENDING
            yield from self.home()
        failure = yield from self.run(self.source)
        self.make_room()
        if failure is not None:
            raise carried(failure)

    def make_room(self) -> None:
        """The subscription to the source is over."""
        ticket, self.ticket = self.ticket, None
        if ticket is not None:
            self.bulkhead._leave(ticket)

    def closed(self) -> None:
        super().closed()
        self.make_room()
