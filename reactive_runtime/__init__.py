"""Reactive Streams for Python threads.

Publishers run on `concurrent.futures` executors, demand is never exceeded, buffers are always bounded,
cancellation is kept. Importing this needs the standard library only.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from reactive_runtime._spec import MAX_DEMAND, Processor, Publisher, Subscriber, Subscription
from reactive_runtime._support.public_names import at_home as _at_home

if TYPE_CHECKING:
    from reactive_runtime._flow import (
        AsyncIteration,
        Bulkhead,
        CircuitBreaker,
        ConnectableFlow,
        DeadLetter,
        Disposable,
        Emitter,
        Flow,
        Iteration,
        KillSwitch,
        Listener,
        Metrics,
        Notification,
        ParallelFlow,
        Valve,
    )

__version__ = "0.1.0"

__all__ = [
    "MAX_DEMAND",
    "AsyncIteration",
    "Bulkhead",
    "CircuitBreaker",
    "ConnectableFlow",
    "DeadLetter",
    "Disposable",
    "Emitter",
    "Flow",
    "Iteration",
    "KillSwitch",
    "Listener",
    "Metrics",
    "Notification",
    "ParallelFlow",
    "Processor",
    "Publisher",
    "Subscriber",
    "Subscription",
    "Valve",
    "__version__",
]

_at_home(__name__, Processor, Publisher, Subscriber, Subscription)

if not TYPE_CHECKING:  # a type checker would take any name for one of these

    def __getattr__(name):
        """Import `Flow` and the names beside it when one of them is first asked for; the interfaces are there.

        Threads that ask at once wait for the one that imports. A child that another thread forks meanwhile would wait
        for ever, as with any import: `from reactive_runtime import Flow` at the top of a module comes before that.
        """
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(_import_module(f"{__name__}._flow"), name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
