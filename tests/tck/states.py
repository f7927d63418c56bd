"""In which states the checks of the kit call what they judge, and in which states its signals come: seen, not said."""

from __future__ import annotations

import threading
import weakref
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.tck import Verification
from reactive_runtime.tck._factories import PublisherFactory
from reactive_runtime.tck._publisher.probes import ManualSubscriber
from reactive_runtime.tck._running.environment import TestEnvironment
from reactive_runtime.tck._subscriber.manual_publishers import ManualPublisher
from reactive_runtime.tck._subscriber.subscriber import Stage, _Between

__all__ = [
    "AFTER",
    "DEMANDS",
    "INSIDE",
    "PUBLISHER_STATES",
    "SUBSCRIBER_STATES",
    "Event",
    "PublisherWatch",
    "SubscriberWatch",
    "Watch",
]

INSIDE = ("in on_subscribe", "in the first on_next", "in a later on_next")
DEMANDS = ("demand 0", "1", "some", "the rest", "more", "unbounded")
AFTER = ("after cancel", "after on_complete", "after on_error")
PUBLISHER_STATES = (*INSIDE, "beside a signal", "before elements", "after elements", *DEMANDS, *AFTER, "2nd", "3rd")
"""Where a call comes, or a signal: inside a signal, or outside; on another thread beside a signal; what is demanded and
has not come, with what the call adds, beside what the stream has left; after what; of which subscriber."""

WHEN = ("requested", "after an element", "after several")

SUBSCRIBER_STATES = (
    "at first",
    "nothing requested",
    *WHEN,
    "all requested came",
    "inside its request",
    "on another thread",
    "after its cancel",
)
"""When a signal comes to the subscriber under test."""


class Event(NamedTuple):
    """What was called or signalled, in which states, by which check."""

    what: str
    states: frozenset[str]
    check: str


class Watch:
    """Puts itself before what the kit calls. `_lock` owns what it has seen."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._lock = threading.Lock()
        self._seen: set[Event] = set()
        self._check = ""  # the thread's that runs the checks, one after the other
        # Which check each environment is of: a thread of an earlier check may still call. One of an earlier test has an
        # environment that is not here. `_lock` owns it.
        self._checks: weakref.WeakKeyDictionary[TestEnvironment, str] = weakref.WeakKeyDictionary()
        self._before(TestEnvironment, "__init__", self._begins)

    def judge(self, verification: Verification, without: tuple[str, ...] = ()) -> set[Event]:
        """Run its checks, and say what was called; each must pass, or none of this means anything."""
        for check in verification.checks():
            if check.name not in without and check.kind != "untested":
                self._check = check.name
                outcome = verification.outcome(check)
                assert outcome.status == "passed", f"{check.name}: {outcome.why}"
                self._forget()
        with self._lock:
            return set(self._seen)

    def _forget(self) -> None:
        """A check is over."""

    def _begins(self, env: TestEnvironment, *_: object) -> None:
        with self._lock:
            self._checks[env] = self._check

    def _note(self, env: TestEnvironment, what: str, *states: str) -> None:
        with self._lock:
            if (check := self._checks.get(env)) is not None:
                self._seen.add(Event(what, frozenset(filter(None, states)), check))

    def _before(self, kind: type[Any], name: str, look: Callable[..., object]) -> None:
        original = getattr(kind, name)

        def both(self: Any, *arguments: Any) -> Any:
            look(self, *arguments)
            return original(self, *arguments)

        self._monkeypatch.setattr(kind, name, both)


class PublisherWatch(Watch):
    """What the kit's subscribers call, and hear."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        # By publisher of the running check: its subscribers, which must be collectable (3.13). `_lock` owns it.
        self._served: dict[int, list[weakref.ref[Any]]] = defaultdict(list)
        self._publishers: list[Any] = []  # `_lock`; those of the running check: the identity of each is its own
        self._before(PublisherFactory, "_connect", self._connects)
        self._before(ManualSubscriber, "_requesting", self._requests)
        self._before(ManualSubscriber, "_cancelling", lambda subscriber: self._calls(subscriber, "cancel"))
        for signal in ("on_next", "on_error", "on_complete"):
            self._before(ManualSubscriber, signal, lambda subscriber, *_, name=signal: self._hears(subscriber, name))

    def _forget(self) -> None:
        with self._lock:
            self._served.clear()
            self._publishers.clear()

    def _connects(self, factory: Any, env: TestEnvironment, publisher: Any, subscriber: Any) -> None:
        with self._lock:
            served = [item for kept in self._served[id(publisher)] if (item := kept()) is not None]
            self._served[id(publisher)].append(weakref.ref(subscriber))
            self._publishers.append(publisher)
        place = "after elements" if any(item.elements for item in served) else "before elements"
        self._note(env, "subscribe", place, self._order(subscriber))

    def _requests(self, subscriber: Any, n: int) -> None:
        self._calls(subscriber, "request" if n > 0 else "invalid request", max(n, 0))

    def _calls(self, subscriber: Any, what: str, more: int = 0) -> None:
        with subscriber.env.lock:
            states = [self._place(subscriber), *self._after(subscriber)]
            if not subscriber.ends and subscriber.cancelled_after is None:
                states.append(_demand(subscriber, more))
        self._note(subscriber.env, what, *states, self._order(subscriber))

    def _hears(self, subscriber: Any, what: str) -> None:
        with subscriber.env.lock:
            place = "after elements" if subscriber.elements else "before elements"
            states = [place, _demand(subscriber, 0), *self._after(subscriber)]
        self._note(subscriber.env, what, *states, self._order(subscriber))

    def _place(self, subscriber: Any) -> str:
        thread = threading.get_ident()
        if thread in subscriber.deep:
            return "in the first on_next" if len(subscriber.elements) == 1 else "in a later on_next"
        if thread in subscriber.inside:
            assert not subscriber.ends, "inside on_complete and on_error nothing may be called (2.3)"
            return "in on_subscribe"
        if subscriber.inside:
            return "beside a signal"
        return "after elements" if subscriber.elements else "before elements"

    def _after(self, subscriber: Any) -> list[str]:
        came = (subscriber.cancelled_after is not None, subscriber.completions, subscriber.errors)
        return [state for state, so in zip(AFTER, came, strict=True) if so]

    def _order(self, subscriber: Any) -> str:
        with self._lock:
            orders = (
                [kept() for kept in served].index(subscriber)
                for served in self._served.values()
                if any(kept() is subscriber for kept in served)
            )
            return {1: "2nd", 2: "3rd"}.get(next(orders, 0), "")


