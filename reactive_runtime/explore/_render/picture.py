"""A failing schedule as a picture (SVG), and as a table for a page (HTML). What comes from a program is escaped."""

from __future__ import annotations

import textwrap
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime.errors import MissingDependencyError
from reactive_runtime.explore._render.schedule_diagram import (
    MARKS,
    PAGE,
    Row,
    columns_of,
    end_of,
    fitted,
    marks_of,
    rows_of,
)

if TYPE_CHECKING:
    from reactive_runtime.explore._results import Failure

__all__ = ["html_of", "svg_of"]

LETTER: Final = 7.8
"""Pixels that a letter is wide."""
LINE: Final = 20
NARROW: Final = 26
"""Letters of a column that a picture has room for, however many there are."""
COLOURS: Final = 6
"""Threads that have a colour of their own; the next begins again."""


@cache
def _environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingDependencyError(
            "pictures and pages of schedules need Jinja2: pip install 'reactive-runtime[report]'"
        ) from error
    folder = Path(__file__).parent / "templates"
    return jinja2.Environment(loader=jinja2.FileSystemLoader(folder), autoescape=True, undefined=jinja2.StrictUndefined)


def html_of(failure: Failure) -> str:
    """A figure with a table: a column for each thread. Its text has the colour of the page around it."""
    rows = rows_of(failure)
    template = _environment().get_template("diagram.html")
    page: str = template.render(
        title=_title(failure),
        names=columns_of(failure),
        rows=rows,
        end=end_of(failure),
        meanings=MARKS,
        legend=marks_of(rows),
        colours=COLOURS,
        traceback=_traceback(failure),
    )
    return page


def svg_of(failure: Failure) -> str:
    """A picture that needs nothing else, and follows the light or the dark of its surroundings."""
    names, rows = columns_of(failure), rows_of(failure)
    natural = [len(name) for name in names]
    for row in rows:
        natural[row.column] = max(natural[row.column], len(row.place) + len(row.source) + len(row.values) + 3)
    sizes = fitted(natural, max(PAGE, NARROW * len(names)))
    starts = [34.0]
    for size in sizes:
        starts.append(starts[-1] + size * LETTER + 20)
    width = max(int(starts[-1]), 480)
    end = textwrap.wrap(end_of(failure), int(width / LETTER) - 4)
    end += [_short(line, int(width / LETTER) - 4) for line in _traceback(failure).splitlines()]
    drawn, bottom = _drawn(rows, sizes, starts)
    legend = marks_of(rows)
    template = _environment().get_template("diagram.svg")
    picture: str = template.render(
        title=_title(failure),
        width=width,
        height=bottom + 14 + LINE * len(end) + (LINE * len(legend) + 8 if legend else 0),
        bottom=bottom,
        columns=[{"name": name, "x": starts[n], "colour": n % COLOURS} for n, name in enumerate(names)],
        rows=drawn,
        end=end,
        legend=legend,
        below=bottom + 22 + LINE * len(end),
    )
    return picture


def _drawn(rows: list[Row], sizes: list[int], starts: list[float]) -> tuple[list[dict[str, Any]], int]:
    """The rows, each at its place, and where the last one ends. Values that have no room are a line below."""
    drawn: list[dict[str, Any]] = []
    y = 52
    for row in rows:
        room = sizes[row.column] - len(row.place)
        below = bool(row.values) and len(row.source) + len(row.values) + 3 > room
        drawn.append(
            {
                "x": starts[row.column],
                "y": y,
                "mark": row.mark,
                "colour": row.column % COLOURS,
                "number": row.place,
                "source": _short(row.source, room),
                "seen": _short(row.values, room),
                "below": below,
                "height": LINE * (1 + below),
                "indent": starts[row.column] + LETTER * min(len(row.place), 5),
            }
        )
        y += LINE * (1 + below)
    return drawn, y - 8


def _short(text: str, most: int) -> str:
    most = max(most, 20)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _traceback(failure: Failure) -> str:
    """Of what a thread raised; of an invariant that does not hold, the line says all."""
    return failure.traceback if failure.kind == "raised" else ""


def _title(failure: Failure) -> str:
    return f"A schedule under which {failure.scenario} fails"
