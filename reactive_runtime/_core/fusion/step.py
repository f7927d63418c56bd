"""The base of a synchronous operator: for each element, emit any number of elements.

A step is written once, as a generator method. `fusion.fuse` makes of it the loop that runs: it puts the steps of a
pipeline into one another, and every `yield` becomes the next step's body. The method as it stands is the reference that
a property test holds the fused loop to, and the fallback where source code is not at hand.

To write one:

- `on_next(self, element)` yields what goes downstream; `return STOP` ends the stream after what was yielded.
- `on_complete(self)` yields what is left when the upstream has completed; leave it out where nothing can be.
- `dispose(self)` releases what it holds, and returns the elements that are kept back, for the hook.
- State lives in `self`, made by `__init__`, or by `reset` where it is a container; each subscription works on a copy
  of its own (`copy`).
- A class that can't be put into a loop is refused when it is defined, with the line and the reason (`fusion.reading`):
  a bare `return`, `break`, `yield from`, `try` or `with` around a `yield`; `super()`, a variable of a function around
  the class, a function inside of `on_next`; an attribute that `on_next` is the first to assign; `self` handed to
  other code, which might write to it; an instance that is given an `on_next` or `on_complete` of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import AssemblyLocation
from reactive_runtime._core.failures.exits import goes_up
from reactive_runtime._core.runtime.sentinels import sentinel

__all__ = [
    "STOP",
    "Each",
    "Step",
    "describe",
    "heard_above",
    "note_end",
    "own_method",
    "release_held",
    "show_watching",
]

T = TypeVar("T")
R = TypeVar("R")


STOP: Final = sentinel("STOP", __name__)
"""Returned by `on_next`: the stream is complete, the upstream is to be cancelled."""

Each = Generator[R, None, Any]
"""The type of `on_next`: a generator, which may return STOP."""


_PACKAGE: Final = __name__.partition(".")[0]


class Step(Generic[T, R]):
    """One synchronous operator of one pipeline."""

    name: ClassVar[str]
    """The operator's name, as on `Flow`."""

    expands: ClassVar[bool] = False
    """One element may become several: the step may then hold elements back that the source has already given."""

    calls: ClassVar[bool] = True
    """It may call a user's code, which may take its time."""

    done: bool = False
    """Set before the last element is yielded, by a step that knows which one it is: completion can then follow
    at once, without waiting for more demand (2.9)."""

    due: Any = None
    """An element of `on_complete`, while it waits for demand; for the hook."""

    location: AssemblyLocation | None = None
    """The line that put it into a flow."""

    hears: Callable[[Any], object] | None = None
    """A listener to each element that is discarded further upstream."""

    watches: ClassVar[bool] = False
    """It is shown the subscription (`watch`)."""

    end: BaseException | str | None = None
    """The end of its stream: an error, or "complete". Set before `dispose`, of those that `watches`; else a cancel."""

    def __init_subclass__(cls, **more: Any) -> None:
        """SyntaxError where the step can't be fused."""
        super().__init_subclass__(**more)
        if cls.__module__.partition(".")[0] != _PACKAGE:  # ours are read when they are first used: it takes time
            from reactive_runtime._core.fusion import reading

            with suppress(OSError):  # its source is not at hand: it will not be fused
                reading.refuse(cls)

    def on_next(self, element: T) -> Each[R] | None:
        """The elements that `element` becomes."""
        raise NotImplementedError

    def on_complete(self) -> Iterator[R]:
        """The elements that are left when the upstream has completed."""
        raise NotImplementedError

    def upstream_demand(self, n: int) -> int:
        """How many elements to ask for, at most, where `n` are wanted."""
        return n

    def dispose(self) -> Iterable[object]:
        """The stream is over: release everything; return the elements accepted and not handed on, for the hook."""
        return ()

    def watch(self, drain: Any, pollable: Any, steps: Sequence[Step[Any, Any]]) -> None:
        """The subscription that it is a part of: its drain, if it has one, its pollable source, and all its steps.

        Called once, before it begins, of those that `watches`.
        """

    def holds(self) -> bool:
        """Whether something is left of an element that the source has given. Asked of those that expand."""
        return True

    @classmethod
    def loops(cls) -> bool:
        """Whether a fused loop may end with it."""
        return cls.expands or cls.on_complete is not Step.on_complete

    def reset(self) -> None:
        """Make the lists and sets that a subscription must not share with another one."""

    def copy(self) -> Self:
        """The step for a new subscription."""
        step = object.__new__(type(self))
        step.__dict__.update(self.__dict__)
        step.reset()
        return step

    def __str__(self) -> str:
        """How the step is drawn: `map(f)`."""
        return self.name


def heard_above(steps: Sequence[Step[Any, Any]], heard: dropping.Listeners) -> dropping.Listeners:
    """The listeners to elements discarded upstream of the steps; `heard`: downstream of them."""
    for step in reversed(steps):
        if step.hears is not None:
            heard = (step.hears, *heard)
    return heard


def show_watching(drain: Any, pollable: Any, steps: Sequence[Step[Any, Any]]) -> None:
    """Show the subscription to the steps that watch it. For the thread that makes it, before it begins."""
    for step in steps:
        if step.watches:
            step.watch(drain, pollable, steps)


def note_end(steps: Sequence[Step[Any, Any]], end: BaseException | str) -> None:
    """Note the end of their stream on the steps that watch it. For the owner, before they are disposed."""
    for step in steps:
        if step.watches:
            step.end = end


def own_method(step: Step[Any, Any]) -> TypeError:
    """The error of a step whose `on_next` or `on_complete` is an attribute of the instance."""
    name = "on_next" if "on_next" in step.__dict__ else "on_complete"
    return TypeError(
        f"{type(step).__qualname__}: `{name}` was assigned to an instance, and what is put into a loop is the method"
        f" of the class: define {name} there, and let it call what the instance has"
    )


def release_held(steps: Sequence[Step[Any, Any]], heard: dropping.Listeners) -> dropping.Held:
    """Close all of them; return the elements they held, for the hook, with the listeners. `heard`: downstream."""
    held: dropping.Held = []
    exit_: BaseException | None = None
    for at, step in enumerate(steps):
        try:
            kept = list(step.dispose())
        except BaseException as error:
            if exit_ is None and goes_up(error):
                exit_ = error
            else:
                dropping.error_dropped(f"{step} raised when it was closed", error)
        else:
            if step.due is not None:
                kept.append(step.due)
                step.due = None
            if kept:
                listeners = heard_above(steps[at + 1 :], heard)
                held.extend((element, listeners) for element in kept)
    if exit_ is not None:
        dropping.held_dropped(held)
        raise exit_
    return held


def describe(function: Callable[..., Any]) -> str:
    """The name a user knows a function by.

    Of an object without a name its class: a `repr` may raise, or wait for a lock, and a look from outside asks too.
    """
    if isinstance(function, partial):
        return f"partial({describe(function.func)})"
    kind = type(function)
    name: str = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or kind.__name__
    return "lambda" if name.endswith("<lambda>") else name.rpartition("<locals>.")[2]
