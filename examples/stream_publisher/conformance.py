"""The steps, how the kit makes one, and what the kit and the explorer say of it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from examples.stream_publisher import (
    step_1_naive,
    step_2_on_subscribe,
    step_3_subscription,
    step_4_termination,
    step_5_errors,
    step_6_demand,
    step_7_get_and_add,
    step_8_capped,
    step_9_one_drain,
)
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.explore import Result, explore_publisher, request
from reactive_runtime.tck import Outcome, PublisherVerification

STEPS: dict[str, Any] = {
    "1 naive": step_1_naive.StreamPublisher,
    "2 with on_subscribe": step_2_on_subscribe.StreamPublisher,
    "3 with a subscription": step_3_subscription.StreamPublisher,
    "4 with termination": step_4_termination.StreamPublisher,
    "5 with 3.9 and 1.4": step_5_errors.StreamPublisher,
    "6 with demand": step_6_demand.StreamPublisher,
    "7 with an atomic get-and-add": step_7_get_and_add.StreamPublisher,
    "8 with a capped compare-and-set": step_8_capped.StreamPublisher,
    "9 with one drain": step_9_one_drain.StreamPublisher,
}

PROGRAMS: Final[dict[str, Any]] = {
    "request(1) twice": [request(1), request(1)],
    "all, twice": [request(MAX_DEMAND), request(MAX_DEMAND)],
    "request(2), request(0)": [request(2), request(0)],
}
"""What two threads do to a publisher of four elements, where the explorer orders them."""

SIDE_BY_SIDE: Final = 24
"""Checks: where something is broken the kit mostly waits."""


def failing_after(elements: int) -> Iterator[int]:
    """A source that fails after so many elements."""
    yield from range(elements)
    raise OSError("the source is broken")


def broken() -> Any:
    """A supplier that fails."""
    raise OSError("the supplier is broken")


def verification_of(publisher: Any) -> PublisherVerification[int]:
    """The verification of one step."""

    class Verification(PublisherVerification[int]):
        default_timeout = 0.5  # for a busy machine
        default_no_signals_timeout = 0.05
        default_poll_timeout = 0.05

        def create_publisher(self, elements: int) -> Any:
            return publisher(lambda: range(elements))

        def create_failed_publisher(self) -> Any:
            return publisher(broken)

        def create_publisher_failing_after(self, elements: int) -> Any:
            return publisher(lambda: failing_after(elements))

    return Verification()


def judged(title: str) -> list[Outcome]:
    """What the kit says of a step, check by check."""
    checks = verification_of(STEPS[title]).checks()
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return list(pool.map(lambda check: verification_of(STEPS[title]).outcome(check), checks))


def explored(title: str) -> dict[str, Result]:
    """What the explorer says of a step, by program: every schedule with up to two preemptions, the fewest first."""
    publisher = STEPS[title]
    return {
        program: explore_publisher(
            lambda: publisher(lambda: range(4)),
            actors,
            elements=4,
            modules=[publisher.__module__],
            strategy="bounded",
            bound=2,
            shrink=False,
        )
        for program, actors in PROGRAMS.items()
    }
