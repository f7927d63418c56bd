"""An error that an upstream has signalled, and that waits behind elements until a reader comes to it.

The problem: elements wait in a queue, and the error behind them. A cancel, or a `take` that has had enough, closes the
queue before the error was read. The upstream has signalled it, and nothing downstream will ever raise it.

The answer: the queue keeps the error as a failure. A reader that comes to it takes it (`reached`), and raises it: from
there on operators and the subscription answer for it. Each reader reports when it has gone (`left`). The last one to
go sends the error to the hook, if none has come to it.

    waiting ──reached──▶ known (final: it is delivered, handled, or hooked further down)
       └──the last reader has left──▶ hooked (final)

The hook does not get what is known otherwise: an error that the same host is just being ended by, or that another
upstream of it has raised last (`Host._failed`); an exit on its way up to the user's call; a refusal, where the stream
ends by a refusal too, for it is the same pool that refuses the work on both sides of a boundary.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from reactive_runtime._core import hooks, primitives
from reactive_runtime._core.exits import goes_up
from reactive_runtime._core.place import an_exception
from reactive_runtime.errors import RejectedError

if TYPE_CHECKING:
    from reactive_runtime._core.host import Host

__all__ = ["Failure", "SharedFailure"]


class Failure:
    """An error for one reader, the owner of one host's drain, who calls all of it."""

    __slots__ = ("_known", "_traceback", "error")

    def __init__(self, error: BaseException, *, kept: bool = False) -> None:
        """`kept`: those who come later can still have it, and it is lost by none who leaves."""
        self.error = error  # as it was signalled
        self._traceback: TracebackType | None = error.__traceback__  # as it came
        self._known = kept or _goes_up(error)  # the reader's; it was raised, or was never to be hooked

    def reached(self, host: Host | None) -> Exception:
        """What the reader raises now."""
        self._known = True
        if host is not None:
            host._failed = self.error
        return an_exception(self.error)

    def left(self, host: Host | None) -> None:
        """The reader, which has it, has closed its feed, whether it has come to it or not."""
        if host is not None:  # 3.13: raised through frames that know the subscriber, and it may outlive it
            host._raised = self.error, self._traceback
        if self._is_lost() and not self._is_known_to(host):
            hooks.error_dropped("a stream ended before its error was delivered", self.error)

    def _is_lost(self) -> bool:
        lost, self._known = not self._known, True
        return lost

    def _is_known_to(self, host: Host | None) -> bool:
        failed = None if host is None else host._failed
        if failed is self.error or (isinstance(failed, RejectedError) and isinstance(self.error, RejectedError)):
            return True
        made = not isinstance(self.error, Exception) or isinstance(self.error, StopIteration)  # see `an_exception`
        return made and failed is not None and failed.__cause__ is self.error


class SharedFailure(Failure):
    """One error for many readers, each of which holds it. Any thread."""

    __slots__ = ("_lock", "_readers")

    def __init__(self, error: BaseException, readers: int = 0, *, kept: bool = False) -> None:
        """`readers`: so many hold it already."""
        super().__init__(error, kept=kept)
        self._lock = primitives.Lock()  # owns `_known` too
        self._readers = readers  # _lock; those that hold it, and have not left

    def hold(self) -> None:
        """One more reader will come to it, or leave."""
        with self._lock:
            self._readers += 1

    def reached(self, host: Host | None) -> Exception:
        with self._lock:
            return super().reached(host)

    def _is_lost(self) -> bool:
        with self._lock:
            self._readers -= 1
            return self._readers == 0 and super()._is_lost()


def _goes_up(error: BaseException) -> bool:
    """Whether it stands for an exit that goes on up to the user's own call, and is raised there."""
    cause = error if not isinstance(error, Exception) else error.__cause__
    return cause is not None and goes_up(cause)
