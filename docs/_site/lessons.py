"""The lessons on hazards as pages: the program that is broken, a question, the schedule that shows it, the fix.

Everything is run while the site is built: the schedule is found and drawn by the explorer, the fix explored in the same
way, and each answer to "And if" is what was found.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from html import escape
from typing import Any

from docs._site import games
from examples.hazards import COURSE, GROUPS, Group, group_of, lesson, module_of
from examples.hazards.exercises import EXERCISES, exercise
from examples.hazards.lesson import AndIf, Lesson, Met
from examples.hazards.notebooks import path_of
from examples.puzzles import PUZZLES
from reactive_runtime.explore import Failure

__all__ = ["figure", "found", "pages", "paragraph", "sentence", "sources"]


def pages() -> dict[str, str]:
    """The text of each page by its path, below the folder of the lessons."""
    return {"index.md": _index(), **{f"{name}.md": _page(name) for name in COURSE}}


@cache
def found(name: str) -> Failure:
    """The failure of the broken program of a lesson."""
    failure = lesson(name).fails().failure
    assert failure is not None, f"{name}: the hazard was not found"
    return failure


def _index() -> str:
    groups = "\n".join(map(_group, GROUPS))
    words = "\n".join(f"| {term} | {lessons} |" for term, lessons in _words())
    return f"""# Lessons: hazards of concurrency

Each lesson is one way to get threads wrong.
It has a small program that is broken, a question, the schedule that shows the fault, and a program that is put right.
The diagrams are computed while this site is built: the [explorer](../explore.md) finds a schedule under which the
program fails, and makes it as short as it can be.

`make show NAME=hazards` prints all lessons in a terminal.
[One page with all of them](../hazards.md) has the diagrams as text and, at its end, the words.
The [glossary](../glossary.md) has those of the project.
A [map](../hazard-map.md) says which rule and which operator avoids a hazard, and there are [puzzles](../puzzles.md).

{groups}
## By the words of the literature

| word | lessons |
| --- | --- |
{words}
"""


def _group(group: Group) -> str:
    entries = "\n".join([*group.lessons, f"slides-{group.letter.lower()}"])
    return f"""## {group.letter}. {group.title}

{paragraph(group.about)}

```{{toctree}}
:maxdepth: 1

{entries}
```
"""


def _words() -> Iterator[tuple[str, str]]:
    """Each word of the literature, and links to the lessons that are about it."""
    by_term: dict[str, list[str]] = {}
    for name in COURSE:
        for term in lesson(name).terms:
            by_term.setdefault(term, []).append(f"[{lesson(name).title}]({name}.md)")
    for term in sorted(by_term, key=str.lower):
        yield term, ", ".join(by_term[term])


def _page(name: str) -> str:
    taught, group = lesson(name), group_of(name)
    failure = found(name)
    verdict = taught.survives().assert_holds().verdict
    texts = sources(taught)
    answers = "\n".join(_answer(item, texts[item.program]) for item in taught.and_if)
    return f"""# {COURSE.index(name) + 1}. {taught.title}

Group {group.letter}, {group.title}.
In the literature: {", ".join(taught.terms)}.

{paragraph(taught.hazard)}

## The program that is broken

{texts[taught.broken]}

## What can go wrong?

{paragraph(taught.question)}

{games.section(taught.broken, module_of(name))}
## The schedule that shows it

{_opening("Show the schedule")}

{figure(failure.svg())}

Time goes downwards, and a column with a colour of its own is a thread.

{_closing()}

## The fix

{paragraph(sentence(taught.fix))}

{texts[taught.fixed]}

Explored in the same way: {verdict}.

## And if …

{answers}
## With a GIL, and without

{paragraph(taught.gil_text)}

## Met for real

{_places(taught.met)}

## Now you

{_exercises(group)}
{_puzzles(name)}
[{path_of(group).name}](../../examples/hazards/notebooks) has the lessons of this group as a notebook.
`python -m {module_of(name)}` prints this lesson in a terminal.
"""


def _exercises(group: Group) -> str:
    """Those of the group, each with its command."""
    names = [name for name in EXERCISES if exercise(name).group == group.letter]
    rows = "\n".join(
        f"| [{exercise(name).title}](../../examples/hazards/exercises/{name}.py) "
        f"| `python -m examples.hazards.exercises {name}` |"
        for name in names
    )
    return f"""Mend a class, until the explorer says that it holds:

| exercise | what the explorer says of it, in a clone |
| --- | --- |
{rows}
"""


def _puzzles(name: str) -> str:
    """Those on the hazard of the lesson, in a line."""
    names = ", ".join(f"`{item.name}`" for item in PUZZLES.values() if item.lesson == name)
    return f"[Puzzles](../puzzles.md) on it: {names}.\n" if names else ""


def _answer(item: AndIf, source: str) -> str:
    result = item.explored()
    said = f"fails: {result.failure.message}" if result.failure is not None else str(result.verdict)
    return f"""{_opening(f"… {item.question}")}

{paragraph(item.answer)}

{source}

Explored: `{said.replace("`", "'")}`.

{_closing()}
"""


def _places(met: tuple[Met, ...]) -> str:
    return "\n".join(f"- {paragraph(place.what)} {_address(place.where)}" for place in met)


def _address(where: str) -> str:
    return f"<{where}>" if where.startswith("https://") else f"{where}."


def _opening(summary: str) -> str:
    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(summary))
    return f'```{{raw}} html\n<details class="answer"><summary>{text}</summary>\n```'


def _closing() -> str:
    return "```{raw} html\n</details>\n```"


def paragraph(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def sentence(text: str) -> str:
    """A text that begins with a capital."""
    return text[:1].upper() + text[1:]


def sources(taught: Lesson) -> dict[Any, str]:
    """The text of each program of a lesson, with the classes before it that are only there for it.

    The lines have the numbers that the diagrams name.
    """
    module = sys.modules[taught.broken.__module__]
    lines = inspect.getsource(module).splitlines()
    programs = {item.__name__: item for item in (taught.broken, taught.fixed, *(one.program for one in taught.and_if))}
    texts: dict[Any, str] = {}
    blocks: list[str] = []
    for node in ast.parse("\n".join(lines)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        text = re.sub(r"  # (noqa|type: ignore)[^\n]*", "", text)
        blocks.append(f"```{{code-block}} python\n:linenos:\n:lineno-start: {node.lineno}\n\n{text}\n```")
        if node.name in programs:
            texts[programs[node.name]] = "\n\n".join(blocks)
            blocks = []
    return texts


def figure(svg: str) -> str:
    """The picture in the page itself, so that it has the colours of the page."""
    bare = re.sub(r"<style>.*?</style>", "", svg, flags=re.DOTALL)
    picture = "\n".join(line for line in bare.splitlines() if line.strip() and not line.startswith("<?xml"))
    return f'```{{raw}} html\n<div class="schedule" tabindex="0">\n{picture}\n</div>\n```'
