"""`@pytest.mark.explore`: the test runs under many schedules.

The test's function starts threads, or submits to pools; every schedule runs it anew, as the first of the threads. What
fixtures gave it is the same each time: make what threads share inside of the test. A schedule that fails is written to
`__schedules__/` beside the test, and tried first the next time; when the test holds, it is taken away.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from reactive_runtime.errors import ExploreError
from reactive_runtime.explore import Result, Scenario, explore, replay
from reactive_runtime.explore.command import saved, token_in

__all__ = ["pytest_configure", "pytest_pyfunc_call"]


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line(
        "markers",
        "explore(schedules=2000, seed=0, strategy='portfolio', points='shared', ...):"
        " run the test under many schedules of its threads (reactive_runtime.explore)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Explore a marked test, instead of calling it once."""
    marker = pyfuncitem.get_closest_marker("explore")
    if marker is None:
        return None
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
        return True
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
