"""Wrong solutions of puzzles 1."""

from __future__ import annotations

import threading
import time

from examples.puzzles.solutions import signals as right
from examples.puzzles.stage import Act

__all__ = ["WRONG"]


class LooksOnce:
    """Waits if nothing has happened yet, and forgets that it may happen in between."""

    def __init__(self) -> None:
        self.happened = False
        self.changed = threading.Condition()

    def early(self, act: Act) -> None:
        act()
        self.happened = True
        with self.changed:
            self.changed.notify()

    def late(self, act: Act) -> None:
        if not self.happened:
            with self.changed:
                self.changed.wait()
        act()


class SaysNothing(right.Signal):
    def early(self, act: Act) -> None:
        self.happened.release()
        act()


class WaitsFirst(right.Rendezvous):
    """Both wait before they say that they are there."""

    def left(self, first: Act, second: Act) -> None:
        first()
        self.right_is_there.acquire()
        self.left_is_there.release()
        second()

    def right(self, first: Act, second: Act) -> None:
        first()
        self.left_is_there.acquire()
        self.right_is_there.release()
        second()


class OneSided(right.Rendezvous):
    """Only one waits for the other."""

    def right(self, first: Act, second: Act) -> None:
        first()
        self.right_is_there.release()
        second()


class Flag:
    """A flag that is looked at, then set."""

    def __init__(self) -> None:
        self.busy = False

    def enter(self, act: Act) -> None:
        while self.busy:
            time.sleep(0)
        self.busy = True
        act()
        self.busy = False


class NeverGivesBack(right.Mutex):
    def enter(self, act: Act) -> None:
        self.lock.acquire()
        act()


class OneOnly(right.Multiplex):
    """A lock is right, and too strict."""

    def __init__(self, n: int) -> None:
        super().__init__(1)


class LooksThenCounts:
    def __init__(self, n: int) -> None:
        self.free = n

    def enter(self, act: Act) -> None:
        while not self.free:
            time.sleep(0)
        self.free -= 1
        act()
        self.free += 1


class WithoutALock(right.Barrier):
    """Two that count at the same time count one."""

    def wait(self) -> None:
        self.missing -= 1
        if self.missing == 0:
            self.turnstile.release()
        self.turnstile.acquire()
        self.turnstile.release()


class OpensForOne(right.Barrier):
    """The turnstile is not given back."""

    def wait(self) -> None:
        with self.lock:
            self.missing -= 1
            if self.missing == 0:
                self.turnstile.release()
        self.turnstile.acquire()


class HoldsTheLock(right.Barrier):
    """Waits in the turnstile with the lock held."""

    def wait(self) -> None:
        with self.lock:
            self.missing -= 1
            if self.missing == 0:
                self.turnstile.release()
            self.turnstile.acquire()
            self.turnstile.release()


class OneTurnstile(right.ReusableBarrier):
    """A quick thread goes through twice."""

    def wait(self) -> None:
        with self.lock:
            self.count += 1
            if self.count == self.n:
                self.count = 0
                self.come.release(self.n)
        self.come.acquire()


class OneUse(right.Barrier):
    """Stays open."""


class OneSemaphore(right.Dance):
    """Does not ask which kind has come."""

    def __init__(self) -> None:
        super().__init__()
        self.followers = self.leaders


class LeadersDoNotWait(right.Dance):
    def leader(self, dance: Act) -> None:
        self.leaders.release()
        dance()


class NextFollower(right.PairDance):
    """The next follower comes while this one dances."""

    def leader(self, dance: Act) -> None:
        with self.a_leader:
            self.leader_is_there.release()
            self.follower_is_there.acquire()
            dance()

    def follower(self, dance: Act) -> None:
        with self.a_follower:
            self.follower_is_there.release()
            self.leader_is_there.acquire()
        dance()


class InAnyOrder:
    """A semaphore of Python: who goes first is not said."""

    def __init__(self) -> None:
        self.signals = threading.Semaphore(0)

    def wait(self) -> None:
        self.signals.acquire()

    def signal(self) -> None:
        self.signals.release()


class Forgets(right.FifoQueue):
    """A signal that comes first is lost."""

    def signal(self) -> None:
        with self.lock:
            if self.waiting:
                self.waiting.popleft().release()


class LastInFirstOut(right.FifoQueue):
    def signal(self) -> None:
        with self.lock:
            if self.waiting:
                self.waiting.pop().release()
            else:
                self.signals += 1


DEADLOCK = "no thread can go on"

WRONG: dict[str, list[tuple[type, str]]] = {
    "signal": [(LooksOnce, DEADLOCK), (SaysNothing, "not in the order")],
    "rendezvous": [(WaitsFirst, DEADLOCK), (OneSided, "came before")],
    "mutex": [(Flag, "2 did 'in' at the same time"), (NeverGivesBack, DEADLOCK)],
    "multiplex": [(OneOnly, "2 could do 'in' at the same time"), (LooksThenCounts, "3 did 'in' at the same time")],
    "barrier": [(WithoutALock, DEADLOCK), (OpensForOne, DEADLOCK), (HoldsTheLock, DEADLOCK)],
    "reusable_barrier": [(OneTurnstile, f"{DEADLOCK}|a round ahead"), (OneUse, "a round ahead")],
    "dance": [(OneSemaphore, "too early"), (LeadersDoNotWait, "too early")],
    "pair_dance": [(NextFollower, "in place of L F"), (right.Dance, "in place of L F")],
    "fifo_queue": [(InAnyOrder, "not in the order"), (Forgets, DEADLOCK), (LastInFirstOut, "not in the order")],
}
