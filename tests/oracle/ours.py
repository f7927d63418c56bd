"""Runs a plan in Python, on virtual time; `java/…/Oracle.java` runs the same plan in RxJava and Reactor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from reactive_runtime import Flow, Listener, Notification, hooks
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hot import PublishProcessor

__all__ = ["OPERATORS", "SOURCES", "run"]

Json = Any


class Fault(Exception):  # noqa: N818 - the same word as in Java
    """What a function of a plan fails with, and a source that fails."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def kind_of(error: BaseException) -> str:
    """The word for an error, the same for Java's."""
    if isinstance(error, Fault):
        return error.kind
    if isinstance(error, ExceptionGroup):
        return f"several: {', '.join(sorted(map(kind_of, _leaves(error))))}"
    for kind, word in (
        (TimeoutError, "timeout"),
        (OverflowError, "overflow"),
        (LookupError, "missing"),
        (ValueError, "too many"),
    ):
        if isinstance(error, kind):
            return word
    if type(error) is TypeError and "(2.13)" in str(error):
        return "none"
    return repr(error)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """A group may have groups in it; Java's CompositeException has only what they are made of."""
    if isinstance(error, BaseExceptionGroup):
        for exception in error.exceptions:
            yield from _leaves(exception)
    else:
        yield error


def num(element: Any) -> int:
    """Any element as a number, so that every function takes what every operator makes."""
    if isinstance(element, int):
        return int(element)
    if isinstance(element, list | tuple):
        return sum(map(num, element)) + len(element)
    if isinstance(element, dict):
        return sum(num(key) + num(value) for key, value in element.items()) + len(element)
    assert isinstance(element, Notification), element
    return num(element.element) if element.signal == "on_next" else 7 if element.signal == "on_complete" else 9


def json(element: Any) -> Json:
    """An element as it is written down."""
    if isinstance(element, int):
        return element
    if isinstance(element, dict):
        return ["map", *(json(item) for pair in element.items() for item in pair)]
    if isinstance(element, Notification):
        if element.signal == "on_next":
            return ["notice", json(element.element)]
        return ["notice", "complete" if element.error is None else kind_of(element.error)]
    return [json(item) for item in element]


def run(plan: Json) -> Json:
    """The signals of a plan."""
    with hooks.captured():
        return _Run(plan).result()


class _Sink:
    """Writes down what comes, and asks as the plan says."""

    def __init__(self, run: _Run, plan: Json) -> None:
        self.run = run
        self.demand = plan["demand"]
        self.refill = plan["refill"]
        self.left = plan["cancel_after"]
        self.cancelled = False
        self.over = False
        self.subscription: Any = None

    def on_subscribe(self, subscription: Any, /) -> None:
        self.subscription = subscription
        if self.demand:
            subscription.request(self.demand)

    def on_next(self, element: Any, /) -> None:
        self.run.signals.append([self.run.now(), "next", json(element)])
        self.left -= 1
        if self.left == 0:
            self.cancel()
        elif self.refill and not self.cancelled:
            self.subscription.request(self.refill)

    def cancel(self) -> None:
        if not self.over:
            self.cancelled = True
            self.subscription.cancel()
            self.run.signals.append([self.run.now(), "cancel"])

    def on_error(self, error: BaseException, /) -> None:
        self.over = True
        self.run.signals.append([self.run.now(), "error", kind_of(error)])

    def on_complete(self) -> None:
        self.over = True
        self.run.signals.append([self.run.now(), "complete"])


class _Probed:
    """A publisher that notes what is asked of it, and when it is cancelled."""

    def __init__(self, run: _Run, seen: list[Json], source: Flow[Any]) -> None:
        self.run = run
        self.seen = seen
        self.source = source

    def see(self, what: str, n: int = 0) -> None:
        self.seen.append([self.run.now(), what, n])

    def subscribe(self, subscriber: Any, /) -> None:
        self.see("subscribe")
        self.source.subscribe(_Probe(self, subscriber))


