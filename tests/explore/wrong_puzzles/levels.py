"""Wrong solutions of puzzles 6: mostly classes that are half mended."""

from __future__ import annotations

import threading
import time

from examples.puzzles import levels
from examples.puzzles.solutions import levels as right
from examples.puzzles.stage import Act

__all__ = ["WRONG"]


class LockedChange(levels.Gate):
    """Those that read do not lock."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def change(self) -> None:
        with self.lock:
            super().change()


class ChangesNothing(right.Gate):
    def change(self) -> None:
        pass


class FirstIsEnough(right.Countdown):
    def done(self) -> None:
        with self.when():
            self.left = 0


class NotifiesOnly:
    """One that comes late waits for a message that has been."""

    def __init__(self, n: int) -> None:
        self.left = n
        self.changed = threading.Condition()

    def done(self) -> None:
        with self.changed:
            self.left -= 1
            if self.left == 0:
                self.changed.notify()

    def wait(self) -> None:
        with self.changed:
            self.changed.wait()


class LooksFirst(levels.LastOne):
    """Looks whether it will be the last before it counts."""

    def done(self, act: Act) -> None:
        last = self.left == 1
        with self.lock:
            self.left -= 1
        if last:
            act()


class FirstOne(levels.LastOne):
    def done(self, act: Act) -> None:
        with self.lock:
            first = self.left > 2
            self.left -= 1
        if first:
            act()
            act()


class MeetsTwiceBefore(levels.Swap):
    """Meets twice, and reads afterwards."""

    def swap(self, side: int, value: int) -> int:
        self.values[side] = value
        self.both.wait()
        self.both.wait()
        return self.values[1 - side]


class MeetsBefore(levels.Swap):
    """Meets before it gives its value."""

    def swap(self, side: int, value: int) -> int:
        self.both.wait()
        self.values[side] = value
        return self.values[1 - side]


class GivesUp(levels.OnePlace):
    """Goes without its act."""

    def enter(self, act: Act) -> None:
        if self.place.acquire(timeout=1):
            act()
            self.place.release()


class LongerTimeout(levels.OnePlace):
    """Waits a second time, and does not look either."""

    def enter(self, act: Act) -> None:
        if not self.place.acquire(timeout=0.5):
            self.place.acquire(blocking=False)
        act()
        self.place.release()


class WaitsAnyway(levels.TryLock):
    def attempt(self, act: Act) -> bool:
        with self.lock:
            act()
            return True


class LooksAtTheLock(levels.TryLock):
    """Looks whether the lock is free, then takes it."""

    def attempt(self, act: Act) -> bool:
        if self.lock.locked():
            return False
        with self.lock:
            act()
            return True


class NeverTries(levels.TryLock):
    def attempt(self, act: Act) -> bool:
        return False


class WaitsWithoutTheLock(levels.Dragon):
    """The deadlock is mended, and the count is not."""

    def fire(self) -> None:
        self.there.acquire()
        with self.lock:
            self.tanks -= 1


class CountsWithTheLock(levels.Dragon):
    """The count is mended, and the deadlock is not."""

    def refuel(self) -> None:
        with self.lock:
            self.tanks += 1
            self.there.release()


class LocksInHalves(levels.OddAndEven):
    """Looks with the lock held, gives it back, and takes with the lock held."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def take(self, odd: int) -> int:
        while True:
            with self.lock:
                mine = bool(self.numbers) and self.numbers[0] % 2 == odd
            if mine:
                with self.lock:
                    return self.numbers.pop(0)
            time.sleep(0)


class WakesOne:
    """Wakes one thread, perhaps one that waits for a number of the other kind."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.changed = threading.Condition()

    def put(self, number: int) -> None:
        with self.changed:
            self.numbers.append(number)
            self.changed.notify()

    def take(self, odd: int) -> int:
        with self.changed:
            while not self.numbers or self.numbers[0] % 2 != odd:
                self.changed.wait()
            return self.numbers.pop(0)


class WakesAll(levels.Gather):
    """Two that count at the same time count one."""

    def arrive(self) -> None:
        self.count += 1
        with self.all_here:
            if self.count < self.n:
                self.all_here.wait()
            else:
                self.all_here.notify_all()


class CountsRight(levels.Gather):
    """Wakes one of two."""

    def arrive(self) -> None:
        with self.all_here:
            self.count += 1
            if self.count < self.n:
                self.all_here.wait()
            else:
                self.all_here.notify()


DEADLOCK = "no thread can go on"

WRONG: dict[str, list[tuple[type, str]]] = {
    "gate": [(LockedChange, "the numbers differ"), (ChangesNothing, "the change is lost")],
    "countdown": [(FirstIsEnough, "came before"), (NotifiesOnly, DEADLOCK)],
    "last_one": [(LooksFirst, "in place of last"), (FirstOne, "last last, in place of last")],
    "swap": [(MeetsTwiceBefore, "in place of a got 8"), (MeetsBefore, "in place of a got 8")],
    "one_place": [(GivesUp, "was to be done 1 times, and was done 0"), (LongerTimeout, "2 did 'in'")],
    "try_lock": [(WaitsAnyway, "not in the order"), (LooksAtTheLock, "in place of +in"), (NeverTries, "0 acts")],
    "dragon": [(WaitsWithoutTheLock, "in place of dragon got 0"), (CountsWithTheLock, DEADLOCK)],
    "odd_and_even": [
        (LocksInHalves, "nothing changes any more|in place of even got 2|IndexError"),
        (WakesOne, DEADLOCK),
    ],
    "gather": [(WakesAll, DEADLOCK), (CountsRight, DEADLOCK)],
}
