"""Twenty programs that fail only if time passes early, as on a busy machine, and a twin of each that never fails.

In each, a thread waits with a timeout, sleeps, sets a timer or reads the clock; another one has all it needs to be done
in time, unless it is preempted for that long.
"""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress
from typing import Any

__all__ = ["PROGRAMS"]


class AcquireUnasked:
    """The result of `acquire(timeout=…)` is not looked at, and the lock is released in any case."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.balance = 0

    def critical(self) -> None:
        self.lock.acquire(timeout=0.1)
        self.balance += 1
        self.lock.release()

    def actor_a(self) -> None:
        self.critical()

    def actor_b(self) -> None:
        self.critical()


class AcquireAsked(AcquireUnasked):
    def critical(self) -> None:
        if self.lock.acquire(timeout=0.1):
            self.balance += 1
            self.lock.release()


class SemaphoreUnasked:
    """The same of a semaphore: more are inside than it lets in."""

    def __init__(self) -> None:
        self.semaphore = threading.Semaphore(1)
        self.guard = threading.Lock()
        self.inside = 0

    def enter(self) -> bool:
        self.semaphore.acquire(timeout=1)
        return True

    def work(self) -> None:
        if self.enter():
            with self.guard:
                self.inside += 1
                assert self.inside == 1, "two are inside"
            with self.guard:
                self.inside -= 1
            self.semaphore.release()

    def actor_a(self) -> None:
        self.work()

    def actor_b(self) -> None:
        self.work()


class SemaphoreAsked(SemaphoreUnasked):
    def enter(self) -> bool:
        return self.semaphore.acquire(timeout=1)


class EventUnasked:
    """`Event.wait(0.5)` returns, so the answer is taken to be there."""

    def __init__(self) -> None:
        self.there = threading.Event()
        self.answer: int | None = None

    def actor_answers(self) -> None:
        self.answer = 42
        self.there.set()

    def actor_asks(self) -> None:
        self.there.wait(0.5)
        assert self.answer == 42, "no answer"


class EventAsked(EventUnasked):
    def actor_asks(self) -> None:
        if self.there.wait(0.5):
            assert self.answer == 42


class WaitOnce:
    """A condition is waited for once, and its predicate is not looked at again."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.elements: list[int] = []

    def actor_puts(self) -> None:
        with self.condition:
            self.elements.append(1)
            self.condition.notify()

    def actor_takes(self) -> None:
        with self.condition:
            if not self.elements:
                self.condition.wait(1)
            self.elements.pop()


class WaitFor(WaitOnce):
    def actor_takes(self) -> None:
        with self.condition:
            if self.condition.wait_for(lambda: self.elements, 1):
                self.elements.pop()


class EmptyIsTheEnd:
    """A consumer takes `queue.Empty` for the end of all elements."""

    def __init__(self) -> None:
        self.queue: queue.Queue[int | None] = queue.Queue()
        self.taken: list[int] = []

    def actor_puts(self) -> None:
        for element in (1, 2, None):
            self.queue.put(element)

    def actor_takes(self) -> None:
        while True:
            try:
                element = self.queue.get(timeout=1)
            except queue.Empty:
                break
            if element is None:
                break
            self.taken.append(element)

    def at_end(self) -> None:
        assert self.taken == [1, 2], f"{self.taken} were taken"


class EmptyIsNotTheEnd(EmptyIsTheEnd):
    def actor_takes(self) -> None:
        while True:
            try:
                element = self.queue.get(timeout=1)
            except queue.Empty:
                continue
            if element is None:
                break
            self.taken.append(element)


class FullIsLost:
    """A producer drops what a full queue did not take in time, and says nothing of it."""

    def __init__(self) -> None:
        self.queue: queue.Queue[int] = queue.Queue(1)
        self.lost: list[int] = []
        self.taken: list[int] = []

    def drop(self, element: int) -> None:
        pass

    def actor_puts(self) -> None:
        for element in (1, 2):
            try:
                self.queue.put(element, timeout=1)
            except queue.Full:
                self.drop(element)
        self.queue.put(0)

    def actor_takes(self) -> None:
        while (element := self.queue.get()) != 0:
            self.taken.append(element)

    def at_end(self) -> None:
        assert sorted(self.taken + self.lost) == [1, 2], "one is lost"


