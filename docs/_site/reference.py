"""The pages of the reference: one for each member of `Flow`, one for each theme, one for each public module."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from itertools import groupby
from typing import Any, Final, Generic, Protocol

from sphinx.pycode import ModuleAnalyzer

from docs._site.names import ROOT, Member, Module, class_members, members, modules
from reactive_runtime import Flow

__all__ = ["as_rst", "doc_of_data", "pages", "readable", "shown_bases"]

THEMES: Final = {
    "sources": "Sources",
    "transforming": "Transforming",
    "filtering": "Filtering",
    "conditional": "Conditions",
    "aggregating": "Many to one",
    "combining": "Combining",
    "tuples": "Tuples",
    "flattening": "Flows of flows",
    "calling": "Tasks and coroutines",
    "grouping": "Lists, groups and windows",
    "timing": "Time",
    "rates": "Rates",
    "scheduling": "Threads",
    "backpressure": "Flow control",
    "sharing": "Sharing",
    "error_handling": "Errors, and once more",
    "notifications": "Signals as elements",
    "side_effects": "Side effects",
    "monitoring": "Monitoring",
    "sinks": "Sinks",
}
"""Titles, in the order of the index. A theme that is not here has the name of its module."""

STDLIB: Final = ("object", "Exception", "BaseException", "Executor", "tuple", "str", "Enum", "Generic", "Protocol")

ELSEWHERE: Final = ", ".join(dict.fromkeys([*STDLIB, *(cls.__name__ for cls in Flow.__mro__)]))
"""Bases whose members are documented elsewhere: those of the standard library, and all that `Flow` is made of."""


def pages() -> dict[str, str]:
    """The text of each page by its path, below the folder of the reference."""
    found = members()
    public = modules()
    themes = {
        theme: list(of_theme) for theme, of_theme in groupby(sorted(found, key=_rank), key=lambda member: member.theme)
    }
    made = {"index.rst": _index(list(themes), public)}
    for theme, of_theme in themes.items():
        made[f"{theme}.rst"] = _theme_page(theme, of_theme)
    for member in found:
        made[f"flow/{member.name}.rst"] = _member_page(member, found)
    for module in public:
        made[f"{_file(module)}.rst"] = _module_page(module)
    return made


def as_rst(text: str) -> str:
    """A docstring as reStructuredText takes it: what follows a closing backquote at once is set apart."""
    return re.sub(r"(?<![`\w])`([^`\n]+)`(?=\w)", r"`\1`\\ ", text)


def readable(signature: str) -> str:
    """A signature as it stands in the source: no `repr` of a class, of a function, or of a `ParamSpec`."""
    for pattern, text in (
        (r"<class '(?:\w+\.)*(\w+)'>", r"\1"),
        (r"<function (?:\w+\.)*(\w+)>", r"\1"),
        (r"(?<!\*)\*(\w+): ~typing\.~(\w+)", r"*\1: \2.args"),
        (r"\*\*(\w+): ~typing\.~(\w+)", r"**\1: \2.kwargs"),
        (r"\[~(\w+)(?![\w.])", r"[\1"),
        (r"<factory>", "..."),
        (r", _\w+: \w+ = \.\.\.", ""),
    ):
        signature = re.sub(pattern, text, signature)
    return signature


def shown_bases(cls: type) -> list[Any]:
    """The bases that say something to a reader: no `object`, no means of typing; for a private one, its own."""
    found: list[Any] = []
    for base in getattr(cls, "__orig_bases__", cls.__bases__):
        origin = getattr(base, "__origin__", base)
        if origin in (object, Generic, Protocol):
            continue
        found += shown_bases(origin) if origin.__name__.startswith("_") else [base]
    return found


def doc_of_data(path: str, thing: object) -> list[str]:
    """The docstring below the assignment of a constant, wherever in its package that is."""
    package, _, name = path.rpartition(".")
    for module_name, module in sorted(sys.modules.items()):
        if module_name.startswith(package) and vars(module).get(name) is thing:
            docs = ModuleAnalyzer.for_module(module_name).find_attr_docs()
            if ("", name) in docs:
                return list(docs["", name])
    return []


def _intro(module_name: str) -> str:
    """The docstring of a module; a block that is indented in it is kept as it is."""
    text = as_rst(inspect.getdoc(importlib.import_module(module_name)) or "")
    return re.sub(r"^(\S.*[^:\n]|)\n\n(?= {4}\S)", r"\1\n\n::\n\n", text, flags=re.MULTILINE)


def _rank(member: Member) -> tuple[int, str, str]:
    order = list(THEMES)
    return (order.index(member.theme) if member.theme in order else len(order), member.theme, member.name)


def _title(theme: str) -> str:
    return THEMES.get(theme, theme.replace("_", " ").capitalize())


def _file(module: Module) -> str:
    return module.name.removeprefix(f"{ROOT}.").replace(".", "_") if module.name != ROOT else "package"


def _heading(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n"


def _index(themes: list[str], public: list[Module]) -> str:
    entries = "\n".join(f"   {_title(theme)} <{theme}>" for theme in themes)
    names = "\n".join(f"   {module.name} <{_file(module)}>" for module in public)
    return f"""{_heading("Reference")}
