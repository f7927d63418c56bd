"""A subscription is handed out before it is whole."""

from __future__ import annotations

import threading

from examples.hazards.lesson import Lesson


class HalfBuilt:
    """Makes itself known first, and then its fields."""

    def __init__(self, registry: list[HalfBuilt]) -> None:
        registry.append(self)
        self.demand = 0

    def request(self, n: int) -> None:
        self.demand += n


class Registry:
    """One thread subscribes, another one asks every subscription there is for an element."""

    def __init__(self) -> None:
        self.subscriptions: list[HalfBuilt] = []

    def actor_subscribe(self) -> None:
        HalfBuilt(self.subscriptions)

    def actor_request(self) -> None:
        for subscription in list(self.subscriptions):
            subscription.request(1)


class WholeFirst(Registry):
    """Builds the subscription, and then makes it known, under the lock that the other one looks under."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def actor_subscribe(self) -> None:
        own: list[HalfBuilt] = []
        HalfBuilt(own)
        with self.lock:
            self.subscriptions.extend(own)

    def actor_request(self) -> None:
        with self.lock:
            known = list(self.subscriptions)
        for subscription in known:
            subscription.request(1)


LESSON = Lesson(
    title="Unsafe publication",
    hazard="""`__init__` passes `self` on, and then goes on building. A thread that finds the object meanwhile finds
    half of it.""",
    broken=Registry,
    fixed=WholeFirst,
    fix="build first, publish last, and publish through a lock or an atomic, so that who sees it sees all of it.",
)

if __name__ == "__main__":
    LESSON.teach()
