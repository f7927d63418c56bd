"""Sinks that wait: what they refuse, what they say when they give up, how they end."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import pytest
from sinks import PATIENCE, Numbers, Sink, wait_until

from reactive_runtime import Flow, KillSwitch, Listener, ParallelFlow, hooks
from reactive_runtime._operators.sinks import terminal, waiting
from reactive_runtime.errors import RejectedError
from reactive_runtime.executors import (
    ScheduledExecutor,
    SerialExecutor,
    TrampolineExecutor,
    VirtualTimeExecutor,
    blocking_allowed,
)
from reactive_runtime.picklable import Threads, Timers

# -- the guard ------------------------------------------------------------------------------------------------


class Marked(Executor):
    """An executor, or a clock, to be found again."""

    def now(self) -> float:
        return 0.0

    def schedule(self, delay: float, fn: Callable[[], object], /) -> Future[Any]:
        raise NotImplementedError

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        raise NotImplementedError


ARGUMENTS: dict[str, Any] = {
    "fn": len, "seconds": 1.0, "n": 2, "per": 1.0, "key": len, "count": 2, "every": 1, "size": 2,
    "delay": 1.0, "sampler": 1.0,
}  # fmt: skip
"""For the operators that take an executor or a clock besides."""


def with_an_executor() -> Iterator[tuple[str, str]]:
    """Every operator and source of `Flow` that has a parameter for an executor or a clock, and its name."""
    for name in dir(Flow):
        member = getattr(Flow, name)
        if inspect.isfunction(member) and not name.startswith("_"):
            for parameter in inspect.signature(member).parameters:
                if parameter in ("executor", "clock"):
                    yield name, parameter


@pytest.mark.parametrize(("name", "parameter"), list(with_an_executor()))
def test_every_operator_that_takes_an_executor_or_a_clock_declares_it(name: str, parameter: str) -> None:
    marked = Marked()
    operator = getattr(Flow, name)
    arguments: list[Any] = []
    keywords: dict[str, Any] = {}
    for item in inspect.signature(operator).parameters.values():
        if item.name == parameter:
            value: Any = marked
        elif item.name in ("source", "self"):
            value = Flow.range(3)
        elif item.default is not inspect.Parameter.empty:
            continue
        else:
            value = ARGUMENTS[item.name]
        if item.kind is inspect.Parameter.POSITIONAL_ONLY:
            arguments.append(value)
        else:
            keywords[item.name] = value
    flow = operator(*arguments, **keywords)
    assert marked in needed(flow)
    assert marked in needed(Flow.merge(Flow.never(), flow.map(str))), "beside another one, too"
    assert marked in needed(flow.publish().ref_count()), "and when it is shared"
    assert marked in needed(Flow.from_publisher(flow)), "and as a publisher"


def test_the_list_of_those_is_not_empty() -> None:
    names = {name for name, _ in with_an_executor()}
    assert {"publish_on", "subscribe_on", "map_parallel", "timer", "delay", "retry_backoff"} <= names


def needed(flow: Flow[Any]) -> list[Any]:
    return [use.resource for part in flow._parts() for use in part.uses()]


def test_rails_and_the_fallback_of_a_timeout_are_declared() -> None:
    marked = Marked()
    assert "executor" in inspect.signature(ParallelFlow.run_on).parameters
    assert marked in needed(Flow.range(3).parallel(2).run_on(marked).map(str).sequential())
    assert marked in needed(
        Flow.range(3).timeout(1, clock=VirtualTimeExecutor(), fallback=Flow.just(1).subscribe_on(marked))
    )


async def plus(n: int) -> int:
    return n + 1


Wait = Callable[[Flow[Any]], Any]


def flows(executor: Any) -> dict[str, Flow[Any]]:
    numbers = Flow.range(3)
    return {
        "subscribe_on": numbers.subscribe_on(executor),
        "publish_on": numbers.publish_on(executor),
        "map_parallel": numbers.map_parallel(str, executor),
        "parallel": numbers.parallel(2).run_on(executor).sequential(),
        "a second source": Flow.zip(numbers, numbers.publish_on(executor)),
        "shared": numbers.subscribe_on(executor).share(),
        "dealt out": Flow.merge(*numbers.subscribe_on(executor).balance(2)),
    }


@pytest.mark.parametrize("wait", [lambda flow: flow.block(timeout=5), list, Flow.run], ids=["block", "for", "run"])
@pytest.mark.parametrize("shape", list(flows(Marked())))
@pytest.mark.parametrize("below", ["pool", "serial", "serial of serial", "Threads"])
def test_waiting_on_a_thread_that_the_flow_needs_is_refused(below: str, shape: str, wait: Wait) -> None:
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(1, "mine") if below != "Threads" else Threads(1))
        executor: Executor = pool
        if below.startswith("serial"):
            executor = stack.enter_context(SerialExecutor(pool))
        if below == "serial of serial":
            executor = stack.enter_context(SerialExecutor(executor))
        flow = flows(executor)[shape]
        with pytest.raises(RuntimeError, match="which the flow needs for"):
            pool.submit(wait, flow).result(PATIENCE)
        assert flow.to_list().block(timeout=PATIENCE), "on any other thread it may"


@pytest.mark.parametrize("begun", [ScheduledExecutor, Timers])
def test_waiting_on_a_clocks_thread_for_what_needs_the_clock_is_refused(begun: Any) -> None:
    with begun() as clock:
        for flow in (
            Flow.timer(0, clock=clock),
            Flow.range(3).delay(0, clock=clock),
            Flow.range(2).buffer_timeout(9, 1, clock=clock),
        ):
            with pytest.raises(RuntimeError, match="which the flow needs for"):
                clock.submit(flow.block).result(PATIENCE)
        assert clock.submit(Flow.range(3).sum().block).result(PATIENCE) == 3, "what does not need it may be waited for"


def test_waiting_inside_a_task_of_virtual_time_or_of_a_trampoline_is_refused() -> None:
    clock, here = VirtualTimeExecutor(), TrampolineExecutor()
    virtual = clock.submit(Flow.timer(1, clock=clock).block)
    clock.advance(2)
    with pytest.raises(RuntimeError, match="which the flow needs for `timer"):
        virtual.result(PATIENCE)
    with pytest.raises(RuntimeError, match="which the flow needs"):
        here.submit(Flow.range(3).publish_on(here).block).result(PATIENCE)


def test_waiting_on_the_event_loops_thread_is_refused() -> None:
    inner = Flow.range(2).flat_map(plus)

    async def waits(n: int) -> Any:
        return inner.to_list().block(timeout=5)

    with pytest.raises(RuntimeError, match="which the flow needs for `flat_map"):
        Flow.range(1).flat_map(waits).block(timeout=PATIENCE)

    async def on_a_loop_of_theirs() -> Any:
        return Flow.from_future(asyncio.get_running_loop().create_future()).block(timeout=5)

    with pytest.raises(RuntimeError, match="which the flow needs for `from_future"):
        asyncio.run(on_a_loop_of_theirs())


def test_what_is_refused_says_which_flow_waits_for_which_thread() -> None:
    with ThreadPoolExecutor(1, "mine") as pool:
        flow = Flow.range(3).map_parallel(str, pool, concurrency=2).map(len)
        with pytest.raises(RuntimeError) as raised:
            pool.submit(flow.block).result(PATIENCE)
        text = str(raised.value)
        for part in (
            "block:",
            "mine_0",
            "ThreadPoolExecutor(mine, 1 workers)",
            "`map_parallel(str, 2)`",
            f"`{flow}`",
            "blocking_allowed",
        ):
            assert part in text


def test_what_is_allowed_is_not_refused() -> None:
    def total(pool: Executor) -> int | None:
        with blocking_allowed():
            return Flow.range(4).map_parallel(lambda n: n, pool).sum().block(timeout=PATIENCE)

    with ThreadPoolExecutor(2) as pool:
        assert pool.submit(total, pool).result(PATIENCE) == 6


# -- a timeout says what it waited for ------------------------------------------------------------------------


T = TypeVar("T")


class Limits:
    """Lets the limit of a sink begin when the sink has so many elements: on a busy machine it would be over before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.come_to: Callable[[int], bool] = lambda came: True
        sinks: list[Any] = []
        wait_until_done = waiting.Wait.until

        class Noted(terminal._Last[T]):
            def __init__(self, wait: waiting.Wait | None = None) -> None:
                super().__init__(wait)
                sinks.append(self)

        def begin(wait: waiting.Wait, future: Any, seconds: float | None) -> None:
            wait_until(lambda: self.come_to(sinks[-1].number))
            wait_until_done(wait, future, seconds)

        monkeypatch.setattr(terminal, "_Last", Noted)
        monkeypatch.setattr(waiting.Wait, "until", begin)


