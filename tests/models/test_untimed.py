"""Each operator gives what its model gives, for any demand, end and cancel."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from models.running import hold
from models.scripts import Script, scripts
from models.table import TABLE


@pytest.mark.parametrize("name", TABLE)
@settings(max_examples=30, deadline=None)
@given(script=scripts())
def test_an_operator_gives_what_its_model_gives(name: str, script: Script) -> None:
    hold(TABLE[name], script)
