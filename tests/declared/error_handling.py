"""Operators that recover, retry and repeat."""

from __future__ import annotations

from typing import assert_type

from models.running import Entry

from declared.kinds import Case, Declared, Plain, Race, Typed, case
from declared.modelling import (
    BROKEN,
    BrokenError,
    again,
    all_made,
    breaking,
    breaks,
    made,
    no_end,
    number,
    others_made,
    passing,
    repeated,
)
from declared.values import ALL, f, fails, letters, plus, same, set_aside, text, whole_third, words
from docs._site.recording import Example
from reactive_runtime import Bulkhead, CircuitBreaker, Flow


def both(flow: Flow[int], other: Flow[int], bulkhead: Bulkhead) -> Flow[int]:
    """Two flows that share a bulkhead, merged."""
    return flow.bulkhead(bulkhead).merge_with(other.bulkhead(bulkhead))


DECLARED: Declared = {
    "on_error_resume": [
        case(lambda f: f.on_error_resume(lambda e: Flow.just(7)), ALL, survives=[0, 1, 2, 7]),
        passing(
            lambda f, p: f.on_error_resume(lambda error: Flow.just(number(1))),
            by_end=lambda xs, end: [*xs, *[number(1)] * (end == "error")],
            end=no_end,
        ),
        Race(lambda a, b: a.on_error_resume(lambda error: b)),
        Typed(
            lambda: (
                assert_type(f.on_error_resume(lambda error: words), Flow[int | str]),
                assert_type(f.on_error_resume(lambda error: f), Flow[int]),
            )
        ),
        Example("a.on_error_resume(lambda error: b)", "12x", "34|", demand=2),
    ],
    "on_error_return": [
        case(lambda f: f.on_error_return(lambda e: 7), ALL, survives=[0, 1, 2, 7]),
        passing(
            lambda f, p: f.on_error_return(lambda error: number(1)),
            by_end=lambda xs, end: [*xs, *[number(1)] * (end == "error")],
            end=no_end,
        ),
        Race(lambda a: a.on_error_return(lambda error: 7)),
        Typed(
            lambda: (
                assert_type(f.on_error_return(repr), Flow[int | str]),
                assert_type(f.on_error_return(lambda error: 1), Flow[int]),
            )
        ),
        Example("a.on_error_return(lambda error: 9)", "12x", demand=2),
    ],
    "on_error_complete": [
        case(lambda f: f.on_error_complete(), ALL, survives=[0, 1, 2]),
        passing(lambda f, p: f.on_error_complete(), end=no_end),
        passing(lambda f, p: f.on_error_complete(when=LookupError), variant="not of this"),
        Race(lambda a: a.on_error_complete()),
        Example("a.on_error_complete()", "12x", demand=2),
    ],
    "on_error_continue": [
        case(lambda f: f.on_error_continue(lambda n: n.map(whole_third), to=set_aside), [0, 1, 2, 3]),
        case(
            lambda f: f.on_error_continue(lambda n: n.map(plus).retry(1), to=set_aside, concurrency=3),
            list(range(1, 11)),
            ordered=False,
            variant="side by side",
        ),
        Entry(
            lambda f, p: f.on_error_continue(lambda entry: entry.map(made), to=set_aside),
            others_made,
            overtakes=True,
            eats=breaks,
        ),
        Entry(
            lambda f, p: f.on_error_continue(
                lambda entry: entry.map(made).subscribe_on(p.clock), to=set_aside, concurrency=3, prefetch=2
            ),
            others_made,
            ordered=False,
            overtakes=True,
            eats=None,
            variant="on an executor",
        ),
        Entry(
            lambda f, p: f.on_error_continue(lambda entry: entry.map(made), to=set_aside, when=OSError),
            all_made,
            breaking,
            overtakes=True,
            eats=breaks,
            fails=BrokenError,
            variant="not of this",
        ),
        Race(lambda a: a.on_error_continue(lambda n: n.map(fails), to=set_aside)),
        Race(
            lambda a: a.on_error_continue(lambda n: n.map(same), to=set_aside, concurrency=2),
            variant="side by side",
        ),
        Typed(
            lambda: (
                assert_type(f.on_error_continue(lambda n: n.map(text), to=set_aside), Flow[str]),
                assert_type(f.on_error_continue(lambda n: n.map(text), to=letters), Flow[str]),
            )
        ),
        Example("a.on_error_continue(lambda n: n.map(lambda x: 6 // (x - 2)), to=repr)", "123|"),
    ],
    "circuit_breaker": [
        case(lambda f: f.circuit_breaker(CircuitBreaker()), ALL),
        passing(lambda f, p: f.circuit_breaker(CircuitBreaker())),
        passing(lambda f, p: f.circuit_breaker(CircuitBreaker(failures=3)).retry(2), by_end=again(2), variant="retry"),
        Race(lambda a: a.circuit_breaker(CircuitBreaker(failures=1)).retry(1)),
        Example("a.circuit_breaker(CircuitBreaker(failures=2)).retry(2)", ("1x", "2x")),
    ],
    "bulkhead": [
        case(lambda f: f.bulkhead(Bulkhead(1)), ALL),
        passing(lambda f, p: f.bulkhead(Bulkhead(1))),
        Race(lambda a: a.bulkhead(Bulkhead(1))),
        Race(lambda a, b: both(a, b, Bulkhead(1)), variant="shared"),
        Example(
            "a.bulkhead(limit).merge_with(b.bulkhead(limit))",
            "1-2|",
            "3-4|",
            note="The limit is 1: the second source waits until the first has ended.",
        ),
    ],
    "map_error": [
        case(lambda f: f.map_error(lambda e: e), ALL),
        passing(lambda f, p: f.map_error(lambda error: BROKEN)),
        Race(lambda a: a.map_error(lambda error: LookupError("mapped"))),
        Example("a.map_error(lambda error: KeyError('gone'))", "12x"),
    ],
    "retry": [
        case(lambda f: f.retry(1), ALL),
        passing(lambda f, p: f.retry(2), by_end=again(2)),
        passing(lambda f, p: f.retry(2, when=LookupError), variant="not of this"),
        Race(lambda a: a.retry(1)),
        Example("a.retry(1)", ("12x", "123|"), demand=2),
    ],
    "retry_when": [
        case(lambda f: f.retry_when(lambda e, n: Flow.just(1) if n < 2 else Flow.empty()), ALL),
        passing(
            lambda f, p: f.retry_when(lambda error, times: Flow.just(1) if times < 3 else Flow.error(BROKEN)),
            by_end=again(2),
        ),
        passing(
            lambda f, p: f.retry_when(lambda error, times: Flow.just(1) if times < 2 else Flow.empty()),
            by_end=again(1),
            variant="until its companion completes",
        ),
        Race(lambda a, b: a.retry_when(lambda error, n: b)),
        Example(
            "a.retry_when(lambda error, n: inner('-9|'))",
            ("12x", "123|"),
            note="The flow that the function gives says when.",
        ),
    ],
    "retry_backoff": [
        Case(lambda f, p: f.retry_backoff(1, clock=p.clock), ALL),
        passing(lambda f, p: f.retry_backoff(2, clock=p.clock, first=1), by_end=again(2)),
        Race(lambda a, t: a.retry_backoff(1, clock=t, first=1)),
        Example("a.retry_backoff(3, first=1, jitter=0)", ("1x", "x", "12|")),
    ],
    "repeat": [
        case(lambda f: f.repeat(2), ALL * 2),
        passing(lambda f, p: f.repeat(3), by_end=repeated(3)),
        Plain(lambda f, k: f.repeat(k), lambda xs, k: xs * k),
        Race(lambda a: a.repeat(2)),
        Example("a.repeat(2)", "12|", demand=2),
    ],
    "repeat_when": [
        case(lambda f: f.repeat_when(lambda n: Flow.just(1) if n < 2 else Flow.empty()), ALL * 2),
        passing(
            lambda f, p: f.repeat_when(lambda times: Flow.timer(1, clock=p.clock) if times < 3 else Flow.empty()),
            by_end=repeated(3),
        ),
        Race(lambda a, b: a.repeat_when(lambda n: b)),
        Example("a.repeat_when(lambda n: inner('-9|' if n < 2 else '|'))", "12|"),
    ],
}