def test_a_timeout_says_which_flow_how_far_and_what_it_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, limits = threading.Event(), Limits(monkeypatch)
    inside: list[int] = []

    def slow(n: int) -> int:
        if n == 3:
            inside.append(n)
            gate.wait(PATIENCE)
        return n

    async def never(n: int) -> None:
        await asyncio.sleep(PATIENCE)

    def there(flow: Flow[Any], came: int) -> bool:
        """The three elements before the one that is held have come, but where a list is made of all."""
        return "slow" not in str(flow) or (inside == [3] and came == (0 if "to_list" in str(flow) else 3))

    with ThreadPoolExecutor(9, "nine") as pool, ScheduledExecutor() as clock:
        nine = "ThreadPoolExecutor(nine, 9 workers)"
        flow = Flow.range(9).subscribe_on(pool).map(slow)
        waits: dict[Flow[Any], tuple[str, ...]] = {
            flow: ("`range(9) map(slow)`", "3 elements had come", "map(slow)", f"under way on {nine}"),
            flow.publish_on(pool): ("3 elements had come", "map(slow)", f"under way on {nine}"),
            flow.retry(2).to_list(): ("0 elements had come", "`retry(2)`", "map(slow)", f"under way on {nine}"),
            Flow.range(4).map_parallel(slow, pool, concurrency=2): ("`map_parallel(slow, 2)`", f"1 calls on {nine}"),
            Flow.timer(99, clock=clock): ("`timer(99 s)`", "a timer of ScheduledExecutor"),
            Flow.just(1).flat_map(never): ("`flat_map(", "1 calls on the event loop of coroutines"),
            Flow.never(): ("`never()`", "a source that has no element"),
        }
        try:
            for flow, parts in waits.items():
                inside.clear()
                limits.come_to = partial(there, flow)
                with pytest.raises(TimeoutError) as raised:
                    flow.block(timeout=0.01)
                for part in ("block:", "had not ended in 0.01 s", *parts):
                    assert part in str(raised.value)
            inside.clear()
            limits.come_to = lambda _: inside == [3]
            with pytest.raises(TimeoutError, match=r"run: `range\(9\) map\(slow\)` had not ended"):
                Flow.range(9).subscribe_on(pool).map(slow).run(timeout=0.01)
        finally:
            gate.set()


