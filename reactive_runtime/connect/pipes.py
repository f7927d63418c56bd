"""Pipes of `multiprocessing`, both ways: the pipe's own buffer carries the demand to the process that writes.

Needs the standard library only.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import one_of
from reactive_runtime._core.sources.naming import instead
from reactive_runtime._flow import Flow
from reactive_runtime._operators.flow_base import as_flow
from reactive_runtime._spec import Publisher
from reactive_runtime._support.public_names import all_at_home as _all_at_home

__all__ = ["from_connection", "to_connection"]


class Pipe(Protocol):
    """An end of a pipe: a `multiprocessing.connection.Connection`, or what `Client` and `Listener.accept` give."""

    def poll(self, timeout: float, /) -> bool:
        """Whether there is something to receive, within so many seconds."""
        ...

    def recv(self) -> Any:
        """Receive an object."""

    def send(self, obj: Any, /) -> None:
        """Send an object."""

    def close(self) -> None:
        """Close this end."""


def from_connection(connection: Pipe, *, end: object = None, closed: Literal["error", "end"] = "error") -> Flow[Any]:
    """The objects that come over a connection, until `end` comes. The flow closes its end of the pipe.

    Args:
        connection: An end of a pipe of `multiprocessing`, for one subscriber. This process has to have closed the other
            end, if it had it, as that of a child: otherwise it never hears that the child has gone.
        end: The object that ends the flow, or an equal one of the same type.
        closed: The effect of the other end being closed before `end` has come. "error": the flow fails with
            ConnectionError, since the other process may have died. "end": the flow completes.

    Returns:
        A flow of the objects. It fails with any error of receiving, as of unpickling.

    Raises:
        TypeError: `connection` is no end of a pipe.
        ValueError: `closed` is none of the two.

    Demand:
        One object is received for each demanded element. Other objects wait in the pipe's buffer (64 KiB in
        Linux), and when that is full, the process that writes waits in `send`.

    Cancellation:
        `cancel` does not wait for the pipe. A wait that is running ends within a tenth of a second; then the connection
        is closed, and the process that writes gets a BrokenPipeError.

    Thread:
        Waiting blocks the thread that requests, or, with `subscribe_on`, a thread of that executor; ten times a second
        it lets others have their turn.

    Example:
        >>> import multiprocessing
        >>> ours, theirs = multiprocessing.Pipe()
        >>> for element in (1, 2, None):
        ...     theirs.send(element)
        >>> list(from_connection(ours))
        [1, 2]

    Origin:
        `Flow.from_queue`, over a pipe.
    """
    _check_pipe("from_connection", connection)
    one_of("from_connection", "closed", ("error", "end"), closed)
    return Flow.using(
        lambda: _Closing(connection), lambda closing: Flow.from_queue(_Received(closing.pipe, end, closed), end=end)
    )


class _Received:
    """An end of a pipe as a queue."""

    def __init__(self, pipe: Pipe, end: object, closed: str) -> None:
        self._pipe = pipe
        self._end = end
        self._closed = closed

    def get(self, block: bool, timeout: float, /) -> Any:
        try:
            if not self._pipe.poll(timeout):
                raise primitives.Empty
            return self._pipe.recv()
        except (EOFError, ConnectionError) as error:
            if self._closed == "end":
                return self._end
            raise ConnectionError(
                f"from_connection: the other end was closed before {self._end!r} came; see whether its process died, or"
                ' give closed="end"'
            ) from error


def to_connection(source: Publisher[Any], connection: Pipe, *, end: object = None) -> Flow[int]:
    """Sends the elements of a flow over a connection, then `end`. The flow closes its end of the pipe.

    Args:
        source: A publisher.
        connection: An end of a pipe of `multiprocessing`, for one subscriber.
        end: The object that is sent when `source` has completed. If it fails, or is cancelled, none is sent, so that
            `from_connection` fails too.

    Returns:
        A flow of one element, the number of elements, which comes when `end` has been sent. It fails with the error of
        `source`, and with that of `send`: a BrokenPipeError where the other end is closed.

    Raises:
        TypeError: `source` is no publisher, or `connection` no end of a pipe.

    Demand:
        Takes all of `source`. A process that does not receive holds it back, when the pipe's buffer is full.

    Cancellation:
        Cancels `source`. The connection is closed; if an element is being sent, behind that.

    Thread:
        `send` blocks the thread that delivers the elements; with `subscribe_on`, one of that executor.

    Example:
        >>> import multiprocessing
        >>> ours, theirs = multiprocessing.Pipe()
        >>> to_connection(Flow.range(2), ours).block()
        2
        >>> [theirs.recv() for _ in range(3)]
        [0, 1, None]

    Origin:
        `Flow.to_queue`, over a pipe.
    """
    _check_pipe("to_connection", connection)
    flow: Flow[Any] = as_flow("to_connection", "source", source)
    return Flow.using(
        lambda: _Closing(connection),
        lambda closing: flow.do_on_next(closing.send).count().do_on_next(lambda _: closing.send(end)),
    )


class _Closing(AbstractContextManager["_Closing"]):
    """Closes a pipe once: where a thread is sending, behind that."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self._lock = primitives.Lock()
        self._sending = False  # _lock
        self._over = False  # _lock; final

    def send(self, element: Any) -> None:
        with self._lock:
            if self._over:
                return
            self._sending = True
        try:
            self.pipe.send(element)
        finally:
            if self._sent():
                self.pipe.close()

    def _sent(self) -> bool:
        """Whether the pipe is to be closed behind what was sent."""
        with self._lock:
            self._sending = False
            return self._over

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._over, sending = True, self._sending
        if not sending:
            self.pipe.close()


def _check_pipe(operator: str, connection: Any) -> None:
    if isinstance(connection, type) or not all(
        callable(getattr(connection, name, None)) for name in ("poll", "recv", "send", "close")
    ):
        raise TypeError(f"{operator}: an end of a pipe of multiprocessing is needed, not {instead(connection)}")


_all_at_home(globals())
