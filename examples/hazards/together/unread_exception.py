"""A task fails, and nothing reads its exception."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from examples.hazards.lesson import AndIf, Lesson, Met


class Saving:
    """Saves in a task, and reports that it has saved. Saving fails."""

    def __init__(self) -> None:
        self.saved = False
        self.report = ""

    def actor_loop(self) -> None:
        asyncio.run(self.main())

    async def main(self) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # a log that is not read
        task = asyncio.create_task(self.save())
        await asyncio.wait([task])
        self.report = "saved"

    async def save(self) -> None:
        await asyncio.sleep(0)
        raise OSError("the disk is full")

    def at_end(self) -> None:
        assert self.saved or self.report != "saved", "it reports that it has saved, and has not"


class Awaited(Saving):
    """Awaits the task, which raises what it has raised."""

    async def main(self) -> None:
        try:
            await asyncio.create_task(self.save())
            self.report = "saved"
        except OSError as error:
            self.report = str(error)


class Gathered(Saving):
    """Gathers with `return_exceptions`, and does not look at what is returned."""

    async def main(self) -> None:
        await asyncio.gather(self.save(), return_exceptions=True)
        self.report = "saved"


class InAPool:
    """The same in a pool of threads, with a future that nothing asks."""

    def __init__(self) -> None:
        self.saved = False
        self.report = ""

    def actor_main(self) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self.save)
        self.report = "saved"

    def save(self) -> None:
        raise OSError("the disk is full")

    def at_end(self) -> None:
        assert self.saved or self.report != "saved", "it reports that it has saved, and has not"


LESSON = Lesson(
    title="An exception that nothing reads",
    terms=("no race", "unhandled exception", "task exception was never retrieved"),
    hazard="""A task that fails keeps its exception until it is asked for it. `wait` does not ask, and the program goes
    on as if all were well. asyncio logs it when the task is collected, which may be late; a pool of threads logs
    nothing.""",
    broken=Saving,
    question="`wait` returns when the task has ended. What does it say of how it has ended?",
    fixed=Awaited,
    fix="await the task, or ask for its `result()`; a `TaskGroup` (3.11) does it for all.",
    and_if=(
        AndIf(
            question="it were gathered with `return_exceptions=True`?",
            answer="The exception is then a value in a list, and has to be looked at.",
            program=Gathered,
            fails=True,
        ),
        AndIf(
            question="it ran in a pool of threads?",
            answer="The future has the exception, and nothing is logged at all.",
            program=InAPool,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="asyncio: tasks that are created and never awaited, and beginners who miss their exceptions.",
            where="https://github.com/python/asyncio/issues/399",
        ),
    ),
    gil="one thread",
)

if __name__ == "__main__":
    LESSON.teach()
