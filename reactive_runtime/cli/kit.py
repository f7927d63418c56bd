"""`tck`: run the kit on a publisher."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.table import Table

from reactive_runtime._core import primitives
from reactive_runtime.cli.console import BROKEN, app, one_line_errors, out

if TYPE_CHECKING:
    from reactive_runtime.tck import Outcome, Verification


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
) -> None:
    """Is it conformant? Run the kit on a publisher, or on what a verification makes, and print a table, rule by rule.

    Timeouts that are not given are taken from the environment, as the original kit has them (DEFAULT_TIMEOUT_MILLIS).
    """
    from reactive_runtime.tck.tck_command import verification_of

    with one_line_errors():
        verification = verification_of(
            target,
            failed=failed,
            default_timeout=timeout,
            default_no_signals_timeout=no_signals_timeout,
            default_poll_timeout=poll_timeout,
            publisher_reference_gc_timeout=gc_timeout,
            call_timeout=call_timeout,
            max_elements_from_publisher=max_elements,
            bounded_depth_of_on_next_and_request_recursion=recursion,
            skip_stochastic_tests=skip_stochastic,
        )
        _run_checks(target, verification)


STYLES: Final = {"passed": "green", "failed": "bold red", "skipped": None}


def _run_checks(target: str, verification: Verification) -> None:
    table = Table(title=f"{target}, rule by rule", title_justify="left", show_lines=False)
    for title in ("rule", "check", "kind", "outcome"):
        table.add_column(title)
    counts: Counter[str] = Counter()
    begin = primitives.monotonic()
    failures: list[Outcome] = []
    for outcome in verification.outcomes():
        counts[outcome.status] += 1
        if outcome.status == "failed":
            failures.append(outcome)
        entry = outcome.check
        kind = entry.kind if entry.original else f"{entry.kind}, extra"
        table.add_row(entry.rule, entry.sentence, kind, _why(outcome), style=STYLES[outcome.status])
    out.print(table)
    for failure in failures:
        out.print(f"{failure.check.name}\n{failure.why}\n", soft_wrap=True)
    seconds = primitives.monotonic() - begin
    out.print(f"{', '.join(f'{counts[status]} {status}' for status in STYLES)}, in {seconds:.1f} s")
    if failures:
        rules = sorted({item.check.rule for item in failures}, key=lambda rule: [int(part) for part in rule.split(".")])
        out.print(f"BROKEN   rule {', '.join(rules)}", style="bold red")
        raise typer.Exit(BROKEN)
    out.print("CONFORMS no check failed", style="green")


def _why(outcome: Outcome) -> str:
    """In a table there is room for a line: what was seen, or why it was skipped."""
    if outcome.status == "passed":
        return "passed"
    seen = next((line for line in outcome.why.splitlines() if line.startswith("  seen: ")), outcome.why)
    seen = seen.removeprefix("  seen: ").removeprefix(f"rule {outcome.check.rule}: ")
    return f"{outcome.status}: {seen.splitlines()[0]}"
