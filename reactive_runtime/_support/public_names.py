"""Where public names are at home: the module that users import them from, which is not the one they are written in."""

from __future__ import annotations

from types import FunctionType
from typing import Any

__all__ = ["all_at_home", "at_home"]


def at_home(home: str, *items: Any) -> None:
    """Public classes and functions name the module that exports them: in messages, in documentation, when pickled."""
    for item in items:
        if isinstance(item, type | FunctionType):  # a constant has no module
            item.__module__ = home


def all_at_home(namespace: dict[str, Any]) -> None:
    """`at_home` of what the module with these globals exports."""
    at_home(namespace["__name__"], *(namespace[name] for name in namespace["__all__"]))
