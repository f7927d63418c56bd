"""The kinds of part that a declaration has. Each class says what is made of it, and where.

A model of lists is an `Entry` (`models/running.py`), one of times a `Timed` (`models/timed.py`). A picture is an
`Example` (`docs/_site/recording.py`), as it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, ClassVar

from docs._site.recording import Example
from reactive_runtime import Flow
from reactive_runtime.executors import VirtualTimeExecutor


@dataclass(frozen=True, kw_only=True)
class Part:
    """Something that is known of an operator."""

    title: ClassVar[str] = "{}, {}"
    """Its name in tests, made of the operator and the variant."""
    variant: str = ""
    """Tells several parts of one kind apart."""
    name: str = ""
    """The title: `table.parts` gives it."""


@dataclass
class Place:
    """The pool, clock and executor that an operator of a `Case` may need."""

    pool: Executor
    clock: VirtualTimeExecutor


@dataclass(frozen=True)
class Case(Part):
    """The elements that an operator makes of 0 to 9: the grid runs it under every demand, cancel and failure."""

    title = "{} ({})"
    apply: Callable[[Flow[int], Place], Any]
    expected: list[Any]
    ordered: bool = True
    survives: list[Any] | None = None
    """The elements that it makes of a source that gives 0, 1, 2 and fails, if it does not fail too. None: it fails."""
    lossy: bool = False
    """The elements that come through depend on which thread is quicker."""


def case(apply: Callable[[Flow[int]], Any], expected: list[Any], **more: Any) -> Case:
    """A case that needs neither a pool nor a clock."""
    return Case(lambda flow, place: apply(flow), expected, **more)


@dataclass(frozen=True)
class SourceCase(Part):
    """A source, and its elements: the grid runs it under every demand."""

    make: Callable[[Place], Flow[Any]]
    expected: list[Any]


@dataclass(frozen=True)
class SinkCase(Part):
    """A sink: the grid looks whether it runs a flow to its end."""

    run: Callable[[Flow[int]], Any]


@dataclass(frozen=True)
class Plain(Part):
    """The model of a synchronous operator: of some numbers, and one more for its argument, what comes out."""

    title = "{} {}"
    apply: Callable[[Flow[int], int], Flow[Any]]
    model: Callable[[list[int], int], list[Any]]


@dataclass(frozen=True)
class SourceModel(Part):
    """The model of a source: of some numbers that it is made of, what comes out."""

    make: Callable[[list[int]], Flow[Any]]
    model: Callable[[list[int]], list[Any]]


@dataclass(frozen=True)
class SinkModel(Part):
    """A sink that returns all elements, or the last one, or raises the error."""

    run: Callable[[Flow[int]], Any]
    last: bool = False


@dataclass(frozen=True)
class Race(Part):
    """A combinator for the explorer: its parameters say what it gets, sources `a` and `b` and a clock `t`.

    Two threads move these, in every order with few preemptions: `explore/racing.py`.
    """

    operator: Callable[..., Any]


@dataclass(frozen=True)
class OnPool(Part):
    """A flow with a pool or a timer of its own, of 0, 1, … so many `elements`: `explore/own_code.py` samples it."""

    factory: Callable[[], Any]
    elements: int | None
    """None: not known, because it fails."""
    ascending: bool = True
    """Each element is larger than the one before."""


@dataclass(frozen=True)
class Typed(Part):
    """Calls of `assert_type`, which mypy and Pyright check: nothing calls the function.

    An operator needs none if its return type follows from the elements of its source alone, as `Flow[list[T_co]]` does.
    """

    checked: Callable[[], object]


@dataclass(frozen=True)
class Maker(Part):
    """An operator that makes inner flows, in the grid of `nesting/cells.py`."""

    title = "{1}"
    apply: Callable[[Flow[int]], Flow[Flow[int]]]


@dataclass(frozen=True)
class Consumer(Part):
    """An operator that consumes inner flows, each of which a function makes, in the same grid."""

    apply: Callable[..., Flow[Any]]
    concurrent: bool = False
    """It is tried with several values of `concurrency` and of `delay_error`."""


@dataclass(frozen=True)
class Without(Part):
    """A kind of part that an operator does not have, and why."""

    kind: type[Any]
    reason: str


Declared = dict[str, list[Part | Example]]
