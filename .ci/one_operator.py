"""A plugin of pytest that keeps the tests of one operator: OPERATOR=map pytest -p one_operator.

Tests that go through all operators stay too: a place that lacks the operator fails there.
"""

from __future__ import annotations

import os
import re

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that name neither the operator nor all of them."""
    named = re.compile(rf"\b{re.escape(os.environ['OPERATOR'])}\b|every|pipeline")
    config.hook.pytest_deselected(items=[item for item in items if not named.search(item.nodeid)])
    items[:] = [item for item in items if named.search(item.nodeid)]
