"""Classes, modules and globals of unusual kinds: nothing of them runs for the explorer, and nothing is missed."""

from __future__ import annotations

import sys
import threading
from types import ModuleType
from typing import Any

import pytest
from searching import ENGINES

from reactive_runtime.explore import explore

SHARED = threading.Lock()


class Refusing(type):
    """A metaclass with a descriptor that can't be set."""

    @property
    def lock(cls) -> Any:
        return cls.__dict__["lock"]


class Guarded(metaclass=Refusing):
    lock = threading.Lock()


class Counts:
    """Two threads, no lock."""

    def __init__(self) -> None:
        self.n = 0

    def actor_a(self) -> None:
        self.n += 1

    def actor_b(self) -> None:
        self.n += 1

    def at_end(self) -> None:
        assert self.n == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_a_class_whose_lock_can_not_be_replaced_is_left_and_all_is_given_back(engine: Any) -> None:
    before = SHARED, threading.Lock, vars(Guarded)["lock"]
    assert not explore(Counts, engine=engine).holds
    assert (SHARED, threading.Lock, vars(Guarded)["lock"]) == before


class Outer:
    lock = SHARED

    class Inner:
        lock = SHARED


class LockedByTwoNames(Counts):
    def actor_a(self) -> None:
        with SHARED:
            super().actor_a()

    def actor_b(self) -> None:
        with Outer.Inner.lock:
            super().actor_b()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_lock_with_two_names_is_one_lock(engine: Any) -> None:
    assert explore(LockedByTwoNames, engine=engine).assert_holds().verdict.kind == "exhausted"


class Secretive(type):
    """A metaclass that shows nothing once it is closed."""

    closed = False

    def __getattribute__(cls, name: str) -> Any:
        if Secretive.closed and not name.startswith(("bump", "m")):
            raise RuntimeError(f"{name}?")
        return super().__getattribute__(name)


class Secret(metaclass=Secretive):
    m = 0

    def bump(self) -> None:
        self.m += 1


class OfASecret(Counts):
    def __init__(self) -> None:
        super().__init__()
        self.secret = Secret()

    def actor_a(self) -> None:
        self.secret.bump()

    actor_b = actor_a

    def at_end(self) -> None:
        assert self.secret.m == 2, "lost"


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_of_a_metaclass_runs(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Secretive, "closed", True)
    failure = explore(OfASecret, engine=engine).failure
    assert failure is not None
    assert "lost" in failure.message


GLOBALS = 0


class NamesOfTheModule:
    """Functions that look at the frame they are called from have other names here."""

    def __init__(self) -> None:
        global GLOBALS
        GLOBALS = 0

    def bump(self) -> None:
        names, here, there, look = globals, locals, vars, dir
        mine = names()
        assert mine["__name__"] == __name__
        assert here()["mine"] is there()["mine"] is mine
        assert "mine" in look()
        assert sys._getframe().f_globals is mine
        mine["GLOBALS"] = mine["GLOBALS"] + 1

    actor_a = actor_b = bump

    def at_end(self) -> None:
        assert GLOBALS == 2, "lost"


@pytest.mark.parametrize("engine", ENGINES)
def test_what_looks_at_a_frame_sees_that_of_the_program_by_whatever_name(engine: Any) -> None:
    failure = explore(NamesOfTheModule, engine=engine).failure
    assert failure is not None
    assert failure.message == "lost"


class Told(dict[str, Any]):
    """A mapping that tells who looks at it."""

    def __contains__(self, key: object) -> bool:
        raise RuntimeError(f"{key!r} in it?")

    def get(self, *arguments: Any) -> Any:
        raise RuntimeError(f"get{arguments}")


class Bumps:
    m: int

    def bump(self) -> None:
        seen = self.m
        self.m = seen + 1


class InAMappingOfItsOwn:
    def __init__(self) -> None:
        self.o = Bumps()
        self.o.__dict__ = Told(m=0)

    def actor_a(self) -> None:
        self.o.bump()

    def actor_b(self) -> None:
        self.o.bump()

    def at_end(self) -> None:
        assert self.o.m == 2, "lost"


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_of_the_class_of_a_mapping_of_attributes_runs(engine: Any) -> None:
    failure = explore(InAMappingOfItsOwn, engine=engine).failure
    assert failure is not None
    assert "lost" in failure.message
    assert "load 0" in failure.diagram()


class NamesOfTheFrame(Counts):
    def actor_b(self) -> None:
        nothing: list[Any] = []
        assert "self" in vars(*nothing)
        self.n += 1


def test_vars_may_be_called_with_a_list_that_is_empty() -> None:
    failure = explore(NamesOfTheFrame).failure
    assert failure is not None
    assert "TypeError" not in failure.message


class OddModule(ModuleType):
    """A module's class may be replaced: the language reference says how."""


counter = 0


class ByNameAndThroughTheModule:
    def __init__(self) -> None:
        global counter
        counter = 0

    def actor_a(self) -> None:
        module: Any = sys.modules[__name__]
        module.counter += 1

    def actor_b(self) -> None:
        global counter
        counter += 1

    def at_end(self) -> None:
        assert counter == 2, "lost"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_name_of_a_module_with_a_class_of_its_own_is_one_place(engine: Any) -> None:
    module = sys.modules[__name__]
    module.__class__ = OddModule
    try:
        failure = explore(ByNameAndThroughTheModule, engine=engine).failure
    finally:
        module.__class__ = ModuleType
    assert failure is not None


class Undecided:
    """As an array of numpy: what it says to == has no truth."""

    def __eq__(self, other: object) -> Any:
        return self

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise ValueError("the truth value is ambiguous")

    def __len__(self) -> int:
        return 3


WEIGHTS = Undecided()


class LooksAtWeights(Counts):
    def actor_b(self) -> None:
        assert len(WEIGHTS) == 3
        self.n += 1


def test_globals_are_never_compared() -> None:
    assert not explore(LooksAtWeights).holds
