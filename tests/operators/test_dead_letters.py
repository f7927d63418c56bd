"""`on_error_continue`: the errors that it catches, those that it does not, and the letters."""

from __future__ import annotations

from typing import Any

import pytest

from reactive_runtime import DeadLetter, Flow, hooks
from reactive_runtime.hot import PublishProcessor, ReplayProcessor
from reactive_runtime.pipeline import Pipeline


def odd_fails(n: int) -> int:
    if n % 2:
        raise ValueError(f"{n} is odd")
    return n


def test_a_letter_names_element_error_operator_and_attempts() -> None:
    letters: list[DeadLetter] = []
    flow = Flow.range(4).on_error_continue(lambda n: n.map(odd_fails).retry(2), to=letters.append)
    assert list(flow) == [0, 2]
    assert [(letter.element, str(letter.error), letter.operator, letter.attempts) for letter in letters] == [
        (1, "1 is odd", "map(odd_fails)", 3),
        (3, "3 is odd", "map(odd_fails)", 3),
    ]
    assert any("assembled at" in note and "test_dead_letters.py" in note for note in letters[0].error.__notes__)


def test_an_asynchronous_part_has_its_errors_caught() -> None:
    async def later(n: int) -> int:
        return odd_fails(n)

    letters: list[DeadLetter] = []
    flow = Flow.range(6).on_error_continue(lambda n: n.map_parallel(later), to=letters.append, concurrency=3)
    assert sorted(flow) == [0, 2, 4]
    assert sorted(letter.element for letter in letters) == [1, 3, 5]
    assert {letter.operator for letter in letters} == {"map_parallel(later, 16)"}


@pytest.mark.parametrize(
    "make",
    [
        lambda to: Flow.range(3).map(odd_fails).on_error_continue(lambda n: n, to=to),
        lambda to: Flow.range(3).on_error_continue(lambda n: n, to=to).map(odd_fails),
        lambda to: Flow.range(3).on_error_continue(lambda n: n.map(odd_fails), to=to, when=OSError),
    ],
    ids=["before", "after", "another class"],
)
def test_an_error_outside_of_the_part_ends_the_flow(make: Any) -> None:
    letters: list[DeadLetter] = []
    with pytest.raises(ValueError, match="1 is odd"):
        make(letters.append).run()
    assert letters == []


def test_an_error_of_the_receiver_ends_the_flow_with_its_context() -> None:
    def full(letter: DeadLetter) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full") as caught:
        Flow.range(3).on_error_continue(lambda n: n.map(odd_fails), to=full).run()
    assert isinstance(caught.value.__context__, ValueError)


def test_a_hot_source_gets_the_letters() -> None:
    to: ReplayProcessor[DeadLetter] = ReplayProcessor(8)
    assert list(Flow.range(4).on_error_continue(lambda n: n.map(odd_fails), to=to)) == [0, 2]
    to.on_complete()
    assert [letter.element for letter in to] == [1, 3]


def test_a_letter_that_a_hot_source_refuses_goes_to_the_hook() -> None:
    to: PublishProcessor[DeadLetter] = PublishProcessor()
    with hooks.captured() as drops:
        assert list(Flow.range(3).on_error_continue(lambda n: n.map(odd_fails), to=to)) == [0, 2]
    assert [(drop.element.element, str(drop.error)) for drop in drops] == [(1, "1 is odd")]
    assert "no subscriber" in drops[0].reason


def test_a_part_may_be_a_pipeline() -> None:
    letters: list[DeadLetter] = []
    part: Any = Pipeline().map(odd_fails).map(str)
    assert list(Flow.range(4).on_error_continue(part, to=letters.append)) == ["0", "2"]
    assert [letter.operator for letter in letters] == ["map(odd_fails)"] * 2


def test_a_part_that_fails_before_it_asks_has_no_attempt() -> None:
    letters: list[DeadLetter] = []
    flow = Flow.just(1).on_error_continue(lambda n: Flow.error(OSError("closed")), to=letters.append)
    assert list(flow) == []
    assert [(letter.element, letter.attempts) for letter in letters] == [(1, 0)]


def test_an_element_whose_part_did_not_ask_for_it_goes_to_the_hook() -> None:
    with hooks.captured() as drops:
        assert list(Flow.range(2).on_error_continue(lambda n: Flow.empty(), to=repr)) == []
    assert [drop.element for drop in drops] == [0, 1]


def test_a_part_that_returns_no_publisher_is_named() -> None:
    with pytest.raises(TypeError, match=r"on_error_continue\(.*must return a publisher"):
        Flow.just(1).on_error_continue(lambda n: 7, to=repr).run()  # type: ignore[arg-type, return-value]


def test_a_receiver_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="to must be a function, or a hot source with emit"):
        Flow.just(1).on_error_continue(lambda n: n, to=7)  # type: ignore[arg-type]
