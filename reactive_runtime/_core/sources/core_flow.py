"""The base of a flow, a source and the steps behind it, and what one subscription to it is made of.

A source is immutable, and belongs to the description of a flow. For each subscription it makes a *plan*: the pollable
source to drain, the steps that come with it, and the executor to drain it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Never, Protocol, TypeVar

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.fusion.step import Step
from reactive_runtime._core.fusion.subscription import PulledSubscription
from reactive_runtime._core.runtime import activity
from reactive_runtime._core.sources.pollable import Pollable
from reactive_runtime._spec import Subscriber

if TYPE_CHECKING:
    from reactive_runtime._spec import (
        Publisher as _Interface,  # by name: then two flows are one of `int | str`, for Pyright
    )
else:
    _Interface = Generic  # at run time the interface is one of shape: a class of it has a dict, and is slow to make

__all__ = [
    "CoreFlow",
    "FlowSource",
    "Gate",
    "Stage",
    "SubscriptionPlan",
    "Use",
    "abandon",
    "above",
    "core_flow_of",
    "gated",
    "line_of",
    "make_flows_of",
    "moved",
    "resources_of",
    "stages_of",
    "uses_of",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class CoreFlow(_Interface[T_co]):
    """A flow without operators: a source, and the steps behind it."""

    __slots__ = ("_source", "_steps")

    _source: FlowSource[Any]
    _steps: Sequence[Step[Any, Any]]

    def __init__(self, *given: Never) -> None:
        """Raises: a flow begins with one of the sources. They, and the operators, make it with `flow_of`."""
        raise _no_source(type(self), *given)

    def _begin(self, flow_source: FlowSource[Any]) -> None:
        """For `__init__` of a source that is a class of its own."""
        self._source = flow_source
        self._steps = ()

    def subscribe(self, subscriber: Subscriber[Any], /) -> object:
        """See `Flow.subscribe`."""
        raise NotImplementedError

    def _run(self, subscriber: Subscriber[Any], *, within: bool = False) -> PulledSubscription:
        """Subscribe, and return the subscription. `within`: this runs inside `activity.within`."""
        if activity.in_use and not within:
            return activity.within(resources_of(self), partial(self._run, within=True), subscriber)
        plan = self._source.plan()
        steps = (*plan.steps, *self._steps)
        subscription = PulledSubscription(subscriber, plan.pollable(None), steps, plan.executor, plan.home)
        if plan.home is not None:
            subscription.guest = subscription.hears = True
        subscription.start()
        return subscription


class SubscriptionPlan(NamedTuple):
    """The parts of one subscription."""

    pollable: Callable[[int | None], Pollable]
    """Makes the pollable source. The argument: how much it may ask an upstream for ahead of demand; None: nothing."""
    steps: Sequence[Step[Any, Any]]
    executor: Executor | None
    pulls: bool
    """The pollable source is a cold source: the thread that drains it runs it, and any thread may."""
    keeps: bool = False
    """The pollable source may keep the thread that drains it: in a user's code, or in a loop without result."""
    pushes: bool = False
    """The pollable source may send elements, without end, when it is connected."""
    single: Callable[[], Iterable[Any]] | None = None
    """The supplier of a cold source that has one element, whatever its steps make of it."""
    combines: bool = False
    """The pollable source is an asynchronous operator: it is at work only while its drain polls it."""
    home: Executor | None = None
    """The executor that its sources run on, other than `executor`: see `DrainContext`."""
    begins: bool = False
    """The pollable source subscribes to sources that are known beforehand, and runs none on its own drain."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stretch of a pipeline between two boundaries, as `explain` draws it."""

    text: str
    executor: Executor | None
    beside: tuple[Use, ...] = ()
    """The further uses of its operators, and those of the further upstreams that come in here."""

    def uses(self) -> tuple[Use, ...]:
        """Its own executor, and those beside it."""
        return self.beside if self.executor is None else (Use(self.text or "what follows", self.executor), *self.beside)


class Use(NamedTuple):
    """A part of a pipeline, or an operator, and the executor or event loop that has to have a thread for it."""

    what: str
    resource: Any


class Gate(Protocol):
    """Stands at the sources of a flow, and stops them."""

    def at(self, source: CoreFlow[Any]) -> CoreFlow[Any]:
        """The elements of `source`, until the gate is shut."""
        ...

    def is_shut(self) -> bool:
        """Whether no more elements come. Any thread."""
        ...

    def shut(self) -> None:
        """Let no more elements come; those that have passed go on. Any thread, without a lock."""
        ...

    def another(self, also: Callable[[], bool]) -> Gate:
        """A gate of the same kind, which is open. `also`: whether it counts as shut, though nothing has shut it yet."""
        ...


