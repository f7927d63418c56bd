"""Each operator gives what its model gives, for any demand, end and cancel."""

from __future__ import annotations

import time
from typing import Any

import pytest
from declared import flattening
from declared.modelling import breaks, made
from declared.table import parts
from hypothesis import given, settings

from models.running import Entry, hold
from models.scripts import Item, Script, scripts

TABLE = parts(Entry)


@pytest.mark.parametrize("name", TABLE)
@settings(max_examples=30)
@given(script=scripts())
def test_an_operator_gives_what_its_model_gives(name: str, script: Script) -> None:
    hold(TABLE[name], script)


@pytest.mark.parametrize("values", [[7, 2, 3], [2, 7, 3], [7, 7, 2]])
@pytest.mark.parametrize("demand", [(1, 2), (5, 2)])
def test_a_call_that_fails_may_be_the_last_to_return(
    values: list[int], demand: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a busy machine: what was called after it has been delivered by then."""

    def late(item: Item) -> Any:
        if breaks(item):
            time.sleep(0.02)
        return made(item)

    monkeypatch.setattr(flattening, "made", late)
    hold(TABLE["map_parallel, on a pool, as they are done"], Script(values, "complete", "pulled", demand, None, False))
