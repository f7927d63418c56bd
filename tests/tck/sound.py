"""Small conformant subscribers and a processor, made to be broken: what a rule asks for is one method to override.

The publisher is in `small_publisher.py`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from small_publisher import Signal

from reactive_runtime import MAX_DEMAND
from reactive_runtime.tck import SubscriberPuppet, WhiteboxSubscriberProbe


def refuse_none(call: str, value: object) -> None:
    """1.9, 2.13."""
    if value is None:
        raise TypeError(f"{call}(None)")


class Subscriber:
    """Keeps its first subscription."""

    subscription: Any = None

    def on_subscribe(self, subscription: Any, /) -> None:
        refuse_none("on_subscribe", subscription)
        if self.subscription is not None:
            self.again(subscription)
            return
        self.subscription = subscription
        self.begin()

    def again(self, subscription: Any) -> None:
        subscription.cancel()

    def begin(self) -> None:
        """It has its subscription."""


class WhiteboxSubscriber(Subscriber):
    """Does what its puppet says, and registers its signals with its probe."""

    def __init__(self, probe: WhiteboxSubscriberProbe[Any]) -> None:
        self.probe = probe
        self.requested = 0
        self.cancelled = False

    def begin(self) -> None:
        self.probe.register_on_subscribe(Puppet(self))

    def on_next(self, element: Any, /) -> None:
        refuse_none("on_next", element)
        self.probe.register_on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        refuse_none("on_error", error)
        self.probe.register_on_error(error)

    def on_complete(self) -> None:
        self.probe.register_on_complete()

    def request(self, n: int) -> None:
        self.requested += n
        self.subscription.request(n)

    def cancel(self) -> None:
        self.cancelled = True
        self.subscription.cancel()


class Puppet(SubscriberPuppet):
    def __init__(self, subscriber: WhiteboxSubscriber) -> None:
        self.subscriber = subscriber

    def trigger_request(self, elements: int) -> None:
        self.subscriber.request(elements)

    def signal_cancel(self) -> None:
        self.subscriber.cancel()


class BlackboxSubscriber(Subscriber):
    """Requests a few elements at a time, in `ask` only."""

    asked = False

    def ask(self) -> None:
        self.asked = True
        self.subscription.request(3)

    def on_next(self, element: Any, /) -> None:
        refuse_none("on_next", element)

    def on_error(self, error: BaseException, /) -> None:
        refuse_none("on_error", error)

    def on_complete(self) -> None:
        pass


class Processor:
    """Passes each element on, once every subscriber has asked for it: coordinated emission, a buffer of one.

    One drain signals all: its owner is the thread that finds `owned` False; `lock` owns everything else.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.upstream: Any = None
        self.asked = False  # one element is on its way
        self.buffer: deque[Any] = deque()
        self.ports: list[Port] = []
        self.end: Callable[[Any], object] | None = None
        self.failing = False
        self.owned = False

    # upstream

    def on_subscribe(self, subscription: Any, /) -> None:
        refuse_none("on_subscribe", subscription)
        if self.upstream is not None:
            subscription.cancel()
            return
        self.upstream = subscription
        self.wake()

    def on_next(self, element: Any, /) -> None:
        refuse_none("on_next", element)
        with self.lock:
            self.asked = False
            self.buffer.append(element)
        self.wake()

    def on_error(self, error: BaseException, /) -> None:
        refuse_none("on_error", error)
        with self.lock:
            self.failing = True
            self.end = lambda subscriber: subscriber.on_error(error)
        self.wake()

    def on_complete(self) -> None:
        with self.lock:
            self.end = lambda subscriber: subscriber.on_complete()
        self.wake()

    # downstream

    def subscribe(self, subscriber: Any, /) -> None:
        refuse_none("subscribe", subscriber)
        port = Port(self, subscriber)
        subscriber.on_subscribe(port)
        with self.lock:
            self.ports.append(port)
        self.wake()

    # the drain

    def wake(self) -> None:
        with self.lock:
            if self.owned:
                return
            self.owned = True
        while signals := self.due():
            for signal in signals:
                signal()

    def due(self) -> list[Signal]:
        with self.lock:
            gone = [port for port in self.ports if port.cancelled]
            self.ports = [port for port in self.ports if not port.cancelled]
            faulty = [port for port in self.ports if port.fault]
            self.ports = [port for port in self.ports if not port.fault]
            for port in (*gone, *faulty):
                if not self.ports and self.upstream is not None and not self.end:
                    return [self.upstream.cancel, *self.faults(faulty)]
                port.cancelled = True
            if faulty:
                return self.faults(faulty)
            if self.ports and self.end is not None and (self.failing or not self.buffer):
                return self.ends()
            if self.buffer and self.ports and all(port.demand for port in self.ports):
                element = self.buffer.popleft()
                for port in self.ports:
                    port.demand -= port.demand != MAX_DEMAND
                return [partial(port.subscriber.on_next, element) for port in self.ports]
            if self.wants_more():
                self.asked = True
                return [partial(self.upstream.request, 1)]
            self.owned = False
            return []

    def wants_more(self) -> bool:
        demanded = any(port.demand for port in self.ports)
        return demanded and not (self.buffer or self.asked or self.end) and self.upstream is not None

    def faults(self, ports: list[Port]) -> list[Signal]:
        return [partial(port.subscriber.on_error, ValueError("demand is at least 1 (3.9)")) for port in ports]

    def ends(self) -> list[Signal]:
        ports, self.ports = self.ports, []
        assert self.end is not None
        return [partial(self.end, port.subscriber) for port in ports]


class Port:
    """One subscriber of the processor."""

    def __init__(self, processor: Processor, subscriber: Any) -> None:
        self.processor = processor
        self.subscriber = subscriber
        self.demand = 0
        self.cancelled = False
        self.fault = False

    def request(self, n: int) -> None:
        with self.processor.lock:
            if n < 1:
                self.fault = True
            self.demand = min(self.demand + max(n, 0), MAX_DEMAND)
        self.processor.wake()

    def cancel(self) -> None:
        with self.processor.lock:
            self.cancelled = True
        self.processor.wake()
