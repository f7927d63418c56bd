"""Fusion: from a chain of steps, the loop that a person would have written.

The problem: a pipeline of `map`, `filter`, `map` costs one function call a stage more than the loop it stands
for, when each stage is an object or a generator (1.6 times the loop; `benchmarks/fused.py`). Nested C iterators
are quicker, but can't tell a user's `StopIteration` from the end, nor see a `None` between two stages, nor say
which stage raised.

The answer: the loop is generated. `Step.on_next` is parsed once a class; for a chain, the bodies are put into one
another (each `yield x` becomes the next body, with `x` as its element) and the function is compiled, once for
each sequence of step classes. The functions and the state of a particular pipeline are arguments, so that a
million pipelines of one shape share one piece of code.

    for element in upstream:               # map(f) filter(p)
        result = f(element)
        if result is None: raise ...
        if p(result): yield result
        if stopped: yield PENDING

Two forms are made. `pull` is a generator of elements. `drive` is the same loop with the subscriber's `on_next`
innermost, for unbounded demand: no generator is resumed and nothing is counted.

A step with an `on_complete` is the last of its loop, and the next loop iterates over it; one with other than one
`yield` has a loop to itself. So does every seventeenth step, since what is generated has to stay readable, and quick to
compile. What an operator remembers from element to element is kept in a local variable too, where `on_next` alone
writes it (`fusion.reading`). Names of a step's module are read there, when they are used; its local variables get a
number, and where one might still hold what it held for the element before, it is unbound first.

Every turn of the first loop looks at `subscription.stopped`, whether or not the element came through: a cancel
reaches a pipeline that drops everything (3.12). It is a list, which is empty until there is a cancel, and which a loop
keeps in a local variable: where CPython does not specialise instructions, as 3.13 without a GIL, an attribute is
several times as slow to read (`benchmarks/free_threaded.py fused`). Every turn of a loop in `on_next` looks, too. A
`pull` then yields PENDING, which gives the drain a chance to look; a `drive` returns. After
`subscription.turns_at_most` turns of a loop in `on_next`, a `pull` gives way in the same manner: what one element
becomes may have no end, and other flows wait for the thread.

What is generated can be read: it is kept in `linecache`, so that tracebacks and debuggers show its lines.
Assumed: the source of the step classes can be found (`inspect`); where it can't, `unfused` serves instead. It also
serves where fusing is turned off (`REACTIVE_RUNTIME_FUSE=0`, `fusing`): `on_next` is then called as it stands, so that
a breakpoint in it is hit.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final, Protocol

from reactive_runtime._core.fusion.reading import (
    Method,
    Source,
    captured,
    is_attribute_of_self,
    is_builtin,
    own_names,
    source_of,
)  # fmt: skip
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
    """What the loops see of a subscription."""

    demanded: bool
    """Whether an element can go on: what `on_complete` gives waits for it."""
    turns_at_most: int
    """After so many elements that one has become it is time to give way; -1: never."""

    @property
    def stopped(self) -> Sequence[bool]:
        """Empty until the loops are to stop; one object for as long as the subscription is there."""
        ...

    def give_way(self) -> None: ...


class Signalling(Stoppable, Protocol):
    """What a loop that calls `on_next` itself sees of a subscription."""

    def subscriber_raised(self, error: BaseException) -> None: ...

    def too_late(self, element: Any) -> None: ...


class Unstopped:
    """Stands in where there is no cancel: the thread that iterates just stops."""

    stopped: Sequence[bool] = ()
    demanded = True
    turns_at_most = -1

    def give_way(self) -> None:
        """It is never asked to."""


Pull = Callable[[Iterable[Any], Sequence[Step[Any, Any]], Stoppable], Generator[Any, None, None]]


@dataclass(frozen=True)
class Chain:
    """What was made of one sequence of step classes."""

    pull: Pull
    drive: Callable[[Iterable[Any], Sequence[Step[Any, Any]], Signalling, Callable[[Any], object]], bool] | None
    """True: the end was reached; False: stopped by `subscription.stopped`. None: can't be had here."""


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
        runs = _runs([_Stage.of(kind) for kind in kinds])  # type: ignore[arg-type]  # mypy: a class is hashable
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


