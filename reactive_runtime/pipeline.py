"""`Pipeline`: a chain of operators without a source, for a `Flow` here and for a DataFrame elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getattr_static
from itertools import chain
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from reactive_runtime._core.runtime.arguments import check_callable
from reactive_runtime._core.sources.naming import no_publisher
from reactive_runtime._flow import ConnectableFlow, Flow, Operators
from reactive_runtime._operators.flow_base import FlowBase
from reactive_runtime._operators.scheduling import ParallelFlow
from reactive_runtime._operators.stateful import is_stateful
from reactive_runtime._support.shown import shown

__all__ = ["Pipeline"]

A_contra = TypeVar("A_contra", contravariant=True)
B_co = TypeVar("B_co", covariant=True)
C = TypeVar("C")
D = TypeVar("D")

if TYPE_CHECKING:
    from reactive_runtime._pipeline_operators import (  # pyright: ignore[reportMissingModuleSource]  # a stub only
        PipelineOperators as _Offered,
    )
else:
    _Offered = Generic  # at run time the operators are those of `Flow`


class Pipeline(_Offered[A_contra, B_co]):
    """Operators of `Flow`, by their names, to be applied later, any number of times: immutable, and can be pickled.

    Whatever `Flow` has as a method that makes a flow of a flow, this has, with the same arguments; `parallel` makes
    rails, and is used inside of `transform`. Arguments are kept as they are, so executors
    should be such as can be pickled (`picklable.Threads`, `picklable.Timers`) where the pipeline is to travel.

    Args:
        *calls: For the operators, which add to it. A program makes an empty one: `Pipeline[int, int]()`, whose
            elements go in and come out as they are.

    Example:
        >>> from reactive_runtime import Flow
        >>> odd = Pipeline[int, int]().filter(lambda n: n % 2).map(str)
        >>> list(odd(Flow.range(6)))
        ['1', '3', '5']
        >>> odd
        <Pipeline filter map>
    """

    __slots__ = ("_calls",)

    def __init__(self, *calls: tuple[str, tuple[Any, ...], dict[str, Any]]) -> None:
        self._calls = calls

    @staticmethod
    def of(fn: Callable[[Flow[C]], Flow[D]]) -> Pipeline[C, D]:
        """The operators that `fn` calls on the flow it is given, with the types of its argument and its result.

        `fn` is called once, here, with a pipeline in place of the flow: it has the operators, no elements.

        Args:
            fn: Calls operators one after another, and returns what comes out.

        Returns:
            The pipeline of those operators.

        Raises:
            TypeError: `fn` cannot be called, or returns something else.
            AttributeError: `fn` calls a source or a sink.

        Example:
            >>> from reactive_runtime import Flow
            >>> def odd_as_text(numbers: Flow[int]) -> Flow[str]:
            ...     return numbers.filter(lambda n: n % 2).map(str)
            >>> Pipeline.of(odd_as_text)
            <Pipeline filter map>
        """
        empty: Any = Pipeline()
        made: object = check_callable("Pipeline.of", "fn", fn)(empty)
        if not isinstance(made, Pipeline):
            raise TypeError(f"Pipeline.of: fn returned {shown(made)}, and not what the operators of its argument make")
        return made

    def __call__(self, flow: Flow[A_contra], /) -> Flow[B_co]:
        """The flow, through the operators. `flow.transform(pipeline)` is the same.

        Args:
            flow: The flow that the operators are applied to.

        Returns:
            A new flow.
        """
        if not isinstance(flow, FlowBase | ParallelFlow | Pipeline):
            raise TypeError(f"{self!r}: a flow is needed, not {no_publisher(flow)}")
        item: Any = flow
        for name, arguments, named in self._calls:
            item = getattr(item, name)(*arguments, **named)
        return item  # type: ignore[no-any-return]

    @property
    def stateful(self) -> tuple[str, ...]:
        """The names of those operators of it whose result depends on more than one element, as that of `take` does.

        Where the elements are dealt out to several flows, as `spark.map_flow` does by partitions, each flow counts by
        itself. `rate_limit`, `delay` and `timeout` are not among them: they change when elements come.
        """
        return tuple(chain.from_iterable(_stateful(*call) for call in self._calls))

    if not TYPE_CHECKING:  # with it a type checker would take any name for an operator

        def __getattr__(self, name: str) -> Callable[..., Pipeline[A_contra, Any]]:
            if name.startswith("_") or not _is_operator(name):
                raise AttributeError(f"Pipeline has no {name!r}{_why_not(name)}", name=name, obj=self)

            def then(*arguments: Any, **named: Any) -> Pipeline[A_contra, Any]:
                return Pipeline(*self._calls, (name, arguments, named))

            then.__name__, then.__doc__ = name, getattr(Operators, name).__doc__
            return then

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *filter(_is_operator, dir(Operators))]

    def __repr__(self) -> str:
        return f"<Pipeline {' '.join(name for name, _, _ in self._calls)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Pipeline, self._calls


STATEFUL: Final = frozenset(name for name in dir(Operators) if is_stateful(getattr(Operators, name)))
"""Operators that make other elements of a flow than of its two halves, one after the other."""


def _stateful(name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[str, ...]:
    if name in STATEFUL:
        return (name,)
    if name in ("transform", "publish"):  # their argument is a function of flows, which may be a pipeline
        inner = next((item for item in (*arguments, *named.values()) if callable(item)), None)
        return inner.stateful if isinstance(inner, Pipeline) else ()
    return ()


def _is_operator(name: str) -> bool:
    """Whether `Flow` has an operator of that name: a source has no flow to be called on, and a sink makes none."""
    operator = isinstance(getattr_static(Operators, name, None), FunctionType) and not hasattr(FlowBase, name)
    return operator and name not in ("parallel", "partition", "balance")  # which make rails, or several flows


def _why_not(name: str) -> str:
    """The end of the error message: what has that name, and what to write instead."""
    here = f"transform(lambda flow: flow. … .{name}(…) …)"
    if name == "parallel" or (hasattr(ParallelFlow, name) and not hasattr(Flow, name)):
        return f": rails are no flow, but steps to one may use them, in one operator, {here}"
    if name in ("partition", "balance"):
        return f": it makes several flows, which one operator may bring together, {here}"
    if hasattr(Flow, name):
        return ": it begins or runs a flow, and a pipeline is applied to one that there is"
    if hasattr(ConnectableFlow, name):
        return f": what publish and replay make has it, and they are used in one operator, {here}"
    return ", since Flow has no such operator"
