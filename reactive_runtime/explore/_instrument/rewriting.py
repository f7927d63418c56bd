"""Makes points of the loads and stores of a module's code, with the object in hand.

A tracer sees which instruction comes next, but not which object it is about to touch; and it costs a call for
every instruction. So the source of a module is compiled a second time, with each access turned into a call, and the
functions run that code while they are explored:

    self.demand += n        store(iadd(load(self, "demand", 7), n), self, "demand", 8)

The numbers are *sites*: where in the source the access stands. Functions keep their identity; only their `__code__`
is exchanged, and given back. Lines stay what they are, for tracebacks and debuggers.

What counts as an access: attributes, items, names declared `global` or `nonlocal`, names of a module that it does not
call final, which others may assign to by the module, and whatever looks into a value or is handed one, since it may be
a container: a test, a comparison, an unpacking, each turn of a loop, a call. What does not: local names as such, and
whatever happens inside of code that is not rewritten, in C, or in a module that was not named: a call of it is one
access of all that it is handed.
"""

from __future__ import annotations

import ast
import builtins
import operator
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final

from reactive_runtime.explore._instrument.scopes import Scopes, located

__all__ = [
    "ASSERTIONS",
    "HIDDEN",
    "HIDDEN_STORES",
    "IDENTITIES",
    "IN_PLACE",
    "OPERATIONS",
    "SITES",
    "Augmented",
    "Compared",
    "Site",
    "Target",
    "Valued",
    "compiled",
    "compiled_with_a_stop",
    "hook_name",
    "plain_codes",
]


@dataclass(frozen=True, slots=True)
class Site:
    """Where an access stands."""

    filename: str
    line: int
    column: int
    end: tuple[int, int]
    """The line and the column behind it."""
    called: tuple[int, int] | None
    """Where the call ends that it is a part of, if it is what is called."""
    what: str
    """In words: `store self.demand`."""
    building: bool
    """Whether it is an attribute in an `__init__`, where an object is not shared yet, as a rule."""
    stores: str
    """The attribute, or the name that functions share, that is stored or deleted; empty, where none is."""


SITES: Final[list[Site]] = []
"""Where the accesses of all rewritten files stand, by number. Written by the one exploration that runs."""

_OPERATORS: Final = "iadd isub imul itruediv ifloordiv imod ipow ilshift irshift ior ixor iand imatmul"
IN_PLACE: Final = {name: getattr(operator, name) for name in _OPERATORS.split()}
"""What an assignment with an operator does to the value."""

_BINARY: Final = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.LShift: "lshift", ast.RShift: "rshift", ast.BitOr: "or_", ast.BitXor: "xor",
    ast.BitAnd: "and_", ast.MatMult: "matmul", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
    ast.Eq: "eq", ast.NotEq: "ne", ast.In: "is_in", ast.NotIn: "is_not_in",
}  # fmt: skip
_IDENTITY: Final = {ast.Is: "is", ast.IsNot: "is_not"}
OPERATIONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **{name: getattr(operator, name) for name in _BINARY.values() if not name.startswith("is_")},
    "is_in": lambda one, other: one in other,
    "is_not_in": lambda one, other: one not in other,
}
"""What an operator between two values does."""

IDENTITIES: Final[dict[str, Callable[[Any, Any, int, int], bool]]] = {
    "is_of": lambda one, other, at_one, at_other: one is other,
    "is_not_of": lambda one, other, at_one, at_other: one is not other,
}
"""The same of those that look into nothing."""


class Target:
    """What is assigned to in place of an attribute or an item, where no expression can give the value: in a loop.

    It is made, and stored, in its turn, as what it stands for.
    """

    __slots__ = ("_entry", "_key", "_site", "_store")

    def __init__(self, store: Callable[[Any, Any, Any, int], object], entry: Any, key: Any, site: int) -> None:
        self._store = store
        self._entry = entry
        self._key = key
        self._site = site

    def _stored(self, value: Any) -> None:
        self._store(value, self._entry, self._key, self._site)

    value = property(None, _stored)


