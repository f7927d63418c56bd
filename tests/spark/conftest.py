"""One Spark session for all tests."""

from __future__ import annotations

from typing import Any

import pytest

from reactive_runtime.spark.session import BRIEF, session


@pytest.fixture(scope="session")
def spark() -> Any:
    made = session("local[2]", {**BRIEF, "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"})
    yield made
    made.stop()
