"""Whether a password is in anything that an error shows, or in the log."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote, quote_plus

from reactive_runtime.tck._running.failures import shown

__all__ = ["PASSWORD", "leaks", "logged"]

PASSWORD = "sEcr3t@w0rd/x"
"""It has characters that a URL writes in another way."""

SPELLINGS = {PASSWORD, quote(PASSWORD), quote(PASSWORD, safe=""), quote_plus(PASSWORD), "sEcr3t"}


def leaks(error: BaseException, log: list[str], others: dict[str, object]) -> list[str]:
    """The places in which the password is, one for each."""
    found = []
    seen: set[int] = set()
    waiting: list[tuple[str, BaseException | None]] = [("error", error)]
    while waiting:
        name, item = waiting.pop(0)
        if item is None or id(item) in seen:
            continue
        seen.add(id(item))
        places = {"message": str(item), "repr": repr(item), "arguments": repr(item.args)}
        places["notes"] = "\n".join(getattr(item, "__notes__", ()))
        found += [f"the {place} of the {name} ({type(item).__name__})" for place in places if _has(places[place])]
        waiting += [(f"{name}'s cause", item.__cause__), (f"{name}'s context", item.__context__)]
        waiting += [(f"{name}'s member", member) for member in getattr(item, "exceptions", ())]
    text = "".join(traceback.format_exception(error))
    found += ["the text of the traceback"] if _has(text) else []
    found += [f"the log: {shown(line)}" for line in log if _has(line)][:1]
    return found + [f"the {name}" for name, item in others.items() if _has(repr(item)) or _has(str(item))]


def _has(text: str) -> bool:
    return any(spelling in text for spelling in SPELLINGS)


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []  # appended to under the lock of the handler

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@contextmanager
def logged() -> Iterator[list[str]]:
    """The lines of the log of this process meanwhile, of every level."""
    root, lines = logging.getLogger(), _Lines()
    level = root.level
    root.addHandler(lines)
    root.setLevel(logging.DEBUG)
    try:
        yield lines.lines
    finally:
        root.setLevel(level)
        root.removeHandler(lines)
