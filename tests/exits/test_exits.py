"""Who gets what, when a user's code raises what is no Exception: kinds of exits x places x threads.

One table says what is expected, `PLACES` and `outcome`; each cell is tried with every kind. docs/exits.md shows it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sinks import PATIENCE, Numbers, Sink, wait_until

from reactive_runtime import Flow, Listener, hooks
from reactive_runtime.executors import ScheduledExecutor
from reactive_runtime.hot import PublishProcessor


class Own(BaseException):
    """A user's."""


KINDS: dict[str, Callable[[], BaseException]] = {
    "SystemExit": lambda: SystemExit(7),
    "KeyboardInterrupt": KeyboardInterrupt,
    "CancelledError": asyncio.CancelledError,
    "GeneratorExit": GeneratorExit,
    "BaseException of one's own": lambda: Own("own"),
    "MemoryError": MemoryError,
}

GROUNDS = {
    "the caller": lambda flow, ground: flow,
    "subscribe_on": lambda flow, ground: flow.do_on_next(ground.holds).subscribe_on(ground.pool),
    "publish_on": lambda flow, ground: flow.do_on_next(ground.holds).publish_on(ground.pool),
    "the event loop": lambda flow, ground: flow.flat_map(ground.waits, concurrency=1),
    "a clock": lambda flow, ground: flow.delay(0, clock=ground.clock),
}
"""Where what comes after it runs. Each waits, before it goes on, until `subscribe` has returned."""


@dataclass
class Ground:
    """What a flow runs on, and what is looked at afterwards."""

    pool: ThreadPoolExecutor
    clock: ScheduledExecutor
    failure: BaseException
    begin: threading.Event = field(default_factory=threading.Event)
    """Set when `subscribe` has returned."""
    source: Numbers = field(default_factory=lambda: Numbers(stop=5))

    def holds(self, n: int) -> None:
        self.begin.wait(PATIENCE)

    async def waits(self, n: int) -> int:
        await asyncio.get_running_loop().run_in_executor(None, self.begin.wait, PATIENCE)
        return n

    def fail(self, *arguments: Any) -> Any:
        raise self.failure

    def numbers(self) -> Flow[int]:
        return Flow.from_supplier(lambda: self.source)


class Raising(Sink):
    """A subscriber that raises out of one of its signals."""

    def __init__(self, signal: str, failure: BaseException) -> None:
        super().__init__()
        self.signal = signal
        self.failure = failure
        self.raised = threading.Event()

    def _raise_in(self, signal: str) -> None:
        if signal == self.signal:
            self.raised.set()
            raise self.failure

    def on_subscribe(self, subscription: Any, /) -> None:
        super().on_subscribe(subscription)
        self._raise_in("on_subscribe")

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        self._raise_in("on_next")

    def on_error(self, error: BaseException, /) -> None:
        super().on_error(error)
        self._raise_in("on_error")

    def on_complete(self) -> None:
        super().on_complete()
        self._raise_in("on_complete")


@dataclass(frozen=True)
class Place:
    """Where the exit comes out of."""

    kind: str
    """function: the flow ends with it. signal: out of a subscriber. clean-up: the flow ends otherwise."""
    make: Callable[[Ground, Callable[[Flow[Any]], Flow[Any]]], Flow[Any]]
    """The flow; the function puts what is before it on the ground."""
    grounds: tuple[str, ...] = tuple(GROUNDS)


SOURCE = ("the caller", "subscribe_on", "publish_on")
"""What runs a source."""


def failing_source(ground: Ground) -> Flow[int]:
    ground.source.fail_at, ground.source.failure = 2, ground.failure
    return ground.numbers()


class Closing(Numbers):
    """An iterator whose `close` raises."""

    def __init__(self, ground: Ground) -> None:
        super().__init__(stop=5)
        self.ground = ground

    def close(self) -> None:
        super().close()
        self.ground.fail()


def closing(ground: Ground) -> Flow[int]:
    ground.source = Closing(ground)
    return ground.numbers()


FAILING: Flow[Any] = Flow.error(OSError("the end of the flow itself"))


def broken(ground: Ground) -> Flow[int]:
    ground.source.fail_at = 2
    return ground.numbers()


@contextlib.contextmanager
def left_with(ground: Ground) -> Iterator[None]:
    try:
        yield
    finally:
        ground.fail()


class Ends(Listener):
    def __init__(self, fail: Callable[..., object]) -> None:
        setattr(self, "on_cancel", fail)  # noqa: B010 - a method of the instance


