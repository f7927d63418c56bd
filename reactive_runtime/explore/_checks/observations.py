"""What holds not in each schedule, but over all of an exploration: conditions that come true, places reached, outcomes.

An invariant says what no schedule may show. These say what some schedule has to show, so that an exploration which
never came to the interesting case does not pass as one that did.

The one exploration of the process that is running is where calls from the program under it are noted: one thread runs
at a time, and none is changed at in here.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final, Literal, get_args

from reactive_runtime._support.shown import shown
from reactive_runtime.errors import ScenarioError

__all__ = [
    "Expectation",
    "NeverObserved",
    "Observations",
    "Outcome",
    "check_outcomes",
    "equal",
    "expectation",
    "expected_in",
    "observing",
    "reachable",
    "sometimes",
    "table_of",
    "unreachable",
]

Expectation = Literal["acceptable", "interesting", "forbidden"]

EXPECTATIONS: Final[tuple[Expectation, ...]] = get_args(Expectation)

MOST: Final = 1_000
"""Different outcomes of an exploration, at most."""


class NeverObserved(AssertionError):  # noqa: N818
    """What `assert_holds` raises where no schedule failed, and none has shown what some schedule has to show."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row of the table of outcomes."""

    value: Any
    """What the scenario's `outcome` returned."""
    expectation: Expectation
    schedules: int
    """Under how many schedules it was seen; 0 where it was listed and never seen."""
    token: str | None = None
    """Replays one of these schedules; only of outcomes that are interesting."""


class Observations:
    """What the schedules of one exploration have shown."""

    def __init__(self, expected: Iterable[str] = ()) -> None:
        self.seen: dict[str, bool] = dict.fromkeys(expected, False)
        """For each message whether its condition was true in some schedule."""
        self.outcomes: list[tuple[Any, int, list[int]]] = []
        """Each outcome, under how many schedules it was seen, and the last of them."""
        self.last: Any = None
        """The outcome of the last schedule."""
        self.reached: AssertionError | None = None
        """The first error of `unreachable` in this schedule: the program may have caught it."""

    def note(self, message: str, condition: bool) -> None:
        """The program asks that this is true sometimes."""
        self.seen[message] = self.seen.get(message, False) or condition

    def ended(self, outcome: Any, schedule: Sequence[int]) -> None:
        """A schedule came to its end with this outcome."""
        self.last = outcome
        for at, (value, times, _) in enumerate(self.outcomes):
            if equal(value, outcome):
                self.outcomes[at] = (value, times + 1, list(schedule))
                return
        if len(self.outcomes) == MOST:
            raise ScenarioError(
                f"more than {MOST} different outcomes, of which {shown(outcome)} is one: `outcome` is for a few values,"
                " equal where schedules do the same"
            )
        self.outcomes.append((outcome, 1, list(schedule)))

    def never(self, schedules: int, *, all_of_them: bool) -> list[str]:
        """What no schedule has shown, a line each."""
        within = "any schedule" if all_of_them else f"{schedules} schedules"
        return [f"{message!r} was not true in {within}" for message, seen in self.seen.items() if not seen]


_observing: list[Observations] = []
"""Of the exploration that runs, of which a process has one at a time (`session._exploring`); empty where none does."""


@contextmanager
def observing(observations: Observations) -> Iterator[None]:
    """Note what the program observes while the block runs."""
    _observing.append(observations)
    try:
        yield
    finally:
        _observing.clear()


