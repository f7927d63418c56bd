"""Every boundary and hot source, behind an infinite source that does not wait; all of them must stay bounded.

`BOUNDARIES` turn a flow into one; `HOT` start feeding a hot source from a flow, and return it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Literal

from reactive_runtime import Emitter, Flow, Valve
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hot import (
    BehaviorProcessor,
    EmitResult,
    PublishProcessor,
    ReplayProcessor,
    SubmissionPublisher,
    UnicastProcessor,
)

__all__ = ["BOUNDARIES", "HOT", "PREFETCH"]

PREFETCH = 8

Through = Callable[[Flow[Any], Executor], Flow[Any]]

BOUNDARIES: dict[str, Through] = {
    "subscribe_on": lambda f, p: f,
    "publish_on": lambda f, p: f.publish_on(p, prefetch=PREFETCH),
    "limit_rate": lambda f, p: f.limit_rate(PREFETCH),
    "on_overflow_buffer, oldest dropped": lambda f, p: f.on_overflow_buffer(PREFETCH, drop="oldest"),
    "on_overflow_buffer, newest dropped": lambda f, p: f.on_overflow_buffer(PREFETCH, drop="newest"),
    "on_overflow_drop": lambda f, p: f.on_overflow_drop(),
    "on_overflow_latest": lambda f, p: f.on_overflow_latest(),
    "pausable": lambda f, p: f.pausable(Valve()),
    "serialize": lambda f, p: f.serialize(),
    "merge": lambda f, p: Flow.merge(f, Flow.never(), prefetch=PREFETCH),
    "zip": lambda f, p: f.zip_with(Flow.generate(0, lambda n: (n, n)), prefetch=PREFETCH),
    "combine_latest": lambda f, p: Flow.combine_latest(f, Flow.just(0), prefetch=PREFETCH),
    "with_latest_from": lambda f, p: Flow.interval(0.001).with_latest_from(f),
    "flat_map": lambda f, p: f.flat_map(Flow.just, concurrency=PREFETCH, prefetch=PREFETCH),
    "flat_map, on a pool": lambda f, p: f.flat_map(
        lambda n: Flow.just(n).subscribe_on(p), concurrency=PREFETCH, prefetch=PREFETCH
    ),
    "flat_map_sequential": lambda f, p: f.flat_map_sequential(Flow.just, concurrency=PREFETCH, prefetch=PREFETCH),
    "concat_map": lambda f, p: f.concat_map(Flow.just),
    "switch_map": lambda f, p: f.switch_map(Flow.just),
    "map_by_key": lambda f, p: f.map_by_key(lambda item: item, lambda item: 0, p, prefetch=PREFETCH),
    "map_parallel": lambda f, p: f.map_parallel(lambda item: item, p, concurrency=PREFETCH),
    "map_parallel, as they are done": lambda f, p: f.map_parallel(
        lambda item: item, p, concurrency=PREFETCH, ordered=False
    ),
    "on_error_continue": lambda f, p: f.on_error_continue(lambda item: item, repr, concurrency=PREFETCH),
    "parallel": lambda f, p: f.parallel(2, prefetch=PREFETCH).run_on(p).sequential(),
    "partition": lambda f, p: Flow.merge(*f.partition(lambda item: id(item) % 32 == 0, prefetch=PREFETCH)),
    "balance": lambda f, p: Flow.merge(*f.balance(2, prefetch=PREFETCH)),
    "balance, on a pool": lambda f, p: Flow.merge(*(one.subscribe_on(p) for one in f.balance(2, prefetch=PREFETCH))),
    "group_by": lambda f, p: f.group_by(lambda item: 0).flat_map(lambda item: item[1]),
    "window": lambda f, p: f.window(PREFETCH).concat_map(lambda item: item),
    "window_time": lambda f, p: f.window_time(0.001, prefetch=PREFETCH).concat_map(lambda item: item),
    "window_timeout": lambda f, p: f.window_timeout(PREFETCH, 0.001).concat_map(lambda item: item),
    "window_until": lambda f, p: f.window_until(lambda item: False, prefetch=PREFETCH).concat_map(lambda item: item),
    "window_when": lambda f, p: f.window_when(Flow.interval(0.001), prefetch=PREFETCH).concat_map(lambda item: item),
    "buffer_timeout": lambda f, p: f.buffer_timeout(PREFETCH, 1, clock=VirtualTimeExecutor()),
    "buffer_time": lambda f, p: f.buffer_time(0.001, capacity=PREFETCH),
    "buffer_when": lambda f, p: f.buffer_when(Flow.interval(0.001), capacity=PREFETCH),
    "sample": lambda f, p: f.sample(Flow.generate(0, lambda n: (n, n)).subscribe_on(p)),
    "sample, seconds": lambda f, p: f.sample(0.001),
    "conflate": lambda f, p: f.conflate(lambda item: item, lambda first, item: first),
    "delay_subscription": lambda f, p: f.delay_subscription(0.001),
    "publish": lambda f, p: f.publish(capacity=PREFETCH).ref_count(),
    "share": lambda f, p: f.share(capacity=PREFETCH),
    "replay": lambda f, p: f.replay(PREFETCH, capacity=PREFETCH).ref_count(),
}


def ignore(signal: object) -> None:
    """A subscriber that is there for the demand; the pool may be gone before it has seen that none is left."""


def processed(make: Callable[[], Any]) -> Through:
    def feed(f: Flow[Any], p: Executor) -> Flow[Any]:
        processor = make()
        f.subscribe(processor)
        fed: Flow[Any] = processor
        return fed

    return feed


def emitted(make: Callable[[], Any]) -> Through:
    """Emits without looking at what becomes of it, until there is no subscriber."""

    def feed(f: Flow[Any], p: Executor) -> Flow[Any]:
        processor = make()
        gone = EmitResult.CANCELLED, EmitResult.TERMINATED
        f.take_while(lambda item: processor.emit(item) not in gone).subscribe(ignore, ignore)
        fed: Flow[Any] = processor
        return fed

    return feed


def submitted(f: Flow[Any], p: Executor) -> Flow[Any]:
    publisher: SubmissionPublisher[Any] = SubmissionPublisher(p, max_buffer=PREFETCH)
    f.skip_while(lambda item: not publisher.has_subscribers()).take_while(
        lambda item: bool(publisher.submit(item) or publisher.has_subscribers())
    ).subscribe(ignore, ignore)
    return publisher


def created(overflow: Literal["oldest", "newest"]) -> Through:
    def feed(f: Flow[Any], p: Executor) -> Flow[Any]:
        def begin(emitter: Emitter[Any]) -> None:
            f.take_while(lambda item: bool(emitter.emit(item)) and not emitter.is_cancelled()).subscribe(ignore, ignore)

        return Flow.create(begin, overflow=overflow, capacity=PREFETCH)

    return feed


HOT: dict[str, Through] = {
    "PublishProcessor": processed(lambda: PublishProcessor(capacity=PREFETCH)),
    "ReplayProcessor": processed(lambda: ReplayProcessor(PREFETCH, capacity=PREFETCH)),
    "BehaviorProcessor": processed(lambda: BehaviorProcessor(0, capacity=PREFETCH)),
    "UnicastProcessor": processed(lambda: UnicastProcessor(capacity=PREFETCH)),
    "UnicastProcessor.emit": emitted(lambda: UnicastProcessor(capacity=PREFETCH)),
    "SubmissionPublisher": submitted,
    "create, oldest dropped": created("oldest"),
    "create, newest dropped": created("newest"),
}
