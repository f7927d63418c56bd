"""A failing schedule, drawn: a column for each thread, time downwards.

    ▶ marks a switch away from a thread that could have gone on, ▷ one from a thread that had ended or had to wait,
    ◆ where a thread waits for ever, ✗ the line that raised.

`rows_of` is what the text, the picture and the page have in common: the lines of the source at which something was done
that another thread could notice, each with the values that it saw, or changed: `load 0`, `store 1` of a field,
`0 → 1` of what is changed in one step.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from reactive_runtime.explore._render.step_log import Step
    from reactive_runtime.explore._results import Failure

__all__ = ["MARKS", "PAGE", "Row", "columns_of", "end_of", "fitted", "marks_of", "rows_of", "seen_in", "text_of"]

PAGE: Final = 100
"""Characters of a line, at most, where nothing else is asked for."""
NARROWEST: Final = 16
"""Characters of a column, at least."""
MOST: Final = 80
"""Lines, at most; of a longer schedule the beginning and the end are shown."""


MARKS: Final = {
    "▶": "a switch away from a thread that could have gone on",
    "▷": "a switch away from a thread that had ended, or had to wait",
    "◆": "the thread waits here for ever",
    "✗": "this line raised",
}
"""What the signs before a line mean."""


@dataclass(slots=True)
class Row:
    """One line of the diagram."""

    column: int
    mark: str
    """▶, ▷, ◆, ✗ or nothing."""
    line: int
    """The number of the source line; 0 where there is none."""
    source: str
    values: str
    filename: str = ""
    file: str = ""
    """The name of the file, where the lines are of several."""

    @property
    def place(self) -> str:
        """The number of the line, behind the name of its file where there are several."""
        return f"{self.file}:{self.line} " if self.file else f"{self.line:>4} " if self.line else ""


def columns_of(failure: Failure) -> list[str]:
    """The names of the threads that did something, in order of their creation."""
    names = {step.thread: step.name for step in failure.steps if step.thread}
    return [names[name] for name in sorted(names)]


def rows_of(failure: Failure) -> list[Row]:
    """The lines of the diagram."""
    numbers = sorted({step.thread for step in failure.steps if step.thread})
    rows: list[Row] = []
    before: Step | None = None
    preempts = False
    for step in failure.steps:
        preempts = preempts or step.preempts
        if not step.thread or not (step.line or "(" in step.what or " " in step.what):
            continue
        mark = ""
        if step.waits:
            mark = "◆"
        elif before is not None and before.thread != step.thread:
            mark = "▶" if preempts else "▷"
        same = before is not None and not mark and (before.filename, before.line) == (step.filename, step.line)
        if same and step.line:
            rows[-1].values = _joined(rows[-1].values, seen_in(step))
        else:
            source = _bare(step.source) or step.what
            values = "waits" if step.waits else seen_in(step)
            rows.append(Row(numbers.index(step.thread), mark, step.line, source, values, step.filename))
        before = step
        preempts = False
    if failure.kind == "raised" and failure.breach is not None:
        _mark_raised(rows, failure, failure.breach, numbers)
    _name_files(rows)
    rows = _folded(_once(rows) if failure.kind == "livelock" else rows)
    if len(rows) > MOST:
        left = f"… {len(rows) - MOST} lines …"
        rows[MOST // 4 : len(rows) - MOST + MOST // 4] = [Row(rows[MOST // 4].column, "", 0, left, "")]
    return rows


def seen_in(step: Step) -> str:
    """What a step saw or changed; of a field, whether it was loaded or stored."""
    if step.location is None or not step.location[1] or step.location[1] == "_value" or not step.value:
        return step.value
    if step.what.startswith("store "):
        return f"store {step.value.rpartition('→ ')[2]}"
    if step.what.startswith("load ") and not step.writes:
        return f"load {step.value}"
    return step.value


def _bare(source: str) -> str:
    """A line without the comment behind it, which is for a reader of the file."""
    code, sign, comment = source.partition("  # ")
    return source if sign and any(quote in comment for quote in "\"'") else code


def _name_files(rows: list[Row]) -> None:
    """Where the lines are of several files, each gets the name of its own, as long as it has to be."""
    names = {row.filename for row in rows if row.line}
    if len(names) < 2:
        return
    for row in rows:
        if row.line:
            parts = PurePath(row.filename).parts
            alike = [PurePath(name).parts for name in names if name != row.filename]
            size = next((n for n in range(1, len(parts)) if all(other[-n:] != parts[-n:] for other in alike)), 1)
            row.file = "/".join(parts[-size:])


def marks_of(rows: Sequence[Row]) -> dict[str, str]:
    """The signs that are in these rows, and what they mean."""
    used = {row.mark for row in rows}
    return {mark: meaning for mark, meaning in MARKS.items() if mark in used}


def _mark_raised(rows: list[Row], failure: Failure, breach: tuple[str, int], numbers: list[int]) -> None:
    """Mark the line that raised, in the column of its thread."""
    thread = next((step.thread for step in reversed(failure.steps) if step.name == failure.thread), 0)
    if thread not in numbers:
        return
    source = linecache.getline(*breach).strip()
    said = failure.traceback.splitlines()[-1:] or [""]
    error = said[0].partition(":")[0].rpartition(".")[2]
    last = rows[-1] if rows else None
    if last is not None and (last.column, last.line, last.mark) == (numbers.index(thread), breach[1], ""):
        last.mark, last.values = "✗", _joined(last.values, error)
    else:
        rows.append(Row(numbers.index(thread), "✗", breach[1], _bare(source), error, breach[0]))


LONGEST: Final = 12
"""Rows that are looked at as a period, at most."""
REPEATED: Final = 4
"""How often rows have to come one after the other to be shown twice."""


def _folded(rows: list[Row]) -> list[Row]:
    """The same, where of rows that repeat themselves the first and the last are left."""
    keys = [(row.column, row.mark, row.line, row.source) for row in rows]
    left: list[Row] = []
    at = 0
    while at < len(rows):
        length, times = _period(keys, at)
        if times >= REPEATED:
            again = f"… {'this line' if length == 1 else f'these {length} lines'} {times - 2} times more …"
            end = at + length * times
            left += [*rows[at : at + length], Row(rows[at].column, "", 0, again, ""), *rows[end - length : end]]
            at = end
        else:
            left.append(rows[at])
            at += 1
    return left


def _period(keys: list[tuple[int, str, int, str]], at: int) -> tuple[int, int]:
    """How many rows from there on repeat themselves, the fewest, and how often they come."""
    for length in range(1, LONGEST + 1):
        first = keys[at : at + length]
        times = 1
        while keys[at + length * times : at + length * (times + 1)] == first:
            times += 1
        if times >= REPEATED:
            return length, times
    return 1, 1


def _once(rows: list[Row]) -> list[Row]:
    """The rows up to the end of the first period of those that repeat themselves to the end.

    Of several periods it is the one that began first: a thread may go round a loop of its own inside of it. The run was
    ended somewhere, so what follows the last whole period is a part of one.
    """
    keys = [(row.column, row.line, row.source) for row in rows]
    began, size = len(rows), 0
    for length in range(1, len(rows) // 3 + 1):
        first = len(rows) - length
        while first > 0 and keys[first - 1] == keys[first - 1 + length]:
            first -= 1
        if first < began and len(rows) - first >= 3 * length:
            began, size = first, length
    if not size:
        return rows
    again = f"… and so on: {'this line' if size == 1 else f'these {size} lines'} again and again"
    return [*rows[: began + size], Row(rows[began].column, "", 0, again, "")]


def _joined(one: str, other: str) -> str:
    if not one or not other or one == other:
        return one or other
    if other.startswith(f"{one.rpartition('; ')[2]} → "):  # loaded, then stored
        return f"{one[: -len(one.rpartition('; ')[2])]}{other}"
    return f"{one}; {other}"


def end_of(failure: Failure) -> str:
    """What is wrong, in a line."""
    where = f" in thread {failure.thread}" if failure.thread and failure.kind == "raised" else ""
    if failure.where and failure.kind == "raised":
        where += f", {failure.where}"
    rule = f"rule {failure.rule}: " if failure.rule and not failure.message.startswith("rule ") else ""
    return f"{failure.kind}{where}: {rule}{failure.message}"


def text_of(failure: Failure, width: int = PAGE) -> str:
    """The diagram as text, in columns of so many characters together at most; the last line says what is wrong."""
    names, rows = columns_of(failure), rows_of(failure)
    natural = [
        max([len(name), *(len(_cell(row)) for row in rows if row.column == n)], default=0)
        for n, name in enumerate(names)
    ]
    widths = fitted(natural, width - 2 - 3 * (len(names) - 1))
    lines = [_line("", names, widths), _rule(widths)]
    for row in rows:
        for n, part in enumerate(_lines_of(row, widths[row.column])):
            cells = [part if column == row.column else "" for column in range(len(names))]
            lines.append(_line("" if n else row.mark, cells, widths))
    lines.append(_rule(widths))
    lines.append(f"✗ {end_of(failure)}")  # in one line: it is looked for
    return "\n".join(lines)


def fitted(natural: list[int], whole: int) -> list[int]:
    """The widths of columns: as wide as they want to be, unless that is too much; then the widest give way."""
    most = max(natural, default=0)
    while most > NARROWEST and sum(min(width, most) for width in natural) > whole:
        most -= 1
    return [min(width, most) for width in natural]


def _cell(row: Row) -> str:
    return f"{row.place}{row.source}{'   # ' + row.values if row.values else ''}"


def _lines_of(row: Row, width: int) -> list[str]:
    """A cell: its values are what matters, so they get a line of their own where the source leaves no room."""
    cell = _cell(row)
    if len(cell) <= width or not row.values:
        return [_cut(cell, width)]
    indent = " " * min(len(row.place), 5)
    return [_cut(f"{row.place}{row.source}", width), _cut(f"{indent}# {row.values}", width)]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _line(mark: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    shown = (_cut(cell, width).ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"{mark or ' '} {' │ '.join(shown)}".rstrip()


def _rule(widths: Sequence[int]) -> str:
    return "──" + "─┼─".join("─" * width for width in widths)