def sometimes(condition: object, message: str) -> None:
    """Ask that a condition is true in at least one schedule of the exploration.

    Where it is not, the exploration does not hold. The calls that stand in the methods of the scenario itself, with
    the message as a literal, are known also where no schedule comes to them; others from the first call on. Outside of
    an exploration nothing happens.

    Args:
        condition: Is judged by its truth.
        message: Tells it from others, and is shown where it was never true.

    Example:
        >>> from reactive_runtime.explore import explore, sometimes
        >>> class Turns:
        ...     def __init__(self): self.last = None
        ...     def actor_a(self): self.last = "a"
        ...     def actor_b(self): self.last = "b"
        ...     def at_end(self): sometimes(self.last == "c", "c is last")
        >>> explore(Turns).never
        ["'c is last' was not true in any schedule"]

    Origin:
        Assertions over many runs, as fuzzers and deterministic simulators have them.
    """
    if _observing:
        _observing[0].note(message, bool(condition))


def reachable(message: str) -> None:
    """Ask that at least one schedule of the exploration comes to this line.

    Args:
        message: Tells it from others, and is shown where no schedule came here.
    """
    sometimes(True, message)


def unreachable(message: str) -> None:
    """Fail the schedule that comes to this line, also where the program catches the error or keeps it in a future.

    Outside of an exploration it raises the error.

    Args:
        message: What is wrong.

    Raises:
        AssertionError: Always.
    """
    error = AssertionError(f"{message} (this line was to be unreachable)")
    if _observing and _observing[0].reached is None:
        _observing[0].reached = error
    raise error


def check_outcomes(expected: Mapping[Any, Expectation] | None) -> None:
    """Refuse a table of outcomes that is none."""
    for value, expectation in (expected or {}).items():
        if expectation not in EXPECTATIONS:
            raise ScenarioError(
                f"outcomes: {shown(value)} must be one of {', '.join(EXPECTATIONS)}, not {shown(expectation)}"
            )


def expectation(expected: Mapping[Any, Expectation] | None, outcome: Any) -> Expectation:
    """What is expected of the outcome: what is not listed is forbidden, unless nothing is."""
    if expected is None:
        return "acceptable"
    for value, kind in expected.items():
        if equal(value, outcome):
            return kind
    return "forbidden"


def equal(one: Any, other: Any) -> bool:
    """Whether two outcomes are the same: 1 is neither True nor 1.0."""
    return type(one) is type(other) and bool(one == other)


def table_of(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as a table, a line each."""
    values = ["outcome", *(shown(item.value, 40) for item in outcomes)]
    counts = ["schedules", *(f"{item.schedules:,}" for item in outcomes)]
    kinds = ["expectation", *(item.expectation for item in outcomes)]
    wide = max(map(len, values))
    long = max(map(len, counts))
    return "\n".join(
        f"{value:{wide}}  {count:>{long}}  {kind}" for value, count, kind in zip(values, counts, kinds, strict=True)
    )


# -- what stands in the scenario ------------------------------------------------------------------------------


def expected_in(parts: Iterable[Any]) -> list[str]:
    """The messages of `sometimes` and `reachable` that stand in these functions, and in methods of these classes."""
    found: dict[str, None] = {}
    for function in _functions(parts):
        names = {
            name
            for name in function.__code__.co_names
            if any(function.__globals__.get(name) is item for item in (sometimes, reachable))
            or name in ("sometimes", "reachable")
        }
        if not names:
            continue
        for node in _calls(function):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
            if name in names and isinstance(message := _message(node), str):
                found[message] = None
    return list(found)


def _functions(parts: Iterable[Any]) -> Iterator[FunctionType]:
    for part in parts:
        function = inspect.unwrap(getattr(part, "__func__", part)) if callable(part) else part
        if inspect.isclass(function):
            yield from (
                value for base in function.__mro__ for value in vars(base).values() if isinstance(value, FunctionType)
            )
        elif isinstance(function, FunctionType):
            yield function


def _calls(function: Callable[..., Any]) -> Iterator[ast.Call]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # there is no source, or only a part of a line
        return
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _message(call: ast.Call) -> Any:
    given = [*call.args[-1:], *(keyword.value for keyword in call.keywords if keyword.arg == "message")]
    return given[-1].value if given and isinstance(given[-1], ast.Constant) else None
