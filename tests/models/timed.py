"""Operators with a clock or a switch, and their models: events with times in, signals with times out.

A model is a function of the events of a run, in order: `(time, "next", element)`, `(time, "complete")`,
`(time, "error")` of the source; `(time, "request", n)` of the subscriber; `(time, "switch", on)` of a valve
or a switch. It notes signals with `Run.give` and `Run.finish`; `Run.at` calls it back later.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from declared.kinds import Part
from hypothesis import strategies as st

from models.scripts import FailedError, Item
from reactive_runtime import Emitter, Flow, KillSwitch, Valve
from reactive_runtime.executors import VirtualTimeExecutor

UNIT = 1000
PERIOD = 3007
"""The seconds of each operator. Sources give at whole units; no sum of a few of these meets a request or a switch."""

Event = tuple[Any, ...]
Events = list[Event]


@st.composite
def events(draw: st.DrawFn) -> Events:
    """What happens in a run: no two things at one time."""
    made: Events = []
    time = 0
    for value in draw(st.lists(st.integers(0, 9), max_size=9)):
        time += draw(st.sampled_from([1, 1, 1, 2, 3, 7])) * UNIT
        made.append((time, "next", Item(len(made), value)))
    end = draw(st.sampled_from(["complete", "complete", "error", "never"]))
    if end != "never":
        made.append((time + draw(st.sampled_from([1, 2, 9])) * UNIT, end))
    made.append((0, "request", draw(st.sampled_from([0, 1, 2, 3, 99]))))
    time = 300
    for n in draw(st.lists(st.sampled_from([1, 1, 2, 3]), max_size=5)):
        time += draw(st.sampled_from([1, 2, 4, 9])) * UNIT
        made.append((time, "request", n))
    time = 600
    on = True
    for step in draw(st.lists(st.sampled_from([1, 2, 3, 5]), max_size=4)):
        time += step * UNIT
        made.append((time, "switch", on))
        on = not on
    if draw(st.integers(0, 3)) == 0:
        made.append((draw(st.integers(1, 30)) * UNIT + 450, "cancel"))
    return sorted(made, key=lambda event: event[0])


@dataclass
class Run:
    """A model at work."""

    events: Events
    time: float = 0
    demand: int = 0
    over: bool = False
    out: list[Any] = field(default_factory=list)
    later: list[Any] = field(default_factory=list)
    count: int = 0

    def give(self, element: Any) -> None:
        assert self.demand > 0
        self.demand -= 1
        self.out.append((self.time, element))

    def finish(self, end: str) -> None:
        if not self.over:
            self.over = True
            self.out.append((self.time, end))

    def at(self, time: float, call: Callable[[], object]) -> None:
        self.count += 1
        heapq.heappush(self.later, (time, self.count, call))

    def go(self, model: Model) -> list[Any]:
        """All events, and what was put off in between."""
        for event in [*self.events, (10**7, "last")]:
            while self.later and self.later[0][0] <= event[0] and not self.over:
                self.time, _, call = heapq.heappop(self.later)
                call()
            if self.over or event[1] in ("cancel", "last"):
                break
            self.time = event[0]
            if event[1] == "request":
                self.demand += event[2]
            model(self, *event[1:])
        return self.out


Model = Callable[..., object]


@dataclass
class Stage:
    """What an operator is given."""

    clock: VirtualTimeExecutor = field(default_factory=VirtualTimeExecutor)
    valve: Valve = field(default_factory=Valve)
    switch: KillSwitch = field(default_factory=KillSwitch)
    given: list[Item] = field(default_factory=list)
    emitter: Emitter[Any] | None = None

    def source(self) -> Flow[Any]:
        """Pushes when the events say so; what is not asked for waits in its buffer."""

        def begin(emitter: Emitter[Any]) -> None:
            self.emitter = emitter

        return Flow.create(begin)

    def happens(self, what: str, *elements: Any) -> None:
        emitter = self.emitter
        if what == "switch":
            if elements[0]:
                self.valve.pause()
                self.switch.throw()
            else:
                self.valve.resume()
        elif emitter is None or emitter.is_cancelled():
            return
        elif what == "next":
            self.given.append(elements[0])
            emitter.emit(elements[0])
        elif what == "complete":
            emitter.complete()
        elif what == "error":
            emitter.error(FailedError("the source is broken"))


@dataclass(frozen=True)
class Timed(Part):
    """An operator, and its model, made anew for each run."""

    apply: Callable[[Flow[Any], Stage], Flow[Any]]
    model: Callable[[], Model]
    follows: bool = True
    """Its elements are those of the source."""


class Waiting:
    """Most models: elements wait in a line, and the end behind them."""

    def __init__(self) -> None:
        self.line: deque[Any] = deque()
        self.end = ""

    def __call__(self, run: Run, what: str, *elements: Any) -> None:
        if what == "next":
            self.came(run, elements[0])
        elif what in ("complete", "error"):
            self.ended(run, what)
        elif what == "switch":
            self.switched(run, elements[0])
        self.flush(run)

    def put(self, run: Run, *elements: Any, end: str = "") -> None:
        self.line.extend(elements)
        self.end = end or self.end
        self.flush(run)

    def came(self, run: Run, element: Any) -> None:
        self.line.append(element)

    def ended(self, run: Run, end: str) -> None:
        self.end = end

    def switched(self, run: Run, on: bool) -> None:
        pass

    def open(self, run: Run) -> bool:
        return True

    def flush(self, run: Run) -> None:
        while self.line and run.demand and self.open(run):
            run.give(self.line.popleft())
        if self.end and not self.line:
            run.finish(self.end)


class RateLimit(Waiting):
    """Two in any stretch of a period."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def open(self, run: Run) -> bool:
        if len(self.times) >= 2 and run.time < self.times[-2] + PERIOD:
            run.at(self.times[-2] + PERIOD, lambda: self.flush(run))
            return False
        self.times.append(run.time)
        return True


