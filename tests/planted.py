"""Thirty broken publishers, each a race of its own kind.

All are `small_publisher.Subscription` with a step of it left out or wrong. What is wrong is said in the docstring, and
so are the rules that name it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from concurrent.futures import Executor
from threading import get_ident
from time import sleep
from typing import Any, ClassVar

from small_publisher import Publisher, Signal, Subscription

from reactive_runtime._spec import MAX_DEMAND

__all__ = ["PLANTED", "Planted", "Sound"]


class Sound(Subscription):
    """Nothing is wrong."""

    rules: ClassVar[set[str]] = set()
    count: ClassVar[int] = 200
    pooled: ClassVar[bool] = False
    """Whether it drains on an executor."""

    def __init__(self, publisher: Planted, subscriber: Any) -> None:
        super().__init__(publisher, subscriber)
        self.executor = publisher.executor

    def run(self) -> None:
        if self.pooled:
            self.executor.submit(self.drain)
        else:
            self.drain()

    def forget(self) -> None:
        """What comes too late still comes: the harness has to see it."""


class ForgottenWakeUp(Sound):
    """The drain looks for demand, and only then, under another lock, says that it leaves."""

    rules: ClassVar = {"3.8", "3.17"}

    def idle(self) -> None:
        pass

    def drain(self) -> None:
        super().drain()
        sleep(1e-5)  # whatever it does at its end, others run meanwhile
        with self.lock:
            self.owned = False


class DemandWithoutALock(Sound):
    """Two requests read the same demand; one of them is lost."""

    rules: ClassVar = {"3.8", "3.17"}

    def add(self, n: int) -> None:
        before = self.demand
        self.demand = min(before + n, MAX_DEMAND)


class EmissionWithoutALock(Sound):
    """The drain takes off what it has signalled from a demand that it read before the signal."""

    rules: ClassVar = {"3.8", "3.17"}

    def emit(self, element: Any) -> None:
        before = self.demand
        super().emit(element)
        self.demand = before


class TwoDrains(Sound):
    """Whether a thread drains is looked up, and said, in two steps."""

    rules: ClassVar = {"1.1", "1.3", "1.7", "conservation", "order"}

    def wake(self) -> None:
        if not self.owned:
            self.owned = True
            self.run()


class ADrainForEachRequest(Sound):
    """Each request has a task of its own, on a pool of several threads."""

    rules: ClassVar = {"1.1", "1.3", "conservation", "order"}
    pooled: ClassVar = True

    def busy(self) -> bool:
        return False


class WrappedDemand(Sound):
    """Demand is added up in 64 bits that wrap."""

    rules: ClassVar = {"3.17"}
    workload: ClassVar = "unbounded"

    def add(self, n: int) -> None:
        with self.lock:
            self.demand = (self.demand + n + 2**63) % 2**64 - 2**63


class CapCheckedBefore(Sound):
    """Whether the sum fits is looked up under the lock, and it is added up under the next."""

    rules: ClassVar = {"3.17"}
    workload: ClassVar = "unbounded"

    def add(self, n: int) -> None:
        with self.lock:
            before = self.demand
        capped = min(n, MAX_DEMAND - before)
        sleep(1e-5)  # whatever it notes in between, others run meanwhile
        with self.lock:
            self.demand += capped
            if self.demand > MAX_DEMAND:  # then it wraps
                self.demand -= 2**64


class CompletedTwice(Sound):
    """A request that finds nothing left completes, and so does the drain."""

    rules: ClassVar = {"1.3", "1.7"}
    count: ClassVar = 8

    def request(self, n: int, /) -> None:
        if self.at_end() and not self.ended:
            self.ended = True
            self.subscriber.on_complete()
        else:
            super().request(n)

    def completed(self) -> Signal:
        def complete() -> None:
            self.subscriber.on_complete()
            self.ended = True

        return complete


class ErrorBesideElements(Sound):
    """An invalid request is answered by its caller, whichever thread drains meanwhile."""

    rules: ClassVar = {"1.3", "1.7"}
    workload: ClassVar = "invalid"

    def invalid(self, n: int) -> None:
        if not self.ended:
            self.ended = True
            self.subscriber.on_error(ValueError("3.9"))


class ErrorAfterTheEnd(Sound):
    """An invalid request is answered even when the stream has ended meanwhile."""

    rules: ClassVar = {"1.7"}
    workload: ClassVar = "invalid"
    count: ClassVar = 8

    def over(self) -> Signal | None:
        if self.fault is None or self.cancelled:
            return self.idle()
        return self.failed(self.fault)

    def failed(self, error: BaseException) -> Signal | None:
        self.fault = None
        return super().failed(error)


class CancelSeenLate(Sound):
    """Whether it was cancelled is looked up when a drain begins, and then no more."""

    rules: ClassVar = {"1.8"}
    seen = False

    def drain(self) -> None:
        self.seen = self.cancelled
        super().drain()

    def stopped(self) -> bool:
        return self.ended or self.seen


class Revived(Sound):
    """A request writes the state back that it has read, and what a cancel wrote in between is gone."""

    rules: ClassVar = {"1.8", "3.6"}

    def add(self, n: int) -> None:
        before = self.cancelled
        super().add(n)
        self.cancelled = before

    def over(self) -> Signal | None:
        return self.idle()


class SubscriberDropped(Sound):
    """Cancel drops the subscriber, which the drain still calls."""

    rules: ClassVar = {"3.16"}

    def cancel(self) -> None:
        super().cancel()
        self.subscriber = None


class ClosedWhileRunning(Sound):
    """Cancel closes the generator, also while a thread is inside of it."""

    rules: ClassVar = {"3.16", "3.7"}

    def __init__(self, publisher: Planted, subscriber: Any) -> None:
        super().__init__(publisher, subscriber)
        self.generator = self.generated()

    def generated(self) -> Generator[None]:
        while True:
            self.subscriber.on_next(self.sent - 1)
            yield

    def emit(self, element: Any) -> None:
        next(self.generator, None)

    def cancel(self) -> None:
        super().cancel()
        self.generator.close()


class ReleasedTwice(Sound):
    """Two cancels both find something to release."""

    rules: ClassVar = {"3.16", "3.7"}
    workload: ClassVar = "cancels"

    def __init__(self, publisher: Planted, subscriber: Any) -> None:
        super().__init__(publisher, subscriber)
        self.held = [object()]

    def cancel(self) -> None:
        super().cancel()
        if self.held:
            held = self.held
            held.pop()


class ElementsBeforeOnSubscribe(Sound):
    """It is started on the pool, beside on_subscribe."""

    rules: ClassVar = {"1.1", "1.3", "1.9"}
    pooled: ClassVar = True

    def start(self) -> None:
        self.demand = 1
        self.run()
        self.subscriber.on_subscribe(self)


class ElementsBesideOnSubscribe(Sound):
    """A request from inside on_subscribe is served by the pool, before on_subscribe has returned."""

    rules: ClassVar = {"1.3"}
    pooled: ClassVar = True

    def start(self) -> None:
        self.owned = False
        self.subscriber.on_subscribe(self)


class SharedPosition(Sound):
    """All subscriptions of a publisher share where they are."""

    rules: ClassVar = {"conservation", "1.5", "3.8", "1.7", "order"}
    shared: ClassVar[list[int]] = [0]

    def start(self) -> None:
        self.shared[0] = 0
        super().start()

    def due(self) -> Signal | None:
        self.sent = self.shared[0]
        signal = super().due()
        self.shared[0] = self.sent
        return signal


class PositionReadBefore(Sound):
    """Where it is, is read before the signal and written after it; a request from inside drains meanwhile."""

    rules: ClassVar = {"1.3", "conservation"}
    owner = 0

    def busy(self) -> bool:
        return self.owned and self.owner != get_ident()

    def emit(self, element: Any) -> None:
        self.owner = get_ident()
        self.sent = element
        super().emit(element)
        self.sent = element + 1


class HalvesSideBySide(Sound):
    """What is due is cut into two tasks, which the pool may run in any order, and at the same time."""

    rules: ClassVar = {"1.3", "order", "1.8", "1.7", "conservation"}
    pooled: ClassVar = True

    def drain(self) -> None:
        with self.lock:
            batch = 0 if self.stopped() or self.fault else min(self.demand, self.elements - self.sent, 8)
            self.demand -= batch if self.demand < MAX_DEMAND else 0
            first, self.sent = self.sent, self.sent + batch
        if not batch:
            super().drain()
            return
        for half in (range(first, first + batch // 2), range(first + batch // 2, first + batch)):
            self.executor.submit(self.emit_all, half)
        self.executor.submit(self.drain)

    def emit_all(self, elements: range) -> None:
        for element in elements:
            self.emit(element)


class ForgottenTask(Sound):
    """Whether a task is on its way is noted when it begins, and forgotten when it ends, whatever came in between."""

    rules: ClassVar = {"3.8", "3.17"}
    pooled: ClassVar = True

    def drain(self) -> None:
        batch = self.demand
        while (batch > 0 or self.fault or self.at_end()) and (signal := self.due()) is not None:
            signal()
            batch -= 1
        self.owned = False


class EndBeforeTheRest(Sound):
    """The end is looked up before the buffer, which a feeder fills meanwhile: what came in between is lost."""

    rules: ClassVar = {"conservation"}
    pooled: ClassVar = True

    def __init__(self, publisher: Planted, subscriber: Any) -> None:
        super().__init__(publisher, subscriber)
        self.buffer: list[int] = []
        self.fed = False

    def start(self) -> None:
        super().start()
        self.executor.submit(self.feed)

    def feed(self) -> None:
        for n in range(self.elements):
            self.buffer.append(n)
            self.wake()
        self.fed = True
        self.wake()

    def due(self) -> Signal | None:
        with self.lock:
            if not (self.buffer or self.fed or self.fault or self.stopped()):
                return self.idle()
        return super().due()

    def at_end(self) -> bool:
        return not self.buffer and self.fed

    def emit(self, element: Any) -> None:
        fed = self.fed
        super().emit(self.buffer.pop(0))
        if not fed and self.fed:  # "there was nothing when I looked"
            self.buffer.clear()


class DemandReadOnce(Sound):
    """A batch goes on while there is demand, and only at its end is taken off what there was at its beginning."""

    rules: ClassVar = {"1.1"}

    def drain(self) -> None:
        while True:
            batch, first = self.demand, self.sent
            while self.sent - first < self.demand and not (self.stopped() or self.fault or self.at_end()):
                self.sent += 1
                self.emit(self.sent - 1)
            with self.lock:
                self.demand -= batch if self.demand < MAX_DEMAND else 0
            if (signal := self.due()) is None:
                return
            signal()


class SetInsteadOfAdded(Sound):
    """Where there is no demand it is set, and not added to: two requests find none."""

    rules: ClassVar = {"3.8", "3.17"}

    def add(self, n: int) -> None:
        if self.demand == 0:
            sleep(0)
            self.demand = n
        else:
            super().add(n)


class TheFastPathBeside(Sound):
    """Unbounded demand takes a path of its own, beside the drain of what was asked for before."""

    rules: ClassVar = {"1.3", "conservation", "order", "1.7", "1.8"}
    workload: ClassVar = "unbounded"

    def add(self, n: int) -> None:
        if n == MAX_DEMAND and not (self.owned and self.demand == MAX_DEMAND):
            self.demand = MAX_DEMAND
            while not self.at_end() and not self.cancelled:
                self.sent += 1
                self.emit(self.sent - 1)
        super().add(n)


class OwnCancelSeenLate(Sound):
    """What a subscriber cancels inside of on_next, is seen when the pair has been sent."""

    rules: ClassVar = {"1.8"}

    def emit(self, element: Any) -> None:
        super().emit(element)
        with self.lock:
            if self.demand <= 0 or self.at_end() or self.ended or self.fault:
                return
            second = self.taken()
        super().emit(second)


class CompletedAfterOwnCancel(Sound):
    """The last element is followed by the end, even if the subscriber has cancelled inside of it."""

    rules: ClassVar = {"1.8"}
    count: ClassVar = 3

    def emit(self, element: Any) -> None:
        super().emit(element)
        if self.at_end() and not self.ended:
            self.ended = True
            self.subscriber.on_complete()


class WithoutEnd(Sound):
    """A request from inside on_next is served there and then: one inside the other, as deep as the stream is long."""

    rules: ClassVar = {"3.3", "1.3"}
    owner = 0

    def busy(self) -> bool:
        return self.owned and self.owner != get_ident()

    def drain(self) -> None:
        self.owner = get_ident()
        super().drain()


class EndNeedsDemand(Sound):
    """The end is found when there is demand for one more, and the drain has left just before, for good."""

    rules: ClassVar = {"1.5", "3.8", "3.17"}
    count: ClassVar = 8

    def at_end(self) -> bool:
        return super().at_end() and self.demand > 0

    def idle(self) -> None:
        self.owned = super().at_end()


class PeekedThenTaken(Sound):
    """An element is looked at, signalled, and then taken: who drains next may look at the same."""

    rules: ClassVar = {"conservation", "1.3", "order", "3.16"}

    def __init__(self, publisher: Planted, subscriber: Any) -> None:
        super().__init__(publisher, subscriber)
        self.waiting = list(range(self.elements))

    def taken(self) -> Any:
        self.owned = self.demand > 1  # "the last of a batch needs no guard"
        self.demand -= self.demand < MAX_DEMAND
        return self.waiting[0]

    def emit(self, element: Any) -> None:
        super().emit(element)
        self.sent += 1
        self.waiting.pop(0)


PLANTED: dict[str, type[Sound]] = {
    name: item
    for name, item in vars(sys.modules[__name__]).items()
    if isinstance(item, type) and issubclass(item, Sound) and item is not Sound
}


class Planted(Publisher):
    """A publisher with subscriptions of that kind."""

    def __init__(self, kind: type[Sound], executor: Executor) -> None:
        super().__init__(kind.count)
        self.subscription = kind
        self.executor = executor
