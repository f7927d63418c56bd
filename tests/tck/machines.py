"""A publisher, subscribers and a processor as state machines, and every single change of one of their transitions.

A machine is a table: what is done (actions, by name) where an event comes in a state. A mutant changes one entry: an
action is dropped, done twice, done late (with the next transition), on another thread, or is changed so from its third
time on; a transition is made as in another state; or something is done where nothing is. What a mutant breaks was not
foreseen when the checks were written.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.tck import (
    IdentityProcessorVerification,
    PublisherVerification,
    SubscriberBlackboxVerification,
    SubscriberPuppet,
    SubscriberWhiteboxVerification,
    Verification,
)
from tck.sound import refuse_none

__all__ = ["KINDS", "MUTANTS", "Change", "Machine", "MachineMutant", "sound_machines"]

Row = tuple[str, str]
"""A state, and an event that comes in it."""

Table = dict[Row, tuple[str, ...]]

FAILURE = OSError("broken on purpose")


@dataclass(frozen=True)
class Change:
    """One change of one table."""

    row: Row
    what: str
    """dropped, doubled, late, elsewhere, dropped later, doubled later, as in, or added."""

    at: int = 0
    other: str = ""
    """The state whose transition is made instead, or the action that is added."""

    def name(self, table: Table) -> str:
        state, event = self.row
        if self.what == "as in":
            return f"{state}, {event}: as in {self.other}"
        if self.what == "added":
            return f"{state}, {event}: {self.other} added"
        return f"{state}, {event}: {table[self.row][self.at]} {self.what}"


CHANGES = ("dropped", "doubled", "late", "elsewhere", "dropped later", "doubled later")
LATER = 3
"""`later`: from so many times on; of a publisher, whichever subscription it is of."""

REPEATED = {"on_next", "request", "asked to request"}
"""What comes more than twice to one subscriber, or processor."""

CALLS = {
    "subscribe", "emit", "complete", "fail", "answer", "register", "cancel_it", "take", "replenish", "note_completion",
    "note_error", "request", "cancel", "join", "tell", "pass_on", "pass_the_error", "pass_the_end", "request_upstream",
    "cancel_upstream", "turn_away",
}  # fmt: skip
"""Actions that call out; the others write a field, and which thread does that makes no transition of its own."""


class Machine:
    """Runs the rows of a table. Each action is a method; `lock` owns what a subclass keeps."""

    TABLE: Table

    def __init__(self, change: Change | None = None, times: Counter[Row] | None = None) -> None:
        self.change = change
        self.lock = threading.RLock()
        self.times: Counter[Row] = Counter() if times is None else times
        self.postponed: list[Callable[[], object]] = []

    def make(self, state: str, event: str, *arguments: Any) -> None:
        """Make the transition of `event` in `state`."""
        change = self.change
        row = (state, event)
        if change is not None and change.what == "as in" and change.row == row:
            row = (change.other, event)
        postponed, self.postponed = self.postponed, []
        for action in postponed:
            action()
        actions = list(self.TABLE[row])
        if change is None or change.row != (state, event) or change.what == "as in":
            for name in actions:
                getattr(self, name)(*arguments)
            return
        self.times[row] += 1
        if change.what == "added":
            actions.append(change.other)
        later = self.times[row] >= LATER
        for at, name in enumerate(actions):
            action = partial(getattr(self, name), *arguments)
            what = change.what if at == change.at and change.what != "added" else ""
            if what.endswith(" later"):
                what = what.removesuffix(" later") if later else ""
            if what == "late":
                self.postponed.append(action)
            elif what == "elsewhere":
                thread = threading.Thread(target=action, name="elsewhere", daemon=True)
                signals_to = self.signals_to()
                thread.start()
                while thread.is_alive() and not self.has_begun(thread, signals_to):
                    thread.join(0.001)
            elif what == "doubled":
                action()
                action()
            elif what != "dropped":
                action()

    def signals_to(self) -> Any:
        """The kit's subscriber, if it has one: of a signal on another thread it is waited for that it has begun."""
        return None

    def has_begun(self, thread: threading.Thread, subscriber: Any) -> bool:
        """Whether the signal on that thread is under way: what it comes beside must not be chance."""
        return subscriber is None or thread.ident in subscriber.inside


# -- the publisher --------------------------------------------------------------------------------------------


