"""Runs the example of an operator on virtual time, and records what passes above and below it.

Each source of an example, each flow that an operator makes, and each subscriber below the operator is a *line*. All
signals of a line go through `reactive_runtime.testing.Recorder`, whose records give the order; a note beside each
record gives the text of the element, the virtual time and the name of the thread. The records of every run are judged
by the rules (`reactive_runtime.testing.check`): no picture is made of a run that breaks one.

A run is the same each time, though it has several threads. Executors here are `Workers`: a task waits on the virtual
clock until it is its turn, runs on a thread of its own, and the clock stands still until it has returned. So one thread
runs at a time, in an order that depends on nothing but the example.
"""

from __future__ import annotations

import asyncio
import queue
import re
import textwrap
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from docs._site.names import modules
from reactive_runtime import MAX_DEMAND, Flow, hooks
from reactive_runtime.executors import VirtualTimeExecutor, clock_of
from reactive_runtime.testing import Recorder, check

__all__ = ["Event", "Example", "Line", "Run", "run"]

_FILE: Final = Path(__file__).parent / "three_lines.txt"

ENOUGH: Final = 30.0
"""Seconds of virtual time that a run has."""


@dataclass(frozen=True)
class Example:
    """An operator at work: the code that is run, and what stands above and below it."""

    code: str
    """An expression. `a`, `b`, `c` are the sources; the rest is named in `Stage.names`."""
    a: str | tuple[str, ...] | None = None
    """The events of the source: `12-3|` has 1 and 2 at once, 3 after a second, and completes; `x` is an error. The
    first of several is for the first subscriber, and so on."""
    b: str | tuple[str, ...] | None = None
    c: str | tuple[str, ...] | None = None
    demand: int | None = None
    """The demand of the subscriber, at first and whenever it is met. None: everything."""
    pause: float = 0.0
    """Seconds that the subscriber waits before it asks for more."""
    cancel_after: int | None = None
    """The subscriber cancels after so many elements."""
    cancel_at: float | None = None
    """The subscriber cancels then."""
    subscribers: tuple[float, ...] = (0.0,)
    """When each subscriber subscribes."""
    at: tuple[tuple[float, str], ...] = ()
    """Further calls, and their times."""
    seconds: tuple[float, ...] = (0.0,)
    """How long the tasks of an executor take, in turn."""
    note: str = ""
    """A sentence below the picture."""
    sink: bool = False
    """The expression runs the flow; its result is shown."""
    waits: bool = False
    """Coroutines run on an event loop, in real time: wait for the end."""


@dataclass(eq=False)
class Line:
    """The signals between a publisher and its subscriber."""

    label: str
    above: bool


@dataclass(frozen=True)
class Event:
    """A signal on a line; or, where `line` is None, a call of a function of the example."""

    line: Line | None
    what: str
    """"subscribe", "next", "error", "complete", "request", "cancel"; "call"; "act"."""
    text: str
    time: float
    thread: str


@dataclass
class Run:
    """The code of an example, its events in order, and its result."""

    code: str
    events: list[Event]
    result: str | None


NAMES: Final = {
    "on_subscribe": "subscribe",
    "on_next": "next",
    "on_error": "error",
    "on_complete": "complete",
    "request": "request",
    "cancel": "cancel",
}
"""The name of a signal of the recorder in an event. The others, `subscribe` and `settled`, are not drawn."""


class Workers(Executor):
    """Threads that take tasks in turn, one at a time, when the virtual clock comes to them."""

    def __init__(self, stage: Stage, name: str, threads: int, seconds: Sequence[float]) -> None:
        self._stage = stage
        self.names = [name] if threads == 1 else [f"{name} {n}" for n in range(1, threads + 1)]
        self._pools = [ThreadPoolExecutor(1, name) for name in self.names]
        self._seconds = seconds
        self._count = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        pool = self._pools[self._count % len(self._pools)]
        seconds = self._seconds[self._count % len(self._seconds)]
        self._count += 1
        return self._stage.clock.schedule(seconds, lambda: pool.submit(fn, *args, **kwargs).result())

    def runs_here(self) -> bool:
        """Whether this thread is one of them."""
        here = threading.current_thread()
        return any(here in pool._threads for pool in self._pools)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        for pool in self._pools:
            pool.shutdown(wait, cancel_futures=cancel_futures)