class FullIsReported(FullIsLost):
    def drop(self, element: int) -> None:
        self.lost.append(element)


class JoinUnasked:
    """`join(timeout)` returns, so the thread is taken to have ended."""

    def __init__(self) -> None:
        self.result: int | None = None

    def compute(self) -> None:
        self.result = 1

    def actor_a(self) -> None:
        thread = threading.Thread(target=self.compute)
        thread.start()
        thread.join(0.2)
        self.look(thread)

    def look(self, thread: threading.Thread) -> None:
        assert self.result == 1, "no result"


class JoinAsked(JoinUnasked):
    def look(self, thread: threading.Thread) -> None:
        if not thread.is_alive():
            assert self.result == 1


class TimerWins:
    """A timer that is cancelled as soon as the work is done is taken never to fire."""

    def __init__(self) -> None:
        self.done = False
        self.failed = False

    def alarm(self) -> None:
        self.failed = True

    def actor_a(self) -> None:
        timer = threading.Timer(0.3, self.alarm)
        timer.start()
        self.done = True
        timer.cancel()

    def at_end(self) -> None:
        assert not (self.done and self.failed), "done, and failed"


class TimerLooks(TimerWins):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def alarm(self) -> None:
        with self.lock:
            if not self.done:
                self.failed = True

    def actor_a(self) -> None:
        timer = threading.Timer(0.3, self.alarm)
        timer.start()
        with self.lock:
            if not self.failed:
                self.done = True
        timer.cancel()


class SleepInsteadOfJoin:
    """A sleep is taken to be long enough for another thread's work."""

    def __init__(self) -> None:
        self.ready = False
        self.event = threading.Event()

    def actor_works(self) -> None:
        self.ready = True
        self.event.set()

    def actor_uses(self) -> None:
        time.sleep(0.5)
        assert self.ready, "not ready"


class EventInsteadOfSleep(SleepInsteadOfJoin):
    def actor_uses(self) -> None:
        self.event.wait()
        assert self.ready


class LeaseUnfenced:
    """The holder of a lease looks at its end, and then writes: the lease may be over when it does."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.owner = ""
        self.until = 0.0
        self.log: list[str] = []

    def lease(self, name: str) -> bool:
        with self.lock:
            if self.owner and time.monotonic() < self.until:
                return False
            self.owner, self.until = name, time.monotonic() + 0.5
            return True

    def write(self, name: str) -> None:
        if time.monotonic() < self.until:
            time.sleep(0.01)  # the way to the store
            self.stored(name)

    def stored(self, name: str) -> None:
        with self.lock:
            self.log.append(name)
            assert self.owner == name, f"{name} writes under the lease of {self.owner}"

    def actor_a(self) -> None:
        if self.lease("a"):
            self.write("a")

    def actor_b(self) -> None:
        if self.lease("b"):
            self.write("b")


class LeaseFenced(LeaseUnfenced):
    def stored(self, name: str) -> None:
        with self.lock:  # the store refuses the holder of an older lease
            if self.owner == name:
                self.log.append(name)


class CacheLooksTwice:
    """An entry is looked at, and taken at the next line: meanwhile it may have expired."""

    def __init__(self) -> None:
        self.entries = {"key": (1, time.monotonic() + 0.5)}

    def alive(self, key: str) -> Any:
        value, until = self.entries[key]
        if time.monotonic() >= until:
            raise KeyError(key)
        return value

    def get(self, key: str) -> Any:
        try:
            self.alive(key)
        except KeyError:
            return None
        return self.alive(key)

    def actor_a(self) -> None:
        self.get("key")


class CacheLooksOnce(CacheLooksTwice):
    def get(self, key: str) -> Any:
        try:
            return self.alive(key)
        except KeyError:
            return None


class NegativeRest:
    """The rest of the time may be below zero when it is given to `acquire`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def rest(self, end: float) -> float:
        return end - time.monotonic()

    def actor_a(self) -> None:
        end = time.monotonic() + 0.5
        if self.lock.acquire(timeout=self.rest(end)):
            self.lock.release()


