"""Two threads give way to each other, without end."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met


class Supper:
    """Two eat with one spoon. Each that has it passes it on as long as the other one is hungry."""

    def __init__(self) -> None:
        self.hungry = [False, False]
        self.has_spoon = 0

    def actor_a(self) -> None:
        self.eat(0)

    def actor_b(self) -> None:
        self.eat(1)

    def eat(self, me: int) -> None:
        self.hungry[me] = True
        while self.hungry[me]:
            if self.has_spoon == me:
                if self.hungry[1 - me]:
                    self.has_spoon = 1 - me
                else:
                    self.hungry[me] = False
        self.has_spoon = 1 - me


class PassesOnce(Supper):
    """Each passes the spoon on once, and then eats."""

    def eat(self, me: int) -> None:
        self.hungry[me] = True
        passed = False
        while self.hungry[me]:
            if self.has_spoon == me:
                if self.hungry[1 - me] and not passed:
                    passed = True
                    self.has_spoon = 1 - me
                else:
                    self.hungry[me] = False
        self.has_spoon = 1 - me


class NeitherPasses(Supper):
    """The one that has the spoon keeps it until it is asked, and it is never asked."""

    def eat(self, me: int) -> None:
        self.hungry[me] = True
        while self.hungry[me]:
            if self.has_spoon == me:
                self.hungry[me] = False


class OneLock(Supper):
    """A lock lets one of them go first."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def eat(self, me: int) -> None:
        with self.lock:
            self.hungry[me] = False


LESSON = Lesson(
    title="Livelock by politeness",
    terms=("livelock", "symmetry", "no progress"),
    hazard="""Each thread sees that the other one wants to go, and gives way; then the other does. Neither waits, both
    work, and nothing comes of it. The processor is busy, which a deadlock is not.""",
    broken=Supper,
    question="No thread ever waits for a lock. What do the two do again and again, and from when on?",
    fixed=PassesOnce,
    fix="break the symmetry: at some time one of the two has to insist, by a turn, a number, or a lock.",
    and_if=(
        AndIf(
            question="neither passed the spoon on?",
            answer="Then the one without waits for ever, and keeps looking: the other way not to move.",
            program=NeitherPasses,
            fails=True,
        ),
        AndIf(
            question="they used a lock?",
            answer="A lock is what decides who goes first.",
            program=OneLock,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="Dijkstra, Cooperating Sequential Processes, 1965, meets it in his fourth attempt at a lock for two.",
            where="https://www.cs.utexas.edu/~EWD/transcriptions/EWD01xx/EWD123.html",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
