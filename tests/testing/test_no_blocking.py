"""`no_blocking` finds each call that blocks a thread of its pools, and accuses no other call, thread or pool."""

# ruff: noqa: PT012  # leaving the block of a scope, or of `no_blocking`, raises

from __future__ import annotations

import builtins
import queue
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from time import sleep as sleep_by_name
from typing import Any

import pytest
from sinks import PATIENCE, wait_until

from reactive_runtime import Flow
from reactive_runtime.executors import ScheduledExecutor, SerialExecutor
from reactive_runtime.hot import PublishProcessor
from reactive_runtime.testing import BlockingCallError, no_blocking


@pytest.fixture(autouse=True)
def sleep_is_as_before() -> Iterator[None]:
    """The tests that come later in this process have the functions of the standard library."""
    before = time.sleep
    yield
    assert time.sleep is before


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2, thread_name_prefix="cpu") as made:
        yield made


def done() -> Future[int]:
    future: Future[int] = Future()
    future.set_result(1)
    return future


def full() -> queue.Queue[int]:
    made: queue.Queue[int] = queue.Queue(1)
    made.put(1)
    return made


def event(*, is_set: bool) -> threading.Event:
    made = threading.Event()
    if is_set:
        made.set()
    return made


def ended(process: bool) -> Any:
    made: Any = subprocess.Popen([sys.executable, "-c", ""]) if process else threading.Thread(target=int)
    made.start() if isinstance(made, threading.Thread) else made.wait()
    if isinstance(made, threading.Thread):
        made.join()
    return made


def waits(condition: threading.Condition) -> None:
    with condition:
        condition.wait()


def reads(data: bytes, *, timeout: float | None) -> None:
    left, right = socket.socketpair()
    with left, right:
        left.sendall(data)
        right.settimeout(timeout)
        right.recv(8)


def accepts() -> None:
    with socket.socket() as listening:
        listening.accept()


PROCESS: list[Any] = []
"""A process that reads its input, and one that has ended; started and closed on the thread of the test."""


def waits_for_process() -> None:
    PROCESS[0].wait()


def communicates() -> None:
    PROCESS[0].communicate()


def asks() -> None:
    input()  # looked up when it is called, as a user's function does


@pytest.fixture(autouse=True, scope="module")
def processes() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        PROCESS[:] = [process, ended(True)]
        yield
        process.kill()


BLOCKS: dict[str, tuple[str, Callable[[], object]]] = {
    "time.sleep": ("time.sleep", lambda: time.sleep(3600)),
    "condition": ("Condition.wait|a condition's wait", lambda: waits(threading.Condition())),
    "event": ("Event.wait", lambda: threading.Event().wait()),
    "semaphore": ("Semaphore.acquire", lambda: threading.Semaphore(0).acquire()),
    "barrier": ("Barrier.wait", lambda: threading.Barrier(2).wait()),
    "future": ("Future.result", lambda: Future().result()),
    "queue get": ("Queue.get", lambda: queue.Queue().get()),
    "queue put": ("Queue.put", lambda: full().put(2)),
    "join": ("Thread.join", lambda: threading.main_thread().join()),
    "process": ("Popen.wait", waits_for_process),
    "communicate": ("Popen.communicate", communicates),
    "input": ("input", asks),
    "socket": ("socket.recv", lambda: reads(b"", timeout=None)),
    "accept": ("socket.accept", accepts),
    "block": ("Flow.block", lambda: Flow.never().block()),
}

PASSES: dict[str, Callable[[], object]] = {
    "time.sleep": lambda: time.sleep(0),
    "event": lambda: event(is_set=True).wait(),
    "an event without a wait": lambda: event(is_set=False).wait(0),
    "semaphore": lambda: threading.Semaphore(1).acquire(),
    "future": lambda: done().result(),
    "queue get": lambda: full().get(),
    "queue put": lambda: queue.Queue[int]().put(1),
    "a queue without a wait": lambda: full().get_nowait(),
    "join": lambda: ended(False).join(),
    "process": lambda: PROCESS[1].wait() or 1,
    "communicate": lambda: PROCESS[1].communicate() or 1,
    "a look at a process": lambda: PROCESS[0].poll() or 1,
    "socket": lambda: reads(b"a", timeout=0),
    "lock": lambda: threading.Lock().acquire(),
    "a thread that starts": lambda: threading.Thread(target=int).start(),
    "another pool": lambda: ThreadPoolExecutor(1).submit(int),
    "block": lambda: Flow.range(3).block(),
    "a flow": lambda: Flow.range(3).publish_on(ThreadPoolExecutor(1)).subscribe(int),
}

