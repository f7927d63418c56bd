"""Where `Notification` was, as `Notice`. Import it from `reactive_runtime`."""

from reactive_runtime._operators.transforming import Notification

__all__ = ["Notice", "Notification"]

Notice = Notification
