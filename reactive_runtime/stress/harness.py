"""The load: many threads fire `request` and `cancel` at real publishers, and every signal is recorded.

A run is a sequence of rounds. In a round one scenario gets a few new subscriptions; all actors meet at a
barrier, go through the subscriptions in the same order, so that they keep meeting there, and fire at each what
their dice say. When all have finished and no pool has anything left to run, the round is settled: what was
requested and not delivered by then is lost. Callers are not serialised: 2.7 asks that of subscribers, and the
harness is not one; thread-safety is what it demands of the subscriptions.

To make races likely and not a matter of luck, rounds are short and many, subscribers give way inside `on_next`,
and the interpreter's switch interval is turned down to some twenty microseconds, in most rounds. On Linux that
alone does little: a thread that waits for its turn sleeps with the kernel's timer slack, fifty microseconds, on
top. The harness turns that down too. (Far below twenty, threads do little but take turns.) All dice are thrown
from the seed; the order in which threads run is the machine's own.
"""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from reactive_runtime._core import primitives
from reactive_runtime.errors import ScenarioError
from reactive_runtime.spec import MAX_DEMAND, Subscription
from reactive_runtime.stress.pressure import CHANCES, pressure
from reactive_runtime.stress.scenario import Rig, Scenario
from reactive_runtime.testing.recorder import RecordedPublisher, Recorder

__all__ = ["Load", "Tally", "run"]

PATIENCE: Final = 60.0
"""Seconds without the end of a round, after which the run is given up as stuck."""

INTERVALS: Final = (5e-6, 2e-5, 2e-5, 2e-5, 1e-4, 5e-3)
"""Switch intervals in seconds, one of which is drawn for each round."""


@dataclass(frozen=True)
class Load:
    """How much, how long, and from which dice."""

    threads: int
    seconds: float
    seed: int


@dataclass
class Tally:
    """What a run amounted to."""

    rounds: int = 0
    subscriptions: int = 0
    seconds: float = 0.0


def run(scenarios: Sequence[Scenario], load: Load, recorder: Recorder, progress: Callable[[Tally], object]) -> Tally:
    """Put the scenarios under load in turn; `progress` is called after each round, on this thread.

    Raises ScenarioError when a scenario's factory raises, or when a round does not come to its end.
    """
    interval = sys.getswitchinterval()
    _timer_slack(1)  # of this thread, and of those it starts
    crew = _Crew(load.threads)
    stages: list[_Stage] = []
    tally = Tally()
    begin = primitives.monotonic()
    try:
        stages.extend(_Stage(scenario, recorder) for scenario in scenarios)
        while tally.seconds < load.seconds:
            dice = random.Random(f"{load.seed}/{tally.rounds}")
            stage = stages[tally.rounds % len(stages)]
            sys.setswitchinterval(dice.choice(INTERVALS))
            tally.subscriptions += stage.round(crew, dice)
            tally.rounds += 1
            tally.seconds = primitives.monotonic() - begin
            progress(tally)
    finally:
        sys.setswitchinterval(interval)
        _timer_slack(0)
        crew.dismiss()
        for stage in stages:
            stage.rig.close()
    return tally


def _timer_slack(ns: int) -> None:
    """Let the kernel wake this thread `ns` late at most (0: as by default), where it can be told: on Linux."""
    if sys.platform == "linux":
        set_timer_slack = 29  # PR_SET_TIMERSLACK of prctl(2)
        ctypes.CDLL(None).prctl(set_timer_slack, ns, 0, 0, 0)