def _demand(subscriber: Any, more: int) -> str:
    """What has been requested and has not come, beside what the stream has left."""
    came = len(subscriber.elements)
    open_, rest = subscriber.demand + more - came, subscriber.env.elements - came
    if open_ <= 0:
        return "demand 0"
    if open_ > MAX_DEMAND // 2:
        return "unbounded"
    if open_ >= rest:
        return "the rest" if open_ == rest else "more"
    return "1" if open_ == 1 else "some"


class SubscriberWatch(Watch):
    """What the kit's publishers signal."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        self._threads: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # `_lock`; of on_subscribe
        self._before(ManualPublisher, "subscribe", self._subscribes)
        self._before(ManualPublisher, "_send", lambda publisher, text, method, *_: self._sends(publisher, method))
        self._before(Stage, "must_refuse_none", self._refuses)
        self._before(
            Stage, "cancels_a_second_subscription", lambda stage: self._sends(stage.publisher, "a second on_subscribe")
        )
        for signal in ("on_subscribe", "on_next", "on_error", "on_complete"):
            self._before(_Between, signal, lambda between, *_, name=signal: self._inside(between, name))

    def _subscribes(self, publisher: Any, subscriber: Any) -> None:
        with self._lock:
            self._threads[publisher] = threading.get_ident()
        self._note(publisher.env, "on_subscribe", "at first")

    def _refuses(self, stage: Any, method: str) -> None:
        if stage.publisher in self._threads:
            self._sends(stage.publisher, "None")
        else:
            self._note(stage.env, "None", "at first")

    def _inside(self, between: Any, what: str) -> None:
        self._note(between._env, what, "at first" if what == "on_subscribe" else "inside its request")

    def _sends(self, publisher: Any, what: str) -> None:
        with self._lock:
            elsewhere = self._threads.get(publisher) != threading.get_ident()
        with publisher.env.lock:
            requested, sent = sum(publisher.requests), publisher.sent - (what == "on_next")
            when = WHEN[min(sent, 2)] if requested else "nothing requested"
            cancelled, used = publisher.cancels > 0, 0 < requested == publisher.sent
        self._note(
            publisher.env,
            what,
            when,
            "after its cancel" if cancelled else "",
            "on another thread" if elsewhere else "",
            "all requested came" if used and what != "on_next" else "",
        )
