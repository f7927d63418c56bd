"""Bounds how deep drains without an executor stand on one another, on the stack of one thread.

The problem: where a drain has no executor, the thread that wakes it works it off there and then. That may wake the next
drain: a request goes up through all the drains of a flow, and an element comes down through them. A chain of a thousand
drains would need a stack that is a thousand drains deep; so would a million subscriptions in a row (3.3).

The answer: jobs nest up to `LIMIT` on one thread. A deeper job waits in a queue of the thread. When the stack has come
down, the lowest frame runs it, or the next one that works off calls. A drain that finds a job in the queue gives way
after each of its turns, and takes its place at the end of the queue: so two endless sources on one thread take turns.

A loop over a flow (`for`, `async for`) runs the flow's sources in the same way, but must come back for its elements,
which only its own thread can take. So a drain of its flow gives way as soon as the loop is awake, and the loop keeps it
for the next element (`work_for`).

Guarantees: a job that waits runs on the thread that left it, in the order of coming, before the lowest frame returns,
also where that frame raises; except for a drain that a loop keeps, which runs when the loop goes on, or is closed.
All state is the thread's own: no other thread sees it, and it needs no lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Any, Final, Protocol

from reactive_runtime._core.runtime import primitives

__all__ = [
    "LIMIT",
    "Loop",
    "below",
    "closes",
    "gave_way",
    "here",
    "later",
    "launch",
    "looped",
    "others",
    "refuses",
    "wanted",
    "work",
    "work_for",
]

LIMIT: Final = 24
"""How many jobs nest on a thread, at most. Each takes five to fifteen frames of Python's stack."""

CLOSING: Final = 8
"""For how many jobs the release of a tree counts: it takes some five frames for each of its operators."""

Job = Callable[[], object]


class Loop(Protocol):
    """A loop over a flow, whose thread runs the sources of the flow until there is an element for it."""

    kept: deque[Any]
    """The drains of its flow that have given way on its thread, with more to do."""

    def awake(self) -> bool:
        """Whether there is something for the loop to pull."""
        ...

    def late(self) -> bool:
        """Whether the loop has to look around, although there is nothing to pull."""
        ...

    def keeps(self, drain: Any) -> bool:
        """Whether the drain is one of its flow."""
        ...


here = primitives.ThreadLocal()
"""The state of each thread; not there before its first job.

`depth`: how many jobs nest. `waiting`: a deque of the jobs that would have nested too deep.
`loop`: the `Loop` that waits for the jobs, or None.
`refusing`: the executor that drops a task of a drain now (`drains.drain`), or None.
"""


def _begin() -> None:
    """This thread's first job."""
    here.waiting = deque()
    here.loop = None
    here.refusing = getattr(here, "refusing", None)
    here.depth = 0  # last: where it is, the others are


def launch(job: Job) -> None:
    """Run `job` here and now; or, where the stack is too deep for it, when it has come down."""
    local = here
    try:
        depth: int = local.depth
    except AttributeError:
        _begin()
        depth = 0
    if depth >= LIMIT:
        local.waiting.append(job)
        return
    local.depth = depth + 1
    try:
        job()
    finally:
        local.depth = depth
        if not depth and local.waiting:
            _work_off()


def closes(close: Job) -> None:
    """Run `close`, which releases a tree of operators. Jobs that it launches wait sooner: it needs a high stack."""
    if not hasattr(here, "depth"):
        _begin()
    depth: int = here.depth
    here.depth = depth + CLOSING
    try:
        close()
    finally:
        here.depth = depth
        if not depth and here.waiting:
            _work_off()


def work(jobs: Iterable[Job]) -> None:
    """Run `jobs`, in order, behind those that wait on this thread already; where the stack is too deep, later."""
    if not hasattr(here, "depth"):
        _begin()
    here.waiting.extend(jobs)
    if here.depth < LIMIT:
        launch(_in_turn)


def work_for(loop: Loop, jobs: Iterable[Job]) -> None:
    """Run `jobs`, and then the drains that `loop` keeps, in turn, until it is awake, or has to look around."""
    if not hasattr(here, "depth"):
        _begin()
    depth, before = here.depth, here.loop
    here.depth, here.loop = depth + 1, loop
    here.waiting.extend(jobs)
    kept = loop.kept
    try:
        _in_turn()
        while kept and not loop.awake():
            for _ in range(len(kept)):
                kept.popleft().run()
                _in_turn()
                if loop.awake():
                    return
            if loop.late():
                return
    finally:
        here.depth, here.loop = depth, before
        if not depth and here.waiting:
            _work_off()


def later(job: Job) -> None:
    """Have a frame below run `job`, behind the jobs that wait on this thread. Only where `others` is true."""
    here.waiting.append(job)


def below(job: Job) -> None:
    """Have the lowest frame run `job`, when the jobs that nest on it are done; now, where there is none."""
    if getattr(here, "depth", 0):
        here.waiting.append(job)
    else:
        launch(job)


def gave_way(drain: Any) -> None:
    """Have a frame below run `drain` on; or have the loop keep it. Only where `others` or `wanted` is true."""
    loop = here.loop
    if loop is not None and loop.keeps(drain):
        loop.kept.append(drain)
    else:
        here.waiting.append(drain.run)


def others() -> bool:
    """Whether jobs wait on this thread for the one that asks to give way."""
    local = here
    try:
        return bool(local.waiting or (local.loop is not None and local.loop.kept))
    except AttributeError:  # before its first job
        return False


def looped() -> bool:
    """Whether a loop waits for the jobs of this thread."""
    return getattr(here, "loop", None) is not None


def wanted() -> bool:
    """Whether a loop waits for the jobs of this thread, and now has to come back."""
    loop = getattr(here, "loop", None)
    return loop is not None and (loop.awake() or loop.late())


def refuses(executor: Executor) -> bool:
    """Whether that executor drops a task of a drain now, on this thread."""
    try:
        return here.refusing is executor
    except AttributeError:  # before its first job
        return False


def _in_turn() -> None:
    waiting = here.waiting
    while waiting:
        try:
            job = waiting.popleft()
        except IndexError:  # the garbage collector, or the handler of a signal, has worked them off since
            return
        job()


def _work_off() -> None:
    """Run the jobs that wait when the lowest frame is about to return; also those behind a job that raises."""
    here.depth = 1
    try:
        _in_turn()
    finally:
        here.depth = 0
        if here.waiting:
            _work_off()
