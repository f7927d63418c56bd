"""Operators that make one element of many."""

from __future__ import annotations

import functools
from datetime import timedelta
from decimal import Decimal
from typing import assert_type

from models.running import Entry

from declared.kinds import Declared, Plain, Race, Typed, case
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
    "sort": [
        case(lambda f: f.sort(key=lambda n: -n), ALL[::-1]),
        case(lambda f: f.sort(reverse=True, capacity=3), ALL[::-1], variant="on disk"),
        Entry(
            lambda f, p: f.sort(key=lambda item: item.value),
            by_end=lambda xs, end: sorted(xs, key=lambda item: item.value) if end == "complete" else [],
            most=lambda a, n: 99,
        ),
        Entry(
            lambda f, p: f.sort(key=lambda item: item.value, reverse=True, capacity=2),
            by_end=lambda xs, end: sorted(xs, key=lambda item: item.value, reverse=True) if end == "complete" else [],
            most=lambda a, n: 99,
            variant="on disk",
        ),
        Plain(lambda f, k: f.sort(key=lambda n: n % 3), lambda xs, k: sorted(xs, key=lambda n: n % 3)),
        Plain(lambda f, k: f.sort(capacity=k + 1), lambda xs, k: sorted(xs), variant="on disk"),
        Race(lambda a: a.sort()),
        Race(lambda a: a.sort(capacity=1), variant="on disk"),
        Typed(lambda: (assert_type(f.sort(), Flow[int]), assert_type(f.sort(key=text), Flow[int]))),
        Example("a.sort()", "312|", demand=1),
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
    "average": [
        case(lambda f: f.average(), [4.5]),
        Plain(lambda f, k: f.average(), lambda xs, k: [sum(xs) / len(xs)] if xs else []),
        Typed(
            lambda: (
                assert_type(f.average(), Flow[float]),
                assert_type(Flow.just(0.5).average(), Flow[float]),
                assert_type(Flow.just(Decimal(1)).average(), Flow[Decimal]),
                assert_type(Flow.just(timedelta(1)).average(), Flow[timedelta]),
            )
        ),
        Example("a.average()", "126|"),
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
