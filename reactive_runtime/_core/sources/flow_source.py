"""The kinds of sources: cold and hot sources, other publishers, boundaries, asynchronous operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar

from reactive_runtime._core.drains.combinator import Combinator
from reactive_runtime._core.failures.assembly import AssemblyLocation, assembly_location
from reactive_runtime._core.fusion.step import Step
from reactive_runtime._core.queues.prefetch_queue import PrefetchQueue
from reactive_runtime._core.sources.core_flow import (
    CoreFlow,
    FlowSource,
    Gate,
    Stage,
    SubscriptionPlan,
    Use,
    above,
    core_flow_of,
    gated,
    line_of,
    moved,
    uses_of,
)
from reactive_runtime._core.sources.pollable import IterablePollable, Pollable
from reactive_runtime._spec import Publisher

__all__ = [
    "LONG_TITLE",
    "Boundary",
    "CombinatorSource",
    "Hot",
    "IterableSource",
    "PublisherSource",
    "lengthened",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IterableSource(FlowSource[T]):
    """A supplier of iterables: each subscription iterates one of its own."""

    title: str
    supplier: Callable[[], Iterable[T]]
    executor: Executor | None = None
    single: bool = False
    """It has one element."""
    synchronous: bool = False
    """Iterating over it runs none of the user's code, and never waits."""
    location: AssemblyLocation | None = None
    """The line that put it into the flow; None: nothing can go wrong in it."""

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
        return [Stage(line_of(self.title, steps), self.executor)]


@dataclass(frozen=True, slots=True)
class PublisherSource(FlowSource[T]):
    """Any publisher; demand is passed on to it exactly."""

    title: str
    publisher: Publisher[T]
    executor: Executor | None = None
    above: CoreFlow[Any] | None = None
    """The flow that the publisher was made of, for `explain`."""
    beside: tuple[Use, ...] = ()

    def plan(self) -> SubscriptionPlan:
        subscribe, on_drain = self.publisher.subscribe, self.executor is not None
        return SubscriptionPlan(
            lambda prefetch: PrefetchQueue(subscribe, prefetch, on_drain=on_drain), (), self.executor, pulls=False
        )

    def gated(self, gate: Gate) -> CoreFlow[T]:
        if isinstance(self.publisher, CoreFlow):
            return core_flow_of(replace(self, publisher=gated(self.publisher, gate)))
        inside: Any = getattr(self.publisher, "gated", None)
        if self.above is None or inside is None:
            return above(self, gate)
        return core_flow_of(replace(self, publisher=inside(gate)))

    def on(self, executor: Executor) -> PublisherSource[T]:
        return self if self.executor else replace(self, executor=executor)

    def upstream(self) -> CoreFlow[Any] | None:
        return self.above

    def upstreams(self) -> Sequence[CoreFlow[Any]]:
        return (self.publisher,) if isinstance(self.publisher, CoreFlow) else FlowSource.upstreams(self)

    def parts(self, above: list[Stage], steps: Sequence[Step[Any, Any]]) -> list[Stage]:
        last = above.pop() if above else Stage("", None)
        line = line_of(f"{last.text} {self.title}".strip(), steps)
        above.append(Stage(line, self.executor or last.executor, (*last.beside, *self.beside)))
        return above


AHEAD_OF_HOT: Final = 32
"""Elements that a gate lets a hot source with an executor give ahead."""


@dataclass(frozen=True, slots=True)
class Hot(FlowSource[T]):
    """A source that is there whether or not it has subscribers: each subscriber gets a pollable source of its own."""

    title: str
    enter: Callable[[], Pollable]
    executor: Executor | None = None
    beside: tuple[Use, ...] = ()
    """The uses of its own source, where it has one. Known from the beginning: see `CombinatorSource`."""
    ahead: Callable[[int], Pollable] | None = None
    """`enter`, for a drain with an executor: so many more elements may wait for it. None: it cannot."""
    enter_gated: Callable[[Gate], Pollable] | None = None
    """`enter`, for a subscriber behind this gate. None: it makes no difference."""

    def plan(self) -> SubscriptionPlan:
        return SubscriptionPlan(lambda _: self.enter(), (), self.executor, pulls=False, pushes=True)

    def ahead_of_boundary(self, prefetch: int) -> SubscriptionPlan | None:
        ahead = self.ahead
        if self.executor is not None or ahead is None:
            return None
        return SubscriptionPlan(lambda _: ahead(prefetch), (), None, pulls=False)

    def gated(self, gate: Gate) -> CoreFlow[T]:
        # A boundary, and not `above`: its subscriber is there when `subscribe` returns, and misses no element.
        enter = self.enter if self.enter_gated is None else partial(self.enter_gated, gate)
        source = gate.at(core_flow_of(replace(self, executor=None, enter=enter)))
        return source if self.executor is None else core_flow_of(Boundary(source, self.executor, AHEAD_OF_HOT))

    def on(self, executor: Executor) -> Hot[T]:
        return self if self.executor else replace(self, executor=executor)

    def parts(self, above: list[Stage], steps: Sequence[Step[Any, Any]]) -> list[Stage]:
        return [Stage(line_of(self.title, steps), self.executor, self.beside)]


