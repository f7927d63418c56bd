"""Makes calls of the loads in expressions: the part of the rewriter that looks at no statement."""

from __future__ import annotations

import ast
import builtins
from typing import Any, Final

from reactive_runtime.explore._instrument.operations import BINARY, IDENTITY
from reactive_runtime.explore._instrument.scopes import Scopes
from reactive_runtime.explore._instrument.sites import SITES, Site

__all__ = ["FRESH", "HIDDEN", "HIDDEN_STORES", "Expressions", "hook_name", "is_named"]

_OF_THE_FRAME: Final = frozenset({"super", "locals", "globals", "vars", "dir", "eval", "exec"})
"""Functions that look at the frame they are called from."""

_EVALUATING: Final = frozenset({"eval", "exec"})
_OF_LOCALS: Final = frozenset({"locals", "vars", "dir"})
_NAMESPACES: Final = frozenset({"__globals__", "f_globals"})
"""Attributes that are the names of a module."""

HIDDEN: Final = frozenset({"cell_contents", "f_locals"})
"""Attributes under which names that functions share are reached, and it can't be seen which."""

HIDDEN_STORES: Final = HIDDEN | {"__class__", "__bases__", "__code__"}
"""Attributes on which it depends what others are."""

FRESH: Final = (
    ast.Constant, ast.JoinedStr, ast.Lambda, ast.Compare, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.Set,
    ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp,
)  # fmt: skip
"""Expressions whose value no other thread has yet."""

_BUILTINS: Final = frozenset(vars(builtins))


def hook_name(hook: str) -> str:
    """The name under which a hook is found by rewritten code, in `builtins`."""
    return f"explore·{hook}"


