"""Races that the explorer found in packages of PyPI, each as a short program that shows it.

`python -m examples.found` lists them, `python -m examples.found pykka` installs that package into build/found, explores
the program, and prints the schedule. The packages are good ones, whose authors thought of threads; that is why they are
here. `promise` says what the package promises, `counted` whether what is shown is against it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from reactive_runtime.explore import Result, explore

__all__ = ["FINDS", "Find", "find", "schedule_of"]

FINDS = (
    "apscheduler",
    "boltons",
    "cacheout",
    "circuitbreaker",
    "dbutils",
    "httpcore",
    "huey",
    "huey_rate",
    "limits",
    "memoization",
    "pebble",
    "persist_queue",
    "pybreaker",
    "pykka",
    "pyrate_limiter",
    "reactivex",
    "redis",
    "sqlalchemy",
    "statemachine",
    "throttled",
    "token_bucket",
    "tqdm",
    "urllib3",
    "watchdog",
    "zict",
)
"""The modules here, one for each find."""


@dataclass(frozen=True)
class Find:
    """A race in a package.

    Args:
        package: What pip installs: `name==version`.
        promise: What the package says of threads.
        what: What happens, and why.
        mended: How it could be mended.
        program: A scenario for the explorer; it imports the package in its set-up.
        message: What its failure says.
        counted: Whether it is against the promise.
        gil: Whether it can happen on an interpreter with a GIL.
        strategy: What the explorer looks with. Another than the default where that does not find it with each seed.
    """

    package: str
    promise: str
    what: str
    mended: str
    program: Callable[[], Any]
    message: str
    counted: bool
    gil: bool
    strategy: str = "portfolio"

    def explored(self, seed: int = 0) -> Result:
        """What the explorer finds: what can happen with a GIL is looked for among the schedules that one allows.

        Args:
            seed: Of the search.

        Returns:
            The result.
        """
        return explore(self.program, seed=seed, strategy=self.strategy, gil="assumed" if self.gil else "any")


def find(name: str) -> Find:
    """The find of that name.

    Args:
        name: One of `FINDS`.

    Returns:
        The find.
    """
    found: Find = import_module(f"{__name__}.{name}_race").FIND
    return found


def schedule_of(name: str) -> Path:
    """The file with the schedule that was found; the nightly run compares it with what is found then."""
    return Path(__file__).parent / "schedules" / f"{name}.txt"
