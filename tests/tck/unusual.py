"""Sound implementations that are unusual: none of them may be accused by the kit.

They are written from the 43 rules, with the standard library and the interfaces alone; each class says in its first
line what is unusual. Publishers are made of a number of elements and a failure, subscribers and processors of nothing,
and those with a probe of the probe.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import queue
import random
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime.tck import (
    IdentityProcessorVerification,
    PublisherVerification,
    SubscriberBlackboxVerification,
    SubscriberPuppet,
    SubscriberWhiteboxVerification,
    Verification,
)
from tck.sound import refuse_none

__all__ = ["BLACKBOX", "PROCESSORS", "PUBLISHERS", "WHITEBOX", "verification_of"]

Signal = Callable[[], object]

PUBLISHERS: list[type[Any]] = []
PROCESSORS: list[type[Any]] = []
BLACKBOX: list[type[Any]] = []
WHITEBOX: list[type[Any]] = []

FAILURE = OSError("it fails on purpose")
PAUSE = 0.05
LATE = 0.15


def listed(kind: list[type[Any]]) -> Callable[[type[Any]], type[Any]]:
    """Add a class to those of its kind."""

    def add(made: type[Any]) -> type[Any]:
        kind.append(made)
        return made

    return add


def later(seconds: float, act: Signal) -> None:
    """Do it on the thread of a timer."""
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()


def on_a_thread(act: Signal) -> None:
    """Do it on a new thread."""
    threading.Thread(target=act, daemon=True).start()


class Loop:
    """An asyncio loop on a thread of its own, which ends when nothing has this object any more."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        on_a_thread(partial(self.run, self.loop))
        weakref.finalize(self, self.loop.call_soon_threadsafe, self.loop.stop).atexit = False

    @staticmethod
    def run(loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
        finally:
            loop.close()


def invalid(n: Any) -> ValueError | None:
    """What an invalid request is answered with (3.9)."""
    return ValueError(f"request({n!r}): demand is an int of at least 1 (3.9)") if type(n) is not int or n < 1 else None


class Nothing:
    """The subscription of a subscriber that is refused."""

    def request(self, n: int, /) -> None: ...

    def cancel(self) -> None: ...


def refuse(subscriber: Any, why: str) -> None:
    """1.9: on_subscribe, and then on_error."""
    subscriber.on_subscribe(Nothing())
    subscriber.on_error(RuntimeError(why))


@cache
def _pool_of(kind: str) -> ThreadPoolExecutor:
    """The one of a class; its threads end with the process. Two that ask at once may each make one, and use it."""
    return ThreadPoolExecutor(24, kind)


def on_its_pool(owner: Any, act: Signal) -> None:
    """Do it on the pool of the class of its owner.

    No lock is held here: the kit holds calls at each step, and one held under a lock that all publishers of a class
    share would hold up every other check that runs beside it.
    """
    _pool_of(type(owner).__name__).submit(act)


# -- publishers ------------------------------------------------------------------------------------------------


class Drain:
    """A subscription with one owner at a time. The lock owns every field; no signal is given under it."""

    def __init__(self, publisher: Any, subscriber: Any) -> None:
        self.publisher = publisher
        self.subscriber = subscriber
        self.lock = threading.Condition(threading.Lock())
        self.demand = 0
        self.sent = 0
        self.owned = True  # until on_subscribe has returned
        self.over = False
        self.fault: BaseException | None = None

    def open(self) -> None:
        self.subscriber.on_subscribe(self)
        self.dispatch()

    def request(self, n: int, /) -> None:
        with self.lock:
            self.fault = self.fault or invalid(n)
            if self.over:
                return
            if not invalid(n):
                self.demand = min(self.demand + n, MAX_DEMAND)
            self.lock.notify()
            if self.owned:
                return
            self.owned = True
        self.dispatch()

    def cancel(self) -> None:
        with self.lock:
            self.over, self.subscriber = True, None
            self.lock.notify()

    def dispatch(self) -> None:
        """Have the owner drain: here, or elsewhere."""
        self.drain()

    def drain(self) -> None:
        while (signal := self.due()) is not None:
            signal()

    def due(self) -> Signal | None:
        """The next signal; None, and there is no owner, where there is none."""
        with self.lock:
            return self.next_signal()

    def next_signal(self) -> Signal | None:
        subscriber = self.subscriber
        if self.over or subscriber is None:
            self.owned, self.subscriber = False, None
            return None
        if self.fault is not None:
            return self.ended(partial(subscriber.on_error, self.fault))
        if self.at_end():
            failure = self.publisher.failure
            return self.ended(subscriber.on_complete if failure is None else partial(subscriber.on_error, failure))
        if not self.demand:
            self.owned = False
            return None
        self.demand -= self.demand != MAX_DEMAND
        self.sent += 1
        return partial(self.emit, subscriber, self.sent - 1)

    def at_end(self) -> bool:
        return bool(self.sent >= self.publisher.elements)

    def ended(self, signal: Signal) -> Signal:
        self.over, self.subscriber = True, None
        return signal

    def emit(self, subscriber: Any, element: Any) -> None:
        subscriber.on_next(element)


class Source:
    """A publisher of 0, 1, 2, … that makes a subscription for each subscriber."""

    Subscription: type[Any] = Drain

    def __init__(self, elements: int, failure: BaseException | None = None) -> None:
        self.elements = elements
        self.failure = failure

    def subscribe(self, subscriber: Any, /) -> None:
        refuse_none("subscribe", subscriber)
        self.accept(subscriber)

    def accept(self, subscriber: Any) -> None:
        self.Subscription(self, subscriber).open()


@listed(PUBLISHERS)
class Slow(Source):
    """Takes 50 ms for each element, on the thread that requests."""

    class Subscription(Drain):
        def emit(self, subscriber: Any, element: Any) -> None:
            time.sleep(PAUSE)
            super().emit(subscriber, element)


class Threaded(Drain):
    """A thread for each subscription, which waits on a condition variable."""

    def open(self) -> None:
        on_a_thread(self.run)

    def run(self) -> None:
        self.subscriber.on_subscribe(self)
        self.drain()

    def next_signal(self) -> Signal | None:
        while not (self.over or self.fault or self.demand or self.at_end()):
            self.lock.wait()
        return super().next_signal()


@listed(PUBLISHERS)
class ThreadEach(Source):
    """Gives each subscription a thread of its own, also for on_subscribe."""

    Subscription = Threaded


@listed(PUBLISHERS)
class DrainsBetweenCalls(Source):
    """Has its calls in a queue for its thread, and signals all that is due before it takes the next one."""

    class Subscription(Drain):
        def __init__(self, publisher: Any, subscriber: Any) -> None:
            super().__init__(publisher, subscriber)
            self.calls: queue.SimpleQueue[Signal] = queue.SimpleQueue()

        def open(self) -> None:
            on_a_thread(self.run)

        def run(self) -> None:
            super().open()
            while not self.over:
                self.calls.get()()

        def request(self, n: int, /) -> None:
            self.calls.put(partial(super().request, n))

        def cancel(self) -> None:
            super().cancel()  # a flag, which each signal looks at
            self.calls.put(self.dispatch)


@listed(PUBLISHERS)
class SlowElsewhere(Source):
    """Takes 50 ms for each element, on a thread for each subscription."""

    class Subscription(Threaded):
        def emit(self, subscriber: Any, element: Any) -> None:
            time.sleep(PAUSE)
            super().emit(subscriber, element)


@listed(PUBLISHERS)
class LateOnSubscribe(Source):
    """Calls on_subscribe 150 ms late, on the thread of a timer."""

    def accept(self, subscriber: Any) -> None:
        later(LATE, self.Subscription(self, subscriber).open)


@listed(PUBLISHERS)
class LateEnd(Source):
    """Ends 100 ms after its last element, on the thread of a timer."""

    class Subscription(Drain):
        def ended(self, signal: Signal) -> Signal:
            signal = super().ended(signal)
            return signal if self.fault else partial(later, 2 * PAUSE, signal)


@listed(PUBLISHERS)
class Endless(Source):
    """Ignores how many elements it is asked for, and never completes."""

    max_elements_from_publisher = MAX_DEMAND

    class Subscription(Drain):
        def at_end(self) -> bool:
            return self.publisher.failure is not None and super().at_end()


@listed(PUBLISHERS)
class EndlessElsewhere(Source):
    """Never completes, and signals on a thread for each subscription."""

    max_elements_from_publisher = MAX_DEMAND

    class Subscription(Threaded):
        def at_end(self) -> bool:
            return self.publisher.failure is not None and super().at_end()


@listed(PUBLISHERS)
class SlowAndEndless(Source):
    """Never completes, and takes 20 ms for each element."""

    max_elements_from_publisher = MAX_DEMAND

    class Subscription(Threaded):
        def at_end(self) -> bool:
            return self.publisher.failure is not None and super().at_end()

        def emit(self, subscriber: Any, element: Any) -> None:
            time.sleep(0.02)
            super().emit(subscriber, element)


@listed(PUBLISHERS)
class OnALoop(Source):
    """Is a coroutine on an asyncio loop in a thread: request and cancel are callbacks of the loop."""

    def accept(self, subscriber: Any) -> None:
        on_a_thread(partial(asyncio.run, self.serve(subscriber)))

    async def serve(self, subscriber: Any) -> None:
        link = OnALoop.Link(asyncio.get_running_loop())
        subscriber.on_subscribe(link)
        sent = 0
        while True:
            await asyncio.sleep(0)  # the callbacks run here
            if not (link.cancelled or link.fault or link.demand or sent >= self.elements):
                link.news.clear()
                await link.news.wait()
            elif link.cancelled:
                return
            elif (error := link.fault or (self.failure if sent >= self.elements else None)) is not None:
                subscriber.on_error(error)
                return
            elif sent >= self.elements:
                subscriber.on_complete()
                return
            else:
                link.demand -= 1
                sent += 1
                subscriber.on_next(sent - 1)

    class Link:
        """The loop's thread owns the fields, but `closed`, which is set once."""

        def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
            self.loop = loop
            self.news = asyncio.Event()
            self.demand = 0
            self.fault: BaseException | None = None
            self.cancelled = False
            self.closed = threading.Event()

        def post(self, act: Callable[..., object], *arguments: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the stream has ended
                self.loop.call_soon_threadsafe(act, *arguments)

        def request(self, n: int, /) -> None:
            if not self.closed.is_set():  # a cancel is heard at once by later requests (3.6)
                self.post(self.add, n)

        def cancel(self) -> None:
            self.closed.set()
            self.post(self.leave)

        def add(self, n: int) -> None:
            self.fault = self.fault or invalid(n)
            self.demand = min(self.demand + (0 if invalid(n) else n), MAX_DEMAND)
            self.news.set()

        def leave(self) -> None:
            self.cancelled = True
            self.news.set()


@listed(PUBLISHERS)
class PoolBatches(Source):
    """Works in batches of 16 on a pool: after each it goes to the end of the pool's queue."""

    class Subscription(Drain):
        def dispatch(self) -> None:
            on_its_pool(self.publisher, self.drain)

        def drain(self) -> None:
            for _ in range(16):
                if (signal := self.due()) is None:
                    return
                signal()
            self.dispatch()


@listed(PUBLISHERS)
class Unicast(Source):
    """Serves one subscriber in its life, and refuses every other one."""

    most = 1

    def __init__(self, elements: int, failure: BaseException | None = None) -> None:
        super().__init__(elements, failure)
        self.free = threading.Semaphore(self.most)

    def accept(self, subscriber: Any) -> None:
        if self.free.acquire(blocking=False):
            super().accept(subscriber)
        else:
            self.refuse(subscriber)

    def refuse(self, subscriber: Any) -> None:
        refuse(subscriber, f"it serves {self.most} at most")


@listed(PUBLISHERS)
class TwoAtMost(Unicast):
    """Serves two subscribers in its life, and refuses every other one."""

    most = 2


@listed(PUBLISHERS)
class UnicastElsewhere(Unicast):
    """Refuses a second subscriber on another thread, and takes 50 ms between on_subscribe and on_error."""

    Subscription = Threaded

    def refuse(self, subscriber: Any) -> None:
        def run() -> None:
            subscriber.on_subscribe(Nothing())
            time.sleep(PAUSE)
            subscriber.on_error(RuntimeError("it serves one subscriber"))

        on_a_thread(run)


@listed(PUBLISHERS)
class OneAtATime(Source):
    """Serves one subscriber after the other, and refuses while there is one."""

    def __init__(self, elements: int, failure: BaseException | None = None) -> None:
        super().__init__(elements, failure)
        self.lock = threading.Lock()
        self.serving: Any = None  # lock

    class Subscription(Drain):
        def cancel(self) -> None:
            super().cancel()
            self.publisher.left(self)

        def ended(self, signal: Signal) -> Signal:
            self.publisher.left(self)
            return super().ended(signal)

    def accept(self, subscriber: Any) -> None:
        with self.lock:
            made = self.Subscription(self, subscriber) if self.serving is None else None
            self.serving = self.serving or made
        if made is None:
            refuse(subscriber, "it serves one subscriber at a time")
        else:
            made.open()

    def left(self, subscription: Any) -> None:
        with self.lock:
            if self.serving is subscription:
                self.serving = None


@listed(PUBLISHERS)
class Priority(Source):
    """Has one worker, which serves the subscription with the least elements sent, an element at a time."""

    def __init__(self, elements: int, failure: BaseException | None = None) -> None:
        super().__init__(elements, failure)
        self.lock = threading.Lock()
        self.waiting: list[Any] = []  # lock
        self.working = False  # lock
        self.numbers = itertools.count()

    class Subscription(Drain):
        def dispatch(self) -> None:
            self.publisher.queue(self)

    def queue(self, subscription: Any) -> None:
        with self.lock:
            heapq.heappush(self.waiting, (subscription.sent, next(self.numbers), subscription))
            if self.working:
                return
            self.working = True
        on_a_thread(self.work)

    def work(self) -> None:
        while True:
            with self.lock:
                self.working = bool(self.waiting)
                if not self.waiting:
                    return
                subscription = heapq.heappop(self.waiting)[2]
            signal = subscription.due()
            if signal is not None:
                signal()
                self.queue(subscription)
            del signal, subscription


@listed(PUBLISHERS)
class Trampolined(Source):
    """Puts all signals of a thread through one trampoline: the outermost call signals, those inside it queue."""

    jobs = threading.local()

    class Subscription(Drain):
        def open(self) -> None:
            self.bounce(super().open)

        def dispatch(self) -> None:
            self.bounce(self.drain)

        def bounce(self, act: Signal) -> None:
            jobs = Trampolined.jobs
            if hasattr(jobs, "queue"):
                jobs.queue.append(act)
                return
            jobs.queue = deque([act])
            try:
                while jobs.queue:
                    jobs.queue.popleft()()
            finally:
                del jobs.queue


@listed(PUBLISHERS)
class Unlocked(Source):
    """Has no lock at all, and leaves it to its subscriber that requests come one by one (2.7)."""

    requests_may_be_concurrent = False

    def accept(self, subscriber: Any) -> None:
        link = Unlocked.Link(subscriber, iter(range(self.elements)), self.failure)
        subscriber.on_subscribe(link)
        link.ready = True
        link.go()

    class Link:
        def __init__(self, subscriber: Any, source: Iterator[int], failure: BaseException | None) -> None:
            self.subscriber: Any = subscriber
            self.source = source
            self.failure = failure
            self.demand = 0
            self.ready = False  # not inside a signal
            self.fault: BaseException | None = None
            self.coming = next(source, None)

        def request(self, n: int, /) -> None:
            self.fault = self.fault or invalid(n)
            self.demand += 0 if invalid(n) else n  # of Python: it does not wrap
            self.go()

        def cancel(self) -> None:
            self.subscriber = None

        def go(self) -> None:
            if not self.ready:
                return
            self.ready = False
            while (subscriber := self.subscriber) is not None:
                if self.fault or self.coming is None:
                    self.subscriber = None
                    error = self.fault or self.failure
                    subscriber.on_error(error) if error else subscriber.on_complete()
                elif self.demand:
                    self.demand -= 1
                    element, self.coming = self.coming, next(self.source, None)
                    subscriber.on_next(element)
                else:
                    break
            self.ready = True


class Mailbox:
    """A thread that does what is posted, in order; it ends when all have dropped the box."""

    def __init__(self) -> None:
        self.box: queue.SimpleQueue[Signal | None] = queue.SimpleQueue()
        weakref.finalize(self, self.box.put, None).atexit = False
        self.put = self.box.put
        threading.Thread(target=self.run, args=(self.box,), daemon=True).start()

    @staticmethod
    def run(box: queue.SimpleQueue[Signal | None]) -> None:
        while (act := box.get()) is not None:
            act()
            del act


@listed(PUBLISHERS)
class Actor(Source):
    """Is an actor: subscribe, request and cancel are letters in one box, and its thread is the only one to signal."""

    def __init__(self, elements: int, failure: BaseException | None = None) -> None:
        super().__init__(elements, failure)
        self.box = Mailbox()

    def accept(self, subscriber: Any) -> None:
        self.box.put(Actor.Link(self.box, self.elements, self.failure, subscriber).open)

    class Link:
        """The actor owns the fields, but `closed`."""

        def __init__(self, box: Any, elements: int, failure: BaseException | None, subscriber: Any) -> None:
            self.box = box
            self.left = iter(range(elements))
            self.elements = elements
            self.failure = failure
            self.subscriber = subscriber
            self.demand = 0
            self.closed = threading.Event()

        def open(self) -> None:
            self.subscriber.on_subscribe(self)
            self.step()

        def request(self, n: int, /) -> None:
            if not self.closed.is_set():
                self.box.put(partial(self.add, n))

        def cancel(self) -> None:
            self.closed.set()
            self.box.put(self.drop)

        def drop(self) -> None:
            self.subscriber = None

        def add(self, n: int) -> None:
            if self.subscriber is not None and (fault := invalid(n)):
                self.end(partial(self.subscriber.on_error, fault))
            elif self.subscriber is not None:
                idle = not self.demand
                self.demand = min(self.demand + n, MAX_DEMAND)
                if idle:
                    self.step()

        def step(self) -> None:
            """One element; the next one is a letter to itself, behind those that have come meanwhile."""
            if self.subscriber is None:
                return
            if not self.elements:
                failure = self.failure
                end = self.subscriber.on_complete if failure is None else partial(self.subscriber.on_error, failure)
                self.end(end)
            elif self.demand and not self.closed.is_set():
                self.elements -= 1
                self.subscriber.on_next(next(self.left))
                self.demand -= self.demand != MAX_DEMAND
                if self.demand or not self.elements:
                    self.box.put(self.step)

        def end(self, signal: Signal) -> None:
            self.subscriber = None
            self.closed.set()
            signal()


@listed(PUBLISHERS)
class Messages(Source):
    """Keeps messages in a deque, and signals on the thread that gets a lock without waiting."""

    def accept(self, subscriber: Any) -> None:
        link = Messages.Link(subscriber, self.elements, self.failure)
        with link.turn:
            subscriber.on_subscribe(link)
        link.post(0)

    class Link:
        """`turn` owns every field but the messages and `gone`."""

        def __init__(self, subscriber: Any, elements: int, failure: BaseException | None) -> None:
            self.messages: deque[Any] = deque()
            self.turn = threading.Lock()
            self.subscriber = subscriber
            self.numbers = iter(range(elements))
            self.left = elements
            self.failure = failure
            self.demand = 0
            self.gone = threading.Event()

        def request(self, n: int, /) -> None:
            if not self.gone.is_set():
                self.post(invalid(n) or n)

        def cancel(self) -> None:
            self.gone.set()
            self.post(0)

        def post(self, message: Any) -> None:
            self.messages.append(message)
            while self.messages and self.turn.acquire(blocking=False):
                try:
                    self.work()
                finally:
                    self.turn.release()

        def work(self) -> None:
            while self.subscriber is not None:
                while self.messages:
                    self.take(self.messages.popleft())
                if self.gone.is_set():
                    self.subscriber = None
                elif not self.left:
                    self.end(self.failure)
                elif self.demand:
                    self.demand -= self.demand != MAX_DEMAND
                    self.left -= 1
                    self.subscriber.on_next(next(self.numbers))
                else:
                    return
            self.messages.clear()

        def take(self, message: Any) -> None:
            if isinstance(message, ValueError) and self.subscriber is not None:
                self.end(message)
            elif isinstance(message, int):
                self.demand = min(self.demand + message, MAX_DEMAND)

        def end(self, error: BaseException | None) -> None:
            subscriber, self.subscriber = self.subscriber, None
            self.gone.set()
            subscriber.on_complete() if error is None else subscriber.on_error(error)


@listed(PUBLISHERS)
class Generated(Source):
    """Draws from a generator, which does not know that it is at its end before it is asked: it ends with demand."""

    class Subscription(Drain):
        source: Iterator[int] | None = None

        def at_end(self) -> bool:
            failed = self.publisher.failure is not None and not self.publisher.elements
            return failed or self.coming is None

        coming: int | None = -1

        def next_signal(self) -> Signal | None:
            if self.demand and not self.over and self.fault is None:
                if self.source is None:
                    self.source = (number for number in range(self.publisher.elements))
                self.coming = next(self.source, None)
            return super().next_signal()


@listed(PUBLISHERS)
class Eager(Source):
    """Gives its end to a subscriber without elements before subscribe returns, and looks ahead for its end."""

    def accept(self, subscriber: Any) -> None:
        if self.elements:
            super().accept(subscriber)
            return
        subscription = self.Subscription(self, subscriber)
        subscriber.on_subscribe(subscription)
        subscription.drain()


@listed(PUBLISHERS)
class TimeSliced(Source):
    """Has one worker that gives each subscription a slice of a millisecond in turn."""

    def __init__(self, elements: int, failure: BaseException | None = None) -> None:
        super().__init__(elements, failure)
        self.lock = threading.Lock()
        self.ready: deque[Any] = deque()  # lock
        self.working = False  # lock

    class Subscription(Drain):
        def dispatch(self) -> None:
            self.publisher.queue(self)

    def queue(self, subscription: Any) -> None:
        with self.lock:
            self.ready.append(subscription)
            if self.working:
                return
            self.working = True
        on_a_thread(self.work)

    def work(self) -> None:
        while True:
            with self.lock:
                self.working = bool(self.ready)
                if not self.ready:
                    return
                subscription = self.ready.popleft()
            until = time.monotonic() + 0.001
            while (signal := subscription.due()) is not None:
                signal()
                if time.monotonic() > until:
                    self.queue(subscription)
                    break
            del signal, subscription


@listed(PUBLISHERS)
class Lazy(Source):
    """Opens its source at the first request, which takes 30 ms, on a thread of its own."""

    class Subscription(Drain):
        opened = False

        def dispatch(self) -> None:
            if self.opened or self.publisher.failure or not self.publisher.elements:
                self.drain()
            else:
                on_a_thread(self.connect)

        def connect(self) -> None:
            if self.demand:
                time.sleep(0.03)
                self.opened = True
            self.drain()


@listed(PUBLISHERS)
class DelayedCancel(Source):
    """Hears a cancel 50 ms late, and signals meanwhile what was requested before it."""

    class Subscription(Drain):
        leaving = False

        def request(self, n: int, /) -> None:
            if not self.leaving:
                super().request(n)

        def cancel(self) -> None:
            self.leaving = True
            later(PAUSE, super().cancel)


@listed(PUBLISHERS)
class DelayedCancelElsewhere(Source):
    """Takes 20 ms for a cancel, and signals for 50 ms more, on a thread of its own, what was requested before."""

    class Subscription(Threaded):
        leaving = False

        def request(self, n: int, /) -> None:
            if not self.leaving:
                super().request(n)

        def cancel(self) -> None:
            time.sleep(0.02)
            self.leaving = True
            later(PAUSE, super().cancel)


@listed(PUBLISHERS)
class DropsLate(Source):
    """Keeps a subscriber that has cancelled for half a second more, and signals nothing to it."""

    class Subscription(Drain):
        def cancel(self) -> None:
            subscriber = self.subscriber
            super().cancel()
            later(0.5, partial(id, subscriber))


@listed(PUBLISHERS)
class WeakRegistry(Source):
    """Knows its subscriptions by weak references alone: the holder of a subscription keeps it."""

    def __init__(self, elements: int, failure: BaseException | None = None) -> None:
        super().__init__(elements, failure)
        self.known: weakref.WeakSet[Any] = weakref.WeakSet()

    def accept(self, subscriber: Any) -> None:
        subscription = self.Subscription(self, subscriber)
        self.known.add(subscription)
        subscription.open()


@listed(PUBLISHERS)
class Coordinated(Source):
    """Gives all subscribers the same elements, at the pace of the slowest; who comes late gets the rest."""

    def __init__(self, elements: int, failure: BaseException | None = None) -> None:
        super().__init__(elements, failure)
        self.lock = threading.Lock()
        self.links: list[Any] = []  # lock, and all fields of the links too
        self.sent = 0  # lock
        self.owned = False  # lock

    class Link:
        def __init__(self, publisher: Any, subscriber: Any) -> None:
            self.publisher = publisher
            self.subscriber = subscriber
            self.demand = 0
            self.fault: BaseException | None = None

        def request(self, n: int, /) -> None:
            with self.publisher.lock:
                self.fault = self.fault or invalid(n)
                self.demand = min(self.demand + (0 if invalid(n) else n), MAX_DEMAND)
            self.publisher.drain()

        def cancel(self) -> None:
            with self.publisher.lock:
                self.subscriber = None
            self.publisher.drain()

    def accept(self, subscriber: Any) -> None:
        link = Coordinated.Link(self, subscriber)
        subscriber.on_subscribe(link)
        with self.lock:
            self.links.append(link)
        self.drain()

    def drain(self) -> None:
        with self.lock:
            if self.owned:
                return
            self.owned = True
        while signals := self.due():
            for signal in signals:
                signal()

    def due(self) -> list[Signal]:
        with self.lock:
            self.links = [link for link in self.links if link.subscriber is not None]
            faulty = [link for link in self.links if link.fault is not None]
            if faulty:
                return [partial(self.gone(link).on_error, link.fault) for link in faulty]
            if self.links and self.sent >= self.elements:
                gone = [self.gone(link) for link in self.links]
                return [partial(item.on_error, self.failure) if self.failure else item.on_complete for item in gone]
            if self.links and all(link.demand for link in self.links):
                self.sent += 1
                for link in self.links:
                    link.demand -= link.demand != MAX_DEMAND
                return [partial(link.subscriber.on_next, self.sent - 1) for link in self.links]
            self.owned = False
            return []

    @staticmethod
    def gone(link: Any) -> Any:
        subscriber, link.subscriber = link.subscriber, None
        return subscriber


@listed(PUBLISHERS)
class Replaying(Source):
    """Draws each element once, for the fastest subscriber, and replays it to all others and to those to come."""

    def __init__(self, elements: int, failure: BaseException | None = None) -> None:
        super().__init__(elements, failure)
        self.source = iter(range(elements))
        self.kept: list[int] = []  # lock
        self.lock = threading.Lock()

    def at(self, number: int) -> int:
        with self.lock:
            while len(self.kept) <= number:
                self.kept.append(next(self.source))
            return self.kept[number]

    class Subscription(Drain):
        def emit(self, subscriber: Any, element: Any) -> None:
            super().emit(subscriber, self.publisher.at(element))


@listed(PUBLISHERS)
class Prefetching(Source):
    """Draws up to eight elements ahead of the demand, on a thread beside the one that signals."""

    class Subscription(Threaded):
        def open(self) -> None:
            self.ahead: queue.Queue[int] = queue.Queue(8)
            on_a_thread(self.draw)
            super().open()

        def draw(self) -> None:
            for number in range(self.publisher.elements):
                while not self.over:
                    with contextlib.suppress(queue.Full):
                        self.ahead.put(number, timeout=0.05)
                        break
                if self.over:
                    return

        def emit(self, subscriber: Any, element: Any) -> None:
            super().emit(subscriber, self.ahead.get())


@listed(PUBLISHERS)
class Jittery(Source):
    """Takes from nothing to ten milliseconds for a signal, by chance."""

    class Subscription(Drain):
        chance = random.Random(17)

        def emit(self, subscriber: Any, element: Any) -> None:
            if self.chance.random() < 0.3:
                time.sleep(self.chance.random() / 100)
            super().emit(subscriber, element)


@listed(PUBLISHERS)
class Stutters(Source):
    """Pauses for 200 ms before every seventh element: its pace is not that of its first elements."""

    class Subscription(Threaded):
        def emit(self, subscriber: Any, element: Any) -> None:
            if element % 7 == 6 and element < 40:
                time.sleep(0.2)
            super().emit(subscriber, element)


# -- processors ------------------------------------------------------------------------------------------------


class Relay:
    """Passes on each element to one subscriber; a second one is refused.

    One owner at a time signals downstream and calls upstream (1.3, 2.7). The lock owns every field.
    """

    capacity = 16
    max_supported_subscribers = 1

    def __init__(self) -> None:
        self.lock = threading.Condition(threading.Lock())
        self.upstream: Any = None
        self.subscriber: Any = None
        self.taken = False  # there was a subscriber
        self.ready = False  # its on_subscribe has returned
        self.asked = 0  # of the upstream, and not come yet
        self.demand = 0
        self.buffer: deque[Any] = deque()
        self.complete = False
        self.error: BaseException | None = None
        self.fault: BaseException | None = None
        self.over = False
        self.owned = False
        self.quiet = False  # the upstream is not to be called any more

    # the side of the upstream

    def on_subscribe(self, subscription: Any, /) -> None:
        refuse_none("on_subscribe", subscription)
        with self.lock:
            first = self.upstream is None
            if first:
                self.upstream = subscription
        if first:
            self.wake()
        else:
            subscription.cancel()

    def on_next(self, element: Any, /) -> None:
        refuse_none("on_next", element)
        with self.lock:
            self.asked -= self.asked != MAX_DEMAND
            if not self.over:
                self.buffer.append(element)
        self.wake()

    def on_error(self, error: BaseException, /) -> None:
        refuse_none("on_error", error)
        with self.lock:
            self.error, self.quiet = error, True
        self.wake()

    def on_complete(self) -> None:
        with self.lock:
            self.complete = self.quiet = True
        self.wake()

    # the side of the subscriber

    def subscribe(self, subscriber: Any, /) -> None:
        refuse_none("subscribe", subscriber)
        with self.lock:
            first, self.taken = not self.taken, True
            if first:
                self.subscriber = subscriber
        if first:
            self.open(subscriber)
        else:
            refuse(subscriber, "it serves one subscriber")

    def open(self, subscriber: Any) -> None:
        subscriber.on_subscribe(self.Link(self))
        with self.lock:
            self.ready = True
        self.wake()

    class Link:
        def __init__(self, relay: Any) -> None:
            self.relay = relay

        def request(self, n: int, /) -> None:
            with self.relay.lock:
                self.relay.fault = self.relay.fault or invalid(n)
                self.relay.demand = min(self.relay.demand + (0 if invalid(n) else n), MAX_DEMAND)
            self.relay.wake()

        def cancel(self) -> None:
            self.relay.leave()

    def leave(self) -> None:
        with self.lock:
            self.over, self.subscriber = True, None
        self.wake()

    # what is to be done

    def wake(self) -> None:
        with self.lock:
            if self.owned:
                return
            self.owned = True
        self.dispatch()

    def dispatch(self) -> None:
        self.drain()

    def drain(self) -> None:
        while (act := self.due()) is not None:
            act()

    def due(self) -> Signal | None:
        with self.lock:
            return self.next_act()

    def next_act(self) -> Signal | None:
        subscriber = self.subscriber
        if self.over:
            self.buffer.clear()
            if self.upstream is not None and not self.quiet:
                self.quiet = True
                return self.upstream.cancel  # type: ignore[no-any-return]
        elif self.ready and self.fault is not None:
            return self.ended(partial(subscriber.on_error, self.fault))
        elif self.ready and self.error is not None:
            return self.ended(partial(subscriber.on_error, self.error))
        elif self.ready and self.buffer and self.demand:
            self.demand -= self.demand != MAX_DEMAND
            return partial(self.emit, subscriber, self.buffer.popleft())
        elif self.ready and self.complete and not self.buffer:
            return self.ended(subscriber.on_complete)
        elif self.upstream is not None and not self.quiet and (wanted := self.wanted()):
            self.asked = min(self.asked + wanted, MAX_DEMAND)
            return partial(self.upstream.request, wanted)
        self.owned = False
        return None

    def ended(self, signal: Signal) -> Signal:
        self.over, self.subscriber = True, None
        return signal

    def wanted(self) -> int:
        """How many to request: the buffer is filled again when half of it is empty."""
        room = self.capacity - self.asked - len(self.buffer)
        return room if 2 * room >= self.capacity else 0

    def emit(self, subscriber: Any, element: Any) -> None:
        subscriber.on_next(element)


@listed(PROCESSORS)
class Prefetches(Relay):
    """Requests 16 elements before any is wanted, and again at half of them."""


@listed(PROCESSORS)
class FetchesOne(Relay):
    """Has room for one element, which it fetches before it is wanted."""

    capacity = 1


@listed(PROCESSORS)
class FetchesMany(Relay):
    """Prefetches a thousand elements."""

    capacity = 1000


@listed(PROCESSORS)
class KeepsAll(Relay):
    """Requests all there is before any is wanted, and keeps it."""

    def wanted(self) -> int:
        return 0 if self.asked else MAX_DEMAND


@listed(PROCESSORS)
class RefillsLast(Relay):
    """Requests a batch of four when all of the last one has gone out."""

    def wanted(self) -> int:
        return 0 if self.asked or self.buffer else 4


@listed(PROCESSORS)
class OnDemand(Relay):
    """Requests one element at a time, when it is wanted."""

    def wanted(self) -> int:
        return 1 if self.demand and not self.asked and not self.buffer else 0


@listed(PROCESSORS)
class Mirrors(Relay):
    """Requests of its upstream what is requested of it, in the same numbers, but for 64 at a time."""

    def wanted(self) -> int:
        return max(0, min(self.demand, 64) - self.asked - len(self.buffer))


@listed(PROCESSORS)
class HopsToAPool(Relay):
    """Signals from a pool, whatever thread it was called on."""

    def dispatch(self) -> None:
        on_its_pool(self, self.drain)


@listed(PROCESSORS)
class NewThreadForEachDrain(Relay):
    """Starts a thread whenever there is something to do."""

    def dispatch(self) -> None:
        on_a_thread(self.drain)


@listed(PROCESSORS)
class FairOnAPool(Relay):
    """Does one thing at a time on a pool, and queues again for the next."""

    def dispatch(self) -> None:
        on_its_pool(self, self.step)

    def step(self) -> None:
        act = self.due()
        if act is not None:
            act()
            self.dispatch()


@listed(PROCESSORS)
class SlowRelay(Relay):
    """Takes 50 ms for each element, on the thread that it is called on."""

    def emit(self, subscriber: Any, element: Any) -> None:
        time.sleep(PAUSE)
        super().emit(subscriber, element)


@listed(PROCESSORS)
class SlowOnAPool(Relay):
    """Takes 50 ms for each element, on a pool."""

    capacity = 2

    def dispatch(self) -> None:
        on_its_pool(self, self.drain)

    def emit(self, subscriber: Any, element: Any) -> None:
        time.sleep(PAUSE)
        super().emit(subscriber, element)


@listed(PROCESSORS)
class LateRelay(Relay):
    """Calls on_subscribe 150 ms after subscribe, on the thread of a timer."""

    def open(self, subscriber: Any) -> None:
        later(LATE, partial(super().open, subscriber))


@listed(PROCESSORS)
class WaitsForItsUpstream(Relay):
    """Calls on_subscribe of its subscriber when it has an upstream, and not before."""

    waiting = False

    def open(self, subscriber: Any) -> None:
        with self.lock:
            self.waiting = self.upstream is None
            if self.waiting:
                return
        super().open(subscriber)

    def on_subscribe(self, subscription: Any, /) -> None:
        super().on_subscribe(subscription)
        with self.lock:
            waiting, self.waiting = self.waiting, False
        if waiting:
            super().open(self.subscriber)


@listed(PROCESSORS)
class RequestsLate(Relay):
    """Requests from its upstream 20 ms after there is room, on the thread of a timer."""

    capacity = 8

    def next_act(self) -> Signal | None:
        act = super().next_act()
        if act is None or getattr(act, "func", None) != getattr(self.upstream, "request", 0):
            return act
        self.owned = True  # by the timer
        return partial(later, 0.02, partial(self.then, act))

    def then(self, act: Signal) -> None:
        with self.lock:
            quiet = self.quiet
        if not quiet:
            act()
        self.drain()

    def drain(self) -> None:
        while (act := self.due()) is not None:
            act()
            if getattr(act, "func", None) is later:
                return


@listed(PROCESSORS)
class HasAThread(Relay):
    """Has a thread of its own, which waits on a condition variable, from its first subscriber to its end."""

    started = False

    def wake(self) -> None:
        with self.lock:
            self.lock.notify()
            if self.started:
                return
            self.started = True
        on_a_thread(self.drain)

    def next_act(self) -> Signal | None:
        while (act := super().next_act()) is None and not (self.over and (self.quiet or self.upstream is None)):
            self.lock.wait(5.0)
        return act


@listed(PROCESSORS)
class RelayTrampolined(Relay):
    """Puts what is to be done through a trampoline of the thread."""

    jobs = threading.local()

    def dispatch(self) -> None:
        jobs = RelayTrampolined.jobs
        if hasattr(jobs, "queue"):
            jobs.queue.append(self.drain)
            return
        jobs.queue = deque([self.drain])
        try:
            while jobs.queue:
                jobs.queue.popleft()()
        finally:
            del jobs.queue


@listed(PROCESSORS)
class RelayActor(Relay):
    """Is an actor: its thread is the only one that calls anything."""

    def __init__(self) -> None:
        super().__init__()
        self.box = Mailbox()

    def dispatch(self) -> None:
        self.box.put(self.drain)


@listed(PROCESSORS)
class RelayOnALoop(Relay):
    """Does what is to be done on an asyncio loop, one loop for all that are made on a thread."""

    made = threading.local()

    def __init__(self) -> None:
        super().__init__()
        if not hasattr(self.made, "home"):
            # A subscriber of the kit may hold the loop for a while: checks that run side by side have one each.
            self.made.home = Loop()
        self.home = self.made.home

    def dispatch(self) -> None:
        self.home.loop.call_soon_threadsafe(self.drain)


@listed(PROCESSORS)
class JitteryRelay(Relay):
    """Takes from nothing to five milliseconds for an element, by chance, on a pool."""

    chance = random.Random(18)

    def dispatch(self) -> None:
        on_its_pool(self, self.drain)

    def emit(self, subscriber: Any, element: Any) -> None:
        if self.chance.random() < 0.3:
            time.sleep(self.chance.random() / 200)
        super().emit(subscriber, element)


@listed(PROCESSORS)
class Transparent:
    """Gives its one subscriber the very subscription of its upstream, and stays out of the way."""

    max_supported_subscribers = 1

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.upstream: Any = None  # lock
        self.subscriber: Any = None  # lock
        self.joined = False  # lock
        self.greeting = False  # lock; its subscriber is inside on_subscribe, and no element may come (1.3)
        self.asked: list[int] = []  # lock; what was requested meanwhile
        self.error: BaseException | None = None  # lock; what came before there was a subscriber
        self.complete = False  # lock

    def on_subscribe(self, subscription: Any, /) -> None:
        refuse_none("on_subscribe", subscription)
        with self.lock:
            first = self.upstream is None
            if first:
                self.upstream = subscription
        if first:
            self.join()
        else:
            subscription.cancel()

    def subscribe(self, subscriber: Any, /) -> None:
        refuse_none("subscribe", subscriber)
        with self.lock:
            first = self.subscriber is None
            if first:
                self.subscriber = subscriber
        if first:
            self.join()
        else:
            refuse(subscriber, "it serves one subscriber")

    def join(self) -> None:
        with self.lock:
            if self.upstream is None or self.subscriber is None or self.joined:
                return
            self.joined = self.greeting = True
        link = self.Link(self)
        self.subscriber.on_subscribe(link)
        with self.lock:
            self.greeting = False
            error, complete = self.error, self.complete
        for n in self.asked:
            link.request(n)
        self.end(partial(self.subscriber.on_error, error) if error else self.subscriber.on_complete, error or complete)

    class Link:
        """It drops the subscriber (3.13), holds back what is requested inside on_subscribe (1.3), and does no more."""

        def __init__(self, made: Any) -> None:
            self.made = made

        def request(self, n: int, /) -> None:
            made = self.made
            with made.lock:
                if made.greeting:
                    made.asked.append(n)
                    return
            if made.subscriber is not Transparent.Gone:
                made.upstream.request(n)

        def cancel(self) -> None:
            made = self.made
            with made.lock:
                again, made.subscriber = made.subscriber is Transparent.Gone, Transparent.Gone
            if not again:
                made.upstream.cancel()

    class Gone:
        """Takes what still comes."""

        @staticmethod
        def on_next(element: Any) -> None: ...

        @staticmethod
        def on_error(error: BaseException) -> None: ...

        @staticmethod
        def on_complete() -> None: ...

    def end(self, signal: Signal, due: object = True) -> None:
        if due:
            self.subscriber = Transparent.Gone
            signal()

    def on_next(self, element: Any, /) -> None:
        refuse_none("on_next", element)
        self.subscriber.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        refuse_none("on_error", error)
        with self.lock:
            self.error = error
            joined, subscriber = self.joined, self.subscriber
        if joined:
            self.end(partial(subscriber.on_error, error))

    def on_complete(self) -> None:
        with self.lock:
            self.complete = True
            joined, subscriber = self.joined, self.subscriber
        if joined:
            self.end(subscriber.on_complete)


@listed(PROCESSORS)
class Fanout:
    """Has a buffer for each of its subscribers, and goes at the pace of the slowest; who comes late gets the rest."""

    capacity = 16

    def __init__(self) -> None:
        self.lock = threading.RLock()  # owns all fields, those of the links too; no call is made under it
        self.upstream: Any = None
        self.links: list[Any] = []
        self.asked = 0
        self.end: Callable[[Any], Signal] | None = None
        self.failed = False
        self.owned = False
        self.had = False

    class Link:
        def __init__(self, fanout: Any, subscriber: Any) -> None:
            self.fanout = fanout
            self.subscriber = subscriber
            self.buffer: deque[Any] = deque()
            self.demand = 0
            self.fault: BaseException | None = None

        def request(self, n: int, /) -> None:
            with self.fanout.lock:
                self.fault = self.fault or invalid(n)
                self.demand = min(self.demand + (0 if invalid(n) else n), MAX_DEMAND)
            self.fanout.wake()

        def cancel(self) -> None:
            with self.fanout.lock:
                self.subscriber = None
            self.fanout.wake()

    def on_subscribe(self, subscription: Any, /) -> None:
        refuse_none("on_subscribe", subscription)
        with self.lock:
            first = self.upstream is None
            if first:
                self.upstream = subscription
        self.wake() if first else subscription.cancel()

    def on_next(self, element: Any, /) -> None:
        refuse_none("on_next", element)
        with self.lock:
            self.asked -= 1
            for link in self.links:
                link.buffer.append(element)
        self.wake()

    def on_error(self, error: BaseException, /) -> None:
        refuse_none("on_error", error)
        with self.lock:
            self.failed, self.end = True, lambda subscriber: partial(subscriber.on_error, error)
        self.wake()

    def on_complete(self) -> None:
        with self.lock:
            self.end = lambda subscriber: subscriber.on_complete
        self.wake()

    def subscribe(self, subscriber: Any, /) -> None:
        refuse_none("subscribe", subscriber)
        link = self.Link(self, subscriber)
        subscriber.on_subscribe(link)
        with self.lock:
            self.links.append(link)
            self.had = True
        self.wake()

    def wake(self) -> None:
        with self.lock:
            if self.owned:
                return
            self.owned = True
        self.dispatch()

    def dispatch(self) -> None:
        while (act := self.due()) is not None:
            act()

    def due(self) -> Signal | None:
        with self.lock:
            self.links = [link for link in self.links if link.subscriber is not None]
            for link in self.links:
                if link.fault is not None:
                    return partial(self.gone(link).on_error, link.fault)
                if self.end is not None and (self.failed or not link.buffer):
                    return self.end(self.gone(link))
                if link.buffer and link.demand:
                    link.demand -= link.demand != MAX_DEMAND
                    return partial(link.subscriber.on_next, link.buffer.popleft())
            if self.upstream is not None and self.end is None:
                if self.had and not self.links:  # the last one has left
                    self.end = lambda subscriber: partial(subscriber.on_error, RuntimeError("it was cancelled"))
                    return self.upstream.cancel  # type: ignore[no-any-return]
                room = self.capacity - self.asked - max((len(link.buffer) for link in self.links), default=0)
                if self.links and 2 * room >= self.capacity:
                    self.asked += room
                    return partial(self.upstream.request, room)
            self.owned = False
            return None

    @staticmethod
    def gone(link: Any) -> Any:
        subscriber, link.subscriber = link.subscriber, None
        link.buffer.clear()
        return subscriber


@listed(PROCESSORS)
class FanoutOnAPool(Fanout):
    """As Fanout, on a pool: its subscribers are served by one thread at a time, none of them theirs."""

    def dispatch(self) -> None:
        on_its_pool(self, super().dispatch)


# -- subscribers as they are -----------------------------------------------------------------------------------


class Asks:
    """A subscriber that requests `first` elements, and `then()` for each that has come. All by the publisher's call."""

    first = 1

    def __init__(self) -> None:
        self.subscription: Any = None
        self.got = 0

    def on_subscribe(self, subscription: Any, /) -> None:
        refuse_none("on_subscribe", subscription)
        if self.subscription is not None:
            subscription.cancel()
            return
        self.subscription = subscription
        self.begin()

    def begin(self) -> None:
        self.subscription.request(self.first)

    def on_next(self, element: Any, /) -> None:
        refuse_none("on_next", element)
        self.got += 1
        self.then()

    def then(self) -> None: ...

    def on_error(self, error: BaseException, /) -> None:
        refuse_none("on_error", error)
        self.at_end()

    def on_complete(self) -> None:
        self.at_end()

    def at_end(self) -> None: ...


@listed(BLACKBOX)
class OneByOne(Asks):
    """Requests one element at a time, inside on_next."""

    def then(self) -> None:
        self.subscription.request(1)


@listed(BLACKBOX)
class Batches(Asks):
    """Requests 16 elements whenever 16 have come."""

    first = 16

    def then(self) -> None:
        if self.got % 16 == 0:
            self.subscription.request(16)


@listed(BLACKBOX)
class HalfBatches(Asks):
    """Requests 8 elements, and 4 more whenever 4 have come."""

    first = 8

    def then(self) -> None:
        if self.got % 4 == 0:
            self.subscription.request(4)


@listed(BLACKBOX)
class Unbounded(Asks):
    """Requests all at once."""

    first = MAX_DEMAND


@listed(BLACKBOX)
class Greedy(Asks):
    """Requests all once more at each element."""

    first = MAX_DEMAND

    def then(self) -> None:
        self.subscription.request(MAX_DEMAND)


@listed(BLACKBOX)
class Doubling(Asks):
    """Requests twice as many each time: 1, 2, 4, and so on."""

    due = 1

    def then(self) -> None:
        if self.got == self.due:
            self.due += 2 * (self.got + 1) // 2
            self.subscription.request(self.due - self.got)


@listed(BLACKBOX)
class ManySmallRequests(Asks):
    """Requests in on_subscribe five times, one element each."""

    def begin(self) -> None:
        for _ in range(5):
            self.subscription.request(1)


@listed(BLACKBOX)
class LeavesAfterTwo(Asks):
    """Cancels after two elements, inside on_next."""

    first = 5

    def then(self) -> None:
        if self.got == 2:
            self.subscription.cancel()


@listed(BLACKBOX)
class TakesAnother(Asks):
    """Cancels after one element, and takes the next subscription that it is given."""

    def then(self) -> None:
        subscription, self.subscription = self.subscription, None
        subscription.cancel()


@listed(BLACKBOX)
class LeavesAtOnce(Asks):
    """Cancels inside on_subscribe, and wants nothing."""

    def begin(self) -> None:
        self.subscription.cancel()


@listed(BLACKBOX)
class SlowlyInside(Asks):
    """Takes 50 ms inside on_next, and requests 40."""

    first = 40

    def then(self) -> None:
        time.sleep(PAUSE)


@listed(BLACKBOX)
class SlowAndUnbounded(Asks):
    """Takes 50 ms inside on_next, and requests all."""

    first = MAX_DEMAND

    def then(self) -> None:
        time.sleep(PAUSE)


@listed(BLACKBOX)
class Slotted:
    """Has slots, and no place for a weak reference or for anything else."""

    __slots__ = ("subscription",)

    def __init__(self) -> None:
        self.subscription: Any = None

    def on_subscribe(self, subscription: Any, /) -> None:
        refuse_none("on_subscribe", subscription)
        if self.subscription is not None:
            subscription.cancel()
        else:
            self.subscription = subscription
            subscription.request(2)

    def on_next(self, element: Any, /) -> None:
        refuse_none("on_next", element)
        self.subscription.request(1)

    def on_error(self, error: BaseException, /) -> None:
        refuse_none("on_error", error)

    def on_complete(self) -> None: ...


@listed(BLACKBOX)
class LateToAsk(Asks):
    """Requests 150 ms after on_subscribe, on the thread of a timer."""

    def begin(self) -> None:
        self.lock = threading.Lock()  # owns `ended`, and its calls come one by one in it
        self.ended = False
        later(LATE, self.ask)

    def ask(self) -> None:
        if not self.ended:
            self.subscription.request(4)

    def at_end(self) -> None:
        self.ended = True


class Boxed(Asks):
    """Puts its signals into a box; the one that finds it unattended has them done elsewhere, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.box: deque[Signal] = deque()  # lock
        self.attended = False  # lock
        self.finished = False  # what attends the box

    def post(self, act: Signal) -> None:
        with self.lock:
            self.box.append(act)
            if self.attended:
                return
            self.attended = True
        self.dispatch(self.work)

    def dispatch(self, work: Signal) -> None:
        on_its_pool(self, work)

    def work(self) -> None:
        while True:
            with self.lock:
                self.attended = bool(self.box)
                if not self.box:
                    return
                act = self.box.popleft()
            act()

    def begin(self) -> None:
        self.post(super().begin)

    def on_next(self, element: Any, /) -> None:
        refuse_none("on_next", element)
        self.post(self.take)

    def take(self) -> None:
        self.got += 1
        if not self.finished:
            self.then()

    def at_end(self) -> None:
        self.post(self.finish)

    def finish(self) -> None:
        self.finished = True


@listed(BLACKBOX)
class OnAPool(Boxed):
    """Does everything on a pool, in order: it requests one more there for each element."""

    def then(self) -> None:
        self.subscription.request(1)


@listed(BLACKBOX)
class SlowlyOnAPool(Boxed):
    """Takes 50 ms for an element on a pool, and requests the next when it is done."""

    def then(self) -> None:
        time.sleep(PAUSE)
        self.subscription.request(1)


@listed(BLACKBOX)
class SlowBatchesOnAPool(Boxed):
    """Takes 30 ms for an element on a pool, and requests 5 when 5 are done: long after they came."""

    first = 10

    def then(self) -> None:
        time.sleep(0.03)
        if self.got % 5 == 0:
            self.subscription.request(5)


@listed(BLACKBOX)
class ThreadForEachSignal(Boxed):
    """Starts a thread to do what has come."""

    def dispatch(self, work: Signal) -> None:
        on_a_thread(work)

    def then(self) -> None:
        self.subscription.request(1)


@listed(BLACKBOX)
class LeavesElsewhere(Boxed):
    """Cancels after three elements, on a pool."""

    first = 10

    def then(self) -> None:
        if self.got == 3:
            self.subscription.cancel()


@listed(BLACKBOX)
class OnItsLoop(Boxed):
    """Takes its elements in a coroutine, which sleeps a little."""

    def dispatch(self, work: Signal) -> None:
        async def main() -> None:
            await asyncio.sleep(0.005)
            work()

        on_a_thread(lambda: asyncio.run(main()))

    def then(self) -> None:
        self.subscription.request(1)


@listed(BLACKBOX)
class RequestsWhenAsked(Asks):
    """Requests when `ask` is called, and never by itself."""

    def begin(self) -> None: ...

    def ask(self) -> None:
        self.subscription.request(3)


# -- subscribers with a probe ----------------------------------------------------------------------------------


class Told:
    """Requests and cancels as its puppet does, and registers what it receives."""

    def __init__(self, probe: Any) -> None:
        self.probe = probe
        self.subscription: Any = None

    def on_subscribe(self, subscription: Any, /) -> None:
        refuse_none("on_subscribe", subscription)
        if self.subscription is not None:
            subscription.cancel()
            return
        self.subscription = subscription
        self.begin()

    def begin(self) -> None:
        self.probe.register_on_subscribe(Strings(self))

    def on_next(self, element: Any, /) -> None:
        refuse_none("on_next", element)
        self.got(element)

    def got(self, element: Any) -> None:
        self.probe.register_on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        refuse_none("on_error", error)
        self.failed(error)

    def failed(self, error: BaseException) -> None:
        self.probe.register_on_error(error)

    def on_complete(self) -> None:
        self.completed()

    def completed(self) -> None:
        self.probe.register_on_complete()

    def request(self, n: int) -> None:
        self.subscription.request(n)

    def cancel(self) -> None:
        self.subscription.cancel()


class Strings(SubscriberPuppet):
    def __init__(self, subscriber: Any) -> None:
        self.subscriber = subscriber

    def trigger_request(self, elements: int) -> None:
        self.subscriber.request(elements)

    def signal_cancel(self) -> None:
        self.subscriber.cancel()


@listed(WHITEBOX)
class SlowlyTold(Told):
    """Takes 50 ms inside each on_next."""

    def got(self, element: Any) -> None:
        time.sleep(PAUSE)
        super().got(element)


@listed(WHITEBOX)
class LatePuppet(Told):
    """Registers its puppet 150 ms late, on the thread of a timer."""

    def begin(self) -> None:
        later(LATE, super().begin)


class Letters(Told):
    """Does what comes elsewhere, in order: what it receives, and the calls of its puppet."""

    def __init__(self, probe: Any) -> None:
        super().__init__(probe)
        self.lock = threading.Lock()
        self.box: deque[Signal] = deque()  # lock
        self.attended = False  # lock

    post = Boxed.post
    work = Boxed.work
    dispatch = Boxed.dispatch

    def begin(self) -> None:
        self.post(super().begin)  # type: ignore[misc]

    def got(self, element: Any) -> None:
        self.post(partial(super().got, element))  # type: ignore[misc]

    def failed(self, error: BaseException) -> None:
        self.post(partial(super().failed, error))  # type: ignore[misc]

    def completed(self) -> None:
        self.post(super().completed)  # type: ignore[misc]

    def request(self, n: int) -> None:
        self.post(partial(super().request, n))  # type: ignore[misc]

    def cancel(self) -> None:
        self.post(super().cancel)  # type: ignore[misc]


@listed(WHITEBOX)
class LettersOnAPool(Letters):
    """Does everything on a pool, in order; also the calls of its puppet."""


@listed(WHITEBOX)
class SlowLetters(Letters):
    """Takes 20 ms for everything, on a pool."""

    def work(self) -> None:
        time.sleep(0.02)
        Boxed.work(self)  # type: ignore[arg-type]


@listed(WHITEBOX)
class LettersToNewThreads(Letters):
    """Starts a thread to do what has come."""

    def dispatch(self, work: Signal) -> None:
        on_a_thread(work)


@listed(WHITEBOX)
class LettersOnALoop(Letters):
    """Does everything in coroutines."""

    def dispatch(self, work: Signal) -> None:
        async def main() -> None:
            await asyncio.sleep(0)
            work()

        on_a_thread(lambda: asyncio.run(main()))


@listed(WHITEBOX)
class Splits(Told):
    """Requests one element at a time, whatever its puppet says: the next when one has come."""

    wanted = 0

    def request(self, n: int) -> None:
        idle, self.wanted = not self.wanted, min(self.wanted + n, MAX_DEMAND)
        if idle:
            self.subscription.request(1)

    def got(self, element: Any) -> None:
        super().got(element)
        self.wanted -= 1
        if self.wanted > 0:
            self.subscription.request(1)

    def cancel(self) -> None:
        self.wanted = -MAX_DEMAND
        super().cancel()


@listed(WHITEBOX)
class Portions(Told):
    """Requests at most four elements at a time."""

    wanted = 0  # by the puppet, and not requested yet
    open = 0  # requested, and not come yet

    def request(self, n: int) -> None:
        self.wanted = min(self.wanted + n, MAX_DEMAND)
        self.more()

    def more(self) -> None:
        if not self.open and self.wanted > 0:
            self.open = min(4, self.wanted)
            self.wanted -= self.open
            self.subscription.request(self.open)

    def got(self, element: Any) -> None:
        super().got(element)
        self.open -= 1
        self.more()

    def cancel(self) -> None:
        self.wanted = -MAX_DEMAND
        super().cancel()


@listed(WHITEBOX)
class Strict(Told):
    """Drops what it has not requested, and what comes before on_subscribe or after the end."""

    demand = 0
    ended = False

    def request(self, n: int) -> None:
        self.demand += n
        super().request(n)

    def got(self, element: Any) -> None:
        if self.demand > 0 and not self.ended:
            self.demand -= 1
            super().got(element)

    def failed(self, error: BaseException) -> None:
        self.ended = True
        super().failed(error)

    def completed(self) -> None:
        self.ended = True
        super().completed()


@listed(WHITEBOX)
class StrictLetters(Letters):
    """Does everything on a pool, in order, and drops what it has not requested."""

    demand = 0

    def request(self, n: int) -> None:
        def ask() -> None:
            with self.lock:
                self.demand += n
            self.subscription.request(n)

        time.sleep(0)
        self.post(partial(later_letter, self, ask))  # type: ignore[misc]

    def got(self, element: Any) -> None:
        with self.lock:
            known = self.demand > 0
            self.demand -= known
        if known:
            super().got(element)


def later_letter(subscriber: Any, act: Signal) -> None:
    """Do it after 20 ms, on the same thread."""
    time.sleep(0.02)
    act()


@listed(WHITEBOX)
class Coalesces(Letters):
    """Adds up what its puppet requests within 20 ms, and requests the sum."""

    told = 0

    def request(self, n: int) -> None:
        with self.lock:
            first, self.told = not self.told, self.told + n
        if first:
            later(0.02, lambda: self.post(self.ask))  # type: ignore[misc]

    def ask(self) -> None:
        with self.lock:
            told, self.told = self.told, 0
        self.subscription.request(told)


@listed(WHITEBOX)
class Forgets(Told):
    """Drops its subscription when it has cancelled or the stream has ended."""

    class Gone:
        def request(self, n: int) -> None: ...

        def cancel(self) -> None: ...

    def cancel(self) -> None:
        subscription, self.subscription = self.subscription, self.Gone()
        subscription.cancel()

    def completed(self) -> None:
        self.subscription = self.Gone()
        super().completed()

    def failed(self, error: BaseException) -> None:
        self.subscription = self.Gone()
        super().failed(error)


# -- how the kit makes them ------------------------------------------------------------------------------------


class Publishers(PublisherVerification[Any]):
    def __init__(self, made: Any) -> None:
        self.made = made
        self.configure(
            max_elements_from_publisher=getattr(made, "max_elements_from_publisher", None),
            requests_may_be_concurrent=getattr(made, "requests_may_be_concurrent", None),
        )

    def create_publisher(self, elements: int) -> Any:
        return self.made(elements)

    def create_failed_publisher(self) -> Any:
        return self.made(0, FAILURE)

    def create_publisher_failing_after(self, elements: int) -> Any:
        return self.made(elements, FAILURE)


class Processors(IdentityProcessorVerification[Any]):
    def __init__(self, made: Any) -> None:
        self.made = made
        self.configure(max_supported_subscribers=getattr(made, "max_supported_subscribers", None))

    def create_identity_processor(self, buffer_size: int) -> Any:
        return self.made()


class Blackbox(SubscriberBlackboxVerification[Any]):
    def __init__(self, made: Any) -> None:
        self.made = made

    def create_subscriber(self) -> Any:
        return self.made()

    def trigger_request(self, subscriber: Any) -> None:
        getattr(subscriber, "ask", lambda: None)()


class Whitebox(SubscriberWhiteboxVerification[Any]):
    def __init__(self, made: Any) -> None:
        self.made = made

    def create_subscriber(self, probe: Any) -> Any:
        return self.made(probe)


def verification_of(made: type[Any]) -> Verification:
    """The kit for one of these classes, with default settings but for what the class declares."""
    for kind, verification in (
        (PUBLISHERS, Publishers),
        (PROCESSORS, Processors),
        (BLACKBOX, Blackbox),
        (WHITEBOX, Whitebox),
    ):
        if made in kind:
            return verification(made)
    raise ValueError(f"{made.__name__} is not listed")