PLACES: dict[str, Place] = {
    "iterator": Place("function", lambda g, on: on(failing_source(g)), SOURCE),
    "supplier": Place("function", lambda g, on: on(Flow.from_supplier(g.fail)), SOURCE),
    "function": Place("function", lambda g, on: on(g.numbers()).map(g.fail)),
    "predicate": Place("function", lambda g, on: on(g.numbers()).filter(g.fail)),
    "key": Place("function", lambda g, on: on(g.numbers()).group_by(g.fail)),
    "function of flat_map": Place("function", lambda g, on: on(g.numbers()).flat_map(g.fail)),
    "function of reduce": Place("function", lambda g, on: on(g.numbers()).reduce(g.fail)),
    "listener": Place("function", lambda g, on: on(g.numbers()).do_on_complete(g.fail)),
    "resource of using": Place(
        "function", lambda g, on: on(g.numbers()).concat_map(lambda n: Flow.using(g.fail, Flow.just))
    ),
    "on_subscribe": Place("signal", lambda g, on: on(g.numbers()), ("the caller",)),
    "on_next": Place("signal", lambda g, on: on(g.numbers())),
    "on_error": Place("signal", lambda g, on: on(broken(g)), tuple(GROUNDS)[:-1]),  # `delay` lets an error by at once
    "on_complete": Place("signal", lambda g, on: on(g.numbers())),
    "close of an iterator": Place("clean-up", lambda g, on: on(closing(g)).take(2), SOURCE),
    "`__exit__` of using": Place(
        "clean-up", lambda g, on: Flow.using(lambda: left_with(g), lambda _: on(Flow.range(9))).take(2)
    ),
    "do_finally": Place("clean-up", lambda g, on: on(g.numbers()).do_finally(g.fail)),
    "finalize": Place("clean-up", lambda g, on: on(g.numbers()).finalize(g.fail)),
    "do_on_cancel": Place("clean-up", lambda g, on: on(g.numbers()).tap(Ends(g.fail)).take(1)),
    "do_on_discard": Place(
        "clean-up", lambda g, on: on(g.numbers()).concat_with(FAILING).batch(2).do_on_discard(g.fail)
    ),
}  # fmt: skip


def outcome(kind: str, ground: str, exits: bool) -> set[str]:
    """What becomes of it: "end": on_error. "hook": one report there. "up": raised to the user who has called."""
    up = exits and ground == "the caller"
    if kind == "function":
        return {"end", "up"} if up else {"end"}
    return {"up"} if up else {"hook"}


CELLS = [
    (place, ground, kind)
    for place, item in PLACES.items()
    for ground in item.grounds
    for kind in KINDS
    # out of the `finally` of a generator that is being closed, Python takes it for its own, and nothing sees it
    if not (kind == "GeneratorExit" and place == "`__exit__` of using")
]


@pytest.fixture
def loop_in_use() -> Iterator[Any]:
    """The event loop has a borrower throughout, so that it would be seen if it were lost."""
    forever = threading.Event()

    async def stays(n: int) -> int:
        await asyncio.get_running_loop().run_in_executor(None, forever.wait, PATIENCE)
        return n

    staying = Flow.just(1).flat_map(stays).to_future()
    yield
    forever.set()
    assert staying.result(PATIENCE) == 1


@pytest.mark.parametrize(("place", "ground", "kind"), CELLS)
@pytest.mark.usefixtures("loop_in_use")
def test_an_exit_is_one_end_or_one_report_and_no_thread_is_lost(
    place: str, ground: str, kind: str, dropped: list[hooks.Dropped]
) -> None:
    item = PLACES[place]
    failure = KINDS[kind]()
    with ThreadPoolExecutor(2) as pool, ScheduledExecutor() as clock:
        list(pool.map(lambda _: threading.Event().wait(0.01), range(2)))  # both workers are there
        workers = set(pool._threads)
        g = Ground(pool, clock, failure)
        signal = place if item.kind == "signal" else ""
        sink = Raising(signal, failure)
        held = clock.submit(g.begin.wait, PATIENCE)
        raised: BaseException | None = None
        try:
            item.make(g, lambda flow: GROUNDS[ground](flow, g)).subscribe(sink)
        except BaseException as error:
            raised = error
        g.begin.set()
        if item.kind == "signal":
            assert sink.raised.wait(PATIENCE)
        else:
            sink.wait()
        held.result(PATIENCE)
        expected = outcome(item.kind, ground, not isinstance(failure, Exception))
        if "hook" in expected:
            wait_until(lambda: any(drop.error is not None for drop in dropped))
        # all that was under way is over
        pool.submit(int).result(PATIENCE)
        assert clock.submit(int).result(PATIENCE) == 0
        assert Flow.range(3).flat_map(plus_async).to_list().block(timeout=PATIENCE) == [1, 2, 3]
        assert all(worker.is_alive() for worker in workers)
    reports = [drop.error for drop in dropped if drop.error is not None]
    found = set()
    if item.kind == "function":
        assert comes_from(sink.error, failure)
        found.add("end")
    if reports:
        assert len(reports) == 1, reports
        assert comes_from(reports[0], failure)
        found.add("hook")
    if raised is not None:
        assert comes_from(raised, failure)
        found.add("up")
    assert found == expected
    if item.kind == "signal":
        assert sink.signals[-1][0] == place, "nothing follows a signal that raised"
    if g.source.pulled:
        assert g.source.closed == 1


