"""Operators that let some elements pass."""

from __future__ import annotations

import itertools
from typing import assert_type

from models.running import Entry

from declared.kinds import Declared, Plain, Typed, case
from declared.modelling import by_parity, even, number, passing
from declared.values import f, odd
from docs._site.recording import Example
from reactive_runtime import Flow

DECLARED: Declared = {
    "filter": [
        case(lambda f: f.filter(odd), [1, 3, 5, 7, 9]),
        Entry(lambda f, p: f.filter(even), lambda xs: [x for x in xs if even(x)], eats=lambda entry: not even(entry)),
        Plain(lambda f, k: f.filter(lambda n: n > k), lambda xs, k: [n for n in xs if n > k]),
        Example("a.filter(lambda n: n % 2 == 1)", "1234567-|", demand=2),
    ],
    "distinct": [
        case(lambda f: f.map(lambda n: n % 4).distinct(), [0, 1, 2, 3]),
        Plain(lambda f, k: f.distinct(), lambda xs, k: list(dict.fromkeys(xs))),
        Plain(lambda f, k: f.distinct(key=lambda n: n % 2), lambda xs, k: by_parity(xs), variant="by key"),
        Example("a.distinct()", "12123|", demand=2),
    ],
    "distinct_until_changed": [
        case(lambda f: f.map(lambda n: n // 3).distinct_until_changed(), [0, 1, 2, 3]),
        Plain(lambda f, k: f.distinct_until_changed(), lambda xs, k: [n for n, _ in itertools.groupby(xs)]),
        Example("a.distinct_until_changed()", "112213|", demand=2),
    ],
    "take": [
        case(lambda f: f.take(3), [0, 1, 2], survives=[0, 1, 2]),
        passing(
            lambda f, p: f.take(3), model=lambda xs: xs[:3], end=lambda xs, end: "complete" if len(xs) >= 3 else end
        ),
        Plain(lambda f, k: f.take(k), lambda xs, k: xs[:k]),
        Example("a.take(3)", "12345|", demand=2),
    ],
    "take_while": [
        case(lambda f: f.take_while(lambda n: n < 2), [0, 1], survives=[0, 1]),
        Entry(
            lambda f, p: f.take_while(even),
            lambda xs: list(itertools.takewhile(even, xs)),
            lambda xs, end: end if all(map(even, xs)) else "complete",
            eats=lambda entry: not even(entry),
        ),
        Plain(
            lambda f, k: f.take_while(lambda n: n != k), lambda xs, k: list(itertools.takewhile(lambda n: n != k, xs))
        ),
        Example("a.take_while(lambda n: n < 3)", "1234|", demand=2),
    ],
    "skip": [
        case(lambda f: f.skip(7), [7, 8, 9]),
        Plain(lambda f, k: f.skip(k), lambda xs, k: xs[k:]),
        Example("a.skip(2)", "12345|", demand=2),
    ],
    "skip_while": [
        case(lambda f: f.skip_while(lambda n: n < 7), [7, 8, 9]),
        Plain(
            lambda f, k: f.skip_while(lambda n: n != k), lambda xs, k: list(itertools.dropwhile(lambda n: n != k, xs))
        ),
        Example("a.skip_while(lambda n: n < 3)", "12341|", demand=2),
    ],
    "first": [
        case(lambda f: f.first(), [0], survives=[0]),
        passing(
            lambda f, p: f.first(),
            model=lambda xs: xs[:1],
            end=lambda xs, end: "complete" if xs else end.replace("complete", "error"),
        ),
        Plain(lambda f, k: f.first(k), lambda xs, k: [xs[0] if xs else k]),
        Typed(lambda: (assert_type(f.first(), Flow[int]), assert_type(f.first("a"), Flow[int | str]))),
        Example("a.first()", "123|"),
    ],
    "last": [
        case(lambda f: f.last(), [9]),
        Entry(
            lambda f, p: f.last(number(1)),
            by_end=lambda xs, end: (xs or [number(1)])[-1:] if end == "complete" else [],
            eats=None,
        ),
        Plain(lambda f, k: f.last(k), lambda xs, k: [xs[-1] if xs else k]),
        Typed(lambda: (assert_type(f.last(), Flow[int]), assert_type(f.last("a"), Flow[int | str]))),
        Example("a.last()", "123|"),
    ],
    "single": [
        case(lambda f: f.take(1).single(), [0], survives=[0]),
        case(lambda f: f.filter(lambda n: n > 9_999).single(7), [7], variant="by default"),
        Entry(
            lambda f, p: f.single(number(1)),
            by_end=lambda xs, end: (xs or [number(1)]) if end == "complete" and len(xs) < 2 else [],
            end=lambda xs, end: "error" if len(xs) > 1 else end,
            most=lambda a, n: 2,
            fails=ValueError,
            eats=None,
        ),
        Plain(lambda f, k: f.take(1).single(k), lambda xs, k: xs[:1] or [k]),
        Typed(lambda: (assert_type(f.single(), Flow[int]), assert_type(f.single("a"), Flow[int | str]))),
        Example("a.single()", "-1-|"),
    ],
    "take_last": [
        case(lambda f: f.take_last(3), [7, 8, 9]),
        Entry(lambda f, p: f.take_last(2), by_end=lambda xs, end: xs[-2:] if end == "complete" else [], eats=None),
        Plain(lambda f, k: f.take_last(k), lambda xs, k: xs[-k:] if k else []),
        Example("a.take_last(2)", "12345|", demand=1),
    ],
    "skip_last": [
        case(lambda f: f.skip_last(3), list(range(7))),
        Entry(lambda f, p: f.skip_last(2), lambda xs: xs[:-2], most=lambda a, n: a + 2),
        Plain(lambda f, k: f.skip_last(k), lambda xs, k: xs[: len(xs) - k] if k < len(xs) else []),
        Example("a.skip_last(2)", "12345|", demand=1),
    ],
    "element_at": [
        case(lambda f: f.element_at(2), [2], survives=[2]),
        Plain(lambda f, k: f.element_at(k, -1), lambda xs, k: [xs[k] if k < len(xs) else -1]),
        Typed(lambda: (assert_type(f.element_at(1), Flow[int]), assert_type(f.element_at(1, "a"), Flow[int | str]))),
        Example("a.element_at(1)", "123|"),
    ],
    "default_if_empty": [
        case(lambda f: f.filter(lambda n: n > 99).default_if_empty(7), [7]),
        passing(
            lambda f, p: f.default_if_empty(number(1)), by_end=lambda xs, end: xs or [number(1)] * (end == "complete")
        ),
        Plain(lambda f, k: f.default_if_empty(k), lambda xs, k: xs or [k]),
        Typed(
            lambda: (
                assert_type(f.default_if_empty(1), Flow[int]),
                assert_type(f.default_if_empty("a"), Flow[int | str]),
                assert_type(Flow.empty().default_if_empty(1), Flow[int]),
            )
        ),
        Example("a.default_if_empty(9)", "-|"),
    ],
    "ignore_elements": [
        case(lambda f: f.ignore_elements(), []),
        Plain(lambda f, k: f.ignore_elements(), lambda xs, k: []),
        Example("a.ignore_elements()", "123|"),
    ],
}
