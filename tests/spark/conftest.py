"""One Spark session for all tests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from reactive_runtime.judging._stores import FewFiles
from reactive_runtime.spark._session.spark_session import BRIEF, session
from reactive_runtime.spark._verdict import judging

SETTINGS = {"spark.sql.shuffle.partitions": "2", "spark.sql.execution.arrow.maxRecordsPerBatch": "10000"}
"""What may be set while a session runs, and what each test begins with."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    # A folder of its own for tables: what a session that was killed has left there is an error of the next one.
    tables = {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("tables"))}
    # And one thread that collects garbage, which takes no core from the tests beside.
    java = {"spark.driver.extraJavaOptions": f"{BRIEF['spark.driver.extraJavaOptions']} -XX:+UseSerialGC"}
    made = session("local[2]", {**SETTINGS, **tables, **java, "spark.driver.memory": "2g"})
    yield made
    made.stop()


@pytest.fixture
def a_zone_with_summer_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Where what is local is not UTC, and some hours are there twice, others not at all."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture(autouse=True)
def the_settings_of_the_session(request: pytest.FixtureRequest) -> None:
    """A test, or a command that it calls, may set others: `session` gives the one there is with the new settings."""
    if "spark" in request.fixturenames:
        conf = request.getfixturevalue("spark").conf
        for key, value in SETTINGS.items():
            conf.set(key, value)


@pytest.fixture(params=["driver", "tasks"])
def planner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The driver, or tasks."""
    if request.param == "tasks":
        monkeypatch.setattr(judging, "FEW", FewFiles(-1, -1))
    return str(request.param)
