"""Choose the next scenario: each gets its least load first, and then an equal part of the time that is left.

Rounds differ in cost: some scenarios do a hundred thousand signals in a second, others wait for a timer. With turns,
the slow ones would take nearly all of the time; with equal times, they would hardly get a round. As long as some
scenarios lack their least load, the one that is furthest from it is next: so all get it, where the time is enough. The
harness measures what a round of each scenario costs, to share the rest, and to notice a scenario that is always slow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final, TypeVar

__all__ = ["LEAST_ROUNDS", "LEAST_SIGNALS", "Share", "next_of", "short"]

LEAST_SIGNALS: Final = 2_000
LEAST_ROUNDS: Final = 20
PER: Final = 30.0
"""Of each scenario: so many signals, and so many rounds, in so many seconds of load."""

MOST: Final = 4.0
"""A scenario that is always slow gets up to so many times an equal part of the time, and has fewer rounds."""

KNOWN: Final = 3
"""Rounds after which the cost of a scenario is known well enough to call it slow: one of them may have been held up."""


@dataclass
class Share:
    """The load that one scenario has had so far. The thread that runs the load owns it."""

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

    def progress(self, seconds: float) -> float:
        """How much it has of its least load, in a load of so many seconds: 1 is all of it."""
        return min(self.rounds / LEAST_ROUNDS, self.signals / LEAST_SIGNALS) * PER / seconds

    def done(self, seconds: float, most: float) -> float:
        """The same, where a scenario that is always slow needs no more than `most` seconds."""
        slow = self.had() / most if self.rounds >= KNOWN else 0.0
        return max(self.progress(seconds), slow)

    def over(self, seconds: float, most: float) -> float:
        """Seconds that it has had beyond what it needed for that."""
        had = self.had()
        return had - min(had / max(self.progress(seconds), 1e-9), most)


S = TypeVar("S")


def next_of(going: Sequence[S], shares: Sequence[Share], seconds: float) -> S:
    """The one of `going` (one or more, with a share each) that is furthest behind, in a load of so many seconds."""
    most = MOST * seconds / len(going)
    done = [share.done(seconds, most) for share in shares]
    least = min(done)
    if least < 1:
        return going[done.index(least)]
    over = [share.over(seconds, most) for share in shares]
    return going[over.index(min(over))]


def short(shares: Mapping[S, Share], seconds: float) -> list[S]:
    """Those that have less than their least load, in a load of so many seconds."""
    return [name for name, share in shares.items() if share.progress(seconds) < 1]
