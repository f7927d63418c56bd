"""How much of what a strategy would choose has been seen: an estimate from what was seen once only.

Schedules are drawn, and each puts operations in an order: which came after which. Of n drawn schedules let f be the
orders seen exactly once. Good and Turing (1953): the expected share of orders seen once among n + 1 draws is the chance
that draw n + 1 was new. Of draw n + 1 nothing is known, so it is counted as one that was seen once:

    coverage = 1 - (f + 1) / (n + 1)

It is about the draws of that strategy: a schedule that the strategy hardly ever draws is hardly ever missed. And it is
about schedules, not about faults. It is never all: that is for a search that comes to its end.

To know the order costs a schedule an eighth of its time. So it is looked at in the first draws, and then in one of
eight: the estimate is that for these draws, which all draws together cover as well.
"""

from __future__ import annotations

from typing import Final

__all__ = ["Coverage", "is_drawn_for"]

ALL: Final = 200
"""So many draws are looked at one and all."""


def is_drawn_for(number: int) -> bool:
    """Whether the order of draw `number` is looked at. Which of eight it is has no period that strategies may have."""
    return number < ALL or number * 2_654_435_769 % (1 << 32) < 1 << 29


class Coverage:
    """Counts the orders of schedules that were drawn. Belongs to the thread that explores, between two runs."""

    __slots__ = ("_drawn", "_once", "_seen", "_version")

    def __init__(self) -> None:
        self._seen: dict[int, bool] = {}  # for each order, whether it was seen more than once
        self._once = 0  # how many were not
        self._drawn = 0
        self._version = -1

    def add(self, order: int, version: int) -> bool:
        """A schedule was drawn: whether its order is new.

        Of another version of the points, orders are others: counting begins anew.
        """
        if version != self._version:
            self._version = version
            self._seen.clear()
            self._once = self._drawn = 0
        self._drawn += 1
        again = self._seen.get(order)
        if again is None:
            self._seen[order] = False
            self._once += 1
        elif not again:
            self._seen[order] = True
            self._once -= 1
        return again is None

    def estimate(self) -> float | None:
        """The chance that a further draw does what one of these did; None where none was drawn."""
        return 1 - (self._once + 1) / (self._drawn + 1) if self._drawn else None
