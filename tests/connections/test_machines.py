"""What shares a source, as state machines: any order of what both sides may do, each step held to a model.

After every step: each subscriber has had what it asked for and nothing else, in one order and from the place where it
came in; exactly one end; the buffers are bounded; the source is asked as soon as there is room; it is subscribed to
once, and by none when none is left.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from connections.parties import Expected, Hand, Held, Listener
from reactive_runtime import Disposable, Emitter, Flow, hooks
from reactive_runtime._flow import ConnectableFlow
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.executors import TrampolineExecutor
from reactive_runtime.hot import (
    BehaviorProcessor,
    EmitResult,
    PublishProcessor,
    ReplayProcessor,
    SubmissionPublisher,
    UnicastProcessor,
)

EFFORT = settings(max_examples=60, stateful_step_count=30)

DEMANDS = st.sampled_from([0, 1, 2, 3, MAX_DEMAND])
CANCELS_IN = st.sampled_from([-1, -1, -1, 0, 1, 2])
PICK = st.integers(0, 9)
ENDS = st.builds(lambda fails: OSError("broken") if fails else None, st.booleans())  # each its own error


def end_of(error: BaseException | None) -> Any:
    return "complete" if error is None else error


class Machine(RuleBasedStateMachine):
    """Subscribers that come, ask and go."""

    def __init__(self) -> None:
        super().__init__()
        self.flow: Any = None
        self.members: list[Expected] = []
        self.number = 0
        self.dropped: list[BaseException | None] = []
        self.failures: dict[BaseException, bool] = {}  # and whether it has to be at the hook
        self.handler = hooks.set_handler(lambda dropped: self.dropped.append(dropped.error))

    def teardown(self) -> None:
        hooks.set_handler(self.handler)

    def fails(self, error: BaseException | None, *, lost: bool = False) -> None:
        """The source does; `lost`: there is no subscriber, nor will there be one that gets the error."""
        if error is not None:
            self.failures[error] = lost

    def before(self, error: BaseException) -> list[Expected] | None:
        """Those that have the error before them, or had; None: it is kept for those who come later."""
        return [member for member in self.members if member.end is error]

    @invariant()
    def an_error_that_comes_to_none_goes_to_the_hook_once(self) -> None:
        for error in self.failures:
            before = self.before(error)
            if before and not any(member.ended or not member.gone for member in before):
                self.failures[error] = True
            assert self.dropped.count(error) == self.failures[error]

    def came(self, expected: Expected) -> None:
        """The model of one more subscriber."""

    def begins(self, listener: Listener) -> Expected:
        """What it will get, known before it subscribes."""
        raise NotImplementedError

    def settle(self) -> None:
        """Everything there is to do has been done, and those who leave leave."""
        for member in self.members:
            member.settle()

    @rule(demand=DEMANDS, cancels_in=CANCELS_IN, asks=st.booleans())
    def subscribe(self, demand: int, cancels_in: int, asks: bool) -> None:
        listener = Listener(demand, cancels_in=cancels_in, asks=asks)
        expected = self.begins(listener)
        self.members.append(expected)
        self.flow.subscribe(listener)
        self.came(expected)
        self.settle()

    @precondition(lambda self: self.members)
    @rule(pick=PICK, n=st.integers(1, 4))
    def request(self, pick: int, n: int) -> None:
        member = self.members[pick % len(self.members)]
        member.listener.subscription.request(n)
        member.demand = min(member.demand + n, MAX_DEMAND)
        self.settle()

    @precondition(lambda self: self.members)
    @rule(pick=PICK)
    def cancel(self, pick: int) -> None:
        member = self.members[pick % len(self.members)]
        member.listener.subscription.cancel()
        member.gone = True
        self.settle()

    @invariant()
    def all_have_had_what_is_due(self) -> None:
        for member in self.members:
            member.check()

    def next(self) -> int:
        """The next element."""
        self.number += 1
        return self.number


class Connection:
    """The model of one subscription to a shared source."""

    def __init__(self, replay: int | None) -> None:
        self.held: Held | None = None
        self.members: list[Expected] = []
        self.counted: list[Expected] = []
        self.history: deque[Any] = deque(maxlen=replay)
        self.over = False
        self.end: Any = None

    def room(self, capacity: int) -> int:
        waiting = [member.waiting() for member in self.members if not member.gone]
        return capacity - max(waiting, default=0)


class Sharing(Machine):
    """A source that several share: `capacity` elements wait for each, and late ones begin with `replay`."""

    capacity: ClassVar[int | None] = 3
    replay: ClassVar[int | None] = 0
    keeps: ClassVar[bool] = False
    counts: ClassVar[int] = 0  # connects with so many; 0: by hand
    stays: ClassVar[bool] = False

    def made(self, source: Flow[int]) -> Flow[int]:
        raise NotImplementedError

    @initialize()
    def make(self) -> None:
        self.hand = Hand()
        self.present = Connection(self.replay)
        self.connections = [self.present]
        self.flow = self.made(Flow.from_publisher(self.hand))

    # -- the model ---------------------------------------------------------------------------------------------

    def anew(self) -> None:
        self.present = Connection(self.replay)
        self.connections.append(self.present)

    def begins(self, listener: Listener) -> Expected:
        if self.present.over and not self.keeps:
            self.anew()
        expected = Expected(listener, self.present.history)
        expected.end = self.present.end
        if not self.present.over:
            self.present.members.append(expected)
        self.entered = self.present
        return expected

    def came(self, expected: Expected) -> None:
        if not self.counts or not expected.listener.cancels_in:
            return
        self.entered.counted.append(expected)
        if len(self.entered.counted) >= self.counts and not self.entered.held and not self.entered.over:
            self.connected(self.entered)

    def connected(self, connection: Connection) -> None:
        """The source has just been subscribed to."""
        connection.held = self.hand.held[-1]
        assert connection.held not in [item.held for item in self.connections if item is not connection]
        if self.hand.empty:
            self.ends(connection, None)

    def ends(self, connection: Connection, error: BaseException | None) -> None:
        connection.over, connection.end = True, end_of(error)
        for member in connection.members:
            member.end = connection.end

    def settle(self) -> None:
        super().settle()
        for connection in self.connections:
            connection.members = [member for member in connection.members if not member.gone]
            before, connection.counted = connection.counted, [item for item in connection.counted if not item.gone]
            if before and not connection.counted and not self.stays and not connection.over:
                self.disconnected(connection)

    def disconnected(self, connection: Connection) -> None:
        if connection is self.present:
            self.anew()
        connection.over = True  # for the model: there will be no more, and no end either
        connection.end = None

    # -- the source --------------------------------------------------------------------------------------------

    @precondition(lambda self: any(held.demand for held in self.hand.live()))
    @rule()
    def emit(self) -> None:
        held = next(held for held in self.hand.live() if held.demand)
        connection = next(item for item in self.connections if item.held is held)
        element = self.next()
        for member in connection.members:
            member.due.append(element)
        connection.history.append(element)
        held.emit(element)
        self.settle()

    @precondition(lambda self: self.hand.live())
    @rule(error=ENDS)
    def end(self, error: BaseException | None) -> None:
        held = self.hand.live()[0]
        self.ends(next(connection for connection in self.connections if connection.held is held), error)
        self.fails(error, lost=not self.keeps and not any(member.end is error for member in self.members))
        held.end(error)
        self.settle()

    def before(self, error: BaseException) -> list[Expected] | None:
        return None if self.keeps else super().before(error)

    @rule(empty=st.booleans())
    def the_next_source_is_empty(self, empty: bool) -> None:
        self.hand.empty = empty

    # -- what must hold ----------------------------------------------------------------------------------------

    @invariant()
    def one_source_and_none_that_is_not_wanted(self) -> None:
        live = self.hand.live()
        wanted = [
            connection.held for connection in self.connections if connection.held is not None and not connection.over
        ]
        assert live == wanted
        assert len(live) <= 1
        assert len(self.hand.held) == sum(connection.held is not None for connection in self.connections), (
            "subscribed to once too often"
        )

    @invariant()
    def the_source_is_asked_for_what_there_is_room_for(self) -> None:
        for connection in self.connections:
            held = connection.held
            if held is None or connection.over:
                continue
            if self.capacity is None:
                assert held.demand == MAX_DEMAND
                continue
            room = connection.room(self.capacity)
            assert held.demand <= room, "more may come than there is room for"
            if connection.members:
                assert held.demand or not room, "there is room, and the source is not asked"


class ByHand(Sharing):
    """`connect` and its handle's `cancel`, as often as you like."""

    flow: ConnectableFlow[int]

    def __init__(self) -> None:
        super().__init__()
        self.handles: list[tuple[Disposable, Connection]] = []

    @rule()
    def connect(self) -> None:
        if self.present.over:
            self.anew()
        connection, first = self.present, self.present.held is None
        handle = self.flow.connect()
        if first:
            self.connected(connection)
        self.handles.append((handle, connection))
        self.settle()

    @precondition(lambda self: self.handles)
    @rule(pick=PICK)
    def disconnect(self, pick: int) -> None:
        handle, connection = self.handles[pick % len(self.handles)]
        handle.cancel()
        if not connection.over:
            self.disconnected(connection)
        self.settle()


