"""Who is next: each scenario gets the time that it needs for a least load, and an equal part of the rest.

What a round costs is known only by its scenario: some do a hundred thousand signals in a second, others wait for a
timer. With turns each, the slow ones would take nearly all of the time; with equal times, they would hardly get a
round. So it is measured, while the load is on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final, TypeVar

__all__ = ["LEAST_ROUNDS", "LEAST_SIGNALS", "Share", "next_of"]

LEAST_SIGNALS: Final = 2_000
LEAST_ROUNDS: Final = 20
PER: Final = 30.0
"""Of each scenario: so many signals, and so many rounds, in so many seconds of load."""

MOST: Final = 4.0
"""A scenario that is slow by itself gets up to so many times an equal part of the time: it has fewer rounds then."""

MARGIN: Final = 1.25
"""What is measured differs from round to round: the least is planned with so much more."""


@dataclass
class Share:
    """What one scenario has had so far. Owned by the thread that runs the load."""

    rounds: int = 0
    signals: int = 0
    seconds: float = 0.0
    _costs: deque[float] = field(default_factory=lambda: deque(maxlen=15), init=False, repr=False)
    """Seconds of the latest rounds."""
    _usual: float = field(default=0.0, init=False, repr=False)
    """Their median."""

    def add(self, signals: int, seconds: float) -> None:
        """One more round."""
        self.rounds += 1
        self.signals += signals
        self.seconds += seconds
        self._costs.append(seconds)
        self._usual = median(self._costs)

    def facts(self) -> dict[str, Any]:
        """As the metadata of a run have it."""
        return {"rounds": self.rounds, "signals": self.signals, "seconds": round(self.seconds, 3)}

    def had(self) -> float:
        """Seconds of its own: a round that took long since the machine had other work counts as all others."""
        return self.rounds * self._usual

    def need(self, seconds: float) -> float:
        """The time that its least load takes, of a load of so many seconds, as far as is known. 0 before it has run."""
        if not self.rounds:
            return 0.0
        times = max(LEAST_ROUNDS / self.rounds, LEAST_SIGNALS / max(self.signals, 1))
        return MARGIN * seconds / PER * times * self.had()


S = TypeVar("S")


def next_of(going: Sequence[S], shares: Sequence[Share], seconds: float) -> S:
    """The one of `going` (one or more, with a share each) that is furthest behind, in a load of so many seconds."""
    equal = seconds / len(going)
    needs = [min(share.need(seconds), MOST * equal) for share in shares]
    needed = sum(needs)
    over = max(0.0, seconds - needed) / len(going)
    planned = [need + over for need in needs]
    done = [share.had() / max(plan, 1e-9) for share, plan in zip(shares, planned, strict=True)]
    return going[done.index(min(done))]
