"""`Flow`: the fluent publisher, made of the sources, the operators of each theme, and the sinks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TypeVar

from reactive_runtime._core.runtime.arguments import PREFETCH, at_least
from reactive_runtime._core.sources.explain import drawing
from reactive_runtime._operators.aggregating import AggregatingOperators
from reactive_runtime._operators.backpressure import BackpressureOperators, KillSwitch, Valve
from reactive_runtime._operators.combining import CombiningOperators
from reactive_runtime._operators.concurrent.by_key import KeyedOperators
from reactive_runtime._operators.concurrent.calling import TaskOperators
from reactive_runtime._operators.concurrent.flattening import FlatteningOperators
from reactive_runtime._operators.concurrent.signal_context import ContextOperators
from reactive_runtime._operators.conditional import ConditionalOperators
from reactive_runtime._operators.error_handling import ErrorHandlingOperators
from reactive_runtime._operators.filtering import FilteringOperators
from reactive_runtime._operators.flow_base import make_flows_of
from reactive_runtime._operators.groups.dealing import DealingOperators
from reactive_runtime._operators.groups.grouping import GroupingOperators
from reactive_runtime._operators.groups.windows import WindowOperators
from reactive_runtime._operators.keeping.buffers import BufferOperators
from reactive_runtime._operators.keeping.conflating import ConflatingOperators
from reactive_runtime._operators.keeping.last_ones import LastOperators
from reactive_runtime._operators.keeping.sorting import SortingOperators
from reactive_runtime._operators.monitoring import Metrics, MonitoringOperators
from reactive_runtime._operators.notifications import Notification, NotificationOperators
from reactive_runtime._operators.resilience.bulkheads import Bulkhead, BulkheadOperators
from reactive_runtime._operators.resilience.circuit import CircuitBreaker, CircuitOperators
from reactive_runtime._operators.resilience.dead_letters import DeadLetter, DeadLetterOperators
from reactive_runtime._operators.resilience.deadline import DeadlineOperators
from reactive_runtime._operators.scheduling import ParallelFlow, SchedulingOperators
from reactive_runtime._operators.sharing import ConnectableSource, SharingOperators
from reactive_runtime._operators.side_effects import Listener, SideEffectOperators
from reactive_runtime._operators.sinks.loops import AsyncIteration, Iteration, each
from reactive_runtime._operators.sinks.terminal import Disposable, TerminalOperators
from reactive_runtime._operators.sinks.whole_files import FileSinks
from reactive_runtime._operators.sources.creating import CreatingSources, Emitter
from reactive_runtime._operators.sources.deferred import DeferredSources
from reactive_runtime._operators.sources.pulled import Sources
from reactive_runtime._operators.sources.queued import QueueSources
from reactive_runtime._operators.spark_bridge import SparkOperators
from reactive_runtime._operators.time.rates import RateOperators
from reactive_runtime._operators.time.stamps import StampOperators
from reactive_runtime._operators.time.timing import TimingOperators
from reactive_runtime._operators.transforming import TransformingOperators
from reactive_runtime._operators.tuples import TupleOperators
from reactive_runtime._support.public_names import at_home

__all__ = [
    "AsyncIteration",
    "Bulkhead",
    "CircuitBreaker",
    "ConnectableFlow",
    "DeadLetter",
    "Disposable",
    "Emitter",
    "Flow",
    "Iteration",
    "KillSwitch",
    "Listener",
    "Metrics",
    "Notification",
    "Operators",
    "ParallelFlow",
    "Valve",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Operators(
    TransformingOperators[T_co],
    FilteringOperators[T_co],
    AggregatingOperators[T_co],
    ConditionalOperators[T_co],
    CombiningOperators[T_co],
    TupleOperators[T_co],
    FlatteningOperators[T_co],
    TaskOperators[T_co],
    KeyedOperators[T_co],
    ContextOperators[T_co],
    GroupingOperators[T_co],
    DealingOperators[T_co],
    WindowOperators[T_co],
    BufferOperators[T_co],
    LastOperators[T_co],
    ConflatingOperators[T_co],
    SortingOperators[T_co],
    TimingOperators[T_co],
    RateOperators[T_co],
    StampOperators[T_co],
    SchedulingOperators[T_co],
    BackpressureOperators[T_co],
    SharingOperators[T_co],
    ErrorHandlingOperators[T_co],
    DeadLetterOperators[T_co],
    DeadlineOperators[T_co],
    CircuitOperators[T_co],
    BulkheadOperators[T_co],
    NotificationOperators[T_co],
    SideEffectOperators[T_co],
    MonitoringOperators[T_co],
):
    """The operators of every theme: they make a flow of a flow."""

    __slots__ = ()


class Flow(
    Sources,
    DeferredSources,
    CreatingSources,
    QueueSources,
    Operators[T_co],
    TerminalOperators[T_co],
    FileSinks[T_co],
    SparkOperators[T_co],
):
    """A `Publisher` with operators: lazy, immutable, reusable; nothing runs until it is subscribed to.

    Each subscriber gets a run of its own (1.11). The signals it gets are serial (1.3), never more than it requested
    (1.1), whichever threads they come on; `request` and `cancel` may be called from any thread, at any time, any number
    of times.

    A flow begins with one of the sources: to call the class raises a TypeError, which names them.

    Example:
        >>> from reactive_runtime import Flow
        >>> list(Flow.range(10).filter(lambda n: n % 2).map(lambda n: n * n).take(3))
        [1, 9, 25]
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[T_co]:
        """The elements, for a `for` loop of one thread.

        It costs less than `iterate`, whose iterator has a time limit, and refuses a second thread.

        Returns:
            A generator, which no two threads may share: without a GIL that may crash CPython.
        """
        return each(self, PREFETCH)

    def __aiter__(self) -> AsyncIteration[T_co]:
        return self.iterate_async()

    __aiter__.__doc__ = TerminalOperators.iterate_async.__doc__

    def explain(self) -> str:
        """The pipeline as the specification draws it: `|` is a boundary, below it the resource of each part.

        Returns:
            Two lines, and below them a line for each executor. `caller` is the thread that requests. `¦` stands where
            an operator gives what comes before it a drain of its own, since it may keep its thread, and the operator
            hears from elsewhere: a clock, a switch, another publisher.

        Demand:
            None: it subscribes to nothing.

        Cancellation:
            None: nothing runs.

        Thread:
            It runs none of the flow's functions.

        Example:
            >>> from reactive_runtime import Flow
            >>> print(Flow.range(9).map(str).take(2).explain())
            range(9) map(str) take(2) consume
            ------------- caller ------------

        Origin:
            The drawings of asynchronous boundaries in the specification of Reactive Streams.
        """
        return drawing(self._parts())

    def __str__(self) -> str:
        return " | ".join(part.text for part in self._parts()).rstrip()

    def __repr__(self) -> str:
        return f"<Flow {self}>"


