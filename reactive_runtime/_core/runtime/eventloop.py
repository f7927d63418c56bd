"""One event loop, on a thread of its own, for as long as some stream needs it.

Coroutine functions in a flow, and async iterables, run there. The thread starts with the first `borrow` and has ended
when the last `give_back` has returned from the loop's own thread, or soon after it on any other.

No exception ends it before: a coroutine of a stream hands its exits on as errors (`outcome`). asyncio lets
`SystemExit` and `KeyboardInterrupt` through, of a task that a user started there: they go to the hook.

A child of `os.fork` has no thread of the loop, and begins anew. Streams that ran at the fork belong to the parent, and
do not go on in the child.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import an_exception
from reactive_runtime._core.failures.exits import contained
from reactive_runtime._core.runtime import primitives

if TYPE_CHECKING:
    import asyncio

__all__ = ["OURS", "Loop", "borrow", "call", "give_back", "outcome", "wait_until_ended"]

E = TypeVar("E")
T = TypeVar("T")

_lock = primitives.Condition()
_loop: asyncio.AbstractEventLoop | None = None  # _lock; running, while there are borrowers
_thread: primitives.Thread | None = None  # _lock; of that loop, or of the last one
_borrowers = 0  # _lock
_stopped: Final[list[asyncio.AbstractEventLoop]] = []  # _lock; given back by all, until their threads have ended
_left_behind: Final[list[asyncio.AbstractEventLoop]] = []  # a forked child's; see `_begin_anew`


def borrow() -> asyncio.AbstractEventLoop:
    """The loop, running. Each `borrow` is ended by one `give_back`."""
    global _loop, _thread, _borrowers
    with _lock:
        _borrowers += 1
        if _loop is None:
            import asyncio  # here, since only coroutines need it

            from reactive_runtime._core.runtime.lookups import Lookups

            _loop = asyncio.new_event_loop()
            _loop.getaddrinfo = Lookups(_loop)  # type: ignore[method-assign]
            _thread = primitives.Thread(target=contained, args=(_run, _loop), name="reactive-loop", daemon=True)
            _thread.start()
        return _loop


def give_back(loop: asyncio.AbstractEventLoop) -> None:
    """Done with the loop; the last one stops it."""
    global _loop, _borrowers
    with _lock:
        if loop is not _loop:  # of the parent process
            return
        _borrowers -= 1
        last = not _borrowers
        if last:
            _loop = None
            _lock.notify_all()
    if last:
        loop.call_soon_threadsafe(_stop, loop)


def wait_until_ended(seconds: float) -> bool:
    """Wait, not on the loop's thread, until it has no borrower and its thread has ended; whether that came about."""
    with _lock:
        _lock.wait_for(lambda: not _borrowers, seconds)
        thread, borrowed = _thread, _borrowers
    if thread is not None and not borrowed:
        thread.join(seconds)
    return not borrowed and (thread is None or not thread.is_alive())


def _is_here() -> bool:
    with _lock:
        return _thread is not None and _thread is primitives.current_thread()


class Loop:
    """An event loop whose thread a flow needs: a user's, or the one of this module."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop

    def runs_here(self) -> bool:
        """Whether this thread is inside of it."""
        if self._loop is None:
            return _is_here()
        import asyncio

        return asyncio._get_running_loop() is self._loop

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loop) and other._loop is self._loop

    def __hash__(self) -> int:
        return hash(self._loop)

    def __repr__(self) -> str:
        return "<the event loop of coroutines>" if self._loop is None else repr(self._loop)


OURS: Final = Loop()
"""The one of this module."""


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    """Stop, on the loop's thread, and note that: asyncio forgets a `stop` where an exit follows."""
    with _lock:
        _stopped.append(loop)
    loop.stop()


def _goes_on(loop: asyncio.AbstractEventLoop) -> bool:
    with _lock:
        return loop not in _stopped


def _run(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio

    asyncio.set_event_loop(loop)
    try:
        while _goes_on(loop):
            _until_stopped(loop)
        left = asyncio.all_tasks(loop)
        for task in left:
            if not task.cancelling():  # those of streams are cancelled already: a `finally` may be under way
                task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
        with _lock:
            if loop in _stopped:
                _stopped.remove(loop)


def _until_stopped(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    except BaseException as error:
        dropping.raised("a task that is no stream's raised on the event loop of streams", error)


def call(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: Any) -> None:
    """Call on the loop's thread; here and now, if this is it."""
    import asyncio

    if asyncio._get_running_loop() is loop:
        function(*arguments)
    elif loop not in _left_behind:
        loop.call_soon_threadsafe(function, *arguments)


async def outcome(function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
    """Make and await a user's coroutine here: a task that is cancelled before it begins leaves none unawaited.

    `SystemExit` and `KeyboardInterrupt`, which end a loop, become errors.
    """
    try:
        return await function(*arguments)
    except (SystemExit, KeyboardInterrupt) as error:
        raise an_exception(error) from error


def _begin_anew() -> None:
    """In a child of `os.fork`: the loop's thread has stayed with the parent.

    The loop is kept as it is, never used and never closed: its selector is shared with the parent.
    """
    global _lock, _loop, _thread, _borrowers
    _lock = primitives.Condition()
    if _loop is not None and not _is_here():
        _left_behind.append(_loop)
        _loop, _thread, _borrowers = None, None, 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
