"""The names of subscribers, publishers and executors in drawings and messages: as their user knows them."""

from __future__ import annotations

from collections.abc import AsyncIterable, Coroutine, Iterable
from typing import Any, Final, TypeGuard

from reactive_runtime._spec import Subscriber

__all__ = ["a_kind", "executor_name", "instead", "is_publisher", "is_subscriber", "kind_of", "no_publisher"]

_PACKAGE: Final = __name__.partition(".")[0]


def kind_of(item: object) -> str:
    """The name of its class. A private class of the package says in `shown_as` what its user passed, or called."""
    kind = type(item)
    if not _is_private(kind):
        return kind.__name__
    said: str | None = getattr(item, "shown_as", None)
    if said is not None:
        return said
    ours = (base for base in kind.__mro__ if base.__module__.partition(".")[0] == _PACKAGE)
    return next((base.__name__ for base in ours if not _is_private(base)), f"part of {_PACKAGE}")


def a_kind(item: object) -> str:
    """`kind_of`, as "a Signals" or "an Echo"."""
    kind = kind_of(item)
    return f"{'an' if kind[0] in 'aeioAEIO' else 'a'} {kind}"


def instead(item: object) -> str:
    """In words, the object given in place of the one needed; of a class, the advice to call it."""
    if isinstance(item, type):
        return f"the class {item.__name__}: call it"
    return "None" if item is None else kind_of(item)


def is_publisher(item: object) -> bool:
    """Whether it has `subscribe`, and is no class."""
    return callable(getattr(item, "subscribe", None)) and not isinstance(item, type)


def is_subscriber(item: object) -> TypeGuard[Subscriber[Any]]:
    """Whether it has the four signals: `isinstance` of the protocol takes as long as a whole short subscription."""
    return (
        callable(getattr(item, "on_subscribe", None))
        and callable(getattr(item, "on_next", None))
        and callable(getattr(item, "on_error", None))
        and callable(getattr(item, "on_complete", None))
    )


def no_publisher(item: object) -> str:
    """`instead`, where a publisher is needed, and the source that makes one of it."""
    if item is None or isinstance(item, type):
        return instead(item)
    if isinstance(item, Coroutine):
        return f"{kind_of(item)} (flat_map awaits where it is given the coroutine function itself)"
    if isinstance(item, AsyncIterable):
        source = "from_async"
    elif isinstance(item, Iterable) and not isinstance(item, str | bytes):
        source = "from_iterable"
    else:
        source = "just"
    return f"{kind_of(item)} (Flow.{source} makes one of it)"


def _is_private(kind: type) -> bool:
    path = f"{kind.__module__}.{kind.__qualname__}".split(".")
    return path[0] == _PACKAGE and any(part.startswith("_") for part in path)


def executor_name(executor: object) -> str:
    """Its own `repr`, if it has one; else its kind, the prefix of its threads' names, and how many they are."""
    if type(executor).__repr__ is not object.__repr__:
        return repr(executor)
    prefix = getattr(executor, "_thread_name_prefix", "")
    workers = getattr(executor, "_max_workers", None)
    details = [str(detail) for detail in (prefix, f"{workers} workers" if workers else "") if detail]
    kind = type(executor).__name__
    return f"{kind}({', '.join(details)})" if details else kind
