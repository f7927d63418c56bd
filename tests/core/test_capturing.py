"""Blocks of `hooks.captured` that overlap: each drop reaches one of them, and none reaches a block that has ended."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from reactive_runtime import hooks
from reactive_runtime._core.failures.dropping import error_dropped


@pytest.fixture
def logged() -> Iterator[list[hooks.Dropped]]:
    """The drops that reach the handler from before all blocks."""
    drops: list[hooks.Dropped] = []
    before = hooks.set_handler(drops.append)
    yield drops
    hooks.set_handler(before)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_blocks_that_overlap_may_end_in_any_order(order: tuple[int, ...], logged: list[hooks.Dropped]) -> None:
    stacks = [ExitStack() for _ in range(3)]
    blocks = [stack.enter_context(hooks.captured()) for stack in stacks]
    open_blocks = [0, 1, 2]
    for number, ending in enumerate(order):
        counts = [len(block) for block in blocks]
        error_dropped("in a block", KeyError(number))
        counts[open_blocks[-1]] += 1
        assert [len(block) for block in blocks] == counts
        stacks[ending].close()
        open_blocks.remove(ending)
    assert not logged
    error_dropped("behind all of them", KeyError("logged"))
    assert [drop.reason for drop in logged] == ["behind all of them"]


def test_a_handler_that_was_set_inside_of_a_block_ends_with_it(logged: list[hooks.Dropped]) -> None:
    inside: list[hooks.Dropped] = []
    with hooks.captured() as drops:
        hooks.set_handler(inside.append)
        error_dropped("inside", KeyError(1))
    error_dropped("behind", KeyError(2))
    assert ([drop.reason for drop in inside], [drop.reason for drop in logged], drops) == (["inside"], ["behind"], [])
