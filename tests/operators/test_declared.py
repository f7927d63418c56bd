"""Each source, operator and sink has all that is needed of it: one error names what it lacks, and where to add it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, get_overloads

import pytest
from core import pipeline_types
from declared.kinds import (
    Case,
    Consumer,
    Maker,
    OnPool,
    Plain,
    Race,
    SinkCase,
    SinkModel,
    SourceCase,
    SourceModel,
    Typed,
    Without,
)
from declared.table import OPERATORS, THEMES
from explore.test_complete import ELSEWHERE, combinators_of, explored
from models.running import POOL, Entry
from models.timed import Timed
from test_docstrings import wrong_of_member

from docs._site.names import Member, members
from docs._site.recording import Example
from operators.catalogue import Place
from reactive_runtime import Flow
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.pipeline import Pipeline

CASE: dict[str, tuple[type[Any], ...]] = {
    "source": (SourceCase, Case),
    "operator": (Case,),
    "sink": (SinkCase, Case),
}
MODEL: dict[str, tuple[type[Any], ...]] = {
    "source": (SourceModel, Entry, Timed),
    "operator": (Entry, Timed, Plain),
    "sink": (SinkModel, Entry),
}

VARIABLE = re.compile(r"\b(?!T_co\b)(?:[A-Z]|[A-Z]_co|Ts)\b")
"""A type variable in an annotation, but for that of the elements of the flow."""


def needed(member: Member) -> Iterator[tuple[type[Any], ...]]:
    """The kinds of part that a member of `Flow` needs, of each group one."""
    yield CASE[member.kind]
    yield MODEL[member.kind]
    yield (Example,)
    signature = str(inspect.signature(member.function)).replace("'", "")
    if get_overloads(member.function) or VARIABLE.search(signature.partition("->")[2]):
        yield (Typed,)
    if "Callable[[T_co], Publisher[" in signature:
        yield (Consumer,)
    if "Flow[" in signature.partition("-> Flow[")[2]:
        yield (Maker,)
    if unexplored(member.name):
        yield Race, OnPool


def unexplored(name: str) -> set[str]:
    """The combinators in the cases of an operator that the explorer has nowhere."""
    place = Place(POOL, VirtualTimeExecutor())
    flows = [part.apply(Flow.range(10), place) for part in OPERATORS.get(name, []) if isinstance(part, Case)]
    return {kind.__name__ for flow in flows for kind in combinators_of(flow)} - explored() - set(ELSEWHERE)


@cache
def seen_in_a_pipeline() -> set[str]:
    """The methods that type checkers see in a `Pipeline`."""
    kind = next(node for node in ast.parse(pipeline_types.FILE.read_text()).body if isinstance(node, ast.ClassDef))
    return {node.name for node in kind.body if isinstance(node, ast.FunctionDef)}


def place(member: Member) -> str:
    """The module in which it is declared, or is to be."""
    names = [theme.__name__.partition(".")[2] for theme in THEMES if member.name in theme.DECLARED]
    known = [theme.__name__.partition(".")[2] for theme in THEMES]
    return next((f"tests/declared/{name}.py" for name in [*names, member.theme] if name in known), "tests/declared")


def lacking(member: Member) -> Iterator[str]:
    parts = OPERATORS.get(member.name, [])
    has = {type(part) for part in parts} | {part.kind for part in parts if isinstance(part, Without)}
    for kinds in needed(member):
        if not has.intersection(kinds):
            names, said = " or ".join(kind.__name__ for kind in kinds), inspect.getdoc(kinds[0]) or ""
            yield f"add to {place(member)}: {names}: {said.partition(chr(10))[0]}"
    for line in wrong_of_member(member):
        yield f"its docstring: {line}"
    if hasattr(Pipeline(), member.name) and member.name not in seen_in_a_pipeline():
        yield "a Pipeline lacks it for type checkers: WRITE_DOCS=1 pytest tests/core/test_face.py"


@pytest.mark.parametrize("member", members(), ids=lambda member: member.name)
def test_a_member_of_flow_has_all_that_it_needs(member: Member) -> None:
    missing = list(lacking(member))
    assert not missing, "\n".join([f"{member.name}:", *missing])


@pytest.mark.parametrize("name", OPERATORS)
def test_a_declaration_is_of_a_member_and_needs_its_reasons(name: str) -> None:
    parts = OPERATORS[name]
    assert name in {member.name for member in members()}, f"{name} is no public member of Flow"
    kinds = {type(part) for part in parts}
    assert [part for part in parts if isinstance(part, Without) and part.kind in kinds] == []
    assert [type(part) for part in parts].count(Example) <= 1, "an operator has one picture"
