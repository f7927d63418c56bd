"""All commands, in the order in which the help lists them."""

import inspect
import re
from typing import Final

from reactive_runtime._cli import kit, schedules, stress, verdict  # noqa: F401 - each adds its commands
from reactive_runtime._cli._exits import EPILOG
from reactive_runtime._cli.console import app

__all__ = ["JUDGES", "app"]

JUDGES: Final = ("stress", "verify", "report", "tck", "explore")
"""The commands whose exit status says what became of what they judge."""

for _command in app.registered_commands:
    # Typer ends a line of the help wherever the docstring does, from the second paragraph on.
    _command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.getdoc(_command.callback) or "")
    if _command.callback is not None and _command.callback.__name__ in JUDGES:
        _command.epilog = EPILOG
