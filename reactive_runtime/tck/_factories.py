"""How a subclass makes publishers for the kit, and what the kit measures of one before the checks."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Generic, TypeVar

from reactive_runtime._spec import MAX_DEMAND, Publisher
from reactive_runtime.tck._publisher.probes import ManualSubscriber
from reactive_runtime.tck._running.environment import FACTORY_TIMES, LONG_ENOUGH, TestEnvironment
from reactive_runtime.tck._running.failures import FACTORY, ConformanceError, NotVerified, shown
from reactive_runtime.tck._running.settings import DEFAULTS, Settings
from reactive_runtime.tck._verification import Verification

__all__ = ["PublisherFactory"]

T = TypeVar("T")
Fact = TypeVar("Fact")

SLOWEST = 3.0
"""Seconds that a signal may take while the kit measures the pace."""

QUICK = 0.002
"""Seconds for a signal, below which the kit shortens no check."""

SLOW = 0.5
"""Seconds for a signal, from which on the implementation is slow, and not only the machine."""

TRIES = 3
"""The kit measures the pace at most so many times."""

FOUND = ("_measures", "_anew", "_second", "_taken_for_quick")
"""The names of the facts that the kit finds once of an implementation."""

MIN_ELEMENTS = 20
"""The least number of elements that a check requests of a slow publisher."""

STEPS = 40
"""About the number of steps of a request; the races hold it once at each."""


@dataclass(frozen=True)
class Work:
    """The things that checks wait for."""

    subscriptions: int
    elements: int
    silences: int
    """Waits for `default_no_signals_timeout`, in which no signal comes."""


WORK = Work(subscriptions=142, elements=378, silences=37)
"""The work of all checks of a publisher but those of `LONG_WORK`, and of the trials before them; a test counts it."""

LONG_WORK = {
    "stochastic_spec103_must_signal_on_methods_sequentially": Work(100, 1_000, 0),
    "extra_spec101_a_large_request_must_be_met_to_the_element": Work(1, 4_999, 1),
    "extra_spec105_a_long_stream_must_give_each_of_its_elements": Work(2, 1_003, 0),
    "extra_spec110_subscribe_must_keep_its_rules_however_often_it_is_called": Work(100, 100, 0),
    "extra_spec101_requests_of_each_size_must_be_met_exactly": Work(39, 12_386, 1),
    "extra_spec309_every_invalid_request_must_be_answered": Work(195, 3, 1),
    "extra_spec317_every_large_request_must_be_met": Work(155, 465, 0),
    "extra_spec308_no_demand_may_be_lost_between_two_requests": Work(STEPS, 3 * STEPS, 0),
    "extra_spec308_no_demand_may_be_lost_where_a_request_leaves": Work(STEPS, 2 * STEPS, 0),
    "extra_spec103_two_requests_at_once_must_not_signal_at_once": Work(STEPS, 2 * STEPS, 0),
}
"""The checks that do as much as they can in `LONG_ENOUGH` seconds, and their work with a quick publisher."""


class PublisherFactory(Verification, Generic[T]):
    """The factories and settings of a subclass, and the steps that all checks of publishers share."""

    max_elements_from_publisher: int = MAX_DEMAND - 1
    """The most elements for `create_publisher`; checks that need more are skipped.

    MAX_DEMAND means that the publisher never completes, and skips every check that needs `on_complete`.
    """

    bounded_depth_of_on_next_and_request_recursion: int = 1
    """How deep `request` → `on_next` → `request` may recurse (3.3)."""

    skip_stochastic_tests: bool = False
    """Skip the checks that test by repetition."""

    requests_may_be_concurrent: bool = True
    """Whether `request` is thread-safe. The letter of 2.7 lets a publisher leave that to its subscribers."""

    _taken_for_quick = False

    def create_publisher(self, elements: int) -> Publisher[T]:
        """A new publisher of exactly `elements` elements; of MAX_DEMAND: of a stream without end."""
        raise NotImplementedError(f"{type(self).__name__} has to define create_publisher(self, elements)")

    def create_failed_publisher(self) -> Publisher[T] | None:
        """A new publisher that gives `on_subscribe` and then `on_error`; None skips the checks that need one."""
        return None

    def create_publisher_failing_after(self, elements: int) -> Publisher[T] | None:
        """A new publisher of `elements` elements that then fails; None skips the checks that need one."""
        return None

    def pace(self) -> float:
        """Seconds that the slowest of the first signals took, up to `SLOWEST`. The kit measures once.

        pytest makes a verification for each check: then the kit measures once for the class, and for each set of its
        parameters.
        """
        return max(self._paces())

    def unmeasured(self) -> None:
        """Assume a quick implementation, and measure the pace no more."""
        self._taken_for_quick = True

    def seconds(self) -> float:
        """About how long all checks take, if none fails, by the measured time of each signal and each silence.

        The counts are those of a publisher that skips no check; another one takes less.
        """
        first, each = self._paces()
        long = (
            work.subscriptions * first + work.elements * each + work.silences * self._silence()
            for work in LONG_WORK.values()
        )
        work = WORK
        fixed = work.subscriptions * first + work.elements * each + work.silences * self._silence()
        return fixed + sum(min(item, LONG_ENOUGH) for item in long)

    def _silence(self) -> float:
        return self.settings().default_no_signals_timeout

    def _paces(self) -> tuple[float, float]:
        """Seconds that on_subscribe took, and the slowest of the first elements."""
        return (0.0, 0.0) if self._taken_for_quick else self._once("_measures", (0.0, 0.0), _measured)

    def _starts_anew(self) -> bool:
        """Whether a second subscriber gets the elements that the first one had, and the publisher accepts a third.

        The kit tries it once. A hot publisher, one for one or two subscribers, and one that deals out its elements
        need not do that.
        """
        return self._once("_anew", False, _tried)

    def _ends_a_second(self) -> bool:
        """Whether a second subscriber is too late, or the publisher refuses it; the kit tries it once."""
        return self._once("_second", False, _refused)

    def _once(self, name: str, at_first: Fact, find: Callable[[PublisherFactory[Any]], Fact]) -> Fact:
        # The thread that runs the checks owns it: checks side by side call `settings`, and so this, before they begin.
        keeper: Any = self if vars(self) else type(self)
        name += os.environ.get("PYTEST_CURRENT_TEST", "").partition("[")[2]  # other parameters make another publisher
        if name not in vars(keeper):
            setattr(keeper, name, at_first)  # while the kit looks for it, and if it finds none
            setattr(keeper, name, find(self))
        found: Fact = getattr(keeper, name)
        return found

    def facts(self) -> dict[str, Any]:
        """The facts that the kit has found of the implementation, with the pace."""
        keeper: Any = self if vars(self) else type(self)
        found = {name: fact for name, fact in vars(keeper).items() if name.startswith(FOUND)}
        return {**super().facts(), **found}

    def _as_many(self, elements: int) -> int:
        """So many elements, or as few as a slow publisher gives in `LONG_ENOUGH` seconds."""
        each = self._paces()[1]
        return elements if each < QUICK else max(MIN_ELEMENTS, min(elements, int(LONG_ENOUGH / each)))

    def _publisher(self, env: TestEnvironment, elements: int, *, completes: bool = False) -> Publisher[T]:
        most = self.max_elements_from_publisher
        if elements > most:
            env.skip(f"needs {elements} elements; max_elements_from_publisher is {most}")
        if completes and most == MAX_DEMAND:
            env.skip("needs on_complete; max_elements_from_publisher says it never comes")
        env.elements = MAX_DEMAND if most == MAX_DEMAND else elements
        return self._created(env, f"create_publisher({elements})", self.create_publisher, elements)

    def _failed_publisher(self, env: TestEnvironment) -> Publisher[T]:
        return self._offered(env, "create_failed_publisher", self.create_failed_publisher)

    def _publisher_failing_after(self, env: TestEnvironment, elements: int) -> Publisher[T]:
        return self._offered(env, "create_publisher_failing_after", self.create_publisher_failing_after, elements)

    def _offered(self, env: TestEnvironment, name: str, factory: Callable[..., Any], *arguments: int) -> Publisher[T]:
        """The publisher of an optional factory."""
        made = env.call(f"{name}({', '.join(map(str, arguments))})", factory, *arguments, rule=FACTORY)
        if made is None:
            env.skip(f"{name} returned None: there is none to test")
        return self._created(env, f"{name}()", lambda: made)

    def _created(self, env: TestEnvironment, text: str, factory: Callable[..., Any], *arguments: int) -> Publisher[T]:
        env.depth = self._depth()
        env.asked = next(iter(arguments), 0)
        publisher = env.call(text, factory, *arguments, rule=FACTORY)
        if publisher is None:
            env.fail(f"{text} returned None, where a Publisher is needed", FACTORY)
        if not callable(getattr(publisher, "subscribe", None)):
            env.fail(f"{text} returned {shown(publisher)}, which is no Publisher: it has no subscribe", FACTORY)
        made: Publisher[T] = publisher
        return made

    def _subscribe(self, env: TestEnvironment, publisher: Publisher[T], **how: Any) -> ManualSubscriber[T]:
        """Subscribe one of ours, and wait for its `on_subscribe`."""
        subscriber = ManualSubscriber[T](env, **how)
        self._connect(env, publisher, subscriber)
        return subscriber

    def _connect(self, env: TestEnvironment, publisher: Publisher[T], subscriber: ManualSubscriber[T]) -> None:
        env.call("subscribe(subscriber)", publisher.subscribe, subscriber, rule="1.9")
        env.happens(lambda: subscriber.ready)
        env.due(subscriber.subscriptions, "no on_subscribe came", "1.9")

    def _needs_concurrent_requests(self, env: TestEnvironment) -> None:
        if not self.requests_may_be_concurrent:
            env.skip("requests_may_be_concurrent is False")

    def _needs_two_subscribers_at_once(self, env: TestEnvironment) -> None:
        if self._ends_a_second():
            env.skip("the publisher accepts one subscriber at a time")

    def _lingers(self, env: TestEnvironment) -> Callable[..., object]:
        """A step inside a signal that takes a moment, so that a signal on another thread overlaps with it (1.3)."""
        return lambda subscriber, *_: env.happens_quietly(
            lambda: len(set(subscriber.inside)) > 1, env.settings.default_poll_timeout
        )

    def _depth(self) -> int:
        """The bound of 3.3; another check judges whether the setting is one."""
        depth: Any = self.bounded_depth_of_on_next_and_request_recursion
        return depth if isinstance(depth, int) and depth >= 1 else MAX_DEMAND

    def _test_environment(self, rule: str, settings: Settings) -> TestEnvironment:
        """A trial beside the checks; it calls no factory again that hung in a check, or in another trial."""
        env = TestEnvironment(rule, settings)
        env.hung, env.spins, env.when = self._hung_factories(), self.spins(), "before the checks"
        return env

    def _plain_run(self, elements: int) -> None:
        env = self._test_environment("1.5", self.settings())

        def body() -> None:
            subscriber = self._subscribe(env, self._publisher(env, elements))
            for _ in range(elements):
                subscriber.request_next()
            if self.max_elements_from_publisher != MAX_DEMAND:
                subscriber.request_end()

        env.run(body)


def _measured(factory: PublisherFactory[Any]) -> tuple[float, float]:
    """Seconds of on_subscribe, and of the slowest of the first elements; the least of up to three measurements.

    A busy machine adds to them: after a pace that is too slow, checks do less than they could.
    """
    first, each = _measured_once(factory)
    for tries in range(1, TRIES):
        if max(first, each) < QUICK or (tries > 1 and max(first, each) >= SLOW):
            break  # quick, or slow a second time too: the first time may have filled a cache
        again = _measured_once(factory)
        first, each = min(first, again[0]), min(each, again[1])
    return first, each


def _measured_once(factory: PublisherFactory[Any]) -> tuple[float, float]:
    most: Any = factory.max_elements_from_publisher
    if not isinstance(most, int):
        return 0.0, 0.0
    env = factory._test_environment("1.1", replace(DEFAULTS, default_timeout=SLOWEST, call_timeout=SLOWEST))
    # A factory has as long here as in the checks of a quick implementation.
    env.factory_timeout = FACTORY_TIMES * Settings.of({"call_timeout": factory.call_timeout}).call_timeout
    steps: list[float] = []

    def body() -> None:
        elements = max(0, min(3, most))
        publisher = factory._publisher(env, elements)
        subscriber: ManualSubscriber[Any] = ManualSubscriber(env, may_fail=True)
        steps.append(time.monotonic())
        factory._connect(env, publisher, subscriber)
        steps.append(time.monotonic())
        for _ in range(elements):
            subscriber.request_next()
            steps.append(time.monotonic())

    with contextlib.suppress(ConformanceError, NotVerified):  # the checks will report it
        env.run(body)
    took = [after - before for before, after in pairwise(steps)]
    return max(took[:1], default=0.0), max(took[1:], default=0.0)


def _refused(factory: PublisherFactory[Any]) -> bool:
    """Whether a second subscriber gets an end instead of an element for a valid request."""
    env = factory._test_environment("1.11", factory.settings())
    both: list[ManualSubscriber[Any]] = [ManualSubscriber(env, may_fail=True) for _ in range(2)]

    def body() -> None:
        publisher = factory._publisher(env, min(3, factory.max_elements_from_publisher))
        for subscriber in both:
            factory._connect(env, publisher, subscriber)
        for subscriber in both:
            subscriber.request(1)
        env.happens(both[1].was_signalled)

    with contextlib.suppress(ConformanceError, NotVerified):
        env.run(body)
    return both[1].has_ended() and not both[1].elements


def _tried(factory: PublisherFactory[Any]) -> bool:
    """Whether a publisher gives two elements to a second subscriber too, and does not refuse a third one (1.9).

    A third subscriber that gets no signal is not refused: the checks find that fault.
    """
    env = factory._test_environment("1.11", factory.settings())
    counts: list[int] = []
    three: list[ManualSubscriber[Any]] = [ManualSubscriber(env, may_fail=True) for _ in range(3)]

    def body() -> None:
        publisher = factory._publisher(env, min(3, max(2, factory.max_elements_from_publisher)))
        for subscriber in three:
            factory._connect(env, publisher, subscriber)
            if not subscriber.ends:
                subscriber.request(2)
            env.happens(lambda subscriber=subscriber: len(subscriber.elements) >= 2 or subscriber.errors)  # type: ignore[misc]
            counts.append(len(subscriber.elements))
            if counts[:2] != [2, 2][: len(counts)]:
                return

    with contextlib.suppress(ConformanceError, NotVerified):
        env.run(body)
    refused = bool(three[2].errors) and not three[2].elements
    return counts[:2] == [2, 2] and not refused
