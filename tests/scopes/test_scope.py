"""Scopes: flows end with their block, one that fails cancels the others, and the block raises what they raised."""

# ruff: noqa: PT012  # leaving the block of a scope, or of `no_blocking`, raises

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Numbers, Sink, wait_until

from reactive_runtime import Flow, hooks
from reactive_runtime.executors import VirtualTimeExecutor
from reactive_runtime.hot import PublishProcessor
from reactive_runtime.scopes import Running, Scope, scope


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4, thread_name_prefix="io") as made:
        yield made


def broken(n: int) -> int:
    raise OSError(f"broken at {n}")


# -- leaving the block -----------------------------------------------------------------------------------------------


def test_leaving_the_block_waits_for_all_flows(pool: ThreadPoolExecutor) -> None:
    go_on, elements = threading.Event(), list[int]()

    def slow(n: int) -> int:
        assert go_on.wait(PATIENCE)
        return n

    with scope() as s:
        running = s.start(Flow.range(3).subscribe_on(pool).map(slow), elements.append)
        s.start(Flow.range(2).publish_on(pool))
        assert not running.future.done()
        go_on.set()
    assert elements == [0, 1, 2]
    assert running.future.result(0) == 2


def test_leaving_waits_for_a_call_whose_flow_was_cancelled(pool: ThreadPoolExecutor) -> None:
    began, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def slow(n: int) -> int:
        began.set()
        assert go_on.wait(PATIENCE)
        ended.set()
        return n

    with scope() as s:
        running = s.start(Flow.range(3).map_parallel(slow, pool, concurrency=1))
        assert began.wait(PATIENCE)
        s.cancel()
        assert not running.future.done(), "a task of the flow is still at work"
        go_on.set()
    assert ended.is_set()
    assert isinstance(running.future.exception(0), CancelledError)


def test_an_empty_scope_is_left_at_once() -> None:
    with scope():
        pass


def test_a_flow_on_the_callers_thread_runs_inside_start() -> None:
    with scope() as s:
        running = s.start(Flow.range(5).sum())
        assert running.future.result(0) == 10


def test_a_subscriber_requests_for_itself(pool: ThreadPoolExecutor) -> None:
    sink = Sink(demand=2)
    with scope() as s:
        s.start(Flow.range(9).subscribe_on(pool), sink)
        sink.wait_for(2)
        assert sink.elements == [0, 1]
        sink.subscription.cancel()
    assert sink.end is None


def test_a_subscriber_gets_the_end(pool: ThreadPoolExecutor) -> None:
    sink = Sink()
    with scope() as s:
        s.start(Flow.range(3).subscribe_on(pool), sink)
    assert sink.end == ("on_complete",)


def test_a_hot_source_is_a_subscriber_too(pool: ThreadPoolExecutor) -> None:
    hot: PublishProcessor[int] = PublishProcessor()
    with scope() as s:
        elements = s.start(hot.to_list())
        s.start(Flow.range(3).subscribe_on(pool), hot)
    assert elements.future.result(0) == [0, 1, 2]


def test_a_flow_may_start_another_one_while_the_block_is_left(pool: ThreadPoolExecutor) -> None:
    started: list[Running[Any]] = []
    with scope() as s:
        s.start(Flow.range(2).subscribe_on(pool), lambda _: started.append(s.start(Flow.range(3).subscribe_on(pool))))
    assert [running.future.result(0) for running in started] == [2, 2]


