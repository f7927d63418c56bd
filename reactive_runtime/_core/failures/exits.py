"""An *exit*: a user's code raises it, and it is no Exception.

Exits are `SystemExit`, `KeyboardInterrupt`, `GeneratorExit`, asyncio's `CancelledError`, and a user's own
`BaseException`.

An exit ends the stream it came out of as an error does: the subscriber gets `on_error`, with a RuntimeError whose cause
is the exit (`assembly.an_exception`); the hook gets it if it can't be signalled. Whether it goes on up the stack after
that depends on the ground it is on:

- *The caller's.* A user has called `subscribe`, `request`, `emit`, `block`, and the code runs inside of that call. The
  exit goes on up, to the user: an interrupt is never swallowed. Each drain on its way closes.
- *A stream's.* A task of a drain, a timer, the event loop, a callback of a future. The exit goes no further: there it
  would kill a pool's worker, stop the loop, or leave other streams on the same thread without their signals.

A KeyboardInterrupt on the main thread is Ctrl-C, and always goes on up.

At the end of the interpreter pools refuse tasks. Then a stream under way goes on where it is; see `going_on`. The calls
on an executor, `submitted` and `taken_back`, are here too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, Executor, Future
from concurrent.futures import thread as pools
from typing import Any, Final, TypeVar

from reactive_runtime._core.failures.assembly import caused
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.sources.naming import executor_name
from reactive_runtime._support.shown import shown
from reactive_runtime.errors import RejectedError

__all__ = [
    "Unwinding",
    "cancelled_in_queue",
    "contained",
    "each",
    "goes_up",
    "going_on",
    "handed_over",
    "interrupts",
    "is_ending",
    "not_run_by",
    "refused_by",
    "submitted",
    "taken_back",
]

R = TypeVar("R")


here = primitives.ThreadLocal()
"""The state of each thread: `streams`, whether it is at work for a stream; not there before its first call."""


class Unwinding(BaseException):
    """The thread is taken down: it signals and reports nothing, and closes everything."""


def goes_up(error: BaseException) -> bool:
    """Whether `error` goes on up, once its stream has ended: an exit does, on the caller's ground."""
    if isinstance(error, Exception):
        return False
    return interrupts(error) or not getattr(here, "streams", False)


def interrupts(error: BaseException) -> bool:
    """Whether `error` goes on up on any ground: Ctrl-C does, and an `Unwinding`."""
    if isinstance(error, KeyboardInterrupt):
        return primitives.current_thread() is primitives.main_thread()
    return isinstance(error, Unwinding)


def contained(call: Callable[..., R], *args: Any) -> R:
    """Call on a stream's ground: exits of the streams that run inside go no further."""
    local = here
    # No `except`, and always: what a call does must not depend on what the thread did before (the explorer).
    before: bool = getattr(local, "streams", False)
    local.streams = True
    try:
        return call(*args)
    finally:
        local.streams = before


def each(calls: Iterable[Callable[[], object]]) -> None:
    """Make every call, whatever the others raise; then raise the first error."""
    raised: BaseException | None = None
    for call in calls:
        try:
            call()
        except BaseException as error:
            raised = raised or error
    if raised is not None:
        raise raised


# -- the end of the interpreter ---------------------------------------------------------------------------------

GRACE: Final = 3.0
"""Seconds that a stream whose end is not in sight goes on for, when the interpreter ends."""

FEW: Final = 1_000_000
"""A source that has so many elements left, and no more, is finished."""

_lock = primitives.Lock()
_began: float | None = None  # _lock; when a pool first refused since the interpreter ends


def is_ending(refusal: BaseException) -> bool:
    """Whether an executor refused a task because the interpreter is about to end.

    A pool of the standard library says so at first; when one of its workers has gone, it says that it was shut down.
    """
    ending = getattr(pools, "_shutdown", False) or "after interpreter shutdown" in str(refusal)
    return isinstance(refusal, RuntimeError) and bool(ending)


