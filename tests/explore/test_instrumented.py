"""The stand-ins do what their originals do: each program here holds for real threads and under every schedule."""

from __future__ import annotations

import abc
import linecache
import logging
import os
import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from threading import Lock as ImportedLock
from typing import Any, ClassVar

import pytest
from searching import ENGINES

from reactive_runtime._core.failures.dropping import error_dropped
from reactive_runtime.errors import ExploreError, ScenarioError
from reactive_runtime.explore import explore
from reactive_runtime.explore._schedule.carriers import greenlets_run
from reactive_runtime.hooks import captured


def locks() -> None:
    lock = threading.Lock()
    assert lock.acquire()
    assert lock.locked()
    assert not lock.acquire(blocking=False)
    assert not lock.acquire(timeout=0.01)
    lock.release()
    with pytest.raises(RuntimeError):
        lock.release()
    with pytest.raises(ValueError, match="timeout"):
        lock.acquire(blocking=False, timeout=1)
    with lock:
        assert lock.locked()


def a_lock_is_released_by_another_thread() -> None:
    lock = threading.Lock()
    lock.acquire()
    thread = threading.Thread(target=lock.release)
    thread.start()
    assert lock.acquire(timeout=10)
    thread.join()


def reentrant_locks() -> None:
    lock = threading.RLock()
    held: list[bool] = []
    with lock, lock:
        thread = threading.Thread(target=lambda: held.append(lock.acquire(blocking=False)))
        thread.start()
        thread.join()
    assert held == [False]
    with pytest.raises(RuntimeError):
        lock.release()


def conditions() -> None:
    changed = threading.Condition()
    queue: list[int] = []

    def put() -> None:
        for n in range(2):
            with changed:
                queue.append(n)
                changed.notify()

    thread = threading.Thread(target=put)
    thread.start()
    for _ in range(2):
        with changed:
            assert changed.wait_for(lambda: queue, timeout=10)
            queue.pop()
    thread.join()
    with changed:
        assert not changed.wait(0.01)
        assert not changed.wait_for(lambda: False, 0.01)
    with pytest.raises(RuntimeError):
        changed.wait()
    with pytest.raises(RuntimeError):
        changed.notify()


def a_condition_gives_up_a_reentrant_lock_whole() -> None:
    changed = threading.Condition(threading.RLock())
    seen: list[str] = []

    def notify() -> None:
        with changed:
            seen.append("in")
            changed.notify_all()

    with changed, changed:
        thread = threading.Thread(target=notify)
        thread.start()
        changed.wait_for(lambda: seen)
    thread.join()


def events() -> None:
    event = threading.Event()
    assert not event.is_set()
    assert not event.wait(0.01)
    thread = threading.Thread(target=event.set)
    thread.start()
    assert event.wait(10)
    thread.join()
    event.clear()
    assert not event.is_set()


def semaphores() -> None:
    semaphore = threading.Semaphore(2)
    assert semaphore.acquire()
    assert semaphore.acquire(blocking=False)
    assert not semaphore.acquire(blocking=False)
    assert not semaphore.acquire(timeout=0.01)
    thread = threading.Thread(target=semaphore.release, args=(2,))
    thread.start()
    assert semaphore.acquire(timeout=10)
    thread.join()
    with pytest.raises(ValueError, match=">= 0"):
        threading.Semaphore(-1)
    limited = threading.BoundedSemaphore(1)
    with limited:
        pass
    with pytest.raises(ValueError, match="released too many"):
        limited.release()


def barriers() -> None:
    barrier = threading.Barrier(2, timeout=10)
    numbers: list[int] = []
    thread = threading.Thread(target=lambda: numbers.append(barrier.wait()))
    thread.start()
    numbers.append(barrier.wait())
    thread.join()
    assert sorted(numbers) == [0, 1]
    with pytest.raises(threading.BrokenBarrierError):
        threading.Barrier(2).wait(0.01)


