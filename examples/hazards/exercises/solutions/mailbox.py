"""Who was woken looks again; and since some wait for a letter and some for room, all are woken."""

from __future__ import annotations

import threading


class Mailbox:
    """`put` waits until the box is empty, `take` until there is a letter."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.letters: list[str] = []

    def put(self, letter: str) -> None:
        """Leave a letter."""
        with self.changed:
            while self.letters:
                self.changed.wait()
            self.letters.append(letter)
            self.changed.notify_all()

    def take(self) -> str:
        """Take the letter."""
        with self.changed:
            while not self.letters:
                self.changed.wait()
            letter = self.letters.pop()
            self.changed.notify_all()
            return letter


SOLUTION = Mailbox
