"""Runs the kit and the explorer on every step, and prints what each of them breaks.

The kit judges in other processes, since it mostly waits; meanwhile the explorer orders threads in this one.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from examples.stream_publisher.conformance import STEPS, explored, judged
from reactive_runtime.explore import Result
from reactive_runtime.tck import Outcome

PROCESSES = 5
"""More than a small machine has cores, for the same reason."""


def main() -> None:
    """Judge each step, and print a line for it."""
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        by_the_kit = {title: pool.submit(judged, title) for title in STEPS}
        by_the_explorer = {title: explored(title) for title in STEPS}
        print(f"{'step':<34} {'checks of the original kit':<34} {'the kit breaks':<45} the explorer breaks")
        for title in STEPS:
            outcomes = by_the_kit[title].result()
            print(f"{title:<34} {counted(outcomes):<34} {broken(outcomes):<45} {shown(by_the_explorer[title])}")


def counted(outcomes: Iterable[Outcome]) -> str:
    """Of the checks that the original kit has too."""
    original = [item for item in outcomes if item.check.original]
    return ", ".join(
        f"{sum(item.status == status for item in original)} {status}" for status in ("passed", "failed", "skipped")
    )


def broken(outcomes: Iterable[Outcome]) -> str:
    """The rules that the kit sees broken."""
    rules = {item.rule for item in outcomes if item.status == "failed"}
    return ", ".join(sorted(rules, key=lambda rule: [int(part) for part in rule.split(".")])) or "nothing"


def shown(results: dict[str, Result]) -> str:
    """The rules that the explorer breaks, each with the fewest preemptions that it takes."""
    fewest: dict[str, int] = {}
    for result in results.values():
        if (failure := result.failure) is not None:
            rule = failure.rule or failure.kind
            fewest[rule] = min(failure.preemptions, fewest.get(rule, failure.preemptions))
    if not fewest:
        return f"nothing: {next(iter(results.values())).verdict}"
    return ", ".join(f"{rule} ({_preemptions(fewest[rule])})" for rule in sorted(fewest))


def _preemptions(count: int) -> str:
    return f"{count or 'no'} preemption{'s'[: count != 1]}"


if __name__ == "__main__":
    main()
