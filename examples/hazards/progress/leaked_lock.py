"""A lock is not released where an exception is raised."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met


class Parser:
    """Two threads parse, under one lock. What the first is given is wrong, and it says so."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.refused = 0

    def actor_a(self) -> None:
        try:
            self.parse("x")
        except ValueError:
            self.refused += 1

    def actor_b(self) -> None:
        self.parse("1")

    def parse(self, text: str) -> int:
        self.lock.acquire()
        number = int(text)
        self.lock.release()
        return number


class WithLock(Parser):
    """`with` releases on every way out."""

    def parse(self, text: str) -> int:
        with self.lock:
            return int(text)


class Timed(Parser):
    """Waits for a second at most, inside of the `try`, and releases what it may not have."""

    def actor_b(self) -> None:
        try:
            self.parse("1")
        except TimeoutError:
            self.refused += 1

    def actor_holds(self) -> None:
        with self.lock:
            threading.Event().wait(2)

    def parse(self, text: str) -> int:
        try:
            if not self.lock.acquire(timeout=1):
                raise TimeoutError
            return int(text)
        finally:
            self.lock.release()


class TimedOutside(Timed):
    """The same, with the `try` where the lock is held."""

    def actor_a(self) -> None:
        try:
            self.parse("x")
        except (ValueError, TimeoutError):
            self.refused += 1

    def parse(self, text: str) -> int:
        if not self.lock.acquire(timeout=1):
            raise TimeoutError
        try:
            return int(text)
        finally:
            self.lock.release()


LESSON = Lesson(
    title="A lock that is not released",
    terms=("deadlock", "lock leak", "exception safety"),
    hazard="""Between `acquire` and `release` an exception is raised. The caller handles it, and the lock stays taken.
    The next thread that wants it waits for ever, long after and somewhere else.""",
    broken=Parser,
    question="The error is caught. Which thread suffers from it, and why only in some orders?",
    fixed=WithLock,
    fix="`with lock:`, always; where it can't be, `try … finally` right behind `acquire`.",
    and_if=(
        AndIf(
            question="there were a timeout, and `acquire` stood inside of the `try`?",
            answer="Where it was not taken it is released all the same: RuntimeError, or the lock of another thread.",
            program=Timed,
            fails=True,
        ),
        AndIf(
            question="the `try` began behind `acquire`?",
            answer="Then what is released was taken.",
            program=TimedOutside,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="Radicale: the lock of its storage was not released where an exception was raised under it.",
            where="https://github.com/Kozea/Radicale/pull/416",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
