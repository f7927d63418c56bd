"""A loop that was left is closed by a collection of garbage, on any thread and at any instruction: no thread hangs."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sinks import Sink, until

from reactive_runtime import Flow
from reactive_runtime._core import garbage_collection
from reactive_runtime._core.drains import trampoline
from reactive_runtime._core.runtime import primitives


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


HEAD = """
import contextlib, gc, queue, threading
from concurrent.futures import ThreadPoolExecutor
from reactive_runtime import Flow

class Left:
    def __init__(self):
        self.me = self

io, cpu = ThreadPoolExecutor(2), ThreadPoolExecutor(1)
flow = Flow.range(1_000).map(lambda n: [n]).subscribe_on(io).publish_on(cpu, prefetch=4)
"""

FOOT = """
gc.set_threshold(700)
gc.collect()
print(Flow.range(3).subscribe_on(io).publish_on(cpu).to_list().block(timeout=20))
"""

LOOPS = """
gc.set_threshold(5)
for turn in range(1_000):
    left = Left()
    left.loop = iter(flow)
    for _ in range(turn % 4):
        next(left.loop)
    del left
"""

SUBSCRIPTIONS = """
class Subscriber(Left):
    def on_subscribe(self, subscription):
        self.subscription, self.come = subscription, threading.Event()
        subscription.request(turn % 4 + 1)

    def on_next(self, element):
        self.come.set()

    def on_error(self, error): ...
    def on_complete(self): ...

gc.set_threshold(5)
for turn in range(1_000):
    subscriber = Subscriber()
    Flow.using(contextlib.nullcontext, lambda _: flow).subscribe(subscriber)
    subscriber.come.wait(20)
    del subscriber
"""

ELSEWHERE = """
gc.disable()
loops = queue.SimpleQueue()

def drop():
    while loops.get() is not None:
        pass

thread = threading.Thread(target=drop)
thread.start()
for _ in range(1_000):
    loop = iter(flow)
    next(loop)
    loops.put(loop)
    del loop
    for _ in range(5):
        cpu.submit(int)
        io.submit(int)
loops.put(None)
thread.join()
"""


@pytest.mark.parametrize("program", [LOOPS, SUBSCRIPTIONS, ELSEWHERE], ids=["loops", "using", "dropped elsewhere"])
def test_a_thousand_flows_that_are_left_hang_no_thread_of_a_pool(program: str) -> None:
    """They are closed at any instruction: it took some ten of them until a thread waited for itself.

    What another thread has dropped is closed so without a GIL only.
    """
    code = HEAD + program + FOOT
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "[0, 1, 2]\n", done.stderr


LEAVING = """
import gc, sys, threading
from reactive_runtime import Flow

class Resource:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        print("leaves", flush=True)
        threading.Event().wait({seconds})
        print("left", flush=True)

class Subscriber:
    def on_subscribe(self, subscription):
        self.subscription, self.me = subscription, self
        subscription.request(1)

    def on_next(self, element): ...
    def on_error(self, error): ...
    def on_complete(self): ...

gc.disable()
Flow.using(Resource, lambda _: Flow.range(1_000).concat(Flow.never())).subscribe(Subscriber())
gc.collect()
"""


@pytest.mark.parametrize(
    ("seconds", "printed"), [("0.05", "leaves\nleft\n"), ("", "leaves\n")], ids=["slow", "endless"]
)
def test_the_end_of_the_process_waits_for_what_a_collection_has_ended(seconds: str, printed: str) -> None:
    """But not for ever. Its thread was stopped with the locks that it had, and the main thread might wait for one."""
    code = LEAVING.format(seconds=seconds)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == (printed, "")


def test_what_a_collection_ends_leaves_its_resource_behind_its_upstream() -> None:
    ended: list[str] = []

    class Resource(contextlib.AbstractContextManager[int]):
        def __enter__(self) -> int:
            return 1

        def __exit__(self, *_: object) -> None:
            ended.append("resource")

    def begin() -> None:
        subscriber = Sink(demand=1)
        subscriber.me = subscriber  # type: ignore[attr-defined]
        Flow.using(Resource, lambda _: upstream).subscribe(subscriber)
        until(lambda: bool(subscriber.elements))

    with ThreadPoolExecutor(1) as pool:
        upstream = Flow.range(1_000_000).subscribe_on(pool).do_on_cancel(lambda: ended.append("upstream"))
        begin()
        gc.collect()
        until(lambda: len(ended) == 2)
    assert ended == ["upstream", "resource"]


def test_at_the_end_of_the_interpreter_no_thread_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(primitives, "begin_thread", refuses)
    monkeypatch.setattr(garbage_collection.here, "collects", True)
    called: list[bool] = []
    garbage_collection.outside(lambda: called.append(True))
    assert called == [True]


LEFT = """
from concurrent.futures import ThreadPoolExecutor
from reactive_runtime import Flow

pool = ThreadPoolExecutor(1)
loop = iter(Flow.range(1_000).publish_on(pool))
next(loop)
"""


def test_a_loop_that_the_end_of_the_interpreter_finds_unfinished_prints_nothing() -> None:
    """From Python 3.13 on it is closed when modules are empty already."""
    done = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def in_a_collection(what: Callable[[], object]) -> None:
    """Call it in a finaliser that a collection of garbage calls."""

    class Freed:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            what()

    Freed()
    gc.collect()


@pytest.mark.parametrize("leaves", [OSError("left"), None], ids=["its exit fails", "its exit works"])
@pytest.mark.parametrize("fails", [ValueError("inside"), None], ids=["the flow fails", "the flow completes"])
def test_using_that_comes_to_its_own_end_in_a_collection_ends_as_it_does_elsewhere(
    fails: Exception | None, leaves: Exception | None
) -> None:
    """What a finaliser runs was not freed: its resource has been left when the call returns, with the user's error."""
    seen: list[Any] = []

    class Resource:
        def __enter__(self) -> int:
            return 1

        def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
            seen.append(error)
            if leaves is not None:
                raise leaves

    def run() -> None:
        flow = Flow.using(Resource, lambda n: Flow.just(n) if fails is None else Flow.error(fails))
        try:
            seen.append(flow.to_list().block())
        except Exception as error:
            seen.append(error)

    run()
    elsewhere = seen[:]
    seen.clear()
    in_a_collection(run)
    assert list(map(repr, seen)) == list(map(repr, elsewhere))
    assert list(map(repr, seen)) == list(map(repr, [fails, leaves or fails or [1]]))


def test_jobs_that_are_worked_off_between_a_look_and_the_next_are_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection, or the handler of a signal, may run a flow at any instruction, which takes what waits."""

    class WorkedOff(deque[Callable[[], object]]):
        def __bool__(self) -> bool:
            there = len(self) > 0
            while len(self):
                self.popleft()()
            return there

    ran: list[int] = []
    trampoline.launch(lambda: None)  # the thread's first job has been
    monkeypatch.setattr(trampoline.here, "waiting", WorkedOff())
    trampoline.work([lambda: ran.append(1), lambda: ran.append(2)])
    assert ran == [1, 2]
