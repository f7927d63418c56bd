"""`Pipeline`: a chain of operators without a source, for a `Flow` here and for a DataFrame elsewhere."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from reactive_runtime.flow import Flow

__all__ = ["Pipeline"]

A = TypeVar("A")
B = TypeVar("B")


class Pipeline(Generic[A, B]):
    """Operators of `Flow`, by their names, to be applied later, any number of times: immutable, and can be pickled.

    Whatever `Flow` has as a method that makes a flow of a flow, this has. Arguments are kept as they are, so executors
    should be such as can be pickled (`travelling.Threads`, `travelling.Timers`) where the pipeline is to travel.

    >>> from reactive_runtime import Flow
    >>> odd = Pipeline[int, str]().filter(lambda n: n % 2).map(str)
    >>> list(odd(Flow.range(6)))
    ['1', '3', '5']
    >>> odd
    <Pipeline filter map>
    """

    __slots__ = ("_calls",)

    def __init__(self, *calls: tuple[str, tuple[Any, ...], dict[str, Any]]) -> None:
        """Empty; `calls` are for the operators."""
        self._calls = calls

    def __call__(self, flow: Flow[A], /) -> Flow[B]:
        """The flow, through the operators. `flow.transform(pipeline)` is the same."""
        it: Any = flow
        for name, arguments, named in self._calls:
            it = getattr(it, name)(*arguments, **named)
        return it  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Callable[..., Pipeline[A, Any]]:
        if name.startswith("_") or not _is_operator(getattr(Flow, name, None)):
            raise AttributeError(f"Pipeline has no {name!r}, since Flow has no such operator")

        def then(*arguments: Any, **named: Any) -> Pipeline[A, Any]:
            return Pipeline(*self._calls, (name, arguments, named))

        then.__name__, then.__doc__ = name, getattr(Flow, name).__doc__
        return then

    def __repr__(self) -> str:
        return f"<Pipeline {' '.join(name for name, _, _ in self._calls)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Pipeline, self._calls


def _is_operator(it: object) -> bool:
    """Whether it makes a flow of a flow: sources take none, and sinks make none."""
    if not inspect.isfunction(it):
        return False
    signature = inspect.signature(it)
    first = next(iter(signature.parameters.values()), None)
    return first is not None and "Flow[" in str(first.annotation) and "Flow[" in str(signature.return_annotation)
