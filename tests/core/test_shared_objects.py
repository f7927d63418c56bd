"""What all threads look at, for each element or turn of a drain, does not keep them in each other's way.

Without a GIL an object counts its references, so that one which all threads read goes from core to core, once for each
read; classes, functions and modules are exempt. How long that takes depends on the machine: what is used is looked at.
"""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import pytest

import reactive_runtime._core
import reactive_runtime._operators
from reactive_runtime import Flow
from reactive_runtime._core.drains import inner_subscription, trampoline
from reactive_runtime._core.failures import exits
from reactive_runtime._core.fusion import fuse, step
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.prefix import Prefix

MODULES = [
    importlib.import_module(found.name)
    for package in (reactive_runtime._core, reactive_runtime._operators)
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
]


def compared(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The constants of a module that it compares something with by `is`, and what they are."""
    nodes = list(ast.walk(ast.parse(inspect.getsource(module))))
    state = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    for node in nodes:
        if isinstance(node, ast.Compare) and any(isinstance(item, ast.Is | ast.IsNot) for item in node.ops):
            for side in (node.left, *node.comparators):
                if isinstance(side, ast.Name) and side.id in vars(module) and side.id not in state:
                    yield side.id, vars(module)[side.id]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.removeprefix("reactive_runtime."))
def test_what_elements_are_compared_with_is_exempt_from_counting(module: ModuleType) -> None:
    assert [name for name, value in compared(module) if not isinstance(value, type | FunctionType)] == []


def test_comparisons_are_found() -> None:
    assert {"PENDING"} <= {name for name, _ in compared(fuse)}
    assert {"END", "NOTHING", "PENDING"} <= {name for name, _ in compared(inner_subscription)}


SENTINELS = sorted(
    {value for module in MODULES for name, value in compared(module) if type(value) is type(fuse.PENDING)}, key=repr
)


@pytest.mark.parametrize("sentinel", SENTINELS, ids=repr)
def test_a_sentinel_is_itself_also_in_another_process(sentinel: type) -> None:
    """A flow that travels, in what `map_flow` calls, has sentinels with it."""
    assert repr(sentinel) == sentinel.__name__
    assert pickle.loads(pickle.dumps(sentinel)) is sentinel
    assert copy.deepcopy(sentinel) is sentinel


def test_sentinels_are_found() -> None:
    assert {fuse.PENDING, inner_subscription.END, inner_subscription.NOTHING, step.STOP} <= set(SENTINELS)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.removeprefix("reactive_runtime."))
def test_what_a_thread_knows_of_itself_takes_no_lock_of_all_threads(module: ModuleType) -> None:
    """Where a class derives from `threading.local`, CPython 3.13 looks at its bases, under one lock of all threads."""
    derived = [name for name, value in vars(module).items() if issubclass(type(value), primitives.ThreadLocal)]
    assert [name for name in derived if type(vars(module)[name]) is not primitives.ThreadLocal] == []


def test_thread_locals_are_found() -> None:
    assert all(type(module.here) is primitives.ThreadLocal for module in (exits, trampoline))


def test_a_flow_of_several_sources_travels() -> None:
    """The list that its longer flows share has a lock, which does not travel."""
    flow = Flow.just(1).concat_with(Flow.just(2)).concat_with(Flow.just(3))
    assert list(copy.deepcopy(flow)) == [1, 2, 3]
    sources = pickle.loads(pickle.dumps(Prefix([1, 2]).and_then([3])))
    assert list(sources.and_then([4])) == [1, 2, 3, 4]
