"""A loop that was left is closed by a collection of garbage, on any thread and at any instruction: no thread hangs."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sinks import until

from reactive_runtime import Flow
from reactive_runtime._core import collecting, primitives


class Left:
    """A loop over a flow that has begun, and that only a collection of garbage ends."""

    def __init__(self, flow: Flow[int]) -> None:
        self.me = self
        self.loop = iter(flow)
        next(self.loop)


@pytest.fixture
def by_hand() -> Iterator[None]:
    """No collection but those that the test asks for."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.usefixtures("by_hand")
def test_a_loop_that_a_collection_ends_is_closed_on_a_thread_of_its_own() -> None:
    closed: list[int] = []
    with ThreadPoolExecutor(1) as pool:
        flow = Flow.range(1_000_000).subscribe_on(pool).do_on_cancel(lambda: closed.append(threading.get_ident()))
        Left(flow)
        assert closed == []
        gc.collect()
        until(lambda: bool(closed))
    assert closed != [threading.get_ident()]


@pytest.mark.usefixtures("by_hand")
def test_a_loop_that_is_left_in_the_ordinary_way_is_closed_there_and_then() -> None:
    closed: list[int] = []
    with ThreadPoolExecutor(1) as pool:
        flow = Flow.range(1_000_000).subscribe_on(pool).do_on_cancel(lambda: closed.append(threading.get_ident()))
        for _ in flow:
            break
        assert closed == [threading.get_ident()]


PROGRAM = """
import gc
from concurrent.futures import ThreadPoolExecutor
from reactive_runtime import Flow

class Left:
    pass

gc.set_threshold(5)
with ThreadPoolExecutor(2) as io, ThreadPoolExecutor(1) as cpu:
    flow = Flow.range(1_000).map(lambda n: [n]).subscribe_on(io).publish_on(cpu, prefetch=4)
    for turn in range(1_000):
        left = Left()
        left.me, left.loop = left, iter(flow)
        for _ in range(turn % 4):
            next(left.loop)
        del left
    gc.set_threshold(700)
    gc.collect()
    print(Flow.range(3).subscribe_on(io).publish_on(cpu).to_list().block(timeout=20))
"""


def test_a_thousand_loops_that_are_left_hang_no_thread_of_a_pool() -> None:
    """Collected at any instruction: it took some ten of them until a thread waited for itself."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "[0, 1, 2]\n", done.stderr


def test_at_the_end_of_the_interpreter_no_thread_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(primitives, "begin_thread", refuses)
    monkeypatch.setattr(collecting.here, "collects", True)
    called: list[bool] = []
    collecting.outside(lambda: called.append(True))
    assert called == [True]
