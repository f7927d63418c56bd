"""What an executor is called in drawings and messages: by what its user gave it, not by its address."""

from __future__ import annotations

__all__ = ["executor_name"]


def executor_name(executor: object) -> str:
    """Its own `repr`, if it has one; else its kind, the prefix of its threads' names, and how many they are."""
    if type(executor).__repr__ is not object.__repr__:
        return repr(executor)
    prefix = getattr(executor, "_thread_name_prefix", "")
    workers = getattr(executor, "_max_workers", None)
    details = [str(detail) for detail in (prefix, f"{workers} workers" if workers else "") if detail]
    kind = type(executor).__name__
    return f"{kind}({', '.join(details)})" if details else kind
