"""The page: one file that needs nothing else, and no JavaScript to be read. It escapes all texts of a trace."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Final

from reactive_runtime._results.ci_files import UnwrittenError, write_whole
from reactive_runtime._results.figures import duration, in_words, times
from reactive_runtime._results.states import State, grouped
from reactive_runtime.errors import MissingDependencyError, TraceError
from reactive_runtime.report._report_tables import DEMAND, Report, Row, load
from reactive_runtime.report._summary import WORDS, json_of, markdown_of
from reactive_runtime.testing._rule_checks import RULES

__all__ = ["page_environment", "page_of", "write_report"]

BUCKETS: Final = 8  # an octave, as the pipeline counts them


def write_report(folder: Path | str, to: Path | str) -> Report:
    """Write the report on the runs judged below `folder`, and return what is in it.

    By the ending of the file's name, it is a page (.html), Markdown (.md) or JSON (.json), which are summaries for the
    pages of a CI server. The file is replaced in one rename.

    Args:
        folder: As `load` takes it.
        to: The file to write. Folders above it are made.

    Returns:
        What the report shows.

    Raises:
        TraceError: There is nothing to report, or the file can't be written.
        MissingDependencyError: There is no Jinja2, which the page needs, or no pyarrow.
    """
    report = load(folder)
    file = Path(to)
    text = {".md": markdown_of, ".json": json_of}.get(file.suffix, page_of)(report)
    try:
        write_whole(file, text.encode())
    except UnwrittenError as error:
        raise TraceError(str(error)) from error
    return report


def page_of(report: Report) -> str:
    """The page, as text."""
    environment = page_environment()
    folder = Path(__file__).parent / "templates"
    script = (folder / "report.js").read_text(encoding="utf-8")
    page: str = environment.get_template("report.html").render(
        report=report,
        asks=RULES,
        words=WORDS,
        style=(folder / "report.css").read_text(encoding="utf-8"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        scale=_scale(report),
        demand=DEMAND,
        rules=_rules(report),
        pictured=sorted((row for row in report.rows if row.signals), key=lambda item: item.verdict == "clean"),
        nights=max((len(row.history) for row in report.rows), default=0),
        history=_history,
        in_words=in_words,
        times=times,
        unseen=[item for item in grouped(report.findings) if item[0] is not State.BROKEN],
        bars=_bars,
    )
    return page


def _bucket_ns(bucket: int) -> float:
    return float(2 ** (bucket / BUCKETS)) - 1


def _rules(report: Report) -> list[dict[str, Any]]:
    """The breaches of each rule that was broken: of the newest run, and, folded, of earlier ones. The newest first."""
    found: dict[str, dict[str, Any]] = {}
    newest = report.newest["run"]
    for violation in report.violations:
        rule = found.setdefault(
            violation["rule"],
            {"rule": violation["rule"], "first": not found, "newest": [], "older": [], "shown": [], "folded": []},
        )
        rule["newest" if violation["run"] == newest else "older"].append(violation)
    for example in report.examples:
        if example.rule in found:
            found[example.rule]["shown" if example.run == newest else "folded"].append(example)
    return list(found.values())


def _scale(report: Report) -> tuple[int, int]:
    """The buckets that all histograms are drawn from and to: one axis for all."""
    buckets = [
        bucket for row in report.rows for counts in row.histograms.values() for bucket, count in counts if bucket
    ]
    return (min(buckets), max(buckets) + 1) if buckets else (0, 1)


def _bars(counts: list[tuple[int, int]], scale: tuple[int, int]) -> list[dict[str, Any]]:
    """The bars of one histogram, in a box of 100 by 100."""
    low, high = scale
    most = max((count for _, count in counts), default=1)
    width = 100 / max(high - low, 1)
    return [
        {
            "x": round((max(bucket, low) - low) * width, 2),
            "width": round(width * 0.9, 2),
            "height": round(100 * count / most, 2),
            "said": f"{duration(_bucket_ns(bucket))} to {duration(_bucket_ns(bucket + 1))}: {count:,}",
        }
        for bucket, count in counts
        if bucket >= low
    ]


def _history(row: Row) -> list[tuple[float, float]]:
    """The points of a history line, in a box of 100 by 30; higher is slower."""
    values = [value for _, value in row.history]
    most = max([*values, 1])
    step = 100 / max(len(values) - 1, 1)
    return [(round(place * step, 2), round(28 - 26 * value / most, 2)) for place, value in enumerate(values)]


@cache
def page_environment() -> Any:
    """The environment that makes pages of templates."""
    try:
        import jinja2
        import markupsafe
    except ImportError as error:
        raise MissingDependencyError("the report needs Jinja2: pip install 'reactive-runtime[report]'") from error
    folder = Path(__file__).parent / "templates"
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def soft(name: str) -> Any:
        """A name that may be broken after each underscore."""
        return markupsafe.escape(name).replace("_", markupsafe.Markup("_<wbr>"))

    environment.filters["soft"] = soft
    environment.filters["duration"] = duration
    environment.filters["count"] = lambda n: "-" if n is None else f"{n:,}"
    return environment
