"""One JVM for all; where there is no Maven or JDK, the group is skipped and says so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from oracle.theirs import Java, missing


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason, here = missing(), str(Path(__file__).parent) + os.sep
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.timeout(900))  # the first one waits for Maven to fetch what is needed
            if reason and "java" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def java() -> Iterator[Java]:
    with Java() as java:
        yield java