@dataclass
class _Note:
    """Facts that a record does not have."""

    what: str
    text: str
    time: float
    thread: str


class Stage:
    """Everything that one run of an example needs."""

    def __init__(self, example: Example) -> None:
        self.example = example
        self.clock = VirtualTimeExecutor(timeout=0)  # its workers take a step when the recording says so
        self.recorder = Recorder("marbles")
        self.lines: dict[int, Line] = {}  # by the number of the subscription
        self.notes: dict[int, list[_Note]] = {}
        self.calls: list[tuple[int, Event]] = []  # with how many notes there were before
        self.count = 0
        self.subscribed = threading.Event()
        self.ended = threading.Event()
        self.workers: list[Workers] = []
        self._inner = 0
        self._here = threading.current_thread()

    def thread(self) -> str:
        """The name of the thread that calls."""
        if threading.current_thread() is self._here:
            return "clock" if self.clock.runs_here() else "caller"
        name = threading.current_thread().name.rpartition("_")[0]
        return (
            name if name in {worker_name for worker in self.workers for worker_name in worker.names} else "event loop"
        )

    def note(self, number: int, what: str, text: str) -> None:
        """Beside the record of the same call."""
        self.count += 1
        self.notes.setdefault(number, []).append(_Note(what, text, self.clock.now(), self.thread()))

    def call(self, what: str, text: str) -> None:
        """A function of the example is called."""
        self.calls.append((self.count, Event(None, what, text, self.clock.now(), self.thread())))

    def watched(self, publisher: Any, line: Line) -> Flow[Any]:
        """`publisher`, recorded, as a line above the operator."""
        return Flow.from_publisher(_Watched(self, publisher, line))

    def source(self, label: str, scripts: str | tuple[str, ...]) -> Flow[Any]:
        """One of the sources of the example."""
        texts = (scripts,) if isinstance(scripts, str) else scripts
        return self.watched(_Timed(self, [_parsed(text) for text in texts]), Line(label, above=True))

    def inner(self, script: str) -> Flow[Any]:
        """A flow that a function of the example makes."""
        self._inner += 1
        return self.source(f"inner {self._inner}", script)

    def executor(self, name: str, threads: int = 1) -> Workers:
        """An executor of the example."""
        made = Workers(self, name, threads, self.example.seconds)
        self.workers.append(made)
        return made

    async def counted(self) -> AsyncIterator[int]:
        """1, 2, 3, when the caller has returned: so the thread of the event loop signals all of them."""
        while not self.subscribed.is_set():
            await asyncio.sleep(0.001)
        for n in range(1, 4):
            yield n

    async def answer(self) -> int:
        """42, when the caller has returned."""
        return len([n async for n in self.counted()]) * 14

    def names(self) -> dict[str, Any]:
        """The names that the code of an example may use: all public ones of the package, and these."""
        found: dict[str, Any] = {}
        for module in reversed(modules(whole=False)):
            if not module.name.startswith(("reactive_runtime.spark", "reactive_runtime.stress")):
                found.update(module.homes)
        for label in "abc":
            scripts = getattr(self.example, label)
            if scripts is not None:
                found[label] = self.source(label, scripts)
        return found | {
            "clock": self.clock,
            "say": lambda *what: self.call("call", ", ".join(map(_text, what))),
            "inner": self.inner,
            "io": self.executor("io"),
            "cpu": self.executor("cpu"),
            "pool": self.executor("pool", 2),
            "path": _FILE,
            "counted": self.counted,
            "answer": self.answer,
            "numbers": _filled(1, 2, 3, None),
            "collected": lambda flow: asyncio.run(_collected(flow)),
            "queue": queue.SimpleQueue(),
            "emitters": [],
            "resource": _Resource(self),
            "valve": found["Valve"](paused=True),
            "limit": found["Bulkhead"](1),
            "switch": found["KillSwitch"](),
            "counts": found["Metrics"](),
            "listener": _listener(self, found["Listener"]),
        }

    def events(self) -> list[Event]:
        """The events in the order of the records; those of every subscription keep the rules."""
        records = [record for record in self.recorder.records() if record.signal in NAMES]
        broken = check(self.recorder.records())
        assert not broken, f"{self.example.code}: {broken}"
        notes = {number: iter(of_line) for number, of_line in self.notes.items()}
        found = []
        for record in records:
            note = next(notes[record.subscription])
            assert note.what == NAMES[record.signal], f"{self.example.code}: {note} beside {record}"
            found.append(Event(self.lines[record.subscription], note.what, note.text, note.time, note.thread))
        for before, event in reversed(self.calls):
            found.insert(before, event)
        return found


