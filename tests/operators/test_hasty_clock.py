"""Time goes on between two looks at the clock: an operator that looks twice finds itself late, and signals no error."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sinks import PATIENCE

from operators.catalogue import CASES, Case, Place
from reactive_runtime import Flow
from reactive_runtime.executors import VirtualTimeExecutor


class Hasty(VirtualTimeExecutor):
    """Time goes on each time that it is asked for."""

    def __init__(self, step: float) -> None:
        super().__init__()
        self._step = int(step * 1e9)
        self._looks = 0
        self._counting = threading.Lock()

    def now_ns(self) -> int:
        with self._counting:
            self._looks += 1
            ahead = self._looks * self._step
        return super().now_ns() + ahead


@pytest.mark.parametrize("step", [0.01, 0.3, 0.7, 4])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_operator_is_never_late_for_its_clock(case: Case, step: float) -> None:
    errors: list[BaseException] = []
    ended = threading.Event()

    def fails(error: BaseException) -> None:
        errors.append(error)
        ended.set()

    with ThreadPoolExecutor(2) as pool:
        place = Place(pool, Hasty(step))
        case.apply(Flow.range(10), place).subscribe(lambda element: None, fails, ended.set)
        for _ in range(int(PATIENCE * 1000)):
            if ended.is_set() or ended.wait(0.001):
                break
            place.clock.advance(1)
    assert ended.is_set()
    assert not [error for error in errors if isinstance(error, ValueError)]