class Delay(Waiting):
    """The source is asked with the first demand; what it has by then waits until then."""

    def __init__(self) -> None:
        super().__init__()
        self.before: list[Any] | None = []

    def __call__(self, run: Run, what: str, *elements: Any) -> None:
        if self.before is not None and what in ("next", "complete", "error"):
            self.before.append((what, *elements))
        elif what in ("next", "complete", "error"):
            self.put_off(run, what, *elements)
        if self.before is not None and (run.demand or (self.before and self.before[0][0] != "next")):
            before, self.before = self.before, None
            for event in before:
                self.put_off(run, *event)
        self.flush(run)

    def put_off(self, run: Run, what: str, *elements: Any) -> None:
        if what == "error":
            run.finish("error")
        elif what == "next":
            run.at(run.time + PERIOD, lambda: self.put(run, *elements))
        else:
            run.at(run.time + PERIOD, lambda: self.put(run, end=what))


class Pausable(Waiting):
    shut = False

    def switched(self, run: Run, on: bool) -> None:
        self.shut = on

    def open(self, run: Run) -> bool:
        return not self.shut


class Killed(Waiting):
    def switched(self, run: Run, on: bool) -> None:
        run.finish("complete")


class Buffer(Waiting):
    """Two wait; of one more it is the oldest that goes, or the newest, or the flow."""

    def __init__(self, drop: str) -> None:
        super().__init__()
        self.drop = drop

    def came(self, run: Run, element: Any) -> None:
        self.line.append(element)
        if not run.demand and len(self.line) > 2:
            if self.drop == "error":
                run.finish("error")
            elif self.drop == "oldest":
                self.line.popleft()
            else:
                self.line.pop()


class Drop(Waiting):
    def came(self, run: Run, element: Any) -> None:
        if run.demand:
            run.give(element)


class Latest(Waiting):
    def came(self, run: Run, element: Any) -> None:
        self.line.clear()
        self.line.append(element)


class Conflate(Waiting):
    """One list of those that wait."""

    def came(self, run: Run, element: Any) -> None:
        if self.line:
            self.line[0].append(element)
        else:
            self.line.append([element])


class Timestamp(Waiting):
    """The time at which it is asked for, if it was there before."""

    def flush(self, run: Run) -> None:
        while self.line and run.demand:
            run.give((self.stamp(run), self.line.popleft()))
        if self.end and not self.line:
            run.finish(self.end)

    def stamp(self, run: Run) -> float:
        return run.time


class Elapsed(Timestamp):
    before = 0.0

    def stamp(self, run: Run) -> float:
        before, self.before = self.before, run.time
        return run.time - before


class Throttle(Waiting):
    """It looks at an element when that is asked for: from then on its time runs."""

    until = 0.0

    def flush(self, run: Run) -> None:
        while self.line and run.demand:
            element = self.line.popleft()
            if run.time >= self.until:
                self.until = run.time + PERIOD
                run.give(element)
        if self.end and not self.line:
            run.finish(self.end)


class Debounce(Waiting):
    """The latest is in the line when its time has come, or with the end: there it takes the place of an older one."""

    latest: Any = None

    def came(self, run: Run, element: Any) -> None:
        self.latest = element
        run.at(run.time + PERIOD, lambda: self.due(run, element))

    def due(self, run: Run, element: Any) -> None:
        if self.latest is element:
            self.line.clear()
            self.line.append(element)
            self.latest = None
            self.flush(run)

    def ended(self, run: Run, end: str) -> None:
        if end == "complete" and self.latest is not None:
            self.line.clear()
            self.line.append(self.latest)
        if end == "error":
            self.line.clear()
        self.latest = None
        self.end = end


class Sample(Waiting):
    """The latest is in the line at the end of a period, or with the end: there it takes the place of an older one."""

    latest: Any = None
    begun = False

    def __call__(self, run: Run, what: str, *elements: Any) -> None:
        if not self.begun:
            self.begun = True
            run.at(PERIOD, lambda: self.tick(run, 1))
        super().__call__(run, what, *elements)

    def tick(self, run: Run, n: int) -> None:
        if n < 99:
            run.at((n + 1) * PERIOD, lambda: self.tick(run, n + 1))
        self.take()
        self.flush(run)

    def take(self) -> None:
        if self.latest is not None:
            self.line.clear()
            self.line.append(self.latest)
            self.latest = None

    def came(self, run: Run, element: Any) -> None:
        self.latest = element

    def ended(self, run: Run, end: str) -> None:
        self.take()
        if end == "error":
            self.line.clear()
        self.end = end


