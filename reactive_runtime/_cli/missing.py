"""Say in one line how to install a package that is missing. Imports the standard library only."""

from __future__ import annotations

import importlib.util
from typing import Final

from reactive_runtime.errors import MissingDependencyError

__all__ = ["EXTRAS", "check_installed", "install_line"]

EXTRAS: Final = {
    "typer": "cli",
    "rich": "cli",
    "numpy": "cli",
    "pyarrow": "cli",
    "pyspark": "spark",
    "pandas": "spark",
    "jpype": "jvm",
    "jinja2": "report",
    "markupsafe": "report",
    "greenlet": "greenlet",
    "textual": "play",
}
"""The extra that installs each package, by the name that is imported."""


def install_line(error: ModuleNotFoundError) -> str | None:
    """Name the missing package, and the command that installs it; None for a package that is in no extra."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    return f"{package} is needed, and not installed: pip install 'reactive-runtime[{EXTRAS[package]}]'"


def check_installed(*packages: str) -> None:
    """Raise MissingDependencyError for the first of these packages that is not installed, before any work is done."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise MissingDependencyError(install_line(ModuleNotFoundError(name=package)))
