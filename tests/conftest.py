"""What every test shares: nothing may be dropped behind its back, and no thread may be left running."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import released
from hypothesis import settings

from reactive_runtime import hooks
from reactive_runtime.debugging import ownership_checked

# The same examples in every run: what fails here fails everywhere. HYPOTHESIS_PROFILE=random looks for new ones.
settings.register_profile("same", derandomize=True, database=None, deadline=None)  # no test asserts a time
settings.register_profile("random", derandomize=False, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

os.environ.pop("PYTEST_ADDOPTS", None)  # it is for this run, and not for those that tests start


TOGETHER = ("stress", "spark", "jvm", "interop", "oracle", "docs")
"""Folders whose tests share something dear, a JVM, a Spark session or the built site. They come first, since they take
long; and where tests run side by side, those of a folder run on one worker."""

APART = {
    "test_cluster": "of a server",
    "test_connect": "of a server",
    "test_enrich": "killed",
    "test_kafka": "connectors",
    "test_kills": "killed",
    "test_lakehouse": "connectors",
    "test_sinks": "killed",
}
"""Of the folder spark: what mostly waits for sessions and processes of its own, in groups beside the others."""


MADE_ONCE = ("test_browser", "test_pytest_variants", "test_stream_publisher", "test_wheel")
"""Modules, of other folders, that make something dear for all of their tests: each on one worker."""


@pytest.hookimpl(tryfirst=True)  # before xdist looks for the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        folder = Path(item.path).relative_to(Path(__file__).parent).parts[0]
        if folder not in TOGETHER:
            if item.path.stem in MADE_ONCE:
                item.add_marker(pytest.mark.xdist_group(item.path.stem))
            return len(TOGETHER)
        apart = APART.get(item.path.stem) if folder == "spark" else None
        item.add_marker(pytest.mark.xdist_group(f"{folder}, {apart}" if apart else folder))
        return TOGETHER.index(folder)

    items.sort(key=rank)  # stable


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
def no_thread_left() -> Iterator[None]:
    """Every thread that the test started has ended by its end, but those of the shared clock, which stay."""
    before = set(threading.enumerate())
    yield
    begun = [thread for thread in threading.enumerate() if thread not in before and thread.is_alive()]
    left = [thread for thread in begun if not thread.name.startswith("reactive-timers")]
    assert not left, left
