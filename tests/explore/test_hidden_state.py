"""State that no line of a program shows: what functions of the standard library keep, and what C does for a thread."""

from __future__ import annotations

import codecs
import contextlib
import contextvars
import decimal
import functools
import io
import operator
import sys
import threading
import types
import weakref
from abc import ABC
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from reactive_runtime.explore import explore


def together(*functions: Callable[[], object]) -> None:
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def found(program: Callable[[], object]) -> None:
    for strategy in ("dpor", "portfolio"):
        assert explore(program, strategy=strategy, schedules=300).failure is not None, strategy


class Counts:
    """Two threads each add one, in two steps."""

    def __init__(self, lock: Any = None) -> None:
        self.lock: Any = contextlib.nullcontext() if lock is None else lock()
        self.make()

    def make(self) -> None:
        raise NotImplementedError

    def get(self) -> int:
        raise NotImplementedError

    def set(self, number: int) -> None:
        raise NotImplementedError

    def actor_a(self) -> None:
        with self.lock:
            self.set(self.get() + 1)

    actor_b = actor_a

    def at_end(self) -> None:
        assert self.get() == 2, "lost"


class Dispatched(Counts):
    def make(self) -> None:
        self.function = functools.singledispatch(lambda _: 0)

    def get(self) -> int:
        return int(self.function(1))

    def set(self, number: int) -> None:
        self.function.register(int, lambda _: number)


class DispatchedMethod(Counts):
    def make(self) -> None:
        class Having:
            method = functools.singledispatchmethod(lambda _, __: 0)

        self.kind, self.having = Having, Having()

    def get(self) -> int:
        return int(self.having.method(1))

    def set(self, number: int) -> None:
        self.kind.__dict__["method"].register(int, lambda _, __: number)


class Notes(Counts):
    def make(self) -> None:
        self.error = ValueError()
        self.error.n = 0  # type: ignore[attr-defined]

    def get(self) -> int:
        return int(self.error.n)  # type: ignore[attr-defined]

    def set(self, number: int) -> None:
        self.error.__setstate__({"n": number})


class Context(Counts):
    def make(self) -> None:
        self.number = contextvars.ContextVar("number", default=0)
        self.context = contextvars.Context()

    def get(self) -> int:
        return self.context.get(self.number, 0) or 0

    def set(self, number: int) -> None:
        self.context.run(self.number.set, number)


class Flags(Counts):
    signals: Any = (decimal.Inexact, decimal.Rounded, decimal.Clamped)

    def make(self) -> None:
        self.context = decimal.Context()

    def get(self) -> int:
        return sum(map(bool, self.context.flags.values()))

    def set(self, number: int) -> None:
        self.context.flags[self.signals[number]] = True


PROGRAMS = [Dispatched, DispatchedMethod, Notes, Context, Flags]


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_update_that_is_lost_in_the_library_is_found(program: type[Counts]) -> None:
    result = explore(program, strategy="dpor", schedules=300)
    assert result.failure is not None
    assert result.failure.message == "lost"


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_lock_around_an_update_in_the_library_is_enough(program: type[Counts]) -> None:
    locked = type("Locked", (program,), {"__init__": lambda self: Counts.__init__(self, threading.Lock)})
    assert str(explore(locked, strategy="dpor", schedules=300).verdict).startswith("exhausted")


class Base(ABC):  # noqa: B024
    """Others are registered as of it."""


def registers() -> None:
    together(lambda: Base.register(type("One", (), {})), lambda: isinstance(1, Base))


def handles_errors() -> None:
    together(lambda: codecs.register_error("explored", codecs.ignore_errors), lambda: b"\xff".decode("ascii", "ignore"))


def redirects() -> None:
    def quiet() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            pass

    before = sys.stdout
    together(quiet, quiet)
    sys.stdout = before


@pytest.mark.parametrize(
    ("program", "call"),
    [(registers, "Base.register"), (handles_errors, "codecs.register_error"), (redirects, "contextlib.redirect")],
)
def test_a_call_that_changes_what_is_read_unseen_is_named(program: Callable[[], None], call: str) -> None:
    result = explore(program, strategy="dpor", schedules=300)
    assert result.verdict.kind == "incomplete"
    assert any(call in named for named in result.not_looked_into)


def test_such_a_call_while_no_other_thread_lives_is_not_named() -> None:
    def program() -> None:
        Base.register(type("One", (), {}))
        together(int, int)
        assert issubclass(Base, ABC)

    assert explore(program).not_looked_into == []


