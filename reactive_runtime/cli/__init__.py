"""The command `reactive-runtime`: put publishers under load, judge what was recorded, run the kit, explore schedules.

Exit status: 0 where no rule was broken, 1 where one was, 2 where the command could not do its work; then one line
on standard error says why.
"""

from __future__ import annotations

import sys

from reactive_runtime.cli.missing import UNABLE, install_line

__all__ = ["main"]


def main() -> None:
    """Run the command. Where a package is missing, one line names the extra that installs it."""
    try:
        from reactive_runtime.cli.commands import app

        app()
    except ModuleNotFoundError as error:
        line = install_line(error)
        if line is None:
            raise
        print(f"reactive-runtime: {line}", file=sys.stderr)
        sys.exit(UNABLE)
