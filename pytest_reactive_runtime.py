"""The plugin of pytest: `@pytest.mark.explore`, under which a test runs under many schedules.

The test's function starts threads, or submits to pools; every schedule runs it anew, as the first of the threads. What
fixtures gave it is the same each time: make what threads share inside of the test. A schedule that fails is written to
`__schedules__/` beside the test, and tried first the next time; when the test holds, it is taken away.

pytest imports this module in every run where reactive_runtime is installed. So it is no part of the package, whose
import would come with it, and imports the explorer when the first marked test runs.
"""

from __future__ import annotations

import pytest

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
    from reactive_runtime.explore.pytest_plugin import explore_test

    explore_test(pyfuncitem, marker)
    return True
