"""Where a flow begins: a cold source, a boundary, or somebody else's publisher.

An origin is immutable and belongs to the description of a pipeline; for each subscription it makes a *plan*:
the feed to drain, the steps that come with it, and the executor to drain it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reactive_runtime._core.feed import ColdFeed, Feed
from reactive_runtime._core.gather import Gather
from reactive_runtime._core.inbox import Inbox
from reactive_runtime._core.place import Place, assembled
from reactive_runtime._core.step import Step
from reactive_runtime.spec import Publisher

if TYPE_CHECKING:
    from reactive_runtime.flow import ConnectableFlow, Flow
    from reactive_runtime.operators.sharing import Line

__all__ = [
    "Boundary",
    "Cold",
    "Foreign",
    "Gathered",
    "Hot",
    "Origin",
    "Part",
    "Plan",
    "as_flow",
    "connectable_of",
    "flow_of",
    "flow_type",
    "gathered",
    "make_flows_of",
]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Plan:
    """What one subscription is made of."""

    feed: Callable[[int | None], Feed]
    """Makes the feed. The argument is how much an upstream may be asked for ahead of demand; None: nothing."""
    steps: Sequence[Step[Any, Any]]
    executor: Executor | None
    pulls: bool
    """The feed is a cold source: whoever drains it runs it, and may do so anywhere."""
    single: Callable[[], Iterable[Any]] | None = None
    """The supplier of a cold source that has one element, whatever its steps make of it."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a pipeline between two boundaries, as `explain` draws it."""

    text: str
    executor: Executor | None
    beside: tuple[Executor, ...] = ()
    """The executors of further upstreams that come in here."""

    def executors(self) -> tuple[Executor, ...]:
        """Its own, and those beside it."""
        return self.beside if self.executor is None else (self.executor, *self.beside)


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
    single: bool = False
    """It has one element."""

    def plan(self) -> Plan:
        supplier = self.supplier
        single = supplier if self.single else None
        return Plan(lambda _: ColdFeed(supplier), (), self.executor, pulls=True, single=single)

    def on(self, executor: Executor) -> Cold[T]:
        return self if self.executor else Cold(self.title, self.supplier, executor, self.single)

    def parts(self, steps: Sequence[Step[Any, Any]]) -> list[Part]:
        return [Part(_line(self.title, steps), self.executor)]


@dataclass(frozen=True, slots=True)
class Foreign(Origin[T]):
    """Any publisher; demand is passed on to it exactly."""

    title: str
    publisher: Publisher[T]
    executor: Executor | None = None
    above: Flow[Any] | None = None
    """The flow that the publisher was made of, for `explain`."""

    def plan(self) -> Plan:
        subscribe, on_drain = self.publisher.subscribe, self.executor is not None
        return Plan(lambda prefetch: Inbox(subscribe, prefetch, on_drain=on_drain), (), self.executor, pulls=False)

    def on(self, executor: Executor) -> Foreign[T]:
        return self if self.executor else replace(self, executor=executor)

    def parts(self, steps: Sequence[Step[Any, Any]]) -> list[Part]:
        above = [Part("", None)] if self.above is None else self.above._parts()
        last = above.pop()
        line = _line(f"{last.text} {self.title}".strip(), steps)
        return [*above, Part(line, self.executor or last.executor, last.beside)]


@dataclass(frozen=True, slots=True)
class Hot(Origin[T]):
    """A source that is there whether anybody subscribes or not: a subscriber gets a feed of its own from it."""

    title: str
    enter: Callable[[], Feed]
    executor: Executor | None = None

    def plan(self) -> Plan:
        return Plan(lambda _: self.enter(), (), self.executor, pulls=False)

    def on(self, executor: Executor) -> Hot[T]:
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
            return replace(above, steps=(*above.steps, *self.upstream._steps), executor=self.executor)
        subscribe, prefetch = self.upstream.subscribe, self.prefetch
        return Plan(lambda _: Inbox(subscribe, prefetch), (), self.executor, pulls=False)

    def on(self, executor: Executor) -> Boundary[T]:
        return replace(self, upstream=self.upstream._on(executor))

    def parts(self, steps: Sequence[Step[Any, Any]]) -> list[Part]:
        above = self.upstream._parts()
        if above[-1].executor is None:
            above[-1] = replace(above[-1], executor=self.executor)
        return [*above, Part(_line("", steps), self.executor)]


@dataclass(frozen=True, slots=True)
class Gathered(Origin[T]):
    """An asynchronous operator, with its upstreams; drained on `executor`, or by whoever wakes it."""

    title: str
    make: Callable[[], Gather]
    sources: Sequence[Flow[Any]] = ()
    """The upstreams that are known beforehand, the first of which is the flow it was called on."""
    inline: bool = False
    """The first is an argument like the others."""
    executor: Executor | None = None
    place: Place | None = field(default_factory=assembled)

    def plan(self) -> Plan:
        return Plan(self._made, (), self.executor, pulls=False)

    def _made(self, prefetch: int | None) -> Gather:
        gather = self.make()
        gather.title, gather.place = self.title, self.place
        return gather

    def on(self, executor: Executor) -> Gathered[T]:
        return self if self.executor else replace(self, executor=executor)

    def parts(self, steps: Sequence[Step[Any, Any]]) -> list[Part]:
        above = [Part("", None)] if self.inline or not self.sources else self.sources[0]._parts()
        others = self.sources if self.inline else self.sources[1:]
        last = above.pop()
        line = _line(f"{last.text} {self.title}".strip(), steps)
        beside = {it: None for source in others for part in source._parts() for it in part.executors()}
        return [*above, Part(line, self.executor or last.executor, (*last.beside, *beside))]


def _line(title: str, steps: Sequence[Step[Any, Any]]) -> str:
    return " ".join(filter(None, (title, *map(str, steps))))


def gathered(title: str, make: Callable[[], Gather], *sources: Flow[Any], inline: bool = False) -> Flow[Any]:
    """The flow of an asynchronous operator on `sources`, the first of which it was called on.

    `inline`: draw the sources as arguments.
    """
    shown = sources if inline else sources[1:]
    if shown:
        title = f"{title}({', '.join(map(str, shown))})"
    return flow_of(Gathered(title, make, sources, inline=inline))


def as_flow(operator: str, argument: str, publisher: Publisher[T]) -> Flow[T]:
    """A publisher as a flow, itself if it is one; TypeError where it is no publisher."""
    if isinstance(publisher, _flow_type[0]):
        return publisher
    if not callable(getattr(publisher, "subscribe", None)):
        raise TypeError(f"{operator}: {argument} must be a publisher, not {type(publisher).__name__}")
    return flow_of(Foreign(f"from_publisher({type(publisher).__name__})", publisher))


def flow_of(origin: Origin[T]) -> Flow[T]:
    """The flow that begins at `origin`."""
    return _flow_type[0](origin)


def flow_type() -> type[Flow[Any]]:
    """The class of flows."""
    return _flow_type[0]


def connectable_of(line: Line) -> ConnectableFlow[Any]:
    """The flow whose subscribers share `line`."""
    return _flow_type[1](line)  # type: ignore[return-value, arg-type]


_flow_type: list[type[Flow[Any]]] = []
"""Sources make flows, and flows are made of sources: `reactive_runtime.flow` puts its classes here."""


def make_flows_of(flow_type: type[Flow[Any]], connectable_type: type[ConnectableFlow[Any]]) -> None:
    """Tell this module what a flow is. Called once, by the module that defines it."""
    _flow_type[:] = [flow_type, connectable_type]
