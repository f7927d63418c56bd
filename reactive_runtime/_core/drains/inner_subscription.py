"""One upstream of an asynchronous operator: how it is subscribed to, and how the drain of the operator pulls from it.

An upstream without an executor is not subscribed to: its pollable source hangs on the drain of the operator, and the
inner subscription iterates over it, through its steps. Any other publisher signals to a prefetch queue: with
`prefetch` elements of room; or, without, with exactly as much as the downstream still wants.

A signal from elsewhere must not wait for a user's code. A function, a source that takes its time, or a loop without
result may keep the owner of a drain. So an operator that hears from a clock, a switch or another publisher (`apart`)
gives each upstream that may keep the owner a drain of its own: a subscription and a prefetch queue. The thread that
asks for the elements of that upstream owns that drain only; the timer's thread owns the drain of the operator, signals,
and cancels. An upstream that costs nothing to pull, as a list does, or a queue, hangs on the drain of the operator.

There are six kinds of wiring (`_Here` and those below it). `_chosen` picks one from the plan of the upstream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.drains.ownership import owner_only
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import note_step
from reactive_runtime._core.fusion.fuse import PENDING, name_source, none_element, pulled
from reactive_runtime._core.fusion.step import Step, heard_above, note_end, release_held, show_watching
from reactive_runtime._core.queues.prefetch_queue import Overflow, PrefetchQueue
from reactive_runtime._core.runtime.sentinels import sentinel
from reactive_runtime._core.sources.core_flow import CoreFlow, SubscriptionPlan
from reactive_runtime._core.sources.pollable import Pollable, end_is_certain, paced
from reactive_runtime._core.sources.task_source import TaskSource
from reactive_runtime._spec import MAX_DEMAND

__all__ = ["DEPTH", "END", "InnerSubscription"]


END: Final = sentinel("END", __name__)
"""Given by an inner subscription when its upstream has completed."""

NOTHING: Final = sentinel("NOTHING", __name__)

DEPTH: Final = 12
"""Operators that hang on one drain, one above the other, at most: the next upstream has a drain of its own, since each
of them is a frame or more on the stack of the one that pulls."""

Steps = Sequence[Step[Any, Any]]


# -- the kinds of wiring -------------------------------------------------------------------------------------------
#
# Each is a class without instances: threads that read one object send its reference count from core to core, and
# classes are exempt (`runtime.sentinels`).


class _Here:
    """The upstream hangs on the drain of the operator, which pulls it through its steps."""

    own: ClassVar[bool] = False
    """The upstream has a drain of its own, of the same tree."""

    light: ClassVar[bool] = False
    """To connect, or to ask, runs no source on this thread. Here, that depends on the plan."""

    @staticmethod
    def pollable(inner: InnerSubscription, source: CoreFlow[Any], plan: SubscriptionPlan, steps: Steps) -> Pollable:
        """The pollable source that the inner subscription pulls from."""
        if not steps:
            return plan.pollable(inner._prefetch)
        inner._steps = [step.copy() for step in steps]
        return plan.pollable(inner._upstream(inner._prefetch))


class _Light(_Here):
    """The same, although news comes from other threads: neither its source nor its steps call a user's code."""

    @staticmethod
    def pollable(inner: InnerSubscription, source: CoreFlow[Any], plan: SubscriptionPlan, steps: Steps) -> Pollable:
        inner._steps = [step.copy() for step in steps]
        wanted = inner._upstream(inner._prefetch)
        return plan.pollable(inner._prefetch if wanted == MAX_DEMAND else wanted)  # elements wait while the drain works


class _OwnDrain(_Here):
    """The upstream has a drain of its own, and is asked for what is demanded, `prefetch` at a time."""

    own = True

    @staticmethod
    def pollable(inner: InnerSubscription, source: CoreFlow[Any], plan: SubscriptionPlan, steps: Steps) -> Pollable:
        return PrefetchQueue(source._run, None, most=inner._prefetch, own=True)


