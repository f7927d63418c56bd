"""What can be judged from a trace, and what each asks, in one sentence: 24 checks, 22 of them rules."""

from __future__ import annotations

from typing import Final

from reactive_runtime import rules

__all__ = ["RECURSION", "RULES"]

_JUDGED: Final = (
    *("1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9"),
    *("2.3", "2.4", "2.5", "2.7", "2.12"),
    *("3.2", "3.3", "3.6", "3.7", "3.8", "3.9", "3.16", "3.17"),
)

RULES: Final[dict[str, str]] = {rule: rules.RULES[rule] for rule in _JUDGED} | {
    "conservation": "no element is delivered twice, and none is lost before on_complete",
    "order": "elements come in the order of the source",
}

RECURSION: Final = 16
"""3.3: how many recorded calls, one inside the other on one thread, an element may be inside of."""
