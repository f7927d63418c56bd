"""Wrong solutions of puzzles 2."""

from __future__ import annotations

import threading
import time
from collections import Counter

from examples.puzzles.solutions import classics as right
from examples.puzzles.stage import Act

__all__ = ["WRONG"]


class LooksThenTakes(right.ProducerConsumer):
    """Two that get see the same item."""

    def get(self) -> int:
        while not self.items:
            time.sleep(0)
        return self.items.popleft()


class SignalsFirst(right.ProducerConsumer):
    """Says that there is an item before it is there."""

    def put(self, item: int) -> None:
        self.there.release()
        with self.lock:
            self.items.append(item)


class WaitsWithTheLock(right.ProducerConsumer):
    def get(self) -> int:
        with self.lock:
            self.there.acquire()
            return self.items.popleft()


class Unbounded(right.ProducerConsumer):
    def __init__(self, n: int) -> None:
        super().__init__()


class OneLess(right.FiniteBuffer):
    """Holds one item, whatever the size."""

    def __init__(self, n: int) -> None:
        super().__init__(1)


class WaitsForRoomWithTheLock(right.FiniteBuffer):
    def put(self, item: int) -> None:
        with self.lock:
            self.free.acquire()
            self.items.append(item)
        self.there.release()


class OneLock:
    """Readers do not share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def read(self, act: Act) -> None:
        with self.lock:
            act()

    def write(self, act: Act) -> None:
        with self.lock:
            act()


class ReadersLockNothing(OneLock):
    def read(self, act: Act) -> None:
        act()


class FirstReaderWithoutALock:
    """Counts readers without a lock of their own: two may be the first."""

    def __init__(self) -> None:
        self.readers = 0
        self.empty = threading.Semaphore(1)

    def read(self, act: Act) -> None:
        self.readers += 1
        if self.readers == 1:
            self.empty.acquire()
        act()
        self.readers -= 1
        if self.readers == 0:
            self.empty.release()

    def write(self, act: Act) -> None:
        with self.empty:
            act()


class Spins:
    """A lock that does not say who is next."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def enter(self, act: Act) -> None:
        with self.lock:
            act()


class SkipsANumber(right.NoStarveMutex):
    """Two threads draw the same number."""

    def enter(self, act: Act) -> None:
        number = self.numbers
        self.numbers = number + 1
        with self.when(lambda: self.served == number):
            pass
        act()
        with self.when():
            self.served += 1


class LeftFirst(right.Philosophers):
    """All take the left fork, and wait for the right one."""

    def eat(self, seat: int, act: Act) -> None:
        with self.forks[seat], self.forks[(seat + 1) % len(self.forks)]:
            act()


class OneAtATime(right.Philosophers):
    """One lock for the table, held while eating."""

    def eat(self, seat: int, act: Act) -> None:
        with self.forks[0]:
            act()


class LeftForkOnly(right.Philosophers):
    def eat(self, seat: int, act: Act) -> None:
        with self.forks[seat]:
            act()


class TakesOneByOne:
    """A smoker takes what it needs one after the other."""

    def __init__(self) -> None:
        self.table = [threading.Semaphore(0) for _ in range(3)]

    def put(self, ingredient: int) -> None:
        self.table[ingredient].release()

    def smoke(self, own: int, act: Act) -> None:
        for item in range(3):
            if item != own:
                self.table[item].acquire()
        act()


class OneIsEnough(right.Smokers):
    """Goes as soon as one of the two is there."""

    def smoke(self, own: int, act: Act) -> None:
        others = [item for item in range(3) if item != own]
        with self.when(lambda: any(self.table[item] for item in others)):
            self.table.subtract(others)
        act()


class Flags(right.Smokers):
    """One of each kind is remembered."""

    def put(self, ingredient: int) -> None:
        with self.when():
            self.table = self.table | Counter([ingredient])


class TakesNothing(right.Smokers):
    """Leaves on the table what it has smoked."""

    def smoke(self, own: int, act: Act) -> None:
        others = [item for item in range(3) if item != own]
        with self.when(lambda: all(self.table[item] for item in others)):
            pass
        act()


DEADLOCK = "no thread can go on"

WRONG: dict[str, list[tuple[type, str]]] = {
    "producer_consumer": [(LooksThenTakes, "IndexError"), (SignalsFirst, "IndexError"), (WaitsWithTheLock, DEADLOCK)],
    "finite_buffer": [(Unbounded, "too early"), (OneLess, DEADLOCK), (WaitsForRoomWithTheLock, DEADLOCK)],
    "readers_writers": [
        (OneLock, "2 could do 'reads'"),
        (ReadersLockNothing, "'reads' and 'writes' at the same time"),
        (FirstReaderWithoutALock, f"{DEADLOCK}|'reads' and 'writes' at the same time"),
    ],
    "no_starve_readers_writers": [(right.ReadersWriters, "'+reads s' came before '+writes w'"), (OneLock, "2 could")],
    "writer_priority": [
        (right.ReadersWriters, "'+reads s' came before '+writes w'"),
        (right.NoStarveReadersWriters, "'+reads s' came before '+writes w'"),
    ],
    "no_starve_mutex": [(Spins, "times '+in a' before '+in b'"), (SkipsANumber, DEADLOCK)],
    "philosophers": [
        (LeftFirst, DEADLOCK),
        (OneAtATime, "could be done at the same time"),
        (LeftForkOnly, "at the same time"),
    ],
    "patient_philosophers": [(right.Philosophers, "came before"), (LeftFirst, DEADLOCK)],
    "smokers": [(TakesOneByOne, "not in the order"), (OneIsEnough, "not in the order")],
    "many_smokers": [(Flags, DEADLOCK), (TakesNothing, "smoked, and")],
}
