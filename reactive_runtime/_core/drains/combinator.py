"""The base of an asynchronous operator: a generator over any number of upstreams, resumed by the one drain.

The problem: an operator that waits for several parties, upstreams, timers, tasks on a pool, is usually written as
callbacks that meet in a queue, with a drain loop of its own. There are forty of them, and each gets it wrong anew.

The answer: a combinator is a pollable source, and its `elements` is a generator that reads like the operator's
definition. It runs only as the drain's owner, so that its state needs no lock. It never waits: where there
is nothing it yields PENDING, and is resumed when another thread has left a note.

    def elements(self):                          # take_until
        main, other = self.inner(self.source), self.inner(self.other, prefetch=1)
        while other.next_signal() is PENDING:
            element = main.poll()
            if element is END: return
            yield element                        # PENDING goes on as it is

Demand: `next_if_demanded` pulls only if an element can go on. Without demand the generator is still resumed
(`run_without_demand`), to see to what needs none: an end, an error, a timer, a switch. It must then yield nothing but
PENDING, and does so by itself where what it yields comes from `next_if_demanded`; an operator that has elements from
elsewhere asks `self.drain.demanded`.

An inner subscription is one upstream. A flow without an executor is not subscribed to: its pollable source hangs on the
same drain, and the inner subscription is its iterator, through its steps. Any other publisher gets a prefetch queue:
with `prefetch` elements of room; or, without, with exactly as much as the downstream still wants.

A signal from elsewhere must not wait for a user's code. The owner of a drain may be kept: by a function or a source
that takes its time, by a loop without result (`keeps`). So an operator that hears from elsewhere, from a clock, a
switch, another publisher (`apart`), gives each upstream that may keep the owner a drain of its own: a subscription and
a prefetch queue. The thread that asks for its elements then owns that drain only; the timer's thread owns the
operator's, signals, and cancels. What costs nothing to pull, a list or what waits in a queue, hangs on the drain as it
is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, runtime_checkable

from reactive_runtime._core.drains import trampoline
from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.drains.ownership import owner_only
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import AssemblyLocation, note_assembly, note_step
from reactive_runtime._core.failures.exits import each
from reactive_runtime._core.failures.passing import signalled
from reactive_runtime._core.fusion.fuse import PENDING, name_source, none_element, pulled
from reactive_runtime._core.fusion.step import Step, end_is_certain, heard_above, release_held
from reactive_runtime._core.queues.prefetch_queue import Overflow, PrefetchQueue
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.sentinels import sentinel
from reactive_runtime._core.sources.naming import executor_name
from reactive_runtime._core.sources.pollable import Pollable, paced
from reactive_runtime._core.sources.task_source import TaskSource
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.errors import RejectedError

if TYPE_CHECKING:
    from reactive_runtime._core.sources.flow_base import FlowBase

__all__ = ["END", "PENDING", "Clock", "Combinator", "Elements", "InnerSubscription", "ReadySet", "Timer"]


END: Final = sentinel("END", __name__)
"""What an inner subscription gives when its upstream has completed."""

NOTHING: Final = sentinel("NOTHING", __name__)

DEPTH: Final = 12
"""Operators that hang on one drain, one above the other, at most: the next upstream has a drain of its own, since each
of them is a frame or more on the stack of the one that pulls."""

Elements = Generator[Any, None, None]
"""What the `elements` of a combinator are: elements, and PENDING."""


@runtime_checkable
class Clock(Protocol):
    """An executor with a clock: `ScheduledExecutor` for real time, `VirtualTimeExecutor` for tests.

    Any object with these two methods is one.
    """

    def now(self) -> float:
        """The time, in seconds from some beginning.

        Returns:
            The time in seconds.

        Thread:
            May be called on any thread.
        """
        raise NotImplementedError

    def schedule(self, delay: float, fn: Callable[[], object], /) -> Future[Any]:
        """Run `fn` in `delay` seconds.

        Args:
            delay: Seconds, from 0.
            fn: The call to make, without arguments.

        Returns:
            A future, whose `cancel` takes the call back.

        Thread:
            May be called on any thread. The clock decides on which thread `fn` is called.
        """
        raise NotImplementedError


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
        "drain",
        "over",
    )

    def __init__(
        self,
        drain: DrainContext,
        source: FlowBase[Any],
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
        self.drain = drain
        self._heard = heard  # who hears of what is discarded downstream of its steps
        self._prefetch = prefetch
        self._ahead: Any = NOTHING  # an element that a step gave while there was no demand
        self._seen = False  # a source that never waits was looked at, and has not been pulled since
        self._iterator: Iterator[Any] | None = None
        self._steps: list[Step[Any, Any]] = []
        self.over: bool = False  # it has ended, or was closed
        self._pollable: Pollable
        steps = (*plan.steps, *source._steps) if plan.steps else source._steps
        ahead = ahead and plan.executor is None and (plan.combines or (bool(steps) and not plan.pulls))
        self._own = plan.executor is None and (ahead or (apart and (plan.keeps or bool(steps))) or depth >= DEPTH)
        # It runs the user's code, on this drain: not on a thread that has only brought news.
        self._keeps = plan.executor is None and not (self._own or plan.combines) and (plan.keeps or bool(steps))
        if self._own:
            self._pollable = own = (
                PrefetchQueue(source._run, prefetch) if ahead else PrefetchQueue(source._run, None, most=prefetch)
            )
            own.own = True
            if apart and drain.home is not None:
                drain.hears = True
            # A source that is pulled gives one at a time, as if it were pulled here; one that pushes has to have room.
            self._portion = 1 if plan.pulls or prefetch is None else prefetch
        elif plan.executor is None:
            if steps:
                self._steps = [step.copy() for step in steps]
            self._pollable = plan.pollable(self._upstream(prefetch))
            if isinstance(self._pollable, Combinator):
                self._pollable.depth = depth + 1
        elif plan.single is not None and not any(step.expands for step in steps):
            self._pollable = TaskSource(plan.single, steps, plan.executor, at_once=prefetch is not None)
        else:
            self._pollable = PrefetchQueue(source._run, prefetch)
        if apart and plan.executor is not None and plan.executor is drain.home:
            drain.hears = True
        queue = self._pollable if isinstance(self._pollable, PrefetchQueue) else None
        if overflow is not None and queue is not None:
            queue.limit(overflow)
        if self._steps:
            self._pollable.pace()
        self._pollable.heard = heard_above(self._steps, heard) if self._steps else heard
        self._pollable.attach(drain)
        if queue is not None or prefetch == MAX_DEMAND or plan.pushes:
            # To connect, or to ask, runs no source on this thread.
            light = plan.executor is not None or not (self._own or plan.keeps or not plan.combines)
            if queue is not None:
                queue.light = light
            # What it comes back with, perhaps without end, goes on its way at once, and finds the demand that there is.
            if queue is not None and (plan.executor is None or prefetch == MAX_DEMAND):  # it may signal on this thread
                drain.later(queue.connect, light=light)
                return
            if prefetch == MAX_DEMAND or plan.pushes:
                drain.later_expected(self._pollable.connect, light=light)
                return
        if drain.away and plan.executor is drain.home:
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
        """The next element, if one is demanded; PENDING; or END. Raises what the upstream ended with."""
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
        """As `next_signal`, again and again, put into a list until it holds `most`.

        What came last: an element; PENDING or END, which are not in the list.
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
        """Ask the upstream, which had nothing: what it gives is not for the demand further down."""
        if self._own:
            self._pollable.request(self._portion)
        elif isinstance(self._pollable, Combinator):
            assert self._prefetch is not None
            self.request(self._prefetch)  # of what hangs on it: the demand further down is not its measure

    def _next(self) -> Any:
        self._seen = False
        drain = self.drain
        drain.work_left -= 1
        if not drain.work_left:
            drain.give_way()
            return PENDING
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
            self.close()
            raise
        if element is END:
            self.close()
        elif element is PENDING and self._own and drain.demanded:
            # The drain need not run dry, and would then not ask: others may always have something.
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
        """END, if that is certain; else PENDING, and what needs no demand has been seen to.

        For inner subscriptions that are not polled now: what hangs on them, a window that fills, a clock, has to go on.
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
        """Whether elements come by themselves: not from a source that is pulled."""
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
        """It is going to be closed: its upstream is subscribed to even so, and then cancelled.

        A group has to have had its subscriber, or its source would wait for one.
        """
        if isinstance(self._pollable, PrefetchQueue):
            self._pollable.even_closed = True

    def reads(self) -> Pollable:
        """What it pulls from."""
        return self._pollable

    def waits(self) -> bool:
        """Whether its elements may come later, from elsewhere."""
        return self._pollable.waits

    def park(self, ready: list[InnerSubscription]) -> bool:
        """Be put into `ready` when there is news. False: there is some now, or may be at any time."""
        if self._keeps and self.drain.away:
            return False  # it was not asked
        return self._pollable.notify_when_ready(ready, self)

    def relays(self) -> bool:
        """Whether demand has to be passed on to it."""
        return self._pollable.relays()

    @owner_only
    def request(self, n: int) -> None:
        """The drain has run dry, and `n` elements are demanded downstream.

        What hangs on this drain is asked for no more than that, and than there is room for: it is pulled.
        """
        if not self.over:
            wanted = self._upstream(n if self._prefetch is None or self._own else min(n, self._prefetch))
            assert wanted is not None
            self._pollable.request(wanted)

    def begin(self) -> None:
        """Subscribe now to what the upstream subscribes to, although its turn comes later."""
        if isinstance(self._pollable, Combinator):
            self.peek_end()

    def spent(self) -> bool:
        """Whether a step has taken its last element: its upstream is of no use any more."""
        for step in self._steps:  # noqa: SIM110  # for each element: a generator costs three times this
            if step.done:
                return True
        return False

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
                dropping.held_dropped("a stream ended before it was delivered", held)


class ReadySet:
    """Inner subscriptions that are polled in turn. For the drain's owner.

    Of the inner subscriptions that have something to give, the one whose last turn is longest ago comes next: between
    two turns of one, each of the others has had its turn. An inner subscription that was looked at, without demand,
    keeps its place.
    """

    def __init__(self, combinator: Combinator) -> None:
        self._combinator = combinator
        self.drain: DrainContext = combinator.drain
        self._ready: deque[InnerSubscription] = deque()  # in the order of their turns
        self._parked = 0
        self._woken: list[InnerSubscription] = []  # the drain's lock; those that have been woken
        self._last: InnerSubscription | None = None  # it gave an element, and has not been settled

    def __len__(self) -> int:
        return len(self._ready) + self._parked

    @owner_only
    def add(self, inner: InnerSubscription) -> None:
        """One more; its turn comes after those of the others."""
        self._ready.append(inner)

    @owner_only
    def next_if_demanded(self) -> Any:
        """An element; PENDING where no inner subscription has one; END when one or more have ended.

        Those that have ended are no longer here. Raises the error of an inner subscription, which is then no longer
        here either.
        """
        drain = self.drain
        with drain.lock:
            if self._woken:
                self._ready.extend(self._woken)
                self._parked -= len(self._woken)
                self._woken.clear()
        if not drain.demanded:
            return self._looked()
        for _ in range(len(self._ready)):
            inner = self._ready.popleft()
            try:
                element = inner.next_if_demanded()
            except Exception:
                self._combinator.leave(inner)
                raise
            if element is END:
                self._combinator.leave(inner)
                return END
            if element is PENDING and drain.gives_way():
                self._ready.appendleft(inner)  # it has not had its turn
                return PENDING
            if element is PENDING and inner.park(self._woken):
                self._parked += 1
                continue
            self._ready.append(inner)
            if element is not PENDING:
                self._last = inner
                return element
        return PENDING

    def _looked(self) -> Any:
        """See to what needs no demand. The order of the turns stays."""
        inners, self._ready = self._ready, deque()
        result: Any = PENDING
        while inners:
            inner = inners.popleft()
            try:
                ended = inner.peek_end() is END
            except Exception:
                self._combinator.leave(inner)
                self._ready.extend(inners)
                raise
            if ended:
                self._combinator.leave(inner)
                result = END
            else:
                self._ready.append(inner)
        return result

    @owner_only
    def settle(self) -> None:
        """Called when the last element has been handled: cancel its upstream now if a step has taken its last one.

        So the upstream is cancelled before any other is asked for more, as if it had pushed the element.
        """
        inner, self._last = self._last, None
        if inner is not None and inner.spent() and self._ready and self._ready[-1] is inner:
            self._ready.pop()
            try:
                ended = inner.peek_end() is END
            except Exception:
                self._combinator.leave(inner)
                raise
            if ended:
                self._combinator.leave(inner)
            else:
                self._ready.append(inner)


class Timer:
    """A time to wait for. `due` is for the drain's owner."""

    __slots__ = ("_clock", "_dropped", "_fired", "_future", "_over", "_round", "drain")

    def __init__(self, drain: DrainContext, clock: Clock, seconds: float) -> None:
        self.drain = drain
        self._clock = clock
        self._fired = False  # the drain's lock
        self._round = 0  # the drain's lock; how often it has begun anew
        self._dropped: BaseException | None = None  # the drain's lock
        self._over = False  # the owner's
        self._set(seconds)

    def _set(self, seconds: float) -> None:
        try:
            self._future = self._clock.schedule(seconds, partial(self._fire, self._round))
        except RuntimeError as error:
            raise _no_clock(self._clock, error) from error
        self._future.add_done_callback(self._settled)

    def _fire(self, round: int) -> None:
        with self.drain.lock:
            if round != self._round:  # it was due, and on its way, when the timer began anew
                return
            self._fired = True
        self.drain.heard_from()

    def _settled(self, future: Future[Any]) -> None:
        if not future.cancelled():
            return
        with self.drain.lock:
            if self._future is not future:  # taken back by `cancel` or `again`
                return
            self._dropped = RejectedError("a timer was cancelled in the clock's queue")
        self.drain.heard_from()

    def due(self) -> bool:
        """Whether the time has come. RejectedError if it never will, since the clock was shut down."""
        with self.drain.lock:
            fired, dropped = self._fired, self._dropped
        if dropped is not None and not self._over:
            raise _no_clock(self._clock, dropped)
        return fired and not self._over

    def again(self, seconds: float) -> None:
        """Begin anew."""
        self.cancel()
        with self.drain.lock:
            self._fired = False
            self._round += 1
        self._over = False
        self._set(seconds)

    def cancel(self) -> None:
        """Wait no more."""
        self._over = True
        with self.drain.lock:
            future, self._future = self._future, _NO_FUTURE
        future.cancel()


