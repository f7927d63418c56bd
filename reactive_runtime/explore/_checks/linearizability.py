"""Checks an object that threads share against a model of it that one thread alone uses.

    check_linearizable(Cache, {"put": (keys, values), "get": (keys,)}, dict_model).assert_holds()

hypothesis draws programs: some calls before, two to four threads with some calls each, some calls afterwards. Each
program is explored under many schedules. What the calls returned has to be what the model returns for the same calls
in some order, one after the other (`_checks.histories`). A program that fails is made small by hypothesis, its
schedule by the explorer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import MissingDependencyError, ScenarioError
from reactive_runtime.explore._checks.histories import (
    CONSISTENCIES,
    Consistency,
    Entry,
    Explanation,
    Invocation,
    Outcome,
    drawn,
    explanation,
)
from reactive_runtime.explore._checks.scenario import Scenario
from reactive_runtime.explore._exploration import explore
from reactive_runtime.explore._results import Result, Verdict
from reactive_runtime.explore._schedule.determinism import NOT_THE_SAME
from reactive_runtime.explore._schedule.session import Points

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["Operation", "check_linearizable", "invoke", "operations_scenario"]

S = TypeVar("S")

NAMES: Final = "abcd"
"""Of the threads."""

_seconds: Final = primitives.monotonic  # the real one, whatever stands in for it meanwhile


@dataclass(frozen=True)
class Operation:
    """An operation that is no method by the name it is shown with.

    Args:
        arguments: A strategy of hypothesis for each argument.
        call: Called with the object, or the model, then the arguments.

    Example:
        >>> from hypothesis import strategies as st
        >>> from reactive_runtime.explore import Operation
        >>> store = Operation([st.integers(0, 1), st.integers(0, 1)], lambda mapping, k, v: mapping.__setitem__(k, v))
    """

    arguments: Sequence[SearchStrategy[Any]] = ()
    call: Callable[..., Any] | None = None


def invoke(name: str, *arguments: Any, call: Callable[..., Any] | None = None) -> Invocation:
    """One call of an operation, for `operations_scenario`.

    Args:
        name: The method's name; or, with `call`, how it is shown.
        *arguments: Its arguments.
        call: Called with the object, or the model, then the arguments. None: the method is called.

    Returns:
        The call.
    """
    return Invocation(name, arguments, call)


class _Shared(Generic[S]):
    """The object that the threads share, and what they have seen of it."""

    def __init__(self, make: Callable[[], S], before: Sequence[Invocation]) -> None:
        self.item = make()
        self.history: list[Entry] = []  # one thread runs at a time, and none is changed at in here
        self._moment = 0
        for call in before:
            self.call("before", call)

    def call(self, thread: str, invocation: Invocation) -> None:
        called = self._event()
        outcome = Outcome.of(invocation, self.item)
        self.history.append(Entry(thread, invocation, called, self._event(), outcome))

    def _event(self) -> int:
        self._moment += 1
        return self._moment


def operations_scenario(
    make: Callable[[], S],
    model: Callable[[], Any],
    threads: Sequence[Sequence[Invocation]],
    *,
    before: Sequence[Invocation] = (),
    after: Sequence[Invocation] = (),
    consistency: Consistency = "linearizable",
) -> Scenario[Any]:
    """The scenario of one program of operations, to explore it further or to replay its schedule.

    Args:
        make: Makes the object that the threads share.
        model: Makes the model, in the state that the object begins in.
        threads: The calls of each thread, made with `invoke`.
        before: Calls that are made one after the other before the threads begin.
        after: Calls that are made one after the other when all threads have ended.
        consistency: What is asked for: see `check_linearizable`.

    Returns:
        A scenario for `explore` and `replay`.

    Raises:
        ValueError: There is no such consistency, or there are no threads, or more than four.

    Example:
        >>> from reactive_runtime.explore import explore, invoke, operations_scenario
        >>> class Counter:
        ...     def __init__(self): self.count = 0
        ...     def add(self): self.count += 1; return self.count
        >>> twice = operations_scenario(Counter, Counter, [[invoke("add")], [invoke("add")]])
        >>> explore(twice).failure.message.splitlines()[0]
        'not linearizable: no order of these calls, one after the other, has these results'
    """
    if consistency not in CONSISTENCIES:
        raise ValueError(f"consistency must be one of {', '.join(CONSISTENCIES)}, not {consistency!r}")
    if not 1 <= len(threads) <= len(NAMES):
        raise ValueError(f"threads: 1 to {len(NAMES)} lists of calls are needed, not {len(threads)}")

    def at_end(shared: _Shared[S]) -> None:
        for call in after:
            shared.call("after", call)
        found = explanation(shared.history, model, consistency)
        if not found.complete:
            raise AssertionError(_message(shared.history, found, consistency))

    calls = [*before, *after, *(call for thread in threads for call in thread)]
    return Scenario(
        partial(_Shared, make, tuple(before)),
        {name: [partial(_called, name, call) for call in thread] for name, thread in zip(NAMES, threads, strict=False)},
        at_end=at_end,
        name=f"{_name(make)}: {_program(threads, before, after)}",
        parts=[make, type(_made(make)), *(call.call for call in calls if call.call is not None)],
    )


def _made(make: Callable[[], S]) -> S:
    try:
        return make()
    except Exception as error:
        raise ScenarioError(f"{_name(make)} makes no object: it raised {type(error).__name__}: {error}") from error


def _called(thread: str, invocation: Invocation, shared: _Shared[Any]) -> None:
    shared.call(thread, invocation)


def check_linearizable(
    make: Callable[[], S],
    operations: Mapping[str, Sequence[SearchStrategy[Any]] | Operation],
    model: Callable[[], Any],
    *,
    consistency: Consistency = "linearizable",
    threads: int = 3,
    calls: int = 3,
    programs: int = 100,
    schedules: int = 100,
    seed: int = 0,
    points: Points = "shared",
    modules: Sequence[Any] = (),
) -> Result:
    """Check that an object that threads share answers as if its operations came one after the other.

    A program is drawn by hypothesis: up to two calls first, two to `threads` threads that make one to `calls` calls
    each, up to two calls afterwards. Each is explored under up to `schedules` schedules. The results are compared
    with `==`; of exceptions the classes are. A list, dict or set that a call returns is copied then. A call that does
    not come to an end is a deadlock, and fails.

    Args:
        make: Makes the object, anew for each schedule.
        operations: For each operation its name, which is that of a method of the object and of the model, and a
            strategy of hypothesis for each argument. An `Operation` stands for what is no method.
        model: Makes the model, in the state that the object begins in. It answers each operation as one thread alone
            would see it, and needs no locks.
        consistency: What the order that explains the results has to keep. "linearizable": an operation that returned
            before another was called comes first. "sequentially consistent": the operations of one thread keep their
            order. "quiescent": operations keep their order where at a moment in between none was running.
        threads: The most threads, 2 to 4.
        calls: The most calls of a thread, 1 to 4.
        programs: The most programs that are drawn, 1 or more.
        schedules: The most schedules of a program, 1 or more.
        seed: Of the programs, and of the schedules.
        points: Where threads can change, as for `explore`.
        modules: Further modules whose code is watched, as for `explore`.

    Returns:
        The failure, with the history that no order explains, if there is one; and how much was looked at.

    Raises:
        ValueError: An argument is out of its range.
        ScenarioError: The object or the model has no such method, or it is a coroutine function.
        ExploreError: The object does what can't be ordered, as for `explore`.
        MissingDependencyError: hypothesis is not installed.

    Thread:
        As for `explore`.

    Example:
        >>> from hypothesis import strategies as st
        >>> from reactive_runtime.explore import check_linearizable
        >>> class Register:
        ...     def __init__(self): self.value = 0
        ...     def swap(self, value): before, self.value = self.value, value; return before
        >>> result = check_linearizable(Register, {"swap": (st.integers(1, 3),)}, Register)
        >>> result.holds
        False

    Origin:
        Linearizability is of Herlihy and Wing (1990); the manner of checking it that of Lincheck.
    """
    _check_hypothesis()
    _check_numbers(threads, calls, programs, schedules)
    _check(operations, _made(make), _made(model))
    program = _programs(operations, threads, calls)

    def explored(drawn_program: Any, shrink: bool) -> tuple[str, Result]:
        first, parts, last = drawn_program
        scenario = operations_scenario(make, model, parts, before=first, after=last, consistency=consistency)
        result = explore(  # a model knows no time that could be over
            scenario,
            schedules=schedules,
            seed=seed,
            points=points,
            modules=modules,
            shrink=shrink,
            early_timeouts=0,
        )
        return scenario.name, result

    return _searched(_name(make), program, explored, programs, seed)


def _check_hypothesis() -> None:
    try:
        import hypothesis.strategies  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("programs are drawn by hypothesis: pip install hypothesis") from error


def _check_numbers(threads: int, calls: int, programs: int, schedules: int) -> None:
    for name, value, least, most in (("threads", threads, 2, len(NAMES)), ("calls", calls, 1, 4)):
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"check_linearizable: {name} must be {least} to {most}, not {value!r}")
    for name, value in (("programs", programs), ("schedules", schedules)):
        if type(value) is not int or value < 1:
            raise ValueError(f"check_linearizable: {name} must be 1 or more, not {value!r}")


def _programs(
    operations: Mapping[str, Sequence[SearchStrategy[Any]] | Operation], threads: int, calls: int
) -> SearchStrategy[Any]:
    """Draws programs: the calls before, those of each thread, and those afterwards."""
    from hypothesis import strategies

    given = {name: item if isinstance(item, Operation) else Operation(item) for name, item in operations.items()}
    drawing = strategies.one_of(
        *(
            strategies.tuples(*item.arguments).map(
                lambda arguments, name=name, item=item: Invocation(name, arguments, item.call)  # type: ignore[misc]
            )
            for name, item in given.items()
        )
    )
    some = strategies.lists(drawing, max_size=2)
    thread = strategies.lists(drawing, min_size=1, max_size=calls)
    return strategies.tuples(some, strategies.lists(thread, min_size=2, max_size=threads), some)


def _searched(
    name: str,
    program: SearchStrategy[Any],
    explored: Callable[[Any, bool], tuple[str, Result]],
    programs: int,
    seed: int,
) -> Result:
    """Draw programs until one fails, and make that one small."""
    import hypothesis

    began = _seconds()
    total = 0
    unseen: dict[str, None] = {}
    failing: Any = None
    last: Result | None = None
    stopped: Exception | None = None

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=programs,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=[*hypothesis.HealthCheck],  # pyright: ignore[reportArgumentType]
        verbosity=hypothesis.Verbosity.quiet,
        report_multiple_bugs=False,
    )
    @hypothesis.given(program)
    def each(drawn_program: Any) -> None:
        nonlocal total, failing, last, stopped
        if stopped is not None or (last is not None and last.uncontrolled):  # nothing more can be said
            return
        try:
            last = explored(drawn_program, False)[1]
            unseen.update(dict.fromkeys(last.not_looked_into))
        except Exception as error:
            stopped = error
            return
        total += last.schedules
        if last.failure is not None:
            failing = drawn_program
            raise _FoundError

    try:
        each()
    except Exception:  # also a group: hypothesis runs what failed again, and says where it did not
        if stopped is None and failing is None:
            raise
    if stopped is not None:
        raise stopped
    assert last is not None
    if failing is not None:
        name, last = explored(failing, True)
        total += last.schedules
        if last.failure is None and not last.uncontrolled:
            again = f"{NOT_THE_SAME}: a program failed, and the second time it did not ({name})"
            last = replace(last, uncontrolled=again)
    kind: Any = "held" if last.failure is None else "failed"
    return replace(
        last,
        scenario=name,
        schedules=total,
        seconds=_seconds() - began,
        verdict=Verdict("incomplete" if last.uncontrolled or (unseen and kind == "held") else kind, total),
        not_looked_into=list(unseen),
    )


class _FoundError(Exception):
    """A program that fails."""


def _check(operations: Mapping[str, Any], item: Any, model: Any) -> None:
    if not operations:
        raise ScenarioError("check_linearizable: there are no operations: name at least one method")
    for name, given in operations.items():
        if isinstance(given, Operation) and given.call is not None:
            continue
        for what, of in (("object", item), ("model", model)):
            method = getattr(of, name, None)
            if not callable(method):
                raise ScenarioError(f"check_linearizable: the {what}, a {type(of).__name__}, has no method {name!r}")
            if inspect.iscoroutinefunction(method):
                raise ScenarioError(
                    f"check_linearizable: {name!r} of the {what}, a {type(of).__name__}, is a coroutine function:"
                    " the explorer orders threads, not coroutines"
                )


def _name(make: Callable[[], Any]) -> str:
    return getattr(make, "__qualname__", type(make).__name__)


def _program(threads: Sequence[Sequence[Invocation]], before: Sequence[Invocation], after: Sequence[Invocation]) -> str:
    parts = [*([before] if before else []), *threads, *([after] if after else [])]
    return " | ".join("; ".join(map(repr, part)) for part in parts)


_ASKED: Final[dict[Consistency, str]] = {
    "linearizable": "not linearizable: no order of these calls, one after the other, has these results",
    "sequentially consistent": (
        "not sequentially consistent: no order of these calls, one after the other, has these results"
        " and keeps the order of each thread"
    ),
    "quiescent": (
        "not quiescently consistent: no order of these calls, one after the other, has these results"
        " and keeps what came before a moment without calls before what came after it"
    ),
}
_ALONE: Final = "no calls overlapped, and the model has other results: this is no race, the two do not do the same"


def _message(history: Sequence[Entry], found: Explanation, consistency: Consistency) -> str:
    order = sorted(history, key=lambda entry: entry.called)
    alone = all(one.returned < two.called for one, two in pairwise(order))
    lines = [_ALONE if alone else _ASKED[consistency], "", drawn(history)]
    if found.refused is not None:
        first = f"after {', '.join(map(str, found.order))}, " if found.order else "at first, "
        lines += ["", f"closest: {first}the model's {found.refused.invocation!r} → {found.instead}"]
    return "\n".join(lines)
