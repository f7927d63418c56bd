"""An object makes itself known before it is whole: `this` escapes from its constructor."""

from __future__ import annotations

from typing import Any

from examples.hazards.lesson import AndIf, Lesson, Met


class Meter:
    """Makes itself known first, and then its fields."""

    def __init__(self, registry: list[Any]) -> None:
        registry.append(self)
        self.count = 0

    def measure(self) -> None:
        self.count += 1


class Registry:
    """One thread makes a meter, another one has every meter measure that it finds."""

    def __init__(self) -> None:
        self.meters: list[Any] = []

    def actor_makes(self) -> None:
        self.make()

    def actor_measures(self) -> None:
        for meter in list(self.meters):
            meter.measure()

    def make(self) -> None:
        Meter(self.meters)


class WholeMeter:
    """Its constructor makes its fields, and nothing else; a second step makes it known."""

    def __init__(self) -> None:
        self.count = 0

    @classmethod
    def registered(cls, registry: list[Any]) -> WholeMeter:
        meter = cls()
        registry.append(meter)
        return meter

    def measure(self) -> None:
        self.count += 1


class WholeFirst(Registry):
    """Uses the meter that does not escape."""

    def make(self) -> None:
        WholeMeter.registered(self.meters)


class LastLine:
    """Makes itself known on the last line of its constructor."""

    def __init__(self, registry: list[Any]) -> None:
        self.count = 0
        registry.append(self)

    def measure(self) -> None:
        self.count += 1


class WeightedMeter(LastLine):
    """And the constructor of a class that derives from it goes on."""

    def __init__(self, registry: list[Any]) -> None:
        super().__init__(registry)
        self.weight = 2

    def measure(self) -> None:
        self.count += self.weight


class Derived(Registry):
    """Uses the one that derives."""

    def make(self) -> None:
        WeightedMeter(self.meters)


class DerivedWhole(WholeMeter):
    """The same, of the meter that does not escape."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = 2

    def measure(self) -> None:
        self.count += self.weight


class DerivedFirst(Registry):
    """Uses that one."""

    def make(self) -> None:
        DerivedWhole.registered(self.meters)


LESSON = Lesson(
    title="An escaping `this`",
    terms=("order violation", "this escape", "improper construction"),
    hazard="""`__init__` passes `self` on, and then goes on building. A thread that finds the object meanwhile finds
    half of it. The error is raised in that thread, far from the constructor.""",
    broken=Registry,
    question="The constructor has two lines. What does the other thread find in between?",
    fixed=WholeFirst,
    fix="a constructor makes fields and nothing else; what makes the object known is called when it is whole.",
    and_if=(
        AndIf(
            question="it made itself known on the last line of `__init__`?",
            answer="The constructor of a class that derives from it has not ended there.",
            program=Derived,
            fails=True,
        ),
        AndIf(
            question="a class derived from the one that is put right?",
            answer="It is whole when it is made known.",
            program=DerivedFirst,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="Goetz and others, Java Concurrency in Practice, 2006, section 3.2.1: listeners that are registered, "
            "and threads that are started, in a constructor.",
            where="ISBN 978-0-321-34960-6",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
