"""Operators that make one element of many."""

from __future__ import annotations

import functools
from decimal import Decimal
from typing import assert_type

from models.running import Entry

from declared.kinds import Declared, Plain, Typed, case
from declared.values import ALL, add, f, odd, text
from docs._site.recording import Example
from reactive_runtime import Flow

DECLARED: Declared = {
    "reduce": [
        case(lambda f: f.reduce(lambda a, n: a + n, 0), [45]),
        Plain(
            lambda f, k: f.reduce(lambda a, n: a * 2 + n, k),
            lambda xs, k: [functools.reduce(lambda a, n: a * 2 + n, xs, k)],
        ),
        Typed(
            lambda: (assert_type(f.reduce(add, 0.0), Flow[float]), assert_type(f.reduce(lambda a, b: a + b), Flow[int]))
        ),
        Example("a.reduce(lambda total, n: total + n)", "123|"),
    ],
    "collect": [
        case(lambda f: f.collect(set, set.add), [set(ALL)]),
        Plain(lambda f, k: f.collect(list, list.append), lambda xs, k: [xs]),
        Typed(lambda: assert_type(f.collect(list[int], list[int].append), Flow[list[int]])),
        Example("a.collect(set, set.add)", "121|"),
    ],
    "to_list": [
        case(lambda f: f.to_list(), [ALL]),
        Entry(lambda f, p: f.to_list(), by_end=lambda xs, end: [xs] if end == "complete" else [], most=lambda a, n: 99),
        Plain(lambda f, k: f.to_list(), lambda xs, k: [xs]),
        Example("a.to_list()", "123|"),
    ],
    "to_dict": [
        case(lambda f: f.to_dict(odd), [{False: 8, True: 9}]),
        Plain(lambda f, k: f.to_dict(lambda n: n % 3), lambda xs, k: [{n % 3: n for n in xs}]),
        Typed(
            lambda: (
                assert_type(f.to_dict(text, text), Flow[dict[str, str]]),
                assert_type(f.to_dict(text), Flow[dict[str, int]]),
            )
        ),
        Example("a.to_dict(lambda n: n * n)", "12|"),
    ],
    "count": [
        case(lambda f: f.count(), [10]),
        Plain(lambda f, k: f.count(), lambda xs, k: [len(xs)]),
        Example("a.count()", "123|"),
    ],
    "sum": [
        case(lambda f: f.sum(), [45]),
        Plain(lambda f, k: f.sum(), lambda xs, k: [sum(xs)]),
        Typed(
            lambda: (
                assert_type(f.sum(), Flow[int]),
                assert_type(Flow.just(True).sum(), Flow[int]),
                assert_type(Flow.just(0.5).sum(), Flow[float]),
                assert_type(Flow.just(Decimal(1)).sum(), Flow[Decimal]),
            )
        ),
        Example("a.sum()", "123|"),
    ],
    "min": [
        case(lambda f: f.min(key=lambda n: -n), [9]),
        Plain(lambda f, k: f.min(), lambda xs, k: [min(xs)] if xs else []),
        Typed(lambda: assert_type(f.min(), Flow[int])),
        Example("a.min()", "213|"),
    ],
    "max": [
        case(lambda f: f.max(), [9]),
        Plain(lambda f, k: f.max(key=lambda n: n % 3), lambda xs, k: [max(xs, key=lambda n: n % 3)] if xs else []),
        Typed(lambda: assert_type(f.max(key=text), Flow[int])),
        Example("a.max()", "132|"),
    ],
    "all": [
        case(lambda f: f.all(lambda n: n < 2), [False], survives=[False]),
        Plain(lambda f, k: f.all(lambda n: n > k), lambda xs, k: [all(n > k for n in xs)]),
        Example("a.all(lambda n: n < 2)", "123|", note="The first that is false decides; the source is cancelled."),
    ],
    "any": [
        case(lambda f: f.any(lambda n: n > 99), [False]),
        Plain(lambda f, k: f.any(lambda n: n > k), lambda xs, k: [any(n > k for n in xs)]),
        Example("a.any(lambda n: n > 1)", "123|", note="The first that is true decides; the source is cancelled."),
    ],
    "contains": [
        case(lambda f: f.contains(2), [True], survives=[True]),
        Plain(lambda f, k: f.contains(k), lambda xs, k: [k in xs]),
        Example("a.contains(2)", "123|"),
    ],
}
