"""Each operator with a clock or a switch signals what its model signals, at the same times."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from declared.table import parts
from hypothesis import given, settings

from models.scripts import FailedError, numbers
from models.timed import Events, Run, Stage, Timed, events
from reactive_runtime import hooks

TIMED = parts(Timed)


def ran(timed: Timed, happening: Events) -> list[Any]:
    """The signals, with their times. What was given and not delivered has gone to the hook, once."""
    stage = Stage()
    out: list[Any] = []
    ended: list[Any] = []

    def error(item: BaseException) -> None:
        ended.append(item)
        out.append((stage.clock.now(), "error"))

    def complete() -> None:
        ended.append(None)
        out.append((stage.clock.now(), "complete"))

    with hooks.captured() as drops:
        flow = timed.apply(stage.source(), stage)
        first = happening[0][2]
        handle = flow.subscribe(lambda entry: out.append((stage.clock.now(), entry)), error, complete, demand=first)
        for time, what, *one in happening[1:]:
            stage.clock.advance(time - stage.clock.now())
            if what == "request":
                handle.request(*one)
            elif what == "cancel":
                handle.cancel()
            else:
                stage.happens(what, *one)
        stage.clock.advance(10**7 - stage.clock.now())
        handle.cancel()
    assert len(ended) <= 1
    if timed.follows:
        went = Counter(numbers([entry for _, entry in out])) + Counter(numbers([drop.element for drop in drops]))
        assert went == Counter(item.number for item in stage.given), f"given {stage.given}, {out}, dropped {drops}"
    assert all(isinstance(drop.error, FailedError | type(None)) for drop in drops), drops
    return out


@pytest.mark.parametrize("name", TIMED)
@settings(max_examples=60)
@given(happening=events())
def test_an_operator_signals_what_its_model_signals(name: str, happening: Events) -> None:
    assert ran(TIMED[name], happening) == Run(happening).go(TIMED[name].model())
