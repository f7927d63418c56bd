"""Operators that show what a flow does: in a log, in counts, in errors and in drawings.

A function that raises here ends the flow with its error, as a function of an operator does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from reactive_runtime._core.failures.assembly import AssemblyLocation, add_note, assembly_location
from reactive_runtime._core.fusion.step import Each, Step
from reactive_runtime._core.runtime import primitives
from reactive_runtime._core.runtime.arguments import at_least, check_callable
from reactive_runtime._core.sources.naming import instead
from reactive_runtime._operators.flow_base import FlowBase
from reactive_runtime._operators.side_effects import Listener, tapped

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["Metrics", "MonitoringOperators"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class MonitoringOperators(FlowBase[T_co]):
    """Operators that show what a flow does: in a log, in counts, in errors and in drawings."""

    __slots__ = ()

    def log(self, name: str = "reactive_runtime.flow", *, level: int = logging.INFO) -> Flow[T_co]:
        """Each signal as a line of a logger: subscription, elements, end, and cancellation.

        Args:
            name: The name of the logger.
            level: The level of the lines, an int of `logging`.

        Returns:
            A flow of the same signals. It fails with the error that the logger raises.

        Raises:
            TypeError: `name` is not a str, or `level` is no int.
            ValueError: `level` is negative.

        Demand:
            Passes through.

        Cancellation:
            Passes through.

        Thread:
            The logger is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.range(2).log("rows"))
            [0, 1]

        Origin:
            `log` of Reactor.
        """
        if not isinstance(name, str):
            raise TypeError(f"log: name must be a str, not {type(name).__name__}")
        at_least("log", "level", 0, level)
        return tapped(f"log({name})", self, _Log(logging.getLogger(name), level))

    def named(self, name: str) -> Flow[T_co]:
        """The same flow, with a name that `explain` shows.

        Args:
            name: Any text.

        Returns:
            A flow of the same signals.

        Raises:
            TypeError: `name` is not a str.

        Demand:
            Passes through.

        Cancellation:
            Passes through.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> print(Flow.range(2).named("rows").explain())
            range(2) named(rows) consume
            ---------- caller ----------

        Origin:
            `name` of Reactor.
        """
        if not isinstance(name, str):
            raise TypeError(f"named: name must be a str, not {type(name).__name__}")
        return self._then(Named(name))

    def checkpoint(self, description: str = "") -> Flow[T_co]:
        """An error that comes from upstream gets a note that says where this line is.

        Args:
            description: Stands in the note as well.

        Returns:
            A flow of the same signals.

        Raises:
            TypeError: `description` is not a str.

        Demand:
            Passes through.

        Cancellation:
            Passes through.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> flow = Flow.error(OSError("gone")).checkpoint("reading rows")
            >>> _ = flow.subscribe(print, on_error=lambda error: print(error.__notes__[0].partition(",")[0]))
            passed checkpoint 'reading rows'

        Origin:
            `checkpoint` of Reactor.
        """
        if not isinstance(description, str):
            raise TypeError(f"checkpoint: description must be a str, not {type(description).__name__}")
        return tapped(f"checkpoint({description})", self, _Checkpoint(description, assembly_location()))

    def metrics(self, counts: Metrics) -> Flow[T_co]:
        """Counts the signals into `counts`.

        Args:
            counts: A `Metrics`, which may serve several flows.

        Returns:
            A flow of the same signals.

        Raises:
            TypeError: `counts` is no `Metrics`.

        Demand:
            Passes through.

        Cancellation:
            Passes through.

        Thread:
            The signals are counted on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow, Metrics
            >>> counts = Metrics()
            >>> _ = Flow.range(3).metrics(counts).block()
            >>> counts.counts()["elements"]
            3

        Origin:
            `metrics` of Reactor.
        """
        if not isinstance(counts, Metrics):
            raise TypeError(f"metrics: a Metrics is needed, not {instead(counts)}")
        return tapped("metrics()", self, counts)

    def progress(self, report: Callable[[int], object], *, every: int = 1000) -> Flow[T_co]:
        """`report(n)` is called with the number of elements so far.

        Args:
            report: Called before every n-th element goes on, and when the source completes, unless that number was
                reported last or is 0.
            every: Elements from one call to the next, 1 or more.

        Returns:
            A flow of the same signals. It fails with the error that `report` raises.

        Raises:
            TypeError: `report` cannot be called, or `every` is not an int.
            ValueError: `every` is below 1.

        Demand:
            Passes through.

        Cancellation:
            Passes through.

        Thread:
            `report` is called on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> _ = Flow.range(5).progress(print, every=2).block()
            2
            4
            5

        Origin:
            This project.
        """
        check_callable("progress", "report", report)
        at_least("progress", "every", 1, every)
        return self._then(_Progress(report, every))


class _Log(Listener):
    def __init__(self, logger: logging.Logger, level: int) -> None:
        self.logger = logger
        self.level = level

    def on_subscribe(self) -> None:
        self.logger.log(self.level, "on_subscribe")

    def on_next(self, element: Any) -> None:
        self.logger.log(self.level, "on_next(%r)", element)

    def on_error(self, error: Exception) -> None:
        self.logger.log(self.level, "on_error(%r)", error)

    def on_complete(self) -> None:
        self.logger.log(self.level, "on_complete()")

    def on_cancel(self) -> None:
        self.logger.log(self.level, "cancel()")


counted_as: Callable[[Named[Any]], Step[Any, Any]] | None = None
"""Makes, for a subscription, the step that counts the elements of a name. Written once, by telemetry."""


class Named(Step[T, T]):
    """A name for the operator before it."""

    name = "named"

    def __init__(self, title: str) -> None:
        self.title = title

    def on_next(self, element: T) -> Each[T]:
        yield element

    def copy(self) -> Any:
        return counted_as(self) if counted_as else super().copy()

    def __str__(self) -> str:
        return f"named({self.title})"


class _Checkpoint(Listener):
    def __init__(self, description: str, location: AssemblyLocation | None) -> None:
        where = f"{location[0]}:{location[1]}" if location else "a place that is not known"
        self.note = f"passed checkpoint {description!r}, at {where}"

    def on_error(self, error: Exception) -> None:
        add_note(error, self.note)


class Metrics(Listener):
    """Counts signals, over all subscriptions of the flows that have it.

    They can be read at any time, on any thread.
    """

    NAMES: Final = ("subscribed", "elements", "completed", "failed", "cancelled")

    def __init__(self) -> None:
        self._lock = primitives.Lock()
        self._counts: dict[str, int] = dict.fromkeys(self.NAMES, 0)  # _lock

    def _add(self, name: str) -> None:
        with self._lock:
            self._counts[name] += 1

    def counts(self) -> dict[str, int]:
        """The counts now.

        Returns:
            How many `subscribed`, `elements`, `completed`, `failed` and `cancelled` there were, by these names.
        """
        with self._lock:
            return dict(self._counts)

    def on_subscribe(self) -> None:
        self._add("subscribed")

    def on_next(self, element: Any) -> None:
        self._add("elements")

    def on_error(self, error: Exception) -> None:
        self._add("failed")

    def on_complete(self) -> None:
        self._add("completed")

    def on_cancel(self) -> None:
        self._add("cancelled")


class _Progress(Step[T, T]):
    name = "progress"

    def __init__(self, report: Callable[[int], object], every: int) -> None:
        self.report = report
        self.every = every
        self.number = 0

    def on_next(self, element: T) -> Each[T]:
        self.number += 1
        if self.number % self.every == 0:
            self.report(self.number)
        yield element

    def on_complete(self) -> Any:
        if self.number % self.every:
            self.report(self.number)
        none: Iterable[T] = ()
        for element in none:  # noqa: UP028 - a step writes its loops
            yield element

    def __str__(self) -> str:
        return f"progress({self.every})"
