"""`partition` and `balance`: several flows share one subscription, and each element goes to one of them.

    source ──▶ deal ──▶ line ──▶ outlet      partition: a line for each outlet
                   └──▶ line ──▶ outlet

    source ──▶ deal ──▶ line ──▶ outlet      balance: one line; the next outlet with demand takes its first element
                            └──▶ outlet

A *deal* is one subscription to the source, shared by one subscriber of each flow. Each of these subscribers has an
*outlet*, which takes its elements from a *line* (a queue). The flows exist before their subscribers, so a *table*
(`_Table`) puts the next subscriber of each flow into the same deal. A deal begins when each flow has a subscriber in
it, or has had one. Then a drain of its own runs the source and puts elements into the lines. The drains of the
subscribers take them out.

One lock of the deal owns its lines. An outlet that finds its line empty is *idle*. Each element wakes one idle outlet,
so the cost of an element does not grow with the number of outlets. That outlet takes the element. If it has no demand
(`run_without_demand`) or has ended, it wakes the next idle outlet instead. So no element waits while an outlet is idle.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from reactive_runtime._core.drains import trampoline
from reactive_runtime._core.drains.combinator import END, PENDING, Combinator, Elements
from reactive_runtime._core.drains.drain_context import DrainContext, Waiter
from reactive_runtime._core.drains.ownership import with_lock
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import assembly_location
from reactive_runtime._core.failures.exits import each
from reactive_runtime._core.failures.failure import Failure, Spread
from reactive_runtime._core.fusion.step import describe
from reactive_runtime._core.fusion.subscription import PulledSubscription
from reactive_runtime._core.queues.multicaster import Multicaster
from reactive_runtime._core.queues.ready_queue import FilledQueue
from reactive_runtime._core.runtime import activity, primitives
from reactive_runtime._core.runtime.arguments import PREFETCH, at_least, check_callable
from reactive_runtime._core.sources.core_flow import CoreFlow, Gate, uses_of
from reactive_runtime._core.sources.flow_source import LONG_TITLE, Hot
from reactive_runtime._core.sources.pollable import paced
from reactive_runtime._operators.flow_base import FlowBase, flow_of
from reactive_runtime._operators.groups.group_flow import SourceEnd

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["DealingOperators"]

T_co = TypeVar("T_co", covariant=True)

BATCH: Final = 256
"""How many elements the source's drain deals out before it looks for notes."""


