"""The flows that go downstream: the flow of a group, and the outer flow that gives the groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from reactive_runtime._core import garbage_collection
from reactive_runtime._core.drains.combinator import END, PENDING, Combinator, Elements
from reactive_runtime._core.failures.failure import Failure
from reactive_runtime._core.fusion.step import Step
from reactive_runtime._core.fusion.subscription import PulledSubscription
from reactive_runtime._core.queues.subscriber_buffer import SubscriberBuffer
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.core_flow import FlowSource, Stage, SubscriptionPlan
from reactive_runtime._core.sources.pollable import Pollable
from reactive_runtime._operators.flow_base import flow_of
from reactive_runtime._operators.groups.group_buffer import GroupBuffer
from reactive_runtime._spec import Subscription
from reactive_runtime.errors import RejectedError

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow
    from reactive_runtime._operators.groups.group_source import Split

__all__ = ["Given", "Group", "SourceEnd"]


class Group:
    """One group, or one window."""

    def __init__(self, split: Split, key: Any, capacity: int) -> None:
        self.key = key
        self.buffer = GroupBuffer(split, capacity)
        self._lock = primitives.Lock()
        self._taken = False  # _lock; it has a subscriber
        self._refusal: str | None = None  # _lock; the reason for which no subscriber may come
        self._ended = False  # _lock; the source has no more elements for it
        self._released = False  # _lock; the program has released it
        self.size = 0  # the owner of the source's drain; how many elements a window has had

    def take(self, prefetch: int | None) -> Pollable:
        """Give the pollable source to the one subscriber."""
        with self._lock:
            refusal = self._refusal
            self._taken = True
            self._refusal = refusal or "a group, or a window, is for one subscriber, and has it already"
        if refusal is None:
            self.buffer.ask_ahead(prefetch)
            return self.buffer
        refused = SubscriberBuffer(1)
        refused.end(Failure(RejectedError(refusal), kept=True))
        return refused

    def abandon(self, refusal: str) -> bool:
        """Refuse every subscriber from now on. False: it has one."""
        with self._lock:
            if not self._taken:
                self._refusal = self._refusal or refusal
            return not self._taken

    def abandoned(self) -> None:
        """Drop its elements, unless it has a subscriber: its flow was dropped before one came. Any thread calls it."""
        if self.abandon("this group, or window, was dropped before it had a subscriber"):
            self.buffer.close()

    def released(self) -> None:
        """Drop its elements when it is complete: the program has freed it unread. Any thread calls it.

        It keeps them while the source goes on: the moment at which a program frees a flow must not decide which groups
        there are.
        """
        with self._lock:
            self._released = True
            alone = self._ended and not self._taken
        if alone:
            self.abandoned()

    def ended(self) -> None:
        """Note that the source has no more elements for it. The owner of the source's drain calls it."""
        with self._lock:
            self._ended = True
            alone = self._released and not self._taken
        if alone:
            self.abandoned()

    def taken(self) -> bool:
        """Whether it has a subscriber."""
        with self._lock:
            return self._taken

    def flow(self, title: str) -> Flow[Any]:
        """Make the flow that goes downstream. Called once."""
        handle = Handle(self)
        return flow_of(Taken(title, handle.take, handle.abandoned))


class Handle:
    """The program's reference to a group: a subscriber may come until the program frees it."""

    __slots__ = ("__weakref__", "_group", "_used")

    def __init__(self, group: Group) -> None:
        self._group = group
        self._used = False  # any thread that uses it writes True; `__del__` reads it, when no thread is left

    def take(self, prefetch: int | None) -> Pollable:
        """See `Group.take`."""
        self._used = True
        return self._group.take(prefetch)

    def abandoned(self) -> None:
        """See `Group.abandoned`."""
        self._used = True
        self._group.abandoned()

    def __del__(self) -> None:
        # Any thread may run this, at any instruction: `garbage_collection` puts the call off.
        # Modules are empty at the end of the interpreter. An exit in `__init__` leaves a handle without fields.
        if garbage_collection and not getattr(self, "_used", True):
            garbage_collection.released(self._group.released)


@dataclass(frozen=True, slots=True)
class Taken(FlowSource[Any]):
    """The elements of a group."""

    title: str
    take: Callable[[int | None], Pollable]
    no_subscriber: Callable[[], object]
    """Called if no subscriber comes."""
    executor: Executor | None = None

    def abandoned(self) -> None:
        self.no_subscriber()

    def plan(self) -> SubscriptionPlan:
        return SubscriptionPlan(self.take, (), self.executor, pulls=False)

    def through_boundary(self, prefetch: int) -> SubscriptionPlan | None:
        # Otherwise the thread that fills the buffer, or the one that requests, would run the steps before the boundary.
        take = self.take
        return None if self.executor else SubscriptionPlan(lambda _: take(prefetch), (), None, pulls=False)

    def on(self, executor: Executor) -> Taken:
        return self if self.executor else replace(self, executor=executor)

    def parts(self, above: list[Stage], steps: Sequence[Step[Any, Any]]) -> list[Stage]:
        return [Stage(" ".join((self.title, *map(str, steps))), self.executor)]


class Given(Combinator):
    """The outer flow: the groups, as they begin. Its source has a drain of its own."""

    hears = True
    calls = False

    def __init__(self, make: Callable[[], Split]) -> None:
        super().__init__()
        self.make = make
        self.split: Split | None = None

    def elements(self) -> Elements:
        split = self.split = self.make()
        split.title, split.location, split.apart, split.gate = self.title, self.location, True, self.gate
        executor = self.sources_on or self.drain.executor
        home = self.drain.home  # the drain that it yields to, if it begins on the thread that requests
        drain = self.drain.context.copy().run(PulledSubscription, SourceEnd(split), split, (), executor, home)
        drain.waiter = self.drain.waiter
        split.heard = self.heard  # it has no subscriber: its discards go to the listeners downstream of this operator
        self.drain.later(drain.start)
        inner = self.inner(flow_of(Taken("", lambda prefetch: split.outer, tuple)), made=True)
        while (group := inner.next_if_demanded()) is not END:
            yield group if group is PENDING else split.given(group)

    def request(self, n: int) -> None:
        if self.split is not None:
            self.split.want_groups(n)


class Finishes(Protocol):
    """Flows that end with the drain of their source."""

    def finish(self, error: BaseException | None) -> None:
        """End them all; None: they complete."""
        ...


class SourceEnd:
    """Ends the flows that a source is dealt out to when the source's drain has ended."""

    shown_as: Final = "subscriber of an operator"

    def __init__(self, split: Finishes) -> None:
        self.split = split

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Request nothing: each buffer has demand of its own."""

    def on_next(self, element: Any, /) -> None:
        raise AssertionError("nothing was demanded")

    def on_error(self, error: BaseException, /) -> None:
        self.split.finish(error)

    def on_complete(self) -> None:
        self.split.finish(None)
