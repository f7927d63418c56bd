"""All declarations."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from declared import (
    aggregating,
    boundaries,
    combining,
    error_handling,
    filtering,
    flattening,
    side_effects,
    sinks,
    sources,
    timing,
    transforming,
)
from declared.kinds import Declared, Part, Without
from docs._site.recording import Example

THEMES = (
    sources,
    transforming,
    filtering,
    aggregating,
    combining,
    flattening,
    timing,
    error_handling,
    boundaries,
    side_effects,
    sinks,
)
OPERATORS: Declared = {name: parts for theme in THEMES for name, parts in theme.DECLARED.items()}
"""The parts of each source, operator and sink."""

P = TypeVar("P", bound=Part)


def parts(kind: type[P]) -> dict[str, P]:
    """Those of a kind, of all operators, by their titles."""
    found: dict[str, P] = {}
    for name, of_operator in OPERATORS.items():
        for part in of_operator:
            if isinstance(part, kind):
                title = kind.title.format(name, part.variant) if part.variant else name
                assert title not in found, f"{title} is there twice: give one of them a `variant`"
                found[title] = replace(part, name=title)
    return found


def examples() -> dict[str, Example]:
    """The example that each picture is recorded from."""
    return {name: part for name, parts in OPERATORS.items() for part in parts if isinstance(part, Example)}


def without(kind: type[object]) -> dict[str, str]:
    """Which operators have no part of a kind, and why."""
    return {
        name: part.reason
        for name, parts in OPERATORS.items()
        for part in parts
        if isinstance(part, Without) and part.kind is kind
    }
