"""What the command runs: a name from the shell becomes a verification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactive_runtime.errors import TargetError
from reactive_runtime.spec import Publisher
from reactive_runtime.targets import import_string
from reactive_runtime.tck.publisher_verification import PublisherVerification
from reactive_runtime.tck.verification import Verification

__all__ = ["verification_of"]


def verification_of(target: str, *, failed: str | None = None, **settings: Any) -> Verification:
    """The verification that `target`, "package.module:name", stands for.

    The name is a subclass of one of the verifications, or a function of the number of elements that returns a
    publisher; `failed` names a function without arguments that returns a publisher which fails. Of the `settings`
    those count that are not None. Raises TargetError.
    """
    item = import_string(target)
    if isinstance(item, type) and issubclass(item, Verification):
        verification: Verification = item()
    elif callable(item):
        verification = _Made(item, None if failed is None else import_string(failed))
    else:
        raise TargetError(
            f"{target}: a function of the number of elements, or a verification, not {type(item).__name__}"
        )
    given = {name: value for name, value in settings.items() if value is not None}
    try:
        verification.configure(**given).settings()  # a bad number is reported before anything runs
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