Every public name of the package, from its docstring.
Any other name is internal and may change, also one without an underscore.
Each source and operator of `reactive_runtime.Flow` has a page of its own, with a picture of a recorded run.
:doc:`How to read a picture <../marbles>` is a page of its own.

.. toctree::
   :maxdepth: 1
   :caption: Flow, by theme

{entries}

.. toctree::
   :maxdepth: 1
   :caption: Modules

{names}
"""


def _theme_page(theme: str, of_theme: list[Member]) -> str:
    intro = "" if theme in ("sources", "sinks") else _intro(of_theme[0].function.__module__)
    rows = "\n".join(
        f"   * - :doc:`{member.name} <flow/{member.name}>`\n     - {as_rst(member.summary)}" for member in of_theme
    )
    return f"""{_heading(_title(theme))}
{intro}

.. list-table::
   :class: members

{rows}
"""


def _member_page(member: Member, found: list[Member]) -> str:
    """In no table of contents: with a line for each member in the side bar, every page would take twice as long."""
    same = [finding.name for finding in found if finding.function is member.function and finding.name != member.name]
    also = "".join(f"\nThe same as :doc:`{name} <{name}>`.\n" for name in same)
    return f""":orphan:

{_heading(member.name)}
:doc:`Reference <../index>` / :doc:`{_title(member.theme)} <../{member.theme}>`

.. marble:: {member.name}

.. automethod:: {ROOT}.Flow.{member.name}
{also}"""


def _module_page(module: Module) -> str:
    things = "\n".join(_thing(module, name) for name in module.homes)
    others = "\n".join(
        f".. py:data:: {module.name}.{name}\n\n   The same as `{home}`.\n" for name, home in module.elsewhere.items()
    )
    return f"""{_heading(module.name)}
{_intro(module.name)}

{things}
{others}"""


def _thing(module: Module, name: str) -> str:
    thing, path = module.homes[name], f"{module.name}.{name}"
    if path == f"{ROOT}.Flow":
        return f".. autoclass:: {path}\n"
    if inspect.isclass(thing):
        options = f"   :members:\n   :undoc-members:\n   :inherited-members: {ELSEWHERE}\n"
        bases = "   :show-inheritance:\n" if shown_bases(thing) else ""
        return f".. autoclass:: {path}\n{bases}{options if class_members(thing) or _has_bases(thing) else ''}"
    if inspect.isroutine(thing):
        return f".. autofunction:: {path}\n"
    return f".. autodata:: {path}\n   :no-value:\n"


def _has_bases(cls: type) -> bool:
    return any(base.__module__.startswith(ROOT) for base in cls.__mro__[1:])