# -- what C does for a thread ----------------------------------------------------------------------------------


class Seen:
    """One thread looks twice, while another one changes what it looks at."""

    n = 0

    def unchanged(self, look: Callable[[], object]) -> None:
        assert look() == look(), "it changed"


def a_target() -> None:
    seen = Seen()
    thread = threading.Thread(target=setattr, args=(seen, "n", 1))
    thread.start()
    seen.unchanged(lambda: seen.n)
    thread.join()


def a_target_of_operator() -> None:
    items: dict[int, int] = {}
    thread = threading.Thread(target=operator.setitem, args=(items, 1, 1))
    thread.start()
    Seen().unchanged(lambda: len(items))
    thread.join()


def a_task_of_a_pool() -> None:
    seen = Seen()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(setattr, seen, "n", 1)
        seen.unchanged(lambda: seen.n)


def a_cache() -> None:
    asked: list[int] = []
    function = functools.cache(lambda: asked.append(1))
    together(function, function)
    assert asked == [1]


def a_cache_of_a_method() -> None:
    class Asked:
        times = 0

        @functools.lru_cache  # noqa: B019
        def ask(self) -> None:
            self.times += 1

    asked = Asked()
    together(asked.ask, asked.ask)
    assert asked.times == 1


def what_is_yielded_from() -> None:
    items = [1, 2, 3]

    def each() -> Iterator[int]:
        yield from items

    def look() -> None:
        assert list(each()) in ([1, 2, 3], [])

    together(look, items.clear)


def two_lines_that_are_printed() -> None:
    before, sys.stdout = sys.stdout, io.StringIO()
    try:

        def write() -> None:
            print("a")
            print("b")

        together(write, write)
        assert sys.stdout.getvalue() == "a\nb\n" * 2
    finally:
        sys.stdout = before


@pytest.mark.parametrize(
    "program",
    [
        a_target, a_target_of_operator, a_task_of_a_pool, a_cache, a_cache_of_a_method, what_is_yielded_from,
        two_lines_that_are_printed,
    ],
)  # fmt: skip
def test_what_c_does_for_a_thread_is_a_point(program: Callable[[], None]) -> None:
    found(program)


def test_a_generator_is_still_sent_values_and_errors() -> None:
    def inner() -> Any:
        try:
            got = yield 1
        except ValueError:
            got = "raised"
        yield got

    def outer() -> Any:
        yield from inner()
        yield from [1, 2]

    def program() -> None:
        sent, raised = outer(), outer()
        assert (next(sent), sent.send(5), next(sent), next(sent)) == (1, 5, 1, 2)
        assert (next(raised), raised.throw(ValueError())) == (1, "raised")

    explore(lambda: together(program, program), modules=[__name__]).assert_holds()


# -- the death of an object ------------------------------------------------------------------------------------


class Page:
    hits = 0


class Dies:
    """One thread looks through a weak reference twice; another one, the first or the second, drops the object."""

    def __init__(self) -> None:
        self.page: Any = Page()
        self.reference = weakref.ref(self.page)
        self.pages = weakref.WeakValueDictionary({"k": self.page})

    def look(self) -> None:
        if self.reference() is not None:
            self.reference().hits += 1  # type: ignore[union-attr]

    def look_up(self) -> None:
        if "k" in self.pages:
            self.pages["k"].hits += 1

    def drop(self) -> None:
        self.page = None


class ReferenceFirst(Dies):
    actor_a, actor_b = Dies.look, Dies.drop


class ReferenceLast(Dies):
    actor_a, actor_b = Dies.drop, Dies.look


class DictionaryFirst(Dies):
    actor_a, actor_b = Dies.look_up, Dies.drop


def made_in_a_thread() -> None:
    box = types.SimpleNamespace(page=Page())
    reference = weakref.ref(box.page)

    def look() -> None:
        assert (reference() is None) == (reference() is None)

    together(lambda: setattr(box, "page", None), look)


@pytest.mark.parametrize("program", [ReferenceFirst, ReferenceLast, DictionaryFirst, made_in_a_thread])
def test_a_look_that_races_with_a_death_is_found(program: Any) -> None:
    found(program)


def test_a_strong_reference_keeps_an_object_alive() -> None:
    class Keeps(Dies):
        def actor_a(self) -> None:
            page = self.reference()
            if page is not None:
                page.hits += 1
                assert self.reference() is page

        actor_b = Dies.drop

    assert str(explore(Keeps, strategy="dpor", schedules=300).verdict).startswith("exhausted")
