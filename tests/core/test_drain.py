"""The way into a drain: what every request of a subscriber passes."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from reactive_runtime._core.drains.drain import Drain
from reactive_runtime._spec import MAX_DEMAND


class Counted(Drain):
    """Says when it is launched."""

    launched = 0

    def _launch(self) -> None:
        self.launched += 1


def test_no_function_is_called_while_the_lock_of_a_drain_is_held_for_a_request() -> None:
    """A GIL may change hands at a call: then threads that request meanwhile wait for the lock, one after the other."""
    drain, under_the_lock = Counted(owned=True), list[str]()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and drain.lock.locked():
            under_the_lock.append(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        drain.add(1)
    finally:
        sys.setprofile(before)
    assert under_the_lock == []
    assert drain.demand() == 1


@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize("asked", [1, 5, MAX_DEMAND])
def test_a_request_wakes_a_drain_as_any_other_call_does(asked: int, owned: bool) -> None:
    one, other = Counted(owned=owned), Counted(owned=owned)
    one.add(asked)
    other.wake()
    assert one.launched == other.launched == (not owned)
    assert one.has_note() == other.has_note() == owned
    assert one.is_owned()
    assert other.is_owned()
    one.add(asked)
    assert one.demand() == min(2 * asked, MAX_DEMAND)
    assert one.launched == (not owned)
