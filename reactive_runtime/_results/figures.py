"""Figures as people read them: how long something took, and how much slower it has become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["duration", "in_words", "times"]

_ALIKE: Final = 1.15
"""Two medians are as slow as each other, up to this factor: what `spark._verdict.regressions` takes for no change."""

_NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def duration(ns: float | None) -> str:
    """Nanoseconds, as people read them."""
    if ns is None:
        return "-"
    for limit, unit in ((1e3, "ns"), (1e6, "µs"), (1e9, "ms")):
        if ns < limit:
            value = ns / (limit / 1e3)
            return f"{value:.0f} {unit}" if value >= 100 or unit == "ns" else f"{value:.3g} {unit}"
    return f"{ns / 1e9:.3g} s"


def times(ratio: float) -> str:
    """How many times the usual; empty where that is next to once, which says nothing."""
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}" if ratio >= _ALIKE else ""


def in_words(item: Mapping[str, Any]) -> str:
    """A regression in a line: how long it took, and what the judge compares it with.

    Args:
        item: A row of the table of regressions: scenario, what, now, usual, ratio, since; `before` and `nights`, which
            older tables lack, say what the nights of the change before this one took, and how many they are.
    """
    since = f", since run {item['since']}" if item.get("since") else ""
    nights, before = item.get("nights") or 0, item.get("before")
    where = f"on the {_count(nights)} before" if nights else ""
    factor = times(item["ratio"])
    if not item["what"]:  # of all scenarios there is only how many times the usual
        took = f"{factor} times as long as usual" if factor else "close to the usual"
        return f"{item['scenario']}: {took}{f', and slow {where}' if where else ''}{since}"
    now, usual = duration(item["now"]), duration(item["usual"])
    if nights and before:
        change = item["now"] / before
        than = "slower than" if change > _ALIKE else "faster than" if change < 1 / _ALIKE else "as slow as"
        took = f"{now}, {than} {where}; the usual is {usual}"
    elif factor:
        took = f"{now}, {factor} times the usual, which is {usual}"
    else:
        took = f"{now}, close to the usual, which is {usual}; the nights before speak for a change"
    return f"{item['scenario']}, {item['what']}: {took}{since}"


def _count(nights: int) -> str:
    if nights == 1:
        return "night"
    return f"{_NUMBERS[nights] if nights < len(_NUMBERS) else nights} nights"
