"""Fusion: from a chain of steps, the loop that a person would have written.

The problem: a pipeline of `map`, `filter`, `map` costs one function call a stage more than the loop it stands
for, when each stage is an object or a generator (1.6 times the loop; `benchmarks/fused.py`). Nested C iterators
are quicker, but can't tell a user's `StopIteration` from the end, nor see a `None` between two stages, nor say
which stage raised.

The answer: the loop is generated. `Step.each` is parsed once a class; for a chain, the bodies are put into one
another (each `yield x` becomes the next body, with `x` as its element) and the function is compiled, once for
each sequence of step classes. The functions and the state of a particular pipeline are arguments, so that a
million pipelines of one shape share one piece of code.

    for element in upstream:               # map(f) filter(p)
        result = f(element)
        if result is None: raise ...
        if p(result): yield result
        if subscription._stop: yield PENDING

Two forms are made. `pull` is a generator of elements. `drive` is the same loop with the subscriber's `on_next`
at its heart, for unbounded demand: no generator is resumed and nothing is counted.

A step with an `end`, or with other than one `yield`, gets a loop of its own, and the next loop iterates over it;
so does every seventeenth step, since what is generated has to stay readable, and quick to compile.

Every turn of the first loop looks at `subscription._stop`, whether or not the element came through: a cancel
reaches a pipeline that drops everything (3.12). A `pull` then yields PENDING, which gives the drain a chance to
look; a `drive` returns.

What is generated can be read: it is kept in `linecache`, so that tracebacks and debuggers show its lines.
Assumed: the source of the step classes can be found (`inspect`); where it can't, `unfused` serves instead.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import textwrap
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final, Protocol, TypeGuard

from reactive_runtime._core import primitives
from reactive_runtime._core.step import STOP, Step

__all__ = ["PENDING", "Chain", "Stoppable", "Unstopped", "chain_of", "none_element", "pulled", "unfused"]


class Pending:
    """The type of `PENDING`."""

    def __repr__(self) -> str:
        return "PENDING"


PENDING: Final = Pending()
"""Yielded by an upstream that has nothing now and may have later. Every loop hands it on as it is."""


def none_element() -> TypeError:
    """What a source is told that gave None."""
    return TypeError("None came out of the source: None is not an element (2.13)")


LOOP: Final = 16
"""Steps that share a loop, at most: the next one begins another, which iterates over it."""


class Stoppable(Protocol):
    """What the loops see of a subscription."""

    _stop: bool

    def _subscriber_raised(self, error: BaseException) -> None: ...


class Unstopped:
    """Stands in where nobody cancels: the one who iterates just stops."""

    _stop = False

    def _subscriber_raised(self, error: BaseException) -> None:
        raise error


Pull = Callable[[Iterable[Any], Sequence[Step[Any, Any]], Stoppable], Generator[Any, None, None]]


@dataclass(frozen=True)
class Chain:
    """What was made of one sequence of step classes."""

    pull: Pull
    drive: Callable[[Iterable[Any], Sequence[Step[Any, Any]], Stoppable, Callable[[Any], object]], bool] | None
    """True: the end was reached; False: stopped by `subscription._stop`. None: can't be had here."""


@functools.lru_cache(maxsize=1024)
def chain_of(kinds: tuple[type[Step[Any, Any]], ...]) -> Chain:
    """The loops for steps of these classes, in this order, each iterating over the one before."""
    try:
        runs = _runs([_Stage.of(kind) for kind in kinds])  # type: ignore[arg-type]  # mypy: a class is hashable
    except OSError:  # the source is not at hand: zipped or frozen without it
        return Chain(unfused, None)
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
        subscription: Stoppable,
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
        if run and not stage.alone and not run[-1].alone and len(run) < LOOP:
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
        elements = _one(elements, step)
    yield from elements


def _checked(upstream: Iterable[Any], subscription: Stoppable) -> Generator[Any, None, None]:
    for element in upstream:
        if element is None:
            raise none_element()
        yield element
        if subscription._stop:
            yield PENDING


def _one(upstream: Iterable[Any], step: Step[Any, Any]) -> Generator[Any, None, None]:
    for element in upstream:
        if element is PENDING:
            yield element
            continue
        each = step.each(element)  # a step that yields nothing is a plain function
        if (yield from each or ()) is STOP:
            return
    if _has_end(type(step)):
        step.done = True
        yield from step.end()


