"""A drain that feeds hang on: what all of them need of it, whomever it serves.

Two serve so: a subscription, and the `for` loop over a flow. A whole tree of operators hangs on one host, down to
the sources and the boundaries: it is one drain, and so everything in the tree happens in turn, without a lock.

Calls on an upstream that may come back with elements, `subscribe` and `request` on somebody else's publisher, are
noted (`_later`) and made when nobody owns the drain: the elements find it idle, and go on their way at once. One
thread at a time makes them, and goes on while there are any; a call that is noted from inside another one waits for
that to return. So a million subscriptions one after another need no stack (3.3).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import Context, copy_context
from types import TracebackType

from reactive_runtime._core import hooks
from reactive_runtime._core.drain import Drain

__all__ = ["Host"]


class Host(Drain):
    """A drain with a context, a stop sign, and a gate for calls upstream."""

    __slots__ = ("_calling", "_calls", "_context", "_endings", "_heard", "_raised", "_stop", "demanded")

    def __init__(self, executor: Executor | None = None) -> None:
        super().__init__(executor, owned=True)
        self._stop = False  # written under _lock, never taken back; the loops' look at it may be late
        self._calls: list[Callable[[], object]] | None = None  # _lock; None where there are none
        self._calling = False  # _lock; somebody is making them
        self._heard = hooks.listening_downstream()  # who hears of what is discarded here and further upstream
        self._context: Context = copy_context()  # never entered itself, only its copies: two threads may need it
        self._raised: tuple[BaseException, TracebackType | None] | None = None  # the owner's; an upstream's, as it came
        self._endings: list[Callable[[], object]] | None = None  # the owner's; called when all is over
        self.demanded = True  # the owner's; False while the feed is only looked after, and no element can go on

    def _subscriber_raised(self, error: BaseException) -> None:
        """Only a subscription has a subscriber."""
        raise error

    def at_end(self, ending: Callable[[], object]) -> None:
        """Call `ending` when the host has let go of everything. For the owner."""
        if self._endings is None:
            self._endings = []
        self._endings.append(ending)

    def _let_go(self) -> None:
        """The owner has closed everything."""
        if self._raised is not None:  # 3.13: raised through frames that know the subscriber, and it may outlive it
            error, traceback = self._raised
            error.__traceback__, self._raised = traceback, None
        endings, self._endings = self._endings, None
        for ending in endings or ():
            ending()

    def _later(self, call: Callable[[], object]) -> None:
        """Make this call upstream as soon as nobody owns the drain. Called by its owner."""
        with self._lock:
            if self._calls is None:
                self._calls = []
            self._calls.append(call)

    def _left(self) -> None:
        """Make the calls that were noted, unless somebody is at it, further down this stack or on another thread."""
        if self._calls is None:  # who noted one saw it noted, and comes by here
            return
        with self._lock:
            if self._calling:
                return
            self._calling = True
        try:
            while calls := self._next_calls():
                for call in calls:
                    call()
        except BaseException:
            with self._lock:
                self._calling = False  # not held by a thread that is on its way out
            raise

    def _next_calls(self) -> list[Callable[[], object]] | None:
        with self._lock:
            calls, self._calls = self._calls, None
            if calls is None:
                self._calling = False
            return calls
