"""`cancel` and the end of the stream race to close the same iterator."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met
from reactive_runtime.atomics import AtomicBoolean, AtomicInteger


class ClosedByBoth:
    """The thread that comes to the end closes, and the one that cancels closes, unless it is closed."""

    rule = "1.6"

    def __init__(self) -> None:
        self.closed = AtomicBoolean()
        self.closings = AtomicInteger()

    def actor_completes(self) -> None:
        self.close()

    def actor_cancels(self) -> None:
        self.close()

    def close(self) -> None:
        if not self.closed.get():
            self.closings.add_and_get(1)
            self.closed.set(True)

    def at_end(self) -> None:
        assert self.closings.get() == 1, f"the iterator was closed {self.closings.get()} times"


class ClosedByOne(ClosedByBoth):
    """The thread that raises the flag closes."""

    def close(self) -> None:
        if not self.closed.get_and_set(True):
            self.closings.add_and_get(1)


class LockedFlag(ClosedByBoth):
    """Looks under a lock, and raises the flag under it again, after it has closed."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def close(self) -> None:
        with self.lock:
            closed = self.closed.get()
        if not closed:
            self.closings.add_and_get(1)
            with self.lock:
                self.closed.set(True)


class ClosedByNone(ClosedByBoth):
    """Each leaves it to the other one, where the other one has said that it will."""

    def __init__(self) -> None:
        super().__init__()
        self.wants = [AtomicBoolean(), AtomicBoolean()]

    def actor_completes(self) -> None:
        self.close_unless(0)

    def actor_cancels(self) -> None:
        self.close_unless(1)

    def close_unless(self, me: int) -> None:
        self.wants[me].set(True)
        if not self.wants[1 - me].get():
            self.closings.add_and_get(1)


LESSON = Lesson(
    title="Cancel racing complete",
    terms=("atomicity violation", "check-then-act", "double close", "double free"),
    hazard="""Both look whether the iterator is closed before either has said that it will. So it is closed twice. The
    second time it may belong to another subscriber already.""",
    broken=ClosedByBoth,
    question="This is *Check, then act* again. What is the check here, what is the act, and what decides who ends it?",
    fixed=ClosedByOne,
    fix="one atomic step decides who ends the stream; the others have nothing left to do.",
    and_if=(
        AndIf(
            question="the flag were read and written under a lock?",
            answer="Two steps under a lock are two steps.",
            program=LockedFlag,
            fails=True,
        ),
        AndIf(
            question="each left it to the other, where that has said it will?",
            answer="Then both may leave it, and it is never closed.",
            program=ClosedByNone,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="urllib3 2.8.0: a connection that is given back while the pool is closed raises an AttributeError "
            "(`python -m examples.found urllib3`).",
            where="https://pypi.org/project/urllib3/2.8.0/",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