class Publish(ByHand):
    def made(self, source: Flow[int]) -> Flow[int]:
        return source.publish(capacity=3)


class Replay(ByHand):
    replay = 2
    keeps = True

    def made(self, source: Flow[int]) -> Flow[int]:
        return source.replay(2, capacity=3)


class Share(Sharing):
    counts = 1

    def made(self, source: Flow[int]) -> Flow[int]:
        return source.share(capacity=3)


class RefCountOfTwo(Sharing):
    capacity = 1
    counts = 2

    def made(self, source: Flow[int]) -> Flow[int]:
        return source.publish(capacity=1).ref_count(2)


class ReplayRefCount(Sharing):
    replay = 2
    keeps = True
    counts = 1

    def made(self, source: Flow[int]) -> Flow[int]:
        return source.replay(2, capacity=3).ref_count()


class Cache(Sharing):
    capacity = None
    replay = None
    keeps = True
    counts = 1
    stays = True

    def made(self, source: Flow[int]) -> Flow[int]:
        return source.cache()


class Processing(Machine):
    """A processor: fed by hand, or by one upstream."""

    capacity: ClassVar[int] = 2
    replay: ClassVar[int] = 0
    waits: ClassVar[bool] = True
    forgets: ClassVar[bool] = False
    unheard: BaseException | None = None  # it failed with this while there was no subscriber

    def made(self) -> Any:
        raise NotImplementedError

    @initialize()
    def make(self) -> None:
        self.flow = self.made()
        self.hand = Hand()
        self.history: deque[Any] = deque(maxlen=self.replay)
        self.over: Any = None
        self.held: Held | None = None
        self.byhand = False
        self.left: list[Expected] = []

    def begins(self, listener: Listener) -> Expected:
        expected = Expected(listener, self.history)
        expected.end = self.over
        return expected

    def present(self) -> list[Expected]:
        return [] if self.over is not None else [member for member in self.members if not member.gone]

    def settle(self) -> None:
        super().settle()
        leaving = [member for member in self.members if member.gone and member not in self.left]
        self.left += leaving
        if leaving and len(self.left) == len(self.members) and self.held is not None and self.over is None:
            self.unsubscribes()

    def unsubscribes(self) -> None:
        """The last subscriber has gone, and with it the upstream."""
        self.over = "complete"
        if self.forgets:
            self.history.clear()

    def emission(self) -> EmitResult:
        """What has to become of an element that is emitted by hand now."""
        present = self.present()
        if self.over is not None:
            return EmitResult.TERMINATED
        if not present and not self.replay:
            return EmitResult.NO_SUBSCRIBER
        if max((member.waiting() for member in present), default=0) >= self.capacity:
            return EmitResult.OVERFLOW
        return EmitResult.OK

    def put(self, element: int) -> None:
        for member in self.present():
            member.due.append(element)
        self.history.append(element)

    @rule()
    def emit(self) -> None:
        element, emission = self.next(), self.emission()
        if emission is EmitResult.OK:
            self.put(element)
            self.byhand = True
        assert self.flow.emit(element) is emission
        self.settle()

    @rule()
    def attach(self) -> None:
        refused = self.held is not None or self.over is not None
        self.hand.subscribe(self.flow)
        held = self.hand.held[-1]
        assert held.cancelled == refused
        if not refused:
            self.held = held

    @precondition(lambda self: self.hand.live() and self.held.demand)
    @rule()
    def upstream_emits(self) -> None:
        assert self.held is not None
        element = self.next()
        if self.present() or self.replay:
            self.put(element)
        self.held.emit(element)
        self.settle()

    def before(self, error: BaseException) -> list[Expected] | None:
        kept = (self.replay and not self.forgets) or error is self.unheard
        return None if kept else super().before(error)

    def ends(self, error: BaseException | None) -> None:
        if not self.present():
            self.unheard = error  # each of those who come later gets it
        for member in self.present():
            member.end = end_of(error)
        self.over = end_of(error)
        if self.forgets:
            self.history.clear()

    @precondition(lambda self: self.hand.live())
    @rule(error=ENDS)
    def upstream_ends(self, error: BaseException | None) -> None:
        assert self.held is not None
        self.ends(error)
        self.fails(error)
        self.held.end(error)
        self.settle()

    @precondition(lambda self: self.over is None and not self.hand.live())
    @rule(error=ENDS)
    def end_by_hand(self, error: BaseException | None) -> None:
        self.ends(error)
        self.fails(error)
        if error is None:
            self.flow.on_complete()
        else:
            self.flow.on_error(error)
        self.settle()

    @invariant()
    def the_upstream_is_released_with_the_last(self) -> None:
        if self.held is not None:
            assert self.held.live == (self.over is None)

    @invariant()
    def the_upstream_is_asked_for_what_there_is_room_for(self) -> None:
        if self.held is None or self.over is not None:
            return
        room = self.capacity - max((member.waiting() for member in self.present()), default=0)
        assert self.held.demand <= self.capacity
        if not self.byhand:
            assert self.held.demand <= room
        if self.present():
            assert self.held.demand or room <= 0

    @invariant()
    def it_counts_its_subscribers(self) -> None:
        assert self.flow.subscribers() == len(self.present())


