"""Between a look and an act there is an `await`, and another task acts there."""

from __future__ import annotations

import asyncio

from examples.hazards.lesson import AndIf, Lesson, Met


class Tickets:
    """One ticket is left, and two tasks of one event loop want it."""

    def __init__(self) -> None:
        self.left = 1
        self.sold = 0

    def actor_loop(self) -> None:
        asyncio.run(self.main())

    async def main(self) -> None:
        await asyncio.gather(self.buy(), self.buy())

    async def buy(self) -> None:
        if self.left > 0:
            await self.pay()
            self.left -= 1
            self.sold += 1

    async def pay(self) -> None:
        await asyncio.sleep(0)  # asks the bank

    def at_end(self) -> None:
        assert self.sold <= 1, f"there was one ticket, and {self.sold} were sold"


class Reserved(Tickets):
    """Takes the ticket in the same step in which it looks, and pays then."""

    async def buy(self) -> None:
        if self.left > 0:
            self.left -= 1
            await self.pay()
            self.sold += 1


class Guarded(Tickets):
    """Looks, pays and acts under a lock of asyncio."""

    async def main(self) -> None:
        self.lock = asyncio.Lock()
        await super().main()

    async def buy(self) -> None:
        async with self.lock:
            await super().buy()


class Split(Tickets):
    """Pays in a step of its own, with a look before it and after it: the second look comes too late."""

    async def buy(self) -> None:
        if self.left > 0:
            await self.pay()
            if self.left > 0:
                self.sold += 1
                await asyncio.sleep(0)  # writes the log
                self.left -= 1


LESSON = Lesson(
    title="Check, await, act",
    terms=("atomicity violation", "check-then-act", "asyncio", "interleaving at await"),
    hazard="""Tasks of an event loop take turns at each `await`, and nowhere else. What a task has looked at before an
    `await` may be another thing after it. One thread is enough for a race.""",
    broken=Tickets,
    question="There is one thread, and no lock. Where can the second task come in, and what has it seen then?",
    fixed=Reserved,
    fix="look and act without an `await` in between; or hold an `asyncio.Lock` over all of it.",
    and_if=(
        AndIf(
            question="an `asyncio.Lock` were held over all of it?",
            answer="That holds, and the tasks pay one after the other.",
            program=Guarded,
            fails=False,
        ),
        AndIf(
            question="the task looked again after it has paid?",
            answer="That helps only if no `await` comes between that look and the act.",
            program=Split,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="The documentation of asyncio: a lock of asyncio guards a resource of several tasks.",
            where="https://docs.python.org/3/library/asyncio-sync.html",
        ),
    ),
    gil="one thread",
)

if __name__ == "__main__":
    LESSON.teach()
