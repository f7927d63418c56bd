"""What every test shares: nothing may be dropped behind its back, and no thread may be left running."""

from __future__ import annotations

import gc
import math
import os
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import released
from hypothesis import settings

from reactive_runtime import hooks
from reactive_runtime._core.drains import pace
from reactive_runtime.debugging import ownership_checked

# The same examples in every run: what fails here fails everywhere. HYPOTHESIS_PROFILE=random looks for new ones.
settings.register_profile("same", derandomize=True, database=None, deadline=None)  # no test asserts a time
settings.register_profile("random", derandomize=False, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

os.environ.pop("PYTEST_ADDOPTS", None)  # it is for this run, and not for those that tests start


TOGETHER = ("stress", "spark", "jvm", "interop", "oracle", "docs")
"""Folders whose tests share something dear, a JVM, a Spark session or the built site: where tests run side by side,
those of a folder run on one worker."""

APART = {
    "test_agreement": "agreement",
    "test_bad_input": "nights",
    "test_cluster": "of a server",
    "test_command": "commands",
    "test_connect": "of a server",
    "test_enrich": "killed",
    "test_follow": "verdicts",
    "test_incremental": "nights",
    "test_kafka": "connectors",
    "test_kept_nights": "nights",
    "test_kept_nights_in_lakes": "connectors",
    "test_kills": "killed",
    "test_lakehouse": "connectors",
    "test_long_subscriptions": "nights",
    "test_lost_executors": "of a server",
    "test_plans": "verdicts",
    "test_regressions": "verdicts",
    "test_sinks": "killed",
    "test_traces": "verdicts",
}
"""Of these folders: what has sessions and processes of its own, or is as much as another session is worth."""

MADE_ONCE = (
    "test_adapter_kit",
    "test_browser",
    "test_kafka",
    "test_postgres",
    "test_pytest_variants",
    "test_redis_streams",
    "test_service",
    "test_stream_publisher",
    "test_wheel",
)
"""Modules, of other folders, that make something dear for all of their tests: each on one worker."""

LONG = (
    "stress, commands",
    "spark",
    "spark, verdicts",
    "spark, nights",
    "docs",
    "stress",
    "spark, agreement",
    "spark, of a server",
    "jvm",
    "spark, killed",
)
"""Groups that take longest, the longest first: they begin first, so that none is left for the end of a run."""


@cache
def group_of(file: Path) -> str:
    """The group of its tests, which run on the same worker; empty where each may run anywhere."""
    folder, name = file.relative_to(Path(__file__).parent).parts[0], file.stem
    if folder not in TOGETHER:
        return name if name in MADE_ONCE else ""
    return f"{folder}, {APART[name]}" if name in APART else folder


@pytest.hookimpl(tryfirst=True)  # before xdist looks for the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        if not (group := group_of(item.path)):
            return len(LONG) + 1
        item.add_marker(pytest.mark.xdist_group(group))
        return LONG.index(group) if group in LONG else len(LONG)

    items.sort(key=rank)  # stable


@pytest.hookimpl(wrapper=True, trylast=True)  # inside of pytest's own, which adds the handlers
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Have `caplog` and reports show the log as lines, also where a session of Spark has run in this process.

    pytest adds its handlers to each logger that does not propagate, and a logger of PySpark sets a formatter for JSON.
    """
    plain: Any = item.config.pluginmanager.get_plugin("logging-plugin")
    for handler in (plain.caplog_handler, plain.report_handler):
        handler.setFormatter(plain.formatter)
    return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Groups in the order above; and what a worker has done is not gone through once more after each test.

    Without the latter 20,000 tests take 10 s more of processor time, and that grows with their square.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

    class Scheduling(LoadGroupScheduling):  # type: ignore[misc]
        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            super().mark_test_complete(node, item_index, duration)
            units = self.assigned_work[node]
            unit = self._split_scope(self.registered_collections[node][item_index])
            if all(units[unit].values()):
                del units[unit]

        def remove_node(self, node: Any) -> str | None:
            """A test that has ended its worker does not end the next one."""
            crashed: str | None = super().remove_node(node)
            if crashed is not None and (unit := self.workqueue.get(self._split_scope(crashed))):
                unit[crashed] = True
                if all(unit.values()):
                    del self.workqueue[self._split_scope(crashed)]
            return crashed

    config.option.loadscopereorder = False
    return Scheduling(config, log)


@pytest.fixture
def dropped() -> Iterator[list[hooks.Dropped]]:
    """What went to the hook; a test that asks for it says what it expects there."""
    with hooks.captured() as drops:
        yield drops


@pytest.fixture(autouse=True)
def nothing_vanishes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Errors that reach the hook in a test that does not ask for `dropped` fail it."""
    if "dropped" in request.fixturenames:
        yield
        return
    with hooks.captured() as drops:
        yield
    errors = [drop for drop in drops if drop.error is not None]
    assert not errors, f"went to the hook, and was not looked at: {errors}"


@pytest.fixture(autouse=True)
def left_groups_are_released() -> Iterator[None]:
    """A group that a test has left in a cycle is dropped before the next one, whose hook would get what it holds."""
    yield
    if released.left():
        gc.collect()
        released.settle()


OWNED = ("connections", "exits", "models", "operators")
"""Folders whose tests run with `ownership_checked`."""


@pytest.fixture(scope="module", autouse=True)
def what_was_there_stays() -> None:
    """What 15,000 tests are made of, and their modules: a test that collects garbage need not go through all that."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def calls_by_others(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """The calls of the core's methods by threads that may not make them, in tests of the folders above."""
    explores = any(name.startswith("explore") for name in vars(request.module))
    # The explorer stops threads anywhere in the package, and so inside of the checks. And a chain of a thousand makes
    # four million calls, of methods that the shorter ones call too.
    if (
        explores
        or request.path.stem == "test_depth"
        or request.path.relative_to(Path(__file__).parent).parts[0] not in OWNED
    ):
        yield []
        return
    with ownership_checked() as wrong:
        yield wrong


@pytest.fixture(autouse=True)
def only_the_owner_calls(calls_by_others: list[str]) -> Iterator[None]:
    """No thread has called what is for the owner of a drain, or for one that holds a lock."""
    before = len(calls_by_others)
    yield
    assert calls_by_others[before:] == []


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No flow gives its thread to another task since a slow machine has taken its 10 ms.

    For tests of a pool's only thread that say which flow keeps it.
    """
    monkeypatch.setattr(pace, "QUANTUM", math.inf)


@pytest.fixture
def no_thread_left() -> Iterator[None]:
    """Every thread that the test started ends with it, but those of the shared clock and of telemetry.

    One that is ending may have had no turn yet, on a busy machine.
    """
    before = set(threading.enumerate())
    yield
    begun = [thread for thread in threading.enumerate() if thread not in before]
    left = [thread for thread in begun if not thread.name.startswith(("reactive-timers", "reactive-telemetry"))]
    over = time.monotonic() + 20
    for thread in left:
        thread.join(max(0.0, over - time.monotonic()))
    left = [thread for thread in left if thread.is_alive()]
    assert not left, left
