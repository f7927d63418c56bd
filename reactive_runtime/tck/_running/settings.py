"""How long the kit waits: by argument, class attribute, environment variable or default, the first that is given.

The environment variables are those of the original kit, in milliseconds, so that a build that runs both sets
them once. Everything else is in seconds. Where `default_timeout` is not given, the kit measures first how long the
implementation takes for a signal, and makes the defaults fit.
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
    """For what has to come. Costs nothing where it comes."""

    default_no_signals_timeout: float = 0.1
    """How long nothing may come, before it is believed that nothing will. Default: `default_timeout`, if given."""

    default_poll_timeout: float = 0.01
    """How often the kit looks where no signal can wake it: for a dropped reference, for a call that hangs."""

    publisher_reference_gc_timeout: float = 1.0
    """For a publisher to drop a subscriber that has cancelled (3.13). Costs nothing where it does."""

    call_timeout: float = 1.0
    """How long a factory or a method under test may run, without a signal from it, before it counts as hanging."""

    source: str = "the default of default_timeout; the option --timeout sets it"
    """Where `default_timeout` is from."""

    @classmethod
    def of(
        cls, attributes: Mapping[str, float | None], environment: Mapping[str, str] | None = None, *, pace: float = 0.0
    ) -> Settings:
        """The first that is given of an attribute, an environment variable and the default, for each setting.

        Args:
            attributes: By name, in seconds; None: not given.
            environment: Variables by name, in milliseconds. None: those of the process.
            pace: Seconds that the slowest signal of the implementation took when it was tried. Defaults grow with it.

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
"""How many times the pace of a slow implementation each default is at least."""


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