class DealingOperators(FlowBase[T_co]):
    """Operators that deal the elements of one subscription out to several flows."""

    __slots__ = ()

    def partition(
        self, predicate: Callable[[T_co], object], *, prefetch: int = PREFETCH
    ) -> tuple[Flow[T_co], Flow[T_co]]:
        """Two flows: the elements for which `predicate(element)` is true, and the others.

        Both flows share one subscription to the source, which begins when each has a subscriber; the n-th subscriber of
        one flow shares it with the n-th of the other. A subscriber of one flow alone gets nothing: if you don't need
        the other flow, subscribe to it behind this one, and cancel that subscription. `group_by` makes a flow for each
        key that comes.

        Args:
            predicate: Called once for each element.
            prefetch: How many elements may wait for each of the two, 1 or more.

        Returns:
            A pair of flows. Both complete, or fail, as the source does. They fail with the error that `predicate`
            raises.

        Raises:
            TypeError: `predicate` cannot be called, or `prefetch` is not an int.
            ValueError: `prefetch` is below 1.

        Demand:
            The operator requests an element while each of the two flows has room for one, so the slower flow holds up
            the faster. An operator that reads one flow while the other waits (`concat`, `zip`) needs a `prefetch` that
            holds the elements that wait. From a source with an executor, or of another library, the operator requests
            `prefetch` elements ahead.

        Cancellation:
            If one flow is cancelled, the hook gets its elements from then on, and the other flow goes on. If both are
            cancelled, the operator cancels the source. A scope that drains one flow leaves the other alone too; one
            that drains both stops the source, and both flows deliver the elements in flight.

        Thread:
            The source and `predicate` run on the thread that makes room for elements; with `subscribe_on` before
            `partition`, the source runs on that executor, and `predicate` there or on the thread that requests. An
            element comes on the thread of `predicate`; one that waited for demand, on the thread that requests it. With
            `subscribe_on` behind `partition`, elements come on that executor.

        Example:
            >>> from reactive_runtime import Flow
            >>> odd, even = Flow.range(4).partition(lambda n: n % 2)
            >>> a = odd.subscribe(lambda n: print("odd", n))
            >>> b = even.subscribe(lambda n: print("even", n))
            even 0
            odd 1
            even 2
            odd 3

        Origin:
            `partition` of RxPY.
        """
        check_callable("partition", "predicate", predicate)
        at_least("partition", "prefetch", 1, prefetch)
        title = f"partition({describe(predicate)})"
        wanted, others = _flows(self, title, 2, 2, prefetch, lambda element: 0 if predicate(element) else 1)
        return wanted, others

    def balance(self, n: int, *, prefetch: int = PREFETCH) -> tuple[Flow[T_co], ...]:
        """`n` flows for as many workers: each element goes to one that has demand.

        All flows share one subscription to the source, which begins when each has a subscriber; the k-th subscribers of
        all flows share it. A slower worker gets fewer elements. To have the results in one flow, use `parallel`, or
        `map_parallel` for one function.

        Args:
            n: How many flows; 1 or more.
            prefetch: How many elements may wait, for all of them together; 1 or more.

        Returns:
            The flows. Each delivers the elements that wait, and then completes, or fails, as the source does.

        Raises:
            TypeError: `n` or `prefetch` is not an int.
            ValueError: `n` or `prefetch` is below 1.

        Demand:
            The operator requests an element while there is room for one more to wait. From a source with an executor,
            or of another library, it requests `prefetch` elements ahead. The flow that has waited longest gets the next
            element. A worker behind `publish_on` may take as many elements at once as `publish_on` requests ahead.

        Cancellation:
            If one flow is cancelled, the others get the elements that wait. If all are cancelled, the hook gets those
            elements, and the operator cancels the source.

        Thread:
            The source runs on the thread that makes room for elements; with `subscribe_on` before `balance`, on that
            executor. An element comes on the same thread; one that waited for demand, on the thread that requests it.
            With `subscribe_on` behind `balance`, elements come on that executor.

        Example:
            >>> from reactive_runtime import Flow
            >>> first, second = Flow.range(4).balance(2)
            >>> a = first.subscribe(lambda n: print("first", n))
            >>> b = second.subscribe(lambda n: print("second", n))
            first 0
            second 1
            first 2
            second 3

        Origin:
            `Balance` of Akka and Pekko Streams.
        """
        at_least("balance", "n", 1, n)
        at_least("balance", "prefetch", 1, prefetch)
        return _flows(self, f"balance({n})", n, 1, prefetch, None)