class ConnectableFlow(Flow[T]):
    """A flow whose subscribers share one subscription to its source; see `Flow.publish` and `Flow.replay`."""

    __slots__ = ("_connectable",)

    def __init__(self, connectable: ConnectableSource) -> None:
        """For `publish` and `replay`."""
        self._begin(connectable.flow_source())
        self._connectable = connectable

    def connect(self) -> Disposable:
        """Subscribe to the source, unless there is a connection that goes on.

        Returns:
            A handle whose `cancel` cancels the source. The subscribers of that connection then get what waits for them
            already, and no end. After the end, or a cancel, `connect` begins anew.
        """
        return Disposable(Connection(self._connectable.connect()))

    def ref_count(self, n: int = 1) -> Flow[T]:
        """A flow that connects when it has `n` subscribers, and cancels the source when none is left.

        Args:
            n: How many; 1 or more.

        Returns:
            A flow whose subscribers share one subscription to the source.

        Raises:
            TypeError: `n` is no int.
            ValueError: `n` is below 1.
        """
        return self._connectable.ref_count(at_least("ref_count", "n", 1, n))


class Connection:
    """The subscription of the handle of `connect`: its `cancel` cancels the source that is shared."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def request(self, n: int, /) -> None:
        """Does nothing: the subscribers request."""

    def cancel(self) -> None:
        """Cancel the source."""
        self._end()


make_flows_of(Flow, ConnectableFlow)
at_home("reactive_runtime", *(globals()[name] for name in __all__ if name != "Operators"))

if os.environ.get("REACTIVE_RUNTIME_LIVE", "0") not in ("", "0"):  # the socket for `reactive-runtime ps`
    import_module("reactive_runtime.live._socket").open_as_asked()  # it imports upwards, and only where it is asked for
