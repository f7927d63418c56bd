"""An observed flow: a flow with a last step that reports each subscription."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeVar

from reactive_runtime._core.failures.assembly import assembly_location
from reactive_runtime._core.fusion.step import Each, Step
from reactive_runtime._core.fusion.subscription import PulledSubscription
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.core_flow import CoreFlow, resources_of
from reactive_runtime._core.sources.flow_source import Boundary, IterableSource
from reactive_runtime._flow import Flow
from reactive_runtime._operators.flow_base import FlowBase
from reactive_runtime._spec import Subscriber
from reactive_runtime.telemetry import _looker
from reactive_runtime.telemetry._counting import counting
from reactive_runtime.telemetry._exporting import uses
from reactive_runtime.telemetry._observations import OBSERVED, Observation, Run, observation_of
from reactive_runtime.telemetry._operators_of import Key, Operator, operators_of

__all__ = ["Bottleneck", "ObservedFlow", "observe"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_LOOKS: Final = 10
"""With fewer looks nothing is said."""

_HALF: Final = 0.5
"""The share of the looks at which a bottleneck holds the flow back, at least."""

_AHEAD: Final = 0.75
"""The share of the next operator, in that of a bottleneck, at most: two that are alike are balanced."""


class Bottleneck(NamedTuple):
    """The operator that holds a flow back; see `ObservedFlow.bottleneck`.

    Args:
        operator: The operator as `explain` draws it, such as `map(parse)`; "the subscriber" for all that comes after
            the observed flow.
        kind: The operator's name, `map`.
        name: The name that `named` behind the operator gives it, or None.
        place: The file and the line that put it into the flow, or None.
        share: The share of the looks at which it held the flow back, from 0 to 1.
        looks: How many looks there were.
    """

    operator: str
    kind: str
    name: str | None
    place: tuple[str, int] | None
    share: float
    looks: int

    def __str__(self) -> str:
        operator = Operator(self.operator, self.kind, self.name, self.place)
        return f"{operator} held the flow back at {self.share:.0%} of {self.looks} looks"


class ObservedFlow(Flow[T_co]):
    """A flow that keeps metrics, which `export` exports; see `observe`.

    Operators may follow, but the metrics count them as a part of the subscriber.
    """

    __slots__ = ("_observation",)

    def __init__(self, flow: FlowBase[T_co], observation: Observation) -> None:
        """For `observe`."""
        self._source = flow._source
        self._steps = (*counting(flow._steps, source_counts=_counts(flow)), _End(observation, flow))
        self._observation = observation

    def _run(self, subscriber: Subscriber[Any], *, within: bool = False) -> PulledSubscription:
        token = OBSERVED.set(self._observation.name)
        try:
            return super()._run(subscriber, within=within)
        finally:
            OBSERVED.reset(token)

    def bottleneck(self) -> Bottleneck | None:
        """The operator that slows the flow down, over all subscriptions to flows of this name.

        A thread looks at each live subscription, twenty times a second. An operator holds the flow back at a look if a
        thread is inside of its function, or if it has elements to work on and waits for a timer or for its calls. The
        bottleneck holds the flow back at half of the looks or more, and every other operator at no more than three
        quarters as many.

        Returns:
            The operator. None after fewer than 10 looks, if no operator holds the flow back more than the others, and
            in a Python without a GIL, which can't read the stacks of other threads.

        Thread:
            May be called on any thread, at any time.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.telemetry import observe
            >>> print(observe(Flow.range(3), "rows").bottleneck())
            None
        """
        looks, busy = self._observation.looks()
        if looks < _LOOKS:
            return None
        ranks = busy.most_common(2)
        most = ranks[0][1] if ranks else 0
        next_to_it = ranks[1][1] if len(ranks) > 1 else 0
        if most < _HALF * looks or next_to_it > _AHEAD * most:
            return None
        operator = ranks[0][0]
        return Bottleneck(operator.text, operator.kind, operator.name, operator.place, most / looks, looks)

    def report(self) -> str:
        """The metrics as text: the counts, the share of the looks of each operator, and the bottleneck.

        Returns:
            Some lines.

        Thread:
            May be called on any thread, at any time.

        Example:
            >>> from reactive_runtime import Flow
            >>> from reactive_runtime.telemetry import observe
            >>> flow = observe(Flow.range(3).filter(bool), "nonzero")
            >>> _ = flow.block()
            >>> print(flow.report().splitlines()[0])
            nonzero: 1 subscriptions, 0 live, 2 elements, 0 outstanding
        """
        counts = self._observation.counts()
        looks, busy = self._observation.looks()
        lines = [
            f"{self._observation.name}: {counts['subscriptions']} subscriptions, {counts['live']} live,"
            f" {counts['elements']} elements, {counts['demand']} outstanding"
        ]
        lines += [f"{number / looks:4.0%} {operator}" for operator, number in busy.most_common()]
        found = self.bottleneck()
        if found is not None:
            lines.append(str(found))
        elif primitives.has_gil():
            lines.append(f"no operator holds the flow back more than the others ({looks} looks)")
        else:
            lines.append("this Python has no GIL: the stacks of other threads can't be read, and no operator is named")
        return "\n".join(lines)


def observe(flow: Flow[T], name: str) -> ObservedFlow[T]:
    """Keep the metrics of a flow, and find the operator that slows it down (its bottleneck).

    Several flows may have one name, such as flows that a function makes for each request: `observe` adds their metrics
    up. If they come from different lines, it logs a warning.

    Args:
        flow: The flow, with all its operators: the metrics count later operators as a part of the subscriber.
        name: The name in metrics, and in `report`. Use few names: each name is a time series.

    Returns:
        A flow with the same signals, and the methods `bottleneck` and `report`.

    Raises:
        TypeError: `flow` is no flow, or `name` is not a str.
        ValueError: `name` is empty.

    Demand:
        Passes through.

    Cancellation:
        Passes through.

    Thread:
        The flow runs on the same threads as without `observe`. A daemon thread looks at it twenty times a second, while
        it runs.

    Example:
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.telemetry import observe
        >>> list(observe(Flow.range(3).map(str), "texts"))
        ['0', '1', '2']

    Origin:
        `tap(Micrometer.metrics(...))` of Reactor.
    """
    if not isinstance(flow, FlowBase):
        raise TypeError(f"observe: flow must be a Flow, not {type(flow).__name__}")
    if not isinstance(name, str):
        raise TypeError(f"observe: name must be a str, not {type(name).__name__}")
    if not name:
        raise ValueError("observe: name must not be empty")
    uses(resources_of(flow))
    return ObservedFlow(flow, observation_of(name, assembly_location()))


def _counts(flow: CoreFlow[Any]) -> bool:
    """Whether the pollable source of a flow counts its elements."""
    source = flow._source
    if isinstance(source, Boundary):
        above = source.source
        straight = above._source.through_boundary(source.prefetch) is not None
        return not straight and (bool(above._steps) or above._source.ahead_of_boundary(source.prefetch) is None)
    return isinstance(source, IterableSource)


class _End(Step[T, T]):
    """The last step of an observed flow."""

    name = "observe"
    calls = False
    watches = True

    def __init__(self, observation: Observation, flow: CoreFlow[Any]) -> None:
        self.observation = observation
        self.known = _Known(flow)
        self.run: Run | None = None  # set once, before the subscription begins

    def on_next(self, element: T) -> Each[T]:
        yield element

    def watch(self, drain: Any, pollable: Any, steps: Sequence[Step[Any, Any]]) -> None:
        above = tuple(steps[: [step is self for step in steps].index(True)])
        self.run = Run(self.observation, drain, pollable, above, self.known)
        self.observation.begins(self.run)
        _looker.awake()

    def dispose(self) -> tuple[()]:
        if self.run is not None:
            self.observation.ends(self.run, "complete" if self.end == "complete" else "error" if self.end else "cancel")
        return ()

    def __str__(self) -> str:
        return f"observe({self.observation.name})"


class _Known:
    """The operators of a flow. It finds them at the first use."""

    def __init__(self, flow: CoreFlow[Any]) -> None:
        self._flow = flow
        self._found: dict[Key, Operator] | None = None  # any thread; all find the same

    def __call__(self) -> dict[Key, Operator]:
        if self._found is None:
            self._found = operators_of(self._flow)
        return self._found
