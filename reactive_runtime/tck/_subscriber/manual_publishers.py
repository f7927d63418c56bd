"""A publisher that a check drives by hand, and a probe for the signals that a subscriber receives."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from reactive_runtime._spec import Subscriber
from reactive_runtime.tck._running.environment import TestEnvironment
from reactive_runtime.tck._running.failures import same, shown

__all__ = ["ManualPublisher", "SubscriberPuppet", "WhiteboxSubscriberProbe"]

T = TypeVar("T")


class ManualPublisher(Generic[T]):
    """A publisher for one subscriber, which a check drives by hand. The lock of the trial owns its fields."""

    def __init__(self, env: TestEnvironment) -> None:
        self.env = env
        self.subscriber: Subscriber[T] | None = None
        self.requests: list[int] = []
        self.taken: int = 0  # the number of requests that the check has looked at
        self.cancels = 0
        self.sent: int = 0  # the number of elements
        self.answers = False  # whether it answers an invalid request, which a processor may pass on
        self.answered: bool = False
        self.ending: set[int] = set()  # the threads inside a terminal signal, where they may not call back (2.3)
        self.hold: float = 0.0  # seconds for which it keeps each call inside, to find one beside it (2.7)
        self.last_sent: float = 0.0  # the time of the last signal
        self.longest: float = 0.0  # the most seconds from a signal to a call of the subscriber
        self.calling: list[int] = []  # the threads that are inside a call, once for each

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """Connect the subscriber; 1.9."""
        self.subscriber = subscriber
        self.env.call("on_subscribe(subscription)", subscriber.on_subscribe, _ManualSubscription(self), rule="2.13")

    # -- what a check does with it -----------------------------------------------------------------------------

    def send_next(self, element: T) -> None:
        """Signal `on_next(element)`."""
        self.sent += 1
        self._send(f"on_next({shown(element)})", "on_next", element)

    def send_error(self, error: BaseException) -> None:
        """Signal `on_error(error)`."""
        self._send_end(f"on_error({shown(error)})", "on_error", error)

    def send_completion(self) -> None:
        """Signal `on_complete()`."""
        self._send_end("on_complete()", "on_complete")

    def send_end(self, error: BaseException | None) -> None:
        """Signal `on_error(error)`; of None, `on_complete()`."""
        if error is None:
            self.send_completion()
        else:
            self.send_error(error)

    def _send(self, text: str, method: str, *arguments: object) -> None:
        assert self.subscriber is not None
        with self.env.lock:
            self.env.note(f"publisher: {text} ->")
            self.last_sent = time.monotonic()
        self.env.call(text, getattr(self.subscriber, method), *arguments, rule="2.13")

    def _send_end(self, text: str, method: str, *arguments: object) -> None:
        thread = threading.get_ident()
        with self.env.lock:
            self.ending.add(thread)
        try:
            self._send(text, method, *arguments)
        finally:
            with self.env.lock:
                self.ending.discard(thread)

    def expect_request(self, why: str = "", rule: str = "2.1") -> int:
        """Wait for one more `request`, which `rule` demands, and return its n."""
        self.env.expect(lambda: len(self.requests) > self.taken, f"no request came{why and f': {why}'}", rule)
        self.taken += 1
        return self.requests[self.taken - 1]

    def answer(self, n: object) -> None:
        """End the stream after an invalid request, as a publisher has to (3.9)."""
        assert self.subscriber is not None
        self.answered = True
        error = ValueError(f"request({shown(n)}): demand is an int of at least 1 (3.9)")
        self.env.call_inside(f"on_error({shown(error)})", self.subscriber.on_error, error, rule="2.13")

    def wants_more_than(self, elements: int) -> Callable[[], bool]:
        """A condition to wait for: the requests exceed so many elements, or the subscriber has cancelled."""
        return lambda: sum(self.requests) > elements or self.cancels > 0

    def rest(self) -> None:
        """Wait until the subscriber, which may work on another thread, makes no call for `default_timeout`."""
        while True:
            before = len(self.requests) + self.cancels
            quiet = max(self.env.settings.default_timeout, 5 * self.longest)
            if not self.env.happens(lambda before=before: len(self.requests) + self.cancels > before, quiet):  # type: ignore[misc]
                return

    def expect_cancelling(self) -> None:
        """Wait for `cancel`."""
        self.env.expect(lambda: self.cancels, "no cancel came")


class _ManualSubscription:
    """The subscription of a `ManualPublisher`."""

    def __init__(self, publisher: ManualPublisher[Any]) -> None:
        self._publisher = publisher

    def request(self, n: int, /) -> None:
        publisher = self._publisher
        with self._call(f"request({shown(n)})"):
            invalid = isinstance(n, bool) or not isinstance(n, int) or n < 1
            if invalid and publisher.answers:
                publisher.answer(n)
                return
            if invalid:
                publisher.env.fault(f"the subscriber called request({shown(n)}), which is no demand", "3.9")
            with publisher.env.lock:
                publisher.requests.append(n)
                publisher.env.wake()

    def cancel(self) -> None:
        publisher = self._publisher
        with self._call("cancel()"), publisher.env.lock:
            publisher.cancels += 1
            publisher.env.wake()

    @contextlib.contextmanager
    def _call(self, text: str) -> Iterator[None]:
        """Note a call; it must not come inside a terminal signal (2.3), nor beside another one (2.7)."""
        publisher, thread = self._publisher, threading.get_ident()
        env = publisher.env
        with env.lock:
            env.note(f"publisher: <- {text}")
            if thread in publisher.ending:
                env.fault(f"{text} was called from inside a terminal signal", "2.3")
            if any(item != thread for item in publisher.calling):
                env.fault(f"{text} was called on one thread while another call ran on another", "2.7")
            publisher.calling.append(thread)
            if publisher.last_sent:
                publisher.longest = max(publisher.longest, time.monotonic() - publisher.last_sent)
        try:
            if publisher.hold:
                env.happens_quietly(lambda: len(set(publisher.calling)) > 1, publisher.hold)
            yield
        finally:
            with env.lock:
                publisher.calling.remove(thread)


class SubscriberPuppet:
    """Drives a subscriber under a whitebox check: it requests and cancels when the kit says so."""

    def trigger_request(self, elements: int) -> None:
        """Request from the subscription that the subscriber got.

        Args:
            elements: How many, 1 or more.
        """
        raise NotImplementedError

    def signal_cancel(self) -> None:
        """Cancel that subscription."""
        raise NotImplementedError


class WhiteboxSubscriberProbe(Generic[T]):
    """A subscriber under a whitebox check registers here what it receives.

    Thread:
        The subscriber may register on any thread.
    """

    def __init__(self, env: TestEnvironment) -> None:
        self._env = env
        self._puppet: SubscriberPuppet | None = None  # the trial's lock owns this and the rest
        self._elements: list[T] = []
        self._taken = 0
        self._errors: list[BaseException] = []
        self._completions = 0

    # -- called by the subscriber ------------------------------------------------------------------------------

    def register_on_subscribe(self, puppet: SubscriberPuppet) -> None:
        """Register `on_subscribe`. A later call has no effect.

        Args:
            puppet: Requests from and cancels the subscription that the subscriber keeps.
        """
        with self._env.lock:
            self._env.note("probe: register_on_subscribe")
            self._puppet = self._puppet or puppet

    def register_on_next(self, element: T) -> None:
        """Register `on_next`.

        Args:
            element: The element that came.
        """
        text = f"probe: register_on_next({shown(element)})"  # before the lock: its repr is foreign
        with self._env.lock:
            self._env.note(text)
            self._elements.append(element)

    def register_on_error(self, error: BaseException) -> None:
        """Register `on_error`. A second call is a fault (1.7).

        Args:
            error: The error that came.
        """
        text = f"probe: register_on_error({shown(error)})"
        with self._env.lock:
            self._env.note(text)
            self._errors.append(error)
            if len(self._errors) > 1:
                self._env.fault("the subscriber registered on_error a second time", "1.7")

    def register_on_complete(self) -> None:
        """Register `on_complete`. A second call is a fault (1.7)."""
        with self._env.lock:
            self._env.note("probe: register_on_complete()")
            self._completions += 1
            if self._completions > 1:
                self._env.fault("the subscriber registered on_complete a second time", "1.7")

    # -- called by the kit -------------------------------------------------------------------------------------

    def puppet(self) -> SubscriberPuppet:
        """Wait for the puppet.

        Returns:
            The puppet that the subscriber registered.

        Raises:
            ConformanceError: It did not call `register_on_subscribe` in time.
        """
        self._env.happens(lambda: self._puppet)
        if self._puppet is None:
            self._env.fail("the subscriber did not call probe.register_on_subscribe in on_subscribe")
        return self._puppet

    def trigger_request(self, n: int) -> None:
        """Have the subscriber request `n`.

        Args:
            n: How many, 1 or more.
        """
        self._env.call(f"puppet.trigger_request({n})", self.puppet().trigger_request, n)

    def signal_cancel(self) -> None:
        """Have the subscriber cancel."""
        self._env.call("puppet.signal_cancel()", self.puppet().signal_cancel)

    def expect_next(self, expected: T) -> None:
        """Wait for the subscriber to register an element.

        Args:
            expected: The element that it is equal to.

        Raises:
            ConformanceError: No element was registered in time, or another one.
        """
        seen = f"the subscriber did not register on_next({shown(expected)})"
        self._env.expect(lambda: len(self._elements) > self._taken, seen)
        got = self._elements[self._taken]
        self._taken += 1
        self._env.check(
            same(expected, got), f"the subscriber registered {shown(got)}, where {shown(expected)} was sent"
        )

    def expect_none(self) -> None:
        """The subscriber registers no further element.

        Raises:
            ConformanceError: It registered one.
        """
        more = self._env.silence(lambda: len(self._elements))
        self._env.check(not more, "the subscriber registered an element that was not sent")

    def expect_completion(self) -> None:
        """Wait for the subscriber to register `on_complete`.

        Raises:
            ConformanceError: It did not in time.
        """
        self._env.expect(lambda: self._completions, "the subscriber did not register on_complete()", "2.9")

    def expect_error(self, expected: BaseException) -> None:
        """Wait for the subscriber to register `on_error`.

        Args:
            expected: The very error.

        Raises:
            ConformanceError: No error was registered in time, or another one.
        """
        self._env.expect(lambda: self._errors, f"the subscriber did not register on_error({shown(expected)})", "2.10")
        got = self._errors[0]
        seen = f"the subscriber registered on_error({shown(got)}), not {shown(expected)}"
        self._env.check(got is expected, seen, "2.10")