_NO_FUTURE: Final[Future[Any]] = Future()
_NO_FUTURE.set_result(None)


def _no_clock(clock: Clock, cause: BaseException) -> RejectedError:
    error = RejectedError(f"{executor_name(clock)} will not run a stream's timer: {cause}")
    error.__cause__ = cause
    return error


def _needs_a_thread(source: FlowBase[Any]) -> bool:
    """Whether it, or a source of it, runs on the thread that asks; what a clock brings has a thread already."""
    plan = source._source.plan()
    return plan.keeps or plan.pulls or plan.begins


class Combinator(Pollable):
    """A pollable source over inner subscriptions and timers."""

    title: str = ""
    location: AssemblyLocation | None = None
    combines: bool = True
    waits: bool = True

    hears: ClassVar[bool] = False
    """It hears from elsewhere than its upstreams: a clock, a switch, those who take from it."""

    makes: ClassVar[bool] = False
    """It has further upstreams, which it makes of elements."""

    calls: ClassVar[bool] = True
    """It may keep the owner of the drain, itself or by upstreams that are not given a drain of their own."""

    apart: bool = False
    """An upstream that may keep the owner gets a drain of its own. Set by `CombinatorSource`, before anything else."""

    sources_on: Executor | None = None
    """Where the sources run that are known beforehand, unless they have an executor already. Set by `CombinatorSource`.
    """

    depth: int = 0
    """How many operators stand below it on the same drain. Set by the inner subscription."""

    def __init__(self) -> None:
        # All of it belongs to the drain's owner.
        self.drain: DrainContext  # set once, by attach
        self.inners: dict[InnerSubscription, FlowBase[Any] | None] = {}  # those open; what no other subscribes to
        self._relaying: dict[InnerSubscription, None] = {}  # and of them, those that demand is passed on to
        self.timers: list[Timer] = []
        self.elsewhere: bool = False  # one had nothing to give at once, or may have: it will be heard from later
        self._run: Elements | None = None
        self._over = False  # `elements` has come to its end
        self._error: Exception | None = None  # it raised this while there was no demand, or put it off

    def elements(self) -> Elements:
        """The operator."""
        raise NotImplementedError

    def closed(self) -> None:
        """The stream has ended; drop what is left (`discard`)."""

    def waits_for(self) -> str:
        """What there is to wait for besides inner subscriptions, for a message; a look from any thread."""
        return f"a timer of {executor_name(self.timers[-1]._clock)}" if self.timers else ""

    # -- for operators -----------------------------------------------------------------------------------------

    @owner_only
    def inner(
        self,
        source: FlowBase[Any],
        prefetch: int | None = None,
        overflow: Overflow | None = None,
        *,
        apart: bool | None = None,
        ahead: bool = False,
        made: bool = False,
        alone: bool = False,
    ) -> InnerSubscription:
        """Subscribe to one more upstream; `apart`: otherwise than the operator as a whole. `made`: of an element.

        `alone`: a function has made `source` for this subscription. What it holds is dropped with the subscription.
        """
        if self.sources_on is not None and not made and _needs_a_thread(source):
            source = source._on(self.sources_on)
        if (waiter := self.drain.waiter) is not None and not source._source.free():
            waiter.begins(source, self.title)
        apart = self.apart if apart is None else apart
        inner = InnerSubscription(
            self.drain, source, prefetch, overflow, self.heard, apart=apart, ahead=ahead, depth=self.depth
        )
        self.inners[inner] = source if alone else None
        self.elsewhere = self.elsewhere or inner.waits()
        if inner.relays():
            self._relaying[inner] = None
        return inner

    def widen(self, inner: InnerSubscription) -> None:
        """From now on ask the upstream for what is demanded, however it was asked before."""
        inner.ask_exactly()
        self._relaying[inner] = None

    @owner_only
    def leave(self, inner: InnerSubscription) -> None:
        """Release an upstream."""
        made = self.inners.pop(inner, None)
        self._relaying.pop(inner, None)
        try:
            inner.close()
        finally:
            if made is not None:
                dropping.abandon(made)

    def relay(self, inner: InnerSubscription) -> Elements:
        """All of an inner subscription, to its end."""
        while (element := inner.next_if_demanded()) is not END:
            yield element
        self.leave(inner)

    def demand(self) -> Elements:
        """Wait until an element can go on."""
        while not self.drain.demanded:
            yield PENDING

    def beside(
        self, inner: InnerSubscription, source: FlowBase[Any], *, unless: bool = False
    ) -> Generator[Any, None, Any]:
        """What `inner` has when it has begun, and then the inner subscription of `source`.

        PENDING where `inner` has nothing. `unless`: no inner subscription where `inner` always has something at hand.
        """
        news = inner.next_signal()
        if news is not PENDING and unless and not inner.waits():
            return news, None
        drain, made = self.drain, primitives.Event()
        if news is not PENDING or not drain.has_calls():
            return news, self.inner(source)

        def go_on(times: int = DEPTH) -> None:
            if times and trampoline.others():  # behind the calls that those let begin in turn
                trampoline.later(partial(go_on, times - 1))
                return
            made.set()
            drain.wake()

        drain.expect()  # the subscription to `source`
        try:
            drain.later(go_on)  # behind the calls that let it begin
            while news is PENDING and not made.is_set():  # it may be pulled on this thread, and have no end
                yield PENDING
                news = inner.next_signal()
            news = inner.next_signal() if news is PENDING else news
            return news, self.inner(source)
        finally:
            drain.came()

    def home(self) -> Elements:
        """Wait for a thread that may be kept: not one that has only brought news. Before a source is made or opened."""
        while self.drain.away:
            self.drain.deferred = True
            yield PENDING

    def timer(self, clock: Clock, seconds: float) -> Timer:
        """A timer that is cancelled with the stream."""
        timer = Timer(self.drain, clock, seconds)
        self.timers.append(timer)
        return timer

    def put_off(self, error: Exception | None) -> None:
        """End with `error` when `elements` has returned; the hook gets it if the stream is closed before that.

        For an error that comes after what is at hand. None: it is dealt with.
        """
        self._error = error

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a user's function; an error that comes out of it says where this operator was put into the flow."""
        try:
            return function(*arguments)
        except BaseException as error:
            note_assembly(error, self.title, self.location)
            raise

    def fault(self, error: Exception) -> Exception:
        """An error of this operator's own, with its place."""
        note_assembly(error, self.title, self.location)
        return error

    def discard(self, *elements: Any, wanted: bool = False) -> None:
        """Tell the hook of elements that will not be delivered; `wanted`: because that is what the operator is for."""
        dropping.elements_dropped(f"{self.title} did not deliver it", elements, self.heard, wanted=wanted)

    # -- the pollable source -------------------------------------------------------------------------------------------

    def attach(self, drain: DrainContext) -> None:
        self.drain = drain

    def open(self) -> Iterator[Any]:
        self._run = self.elements()
        return chain(self._run, self._afterwards())

    def _afterwards(self) -> Iterator[Any]:
        self._over = True
        error, self._error = self._error, None
        if error is not None:
            raise error
        empty: Iterable[Any] = ()
        yield from empty

    def request(self, n: int) -> None:
        for inner in self._relaying:
            inner.request(n)

    def run_without_demand(self) -> None:
        if self._over or self._run is None:
            return
        try:
            element = next(self._run, END)
        except Exception as error:
            self._drop_error()  # this one was put off
            self._over, self._error = True, error
            return
        if element is END:
            self._over = True
        else:
            assert element is PENDING, f"{self.title} gave {element!r}, without demand"

    def exhausted(self) -> bool:
        return self._over

    def where(self) -> str:
        return self.title

    def pushes(self) -> bool:
        return any(inner.pushes() for inner in self.inners)

    def close(self) -> None:
        self._over = True
        run, self._run = self._run, None
        inners, self.inners, self._relaying = self.inners, {}, {}
        # An exit on its way up does not keep the others from being closed.
        try:
            if run is not None:
                self._quietly(run.close)  # a `with`, or a `finally`, of the operator: `using`
            for timer in self.timers:
                timer.cancel()
        finally:
            try:
                if inners:
                    each([inner.close for inner in inners])
                    each([partial(dropping.abandon, made) for made in inners.values() if made is not None])
            finally:
                self._quietly(self.closed)
                self._drop_error()

    def _drop_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            dropping.error_dropped(
                f"{self.title} failed, and was cancelled before its error was delivered", signalled(error)
            )

    def _quietly(self, clean_up: Callable[[], object]) -> None:
        """What cleaning up raises goes to the hook: the stream has ended already (3.15, 3.16)."""
        try:
            clean_up()
        except BaseException as error:
            note_assembly(error, self.title, self.location)
            dropping.raised(f"{self.title} raised when it was closed", error)
