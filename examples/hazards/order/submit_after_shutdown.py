"""A pool is shut down between the look whether it is open and the task that is handed to it."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

from examples.hazards.lesson import AndIf, Lesson, Met


class Service:
    """Accepts work until it is closed. Each piece that it has accepted has to be done."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1)
        self.lock = threading.Lock()
        self.is_open = True
        self.accepted = 0
        self.done = 0

    def actor_submits(self) -> None:
        self.submit()

    def actor_closes(self) -> None:
        self.close()

    def submit(self) -> None:
        if self.is_open:
            self.pool.submit(self.work)
            self.accepted += 1

    def work(self) -> None:
        self.done += 1

    def close(self) -> None:
        self.is_open = False
        self.pool.shutdown()

    def at_end(self) -> None:
        assert self.done == self.accepted, f"{self.accepted} accepted, and {self.done} done"


class OneStep(Service):
    """Looks and submits in one step; the flag changes under the same lock, and the wait comes after it."""

    def submit(self) -> None:
        with self.lock:
            super().submit()

    def close(self) -> None:
        with self.lock:
            self.is_open = False
        self.pool.shutdown()


class Swallowed(Service):
    """Counts the work first, and swallows the error."""

    def submit(self) -> None:
        if self.is_open:
            self.accepted += 1
            with contextlib.suppress(RuntimeError):
                self.pool.submit(self.work)


class WaitsInside(OneStep):
    """Waits for the work while it has the lock; and the work submits more."""

    def work(self) -> None:
        with self.lock:
            self.done += 1

    def close(self) -> None:
        with self.lock:
            self.is_open = False
            self.pool.shutdown()


LESSON = Lesson(
    title="Submit after shutdown",
    terms=("order violation", "use after close", "check-then-act"),
    hazard="""A thread looks whether the pool is open, and it is. Before it submits, another thread shuts the pool down.
    The submit raises, or, where the error is swallowed, the work is lost.""",
    broken=Service,
    question="`submit` looks at the flag first. Between which two steps does `close` have to come?",
    fixed=OneStep,
    fix="look and submit under the lock that the flag changes under; wait for the work without it.",
    and_if=(
        AndIf(
            question="the error were caught and dropped?",
            answer="Then work that was accepted is never done, and nothing says so.",
            program=Swallowed,
            fails=True,
        ),
        AndIf(
            question="`close` waited for the work while it has the lock?",
            answer="The work needs the lock, and both wait for ever.",
            program=WaitsInside,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="APScheduler: a job is submitted to a pool that is being shut down.",
            where="https://github.com/agronholm/apscheduler/issues/985",
        ),
        Met(
            what="The Python driver of ScyllaDB: a task scheduler submits after shutdown.",
            where="https://github.com/scylladb/python-driver/issues/209",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
