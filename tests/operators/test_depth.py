"""A long chain of any operator: it is assembled, drawn, given an executor and run without a stack to match.

Python allows fewer frames than the chain has operators: what needs one for each operator fails.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from searching import one_pair_each_by_day
from sinks import PATIENCE

from operators.catalogue import CASES, Case, Place
from reactive_runtime import Flow
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hooks import Dropped

pytestmark = pytest.mark.timeout(300)  # some compute for seconds, on a machine that may have other work

LENGTH = 600
FRAMES = 500
"""More than one of the chains takes of the stack, and fewer than one frame for each of its operators."""


@pytest.fixture(autouse=True)
def few_frames() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(FRAMES)
    yield
    sys.setrecursionlimit(before)


@pytest.fixture
def place() -> Iterator[Place]:
    with ThreadPoolExecutor(2, "depth") as pool:
        yield Place(pool, VirtualTimeExecutor())


def chain(operator: Callable[[Flow[Any]], Flow[Any]], source: Flow[Any]) -> Flow[Any]:
    for _ in range(LENGTH):
        source = operator(source)
    return source


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_long_chain_is_assembled_and_drawn(case: Case, place: Place) -> None:
    flow = chain(lambda item: case.apply(item, place), Flow.range(3))
    assert str(flow)
    assert flow.explain()
    assert "ThreadPoolExecutor" in flow.subscribe_on(place.pool).explain()
    assert flow.subscribe_on(place.pool).publish_on(place.pool).explain()


@pytest.mark.parametrize("join", ["concat_with", "merge_with"])
def test_a_long_concatenation_is_one_operator(join: str) -> None:
    flow: Flow[int] = Flow.just(0)
    for n in range(1, LENGTH):
        flow = getattr(flow, join)(Flow.just(n))
    assert list(flow) == list(range(LENGTH))
    assert str(flow).startswith(f"just(0) {join}(just(1), just(2), just(3)")


def test_what_comes_in_between_keeps_its_place(place: Place) -> None:
    """Only what means the same is made one."""
    two = Flow.just(1).concat_with(Flow.just(2))
    assert list(two.map(lambda n: -n).concat_with(Flow.just(3))) == [-1, -2, 3]
    assert str(Flow.just(1).concat_with().concat_with(Flow.just(2), Flow.just(3))).endswith("(just(2), just(3))")
    other = Flow.just(1).merge_with(Flow.just(2), delay_error=True).merge_with(Flow.just(3))
    assert str(other) == "just(1) merge_with(just(2)) ¦ merge_with(just(3))"
    elsewhere = two.subscribe_on(place.pool).concat_with(Flow.just(3))
    assert str(elsewhere) == "just(1) concat_with(just(2)) concat_with(just(3))"
    assert str(two) == "just(1) concat_with(just(2))", "a flow is not changed by what is made of it"
    assert list(elsewhere) == [1, 2, 3]


def test_the_executors_of_all_that_comes_in_are_known(place: Place) -> None:
    """Waiting on one of their threads is refused, however deep they are."""
    flow = Flow.just(0)
    for n in range(50):
        flow = Flow.concat(Flow.just(n).subscribe_on(place.pool) if n == 7 else Flow.just(n), flow)
    refused: Future[Any] = place.pool.submit(lambda: Flow.zip(flow, Flow.just(1)).block())
    assert isinstance(refused.exception(PATIENCE), RuntimeError)
    longer = Flow.just(1).concat_with(Flow.just(2)).concat_with(Flow.just(3).subscribe_on(place.pool))
    refused = place.pool.submit(longer.block)
    assert isinstance(refused.exception(PATIENCE), RuntimeError)


def test_work_on_rails_may_be_long(place: Place) -> None:
    rails = Flow.range(3).parallel(2).run_on(place.pool)
    for _ in range(2 * sys.getrecursionlimit()):
        rails = rails.rails(lambda rail: rail)
    assert sorted(rails.sequential()) == [0, 1, 2]


MULTIPLY = {
    "repeat",
    "repeat_when",
    "flat_map (on a pool)",
    "flat_map_sequential (on a pool)",
    "flat_map",
    "concat_map",
}
MULTIPLY |= {"flat_map_sequential", "handle", "flat_map_iterable", "expand", "starmap"}
"""What makes two of one, or takes other things than it gives: many of them would never end, or mean nothing."""


def run(flow: Flow[Any], place: Place) -> tuple[list[Any], BaseException | None]:
    """What comes of it, to its end; its clock goes on meanwhile."""
    elements: list[Any] = []
    errors: list[BaseException] = []
    ended = threading.Event()

    def fails(error: BaseException) -> None:
        errors.append(error)
        ended.set()

    flow.subscribe(elements.append, fails, ended.set)
    for _ in range(int(PATIENCE * 1000)):
        if ended.is_set() or ended.wait(0.001):
            break
        place.clock.advance(1)
    assert ended.is_set()
    return elements, errors[0] if errors else None


def leaves(element: Any) -> list[str]:
    """What an element is made of: it may be as many lists deep as the chain is long."""
    texts: list[str] = []
    left = [element]
    while left:
        item = left.pop()
        if isinstance(item, list | tuple):
            texts.append(f"{type(item).__name__} of {len(item)}")
            left.extend(reversed(item))
        else:
            texts.append(repr(item))
    return texts


@pytest.mark.parametrize(
    ("case", "ends"),
    one_pair_each_by_day(CASES, ["cancelled", "satisfied", "failed"]),
    ids=lambda item: getattr(item, "name", item),
)
def test_a_long_chain_closes_its_source_however_it_ends(
    case: Case, ends: str, place: Place, dropped: list[Dropped]
) -> None:
    """The iterator of the source is closed, and nothing of the release fails."""
    opened, closed = threading.Event(), threading.Event()

    def numbers() -> Iterator[int]:
        opened.set()
        try:
            yield from range(3)
        finally:
            closed.set()

    def fail(element: Any) -> Any:
        raise OSError(element)

    flow = chain(lambda item: case.apply(item, place), Flow.from_supplier(numbers))
    ended = threading.Event()
    if ends == "cancelled":
        handle = flow.subscribe(lambda element: None, lambda error: None, demand=1)
        handle.cancel()
        ended.set()
    elif ends == "satisfied":
        flow.take(1).subscribe(lambda element: None, lambda error: ended.set(), ended.set)
    else:
        flow.map(fail).subscribe(lambda element: None, lambda error: ended.set(), ended.set)
    for _ in range(int(PATIENCE * 1000)):
        if ended.is_set() or ended.wait(0.001):
            break
        place.clock.advance(1)
    assert ended.is_set()
    if opened.is_set():  # before the source began there is nothing to close
        assert closed.wait(PATIENCE)
    for drop in dropped:
        assert not isinstance(drop.error, RecursionError)


def in_words(elements: list[Any], case: Case) -> list[list[str]]:
    """The elements, in order, where that is promised."""
    texts = list(map(leaves, elements))
    return texts if case.ordered else sorted(texts)


GROWS: dict[str, list[Any]] = {
    "concat": [-1] * LENGTH + [0, 1, 2],
    "merge": [0, 1, 2] + [10, 11] * LENGTH,
    "merge_comparing": [0, 1, 2] + [3] * LENGTH + [20] * LENGTH,
}
"""What those come to that get longer and longer: one by one they would take the square of its length in steps."""


def one_by_one(case: Case, place: Place) -> tuple[list[Any], BaseException | None]:
    """What a chain comes to, each operator on what the one before it has given, and no chain."""
    elements: list[Any] = [0, 1, 2]
    failure: BaseException | None = None
    if case.name in GROWS:
        return GROWS[case.name], None
    for at in range(LENGTH):
        source: Flow[Any] = Flow.from_iterable(elements)
        before = in_words(elements[:4], case), failure
        if failure is not None:
            source = source.concat_with(Flow.error(failure))
        elements, failure = run(case.apply(source, place), place)
        if at < 9 and len(elements) < 4 and (in_words(elements, case), failure) == before:
            break  # so it goes on
    return elements, failure


@pytest.mark.parametrize("case", [item for item in CASES if item.name not in MULTIPLY], ids=lambda case: case.name)
def test_a_long_chain_runs(case: Case, place: Place) -> None:
    """To its end, whichever that is for what has been through so many of them."""
    elements, reason = run(chain(lambda item: case.apply(item, place), Flow.range(3)), place)
    expected, failure = one_by_one(case, place)
    if not case.lossy:
        assert in_words(elements, case) == in_words(expected, case)
        assert type(reason) is type(failure)
    while reason is not None:
        assert not isinstance(reason, RecursionError)
        reason = reason.__cause__ or reason.__context__


ONE_EACH: dict[str, Callable[[Flow[Any], Place], Flow[Any]]] = {
    "repeat": lambda f, p: f.map(plus).repeat(1),
    "repeat_when": lambda f, p: f.map(plus).repeat_when(lambda runs: Flow.empty()),
    "flat_map": lambda f, p: f.flat_map(lambda n: Flow.just(n + 1)),
    "flat_map of a flow that is an operator": lambda f, p: f.flat_map(
        lambda n: Flow.just(n).concat_with(Flow.empty()).map(plus)
    ),
    "flat_map (on a pool)": lambda f, p: f.flat_map(lambda n: Flow.just(n + 1).subscribe_on(p.pool)),
    "flat_map_sequential": lambda f, p: f.flat_map_sequential(lambda n: Flow.just(n + 1)),
    "flat_map_sequential (on a pool)": lambda f, p: f.flat_map_sequential(
        lambda n: Flow.just(n + 1).subscribe_on(p.pool)
    ),
    "concat_map": lambda f, p: f.concat_map(lambda n: Flow.just(n + 1)),
    "concat_map (on a pool)": lambda f, p: f.concat_map(lambda n: Flow.just(n + 1).subscribe_on(p.pool)),
    "switch_map": lambda f, p: f.switch_map(lambda n: Flow.just(n + 1)),
    "expand": lambda f, p: f.map(plus).expand(lambda n: Flow.empty()),
    "handle": lambda f, p: f.handle(lambda n, emit: emit(n + 1)),
    "flat_map_iterable": lambda f, p: f.flat_map_iterable(lambda n: [n + 1]),
    "starmap": lambda f, p: f.map(lambda n: (n, 1)).starmap(lambda n, m: n + m),
}
"""Those, where each element becomes one."""


def plus(n: int) -> int:
    return n + 1


def test_each_of_those_that_multiply_is_there() -> None:
    assert set(ONE_EACH) >= MULTIPLY


@pytest.mark.parametrize("name", list(ONE_EACH))
def test_a_long_chain_that_make_one_of_one_gives_each(name: str, place: Place) -> None:
    flow = chain(lambda item: ONE_EACH[name](item, place), Flow.range(3))
    found = flow.to_list().block(timeout=PATIENCE)
    assert found is not None
    assert (sorted(found) if "flat_map" in name else found) == [LENGTH, LENGTH + 1, LENGTH + 2]
