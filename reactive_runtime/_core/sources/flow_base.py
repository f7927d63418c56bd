"""What every operator needs of the flow that it is called on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from functools import partial
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar, cast

from reactive_runtime._core.failures.assembly import assembly_location
from reactive_runtime._core.fusion.step import Step, own_method
from reactive_runtime._core.fusion.subscription import PulledSubscription
from reactive_runtime._core.runtime import activity
from reactive_runtime._core.sources.flow_source import (
    FlowSource,
    IterableSource,
    Stage,
    _flow_type,
    _new,
    flow_of,
    lengthened,
    resources_of,
    stages_of,
)
from reactive_runtime._spec import Subscriber

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow
    from reactive_runtime._spec import (
        Publisher as _Interface,  # by name: then two flows are one of `int | str`, for Pyright
    )
else:
    _Interface = Generic  # at run time the interface is one of shape: a class of it has a dict, and is slow to make

__all__ = ["FlowBase"]

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


class FlowBase(_Interface[T_co]):
    """An origin, and the steps behind it.

    The operators of each theme are a class on top of this one, in the file of the theme; `Flow` is made of all of them.
    """

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

    def _flow(self) -> Flow[T_co]:
        """This, with the operators of all themes."""
        return cast("Flow[T_co]", self)

    def _then(self, step: Step[Any, R]) -> Flow[R]:
        """This flow, and one step more. TypeError where an instance has been given a method of its own."""
        if "on_next" in step.__dict__ or "on_complete" in step.__dict__:
            raise own_method(step)
        step.location = assembly_location()
        flow: Flow[R] = _new(_flow_type[0])  # written out, as `flow_of` does it
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

    def _run(self, subscriber: Subscriber[Any], *, within: bool = False) -> PulledSubscription:
        """Subscribe, and return the subscription. `within`: what the flow needs has been entered."""
        if activity.in_use and not within:
            return activity.within(resources_of(self), partial(self._run, within=True), subscriber)
        plan = self._source.plan()
        steps = (*plan.steps, *self._steps)
        subscription = PulledSubscription(subscriber, plan.pollable(None), steps, plan.executor, plan.home)
        if plan.home is not None:
            subscription.guest = subscription.hears = True
        subscription.start()
        return subscription


def _no_source(kind: type[object], *given: object) -> TypeError:
    """The error of `Flow(given)`: what was wanted, most likely, and the sources that there are."""
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
