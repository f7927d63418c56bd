"""`request` calls `on_next`, which calls `request`."""

from __future__ import annotations

from examples.hazards.lesson import AndIf, Lesson, Met
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


class Stopped(Recursive):
    """The subscriber requests all at once, and nothing inside of `on_next`."""

    def actor_subscriber(self) -> None:
        self.request(6)

    def request(self, n: int) -> None:
        for _ in range(min(n, self.left)):
            self.left -= 1
            self.on_next()

    def on_next(self) -> None:
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        self.depth -= 1


class FlagOnly(Recursive):
    """A flag says that a call is delivering; a request from inside returns, and is not counted."""

    def __init__(self) -> None:
        super().__init__()
        self.delivers = False

    def request(self, n: int) -> None:
        if self.delivers:
            return
        self.delivers = True
        if self.left > 0:
            self.left -= 1
            self.on_next()
        self.delivers = False

    def at_end(self) -> None:
        super().at_end()
        assert self.left == 0, f"{self.left} elements were requested, and not delivered"


LESSON = Lesson(
    title="Unbounded recursion",
    terms=("no race", "mutual recursion", "stack overflow", "trampoline"),
    hazard="""`request` calls `on_next`, which calls `request`, and every element is delivered one call deeper than the
    one before. A stream that is long enough ends with a RecursionError, at a place that has nothing to do with it.
    This is no race: one thread is enough.""",
    broken=Recursive,
    question="The subscriber requests one element each time, inside of `on_next`. How deep is the sixth?",
    fixed=Trampoline,
    fix="`request` adds to the demand, and delivers only where no call is delivering further down the stack.",
    and_if=(
        AndIf(
            question="the subscriber requested all at once?",
            answer="Then nothing recurs. But a publisher can't choose its subscribers.",
            program=Stopped,
            fails=False,
        ),
        AndIf(
            question="a request from inside just returned?",
            answer="Then its demand is lost: it has to be counted, for the loop that is below.",
            program=FlagOnly,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="Rule 3.3 of Reactive Streams asks for a bound on this recursion.",
            where="https://github.com/reactive-streams/reactive-streams-jvm/blob/v1.0.4/README.md",
        ),
    ),
    gil="one thread",
)

if __name__ == "__main__":
    LESSON.teach()
