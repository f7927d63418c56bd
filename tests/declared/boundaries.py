"""Threads, demand, and one run for several subscribers."""

from __future__ import annotations

from typing import assert_type

from models.running import POOL, Entry
from models.scripts import Made
from models.timed import Buffer, Conflate, Drop, Killed, Latest, Pausable, Timed

from declared.kinds import Case, Declared, OnPool, Race, Typed, case
from declared.modelling import BrokenError, ahead, breaking, breaks, even, keeping, made, passing
from declared.values import ALL, add, f, plus, shared
from docs._site.recording import Example
from reactive_runtime import Flow, KillSwitch, Valve

DECLARED: Declared = {
    "publish_on": [
        Case(lambda f, p: f.publish_on(p.pool, prefetch=3), ALL),
        Entry(lambda f, p: f.publish_on(p.clock, prefetch=3), most=lambda a, n: max(a, n + 3)),
        Entry(
            lambda f, p: f.publish_on(p.clock, prefetch=2).map(keeping).publish_on(p.clock, prefetch=3), variant="twice"
        ),
        Entry(lambda f, p: f.publish_on(POOL, prefetch=3), waits=True, variant="on a pool"),
        Example("a.publish_on(io, prefetch=4)", "12345|", note="At most 4 elements wait before the boundary."),
    ],
    "subscribe_on": [
        Case(lambda f, p: f.subscribe_on(p.pool), ALL),
        passing(lambda f, p: f.subscribe_on(p.clock)),
        Example("a.subscribe_on(io)", "123|", demand=2),
    ],
    "parallel": [
        Case(
            lambda f, p: f.parallel(2, prefetch=3).run_on(p.pool).map(plus).sequential(),
            list(range(1, 11)),
            ordered=False,
        ),
        Entry(
            lambda f, p: f.parallel(2, prefetch=3).run_on(p.clock).map(made).sequential(),
            lambda xs: [Made(*x) for x in xs if not breaks(x)],
            breaking,
            ordered=False,
            overtakes=True,
            eats=breaks,
            fails=BrokenError,
        ),
        Entry(
            lambda f, p: (
                f.parallel(3, prefetch=2)
                .run_on(p.clock)
                .filter(even)
                .rails(lambda rail: rail.map(keeping))
                .sequential()
            ),
            lambda xs: [x for x in xs if even(x)],
            ordered=False,
            overtakes=True,
            eats=lambda entry: not even(entry),
            variant="rails",
        ),
        OnPool(shared(lambda p: Flow.range(2).parallel(2, prefetch=1).run_on(p).sequential()), 2, ascending=False),
        Example("a.parallel(2, prefetch=2).run_on(pool).map(lambda n: n * 10).sequential()", "1234|"),
    ],
    "limit_rate": [
        case(lambda f: f.limit_rate(3), ALL),
        Entry(lambda f, p: f.limit_rate(3), most=ahead(4)),
        Race(lambda a: a.limit_rate(1)),
        Example("a.limit_rate(4)", "123456|", note="A demand without bound becomes portions of 4."),
    ],
    "on_overflow_buffer": [
        case(lambda f: f.on_overflow_buffer(100), ALL),
        Entry(lambda f, p: f.on_overflow_buffer(99)),
        Timed(lambda f, s: f.on_overflow_buffer(2, drop="oldest"), lambda: Buffer("oldest"), variant="oldest"),
        Timed(lambda f, s: f.on_overflow_buffer(2, drop="newest"), lambda: Buffer("newest"), variant="newest"),
        Timed(lambda f, s: f.on_overflow_buffer(2), lambda: Buffer("error"), variant="error"),
        Race(lambda a: a.on_overflow_buffer(1, drop="oldest")),
        Example(
            "a.on_overflow_buffer(2, drop='oldest')",
            "12345--|",
            demand=1,
            pause=1,
            note="At most 2 elements wait; 2 and 3 are dropped.",
        ),
    ],
    "conflate": [
        case(lambda f: f.conflate(lambda n: [n], lambda kept, n: [*kept, n]).flatten(), ALL),
        Entry(lambda f, p: f.conflate(lambda item: [item], lambda kept, item: [*kept, item]).flatten()),
        Timed(lambda f, s: f.conflate(lambda item: [item], lambda kept, item: [*kept, item]), Conflate),
        Race(lambda a: a.conflate(lambda n: n, lambda total, n: total + n)),
        Typed(lambda: assert_type(f.conflate(float, add), Flow[float])),
        Example("a.conflate(lambda n: n, lambda total, n: total + n)", "123-4-56|", demand=1, pause=2),
    ],
    "on_overflow_drop": [
        case(lambda f: f.on_overflow_drop(), ALL, lossy=True),
        Timed(lambda f, s: f.on_overflow_drop(), Drop),
        Race(lambda a: a.on_overflow_drop()),
        Example("a.on_overflow_drop()", "12-34-5|", demand=1, pause=1),
    ],
    "on_overflow_latest": [
        case(lambda f: f.on_overflow_latest(), ALL, lossy=True),
        Timed(lambda f, s: f.on_overflow_latest(), Latest),
        Race(lambda a: a.on_overflow_latest()),
        Example("a.on_overflow_latest()", "123-45-6|", demand=1, pause=1),
    ],
    "pausable": [
        case(lambda f: f.pausable(Valve()), ALL),
        passing(lambda f, p: f.pausable(Valve())),
        Timed(lambda f, s: f.pausable(s.valve), Pausable),
        Race(lambda a: a.pausable(Valve())),
        Example(
            "a.pausable(valve)",
            "1234|",
            demand=1,
            at=((0, "valve.resume()"),),
            note="Nothing is asked for while the valve is paused.",
        ),
    ],
    "kill_switch": [
        case(lambda f: f.kill_switch(KillSwitch()), ALL),
        passing(lambda f, p: f.kill_switch(KillSwitch())),
        Timed(lambda f, s: f.kill_switch(s.switch), Killed),
        Race(lambda a: a.kill_switch(KillSwitch())),
        Example("a.kill_switch(switch)", "1-2-3-4|", at=((2.5, "switch.throw()"),)),
    ],
    "serialize": [
        case(lambda f: f.serialize(), ALL),
        passing(lambda f, p: f.serialize()),
        Race(lambda a: a.serialize()),
        Example("a.serialize()", "123|", demand=2),
    ],
    "share": [
        case(lambda f: f.share(capacity=3), ALL),
        Entry(lambda f, p: f.share(capacity=4), shares=True),
        Race(lambda a: a.share(capacity=1)),
        Example(
            "a.share(capacity=2)",
            "1-2-3|",
            subscribers=(0, 1.5),
            note="One subscription to the source; the second subscriber gets what comes after it.",
        ),
    ],
    "publish": [
        case(lambda f: f.publish(capacity=3).ref_count(), ALL),
        Entry(lambda f, p: f.publish(capacity=4).ref_count(), shares=True),
        Example(
            "a.publish(capacity=2).ref_count(2)",
            "123|",
            subscribers=(0, 1),
            note="Connected when there are two subscribers.",
        ),
    ],
    "replay": [
        case(lambda f: f.replay(99).ref_count(), ALL),
        Entry(lambda f, p: f.replay(99).ref_count(), eats=None, shares=True),
        Race(lambda a: a.replay(1, capacity=1).ref_count()),
        Example("a.replay(2).ref_count()", "12-3|", subscribers=(0, 0.5)),
    ],
    "cache": [
        case(lambda f: f.cache(), ALL),
        Entry(lambda f, p: f.cache(), eats=None, shares=True, keeps=True),
        Race(lambda a: a.cache()),
        Example("a.cache()", "12-3|", subscribers=(0, 2)),
    ],
}
