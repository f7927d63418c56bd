"""SIGTERM drains a scope, loses nothing, and leaves the handler that was there before."""

# ruff: noqa: PT012  # leaving the block of a scope, or of `no_blocking`, raises

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Numbers, wait_until

from reactive_runtime import Flow
from reactive_runtime.scopes import on_sigterm, scope

NUMBERS = Flow.generate(0, lambda n: (n, n + 1))


@pytest.fixture(autouse=True)
def former() -> Iterator[Any]:
    """The handler of this process is as before after each test."""
    before = signal.getsignal(signal.SIGTERM)
    yield before
    after = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, before)
    assert after is before


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4, thread_name_prefix="io") as made:
        yield made


@pytest.mark.parametrize(
    "signals",
    [
        pytest.param(20, marks=pytest.mark.timeout(600)),
        pytest.param(1000, marks=[pytest.mark.nightly, pytest.mark.timeout(3600)]),
    ],
)
def test_signals_at_random_moments_lose_nothing(signals: int) -> None:
    program = [sys.executable, "benchmarks/sigterm.py", "--signals", str(signals)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(program, capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.startswith(f"{signals} signals, {signals} processes drained, ")
    assert "lost: 0 of boundary, 0 of flat_map, map_parallel, 0 of hot source" in run.stdout
    elements = re.search(r"(\d+) elements", run.stdout)
    assert elements is not None
    assert int(elements[1]) > 0


def test_the_signal_drains_and_the_block_is_left(pool: ThreadPoolExecutor) -> None:
    numbers, elements = Numbers(), list[int]()
    with scope() as s:
        on_sigterm(s, within=PATIENCE)
        s.start(Flow.from_iterable(numbers).subscribe_on(pool).publish_on(pool), elements.append)
        os.kill(os.getpid(), signal.SIGTERM)
    assert elements == list(range(numbers.pulled))


def test_a_signal_before_the_first_flow_lets_it_complete(pool: ThreadPoolExecutor) -> None:
    with scope() as s:
        on_sigterm(s, within=PATIENCE)
        signal.raise_signal(signal.SIGTERM)
        running = s.start(NUMBERS.subscribe_on(pool))
        signal.raise_signal(signal.SIGTERM)
    assert running.future.done()


def test_the_handler_before_is_called_and_comes_back(pool: ThreadPoolExecutor) -> None:
    calls: list[int] = []

    def before(number: int, frame: Any) -> None:
        calls.append(number)

    original = signal.signal(signal.SIGTERM, before)
    try:
        with scope() as s:
            on_sigterm(s, within=PATIENCE)
            on_sigterm(s, within=PATIENCE)
            s.start(NUMBERS.subscribe_on(pool))
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is before
        assert calls == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, original)


def test_a_handler_before_that_exits_does_not_cut_the_drain_short(pool: ThreadPoolExecutor) -> None:
    began, given, elements = threading.Event(), list[int](), list[int]()

    def before(number: int, frame: Any) -> None:
        raise SystemExit(7)

    def work(n: int) -> int:
        given.append(n)
        began.set()
        wait_until(lambda: s._members.drains)
        return n

    original = signal.signal(signal.SIGTERM, before)
    try:
        with pytest.raises(SystemExit, match="7"), scope() as s:
            on_sigterm(s, within=PATIENCE)
            s.start(NUMBERS.subscribe_on(pool).map(work), elements.append)
            assert began.wait(PATIENCE)
            signal.raise_signal(signal.SIGTERM)
        assert elements == given
    finally:
        signal.signal(signal.SIGTERM, original)


def test_an_exit_before_the_drain_begins_waits_for_it(pool: ThreadPoolExecutor) -> None:
    """The handler has noted the signal, and the thread that drains is late."""
    futures: list[Any] = []

    def drains(members: Any) -> None:
        wait_until(lambda: bool(members._waits))
        members.drain("on_sigterm", None, PATIENCE, None)

    with pytest.raises(SystemExit), scope() as s:
        futures += [s.start(NUMBERS.subscribe_on(pool)).future, pool.submit(drains, s._members)]
        s._members.signalled = True
        raise SystemExit
    assert [type(future.exception(PATIENCE)) for future in futures] == [type(None)] * 2


def test_the_handler_takes_no_lock_that_this_thread_may_hold(pool: ThreadPoolExecutor) -> None:
    with scope() as s:
        on_sigterm(s, within=PATIENCE)
        running = s.start(NUMBERS.subscribe_on(pool))
        with s._members.changed, s._members.valve._lock, running._member.gate.switch._lock:
            signal.raise_signal(signal.SIGTERM)
    assert running.future.done()


def test_nested_scopes_are_both_drained(pool: ThreadPoolExecutor) -> None:
    with scope() as outer:
        on_sigterm(outer, within=PATIENCE)
        first = outer.start(NUMBERS.subscribe_on(pool))
        with scope() as inner:
            on_sigterm(inner, within=PATIENCE)
            second = inner.start(NUMBERS.subscribe_on(pool))
            signal.raise_signal(signal.SIGTERM)
        assert second.future.done()
    assert first.future.done()


def test_a_handler_that_outlives_its_scope_calls_the_one_before(pool: ThreadPoolExecutor) -> None:
    calls: list[int] = []
    original = signal.signal(signal.SIGTERM, lambda number, _: calls.append(number))
    try:
        first, second = scope(), scope()
        with first:
            on_sigterm(first, within=PATIENCE)
            second.__enter__()
            on_sigterm(second, within=PATIENCE)
        running = second.start(NUMBERS.subscribe_on(pool))
        signal.raise_signal(signal.SIGTERM)
        second.__exit__(None, None, None)
        assert running.future.done()
        assert calls == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, original)


