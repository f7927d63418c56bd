"""Solutions of puzzles 1, with semaphores where these are short."""

from __future__ import annotations

import threading
from collections import deque

from examples.puzzles.monitor import Monitor
from examples.puzzles.stage import Act

__all__ = ["SOLUTIONS"]


class Signal:
    """A semaphore that begins with 0."""

    def __init__(self) -> None:
        self.happened = threading.Semaphore(0)

    def early(self, act: Act) -> None:
        act()
        self.happened.release()

    def late(self, act: Act) -> None:
        self.happened.acquire()
        act()


class Rendezvous:
    """Each says that it is there, then waits."""

    def __init__(self) -> None:
        self.left_is_there = threading.Semaphore(0)
        self.right_is_there = threading.Semaphore(0)

    def left(self, first: Act, second: Act) -> None:
        first()
        self.left_is_there.release()
        self.right_is_there.acquire()
        second()

    def right(self, first: Act, second: Act) -> None:
        first()
        self.right_is_there.release()
        self.left_is_there.acquire()
        second()


class Mutex:
    """A lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def enter(self, act: Act) -> None:
        with self.lock:
            act()


class Multiplex:
    """A semaphore that begins with the number of places."""

    def __init__(self, n: int) -> None:
        self.places = threading.Semaphore(n)

    def enter(self, act: Act) -> None:
        with self.places:
            act()


class Barrier:
    """The last one opens a turnstile."""

    def __init__(self, n: int) -> None:
        self.missing = n
        self.lock = threading.Lock()
        self.turnstile = threading.Semaphore(0)

    def wait(self) -> None:
        with self.lock:
            self.missing -= 1
            if self.missing == 0:
                self.turnstile.release()
        self.turnstile.acquire()
        self.turnstile.release()


class ReusableBarrier:
    """Two turnstiles, which the last one opens for `n` threads at once: preloaded turnstiles."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.count = 0
        self.lock = threading.Lock()
        self.come = threading.Semaphore(0)
        self.leave = threading.Semaphore(0)

    def wait(self) -> None:
        with self.lock:
            self.count += 1
            if self.count == self.n:
                self.come.release(self.n)
        self.come.acquire()
        with self.lock:
            self.count -= 1
            if self.count == 0:
                self.leave.release(self.n)
        self.leave.acquire()


class NumberedBarrier(Monitor):
    """Another solution: a thread waits until the number of its round is over."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n
        self.calls = 0

    def wait(self) -> None:
        with self.when():
            number = self.calls // self.n
            self.calls += 1
        with self.when(lambda: self.calls // self.n > number):
            pass


class Dance:
    """Two semaphores: leaders that are there, and followers that are there."""

    def __init__(self) -> None:
        self.leaders = threading.Semaphore(0)
        self.followers = threading.Semaphore(0)

    def leader(self, dance: Act) -> None:
        self.leaders.release()
        self.followers.acquire()
        dance()

    def follower(self, dance: Act) -> None:
        self.followers.release()
        self.leaders.acquire()
        dance()


class PairDance:
    """One of each kind is on the floor; the leader leaves when its follower has danced."""

    def __init__(self) -> None:
        self.a_leader = threading.Lock()
        self.a_follower = threading.Lock()
        self.leader_is_there = threading.Semaphore(0)
        self.follower_is_there = threading.Semaphore(0)
        self.danced = threading.Semaphore(0)

    def leader(self, dance: Act) -> None:
        with self.a_leader:
            self.leader_is_there.release()
            self.follower_is_there.acquire()
            dance()
            self.danced.acquire()

    def follower(self, dance: Act) -> None:
        with self.a_follower:
            self.follower_is_there.release()
            self.leader_is_there.acquire()
            dance()
            self.danced.release()


class PairDanceWithoutFarewell(PairDance):
    """Another solution: the next leader that comes has no follower before the last follower has danced."""

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


class FifoQueue:
    """A semaphore for each thread that waits."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waiting: deque[threading.Semaphore] = deque()  # lock
        self.signals = 0  # lock

    def wait(self) -> None:
        with self.lock:
            if self.signals:
                self.signals -= 1
                return
            own = threading.Semaphore(0)
            self.waiting.append(own)
        own.acquire()

    def signal(self) -> None:
        with self.lock:
            if self.waiting:
                self.waiting.popleft().release()
            else:
                self.signals += 1


SOLUTIONS: dict[str, list[type]] = {
    "signal": [Signal],
    "rendezvous": [Rendezvous],
    "mutex": [Mutex],
    "multiplex": [Multiplex],
    "barrier": [Barrier],
    "reusable_barrier": [ReusableBarrier, NumberedBarrier],
    "dance": [Dance],
    "pair_dance": [PairDance, PairDanceWithoutFarewell],
    "fifo_queue": [FifoQueue],
}
