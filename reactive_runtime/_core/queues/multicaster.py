"""The base of every hot source: one list of elements with many readers.

The problem: all subscribers see one order of elements, also those that come late. Each reads at its own pace, and the
slowest holds the source back. A queue for each subscriber would cost n copies of an element, n locks, and a look at n
queues to find the room.

The answer: each element is linked once, and each subscriber has a *reader*, a place in the list. Elements that all
readers have passed are garbage; those from `_first` on are kept for late subscribers. The hindmost reader determines
the room: `_standing` counts the readers at each place, so that no search is needed to find it. An element costs one
step for each reader.

The reader of a `publish_on` *reads ahead*: `prefetch` more elements may wait for it, and it takes them in pieces, with
the lock once for each. An element wakes it only if its last look found none, so many subscribers on a pool need few
tasks. Each element wakes the other readers.

         _first (a late subscriber begins here)        _tail (empty; the next element goes here)
           ▼                                             ▼
    … ──▶ node ──▶ node ──▶ node ──▶ node ──▶ node ──▶ node
                    ▲                 ▲
                  reader            reader

Guarantees: one lock owns the list, the places, and the demand on the upstream, so each requested element has room. No
thread holds the lock while it wakes a subscriber or calls the upstream. An element goes to all subscribers or to none:
`emit` refuses an element if one of them has no room. The elements of an upstream always have room, since the
multicaster requests no more than the slowest reader can take.

    open ──end──▶ over (final)
      ├──auto_cancel: the last subscriber leaves──▶ over, and the upstream is cancelled
      └──disconnect──▶ released (final): the upstream is cancelled, now or when it comes
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Final

from reactive_runtime._core.drains.drain_context import DrainContext, Waiter
from reactive_runtime._core.drains.ownership import with_lock
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import an_exception, caused
from reactive_runtime._core.failures.exits import Unwinding, each
from reactive_runtime._core.failures.failure import Failure, Spread
from reactive_runtime._core.fusion.fuse import PENDING
from reactive_runtime._core.queues.emit_result import EmitResult
from reactive_runtime._core.queues.upstream import NoneSignalledError, Relayed, Upstream, call_raised
from reactive_runtime._core.queues.waking import Parked, wake_all
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import not_none, signalled_error
from reactive_runtime._core.sources.core_flow import CoreFlow
from reactive_runtime._core.sources.pollable import Pollable, paced
from reactive_runtime._spec import MAX_DEMAND, Subscription
from reactive_runtime.errors import ProtocolError, RejectedError

__all__ = ["Multicaster", "Reader"]


class _Node:
    """A place in the list. The last one is empty; `element` and `next` are set once.

    Places before the tail never change: a thread that has seen the tail under the lock reads them without it.
    """

    __slots__ = ("element", "next")

    element: Any  # the multicaster's lock
    next: _Node | None  # the multicaster's lock

    def __init__(self) -> None:
        self.next = None


class Reader(Pollable):
    """The pollable source of one subscriber: the list, from the place where the subscriber came in."""

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
        "_until",
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
        self._position = position  # the drain's owner; the number of that element
        self._entered = entered  # elements with lower numbers are replayed, and take no room
        self._ahead = ahead  # elements that may wait beyond the capacity; 0: it does not read ahead
        self._stands = max(position + ahead, entered)  # the multicaster's lock; see `Multicaster._standing`
        self._chunk: Iterator[Any] = iter(())  # the drain's owner; taken out of the list, and not delivered
        self._drain: DrainContext | None = None  # the multicaster's lock; set once, by attach
        self._on_drain = False  # set once, by attach; connect on the drain's executor
        self._paced = False  # set once, before it is opened
        self._asking = False  # the multicaster's lock; a call of `_ask` is noted
        self._until: int | None = None  # the multicaster's lock; it takes no element from this number on
        self._failure: Failure | None = None  # the multicaster's lock; set once, when the multicaster has failed
        self.gone: bool = False  # the multicaster's lock; the subscriber has cancelled
        self.on_connect: Callable[[], object] = multicaster.more_room  # set before it is attached
        self.on_gone: Callable[[], object] | None = None  # set before it is attached

    def upstream(self) -> Upstream | None:
        """The multicaster's calls on its source, if it has one."""
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

    def relays(self) -> bool:
        return False  # what there is room for is asked for as elements are taken

    def notify_when_ready(self, ready: list[Any], who: Any) -> bool:
        multicaster = self._multicaster
        with multicaster._lock:
            if self._node.next is not None or multicaster._over or self._until is not None:
                return False
            assert self._drain is not None
            multicaster._parked[self] = Parked(self._drain, ready, who)
            return True

    def open(self) -> Iterator[Any]:
        assert self._drain is not None
        if self._on_drain:
            self._drain.later(self._connect)
        elements = chain.from_iterable(self._chunks()) if self._ahead else self
        return paced(elements, self._drain) if self._paced else elements

    def _chunks(self) -> Generator[Iterator[Any], None, None]:
        """The elements that have come, in pieces; PENDING if there are none; then the end.

        It takes the lock once for a piece. Delivered elements make room in batches, as in a prefetch queue.
        """
        multicaster, drain = self._multicaster, self._drain
        assert drain is not None
        ahead, most = self._ahead, self._ahead >> 2 or 1
        refill = ahead - (ahead >> 2)
        passed, counted = self._position, self._position  # delivered in all; and known to the multicaster
        while True:
            ask = False
            with multicaster._lock:
                if passed - counted >= refill:
                    counted = passed
                    ask = multicaster._moved(self, max(counted + ahead, self._entered))
                end = multicaster._end if self._until is None else self._until
                n = min(end - self._position, most)
                over, failure = multicaster._over or self._until is not None, self._failure
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
                del elements  # keep no delivered element until the next one comes
                yield self._chunk
                self._chunk = iter(())  # without a GIL an iterator that has ended keeps its list
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
            if node.next is not None and self._position != self._until:
                self._node = node.next
                self._position += 1
                ask = multicaster._moved(self, max(self._position, self._entered))
            elif not multicaster._over and self._until is None:
                return PENDING
            elif self._failure is None:
                raise StopIteration
            else:
                raise self._failure.reached(self._drain)
        if ask and self._drain is not None:
            self._drain.later(self._ask)  # later: the upstream may emit at once, and this element goes first
        return node.element

    def _ask(self) -> None:
        with self._multicaster._lock:
            self._asking = False
        self._multicaster.more_room()

    def exhausted(self) -> bool:
        with self._multicaster._lock:
            over = self._position == self._until or (self._multicaster._over and self._node.next is None)
        return over and self._chunk.__length_hint__() == 0  # type: ignore[attr-defined]

    def failure(self) -> Exception | None:
        with self._multicaster._lock:
            failure = self._failure
        return None if failure is None else failure.reached(self._drain)

    def ask_no_more(self) -> bool:
        self._multicaster.ask_no_more(self)
        self._multicaster.more_room()
        return True

    def close(self) -> None:
        left, failure = self._multicaster.leave(self)
        reason = dropping.UNDELIVERED
        calls: list[Callable[[], object]] = [partial(dropping.elements_dropped, reason, left, self.heard)]
        if failure is not None:
            calls.append(partial(failure.left, self._drain))
        if self.on_gone is not None:
            calls.append(self.on_gone)  # this may disconnect: then `more_room` requests nothing
        each([*calls, self._multicaster.more_room])


