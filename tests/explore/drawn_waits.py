"""Small programs of waits with timeouts, sleeps, timers and readings of the clock, drawn by a seeded generator.

Each draws from about twenty operations, some of them under a lock. A program has no purpose: its outcome is what each
thread has seen, the state, and the clock at the end.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from functools import partial
from typing import Any

from reactive_runtime.explore import Scenario

__all__ = ["drawn"]

SECONDS = (0.3, 0.5, 1.0, 2.0)


class Things:
    """The state that the threads share."""

    def __init__(self) -> None:
        self.x = self.y = 0
        self.flag = False
        self.locks: list[Any] = [threading.Lock(), threading.RLock()]
        self.condition = threading.Condition()
        self.event = threading.Event()
        self.semaphore = threading.Semaphore(1)
        self.queue: queue.Queue[int] = queue.Queue(1)
        self.future: Future[int] = Future()
        self.thread: threading.Thread | None = None
        self.timer: threading.Timer | None = None
        self.seen: dict[int, list[Any]] = {number: [] for number in range(3)}

    def outcome(self) -> Any:
        return self.x, self.y, self.seen, round(time.monotonic(), 3)


def store(things: Things, me: int, seconds: float) -> None:
    things.y = me + 1


def add(things: Things, me: int, seconds: float) -> None:
    things.x += 1


def take(things: Things, me: int, seconds: float) -> Any:
    if got := things.locks[0].acquire(timeout=seconds):
        things.locks[0].release()
    return got


def take_again(things: Things, me: int, seconds: float) -> None:
    for _ in range(2):
        with things.locks[0]:
            pass


def attempt(things: Things, me: int, seconds: float) -> Any:
    if got := things.locks[1].acquire(blocking=False):
        things.locks[1].release()
    return got


def wait(things: Things, me: int, seconds: float) -> bool:
    with things.condition:
        return things.condition.wait(seconds)


def wait_for(things: Things, me: int, seconds: float) -> bool:
    with things.condition:
        return things.condition.wait_for(lambda: things.flag, seconds)


def notify(things: Things, me: int, seconds: float) -> None:
    with things.condition:
        things.flag = True
        things.condition.notify()


def sleep(things: Things, me: int, seconds: float) -> None:
    time.sleep(seconds)


def set_event(things: Things, me: int, seconds: float) -> None:
    things.event.set()


def wait_event(things: Things, me: int, seconds: float) -> bool:
    return things.event.wait(seconds)


def acquire(things: Things, me: int, seconds: float) -> bool:
    return things.semaphore.acquire(timeout=seconds)


def release(things: Things, me: int, seconds: float) -> None:
    things.semaphore.release()


def put(things: Things, me: int, seconds: float) -> str:
    try:
        things.queue.put(me, timeout=seconds)
    except queue.Full:
        return "full"
    return "put"


def get(things: Things, me: int, seconds: float) -> Any:
    try:
        return things.queue.get(timeout=seconds)
    except queue.Empty:
        return "empty"


def read_clock(things: Things, me: int, seconds: float) -> float:
    return round(time.monotonic(), 6)


def until_deadline(things: Things, me: int, seconds: float) -> str:
    end = time.monotonic() + seconds
    with things.condition:
        while not things.flag:
            left = end - time.monotonic()
            if left <= 0:
                return "late"
            things.condition.wait(left)
    return "in time"


def answer(things: Things, me: int, seconds: float) -> str:
    try:
        things.future.set_result(me)
    except Exception as error:
        return type(error).__name__
    return "answered"


def ask(things: Things, me: int, seconds: float) -> Any:
    try:
        return things.future.result(seconds)
    except NotInTime:
        return "no answer"


def begin(things: Things, me: int, seconds: float) -> None:
    things.thread = threading.Thread(target=store, args=(things, 10 * me, seconds))
    things.thread.start()


def join(things: Things, me: int, seconds: float) -> Any:
    thread = things.thread
    if thread is None:
        return None
    try:
        thread.join(seconds)
    except RuntimeError:
        return "not begun"
    return thread.is_alive()


def set_timer(things: Things, me: int, seconds: float) -> None:
    things.timer = threading.Timer(seconds, store, args=(things, 10 * me, seconds))
    things.timer.start()


def cancel(things: Things, me: int, seconds: float) -> None:
    if things.timer is not None:
        things.timer.cancel()


OPERATIONS: Sequence[Callable[[Things, int, float], Any]] = (
    store, add, take, take_again, attempt, wait, wait_for, notify, notify, sleep, sleep, set_event, wait_event, acquire,
    release, put, get, read_clock, until_deadline, answer, ask, begin, join, set_timer, cancel,
)  # fmt: skip

Part = tuple[Any, float, list[Any]]
"""An operation, or None for a lock; seconds; and what is done under the lock."""


def drawn(seed: int) -> Scenario[Things]:
    """The program of that seed: two or three threads, of one to three operations each."""
    rng = random.Random(seed)
    threads = rng.choice((2, 2, 3))
    longest = rng.randint(1, 3) if threads == 2 else rng.randint(1, 2)
    pool = rng.sample(OPERATIONS, rng.randint(3, 7)) if rng.random() < 0.6 else OPERATIONS

    def part(depth: int) -> Part:
        seconds = rng.choice(SECONDS)
        if depth < 2 and rng.random() < 0.12:
            return None, seconds, [part(depth + 1) for _ in range(rng.randint(1, 2))]
        return rng.choice(pool), seconds, []

    actors: dict[str, Any] = {}
    for me in range(threads):
        parts = [part(0) for _ in range(rng.randint(1, longest))]
        actors[f"thread {me}"] = [partial(run, me=me, parts=parts)]
    return Scenario(Things, actors, outcome=Things.outcome, name=f"drawn {seed}", parts=[run, *OPERATIONS])


def run(things: Things, me: int, parts: list[Part]) -> None:
    """Do the parts, and keep what they return."""
    for operation, seconds, inside in parts:
        if operation is None:
            with things.locks[1]:
                run(things, me, inside)
        elif (seen := operation(things, me, seconds)) is not None:
            things.seen[me].append(seen)
