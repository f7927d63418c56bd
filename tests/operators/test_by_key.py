"""`map_by_key`: what the models do not show. The calls of one key never overlap, and those of several do."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Sink

from reactive_runtime import Flow, hooks
from reactive_runtime.errors import RejectedError
from reactive_runtime.executors import TrampolineExecutor

KEYS = 50


def test_each_key_keeps_its_order_on_four_threads() -> None:
    begun: dict[int, list[int]] = defaultdict(list)
    inside = [threading.Lock() for _ in range(KEYS)]

    def call(n: int) -> int:
        assert inside[n % KEYS].acquire(blocking=False), "two calls of one key at the same time"
        begun[n % KEYS].append(n)
        inside[n % KEYS].release()
        return n

    with ThreadPoolExecutor(4) as pool:
        flow = Flow.range(5000).map_by_key(call, lambda n: n % KEYS, pool, prefetch=64)
        done = list(flow)
    for key in range(KEYS):
        expected = list(range(key, 5000, KEYS))
        assert begun[key] == expected
        assert [n for n in done if n % KEYS == key] == expected


def test_a_slow_key_does_not_hold_up_the_others() -> None:
    go_on = threading.Event()

    def call(n: int) -> int:
        assert n or go_on.wait(PATIENCE)
        return n

    with ThreadPoolExecutor(2) as pool:
        sink = Sink(100)
        others = threading.Event()

        def seen(n: int) -> None:
            if n == 9:
                others.set()

        flow = Flow.range(10).map_by_key(call, lambda n: min(n, 1), pool, concurrency=2).do_on_next(seen)
        flow.subscribe(sink)
        assert others.wait(PATIENCE), "the calls of one key wait for another key"
        go_on.set()
        sink.wait()
    assert sink.elements == [*range(1, 10), 0]


def test_a_task_gives_its_thread_to_others_that_wait() -> None:
    """One thread, and a call that makes another task wait: that runs before the last call of the flow."""
    ran = threading.Event()
    tried: list[bool] = []
    with ThreadPoolExecutor(1) as pool:
        clock = threading.Event()

        def call(n: int) -> int:
            if n == 0:
                pool.submit(ran.set)
            tried.append(ran.is_set())
            clock.wait(0.001)
            return n

        Flow.range(200).map_by_key(call, lambda n: n, pool).run(timeout=PATIENCE)
    assert tried[-1], "the task of the flow kept the only thread of the pool"


class _Unhashable:
    __hash__ = None  # type: ignore[assignment]


def test_a_key_without_a_hash_ends_the_flow() -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(TypeError, match="unhashable"):
        Flow.range(3).map_by_key(lambda n: n, lambda n: _Unhashable(), pool).run(timeout=PATIENCE)  # type: ignore[arg-type, return-value]


class _Changing:
    """A key whose hash changes, or raises, when `call` is made."""

    def __init__(self, raises: bool) -> None:
        self.raises = raises
        self.changed = 0

    def __hash__(self) -> int:
        if self.changed and self.raises:
            raise ValueError("no hash any more")
        return self.changed

    def call(self) -> _Changing:
        self.changed = 3
        return self


@pytest.mark.parametrize("raises", [False, True])
def test_a_key_that_changes_is_named_and_loses_nothing(raises: bool) -> None:
    """The first key stays as it is; the result of the second has been made, and goes to the hook."""
    first, second = _Changing(raises), _Changing(raises)
    with hooks.captured() as drops, TrampolineExecutor() as here:
        sink = Sink(100)
        flow = Flow.just(first, second).map_by_key(lambda e: e if e is first else e.call(), lambda e: e, here)
        flow.subscribe(sink)
        sink.wait()
    assert sink.elements == [first]
    assert isinstance(sink.error, ValueError if raises else RuntimeError)
    assert raises or re.search("map_by_key.*: the hash, or .* of the key .*_Changing.* has changed", str(sink.error))
    assert any("map_by_key" in note for note in sink.error.__notes__)
    assert [drop.element for drop in drops] == [second]


class _Name:
    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Name) and self.name == other.name


def test_a_key_that_becomes_another_frees_no_call_of_that() -> None:
    """The second key becomes the first, whose call is under way: the third element waits for that, or is not taken."""
    first, second = _Name("first"), _Name("second")
    begun: list[int] = []
    go_on, news = threading.Event(), threading.Event()

    def call(n: int) -> int:
        begun.append(n)
        if n == 0:
            assert go_on.wait(PATIENCE)
        elif n == 1:
            second.name = "first"
        else:
            news.set()
        return n

    with ThreadPoolExecutor(2) as pool:
        flow = Flow.range(3).map_by_key(call, lambda n: second if n == 1 else first, pool, concurrency=2, prefetch=2)
        sink = Sink(100)
        flow.do_on_error(lambda error: news.set()).subscribe(sink)
        assert news.wait(PATIENCE)
        go_on.set()
        sink.wait()
    assert begun == [0, 1], "two calls of one key at the same time"
    assert isinstance(sink.error, RuntimeError)


def test_elements_behind_a_cancelled_key_go_to_the_hook() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def call(n: int) -> int:
        inside.set()
        assert go_on.wait(PATIENCE)
        return n

    with hooks.captured() as drops, ThreadPoolExecutor(1) as pool:
        sink = Sink(100)
        Flow.range(4).map_by_key(call, lambda n: 0, pool).subscribe(sink)
        assert inside.wait(PATIENCE)
        sink.subscription.cancel()
        go_on.set()
    assert sorted(drop.element for drop in drops) == [0, 1, 2, 3]


def test_a_pool_that_is_shut_down_is_an_error() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(RejectedError, match="map_by_key"):
        Flow.range(3).map_by_key(lambda n: n, lambda n: n, pool).run(timeout=PATIENCE)


def test_a_task_cancelled_in_the_queue_of_a_pool_is_an_error() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        inside.set()
        assert go_on.wait(PATIENCE)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(hold)
        assert inside.wait(PATIENCE)
        sink: Any = Sink(10)
        Flow.range(3).map_by_key(lambda n: n, lambda n: n, pool).subscribe(sink)
        pool.shutdown(wait=False, cancel_futures=True)
        sink.wait()
        go_on.set()
    assert isinstance(sink.error, RejectedError)
