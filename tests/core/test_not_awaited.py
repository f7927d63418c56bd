"""Coroutine functions are refused where no thread awaits them: their elements would be lost without an error."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reactive_runtime import Flow, Listener, Metrics, hooks
from reactive_runtime.subscribers import AsyncSubscriber, BaseSubscriber, BufferedSubscriber


async def awaited(*arguments: Any) -> None:
    """A caller has to await it."""


@pytest.mark.parametrize("method", ["started", "received", "failed", "completed"])
@pytest.mark.parametrize("base", [BaseSubscriber, AsyncSubscriber, BufferedSubscriber])
def test_a_subscriber_with_a_coroutine_method_is_refused(base: type[Any], method: str) -> None:
    with pytest.raises(TypeError, match=f"^Mine: {method} is a coroutine function"):
        type("Mine", (base,), {method: awaited})


def test_a_queue_whose_put_is_awaited_is_refused() -> None:
    queue: asyncio.Queue[int] = asyncio.Queue()
    with pytest.raises(TypeError, match=r"^to_queue: put of .*Queue.* is a coroutine function"):
        Flow.range(3).to_queue(queue)  # type: ignore[arg-type]
    assert queue.empty()


def test_a_handler_that_is_awaited_or_no_function_is_refused() -> None:
    before = hooks.set_handler(None)
    hooks.set_handler(before)
    with pytest.raises(TypeError, match=r"^set_handler: handler is a coroutine function"):
        hooks.set_handler(awaited)
    with pytest.raises(TypeError, match=r"^set_handler: handler must be callable, not 5"):
        hooks.set_handler(5)  # type: ignore[arg-type]
    assert hooks.set_handler(before) is before


SIGNALS = ["on_subscribe", "on_next", "on_error", "on_complete", "on_cancel", "on_finally"]


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("base", [Listener, Metrics])
def test_a_listener_with_a_coroutine_method_is_refused(base: type[Listener], signal: str) -> None:
    mine = type("Mine", (base,), {signal: awaited})
    with pytest.raises(TypeError, match=f"^tap: {signal} of Mine is a coroutine function, which no thread awaits"):
        Flow.range(3).tap(mine())
    changed = base()
    setattr(changed, signal, awaited)
    with pytest.raises(TypeError, match=f"^tap: {signal} of {base.__name__} is a coroutine function"):
        Flow.range(3).tap(changed)


def test_every_signal_of_a_listener_is_looked_at() -> None:
    assert {name for name in vars(Listener) if name.startswith("on_")} == set(SIGNALS)


def test_a_publisher_whose_subscribe_is_awaited_is_refused() -> None:
    mine = type("Mine", (), {"subscribe": awaited})
    with pytest.raises(TypeError, match=r"^from_publisher: subscribe of Mine is a coroutine function"):
        Flow.from_publisher(mine())
