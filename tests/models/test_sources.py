"""Each source gives what its model gives, for any demand."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sinks import wait_until

from models.scripts import Keeping
from reactive_runtime import Flow


def _file(xs: list[int]) -> Flow[Any]:
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write("".join(f"{x}\n" for x in xs))
    return Flow.from_file(file.name).map(int).finalize(Path(file.name).unlink)


def _future(xs: list[int]) -> Flow[Any]:
    future: Future[Any] = Future()
    future.set_result(sum(xs))
    return Flow.from_future(future)


def _async(xs: list[int]) -> Flow[Any]:
    async def elements() -> AsyncIterator[int]:
        for x in xs:
            yield x

    return Flow.from_async(elements, prefetch=2)


def _create(overflow: Any) -> Callable[[list[int]], Flow[Any]]:
    def begin(xs: list[int]) -> Flow[Any]:
        def push(emitter: Any) -> None:
            for x in xs:
                emitter.emit(x)
            emitter.complete()

        return Flow.create(push, overflow=overflow, capacity=99)

    return begin


def same(xs: list[int]) -> list[Any]:
    return list(xs)


def none(xs: list[int]) -> list[Any]:
    return []


SOURCES: dict[str, tuple[Callable[[list[int]], Flow[Any]], Callable[[list[int]], list[Any]]]] = {
    "just": (lambda xs: Flow.just(*xs), same),
    "empty": (lambda xs: Flow.empty(), none),
    "range": (lambda xs: Flow.range(len(xs)), lambda xs: list(range(len(xs)))),
    "from_iterable": (Flow.from_iterable, same),
    "from_supplier": (lambda xs: Flow.from_supplier(lambda: iter(xs)), same),
    "from_callable": (lambda xs: Flow.from_callable(lambda: sum(xs)), lambda xs: [sum(xs)]),
    "from_future": (_future, lambda xs: [sum(xs)]),
    "from_async": (_async, same),
    "from_publisher": (lambda xs: Flow.from_publisher(Flow.from_iterable(xs)), same),
    "from_file": (_file, same),
    "generate": (lambda xs: Flow.generate(0, lambda n: (xs[n], n + 1) if n < len(xs) else None), same),
    "create": (_create("error"), same),
    "create, oldest": (_create("oldest"), same),
    "create, newest": (_create("newest"), same),
    "defer": (lambda xs: Flow.defer(lambda: Flow.from_iterable(xs)), same),
    "using": (lambda xs: Flow.using(lambda: contextlib.nullcontext(xs), Flow.from_iterable), same),
}


@pytest.mark.parametrize("name", SOURCES)
@settings(max_examples=20)
@given(xs=st.lists(st.integers(0, 9), max_size=8), steps=st.lists(st.integers(1, 4), min_size=1, max_size=6))
def test_a_source_gives_what_its_model_gives(name: str, xs: list[int], steps: list[int]) -> None:
    make, model = SOURCES[name]
    expected = model(xs)
    sink = Keeping(0)
    make(xs).subscribe(sink)
    for n in [*steps, 99]:
        if sink.end:
            break
        sink.request(n)
        due = expected[: sink.asked]
        wait_until(lambda due=due: len(sink.elements) >= len(due))  # type: ignore[misc]
        assert sink.elements == due
    wait_until(lambda: bool(sink.end))
    assert (sink.end, sink.wrong) == ("complete", "")
