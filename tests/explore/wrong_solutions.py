"""What students hand in: each looks like a solution of an exercise, and is none. And classes that do nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from examples.hazards.exercises import account, batches, bell, countdown, display, merge, once, promise, server
from examples.hazards.exercises.solutions import mailbox, transfer, worker
from reactive_runtime.atomics import AtomicInteger


class AtomicOffice:
    """Both steps are atomic, and two steps they stay."""

    def __init__(self, tickets: int) -> None:
        self.tickets = AtomicInteger(tickets)

    def sell(self) -> bool:
        if self.tickets.get() == 0:
            return False
        self.tickets.add_and_get(-1)
        return True


class SoldOut:
    def __init__(self, tickets: int) -> None:
        self.tickets = tickets

    def sell(self) -> bool:
        return False


class LockAroundCompute(once.Once):
    """The thread that waited computes once more."""

    def __init__(self, compute: Callable[[], int]) -> None:
        super().__init__(compute)
        self.lock = threading.Lock()

    def get(self) -> int:
        if self.value is None:
            with self.lock:
                self.value = self.compute()
        return self.value


class ComputesBefore(once.Once):
    """Computes once, and also where no thread asks."""

    def __init__(self, compute: Callable[[], int]) -> None:
        super().__init__(compute)
        self.value = compute()


class NeverComputes(once.Once):
    def get(self) -> int:
        return 0


class LockInEachHalf(account.Account):
    """Each of the two is read under the lock, and what is read does not fit together."""

    def total(self) -> int:
        with self.lock:
            current = self.current
        with self.lock:
            return current + self.savings


class NeverSaves(account.Account):
    def save(self, amount: int) -> None:
        pass


class EmptyAddress(server.Server):
    """An address is there from the beginning: a wrong one."""

    def __init__(self) -> None:
        super().__init__()
        self.address = ""


class OpenFromTheBeginning(server.Server):
    """The whole address, and not only once it is open."""

    def connect(self) -> str:
        return "http://localhost:80"


class NeverOpens(server.Server):
    def open(self) -> None:
        pass


class LockedFlag(worker.Worker):
    """The flag is read and written under the lock; between that and the adding it is not held."""

    def submit(self, task: Callable[[], object]) -> bool:
        with self.lock:
            if self.closed:
                return False
        with self.lock:
            self.tasks.append(task)
        return True


class DoneUnderTheLock(worker.Worker):
    """A task may call what takes the lock."""

    def close(self) -> None:
        with self.lock:
            self.closed = True
            for task in self.tasks:
                task()


class RefusesAll(worker.Worker):
    def submit(self, task: Callable[[], object]) -> bool:
        return False


class LookedAgain(promise.Promise):
    """Looks whether it has emitted before it emits."""

    def __init__(self) -> None:
        super().__init__()
        self.emitted = False

    def emit(self, value: int) -> None:
        if not self.emitted:
            self.emitted = True
            super().emit(value)


class NeverSet(promise.Promise):
    def set(self, value: int) -> None:
        pass


class WhileAndNotify(mailbox.Mailbox):
    """Looks again, and wakes one: perhaps one of its own kind."""

    def put(self, letter: str) -> None:
        with self.changed:
            while self.letters:
                self.changed.wait()
            self.letters.append(letter)
            self.changed.notify()

    def take(self) -> str:
        with self.changed:
            while not self.letters:
                self.changed.wait()
            letter = self.letters.pop()
            self.changed.notify()
            return letter


class NoRoomNeeded(mailbox.Mailbox):
    """Never waits for room."""

    def put(self, letter: str) -> None:
        with self.changed:
            self.letters.append(letter)
            self.changed.notify_all()


class NoLetters(mailbox.Mailbox):
    def put(self, letter: str) -> None:
        pass

    def take(self) -> str:
        return ""


class TakenBefore(batches.BatchSubscription):
    """Takes the batch off at once: then another thread finds zero, and drains beside this one."""

    def drain(self) -> None:
        while (batch := self.demand.get_and_set(0)) > 0:
            for _ in range(batch):
                self.subscriber.on_next(self.next)
                self.next += 1


class TakenBeforeBatches(batches.Batches):
    subscription = TakenBefore


class OneForEachRequest(batches.BatchSubscription):
    """Counts the requests, and not what they ask for."""

    def request(self, n: int, /) -> None:
        if self.demand.get_and_add(1) == 0:
            self.drain()

    def drain(self) -> None:
        batch = self.demand.get()
        while batch > 0:
            for _ in range(batch):
                self.subscriber.on_next(self.next)
                self.next += 1
            batch = self.demand.add_and_get(-batch)


class OneForEachRequestBatches(batches.Batches):
    subscription = OneForEachRequest


class DeliversNothing(batches.BatchSubscription):
    def drain(self) -> None:
        pass


class NoBatches(batches.Batches):
    subscription = DeliversNothing


class LookedUnderTheLock(merge.Merge):
    """Counts outside of the lock, and looks inside: both may find zero."""

    def end(self) -> None:
        self.open.add_and_get(-1)
        with self.signals:
            if self.open.get() == 0:
                self.subscriber.on_complete()


class FeedsNothing(merge.Merge):
    def feed(self, element: int) -> None:
        pass

    def end(self) -> None:
        pass


class InOrder(transfer.Account):
    """One order for all locks; and one lock twice."""

    def transfer(self, target: transfer.Account, amount: int) -> None:
        first, second = sorted((self, target), key=lambda item: item.number)
        with first.lock, second.lock:
            self.money -= amount
            target.money += amount


class OneAfterTheOther(transfer.Account):
    """Holds one lock at a time, and forgets that there may be an exception between; here, that it is the same one."""

    def transfer(self, target: transfer.Account, amount: int) -> None:
        money = self.money
        with target.lock:
            target.money += amount
        with self.lock:
            self.money = money - amount


class MovesNothing(transfer.Account):
    def transfer(self, target: transfer.Account, amount: int) -> None:
        pass


class Reentrant(display.Sensor):
    """A lock that a thread may take twice: two threads wait for each other all the same."""

    def __init__(self, shown_by: Any) -> None:
        super().__init__(shown_by)
        lock: Any = threading.RLock()
        self.lock = lock


class ReportsFirst(display.Sensor):
    """Calls before it stores: what is shown may be overwritten by what was."""

    def set(self, number: int) -> None:
        self.display.show(number)
        with self.lock:
            self.number = number


class ReportsNothing(display.Sensor):
    def set(self, number: int) -> None:
        with self.lock:
            self.number = number


class DropsTheInner(countdown.Countdown):
    """What is requested while it delivers is dropped."""

    delivers = False

    def request(self, n: int) -> None:
        if self.delivers:
            return
        self.delivers = True
        super().request(n)
        self.delivers = False


class DeliversAll(countdown.Countdown):
    """Delivers in one loop, and more than was requested."""

    delivers = False

    def request(self, n: int) -> None:
        if not self.delivers:
            self.delivers = True
            super().request(self.left)


class CountsNothing(countdown.Countdown):
    def request(self, n: int) -> None:
        pass


class Backwards(bell.Bell):
    """Skips no listener, and calls them in another order."""

    def ring(self) -> None:
        for listener in reversed(self.listeners):
            listener()


class NeverRemoves(bell.Bell):
    """Skips no listener, since it keeps all."""

    def remove(self, listener: Callable[[], object]) -> None:
        pass


class UntilAllAreCalled(bell.Bell):
    """Skips no listener, and calls one that is added meanwhile."""

    def ring(self) -> None:
        called: list[Callable[[], object]] = []
        while left := [listener for listener in self.listeners if listener not in called]:
            called.append(left[0])
            left[0]()


class Silent(bell.Bell):
    def ring(self) -> None:
        pass


WRONG: dict[str, list[type[Any]]] = {
    "tickets": [AtomicOffice],
    "once": [LockAroundCompute, ComputesBefore],
    "account": [LockInEachHalf],
    "server": [EmptyAddress, OpenFromTheBeginning],
    "worker": [LockedFlag, DoneUnderTheLock],
    "promise": [LookedAgain],
    "mailbox": [WhileAndNotify, NoRoomNeeded],
    "batches": [TakenBeforeBatches, OneForEachRequestBatches],
    "merge": [LookedUnderTheLock],
    "transfer": [InOrder, OneAfterTheOther],
    "display": [Reentrant, ReportsFirst],
    "countdown": [DropsTheInner, DeliversAll],
    "bell": [Backwards, NeverRemoves, UntilAllAreCalled],
}
"""By exercise."""

IDLE: dict[str, type[Any]] = {
    "tickets": SoldOut,
    "once": NeverComputes,
    "account": NeverSaves,
    "server": NeverOpens,
    "worker": RefusesAll,
    "promise": NeverSet,
    "mailbox": NoLetters,
    "batches": NoBatches,
    "merge": FeedsNothing,
    "transfer": MovesNothing,
    "display": ReportsNothing,
    "countdown": CountsNothing,
    "bell": Silent,
}
"""By exercise: a class that delivers nothing."""