async def plus_async(n: int) -> int:
    return n + 1


def comes_from(error: BaseException | None, failure: BaseException) -> bool:
    """Whether it is the failure, or was raised from it."""
    while error is not None and error is not failure:
        error = error.__cause__
    return error is failure


# -- what brings its own thread -------------------------------------------------------------------------------


def coroutine(g: Ground) -> Flow[Any]:
    async def leaves(n: int) -> int:
        await asyncio.sleep(0)
        raise g.failure

    return Flow.just(1).flat_map(leaves)


def coroutine_in_order(g: Ground) -> Flow[Any]:
    async def leaves(n: int) -> int:
        raise g.failure

    return Flow.just(1).map_parallel(leaves)


def async_iterator(g: Ground) -> Flow[Any]:
    async def ticks() -> AsyncIterator[int]:
        yield 1
        raise g.failure

    return Flow.from_async(ticks)


def async_supplier(g: Ground) -> Flow[Any]:
    return Flow.from_async(g.fail)


def failed_future(g: Ground) -> Flow[Any]:
    future: Future[int] = Future()

    def fail() -> None:
        g.begin.wait(PATIENCE)
        future.set_exception(g.failure)

    g.pool.submit(fail)
    return Flow.from_future(future)


def done_future(g: Ground) -> Flow[Any]:
    future: Future[int] = Future()
    future.set_exception(g.failure)
    return Flow.from_future(future)


def behind_a_future(g: Ground) -> Flow[Any]:
    """The function runs in a callback of the future, on the worker."""

    def waits() -> int:
        g.begin.wait(PATIENCE)
        return 7

    return Flow.from_future(g.pool.submit(waits)).map(g.fail)


def behind_a_call(g: Ground) -> Flow[Any]:
    def waits(n: int) -> int:
        g.begin.wait(PATIENCE)
        return n

    return g.numbers().map_parallel(waits, g.pool, concurrency=1).map(g.fail)


def error_signal(g: Ground) -> Flow[Any]:
    return Flow.error(g.failure)


def error_signal_on_a_pool(g: Ground) -> Flow[Any]:
    return Flow.error(g.failure).publish_on(g.pool)


def hot_error(g: Ground) -> Flow[Any]:
    hot: PublishProcessor[int] = PublishProcessor()

    def fail() -> None:
        g.begin.wait(PATIENCE)
        hot.on_error(g.failure)

    g.pool.submit(fail)
    return hot


def task(g: Ground) -> Flow[Any]:
    return Flow.just(1).flat_map(lambda n: Flow.from_callable(g.fail).subscribe_on(g.pool))


def call(g: Ground) -> Flow[Any]:
    return Flow.just(1).map_parallel(g.fail, g.pool)


def call_of_a_chunk(g: Ground) -> Flow[Any]:
    return g.numbers().map_parallel(lambda n: g.fail() if n == 3 else n, g.pool, concurrency=2, chunk=4)


def rails(g: Ground) -> Flow[Any]:
    return Flow.just(1).parallel(2).run_on(g.pool).map(g.fail).sequential()


def behind_a_timer(g: Ground) -> Flow[Any]:
    return Flow.timer(0, clock=g.clock).map(g.fail)


def nested_drains(g: Ground) -> Flow[Any]:
    """The function is in a drain without an executor, which runs inside of one that has."""
    return g.numbers().subscribe_on(g.pool).do_on_request(int).retry(0).map(g.fail)


