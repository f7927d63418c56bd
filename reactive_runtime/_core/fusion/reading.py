"""Reads the class of a step: what a fused loop may change about its methods, and what it refuses.

A fused loop runs the bodies of many steps in one function, for all elements. It does not call them, and three things
differ from a method that is called: names live on from one element to the next; the class around the body is gone;
attributes are kept in local variables. Where that can make a difference, the loop takes care of it, or `refuse` refuses
the class when it is defined, with the line and the reason. A class of the package is refused when it is first used,
since reading sources takes time at every import; a test reads all of them.

The loop keeps an attribute in a local variable if it is the only writer. The source shows that as long as `self` goes
nowhere: `on_next`, `on_complete` and `reset` may name `self` only to reach an attribute or a method, or to show it in a
text. An attribute that another method writes, or may write, is not kept.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final, NoReturn, TypeGuard

from reactive_runtime._core.fusion.parsing import parsed
from reactive_runtime._core.fusion.step import STOP, Step

__all__ = [
    "BINDING",
    "Method",
    "StepSource",
    "captured",
    "is_attribute_of_self",
    "is_builtin",
    "own_names",
    "refuse",
    "source_of",
]


@dataclass(frozen=True, eq=False)
class Method:
    """`on_next` or `on_complete` of a step, parsed."""

    function: FunctionType
    scope: dict[str, Any]  # the names of its module
    tree: ast.FunctionDef  # without its docstring; its lines are those of the file
    names: frozenset[str]  # its local variables, those of comprehensions and lambdas apart
    loose: tuple[str, ...]  # those of them that may be read before they have a value
    sure: frozenset[tuple[int, int]]  # where it yields a variable that can't be None


@dataclass(frozen=True, eq=False)
class StepSource:
    """The class of a step, read."""

    kind: type[Step[Any, Any]]
    on_next: Method
    on_complete: Method | None
    constants: frozenset[str]  # attributes that nothing assigns while the loop runs: read once, before it
    memory: frozenset[str]  # attributes that only `on_next` and `on_complete` assign meanwhile: kept in a local as well

    @property
    def kept(self) -> frozenset[str]:
        """The attributes that a loop keeps in a local variable."""
        return self.constants | self.memory

    @property
    def alone(self) -> bool:
        """Whether it needs a loop of its own."""
        return sum(isinstance(node, ast.Yield) for node in ast.walk(self.on_next.tree)) != 1

    @property
    def loops(self) -> bool:
        """Whether one element may become several, in a loop of its own making."""
        loops = (node for node in ast.walk(self.on_next.tree) if isinstance(node, ast.For | ast.While))
        return not all(takes_one(node) for node in loops)

    @property
    def stops(self) -> bool:
        """Whether it may end the stream."""
        return any(isinstance(node, ast.Return) for node in ast.walk(self.on_next.tree))

    def follows(self, run: tuple[StepSource, ...]) -> bool:
        """Whether it can share the loop of those before it."""
        if self.alone or run[-1].alone or run[-1].on_complete is not None:
            return False
        # Where one of them ends the stream, the loop is left before `on_complete` runs: it has to be the outer loop.
        return self.on_complete is None or not (any(item.stops for item in run) and any(item.loops for item in run))


@functools.cache
def source_of(kind: type[Step[Any, Any]]) -> StepSource:
    """The class, read. SyntaxError where it can't be fused; OSError where its source is not at hand."""
    refuse(kind)
    on_next, on_complete = _own_methods(kind)
    assert on_next is not None
    methods = [on_next] if on_complete is None else [on_next, on_complete]
    return StepSource(kind, on_next, on_complete, *_kept(kind, methods))


