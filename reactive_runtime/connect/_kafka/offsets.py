"""The offsets of each partition: those that were handed out, and the one up to which all are handled.

The problem: the group keeps one number for each partition, the offset that comes next. Elements are handled on any
thread and in any order; and a rebalance takes a partition away, gives it to another consumer, and perhaps gives it back
later, while elements of before are still under way. If one of those were counted, the group's number would go back, or
pass over an element that was not handled.

The answer: each assignment of a partition is an object of its own (`Assigned`). Elements know the assignment they came
with, and are counted for no other. The thread that polls asks for what may be committed; it alone adds, commits and
drops. Other threads only note what became of an element.

    polls: assign ─▶ run, run, … ─▶ finished ─▶ told ─▶ … ─▶ revoke (what is open is dropped)
    others:          settle: handled, or refused

The records of a partition that one fetch brings are a `Run`: a set of the offsets that are open. To handle an element
takes its offset out of the set: one step, which no other thread can divide, and which succeeds for one thread only. So
an acknowledgement takes no lock, and a run that is handled is passed in one step, however long it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from reactive_runtime._core.runtime import primitives
from reactive_runtime.connect._elements.acked import Claim

__all__ = ["Offsets", "Partition", "Place", "Refusal", "Run"]

Partition: TypeAlias = tuple[str, int]
"""A topic, and the number of the partition."""


class Assigned:
    """One assignment of a partition. For the one who polls, but for `lost`."""

    __slots__ = ("done", "held", "lost", "next", "of", "partition", "runs", "told")

    def __init__(self, of: Offsets, partition: Partition) -> None:
        self.of = of
        self.partition = partition
        self.runs: deque[Run] = deque()  # in the order of the offsets; from the first that is not handled
        self.held = 0  # how many records these have
        self.next = -1  # behind the last offset that was handed out
        self.done = -1  # all before this offset is handled
        self.told = -1  # the group knows this one
        self.lost: bool = False  # the lock of `Offsets`; final

    def add(self, run: Run, offsets: Iterable[int], size: int) -> None:
        """A further run, behind all before, with the offsets that elements settle; before any of them is handed out."""
        run.open.update(offsets)
        run.size = size
        self.next = run.next
        self.held += size
        self.runs.append(run)

    def pass_handled(self) -> None:
        """Set `done` to the lowest offset that is not handled."""
        runs = self.runs
        while runs:
            run = runs[0]
            lowest = run.lowest()
            if lowest is not None:
                if lowest > run.first:
                    self.done = lowest
                return
            self.held -= run.size
            self.done = run.next
            runs.popleft()


class Run:
    """Offsets of one assignment that were taken from the client together.

    The one who polls fills it before any element of it is handed out. Then any thread takes offsets out of `open`: a
    set takes one out in one step. Those that are refused go to `refused` first, so that the one who polls finds an
    offset that is not handled in one of the two, if it looks at `open` first.
    """

    __slots__ = ("assigned", "close", "first", "next", "open", "refused", "size")

    def __init__(self, assigned: Assigned, first: int, following: int) -> None:
        self.assigned = assigned
        self.first, self.next = first, following  # the first offset, and the one behind the last
        self.open: set[int] = set()  # see above
        self.close = self.open.remove
        self.refused: set[int] = set()  # the lock of `Offsets`; the one who polls copies it
        self.size = 0  # how many records it has

    def lowest(self) -> int | None:
        """The lowest offset that is not handled. None: all are."""
        if not self.open and not self.refused:
            return None
        open = self.open.copy()  # in one step
        return min(open | self.refused.copy(), default=None)


class Refusal(NamedTuple):
    """An element that was refused: the offset can't be passed."""

    assigned: Assigned
    offset: int
    error: BaseException


class Place(Claim):
    """The claim of one element: its place in a run. Set once."""

    __slots__ = ("offset", "run")

    run: Run
    offset: int

    def settle(self, error: BaseException | None) -> bool:
        """See `Claim.settle`."""
        if error is not None:
            return self._refuse(error)
        try:
            self.run.close(self.offset)
        except KeyError:
            return False
        return True

    def _refuse(self, error: BaseException) -> bool:
        run, offset = self.run, self.offset
        of = run.assigned.of
        with of.lock:
            if offset in run.refused:
                return False
            run.refused.add(offset)
            try:
                run.close(offset)
            except KeyError:  # it is handled
                run.refused.discard(offset)
                return False
            news = of.note(Refusal(run.assigned, offset, error))
        if news:
            of.refused()
        return True

    @property
    def settled(self) -> bool:
        """See `Claim.settled`."""
        return self.offset not in self.run.open


class Offsets:
    """The assigned partitions of one consumer. One thread at a time, the one who polls, calls all but `note`.

    Args:
        refused: Called at the first refusal in a partition that is assigned; on the thread that refuses, under no lock.
    """

    def __init__(self, refused: Callable[[], object]) -> None:
        self.refused = refused
        self.lock = primitives.Lock()
        self._assigned: dict[Partition, Assigned] = {}  # the one who polls
        self._refusal: Refusal | None = None  # lock; the first, or the first after one that is lost

    def assign(self, partitions: Iterable[Partition]) -> None:
        """These are assigned from now on."""
        for partition in partitions:
            assert partition not in self._assigned, f"{partition} is assigned twice"
            self._assigned[partition] = Assigned(self, partition)

    def revoke(self, partitions: Iterable[Partition] | None = None) -> None:
        """These, or all, are assigned no more: what becomes of their elements does not count."""
        for partition in list(self._assigned if partitions is None else partitions):
            assigned = self._assigned.pop(partition, None)
            if assigned is not None:
                with self.lock:
                    assigned.lost = True
                assigned.runs.clear()

    def begin_anew(self, partition: Partition) -> Assigned:
        """The offsets of a partition have gone back: what is under way belongs to another log of this name."""
        self.revoke([partition])
        self.assign([partition])
        return self._assigned[partition]

    def assigned(self, partition: Partition) -> Assigned | None:
        """The assignment of a partition. None: it is not assigned."""
        return self._assigned.get(partition)

    def note(self, refusal: Refusal) -> bool:
        """An element was refused; returns whether that is news. Any thread, with the lock held."""
        known = self._refusal is not None and not self._refusal.assigned.lost
        if known or refusal.assigned.lost:
            return False
        self._refusal = refusal
        return True

    def refusal(self) -> Refusal | None:
        """The first refusal, unless its partition has gone to another consumer, which gets the element."""
        with self.lock:
            refusal = self._refusal
            return None if refusal is None or refusal.assigned.lost else refusal

    def finished(self, partitions: Iterable[Partition] | None = None) -> dict[Partition, int]:
        """Of these partitions, or of all: the offset that comes next, where the group does not know it."""
        chosen = self._assigned.values() if partitions is None else map(self._assigned.get, partitions)
        found = {}
        for assigned in chosen:
            if assigned is None:
                continue
            assigned.pass_handled()
            if assigned.done > assigned.told:
                found[assigned.partition] = assigned.done
        return found

    def told(self, partition: Partition, offset: int) -> None:
        """The group knows this offset. One that this assignment has not reached is the answer to another's commit."""
        assigned = self._assigned.get(partition)
        if assigned is not None and assigned.told < offset <= assigned.done:
            assigned.told = offset

    def held(self) -> int:
        """How many elements have been handed out, or will be, from the first that is not handled."""
        return sum(assigned.held for assigned in self._assigned.values())