class _Probe:
    def __init__(self, probed: _Probed, subscriber: Any) -> None:
        self.probed = probed
        self.subscriber = subscriber
        self.over = False
        self.on_next = subscriber.on_next

    def on_subscribe(self, subscription: Any, /) -> None:
        self.subscription = subscription
        self.subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        if not self.over:
            self.probed.see("request", n)
        self.subscription.request(n)

    def cancel(self) -> None:
        if not self.over:
            self.over = True
            self.probed.see("cancel")
        self.subscription.cancel()

    def on_error(self, error: BaseException, /) -> None:
        self.end()
        self.subscriber.on_error(error)

    def on_complete(self) -> None:
        self.end()
        self.subscriber.on_complete()

    def end(self) -> None:
        if not self.over:
            self.over = True
            self.probed.see("end")


class _Run:
    def __init__(self, plan: Json) -> None:
        self.plan = plan
        self.clock = VirtualTimeExecutor()
        self.signals: list[Json] = []
        self.log: list[Json] = []
        self.probes: dict[str, list[Json]] = {}

    def now(self) -> int:
        return int(self.clock.now())

    def note(self, what: str, *values: Json) -> None:
        self.log.append([self.now(), what, *values])

    def result(self) -> Json:
        plan = self.plan
        flow = self.source(plan["source"])
        for name, *arguments in plan["ops"]:
            flow = OPERATORS[name](self, flow, *arguments)
        sink = _Sink(self, plan)
        flow.subscribe(sink)
        self.clock.advance()
        for time, n in plan["steps"]:
            self.clock.advance(time - self.now())
            if n > 0:
                sink.subscription.request(n)
            else:
                sink.cancel()
            self.clock.advance()
        self.clock.advance(plan["until"] - self.now())
        probes = {name: list(seen) for name, seen in self.probes.items()}
        result = {"signals": list(self.signals), "log": list(self.log), "probes": probes}
        sink.subscription.cancel()
        return result

    # what the plans name

    def source(self, spec: Json) -> Flow[Any]:
        name, *arguments = spec
        return SOURCES[name](self, *arguments)

    def inner(self, spec: Json, element: Any) -> Flow[Any]:
        """What an element becomes: a publisher."""
        name, k = spec[0], spec[1] if len(spec) > 1 else 0
        n = num(element)
        if name == "just_twice":
            return Flow.just(n, n + 100)
        if name == "just":
            return Flow.just(element)
        if name == "empty":
            return Flow.empty()
        if name == "to_range":
            return Flow.range(n, n + n % k)
        if name == "fail_on":
            return Flow.just(n).concat_with(Flow.error(Fault("inner"))) if n % 7 == k else Flow.just(n)
        if name == "raise_on":
            if n % 7 == k:
                raise Fault("function")
            return Flow.just(n)
        if name == "later":
            return Flow.timer(k * (n % 3 + 1), clock=self.clock).map(lambda tick: n)
        if name == "now_and_later":
            return Flow.just(n).concat_with(Flow.timer(k, clock=self.clock).map(lambda tick: n + 100))
        if name == "fail_later":
            after = Flow.error(Fault("inner")) if n % 2 == 1 else Flow.just(n)
            return Flow.timer(k, clock=self.clock).concat_map(lambda tick: after)
        if name == "never":
            return Flow.never()
        assert name == "given", name
        return self.source(k)

    def companion(self, times: int, most: int, after: int, then: str) -> Flow[Any]:
        if times <= most:
            return Flow.timer(after, clock=self.clock) if after else Flow.just(1)
        if then == "error":
            return Flow.error(Fault("companion"))
        return Flow.empty() if then == "empty" else Flow.never()

    def timeline(self, events: Json, end: str, after: int, target: _Target) -> None:
        """Emit by the clock: `[[after, element], …]`, each so long after the one before; with 0, in the same call."""
        place = 0

        def plan() -> None:
            if place < len(events):
                self.clock.schedule(events[place][0], emit)
            elif end != "none":
                self.clock.schedule(after, ended)

        def emit() -> None:
            nonlocal place
            while not target.over():
                place += 1
                target.emit(events[place - 1][1])
                if place == len(events) or events[place][0]:
                    plan()
                    return

        def ended() -> None:
            if not target.over():
                target.end(None if end == "complete" else Fault("source"))

        plan()


