"""What the command runs: a name from the shell becomes a verification."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from reactive_runtime.errors import ReactiveError
from reactive_runtime.spec import Publisher
from reactive_runtime.tck.publisher import PublisherVerification
from reactive_runtime.tck.verification import Verification

__all__ = ["TargetError", "verification_of"]


class TargetError(ReactiveError):
    """What is to be verified can't be imported, or is nothing that can be verified; the message names it."""


def verification_of(target: str, *, failed: str | None = None, **settings: Any) -> Verification:
    """The verification that `target`, "package.module:name", stands for.

    The name is a subclass of one of the verifications, or a function of the number of elements that returns a
    publisher; `failed` names a function without arguments that returns a publisher which fails. Of the `settings`
    those count that are not None. Raises TargetError.
    """
    it = _imported(target)
    if isinstance(it, type) and issubclass(it, Verification):
        verification: Verification = it()
    elif callable(it):
        verification = _Made(it, None if failed is None else _imported(failed))
    else:
        raise TargetError(f"{target}: a function of the number of elements, or a verification, not {type(it).__name__}")
    given = {name: value for name, value in settings.items() if value is not None}
    try:
        verification.configure(**given).settings()  # a bad number is told before anything runs
    except (TypeError, ValueError) as error:
        raise TargetError(f"{target}: {error}") from error
    return verification


class _Made(PublisherVerification[Any]):
    """Publishers made by a function."""

    def __init__(self, create: Callable[[int], Any], failed: Callable[[], Any] | None) -> None:
        self._create = create
        self._failed = failed

    def create_publisher(self, elements: int) -> Publisher[Any]:
        publisher: Publisher[Any] = self._create(elements)
        return publisher

    def create_failed_publisher(self) -> Publisher[Any] | None:
        return None if self._failed is None else self._failed()


def _imported(target: str) -> Any:
    module_name, colon, path = target.partition(":")
    if not (module_name and colon and path):
        raise TargetError(f"{target!r}: package.module:name is needed")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        it: Any = importlib.import_module(module_name)
    except Exception as error:
        raise TargetError(f"{target}: importing {module_name} raised {type(error).__name__}: {error}") from error
    for name in path.split("."):
        try:
            it = getattr(it, name)
        except AttributeError as error:
            raise TargetError(f"{target}: {error}") from error
    return it