class Source(Machine):
    """A subscription that counts to `elements`, and ends; its loop runs on the thread that finds it idle.

    States: fresh (inside on_subscribe), idle, busy (a thread is in the loop), over.
    """

    TABLE: Table = {  # noqa: RUF012
        ("fresh", "start"): ("subscribe", "run"),
        ("fresh", "request"): ("add",),
        ("idle", "request"): ("add", "run"),
        ("busy", "request"): ("add",),
        ("over", "request"): (),
        ("fresh", "invalid request"): ("blame",),
        ("idle", "invalid request"): ("blame", "run"),
        ("busy", "invalid request"): ("blame",),
        ("over", "invalid request"): (),
        ("fresh", "cancel"): ("stop", "forget"),
        ("idle", "cancel"): ("stop", "forget"),
        ("busy", "cancel"): ("stop", "forget"),
        ("over", "cancel"): (),
        ("busy", "an element is due"): ("count", "advance", "emit"),
        ("busy", "the end is due"): ("stop", "complete", "forget"),
        ("busy", "a failure is due"): ("stop", "fail", "forget"),
        ("busy", "an answer is due"): ("stop", "answer", "forget"),
        ("busy", "nothing is due"): ("leave",),
    }

    def __init__(self, publisher: Any, subscriber: Any, change: Change | None) -> None:
        super().__init__(change, publisher.times)
        self.publisher = publisher
        publisher.machines.append(self)
        self.subscriber = subscriber
        self.elements: int = publisher.elements
        self.failure: BaseException | None = publisher.failure
        self.state = "fresh"
        self.demand = 0
        self.sent = 0
        self.fault: BaseException | None = None
        self.running = False

    def request(self, n: int, /) -> None:
        valid = isinstance(n, int) and not isinstance(n, bool) and n >= 1
        self.happens("request" if valid else "invalid request", n)

    def cancel(self) -> None:
        self.happens("cancel")

    def happens(self, event: str, *arguments: Any) -> None:
        """The transition is made under the lock; a loop that it wants to run is run outside."""
        with self.lock:
            self.make(self.state, event, *arguments)
            run, self.running = self.running, False
        if run:
            self.loop()

    def signals_to(self) -> Any:
        return self.subscriber

    def has_begun(self, thread: threading.Thread, subscriber: Any) -> bool:
        """Of on_subscribe: has requested as well, or cancelled; if it does neither, its end is waited for."""
        return super().has_begun(thread, subscriber) and (self.state != "fresh" or self.demand > 0)

    def start(self) -> None:
        self.make("fresh", "start")
        if self.running:
            self.running = False
            self.loop()

    def loop(self) -> None:
        """Signal what is due; the thread that is in here owns the signals."""
        while not self.publisher.given_up.is_set():
            with self.lock:
                if self.state == "over":
                    return
                due = self.due()
                signals: list[Callable[[], object]] = []
                self.signals = signals
                self.make("busy", due)
                left = self.state != "busy" and not signals
            for signal in signals:
                signal()
            if left:
                return

    signals: list[Callable[[], object]]

    def due(self) -> str:
        if self.fault is not None:
            return "an answer is due"
        if self.sent >= self.elements:
            return "the end is due" if self.failure is None else "a failure is due"
        return "an element is due" if self.demand > 0 else "nothing is due"

    # actions

    def subscribe(self) -> None:
        self.subscriber.on_subscribe(self)

    def run(self, *_: Any) -> None:
        if self.state in ("fresh", "idle"):
            self.state = "busy"
            self.running = True

    def add(self, n: int) -> None:
        self.demand = min(self.demand + n, MAX_DEMAND)

    def blame(self, n: int) -> None:
        self.fault = ValueError(f"request({n}): demand is at least 1 (3.9)")

    def stop(self, *_: Any) -> None:
        self.state = "over"

    def forget(self, *_: Any) -> None:
        self.publisher.machines = [machine for machine in self.publisher.machines if machine is not self]

    def count(self) -> None:
        self.demand -= self.demand != MAX_DEMAND

    def advance(self) -> None:
        self.sent += 1

    def emit(self) -> None:
        self.signal("on_next", self.sent - 1)

    def complete(self) -> None:
        self.signal("on_complete")

    def fail(self) -> None:
        self.signal("on_error", self.failure)

    def answer(self) -> None:
        self.signal("on_error", self.fault)

    def signal(self, name: str, *arguments: Any) -> None:
        """Signal when the lock is free again; on another thread than the loop's, at once."""
        give = partial(getattr(self.subscriber, name), *arguments)
        if threading.current_thread().name == "elsewhere":
            give()
        else:
            self.signals.append(give)

    def leave(self) -> None:
        self.state = "idle"


