"""The debug switch: a call by a thread that may not make it is an AssertionError, and stands in a list."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE

from reactive_runtime import Flow
from reactive_runtime._core.drains.combinator import Combinator, Elements, InnerSubscription, ReadySet
from reactive_runtime._core.drains.drain import Drain
from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime._core.drains.ownership import _Inside
from reactive_runtime._core.sources.flow_source import CombinatorSource
from reactive_runtime._operators.flow_base import flow_of
from reactive_runtime.debugging import ownership_checked


def released() -> DrainContext:
    """A drain that no thread owns."""
    drain = DrainContext()
    with drain.lock:
        assert drain.leave()
    return drain


def inner_of(drain: DrainContext) -> InnerSubscription:
    return InnerSubscription(drain, Flow.range(3))


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "not owned": (
        lambda: inner_of(released()).next_if_demanded(),
        "InnerSubscription.next_if_demanded was called while no thread owned the drain",
    ),
    "no lock": (lambda: released().claim(), "Drain.claim was called without the lock"),
    "an override": (lambda: released().spend(), "Drain.spend was called while no thread owned the drain"),
}


@pytest.mark.parametrize(("call", "said"), WRONG.values(), ids=WRONG)
def test_a_call_that_is_not_allowed_is_named(call: Callable[[], object], said: str) -> None:
    with ownership_checked() as wrong:
        with pytest.raises(AssertionError, match=said):
            call()
        assert wrong == [said]


class Careless(Combinator):
    """An operator that lets a thread of a pool pull its upstream, while it is inside a pull of its own."""

    title = "careless"

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        super().__init__()
        self.pool = pool

    def elements(self) -> Elements:
        inner = self.inner(Flow.range(3))
        yield self.pool.submit(inner.next_if_demanded).result()


def test_two_threads_inside_of_one_drain_are_seen() -> None:
    with ThreadPoolExecutor(1) as pool, ownership_checked() as wrong:
        flow: Flow[int] = flow_of(CombinatorSource("careless", lambda: Careless(pool)))
        with pytest.raises(AssertionError, match="another thread was inside"):
            flow.block()
        assert wrong == ["InnerSubscription.next_if_demanded was called while another thread was inside"]


def test_what_is_allowed_is_not_named_and_the_methods_come_back() -> None:
    before = [Drain.claim, InnerSubscription.next_if_demanded, ReadySet.next_if_demanded, Combinator.inner]
    with ThreadPoolExecutor(2) as pool, ownership_checked() as wrong:
        flow = Flow.range(50).flat_map(lambda n: Flow.just(n).subscribe_on(pool)).publish_on(pool).batch(7)
        assert flow.count().block(timeout=30) == 8
        assert Drain.claim is not before[0]
        assert wrong == []
    assert [Drain.claim, InnerSubscription.next_if_demanded, ReadySet.next_if_demanded, Combinator.inner] == before


class Collecting(dict[int, tuple[int, int]]):
    """A collection comes while it is read, and closes the generator of another flow, on the same thread."""

    def __init__(self, left: object, inside: _Inside) -> None:
        self.left: object | None = left
        self.inside = inside

    def get(self, key: int, default: Any = None) -> Any:
        left, self.left = self.left, None
        if left is not None:
            assert self.inside.enter(left)
            self.inside.leave(left)
        return super().get(key, default)


def test_a_collection_may_close_a_flow_that_was_left_while_a_call_is_noted() -> None:
    inside, drain, entered = _Inside(), released(), threading.Event()
    inside._threads = Collecting(released(), inside)

    def call() -> None:
        assert inside.enter(drain)
        inside.leave(drain)
        entered.set()

    threading.Thread(target=call, daemon=True).start()
    assert entered.wait(PATIENCE)
    assert inside._threads == {}
