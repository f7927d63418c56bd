"""The cost of an element that goes to Java and comes back, and of a thread that signals there."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

from reactive_runtime import MAX_DEMAND, Flow, Subscription
from reactive_runtime.interop import jvm

N = 20_000
THREADS = 500
ROUNDS = 5


class Counting:
    """A subscriber as small as can be."""

    def on_subscribe(self, subscription: Subscription, /) -> None:
        subscription.request(MAX_DEMAND)

    def on_next(self, element: Any, /) -> None:
        pass

    def on_error(self, error: BaseException, /) -> None:
        raise error

    def on_complete(self) -> None:
        pass


def seconds(call: Callable[[], object]) -> float:
    """The median of a few rounds, after one to warm up."""
    call()
    taken = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def received(publisher: Any) -> Callable[[], object]:
    """All its elements by a subscriber, in each call."""
    return lambda: publisher.subscribe(Counting())


def on_threads(call: Callable[[], object]) -> Callable[[], object]:
    """One call on each of some short threads."""

    def calls() -> None:
        for _ in range(THREADS):
            thread = threading.Thread(target=call)
            thread.start()
            thread.join()

    return calls


def main() -> None:
    jvm.start()
    elements: dict[str, Any] = {
        "an int": 12_345,
        "a str of ASCII": "a word or two",
        "a str beyond ASCII": "ein schöner Zug 🚂",
        "a tuple, opaque in Java": (1, "one"),
    }
    for name, element in elements.items():
        flow = Flow.just(*[element] * N)
        bare = seconds(received(flow)) / N
        crossed = seconds(received(jvm.from_java(jvm.to_java(flow, api="flow")))) / N
        print(f"{name}: {bare * 1e6:.2f} µs in Python, {crossed * 1e6:.1f} µs by way of Java")
    few = Flow.just(1, 2, 3)
    bare = seconds(on_threads(received(few))) / THREADS
    crossed = seconds(on_threads(received(jvm.from_java(jvm.to_java(few, api="flow"))))) / THREADS
    print(f"a thread, for three ints: {bare * 1e6:.0f} µs in Python, {crossed * 1e6:.0f} µs by way of Java")


if __name__ == "__main__":
    main()
