"""How long the kit waits: by argument, class attribute, environment variable or default, the first that is given.

The environment variables are those of the original kit, in milliseconds: a build that runs both kits sets them once.
All other times are in seconds. Without a `default_timeout` the kit first measures how long a signal of the
implementation takes, and adapts the defaults.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reactive_runtime._support.shown import shown

__all__ = ["Settings"]

VARIABLES = {
    "default_timeout": "DEFAULT_TIMEOUT_MILLIS",
    "default_no_signals_timeout": "DEFAULT_NO_SIGNALS_TIMEOUT_MILLIS",
    "default_poll_timeout": "DEFAULT_POLL_TIMEOUT_MILLIS_ENV",
    "publisher_reference_gc_timeout": "PUBLISHER_REFERENCE_GC_TIMEOUT_MILLIS",
    "call_timeout": "DEFAULT_CALL_TIMEOUT_MILLIS",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The timeouts of a run, in seconds, each above 0."""

    default_timeout: float = 1.0
    """For a signal or a call that is due. Costs nothing if it comes."""

    default_no_signals_timeout: float = 0.1
    """For silence: if no signal comes for so long, none will. Default: `default_timeout`, if given."""

    default_poll_timeout: float = 0.01
    """Between two looks at something that no signal reports: a dropped reference, a call that hangs."""

    publisher_reference_gc_timeout: float = 1.0
    """For a publisher to drop a subscriber that has cancelled (3.13). Costs nothing if it does."""

    call_timeout: float = 1.0
    """How long a factory or a method under test may run, without a signal from it, before it counts as hanging."""

    source: str = "the default of default_timeout; the option --timeout sets it"
    """The origin of `default_timeout`."""

    @classmethod
    def of(
        cls, attributes: Mapping[str, float | None], environment: Mapping[str, str] | None = None, *, pace: float = 0.0
    ) -> Settings:
        """Take for each setting the attribute, or else the environment variable, or else the default.

        Args:
            attributes: By name, in seconds; None: not given.
            environment: Variables by name, in milliseconds. None: those of the process.
            pace: Seconds of the slowest signal that the kit has measured. Defaults grow with it.

        Returns:
            The settings.

        Raises:
            ValueError: A value is no number above 0; it names the setting.
        """
        environment = os.environ if environment is None else environment
        found: dict[str, Any] = {}
        source = ""
        for name in TIMEOUTS:
            if (value := attributes.get(name)) is not None:
                found[name] = _seconds(name, value)
                source = source or f"{name}, as given"
            elif (text := environment.get(VARIABLES[name])) is not None:
                found[name] = _milliseconds(VARIABLES[name], text)
                source = source or f"the variable {VARIABLES[name]}"
        if "default_timeout" in found:
            found.setdefault("default_no_signals_timeout", found["default_timeout"])
            return cls(**found, source=source)
        for name, times in GROWS.items():
            found.setdefault(name, max(float(getattr(DEFAULTS, name)), times * pace))
        return cls(**found)


TIMEOUTS = tuple(VARIABLES)
DEFAULTS = Settings()
GROWS = {
    "default_timeout": 10.0,
    "default_no_signals_timeout": 2.0,
    "publisher_reference_gc_timeout": 10.0,
    "call_timeout": 10.0,
}
"""Each default is at least so many times the pace of the implementation."""


def _seconds(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ValueError(f"{name}: a number of seconds above 0 is needed, not {shown(value)}")
    return float(value)


def _milliseconds(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise ValueError(f"{name}={text!r}: a number of milliseconds above 0 is needed")
    return value / 1000
