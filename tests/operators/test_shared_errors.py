"""One exception that is signalled to many subscribers, on many threads: none of them writes to it."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import decimal
import gc
import json
import queue
import subprocess
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

import pytest
from sinks import PATIENCE, Sink, wait_until

from operators.catalogue import CASES, Case, Place
from reactive_runtime import Flow
from reactive_runtime._core.failures.error_carrier import SignalledError, own_copy
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


async def awaited(flow: Flow[Any]) -> list[Any]:
    return [element async for element in flow]


WAITS: dict[str, Callable[[Flow[Any], Executor], object]] = {
    "a loop": lambda flow, pool: list(flow),
    "a loop over what another thread gives": lambda flow, pool: list(flow.publish_on(pool)),
    "a loop of a coroutine": lambda flow, pool: asyncio.run(awaited(flow)),
    "block": lambda flow, pool: flow.block(),
    "run": lambda flow, pool: flow.publish_on(pool).run(),
    "for_each": lambda flow, pool: flow.for_each(str),
    "to_future": lambda flow, pool: flow.to_future().result(PATIENCE),
    "to_queue": lambda flow, pool: flow.to_queue(queue.SimpleQueue()).result(PATIENCE),
    "materialized and back": lambda flow, pool: list(flow.on_error_resume(Flow.error).materialize().dematerialize()),
}


@pytest.mark.parametrize("wait", WAITS)
def test_what_waits_for_a_flow_raises_a_copy_and_without_a_context(wait: str, pool: ThreadPoolExecutor) -> None:
    error = caught()
    with pytest.raises(OSError, match="shared") as raised:
        WAITS[wait](Flow.range(2).concat_with(Flow.error(error)), pool)
    assert type(raised.value) is OSError
    assert raised.value is not error
    assert raised.value.__context__ is None
    assert frames(raised.value.__traceback__)[-1] == "caught", "where it was raised first"
    assert (error.__context__, frames(error.__traceback__)) == (None, ["caught"])


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("shared", SHARED)
def test_a_second_wait_for_one_error_shows_nothing_of_the_first(
    shared: str, wait: str, pool: ThreadPoolExecutor
) -> None:
    """Nor does one beside it, on another thread: each has a traceback of its own. It would grow with each wait."""
    flow = SHARED[shared](caught())

    def one() -> list[str]:
        with pytest.raises(OSError, match="shared") as raised:
            WAITS[wait](flow, pool)
        return frames(raised.value.__traceback__)

    def another() -> list[str]:
        return one()

    first, second, third = one(), another(), one()
    assert third == first
    assert second == first


@pytest.mark.parametrize("shared", SHARED)
def test_threads_that_wait_for_one_error_show_none_of_each_others_frames(shared: str) -> None:
    flow = SHARED[shared](caught())
    seen: list[int] = []
    barrier = threading.Barrier(2)

    def waits() -> None:
        for _ in range(100):
            barrier.wait(PATIENCE)
            with pytest.raises(OSError, match="shared") as raised:
                flow.block()
            barrier.wait(PATIENCE)  # both have raised
            seen.append(frames(raised.value.__traceback__).count("waits"))

    threads = [threading.Thread(target=waits) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 200


class PlainError(Exception):
    """Makes its message of what it is made with."""

    def __init__(self, number: int) -> None:
        super().__init__(f"number {number}")
        self.number = number


class SlottedError(OSError):
    __slots__ = ("number", "unset")

    def __init__(self, number: int) -> None:
        super().__init__(number, "slotted", "a file")
        self.number = number


class RenewedError(ValueError):
    def __new__(cls, *, number: int) -> RenewedError:
        made = super().__new__(cls, number)
        made.number = number
        return made

    def __init__(self, *, number: int) -> None:
        super().__init__()

    number: int


class BothError(KeyError, OSError):
    pass


class StubbornError(Exception):
    """Its class answers for none of what Python has it by."""

    args = property(lambda self: None)
    __dict__ = property(lambda self: {})
    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        raise ZeroDivisionError(name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise ZeroDivisionError(name)

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError


def of_python() -> Iterator[BaseException]:
    """One of each class of Python's own, for each list of arguments that it takes."""
    lists: list[tuple[Any, ...]] = [
        (), ("text",), (2, "none"), (2, "none", "a file"), (2, "none", "a file", None, "another"),
        ("utf-8", b"abc", 0, 1, "no"), ("utf-8", "abc", 0, 1, "no"), ("abc", 0, 1, "no"),
        ("many", [ValueError(1), OSError(2)]), ("wrong", ("file.py", 1, 2, "line")),
    ]  # fmt: skip
    for kind in vars(builtins).values():
        if isinstance(kind, type) and issubclass(kind, BaseException):
            for arguments in lists:
                with contextlib.suppress(TypeError, ValueError):
                    yield kind(*arguments)


def others() -> Iterator[BaseException]:
    yield from (
        PlainError(1),
        SlottedError(2),
        RenewedError(number=3),
        BothError(4, "text"),
        json.JSONDecodeError("no", "text", 1),
    )
    yield from (
        ImportError("no", name="a", path="b"),
        AttributeError("no", name="a", obj=[1]),
        asyncio.CancelledError(),
    )
    yield from (
        subprocess.CalledProcessError(1, ["a"], b"out"),
        BlockingIOError(1, "text", 3),
        decimal.InvalidOperation(),
    )


def all_of(error: BaseException) -> dict[str, Any]:
    """Each attribute that has a value and is no method, also those that no `__dict__` has."""
    values = {name: getattr(error, name, None) for name in dir(error) if not name.startswith("__")}
    return {name: value for name, value in values.items() if not callable(value)} | {
        "str": str(error), "repr": repr(error), "dict": vars(error), "args": error.args, "notes": error.__notes__,
    }  # fmt: skip


def test_a_copy_has_all_that_its_error_has() -> None:
    for error in (*of_python(), *others()):
        error.more = [1]  # type: ignore[attr-defined]
        error.add_note("a note")
        error.__cause__, error.__context__ = KeyError("cause"), ValueError("context")
        copy = own_copy(error)
        assert copy is not error, repr(error)
        assert type(copy) is type(error)
        assert all_of(copy) == all_of(error)
        assert (copy.__cause__, copy.__context__) == (error.__cause__, error.__context__)
        copy.add_note("of the copy")
        assert error.__notes__ == ["a note"]


@pytest.mark.parametrize("suppressed", [True, False])
def test_a_copy_shows_its_context_where_its_error_does(suppressed: bool) -> None:
    error = caught()
    error.__context__, error.__suppress_context__ = KeyError("context"), suppressed
    assert own_copy(error).__suppress_context__ == suppressed
    assert traceback.format_exception(own_copy(error)) == traceback.format_exception(error)


def test_what_cannot_be_copied_without_its_class_is_given_back_itself() -> None:
    class ClosingError(Exception):
        def __del__(self) -> None:
            pass

    class ManyErrors(ExceptionGroup[Exception]):
        def __new__(cls, first: Exception) -> ManyErrors:
            made = super().__new__(cls, "many", [first])
            made.args = (first,)
            return made

    for error in (ClosingError(1), ManyErrors(OSError(1))):
        assert own_copy(error) is error


@pytest.mark.parametrize("wait", WAITS)
def test_an_error_of_whatever_class_is_raised(wait: str, pool: ThreadPoolExecutor) -> None:
    with pytest.raises(StubbornError) as raised:
        WAITS[wait](Flow.error(StubbornError(1, 2)), pool)
    assert BaseException.args.__get__(raised.value) == (1, 2)  # type: ignore[attr-defined]
