"""A call is held at each of its steps, also where others are at the same time."""

from __future__ import annotations

import contextlib
import functools
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
from sinks import PATIENCE, until

from examples.stream_publisher import step_6_demand, step_9_one_drain
from examples.stream_publisher.conformance import STEPS, verification_of
from reactive_runtime.tck import Outcome, PublisherVerification, Settings
from reactive_runtime.tck._publisher import publisher_extra as _publisher_extra
from reactive_runtime.tck._running import environment as _environment
from reactive_runtime.tck._running import preemption as _preemption
from reactive_runtime.tck._running.preemption import NEVER, HeldCall


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def add(self) -> None:
        self.count += 1


def assert_no_thread_is_watched() -> None:
    """By the tool of the kit, which watches all threads of a process; up to Python 3.11 each is traced by itself."""
    if sys.version_info >= (3, 12):
        assert "reactive_runtime.tck" not in [sys.monitoring.get_tool(number) for number in range(6)]


def test_many_calls_are_held_at_once_each_at_its_own_step() -> None:
    counters = [Counter() for _ in range(12)]
    calls = [HeldCall(counter.add, at % 2, lambda: None, f"held-{at}") for at, counter in enumerate(counters)]
    for call in calls:
        call.start()
    until(lambda: all(call.reached or call.ended for call in calls))
    assert [(call.reached, call.ended) for call in calls] == [(True, False)] * len(calls)
    assert [counter.count for counter in counters] == [0] * len(counters)
    for call in calls:
        call.release()
    until(lambda: all(call.ended for call in calls))
    assert [counter.count for counter in counters] == [1] * len(counters)
    assert {call.steps for call in calls} == {2}


def test_a_thread_that_is_not_held_goes_on_beside_one_that_is() -> None:
    counter = Counter()
    held = HeldCall(counter.add, 0, lambda: None, "held")
    held.start()
    until(lambda: held.reached)
    beside = threading.Thread(target=counter.add)
    beside.start()
    beside.join(PATIENCE)
    assert counter.count == 1
    held.release()
    until(lambda: held.ended)
    assert counter.count == 2


def test_the_function_that_a_held_call_is_inside_of_is_known() -> None:
    """Where the one is that holds what the other may wait for."""
    held = HeldCall(Counter().add, 0, lambda: None, "held")
    assert (held.begun, held.inside) == (False, None)
    held.start()
    until(lambda: held.reached)
    assert held.begun
    assert held.inside is Counter.add.__code__
    held.release()
    until(lambda: held.ended)


LEFT = """
from reactive_runtime.tck._running.preemption import HeldCall

class Endless:
    turns = 0

    def run(self):
        while True:
            self.turns += 1

held = HeldCall(Endless().run, 1_000_000_000, lambda: None, "held")
held.start()
while not held.inside:
    pass
"""


def test_a_call_that_is_left_behind_does_not_disturb_the_end_of_the_process() -> None:
    """It was stepped through while modules were taken apart, and without a GIL a TypeError was printed."""
    done = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_a_call_that_is_never_held_is_not_stepped_through() -> None:
    counter = Counter()
    call = HeldCall(counter.add, NEVER, lambda: None, "never")
    call.start()
    until(lambda: call.ended)
    assert (call.reached, call.inside, call.steps, counter.count) == (False, None, 0, 1)


