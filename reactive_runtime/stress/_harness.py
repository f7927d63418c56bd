"""The load: many threads fire `request` and `cancel` at real publishers, and every signal is recorded.

A run is a sequence of rounds. In a round one scenario makes its publisher, which gets a few subscriptions; all actors
meet at a barrier, go through the subscriptions in the same order, so that they keep meeting there, and fire at each
what their random numbers say; meanwhile the scenario's feeders feed it. When all have finished and no pool or clock has
anything left to run, the round is settled: what was requested and not delivered by then is lost. Then what has not
ended is cancelled. The next round begins when nothing can signal the subscriptions of this one any more. Callers are
not serialised: 2.7 asks that of subscribers, and the harness is not one; thread-safety is what it demands of the
subscriptions.

The time that each scenario has had decides which is next: see `stress._shares`.

To make races likely, rounds are short and many, subscribers give way inside `on_next`, actors hesitate in the code of
the publisher (`stress._pressure`), and the harness draws a short switch interval for each round. On Linux that alone
does little: a thread that waits for its turn sleeps with the kernel's timer slack, fifty microseconds, on top. The
harness turns that down too. Each thread that waits for its turn wakes up once an interval: below fifty microseconds,
sixteen of them use up the time, and find races no sooner (`benchmarks/finding.py`; docs/stress.md has the figures). All
random numbers come from the seed; the order in which threads run, and how many rounds a scenario gets, is the machine's
own.
"""

from __future__ import annotations

import ctypes
import random
import sys
import traceback
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from reactive_runtime import hooks
from reactive_runtime._core.runtime import eventloop, primitives
from reactive_runtime._support.shown import shown
from reactive_runtime._support.thread_frames import thread_frames
from reactive_runtime.stress._burst import Burst, Target
from reactive_runtime.stress._cancellation_metrics import EVERY, CancellationMetrics, collected, kept_young
from reactive_runtime.stress._declaring import FEEDERS, WORKLOADS, Context, Scenario
from reactive_runtime.stress._pressure import CHANCES
from reactive_runtime.stress._shares import Share, next_of
from reactive_runtime.testing._recorder import RecordedPublisher, Recorder

__all__ = ["Failure", "Load", "Result", "run"]

PATIENCE: Final = 60.0
"""Seconds that each step of a round may take: the scenario of one that takes longer is given up as stuck."""

HEARD: Final = 10.0
"""Seconds that a thread which is not the context's may take for `on_subscribe`, when nothing else runs any more."""

INTERVALS: Final = (5e-5, 1e-4, 5e-4, 5e-3)
"""Switch intervals in seconds, one of which is drawn for each round."""


T = TypeVar("T")


@dataclass(frozen=True)
class Load:
    """How much load, for how long, and from which seed.

    Args:
        threads: How many actors fire at each subscription.
        seconds: How long rounds are begun.
        seed: Of all random numbers.
    """

    threads: int
    seconds: float
    seed: int


@dataclass(frozen=True)
class Failure:
    """A scenario that could not go on, or that broke what no trace shows; the others went on."""

    scenario: str
    why: str
    """In a line."""
    stuck: bool = False
    """Something in it did not end."""
    stacks: str = ""
    """If it is stuck: what all threads were at."""
    rule: str = ""
    """The rule that it broke, where it is one that no trace shows."""


@dataclass
class Result:
    """The result of a run."""

    failures: list[Failure] = field(default_factory=list)
    rounds: int = 0
    subscriptions: int = 0
    """Links, and those of a round that was given up, are among them."""
    seconds: float = 0.0
    dropped: Counter[str] = field(default_factory=Counter)
    """Counts what the hook got: elements that waited at a cancel, and errors, by reason and class."""
    signals: int = 0
    load: dict[str, Share] = field(default_factory=dict)
    """By scenario: what it has had of the load."""
    cut_short: dict[str, str] = field(default_factory=dict)
    """By scenario that could have gone on: what was not run, where the load was ended before its time."""
    running: str = ""
    """The scenario of the latest round."""
    cancellation_metrics: dict[str, CancellationMetrics] = field(default_factory=dict)
    """By scenario: what was measured where all subscribers left in the middle of a round."""
    _lock: Any = field(default_factory=primitives.Lock, repr=False)  # of `dropped`

    def note(self, dropped: hooks.Dropped) -> None:
        """Count what went to the hook.

        Args:
            dropped: What was dropped.

        Thread:
            Any.
        """
        what = "an element" if dropped.error is None else f"{type(dropped.error).__name__}, {dropped.reason}"
        with self._lock:
            self.dropped[what] += 1


