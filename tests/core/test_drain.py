"""The way into a drain: what every request of a subscriber passes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from types import FrameType
from typing import Any

import pytest

from reactive_runtime._core.drains.drain import BATCH, Drain
from reactive_runtime._core.runtime import primitives
from reactive_runtime._spec import MAX_DEMAND


class Counted(Drain):
    """Says when it is launched."""

    launched = 0

    def _launch(self) -> None:
        self.launched += 1


def test_no_function_is_called_while_the_lock_of_a_drain_is_held_for_a_request() -> None:
    """A GIL may change hands at a call: then threads that request meanwhile wait for the lock, one after the other."""
    drain, under_the_lock = Counted(owned=True), list[str]()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and drain.lock.locked():
            under_the_lock.append(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        drain.add(1)
    finally:
        sys.setprofile(before)
    assert under_the_lock == []
    assert drain.demand() == 1


@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize("asked", [1, 5, MAX_DEMAND])
def test_a_request_wakes_a_drain_as_any_other_call_does(asked: int, owned: bool) -> None:
    one, other = Counted(owned=owned), Counted(owned=owned)
    one.add(asked)
    other.wake()
    assert one.launched == other.launched == (not owned)
    assert one.has_note() == other.has_note() == owned
    assert one.is_owned()
    assert other.is_owned()
    one.add(asked)
    assert one.demand() == min(2 * asked, MAX_DEMAND)
    assert one.launched == (not owned)


class Kept(Executor):
    """Keeps tasks until `run_one` runs the next one."""

    def __init__(self) -> None:
        self.tasks: list[tuple[Future[Any], Callable[..., Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.tasks.append((future, fn))
        return future

    def run_one(self) -> None:
        future, fn = self.tasks.pop(0)
        future.set_result(fn())


class Fed(Drain):
    """Takes what has arrived."""

    arrived = taken = 0

    def _turn(self, allowance: int) -> int:
        n = min(self.arrived, allowance)
        self.arrived -= n
        self.taken += n
        return n


def test_a_task_ends_after_a_batch_whose_elements_come_in_spins(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = Kept()
    drain = Fed(executor)

    def pause() -> None:
        if drain.taken < 3 * BATCH:
            drain.arrived += 1
            drain.wake()

    monkeypatch.setattr(primitives, "pause", pause)
    drain.add(MAX_DEMAND)
    taken = []
    while executor.tasks:
        before = drain.taken
        drain.arrived += 1
        executor.run_one()
        taken.append(drain.taken - before)
        if drain.taken < BATCH:  # a new drain does not spin at once
            drain.wake()
    assert drain.taken >= 3 * BATCH
    assert max(taken) <= BATCH
