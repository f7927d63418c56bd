"""Reactive Streams for Python threads.

Publishers run on `concurrent.futures` executors, demand is never exceeded, buffers are always bounded,
cancellation is kept. Importing this needs the standard library only.
"""

from reactive_runtime.flow import Flow
from reactive_runtime.spec import MAX_DEMAND, Processor, Publisher, Subscriber, Subscription

__version__ = "0.1.0"

__all__ = ["MAX_DEMAND", "Flow", "Processor", "Publisher", "Subscriber", "Subscription", "__version__"]
