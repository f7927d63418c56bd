"""The two sides of a hot source, driven by hand, and the model of a subscriber that they are held to."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any

from reactive_runtime._spec import MAX_DEMAND, Subscriber, Subscription

__all__ = ["Expected", "Hand", "Held", "Here", "Listener", "OnCall"]


class Here(Executor):
    """Runs tasks where they are submitted, with no lock of its own."""

    def submit(self, fn: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*arguments, **named))
        return future


class OnCall(Executor):
    """Runs a task when the test says so."""

    def __init__(self) -> None:
        self.tasks: deque[Callable[[], Any]] = deque()
        self.submitted = 0

    def submit(self, fn: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.tasks.append(lambda: future.set_result(fn(*arguments, **named)))
        self.submitted += 1
        return future

    def run(self) -> None:
        """The oldest task, if there is one."""
        if self.tasks:
            self.tasks.popleft()()

    def run_all(self) -> None:
        while self.tasks:
            self.run()


class Held:
    """One subscription to a `Hand`."""

    def __init__(self, subscriber: Subscriber[Any]) -> None:
        self.subscriber = subscriber
        self.demand = 0
        self.cancelled = False
        self.ended = False

    def request(self, n: int, /) -> None:
        assert n > 0
        self.demand = min(self.demand + n, MAX_DEMAND)

    def cancel(self) -> None:
        self.cancelled = True

    @property
    def live(self) -> bool:
        """Whether there is a subscriber."""
        return not (self.cancelled or self.ended)

    def emit(self, element: Any) -> None:
        """One element that was asked for."""
        assert self.live
        assert self.demand
        self.demand -= self.demand != MAX_DEMAND
        self.subscriber.on_next(element)

    def end(self, error: BaseException | None) -> None:
        """The end."""
        assert self.live
        self.ended = True
        if error is None:
            self.subscriber.on_complete()
        else:
            self.subscriber.on_error(error)


class Hand:
    """A publisher that a test drives, and that keeps all its subscriptions."""

    def __init__(self) -> None:
        self.held: list[Held] = []
        self.empty = False  # those who subscribe get the end at once

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        held = Held(subscriber)
        self.held.append(held)
        subscriber.on_subscribe(held)
        if self.empty and held.live:
            held.end(None)

    def live(self) -> list[Held]:
        """The subscriptions that go on."""
        return [held for held in self.held if held.live]


class Listener:
    """A subscriber that notes what it gets, and cancels or asks in the middle of a signal.

    `cancels_in`: 0 in `on_subscribe`, n in the n-th `on_next`, -1 never. `asks`: for one more in each `on_next`.
    """

    def __init__(
        self,
        demand: int = 0,
        *,
        cancels_in: int = -1,
        asks: bool = False,
        then: Callable[[Any], object] | None = None,
    ) -> None:
        self.demand = demand
        self.cancels_in = cancels_in
        self.asks = asks
        self.then = then
        self.elements: list[Any] = []
        self.ends: list[Any] = []
        self.subscription: Subscription

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        if self.demand:
            subscription.request(self.demand)
        if not self.cancels_in:
            subscription.cancel()

    def on_next(self, element: Any, /) -> None:
        assert not self.ends, "an element after the end (1.7)"
        self.elements.append(element)
        if self.then is not None:
            self.then(element)
        if len(self.elements) == self.cancels_in:
            self.subscription.cancel()
        elif self.asks:
            self.subscription.request(1)

    def on_error(self, error: BaseException, /) -> None:
        self.ends.append(error)

    def on_complete(self) -> None:
        self.ends.append("complete")


class Expected:
    """What a listener has to have got, if nothing is lost, late, or too much."""

    def __init__(self, listener: Listener, replayed: Sequence[Any] = ()) -> None:
        self.listener = listener
        self.due = list(replayed)  # all that it may get, in order
        self.replayed = len(self.due)  # of these, what was there before it came
        self.demand = listener.demand
        self.got = 0
        self.end: Any = None  # what follows on the last element
        self.ended = False
        self.gone = not listener.cancels_in

    def settle(self) -> None:
        """Take as much as is asked for."""
        while not self.gone and self.demand and self.got < len(self.due):
            self.got += 1
            self.demand -= self.demand != MAX_DEMAND
            if self.listener.cancels_in == self.got:
                self.gone = True
            elif self.listener.asks:
                self.demand = min(self.demand + 1, MAX_DEMAND)
        if not self.gone and self.end is not None and self.got == len(self.due):
            self.gone = self.ended = True

    def waiting(self) -> int:
        """How many elements wait for it and take room."""
        return len(self.due) - max(self.got, self.replayed)

    def check(self) -> None:
        """Hold the listener to it."""
        assert self.listener.elements == self.due[: self.got]
        assert self.listener.ends == ([self.end] if self.ended else [])
