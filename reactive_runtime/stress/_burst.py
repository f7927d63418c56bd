"""The subscribers of a round, and the calls that the actors fire at their subscriptions."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime._spec import MAX_DEMAND, Subscription
from reactive_runtime.stress._declaring import FEEDERS, Workload
from reactive_runtime.stress._pressure import HESITANT, pressure
from reactive_runtime.testing._recorder import RecordedPublisher

__all__ = ["Burst", "Target"]


class Target:
    """A subscriber whose subscription is under load; its random numbers decide how it behaves itself."""

    shown_as: Final = "subscriber of a scenario"

    __slots__ = (
        "__weakref__",
        "_asks",
        "_cancels_at",
        "_ended",
        "_first",
        "_left",
        "_raises_at",
        "_slow",
        "_yields",
        "number",
        "subscription",
    )

    def __init__(self, rng: random.Random, kind: str = "plain") -> None:
        self._slow = kind == "slow"
        self._raises_at = rng.choice((1, 2, 5, 20)) if kind == "raising" else 0
        self._first = rng.choice((0, 0, 0, 1, 5))  # requested in on_subscribe
        self._yields = rng.choice((0, 1, 1, 3))  # gives way in every n-th on_next
        self._asks = rng.choice((0, 0, 1, 2, 5))  # requests one more in every n-th
        self._cancels_at = rng.choice((0, 0, 0, 0, 0, 0, 0, 3, 20))  # cancels in that one
        self._left = 0  # owned by the thread that signals; a broken publisher may well break it
        self._ended = False  # likewise
        self.number: int | None = None  # of the thread that subscribes; of its subscription, once `subscribe` returns
        self.subscription: Subscription | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        if self._first:
            subscription.request(self._first)

    def on_next(self, element: int, /) -> None:
        self._left += 1
        if self._left == self._raises_at:
            raise RuntimeError("a subscriber that raises")
        if self._slow:
            primitives.Event().wait(0.0005)
        elif self._yields and self._left % self._yields == 0:
            primitives.pause()
        subscription = self.subscription
        if subscription is None:
            return
        if self._asks and self._left % self._asks == 0:
            subscription.request(1)
        if self._left == self._cancels_at:
            subscription.cancel()

    def on_error(self, error: BaseException, /) -> None:
        self._ended = True

    def on_complete(self) -> None:
        self._ended = True

    def leave(self) -> None:
        """The round is over."""
        if self.subscription is not None and not self._ended:
            with suppress(BaseException):  # what it raises is in the record, and judged there (3.16)
                self.subscription.cancel()


@dataclass(frozen=True)
class Burst:
    """The calls of all actors in one round."""

    publisher: RecordedPublisher[int]
    targets: Sequence[Target]
    feeders: Sequence[Callable[[], object]]
    workload: Workload
    chance: float
    seed: int
    most: int
    more: list[list[Target]]
    """Those that an actor has subscribed; each actor has a list of its own."""

    def all_targets(self) -> list[Target]:
        """All subscribers of the round."""
        return [*self.targets, *(target for targets in self.more for target in targets)]

    def fire(self, actor: int) -> None:
        """One actor's part."""
        rng = random.Random(self.seed * 1_000 + actor)
        chance = self.chance if rng.random() < HESITANT else 0.0
        if actor < FEEDERS:
            with pressure(chance, rng):
                for feeder in self.feeders[actor : actor + 1]:
                    feeder()
            return
        with pressure(chance, rng):
            for target in self.targets:
                if (subscription := target.subscription) is None:
                    continue
                for _ in range(rng.choice(self.workload.operations)):
                    with suppress(BaseException):  # what a call raises is in its record, and judged there (3.15, 3.16)
                        self._shoot(subscription, rng, self.more[actor])

    def _shoot(self, subscription: Subscription, rng: random.Random, more: list[Target]) -> None:
        throw = rng.random() * 100
        if (throw := throw - self.workload.one) < 0:
            subscription.request(1)
        elif (throw := throw - self.workload.several) < 0:
            subscription.request(rng.randint(2, self.most))
        elif (throw := throw - self.workload.unbounded) < 0:
            subscription.request(MAX_DEMAND)
        elif (throw := throw - self.workload.cancel) < 0:
            subscription.cancel()
        elif (throw := throw - self.workload.invalid) < 0:
            subscription.request(-rng.randint(0, 1))
        elif throw < self.workload.subscribe:
            target = Target(rng)
            more.append(target)
            target.number = self.publisher.subscribe(target)
        else:
            primitives.pause()
