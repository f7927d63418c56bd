"""Each synchronous operator is held to a plain-Python model: fused, not fused, and across a boundary."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reactive_runtime import Flow

POOL = ThreadPoolExecutor(2, "models")

Model = Callable[[list[int], int], list[Any]]

MODELS: dict[str, tuple[Callable[[Flow[int], int], Flow[Any]], Model]] = {
    "map": (lambda f, k: f.map(lambda n: n + k), lambda xs, k: [n + k for n in xs]),
    "starmap": (lambda f, k: f.map(lambda n: (n, k)).starmap(max), lambda xs, k: [max(n, k) for n in xs]),
    "map_not_none": (
        lambda f, k: f.map_not_none(lambda n: n if n > k else None),
        lambda xs, k: [n for n in xs if n > k],
    ),
    "handle": (lambda f, k: f.handle(lambda n, emit: emit(n)), lambda xs, k: xs),
    "flat_map_iterable": (
        lambda f, k: f.flat_map_iterable(lambda n: [n] * k),
        lambda xs, k: [n for n in xs for _ in range(k)],
    ),
    "flatten": (lambda f, k: f.map(range).flatten(), lambda xs, k: [m for n in xs for m in range(n)]),
    "enumerate": (lambda f, k: f.enumerate(k), lambda xs, k: list(enumerate(xs, k))),
    "pairwise": (lambda f, k: f.pairwise(), lambda xs, k: list(itertools.pairwise(xs))),
    "scan": (lambda f, k: f.scan(lambda a, n: a + n, k), lambda xs, k: list(itertools.accumulate(xs, initial=k))[1:]),
    "batch": (lambda f, k: f.batch(k + 1), lambda xs, k: [xs[i : i + k + 1] for i in range(0, len(xs), k + 1)]),
    "end_with": (lambda f, k: f.end_with(k, k), lambda xs, k: [*xs, k, k]),
    "start_with": (lambda f, k: f.start_with(k, k), lambda xs, k: [k, k, *xs]),
    "materialize": (lambda f, k: f.materialize().dematerialize(), lambda xs, k: xs),
    "filter": (lambda f, k: f.filter(lambda n: n > k), lambda xs, k: [n for n in xs if n > k]),
    "distinct": (lambda f, k: f.distinct(), lambda xs, k: list(dict.fromkeys(xs))),
    "distinct by key": (lambda f, k: f.distinct(key=lambda n: n % 2), lambda xs, k: _by_parity(xs)),
    "distinct_until_changed": (
        lambda f, k: f.distinct_until_changed(),
        lambda xs, k: [n for n, _ in itertools.groupby(xs)],
    ),
    "take": (lambda f, k: f.take(k), lambda xs, k: xs[:k]),
    "take_while": (
        lambda f, k: f.take_while(lambda n: n != k),
        lambda xs, k: list(itertools.takewhile(lambda n: n != k, xs)),
    ),
    "skip": (lambda f, k: f.skip(k), lambda xs, k: xs[k:]),
    "skip_while": (
        lambda f, k: f.skip_while(lambda n: n != k),
        lambda xs, k: list(itertools.dropwhile(lambda n: n != k, xs)),
    ),
    "first": (lambda f, k: f.first(k), lambda xs, k: [xs[0] if xs else k]),
    "last": (lambda f, k: f.last(k), lambda xs, k: [xs[-1] if xs else k]),
    "element_at": (lambda f, k: f.element_at(k, -1), lambda xs, k: [xs[k] if k < len(xs) else -1]),
    "default_if_empty": (lambda f, k: f.default_if_empty(k), lambda xs, k: xs or [k]),
    "ignore_elements": (lambda f, k: f.ignore_elements(), lambda xs, k: []),
    "reduce": (
        lambda f, k: f.reduce(lambda a, n: a * 2 + n, k),
        lambda xs, k: [functools.reduce(lambda a, n: a * 2 + n, xs, k)],
    ),
    "collect": (lambda f, k: f.collect(list, list.append), lambda xs, k: [xs]),
    "to_list": (lambda f, k: f.to_list(), lambda xs, k: [xs]),
    "to_dict": (lambda f, k: f.to_dict(lambda n: n % 3), lambda xs, k: [{n % 3: n for n in xs}]),
    "count": (lambda f, k: f.count(), lambda xs, k: [len(xs)]),
    "sum": (lambda f, k: f.sum(), lambda xs, k: [sum(xs)]),
    "min": (lambda f, k: f.min(), lambda xs, k: [min(xs)] if xs else []),
    "max": (lambda f, k: f.max(key=lambda n: n % 3), lambda xs, k: [max(xs, key=lambda n: n % 3)] if xs else []),
    "all": (lambda f, k: f.all(lambda n: n > k), lambda xs, k: [all(n > k for n in xs)]),
    "any": (lambda f, k: f.any(lambda n: n > k), lambda xs, k: [any(n > k for n in xs)]),
    "contains": (lambda f, k: f.contains(k), lambda xs, k: [k in xs]),
    "do_on_next": (lambda f, k: f.do_on_next(int), lambda xs, k: xs),
    "progress": (lambda f, k: f.progress(int, every=k + 1), lambda xs, k: xs),
    "concat_with": (lambda f, k: f.concat_with(Flow.range(k)), lambda xs, k: [*xs, *range(k)]),
    "zip_with": (lambda f, k: f.zip_with(Flow.range(k)), lambda xs, k: list(zip(xs, range(k)))),  # noqa: B905
    "concat_map": (lambda f, k: f.concat_map(Flow.range), lambda xs, k: [m for n in xs for m in range(n)]),
    "repeat": (lambda f, k: f.repeat(k), lambda xs, k: xs * k),
}


def _by_parity(xs: list[int]) -> list[int]:
    first: dict[int, int] = {}
    for n in xs:
        first.setdefault(n % 2, n)
    return list(first.values())


def through_demand(flow: Flow[Any], demand: int) -> list[Any]:
    """The elements of a flow that is asked for `demand` at a time, on this thread."""
    elements: list[Any] = []
    ended: list[Any] = []
    handle = flow.subscribe(elements.append, ended.append, lambda: ended.append(None), demand=demand)
    for _ in range(1_000):
        if ended:
            break
        handle.request(demand)
    assert ended == [None]
    return elements


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=25)
@given(xs=st.lists(st.integers(0, 5), max_size=12), k=st.integers(0, 5), demand=st.sampled_from([1, 2, 7, 1000]))
def test_an_operator_gives_what_its_model_gives(name: str, xs: list[int], k: int, demand: int) -> None:
    operator, model = MODELS[name]
    expected = model(xs, k)
    assert list(operator(Flow.from_iterable(xs), k)) == expected
    assert through_demand(operator(Flow.from_iterable(xs), k), demand) == expected
    assert through_demand(operator(Flow.from_publisher(Flow.from_iterable(xs)), k), demand) == expected
    assert list(operator(Flow.from_iterable(xs).subscribe_on(POOL).publish_on(POOL, prefetch=2), k)) == expected
