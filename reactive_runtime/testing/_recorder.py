"""Records every signal between a publisher and its subscribers, in both directions, with its beginning and end.

A recorder stands between the two: what it passes to the publisher is a subscriber, what it passes to the
subscriber is a subscription, and each call through either becomes a row when it returns. Rows are kept in a
buffer of the thread that made the call, so that recording adds no lock, and with it no order, to what it looks
at. A full buffer goes to the sink, on the thread that filled it: a sink that can't keep up slows the load down,
and nothing is dropped. Rows of a thread that has ended go there when another begins, or with `flush`.

What is kept alive: the subscription that a subscriber gets here refers to what stands before the subscriber. So a
publisher that refers to a subscriber weakly when its stream is over still reaches the recorder with what it signals
late, as long as the subscriber has its subscription. Subscribers that have it no more, or can't be referred to weakly,
are kept by the recorder, the last `KEPT` whose stream is over, until they are settled. Where the subscriber is an
object of Java, its subscription does not refer to what stands before it: the two would keep each other for ever. The
bridge to Java asks for what is `recorded_in_its_place`, and the publisher of Java keeps that: a late signal is recorded
also where the subscriber is gone, and goes to the hook of what is dropped.

Cost: less than a microsecond a signal, the files included (`benchmarks/recorder.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from struct import error as StructError
from typing import Any, Final, Generic, TypeVar
from weakref import ref

from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import at_least
from reactive_runtime._core.sources.naming import kind_of
from reactive_runtime._spec import MAX_DEMAND, Publisher, Subscriber, Subscription
from reactive_runtime.errors import ReactiveError
from reactive_runtime.testing._buffers import (
    CANCEL,
    NONE,
    ON_COMPLETE,
    ON_ERROR,
    ON_NEXT,
    ON_SUBSCRIBE,
    REQUEST,
    SETTLED,
    SIGNALS,
    SUBSCRIBE,
    Buffer,
    Buffers,
    Checkpoint,
    Chunk,
    Life,
    Packed,
    Row,
    Sink,
    comes_true,
    demand_of,
    depth_of,
    hash_of,
    pack,
    text_of,
)
from reactive_runtime.testing._protocol import check_publisher, meeting, shown
from reactive_runtime.testing._records import CUT, Record, Signal, SubscriptionMetadata, allowed_late

__all__ = ["Checkpoint", "Chunk", "Recorder", "Row", "Sink"]

T = TypeVar("T")

CHUNK: Final = 10_000
"""Rows that a thread gathers before it hands them to the sink."""

KEPT: Final = 1_000
"""Subscribers that are kept for what is signalled to them late."""

PATIENCE: Final = 1.0
"""Seconds that a look waits for threads that are in the middle of a row."""

LONG: Final = 10.0
"""Seconds that a look waits for them which can't do without."""


