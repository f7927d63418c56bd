"""Solutions of puzzles 3."""

from __future__ import annotations

import threading
from collections import Counter

from examples.puzzles.monitor import Monitor
from examples.puzzles.stage import Act

__all__ = ["SOLUTIONS"]


class Savages(Monitor):
    """The state is the number of servings."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n
        self.servings = 0

    def savage(self, take: Act) -> None:
        with self.when(lambda: self.servings > 0):
            self.servings -= 1
            take()

    def cook(self, fill: Act) -> None:
        with self.when(lambda: self.servings == 0):
            self.servings = self.n
            fill()


class Barbershop:
    """A rendezvous at the beginning, and one at the end."""

    def __init__(self, chairs: int) -> None:
        self.free = chairs  # lock
        self.lock = threading.Lock()
        self.customers = threading.Semaphore(0)
        self.ready = threading.Semaphore(0)
        self.done = threading.Semaphore(0)

    def barber(self, cut: Act) -> None:
        self.customers.acquire()
        with self.lock:
            self.free += 1
        self.ready.release()
        cut()
        self.done.acquire()

    def customer(self, hair: Act, leave: Act) -> None:
        with self.lock:
            full = self.free == 0
            if not full:
                self.free -= 1
        if full:
            leave()
            return
        self.customers.release()
        self.ready.acquire()
        hair()
        self.done.release()


class FifoBarbershop(Monitor):
    """Customers have numbers; the barber calls them in turn."""

    def __init__(self, chairs: int) -> None:
        super().__init__()
        self.chairs = chairs
        self.came = self.called = self.done = 0

    def barber(self, cut: Act) -> None:
        with self.when(lambda: self.came > self.called):
            self.called += 1
            number = self.called
        cut()
        with self.when(lambda: self.done == number):
            pass

    def customer(self, hair: Act, leave: Act) -> None:
        with self.when():
            full = self.came - self.called == self.chairs
            self.came += not full
            number = self.came
        if full:
            leave()
            return
        with self.when(lambda: self.called == number):
            pass
        hair()
        with self.when():
            self.done += 1


class BusyBarbershop(Monitor):
    """Numbers, and two turns: for the sofa and for the chairs."""

    def __init__(self, room: int, sofa: int) -> None:
        super().__init__()
        self.room = room
        self.sofa = sofa
        self.inside = self.numbers = self.sat = self.served = 0
        self.idle = self.in_chairs = self.paid = self.receipts = 0

    def customer(self, sit: Act, hair: Act, pay: Act, leave: Act) -> None:
        with self.when():
            full = self.inside == self.room
            number = self.numbers
            self.inside += not full
            self.numbers += not full
        if full:
            leave()
            return
        with self.when(lambda: self.sat == number and self.sat - self.served < self.sofa):
            self.sat += 1
            sit()
        with self.when(lambda: self.served == number and self.idle > 0):
            self.served += 1
            self.idle -= 1
            self.in_chairs += 1
            hair()
        with self.when():
            self.paid += 1
            pay()
        with self.when(lambda: self.receipts > 0):
            self.receipts -= 1
            self.inside -= 1

    def barber(self, cut: Act, accept: Act) -> None:
        with self.when():
            self.idle += 1
        with self.when(lambda: self.in_chairs > 0):
            self.in_chairs -= 1
            cut()
        with self.when(lambda: self.paid > 0):
            self.paid -= 1
            self.receipts += 1
            accept()


class Santa(Monitor):
    """A group of elves is shut until its last one has been helped."""

    def __init__(self, reindeer: int, elves: int) -> None:
        super().__init__()
        self.n = reindeer
        self.group = elves
        self.back = self.to_hitch = self.asking = self.to_help = 0

    def santa(self, prepare: Act, help_elves: Act) -> None:
        with self.when(lambda: self.back == self.n or (self.asking == self.group and not self.to_help)):
            if self.back == self.n:
                prepare()
                self.back, self.to_hitch = 0, self.n
            else:
                help_elves()
                self.to_help = self.group

    def reindeer(self, hitch: Act) -> None:
        with self.when():
            self.back += 1
        with self.when(lambda: self.to_hitch > 0):
            self.to_hitch -= 1
            hitch()

    def elf(self, get_help: Act) -> None:
        with self.when(lambda: self.asking < self.group and not self.to_help):
            self.asking += 1
        with self.when(lambda: self.to_help > 0):
            self.to_help -= 1
            self.asking -= 1
            get_help()


class Water(Monitor):
    """The door is shut until all three have bonded."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: Counter[str] = Counter()
        self.bonded = 0

    def hydrogen(self, bond: Act) -> None:
        self._join("H", 2, bond)

    def oxygen(self, bond: Act) -> None:
        self._join("O", 1, bond)

    def _join(self, kind: str, most: int, bond: Act) -> None:
        with self.when(lambda: self.inside[kind] < most):
            self.inside[kind] += 1
        with self.when(lambda: self.inside.total() == 3):
            bond()
            self.bonded += 1
            if self.bonded == 3:
                self.bonded = 0
                self.inside.clear()