class Multicaster:
    """Gives the elements that come, on any thread, to all readers that have entered."""

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
        """`capacity`: how many elements may wait for each subscriber. None: any number, and none holds up the source.

        `replay`: how many elements late subscribers get; None: all. `waits`: request nothing from the upstream while
        there is no subscriber. Otherwise request `capacity` elements then, and no more: an upstream without end must
        not keep its thread for no subscriber. `forgets`: subscribers that come after the end get only the end.
        `auto_cancel`: when the last subscriber leaves, cancel the upstream, if there is one, and be over. `anew`: the
        caller gives subscribers that come after the end another multicaster.

        When a subscriber leaves, the hook gets the elements that wait for it; when the last one leaves, the error, if
        none has come to it. It gets neither while they are kept for late subscribers.
        """
        self.capacity = capacity
        self.replay = replay  # _lock; 0 once it has forgotten
        self.waits = waits
        self.forgets = forgets
        self.auto_cancel = auto_cancel
        self.anew = anew
        # 2.1: while requested elements are outstanding, the next request is for three quarters at least.
        self._batch = 0 if capacity is None else capacity - (capacity >> 2)
        self._lock = primitives.Lock()
        self._readers: dict[Reader, None] = {}  # _lock; empty once it is over
        # _lock; the drains that each element wakes; None: to be computed from _readers
        self._woken: tuple[DrainContext, ...] | None = ()
        self._waiting: dict[DrainContext, None] = {}  # _lock; drains that the next element wakes: they found nothing
        self._parked: dict[Reader, Parked] = {}  # _lock; those that have found nothing, and wait for news
        self._tail = _Node()  # _lock
        self._end = 0  # _lock; the number of the tail: how many elements have come
        self._first = self._tail  # _lock
        self._first_number = 0  # _lock; _end - replay <= _first_number <= _end
        self._present = 0  # _lock; readers that have not left, also after the end
        self._seen = 0  # _lock; a subscriber that has left had all elements before this number
        # _lock; the count of readers at each number that has any. A reader that reads ahead stands `ahead` further on,
        # perhaps beyond the tail, and moves in batches.
        self._standing: dict[int, int] = {}
        self._least = 0  # _lock; the least number with a reader, at most _end
        self._over = False  # _lock; final
        self._failed: Callable[[], Failure] | None = None  # _lock; makes a failure for one more reader
        self._upstream: Upstream | None = None  # _lock; set once
        self._released = False  # _lock; final: the upstream is cancelled, now or when it comes
        self._outstanding = 0  # _lock; requested from the upstream, and not here yet

    # -- the side of the subscribers ---------------------------------------------------------------------------

    def enter(self, ahead: int = 0) -> Reader:
        """Make the reader of one more subscriber, which begins with the replayed elements. `ahead`: see `Reader`."""
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
        """Remove the reader. Return the elements that wait for it, unless they are replayed, and its error, if any.

        The caller calls `more_room` afterwards.
        """
        with self._lock:
            passed = self._first, reader._node  # noqa: F841  # freed without the lock
            self._present -= not reader.gone
            reader.gone = True
            left = self._waiting_for(reader)
            failure = reader._failure
            upstream = self._without(reader)
        if upstream is not None:
            upstream.cancel()
        return left, failure

    def ask_no_more(self, reader: Reader) -> None:
        """Give the reader no more elements than there are now. The caller calls `more_room` afterwards."""
        with self._lock:
            reader._until = self._end
            upstream = self._without(reader)
        if upstream is not None:
            upstream.cancel()

    @with_lock
    def _without(self, reader: Reader) -> Upstream | None:
        """Remove the reader; return the upstream, where that is to be cancelled. Called with the lock held."""
        if reader not in self._readers:
            return None
        del self._readers[reader]
        self._woken = None
        self._parked.pop(reader, None)
        if reader._drain is not None:
            self._waiting.pop(reader._drain, None)
        self._stand(reader._stands, -1)
        upstream = self._upstream
        if not self.auto_cancel or self._readers or upstream is None:
            return None
        self._released = True
        self._finish(None)
        return upstream

    def _waiting_for(self, reader: Reader) -> list[Any]:
        """Take the elements that wait for this reader, and are not replayed. Called with the lock held."""
        chunk = list(reader._chunk)
        node, number = reader._node, reader._position
        self._seen = max(self._seen, number - len(chunk))
        first = self._first_number if reader._until is None else min(self._first_number, reader._until)
        left = chunk[: max(0, first - (number - len(chunk)))]
        while number < first and node.next is not None:
            left.append(node.element)
            node, number = node.next, number + 1
        reader._node, reader._position, reader._chunk = self._tail, self._end, iter(())
        return left

    def _stand(self, number: int, n: int) -> None:
        """Add `n` to the count of readers at that number. Called with the lock held."""
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
        """Move `_least` up to the hindmost reader, past each number once. Called with the lock held."""
        while self._least < self._end and self._least not in self._standing:
            self._least += 1

    def _moved(self, reader: Reader, stands: int) -> bool:
        """Note where the reader stands now; return whether it must call `_ask`. Called with the lock held."""
        before, reader._stands = reader._stands, stands
        if self._over or stands == before or self.capacity is None or reader._until is not None:
            return False
        self._stand(stands, 1)
        self._stand(before, -1)
        if reader._asking or not self._lacking():
            return False
        reader._asking = True
        return True

    def size(self) -> int:
        """How many subscribers there are; 0 when it is over."""
        with self._lock:
            return len(self._readers)

    # -- the side that emits -----------------------------------------------------------------------------------

    def emit(self, element: Any) -> EmitResult:
        """Add `element` to the list, unless a subscriber has no room; wake the subscribers. Any thread."""
        with self._lock:
            passed = self._first  # noqa: F841  # freed without the lock: the `__del__` of an element may call this
            emission = self._put(element, promised=False)
            if emission is not EmitResult.OK:
                return emission
            drains, parked = self._to_wake(), self._unparked()
        wake_all(drains, parked)
        return emission

    def _put(self, element: Any, *, promised: bool) -> EmitResult:
        """Add an element. `promised`: it was requested, so it has room. Called with the lock held."""
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
        """Take the drains that an element wakes. Called with the lock held."""
        if self._woken is None:
            self._woken = tuple(reader._drain for reader in self._readers if reader._drain and not reader._ahead)
        if not self._waiting:
            return self._woken
        waiting, self._waiting = self._waiting, {}
        return chain(self._woken, waiting)

    def _unparked(self) -> Iterable[Parked]:
        """Take the readers that have found nothing. Called with the lock held."""
        if not self._parked:
            return ()
        parked, self._parked = self._parked, {}
        return parked.values()

    def _drains(self) -> list[DrainContext]:
        """The drains of all readers. Called with the lock held."""
        return [reader._drain for reader in self._readers if reader._drain is not None]

    def _room(self) -> int:
        """How many elements the slowest reader has room for. Called with the lock held."""
        if self.capacity is None:
            return MAX_DEMAND
        return self.capacity - (self._end - self._least if self._readers else 0)

    def end(self, error: BaseException | None = None, *, raised: bool = False) -> bool:
        """End; False: it was over. `raised`: a caller gets the error, or its cause, and the hook does not."""
        with self._lock:
            if self._over:
                return False
            drains, parked, upstream = self._drains(), self._unparked(), self._upstream
            passed = self._first  # noqa: F841  # freed without the lock
            unheard = error is not None and not (raised or self._readers) and (self.anew or self._released)
            self._finish(error, kept=raised)
        if upstream is not None:
            upstream.ended()
        if error is not None and unheard:
            dropping.error_dropped("a hot source failed, and has no subscriber, nor will have one", error)
        wake_all(drains, parked, ended=True)
        return True

    def _finish(self, error: BaseException | None, *, kept: bool = False) -> None:
        """Be over. `kept`: the hook gets no error when the last subscriber leaves. Called with the lock held."""
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
            passed = self._first  # noqa: F841  # freed without the lock
            emission = self._put(element, promised=promised)
            drains, parked = (self._to_wake(), self._unparked()) if emission is EmitResult.OK else ((), [])
            awaited = bool(self._readers)
        try:
            wake_all(drains, parked)
        except BaseException as error:  # an exit: it ends the upstream too, which signals no more
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
        """End for all subscribers: the source, or a subscriber on its thread, raised an exit out of `subscribe`."""
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
        """See `Waiter`: notify the waiters of all readers."""
        for waiter in self._waiters():
            waiter.begins(source, operator)

    def stands_for(self, waiter: Waiter) -> bool:
        """See `Waiter`."""
        return any(one.stands_for(waiter) for one in self._waiters())

    def _waiters(self) -> Iterator[Waiter]:
        """The waiters of all readers, through further multicasters, perhaps in a circle."""
        multicasters: dict[Multicaster, None] = {self: None}
        left: list[Multicaster] = [self]
        while left:
            multicaster = left.pop()
            with multicaster._lock:
                drains = multicaster._drains()
            for waiter in [drain.waiter for drain in drains]:
                if not isinstance(waiter, Multicaster):
                    if waiter is not None:
                        yield waiter
                elif waiter not in multicasters:
                    multicasters[waiter] = None
                    left.append(waiter)

    def disconnect(self) -> None:
        """Cancel the upstream, now or when it comes, unless it has ended (2.3, 2.4)."""
        with self._lock:
            self._released = True
            upstream = None if self._over else self._upstream
        if upstream is not None:
            upstream.cancel()

    def forget(self) -> None:
        """No further subscriber comes: keep no elements for late ones. The hook gets those that no subscriber has had.

        Present subscribers still get the elements that wait for them, or drop them when they leave.
        """
        with self._lock:
            passed = node = self._first  # noqa: F841  # freed without the lock
            number = self._first_number
            unseen = []
            while node.next is not None and not self._present:
                if number >= self._seen:
                    unseen.append(node.element)
                node, number = node.next, number + 1
            self.replay, self._first, self._first_number = 0, self._tail, self._end
        dropping.elements_dropped("its connection was cancelled, and no later subscriber gets it", unseen)

    def more_room(self) -> None:
        """Request from the upstream as many elements as the slowest reader has room for, in batches. Any thread."""
        with self._lock:
            upstream, n = self._upstream, self._lacking()
            if upstream is None or not n:
                return
            self._outstanding = min(self._outstanding + n, MAX_DEMAND)
        upstream.request(n)

    @with_lock
    def _lacking(self) -> int:
        """How much to request from the upstream now. Called with the lock held."""
        if self._upstream is None or self._over or self._released or (self.waits and not self._readers):
            return 0
        n = self._room() - self._outstanding
        return 0 if n <= 0 or (self._outstanding and n < self._batch) else n