def _has_end(kind: type[Step[Any, Any]]) -> bool:
    return kind.end is not Step.end


# -- reading a step -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Stage:
    """A step class, parsed."""

    kind: type[Step[Any, Any]]
    each: ast.FunctionDef
    end: ast.FunctionDef | None
    constants: frozenset[str]  # attributes of self that only __init__ and begin assign: read once, before the loop

    @property
    def alone(self) -> bool:
        """Whether it needs a loop of its own."""
        return self.end is not None or sum(isinstance(node, ast.Yield) for node in ast.walk(self.each)) != 1

    @staticmethod
    @functools.cache
    def of(kind: type[Step[Any, Any]]) -> _Stage:
        each = _method(kind.each)
        end = _method(kind.end) if _has_end(kind) else None
        methods = [each] if end is None else [each, end]
        _refuse_what_cannot_be_fused(kind, methods)
        read = {node.attr for method in methods for node in ast.walk(method) if _is_attribute_of_self(node)}
        return _Stage(kind, each, end, frozenset(n for n in read - _written(kind) if not hasattr(kind, n)))


def _method(function: Callable[..., Any]) -> ast.FunctionDef:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    method = tree.body[0]
    assert isinstance(method, ast.FunctionDef)
    if ast.get_docstring(method) is not None:
        method.body = method.body[1:]
    return method


def _written(kind: type[Step[Any, Any]]) -> set[str]:
    """The attributes of self that any method but __init__ and begin assigns."""
    methods = (
        function
        for base in kind.__mro__[: kind.__mro__.index(Step)]
        for name, function in vars(base).items()
        if inspect.isfunction(function) and name not in ("__init__", "begin")
    )
    nodes = (node for method in methods for node in ast.walk(_method(method)))
    return {node.attr for node in nodes if _is_attribute_of_self(node) and not isinstance(node.ctx, ast.Load)}


