"""`compact`: make few large files of the many small ones that runs have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reactive_runtime._cli._exits import INCOMPLETE, UNUSABLE
from reactive_runtime._cli.console import app, one_line_errors, out, unable
from reactive_runtime._cli.missing import check_installed
from reactive_runtime.errors import TraceError

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

        def left_alone(why: str) -> None:
            out().print(f"note     {why}", style="yellow", soft_wrap=True)

        seen = 0
        for run in compacted(runs, size=size << 20, dry_run=dry_run, note=left_alone, unable=skipped):
            seen += 1
            if run.files != run.left:
                what = f"{run.files:,} files, {_in_units(run.size)}: {'would be' if dry_run else 'now'} {run.left:,}"
                size_now = "" if dry_run else f", {_in_units(run.left_size)}"
                out().print(f"compact  {run.folder}: {what}{size_now}", soft_wrap=True)
        if unfit:
            raise typer.Exit(INCOMPLETE if seen else UNUSABLE)


def _in_units(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB" if size >= 1 << 20 else f"{size / (1 << 10):,.1f} KiB"
