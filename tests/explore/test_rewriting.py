"""Code whose accesses are points does what it did before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from reactive_runtime.explore import Scenario, explore

counter = 0
nothing = None
made = [0]


class Box:
    """Something with attributes of every kind."""

    shared: ClassVar[int] = 1
    __slots__ = ("__dict__", "slot")

    def __init__(self, value: Any = 0) -> None:
        self.value = value
        self.slot = "slot"
        self.__private = 3
        self.items: list[Any] = [1, 2, 3]
        self.table: dict[str, Any] = {"a": 1}

    @property
    def doubled(self) -> Any:
        return self.value * 2

    @doubled.setter
    def doubled(self, value: Any) -> None:
        self.value = value // 2

    def private(self) -> int:
        self.__private += 1
        return self.__private

    def __getattr__(self, name: str) -> str:
        return f"made up {name}"


class Derived(Box):
    def __init__(self) -> None:
        super().__init__(5)
        self.own = super().doubled


def augmented() -> Any:
    box = Box(7)
    box.value += 3
    box.value -= 1
    box.value *= 2
    box.value //= 3
    box.value **= 2
    box.value |= 64
    box.items += [4]
    box.items[0] += 10
    box.table["a"] <<= 3
    order: list[str] = []

    def box_of(name: str) -> Box:
        order.append(name)
        return box

    box_of("target").value += len(order)
    box_of("item").items[len(order) - 2] += 1
    return box.value, box.items, box.table, order


def targets() -> Any:
    box, other = Box(), Box()
    box.value, (other.value, *box.items), box.table["b"] = 1, (2, 3, 4), 5
    first = box.slot = other.slot = "same"
    for box.value in range(3):
        pass
    for other.items[1], other.value in [(8, 9)]:
        pass
    [box.value, other.value] = other.value, box.value
    annotated: int = box.value
    box.value: int = annotated + 1  # type: ignore[misc]
    return box.value, other.value, box.items, other.items, box.table, first, box.slot


def deleted() -> Any:
    box = Box()
    del box.value, box.items[0], box.table["a"]
    return box.value, box.items, box.table


@contextmanager
def opened() -> Iterator[int]:
    yield 4


def with_targets() -> Any:
    box = Box()
    with opened() as box.value, opened() as box.items[0]:
        pass
    return box.value, box.items


def properties_and_privates() -> Any:
    box = Derived()
    box.doubled = 20
    box.doubled += 2
    Box.shared += 1
    shared = Box.shared
    Box.shared -= 1
    return box.value, box.private(), box.own, box.nothing, shared, getattr(box, "value", None), box.slot


def names() -> Any:
    global counter
    counter = 1
    counter += 1
    total = 0

    def add(n: int) -> int:
        nonlocal total
        total += n
        return total

    result = [add(n) for n in range(4)], total, counter
    counter = 0
    return result


def names_of_the_module() -> Any:
    made[0] += 1
    made[0] -= 1
    hidden = [nothing + 1 for nothing in (1, 2)], (lambda made: made)(3), {made: made for made in (4,)}, nothing

    def inside(made: int = made[0]) -> Any:
        class Named:
            nothing = 5
            seen = nothing

        return made, Named.seen, nothing

    globals()["counter"] = 6
    found = counter, vars(Box)["shared"], dict(Box(7).__dict__)["value"]
    globals()["counter"] = 0
    return hidden, inside(), made, nothing, found


def containers() -> Any:
    box = Box()
    box.items.append(4)
    box.items.extend(n * 2 for n in box.items[:2])
    append = box.items.append
    append(99)
    box.table.setdefault("z", []).append(1)
    text = f"{box.value!r:>4} {len(box.items)} {box.table['a']}"
    iterator = iter(box.items)
    return next(iterator), next(iterator, None), next(iter(()), "none"), box.items, box.table, text, 2 in box.items


def expressions() -> Any:
    box = Box(3)
    squares = {n: box.value**n for n in range(3) if n != box.value}
    if walrus := box.value:
        walrus += box.value
    chosen = box.value if box.value > 2 else box.items
    chained = 1 < box.value <= 3
    called = (lambda item, /, *rest, key=box.value, **more: (item.value, rest, key, more))(box, 1, 2, other=box.slot)
    match box:
        case Box(value=3):
            matched = box.items
        case _:
            matched = []
    try:
        raise ValueError(box.value)
    except ValueError as error:
        raised = error.args
    finally:
        box.value = 0
    return squares, walrus, chosen, chained, called, matched, raised, box.value


def generators() -> Any:
    box = Box()

    def numbers() -> Iterator[int]:
        while box.value < 3:
            box.value += 1
            if box.value == 9:
                break
            yield box.value
        else:
            box.value = -1

    def outer() -> Iterator[int]:
        yield from numbers()

    return list(outer()), box.value


def classes_inside() -> Any:
    box = Box(2)

    @dataclass
    class Inside:
        first: int = box.value
        second: list[int] = field(default_factory=list)
        third = fourth = box.items[0]

        def total(self) -> Any:
            self.second.append(self.first)
            return self.first + sum(self.second) + self.third + self.fourth

    return Inside().total(), Inside(9).total()


def decorated() -> Any:
    def twice(function: Callable[[], int]) -> Callable[[], int]:
        return lambda: function() * 2

    box = Box(4)

    @twice
    def value() -> int:
        return int(box.value)

    return value()


CODE = [
    augmented,
    targets,
    deleted,
    with_targets,
    properties_and_privates,
    names,
    names_of_the_module,
    containers,
    expressions,
    generators,
    classes_inside,
    decorated,
]


@pytest.mark.parametrize("points", ["shared", "line", "opcode"])
@pytest.mark.parametrize("code", CODE, ids=lambda item: item.__name__)
def test_it_does_what_it_did(code: Callable[[], Any], points: Any) -> None:
    expected = code()
    results: list[Any] = []
    explore(Scenario(int, {"one": [lambda _: results.append(code())]}), schedules=2, points=points).assert_holds()
    assert results
    assert all(result == expected for result in results), (results[0], expected)
    assert code() == expected  # and its own code is back


def test_what_was_begun_in_a_run_goes_on_after_it() -> None:
    kept: list[Any] = []

    def numbers() -> Iterator[int]:
        box = Box()
        try:
            while True:
                box.value += 1
                box.items[0] -= box.value
                yield box.value
        finally:
            box.items.append(box.value)
            kept.append(box.items)

    def begin() -> None:
        generator = numbers()
        next(generator)
        kept.append(generator)
        kept.append(lambda box: box.value)

    explore(begin, schedules=1).assert_holds()
    *_, generator, function = kept  # of the schedule's second run
    assert next(generator) == 2
    generator.close()
    assert kept[-1] == [-2, 2, 3, 2]
    assert function(Box(5)) == 5


def test_an_error_names_the_line_it_came_from() -> None:
    class Fails:
        def __init__(self) -> None:
            self.value = 0

        def actor_a(self) -> None:
            self.value = 1
            self.value.missing = 2  # type: ignore[attr-defined]

    failure = explore(Fails).failure
    assert failure is not None
    assert failure.error is not None
    traceback = failure.error.__traceback__
    lines = []
    while traceback is not None:
        lines.append((traceback.tb_frame.f_code.co_name, traceback.tb_lineno))
        traceback = traceback.tb_next
    first = Fails.actor_a.__code__.co_firstlineno
    assert ("actor_a", first + 2) in lines


def test_every_kind_of_access_can_be_raced_for() -> None:
    """A lost update of each."""
    for name, scenario in LOST.items():
        assert not explore(scenario).holds, name


class _Lost:
    def __init__(self) -> None:
        self.value = 0
        self.items = [0]
        self.table = {"a": 0}
        self.many: list[int] = []
        self.iterator = iter(range(2))
        self.taken: list[int] = []

    def actor_b(self) -> None:
        self.actor_a()

    def actor_a(self) -> None:
        raise NotImplementedError


class _Attribute(_Lost):
    def actor_a(self) -> None:
        self.value = self.value + 1

    def at_end(self) -> None:
        assert self.value == 2


class _Item(_Lost):
    def actor_a(self) -> None:
        self.items[0] = self.items[0] + 1

    def at_end(self) -> None:
        assert self.items == [2]


class _Method(_Lost):
    def actor_a(self) -> None:
        self.table.update(a=self.table.get("a", 0) + 1)

    def at_end(self) -> None:
        assert self.table == {"a": 2}


class _Looked(_Lost):
    def actor_a(self) -> None:
        if not self.many:
            self.many.append(1)

    def at_end(self) -> None:
        assert self.many == [1]


class _Next(_Lost):
    def actor_a(self) -> None:
        self.taken.append(next(self.iterator))

    def at_end(self) -> None:
        assert self.taken == [0, 1]


LOST = {item.__name__: item for item in (_Attribute, _Item, _Method, _Looked, _Next)}