class Published(Processing):
    def made(self) -> Any:
        return PublishProcessor(capacity=self.capacity)


class Replayed(Processing):
    replay = 2

    def made(self) -> Any:
        return ReplayProcessor(self.replay, capacity=self.capacity)


class Behaved(Processing):
    replay = 1
    forgets = True

    def made(self) -> Any:
        return BehaviorProcessor(0, capacity=self.capacity)

    @initialize()
    def make(self) -> None:
        super().make()
        self.history.append(0)


class Pushed(Machine):
    """`create`: each subscriber has an emitter of its own."""

    capacity: ClassVar[int] = 2

    @initialize(overflow=st.sampled_from(["error", "newest", "oldest"]))
    def make(self, overflow: Any) -> None:
        self.overflow = overflow
        self.emitters: list[Emitter[int]] = []
        self.cancelled: list[list[str]] = []
        self.flow = Flow.create(self.begin, overflow=overflow, capacity=self.capacity)

    def begin(self, emitter: Emitter[int]) -> None:
        log: list[str] = []
        self.emitters.append(emitter)
        self.cancelled.append(log)
        emitter.on_cancel(lambda: log.append("first"))
        emitter.on_cancel(lambda: log.append("second"))

    def begins(self, listener: Listener) -> Expected:
        return Expected(listener)

    def came(self, expected: Expected) -> None:
        assert len(self.emitters) == len(self.begun()), "called for one that has gone, or not called"

    def begun(self) -> list[Expected]:
        return [member for member in self.members if member.listener.cancels_in]

    def one(self, pick: int) -> tuple[Expected, Emitter[int]]:
        begun = self.begun()
        return begun[pick % len(begun)], self.emitters[pick % len(begun)]

    @precondition(lambda self: self.begun())
    @rule(pick=PICK)
    def emit(self, pick: int) -> None:
        member, emitter = self.one(pick)
        element = self.next()
        if member.gone:
            emission = EmitResult.CANCELLED
        elif member.end is not None:
            emission = EmitResult.TERMINATED
        elif member.waiting() < self.capacity or self.overflow == "oldest":
            emission = EmitResult.OK
            if member.waiting() == self.capacity:
                del member.due[member.got]
            member.due.append(element)
        else:
            emission = EmitResult.OVERFLOW
            if self.overflow == "error":
                member.end = "overflow"
        assert emitter.emit(element) is emission
        self.settle()
        if not member.gone and member.demand != MAX_DEMAND:
            assert emitter.demand() == member.demand - member.waiting()

    @precondition(lambda self: self.begun())
    @rule(pick=PICK, error=ENDS)
    def end(self, pick: int, error: BaseException | None) -> None:
        member, emitter = self.one(pick)
        self.fails(error, lost=member.gone or member.end is not None)
        ended = emitter.complete() if error is None else emitter.error(error)
        assert ended == (not member.gone and member.end is None)
        if ended:
            member.end = end_of(error)
        self.settle()

    @invariant()
    def all_have_had_what_is_due(self) -> None:
        for member in self.members:
            if member.end == "overflow" and member.ended:
                assert isinstance(member.listener.ends[0], OverflowError)
                member.end = member.listener.ends[0]
            member.check()

    @invariant()
    def who_has_gone_is_known_once(self) -> None:
        for member, emitter, log in zip(
            self.begun(), getattr(self, "emitters", ()), self.cancelled_logs(), strict=True
        ):
            assert emitter.is_cancelled() == member.gone
            assert log == (["first", "second"] if member.gone else [])

    def cancelled_logs(self) -> list[list[str]]:
        return getattr(self, "cancelled", [])


