"""The first look is without the lock, and sees an object that is not ready yet."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met


class Connection:
    """Can be used when it is open."""

    def __init__(self) -> None:
        self.is_open = False

    def open(self) -> None:
        self.is_open = True


class Lazy:
    """A connection that the first thread opens. A thread that finds one takes no lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection: Connection | None = None  # stored under the lock, read without
        self.opened = 0  # lock

    def actor_a(self) -> None:
        assert self.get().is_open, "the connection is given out before it is open"

    def actor_b(self) -> None:
        assert self.get().is_open, "the connection is given out before it is open"

    def get(self) -> Connection:
        if self.connection is None:
            with self.lock:
                if self.connection is None:
                    self.connection = Connection()
                    self.connection.open()
                    self.opened += 1
        return self.connection

    def at_end(self) -> None:
        assert self.opened == 1, f"{self.opened} connections were opened"


class OpenFirst(Lazy):
    """Opens it as a local, and stores it last."""

    def get(self) -> Connection:
        if self.connection is None:
            with self.lock:
                if self.connection is None:
                    connection = Connection()
                    connection.open()
                    self.opened += 1
                    self.connection = connection
        return self.connection


class CheckedOnce(OpenFirst):
    """Does not look again under the lock."""

    def get(self) -> Connection:
        if self.connection is None:
            with self.lock:
                connection = Connection()
                connection.open()
                self.opened += 1
                self.connection = connection
        return self.connection


class AlwaysLocked(Lazy):
    """Looks under the lock only, and has no first look."""

    def get(self) -> Connection:
        with self.lock:
            if self.connection is None:
                self.connection = Connection()
                self.connection.open()
                self.opened += 1
            return self.connection


LESSON = Lesson(
    title="Double-checked locking",
    terms=("order violation", "double-checked locking", "lazy initialization"),
    hazard="""To save the lock, a thread looks first without it, and takes it only where there is nothing yet. But the
    object is stored before it is ready, inside of the lock, which the first look does not take. The second thread finds
    it, and uses it too soon.""",
    broken=Lazy,
    question="All stores are under the lock, and the look is made twice. Which line does the second thread go by?",
    fixed=OpenFirst,
    fix="make the object ready as a local, and store it last; or take the lock always, which costs little.",
    and_if=(
        AndIf(
            question="the second look were left out?",
            answer="Two threads that both saw nothing open a connection each.",
            program=CheckedOnce,
            fails=True,
        ),
        AndIf(
            question="there were no first look?",
            answer="Then the order of the two lines does not matter, since no thread sees in between.",
            program=AlwaysLocked,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="Bacon, Bloch, Bogda and others, The Double-Checked Locking is Broken Declaration: in Java the second "
            "form is broken too, unless the field is volatile; before version 5 even then.",
            where="https://www.cs.umd.edu/~pugh/java/memoryModel/DoubleCheckedLocking.html",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
