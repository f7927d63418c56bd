"""A reference is given out before what it refers to is filled."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met


class Settings:
    """One thread loads the settings, another one uses them as soon as they are there."""

    def __init__(self) -> None:
        self.settings: dict[str, str] | None = None

    def actor_loads(self) -> None:
        self.load()

    def actor_uses(self) -> None:
        settings = self.look()
        if settings is not None:
            assert "host" in settings, "the settings are there, and empty"

    def load(self) -> None:
        self.settings = {}
        self.settings["host"] = "localhost"

    def look(self) -> dict[str, str] | None:
        return self.settings


class FilledFirst(Settings):
    """Fills them where no other thread sees them, and gives them out in one store."""

    def load(self) -> None:
        settings = {}
        settings["host"] = "localhost"
        self.settings = settings


class FlagFirst(Settings):
    """A flag says that they are there, and is set before they are filled."""

    def __init__(self) -> None:
        super().__init__()
        self.filled: dict[str, str] = {}
        self.ready = False

    def load(self) -> None:
        self.ready = True
        self.filled["host"] = "localhost"

    def look(self) -> dict[str, str] | None:
        return self.filled if self.ready else None


class ReaderLocks(Settings):
    """The thread that reads takes a lock, and the one that fills does not."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def look(self) -> dict[str, str] | None:
        with self.lock:
            return super().look()


class EventLast(FlagFirst):
    """An event is set when they are filled, and the reader waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded = threading.Event()

    def load(self) -> None:
        self.filled["host"] = "localhost"
        self.loaded.set()

    def look(self) -> dict[str, str] | None:
        self.loaded.wait()
        return self.filled


LESSON = Lesson(
    title="Unsafe publication",
    terms=("order violation", "unsafe publication", "safe publication", "happens-before"),
    hazard="""A thread stores a reference, and then fills what it refers to. Another thread that reads the reference
    takes it for a sign that all is there. It uses what is empty, or half filled.""",
    broken=Settings,
    question="The other thread checks that the settings are not None. Why is that not enough?",
    fixed=FilledFirst,
    fix="fill first and publish last, in one store; better, through a lock, a queue or an event, which order the two.",
    and_if=(
        AndIf(
            question="a flag said that they are there?",
            answer="A flag that is set first says it too early.",
            program=FlagFirst,
            fails=True,
        ),
        AndIf(
            question="only the reader took a lock?",
            answer="The thread that fills is not kept out by it.",
            program=ReaderLocks,
            fails=True,
        ),
        AndIf(
            question="an event were set when they are filled, and the reader waited for it?",
            answer="`set` happens before the `wait` that returns: this order is kept on every machine.",
            program=EventLast,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="Goetz and others, Java Concurrency in Practice, 2006, section 3.5: what publishes safely.",
            where="ISBN 978-0-321-34960-6",
        ),
    ),
    gil="only without",
    gil_note="With a call between the two stores, `self.settings.update(load())`, it happens with a GIL, too.",
)

if __name__ == "__main__":
    LESSON.teach()
