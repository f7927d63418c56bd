"""Operators that watch signals, and pass them on."""

from __future__ import annotations

from declared.kinds import Declared, Plain, Race, case
from declared.modelling import passing
from declared.values import ALL
from docs._site.recording import Example
from reactive_runtime import Listener, Metrics

DECLARED: Declared = {
    "finalize": [
        case(lambda f: f.finalize(int), ALL),
        passing(lambda f, p: f.finalize(int)),
        Example("a.finalize(lambda: say('released'))", "12|"),
    ],
    "tap": [
        case(lambda f: f.tap(Listener()), ALL),
        passing(lambda f, p: f.tap(Listener())),
        Example("a.tap(listener)", "12|"),
    ],
    "do_on_subscribe": [
        case(lambda f: f.do_on_subscribe(int), ALL),
        passing(lambda f, p: f.do_on_subscribe(int)),
        Example("a.do_on_subscribe(lambda: say('begins'))", "12|"),
    ],
    "do_on_request": [
        case(lambda f: f.do_on_request(int), ALL),
        passing(lambda f, p: f.do_on_request(float)),
        Race(lambda a: a.do_on_request(int)),
        Example("a.do_on_request(say)", "123|", demand=2),
    ],
    "do_on_next": [
        case(lambda f: f.do_on_next(int), ALL),
        passing(lambda f, p: f.do_on_next(repr)),
        Plain(lambda f, k: f.do_on_next(int), lambda xs, k: xs),
        Example("a.do_on_next(say)", "12|"),
    ],
    "do_on_error": [
        case(lambda f: f.do_on_error(repr), ALL),
        passing(lambda f, p: f.do_on_error(repr)),
        Example("a.do_on_error(say)", "12x"),
    ],
    "do_on_complete": [
        case(lambda f: f.do_on_complete(int), ALL),
        passing(lambda f, p: f.do_on_complete(int)),
        Example("a.do_on_complete(lambda: say('done'))", "12|"),
    ],
    "do_on_cancel": [
        case(lambda f: f.do_on_cancel(int), ALL),
        passing(lambda f, p: f.do_on_cancel(int)),
        Example("a.do_on_cancel(lambda: say('cancelled'))", "123|", demand=1, cancel_after=2),
    ],
    "do_on_discard": [
        case(lambda f: f.do_on_discard(int), ALL),
        passing(lambda f, p: f.do_on_discard(repr)),
        Example("a.on_overflow_latest().do_on_discard(say)", "12-3|", demand=1, pause=2),
    ],
    "do_finally": [
        case(lambda f: f.do_finally(repr), ALL),
        passing(lambda f, p: f.do_finally(repr)),
        Race(lambda a: a.do_finally(repr)),
        Example("a.do_finally(say)", "12|"),
    ],
    "log": [
        case(lambda f: f.log("tests"), ALL),
        passing(lambda f, p: f.log("models")),
        Example("a.log()", "12|", demand=2, note="Each signal goes to the logging of Python, as it passes."),
    ],
    "named": [
        case(lambda f: f.named("numbers"), ALL),
        passing(lambda f, p: f.named("numbers")),
        Example("a.named('numbers')", "12|", note="Nothing changes but the name in errors and in `explain`."),
    ],
    "checkpoint": [
        case(lambda f: f.checkpoint("here"), ALL),
        passing(lambda f, p: f.checkpoint("here")),
        Example("a.checkpoint('after the source')", "1x", note="The error carries the description."),
    ],
    "metrics": [
        case(lambda f: f.metrics(Metrics()), ALL),
        passing(lambda f, p: f.metrics(Metrics())),
        Example("a.metrics(counts)", "12|", note="Counted, and passed on."),
    ],
    "progress": [
        case(lambda f: f.progress(int, every=3), ALL),
        passing(lambda f, p: f.progress(int, every=2)),
        Plain(lambda f, k: f.progress(int, every=k + 1), lambda xs, k: xs),
        Example("a.progress(say, every=2)", "12345|"),
    ],
}
