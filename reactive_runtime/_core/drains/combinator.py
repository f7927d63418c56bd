"""The base of an asynchronous operator: a generator over any number of upstreams, which the one drain resumes.

The problem: an operator that waits for upstreams, timers and tasks on a pool is usually written as callbacks that meet
in a queue, with a drain loop of its own. There are forty of them, and each gets it wrong anew.

The answer: a combinator is a pollable source, and its `elements` is a generator that reads like the operator's
definition. Only the drain's owner runs it, so that its state needs no lock. It never waits: where there is no element
it yields PENDING, and the owner resumes it when another thread has left a note.

    def elements(self):                          # take_until
        main, other = self.inner(self.source), self.inner(self.other, prefetch=1)
        while other.next_signal() is PENDING:
            element = main.poll()
            if element is END: return
            yield element                        # PENDING goes on as it is

Demand: `next_if_demanded` pulls only if an element can go on. Without demand the owner still resumes the generator
(`run_without_demand`), for an end, an error, a timer, a switch. The generator must then yield nothing but PENDING. It
does where its elements come from `next_if_demanded`; an operator that has elements from elsewhere asks
`self.drain.demanded`.

Each upstream is an inner subscription (`drains.inner_subscription`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

from reactive_runtime._core.drains import trampoline
from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.drains.inner_subscription import DEPTH, END, InnerSubscription
from reactive_runtime._core.drains.ownership import owner_only
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import AssemblyLocation, caused, note_assembly
from reactive_runtime._core.failures.error_carrier import signalled
from reactive_runtime._core.failures.exits import each
from reactive_runtime._core.fusion.fuse import PENDING
from reactive_runtime._core.queues.prefetch_queue import Overflow
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.core_flow import CoreFlow, Gate, gated, moved
from reactive_runtime._core.sources.naming import executor_name
from reactive_runtime._core.sources.pollable import Pollable
from reactive_runtime.errors import RejectedError

__all__ = ["END", "PENDING", "Clock", "Combinator", "Elements", "InnerSubscription", "ReadySet", "Timer"]


Elements = Generator[Any, None, None]
"""The type of `elements` of a combinator: it yields elements, and PENDING."""


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


class ReadySet:
    """Inner subscriptions that are polled in turn. For the drain's owner.

    Of the inner subscriptions that have an element, the one whose last turn is longest ago comes next: between two
    turns of one, each of the others has had its turn. A look without demand changes no place.
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
        woken = None
        with drain.lock:
            if self._woken:
                woken = self._woken.copy()
                self._woken.clear()
        if woken is not None:
            self._ready.extend(woken)
            self._parked -= len(woken)
            self._combinator.unparked(woken)
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
        try:
            while inners:
                if self._has_ended(inners.popleft()):
                    result = END
        finally:
            self._ready.extend(inners)
        return result

    def _has_ended(self, inner: InnerSubscription) -> bool:
        """See to what needs no demand; leave an inner subscription that has ended, or fails, and keep any other."""
        try:
            ended = inner.peek_end() is END
        except Exception:
            self._combinator.leave(inner)
            raise
        if ended:
            self._combinator.leave(inner)
        else:
            self._ready.append(inner)
        return ended

    @owner_only
    def settle(self) -> None:
        """Called when the last element has been handled: cancel its upstream now if a step has taken its last one.

        So the cancel comes before a request to any other upstream, as if this one had pushed the element.
        """
        inner, self._last = self._last, None
        if inner is not None and inner.spent() and self._ready and self._ready[-1] is inner:
            self._has_ended(self._ready.pop())


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
    return caused(RejectedError(f"{executor_name(clock)} will not run a stream's timer: {cause}"), cause)


def _needs_a_thread(source: CoreFlow[Any]) -> bool:
    """Whether it, or a source of it, runs on the thread that asks; the elements of a clock have a thread already."""
    plan = source._source.plan()
    return plan.keeps or plan.pulls or plan.begins


