"""What the syntax tree of a module says of its names: one look at the tree, for all of its scopes."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["Scopes", "located"]

_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES: Final = (*_FUNCTIONS, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

_NO_NODES: Final = frozenset({
    "arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "kwd_attrs", "level", "module", "op",
    "ops", "rest", "simple", "type_comment",
})  # fmt: skip
"""Fields with a text or a number, or with a node that only says how a name is used, or which operator is meant."""

_fields: Final[dict[type, tuple[str, ...]]] = {ast.Constant: (), ast.MatchSingleton: ()}
"""Where the nodes of a kind have others. Only added to; two threads add the same."""


def _children(node: ast.AST) -> list[Any]:
    """The nodes below, without those that only say how a name is used, and which operator is meant."""
    names = _fields.get(type(node))
    if names is None:
        names = _fields[type(node)] = tuple(name for name in type(node)._fields if name not in _NO_NODES)
    found: list[Any] = []
    for name in names:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found.extend([item for item in value if isinstance(item, ast.AST)])
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


@dataclass(slots=True, eq=False)
class Scope:
    """A module, a function, a class, a lambda or a comprehension."""

    around: Scope | None = None
    """Of a comprehension: where the names go that it assigns to with `:=`."""
    bound: set[str] = field(default_factory=set)
    """The names that are local to it."""
    elsewhere: set[str] = field(default_factory=set)
    """Those that it declares `global` or `nonlocal`."""
    yields: bool = False
    """Whether calling it makes a generator."""
    cells: set[str] = field(default_factory=set)
    """The names that are `nonlocal` anywhere in the outermost function around."""


class Scopes:
    """The scopes of a module, and what functions anywhere in it say of its names."""

    def __init__(self, tree: ast.Module) -> None:
        self._of: dict[int, Scope] = {}
        self._tree = tree  # which keeps its nodes, and so their identities
        self.globals: set[str] = set()
        """The names that any function declares `global`."""
        self.cached: set[str] = set()
        """The functions and methods that are handed to a cache by a call."""
        self.cached_lambdas: set[ast.Lambda] = set()
        """The same of functions without a name."""
        top = Scope()
        self._look(tree, top)
        self.names: frozenset[str] = frozenset(top.bound)
        """The names that are bound at the top."""

    def __getitem__(self, node: ast.AST) -> Scope:
        """The scope that a function, a class or a comprehension of the tree is."""
        return self._of[id(node)]

    def _look(self, tree: ast.Module, top: Scope) -> None:
        stack: list[tuple[Any, Scope, bool]] = [(tree, top, False)]  # a node, its scope, if that is of a function
        while stack:
            node, scope, inside = stack.pop()
            if isinstance(node, ast.Name):
                if not isinstance(node.ctx, ast.Load):
                    scope.bound.add(node.id)
                continue
            if isinstance(node, _SCOPES):
                if not isinstance(node, ast.Lambda):
                    scope.bound.add(node.name)
                scope = self._opened(node, scope if inside else Scope())
                inside = inside or not isinstance(node, ast.ClassDef)
            elif isinstance(node, _COMPREHENSIONS):
                scope = self._of[id(node)] = Scope(scope, cells=scope.cells)
            else:
                self._note(node, scope)
            stack.extend([(child, scope, inside) for child in _children(node)])
        for scope in self._of.values():
            scope.bound -= scope.elsewhere

    def _opened(self, node: Any, around: Scope) -> Scope:
        scope = self._of[id(node)] = Scope(cells=around.cells)
        if not isinstance(node, ast.ClassDef):
            given = node.args
            every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            scope.bound.update(argument.arg for argument in every if argument is not None)
        return scope

    def _note(self, node: Any, scope: Scope) -> None:
        """What a node binds or declares that is no name."""
        if isinstance(node, ast.Call):
            if "cache" in _ending(node.func):
                self.cached.update(item.id for item in node.args if isinstance(item, ast.Name))
                self.cached.update(item.attr for item in node.args if isinstance(item, ast.Attribute))
                self.cached_lambdas.update(item for item in node.args if isinstance(item, ast.Lambda))
        elif isinstance(node, ast.NamedExpr):
            within = scope.around
            while within is not None:
                within.bound.add(node.target.id)
                within = within.around
        elif isinstance(node, ast.Yield):
            scope.yields = True
        elif isinstance(node, ast.Global):
            scope.elsewhere.update(node.names)
            self.globals.update(node.names)
        elif isinstance(node, ast.Nonlocal):
            scope.elsewhere.update(node.names)
            scope.cells.update(node.names)
        elif isinstance(node, ast.alias):
            scope.bound.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            if node.name:
                scope.bound.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            scope.bound.add(node.rest)


def _ending(node: ast.expr) -> str:
    """What is called, as it is written: `functools.lru_cache(16)`."""
    parts = []
    while isinstance(node, ast.Attribute | ast.Call):
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return " ".join([*parts, node.id] if isinstance(node, ast.Name) else [*parts, ast.unparse(node)])


def located(tree: ast.Module) -> ast.Module:
    """The tree, whose new nodes stand where the node around them does."""
    stack: list[tuple[Any, int, int, int, int]] = [(tree, 1, 0, 1, 0)]
    while stack:
        node, line, column, end, end_column = stack.pop()
        if node._attributes:
            own = node.__dict__
            line = own.setdefault("lineno", line)
            column = own.setdefault("col_offset", column)
            known_line, known_column = own.get("end_lineno"), own.get("end_col_offset")
            node.end_lineno = max(end, line) if known_line is None else known_line
            if known_column is None:  # where the node around it ends, unless that is before this one begins
                node.end_col_offset = end_column if (node.end_lineno, end_column) >= (line, column) else column
            end, end_column = node.end_lineno, node.end_col_offset
        stack.extend([(child, line, column, end, end_column) for child in reversed(_children(node))])
    return tree
