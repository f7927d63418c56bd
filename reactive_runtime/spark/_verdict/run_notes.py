"""Lines on runs that are judged, and of which a reader of the verdict should know something more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

__all__ = ["notes_on"]

_APART: Final = timedelta(minutes=10)
"""Clocks that are no further apart are taken for one."""


def notes_on(folder: str, complete: bool | None, metadata: Mapping[str, Any], now: datetime) -> Iterator[str]:
    """The lines on a run.

    Args:
        folder: The folder of the run.
        complete: Whether it was closed; None if it does not say.
        metadata: The metadata of the run.
        now: By the clock of this machine, with its zone.
    """
    if complete is None:
        yield f"{folder}: has no metadata; the files there are are judged"
    elif not complete:
        yield f"{folder}: was cut off before it was complete; what was recorded by then is judged"
    started, finished = (_moment(metadata.get(name)) for name in ("started", "finished"))
    guess = "its place among the nights is a guess"
    if started is not None and started > now + _APART:
        hours = (started - now) / timedelta(hours=1)
        yield f"{folder}: began {hours:.1f} h after now, by the clock of its machine: {guess}"
    if started is not None and finished is not None and finished < started - _APART:
        hours = (started - finished) / timedelta(hours=1)
        yield f"{folder}: ended {hours:.1f} h before it began, by the clocks of its machines: {guess}"


def _moment(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