WAYS: dict[str, tuple[str, Callable[[Callable[[int], Any], ThreadPoolExecutor], Flow[Any]]]] = {
    "map": ("map(user)", lambda user, pool: Flow.range(1).publish_on(pool).map(user)),
    "map_parallel": ("map_parallel(user, 1)", lambda user, pool: Flow.range(1).map_parallel(user, pool, concurrency=1)),
    "flat_map": (
        "map(user)",
        lambda user, pool: Flow.range(1).flat_map(lambda n: Flow.just(n).subscribe_on(pool).map(user)),
    ),
    "the function of flat_map": (
        "flat_map(user, 16)",
        lambda user, pool: Flow.range(1).publish_on(pool).flat_map(user, concurrency=16),
    ),
}


def named(operator: str, error: BaseException) -> None:
    text = str(error)
    assert f"in `{operator}`, put into the flow at {__file__}:" in text
    assert f" at {__file__}:" in text.partition("put into the flow")[2].partition(": ")[2]
    assert "ThreadPoolExecutor(cpu, 2 workers), which is declared non-blocking" in text


@pytest.mark.parametrize("kind", BLOCKS)
def test_each_kind_of_call_is_found(kind: str, pool: ThreadPoolExecutor) -> None:
    words, call = BLOCKS[kind]

    def user(n: int) -> object:
        return call() or n

    with pytest.raises(BlockingCallError, match=f"^({words}) blocks a thread of") as raised, no_blocking(pool):
        Flow.range(1).publish_on(pool).map(user).run(timeout=PATIENCE)
    named("map(user)", raised.value)


@pytest.mark.parametrize("kind", PASSES)
def test_its_twin_that_does_not_wait_is_not(kind: str, pool: ThreadPoolExecutor) -> None:
    with no_blocking(pool) as found:
        Flow.range(2).publish_on(pool).map(lambda n: (PASSES[kind](), n)[1]).run(timeout=PATIENCE)
    assert found == []


@pytest.mark.parametrize("way", WAYS)
def test_the_operator_that_calls_is_named(way: str, pool: ThreadPoolExecutor) -> None:
    def user(n: int) -> int:
        time.sleep(3600)
        return n

    operator, build = WAYS[way]
    with pytest.raises(BlockingCallError) as raised, no_blocking(pool):
        build(user, pool).run(timeout=PATIENCE)
    named(operator, raised.value)


# -- calls that are watched from outside -----------------------------------------------------------------------------


