"""A list that has to have everything of a kind, each operator or each rule: the error says what it lacks, and where."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["lists_each"]


def lists_each(place: str, listed: Iterable[str], wanted: Iterable[str]) -> None:
    """Fail where `listed`, which is in `place`, lacks one of `wanted`, or has another name."""
    missing, others = set(wanted) - set(listed), set(listed) - set(wanted)
    assert not missing, f"{', '.join(sorted(missing))}: add to {place}"
    assert not others, f"{', '.join(sorted(others))}: remove from {place}, or add to what it lists"
