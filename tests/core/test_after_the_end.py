"""2.4: what waits to be asked for when the upstream ends is not asked for any more.

The upstream ends inside of `request`, and a request made there waits until that one has returned (2.7).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reactive_runtime import MAX_DEMAND, Flow
from reactive_runtime._core.queues.upstream import Upstream
from reactive_runtime.subscribers import BaseSubscriber
from reactive_runtime.testing import Recorder, check


class Eager:
    """Signals 0, 1, 2 as they are asked for, from inside `request`, and its end right behind the last."""

    def __init__(self, fails: bool) -> None:
        self.fails = fails

    def subscribe(self, subscriber: Any, /) -> None:
        subscriber.on_subscribe(_Eager(subscriber, self.fails))


class _Eager:
    def __init__(self, subscriber: Any, fails: bool) -> None:
        self.subscriber = subscriber
        self.fails = fails
        self.left = [2, 1, 0]
        self.demand = 0
        self.inside = False
        self.over = False

    def request(self, n: int, /) -> None:
        self.demand += n
        if self.inside or self.over:
            return
        self.inside = True
        while self.demand and self.left and not self.over:
            self.demand -= 1
            self.subscriber.on_next(self.left.pop())
        self.inside = False
        if not (self.left or self.over):
            self.over = True
            self.subscriber.on_error(OSError("broken")) if self.fails else self.subscriber.on_complete()

    def cancel(self) -> None:
        self.over = True


class OneMore(BaseSubscriber[int]):
    """Asks for three, and for one more for each."""

    def started(self) -> None:
        self.request(3)

    def received(self, element: int, /) -> None:
        self.request(1)

    def failed(self, error: BaseException, /) -> None:
        pass


CHAINS: dict[str, Callable[[Any], Any]] = {
    "filter": lambda source: (
        Flow.from_publisher(source).filter(lambda n: n < 1).subscribe(int, on_error=repr, demand=2).request(1)
    ),
    "limit_rate": lambda source: Flow.from_publisher(source).limit_rate(4).subscribe(int, on_error=repr),
    "publish": lambda source: Flow.from_publisher(source).publish(capacity=4).ref_count().subscribe(int, on_error=repr),
    "a subscriber": lambda source: source.subscribe(OneMore()),
}


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("name", CHAINS)
def test_spec204_nothing_is_asked_for_after_the_end(name: str, fails: bool) -> None:
    recorder = Recorder()
    CHAINS[name](recorder.wrap(Eager(fails)))
    signals = [record.signal for record in recorder.records()]
    assert "on_error" in signals if fails else "on_complete" in signals
    assert check(recorder.records()) == []


def test_everything_that_is_asked_for_after_the_end_is_over_at_once() -> None:
    """Unbounded demand is not used up by elements: the drain must not turn for what it will never ask for."""
    asked: list[int] = []

    class Ended:
        def request(self, n: int, /) -> None:
            asked.append(n)

        def cancel(self) -> None: ...

    def raised(error: BaseException, fault: Exception) -> None:
        raise fault

    class Counted(Upstream):
        turns = 0

        def _turn(self, allowance: int) -> int:
            self.turns += 1
            assert self.turns < 10, "it turns for ever"
            return super()._turn(allowance)

    upstream = Counted(Ended(), raised)
    upstream.ended()
    upstream.request(MAX_DEMAND)
    assert (asked, upstream.turns) == ([], 1)
