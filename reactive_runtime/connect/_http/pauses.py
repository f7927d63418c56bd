"""How long a server says to wait."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from reactive_runtime._core.runtime.arguments import seconds_of

__all__ = ["retry_after"]


def retry_after(error: BaseException, *, at_most: float = 300.0) -> float | None:
    """The seconds that the `Retry-After` of an answer says, for `retry_when`.

    A date is compared with the `Date` of the same answer, which is the server's clock too: so it does not matter what
    the clock of this machine says, or whether it jumps.

    Args:
        error: An `httpx.HTTPStatusError`, a `urllib.error.HTTPError`, or any other with `headers`, or a `response` that
            has some.
        at_most: Never more than that, whatever the server says.

    Returns:
        The seconds, 0 or more. None if the server does not say, or nothing that can be read.

    Raises:
        TypeError: `at_most` is no number.
        ValueError: `at_most` is negative or not finite.

    Thread:
        Any.

    Example:
        >>> from urllib.error import HTTPError
        >>> retry_after(HTTPError("http://localhost", 503, "busy", {"Retry-After": "7"}, None))
        7.0

    Origin:
        `Retry-After` of RFC 9110.
    """
    seconds_of("retry_after", "at_most", at_most)
    headers: Any = getattr(getattr(error, "response", None), "headers", None) or getattr(error, "headers", None)
    if not callable(getattr(headers, "get", None)):
        return None
    said = _value(headers, "Retry-After")
    if said.isascii() and said.isdigit():
        return float(min(int(said[:10]), at_most))
    when = _date(said)
    if when is None:
        return None
    now = _date(_value(headers, "Date")) or datetime.now(UTC)
    return float(min(max((when - now).total_seconds(), 0.0), at_most))


def _value(headers: Mapping[str, Any], name: str) -> str:
    value = headers.get(name, headers.get(name.lower()))
    return value.strip() if isinstance(value, str) else ""


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
