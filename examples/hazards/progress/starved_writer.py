"""Readers overlap, and the writer never finds the room empty."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met


class Room:
    """Readers share it, a writer has it alone. Two readers read again and again; one writer comes once."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.readers = 0  # changed
        self.waiting = 0  # changed: writers
        self.overtaken = 0  # changed: readers that went in while a writer waited

    def actor_reads(self) -> None:
        for _ in range(3):
            self.read()

    def actor_reads_too(self) -> None:
        for _ in range(3):
            self.read()

    def actor_writes(self) -> None:
        self.write()

    def read(self) -> None:
        with self.changed:
            self.overtaken += self.waiting
            self.readers += 1
        with self.changed:
            self.readers -= 1
            self.changed.notify_all()

    def write(self) -> None:
        with self.changed:
            self.waiting += 1
            while self.readers:
                self.changed.wait()
            self.waiting -= 1

    def at_end(self) -> None:
        assert self.overtaken <= 2, f"{self.overtaken} readers came after the writer, and went in before it"


class WriterNext(Room):
    """No reader goes in while a writer waits."""

    def read(self) -> None:
        with self.changed:
            while self.waiting:
                self.changed.wait()
            self.overtaken += self.waiting
            self.readers += 1
        with self.changed:
            self.readers -= 1
            self.changed.notify_all()

    def write(self) -> None:
        super().write()
        with self.changed:
            self.changed.notify_all()


class ManyWriters(WriterNext):
    """The same rule, and now the writers come again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0  # changed
        self.passed = 0  # changed: writes that went by a reader that waits

    def actor_reads(self) -> None:
        with self.changed:
            before = self.writes
            while self.waiting:
                self.changed.wait()
            self.passed = self.writes - before

    def actor_reads_too(self) -> None:
        for _ in range(3):
            self.write()

    def actor_writes(self) -> None:
        for _ in range(3):
            self.write()

    def write(self) -> None:
        with self.changed:
            self.waiting += 1
        with self.changed:
            self.waiting -= 1
            self.writes += 1
            self.changed.notify_all()

    def at_end(self) -> None:
        assert self.passed <= 2, f"{self.passed} writers went by a reader that waits"


LESSON = Lesson(
    title="A writer that starves",
    terms=("starvation", "readers-writer problem", "reader preference", "bounded overtaking"),
    hazard="""A reader goes in wherever only readers are inside. Two of them that overlap keep the room from ever being
    empty. The writer waits, and is overtaken by readers that came after it.""",
    broken=Room,
    question="The writer waits until no reader is inside. How do two readers, who each leave soon, keep it out?",
    fixed=WriterNext,
    fix="a reader that comes while a writer waits goes in after it.",
    and_if=(
        AndIf(
            question="the writers came again and again?",
            answer="Then the readers starve. Who must never wait long has to be served in turn.",
            program=ManyWriters,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="Courtois, Heymans and Parnas, Concurrent Control with Readers and Writers, 1971: two problems, of "
            "which each starves one side.",
            where="https://doi.org/10.1145/362759.362813",
        ),
    ),
    gil="either way",
    gil_note="The program counts who overtakes: that a thread waits for ever no finite schedule shows.",
)

if __name__ == "__main__":
    LESSON.teach()
