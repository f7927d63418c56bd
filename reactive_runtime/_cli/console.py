"""Shared by all commands: the terminal, the exit status, errors of one line."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from reactive_runtime import __version__
from reactive_runtime._cli._exits import status_of
from reactive_runtime._cli.missing import install_line
from reactive_runtime.errors import ReactiveError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "Conf",
    "Master",
    "Packages",
    "app",
    "fault",
    "one_line",
    "one_line_errors",
    "out",
    "progress",
    "refuse",
    "titled",
    "unable",
]

app: typer.Typer = typer.Typer(
    name="reactive-runtime",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Reactive Streams for Python threads: stress publishers, judge signals by the rules, run the kit, explore.",
)


def out() -> Console:
    """Standard output."""
    _silence_what_is_closed()
    return _out()


def _silence_what_is_closed() -> None:
    """Let what is printed from now on go nowhere where a scenario has closed the stream, or set it to None."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None or getattr(stream, "closed", False):
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - it stays open


@cache
def _out() -> Console:
    """Rich is imported here, on the first line that a command prints: `--help` needs none of it."""
    from rich.console import Console

    class Out(Console):
        """A terminal that falls silent when its reader has gone: `Console` itself ends the process, with status 1."""

        def on_broken_pipe(self) -> None:
            self.quiet = True
            with contextlib.suppress(OSError, ValueError):  # the interpreter flushes it at its end
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    # Without markup: texts of scenarios, errors and traces may have brackets of their own.
    return Out(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else 120)


def titled(title: str) -> Table:
    """A table without columns, for `out().print`."""
    from rich.table import Table

    return Table(title=title, title_justify="left")


@cache
def _errors() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False, width=out().width)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"reactive-runtime {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """The options of the command itself."""


Master = Annotated[str, typer.Option(help="Where Spark runs: local[*], local[2], spark://host:port.")]
Conf = Annotated[list[str] | None, typer.Option(help="A Spark setting, spark.key=value; may be given many times.")]

Packages = Annotated[
    list[str] | None, typer.Option(help="A package for Spark, group:artifact:version; may be given many times.")
]


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn each error inside into one line on standard error, and the exit status of `status_of`.

    With REACTIVE_RUNTIME_TRACEBACK in the environment, what is no error of ours has its traceback before that.
    """
    try:
        yield
    except (ReactiveError, ValueError) as error:  # a ValueError: an option that is checked where it is used
        _stop(error, str(error))
    except KeyboardInterrupt as error:
        _stop(error, "interrupted")
    except SystemExit as error:
        _stop(error, f"something that was run has called sys.exit({error.code!r}), and ended the load")
    except (typer.Exit, typer.Abort):
        raise
    except ModuleNotFoundError as error:
        if os.environ.get("REACTIVE_RUNTIME_TRACEBACK"):
            traceback.print_exc()
        _stop(error, install_line(error) or one_line(error))
    except Exception as error:
        if os.environ.get("REACTIVE_RUNTIME_TRACEBACK"):
            traceback.print_exc()
        _stop(error, one_line(error))


def refuse(context: typer.Context, names: Iterable[str], why: str) -> None:
    """ReactiveError for the first of these options that was given on the command line: it would do nothing."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ReactiveError(f"--{name.replace('_', '-')}: {why}")


def progress(how_far: str) -> None:
    """One line on standard error: the command is at work."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        _errors().print(f"         {how_far}", style="dim", soft_wrap=True)


def unable(why: object) -> None:
    """One line on standard error: something could not be judged, and the others are."""
    _silence_what_is_closed()
    _errors().print(f"UNABLE   {' '.join(str(why).splitlines())}", style="bold red", soft_wrap=True)


def one_line(error: BaseException) -> str:
    """An error that is not of this package, by its type and the first line it says."""
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {said[:300]}" if said else type(error).__name__


def fault(why: object) -> None:
    """One line on standard error: the command could not do something that was asked of it."""
    _silence_what_is_closed()
    print(f"reactive-runtime: {' '.join(str(why).splitlines())}", file=sys.stderr)


def _stop(error: BaseException, why: str) -> NoReturn:
    fault(why)
    raise typer.Exit(status_of(error))