def queues() -> None:
    one: queue.Queue[int] = queue.Queue(1)

    def put() -> None:
        for n in range(3):
            one.put(n)

    thread = threading.Thread(target=put)
    thread.start()
    assert [one.get(timeout=10) for _ in range(3)] == [0, 1, 2]
    thread.join()
    with pytest.raises(queue.Empty):
        one.get_nowait()
    with pytest.raises(queue.Empty):
        one.get(timeout=0.01)
    one.put(1)
    with pytest.raises(queue.Full):
        one.put_nowait(2)
    with pytest.raises(queue.Full):
        one.put(2, timeout=0.01)


def simple_and_other_queues() -> None:
    simple: queue.SimpleQueue[int] = queue.SimpleQueue()
    thread = threading.Thread(target=simple.put, args=(1,))
    thread.start()
    assert simple.get(timeout=10) == 1
    thread.join()
    last: queue.LifoQueue[int] = queue.LifoQueue()
    least: queue.PriorityQueue[int] = queue.PriorityQueue()
    for n in (2, 1, 3):
        last.put(n)
        least.put(n)
    assert (last.get(), least.get()) == (3, 1)

    def done() -> None:
        for _ in range(3):
            last.task_done()

    thread = threading.Thread(target=done)
    thread.start()
    last.join()
    thread.join()


def threads() -> None:
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(threading.current_thread().name), name="worker", daemon=True)
    assert not thread.is_alive()
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert seen == ["worker"]
    assert thread.ident is not None
    with pytest.raises(RuntimeError):
        thread.start()
    with pytest.raises(RuntimeError):
        threading.current_thread().join()


def a_join_times_out() -> None:
    go = threading.Event()
    thread = threading.Thread(target=go.wait)
    thread.start()
    thread.join(0.01)
    assert thread.is_alive()
    go.set()
    thread.join()


def a_thread_of_a_class_of_its_own() -> None:
    class Worker(threading.Thread):
        result = 0

        def run(self) -> None:
            self.result = 1

    worker = Worker()
    worker.start()
    worker.join()
    assert worker.result == 1


def timers() -> None:
    fired = threading.Event()
    timer = threading.Timer(0.01, fired.set)
    timer.start()
    assert fired.wait(10)
    timer.join()
    other = threading.Timer(1_000, fired.clear)
    other.start()
    other.cancel()
    other.join()
    assert fired.is_set()


class _Notes(threading.local):
    """Made anew for each thread, with defaults of its class, a method and a property."""

    count = 0

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []

    def say(self, word: str) -> None:
        self.words.append(word)
        self.count += 1

    @property
    def last(self) -> str:
        return self.words[-1]


class _Named(threading.local):
    def __init__(self, name: str) -> None:
        self.name = name


class _Slotted(threading.local):
    __slots__ = ("shared",)

    shared: int


NOTES, PLAIN = _Notes(), threading.local()


def thread_locals_of_a_module() -> None:
    seen: list[Any] = []

    def each(name: str) -> None:
        for word in (name, name * 2):
            NOTES.say(word)
            PLAIN.word = word
        seen.append((NOTES.count, NOTES.last, tuple(vars(NOTES)["words"]), PLAIN.word))

    threads = [threading.Thread(target=each, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [(2, name * 2, (name, name * 2), name * 2) for name in "ab"]


def thread_locals() -> None:
    local = threading.local()
    local.name = "main"
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(hasattr(local, "name")))
    thread.start()
    thread.join()
    assert seen == [False]
    assert local.name == "main"
    del local.name
    assert not hasattr(local, "name")


def pools() -> None:
    with ThreadPoolExecutor(2, "pool") as pool:
        futures = [pool.submit(pow, n, 2) for n in range(4)]
        assert [future.result(10) for future in futures] == [0, 1, 4, 9]
        assert sorted(future.result() for future in as_completed(futures, timeout=10)) == [0, 1, 4, 9]
        done, left = wait(futures, timeout=10)
        assert (len(done), len(left)) == (4, 0)
        assert list(pool.map(str, range(3))) == ["0", "1", "2"]
        failed = pool.submit(int, "x")
        assert isinstance(failed.exception(10), ValueError)
    with pytest.raises(RuntimeError):
        pool.submit(int)
    with pytest.raises(ValueError, match="greater than 0"):
        ThreadPoolExecutor(0)


def a_pool_has_so_many_workers_and_no_more() -> None:
    started = threading.Semaphore(0)
    go = threading.Event()

    def task() -> None:
        started.release()
        go.wait()

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(task) for _ in range(3)]
        started.acquire()
        started.acquire()
        assert not started.acquire(timeout=0.01)
        assert futures[2].cancel()
        go.set()
    assert futures[2].cancelled()


