"""Reactive Streams for Python threads.

Publishers run on `concurrent.futures` executors, demand is never exceeded, buffers are always bounded,
cancellation is kept. Importing this needs the standard library only.
"""

from reactive_runtime._flow import ConnectableFlow, Flow
from reactive_runtime._operators.backpressure import KillSwitch, Valve
from reactive_runtime._operators.monitoring import Metrics
from reactive_runtime._operators.notifications import Notification
from reactive_runtime._operators.scheduling import ParallelFlow
from reactive_runtime._operators.side_effects import Listener
from reactive_runtime._operators.sinks.loops import AsyncIteration, Iteration
from reactive_runtime._operators.sinks.terminal import Disposable
from reactive_runtime._operators.sources.creating import Emitter
from reactive_runtime._spec import MAX_DEMAND, Processor, Publisher, Subscriber, Subscription
from reactive_runtime._support.public_names import all_at_home as _all_at_home

__version__ = "0.1.0"

__all__ = [
    "MAX_DEMAND",
    "AsyncIteration",
    "ConnectableFlow",
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

_all_at_home(globals())