class _Target(NamedTuple):
    """What a timeline feeds."""

    emit: Callable[[int], object]
    end: Callable[[Fault | None], object]
    over: Callable[[], bool]


def fn(spec: Json) -> Callable[[Any], Any]:
    """A function by its name."""
    name, k = spec[0], spec[1] if len(spec) > 1 else 0

    def fail_on(element: Any) -> Any:
        if num(element) % 7 == k:
            raise Fault("function")
        return element

    functions: dict[str, Callable[[Any], Any]] = {
        "add": lambda element: num(element) + k,
        "mul": lambda element: num(element) * k % 1000,
        "mod": lambda element: num(element) % k,
        "same": lambda element: element,
        "fail_on": fail_on,
        "none_on": lambda element: None if num(element) % 7 == k else element,
    }
    return functions[name]


def test(spec: Json) -> Callable[[Any], bool]:
    """A predicate by its name."""
    name, k = spec[0], spec[1] if len(spec) > 1 else 0

    def fail_on(element: Any) -> bool:
        if num(element) % 7 == k:
            raise Fault("predicate")
        return True

    tests: dict[str, Callable[[Any], bool]] = {
        "odd": lambda element: num(element) % 2 == 1,
        "less": lambda element: num(element) < k,
        "not": lambda element: num(element) != k,
        "fail_on": fail_on,
    }
    return tests[name]


def add(total: Any, element: Any) -> int:
    result = num(total) + num(element)
    if result % 11 == 10:
        raise Fault("function")
    return result


def several(element: Any, k: int) -> list[int]:
    n = num(element)
    if n % 7 == 6:
        raise Fault("function")
    return [n + 100 * i for i in range(n % k)]


def collected(container: list[Any], element: Any) -> None:
    if num(element) % 13 == 12:
        raise Fault("function")
    container.append(element)


def children(element: Any) -> Flow[int]:
    """For `expand`: trees that end."""
    n = num(element)
    return Flow.just(n - 1, n - 2) if 0 < n < 4 else Flow.empty()


def notice(element: Any) -> Notification[Any]:
    """For `dematerialize`."""
    n = num(element) % 5
    if n == 4:
        return Notification("on_complete")
    return Notification("on_error", error=Fault("notice")) if n == 3 else Notification("on_next", element)


def failing(elements: list[int], fails: bool) -> Iterator[int]:
    yield from elements
    if fails:
        raise Fault("source")


def _create(run: _Run, elements: list[int], fails: bool) -> Flow[Any]:
    def push(emitter: Any) -> None:
        for element in elements:
            emitter.emit(element)
        if fails:
            emitter.error(Fault("source"))
        else:
            emitter.complete()

    return Flow.create(push)


def _using(run: _Run, spec: Json) -> Flow[Any]:
    @contextmanager
    def resource() -> Iterator[int]:
        run.note("open")
        try:
            yield 0
        finally:
            run.note("close")

    return Flow.using(resource, lambda item: run.source(spec))


def _timed(run: _Run, events: Json, end: str, after: int) -> Flow[Any]:
    def push(emitter: Any) -> None:
        def over(error: Fault | None) -> None:
            emitter.complete() if error is None else emitter.error(error)

        run.timeline(events, end, after, _Target(emitter.emit, over, emitter.is_cancelled))

    return Flow.create(push)


def _hot(run: _Run, events: Json, end: str, after: int) -> Flow[Any]:
    processor: PublishProcessor[int] = PublishProcessor()

    def over(error: Fault | None) -> None:
        processor.on_complete() if error is None else processor.on_error(error)

    run.timeline(events, end, after, _Target(processor.emit, over, lambda: False))
    return processor


def _probe(run: _Run, name: str, spec: Json) -> Flow[Any]:
    seen = run.probes[name] = []
    return Flow.from_publisher(_Probed(run, seen, run.source(spec)))


def _generate(run: _Run, count: int) -> Flow[int]:
    return Flow.generate(0, lambda n: (n * 3, n + 1) if n < count else None)


def _call(run: _Run, function: Json, value: int) -> Flow[Any]:
    return Flow.from_callable(lambda: fn(function)(value))


def _all(run: _Run, specs: Json) -> list[Flow[Any]]:
    return [run.source(spec) for spec in specs]