def run(scenarios: Sequence[Scenario], load: Load, recorder: Recorder, progress: Callable[[Result], object]) -> Result:
    """Put the scenarios under load in turn.

    A scenario whose factory or feeder raises, or hangs, whose `subscribe` or `cancel` does not return, or whose round
    does not come to its end within `PATIENCE`, is given up, with a line in `Result.failures`; what it has left running
    stays behind, and the others go on.

    Args:
        scenarios: The scenarios.
        load: How much, how long, and from which seed.
        recorder: Records all signals.
        progress: Called after each round; True ends the load.

    Returns:
        What the run amounted to.

    Thread:
        `progress` is called on this thread; actors, feeders, scenarios and their publishers run on threads of their
        own. The handler of dropped signals, which the process has one of, is the run's own meanwhile.
    """
    interval = sys.getswitchinterval()
    _timer_slack(1)  # of this thread, and of those it starts
    workers, caller = _Workers(load.threads), _Caller()
    stages: list[_Stage] = []
    result = Result()
    handler = hooks.set_handler(result.note)
    begin = primitives.monotonic()
    try:
        stages.extend(_Stage(scenario, recorder) for scenario in scenarios)
        result.cancellation_metrics = {stage.scenario.name: stage.cancellation_metrics for stage in stages}
        result.load = {stage.scenario.name: stage.share for stage in stages}
        going = list(stages)
        while going and result.seconds < load.seconds:
            stage = next_of(going, [item.share for item in going], load.seconds)
            # By scenario and round, and not by the rounds before: how many others there have been is the machine's own.
            rng = random.Random(f"{load.seed}/{stage.scenario.name}/{stage.share.rounds}")
            interval_of_round = rng.choice(INTERVALS)
            if primitives.has_gil():  # without one, nothing is switched
                sys.setswitchinterval(interval_of_round)
            drawn, since = recorder.drawn(), primitives.monotonic()
            made = len(recorder.subscriptions)
            try:
                stage.round(workers, caller, rng)
            except _GivenUpError as error:
                result.failures.append(error.failure)
                going.remove(stage)
                if workers.broken():
                    workers.dismiss()
                    workers = _Workers(load.threads)
                if caller.held:
                    caller.dismiss()
                    caller = _Caller()
            result.subscriptions += len(recorder.subscriptions) - made
            now = primitives.monotonic()
            signals = (recorder.drawn() - drawn) // 2  # one ticket where it begins, and one where it ends
            stage.share.add(signals, now - since)
            result.signals += signals
            result.running = stage.scenario.name
            result.rounds += 1
            result.seconds = now - begin
            if progress(result):
                if result.seconds < load.seconds:
                    result.cut_short = _cut_short(going, load.seconds, result.seconds)
                break
        result.failures += [stage.kept for stage in stages if stage.kept is not None]
    finally:
        hooks.set_handler(handler)
        sys.setswitchinterval(interval)
        _timer_slack(0)
        workers.dismiss()
        caller.dismiss()
        for stage in stages:
            stage.context.close()
        eventloop.wait_until_ended(1.0)
    return result


def _cut_short(going: Sequence[_Stage], seconds: float, had: float) -> dict[str, str]:
    """Say for each scenario which part of a load of `seconds` it missed, where the load ended after `had` seconds."""
    why = f"the load was ended after {had:.1f} of {seconds:g} s: the rest was not run"
    return {item.scenario.name: why if item.share.rounds else f"it had no round: {why}" for item in going}


