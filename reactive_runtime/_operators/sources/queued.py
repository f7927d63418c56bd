"""`from_queue`: the elements that other threads, or other processes, put into a queue."""

from __future__ import annotations

from operator import eq
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, overload

from reactive_runtime._core.drains.combinator import PENDING, Combinator, Elements
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import is_coroutine_function
from reactive_runtime._core.sources.naming import instead, kind_of
from reactive_runtime._operators.flow_base import combinator_flow

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["QueueSources", "SupportsGet"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

ONE_GET: Final = 0.1
"""Seconds that one `get` waits, after which the thread looks for a cancel, and lets others have their turn."""


class SupportsGet(Protocol[T_co]):
    """A queue that gives elements: those of `queue` and of `multiprocessing` do."""

    def get(self, block: bool, timeout: float, /) -> T_co: ...


class QueueSources:
    """`from_queue`: the elements that other threads, or other processes, put into a queue."""

    __slots__ = ()

    @overload
    @staticmethod
    def from_queue(queue: SupportsGet[T | None], *, end: None = None) -> Flow[T]: ...

    @overload
    @staticmethod
    def from_queue(queue: SupportsGet[T], *, end: object) -> Flow[T]: ...

    @staticmethod
    def from_queue(queue: SupportsGet[Any], *, end: object = None) -> Flow[Any]:
        """The elements that threads or processes put into `queue`, until it gives `end`, or is shut down.

        `to_queue` is the other direction. Subscribers share the queue: each element goes to one of them, and one `end`
        ends one subscription. The flow never calls `task_done`: don't wait in `queue.join`.

        Args:
            queue: A `queue.Queue`, a queue of `multiprocessing`, or anything else whose `get(True, seconds)` raises
                `queue.Empty` when the time is over.
            end: The object that ends the flow, or an equal one of the same type: an object from another process is a
                copy.

        Returns:
            A flow of the elements. It completes with `end`, and with `queue.ShutDown` of Python 3.13. It fails with any
            other error that `get` raises, and with TypeError for a None that is not the end (2.13).

        Raises:
            TypeError: `queue` has no `get`, or one that has to be awaited, as `asyncio.Queue` has.

        Demand:
            The flow calls `get` once for each demanded element. It finds the end only when the subscriber requests
            more.

        Cancellation:
            `cancel` does not wait for the queue. A `get` that is running returns within a tenth of a second; the hook
            gets the element that it returns.

        Thread:
            `get` blocks the thread that requests, or, with `subscribe_on`, a thread of that executor. While the queue
            is empty, the thread runs other flows and tasks that wait for it, ten times a second: so a loop over the
            flow, on that thread, gets elements of another source (`merge`), and a timeout.

        Example:
            >>> import queue
            >>> from reactive_runtime import Flow
            >>> numbers = queue.Queue()
            >>> for element in (1, 2, None):
            ...     numbers.put(element)
            >>> list(Flow.from_queue(numbers))
            [1, 2]

        Origin:
            `Source.queue` of Akka and Pekko Streams, with the queues of Python.
        """
        if isinstance(queue, type) or not callable(getattr(queue, "get", None)):
            raise TypeError(f"from_queue: a queue is needed, not {instead(queue)}")
        if is_coroutine_function(queue.get):
            raise TypeError(
                f"from_queue: get of {instead(queue)} is a coroutine function, which no thread awaits: use a"
                " queue.Queue, or from_async with a generator that awaits get"
            )
        return combinator_flow(f"from_queue({kind_of(queue)})", lambda: _OfQueue(queue, end))


class _OfQueue(Combinator):
    def __init__(self, queue: SupportsGet[Any], end: object) -> None:
        super().__init__()
        self.queue = queue
        self.end = end

    def elements(self) -> Elements:
        while True:
            yield from self.demand()
            yield from self.home()
            try:
                element = self.queue.get(True, ONE_GET)
            except primitives.Empty:
                self.drain.spend()  # look again, after the others that need this thread
                yield PENDING
                continue
            except primitives.SHUT_DOWN:
                return
            except Exception as error:
                raise self.fault(error)  # noqa: B904  # the same error
            if self.is_end(element):
                return
            yield element

    def is_end(self, element: Any) -> bool:
        """Whether it is the end. Only objects of its type are compared: the `==` of an array is no bool."""
        return element is self.end or (type(element) is type(self.end) and bool(self.call(eq, self.end, element)))

    def waits_for(self) -> str:
        """See `Combinator.waits_for`."""
        return f"an element of its queue, a {kind_of(self.queue)}"
