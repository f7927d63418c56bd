"""An example of each member of `Flow`, as its picture shows it: a new one is one line here."""

from __future__ import annotations

from typing import Final

from docs._site.recording import Example

__all__ = ["EXAMPLES", "WITHOUT"]

WITHOUT: Final = {
    "explain": "gives a text; nothing is subscribed to",
    "from_dataframe": "needs a session of Spark",
    "from_stream": "needs a session of Spark",
    "to_spark": "needs a session of Spark",
}
"""Members of `Flow` that have no picture, with the reason."""

SOURCES: Final = {
    "just": Example("Flow.just(1, 2, 3)", demand=2),
    "empty": Example("Flow.empty()"),
    "never": Example("Flow.never()", cancel_at=2, note="No signal comes, until the subscriber cancels."),
    "error": Example("Flow.error(OSError('broken'))", note="The error needs no demand."),
    "range": Example("Flow.range(5)", demand=2),
    "from_iterable": Example("Flow.from_iterable('abc')", demand=2),
    "from_supplier": Example("Flow.from_supplier(lambda: iter('abc'))", demand=2, subscribers=(0, 1)),
    "from_callable": Example("Flow.from_callable(lambda: say('called') or 7)", demand=1),
    "from_future": Example("Flow.from_future(clock.schedule(2, lambda: 7))"),
    "from_async": Example("Flow.from_async(counted, prefetch=2)", demand=2, waits=True),
    "from_publisher": Example("Flow.from_publisher(a)", "123|", demand=2),
    "from_file": Example("Flow.from_file(path)", demand=2, note="The file has three lines."),
    "generate": Example("Flow.generate(1, lambda n: (n, n * 2) if n < 9 else None)", demand=2),
    "create": Example(
        "Flow.create(emitters.append)",
        at=((1, "emitters[0].emit('x')"), (2, "emitters[0].emit('y')"), (3, "emitters[0].complete()")),
    ),
    "defer": Example("Flow.defer(lambda: inner('12|'))", subscribers=(0, 1), note="Each subscriber gets its own flow."),
    "using": Example("Flow.using(lambda: resource, lambda it: inner('12|'))", note="Opened first, closed at the end."),
    "interval": Example("Flow.interval(1)", cancel_after=3),
    "timer": Example("Flow.timer(2)"),
    "concat": Example("Flow.concat(a, b)", "12|", "34|", demand=2),
    "merge": Example("Flow.merge(a, b)", "1--2|", "-3-4|"),
    "merge_comparing": Example("Flow.merge_comparing(a, b)", "147|", "258|"),
    "zip": Example("Flow.zip(a, b)", "1-2-3|", "p--q|"),
    "combine_latest": Example("Flow.combine_latest(a, b)", "1--2|", "-3-4|"),
    "race": Example("Flow.race(a, b)", "--12|", "-34|", note="The first to signal wins; the other is cancelled."),
}

TRANSFORMING: Final = {
    "map": Example("a.map(lambda n: n * 10)", "123|", demand=2),
    "starmap": Example("Flow.zip(a, b).starmap(lambda x, y: x * y)", "123|", "456|"),
    "map_not_none": Example("a.map_not_none(lambda n: n * 10 if n != 2 else None)", "123|", demand=1),
    "handle": Example("a.handle(lambda n, emit: [emit(n) for _ in range(n)])", "123|", demand=2),
    "flat_map_iterable": Example("a.flat_map_iterable(lambda n: [n] * n)", "123|", demand=2),
    "flatten": Example("a.map(lambda n: [n, n]).flatten()", "12|", demand=2),
    "enumerate": Example("a.enumerate()", "ab|", demand=2),
    "pairwise": Example("a.pairwise()", "1234|", demand=1),
    "scan": Example("a.scan(lambda total, n: total + n, 0)", "123|", demand=2),
    "batch": Example("a.batch(2)", "12345|", demand=1),
    "buffer": Example("a.buffer(3)", "12345|", demand=1),
    "end_with": Example("a.end_with(8, 9)", "12|", demand=2),
    "materialize": Example("a.materialize()", "12x"),
    "dematerialize": Example("a.materialize().dematerialize()", "12|", demand=1),
    "transform": Example("a.transform(lambda flow: flow.skip(1).map(str))", "123|", demand=1),
}

