"""What can be judged from a trace, and what each asks, in one sentence: eleven checks, ten of them rules."""

from __future__ import annotations

from typing import Final

from reactive_runtime import rules

__all__ = ["RULES"]

_JUDGED: Final = ("1.1", "1.3", "1.7", "1.8", "1.9", "2.7", "3.8", "3.9", "3.16", "3.17")

RULES: Final[dict[str, str]] = {rule: rules.RULES[rule] for rule in _JUDGED} | {
    "conservation": "no element is delivered twice, and none is lost before on_complete"
}
