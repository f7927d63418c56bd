"""Each thread keeps the rule by what it read, and together they break it."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met


class OnCall:
    """Of two doctors one has to be on call. Each may leave if the other one is there."""

    def __init__(self) -> None:
        self.locks = [threading.Lock(), threading.Lock()]
        self.on_call = [True, True]  # of each one, its lock

    def actor_alice(self) -> None:
        self.leave(0)

    def actor_bob(self) -> None:
        self.leave(1)

    def leave(self, me: int) -> None:
        with self.locks[1 - me]:
            covered = self.on_call[1 - me]
        if covered:
            with self.locks[me]:
                self.on_call[me] = False

    def at_end(self) -> None:
        assert any(self.on_call), "both have left"


class OneRule(OnCall):
    """The rule is about both, so one lock guards both."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def leave(self, me: int) -> None:
        with self.lock:
            if self.on_call[1 - me]:
                self.on_call[me] = False


class BothInOrder(OnCall):
    """Takes both locks, always in the same order, and keeps them."""

    def leave(self, me: int) -> None:
        with self.locks[0], self.locks[1]:
            if self.on_call[1 - me]:
                self.on_call[me] = False


class LooksAgain(OnCall):
    """Looks again, after it has left."""

    def leave(self, me: int) -> None:
        super().leave(me)
        with self.locks[1 - me]:
            alone = not self.on_call[1 - me]
        if alone:
            with self.locks[me]:
                self.on_call[me] = True

    def at_each_step(self) -> None:
        assert any(self.on_call), "both have left, if only for a moment"


LESSON = Lesson(
    title="Write skew",
    terms=("atomicity violation", "write skew", "snapshot isolation"),
    hazard="""Two threads read the same two values, and each writes the one that the other does not. No write is lost,
    and each value is guarded by its lock. But what each relied on is not true any more when it writes.""",
    broken=OnCall,
    question="Each doctor leaves only if the other is on call. How do both leave, though every access is under a lock?",
    fixed=OneRule,
    fix="guard the rule and not the fields: what is read to decide and what is written are under one lock.",
    and_if=(
        AndIf(
            question="each took both locks, in one order, and kept them?",
            answer="That is one lock in two parts, and holds.",
            program=BothInOrder,
            fails=False,
        ),
        AndIf(
            question="each looked again afterwards, and came back?",
            answer="For a moment both have left.",
            program=LooksAgain,
            fails=True,
        ),
    ),
    met=(
        Met(
            what="Databases under snapshot isolation allow it. Berenson and others, A Critique of ANSI SQL Isolation "
            "Levels, 1995, call it A5B.",
            where="https://arxiv.org/abs/cs/0701157",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
