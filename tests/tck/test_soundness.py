"""Where the kit once claimed more than the rules say: each with the implementation that it accused."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from reactive_runtime.tck import ConformanceError, Verification
from reactive_runtime.tck._running import environment as _environment
from reactive_runtime.tck._running.settings import Settings
from tck import unusual
from tck.broken import Publishers
from tck.test_bad_input import outcome


def name_of(verification: Verification, words: str) -> str:
    [name] = [item.name for item in verification.checks() if words in item.name]
    return name


class RefusesWithTheNext(unusual.Source):
    """Refuses a second subscriber on the thread that signals the first one's elements, between two of them."""

    refused: Any = None

    class Subscription(unusual.Drain):
        def emit(self, subscriber: Any, element: Any) -> None:
            super().emit(subscriber, element)
            refused, self.publisher.refused = self.publisher.refused, None
            if refused is not None and refused is not self.publisher:
                refused.on_error(RuntimeError("it serves one subscriber"))

    def accept(self, subscriber: Any) -> None:
        if self.refused is None:
            self.refused = self
            super().accept(subscriber)
        else:
            self.refused = subscriber
            subscriber.on_subscribe(unusual.Nothing())


def test_what_comes_of_the_second_subscription_of_one_subscriber_is_no_breach_of_the_first() -> None:
    """Rule 1.10 forbids the kit to subscribe it twice: the order of the two streams is nothing to judge."""
    verification = Publishers(RefusesWithTheNext)
    result = outcome(verification, name_of(verification, "the_same_subscriber_twice"))
    assert result.status == "passed", result.why


class LateHelper(unusual.Blackbox):
    """The helper publisher that it is given calls on_subscribe on the thread of a timer."""

    def create_helper_publisher(self, elements: int) -> Any:
        return unusual.LateOnSubscribe(elements)


def test_a_helper_publisher_may_call_on_subscribe_late() -> None:
    verification = LateHelper(unusual.OneByOne)
    result = outcome(verification, name_of(verification, "blackbox_must_return_normally_from_every"))
    assert result.status == "passed", result.why


@pytest.mark.parametrize("words", ["spec313_cancel_must", "spec106_must_consider_subscription_cancelled_after_on_com"])
def test_a_failure_by_a_kept_subscriber_says_how_long_was_waited_and_what_sets_it(words: str) -> None:
    kept: list[Any] = []

    class Keeps(unusual.Source):
        def accept(self, subscriber: Any) -> None:
            kept.append(subscriber)
            super().accept(subscriber)

    verification = Publishers(Keeps).configure(publisher_reference_gc_timeout=0.05)
    result = outcome(verification, name_of(verification, words))
    assert result.status == "failed"
    assert "waited 0.05 s for it (publisher_reference_gc_timeout)" in result.why


class Counts(unusual.Told):
    """Raises where an element comes that it has not requested, as no subscriber of a sound publisher ever sees."""

    asked = 0

    def __init__(self, probe: Any) -> None:
        super().__init__(probe)
        self.counting = threading.Lock()
        """Owns `asked`."""
        self.in_turn = threading.Lock()
        """Its requests come on threads of their own, and one after the other."""

    def request(self, n: int) -> None:
        unusual.later(0.02, lambda: self.ask(n))

    def ask(self, n: int) -> None:
        with self.in_turn:
            with self.counting:
                self.asked += n
            self.subscription.request(n)

    def got(self, element: Any) -> None:
        with self.counting:
            self.asked -= 1
            left = self.asked
        if left < 0:
            raise AssertionError(f"{element} was not requested")
        super().got(element)


def test_the_kit_signals_to_a_subscriber_what_it_has_requested_and_no_more() -> None:
    verification = unusual.Whitebox(Counts)
    failed = [item for item in verification.outcomes() if item.status == "failed"]
    assert not failed, failed[0].why


