"""reactivex (RxPY), both ways: its observables have no demand, so a bounded buffer stands where a flow begins.

Needs `reactivex`, which no extra brings: a program that has observables has it.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from reactive_runtime._core.failures.assembly import an_exception
from reactive_runtime._core.queues.emit_result import EmitResult
from reactive_runtime._core.runtime.arguments import at_least, one_of
from reactive_runtime._core.sources.naming import instead
from reactive_runtime._flow import Flow
from reactive_runtime._operators.flow_base import as_flow
from reactive_runtime._operators.sources.creating import Emitter
from reactive_runtime._spec import MAX_DEMAND, Publisher, Subscription
from reactive_runtime._support.public_names import all_at_home as _all_at_home
from reactive_runtime.errors import MissingDependencyError

try:
    import reactivex
    from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
    from reactivex.disposable import Disposable, SingleAssignmentDisposable
    from reactivex.scheduler import CurrentThreadScheduler
except ImportError as _error:
    raise MissingDependencyError("observables need reactivex: pip install reactivex") from _error

__all__ = ["from_observable", "to_observable"]

T = TypeVar("T")


def from_observable(
    observable: reactivex.Observable[T],
    *,
    overflow: Literal["error", "newest", "oldest"] = "error",
    capacity: int = 256,
) -> Flow[T]:
    """The elements of an observable of reactivex; those that come without demand wait, up to `capacity`.

    Args:
        observable: Subscribed to for each subscriber.
        overflow: The effect of one element more than `capacity`. "error": the flow fails with OverflowError. "newest":
            that element is dropped. "oldest": the one that has waited longest is dropped. Dropped elements go to the
            hook.
        capacity: How many elements may wait for demand; 1 or more.

    Returns:
        A flow of the elements. It fails with the error of the observable, and with TypeError where an element is None
        (2.13).

    Raises:
        TypeError: `observable` is none, or `capacity` is not an int.
        ValueError: `overflow` is none of the three, or `capacity` is below 1.

    Demand:
        Does not hold the observable back: it has no demand.

    Cancellation:
        Disposes of the subscription, and drops the elements that wait, to the hook. An observable that emits while it
        is subscribed to, and does not come back, can't be disposed of before that.

    Thread:
        The observable is subscribed to on the thread that subscribes. An element is signalled on the thread that emits
        it, or on the one that requests it later; with `subscribe_on` or `publish_on`, on that executor.

    Example:
        >>> import reactivex
        >>> list(from_observable(reactivex.of(1, 2)))
        [1, 2]

    Origin:
        `toFlowable` of RxJava, with a `BackpressureStrategy`.
    """
    if not isinstance(observable, reactivex.Observable):
        raise TypeError(f"from_observable: an Observable of reactivex is needed, not {instead(observable)}")
    one_of("from_observable", "overflow", ("error", "newest", "oldest"), overflow)
    at_least("from_observable", "capacity", 1, capacity)

    def observed(emitter: Emitter[T]) -> None:
        def on_next(element: T) -> None:
            if element is None:
                emitter.error(TypeError("from_observable: None is not an element (2.13): map it to something else"))
            elif (result := emitter.emit(element)) is EmitResult.OK or (
                result is EmitResult.OVERFLOW and overflow == "newest"
            ):
                return
            subscription.dispose()  # no subscriber wants more of it

        subscription = SingleAssignmentDisposable()
        emitter.on_cancel(subscription.dispose)
        subscription.disposable = observable.subscribe(
            on_next, lambda error: _fail(emitter, error), lambda: _complete(emitter)
        )

    return Flow.create(observed, overflow=overflow, capacity=capacity)


def _fail(emitter: Emitter[Any], error: Exception) -> None:
    emitter.error(an_exception(error))


def _complete(emitter: Emitter[Any]) -> None:
    emitter.complete()


def to_observable(source: Publisher[T]) -> reactivex.Observable[T]:
    """An observable of reactivex with the elements of a flow.

    Args:
        source: A publisher; subscribed to for each observer.

    Returns:
        The observable. It fails with the error of `source`.

    Raises:
        TypeError: `source` is no publisher.

    Demand:
        Without bound: an observer has none. An observer that is slow holds the source back, since its `on_next` is
        waited for; `observe_on` of reactivex has a buffer without bound.

    Cancellation:
        `dispose` cancels the subscription; so do the operators of reactivex that end, as `take`.

    Thread:
        `source` is subscribed to on the thread that subscribes. Elements are requested on the scheduler of the
        subscription, by default on that thread too, and are signalled where the flow signals them.

    Example:
        >>> from reactivex import operators
        >>> to_observable(Flow.range(10**9)).pipe(operators.take(2)).subscribe(print).dispose()
        0
        1

    Origin:
        `toObservable` of RxJava.
    """
    flow: Flow[T] = as_flow("to_observable", "source", source)

    def subscribe(observer: ObserverBase[T], scheduler: SchedulerBase | None = None) -> DisposableBase:
        relay = _Relay(observer)
        flow.subscribe(relay)
        # Later, on a scheduler: by then the observer can dispose of the subscription, also inside of `on_next`.
        (scheduler or CurrentThreadScheduler.singleton()).schedule(relay.begin)
        return Disposable(relay.cancel)

    return reactivex.create(subscribe)


class _Relay:
    """Hands the signals of a flow to an observer."""

    def __init__(self, observer: ObserverBase[Any]) -> None:
        self._observer = observer
        self._subscription: Subscription  # set by the first signal, before `begin`

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscription = subscription

    def begin(self, scheduler: Any = None, state: Any = None) -> None:
        self._subscription.request(MAX_DEMAND)

    def cancel(self) -> None:
        self._subscription.cancel()

    def on_next(self, element: Any, /) -> None:
        self._observer.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        self._observer.on_error(an_exception(error))

    def on_complete(self) -> None:
        self._observer.on_completed()


_all_at_home(globals())
