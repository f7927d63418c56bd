"""The code that a scenario's objects come from is looked into, in whatever package it is."""

from __future__ import annotations

import concurrent.futures
import importlib
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reactive_runtime.explore import explore, replay
from reactive_runtime.explore._checks import scenario
from reactive_runtime.explore._schedule import session

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


UNSEEN = """
class Keeper:
    def __init__(self):
        self.n = 0
        self.things = []
    def add(self, thing):
        self.n += 1
        thing.n += 1
    def keep(self, thing): self.things.append(thing)
    def add_to_all(self):
        for thing in self.things: thing.n += 1

class Base:
    def add_one(self): self.n += 1

class Adding:
    def __init__(self, thing): thing.n += 1

class Called:
    def __call__(self, thing): thing.n += 1

def add(thing): thing.n += 1
def add_by_name(*, thing): setattr(thing, "n", getattr(thing, "n") + 1)
def add_to_first(things): things[0].n += 1
def add_below(thing): thing.child.n += 1
def add_new(thing): thing.n = getattr(thing, "n", 0) + 1
def add_to_class(cls): cls.n += 1
def look(thing): return thing.n
called = Called()
"""
APP_OF_UNSEEN = """
import functools
import threading
import never_seen

class Thing:
    def __init__(self, child=None): self.n, self.child = 0, child

class Bare:
    n = 0

class Slots:
    __slots__ = ("n",)
    def __init__(self): self.n = 0

class Adds:
    def __init__(self):
        self.lock = threading.Lock()
        self.child = Thing()
        self.thing, self.bare, self.slots = Thing(self.child), Bare(), Slots()
        self.keeper = never_seen.Keeper()
        self.keeper.keep(self.thing)
        Bare.n = 0
    methods
    def actor_a(self): self.add()
    actor_b = actor_a

class AddsLocked(Adds):
    def actor_a(self):
        with self.lock: self.add()
    actor_b = actor_a

class AddsBesideALook(Adds):
    def actor_b(self): self.look()

class AddsBesideOne(Adds):
    def actor_b(self): self.look(); self.add_itself()
"""
HANDED = {
    "function": ("never_seen.add(self.thing)", "self.thing.n"),
    "keyword": ("never_seen.add_by_name(thing=self.thing)", "self.thing.n"),
    "in a list": ("never_seen.add_to_first([self.thing])", "self.thing.n"),
    "in a dictionary": ("never_seen.add_to_first({0: self.thing})", "self.thing.n"),
    "below": ("never_seen.add_below(self.thing)", "self.thing.child.n"),
    "below a list": ("never_seen.add_below(self)", "self.child.n"),
    "slot": ("never_seen.add(self.slots)", "self.slots.n"),
    "new": ("never_seen.add_new(self.bare)", "self.bare.n"),
    "class": ("never_seen.add_to_class(Bare)", "self.bare.n"),
    "method": ("self.keeper.add(self.thing)", "self.thing.n"),
    "own attribute": ("self.keeper.add(self.slots)", "self.keeper.n"),
    "kept": ("self.keeper.add_to_all()", "self.thing.n"),
    "made": ("never_seen.Adding(self.thing)", "self.thing.n"),
    "called": ("never_seen.called(self.thing)", "self.thing.n"),
    "partial": ("functools.partial(never_seen.add, self.thing)()", "self.thing.n"),
    "base": ("never_seen.Base.add_one(self.thing)", "self.thing.n"),
}
"""What a function that is not looked into does with an attribute, and how that is looked at."""


@pytest.fixture
def unseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A module whose classes do that, and the other one counts as a part of the standard library."""
    add, look = HANDED[request.getfixturevalue("way")]
    methods = f"""
    def add(self): {add}
    def look(self):
        before = {look}
        assert before == {look}
    def add_itself(self): {look} = {look} + 1
"""
    (tmp_path / "never_seen.py").write_text(UNSEEN)
    (tmp_path / "app_of_never_seen.py").write_text(APP_OF_UNSEEN.replace("    methods\n", methods))
    monkeypatch.setattr(scenario, "_APART", scenario._APART | {"never_seen"})
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield importlib.import_module("app_of_never_seen")
    for module in ("never_seen", "app_of_never_seen"):
        del sys.modules[module]


@pytest.mark.parametrize("way", HANDED)
def test_what_an_unseen_function_does_with_attributes_is_found_or_named(way: str, unseen: Any) -> None:
    for strategy in ("portfolio", "bounded", "dpor"):
        for program in (unseen.Adds, unseen.AddsBesideALook, unseen.AddsBesideOne):
            result = explore(program, strategy=strategy)
            assert result.failure is not None or result.not_looked_into, (program, strategy)
            if result.failure is not None:
                assert replay(program, result.failure.token).failure is not None
    result = explore(unseen.AddsLocked, strategy="dpor")
    assert (str(result.verdict), result.not_looked_into) == ("exhausted", [])


LATE = """
from concurrent.futures import ThreadPoolExecutor
from threading import Lock, RLock
from time import perf_counter, sleep

total = 0
lock = Lock()
again = RLock()


def add():
    global total
    total += 1
"""
IMPORTS = """
import threading


def test():
    import {late} as late
    late.total = 0
    threads = [threading.Thread(target=late.add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert late.total == 2
"""


def test_a_module_that_a_schedule_imports_is_named_and_left_as_unexplored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no stand-ins afterwards, and the next exploration looks into it."""
    (tmp_path / "imported_late.py").write_text(LATE)
    (tmp_path / "imports_late.py").write_text(IMPORTS.format(late="imported_late"))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    test = importlib.import_module("imports_late").test
    try:
        first = explore(test)
        assert first.verdict.kind == "incomplete"
        assert first.not_looked_into == ["`import imported_late`, which a schedule does first"]
        late = sys.modules["imported_late"]
        assert late.ThreadPoolExecutor is concurrent.futures.ThreadPoolExecutor
        assert (late.Lock, late.RLock) == (threading.Lock, threading.RLock)
        assert (late.perf_counter, late.sleep) == (time.perf_counter, time.sleep)
        assert type(late.lock) is type(threading.Lock())
        assert type(late.again) is type(threading.RLock())
        failure = explore(test).failure
        assert failure is not None
        assert replay(test, failure.token).failure is not None
    finally:
        for name in ("imports_late", "imported_late"):
            sys.modules.pop(name, None)
