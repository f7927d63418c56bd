"""`tck`: run the kit on a publisher."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from reactive_runtime._cli._exits import BROKEN, INCOMPLETE, UNUSABLE, USAGE
from reactive_runtime._cli.console import app, one_line_errors, out, progress, titled, unable
from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import TargetError

if TYPE_CHECKING:
    from rich.table import Table

    from reactive_runtime.tck import Outcome
    from reactive_runtime.tck._running.command import Begun, Progress


@app.command()
def tck(
    target: Annotated[
        str,
        typer.Argument(help="package.module:name of a function(elements) that returns a publisher, or a verification."),
    ],
    failed: Annotated[
        str | None, typer.Option(help="package.module:name of a function() that returns a publisher which fails.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds for what has to come.")] = None,
    no_signals_timeout: Annotated[float | None, typer.Option(help="Seconds in which nothing may come.")] = None,
    poll_timeout: Annotated[float | None, typer.Option(help="Seconds between looks that no signal wakes.")] = None,
    gc_timeout: Annotated[float | None, typer.Option(help="Seconds for a subscriber to be dropped (3.13).")] = None,
    call_timeout: Annotated[float | None, typer.Option(help="Seconds after which a call counts as hanging.")] = None,
    max_elements: Annotated[int | None, typer.Option(min=0, help="The longest stream it can make.")] = None,
    recursion: Annotated[
        int | None, typer.Option(min=1, help="How deep request and on_next may recurse (3.3).")
    ] = None,
    skip_stochastic: Annotated[
        bool | None,
        typer.Option(help="Skip what is tested by repetition, or don't; default: as the verification has it."),
    ] = None,
    budget: Annotated[float, typer.Option(min=0, help="Seconds for all checks; what comes later is not run.")] = 120,
    memory: Annotated[float, typer.Option(min=1, help="MiB that the checks may take.")] = 2048,
) -> None:
    """Is it conformant? Run the kit on a publisher, or on what a verification makes, and print a table, rule by rule.

    Timeouts that are not given are taken from the environment, as the original kit has them (DEFAULT_TIMEOUT_MILLIS),
    or are made to fit what a signal takes. A publisher that breaks no MUST is conformant.
    """
    from reactive_runtime.tck._running.command import NoVerdictError, Target, judged

    settings = {
        "default_timeout": timeout,
        "default_no_signals_timeout": no_signals_timeout,
        "default_poll_timeout": poll_timeout,
        "publisher_reference_gc_timeout": gc_timeout,
        "call_timeout": call_timeout,
        "max_elements_from_publisher": max_elements,
        "bounded_depth_of_on_next_and_request_recursion": recursion,
        "skip_stochastic_tests": skip_stochastic,
    }
    with one_line_errors():
        try:
            _report(target, judged(Target(target, failed, settings), budget, memory), budget)
        except TargetError as error:
            unable(error)
            raise typer.Exit(USAGE) from None
        except NoVerdictError as error:
            unable(error)
            raise typer.Exit(UNUSABLE) from None


NAMED: Final = 3
"""So many checks that saw the same breach are named below it; the table has all of them."""

STYLES: Final = {"passed": "green", "failed": "bold red", "skipped": None, "not run": "yellow"}

PROGRESS: Final = 5.0
"""Seconds from one line of progress to the next."""

WORTH_SAYING: Final = 10.0
"""Seconds that the kit takes, from which on it says so beforehand."""


def _report(target: str, heard: Iterator[Begun | Progress | Outcome], budget: float) -> None:
    from rich.text import Text

    from reactive_runtime.tck._running.command import Begun, Progress
    from reactive_runtime.tck._verification import by_number

    table = titled(f"{target}, rule by rule")
    for title in ("rule", "check", "kind", "outcome"):
        table.add_column(title)
    begin = primitives.monotonic()
    outcomes: list[Outcome] = []
    shown = -PROGRESS
    for item in heard:
        if isinstance(item, Progress):
            if item.seconds - shown >= PROGRESS:
                shown = item.seconds
                progress(f"check {item.number} of {item.of}, {item.seconds:.0f} of {budget:g} s: {item.check.sentence}")
            continue
        if isinstance(item, Begun):
            if item.seconds > WORTH_SAYING:
                _say(f"a signal takes up to {item.pace:.2g} s here: the checks will take about {item.seconds:.0f} s")
            continue
        outcomes.append(item)
        entry = item.check
        kind = entry.kind if entry.original else f"{entry.kind}, extra"
        table.add_row(entry.rule, entry.sentence, kind, Text(_why(item)), style=STYLES[item.status])
    judged_any = any(item.status == "passed" and not item.check.asks_nothing for item in outcomes)
    unmade = [item for item in outcomes if item.status == "not run" or (item.status == "failed" and not item.rule)]
    if unmade and not judged_any and all(not item.rule for item in outcomes):
        _say(unmade[0].why)
        _stop(UNUSABLE, target, unmade)
    _say(table)
    counts: Counter[str] = Counter(item.status for item in outcomes)
    broken: dict[str, list[Outcome]] = {}
    for item in outcomes:
        if item.status in ("failed", "not run"):
            broken.setdefault(item.rule, []).append(item)
    rules = sorted(broken, key=lambda rule: by_number(rule) if rule else ("", 0))
    for rule in rules:
        first, *others = broken[rule]
        _say(f"{first.check.name}\n{first.why}")
        if others:
            names = [item.check.name for item in others]
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            _say(f"  {'seen too by' if rule else 'likewise'} {', '.join(names[:NAMED])}{more}")
        _say("")
    seconds = primitives.monotonic() - begin
    said = [f"{counts[status]} {status}" for status in STYLES if status != "not run" or counts[status]]
    _say(f"{', '.join(said)}, in {seconds:.1f} s")
    if any(rules):
        missing = f"; {_unmade(unmade)}" if unmade else ""
        _say(f"BROKEN   rule {', '.join(filter(None, rules))}{missing}", "bold red")
        raise typer.Exit(BROKEN)
    if unmade:
        _stop(INCOMPLETE, target, unmade)
    if not judged_any:
        unable(f"{target}: no check could be made")
        raise typer.Exit(UNUSABLE)
    asked = [item for item in outcomes if item.check.kind != "untested" and not item.check.asks_nothing]
    made = sum(item.status == "passed" for item in asked)
    _say(f"CONFORMS no check failed; {made} of {len(asked)} could be made", "green")


def _stop(status: int, target: str, unmade: list[Outcome]) -> NoReturn:
    """End with `status`: these checks could not be made."""
    why = f"{target}: {_unmade(unmade)}"
    if status == INCOMPLETE:
        _say(f"INCOMPLETE {why}", "bold yellow")
    else:
        unable(why)
    raise typer.Exit(status)


def _unmade(unmade: list[Outcome]) -> str:
    """The number of checks that were not made, and the reason for the first one."""
    checks = "1 check was" if len(unmade) == 1 else f"{len(unmade)} checks were"
    return f"{checks} not looked at: {_why(unmade[0])}"


def _say(what: Table | str, style: str | None = None) -> None:
    """Print; where there is nothing to print to any more, the exit status says it."""
    try:
        out().print(what, style=style, soft_wrap=isinstance(what, str))
        sys.stdout.flush()
    except UnicodeError:
        raise
    except (OSError, ValueError, AttributeError, SystemExit):  # rich ends the process where a pipe is closed
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # to the end of the process


def _why(outcome: Outcome) -> str:
    """In a table there is room for a line: what was seen, or why it was skipped."""
    if outcome.status == "passed":
        return "passed"
    seen = next((line for line in outcome.why.splitlines() if line.startswith("  seen: ")), outcome.why)
    seen = seen.removeprefix("  seen: ").removeprefix(f"rule {outcome.check.rule}: ")
    rule = f" rule {outcome.rule}," if outcome.rule not in ("", outcome.check.rule) else ""
    return f"{outcome.status}:{rule} {next(iter(seen.splitlines()), '')}"
