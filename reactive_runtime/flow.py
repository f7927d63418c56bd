"""`Flow`: the fluent publisher. What each operator does is written where it is made; here it gets its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, Generic, TypeVar

from reactive_runtime import sources
from reactive_runtime._core.explain import drawing
from reactive_runtime._core.origin import Origin, Part, make_flows_of
from reactive_runtime._core.step import Step
from reactive_runtime._core.subscription import PulledSubscription
from reactive_runtime.operators import boundaries, filtering, folding, sinks, transform
from reactive_runtime.spec import Subscriber

__all__ = ["Flow"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


class Flow(Generic[T_co]):
    """A `Publisher` with operators: lazy, immutable, reusable; nothing runs until it is subscribed to.

    Each subscriber gets a run of its own (1.11). The signals it gets are serial (1.3), never more than it asked
    for (1.1), whichever threads they come on; `request` and `cancel` may be called from any thread, at any
    time, any number of times.

    >>> from reactive_runtime import Flow
    >>> list(Flow.range(10).filter(lambda n: n % 2).map(lambda n: n * n).take(3))
    [1, 9, 25]
    """

    __slots__ = ("_origin", "_steps")

    def __init__(self, origin: Origin[Any], steps: Sequence[Step[Any, Any]] = ()) -> None:
        """For the sources and operators; a user's flow begins with one of the sources below."""
        self._origin = origin
        self._steps = steps

    # sources
    range = sources.range
    just = sources.just
    empty = sources.empty
    error = sources.error
    never = sources.never
    from_iterable = sources.from_iterable
    from_supplier = sources.from_supplier
    from_publisher = sources.from_publisher

    # one to one, one to many, many to one
    map = transform.map
    filter = filtering.filter
    take = filtering.take
    to_list = folding.to_list

    # boundaries
    publish_on = boundaries.publish_on
    subscribe_on = boundaries.subscribe_on

    # sinks
    subscribe = sinks.subscribe
    to_future = sinks.to_future
    block = sinks.block

    def __iter__(self) -> Iterator[T_co]:
        return sinks.iterate(self)

    __iter__.__doc__ = sinks.iterate.__doc__

    # looking in
    def explain(self) -> str:
        """The pipeline as the specification draws it: `|` is a boundary, below it the resource of each part.

        `caller` is whichever thread requests.

        >>> from reactive_runtime import Flow
        >>> print(Flow.range(9).map(str).take(2).explain())
        range(9) map(str) take(2) consume
        ------------- caller ------------
        """
        return drawing(self._parts())

    # for the sources and operators of the package
    def _then(self, step: Step[Any, R]) -> Flow[R]:
        return Flow(self._origin, (*self._steps, step))

    def _none(self) -> Flow[T_co]:
        return sources.empty()

    def _on(self, executor: Executor) -> Flow[T_co]:
        return Flow(self._origin.on(executor), self._steps)

    def _parts(self) -> list[Part]:
        return self._origin.parts(self._steps)

    def _run(self, subscriber: Subscriber[Any]) -> PulledSubscription:
        plan = self._origin.plan()
        subscription = PulledSubscription(subscriber, plan.feed(), (*plan.steps, *self._steps), plan.executor)
        subscription.start()
        return subscription


make_flows_of(Flow)
