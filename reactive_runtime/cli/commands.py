"""All commands, in the order in which the help lists them."""

from reactive_runtime.cli import kit, schedules, stress, verdict  # noqa: F401 - each adds its commands
from reactive_runtime.cli.console import app

__all__ = ["app"]
