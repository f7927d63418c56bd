"""Each processor keeps its own store back for a while: both threads read the old value.

An explorer that runs one thread at a time can't show it: it makes every store known at once, which is called sequential
consistency. So the program below has the store buffers of the processors written out, after the model x86-TSO.
"""

from __future__ import annotations

from collections import deque

from examples.hazards.lesson import AndIf, Lesson, Met


class Memory:
    """Two flags, and for each processor a buffer of the stores that are not in memory yet."""

    def __init__(self) -> None:
        self.flags = [0, 0]
        self.buffers: list[deque[int]] = [deque(), deque()]  # flags that are to be set

    def store(self, me: int) -> None:
        self.buffers[me].append(me)

    def load(self, me: int, other: int) -> int:
        return 1 if other in self.buffers[me] else self.flags[other]  # its own stores a processor sees at once

    def fence(self, me: int) -> None:
        """All that is in the buffer goes to memory."""
        while self.buffers[me]:
            self.flags[self.buffers[me].popleft()] = 1


class Flags:
    """Each thread raises its flag, and enters if the other one's is down. At least one has to see the other."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.entered = [False, False]

    def actor_a(self) -> None:
        self.enter(0)

    def actor_b(self) -> None:
        self.enter(1)

    def enter(self, me: int) -> None:
        self.memory.store(me)
        self.entered[me] = self.memory.load(me, 1 - me) == 0
        self.memory.fence(me)  # at the latest now

    def at_end(self) -> None:
        assert not all(self.entered), "both raised the flag first, and neither saw the other's"


class Fenced(Flags):
    """Waits between the store and the load until the store is in memory."""

    def enter(self, me: int) -> None:
        self.memory.store(me)
        self.memory.fence(me)
        self.entered[me] = self.memory.load(me, 1 - me) == 0


class PlainFields(Flags):
    """The same with fields of Python, and without the buffers: here the explorer sees nothing wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.flags = [0, 0]

    def enter(self, me: int) -> None:
        self.flags[me] = 1
        self.entered[me] = self.flags[1 - me] == 0


LESSON = Lesson(
    title="Store buffering",
    terms=("order violation", "store buffering", "memory model", "sequential consistency", "fence"),
    hazard="""A processor keeps its stores in a buffer, and reads past it. Two threads that each store and then load may
    both load what was there before. No order of the four steps has that outcome, and machines do.""",
    broken=Flags,
    question="Each thread stores and then loads. Write down all orders of the four steps: does one let both enter?",
    fixed=Fenced,
    fix="put something between store and load that orders them: a lock, or an atomic of a language that has fences.",
    and_if=(
        AndIf(
            question="the buffers were left out, as they are in Python code?",
            answer="The explorer has looked at every order, and in none do both enter: that is what it can't show. "
            "*Exhausted* is said of sequential consistency. Locks and the package's atomics give that; of plain fields "
            "of a build without a GIL it is not promised.",
            program=PlainFields,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="Sewell and others, x86-TSO: A Rigorous and Usable Programmer's Model for x86 Multiprocessors, 2010.",
            where="https://doi.org/10.1145/1785414.1785443",
        ),
        Met(
            what="Dekker's and Peterson's locks are wrong on such machines without a fence. Adve and Gharachorloo, "
            "Shared Memory Consistency Models: A Tutorial, 1996.",
            where="https://doi.org/10.1109/2.546611",
        ),
    ),
    gil="either way",
    gil_note="That is the program above, which has the buffers written out. Plain fields are ordered by a GIL.",
)

if __name__ == "__main__":
    LESSON.teach()