def _flows(
    source: FlowBase[Any], title: str, n: int, lines: int, prefetch: int, choose: Callable[[Any], int] | None
) -> tuple[Flow[Any], ...]:
    location = assembly_location()

    def make() -> _Deal:
        deal = _Deal(source, table, [_Line(n // lines) for _ in range(lines)], prefetch, choose)
        deal.title, deal.location = title, location
        return deal

    table = _Table(n, make)
    above = str(source)
    above = above if len(above) <= LONG_TITLE else f"… {above[-LONG_TITLE:]}"  # twice in the title of their merge
    shown, beside = f"{above} {title}", uses_of(source)
    return tuple(
        flow_of(Hot(shown, partial(table.enter, place), beside=beside, enter_gated=partial(table.enter, place)))
        for place in range(n)
    )


class _Table:
    """The subscribers of all flows meet here. Any thread; its lock owns which deals have which subscribers."""

    def __init__(self, n: int, make: Callable[[], _Deal]) -> None:
        self._n = n
        self._make = make
        self._lock = primitives.Lock()
        self._waiting: list[_Deal] = []  # _lock; deals that lack a subscriber, the oldest first

    def enter(self, place: int, gate: Gate | None = None) -> _Outlet:
        """Let one more subscriber of that flow in. `gate`: the one that it is behind, if any."""
        with self._lock:
            deal = next((deal for deal in self._waiting if place not in deal.entered), None)
            if deal is None:
                deal = self._make()
                self._waiting.append(deal)
            deal.entered.add(place)
            if len(deal.entered) == self._n:
                self._waiting.remove(deal)
            deal.outlets[place].gate = gate
        return deal.outlets[place]

    def came(self, outlet: _Outlet) -> None:
        """A subscriber has its subscription: the last one of a deal begins it."""
        deal = outlet.deal
        with self._lock:
            outlet.came = True
            deal.came += 1
            begins = deal.came == self._n
        if begins:
            self._begin(deal)

    def left(self, outlet: _Outlet) -> None:
        """A subscriber has left. If it never came, it counts as come, and the deal may begin."""
        deal = outlet.deal
        with self._lock:
            deal.left += 1
            begins = not outlet.came and deal.came == self._n - 1
            deal.came += not outlet.came
            outlet.came = True
            if deal in self._waiting and deal.left == len(deal.entered):
                self._waiting.remove(deal)
        if begins:
            trampoline.below(partial(self._begin, deal))
        else:
            self.look(outlet)

    def gates_of(self, outlets: list[_Outlet]) -> list[Gate | None]:
        """The gates that they are behind; None for one without, or one that has had no subscriber."""
        with self._lock:
            return [outlet.gate for outlet in outlets]

    def gate_of(self, deal: _Deal) -> Gate | None:
        """The gate at the source: shut by the deal, when the gates of all its flows are."""
        with self._lock:
            return deal.gate

    def begun(self, deal: _Deal) -> PulledSubscription | None:
        """The drain of the source, once there is one."""
        with self._lock:
            return deal.begun

    def look(self, outlet: _Outlet) -> None:
        """Let the source's drain see that an outlet takes no more elements; the last one cancels it.

        Later: the source may run for long, and the operator that closes this outlet may close the others next.
        """
        deal = outlet.deal
        drain, below = self.begun(deal), outlet.drain()
        if drain is None:
            return
        if not deal.is_wanted():
            drain.cancel()
        elif below is not None and not below.stopped:
            below.later(drain.wake)
        else:
            trampoline.below(drain.wake)

    def _begin(self, deal: _Deal) -> None:
        """Subscribe to the source, in the context of a subscriber that is still there."""
        drains = (outlet.drain() for outlet in deal.outlets if not outlet.gone())
        context = next((drain.context for drain in drains if drain is not None), None)
        if context is not None:
            context.copy().run(self._begin_here, deal)

    def _begin_here(self, deal: _Deal) -> None:
        drain = activity.spreading(partial(PulledSubscription, SourceEnd(deal)), deal)
        drain.waiter = _Waiters(deal.outlets)
        with self._lock:
            gate = next((outlet.gate for outlet in deal.outlets if outlet.gate is not None), None)
            deal.gate = None if gate is None else gate.another(deal.is_shut_below)
            deal.begun = drain
        if not deal.is_wanted():
            drain.cancel()  # all have gone in the meantime, and have found no drain
        drain.start()


class _Line:
    """Elements that wait for the first of its outlets that takes them. The deal's lock owns all of it."""

    __slots__ = ("idle", "items", "open", "taking")

    def __init__(self, outlets: int) -> None:
        self.items: deque[Any] = deque()
        self.idle: OrderedDict[_Outlet, None] = OrderedDict()  # in the order in which they found nothing
        self.open: int = outlets  # how many outlets are not closed
        self.taking: int = outlets  # how many of them take elements that come later

    def next_idle(self) -> list[_Outlet]:
        """The outlet to wake for an element that waits, if there are both."""
        return [self.idle.popitem(last=False)[0]] if self.items and self.idle else []


class _Outlet(FilledQueue):
    """The pollable source of one subscriber."""

    __slots__ = ("_enough", "_line", "_on_drain", "_paced", "came", "deal", "gate")

    queues = True

    def __init__(self, deal: _Deal, line: _Line) -> None:
        super().__init__(line.items)
        self._lock = deal.lock  # the items are those of the line
        self.heard = ()  # until a subscriber comes
        self.deal: _Deal = deal
        self._line = line
        self._enough = False  # lock; it takes no element that comes later
        self.came: bool = False  # the table's lock; its subscriber has come, or has left before that
        self.gate: Gate | None = None  # the table's lock; set once, when its subscriber comes
        self._on_drain = False  # set once, by attach; it comes on the drain's executor
        self._paced = False  # set once, before it is opened

    def what(self) -> str:
        deal = self.deal
        return f"`{deal.title}`{'' if deal.table.begun(deal) else ', another flow of which has had no subscriber'}"

    # -- the pollable source: the owner of the subscriber's drain ------------------------------------------------------

    def attach(self, drain: DrainContext) -> None:
        super().attach(drain)
        self._on_drain = drain.executor is not None

    def connect(self) -> None:
        if not self._on_drain:
            self._come()

    def _come(self) -> None:
        drain = self.drain()
        if drain is not None and not drain.stopped:  # cancelled inside `on_subscribe`: `close` reports that
            self.deal.table.came(self)

    def pace(self) -> None:
        self._paced = True

    def relays(self) -> bool:
        return False  # the deal requests what there is room for

    def open(self) -> Iterator[Any]:
        drain = self.drain()
        assert drain is not None
        if self._on_drain:
            drain.later(self._come)
        return paced(self, drain) if self._paced else self

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        deal, line = self.deal, self._line
        element, short, last = None, False, False
        with self._lock:
            ended = self._is_over()
            failure = self._failure
            if not ended and not line.items:
                line.idle[self] = None
                return PENDING
            if not ended:
                element = line.items.popleft()
                short, deal.short = deal.short, False
                last = self._over and not line.items
        if ended:
            raise self._at_end(failure)
        if self._drain is not None and (short or last):  # later: this element goes first
            self._drain.later(deal.wake_outlets if last else deal.make_room)
        return element

    def end(self, failure: Failure | None) -> None:
        """End behind the elements that wait. The source's drain calls it."""
        with self._lock:
            self._end(failure)

    @with_lock
    def _is_over(self) -> bool:
        """Whether it gives no further element: none waits, or it takes no more, and others take those that wait."""
        return self._over and (not self._line.items or (self._enough and self._line.taking > 0))

    def exhausted(self) -> bool:
        with self._lock:
            return self._is_over()

    def notify_when_ready(self, ready: list[Any], who: Any) -> bool:
        parked = super().notify_when_ready(ready, who)
        if parked:
            with self._lock:
                self._line.idle[self] = None  # it may have been woken for an element that another has taken since
                missed = self._line.next_idle()
            for outlet in missed:
                outlet.wake()
        return parked

    def run_without_demand(self) -> None:
        with self._lock:
            others = self._line.next_idle()
        for outlet in others:
            outlet.wake()

    def ask_no_more(self) -> bool:
        if self.deal.stops(self):
            return True  # what is under way comes, and the source's end behind it
        with self._lock:
            self._has_enough()
            self._end(None)
        self.deal.table.look(self)
        return True

    @with_lock
    def has_enough(self) -> bool:
        """Whether it takes no element that comes later."""
        return self._enough

    @with_lock
    def _has_enough(self) -> None:
        self._line.taking -= not self._enough
        self._enough = True

    def close(self) -> None:
        line = self._line
        with self._lock:
            self._has_enough()
            self._closed = True
            line.open -= 1
            line.idle.pop(self, None)
            left = [] if line.open else list(line.items)
            if not line.open:
                line.items.clear()
            failure, others = self._failure, line.next_idle()
        each(
            [
                partial(self._dropped, left, failure),
                *(outlet.wake for outlet in others),
                partial(self.deal.table.left, self),
            ]
        )


class _Waiters:
    """The sinks that wait for a flow of one deal, but for those behind further hot sources. Any thread."""

    def __init__(self, outlets: list[_Outlet]) -> None:
        self.outlets = outlets

    def begins(self, source: CoreFlow[Any], operator: str) -> None:
        """See `Waiter`."""
        for waiter in self._waiters():
            waiter.begins(source, operator)

    def stands_for(self, waiter: Waiter) -> bool:
        """See `Waiter`."""
        return any(one.stands_for(waiter) for one in self._waiters())

    def _waiters(self) -> list[Waiter]:
        drains = [drain for outlet in self.outlets if (drain := outlet.drain()) is not None]
        waiters = [drain.waiter for drain in drains]
        return [one for one in waiters if one is not None and not isinstance(one, Multicaster | _Waiters)]


class _Deal(Combinator):
    """The source's side: its drain signals to no subscriber, but puts the elements into lines."""

    def __init__(
        self,
        source: FlowBase[Any],
        table: _Table,
        lines: list[_Line],
        prefetch: int,
        choose: Callable[[Any], int] | None,
    ) -> None:
        super().__init__()
        self.source = source
        self.table = table
        self.prefetch = prefetch
        self.choose = choose
        self.lock = primitives.Lock()
        self.lines = lines  # lock
        self.short = False  # lock; there was no room, and no outlet has made some since
        self.outlets = [_Outlet(self, line) for line in lines for _ in range(line.taking)]
        self.entered: set[int] = set()  # the table's lock; the flows that have had a subscriber
        self.came = 0  # the table's lock; see `_Outlet.came`
        self.left = 0  # the table's lock; subscribers that have gone
        self.begun: PulledSubscription | None = None  # the table's lock; set once

    def is_shut_below(self) -> bool:
        """Whether the gates of all outlets that take further elements are shut. Any thread, without a lock."""
        with self.lock:
            takers = [outlet for outlet in self.outlets if not outlet.has_enough()]
        return all(gate is not None and gate.is_shut() for gate in self.table.gates_of(takers))

    def stops(self, outlet: _Outlet) -> bool:
        """Stop the source, if all outlets that take further elements ask for no more. Any thread, without a lock.

        It is so, though some have not asked yet: a scope shuts the gates of all its flows before it wakes one.
        """
        at_source = self.table.gate_of(self)
        if at_source is None or not self.is_shut_below():
            return False
        below = outlet.drain()
        if below is not None and not below.stopped:
            below.later(at_source.shut)  # later: the source may run for long
        else:
            trampoline.below(at_source.shut)
        return True

    def is_wanted(self) -> bool:
        """Whether an outlet takes further elements. Any thread."""
        with self.lock:
            return any(line.taking for line in self.lines)

    def make_room(self) -> None:
        """Wake the source's drain: an outlet has taken an element."""
        self.drain.wake()

    def wake_outlets(self) -> None:
        """Wake all subscribers, for the end. Any thread."""
        each([outlet.wake for outlet in self.outlets])

    # -- the source's drain ------------------------------------------------------------------------------------

    def elements(self) -> Elements:
        inner = self.inner(self.source, self.prefetch)
        dealt = 0
        while True:
            news = inner.next_signal() if self._has_room() else inner.peek_end()
            if news is END:
                return
            if news is not PENDING:
                self._deal(news)
                dealt += 1
                if dealt % BATCH:
                    continue
                self.drain.wake()
            yield PENDING

    def _has_room(self) -> bool:
        """Whether each line that any outlet takes from has room. If not, an outlet wakes the drain later."""
        with self.lock:
            self.short = any(line.taking and len(line.items) >= self.prefetch for line in self.lines)
            return not self.short

    def _deal(self, element: Any) -> None:
        """Put the element into its line, and wake an outlet for it."""
        number = 0 if self.choose is None else self.call(self.choose, element)
        line = self.lines[number]
        with self.lock:
            taken = line.taking > 0
            if taken:
                line.items.append(element)
            idle = line.next_idle()
        if not taken:
            heard = self.outlets[number].heard or self.heard
            dropping.elements_dropped(f"its flow of {self.title} was cancelled", [element], heard, wanted=True)
        for outlet in idle:
            outlet.wake()

    def finish(self, error: BaseException | None) -> None:
        """End all outlets with the source's drain."""
        spread = None if error is None else Spread()
        here = None if error is None else Failure(error, spread)  # holds the failure until all outlets have it
        for outlet in self.outlets:
            outlet.end(None if error is None else Failure(error, spread))
        self.wake_outlets()
        if here is not None:
            here.left(None)