@dataclass
class Sources:
    """A publisher; each subscriber has a machine of its own."""

    change: Change | None
    elements: int
    failure: BaseException | None = None
    given_up: threading.Event = field(default_factory=threading.Event)
    """Set when it is no longer wanted: a loop without end comes to one."""
    machines: list[Source] = field(default_factory=list)
    """Those that are under way."""
    times: Counter[Row] = field(default_factory=Counter)
    """How often each transition was made, of all its machines."""

    def subscribe(self, subscriber: Any, /) -> None:
        refuse_none("subscribe", subscriber)
        Source(self, subscriber, self.change).start()


class PublisherOfMachines(PublisherVerification[Any]):
    def __init__(self, change: Change | None = None) -> None:
        self.change = change
        self.given_up = threading.Event()

    def create_publisher(self, elements: int) -> Any:
        return Sources(self.change, elements, given_up=self.given_up)

    def create_failed_publisher(self) -> Any:
        return Sources(self.change, 0, FAILURE, self.given_up)

    def create_publisher_failing_after(self, elements: int) -> Any:
        return Sources(self.change, elements, FAILURE, self.given_up)


# -- the subscriber -------------------------------------------------------------------------------------------


class Listening(Machine):
    """A machine that hears signals; what has no transition does nothing."""

    state: str
    subscription: Any

    def on_subscribe(self, subscription: Any, /) -> None:
        self.happens("on_subscribe", subscription)

    def on_next(self, element: Any, /) -> None:
        self.happens("on_next", element)

    def on_error(self, error: BaseException, /) -> None:
        self.happens("on_error", error)

    def on_complete(self) -> None:
        self.happens("on_complete")

    def happens(self, event: str, *arguments: Any) -> None:
        if arguments[:1] == (None,):
            event += "(None)"
        state = self.state
        if (state, event) in self.TABLE:
            self.make(state, event, *arguments)

    # actions

    def cancel_it(self, subscription: Any) -> None:
        subscription.cancel()

    def refuse(self, *_: Any) -> None:
        raise TypeError("None is no argument (2.13)")

    def end(self, *_: Any) -> None:
        self.state = "over"

    # what is added where it does not belong

    def one_more_is_requested(self, *_: Any) -> None:
        self.subscription.request(1)

    def a_cancel(self, *_: Any) -> None:
        self.subscription.cancel()

    def an_exception(self, *_: Any) -> None:
        raise RuntimeError("raised on purpose")


class Taker(Listening):
    """A subscriber. States: new, subscribed, over."""

    TABLE: Table = {  # noqa: RUF012
        ("new", "on_subscribe"): ("keep", "register"),
        ("subscribed", "on_subscribe"): ("cancel_it",),
        ("over", "on_subscribe"): ("cancel_it",),
        ("new", "on_subscribe(None)"): ("refuse",),
        ("subscribed", "on_subscribe(None)"): ("refuse",),
        ("subscribed", "on_next"): ("take", "replenish"),
        ("over", "on_next"): (),
        ("subscribed", "on_next(None)"): ("refuse",),
        ("subscribed", "on_complete"): ("end", "note_completion"),
        ("subscribed", "on_error"): ("end", "note_error"),
        ("subscribed", "on_error(None)"): ("refuse",),
        ("over", "on_complete"): (),
        ("over", "on_error"): (),
        ("over", "on_next(None)"): ("refuse",),
        ("over", "on_error(None)"): ("refuse",),
        ("over", "on_subscribe(None)"): ("refuse",),
        ("subscribed", "asked to request"): ("request",),
        ("over", "asked to request"): (),
        ("subscribed", "asked to cancel"): ("cancel", "end"),
        ("over", "asked to cancel"): (),
    }
    BATCH = 3

    def __init__(self, change: Change | None = None, probe: Any = None) -> None:
        super().__init__(change)
        self.probe = probe
        self.state = "new"
        self.subscription: Any = None
        self.left = 0

    # actions

    def keep(self, subscription: Any) -> None:
        self.subscription = subscription
        self.state = "subscribed"

    def register(self, subscription: Any) -> None:
        if self.probe is not None:
            self.probe.register_on_subscribe(Strings(self))

    def take(self, element: Any) -> None:
        self.left -= 1
        if self.probe is not None:
            self.probe.register_on_next(element)

    def replenish(self, *_: Any) -> None:
        if self.probe is None and self.left == 0:
            self.request(self.BATCH)

    def note_completion(self) -> None:
        if self.probe is not None:
            self.probe.register_on_complete()

    def note_error(self, error: BaseException) -> None:
        if self.probe is not None:
            self.probe.register_on_error(error)

    def request(self, n: int) -> None:
        self.left += n
        self.subscription.request(n)

    def cancel(self) -> None:
        self.subscription.cancel()