class Combinator(Pollable):
    """A pollable source over inner subscriptions and timers."""

    title: str = ""
    location: AssemblyLocation | None = None
    combines: bool = True
    waits: bool = True

    hears: ClassVar[bool] = False
    """News comes from elsewhere than its upstreams: a clock, a switch, its subscribers."""

    makes: ClassVar[bool] = False
    """It has further upstreams, which it makes of elements."""

    begins: ClassVar[bool] = False
    """It has no upstream that is known beforehand, and subscribes to one that it makes, of no element."""

    calls: ClassVar[bool] = True
    """It may keep the owner of the drain, as may its upstreams without a drain of their own."""

    apart: bool = False
    """An upstream that may keep the owner gets a drain of its own. Set by `CombinatorSource`, before anything else."""

    sources_on: Executor | None = None
    """The executor for sources known beforehand that have chosen none. Set by `CombinatorSource`."""

    gate: Gate | None = None
    """Stands at the sources of its upstreams, but of those that it makes of elements. Set by `CombinatorSource`."""

    depth: int = 0
    """How many operators stand below it on the same drain. Set by the inner subscription."""

    def __init__(self) -> None:
        # The drain's owner alone touches all of it.
        self.drain: DrainContext  # set once, by attach
        self.inners: dict[
            InnerSubscription, CoreFlow[Any] | None
        ] = {}  # those open; the flow, where no other subscribes to it
        self._relaying: dict[InnerSubscription, None] = {}  # and of them, those that demand is passed on to
        # Parked ones that have been asked for so much, and need to be asked for more only. The least demand comes last.
        self._asked: list[tuple[int, dict[InnerSubscription, None]]] = []
        self.timers: list[Timer] = []
        self.elsewhere: bool = False  # an inner subscription waited, or may wait: its elements come later
        self._run: Elements | None = None
        self._over = False  # `elements` has come to its end
        self._error: Exception | None = None  # it raised this while there was no demand, or put it off

    def elements(self) -> Elements:
        """The operator."""
        raise NotImplementedError

    def closed(self) -> None:
        """The stream has ended; drop what is left (`discard`)."""

    def waits_for(self) -> str:
        """In words, whatever it waits for besides inner subscriptions; a look from any thread."""
        return f"a timer of {executor_name(self.timers[-1]._clock)}" if self.timers else ""

    # -- for operators -----------------------------------------------------------------------------------------

    @owner_only
    def inner(
        self,
        source: CoreFlow[Any],
        prefetch: int | None = None,
        overflow: Overflow | None = None,
        *,
        apart: bool | None = None,
        ahead: bool = False,
        made: bool = False,
        alone: bool = False,
    ) -> InnerSubscription:
        """Subscribe to one more upstream; `apart`: otherwise than the operator as a whole. `made`: of an element.

        `alone`: a function has made `source` for this subscription. The elements it holds are dropped with that.
        """
        if self.gate is not None and not made:
            source = gated(source, self.gate)
        if self.sources_on is not None and not made and _needs_a_thread(source):
            source = moved(source, self.sources_on)
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
        self._relay_to(inner)

    def unparked(self, inners: Iterable[InnerSubscription]) -> None:
        """Note that there is news of these inner subscriptions: after their elements they need demand again."""
        for inner in inners:
            inner.parked = False
            if inner.asked is not None:
                self._relay_to(inner)

    def _relay_to(self, inner: InnerSubscription) -> None:
        """Pass demand on to it with the next request."""
        if inner.asked is not None:
            del inner.asked[inner]
            inner.asked = None
        self._relaying[inner] = None

    @owner_only
    def leave(self, inner: InnerSubscription) -> None:
        """Release an upstream."""
        made = self.inners.pop(inner, None)
        self.relay_no_more(inner)
        try:
            inner.close()
        finally:
            if made is not None:
                dropping.abandon(made)

    def relay_no_more(self, inner: InnerSubscription) -> None:
        """Pass no demand on to it."""
        self._relaying.pop(inner, None)
        if inner.asked is not None:
            del inner.asked[inner]
            inner.asked = None

    def is_shut(self) -> bool:
        """Whether a gate has stopped the sources: to subscribe to them again is of no use."""
        return self.gate is not None and self.gate.is_shut()

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
        self, inner: InnerSubscription, source: CoreFlow[Any], *, unless: bool = False
    ) -> Generator[Any, None, Any]:
        """The first signal of `inner`, once it has begun, and then the inner subscription of `source`.

        PENDING where `inner` has none. `unless`: no inner subscription where `inner` never waits, and has a signal.
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
        """Wait, before making or opening a source, for a thread that may be kept: not one that only brings news."""
        while self.drain.away:
            self.drain.deferred = True
            yield PENDING

    def timer(self, clock: Clock, seconds: float) -> Timer:
        """A timer, which ends with the stream."""
        timer = Timer(self.drain, clock, seconds)
        self.timers.append(timer)
        return timer

    def put_off(self, error: Exception | None) -> None:
        """End with `error` when `elements` has returned; the hook gets it if the stream is closed before that.

        For an error that comes after elements at hand. None: the operator has dealt with it.
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
        """Report to the hook elements that will not be delivered; `wanted`: the operator is there to drop them."""
        dropping.elements_dropped(f"{self.title} did not deliver it", elements, self.heard, wanted=wanted)

    # -- the pollable source -------------------------------------------------------------------------------------------

    def stands_on(self, depth: int) -> None:
        self.depth = depth

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
        # A parked inner subscription has what it was asked for until it wakes. So a request costs what has changed, and
        # not what is open: a thousand open inners and a thousand requests are no million calls.
        asked, relaying = self._asked, self._relaying
        while asked and (asked[-1][0] < n or not asked[-1][1]):
            relaying.update(asked.pop()[1])
        parked = None
        for inner in relaying:
            inner.request(n)
            if inner.parked:
                parked = parked or []
                parked.append(inner)
        if parked is not None:
            self._keep_asked(parked, n)

    def _keep_asked(self, parked: list[InnerSubscription], n: int) -> None:
        """Ask these no more, until they wake or more than `n` is demanded."""
        asked = self._asked
        if not asked or asked[-1][0] != n:
            if len(asked) > 2 * len(self.inners):  # more than half of them are empty, below one that is not
                asked[:] = [level for level in asked if level[1]]
            asked.append((n, {}))
        level = asked[-1][1]
        for inner in parked:
            del self._relaying[inner]
            inner.asked = level
            level[inner] = None

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
        inners, self.inners, self._relaying, self._asked = self.inners, {}, {}, []
        # Close the others, although an exit is on its way up.
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
        """Clean up, and report to the hook an error of that: the stream has ended already (3.15, 3.16)."""
        try:
            clean_up()
        except BaseException as error:
            note_assembly(error, self.title, self.location)
            dropping.raised(f"{self.title} raised when it was closed", error)
