"""The recorder: every signal, in both directions, with its beginning and its end."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sinks import PATIENCE, Sink

from reactive_runtime import MAX_DEMAND, Flow
from reactive_runtime.testing import Chunk, Record, Recorder, Signal
from reactive_runtime.testing import recorder as module


def recorded(flow: Any, sink: Any, **facts: Any) -> list[Record]:
    recorder = Recorder("test")
    recorder.wrap(flow, "scenario", **facts).subscribe(sink)
    return recorder.records()


def test_all_signals_are_recorded_in_order_with_their_nesting() -> None:
    records = recorded(Flow.range(2), Sink(demand=5))
    assert [it.signal for it in records] == [
        "subscribe",
        "on_subscribe",
        "request",
        "on_next",
        "on_next",
        "on_complete",
    ]
    subscribe, on_subscribe, request, first, *_ = records
    assert subscribe.begin < on_subscribe.begin < request.begin
    assert request.end is not None
    assert on_subscribe.end is not None
    assert request.end < on_subscribe.end < first.begin
    assert (request.n, first.value) == (5, 0)


def test_tickets_are_unique_and_times_do_not_run_backwards() -> None:
    records = recorded(Flow.range(100), Sink())
    tickets = [ticket for it in records for ticket in (it.begin, it.end)]
    assert len(set(tickets)) == len(tickets)
    assert [it.begin_ns for it in records] == sorted(it.begin_ns for it in records)


@pytest.mark.parametrize(
    ("element", "value"),
    [(7, 7), (2**63 - 1, 2**63 - 1), (2**63, hash(2**63)), ("x", hash("x")), ([], 0), (True, hash(True))],
)
def test_an_element_is_kept_if_it_is_an_int_of_64_bits_and_else_its_hash(element: Any, value: int) -> None:
    records = recorded(Flow.just(element), Sink())
    assert [it.value for it in records if it.signal == "on_next"] == [value]


@pytest.mark.parametrize(("n", "kept"), [(3, 3), (0, 0), (-1, -1), (MAX_DEMAND, MAX_DEMAND), ("1", None), (True, None)])
def test_a_request_is_kept_with_its_argument_where_that_is_an_int(n: Any, kept: int | None) -> None:
    sink = Sink(demand=0)
    recorder = Recorder()
    recorder.wrap(Flow.range(3)).subscribe(sink)
    sink.subscription.request(n)
    assert [it.n for it in recorder.records() if it.signal == "request"] == [kept]


def test_what_a_call_raises_is_recorded_and_raised_on() -> None:
    class Raising:
        def subscribe(self, subscriber: Any, /) -> None:
            subscriber.on_subscribe(self)
            raise OSError("no")

        def request(self, n: int, /) -> None:
            raise ValueError("never")

        def cancel(self) -> None: ...

    recorder = Recorder()
    with pytest.raises(ValueError, match="never"):
        recorder.wrap(Raising()).subscribe(Sink())
    errors = {it.signal: it.error for it in recorder.records()}
    assert errors == {
        "request": "raised ValueError('never')",
        "on_subscribe": "raised ValueError('never')",
        "subscribe": "raised ValueError('never')",
    }


def test_the_error_of_a_stream_is_recorded() -> None:
    records = recorded(Flow.error(OSError("no disk")), Sink())
    assert records[-1].signal == "on_error"
    assert records[-1].error == "OSError('no disk')"


def test_a_call_that_has_not_returned_is_recorded_without_an_end() -> None:
    inside, leave = threading.Event(), threading.Event()

    def stay(sink: Sink, element: int) -> None:
        inside.set()
        leave.wait(PATIENCE)

    recorder = Recorder()
    publisher = recorder.wrap(Flow.range(1))
    thread = threading.Thread(target=lambda: publisher.subscribe(Sink(then=stay)))
    thread.start()
    assert inside.wait(PATIENCE)
    open_calls = {it.signal for it in recorder.records() if it.end is None}
    assert open_calls == {"on_next", "subscribe"}
    leave.set()
    thread.join(PATIENCE)


def test_many_threads_lose_no_record() -> None:
    recorder = Recorder()
    publisher = recorder.wrap(Flow.range(1_000))
    threads = [threading.Thread(target=lambda: publisher.subscribe(Sink())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    records = recorder.records()
    assert len(records) == 8 * 1_004
    assert len({it.thread for it in records}) >= 1
    assert {it.subscription for it in records} == set(range(8))


def test_full_chunks_go_to_the_sink_and_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 100)
    chunks: list[Chunk] = []
    recorder = Recorder(sink=chunks.append)
    recorder.wrap(Flow.range(1_000)).subscribe(Sink())
    assert [len(chunk.rows) for chunk in chunks] == [100] * 10
    recorder.flush()
    assert sum(len(chunk.rows) for chunk in chunks) == 1_004


def test_settle_marks_every_subscription() -> None:
    recorder = Recorder()
    publisher = recorder.wrap(Flow.range(1))
    for _ in range(3):
        publisher.subscribe(Sink())
    recorder.settle()
    settled = [it.subscription for it in recorder.records() if it.signal == Signal.SETTLED]
    assert settled == [0, 1, 2]


def test_spec109_subscribing_none_through_the_recorder_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        Recorder().wrap(Flow.range(1)).subscribe(None)  # type: ignore[arg-type]
