"""A task is cancelled after it has taken an element, and before it has used it."""

from __future__ import annotations

import asyncio

from examples.hazards.lesson import AndIf, Lesson, Met


class Consumer:
    """A task takes an element from a queue, and is cancelled at some time; another one does what is left."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[int] = asyncio.Queue()
        self.done: list[int] = []

    def actor_loop(self) -> None:
        asyncio.run(self.main())

    async def main(self) -> None:
        task = asyncio.create_task(self.consume())
        puts = asyncio.create_task(self.put())
        stops = asyncio.create_task(self.stop(task))
        await asyncio.gather(puts, stops)
        while not self.queue.empty():
            self.done.append(self.queue.get_nowait())

    async def put(self) -> None:
        await self.queue.put(1)

    async def stop(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def consume(self) -> None:
        element = await self.queue.get()
        await self.prepare()
        self.done.append(element)

    async def prepare(self) -> None:
        await asyncio.sleep(0)  # opens a connection

    def at_end(self) -> None:
        assert self.done == [1], "the element is neither done nor in the queue"


class PreparedFirst(Consumer):
    """Between `get` and the use is no `await`."""

    async def consume(self) -> None:
        await self.prepare()
        element = await self.queue.get()
        self.done.append(element)


class PutBack(Consumer):
    """Puts the element back where it is cancelled."""

    async def consume(self) -> None:
        element = await self.queue.get()
        try:
            await self.prepare()
        except asyncio.CancelledError:
            self.queue.put_nowait(element)
            raise
        self.done.append(element)


class Shielded(Consumer):
    """What follows `get` is shielded: cancelling the task does not cancel it."""

    async def consume(self) -> None:
        element = await self.queue.get()
        await asyncio.shield(self.finish(element))

    async def finish(self, element: int) -> None:
        await self.prepare()
        self.done.append(element)


LESSON = Lesson(
    title="Lost by cancelling",
    terms=("order violation", "cancellation", "asyncio", "lost element"),
    hazard="""`cancel` raises at the `await` at which the task stands. Where that is behind the `get` of a queue, the
    element is out of the queue, and in a local name. The name goes with the task, and the element is lost.""",
    broken=Consumer,
    question="The task is cancelled at some moment. At which `await` does it have to stand for the element to be lost?",
    fixed=PreparedFirst,
    fix="no `await` between taking an element and using it; or put it back where the task is cancelled.",
    and_if=(
        AndIf(
            question="the task put it back where it is cancelled?",
            answer="That holds too. Where several elements are under way, their order changes.",
            program=PutBack,
            fails=False,
        ),
        AndIf(
            question="the rest were under `asyncio.shield`?",
            answer="The rest runs on by itself, and no task waits for it: the program may end before it does.",
            program=Shielded,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="asyncio itself lost elements of `Queue.get` under `wait_for`.",
            where="https://github.com/python/asyncio/issues/201",
        ),
        Met(
            what="websockets dropped messages of `recv` under `wait_for`.",
            where="https://github.com/python-websockets/websockets/issues/486",
        ),
    ),
    gil="one thread",
)

if __name__ == "__main__":
    LESSON.teach()
