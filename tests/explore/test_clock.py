"""There is one time, and it is virtual, for all that ask for it."""

from __future__ import annotations

import asyncio
import datetime
import time
from datetime import date
from datetime import datetime as imported
from typing import Any

import pytest

from reactive_runtime._core.runtime import primitives
from reactive_runtime.explore import Scenario, explore

CLOCKS: dict[str, Any] = {
    "time": lambda: float(time.time()),
    "time_ns": lambda: time.time_ns() / 1e9,
    "monotonic": lambda: float(time.monotonic()),
    "monotonic_ns": lambda: time.monotonic_ns() / 1e9,
    "perf_counter": lambda: float(time.perf_counter()),
    "perf_counter_ns": lambda: time.perf_counter_ns() / 1e9,
    "datetime.now": lambda: datetime.datetime.now().timestamp(),
    "datetime.now, of a zone": lambda: datetime.datetime.now(datetime.UTC).timestamp(),
    "datetime.utcnow": lambda: datetime.datetime.utcnow().replace(tzinfo=datetime.UTC).timestamp(),
    "datetime.today": lambda: datetime.datetime.today().timestamp(),
    "datetime, imported": lambda: imported.now().timestamp(),
}


def test_the_sleep_of_the_packages_own_code_moves_the_clock() -> None:
    told: list[float] = []

    def sleeps(_: object) -> None:
        before = primitives.monotonic()
        primitives.sleep(0.5)
        told.append(primitives.monotonic() - before)

    explore(Scenario(int, {"sleeps": [sleeps]}), schedules=3).assert_holds()
    assert told == pytest.approx([0.5] * len(told))
    assert told


@pytest.mark.parametrize("name", CLOCKS)
def test_a_sleep_moves_every_clock(name: str) -> None:
    read = CLOCKS[name]
    told: list[float] = []

    def sleeps(_: object) -> None:
        before = read()
        time.sleep(3_600)
        told.append(read() - before)

    explore(Scenario(int, {"sleeps": [sleeps]}, parts=[read]), schedules=3).assert_holds()
    assert told == pytest.approx([3_600] * len(told))
    assert told


def test_a_day_goes_by() -> None:
    told: list[date] = []

    def sleeps(_: object) -> None:
        told.extend([datetime.date.today(), date.today()])
        time.sleep(86_400)
        told.append(date.today())

    explore(Scenario(int, {"sleeps": [sleeps]}), schedules=1).assert_holds()
    assert told[0] == told[1] == told[2] - datetime.timedelta(days=1)


def test_all_agree_on_the_time_of_day() -> None:
    def looks(_: object) -> None:
        time.sleep(90)
        now = time.time()
        assert datetime.datetime.now().timestamp() == pytest.approx(now)
        assert time.time_ns() / 1e9 == pytest.approx(now)
        assert date.today() == date.fromtimestamp(now)

    explore(Scenario(int, {"looks": [looks]}), schedules=2).assert_holds()


def test_dates_are_what_they_were() -> None:
    def makes(_: object) -> None:
        day = imported(2020, 2, 3, 4, 5)
        assert type(day) is REAL[0]
        assert isinstance(day, imported)
        assert isinstance(day, date)
        assert isinstance(imported.now(), imported)
        assert imported.fromisoformat("2020-02-03") < day

    explore(Scenario(int, {"makes": [makes]}), schedules=2).assert_holds()
    assert datetime.datetime is REAL[0]


REAL = [datetime.datetime]  # not by a name of its own, which would be replaced as well


def test_the_time_of_an_event_loop_is_the_same() -> None:
    loop = asyncio.new_event_loop()
    told: list[float] = []

    def sleeps(_: object) -> None:
        before = loop.time()
        time.sleep(10)
        told.append(loop.time() - before)

    explore(Scenario(int, {"sleeps": [sleeps]}), schedules=1).assert_holds()
    loop.close()
    assert set(told) == {10}  # the schedule is run, and run again


def test_a_loop_until_a_deadline_ends_soon_after_it() -> None:
    late: list[float] = []

    def waits(seconds: float) -> None:
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            pass
        late.append((now - end) / seconds)

    def waiting(seconds: float) -> Scenario[int]:
        return Scenario(int, {"waits": [lambda _: waits(seconds)]}, parts=[waits])

    for seconds in (1, 60, 3_600):
        explore(waiting(seconds), schedules=2, early_timeouts=0).assert_holds()
    assert all(0 <= entry < 0.12 for entry in late)


def test_a_loop_until_a_deadline_passes_no_other_one() -> None:
    """A thread that sleeps can go on when it said, also where another one moves the clock."""
    told: list[float] = []

    class Both:
        def actor_waits(self) -> None:
            end = time.monotonic() + 10
            while time.monotonic() < end:
                pass

        def actor_sleeps(self) -> None:
            time.sleep(5)
            told.append(time.monotonic())

    explore(Both, schedules=20).assert_holds()
    assert 5 in told