FILTERING: Final = {
    "filter": Example("a.filter(lambda n: n % 2 == 1)", "1234567-|", demand=2),
    "distinct": Example("a.distinct()", "12123|", demand=2),
    "distinct_until_changed": Example("a.distinct_until_changed()", "112213|", demand=2),
    "take": Example("a.take(3)", "12345|", demand=2),
    "take_while": Example("a.take_while(lambda n: n < 3)", "1234|", demand=2),
    "skip": Example("a.skip(2)", "12345|", demand=2),
    "skip_while": Example("a.skip_while(lambda n: n < 3)", "12341|", demand=2),
    "first": Example("a.first()", "123|"),
    "last": Example("a.last()", "123|"),
    "element_at": Example("a.element_at(1)", "123|"),
    "default_if_empty": Example("a.default_if_empty(9)", "-|"),
    "ignore_elements": Example("a.ignore_elements()", "123|"),
}

AGGREGATING: Final = {
    "reduce": Example("a.reduce(lambda total, n: total + n)", "123|"),
    "collect": Example("a.collect(set, set.add)", "121|"),
    "to_list": Example("a.to_list()", "123|"),
    "to_dict": Example("a.to_dict(lambda n: n * n)", "12|"),
    "count": Example("a.count()", "123|"),
    "sum": Example("a.sum()", "123|"),
    "min": Example("a.min()", "213|"),
    "max": Example("a.max()", "132|"),
    "all": Example("a.all(lambda n: n < 2)", "123|", note="The first that is false decides; the source is cancelled."),
    "any": Example("a.any(lambda n: n > 1)", "123|", note="The first that is true decides; the source is cancelled."),
    "contains": Example("a.contains(2)", "123|"),
}

COMBINING: Final = {
    "concat_with": Example("a.concat_with(b)", "12|", "34|", demand=2),
    "start_with": Example("a.start_with(8, 9)", "12|", demand=2),
    "merge_with": Example("a.merge_with(b)", "1--2|", "-3-4|"),
    "zip_with": Example(
        "a.zip_with(b)", "123|", "-4-5|", note="The shorter source ends the flow; the other is cancelled."
    ),
    "with_latest_from": Example("a.with_latest_from(b)", "-1-2-3|", "4--5---"),
    "switch_if_empty": Example("a.switch_if_empty(b)", "-|", "12|"),
    "take_until": Example("a.take_until(b)", "1-2-3-4|", "---5"),
    "skip_until": Example("a.skip_until(b)", "1-2-3-4|", "--5"),
}

FLATTENING: Final = {
    "flat_map": Example("a.flat_map(lambda n: inner(f'-{n}-{n}|'), concurrency=2)", "123|"),
    "flat_map_sequential": Example("a.flat_map_sequential(lambda n: inner('--1|' if n == 1 else '-2|'))", "12|"),
    "concat_map": Example("a.concat_map(lambda n: inner(f'-{n}{n}|'))", "12|"),
    "switch_map": Example("a.switch_map(lambda n: inner(f'{n}--{n}|'))", "1-2----|"),
    "map_parallel": Example(
        "a.map_parallel(lambda n: n * 10, pool, concurrency=2)",
        "1234|",
        seconds=(3, 1),
        note="Each call on the first thread takes 3 s, each on the second 1 s. Results keep the order of the source.",
    ),
    "expand": Example("a.expand(lambda n: inner(str(n + 1) + '|' if n < 3 else '|'))", "1|"),
    "group_by": Example("a.group_by(lambda n: n % 2)", "1234|"),
    "window": Example("a.window(2)", "12345|"),
}

TIMING: Final = {
    "buffer_timeout": Example(
        "a.buffer_timeout(3, 2)", "12-3--4|", note="A batch goes out when it is full, or after 2 s."
    ),
    "debounce": Example("a.debounce(2)", "1-2---3|"),
    "delay": Example("a.delay(2)", "1-2|"),
    "rate_limit": Example("a.rate_limit(2)", "12345|", note="No more than two a second."),
    "sample": Example("a.sample(b)", "12-3--4|", "--s-s-s"),
    "throttle": Example("a.throttle(2)", "12-3-4|"),
    "timeout": Example("a.timeout(2)", "1-2----3|"),
}

