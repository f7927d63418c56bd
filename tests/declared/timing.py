"""Operators with a clock."""

from __future__ import annotations

from typing import assert_type

from models.running import Entry
from models.timed import (
    PERIOD,
    BufferTime,
    BufferTimeout,
    Deadline,
    Debounce,
    Delay,
    Elapsed,
    RateLimit,
    Sample,
    Throttle,
    Timed,
    Timeout,
    Timestamp,
)

from declared.kinds import Case, Declared, OnPool, Race, Typed, case
from declared.modelling import full, passing
from declared.values import ALL, clock, f, on, shared, words
from docs._site.recording import Example
from reactive_runtime import Flow
from reactive_runtime.executors import ScheduledExecutor

DECLARED: Declared = {
    "buffer_timeout": [
        Case(lambda f, p: f.buffer_timeout(10, 1000, clock=p.clock), [ALL]),
        Entry(lambda f, p: f.buffer_timeout(3, 1e9, clock=p.clock), by_end=lambda xs, end: full(xs, end, 3)),
        Timed(lambda f, s: f.buffer_timeout(3, PERIOD, clock=s.clock), BufferTimeout),
        Race(lambda a, t: a.buffer_timeout(2, 1, clock=t)),
        Example("a.buffer_timeout(3, 2)", "12-3--4|", note="A batch goes out when it is full, or after 2 s."),
    ],
    "buffer_time": [
        Case(lambda f, p: f.buffer_time(1e6, clock=p.clock), [ALL]),
        Case(lambda f, p: f.buffer_time(1e6, every=4e5, clock=p.clock), [ALL], variant="overlapping"),
        Entry(lambda f, p: f.buffer_time(1e9, clock=p.clock), by_end=lambda xs, end: full(xs, end, 99)),
        Timed(lambda f, s: f.buffer_time(PERIOD, clock=s.clock), lambda: BufferTime(PERIOD)),
        Timed(
            lambda f, s: f.buffer_time(PERIOD, every=1007, clock=s.clock),
            lambda: BufferTime(1007),
            follows=False,
            variant="overlapping",
        ),
        Timed(
            lambda f, s: f.buffer_time(PERIOD, every=5011, clock=s.clock),
            lambda: BufferTime(5011),
            variant="with gaps",
        ),
        Race(lambda a, t: a.buffer_time(1, clock=t)),
        Race(lambda a, t: a.buffer_time(2, every=1, clock=t), variant="overlapping"),
        Example("a.buffer_time(2)", "12-3--4|"),
    ],
    "buffer_when": [
        Case(lambda f, p: f.buffer_when(Flow.never()), [ALL]),
        Entry(lambda f, p: f.buffer_when(Flow.never()), by_end=lambda xs, end: full(xs, end, 99)),
        Race(lambda a, b: a.buffer_when(b)),
        Example("a.buffer_when(b)", "12-3--4|", "--s-s-s"),
    ],
    "debounce": [
        Case(lambda f, p: f.debounce(0.5, clock=p.clock), [9], lossy=True),
        Timed(lambda f, s: f.debounce(PERIOD, clock=s.clock), Debounce),
        Race(lambda a, t: a.debounce(1, clock=t)),
        Example("a.debounce(2)", "1-2---3|"),
    ],
    "deadline": [
        Case(lambda f, p: f.deadline(1e9, clock=p.clock), ALL),
        passing(lambda f, p: f.deadline(1e9, clock=p.clock)),
        Timed(lambda f, s: f.deadline(PERIOD, clock=s.clock), Deadline),
        Race(lambda a, t: a.deadline(1, clock=t)),
        Example("a.deadline(3)", "1-2-3-4|"),
    ],
    "delay": [
        Case(lambda f, p: f.delay(0.5, clock=p.clock), ALL),
        Entry(lambda f, p: f.delay(1, clock=p.clock), overtakes=True),
        Timed(lambda f, s: f.delay(PERIOD, clock=s.clock), Delay),
        Race(lambda a, t: a.delay(1, clock=t)),
        OnPool(shared(lambda p: on(p, 2).delay(1, clock=ScheduledExecutor())), 2),
        Example("a.delay(2)", "1-2|"),
    ],
    "delay_subscription": [
        Case(lambda f, p: f.delay_subscription(0.5, clock=p.clock), ALL),
        case(lambda f: f.delay_subscription(Flow.just(1)), ALL, variant="publisher"),
        passing(lambda f, p: f.delay_subscription(1, clock=p.clock)),
        passing(lambda f, p: f.delay_subscription(Flow.timer(1, clock=p.clock)), variant="publisher"),
        Race(lambda a, t: a.delay_subscription(1, clock=t)),
        Race(lambda a, b: a.delay_subscription(b), variant="publisher"),
        Example("a.delay_subscription(2)", "12|"),
    ],
    "elapsed": [
        Case(lambda f, p: f.elapsed(clock=p.clock).map(lambda pair: pair[1]), ALL),
        passing(lambda f, p: f.elapsed(clock=p.clock).map(lambda pair: pair[1])),
        Timed(lambda f, s: f.elapsed(clock=s.clock), Elapsed),
        Race(lambda a, t: a.elapsed(clock=t).map(lambda pair: pair[1])),
        Example("a.elapsed()", "-1--2|"),
    ],
    "rate_limit": [
        Case(lambda f, p: f.rate_limit(3, clock=p.clock), ALL),
        Entry(lambda f, p: f.rate_limit(99, clock=p.clock)),
        Timed(lambda f, s: f.rate_limit(2, clock=s.clock, per=PERIOD), RateLimit),
        Race(lambda a, t: a.rate_limit(1, clock=t)),
        Example("a.rate_limit(2)", "12345|", note="No more than two a second."),
    ],
    "sample": [
        Case(lambda f, p: f.sample(Flow.interval(0.5, clock=p.clock)), [9], lossy=True),
        Case(lambda f, p: f.sample(0.5, clock=p.clock), [9], lossy=True, variant="seconds"),
        Timed(lambda f, s: f.sample(PERIOD, clock=s.clock), Sample),
        Race(lambda a, b: a.sample(b)),
        Race(lambda a, t: a.sample(1, clock=t), variant="seconds"),
        Example("a.sample(b)", "12-3--4|", "--s-s-s"),
    ],
    "timestamp": [
        Case(lambda f, p: f.timestamp(clock=p.clock).map(lambda pair: pair[1]), ALL),
        passing(lambda f, p: f.timestamp(clock=p.clock).map(lambda pair: pair[1])),
        Timed(lambda f, s: f.timestamp(clock=s.clock), Timestamp),
        Race(lambda a, t: a.timestamp(clock=t).map(lambda pair: pair[1])),
        Example("a.timestamp()", "-1--2|"),
    ],
    "throttle": [
        Case(lambda f, p: f.throttle(1000, clock=p.clock), [0], lossy=True),
        Timed(lambda f, s: f.throttle(PERIOD, clock=s.clock), Throttle),
        Race(lambda a, t: a.throttle(1, clock=t)),
        Example("a.throttle(2)", "12-3-4|"),
    ],
    "timeout": [
        Case(lambda f, p: f.timeout(1e9, clock=p.clock), ALL),
        passing(lambda f, p: f.timeout(1e9, clock=p.clock)),
        Timed(lambda f, s: f.timeout(PERIOD, clock=s.clock), Timeout),
        Race(lambda a, b, t: a.timeout(1, clock=t, fallback=b)),
        OnPool(shared(lambda p: on(p, 2).timeout(1, clock=ScheduledExecutor())), None),
        OnPool(shared(lambda p: on(p, 2).timeout(1)), None, variant="shared clock"),
        Typed(
            lambda: (
                assert_type(f.timeout(1, fallback=words), Flow[int | str]),
                assert_type(f.timeout(1, clock=clock, fallback=f), Flow[int]),
                assert_type(f.timeout(0.5).delay(0.1), Flow[int]),
            )
        ),
        Example("a.timeout(2)", "1-2----3|"),
    ],
}
