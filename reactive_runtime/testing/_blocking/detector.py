"""The detector: a block in which the threads of some executors must not block."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import check_executor
from reactive_runtime._core.sources.naming import executor_name
from reactive_runtime.executors import runs_here
from reactive_runtime.testing._blocking.checked_calls import patched
from reactive_runtime.testing._blocking.places import place_of
from reactive_runtime.testing._blocking.watcher import Watcher

__all__ = ["BlockingCallError", "no_blocking"]


class BlockingCallError(RuntimeError):
    """A call that blocks, on a thread of an executor that `no_blocking` has declared non-blocking."""


class _Detector:
    """One block of `no_blocking`."""

    def __init__(self, executors: tuple[Executor, ...]) -> None:
        self.executors = executors
        self.found: list[BlockingCallError] = []  # appended to by any thread

    def watched(self) -> dict[int, Executor]:
        """The threads of those executors that are pools of the standard library, each with its executor."""
        threads = ((thread, executor) for executor in self.executors for thread in _threads_of(executor))
        return {ident: executor for thread, executor in threads if isinstance(ident := thread.ident, int)}

    def check(self, what: str) -> None:
        """Raise where this thread must not block."""
        for executor in self.executors:
            if runs_here(executor):
                error = self.error(what, executor, sys._getframe(3))  # of the caller of the function that blocks
                if error is not None:
                    self.found.append(error)
                    raise error

    def report(self, what: str, executor: Executor, frame: FrameType) -> None:
        """Note a wait of a thread of `executor`."""
        error = self.error(what, executor, frame)
        if error is not None:
            self.found.append(error)

    def error(self, what: str, executor: Any, frame: FrameType) -> BlockingCallError | None:
        """The error of a wait that begins in `frame`. None: it is the executor's own, or the package's."""
        place = place_of(frame)
        if place is None:
            return None
        code = place.user.f_code
        operator = f"in {place.operator}: " if place.operator else ""
        return BlockingCallError(
            f"{place.callee or what} blocks a thread of {executor_name(executor)}, which is declared non-blocking:"
            f" {operator}{code.co_name} at {code.co_filename}:{place.user.f_lineno}. Give the call a pool of its own"
            " (map_parallel, subscribe_on), or await it in a coroutine"
        )


def _threads_of(executor: Any) -> list[Any]:
    threads = getattr(executor, "_threads", ())
    return [thread for thread in list(threads) if isinstance(thread, primitives.Thread)]


_lock: Final = primitives.Lock()
_detectors: list[_Detector] = []  # _lock; replaced, never changed
_checks: list[ExitStack] = []  # _lock; one while there is a detector


def _check(what: str) -> None:
    for detector in _detectors:
        detector.check(what)


@contextmanager
def no_blocking(*executors: Executor) -> Iterator[list[BlockingCallError]]:
    """Within the block, a call that blocks a thread of one of `executors` is an error; for tests.

    These raise a `BlockingCallError` where they are called, and so fail the flow: `time.sleep`; a wait for a condition,
    an event, a semaphore, a barrier, a `Future`, a queue, room in a queue; `Thread.join`; `Popen.wait` and
    `communicate`; `input`; a read of a socket, `accept` and `connect`. A call that would not wait passes, such as the
    `result` of a future that is done.

    A lock, a `SimpleQueue`, and a `time.sleep` that a module has imported by name are watched from outside: a wait for
    them that takes longer than 50 ms is found, on the threads of a `ThreadPoolExecutor`, and goes on. Short waits for a
    lock, as the package has them, are not found.

    A block that ends without an error raises the first call that was found, since a flow may have swallowed it. Calls
    on other threads are untouched. The functions are as before when the last such block has ended.

    Args:
        *executors: Executors of threads, one or more.

    Yields:
        The errors of the calls that were found. To empty the list lets the block end without an error.

    Raises:
        TypeError: There is no executor, or one is no executor of threads.
        BlockingCallError: A call was found. It names the call, the operator and its line, the user's function and line.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from reactive_runtime import Flow
        >>> from reactive_runtime.testing import no_blocking
        >>> with ThreadPoolExecutor(1) as pool, no_blocking(pool):
        ...     Flow.range(3).subscribe_on(pool).map(lambda n: n + 1).to_list().block()
        [1, 2, 3]

    Origin:
        BlockHound of Reactor.
    """
    global _detectors
    if not executors:
        raise TypeError("no_blocking: name one executor or more, whose threads must not block")
    for executor in executors:
        check_executor("no_blocking", executor)
    detector = _Detector(executors)
    with _lock:
        if not _detectors:
            _checks.append(patched(_check))
        _detectors = [*_detectors, detector]
    watcher = Watcher(detector.watched, detector.report)
    try:
        yield detector.found
    finally:
        watcher.close()
        with _lock:
            _detectors = [other for other in _detectors if other is not detector]
            if not _detectors:
                _checks.pop().close()
    if detector.found:
        first, *others = detector.found
        for other in others[:9]:
            first.add_note(f"and {other}")
        raise first
