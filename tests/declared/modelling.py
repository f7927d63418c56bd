"""The functions that models are made of: those that operators call, and those that say what comes out."""

from __future__ import annotations

import asyncio
import itertools
import queue
import tempfile
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from models.running import Entry, Items, Place
from models.scripts import Item, Made

from declared.values import queue_with
from reactive_runtime import Flow


class BrokenError(LookupError):
    """The error that a function raises."""


BROKEN = BrokenError("the function is broken")


def made(item: Item) -> Made:
    """The function of most entries. It fails for 7."""
    if item.value == 7:
        raise BrokenError("the function is broken")
    return Made(*item)


async def made_later(item: Item) -> Made:
    return made(item)


def breaks(item: Item) -> bool:
    return item.value == 7


def whole(items: Items) -> Items:
    """Those before the first that the function fails for."""
    return list(itertools.takewhile(lambda item: not breaks(item), items))


def all_made(items: Items) -> list[Any]:
    return [Made(*item) for item in whole(items)]


def others_made(items: Items) -> list[Any]:
    """Of calls that threads make side by side, in no order, the failing one may be the last to return."""
    return [Made(*item) for item in items if not breaks(item)]


def breaking(items: Items, end: str) -> str:
    return "error" if any(map(breaks, items)) else end


def calls(
    apply: Callable[[Flow[Any], Place], Flow[Any]], most: Callable[[int, int], int] | None = None, **more: Any
) -> Entry:
    """Each element becomes what `made` makes of it."""
    given = {"model": all_made, "end": breaking, "eats": breaks, "most": most, "fails": BrokenError, **more}
    return Entry(apply, **given)


def even(item: Any) -> bool:
    return bool(item.value % 2 == 0)


def number(n: int) -> Item:
    """An element that does not come from the source of the script."""
    return Item(-1, n)


def chunks(items: list[Any], n: int) -> list[list[Any]]:
    return [items[i : i + n] for i in range(0, len(items), n)]


def full(items: Items, end: str, n: int) -> list[list[Any]]:
    """Lists of n; one that is not full comes with a completion only."""
    return [chunk for chunk in chunks(items, n) if end == "complete" or len(chunk) == n]


def strided(items: list[Any], end: str, n: int, skip: int) -> list[list[Any]]:
    """Lists of n that begin at every `skip`-th; those that are not full come with a completion only."""
    made = [items[i : i + n] for i in range(0, len(items), skip)]
    return [chunk for chunk in made if end == "complete" or len(chunk) == n]


def cut(items: list[Any], end: str, ends: Callable[[Any], bool], *, before: bool = False) -> list[list[Any]]:
    """Lists that end behind, or before, the elements that `ends` is true for."""
    made: list[list[Any]] = [[]]
    for item in items:
        if before and ends(item):
            made.append([])
        made[-1].append(item)
        if not before and ends(item):
            made.append([])
    return [chunk for chunk in (made if end == "complete" else made[:-1]) if chunk]


def exactly(asked: int, passed: int) -> int:
    return asked


def ahead(n: int) -> Callable[[int, int], int]:
    return lambda asked, passed: passed + n


def no_end(items: Items, end: str) -> str:
    return "complete" if end == "error" else end


def again(times: int) -> Callable[[Items, str], list[Any]]:
    """The source once more, after each error but the last."""
    return lambda xs, end: [Item(i, v.value) for i, v in enumerate(xs * (times + 1 if end == "error" else 1))]


def repeated(times: int) -> Callable[[Items, str], list[Any]]:
    return lambda xs, end: [Item(i, v.value) for i, v in enumerate(xs * (times if end == "complete" else 1))]


def passing(apply: Callable[[Flow[Any], Place], Flow[Any]], **more: Any) -> Entry:
    """All goes through, and demand exactly."""
    return Entry(apply, **{"most": exactly, **more})


def expanded(items: Items) -> list[Any]:
    """In the order of a breadth-first search."""
    out: list[Any] = []
    level: list[Any] = list(items)
    while level:
        out += level
        level = [Item(-1, item.value - 3) for item in level if item.value >= 3]
    return out


def keeping(flow: Flow[Any]) -> Flow[Any]:
    """With something that is wanted by no one at its side."""
    return flow


def merged(xs: Items, others: Items, end: str) -> list[Any]:
    """Two lists, merged: the next of each is needed for the next element."""
    out: list[Any] = []
    left, right = list(xs), list(others)
    while left and right:
        first = left if key(left[0]) <= key(right[0]) else right
        out.append(first.pop(0))
    if not right:
        return out + left
    return out + right if end == "complete" and not left else out


def key(item: Any) -> Any:
    return item.value


def by_parity(xs: list[int]) -> list[int]:
    first: dict[int, int] = {}
    for n in xs:
        first.setdefault(n % 2, n)
    return list(first.values())


# -- sources ----------------------------------------------------------------------------------------------------


def file_of(xs: list[int]) -> Flow[Any]:
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write("".join(f"{x}\n" for x in xs))
    return Flow.from_file(file.name).map(int).finalize(Path(file.name).unlink)


def future_of(xs: list[int]) -> Flow[Any]:
    future: Future[Any] = Future()
    future.set_result(sum(xs))
    return Flow.from_future(future)


def async_of(xs: list[int]) -> Flow[Any]:
    async def elements() -> AsyncIterator[int]:
        for x in xs:
            yield x

    return Flow.from_async(elements, prefetch=2)


def coroutine_of(xs: list[int]) -> Flow[Any]:
    async def total() -> int:
        return sum(xs)

    return Flow.from_coroutine(total)


def queue_of(xs: list[int]) -> Flow[Any]:
    return Flow.from_queue(queue_with(*xs, "end"), end="end")


def create_of(overflow: Any) -> Callable[[list[int]], Flow[Any]]:
    def begin(xs: list[int]) -> Flow[Any]:
        def push(emitter: Any) -> None:
            for x in xs:
                emitter.emit(x)
            emitter.complete()

        return Flow.create(push, overflow=overflow, capacity=99)

    return begin


def as_given(xs: list[int]) -> list[Any]:
    return list(xs)


def nothing(xs: list[int]) -> list[Any]:
    return []


# -- sinks ------------------------------------------------------------------------------------------------------

PATIENCE = 30


def all_queued(flow: Flow[int]) -> list[int]:
    elements: queue.SimpleQueue[Any] = queue.SimpleQueue()
    future = flow.to_queue(elements, end="end")
    got = list(iter(lambda: elements.get(timeout=PATIENCE), "end"))
    future.result(PATIENCE)
    return got


def all_each(flow: Flow[int]) -> list[int]:
    got: list[int] = []
    flow.for_each(got.append, timeout=PATIENCE)
    return got


def all_awaited(flow: Flow[int]) -> list[int]:
    async def main() -> list[int]:
        return [n async for n in flow.iterate_async(prefetch=2)]

    return asyncio.run(main())


def all_run(flow: Flow[int]) -> list[int]:
    got: list[int] = []
    flow.do_on_next(got.append).run(timeout=PATIENCE)
    return got


def all_written(flow: Flow[int]) -> list[int]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "numbers.txt")
        try:
            lines = flow.map(str).to_file(file, timeout=PATIENCE)
        except BaseException:
            assert list(Path(folder).iterdir()) == []
            raise
        written = [int(line) for line in file.read_text().splitlines()]
        assert lines == len(written)
        return written
