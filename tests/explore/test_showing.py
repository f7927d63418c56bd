"""A failure is shown without running anything of the program."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from reactive_runtime.explore import explore, replay


class _Base:
    def __init__(self) -> None:
        self.held: Any = 0

    def actor_b(self) -> None:
        self.actor_a()

    def actor_a(self) -> None:
        raise NotImplementedError


class _Property(_Base):
    @property
    def count(self) -> int:
        return int(self.held)

    @count.setter
    def count(self, value: int) -> None:
        self.held = value

    def actor_a(self) -> None:
        self.count += 1

    def at_end(self) -> None:
        assert self.count == 2


class _Descriptor:
    def __get__(self, item: Any, cls: Any) -> Any:
        return item.held

    def __set__(self, item: Any, value: Any) -> None:
        item.held = value


class _Described(_Base):
    count = _Descriptor()

    def actor_a(self) -> None:
        self.count += 1

    def at_end(self) -> None:
        assert self.count == 2


class _MadeUp(_Base):
    if TYPE_CHECKING:
        count: Any

    def __getattr__(self, name: str) -> Any:
        return self.__dict__["held"] if name == "count" else None

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__["held" if name == "count" else name] = value

    def actor_a(self) -> None:
        self.count = self.count + 1

    def at_end(self) -> None:
        assert self.count == 2


class _Slots:
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def actor_a(self) -> None:
        self.count += 1

    actor_b = actor_a

    def at_end(self) -> None:
        assert self.count == 2


def _from_showing() -> bool:
    frame: Any = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.endswith("step_log.py"):
            return True
        frame = frame.f_back
    return False


class _Told:
    """Counts what it is asked by the one who shows."""

    asked: list[str] = []  # noqa: RUF012

    def _note(self, what: str) -> None:
        if _from_showing():
            _Told.asked.append(what)

    def __repr__(self) -> str:
        self._note("repr")
        return "told"

    def __str__(self) -> str:
        self._note("str")
        return "told"

    def __len__(self) -> int:
        self._note("len")
        return 1

    def __eq__(self, other: object) -> bool:
        self._note("eq")
        return self is other

    def __hash__(self) -> int:
        self._note("hash")
        return 1

    def __iter__(self) -> Any:
        self._note("iter")
        return iter(())

    def __getattr__(self, name: str) -> Any:
        self._note(f"getattr {name}")
        raise AttributeError(name)

    @property
    def __class__(self) -> Any:
        self._note("class")
        return _Told

    @__class__.setter
    def __class__(self, value: Any) -> None:
        pass

    def __call__(self) -> None:
        self._note("call")


class _List(_Told, list):  # type: ignore[type-arg, misc]
    pass


class _Dict(_Told, dict):  # type: ignore[type-arg, misc]
    pass


class _Int(_Told, int):
    pass


class _Str(_Told, str):
    __slots__ = ()


class _Error(_Told, Exception):
    pass


@pytest.mark.parametrize("program", [_Property, _Described, _MadeUp, _Slots], ids=lambda item: item.__name__)
def test_a_lost_update_through_code_of_the_program_is_shown(program: Any) -> None:
    failure = explore(program).failure
    assert failure is not None
    assert failure.kind == "invariant"
    assert "count" in failure.diagram()
    again = replay(program, failure.token).failure
    assert again is not None
    assert again.diagram() == failure.diagram()


@pytest.mark.parametrize("kind", [_Told, _List, _Dict, _Int, _Str, _Error], ids=lambda item: item.__name__)
def test_a_value_is_shown_without_asking_it(kind: Any) -> None:
    class Holds(_Base):
        def __init__(self) -> None:
            self.held = kind()
            self.changed = 0

        def actor_a(self) -> None:
            before = self.changed
            value = self.held
            self.held = value
            self.changed = before + 1

        def at_end(self) -> None:
            assert self.changed == 2

    _Told.asked.clear()
    failure = explore(Holds).failure
    assert failure is not None
    assert "self.held = value" in failure.diagram()
    assert _Told.asked == []


class _Slotted:
    """Looks for what it does not have by a method of its own."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        return self._made_up(name)

    def _made_up(self, name: str) -> Any:
        raise AttributeError(name)

    def add(self) -> None:
        self.count += 1


def test_a_method_is_called_without_asking_its_object_for_anything_else() -> None:
    class Called(_Base):
        def __init__(self) -> None:
            self.held = _Slotted()

        def actor_a(self) -> None:
            self.held.add()

        def at_end(self) -> None:
            assert self.held.count == 2

    failure = explore(Called).failure
    assert failure is not None
    assert failure.kind == "invariant"