def _filled(*items: Any) -> queue.SimpleQueue[Any]:
    filled: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for item in items:
        filled.put(item)
    return filled


class _Watched:
    """A publisher whose signals are recorded and noted."""

    def __init__(self, stage: Stage, publisher: Any, line: Line) -> None:
        self._stage = stage
        self._recorded = stage.recorder.wrap(publisher)
        self._line = line

    def subscribe(self, subscriber: Any, /) -> None:
        number = len(self._stage.recorder.subscriptions)
        self._stage.lines[number] = self._line
        self._recorded.subscribe(_Noting(self._stage, number, subscriber))


class _Noting:
    """Stands beside the recorder: what it notes belongs to the record of the same call."""

    def __init__(self, stage: Stage, number: int, other: Any) -> None:
        self._stage = stage
        self._number = number
        self._other = other

    def _note(self, what: str, text: str = "") -> None:
        self._stage.note(self._number, what, text)

    def on_subscribe(self, subscription: Any, /) -> None:
        self._note("subscribe")
        self._other.on_subscribe(_Noting(self._stage, self._number, subscription))

    def on_next(self, element: Any, /) -> None:
        self._note("next", _text(element))
        self._other.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        self._note("error", f"{type(error).__name__}")
        self._other.on_error(error)

    def on_complete(self) -> None:
        self._note("complete")
        self._other.on_complete()

    def request(self, n: int, /) -> None:
        self._note("request", "∞" if n == MAX_DEMAND else str(n))
        self._other.request(n)

    def cancel(self) -> None:
        self._note("cancel")
        self._other.cancel()


def _text(element: Any) -> str:
    if isinstance(element, Flow):
        return "flow"
    if isinstance(element, str):
        return element if element.isidentifier() else repr(element)
    if isinstance(element, BaseException):
        return f"{type(element).__name__}"
    if isinstance(element, tuple) and any(isinstance(part, Flow) for part in element):
        return f"({', '.join(map(_text, element))})"
    return (
        re.sub(r"^(\w+)\(signal='(\w+)', .*\)$", r"\2", repr(element)) if "signal=" in repr(element) else repr(element)
    )


def _parsed(script: str) -> list[tuple[float, str, Any]]:
    """When, which signal, and the element."""
    time = 0.0
    found: list[tuple[float, str, Any]] = []
    for sign in script:
        if sign == "-":
            time += 1
        elif sign == "|":
            found.append((time, "complete", None))
        elif sign == "x":
            found.append((time, "error", None))
        else:
            found.append((time, "next", int(sign) if sign.isdigit() else sign))
    return found


class _Timed:
    """A publisher whose elements are there at certain times; without demand they wait."""

    def __init__(self, stage: Stage, scripts: list[list[tuple[float, str, Any]]]) -> None:
        self._stage = stage
        self._scripts = scripts
        self._count = 0

    def subscribe(self, subscriber: Any, /) -> None:
        script = self._scripts[min(self._count, len(self._scripts) - 1)]
        self._count += 1
        _TimedSubscription(self._stage.clock, script, subscriber).start()


class _TimedSubscription:
    """One thread runs at a time here, so its state needs no lock."""

    def __init__(self, clock: VirtualTimeExecutor, script: list[tuple[float, str, Any]], subscriber: Any) -> None:
        self._clock = clock
        self._script = script
        self._subscriber = subscriber
        self._begin = clock.now()
        self._place = 0
        self._demand = 0
        self._inside = False  # a signal is being delivered: a request from inside of it does not recurse (3.3)
        self._over = False

    def start(self) -> None:
        """Subscribe."""
        self._subscriber.on_subscribe(self)
        for time in sorted({time for time, _, _ in self._script if time}):
            self._clock.schedule(time, self._drain)
        self._drain()

    def request(self, n: int, /) -> None:
        """See `Subscription.request`."""
        self._demand = min(self._demand + n, MAX_DEMAND)
        self._drain()

    def cancel(self) -> None:
        """See `Subscription.cancel`."""
        self._over = True

    def _drain(self) -> None:
        if self._inside:
            return
        self._inside = True
        while not self._over and self._place < len(self._script):
            time, what, element = self._script[self._place]
            if self._begin + time > self._clock.now() or (what == "next" and not self._demand):
                break
            self._place += 1
            if what == "next":
                self._demand -= 1
                self._subscriber.on_next(element)
            else:
                self._over = True
                self._subscriber.on_complete() if what == "complete" else self._subscriber.on_error(OSError("broken"))
        self._inside = False


