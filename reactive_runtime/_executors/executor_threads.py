"""Questions about a thread: whether an executor runs its tasks on it, and whether a sink may wait there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from reactive_runtime._core.runtime import primitives

__all__ = ["blocking_allowed", "blocking_is_allowed", "runs_here", "threads_of"]


def runs_here(executor: Any) -> bool:
    """Whether this thread is one of those that run the executor's tasks, as far as that can be known.

    An executor that knows it has a method `runs_here()`, as those of the package have; so has an event loop of a flow.
    Pools of the standard library are asked for their threads.

    Args:
        executor: The executor to ask; any object is taken.

    Returns:
        True where this thread is known to be one of them.
    """
    knows = getattr(executor, "runs_here", None)
    if callable(knows):
        return bool(knows())
    here = primitives.current_thread()
    if here is getattr(
        executor, "_executor_manager_thread", None
    ):  # the thread of a ProcessPoolExecutor that ends its futures
        return True
    # A ThreadPoolExecutor has no method to ask. It keeps a set of its threads, to which it may add a thread after that
    # has begun to run, and names each by a prefix and a number.
    name = getattr(executor, "_thread_name_prefix", None)
    return here in getattr(executor, "_threads", ()) or (name is not None and here.name.rpartition("_")[0] == name)


def threads_of(executor: Any) -> int | None:
    """How many threads run the executor's tasks, where this is one of them.

    An executor that knows it has a method `threads()`, or is a pool of the standard library.

    Args:
        executor: The executor to ask; any object is taken.

    Returns:
        The number of threads, or None where that cannot be known.
    """
    knows = getattr(executor, "threads", None)
    threads = knows() if callable(knows) else getattr(executor, "_max_workers", None)
    return threads if isinstance(threads, int) else None


_allowed: ContextVar[bool] = ContextVar("blocking_allowed", default=False)


@contextmanager
def blocking_allowed() -> Iterator[None]:
    """Within the block, a sink may wait on a thread of the very executor that its flow needs.

    Otherwise it is refused, whatever the number of threads: where no other is to spare, it waits for ever. If the plan
    needs the executor, it is refused before the flow begins; where a flow that a function returns needs it, when that
    is begun, unless the flow ends before the sink would wait.

    Yields:
        None. The block holds for this context, as a context variable does.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from reactive_runtime import Flow
        >>> def total(pool):
        ...     with blocking_allowed():
        ...         return Flow.range(4).subscribe_on(pool).sum().block()
        >>> with ThreadPoolExecutor(2) as pool:
        ...     pool.submit(total, pool).result()
        6
    """
    token = _allowed.set(True)
    try:
        yield
    finally:
        _allowed.reset(token)


def blocking_is_allowed() -> bool:
    """Whether this is within `blocking_allowed`.

    Returns:
        True inside such a block, in this context.
    """
    return _allowed.get()
