"""A valve or a kill switch reaches every flow that goes through it, whatever one of them raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sinks import Sink

from reactive_runtime import Flow, KillSwitch, Valve
from reactive_runtime.executors import VirtualTimeExecutor


class Interrupted(Sink):
    """Raises out of its signals what goes up to the caller."""

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        raise KeyboardInterrupt

    def on_error(self, error: BaseException, /) -> None:
        super().on_error(error)
        raise KeyboardInterrupt

    def on_complete(self) -> None:
        super().on_complete()
        raise KeyboardInterrupt


def through(flow: Callable[[], Flow[Any]]) -> tuple[Sink, ...]:
    """Three subscribers of flows that have a handle in common; the one in the middle, and the first, raise."""
    sinks = Interrupted(), Interrupted(), Sink()
    for sink in sinks:
        flow().subscribe(sink)
    return sinks


def test_a_valve_wakes_every_flow() -> None:
    valve = Valve(paused=True)
    sinks = through(lambda: Flow.just(1).pausable(valve))
    with pytest.raises(KeyboardInterrupt):
        valve.resume()
    assert [sink.elements for sink in sinks] == [[1], [1], [1]]
    assert sinks[-1].end == ("on_complete",)


def test_a_kill_switch_ends_every_flow() -> None:
    switch = KillSwitch()
    sinks = through(lambda: Flow.never().kill_switch(switch))
    with pytest.raises(KeyboardInterrupt):
        switch.throw()
    assert [sink.end for sink in sinks] == [("on_complete",)] * 3
    assert switch.throw().done()


def test_a_kill_switch_fails_every_flow_that_is_late() -> None:
    clock, switch = VirtualTimeExecutor(), KillSwitch()
    sinks = through(lambda: Flow.never().kill_switch(switch).concat_with(Flow.never()))
    over = switch.throw(5.0, clock=clock)
    assert [sink.end for sink in sinks] == [None] * 3
    with pytest.raises(KeyboardInterrupt):
        clock.advance(5.0)
    assert [type(sink.error) for sink in sinks] == [TimeoutError] * 3
    assert over.done()


def test_an_interrupt_does_not_keep_a_kill_switch_from_its_deadline() -> None:
    clock, switch = VirtualTimeExecutor(), KillSwitch()
    interrupted, late = Interrupted(), Sink()
    Flow.never().kill_switch(switch).subscribe(interrupted)
    Flow.never().kill_switch(switch).concat_with(Flow.never()).subscribe(late)
    with pytest.raises(KeyboardInterrupt):
        switch.throw(5.0, clock=clock)
    clock.advance(5.0)
    assert interrupted.end == ("on_complete",)
    assert isinstance(late.error, TimeoutError)
