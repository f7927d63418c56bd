"""The description of an adapter that a user writes: how the kit puts messages in, reads them, and counts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, Final

from reactive_runtime.tck._running.failures import NotVerified

__all__ = ["POISON", "Adapter"]

POISON: Final = -1
"""The number of a poison message: the handler of the kit raises an error for it."""


class Adapter:
    """An adapter under test: subclass it, and say how to do each of these things.

    The kit puts numbers into the system, each as one message, and reads them again. One object is for one check: it has
    a queue, a topic or a stream of its own. The kit does not look at the parts that a subclass leaves out. The counts
    are those of the server: the kit does not believe the adapter.

    Thread:
        The kit calls the methods on the thread of the check, and `number`, `bury` and `open` on others too.

    Example:
        >>> class Mine(Adapter):
        ...     name = "mine"
        >>> Mine().prefetch
        0

    Origin:
        `PublisherVerification`, whose factories are the same for publishers.
    """

    name: str = "adapter"
    """The head of its column."""

    prefetch: int = 0
    """So many messages the server may hand out beyond the demand, as the adapter's docs say."""

    in_order: bool = False
    """Whether acknowledgements are positions: then a message is acknowledged when those before it are too."""

    acknowledges: bool = True
    """Whether the server hears which messages are handled. False: it knows no reader, and `open` begins with the first
    message; to settle an element does nothing. The kit does not look at acknowledgements then, and not at `left`."""

    address: str = ""
    """The name of the server in an error, as "127.0.0.1:6379"."""

    def put(self, numbers: Sequence[int]) -> None:
        """Put a message for each number into the system, in this order.

        Args:
            numbers: The numbers, each different from all before.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define put(self, numbers)")

    def open(self, consumer: str, executor: Executor) -> Any:
        """Open the flow of messages, as a user of the adapter does.

        Args:
            consumer: The name of the reader. One that comes back has the same name.
            executor: A pool of two threads.

        Returns:
            An `AckedFlow`. The kit subscribes to it once.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define open(self, consumer, executor)")

    def number(self, value: Any) -> int:
        """The number of a message.

        Args:
            value: An element of the flow.

        Returns:
            Its number. It may raise an error for a poison message.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define number(self, value)")

    def left(self) -> int:
        """How many messages of this queue the server keeps: those that were put in and not acknowledged.

        Returns:
            The count of the server, with the messages that were handed out.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define left(self)")

    def handed_out(self) -> int:
        """How many messages the server has handed out and has no acknowledgement of.

        Returns:
            The count of the server.
        """
        raise NotVerified("the description has no handed_out")

    def acknowledgements(self) -> int:
        """How many acknowledgements the server has got, also those that changed nothing.

        Returns:
            The count of the server.
        """
        raise NotVerified("each element settles once; the description has no acknowledgements")

    def connections(self) -> int:
        """How many connections the adapter has at the server.

        Returns:
            The count of the server.
        """
        raise NotVerified("the description has no connections")

    def fill(self, n: int) -> None:
        """Put the numbers from 0 in, as fast as the system takes them.

        Args:
            n: How many: up to ten million.
        """
        for begin in range(0, n, 10_000):
            self.put(range(begin, min(n, begin + 10_000)))

    def poison(self) -> None:
        """Put a message in that can't be handled: by default one for which the handler of the kit raises an error."""
        self.put([POISON])

    def handled(self, flow: Any, handle: Callable[[Any], int]) -> Any:
        """Let `handle` work on each message of a flow, so that a poison message ends in the dead letters.

        Args:
            flow: The result of `open`.
            handle: Takes a value and returns its number. It raises an error for a poison message.

        Returns:
            An `AckedFlow` of numbers. By default, it has `on_error_continue` with `bury`.
        """
        return flow.on_error_continue(lambda one: one.map(handle), self.bury)

    def bury(self, letter: Any) -> None:
        """Put a dead letter where they go.

        Args:
            letter: A `DeadLetter` of `on_error_continue`.
        """
        raise NotVerified("the description has no bury, and no handled of its own")

    def dead(self) -> int:
        """How many dead letters there are.

        Returns:
            The count at the place where they go.
        """
        raise NotVerified("the description has no dead")

    def worker(self, consumer: str) -> Sequence[str] | Callable[[Callable[[int], object]], object]:
        """The work of another process, which handles messages until the kit kills it.

        Args:
            consumer: The name of its reader.

        Returns:
            A command that prints the number of each message, on a line of its own, when it has handled the message and
            before it acknowledges it. Or a function that can be pickled, which calls its argument with each number
            then.
        """
        raise NotVerified("the description has no worker")

    def break_connections(self) -> None:
        """Kill the server and start it again with what it has kept, or cut the connections of the adapter."""
        raise NotVerified("the description has no break_connections")

    def open_with(self, password: str) -> Any:
        """Open the flow with a password that is wrong.

        Args:
            password: The password.

        Returns:
            An `AckedFlow` that fails when it is subscribed to. It may raise the error too.
        """
        raise NotVerified("the description has no open_with")

    def close(self) -> None:
        """Take away what belongs to this object."""
