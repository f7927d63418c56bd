"""A lock of asyncio is taken again by the task that has it."""

from __future__ import annotations

import asyncio
import threading

from examples.hazards.lesson import AndIf, Lesson, Met


class Wallet:
    """A task pays twice under a lock, by a method that takes it too."""

    def __init__(self) -> None:
        self.balance = 10

    def actor_loop(self) -> None:
        asyncio.run(self.main())

    async def main(self) -> None:
        self.lock = asyncio.Lock()
        await self.pay_twice(3)

    async def pay(self, amount: int) -> None:
        async with self.lock:
            self.balance -= amount

    async def pay_twice(self, amount: int) -> None:
        async with self.lock:
            await self.pay(amount)
            await self.pay(amount)

    def at_end(self) -> None:
        assert self.balance == 4, self.balance


class InnerMethod(Wallet):
    """What is called with the lock held takes none."""

    async def pay(self, amount: int) -> None:
        async with self.lock:
            self._pay(amount)

    async def pay_twice(self, amount: int) -> None:
        async with self.lock:
            self._pay(amount)
            self._pay(amount)

    def _pay(self, amount: int) -> None:
        self.balance -= amount


class TwoTasks:
    """Two tasks each read a balance, wait, and write it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.balance = 10

    def actor_loop(self) -> None:
        asyncio.run(self.main())

    async def main(self) -> None:
        await asyncio.gather(self.pay(3), self.pay(3))

    async def pay(self, amount: int) -> None:
        with self.lock:
            balance = self.balance
            await asyncio.sleep(0)
            self.balance = balance - amount

    def at_end(self) -> None:
        assert self.balance == 4, f"two payments of 3 from 10, and {self.balance} is left"


class ThreadsLock(TwoTasks):
    """The same under a lock of `threading`."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()  # type: ignore[assignment]


LESSON = Lesson(
    title="A lock held across `await`",
    terms=("deadlock", "self-deadlock", "asyncio", "lock is not reentrant"),
    hazard="""`asyncio.Lock` is not reentrant, and there is no `RLock` in asyncio. A task that has it and calls a
    coroutine that takes it waits for itself. The event loop runs on, so nothing looks stuck but this task.""",
    broken=Wallet,
    question="One task, one lock. Where does the task wait, and what would have to run to wake it?",
    fixed=InnerMethod,
    fix="coroutines that are public take the lock, once, and call inner functions that expect it to be held.",
    and_if=(
        AndIf(
            question="it were a `threading.RLock`?",
            answer="All tasks of a loop are one thread to it, so it keeps out none: a payment is lost.",
            program=TwoTasks,
            fails=True,
        ),
        AndIf(
            question="it were a `threading.Lock`?",
            answer="The second task blocks the thread, and with it the loop that the first one needs.",
            program=ThreadsLock,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="The documentation of asyncio: its locks are for tasks, and not for threads.",
            where="https://docs.python.org/3/library/asyncio-sync.html",
        ),
    ),
    gil="one thread",
)

if __name__ == "__main__":
    LESSON.teach()