class HearsWhenItIsDone:
    """Looks whether its subscriber has cancelled when it has signalled all that was requested, and lets go then."""

    PAUSE = 0.1

    def __init__(self, elements: int) -> None:
        self.elements = elements

    def subscribe(self, subscriber: Any, /) -> None:
        subscriber.on_subscribe(self.Subscription(subscriber))

    class Subscription:
        def __init__(self, subscriber: Any) -> None:
            self.subscriber = subscriber

        def request(self, n: int, /) -> None:
            threading.Thread(target=self.run, args=(n,), daemon=True).start()

        def cancel(self) -> None:
            pass

        def run(self, n: int) -> None:
            subscriber, self.subscriber = self.subscriber, None
            for element in range(n):
                time.sleep(HearsWhenItIsDone.PAUSE)
                subscriber.on_next(element)


def test_a_subscriber_may_be_kept_while_the_signals_that_it_requested_go_on() -> None:
    """A cancel is heard eventually (3.12): the time to drop a subscriber begins with the last signal."""
    verification = Publishers(HearsWhenItIsDone)
    verification.configure(default_timeout=5.0, publisher_reference_gc_timeout=4 * HearsWhenItIsDone.PAUSE)
    name = name_of(verification, "spec313_a_subscriber_that_cancels_inside_on_next")
    result = outcome(verification, name)
    assert result.status == "passed", result.why


class BusyMachine:
    """The clock of a machine on which a thread that has waited gets its turn late, by half a second if not said."""

    def __init__(self, by: float = 0.5) -> None:
        self.by = by
        self.late = 0.0
        self.turns = 0

    def monotonic(self) -> float:
        return time.monotonic() + self.late

    def turn(self) -> None:
        self.late += self.by
        self.turns += 1


def test_on_a_busy_machine_a_signal_is_waited_for_as_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timeout of one second gave up after two turns of this thread, whatever turns the publisher's had had."""
    busy = BusyMachine()
    monkeypatch.setattr(_environment, "time", busy)
    monkeypatch.setattr(threading, "_time", busy.monotonic)
    env = _environment.TestEnvironment("1.1", Settings(default_timeout=1.0))
    waits: Any = env.lock.wait

    def wait(timeout: float) -> bool:
        busy.turn()
        return bool(waits(0))

    monkeypatch.setattr(env.lock, "wait", wait)
    assert env.happens(lambda: busy.turns >= 15)
    assert not env.happens(lambda: False)


def test_on_a_busy_machine_a_call_hangs_after_as_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = BusyMachine()
    monkeypatch.setattr(_environment, "time", busy)
    env = _environment.TestEnvironment("1.1", Settings(call_timeout=30.0, default_poll_timeout=0.01))
    late = threading.Event()
    joins = threading.Thread.join

    def join(thread: threading.Thread, timeout: float | None = None) -> None:
        if thread.name == "tck":
            busy.turn()
            if busy.turns == 100:
                late.set()
        joins(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", join)
    env.run(lambda: env.call("subscribe", late.wait, rule="1.9"))
    assert busy.turns >= 100


@pytest.mark.parametrize(
    ("by", "poll", "least", "most"),
    [
        pytest.param(0.5, 0.01, 100, 185, id="kept from its turns, by a loop in C: three times as long"),
        pytest.param(0.02, 0.00001, 0, 1_510, id="no wait is as short as was asked for: in time"),
    ],
)
def test_a_call_that_hangs_is_found_whatever_turns_the_watch_has(
    by: float, poll: float, least: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time in which the watch had no turn was left out of account, even where the call itself was what took it."""
    busy = BusyMachine(by)
    monkeypatch.setattr(_environment, "time", busy)
    env = _environment.TestEnvironment("1.1", Settings(call_timeout=30.0, default_poll_timeout=poll))
    over = threading.Event()
    joins = threading.Thread.join

    def join(thread: threading.Thread, timeout: float | None = None) -> None:
        if thread.name == "tck":
            busy.turn()
        joins(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", join)
    with pytest.raises(ConformanceError, match=r"subscribe has not returned within 30 s"):
        env.run(lambda: env.call("subscribe", over.wait, rule="1.9"))
    over.set()
    assert least <= busy.turns <= most
