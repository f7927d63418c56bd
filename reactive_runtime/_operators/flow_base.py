"""What every operator needs of the flow that it is called on, and how it makes the flow that it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from reactive_runtime._core.drains.combinator import Combinator
from reactive_runtime._core.failures.assembly import assembly_location
from reactive_runtime._core.fusion.step import Step, own_method
from reactive_runtime._core.sources import core_flow
from reactive_runtime._core.sources.core_flow import CoreFlow, FlowSource, Stage, Use, stages_of, uses_of
from reactive_runtime._core.sources.flow_source import CombinatorSource, IterableSource, PublisherSource, lengthened
from reactive_runtime._core.sources.naming import is_publisher, kind_of, no_publisher
from reactive_runtime._spec import Publisher

if TYPE_CHECKING:
    from reactive_runtime._flow import ConnectableFlow, Flow
    from reactive_runtime._operators.sharing import ConnectableSource

__all__ = [
    "FlowBase",
    "as_flow",
    "combinator_flow",
    "connectable_of",
    "flow_of",
    "flow_type",
    "foreign",
    "make_flows_of",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


class FlowBase(CoreFlow[T_co]):
    """The base of the operators.

    The operators of each theme are a class on top of this one, in the file of the theme; `Flow` is made of all of them.
    """

    __slots__ = ()

    def _flow(self) -> Flow[T_co]:
        """This, with the operators of all themes."""
        return cast("Flow[T_co]", self)

    def _then(self, step: Step[Any, R]) -> Flow[R]:
        """This flow, and one step more. TypeError where an instance has been given a method of its own."""
        if "on_next" in step.__dict__ or "on_complete" in step.__dict__:
            raise own_method(step)
        step.location = assembly_location()
        flow: Flow[R] = _new(_flow_types[0])  # written out, as `flow_of` does it
        flow._source, flow._steps = lengthened(self, step)
        return flow

    def _on(self, executor: Executor) -> Flow[T_co]:
        """The same flow, its source run on `executor` unless it has chosen another."""
        return flow_of(self._source.on(executor), self._steps)

    def _none(self) -> Flow[T_co]:
        """A flow without elements."""
        return flow_of(IterableSource("empty()", tuple, synchronous=True))

    def _parts(self) -> list[Stage]:
        """The pipeline, for `explain`."""
        return stages_of(self)


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
    own = [use for item in uses for use in (uses_of(item) if isinstance(item, _flow_types[0]) else (Use(title, item),))]
    return flow_of(CombinatorSource(title, make, sources, inline=inline, beside=(*own, *uses_of(*shown))))


def as_flow(operator: str, argument: str, publisher: Publisher[T]) -> Flow[T]:
    """A publisher as a flow, itself if it is one; TypeError where it is no publisher."""
    if isinstance(publisher, _flow_types[0]):
        return publisher
    if not is_publisher(publisher):
        raise TypeError(f"{operator}: {argument} must be a publisher, not {no_publisher(publisher)}")
    return foreign(publisher)


def foreign(publisher: Publisher[T]) -> Flow[T]:
    """The flow of any publisher."""
    beside = uses_of(publisher) if isinstance(publisher, _flow_types[0]) else ()
    return flow_of(PublisherSource(f"from_publisher({kind_of(publisher)})", publisher, beside=beside))


def flow_of(flow_source: FlowSource[T], steps: Sequence[Step[Any, Any]] = ()) -> Flow[T]:
    """The flow that begins at `flow_source`."""
    flow: Flow[T] = _new(_flow_types[0])  # `Flow(...)` is an error: a user begins with a source
    flow._source = flow_source
    flow._steps = steps
    return flow


def flow_type() -> type[Flow[Any]]:
    """The class of flows."""
    return _flow_types[0]


def connectable_of(connectable: ConnectableSource) -> ConnectableFlow[Any]:
    """The flow whose subscribers share `connectable`."""
    return _flow_types[1](connectable)  # type: ignore[return-value, arg-type]


_new: Final = object.__new__
_flow_types: list[type[Flow[Any]]] = []
"""Operators make flows, and flows are made of operators: `reactive_runtime._flow` puts its classes here."""


def make_flows_of(flow_type: type[Flow[Any]], connectable_type: type[ConnectableFlow[Any]]) -> None:
    """Make flows of these classes. Called once, by the module that defines them."""
    _flow_types[:] = [flow_type, connectable_type]
    core_flow.make_flows_of(flow_type)
