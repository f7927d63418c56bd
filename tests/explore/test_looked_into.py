"""The code that a scenario's objects come from is looked into, in whatever package it is."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reactive_runtime.explore import _session as session
from reactive_runtime.explore import explore, replay

LIBRARY = """
import functools
total = 0

class Counter:
    def __init__(self):
        self.count = 0
    def increment(self):
        self.count += 1

def increment():
    global total
    total += 1

def counted(function):
    count = 0
    @functools.wraps(function)
    def wrapper():
        nonlocal count
        count += 1
        function()
        return count
    return wrapper
"""
APP = """
import functools
import {library}
from {library} import Counter

def make():
    return Counter()

def increments(counter):
    counter.increment()

counter = Counter()

class Named:
    def __init__(self): self.counter = Counter()
    def actor_a(self): self.counter.increment()
    actor_b = actor_a
    def at_end(self): assert self.counter.count == 2

class OfTheModule(Named):
    def __init__(self): self.counter = {library}.Counter()

class Handed(Named):
    def __init__(self, kind=None): self.counter = MADE[0]()

class Function:
    def __init__(self): {library}.total = 0
    def actor_a(self): {library}.increment()
    actor_b = actor_a
    def at_end(self): assert {library}.total == 2

class Global:
    def __init__(self): counter.count = 0
    def actor_a(self): increments(counter)
    actor_b = actor_a
    def at_end(self): assert counter.count == 2

class Wrapped:
    def __init__(self): self.call = MADE[1](self.nothing)
    def nothing(self): pass
    def actor_a(self): self.call()
    actor_b = actor_a
    def at_end(self): assert self.call() == 3

MADE = [Counter, {library}.counted]
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A module, and the class of its scenarios in another top-level package."""
    name = "library_" + re.sub(r"\W", "_", request.node.name)
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text(LIBRARY)
    (tmp_path / f"app_of_{name}.py").write_text(APP.format(library=name))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield importlib.import_module(f"app_of_{name}")
    for module in (name, f"app_of_{name}"):
        del sys.modules[module]


@pytest.mark.parametrize("scenario", ["Named", "OfTheModule", "Handed", "Function", "Global", "Wrapped"])
def test_a_lost_update_in_another_package_is_found(scenario: str, app: Any) -> None:
    found = explore(getattr(app, scenario))
    assert found.failure is not None, found.verdict
    again = replay(getattr(app, scenario), found.failure.token).failure
    assert again is not None
    assert again.schedule == found.failure.schedule


def test_what_stands_among_modules_and_is_none_is_left_out_and_an_error_leaves_nothing_locked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Strange(ModuleType):  # as packages have it that import on demand
        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    stranger = Strange("stranger")
    del stranger.__dict__["__doc__"], stranger.__dict__["__spec__"]
    monkeypatch.setitem(sys.modules, "stranger", stranger)

    class Ours:
        __module__ = "stranger"

        def __init__(self) -> None:
            self.count = 0

    class Counted:
        def __init__(self) -> None:
            self.item = Ours()

        def actor_a(self) -> None:
            self.item.count += 1

        actor_b = actor_a

    assert explore(Counted).failure is None

    def failing(*_: object) -> Any:
        raise MemoryError("no more")

    with monkeypatch.context() as broken:
        broken.setattr(session, "parts_of_state", failing)
        broken.setattr(session.Session, "_look_into", failing)
        with pytest.raises(MemoryError):
            explore(Counted)
    assert explore(Counted).failure is None


REPLACED = """
import sys
import threading
LOCK = threading.Lock()
total = 0

class Counter:
    def __init__(self): self.count = 0
    def increment(self): self.count += 1

def increment():
    global total
    total += 1

def increment_locked():
    with LOCK: increment()

def reset():
    global total
    total = 0

class Face:
    Counter, LOCK = Counter, LOCK
    increment, increment_locked, reset = map(staticmethod, (increment, increment_locked, reset))
    def __init__(self): self.count, self.counter = 0, Counter()
    @property
    def total(self): return total

class Within:
    def __init__(self): reset()
    def actor_a(self): increment()
    actor_b = actor_a
    def at_end(self): assert total == 2

class WithinLocked(Within):
    def actor_a(self): increment_locked()
    actor_b = actor_a

Face.Within, Face.WithinLocked = Within, WithinLocked
sys.modules[__name__] = Face()
"""
APP_OF_REPLACED = """
import sys
import {library}
from {library} import Counter, Within, WithinLocked

class OfAClass:
    def __init__(self): self.counter = Counter()
    def actor_a(self): self.counter.increment()
    actor_b = actor_a
    def at_end(self): assert self.counter.count == 2

class OfAFunction:
    def __init__(self): {library}.reset()
    def actor_a(self): {library}.increment()
    actor_b = actor_a
    def at_end(self): assert {library}.total == 2

class OfAFunctionLocked(OfAFunction):
    def actor_a(self): {library}.increment_locked()
    actor_b = actor_a

class OfAnObject:
    def __init__(self): {library}.counter.count = 0
    def actor_a(self): {library}.counter.increment()
    actor_b = actor_a
    def at_end(self): assert {library}.counter.count == 2

class OfItself:
    def __init__(self): {library}.count = 0
    def actor_a(self): {library}.count += 1
    def actor_b(self): sys.modules["{library}"].count += 1
    def at_end(self): assert {library}.count == 2
"""


@pytest.mark.parametrize(
    "scenario",
    ["OfAClass", "OfAFunction", "OfAFunctionLocked", "OfAnObject", "OfItself", "Within", "WithinLocked"],
)
def test_what_a_module_has_put_in_its_own_place_is_looked_into(
    scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"replaced_{scenario.lower()}"
    (tmp_path / f"{name}.py").write_text(REPLACED)
    (tmp_path / f"app_of_{name}.py").write_text(APP_OF_REPLACED.format(library=name))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    result = explore(getattr(importlib.import_module(f"app_of_{name}"), scenario), strategy="dpor")
    assert (str(result.verdict) == "exhausted") == scenario.endswith("Locked"), result
    for module in (name, f"app_of_{name}"):
        del sys.modules[module]


EDITED = """
class Counts:
    def __init__(self): self.count = 0
    def actor_a(self):
        self.count += 1
    actor_b = actor_a
    def at_end(self): assert self.count == 2, "lost"
"""


@pytest.mark.parametrize("edited", ["self.total = 1", "self.count += 2", "pass"])
def test_a_file_that_was_edited_is_explored_as_it_was_loaded(
    edited: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "edited_since.py"
    file.write_text(EDITED)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    importlib.invalidate_caches()
    module = importlib.import_module(file.stem)
    file.write_text(EDITED.replace("self.count += 1", edited))
    result = explore(module.Counts)
    assert result.failure is not None
    assert result.failure.message == "lost"
    assert result.notes == [
        f"{file} was edited since it was loaded: instructions are points in what was; load it again"
    ]
    file.write_text(EDITED.replace("self.count += 1", "self.count = self.count + 1"))
    importlib.reload(module)
    result = explore(module.Counts)
    assert result.failure is not None
    assert result.notes == []
    del sys.modules[file.stem]
