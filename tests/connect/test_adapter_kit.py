"""Our adapters under the kit for adapters, with real servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from connect.adapters import ADAPTERS, Described
from reactive_runtime.tck import Check
from reactive_runtime.tck.adapters import Adapter, AdapterVerification

SETTLED = ("A.2", "A.3", "A.4", "A.5", "A.6")
"""The checks of acknowledgements: "sse" has none, and "sse_kept" is the same adapter with those of its reader."""

CHECKS = [
    pytest.param(name, check, id=f"{name}-{check.rule}")
    for name in sorted(ADAPTERS)
    for check in AdapterVerification.checks()
    if not name.startswith("sse") or (check.rule in SETTLED) == (name == "sse_kept")
]


@pytest.fixture(autouse=True)
def nothing_vanishes() -> None:
    """The kit breaks connections: elements that are settled then fail, and their errors go to the hook."""


@pytest.fixture(scope="module")
def create(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Adapter]]:
    with ADAPTERS[request.param](tmp_path_factory.mktemp(request.param)) as create:
        yield create


@pytest.mark.parametrize(("create", "check"), CHECKS, indirect=["create"])
def test_an_adapter_passes_each_check(create: Callable[[], Adapter], check: Check) -> None:
    outcome = Described(create).outcome(check)
    assert (outcome.status, outcome.why) == ("passed", "")
