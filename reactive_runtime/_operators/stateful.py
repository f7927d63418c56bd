"""The mark of operators that make other elements of a flow than of its two halves, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

__all__ = ["is_stateful", "stateful"]

F = TypeVar("F", bound=Callable[..., Any])

_MARK: Final = "_remembers_earlier_elements"


def stateful(operator: F) -> F:
    """Mark an operator; `Pipeline.stateful` reads the mark."""
    vars(operator)[_MARK] = True
    return operator


def is_stateful(operator: object) -> bool:
    """Whether an operator has the mark."""
    return hasattr(operator, _MARK)