def test_a_timeout_that_the_flow_ended_with_is_raised_as_it_is() -> None:
    with pytest.raises(TimeoutError, match=r"^of the flow itself$"):
        Flow.error(TimeoutError("of the flow itself")).block(timeout=PATIENCE)


# -- a for loop -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefetch", [1, 3])
def test_a_loop_asks_for_no_more_than_its_prefetch(prefetch: int) -> None:
    source = Numbers()
    with ThreadPoolExecutor(1) as pool:
        elements = Flow.from_supplier(lambda: source).subscribe_on(pool).iterate(prefetch=prefetch)
        assert next(elements) == 0
        wait_until(lambda: source.pulled >= prefetch)
        pool.submit(int).result(PATIENCE)
        assert source.pulled <= 1 + prefetch
        elements.close()

        async def main() -> None:
            async with contextlib.aclosing(
                Flow.from_supplier(lambda: later).subscribe_on(pool).iterate_async(prefetch=prefetch)
            ) as them:
                assert await anext(them) == 0
                await asyncio.get_running_loop().run_in_executor(pool, int)
                assert later.pulled <= 1 + prefetch

        later = Numbers()
        asyncio.run(main())


@pytest.mark.parametrize("loop", [Flow.iterate, Flow.iterate_async])
@pytest.mark.parametrize(("prefetch", "error"), [(0, ValueError), (True, TypeError), ("a", TypeError)])
def test_a_prefetch_that_is_none_is_refused(loop: Any, prefetch: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="prefetch"):
        loop(Flow.range(3), prefetch=prefetch)


