"""The options of `stress`: what each takes, and what the help says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Names = Annotated[
    list[str] | None, typer.Argument(help="Names of scenarios, or patterns (range_*); all, if there are none.")
]
Listing = Annotated[bool, typer.Option("--list", help="Say which scenarios there are, and stop.")]
Tag = Annotated[str | None, typer.Option(help="Only those with this tag: smoke, nightly.")]
Repeat = Annotated[
    str,
    typer.Option(
        help="So many runs, with the seeds that follow, or until-failure; of more than one each is judged here."
    ),
]
Threads = Annotated[int, typer.Option(min=1, max=1_024, help="Threads that fire request and cancel.")]
Seconds = Annotated[float, typer.Option(min=0.1, help="Seconds of load.")]
Seed = Annotated[int | None, typer.Option(help="Seed of all random numbers; drawn and printed, if not given.")]
Pool = Annotated[
    str, typer.Option(help="threads: all scenarios in turn; processes-per-scenario: each in one of its own.")
]
Pythons = Annotated[
    list[str] | None, typer.Option(help="An interpreter to run under; several run side by side, a run for each.")
]
Out = Annotated[Path, typer.Option(help="Folder for the runs; each gets a folder of its own in it.")]
Where = Annotated[
    str | None,
    typer.Option(
        "--scenarios",
        help="Folder of scenario files, or a module that has some; default: ./stress, else those of the package.",
    ),
]
Fault = Annotated[
    str, typer.Option(envvar="REACTIVE_RUNTIME_FAULT", help="Swap in a broken subscription, to see it caught.")
]
Verify = Annotated[bool, typer.Option("--verify", help="Judge the runs when the load is over.")]
Engine = Annotated[
    str, typer.Option(help="With --verify: spark, which also writes the tables; or local, in this process.")
]
Reports = Annotated[
    list[Path] | None,
    typer.Option(help="With --verify: write the report to this file, .html, .md or .json; may be given many times."),
]
Junit = Annotated[Path | None, typer.Option(help="Write what became of each scenario, as JUnit's XML.")]
Machine = Annotated[
    str,
    typer.Option(
        envvar="REACTIVE_RUNTIME_MACHINE",
        help="Name of this machine: runs are compared with those of the same; default: host, cores and system.",
    ),
]
