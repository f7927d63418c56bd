"""`ps` and `top`: the live flows of a running process, and why those that stand still do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reactive_runtime._cli._exits import BROKEN
from reactive_runtime._cli.console import app, fault, one_line_errors
from reactive_runtime._cli.missing import check_installed

Pid = Annotated[int, typer.Argument(help="A process of this user that has called live.open().", metavar="PID")]
Folder = Annotated[Path | None, typer.Option(help="The folder that it has given to live.open().")]


@app.command()
def ps(
    pid: Pid,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    fail_after: Annotated[
        float | None, typer.Option(min=0, help="End with status 1 if a flow has stalled for so many seconds.")
    ] = None,
    folder: Folder = None,
) -> None:
    """Print every live flow of a running process: operators, threads, demand, queues, and why it does not move.

    The process has called live.open(), or has REACTIVE_RUNTIME_LIVE=1 in its environment.
    """
    from reactive_runtime.live import ask

    with one_line_errors():
        found = ask(pid, folder)
        typer.echo(found.to_json() if json else str(found))
        if fail_after is None:
            return
        for flow in found.stalled:
            if flow.cause is not None and flow.cause.seconds >= fail_after:
                fault(f"flow {flow.id} is stalled: {flow.cause}")
                raise typer.Exit(BROKEN)


@app.command()
def top(
    pid: Pid,
    every: Annotated[float, typer.Option(min=0.5, help="Seconds between two looks.")] = 1.0,
    folder: Folder = None,
) -> None:
    """Show the live flows of a running process in the terminal, and look again every second, until q is pressed."""
    with one_line_errors():
        check_installed("textual")
        from reactive_runtime._cli.top import Top
        from reactive_runtime.live import ask

        ask(pid, folder)  # the terminal stays as it is where there is nothing to show
        Top(pid, every, folder).run()
