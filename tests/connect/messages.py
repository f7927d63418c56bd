"""A source of messages that counts how often each is settled."""

from __future__ import annotations

import threading
from typing import Any

from reactive_runtime import Flow
from reactive_runtime.connect import Acked, AckedFlow


class Messages:
    """Messages 0, 1, 2, …: what became of each."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made = 0  # lock
        self.settled: dict[int, list[BaseException | None]] = {}  # lock; by the number of the message

    def acked(self, value: Any) -> Acked[Any]:
        """The next message."""
        with self.lock:
            number, self.made = self.made, self.made + 1
            self.settled[number] = []

        def settle(error: BaseException | None) -> None:
            with self.lock:
                self.settled[number].append(error)

        return Acked(value, settle)

    def flow(self, count: int) -> AckedFlow[int]:
        """So many messages with numbers as values."""
        return AckedFlow(Flow.range(count).map(self.acked))

    @property
    def acknowledged(self) -> list[int]:
        with self.lock:
            return [number for number, how in self.settled.items() if how == [None]]

    @property
    def refused(self) -> dict[int, BaseException]:
        with self.lock:
            return {number: how[0] for number, how in self.settled.items() if how and how[0] is not None}

    @property
    def open(self) -> list[int]:
        with self.lock:
            return [number for number, how in self.settled.items() if not how]

    @property
    def twice(self) -> list[int]:
        with self.lock:
            return [number for number, how in self.settled.items() if len(how) > 1]
