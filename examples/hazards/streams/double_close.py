"""`cancel` and the end of the stream race to close the same iterator."""

from __future__ import annotations

from examples.hazards.lesson import Lesson
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


LESSON = Lesson(
    title="Cancel racing complete",
    hazard="""Both look whether the iterator is closed before either has said that it will. It is closed twice, the
    second time perhaps under the feet of who has it next.""",
    broken=ClosedByBoth,
    fixed=ClosedByOne,
    fix="one atomic step decides who ends the stream; the others have nothing left to do.",
)

if __name__ == "__main__":
    LESSON.teach()