class Gate:
    """A lock, a queue, and a socket that nothing is given to before `found` has an error, or the test is over."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.other = threading.Lock()
        self.reentrant = threading.RLock()
        self.queue: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.left, self.right = socket.socketpair()

    def with_lock(self, n: int) -> int:
        with self.lock:
            return n

    def with_two(self, n: int) -> int:
        with self.other, self.lock:
            return n

    def acquires(self, n: int) -> int:
        self.lock.acquire()
        self.lock.release()
        return n

    def with_reentrant(self, n: int) -> int:
        with self.reentrant:
            return n

    def gets(self, n: int) -> int:
        return self.queue.get() + n

    def selects(self, n: int) -> int:
        select.select([self.right], [], [])
        return n


WATCHED = {
    "with_lock": "a lock's wait",
    "with_two": "a lock's wait",
    "acquires": "a lock's wait",
    "with_reentrant": "a lock's wait",
    "gets": "SimpleQueue.get",
    "selects": "select.select",
}


@pytest.mark.parametrize("method", WATCHED)
def test_a_wait_in_c_is_found_and_goes_on(method: str, pool: ThreadPoolExecutor) -> None:
    gate = Gate()
    with gate.left, gate.right:
        gate.lock.acquire()
        gate.reentrant.acquire()
        flow = Flow.range(1).publish_on(pool).map(getattr(gate, method))
        with pytest.raises(BlockingCallError, match=f"^{WATCHED[method]} blocks") as raised, no_blocking(pool) as found:
            future = flow.to_future()
            wait_until(lambda: bool(found))
            gate.lock.release()
            gate.reentrant.release()
            gate.queue.put(0)
            gate.left.sendall(b"a")
            assert future.result(PATIENCE) == 0
    named(f"map(Gate.{method})", raised.value)


def test_a_sleep_that_was_imported_by_name_is_found(pool: ThreadPoolExecutor) -> None:
    with pytest.raises(BlockingCallError, match=r"^time\.sleep blocks"), no_blocking(pool) as found:

        def sleeps(n: int) -> int:
            while not found:
                sleep_by_name(0.2)
            return n

        Flow.range(1).publish_on(pool).map(sleeps).run(timeout=PATIENCE)


def test_a_long_computation_is_no_wait(pool: ThreadPoolExecutor) -> None:
    gate = Gate()

    def computes(n: int) -> int:
        with gate.lock:
            return sum(range(5_000_000)) + n

    with gate.left, gate.right, no_blocking(pool) as found:
        Flow.range(2).publish_on(pool).map(computes).run(timeout=PATIENCE)
    assert found == []


def test_the_packages_own_locks_are_not_accused(pool: ThreadPoolExecutor) -> None:
    hot: PublishProcessor[int] = PublishProcessor(capacity=8)
    elements: list[int] = []
    hot.subscribe(elements.append)
    with no_blocking(pool):
        flows = [Flow.range(500).publish_on(pool, prefetch=4).map(hot.emit).to_future() for _ in range(4)]
        for flow in flows:
            flow.result(PATIENCE)
        Flow.range(100).parallel(2).run_on(pool).map(str).sequential().run(timeout=PATIENCE)
        Flow.range(50).flat_map(lambda n: Flow.range(3).subscribe_on(pool)).run(timeout=PATIENCE)


def test_an_idle_pool_is_not_accused(pool: ThreadPoolExecutor) -> None:
    pool.submit(int).result()
    with no_blocking(pool):
        assert not threading.Event().wait(0.3)  # longer than a wait may take


# -- where, and for how long -----------------------------------------------------------------------------------------


def test_other_threads_and_pools_may_block(pool: ThreadPoolExecutor) -> None:
    with ThreadPoolExecutor(1) as other, no_blocking(pool):
        assert other.submit(time.sleep, 0.001).result(PATIENCE) is None
        time.sleep(0.001)
        Flow.range(2).publish_on(other).do_on_next(lambda n: time.sleep(0.001)).run(timeout=PATIENCE)


def test_a_function_that_is_submitted_is_found_too(pool: ThreadPoolExecutor) -> None:
    def user() -> None:
        time.sleep(3600)

    with pytest.raises(BlockingCallError, match=f"non-blocking: user at {__file__}:"), no_blocking(pool):
        pool.submit(user).result(PATIENCE)


def test_executors_of_the_package_are_declared_too() -> None:
    with ScheduledExecutor() as clock, pytest.raises(BlockingCallError, match="ScheduledExecutor"), no_blocking(clock):
        Flow.timer(0, clock=clock).map(lambda n: time.sleep(3600)).run(timeout=PATIENCE)


def test_a_serial_executor_is_declared_apart_from_its_pool(pool: ThreadPoolExecutor) -> None:
    serial = SerialExecutor(pool)
    with pytest.raises(BlockingCallError, match="SerialExecutor"), no_blocking(serial):
        pool.submit(time.sleep, 0.001).result(PATIENCE)
        Flow.range(1).publish_on(serial).map(lambda n: time.sleep(3600)).run(timeout=PATIENCE)


def test_an_error_that_a_flow_swallows_is_raised_at_the_end(pool: ThreadPoolExecutor) -> None:
    with pytest.raises(BlockingCallError, match=r"^time\.sleep") as raised, no_blocking(pool):
        flow = Flow.range(1).publish_on(pool).map(lambda n: time.sleep(3600)).retry(1)
        assert flow.on_error_return(lambda _: 7).block(timeout=PATIENCE) == 7
    assert any("and time.sleep blocks" in note for note in raised.value.__notes__)


def test_a_test_may_look_at_the_errors_and_drop_them(pool: ThreadPoolExecutor) -> None:
    with no_blocking(pool) as found:
        with pytest.raises(BlockingCallError):
            Flow.range(1).publish_on(pool).map(lambda n: time.sleep(3600)).run(timeout=PATIENCE)
        assert len(found) == 1
        found.clear()


def test_everything_is_as_before_at_the_end(pool: ThreadPoolExecutor) -> None:
    def there() -> list[object]:
        owners = (threading.Condition, threading.Thread, subprocess.Popen, socket.socket)
        watchers = [thread for thread in threading.enumerate() if thread.name == "reactive-runtime-no-blocking"]
        return [time.sleep, builtins.input, *(dict(vars(owner)) for owner in owners), watchers]

    before = there()
    with no_blocking(pool):
        assert there() != before
        with no_blocking(pool):
            pass
        assert time.sleep is not before[0]
    assert there() == before
    assert pool.submit(time.sleep, 0.001).result(PATIENCE) is None


def test_a_patch_that_was_put_over_it_stays(pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", sleep_by_name)  # at the end it is this one again, and not the one in between
    with no_blocking(pool):
        monkeypatch.setattr(time, "sleep", int)
    sleep: object = time.sleep
    monkeypatch.setattr(time, "sleep", sleep_by_name)
    assert sleep is int


def test_an_error_of_the_block_goes_on(pool: ThreadPoolExecutor) -> None:
    with pytest.raises(OSError, match="the block"), no_blocking(pool) as found:
        flow = Flow.range(1).publish_on(pool).map(lambda n: time.sleep(3600))
        assert flow.on_error_return(lambda _: 7).block(timeout=PATIENCE) == 7
        assert found
        raise OSError("the block")


def test_it_needs_executors_of_threads() -> None:
    with pytest.raises(TypeError, match="name one executor or more"), no_blocking():
        pass
    with pytest.raises(TypeError, match=r"no_blocking: a concurrent\.futures\.Executor is needed"), no_blocking(3):  # type: ignore[arg-type]
        pass
