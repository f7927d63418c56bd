"""Explorations side by side have a core each, where there are enough; their threads interrupt no other there."""

from __future__ import annotations

import os
import sys
from typing import Any, ClassVar

import pytest

from reactive_runtime.explore import explore
from reactive_runtime.explore._schedule.carriers import Pinned


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """What threads were pinned to, on a machine that has four cores."""
    pinned: list[set[int]] = []
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {2, 3, 5, 7}, raising=False)
    monkeypatch.setattr("os.sched_setaffinity", lambda _, cores: pinned.append(set(cores)), raising=False)
    return pinned


def core_of(number: int | None = None) -> int | None:
    with Pinned(number) as core:
        return core


def test_workers_of_a_test_run_have_a_core_each_whatever_their_processes_are_numbered(
    four_cores: list[set[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getpid", lambda: 21)
    taken = []
    for worker in range(5):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", f"gw{worker}")
        taken.append(core_of())
    assert taken == [2, 3, 5, 7, 2]
    assert four_cores == [one for core in taken for one in ({core}, {2, 3, 5, 7})]


@pytest.mark.parametrize("worker", [None, "", "master", "gw"])
def test_elsewhere_the_number_of_the_process_decides(
    four_cores: list[set[int]], monkeypatch: pytest.MonkeyPatch, worker: str | None
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    if worker is not None:
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
    monkeypatch.setattr("os.getpid", lambda: 22)
    assert core_of() == 5
    assert core_of(3) == 7
    assert four_cores == [{5}, {2, 3, 5, 7}, {7}, {2, 3, 5, 7}]


class Policies:
    """How the system schedules the threads of an exploration."""

    seen: ClassVar[set[int]] = set()

    def actor_a(self) -> None:
        self.seen.add(os.sched_getscheduler(0))

    actor_b = actor_a


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has batch threads")
def test_a_thread_that_is_woken_does_not_interrupt_until_the_end() -> None:
    before = os.sched_getscheduler(0)
    with Pinned():
        assert os.sched_getscheduler(0) == os.SCHED_BATCH
    assert os.sched_getscheduler(0) == before
    Policies.seen.clear()
    explore(Policies, schedules=10)
    assert Policies.seen == {os.SCHED_BATCH}
    assert os.sched_getscheduler(0) == before


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has batch threads")
def test_a_system_that_forbids_batch_threads_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError("no")

    monkeypatch.setattr("os.sched_setscheduler", refuse, raising=False)
    with Pinned(0) as core:
        assert core == min(os.sched_getaffinity(0))
