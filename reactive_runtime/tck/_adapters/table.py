"""The table of several adapters: a row for each check, a column for each adapter."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from reactive_runtime.tck._adapters.meanings import MEANINGS
from reactive_runtime.tck._verification import Outcome

__all__ = ["Result", "table"]

WORDS: Final = {"passed": "holds", "failed": "FAILS", "skipped": "not looked at", "not run": "not looked at"}


@dataclass(frozen=True, slots=True)
class Result:
    """The findings of all checks for one adapter.

    Args:
        name: Its name.
        outcomes: The outcome of each check.
    """

    name: str
    outcomes: Sequence[Outcome]

    @property
    def accused(self) -> list[str]:
        """The rules whose checks have failed."""
        return [outcome.check.rule for outcome in self.outcomes if outcome.status == "failed"]


def table(results: Iterable[Result]) -> str:
    """One table of several adapters; below it, each finding and each reason why something was not looked at.

    Args:
        results: Those of `judge`.

    Returns:
        The lines.

    Example:
        >>> print(table([]).splitlines()[0])
        rule  check
    """
    columns = list(results)
    words = {(id(item), found.check.rule): WORDS[found.status] for item in columns for found in item.outcomes}
    widths = [max(len(item.name), *map(len, WORDS.values())) for item in columns]
    most = max(map(len, MEANINGS.values()))
    names = [item.name.ljust(n) for item, n in zip(columns, widths, strict=True)]
    lines = ["  ".join(["rule", "check".ljust(most), *names]).rstrip()]
    for rule, meaning in MEANINGS.items():
        cells = [words.get((id(item), rule), "").ljust(n) for item, n in zip(columns, widths, strict=True)]
        lines.append("  ".join([f"{rule:4}", meaning.ljust(most), *cells]).rstrip())
    for item in columns:
        for found in item.outcomes:
            if found.status != "passed":
                lines += ["", *_reason(item.name, found)]
    return "\n".join(lines)


def _reason(name: str, found: Outcome) -> list[str]:
    seen = next((line.strip() for line in found.why.splitlines() if line.startswith("  seen: ")), found.why)
    text = f"{name}, {found.check.rule}, {WORDS[found.status]}: {seen.removeprefix('seen: ')}"
    return textwrap.wrap(text, 120, subsequent_indent="  ")
