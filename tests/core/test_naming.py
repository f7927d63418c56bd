"""Errors name what was called: a public method, function or class, also where it stands on another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from naming import SKIPPED, Called, calls, wrong_calls
from operators.catalogue import CASES, SOURCES, Case, Place

from reactive_runtime import Flow
from reactive_runtime.errors import ReactiveError
from reactive_runtime.executors import VirtualTimeExecutor

CALLS = [called for called in calls() if called.parameters]
WITH_SPARK = {"from_dataframe", "from_stream", "to_spark"}
EACH = [pytest.param(item, marks=[pytest.mark.spark] * (item.name in WITH_SPARK), id=str(item)) for item in CALLS]


@pytest.mark.parametrize("called", [called for called in CALLS if called.name not in SKIPPED], ids=str)
def test_the_valid_arguments_are_valid(called: Called) -> None:
    """Else a wrong one would be refused for another's sake."""
    if called.name in ("transform", "with_context"):
        with pytest.raises(TypeError, match=r"^(transform|with_context): .* must return a (Context)?Flow"):
            called.call()  # the function is called
        return
    made = called.call()
    shutdown = getattr(made, "shutdown", None)
    if shutdown is not None:
        shutdown()


@pytest.mark.parametrize("called", EACH)
def test_a_wrong_argument_names_what_was_called(called: Called) -> None:
    for parameter, value, error in wrong_calls(called):
        if called.name in ("transform", "with_context") and value is int:
            continue  # the user's function itself raises
        text = str(error)
        assert text.startswith((f"{called.name}:", f"{called.name}(")), f"{parameter}={value!r}: {text}"
        assert isinstance(error, TypeError | ValueError | ReactiveError), f"{parameter}={value!r}: {error!r}"


def test_the_wrong_arguments_are_refused_somewhere() -> None:
    refused = {called.name for called in CALLS for _ in wrong_calls(called)}
    assert len(refused) > len(CALLS) * 0.8, sorted({called.name for called in CALLS} - refused)


DRAWN_OTHERWISE = {"transform", "publish_on", "subscribe_on"}
"""What stands in the flow is what `transform` has called; a boundary is a line and a letter."""


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name not in DRAWN_OTHERWISE], ids=lambda case: case.name
)
def test_a_flow_shows_what_was_called(case: Case) -> None:
    with ThreadPoolExecutor(1) as pool:
        shown = case.apply(Flow.range(3), Place(pool, VirtualTimeExecutor())).explain()
    assert case.name.partition(" ")[0] in shown


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_shows_what_was_called(name: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        shown = SOURCES[name].make(Place(pool, VirtualTimeExecutor())).explain()
    assert name in shown


def test_an_error_of_for_each_names_for_each() -> None:
    def broken(n: int) -> None:
        raise OSError("broken")

    with pytest.raises(OSError, match="broken") as caught:
        Flow.range(3).for_each(broken)
    assert caught.value.__notes__[0].startswith("in for_each(broken), assembled at ")


def test_a_group_too_many_names_its_key_and_the_limit() -> None:
    flow = Flow.just(*"ab").group_by(str, groups=1).flat_map(lambda group: group[1])
    with pytest.raises(
        OverflowError,
        match=r"^group_by\(str\): the new key 'b' needs a group, and as many are open as may be .groups=1",
    ):
        flow.block()
