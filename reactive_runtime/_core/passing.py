"""How an error that an upstream has signalled goes on down: inside of a *carrier*, which is raised in its place.

The problem: operators are generators, and pass errors on by raising them. To raise an exception writes to it: each
frame that it leaves is put in front of its traceback, and what is being handled becomes its context. But one instance
may be signalled to many subscribers, on many threads at once: that of `Flow.error(...)`, of a hot source, of a future.
Then the traceback that one thread reads is another thread's; its frames keep that thread's subscribers alive (3.13);
and what is put back after the end is not what was there before. Without a GIL that is so in most runs, with one in few.

The answer: an error that was signalled is never raised before it is signalled again, or raised to the user. `passing`
makes a carrier, a `SignalledError`, for one drain; where the error is handed to a user, or kept, it is taken out
(`signalled`). It is the carrier's cause, for what looks at the exception that is being handled: `logging.exception` in
an `on_error`.
"""

from __future__ import annotations

from reactive_runtime._texts import shown

__all__ = ["SignalledError", "passing", "signalled"]


class SignalledError(Exception):
    """An error of an upstream, on its way through the generators of one drain. The drain's owner alone has it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error: Exception = error
        self.__cause__: BaseException | None = error

    def __str__(self) -> str:
        return f"an upstream signalled {shown(self.error)}"


def passing(error: Exception) -> SignalledError:
    """What is raised for an error that was signalled, or was raised on another thread."""
    return error if isinstance(error, SignalledError) else SignalledError(error)


def signalled(error: Exception) -> Exception:
    """The error itself, where it may be in a carrier."""
    return error.error if isinstance(error, SignalledError) else error