class Strings(SubscriberPuppet):
    """What the kit pulls."""

    def __init__(self, taker: Taker) -> None:
        self.taker = taker

    def trigger_request(self, elements: int) -> None:
        self.taker.happens("asked to request", elements)

    def signal_cancel(self) -> None:
        self.taker.happens("asked to cancel")


class TakerByItself(Taker):
    """A subscriber that requests when it is asked to, and again when it has used that up; it does not cancel."""

    TABLE: Table = {  # noqa: RUF012
        row: actions for row, actions in Taker.TABLE.items() if row[1] != "asked to cancel"
    }


class WhiteboxOfMachines(SubscriberWhiteboxVerification[Any]):
    def __init__(self, change: Change | None = None) -> None:
        self.change = change

    def create_subscriber(self, probe: Any) -> Any:
        return Taker(self.change, probe)


class BlackboxOfMachines(SubscriberBlackboxVerification[Any]):
    def __init__(self, change: Change | None = None) -> None:
        self.change = change

    def create_subscriber(self) -> Any:
        return TakerByItself(self.change)

    def trigger_request(self, subscriber: Any) -> None:
        subscriber.happens("asked to request", Taker.BATCH)


# -- the processor --------------------------------------------------------------------------------------------


class Passing(Listening):
    """A processor for one subscriber: what is requested is requested upstream, what comes is passed on.

    States: new, upstream (it has a subscription), downstream (it has a subscriber), joined (both), ended (upstream has
    ended, and there is no subscriber yet), over.
    """

    TABLE: Table = {  # noqa: RUF012
        ("new", "on_subscribe"): ("keep",),
        ("downstream", "on_subscribe"): ("keep", "join"),
        ("upstream", "on_subscribe"): ("cancel_it",),
        ("joined", "on_subscribe"): ("cancel_it",),
        ("over", "on_subscribe"): ("cancel_it",),
        ("new", "on_subscribe(None)"): ("refuse",),
        ("downstream", "on_subscribe(None)"): ("refuse",),
        ("joined", "on_subscribe(None)"): ("refuse",),
        ("new", "subscribe"): ("admit",),
        ("upstream", "subscribe"): ("admit", "join"),
        ("downstream", "subscribe"): ("turn_away",),
        ("joined", "subscribe"): ("turn_away",),
        ("ended", "subscribe"): ("admit", "join", "tell"),
        ("over", "subscribe"): ("turn_away",),
        ("joined", "on_next"): ("pass_on",),
        ("over", "on_next"): (),
        ("joined", "on_next(None)"): ("refuse",),
        ("upstream", "on_error"): ("remember",),
        ("upstream", "on_complete"): ("remember",),
        ("joined", "on_error"): ("end", "pass_the_error", "forget"),
        ("joined", "on_error(None)"): ("refuse",),
        ("joined", "on_complete"): ("end", "pass_the_end", "forget"),
        ("over", "on_error"): (),
        ("over", "on_complete"): (),
        ("joined", "request"): ("request_upstream",),
        ("over", "request"): (),
        ("joined", "invalid request"): ("end", "cancel_upstream", "answer", "forget"),
        ("over", "invalid request"): (),
        ("joined", "cancel"): ("end", "cancel_upstream", "forget"),
        ("over", "cancel"): (),
    }

    def __init__(self, change: Change | None = None) -> None:
        super().__init__(change)
        self.state = "new"
        self.subscription: Any = None
        self.subscriber: Any = None
        self.fate: tuple[Any, ...] | None = None
        self.inside = False  # lock; a signal is being passed on
        self.late: Callable[[], object] | None = None  # lock; what is signalled when that has returned
        self.joining = False  # lock; its subscriber is inside on_subscribe
        self.asked = 0  # lock; what was requested meanwhile, on whatever thread (1.3)

    def subscribe(self, subscriber: Any, /) -> None:
        refuse_none("subscribe", subscriber)
        self.happens("subscribe", subscriber)

    def request(self, n: int, /) -> None:
        valid = isinstance(n, int) and not isinstance(n, bool) and n >= 1
        self.happens("request" if valid else "invalid request", n)

    def cancel(self) -> None:
        self.happens("cancel")

    def signals_to(self) -> Any:
        return self.subscriber

    # actions

    def keep(self, subscription: Any) -> None:
        self.subscription = subscription
        self.state = "upstream" if self.state == "new" else "joined"

    def admit(self, subscriber: Any) -> None:
        self.subscriber = subscriber
        self.state = {"new": "downstream", "upstream": "joined", "ended": "joined"}.get(self.state, self.state)

    def join(self, *_: Any) -> None:
        with self.lock:
            self.joining = True
        self.subscriber.on_subscribe(self)
        with self.lock:
            self.joining = False
            asked, self.asked = self.asked, 0
        if asked and self.state == "joined":
            self.subscription.request(min(asked, MAX_DEMAND))

    def turn_away(self, subscriber: Any) -> None:
        Sources(None, 0, RuntimeError("one subscriber at a time")).subscribe(subscriber)

    def remember(self, *error: Any) -> None:
        self.fate = error
        self.state = "ended"

    def tell(self, *_: Any) -> None:
        if self.state == "joined" and self.fate is not None:
            self.state = "over"
            subscriber, self.subscriber = self.subscriber, None
            if self.fate:
                subscriber.on_error(*self.fate)
            else:
                subscriber.on_complete()

    def pass_on(self, element: Any) -> None:
        subscriber = self.subscriber
        with self.lock:
            self.inside = True
        subscriber.on_next(element)
        with self.lock:
            self.inside = False
            late, self.late = self.late, None
        if late is not None:
            late()

    def pass_the_error(self, error: BaseException) -> None:
        self.subscriber.on_error(error)

    def pass_the_end(self) -> None:
        self.subscriber.on_complete()

    def request_upstream(self, n: int) -> None:
        with self.lock:
            if self.joining:
                self.asked += n
                return
        self.subscription.request(n)

    def cancel_upstream(self, *_: Any) -> None:
        self.subscription.cancel()

    def answer(self, n: int) -> None:
        subscriber, error = self.subscriber, ValueError(f"request({n}): demand is at least 1 (3.9)")
        with self.lock:
            if self.inside:
                self.late = partial(subscriber.on_error, error)
                return
        subscriber.on_error(error)

    def forget(self, *_: Any) -> None:
        self.subscriber = None


