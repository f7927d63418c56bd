"""Where a flow begins: a cold source, a boundary, or another library's publisher.

An origin is immutable and belongs to the description of a pipeline; for each subscription it makes a *plan*:
the pollable source to drain, the steps that come with it, and the executor to drain it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from reactive_runtime._core.drains.combinator import Combinator
from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import AssemblyLocation, assembly_location
from reactive_runtime._core.fusion.step import Step
from reactive_runtime._core.queues.prefetch_queue import PrefetchQueue
from reactive_runtime._core.sources.naming import is_publisher, kind_of, no_publisher
from reactive_runtime._core.sources.pollable import IterablePollable, Pollable
from reactive_runtime._spec import Publisher

if TYPE_CHECKING:
    from reactive_runtime._core.sources.flow_base import FlowBase
    from reactive_runtime._flow import ConnectableFlow, Flow
    from reactive_runtime._operators.sharing import ConnectableSource

__all__ = [
    "Boundary",
    "CombinatorSource",
    "FlowSource",
    "Hot",
    "IterableSource",
    "PublisherSource",
    "Stage",
    "SubscriptionPlan",
    "Use",
    "abandon",
    "as_flow",
    "combinator_flow",
    "connectable_of",
    "flow_of",
    "flow_type",
    "foreign",
    "lengthened",
    "make_flows_of",
    "resources_of",
    "stages_of",
    "uses_of",
]

T = TypeVar("T")
R = TypeVar("R")


class SubscriptionPlan(NamedTuple):
    """What one subscription is made of."""

    pollable: Callable[[int | None], Pollable]
    """Makes the pollable source. The argument is how much an upstream may be asked for ahead of demand; None: nothing.
    """
    steps: Sequence[Step[Any, Any]]
    executor: Executor | None
    pulls: bool
    """The pollable source is a cold source: the thread that drains it runs it, and any thread may."""
    keeps: bool = False
    """The thread that drains the pollable source may be kept: in a user's code, or in a loop without result."""
    pushes: bool = False
    """To connect the pollable source may bring elements, without end."""
    single: Callable[[], Iterable[Any]] | None = None
    """The supplier of a cold source that has one element, whatever its steps make of it."""
    combines: bool = False
    """The pollable source is an asynchronous operator: it is at work only while its drain polls it."""
    home: Executor | None = None
    """Where its sources run, other than on `executor`: see `DrainContext`."""
    begins: bool = False
    """The pollable source subscribes to sources that are known beforehand, and runs none on its own drain."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stretch of a pipeline between two boundaries, as `explain` draws it."""

    text: str
    executor: Executor | None
    beside: tuple[Use, ...] = ()
    """What its operators need besides, and what the further upstreams need that come in here."""

    def uses(self) -> tuple[Use, ...]:
        """Its own executor, and those beside it."""
        return self.beside if self.executor is None else (Use(self.text or "what follows", self.executor), *self.beside)


class Use(NamedTuple):
    """A part of a pipeline, or an operator, and what has to have a thread for it: an executor, or an event loop."""

    what: str
    resource: Any


