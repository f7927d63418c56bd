"""Solutions of puzzles 2."""

from __future__ import annotations

import threading
from collections import Counter, deque

from examples.puzzles.monitor import Monitor
from examples.puzzles.stage import Act

__all__ = ["SOLUTIONS"]


class ProducerConsumer:
    """A semaphore counts the items."""

    def __init__(self) -> None:
        self.items: deque[int] = deque()  # lock
        self.lock = threading.Lock()
        self.there = threading.Semaphore(0)

    def put(self, item: int) -> None:
        with self.lock:
            self.items.append(item)
        self.there.release()

    def get(self) -> int:
        self.there.acquire()
        with self.lock:
            return self.items.popleft()


class FiniteBuffer(ProducerConsumer):
    """Another one counts the free places."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.free = threading.Semaphore(n)

    def put(self, item: int) -> None:
        self.free.acquire()
        super().put(item)

    def get(self) -> int:
        item = super().get()
        self.free.release()
        return item


class ReadersWriters(Monitor):
    """Counts both under one lock."""

    readers = writers = 0

    def read(self, act: Act) -> None:
        with self.when(lambda: not self.writers):
            self.readers += 1
        act()
        with self.when():
            self.readers -= 1

    def write(self, act: Act) -> None:
        with self.when(lambda: not self.writers and not self.readers):
            self.writers += 1
        act()
        with self.when():
            self.writers -= 1


class NoStarveReadersWriters(ReadersWriters):
    """A turnstile at the door, in which a writer stays until the room is empty."""

    def __init__(self) -> None:
        super().__init__()
        self.turnstile = threading.Lock()

    def read(self, act: Act) -> None:
        with self.turnstile:
            pass
        super().read(act)

    def write(self, act: Act) -> None:
        with self.turnstile:
            super().write(act)


class WriterPriority(ReadersWriters):
    """Counts the writers that wait, too."""

    wait = 0

    def read(self, act: Act) -> None:
        with self.when(lambda: not self.writers and not self.wait):
            self.readers += 1
        act()
        with self.when():
            self.readers -= 1

    def write(self, act: Act) -> None:
        with self.when():
            self.wait += 1
        with self.when(lambda: not self.writers and not self.readers):
            self.wait -= 1
            self.writers += 1
        act()
        with self.when():
            self.writers -= 1


class NoStarveMutex(Monitor):
    """Numbers, as at a counter."""

    numbers = served = 0

    def enter(self, act: Act) -> None:
        with self.when():
            number = self.numbers
            self.numbers += 1
        with self.when(lambda: self.served == number):
            pass
        act()
        with self.when():
            self.served += 1


class Philosophers:
    """The fork with the lower number first."""

    def __init__(self, n: int) -> None:
        self.forks = [threading.Lock() for _ in range(n)]

    def eat(self, seat: int, act: Act) -> None:
        low, high = sorted((seat, (seat + 1) % len(self.forks)))
        with self.forks[low], self.forks[high]:
            act()


class PatientPhilosophers(Monitor):
    """Eats when neither neighbour does."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.eats = [False] * n

    def eat(self, seat: int, act: Act) -> None:
        left, right = seat - 1, (seat + 1) % len(self.eats)
        with self.when(lambda: not self.eats[left] and not self.eats[right]):
            self.eats[seat] = True
        act()
        with self.when():
            self.eats[seat] = False


class Smokers(Monitor):
    """Takes both or none, and counts what lies there."""

    def __init__(self) -> None:
        super().__init__()
        self.table: Counter[int] = Counter()

    def put(self, ingredient: int) -> None:
        with self.when():
            self.table[ingredient] += 1

    def smoke(self, own: int, act: Act) -> None:
        others = [item for item in range(3) if item != own]
        with self.when(lambda: all(self.table[item] for item in others)):
            self.table.subtract(others)
        act()


SOLUTIONS: dict[str, list[type]] = {
    "producer_consumer": [ProducerConsumer],
    "finite_buffer": [FiniteBuffer],
    "readers_writers": [ReadersWriters],
    "no_starve_readers_writers": [NoStarveReadersWriters],
    "writer_priority": [WriterPriority],
    "no_starve_mutex": [NoStarveMutex],
    "philosophers": [Philosophers, PatientPhilosophers],
    "patient_philosophers": [PatientPhilosophers],
    "smokers": [Smokers],
    "many_smokers": [Smokers],
}
