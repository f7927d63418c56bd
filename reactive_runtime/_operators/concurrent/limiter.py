"""Finds the limit of `concurrency="auto"`: from the latency of calls, how many may be in flight.

While a service has room, more calls in flight give more calls a second, at the same latency. When it has none, the
calls wait for each other: the latency grows, and the throughput does not. The best limit is between the two.

The limiter makes *trials*: it measures the throughput at the best limit so far and at another one, and compares. If the
throughput grows enough with the calls in flight (`WORTH`), the higher limit is better, otherwise the lower one. The
limiter goes on in a direction while that is better, then turns, and makes fewer trials while neither direction is
better. It compares measurements that follow each other, and keeps no minimum latency of the past. So the limit stays if
all calls become ten times as slow and the service still handles as many.

The throughput is the mean number of calls in flight by their mean latency (Little's law). A count of calls a second
would depend on where the window cuts calls that end together.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Final, NamedTuple

__all__ = ["FIRST", "Limiter"]

FIRST: Final = 16
"""The limit at the beginning."""

WORTH: Final = 0.2
"""More calls in flight are worth it if the throughput grows with at least this power of their number."""

WINDOW: Final = 32
"""A window has at least so many calls, and at least two for each call that may be in flight."""

SHORTEST: Final = 0.002
"""A window has so many seconds, at least."""

EXTENDED: Final = 4
"""A trial that is not sure has so many windows, at most."""

WIDE: Final = 2.0
"""The ratio of two limits while the limiter is far from the best one, or the latencies vary much."""

NARROW: Final = 1.25
"""The ratio of two limits around the best one."""

PATIENCE: Final = 16
"""At most so many windows pass between two trials."""

REMEMBERED: Final = 4
"""A measurement at the best limit includes up to so many windows before the last one."""

SHIFTED: Final = 1.4
"""If the latency changes by this ratio at one limit, the service has changed: the limiter makes trials."""

SURE: Final = 3
"""A difference of so many standard deviations counts as real."""

IMPOSSIBLE: Final = 2.5
"""If the throughput changes with a higher power of the limit, then the service has changed during the trial."""


class _Measurement(NamedTuple):
    """The calls of one or more windows."""

    limit: int
    throughput: float
    latency: float
    variance: float
    """The variance of the mean latency, in units of its square."""
    calls: int

    def after(self, earlier: _Measurement) -> _Measurement:
        """Both measurements as one; the earlier one counts as `REMEMBERED` windows of this size, at most."""
        before = min(earlier.calls, REMEMBERED * self.calls)
        calls = self.calls + before
        new, old = self.calls / calls, before / calls
        return _Measurement(
            self.limit,
            new * self.throughput + old * earlier.throughput,
            new * self.latency + old * earlier.latency,
            new**2 * self.variance + old**2 * earlier.variance,
            calls,
        )


class _Window:
    """Adds up calls under one limit. It begins to measure when the first call that began under this limit ends."""

    __slots__ = ("begun", "calls", "in_flight", "latencies", "measuring", "needed", "seconds", "squares", "starved")

    def __init__(self, limit: int, begun: float) -> None:
        self.begun = begun  # the time from which on the limit holds
        self.needed = max(WINDOW, 2 * limit)
        self.measuring = False
        self.calls = 0
        self.latencies = 0.0
        self.squares = 0.0  # of the latencies
        self.seconds = 0.0  # with at least one call in flight
        self.in_flight = 0.0  # seconds by calls
        self.starved = 0.0  # of the seconds: there was room for a call, and no element

    def ended(self, begun: float, latency: float) -> bool:
        """A call has ended. Whether the window is full."""
        if begun < self.begun:  # it ran beside as many calls as an earlier limit allowed
            return False
        if not self.measuring:
            self.measuring = True
            return False
        self.calls += 1
        self.latencies += latency
        self.squares += latency * latency
        return self.calls >= self.needed and self.seconds >= SHORTEST and self.latencies > 0

    def measured(self, limit: int) -> _Measurement:
        """The measurement of a full window."""
        latency = self.latencies / self.calls
        variance = max(0.0, self.squares / self.calls / latency**2 - 1)
        return _Measurement(limit, self.in_flight / self.seconds / latency, latency, variance / self.calls, self.calls)


class Limiter:
    """Finds the limit from calls that begin and end. It has no lock and no clock: its caller has both.

    All fields belong to the holder of the caller's lock. `limit` and `running` may be read without it.
    """

    def __init__(self, most: int) -> None:
        """`most`: the highest limit; 1 or more."""
        self.most = most
        self.limit = min(FIRST, most)
        self.running = 0
        self._best = self.limit  # `limit` is another during a trial
        self._base: _Measurement | None = None  # at `_best`
        self._upwards = True  # the direction of the next trial
        self._ratio = WIDE  # of the next trial
        self._patience = 1  # windows before each trial
        self._waits = 1  # windows before the next trial
        self._failed = 0  # trials in a row that were not better
        self._at = 0.0  # the time of the last event
        self._starving = False
        self._window = _Window(self.limit, 0.0)

    def began(self, now: float) -> None:
        """A call begins."""
        self._pass(now)
        self._starving = False
        self.running += 1

    def starves(self, now: float) -> None:
        """There is room for a call, and no element."""
        self._pass(now)
        self._starving = True

    def ended(self, begun: float, now: float) -> None:
        """A call ends, that began at `begun`. The limit may move."""
        self._pass(now)
        self.running -= 1
        window = self._window
        if not window.ended(begun, now - begun):
            return
        if window.starved > window.seconds / 4:  # the source was too slow: this says nothing of the service
            self._move(self.limit, window.begun)
        elif self.limit == self._best:
            self._rest(window.measured(self.limit), now)
        else:
            self._judge(window.measured(self.limit), now)

    def _pass(self, now: float) -> None:
        """Add up what has been since the last event."""
        # A thread may wait for the lock after it has read the clock: its event counts as of the time of the last one.
        window, seconds = self._window, max(0.0, now - self._at)
        self._at += seconds
        if window.measuring and self.running:
            window.seconds += seconds
            window.in_flight += seconds * self.running
            if self._starving:
                window.starved += seconds

    def _rest(self, new: _Measurement, now: float) -> None:
        """A window at the best limit is full. A trial may be due."""
        base = self._base
        if base is None:
            self._base = new
        elif abs(log(new.latency / base.latency)) > max(log(SHIFTED), SURE * sqrt(new.variance + base.variance)):
            self._base = new
            self._patience = self._waits = 1
        else:
            self._base = new.after(base)
        self._waits -= 1
        self._move(self.limit if self._waits > 0 else self._another(), now)

    def _judge(self, trial: _Measurement, now: float) -> None:
        """A window of a trial is full: compare."""
        base, window = self._base, self._window
        assert base is not None, "a trial comes after a window at the best limit"
        step = log(trial.limit / base.limit)
        power = log(trial.throughput / base.throughput) / step
        unsure = sqrt(trial.variance + base.variance) / abs(step)
        gain = (power - WORTH) if step > 0 else (WORTH - power)
        if abs(gain) < unsure and trial.calls < EXTENDED * max(WINDOW, 2 * trial.limit):
            window.needed += max(WINDOW, 2 * trial.limit)
        elif abs(power) > IMPOSSIBLE + unsure:
            self._base = None
            self._failed, self._patience = 0, 1
            self._return(now)
        elif gain > unsure:
            self._best, self._base = trial.limit, trial
            self._failed, self._patience = 0, 1
            self._ratio = min(WIDE, self._ratio * NARROW)
            self._move(self._another(), now)
        else:
            self._ratio = min(WIDE, self._ratio * NARROW) if gain > -unsure else NARROW
            self._upwards = not self._upwards
            self._failed += 1
            if self._failed == 2:  # neither more nor less is better
                self._failed, self._patience = 0, min(PATIENCE, 2 * self._patience)
            self._return(now)

    def _return(self, now: float) -> None:
        self._waits = self._patience
        self._move(self._best, now)

    def _another(self) -> int:
        """The limit to try next: in the direction of the last trial or, if there is no room, in the other one."""
        best = self._best
        more = min(self.most, max(best + 1, round(best * self._ratio)))
        less = max(1, min(best - 1, round(best / self._ratio)))
        self._upwards = more > best if self._upwards else less == best
        return more if self._upwards else less

    def _move(self, limit: int, since: float) -> None:
        """Begin a window, of the calls that begin at `since` or later."""
        self.limit = limit
        self._window = _Window(limit, since)
