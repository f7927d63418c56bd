"""The flows that `AckedFlow` makes of one element: of `flat_map`, and of `on_error_continue`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from reactive_runtime._core.sources.flow_source import PublisherSource
from reactive_runtime._flow import Flow
from reactive_runtime._operators.flow_base import as_flow, flow_of
from reactive_runtime._spec import Publisher
from reactive_runtime.connect._elements.acked import Acked, Claim, Parts, acked, claim_of, not_handled
from reactive_runtime.connect._elements.acked_steps import value_of
from reactive_runtime.connect._elements.attempts import Attempts

__all__ = ["attempted", "inner_of"]


@dataclass(frozen=True, slots=True)
class _Claimed(PublisherSource[Any]):
    """The publisher of one element, which is refused if nothing subscribes to it: a cancel may come before."""

    claim: Claim = field(kw_only=True)

    def abandoned(self) -> None:
        self.claim.settle(not_handled())


def _settled_with(flow: Flow[Any], claim: Claim) -> Flow[Any]:
    return flow_of(_Claimed("flat_map", flow, claim=claim))


def inner_of(fn: Callable[[Any], Publisher[Any]], element: Acked[Any]) -> Flow[Acked[Any]]:
    """The elements of the publisher for `element`; each has a part of its claim."""
    parts = Parts(claim_of(element).settle)
    whole = parts.part()  # settled when the publisher has ended
    flow = value_of(lambda value: as_flow("flat_map", "what fn returns", fn(value)), element)

    def over(way: str) -> None:
        whole.settle(None if way == "complete" else not_handled())

    watched = flow.do_on_error(whole.settle).do_finally(over)
    return _settled_with(watched, whole).map(lambda value: acked(value, parts.part()))


def attempted(
    part: Callable[[Flow[Acked[Any]]], Flow[Acked[Any]]],
    to: Callable[[Any], object],
    wanted: Callable[[Exception], object],
    element: Acked[Any],
) -> Flow[Acked[Any]]:
    """The results of `part` for the element, or none and a dead letter."""
    attempts = Attempts(element, to, wanted)
    one = Flow.just(element)
    flow: Flow[Acked[Any]] = one.on_error_continue(
        lambda flow: part(flow.map(attempts.begin)), attempts.dead_letter, when=attempts.wanted
    )
    begun = Claim(attempts.refuse)  # only a flow without a subscriber refuses the element: a batch may hold it

    def over(way: str) -> None:
        begun.settle(None)
        attempts.over(way)

    return _settled_with(flow.do_finally(over), begun)
