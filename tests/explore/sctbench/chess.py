"""The set chess: a queue of work from whose other end thieves steal; and a stack without locks.

A field that the original accesses atomically is a plain one here: each load and each store of it is a step.
"""

from __future__ import annotations

import time
from threading import Lock

from explore.sctbench._program import Program, entry

__all__ = ["PROGRAMS"]


class WorkStealQueue(Program, own=1, steal=1):
    """The owner takes the last free slot of the queue, and a thief has moved `head` only for a moment.

    So the owner overwrites an element that is not stolen yet. The twin leaves one slot free.
    """

    spins = False
    in_pairs = True

    def set_up(self) -> None:
        self.lock = Lock()
        self.head = self.tail = 0
        self.mask = 1
        self.slots: list[int] = [0, 0]
        self.done = [0] * 4
        self.frames: list[list[str]] = [[] for _ in range(1 + self.size["steal"])]

    def acquire(self) -> None:
        if not self.spins:
            self.lock.acquire()
            return
        while not self.lock.acquire(blocking=False):
            time.sleep(0)

    def stolen(self) -> int | None:
        self.acquire()
        head = self.head
        self.head = head + 1
        found = None
        if head < self.tail:
            found = self.slots[head & self.mask]
        else:
            self.head = head
        self.lock.release()
        return found

    def pop(self) -> int | None:
        tail = self.tail - 1
        self.tail = tail
        if self.head <= tail:
            return self.slots[tail & self.mask]
        self.tail = tail + 1
        return self.locked_pop()

    def locked_pop(self) -> int | None:
        self.acquire()
        found = None
        tail = self.tail - 1
        self.tail = tail
        if self.head <= tail:
            found = self.slots[tail & self.mask]
        else:
            self.tail = tail + 1
        if self.head > tail:
            self.head = 0
            self.tail = 0
            found = None
        self.lock.release()
        return found

    def push(self, element: int) -> None:
        tail = self.tail
        if tail < self.head + self.mask + (0 if self.fixed else 1):
            self.slots[tail & self.mask] = element
            self.tail = tail + 1
        else:
            self.locked_push(element)

    def locked_push(self, element: int) -> None:
        self.acquire()
        head = self.head
        count = self.tail - head
        head &= self.mask
        self.head = head
        self.tail = head + count
        if count >= self.mask:
            slots = [0] * (2 * (self.mask + 1))
            for number in range(count):
                slots[number] = self.slots[(head + number) & self.mask]
            self.slots = slots
            self.mask = len(slots) - 1
            self.head = 0
            self.tail = count
        assert count < self.mask
        tail = self.tail
        self.slots[tail & self.mask] = element
        self.tail = tail + 1
        self.lock.release()

    def work(self, element: int | None) -> None:
        if element is not None:
            self.done[element] += 1

    def own(self) -> None:
        for element in range(4):
            self.push(element)
            if self.in_pairs and element % 2:
                self.work(self.pop())
        for _ in range(2 if self.in_pairs else 4):
            self.work(self.pop())

    def steal(self, number: int) -> None:
        for _ in range(2):
            self.work(self.stolen())

    def at_end(self) -> None:
        assert self.done == [1] * 4


class InterlockedWorkStealQueue(WorkStealQueue):
    """The same with a lock that spins."""

    spins = True


class WithState(InterlockedWorkStealQueue):
    """The same, and each thread keeps a record of the calls that it is in."""

    def steal(self, number: int) -> None:
        frames = self.frames[1 + number]
        for _ in range(2):
            frames.append("steal")
            self.work(self.stolen())
            frames.pop()

    def push(self, element: int) -> None:
        self.frames[0].append("push")
        super().push(element)
        self.frames[0].pop()


class StateWorkStealQueue(WithState, own=1, steal=2):
    """The same with two thieves; the owner takes elements only when all have been put."""

    in_pairs = False


class SafeStack(Program, work=3):
    """A stack of three slots, whose pop takes a slot off by two atomic steps (Vyukov): two threads get one slot.

    With fewer preemptions a slot is lost, and the original spins for ever. That is not the fault which is published, so
    a thread gives up here after some attempts. The twin does both steps in one.
    """

    attempts = 8

    def set_up(self) -> None:
        self.atomic = Lock()
        self.head = 0
        self.count = 3
        self.next = [1, 2, -1]
        self.values = [-1] * 3

    def exchange_next(self, index: int, value: int) -> int:
        with self.atomic:
            old = self.next[index]
            self.next[index] = value
            return old

    def compare_and_set_head(self, expected: int, value: int) -> bool:
        with self.atomic:
            if self.head != expected:
                return False
            self.head = value
            return True

    def add_to_count(self, number: int) -> None:
        with self.atomic:
            self.count += number

    def pop_at_once(self) -> int:
        with self.atomic:
            head = self.head
            if self.count <= 1 or self.next[head] < 0:
                return -1
            self.head, self.next[head] = self.next[head], -1
            self.count -= 1
            return head

    def pop(self) -> int:
        if self.fixed:
            return self.pop_at_once()
        for _ in range(self.attempts):
            if self.count <= 1:
                break
            head = self.head
            following = self.exchange_next(head, -1)
            if following >= 0:
                if self.compare_and_set_head(head, following):
                    self.add_to_count(-1)
                    return head
                self.exchange_next(head, following)
            else:
                time.sleep(0)
        return -1

    def push(self, index: int) -> None:
        while True:
            head = self.head
            self.next[index] = head
            if self.compare_and_set_head(head, index):
                break
        self.add_to_count(1)

    def work(self, number: int) -> None:
        for _ in range(2):
            for _ in range(self.attempts):
                index = self.pop()
                if index >= 0:
                    break
                time.sleep(0)
            else:
                return
            self.values[index] = number
            assert self.values[index] == number
            self.push(index)


PROGRAMS = [
    entry("chess.WSQ", WorkStealQueue),
    entry("chess.IWSQ", InterlockedWorkStealQueue),
    entry("chess.IWSQWS", WithState),
    entry("chess.SWSQ", StateWorkStealQueue),
    entry("misc.safestack", SafeStack),
]
