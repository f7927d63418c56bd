"""A lock of one's own: a thread goes round a loop until it is free."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met
from reactive_runtime.atomics import AtomicBoolean


class Spinning:
    """Two threads in a critical section, under a spin lock that looks, and then takes."""

    def __init__(self) -> None:
        self.taken = AtomicBoolean()
        self.inside = 0
        self.most = 0

    def actor_a(self) -> None:
        self.work()

    def actor_b(self) -> None:
        self.work()

    def work(self) -> None:
        self.acquire()
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.inside -= 1
        self.release()

    def acquire(self) -> None:
        while self.taken.get():
            pass
        self.taken.set(True)

    def release(self) -> None:
        self.taken.set(False)

    def at_end(self) -> None:
        assert self.most == 1, f"{self.most} were inside at once"


class TestAndSet(Spinning):
    """Takes it and learns what it was in one step."""

    def acquire(self) -> None:
        while self.taken.get_and_set(True):
            pass


class TestAndTestAndSet(Spinning):
    """Looks until it is free, then takes it in one step, and goes on looking where another was quicker."""

    def acquire(self) -> None:
        while True:
            while self.taken.get():
                pass
            if not self.taken.get_and_set(True):
                return


class NotReleased(TestAndSet):
    """Leaves without a release where something is wrong."""

    def work(self) -> None:
        self.acquire()
        if self.most:
            return
        self.most = 1
        self.release()

    def actor_c(self) -> None:
        self.work()


class RealLock(Spinning):
    """A lock of `threading`: the thread that waits uses no processor."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def acquire(self) -> None:
        self.lock.acquire()

    def release(self) -> None:
        self.lock.release()


LESSON = Lesson(
    title="A spin lock, wrong and right",
    terms=("atomicity violation", "spin lock", "test-and-set", "mutual exclusion", "livelock"),
    hazard="""A thread waits in a loop until a flag is down, and raises it then. Two threads see it down, and both raise
    it. Both are inside, and the flag can't show that.""",
    broken=Spinning,
    question="The flag is an atomic. Which two steps of `acquire` let a second thread in?",
    fixed=TestAndSet,
    fix="raise the flag and learn what it was in one step, until it was down.",
    and_if=(
        AndIf(
            question="it only looked until the flag is down, and then took it in one step?",
            answer="That holds, and disturbs the other processors less: test, and test-and-set.",
            program=TestAndTestAndSet,
            fails=False,
        ),
        AndIf(
            question="one way out forgot the release?",
            answer="The next one goes round for ever: a livelock, where a real lock would be a deadlock.",
            program=NotReleased,
            fails=True,
        ),
        AndIf(
            question="it were a lock of `threading`?",
            answer="Use that: with a GIL, a thread that spins keeps the very thread waiting that it waits for.",
            program=RealLock,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="Torvalds, in 2020, on spin locks in user space: the one that has the lock may not be running.",
            where="https://www.realworldtech.com/forum/?threadid=189711&curpostid=189723",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