SOURCES: dict[str, Callable[..., Flow[Any]]] = {
    "just": lambda run, *elements: Flow.just(*elements),
    "empty": lambda run: Flow.empty(),
    "never": lambda run: Flow.never(),
    "error": lambda run: Flow.error(Fault("source")),
    "range": lambda run, start, count: Flow.range(start, start + count),
    "from_iterable": lambda run, elements: Flow.from_iterable(elements),
    "from_supplier": lambda run, elements, fails: Flow.from_supplier(lambda: failing(elements, fails)),
    "from_callable": _call,
    "from_publisher": lambda run, spec: Flow.from_publisher(run.source(spec)),
    "generate": _generate,
    "create": _create,
    "defer": lambda run, spec: Flow.defer(lambda: run.source(spec)),
    "using": _using,
    "timer": lambda run, after: Flow.timer(after, clock=run.clock),
    "interval": lambda run, period, overflow: Flow.interval(period, clock=run.clock, overflow=overflow),
    "timed": _timed,
    "hot": _hot,
    "probe": _probe,
    "concat": lambda run, delay, *specs: Flow.concat(*_all(run, specs), delay_error=delay),
    "merge": lambda run, delay, *specs: Flow.merge(*_all(run, specs), delay_error=delay),
    "merge_comparing": lambda run, *specs: Flow.merge_comparing(*_all(run, specs), key=num),
    "zip": lambda run, *specs: Flow.zip(*_all(run, specs)),
    "combine_latest": lambda run, *specs: Flow.combine_latest(*_all(run, specs)),
    "race": lambda run, *specs: Flow.race(*_all(run, specs)),
}
"""`timed` is `create`, `hot` a `PublishProcessor`, both fed by the clock; `probe` notes what is asked of a source."""


def _twice(run: _Run, shared: Flow[Any], after: int) -> Flow[Any]:
    if not after:
        return shared
    late = Flow.timer(after, clock=run.clock).concat_map(lambda tick: shared.map(lambda item: (2, item)))
    return Flow.merge(shared.map(lambda item: (1, item)), late)


class _Taps(Listener):
    def __init__(self, run: _Run) -> None:
        self.run = run

    def on_next(self, element: Any) -> None:
        self.run.note("tap", json(element))

    def on_error(self, error: Exception) -> None:
        self.run.note("tap error", kind_of(error))

    def on_complete(self) -> None:
        self.run.note("tap complete")


def _optional(run: _Run, spec: Json | None) -> Flow[Any] | None:
    return None if spec is None else run.source(spec)


