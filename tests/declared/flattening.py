"""Operators that make or consume inner flows, and tasks."""

from __future__ import annotations

from typing import assert_type

from models.running import POOL, Entry
from models.scripts import Item

from declared.kinds import Case, Consumer, Declared, Maker, OnPool, Plain, Race, Typed, Without, case
from declared.modelling import (
    BrokenError,
    ahead,
    breaks,
    calls,
    cut,
    even,
    expanded,
    full,
    keeping,
    made,
    made_later,
    others_made,
    strided,
    whole,
)
from declared.values import (
    ALL,
    f,
    fails,
    odd,
    on,
    plus,
    plus_async,
    pool,
    same,
    shared,
    text,
    text_async,
    texts,
    threads,
)
from docs._site.recording import Example
from reactive_runtime import Flow

DECLARED: Declared = {
    "flat_map": [
        case(lambda f: f.flat_map(lambda n: Flow.just(n, n + 100)), ALL + list(range(100, 110)), ordered=False),
        Case(
            lambda f, p: f.flat_map(lambda n: Flow.just(n, n).subscribe_on(p.pool), concurrency=3, prefetch=1),
            sorted(ALL * 2),
            ordered=False,
            variant="on a pool",
        ),
        case(lambda f: f.flat_map(plus_async, concurrency=3), list(range(1, 11)), ordered=False, variant="coroutines"),
        calls(
            lambda f, p: f.flat_map(made_later, concurrency=2),
            ahead(3),
            waits=True,
            ordered=False,
            overtakes=True,
            variant="coroutines",
        ),
        Entry(
            lambda f, p: f.flat_map(made_later, concurrency=2, delay_error=True),
            others_made,
            lambda xs, end: end if end != "complete" or not any(map(breaks, xs)) else "error",
            fails=BrokenError,
            eats=breaks,
            ordered=False,
            waits=True,
            variant="coroutines, errors at the end",
        ),
        calls(lambda f, p: f.flat_map(lambda entry: Flow.just(made(entry))), overtakes=True, eats=None),
        calls(
            lambda f, p: f.flat_map(lambda entry: Flow.just(made(entry)).subscribe_on(p.clock), concurrency=2),
            overtakes=True,
            ordered=False,
            eats=None,
            variant="on an executor",
        ),
        Race(lambda a, b: a.flat_map(lambda n: b, concurrency=2, prefetch=2)),
        Race(lambda a, b: a.flat_map(lambda n: b, concurrency=1, prefetch=1), variant="one at a time"),
        OnPool(shared(lambda p: Flow.range(2).flat_map(lambda n: on(p, 1), concurrency=2)), 2, ascending=False),
        Consumer(lambda flow, fn, **options: flow.flat_map(fn, **options), concurrent=True),
        Consumer(
            lambda flow, fn, **options: flow.flat_map(fn, prefetch=1, **options), concurrent=True, variant="prefetch 1"
        ),
        Typed(lambda: (assert_type(f.flat_map(texts), Flow[str]), assert_type(f.flat_map(text_async), Flow[str]))),
        Example("a.flat_map(lambda n: inner(f'-{n}-{n}|'), concurrency=2)", "123|"),
    ],
    "flat_map_sequential": [
        case(lambda f: f.flat_map_sequential(lambda n: Flow.just(n, n)), sorted(ALL * 2)),
        Case(
            lambda f, p: f.flat_map_sequential(
                lambda n: Flow.just(n, n).subscribe_on(p.pool), concurrency=3, prefetch=1
            ),
            sorted(ALL * 2),
            variant="on a pool",
        ),
        calls(
            lambda f, p: f.flat_map_sequential(lambda entry: Flow.just(made(entry)).publish_on(p.clock), concurrency=2),
            overtakes=True,
            eats=None,
        ),
        Race(lambda a, b: a.flat_map_sequential(lambda n: b, concurrency=2, prefetch=2)),
        Consumer(lambda flow, fn, **options: flow.flat_map_sequential(fn, **options), concurrent=True),
        Typed(lambda: assert_type(f.flat_map_sequential(texts), Flow[str])),
        Example("a.flat_map_sequential(lambda n: inner('--1|' if n == 1 else '-2|'))", "12|"),
    ],
    "concat_map": [
        case(lambda f: f.concat_map(lambda n: Flow.just(n, n)), sorted(ALL * 2)),
        calls(lambda f, p: f.concat_map(lambda entry: Flow.just(made(entry))), overtakes=True, eats=None),
        Plain(lambda f, k: f.concat_map(Flow.range), lambda xs, k: [m for n in xs for m in range(n)]),
        Race(lambda a, b: a.concat_map(lambda n: b)),
        Consumer(lambda flow, fn: flow.concat_map(fn)),
        Consumer(lambda flow, fn: flow.concat_map(fn, delay_error=True), variant="delay_error"),
        Typed(lambda: assert_type(f.concat_map(texts), Flow[str])),
        Example("a.concat_map(lambda n: inner(f'-{n}{n}|'))", "12|"),
    ],
    "switch_map": [
        case(lambda f: f.switch_map(lambda n: Flow.just(n, -1)).filter(lambda n: n >= 0), ALL, lossy=True),
        Entry(
            lambda f, p: f.take(1).switch_map(lambda entry: Flow.just(entry, entry)),
            lambda xs: [*xs[:1], *xs[:1]],
            lambda xs, end: "complete" if xs else end,
            eats=None,
        ),
        Race(lambda a, b: a.switch_map(lambda n: b, prefetch=2)),
        Consumer(lambda flow, fn: flow.switch_map(fn)),
        Consumer(lambda flow, fn: flow.switch_map(fn, prefetch=1), variant="prefetch 1"),
        Typed(lambda: assert_type(f.switch_map(texts), Flow[str])),
        Example("a.switch_map(lambda n: inner(f'{n}--{n}|'))", "1-2----|"),
    ],
    "expand": [
        case(
            lambda f: f.expand(lambda n: Flow.just(n + 10) if n < 10 else Flow.empty()), list(range(20)), ordered=False
        ),
        Entry(
            lambda f, p: f.expand(
                lambda entry: Flow.just(Item(-1, entry.value - 3)) if entry.value >= 3 else Flow.empty()
            ),
            expanded,
            ordered=False,
            overtakes=True,
            eats=None,
        ),
        Race(lambda a: a.expand(lambda n: Flow.just(n + 1) if n < 1 else Flow.empty())),
        Without(Consumer, "it gives the elements that inner flows are made of as well"),
        Example("a.expand(lambda n: inner(str(n + 1) + '|' if n < 3 else '|'))", "1|"),
    ],
    "map_parallel": [
        Case(lambda f, p: f.map_parallel(plus, p.pool, concurrency=3), list(range(1, 11))),
        Case(
            lambda f, p: f.map_parallel(plus, p.pool, concurrency=3, ordered=False, chunk=2),
            list(range(1, 11)),
            ordered=False,
            variant="unordered, in chunks",
        ),
        case(lambda f: f.map_parallel(plus_async, concurrency=3), list(range(1, 11)), variant="coroutines"),
        Case(lambda f, p: f.map_parallel(plus, p.pool, concurrency="auto"), list(range(1, 11)), variant="auto"),
        case(
            lambda f: f.map_parallel(plus_async, concurrency="auto", ordered=False),
            list(range(1, 11)),
            ordered=False,
            variant="coroutines, auto",
        ),
        calls(lambda f, p: f.map_parallel(made, p.clock, concurrency=3), ahead(4)),
        calls(lambda f, p: f.map_parallel(made, p.clock, concurrency=1), ahead(2), variant="one at a time"),
        calls(
            lambda f, p: f.map_parallel(made, p.clock, concurrency=3, ordered=False),
            ahead(4),
            overtakes=True,
            variant="as they are done",
        ),
        calls(lambda f, p: f.map_parallel(made, p.clock, concurrency=2, chunk=3), ahead(7), variant="in chunks"),
        calls(
            lambda f, p: f.map_parallel(made, p.clock, concurrency=2, ordered=False, chunk=3),
            ahead(7),
            overtakes=True,
            variant="in chunks, as they are done",
        ),
        calls(lambda f, p: f.map_parallel(made, POOL, concurrency=3), ahead(4), waits=True, variant="on a pool"),
        calls(
            lambda f, p: f.map_parallel(made, POOL, concurrency=3, ordered=False),
            ahead(4),
            model=others_made,
            waits=True,
            ordered=False,
            overtakes=True,
            variant="on a pool, as they are done",
        ),
        calls(lambda f, p: f.map_parallel(made_later, concurrency=3), ahead(4), waits=True, variant="coroutines"),
        calls(
            lambda f, p: f.map_parallel(made_later, concurrency=3, ordered=False),
            ahead(4),
            waits=True,
            ordered=False,
            overtakes=True,
            variant="coroutines, as they are done",
        ),
        OnPool(shared(lambda p: Flow.range(2).map_parallel(same, p, concurrency=2)), 2),
        OnPool(
            lambda: Flow.range(2).map_parallel(same, pool(2), concurrency=2, ordered=False),
            2,
            ascending=False,
            variant="as they are done",
        ),
        OnPool(shared(lambda p: Flow.range(2).map_parallel(fails, p, concurrency=2)), None, variant="failing"),
        OnPool(shared(lambda p: Flow.range(2).map_parallel(same, p, concurrency="auto")), 2, variant="auto"),
        Typed(
            lambda: (
                assert_type(f.map_parallel(text, threads), Flow[str]),
                assert_type(f.map_parallel(text_async), Flow[str]),
                assert_type(f.map_parallel(text, threads, concurrency="auto"), Flow[str]),
            )
        ),
        Example(
            "a.map_parallel(lambda n: n * 10, pool, concurrency=2)",
            "1234|",
            seconds=(3, 1),
            note="Each call on the first thread takes 3 s, each on the second 1 s."
            " Results keep the order of the source.",
        ),
    ],
    "map_by_key": [
        Case(lambda f, p: f.map_by_key(plus, odd, p.pool, concurrency=2), list(range(1, 11)), ordered=False),
        Case(
            lambda f, p: f.map_by_key(plus, lambda n: 0, p.pool, concurrency=3, prefetch=2),
            list(range(1, 11)),
            variant="one key",
        ),
        calls(
            lambda f, p: f.map_by_key(made, lambda entry: 0, p.clock, concurrency=3, prefetch=4),
            ahead(5),
            variant="one key",
        ),
        calls(
            lambda f, p: f.map_by_key(made, even, p.clock, concurrency=2, prefetch=4),
            ahead(5),
            ordered=False,
            overtakes=True,
            variant="two keys",
        ),
        calls(
            lambda f, p: f.map_by_key(made, lambda entry: entry.value, POOL, concurrency=3, prefetch=8),
            ahead(9),
            model=others_made,
            waits=True,
            ordered=False,
            overtakes=True,
            variant="on a pool",
        ),
        calls(
            lambda f, p: f.map_by_key(keeping, made, p.clock, concurrency=2),
            model=whole,
            ordered=False,
            variant="its key fails",
        ),
        OnPool(shared(lambda p: Flow.range(2).map_by_key(same, same, p, concurrency=2)), 2, ascending=False),
        OnPool(
            lambda: Flow.range(2).map_by_key(same, lambda n: 0, pool(2), concurrency=2, prefetch=2),
            2,
            variant="one key",
        ),
        OnPool(shared(lambda p: Flow.range(2).map_by_key(fails, same, p, concurrency=2)), None, variant="failing"),
        Typed(lambda: assert_type(f.map_by_key(text, odd, threads), Flow[str])),
        Example(
            "a.map_by_key(lambda n: n * 10, lambda n: n % 2, pool, concurrency=2)",
            "1234|",
            seconds=(3, 1),
            note="Odd numbers are one key, even ones another. Each call on the first thread takes 3 s, each on the"
            " second 1 s. Results of one key keep the order of the source.",
        ),
    ],
    "group_by": [
        case(
            lambda f: f.group_by(odd).flat_map(lambda item: item[1].map(lambda n: (item[0], n))),
            [(odd(n), n) for n in ALL],
            ordered=False,
        ),
        Entry(lambda f, p: f.group_by(even).flat_map(lambda entry: entry[1]), ordered=False, overtakes=True),
        Race(lambda a: a.group_by(same).flat_map(lambda item: item[1])),
        Maker(lambda flow: flow.group_by(lambda n: 0).map(lambda pair: pair[1]), variant="one group"),
        Maker(lambda flow: flow.group_by(lambda n: n % 3).map(lambda pair: pair[1]), variant="three groups"),
        Maker(
            lambda flow: flow.group_by(lambda n: n % 3, prefetch=2).map(lambda pair: pair[1]),
            variant="three small groups",
        ),
        Maker(lambda flow: flow.group_by(lambda n: n).map(lambda pair: pair[1]), variant="a group each"),
        Typed(lambda: assert_type(f.group_by(text), Flow[tuple[str, Flow[int]]])),
        Example("a.group_by(lambda n: n % 2)", "1234|"),
    ],
    "partition": [
        case(lambda f: Flow.merge(*f.partition(odd)), ALL, ordered=False),
        Entry(lambda f, p: Flow.merge(*f.partition(even)), ordered=False, overtakes=True, shares=True),
        Entry(
            lambda f, p: Flow.merge(*f.partition(even, prefetch=1)),
            ordered=False,
            overtakes=True,
            shares=True,
            variant="one at a time",
        ),
        Race(lambda a: Flow.merge(*a.partition(odd, prefetch=1))),
        Typed(lambda: assert_type(f.partition(odd), tuple[Flow[int], Flow[int]])),
        Example(
            "(lambda odd, even: odd.map(lambda n: f'odd {n}').merge_with(even))(*a.partition(lambda n: n % 2))", "1234|"
        ),
    ],
    "balance": [
        case(lambda f: Flow.merge(*f.balance(3)), ALL, ordered=False),
        Case(
            lambda f, p: Flow.merge(*(worker.subscribe_on(p.pool) for worker in f.balance(2, prefetch=1))),
            ALL,
            ordered=False,
            variant="on a pool",
        ),
        Entry(lambda f, p: Flow.merge(*f.balance(2)), ordered=False, overtakes=True, shares=True),
        Entry(
            lambda f, p: Flow.merge(*(worker.publish_on(p.clock, prefetch=1) for worker in f.balance(3, prefetch=2))),
            ordered=False,
            overtakes=True,
            shares=True,
            variant="on a clock",
        ),
        Race(lambda a: Flow.merge(*a.balance(2, prefetch=1))),
        OnPool(
            shared(lambda p: Flow.merge(*(worker.subscribe_on(p) for worker in Flow.range(2).balance(2)))),
            2,
            ascending=False,
        ),
        Typed(lambda: assert_type(f.balance(2), tuple[Flow[int], ...])),
        Example("(lambda first, second: first.map(lambda n: f'first {n}').merge_with(second))(*a.balance(2))", "1234|"),
    ],
    "window": [
        case(lambda f: f.window(4).concat_map(lambda item: item.to_list()), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]),
        Entry(
            lambda f, p: f.window(3).concat_map(lambda entry: entry.to_list()),
            by_end=lambda xs, end: full(xs, end, 3),
            overtakes=True,
        ),
        Entry(lambda f, p: f.window(3).concat_map(keeping), overtakes=True, variant="its elements"),
        Race(lambda a: a.window(2).concat_map(same)),
        Race(lambda a: a.window(2, skip=1).flat_map(same), variant="overlapping"),
        Maker(lambda flow: flow.window(1), variant="windows of 1"),
        Maker(lambda flow: flow.window(4), variant="windows of 4"),
        Maker(lambda flow: flow.window(100), variant="one window"),
        case(
            lambda f: f.window(4, skip=3).flat_map(lambda item: item.to_list()),
            [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9], [9]],
            variant="overlapping",
        ),
        case(
            lambda f: f.window(2, skip=4).concat_map(lambda item: item.to_list()),
            [[0, 1], [4, 5], [8, 9]],
            variant="with gaps",
        ),
        Entry(
            lambda f, p: f.window(3, skip=2).flat_map(lambda entry: entry.to_list()),
            by_end=lambda xs, end: strided(xs, end, 3, 2),
            overtakes=True,
            eats=None,
            variant="overlapping",
        ),
        Entry(
            lambda f, p: f.window(2, skip=3).concat_map(lambda entry: entry.to_list()),
            by_end=lambda xs, end: strided(xs, end, 2, 3),
            overtakes=True,
            variant="with gaps",
        ),
        Example("a.window(2)", "12345|"),
    ],
    "window_time": [
        Case(lambda f, p: f.window_time(1e6, clock=p.clock).concat_map(lambda item: item.to_list()), [ALL]),
        Case(
            lambda f, p: f.window_time(1e6, every=4e5, clock=p.clock).flat_map(lambda item: item.to_list()),
            [ALL],
            variant="overlapping",
        ),
        Entry(
            lambda f, p: f.window_time(1e9, clock=p.clock).concat_map(lambda entry: entry.to_list()),
            by_end=lambda xs, end: full(xs, end, 99),
            overtakes=True,
        ),
        Entry(
            lambda f, p: f.window_time(1e9, clock=p.clock).concat_map(keeping), overtakes=True, variant="its elements"
        ),
        Race(lambda a, t: a.window_time(1, clock=t).concat_map(same)),
        Race(lambda a, t: a.window_time(2, every=1, clock=t).flat_map(same), variant="overlapping"),
        Maker(lambda flow: flow.window_time(1e6)),
        Example("a.window_time(2)", "12-3--4|"),
    ],
    "window_timeout": [
        Case(
            lambda f, p: f.window_timeout(4, 1e6, clock=p.clock).concat_map(lambda item: item.to_list()),
            [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]],
        ),
        Entry(
            lambda f, p: f.window_timeout(3, 1e9, clock=p.clock).concat_map(lambda entry: entry.to_list()),
            by_end=lambda xs, end: full(xs, end, 3),
            overtakes=True,
        ),
        Entry(
            lambda f, p: f.window_timeout(3, 1e9, clock=p.clock).concat_map(keeping),
            overtakes=True,
            variant="its elements",
        ),
        Race(lambda a, t: a.window_timeout(2, 1, clock=t).concat_map(same)),
        Maker(lambda flow: flow.window_timeout(4, 1e6)),
        Example("a.window_timeout(3, 2)", "12-3--4|"),
    ],
    "window_until": [
        case(
            lambda f: f.window_until(lambda n: n % 4 == 3).concat_map(lambda item: item.to_list()),
            [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]],
        ),
        case(
            lambda f: f.window_until(lambda n: n % 4 == 3, cut_before=True).concat_map(lambda item: item.to_list()),
            [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9]],
            variant="before",
        ),
        Entry(
            lambda f, p: f.window_until(even).concat_map(lambda entry: entry.to_list()),
            by_end=lambda xs, end: cut(xs, end, even),
            overtakes=True,
        ),
        Entry(
            lambda f, p: f.window_until(even, cut_before=True).concat_map(lambda entry: entry.to_list()),
            by_end=lambda xs, end: cut(xs, end, even, before=True),
            overtakes=True,
            variant="before",
        ),
        Race(lambda a: a.window_until(odd).concat_map(same)),
        Maker(lambda flow: flow.window_until(lambda n: n % 4 == 3)),
        Maker(lambda flow: flow.window_until(lambda n: n % 4 == 0, cut_before=True), variant="window_until, before"),
        Example("a.window_until(lambda n: n % 2 == 0)", "12345|"),
    ],
    "window_when": [
        case(lambda f: f.window_when(Flow.never()).concat_map(lambda item: item.to_list()), [ALL]),
        Entry(
            lambda f, p: f.window_when(Flow.never()).concat_map(lambda entry: entry.to_list()),
            by_end=lambda xs, end: full(xs, end, 99),
            overtakes=True,
        ),
        Entry(lambda f, p: f.window_when(Flow.never()).concat_map(keeping), overtakes=True, variant="its elements"),
        Race(lambda a, b: a.window_when(b).concat_map(same)),
        Maker(lambda flow: flow.window_when(Flow.never())),
        Example("a.window_when(b)", "12-3--4|", "--s-s-s"),
    ],
}
