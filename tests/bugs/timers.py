"""Clocks, deadlines, and what is late. The clock is virtual: no test waits."""

from __future__ import annotations

import threading
import time

from reactive_runtime.executors import ScheduledExecutor


class TimerAfterCancel:
    """A timer fires while it is being cancelled."""

    def __init__(self) -> None:
        self.cancelled = False
        self.fired_late = False
        self.timer = threading.Timer(1.0, self.fire)

    def fire(self) -> None:
        if self.cancelled:
            self.fired_late = True

    def stop(self) -> None:
        self.cancelled = True
        self.timer.cancel()

    def actor_main(self) -> None:
        self.timer.start()
        time.sleep(1.0)
        self.stop()
        self.timer.join()

    def at_end(self) -> None:
        assert not self.fired_late, "the timer fired after it was cancelled"


class TimerJoined(TimerAfterCancel):
    def stop(self) -> None:
        self.timer.cancel()
        self.timer.join()
        self.cancelled = True


class TimeoutAndValue:
    """The value comes with the deadline, and both are taken to have won."""

    def __init__(self) -> None:
        self.value = threading.Event()
        self.outcomes: list[str] = []
        self.lock = threading.Lock()

    def end(self, how: str) -> None:
        self.outcomes.append(how)

    def actor_waits(self) -> None:
        if not self.value.wait(1.0):
            self.end("timeout")

    def actor_sets(self) -> None:
        time.sleep(1.0)
        self.end("value")
        self.value.set()

    def at_end(self) -> None:
        assert len(self.outcomes) == 1, self.outcomes


class FirstWins(TimeoutAndValue):
    def end(self, how: str) -> None:
        with self.lock:
            if not self.outcomes:
                self.outcomes.append(how)


class Heartbeat:
    """Relies on the timer's task to have run when the sleep that is as long is over."""

    def __init__(self) -> None:
        self.timers = ScheduledExecutor()
        self.beats = 0

    def actor_main(self) -> None:
        future = self.timers.schedule(1.0, self.beat)
        self.pause(future)
        assert self.beats == 1, "the beat had not come"
        self.timers.shutdown()

    def pause(self, future: object) -> None:
        time.sleep(1.0)

    def beat(self) -> None:
        self.beats += 1


class WaitedHeartbeat(Heartbeat):
    def pause(self, future: object) -> None:
        future.result()  # type: ignore[attr-defined]


PAIRS = [
    (TimerAfterCancel, TimerJoined),
    (TimeoutAndValue, FirstWins),
    (Heartbeat, WaitedHeartbeat),
]