def _is_attribute_of_self(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _refuse_what_cannot_be_fused(kind: type[Step[Any, Any]], methods: list[ast.FunctionDef]) -> None:
    for method in methods:
        for node in ast.walk(method):
            if isinstance(node, ast.YieldFrom):
                fault = "has `yield from`; write the loop"
            elif isinstance(node, ast.Return) and not (isinstance(node.value, ast.Name) and node.value.id == "STOP"):
                fault = "returns something other than STOP; use if/else"
            elif isinstance(node, ast.Try) and any(isinstance(inner, ast.Yield) for inner in ast.walk(node)):
                fault = "yields inside `try`, where it would catch what comes later in the pipeline"
            elif isinstance(node, ast.Continue | ast.Break):
                fault = "uses break or continue, which would leave the fused loop; use a condition or STOP"
            else:
                continue
            raise SyntaxError(f"{kind.__qualname__}.{method.name} {fault} (its line {node.lineno})")


# -- writing a loop -------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _loop(stages: tuple[_Stage, ...], *, first: bool, drive: bool) -> Callable[..., Any]:
    """The loop of stages that share one; `first`: over the source itself; `drive`: with on_next at its heart."""
    return _Writer(stages, first=first, drive=drive).function()


_numbers = primitives.tickets()


def compiled(source: str, filename: str) -> CodeType:
    """The code of a loop. A schedule explorer puts another compiler here."""
    return compile(source, filename, "exec")


def forget() -> None:
    """Write the loops anew from now on."""
    chain_of.cache_clear()
    _loop.cache_clear()


class _Writer:
    """Writes one loop."""

    def __init__(self, stages: tuple[_Stage, ...], *, first: bool, drive: bool) -> None:
        self.stages = stages
        self.first = first
        self.drive = drive
        self.namespace: dict[str, Any] = {"PENDING": PENDING, "none_element": none_element}

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
            *(f"    {line}" for index in range(len(self.stages)) for line in self._prologue(index)),
            f"    for {element} in upstream:",
            *(f"        {line}" for line in (*self._head(element), *self._inlined().splitlines(), *self._tail())),
        ]
        end = self.stages[0].end
        if end is not None:
            lines += [
                "    s0.done = True",
                *(f"    {line}" for line in self._rewritten(0, end, self._sink).splitlines()),
            ]
        return [*lines, "    return True"] if self.drive else lines

    def _prologue(self, index: int) -> list[str]:
        constants = sorted(self.stages[index].constants)
        return [f"s{index} = steps[{index}]", *(f"s{index}_{name} = s{index}.{name}" for name in constants)]

    def _head(self, element: str) -> list[str]:
        lines = [f"if {element} is None:", "    raise none_element()"] if self.first else []
        if not self.drive:
            lines += [f"if {element} is PENDING:", "    yield PENDING", "    continue"]
        elif not self.first:  # the loop before has seen that the subscription is to stop
            lines += [f"if {element} is PENDING:", "    return False"]
        return lines

    def _tail(self) -> list[str]:
        if not self.first:
            return []
        return ["if subscription._stop:", "    return False" if self.drive else "    yield PENDING"]

    def _element(self, index: int) -> str:
        return f"v{index}_{self.stages[index].each.args.args[1].arg}"

    def _inlined(self) -> str:
        """The bodies of the stages, from the last to the first, each put into the one before."""
        into = self._sink
        text = ""
        for index in reversed(range(len(self.stages))):
            text = self._rewritten(index, self.stages[index].each, into)
            into = functools.partial(_bound_and_run, self._element(index), ast.parse(text).body)
        return text

    def _rewritten(self, index: int, method: ast.FunctionDef, into: Sink) -> str:
        stage = self.stages[index]
        module = getattr(stage.kind, method.name).__globals__
        rename = _Rename(index, method, stage.constants, module, self.namespace, into, self.drive)
        body: list[ast.stmt] = []
        for statement in method.body:
            rewritten = rename.visit(copy.deepcopy(statement))
            body.extend(rewritten if isinstance(rewritten, list) else [rewritten])
        return ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))

    def _sink(self, value: ast.expr) -> list[ast.stmt]:
        """What the last stage's `yield` becomes."""
        if not self.drive:
            return [ast.Expr(ast.Yield(value))]
        # `try` costs nothing until something is raised, and tells the subscriber's fault from an operator's.
        text = (
            f"try:\n    on_next({ast.unparse(value)})\n"
            "except BaseException as error:\n    subscription._subscriber_raised(error)\n    return False\n"
        )
        if not self.first or any(stage.kind.expands or stage.alone for stage in self.stages):
            text += "if subscription._stop:\n    return False"  # the loop's end comes later, or never looks
        return ast.parse(text).body


Sink = Callable[[ast.expr], list[ast.stmt]]
"""From the element that is yielded, the statements that work on it."""


def _bound_and_run(name: str, body: list[ast.stmt], value: ast.expr) -> list[ast.stmt]:
    """`name = value`, then the body that works on it."""
    return [ast.Assign([ast.Name(name, ast.Store())], value), *copy.deepcopy(body)]


class _Rename(ast.NodeTransformer):
    """Gives a stage's names a number of their own, and puts the next body where it yields."""

    def __init__(
        self,
        index: int,
        method: ast.FunctionDef,
        constants: frozenset[str],
        module: dict[str, Any],
        namespace: dict[str, Any],
        into: Sink,
        driven: bool,
    ) -> None:
        stored = {n.id for n in ast.walk(method) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        self.index = index
        self.local = stored | {argument.arg for argument in method.args.args[1:]}
        self.constants = constants
        self.module = module
        self.namespace = namespace
        self.into = into
        self.driven = driven

    def visit_Name(self, node: ast.Name) -> ast.Name:
        name = node.id
        if name == "self":
            name = f"s{self.index}"
        elif name in self.local:
            name = f"v{self.index}_{name}"
        elif name in self.module:
            name = f"g{self.index}_{name}"
            self.namespace[name] = self.module[node.id]
        return ast.Name(name, node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if _is_attribute_of_self(node) and node.attr in self.constants:
            return ast.Name(f"s{self.index}_{node.attr}", ast.Load())
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Yield):
            assert node.value.value is not None
            return self.into(self.visit(node.value.value))
        return self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> ast.Return:
        return ast.Return(ast.Constant(True) if self.driven else None)
