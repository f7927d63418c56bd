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

A step with an `end` is the last of its loop, and the next loop iterates over it; one with other than one `yield` has
a loop to itself. So does every seventeenth step, since what is generated has to stay readable, and quick to compile.
What an operator remembers from element to element is kept in a local variable too, where `each` alone writes it.

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
    memory: frozenset[str]  # attributes that only `each` assigns while the loop runs: kept in a local as well

    @property
    def alone(self) -> bool:
        """Whether it needs a loop of its own."""
        return sum(isinstance(node, ast.Yield) for node in ast.walk(self.each)) != 1

    @property
    def loops(self) -> bool:
        """Whether one element may become several, in a loop of its own making."""
        return any(isinstance(node, ast.For | ast.While) for node in ast.walk(self.each))

    @property
    def stops(self) -> bool:
        """Whether it may end the stream."""
        return any(isinstance(node, ast.Return) for node in ast.walk(self.each))

    def follows(self, run: tuple[_Stage, ...]) -> bool:
        """Whether it can share the loop of those before it."""
        if self.alone or run[-1].alone or run[-1].end is not None:
            return False
        # Where one of them ends the stream, what `end` yields is due: the loop is left, which must be the outer one.
        return self.end is None or not (any(it.stops for it in run) and any(it.loops for it in run))

    @staticmethod
    @functools.cache
    def of(kind: type[Step[Any, Any]]) -> _Stage:
        each = _method(kind.each)
        end = _method(kind.end) if _has_end(kind) else None
        methods = [each] if end is None else [each, end]
        _refuse_what_cannot_be_fused(kind, methods)
        used = {node.attr for method in methods for node in ast.walk(method) if _is_attribute_of_self(node)}
        written = _written(kind, but=())
        constants = used - written
        memory = used & written - _written(kind, but=("each", "end", "close")) - _written_in_passing(methods) - {"done"}
        return _Stage(
            kind, each, end, frozenset(name for name in constants if not hasattr(kind, name)), frozenset(memory)
        )


def _method(function: Callable[..., Any]) -> ast.FunctionDef:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    method = tree.body[0]
    assert isinstance(method, ast.FunctionDef)
    if ast.get_docstring(method) is not None:
        method.body = method.body[1:]
    return method


def _written(kind: type[Step[Any, Any]], but: Sequence[str]) -> set[str]:
    """The attributes of self that any method assigns, but `__init__`, `begin` and those that are named."""
    methods = (
        function
        for base in kind.__mro__[: kind.__mro__.index(Step)]
        for name, function in vars(base).items()
        if inspect.isfunction(function) and name not in ("__init__", "begin", *but)
    )
    nodes = (node for method in methods for node in ast.walk(_method(method)))
    return {node.attr for node in nodes if _is_attribute_of_self(node) and not isinstance(node.ctx, ast.Load)}


def _written_in_passing(methods: Iterable[ast.FunctionDef]) -> set[str]:
    """The attributes of self that are assigned otherwise than by `self.x = …` or `self.x += …`."""
    nodes = [node for method in methods for node in ast.walk(method)]
    plain = [target for node in nodes if isinstance(node, ast.Assign) for target in node.targets]
    plain += [node.target for node in nodes if isinstance(node, ast.AugAssign)]
    stored = (it for it in nodes if _is_attribute_of_self(it) and not isinstance(it.ctx, ast.Load))
    return {it.attr for it in stored if not any(it is target for target in plain)}


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
        last = len(self.stages) - 1
        end = self.stages[last].end
        if end is not None:
            lines += [
                f"    s{last}.done = True",
                *(f"    {line}" for line in self._rewritten(last, end, self._sink).splitlines()),
            ]
        return [*lines, "    return True"] if self.drive else lines

    def _prologue(self, index: int) -> list[str]:
        stage = self.stages[index]
        kept = sorted(stage.constants | stage.memory)
        return [f"s{index} = steps[{index}]", *(f"s{index}_{name} = s{index}.{name}" for name in kept)]

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
        ends_later = index < len(self.stages) - 1 and self.stages[-1].end is not None
        stopped = ast.Break() if ends_later else ast.Return(ast.Constant(True) if self.drive else None)
        rename = _Rename(index, method, stage, module, self.namespace, into, stopped)
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
        if not self.first or any(stage.kind.expands or stage.alone or stage.end is not None for stage in self.stages):
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
        stage: _Stage,
        module: dict[str, Any],
        namespace: dict[str, Any],
        into: Sink,
        stopped: ast.stmt,
    ) -> None:
        stored = {n.id for n in ast.walk(method) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        self.index = index
        self.local = stored | {argument.arg for argument in method.args.args[1:]}
        self.kept = stage.constants | stage.memory
        self.module = module
        self.namespace = namespace
        self.into = into
        self.stopped = stopped

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
        if _is_attribute_of_self(node) and isinstance(node.ctx, ast.Load) and node.attr in self.kept:
            return ast.Name(f"s{self.index}_{node.attr}", ast.Load())
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """`self.x = …` writes the local too."""
        names = [target.attr for target in node.targets if _is_attribute_of_self(target) and target.attr in self.kept]
        node = ast.Assign([self.visit(target) for target in node.targets], self.visit(node.value))
        node.targets += [ast.Name(f"s{self.index}_{name}", ast.Store()) for name in names]
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """`self.x += …` is written as an assignment, and so writes the local too."""
        if not (_is_attribute_of_self(node.target) and node.target.attr in self.kept):
            return self.generic_visit(node)
        target = node.target
        before = ast.Attribute(target.value, target.attr, ast.Load())
        return self.visit_Assign(ast.Assign([target], ast.BinOp(before, node.op, node.value)))

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Yield):
            assert node.value.value is not None
            return self.into(self.visit(node.value.value))
        return self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        return self.stopped
