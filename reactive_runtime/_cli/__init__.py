"""The command `reactive-runtime`: put publishers under load, judge what was recorded, run the kit, explore schedules.

Where a command could not do its work, one line on standard error says why. `_cli._exits` has the table of its exit
statuses.
"""

from __future__ import annotations

import io
import os
import sys

from reactive_runtime._cli._exits import USAGE
from reactive_runtime._cli.missing import install_line

__all__ = ["main"]


def main() -> None:
    """Run the command. Where a package is missing, one line names the extra that installs it."""
    _open_what_is_closed()
    _print_any_text()
    try:
        from reactive_runtime._cli.commands import app

        app()
    except ModuleNotFoundError as error:
        line = install_line(error)
        if line is None:
            raise
        print(f"reactive-runtime: {line}", file=sys.stderr)
        sys.exit(USAGE)


def _print_any_text() -> None:
    """Escape what the encoding of an output has not: an element may be shown with any character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _open_what_is_closed() -> None:
    """Open the standard streams that the shell has closed, so that no pipe gets the number of one of them."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            file = open(os.devnull, mode)  # noqa: SIM115  # to the end of the process
            os.set_inheritable(file.fileno(), True)
            setattr(sys, name, file)
