"""A pair that has to agree is read while half of it is new."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met


class Position:
    """A point that moves from (0, 0) to (1, 1), in two fields."""

    def __init__(self) -> None:
        self.x = 0
        self.y = 0
        self.seen = (0, 0)

    def actor_moves(self) -> None:
        self.move()

    def actor_looks(self) -> None:
        self.seen = self.look()

    def move(self) -> None:
        self.x = 1
        self.y = 1

    def look(self) -> tuple[int, int]:
        x = self.x
        y = self.y
        return x, y

    def at_end(self) -> None:
        assert self.seen in ((0, 0), (1, 1)), f"it was never at {self.seen}"


class OneReference(Position):
    """The pair is one object, which does not change: a new one takes its place."""

    def __init__(self) -> None:
        super().__init__()
        self.at = (0, 0)

    def move(self) -> None:
        self.at = (1, 1)

    def look(self) -> tuple[int, int]:
        return self.at


class LockedMove(Position):
    """The thread that writes takes a lock, and the one that reads does not."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def move(self) -> None:
        with self.lock:
            super().move()


class LockedBoth(LockedMove):
    """Both take it."""

    def look(self) -> tuple[int, int]:
        with self.lock:
            return super().look()


LESSON = Lesson(
    title="Torn read",
    terms=("atomicity violation", "torn read", "inconsistent snapshot", "multi-variable bug"),
    hazard="""Two fields belong together, and are written one after the other. A thread that reads both in between has
    one that is new and one that is old. Each value was right once, and the pair never was.""",
    broken=Position,
    question="The point moves once, from (0, 0) to (1, 1). Which four pairs can the other thread see?",
    fixed=OneReference,
    fix="put what belongs together into one object that does not change, and replace it as a whole.",
    and_if=(
        AndIf(
            question="the thread that writes took a lock?",
            answer="A lock that the reader does not take keeps no reader out.",
            program=LockedMove,
            fails=True,
        ),
        AndIf(
            question="both took it?",
            answer="Then the reader sees the pair from before, or the pair from after.",
            program=LockedBoth,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="Lu and others, Learning from Mistakes, 2008: a third of the bugs that are no deadlocks involve "
            "several variables.",
            where="https://doi.org/10.1145/1346281.1346323",
        ),
    ),
    gil="only without",
    gil_note="With a call between the two reads, or between the two writes, it happens with a GIL, too.",
)

if __name__ == "__main__":
    LESSON.teach()