class Recorder:
    """Records a run.

    It keeps rows, until they are with the sink, and a few fields of each subscription. What a publisher signals late,
    after the end or a cancel, is recorded as well, also where the publisher refers to its subscriber only weakly from
    then on. For that, what stands before the subscriber is kept by the subscription that the subscriber has. Of
    subscribers that have not kept it, or can't be referred to weakly (`__slots__` without `__weakref__`), the recorder
    keeps the last 1,000 whose stream is over, until `settle`. Any other subscriber can be collected when its publisher
    has released it. Of a subscriber of Java with a publisher of Java, late signals are recorded, and go to the hook of
    what is dropped.

    Args:
        run: The name of the run, in every record.
        sink: Receives full chunks, on the threads that filled them, without a lock held. None: all is kept, for
            `records`. What it raises is not for the publisher in mid-signal: the first is kept, nothing is handed to
            the sink after it, and `flush` raises it.
        pace: Called on a thread that has a full chunk, before that is taken from its buffer; it returns when there is
            room for it.
        subscriptions: A list that is filled with what is known of each subscription, at its number. None: a new one.
    """

    def __init__(
        self,
        run: str = "run",
        sink: Sink | None = None,
        *,
        pace: Callable[[], object] | None = None,
        subscriptions: list[SubscriptionMetadata] | None = None,
    ) -> None:
        self.run = run
        # _lock for writing; index: the number of the subscription
        self.subscriptions: list[SubscriptionMetadata] = [] if subscriptions is None else subscriptions
        # Each operation on it is atomic. By scenario: the type of its first element that can't be compared.
        self.uncompared: dict[str, str] = {}
        self._lock = primitives.RLock()  # a collection of garbage, while it is held, may end what signals then
        self._buffers: list[Buffer] = []  # _lock; of the threads that run, and of those that ended since the last began
        self._kept: list[Chunk] = []  # _lock
        self._failure: Exception | None = None  # _lock; the first that the sink raised
        # Each operation on it is atomic; a signal waits for no lock. Whose stream is over, and may be signalled late.
        self._late: deque[_RecordedSubscriber[Any]] = deque(maxlen=KEPT)
        self._sink = sink or self._keep
        self._pace = pace
        self._local = Buffers()
        self._local.made = self._buffer
        self._draw = primitives.tickets()

    def wrap(
        self,
        publisher: Publisher[T],
        scenario: str = "",
        *,
        shared_callers: bool = False,
        ascending: bool = False,
        elements: int | None = None,
        late_signals: int | None = None,
    ) -> RecordedPublisher[T]:
        """`publisher`, each subscription of which is recorded.

        Args:
            publisher: The publisher to record.
            scenario: Its name, in every record.
            shared_callers: Whether many threads call `request` and `cancel` on purpose: then 2.7 is not judged.
            ascending: Whether the elements are ints, of any size, each larger than the one before: a repeat breaks
                conservation, a smaller one the order. An element that is no int is not compared.
            elements: How many elements the publisher has for each subscription. None: that is not known.
            late_signals: How many signals may begin after a cancel from outside has returned, 0 to 15. None: as the
                judge has it.

        Returns:
            A publisher, to which subscribers subscribe in its place.

        Raises:
            TypeError: `publisher` has no `subscribe`, or a number is no int.
            ValueError: `elements` is below 0 or above 2**63 - 1, or `late_signals` not from 0 to 15.
        """
        check_publisher("wrap", publisher)
        if elements is not None and at_least("wrap", "elements", 0, elements) > MAX_DEMAND:  # a trace has 64 bits
            raise ValueError(f"wrap: elements must be at most 2**63 - 1, not {elements}")
        if late_signals is not None:
            allowed_late("wrap", late_signals)
        metadata = SubscriptionMetadata(
            -1,
            scenario,
            shared_callers=shared_callers,
            ascending=ascending,
            elements=elements,
            late_signals=late_signals,
        )
        return RecordedPublisher(self, publisher, metadata)

    def settle(self, subscriptions: Iterable[int] | None = None) -> None:
        """Record that nothing which could still signal these subscriptions is running.

        Their calls that have not returned count as calls that never will, and their subscribers are released.

        Args:
            subscriptions: Their numbers. None: all.

        Raises:
            ValueError: There is no subscription with one of these numbers. Nothing is recorded then.
        """
        with self._lock:
            every = range(len(self.subscriptions))
        numbers: Collection[int] = every if subscriptions is None else list(subscriptions)
        unknown = [number for number in numbers if number not in every]
        if unknown:
            raise ValueError(f"settle: {shown(unknown[0])} is no subscription: there are {len(every)}, numbered from 0")
        for number in numbers:
            buffer = self._local.buffer
            drawing, buffer.drawing = buffer.drawing, True
            ticket, ns = self._draw(), primitives.now_ns()
            buffer.rows.append(pack(number, SETTLED, 0, ticket, self._draw(), ns, ns, 0))
            buffer.drawing = drawing
            if len(buffer.rows) >= CHUNK:
                self._full(buffer)
        self._release(numbers)

    def _release(self, numbers: Collection[int]) -> None:
        """Keep these subscribers no longer."""
        over = frozenset(numbers) if self._late else ()
        for _ in range(len(self._late)):
            try:
                recorded = self._late.popleft()
            except IndexError:  # another thread releases too
                return
            if recorded._number not in over:
                self._late.append(recorded)

    def flush(self) -> None:
        """Hand what is left to the sink.

        A call that has not returned is recorded with an `end` of None, and stays so: its return is no longer
        recorded. Call this at the end of a run, or when the recorded threads are quiet.

        Raises:
            Exception: What the sink has raised, then or before.
        """
        for buffer in self._all_buffers():
            self._hand_over(buffer, final=True)
        with self._lock:
            failure = self._failure
        if failure is not None:
            raise failure

    def checkpoint(self, *, patience: float = PATIENCE) -> Checkpoint | None:
        """Hand what there is to the sink, and say up to which ticket that is all there was.

        Args:
            patience: Seconds to wait for threads that are in the middle of a row.

        Returns:
            The ticket, and the calls that were under way. None where a thread was in the middle of a row for all of
            `patience`: then nothing is known, and what was handed over stays so.

        Thread:
            Any that is not inside the sink; the sink is called on it. The recorded threads go on meanwhile.
        """
        ticket = self._draw()
        over = primitives.monotonic() + patience
        buffers = self._all_buffers()
        under_way: list[tuple[int, tuple[Any, ...]]] = []
        for buffer in buffers:
            if not comes_true(buffer.at_rest, over):
                return None
            calls = self._hand_over(buffer)
            under_way += [(buffer.thread, row) for row in calls if row[3] <= ticket]
        if not all(comes_true(buffer.delivered_all, over) for buffer in buffers):
            return None
        return Checkpoint(ticket, under_way)

    def records(self) -> list[Record]:
        """All that was recorded up to now, in order of `begin`; for recorders without a sink.

        It may be called in the middle of a run: there is no gap before the latest record, so `check` claims nothing of
        it that may still come.

        Returns:
            The records. Calls that have not returned are among them, with an `end` beyond all tickets, and a later call
            of `records` may find when they returned. Where their subscription was settled since they began, or after
            `flush`, they have an `end` of None: they never will.

        Raises:
            ReactiveError: A thread was in the middle of a row for 10 seconds.

        Thread:
            Any. The recorded threads go on meanwhile.
        """
        ticket, mine = self._draw(), primitives.get_ident()
        over = primitives.monotonic() + LONG
        buffers = self._all_buffers()
        found: list[Record] = []
        calls: list[Record] = []
        for buffer in buffers:
            if buffer.thread != mine and not comes_true(buffer.at_rest, over):
                raise ReactiveError(
                    f"records: thread {buffer.thread} was in the middle of a row for {LONG:g} s: try again"
                )
            calls.extend(self.record_of(buffer.thread, row) for row in self._hand_over(buffer))
        if self._sink == self._keep:  # what another look has taken is about to be there
            for buffer in buffers:
                comes_true(buffer.delivered_all, over)
        with self._lock:
            chunks = list(self._kept)
        found.extend(self.record_of(chunk.thread, row) for chunk in chunks for row in chunk.rows)
        # A call that was under way when it was looked at, and has returned since, was found twice.
        known = {record.begin for record in found}
        settled = {record.subscription: record.begin for record in found if record.signal == Signal.SETTLED}
        for call in calls:
            if call.begin not in known:
                never = settled.get(call.subscription, 0) > call.begin
                found.append(call if never else call._replace(end=CUT))
        # A later record may follow from one that is not here: a request of a thread that was looked at before.
        return sorted((record for record in found if record.begin <= ticket), key=lambda record: record.begin)

    def record_of(self, thread: int, row: tuple[Any, ...]) -> Record:
        """The record of a row.

        Args:
            thread: The thread that recorded it: that of its chunk.
            row: The fields of `Row`.

        Returns:
            The record.
        """
        number, signal, n, begin, end, begin_ns, end_ns, value, error, depth = row
        metadata = self.subscriptions[number]
        return Record(
            self.run,
            metadata.scenario,
            number,
            metadata.shared_callers,
            metadata.ascending,
            metadata.elements,
            thread,
            SIGNALS[signal].value,
            n,
            begin,
            end,
            begin_ns,
            end_ns,
            value if type(value) is int else None,
            error,
            depth,
            metadata.late_signals,
            value is NONE,
        )

    def drawn(self) -> int:
        """A ticket: how many there have been. A signal draws one when it begins and one when it ends.

        Returns:
            The ticket, above all that were drawn before.

        Thread:
            Any.
        """
        return self._draw()

    def _keep(self, chunk: Chunk) -> None:
        with self._lock:
            self._kept.append(chunk)

    def _full(self, buffer: Buffer) -> None:
        if self._pace is not None:
            self._pace()
        if not buffer.is_taken():  # else, or with its next row
            self._hand_over(buffer)

    def _hand_over(self, buffer: Buffer, final: bool = False) -> list[tuple[Any, ...]]:
        """Bring its rows to the sink; returns the calls under way. `final`: those go there too."""
        rows, under_way = buffer.take(final)
        try:
            self._deliver(buffer.thread, [*rows, *under_way] if final else rows)
        finally:
            buffer.delivered()
        return under_way

    def _deliver(self, thread: int, rows: Sequence[Packed]) -> None:
        if not rows or self._failure is not None:  # a stale None costs one more call of a sink that fails
            return
        try:
            self._sink(Chunk(thread, rows))
        except Exception as error:
            with self._lock:
                self._failure = self._failure or error

    def _buffer(self, life: Life) -> Buffer:
        """A buffer for the thread that calls. Rows of ended threads go to the sink: memory stays bounded."""
        buffer = Buffer(life)
        with self._lock:
            ended = [item for item in self._buffers if item.ended()]
            self._buffers.append(buffer)
        handed = []
        for entry in ended:
            if not entry.is_taken():  # else a later look does: this thread may be about to, if a collection signals
                self._hand_over(entry)
                handed.append(entry)
        if handed:  # a look must find them until all they had is with the sink
            with self._lock:
                self._buffers = [item for item in self._buffers if item not in handed or not item.delivered_all()]
        return buffer

    def _all_buffers(self) -> list[Buffer]:
        with self._lock:
            return list(self._buffers)

    def _number(self, metadata: SubscriptionMetadata) -> SubscriptionMetadata:
        with self._lock:
            numbered = replace(metadata, subscription=len(self.subscriptions))
            self.subscriptions.append(numbered)
        return numbered


