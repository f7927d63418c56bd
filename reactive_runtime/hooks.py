"""Where undeliverable signals go: set a handler, or capture them in a test."""

from reactive_runtime._core.failures.dropping import Dropped, Handler, captured, log_dropped, set_handler
from reactive_runtime._support.public_names import at_home as _at_home

__all__ = ["Dropped", "Handler", "captured", "log_dropped", "set_handler"]

_at_home(__name__, Dropped, captured, log_dropped, set_handler)
