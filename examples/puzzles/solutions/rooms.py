"""Solutions of puzzles 4."""

from __future__ import annotations

import threading
from collections.abc import Callable

from examples.puzzles.monitor import Monitor
from examples.puzzles.stage import Act

__all__ = ["SOLUTIONS"]


class SearchInsertDelete(Monitor):
    """Three counts."""

    searches = inserts = deletes = 0

    def search(self, act: Act) -> None:
        with self.when(lambda: not self.deletes):
            self.searches += 1
        act()
        with self.when():
            self.searches -= 1

    def insert(self, act: Act) -> None:
        with self.when(lambda: not self.deletes and not self.inserts):
            self.inserts += 1
        act()
        with self.when():
            self.inserts -= 1

    def delete(self, act: Act) -> None:
        with self.when(lambda: not self.searches and not self.inserts and not self.deletes):
            self.deletes += 1
        act()
        with self.when():
            self.deletes -= 1


class Sides(Monitor):
    """Those of one side, up to `n`."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n
        self.inside = [0, 0]

    def fits(self, side: int) -> bool:
        """Whether one more may go in; with the lock held."""
        return self.inside[1 - side] == 0 and self.inside[side] < self.n

    def come(self, side: int) -> None:
        with self.when(lambda: self.fits(side)):
            self.inside[side] += 1

    def cross(self, side: int, act: Act) -> None:
        self.come(side)
        act()
        with self.when():
            self.inside[side] -= 1


class Bathroom(Sides):
    """Side 0 are women, side 1 are men."""

    def woman(self, act: Act) -> None:
        self.cross(0, act)

    def man(self, act: Act) -> None:
        self.cross(1, act)


class FairSides(Sides):
    """One after the other through a turnstile, in which one waits until it fits."""

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.turnstile = threading.Lock()

    def come(self, side: int) -> None:
        with self.turnstile:
            super().come(side)


class FairBathroom(FairSides, Bathroom):
    """Both."""


class ModusHall(Monitor):
    """Those on the path and those that wait, of each faction."""

    def __init__(self) -> None:
        super().__init__()
        self.walks = [0, 0]
        self.waits = [0, 0]

    def walk(self, faction: int, act: Act) -> None:
        with self.when():
            self.waits[faction] += 1
        with self.when(lambda: self.may(faction, 1 - faction)):
            self.waits[faction] -= 1
            self.walks[faction] += 1
        act()
        with self.when():
            self.walks[faction] -= 1

    def may(self, own: int, other: int) -> bool:
        """Whether one of its own goes on; with the lock held."""
        if self.walks[own]:
            return self.waits[other] <= self.walks[own]
        return self.walks[other] == 0 and self.waits[other] <= self.waits[own]


class SushiBar(Monitor):
    """Full until it is empty."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n
        self.eating = 0
        self.full = False

    def eat(self, act: Act) -> None:
        with self.when(lambda: not self.full):
            self.eating += 1
            self.full = self.eating == self.n
        act()
        with self.when():
            self.eating -= 1
            if not self.eating:
                self.full = False


class ChildCare(Monitor):
    """Two counts; one that waits holds nothing."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n
        self.adults = self.children = 0

    def adult(self, come: Act, stay: Act, leave: Act) -> None:
        with self.when():
            self.adults += 1
            come()
        stay()
        with self.when(lambda: self.children <= self.n * (self.adults - 1)):
            self.adults -= 1
            leave()

    def child(self, stay: Act) -> None:
        with self.when(lambda: self.children < self.n * self.adults):
            self.children += 1
        stay()
        with self.when():
            self.children -= 1


class Permits:
    """Another solution of `child_care`: an adult takes its permits back one by one, and one adult at a time does."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.permits = threading.Semaphore(0)
        self.leaving = threading.Lock()

    def adult(self, come: Act, stay: Act, leave: Act) -> None:
        come()
        self.permits.release(self.n)
        stay()
        with self.leaving:
            for _ in range(self.n):
                self.permits.acquire()
        leave()

    def child(self, stay: Act) -> None:
        with self.permits:
            stay()


SOLUTIONS: dict[str, list[Callable[..., object]]] = {
    "search_insert_delete": [SearchInsertDelete],
    "bathroom": [Bathroom, FairBathroom],
    "fair_bathroom": [FairBathroom],
    "baboons": [FairSides],
    "modus_hall": [ModusHall],
    "sushi_bar": [SushiBar],
    "child_care": [ChildCare],
    "full_child_care": [ChildCare],
}
