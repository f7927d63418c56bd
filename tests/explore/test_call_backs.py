"""An operation in C that calls back into the program is no single step."""

from __future__ import annotations

import bisect
import collections
import functools
import heapq
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from reactive_runtime.explore import explore, replay


class Job:
    """Compared by code of the program."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __lt__(self, other: Job) -> bool:
        return self.number < other.number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self.number == other.number

    __hash__ = None  # type: ignore[assignment]


class Program:
    """Two threads share a container; in the twin, a lock guards it."""

    lock: Any = None

    def __init__(self) -> None:
        self.items: Any = [1, 2]
        self.jobs = [Job(1), Job(2), Job(3)]
        if type(self).lock is not None:
            self.lock = threading.Lock()

    def one(self) -> None:
        raise NotImplementedError

    def other(self) -> None:
        self.one()

    def same(self, item: Any) -> Any:
        return item

    def actor_a(self) -> None:
        if self.lock is None:
            self.one()
        else:
            with self.lock:
                self.one()

    def actor_b(self) -> None:
        if self.lock is None:
            self.other()
        else:
            with self.lock:
                self.other()


class Nested(Program):
    def __init__(self) -> None:
        super().__init__()
        self.counts: Any = collections.defaultdict(lambda: collections.defaultdict(int))

    def one(self) -> None:
        self.counts["x"]["a"] += 1

    def other(self) -> None:
        self.counts["x"]["b"] += 1

    def at_end(self) -> None:
        assert len(self.counts["x"]) == 2, "lost"


class FactoryOfAMethod(Program):
    def __init__(self) -> None:
        super().__init__()
        self.counts: Any = collections.defaultdict(self.make)

    def make(self) -> list[int]:
        return []

    def one(self) -> None:
        self.counts["x"].append(1)

    def at_end(self) -> None:
        assert len(self.counts["x"]) == 2, "lost"


class Made(list[int]):
    def __init__(self) -> None:
        self.number = 0


class FactoryOfAClass(FactoryOfAMethod):
    def __init__(self) -> None:
        super().__init__()
        self.counts = collections.defaultdict(Made)


class Heap(Program):
    def one(self) -> None:
        heapq.heappush(self.jobs, Job(0))

    def other(self) -> None:
        heapq.heappop(self.jobs)


class Remove(Program):
    def one(self) -> None:
        self.jobs.remove(Job(2))

    def other(self) -> None:
        del self.jobs[0]

    def at_end(self) -> None:
        assert [job.number for job in self.jobs] == [3] or self.lock, "another was removed"


class Contains(Program):
    seen = True

    def one(self) -> None:
        self.seen = Job(3) in self.jobs

    def other(self) -> None:
        self.jobs.pop(0)

    def at_end(self) -> None:
        assert self.seen, "missed"


class SortsByKey(Program):
    def one(self) -> None:
        self.items.sort(key=self.same)

    def other(self) -> None:
        self.items.append(3)


class ReplacesAll(Program):
    def __init__(self) -> None:
        super().__init__()
        self.items = [0]

    def more(self, item: int) -> int:
        return item + 1

    def one(self) -> None:
        self.items[:] = map(self.more, self.items)

    def at_end(self) -> None:
        assert self.items == [2], "lost"


class Extends(Program):
    def one(self) -> None:
        self.items.extend(map(self.same, (3, 4)))

    def at_end(self) -> None:
        assert self.items == [1, 2, 3, 4, 3, 4], "mixed"


class ExtendsByGenerator(Extends):
    def both(self) -> Iterator[int]:
        yield 3
        yield 4

    def one(self) -> None:
        self.items.extend(self.both())


class Reduces(Program):
    def __init__(self) -> None:
        super().__init__()
        self.items = {1: 1, 2: 2}

    def one(self) -> None:
        functools.reduce(lambda one, other: one + other, self.items)

    def other(self) -> None:
        self.items[3] = 3


class Inserts(Program):
    def one(self) -> None:
        bisect.insort(self.items, 3, key=self.same)

    def other(self) -> None:
        self.items.insert(0, 0)

    def at_end(self) -> None:
        assert self.items == [0, 1, 2, 3], "out of order"


PROGRAMS = [
    Nested, FactoryOfAMethod, FactoryOfAClass, Heap, Remove, Contains, SortsByKey, ReplacesAll, Extends,
    ExtendsByGenerator, Reduces, Inserts,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_done_during_a_call_back_is_found(program: Any) -> None:
    failure = explore(program).failure
    assert failure is not None
    again = replay(program, failure.token).failure
    assert again is not None
    assert again.schedule == failure.schedule


@pytest.mark.parametrize("strategy", ["bounded", "dpor", "brute-force"])
@pytest.mark.parametrize("program", [Nested, Contains, Extends, Inserts])
def test_each_search_finds_what_is_done_during_a_call_back(program: Any, strategy: str) -> None:
    assert explore(program, strategy=strategy).failure is not None


@pytest.mark.parametrize("program", [program for program in PROGRAMS if program not in (Remove, Contains)])
def test_a_lock_around_an_operation_that_calls_back_is_enough(program: Any) -> None:
    locked = type(program.__name__, (program,), {"lock": True})
    result = explore(locked, strategy="bounded")
    assert result.holds
    assert result.verdict.kind == "exhausted"


class Sums(Program):
    """Nothing that the operations access races."""

    def one(self) -> None:
        mine = [3, 1, 2]
        mine.sort(key=self.same)
        mine.extend(map(self.same, (4, 5)))
        self.sum = sum(map(self.same, mine))


def test_a_call_back_that_no_other_thread_notices_is_no_step() -> None:
    result = explore(Sums, strategy="brute-force")
    assert str(result.verdict) == "exhausted"
    assert result.schedules < 10
