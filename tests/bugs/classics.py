"""Programs that papers on the subject measure themselves by, in Python."""

from __future__ import annotations

import threading


class Bluetooth:
    """A driver is stopped while a request is under way (Qadeer and Wu, 2004): the request may work on what is gone."""

    def __init__(self) -> None:
        self.pending = 1
        self.lock = threading.Lock()
        self.stopping = False
        self.stopped = False
        self.stop_event = threading.Event()

    def enter(self) -> bool:
        if self.stopping:
            return False
        with self.lock:
            self.pending += 1
        return True

    def leave(self) -> None:
        with self.lock:
            self.pending -= 1
            last = self.pending == 0
        if last:
            self.stop_event.set()

    def actor_request(self) -> None:
        if self.enter():
            assert not self.stopped, "a request works on a driver that has stopped"
            self.leave()

    def actor_stop(self) -> None:
        self.stopping = True
        self.leave()
        self.stop_event.wait()
        self.stopped = True


class FixedBluetooth(Bluetooth):
    """Takes its place first, and then looks."""

    def enter(self) -> bool:
        with self.lock:
            if self.stopping:
                return False
            self.pending += 1
        return True

    def actor_stop(self) -> None:
        with self.lock:
            self.stopping = True
        self.leave()
        self.stop_event.wait()
        self.stopped = True


class TwoStage:
    """One value is written under one lock, and its double under another: a reader sees one and not the other."""

    def __init__(self) -> None:
        self.lock_of_one, self.lock_of_two = threading.Lock(), threading.Lock()
        self.one = 0
        self.two = 0

    def actor_writer(self) -> None:
        with self.lock_of_one:
            self.one = 1
        with self.lock_of_two:
            self.two = self.one + 1

    def actor_reader(self) -> None:
        with self.lock_of_one:
            if self.one == 0:
                return
            one = self.one
        with self.lock_of_two:
            assert self.two == one + 1, "the second stage is missing"


class OneStage(TwoStage):
    def actor_writer(self) -> None:
        with self.lock_of_one, self.lock_of_two:
            self.one = 1
            self.two = self.one + 1


class Account:
    """A deposit and a withdrawal, each guarded, with a look in between that is not."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.balance = 100

    def get(self) -> int:
        with self.lock:
            return self.balance

    def put(self, balance: int) -> None:
        with self.lock:
            self.balance = balance

    def actor_deposit(self) -> None:
        self.put(self.get() + 10)

    def actor_withdraw(self) -> None:
        self.put(self.get() - 20)

    def at_end(self) -> None:
        assert self.balance == 90, self.balance


class AtomicAccount(Account):
    def change(self, by: int) -> None:
        with self.lock:
            self.balance += by

    def actor_deposit(self) -> None:
        self.change(10)

    def actor_withdraw(self) -> None:
        self.change(-20)


class Reorder:
    """Two setters and a checker, which must not see the second store without the first: but there are two of each."""

    def __init__(self) -> None:
        self.a = 0
        self.b = 0

    def actor_setter(self) -> None:
        self.a = 1
        self.b = -1

    def actor_other_setter(self) -> None:
        self.a = 1
        self.b = -1

    def actor_checker(self) -> None:
        a = self.a
        b = self.b
        assert (a, b) in ((0, 0), (1, -1)), f"saw {(a, b)}"


class OrderedReorder(Reorder):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def actor_setter(self) -> None:
        with self.lock:
            super().actor_setter()

    actor_other_setter = actor_setter

    def actor_checker(self) -> None:
        with self.lock:
            super().actor_checker()


class Philosophers:
    """Three at a round table, three forks, and each takes the left one first."""

    def __init__(self) -> None:
        self.forks = [threading.Lock() for _ in range(3)]
        self.meals = 0

    def eat(self, left: int, right: int) -> None:
        with self.forks[left], self.forks[right]:
            pass

    def actor_one(self) -> None:
        self.eat(0, 1)

    def actor_two(self) -> None:
        self.eat(1, 2)

    def actor_three(self) -> None:
        self.eat(2, 0)


class PolitePhilosophers(Philosophers):
    def eat(self, left: int, right: int) -> None:
        super().eat(min(left, right), max(left, right))


class Peterson:
    """Mutual exclusion by flags, with the flag raised after the look."""

    def __init__(self) -> None:
        self.wants = [False, False]
        self.inside = 0
        self.most = 0

    def enter(self, me: int) -> bool:
        if self.wants[1 - me]:
            return False
        self.wants[me] = True
        return True

    def critical(self, me: int) -> None:
        if self.enter(me):
            self.inside += 1
            self.most = max(self.most, self.inside)
            self.inside -= 1
            self.wants[me] = False

    def actor_a(self) -> None:
        self.critical(0)

    def actor_b(self) -> None:
        self.critical(1)

    def at_end(self) -> None:
        assert self.most < 2, "two inside"


class FlagsFirst(Peterson):
    def enter(self, me: int) -> bool:
        self.wants[me] = True
        if self.wants[1 - me]:
            self.wants[me] = False
            return False
        return True


PAIRS = [
    (Bluetooth, FixedBluetooth),
    (TwoStage, OneStage),
    (Account, AtomicAccount),
    (Reorder, OrderedReorder),
    (Philosophers, PolitePhilosophers),
    (Peterson, FlagsFirst),
]