def a_pool_initialises_its_threads() -> None:
    seen: list[int] = []
    with ThreadPoolExecutor(1, initializer=seen.append, initargs=(1,)) as pool:
        pool.submit(int).result(10)
    assert seen[0] == 1


def a_pool_is_shut_down_with_tasks_waiting() -> None:
    go, started = threading.Event(), threading.Event()

    def task() -> None:
        started.set()
        go.wait()

    pool = ThreadPoolExecutor(1)
    first, second = pool.submit(task), pool.submit(int)
    started.wait()
    pool.shutdown(wait=False, cancel_futures=True)
    assert second.cancelled()
    go.set()
    first.result(10)


def futures() -> None:
    future: Future[int] = Future()
    called: list[int] = []
    future.add_done_callback(lambda item: called.append(item.result()))
    with pytest.raises((TimeoutError, FutureTimeout)):
        future.result(0.01)
    thread = threading.Thread(target=future.set_result, args=(7,))
    thread.start()
    assert future.result(10) == 7
    thread.join()
    assert called == [7]


def clocks() -> None:
    before = time.monotonic(), time.time(), time.perf_counter(), time.monotonic_ns()
    time.sleep(0.02)
    after = time.monotonic(), time.time(), time.perf_counter(), time.monotonic_ns()
    assert all(b - a >= 0.015 for a, b in zip(before[:3], after[:3], strict=True))
    assert after[3] - before[3] >= 15_000_000
    with pytest.raises(ValueError, match="non-negative"):
        time.sleep(-1)


PROGRAMS: list[Callable[[], None]] = [
    locks,
    a_lock_is_released_by_another_thread,
    reentrant_locks,
    conditions,
    a_condition_gives_up_a_reentrant_lock_whole,
    events,
    semaphores,
    barriers,
    queues,
    simple_and_other_queues,
    threads,
    a_join_times_out,
    a_thread_of_a_class_of_its_own,
    timers,
    thread_locals,
    thread_locals_of_a_module,
    pools,
    a_pool_has_so_many_workers_and_no_more,
    a_pool_initialises_its_threads,
    a_pool_is_shut_down_with_tasks_waiting,
    futures,
    clocks,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda item: item.__name__)
def test_it_holds_for_real_threads(program: Callable[[], None]) -> None:
    program()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda item: item.__name__)
def test_it_holds_under_many_schedules(program: Callable[[], None], engine: Any) -> None:
    explore(program, schedules=150, engine=engine).assert_holds()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda item: item.__name__)
def test_it_holds_with_points_at_lines(program: Callable[[], None]) -> None:
    explore(program, schedules=30, points="line").assert_holds()


@pytest.mark.parametrize("make", [lambda: _Named("each"), _Slotted], ids=["arguments", "slots"])
def test_a_thread_local_without_a_stand_in_is_refused_where_threads_share_one(
    make: Callable[[], threading.local], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "KEPT", make(), raising=False)
    assert explore(thread_locals_of_a_module, schedules=5).assert_holds().schedules
    why = r"\.KEPT is a thread-local .*: no stand-in .* engine='threads'$" if greenlets_run() else "before Python 3.14"
    with pytest.raises(ScenarioError if greenlets_run() else ExploreError, match=why):
        explore(thread_locals_of_a_module, schedules=5, engine="greenlets")