class _Recorded:
    """Calls through to the other side, and records the call."""

    __slots__ = ("_draw", "_local", "_number", "_recorder")

    def __init__(self, recorder: Recorder, number: int) -> None:
        self._recorder = recorder
        self._number = number
        self._draw = recorder._draw
        self._local = recorder._local

    def _call(self, signal: int, call: Callable[..., Any], n: int | None, error: str | None, *arguments: Any) -> None:
        buffer, draw, now = self._local.buffer, self._draw, primitives.now_ns
        drawing, buffer.drawing = buffer.drawing, True  # it is True inside of what a collection calls, if that signals
        begin, begin_ns = draw(), now()
        number, outer, depth = self._number, buffer.call, 0
        if outer is not None:
            depth = outer[5] + 1 if outer[0] == number else depth_of(outer, number)
        buffer.call = (number, signal, n, begin, begin_ns, depth, outer)
        buffer.drawing = drawing
        try:
            call(*arguments)
        except BaseException as raised:
            error = f"raised {text_of(raised)}"
            raise
        finally:
            rows, buffer.drawing = buffer.rows, True
            value = NONE if arguments and arguments[0] is None and signal != REQUEST else None
            if error is None and value is None and (n is not None or signal != REQUEST):
                rows.append(pack(number, signal, n or 0, begin, draw(), begin_ns, now(), depth))
            else:
                rows.append((number, signal, n, begin, draw(), begin_ns, now(), value, error, depth))
            buffer.call = outer  # after the row is there
            buffer.drawing = drawing  # as it was at the beginning: each call inside has put it back
            if len(rows) >= CHUNK:
                self._recorder._full(buffer)


