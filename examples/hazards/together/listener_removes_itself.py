"""A listener takes itself off the list that is being gone through."""

from __future__ import annotations

from collections.abc import Callable

from examples.hazards.lesson import AndIf, Lesson, Met


class Bell:
    """Calls each of its listeners. The first wants to be called once, and takes itself off."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.listeners: list[Callable[[], None]] = [self.once, self.second, self.third]

    def actor_rings(self) -> None:
        self.ring()

    def ring(self) -> None:
        for listener in self.listeners:
            listener()

    def once(self) -> None:
        self.heard.append("once")
        self.listeners.remove(self.once)

    def second(self) -> None:
        self.heard.append("second")

    def third(self) -> None:
        self.heard.append("third")

    def at_end(self) -> None:
        assert self.heard == ["once", "second", "third"], f"only {self.heard} heard it"


class RingsACopy(Bell):
    """Goes through a copy."""

    def ring(self) -> None:
        for listener in list(self.listeners):
            listener()


class Backwards(Bell):
    """Goes through it from its end."""

    def ring(self) -> None:
        for listener in reversed(self.listeners):
            listener()

    def at_end(self) -> None:
        assert sorted(self.heard) == ["once", "second", "third"], f"only {self.heard} heard it"


class AddsToo(Backwards):
    """A listener that puts itself at the beginning again."""

    def once(self) -> None:
        self.heard.append("once")
        self.listeners.remove(self.once)
        self.listeners.insert(0, self.late)

    def second(self) -> None:
        self.heard.append("second")
        self.listeners.insert(0, self.late)

    def late(self) -> None:
        self.heard.append("late")


LESSON = Lesson(
    title="A listener that removes itself",
    terms=("no race", "reentrancy", "concurrent modification", "iterator invalidation"),
    hazard="""A listener that is called takes itself off the list. Those behind it move up by one, and the loop goes on
    at the next index. The one that moved up into the gap is not called, and nothing raises.""",
    broken=Bell,
    question="Three listeners, and the first removes itself. Which one is not called, and why that one?",
    fixed=RingsACopy,
    fix="call from a copy; with threads, from a copy that is made under the lock.",
    and_if=(
        AndIf(
            question="the loop went backwards?",
            answer="A listener that removes itself then moves only those that were called.",
            program=Backwards,
            fails=False,
        ),
        AndIf(
            question="a listener also added one?",
            answer="Then backwards is wrong again, and a copy is not.",
            program=AddsToo,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="Autobahn: where a listener takes itself off, the next one is not called.",
            where="https://github.com/crossbario/autobahn-python/issues/1498",
        ),
        Met(
            what="`java.util.concurrent.CopyOnWriteArrayList` is for lists that are iterated more often than they are "
            "changed, as those of listeners are: its iterators go over a snapshot.",
            where="https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/util/concurrent/"
            "CopyOnWriteArrayList.html",
        ),
    ),
    gil="one thread",
)

if __name__ == "__main__":
    LESSON.teach()
