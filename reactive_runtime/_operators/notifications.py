"""Signals as elements, and elements as signals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from reactive_runtime._core.failures.error_carrier import carried
from reactive_runtime._core.fusion.step import STOP, Each, Step
from reactive_runtime._operators.flow_base import FlowBase
from reactive_runtime._operators.stateful import stateful
from reactive_runtime._spec import MAX_DEMAND
from reactive_runtime._support.shown import shown

if TYPE_CHECKING:
    from reactive_runtime._flow import Flow

__all__ = ["Notification", "NotificationOperators"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class NotificationOperators(FlowBase[T_co]):
    """Signals as elements, and elements as signals."""

    __slots__ = ()

    @stateful
    def materialize(self) -> Flow[Notification[T_co]]:
        """Each signal as a `Notification`, the end included.

        Returns:
            A flow of notifications. It completes after that of the end, also where the source failed.

        Demand:
            Passes through. The notification of the end goes on by demand, like an element.

        Cancellation:
            Passes through.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> [notice.signal for notice in Flow.just(1).materialize()]
            ['on_next', 'on_complete']

        Origin:
            `materialize` of Rx.
        """
        return self._then(_Noticed()).on_error_return(lambda error: Notification("on_error", error=error))

    def dematerialize(self: FlowBase[Notification[T]]) -> Flow[T]:
        """Each `Notification` as the signal that it stands for: the opposite of `materialize`.

        Returns:
            A flow that ends with the first notification of an end, or with the source. It fails with TypeError where an
            element is not a notification, or is one of `on_next` without an element.

        Demand:
            One more element than is demanded is requested upstream: the end is an element there.

        Cancellation:
            Passes through. The first notification of an end cancels the upstream.

        Thread:
            Runs on the thread that signals.

        Example:
            >>> from reactive_runtime import Flow
            >>> list(Flow.just(1, 2).materialize().dematerialize())
            [1, 2]

        Origin:
            `dematerialize` of Rx.
        """
        return self._then(_Denoticed())


@dataclass(frozen=True, slots=True)
class Notification(Generic[T]):
    """A signal as an element; see `materialize`."""

    signal: Literal["on_next", "on_error", "on_complete"]
    element: T | None = None
    error: BaseException | None = None


class _Noticed(Step[T, Notification[T]]):
    name = "materialize"

    def on_next(self, element: T) -> Each[Notification[T]]:
        yield Notification("on_next", element)

    def on_complete(self) -> Iterator[Notification[T]]:
        yield Notification("on_complete")

    def __str__(self) -> str:
        return "materialize()"


class _Denoticed(Step[Notification[T], T]):
    name = "dematerialize"

    def on_next(self, element: Notification[T]) -> Each[T]:
        if not isinstance(element, Notification):
            raise TypeError(f"{self}: a Notification is needed, not {type(element).__name__}")
        if element.signal == "on_complete":
            return STOP
        if element.error is not None:
            raise carried(element.error) if isinstance(element.error, Exception) else element.error
        if element.element is None:
            raise TypeError(f"{self}: {shown(element)} has no element")
        yield element.element

    def upstream_demand(self, n: int) -> int:
        return min(n + 1, MAX_DEMAND)  # here the end is an element

    def __str__(self) -> str:
        return "dematerialize()"
