"""One event loop, on a thread of its own, for as long as some stream needs it.

Coroutine functions in a flow, and async iterables, run there. The thread starts with the first `borrow` and has ended
when the last `give_back` has returned from the loop's own thread, or soon after it on any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reactive_runtime._core import primitives

if TYPE_CHECKING:
    import asyncio

__all__ = ["borrow", "call", "give_back", "wait_until_ended"]

_lock = primitives.Condition()
_loop: asyncio.AbstractEventLoop | None = None  # _lock; running, while there are borrowers
_thread: primitives.Thread | None = None  # _lock; of that loop, or of the last one
_borrowers = 0  # _lock


def borrow() -> asyncio.AbstractEventLoop:
    """The loop, running. Each `borrow` is ended by one `give_back`."""
    global _loop, _thread, _borrowers
    with _lock:
        _borrowers += 1
        if _loop is None:
            import asyncio  # what only coroutines need is imported for them

            _loop = asyncio.new_event_loop()
            _thread = primitives.Thread(target=_run, args=(_loop,), name="reactive-loop", daemon=True)
            _thread.start()
        return _loop


def give_back(loop: asyncio.AbstractEventLoop) -> None:
    """Done with the loop; the last one stops it."""
    global _loop, _borrowers
    with _lock:
        _borrowers -= 1
        last = not _borrowers
        if last:
            _loop = None
            _lock.notify_all()
    if last:
        loop.call_soon_threadsafe(loop.stop)


def wait_until_ended(seconds: float) -> bool:
    """Wait, not on the loop's thread, until nobody borrows it and its thread has ended; whether that came about."""
    with _lock:
        _lock.wait_for(lambda: not _borrowers, seconds)
        thread, borrowed = _thread, _borrowers
    if thread is not None and not borrowed:
        thread.join(seconds)
    return not borrowed and (thread is None or not thread.is_alive())


def _run(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio

    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)  # cancelled by their streams; they may have a `finally` to run
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def call(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: Any) -> None:
    """Call on the loop's thread; here and now, if this is it."""
    import asyncio

    if asyncio._get_running_loop() is loop:
        function(*arguments)
    else:
        loop.call_soon_threadsafe(function, *arguments)
