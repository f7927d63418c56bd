"""Operators that make other elements."""

from __future__ import annotations

import itertools
from typing import assert_type

from models.running import Entry
from models.scripts import Made

from declared.kinds import Declared, Plain, Typed, Without, case
from declared.modelling import (
    all_made,
    breaking,
    breaks,
    calls,
    cut,
    even,
    exactly,
    full,
    made,
    number,
    passing,
    strided,
    whole,
)
from declared.values import ALL, add, emitted, f, odd, plus, rows, text, times
from docs._site.recording import Example
from reactive_runtime import Flow

DECLARED: Declared = {
    "map": [
        case(lambda f: f.map(plus), list(range(1, 11))),
        calls(lambda f, p: f.map(made), exactly),
        Plain(lambda f, k: f.map(lambda n: n + k), lambda xs, k: [n + k for n in xs]),
        Typed(lambda: (assert_type(f.map(text), Flow[str]), assert_type(f.map(lambda n: n / 2), Flow[float]))),
        Example("a.map(lambda n: n * 10)", "123|", demand=2),
    ],
    "starmap": [
        case(lambda f: f.map(lambda n: (n, 1)).starmap(lambda a, b: a + b), list(range(1, 11))),
        passing(lambda f, p: f.starmap(Made), model=lambda xs: [Made(*x) for x in xs]),
        Plain(lambda f, k: f.map(lambda n: (n, k)).starmap(max), lambda xs, k: [max(n, k) for n in xs]),
        Typed(
            lambda: (
                assert_type(f.enumerate().starmap(lambda i, n: str(i + n)), Flow[str]),
                assert_type(Flow.just((1, "a")).starmap(times), Flow[str]),
                assert_type(rows.starmap(lambda a, b: str(a)), Flow[str]),
            )
        ),
        Example("Flow.zip(a, b).starmap(lambda x, y: x * y)", "123|", "456|"),
    ],
    "map_not_none": [
        case(lambda f: f.map_not_none(lambda n: n if odd(n) else None), [1, 3, 5, 7, 9]),
        Entry(
            lambda f, p: f.map_not_none(lambda entry: made(entry) if even(entry) or breaks(entry) else None),
            lambda xs: [Made(*x) for x in whole(xs) if even(x)],
            breaking,
            eats=lambda entry: not even(entry),
        ),
        Plain(lambda f, k: f.map_not_none(lambda n: n if n > k else None), lambda xs, k: [n for n in xs if n > k]),
        Typed(lambda: assert_type(f.map_not_none({1: "a"}.get), Flow[str])),
        Example("a.map_not_none(lambda n: n * 10 if n != 2 else None)", "123|", demand=1),
    ],
    "handle": [
        case(lambda f: f.handle(emitted), [1, 2, 2, 4, 5, 5, 7, 8, 8]),
        Entry(
            lambda f, p: f.handle(lambda entry, emit: emit(made(entry))), all_made, breaking, eats=breaks, most=exactly
        ),
        Plain(lambda f, k: f.handle(lambda n, emit: emit(n)), lambda xs, k: xs),
        Without(Typed, "nothing but what is at the left says it: tests/operators/typed.py"),
        Example("a.handle(lambda n, emit: [emit(n) for _ in range(n)])", "123|", demand=2),
    ],
    "flat_map_iterable": [
        case(lambda f: f.flat_map_iterable(lambda n: [n] * (n % 3)), [1, 2, 2, 4, 5, 5, 7, 8, 8]),
        Plain(lambda f, k: f.flat_map_iterable(lambda n: [n] * k), lambda xs, k: [n for n in xs for _ in range(k)]),
        Typed(lambda: assert_type(f.flat_map_iterable(text), Flow[str])),
        Example("a.flat_map_iterable(lambda n: [n] * n)", "123|", demand=2),
    ],
    "flatten": [
        case(lambda f: f.map(lambda n: (n,) * (n % 2)).flatten(), [1, 3, 5, 7, 9]),
        Plain(lambda f, k: f.map(range).flatten(), lambda xs, k: [m for n in xs for m in range(n)]),
        Typed(lambda: assert_type(f.map(text).flatten(), Flow[str])),
        Example("a.map(lambda n: [n, n]).flatten()", "12|", demand=2),
    ],
    "enumerate": [
        case(lambda f: f.enumerate(1).map(sum), [2 * n + 1 for n in ALL]),
        passing(lambda f, p: f.enumerate(), model=lambda xs: list(enumerate(xs))),
        Plain(lambda f, k: f.enumerate(k), lambda xs, k: list(enumerate(xs, k))),
        Example("a.enumerate()", "ab|", demand=2),
    ],
    "pairwise": [
        case(lambda f: f.pairwise(), [(n, n + 1) for n in range(9)]),
        Entry(lambda f, p: f.pairwise(), lambda xs: list(itertools.pairwise(xs)), eats=None),
        Plain(lambda f, k: f.pairwise(), lambda xs, k: list(itertools.pairwise(xs))),
        Example("a.pairwise()", "1234|", demand=1),
    ],
    "scan": [
        case(lambda f: f.scan(lambda a, n: a + n, 0), [0, 1, 3, 6, 10, 15, 21, 28, 36, 45]),
        Plain(lambda f, k: f.scan(lambda a, n: a + n, k), lambda xs, k: list(itertools.accumulate(xs, initial=k))[1:]),
        Typed(lambda: assert_type(f.scan(add, 0.0), Flow[float])),
        Example("a.scan(lambda total, n: total + n, 0)", "123|", demand=2),
    ],
    "batch": [
        case(lambda f: f.batch(4), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]),
        Entry(lambda f, p: f.batch(2), by_end=lambda xs, end: full(xs, end, 2)),
        Plain(lambda f, k: f.batch(k + 1), lambda xs, k: [xs[i : i + k + 1] for i in range(0, len(xs), k + 1)]),
        case(lambda f: f.batch(4, skip=3), [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9], [9]], variant="overlapping"),
        case(lambda f: f.batch(2, skip=4), [[0, 1], [4, 5], [8, 9]], variant="with gaps"),
        Entry(
            lambda f, p: f.batch(3, skip=2),
            by_end=lambda xs, end: strided(xs, end, 3, 2),
            eats=None,
            most=lambda a, n: 2 * a + 1,
            variant="overlapping",
        ),
        Entry(
            lambda f, p: f.batch(2, skip=3),
            by_end=lambda xs, end: strided(xs, end, 2, 3),
            eats=lambda item: item.number % 3 == 2,
            most=lambda a, n: 3 * a,
            variant="with gaps",
        ),
        Plain(
            lambda f, k: f.batch(3, skip=k + 1),
            lambda xs, k: [xs[i : i + 3] for i in range(0, len(xs), k + 1)],
            variant="skip",
        ),
        Example("a.batch(2)", "12345|", demand=1),
    ],
    "buffer_until": [
        case(lambda f: f.buffer_until(lambda n: n % 4 == 3), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]),
        case(
            lambda f: f.buffer_until(lambda n: n % 4 == 3, cut_before=True),
            [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9]],
            variant="before",
        ),
        Entry(lambda f, p: f.buffer_until(even), by_end=lambda xs, end: cut(xs, end, even)),
        Entry(
            lambda f, p: f.buffer_until(even, cut_before=True),
            by_end=lambda xs, end: cut(xs, end, even, before=True),
            variant="before",
        ),
        Plain(lambda f, k: f.buffer_until(lambda n: n > k), lambda xs, k: cut(xs, "complete", lambda n: n > k)),
        Plain(
            lambda f, k: f.buffer_until(lambda n: n > k, cut_before=True),
            lambda xs, k: cut(xs, "complete", lambda n: n > k, before=True),
            variant="before",
        ),
        Example("a.buffer_until(lambda n: n % 2 == 0)", "12345|", demand=1),
    ],
    "buffer": [
        case(lambda f: f.buffer(5), [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]),
        Entry(lambda f, p: f.buffer(3), by_end=lambda xs, end: full(xs, end, 3)),
        Example("a.buffer(3)", "12345|", demand=1),
    ],
    "end_with": [
        case(lambda f: f.end_with(10, 11), list(range(12))),
        passing(lambda f, p: f.end_with(number(1)), by_end=lambda xs, end: [*xs, *[number(1)] * (end == "complete")]),
        Plain(lambda f, k: f.end_with(k, k), lambda xs, k: [*xs, k, k]),
        Typed(lambda: (assert_type(f.end_with(1), Flow[int]), assert_type(f.end_with("a"), Flow[int | str]))),
        Example("a.end_with(8, 9)", "12|", demand=2),
    ],
    "materialize": [
        case(
            lambda f: f.materialize().map(lambda item: item.signal),
            ["on_next"] * 10 + ["on_complete"],
            survives=["on_next"] * 3 + ["on_error"],
        ),
        passing(lambda f, p: f.materialize().dematerialize(), most=lambda a, n: a + 1),
        Plain(lambda f, k: f.materialize().dematerialize(), lambda xs, k: xs),
        Example("a.materialize()", "12x"),
    ],
    "dematerialize": [
        case(lambda f: f.materialize().dematerialize(), ALL),
        passing(lambda f, p: f.publish_on(p.clock, prefetch=2).materialize().dematerialize(), most=None),
        Typed(lambda: assert_type(f.materialize().dematerialize(), Flow[int])),
        Example("a.materialize().dematerialize()", "12|", demand=1),
    ],
    "transform": [
        case(lambda f: f.transform(lambda item: item.map(plus)), list(range(1, 11))),
        calls(lambda f, p: f.transform(lambda entry: entry.map(made)), exactly),
        Typed(lambda: assert_type(f.transform(lambda flow: flow.map(text)), Flow[str])),
        Example("a.transform(lambda flow: flow.skip(1).map(str))", "123|", demand=1),
    ],
    "with_context": [
        case(lambda f: f.with_context(lambda item: item.map(plus)), list(range(1, 11))),
        calls(lambda f, p: f.with_context(lambda entry: entry.map(made)), exactly),
        Typed(lambda: assert_type(f.with_context(lambda flow: flow.map(text)), Flow[str])),
        Example("a.with_context(lambda flow: flow.filter(lambda n: n > 1).map(str))", "123|", demand=1),
    ],
}
