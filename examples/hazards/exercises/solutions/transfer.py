"""Locks are taken in the order of the accounts' numbers; and a transfer to the same account needs none."""

from __future__ import annotations

import threading


class Account:
    """A number, and the lock that owns it."""

    def __init__(self, number: int, money: int) -> None:
        self.number = number
        self.lock = threading.Lock()
        self.money = money

    def transfer(self, target: Account, amount: int) -> None:
        """Move money from this account to another."""
        if target is self:
            return
        first, second = sorted((self, target), key=lambda account: account.number)
        with first.lock, second.lock:
            self.money -= amount
            target.money += amount


SOLUTION = Account
