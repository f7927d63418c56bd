"""Runs plans on both sides, and says where they differ."""

from __future__ import annotations

import functools
import json
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from oracle import ours
from oracle.comparing import FAULTS, ROWS, difference, excused, healed
from oracle.plans import OPERATORS, names, plans
from oracle.theirs import Java

__all__ = ["Counts", "compare", "explore"]

PATIENCE = 10
"""Seconds for one plan; all of them take milliseconds, on virtual time."""


ROUND = 500
"""Plans that are drawn in one go."""


class DiffersError(Exception):
    """A plan does."""


class Hangs(BaseException):
    """Ours does not come back."""


@dataclass
class Counts:
    """What was run."""

    chains: int = 0
    operators: Counter[str] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    excused: Counter[tuple[str, str]] = field(default_factory=Counter)

    def table(self) -> str:
        """As text."""
        lines = [f"{'operator or source':<24} chains"]
        lines += [f"{name:<24} {n:>6}" for name, n in sorted(self.operators.items())]
        lines += ["", f"{'operators in a chain':<24} chains"]
        lines += [f"{n:<24} {count:>6}" for n, count in sorted(self.lengths.items())]
        lines += ["", f"{'explained by':<24} chains {''.join(f'{fault:>8}' for fault in FAULTS)}  would pass as well"]
        for name in dict.fromkeys(row.name for row in ROWS):
            passed = "".join(f"{self.excused[name, fault]:>8}" for fault in FAULTS)
            lines.append(f"{name:<24} {self.rows[name]:>6} {passed}")
        return "\n".join([*lines, "", f"{len(self.operators)} operators and sources, {self.chains} chains"])


def compare(java: Java, plan: Any, counts: Counts | None = None) -> str:
    """Run `plan` on both sides; what differs and has no explanation, empty if nothing does."""
    theirs = java.run(plan)
    with _watched():
        mine = ours.run(plan)
    whole = functools.cache(lambda: java.run(healed(plan)))
    found, rows = difference(plan, mine, theirs, whole)
    if counts is not None:
        counts.chains += 1
        counts.operators.update(name for name in names(plan) if name in ours.OPERATORS or name in ours.SOURCES)
        counts.lengths[len(plan["ops"])] += 1
        if not found:
            counts.rows.update(rows)
            if rows:
                counts.excused.update(excused(plan, mine, theirs, whole))
    if not found:
        return ""
    return f"{found}\n  plan   {json.dumps(plan)}\n  ours   {json.dumps(mine)}\n  theirs {json.dumps(theirs)}"


@contextmanager
def _watched() -> Iterator[None]:
    """A plan that hangs is a failure, which can be shrunk; an alarm that is set already goes on after it."""

    def hangs(number: int, frame: FrameType | None) -> None:
        raise Hangs(f"ours has not come back in {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, hangs)
    left, _ = signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
        signal.signal(signal.SIGALRM, before)


def explore(
    java: Java, chains: int, random: int, *, most: int = 1, operators: tuple[str, ...] = tuple(OPERATORS)
) -> tuple[Counts, list[str]]:
    """Compare so many random plans, the same ones for the same `random`: what was run, and up to `most` differences.

    Each of these comes with the smallest plan that has it. Hypothesis draws plans that resemble those before them, so
    it begins anew after every `ROUND`.
    """
    counts, differences = Counts(), list[str]()
    for begin in range(0, chains, ROUND):
        found = _round(java, counts, min(ROUND, chains - begin), f"{random}, {begin}", operators)
        if found:
            differences.append(found)
        if len(differences) == most:
            break
    return counts, differences


def _round(java: Java, counts: Counts, chains: int, random: str, operators: tuple[str, ...]) -> str:
    """What differs in the smallest plan that does, of so many; empty if nothing does."""
    differs = ""

    @seed(random)
    @settings(
        max_examples=chains,
        database=None,
        deadline=None,  # the JVM compiles as it goes: one plan may take as long as a hundred others
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(plans(operators))
    def agrees(plan: Any) -> None:
        nonlocal differs
        try:
            found = compare(java, plan, None if differs else counts)
        except Hangs as hangs:
            found = f"{hangs}\n  plan   {json.dumps(plan)}"
        if found:
            differs = found
            raise DiffersError

    with suppress(DiffersError):
        agrees()
    return differs