_WAITS: Final = frozenset(wait.__code__.co_filename for wait in (primitives.Event.wait, Future.result))
"""The files of code that waits for another thread: the line that called it says more."""


class _GivenUpError(Exception):
    """A scenario can't go on."""

    def __init__(self, scenario: str, why: str, *, stuck: bool = False) -> None:
        self.failure = Failure(scenario, why, stuck, _stacks() if stuck else "")


def _said(error: BaseException) -> str:
    """Show an error, also where its `__repr__` raises: that code is foreign, and runs on no thread of the load."""
    return shown(error, 1_000, BaseException)


def _stacks() -> str:
    """The stacks of all other threads."""
    me = primitives.get_ident()
    parts = [
        f"thread {ident % 100_000}\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in thread_frames().items()
        if ident != me
    ]
    return "\n".join(parts)


def _place_of(thread: primitives.Thread) -> str:
    """The innermost line of that thread that is not the interpreter's: where it waits."""
    frame = thread_frames().get(thread.ident or 0)
    while frame is not None and frame.f_code.co_filename in _WAITS:
        frame = frame.f_back
    if frame is None:
        return ""
    return f"; it is at {frame.f_code.co_filename}:{frame.f_lineno}, in {frame.f_code.co_name}"


def _timer_slack(ns: int) -> None:
    """Let the kernel wake this thread `ns` late at most (0: as by default), where that can be set: on Linux."""
    if sys.platform == "linux":
        set_timer_slack = 29  # PR_SET_TIMERSLACK of prctl(2)
        ctypes.CDLL(None).prctl(set_timer_slack, ns, 0, 0, 0)


_ENDLESS: Final = "; an endless source needs workload='requests' or 'to and fro': the others ask for all of it"