def refuse(kind: type[Step[Any, Any]]) -> None:
    """SyntaxError where the class can't be fused, with the line; OSError where its source is not at hand."""
    for name in ("on_next", "on_complete"):
        function = getattr(kind, name)
        if function is getattr(Step, name):
            continue
        fault = _not_plain(function, name)
        if fault is not None:
            _refuse(kind, name, fault, *_place_of(function))
    methods = [method for method in _own_methods(kind) if method is not None]
    for method in methods:
        for node, fault in _Faults(method).found():
            _refuse(kind, method.function.__name__, fault, method.function.__code__.co_filename, node.lineno)
    for name, function in _methods(kind):
        stores: list[ast.Attribute] = []
        with suppress(OSError):  # of a function that does not stand alone nothing is known
            stores = [item for item in _attribute_stores(_tree(function)) if is_attribute_of_self(item)]
        for store in stores:
            if store.attr in ("on_next", "on_complete"):
                fault = f"assigns `self.{store.attr}`, and what is put into a loop is the method of the class"
                _refuse(kind, name, fault, function.__code__.co_filename, store.lineno)
        if name == "reset":
            for entry in _handed_out(_tree(function)):
                _refuse(kind, name, _HANDED_OUT, function.__code__.co_filename, entry.lineno)
    _refuse_late_attributes(kind, methods)


def _refuse(kind: type[Any], method: str, fault: str, filename: str, line: int) -> NoReturn:
    text = linecache.getline(filename, line)
    raise SyntaxError(f"{kind.__qualname__}.{method} {fault}", (filename, line, 1, text))


# -- finding the source ----------------------------------------------------------------------------------------------


def _own_methods(kind: type[Step[Any, Any]]) -> tuple[Method | None, Method | None]:
    on_next: Any = kind.on_next
    on_complete: Any = kind.on_complete
    return (None if on_next is Step.on_next else _method(on_next)), (
        None if on_complete is Step.on_complete else _method(on_complete)
    )


@functools.lru_cache(maxsize=1024)
def _tree(function: FunctionType) -> ast.AST:
    """The statement that made the function; its lines are those of the file. OSError where it is not at hand."""
    text = inspect.getsource(function)
    indented = text[:1].isspace()  # and not dedented, which would change a string of several lines
    try:
        tree = parsed(f"if 1:\n{text}" if indented else text)[0]
    except SyntaxError as error:  # a piece of a line: a lambda among arguments
        raise OSError(f"the source of {function.__qualname__} does not stand alone") from error
    if indented:
        assert isinstance(tree, ast.If)
        tree = tree.body[0]
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1 - indented)
    _mangle(tree, function)
    return tree


def _mangle(tree: ast.AST, function: FunctionType) -> None:
    """Give names with two leading underscores the name of the class, as Python does inside of one."""
    owner = function.__qualname__.rpartition(".")[0].rpartition(".")[2].lstrip("_")
    if not owner or owner == "<locals>":
        return
    for node in ast.walk(tree):
        for field in ("attr", "id", "arg", "name", "rest"):
            name = getattr(node, field, None)
            if isinstance(name, str) and name.startswith("__") and not name.endswith("__"):
                setattr(node, field, f"_{owner}{name}")


@functools.lru_cache(maxsize=1024)
def _method(function: FunctionType) -> Method:
    tree = _tree(function)
    if not isinstance(tree, ast.FunctionDef) or tree.name != function.__name__:
        raise OSError(f"the source of {function.__qualname__} is not where it should be")
    if ast.get_docstring(tree) is not None:
        tree.body = tree.body[1:]
    parameters = _parameters(tree)
    names = frozenset(_stores(tree.body)) | frozenset(parameters[1:])
    loose = tuple(sorted(name for name in names.difference(parameters) if not _bound_first(name, tree.body)))
    sure: set[tuple[int, int]] = set()
    _look_for_none(tree.body, set(parameters[1:]), sure)
    return Method(function, function.__globals__, tree, names, loose, frozenset(sure))


def _parameters(tree: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in (*tree.args.posonlyargs, *tree.args.args)]


def _place_of(function: Any) -> tuple[str, int]:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return ("<unknown>", 0) if code is None else (code.co_filename, code.co_firstlineno)