class RecordedPublisher(Generic[T]):
    """A publisher whose subscriptions are recorded, each under a number of its own."""

    def __init__(self, recorder: Recorder, publisher: Publisher[T], metadata: SubscriptionMetadata) -> None:
        self._recorder = recorder
        self._publisher = publisher
        self._metadata = metadata

    def subscribe(self, subscriber: Subscriber[T], /) -> int:
        """Subscribe through the recorder; returns the number of the subscription."""
        if subscriber is None:
            raise TypeError("subscribe(None): a Subscriber is needed (1.9)")
        on_next = subscriber.on_next  # what is no subscriber fails here, before it has a number
        number = self._recorder._number(self._metadata).subscription
        recorded = _RecordedSubscriber(self._recorder, number, subscriber, on_next)
        recorded._call(SUBSCRIBE, self._publisher.subscribe, None, None, recorded)
        return number


class _Link(ref["_RecordedSubscription"]):
    """A subscription that keeps what stands before its subscriber. A collection of both together does not call back."""

    __slots__ = ("kept",)

    kept: ref[_RecordedSubscriber[Any]]


def _dropped(link: ref[Any]) -> None:
    """The subscriber has its subscription no more."""
    assert isinstance(link, _Link)
    recorded = link.kept()
    if recorded is not None:
        recorded._dropped()


