"""Atomics: each step is one step, whichever threads take it."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sinks import PATIENCE

from reactive_runtime.atomics import AtomicBoolean, AtomicInteger, AtomicReference

OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["set", "get_and_add", "add_and_get", "get_and_set", "compare_and_set", "update_and_get"]),
        st.integers(-3, 3),
        st.integers(-3, 3),
    )
)


@given(OPERATIONS)
def test_an_atomic_integer_does_what_a_plain_one_would(operations: list[tuple[str, int, int]]) -> None:
    atomic, plain = AtomicInteger(), 0
    for name, a, b in operations:
        before = plain
        if name == "compare_and_set":
            plain = b if plain == a else plain
            assert atomic.compare_and_set(a, b) == (before == a)
        elif name == "update_and_get":
            plain = plain * a + b
            assert atomic.update_and_get(lambda value, a=a, b=b: value * a + b) == plain  # type: ignore[misc]
        elif name in ("set", "get_and_set"):
            plain = a
            assert getattr(atomic, name)(a) == (before if name == "get_and_set" else None)
        else:
            plain += a
            assert getattr(atomic, name)(a) == (before if name == "get_and_add" else plain)
        assert atomic.get() == plain


@pytest.mark.parametrize("step", ["get_and_add", "add_and_get", "update_and_get", "compare_and_set"])
def test_no_update_is_lost_between_threads(step: str) -> None:
    count, barrier = AtomicInteger(), threading.Barrier(4)

    def add() -> None:
        barrier.wait(PATIENCE)
        for _ in range(2_000):
            if step == "update_and_get":
                count.update_and_get(lambda value: value + 1)
            elif step == "compare_and_set":
                while not count.compare_and_set(value := count.get(), value + 1):
                    pass
            else:
                getattr(count, step)(1)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert count.get() == 8_000


def test_an_update_that_was_overtaken_is_made_again_on_the_new_value() -> None:
    """The race, by order: the value changes while the function runs; a version that looks and then writes loses it."""
    count = AtomicInteger()
    seen: list[int] = []

    def update(value: int) -> int:
        seen.append(value)
        if len(seen) == 1:
            count.add_and_get(10)
        return value + 1

    assert count.update_and_get(update) == 11
    assert seen == [0, 10]


def test_a_function_runs_without_the_lock() -> None:
    count = AtomicInteger(1)
    assert count.get_and_update(lambda value: value + count.get()) == 1
    assert count.get() == 2


def test_a_reference_is_compared_by_identity() -> None:
    one, other = [1], [1]
    reference = AtomicReference(one)
    assert not reference.compare_and_set(other, [])
    assert reference.compare_and_set(one, other)
    assert reference.get_and_set(one) is other
    assert repr(reference) == "AtomicReference([1])"


def test_only_one_thread_turns_a_flag() -> None:
    flag, barrier, turned = AtomicBoolean(), threading.Barrier(8), AtomicInteger()

    def turn() -> None:
        barrier.wait(PATIENCE)
        if not flag.get_and_set(True):
            turned.add_and_get(1)

    threads = [threading.Thread(target=turn) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert turned.get() == 1
