"""What was taken away and put back looks like what never went: the ABA problem."""

from __future__ import annotations

from examples.hazards.lesson import AndIf, Lesson, Met
from reactive_runtime.atomics import AtomicReference


class Node:
    """A subscription that is kept for use by the next subscriber."""

    def __init__(self, name: str, below: Node | None) -> None:
        self.name = name
        self.below = below


class FreeList:
    """A stack of subscriptions that are not in use, by compare-and-set on its top."""

    def __init__(self) -> None:
        self.third = Node("third", None)
        self.second = Node("second", self.third)
        self.first = Node("first", self.second)
        self.top: AtomicReference[Node | None] = AtomicReference(self.first)
        self.slow: Node | None = None
        self.kept: Node | None = None

    def pop(self) -> Node | None:
        while True:
            node = self.top.get()
            if node is None:
                return None
            below = node.below
            if self.top.compare_and_set(node, below):
                return node

    def push(self, node: Node) -> None:
        while True:
            below = self.top.get()
            node.below = below
            if self.top.compare_and_set(below, node):
                return

    def head(self) -> Node | None:
        return self.top.get()

    def actor_slow(self) -> None:
        self.slow = self.pop()

    def actor_quick(self) -> None:
        first = self.pop()
        self.kept = self.pop()
        if first is not None:
            self.push(first)

    def at_end(self) -> None:
        free = []
        node = self.head()
        while node is not None:
            free.append(node)
            node = node.below
        used = self.kept
        assert used is None or used not in free, f"the {used.name} subscription is in use, and free"


class FreshFreeList(FreeList):
    """What comes back comes in a cell of its own: the top is never the same object twice."""

    def push(self, node: Node) -> None:
        cell = Node(node.name, None)
        while True:
            cell.below = self.top.get()
            if self.top.compare_and_set(cell.below, cell):
                return


class Versioned(FreeList):
    """The top carries a version, which each change counts up."""

    def __init__(self) -> None:
        super().__init__()
        self.at: AtomicReference[tuple[Node | None, int]] = AtomicReference((self.first, 0))

    def head(self) -> Node | None:
        return self.at.get()[0]

    def pop(self) -> Node | None:
        while True:
            seen = self.at.get()
            node, version = seen
            if node is None:
                return None
            if self.at.compare_and_set(seen, (node.below, version + 1)):
                return node

    def push(self, node: Node) -> None:
        while True:
            seen = self.at.get()
            below, version = seen
            node.below = below
            if self.at.compare_and_set(seen, (node, version + 1)):
                return


class TwoOnly(FreeList):
    """The quick thread puts nothing back."""

    def actor_quick(self) -> None:
        self.kept = self.pop()
        self.pop()


LESSON = Lesson(
    title="ABA on a recycled subscription",
    terms=("atomicity violation", "ABA problem", "compare-and-set", "lock-free stack"),
    hazard="""A thread reads the top and what lies below it; before it compares, another one takes two away and puts the
    first back. The top is what it was, and the comparison succeeds. What is in use is handed out again.""",
    broken=FreeList,
    question="Compare-and-set succeeds only if the top is what it was. What may have happened to what lies below it?",
    fixed=FreshFreeList,
    fix="compare something that never comes back: a fresh cell, or a version that is counted up.",
    and_if=(
        AndIf(
            question="the top carried a version?",
            answer="The version is never the same twice, and the comparison fails as it should.",
            program=Versioned,
            fails=False,
        ),
        AndIf(
            question="nothing were put back?",
            answer="Then the top that was seen does not come again, and all is well: recycling breaks it.",
            program=TwoOnly,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="Michael, Hazard Pointers: Safe Memory Reclamation for Lock-Free Objects, 2004, has its history.",
            where="https://doi.org/10.1109/TPDS.2004.8",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
