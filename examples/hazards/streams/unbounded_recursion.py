"""`request` calls `on_next`, which calls `request`."""

from __future__ import annotations

from examples.hazards.lesson import Lesson
from reactive_runtime.atomics import AtomicInteger


class Recursive:
    """Delivers inside of `request`; the subscriber requests the next element inside of `on_next`."""

    rule = "3.3"

    def __init__(self) -> None:
        self.left = 6  # elements; owned by who delivers
        self.depth = 0
        self.deepest = 0

    def actor_subscriber(self) -> None:
        self.request(1)

    def request(self, n: int) -> None:
        if self.left > 0:
            self.left -= 1
            self.on_next()

    def on_next(self) -> None:
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        self.request(1)
        self.depth -= 1

    def at_end(self) -> None:
        assert self.deepest < 5, f"on_next was called {self.deepest} levels deep"


class Trampoline(Recursive):
    """A request from inside only adds; the loop that is further down the stack delivers."""

    def __init__(self) -> None:
        super().__init__()
        self.demand = AtomicInteger()

    def request(self, n: int) -> None:
        if self.demand.get_and_add(n) > 0:
            return
        while self.left > 0:
            self.left -= 1
            self.on_next()
            if self.demand.add_and_get(-1) == 0:
                return


LESSON = Lesson(
    title="Unbounded recursion",
    hazard="""Every element is delivered one call deeper than the one before. A stream that is long enough ends with a
    RecursionError, at a place that has nothing to do with it.""",
    broken=Recursive,
    fixed=Trampoline,
    fix="`request` adds to the demand, and delivers only where no call is delivering further down the stack.",
)

if __name__ == "__main__":
    LESSON.teach()
