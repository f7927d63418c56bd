"""Messages that are delivered too often: what `max_deliveries` and `dead_letters` of a reader may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactive_runtime._core.runtime.arguments import at_least, check_callable

__all__ = ["check_dead_letters"]


def check_dead_letters(operator: str, max_deliveries: int | None, dead_letters: Callable[[Any], object] | None) -> None:
    """TypeError or ValueError where one of them is no number above 0, can't be called, or is given alone."""
    if max_deliveries is not None:
        at_least(operator, "max_deliveries", 1, max_deliveries)
    if dead_letters is not None:
        check_callable(operator, "dead_letters", dead_letters)
    if (max_deliveries is None) != (dead_letters is None):
        raise ValueError(f"{operator}: max_deliveries and dead_letters need each other: give both, or none")
