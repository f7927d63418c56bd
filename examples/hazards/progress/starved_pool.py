"""A task waits for a task that waits for its thread."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from examples.hazards.lesson import AndIf, Lesson, Met


class WaitingInThePool:
    """Two tasks on a pool of two threads, each of which hands a piece of work to the same pool, and waits for it."""

    tasks: tuple[int, ...] = (1, 2)
    threads = 2

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(self.threads, "pool")
        self.results: list[Future[int]] = []

    def actor_main(self) -> None:
        self.results = [self.pool.submit(self.task, n) for n in self.tasks]

    def task(self, n: int) -> int:
        return self.pool.submit(lambda: n * n).result()

    def at_end(self) -> None:
        assert [result.result() for result in self.results] == [n * n for n in self.tasks]


class HandedOn(WaitingInThePool):
    """The rest of the work is handed on with the piece; no thread waits."""

    def actor_main(self) -> None:
        self.results = [Future() for _ in self.tasks]
        for n, result in zip(self.tasks, self.results, strict=True):
            self.pool.submit(self.hand_on, n, result)

    def hand_on(self, n: int, result: Future[int]) -> None:
        self.pool.submit(lambda: result.set_result(n * n))


class OneMoreThread(WaitingInThePool):
    """A pool of three for two tasks."""

    threads = 3


class OneMoreTask(WaitingInThePool):
    """And three tasks for the three."""

    tasks = (1, 2, 3)
    threads = 3


class PoolOfItsOwn(WaitingInThePool):
    """The pieces run on another pool."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = ThreadPoolExecutor(1, "inner")

    def task(self, n: int) -> int:
        return self.inner.submit(lambda: n * n).result()


LESSON = Lesson(
    title="A pool that waits for itself",
    terms=("deadlock", "thread-starvation deadlock", "pool exhaustion"),
    hazard="""A task that blocks until another task of its pool has run keeps the thread which that one needs. With as
    many such tasks as threads nothing moves again. With one fewer everything seems fine.""",
    broken=WaitingInThePool,
    question="The pool has two threads, and there are two tasks. What do both threads do when nothing moves?",
    fixed=HandedOn,
    fix="never block a pool's thread on the pool's own work: hand the continuation on, as `publish_on` does.",
    and_if=(
        AndIf(
            question="the pool had one thread more?",
            answer="Then it holds, for two tasks.",
            program=OneMoreThread,
            fails=False,
        ),
        AndIf(
            question="a third task came?",
            answer="It is back: the size of the pool only moves it to the day of more load.",
            program=OneMoreTask,
            fails=True,
        ),
        AndIf(
            question="the pieces had a pool of their own?",
            answer="Waits then go one way, from the one pool to the other, and make no circle.",
            program=PoolOfItsOwn,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="BlackLab: a search hands parts of itself to its own pool of four threads.",
            where="https://github.com/instituutnederlandsetaal/BlackLab/issues/168",
        ),
        Met(
            what="Goetz and others, Java Concurrency in Practice, 2006, section 8.1.1: thread starvation deadlock.",
            where="ISBN 978-0-321-34960-6",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