def _not_plain(function: Any, name: str) -> str | None:
    """Why it is no method written with `def`, which takes `self` and the element; None: it is one."""
    if not inspect.isfunction(function) or hasattr(function, "__wrapped__") or function.__name__ == "<lambda>":
        return "is not a method that is written with `def`, and not decorated"
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return "is a coroutine: use flat_map or map_parallel"
    code = function.__code__
    expected = ["self", "element"] if name == "on_next" else ["self"]
    plain = code.co_argcount == len(expected) and not code.co_kwonlyargcount and not code.co_flags & 0x0C
    if not plain or code.co_varnames[0] != "self" or function.__defaults__:
        return f"must have the parameters ({', '.join(expected)}), and no others"
    tree = _tree(function)
    if isinstance(tree, ast.FunctionDef):
        for item in tree.decorator_list:
            if getattr(item, "id", getattr(item, "attr", None)) != "override":
                return "is decorated: the loop would run what stands below the decorator"
    return None


# -- names -----------------------------------------------------------------------------------------------------------


BINDING: Final[dict[type[ast.AST], str]] = {
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.MatchMapping: "rest",
}
"""The nodes, other than names, that give a variable a value, and the field that has its name, or None."""


class _Stores(ast.NodeVisitor):
    """The names that are assigned or deleted, in the scope of the function itself."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.names.add(node.id)

    def generic_visit(self, node: ast.AST) -> None:
        if (name := getattr(node, BINDING.get(type(node), ""), None)) is not None:
            self.names.add(name)
        super().generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.visit(node.iter)  # its target is its own; but `:=` in it is not
        for condition in node.ifs:
            self.visit(condition)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)


def _stores(nodes: Sequence[ast.AST]) -> set[str]:
    stores = _Stores()
    for node in nodes:
        stores.visit(node)
    return stores.names


def _names(node: ast.AST) -> set[str]:
    """All names in it, also those of comprehensions and lambdas: more than are meant, where they are reused."""
    fields: dict[type[ast.AST], str] = {ast.Name: "id", **BINDING}
    found = (getattr(item, fields.get(type(item), ""), None) for item in ast.walk(node))
    return {name for name in found if name is not None}


def _bound_first(name: str, block: list[ast.stmt]) -> bool:
    """Whether the name gets a value, whenever the block runs, before the block reads it."""
    mentions = [statement for statement in block if name in _names(statement)]
    first = mentions[0]
    if isinstance(first, ast.Assign | ast.AnnAssign):
        listed = first.targets if isinstance(first, ast.Assign) else [first.target]
        reads = {node.id for node in ast.walk(first) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        return first.value is not None and name in targets(listed) and name not in reads
    if len(mentions) > 1:
        return False
    if isinstance(first, ast.For):
        if name in _names(first.iter) or any(name in _names(item) for item in first.orelse):
            return False
        return name in targets([first.target]) or _bound_first(name, first.body)
    if isinstance(first, ast.Try):
        handlers = [handler for handler in first.handlers if name in _names(handler)]
        others = (*first.body, *first.orelse, *first.finalbody, *(item.type for item in handlers if item.type))
        return all(item.name == name for item in handlers) and not any(name in _names(other) for other in others)
    if isinstance(first, ast.If | ast.While):
        branches = [branch for branch in (first.body, first.orelse) if any(name in _names(item) for item in branch)]
        return name not in _names(first.test) and all(_bound_first(name, branch) for branch in branches)
    return False


def _look_for_none(block: Sequence[ast.stmt], known: set[str], sure: set[tuple[int, int]]) -> None:
    """Add to `sure` where the block yields one of the names that are `known` not to be None there."""
    for statement in block:
        changed = _stores([statement])
        match statement:
            case ast.Expr(ast.Yield(ast.Name(name))) if name in known:
                sure.add((statement.lineno, statement.col_offset))
            case ast.If(ast.Compare(ast.Name(name), [ast.Is() | ast.IsNot() as operator], [ast.Constant(None)])):
                there = isinstance(operator, ast.IsNot)
                _look_for_none(statement.body, known | {name} if there else known, sure)
                _look_for_none(statement.orelse, known if there else known | {name}, sure)
                if not there and name not in changed and isinstance(statement.body[-1], ast.Raise | ast.Return):
                    known = known | {name}
            case ast.If():
                _look_for_none(statement.body, known, sure)
                _look_for_none(statement.orelse, known, sure)
            case ast.For() | ast.While():
                _look_for_none(statement.body, known - changed, sure)
                _look_for_none(statement.orelse, known - changed, sure)
            case ast.Match():
                for branch in statement.cases:
                    _look_for_none(branch.body, known - changed, sure)
        known = known - changed


def targets(nodes: Sequence[ast.expr]) -> set[str]:
    """The names that an assignment to these gives a value."""
    return {
        item.id
        for node in nodes
        for item in ast.walk(node)
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)
    }


def own_names(node: ast.Lambda | ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp) -> set[str]:
    """The names that are a lambda's or a comprehension's own."""
    if isinstance(node, ast.Lambda):
        item = node.args
        arguments = [*item.posonlyargs, *item.args, *item.kwonlyargs, *filter(None, (item.vararg, item.kwarg))]
        return {argument.arg for argument in arguments}
    return targets([generator.target for generator in node.generators])


def captured(node: ast.Lambda | ast.GeneratorExp, names: frozenset[str]) -> set[str]:
    """Which of `names` a lambda or a generator expression reads when it runs, which may be later."""
    if isinstance(node, ast.Lambda):
        deferred: list[ast.AST] = [node.body]
    else:
        first, *others = node.generators  # its first iterable is evaluated at once
        deferred = [node.elt, first.target, *first.ifs, *others]
    return {name for item in deferred for name in _names(item)} & names - own_names(node)


# -- what is refused -------------------------------------------------------------------------------------------------

_HANDED_OUT: Final = (
    "hands out `self`, and a write to it from elsewhere would not be seen: pass what is needed, or keep the state in an"
    " object of its own"
)
_LEAVES: Final = "uses break or continue, which would leave the fused loop; use a condition or STOP"
_IMPORTS: Final = "imports: do that at the top of the module"
_REFUSED: Final[dict[type[ast.AST], str]] = {
    ast.Yield: "uses what `yield` returns, which is nothing",
    ast.YieldFrom: "has `yield from`; write the loop",
    ast.Continue: _LEAVES,
    ast.Break: _LEAVES,
    ast.Import: _IMPORTS,
    ast.ImportFrom: _IMPORTS,
}
_CATCHES: Final = "yields inside `try`, where it would catch what comes later in the pipeline"
_REFUSED_AROUND_YIELD: Final[dict[type[ast.AST], str]] = {
    ast.Try: _CATCHES,
    ast.TryStar: _CATCHES,
    ast.With: "yields inside `with`, which would see what is raised later in the pipeline",
}
_REFLECTION: Final = frozenset(("__dict__", "__setattr__", "__delattr__", "__getattribute__", "__class__"))
_SCOPES: Final = frozenset(("locals", "globals", "vars", "dir", "eval", "exec"))
_LOOKING: Final = frozenset(("type", "isinstance", "repr", "str", "id", "format"))
_OURS: Final = re.compile(r"[svgy]\d")  # how the names of a loop begin


def takes_one(node: ast.For | ast.While) -> bool:
    """`for _ in iterator: break`: it takes one element, and leaves no other loop."""
    return isinstance(node, ast.For) and not node.orelse and [type(item) for item in node.body] == [ast.Break]


def is_attribute_of_self(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """`self.x`."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _handed_out(tree: ast.AST) -> list[ast.Name]:
    """The places that name `self` otherwise than to reach an attribute, to show it, or to ask for its class."""
    harmless = set()
    for node in ast.walk(tree):
        if (isinstance(node, ast.Attribute) and node.attr not in _REFLECTION) or isinstance(node, ast.FormattedValue):
            harmless.add(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _LOOKING:
            harmless.update(node.args)
    names = (item for item in ast.walk(tree) if isinstance(item, ast.Name) and item.id == "self")
    return [name for name in names if name not in harmless or not isinstance(name.ctx, ast.Load)]


class _Faults(ast.NodeVisitor):
    """Finds what can't be fused in `on_next` or `on_complete`."""

    def __init__(self, method: Method) -> None:
        self.method = method
        self.free = set(method.function.__code__.co_freevars)
        self.faults: list[tuple[Any, str]] = []

    def found(self) -> list[tuple[Any, str]]:
        """The nodes at fault, and the reasons, by line."""
        for statement in self.method.tree.body:
            self.visit(statement)
        handed = _handed_out(ast.Module(self.method.tree.body, []))
        self.faults += [(name, _HANDED_OUT) for name in handed]
        return sorted(self.faults, key=lambda fault: (fault[0].lineno, fault[0].col_offset))

    def fault(self, node: ast.AST, reason: str) -> None:
        self.faults.append((node, reason))

    def visit_For(self, node: ast.For) -> None:
        if takes_one(node):
            self.visit(node.iter)
        else:
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in ("super", "__class__") and node.id not in self.method.names:
            self.fault(node, "uses super(), and a loop is in no class: call a method by another name")
        elif node.id in self.free:
            self.fault(node, f"uses `{node.id}`, a variable of the function around the class: keep it in `self`")
        elif node.id in _SCOPES - self.method.names and node.id not in self.method.scope:
            self.fault(node, f"uses {node.id}(), and the names of a loop are others")

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        what = "class" if isinstance(node, ast.ClassDef) else "function"
        self.fault(node, f"has a {what} of its own, `{node.name}`: write it as a method, or outside of the class")

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda | ast.GeneratorExp) -> None:
        what = "a lambda" if isinstance(node, ast.Lambda) else "a generator expression"
        reused = own_names(node) & self.method.names if isinstance(node, ast.Lambda) else set()
        for name in sorted(reused | set(filter(_OURS.match, own_names(node)))):
            self.fault(node, f"reuses the name `{name}` in {what}: give it another")
        for name in sorted(captured(node, self.method.names)):
            if not self._settled(name):
                self.fault(node, f"changes `{name}`, which {what} reads, perhaps later: give it a variable of its own")
        for item in ast.walk(node):
            if isinstance(item, ast.NamedExpr):
                self.fault(item, f"assigns `{item.target.id}` inside of {what}")
        self.generic_visit(node)

    visit_GeneratorExp = visit_Lambda  # noqa: N815

    def _settled(self, name: str) -> bool:
        """Whether the name has one value only: it can be handed over when the lambda is made."""
        body = self.method.tree.body
        loops = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.For | ast.While)]
        stores = [
            node
            for statement in body
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
        ]
        if name in _parameters(self.method.tree):
            return not stores
        if len(stores) != 1 or name in self.method.loose:
            return False
        return not any(stores[0] in ast.walk(loop) for loop in loops)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Yield):
            self.generic_visit(node)
        elif node.value.value is None or (
            isinstance(node.value.value, ast.Constant) and node.value.value.value is None
        ):
            self.fault(node, "yields None, which is not an element (2.13)")
        else:
            self.visit(node.value.value)

    def visit_Return(self, node: ast.Return) -> None:
        value = node.value
        if not (isinstance(value, ast.Name) and self.method.scope.get(value.id) is STOP):
            self.fault(node, "returns something other than STOP; use if/else")

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.fault(node, f"assigns {', '.join(node.names)} of the scope around it: call a function that does")

    visit_Nonlocal = visit_Global  # noqa: N815

    def generic_visit(self, node: ast.AST) -> None:
        if (reason := _REFUSED.get(type(node))) is not None:
            self.fault(node, reason)
            return
        reason = _REFUSED_AROUND_YIELD.get(type(node))
        if reason is not None and any(isinstance(inner, ast.Yield) for inner in ast.walk(node)):
            self.fault(node, reason)
        super().generic_visit(node)


