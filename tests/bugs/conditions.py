"""Waiting, and being woken."""

from __future__ import annotations

import queue
import threading


class LostNotify:
    """Looks without the lock, and waits with it: the notification comes in between."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.ready = False

    def actor_waits(self) -> None:
        if not self.ready:
            with self.changed:
                self.changed.wait()

    def actor_notifies(self) -> None:
        self.ready = True
        with self.changed:
            self.changed.notify()


class KeptNotify(LostNotify):
    def actor_waits(self) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.ready)

    def actor_notifies(self) -> None:
        with self.changed:
            self.ready = True
            self.changed.notify()


class IfInsteadOfWhile:
    """Two wait for an element, one comes, and both are woken."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.elements: list[int] = []
        self.taken = 0

    def take(self) -> None:
        with self.changed:
            if not self.elements:
                self.changed.wait()
            self.elements.pop()

    def actor_a(self) -> None:
        self.take()

    def actor_b(self) -> None:
        self.take()

    def actor_puts(self) -> None:
        for n in (1, 2):
            with self.changed:
                self.elements.append(n)
                self.changed.notify_all()


class While(IfInsteadOfWhile):
    def take(self) -> None:
        with self.changed:
            while not self.elements:
                self.changed.wait()
            self.elements.pop()


class NotifyOne:
    """Producer and consumers wait on one condition, and the wrong one is woken."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.full = False

    def put(self) -> None:
        with self.changed:
            while self.full:
                self.changed.wait()
            self.full = True
            self.wake()

    def take(self) -> None:
        with self.changed:
            while not self.full:
                self.changed.wait()
            self.full = False
            self.wake()

    def wake(self) -> None:
        self.changed.notify()

    def actor_put(self) -> None:
        self.put()

    def actor_put_too(self) -> None:
        self.put()

    def actor_take(self) -> None:
        self.take()

    def actor_take_too(self) -> None:
        self.take()


class NotifyAll(NotifyOne):
    def wake(self) -> None:
        self.changed.notify_all()


class EventClearedLate:
    """The event is cleared after the look: what was set in between is lost."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.work: list[int] = []
        self.done: list[int] = []

    def actor_works(self) -> None:
        while len(self.done) < 2:
            self.event.wait()
            self.round()

    def round(self) -> None:
        while self.work:
            self.done.append(self.work.pop())
        self.event.clear()

    def actor_feeds(self) -> None:
        for n in (1, 2):
            self.work.append(n)
            self.event.set()


class EventClearedFirst(EventClearedLate):
    def round(self) -> None:
        self.event.clear()
        while self.work:
            self.done.append(self.work.pop())


class SentinelForOne:
    """Two workers on a queue, and one sentinel."""

    sentinels = 1

    def __init__(self) -> None:
        self.queue: queue.Queue[int | None] = queue.Queue(1)

    def work(self) -> None:
        while self.queue.get() is not None:
            pass

    def actor_a(self) -> None:
        self.work()

    def actor_b(self) -> None:
        self.work()

    def actor_feeds(self) -> None:
        self.queue.put(1)
        for _ in range(self.sentinels):
            self.queue.put(None)


class SentinelForEach(SentinelForOne):
    sentinels = 2


class SemaphoreLeak:
    """A permit is not given back where the work failed."""

    def __init__(self) -> None:
        self.permits = threading.Semaphore(1)
        self.broken = False

    def work(self) -> None:
        self.permits.acquire()
        if self.broken:
            return
        self.permits.release()

    def actor_a(self) -> None:
        self.work()

    def actor_b(self) -> None:
        self.work()

    def actor_breaks(self) -> None:
        self.broken = True


class SemaphoreKept(SemaphoreLeak):
    def work(self) -> None:
        with self.permits:
            if self.broken:
                return


PAIRS = [
    (LostNotify, KeptNotify),
    (IfInsteadOfWhile, While),
    (NotifyOne, NotifyAll),
    (EventClearedLate, EventClearedFirst),
    (SentinelForOne, SentinelForEach),
    (SemaphoreLeak, SemaphoreKept),
]
