"""Which operators a `Pipeline` calls stateful: those that make something else of two halves than of the whole."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from operators.catalogue import CASES, Case, Place

from reactive_runtime import Flow
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.pipeline import STATEFUL, Pipeline

SAME_BY_CHANCE = {
    "conflate",
    "elapsed",
    "group_by",
    "on_overflow_drop",
    "on_overflow_latest",
    "skip_until",
    "skip_while",
    "switch_map",
    "take_until",
    "take_while",
    "with_latest_from",
}
"""Which of them make the same here: what they drop depends on time, another publisher, or a prefix; groups are
merged again, and the times of `elapsed` are taken away."""


def made(case: Case, elements: range) -> list[Any]:
    with ThreadPoolExecutor(2) as pool:
        clock = VirtualTimeExecutor()
        flow: Any = case.apply(Flow.from_iterable(elements), Place(pool, clock))
        future = flow.to_list().to_future()
        while not future.done():
            clock.advance(1)
        result: list[Any] = future.result(30)
        return result


@pytest.mark.parametrize("case", [item for item in CASES if hasattr(Pipeline(), item.name)], ids=lambda item: item.name)
def test_two_halves_make_something_else_than_the_whole_where_an_operator_is_stateful(case: Case) -> None:
    whole = made(case, range(10))
    for place in (3, 5):
        parts = made(case, range(place)) + made(case, range(place, 10))
        if differs := whole != parts if case.ordered else sorted(whole) != sorted(parts):
            break
    listed = case.name in STATEFUL - SAME_BY_CHANCE
    assert listed or not differs, (
        f"{case.name} remembers earlier elements: two halves give {parts}, the whole {whole}."
        " Mark its method with @stateful (reactive_runtime/_operators/stateful.py)"
    )
    assert differs or not listed, (
        f"{case.name} makes the same of two halves as of the whole, {whole}: remove @stateful from its"
        " method, or, where that is so of these elements only, add it to SAME_BY_CHANCE"
    )


def test_what_is_stateful_is_an_operator() -> None:
    assert {name for name in STATEFUL if not hasattr(Pipeline(), name)} == set()
    assert SAME_BY_CHANCE <= STATEFUL
    inner = Pipeline[int, int]().map(abs).take(2)
    assert Pipeline[int, int]().transform(inner).scan(max, 0).stateful == ("take", "scan")
