"""Correct programs whose threads wait in loops, or for the clock, and programs that wait for ever."""

from __future__ import annotations

import datetime
import threading
import time


class Ticket:
    """A ticket lock."""

    def __init__(self) -> None:
        self.next = self.serving = self.entered = 0
        self.guard = threading.Lock()

    def actor_a(self) -> None:
        with self.guard:
            mine = self.next
            self.next += 1
        while self.serving != mine:
            pass
        self.entered += 1
        self.serving += 1

    actor_b = actor_c = actor_a

    def at_end(self) -> None:
        assert self.entered == 3


class Bakery:
    """Lamport's lock."""

    def __init__(self) -> None:
        self.choosing = [False] * 3
        self.number = [0] * 3
        self.entered = 0

    def enter(self, me: int) -> None:
        self.choosing[me] = True
        self.number[me] = 1 + max(self.number)
        self.choosing[me] = False
        for other in range(3):
            while self.choosing[other]:
                pass
            while self.number[other] != 0 and (self.number[other], other) < (self.number[me], me):
                pass
        self.entered += 1
        self.number[me] = 0

    def actor_a(self) -> None:
        self.enter(0)

    def actor_b(self) -> None:
        self.enter(1)

    def actor_c(self) -> None:
        self.enter(2)

    def at_end(self) -> None:
        assert self.entered == 3


class SeqLock:
    """Readers who look again where a writer was at work."""

    def __init__(self) -> None:
        self.sequence = self.one = self.other = 0

    def actor_writes(self) -> None:
        for n in (1, 2):
            self.sequence += 1
            self.one = n
            self.other = n
            self.sequence += 1

    def actor_reads(self) -> None:
        while True:
            sequence = self.sequence
            if sequence % 2:
                continue
            one, other = self.one, self.other
            if self.sequence == sequence:
                break
        assert one == other

    actor_reads_too = actor_reads


class Peterson:
    """Peterson's lock."""

    def __init__(self) -> None:
        self.wants = [False, False]
        self.turn = self.entered = 0

    def enter(self, me: int) -> None:
        for _ in range(2):
            self.wants[me] = True
            self.turn = 1 - me
            while self.wants[1 - me] and self.turn == 1 - me:
                pass
            self.entered += 1
            self.wants[me] = False

    def actor_a(self) -> None:
        self.enter(0)

    def actor_b(self) -> None:
        self.enter(1)

    def at_end(self) -> None:
        assert self.entered == 4


class Watched:
    """Two who wait for an event in a loop."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def actor_a(self) -> None:
        while not self.event.is_set():
            pass

    actor_b = actor_a

    def actor_sets(self) -> None:
        self.event.set()


class Polled:
    """Two who look under a lock, and a third who needs it often."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.done = False

    def actor_a(self) -> None:
        while True:
            with self.lock:
                if self.done:
                    return

    actor_b = actor_a

    def actor_works(self) -> None:
        for _ in range(5):
            with self.lock:
                pass
        with self.lock:
            self.done = True


class Counted:
    """Two who change something each time they come round."""

    def __init__(self) -> None:
        self.flag = False
        self.turns = [0, 0]

    def actor_a(self) -> None:
        while not self.flag:
            self.turns[0] += 1

    def actor_b(self) -> None:
        while not self.flag:
            self.turns[1] += 1

    def actor_sets(self) -> None:
        self.flag = True


class Tried:
    """A lock that is tried until it is free."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.entered = 0

    def actor_a(self) -> None:
        while not self.lock.acquire(blocking=False):
            pass
        self.entered += 1
        self.lock.release()

    actor_b = actor_c = actor_a

    def at_end(self) -> None:
        assert self.entered == 3


class Polite:
    """Two who give way until a third has done its work."""

    def __init__(self) -> None:
        self.flag = False

    def actor_a(self) -> None:
        while not self.flag:
            time.sleep(0)

    actor_b = actor_a

    def actor_sets(self) -> None:
        self.flag = True


class Slept:
    """Two who wait in a loop for one who sleeps."""

    def __init__(self) -> None:
        self.flag = False

    def actor_a(self) -> None:
        while not self.flag:
            pass

    actor_b = actor_a

    def actor_sets(self) -> None:
        time.sleep(1)
        self.flag = True


class Long:
    """More steps in a row than a thread may do while others could go on."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0

    def actor_a(self) -> None:
        for _ in range(450):
            with self.lock:
                self.count += 1

    actor_b = actor_a

    def at_end(self) -> None:
        assert self.count == 900


class Timed:
    """Who waits for the clock in a loop, with work and without."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0

    def actor_waits(self) -> None:
        end = time.monotonic() + 1
        while time.monotonic() < end:
            pass

    def actor_works(self) -> None:
        end = time.time() + 2
        while time.time() < end:
            with self.lock:
                self.count += 1

    def actor_looks(self) -> None:
        end = datetime.datetime.now() + datetime.timedelta(minutes=1)
        while datetime.datetime.now() < end:
            pass

    def actor_sleeps(self) -> None:
        time.sleep(0.5)


CORRECT = [Ticket, Bakery, SeqLock, Peterson, Watched, Polled, Counted, Tried, Polite, Slept, Long, Timed]


class BothWait:
    """Two who wait for each other."""

    def __init__(self) -> None:
        self.done = [False, False]

    def after(self, other: int, me: int) -> None:
        while not self.done[other]:
            time.sleep(0)
        self.done[me] = True

    def actor_a(self) -> None:
        self.after(1, 0)

    def actor_b(self) -> None:
        self.after(0, 1)


class BothSpin(BothWait):
    """Two who wait for each other, and do not give way."""

    def after(self, other: int, me: int) -> None:
        while not self.done[other]:
            pass
        self.done[me] = True


class NeverSet(Watched):
    """Three who wait for an event that is never set."""

    actor_sets = Watched.actor_a


LIVELOCKS = [BothWait, BothSpin, NeverSet]
