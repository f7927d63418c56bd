"""As `tests/core/test_signatures.py`, for what needs Spark to be imported."""

from __future__ import annotations

import inspect
from inspect import Parameter

import pytest

from reactive_runtime.spark._tasks.task_flows import map_flow
from reactive_runtime.spark._write.spark_sink import SparkSink
from reactive_runtime.spark._write.table_sink import SparkTableSink

DATA_THAT_MAY_BE_LEFT_OUT = {"save(path)"}
PARAMETERS = [
    pytest.param(name, parameter, id=f"{name}({parameter.name})")
    for name, function in {**vars(SparkTableSink), **vars(SparkSink), "map_flow": map_flow}.items()
    if inspect.isfunction(function) and not name.startswith("_")
    for parameter in inspect.signature(function).parameters.values()
    if parameter.name != "self" and parameter.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
]


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
def test_data_by_position_or_by_name_and_options_by_name_only(name: str, parameter: Parameter) -> None:
    option = parameter.default is not Parameter.empty and f"{name}({parameter.name})" not in DATA_THAT_MAY_BE_LEFT_OUT
    assert parameter.kind is (Parameter.KEYWORD_ONLY if option else Parameter.POSITIONAL_OR_KEYWORD)


def test_what_they_are() -> None:
    assert len(PARAMETERS) > 12