FAILS_ONCE: list[str] = []


class _FailsOnce(threading.local):
    def __init__(self) -> None:
        if FAILS_ONCE:
            raise ValueError(FAILS_ONCE.pop())
        self.made = True


FAILING = _FailsOnce()


def a_thread_local_that_could_not_be_made_is_made_again() -> None:
    seen: list[object] = []

    def each() -> None:
        FAILS_ONCE.append("once")
        with pytest.raises(ValueError, match="once"):
            _ = FAILING.made
        seen.append(FAILING.made)

    thread = threading.Thread(target=each)
    thread.start()
    thread.join()
    assert seen == [True]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_thread_local_that_could_not_be_made_is_made_again(engine: Any) -> None:
    a_thread_local_that_could_not_be_made_is_made_again()
    explore(a_thread_local_that_could_not_be_made_is_made_again, schedules=5, engine=engine).assert_holds()


def test_time_is_virtual() -> None:
    class Sleepy:
        def __init__(self) -> None:
            self.woken: list[str] = []

        def actor_long(self) -> None:
            time.sleep(100_000)
            self.woken.append("long")

        def actor_short(self) -> None:
            time.sleep(10)
            assert time.monotonic() == 10
            self.woken.append("short")

        def at_end(self) -> None:
            assert self.woken == ["short", "long"]

    assert str(explore(Sleepy, early_timeouts=0).assert_holds().verdict) == "exhausted"


def test_those_who_are_due_at_the_same_time_go_on_in_every_order() -> None:
    class Due:
        def __init__(self) -> None:
            self.woken: list[str] = []

        def actor_a(self) -> None:
            time.sleep(1)
            self.woken.append("a")

        def actor_b(self) -> None:
            time.sleep(1)
            self.woken.append("b")

        def at_end(self) -> None:
            assert self.woken == ["a", "b"]

    assert not explore(Due).holds


def test_names_that_a_module_has_imported_are_replaced() -> None:
    class Imported:
        def __init__(self) -> None:
            self.lock = ImportedLock()
            self.count = 0

        def actor_a(self) -> None:
            with self.lock:
                self.count += 1

        actor_b = actor_a

        def at_end(self) -> None:
            assert self.count == 2
            assert type(self.lock).__module__ != "_thread"

    real = type(ImportedLock())
    explore(Imported).assert_holds()
    assert type(ImportedLock()) is real


TOP = threading.Lock()


def test_a_lock_at_the_top_of_a_module_is_replaced_for_the_time() -> None:
    class Top:
        def __init__(self) -> None:
            self.count = 0

        def actor_a(self) -> None:
            with TOP:
                self.count += 1

        def actor_b(self) -> None:
            with TOP:
                self.count += 1

        def at_end(self) -> None:
            assert self.count == 2

    real = TOP
    assert str(explore(Top).assert_holds().verdict) == "exhausted"
    assert TOP is real


def test_what_is_made_in_a_run_works_after_it() -> None:
    made: dict[str, Any] = {}

    def program() -> None:
        made.update(lock=threading.Lock(), event=threading.Event(), condition=threading.Condition())

    explore(program, schedules=1)
    with made["lock"], made["condition"]:
        made["event"].set()
        made["condition"].notify_all()
    assert made["event"].is_set()
    assert made["event"].wait(1)


