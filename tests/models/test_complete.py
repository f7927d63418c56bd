"""Everything that `Flow` has is held to a model somewhere."""

from __future__ import annotations

from listing import lists_each
from operators.test_models import MODELS

from models.table import TABLE
from models.test_sinks import SINKS
from models.test_sources import SOURCES
from models.timed import TIMED
from reactive_runtime import Flow

ELSEWHERE = {
    "never": "the source of every script that does not end (scripts.Given)",
    "error": "the source of test_sinks",
    "sample": "tests/oracle",
    "explain": "text: its doctest, and tests/core",
    "from_dataframe": "tests/spark",
    "from_stream": "tests/spark",
    "to_spark": "tests/spark",
}


def test_every_operator_source_and_sink_has_a_model_or_a_reason() -> None:
    held = {name.partition(",")[0].partition(" ")[0] for name in (*TABLE, *TIMED, *SOURCES, *MODELS)} | SINKS
    public = {name for name in dir(Flow) if not name.startswith("_")}
    lists_each("tests/models/table.py or, with a clock, timed.py", {*held & public, *ELSEWHERE}, public)
    assert set(ELSEWHERE) & held == set(), "a reason that is needed no more"
