"""A call is held at each of its steps, also where others are at the same time."""

from __future__ import annotations

import threading

from sinks import PATIENCE, until

from reactive_runtime.tck._preemption import HeldCall


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def add(self) -> None:
        self.count += 1


def test_many_calls_are_held_at_once_each_at_its_own_step() -> None:
    counters = [Counter() for _ in range(12)]
    calls = [HeldCall(counter.add, at % 2, lambda: None, f"held-{at}") for at, counter in enumerate(counters)]
    for call in calls:
        call.start()
    until(lambda: all(call.reached or call.ended for call in calls))
    assert [(call.reached, call.ended) for call in calls] == [(True, False)] * len(calls)
    assert [counter.count for counter in counters] == [0] * len(counters)
    for call in calls:
        call.release()
    until(lambda: all(call.ended for call in calls))
    assert [counter.count for counter in counters] == [1] * len(counters)
    assert {call.steps for call in calls} == {2}


def test_a_thread_that_is_not_held_goes_on_beside_one_that_is() -> None:
    counter = Counter()
    held = HeldCall(counter.add, 0, lambda: None, "held")
    held.start()
    until(lambda: held.reached)
    beside = threading.Thread(target=counter.add)
    beside.start()
    beside.join(PATIENCE)
    assert counter.count == 1
    held.release()
    until(lambda: held.ended)
    assert counter.count == 2
