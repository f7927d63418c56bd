"""Publishers and subscribers, with the faults that are peculiar to them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from reactive_runtime.explore import cancel, publisher_scenario, request


class PoolSubscription:
    """Delivers in tasks of a pool, one for each request."""

    def __init__(self, subscriber: Any, pool: ThreadPoolExecutor) -> None:
        self.subscriber = subscriber
        self.pool = pool
        self.lock = threading.Lock()
        self.demand = 0  # lock
        self.busy = False  # lock
        self.cancelled = False  # lock
        self.next = 0  # owned by who delivers

    def request(self, n: int) -> None:
        self.pool.submit(self.deliver, n)

    def deliver(self, n: int) -> None:
        for _ in range(n):
            with self.lock:
                if self.cancelled:
                    return
            element, self.next = self.next, self.next + 1
            self.subscriber.on_next(element)

    def cancel(self) -> None:
        with self.lock:
            self.cancelled = True


class SerialPoolSubscription(PoolSubscription):
    """One task at a time."""

    def request(self, n: int) -> None:
        with self.lock:
            self.demand += n
            if self.busy:
                return
            self.busy = True
        self.pool.submit(self.drain)

    def drain(self) -> None:
        while True:
            with self.lock:
                if self.cancelled or not self.demand:
                    self.busy = False
                    return
                self.demand -= 1
            element, self.next = self.next, self.next + 1
            self.subscriber.on_next(element)


class PoolPublisher:
    """Endless numbers."""

    subscription: type[PoolSubscription] = PoolSubscription

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(2)

    def subscribe(self, subscriber: Any) -> None:
        subscriber.on_subscribe(self.subscription(subscriber, self.pool))


class SerialPoolPublisher(PoolPublisher):
    subscription = SerialPoolSubscription


class DroppedOnBusy(SerialPoolSubscription):
    """Forgets the demand that comes while it delivers."""

    def request(self, n: int) -> None:
        with self.lock:
            if self.busy:
                return
            self.demand += n
            self.busy = True
        self.pool.submit(self.drain)


class DroppingPublisher(PoolPublisher):
    subscription = DroppedOnBusy


class LateCancel(SerialPoolSubscription):
    """Looks for a cancel only before it begins."""

    def drain(self) -> None:
        with self.lock:
            if self.cancelled:
                return
        while True:
            with self.lock:
                if not self.demand:
                    self.busy = False
                    return
                self.demand -= 1
            element, self.next = self.next, self.next + 1
            self.subscriber.on_next(element)


class LatePublisher(PoolPublisher):
    subscription = LateCancel


def _scenario(publisher: type[PoolPublisher], *actors: Any) -> Any:
    return publisher_scenario(publisher, actors)


PAIRS = [
    (_scenario(PoolPublisher, request(1), request(1)), _scenario(SerialPoolPublisher, request(1), request(1))),
    (_scenario(DroppingPublisher, request(1), request(1)), _scenario(SerialPoolPublisher, [request(1), request(1)])),
    (_scenario(LatePublisher, request(3), cancel()), _scenario(SerialPoolPublisher, request(3), cancel())),
]