class Submitted(Machine):
    """`SubmissionPublisher`, on an executor that runs tasks where they are submitted."""

    capacity: ClassVar[int] = 2

    @initialize()
    def make(self) -> None:
        self.flow = self.publisher = SubmissionPublisher[int](TrampolineExecutor(), max_buffer=self.capacity)
        self.over: Any = None

    def begins(self, listener: Listener) -> Expected:
        expected = Expected(listener)
        expected.end = self.over
        return expected

    def present(self) -> list[Expected]:
        return [] if self.over is not None else [member for member in self.members if not member.gone]

    @precondition(lambda self: self.over is None)
    @rule(blocking=st.booleans())
    def give(self, blocking: bool) -> None:
        element = self.next()
        full = [member for member in self.present() if member.waiting() == self.capacity]
        for member in self.present():
            if member not in full:
                member.due.append(element)
        if blocking and not full:
            given = self.publisher.submit(element)
        else:
            told: list[int] = []
            given = self.publisher.offer(element, 0.0, on_drop=told.append)
            assert told == [element] * len(full)
        self.settle()
        most = max((member.waiting() for member in self.present()), default=0)
        assert given == (-len(full) if full else most)

    @precondition(lambda self: self.over is None)
    @rule(error=ENDS)
    def close(self, error: BaseException | None) -> None:
        self.early = self.present()
        self.fails(error)
        for member in self.present():
            member.end = end_of(error)
        self.over = end_of(error)
        if error is None:
            self.publisher.close()
        else:
            self.publisher.close_exceptionally(error)
        self.settle()

    def before(self, error: BaseException) -> list[Expected] | None:
        return self.early

    @invariant()
    def it_knows_its_subscribers(self) -> None:
        if not hasattr(self, "publisher"):
            return
        assert self.publisher.has_subscribers() == bool(self.present())
        assert self.publisher.estimate_maximum_lag() == max((item.waiting() for item in self.present()), default=0)


