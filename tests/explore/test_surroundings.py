"""State that threads share outside of their own objects: the environment, loggers, settings, memory with two names."""

from __future__ import annotations

import ctypes
import gc
import io
import logging
import os
import sys
import threading
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

from reactive_runtime.errors import ExploreError
from reactive_runtime.explore import explore


class Counts:
    """Two threads each add one."""

    lock: Any = None

    def __init__(self) -> None:
        self.lock = threading.Lock() if type(self).lock else None
        self.set(0)

    def get(self) -> int:
        raise NotImplementedError

    def set(self, number: int) -> None:
        raise NotImplementedError

    def actor_a(self) -> None:
        if self.lock is None:
            self.set(self.get() + 1)
        else:
            with self.lock:
                self.set(self.get() + 1)

    actor_b = actor_a

    def at_end(self) -> None:
        assert self.get() == 2, "lost"


class Environment(Counts):
    def get(self) -> int:
        return int(os.environ["EXPLORED"])

    def set(self, number: int) -> None:
        os.environ["EXPLORED"] = str(number)


class EnvironmentByFunction(Environment):
    def get(self) -> int:
        return int(os.getenv("EXPLORED", "0"))


class EnvironmentByMethod(Environment):
    def get(self) -> int:
        return int(os.environ.get("EXPLORED", "0"))


class EnvironmentInBytes(Environment):
    def get(self) -> int:
        return int(os.environb[b"EXPLORED"])


class Element(Counts):
    def __init__(self) -> None:
        self.element = ET.Element("x")
        super().__init__()

    def get(self) -> int:
        return int(self.element.get("n", "0"))

    def set(self, number: int) -> None:
        self.element.set("n", str(number))


class Buffer(Counts):
    def __init__(self) -> None:
        self.file = io.BytesIO(b"\0")
        super().__init__()

    def get(self) -> int:
        return self.file.getvalue()[0]

    def set(self, number: int) -> None:
        with self.file.getbuffer() as buffer:
            buffer[0] = number


class Views(Counts):
    def __init__(self) -> None:
        self.array = np.zeros(2, int)
        self.view = self.array[:1]
        super().__init__()

    def get(self) -> int:
        return int(self.view[0])

    def set(self, number: int) -> None:
        self.array[0] = number


class Pointers(Counts):
    def __init__(self) -> None:
        self.number = ctypes.c_int(0)
        self.pointer = ctypes.pointer(self.number)
        super().__init__()

    def get(self) -> int:
        return self.pointer.contents.value

    def set(self, number: int) -> None:
        self.number.value = number


class Recursion(Counts):
    before = sys.getrecursionlimit()

    def get(self) -> int:
        return sys.getrecursionlimit() - 5_000

    def set(self, number: int) -> None:
        sys.setrecursionlimit(5_000 + number)


class Threshold(Counts):
    before = gc.get_threshold()

    def get(self) -> int:
        return gc.get_threshold()[2] - 100

    def set(self, number: int) -> None:
        gc.set_threshold(*self.before[:2], 100 + number)


class Logs(Counts):
    """The program's own handler takes no lock."""

    def __init__(self) -> None:
        self.log = logging.Logger("explored")
        self.counting = Counting()
        self.log.addHandler(self.counting)
        super().__init__()

    def actor_a(self) -> None:
        if self.lock is None:
            self.log.error("x")
        else:
            with self.lock:
                self.log.error("x")

    actor_b = actor_a

    def get(self) -> int:
        return self.counting.count

    def set(self, number: int) -> None:
        self.counting.count = number


class Counting(logging.Handler):
    count = 0

    def handle(self, record: logging.LogRecord) -> bool:
        self.count += 1
        return True


class Filters(Logs):
    def __init__(self) -> None:
        super().__init__()
        self.log.addFilter(self.more)

    def more(self, record: logging.LogRecord) -> bool:
        self.set(self.get() + 1)
        return False


class Level(Counts):
    def __init__(self) -> None:
        self.log = logging.Logger("explored")
        super().__init__()

    def get(self) -> int:
        return self.log.level

    def set(self, number: int) -> None:
        self.log.setLevel(number)


COUNTS = [
    Environment, EnvironmentByFunction, EnvironmentByMethod, EnvironmentInBytes, Element, Buffer, Views, Pointers,
    Recursion, Threshold, Logs, Filters, Level,
]  # fmt: skip


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("EXPLORED", "0")
    recursion, threshold = sys.getrecursionlimit(), gc.get_threshold()
    yield
    sys.setrecursionlimit(recursion)
    gc.set_threshold(*threshold)


@pytest.mark.parametrize("program", COUNTS)
def test_a_lost_update_of_what_is_shared_outside_is_found(program: Any) -> None:
    assert explore(program, strategy="bounded").failure is not None


@pytest.mark.parametrize("program", COUNTS)
def test_a_lock_around_what_is_shared_outside_is_enough(program: Any) -> None:
    result = explore(type(program.__name__, (program,), {"lock": True}), strategy="bounded")
    assert result.verdict.kind == "exhausted", result


class AddsOnce:
    def __init__(self) -> None:
        self.log = logging.Logger("explored")

    def actor_a(self) -> None:
        if not self.log.handlers:
            self.log.addHandler(logging.NullHandler())

    actor_b = actor_a

    def at_end(self) -> None:
        assert len(self.log.handlers) == 1, "two handlers"


def test_a_handler_that_is_added_twice_is_found() -> None:
    assert explore(AddsOnce, strategy="bounded").failure is not None


class LocksInTwoOrders:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.handler = Locking(self.lock)
        self.log = logging.Logger("explored")
        self.log.addHandler(self.handler)

    def actor_a(self) -> None:
        self.log.error("x")

    def actor_b(self) -> None:
        with self.lock:
            self.handler.acquire()
            self.handler.release()


class Locking(logging.Handler):
    def __init__(self, of_the_program: Any) -> None:
        super().__init__()
        self.of_the_program = of_the_program

    def emit(self, record: logging.LogRecord) -> None:
        with self.of_the_program:
            pass


def test_the_lock_of_a_handler_takes_part_in_a_deadlock() -> None:
    failure = explore(LocksInTwoOrders, strategy="bounded").failure
    assert failure is not None
    assert failure.kind == "deadlock"


class Mocks:
    def __init__(self) -> None:
        self.mock = mock.Mock()

    def actor_a(self) -> None:
        self.mock()

    actor_b = actor_a


class Processes:
    def actor_a(self) -> None:
        os.system("true")

    actor_b = actor_a


@pytest.mark.parametrize(("program", "call"), [(Mocks, "`self.mock()`"), (Processes, '`os.system("true")`')])
def test_a_call_that_hides_what_it_changes_is_named(program: Any, call: str) -> None:
    result = explore(program, schedules=20)
    assert result.verdict.kind == "incomplete"
    assert result.not_looked_into[0].startswith(call)


class Forks:
    def actor_a(self) -> None:
        os.fork()


def test_a_process_that_is_forked_ends_the_exploration() -> None:
    with pytest.raises(ExploreError, match="a process was forked: the explorer orders threads"):
        explore(Forks)


class Exits:
    def actor_a(self) -> None:
        sys.exit(3)


def test_an_actor_that_exits_just_ends() -> None:
    assert explore(Exits, strategy="bounded").verdict.kind == "exhausted"
