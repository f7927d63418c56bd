"""How a subclass makes publishers for the kit, and what a check does with one before it begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from reactive_runtime.spec import MAX_DEMAND, Publisher
from reactive_runtime.tck.environment import NotVerified, TestEnvironment, shown
from reactive_runtime.tck.probes import ManualSubscriber
from reactive_runtime.tck.verification import Verification

__all__ = ["PublisherFactory"]

T = TypeVar("T")


class PublisherFactory(Verification, Generic[T]):
    """What a subclass says of its publishers, and the steps that all their checks share."""

    max_elements_from_publisher: int = MAX_DEMAND - 1
    """How many elements `create_publisher` can be asked for; checks that need more are skipped.

    MAX_DEMAND says that the publisher never completes, and skips every check that needs `on_complete`.
    """

    bounded_depth_of_on_next_and_request_recursion: int = 1
    """How deep `request` → `on_next` → `request` may recurse (3.3)."""

    skip_stochastic_tests: bool = False
    """Skip what can only be tested by repetition."""

    requests_may_be_concurrent: bool = True
    """Whether `request` is thread-safe. The letter of 2.7 lets a publisher leave that to its subscribers."""

    def create_publisher(self, elements: int) -> Publisher[T]:
        """A new publisher of exactly `elements` elements; of MAX_DEMAND: of a stream without end."""
        raise NotImplementedError(f"{type(self).__name__} has to define create_publisher(self, elements)")

    def create_failed_publisher(self) -> Publisher[T] | None:
        """A new publisher that gives `on_subscribe` and then `on_error`; None skips the checks that need one."""
        return None

    def create_publisher_failing_after(self, elements: int) -> Publisher[T] | None:
        """A new publisher of `elements` elements that then fails; None skips the checks that need one."""
        return None

    def _publisher(self, env: TestEnvironment, elements: int, *, completes: bool = False) -> Publisher[T]:
        most = self.max_elements_from_publisher
        if elements > most:
            raise NotVerified(f"rule {env.rule}: needs {elements} elements; max_elements_from_publisher is {most}")
        if completes and most == MAX_DEMAND:
            raise NotVerified(f"rule {env.rule}: needs on_complete; max_elements_from_publisher says it never comes")
        env.elements = elements
        return self._created(env, f"create_publisher({elements})", self.create_publisher, elements)

    def _failed_publisher(self, env: TestEnvironment) -> Publisher[T]:
        made = env.call("create_failed_publisher()", self.create_failed_publisher)
        if made is None:
            raise NotVerified(f"rule {env.rule}: create_failed_publisher returned None: there is none to test")
        return self._created(env, "create_failed_publisher()", lambda: made)

    def _publisher_failing_after(self, env: TestEnvironment, elements: int) -> Publisher[T]:
        made = env.call(f"create_publisher_failing_after({elements})", self.create_publisher_failing_after, elements)
        if made is None:
            raise NotVerified(f"rule {env.rule}: create_publisher_failing_after returned None: there is none to test")
        return self._created(env, "create_publisher_failing_after()", lambda: made)

    def _created(self, env: TestEnvironment, text: str, factory: Callable[..., Any], *arguments: int) -> Publisher[T]:
        publisher = env.call(text, factory, *arguments)
        if publisher is None:
            env.fail(f"{text} returned None, where a Publisher is needed")
        if not callable(getattr(publisher, "subscribe", None)):
            env.fail(f"{text} returned {shown(publisher)}, which is no Publisher: it has no subscribe")
        made: Publisher[T] = publisher
        return made

    def _subscribe(self, env: TestEnvironment, publisher: Publisher[T], **how: Any) -> ManualSubscriber[T]:
        """Subscribe one of ours, and wait for its `on_subscribe`."""
        subscriber = ManualSubscriber[T](env, **how)
        self._connect(env, publisher, subscriber)
        return subscriber

    def _connect(self, env: TestEnvironment, publisher: Publisher[T], subscriber: ManualSubscriber[T]) -> None:
        env.call("subscribe(subscriber)", publisher.subscribe, subscriber)
        env.happens(lambda: subscriber.subscriptions)
        env.check(subscriber.subscriptions, f"no on_subscribe within {env.settings.default_timeout:g} s (1.9)")
