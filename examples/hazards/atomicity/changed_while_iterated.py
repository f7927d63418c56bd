"""A container is changed by one thread while another one iterates over it."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met


class Sessions:
    """Who is logged in. One thread logs in, another one counts."""

    def __init__(self) -> None:
        self.sessions = {"ann": 1, "ben": 2}
        self.total = 0

    def actor_counts(self) -> None:
        self.count()

    def actor_logs_in(self) -> None:
        self.log_in("cem", 3)

    def count(self) -> None:
        for name in self.sessions:
            self.total += self.sessions[name]

    def log_in(self, name: str, number: int) -> None:
        self.sessions[name] = number


class LockedSessions(Sessions):
    """Copies under the lock that changes are made under, and iterates over the copy."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def count(self) -> None:
        with self.lock:
            numbers = list(self.sessions.values())
        self.total = sum(numbers)

    def log_in(self, name: str, number: int) -> None:
        with self.lock:
            super().log_in(name, number)


class LockedChange(Sessions):
    """Changes under a lock, and iterates without it."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def log_in(self, name: str, number: int) -> None:
        with self.lock:
            super().log_in(name, number)


class Queued:
    """The same with a list, from which the other thread removes."""

    def __init__(self) -> None:
        self.waiting = ["ann", "ben", "cem"]
        self.seen: list[str] = []

    def actor_looks(self) -> None:
        for name in self.waiting:
            self.seen.append(name)

    def actor_leaves(self) -> None:
        self.waiting.remove("ann")

    def at_end(self) -> None:
        assert self.seen[-2:] == ["ben", "cem"], f"only {self.seen} were seen, and ben and cem wait all the time"


LESSON = Lesson(
    title="Changed while iterated",
    terms=("atomicity violation", "concurrent modification", "fail-fast iterator"),
    hazard="""A loop over a container is many steps. Where another thread adds or removes in between, a dict raises
    "dictionary changed size during iteration". A list raises nothing: it leaves out an element, or gives one twice.""",
    broken=Sessions,
    question="One thread iterates over a dict of two, another one adds a third. What are the three ways it can end?",
    fixed=LockedSessions,
    fix="copy under the lock that every change is made under, and iterate over the copy.",
    and_if=(
        AndIf(
            question="only the change were under a lock?",
            answer="The loop takes no lock, and is not kept out.",
            program=LockedChange,
            fails=True,
        ),
        AndIf(
            question="it were a list?",
            answer="It raises nothing, and an element that was there all the time is not seen.",
            program=Queued,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="mutmut: the thread that looks for timeouts iterates over a dict that others change.",
            where="https://github.com/boxed/mutmut/issues/410",
        ),
        Met(
            what="python-matter-server: a dict that several threads use.",
            where="https://github.com/matter-js/python-matter-server/issues/657",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
