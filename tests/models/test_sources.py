"""Each source gives what its model gives, for any demand."""

from __future__ import annotations

import pytest
from declared.kinds import SourceModel
from declared.table import parts
from hypothesis import given, settings
from hypothesis import strategies as st
from sinks import wait_until

from models.scripts import Keeping

SOURCES = parts(SourceModel)


@pytest.mark.parametrize("name", SOURCES)
@settings(max_examples=20)
@given(xs=st.lists(st.integers(0, 9), max_size=8), steps=st.lists(st.integers(1, 4), min_size=1, max_size=6))
def test_a_source_gives_what_its_model_gives(name: str, xs: list[int], steps: list[int]) -> None:
    source = SOURCES[name]
    expected = source.model(xs)
    sink = Keeping(0)
    source.make(xs).subscribe(sink)
    for n in [*steps, 99]:
        if sink.end:
            break
        sink.request(n)
        due = expected[: sink.asked]
        wait_until(lambda due=due: len(sink.elements) >= len(due))  # type: ignore[misc]
        assert sink.elements == due
    wait_until(lambda: bool(sink.end))
    assert (sink.end, sink.wrong) == ("complete", "")
