"""The gate that a scope puts between each source of a flow and its operators; a drain shuts it.

`FlowSource.gated` puts it there, also above boundaries and operators whose sources only a subscription finds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from reactive_runtime._core.sources.core_flow import CoreFlow, SubscriptionPlan
from reactive_runtime._core.sources.flow_source import CombinatorSource
from reactive_runtime._operators.backpressure import Gated, KillSwitch, Valve
from reactive_runtime._operators.flow_base import FlowBase, flow_of

__all__ = ["ScopeGate"]

T = TypeVar("T")


class ScopeGate:
    """The gate of one flow of a scope; see `core_flow.Gate`."""

    def __init__(self, valve: Valve, also: Callable[[], bool] = lambda: False) -> None:
        self.switch: KillSwitch = KillSwitch()
        self.valve: Valve = valve
        self.closing: bool = False  # written once, before the switch is thrown, whose lock shows it to other threads
        self._also = also  # see `Gate.another`

    def at(self, source: CoreFlow[Any]) -> CoreFlow[Any]:
        """See `Gate.at`."""
        flow = cast("FlowBase[Any]", source)  # flows make flows
        return flow_of(_GateSource("scope()", lambda: Gated(flow, self.switch, self.valve), (source,)))

    def is_shut(self) -> bool:
        """See `Gate.is_shut`."""
        return self.switch.is_thrown() or self.closing or self._also()

    def shut(self) -> None:
        """See `Gate.shut`."""
        self.switch.throw()

    def another(self, also: Callable[[], bool]) -> ScopeGate:
        """See `Gate.another`."""
        return ScopeGate(Valve(), also)


@dataclass(frozen=True, slots=True)
class _GateSource(CombinatorSource[T]):
    def through_boundary(self, prefetch: int) -> SubscriptionPlan | None:
        return self.plan() if self.sources[0]._source.free() else None
