"""Turns of strategies, and a portfolio that learns which of its strategies pay.

Strategies joined by + take strict turns. So do those of the portfolio at first: meanwhile the search by preemption
bound finishes a small program. After that:

- The search by preemption bound has every second turn as long as it can finish. When the schedules that it has put off
  grow beyond some times those that are left, it has one turn of eight.
- A strategy that samples pays if its schedules have orders of operations that no schedule had before. Its turns are in
  proportion to the share of such schedules. POS has twice as many: it found most in published comparisons.

Nothing is drawn here, so the same seed gives the same schedules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reactive_runtime.explore._search.bounded import Bounded
from reactive_runtime.explore._search.dpor import DPOR
from reactive_runtime.explore._search.strategies import Strategy

__all__ = ["Turns"]

EVEN: Final = 100
"""So many turns a portfolio does not learn."""
SELDOM: Final = 8
"""Of so many turns one is that of a search that can't finish."""
BEYOND: Final = 4
"""A search can't finish if it has put off so many times the schedules that are left: many prove equivalent."""
NEARLY: Final = 200
"""A search that has put off no more than this may finish at once."""
LEAST: Final = 0.1
"""The share of new orders that a strategy counts as having at least."""
TWICE: Final = "pos"


class Turns:
    """Belongs to the thread that explores, between two runs."""

    __slots__ = ("_count", "_drawn", "_even", "_fresh", "_taken", "_turns", "alone", "systematic")

    def __init__(self, turns: Sequence[Strategy], further: Sequence[Strategy] = (), *, learns: bool) -> None:
        self._turns = turns  # one after the other
        self._even = EVEN if learns else None  # for so long; None: always
        self.systematic: Bounded | DPOR | None = next(
            (item for item in turns if isinstance(item, Bounded | DPOR)), None
        )
        self.alone: bool = len(turns) == 1
        sampling = dict.fromkeys([*turns, *further])
        self._taken = {item: 0 for item in sampling if item is not self.systematic}
        self._fresh = dict.fromkeys(self._taken, 1)  # of the orders looked at those that were new,
        self._drawn = dict.fromkeys(self._taken, 1)  # and all
        self._count = 0

    def next(self, left: int) -> Strategy:
        """The strategy whose turn it is; `left` schedules are to be run."""
        count, self._count = self._count, self._count + 1
        if self._even is None or count < self._even:
            return self._turns[count % len(self._turns)]
        search = self.systematic
        if isinstance(search, Bounded):
            may_end = search.put_off <= max(BEYOND * left, NEARLY)
            if count % (2 if may_end else SELDOM) == 0:
                return search
        chosen = min(self._taken, key=self._position)
        self._taken[chosen] += 1
        return chosen

    def _position(self, item: Strategy) -> float:
        """How far a strategy is: the one that is least far goes on. The first of equals, in the order of the turns."""
        pays = max(LEAST, self._fresh[item] / self._drawn[item])
        return (self._taken[item] + 1) / (pays * (2 if item.name == TWICE else 1))

    def saw(self, item: Strategy, *, fresh: bool) -> None:
        """A schedule of this strategy was looked at, and its order was new, or not."""
        if item in self._drawn:
            self._drawn[item] += 1
            self._fresh[item] += fresh