class Expressions(ast.NodeTransformer):
    """Rewrites expressions."""

    def __init__(self, filename: str, source: str, tree: ast.Module, first: int | None = None) -> None:
        self._again = first  # the number of the next site, where they have numbers already
        self._filename = filename
        self._lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._classes: list[str] = []
        self._module = Scopes(tree)
        self._filling: list[list[ast.expr] | None] = []  # by function: what `filled` gets, where a cache may keep it
        self._functions: list[set[str]] = []  # names that are shared cells, by function
        self._names = [""]  # of the functions that we are inside of
        self._temporaries = 0
        self._final = _final(tree)
        self._scopes: list[tuple[set[str], bool]] = []  # names that are local, by scope around; whether it is a class

    # -- small pieces ------------------------------------------------------------------------------------------

    def _site(self, node: ast.AST, verb: str, called: ast.AST | None = None) -> ast.Constant:
        return ast.Constant(self._number(node, verb, called))

    def _number(self, node: Any, verb: str, called: Any = None) -> int:
        if self._again is not None:
            self._again += 1
            return self._again - 1
        end = None if called is None else (called.end_lineno, called.end_col_offset)
        text = self._text(node)
        name = isinstance(node, ast.Name)
        if verb in ("fill", "define"):
            text = node.name
        stores = text.rpartition(".")[2] if verb in ("store", "delete") and (name or "." in text) else ""
        if verb == "define":
            stores = text
        if verb == "fill" and any("property" in ast.unparse(item) for item in node.decorator_list):
            stores = str(self._mangled(text).value)
        building = self._names[-1] in ("__init__", "__new__", "__post_init__") and not name
        place = (self._filename, node.lineno, node.col_offset, self._end(node))
        SITES.append(Site(*place, end, f"{verb} {text}", building, stores))
        return len(SITES) - 1

    def _end(self, node: Any) -> tuple[int, int]:
        return node.end_lineno, node.end_col_offset

    def _text(self, node: Any) -> str:
        """The source of `node`, on one line."""
        lines = self._lines[node.lineno - 1 : node.end_lineno]
        if not all(map(str.isascii, lines)):
            lines = [line.encode().decode("latin-1") for line in lines]  # columns are counted in bytes
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        text = " ".join(line.strip() for line in lines)
        return text if text.isascii() else text.encode("latin-1", "replace").decode(errors="replace")

    def _hook(self, hook: str) -> ast.Name:
        return ast.Name(hook_name(hook), ast.Load())

    def _call(self, hook: str, *arguments: ast.expr) -> ast.Call:
        return ast.Call(self._hook(hook), list(arguments), [])

    def _mangled(self, name: str) -> ast.Constant:
        if name.startswith("__") and not name.endswith("__") and self._classes:
            inside = self._classes[-1].lstrip("_")
            name = f"_{inside}{name}" if inside else name
        return ast.Constant(name)

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"__explore·{self._temporaries}__"  # no member of an enumeration

    def _shared_name(self, name: str) -> bool:
        return name in self._module.globals or name in self._functions[0]

    def _of_the_module(self, name: str) -> bool:
        """Whether it is a name of the module that no function changes by that name alone."""
        if name in self._final or name.startswith("__") or (name in _BUILTINS and name not in self._module.names):
            return False
        innermost = len(self._scopes) - 1
        return not any(
            name in names
            for number, (names, of_class) in enumerate(self._scopes)
            if not of_class or number == innermost
        )

    @staticmethod
    def _at(new: Any, old: ast.AST) -> Any:
        return ast.copy_location(new, old)

    # -- loads -------------------------------------------------------------------------------------------------

    def _load(self, node: ast.expr, hook: str, call: ast.AST | None = None) -> ast.expr:
        """`node`, loaded; `hook` says what becomes of an attribute: load (looked into), take (kept), use, call."""
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            if _is_super(node.value):
                given = [node.value, self._mangled(node.attr), self._site(node, "load")]
                return _at_its_end(self._at(self._call("inherited", *given), node))
            site = self._site(node, "load", call)
            base = self._base(node)
            loaded = _at_its_end(self._at(self._call(hook, base, self._mangled(node.attr), site), node))
            if node.attr in HIDDEN:
                loaded = self._at(self._call("unseen", loaded, site), node)
            return self._mapped(loaded) if node.attr in _NAMESPACES else loaded
        result: ast.expr = self.visit(node)
        return result

    def _base(self, node: ast.Attribute) -> ast.expr:
        """What an attribute is of."""
        base = self._load(node.value, "load")
        return self._mapped(base) if node.attr == "__dict__" else base

    def _mapped(self, node: ast.expr) -> ast.expr:
        """`node`, whose attributes are about to be reached through their mapping."""
        return self._at(self._call("mapped", node), node)  # type: ignore[no-any-return]

    def _looked(self, node: ast.expr) -> ast.expr:
        """`node`, whose value is looked into: what it holds counts as read."""
        if isinstance(node, ast.Attribute):
            return self._load(node, "use")
        if isinstance(node, ast.BoolOp):
            node.values = [self._looked(value) for value in node.values]
            return node
        if isinstance(node, FRESH):
            fresh: ast.expr = self.visit(node)
            return fresh
        site = self._site(node, "look at")
        return self._at(self._call("look", self.visit(node), site), node)  # type: ignore[no-any-return]

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self._load(node, "take")

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            return node
        site = self._site(node, "load")
        base = self._load(node.value, "load")
        return self._at(self._call("item", base, self.visit(node.slice), site), node)  # type: ignore[no-any-return]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        if isinstance(function, ast.Attribute) and not _is_super(function.value):
            node.func = self._load(function, "call", node)
            if node.func.lineno != node.lineno:
                node.lineno, node.col_offset = node.func.lineno, node.func.col_offset
        elif isinstance(function, ast.Name) and (
            function.id in _EVALUATING
            or (function.id in _OF_LOCALS and not node.args and not node.keywords and self._functions[0])
        ):
            node.func = self._at(self._call("unseen", function, self._site(node, "call", node)), function)
        elif not (
            (isinstance(function, ast.Name) and function.id in _OF_THE_FRAME)
            or (isinstance(function, ast.Attribute) and function.attr == "__init__")
        ):
            site = self._site(node, "call", node)
            node.func = self._at(self._call("function", self._load(function, "load"), site), function)
        node.args = [self.visit(argument) for argument in node.args]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        if is_named(function, "vars") and len(node.args) == 1 and not isinstance(node.args[0], ast.Starred):
            node.args = [self._mapped(node.args[0])]
        return self._mapped(node) if is_named(function, "globals") else node

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        node.value = self._looked(node.value) if node.arg is None else self.visit(node.value)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        if isinstance(node.ctx, ast.Load):
            node.value = self._looked(node.value)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        node.values = [
            self._looked(value) if key is None else self.visit(value)
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        node.keys = [None if key is None else self.visit(key) for key in node.keys]
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) == 1:
            found = self._operation(node.ops[0], node.left, node.comparators[0])
            if found is not None:
                return self._at(found, node)  # type: ignore[no-any-return]
        elif sum(not isinstance(item, ast.Constant) for item in (node.left, *node.comparators)) > 1:
            return self._chain(node)
        operands = [node.left, *node.comparators]
        equal = (ast.Is, ast.IsNot)
        looked = [not isinstance(item, equal) for item in node.ops]
        done = [
            self._looked(item) if before or after else self._load(item, "load")
            for item, before, after in zip(operands, [False, *looked], [*looked, False], strict=True)
        ]
        node.left, node.comparators = done[0], done[1:]
        return node

    def _operation(self, kind: ast.AST, one: ast.expr, other: ast.expr) -> ast.expr | None:
        """Two values are looked into as the operation takes place: more may happen while the other is evaluated.

        None, where a look at one of them comes just before that.
        """
        if type(kind) not in BINARY or isinstance(one, FRESH) or isinstance(other, ast.Constant):
            return None
        sites = [self._site(item, "look at") for item in (one, other)]
        values = [self._load(item, "load") for item in (one, other)]
        return self._call(f"{BINARY[type(kind)]}_of", *values, *sites)

    def _chain(self, node: ast.Compare) -> ast.AST:
        """`one < two < three`: the values are evaluated, and each two of them compared, in the order that they were."""
        compared: list[ast.expr] = []
        for kind, item in zip([*node.ops, None], [node.left, *node.comparators], strict=True):
            given: list[ast.expr] = [self._site(item, "look at")]
            if kind is not None:
                given.append(self._hook(f"{(BINARY | IDENTITY)[type(kind)]}_of"))
            compared.append(self._at(self._call("compared", self._load(item, "load"), *given), item))
        node.left, node.comparators, node.ops = compared[0], compared[1:], [ast.Eq() for _ in node.ops]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        found = self._operation(node.op, node.left, node.right)
        if found is not None:
            return self._at(found, node)  # type: ignore[no-any-return]
        node.left = self._looked(node.left)
        node.right = self._looked(node.right)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        node.values = [*map(self._looked, node.values[:-1]), self.visit(node.values[-1])]
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        node.operand = self._looked(node.operand)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        node.test, node.body, node.orelse = self._looked(node.test), self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        node.value = self._looked(node.value)
        if node.format_spec is not None:
            node.format_spec = self.visit(node.format_spec)
        return node

    def visit_Yield(self, node: ast.Yield) -> ast.AST:
        site = self._site(node, "resume")
        node.value = None if node.value is None else self.visit(node.value)
        return self._at(self._call("resumed", node, site), node)  # type: ignore[no-any-return]

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:
        site = self._site(node.value, "next of")
        node.value = self._at(self._call("delegated", self._load(node.value, "load"), site), node.value)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            return node
        if not self._shared_name(node.id):
            if not self._of_the_module(node.id):
                return node
            site = self._site(node, "load")
            named = self._call("named", ast.Constant(node.id), ast.Constant(self._key_of_the_module(node.id)), site)
            return self._at(ast.BoolOp(ast.Or(), [named, node]), node)  # type: ignore[no-any-return]
        return self._at(self._call("second", self._name_point(node, "load", False), node), node)  # type: ignore[no-any-return]

    def _name_point(self, node: ast.Name, verb: str, writes: bool) -> ast.Call:
        return self._call("at", ast.Constant(self._key(node.id)), self._site(node, verb), ast.Constant(writes))

    def _key_of_the_module(self, name: str) -> str:
        return f"{self._filename}:{name}"

    def _key(self, name: str) -> str:
        """What a name that functions share is called."""
        return f"{self._filename}{':' if name in self._module.globals else '·'}{name}"

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        node.value = self.visit(node.value)
        if self._shared_name(node.target.id):
            node.value = self._at(
                self._call("first", node.value, self._name_point(node.target, "store", True)), node.value
            )
        return node

    def _each(self, node: ast.expr) -> ast.expr:
        """What a loop goes through: each of its steps reads it."""
        if isinstance(node, FRESH) or (isinstance(node, ast.Call) and is_named(node.func, "range")):
            fresh: ast.expr = self.visit(node)
            return fresh
        site = self._site(node, "next of")
        return self._at(self._call("each", self._load(node, "load"), site), node)  # type: ignore[no-any-return]

    # -- scopes inside of an expression ------------------------------------------------------------------------

    def _given(self, arguments: ast.arguments) -> None:
        """What arguments are where they are not given is evaluated outside of the function."""
        arguments.defaults = [self.visit(item) for item in arguments.defaults]
        arguments.kw_defaults = [None if item is None else self.visit(item) for item in arguments.kw_defaults]

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        outermost = not self._functions
        if outermost:
            node.args = self.visit(node.args)
            self._functions.append(set())
        else:
            self._given(node.args)
        self._scopes.append((self._module[node].bound, False))
        fills = self._site(node, "keep") if node in self._module.cached_lambdas else None
        body: ast.expr = self.visit(node.body)
        if fills is not None:
            given = [ast.Constant("<lambda>"), ast.Constant(None), ast.Constant(node.lineno), fills]
            body = self._at(self._call("filled", body, *given), body)
        node.body = self._at(ast.BoolOp(ast.Or(), [self._call("begun"), body]), body)
        self._scopes.pop()
        if outermost:
            self._functions.pop()
        return node

    def _comprehension(self, node: Any) -> ast.AST:
        self._scopes.append((self._module[node].bound, False))
        rewritten = self.generic_visit(node)
        self._scopes.pop()
        return rewritten

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815


def _final(tree: ast.Module) -> set[str]:
    """The names of which a module says at its top that they are final."""
    return {
        node.target.id
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and "Final" in ast.unparse(node.annotation)
    }


def _at_its_end(node: ast.expr) -> ast.expr:
    """`node`, with the line where its attribute stands, which is the last of several: that is what a traceback says."""
    if node.end_lineno is not None and node.end_lineno != node.lineno:
        node.lineno, node.col_offset = node.end_lineno, 0
    return node


def is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and is_named(node.func, "super")
