"""One exception that is signalled to many subscribers, on many threads: none of them writes to it."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

import pytest
from sinks import PATIENCE, Sink, wait_until

from operators.catalogue import CASES, Case, Place
from reactive_runtime import Flow
from reactive_runtime._core.passing import SignalledError
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hot import PublishProcessor


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4, "shared-errors") as executor:
        yield executor


def frames(traceback: TracebackType | None) -> list[str]:
    names = []
    while traceback is not None:
        names.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    return names


def caught() -> OSError:
    """An error with a traceback of one frame."""
    try:
        raise OSError("shared")
    except OSError as error:
        return error


class Looking(Sink):
    """Looks at its error when it comes."""

    seen: tuple[BaseException, list[str], BaseException | None] | None = None

    def on_error(self, error: BaseException, /) -> None:
        self.seen = error, frames(error.__traceback__), error.__context__
        super().on_error(error)


def ended(flow: Any, sink: Sink, clock: VirtualTimeExecutor) -> None:
    flow.subscribe(sink)
    for _ in range(int(PATIENCE * 200)):
        if sink.ended.wait(0.0 if sink.ended.is_set() else 0.001):
            return
        clock.advance(0.25)
    raise AssertionError(f"no end after {sink.signals[-3:]}")


ORIGINS: dict[str, Callable[[OSError, Executor], Flow[Any]]] = {
    "here": lambda error, pool: Flow.range(3).concat_with(Flow.error(error)),
    "on another thread": lambda error, pool: Flow.range(3).concat_with(Flow.error(error)).subscribe_on(pool),
}


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_operator_does_not_write_to_an_error_of_its_upstream(
    case: Case, origin: str, pool: ThreadPoolExecutor
) -> None:
    error = caught()
    place, sink = Place(pool, VirtualTimeExecutor()), Looking()
    ended(case.apply(ORIGINS[origin](error, pool), place), sink, place.clock)
    if sink.seen is not None and sink.seen[0] is error:
        assert sink.seen[1:] == (["caught"], None)
    assert frames(error.__traceback__) == ["caught"]
    assert error.__context__ is None
    assert not [signal for signal in sink.signals for part in signal if isinstance(part, SignalledError)]


def future_of(error: OSError) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def hot_of(error: OSError) -> Flow[Any]:
    processor: PublishProcessor[int] = PublishProcessor()
    processor.on_error(error)
    return processor


SHARED: dict[str, Callable[[OSError], Flow[Any]]] = {
    "error": Flow.error,
    "from_future": lambda error: Flow.from_future(future_of(error)),
    "a hot source": hot_of,
    "cache": lambda error: Flow.error(error).cache(),
    "map_error": lambda error: Flow.error(ValueError("another")).map_error(lambda other: error),
}


@pytest.mark.parametrize("shared", SHARED)
def test_threads_that_get_one_error_keep_none_of_each_others_subscribers(shared: str, pool: ThreadPoolExecutor) -> None:
    error = caught()
    flow = Flow.range(2).concat_with(SHARED[shared](error)).subscribe_on(pool).retry(3).publish_on(pool)
    for _ in range(10):
        sinks = [Looking() for _ in range(8)]
        refs = [weakref.ref(sink) for sink in sinks]
        barrier = threading.Barrier(4)

        def subscribe(mine: list[Looking], barrier: threading.Barrier = barrier) -> None:
            barrier.wait(PATIENCE)
            for sink in mine:
                flow.subscribe(sink)

        threads = [threading.Thread(target=subscribe, args=(sinks[n::4],)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for sink in sinks:
            sink.wait()
            assert sink.seen is not None
            assert (sink.seen[0], sink.seen[1]) == (error, ["caught"])
        del sinks, sink, threads, thread, subscribe
        wait_until(lambda refs=refs: gc.collect() >= 0 and not any(ref() for ref in refs))  # type: ignore[misc]


def test_a_context_manager_of_using_gets_the_error_and_not_its_carrier() -> None:
    error = caught()
    left: list[tuple[Any, ...]] = []

    class Resource:
        def __enter__(self) -> int:
            return 1

        def __exit__(self, *how: Any) -> None:
            left.append(how)

    sink = Sink()
    Flow.using(Resource, lambda one: Flow.just(one).concat_with(Flow.error(error))).subscribe(sink)
    assert sink.error is error
    assert left == [(OSError, error, error.__traceback__)]
    assert frames(error.__traceback__) == ["caught"]


LOOPS: dict[str, Callable[[Flow[Any], Executor], object]] = {
    "a loop": lambda flow, pool: list(flow),
    "a loop over what another thread gives": lambda flow, pool: list(flow.publish_on(pool)),
    "block": lambda flow, pool: flow.block(),
    "materialized and back": lambda flow, pool: list(flow.on_error_resume(Flow.error).materialize().dematerialize()),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_what_waits_for_a_flow_raises_the_error_itself_and_without_a_context(
    loop: str, pool: ThreadPoolExecutor
) -> None:
    error = caught()
    with pytest.raises(OSError, match="shared") as raised:
        LOOPS[loop](Flow.range(2).concat_with(Flow.error(error)), pool)
    assert raised.value is error
    assert error.__context__ is None