def test_a_signal_to_a_forked_child_is_its_own() -> None:
    program = """
import os, signal
from reactive_runtime import Flow
from reactive_runtime.scopes import on_sigterm, scope
with scope() as s:
    on_sigterm(s, within=60)
    running = s.start(Flow.never())
    child = os.fork()
    if not child:
        signal.raise_signal(signal.SIGTERM)
        os._exit(0)
    print("child:", os.WTERMSIG(os.waitpid(child, 0)[1]), "drained:", s._members.drains)
    signal.raise_signal(signal.SIGTERM)
print("parent drained:", running.future.done())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert run.stdout == "child: 15 drained: False\nparent drained: True\n", run.stderr


def test_no_thread_and_no_file_are_left() -> None:
    with scope() as s:
        on_sigterm(s, within=PATIENCE)
    threads, files = set(threading.enumerate()), len(os.listdir("/dev/fd"))
    for _ in range(3):
        with scope() as s:
            on_sigterm(s, within=PATIENCE)
    assert set(threading.enumerate()) - threads == set()  # others, of earlier tests, may have ended meanwhile
    assert len(os.listdir("/dev/fd")) <= files


# -- bad input -------------------------------------------------------------------------------------------------------


def test_it_needs_a_scope_and_a_number_of_seconds() -> None:
    with pytest.raises(TypeError, match="on_sigterm: a Scope is needed"):
        on_sigterm(Flow.never(), within=1)  # type: ignore[arg-type]
    with scope() as s:
        with pytest.raises(ValueError, match=r"on_sigterm: within must be a number of seconds from 0"):
            on_sigterm(s, within=-1)
        with pytest.raises(TypeError, match=r"on_sigterm: within must be a number"):
            on_sigterm(s, within="10")  # type: ignore[arg-type]


def test_it_needs_the_main_thread(pool: ThreadPoolExecutor) -> None:
    with scope() as s, pytest.raises(ValueError, match="on the main thread only"):
        pool.submit(on_sigterm, s, within=1).result(PATIENCE)


def test_it_needs_a_block_that_has_begun_and_not_ended() -> None:
    s = scope()
    with pytest.raises(RuntimeError, match="has not been entered"):
        on_sigterm(s, within=1)
    with s:
        pass
    with pytest.raises(RuntimeError, match="the scope has ended"):
        on_sigterm(s, within=1)