class FlowSource(Generic[T]):
    """The beginning of a flow."""

    __slots__ = ()

    def plan(self) -> SubscriptionPlan:
        """What to subscribe with."""
        raise NotImplementedError

    def on(self, executor: Executor) -> FlowSource[T]:
        """The same origin, its source run on `executor`; an executor that was chosen before is kept."""
        raise NotImplementedError

    def upstream(self) -> FlowBase[Any] | None:
        """The flow whose pipeline comes before this, as `explain` draws it."""
        return None

    def upstreams(self) -> Sequence[FlowBase[Any]]:
        """The flows that it subscribes to, as far as they are known beforehand."""
        above = self.upstream()
        return () if above is None else (above,)

    def abandoned(self) -> None:
        """It will have no subscriber: drop what it holds for one. Any thread."""

    def parts(self, above: list[Stage], steps: Sequence[Step[Any, Any]]) -> list[Stage]:
        """The pipeline through `steps`, where that of the upstream is `above`."""
        raise NotImplementedError

    def free(self) -> bool:
        """Whether it is pulled, and has no executor: it runs on the thread that asks."""
        return False

    def through_boundary(self, prefetch: int) -> SubscriptionPlan | None:
        """What a boundary subscribes with, to take the elements itself, on its own executor.

        None: it needs a prefetch queue. `prefetch`: how many elements may wait for it, of a source that does not wait
        to be asked.
        """
        return self.plan() if self.free() else None

    def ahead_of_boundary(self, prefetch: int) -> SubscriptionPlan | None:
        """`through_boundary`, where no step stands before the boundary, for a source whose elements come by themselves.

        None: it needs a prefetch queue.
        """
        return None


def stages_of(flow: FlowBase[Any]) -> list[Stage]:
    """The pipeline of a flow. From the source down, in a loop: a chain may be thousands long."""
    chain: list[FlowBase[Any]] = []
    at: FlowBase[Any] | None = flow
    while at is not None:
        chain.append(at)
        at = at._source.upstream()
    parts: list[Stage] = []
    for at in reversed(chain):
        parts = at._source.parts(parts, at._steps)
    return parts


def abandon(flow: FlowBase[Any]) -> None:
    """Tell the sources of a flow, however far up, that no subscriber comes through it. In a loop: see `stages_of`."""
    flows = [flow]
    while flows:
        flow_source = flows.pop()._source
        flow_source.abandoned()
        flows.extend(flow_source.upstreams())


@dataclass(frozen=True, slots=True)
class IterableSource(FlowSource[T]):
    """A supplier of iterables: each subscription iterates one of its own."""

    title: str
    supplier: Callable[[], Iterable[T]]
    executor: Executor | None = None
    single: bool = False
    """It has one element."""
    synchronous: bool = False
    """To iterate it runs none of the user's code, and never waits."""
    location: AssemblyLocation | None = None
    """Where it was put into the flow; None: nothing can go wrong in it."""

    def plan(self) -> SubscriptionPlan:
        supplier, title, location = self.supplier, self.title, self.location
        single = supplier if self.single else None
        return SubscriptionPlan(
            lambda _: IterablePollable(supplier, title, location),
            (),
            self.executor,
            pulls=True,
            keeps=not self.synchronous,
            single=single,
        )

    def free(self) -> bool:
        return self.executor is None

    def on(self, executor: Executor) -> IterableSource[T]:
        if self.executor:
            return self
        # Written out: `replace` costs three times this, and a flow of one element for each task comes by here.
        return IterableSource(self.title, self.supplier, executor, self.single, self.synchronous, self.location)

    def parts(self, above: list[Stage], steps: Sequence[Step[Any, Any]]) -> list[Stage]:
        return [Stage(_line(self.title, steps), self.executor)]


@dataclass(frozen=True, slots=True)
class PublisherSource(FlowSource[T]):
    """Any publisher; demand is passed on to it exactly."""

    title: str
    publisher: Publisher[T]
    executor: Executor | None = None
    above: FlowBase[Any] | None = None
    """The flow that the publisher was made of, for `explain`."""
    beside: tuple[Use, ...] = ()

    def plan(self) -> SubscriptionPlan:
        subscribe, on_drain = self.publisher.subscribe, self.executor is not None
        return SubscriptionPlan(
            lambda prefetch: PrefetchQueue(subscribe, prefetch, on_drain=on_drain), (), self.executor, pulls=False
        )

    def on(self, executor: Executor) -> PublisherSource[T]:
        return self if self.executor else replace(self, executor=executor)

    def upstream(self) -> FlowBase[Any] | None:
        return self.above

    def upstreams(self) -> Sequence[FlowBase[Any]]:
        return (self.publisher,) if isinstance(self.publisher, _flow_type[0]) else FlowSource.upstreams(self)

    def parts(self, above: list[Stage], steps: Sequence[Step[Any, Any]]) -> list[Stage]:
        last = above.pop() if above else Stage("", None)
        line = _line(f"{last.text} {self.title}".strip(), steps)
        above.append(Stage(line, self.executor or last.executor, (*last.beside, *self.beside)))
        return above


