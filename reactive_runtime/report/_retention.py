"""Remove old nights: traces are large; the next night is compared with the verdicts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from reactive_runtime.errors import TraceError
from reactive_runtime.report._report_tables import load
from reactive_runtime.spark._verdict.lineage import entries_of, index_of
from reactive_runtime.spark._verdict.nights import months_without
from reactive_runtime.spark._verdict.tables import Draft, Together, one_verifier, together

__all__ = ["prune_traces", "prune_verdicts"]


def prune_traces(folder: Path, nights: int, *, dry_run: bool = False) -> list[Path]:
    """Remove the runs of all days below `folder`, but for the `nights` newest (1 or more) that have runs.

    Returns the folders of these days. One that holds something else stays, with that. Of a day that is a link, the link
    is removed, and what it leads to stays; a folder with a date that there is not is no day. TraceError where the
    folder is none, or something can't be removed.
    """
    if not folder.is_dir():
        raise TraceError(f"{folder}: is no folder")
    days = sorted(item for item in folder.glob("date=????-??-??") if any(_runs(item)) and _is_day(item.name[5:]))
    old = days[: max(0, len(days) - nights)]
    for day in [] if dry_run else old:
        try:
            if day.is_symlink():
                day.unlink()
                continue
            for run in _runs(day):
                run.unlink() if run.is_symlink() else shutil.rmtree(run)
            if not any(day.iterdir()):
                day.rmdir()
        except OSError as error:
            raise TraceError(f"{day}: can't be removed: {error.strerror or error}") from error
    return old


def _runs(day: Path) -> Iterator[Path]:
    return (item for item in day.glob("run=*") if item.is_dir())


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def prune_verdicts(folder: Path, nights: int, *, dry_run: bool = False) -> list[str]:
    """Take the runs of all days but the `nights` newest out of the verdict in `folder`, or `folder`/verdict, at once.

    Returns them. A run without a known time stays; so does what is known of a machine (`series`), for the next night.
    TraceError where there is no verdict, or a verifier is at work on it.
    """
    tables = folder / "verdict" if (folder / "verdict").is_dir() else folder
    report = load(tables)
    days = {item["run"]: (item["started"] or "")[:10] for item in report.runs}
    days = {run: day for run, day in days.items() if _is_day(day)}
    kept = sorted(set(days.values()))[-nights:]
    old = sorted(run for run, day in days.items() if day not in kept)
    if old and not dry_run:
        with one_verifier(tables):
            last = together(tables) or Together([])
            left = Together([item for item in last.runs if item not in old], last.unable)
            names = [item.name for item in tables.iterdir() if item.is_dir() and any(item.glob("run=*"))]
            whole = months_without(tables, old)
            if (tables / "judged").is_dir():
                entries = entries_of(tables)
                whole["judged"] = index_of(entry for run, entry in entries.items() if run not in old)
            draft = Draft(tables)
            for name, rows in whole.items():
                draft.whole(name, rows)
            draft.commit(left, old, names, sorted(whole))
    return old