def _refuse_late_attributes(kind: type[Step[Any, Any]], methods: list[Method]) -> None:
    """The loop reads attributes before its first element: refuse those that are first assigned there."""
    own = {method.function for method in methods}
    stores = [node for method in methods for node in _attribute_stores(method.tree) if is_attribute_of_self(node)]
    if not stores:
        return
    before = {node.attr for _, item in _methods(kind) if item not in own for node in _attribute_stores(_tree(item))}
    declared = {name for base in kind.__mro__ for name in vars(base).get("__annotations__", ())}
    for method in methods:
        for node in _attribute_stores(method.tree):
            if is_attribute_of_self(node) and not (node.attr in before | declared or hasattr(kind, node.attr)):
                fault = (
                    f"is the first to assign `self.{node.attr}`: give it a value in __init__, in begin, or in the class"
                )
                _refuse(kind, method.function.__name__, fault, method.function.__code__.co_filename, node.lineno)


# -- what may be kept in local variables -----------------------------------------------------------------------------

_BEFORE: Final = ("__init__", "reset", "copy")  # they run before the loop
_AFTER: Final = ("dispose",)


def _kept(kind: type[Step[Any, Any]], methods: list[Method]) -> tuple[frozenset[str], frozenset[str]]:
    """The attributes that are constants, and those that are memory."""
    nothing: frozenset[str] = frozenset()
    if any(_defines(kind, name) for name in ("__getattr__", "__getattribute__", "__setattr__", "__delattr__")):
        return nothing, nothing
    own = {method.function for method in methods}
    others = [(name, function) for name, function in _methods(kind) if function not in own]
    # A method that is called by its name, from anywhere but where all of them are, may run at any time.
    running = [*own, *(function for name, function in others if name not in (*_BEFORE, *_AFTER))]
    called = {
        item.attr for function in running for item in ast.walk(_tree(function)) if isinstance(item, ast.Attribute)
    }
    elsewhere: set[str] = set()
    afterwards: set[str] = set()
    for name, function in others:
        tree = _tree(function)
        if name in _BEFORE and name not in called:
            elsewhere |= {node.attr for item in _nested(tree) for node in _attribute_stores(item)}
            continue
        if _handed_out(tree):
            return nothing, nothing
        assigned = {node.attr for node in _attribute_stores(tree)}
        if name in _AFTER and name not in called:
            afterwards |= assigned
        else:
            elsewhere |= assigned
    if called & {method.function.__name__ for method in methods}:
        return nothing, nothing
    stores = [node for method in methods for node in _attribute_stores(method.tree)]
    plain = {id(target) for method in methods for target in _plain_targets(method.tree)}
    written = {node.attr for node in stores}
    in_passing = {node.attr for node in stores if id(node) not in plain}
    used = {node.attr for method in methods for node in ast.walk(method.tree) if is_attribute_of_self(node)}
    constants = {name for name in used - written - elsewhere - afterwards if not hasattr(kind, name)}
    memory = used & written - elsewhere - in_passing - {"done"}
    return frozenset(constants), frozenset(name for name in memory if not _is_descriptor(kind, name))


