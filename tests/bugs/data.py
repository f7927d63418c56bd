"""Fields, items, containers and names that are shared without care."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from reactive_runtime.atomics import AtomicReference


class Histogram:
    """Counts by key, in a dict."""

    def __init__(self) -> None:
        self.counts = {"x": 0}

    def actor_a(self) -> None:
        self.counts["x"] += 1

    def actor_b(self) -> None:
        self.counts["x"] += 1

    def at_end(self) -> None:
        assert self.counts["x"] == 2, self.counts


class LockedHistogram(Histogram):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def actor_a(self) -> None:
        with self.lock:
            self.counts["x"] += 1

    actor_b = actor_a


class LazyValue:
    """Made by the thread that asks first; two may be first."""

    def __init__(self) -> None:
        self.value: object | None = None
        self.given: list[object] = []

    def get(self) -> object:
        if self.value is None:
            self.value = object()
        return self.value

    def actor_a(self) -> None:
        self.given.append(self.get())

    def actor_b(self) -> None:
        self.given.append(self.get())

    def at_end(self) -> None:
        assert self.given[0] is self.given[1], "two values were given"


class OnceValue(LazyValue):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def get(self) -> object:
        with self.lock:
            return super().get()


class Closure:
    """A counter that is a name of an enclosing function."""

    def __init__(self) -> None:
        count = 0

        def add() -> None:
            nonlocal count
            count += 1

        self.add = add
        self.count: Callable[[], int] = lambda: count

    def actor_a(self) -> None:
        self.add()

    def actor_b(self) -> None:
        self.add()

    def at_end(self) -> None:
        assert self.count() == 2, self.count()


class LockedClosure(Closure):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def actor_a(self) -> None:
        with self.lock:
            self.add()

    actor_b = actor_a


class LastElement:
    """Two take from a list that one of them saw was not empty."""

    def __init__(self) -> None:
        self.elements = [1]
        self.taken: list[int] = []

    def take(self) -> None:
        if self.elements:
            self.taken.append(self.elements.pop())

    def actor_a(self) -> None:
        self.take()

    def actor_b(self) -> None:
        self.take()


class LockedLastElement(LastElement):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def take(self) -> None:
        with self.lock:
            super().take()


class TwoFields:
    """A pair that has to agree, written without a lock and read in between."""

    def __init__(self) -> None:
        self.low = 0
        self.high = 0
        self.seen: tuple[int, int] = (0, 0)

    def actor_writer(self) -> None:
        self.low = 1
        self.high = 1

    def actor_reader(self) -> None:
        self.seen = (self.low, self.high)

    def at_end(self) -> None:
        assert self.seen[0] == self.seen[1], f"half of it: {self.seen}"


class OnePair(TwoFields):
    def __init__(self) -> None:
        super().__init__()
        self.pair = AtomicReference((0, 0))

    def actor_writer(self) -> None:
        self.pair.set((1, 1))

    def actor_reader(self) -> None:
        self.seen = self.pair.get()


class WrongLock:
    """Each thread locks, but not the same lock."""

    def __init__(self) -> None:
        self.one, self.other = threading.Lock(), threading.Lock()
        self.count = 0

    def lock_of_b(self) -> Any:
        return self.other

    def actor_a(self) -> None:
        with self.one:
            self.count += 1

    def actor_b(self) -> None:
        with self.lock_of_b():
            self.count += 1

    def at_end(self) -> None:
        assert self.count == 2, self.count


class RightLock(WrongLock):
    def lock_of_b(self) -> Any:
        return self.one


PAIRS = [
    (Histogram, LockedHistogram),
    (LazyValue, OnceValue),
    (Closure, LockedClosure),
    (LastElement, LockedLastElement),
    (TwoFields, OnePair),
    (WrongLock, RightLock),
]
