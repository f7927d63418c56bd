"""`compact` and `tables`: few large files of the many small ones of runs; the nights in tables of a lakehouse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from reactive_runtime._cli._exits import INCOMPLETE, UNUSABLE
from reactive_runtime._cli.console import Conf, Master, Packages, app, one_line_errors, out, unable
from reactive_runtime._cli.missing import check_installed
from reactive_runtime._cli.verdict import check_master, session_on
from reactive_runtime.errors import TraceError

if TYPE_CHECKING:
    from reactive_runtime.spark import KeptNight
    from reactive_runtime.spark._lakehouse.lake_tables import Format

__all__: list[str] = []


@app.command()
def compact(
    runs: Annotated[Path, typer.Argument(help="Folder of runs.")],
    size: Annotated[
        int, typer.Option(min=1, help="MiB that a file should have at least; a smaller run becomes one file.")
    ] = 128,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be compacted.")] = False,
) -> None:
    """Make few large files of the many small ones of each complete run, sorted by subscription.

    The verdict stays the same, which is checked before a file is removed. The command can be killed at any time: the
    next call goes on from there. A run that was cut off, or is being written, is left alone, and named. The exit status
    is 3 if a run could not be compacted, 4 if none could.
    """
    with one_line_errors():
        check_installed("numpy", "pyarrow")
        from reactive_runtime.judging._compacting import compact as compacted

        unfit: list[TraceError] = []

        def skipped(error: TraceError) -> None:
            unfit.append(error)
            unable(error)

        seen = 0
        for run in compacted(runs, size=size << 20, dry_run=dry_run, note=_left_alone, unable=skipped):
            seen += 1
            if run.files != run.left:
                what = f"{run.files:,} files, {_in_units(run.size)}: {'would be' if dry_run else 'now'} {run.left:,}"
                size_now = "" if dry_run else f", {_in_units(run.left_size)}"
                out().print(f"compact  {run.folder}: {what}{size_now}", soft_wrap=True)
        if unfit:
            raise typer.Exit(INCOMPLETE if seen else UNUSABLE)


def _left_alone(why: str) -> None:
    out().print(f"note     {why}", style="yellow", soft_wrap=True)


@app.command()
def tables(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or folders that hold such folders.")],
    into: Annotated[str, typer.Option(help="Namespace of the tables: lake.nights; for Delta also a folder.")],
    format: Annotated[str, typer.Option(help="Of the tables: delta, iceberg; or parquet, which has no versions.")],
    verdict: Annotated[Path | None, typer.Option(help="Folder of a verdict whose tables are kept too.")] = None,
    master: Master = "local[*]",
    conf: Conf = None,
    packages: Packages = None,
) -> None:
    """Keep complete runs, and the verdict on them, in tables of Delta or Iceberg: a commit a night in each.

    A night that is in the tables is left as it is; one of which a run is new, or has changed, is replaced. The command
    can be killed at any time: the next call goes on from there. A run that was cut off, or is being written, is left
    alone, and named. The exit status is 3 if a run could not be kept, 4 if none could.
    """
    with one_line_errors():
        check_installed("pyspark")
        from reactive_runtime.spark import keep_nights
        from reactive_runtime.spark._session.spark_session import settings_of

        check_master(master)
        unfit: list[TraceError] = []

        def skipped(error: TraceError) -> None:
            unfit.append(error)
            unable(error)

        spark = session_on(master, settings_of(conf, packages))
        nights = keep_nights(
            spark, runs, into, format=cast("Format", format), verdict=verdict,
            kept=_print_kept, unreadable=skipped, note=_left_alone,
        )  # fmt: skip
        if unfit:
            raise typer.Exit(INCOMPLETE if nights else UNUSABLE)


def _print_kept(night: KeptNight) -> None:
    words = {"new": "new", "replaced": "replaced", "there": "as before"}
    version = "" if night.version is None else f", version {night.version}"
    what = f"{night.runs:,} run(s), {night.records:,} records"
    out().print(f"night    {night.night}: {what}: {words[night.was]}{version}", soft_wrap=True)


def _in_units(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB" if size >= 1 << 20 else f"{size / (1 << 10):,.1f} KiB"