class ProcessorOfMachines(IdentityProcessorVerification[Any]):
    max_supported_subscribers = 1

    def __init__(self, change: Change | None = None) -> None:
        self.change = change

    def create_identity_processor(self, buffer_size: int) -> Any:
        return Passing(self.change)


# -- all changes ----------------------------------------------------------------------------------------------

ADDED = ("one_more_is_requested", "a_cancel", "an_exception")
KINDS: dict[str, tuple[Table, Callable[[Change | None], Verification], tuple[str, ...]]] = {
    "publisher": (Source.TABLE, PublisherOfMachines, ()),
    "whitebox": (Taker.TABLE, WhiteboxOfMachines, ADDED),
    "blackbox": (TakerByItself.TABLE, BlackboxOfMachines, ADDED),
    "processor": (Passing.TABLE, ProcessorOfMachines, ADDED),
}


@dataclass(frozen=True)
class MachineMutant:
    """One change of one machine."""

    kind: str
    change: Change

    @property
    def name(self) -> str:
        return f"{self.kind}: {self.change.name(KINDS[self.kind][0])}"

    def make(self) -> Verification:
        return KINDS[self.kind][1](self.change)


def sound_machines() -> dict[str, Verification]:
    """The machines as they are."""
    return {kind: make(None) for kind, (_, make, _) in KINDS.items()}


def _changes(table: Table, added: tuple[str, ...]) -> Iterator[Change]:
    for row, actions in table.items():
        for at, action in enumerate(actions):
            for what in CHANGES:
                often = table is Source.TABLE or row[1] in REPEATED
                if (what != "elsewhere" or action in CALLS) and (not what.endswith(" later") or often):
                    yield Change(row, what, at)
        for state, event in table:
            if event == row[1] and table[state, event] != actions:
                yield Change(row, "as in", other=state)
        for action in added:
            if not row[1].endswith("(None)"):
                yield Change(row, "added", other=action)


MUTANTS: list[MachineMutant] = [
    MachineMutant(kind, change) for kind, (table, _, added) in KINDS.items() for change in _changes(table, added)
]
