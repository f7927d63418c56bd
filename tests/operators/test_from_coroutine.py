"""`from_coroutine`: when the function is called, what a cancel does, and what is no coroutine function."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sinks import PATIENCE, Sink

from reactive_runtime import Flow, hooks
from reactive_runtime._core.runtime import eventloop


async def seven() -> int:
    return 7


def test_each_subscriber_has_a_call_when_it_demands_the_element() -> None:
    calls: list[int] = []

    async def call() -> int:
        calls.append(1)
        return len(calls)

    flow, sink = Flow.from_coroutine(call), Sink(0)
    flow.subscribe(sink)
    assert calls == []
    assert flow.block(timeout=PATIENCE) == 1
    sink.subscription.request(1)
    assert sink.wait().elements == [2]


def test_a_cancel_cancels_the_coroutine() -> None:
    begun, cancelled, sink = threading.Event(), threading.Event(), Sink()

    async def waits() -> int:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return 0

    with hooks.captured() as drops:
        Flow.from_coroutine(waits).subscribe(sink)
        assert begun.wait(PATIENCE)
        sink.subscription.cancel()
        assert cancelled.wait(PATIENCE)
        assert eventloop.wait_until_ended(PATIENCE)
    assert (sink.end, list(drops)) == (None, [])


def test_the_hook_gets_a_result_that_comes_in_spite_of_a_cancel() -> None:
    begun, discarded, sink = threading.Event(), list[int](), Sink()

    async def stubborn() -> int:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return 7
        return 0

    with hooks.captured() as drops:
        Flow.from_coroutine(stubborn).do_on_discard(discarded.append).subscribe(sink)
        assert begun.wait(PATIENCE)
        sink.subscription.cancel()
        assert eventloop.wait_until_ended(PATIENCE)
    assert [drop.element for drop in drops] == discarded == [7]


def test_a_function_may_return_another_awaitable() -> None:
    def later() -> asyncio.Future[int]:
        future = asyncio.get_running_loop().create_future()
        future.get_loop().call_soon(future.set_result, 7)
        return future

    assert Flow.from_coroutine(later).block(timeout=PATIENCE) == 7


def test_a_coroutine_in_place_of_its_function_is_refused() -> None:
    begun: Any = seven()
    with pytest.raises(
        TypeError, match=r"from_coroutine: a coroutine function is needed, not coroutine.*without calling"
    ):
        Flow.from_coroutine(begun)
    begun.close()


def test_an_asynchronous_generator_function_is_refused() -> None:
    async def several() -> AsyncIterator[int]:
        yield 1

    with pytest.raises(TypeError, match="several is an asynchronous generator function: use from_async"):
        Flow.from_coroutine(several)  # type: ignore[arg-type]


def test_a_function_that_returns_no_awaitable_fails_the_flow() -> None:
    function: Any = int
    with pytest.raises(TypeError, match=r"from_coroutine\(int\): the function must return an awaitable, not int"):
        Flow.from_coroutine(function).block(timeout=PATIENCE)


def test_a_coroutine_that_was_awaited_fails_the_second_subscriber() -> None:
    once = seven()
    flow = Flow.from_coroutine(lambda: once)
    assert flow.block(timeout=PATIENCE) == 7
    with pytest.raises(RuntimeError, match="already awaited") as raised:
        flow.block(timeout=PATIENCE)
    assert any(note.startswith("in from_coroutine(lambda), ") for note in raised.value.__notes__)
