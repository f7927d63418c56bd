"""What all commands share: the terminal, the exit status, errors of one line."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Annotated, Final, NoReturn

from reactive_runtime.errors import ReactiveError

try:
    import typer
    from rich.console import Console
except ImportError:
    sys.exit("reactive-runtime: the command needs typer and rich: pip install 'reactive-runtime[cli]'")

__all__ = ["BROKEN", "UNABLE", "Conf", "Master", "Packages", "app", "one_line_errors", "out"]

BROKEN: Final = 1
UNABLE: Final = 2

app = typer.Typer(
    name="reactive-runtime",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Reactive Streams for Python threads: stress publishers, judge signals by the rules, run the kit, explore.",
)
out = Console(highlight=False, width=None if sys.stdout.isatty() else 120)

Master = Annotated[str, typer.Option(help="Where Spark runs: local[*], local[2], spark://host:port.")]
Conf = Annotated[list[str] | None, typer.Option(help="A Spark setting, spark.key=value; may be given many times.")]

Packages = Annotated[
    list[str] | None, typer.Option(help="A package for Spark, group:artifact:version; may be given many times.")
]


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    try:
        yield
    except ReactiveError as error:
        _stop(str(error))
    except ValueError as error:  # an option that only the one who uses it can judge
        _stop(str(error))
    except KeyboardInterrupt:
        _stop("interrupted")


def _stop(why: str) -> NoReturn:
    print(f"reactive-runtime: {why}", file=sys.stderr)
    raise typer.Exit(UNABLE)
