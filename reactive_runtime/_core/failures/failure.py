"""An error that an upstream has signalled, and that waits behind elements until a reader comes to it.

The problem: elements wait in a queue, and the error behind them. A cancel, or a `take` that has had enough, closes the
queue before the error was read. The upstream has signalled it, and nothing downstream will ever raise it.

The answer: the queue keeps the error as a failure. The reader that comes to it takes it (`reached`), and raises it;
from there on operators and the subscription answer for it. A reader that leaves before (`left`) sends it to the hook.

An error of a hot source, or of one that is split into groups, goes to many readers. They share a `Spread`, and so do
the readers further down, across boundaries: it counts the readers that still have the error before them, and those that
have come to it. The hook gets the error when no reader has come to it, nor will.

    waiting ──reached──▶ come to ──passed on across a boundary──▶ waiting (of another reader)
       └──left, the last of all──▶ hooked (final)

The hook does not get an error that is known already: one that ends the same drain, or that another upstream of
it has raised last (`DrainContext.failed`); an exit on its way up to the user's call; a refusal, where the stream ends
by a refusal too, since the same pool refuses the work on both sides of a boundary; a refusal that comes when the stream
was cancelled already, and wants no more work.
"""

from __future__ import annotations

from typing import Protocol

from reactive_runtime._core.failures import dropping
from reactive_runtime._core.failures.assembly import an_exception
from reactive_runtime._core.failures.error_carrier import SignalledError, carried
from reactive_runtime._core.failures.exits import goes_up
from reactive_runtime._core.runtime import primitives
from reactive_runtime.errors import RejectedError

__all__ = ["Failing", "Failure", "Spread"]


class Failing(Protocol):
    """The drain of a reader, as far as failures know it."""

    failed: Failure | None
    """The owner's; what an upstream has raised last, or what ends the drain."""


class Spread:
    """The readers of one error, and whether any of them delivers it. Any thread."""

    __slots__ = ("_came", "_lock", "_lost", "_waiting")

    def __init__(self) -> None:
        self._lock = primitives.Lock()
        self._waiting = 0  # _lock; readers that have it before them
        self._lost = False  # _lock; final
        self._came = 0  # _lock; readers that have come to it, and have not passed it on

    def hold(self) -> None:
        """One more reader has it before it."""
        with self._lock:
            self._waiting += 1

    def come(self) -> None:
        """A reader has come to it."""
        with self._lock:
            self._waiting -= 1
            self._came += 1

    def passed_on(self) -> None:
        """A reader that came to it has passed it on to a reader of its own."""
        with self._lock:
            self._came -= 1

    def left(self) -> bool:
        """A reader that had it before it leaves; True: it was the last one, and none has come to it."""
        with self._lock:
            self._waiting -= 1
            return self._is_lost()

    def dropped(self) -> bool:
        """A reader that came to it could not deliver it; True: nor can any other."""
        with self._lock:
            self._came -= 1
            return self._is_lost()

    def _is_lost(self) -> bool:
        """Whether no reader delivers it, which was open before. Called with the lock held."""
        before, self._lost = self._lost, self._lost or not (self._waiting or self._came)
        return self._lost and not before


class Failure:
    """An error for one reader: the owner of one drain, which calls all of it."""

    __slots__ = ("_known", "_spread", "error")

    def __init__(self, error: BaseException, spread: Spread | None = None, *, kept: bool = False) -> None:
        """`spread`: of all its readers. `kept`: later readers can have it, so none that leaves loses it."""
        self.error: BaseException = error  # as it was signalled
        self._spread = spread
        self._known = kept or _goes_up(error)  # it was raised, or never goes to the hook
        if self._known:
            self._spread = None
        elif spread is not None:
            spread.hold()

    def reached(self, drain: Failing | None) -> SignalledError:
        """The exception that the reader raises now."""
        if self._spread is not None and not self._known:
            self._spread.come()
        self._known = True
        if drain is not None:
            drain.failed = self
        return carried(an_exception(self.error))

    def left(self, drain: Failing | None) -> None:
        """The reader has closed its pollable source, whether it has come to the error or not."""
        known, self._known = self._known, True
        if known:
            return
        lost = self._spread is None or self._spread.left()
        if lost and not self._is_known_to(drain):
            dropping.error_dropped("a stream ended before its error was delivered", self.error)

    def passed_on(self, error: BaseException) -> Failure:
        """The same for the reader of the stream that this has ended, with `error`."""
        if self._spread is None or not self.is_signalled_as(error):
            return Failure(error)
        passed = Failure(error, self._spread)
        self._spread.passed_on()
        return passed

    def dropped(self, reason: str, error: BaseException) -> None:
        """The stream has ended with `error`, and can't signal it."""
        if self._spread is None or not self.is_signalled_as(error) or self._spread.dropped():
            dropping.error_dropped(reason, error)

    def _is_known_to(self, drain: Failing | None) -> bool:
        failed = None if drain is None else drain.failed
        if failed is None:
            return False
        refused = isinstance(failed.error, RejectedError) and isinstance(self.error, RejectedError)
        return refused or failed.error is self.error or self.is_signalled_as(failed.error)

    def is_signalled_as(self, error: BaseException) -> bool:
        """Whether `error` is this one, or is signalled in its place; see `an_exception`."""
        if isinstance(self.error, Exception) and not isinstance(self.error, StopIteration):
            return error is self.error
        return error is self.error or error.__cause__ is self.error


def _goes_up(error: BaseException) -> bool:
    """Whether it stands for an exit that goes on up to the user's own call, and is raised there."""
    cause = error if not isinstance(error, Exception) else error.__cause__
    return cause is not None and goes_up(cause)
