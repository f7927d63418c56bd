"""No operator changes an element: others may have it too, and the next subscriber may get it again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import pytest
from sinks import Sink, wait_until

from operators.catalogue import CASES, Place
from reactive_runtime import Flow
from reactive_runtime._core.fusion import fuse
from reactive_runtime.executors import VirtualTimeExecutor


class Touchy(int):
    """Its sum with 0 is the number itself, as many classes have it for `sum`; it can't be changed in place."""

    def __radd__(self, other: int) -> Any:
        return self if other == 0 else int(self) + other

    def _changed(self, other: object) -> NoReturn:
        raise AssertionError(f"an operator changed {self!r} in place")

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ior__ = __iand__ = _changed


def test_sum_adds_to_no_element() -> None:
    class Amount:
        def __init__(self, cents: int) -> None:
            self.cents = cents

        def __radd__(self, other: int) -> Amount:
            assert other == 0
            return self

        def __add__(self, other: Amount) -> Amount:
            return Amount(self.cents + other.cents)

        def __iadd__(self, other: Amount) -> Amount:
            self.cents += other.cents
            return self

    amounts = [Amount(1), Amount(2), Amount(3)]
    total = Flow.from_iterable(amounts).sum()
    assert [total.single().block().cents for _ in range(2)] == [6, 6]  # type: ignore[union-attr]
    assert [amount.cents for amount in amounts] == [1, 2, 3]


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_operator_changes_an_element_in_place(case: Any, fused: bool) -> None:
    clock = VirtualTimeExecutor()
    with ThreadPoolExecutor(2) as pool, fuse.fusing(fused):
        sink = Sink()
        case.apply(Flow.from_iterable([Touchy(n) for n in range(10)]), Place(pool, clock)).subscribe(sink)
        wait_until(lambda: _advanced(clock) and sink.ended.is_set())
    assert sink.signals[-1] == ("on_complete",)


def test_a_change_in_place_is_noticed() -> None:
    with pytest.raises(AssertionError, match="changed 1 in place"):
        exec("number += 1", {"number": Touchy(1)})


def _advanced(clock: VirtualTimeExecutor) -> bool:
    clock.advance(1)
    return True