async def _collected(flow: AsyncIterator[Any]) -> list[Any]:
    return [element async for element in flow]


class _Resource:
    """Says when it is opened and closed."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def __enter__(self) -> _Resource:
        self._stage.call("call", "opened")
        return self

    def __exit__(self, *_: object) -> None:
        self._stage.call("call", "closed")


def _listener(stage: Stage, base: Any) -> Any:
    """A listener that says what it hears."""

    class Saying(base):  # type: ignore[misc]
        def on_subscribe(self) -> None:
            stage.call("call", "on_subscribe")

        def on_next(self, element: Any) -> None:
            stage.call("call", f"on_next({element})")

        def on_complete(self) -> None:
            stage.call("call", "on_complete")

        def on_finally(self, way: str) -> None:
            stage.call("call", f"on_finally({way})")

    return Saying()


class _Subscriber:
    """Asks for what the example says."""

    def __init__(self, stage: Stage, demand: int | None, last: bool = True) -> None:
        self._stage = stage
        self._demand = demand
        self._last = last
        self._seen = 0
        self._over = False

    def on_subscribe(self, subscription: Any, /) -> None:
        self._subscription = subscription
        example = self._stage.example
        if self._last and example.cancel_at is not None:
            self._stage.clock.schedule(example.cancel_at, subscription.cancel)
        subscription.request(MAX_DEMAND if self._demand is None else self._demand)

    def on_next(self, element: Any, /) -> None:
        self._seen += 1
        example = self._stage.example
        for part in element if isinstance(element, tuple) else (element,):
            if isinstance(part, Flow):
                label = f"the flow in {_text(element)}" if isinstance(element, tuple) else f"flow {self._seen}"
                _Watched(self._stage, part, Line(label, above=False)).subscribe(_Subscriber(self._stage, None, False))
        if self._last and example.cancel_after == self._seen:
            self._over = True
            self._subscription.cancel()
        elif self._demand is not None and self._seen % self._demand == 0:
            if example.pause:
                self._stage.clock.schedule(example.pause, self._more)
            else:
                self._more()

    def _more(self) -> None:
        if not self._over and self._demand is not None:
            self._subscription.request(self._demand)

    def on_error(self, error: BaseException, /) -> None:
        self._end()

    def on_complete(self) -> None:
        self._end()

    def _end(self) -> None:
        self._over = True
        if self._last:
            self._stage.ended.set()


def run(example: Example) -> Run:
    """Run the example, and say what happened."""
    stage = Stage(example)
    names = stage.names()
    result = None
    code = textwrap.dedent(example.code).strip()
    try:
        with hooks.captured(), clock_of(stage.clock):  # what an operator drops goes there
            made = eval(f"({code})", names)
            for time, call in example.at:
                stage.clock.schedule(time, _acting(stage, call, names))
            if example.sink:
                result = _text(made() if callable(made) else made)
            else:
                labels = [""] if len(example.subscribers) == 1 else ["first subscriber", "second subscriber"]
                for time, label in zip(example.subscribers, labels, strict=True):
                    watched = _Watched(stage, made, Line(label, above=False))
                    subscriber = _Subscriber(stage, example.demand)
                    if time:
                        stage.clock.schedule(time, watched.subscribe, subscriber)
                    else:
                        watched.subscribe(subscriber)
            stage.subscribed.set()
            if example.waits:
                assert stage.ended.wait(20), f"{code}: no end"
            stage.clock.advance(ENOUGH)
            events = stage.events()
    finally:
        for worker in stage.workers:
            worker.shutdown()
    return Run(code, events, result)


def _acting(stage: Stage, call: str, names: dict[str, Any]) -> Callable[[], None]:
    def act() -> None:
        stage.call("act", call)
        eval(call, names)

    return act
