"""The exit statuses of all commands that judge."""

from __future__ import annotations

from typing import Final

__all__ = ["BROKEN", "CLEAN", "INCOMPLETE", "UNUSABLE", "USAGE"]

CLEAN: Final = 0
"""All was looked at, and no rule was broken."""

BROKEN: Final = 1
"""A rule was broken."""

USAGE: Final = 2
"""The command line is wrong: an option, or a name that leads nowhere."""

INCOMPLETE: Final = 3
"""No rule was broken in what was looked at, and not all was."""

UNUSABLE: Final = 4
"""Nothing could be judged."""