class Alone(Processing):
    """`UnicastProcessor`: one subscriber, and a buffer that fills before it comes."""

    def made(self) -> Any:
        return UnicastProcessor(capacity=self.capacity)

    @initialize()
    def make(self) -> None:
        super().make()
        self.seat = Expected(Listener())  # what waits until it comes

    def begins(self, listener: Listener) -> Expected:
        if self.members:
            return self.seat  # refused, see `subscribe`
        expected = Expected(listener)
        expected.due, expected.end = self.seat.due, self.seat.end
        self.seat = expected
        return expected

    @rule(demand=DEMANDS, cancels_in=CANCELS_IN, asks=st.booleans())
    def subscribe(self, demand: int, cancels_in: int, asks: bool) -> None:
        if self.members:
            refused = Listener(demand)
            self.flow.subscribe(refused)
            assert not refused.elements
            assert "has its one subscriber already" in str(refused.ends[0])
            return
        super().subscribe(demand, cancels_in, asks)

    def present(self) -> list[Expected]:
        return [] if self.over is not None or self.seat.gone else [self.seat]

    def settle(self) -> None:
        for member in self.members:
            member.settle()

    def emission(self) -> EmitResult:
        emission = super().emission()
        return EmitResult.CANCELLED if emission is EmitResult.NO_SUBSCRIBER else emission

    def ends(self, error: BaseException | None) -> None:
        self.seat.end = end_of(error)
        super().ends(error)

    def before(self, error: BaseException) -> list[Expected] | None:
        return [self.seat]

    @rule()
    def attach(self) -> None:
        refused = self.held is not None or self.over is not None or self.seat.gone
        self.hand.subscribe(self.flow)
        assert self.hand.held[-1].cancelled == refused
        if not refused:
            self.held = self.hand.held[-1]

    @invariant()
    def the_upstream_is_released_with_the_last(self) -> None:
        if self.held is not None:
            assert self.held.live == (self.over is None and not self.seat.gone)

    @invariant()
    def the_upstream_is_asked_for_what_there_is_room_for(self) -> None:
        if not self.seat.gone:
            super().the_upstream_is_asked_for_what_there_is_room_for()

    @invariant()
    def it_counts_its_subscribers(self) -> None:
        assert self.flow.subscribers() == (len(self.present()) if self.members else 0)


MACHINES: list[type[Machine]] = [
    Publish,
    Replay,
    Share,
    RefCountOfTwo,
    ReplayRefCount,
    Cache,
    Published,
    Replayed,
    Behaved,
    Alone,
    Pushed,
    Submitted,
]

for _machine in MACHINES:
    case: Any = _machine.TestCase
    case.settings = EFFORT
    globals()[f"Test{_machine.__name__}"] = case
del case