def _runs(stages: list[_Stage]) -> list[tuple[int, tuple[_Stage, ...]]]:
    """Where each loop begins, and the stages that share it. A stage that stands alone has one to itself."""
    runs: list[tuple[int, tuple[_Stage, ...]]] = []
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
    """The chain as nested generators: slower, and the meaning that the fused loop has to keep."""
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
    """What one of its methods gives: a generator's elements, or, of a plain function, nothing."""
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


# -- reading a step -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Stage:
    """A step class, read."""

    kind: type[Step[Any, Any]]
    source: Source

    @property
    def on_next(self) -> Method:
        return self.source.on_next

    @property
    def on_complete(self) -> Method | None:
        return self.source.on_complete

    @property
    def alone(self) -> bool:
        """Whether it needs a loop of its own."""
        return sum(isinstance(node, ast.Yield) for node in ast.walk(self.on_next.tree)) != 1

    @property
    def loops(self) -> bool:
        """Whether one element may become several, in a loop of its own making."""
        return any(isinstance(node, ast.For | ast.While) for node in ast.walk(self.on_next.tree))

    @property
    def stops(self) -> bool:
        """Whether it may end the stream."""
        return any(isinstance(node, ast.Return) for node in ast.walk(self.on_next.tree))

    def follows(self, run: tuple[_Stage, ...]) -> bool:
        """Whether it can share the loop of those before it."""
        if self.alone or run[-1].alone or run[-1].on_complete is not None:
            return False
        # Where one of them ends the stream, what `on_complete` yields is due: the loop is left, which must be the outer
        # one.
        return self.on_complete is None or not (any(item.stops for item in run) and any(item.loops for item in run))

    @staticmethod
    @functools.cache
    def of(kind: type[Step[Any, Any]]) -> _Stage:
        return _Stage(kind, source_of(kind))


# -- writing a loop -------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _loop(stages: tuple[_Stage, ...], *, first: bool, drive: bool) -> Callable[..., Any]:
    """The loop of stages that share one; `first`: over the source itself; `drive`: with on_next innermost."""
    return _Writer(stages, first=first, drive=drive).function()


_numbers = primitives.tickets()


def compiled(source: str, filename: str) -> CodeType:
    """The code of a loop. A schedule explorer puts another compiler here."""
    return compile(source, filename, "exec")


def forget() -> None:
    """Write the loops anew from now on."""
    _fused.cache_clear()
    _loop.cache_clear()


