"""Values whose repr raises: a title or a message may need a text of them, and no stream ends for want of one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from operators.catalogue import CASES, FAILED, Case, Place, failing, numbers
from operators.test_depth import in_words, run
from reactive_runtime import Flow
from reactive_runtime.executors import VirtualTimeExecutor


class Mute(int):
    """An int that has no repr."""

    def __repr__(self) -> str:
        raise RuntimeError("there is no text")

    def __str__(self) -> str:
        return int.__repr__(self)


MUTE = Mute(3)
VAST = 10**5_000
"""Python refuses to write it out."""


def mute_numbers() -> Iterator[Mute]:
    yield from map(Mute, range(10))


def mute_failing() -> Iterator[Mute]:
    yield from map(Mute, range(3))
    raise FAILED


@pytest.fixture
def place() -> Iterator[Place]:
    with ThreadPoolExecutor(2, "mute") as pool:
        yield Place(pool, VirtualTimeExecutor())


def plain(element: Any) -> Any:
    """The same, of ints."""
    if isinstance(element, dict):
        return {plain(key): plain(value) for key, value in element.items()}
    if isinstance(element, list | tuple | set | deque):
        return type(element)(map(plain, element))
    return int(element) if isinstance(element, Mute) else element


@pytest.mark.parametrize("case", [case for case in CASES if not case.lossy], ids=lambda case: case.name)
def test_an_operator_makes_the_same_of_elements_without_a_repr(case: Case, place: Place) -> None:
    expected, error = run(case.apply(Flow.from_supplier(numbers), place), place)
    elements, failed = run(case.apply(Flow.from_supplier(mute_numbers), place), place)
    assert in_words([plain(element) for element in elements], case) == in_words(expected, case)
    assert type(failed) is type(error)
    _, error = run(case.apply(Flow.from_supplier(failing), place), place)
    _, failed = run(case.apply(Flow.from_supplier(mute_failing), place), place)
    assert type(failed) is type(error)


@pytest.mark.parametrize("value", [MUTE, VAST], ids=["mute", "vast"])
@pytest.mark.parametrize(
    "made",
    [
        Flow.just,
        lambda value: Flow.just(1).start_with(value),
        lambda value: Flow.just(1).end_with(value),
        lambda value: Flow.empty().default_if_empty(value),
        lambda value: Flow.just(value).contains(value),
        lambda value: Flow.just(value).group_by(lambda element: element).map(lambda group: str(group[1])),
    ],
    ids=["just", "start_with", "end_with", "default_if_empty", "contains", "group_by"],
)
def test_a_flow_of_it_has_a_title_and_runs(made: Callable[[Any], Flow[Any]], value: Any) -> None:
    flow = made(value)
    texts = [str(flow), *(element for element in flow if isinstance(element, str))]
    assert any("whose repr raised" in text for text in texts)


def none_of(element: Any, *_: Any) -> Any:
    return None


@pytest.mark.parametrize(
    "made",
    [
        lambda flow: flow.map(none_of),
        lambda flow: flow.scan(none_of, 0),
        lambda flow: flow.reduce(none_of),
        lambda flow: flow.flat_map_iterable(lambda element: [None]),
    ],
)
def test_what_returns_none_for_it_is_said(made: Callable[[Flow[Any]], Flow[Any]]) -> None:
    with pytest.raises(TypeError, match=r"\(2\.13\)"):
        made(Flow.from_supplier(mute_numbers)).block()


class Odd:
    """No number, and no repr."""

    __repr__ = Mute.__repr__


@pytest.mark.parametrize("n", [Mute(-3), -VAST, Odd()], ids=["mute", "vast", "odd"])
def test_an_invalid_request_of_it_is_answered(n: Any) -> None:
    errors: list[BaseException] = []

    class Asking:
        def on_subscribe(self, subscription: Any, /) -> None:
            subscription.request(n)

        def on_next(self, element: Any, /) -> None: ...
        def on_complete(self) -> None: ...

        def on_error(self, error: BaseException, /) -> None:
            errors.append(error)

    Flow.range(3).subscribe(Asking())
    assert [isinstance(error, ValueError | TypeError) and "(3.9)" in str(error) for error in errors] == [True]
