"""Fusion: makes of a chain of steps the loop that a person would have written.

The problem: a pipeline of `map`, `filter`, `map` costs one function call a stage more than the loop it stands for,
when each stage is an object or a generator (1.6 times the loop; `benchmarks/fused.py`). Nested C iterators are quicker,
but can't distinguish a user's `StopIteration` from the end, nor see a `None` between two stages, nor say which stage
raised.

The answer: this module generates the loop. It parses `Step.on_next` once a class. For a chain, it puts the bodies into
one another (each `yield x` becomes the next body, with `x` as its element) and compiles the function, once for each
sequence of step classes. The functions and the state of a particular pipeline are arguments, so that a million
pipelines of one shape share one piece of code.

    for element in upstream:               # map(f) filter(p)
        result = f(element)
        if result is None: raise ...
        if p(result): yield result
        if stopped: yield PENDING

A loop has two forms. `pull` is a generator of elements. `drive` has the subscriber's `on_next` innermost, for unbounded
demand: it resumes no generator and counts nothing.

A step with an `on_complete` is the last of its loop, and the next loop iterates over it; one with other than one
`yield` has a loop to itself. So does every seventeenth step: the loop has to stay readable, and quick to compile. An
attribute that `on_next` alone writes is kept in a local variable too (`fusion.reading`). Names of a step's module are
read there, when they are used. The step's local variables get a number; one that might still hold its value of the
element before is unbound first.

Every turn of the first loop looks at `subscription.stopped`, whether or not the element came through: so a cancel
reaches a pipeline that drops everything (3.12). `stopped` is a list, empty until there is a cancel, which a loop keeps
in a local variable: where CPython does not specialise instructions, as 3.13 without a GIL, an attribute is several
times as slow to read (`benchmarks/free_threaded.py fused`). Every turn of a loop in `on_next` looks, too. A `pull` then
yields PENDING, which gives the drain a chance to look; a `drive` returns. After `subscription.turns_at_most` turns of a
loop in `on_next`, a `pull` gives way in the same manner: one element may become elements without end, and other flows
wait for the thread.

Tracebacks and debuggers show the lines of the loop, which `linecache` keeps. `unfused` calls `on_next` as it stands. It
serves where `inspect` does not find the source of a step class, and where fusing is turned off
(`REACTIVE_RUNTIME_FUSE=0`, `fusing`), so that a debugger stops at a breakpoint in `on_next`.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final, Protocol

from reactive_runtime._core.fusion.loop_writer import LoopWriter
from reactive_runtime._core.fusion.reading import StepSource, source_of
from reactive_runtime._core.fusion.step import STOP, Step
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.sentinels import sentinel

__all__ = [
    "PENDING",
    "Chain",
    "Stoppable",
    "Unstopped",
    "chain_of",
    "fusing",
    "name_source",
    "none_element",
    "pulled",
    "unfused",
]


PENDING: Final = sentinel("PENDING", __name__)
"""Yielded by an upstream that has nothing now and may have later. Every loop hands it on as it is."""


_NONE: Final = "None came out of the source: None is not an element (2.13)"


def none_element() -> TypeError:
    """The error of a source that gave None; see `name_source`."""
    return TypeError(_NONE)


def name_source(error: BaseException, source: Callable[[], str]) -> None:
    """Say which source gave None, and where, if that is the error. A loop does not know what it iterates over."""
    if type(error) is TypeError and error.args == (_NONE,):
        error.args = (_NONE.replace("the source", source()),)


def none_yielded(step: Step[Any, Any]) -> TypeError:
    """The error of a step that yields None."""
    return TypeError(f"{step}: None came out of it, and None is not an element (2.13)")


LOOP: Final = 16
"""Steps that share a loop, at most: the next one begins another, which iterates over it."""


class Stoppable(Protocol):
    """A subscription, as far as the loops know it."""

    demanded: bool
    """Whether an element can go on: the elements of `on_complete` wait for that."""
    turns_at_most: int
    """The loop gives way after one element has become so many; -1: never."""

    @property
    def stopped(self) -> Sequence[bool]:
        """Empty until the loops are to stop; one object for as long as the subscription is there."""
        ...

    def give_way(self) -> None: ...


class Signalling(Stoppable, Protocol):
    """A subscription, as far as a loop knows it that calls `on_next` itself."""

    def subscriber_raised(self, error: BaseException) -> None: ...

    def too_late(self, element: Any) -> None: ...


class Unstopped:
    """A subscription without a cancel: the thread that iterates just stops."""

    stopped: Sequence[bool] = ()
    demanded = True
    turns_at_most = -1

    def give_way(self) -> None:
        """No loop calls it."""


Pull = Callable[[Iterable[Any], Sequence[Step[Any, Any]], Stoppable], Generator[Any, None, None]]


@dataclass(frozen=True)
class Chain:
    """The loops of one sequence of step classes."""

    pull: Pull
    drive: Callable[[Iterable[Any], Sequence[Step[Any, Any]], Signalling, Callable[[Any], object]], bool] | None
    """True: the end was reached; False: stopped by `subscription.stopped`. None: there is no such loop."""


_fusing = os.environ.get("REACTIVE_RUNTIME_FUSE", "1") != "0"  # written by `fusing` alone; one store, one load


@contextmanager
def fusing(on: bool) -> Iterator[None]:
    """Whether chains of operators that begin to run inside the block, on any thread, are fused into one loop.

    Off, each operator's `on_next` is called for each element, as it is written: slower, and a debugger stops in it. The
    environment variable `REACTIVE_RUNTIME_FUSE=0` turns it off for a whole process.

    Args:
        on: False turns fusing off, True turns it on.

    Example:
        >>> from reactive_runtime import Flow
        >>> with fusing(False):
        ...     list(Flow.range(3).map(str))
        ['0', '1', '2']
    """
    global _fusing
    before, _fusing = _fusing, on
    try:
        yield
    finally:
        _fusing = before


def chain_of(kinds: tuple[type[Step[Any, Any]], ...]) -> Chain:
    """The loops for steps of these classes, in this order, each iterating over the one before."""
    return _fused(kinds) if _fusing else _UNFUSED


@functools.lru_cache(maxsize=1024)
def _fused(kinds: tuple[type[Step[Any, Any]], ...]) -> Chain:
    try:
        runs = _runs([source_of(kind) for kind in kinds])  # type: ignore[arg-type]  # mypy: a class is hashable
    except OSError:  # the source is not at hand: zipped or frozen without it
        return _UNFUSED
    loops = [(at, at + len(run), _loop(run, first=at == 0, drive=False)) for at, run in runs]
    last, run = runs[-1]
    driver = _loop(run, first=last == 0, drive=True)

    def pull(upstream: Iterable[Any], steps: Sequence[Step[Any, Any]], subscription: Stoppable) -> Any:
        for begin, end, loop in loops:
            upstream = loop(upstream, steps[begin:end], subscription)
        return upstream

    def drive(
        upstream: Iterable[Any],
        steps: Sequence[Step[Any, Any]],
        subscription: Signalling,
        on_next: Callable[[Any], object],
    ) -> bool:
        for begin, end, loop in loops[:-1]:
            upstream = loop(upstream, steps[begin:end], subscription)
        ended: bool = driver(upstream, steps[last:], subscription, on_next)
        return ended

    return Chain(pull, drive)


def _runs(stages: list[StepSource]) -> list[tuple[int, tuple[StepSource, ...]]]:
    """The index at which each loop begins, and the stages that share it. A stage that stands alone has its own."""
    runs: list[tuple[int, tuple[StepSource, ...]]] = []
    for at, stage in enumerate(stages):
        begin, run = runs[-1] if runs else (0, ())
        if run and stage.follows(run) and len(run) < LOOP:
            runs[-1] = (begin, (*run, stage))
        else:
            runs.append((at, (stage,)))
    return runs


def pulled(upstream: Iterator[Any], steps: Sequence[Step[Any, Any]], subscription: Stoppable) -> Iterator[Any]:
    """`upstream` through `steps`: fused where it can be."""
    return chain_of(tuple(map(type, steps))).pull(upstream, steps, subscription) if steps else upstream


def unfused(
    upstream: Iterable[Any], steps: Sequence[Step[Any, Any]], subscription: Stoppable
) -> Generator[Any, None, None]:
    """The chain as nested generators: slower, and the reference for the fused loop."""
    elements = _checked(upstream, subscription)
    for step in steps:
        elements = _one(elements, step, subscription)
    yield from elements


def _checked(upstream: Iterable[Any], subscription: Stoppable) -> Generator[Any, None, None]:
    for element in upstream:
        if element is None:
            raise none_element()
        yield element
        if subscription.stopped:
            yield PENDING


def _one(upstream: Iterable[Any], step: Step[Any, Any], subscription: Stoppable) -> Generator[Any, None, None]:
    for element in upstream:
        if element is PENDING:
            yield element
            continue
        if (yield from _given(step, step.on_next(element), subscription)) is STOP:
            return
        if subscription.stopped:
            yield PENDING
    if type(step).on_complete is not Step.on_complete:
        step.done = True
        for element in _given(step, step.on_complete(), _UNSTOPPED):
            while not subscription.demanded:
                step.due = element
                yield PENDING
            step.due = None
            yield element


def _given(step: Step[Any, Any], given: Any, subscription: Stoppable) -> Generator[Any, None, Any]:
    """The elements that one of its methods yields; a plain function yields none."""
    if not inspect.isgenerator(given):
        return given
    turns = 0
    while True:
        try:
            element = next(given)
        except StopIteration as end:
            return end.value
        if element is None:
            raise none_yielded(step)
        yield element
        turns += 1
        if turns == subscription.turns_at_most:
            turns = 0
            subscription.give_way()
            yield PENDING


def _driven(
    upstream: Iterable[Any], steps: Sequence[Step[Any, Any]], subscription: Signalling, on_next: Callable[[Any], object]
) -> bool:
    """`drive`, over the nested generators."""
    for element in unfused(upstream, steps, subscription):
        if element is PENDING:
            return False
        if subscription.stopped:
            subscription.too_late(element)
            return False
        try:
            on_next(element)
        except BaseException as error:
            subscription.subscriber_raised(error)
            return False
        if subscription.stopped:
            return False  # on_next may cancel
    return True


_UNFUSED: Final = Chain(unfused, None)
_UNSTOPPED: Final = Unstopped()


# -- writing a loop -------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _loop(stages: tuple[StepSource, ...], *, first: bool, drive: bool) -> Callable[..., Any]:
    """The loop of stages that share one; see `LoopWriter`."""
    writer = LoopWriter(stages, first=first, drive=drive)
    text = writer.text()
    title = " | ".join(stage.kind.__name__.strip("_") for stage in stages)
    filename = f"<fused {title} {'drive' if drive else 'pull'} #{_numbers()}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {
        "PENDING": PENDING,
        "none_element": none_element,
        "none_yielded": none_yielded,
        "unfused": unfused,
        "driven": _driven,
        "look_up": look_up,
        **writer.names,
    }
    exec(compiled(text, filename), namespace)  # the text is made of our own methods only
    loop: Callable[..., Any] = namespace["loop"]
    return loop


_numbers = primitives.tickets()


def compiled(source: str, filename: str) -> CodeType:
    """The code of a loop. A schedule explorer puts another compiler here."""
    return compile(source, filename, "exec")


def forget() -> None:
    """Write the loops anew from now on."""
    _fused.cache_clear()
    _loop.cache_clear()


def look_up(names: Any, name: str) -> Any:
    """A name of a module that it did not have when the loop was written."""
    try:
        return (names if isinstance(names, dict) else vars(names))[name]
    except KeyError:
        raise NameError(f"name {name!r} is not defined", name=name) from None
