"""The subscription of every publisher in the package: it drains an iterator to a subscriber, by demand.

    opening ──first turn──▶ active ──end, error, cancel, invalid demand──▶ closed (final, 1.6, 1.7)

The drain's owner moves the state; `request` and `cancel` only leave notes, from any thread (3.4, 3.5). The owner sees
first to an invalid demand or a cancel; then to elements, as many as are demanded; then to the end, as soon as it can be
known. The owner alone calls the subscriber, so signals are serial (1.3).

`request` and `cancel` also note an invalid demand or a cancel in `stopped`, which the loops look at after each element
without a lock. That look may be late by one element (1.8, 2.8), never wrong: the owner then reads under the lock what
to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import chain, islice
from operator import length_hint
from typing import Any, Final, Literal

from reactive_runtime._core.drains import trampoline
from reactive_runtime._core.drains.drain import BATCH, CLOSED
from reactive_runtime._core.drains.drain_context import WORK, DrainContext
from reactive_runtime._core.drains.pace import Pace
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import an_exception, caused, no_end, note_step
from reactive_runtime._core.failures.exits import Unwinding, goes_up
from reactive_runtime._core.failures.failure import Failure
from reactive_runtime._core.fusion.fuse import PENDING, chain_of, name_source, none_element, pulled
from reactive_runtime._core.fusion.step import Step, heard_above, note_end, release_held, show_watching
from reactive_runtime._core.queues.prefetch_queue import PrefetchQueue
from reactive_runtime._core.queues.upstream import Relayed
from reactive_runtime._core.runtime.sentinels import sentinel
from reactive_runtime._core.sources.naming import a_kind
from reactive_runtime._core.sources.pollable import Pollable, end_is_certain, paced
from reactive_runtime._spec import MAX_DEMAND, Subscriber
from reactive_runtime._support.shown import shown
from reactive_runtime.errors import RejectedError, SubscriberError

__all__ = ["PulledSubscription", "invalid_demand"]

_END: Final = sentinel("_END", __name__)


def invalid_demand(n: object) -> Exception:
    """The error of `request(n)`, where `n` is not valid (3.9)."""
    if isinstance(n, bool) or not isinstance(n, int):
        return TypeError(f"request({shown(n)}): demand is an int of at least 1, not a {type(n).__name__} (3.9)")
    return ValueError(f"request({shown(n)}): demand is at least 1, and adds up (3.9)")


class PulledSubscription(DrainContext):
    """Drains a pollable source, through steps, to one subscriber."""

    __slots__ = (
        "_ahead",
        "_cancelled",
        "_fault",
        "_on_next",
        "_pollable",
        "_pulled",
        "_source",
        "_steps",
        "_subscriber",
    )

    def __init__(
        self,
        subscriber: Subscriber[Any],
        pollable: Pollable,
        steps: Sequence[Step[Any, Any]] = (),
        executor: Executor | None = None,
        home: Executor | None = None,
    ) -> None:
        if executor is None and home is None and type(subscriber) is PrefetchQueue and subscriber.own:
            home = subscriber.drain().home
        super().__init__(executor, home)  # owned, by `start`, so that nothing is signalled before on_subscribe
        self._cancelled = False  # lock
        self._fault: Exception | None = None  # lock; an invalid demand to be answered
        # The drain's owner alone touches the rest. Closing drops all of it (3.13).
        self._subscriber: Subscriber[Any] | None = subscriber
        self._on_next: Callable[[Any], object] | None = None
        self._pollable: Pollable | None = pollable
        self._steps: Sequence[Step[Any, Any]] = [step.copy() for step in steps]
        self._source: Iterator[Any] | None = None  # what the pollable source opened
        self._pulled: Iterator[Any] | None = None  # the source through the steps, once elements are counted
        self._ahead = False  # one element was pulled in the search for the end, and waits in _pulled
        self._behind = _prefetch_queue_of(subscriber)
        if self._behind is not None:
            self._coming = 1  # itself, until it has subscribed to what it begins with
            self.waiter = self._behind.drain().waiter
        if type(subscriber) is PrefetchQueue and subscriber.own:
            self._root = subscriber.drain().root()
        if self.home is not None or type(subscriber) is PrefetchQueue:
            self.turns_at_most = WORK
        if self._steps:
            pollable.pace()
            show_watching(self, pollable, self._steps)
        pollable.heard = heard_above(self._steps, self._heard)
        pollable.attach(self)

    # -- the subscriber's side: any thread, at any time --------------------------------------------------------

    def request(self, n: int, /) -> None:
        """Add `n` to the demand; see `Subscription.request`."""
        if type(n) is not int or n < 1:
            if isinstance(n, bool) or not isinstance(n, int) or n < 1:
                self._note(invalid_demand(n))
                return
            n = int(n)  # of a subclass: an IntEnum
        self.add(n)

    def cancel(self) -> None:
        """Stop, eventually; see `Subscription.cancel`."""
        self._note(None)

    def fail(self, error: Exception) -> None:
        """End it with `error`, unless it ends before."""
        self._note(error)

    def _note(self, fault: Exception | None) -> None:
        """Leave a note to stop: for an invalid demand, or (None) for a cancel."""
        with self.lock:
            if self._cancelled or (fault is not None and self._fault is not None):
                return
            if fault is None:
                self._cancelled = True
            else:
                self._fault = fault
            self.stopped.append(True)
        self.end_came()

    def reads(self) -> tuple[Pollable | None, Sequence[Step[Any, Any]]]:
        """Its pollable source, and the steps: a look from any thread, for a message. None: it is closed."""
        return self._pollable, self._steps

    # -- the drain's side: its owner only ----------------------------------------------------------------------

    def start(self) -> None:
        """Signal `on_subscribe`, connect the pollable source, and let the drain go. Called once, by `subscribe`."""
        assert self._subscriber is not None
        assert self._pollable is not None
        try:
            self._subscriber.on_subscribe(self)
        except BaseException as error:
            try:
                self.subscriber_raised(error)
            except BaseException:
                self._close()
                self._end_for_good()
                raise
            self._launch()
        else:
            pollable = self._pollable
            expected = self._behind is not None and not pollable.combines  # else by none, or in its first turn
            with self.lock:
                stopped = bool(self.stopped)
            self._launch()
            if not stopped:  # else nothing is begun: the drain's own thread, which may be late, closes the source
                # Last: signals that the upstream sends right away find a drain that runs.
                trampoline.launch(partial(self._connect, pollable) if expected else pollable.connect)

    def _connect(self, pollable: Pollable) -> None:
        if type(pollable) is PrefetchQueue:  # it notes that it is expected; its elements may have no end
            self.came()
            pollable.connect()
        else:
            self._make(pollable.connect)

    def _first_turn(self, allowance: int) -> int:
        """An asynchronous operator subscribes to its upstreams when it first runs."""
        expected = self._behind is not None and self._pollable is not None and self._pollable.combines
        if not self._open():
            return CLOSED
        taken = self._turn(allowance)
        if expected and taken != CLOSED:
            self.came()
        return taken

    def _turn(self, allowance: int) -> int:
        if self._pollable is None:
            return CLOSED
        try:
            if self.stopped:
                return self._end()
            if self._source is None:
                return self._first_turn(allowance)
            if not allowance:
                return CLOSED if self._ended_early() else 0
            if self.pace is not None and allowance > self.pace.run:
                return self._run(self.pace, allowance)
            if allowance > BATCH and self._gives_way_after_a_batch():
                taken = self._emit(BATCH, allowance)
                if taken == BATCH:
                    self.spend()
                return taken
            if allowance == MAX_DEMAND and self._pulled is None and (drive := self._driver()) is not None:
                return self._drive(drive)
            return self._emit(allowance)
        except BaseException as error:  # no Exception: see `failures.exits`
            return self._exited(error)

    def _run(self, pace: Pace, allowance: int) -> int:
        """Deliver a run of the elements that are demanded, and look at the clock."""
        run = pace.next_run()
        taken = self._emit(run, allowance)
        if taken == run:
            self._cut = True
            if pace.end_run(self.home) and self.executor is None:
                self.spend()
        return taken

    def _gives_way_after_a_batch(self) -> bool:
        return self.home is not None or type(self._subscriber) is PrefetchQueue

    def _exited(self, error: BaseException) -> int:
        """An exit came out of a user's code, and ends the stream; where a user has called, it goes on up as well."""
        up = goes_up(error)
        if self._pollable is not None and isinstance(error, Unwinding):
            self._close()
            self._end_for_good()
        elif self._pollable is not None:
            note_step(error)
            with self.lock:
                cancelled = self._cancelled
            self._end(None if up and cancelled else an_exception(error))  # out of a signal: its caller gets it
        elif not up:
            dropping.error_dropped("an exit after the stream had ended", error)
        if up:
            raise error
        return CLOSED

    def _open(self) -> bool:
        assert self._pollable is not None
        assert self._subscriber is not None
        try:
            self._source = self._pollable.open()
        except Exception as error:
            self._end(error)
            return False
        # The elements were checked (2.13): a subscriber of ours may have a shorter way in.
        self._on_next = getattr(self._subscriber, "on_checked_next", self._subscriber.on_next)
        return True

    def _driver(self) -> Callable[..., bool] | None:
        """The loop without accounting, where the pollable source never has to wait."""
        assert self._pollable is not None
        if self._pollable.waits:
            return None
        return chain_of(tuple(map(type, self._steps))).drive if self._steps else _drive_plain

    def _drive(self, drive: Callable[..., bool]) -> int:
        try:
            ended = drive(self._source, self._steps, self, self._on_next)
        except Exception as error:
            return self._end(error)
        return self._end("complete" if ended else None)

    def _emit(self, allowance: int, demand: int = 0) -> int:
        """Deliver up to `allowance` elements, and the end, if it is known. `demand`: where there is more of it."""
        subscriber, pollable = self._subscriber, self._pollable
        assert subscriber is not None
        assert pollable is not None
        waiting = self._pulled
        elements = islice(self._elements() if waiting is None else waiting, allowance)
        self._ahead = False  # it is the first of them
        try:
            if type(pollable) is PrefetchQueue and not self._steps and type(subscriber) is not PrefetchQueue:
                taken, dry = self._hand_on_chunks(pollable, allowance)
            elif isinstance(subscriber, PrefetchQueue):  # a boundary of ours: the whole batch at once
                taken, dry = subscriber.absorb(elements, self, synchronous=pollable.synchronous() and not self._steps)
            elif pollable.queues and not self._steps:
                taken, dry = self._hand_on(elements)
            else:
                taken, dry = self._deliver(elements)
        except Exception as error:
            return self._end(error)
        if self.stopped:
            return self._end()
        if dry:
            pollable.request(self._upstream_demand(demand or allowance, taken))
            return taken
        if taken < allowance:  # the iterator came to its end
            return self._end("complete")
        if demand:
            return taken
        return CLOSED if self._ended_early() else taken

    def _deliver(self, elements: Iterator[Any]) -> tuple[int, bool]:
        """Signal the elements; return how many, and whether the pollable source has nothing for now."""
        on_next, stopped = self._on_next, self.stopped
        assert on_next is not None
        taken = 0
        for element in elements:
            if element is PENDING:
                return taken, True
            if element is None:
                raise none_element()
            taken += 1
            if stopped:
                self.too_late(element)
                break
            try:
                on_next(element)
            except BaseException as error:
                self.subscriber_raised(error)
                break
            if stopped:  # on_next may cancel
                break
        return taken, False

    def _hand_on_chunks(self, queue: PrefetchQueue, allowance: int) -> tuple[int, bool]:
        """`_hand_on`, for the elements of a boundary, at the least cost for each."""
        on_next, stopped = self._on_next, self.stopped
        assert on_next is not None
        left, chunk = allowance, queue.in_hand()
        while left and not stopped:
            there = length_hint(chunk)
            if not there:
                following = queue.next_chunk()
                if following is None:
                    return allowance - left, True
                chunk, there = following, length_hint(following)
                if not there:
                    break
            element: Any = self  # no element
            try:
                for element in chunk if there <= left else islice(chunk, left):
                    if element is None:
                        break
                    on_next(element)
                    if stopped:
                        break
            except BaseException as error:
                self.subscriber_raised(error)
            left -= there - length_hint(chunk)
            if element is None:
                raise none_element()
        return allowance - left, False

    def _hand_on(self, elements: Iterator[Any]) -> tuple[int, bool]:
        """`_deliver`, for elements that have been made already: no cancel comes while one is made."""
        on_next, stopped = self._on_next, self.stopped
        assert on_next is not None
        taken = 0
        for element in elements:
            if element is PENDING:
                return taken, True
            if element is None:
                raise none_element()
            taken += 1
            try:
                on_next(element)
            except BaseException as error:
                self.subscriber_raised(error)
                break
            if stopped:
                break
        return taken, False

    def _elements(self) -> Iterator[Any]:
        if self._pulled is None:
            assert self._source is not None
            assert self._pollable is not None
            source = self._source
            if self._steps and not self._pollable.waits and self._gives_way_after_a_batch():
                source = paced(source, self)
            self._pulled = pulled(source, self._steps, self)
        return self._pulled

    def _upstream_demand(self, allowance: int, taken: int) -> int:
        n = allowance if allowance == MAX_DEMAND else allowance - taken
        for step in reversed(self._steps):
            n = min(step.upstream_demand(n), MAX_DEMAND)
        return n

    def _ended_early(self) -> bool:
        """End the stream if it can have no further element, without waiting for demand to find out (2.9)."""
        pollable = self._pollable
        assert pollable is not None
        if pollable.waits:
            self.pulling(pollable.run_without_demand, demanded=False)
        if self._ahead or not end_is_certain(self._steps, pollable):
            return False
        try:
            element = self.pulling(partial(next, self._elements(), _END), demanded=False)
        except Exception as error:
            self._end(error)
            return True
        if element is PENDING:  # the end is for certain, and not here yet
            return False
        if element is _END:
            self._end("complete")
            return True
        self._pulled = chain((element,), self._elements())  # a step had something left over
        self._ahead = True
        return False

    def subscriber_raised(self, error: BaseException) -> None:
        """2.13: a subscriber that raises out of a signal has cancelled; the error goes to the hook, not back to it."""
        with self.lock:
            self._cancelled = True
            self.stopped.append(True)
        if goes_up(error):
            raise error
        what = f"{a_kind(self._subscriber)} raised out of a signal, and is cancelled (2.13)"
        dropping.error_dropped("a subscriber broke rule 2.13", _broke(what, error))

    def still_to_come(self) -> int | None:
        pollable = self._pollable
        if pollable is None:
            return 0
        return None if any(step.expands for step in self._steps) else pollable.still_to_come()

    def too_late(self, element: Any) -> None:
        """An element came out of the source, or a step, after `cancel` had returned, or an invalid demand."""
        assert self._pollable is not None
        dropping.element_dropped("it came after its stream was cancelled", element, self._pollable.heard)

    def rejected(self, error: RejectedError) -> None:
        with self.lock:
            cancelled = self._cancelled
        self._end(None if cancelled else error)
        self._left()

    def _end(self, outcome: Exception | Literal["complete"] | None = None) -> int:
        """Close, then notify the subscriber, unless it has cancelled. Without an outcome: because of a note."""
        with self.lock:
            cancelled, fault = self._cancelled, self._fault
        subscriber = self._subscriber
        assert subscriber is not None
        if isinstance(outcome, Exception) and self._pollable is not None:
            name_source(outcome, self._pollable.where)
        error = fault
        if outcome is not None and not cancelled:
            note_end(self._steps, outcome)
        if isinstance(outcome, Exception):
            note_step(outcome)
            if self._pollable is not None:
                self._pollable.note_source(outcome)
            error = no_end(outcome)
            if self.failed is None or not self.failed.is_signalled_as(error):
                self.failed = Failure(error)
        try:
            self._close()
        finally:  # an exit out of closing does not keep the subscriber from its end
            try:
                if not cancelled:
                    self._signal_end(subscriber, error, completed=isinstance(outcome, str))
                elif error is not None and not isinstance(error, RejectedError):  # it needs no executor any more
                    reason = "an error after the subscriber had cancelled"
                    (self.failed or Failure(error)).dropped(reason, error)
            finally:
                self._end_for_good()
        return CLOSED

    def _signal_end(self, subscriber: Subscriber[Any], error: Exception | None, *, completed: bool) -> None:
        try:
            if error is not None:
                subscriber.on_error(error)
            elif completed:
                subscriber.on_complete()
        except BaseException as raised:
            what = f"{a_kind(subscriber)} raised out of its last signal (2.13)"
            dropping.raised("a subscriber broke rule 2.13", _broke(what, raised))

    def _close(self) -> None:
        """Release source and subscriber (3.13)."""
        pollable, self._pollable = self._pollable, None
        steps, self._steps = self._steps, ()
        held: dropping.Held = []
        if self._ahead and self._pulled is not None and pollable is not None:
            held.append((next(self._pulled), pollable.heard))
        self._subscriber = self._on_next = self._pulled = self._source = None
        with self.lock:
            self._behind = None
            self.stopped.append(True)
            # A later call leaves a note that no thread reads (1.6, 3.6, 3.7); if an exit then makes the drain idle, the
            # next turn returns CLOSED.
            self._busy = True
        try:
            held = release_held(steps, self._heard) + held
        finally:
            try:
                if pollable is not None and pollable.combines:
                    trampoline.closes(pollable.close)
                elif pollable is not None:
                    pollable.close()
            finally:
                try:
                    self._release()
                finally:
                    dropping.held_dropped(held)


def _prefetch_queue_of(subscriber: Any) -> PrefetchQueue | None:
    while isinstance(subscriber, Relayed):
        subscriber = subscriber.subscriber
    return subscriber if type(subscriber) is PrefetchQueue else None


def _broke(what: str, error: BaseException) -> BaseException:
    """The error of a subscriber, as the hook gets it; an exit as it is."""
    return caused(SubscriberError(what), error) if isinstance(error, Exception) else error


def _drive_plain(
    upstream: Iterable[Any], steps: object, subscription: PulledSubscription, on_next: Callable[[Any], object]
) -> bool:
    """The driven loop of a pipeline without steps; see `fusion.fuse`."""
    stopped = subscription.stopped
    for element in upstream:
        if element is None:
            raise none_element()
        if stopped:
            subscription.too_late(element)
            return False
        try:
            on_next(element)
        except BaseException as error:
            subscription.subscriber_raised(error)
            return False
        if stopped:  # on_next may cancel
            return False
    return True