def going_on(left: int | None) -> bool:
    """Whether a stream goes on, on the thread it has, though the interpreter ends.

    `left`: how many elements its source has left; None: that is not known. The end waits for the threads of pools: a
    stream without end must not keep it.
    """
    global _began
    if left is not None and left <= FEW:
        return True
    now = primitives.monotonic()
    with _lock:
        if _began is None:
            _began = now
        return now - _began < GRACE


def handed_over(executor: Executor, task: Callable[[], Any]) -> Future[Any]:
    """`executor.submit(task)`. TypeError where that is no executor: it returns something else than a Future.

    A pool of the standard library that shuts down, or breaks, holds its lock while it calls back for the tasks that it
    drops: `submit` on that thread would wait for the lock for ever. Each attribute is set before that, and for good;
    another thread that sees the former value waits in `submit`, which refuses as well.
    """
    if broken := getattr(executor, "_broken", None):
        raise BrokenExecutor(broken)
    if isinstance(executor, pools.ThreadPoolExecutor) and getattr(executor, "_shutdown", False):
        raise RuntimeError("cannot schedule new futures after shutdown")
    future: Any = executor.submit(task)
    if not hasattr(future, "add_done_callback"):
        raise TypeError(f"{executor_name(executor)}.submit returned {shown(future)}, and must return a Future")
    return future  # type: ignore[no-any-return]


def submitted(executor: Executor, task: Callable[[], Any]) -> Future[Any]:
    """`executor.submit(task)`; where it refuses since the interpreter ends, the task is run here, for a while."""
    try:
        return handed_over(executor, task)
    except RuntimeError as refusal:
        if not (is_ending(refusal) and going_on(None)):
            raise
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    try:
        result = contained(task)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
    return future


def refused_by(executor: Executor, error: BaseException) -> RejectedError:
    """The error of a stream whose executor has raised `error` out of `submit`."""
    return caused(RejectedError(f"{executor_name(executor)} refused to run a stream's task: {error}"), error)


def not_run_by(executor: Executor | None) -> RejectedError:
    """The error of a stream whose task has a result, and never ran."""
    return RejectedError(f"{executor_name(executor)} did not run a stream's task, and set its future done")


def cancelled_in_queue() -> RejectedError:
    """The error of a stream whose task was cancelled before it ran."""
    return RejectedError("a stream's task was cancelled in the executor's queue")


def _fails_cancelled(*owners: object) -> bool:
    """Whether a pool of the standard library, when it breaks, stops at a future that was cancelled.

    It sets the error of all futures it has, in one loop. One that is cancelled raises InvalidStateError there, unless
    the loop expects it, as in newer versions of Python: and the futures behind it are never done.
    """
    methods = [vars(owner).get(name) for owner in owners for name in _LOOPS]
    codes = [getattr(method, "__code__", None) for method in methods]
    return not any("InvalidStateError" in code.co_names for code in codes if code is not None)


_LOOPS: Final = ("terminate_broken", "_terminate_broken", "_initializer_failed")
_THREADS_FAIL: Final = _fails_cancelled(pools.ThreadPoolExecutor)


def taken_back(executor: Executor, future: Future[Any]) -> None:
    """Cancel a task, where no other task of the executor suffers from it.

    A process pool of Python 3.11, and a thread pool with an initializer, leave other futures undone for ever if they
    break while they have a cancelled one. A task of theirs runs, or finds that no stream needs it any more.
    """
    processes: Any = sys.modules.get("concurrent.futures.process")  # with a pool of it there; to import it is dear
    if processes is not None and isinstance(executor, processes.ProcessPoolExecutor):
        if not _fails_cancelled(getattr(processes, "_ExecutorManagerThread", object)):
            future.cancel()
        return
    threads = _THREADS_FAIL and isinstance(executor, pools.ThreadPoolExecutor)
    if threads and (getattr(executor, "_broken", False) or getattr(executor, "_initializer", None) is not None):
        return
    future.cancel()
