"""Thirty broken publishers, each a race of its own kind.

All are one small publisher of the numbers below `count`, with a step of it left out or wrong. What is wrong is said in
the docstring, and so are the rules that name it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from concurrent.futures import Executor
from threading import Lock, get_ident
from time import sleep
from typing import Any, ClassVar

from reactive_runtime.spec import MAX_DEMAND

__all__ = ["PLANTED", "Sound"]


class Sound:
    """Nothing is wrong: a lock guards demand and the drain; signals are given by the thread that drains."""

    rules: ClassVar[set[str]] = set()
    count: ClassVar[int] = 200
    pooled: ClassVar[bool] = False
    """Whether it drains on an executor."""

    def __init__(self, subscriber: Any, executor: Executor) -> None:
        self.subscriber = subscriber
        self.executor = executor
        self.lock = Lock()
        self.demand = 0
        self.draining = True  # until on_subscribe has returned
        self.cancelled = self.ended = False
        self.invalid = False
        self.at = 0

    def start(self) -> None:
        self.subscriber.on_subscribe(self)
        self.drain_somewhere()

    def request(self, n: int, /) -> None:
        with self.lock:
            self.add(n)
            if self.busy():
                return
            self.draining = True
        self.drain_somewhere()

    def add(self, n: int) -> None:
        """Note what is asked for. Under the lock."""
        if type(n) is not int or n < 1:
            self.invalid = True
        else:
            self.demand = min(self.demand + n, MAX_DEMAND)

    def busy(self) -> bool:
        """Whether a thread drains already. Under the lock."""
        return self.draining

    def cancel(self) -> None:
        self.cancelled = True

    def drain_somewhere(self) -> None:
        if self.pooled:
            self.executor.submit(self.drain)
        else:
            self.drain()

    def drain(self) -> None:
        while True:
            with self.lock:
                if not self.due():
                    self.draining = False
                    return
            self.step()

    def due(self) -> bool:
        """Whether there is something to signal. Under the lock."""
        return not self.cancelled and not self.ended and (self.invalid or self.demand > 0 or self.at == self.count)

    def step(self) -> None:
        if self.invalid:
            self.ended = True
            self.subscriber.on_error(ValueError("3.9"))
        elif self.at == self.count:
            self.ended = True
            self.subscriber.on_complete()
        else:
            with self.lock:
                self.demand -= self.demand < MAX_DEMAND
            self.at += 1
            self.subscriber.on_next(self.at)


class ForgottenWakeUp(Sound):
    """The drain looks for demand, and only then, under another lock, says that it leaves."""

    rules: ClassVar = {"3.8", "3.17"}

    def drain(self) -> None:
        while self.due():
            self.step()
        sleep(1e-5)  # whatever it does at its end, others run meanwhile
        with self.lock:
            self.draining = False


class DemandWithoutALock(Sound):
    """Two requests read the same demand; one of them is lost."""

    rules: ClassVar = {"3.8", "3.17"}

    def request(self, n: int, /) -> None:
        if n < 1:
            return super().request(n)
        before = self.demand
        self.demand = min(before + n, MAX_DEMAND)
        with self.lock:
            if self.draining:
                return None
            self.draining = True
        return self.drain_somewhere()


class EmissionWithoutALock(Sound):
    """The drain takes off what it has signalled from a demand that it read before the signal."""

    rules: ClassVar = {"3.8", "3.17"}

    def step(self) -> None:
        if self.invalid or self.at == self.count:
            return super().step()
        before = self.demand
        self.at += 1
        self.subscriber.on_next(self.at)
        self.demand = before - (before < MAX_DEMAND)
        return None


class TwoDrains(Sound):
    """Whether a thread drains is looked up, and said, in two steps."""

    rules: ClassVar = {"1.1", "1.3", "1.7", "conservation", "order"}

    def request(self, n: int, /) -> None:
        if n < 1:
            return super().request(n)
        with self.lock:
            self.add(n)
        if self.draining:
            return None
        self.draining = True
        return self.drain_somewhere()


class ADrainForEachRequest(Sound):
    """Each request has a task of its own, on a pool of several threads."""

    rules: ClassVar = {"1.1", "1.3", "conservation", "order"}
    pooled: ClassVar = True

    def request(self, n: int, /) -> None:
        with self.lock:
            self.add(n)
        self.drain_somewhere()


class WrappedDemand(Sound):
    """Demand is added up in 64 bits that wrap."""

    rules: ClassVar = {"3.17"}
    workload: ClassVar = "unbounded"

    def add(self, n: int) -> None:
        if n < 1:
            self.invalid = True
        else:
            self.demand = (self.demand + n + 2**63) % 2**64 - 2**63


class CapCheckedBefore(Sound):
    """Whether the sum fits is looked up under the lock, and it is added up under the next."""

    rules: ClassVar = {"3.17"}
    workload: ClassVar = "unbounded"

    def request(self, n: int, /) -> None:
        if n < 1:
            return super().request(n)
        with self.lock:
            before = self.demand
        room = MAX_DEMAND - before
        fits = n <= room
        sleep(1e-5)  # whatever it notes in between, others run meanwhile
        capped = n if fits else room
        with self.lock:
            self.demand += capped
            if self.demand > MAX_DEMAND:  # then it wraps
                self.demand -= 2**64
            if self.draining:
                return None
            self.draining = True
        return self.drain_somewhere()


class CompletedTwice(Sound):
    """A request that finds nothing left completes, and so does the drain."""

    rules: ClassVar = {"1.3", "1.7"}
    count: ClassVar = 8

    def request(self, n: int, /) -> None:
        if self.at == self.count and not self.ended:
            self.ended = True
            self.subscriber.on_complete()
        else:
            super().request(n)

    def step(self) -> None:
        if not self.invalid and self.at == self.count:
            self.subscriber.on_complete()
            self.ended = True
        else:
            super().step()


class ErrorBesideElements(Sound):
    """An invalid request is answered by its caller, whichever thread drains meanwhile."""

    rules: ClassVar = {"1.3", "1.7"}
    workload: ClassVar = "invalid"

    def request(self, n: int, /) -> None:
        if n < 1:
            if not self.ended:
                self.ended = True
                self.subscriber.on_error(ValueError("3.9"))
        else:
            super().request(n)


class ErrorAfterTheEnd(Sound):
    """An invalid request is answered even when the stream has ended meanwhile."""

    rules: ClassVar = {"1.7"}
    workload: ClassVar = "invalid"
    count: ClassVar = 8

    def due(self) -> bool:
        return not self.cancelled and (self.invalid or (not self.ended and super().due()))

    def step(self) -> None:
        super().step()
        self.invalid = False


class CancelSeenLate(Sound):
    """Whether it was cancelled is looked up when a drain begins, and then no more."""

    rules: ClassVar = {"1.8"}

    def drain(self) -> None:
        while not self.cancelled:
            with self.lock:
                if not self.due():
                    self.draining = False
                    return
                batch = self.demand
            for _ in range(min(batch, self.count - self.at)):
                self.step()
            if self.at == self.count and not self.ended:
                self.step()


class Revived(Sound):
    """A request writes the state back that it has read, and what a cancel wrote in between is gone."""

    rules: ClassVar = {"1.8", "3.6"}

    def request(self, n: int, /) -> None:
        before = self.cancelled
        with self.lock:
            self.add(n)
            self.cancelled = before
            if self.draining:
                return
            self.draining = True
        self.drain_somewhere()


class SubscriberLetGo(Sound):
    """Cancel lets go of the subscriber, which the drain still calls."""

    rules: ClassVar = {"3.16"}

    def cancel(self) -> None:
        super().cancel()
        self.subscriber = None


class ClosedWhileRunning(Sound):
    """Cancel closes the generator, also while a thread is inside of it."""

    rules: ClassVar = {"3.16", "3.7"}

    def __init__(self, subscriber: Any, executor: Executor) -> None:
        super().__init__(subscriber, executor)
        self.generator = self.generated()

    def generated(self) -> Generator[None]:
        while self.at < self.count:
            with self.lock:
                self.demand -= self.demand < MAX_DEMAND
            self.at += 1
            self.subscriber.on_next(self.at)
            yield

    def cancel(self) -> None:
        super().cancel()
        self.generator.close()

    def step(self) -> None:
        if self.invalid or self.at == self.count:
            super().step()
        else:
            next(self.generator, None)


class ReleasedTwice(Sound):
    """Two cancels both find something to release."""

    rules: ClassVar = {"3.16", "3.7"}
    workload: ClassVar = "cancels"

    def __init__(self, subscriber: Any, executor: Executor) -> None:
        super().__init__(subscriber, executor)
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
        self.drain_somewhere()
        self.subscriber.on_subscribe(self)


class ElementsBesideOnSubscribe(Sound):
    """A request from inside on_subscribe is served by the pool, before on_subscribe has returned."""

    rules: ClassVar = {"1.3"}
    pooled: ClassVar = True

    def start(self) -> None:
        self.draining = False
        self.subscriber.on_subscribe(self)


class SharedPosition(Sound):
    """All subscriptions of a publisher share where they are."""

    rules: ClassVar = {"conservation", "1.5", "3.8", "1.7", "order"}
    shared: ClassVar[list[int]] = [0]

    def start(self) -> None:
        type(self).shared[0] = 0
        super().start()

    def step(self) -> None:
        if not self.invalid and self.at != self.count:
            self.at = type(self).shared[0]
            if self.at < self.count:
                type(self).shared[0] = self.at + 1
                with self.lock:
                    self.demand -= self.demand < MAX_DEMAND
                self.at += 1
                self.subscriber.on_next(self.at)
                return
        super().step()


class PositionReadBefore(Sound):
    """Where it is, is read before the signal and written after it; a request from inside drains meanwhile."""

    rules: ClassVar = {"1.3", "conservation"}

    def busy(self) -> bool:
        return self.draining and self.owner != get_ident()

    owner = 0

    def step(self) -> None:
        if self.invalid or self.at == self.count:
            return super().step()
        self.owner = get_ident()
        with self.lock:
            self.demand -= self.demand < MAX_DEMAND
        at = self.at + 1
        self.subscriber.on_next(at)
        self.at = at
        return None


class HalvesSideBySide(Sound):
    """What is due is cut into two tasks, which the pool may run in any order, and at the same time."""

    rules: ClassVar = {"1.3", "order", "1.8", "1.7", "conservation"}
    pooled: ClassVar = True

    def drain(self) -> None:
        with self.lock:
            if not self.due():
                self.draining = False
                return
            if self.invalid or self.at == self.count:
                batch = 0
            else:
                batch = min(self.demand, self.count - self.at, 8)
                self.demand -= batch if self.demand < MAX_DEMAND else 0
            first, self.at = self.at, self.at + batch
        if not batch:
            self.step()
        for half in (range(first, first + batch // 2), range(first + batch // 2, first + batch)):
            self.executor.submit(self.emit, half)
        self.executor.submit(self.drain)

    def emit(self, numbers: range) -> None:
        for item in numbers:
            self.subscriber.on_next(item + 1)


class ForgottenTask(Sound):
    """Whether a task is on its way is noted when it begins, and forgotten when it ends, whatever came in between."""

    rules: ClassVar = {"3.8", "3.17"}
    pooled: ClassVar = True

    def drain(self) -> None:
        with self.lock:
            batch = self.demand if self.due() else 0
        for _ in range(min(batch, self.count - self.at)):
            if self.cancelled or self.invalid:
                break
            self.step()
        while self.due() and (self.invalid or self.at == self.count):
            self.step()
        self.draining = False


class EndBeforeTheRest(Sound):
    """The end is looked up before the buffer, which a feeder fills meanwhile: what came in between is lost."""

    rules: ClassVar = {"conservation"}
    pooled: ClassVar = True

    def __init__(self, subscriber: Any, executor: Executor) -> None:
        super().__init__(subscriber, executor)
        self.buffer: list[int] = []
        self.fed = False

    def start(self) -> None:
        super().start()
        self.executor.submit(self.feed)

    def feed(self) -> None:
        for n in range(self.count):
            self.buffer.append(n + 1)
            self.wake()
        self.fed = True
        self.wake()

    def wake(self) -> None:
        with self.lock:
            if self.draining:
                return
            self.draining = True
        self.drain_somewhere()

    def due(self) -> bool:
        if self.cancelled or self.ended:
            return False
        return self.invalid or bool(self.buffer and self.demand) or (not self.buffer and self.fed)

    def step(self) -> None:
        if self.invalid:
            return super().step()
        if not self.buffer:
            self.ended = True
            self.subscriber.on_complete()
        else:
            with self.lock:
                self.demand -= self.demand < MAX_DEMAND
            fed = self.fed
            self.subscriber.on_next(self.buffer.pop(0))
            if not fed and self.fed:  # "there was nothing when I looked"
                self.buffer.clear()
        return None


class DemandReadOnce(Sound):
    """A batch goes on while there is demand, and only at its end is taken off what there was at its beginning."""

    rules: ClassVar = {"1.1"}

    def drain(self) -> None:
        while True:
            with self.lock:
                if not self.due():
                    self.draining = False
                    return
                batch = self.demand
            if self.invalid or self.at == self.count:
                self.step()
                continue
            sent = 0
            while sent < self.demand and self.at < self.count and not self.cancelled and not self.invalid:
                self.at += 1
                sent += 1
                self.subscriber.on_next(self.at)
            with self.lock:
                self.demand -= batch if self.demand < MAX_DEMAND else 0


class SetInsteadOfAdded(Sound):
    """Where there is no demand it is set, and not added to: two requests find none."""

    rules: ClassVar = {"3.8", "3.17"}

    def request(self, n: int, /) -> None:
        if n < 1:
            return super().request(n)
        if self.demand == 0:
            sleep(0)
            self.demand = n
        else:
            with self.lock:
                self.demand = min(self.demand + n, MAX_DEMAND)
        with self.lock:
            if self.draining:
                return None
            self.draining = True
        return self.drain_somewhere()


class TheFastPathBeside(Sound):
    """Unbounded demand takes a path of its own, beside the drain of what was asked for before."""

    rules: ClassVar = {"1.3", "conservation", "order", "1.7", "1.8"}
    workload: ClassVar = "unbounded"

    def request(self, n: int, /) -> None:
        if n != MAX_DEMAND or (self.draining and self.demand == MAX_DEMAND):
            return super().request(n)
        self.demand = MAX_DEMAND
        while self.at < self.count and not self.cancelled:
            self.at += 1
            self.subscriber.on_next(self.at)
        return super().request(n)


class OwnCancelSeenLate(Sound):
    """What a subscriber cancels inside of on_next, is seen when the pair has been sent."""

    rules: ClassVar = {"1.8"}

    def step(self) -> None:
        super().step()
        with self.lock:
            more = self.demand > 0 and self.at < self.count and not self.ended and not self.invalid
        if more:
            super().step()


class CompletedAfterOwnCancel(Sound):
    """The last element is followed by the end, even if the subscriber has cancelled inside of it."""

    rules: ClassVar = {"1.8"}
    count: ClassVar = 3

    def step(self) -> None:
        super().step()
        if self.at == self.count and not self.ended:
            self.ended = True
            self.subscriber.on_complete()


class WithoutEnd(Sound):
    """A request from inside on_next is served there and then: one inside the other, as deep as the stream is long."""

    rules: ClassVar = {"3.3", "1.3"}

    def busy(self) -> bool:
        return self.draining and self.owner != get_ident()

    def drain(self) -> None:
        self.owner = get_ident()
        super().drain()

    owner = 0


class EndNeedsDemand(Sound):
    """The end is found when there is demand for one more, and the drain has left just before."""

    rules: ClassVar = {"1.5", "3.8", "3.17"}
    count: ClassVar = 8

    def due(self) -> bool:
        return not self.cancelled and not self.ended and (self.invalid or self.demand > 0)

    def drain(self) -> None:
        while True:
            if not self.due() or (self.at == self.count and self.found):
                self.draining = False
                return
            self.found = self.at == self.count - 1  # looked at before the element, and once
            self.step()

    found = False


class PeekedThenTaken(Sound):
    """An element is looked at, signalled, and then taken: who drains next may look at the same."""

    rules: ClassVar = {"conservation", "1.3", "order", "3.16"}

    def __init__(self, subscriber: Any, executor: Executor) -> None:
        super().__init__(subscriber, executor)
        self.waiting = list(range(1, self.count + 1))

    def drain(self) -> None:
        while True:
            with self.lock:
                if not self.due():
                    self.draining = False
                    return
                self.draining = self.demand > 1  # "the last of a batch needs no guard"
            self.step()

    def step(self) -> None:
        if self.invalid or self.at == self.count:
            return super().step()
        with self.lock:
            self.demand -= self.demand < MAX_DEMAND
        element = self.waiting[0]
        self.subscriber.on_next(element)
        self.at += 1
        self.waiting.pop(0)
        return None


PLANTED: dict[str, type[Sound]] = {
    name: item
    for name, item in vars(sys.modules[__name__]).items()
    if isinstance(item, type) and issubclass(item, Sound) and item is not Sound
}


class Planted:
    """A publisher with subscriptions of that kind."""

    def __init__(self, kind: Callable[[Any, Executor], Sound], executor: Executor) -> None:
        self.kind = kind
        self.executor = executor

    def subscribe(self, subscriber: Any, /) -> None:
        self.kind(subscriber, self.executor).start()
