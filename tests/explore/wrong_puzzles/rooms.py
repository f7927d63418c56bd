"""Wrong solutions of puzzles 4."""

from __future__ import annotations

import threading
import time

from examples.puzzles.solutions import rooms as right
from examples.puzzles.stage import Act

__all__ = ["WRONG"]


class InsertsTogether(right.SearchInsertDelete):
    def insert(self, act: Act) -> None:
        with self.when(lambda: not self.deletes):
            self.inserts += 1
        act()
        with self.when():
            self.inserts -= 1


class InsertsAlone(right.SearchInsertDelete):
    """An insert shuts out searches, too."""

    def insert(self, act: Act) -> None:
        self.delete(act)


class DeletesBesideASearch(right.SearchInsertDelete):
    def delete(self, act: Act) -> None:
        with self.when(lambda: not self.inserts and not self.deletes):
            self.deletes += 1
        act()
        with self.when():
            self.deletes -= 1


class Unlimited(right.Bathroom):
    """No more than `n` is forgotten."""

    def __init__(self, n: int) -> None:
        super().__init__(99)


class OneAtATime(right.Bathroom):
    def __init__(self, n: int) -> None:
        super().__init__(1)


class LooksThenGoes(right.Bathroom):
    """Looks whether there is room, and goes in later."""

    def come(self, side: int) -> None:
        while not self.fits(side):
            time.sleep(0)
        with self.when():
            self.inside[side] += 1


class AnyoneOnTheRope(right.FairSides):
    def fits(self, side: int) -> bool:
        return sum(self.inside) < self.n


class LonelyRope(right.FairSides):
    def __init__(self, n: int) -> None:
        super().__init__(1)


class NoMajority(right.ModusHall):
    """Its own may always follow."""

    def may(self, own: int, other: int) -> bool:
        return self.walks[other] == 0


class Queue(right.ModusHall):
    """One that waits is a majority."""

    def may(self, own: int, other: int) -> bool:
        return not self.waits[other] if self.walks[own] else super().may(own, other)


class BothWalk(right.ModusHall):
    def may(self, own: int, other: int) -> bool:
        return self.waits[own] >= self.waits[other]


class Multiplex:
    """A seat that is free is taken."""

    def __init__(self, n: int) -> None:
        self.seats = threading.Semaphore(n)

    def eat(self, act: Act) -> None:
        with self.seats:
            act()


class LooksOnce:
    """Those that waited go in without looking again, beside others that have come meanwhile."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.changed = threading.Condition()
        self.eating = 0
        self.full = False

    def eat(self, act: Act) -> None:
        with self.changed:
            if self.full:
                self.changed.wait()
            self.eating += 1
            self.full = self.eating >= self.n
        act()
        with self.changed:
            self.eating -= 1
            if not self.eating:
                self.full = False
                self.changed.notify_all()


class OnePartyAtATime(right.SushiBar):
    """One seat."""

    def __init__(self, n: int) -> None:
        super().__init__(1)


class LeavesTheChildren(right.ChildCare):
    """An adult leaves when it likes."""

    def adult(self, come: Act, stay: Act, leave: Act) -> None:
        with self.when():
            self.adults += 1
            come()
        stay()
        with self.when():
            self.adults -= 1
            leave()


class AnyNumberOfChildren(right.ChildCare):
    def child(self, stay: Act) -> None:
        with self.when(lambda: self.adults > 0):
            self.children += 1
        stay()
        with self.when():
            self.children -= 1


class OneByOne(right.Permits):
    """Two adults that leave each take some of the permits that both need."""

    def adult(self, come: Act, stay: Act, leave: Act) -> None:
        come()
        self.permits.release(self.n)
        stay()
        for _ in range(self.n):
            self.permits.acquire()
        leave()


DEADLOCK = "no thread can go on"

WRONG: dict[str, list[tuple[type, str]]] = {
    "search_insert_delete": [
        (InsertsTogether, "2 did 'insert'"),
        (InsertsAlone, "could be done at the same time"),
        (DeletesBesideASearch, "'delete' and 'search' at the same time"),
    ],
    "bathroom": [(Unlimited, "3 did 'man'"), (OneAtATime, "2 could do 'woman'"), (LooksThenGoes, "at the same time")],
    "fair_bathroom": [(right.Bathroom, "'+woman c' came before '+man b'"), (OneAtATime, "2 could do 'woman'")],
    "baboons": [
        (right.Sides, "'+side0 c' came before '+side1 b'"),
        (AnyoneOnTheRope, "'side0' and 'side1' at the same time"),
        (LonelyRope, "2 could do 'side0'"),
    ],
    "modus_hall": [
        (NoMajority, "'+side0 d' came before"),
        (Queue, "'+side1 b' came before"),
        (BothWalk, "at the same time"),
    ],
    "sushi_bar": [
        (Multiplex, "'+eats c' came before '-eats a'"),
        (LooksOnce, "2 did 'eats'"),
        (OnePartyAtATime, "2 could do 'eats'"),
    ],
    "child_care": [
        (LeavesTheChildren, "children and 0 adults"),
        (AnyNumberOfChildren, "3 children and 1 adults"),
        (OneByOne, "came before any 'leaves'"),
    ],
    "full_child_care": [(LeavesTheChildren, "children and 0 adults"), (right.Permits, "came before '+child f'")],
}
