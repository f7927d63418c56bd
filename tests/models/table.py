"""Operators and their models: a list in, a list out. A new operator is one line here."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from models.running import POOL, Entry, Items, Place
from models.scripts import Item, Made
from reactive_runtime import Flow, KillSwitch, Listener, Metrics, Valve

__all__ = ["TABLE"]


class BrokenError(LookupError):
    """What a function fails with."""


BROKEN = BrokenError("the function is broken")


def made(item: Item) -> Made:
    """The function of most entries. It fails for 7."""
    if item.value == 7:
        raise BrokenError("the function is broken")
    return Made(*item)


async def made_later(item: Item) -> Made:
    return made(item)


def breaks(item: Item) -> bool:
    return item.value == 7


def whole(items: Items) -> Items:
    """Those before the first that the function fails for."""
    return list(itertools.takewhile(lambda item: not breaks(item), items))


def all_made(items: Items) -> list[Any]:
    return [Made(*item) for item in whole(items)]


def others_made(items: Items) -> list[Any]:
    """Where threads make calls side by side, in no order, the one that fails may be the last to return."""
    return [Made(*item) for item in items if not breaks(item)]


def breaking(items: Items, end: str) -> str:
    return "error" if any(map(breaks, items)) else end


def calls(
    apply: Callable[[Flow[Any], Place], Flow[Any]], most: Callable[[int, int], int] | None = None, **more: Any
) -> Entry:
    """Each element becomes what `made` makes of it."""
    given = {"model": all_made, "end": breaking, "eats": breaks, "most": most, "fails": BrokenError, **more}
    return Entry(apply, **given)


def even(item: Any) -> bool:
    return bool(item.value % 2 == 0)


def number(n: int) -> Item:
    """An element that does not come from the source of the script."""
    return Item(-1, n)


def chunks(items: list[Any], n: int) -> list[list[Any]]:
    return [items[i : i + n] for i in range(0, len(items), n)]


def full(items: Items, end: str, n: int) -> list[list[Any]]:
    """Lists of n; one that is not full comes with a completion only."""
    return [chunk for chunk in chunks(items, n) if end == "complete" or len(chunk) == n]


def exactly(asked: int, passed: int) -> int:
    return asked


def ahead(n: int) -> Callable[[int, int], int]:
    return lambda asked, passed: passed + n


def no_end(items: Items, end: str) -> str:
    return "complete" if end == "error" else end


def again(times: int) -> Callable[[Items, str], list[Any]]:
    """The source once more, after each error but the last."""
    return lambda xs, end: [Item(i, v.value) for i, v in enumerate(xs * (times + 1 if end == "error" else 1))]


def repeated(times: int) -> Callable[[Items, str], list[Any]]:
    return lambda xs, end: [Item(i, v.value) for i, v in enumerate(xs * (times if end == "complete" else 1))]


def passing(apply: Callable[[Flow[Any], Place], Flow[Any]], **more: Any) -> Entry:
    """All goes through, and demand exactly."""
    return Entry(apply, **{"most": exactly, **more})


def expanded(items: Items) -> list[Any]:
    """In the order of a breadth-first search."""
    out: list[Any] = []
    level: list[Any] = list(items)
    while level:
        out += level
        level = [Item(-1, item.value - 3) for item in level if item.value >= 3]
    return out


def keeping(flow: Flow[Any]) -> Flow[Any]:
    """With something that is wanted by no one at its side."""
    return flow


TABLE: dict[str, Entry] = {
    # tasks
    "map_parallel": calls(lambda f, p: f.map_parallel(made, p.clock, concurrency=3), ahead(4)),
    "map_parallel, one at a time": calls(lambda f, p: f.map_parallel(made, p.clock, concurrency=1), ahead(2)),
    "map_parallel, as they are done": calls(
        lambda f, p: f.map_parallel(made, p.clock, concurrency=3, ordered=False), ahead(4), overtakes=True
    ),
    "map_parallel, in chunks": calls(lambda f, p: f.map_parallel(made, p.clock, concurrency=2, chunk=3), ahead(7)),
    "map_parallel, in chunks, as they are done": calls(
        lambda f, p: f.map_parallel(made, p.clock, concurrency=2, ordered=False, chunk=3), ahead(7), overtakes=True
    ),
    "map_parallel, on a pool": calls(lambda f, p: f.map_parallel(made, POOL, concurrency=3), ahead(4), waits=True),
    "map_parallel, on a pool, as they are done": calls(
        lambda f, p: f.map_parallel(made, POOL, concurrency=3, ordered=False),
        ahead(4),
        model=others_made,
        waits=True,
        ordered=False,
        overtakes=True,
    ),
    "map_parallel, coroutines": calls(lambda f, p: f.map_parallel(made_later, concurrency=3), ahead(4), waits=True),
    "map_parallel, coroutines, as they are done": calls(
        lambda f, p: f.map_parallel(made_later, concurrency=3, ordered=False),
        ahead(4),
        waits=True,
        ordered=False,
        overtakes=True,
    ),
    "flat_map, coroutines": calls(
        lambda f, p: f.flat_map(made_later, concurrency=2), ahead(3), waits=True, ordered=False, overtakes=True
    ),
    "flat_map, coroutines, errors at the end": Entry(
        lambda f, p: f.flat_map(made_later, concurrency=2, delay_error=True),
        others_made,
        lambda xs, end: end if end != "complete" or not any(map(breaks, xs)) else "error",
        fails=BrokenError,
        eats=breaks,
        ordered=False,
        waits=True,
    ),
    # flows of flows
    "flat_map": calls(lambda f, p: f.flat_map(lambda entry: Flow.just(made(entry))), overtakes=True, eats=None),
    "flat_map, on an executor": calls(
        lambda f, p: f.flat_map(lambda entry: Flow.just(made(entry)).subscribe_on(p.clock), concurrency=2),
        overtakes=True,
        ordered=False,
        eats=None,
    ),
    "flat_map_sequential": calls(
        lambda f, p: f.flat_map_sequential(lambda entry: Flow.just(made(entry)).publish_on(p.clock), concurrency=2),
        overtakes=True,
        eats=None,
    ),
    "concat_map": calls(lambda f, p: f.concat_map(lambda entry: Flow.just(made(entry))), overtakes=True, eats=None),
    "expand": Entry(
        lambda f, p: f.expand(lambda entry: Flow.just(Item(-1, entry.value - 3)) if entry.value >= 3 else Flow.empty()),
        expanded,
        ordered=False,
        overtakes=True,
        eats=None,
    ),
    "group_by": Entry(lambda f, p: f.group_by(even).flat_map(lambda entry: entry[1]), ordered=False, overtakes=True),
    "window": Entry(
        lambda f, p: f.window(3).concat_map(lambda entry: entry.to_list()),
        by_end=lambda xs, end: full(xs, end, 3),
        overtakes=True,
    ),
    "window, its elements": Entry(lambda f, p: f.window(3).concat_map(keeping), overtakes=True),
    # boundaries, demand
    "publish_on": Entry(lambda f, p: f.publish_on(p.clock, prefetch=3), most=lambda a, n: max(a, n + 3)),
    "publish_on, twice": Entry(
        lambda f, p: f.publish_on(p.clock, prefetch=2).map(keeping).publish_on(p.clock, prefetch=3)
    ),
    "publish_on, on a pool": Entry(lambda f, p: f.publish_on(POOL, prefetch=3), waits=True),
    "subscribe_on": passing(lambda f, p: f.subscribe_on(p.clock)),
    "parallel": Entry(
        lambda f, p: f.parallel(2, prefetch=3).run_on(p.clock).map(made).sequential(),
        lambda xs: [Made(*x) for x in xs if not breaks(x)],
        breaking,
        ordered=False,
        overtakes=True,
        eats=breaks,
        fails=BrokenError,
    ),
    "parallel, rails": Entry(
        lambda f, p: (
            f.parallel(3, prefetch=2).run_on(p.clock).filter(even).rails(lambda rail: rail.map(keeping)).sequential()
        ),
        lambda xs: [x for x in xs if even(x)],
        ordered=False,
        overtakes=True,
        eats=lambda entry: not even(entry),
    ),
    "limit_rate": Entry(lambda f, p: f.limit_rate(3), most=ahead(4)),
    "pausable": passing(lambda f, p: f.pausable(Valve())),
    "kill_switch": passing(lambda f, p: f.kill_switch(KillSwitch())),
    "serialize": passing(lambda f, p: f.serialize()),
    "on_overflow_buffer": Entry(lambda f, p: f.on_overflow_buffer(99)),
    "rate_limit": Entry(lambda f, p: f.rate_limit(99, clock=p.clock)),
    "delay": Entry(lambda f, p: f.delay(1, clock=p.clock), overtakes=True),
    "timeout": passing(lambda f, p: f.timeout(1e9, clock=p.clock)),
    "buffer_timeout": Entry(
        lambda f, p: f.buffer_timeout(3, 1e9, clock=p.clock), by_end=lambda xs, end: full(xs, end, 3)
    ),
    "share": Entry(lambda f, p: f.share(capacity=4), shares=True),
    "publish": Entry(lambda f, p: f.publish(capacity=4).ref_count(), shares=True),
    "replay": Entry(lambda f, p: f.replay(99).ref_count(), eats=None, shares=True),
    "cache": Entry(lambda f, p: f.cache(), eats=None, shares=True, keeps=True),
    # several sources
    "start_with": passing(
        lambda f, p: f.start_with(number(1), number(2)), model=lambda xs: [number(1), number(2), *xs]
    ),
    "end_with": passing(
        lambda f, p: f.end_with(number(1)), by_end=lambda xs, end: [*xs, *[number(1)] * (end == "complete")]
    ),
    "concat_with": passing(
        lambda f, p: f.concat_with(Flow.just(number(1))),
        by_end=lambda xs, end: [*xs, *[number(1)] * (end == "complete")],
    ),
    "concat": passing(lambda f, p: Flow.concat(Flow.just(number(1)), f), model=lambda xs: [number(1), *xs]),
    "merge": Entry(
        lambda f, p: Flow.merge(f, Flow.just(number(1))),
        lambda xs: [*xs, number(1)],
        ordered=False,
        overtakes=True,
    ),
    "merge_with": Entry(
        lambda f, p: f.merge_with(Flow.empty(), Flow.just(number(1))),
        lambda xs: [*xs, number(1)],
        ordered=False,
        overtakes=True,
    ),
    "merge_comparing": Entry(
        lambda f, p: Flow.merge_comparing(f, Flow.just(number(3), number(8)), key=lambda entry: entry.value),
        by_end=lambda xs, end: merged(xs, [number(3), number(8)], end),
        overtakes=True,
    ),
    "zip": Entry(
        lambda f, p: Flow.zip(f, Flow.range(99)),
        lambda xs: list(zip(xs, range(99), strict=False)),
        overtakes=True,
    ),
    "zip_with": Entry(
        lambda f, p: f.zip_with(Flow.range(99)), lambda xs: list(zip(xs, range(99), strict=False)), overtakes=True
    ),
    "combine_latest": Entry(
        lambda f, p: Flow.combine_latest(Flow.just("a"), f), lambda xs: [("a", x) for x in xs], overtakes=True
    ),
    "with_latest_from": Entry(lambda f, p: f.with_latest_from(Flow.just("a")), lambda xs: [(x, "a") for x in xs]),
    "race": Entry(lambda f, p: Flow.race(f, Flow.never())),
    "switch_if_empty": passing(
        lambda f, p: f.switch_if_empty(Flow.just(number(1))),
        by_end=lambda xs, end: xs or [number(1)] * (end == "complete"),
    ),
    "take_until": passing(lambda f, p: f.take_until(Flow.never())),
    "skip_until": Entry(lambda f, p: f.skip_until(Flow.just(1))),
    "switch_map": Entry(
        lambda f, p: f.take(1).switch_map(lambda entry: Flow.just(entry, entry)),
        lambda xs: [*xs[:1], *xs[:1]],
        lambda xs, end: "complete" if xs else end,
        eats=None,
    ),
    # errors, and once more
    "on_error_resume": passing(
        lambda f, p: f.on_error_resume(lambda error: Flow.just(number(1))),
        by_end=lambda xs, end: [*xs, *[number(1)] * (end == "error")],
        end=no_end,
    ),
    "on_error_return": passing(
        lambda f, p: f.on_error_return(lambda error: number(1)),
        by_end=lambda xs, end: [*xs, *[number(1)] * (end == "error")],
        end=no_end,
    ),
    "map_error": passing(lambda f, p: f.map_error(lambda error: BROKEN)),
    "retry": passing(lambda f, p: f.retry(2), by_end=again(2)),
    "retry, not of this": passing(lambda f, p: f.retry(2, when=LookupError)),
    "retry_when": passing(
        lambda f, p: f.retry_when(lambda error, times: Flow.just(1) if times < 3 else Flow.error(BROKEN)),
        by_end=again(2),
    ),
    "retry_when, until its companion completes": passing(
        lambda f, p: f.retry_when(lambda error, times: Flow.just(1) if times < 2 else Flow.empty()),
        by_end=again(1),
    ),
    "retry_backoff": passing(lambda f, p: f.retry_backoff(2, clock=p.clock, first=1), by_end=again(2)),
    "repeat": passing(lambda f, p: f.repeat(3), by_end=repeated(3)),
    "repeat_when": passing(
        lambda f, p: f.repeat_when(lambda times: Flow.timer(1, clock=p.clock) if times < 3 else Flow.empty()),
        by_end=repeated(3),
    ),
    # looking in
    "tap": passing(lambda f, p: f.tap(Listener())),
    "do_on_subscribe": passing(lambda f, p: f.do_on_subscribe(int)),
    "do_on_request": passing(lambda f, p: f.do_on_request(float)),
    "do_on_error": passing(lambda f, p: f.do_on_error(repr)),
    "do_on_complete": passing(lambda f, p: f.do_on_complete(int)),
    "do_on_cancel": passing(lambda f, p: f.do_on_cancel(int)),
    "do_on_discard": passing(lambda f, p: f.do_on_discard(repr)),
    "do_finally": passing(lambda f, p: f.do_finally(repr)),
    "finalize": passing(lambda f, p: f.finalize(int)),
    "log": passing(lambda f, p: f.log("models")),
    "named": passing(lambda f, p: f.named("numbers")),
    "checkpoint": passing(lambda f, p: f.checkpoint("here")),
    "metrics": passing(lambda f, p: f.metrics(Metrics())),
    "progress": passing(lambda f, p: f.progress(int, every=2)),
    "transform": calls(lambda f, p: f.transform(lambda entry: entry.map(made)), exactly),
    "materialize": passing(lambda f, p: f.materialize().dematerialize(), most=lambda a, n: a + 1),
    "dematerialize": passing(lambda f, p: f.publish_on(p.clock, prefetch=2).materialize().dematerialize(), most=None),
    # those of one element and several, for what they drop
    "map": calls(lambda f, p: f.map(made), exactly),
    "starmap": passing(lambda f, p: f.starmap(Made), model=lambda xs: [Made(*x) for x in xs]),
    "map_not_none": Entry(
        lambda f, p: f.map_not_none(lambda entry: made(entry) if even(entry) or breaks(entry) else None),
        lambda xs: [Made(*x) for x in whole(xs) if even(x)],
        breaking,
        eats=lambda entry: not even(entry),
    ),
    "handle": Entry(
        lambda f, p: f.handle(lambda entry, emit: emit(made(entry))), all_made, breaking, eats=breaks, most=exactly
    ),
    "filter": Entry(
        lambda f, p: f.filter(even), lambda xs: [x for x in xs if even(x)], eats=lambda entry: not even(entry)
    ),
    "pairwise": Entry(lambda f, p: f.pairwise(), lambda xs: list(itertools.pairwise(xs)), eats=None),
    "enumerate": passing(lambda f, p: f.enumerate(), model=lambda xs: list(enumerate(xs))),
    "batch": Entry(lambda f, p: f.batch(2), by_end=lambda xs, end: full(xs, end, 2)),
    "buffer": Entry(lambda f, p: f.buffer(3), by_end=lambda xs, end: full(xs, end, 3)),
    "to_list": Entry(
        lambda f, p: f.to_list(), by_end=lambda xs, end: [xs] if end == "complete" else [], most=lambda a, n: 99
    ),
    "take": passing(
        lambda f, p: f.take(3), model=lambda xs: xs[:3], end=lambda xs, end: "complete" if len(xs) >= 3 else end
    ),
    "take_while": Entry(
        lambda f, p: f.take_while(even),
        lambda xs: list(itertools.takewhile(even, xs)),
        lambda xs, end: end if all(map(even, xs)) else "complete",
        eats=lambda entry: not even(entry),
    ),
    "first": passing(
        lambda f, p: f.first(),
        model=lambda xs: xs[:1],
        end=lambda xs, end: "complete" if xs else end.replace("complete", "error"),
    ),
    "last": Entry(
        lambda f, p: f.last(number(1)),
        by_end=lambda xs, end: (xs or [number(1)])[-1:] if end == "complete" else [],
        eats=None,
    ),
    "default_if_empty": passing(
        lambda f, p: f.default_if_empty(number(1)), by_end=lambda xs, end: xs or [number(1)] * (end == "complete")
    ),
    "do_on_next": passing(lambda f, p: f.do_on_next(repr)),
}


def merged(xs: Items, others: Items, end: str) -> list[Any]:
    """Two lists, merged: the next of each is needed for the next element."""
    out: list[Any] = []
    left, right = list(xs), list(others)
    while left and right:
        first = left if key(left[0]) <= key(right[0]) else right
        out.append(first.pop(0))
    if not right:
        return out + left
    return out + right if end == "complete" and not left else out


def key(item: Any) -> Any:
    return item.value
