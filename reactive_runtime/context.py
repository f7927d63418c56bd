"""The context variables of each element, for `Flow.with_context`: `in_context`, `InContext`, `ContextFlow`."""

from __future__ import annotations

from reactive_runtime._operators.concurrent.signal_context import ContextFlow, InContext, in_context
from reactive_runtime._support.public_names import all_at_home

__all__ = ["ContextFlow", "InContext", "in_context"]

all_at_home(globals())
