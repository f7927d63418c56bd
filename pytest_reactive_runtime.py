"""The plugin of pytest: `@pytest.mark.explore`, under which a test runs under many schedules.

The test's function starts threads, or submits to pools; every schedule runs it anew, as the first of the threads.
Its fixtures of function scope are set up and torn down for each schedule; those of a wider scope, and pytest's own,
once.
A schedule that fails is written to `__schedules__/` beside the test, and tried first the next time; when the test
holds, it is taken away.

Where the marker could do nothing, it is refused. The other hooks refuse what a verification of the kit can't be
combined with, where pytest would run no check of it.

`--explore` does that with all tests of a suite that start threads: `reactive_runtime.explore._suite_plugin`.

When pytest-timeout ends a test, its dump of stacks is followed by the live flows, each with the cause of its stall.

pytest imports this module in every run where reactive_runtime is installed. So it is no part of the package, whose
import would come with it, and imports the explorer when the first marked test runs.
"""

from __future__ import annotations

import _thread
import inspect
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

__all__ = [
    "pytest_addoption",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_pycollect_makeitem",
    "pytest_pyfunc_call",
    "pytest_runtest_setup",
]

KIT = "reactive_runtime.tck._verification"
"""Not imported here: where no test module has imported it, there is no verification."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options that explore a whole suite."""
    group = parser.getgroup("explore", "schedules of threads (reactive_runtime.explore)")
    group.addoption(
        "--explore", action="store_true", help="run each test that starts threads under many schedules, in the end"
    )
    group.addoption("--explore-seconds", type=float, default=60.0, help="for all tests together (%(default)g)")
    group.addoption("--explore-schedules", type=int, default=500, help="for a test, at most (%(default)d)")
    group.addoption("--explore-seed", type=int, default=0, help="of the schedules (%(default)d)")
    group.addoption(
        "--explore-since", default="HEAD", metavar="REV", help="tests of files that git sees changed since come first"
    )
    group.addoption(
        "--explore-record",
        type=Path,
        metavar="FILE",
        help="append the schedules of tests that fail; without --explore, each test runs under one schedule, any",
    )
    group.addoption(
        "--explore-replay", type=Path, metavar="FILE", help="run the tests of a record, each under its schedule"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and begin to watch a suite that is to be explored."""
    config.addinivalue_line(
        "markers",
        "explore(schedules=2000, seed=0, strategy='portfolio', points='shared', ...):"
        " run the test under many schedules of its threads (reactive_runtime.explore)",
    )
    if any(config.getoption(name, None) for name in ("explore", "explore_record", "explore_replay")):
        from reactive_runtime.explore._suite_plugin import Suite

        config.pluginmanager.register(Suite(config), "reactive_runtime_suite")
    timeouts: Any = sys.modules.get("pytest_timeout")
    dump = getattr(timeouts, "dump_stacks", None)
    if callable(dump) and not hasattr(dump, "__wrapped__"):  # it has no hook for what a dump says
        timeouts.dump_stacks = _with_flows(dump)


def _with_flows(dump: Callable[..., object]) -> Callable[..., object]:
    """The dump of stacks of pytest-timeout, and behind it the flows that live, if there are any."""

    @wraps(dump)
    def dump_stacks(terminal: Any, *more: Any, **options: Any) -> object:
        result = dump(terminal, *more, **options)
        if "reactive_runtime._flow" in sys.modules:
            flows = _flows()
            if flows:
                terminal.sep("~", title="Live flows (reactive_runtime)")
                terminal.write(flows + "\n")
        return result

    return dump_stacks


def _flows() -> str:
    """The live flows as text. A thread of its own looks, so that it sees this one too, which a test may hold up."""
    found: list[str] = []
    done = _thread.allocate_lock()
    done.acquire()

    def look() -> None:
        try:
            from reactive_runtime.live import snapshot

            snapshot_now = snapshot()
            found.extend([str(snapshot_now)] if snapshot_now.flows else [])
        finally:
            done.release()

    _thread.start_new_thread(look, ())  # takes no lock of `threading`, which the interrupted code may hold
    done.acquire(timeout=10)
    return "".join(found)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> None:
    """Refuse a verification with a constructor: pytest would warn, and run none of its checks."""
    kit: Any = sys.modules.get(KIT)
    # Of the type, since to ask some objects for their class raises.
    if kit is None or not issubclass(type(obj), type) or not collector.istestclass(obj, name):
        return
    cls: Any = obj
    if not issubclass(cls, kit.Verification) or not getattr(cls, "__test__", True):
        return
    if own := [method for method in ("__init__", "__new__") if getattr(cls, method) is not getattr(object, method)]:
        raise collector.CollectError(
            f"{cls.__qualname__} has {own[0]}, and pytest runs no check of a class that has: set up in setup_method,"
            " in an autouse fixture of the class, or by class attributes"
        )


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Refuse parameters for a check, which takes none."""
    if not _is_check(metafunc.function):
        return
    for mark in metafunc.definition.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
        if without := [name for name in names if name not in metafunc.fixturenames]:
            pytest.fail(
                f"{metafunc.definition.nodeid}: parametrize gives {', '.join(without)}, and a check takes no argument:"
                " give params to an autouse fixture of the class, which sets an attribute",
                pytrace=False,
            )


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Explore a marked test, instead of calling it once."""
    marker = pyfuncitem.get_closest_marker("explore")
    if marker is None:
        return None
    if _is_check(pyfuncitem.function):
        pytest.fail(
            "a check of the kit is not explored, since it waits in real time: take the marker explore away from the"
            " verification; reactive_runtime.explore.explore_publisher explores a publisher",
            pytrace=False,
        )
    from reactive_runtime.explore._pytest_plugin import explore_test

    explore_test(pyfuncitem, marker)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse the marker where what runs the test is not a call of its function."""
    if item.get_closest_marker("explore") is None:
        return
    function = getattr(item, "function", None)
    unittest: Any = sys.modules.get("unittest")
    cls = getattr(item, "cls", None)
    if unittest is not None and isinstance(cls, type) and issubclass(cls, unittest.TestCase):
        why = "is a method of a unittest.TestCase, which calls it in its own way: make it a function, or a method of a"
        why += " class without a base"
    elif inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        why = "is a coroutine function, and the explorer orders threads: make it a function that starts threads"
    elif inspect.isgeneratorfunction(function):
        why = "is a generator function, and nothing goes through it: make it a function that starts threads"
    elif not isinstance(item, pytest.Function):
        why = "is no test function: the explorer runs functions"
    else:
        return
    pytest.fail(f"{item.nodeid} has the marker explore, and {why}; or take the marker away", pytrace=False)


def _is_check(function: object) -> bool:
    kit: Any = sys.modules.get(KIT)
    return kit is not None and isinstance(getattr(function, "check", None), kit.Check)
