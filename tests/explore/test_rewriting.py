"""Code whose accesses are points does what it did before."""

from __future__ import annotations

import asyncio
import collections
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from types import CodeType
from typing import Any, ClassVar, no_type_check

import pytest

from reactive_runtime.explore import Scenario, explore
from reactive_runtime.explore._instrument.expressions import hook_name
from reactive_runtime.explore._instrument.rewriting import compiled

counter = 0
nothing = None
made = [0]


class Box:
    """Something with attributes of every kind."""

    shared: ClassVar[int] = 1
    __slots__ = ("__dict__", "slot")
    after: Any

    def __init__(self, value: Any = 0) -> None:
        self.value = value
        self.slot: Any = "slot"
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


def order_of_targets() -> Any:
    """What stands on the left is stored from left to right, and each may look at the one before."""
    first = Box(1)
    first.after = Box(2)
    first.after.after = None
    before, now = None, first
    while now:
        now.after, before, now = before, now, now.after
    places, at = [0, 0, 0], 0
    places[at], at = 5, 2
    looped = []
    for places[at], at in [(6, 1), (7, 0)]:
        looped.append(([*places], at))
    box = Box()
    with opened() as box.value, opened() as box.items[box.value - 4], opened() as (last):
        pass
    here = 0
    places[here] += (here := 2)
    other = Box(10)
    box.value, kept = 1, box
    box.value += (box := other).value
    return before.value, before.after.value, places, at, looped, kept.value, kept.items, last, here, other.value  # type: ignore[union-attr]


def names_of_comprehensions() -> Any:
    """They are its own, whatever functions share."""
    total = 3

    def add() -> None:
        nonlocal total
        total += 1

    add()
    return (
        [counter + 1 for counter in (1, 2)],
        {total: -more for total, more in [(5, 6)]},
        [*(total for total in "a")],
        total,
    )


def made_for_the_caller() -> Any:
    made = collections.namedtuple("made", "x y")
    other = collections.namedtuple("other", ["x"], module="elsewhere")
    return made.__module__, made(1, 2), other.__module__


class Kind(Enum):
    GOOD = 1
    BAD = 2


def patterns() -> Any:
    """A pattern that does not fit gives no names."""
    found: Any = "before"
    results = []
    for subject in [(1, 5), (Kind.GOOD, 6), {"kind": Kind.BAD, "more": 7}, [8, Kind.GOOD, 9]]:
        match subject:
            case (Kind.GOOD, found) if found:
                results.append(found)
            case {"kind": Kind.GOOD, **found} | {"kind": Kind.GOOD, "found": found}:
                results.append("good")
            case [_, Kind.GOOD, *found]:
                results.append(found)
            case _:
                results.append(found)
    return results, found


def names_that_stay() -> Any:
    """No other name is seen, in a function or in a class."""

    class Colour(Enum):
        RED = CRIMSON = 1
        BLUE = 2

    low = middle = 1
    box = Box()
    box.value = box.slot = (low, middle)

    class Plain:
        one = two = 3
        box = Box(0)
        box.value = box.slot = 4
        box.value, three = 4, 5
        for box.value in (5, 6):
            pass
        ordered = low <= middle < two

        box.value = two = four = 7
        box.items[two - 7] += 1

    return sorted(locals()), sorted(vars(Plain)), list(map(repr, Colour)), [*Colour.__members__]


@no_type_check
def names_in_between() -> Any:
    """Nor is one where a statement did not come to its end, nor inside of it."""
    box, shared, seen = Box(), 0, []
    box.number = 0

    def look(value: Any, names: Any) -> Any:
        seen.append(sorted({*names} - {"look", "share", "seen"}))
        return value

    def share() -> None:
        nonlocal shared
        shared += 1

    share()
    compared = 0 < box.value + 1 <= shared < look(3, locals())
    box.table["a"] += look(1, locals())
    (box if compared else Box()).value += look(1, locals())
    for change in ("own", "items", "all", "pair", "unpacked", "looped", "entered"):
        try:
            if change == "own":
                (box if compared else Box()).value += "text"
            elif change == "items":
                box.items[box.value - 1] -= "text"
            elif change == "all":
                share.a = shared = box.number = box.doubled = "text"
            elif change == "pair":
                box.number, box.doubled, compared = 1, "text", 5
            elif change == "unpacked":
                box.number, box.doubled, compared = [1]
            elif change == "looped":
                for box.number, box.doubled in [(2, 4), (3, "text")]:
                    pass
            else:
                with opened() as box.value, opened() as box.items["text"]:
                    pass
        except (TypeError, ValueError):
            look(box.value, locals())
    try:
        raise ValueError(shared)
    except ValueError as shared:
        look(shared.args, locals())
    shared = 0
    import collections.abc as shared  # noqa: F811

    class Plain:
        import threading as shared

        chosen = 0
        match (1, 2):
            case (chosen, _) if chosen > 1:
                pass
            case (_, chosen):
                pass

    for subject in [(Kind.GOOD, 1), (1, Kind.GOOD), {"slot": 2}, 5, Box(6), 7]:
        match subject:
            case Kind.GOOD, shared:  # noqa: F811
                look(shared, locals())
            case shared, Kind.GOOD:
                look(shared, locals())
            case {box.slot: shared}:
                look(shared, locals())
            case int(shared) if shared > 6:
                look(shared, locals())
            case Box(value=shared) | int(shared):
                look(shared, locals())
        look(shared, locals())
    return box.value, box.items, box.number, compared, sorted(vars(Plain)), seen, sorted(locals())


