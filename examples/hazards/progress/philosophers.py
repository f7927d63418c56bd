"""Everyone takes the left fork first."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met


class Table:
    """Three philosophers at a round table, and a fork between each two. To eat takes both."""

    def __init__(self) -> None:
        self.forks = [threading.Lock() for _ in range(3)]

    def actor_one(self) -> None:
        self.eat(0, 1)

    def actor_two(self) -> None:
        self.eat(1, 2)

    def actor_three(self) -> None:
        self.eat(2, 0)

    def eat(self, left: int, right: int) -> None:
        with self.forks[left]:  # noqa: SIM117  # two lines, for the picture
            with self.forks[right]:
                pass


class LowerFirst(Table):
    """Each takes the fork with the lower number first."""

    def eat(self, left: int, right: int) -> None:
        super().eat(min(left, right), max(left, right))


class TwoAtOnce(Table):
    """A waiter lets two sit down at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.seats = threading.Semaphore(2)

    def eat(self, left: int, right: int) -> None:
        with self.seats:
            super().eat(left, right)


class OnlyTwo(Table):
    """One of them has gone."""

    def actor_three(self) -> None:
        pass


LESSON = Lesson(
    title="Dining philosophers",
    terms=("deadlock", "circular wait", "dining philosophers", "resource hierarchy"),
    hazard="""Each thread takes one of its two locks, and waits for the other, which its neighbour has. No two of them
    wait for each other: the circle has three members. Looking at pairs of threads does not show it.""",
    broken=Table,
    question="No two philosophers share both forks. In which order do they take them for all three to starve?",
    fixed=LowerFirst,
    fix="number the forks, and take the lower one first: then a circle would have to come down again somewhere.",
    and_if=(
        AndIf(
            question="two at most were let sit down at once?",
            answer="Two can't close a circle of three.",
            program=TwoAtOnce,
            fails=False,
        ),
        AndIf(
            question="one of them never eats?",
            answer="Then nothing goes wrong, and tests with two threads pass.",
            program=OnlyTwo,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="Dijkstra, Hierarchical Ordering of Sequential Processes, 1971: five of them, and the deadlock. His "
            "own way out is one lock for the table, and a semaphore for each philosopher.",
            where="https://doi.org/10.1007/BF00289519",
        ),
        Met(
            what="Havender, Avoiding Deadlock in Multitasking Systems, 1968: what is taken in one order is never "
            "waited for in a circle.",
            where="https://doi.org/10.1147/sj.72.0074",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
