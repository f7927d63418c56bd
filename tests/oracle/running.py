"""Runs plans on both sides, and says where they differ."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from oracle import ours
from oracle.comparing import difference
from oracle.plans import names, plans
from oracle.theirs import Java

__all__ = ["Counts", "compare", "explore"]

PATIENCE = 10
"""Seconds for one plan; all of them take milliseconds, on virtual time."""


class Hangs(BaseException):
    """Ours does not come back."""


@dataclass
class Counts:
    """What was run."""

    chains: int = 0
    operators: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)

    def table(self) -> str:
        """As text."""
        lines = [f"{'operator or source':<24} chains"]
        lines += [f"{name:<24} {n:>6}" for name, n in sorted(self.operators.items())]
        lines += ["", f"{'explained by':<24} chains"]
        lines += [f"{name:<24} {n:>6}" for name, n in sorted(self.rows.items())]
        return "\n".join([*lines, "", f"{len(self.operators)} operators and sources, {self.chains} chains"])


def compare(java: Java, plan: Any, counts: Counts | None = None) -> str:
    """Run `plan` on both sides; what differs and has no explanation, empty if nothing does."""
    theirs = java.run(plan)
    with _watched():
        mine = ours.run(plan)
    found, rows = difference(plan, mine, theirs)
    if counts is not None:
        counts.chains += 1
        counts.operators.update(name for name in names(plan) if name in ours.OPERATORS or name in ours.SOURCES)
        if not found:
            counts.rows.update(rows)
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


def explore(java: Java, chains: int, random: int | None = None) -> Counts:
    """Compare so many random plans; AssertionError for a difference, with the smallest plan that has it."""
    counts = Counts()

    @settings(
        max_examples=chains,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(plans())
    def agrees(plan: Any) -> None:
        found = compare(java, plan, counts)
        assert not found, found

    (agrees if random is None else seed(random)(agrees))()
    return counts