@no_type_check
def targets_of_comprehensions() -> Any:
    """Each stores in its turn, and the next one may look at what it has stored."""
    places, box = [0, 0, 0], Box()
    pairs = [(6, 1), (7, 0), (8, 2)]
    found = [([*places], at) for at in (2,) for places[at], at in pairs]
    found += [([*places], at) for _ in (1,) for at, *places[at:at] in pairs if at]
    nested = {(box.value, at, name) for at, (box.value, name), *box.items in [(1, (2, 3), 4, 5), (6, (7, 8), 9)] if at}
    both = {(box.value, second) for box.value in range(3) if box.value for (box.slot, second) in [(box.value, 2)]}
    starred = [(*[sorted(locals()) for box.value, box.items[0] in [(1, 2)]],)]
    return found, nested, both, starred, box.value, box.items, box.slot


def chains() -> Any:
    """What is compared is evaluated once, from left to right, as far as it is needed."""
    asked: list[Any] = []

    def ask(value: Any) -> Any:
        asked.append(value)
        return value

    class Never:
        def __lt__(self, other: Any) -> list[Any]:
            return []

        __gt__ = __lt__

    box = Box(2)
    results = [
        ask(1) < ask(box.value) < ask(3),
        ask(3) < ask(box.value) < ask(4),
        ask(1) in ask([1]) in ask([[1]]),
        ask(1) not in ask([1]) in ask([[1]]),
        ask(None) is ask(None) == ask(None) is not ask(1),
        Never() < ask(1) < ask(2),
        ask(1) < Never() < ask(2),
        [one for one in range(5) if 1 < ask(one) < box.value + 2 != one],
        [1 < (again := box.value) < 3, again],
    ]
    try:
        results.append(ask(1) < ask(2) < ask("text"))
    except TypeError as error:
        results.append(str(error))
    return results, asked


def deleted_together() -> Any:
    box = Box()
    del (box.value, box.items[0]), [box.table["a"]]
    if box.items:
        del ()
    return box.items, box.table, "value" in vars(box)


def annotated() -> Any:
    asked: list[int] = []

    def ask() -> Any:
        asked.append(len(asked))
        return Box()

    ask().value: int  # type: ignore[misc]
    ask().table[ask().slot]: int  # type: ignore[misc]

    class __:  # noqa: N801
        def __init__(self) -> None:
            self.__plain = 1

    return asked, vars(__())


def arguments_that_are_deleted() -> Any:
    def twice(function: Any) -> Any:
        return lambda *given: (function(*given), function(*given))

    class Has:
        @twice
        def method(self) -> int:
            del self
            return 1

        @twice
        def caught(self) -> int:
            try:
                raise ValueError
            except ValueError as self:  # noqa: F841
                pass
            return 2

    return Has().method(), Has().caught()


async def numbered() -> AsyncIterator[int]:
    for number in range(2):
        yield number


def awaited() -> Any:
    @asynccontextmanager
    async def entered(value: int) -> AsyncIterator[int]:
        yield value

    async def main() -> Any:
        box = Box()
        async with entered(5) as box.value, entered(box.value + 1) as second:
            async for box.slot in numbered():
                pass
            return box.value, second, box.slot, [one async for one in numbered()]

    return asyncio.run(main())


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
    order_of_targets,
    names_of_comprehensions,
    made_for_the_caller,
    patterns,
    names_that_stay,
    names_in_between,
    targets_of_comprehensions,
    chains,
    deleted_together,
    annotated,
    arguments_that_are_deleted,
    awaited,
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


def a_chain() -> Any:
    return (
        Box(Box())
        .value
        .items
        .missing
    )  # fmt: skip