@dataclass(frozen=True, slots=True)
class Boundary(FlowSource[T]):
    """`publish_on`: it delivers the elements of the upstream flow on an executor."""

    source: CoreFlow[T]
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

    def gated(self, gate: Gate) -> CoreFlow[T]:
        return core_flow_of(replace(self, source=gated(self.source, gate)))

    def on(self, executor: Executor) -> Boundary[T]:
        boundaries: list[Boundary[Any]] = [self]
        while isinstance(above := boundaries[-1].source._source, Boundary):
            boundaries.append(above)
        source = moved(boundaries[-1].source, executor)
        for below, boundary in zip(boundaries[-2::-1], boundaries[:0:-1], strict=True):
            source = core_flow_of(replace(boundary, source=source), below.source._steps)
        return replace(self, source=source)

    def upstream(self) -> CoreFlow[Any] | None:
        return self.source

    def parts(self, above: list[Stage], steps: Sequence[Step[Any, Any]]) -> list[Stage]:
        if above[-1].executor is None and self.source._source.through_boundary(self.prefetch) is not None:
            above[-1] = replace(above[-1], executor=self.executor)
        above.append(Stage(line_of("", steps), self.executor))
        return above


@dataclass(frozen=True, slots=True)
class Long(FlowSource[T]):
    """A flow with many steps that goes on. It has a drain of its own: each loop is a frame on the stack."""

    source: CoreFlow[T]

    def plan(self) -> SubscriptionPlan:
        run = self.source._run
        return SubscriptionPlan(lambda _: PrefetchQueue(run, None, own=True), (), None, pulls=False)

    def gated(self, gate: Gate) -> CoreFlow[T]:
        return core_flow_of(Long(gated(self.source, gate)))

    def on(self, executor: Executor) -> Long[T]:
        return Long(moved(self.source, executor))

    def upstream(self) -> CoreFlow[Any] | None:
        return self.source

    def parts(self, above: list[Stage], steps: Sequence[Step[Any, Any]]) -> list[Stage]:
        last = above.pop()
        above.append(replace(last, text=line_of(last.text, steps)))
        return above


LOOPS: Final = 48
"""Steps that begin a loop of their own, at most, on one drain."""


STEPS: Final = 128
"""Steps on one drain, at most. The loop of so many is compiled once, and serves each stretch of a longer flow."""


def lengthened(flow: CoreFlow[Any], step: Step[Any, Any]) -> tuple[FlowSource[Any], tuple[Step[Any, Any], ...]]:
    """The source of a flow, and its steps, with `step` behind them."""
    steps = (*flow._steps, step)
    if len(steps) > STEPS or (len(steps) > LOOPS and sum(item.loops() for item in steps) > LOOPS):
        return Long(flow), (step,)
    return flow._source, steps


LONG_TITLE: Final = 2_000
"""Characters of a title, after which it names no further upstreams."""


@dataclass(frozen=True, slots=True)
class CombinatorSource(FlowSource[T]):
    """An asynchronous operator, with its upstreams; drained on `executor`, or by the thread that wakes it."""

    title: str
    make: Callable[[], Combinator]
    sources: Sequence[CoreFlow[Any]] = ()
    """The upstreams that are known beforehand, the first of which is the flow it was called on."""
    inline: bool = False
    """The first is an argument like the others."""
    executor: Executor | None = None
    location: AssemblyLocation | None = field(default_factory=assembly_location)
    beside: tuple[Use, ...] = ()
    """Its further uses: the executor of its tasks, its clock, the event loop, and those of its further upstreams. Known
    from the beginning, so that no search through a tree of them is needed."""
    gate: Gate | None = None
    """Stands at the sources of its upstreams, but of those that it makes of elements."""

    def plan(self) -> SubscriptionPlan:
        combinator = self.make()
        combinator.title, combinator.location, combinator.apart = self.title, self.location, self._apart(combinator)
        combinator.gate = self.gate
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

    def _keeps_apart(self, source: CoreFlow[Any]) -> bool:
        """Whether it gives this upstream a drain of its own, on the thread that asks for its elements."""
        plan = source._source.plan()
        keeps = plan.executor is None and (plan.keeps or bool(source._steps))
        return keeps and self._apart(self.make())

    def gated(self, gate: Gate) -> CoreFlow[T]:
        if self.sources or self.make().begins:
            return core_flow_of(replace(self, gate=gate))
        return above(self, gate)

    def on(self, executor: Executor) -> CombinatorSource[T]:
        return self if self.executor else replace(self, executor=executor)

    def upstream(self) -> CoreFlow[Any] | None:
        return None if self.inline or not self.sources else self.sources[0]

    def upstreams(self) -> Sequence[CoreFlow[Any]]:
        return self.sources

    def parts(self, above: list[Stage], steps: Sequence[Step[Any, Any]]) -> list[Stage]:
        last = above.pop() if above else Stage("", None)
        between = " ¦ " if last.text and not self.inline and self._keeps_apart(self.sources[0]) else " "
        line = line_of(f"{last.text}{between}{self.title}".strip(), steps)
        above.append(Stage(line, self.executor or last.executor, (*last.beside, *self.beside)))
        return above

    def longer(
        self, make: Callable[[], Combinator], sources: Sequence[CoreFlow[Any]], others: Sequence[CoreFlow[Any]]
    ) -> CombinatorSource[T]:
        """The same operator, which `make` makes of `sources`: its own, and `others` behind them."""
        shown = ", ".join(map(str, others))
        title = f"{self.title[:-1]}, {shown})" if len(self.sources) > 1 else f"{self.title}({shown})"
        if len(title) > LONG_TITLE:
            title = f"{title[: title.rfind(', ', 0, LONG_TITLE)]}, …)"
        beside = tuple(dict.fromkeys((*self.beside, *uses_of(*others))))
        return CombinatorSource(title, make, sources, beside=beside)
