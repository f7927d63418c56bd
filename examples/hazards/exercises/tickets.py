"""An office sells its last ticket."""

from __future__ import annotations

import threading
from typing import Any

from examples.hazards.exercises.exercise import Exercise
from reactive_runtime.explore import Scenario


class Office:
    """Sells tickets, as long as there are any."""

    def __init__(self, tickets: int) -> None:
        self.lock = threading.Lock()
        self.tickets = tickets

    def sell(self) -> bool:
        """Whether there was one."""
        with self.lock:
            sold_out = self.tickets == 0
        if sold_out:
            return False
        with self.lock:
            self.tickets -= 1
        return True


class Day:
    """Two buyers, and one ticket."""

    def __init__(self, office: Any) -> None:
        self.office = office(1)
        self.sold: list[bool] = []

    def buy(self) -> None:
        self.sold.append(self.office.sell())

    def at_end(self) -> None:
        assert sorted(self.sold) == [False, True], f"there was one ticket, and {self.sold.count(True)} were sold"


def scenario(office: type[Any]) -> Any:
    """The check of a class."""
    return Scenario(
        lambda: Day(office), {"ann": [Day.buy], "bob": [Day.buy]}, Day.at_end, name=office.__name__, parts=[office]
    )


EXERCISE = Exercise(
    title="The last ticket",
    group="A",
    task="""`Office.sell` says whether there was a ticket, and takes it. One ticket is sold once, however many ask
    for it at the same time. The signatures stay as they are.""",
    hint="""Each of the two blocks under the lock is right. What may another thread do between them?""",
    program=Office,
    check=scenario,
)
SCENARIO = scenario(Office)
