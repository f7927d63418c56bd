"""A publisher on a pool, with the faults that are peculiar to those: each overrides a step of the one that is right.

That one is here, and is not `small_publisher`: the explorer watches the modules of a program's own package.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from reactive_runtime.explore import cancel, publisher_scenario, request


class SerialSubscription:
    """Delivers in tasks of a pool, one at a time."""

    def __init__(self, subscriber: Any, pool: ThreadPoolExecutor) -> None:
        self.subscriber = subscriber
        self.pool = pool
        self.lock = threading.Lock()
        self.demand = 0  # lock
        self.busy = False  # lock
        self.cancelled = False  # lock
        self.next = 0  # owned by the one who delivers

    def request(self, n: int) -> None:
        with self.lock:
            self.demand += n
            if self.busy:
                return
            self.busy = True
        self.pool.submit(self.drain)

    def cancel(self) -> None:
        with self.lock:
            self.cancelled = True

    def drain(self) -> None:
        while self.due():
            element, self.next = self.next, self.next + 1
            self.subscriber.on_next(element)

    def due(self) -> bool:
        with self.lock:
            if self.stopped() or not self.demand:
                self.busy = False
                return False
            self.demand -= 1
            return True

    def stopped(self) -> bool:
        return self.cancelled


class ATaskForEachRequest(SerialSubscription):
    """Has a task for each request, whether or not one delivers."""

    def request(self, n: int) -> None:
        with self.lock:
            self.demand += n
        self.pool.submit(self.drain)


class DroppedOnBusy(SerialSubscription):
    """Forgets the demand that comes while it delivers."""

    def request(self, n: int) -> None:
        with self.lock:
            if self.busy:
                return
        super().request(n)


class LateCancel(SerialSubscription):
    """Looks for a cancel only before it begins."""

    def drain(self) -> None:
        with self.lock:
            if self.cancelled:
                return
        super().drain()

    def stopped(self) -> bool:
        return False


class SerialPublisher:
    """Endless numbers."""

    subscription: type[SerialSubscription] = SerialSubscription

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(2)

    def subscribe(self, subscriber: Any) -> None:
        subscriber.on_subscribe(self.subscription(subscriber, self.pool))


class ParallelPublisher(SerialPublisher):
    subscription = ATaskForEachRequest


class DroppingPublisher(SerialPublisher):
    subscription = DroppedOnBusy


class LatePublisher(SerialPublisher):
    subscription = LateCancel


PAIRS = [
    (publisher_scenario(broken, actors), publisher_scenario(SerialPublisher, actors))
    for broken, actors in (
        (ParallelPublisher, [request(1), request(1)]),
        (DroppingPublisher, [request(1), request(1)]),
        (LatePublisher, [request(3), cancel()]),
    )
]