class Augmented(Target):
    """The same for an assignment with an operator: what it is of is evaluated once."""

    __slots__ = ("_at_load", "_load", "_operation")

    def __init__(
        self,
        load: Callable[[Any, Any, int], Any],
        at_load: int,
        operation: tuple[Callable[[Any, Any, int, int], Any], int, int] | None,
        store: Callable[[Any, Any, Any, int], object],
        entry: Any,
        key: Any,
        site: int,
    ) -> None:
        super().__init__(store, entry, key, site)
        self._load = load
        self._at_load = at_load
        self._operation = operation  # and the sites of the two values; None: they are not looked into

    def _loaded(self) -> Any:
        value = self._load(self._entry, self._key, self._at_load)
        return value if self._operation is None else _Operated(value, *self._operation)

    value = property(_loaded, Target._stored)


class _Operated:
    """A value that is to be changed by an operator."""

    def __init__(
        self, value: Any, operation: Callable[[Any, Any, int, int], Any], at_value: int, at_operand: int
    ) -> None:
        self._value = value
        self._operation = operation
        self._sites = at_value, at_operand

    def _operate(self, operand: Any) -> Any:
        return self._operation(self._value, operand, *self._sites)


for _name in IN_PLACE:
    setattr(_Operated, f"__{_name}__", _Operated._operate)


class Compared:
    """One of the values that are compared in a chain: each pair is looked into as it is compared."""

    __slots__ = ("_operation", "_site", "_value")

    def __init__(self, value: Any, site: int, operation: Callable[[Any, Any, int, int], Any] | None = None) -> None:
        self._value = value
        self._site = site
        self._operation = operation  # with the next one; of the last, none

    def __eq__(self, other: Any) -> Any:
        assert self._operation is not None
        return self._operation(self._value, other._value, self._site, other._site)

    __hash__ = None  # type: ignore[assignment]


