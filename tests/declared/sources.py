"""Sources."""

from __future__ import annotations

import contextlib
from concurrent.futures import Future
from contextlib import nullcontext
from typing import assert_type

from models.running import Entry
from models.timed import PERIOD, Timed, Timer, Waiting, interval

from declared.kinds import Case, Declared, OnPool, Race, SourceCase, SourceModel, Typed, Without
from declared.modelling import as_given, async_of, coroutine_of, create_of, file_of, future_of, nothing, queue_of
from declared.values import (
    ALL,
    FAILED,
    done,
    ends_with_a_word,
    ends_with_none,
    f,
    numbers,
    numbers_async,
    pool,
    pushed,
    pushed_on_a_pool,
    queue_with,
    same,
    seven,
    shared,
)
from docs._site.recording import Example
from reactive_runtime import Flow
from reactive_runtime.executors import ScheduledExecutor

DECLARED: Declared = {
    "just": [
        SourceCase(lambda p: Flow.just(*ALL), ALL),
        SourceModel(lambda xs: Flow.just(*xs), as_given),
        Typed(lambda: assert_type(Flow.just(1, 2), Flow[int])),
        Example("Flow.just(1, 2, 3)", demand=2),
    ],
    "empty": [
        SourceCase(lambda p: Flow.empty(), []),
        SourceModel(lambda xs: Flow.empty(), nothing),
        Example("Flow.empty()"),
    ],
    "never": [
        SourceCase(lambda p: Flow.never().take_until(Flow.timer(1, clock=p.clock)), []),
        Without(Entry, "the source of every script that does not end (scripts.Given)"),
        Example("Flow.never()", cancel_at=2, note="No signal comes, until the subscriber cancels."),
    ],
    "error": [
        SourceCase(lambda p: Flow.error(FAILED).on_error_resume(lambda e: Flow.empty()), []),
        Without(Entry, "the source of test_sinks"),
        Example("Flow.error(OSError('broken'))", note="The error needs no demand."),
    ],
    "range": [
        SourceCase(lambda p: Flow.range(10), ALL),
        SourceModel(lambda xs: Flow.range(len(xs)), lambda xs: list(range(len(xs)))),
        Typed(
            lambda: (
                assert_type(Flow.range(3), Flow[int]),
                assert_type(Flow.range(1, 3), Flow[int]),
                assert_type(Flow.range(1, 9, 3), Flow[int]),
            )
        ),
        Example("Flow.range(5)", demand=2),
    ],
    "from_iterable": [
        SourceCase(lambda p: Flow.from_iterable(ALL), ALL),
        SourceModel(Flow.from_iterable, as_given),
        Typed(lambda: assert_type(Flow.from_iterable("ab"), Flow[str])),
        Example("Flow.from_iterable('abc')", demand=2),
    ],
    "from_supplier": [
        SourceCase(lambda p: Flow.from_supplier(numbers), ALL),
        SourceModel(lambda xs: Flow.from_supplier(lambda: iter(xs)), as_given),
        Typed(lambda: assert_type(Flow.from_supplier(lambda: [1]), Flow[int])),
        Example("Flow.from_supplier(lambda: iter('abc'))", demand=2, subscribers=(0, 1)),
    ],
    "from_callable": [
        SourceCase(lambda p: Flow.from_callable(lambda: 7), [7]),
        SourceModel(lambda xs: Flow.from_callable(lambda: sum(xs)), lambda xs: [sum(xs)]),
        Typed(lambda: assert_type(Flow.from_callable(lambda: 1), Flow[int])),
        Example("Flow.from_callable(lambda: say('called') or 7)", demand=1),
    ],
    "from_publisher": [
        SourceCase(lambda p: Flow.from_publisher(Flow.range(10)), ALL),
        SourceModel(lambda xs: Flow.from_publisher(Flow.from_iterable(xs)), as_given),
        Race(lambda a: a),
        Typed(lambda: assert_type(Flow.from_publisher(f), Flow[int])),
        Example("Flow.from_publisher(a)", "123|", demand=2),
    ],
    "from_file": [
        SourceCase(lambda p: Flow.from_file("LICENSE").take(1), ["MIT License"]),
        SourceModel(file_of, as_given),
        Example("Flow.from_file(path)", demand=2, note="The file has three lines."),
    ],
    "generate": [
        SourceCase(lambda p: Flow.generate(0, lambda n: (n, n + 1) if n < 10 else None), ALL),
        SourceModel(lambda xs: Flow.generate(0, lambda n: (xs[n], n + 1) if n < len(xs) else None), as_given),
        Typed(lambda: assert_type(Flow.generate(0, lambda n: ("a", n + 1)), Flow[str])),
        Example("Flow.generate(1, lambda n: (n, n * 2) if n < 9 else None)", demand=2),
    ],
    "defer": [
        SourceCase(lambda p: Flow.defer(lambda: Flow.range(10)), ALL),
        SourceModel(lambda xs: Flow.defer(lambda: Flow.from_iterable(xs)), as_given),
        Race(lambda a: Flow.defer(lambda: a)),
        Typed(lambda: assert_type(Flow.defer(lambda: f), Flow[int])),
        Example("Flow.defer(lambda: inner('12|'))", subscribers=(0, 1), note="Each subscriber gets its own flow."),
    ],
    "using": [
        SourceCase(lambda p: Flow.using(lambda: contextlib.nullcontext(10), Flow.range), ALL),
        SourceModel(lambda xs: Flow.using(lambda: contextlib.nullcontext(xs), Flow.from_iterable), as_given),
        Race(lambda a: Flow.using(nullcontext, lambda _: a)),
        Typed(lambda: assert_type(Flow.using(lambda: nullcontext(3), Flow.range), Flow[int])),
        Example("Flow.using(lambda: resource, lambda it: inner('12|'))", note="Opened first, closed at the end."),
    ],
    "from_future": [
        SourceCase(lambda p: Flow.from_future(done(7)), [7]),
        SourceModel(future_of, lambda xs: [sum(xs)]),
        OnPool(lambda: Flow.from_future(pool().submit(same, 7)), 1),
        Typed(lambda: assert_type(Flow.from_future(Future[int]()), Flow[int])),
        Example("Flow.from_future(clock.schedule(2, lambda: 7))"),
    ],
    "from_async": [
        SourceCase(lambda p: Flow.from_async(numbers_async, prefetch=3), ALL),
        SourceModel(async_of, as_given),
        Typed(lambda: assert_type(Flow.from_async(numbers_async), Flow[int])),
        Example("Flow.from_async(counted, prefetch=2)", demand=2, waits=True),
    ],
    "from_coroutine": [
        SourceCase(lambda p: Flow.from_coroutine(seven), [7]),
        SourceModel(coroutine_of, lambda xs: [sum(xs)]),
        Typed(lambda: assert_type(Flow.from_coroutine(seven), Flow[int])),
        Example("Flow.from_coroutine(answer)", demand=1, waits=True),
    ],
    "from_queue": [
        SourceCase(lambda p: Flow.from_queue(queue_with(*ALL, None)), ALL),
        SourceModel(queue_of, as_given),
        OnPool(shared(lambda p: Flow.from_queue(queue_with(0, 1, None)).subscribe_on(p)), 2),
        Typed(
            lambda: (
                assert_type(Flow.from_queue(ends_with_none), Flow[int]),
                assert_type(Flow.from_queue(ends_with_a_word, end="over"), Flow[int | str]),
            )
        ),
        Example(
            "Flow.from_queue(numbers).subscribe_on(io)", demand=2, note="The queue holds 1, 2, 3, and None for the end."
        ),
    ],
    "create": [
        SourceCase(lambda p: Flow.create(pushed), ALL),
        Timed(lambda f, s: f, Waiting),
        SourceModel(create_of("error"), as_given),
        SourceModel(create_of("oldest"), as_given, variant="oldest"),
        SourceModel(create_of("newest"), as_given, variant="newest"),
        Race(lambda a: Flow.create(lambda emitter: a.subscribe(emitter.emit, emitter.error, emitter.complete))),
        OnPool(pushed_on_a_pool, 2),
        Without(Typed, "nothing but what is at the left says it: tests/operators/typed.py"),
        Example(
            "Flow.create(emitters.append)",
            at=((1, "emitters[0].emit('x')"), (2, "emitters[0].emit('y')"), (3, "emitters[0].complete()")),
        ),
    ],
    "from_dataframe": [
        Without(Case, "tests/spark/test_connectors.py"),
        Without(Entry, "tests/spark"),
        Without(Typed, "needs PySpark: tests/operators/typed.py"),
        Without(Example, "needs a session of Spark"),
    ],
    "from_stream": [
        Without(Case, "tests/spark/test_connectors.py"),
        Without(Entry, "tests/spark"),
        Without(Typed, "needs PySpark: tests/operators/typed.py"),
        Without(Example, "needs a session of Spark"),
    ],
    "interval": [
        SourceCase(lambda p: Flow.interval(1, clock=p.clock, overflow="buffer").take(10), ALL),
        interval("drop"),
        interval("latest"),
        interval("buffer"),
        Race(lambda a, t: Flow.interval(1, clock=t, overflow="latest").take_until(a)),
        OnPool(lambda: Flow.interval(1, clock=ScheduledExecutor(), overflow="buffer").take(2), 2),
        OnPool(lambda: Flow.interval(1, overflow="buffer").take(2), 2, variant="shared clock"),
        Example("Flow.interval(1)", cancel_after=3),
    ],
    "timer": [
        SourceCase(lambda p: Flow.timer(1, clock=p.clock), [0]),
        Timed(lambda f, s: Flow.timer(PERIOD, clock=s.clock), Timer, follows=False),
        Race(lambda a, t: Flow.timer(1, clock=t).take_until(a)),
        Example("Flow.timer(2)"),
    ],
}
