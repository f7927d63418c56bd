"""The lessons of a group as slides: a page with a section for each, which `slides.js` shows one at a time.

They are made of the lessons, as the pages and the notebooks are. Printed, each section is a page of its own.
"""

from __future__ import annotations

from typing import Final

from docs._site import lessons
from examples.hazards import COURSE, GROUPS, Group, lesson

__all__ = ["BUTTON", "pages"]

BUTTON: Final = '```{raw} html\n<button class="present" type="button">Show as slides</button>\n```'


def pages() -> dict[str, str]:
    """The text of each page by its path, below the folder of the lessons."""
    return {f"slides-{group.letter.lower()}.md": _page(group) for group in GROUPS}


def _page(group: Group) -> str:
    slides = "\n".join(map(_slides, group.lessons))
    return f"""# Slides {group.letter}: {group.title}

{BUTTON}

The arrow keys and the space bar turn pages, and Escape ends.

## {group.title}

{lessons.paragraph(group.about)}

{slides}"""


def _slides(name: str) -> str:
    taught = lesson(name)
    sources = lessons.sources(taught)
    questions = "\n".join(f"- And if {item.question}" for item in taught.and_if)
    return f"""## {COURSE.index(name) + 1}. {taught.title}

{lessons.paragraph(taught.question)}

{sources[taught.broken]}

## Schedule: {taught.title}

{lessons.paragraph(taught.hazard)}

{lessons.figure(lessons.found(name).svg())}

## Fix: {taught.title}

{lessons.sentence(lessons.paragraph(taught.fix))}

{sources[taught.fixed]}

{questions}
"""
