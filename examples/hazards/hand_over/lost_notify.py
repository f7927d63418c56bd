"""The notification comes between the look and the wait, where no thread waits yet."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met


class Parcel:
    """One thread waits until something is ready, another one makes it ready."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.ready = False

    def actor_waits(self) -> None:
        if not self.ready:
            with self.changed:
                self.changed.wait()

    def actor_notifies(self) -> None:
        self.ready = True
        with self.changed:
            self.changed.notify()


class LookedUnderLock(Parcel):
    """Looks and begins to wait under the lock that the flag is set under."""

    def actor_waits(self) -> None:
        with self.changed:
            while not self.ready:
                self.changed.wait()

    def actor_notifies(self) -> None:
        with self.changed:
            self.ready = True
            self.changed.notify()


class OnlyTheWaiter(Parcel):
    """The thread that waits looks under the lock, and the flag is set without it; the notification has the lock."""

    def actor_waits(self) -> None:
        with self.changed:
            while not self.ready:
                self.changed.wait()


class NoLook(LookedUnderLock):
    """Waits without a look: what was notified before is gone."""

    def actor_waits(self) -> None:
        with self.changed:
            self.changed.wait()


class AnEvent:
    """An event remembers that it was set."""

    def __init__(self) -> None:
        self.ready = threading.Event()

    def actor_waits(self) -> None:
        self.ready.wait()

    def actor_notifies(self) -> None:
        self.ready.set()


LESSON = Lesson(
    title="Lost notification",
    terms=("order violation", "lost wake-up", "lost notify", "missed signal"),
    hazard="""A notification wakes the threads that wait at that moment, and no condition remembers it. A thread looks,
    sees nothing, and is about to wait; the notification comes now. It then waits for what has happened already.""",
    broken=Parcel,
    question="The flag is set before the notification. When does the other thread wait for ever all the same?",
    fixed=LookedUnderLock,
    fix="look, and begin to wait, under the lock under which the flag is set and the notification is given.",
    and_if=(
        AndIf(
            question="only the flag were set without the lock?",
            answer="It is set before the lock of the notification is taken, so the waiting thread sees it, or hears of "
            "it. That holds with one flag, and is hard to see: set it under the lock.",
            program=OnlyTheWaiter,
            fails=False,
        ),
        AndIf(
            question="the thread just waited, without a look?",
            answer="Where the notification came first, there is no second one.",
            program=NoLook,
            fails=True,
        ),
        AndIf(
            question="it were an event?",
            answer="An event has a flag of its own, and remembers.",
            program=AnEvent,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="usersim of Microsoft: a predicate was changed without the lock, and a wake-up was missed.",
            where="https://github.com/microsoft/usersim/pull/61",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
