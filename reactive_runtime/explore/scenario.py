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

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType, ModuleType
from typing import Any, Generic, TypeVar

from reactive_runtime.errors import ScenarioError
from reactive_runtime.explore.observations import Expectation, check_outcomes

__all__ = ["Scenario", "judge", "modules_of", "nothing", "scenario_of"]

S = TypeVar("S")

ACTOR = "actor_"


def nothing(*_: object) -> None:
    """The invariant that always holds."""


def judge(invariant: Callable[[S], object], state: S) -> None:
    """Raise what `invariant` raises, and AssertionError where it returns False."""
    if invariant(state) is False:
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
        tear_down: Called with the state after each run, however it ended.
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
    elif inspect.iscoroutinefunction(item):
        raise ScenarioError(f"{item.__qualname__} is a coroutine function: the explorer orders threads, not coroutines")
    elif callable(item):
        name = getattr(item, "__qualname__", type(item).__name__)
        scenario = Scenario(lambda: None, {"main": [lambda _: item()]}, name=name, parts=[item])
    else:
        raise ScenarioError(f"a scenario is a class with methods {ACTOR}…, a Scenario, or a function; not {item!r}")
    if scenario.outcomes is not None and scenario.outcome is None:
        raise ScenarioError(f"{scenario.name} has `outcomes`, and no `outcome` that returns one of them")
    check_outcomes(scenario.outcomes)
    for name, calls in scenario.actors.items():
        for call in calls:
            if inspect.iscoroutinefunction(call):
                raise ScenarioError(
                    f"actor {name} of {scenario.name} is a coroutine function: the explorer orders threads,"
                    " not coroutines"
                )
    return scenario


def _of_class(cls: type[Any]) -> Scenario[Any]:
    names = [name for base in reversed(cls.__mro__) for name in vars(base) if name.startswith(ACTOR) and name != ACTOR]
    if not names:
        raise ScenarioError(f"{cls.__qualname__} has no actors: name the methods that threads shall run {ACTOR}…")
    return Scenario(
        cls,
        {name.removeprefix(ACTOR): [getattr(cls, name)] for name in dict.fromkeys(names)},
        at_end=getattr(cls, "at_end", nothing),
        at_each_step=getattr(cls, "at_each_step", None),
        tear_down=getattr(cls, "tear_down", nothing),
        outcome=getattr(cls, "outcome", None),
        outcomes=getattr(cls, "outcomes", None),
        name=cls.__qualname__,
        rule=getattr(cls, "rule", None),
        parts=[cls],
    )


def modules_of(parts: Sequence[Any]) -> Iterator[ModuleType]:
    """The modules that functions and classes come from, and what those refer to in the same top-level package.

    With the modules of bases, and without the standard library's.
    """
    roots = [_plain(part) for part in parts]
    home = {module.__name__.partition(".")[0] for root in roots if (module := _module(root)) is not None}
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        item = stack.pop(0)
        module = _module(item)
        if id(item) in seen or module is None or module.__name__.partition(".")[0] not in home:
            continue
        seen.add(id(item))
        yield module
        stack.extend(_plain(other) for other in _referred(item))


def _plain(item: Any) -> Any:
    """The function or the class in it."""
    while isinstance(item, functools.partial):
        item = item.func
    item = getattr(item, "__func__", item)
    return inspect.unwrap(item) if callable(item) else item


def _module(item: Any) -> ModuleType | None:
    module = sys.modules.get(getattr(item, "__module__", None) or "")
    return None if module is None or module.__name__ in {*sys.stdlib_module_names, __name__} else module


def _referred(item: Any) -> Iterator[Any]:
    """The classes and functions that it is made of."""
    found: list[Any] = []
    if inspect.isclass(item):
        found = [*item.__mro__[1:-1], *vars(item).values()]
    elif isinstance(item, FunctionType):
        names = {name for code in _codes(item.__code__) for name in code.co_names}
        found = [*(item.__globals__.get(name) for name in names), *inspect.getclosurevars(item).nonlocals.values()]
    yield from (other for other in found if isinstance(other, FunctionType | type))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