def foreign(g: Ground) -> Flow[Any]:
    class Theirs:
        def subscribe(self, subscriber: Any, /) -> None:
            g.fail()

    return Flow.from_publisher(Theirs()).subscribe_on(g.pool)


OF_THEIR_OWN = [
    coroutine, coroutine_in_order, async_iterator, async_supplier, failed_future, done_future, behind_a_future,
    behind_a_call, error_signal, error_signal_on_a_pool, hot_error, task, call, call_of_a_chunk, rails, behind_a_timer,
    nested_drains, foreign,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", OF_THEIR_OWN)
@pytest.mark.usefixtures("loop_in_use")
def test_an_exit_on_a_thread_of_its_own_ends_the_flow_once(make: Callable[[Ground], Flow[Any]], kind: str) -> None:
    failure = KINDS[kind]()
    with ThreadPoolExecutor(2) as pool, ScheduledExecutor() as clock:
        g = Ground(pool, clock, failure)
        clock.submit(g.begin.wait, PATIENCE)
        sink = Sink()
        make(g).subscribe(sink)
        g.begin.set()
        error = sink.wait().error
        if not (make is coroutine and kind == "CancelledError") and not (
            make is coroutine_in_order and kind == "CancelledError"
        ):  # of a coroutine that is all asyncio says: it was cancelled
            assert comes_from(error, failure)
        pool.submit(int).result(PATIENCE)
        pool.submit(int).result(PATIENCE)
        assert clock.submit(int).result(PATIENCE) == 0
        assert all(worker.is_alive() for worker in pool._threads)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", OF_THEIR_OWN)
@pytest.mark.parametrize("waiting", [lambda flow: flow.block(timeout=PATIENCE), list], ids=["block", "for"])
def test_a_sink_that_waits_is_not_left_waiting(
    waiting: Callable[[Flow[Any]], object], make: Callable[[Ground], Flow[Any]], kind: str
) -> None:
    with ThreadPoolExecutor(2) as pool, ScheduledExecutor() as clock:
        g = Ground(pool, clock, KINDS[kind]())
        g.begin.set()
        with pytest.raises(BaseException) as raised:  # noqa: PT011 - which one it is, is looked at
            waiting(make(g))
        assert not isinstance(raised.value, TimeoutError)


# -- its neighbours -------------------------------------------------------------------------------------------


def test_a_waiting_thread_hears_of_an_exit_on_the_emitters_thread() -> None:
    hot: PublishProcessor[int] = PublishProcessor()
    seen = []

    def emits() -> None:
        try:
            hot.emit(1)
        except SystemExit as error:
            seen.append(error.code)

    def leave(n: int) -> int:
        raise SystemExit(3)

    future = hot.map(leave).to_future()
    emitter = threading.Thread(target=emits)
    emitter.start()
    with pytest.raises(RuntimeError, match="SystemExit"):
        future.result(PATIENCE)
    emitter.join(PATIENCE)
    assert seen == [3], "never swallowed: the emitter gets it, too"


def test_the_other_subscribers_of_an_emission_get_it_although_one_exits() -> None:
    hot: PublishProcessor[int] = PublishProcessor()

    def leave(n: int) -> int:
        raise SystemExit(3)

    sinks = [Sink(), Sink(), Sink()]
    for sink, flow in zip(sinks, (hot, hot.map(leave), hot), strict=True):
        flow.subscribe(sink)
    with pytest.raises(SystemExit):
        hot.emit(1)
    hot.emit(2)
    assert [sink.elements for sink in sinks] == [[1, 2], [], [1, 2]]
    assert comes_from_exit(sinks[1])


def comes_from_exit(sink: Sink) -> bool:
    return isinstance(sink.error.__cause__, SystemExit)


@pytest.mark.parametrize("on_pool", [False, True])
def test_an_exit_of_one_subscriber_leaves_none_of_a_shared_source_without_an_end(on_pool: bool) -> None:
    source = Numbers(stop=5)
    with ThreadPoolExecutor(2) as pool:
        flow = Flow.from_supplier(lambda: source)
        line = (flow.subscribe_on(pool) if on_pool else flow).publish()

        def leave(n: int) -> int:
            raise SystemExit(3)

        sinks = [Sink(), Sink()]
        line.subscribe(sinks[0])
        line.map(leave).subscribe(sinks[1])
        if on_pool:
            line.connect()
            assert sinks[0].wait().elements == [0, 1, 2, 3, 4], "what another one raises is no concern of this one"
        else:
            with pytest.raises(SystemExit):
                line.connect()
        for sink in sinks:
            assert sink.wait().end is not None
        assert comes_from_exit(sinks[1])
        wait_until(lambda: source.closed == 1)


def test_a_task_of_a_user_on_the_event_loop_that_exits_is_reported_and_the_loop_goes_on(
    dropped: list[hooks.Dropped],
) -> None:
    async def leaves() -> None:
        raise SystemExit(3)

    async def starts(n: int) -> int:
        asyncio.ensure_future(leaves()).add_done_callback(asyncio.Future.exception)
        await asyncio.sleep(0.01)
        return n

    assert Flow.range(2).map_parallel(starts, concurrency=1).to_list().block(timeout=PATIENCE) == [0, 1]
    assert [type(drop.error) for drop in dropped] == [SystemExit, SystemExit]


@pytest.mark.parametrize("kind", ["SystemExit", "GeneratorExit", "BaseException of one's own"])
def test_a_callback_of_a_future_that_exits_kills_neither_clock_nor_pool(
    kind: str, dropped: list[hooks.Dropped]
) -> None:
    failure = KINDS[kind]()

    def leave(_: object) -> None:
        raise failure

    with ScheduledExecutor() as clock:
        gate = threading.Event()
        clock.submit(gate.wait, PATIENCE)
        clock.submit(int).add_done_callback(leave)
        gate.set()
        assert clock.submit(int).result(PATIENCE) == 0
    assert [drop.error for drop in dropped] == [failure]


def test_what_is_closed_after_an_exit_is_closed_all_the_same(dropped: list[hooks.Dropped]) -> None:
    """On the caller's ground an exit out of closing goes up; what comes after it is closed before."""
    first, second = Numbers(), Numbers()

    class Leaves(Numbers):
        def close(self) -> None:
            super().close()
            raise SystemExit(3)

    leaves = Leaves()
    ended: list[Any] = []
    flow = Flow.merge(
        Flow.from_supplier(lambda: first), Flow.from_supplier(lambda: leaves), Flow.from_supplier(lambda: second)
    ).do_finally(ended.append)
    sink = Sink(demand=6)
    handle = flow.subscribe(sink)
    with pytest.raises(SystemExit):
        handle.cancel()
    assert [item.closed for item in (first, leaves, second)] == [1, 1, 1]
    assert ended == ["cancel"]
    handle.cancel()
    assert not [drop for drop in dropped if drop.error]


# -- docs/exits.md --------------------------------------------------------------------------------------------

WORDS = {
    frozenset({"end"}): "`on_error`",
    frozenset({"end", "up"}): "`on_error`, and up",
    frozenset({"up"}): "up",
    frozenset({"hook"}): "the hook",
}


def table() -> str:
    """The table of docs/exits.md, made of the one that the tests go by."""
    lines = ["| raised in | " + " | ".join(GROUNDS) + " |", "| --- |" + " --- |" * len(GROUNDS)]
    for place, item in PLACES.items():
        cells = [
            WORDS[frozenset(outcome(item.kind, ground, exits=True))] if ground in item.grounds else ""
            for ground in GROUNDS
        ]
        lines.append(f"| {place} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


class ByHand(Executor):
    """Keeps its tasks until they are run by hand; Ctrl-C comes while the task of that number is submitted."""

    def __init__(self, interrupted: int) -> None:
        self.interrupted = interrupted
        self.submitted = 0
        self.tasks: list[Callable[[], object]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.submitted += 1
        if self.submitted == self.interrupted:
            raise KeyboardInterrupt
        self.tasks.append(functools.partial(fn, *args, **kwargs))
        return Future()


def test_a_stream_stays_closed_that_was_interrupted_when_it_gave_its_thread_back() -> None:
    executor, sink = ByHand(2), Sink()
    Flow.from_supplier(itertools.count).subscribe_on(executor).subscribe(sink)
    with pytest.raises(KeyboardInterrupt):
        executor.tasks.pop()()
    assert sink.ended.is_set()
    sink.subscription.request(1)
    assert executor.submitted == 2, "a stream that has ended has no further task"


def test_the_table_in_the_docs_is_the_one_that_is_tested() -> None:
    text = (Path(__file__).parents[2] / "docs" / "exits.md").read_text(encoding="utf-8")
    found = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert found is not None
    assert found[0].strip() == table()
