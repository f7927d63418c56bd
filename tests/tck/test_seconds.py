"""The kit says beforehand how long it will take: what it counts is counted again (benchmarks/kit.py has the times)."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import pytest
import typer
from sinks import PATIENCE

from reactive_runtime._cli import kit
from reactive_runtime.tck import Settings, Verification, _factories, _verification
from reactive_runtime.tck._factories import LONG_WORK, WORK
from reactive_runtime.tck._publisher import publisher_extra, publisher_original, publisher_values
from reactive_runtime.tck._publisher.probes import ManualSubscriber
from reactive_runtime.tck._running import environment
from reactive_runtime.tck._running.command import Begun, Target, judged
from reactive_runtime.tck._subscriber import blackbox
from tck import unusual
from tck.broken import Publishers


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many subscriptions, elements and silences there were, where the pace is measured once."""
    monkeypatch.setattr(_factories, "QUICK", 60.0)  # else a busy machine is measured again, and that is counted too
    for checks in (publisher_extra, publisher_original, publisher_values, blackbox):
        monkeypatch.setattr(checks, "LONG_ENOUGH", PATIENCE)  # else a busy machine does less, or begins again
    counts = dict.fromkeys(("subscriptions", "elements", "silences"), 0)
    lock = threading.Lock()

    class Counted(environment.TestEnvironment):
        """What the checks of this test know; threads that other tests have left may still signal to theirs."""

        def silence(self, count: Callable[[], int]) -> int:
            came = super().silence(count)
            with lock:
                counts["silences"] += not came
            return came

    def count(name: str, what: str) -> None:
        original = getattr(ManualSubscriber, name)

        def counting(self: Any, *arguments: Any) -> Any:
            result = original(self, *arguments)
            if isinstance(self.env, Counted):
                with lock:
                    counts[what] += 1
            return result

        monkeypatch.setattr(ManualSubscriber, name, counting)

    count("on_subscribe", "subscriptions")
    count("on_next", "elements")
    for module in (_factories, _verification):
        monkeypatch.setattr(module, "TestEnvironment", Counted)
    return counts


def test_what_threads_of_other_tests_still_signal_is_not_counted(counted: dict[str, int]) -> None:
    left = ManualSubscriber[int](environment.TestEnvironment("1.1", Settings()))
    left.on_next(1)
    assert counted["elements"] == 0


def small() -> Verification:
    """What is quick, and has everything that the checks ask for."""
    return Publishers().configure(default_timeout=5.0, default_no_signals_timeout=0.001)


def test_the_signals_and_silences_of_the_checks_are_as_many_as_it_says(counted: dict[str, int]) -> None:
    verification = small()
    for check in verification.checks():
        if check.name not in LONG_WORK:
            assert verification.outcome(check).status == "passed" or check.kind == "untested"
    assert counted == dataclasses.asdict(WORK)


@pytest.mark.parametrize("name", [name for name in LONG_WORK if "at_once" not in name and "lost" not in name])
def test_those_of_a_long_check_are_too(counted: dict[str, int], name: str) -> None:
    verification = small()
    check = next(item for item in verification.checks() if item.name == name)
    assert verification.outcome(check).status == "passed"
    assert counted == dataclasses.asdict(LONG_WORK[name])


def slow(elements: int) -> unusual.Slow:
    """What the command is pointed at."""
    return unusual.Slow(elements)


def test_the_command_waits_in_short_pieces_so_a_key_that_came_right_before_a_wait_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    poll, waits = Connection.poll, list[Any]()

    def counting(connection: Connection, timeout: Any = 0.0) -> bool:
        waits.append(timeout)
        return poll(connection, timeout)

    monkeypatch.setattr(Connection, "poll", counting)
    heard = judged(Target(f"{__name__}:slow"))
    assert isinstance(next(heard), Begun)
    heard.close()  # type: ignore[attr-defined]
    assert waits
    assert max(waits) <= 1


def test_the_command_says_it_before_the_first_check(capsys: pytest.CaptureFixture[str]) -> None:
    heard = judged(Target(f"{__name__}:slow"))
    first = next(heard)
    heard.close()  # type: ignore[attr-defined]
    assert isinstance(first, Begun)
    assert first.pace > 0.04
    with pytest.raises(typer.Exit):  # nothing was judged
        kit._report("slow", iter([first]), 120)
    assert "the checks will take about" in capsys.readouterr().out


def test_a_quick_publisher_takes_as_long_as_the_silences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_factories, "_measured", lambda factory: (0.0, 0.0))
    verification = Publishers().configure(default_timeout=5.0, default_no_signals_timeout=0.1)
    silences = WORK.silences + sum(work.silences for work in LONG_WORK.values())
    assert verification.seconds() == pytest.approx(0.1 * silences)


@pytest.mark.parametrize(
    ("tries", "pace"),
    [
        ([(0.2, 0.003), (0.0, 0.3), (0.001, 0.001)], (0.0, 0.001)),  # what a busy machine adds
        ([(0.0, 0.02), (0.0, 0.001)], (0.0, 0.001)),
        ([(0.0, 0.001)], (0.0, 0.001)),
        ([(0.1, 2.0), (0.1, 2.0)], (0.1, 2.0)),  # what is slow by far
        ([(0.1, 2.0), (0.0, 0.001)], (0.0, 0.001)),  # only the first element was: it filled a cache
        ([(0.02, 0.2), (0.02, 0.2), (0.02, 0.2)], (0.02, 0.2)),
    ],
)
def test_the_pace_is_that_of_the_quickest_of_three_tries(
    tries: list[tuple[float, float]], pace: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter(tries)
    monkeypatch.setattr(_factories, "_measured_once", lambda factory: next(left))
    assert _factories._measured(Publishers()) == pace
    assert list(left) == []


def test_the_checks_of_a_slow_one_take_the_measured_time_of_each_signal_too_and_the_long_ones_no_longer_than_they_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_factories, "_measured", lambda factory: (0.5, 2.0))
    verification = Publishers().configure(default_timeout=5.0, default_no_signals_timeout=0.1)
    short = 0.5 * WORK.subscriptions + 2.0 * WORK.elements + 0.1 * WORK.silences
    assert all(2.0 * work.elements > environment.LONG_ENOUGH for work in LONG_WORK.values())
    assert verification.seconds() == pytest.approx(short + environment.LONG_ENOUGH * len(LONG_WORK))