@pytest.mark.parametrize(("step", "rule"), [("5 with 3.9 and 1.4", "1.3"), ("6 with demand", "3.8")])
def test_a_race_waits_for_a_thread_that_is_late(step: str, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a busy machine: it was released before it was held, and the race passed after its first step."""
    stepping = _preemption._watch.stepping

    @contextlib.contextmanager
    def late(before: Callable[[FrameType | None], None]) -> Iterator[None]:
        time.sleep(0.1)
        with stepping(before):
            yield

    monkeypatch.setattr(_preemption._watch, "stepping", late)
    assert judged(verification_of(STEPS[step])) == ("failed", rule)


def test_a_race_waits_as_long_as_a_slow_publisher_takes() -> None:
    """The second request was released before the first had left."""

    def slow(elements: int) -> Iterator[int]:
        for element in range(elements):
            time.sleep(0.04)
            yield element

    class Slow(PublisherVerification[int]):
        def create_publisher(self, elements: int) -> Any:
            return step_6_demand.StreamPublisher(lambda: slow(elements))

    assert judged(Slow()) == ("failed", "3.8")


def test_a_step_is_not_left_out_where_a_publisher_is_slow_now_and_then() -> None:
    """A slow request was taken for one that waits for a lock, and the other one led past the steps that lose demand."""

    class Subscription(step_9_one_drain.StreamSubscription):
        def _at_work(self, n: int) -> bool:
            demand = self._demand.get()
            self._demand.get_and_add(demand + n - self._demand.get())  # what came in between is lost (3.8)
            return demand > 0

    class Publisher(step_9_one_drain.StreamPublisher):
        subscription = Subscription

    made = itertools.count()

    def often_slow(elements: int) -> Iterator[int]:
        seconds = next(made) % 2 * 0.3
        for element in range(elements):
            time.sleep(seconds)
            yield element

    class Verification(PublisherVerification[int]):
        def create_publisher(self, elements: int) -> Any:
            return Publisher(lambda: often_slow(elements))

    assert judged(Verification()) == ("failed", "3.8")


def test_a_race_ends_where_both_wait_for_each_other() -> None:
    """The one under a lock waits until the other is served, and that one needs the lock for its next element."""

    class Subscription(step_9_one_drain.StreamSubscription):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.lock = threading.RLock()

        def request(self, n: int, /) -> None:
            with self.lock:
                while threading.current_thread().name == "tck-held" and self._demand.get() > 0:
                    time.sleep(0.001)
                self._at_work(n)
            self._drain()

        def _emit(self) -> None:
            with self.lock:
                pass
            super()._emit()

    class Publisher(step_9_one_drain.StreamPublisher):
        subscription = Subscription

    class Verification(PublisherVerification[int]):
        def create_publisher(self, elements: int) -> Any:
            return Publisher(lambda: range(elements))

    assert "request(1) did not return" in outcome_of(Verification(), "between_two_requests").why
    assert_no_thread_is_watched()


@pytest.mark.parametrize("left", ["before it starts", "while it waits"])
def test_a_call_that_never_ends_is_not_watched_once_it_is_left(left: str) -> None:
    """All threads of the process were ten times as slow from then on."""
    begun, gate, counter = threading.Event(), threading.Event(), Counter()

    def endless() -> None:
        counter.add()
        begun.set()
        gate.wait(PATIENCE)

    held = HeldCall(endless, 1_000_000_000, lambda: None, "held")
    if left == "before it starts":
        held.leave()
    held.start()
    assert begun.wait(PATIENCE)
    if left == "while it waits":
        held.leave()
    assert not held.ended
    assert_no_thread_is_watched()
    gate.set()
    until(lambda: held.ended)
    assert held.wrong is None


def test_one_that_is_left_leaves_the_others_watched() -> None:
    first, second = (HeldCall(Counter().add, 0, lambda: None, name) for name in ("first", "second"))
    for held in (first, second):
        held.start()
        until(functools.partial(getattr, held, "reached"))
    first.leave()
    second.advance(1)
    until(lambda: second.reached)
    for held in (first, second):
        held.release()
        until(functools.partial(getattr, held, "ended"))
    assert second.steps == 2
    assert_no_thread_is_watched()


def test_a_call_goes_on_step_by_step() -> None:
    counter = Counter()
    held = HeldCall(counter.add, 0, lambda: None, "held")
    held.start()
    until(lambda: held.reached)
    held.advance(1)
    until(lambda: held.reached)
    assert (held.at, held.ended, counter.count) == (1, False, 0)
    held.advance(1)
    until(lambda: held.ended)
    assert (held.reached, held.steps, counter.count) == (False, 2, 1)


def test_what_comes_behind_much_work_under_a_lock_is_raced_too() -> None:
    """Each of these steps was waited at seven times or so, and the time was over before the last of them."""

    class Subscription(step_9_one_drain.StreamSubscription):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.lock, self.sum = threading.RLock(), 0

        def request(self, n: int, /) -> None:
            with self.lock:
                for i in range(350):
                    self.sum += i
            super().request(n)

        def _at_work(self, n: int) -> bool:
            demand = self._demand.get()
            self._demand.get_and_add(n)  # two may both have found none (1.3)
            return demand > 0

    class Publisher(step_9_one_drain.StreamPublisher):
        subscription = Subscription

    class Verification(PublisherVerification[int]):
        def create_publisher(self, elements: int) -> Any:
            return Publisher(lambda: range(elements))

    assert judged(Verification(), "two_requests_at_once_must_not_signal_at_once") == ("failed", "1.3")


def test_where_a_lock_is_left_is_known_from_two_races() -> None:
    """From one it is not: the other thread may have been late."""
    patience = _publisher_extra._Patience(_environment.TestEnvironment("1.3", Settings()), 0, {})
    patience.left(10, 25, 41)
    assert patience.ahead(11) == 0
    patience.left(11, 26, 42)
    assert [patience.ahead(step) for step in (11, 26, 27)] == [30, 15, 0]
    patience.left(12, 60, 70)
    assert patience.ahead(13) == 0


@pytest.mark.parametrize("late", [None, 0])
@pytest.mark.parametrize("race", ["where_a_request_leaves", "two_requests_at_once_must_not_signal_at_once"])
def test_no_two_requests_of_a_race_run_side_by_side(
    race: str, late: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They did where one was held inside of a lock, and the other waited for it: what came then was chance.

    They also did, from then on, where one of them was `late` once, as on a busy machine; now only in that race.
    """
    met: list[int] = []
    never_held = itertools.count()
    init = HeldCall.__init__

    def late_once(call: HeldCall, function: Callable[[], object], at: int, *arguments: Any) -> None:
        once_late = functools.partial(after, 0.3, function)
        init(call, once_late if at == NEVER and next(never_held) == late else function, at, *arguments)

    monkeypatch.setattr(HeldCall, "__init__", late_once)
    races, next_race = itertools.count(), _publisher_extra._Patience.next

    def begins(patience: Any) -> None:
        """Only the `late` one is to be late: the others may have many turns, on a busy machine."""
        next_race(patience)
        patience._most = _publisher_extra.TURNS * _environment.TURN * (1 if next(races) == late else 10)

    monkeypatch.setattr(_publisher_extra._Patience, "next", begins)

    class Subscription(step_9_one_drain.StreamSubscription):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.lock, self.asked, self.barrier = threading.Lock(), 0, threading.Barrier(2)

        def count(self, n: int) -> None:
            with self.lock:
                self.asked += n

        def request(self, n: int, /) -> None:
            self.count(n)
            if threading.current_thread().name.startswith("tck-"):  # not where the pace is measured
                with contextlib.suppress(threading.BrokenBarrierError):
                    self.barrier.wait(0.05)  # it raises where the other one does not come meanwhile
                    met.append(n)
            super().request(n)

    class Publisher(step_9_one_drain.StreamPublisher):
        subscription = Subscription

    class Verification(PublisherVerification[int]):
        def create_publisher(self, elements: int) -> Any:
            return Publisher(lambda: range(elements))

    assert judged(Verification(), race) == ("passed", "")
    assert len(met) <= (0 if late is None else 2)


def after(seconds: float, function: Callable[[], object]) -> object:
    time.sleep(seconds)
    return function()


def outcome_of(verification: PublisherVerification[int], race: str) -> Outcome:
    """What came of a race between two requests."""
    (check,) = [item for item in verification.checks() if item.name.endswith(race)]
    return verification.outcome(check)


def judged(verification: PublisherVerification[int], race: str = "between_two_requests") -> tuple[str, str]:
    """How a race ended, and the rule that it broke."""
    outcome = outcome_of(verification, race)
    return outcome.status, outcome.rule