def a_chain_of_calls() -> Any:
    return (
        Box()
        .items
        .index(
            9,
        )
    )  # fmt: skip


def a_chain_on_super() -> Any:
    class Inside(Box):
        def get(self) -> Any:
            return (
                super()
                .__getattribute__("items")
                .missing
            )  # fmt: skip

    return Inside().get()


def lines_of_an_error(code: Callable[[], Any]) -> list[tuple[str, int | None]]:
    try:
        code()
    except (AttributeError, ValueError) as error:
        frames = traceback.extract_tb(error.__traceback__)
        return [(frame.name, frame.lineno) for frame in frames if frame.filename == __file__]
    return []


@pytest.mark.parametrize("code", [a_chain, a_chain_of_calls, a_chain_on_super], ids=lambda item: item.__name__)
def test_the_line_of_an_attribute_in_a_chain_is_its_own(code: Callable[[], Any]) -> None:
    expected = lines_of_an_error(code)
    found: list[Any] = []
    explore(Scenario(int, {"one": [lambda _: found.append(lines_of_an_error(code))]}), schedules=2).assert_holds()
    assert expected
    assert all(lines == expected for lines in found), (found, expected)


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


class DeletesTogether:
    def __init__(self) -> None:
        self.table = {"a": 1}

    def actor_a(self) -> None:
        if "a" in self.table:
            del (self.table["a"],)

    actor_b = actor_a


class DeletesAttributesTogether:
    def __init__(self) -> None:
        self.box = Box()

    def actor_a(self) -> None:
        if "value" in vars(self.box):
            del (self.box.value,), [self.box.slot]

    actor_b = actor_a


def stores_an_annotated_name() -> None:
    count: int = 0

    def add() -> None:
        nonlocal count
        count += 1

    thread = threading.Thread(target=add)
    thread.start()
    seen = count
    count: int = seen + 1  # type: ignore[no-redef]
    thread.join()
    assert count == 2


@pytest.mark.parametrize("strategy", ["dpor", "bounded", "portfolio"])
@pytest.mark.parametrize("program", [DeletesTogether, DeletesAttributesTogether, stores_an_annotated_name])
def test_what_stands_in_a_tuple_or_has_an_annotation_can_be_raced_for(program: Any, strategy: Any) -> None:
    assert explore(program, strategy=strategy).failure is not None


EVERYWHERE = """
module = LAMBDA
listed = [LAMBDA for _ in range(1)]
annotation: LAMBDA = LAMBDA

def called(a: LAMBDA = LAMBDA, /, b=LAMBDA, *c: LAMBDA, d=LAMBDA, **e) -> LAMBDA:
    def inside(a=LAMBDA, *, d=LAMBDA):
        return LAMBDA
    return lambda a=LAMBDA, *, d=LAMBDA: (a, d)

@decorate(LAMBDA)
@decorate(key=LAMBDA)
async def decorated():
    @decorate(LAMBDA)
    class Inside(base(LAMBDA), key=LAMBDA):
        name = LAMBDA

@decorate(LAMBDA)
class Outside(base(LAMBDA), key=LAMBDA):
    name = LAMBDA
    annotation: LAMBDA = LAMBDA

    @decorate(LAMBDA)
    def method(self, key=LAMBDA):
        return LAMBDA

    class Further(key=LAMBDA):
        name = decorate(lambda one=LAMBDA, *, other=LAMBDA: one)
"""


def codes_in(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes_in(constant)


def test_a_function_is_rewritten_wherever_it_stands() -> None:
    source = EVERYWHERE.replace("LAMBDA", "lambda entry: entry.value")
    codes = [item for item in codes_in(compiled(source, "everywhere")) if item.co_varnames[:1] == ("entry",)]
    assert len(codes) == EVERYWHERE.count("LAMBDA")
    assert [item.co_names for item in codes if hook_name("take") not in item.co_names] == []


def handing_on(function: Callable[[Any], object]) -> Callable[[Any], Any]:
    return lambda _: function


class AddsInADefault(_Attribute):
    def actor_a(self, add: Callable[[Any], object] = lambda self: setattr(self, "value", self.value + 1)) -> None:
        add(self)


class AddsInADecorator(_Attribute):
    @handing_on(lambda self: setattr(self, "value", self.value + 1))
    def actor_a(self) -> None: ...


@pytest.mark.parametrize("strategy", ["dpor", "bounded", "portfolio"])
@pytest.mark.parametrize("program", [AddsInADefault, AddsInADecorator])
def test_what_stands_around_a_function_can_be_raced_for(program: Any, strategy: Any) -> None:
    assert explore(program, strategy=strategy).failure is not None