class Valued:
    """A value in a pattern, where only an attribute may stand."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


ASSERTIONS: Final = "@pytest_ar"
"""A name in the modules whose assertions pytest has rewritten."""

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

_NUMBERS: Final = (int, float, complex)

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

    # -- where we are ------------------------------------------------------------------------------------------

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._classes.append(node.name)
        self._scopes.append((self._module[node].bound if self._functions else set(), True))
        node.body = self._block(node.body)
        self._scopes.pop()
        self._classes.pop()
        if self._functions:
            self._binds(node)
        else:
            node.decorator_list = [self.visit(item) for item in node.decorator_list]
        node.bases = [self.visit(item) for item in node.bases]
        node.keywords = [self.visit(item) for item in node.keywords]
        return node

    def _binds(self, node: Any) -> None:
        """A function or a class gets its name, once its decorators have returned: the name may be shared."""
        for number, item in enumerate(node.decorator_list):
            line = item.lineno  # where the function begins, for all who ask
            node.decorator_list[number] = self.visit(item)
            node.decorator_list[number].lineno = line
        if self._shared_name(node.name):
            name = ast.Constant(self._key(node.name))
            binding = self._at(self._call("binding", name, self._site(node, "define")), node)
            for item in (one for one in ast.walk(binding) if isinstance(one, ast.expr)):
                item.lineno = item.end_lineno = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            node.decorator_list.insert(0, binding)

    def _function(self, node: Any) -> ast.AST:
        outermost, scope = not self._functions, self._module[node]
        if outermost:  # only the lambdas among what runs when it is defined
            node.decorator_list = [self.visit(item) for item in node.decorator_list]
            node.args = self.visit(node.args)
            node.returns = None if node.returns is None else self.visit(node.returns)
            self._functions.append(scope.cells)
        else:
            self._binds(node)
            self._given(node.args)
        self._names.append(node.name)
        self._scopes.append((scope.bound, False))
        begins = self._site(node, "begin") if scope.yields else None
        self._filling.append(self._fills(node) if begins is None else None)
        node.body = self._block(node.body)
        if self._filling[-1] is not None:
            node.body.append(self._at(ast.Return(self._filled(ast.Constant(None))), node.body[-1]))
        self._filling.pop()
        first: ast.stmt
        if begins is None:
            first = ast.Assign([ast.Attribute(self._hook("entry"), "entered", ast.Store())], ast.Constant(True))
        else:
            first = ast.Expr(self._call("resumed", ast.Constant(None), begins))
        node.body.insert(int(ast.get_docstring(node, clean=False) is not None), self._at(first, node.body[0]))
        self._scopes.pop()
        self._names.pop()
        if outermost:
            self._functions.pop()
        rewritten: ast.AST = node
        return rewritten

    visit_FunctionDef = visit_AsyncFunctionDef = _function  # noqa: N815

    def _given(self, arguments: ast.arguments) -> None:
        """What arguments are where they are not given is evaluated outside of the function."""
        arguments.defaults = [self.visit(item) for item in arguments.defaults]
        arguments.kw_defaults = [None if item is None else self.visit(item) for item in arguments.kw_defaults]

    def _fills(self, node: Any) -> list[ast.expr] | None:
        """What `filled` gets where a function returns, if a cache may keep the value."""
        if isinstance(node, ast.AsyncFunctionDef) or not (
            node.name in self._module.cached or any(map(_may_cache, node.decorator_list))
        ):
            return None
        arguments = [*node.args.posonlyargs, *node.args.args]
        owner: ast.expr = ast.Constant(None)
        if arguments and self._classes and not _deletes(node, arguments[0].arg):
            owner = ast.Name(arguments[0].arg, ast.Load())
        line = min([node.lineno, *(item.lineno for item in node.decorator_list)])
        return [self._mangled(node.name), owner, ast.Constant(line), self._site(node, "fill")]

    def _filled(self, value: ast.expr) -> ast.Call:
        given = self._filling[-1]
        assert given is not None
        return self._call("filled", value, *given)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        node.value = None if node.value is None else self.visit(node.value)
        if self._filling and self._filling[-1] is not None:
            node.value = self._at(self._filled(node.value or ast.Constant(None)), node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        outermost = not self._functions
        if outermost:
            node.args = self.visit(node.args)
            self._functions.append(set())
        else:
            self._given(node.args)
        self._scopes.append((self._module[node].bound, False))
        body: ast.expr = self.visit(node.body)
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

    def visit(self, node: ast.AST) -> Any:
        if self._functions or isinstance(
            node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
        ):
            return super().visit(node)
        # Outside of functions there is nothing to rewrite but the functions inside.
        return self.generic_visit(node)

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
        if isinstance(node, _FRESH):
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
        if _named(function, "vars") and len(node.args) == 1 and not isinstance(node.args[0], ast.Starred):
            node.args = [self._mapped(node.args[0])]
        return self._mapped(node) if _named(function, "globals") else node

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
        if type(kind) not in _BINARY or isinstance(one, _FRESH) or isinstance(other, ast.Constant):
            return None
        sites = [self._site(item, "look at") for item in (one, other)]
        values = [self._load(item, "load") for item in (one, other)]
        return self._call(f"{_BINARY[type(kind)]}_of", *values, *sites)

    def _chain(self, node: ast.Compare) -> ast.AST:
        """`one < two < three`: the values are evaluated, and each two of them compared, in the order that they were."""
        compared: list[ast.expr] = []
        for kind, item in zip([*node.ops, None], [node.left, *node.comparators], strict=True):
            given: list[ast.expr] = [self._site(item, "look at")]
            if kind is not None:
                given.append(self._hook(f"{(_BINARY | _IDENTITY)[type(kind)]}_of"))
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
        node.value = self._looked(node.value)
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

    def _kept(self, name: str, node: Any, load: str) -> list[ast.stmt]:
        """What has a temporary name gets its own, which functions share."""
        target = self._at(ast.Name(name, ast.Store()), node)
        return [*self._stores(target, self._at(ast.Name(load, ast.Load()), node)), self._gone(load, node)]

    # -- stores ------------------------------------------------------------------------------------------------

    def _stores(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        """`target = value`, where `value` may be evaluated once only, and `target` is no tuple."""
        if isinstance(target, ast.Attribute | ast.Subscript):
            hook, *given = self._storing(target)
            return [self._at(ast.Expr(ast.Call(hook, [value, *given], [])), target)]
        if isinstance(target, ast.Name) and self._shared_name(target.id):
            value = self._call("first", value, self._name_point(target, "store", True))
        return [self._at(ast.Assign([target], value), target)]

    def _storing(self, target: ast.Attribute | ast.Subscript) -> list[ast.expr]:
        """The hook that stores an attribute or an item, and what it is handed behind the value."""
        site = self._site(target, "store")
        if isinstance(target, ast.Subscript):
            return [self._hook("set_item"), self._load(target.value, "load"), self.visit(target.slice), site]
        return [self._hook(_hook_of(target)), self._base_of(target, site), self._mangled(target.attr), site]

    def _base_of(self, target: ast.Attribute, site: ast.Constant) -> ast.expr:
        """What an attribute is of that is stored or deleted."""
        base = self._base(target)
        return self._at(self._call("unseen", base, site), target) if target.attr in HIDDEN_STORES else base

    def _target(self, target: ast.expr, later: list[ast.stmt], *, own: bool = False) -> ast.expr:
        """What stands for `target` where several are stored, each in its turn: to an attribute or an item, a property.

        A name that functions share gets its value `later`, from a temporary name, and so does all that stands behind
        it. `own` says that no name is shared, as those of a comprehension.
        """
        if isinstance(target, ast.Tuple | ast.List):
            target.elts = [self._target(element, later, own=own) for element in target.elts]
            return target
        if isinstance(target, ast.Starred):
            target.value = self._target(target.value, later, own=own)
            return target
        if not later:
            if isinstance(target, ast.Attribute | ast.Subscript):
                return self._property(self._call("target", *self._storing(target)), target)
            if own or not self._shared_name(target.id):  # type: ignore[attr-defined]
                return target
        name = self._temporary()
        later.extend(self._stores(target, self._at(ast.Name(name, ast.Load()), target)))
        later.append(self._gone(name, target))
        return self._at(ast.Name(name, ast.Store()), target)  # type: ignore[no-any-return]

    def _property(self, owner: ast.expr, node: ast.AST) -> ast.expr:
        return self._at(ast.Attribute(self._at(owner, node), "value", ast.Store()), node)  # type: ignore[no-any-return]

    def _gone(self, name: str, node: ast.AST) -> ast.stmt:
        """A temporary name keeps its object no longer than it is needed."""
        gone: ast.stmt = self._at(ast.Delete([self._at(ast.Name(name, ast.Del()), node)]), node)
        return gone

    def visit_Assign(self, node: ast.Assign) -> Any:
        unpacked = any(isinstance(target, ast.Tuple | ast.List) for target in node.targets)
        node.value = self._looked(node.value) if unpacked else self.visit(node.value)
        if len(node.targets) == 1 and not unpacked:
            return self._stores(node.targets[0], node.value)
        later: list[ast.stmt] = []
        targets: list[ast.expr] = []
        for target in node.targets:
            if isinstance(target, ast.Name) and self._shared_name(target.id) and not later:
                given = [ast.Constant(self._key(target.id)), ast.Constant(None), self._site(target, "store")]
                targets.append(self._property(self._call("target", self._hook("store_name"), *given), target))
                targets.append(target)
            else:
                targets.append(self._target(target, later))
        node.targets = targets
        return [node, *later]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        target = node.target
        if node.value is None:
            if isinstance(target, ast.Name):
                return node
            looked = [target.value, *([target.slice] if isinstance(target, ast.Subscript) else [])]
            return [self._at(ast.Expr(self._load(item, "load")), node) for item in looked]
        if isinstance(target, ast.Name):
            value: ast.expr = self.visit(node.value)
            node.value = value
            if self._shared_name(target.id):
                node.value = self._at(self._call("first", value, self._name_point(target, "store", True)), target)
            return node
        return self._stores(node.target, self.visit(node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target = node.target
        number = isinstance(node.value, ast.Constant) and type(node.value.value) in _NUMBERS

        def changed(value: ast.expr) -> ast.expr:
            hook = _IN_PLACE[type(node.op)]
            if number:  # changes no container
                return self._call(hook, value, node.value)
            sites = self._site(target, "change"), self._site(node.value, "look at")
            return self._call(f"{hook}_at", value, self._load(node.value, "load"), *sites)

        if isinstance(target, ast.Name):
            if not self._shared_name(target.id):
                if not number:
                    name = self._at(ast.Name(target.id, ast.Load()), target)
                    sites = self._site(target, "change"), self._site(node.value, "look at")
                    call = self._call("changing", self._load(node.value, "load"), name, *sites)
                    node.value = self._at(call, node.value)
                return node
            loaded: Any = self.visit_Name(self._at(ast.Name(target.id, ast.Load()), target))
            return self._stores(target, self._at(changed(loaded), node))
        bound = {item.target.id for item in ast.walk(node) if isinstance(item, ast.NamedExpr)}

        def stays(expression: ast.expr) -> bool:
            """Whether it may be evaluated twice."""
            return isinstance(expression, ast.Constant) or (
                isinstance(expression, ast.Name)
                and expression.id not in bound
                and not self._shared_name(expression.id)
                and not self._of_the_module(expression.id)
            )

        by_name = isinstance(target, ast.Attribute)
        load, at_load = self._hook("load" if by_name else "item"), self._site(target, "load")
        again = target.attr not in HIDDEN_STORES if isinstance(target, ast.Attribute) else stays(target.slice)
        if again and stays(target.value):
            hook, *given, site = self._storing(target)
            value = changed(ast.Call(load, [*given, at_load], []))
            return self._at(ast.Expr(ast.Call(hook, [value, *given, site], [])), node)
        operation: ast.expr = ast.Constant(None)
        stored = self._storing(target)
        if not number:
            sites = self._site(target, "change"), self._site(node.value, "look at")
            operation = ast.Tuple([self._hook(f"{_IN_PLACE[type(node.op)]}_at"), *sites], ast.Load())
            node.value = self._load(node.value, "load")
        node.target = self._property(self._call("augmented", load, at_load, operation, *stored), target)  # type: ignore[assignment]
        return node

    def visit_Delete(self, node: ast.Delete) -> Any:
        statements: list[ast.stmt] = []
        targets = list(reversed(node.targets))
        while targets:
            target = targets.pop()
            if isinstance(target, ast.Tuple | ast.List):
                targets.extend(reversed(target.elts))
            elif isinstance(target, ast.Attribute):
                site = self._site(target, "delete")
                call = self._call("delete", self._base_of(target, site), self._mangled(target.attr), site)
                statements.append(self._at(ast.Expr(call), node))
            elif isinstance(target, ast.Subscript):
                site = self._site(target, "delete")
                call = self._call("delete_item", self._load(target.value, "load"), self.visit(target.slice), site)
                statements.append(self._at(ast.Expr(call), node))
            else:
                if isinstance(target, ast.Name) and self._shared_name(target.id):
                    statements.append(self._at(ast.Expr(self._name_point(target, "delete", True)), node))
                statements.append(self._at(ast.Delete([target]), node))
        return statements or self._at(ast.Pass(), node)  # `del ()`

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        node.value = self.visit(node.value)
        if self._shared_name(node.target.id):
            node.value = self._at(
                self._call("first", node.value, self._name_point(node.target, "store", True)), node.value
            )
        return node

    def _each(self, node: ast.expr) -> ast.expr:
        """What a loop goes through: each of its steps reads it."""
        if isinstance(node, _FRESH) or (isinstance(node, ast.Call) and _named(node.func, "range")):
            fresh: ast.expr = self.visit(node)
            return fresh
        site = self._site(node, "next of")
        return self._at(self._call("each", self._load(node, "load"), site), node)  # type: ignore[no-any-return]

    def visit_If(self, node: ast.If) -> Any:
        node.test = self._looked(node.test)
        if _explains(node):  # what pytest says of the values of an `assert` is no access of the program
            name = self._at(ast.Name(hook_name("undisturbed"), ast.Load()), node)
            item = ast.withitem(self._at(ast.Call(name, [], []), node))
            node.body = [self._at(ast.With([item], node.body), node)]
            return node
        node.body = self._block(node.body)
        node.orelse = self._block(node.orelse)
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        node.test = self._looked(node.test)
        node.msg = None if node.msg is None else self.visit(node.msg)
        return node

    def visit_AsyncFor(self, node: ast.AsyncFor) -> Any:
        node.iter = self._load(node.iter, "load")
        return self._loop(node)

    def visit_For(self, node: ast.For) -> Any:
        node.iter = self._each(node.iter)
        return self._loop(node)

    def _loop(self, node: ast.For | ast.AsyncFor) -> Any:
        later: list[ast.stmt] = []
        node.target = self._target(node.target, later)
        node.body = [*later, *self._block(node.body)]
        node.orelse = self._block(node.orelse)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.iter = self._each(node.iter)
        node.ifs = [self._looked(item) for item in node.ifs]
        node.target = self._target(node.target, [], own=True)
        return node

    def visit_Match(self, node: ast.Match) -> Any:
        patterns = [item for case in node.cases for item in ast.walk(case.pattern)]
        names = {name for item in patterns if isinstance(item, ast.MatchClass) for name in item.kwd_attrs}
        if any(isinstance(item, _LOOKING_PATTERNS) for item in patterns):
            site = self._site(node.subject, "match")
            given: list[ast.expr] = [ast.Tuple([ast.Constant(item) for item in sorted(names)], ast.Load())]
            given.append(ast.Tuple(self._classes_in(patterns), ast.Load()))
            node.subject = self._at(self._call("matched", self._load(node.subject, "load"), *given, site), node.subject)
        else:
            node.subject = self._looked(node.subject)
        left: list[ast.stmt] = []  # temporary names go, also where what stands behind the pattern did not hold
        for case in node.cases:
            self._values(case.pattern)
            case.guard = None if case.guard is None else self._looked(case.guard)
            kept = self._captured(case.pattern)
            guard = case.guard
            if guard is not None:
                for name, item, load in reversed(kept):
                    stored: Any = self._stores(self._at(ast.Name(name, ast.Store()), item), ast.Name(load, ast.Load()))
                    named = self._at(ast.NamedExpr(stored[0].targets[0], stored[0].value), item)
                    guard = self._at(self._call("second", named, guard), item)
                    left.append(self._at(ast.Assign([ast.Name(load, ast.Store())], ast.Constant(None)), item))
                    left.append(self._gone(load, item))
                case.guard = guard
                case.body = [*left, *self._block(case.body)]
            else:
                first = [statement for given in kept for statement in self._kept(*given)]
                case.body = [*left, *first, *self._block(case.body)]
        return [node, *left]

    def _values(self, pattern: ast.pattern) -> None:
        """The attributes that a pattern compares with are loaded where they stand."""
        for item in ast.walk(pattern):
            if isinstance(item, ast.MatchValue):
                item.value = self._valued(item.value)
            elif isinstance(item, ast.MatchMapping):
                item.keys = list(map(self._valued, item.keys))

    def _valued(self, node: ast.expr) -> ast.expr:
        if not isinstance(node, ast.Attribute):
            return node
        value = self._at(self._call("valued", self._load(node, "load")), node)
        return self._at(ast.Attribute(value, "value", ast.Load()), node)  # type: ignore[no-any-return]

    def _classes_in(self, patterns: list[ast.AST]) -> list[ast.expr]:
        """What the classes in patterns are found by: attributes, and names that functions share."""
        found: dict[tuple[str, str | None], None] = {}
        for item in patterns:
            cls: Any = item.cls if isinstance(item, ast.MatchClass) else None
            while isinstance(cls, ast.Attribute):
                found[cls.attr, None] = None
                cls = cls.value
            if isinstance(cls, ast.Name):
                if self._shared_name(cls.id):
                    found["", self._key(cls.id)] = None
                elif self._of_the_module(cls.id):
                    found[cls.id, self._key_of_the_module(cls.id)] = None
        return [ast.Tuple(list(map(ast.Constant, one)), ast.Load()) for one in found]

    def _captured(self, pattern: ast.pattern) -> list[tuple[str, ast.AST, str]]:
        """Names of a pattern that functions share, where they stand, and which others it gives to what it catches."""
        found: dict[str, tuple[str, ast.AST, str]] = {}
        for item in ast.walk(pattern):
            part = "rest" if isinstance(item, ast.MatchMapping) else "name"
            name = getattr(item, part, None)
            if isinstance(name, str) and self._shared_name(name):
                if name not in found:
                    found[name] = name, item, self._temporary()
                setattr(item, part, found[name][2])
        return list(found.values())

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        node.type = None if node.type is None else self.visit(node.type)
        node.body = self._block(node.body)
        if node.name is not None and self._shared_name(node.name):
            name, node.name = node.name, self._temporary()
            gone = self.visit_Delete(self._at(ast.Delete([self._at(ast.Name(name, ast.Del()), node)]), node))
            gone.insert(0, self._at(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(None)), node))
            body = self._at(ast.Try(node.body, [], [], gone), node)
            node.body = [*self._kept(name, node, node.name), body]
        return node

    def visit_Import(self, node: ast.Import) -> Any:
        return self._imported(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        names = ast.Tuple([ast.Constant(item.name) for item in node.names], ast.Load())
        module = ast.Constant("." * node.level + (node.module or ""))
        package = self._at(ast.Name("__package__", ast.Load()), node)
        looked = self._call("imported", module, package if node.level else ast.Constant(None), names)
        looked.args.append(self._site(node, "import"))
        return [self._at(ast.Expr(looked), node), *self._imported(node)]

    def _imported(self, node: ast.Import | ast.ImportFrom) -> list[ast.stmt]:
        later: list[ast.stmt] = []
        for item in node.names:
            if item.asname is not None and self._shared_name(item.asname):
                name, item.asname = item.asname, self._temporary()
                later += self._kept(name, node, item.asname)
            elif item.asname is None and self._shared_name(bound := item.name.partition(".")[0]):
                if isinstance(node, ast.Import) and "." in item.name:
                    target = self._at(ast.Name(bound, ast.Store()), node)
                    later.append(self._at(ast.Expr(self._name_point(target, "store", True)), node))
                else:
                    item.asname = self._temporary()
                    later += self._kept(bound, node, item.asname)
        return [node, *later]

    def visit_AsyncWith(self, node: ast.AsyncWith) -> Any:
        return self.visit_With(node)

    def visit_With(self, node: ast.With | ast.AsyncWith) -> Any:
        later: list[ast.stmt] = []
        for number, item in enumerate(node.items, 1):
            item.context_expr = self._load(item.context_expr, "load")
            if item.optional_vars is not None:
                item.optional_vars = self._target(item.optional_vars, later)
            if later and number < len(node.items):  # what it is bound to is stored before the next is entered
                inner = self._at(type(node)(node.items[number:], node.body), node)
                node.items, node.body = node.items[:number], [inner]
                break
        node.body = [*later, *self._block(node.body)]
        return node

    def visit_While(self, node: ast.While) -> Any:
        turn = self._at(ast.Expr(self._call("turn", ast.Constant(self._number(node.test, "round again:")))), node.test)
        node.test = self._looked(node.test)
        node.body = [turn, *self._block(node.body)]
        node.orelse = self._block(node.orelse)
        return node

    def _block(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        return [one for statement in statements for one in _many(self.visit(statement))]

    # -- what is left alone ------------------------------------------------------------------------------------

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        return node


_LOOKING_PATTERNS: Final = (ast.MatchClass, ast.MatchSequence, ast.MatchMapping)
"""Patterns that look into what they are compared with."""

_FRESH: Final = (
    ast.Constant, ast.JoinedStr, ast.Lambda, ast.Compare, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.Set,
    ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp,
)  # fmt: skip
"""Expressions whose value no other thread has yet."""


def _final(tree: ast.Module) -> set[str]:
    """The names of which a module says at its top that they are final."""
    return {
        node.target.id
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and "Final" in ast.unparse(node.annotation)
    }


_BUILTINS: Final = frozenset(vars(builtins))


_NO_CACHES: Final = frozenset({
    "property", "staticmethod", "classmethod", "setter", "getter", "deleter", "contextmanager", "overload", "override",
    "final", "abstractmethod",
})  # fmt: skip
"""Decorators that keep nothing of what a function returns."""


def _deletes(function: ast.AST, name: str) -> bool:
    """Whether a function deletes a name."""
    return any(
        isinstance(item, ast.Name | ast.ExceptHandler)
        and ((item.id == name and isinstance(item.ctx, ast.Del)) if isinstance(item, ast.Name) else item.name == name)
        for item in ast.walk(function)
    )


def _may_cache(decorator: ast.expr) -> bool:
    """Whether a decorator may be one that keeps what the function returns."""
    return ast.unparse(decorator).rpartition(".")[2] not in _NO_CACHES


def _at_its_end(node: ast.expr) -> ast.expr:
    """`node`, with the line where its attribute stands, which is the last of several: that is what a traceback says."""
    if node.end_lineno is not None and node.end_lineno != node.lineno:
        node.lineno, node.col_offset = node.end_lineno, 0
    return node


def _hook_of(target: ast.Attribute) -> str:
    """The hook that stores an attribute."""
    return "store_mapping" if target.attr == "__dict__" else "store"


def _named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _named(node.func, "super")


def _many(statements: Any) -> list[ast.stmt]:
    return statements if isinstance(statements, list) else [statements]


def _explains(node: ast.If) -> bool:
    """Whether it is what pytest has made of an `assert`: the raising part."""
    last = node.body[-1]
    return isinstance(last, ast.Raise) and any(
        isinstance(item, ast.Name) and item.id == ASSERTIONS for item in ast.walk(last)
    )


def compiled(source: str, filename: str, *, asserting: bool = False) -> CodeType:
    """`source`, compiled with its accesses as calls; `asserting`: after pytest has rewritten each `assert`.

    Raises SyntaxError as `compile` does.
    """
    tree = _parsed(source, filename, asserting)
    return _compiled(_Rewriter(filename, source, tree).visit(tree), filename)


def plain_codes(source: str, filename: str, explained: bool) -> list[CodeType]:
    """What may be loaded for `source`; `explained`: perhaps after pytest has rewritten each `assert`."""
    found: list[CodeType] = [compile(source, filename, "exec", dont_inherit=True)]
    if explained:
        found.append(compile(_parsed(source, filename, True), filename, "exec", dont_inherit=True))
    return found


def compiled_with_a_stop(source: str, filename: str, line: int, *, asserting: bool, first: int | None) -> CodeType:
    """The same with a question before a line, and a call of the debugger where the answer is yes.

    `first` is the number of the first site, where the source was compiled before; None: accesses stay what they are.
    """
    tree = _parsed(source, filename, asserting)
    if first is not None:
        tree = _Rewriter(filename, source, tree, first).visit(tree)
    _ask_before(tree, line)
    return _compiled(tree, filename)


def _parsed(source: str, filename: str, asserting: bool) -> ast.Module:
    tree = ast.parse(source, filename)
    pytest: Any = sys.modules.get("_pytest.assertion.rewrite") if asserting else None
    if pytest is not None:
        finders: list[Any] = [item for item in sys.meta_path if isinstance(item, pytest.AssertionRewritingHook)]
        pytest.rewrite_asserts(tree, source.encode(), filename, finders[0].config if finders else None)
    return tree


def _compiled(tree: ast.Module, filename: str) -> CodeType:
    code: CodeType = compile(located(tree), filename, "exec", dont_inherit=True)
    return code


_STOPS_AT_ONCE: Final = sys.version_info >= (3, 13)
"""Whether pdb stops at the call itself; before, it stops at the next line, which has to be another one then."""


def _ask_before(tree: ast.Module, line: int) -> None:
    """Put the question before the innermost statement of a function that the line belongs to."""
    found: tuple[int, Any, int, int] | None = None
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            for name in ("body", "orelse", "finalbody"):
                block: Any = getattr(node, name, None)
                for at, one in enumerate(block if isinstance(block, list) else ()):
                    last = getattr(one, "end_lineno", None) or one.lineno
                    if one.lineno <= line <= last and (found is None or last - one.lineno <= found[0]):
                        found = (last - one.lineno, block, at, function.lineno)
    if found is None:
        return
    _, statements, at, beginning = found
    while at and statements[at - 1].lineno == statements[at].lineno:  # pytest makes several of one `assert`
        at -= 1
    asked = ast.Call(ast.Name(hook_name("breach"), ast.Load()), [], [])
    entered = ast.Expr(ast.Call(ast.Name(hook_name("breakpoint"), ast.Load()), [], []))
    question = ast.If(asked, [entered], [])
    for node in ast.walk(question):
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno = node.end_lineno = line if _STOPS_AT_ONCE else beginning
            node.col_offset = node.end_col_offset = 0
    statements.insert(at, question)