class Timeout(Waiting):
    """The time runs while something is asked for, and anew from each element."""

    since = 0.0
    turn = 0

    def flush(self, run: Run) -> None:
        before = len(run.out)
        super().flush(run)
        if run.demand and (self.idle or len(run.out) > before):
            self.turn += 1
            turn = self.turn
            run.at(run.time + PERIOD, lambda: self.late(run, turn))
        elif not run.demand:
            self.turn += 1
        self.idle = not run.demand

    idle = True

    def late(self, run: Run, turn: int) -> None:
        if turn == self.turn:
            run.finish("error")


class Deadline(Waiting):
    """The time runs from the beginning, whether something is asked for or not."""

    begun = False

    def __call__(self, run: Run, *event: Any) -> None:
        if not self.begun:
            self.begun = True
            run.at(PERIOD, lambda: run.finish("error"))
        super().__call__(run, *event)


class BufferTimeout(Waiting):
    """Three, or what there is after a period; begun when it is asked for. One that is due waits, and takes no more."""

    def __init__(self) -> None:
        super().__init__()
        self.batch: list[Any] = []
        self.due = 0.0

    def flush(self, run: Run) -> None:
        while True:
            while self.line and len(self.batch) < 3 and (run.demand or self.batch):
                self.batch.append(self.line.popleft())
                if len(self.batch) == 1:
                    self.due = run.time + PERIOD
                    run.at(self.due, lambda: self.flush(run))
            if self.end == "error" and not self.line and (len(self.batch) < 3 or not run.demand):
                run.finish("error")
                return
            last = self.end == "complete" and not self.line
            due = self.batch and (len(self.batch) == 3 or run.time >= self.due or last)
            if not (due and run.demand):
                break
            run.give(self.batch)
            self.batch = []
        if self.end == "complete" and not self.line and not self.batch:
            run.finish("complete")


class BufferTime(Waiting):
    """Those of a period, from the first demand on; a list begins `every` so often."""

    def __init__(self, every: int) -> None:
        super().__init__()
        self.every = every
        self.begin: float | None = None
        self.kept: list[tuple[float, Any]] = []
        self.number = 0  # of the next list

    def flush(self, run: Run) -> None:
        if self.begin is None and run.demand:
            self.begin = run.time
        while self.line and self.begin is not None:
            element = self.line.popleft()
            if (run.time - self.begin) % self.every < PERIOD:  # it is not between two lists
                self.kept.append((run.time, element))
            for n in range(int((run.time - self.begin) // self.every) + 1):
                run.at(self.begin + n * self.every + PERIOD, lambda: self.flush(run))
        if self.end == "error" and not self.line:
            run.finish("error")
        while self.kept and not run.over:
            assert self.begin is not None
            start = self.begin + self.number * self.every
            members = [element for time, element in self.kept if start <= time < start + PERIOD]
            if members:
                if not run.demand or not (run.time >= start + PERIOD or self.end):
                    return
                run.give(members)
            self.number += 1
            self.kept = [item for item in self.kept if item[0] >= start + self.every]
        if self.end and not self.line:
            run.finish(self.end)


class Interval:
    """Ticks; the source of the run is not used."""

    def __init__(self, overflow: str) -> None:
        self.overflow = overflow
        self.line: deque[int] = deque()
        self.begun = False

    def __call__(self, run: Run, what: str, *elements: Any) -> None:
        if not self.begun:
            self.begun = True
            run.at(PERIOD, lambda: self.tick(run, 0))
        self.flush(run)

    def tick(self, run: Run, n: int) -> None:
        if n >= 15 and (run.demand or self.overflow != "buffer"):  # of the test: it takes so many
            return
        run.at((n + 2) * PERIOD, lambda: self.tick(run, n + 1))
        if run.demand:
            run.give(n)
        elif self.overflow == "latest":
            self.line.clear()
            self.line.append(n)
        elif self.overflow == "buffer":
            self.line.append(n)
            if len(self.line) > 2:
                run.finish("error")

    def flush(self, run: Run) -> None:
        while self.line and run.demand:
            run.give(self.line.popleft())


class Timer(Waiting):
    begun = False

    def __call__(self, run: Run, what: str, *elements: Any) -> None:
        if not self.begun:
            self.begun = True
            run.at(PERIOD, lambda: self.put(run, 0, end="complete"))
        self.flush(run)


def interval(overflow: Any) -> Timed:
    return Timed(
        lambda f, s: (
            Flow.interval(PERIOD, clock=s.clock, overflow=overflow, capacity=2)
            .take_while(lambda n: n < 15)
            .concat_with(Flow.never())
        ),
        lambda: Interval(overflow),
        follows=False,
        variant=overflow,
    )
