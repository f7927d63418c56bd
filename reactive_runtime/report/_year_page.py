"""The page of a year: one file of at most 2 MiB, however many machines, scenarios and failures there are."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from reactive_runtime._results.ci_files import UnwrittenError, write_whole
from reactive_runtime._results.figures import duration
from reactive_runtime.errors import TraceError
from reactive_runtime.report._page import page_environment
from reactive_runtime.report._pixels import png_of
from reactive_runtime.report._summary import escaped
from reactive_runtime.report._year import DAYS, OVER, Began, Percentiles, Year, load_year
from reactive_runtime.testing._rule_checks import RULES

__all__ = ["LARGEST", "write_year", "year_json", "year_markdown", "year_page"]

LARGEST: Final = 2 << 20
"""Bytes of the page, at most."""

_ROWS: Final = (500, 200, 50, 10)
"""Rows of each table, at most: the first of these with which the page is small enough."""

_NAMED: Final = 3
"""Machines that are named in a row."""

_LINE: Final = 92
"""Points of a line in the table of scenarios."""

_COLOURS: Final = ((0, 0, 0, 0), (143, 188, 220, 255), (227, 160, 8, 255), (176, 16, 48, 255))
"""Of no run, clean, not looked at as a whole, failing."""

_WIDTH, _HEIGHT = 730, 120


def write_year(folder: Path | str, to: Path | str, days: int = DAYS) -> Year:
    """Write the report on a year of nights, and return what is in it.

    By the ending of the file's name, it is a page (.html), Markdown (.md) or JSON (.json). The file is replaced in one
    rename.

    Args:
        folder: As `load_year` takes it.
        to: The file to write. Folders above it are made.
        days: How many days the year has.

    Returns:
        The year that the report shows.

    Raises:
        TraceError: There is nothing to report, or the file can't be written.
        MissingDependencyError: There is no Jinja2, which the page needs, or no pyarrow.
    """
    year = load_year(folder, days)
    file = Path(to)
    text = {".md": year_markdown, ".json": year_json}.get(file.suffix, year_page)(year)
    try:
        write_whole(file, text.encode())
    except UnwrittenError as error:
        raise TraceError(str(error)) from error
    return year


def year_page(year: Year) -> str:
    """The page, as text."""
    page = ""
    for most in _ROWS:
        page = _page(year, most)
        if len(page.encode()) <= LARGEST:
            break
    return page


def _page(year: Year, most: int) -> str:
    environment = page_environment()
    folder = Path(__file__).parent / "templates"
    script = "".join((folder / name).read_text(encoding="utf-8") for name in ("report.js", "year.js"))
    page: str = environment.get_template("year.html").render(
        year=year,
        most=most,
        over=OVER,
        asked=_asked,
        pythons=len({python for item in year.began for _, python in item.places}),
        style="".join((folder / name).read_text(encoding="utf-8") for name in ("report.css", "year.css")),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        picture=base64.b64encode(png_of([item.row for item in year.machines], _COLOURS)).decode(),
        short=_short,
        places=_places,
        charts=_charts(year),
        months=_months(year),
        line=_line,
        rate=_rate,
        duration=duration,
        width=_WIDTH,
        height=_HEIGHT,
    )
    return page


def _short(text: str, most: int = 60) -> str:
    """A name that fits: a trace may carry any."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _asked(item: Began) -> str:
    """The texts of the rules."""
    return "; ".join(RULES[rule] for rule in item.rules if rule in RULES)


def _places(item: Began, pythons: int) -> str:
    """The machines of an entry, in a line."""
    named = [f"{_short(machine)}{f' ({python})' if pythons > 1 else ''}" for machine, python in item.places[:_NAMED]]
    more = len(item.places) - len(named)
    return "; ".join(named) + (f" and {more:,} more" if more else "")


def _rate(value: float | None) -> str:
    """Signals a second, as people read them."""
    if value is None:
        return "-"
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g} {unit}/s"
    return f"{value:.3g}/s"


