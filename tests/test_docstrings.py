"""The docstring of a public name has the same sections everywhere, in the same order: a reader knows where to look."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from docs._site.names import Member, class_members, members, modules

ORDER = ("Args", "Returns", "Yields", "Raises", "Demand", "Cancellation", "Thread", "Example", "Origin")
OF_A_MEMBER = {"Returns", "Demand", "Cancellation", "Thread", "Example", "Origin"}
"""What each source, operator and sink of `Flow` says; and `Args` and `Raises`, where it has arguments."""

TAKE_ANYTHING = {"contains", "first", "last", "single"}
"""Members whose arguments may be any value: a call of them raises nothing."""

MEMBERS = members()


def sections(docstring: str) -> dict[str, str]:
    """The text of each section by its name, in their order; what comes before the first is under "Meaning"."""
    parts = re.split(r"^([A-Z][a-z]+):\n(?= {4}\S)", docstring + "\n", flags=re.MULTILINE)
    return {"Meaning": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def arguments(function: Callable[..., Any], *, method: bool) -> list[str]:
    """The names of the arguments as `Args` spells them, without `self`."""
    stars: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    found = list(inspect.signature(function).parameters.values())[1 if method else 0 :]
    return [stars.get(parameter.kind, "") + parameter.name for parameter in found if not parameter.name.startswith("_")]


def entries(section: str) -> list[str]:
    """The names of a section that has one entry for each name."""
    return re.findall(r"^ {4}(\*{0,2}\w+(?:\.\w+)*):", section, re.MULTILINE)


def wrong(function: Callable[..., Any], *, method: bool, required: set[str]) -> list[str]:
    """What the docstring of a function lacks, or has too much."""
    docstring = inspect.getdoc(function) or ""
    found = sections(docstring)
    names = [name for name in found if name != "Meaning"]
    expected = arguments(function, method=method)
    needed = required | ({"Args"} if expected else set())
    lines = [f"no section {name}" for name in ORDER if name in needed and name not in found]
    lines += [f"a section that no docstring has: {name}" for name in names if name not in ORDER]
    if (known := [name for name in names if name in ORDER]) != sorted(known, key=ORDER.index):
        lines.append(f"order: {', '.join(known)}")
    if (have := entries(found.get("Args", ""))) != expected:
        lines.append(f"Args has {have}, the function {expected}")
    if not re.match(r"\S.*[.!?]\n(\n|\Z)", docstring + "\n"):
        lines.append("the first line is no sentence of its own")
    if "Example" in found and ">>>" not in found["Example"]:
        lines.append("the example does not run")
    for name in ("Returns", "Yields"):
        if ":" in found.get(name, "").partition("\n")[0]:
            lines.append(f"{name}: the site would take the words before the colon for a type")
    return lines


def wrong_of_member(member: Member) -> list[str]:
    """The sections that the docstring of a member of `Flow` lacks, or has too many."""
    method = member.kind != "source"
    checks = bool(arguments(member.function, method=method)) and member.name not in TAKE_ANYTHING
    required = OF_A_MEMBER | ({"Raises"} if checks else set())
    return wrong(member.function, method=method, required=required)


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_a_member_of_flow_has_each_section(member: Member) -> None:
    assert wrong_of_member(member) == []


PUBLIC = [
    (f"{module.name}.{name}", thing)
    for module in modules(whole=False)
    for name, thing in module.homes.items()
    if inspect.isclass(thing) or inspect.isfunction(thing)
]


def functions(path: str, thing: Any) -> list[tuple[str, Callable[..., Any], bool]]:
    """A public function, or the methods that a class defines and no base of it; and whether they take `self`."""
    if not inspect.isclass(thing):
        return [(path, thing, False)]
    found = []
    for name in class_members(thing):
        if any(name in vars(base) for base in thing.__mro__[1:]):
            continue  # what it means stands where the interface is
        value = vars(thing)[name]
        function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        if not isinstance(value, property):
            found.append((f"{path}.{name}", function, not isinstance(value, staticmethod)))
    return found


@pytest.mark.parametrize(("path", "thing"), PUBLIC, ids=[path for path, _ in PUBLIC])
def test_a_public_function_names_its_arguments(path: str, thing: Any) -> None:
    found = {}
    for name, function, method in functions(path, thing):
        found[name] = wrong(function, method=method, required=set())
    assert {name: lines for name, lines in found.items() if lines} == {}


WITH_ARGUMENTS = [(path, thing) for path, thing in PUBLIC if "\nArgs:\n" in (inspect.getdoc(thing) or "")]


@pytest.mark.parametrize(
    ("path", "cls"),
    [(path, thing) for path, thing in WITH_ARGUMENTS if inspect.isclass(thing)],
    ids=[path for path, thing in WITH_ARGUMENTS if inspect.isclass(thing)],
)
def test_a_class_that_names_its_arguments_names_those_of_its_constructor(path: str, cls: type[Any]) -> None:
    assert wrong(cls, method=False, required=set()) == []


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("One line.\n\nArgs:\n    n: How many.\n", []),
        ("One line.\n\nArgs:\n    m: How many.\n", ["Args has ['m'], the function ['n']"]),
        ("One line\nthat goes on.\n\nArgs:\n    n: How many.\n", ["the first line is no sentence of its own"]),
        ("One line.\n", ["no section Args", "Args has [], the function ['n']"]),
        ("One line.\n\nArgs:\n    n: How many.\n\nMood:\n    Good.\n", ["a section that no docstring has: Mood"]),
        ("One line.\n\nReturns:\n    It.\n\nArgs:\n    n: How many.\n", ["order: Returns, Args"]),
        ("One line.\n\nArgs:\n    n: How many.\n\nExample:\n    None.\n", ["the example does not run"]),
        (
            "One line.\n\nArgs:\n    n: How many.\n\nReturns:\n    A flow: it ends.\n",
            ["Returns: the site would take the words before the colon for a type"],
        ),
    ],
)
def test_what_is_wrong_with_a_docstring_is_named(docstring: str, expected: list[str]) -> None:
    def function(n: int) -> None: ...

    function.__doc__ = docstring
    assert wrong(function, method=False, required=set()) == expected