@dataclass(frozen=True, slots=True)
class Hot(FlowSource[T]):
    """A source that is there whether or not it has subscribers: each subscriber gets a pollable source of its own."""

    title: str
    enter: Callable[[], Pollable]
    executor: Executor | None = None
    beside: tuple[Use, ...] = ()
    """What its own source needs, where it has one. Known from the beginning: see `CombinatorSource`."""
    ahead: Callable[[int], Pollable] | None = None
    """`enter`, for a drain that has an executor of its own: so many more elements may wait for it. None: it cannot."""

    def plan(self) -> SubscriptionPlan:
        return SubscriptionPlan(lambda _: self.enter(), (), self.executor, pulls=False, pushes=True)

    def ahead_of_boundary(self, prefetch: int) -> SubscriptionPlan | None:
        ahead = self.ahead
        if self.executor is not None or ahead is None:
            return None
        return SubscriptionPlan(lambda _: ahead(prefetch), (), None, pulls=False)

    def on(self, executor: Executor) -> Hot[T]:
        return self if self.executor else replace(self, executor=executor)

    def parts(self, above: list[Stage], steps: Sequence[Step[Any, Any]]) -> list[Stage]:
        return [Stage(_line(self.title, steps), self.executor, self.beside)]


@dataclass(frozen=True, slots=True)
class Boundary(FlowSource[T]):
    """`publish_on`: what the upstream flow gives, delivered on an executor."""

    source: FlowBase[T]
    executor: Executor
    prefetch: int

    def plan(self) -> SubscriptionPlan:
        above = self.source._source.through_boundary(self.prefetch)
        if above is not None:
            # No thread was chosen for the source: it runs on the thread that asks, and that is ours. So it
            # is pulled straight through the boundary, with no buffer at all, or out of the one that it has.
            return above._replace(steps=(*above.steps, *self.source._steps), executor=self.executor)
        above = None if self.source._steps else self.source._source.ahead_of_boundary(self.prefetch)
        if above is not None:
            return above._replace(executor=self.executor)
        subscribe, prefetch = self.source.subscribe, self.prefetch
        return SubscriptionPlan(lambda _: PrefetchQueue(subscribe, prefetch), (), self.executor, pulls=False)

    def on(self, executor: Executor) -> Boundary[T]:
        boundaries: list[Boundary[Any]] = [self]
        while isinstance(above := boundaries[-1].source._source, Boundary):
            boundaries.append(above)
        source = boundaries[-1].source._on(executor)
        for below, boundary in zip(boundaries[-2::-1], boundaries[:0:-1], strict=True):
            source = flow_of(replace(boundary, source=source), below.source._steps)
        return replace(self, source=source)

    def upstream(self) -> FlowBase[Any] | None:
        return self.source

    def parts(self, above: list[Stage], steps: Sequence[Step[Any, Any]]) -> list[Stage]:
        if above[-1].executor is None and self.source._source.through_boundary(self.prefetch) is not None:
            above[-1] = replace(above[-1], executor=self.executor)
        above.append(Stage(_line("", steps), self.executor))
        return above