class _Stage:
    """One scenario, with the pools it has for the whole run."""

    def __init__(self, scenario: Scenario, recorder: Recorder) -> None:
        self.scenario = scenario
        self.recorder = recorder
        self.context = Context(recorder, scenario.name)
        self.cancellation_metrics = CancellationMetrics()
        self.share = Share()
        self._left: list[weakref.ref[Target]] = []
        # Of the thread of the load:
        self._has_unheard = False
        self._leaving = 0  # which of the next `EVERY` rounds its subscribers leave
        self.kept: Failure | None = None
        """The first time that a subscriber could not be collected. The scenario goes on."""

    def _publisher(self, caller: _Caller) -> RecordedPublisher[int]:
        scenario = self.scenario
        its_factory = f"its factory ({scenario.file})"

        def make() -> RecordedPublisher[int] | str:
            try:
                publisher = scenario.factory(self.context)
                if not callable(getattr(publisher, "subscribe", None)):
                    return f"{its_factory} returned a {type(publisher).__name__}, which is no publisher"
                return self.recorder.wrap(
                    publisher,
                    scenario.name,
                    shared_callers=True,
                    ascending=scenario.ascending,
                    elements=scenario.elements,
                    late_signals=scenario.late_signals,
                )
            except BaseException as error:
                return f"{its_factory} raised {_said(error)}"

        made = caller.call(scenario.name, "its factory", make).result()
        if isinstance(made, str):
            raise _GivenUpError(scenario.name, made)
        return made

    def round(self, workers: _Workers, caller: _Caller, rng: random.Random) -> None:
        """A publisher, subscriptions, fire, and silence."""
        number = self.share.rounds % EVERY
        if not number:
            self._leaving = rng.randrange(EVERY)
        leaves = number == self._leaving
        with kept_young() if leaves else nullcontext():
            self._round(workers, caller, rng, leaves)

    def _round(self, workers: _Workers, caller: _Caller, rng: random.Random, leaves: bool) -> None:
        first = len(self.recorder.subscriptions)
        no_loop = eventloop.wait_until_ended(0.0)
        publisher = self._publisher(caller)
        targets = [Target(rng, self.scenario.subscribers) for _ in range(self.scenario.live)]
        caller.call(self.scenario.name, "subscribe", partial(_subscribe, publisher, targets)).result()
        most = max(2, (self.scenario.elements or 1000) // 8)
        workload, chance = WORKLOADS[rng.choice(self.scenario.workloads)], rng.choice(CHANCES)
        more: list[list[Target]] = [[] for _ in range(workers.size)]
        burst = Burst(publisher, targets, self.context.feeders, workload, chance, rng.randrange(2**32), most, more)
        hint = _ENDLESS if self.scenario.elements is None and workload.unbounded else ""
        workers.fire(burst, self.scenario.name, hint)
        staying = burst.all_targets()
        del burst, more, targets
        if leaves:
            self._leave(staying, caller)
            staying = []  # only the publisher may have them
            self._look_for_the_kept()
        if not self.context.wait_until_idle(PATIENCE):
            raise _GivenUpError(self.scenario.name, f"a pool is still busy after {PATIENCE:g} s{hint}", stuck=True)
        self.context.next_round()
        if not leaves:
            if self.scenario.settles:
                self.recorder.settle(range(first, len(self.recorder.subscriptions)))
            else:
                self._settle_the_unheard(staying)
            self._cancel(staying, caller)
        del publisher
        self._wait_until_over(no_loop)
        self._look_for_the_uncompared()

    def _wait_until_over(self, no_loop: bool) -> None:
        """Wait until nothing can signal the subscriptions of this round: so the judge can judge each round alone.

        Args:
            no_loop: Whether the event loop of coroutines was not there before the round. Else it is not this round's
                alone, and not waited for.
        """
        after = f"{PATIENCE:g} s after all had cancelled"
        if not self.context.wait_until_idle(PATIENCE):
            raise _GivenUpError(self.scenario.name, f"a pool is still busy {after}", stuck=True)
        if no_loop and not eventloop.wait_until_ended(PATIENCE):
            raise _GivenUpError(self.scenario.name, f"a coroutine still runs on the event loop {after}", stuck=True)

    def _look_for_the_uncompared(self) -> None:
        """Give the scenario up where the judge can't compare its elements: it must not be called clean."""
        for name in (self.scenario.name, self.context.link_name):
            if (kind := self.recorder.uncompared.get(name)) is not None:
                what = f"an element{' of a link' if name != self.scenario.name else ''} is of type {kind}, and no int"
                how = "order and conservation can't be judged: make ints of them, or say ascending=False"
                raise _GivenUpError(self.scenario.name, f"{what}: {how}")

    def _settle_the_unheard(self, targets: list[Target]) -> None:
        """Settle the subscribers that have never heard `on_subscribe`: that breaks 1.9, whatever demand is worth.

        A thread that is not the context's may be about to signal it: so wait for the first of them.
        """
        over = primitives.monotonic() + (0.0 if self._has_unheard else HEARD)
        while unheard := [item.number for item in targets if item.subscription is None and item.number is not None]:
            if primitives.monotonic() > over:
                self._has_unheard = True
                self.recorder.settle(unheard)
                return
            primitives.Event().wait(0.001)

    def _cancel(self, targets: list[Target], caller: _Caller) -> None:
        """All cancel that have not ended."""

        def cancel() -> None:
            for target in targets:
                target.leave()

        caller.call(self.scenario.name, "cancel", cancel).result()

    def _leave(self, targets: list[Target], caller: _Caller) -> None:
        """All leave, whatever is under way."""
        self._cancel(targets, caller)
        begin = primitives.monotonic()
        name = self.scenario.name
        if not self.context.wait_until_idle(PATIENCE):
            raise _GivenUpError(name, f"a pool is still busy {PATIENCE:g} s after all had cancelled", stuck=True)
        self.cancellation_metrics.idle.append(primitives.monotonic() - begin)
        if self.context.iterators.ever:
            if not self.context.iterators.wait_until_closed(PATIENCE):
                raise _GivenUpError(name, f"an iterator is still open {PATIENCE:g} s after all had cancelled")
            self.cancellation_metrics.closed.append(primitives.monotonic() - begin)
        self.cancellation_metrics.subscribers += len(targets)
        self._left = [weakref.ref(target) for target in targets]

    def _look_for_the_kept(self) -> None:
        kept = collected(self._left)
        self.cancellation_metrics.kept += kept
        if kept:
            what = f"{kept} of {len(self._left)} subscribers that had cancelled can't be collected"
            self.kept = self.kept or Failure(self.scenario.name, what, rule="3.13")


def _subscribe(publisher: RecordedPublisher[Any], targets: list[Target]) -> None:
    for target in targets:
        with suppress(BaseException):  # what it raises is in the record, and judged there (1.9)
            target.number = publisher.subscribe(target)


class _Caller:
    """A thread that calls what is not ours, one call after the other: one that never returns holds up no load."""

    def __init__(self) -> None:
        self._calls: primitives.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = primitives.SimpleQueue()
        self._thread = primitives.Thread(target=self._work, name="caller", daemon=True)
        self._thread.start()
        self.held = False  # of the thread of the load
        """A call on it has not returned: it takes no other one."""

    def call(self, name: str, what: str, function: Callable[[], T]) -> Future[T]:
        """Call `function`, which does `what` for the scenario `name`; return when it has returned or raised."""
        made: Future[T] = Future()
        self._calls.put((function, made))
        try:
            made.exception(PATIENCE)
        except TimeoutError:
            self.held = True
            where = _place_of(self._thread)
            raise _GivenUpError(name, f"{what} did not return within {PATIENCE:g} s{where}", stuck=True) from None
        return made

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            function, made = call
            del call  # what this thread still has when the call is over looks as if the publisher had kept it
            try:
                result = function()
            except BaseException as error:
                del function
                made.set_exception(error)
            else:
                del function
                made.set_result(result)

    def dismiss(self) -> None:
        """Send the thread home. One whose call has not returned is left: it is a daemon."""
        self._calls.put(None)
        self._thread.join(0.0 if self.held else 1.0)


class _Workers:
    """The actors and the feeders: threads that meet at a barrier for each burst, and again when it is over."""

    def __init__(self, size: int) -> None:
        self.size = size + FEEDERS
        self._barrier = primitives.Barrier(self.size + 1)
        self._burst: Burst | None = None  # written between two meetings at the barrier
        self._failure = ""  # written by the thread that fails, before the barrier breaks; what it raised
        self._threads = [
            primitives.Thread(target=self._act, args=(actor,), name=f"actor-{actor}", daemon=True)
            for actor in range(self.size)
        ]
        for thread in self._threads:
            thread.start()

    def fire(self, burst: Burst, name: str, hint: str = "") -> None:
        """Let all actors fire; return when all have. `hint`: what may help where they do not."""
        self._burst = burst
        try:
            self._barrier.wait(PATIENCE)
            self._barrier.wait(PATIENCE)
            self._burst = None  # the next meeting is when there is another
        except primitives.BrokenBarrierError as error:
            if self._failure:
                raise _GivenUpError(name, f"a feeder raised {self._failure}") from None
            raise _GivenUpError(name, f"a round did not end within {PATIENCE:g} s{hint}", stuck=True) from error

    def broken(self) -> bool:
        """Whether they meet no more."""
        return self._barrier.broken

    def _act(self, actor: int) -> None:
        try:
            while True:
                self._barrier.wait()
                if self._burst is None:
                    return
                if (raised := self._raised_by(self._burst, actor)) is not None:
                    self._failure = _said(raised)
                    self._barrier.abort()
                    return
                self._barrier.wait()
        except primitives.BrokenBarrierError:  # it is ours: that of a feeder is in `raised`
            return

    @staticmethod
    def _raised_by(burst: Burst, actor: int) -> BaseException | None:
        try:
            burst.fire(actor)
        except BaseException as error:
            return error
        return None

    def dismiss(self) -> None:
        """Send the actors home. Those that are stuck are left: their threads are daemons."""
        self._burst = None
        with suppress(primitives.BrokenBarrierError):
            self._barrier.wait(1.0)
        patience = primitives.monotonic() + 0.2
        for thread in self._threads:
            thread.join(max(0.0, patience - primitives.monotonic()))