class River(Monitor):
    """Numbers, and for each boat those that it calls; the last one to board rows."""

    def __init__(self) -> None:
        super().__init__()
        self.came = Counter(H=0, S=0)
        self.called = Counter(H=0, S=0)
        self.to_board = 0

    def hacker(self, board: Act, row: Act) -> None:
        self._cross("H", board, row)

    def serf(self, board: Act, row: Act) -> None:
        self._cross("S", board, row)

    def _cross(self, kind: str, board: Act, row: Act) -> None:
        with self.when():
            self.came[kind] += 1
            number = self.came[kind]
            self._call()
        with self.when(lambda: number <= self.called[kind]):
            board()
            self.to_board -= 1
            if self.to_board == 0:
                row()
                self._call()

    def _call(self) -> None:
        if self.to_board:
            return
        for boat in ({"H": 4}, {"S": 4}, {"H": 2, "S": 2}):
            if all(self.came[kind] - self.called[kind] >= count for kind, count in boat.items()):
                self.called.update(boat)
                self.to_board = 4
                return


class RollerCoaster(Monitor):
    """Free seats, and those that have to leave."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n
        self.free = self.to_leave = 0

    def car(self, load: Act, go: Act, unload: Act) -> None:
        with self.when():
            load()
            self.free = self.n
        with self.when(lambda: self.free == 0):
            go()
            unload()
            self.to_leave = self.n
        with self.when(lambda: self.to_leave == 0):
            pass

    def passenger(self, board: Act, leave: Act) -> None:
        with self.when(lambda: self.free > 0):
            self.free -= 1
            board()
        with self.when(lambda: self.to_leave > 0):
            self.to_leave -= 1
            leave()


class ManyCars(Monitor):
    """A turn for loading, and one for unloading."""

    def __init__(self, n: int, cars: int) -> None:
        super().__init__()
        self.n = n
        self.cars = cars
        self.loads = self.unloads = 0
        self.free = self.to_leave = 0

    def car(self, number: int, load: Act, go: Act, unload: Act) -> None:
        with self.when(lambda: self.loads == number):
            load()
            self.free = self.n
        with self.when(lambda: self.free == 0):
            self.loads = (self.loads + 1) % self.cars
        go()
        with self.when(lambda: self.unloads == number):
            unload()
            self.to_leave = self.n
        with self.when(lambda: self.to_leave == 0):
            self.unloads = (self.unloads + 1) % self.cars

    def passenger(self, board: Act, leave: Act) -> None:
        with self.when(lambda: self.free > 0):
            self.free -= 1
            board()
        with self.when(lambda: self.to_leave > 0):
            self.to_leave -= 1
            leave()


SOLUTIONS: dict[str, list[type]] = {
    "savages": [Savages],
    "barbershop": [Barbershop, FifoBarbershop],
    "fifo_barbershop": [FifoBarbershop],
    "busy_barbershop": [BusyBarbershop],
    "santa": [Santa],
    "water": [Water],
    "river": [River],
    "roller_coaster": [RollerCoaster],
    "many_cars": [ManyCars],
}
