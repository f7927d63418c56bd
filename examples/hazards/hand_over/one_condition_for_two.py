"""Those who put and those who take wait on one condition, and the wrong one is woken."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met


class Box:
    """A place for one element. Two threads put, two take."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.full = False  # lock

    def actor_put(self) -> None:
        self.put()

    def actor_put_too(self) -> None:
        self.put()

    def actor_take(self) -> None:
        self.take()

    def actor_take_too(self) -> None:
        self.take()

    def put(self) -> None:
        with self.lock:
            while self.full:
                self.changed.wait()
            self.full = True
            self.changed.notify()

    def take(self) -> None:
        with self.lock:
            while not self.full:
                self.changed.wait()
            self.full = False
            self.changed.notify()


class TwoConditions(Box):
    """A condition for each thing that is waited for, on one lock."""

    def __init__(self) -> None:
        super().__init__()
        self.filled = threading.Condition(self.lock)
        self.emptied = threading.Condition(self.lock)

    def put(self) -> None:
        with self.lock:
            while self.full:
                self.emptied.wait()
            self.full = True
            self.filled.notify()

    def take(self) -> None:
        with self.lock:
            while not self.full:
                self.filled.wait()
            self.full = False
            self.emptied.notify()


class NotifiesAll(Box):
    """One condition, and all that wait on it are woken."""

    def put(self) -> None:
        with self.lock:
            while self.full:
                self.changed.wait()
            self.full = True
            self.changed.notify_all()

    def take(self) -> None:
        with self.lock:
            while not self.full:
                self.changed.wait()
            self.full = False
            self.changed.notify_all()


class OneOfEach(Box):
    """One thread that puts, and one that takes."""

    def actor_put_too(self) -> None:
        pass

    def actor_take_too(self) -> None:
        pass


LESSON = Lesson(
    title="One condition for two predicates",
    terms=("order violation", "lost wake-up", "wrong waiter notified"),
    hazard="""On one condition wait threads that wait for different things. `notify` wakes one of them, and it may be
    one that can do nothing with it. It waits again, and the one that could go on is not woken.""",
    broken=Box,
    question="Every change is followed by a `notify`. Which thread has to be woken for all four to wait for ever?",
    fixed=TwoConditions,
    fix="a condition for each predicate, on one lock; or `notify_all`.",
    and_if=(
        AndIf(
            question="`notify_all` were called?",
            answer="All look, and one goes on. It costs the wake-ups of the others.",
            program=NotifiesAll,
            fails=False,
        ),
        AndIf(
            question="one thread puts, and one takes?",
            answer="Then the one that waits is always the right one. The fault waits for the third thread.",
            program=OneOfEach,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="`queue.Queue` of the standard library has three conditions on one lock: not_empty, not_full and "
            "all_tasks_done.",
            where="https://github.com/python/cpython/blob/3.13/Lib/queue.py",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
