"""An element overtakes the end."""

from __future__ import annotations

import threading

from examples.hazards.lesson import AndIf, Lesson, Met


class UnguardedEnd:
    """One thread has an element to deliver, another one ends the stream."""

    rule = "1.7"

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ended = False  # lock
        self.signals: list[str] = []  # as the subscriber sees them

    def actor_feeder(self) -> None:
        with self.lock:
            ended = self.ended
        if not ended:
            self.signals.append("on_next")

    def actor_closer(self) -> None:
        with self.lock:
            self.ended = True
        self.signals.append("on_complete")

    def at_end(self) -> None:
        assert self.signals[-1] == "on_complete", f"the subscriber saw {', '.join(self.signals)}"


class SerialSignals(UnguardedEnd):
    """Leaves what is to be signalled as a note; one thread at a time works the notes off, and stops at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []  # lock
        self.busy = False  # lock

    def actor_feeder(self) -> None:
        self.leave("on_next")

    def actor_closer(self) -> None:
        self.leave("on_complete")

    def leave(self, note: str) -> None:
        with self.lock:
            self.notes.append(note)
            if self.busy:
                return
            self.busy = True
        while (signal := self.taken()) is not None:
            self.signals.append(signal)

    def taken(self) -> str | None:
        with self.lock:
            if self.ended or not self.notes:
                self.busy = False
                return None
            signal = self.notes.pop(0)
            self.ended = signal == "on_complete"
            return signal


class LockedSignals(UnguardedEnd):
    """Looks and signals under the lock."""

    def actor_feeder(self) -> None:
        with self.lock:
            if not self.ended:
                self.signals.append("on_next")

    def actor_closer(self) -> None:
        with self.lock:
            self.ended = True
            self.signals.append("on_complete")


class LooksTwice(UnguardedEnd):
    """Looks again right before it signals."""

    def actor_feeder(self) -> None:
        with self.lock:
            ended = self.ended
        if not ended:
            with self.lock:
                still = not self.ended
            if still:
                self.signals.append("on_next")


LESSON = Lesson(
    title="A signal after completion",
    terms=("atomicity violation", "check-then-act", "use after close"),
    hazard="""The feeder looks whether the stream has ended, and it has not. Before it signals, the other thread ends
    it. The subscriber, which has put everything away, is given one more element.""",
    broken=UnguardedEnd,
    question="The feeder looks first, under the lock. How does its element come after the end?",
    fixed=SerialSignals,
    fix="elements and the end go through the same drain, so that looking and signalling are not torn apart.",
    and_if=(
        AndIf(
            question="it looked once more, right before the signal?",
            answer="However late the look, there is a step between it and the signal.",
            program=LooksTwice,
            fails=True,
        ),
        AndIf(
            question="both signalled under the lock?",
            answer="That holds here. Where the subscriber calls back, it is *A lock held while calling out*.",
            program=LockedSignals,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="AsyncIterablePublisher, an example of Reactive Streams itself, signals the end after an error, "
            "where `hasNext` raises.",
            where="https://github.com/reactive-streams/reactive-streams-jvm/blob/v1.0.4/examples/src/main/java/org/"
            "reactivestreams/example/unicast/AsyncIterablePublisher.java",
        ),
    ),
    gil="either way",
)

if __name__ == "__main__":
    LESSON.teach()