def test_a_kill_switch_that_is_late_fails_a_loop() -> None:
    clock, switch, begun, hold = VirtualTimeExecutor(), KillSwitch(), threading.Event(), threading.Event()

    def loops() -> None:
        for _ in Flow.range(9).kill_switch(switch):
            begun.set()
            hold.wait(PATIENCE)

    with ThreadPoolExecutor(1) as pool:
        looping = pool.submit(loops)
        try:
            assert begun.wait(PATIENCE)
            over = switch.throw(5, clock=clock)
            clock.advance(5)
            assert not over.done(), "the loop is still at its element"
        finally:
            hold.set()
        with pytest.raises(TimeoutError, match="kill_switch"):
            looping.result(PATIENCE)
        assert over.result(PATIENCE) is None


# -- a queue --------------------------------------------------------------------------------------------------


class Bounded(queue.Queue[Any]):
    """Says when a thread waits for room."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.waits = threading.Event()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        if block and self.full():
            self.waits.set()
        super().put(item, block, timeout)


def test_a_cancel_does_not_wait_for_a_queue_that_is_full_while_the_flow_does() -> None:
    full = Bounded(2)
    with ThreadPoolExecutor(1) as pool:
        future = Flow.range(100).subscribe_on(pool).to_queue(full, end="end")
        assert full.waits.wait(PATIENCE)
        assert future.cancel(), "it returns, though there is no room"
        assert [full.get(timeout=PATIENCE) for _ in range(4)] == [0, 1, 2, "end"]
    assert full.empty()


@pytest.mark.usefixtures("no_thread_left")
def test_a_cancel_does_not_wait_for_a_queue_that_is_full_while_nothing_is_taken() -> None:
    full = Bounded(1)
    full.put("theirs")
    future = Flow.never().to_queue(full, end="end")
    assert future.cancel()
    assert [full.get(timeout=PATIENCE) for _ in range(2)] == ["theirs", "end"]
    wait_until(lambda: not any(thread.name == "reactive-end" for thread in threading.enumerate()))


def test_a_cancel_puts_the_end_at_once_where_there_is_room() -> None:
    room = queue.SimpleQueue[Any]()
    future = Flow.just(1).concat_with(Flow.never()).to_queue(room, end="end")
    assert future.cancel()
    assert [room.get_nowait() for _ in range(2)] == [1, "end"]
    assert room.empty()


def test_a_queue_that_refuses_ends_the_flow(dropped: list[hooks.Dropped]) -> None:
    class Broken:
        def put(self, element: Any) -> None:
            raise OSError("no disk")

    source = Numbers()
    with pytest.raises(OSError, match="no disk"):
        Flow.from_supplier(lambda: source).to_queue(Broken()).result(PATIENCE)
    assert source.closed == 1
    assert [drop.reason for drop in dropped] == ["to_queue: the end could not be put"]


def test_the_end_of_a_queue_comes_before_the_future_is_done_and_after_an_error_as_well() -> None:
    room = queue.SimpleQueue[Any]()
    future = Flow.just(1).concat_with(Flow.error(OSError("gone"))).to_queue(room, end="end")
    with pytest.raises(OSError, match="gone"):
        future.result(PATIENCE)
    assert [room.get_nowait() for _ in range(2)] == [1, "end"]


# -- what came before an error --------------------------------------------------------------------------------


def divided(n: int) -> float:
    return 12 / (n - 5)


@pytest.mark.parametrize("shape", ["a task", "a chunk", "a chunk unordered", "a chunk in processes"])
def test_what_was_made_before_an_error_comes_before_it(shape: str) -> None:
    sink = Sink()
    with ThreadPoolExecutor(1) as pool, ProcessPoolExecutor(1) as processes:
        flow: Flow[Any]
        if shape == "a task":
            task = Flow.just(4).end_with(5).map(divided).subscribe_on(pool)
            flow = Flow.just(9).flat_map(lambda _: task)
        else:
            executor: Executor = processes if shape.endswith("processes") else pool
            ordered = not shape.endswith("unordered")
            flow = Flow.just(4, 5, 6).map_parallel(divided, executor, concurrency=1, ordered=ordered, chunk=3)
        flow.subscribe(sink)
        assert isinstance(sink.wait().error, ZeroDivisionError)
        assert sink.elements == [-12.0]
        if shape != "a task":
            assert any("element 2 of a chunk of 3: 5" in note for note in sink.error.__notes__)


def test_what_was_made_before_an_error_waits_for_demand_and_the_error_behind_it() -> None:
    sink = Sink(demand=1)
    with ThreadPoolExecutor(1) as pool:
        Flow.just(3, 4, 5).map_parallel(divided, pool, concurrency=1, chunk=3).subscribe(sink)
        sink.wait_for(1)
        sink.subscription.request(1)
        assert isinstance(sink.wait().error, ZeroDivisionError)
    assert sink.elements == [-6.0, -12.0]


# -- using ----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def bad_exit() -> Iterator[int]:
    try:
        yield 1
    finally:
        raise OSError("exit")


def the_one_error(dropped: list[hooks.Dropped]) -> BaseException | None:
    (error,) = [drop.error for drop in dropped if drop.error is not None]
    return error


def test_a_resource_that_cannot_be_left_at_a_cancel_is_reported_and_all_else_is_closed(
    dropped: list[hooks.Dropped],
) -> None:
    sources = [Numbers(), Numbers(), Numbers()]
    inner, before, after = (Flow.from_supplier(lambda source=entry: source) for entry in sources)  # type: ignore[misc]
    sink = Sink(demand=6)
    Flow.merge(before, Flow.using(bad_exit, lambda _: inner), after).subscribe(sink)
    sink.subscription.cancel()  # 3.15: returns normally
    assert [source.closed for source in sources] == [1, 1, 1]
    assert isinstance(the_one_error(dropped), OSError)


@pytest.mark.parametrize("on_pool", [False, True])
def test_a_resource_that_cannot_be_left_does_not_undo_an_end(on_pool: bool, dropped: list[hooks.Dropped]) -> None:
    with ThreadPoolExecutor(1) as pool:
        flow = Flow.using(bad_exit, lambda _: Flow.range(9)).take(2)
        flow = flow.subscribe_on(pool) if on_pool else flow
        assert flow.to_list().to_future().result(PATIENCE) == [0, 1]
        assert list(flow) == [0, 1]
    assert [type(drop.error) for drop in dropped if drop.error] == [OSError, OSError]


def test_the_errors_of_a_listener_at_the_end_are_reported_each(dropped: list[hooks.Dropped]) -> None:
    def broken(*way: Any) -> None:
        raise OSError(f"broken {way}")

    class Broken(Listener):
        def on_cancel(self) -> None:
            broken()

        def on_finally(self, way: Any) -> None:
            broken(way)

    sink = Sink(demand=1)
    Flow.range(5).tap(Broken()).subscribe(sink)
    sink.subscription.cancel()
    assert [str(drop.error) for drop in dropped if drop.error] == ["broken ()", "broken ('cancel',)"]


def test_messages_call_an_executor_by_its_name() -> None:
    """The address of a pool tells its user nothing."""
    gate = threading.Event()
    with ThreadPoolExecutor(1, "cursor") as pool:
        waiting = Flow.range(3).map(lambda n: gate.wait(PATIENCE) and n)
        flows = {
            "under way on": waiting.subscribe_on(pool),
            "calls on": Flow.range(9).map_parallel(lambda n: gate.wait(PATIENCE), pool),
            "a task on": Flow.range(1).flat_map(lambda n: Flow.just(n).subscribe_on(pool)),
        }
        for text, flow in flows.items():
            with pytest.raises(TimeoutError, match=rf"{text} ThreadPoolExecutor\(cursor, 1 workers\)"):
                flow.block(timeout=0.01)
        gate.set()
        with pytest.raises(RuntimeError, match=r"belongs to ThreadPoolExecutor\(cursor, 1 workers\)"):
            pool.submit(lambda: Flow.range(3).publish_on(pool).block(timeout=PATIENCE)).result()
    for refused in flows.values():
        with pytest.raises(RejectedError, match=r"ThreadPoolExecutor\(cursor, 1 workers\) refused"):
            refused.block(timeout=PATIENCE)


def test_a_flow_that_ends_at_the_moment_of_the_timeout_has_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends when the time is up, before it is cancelled."""
    future: Future[int] = Future()

    def looking(running: object) -> str:
        future.set_result(7)
        return "a look"

    monkeypatch.setattr("reactive_runtime._operators.sinks.terminal.awaited_by", looking)
    assert Flow.from_future(future).block(timeout=0.01) == 7
