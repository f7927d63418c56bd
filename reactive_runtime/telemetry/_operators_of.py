"""The operators of a flow, as its user wrote them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from reactive_runtime._core.failures.assembly import AssemblyLocation
from reactive_runtime._core.sources.core_flow import CoreFlow
from reactive_runtime._operators.monitoring import Named

__all__ = ["SUBSCRIBER", "Key", "Operator", "operators_of"]


class Operator(NamedTuple):
    """One operator, or the source, as a user knows it."""

    text: str
    """As `explain` draws it."""

    kind: str
    """The name of the operator: `map`."""

    name: str | None
    """The name that the `named` behind it gives it."""

    place: AssemblyLocation | None
    """The line that put it into the flow."""

    def __str__(self) -> str:
        name = f"{self.name}: " if self.name else ""
        return f"{name}{self.text}" + (f" at {self.place[0]}:{self.place[1]}" if self.place else "")


SUBSCRIBER: Final = Operator("the subscriber", "subscriber", None, None)
"""Whatever comes after an observed flow."""

Key = tuple[str, AssemblyLocation | None]


def operators_of(flow: CoreFlow[Any]) -> dict[Key, Operator]:
    """The operators of a flow, and of the flows that it reads, by their text and place."""
    found: dict[Key, Operator] = {}
    flows = [flow]
    seen: set[int] = set()
    while flows:
        at = flows.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        source = at._source
        title = getattr(source, "title", None)
        last: Key | None = None
        if title:
            last = (title, getattr(source, "location", None))
            found.setdefault(last, Operator(title, _kind(title), None, last[1]))
        for step in at._steps:
            if isinstance(step, Named):
                if last is not None:
                    found[last] = found[last]._replace(name=step.title)
                continue
            text = str(step)
            if text:
                last = (text, step.location)
                found[last] = Operator(text, step.name, None, step.location)
        flows.extend(source.upstreams())
    return found


def _kind(title: str) -> str:
    """The kind in a title: `flat_map` in `flat_map(fetch, 16)`."""
    return title.partition("(")[0].strip()