@dataclass(frozen=True, slots=True)
class Long(FlowSource[T]):
    """A flow with many steps that goes on. It has a drain of its own: each loop is a frame on the stack."""

    source: FlowBase[T]

    def plan(self) -> SubscriptionPlan:
        run = self.source._run

        def pollable(_: int | None) -> PrefetchQueue:
            queue = PrefetchQueue(run, None)
            queue.own = True
            return queue

        return SubscriptionPlan(pollable, (), None, pulls=False, keeps=False)

    def on(self, executor: Executor) -> Long[T]:
        return Long(self.source._on(executor))

    def upstream(self) -> FlowBase[Any] | None:
        return self.source

    def parts(self, above: list[Stage], steps: Sequence[Step[Any, Any]]) -> list[Stage]:
        last = above.pop()
        above.append(replace(last, text=_line(last.text, steps)))
        return above


LOOPS: Final = 48
"""Steps that begin a loop of their own, at most, on one drain."""


def lengthened(flow: FlowBase[Any], step: Step[Any, Any]) -> tuple[FlowSource[Any], tuple[Step[Any, Any], ...]]:
    """What the flow begins with, and its steps, when `step` has come to them."""
    steps = (*flow._steps, step)
    if len(steps) > LOOPS and sum(item.loops() for item in steps) > LOOPS:
        return Long(flow), (step,)
    return flow._source, steps


@dataclass(frozen=True, slots=True)
class CombinatorSource(FlowSource[T]):
    """An asynchronous operator, with its upstreams; drained on `executor`, or by the thread that wakes it."""

    title: str
    make: Callable[[], Combinator]
    sources: Sequence[FlowBase[Any]] = ()
    """The upstreams that are known beforehand, the first of which is the flow it was called on."""
    inline: bool = False
    """The first is an argument like the others."""
    executor: Executor | None = None
    location: AssemblyLocation | None = field(default_factory=assembly_location)
    beside: tuple[Use, ...] = ()
    """What else has to have a thread for it: the executor of its tasks, its clock, the event loop, and what its further
    upstreams need. Known from the beginning, and not looked for through a tree of them."""

    def plan(self) -> SubscriptionPlan:
        combinator = self.make()
        combinator.title, combinator.location, combinator.apart = self.title, self.location, self._apart(combinator)
        keeps = combinator.calls or (bool(self.sources) and not combinator.apart)
        if combinator.apart and self.sources:  # they run there; what it hears from elsewhere must not wait for them
            combinator.sources_on = self.executor
            home = self.executor
            return SubscriptionPlan(
                lambda _: combinator, (), None, pulls=False, keeps=keeps, combines=True, home=home, begins=True
            )
        return SubscriptionPlan(lambda _: combinator, (), self.executor, pulls=False, keeps=keeps, combines=True)

    def _apart(self, combinator: Combinator) -> bool:
        """Whether it hears from elsewhere than the thread that pulls it."""
        if combinator.hears:
            return True
        return len(self.sources) + combinator.makes > 1 and not all(source._source.free() for source in self.sources)

    def _keeps_apart(self, source: FlowBase[Any]) -> bool:
        """Whether it gives this upstream a drain of its own, on the thread that asks for its elements."""
        plan = source._source.plan()
        keeps = plan.executor is None and (plan.keeps or bool(source._steps))
        return keeps and self._apart(self.make())

    def on(self, executor: Executor) -> CombinatorSource[T]:
        return self if self.executor else replace(self, executor=executor)

    def upstream(self) -> FlowBase[Any] | None:
        return None if self.inline or not self.sources else self.sources[0]

    def upstreams(self) -> Sequence[FlowBase[Any]]:
        return self.sources

    def parts(self, above: list[Stage], steps: Sequence[Step[Any, Any]]) -> list[Stage]:
        last = above.pop() if above else Stage("", None)
        between = " ¦ " if last.text and not self.inline and self._keeps_apart(self.sources[0]) else " "
        line = _line(f"{last.text}{between}{self.title}".strip(), steps)
        above.append(Stage(line, self.executor or last.executor, (*last.beside, *self.beside)))
        return above

    def longer(self, make: Callable[[], Combinator], others: Sequence[FlowBase[Any]]) -> Flow[T]:
        """The flow of the same operator with `others` as further upstreams, that `make` knows of."""
        shown = ", ".join(map(str, others))
        title = f"{self.title[:-1]}, {shown})" if len(self.sources) > 1 else f"{self.title}({shown})"
        beside = tuple(dict.fromkeys((*self.beside, *uses_of(*others))))
        return flow_of(CombinatorSource(title, make, (*self.sources, *others), beside=beside))