class _Ahead(_OwnDrain):
    """The same, with room for `prefetch` elements: it goes on while it is not polled."""

    @staticmethod
    def pollable(inner: InnerSubscription, source: CoreFlow[Any], plan: SubscriptionPlan, steps: Steps) -> Pollable:
        return PrefetchQueue(source._run, inner._prefetch, own=True)


class _Elsewhere(_Here):
    """The upstream has an executor, and signals to a prefetch queue."""

    light = True

    @staticmethod
    def pollable(inner: InnerSubscription, source: CoreFlow[Any], plan: SubscriptionPlan, steps: Steps) -> Pollable:
        return PrefetchQueue(source._run, inner._prefetch)


class _Task(_Elsewhere):
    """The upstream has an executor and one element: a task makes it."""

    @staticmethod
    def pollable(inner: InnerSubscription, source: CoreFlow[Any], plan: SubscriptionPlan, steps: Steps) -> Pollable:
        assert plan.single is not None
        assert plan.executor is not None
        return TaskSource(plan.single, steps, plan.executor, at_once=inner._prefetch is not None)


def _chosen(plan: SubscriptionPlan, steps: Steps, apart: bool, ahead: bool, depth: int) -> type[_Here]:
    """The wiring of an upstream; the arguments are those of `InnerSubscription`."""
    if plan.executor is not None:
        single = plan.single is not None and not any(step.expands for step in steps)
        return _Task if single else _Elsewhere
    if ahead and (plan.combines or (steps and not plan.pulls)):
        return _Ahead
    if depth >= DEPTH:
        return _OwnDrain
    if apart and (plan.keeps or steps):
        return _Light if _calls_no_user(plan, steps) else _OwnDrain
    return _Here


def _calls_no_user(plan: SubscriptionPlan, steps: Steps) -> bool:
    """Whether it is a group, a window or a hot source, whose steps need no function."""
    elsewhere = not (plan.keeps or plan.pulls or plan.pushes or plan.combines or plan.begins)
    return elsewhere and not any(step.calls for step in steps)


