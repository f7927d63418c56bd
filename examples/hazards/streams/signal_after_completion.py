"""An element overtakes the end."""

from __future__ import annotations

import threading

from examples.hazards.lesson import Lesson


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


LESSON = Lesson(
    title="A signal after completion",
    hazard="""The feeder looks whether the stream has ended, and it has not; before it signals, the other thread ends
    it. The subscriber, which has put everything away, is given one more element.""",
    broken=UnguardedEnd,
    fixed=SerialSignals,
    fix="elements and the end go through the same drain, so that looking and signalling are not torn apart.",
)

if __name__ == "__main__":
    LESSON.teach()
