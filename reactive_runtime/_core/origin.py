"""Where a flow begins: a cold source, a boundary, or somebody else's publisher.

An origin is immutable and belongs to the description of a pipeline; for each subscription it makes a *plan*:
the feed to drain, the steps that come with it, and the executor to drain it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reactive_runtime._core.feed import ColdFeed, Feed
from reactive_runtime._core.inbox import Inbox
from reactive_runtime._core.step import Step
from reactive_runtime.spec import Publisher

if TYPE_CHECKING:
    from reactive_runtime.flow import Flow

__all__ = ["Boundary", "Cold", "Foreign", "Origin", "Part", "Plan", "flow_of", "make_flows_of"]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Plan:
    """What one subscription is made of."""

    feed: Callable[[], Feed]
    steps: Sequence[Step[Any, Any]]
    executor: Executor | None
    pulls: bool
    """The feed is a cold source: whoever drains it runs it, and may do so anywhere."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a pipeline between two boundaries, as `explain` draws it."""

    text: str
    executor: Executor | None


class Origin(Generic[T]):
    """The beginning of a flow."""

    __slots__ = ()

    def plan(self) -> Plan:
        """What to subscribe with."""
        raise NotImplementedError

    def on(self, executor: Executor) -> Origin[T]:
        """The same origin, its source run on `executor`; an executor that was chosen before is kept."""
        raise NotImplementedError

    def parts(self, steps: Sequence[Step[Any, Any]]) -> list[Part]:
        """The pipeline from here through `steps`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Cold(Origin[T]):
    """A supplier of iterables: each subscription iterates one of its own."""

    title: str
    supplier: Callable[[], Iterable[T]]
    executor: Executor | None = None

    def plan(self) -> Plan:
        supplier = self.supplier
        return Plan(lambda: ColdFeed(supplier), (), self.executor, pulls=True)

    def on(self, executor: Executor) -> Cold[T]:
        return self if self.executor else replace(self, executor=executor)

    def parts(self, steps: Sequence[Step[Any, Any]]) -> list[Part]:
        return [Part(_line(self.title, steps), self.executor)]


@dataclass(frozen=True, slots=True)
class Foreign(Origin[T]):
    """Any publisher; demand is passed on to it exactly."""

    title: str
    publisher: Publisher[T]
    executor: Executor | None = None

    def plan(self) -> Plan:
        subscribe, on_drain = self.publisher.subscribe, self.executor is not None
        return Plan(lambda: Inbox(subscribe, None, on_drain=on_drain), (), self.executor, pulls=False)

    def on(self, executor: Executor) -> Foreign[T]:
        return self if self.executor else replace(self, executor=executor)

    def parts(self, steps: Sequence[Step[Any, Any]]) -> list[Part]:
        return [Part(_line(self.title, steps), self.executor)]


@dataclass(frozen=True, slots=True)
class Boundary(Origin[T]):
    """`publish_on`: what the upstream flow gives, delivered on an executor."""

    upstream: Flow[T]
    executor: Executor
    prefetch: int

    def plan(self) -> Plan:
        above = self.upstream._origin.plan()
        if above.pulls and above.executor is None:
            # Nobody has chosen a thread for the source: it runs on the thread that asks, and that is ours. So it
            # is pulled straight through the boundary, with no buffer at all.
            return Plan(above.feed, (*above.steps, *self.upstream._steps), self.executor, pulls=True)
        subscribe, prefetch = self.upstream.subscribe, self.prefetch
        return Plan(lambda: Inbox(subscribe, prefetch), (), self.executor, pulls=False)

    def on(self, executor: Executor) -> Boundary[T]:
        return replace(self, upstream=self.upstream._on(executor))

    def parts(self, steps: Sequence[Step[Any, Any]]) -> list[Part]:
        above = self.upstream._parts()
        if above[-1].executor is None:
            above[-1] = replace(above[-1], executor=self.executor)
        return [*above, Part(_line("", steps), self.executor)]


def _line(title: str, steps: Sequence[Step[Any, Any]]) -> str:
    return " ".join(filter(None, (title, *map(str, steps))))


def flow_of(origin: Origin[T]) -> Flow[T]:
    """The flow that begins at `origin`."""
    return _flow_type[0](origin)


_flow_type: list[type[Flow[Any]]] = []
"""Sources make flows, and flows are made of sources: `reactive_runtime.flow` puts its class here."""


def make_flows_of(flow_type: type[Flow[Any]]) -> None:
    """Tell this module what a flow is. Called once, by the module that defines it."""
    _flow_type[:] = [flow_type]