class Finalised:
    """A generator is dropped, and its `finally` waits for a lock while another thread fails."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def generator(self) -> Iterator[int]:
        try:
            yield 1
        finally:
            for _ in range(2):
                with self.lock:
                    pass

    def actor_releases(self) -> None:
        generator = self.generator()
        next(generator)
        del generator

    def actor_fails(self) -> None:
        with self.lock:
            pass
        raise ValueError("as planned")


def test_a_thread_of_before_waits_as_ever_while_something_is_explored() -> None:
    """Not part of it, and so are its conditions: a writer of traces, a watchdog, a logger of another test."""
    wake = threading.Event()
    waits: list[BaseException | None] = []
    asked, asks = os.pipe()
    answered, answers = os.pipe()

    def wait_when_asked() -> None:
        while os.read(asked, 1) == b"w":
            for _ in range(3):
                try:
                    wake.wait(0.0001)
                except BaseException as error:
                    waits.append(error)
                else:
                    waits.append(None)
            os.write(answers, b".")

    def program() -> None:
        os.write(asks, b"w")
        os.read(answered, 1)  # so the waits begin and end while the program runs, whatever it would do meanwhile

    waiting = threading.Thread(target=wait_when_asked)
    waiting.start()
    try:
        explore(program, schedules=3).assert_holds()
    finally:
        os.write(asks, b"x")
        waiting.join()
        for end in (asked, asks, answered, answers):
            os.close(end)
    assert set(waits) == {None}


def test_a_run_that_is_taken_down_inside_of_a_finaliser_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    explore(Finalised, schedules=1, shrink=False)  # it may say that rewriting takes long
    capfd.readouterr()
    for seed in range(40):
        assert not explore(Finalised, strategy="random", seed=seed, schedules=1, shrink=False).holds
    assert capfd.readouterr().err == ""


class Counts:
    """A lock that all objects of the class share."""

    lock = threading.Lock()
    again = threading.RLock()

    def __init__(self) -> None:
        self.count = 0

    def actor_a(self) -> None:
        with self.lock, self.again:
            self.count += 1

    actor_b = actor_a

    def at_end(self) -> None:
        assert self.count == 2


def test_a_lock_of_a_class_is_replaced_for_the_time() -> None:
    before = Counts.lock, Counts.again
    assert explore(Counts, strategy="dpor", hang=1).holds
    assert (Counts.lock, Counts.again) == before


class Meta(type):
    """A metaclass, which has a lock, and lets no attribute of its classes be changed."""

    lock = threading.Lock()

    def __setattr__(cls, name: str, value: object) -> None:
        raise AttributeError(name)

    __delattr__ = None  # type: ignore[assignment]


class Outer:
    """Locks of classes that are not at the top, or are made by a metaclass."""

    class Inner:
        lock = threading.Lock()

        class Innermost(abc.ABC):  # noqa: B024
            lock = threading.RLock()

            class Made(metaclass=Meta):
                again = threading.Lock()

    itself: Any


Outer.itself = Outer

OWNERS: dict[str, tuple[Any, str]] = {
    "a class in a class": (Outer.Inner, "lock"),
    "an abstract class": (Outer.Inner.Innermost, "lock"),
    "a class of a metaclass": (Outer.Inner.Innermost.Made, "again"),
    "a metaclass": (Meta, "lock"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OWNERS)
def test_a_lock_of_any_class_of_a_module_is_replaced_for_the_time(name: str, engine: Any) -> None:
    owner, attribute = OWNERS[name]

    class Locked:
        def __init__(self) -> None:
            self.count = 0

        def actor_a(self) -> None:
            with getattr(owner, attribute):
                self.count += 1

        actor_b = actor_a

        def at_end(self) -> None:
            assert self.count == 2

    before = getattr(owner, attribute)
    stood_in: list[Any] = []
    explore(lambda: stood_in.append(getattr(owner, attribute)), schedules=1)
    assert stood_in[0] is not before  # else it would block the threads for real, where greenlets can't be given up
    assert str(explore(Locked, strategy="dpor", hang=1, engine=engine).assert_holds().verdict) == "exhausted"
    assert getattr(owner, attribute) is before


class LeftOpen:
    """A thread waits for ever; what the run leaves is a cycle, and reports something when it is finalised."""

    def __init__(self) -> None:
        self.generator = self.opened()
        next(self.generator)

    def opened(self) -> Iterator[int]:
        try:
            yield 1
        finally:
            error_dropped("the generator was left", OSError("broken"))
            logging.getLogger("left").error("the generator was left")

    def actor_waits(self) -> None:
        threading.Event().wait()


def test_what_a_run_that_is_taken_down_has_left_says_nothing_when_it_is_finalised(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with captured() as drops:
        assert not explore(LeftOpen, schedules=1, shrink=False).holds
    assert drops == []
    assert caplog.records == []


class Kept:
    """Two threads each look at an object with a finaliser that they have made, and drop it.

    Without a GIL, what another thread has made is finalised when that one runs again.
    """

    finalised: ClassVar[list[str]] = []

    def __init__(self) -> None:
        self.finalised.clear()
        self.generators: list[Iterator[int]] = []
        self.things: list[Any] = []

    def generator(self) -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            self.finalised.append("generator")

    def actor_generator(self) -> None:
        self.generators.append(self.generator())
        generator = self.generators.pop()
        next(generator)
        del generator
        assert self.finalised.count("generator") == 1

    def actor_thing(self) -> None:
        self.things.append(Thing(self.finalised))
        thing = self.things.pop()
        thing.seen = 1
        assert thing.seen == 1
        del thing
        assert self.finalised.count("thing") == 1


class Thing:
    def __init__(self, finalised: list[str]) -> None:
        self.finalised = finalised
        self.seen = 0

    def __del__(self) -> None:
        self.finalised.append("thing")


def test_what_has_a_finaliser_dies_when_the_program_releases_it() -> None:
    assert str(explore(Kept).assert_holds().verdict) == "exhausted"


class InACycle:
    """What it has made can only be collected."""

    made: ClassVar[weakref.WeakSet[Any]] = weakref.WeakSet()

    def __init__(self) -> None:
        self.me = self
        self.made.add(self)

    def actor_looks(self) -> None:
        assert self.me is self


def test_nothing_that_a_run_has_made_is_left_for_a_later_exploration() -> None:
    explore(InACycle, schedules=3).assert_holds()
    assert len(InACycle.made) == 0


def test_a_program_without_a_source_has_points_at_its_instructions() -> None:
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(
        "class Counter:\n"
        "    def __init__(self): self.count = 0\n"
        "    def actor_a(self): self.count += 1\n"
        "    def actor_b(self): self.count += 1\n"
        "    def at_end(self): assert self.count == 2\n",
        namespace,
    )
    result = explore(namespace["Counter"])
    assert not result.holds
    assert "no source of <string>" in result.notes[0]
    assert result.failure is not None
    assert "STORE_ATTR" in result.failure.diagram()


@pytest.mark.parametrize("namespace", [{"__name__": __name__}, {}], ids=["of a module", "of none"])
@pytest.mark.parametrize(
    "other", ["", "class Counter:\n    pass\n", "not Python\n"], ids=["none", "another", "no Python"]
)
def test_a_source_that_is_not_the_programs_is_none(
    other: str, namespace: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 3.13 on `python -c` and others leave a source under the name that all programs without a file have."""
    monkeypatch.setitem(linecache.cache, "<string>", (len(other), None, other.splitlines(keepends=True), "<string>"))
    scope = dict(namespace)
    exec(
        "class Counter:\n"
        "    def __init__(self): self.count = 0\n"
        "    def actor_a(self): self.count += 1\n"
        "    def actor_b(self): self.count += 1\n"
        "    def at_end(self): assert self.count == 2\n",
        scope,
    )
    result = explore(scope["Counter"])
    assert not result.holds
    assert result.notes == ["no source of <string>: instructions are points there"]


