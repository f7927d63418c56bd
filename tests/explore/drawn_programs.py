"""Small programs, drawn by a seeded generator: what threads do with fields, containers, locks and waits, in any order.

They have no purpose and no invariant; what a schedule comes to is what each thread has seen, and the state at the end.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from reactive_runtime.explore import Scenario

__all__ = ["drawn", "drawn_looks"]


class Default:
    """What an object has where it has none of its own."""

    value = 0


class Inherits(Default):
    pass


class Things:
    """What the threads share."""

    def __init__(self) -> None:
        Default.value = 0
        if "value" in vars(Inherits):
            del Inherits.value
        self.object = Inherits()
        self.others: list[int] = [0]
        self.x = self.y = 0
        self.flag = False
        self.items: list[int] = []
        self.table: dict[int, int] = {}
        self.locks = [threading.Lock(), threading.Lock()]
        self.condition = threading.Condition()
        self.event = threading.Event()
        self.semaphore = threading.Semaphore(1)
        self.pool = ThreadPoolExecutor(2)
        self.last: threading.Thread | None = None
        self.future: Future[Any] | None = None
        self.seen: dict[int, list[Any]] = {number: [] for number in range(4)}

    def last_two(self) -> list[int]:
        return [self.y, self.others[-1]]


def load(things: Things, me: int, which: int) -> None:
    things.seen[me].append(things.x if which else things.y)


def store(things: Things, me: int, which: int) -> None:
    if which:
        things.x = me
    else:
        things.y = me


def add(things: Things, me: int, which: int) -> None:
    if which:
        things.x += 1
    else:
        things.y += 1


def append(things: Things, me: int, which: int) -> None:
    things.items.append(me)


def length(things: Things, me: int, which: int) -> None:
    things.seen[me].append(len(things.items))


def put(things: Things, me: int, which: int) -> None:
    things.table[which] = me


def get(things: Things, me: int, which: int) -> None:
    things.seen[me].append(things.table.get(which))


def lock(things: Things, me: int, which: int) -> None:
    with things.locks[which]:
        pass


def try_lock(things: Things, me: int, which: int) -> None:
    if got := things.locks[which].acquire(blocking=False):
        things.locks[which].release()
    things.seen[me].append(got)


def wait(things: Things, me: int, which: int) -> None:
    with things.condition:
        if not things.flag:
            things.condition.wait()


def wait_a_second(things: Things, me: int, which: int) -> None:
    with things.condition:
        things.seen[me].append(things.condition.wait(1))


def notify(things: Things, me: int, which: int) -> None:
    with things.condition:
        things.flag = True
        things.condition.notify(1 + which)


def set_or_clear(things: Things, me: int, which: int) -> None:
    if which:
        things.event.set()
    else:
        things.event.clear()


def is_set(things: Things, me: int, which: int) -> None:
    things.seen[me].append(things.event.is_set())


def wait_for_event(things: Things, me: int, which: int) -> None:
    things.seen[me].append(things.event.wait(1 if which else None))


def semaphore(things: Things, me: int, which: int) -> None:
    if got := things.semaphore.acquire(timeout=1 if which else None):
        things.semaphore.release()
    things.seen[me].append(got)


def start(things: Things, me: int, which: int) -> None:
    things.last = threading.Thread(target=lambda: store(things, 10 * me, 1))
    things.last.start()


def is_alive(things: Things, me: int, which: int) -> None:
    if things.last is not None:
        things.seen[me].append(things.last.is_alive())


def submit(things: Things, me: int, which: int) -> None:
    things.future = things.pool.submit(store, things, 10 * me, 1)


def result(things: Things, me: int, which: int) -> None:
    if things.future is not None:
        things.seen[me].append(things.future.result(1 if which else None))


OPERATIONS = [
    load, store, add, append, length, put, get, lock, try_lock, wait, wait_a_second, notify, set_or_clear, is_set,
    wait_for_event, semaphore, start, is_alive, submit, result,
]  # fmt: skip


def compare(things: Things, me: int, which: int) -> None:
    things.seen[me].append(things.items <= things.others if which else things.items == things.others)


def compare_three(things: Things, me: int, which: int) -> None:
    things.seen[me].append(things.items <= things.others <= [things.x if which else 1])


def concatenate(things: Things, me: int, which: int) -> None:
    things.seen[me] += things.items + (things.others if which else [things.x])


def concatenate_later(things: Things, me: int, which: int) -> None:
    things.seen[me].append(things.items + things.last_two())


def find(things: Things, me: int, which: int) -> None:
    things.seen[me].append(things.x in (things.items if which else things.table))


def extend(things: Things, me: int, which: int) -> None:
    if which:
        things.items.extend(things.others)
    else:
        things.others += things.items


def append_other(things: Things, me: int, which: int) -> None:
    things.others.append(me)


def both_at_once(things: Things, me: int, which: int) -> None:
    things.seen[me] += zip(things.items, things.others, strict=False)


def load_from_class(things: Things, me: int, which: int) -> None:
    things.seen[me].append(things.object.value if which else getattr(things.object, "value"))  # noqa: B009


def store_in_class(things: Things, me: int, which: int) -> None:
    if which:
        Default.value = me
    else:
        Inherits.value = me


def store_in_object(things: Things, me: int, which: int) -> None:
    if which:
        things.object.value = me
    else:
        things.object.__dict__.pop("value", None)


LOOKS = [
    compare, compare_three, concatenate, concatenate_later, find, extend, both_at_once, load_from_class,
]  # fmt: skip
"""Those that look into several things at once."""

CHANGES = [store, append, append_other, store_in_class, store_in_object]
"""Those that change one of these things."""

Step = tuple[Callable[[Things, int, int], None] | None, int, list[Any]]
"""What is done, with which of two; None: what is in the list, with a lock."""


def drawn(seed: int) -> Scenario[Things]:
    """The program of that number."""
    rng = random.Random(seed)
    threads = rng.choice((2, 2, 3))
    longest = rng.randint(2, 4) if threads == 2 else rng.randint(1, 2)

    def step(depth: int) -> Step:
        which = rng.randrange(2)
        if depth < 2 and rng.random() < 0.1:
            return None, which, [step(depth + 1) for _ in range(rng.randint(1, 2))]
        return rng.choice(OPERATIONS), which, []

    bodies = [[step(0) for _ in range(rng.randint(1, longest))] for _ in range(threads)]
    actors = {f"t{number}": [actor(number, body)] for number, body in enumerate(bodies)}
    return Scenario(Things, actors, outcome=outcome, name=f"drawn {seed}")


def drawn_looks(seed: int) -> Scenario[Things]:
    """The program of that number in which one thread looks into several things, and one or two change them."""
    rng = random.Random(seed)
    bodies: list[list[Step]] = [[(rng.choice(LOOKS), rng.randrange(2), [])]]
    for most in rng.choice([(3,), (2, 1)]):
        bodies.append([(rng.choice(CHANGES), rng.randrange(2), []) for _ in range(rng.randint(1, most))])
    actors = {f"t{number}": [actor(number, body)] for number, body in enumerate(bodies)}
    return Scenario(Things, actors, outcome=outcome, name=f"drawn looks {seed}")


def actor(number: int, body: list[Step]) -> Callable[[Things], None]:
    def act(things: Things) -> None:
        run(things, number, body)

    return act


def run(things: Things, me: int, body: list[Step]) -> None:
    for operation, which, inside in body:
        if operation is not None:
            operation(things, me, which)
        else:
            with things.locks[which]:
                run(things, me, inside)


def outcome(things: Things) -> Any:
    return things.x, things.y, things.items, things.others, things.table, things.seen
