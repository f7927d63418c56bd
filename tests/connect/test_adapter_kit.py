"""Our adapters under the kit for adapters, with real servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from connect.adapters import ADAPTERS, Described
from reactive_runtime.tck import Check
from reactive_runtime.tck.adapters import Adapter, AdapterVerification

NO_ACKNOWLEDGEMENT = "the source has no acknowledgement: its server does not hear which messages are handled"

NOT_LOOKED_AT = {("sse", rule): NO_ACKNOWLEDGEMENT for rule in ("A.2", "A.3", "A.4", "A.5", "A.6")}
"""Whatever else is not looked at fails the test."""


@pytest.fixture(autouse=True)
def nothing_vanishes() -> None:
    """The kit breaks connections: elements that are settled then fail, and their errors go to the hook."""


@pytest.fixture(scope="module", params=sorted(ADAPTERS))
def described(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Callable[[], Adapter]]]:
    with ADAPTERS[request.param](tmp_path_factory.mktemp(request.param)) as create:
        yield request.param, create


@pytest.mark.parametrize("check", AdapterVerification.checks(), ids=lambda check: check.rule)
def test_an_adapter_passes_each_check(described: tuple[str, Callable[[], Adapter]], check: Check) -> None:
    name, create = described
    outcome = Described(create).outcome(check)
    why = NOT_LOOKED_AT.get((name, check.rule), "")
    assert (outcome.status, outcome.why) == ("skipped" if why else "passed", why)
