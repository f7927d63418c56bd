"""How drains without an executor stand on one another's shoulders, on one thread, and how they come down again.

The problem: where a drain has no executor, the thread that wakes it works it off there and then. What it does may wake
the next drain: a request goes up through all the drains of a flow, and an element comes down through them. A chain of
a thousand drains would need a stack that is a thousand drains deep; so would a million subscriptions in a row (3.3).

The answer: jobs nest up to `LIMIT` on one thread. What would be deeper waits in a queue of the thread, and is worked
off when the stack has come down: by the lowest frame, or by the next one that works off calls. A drain that finds the
queue filled gives way after each of its turns, and takes its place at the end of the queue: so two endless sources on
one thread take turns.

Guarantees: a job that waits is run on the thread that left it, in the order of coming, before the lowest frame
returns, also where that frame raises. All state is the thread's own: no other thread sees it, and it needs no lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import Final

from reactive_runtime._core.runtime import primitives

__all__ = ["LIMIT", "closes", "here", "later", "launch", "others", "refuses", "work"]

LIMIT: Final = 24
"""How many jobs stand on one another on a thread. Each takes five to fifteen frames of Python's stack."""

CLOSING: Final = 8
"""For how many jobs the release of a tree counts: it takes some five frames for each of its operators."""

Job = Callable[[], object]


here = primitives.ThreadLocal()
"""What each thread knows of itself; not there before its first job.

`depth`: how many jobs stand on one another. `waiting`: a deque of the jobs that would have been too many.
`refusing`: the executor that drops a task of a drain now (`drains.drain`), or None.
"""


def _begin() -> None:
    """This thread's first job."""
    here.waiting = deque()
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
    """Run `close`, which releases a tree of operators: what it launches waits sooner, for it stands on a high stack."""
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
    """Run `jobs`, in order, behind what waits on this thread already; where the stack is too deep, later."""
    if not hasattr(here, "depth"):
        _begin()
    here.waiting.extend(jobs)
    if here.depth < LIMIT:
        launch(_in_turn)


def later(job: Job) -> None:
    """Run `job` behind what waits on this thread. Only where `others` has said so: then a frame below will."""
    here.waiting.append(job)


def others() -> bool:
    """Whether jobs wait on this thread for the one that asks to give way."""
    return bool(getattr(here, "waiting", False))


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
        except IndexError:  # a collection, or the handler of a signal, has worked them off since
            return
        job()


def _work_off() -> None:
    """What waits when the lowest frame is about to return. A job that raises does not take the others along."""
    here.depth = 1
    try:
        _in_turn()
    finally:
        here.depth = 0
        if here.waiting:
            _work_off()