FLOW_CONTROL: Final = {
    "publish_on": Example(
        "a.publish_on(io, prefetch=4)", "12345|", note="At most 4 elements wait before the boundary."
    ),
    "subscribe_on": Example("a.subscribe_on(io)", "123|", demand=2),
    "parallel": Example("a.parallel(2, prefetch=2).run_on(pool).map(lambda n: n * 10).sequential()", "1234|"),
    "limit_rate": Example("a.limit_rate(4)", "123456|", note="A demand without bound becomes portions of 4."),
    "on_overflow_buffer": Example(
        "a.on_overflow_buffer(2, drop='oldest')",
        "12345--|",
        demand=1,
        pause=1,
        note="At most 2 elements wait; 2 and 3 are dropped.",
    ),
    "on_overflow_drop": Example("a.on_overflow_drop()", "12-34-5|", demand=1, pause=1),
    "on_overflow_latest": Example("a.on_overflow_latest()", "123-45-6|", demand=1, pause=1),
    "pausable": Example(
        "a.pausable(valve)",
        "1234|",
        demand=1,
        at=((0, "valve.resume()"),),
        note="Nothing is asked for while the valve is paused.",
    ),
    "kill_switch": Example("a.kill_switch(switch)", "1-2-3-4|", at=((2.5, "switch.throw()"),)),
    "serialize": Example("a.serialize()", "123|", demand=2),
    "share": Example(
        "a.share(capacity=2)",
        "1-2-3|",
        subscribers=(0, 1.5),
        note="One subscription to the source; the second subscriber gets what comes after it.",
    ),
    "publish": Example(
        "a.publish(capacity=2).ref_count(2)",
        "123|",
        subscribers=(0, 1),
        note="Connected when there are two subscribers.",
    ),
    "replay": Example("a.replay(2).ref_count()", "12-3|", subscribers=(0, 0.5)),
    "cache": Example("a.cache()", "12-3|", subscribers=(0, 2)),
}

ERRORS: Final = {
    "on_error_resume": Example("a.on_error_resume(lambda error: b)", "12x", "34|", demand=2),
    "on_error_return": Example("a.on_error_return(lambda error: 9)", "12x", demand=2),
    "map_error": Example("a.map_error(lambda error: KeyError('gone'))", "12x"),
    "retry": Example("a.retry(1)", ("12x", "123|"), demand=2),
    "retry_when": Example(
        "a.retry_when(lambda error, n: inner('-9|'))",
        ("12x", "123|"),
        note="The flow that the function gives says when.",
    ),
    "retry_backoff": Example("a.retry_backoff(3, first=1, jitter=0)", ("1x", "x", "12|")),
    "repeat": Example("a.repeat(2)", "12|", demand=2),
    "repeat_when": Example("a.repeat_when(lambda n: inner('-9|' if n < 2 else '|'))", "12|"),
    "finalize": Example("a.finalize(lambda: say('released'))", "12|"),
}

SIDE_EFFECTS: Final = {
    "tap": Example("a.tap(listener)", "12|"),
    "do_on_subscribe": Example("a.do_on_subscribe(lambda: say('begins'))", "12|"),
    "do_on_request": Example("a.do_on_request(say)", "123|", demand=2),
    "do_on_next": Example("a.do_on_next(say)", "12|"),
    "do_on_error": Example("a.do_on_error(say)", "12x"),
    "do_on_complete": Example("a.do_on_complete(lambda: say('done'))", "12|"),
    "do_on_cancel": Example("a.do_on_cancel(lambda: say('cancelled'))", "123|", demand=1, cancel_after=2),
    "do_on_discard": Example("a.on_overflow_latest().do_on_discard(say)", "12-3|", demand=1, pause=2),
    "do_finally": Example("a.do_finally(say)", "12|"),
    "log": Example("a.log()", "12|", demand=2, note="Each signal goes to the logging of Python, as it passes."),
    "named": Example("a.named('numbers')", "12|", note="Nothing changes but the name in errors and in `explain`."),
    "checkpoint": Example("a.checkpoint('after the source')", "1x", note="The error carries the description."),
    "metrics": Example("a.metrics(counts)", "12|", note="Counted, and passed on."),
    "progress": Example("a.progress(say, every=2)", "12345|"),
}

SINKS: Final = {
    "subscribe": Example("a.subscribe(say, demand=2).request(1)", "1234|", sink=True),
    "to_future": Example("a.to_future().result()", "123|", sink=True),
    "to_queue": Example("[a.to_queue(queue).result(), queue.get(), queue.get(), queue.get()]", "12|", sink=True),
    "block": Example("a.block()", "123|", sink=True),
    "run": Example("a.run()", "123|", sink=True),
    "for_each": Example("a.for_each(say)", "123|", sink=True),
    "iterate": Example("list(a.iterate(prefetch=2))", "12345|", sink=True),
    "iterate_async": Example("collected(a.iterate_async(prefetch=2))", "123|", sink=True),
}

EXAMPLES: Final[dict[str, Example]] = (
    SOURCES | TRANSFORMING | FILTERING | AGGREGATING | COMBINING | FLATTENING | TIMING | FLOW_CONTROL | ERRORS
    | SIDE_EFFECTS | SINKS
)  # fmt: skip
