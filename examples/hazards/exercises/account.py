"""Money is moved from one place to another, while the sum is asked for."""

from __future__ import annotations

import threading
from typing import Any

from examples.hazards.exercises.exercise import Exercise
from reactive_runtime.explore import Scenario


class Account:
    """A current and a savings account."""

    def __init__(self, current: int) -> None:
        self.lock = threading.Lock()
        self.current = current
        self.savings = 0

    def save(self, amount: int) -> None:
        """Move an amount to the savings."""
        with self.lock:
            self.current -= amount
            self.savings += amount

    def total(self) -> int:
        """All that there is."""
        return self.current + self.savings


class Bank:
    """One thread saves, another asks for the sum."""

    def __init__(self, account: Any) -> None:
        self.account = account(100)
        self.seen = 0

    def save(self) -> None:
        self.account.save(30)

    def audit(self) -> None:
        self.seen = self.account.total()

    def at_end(self) -> None:
        assert self.seen == 100, f"there are 100 all the time, and {self.seen} were seen"
        left = (self.account.current, self.account.savings)
        assert left == (70, 30), f"30 of 100 were to be saved, and it is {left}"


def scenario(account: type[Any]) -> Any:
    """The check of a class."""
    return Scenario(
        lambda: Bank(account),
        {"saves": [Bank.save], "audits": [Bank.audit]},
        Bank.at_end,
        name=account.__name__,
        parts=[account],
    )


EXERCISE = Exercise(
    title="A sum that was never there",
    group="A",
    task="""`Account.total` is a sum that there was at one moment. Money that is on its way is neither lost nor
    counted twice.""",
    hint="""Who only reads needs the lock too. Why?""",
    program=Account,
    check=scenario,
)
SCENARIO = scenario(Account)