class RestOrNothing(NegativeRest):
    def rest(self, end: float) -> float:
        return max(0.0, end - time.monotonic())


class LateResult:
    """A result that did not come in time is replaced by a default; the late one finds the place taken."""

    def __init__(self) -> None:
        self.future: Future[int] = Future()

    def answer(self, value: int) -> None:
        self.future.set_result(value)

    def actor_computes(self) -> None:
        self.answer(1)

    def actor_asks(self) -> None:
        try:
            self.future.result(timeout=0.3)
        except NotInTime:
            self.answer(0)


class FirstResult(LateResult):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def answer(self, value: int) -> None:
        with self.lock:
            if not self.future.done():
                self.future.set_result(value)


class SentAgain:
    """A request without an answer in time is sent again, and booked twice."""

    def __init__(self) -> None:
        self.requests: queue.Queue[tuple[int, Any] | None] = queue.Queue()
        self.booked: list[int] = []

    def book(self, number: int) -> None:
        self.booked.append(number)

    def actor_serves(self) -> None:
        while (request := self.requests.get()) is not None:
            number, answered = request
            self.book(number)
            answered.set()

    def actor_asks(self) -> None:
        for _ in range(2):
            answered = threading.Event()
            self.requests.put((7, answered))
            if answered.wait(0.2):
                break
        self.requests.put(None)

    def at_end(self) -> None:
        assert self.booked == [7], f"booked: {self.booked}"


class SentAgainKnown(SentAgain):
    def book(self, number: int) -> None:
        if number not in self.booked:
            self.booked.append(number)


class TwoWorkers:
    """A worker that gave no sign in time is replaced, and is still at work."""

    def __init__(self) -> None:
        self.sign = threading.Event()
        self.lock = threading.Lock()
        self.term = 0
        self.written: list[int] = []

    def work(self, term: int) -> None:
        with self.lock:
            if self.may_write(term):
                self.written.append(term)

    def may_write(self, term: int) -> bool:
        return True

    def actor_worker(self) -> None:
        self.sign.set()
        self.work(0)

    def actor_monitor(self) -> None:
        if not self.sign.wait(0.5):
            with self.lock:
                self.term = 1
            self.work(1)

    def at_end(self) -> None:
        assert len(self.written) == 1, f"written: {self.written}"


class TwoTerms(TwoWorkers):
    def may_write(self, term: int) -> bool:
        return term == self.term and not self.written


class BrokenBarrier:
    """A barrier with a timeout breaks for all that wait at it, and one of them is not prepared."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(2)

    def actor_a(self) -> None:
        with suppress(threading.BrokenBarrierError):
            self.barrier.wait(1)

    def actor_b(self) -> None:
        self.barrier.wait()


class BarrierForBoth(BrokenBarrier):
    def actor_b(self) -> None:
        with suppress(threading.BrokenBarrierError):
            self.barrier.wait()


class FlushedTwice:
    """A batch is flushed when it is full, and by a timer: the one that was set for it may be under way."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.batch: list[int] = []
        self.flushed: list[list[int]] = []

    def flush(self) -> None:
        batch = self.batch
        self.flushed.append(list(batch))
        with self.lock:
            self.batch = []

    def actor_a(self) -> None:
        self.batch.append(1)
        timer = threading.Timer(1, self.flush)
        timer.start()
        self.batch.append(2)
        timer.cancel()
        self.flush()

    def at_end(self) -> None:
        assert sorted(element for batch in self.flushed for element in batch) == [1, 2], f"{self.flushed}"