class FlowSource(Generic[T]):
    """The beginning of a flow: a cold source, a boundary, an asynchronous operator, another library's publisher."""

    __slots__ = ()

    def plan(self) -> SubscriptionPlan:
        """The plan of one more subscription."""
        raise NotImplementedError

    def gated(self, gate: Gate) -> CoreFlow[T]:
        """The same flow, with `gate` at each of the sources that it begins with."""
        return above(self, gate)

    def on(self, executor: Executor) -> FlowSource[T]:
        """The same origin, its source run on `executor`; an executor that was chosen before is kept."""
        raise NotImplementedError

    def upstream(self) -> CoreFlow[Any] | None:
        """The flow whose pipeline comes before this, as `explain` draws it."""
        return None

    def upstreams(self) -> Sequence[CoreFlow[Any]]:
        """The flows that it subscribes to, as far as they are known beforehand."""
        above = self.upstream()
        return () if above is None else (above,)

    def abandoned(self) -> None:
        """It will have no subscriber: drop the elements it holds for one. Any thread."""

    def parts(self, above: list[Stage], steps: Sequence[Step[Any, Any]]) -> list[Stage]:
        """The pipeline through `steps`, where that of the upstream is `above`."""
        raise NotImplementedError

    def free(self) -> bool:
        """Whether it is pulled, and has no executor: it runs on the thread that asks."""
        return False

    def through_boundary(self, prefetch: int) -> SubscriptionPlan | None:
        """The plan with which a boundary takes the elements itself, on its own executor.

        None: it needs a prefetch queue. `prefetch`: how many elements may wait for it, of a source that does not wait
        to be asked.
        """
        return self.plan() if self.free() else None

    def ahead_of_boundary(self, prefetch: int) -> SubscriptionPlan | None:
        """`through_boundary`, where no step stands before the boundary, for a source that pushes its elements.

        None: it needs a prefetch queue.
        """
        return None


def stages_of(flow: CoreFlow[Any]) -> list[Stage]:
    """The pipeline of a flow. From the source down, in a loop: a chain may be thousands long."""
    chain: list[CoreFlow[Any]] = []
    at: CoreFlow[Any] | None = flow
    while at is not None:
        chain.append(at)
        at = at._source.upstream()
    parts: list[Stage] = []
    for at in reversed(chain):
        parts = at._source.parts(parts, at._steps)
    return parts


def abandon(flow: CoreFlow[Any]) -> None:
    """Notify the sources of a flow, however far up: no subscriber comes through it. In a loop: see `stages_of`."""
    flows = [flow]
    while flows:
        flow_source = flows.pop()._source
        flow_source.abandoned()
        flows.extend(flow_source.upstreams())


def uses_of(*sources: CoreFlow[Any]) -> tuple[Use, ...]:
    """The uses of the flows, each once."""
    uses = (use for source in sources for part in stages_of(source) for use in part.uses())
    return tuple({(use.what, id(use.resource)): use for use in uses}.values())


def resources_of(source: CoreFlow[Any]) -> Iterator[Any]:
    """The resources of `uses_of`, without the words, and perhaps more than once: for each flow that is made."""
    at: CoreFlow[Any] | None = source
    while at is not None:
        flow_source = at._source
        executor = getattr(flow_source, "executor", None)
        if executor is not None:
            yield executor
        for use in getattr(flow_source, "beside", ()):
            yield use.resource
        at = flow_source.upstream()


def line_of(title: str, steps: Sequence[Step[Any, Any]]) -> str:
    """A title, and the steps behind it, as `explain` draws them."""
    return " ".join(filter(None, (title, *map(str, steps))))


def core_flow_of(flow_source: FlowSource[T], steps: Sequence[Step[Any, Any]] = ()) -> CoreFlow[T]:
    """The flow that begins at `flow_source`."""
    flow: CoreFlow[T] = _new(_flow_type[0])  # `Flow(...)` is an error: a user begins with a source
    flow._source = flow_source
    flow._steps = steps
    return flow


def gated(flow: CoreFlow[T], gate: Gate) -> CoreFlow[T]:
    """The same flow, with `gate` at each of the sources that it begins with."""
    return core_flow_of(flow._source.gated(gate)._source, flow._steps)


def above(flow_source: Any, gate: Gate) -> CoreFlow[Any]:
    """A gate at this source, which runs where the source would run: so the gate stops it between two elements."""
    executor = getattr(flow_source, "executor", None)
    if executor is None:
        return gate.at(core_flow_of(flow_source))
    return moved(gate.at(core_flow_of(replace(flow_source, executor=None))), executor)


def moved(flow: CoreFlow[T], executor: Executor) -> CoreFlow[T]:
    """The same flow, its source run on `executor` unless it has chosen another."""
    return core_flow_of(flow._source.on(executor), flow._steps)


_new: Final = object.__new__
_flow_type: list[type[CoreFlow[Any]]] = []
"""Sources make flows, and flows are made of sources: `reactive_runtime._flow` puts its class here."""


def make_flows_of(flow_type: type[CoreFlow[Any]]) -> None:
    """Make flows of this class. Called once, by the module that defines it."""
    _flow_type[:] = [flow_type]
    dropping.flows_are(flow_type, abandon)


def _no_source(kind: type[object], *given: object) -> TypeError:
    """The error of `Flow(given)`, with the source that was wanted, most likely, and the sources that there are."""
    sources = [name for name in dir(kind) if isinstance(getattr_static(kind, name), staticmethod)]
    first = given[0] if len(given) == 1 else None
    if hasattr(first, "subscribe"):
        wanted = "from_publisher"
    elif isinstance(first, Iterable):
        wanted = "from_iterable"
    elif callable(first):
        wanted = "from_supplier"
    else:
        wanted = "just"
    title = kind.__name__
    return TypeError(
        f"{title}({', '.join(type(item).__name__ for item in given)}): a flow begins with one of the sources,"
        f" here perhaps {title}.{wanted}(...); they are {', '.join(sources)}"
    )
