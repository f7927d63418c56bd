"""Values and functions that several declarations use."""

from __future__ import annotations

import queue
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from reactive_runtime import DeadLetter, Flow
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hot import PublishProcessor

ALL = list(range(10))
"""The elements of the source of a case."""

FAILED = OSError("the source is broken")


def numbers() -> Iterator[int]:
    yield from range(10)


def failing() -> Iterator[int]:
    yield from range(3)
    raise FAILED


def plus(n: int) -> int:
    return n + 1


async def plus_async(n: int) -> int:
    return n + 1


def odd(n: int) -> bool:
    return n % 2 == 1


def whole_third(n: int) -> int:
    """A third of `n`. It fails for a number that is no multiple of three."""
    if n % 3:
        raise ValueError(f"{n} is no multiple of three")
    return n // 3


def set_aside(letter: DeadLetter) -> None:
    """A receiver of dead letters."""


def emitted(n: int, emit: Callable[[int], None]) -> None:
    for _ in range(n % 3):
        emit(n)


def done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def queue_with(*items: Any) -> queue.Queue[Any]:
    filled: queue.Queue[Any] = queue.Queue()
    for item in items:
        filled.put(item)
    return filled


async def seven() -> int:
    return 7


def pushed(emitter: Any) -> None:
    for n in range(10):
        emitter.emit(n)
    emitter.complete()


async def numbers_async() -> AsyncIterator[int]:
    for n in range(10):
        yield n


async def awaited(elements: AsyncIterator[Any]) -> list[Any]:
    return [element async for element in elements]


# -- for the explorer ---------------------------------------------------------------------------------------------


def pool(workers: int = 1) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, "pool")


def shared(make: Callable[[ThreadPoolExecutor], Any]) -> Callable[[], Any]:
    """A publisher on one pool with one thread: with the one that requests, there are two."""
    return lambda: make(pool())


def on(executor: ThreadPoolExecutor, elements: int) -> Flow[int]:
    return Flow.range(elements).subscribe_on(executor)


def same(n: int) -> int:
    return n


def fails(n: int) -> int:
    raise OSError("broken")


def pushed_on_a_pool() -> Flow[int]:
    def push(emitter: Any) -> None:
        for n in range(2):
            emitter.emit(n)
        emitter.complete()

    executor = pool()
    return Flow.create(lambda emitter: executor.submit(push, emitter))


# -- for the type checkers ----------------------------------------------------------------------------------------

threads = ThreadPoolExecutor()
clock = VirtualTimeExecutor()
f = Flow.range(3)
words = Flow.just("a")
rows: Flow[tuple[Any, ...]] = Flow.empty()
letters: PublishProcessor[DeadLetter] = PublishProcessor()
ends_with_none: queue.Queue[int | None] = queue.Queue()
ends_with_a_word: queue.Queue[int | str] = queue.Queue()


def text(n: int) -> str:
    return str(n)


def texts(n: int) -> Flow[str]:
    return Flow.just(str(n))


async def text_async(n: int) -> str:
    return str(n)


def times(n: int, a: str) -> str:
    return a * n


def add(total: float, n: int) -> float:
    return total + n
