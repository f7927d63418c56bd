"""The lessons on hazards as pages: the program that is broken, the schedule that shows it, the fix.

The schedule is found while the site is built, and drawn by the explorer.
"""

from __future__ import annotations

import inspect
import re
from itertools import count

from examples.hazards import COURSE, lesson, module_of

__all__ = ["pages"]


def pages() -> dict[str, str]:
    """The text of each page by its path, below the folder of the lessons."""
    texts = {f"{name}.md": _page(number, name) for number, name in zip(count(1), COURSE, strict=False)}
    return {"index.md": _index(), **texts}


def _index() -> str:
    entries = "\n".join(COURSE)
    return f"""# Lessons: hazards of concurrency

Each lesson is one way to get threads wrong.
It has a small program that is broken, and one that is not.
The diagrams are computed while this site is built: the [explorer](../explore.md) finds a schedule under which the
program fails, and makes it as short as it can be.

`make hazards` prints all lessons in a terminal.
[One page with all of them](../hazards.md) has the diagrams as text.

```{{toctree}}
:maxdepth: 1

{entries}
```
"""


def _page(number: int, name: str) -> str:
    taught = lesson(name)
    failure = taught.fails().failure
    assert failure is not None, f"{taught.title}: the hazard was not found"
    verdict = taught.survives().assert_holds().verdict
    return f"""# {number}. {taught.title}

{_paragraph(taught.hazard)}

## The program that is broken

{_source(taught.broken)}

## The schedule that shows it

{_figure(failure.svg())}

Time goes downwards, a column is a thread.
▶ marks a switch away from a thread that could have gone on.
▷ marks a switch away from a thread that had ended or had to wait.
◆ marks a thread that waits for ever.

## The fix

{_paragraph(taught.fix)}

{_source(taught.fixed)}

Explored in the same way, it holds: {verdict}.

`python -m {module_of(name)}` tells this lesson in a terminal.
"""


def _paragraph(text: str) -> str:
    return " ".join(text.split())


def _source(program: object) -> str:
    """Its text, with the numbers of the lines that the diagram names."""
    kind = program if inspect.isclass(program) or inspect.isroutine(program) else type(program)
    lines, start = inspect.getsourcelines(kind)
    text = "".join(lines).rstrip()
    return f"```{{code-block}} python\n:linenos:\n:lineno-start: {start}\n\n{text}\n```"


def _figure(svg: str) -> str:
    """The picture in the page itself, so that it has the colours of the page."""
    bare = re.sub(r"<style>.*?</style>", "", svg, flags=re.DOTALL)
    picture = "\n".join(line for line in bare.splitlines() if line.strip() and not line.startswith("<?xml"))
    return f'```{{raw}} html\n<div class="schedule" tabindex="0">\n{picture}\n</div>\n```'
