"""A small publisher that keeps every rule, made to be broken: each step is a method, and a variant overrides one.

The variants are in `tck/broken.py`, for the kit, and in `planted.py`, for the harness. It is not part of the package:
the kit steps through what it judges, and over its own files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from reactive_runtime._spec import MAX_DEMAND

__all__ = ["Publisher", "Signal", "Subscription"]

Signal = Callable[[], object]


class Subscription:
    """Counts from 0 to `elements`, one owner at a time: the thread that finds none owns it, and signals.

    `lock` owns every field; no signal is given under it.
    """

    def __init__(self, publisher: Any, subscriber: Any) -> None:
        self.publisher = publisher
        self.subscriber = subscriber
        self.lock = threading.Lock()
        self.elements: int = publisher.elements
        self.sent = 0
        self.demand = 0
        self.owned = True  # by `start`, at first
        self.cancelled = False
        self.ended = False
        self.fault: BaseException | None = None

    def start(self) -> None:
        """Begin: what was requested inside on_subscribe is signalled when that has returned."""
        self.subscriber.on_subscribe(self)
        self.run()

    # -- what the subscriber calls, on any thread --------------------------------------------------------------

    def request(self, n: int, /) -> None:
        if type(n) is not int or n < 1:
            self.invalid(n)
        else:
            self.add(n)
        self.wake()

    def cancel(self) -> None:
        with self.lock:
            self.cancelled = True
        self.wake()

    # -- its steps ---------------------------------------------------------------------------------------------

    def invalid(self, n: int) -> None:
        """Note what an invalid request is answered with (3.9)."""
        with self.lock:
            self.fault = self.fault or ValueError(f"request({n}): demand is at least 1 (3.9)")

    def add(self, n: int) -> None:
        """Add to the demand (3.8, 3.17)."""
        with self.lock:
            self.demand = min(self.demand + n, MAX_DEMAND)

    def wake(self) -> None:
        """See to it that a thread looks for what is due (1.3, 3.3)."""
        with self.lock:
            if self.busy():
                return
            self.owned = True
        self.run()

    def busy(self) -> bool:
        """Whether it has an owner, which looks once more before it leaves. Under the lock."""
        return self.owned

    def run(self) -> None:
        """Drain: here, or where a variant says."""
        self.drain()

    # -- the owner's steps -------------------------------------------------------------------------------------

    def drain(self) -> None:
        while (signal := self.due()) is not None:
            signal()

    def due(self) -> Signal | None:
        """The next signal; None where there is none: then it has no owner any more, or has ended."""
        with self.lock:
            if self.stopped():
                return self.over()
            if self.fault is not None:
                return self.failed(self.fault)
            if self.at_end():
                return self.finished()
            if self.demand <= 0:
                return self.idle()
            return partial(self.emit, self.taken())

    def emit(self, element: Any) -> None:
        """Signal an element (1.1). Without the lock."""
        self.subscriber.on_next(element)

    # Under the lock:

    def stopped(self) -> bool:
        """Whether nothing more is to be signalled (1.7, 1.8)."""
        return self.ended or self.cancelled

    def at_end(self) -> bool:
        """Whether all elements have been sent (1.5)."""
        return self.sent >= self.elements  # more, where a variant has lost count

    def taken(self) -> Any:
        """The next element, taken off the demand."""
        self.demand -= self.demand != MAX_DEMAND
        self.sent += 1
        return self.sent - 1

    def idle(self) -> Signal | None:
        """Nothing is due: leave."""
        self.owned = False
        return None

    def over(self) -> Signal | None:
        """It was cancelled, or has ended."""
        self.ended = True
        self.forget()
        return None

    def failed(self, error: BaseException) -> Signal | None:
        """The stream fails (1.4)."""
        self.ended = True
        signal = partial(self.subscriber.on_error, error)
        self.forget()
        return signal

    def finished(self) -> Signal | None:
        """All elements have been sent."""
        if self.publisher.failure is not None:
            return self.failed(self.publisher.failure)
        return self.completed()

    def completed(self) -> Signal | None:
        """The stream completes (1.5)."""
        self.ended = True
        signal: Signal = self.subscriber.on_complete
        self.forget()
        return signal

    def forget(self) -> None:
        """Drop the subscriber (3.13)."""
        self.subscriber = None


class Publisher:
    """Elements 0, 1, 2, … to each subscriber; then the end, or `failure`."""

    subscription: type[Subscription] = Subscription

    def __init__(self, elements: int, failure: BaseException | None = None) -> None:
        self.elements = elements
        self.failure = failure

    def subscribe(self, subscriber: Any, /) -> None:
        if subscriber is None:
            raise TypeError("subscribe(None)")
        self.subscription(self, subscriber).start()
