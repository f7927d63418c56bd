"""What type checkers see of a `Pipeline`, made from the operators of `Flow`.

WRITE_DOCS=1 pytest tests/core/test_face.py writes it anew.
An operator that makes a flow of a flow is there a method that makes a longer pipeline, with the same arguments.
"""

from __future__ import annotations

import ast
import copy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from reactive_runtime._flow import Operators

ROOT = Path(__file__).parents[2]
FILE = ROOT / "reactive_runtime" / "_pipeline_operators.pyi"
FLOWS = {"Flow", "ConnectableFlow"}
"""What a method of a pipeline may return. Rails, a `ParallelFlow`, are none: they take other methods."""
HEAD = '''"""Generated from the operators by `WRITE_DOCS=1 pytest tests/core/test_face.py`: do not edit.

Type checkers see here what a `Pipeline` has. At run time a pipeline looks up an operator of `Flow` by its name.
"""

from __future__ import annotations

from typing import Generic, TypeVar, TypeVarTuple

from reactive_runtime.pipeline import Pipeline

'''
ALL = '__all__ = ["PipelineOperators"]'
CLASS = '''
In_contra = TypeVar("In_contra", contravariant=True)
Out_co = TypeVar("Out_co", covariant=True)


class PipelineOperators(Generic[In_contra, Out_co]):
    """The operators of `Flow`, each of which makes a longer pipeline."""
'''


class _Names(ast.NodeTransformer):
    """The elements of the flow are those that come out of the pipeline."""

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name("Out_co") if node.id == "T_co" else node


def _parts(annotation: ast.expr | None) -> tuple[str, ast.expr] | None:
    """`Flow[X]` as its name and X."""
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.value, ast.Name):
        return annotation.value.id, annotation.slice
    return None


def _method(function: ast.FunctionDef) -> ast.FunctionDef | None:
    """The method of the pipeline; None where the operator makes something else than a flow."""
    made = _parts(function.returns)
    if made is None or made[0] not in FLOWS:
        return None
    own = [*function.args.posonlyargs, *function.args.args][0]
    taken = _parts(own.annotation)
    if taken is not None:
        own.annotation = ast.Subscript(ast.Name("PipelineOperators"), ast.Tuple([ast.Name("In_contra"), taken[1]]))
    function.decorator_list = [each for each in function.decorator_list if ast.unparse(each) == "overload"]
    function.returns = ast.Subscript(ast.Name("Pipeline"), ast.Tuple([ast.Name("In_contra"), made[1]]))
    function.args.defaults = [ast.Constant(...) for _ in function.args.defaults]
    function.args.kw_defaults = [value and ast.Constant(...) for value in function.args.kw_defaults]
    said = (ast.get_docstring(function) or "").partition("\n")[0]
    function.body = [ast.Expr(ast.Constant(said or ...))]
    _Names().visit(function)
    return ast.fix_missing_locations(function)


def _methods(theme: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    """Those of a theme: of one with overloads only these, the last with the docstring."""
    functions = [node for node in theme.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    static = {f.name for f in functions if any(ast.unparse(d) == "staticmethod" for d in f.decorator_list)}
    overloads: list[ast.FunctionDef] = []
    for function in functions:
        if function.name in static:
            continue
        if any(ast.unparse(decorator) == "overload" for decorator in function.decorator_list):
            overloads.append(function)
            continue
        if overloads:
            overloads[-1].body = function.body
        yield from (method for each in overloads or [function] if (method := _method(each)) is not None)
        overloads = []


def _homes(module: ast.Module, path: str) -> dict[str, ast.stmt]:
    """What gives a module each of its names, as it can be written in another: an import, or a type variable."""
    homes: dict[str, ast.stmt] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom):
            homes.update({each.name: ast.ImportFrom(node.module, [each], 0) for each in node.names})
    for node in module.body:
        targets = node.targets if isinstance(node, ast.Assign) else [node]
        for name in (getattr(target, "id", getattr(target, "name", "")) for target in targets):
            variable = isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)  # T = TypeVar("T")
            homes[name] = node if variable else ast.ImportFrom(path, [ast.alias(name)], 0)
    return homes


def _used(method: ast.AST, homes: dict[str, ast.stmt]) -> Iterator[tuple[str, str]]:
    """The names that a method uses, and what gives them."""
    for node in ast.walk(method):
        name = node.id if isinstance(node, ast.Name) else node.value if isinstance(node, ast.Constant) else None
        if isinstance(name, str) and name in homes:
            yield name, ast.unparse(homes[name])
            if isinstance(homes[name], ast.Assign):
                yield from _used(homes[name], {other: homes[other] for other in homes if other != name})


def pipeline_operators() -> str:
    """The whole module."""
    methods: list[ast.FunctionDef] = []
    given: dict[str, str] = {}
    for theme in Operators.__bases__:
        path = theme.__module__
        module = ast.parse((ROOT / f"{path.replace('.', '/')}.py").read_text())
        homes = _homes(module, path)
        own = next(node for node in module.body if isinstance(node, ast.ClassDef) and node.name == theme.__name__)
        found = list(_methods(own))
        for node in own.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):  # buffer = batch
                again = [copy.deepcopy(method) for method in found if method.name == node.value.id]
                for method in again:
                    method.name = ast.unparse(node.targets[0])
                found += again
        methods += found
        for method in found:
            for name, statement in _used(method, homes):
                assert given.setdefault(name, statement) == statement, f"{path}: {name} is another thing elsewhere"
    imports = sorted(statement for statement in given.values() if statement.startswith("from "))
    variables = sorted(statement for statement in given.values() if " = " in statement)
    methods.sort(key=lambda method: method.name)
    tree = ast.parse("\n".join([HEAD, *imports, ALL, *variables, CLASS]))
    kind = tree.body[-1]
    assert isinstance(kind, ast.ClassDef)
    kind.body += methods
    return ast.unparse(ast.fix_missing_locations(tree))


def meaning(text: str) -> set[str]:
    """The statements of a module, in any order and form; of an import each name."""
    found: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module} {each.name}" for each in node.names}
        else:
            found.add(ast.dump(node))
    return found


def write(made: str) -> None:
    """For WRITE_DOCS=1, in the form of ruff."""
    FILE.write_text(made)
    for command in (["check", "--fix", "--quiet"], ["format", "--quiet"]):
        subprocess.run([Path(sys.executable).with_name("ruff"), *command, FILE], check=True)
