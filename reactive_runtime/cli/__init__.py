"""The command `reactive-runtime`: put publishers under load, judge what was recorded, run the kit, explore schedules.

Exit status: 0 where no rule was broken, 1 where one was, 2 where the command could not do its work; then one line
on standard error says why.
"""

from reactive_runtime.cli import kit, schedules, stress, verdict  # noqa: F401 - each adds its commands, in this order
from reactive_runtime.cli.console import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command."""
    app()