class _Writer:
    """Writes one loop."""

    def __init__(self, stages: tuple[_Stage, ...], *, first: bool, drive: bool) -> None:
        self.stages = stages
        self.first = first
        self.drive = drive
        self.namespace: dict[str, Any] = {
            "PENDING": PENDING,
            "none_element": none_element,
            "none_yielded": none_yielded,
            "unfused": unfused,
            "driven": _driven,
            "look_up": look_up,
        }

    def function(self) -> Callable[..., Any]:
        source = "\n".join(self._lines())
        title = " | ".join(stage.kind.__name__.strip("_") for stage in self.stages)
        filename = f"<fused {title} {'drive' if self.drive else 'pull'} #{_numbers()}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        exec(compiled(source, filename), self.namespace)  # the text is made of our own methods only
        loop: Callable[..., Any] = self.namespace["loop"]
        return loop

    def _lines(self) -> list[str]:
        element = self._element(0)
        lines = [
            f"def loop(upstream, steps, subscription{', on_next' if self.drive else ''}):",
            *(f"    {line}" for line in self._prologue()),
            f"    for {element} in upstream:",
            *(f"        {line}" for line in (*self._head(element), *self._inlined().splitlines(), *self._tail())),
        ]
        last = len(self.stages) - 1
        end = self.stages[last].on_complete
        if end is not None:
            lines += [
                f"    s{last}.done = True",
                *(f"    {line}" for line in self._rewritten(last, end, self._sink_at_end).splitlines()),
            ]
        return [*lines, "    return True"] if self.drive else lines

    def _prologue(self) -> list[str]:
        """The steps, and those of their attributes that are kept in local variables."""
        lines = ["stopped = subscription.stopped", *(f"s{index} = steps[{index}]" for index in range(len(self.stages)))]
        if not self.drive:
            lines.append("turns, at_most = 0, subscription.turns_at_most")
        kept = [
            f"    s{index}_{name} = s{index}.{name}"
            for index, stage in enumerate(self.stages)
            for name in sorted(stage.source.constants | stage.source.memory)
        ]
        if not kept:
            return lines
        if self.drive:
            otherwise = ["    return driven(upstream, steps, subscription, on_next)"]
        else:
            otherwise = ["    yield from unfused(upstream, steps, subscription)", "    return"]
        # An attribute that only some runs of __init__ assign: as it stands, `on_next` may never read it.
        return [*lines, "try:", *kept, "except AttributeError:", *otherwise]

    def _head(self, element: str) -> list[str]:
        lines = [f"if {element} is None:", "    raise none_element()"] if self.first else []
        if not self.drive:
            lines += [f"if {element} is PENDING:", "    yield PENDING", "    continue"]
        elif not self.first:  # the loop before has seen that the subscription is to stop
            lines += [f"if {element} is PENDING:", "    return False"]
        return lines

    def _tail(self) -> list[str]:
        return self._look().splitlines() if self.first else []

    def _look(self) -> str:
        """At the end of a turn: is there an end to it?"""
        return f"if stopped:\n    {'return False' if self.drive else 'yield PENDING'}\n"

    def _look_inside(self) -> str:
        """`_look`, in a loop of `on_next`."""
        if self.drive:
            return self._look()
        return (
            "turns += 1\nif stopped or turns == at_most:\n"
            "    turns = 0\n    subscription.give_way()\n    yield PENDING\n"
        )

    def _element(self, index: int) -> str:
        arguments = self.stages[index].on_next.tree.args
        return f"v{index}_{[*arguments.posonlyargs, *arguments.args][1].arg}"

    def _inlined(self) -> str:
        """The bodies of the stages, from the last to the first, each put into the one before."""
        into = self._sink
        text = ""
        for index in reversed(range(len(self.stages))):
            text = self._rewritten(index, self.stages[index].on_next, into)
            into = functools.partial(_bound_and_run, self._element(index), text)
        return text

    def _rewritten(self, index: int, method: Method, into: Sink) -> str:
        stage = self.stages[index]
        ends_later = index < len(self.stages) - 1 and self.stages[-1].on_complete is not None
        stopped = ast.Break() if ends_later else ast.Return(ast.Constant(True) if self.drive else None)
        module = f"g{index}" if method is stage.on_next else f"g{index}_end"
        self.namespace[module] = names_of(method.scope)
        look = self._look_inside() if method is stage.on_next else ""
        rename = _Rename(index, method, stage, module, self.namespace[module], into, stopped, look)
        # A method begins with its variables unbound; the loop's may still have what they held for the last element.
        body: list[ast.stmt] = []
        for name in method.loose:
            body += ast.parse(f"v{index}_{name} = None\ndel v{index}_{name}").body
        for statement in method.tree.body:
            rewritten = rename.visit(copy.deepcopy(statement))
            body.extend(rewritten if isinstance(rewritten, list) else [rewritten])
        return ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))

    def _sink(self, value: ast.expr) -> list[ast.stmt]:
        """What the last stage's `yield` becomes."""
        if not self.drive:
            return [ast.Expr(ast.Yield(value))]
        named = [] if isinstance(value, ast.Name) else [ast.Assign([ast.Name("given", ast.Store())], value)]
        element = value.id if isinstance(value, ast.Name) else "given"
        # `try` costs nothing until something is raised, and tells the subscriber's fault from an operator's.
        text = (
            f"if stopped:\n    subscription.too_late({element})\n    return False\n"
            f"try:\n    on_next({element})\n"
            "except BaseException as error:\n    subscription.subscriber_raised(error)\n    return False\n"
        )
        if not self.first or any(stage.loops or stage.alone or stage.on_complete is not None for stage in self.stages):
            text += "if stopped:\n    return False"  # the loop's end comes later, or never looks
        return [*named, *ast.parse(text).body]

    def _sink_at_end(self, value: ast.expr) -> list[ast.stmt]:
        """What a `yield` of `on_complete` becomes.

        It may be reached by looking for the end, and an element takes demand.
        """
        if self.drive:
            return self._sink(value)
        step = f"s{len(self.stages) - 1}"
        text = (
            f"while not subscription.demanded:\n    {step}.due = given\n    yield PENDING\n"
            f"{step}.due = None\n"
            "yield given"
        )
        return [ast.Assign([ast.Name("given", ast.Store())], value), *ast.parse(text).body]