def counting_with_a_lock_of_a_class() -> Any:
    class Inside:
        lock: ClassVar[Any] = threading.Lock()

    class Counting:
        def __init__(self) -> None:
            self.value = 0

        def actor_a(self) -> None:
            with Inside.lock:
                self.value += 1

        actor_b = actor_a

        def at_end(self) -> None:
            assert self.value == 2

    return Counting


def counting_with_a_lock_around(lock: Any) -> Any:
    class Counting:
        def __init__(self) -> None:
            self.value = 0

        def add(self) -> None:
            with lock:
                self.value += 1

        actor_a = actor_b = add

        def at_end(self) -> None:
            assert self.value == 2

    return Counting


def counting_with_a_lock_by_default() -> Any:
    class Counting:
        def __init__(self) -> None:
            self.value = 0

        def add(self, lock: Any = threading.Lock(), *, again: Any = threading.RLock()) -> None:  # noqa: B008
            with lock, again, again:
                self.value += 1

        def actor_a(self) -> None:
            self.add()

        actor_b = actor_a

        def at_end(self) -> None:
            assert self.value == 2

    return Counting


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "made",
    [
        counting_with_a_lock_of_a_class,
        lambda: counting_with_a_lock_around(threading.Lock()),
        lambda: counting_with_a_lock_around(threading.RLock()),
        counting_with_a_lock_by_default,
    ],
    ids=["class", "cell", "cell of a lock to be taken again", "default"],
)
def test_a_lock_that_was_made_before_is_replaced_however_it_is_reached(made: Callable[[], Any], engine: Any) -> None:
    program = made()
    assert str(explore(program, strategy="dpor", engine=engine, hang=2).assert_holds().verdict) == "exhausted"
    program().actor_a()  # and the real one is back


