"""The pieces that the checks of subscribers share: elements, a subscriber on a stage, and reasons to skip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from reactive_runtime._spec import MAX_DEMAND, Publisher, Subscriber, Subscription
from reactive_runtime.tck._publisher.probes import ManualSubscriber
from reactive_runtime.tck._running.environment import TestEnvironment
from reactive_runtime.tck._running.failures import FACTORY, ConformanceError, shown
from reactive_runtime.tck._subscriber.helper import HelperPublisher
from reactive_runtime.tck._subscriber.manual_publishers import ManualPublisher
from reactive_runtime.tck._verification import Skipped, Verification

__all__ = ["ElementFactory", "Elements", "NotSeen", "Stage", "TckError", "created", "refuses_none_at_first"]

T = TypeVar("T")

NOT_SEEN = {
    "2.2": "no check sees from outside whether a subscriber is slow",
    "2.4": "a subscription that counts as cancelled looks like one that is not used",
    "2.6": "only the subscriber knows whether it still needs its subscription",
    "2.7": "the order of calls from inside a subscriber is its own; RuleChecker judges it on recorded signals",
    "2.8": "only a probe can make a subscriber cancel: see the whitebox check",
    "2.11": "no check sees what a subscriber does with a signal after its method has returned",
    "2.12": "it is a rule for publishers; every publisher check fails where on_subscribe comes twice",
    "2.13": "no check can make a subscriber fail from outside",
    "3.1": "no check sees from which context a subscriber calls",
    "3.8": "only a probe can make a subscriber request a number of elements: see the whitebox check",
    "3.10": "it is a freedom of publishers, and no duty of a subscriber",
    "3.11": "it is a freedom of publishers, and no duty of a subscriber",
    "3.14": "it is a freedom of publishers, and no duty of a subscriber",
    "3.15": "it is a duty of subscriptions; every publisher check fails where cancel raises",
    "3.16": "it is a duty of subscriptions; every publisher check fails where request raises",
}


class TckError(RuntimeError):
    """The error with which the kit fails a stream."""

    def __init__(self) -> None:
        super().__init__("the kit's own error: a stream fails on purpose")


class NotSeen(Skipped):
    """A check that can't be made of a subscriber, with the reason for its rule."""

    def __init__(self) -> None:
        super().__init__(NOT_SEEN)


class ElementFactory(Verification, Generic[T]):
    """The source of the elements that the kit signals."""

    def create_element(self, number: int) -> T:
        """The `number`-th element, different from all others; an int, if it is not overridden."""
        element: Any = number
        return element  # type: ignore[no-any-return]

    def create_helper_publisher(self, elements: int) -> Publisher[T]:
        """A conformant publisher of `create_element(0)`, `create_element(1)`, …; of MAX_DEMAND: without end."""
        return HelperPublisher(elements, self.create_element)

    def _elements(self, env: TestEnvironment) -> Elements[T]:
        return Elements(env, self.create_helper_publisher)


class Elements(Generic[T]):
    """The elements of a helper publisher, one after the other. No check judges that publisher."""

    def __init__(self, env: TestEnvironment, create: Callable[[int], Publisher[T]]) -> None:
        self._env = env
        self._subscriber = ManualSubscriber[T](env)
        self._subscriber.name = "elements"
        publisher = env.call("create_helper_publisher()", create, MAX_DEMAND, rule=FACTORY)
        env.call("create_helper_publisher().subscribe", publisher.subscribe, self._subscriber, rule=FACTORY)
        env.happens(lambda: self._subscriber.subscriptions)

    def next(self) -> T:
        """Request one more element, and wait for it."""
        try:
            return self._subscriber.request_next()
        except ConformanceError as failure:
            raise self._env.failure(f"the helper publisher gives no element: {failure.seen}", FACTORY) from failure


