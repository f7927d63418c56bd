"""One connection that reads for a consumer: the calls of a drain's owner, and of other threads.

The problem: nats-py is for one event loop, and elements are handled, and acknowledged, on threads.

The answer: the owner of the drain asks the loop to pull, and takes what has arrived. Any thread leaves a note when a
message is settled; the loop sends the notes, many at a time. A pull is for as many messages as are demanded, and there
is one at a time, so that no more arrive.
"""

from __future__ import annotations

from collections import deque

from reactive_runtime._core.runtime import eventloop
from reactive_runtime.connect._elements import last_notes
from reactive_runtime.connect._jetstream.on_the_loop import Link

# isort: split
from nats.aio.msg import Msg

__all__ = ["Session"]


class Session(Link):
    """A connection, for one subscription of a flow."""

    # -- for the owner of the drain --------------------------------------------------------------------------------

    def take(self) -> deque[Msg]:
        """The messages that have arrived; they are the caller's to settle. If there are none, raise what has failed."""
        with self._lock:
            arrived, self._arrived = self._arrived, deque()
            self._open += len(arrived)
            failed = None
            if (
                not arrived
            ):  # the loop keeps the session: with the error it would keep elements, which are in its frames
                failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        return arrived

    def pulls(self) -> bool:
        """Whether a pull is under way."""
        with self._lock:
            return self._pulling

    def pull(self, n: int) -> None:
        """Have the server send so many messages, as they come. Only while no pull is under way."""
        with self._lock:
            self._pulling = True
            self._kept = self._news()
        eventloop.call(self._loop, self._pull, n)

    def leave(self) -> None:
        """The flow has ended. The connection is closed behind the last message that is settled."""
        with self._lock:
            self._left, self._kept = True, None
        last_notes.begin(self)
        eventloop.call(self._loop, self._stop)

    # -- for any thread ----------------------------------------------------------------------------------------------

    def settle(self, reply: str, payload: bytes) -> None:
        """Leave the note that a message is settled."""
        with self._lock:
            self._notes.append((reply, payload))
            self._open -= 1
            first, self._noted = not self._noted, True
        if first:
            eventloop.call(self._loop, self._send)

    def abandon(self) -> None:
        """No code has the messages any more that are not settled: close the connection."""
        with self._lock:
            unsettled = self._open > 0  # then nothing else closes it, and the loop is there
        if unsettled:
            eventloop.call(self._loop, self._forget)
