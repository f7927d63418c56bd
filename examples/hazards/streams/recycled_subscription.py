"""What was taken away and put back looks like what never went: the ABA problem."""

from __future__ import annotations

from examples.hazards.lesson import Lesson
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

    def actor_slow(self) -> None:
        self.slow = self.pop()

    def actor_quick(self) -> None:
        first = self.pop()
        self.kept = self.pop()
        if first is not None:
            self.push(first)

    def at_end(self) -> None:
        free = []
        node = self.top.get()
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


LESSON = Lesson(
    title="ABA on a recycled subscription",
    hazard="""A thread reads the top and what lies below it; before it compares, another one takes two away and puts the
    first back. The top is what it was, the comparison succeeds, and what is in use is handed out again.""",
    broken=FreeList,
    fixed=FreshFreeList,
    fix="compare something that never comes back: a fresh cell, or a version that is counted up.",
)

if __name__ == "__main__":
    LESSON.teach()