def _months(year: Year) -> list[tuple[float, str]]:
    """The beginning of each month, in percent of the year, and its name."""
    nights = year.nights
    return [(round(100 * at / len(nights), 2), night[:7]) for at, night in enumerate(nights) if night.endswith("-01")]


def _charts(year: Year) -> list[dict[str, Any]]:
    """The two charts: what was measured, night by night."""
    return [
        {
            "id": "silence",
            "title": "From a cancel to silence",
            "about": "Of the p99 of each scenario in each run: the median, p90 and p99 of a night.",
            "names": ("median", "p90", "p99"),
            **_chart(year.silence),
            "rate": False,
        },
        {
            "id": "throughput",
            "title": "Throughput",
            "about": "Signals and calls a second of each scenario in each run: p1, p10 and the median of a night.",
            "names": ("p1", "p10", "median"),
            **_chart(year.throughput),
            "rate": True,
        },
    ]


def _chart(nights: Sequence[Percentiles]) -> dict[str, Any]:
    values = [[getattr(night, name) for night in nights] for name in ("low", "middle", "high")]
    most = max((value for of in values for value in of if value is not None), default=0) or 1
    return {"top": most, "paths": [_path(of, most) for of in values], "last": [of[-1] for of in values]}


def _path(values: Sequence[float | None], most: float) -> str:
    """A line from nothing to `most`, with gaps where nothing was measured."""
    step = _WIDTH / max(len(values) - 1, 1)
    drawn, pen = [], "M"
    for at, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        drawn.append(f"{pen}{at * step:.0f} {_HEIGHT - (_HEIGHT - 4) * value / most:.0f}")
        pen = "L"
    return "".join(drawn)


def _line(values: Sequence[float | None]) -> str:
    """The points of a line in a table, in a box of 100 by 30."""
    every = -(-len(values) // _LINE)
    known = [(at, value) for at, value in enumerate(values[::every]) if value is not None]
    most = max((value for _, value in known), default=0) or 1
    step = 100 / max(-(-len(values) // every) - 1, 1)
    return " ".join(f"{at * step:.1f},{29 - 28 * value / most:.0f}" for at, value in known)


# -- for programs, and for the pages of CI servers ------------------------------------------------------------


def year_json(year: Year) -> str:
    """The year, for programs."""
    nights = zip(year.nights, year.silence, year.throughput, strict=True)
    shown = {
        "first": year.first,
        "last": year.last,
        "runs": year.runs,
        "undated": year.undated,
        "began": [
            {**asdict(item), "places": [{"machine": name, "python": python} for name, python in item.places]}
            for item in year.began
        ],
        "machines": [{name: value for name, value in vars(item).items() if name != "row"} for item in year.machines],
        "scenarios": [
            {name: value for name, value in asdict(item).items() if name != "line"} for item in year.scenarios
        ],
        "nights": [
            {
                "night": night,
                "silence_ns": dict(zip(("p50", "p90", "p99"), vars(silence).values(), strict=True)),
                "signals_a_second": dict(zip(("p1", "p10", "p50"), vars(rate).values(), strict=True)),
            }
            for night, silence, rate in nights
        ],
    }
    return json.dumps(shown, indent=2) + "\n"


def year_markdown(year: Year) -> str:
    """The same for people, in short: what began to fail."""
    lasting = len(year.lasting)
    lines = [
        f"## {year.first} to {year.last}: {lasting} failure(s) last",
        "",
        f"{year.runs:,} runs on {len(year.machines):,} machine(s), {len(year.scenarios):,} scenarios.",
        "",
        "| began | commit | scenario | breaks | machines | now |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {item.night} | {escaped(_short(item.commit, 12))} | {escaped(item.scenario)} |"
        f" {escaped(', '.join(item.rules))} | {escaped(_places(item, 1))} | {item.state} |"
        for item in year.began[: _ROWS[0]]
    ]
    if len(year.began) > _ROWS[0]:
        lines += ["", f"And {len(year.began) - _ROWS[0]:,} older."]
    return "\n".join(lines if year.began else lines[:3]) + "\n"
