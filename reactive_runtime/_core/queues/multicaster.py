"""The base of every hot source: one list of elements with many readers.

The problem: all subscribers see one order, a late one a suffix of it; each reads at its own pace, and the slowest has
to hold the source back. A queue for each of them costs n copies of an element, n locks, and a look at n queues to know
how much room there is.

The answer: the elements are linked once, and each subscriber has a *reader*, a place in the list. Elements that all of
them have passed are garbage; the multicaster's own place keeps the elements for late subscribers. The hindmost reader
determines how much room there is. `_standing` counts the readers at each place, so that no search is needed to find it.
An element costs a step of each reader, and nothing else grows with their number.

A reader behind a boundary *reads ahead*: as many elements more may wait for it as the boundary has room for, and it
takes elements in pieces, with the lock for each piece. An element wakes it only after it has found none: elements that
come while it is at work, it finds before it rests. So a source with many subscribers on a pool needs few tasks for
them, and they do not disturb one another.

         _first (what a late one begins with)          _tail (empty; the next element goes here)
           ▼                                             ▼
    … ──▶ node ──▶ node ──▶ node ──▶ node ──▶ node ──▶ node
                    ▲                 ▲
                  reader            reader

Guarantees: one lock owns the list, the places, and the demand on the upstream; so an element that was asked for always
has its place. No thread holds the lock while it wakes a subscriber, or asks the upstream. An element goes to all or to
none: where one subscriber has no room, the multicaster refuses the emission. Behind an upstream that never happens,
since the multicaster asks for no more than the slowest has room for.

    open ──end──▶ over (final)
      └──released (auto_cancel, disconnect)──▶ the upstream is cancelled, now or as soon as it comes (final)
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Final

from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.drains.ownership import with_lock
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import an_exception, caused
from reactive_runtime._core.failures.exits import Unwinding, each
from reactive_runtime._core.failures.failure import Failure, Spread
from reactive_runtime._core.fusion.fuse import PENDING
from reactive_runtime._core.queues.emit_result import EmitResult
from reactive_runtime._core.queues.upstream import NoneSignalledError, Relayed, Upstream, call_raised
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import not_none, signalled_error
from reactive_runtime._core.sources.core_flow import CoreFlow
from reactive_runtime._core.sources.pollable import Pollable, paced
from reactive_runtime._spec import MAX_DEMAND, Subscription
from reactive_runtime.errors import ProtocolError, RejectedError

__all__ = ["Multicaster", "Reader", "wake_all"]


class _Node:
    """A place in the list. Empty while it is the last one; then `element` and `next` are set once.

    A place before the tail never changes: a thread that has seen the tail, under the lock, reads up to there without.
    """

    __slots__ = ("element", "next")

    element: Any  # the multicaster's lock
    next: _Node | None  # the multicaster's lock

    def __init__(self) -> None:
        self.next = None


class Reader(Pollable):
    """Gives one drain the list, from the place where its subscriber came in."""

    __slots__ = (
        "__weakref__",
        "_ahead",
        "_asking",
        "_chunk",
        "_drain",
        "_entered",
        "_failure",
        "_multicaster",
        "_node",
        "_on_drain",
        "_paced",
        "_position",
        "_stands",
        "gone",
        "on_connect",
        "on_gone",
    )

    queues = True
    waits = True

    def __init__(self, multicaster: Multicaster, node: _Node, position: int, entered: int, ahead: int) -> None:
        """For `Multicaster.enter`: begin at `node`; `entered` is where the list ended when the subscriber came."""
        self._multicaster = multicaster
        self._node = node  # the drain's owner; the next element
        self._position = position  # the drain's owner; its number
        self._entered = entered  # elements before it were replayed, and take no room
        self._ahead = ahead  # so many more may wait for it
        self._stands = max(position + ahead, entered)  # the multicaster's lock; see `Multicaster._standing`
        self._chunk: Iterator[Any] = iter(())  # the drain's owner; taken out of the list, and not handed on
        self._drain: DrainContext | None = None  # the multicaster's lock; set once, by attach
        self._on_drain = False  # set once, by attach; the subscriber has an executor, and connects there
        self._paced = False  # set once, before it is opened
        self._asking = False  # the multicaster's lock; the upstream is about to be asked, by `_ask`
        self._failure: Failure | None = None  # the multicaster's lock; set once, when the multicaster has failed
        self.gone: bool = False  # the multicaster's lock; the subscriber wants no more
        self.on_connect: Callable[[], object] = multicaster.more_room  # set before it is attached
        self.on_gone: Callable[[], object] | None = None  # set before it is attached

    def upstream(self) -> Upstream | None:
        """The calls of the multicaster on its source, while it is connected to one."""
        with self._multicaster._lock:
            return self._multicaster._upstream

    def attach(self, drain: DrainContext) -> None:
        self._on_drain = drain.executor is not None and not self._ahead
        with self._multicaster._lock:
            self._drain = drain
            self._multicaster._woken = None

    def connect(self) -> None:
        if not self._on_drain:
            self._connect()

    def _connect(self) -> None:
        assert self._drain is not None
        if not self._drain.stopped:  # cancelled inside `on_subscribe`: there is nothing to connect for
            self.on_connect()

    def pace(self) -> None:
        self._paced = True

    def open(self) -> Iterator[Any]:
        assert self._drain is not None
        if self._on_drain:
            self._drain.later(self._connect)
        elements = chain.from_iterable(self._chunks()) if self._ahead else self
        return paced(elements, self._drain) if self._paced else elements

    def _chunks(self) -> Generator[Iterator[Any], None, None]:
        """The elements that have come, in pieces; PENDING where there are none; the end at the end.

        The lock is taken once for a piece: the part of the list between two places never changes. Elements handed on
        make room in batches, as a prefetch queue is refilled.
        """
        multicaster, drain = self._multicaster, self._drain
        assert drain is not None
        ahead, most = self._ahead, self._ahead >> 2 or 1
        refill = ahead - (ahead >> 2)
        passed, counted = self._position, self._position  # handed on, in all; and known to the multicaster
        while True:
            ask = False
            with multicaster._lock:
                if passed - counted >= refill:
                    counted = passed
                    ask = multicaster._moved(self, max(counted + ahead, self._entered))
                n = min(multicaster._end - self._position, most)
                over, failure = multicaster._over, self._failure
                if not (n or over):
                    multicaster._waiting[drain] = None
            if ask:
                drain.later(self._ask)
            if n:
                node, elements = self._node, []
                for _ in range(n):
                    elements.append(node.element)
                    assert node.next is not None
                    node = node.next
                self._node, self._position = node, self._position + n
                self._chunk = iter(elements)
                del elements  # keep no element that was handed on until a further one comes
                yield self._chunk
                self._chunk = iter(())  # without a GIL the iterator of a list keeps the list when it has ended
                passed += n
            elif not over:
                yield iter((PENDING,))
            elif failure is None:
                return
            else:
                raise failure.reached(drain)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        multicaster = self._multicaster
        with multicaster._lock:
            node = self._node
            if node.next is not None:
                self._node = node.next
                self._position += 1
                ask = multicaster._moved(self, max(self._position, self._entered))
            elif not multicaster._over:
                return PENDING
            elif self._failure is None:
                raise StopIteration
            else:
                raise self._failure.reached(self._drain)
        if ask and self._drain is not None:
            self._drain.later(self._ask)  # the upstream may come back with elements, and the one in hand goes first
        return node.element

    def _ask(self) -> None:
        with self._multicaster._lock:
            self._asking = False
        self._multicaster.more_room()

    def exhausted(self) -> bool:
        with self._multicaster._lock:
            over = self._multicaster._over and self._node.next is None
        return over and self._chunk.__length_hint__() == 0  # type: ignore[attr-defined]

    def close(self) -> None:
        left, failure = self._multicaster.leave(self)
        reason = dropping.UNDELIVERED
        calls: list[Callable[[], object]] = [partial(dropping.elements_dropped, reason, left, self.heard)]
        if failure is not None:
            calls.append(partial(failure.left, self._drain))
        if self.on_gone is not None:
            calls.append(self.on_gone)  # this may disconnect: then the source is not asked for more
        each([*calls, self._multicaster.more_room])


class Multicaster:
    """Spreads elements, on any thread, to the readers that have entered."""

    shown_as: Final = "shared source"

    def __init__(
        self,
        capacity: int | None,
        replay: int | None = 0,
        *,
        waits: bool = True,
        forgets: bool = False,
        auto_cancel: bool = False,
        anew: bool = False,
    ) -> None:
        """`capacity`: how many elements may wait for each subscriber. None: any number, and the slowest holds up none.

        `replay`: how many the late ones get; None: all. `waits`: while there is no subscriber, nothing is asked of the
        upstream; else `capacity` elements are, once: an upstream without an end must not keep its thread for no
        subscriber. `forgets`: those who come after the end get the end only. `auto_cancel`: when the last subscriber
        leaves, the upstream is cancelled, and that is the end. `anew`: those who come after the end have another
        multicaster.

        An error that the last subscriber leaves behind goes to the hook, as its elements do; where elements are kept
        for late ones, the error is too.
        """
        self.capacity = capacity
        self.replay = replay  # _lock; 0 once it has forgotten
        self.waits = waits
        self.forgets = forgets
        self.auto_cancel = auto_cancel
        self.anew = anew
        # 2.1: the upstream is asked in batches, of three quarters at least while something is under way.
        self._batch = 0 if capacity is None else capacity - (capacity >> 2)
        self._lock = primitives.Lock()
        self._readers: dict[Reader, None] = {}  # _lock; empty once it is over
        # _lock; the drains of those that hear of each element; None: to be made anew
        self._woken: tuple[DrainContext, ...] | None = ()
        self._waiting: dict[DrainContext, None] = {}  # _lock; of those that hear of the next: they have found nothing
        self._tail = _Node()  # _lock
        self._end = 0  # _lock; the number of the tail: so many elements there have been
        self._first = self._tail  # _lock
        self._first_number = 0  # _lock; _end - replay <= _first_number <= _end
        self._present = 0  # _lock; readers that have entered and not left, also after the end
        self._seen = 0  # _lock; a subscriber that has left was handed what lies before this number
        # _lock; how many readers stand at each number, where there are any. One that reads ahead stands further on by
        # that much, perhaps beyond the tail, and moves in batches.
        self._standing: dict[int, int] = {}
        self._least = 0  # _lock; the least number with a reader, or _end; _end - _least <= capacity + _outstanding
        self._over = False  # _lock; final
        self._failed: Callable[[], Failure] | None = None  # _lock; it ended with this: makes it for one more reader
        self._upstream: Upstream | None = None  # _lock; set once
        self._released = False  # _lock; final: the upstream is not wanted any more
        self._outstanding = 0  # _lock; asked of the upstream, and not yet here

    # -- the side of the subscribers ---------------------------------------------------------------------------

    def enter(self, ahead: int = 0) -> Reader:
        """The pollable source of one more subscriber, which begins with what is replayed.

        `ahead`: so many elements more may wait for this one, and it makes room in batches.
        """
        with self._lock:
            reader = Reader(self, self._first, self._first_number, self._end, ahead)
            self._present += 1
            if self._failed is not None:
                reader._failure = self._failed()
            if not self._over:
                if not self._readers:
                    self._least = self._end
                self._readers[reader] = None
                self._woken = None
                self._stand(reader._stands, 1)
        return reader

    def leave(self, reader: Reader) -> tuple[list[Any], Failure | None]:
        """The subscriber wants no more. Returns the elements kept for it alone, and the error it ends with.

        The caller calls `more_room` afterwards.
        """
        with self._lock:
            self._present -= not reader.gone
            reader.gone = True
            left = self._waiting_for(reader)
            failure = reader._failure
            was_there = reader in self._readers
            if was_there:
                del self._readers[reader]
                self._woken = None
                if reader._drain is not None:
                    self._waiting.pop(reader._drain, None)
                self._stand(reader._stands, -1)
            upstream = self._upstream
            cancels = was_there and self.auto_cancel and not self._readers and upstream is not None
            if cancels:
                self._released = True
                self._finish(None)
        if cancels and upstream is not None:
            upstream.cancel()
        return left, failure

    def _waiting_for(self, reader: Reader) -> list[Any]:
        """The elements that wait for it, and are not replayed to others. Called with the lock held."""
        chunk = list(reader._chunk)
        node, number = reader._node, reader._position
        self._seen = max(self._seen, number - len(chunk))
        left = chunk[: max(0, self._first_number - (number - len(chunk)))]
        while number < self._first_number and node.next is not None:
            left.append(node.element)
            node, number = node.next, number + 1
        reader._node, reader._position, reader._chunk = self._tail, self._end, iter(())
        return left

    def _stand(self, number: int, n: int) -> None:
        """So many more readers stand at that number. Called with the lock held."""
        if self.capacity is None:
            return
        standing = self._standing.get(number, 0) + n
        if standing:
            self._standing[number] = standing
            return
        del self._standing[number]
        if number == self._least:
            self._advance()

    def _advance(self) -> None:
        """Find the hindmost reader. Called with the lock held.

        Each number is passed once, whichever readers there are.
        """
        while self._least < self._end and self._least not in self._standing:
            self._least += 1

    def _moved(self, reader: Reader, stands: int) -> bool:
        """The reader stands there now; whether it is to ask the upstream. Called with the lock held."""
        before, reader._stands = reader._stands, stands
        if self._over or stands == before or self.capacity is None:
            return False
        self._stand(stands, 1)
        self._stand(before, -1)
        if reader._asking or not self._lacking():
            return False
        reader._asking = True
        return True

    def size(self) -> int:
        """How many subscribers are there."""
        with self._lock:
            return len(self._readers)

    # -- the side that emits -----------------------------------------------------------------------------------

    def emit(self, element: Any) -> EmitResult:
        """Put `element` into the list, or, where a subscriber has no room, nowhere."""
        with self._lock:
            emission = self._put(element, promised=False)
            drains = self._to_wake() if emission is EmitResult.OK else ()
        wake_all(drains)
        return emission

    def _put(self, element: Any, *, promised: bool) -> EmitResult:
        """`promised`: there was room when the upstream was asked for it. Called with the lock held."""
        if self._over:
            return EmitResult.TERMINATED
        if not self._readers and self.replay == 0:
            return EmitResult.NO_SUBSCRIBER
        if not promised and self._room() <= 0:
            return EmitResult.OVERFLOW
        tail = self._tail
        tail.element = element
        self._tail = tail.next = _Node()
        self._end += 1
        if not self._readers:
            self._least = self._end
        elif self._least not in self._standing:
            self._advance()
        if self.replay is not None and self._end - self._first_number > self.replay:
            assert self._first.next is not None
            self._first, self._first_number = self._first.next, self._first_number + 1
        return EmitResult.OK

    def _to_wake(self) -> Iterable[DrainContext]:
        """The drains to wake for an element. Called with the lock held."""
        if self._woken is None:
            self._woken = tuple(reader._drain for reader in self._readers if reader._drain and not reader._ahead)
        if not self._waiting:
            return self._woken
        waiting, self._waiting = self._waiting, {}
        return chain(self._woken, waiting)

    def _drains(self) -> list[DrainContext]:
        """The drains of all readers. Called with the lock held."""
        return [reader._drain for reader in self._readers if reader._drain is not None]

    def _room(self) -> int:
        """How many elements the slowest has room for. Called with the lock held."""
        if self.capacity is None:
            return MAX_DEMAND
        return self.capacity - (self._end - self._least if self._readers else 0)

    def end(self, error: BaseException | None = None, *, raised: bool = False) -> bool:
        """End; False: it had ended. `raised`: the error, or its cause, goes up to a caller."""
        with self._lock:
            if self._over:
                return False
            drains, upstream = self._drains(), self._upstream
            unheard = error is not None and not (raised or self._readers) and (self.anew or self._released)
            self._finish(error, kept=raised)
        if upstream is not None:
            upstream.ended()
        if error is not None and unheard:
            dropping.error_dropped("a hot source failed, and has no subscriber, nor will have one", error)
        wake_all(drains, ended=True)
        return True

    def _finish(self, error: BaseException | None, *, kept: bool = False) -> None:
        """Called with the lock held. `kept`: the error does not go to the hook when the last subscriber leaves."""
        kept = kept or not self._readers or (self.replay != 0 and not self.forgets)
        self._over = True
        if error is not None:
            spread = None if kept else Spread()
            self._failed = partial(Failure, error, spread, kept=kept)
            for reader in self._readers:
                reader._failure = self._failed()
        self._readers = {}
        self._woken = ()
        self._waiting = {}
        self._standing = {}
        if self.forgets:
            self._first, self._first_number = self._tail, self._end

    def over(self) -> bool:
        """Whether it has ended."""
        with self._lock:
            return self._over

    # -- the side of an upstream: a subscriber -----------------------------------------------------------------

    def on_subscribe(self, subscription: Subscription, /) -> None:
        not_none("on_subscribe", subscription)
        drain = Relayed.unwrapped(subscription)
        if isinstance(drain, DrainContext):
            drain.waiter = self
        with self._lock:
            refused = self._upstream is not None or self._over or self._released
            if not refused:
                self._upstream = Upstream(subscription, self._raised)
        if refused:
            subscription.cancel()  # 2.5
        else:
            self.more_room()

    def on_next(self, element: Any, /) -> None:
        if element is None:
            raise NoneSignalledError(self, "the publisher")
        with self._lock:
            promised = self._outstanding > 0
            if promised and self._outstanding != MAX_DEMAND:
                self._outstanding -= 1
            upstream = self._upstream
            emission = self._put(element, promised=promised)
            drains = self._to_wake() if emission is EmitResult.OK else ()
            awaited = bool(self._readers)
        try:
            wake_all(drains)
        except BaseException as error:  # an exit on its way up: this upstream is about to close, and nothing follows
            if not isinstance(error, Unwinding):
                self.end(an_exception(error), raised=True)
            raise
        if emission is not EmitResult.OK:
            dropping.element_dropped(f"a hot source could not take it: {emission.value}", element)
        if emission is EmitResult.OVERFLOW and upstream is not None:
            self.on_error(ProtocolError("the upstream signalled more elements than were requested (1.1)"))
            upstream.cancel()
            return
        if upstream is not None and awaited:
            self.more_room()

    def abandoned(self, error: BaseException) -> None:
        """The thread of the source raised an exit, and that is the end of the source, for all its subscribers."""
        lost = RejectedError(
            f"the thread of a shared source was left by {type(error).__name__}, raised by the source or by one of its"
            " subscribers, and the source ends for all of them"
        )
        self.disconnect()
        self.end(caused(lost, error), raised=True)

    def on_error(self, error: BaseException, /) -> None:
        error = signalled_error(error, "the publisher")
        if not self.end(error):
            dropping.error_dropped("an error after its stream had ended", error)

    def on_complete(self) -> None:
        self.end()

    def _raised(self, error: BaseException, fault: Exception) -> None:
        call_raised(self, error, fault, partial(self.end, raised=True))

    def begins(self, source: CoreFlow[Any], operator: str) -> None:
        """See `Waiter`: pass it on to the subscribers that wait on a thread, which may feed one another in a circle."""
        multicasters: dict[Multicaster, None] = {self: None}
        left: list[Multicaster] = [self]
        while left:
            multicaster = left.pop()
            with multicaster._lock:
                drains = multicaster._drains()
            for waiter in [drain.waiter for drain in drains]:
                if not isinstance(waiter, Multicaster):
                    if waiter is not None:
                        waiter.begins(source, operator)
                elif waiter not in multicasters:
                    multicasters[waiter] = None
                    left.append(waiter)

    def disconnect(self) -> None:
        """Cancel the upstream, or the one that is about to come; not one that has ended (2.3, 2.4)."""
        with self._lock:
            self._released = True
            upstream = None if self._over else self._upstream
        if upstream is not None:
            upstream.cancel()

    def forget(self) -> None:
        """No subscriber comes any more: drop what was kept for late ones, and no subscriber has had.

        A subscriber that is still there has what it waits for, and drops that when it leaves.
        """
        with self._lock:
            node, number = self._first, self._first_number
            unseen = []
            while node.next is not None and not self._present:
                if number >= self._seen:
                    unseen.append(node.element)
                node, number = node.next, number + 1
            self.replay, self._first, self._first_number = 0, self._tail, self._end
        dropping.elements_dropped("its connection was cancelled, and no later subscriber gets it", unseen)

    def more_room(self) -> None:
        """Ask the upstream for as much as the slowest has room for; in batches, while elements are under way."""
        with self._lock:
            upstream, n = self._upstream, self._lacking()
            if upstream is None or not n:
                return
            self._outstanding = min(self._outstanding + n, MAX_DEMAND)
        upstream.request(n)

    @with_lock
    def _lacking(self) -> int:
        """How much the upstream is to be asked for now. Called with the lock held."""
        if self._upstream is None or self._over or self._released or (self.waits and not self._readers):
            return 0
        n = self._room() - self._outstanding
        return 0 if n <= 0 or (self._outstanding and n < self._batch) else n


def wake_all(drains: Iterable[DrainContext], *, ended: bool = False) -> None:
    """Wake all of them, also where one raises an exit. `ended`: the source has ended."""
    raised: BaseException | None = None
    for drain in drains:
        try:
            if ended:
                drain.end_came()
            else:
                drain.wake()
        except BaseException as error:
            if raised is not None:
                dropping.error_dropped("a second subscriber raised out of the same emission", raised)
            raised = error
    if raised is not None:
        raise raised