class Stage(Generic[T]):
    """A subscriber under test, subscribed to a publisher of the kit."""

    def __init__(self, env: TestEnvironment, elements: Elements[T] | None = None) -> None:
        """`elements` are those that `signal_next` sends."""
        self.env = env
        self.publisher: ManualPublisher[T] = ManualPublisher[T](env)
        self._elements = elements

    def subscribe(self, subscriber: Subscriber[T]) -> None:
        """Subscribe the subscriber under test."""
        self.publisher.subscribe(subscriber)

    @property
    def subscriber(self) -> Subscriber[T]:
        """The subscriber under test."""
        assert self.publisher.subscriber is not None
        return self.publisher.subscriber

    def signal_next(self) -> T:
        """Wait for a request, signal a new element, and return it."""
        publisher = self.publisher
        wanted = f"{publisher.sent + 1} elements were to be requested"
        self.env.expect(publisher.wants_more_than(publisher.sent), wanted, "2.1")
        assert self._elements is not None
        element = self._elements.next()
        self.publisher.send_next(element)
        return element

    def signal_next_elsewhere(self) -> T:
        """The same on another thread than the signals before: signals only have to come one after the other (1.3)."""
        sent: list[T] = []
        self.env.elsewhere(lambda: sent.append(self.signal_next()))
        return sent[0]

    def must_refuse_none(self, method: str) -> None:
        """2.13: `method(None)` raises TypeError, and nothing else does."""
        self.env.note(f"publisher: {method}(None) ->")
        self.env.refuses_none(f"{method}(None)", getattr(self.subscriber, method))

    def cancels_a_second_subscription(self) -> None:
        """2.5: the subscriber cancels a second subscription, and requests nothing from it."""
        second = _SecondSubscription(self.env)
        self.env.call("on_subscribe(a second subscription)", self.subscriber.on_subscribe, second, rule="2.13")
        self.env.expect(lambda: second.cancelled, "the second subscription was not cancelled")


def refuses_none_at_first(env: TestEnvironment, subscriber: Subscriber[Any]) -> None:
    """2.13: `on_subscribe(None)` raises TypeError as the first signal too."""
    stage: Stage[Any] = Stage(env)
    stage.publisher.subscriber = subscriber
    stage.must_refuse_none("on_subscribe")


def signals_inside_request(
    env: TestEnvironment, subscriber: Subscriber[Any], elements: Sequence[Any], error: BaseException | None
) -> Callable[[], object]:
    """Subscribe it to a publisher that signals these elements and the end on the thread that requests.

    Return a function that says whether the subscriber has taken the end, or cancelled.
    """
    between = _Between(env, subscriber)
    HelperPublisher(len(elements), elements.__getitem__, failure=error).subscribe(between)
    return lambda: between.over


class _Between:
    """Passes signals on; each error of the subscriber is a fault. The lock of the trial owns `over`."""

    def __init__(self, env: TestEnvironment, subscriber: Subscriber[Any]) -> None:
        self._env = env
        self._subscriber = subscriber
        self._subscription: Subscription | None = None  # set before any call
        self.over = False

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscription = subscription
        self._pass_on("on_subscribe(subscription)", self._subscriber.on_subscribe, self)

    def on_next(self, element: Any, /) -> None:
        self._pass_on(f"on_next({shown(element)})", self._subscriber.on_next, element)

    def on_error(self, error: BaseException, /) -> None:
        self._pass_on(f"on_error({shown(error)})", self._subscriber.on_error, error)
        self._is_over()

    def on_complete(self) -> None:
        self._pass_on("on_complete()", self._subscriber.on_complete)
        self._is_over()

    def request(self, n: int, /) -> None:
        assert self._subscription is not None
        self._env.note(f"publisher: <- request({shown(n)})")
        self._subscription.request(n)

    def cancel(self) -> None:
        assert self._subscription is not None
        self._env.note("publisher: <- cancel()")
        self._subscription.cancel()
        self._is_over()

    def _pass_on(self, text: str, function: Callable[..., object], *arguments: object) -> None:
        self._env.note(f"publisher: {text} ->")
        self._env.call_inside(text, function, *arguments, rule="2.13")

    def _is_over(self) -> None:
        with self._env.lock:
            self.over = True
            self._env.wake()


class _SecondSubscription:
    """A subscription that the subscriber has to cancel; a request is a fault."""

    def __init__(self, env: TestEnvironment) -> None:
        self._env = env
        self.cancelled = False  # the trial's lock

    def request(self, n: int, /) -> None:
        self._env.fault(f"request({shown(n)}) was called on the second subscription", "2.5")

    def cancel(self) -> None:
        with self._env.lock:
            self._env.note("second subscription: <- cancel()")
            self.cancelled = True


def created(env: TestEnvironment, text: str, factory: Callable[..., Any], *arguments: Any) -> Subscriber[Any]:
    """Call `factory`; fail unless it makes a subscriber."""
    made = env.call(text, factory, *arguments, rule=FACTORY)
    if made is None:
        env.fail(f"{text} returned None, where a Subscriber is needed", FACTORY)
    methods = ("on_subscribe", "on_next", "on_error", "on_complete")
    missing = [name for name in methods if not callable(getattr(made, name, None))]
    if missing:
        env.fail(f"{text} returned {shown(made)}, which is no Subscriber: it has no {', '.join(missing)}", FACTORY)
    subscriber: Subscriber[Any] = made
    return subscriber