class FlushedOnce(FlushedTwice):
    def flush(self) -> None:
        with self.lock:
            batch, self.batch = self.batch, []
            self.flushed.append(batch)

    def actor_a(self) -> None:
        with self.lock:
            self.batch.append(1)
        timer = threading.Timer(1, self.flush)
        timer.start()
        with self.lock:
            self.batch.append(2)
        timer.cancel()
        self.flush()


class TwoReadings:
    """A bucket adds what has come since its last reading, and reads the clock once more to remember it."""

    def __init__(self) -> None:
        self.begun = self.last = time.monotonic()
        self.tokens = 0.0

    def fill(self) -> None:
        self.tokens += time.monotonic() - self.last
        self.last = time.monotonic()

    def actor_a(self) -> None:
        self.fill()

    def at_end(self) -> None:
        assert self.tokens == self.last - self.begun, "time is lost"


class OneReading(TwoReadings):
    def fill(self) -> None:
        now = time.monotonic()
        self.tokens += now - self.last
        self.last = now


class HandedToOneWhoLeft:
    """A pool hands a connection to the first that waits, which has just given up: the connection is lost."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waiting: list[tuple[threading.Event, list[str]]] = []
        self.free: list[str] = []

    def checkout(self) -> str | None:
        mine: tuple[threading.Event, list[str]] = (threading.Event(), [])
        with self.lock:
            if self.free:
                return self.free.pop()
            self.waiting.append(mine)
        if mine[0].wait(0.2):
            return mine[1][0]
        return self.given_up(mine)

    def given_up(self, mine: tuple[threading.Event, list[str]]) -> str | None:
        with self.lock:
            if mine in self.waiting:
                self.waiting.remove(mine)
        return None

    def checkin(self, connection: str) -> None:
        with self.lock:
            if self.waiting:
                event, place = self.waiting.pop(0)
                place.append(connection)
            else:
                self.free.append(connection)
                return
        event.set()

    def actor_uses(self) -> None:
        connection = self.checkout()
        if connection is not None:
            self.checkin(connection)

    def actor_returns(self) -> None:
        self.checkin("connection")

    def at_end(self) -> None:
        assert self.free == ["connection"], "the connection is lost"


class HandedBack(HandedToOneWhoLeft):
    def given_up(self, mine: tuple[threading.Event, list[str]]) -> str | None:
        with self.lock:
            if mine in self.waiting:
                self.waiting.remove(mine)
                return None
        return mine[1][0]


class ClosedInUse:
    """A connection that was idle for long is closed, though it has just been taken."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.open = True
        self.used = False

    def idle(self) -> None:
        if not self.used:
            self.open = False

    def use(self) -> None:
        if self.open:
            self.used = True
            assert self.open, "closed while it is used"

    def actor_a(self) -> None:
        timer = threading.Timer(0.6, self.idle)
        timer.start()
        self.use()
        timer.cancel()


class ClosedOrUsed(ClosedInUse):
    def idle(self) -> None:
        with self.lock:
            super().idle()

    def use(self) -> None:
        with self.lock:
            super().use()


PROGRAMS: dict[type[Any], type[Any]] = {
    AcquireUnasked: AcquireAsked,
    SemaphoreUnasked: SemaphoreAsked,
    EventUnasked: EventAsked,
    WaitOnce: WaitFor,
    EmptyIsTheEnd: EmptyIsNotTheEnd,
    FullIsLost: FullIsReported,
    JoinUnasked: JoinAsked,
    TimerWins: TimerLooks,
    SleepInsteadOfJoin: EventInsteadOfSleep,
    LeaseUnfenced: LeaseFenced,
    CacheLooksTwice: CacheLooksOnce,
    NegativeRest: RestOrNothing,
    LateResult: FirstResult,
    SentAgain: SentAgainKnown,
    TwoWorkers: TwoTerms,
    BrokenBarrier: BarrierForBoth,
    FlushedTwice: FlushedOnce,
    TwoReadings: OneReading,
    HandedToOneWhoLeft: HandedBack,
    ClosedInUse: ClosedOrUsed,
}
"""Each with its twin."""
