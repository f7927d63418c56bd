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
import sys
from collections.abc import Iterable
from types import CodeType
from typing import Any, Final

from reactive_runtime.explore._instrument.expressions import HIDDEN_STORES, Expressions, hook_name
from reactive_runtime.explore._instrument.operations import IN_PLACE_OF
from reactive_runtime.explore._instrument.scopes import located

__all__ = ["ASSERTIONS", "compiled", "compiled_with_a_stop", "plain_codes"]

ASSERTIONS: Final = "@pytest_ar"
"""A name in the modules whose assertions pytest has rewritten."""

_NUMBERS: Final = (int, float, complex)


class _Rewriter(Expressions, ast.NodeTransformer):
    """Rewrites the bodies of functions; the rest of a module has run already."""

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

    def visit(self, node: ast.AST) -> Any:
        if self._functions or isinstance(
            node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
        ):
            return super().visit(node)
        # Outside of functions there is nothing to rewrite but the functions inside.
        return self.generic_visit(node)

    # -- stores ------------------------------------------------------------------------------------------------

    def _kept(self, name: str, node: Any, load: str) -> list[ast.stmt]:
        """What has a temporary name gets its own, which functions share."""
        target = self._at(ast.Name(name, ast.Store()), node)
        return [*self._stores(target, self._at(ast.Name(load, ast.Load()), node)), self._gone(load, node)]

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
            hook = IN_PLACE_OF[type(node.op)]
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
            operation = ast.Tuple([self._hook(f"{IN_PLACE_OF[type(node.op)]}_at"), *sites], ast.Load())
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


def _hook_of(target: ast.Attribute) -> str:
    """The hook that stores an attribute."""
    return "store_mapping" if target.attr == "__dict__" else "store"


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
