"""Secrets that no message shows, although a client puts them into its errors."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Final, NoReturn

from reactive_runtime.errors import ReactiveError

__all__ = ["LEAST_SECRET", "raise_hidden"]

LEAST_SECRET: Final = 3
"""Characters of a secret: to hide shorter ones would hide words of every message."""


def raise_hidden(kind: type[ReactiveError], told: str, cause: BaseException | None, secrets: Sequence[str]) -> NoReturn:
    """Raise an error of this kind, without the secrets; and without its cause, where there is one in that."""
    said = told if cause is None else f"{told}: {str(cause).strip() or type(cause).__name__}"
    known = "" if cause is None else "".join(traceback.format_exception(cause))
    if any(secret in known or secret in said for secret in secrets):
        for secret in sorted(secrets, key=len, reverse=True):
            said = said.replace(secret, "***")
        raise kind(said) from None
    raise kind(said) from cause
