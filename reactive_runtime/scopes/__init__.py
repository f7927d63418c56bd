"""Structured concurrency: flows that start in a block and end with it; a graceful shutdown on SIGTERM."""

from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime.scopes._scope import Running, Scope, scope
from reactive_runtime.scopes._sigterm import on_sigterm

__all__ = ["Running", "Scope", "on_sigterm", "scope"]

_all_at_home(globals())
