"""The receiving end of a boundary: a subscriber upstream, a pollable source downstream.

`on_next` puts an element down under the lock of the downstream drain, and claims the drain by the same act; the drain
takes elements in batches. Upstream demand is a promise of room (1.1), of one of two kinds:

- *prefetch* p: the queue asks for p elements at once, and, when three quarters of them have been consumed, for so many
  again. It never holds more than p elements.
- *exact*: the queue asks for as much as the drain still owes downstream, and no more, or no more than `most` of it at a
  time. For publishers that are not ours, and for flows of ours that have a drain of their own, with no boundary after
  them.

An upstream may emit from inside `request`, without end, unless it is a drain of ours that has an executor. So the queue
asks when no thread owns the drain (`DrainContext.later`): each element has to go on its way at once, not to wait for
the return.

Calls of `request` and `cancel` on the upstream go through a drain of their own (`queues.upstream`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import length_hint
from typing import Any, Final, Literal

from reactive_runtime._core.drains import trampoline
from reactive_runtime._core.drains.drain_context import WORK, DrainContext
from reactive_runtime._core.drains.ownership import owner_only, with_lock
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import caused
from reactive_runtime._core.failures.failure import Failure
from reactive_runtime._core.fusion.fuse import PENDING, none_element
from reactive_runtime._core.queues.ready_queue import DrainQueue
from reactive_runtime._core.queues.upstream import NoneSignalledError, Relayed, Upstream, call_raised
from reactive_runtime._core.runtime.arguments import not_none, signalled_error
from reactive_runtime._core.sources.naming import a_kind
from reactive_runtime._spec import MAX_DEMAND, Subscriber, Subscription
from reactive_runtime.errors import ProtocolError, RejectedError

__all__ = ["Overflow", "PrefetchQueue"]


@dataclass(frozen=True, slots=True)
class Overflow:
    """How many elements may wait, and which one to drop when one more comes."""

    capacity: int
    drop: Literal["oldest", "newest", "error"]


class PrefetchQueue(DrainQueue):
    """Gives a drain the elements that an upstream publisher signals."""

    shown_as: Final = "subscriber of an operator"

    __slots__ = (
        "__weakref__",
        "_coming",
        "_consumed",
        "_counted",
        "_most",
        "_on_drain",
        "_overflow",
        "_paced",
        "_prefetch",
        "_refill",
        "_room",
        "_subscribe",
        "_taken",
        "_unasked",
        "_upstream",
        "_worked",
        "even_closed",
        "light",
        "own",
    )

    queues = True
    keeps_requests = True

    def __init__(
        self,
        subscribe: Callable[[Subscriber[Any]], object],
        prefetch: int | None,
        *,
        on_drain: bool = False,
        most: int | None = None,
        own: bool = False,
    ) -> None:
        """`subscribe` connects a subscriber to the upstream; `prefetch` is 1 or more, or None for exact demand.

        `on_drain`: connect on the thread of the drain, instead of on the one that subscribes. `most`: exact demand, but
        no more than that at a time. `own`: the upstream is of the same tree, with its own drain.
        """
        super().__init__()  # len(_items) <= the elements requested and not taken
        self._subscribe: Callable[[Subscriber[Any]], object] | None = subscribe  # lock; None once it is closed
        self._prefetch = prefetch
        self._most = most
        self._on_drain = on_drain
        self.even_closed: bool = False  # the owner's; see `InnerSubscription.connect_even_closed`
        self.light: bool = False  # set once, before `connect`: asking the upstream runs no source on this thread
        self.own: bool = own
        # 2.1: refill in batches, at three quarters
        self._refill = 0 if prefetch is None else prefetch - (prefetch >> 2)
        self._upstream: Upstream | None = None  # lock; set once, by on_subscribe; until both sides are over
        self._room = 0  # lock; elements that may still arrive (1.1)
        self._unasked = 0  # lock; the part of the room that the upstream has not been asked to fill
        self._coming = False  # lock; it is not yet subscribed to the upstream; see `DrainContext.rests`
        self._overflow: Overflow | None = None  # for upstreams asked without bound
        # Owned by the downstream drain:
        self._taken = 0  # the length of the chunk that is being consumed
        self._consumed = 0  # since the last refill
        self._counted = 0  # the elements in all chunks
        self._worked = 0  # since it gave way, where it does
        self._paced = False

    # -- the pollable source: called by the owner of the downstream drain ----------------------------------------------

    def attach(self, drain: DrainContext) -> None:
        super().attach(drain)
        self._coming = True
        drain.failed = None  # an error raised before has been dealt with
        drain.expect()

    def is_here(self) -> bool:
        """Note that the upstream has subscribed to its own upstreams, is not one of ours, or has ended.

        False: that was noted before.
        """
        with self._lock:
            coming, self._coming = self._coming, False
        return coming

    def came(self) -> None:
        """`is_here`, and notify the drain. From any thread."""
        if self.is_here():
            self._drain.came()

    def _publisher(self) -> str:
        """The publisher, for a message."""
        with self._lock:
            subscribe = self._subscribe
        owner = getattr(subscribe, "__self__", None)
        return "the publisher" if owner is None else f"the publisher, {a_kind(owner)},"

    def drain(self) -> DrainContext:
        """The drain that it gives its elements to."""
        return self._drain

    def upstream(self) -> Upstream | None:
        """The calls on its upstream, while both are there."""
        with self._lock:
            return self._upstream

    def room(self) -> int:
        """How many elements have been promised room, and have not come. A look, from any thread."""
        with self._lock:
            return self._room

    def connect(self) -> None:
        if not self._on_drain:
            self._connect()
        if self.even_closed:
            with self._lock:
                closed = self._closed
                self._subscribe = None if closed else self._subscribe
            if closed:
                self.came()

    def _connect(self) -> None:
        with self._lock:
            subscribe = self._subscribe
        if subscribe is None:
            return
        try:
            self._drain.context.copy().run(dropping.subscribed, self.heard, subscribe, self)
        except BaseException as error:  # 1.9: `subscribe` returns normally; this one did not
            self._raised(error, caused(ProtocolError(f"the upstream's subscribe raised (1.9): {error}"), error))

    def _raised(self, error: BaseException, fault: Exception) -> None:
        call_raised(self, error, fault, lambda fault: self._ended(Failure(fault, kept=True)))

    def open(self) -> Iterator[Any]:
        if self._on_drain:
            self._drain.later(self._connect)
        return chain.from_iterable(self._chunks())

    def _chunks(self) -> Generator[Iterator[Any], None, None]:
        """The elements that have arrived, in chunks; PENDING when there are none; the upstream's end at the end."""
        drain, paced = self._drain, self._paced
        while True:
            most = drain.next_run() if paced else MAX_DEMAND
            chunk = self.next_chunk(most)
            if chunk is None:
                yield iter((PENDING,))
                continue
            n = chunk.__length_hint__()  # type: ignore[attr-defined]
            if not n:
                return
            yield chunk
            if paced:
                self._worked += n
                if (n == most and drain.end_run()) or self._worked >= WORK:
                    self._worked = 0
                    drain.spend()
                    yield iter((PENDING,))

    @owner_only
    def in_hand(self) -> Iterator[Any]:
        """The rest of the chunk that is being consumed."""
        return self._chunk

    @owner_only
    def next_chunk(self, most: int = MAX_DEMAND) -> Iterator[Any] | None:
        """The next elements that have arrived, `most` at most, when the chunk before is used up. None: there are none.

        An iterator without elements: the upstream has completed. Raises the error that it has failed with.
        """
        if self._taken:
            n, self._taken = self._taken, 0
            self._replenish(n)
        # Up to where the upstream is asked again: it goes on while the rest is consumed.
        batch = self._refill - self._consumed if self._refill else MAX_DEMAND
        if most < batch:
            batch = most
        with self._lock:
            items = self._items
            if len(items) <= batch:
                self._items = []
            else:
                items, self._items = items[:batch], items[batch:]
            done, failure = self._over, self._failure
        self._taken = len(items)
        self._counted += len(items)
        chunk: Iterator[Any] = iter(items)
        self._chunk = chunk
        if items:
            return chunk
        if not done:
            return None
        if failure is not None:
            raise self._at_end(failure)
        return chunk

    def _replenish(self, n: int) -> None:
        self._consumed += n
        if self._refill and self._consumed >= self._refill:
            n, self._consumed = self._consumed, 0
            self._ask(n)

    def relays(self) -> bool:
        return self._prefetch is None

    def pace(self) -> None:
        self._paced = True

    def ask_exactly(self) -> None:
        self._prefetch = self._most = None
        self._refill = 0

    def request(self, n: int) -> None:
        if self._prefetch is not None:
            return
        with self._lock:
            if self._most is not None:
                most = min(n, self._most)
                n = most - self._room - len(self._items)
                n = n if n >= most - (most >> 2) else 0  # in batches, as a prefetch is refilled
            elif n != MAX_DEMAND:
                n -= self._room + len(self._items)
            wanted = n > 0 and self._room != MAX_DEMAND
            if wanted:
                self._room = min(self._room + n, MAX_DEMAND)
                self._unasked = min(self._unasked + n, MAX_DEMAND)
        if wanted:
            self._drain.later(self.ask, light=self.light)

    def ask(self) -> None:
        """Ask the upstream to fill the room promised to it. Called when no thread owns the drain, or by `_ask`."""
        with self._lock:
            upstream = self._upstream
            if upstream is None or not self._unasked:
                return
            n, self._unasked = self._unasked, 0
        upstream.request(n)

    def _ask(self, n: int) -> None:
        """Promise room for `n` more elements, and ask for them. For the owner of the drain."""
        with self._lock:
            self._room += n
            self._unasked += n
            upstream = self._upstream
        if upstream is None or upstream.submits:
            self.ask()
        else:
            self._drain.later(self.ask, light=self.light)

    def count_given(self) -> int:
        return self._counted - length_hint(self._chunk)

    def waiting(self) -> int:
        """How many elements have arrived and have not been taken. A look from any thread."""
        with self._lock:
            return len(self._items) + length_hint(self._chunk)

    def still_to_come(self) -> int | None:
        with self._lock:
            waiting, upstream, done = len(self._items), self._upstream, self._over
        above = 0 if done else None if upstream is None else upstream.still_to_come()
        return None if above is None else waiting + above

    def limit(self, overflow: Overflow) -> None:
        """Hold no more than that. Called before `connect`."""
        self._overflow = overflow

    @with_lock
    def _too_many(self) -> list[Any]:
        """Take out the elements beyond the limit, oldest or newest first. Called with the drain's lock held."""
        assert self._overflow is not None
        dropped: list[Any]
        beyond = len(self._items) - self._overflow.capacity
        if beyond <= 0:
            return []
        if self._overflow.drop == "oldest":
            dropped, self._items = self._items[:beyond], self._items[beyond:]
        else:
            dropped, self._items = self._items[-beyond:], self._items[:-beyond]
        return dropped

    def _overflowed(self, dropped: list[Any]) -> None:
        """Report elements that found no room to the hook, and, where that is an error, to both sides."""
        assert self._overflow is not None
        wanted = self._overflow.drop != "error"
        dropping.elements_dropped("it found the buffer full", dropped, self.heard, wanted=wanted)
        full = OverflowError(f"more than {self._overflow.capacity} elements wait to be asked for")
        if self._overflow.drop == "error" and dropped and self._ended(Failure(full)):
            with self._lock:
                upstream = self._upstream
            if upstream is not None:
                upstream.cancel()

    def ask_no_more(self) -> bool:
        with self._lock:
            upstream = self._upstream
        if upstream is not None:
            upstream.cancel()
        self._ended(None)
        return True

    def close(self) -> None:
        with self._lock:
            self._closed = True
            items, self._items = self._items, []
            upstream, done = self._upstream, self._over
            failure = self._failure
            still_to_come = self.even_closed and upstream is None and not done  # `connect` is still to come
            if not still_to_come:
                self._subscribe = None  # the source is freed with its holder, not with the cycle that ends here
            if done:
                self._upstream = None
        left, self._chunk = chain(self._chunk, items), iter(())
        if not still_to_come:
            self.came()
        try:
            if upstream is not None and not done:
                upstream.cancel()  # 2.6, and it is not needed once the upstream has ended (2.4)
        finally:
            self._dropped(left, failure)

    # -- the subscriber: called by the upstream, on any thread, serially ---------------------------------------

    def on_subscribe(self, subscription: Subscription, /) -> None:
        not_none("on_subscribe", subscription)
        upstream = Upstream(subscription, self._raised)
        with self._lock:
            first = self._upstream is None and not self._over
            if first:
                self._upstream = upstream
            closed = self._closed
        if not first:
            subscription.cancel()  # 2.5
        elif closed:
            upstream.cancel()
        else:
            if self._prefetch is not None:
                with self._lock:
                    self._room += self._prefetch
                    self._unasked += self._prefetch
            if not ours(subscription, self):
                self.came()
            self.ask()  # for that, or for what was demanded before the subscription came

    def on_next(self, element: Any, /) -> None:
        if element is None:
            raise NoneSignalledError(self, self._publisher())
        drain = self._drain
        with self._lock:
            accepted = not (self._closed or self._over) and self._room > 0
            if accepted:
                if self._room != MAX_DEMAND:
                    self._room -= 1
                self._items.append(element)
                if self._to_notify is not None:
                    self._arrived()
                dropped = None if self._overflow is None else self._too_many()
                owner = drain.claim()
                if not (owner or dropped):
                    return
            else:
                dropped, owner = None, False
        if accepted:
            if dropped:
                self._overflowed(dropped)
            if owner:
                drain.element_came()
        else:
            self._refuse(element)

    def absorb(self, elements: Iterable[Any], upstream: DrainContext, *, synchronous: bool) -> tuple[int, bool]:
        """`on_next` for each of `elements`, for an upstream of our own, which has checked the demand.

        Returns how many, and whether PENDING was met. `synchronous`: to get the next one runs no code of a user, and
        never waits; then all of them change hands in one go, unless their number is limited. Else the drain can take
        each as soon as it is here: an element in hand never waits for the next one to be made.
        """
        if synchronous and self._overflow is None:
            batch: list[Any] = []
            try:
                batch.extend(elements)
            finally:  # elements before an error go before it
                self._put(batch)
            return len(batch), False
        taken = 0
        for element in elements:
            if element is PENDING:
                return taken, True
            if element is None:
                raise none_element()
            taken += 1
            waits = self._put((element,))
            if upstream.stopped:
                break
            if waits:
                upstream.spend()
                return taken, True
        return taken, False

    def _put(self, elements: Sequence[Any]) -> bool:
        """Take them, and wake the drain; True: they wait for this thread, in its queue or in that of its executor."""
        drain = self._drain
        with self._lock:
            waits = self.own and drain.waits_its_turn()
            owner = not waits and drain.claim()
            accepted = not self._closed
            if accepted:
                self._items.extend(elements)
                if self._room != MAX_DEMAND:
                    self._room -= len(elements)
                if self._to_notify is not None:
                    self._arrived()
            dropped = self._too_many() if accepted and self._overflow is not None else None
        if dropped:
            self._overflowed(dropped)
        if not accepted:
            dropping.elements_dropped("it came after its stream had ended", elements, self.heard)
        if owner:
            drain.element_came()
            return drain.executor is None and trampoline.others()
        return waits

    def _refuse(self, element: Any) -> None:
        """An element that came after the end, after a cancel (2.8), or without demand (1.1)."""
        with self._lock:
            closed, done, upstream = self._closed, self._over, self._upstream
        reason = "it came after its stream had ended" if closed or done else "it came unasked"
        dropping.element_dropped(reason, element, self.heard)
        if closed and upstream is not None:
            upstream.cancel()  # lets a cancel through that waits for a `request` on this very stack
        elif not done:
            self.on_error(ProtocolError("the upstream signalled more elements than were requested (1.1)"))
            if upstream is not None:
                upstream.cancel()

    def on_error(self, error: BaseException, /) -> None:
        error = signalled_error(error, self._publisher())
        failure = self._failure_of(error)
        if not self._ended(failure):
            failure.reached(None)
            if not isinstance(error, RejectedError):  # it needs no executor any more
                failure.dropped("an error after its stream had ended", error)

    def _failure_of(self, error: BaseException) -> Failure:
        """The error that the upstream has signalled; one of ours may have it from a source with many readers."""
        if self._drain.is_too_late(error):
            return Failure(error, kept=True)
        upstream = self.upstream()
        signalling = None if upstream is None else upstream.subscription()
        subscription = None if signalling is None else Relayed.unwrapped(signalling)
        failed = subscription.failed if isinstance(subscription, DrainContext) else None  # its owner signals here
        return Failure(error) if failed is None else failed.passed_on(error)

    def on_complete(self) -> None:
        self._ended(None)

    def _ended(self, failure: Failure | None) -> bool:
        drain = self._drain
        with self._lock:
            upstream = self._upstream
            ended = self._end(failure)
            if ended:
                self._arrived()
            elif self._closed:
                self._over, self._upstream = True, None
        if upstream is not None:
            upstream.ended()
        if ended:
            self.came()
            drain.end_came()
        return ended


def ours(subscription: Subscription, queue: PrefetchQueue) -> bool:
    """Whether it is a drain of ours that signals to `queue`, and says when it has subscribed to its upstreams."""
    subscription = Relayed.unwrapped(subscription)
    # By its owner: it is not yet closed.
    return isinstance(subscription, DrainContext) and subscription.behind() is queue