class _RecordedSubscriber(_Recorded, Generic[T]):
    __slots__ = ("__weakref__", "_ascending", "_links", "_on_next", "_over", "_subscriber")

    def __init__(
        self, recorder: Recorder, number: int, subscriber: Subscriber[T], on_next: Callable[[T], object]
    ) -> None:
        super().__init__(recorder, number)
        self._subscriber = subscriber
        self._on_next = on_next
        self._over = False  # True from the first end or cancel on; two that come at once both write it
        self._ascending: bool = recorder.subscriptions[number].ascending
        self._links: list[_Link] = []  # to each subscription; each operation on it is atomic

    @property
    def shown_as(self) -> str:
        """The subscriber is the user's."""
        return kind_of(self._subscriber)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        # 2.13: a None is for the subscriber to answer.
        recorded = None if subscription is None else _RecordedSubscription(self, subscription)
        if recorded is not None and type(self._subscriber).__weakrefoffset__ and not self.is_foreign:
            link = _Link(recorded, _dropped)
            link.kept = ref(self)
            self._links.append(link)
        self._call(ON_SUBSCRIBE, self._subscriber.on_subscribe, None, None, recorded)

    def on_next(self, element: T, /) -> None:
        # `_call`, written out: this is the path of every element.
        buffer, draw, now = self._local.buffer, self._draw, primitives.now_ns
        drawing, buffer.drawing = buffer.drawing, True
        begin, begin_ns = draw(), now()
        number, outer, depth = self._number, buffer.call, 0
        if outer is not None:
            depth = outer[5] + 1 if outer[0] == number else depth_of(outer, number)
        buffer.call = (number, ON_NEXT, None, begin, begin_ns, depth, outer)
        buffer.drawing = drawing
        error = None
        try:
            self._on_next(element)
        except BaseException as raised:
            error = f"raised {text_of(raised)}"
            raise
        finally:
            value = element if type(element) is int else self._value(element)
            rows, buffer.drawing = buffer.rows, True
            end, end_ns = draw(), now()
            if error is None and value is not NONE:
                try:
                    rows.append(pack(number, ON_NEXT, value, begin, end, begin_ns, end_ns, depth))
                except StructError:  # it is an int beyond 64 bits, or has no value
                    rows.append((number, ON_NEXT, None, begin, end, begin_ns, end_ns, value, None, depth))
            else:
                rows.append((number, ON_NEXT, None, begin, end, begin_ns, end_ns, value, error, depth))
            buffer.call = outer
            buffer.drawing = drawing
            if len(rows) >= CHUNK:
                self._recorder._full(buffer)

    def _value(self, element: object) -> int | None:
        """An element that is no plain int: as an int where it is one of a subclass, else its hash, without an order."""
        if element is None:
            return NONE
        if isinstance(element, int):
            return int.__int__(element)
        if self._ascending:
            scenario = self._recorder.subscriptions[self._number].scenario
            self._recorder.uncompared.setdefault(scenario, type(element).__name__)
            return None
        return hash_of(element)

    def on_error(self, error: BaseException, /) -> None:
        self.over()
        self._call(ON_ERROR, self._subscriber.on_error, None, text_of(error), error)

    def on_complete(self) -> None:
        self.over()
        self._call(ON_COMPLETE, self._subscriber.on_complete, None, None)

    @property
    def is_foreign(self) -> bool:
        """Whether the subscriber stands for an object of another runtime; the bridge to Java says so of its own."""
        return getattr(self._subscriber, "is_foreign", False) is True

    def recorded_in_its_place(self, instead: Subscriber[T]) -> Subscriber[T]:
        """`instead`, recorded as this subscriber is; a publisher that has released this one may keep it.

        The bridge to Java does, for what is signalled late. It does not refer to the subscriber.
        """
        inner = getattr(type(self._subscriber), "recorded_in_its_place", None)
        if inner is not None:  # it is recorded twice
            instead = inner(self._subscriber, instead)
        return _RecordedSubscriber(self._recorder, self._number, instead, instead.on_next)

    def meeting_in_on_next(self, both: primitives.Barrier) -> Callable[[Any], object]:
        """See `reactive_runtime.testing._protocol.meeting`."""
        inside = meeting(self._subscriber, both)
        return _RecordedSubscriber(self._recorder, self._number, self._subscriber, inside).on_next

    def over(self) -> None:
        """The publisher releases this from now on. Late signals are still recorded."""
        if self._over:
            return
        self._over = True
        if not type(self._subscriber).__weakrefoffset__:
            self._recorder._late.append(self)
        else:
            self._dropped()

    def _dropped(self) -> None:
        """Where no subscription keeps this from now on, the recorder does."""
        if self._over and self._links and all(link() is None for link in self._links):
            self._recorder._late.append(self)


class _RecordedSubscription(_Recorded):
    __slots__ = ("__weakref__", "_subscriber", "_subscription")

    def __init__(self, subscriber: _RecordedSubscriber[Any], subscription: Subscription) -> None:
        super().__init__(subscriber._recorder, subscriber._number)
        # It is there for as long as its own subscriber has this. Where that is an object of another runtime, the two
        # would keep each other for ever: no collection sees both.
        self._subscriber = None if subscriber.is_foreign else subscriber
        self._subscription = subscription

    def request(self, n: int, /) -> None:
        kept = n if type(n) is int and 0 <= n <= MAX_DEMAND else demand_of(n)
        self._call(REQUEST, self._subscription.request, kept, None, n)

    def cancel(self) -> None:
        if self._subscriber is not None:
            self._subscriber.over()
        self._call(CANCEL, self._subscription.cancel, None, None)
