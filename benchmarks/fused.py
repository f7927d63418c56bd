"""map, filter, map over a range, each result to `on_next`: the flow beside the loop a person would write."""

from __future__ import annotations

from collections.abc import Callable

import reactivex
from reactivex import operators as rx
from side_by_side import measure, reached, show

from reactive_runtime import Flow

N = 1_000_000


def add(n: int) -> int:
    return n + 1


def odd(n: int) -> bool:
    return n % 2 == 1


class Sum:
    """The same `on_next` for all."""

    def __init__(self) -> None:
        self.total = 0

    def on_next(self, n: int) -> None:
        self.total += n


def loop(on_next: Callable[[int], None]) -> None:
    for n in range(N):
        m = add(n)
        if odd(m):
            on_next(add(m))


def iterators(on_next: Callable[[int], None]) -> None:
    for n in map(add, filter(odd, map(add, range(N)))):
        on_next(n)


def generators(on_next: Callable[[int], None]) -> None:
    first = (add(n) for n in range(N))
    second = (n for n in first if odd(n))
    for n in (add(n) for n in second):
        on_next(n)


def main() -> None:
    flow = Flow.range(N).map(add).filter(odd).map(add)
    other = reactivex.from_iterable(range(N)).pipe(rx.map(add), rx.filter(odd), rx.map(add))
    ways = {
        "hand-written loop": lambda: loop(Sum().on_next),
        "Flow, unbounded demand": lambda: flow.subscribe(Sum().on_next),
        "Flow, demand N": lambda: flow.subscribe(Sum().on_next, demand=N),
        "nested C iterators": lambda: iterators(Sum().on_next),
        "nested generators": lambda: generators(Sum().on_next),
        "reactivex": lambda: other.subscribe(Sum().on_next),
    }
    medians = measure(ways, rounds=7)
    aims = {"Flow, unbounded demand": "at most 1.2"}
    show(f"map, filter, map over {N:,}", medians, dict.fromkeys(ways, N), "hand-written loop", aims)
    fused = medians["Flow, unbounded demand"]
    reached("map, filter, map, fused: x the loop", fused / medians["hand-written loop"], at_most=1.2)
    reached("reactivex: x map, filter, map, fused", medians["reactivex"] / fused, at_least=2.8)


if __name__ == "__main__":
    main()