def _methods(kind: type[Step[Any, Any]]) -> Iterator[tuple[str, FunctionType]]:
    """All functions of the class, and of those it is made of, with the names they go by."""
    for base in kind.__mro__:
        if base is Step or base.__module__ in ("builtins", "typing", "abc"):
            continue
        for name, value in vars(base).items():
            found = [getattr(value, item, None) for item in ("__func__", "fget", "fset", "fdel", "func", "__wrapped__")]
            yield from ((name, item) for item in (value, *found) if inspect.isfunction(item))


def _attribute_stores(tree: ast.AST) -> list[ast.Attribute]:
    """The assignments to an attribute, of whichever object."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)]


def _nested(tree: ast.AST) -> list[ast.AST]:
    """The functions inside of a function."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    return [node for node in ast.walk(tree) if isinstance(node, functions) and node is not tree]


def _plain_targets(tree: ast.AST) -> Iterator[ast.expr]:
    """The targets of `self.x = …` and `self.x += …`."""
    for node in ast.walk(tree):
        found = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
        )
        yield from filter(is_attribute_of_self, found)


def _defines(kind: type[Any], name: str) -> bool:
    return any(name in vars(base) for base in kind.__mro__ if base is not object)


def _is_descriptor(kind: type[Any], name: str) -> bool:
    found: Callable[..., Any] | None = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    return hasattr(type(found), "__get__") or hasattr(type(found), "__set__")


def is_builtin(name: str) -> bool:
    """Whether it is a name of Python's own."""
    return hasattr(builtins, name)