def uses_of(*sources: FlowBase[Any]) -> tuple[Use, ...]:
    """What has to have a thread for them, each once."""
    uses = (use for source in sources for part in stages_of(source) for use in part.uses())
    return tuple({(use.what, id(use.resource)): use for use in uses}.values())


def resources_of(source: FlowBase[Any]) -> Iterator[Any]:
    """The resources of `uses_of`, without the words, and perhaps more than once: for each flow that is made."""
    at: FlowBase[Any] | None = source
    while at is not None:
        flow_source = at._source
        executor = getattr(flow_source, "executor", None)
        if executor is not None:
            yield executor
        for use in getattr(flow_source, "beside", ()):
            yield use.resource
        at = flow_source.upstream()


def _line(title: str, steps: Sequence[Step[Any, Any]]) -> str:
    return " ".join(filter(None, (title, *map(str, steps))))


def combinator_flow(
    title: str, make: Callable[[], Combinator], *sources: FlowBase[Any], inline: bool = False, uses: Sequence[Any] = ()
) -> Flow[Any]:
    """The flow of an asynchronous operator on `sources`, the first of which it was called on.

    `inline`: draw the sources as arguments. `uses`: executors, clocks, event loops that it needs: a sink refuses to
    wait on their threads.
    """
    shown = sources if inline else sources[1:]
    if shown:
        title = f"{title}({', '.join(map(str, shown))})"
    own = [use for item in uses for use in (uses_of(item) if isinstance(item, _flow_type[0]) else (Use(title, item),))]
    return flow_of(CombinatorSource(title, make, sources, inline=inline, beside=(*own, *uses_of(*shown))))


def as_flow(operator: str, argument: str, publisher: Publisher[T]) -> Flow[T]:
    """A publisher as a flow, itself if it is one; TypeError where it is no publisher."""
    if isinstance(publisher, _flow_type[0]):
        return publisher
    if not is_publisher(publisher):
        raise TypeError(f"{operator}: {argument} must be a publisher, not {no_publisher(publisher)}")
    return foreign(publisher)


def foreign(publisher: Publisher[T]) -> Flow[T]:
    """The flow of any publisher."""
    beside = uses_of(publisher) if isinstance(publisher, _flow_type[0]) else ()
    return flow_of(PublisherSource(f"from_publisher({kind_of(publisher)})", publisher, beside=beside))


def flow_of(flow_source: FlowSource[T], steps: Sequence[Step[Any, Any]] = ()) -> Flow[T]:
    """The flow that begins at `flow_source`."""
    flow: Flow[T] = _new(_flow_type[0])  # `Flow(...)` is an error: a user begins with a source
    flow._source = flow_source
    flow._steps = steps
    return flow


def flow_type() -> type[Flow[Any]]:
    """The class of flows."""
    return _flow_type[0]


def connectable_of(connectable: ConnectableSource) -> ConnectableFlow[Any]:
    """The flow whose subscribers share `connectable`."""
    return _flow_type[1](connectable)  # type: ignore[return-value, arg-type]


_new: Final = object.__new__
_flow_type: list[type[Flow[Any]]] = []
"""Sources make flows, and flows are made of sources: `reactive_runtime._flow` puts its classes here."""


def make_flows_of(flow_type: type[Flow[Any]], connectable_type: type[ConnectableFlow[Any]]) -> None:
    """Tell this module what a flow is. Called once, by the module that defines it."""
    _flow_type[:] = [flow_type, connectable_type]
    dropping.flows_are(flow_type, abandon)
