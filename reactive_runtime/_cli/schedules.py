"""`explore`: run a program of threads under many schedules."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reactive_runtime._cli._exits import BROKEN, INCOMPLETE
from reactive_runtime._cli.console import app, one_line, one_line_errors, out
from reactive_runtime._cli.missing import check_installed
from reactive_runtime._cli.watch import watched
from reactive_runtime.errors import ReactiveError

if TYPE_CHECKING:
    from reactive_runtime.explore import Result
    from reactive_runtime.explore._explore_command import Asked
    from reactive_runtime.explore._render.ci_reports import Reports


@app.command()
def explore(
    target: Annotated[
        str,
        typer.Argument(help="package.module:name of a class with actor_ methods, a Scenario or a function."),
    ],
    schedules: Annotated[int, typer.Option(min=1, help="Schedules to run, at most.")] = 2_000,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    strategy: Annotated[
        str, typer.Option(help="portfolio, random, pct or pct<depth>, pos, urw, surw, feedback, bounded, dpor.")
    ] = "portfolio",
    points: Annotated[str, typer.Option(help="Where threads can change: sync, shared, line, opcode.")] = "shared",
    bound: Annotated[int | None, typer.Option(min=0, help="Preemptions that bounded goes to, at most.")] = None,
    module: Annotated[list[str] | None, typer.Option(help="A further module to look into.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Steps of a schedule, at most.")] = 20_000,
    jobs: Annotated[int, typer.Option(min=1, help="Processes, each with a seed and a core of its own.")] = 1,
    engine: Annotated[str, typer.Option(help="threads, or greenlets.")] = "threads",
    gil: Annotated[
        str, typer.Option(help="any, or assumed: only schedules that an interpreter with a GIL allows.")
    ] = "any",
    early_timeouts: Annotated[
        int, typer.Option(min=0, help="How often in a schedule time may pass early, as on a busy machine.")
    ] = 1,
    pause: Annotated[float, typer.Option(help="Seconds that pass early at once, at most.")] = 1.0,
    hang: Annotated[float, typer.Option(help="Seconds that a thread may run without coming to a point.")] = 10.0,
    replay: Annotated[Path | None, typer.Option(help="Run the one schedule that was saved to this file.")] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="With --replay: stop in the debugger just before it fails.")
    ] = False,
    play: Annotated[bool, typer.Option("--play", help="Choose the schedule by hand, step by step.")] = False,
    save: Annotated[Path | None, typer.Option(help="Write a failing schedule to this file.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw a failing schedule to this file.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write the verdict, as JUnit's XML.")] = None,
    sarif: Annotated[Path | None, typer.Option(help="Write a failure with its schedule, as SARIF 2.1.0.")] = None,
) -> None:
    """Run a program of threads under many schedules, one thread at a time, until it fails; draw the schedule.

    The last line begins with the verdict: FAILED, EXHAUSTED, HELD or INCOMPLETE. A program that does not do
    the same each time, or calls what is not looked into, is INCOMPLETE.
    """
    from reactive_runtime.explore._explore_command import Asked
    from reactive_runtime.explore._render.ci_reports import Reports

    if play:
        _play(target, schedules, seed, limit, tuple(module or ()))
        return
    modules = tuple(module or ())
    asked = Asked(
        target, schedules, seed, strategy, points, modules, bound, limit, engine, gil, early_timeouts, pause, hang
    )
    watched(
        lambda: _explored_here(asked, jobs, replay, debug, save, svg, Reports(target, junit, sarif)),
        "the exploration",
        "where it ended in C code, the stacks of its threads are above",
    )


def _play(target: str, schedules: int, seed: int, limit: int, modules: tuple[str, ...]) -> None:
    """Let the one at the terminal choose the schedule."""
    with one_line_errors():
        check_installed("textual")
        from reactive_runtime._cli.play import Game
        from reactive_runtime._support.shell_names import import_string
        from reactive_runtime.explore._playing import Play

        Game(Play(import_string(target), modules=modules, schedules=schedules, seed=seed, limit=limit)).run()


def _explored_here(
    asked: Asked,
    jobs: int,
    replay: Path | None,
    debug: bool,
    save: Path | None,
    svg: Path | None,
    reports: Reports,
) -> None:
    """The work of the command, in the process that another one watches."""
    from reactive_runtime.explore._explore_command import explored, replayed, saved

    if hasattr(signal, "SIGTERM"):  # from the process that watches: as Ctrl-C
        signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    with one_line_errors():
        reports.unable("the exploration did not come to its end")
        if svg is not None:
            check_installed("jinja2")
        if debug and replay is None:
            raise ReactiveError("--debug goes with --replay: save the schedule with --save first")
        try:
            if replay is not None:
                result = replayed(asked.target, replay, asked.modules, asked.hang, debug=debug)
            else:
                result = explored(asked, jobs)
        except Exception as error:
            reports.unable(one_line(error))
            raise
        reports.done(result)
        for note in result.notes:
            out().print(f"note     {note}", soft_wrap=True)
        rate = result.schedules / max(result.seconds, 1e-9)
        out().print(
            f"explored {result.scenario}: {result.schedules:,} schedules in {result.seconds:.2f} s"
            f" ({rate:,.0f} a second), {result.strategy}, points {result.points}, seed {result.seed}",
            soft_wrap=True,
        )
        failure = result.failure
        if failure is None:
            _print_without_a_failure(result)
            return
        diagram = failure.diagram(width=max(out().width, 60)) if out().is_terminal else failure.diagram()
        out().print(f"\n{diagram}\n", soft_wrap=True)
        if save is not None:
            saved(result, save)
        if svg is not None:
            svg.write_text(failure.svg(), encoding="utf-8", errors="backslashreplace")
        again = f"--replay {save}" if save is not None else f"token {failure.token}"
        if not failure.gil:
            out().print("note     this schedule needs a build without a GIL")
        least = ", the fewest there are" if failure.minimal else ""
        out().print(f"again    {again}", soft_wrap=True)
        out().print(
            f"FAILED   found by schedule {failure.found_after}, {failure.preemptions} preemption(s){least}",
            style="bold red",
        )
        raise typer.Exit(BROKEN)


def _print_without_a_failure(result: Result) -> None:
    """Print the verdict, and why it is no more than that."""
    for call in result.not_looked_into:
        out().print(f"note     not looked into: {call}", soft_wrap=True)
    for what in result.never:
        out().print(f"note     {what}", soft_wrap=True)
    if result.uncontrolled:
        out().print(f"note     it {result.uncontrolled}", soft_wrap=True)
    word, _, rest = str(result.verdict).partition(" ")
    incomplete = bool(result.uncontrolled) or result.verdict.kind == "incomplete"
    style = "bold red" if not result.holds else "yellow" if incomplete else "green"
    out().print(f"{word.upper():8} {rest.removeprefix('(').removesuffix(')')}".rstrip(), style=style, soft_wrap=True)
    if result.never and not result.uncontrolled:
        raise typer.Exit(BROKEN)
    if incomplete:
        raise typer.Exit(INCOMPLETE)
