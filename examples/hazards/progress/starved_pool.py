"""A task waits for a task that waits for its thread."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from examples.hazards.lesson import Lesson


class WaitingInThePool:
    """Two tasks on a pool of two threads, each of which hands a piece of work to the same pool, and waits for it."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(2, "pool")
        self.results: list[Future[int]] = []

    def actor_main(self) -> None:
        self.results = [self.pool.submit(self.task, n) for n in (1, 2)]

    def task(self, n: int) -> int:
        return self.pool.submit(lambda: n * n).result()

    def at_end(self) -> None:
        assert [result.result() for result in self.results] == [1, 4]


class HandedOn(WaitingInThePool):
    """The rest of the work is handed on with the piece; no thread waits."""

    def actor_main(self) -> None:
        self.results = [Future(), Future()]
        for n, result in zip((1, 2), self.results, strict=True):
            self.pool.submit(self.hand_on, n, result)

    def hand_on(self, n: int, result: Future[int]) -> None:
        self.pool.submit(lambda: result.set_result(n * n))


LESSON = Lesson(
    title="A pool that waits for itself",
    hazard="""A task that blocks until another task of its pool has run keeps the thread which that one needs. With as
    many such tasks as threads nothing moves again; with one fewer everything seems fine.""",
    broken=WaitingInThePool,
    fixed=HandedOn,
    fix="never block a pool's thread on the pool's own work: hand the continuation on, as `publish_on` does.",
)

if __name__ == "__main__":
    LESSON.teach()