class InnerSubscription:
    """One upstream of a combinator. All methods are for the drain's owner."""

    __slots__ = (
        "_ahead",
        "_heard",
        "_iterator",
        "_keeps",
        "_own",
        "_pollable",
        "_portion",
        "_prefetch",
        "_seen",
        "_steps",
        "asked",
        "drain",
        "over",
        "parked",
    )

    def __init__(
        self,
        drain: DrainContext,
        source: CoreFlow[Any],
        prefetch: int | None = None,
        overflow: Overflow | None = None,
        heard: dropping.Listeners = (),
        *,
        apart: bool = False,
        ahead: bool = False,
        depth: int = 0,
    ) -> None:
        """`apart`: with a drain of its own, if the source may keep the owner of this one. `depth`: of the operator.

        `ahead`: an upstream that is not pulled, an asynchronous operator or a group behind a step, gets a drain of its
        own, and so goes on while it is not polled.
        """
        plan = source._source.plan()
        executor = plan.executor
        steps = (*plan.steps, *source._steps) if plan.steps else source._steps
        wiring = _chosen(plan, steps, apart, ahead, depth)
        self.drain = drain
        self._heard = heard  # the listeners to elements discarded downstream of its steps
        self._prefetch = prefetch
        self._ahead: Any = NOTHING  # an element that a step gave while there was no demand
        self._seen = False  # a source that never waits was looked at, and has not been pulled since
        self._iterator: Iterator[Any] | None = None
        self._steps: list[Step[Any, Any]] = []
        self.over: bool = False  # it has ended, or was closed
        self.parked: bool = False  # it has no news, and gives notice of some; until then a request can be kept
        self.asked: dict[InnerSubscription, None] | None = None  # where the operator keeps it, parked and asked
        self._own = wiring.own
        # The user's code runs on this drain: not on a thread that has only brought news.
        self._keeps = wiring is _Here and not plan.combines and (plan.keeps or bool(steps))
        # Of a drain of its own: a source that is pulled gives one at a time, one that pushes has to have room.
        self._portion = 1 if plan.pulls or prefetch is None else prefetch
        self._pollable: Pollable = wiring.pollable(self, source, plan, steps)
        queue = self._pollable if isinstance(self._pollable, PrefetchQueue) else None
        if overflow is not None and queue is not None:
            queue.limit(overflow)
        if plan.combines:
            self._pollable.stands_on(depth + 1)
        if self._steps:
            self._pollable.pace()
            show_watching(drain, self._pollable, self._steps)
            heard = heard_above(self._steps, heard)
        self._pollable.heard = heard
        self._pollable.attach(drain)
        if apart and drain.home is not None and (wiring.own or executor is drain.home):
            drain.hears = True
        light = wiring.light or (wiring is _Here and plan.combines and not plan.keeps)
        unbounded = prefetch == MAX_DEMAND
        if queue is not None:
            queue.light = light
        # An upstream that may bring elements at once, perhaps without end, is connected when no thread owns the drain:
        # then the elements go on their way, and find the demand that there is.
        if queue is not None and (executor is None or unbounded):  # it may signal on this thread
            drain.later(queue.connect, light=light)
        elif unbounded or plan.pushes:
            drain.later_expected(self._pollable.connect, light=light)
        elif drain.away and executor is drain.home:
            drain.later(self._pollable.connect)  # behind those that were noted before it
        else:
            self._pollable.connect()

    def _upstream(self, n: int | None) -> int | None:
        if n is None:
            return None
        for step in reversed(self._steps):
            n = min(step.upstream_demand(n), MAX_DEMAND)
        return n

    @owner_only
    def next_if_demanded(self) -> Any:
        """The next element, if one is demanded; PENDING; or END. Raises the error that the upstream ended with."""
        if self.over:
            return END
        drain = self.drain
        if drain.stopped:
            return PENDING
        if not drain.demanded:
            return self.peek_end()
        if self._keeps and drain.away:
            drain.deferred = True
            return self.peek_end()
        if self._ahead is not NOTHING:
            element, self._ahead = self._ahead, NOTHING
            self._seen = False
            return element
        return self._next()

    @owner_only
    def next_signal(self) -> Any:
        """The next element, demanded or not, for an inner subscription whose elements do not go on."""
        drain = self.drain
        element = self.next_if_demanded() if drain.demanded else drain.pulling(self.next_if_demanded, demanded=True)
        if element is PENDING and self._prefetch is not None:
            self._ask()
        return element

    @owner_only
    def next_signals(self, into: list[Any], most: int) -> Any:
        """Call `next_signal` until the list `into` holds `most` elements, and return the last signal.

        That is an element; or PENDING or END, which are not in the list.
        """
        drain, taken = self.drain, partial(self._taken, into, most)
        news = taken() if drain.demanded else drain.pulling(taken, demanded=True)
        if news is PENDING and self._prefetch is not None:
            self._ask()
        return news

    def _taken(self, into: list[Any], most: int) -> Any:
        drain = self.drain
        news = self.next_if_demanded()
        while news is not PENDING and news is not END:
            into.append(news)
            if len(into) >= most:
                break
            news = self.next_if_demanded() if self.over or drain.stopped else self._next()
        return news

    def _ask(self) -> None:
        """Ask the upstream, which had no element, whatever the demand further down."""
        if self._own:
            self._pollable.request(self._portion)
        elif self._pollable.combines:
            assert self._prefetch is not None
            self.request(self._prefetch)

    def _next(self) -> Any:
        self._seen = False
        drain = self.drain
        if drain.work_left <= 0 and not drain.works_on():
            return PENDING
        drain.work_left -= 1
        if self._iterator is None:
            self._iterator = self._opened()
        try:
            element = next(self._iterator, END)
            if element is None:
                raise none_element()
        except BaseException as error:
            name_source(error, self._pollable.where)
            note_step(error)
            self._pollable.note_source(error)
            if self._steps:
                note_end(self._steps, error)
            self.close()
            raise
        if element is END:
            if self._steps:
                note_end(self._steps, "complete")
            self.close()
        elif element is PENDING and self._own and drain.demanded:
            # The drain asks when it runs dry, which may never be: others may always have an element.
            self._pollable.request(1)
        return element

    def _opened(self) -> Iterator[Any]:
        try:
            elements = self._pollable.open()
        except Exception as error:
            self._pollable.note_source(error)
            raise
        if not self._steps:
            return elements
        if not self._pollable.waits:
            elements = paced(elements, self.drain)
        return pulled(elements, self._steps, self.drain)

    @owner_only
    def peek_end(self) -> Any:
        """END, if that is certain; else PENDING, when the upstream has run without demand.

        For inner subscriptions that are not polled now: a window that fills, or a clock, has to go on.
        """
        if self.over:
            return END
        if self._seen:
            return PENDING
        drain = self.drain
        return drain.pulling(self._looked, demanded=False) if drain.demanded else self._looked()

    def _looked(self) -> Any:
        if self._ahead is NOTHING:
            if self._iterator is None:
                if self._keeps and self.drain.away:
                    self.drain.deferred = True
                    return PENDING
                self._iterator = self._opened()
            self._pollable.run_without_demand()
            if end_is_certain(self._steps, self._pollable):
                element = self._next()
                if element is PENDING or element is END:
                    return element
                self._ahead = element
        self._seen = not self._pollable.waits
        return PENDING

    def pushes(self) -> bool:
        """Whether the upstream sends elements unpulled."""
        return self._pollable.pushes()

    @owner_only
    def ask_exactly(self) -> None:
        """From now on ask for what is demanded."""
        self._prefetch = None
        self._pollable.ask_exactly()

    @owner_only
    def raise_failure(self) -> None:
        """Raise the error that the upstream has ended with, if it has, although elements wait before it."""
        if not self.over and (error := self._pollable.failure()) is not None:
            self.close()
            raise error

    def connect_even_closed(self) -> None:
        """Subscribe to the upstream, and then cancel it, although this is going to be closed.

        A group has to have had its subscriber, or its source would wait for one.
        """
        if isinstance(self._pollable, PrefetchQueue):
            self._pollable.even_closed = True

    def reads(self) -> Pollable:
        """Its pollable source."""
        return self._pollable

    def reads_through(self) -> Steps:
        """Its steps: a look from any thread."""
        return self._steps

    def waits(self) -> bool:
        """Whether its elements may come later, from elsewhere."""
        return self._pollable.waits

    def park(self, ready: list[InnerSubscription]) -> bool:
        """Have itself put into `ready` when there is news. False: there is some now, or may be at any time."""
        if self._keeps and self.drain.away:
            return False  # it has not been pulled
        parked = self._pollable.notify_when_ready(ready, self)
        self.parked = parked and self._pollable.keeps_requests
        return parked

    def relays(self) -> bool:
        """Whether demand has to be passed on to it."""
        return self._pollable.relays()

    @owner_only
    def request(self, n: int) -> None:
        """The drain has run dry, and `n` elements are demanded downstream.

        Ask an upstream that hangs on this drain, and so is pulled, for no more than `n`, nor than there is room for.
        """
        if not self.over:
            wanted = self._upstream(n if self._prefetch is None or self._own else min(n, self._prefetch))
            assert wanted is not None
            self._pollable.request(wanted)

    def begin(self) -> None:
        """Have the upstream subscribe to its own upstreams now, although its turn comes later."""
        if self._pollable.combines:
            self.peek_end()

    def spent(self) -> bool:
        """Whether a step has taken its last element: the upstream is needed no more."""
        for step in self._steps:  # noqa: SIM110  # for each element: a generator costs three times this
            if step.done:
                return True
        return False

    @owner_only
    def ask_no_more(self) -> None:
        """Ask the upstream for nothing more. Elements that have arrived already are still given, and then END."""
        if not self.over and not self._pollable.ask_no_more():
            self.close()

    @owner_only
    def close(self) -> None:
        """Release the upstream."""
        if self.over:
            return
        self.over = True
        held: dropping.Held = []
        try:
            if self._steps:
                held = release_held(self._steps, self._heard)
        finally:
            if self._ahead is not NOTHING:
                held.append((self._ahead, self._pollable.heard))
            try:
                self._pollable.close()
            finally:
                self._iterator = None
                dropping.held_dropped(held)
