"""Makes points of the loads and stores of a module's code, with the object in hand.

A tracer sees which instruction comes next, but not which object it is about to touch; and it costs a call for
every instruction. So the source of a module is compiled a second time, with each access turned into a call, and the
functions run that code while they are explored:

    self.demand += n        store(iadd(load(self, "demand", 7), n), self, "demand", 8)

The numbers are *sites*: where in the source the access stands. Functions keep their identity; only their `__code__`
is exchanged, and given back. Lines stay what they are, for tracebacks and debuggers.

What counts as an access: attributes, items, the methods of built-in containers (called through a wrapper), `next`,
and names declared `global` or `nonlocal`. What does not: local names, and whatever happens inside of code that is not
rewritten, in C, or in a module that was not named.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final

__all__ = ["IN_PLACE", "SITES", "Site", "compiled", "hook_name"]


@dataclass(frozen=True, slots=True)
class Site:
    """Where an access stands."""

    filename: str
    line: int
    column: int
    what: str
    """In words: `store self.demand`."""
    building: bool
    """Whether it stands in an `__init__`, where an object is not shared yet, as a rule."""

    @property
    def stores(self) -> str:
        """The name of the attribute that is stored or deleted; empty, where none is."""
        verb, _, what = self.what.partition(" ")
        return what.rpartition(".")[2] if verb in ("store", "delete") and "." in what else ""


SITES: Final[list[Site]] = []
"""Where the accesses of all rewritten files stand, by number. Written by the one exploration that runs."""

_OPERATORS: Final = "iadd isub imul itruediv ifloordiv imod ipow ilshift irshift ior ixor iand imatmul"
IN_PLACE: Final = {name: getattr(operator, name) for name in _OPERATORS.split()}
"""What an assignment with an operator does to the value."""


_LOOKING: Final = (
    "len list tuple sum min max sorted any all iter bool str repr print set dict frozenset enumerate zip isinstance"
    " type id hash reversed map filter range callable getattr hasattr int float abs round"
)
_PURE: Final = frozenset(_LOOKING.split())
"""Functions that only look at what they are given."""

_IN_PLACE: Final = {
    ast.Add: "iadd", ast.Sub: "isub", ast.Mult: "imul", ast.Div: "itruediv", ast.FloorDiv: "ifloordiv",
    ast.Mod: "imod", ast.Pow: "ipow", ast.LShift: "ilshift", ast.RShift: "irshift", ast.BitOr: "ior",
    ast.BitXor: "ixor", ast.BitAnd: "iand", ast.MatMult: "imatmul",
}  # fmt: skip


def hook_name(hook: str) -> str:
    """The name under which a hook is found by rewritten code, in `builtins`."""
    return f"explore·{hook}"


class _Rewriter(ast.NodeTransformer):
    """Rewrites the bodies of functions; the rest of a module has run already."""

    def __init__(self, filename: str, tree: ast.Module) -> None:
        self._filename = filename
        self._classes: list[str] = []
        self._functions: list[set[str]] = []  # names that are shared cells, by function
        self._names = [""]  # of the functions that we are inside of
        self._temporaries = 0
        self._globals = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}

    # -- where we are ------------------------------------------------------------------------------------------

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._classes.append(node.name)
        node.body = self._block(node.body)
        self._classes.pop()
        return node

    def _function(self, node: Any) -> ast.AST:
        outermost = not self._functions
        if outermost:
            shared = {name for item in ast.walk(node) if isinstance(item, ast.Nonlocal) for name in item.names}
            self._functions.append(shared)
        else:
            node.decorator_list = [self.visit(item) for item in node.decorator_list]
        self._names.append(node.name)
        node.body = self._block(node.body)
        self._names.pop()
        if outermost:
            self._functions.pop()
        rewritten: ast.AST = node
        return rewritten

    visit_FunctionDef = visit_AsyncFunctionDef = _function  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        outermost = not self._functions
        if outermost:
            self._functions.append(set())
        node.body = self.visit(node.body)
        if outermost:
            self._functions.pop()
        return node

    def visit(self, node: ast.AST) -> Any:
        if self._functions or isinstance(
            node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
        ):
            return super().visit(node)
        # Outside of functions there is nothing to rewrite but the functions inside.
        return self.generic_visit(node)

    # -- small pieces ------------------------------------------------------------------------------------------

    def _site(self, node: ast.AST, verb: str) -> ast.Constant:
        return ast.Constant(self._number(node, verb))

    def _number(self, node: ast.AST, verb: str) -> int:
        what = f"{verb} {ast.unparse(node)}"
        building = self._names[-1] in ("__init__", "__new__", "__post_init__")
        SITES.append(Site(self._filename, node.lineno, node.col_offset, what, building))  # type: ignore[attr-defined]
        return len(SITES) - 1

    def _call(self, hook: str, *arguments: ast.expr) -> ast.Call:
        return ast.Call(ast.Name(hook_name(hook), ast.Load()), list(arguments), [])

    def _mangled(self, name: str) -> ast.Constant:
        if name.startswith("__") and not name.endswith("__") and self._classes:
            name = f"_{self._classes[-1].lstrip('_')}{name}"
        return ast.Constant(name)

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"explore·{self._temporaries}"

    def _shared_name(self, name: str) -> bool:
        return name in self._globals or name in self._functions[0]

    @staticmethod
    def _at(new: Any, old: ast.AST) -> Any:
        return ast.fix_missing_locations(ast.copy_location(new, old))

    # -- loads -------------------------------------------------------------------------------------------------

    def _load(self, node: ast.expr, hook: str) -> ast.expr:
        """`node`, loaded; `hook` says what becomes of the value: load (looked into), use, give (to a function)."""
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "super":
                return node
            site = self._site(node, "load")
            base = self._load(node.value, "load")
            return self._at(self._call(hook, base, self._mangled(node.attr), site), node)  # type: ignore[no-any-return]
        result: ast.expr = self.visit(node)
        return result

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self._load(node, "use")

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            return node
        site = self._site(node, "load")
        base = self._load(node.value, "load")
        return self._at(self._call("item", base, self.visit(node.slice), site), node)  # type: ignore[no-any-return]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        if isinstance(function, ast.Name) and function.id == "next" and node.args and not node.keywords:
            site = self._site(node, "next")
            arguments = [self._load(argument, "load") for argument in node.args]
            return self._at(self._call("next_of", site, *arguments), node)  # type: ignore[no-any-return]
        pure = isinstance(function, ast.Name) and function.id in _PURE
        node.func = self._load(function, "call")
        node.args = [self._load(argument, "use" if pure else "give") for argument in node.args]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not isinstance(node.ctx, ast.Load) or not self._shared_name(node.id):
            return node
        return self._at(self._call("second", self._name_point(node, "load", False), node), node)  # type: ignore[no-any-return]

    def _name_point(self, node: ast.Name, verb: str, writes: bool) -> ast.Call:
        key = ast.Constant(f"{self._filename}:{node.id}")
        return self._call("at", key, self._site(node, verb), ast.Constant(writes))

    # -- stores ------------------------------------------------------------------------------------------------

    def _stores(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        """`target = value`, where `value` may be evaluated once only."""
        if isinstance(target, ast.Attribute):
            site = self._site(target, "store")
            call = self._call("store", value, self._load(target.value, "load"), self._mangled(target.attr), site)
            return [self._at(ast.Expr(call), target)]
        if isinstance(target, ast.Subscript):
            site = self._site(target, "store")
            call = self._call("set_item", value, self._load(target.value, "load"), self.visit(target.slice), site)
            return [self._at(ast.Expr(call), target)]
        if isinstance(target, ast.Name) and self._shared_name(target.id):
            stored = self._call("first", value, self._name_point(target, "store", True))
            return [self._at(ast.Assign([target], stored), target)]
        if isinstance(target, ast.Name):
            return [self._at(ast.Assign([target], value), target)]
        later: list[ast.stmt] = []
        simple = self._simple(target, later)
        return [self._at(ast.Assign([simple], value), target), *later]

    def _simple(self, target: ast.expr, later: list[ast.stmt]) -> ast.expr:
        """`target` with its attributes and items replaced by temporary names, which are stored `later`."""
        if isinstance(target, ast.Tuple | ast.List):
            target.elts = [self._simple(element, later) for element in target.elts]
            return target
        if isinstance(target, ast.Starred):
            target.value = self._simple(target.value, later)
            return target
        if isinstance(target, ast.Name) and not self._shared_name(target.id):
            return target
        name = self._temporary()
        later.extend(self._stores(target, self._at(ast.Name(name, ast.Load()), target)))
        return self._at(ast.Name(name, ast.Store()), target)  # type: ignore[no-any-return]

    def visit_Assign(self, node: ast.Assign) -> Any:
        value = self.visit(node.value)
        if len(node.targets) == 1:
            return self._stores(node.targets[0], value)
        name = self._temporary()
        statements = [self._at(ast.Assign([ast.Name(name, ast.Store())], value), node)]
        for target in node.targets:
            statements.extend(self._stores(target, self._at(ast.Name(name, ast.Load()), node)))
        return statements

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return node if isinstance(node.target, ast.Name) else self._at(ast.Pass(), node)
        if isinstance(node.target, ast.Name):
            node.value = self.visit(node.value)
            return node
        return self._stores(node.target, self.visit(node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target = node.target
        in_place = self._at(ast.Name(hook_name(_IN_PLACE[type(node.op)]), ast.Load()), node)
        if isinstance(target, ast.Name):
            if not self._shared_name(target.id):
                node.value = self.visit(node.value)
                return node
            loaded: Any = self.visit_Name(self._at(ast.Name(target.id, ast.Load()), target))
            changed = ast.Call(in_place, [loaded, self.visit(node.value)], [])
            return self._stores(target, self._at(changed, node))
        statements: list[ast.stmt] = []

        def once(expression: ast.expr) -> tuple[ast.expr, ast.expr]:
            if isinstance(expression, ast.Name | ast.Constant):
                return expression, expression
            name = self._temporary()
            statements.append(self._at(ast.Assign([ast.Name(name, ast.Store())], self._load(expression, "load")), node))
            return self._at(ast.Name(name, ast.Load()), node), self._at(ast.Name(name, ast.Load()), node)

        assert isinstance(target, ast.Attribute | ast.Subscript)
        one, other = once(target.value)
        if isinstance(target, ast.Attribute):
            name_ = self._mangled(target.attr)
            loaded = self._call("load", one, name_, self._site(target, "load"))
            changed = ast.Call(in_place, [loaded, self.visit(node.value)], [])
            stored = self._call("store", changed, other, name_, self._site(target, "store"))
        else:
            key, again = once(target.slice)
            loaded = self._call("item", one, key, self._site(target, "load"))
            changed = ast.Call(in_place, [loaded, self.visit(node.value)], [])
            stored = self._call("set_item", changed, other, again, self._site(target, "store"))
        return [*statements, self._at(ast.Expr(stored), node)]

    def visit_Delete(self, node: ast.Delete) -> Any:
        statements: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                site = self._site(target, "delete")
                call = self._call("delete", self._load(target.value, "load"), self._mangled(target.attr), site)
                statements.append(self._at(ast.Expr(call), node))
            elif isinstance(target, ast.Subscript):
                site = self._site(target, "delete")
                call = self._call("delete_item", self._load(target.value, "load"), self.visit(target.slice), site)
                statements.append(self._at(ast.Expr(call), node))
            else:
                statements.append(self._at(ast.Delete([target]), node))
        return statements

    def visit_For(self, node: ast.For) -> Any:
        node.iter = self.visit(node.iter)
        later: list[ast.stmt] = []
        node.target = self._simple(node.target, later)
        node.body = [*later, *self._block(node.body)]
        node.orelse = self._block(node.orelse)
        return node

    def visit_With(self, node: ast.With) -> Any:
        later: list[ast.stmt] = []
        for item in node.items:
            item.context_expr = self.visit(item.context_expr)
            if item.optional_vars is not None:
                item.optional_vars = self._simple(item.optional_vars, later)
        node.body = [*later, *self._block(node.body)]
        return node

    def visit_While(self, node: ast.While) -> Any:
        turn = self._at(ast.Expr(self._call("turn", ast.Constant(self._number(node.test, "round again:")))), node.test)
        node.test = self.visit(node.test)
        node.body = [turn, *self._block(node.body)]
        node.orelse = self._block(node.orelse)
        return node

    def _block(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        return [one for statement in statements for one in _many(self.visit(statement))]

    # -- what is left alone ------------------------------------------------------------------------------------

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        return node

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST:
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST:
        node.subject = self.visit(node.subject)
        for case in node.cases:
            case.guard = None if case.guard is None else self.visit(case.guard)
            case.body = self._block(case.body)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.iter = self.visit(node.iter)
        node.ifs = [self.visit(item) for item in node.ifs]
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        return node


def _many(statements: Any) -> list[ast.stmt]:
    return statements if isinstance(statements, list) else [statements]


def compiled(source: str, filename: str) -> CodeType:
    """`source`, compiled with its accesses as calls. Raises SyntaxError as `compile` does."""
    tree = ast.parse(source, filename)
    tree = _Rewriter(filename, tree).visit(tree)
    code: CodeType = compile(ast.fix_missing_locations(tree), filename, "exec", dont_inherit=True)
    return code
