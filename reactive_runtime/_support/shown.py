"""Values of a user as text, for titles, messages and errors."""

from __future__ import annotations

from typing import Any

__all__ = ["shown"]


def shown(value: Any, most: int = 80, survived: type[BaseException] = Exception) -> str:
    """The repr of `value`, at most so many characters of it.

    A repr is foreign code: call this without a lock. What it raises is named, where it is of the kind `survived`.
    """
    try:
        text = repr(value)
    except survived as error:
        text = f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
    return text if len(text) <= most else f"{text[: most - 1]}…"
