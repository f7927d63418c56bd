"""Which groups and windows have been given to a program that has neither subscribed to them nor released them."""

from __future__ import annotations

import weakref

from reactive_runtime._core import garbage_collection
from reactive_runtime._operators.groups.group_flow import Group, Handle

_handles: dict[int, weakref.ref[Handle]] = {}
"""Their handles, by a number: each change is one operation, from any thread, and at any instruction."""


def left() -> bool:
    """Whether there are any."""
    handles = [reference() for reference in list(_handles.values())]
    _handles.clear()
    return any(handle is not None and not handle._used for handle in handles)


def settle() -> None:
    """Wait for what a collection of garbage has handed to a thread of its own."""
    garbage_collection._wait()


_init = Handle.__init__


def _noting(handle: Handle, group: Group) -> None:
    _init(handle, group)
    reference = weakref.ref(handle)
    _handles[id(reference)] = reference


setattr(Handle, "__init__", _noting)  # noqa: B010  # a type checker takes no other `__init__`
