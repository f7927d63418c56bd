"""Any publisher can be explored, judged by the rules."""

from __future__ import annotations

from typing import Any

import pytest

from reactive_runtime import Flow
from reactive_runtime._core.failures.dropping import element_dropped
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.explore import (
    Driven,
    call,
    cancel,
    explore_publisher,
    programs,
    publisher_scenario,
    request,
    subscribe,
)
from reactive_runtime.stress._faults import FAULTS, planted

PROGRAM: dict[str, tuple[Any, dict[str, Any]]] = {
    "lost-demand": ([request(1), request(1)], {}),
    "overflow": ([request(MAX_DEMAND), request(MAX_DEMAND)], {}),
    "two-drains": ([request(1), request(1)], {}),
    "signal-after-completion": ([[request(MAX_DEMAND)], [request(1)]], {}),
    "forgotten-cancel": ([request(MAX_DEMAND)], {"inside": {1: cancel()}}),
}
RULES = {
    "lost-demand": "3.8",
    "overflow": "3.17",
    "two-drains": "1.3",
    "signal-after-completion": "1.7",
    "forgotten-cancel": "1.8",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_planted_fault_is_found_and_its_rule_named(fault: str) -> None:
    actors, more = PROGRAM[fault]
    with planted(fault):
        numbers = Flow.from_supplier(lambda: iter(range(5)))
        failure = explore_publisher(lambda: numbers, actors, elements=5, **more).failure
    assert failure is not None
    assert failure.rule == RULES[fault] or fault in ("overflow", "two-drains"), failure.message
    assert failure.message.startswith(f"rule {failure.rule}: ")


def test_the_same_programs_hold_without_the_fault() -> None:
    for actors, more in PROGRAM.values():
        explore_publisher(lambda: Flow.from_supplier(lambda: iter(range(5))), actors, elements=5, **more).assert_holds()


def test_an_actor_is_a_call_a_list_of_calls_or_has_a_name() -> None:
    named: dict[str, Any] = {"asks": request(1), "stops": [request(1), cancel()]}
    explore_publisher(lambda: Flow.range(3), named, schedules=50).assert_holds()
    assert repr(request(MAX_DEMAND)) == "request(MAX_DEMAND)"
    assert repr(request(2)) == "request(2)"
    assert repr(cancel()) == "cancel()"


def test_further_subscribers_are_judged_each_for_itself() -> None:
    def both(driven: Driven) -> None:
        assert [subscriber.elements for subscriber in driven.subscribers] == [[0, 1], [0, 1, 2]]

    explore_publisher(
        lambda: Flow.range(3), [request(2), subscribe(MAX_DEMAND)], elements=3, at_end=both, schedules=100
    ).assert_holds()


def test_an_invariant_of_ones_own_is_looked_at_after_the_rules() -> None:
    failure = explore_publisher(lambda: Flow.range(3), [request(2)], at_end=lambda driven: len(driven.elements) == 3)
    assert failure.failure is not None
    assert failure.failure.rule is None


def test_what_is_dropped_is_kept_for_the_invariant() -> None:
    def dropping(driven: Driven) -> None:
        element_dropped("for a test", 7)

    def kept(driven: Driven) -> None:
        assert [item.element for item in driven.dropped] == [7]

    explore_publisher(lambda: Flow.range(1), [call("drop", dropping)], at_end=kept, schedules=20).assert_holds()


def test_a_publisher_that_raises_out_of_subscribe_breaks_a_rule() -> None:
    class Raising:
        def subscribe(self, subscriber: Any) -> None:
            raise OSError("no")

    failure = explore_publisher(Raising, [request(1)]).failure
    assert failure is not None
    assert failure.rule == "1.9"


def test_generated_programs_are_lists_of_lists_of_calls() -> None:
    assert repr(programs([request(1)], actors=3, length=2)).startswith("lists(lists(just(request(1))")


def test_on_next_that_overlaps_is_seen() -> None:
    class Overlapping:
        def subscribe(self, subscriber: Any) -> None:
            self.subscriber = subscriber
            subscriber.on_subscribe(self)

        def request(self, n: int) -> None:
            self.subscriber.on_next(1)

        def cancel(self) -> None:
            pass

    failure = explore_publisher(Overlapping, [request(1), request(1)], ascending=False).failure
    assert failure is not None
    assert failure.rule == "1.3"
    assert "inside of on_next" not in failure.message


def test_no_actor_is_left_out_however_many_there_are() -> None:
    scenario = publisher_scenario(lambda: Flow.range(3), [request(1)] * 60)
    assert len(scenario.actors) == 60
    assert list(scenario.actors)[25:28] == ["Z", "A1", "B1"]