def names_of(scope: dict[str, Any]) -> Any:
    """The module whose names these are; the names themselves, where they are no module's."""
    module = sys.modules.get(scope.get("__name__", ""))
    return module if getattr(module, "__dict__", None) is scope else scope


def look_up(names: Any, name: str) -> Any:
    """A name of a module that it did not have when the loop was written."""
    try:
        return (names if isinstance(names, dict) else vars(names))[name]
    except KeyError:
        raise NameError(f"name {name!r} is not defined", name=name) from None


Sink = Callable[[ast.expr], list[ast.stmt]]
"""From the element that is yielded, the statements that work on it."""


def _bound_and_run(name: str, body: str, value: ast.expr) -> list[ast.stmt]:
    """`name = value`, then the body that works on it."""
    return [ast.Assign([ast.Name(name, ast.Store())], value), *ast.parse(body).body]


class _Rename(ast.NodeTransformer):
    """Gives a stage's names a number of their own, and puts the next body where it yields."""

    def __init__(
        self,
        index: int,
        method: Method,
        stage: _Stage,
        module: str,
        names: Any,
        into: Sink,
        stopped: ast.stmt,
        look: str,
    ) -> None:
        self.index = index
        self.method = method
        self.kept = stage.source.constants | stage.source.memory
        self.module = module
        self.names = names
        self.into = into
        self.stopped = stopped
        self.look = look
        self.scopes: list[tuple[set[str], bool]] = []  # of comprehensions and lambdas: their own names; is it a lambda
        self.later = 0  # inside of a lambda, which may run later: attributes are read as they are then

    # -- names ---------------------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> ast.expr:
        name = node.id
        for own, is_lambda in reversed(self.scopes):
            if name in own:
                return node if is_lambda else ast.Name(f"v{self.index}_{name}", node.ctx)
        if name == "self":
            return ast.Name(f"s{self.index}", node.ctx)
        if name in self.method.names:
            return ast.Name(f"v{self.index}_{name}", node.ctx)
        module = ast.Name(self.module, ast.Load())
        if isinstance(self.names, dict):
            known = name in self.names
            there: ast.expr = ast.Subscript(module, ast.Constant(name), node.ctx)
        else:
            known = hasattr(self.names, name)
            there = ast.Attribute(module, name, node.ctx)
        if known:
            return there
        if is_builtin(name):
            return node
        return ast.Call(ast.Name("look_up", ast.Load()), [module, ast.Constant(name)], [])

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        return self._numbered(node, "name")

    def visit_MatchAs(self, node: ast.MatchAs) -> ast.AST:
        return self._numbered(node, "name")

    def visit_MatchStar(self, node: ast.MatchStar) -> ast.AST:
        return self._numbered(node, "name")

    def visit_MatchMapping(self, node: ast.MatchMapping) -> ast.AST:
        return self._numbered(node, "rest")

    def _numbered(self, node: ast.AST, field: str) -> ast.AST:
        name = getattr(node, field)
        if name is not None:
            setattr(node, field, f"v{self.index}_{name}")
        return self.generic_visit(node)

    def _comprehension(self, node: Any) -> ast.expr:
        first = node.generators[0]
        outside = self.visit(first.iter)  # before any of its names is there
        first.iter = ast.Constant(None)
        self.scopes.append((own_names(node), False))
        node = self.generic_visit(node)
        self.scopes.pop()
        first.iter = outside
        assert isinstance(node, ast.expr)
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = _comprehension  # noqa: N815

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        variables = self._variables(captured(node, self.method.names))
        self.later += 1
        rewritten = self._comprehension(node)
        self.later -= 1
        return _handed(variables, rewritten)

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        variables = self._variables(captured(node, self.method.names))
        node.args = self.visit(node.args)
        self.scopes.append((own_names(node), True))
        self.later += 1
        node.body = self.visit(node.body)
        self.later -= 1
        self.scopes.pop()
        return _handed(variables, node)

    def _variables(self, names: set[str]) -> list[str]:
        return [f"v{self.index}_{name}" for name in sorted(names)]

    # -- attributes ----------------------------------------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if self._is_kept(node) and isinstance(node.ctx, ast.Load) and not self.later:
            return ast.Name(f"s{self.index}_{node.attr}", ast.Load())
        return self.generic_visit(node)

    def _is_kept(self, node: ast.expr) -> bool:
        return is_attribute_of_self(node) and node.attr in self.kept

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """`self.x = …` writes the local too."""
        value = self.visit(node.value)
        targets: list[ast.expr] = []
        for target in node.targets:
            kept = self._is_kept(target)
            targets.append(self.visit(target))
            if kept:
                assert isinstance(target, ast.Attribute)
                targets.append(ast.Name(f"s{self.index}_{target.attr}", ast.Store()))
        return ast.Assign(targets, value)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """`self.x += …` is done with the local, and then stored."""
        target = node.target
        if not self._is_kept(target):
            return self.generic_visit(node)
        assert isinstance(target, ast.Attribute)
        local = f"s{self.index}_{target.attr}"
        there = ast.Attribute(ast.Name(f"s{self.index}", ast.Load()), target.attr, ast.Store())
        return [
            ast.AugAssign(ast.Name(local, ast.Store()), node.op, self.visit(node.value)),
            ast.Assign([there], ast.Name(local, ast.Load())),
        ]

    # -- what goes on --------------------------------------------------------------------------------------------

    def visit_Expr(self, node: ast.Expr) -> Any:
        if not isinstance(node.value, ast.Yield):
            return self.generic_visit(node)
        assert node.value.value is not None
        something = isinstance(node.value.value, ast.Tuple | ast.List | ast.JoinedStr | ast.Constant)
        value = self.visit(node.value.value)
        if something or (node.lineno, node.col_offset) in self.method.sure:
            return self.into(value)
        # 2.13: the one place for what a step may yield, which it has not looked at itself.
        name = f"y{self.index}"
        check = f"if {name} is None:\n    raise none_yielded(s{self.index})"
        assign = ast.Assign([ast.Name(name, ast.Store())], value)
        return [assign, *ast.parse(check).body, *self.into(ast.Name(name, ast.Load()))]

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        return self.stopped

    def visit_For(self, node: ast.For) -> ast.AST:
        return self._looping(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._looping(node)

    def visit_Continue(self, node: ast.Continue) -> list[ast.stmt]:
        return [*ast.parse(self.look).body, node]

    def _looping(self, node: ast.For | ast.While) -> ast.AST:
        """One element may become any number, and all of them may be dropped further down: each turn looks (3.12)."""
        self.generic_visit(node)
        node.body += ast.parse(self.look).body
        return node


def _handed(variables: list[str], function: ast.expr) -> ast.expr:
    """A lambda that has the variables as they are now: `(lambda v0_x: function)(v0_x)`."""
    if not variables:
        return function
    arguments = ast.arguments([], [ast.arg(variable) for variable in variables], None, [], [], None, [])
    return ast.Call(ast.Lambda(arguments, function), [ast.Name(variable, ast.Load()) for variable in variables], [])
