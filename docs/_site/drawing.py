"""A run as a picture: time from left to right, a line for each subscription, the operator in between.

Events at one time, on one thread and in one direction, stand in one column. The colours are those of the page: a
class for each thread, see `site.css`.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from html import escape
from typing import Final

from docs._site.recording import Event, Line, Run

__all__ = ["svg"]

LETTER: Final = 7.3
SMALL: Final = 6.2
"""Pixels that a letter is wide: of an element, of a request."""
GAP: Final = 58
"""Between two lines."""
MOST: Final = 30
"""Letters of an element that are shown."""
COLOURS: Final = 6
SMALLEST: Final = 0.7
"""How far a picture shrinks where there is little room, before it has to be scrolled."""


@dataclass
class Column:
    """Events that are drawn one above the other."""

    events: list[Event] = field(default_factory=list)
    x: float = 0.0

    @property
    def width(self) -> float:
        """The width of its widest event."""
        return max(_width(event) for event in self.events) + 10

    def takes(self, event: Event) -> bool:
        """Whether `event` belongs into it: at once, on the same thread, further along in the same direction."""
        last = self.events[-1]
        if event.time != last.time or event.thread != last.thread or "act" in (event.what, last.what):
            return False
        if event.line is None or last.line is None:
            return False
        up = {"request", "cancel", "subscribe"}
        if (event.what in up) != (last.what in up) or last.line.above == event.line.above:
            return False
        return event.line.above if event.what in up else last.line.above


class Layout:
    """The places of all events."""

    def __init__(self, run: Run) -> None:
        self.lines = _lines(run)
        self.columns = _columns(run)
        self.end = max([len(line.label) for line in self.lines] + [1]) * LETTER + 22  # where the last column ends
        for column in self.columns:
            column.x = self.end + column.width / 2
            self.end += column.width
        self.code = [part for line in run.code.splitlines() for part in textwrap.wrap(line, 78)]
        self.width = max(self.end + 24, LETTER * max(map(len, self.code)) + 46, 300)
        self.threads = list(dict.fromkeys(event.thread for event in run.events))
        self.timed = len({event.time for event in run.events}) > 1
        above, below = ([line for line in self.lines if line.above == side] for side in (True, False))
        self.top = 30 if self.timed else 8
        self.box = self.top + GAP * len(above) + (4 if above else 0)
        calls = any(event.line is None for event in run.events)
        self.under = self.box + 14 + 18 * len(self.code) + (22 if calls else 0)  # the lower edge of the box
        self.height = self.under + (26 + GAP * len(below) if below else 24) + (8 if run.result is not None else 0)
        self.y = {line: self.top + 26 + GAP * n for n, line in enumerate(above)}
        self.y |= {line: self.under + 40 + GAP * n for n, line in enumerate(below)}


def svg(name: str, run: Run) -> str:
    """The picture."""
    layout = Layout(run)
    parts = [_time(layout.columns, layout.top, layout.height - 8)] if layout.timed else []
    parts += [_line(line, layout.y[line], layout.columns, layout.end) for line in layout.lines]
    parts += _box(layout)
    for column in layout.columns:
        for event in column.events:
            colour = layout.threads.index(event.thread) % COLOURS
            if event.line is None:
                parts.append(_call(event, column.x, layout.under - 12, colour))
            else:
                parts.append(_event(event, column.x, layout.y[event.line], colour))
    if run.result is not None:
        parts.append(f'<text class="code" x="20" y="{layout.under + 22}">→ {escape(_cut(run.result, 90))}</text>')
    legend, height = _legend(layout.threads, layout.height, layout.width)
    width = f"{layout.width:.0f}"
    return (
        f'<svg class="marble" xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'style="min-width: {SMALLEST * layout.width:.0f}px" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(f"{name}: {_said(run)}")}">\n' + "\n".join([*parts, legend]) + "\n</svg>"
    )


def _box(layout: Layout) -> list[str]:
    """The operator, with the code that was run."""
    size = f'width="{layout.width - 16:.0f}" height="{layout.under - layout.box}"'
    lines = [
        f'<text class="code" x="20" y="{layout.box + 22 + 18 * n}" xml:space="preserve">{escape(text)}</text>'
        for n, text in enumerate(layout.code)
    ]
    return [f'<rect class="box" x="8" y="{layout.box}" {size} rx="6"/>', *lines]


def _lines(run: Run) -> list[Line]:
    """Those above by their names, then those below in the order in which they begin."""
    found = dict.fromkeys(event.line for event in run.events if event.line is not None)
    return sorted(found, key=lambda line: (not line.above, line.label if line.above else ""))


def _columns(run: Run) -> list[Column]:
    columns: list[Column] = []
    for event in run.events:
        if event.what == "subscribe" and event.time == 0 and event.line is not None:
            seen = [other for column in columns for other in column.events if other.line is event.line]
            if not seen and not any(other.what == "next" for column in columns for other in column.events):
                continue  # a line that begins at the beginning needs no mark
        if columns and columns[-1].takes(event):
            columns[-1].events.append(event)
        else:
            columns.append(Column([event]))
    return columns or [Column([event]) for event in run.events[:1]]


def _cut(text: str, most: int = MOST) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _label(event: Event) -> str:
    return {"request": f"request({event.text})", "cancel": "cancel", "subscribe": ""}.get(event.what, _cut(event.text))


def _width(event: Event) -> float:
    if event.what == "next":
        return max(30.0, len(_label(event)) * LETTER + 16)
    if event.what in ("complete", "subscribe"):
        return 14.0
    return max(20.0, len(_label(event)) * (LETTER if event.what in ("call", "act") else SMALL) + 4)


def _line(line: Line, y: float, columns: list[Column], x: float) -> str:
    """From where it begins to where it ends; a name, and a stretch for each subscription."""
    parts = [f'<text class="label" x="10" y="{y + 5:.0f}">{escape(line.label)}</text>']
    begin: float | None = None if any(_begins(column, line) for column in columns) else columns[0].x - 24
    for column in columns:
        for event in column.events:
            if event.line is not line:
                continue
            if event.what == "subscribe":
                begin = column.x
            elif begin is None:
                begin = columns[0].x - 24  # its first subscription is at the beginning
            if event.what in ("complete", "error", "cancel") and begin is not None:
                parts.append(_stroke(begin, column.x, y))
                begin = float("nan")
    if begin is None or begin == begin:
        parts.append(_stroke(columns[0].x - 24 if begin is None else begin, x + 4, y))
    return "\n".join(parts)


def _begins(column: Column, line: Line) -> bool:
    return any(event.line is line and event.what == "subscribe" for event in column.events)


def _stroke(begin: float, end: float, y: float) -> str:
    return f'<line class="time" x1="{begin:.1f}" y1="{y}" x2="{end:.1f}" y2="{y}"/>'


def _event(event: Event, x: float, y: float, colour: int) -> str:
    assert event.line is not None
    label, above = escape(_label(event)), event.line.above
    title = f"<title>{escape(_title(event))}</title>"
    opened = f'<g class="t{colour}" data-signal="{event.what}">{title}'
    if event.what == "next":
        half = max(13.0, len(_label(event)) * LETTER / 2 + 6)
        start, end = (y + 13, y + 27) if above else (y - 27, y - 14)
        return (
            f"{opened}{_arrow(x, start, end)}"
            f'<rect class="marble-of" x="{x - half:.1f}" y="{y - 13}" width="{2 * half:.1f}" height="26" rx="13"/>'
            f'<text class="element" x="{x:.1f}" y="{y + 5}">{label}</text></g>'
        )
    if event.what == "complete":
        return f'{opened}<line class="end" x1="{x:.1f}" y1="{y - 11}" x2="{x:.1f}" y2="{y + 11}"/></g>'
    if event.what == "error":
        cross = f"M{x - 8:.1f} {y - 8} L{x + 8:.1f} {y + 8} M{x + 8:.1f} {y - 8} L{x - 8:.1f} {y + 8}"
        return f'{opened}<path class="fault" d="{cross}"/><text class="up" x="{x:.1f}" y="{y + 22}">{label}</text></g>'
    # upwards: from the operator to the line above it, from the line below to the operator
    start, end = (y + 25, y + 5) if above else (y - 2, y - 22)
    text = y - (11 if event.what != "request" else 6) if above else y + (18 if event.what != "request" else 13)
    mark = ""
    if event.what == "cancel":
        mark = f'<path class="stop" d="M{x - 5:.1f} {y - 5} l10 10 m0 -10 l-10 10"/>'
    if event.what == "subscribe":
        mark = f'<circle class="begin" cx="{x:.1f}" cy="{y}" r="4"/>'
    return f'{opened}{_arrow(x, start, end)}{mark}<text class="up" x="{x:.1f}" y="{text}">{label}</text></g>'


def _arrow(x: float, start: float, end: float) -> str:
    tip = 5 if end > start else -5
    return f'<path class="arrow" d="M{x:.1f} {start} V{end} m-4 {-tip} l4 {tip} l4 {-tip}"/>'


def _call(event: Event, x: float, y: float, colour: int) -> str:
    sign = "▸ " if event.what == "act" else ""
    return (
        f'<g class="t{colour}" data-signal="{event.what}"><title>{escape(_title(event))}</title>'
        f'<text class="call" x="{x:.1f}" y="{y}">{sign}{escape(_label(event))}</text></g>'
    )


def _title(event: Event) -> str:
    return f"{_label(event) or event.what}, on thread {event.thread}, at {event.time:g} s"


def _time(columns: list[Column], top: float, bottom: float) -> str:
    """A mark where the virtual time has moved on."""
    parts, before = [], None
    for column in columns:
        time = column.events[0].time
        if time != before:
            x = column.x - column.width / 2
            parts.append(f'<line class="tick" x1="{x:.1f}" y1="{top - 8}" x2="{x:.1f}" y2="{bottom}"/>')
            parts.append(f'<text class="when" x="{x + 4:.1f}" y="{top - 10}">{time:g} s</text>')
        before = time
    return "\n".join(parts)


def _legend(threads: list[str], height: float, width: float) -> tuple[str, int]:
    """Which colour is which thread."""
    x, y, parts = 12.0, height + 14, []
    for n, thread in enumerate(threads):
        size = len(thread) * LETTER + 34
        if x + size > width and x > 12:
            x, y = 12.0, y + 20
        parts.append(
            f'<g class="t{n % COLOURS}"><circle class="marble-of" cx="{x + 6:.1f}" cy="{y}" r="6"/>'
            f'<text class="label" x="{x + 18:.1f}" y="{y + 5}">{escape(thread)}</text></g>'
        )
        x += size
    return "\n".join(parts), int(y + 16)


def _said(run: Run) -> str:
    """The run in words, for those who don't see the picture."""
    said = [
        f"{event.line.label or 'subscriber'} {_label(event) or event.what}"
        for event in run.events
        if event.line is not None and event.what != "subscribe"
    ]
    return "; ".join(said[:60])