@dataclass
class WithALock:
    """The function that is generated for it holds the factory in a closure."""

    value: int = 0
    lock: Any = field(default_factory=threading.Lock, compare=False)

    def actor_a(self) -> None:
        with self.lock:
            self.value += 1

    actor_b = actor_a

    def at_end(self) -> None:
        assert self.value == 2


class WithALockOfAClassAttribute(WithALock):
    factory: Any = threading.Lock

    def __init__(self) -> None:
        super().__init__(lock=self.factory())


class WithALockOfADefault(WithALock):
    def __init__(self, factory: Any = threading.Lock, *, further: Any = threading.RLock) -> None:
        super().__init__(lock=factory())
        with further() as _, further():
            pass


class WithALockOfATuple(WithALock):
    def __init__(self, factories: Any = (threading.RLock, threading.Lock)) -> None:
        super().__init__(lock=factories[0]())


def of_a_closure(factory: Any) -> Any:
    class WithALockOfAClosure(WithALock):
        def __init__(self) -> None:
            super().__init__(lock=factory())

    return WithALockOfAClosure


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "program",
    [
        WithALock,
        WithALockOfAClassAttribute,
        WithALockOfADefault,
        WithALockOfATuple,
        of_a_closure(threading.Lock),
        of_a_closure(threading.Condition),
        of_a_closure(threading.Semaphore),
    ],
    ids=["dataclass", "class", "default", "tuple", "cell", "cell of a condition", "cell of a semaphore"],
)
def test_what_makes_locks_is_replaced_however_it_is_reached(program: Any, engine: Any) -> None:
    real = type(program().lock)
    assert str(explore(program, strategy="dpor", engine=engine, hang=2).assert_holds().verdict) == "exhausted"
    assert type(program().lock) is real


class KeepsTime:
    """A function in C is no method, and its stand-in is none either."""

    now: Any = time.monotonic
    sleep: Any = time.sleep

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.began = now()

    def actor_a(self) -> None:
        self.sleep(60)
        assert self.now() - self.began >= 60

    def actor_b(self) -> None:
        assert self.now() >= self.began


def test_a_clock_is_replaced_however_it_is_reached() -> None:
    explore(KeepsTime, strategy="dpor", hang=2).assert_holds()
    assert vars(KeepsTime)["now"] is time.monotonic
