"""Loggers of PySpark do not change the log that other tests look at."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

logger = pytest.importorskip("pyspark.logger").PySparkLogger.getLogger(__name__)
PROPAGATES = logger.propagate


@pytest.fixture(autouse=True, scope="module")
def apart() -> Iterator[None]:
    """As in the loggers that PySpark makes for its errors: pytest adds its handlers to this one too."""
    logger.propagate = False
    yield
    logger.propagate = PROPAGATES


def test_caplog_has_lines_beside_a_logger_that_makes_json(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("of a test").error("a\\b")
    assert caplog.text.endswith("a\\b\n")
    assert not caplog.text.startswith("{")
