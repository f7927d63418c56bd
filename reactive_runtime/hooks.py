"""Where undeliverable signals go: set a handler, or capture them in a test."""

from reactive_runtime._core.dropping import Dropped, Handler, captured, log_dropped, set_handler

__all__ = ["Dropped", "Handler", "captured", "log_dropped", "set_handler"]