class _Stage:
    """One scenario, set up for the whole run."""

    def __init__(self, scenario: Scenario, recorder: Recorder) -> None:
        self.scenario = scenario
        self.recorder = recorder
        self.rig = Rig(recorder, scenario.name)
        try:
            publisher = scenario.factory(self.rig)
        except Exception as error:
            raise ScenarioError(f"{scenario.name} ({scenario.file}): its factory raised {error!r}") from error
        self.publisher: RecordedPublisher[int] = recorder.wrap(
            publisher, scenario.name, shared_callers=True, ascending=True, elements=scenario.elements
        )

    def round(self, crew: _Crew, dice: random.Random) -> int:
        """New subscriptions, fire, and silence. Returns how many there were, links included."""
        first = len(self.recorder.facts)
        targets = [_Target(dice) for _ in range(self.scenario.live)]
        for target in targets:
            self.publisher.subscribe(target)
        most = max(2, (self.scenario.elements or 1000) // 8)
        mix, chance = dice.choices(MIXES, (2, 3, 1))[0], dice.choice(CHANCES)
        volley = _Volley(targets, mix, chance, dice.randrange(2**32), most)
        crew.fire(volley, self.scenario.name)
        if not self.rig.wait_until_idle(PATIENCE):
            raise ScenarioError(f"{self.scenario.name}: stuck: a pool is still busy after {PATIENCE:.0f} s")
        last = len(self.recorder.facts)
        self.recorder.settle(range(first, last))
        return last - first


class _Target:
    """A subscriber whose subscription is under fire; its dice decide how it behaves itself."""

    __slots__ = ("_asks", "_cancels_at", "_first", "_left", "_yields", "subscription")

    def __init__(self, dice: random.Random) -> None:
        self._first = dice.choice((0, 0, 0, 1, 5))  # requested in on_subscribe
        self._yields = dice.choice((0, 1, 1, 3))  # gives way in every so-manieth on_next
        self._asks = dice.choice((0, 0, 2, 5))  # requests one more in every so-manieth
        self._cancels_at = dice.choice((0, 0, 0, 0, 0, 0, 0, 3, 20))  # cancels in that one
        self._left = 0  # owned by whoever signals; a broken publisher may well break it
        self.subscription: Subscription

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        if self._first:
            subscription.request(self._first)

    def on_next(self, element: int, /) -> None:
        self._left += 1
        if self._yields and self._left % self._yields == 0:
            primitives.pause()
        if self._asks and self._left % self._asks == 0:
            self.subscription.request(1)
        if self._left == self._cancels_at:
            self.subscription.cancel()

    def on_error(self, error: BaseException, /) -> None:
        pass

    def on_complete(self) -> None:
        pass


@dataclass(frozen=True)
class _Mix:
    """How often an actor does what, in percent; what is left is giving way."""

    shots: tuple[int, ...]
    one: float
    several: float
    unbounded: float
    cancel: float


MIXES: Final = (
    _Mix(shots=(0, 1, 1, 2, 4), one=60, several=33, unbounded=3, cancel=2.5),
    _Mix(shots=(2, 4, 8), one=90, several=0, unbounded=0, cancel=0.2),  # demand comes back to zero, again and again
    _Mix(shots=(1, 2), one=20, several=20, unbounded=40, cancel=10),
)


@dataclass(frozen=True)
class _Volley:
    """What the actors do in one round."""

    targets: Sequence[_Target]
    mix: _Mix
    chance: float
    seed: int
    most: int

    def fire(self, actor: int) -> None:
        """One actor's part."""
        dice = random.Random(self.seed * 1_000 + actor)
        with pressure(self.chance, dice):
            for target in self.targets:
                subscription = target.subscription
                for _ in range(dice.choice(self.mix.shots)):
                    with suppress(Exception):  # what a call raises is in its record, and judged there (3.15, 3.16)
                        self._shoot(subscription, dice)

    def _shoot(self, subscription: Subscription, dice: random.Random) -> None:
        throw = dice.random() * 100
        if (throw := throw - self.mix.one) < 0:
            subscription.request(1)
        elif (throw := throw - self.mix.several) < 0:
            subscription.request(dice.randint(2, self.most))
        elif (throw := throw - self.mix.unbounded) < 0:
            subscription.request(MAX_DEMAND)
        elif throw < self.mix.cancel:
            subscription.cancel()
        else:
            primitives.pause()


class _Crew:
    """The actors: threads that wait at a barrier for the next volley, and meet at it again when it is over."""

    def __init__(self, size: int) -> None:
        self._barrier = primitives.Barrier(size + 1)
        self._volley: _Volley | None = None  # written between two meetings at the barrier
        self._threads = [
            primitives.Thread(target=self._act, args=(actor,), name=f"actor-{actor}", daemon=True)
            for actor in range(size)
        ]
        for thread in self._threads:
            thread.start()

    def fire(self, volley: _Volley, name: str) -> None:
        """Let all actors fire; return when all have."""
        self._volley = volley
        try:
            self._barrier.wait(PATIENCE)
            self._barrier.wait(PATIENCE)
        except primitives.BrokenBarrierError as error:
            raise ScenarioError(f"{name}: stuck: a round did not end within {PATIENCE:.0f} s") from error

    def _act(self, actor: int) -> None:
        try:
            while True:
                self._barrier.wait()
                if self._volley is None:
                    return
                self._volley.fire(actor)
                self._barrier.wait()
        except primitives.BrokenBarrierError:
            return

    def dismiss(self) -> None:
        """Send the actors home. Those that are stuck are left: their threads are daemons."""
        self._volley = None
        try:
            self._barrier.wait(1.0)
        except primitives.BrokenBarrierError:
            return
        for thread in self._threads:
            thread.join()
