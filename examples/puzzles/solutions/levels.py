"""Solutions of puzzles 6."""

from __future__ import annotations

import threading

from examples.puzzles import levels
from examples.puzzles.monitor import Monitor
from examples.puzzles.stage import Act

__all__ = ["SOLUTIONS"]


class Gate:
    """A lock for both."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.a = self.b = 0  # lock

    def change(self) -> None:
        with self.lock:
            self.a += 1
            self.b += 1

    def read(self) -> tuple[int, int]:
        with self.lock:
            return self.a, self.b


class Countdown(Monitor):
    """Counts with the lock held."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.left = n

    def done(self) -> None:
        with self.when():
            self.left -= 1

    def wait(self) -> None:
        with self.when(lambda: self.left == 0):
            pass


class LastOne(levels.LastOne):
    """Looks before it gives the lock back."""

    def done(self, act: Act) -> None:
        with self.lock:
            self.left -= 1
            last = self.left == 0
        if last:
            act()


class Swap(levels.Swap):
    """Meets again after reading."""

    def swap(self, side: int, value: int) -> int:
        other = super().swap(side, value)
        self.both.wait()
        return other


class OnePlace(levels.OnePlace):
    """Waits until the place is its own."""

    def enter(self, act: Act) -> None:
        while not self.place.acquire(timeout=1):
            pass
        act()
        self.place.release()


class TryLock(levels.TryLock):
    """Gives back only where it has taken."""

    def attempt(self, act: Act) -> bool:
        if not self.lock.acquire(blocking=False):
            return False
        try:
            act()
            return True
        finally:
            self.lock.release()


class Dragon(levels.Dragon):
    """Counts with the lock held, and waits without it."""

    def refuel(self) -> None:
        with self.lock:
            self.tanks += 1
        self.there.release()

    def fire(self) -> None:
        self.there.acquire()
        with self.lock:
            self.tanks -= 1


class OddAndEven(Monitor):
    """One step."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: list[int] = []

    def put(self, number: int) -> None:
        with self.when():
            self.numbers.append(number)

    def take(self, odd: int) -> int:
        with self.when(lambda: self.numbers and self.numbers[0] % 2 == odd):
            return self.numbers.pop(0)


class Gather(levels.Gather):
    """Counts with the lock held, and wakes all."""

    def arrive(self) -> None:
        with self.all_here:
            self.count += 1
            if self.count == self.n:
                self.all_here.notify_all()
            while self.count < self.n:
                self.all_here.wait()


SOLUTIONS: dict[str, list[type]] = {
    "gate": [Gate],
    "countdown": [Countdown],
    "last_one": [LastOne],
    "swap": [Swap],
    "one_place": [OnePlace],
    "try_lock": [TryLock],
    "dragon": [Dragon],
    "odd_and_even": [OddAndEven],
    "gather": [Gather],
}
