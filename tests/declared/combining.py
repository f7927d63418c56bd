"""Operators of several sources."""

from __future__ import annotations

from typing import assert_type

from models.running import Entry

from declared.kinds import Declared, Plain, Race, Typed, case
from declared.modelling import merged, number, passing
from declared.values import ALL, f, words
from docs._site.recording import Example
from reactive_runtime import Flow

DECLARED: Declared = {
    "start_with": [
        case(lambda f: f.start_with(-2, -1), list(range(-2, 10))),
        passing(lambda f, p: f.start_with(number(1), number(2)), model=lambda xs: [number(1), number(2), *xs]),
        Plain(lambda f, k: f.start_with(k, k), lambda xs, k: [k, k, *xs]),
        Race(lambda a: a.start_with(-1)),
        Typed(lambda: (assert_type(f.start_with(1), Flow[int]), assert_type(f.start_with("a"), Flow[int | str]))),
        Example("a.start_with(8, 9)", "12|", demand=2),
    ],
    "take_until": [
        case(lambda f: f.take_until(Flow.never()), ALL),
        passing(lambda f, p: f.take_until(Flow.never())),
        Race(lambda a, b: a.take_until(b)),
        Example("a.take_until(b)", "1-2-3-4|", "---5"),
    ],
    "skip_until": [
        case(lambda f: f.skip_until(Flow.just("now")), ALL),
        Entry(lambda f, p: f.skip_until(Flow.just(1))),
        Race(lambda a, b: a.skip_until(b)),
        Example("a.skip_until(b)", "1-2-3-4|", "--5"),
    ],
    "switch_if_empty": [
        case(lambda f: f.filter(lambda n: n > 99).switch_if_empty(Flow.just(7)), [7]),
        passing(
            lambda f, p: f.switch_if_empty(Flow.just(number(1))),
            by_end=lambda xs, end: xs or [number(1)] * (end == "complete"),
        ),
        Race(lambda a, b: a.switch_if_empty(b)),
        Typed(
            lambda: (
                assert_type(f.switch_if_empty(f), Flow[int]),
                assert_type(f.switch_if_empty(words), Flow[int | str]),
                assert_type(f.switch_if_empty(Flow.error(OSError())), Flow[int]),
            )
        ),
        Example("a.switch_if_empty(b)", "-|", "12|"),
    ],
    "concat_with": [
        case(lambda f: f.concat_with(Flow.just(10)), list(range(11))),
        passing(
            lambda f, p: f.concat_with(Flow.just(number(1))),
            by_end=lambda xs, end: [*xs, *[number(1)] * (end == "complete")],
        ),
        Plain(lambda f, k: f.concat_with(Flow.range(k)), lambda xs, k: [*xs, *range(k)]),
        Typed(lambda: (assert_type(f.concat_with(f), Flow[int]), assert_type(f.concat_with(words), Flow[int | str]))),
        Example("a.concat_with(b)", "12|", "34|", demand=2),
    ],
    "merge_with": [
        case(lambda f: f.merge_with(Flow.just(10)), list(range(11)), ordered=False),
        Entry(
            lambda f, p: f.merge_with(Flow.empty(), Flow.just(number(1))),
            lambda xs: [*xs, number(1)],
            ordered=False,
            overtakes=True,
        ),
        Typed(lambda: (assert_type(f.merge_with(f), Flow[int]), assert_type(f.merge_with(words), Flow[int | str]))),
        Example("a.merge_with(b)", "1--2|", "-3-4|"),
    ],
    "zip_with": [
        case(lambda f: f.zip_with(Flow.range(3)), [(0, 0), (1, 1), (2, 2)], lossy=True),
        Entry(
            lambda f, p: f.zip_with(Flow.range(99)), lambda xs: list(zip(xs, range(99), strict=False)), overtakes=True
        ),
        Plain(lambda f, k: f.zip_with(Flow.range(k)), lambda xs, k: list(zip(xs, range(k), strict=False))),
        Typed(
            lambda: (
                assert_type(f.zip_with(Flow.just("a")), Flow[tuple[int, str]]),
                assert_type(f.zip_with(Flow.just("a"), f), Flow[tuple[int, str, int]]),
                assert_type(f.zip_with(Flow.just("a"), f, f), Flow[tuple[int, str, int, int]]),
                assert_type(f.zip_with(f, f, f, Flow.just(1)), Flow[tuple[int, ...]]),
            )
        ),
        Example("a.zip_with(b)", "123|", "-4-5|", note="The shorter source ends the flow; the other is cancelled."),
    ],
    "with_latest_from": [
        case(lambda f: f.with_latest_from(Flow.just(7)), [(n, 7) for n in ALL]),
        Entry(lambda f, p: f.with_latest_from(Flow.just("a")), lambda xs: [(x, "a") for x in xs]),
        Race(lambda a, b: a.with_latest_from(b)),
        Typed(
            lambda: (
                assert_type(f.with_latest_from(f, f, f, f), Flow[tuple[int, ...]]),
                assert_type(f.with_latest_from(Flow.just("a")), Flow[tuple[int, str]]),
                assert_type(f.with_latest_from(Flow.just("a"), Flow.just(b"")), Flow[tuple[int, str, bytes]]),
            )
        ),
        Example("a.with_latest_from(b)", "-1-2-3|", "4--5---"),
    ],
    "concat": [
        case(lambda f: Flow.concat(Flow.just(-1), f), [-1, *ALL]),
        passing(lambda f, p: Flow.concat(Flow.just(number(1)), f), model=lambda xs: [number(1), *xs]),
        Race(lambda a, b: a.concat_with(b)),
        Typed(
            lambda: (
                assert_type(Flow.concat(f, f), Flow[int]),
                assert_type(Flow.concat(f, words), Flow[int | str]),
                assert_type(Flow.concat(f, words, Flow.just(b"")), Flow[int | str | bytes]),
            )
        ),
        Example("Flow.concat(a, b)", "12|", "34|", demand=2),
    ],
    "merge": [
        case(lambda f: Flow.merge(f, Flow.just(10, 11)), list(range(12)), ordered=False),
        Entry(
            lambda f, p: Flow.merge(f, Flow.just(number(1))), lambda xs: [*xs, number(1)], ordered=False, overtakes=True
        ),
        Race(lambda a, b: Flow.merge(a, b, prefetch=2)),
        Race(lambda a, b: Flow.merge(a, b, prefetch=2, delay_error=True), variant="errors delayed"),
        Typed(
            lambda: (
                assert_type(Flow.merge(f, f), Flow[int]),
                assert_type(Flow.merge(f, words), Flow[int | str]),
                assert_type(Flow.merge(f, words, Flow.just(b"")), Flow[int | str | bytes]),
                assert_type(Flow.merge(*[f, f]), Flow[int]),
            )
        ),
        Example("Flow.merge(a, b)", "1--2|", "-3-4|"),
    ],
    "merge_comparing": [
        case(lambda f: Flow.merge_comparing(f, Flow.just(3, 20)), [0, 1, 2, 3, *range(3, 10), 20]),
        Entry(
            lambda f, p: Flow.merge_comparing(f, Flow.just(number(3), number(8)), key=lambda entry: entry.value),
            by_end=lambda xs, end: merged(xs, [number(3), number(8)], end),
            overtakes=True,
        ),
        Race(lambda a, b: Flow.merge_comparing(a, b, prefetch=2)),
        Typed(lambda: assert_type(Flow.merge_comparing(f, f), Flow[int])),
        Example("Flow.merge_comparing(a, b)", "147|", "258|"),
    ],
    "zip": [
        case(lambda f: Flow.zip(f, Flow.range(99), Flow.range(99)), [(n, n, n) for n in ALL]),
        Entry(
            lambda f, p: Flow.zip(f, Flow.range(99)), lambda xs: list(zip(xs, range(99), strict=False)), overtakes=True
        ),
        Race(lambda a, b: Flow.zip(a, b, prefetch=2)),
        Typed(
            lambda: (
                assert_type(Flow.zip(f, Flow.just("a")), Flow[tuple[int, str]]),
                assert_type(Flow.zip(f, f, Flow.just("a"), f), Flow[tuple[int, int, str, int]]),
                assert_type(Flow.zip(f, f, f, f, f), Flow[tuple[int, ...]]),
            )
        ),
        Example("Flow.zip(a, b)", "1-2-3|", "p--q|"),
    ],
    "combine_latest": [
        case(lambda f: Flow.combine_latest(Flow.just("a"), f), [("a", n) for n in ALL]),
        Entry(lambda f, p: Flow.combine_latest(Flow.just("a"), f), lambda xs: [("a", x) for x in xs], overtakes=True),
        Race(lambda a, b: Flow.combine_latest(a, b, prefetch=2)),
        Typed(
            lambda: (
                assert_type(Flow.combine_latest(f, Flow.just("a")), Flow[tuple[int, str]]),
                assert_type(Flow.combine_latest(f, Flow.just("a"), f), Flow[tuple[int, str, int]]),
                assert_type(Flow.combine_latest(f, Flow.just("a"), f, f), Flow[tuple[int, str, int, int]]),
                assert_type(Flow.combine_latest(f, f, f, f, f), Flow[tuple[int, ...]]),
            )
        ),
        Example("Flow.combine_latest(a, b)", "1--2|", "-3-4|"),
    ],
    "race": [
        case(lambda f: Flow.race(f, Flow.never()), ALL),
        Entry(lambda f, p: Flow.race(f, Flow.never())),
        Race(lambda a, b: Flow.race(a, b, Flow.never())),
        Typed(
            lambda: (
                assert_type(Flow.race(f, f), Flow[int]),
                assert_type(Flow.race(f, words), Flow[int | str]),
                assert_type(Flow.race(f, words, Flow.just(b"")), Flow[int | str | bytes]),
            )
        ),
        Example("Flow.race(a, b)", "--12|", "-34|", note="The first to signal wins; the other is cancelled."),
    ],
}
