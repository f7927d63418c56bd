"""Money goes there and back between two accounts, each with a lock."""

from __future__ import annotations

import threading
from typing import Any

from examples.hazards.exercises.exercise import Exercise
from reactive_runtime.explore import Scenario


class Account:
    """A number, and the lock that owns it."""

    def __init__(self, number: int, money: int) -> None:
        self.number = number
        self.lock = threading.Lock()
        self.money = money

    def transfer(self, target: Account, amount: int) -> None:
        """Move money from this account to another."""
        with self.lock, target.lock:
            self.money -= amount
            target.money += amount


class Branch:
    """One thread moves money there, one back, and one from an account to the same."""

    def __init__(self, account: Any) -> None:
        self.one, self.two = account(1, 100), account(2, 100)

    def there(self) -> None:
        self.one.transfer(self.two, 30)

    def back(self) -> None:
        self.two.transfer(self.one, 10)

    def nowhere(self) -> None:
        self.one.transfer(self.one, 5)

    def at_end(self) -> None:
        left = (self.one.money, self.two.money)
        assert left == (80, 120), f"of (100, 100) 30 went there and 10 back, and it is {left}"


def scenario(account: type[Any]) -> Any:
    """The check of a class."""
    actors = {"there": [Branch.there], "back": [Branch.back], "nowhere": [Branch.nowhere]}
    return Scenario(lambda: Branch(account), actors, Branch.at_end, name=account.__name__, parts=[account])


EXERCISE = Exercise(
    title="There and back",
    group="D",
    task="""`Account.transfer` moves money between any two accounts, and always ends: where others move money the
    other way, and where both accounts are the same. Nothing is lost.""",
    hint="""One order for all locks breaks the circle: `number` is different for each account. And one account has
    one lock.""",
    program=Account,
    check=scenario,
)
SCENARIO = scenario(Account)
