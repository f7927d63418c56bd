"""Wrong solutions of puzzles 3."""

from __future__ import annotations

import time

from examples.puzzles.solutions import shops as right
from examples.puzzles.stage import Act

__all__ = ["WRONG"]


class FillsEarly(right.Savages):
    """The cook fills when one serving is missing."""

    def cook(self, fill: Act) -> None:
        with self.when(lambda: self.servings < self.n):
            self.servings += self.n
            fill()


class LooksThenTakes(right.Savages):
    def savage(self, take: Act) -> None:
        while self.servings == 0:
            time.sleep(0)
        with self.when():
            self.servings -= 1
            take()

    def cook(self, fill: Act) -> None:
        with self.when(lambda: self.servings <= 0):
            self.servings = self.n
            fill()


class WithoutAnEnd(right.Barbershop):
    """The barber does not wait until the customer is done."""

    def barber(self, cut: Act) -> None:
        self.customers.acquire()
        with self.lock:
            self.free += 1
        self.ready.release()
        cut()


class NeverFull(right.Barbershop):
    def __init__(self, chairs: int) -> None:
        super().__init__(99)


class CountsWithoutALock(right.Barbershop):
    """Two customers take the last chair."""

    def customer(self, hair: Act, leave: Act) -> None:
        self.customers.release()
        self.ready.acquire()
        hair()


class AnyNumber(right.FifoBarbershop):
    """Waits until it may be its turn, and not for its number."""

    def customer(self, hair: Act, leave: Act) -> None:
        with self.when():
            self.came += 1
            number = self.came
        with self.when(lambda: self.called >= number):
            pass
        with self.when():
            self.done += 1
        hair()


class NoSofa(right.BusyBarbershop):
    """All sit down at once."""

    def __init__(self, room: int, sofa: int) -> None:
        super().__init__(room, 99)


class NoRoom(right.BusyBarbershop):
    def __init__(self, room: int, sofa: int) -> None:
        super().__init__(99, sofa)


class AcceptsFirst(right.BusyBarbershop):
    def barber(self, cut: Act, accept: Act) -> None:
        with self.when():
            self.idle += 1
        with self.when(lambda: self.in_chairs > 0):
            self.in_chairs -= 1
            cut()
            self.receipts += 1
            accept()


class ElvesFirst(right.Santa):
    def santa(self, prepare: Act, help_elves: Act) -> None:
        with self.when(lambda: self.back == self.n or (self.asking == self.group and not self.to_help)):
            if self.asking == self.group and not self.to_help:
                help_elves()
                self.to_help = self.group
            else:
                prepare()
                self.back, self.to_hitch = 0, self.n


class NextGroup(right.Santa):
    """Santa helps the next group before the last one has been helped."""

    def santa(self, prepare: Act, help_elves: Act) -> None:
        with self.when(lambda: self.back == self.n or self.asking >= self.group):
            if self.back == self.n:
                prepare()
                self.back, self.to_hitch = 0, self.n
            else:
                help_elves()
                self.asking -= self.group
                self.to_help += self.group

    def elf(self, get_help: Act) -> None:
        with self.when():
            self.asking += 1
        with self.when(lambda: self.to_help > 0):
            self.to_help -= 1
            get_help()


class DoesNotWaitForSanta(right.Santa):
    def reindeer(self, hitch: Act) -> None:
        with self.when():
            self.back += 1
        with self.when(lambda: self.back == self.n or self.to_hitch > 0):
            hitch()


class OpenDoor(right.Water):
    """Counts those that have come; a fourth one bonds with the first three."""

    def _join(self, kind: str, most: int, bond: Act) -> None:
        with self.when():
            self.inside[kind] += 1
        with self.when(lambda: self.inside["H"] >= 2 and self.inside["O"] >= 1):
            bond()


class AnyThree(right.Water):
    """Three of any kind."""

    def _join(self, kind: str, most: int, bond: Act) -> None:
        super()._join("any", 3, bond)


class AnyFour(right.River):
    """Four that are there, whatever they are."""

    def _cross(self, kind: str, board: Act, row: Act) -> None:
        super()._cross("H", board, row)


class TwoAndTwo(right.River):
    """Four of a kind wait for ever."""

    def _call(self) -> None:
        if not self.to_board and all(self.came[kind] - self.called[kind] >= 2 for kind in "HS"):
            self.called.update({"H": 2, "S": 2})
            self.to_board = 4


class TwoBoats(right.River):
    """The next boat loads while the last one does."""

    def _call(self) -> None:
        self.to_board, before = 0, self.to_board
        super()._call()
        self.to_board += before


class GoesEmpty(right.RollerCoaster):
    def car(self, load: Act, go: Act, unload: Act) -> None:
        with self.when():
            load()
            self.free = self.n
        go()
        with self.when(lambda: self.free == 0):
            unload()
            self.to_leave = self.n
        with self.when(lambda: self.to_leave == 0):
            pass


class LoadsWhileTheyLeave(right.RollerCoaster):
    """The next ride loads before all of the last one have left."""

    def car(self, load: Act, go: Act, unload: Act) -> None:
        with self.when():
            load()
            self.free = self.n
        with self.when(lambda: self.free == 0):
            go()
            unload()
            self.to_leave += self.n


class OneAtATime(right.ManyCars):
    """The next car loads when the last one has unloaded."""

    def car(self, number: int, load: Act, go: Act, unload: Act) -> None:
        with self.when(lambda: self.loads == number):
            load()
            self.free = self.n
        with self.when(lambda: self.free == 0):
            go()
            unload()
            self.to_leave = self.n
        with self.when(lambda: self.to_leave == 0):
            self.loads = (self.loads + 1) % self.cars


class UnloadsInAnyOrder(right.ManyCars):
    """A quick car unloads before the one in front of it."""

    def car(self, number: int, load: Act, go: Act, unload: Act) -> None:
        with self.when(lambda: self.loads == number):
            load()
            self.free = self.n
        with self.when(lambda: self.free == 0):
            self.loads = (self.loads + 1) % self.cars
        go()
        with self.when(lambda: self.to_leave == 0):
            unload()
            self.to_leave = self.n


DEADLOCK = "no thread can go on"

WRONG: dict[str, list[tuple[type, str]]] = {
    "savages": [(FillsEarly, "'fill' with 1 in the pot"), (LooksThenTakes, "'take' with 0 in the pot")],
    "barbershop": [(WithoutAnEnd, "in place of cut hair"), (NeverFull, DEADLOCK), (CountsWithoutALock, DEADLOCK)],
    "fifo_barbershop": [(right.Barbershop, "not in the order hair a"), (AnyNumber, "in place of cut hair")],
    "busy_barbershop": [
        (NoSofa, "'sits' came too early"),
        (NoRoom, DEADLOCK),
        (AcceptsFirst, "'accepts' came too early"),
    ],
    "santa": [
        (ElvesFirst, "not in the order prepares, helps"),
        (NextGroup, "in place of helps asks"),
        (DoesNotWaitForSanta, "came before"),
    ],
    "water": [(OpenDoor, "in place of H H O"), (AnyThree, "in place of H H O")],
    "river": [(AnyFour, "in place of"), (TwoAndTwo, "in place of"), (TwoBoats, "in place of")],
    "roller_coaster": [(GoesEmpty, "in place of load"), (LoadsWhileTheyLeave, f"in place of load|{DEADLOCK}")],
    "many_cars": [(OneAtATime, "were not"), (UnloadsInAnyOrder, "in place of unload0")],
}
