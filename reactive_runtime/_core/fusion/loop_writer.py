"""Writes the text of a fused loop: the bodies of the steps, each put where the one before it yields (`fusion.fuse`)."""

from __future__ import annotations

import ast
import copy
import functools
import sys
from collections.abc import Callable
from typing import Any

from reactive_runtime._core.fusion.parsing import parsed
from reactive_runtime._core.fusion.reading import (
    BINDING,
    Method,
    StepSource,
    captured,
    is_attribute_of_self,
    is_builtin,
    own_names,
    takes_one,
)

__all__ = ["LoopWriter"]


class LoopWriter:
    """Writes one loop, of steps that share it.

    `first`: over the source itself. `drive`: with `on_next` of the subscriber innermost.
    """

    def __init__(self, stages: tuple[StepSource, ...], *, first: bool, drive: bool) -> None:
        self.stages = stages
        self.first = first
        self.drive = drive
        self.names: dict[str, Any] = {}  # the modules of the steps, by the names that the text has for them

    def text(self) -> str:
        """The function `loop`, as Python code."""
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        element = self._element(0)
        look = self._look().splitlines() if self.first else []
        lines = [
            f"def loop(upstream, steps, subscription{', on_next' if self.drive else ''}):",
            *(f"    {line}" for line in self._prologue()),
            f"    for {element} in upstream:",
            *(f"        {line}" for line in (*self._head(element), *self._inlined().splitlines(), *look)),
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
            for name in sorted(stage.kept)
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

    def _look(self) -> str:
        """The look at the stop sign, at the end of a turn."""
        return f"if stopped:\n    {'return False' if self.drive else 'yield PENDING'}\n"

    def _look_inside(self) -> str:
        """The same in a loop of `on_next`."""
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
        self.names[module] = names_of(method.scope)
        look = self._look_inside() if method is stage.on_next else ""
        rename = _Rename(index, method, stage, module, self.names[module], into, stopped, look)
        # A method begins with its variables unbound; the loop's may still have what they held for the last element.
        body: list[ast.stmt] = []
        for name in method.loose:
            body += parsed(f"v{index}_{name} = None\ndel v{index}_{name}")
        for statement in method.tree.body:
            rewritten = rename.visit(copy.deepcopy(statement))
            body.extend(rewritten if isinstance(rewritten, list) else [rewritten])
        return ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))

    def _sink(self, value: ast.expr) -> list[ast.stmt]:
        """The statements for a `yield` of the last stage."""
        if not self.drive:
            return [ast.Expr(ast.Yield(value))]
        named = [] if isinstance(value, ast.Name) else [ast.Assign([ast.Name("given", ast.Store())], value)]
        element = value.id if isinstance(value, ast.Name) else "given"
        # `try` costs nothing until something is raised, and distinguishes the subscriber's fault from an operator's.
        text = (
            f"if stopped:\n    subscription.too_late({element})\n    return False\n"
            f"try:\n    on_next({element})\n"
            "except BaseException as error:\n    subscription.subscriber_raised(error)\n    return False\n"
        )
        if not self.first or any(stage.loops or stage.alone or stage.on_complete is not None for stage in self.stages):
            text += "if stopped:\n    return False"  # the loop's end comes later, or never looks
        return [*named, *parsed(text)]

    def _sink_at_end(self, value: ast.expr) -> list[ast.stmt]:
        """The statements for a `yield` of `on_complete`, which a look for the end runs without demand."""
        if self.drive:
            return self._sink(value)
        step = f"s{len(self.stages) - 1}"
        text = (
            f"while not subscription.demanded:\n    {step}.due = given\n    yield PENDING\n"
            f"{step}.due = None\n"
            "yield given"
        )
        return [ast.Assign([ast.Name("given", ast.Store())], value), *parsed(text)]


def names_of(scope: dict[str, Any]) -> Any:
    """The module whose names these are; the names themselves, where they are no module's."""
    module = sys.modules.get(scope.get("__name__", ""))
    return module if getattr(module, "__dict__", None) is scope else scope


Sink = Callable[[ast.expr], list[ast.stmt]]
"""From the element that is yielded, the statements that work on it."""


def _bound_and_run(name: str, body: str, value: ast.expr) -> list[ast.stmt]:
    """`name = value`, then the body that works on it."""
    return [ast.Assign([ast.Name(name, ast.Store())], value), *parsed(body)]


class _Rename(ast.NodeTransformer):
    """Gives a stage's names a number of their own, and puts the next body where the stage yields."""

    def __init__(
        self,
        index: int,
        method: Method,
        stage: StepSource,
        module: str,
        names: Any,
        into: Sink,
        stopped: ast.stmt,
        look: str,
    ) -> None:
        self.index = index
        self.method = method
        self.kept = stage.kept
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

    def generic_visit(self, node: ast.AST) -> ast.AST:
        field = BINDING.get(type(node), "")
        if (name := getattr(node, field, None)) is not None:
            setattr(node, field, f"v{self.index}_{name}")
        return super().generic_visit(node)

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
        # 2.13: the one place that looks for a None that the step has not looked for itself.
        name = f"y{self.index}"
        check = f"if {name} is None:\n    raise none_yielded(s{self.index})"
        assign = ast.Assign([ast.Name(name, ast.Store())], value)
        return [assign, *parsed(check), *self.into(ast.Name(name, ast.Load()))]

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        return self.stopped

    def visit_For(self, node: ast.For) -> ast.AST:
        return self._looping(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._looping(node)

    def visit_Continue(self, node: ast.Continue) -> list[ast.stmt]:
        return [*parsed(self.look), node]

    def _looping(self, node: ast.For | ast.While) -> ast.AST:
        """One element may become any number, and all of them may be dropped further down: each turn looks (3.12)."""
        self.generic_visit(node)
        if not takes_one(node):
            node.body += parsed(self.look)
        return node


def _handed(variables: list[str], function: ast.expr) -> ast.expr:
    """A lambda that has the variables as they are now: `(lambda v0_x: function)(v0_x)`."""
    if not variables:
        return function
    arguments = ast.arguments([], [ast.arg(variable) for variable in variables], None, [], [], None, [])
    return ast.Call(ast.Lambda(arguments, function), [ast.Name(variable, ast.Load()) for variable in variables], [])
