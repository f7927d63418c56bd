"""The base of a synchronous operator: for each element, emit any number of elements.

A step is written once, as a generator method. From it `_core.fuse` makes the loop that runs: the steps of a
pipeline are put into one another, and every `yield` becomes the next step's body. The method as it stands is
the reference that a property test holds the fused loop to, and the fallback where source code is not at hand.

To write one:

- `each(self, element)` yields what goes downstream; `return STOP` ends the stream after what was yielded.
- `end(self)` yields what is left when the upstream has completed; leave it out where nothing can be.
- State lives in `self`, made by `__init__`; each subscription works on a copy of its own (`fresh`).
- A bare `return`, `try` around a `yield`, and `yield from` are not for fusing: `fuse` refuses them when the
  step's class is first used.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Iterator
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

__all__ = ["STOP", "Each", "Ending", "Step", "describe"]

T = TypeVar("T")
R = TypeVar("R")


class Ending:
    """The type of `STOP`."""

    def __repr__(self) -> str:
        return "STOP"


STOP: Final = Ending()
"""Returned by `each`: the stream is complete, the upstream is to be cancelled."""

Each = Generator[R, None, Any]
"""What `each` is: a generator, which may return STOP."""


class Step(Generic[T, R]):
    """One synchronous operator of one pipeline."""

    name: ClassVar[str]
    """The operator's name, as on `Flow`."""

    expands: ClassVar[bool] = False
    """One element may become several: the step may then hold elements back that the source has already given."""

    done: bool = False
    """Set before the last element is yielded, by a step that knows which one it is: completion can then follow
    at once, without waiting for more demand (2.9)."""

    def each(self, element: T) -> Each[R] | None:
        """What `element` becomes."""
        raise NotImplementedError

    def end(self) -> Iterator[R]:
        """What is left over when the upstream has completed."""
        raise NotImplementedError

    def upstream_demand(self, n: int) -> int:
        """How many elements to ask for, at most, where `n` are wanted."""
        return n

    def fresh(self) -> Self:
        """The step for a new subscription."""
        return copy.copy(self)

    def __str__(self) -> str:
        """How the step is drawn: `map(f)`."""
        return self.name


def describe(function: Callable[..., Any]) -> str:
    """The name a user knows a function by."""
    name: str = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or repr(function)
    return "lambda" if name.endswith("<lambda>") else name.rpartition("<locals>.")[2]
