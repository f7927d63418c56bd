"""A test under `@pytest.mark.explore` runs under many schedules. Imported when the first such test runs.

The hooks are in `pytest_reactive_runtime`, outside of this package: pytest imports them in every run, and they import
nothing of it, so a run without the marker costs nothing.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from reactive_runtime.errors import ExploreError
from reactive_runtime.explore import Result, Scenario, explore, replay
from reactive_runtime.explore.explore_command import saved, token_in

__all__ = ["explore_test"]


def explore_test(pyfuncitem: pytest.Function, marker: pytest.Mark) -> None:
    """Explore a marked test. Fails it under the first schedule that fails, and writes that schedule to its file."""
    if marker.args:
        raise ValueError("the marker explore takes keywords only, those of reactive_runtime.explore.explore")
    function = pyfuncitem.obj
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    def test(_: object) -> None:
        function(**arguments)

    scenario: Scenario[Any] = Scenario(lambda: None, {"test": [test]}, name=pyfuncitem.name, parts=[function])
    file = _file(pyfuncitem)
    before = _again(scenario, file)
    if before is not None and before.failure is not None:
        pytest.fail(f"fails again, under the schedule of {file}:\n{_why(before)}", pytrace=False)
    result = explore(scenario, **marker.kwargs)
    if result.failure is None:
        file.unlink(missing_ok=True)
        if not result.holds:
            pytest.fail(str(result), pytrace=False)
        return
    if isinstance(error := result.failure.error, pytest.skip.Exception | pytest.fail.Exception):
        raise error
    saved(result, file)
    pytest.fail(f"fails under a schedule that was written to {file}:\n{_why(result)}", pytrace=False)


def _again(scenario: Scenario[Any], file: Path) -> Result | None:
    """The schedule that failed last time; None where there is none, or the source is another by now."""
    if not file.exists():
        return None
    try:
        return replay(scenario, token_in(file))
    except ExploreError:
        return None


def _why(result: Result) -> str:
    assert result.failure is not None
    return f"{result.failure.message}\n\n{result.failure.diagram()}"


def _file(item: pytest.Function) -> Path:
    name = re.sub(r"[^\w.-]+", "_", f"{item.path.stem}.{item.name}")
    return item.path.parent / "__schedules__" / f"{name}.schedule"
