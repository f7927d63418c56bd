"""All commands, in the order in which the help lists them."""

import inspect
from typing import Final

from reactive_runtime._cli import kit, processes, schedules, stress, trace_upkeep, verdict  # noqa: F401 - each adds its commands
from reactive_runtime._cli._exits import EPILOG
from reactive_runtime._cli.console import app

__all__ = ["JUDGES", "app"]

JUDGES: Final = ("stress", "verify", "report", "tck", "explore", "ps")
"""The commands whose exit status says what became of what they judge."""

for _command in app.registered_commands:
    _command.short_help = (inspect.getdoc(_command.callback) or "").partition("\n\n")[0].replace("\n", " ")
    if _command.callback is not None and _command.callback.__name__ in JUDGES:
        _command.epilog = EPILOG
