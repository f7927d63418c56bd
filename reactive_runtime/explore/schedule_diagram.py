"""A failing schedule, drawn: a column for each thread, time downwards.

    ▶ marks a switch away from a thread that could have gone on, ▷ one from a thread that had ended or had to wait,
    ◆ where a thread waits for ever, ✗ the line that raised.

`rows_of` is what the text, the picture and the page have in common: the lines of the source at which something was done
that another thread could notice, each with the values that it saw, or changed.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from reactive_runtime.explore.results import Failure
    from reactive_runtime.explore.step_log import Step

__all__ = ["Row", "columns_of", "end_of", "rows_of", "text_of"]

WIDTH: Final = 58
"""Characters of a column, at most."""
MOST: Final = 80
"""Lines, at most; of a longer schedule the beginning and the end are shown."""


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
            rows[-1].values = _joined(rows[-1].values, step.value)
        else:
            source = step.source or step.what
            rows.append(Row(numbers.index(step.thread), mark, step.line, source, "waits" if step.waits else step.value))
        before = step
        preempts = False
    if failure.kind == "raised" and failure.breach is not None:
        _mark_raised(rows, failure, failure.breach, numbers)
    rows = _once(rows) if failure.kind == "livelock" else _folded(rows)
    if len(rows) > MOST:
        left = f"… {len(rows) - MOST} lines …"
        rows[MOST // 4 : len(rows) - MOST + MOST // 4] = [Row(rows[MOST // 4].column, "", 0, left, "")]
    return rows


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
        rows.append(Row(numbers.index(thread), "✗", breach[1], source, error))


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
    """The rows up to the end of the first period of those that repeat themselves to the end."""
    keys = [(row.column, row.line, row.source) for row in rows]
    for length in range(1, len(rows) // 3 + 1):
        if keys[-length:] == keys[-2 * length : -length] == keys[-3 * length : -2 * length]:
            first = len(rows) - length
            while first > 0 and keys[first - 1] == keys[first - 1 + length]:
                first -= 1
            again = f"… and so on: {'this line' if length == 1 else f'these {length} lines'} again and again"
            return [*rows[: first + length], Row(rows[first].column, "", 0, again, "")]
    return rows


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


def text_of(failure: Failure) -> str:
    """The diagram as text."""
    names, rows = columns_of(failure), rows_of(failure)
    cells = [_cell(row) for row in rows]
    widths = [
        min(WIDTH, max([len(name), *(len(cell) for row, cell in zip(rows, cells, strict=True) if row.column == n)]))
        for n, name in enumerate(names)
    ]
    lines = [_line("", names, widths), _rule(widths)]
    for row, cell in zip(rows, cells, strict=True):
        lines.append(_line(row.mark, [_cut(cell) if n == row.column else "" for n in range(len(names))], widths))
    lines.append(_rule(widths))
    lines.append(f"✗ {end_of(failure)}")
    return "\n".join(lines)


def _cell(row: Row) -> str:
    number = f"{row.line:>4} " if row.line else ""
    return f"{number}{row.source}{'   # ' + row.values if row.values else ''}"


def _cut(text: str) -> str:
    """The values are what matters: the source gives way."""
    if len(text) <= WIDTH:
        return text
    source, sign, values = text.rpartition("   # ")
    if not sign or len(values) > WIDTH // 2:
        return f"{text[: WIDTH - 1]}…"
    return f"{source[: WIDTH - len(values) - 6]}…   # {values}"


def _line(mark: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    return (
        f"{mark or ' '} " + " │ ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    ).rstrip()


def _rule(widths: Sequence[int]) -> str:
    return "──" + "─┼─".join("─" * width for width in widths)
