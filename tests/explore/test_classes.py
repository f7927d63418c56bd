"""The search by races runs the classic programs of its literature once for each class.

Sources of the programs and of the numbers of classes: Flanagan and Godefroid (2005), Abdulla and others (2014).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from math import factorial
from typing import Any

import pytest

from explore.brute_force import searched
from reactive_runtime.explore import Scenario
from reactive_runtime.explore._search.dpor import DPOR

Actor = Callable[[Any], object]


class Place:
    """A variable of its own: the entries of a list are one to the explorer."""

    def __init__(self) -> None:
        self.value = 0
        self.lock = threading.Lock()


def places(number: int) -> tuple[Place, ...]:
    return tuple(Place() for _ in range(number))


def program(number: int, actors: list[Actor], name: str) -> Scenario[Any]:
    return Scenario(lambda: places(number), {f"t{at}": [actor] for at, actor in enumerate(actors)}, name=name)


def look(state: Any, at: int = 0) -> int:
    value: int = state[at].value
    return value


def change(state: Any, at: int = 0) -> None:
    state[at].value = 1


def readers(number: int) -> Scenario[Any]:
    return program(1, [change, *[look] * number], "readers")


def writers(number: int) -> Scenario[Any]:
    return program(1, [change] * number, "writers")


def last_zero(number: int) -> Scenario[Any]:
    def search(state: Any) -> None:
        at = number
        while state[at].value != 0:
            at -= 1

    def count(state: Any, at: int) -> None:
        state[at].value = state[at - 1].value + 1

    return program(number + 1, [search, *[partial(count, at=at) for at in range(1, number + 1)]], "last zero")


def allocate(state: Any, file: int) -> None:
    """Of 32 files and, behind them, 26 blocks: give the file the first free block."""
    with state[file].lock:
        block = file * 2 % 26
        while True:
            with state[32 + block].lock:
                if not state[32 + block].value:
                    state[32 + block].value = state[file].value = 1
                    return
            block = (block + 1) % 26


def file_system(number: int) -> Scenario[Any]:
    return program(58, [partial(allocate, file=file) for file in range(number)], "file system")


def increment(state: Any, times: int) -> None:
    for _ in range(times):
        with state[0].lock:
            state[0].value += 1


def increments(threads: int, times: int) -> Scenario[Any]:
    return program(1, [partial(increment, times=times)] * threads, "locked increments")


def eat(state: Any, forks: tuple[int, int]) -> None:
    with state[min(forks)].lock, state[max(forks)].lock:
        pass


def philosophers(number: int) -> Scenario[Any]:
    return program(number, [partial(eat, forks=(at, (at + 1) % number)) for at in range(number)], "philosophers")


def set_if_clear(state: Any) -> None:
    if look(state, 1) == 0:
        change(state, 2)


def look_twice(state: Any) -> None:
    if look(state, 2) == 1 and look(state, 1) == 0:
        change(state, 0)


def looks_that_decide() -> Scenario[Any]:
    return program(3, [change, partial(change, at=1), set_if_clear, look_twice], "looks that decide")


@pytest.mark.parametrize(
    ("scenario", "classes", "cut"),
    [
        (readers(2), 4, 0),
        (readers(7), 2**7, 0),
        (writers(4), factorial(4), 0),
        (file_system(14), 2, 0),
        (file_system(16), 8, 0),
        (increments(2, 2), 6, 0),
        (increments(3, 2), 90, 0),
        (philosophers(3), 6, 1),
        (last_zero(5), 64, 51),
        (last_zero(7), 10 * 2**5, 721),
        (looks_that_decide(), 5, 4),
    ],
    ids=lambda item: item.name if isinstance(item, Scenario) else str(item),
)
def test_a_classic_program_has_one_run_for_each_class(scenario: Scenario[Any], classes: int, cut: int) -> None:
    """Only a value or a lock that decides which step a thread takes next makes it begin runs that it has to cut."""
    search = DPOR()
    found = searched(scenario, search)
    assert found is not None
    assert (found[1], search.cut) == (classes, cut)


class Numbered:
    """Three threads of two locked increments: each notes which number it came to."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.came_to: dict[str, list[int]] = {"a": [], "b": [], "c": []}

    def increment(self, name: str) -> None:
        for _ in range(2):
            with self.lock:
                self.count += 1
                self.came_to[name].append(self.count)

    def actor_a(self) -> None:
        self.increment("a")

    def actor_b(self) -> None:
        self.increment("b")

    def actor_c(self) -> None:
        self.increment("c")

    def outcome(self) -> dict[str, list[int]]:
        return self.came_to


def test_each_order_of_locked_increments_shows_its_threads_something_else() -> None:
    found = searched(Numbered, DPOR())
    assert found is not None
    assert (len(found[0]), found[1]) == (90, 90)