OPERATORS: dict[str, Callable[..., Flow[Any]]] = {
    "map": lambda run, f, function: f.map(fn(function)),
    "starmap": lambda run, f, k: f.map(lambda item: (item, k)).starmap(lambda a, b: num(a) + num(b)),
    "map_not_none": lambda run, f, function: f.map_not_none(fn(function)),
    "handle": lambda run, f, predicate: f.handle(
        lambda item, emit: emit(num(item) + 1) if test(predicate)(item) else None
    ),
    "flat_map_iterable": lambda run, f, k: f.flat_map_iterable(lambda item: several(item, k)),
    "flatten": lambda run, f: f.map(lambda item: several(item, 3)).flatten(),
    "enumerate": lambda run, f, start: f.enumerate(start),
    "pairwise": lambda run, f: f.pairwise(),
    "scan": lambda run, f, initial: f.scan(add, initial),
    "batch": lambda run, f, n: f.batch(n),
    "buffer": lambda run, f, n, skip: f.buffer(n, skip=skip),
    "buffer_until": lambda run, f, predicate, before: f.buffer_until(test(predicate), cut_before=before),
    "start_with": lambda run, f, *elements: f.start_with(*elements),
    "end_with": lambda run, f, *elements: f.end_with(*elements),
    "materialize": lambda run, f: f.materialize(),
    "dematerialize": lambda run, f: f.map(notice).dematerialize(),
    "transform": lambda run, f: f.transform(lambda flow: flow.map(lambda item: num(item) + 1)),
    "filter": lambda run, f, predicate: f.filter(test(predicate)),
    "distinct": lambda run, f, key: f.distinct(key=_key(key)),
    "distinct_until_changed": lambda run, f, key: f.distinct_until_changed(key=_key(key)),
    "take": lambda run, f, n: f.take(n),
    "take_while": lambda run, f, predicate: f.take_while(test(predicate)),
    "skip": lambda run, f, n: f.skip(n),
    "skip_while": lambda run, f, predicate: f.skip_while(test(predicate)),
    "first": lambda run, f, *default: f.first(*default),
    "last": lambda run, f, *default: f.last(*default),
    "single": lambda run, f, *default: f.single(*default),
    "take_last": lambda run, f, n: f.take_last(n),
    "skip_last": lambda run, f, n: f.skip_last(n),
    "sort": lambda run, f, capacity: f.sort(key=num, capacity=capacity),
    "element_at": lambda run, f, index, *default: f.element_at(index, *default),
    "default_if_empty": lambda run, f, default: f.default_if_empty(default),
    "ignore_elements": lambda run, f: f.ignore_elements(),
    "reduce": lambda run, f, *initial: f.reduce(add, *initial),
    "collect": lambda run, f: f.collect(list, collected),
    "to_list": lambda run, f: f.to_list(),
    "to_dict": lambda run, f: f.to_dict(lambda item: num(item) % 3),
    "count": lambda run, f: f.count(),
    "sum": lambda run, f: f.map(num).sum(),
    "min": lambda run, f: f.min(key=num),
    "max": lambda run, f: f.max(key=num),
    "all": lambda run, f, predicate: f.all(test(predicate)),
    "any": lambda run, f, predicate: f.any(test(predicate)),
    "contains": lambda run, f, k: f.map(num).contains(k),
    "concat_with": lambda run, f, other: f.concat_with(run.source(other)),
    "merge_with": lambda run, f, other: f.map(lambda item: (1, item)).merge_with(
        run.source(other).map(lambda item: (2, item))
    ),
    "zip_with": lambda run, f, other: f.zip_with(run.source(other)),
    "with_latest_from": lambda run, f, other: f.with_latest_from(run.source(other)),
    "switch_if_empty": lambda run, f, other: f.switch_if_empty(run.source(other)),
    "take_until": lambda run, f, other: f.take_until(run.source(other)),
    "skip_until": lambda run, f, other: f.skip_until(run.source(other)),
    "flat_map": lambda run, f, inner, n, delay: f.flat_map(
        lambda item: run.inner(inner, item), concurrency=n, delay_error=delay
    ),
    "flat_map_sequential": lambda run, f, inner, n, delay: f.flat_map_sequential(
        lambda item: run.inner(inner, item), concurrency=n, delay_error=delay
    ),
    "concat_map": lambda run, f, inner, delay: f.concat_map(lambda item: run.inner(inner, item), delay_error=delay),
    "switch_map": lambda run, f, inner: f.switch_map(lambda item: run.inner(inner, item)),
    "expand": lambda run, f: f.expand(children),
    "group_by": lambda run, f, k: f.group_by(lambda item: num(item) % k).flat_map(
        lambda group: group[1].map(lambda item: (group[0], item))
    ),
    "window": lambda run, f, n: f.window(n).concat_map(lambda item: item.to_list()),
    "window_until": lambda run, f, predicate, before: f.window_until(test(predicate), cut_before=before).concat_map(
        lambda item: item.to_list()
    ),
    "window_when": lambda run, f, boundary: f.window_when(run.source(boundary)).concat_map(lambda item: item.to_list()),
    "window_time": lambda run, f, seconds, every: f.window_time(seconds, every=every or None, clock=run.clock).flat_map(
        lambda item: item.to_list()
    ),
    "window_timeout": lambda run, f, n, seconds: f.window_timeout(n, seconds, clock=run.clock).concat_map(
        lambda item: item.to_list()
    ),
    "buffer_when": lambda run, f, boundary: f.buffer_when(run.source(boundary)),
    "buffer_time": lambda run, f, seconds, every: f.buffer_time(seconds, every=every or None, clock=run.clock),
    "buffer_timeout": lambda run, f, n, seconds: f.buffer_timeout(n, seconds, clock=run.clock),
    "debounce": lambda run, f, seconds: f.debounce(seconds, clock=run.clock),
    "delay": lambda run, f, seconds: f.delay(seconds, clock=run.clock),
    "delay_subscription": lambda run, f, seconds: f.delay_subscription(seconds, clock=run.clock),
    "timestamp": lambda run, f: f.timestamp(clock=run.clock).map(lambda pair: [int(pair[0]), pair[1]]),
    "elapsed": lambda run, f: f.elapsed(clock=run.clock).map(lambda pair: [int(pair[0]), pair[1]]),
    "sample": lambda run, f, sampler: (
        f.sample(sampler, clock=run.clock) if isinstance(sampler, int) else f.sample(run.source(sampler))
    ),
    "throttle": lambda run, f, seconds: f.throttle(seconds, clock=run.clock),
    "timeout": lambda run, f, seconds, fallback=None: f.timeout(
        seconds, clock=run.clock, fallback=_optional(run, fallback)
    ),
    "publish_on": lambda run, f, prefetch: f.publish_on(run.clock, prefetch=prefetch),
    "subscribe_on": lambda run, f: f.subscribe_on(run.clock),
    "limit_rate": lambda run, f, n: f.limit_rate(n),
    "on_overflow_buffer": lambda run, f, n, drop: f.on_overflow_buffer(n, drop=drop),
    "on_overflow_drop": lambda run, f: f.on_overflow_drop(),
    "on_overflow_latest": lambda run, f: f.on_overflow_latest(),
    "serialize": lambda run, f: f.serialize(),
    "parallel": lambda run, f, n: (
        f.parallel(n, prefetch=32).run_on(run.clock).map(lambda item: num(item) + 1).sequential()
    ),
    "share": lambda run, f, after: _twice(run, f.share(), after),
    "publish": lambda run, f, after: _twice(run, f.publish().ref_count(), after),
    "replay": lambda run, f, after, n: _twice(run, f.replay(n).ref_count(), after),
    "cache": lambda run, f, after: _twice(run, f.cache(), after),
    "on_error_resume": lambda run, f, other: f.on_error_resume(lambda error: run.source(other)),
    "on_error_return": lambda run, f: f.on_error_return(lambda error: -1 if kind_of(error) == "function" else -2),
    "on_error_complete": lambda run, f: f.on_error_complete(),
    "map_error": lambda run, f: f.map_error(lambda error: Fault(f"mapped {kind_of(error)}")),
    "retry": lambda run, f, n: f.retry(n),
    "retry_when": lambda run, f, *companion: f.retry_when(lambda error, times: run.companion(times, *companion)),
    "retry_backoff": lambda run, f, n, first: f.retry_backoff(n, clock=run.clock, first=first, most=1e18, jitter=0),
    "repeat": lambda run, f, n: f.repeat(n),
    "repeat_when": lambda run, f, *companion: f.repeat_when(lambda times: run.companion(times, *companion)),
    "finalize": lambda run, f: f.finalize(lambda: run.note("finalize")),
    "do_finally": lambda run, f: f.do_finally(lambda way: run.note("finally", way)),
    "do_on_subscribe": lambda run, f: f.do_on_subscribe(lambda: run.note("subscribe")),
    "do_on_request": lambda run, f: f.do_on_request(lambda n: run.note("request", n)),
    "do_on_next": lambda run, f: f.do_on_next(lambda item: run.note("next", json(item))),
    "do_on_error": lambda run, f: f.do_on_error(lambda error: run.note("error", kind_of(error))),
    "do_on_complete": lambda run, f: f.do_on_complete(lambda: run.note("complete")),
    "do_on_cancel": lambda run, f: f.do_on_cancel(lambda: run.note("cancel")),
    "tap": lambda run, f: f.tap(_Taps(run)),
}
"""What has a counterpart in RxJava or Reactor: a line here, and one in `Oracle.java`."""


def _key(spec: Json) -> Callable[[Any], Any]:
    function = fn(spec)
    return lambda item: json_key(function(item))


def json_key(element: Any) -> Any:
    """Something that can be hashed, and tells elements apart as Java's `equals` does."""
    return repr(json(element))
