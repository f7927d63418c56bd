"""What is explored: a state, the threads that work on it, and what has to hold.

Either a class, which reads best where a scenario is written by hand:

    class LostUpdate:
        def __init__(self): self.count = 0
        def actor_a(self): self.count += 1
        def actor_b(self): self.count += 1
        def at_end(self): assert self.count == 2

or a `Scenario`, where it is put together; or a function without arguments, which starts threads of its own.
"""

from __future__ import annotations

import difflib
import dis
import functools
import gc
import inspect
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from importlib.util import resolve_name
from types import (
    AsyncGeneratorType,
    CodeType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final, Generic, TypeVar

from reactive_runtime.errors import ScenarioError
from reactive_runtime.explore._checks.observations import Expectation, check_outcomes
from reactive_runtime.explore._shared_state.kinds import CACHE, home_of, module_of, mro, names_of

__all__ = ["Scenario", "checks_nothing", "judge", "modules_of", "nothing", "parts_of_state", "scenario_of"]

S = TypeVar("S")

ACTOR = "actor_"

LARGEST: Final = 1 << 20
"""Bytes of source of other packages that are looked into by themselves."""
OBJECTS: Final = 5_000
"""Objects of a state that are looked at for where they come from."""
_APART: Final = frozenset(
    {*sys.stdlib_module_names, "pytest", "_pytest", "pluggy", "hypothesis", "greenlet", "typing_extensions"}
)
"""Packages that are not looked into by themselves."""
_OWN: Final = "reactive_runtime"
"""Is looked into anyway."""
_IMPORT: Final = dis.opmap["IMPORT_NAME"]
_LEAVES: Final = frozenset({int, str, bytes, float, bool, complex, type(None), type(Ellipsis), range, CodeType})


UNRUN: Final = "a coroutine or a generator, of which nothing has run: the explorer orders threads"


def is_unrun(result: object) -> bool:
    """Whether it is what a function returns of which nothing has run. It is closed then."""
    kind = type(result)
    if kind in (CoroutineType, GeneratorType):
        result.close()  # type: ignore[attr-defined]
    return kind in (CoroutineType, GeneratorType, AsyncGeneratorType)


def nothing(*_: object) -> None:
    """The invariant that always holds."""


def judge(invariant: Callable[[S], object], state: S) -> None:
    """Raise what `invariant` raises, and AssertionError where it returns False."""
    result = invariant(state)
    if is_unrun(result):
        raise ScenarioError(f"{getattr(invariant, '__qualname__', 'the invariant')} returned {UNRUN}")
    if result is False:
        raise AssertionError(f"{getattr(invariant, '__qualname__', 'the invariant')} does not hold")


@dataclass(frozen=True)
class Scenario(Generic[S]):
    """A program of a few threads.

    A scenario has to do the same each time the schedule is the same: no random numbers, no clock but `time`'s (which is
    virtual here), no order of sets. What is not so is noticed when a failure is replayed.

    Args:
        setup: Makes the state, anew for each schedule, on the main thread, before any other runs.
        actors: The threads, by name: each makes its calls one after the other, with the state as argument.
        at_end: Called with the state when all threads have ended and nothing is left to happen. It fails by raising (an
            AssertionError, say) or by returning False, and must only look.
        at_each_step: Called with the state between any two steps, if there is one; it fails likewise.
        tear_down: Called with the state after each run, however it ended. What it raises fails a run in which all has
            held so far.
        outcome: Called with the state when `at_end` holds, if there is one. What it returns is counted over all
            schedules, and must only look.
        outcomes: What `outcome` may return: "acceptable", "interesting" or "forbidden" for each value; what is not
            listed is forbidden. None: anything may.
        name: The name in messages and tokens.
        rule: The rule of Reactive Streams that the invariants stand for, if they do.
        parts: Functions and classes it is made of, beyond those above: their modules are looked at as well.
    """

    setup: Callable[[], S]
    actors: Mapping[str, Sequence[Callable[[S], object]]]
    at_end: Callable[[S], object] = nothing
    _: KW_ONLY
    at_each_step: Callable[[S], object] | None = None
    tear_down: Callable[[S], object] = nothing
    """Called with the state after each run, however it ended."""
    outcome: Callable[[S], object] | None = None
    outcomes: Mapping[Any, Expectation] | None = None
    """What `outcome` may return; None: anything."""
    name: str = "scenario"
    rule: str | None = None
    """The rule of Reactive Streams that the invariants stand for, if they do."""
    parts: Sequence[Any] = field(default=(), compare=False)
    """Functions and classes it is made of, beyond those above: their modules are looked at as well."""

    def reduced(self, program: Sequence[tuple[str, Sequence[int]]]) -> Scenario[S]:
        """The same scenario with fewer calls.

        Args:
            program: The actors that are kept, each with the numbers of its calls that are.

        Returns:
            A new scenario.

        Raises:
            LookupError: There is no such actor, or no such call.
        """
        return replace(self, actors={name: [self.actors[name][call] for call in calls] for name, calls in program})

    @property
    def program(self) -> list[tuple[str, list[int]]]:
        """All its calls, by number."""
        return [(name, list(range(len(calls)))) for name, calls in self.actors.items()]

    def roots(self) -> list[Any]:
        """All the functions that it is made of.

        Returns:
            `setup`, `at_end`, `parts`, `outcome`, and the calls of all actors.
        """
        found: list[Any] = [self.setup, self.at_end, *self.parts, *([] if self.outcome is None else [self.outcome])]
        for calls in self.actors.values():
            found.extend(calls)
        return found


def scenario_of(item: Any) -> Scenario[Any]:
    """The argument as a scenario; ScenarioError where it is none."""
    if isinstance(item, Scenario):
        scenario: Scenario[Any] = item
    elif inspect.isclass(item):
        scenario = _of_class(item)
    elif callable(item):
        _refuse_unrun(getattr(item, "__qualname__", type(item).__name__), item)
        name = getattr(item, "__qualname__", type(item).__name__)
        scenario = Scenario(lambda: None, {"main": [lambda _: item()]}, name=name, parts=[item])
    else:
        raise ScenarioError(f"a scenario is a class with methods {ACTOR}…, a Scenario, or a function; not {item!r}")
    if scenario.outcomes is not None and scenario.outcome is None:
        raise ScenarioError(f"{scenario.name} has `outcomes`, and no `outcome` that returns one of them")
    check_outcomes(scenario.outcomes)
    if not any(scenario.actors.values()):
        raise ScenarioError(f"{scenario.name} has no actors: nothing would run")
    for name, calls in scenario.actors.items():
        for call in calls:
            _refuse_unrun(f"actor {name} of {scenario.name}", call)
    for name in ("setup", "at_end", "at_each_step", "tear_down", "outcome"):
        _refuse_unrun(f"{name} of {scenario.name}", getattr(scenario, name))
    return scenario


def _refuse_unrun(name: str, function: Any) -> None:
    """Refuse a function whose call runs nothing of it."""
    while isinstance(function, functools.partial):
        function = function.func
    for called in (function, inspect.getattr_static(type(function), "__call__", None)):
        if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
            raise ScenarioError(f"{name} is a coroutine function: the explorer orders threads, not coroutines")
        if inspect.isgeneratorfunction(called):
            raise ScenarioError(
                f"{name} is a generator function: a call of it runs nothing; leave out `yield`, or go through it in a"
                " function of its own"
            )


def _of_class(cls: type[Any]) -> Scenario[Any]:
    names = [name for base in reversed(cls.__mro__) for name in vars(base) if name.startswith(ACTOR) and name != ACTOR]
    if not names:
        raise ScenarioError(f"{cls.__qualname__} has no actors: name the methods that threads shall run {ACTOR}…")
    _check_names(cls)
    return Scenario(
        cls,
        {name.removeprefix(ACTOR): [_method(cls, name)] for name in dict.fromkeys(names)},
        at_end=getattr(cls, "at_end", nothing),
        at_each_step=getattr(cls, "at_each_step", None),
        tear_down=getattr(cls, "tear_down", nothing),
        outcome=getattr(cls, "outcome", None),
        outcomes=getattr(cls, "outcomes", None),
        name=cls.__qualname__,
        rule=getattr(cls, "rule", None),
        parts=[cls],
    )


def _method(cls: type[Any], name: str) -> Callable[[Any], object]:
    """An actor's method. A static one gets no state, and is refused, as one of the class is."""
    if isinstance(inspect.getattr_static(cls, name), staticmethod | classmethod):
        raise ScenarioError(
            f"{cls.__qualname__}.{name} is a static method, or one of the class: leave out the decorator"
        )
    method: Callable[[Any], object] = getattr(cls, name)
    return method


_KNOWN: Final = ("at_end", "at_each_step", "tear_down", "outcome", "outcomes", "rule")


def _check_names(cls: type[Any]) -> None:
    """Refuse a method whose name is nearly one that is called, where that one is missing."""
    own = [name for base in cls.__mro__[:-1] for name in vars(base) if not name.startswith(("_", ACTOR))]
    missing = [name for name in _KNOWN if name not in own]
    plain = {name.replace("_", ""): name for name in missing}
    for name in own:
        if name in _KNOWN:
            continue
        if name.lower().startswith("actor") and callable(getattr(cls, name)):
            raise ScenarioError(f"{cls.__qualname__} has `{name}`, which no thread runs: is it to be `{ACTOR}…`?")
        near = difflib.get_close_matches(name.lower().replace("_", ""), plain, n=1, cutoff=0.8)
        if near and callable(getattr(cls, name)) is (plain[near[0]] not in ("outcomes", "rule")):
            raise ScenarioError(
                f"{cls.__qualname__} has `{name}`, which is never called: is it to be `{plain[near[0]]}`? If not, give"
                " it another name"
            )


def checks_nothing(scenario: Scenario[Any]) -> bool:
    """Whether a scenario has no invariant and no outcome, and none of its own functions asserts or raises anything."""
    if scenario.at_end is not nothing or scenario.at_each_step is not None or scenario.outcome is not None:
        return False
    functions = [_plain(root) for root in scenario.roots()]
    functions += [value for item in functions if isinstance(item, type) for value in vars(item).values()]
    codes = [code for item in functions if isinstance(item, FunctionType) for code in _codes(item.__code__)]
    return not any(
        item.opname == "RAISE_VARARGS" or item.argval in ("sometimes", "unreachable", "reachable")
        for code in codes
        for item in dis.get_instructions(code)
    )


def modules_of(parts: Sequence[Any]) -> Iterator[ModuleType]:
    """The modules that functions and classes come from, and those of what they refer to, in whatever package.

    What a scenario's own package refers to is followed: within that package to the end; and from each other package
    that it names within that one, up to a size. Without the standard library, the explorer's package and test tools.
    """
    roots = [layer for part in parts for layer in _layers(part)]
    home = {package for root in roots if (package := _package(_module(root)))}
    further: set[str] = set()
    size = 0
    seen: set[int] = set()
    yielded: set[int] = set()
    queue = deque(roots)
    while queue:
        item = queue.popleft()
        if id(item) in seen:
            continue
        seen.add(id(item))
        module = _module(item)
        package = _package(module)
        if module is None or (package not in home and package not in further):
            continue
        if id(module) not in yielded:
            if package not in home:
                size += _size(module)
                if size > LARGEST:
                    continue
            yielded.add(id(module))
            yield module
        for other in (layer for part in _referred(item) for layer in _layers(part)):
            there = _package(_module(other))
            if there:
                if package in home and there not in home and there != _OWN:
                    further.add(there)
                queue.append(other)


def parts_of_state(state: Any) -> list[Any]:
    """The classes of the objects, and the functions, that a state is made of; nothing of the program runs for it."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    stack = [state]
    while stack and len(seen) < OBJECTS:
        item = stack.pop()
        kind = type(item)
        if id(item) in seen or kind in _LEAVES:
            continue
        seen.add(id(item))
        if issubclass(kind, type) or kind is FunctionType:
            found[id(item)] = item
        elif kind is not ModuleType:
            found[id(kind)] = kind
            stack.extend(gc.get_referents(item))
    return [item for item in found.values() if _package(_module(item)) not in ("", _OWN)]


def _plain(item: Any) -> Any:
    """The function or the class in it."""
    item = _bare(item)
    return _bare(inspect.unwrap(item)) if callable(item) and not issubclass(type(item), type) else item


def _layers(item: Any) -> Iterator[Any]:
    """The function or the class in it, and the functions that wrap it."""
    item, plain = _bare(item), _plain(item)
    while item is not plain and type(item) is FunctionType and "__wrapped__" in item.__dict__:
        yield item
        item = _bare(item.__dict__["__wrapped__"])
    yield plain


def _bare(item: Any) -> Any:
    while issubclass(type(item), functools.partial):
        item = item.func
    return item.__func__ if type(item) in (MethodType, staticmethod, classmethod) else item


def _module(item: Any) -> ModuleType | None:
    kind = type(item)
    if issubclass(kind, ModuleType):
        return item  # type: ignore[no-any-return]
    name = home_of(item) if kind is FunctionType else module_of(item if issubclass(kind, type) else kind)
    found: Any = sys.modules.get(name) if type(name) is str else None
    if found is None or issubclass(type(found), ModuleType):
        module: ModuleType | None = found
        return module
    names = next((one.__globals__ for one in _functions_of(item) if home_of(one) == name), None)
    if names is None:
        return None
    known = _replaced.get(id(names))
    if known is None:
        known = _replaced[id(names)] = _Replaced(names)
    vars(known).update(names)
    return known


def _functions_of(item: Any) -> Iterator[FunctionType]:
    """The function that it is, or those of the class that it is."""
    for one in names_of(item).values() if issubclass(type(item), type) else [item]:
        function = one.fget if type(one) is property else _bare(one)
        if type(function) is FunctionType:
            yield function


class _Replaced(ModuleType):
    """A module that has put another object in its place in `sys.modules`: only its names are left."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__(names["__name__"])
        vars(self).update(names)
        vars(self)["explore·names"] = names

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        vars(self)["explore·names"][name] = value

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        del vars(self)["explore·names"][name]


_replaced: Final[dict[int, _Replaced]] = {}
"""By the id of their names, which they keep; written by the one exploration that runs."""


def _package(module: ModuleType | None) -> str:
    """The top-level package of a module; empty where it is not to be looked into by itself."""
    package = "" if module is None else module.__name__.partition(".")[0]
    return "" if package in _APART or (module is not None and module.__name__ == __name__) else package


def _size(module: ModuleType) -> int:
    try:
        return os.path.getsize(getattr(module, "__file__", None) or "")
    except OSError:
        return 0


def _referred(item: Any) -> Iterator[Any]:
    """The classes, functions and modules that it is made of, or that it refers to by name."""
    found: list[Any] = []
    if issubclass(type(item), type):
        found = [*mro(item)[1:-1], *names_of(item).values()]
    elif type(item) is FunctionType:
        names = {name for code in _codes(item.__code__) for name in code.co_names}
        found = [item.__globals__.get(name) for name in names]
        found.extend(_imported(item))
        found.extend(cell.cell_contents for cell in item.__closure__ or () if _filled(cell))
        for module in [value for value in found if type(value) is ModuleType and _package(value)]:
            found.extend(vars(module).get(name) for name in names)
    for other in found:
        kind = type(other)
        if kind in _LEAVES:
            continue
        if issubclass(type(other), FunctionType | type | ModuleType):  # a proxy's object may be gone
            yield other
        elif kind in (staticmethod, classmethod):
            yield other.__func__
        elif kind is property:
            yield from (one for one in (other.fget, other.fset, other.fdel) if one is not None)
        elif kind is functools.cached_property:
            yield other.func
        elif kind is CACHE:
            yield other.__wrapped__
        elif kind is MethodType:
            yield from (other.__func__, type(other.__self__))
        elif module_of(kind) not in sys.stdlib_module_names:
            yield kind


def _imported(function: FunctionType) -> Iterator[ModuleType]:
    """The modules that statements inside of a function import, if they have been imported before."""
    for code in _codes(function.__code__):
        if _IMPORT not in code.co_code[::2]:
            continue
        level: Any = None
        names: Any = None
        for instruction in dis.get_instructions(code):
            if instruction.opcode == _IMPORT:
                module = "." * (level or 0) + instruction.argval
                with suppress(ImportError):
                    module = resolve_name(module, function.__globals__.get("__package__") or "")
                paths = [module, *(f"{module}.{name}" for name in names or ())]
                yield from (found for path in paths if type(found := sys.modules.get(path)) is ModuleType)
            level, names = names, instruction.argval


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