def test_many_threads_start_flows_in_one_scope(pool: ThreadPoolExecutor) -> None:
    elements: list[int] = []
    with scope() as s:
        threads = [
            threading.Thread(target=s.start, args=(Flow.range(3).publish_on(pool), elements.append)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(elements) == sorted([0, 1, 2] * 8)


def test_a_nested_scope_ends_before_the_outer_one(pool: ThreadPoolExecutor) -> None:
    with scope() as outer:
        running = outer.start(Flow.never().publish_on(pool))
        with scope() as inner:
            within = inner.start(Flow.range(3).publish_on(pool))
        assert within.future.done()
        assert not running.future.done()
        outer.cancel()


def test_a_scope_in_a_flow_of_another_scope_is_left(pool: ThreadPoolExecutor) -> None:
    def total(n: int) -> int:
        with scope() as inner:
            return inner.start(Flow.range(n).sum()).future.result(PATIENCE) or 0

    with scope() as outer:
        totals = outer.start(Flow.range(4).subscribe_on(pool).map(total).to_list())
    assert totals.future.result(0) == [0, 0, 1, 3]


def test_a_shared_source_outlives_the_scope_that_connects_it(pool: ThreadPoolExecutor) -> None:
    shared = Flow.generate(0, lambda n: (n, n + 1)).subscribe_on(pool).share()
    outside, end = Sink(), PublishProcessor[str]()
    with scope() as s:
        within = s.start(shared.take_until(end))
        shared.subscribe(outside)
        outside.wait_for(10)
        end.emit("now")
    assert within.future.done()
    outside.wait_for(10)
    outside.subscription.cancel()


# -- failures --------------------------------------------------------------------------------------------------------


def test_one_flow_that_fails_cancels_the_others(pool: ThreadPoolExecutor) -> None:
    numbers, others = Numbers(), list[Running[Any]]()
    with pytest.raises(ExceptionGroup) as raised, scope() as s:
        others.append(s.start(Flow.from_iterable(numbers).subscribe_on(pool)))
        others.append(s.start(Flow.never()))
        s.start(Flow.range(3).publish_on(pool).map(broken))
    assert [str(error) for error in raised.value.exceptions] == ["broken at 0"]
    assert "in map(broken), assembled at" in raised.value.exceptions[0].__notes__[0]
    assert [type(other.future.exception(0)) for other in others] == [CancelledError, CancelledError]
    assert numbers.closed == 1


def test_an_error_of_the_function_fails_the_flow(pool: ThreadPoolExecutor) -> None:
    started: list[Running[Any]] = []
    with pytest.raises(ExceptionGroup) as raised, scope() as s:
        started.append(s.start(Flow.range(3).subscribe_on(pool), broken))
    assert "in start(broken), assembled at" in raised.value.exceptions[0].__notes__[0]
    assert isinstance(started[0].future.exception(0), OSError)


def test_a_subscriber_that_raises_fails_the_scope(pool: ThreadPoolExecutor) -> None:
    def raises(*_: Any) -> None:
        raise OSError("the subscriber is broken")

    with hooks.captured(), pytest.raises(ExceptionGroup) as raised, scope() as s:
        s.start(Flow.never())
        s.start(Flow.range(3).subscribe_on(pool), Sink(then=raises))
    assert [str(error) for error in raised.value.exceptions] == ["the subscriber is broken"]


def test_an_error_that_the_flow_handles_is_none_of_the_scope(pool: ThreadPoolExecutor) -> None:
    with scope() as s:
        running = s.start(Flow.range(3).publish_on(pool).map(broken).on_error_return(lambda _: 7))
    assert running.future.result(0) == 7


def test_an_error_of_the_block_cancels_all(pool: ThreadPoolExecutor) -> None:
    started: list[Running[Any]] = []
    with pytest.raises(ExceptionGroup) as raised, scope() as s:
        started.append(s.start(Flow.never().publish_on(pool)))
        raise OSError("the block is broken")
    assert [str(error) for error in raised.value.exceptions] == ["the block is broken"]
    assert started[0].future.done()


def test_errors_of_the_block_and_of_flows_come_together(pool: ThreadPoolExecutor) -> None:
    with pytest.raises(ExceptionGroup) as raised, scope() as s:
        running = s.start(Flow.range(3).publish_on(pool).map(broken))
        wait_until(running.future.done)
        raise ValueError("the block is broken")
    assert [type(error) for error in raised.value.exceptions] == [ValueError, OSError]


def test_an_exit_of_the_block_goes_on_as_it_is(pool: ThreadPoolExecutor) -> None:
    started: list[Running[Any]] = []
    with pytest.raises(KeyboardInterrupt), scope() as s:
        started.append(s.start(Flow.never().publish_on(pool)))
        raise KeyboardInterrupt
    assert started[0].future.done()


def test_an_exit_of_a_flow_on_this_thread_goes_up() -> None:
    def leaves(_: int) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit), hooks.captured(), scope() as s:
        s.start(Flow.range(3), leaves)


# -- cancel, pause ---------------------------------------------------------------------------------------------------


def test_cancel_of_a_handle_leaves_the_others(pool: ThreadPoolExecutor) -> None:
    with scope() as s:
        endless = s.start(Flow.generate(0, lambda n: (n, n + 1)).subscribe_on(pool))
        other = s.start(Flow.range(3).subscribe_on(pool).to_list())
        endless.cancel()
        endless.cancel()
    assert isinstance(endless.future.exception(0), CancelledError)
    assert other.future.result(0) == [0, 1, 2]


def test_a_paused_scope_demands_nothing_and_resumes(pool: ThreadPoolExecutor) -> None:
    numbers, elements = Numbers(stop=5), list[int]()
    with scope() as s:
        s.pause()
        assert s.is_paused()
        running = s.start(Flow.from_iterable(numbers).subscribe_on(pool).map(lambda n: n), elements.append)
        pool.submit(int).result(PATIENCE)
        assert not running.future.done()
        assert numbers.pulled == 0
        s.resume()
        assert not s.is_paused()
    assert elements == list(range(5))


def test_a_pause_in_the_middle_holds_back_only_the_source(pool: ThreadPoolExecutor) -> None:
    hot: PublishProcessor[int] = PublishProcessor(capacity=8)
    elements: list[int] = []
    with scope() as s:
        s.start(hot, elements.append)
        hot.emit(0)
        s.pause()
        hot.emit(1)
        assert elements == [0]
        s.resume()
        assert elements == [0, 1]
        hot.on_complete()


# -- bad input -------------------------------------------------------------------------------------------------------


def test_a_scope_has_one_block() -> None:
    s = scope()
    with s, pytest.raises(RuntimeError, match="entered before"), s:
        pass
    with pytest.raises(RuntimeError, match="entered before"), s:
        pass


def test_start_before_the_block_and_after_the_end_says_why() -> None:
    s = scope()
    with pytest.raises(RuntimeError, match=r"`range\(3\)` is not started: its block has not been entered"):
        s.start(Flow.range(3))
    with s:
        pass
    with pytest.raises(RuntimeError, match=r"`range\(3\)` is not started: the scope has ended"):
        s.start(Flow.range(3))


def test_start_after_a_failure_says_why() -> None:
    with pytest.raises(ExceptionGroup), scope() as s:
        s.start(Flow.error(OSError()))
        with pytest.raises(RuntimeError, match="a flow of it has failed with OSError"):
            s.start(Flow.range(3))


@pytest.mark.parametrize("flow", [None, 3, "text", [1, 2], int])
def test_start_refuses_what_is_no_publisher(flow: Any) -> None:
    with scope() as s, pytest.raises(TypeError, match=r"Scope.start: flow must be a publisher"):
        s.start(flow)


@pytest.mark.parametrize("on_next", [3, "text", [1]])
def test_start_refuses_what_can_not_be_called(on_next: Any) -> None:
    with scope() as s, pytest.raises(TypeError, match=r"Scope.start: on_next"):
        s.start(Flow.range(3), on_next)


# -- asyncio ---------------------------------------------------------------------------------------------------------


def test_an_async_block_waits_on_the_event_loop(pool: ThreadPoolExecutor) -> None:
    async def later(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    async def main() -> list[int] | None:
        async with scope() as s:
            running = s.start(Flow.range(3).subscribe_on(pool).map_parallel(later, concurrency=2).to_list())
        return running.future.result(0)

    assert sorted(asyncio.run(main()) or ()) == [1, 2, 3]


def test_a_flow_that_fails_cancels_an_async_block() -> None:
    async def main() -> int:
        hot: PublishProcessor[int] = PublishProcessor()
        task = asyncio.current_task()
        assert task is not None
        with pytest.raises(ExceptionGroup) as raised:
            async with scope() as s:
                s.start(hot)
                asyncio.get_running_loop().call_soon(hot.on_error, OSError("broken"))
                await asyncio.Event().wait()
        assert [type(error) for error in raised.value.exceptions] == [OSError]
        return task.cancelling()

    assert asyncio.run(asyncio.wait_for(main(), PATIENCE)) == 0


def test_cancelling_the_task_cancels_its_scope() -> None:
    running: list[Running[Any]] = []

    async def main() -> None:
        async with scope() as s:
            running.append(s.start(Flow.never()))
            await asyncio.Event().wait()

    async def cancelled() -> None:
        task = asyncio.create_task(main())
        while not running:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancelled(), PATIENCE))
    assert running[0].future.done()


def test_cancelling_a_task_that_waits_at_the_end_cancels_its_scope() -> None:
    made: list[Scope] = []

    async def main() -> None:
        async with scope() as s:
            made.append(s)
            s.start(Flow.never())

    async def cancelled() -> None:
        task = asyncio.create_task(main())
        while not (made and made[0]._members._waits):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancelled(), PATIENCE))


def test_a_scope_works_in_virtual_time() -> None:
    clock, elements = VirtualTimeExecutor(), list[int]()
    with scope() as s:
        s.start(Flow.interval(1, clock=clock).take(3), elements.append)
        clock.advance(3)
    assert elements == [0, 1, 2]
