"""Why one flow does not move, in a line, at the end of a wait with a limit."""

from __future__ import annotations

from reactive_runtime._core.drains.drain_context import DrainContext
from reactive_runtime.live._causes import Causes
from reactive_runtime.live._history import look
from reactive_runtime.live._reading import tree

__all__ = ["reason_of"]


def reason_of(drain: DrainContext) -> str:
    """The cause in a single look; with one look, every part seems to be still."""
    return Causes(look(), still=0.0).of(tree(drain))[1]
