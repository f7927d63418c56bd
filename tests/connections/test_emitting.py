"""What is pushed: an emitter's buffer, submitters that wait for room, the callbacks of a future."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from searching import holds_with_few_preemptions
from sinks import PATIENCE, Sink

from connections.parties import Here, Listener
from reactive_runtime import Emitter, Flow, hooks
from reactive_runtime.executors import TrampolineExecutor
from reactive_runtime.explore import explore
from reactive_runtime.hot import EmitResult, PublishProcessor, SubmissionPublisher

# -- create --------------------------------------------------------------------------------------------------------


def test_a_subscriber_that_cancels_inside_on_subscribe_is_not_given_to_the_function() -> None:
    called: list[Any] = []
    Flow.create(called.append).subscribe(Listener(1, cancels_in=0))

    def made() -> Flow[Any]:
        called.append(1)
        return Flow.empty()

    Flow.defer(made).subscribe(Listener(1, cancels_in=0))
    assert called == []


@pytest.mark.parametrize("capacity", [1, 2, 3, 8])
def test_the_newest_are_kept_while_the_subscriber_is_at_work(capacity: int, dropped: list[hooks.Dropped]) -> None:
    emitters: list[Emitter[int]] = []

    def while_at_work(element: int) -> None:
        if element == 0:
            for n in range(1, 21):
                assert emitters[0].emit(n) is EmitResult.OK

    listener = Listener(100, then=while_at_work)
    Flow.create(emitters.append, overflow="oldest", capacity=capacity).subscribe(listener)
    emitters[0].emit(0)
    assert listener.elements == [0, *range(21 - capacity, 21)]
    assert [item.element for item in dropped] == list(range(1, 21 - capacity))


def test_what_has_been_handed_on_leaves_room_for_another() -> None:
    emitters: list[Emitter[int]] = []
    listener = Listener(3, then=lambda n: emitters[0].emit(n + 1) if n < 4 else None)
    Flow.create(emitters.append, overflow="newest", capacity=1).subscribe(listener)
    emitters[0].emit(0)
    assert listener.elements == [0, 1, 2]
    assert emitters[0].demand() == -1


class Newest:
    """Two threads emit into a buffer that keeps the newest: none is refused, and what is emitted last is there."""

    def __init__(self) -> None:
        self.before = hooks.set_handler(lambda dropped: None)
        self.emitters: list[Emitter[int]] = []
        self.listener = Listener(0)
        Flow.create(self.emitters.append, overflow="oldest", capacity=1).subscribe(self.listener)
        self.emitters[0].emit(0)

    def actor_a(self) -> None:
        assert self.emitters[0].emit(1) is EmitResult.OK

    def actor_b(self) -> None:
        assert self.emitters[0].emit(2) is EmitResult.OK

    def at_end(self) -> None:
        self.listener.subscription.request(9)
        assert self.listener.elements in ([1], [2])

    def tear_down(self) -> None:
        hooks.set_handler(self.before)


def test_in_every_schedule_the_newest_is_kept() -> None:
    explore(Newest, strategy="bounded", bound=2).assert_holds()


MANY = 1_000


def burst(emitter: Emitter[int]) -> None:
    for n in range(MANY):
        emitter.emit(n)
    emitter.complete()


@pytest.mark.parametrize("capacity", [1, 256])
def test_under_demand_without_bound_a_burst_alone_on_its_thread_needs_no_capacity(capacity: int) -> None:
    source = Flow.create(burst, capacity=capacity)
    for flow in (
        source,
        source.map(str),
        source.concat_map(Flow.just),
        source.batch(1),
        source.share(),
        source.retry(1),
    ):
        assert flow.count().block(timeout=PATIENCE) == MANY


BESIDE: dict[str, Callable[[Flow[Any], Executor], Flow[Any]]] = {
    "merge": lambda entry, pool: Flow.merge(entry, entry).count(),
    "flat_map": lambda entry, pool: Flow.range(2).flat_map(lambda _: entry).count(),
    "flat_map_sequential": lambda entry, pool: Flow.range(2).flat_map_sequential(lambda _: entry).count(),
    "zip": lambda entry, pool: Flow.zip(entry, entry).count().map(lambda n: 2 * n),
    "combine_latest": lambda entry, pool: Flow.combine_latest(entry, entry).last().map(lambda last: sum(last) + 2),
    "race": lambda entry, pool: Flow.race(entry, entry).count().map(lambda n: 2 * n),
    "map_parallel": lambda entry, pool: entry.map_parallel(abs, pool).count().map(lambda n: 2 * n),
    "subscribe_on": lambda entry, pool: entry.subscribe_on(pool).count().map(lambda n: 2 * n),
    "publish_on": lambda entry, pool: entry.publish_on(pool).count().map(lambda n: 2 * n),
}


@pytest.mark.parametrize("way", list(BESIDE))
def test_a_burst_has_room_in_a_capacity_for_all_of_it_or_waits_for_it(way: str, dropped: list[hooks.Dropped]) -> None:
    def waits(emitter: Emitter[int]) -> None:
        def emits() -> None:
            for n in range(MANY):
                while emitter.emit(n) is EmitResult.OVERFLOW:
                    turn.wait(0.0001)
            emitter.complete()

        others.submit(emits)

    turn = threading.Event()
    with ThreadPoolExecutor(2) as pool, ThreadPoolExecutor(2) as others:
        assert BESIDE[way](Flow.create(burst, capacity=MANY), pool).block(timeout=PATIENCE) == 2 * MANY
        assert BESIDE[way](Flow.create(waits, overflow="newest", capacity=8), pool).block(timeout=PATIENCE) == 2 * MANY
    assert all(drop.error is None for drop in dropped)


def test_where_there_is_no_room_the_error_says_what_to_do(dropped: list[hooks.Dropped]) -> None:
    sink = Sink(demand=0)
    Flow.create(burst, capacity=9).subscribe(sink)
    sink.subscription.request(MANY)
    assert len(sink.wait().elements) == 9
    assert isinstance(sink.error, OverflowError)
    assert "give it a capacity" in str(sink.error)
    assert any("in create(burst), assembled at" in note for note in sink.error.__notes__)


def test_all_that_is_to_be_called_at_the_end_is_called_in_order() -> None:
    emitters: list[Emitter[int]] = []
    called: list[int] = []
    with Flow.create(emitters.append).subscribe(print):
        for n in range(3):
            emitters[0].on_cancel(partial(called.append, n))
    emitters[0].on_cancel(lambda: called.append(3))
    assert called == [0, 1, 2, 3]


# -- SubmissionPublisher -------------------------------------------------------------------------------------------


def stuck(publisher: SubmissionPublisher[int], item: int) -> threading.Thread:
    """A thread that waits inside `submit`."""

    def submit() -> None:
        with suppress(RuntimeError):
            publisher.submit(item)

    before = publisher._submitted
    thread = threading.Thread(target=submit, daemon=True)
    thread.start()
    while publisher._submitted == before:
        pass
    return thread


def test_an_offer_waits_for_its_time_only_while_another_thread_waits_for_room(dropped: list[hooks.Dropped]) -> None:
    publisher: SubmissionPublisher[int] = SubmissionPublisher(TrampolineExecutor(), max_buffer=1)
    slow, fast = Listener(0), Listener(9)
    publisher.subscribe(slow)
    publisher.subscribe(fast)
    publisher.submit(1)
    thread = stuck(publisher, 2)
    results: list[int] = []
    offers = threading.Thread(
        target=lambda: results.extend([publisher.offer(3, 0.05), publisher.offer(4)]), daemon=True
    )
    offers.start()
    offers.join(PATIENCE)
    assert results == [-1, -1]
    slow.subscription.request(9)
    thread.join(PATIENCE)
    assert (slow.elements, fast.elements) == ([1, 2], [1, 2, 3, 4])
    assert [item.element for item in dropped] == [3, 4]


def test_those_who_wait_are_served_in_the_order_in_which_they_came() -> None:
    publisher: SubmissionPublisher[int] = SubmissionPublisher(TrampolineExecutor(), max_buffer=1)
    slow, fast = Listener(0), Listener(9)
    publisher.subscribe(slow)
    publisher.subscribe(fast)
    publisher.submit(1)
    threads = [stuck(publisher, n) for n in (2, 3, 4)]
    for _ in range(4):
        slow.subscription.request(1)
    for thread in threads:
        thread.join(PATIENCE)
    assert slow.elements == fast.elements == [1, 2, 3, 4]


def test_an_element_in_the_subscribers_hands_leaves_room_for_those_who_wait() -> None:
    publisher: SubmissionPublisher[int] = SubmissionPublisher(TrampolineExecutor(), max_buffer=1)
    lags: list[int] = []
    threads: list[threading.Thread] = []

    def work(n: int) -> None:
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        lags.append(publisher.estimate_maximum_lag())

    listener = Listener(0, then=work)
    publisher.subscribe(listener)
    publisher.submit(1)
    threads.append(stuck(publisher, 2))
    listener.subscription.request(2)
    assert (listener.elements, lags) == ([1, 2], [1, 0])


def test_an_item_that_is_tried_once_more_comes_after_no_later_one(dropped: list[hooks.Dropped]) -> None:
    publisher: SubmissionPublisher[int] = SubmissionPublisher(TrampolineExecutor(), max_buffer=1)
    slow, fast = Listener(0), Listener(9)
    publisher.subscribe(slow)
    publisher.subscribe(fast)
    publisher.submit(1)

    def on_drop(item: int) -> bool:
        slow.subscription.request(1)
        publisher.submit(3)
        slow.subscription.request(1)
        return True

    assert publisher.offer(2, 0.0, on_drop=on_drop) == -1
    assert (slow.elements, fast.elements) == ([1, 3], [1, 2, 3])


def test_an_on_drop_that_raises_loses_nothing_silently(dropped: list[hooks.Dropped]) -> None:
    publisher: SubmissionPublisher[int] = SubmissionPublisher(TrampolineExecutor(), max_buffer=1)
    for _ in range(3):
        publisher.subscribe(Listener(0))
    publisher.submit(1)

    def on_drop(item: int) -> bool:
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        publisher.offer(2, 0.0, on_drop=on_drop)
    assert [entry.element for entry in dropped] == [2, 2, 2]
    assert publisher.offer(3) == -3


class Submitters:
    """Two threads submit: all subscribers see one order."""

    def __init__(self) -> None:
        self.publisher: SubmissionPublisher[int] = SubmissionPublisher(Here(), max_buffer=2)
        self.one, self.two = Listener(0), Listener(9)
        self.publisher.subscribe(self.one)
        self.publisher.subscribe(self.two)

    def actor_a(self) -> None:
        self.publisher.submit(1)

    def actor_b(self) -> None:
        self.publisher.submit(2)

    def at_end(self) -> None:
        self.one.subscription.request(9)
        assert self.one.elements == self.two.elements
        assert sorted(self.one.elements) == [1, 2]


class SubmitBesideRequest:
    """One waits for room, which the subscriber makes."""

    def __init__(self) -> None:
        self.publisher: SubmissionPublisher[int] = SubmissionPublisher(Here(), max_buffer=1)
        self.slow = Listener(0)
        self.publisher.subscribe(self.slow)
        self.publisher.submit(0)

    def actor_a(self) -> None:
        self.publisher.submit(1)

    def actor_b(self) -> None:
        self.slow.subscription.request(2)

    def at_end(self) -> None:
        assert self.slow.elements == [0, 1]


class SubmitBesideCancel(SubmitBesideRequest):
    """One waits for room, and the subscriber goes."""

    def actor_b(self) -> None:
        self.slow.subscription.cancel()

    def at_end(self) -> None:
        assert self.slow.elements == []


class OfferBesideClose(Submitters):
    """An item is offered while the publisher closes: both have it, or neither."""

    def actor_a(self) -> None:
        with suppress(RuntimeError):
            self.publisher.offer(1)

    def actor_b(self) -> None:
        self.publisher.close()

    def at_end(self) -> None:
        self.one.subscription.request(9)
        assert self.one.elements == self.two.elements
        assert self.one.ends == self.two.ends == ["complete"]


class SubmitBesideSubscribe(Submitters):
    """One comes while an item is submitted: it gets the item, or has come too late for it."""

    def actor_b(self) -> None:
        self.late = Listener(9)
        self.publisher.subscribe(self.late)

    def at_end(self) -> None:
        assert self.late.elements in ([], [1])
        assert self.two.elements == [1]


@pytest.mark.parametrize(
    "scenario", [Submitters, SubmitBesideRequest, SubmitBesideCancel, OfferBesideClose, SubmitBesideSubscribe]
)
def test_every_schedule_of_a_submission_holds(scenario: type, dropped: list[hooks.Dropped]) -> None:
    holds_with_few_preemptions(partial(explore, scenario))


# -- from_future ---------------------------------------------------------------------------------------------------


def test_a_future_keeps_one_callback_however_many_flows_have_waited_for_it() -> None:
    future: Future[int] = Future()
    flow = Flow.from_future(future)
    for _ in range(50):
        flow.subscribe(print).cancel()
        Flow.from_future(future).subscribe(print).cancel()
    assert len(future._done_callbacks) == 1  # type: ignore[attr-defined]
    listeners = [Listener(1), Listener(1)]
    for listener in listeners:
        Flow.from_future(future).subscribe(listener)
    future.set_result(7)
    assert [item.elements for item in listeners] == [[7], [7]]
    assert list(flow) == [7]


def test_a_future_of_asyncio_keeps_one_callback_too() -> None:
    async def main() -> tuple[int, list[int]]:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        flow = Flow.from_future(future)
        for _ in range(50):
            flow.subscribe(print).cancel()
        await asyncio.sleep(0)
        listener = Listener(1)
        flow.subscribe(listener)
        kept = len(future._callbacks or ())
        future.set_result(7)
        await asyncio.sleep(0)
        return kept, listener.elements

    assert asyncio.run(main()) == (1, [7])


def test_a_future_that_can_not_be_a_key_gets_a_callback_for_each() -> None:
    class Plain:
        __hash__ = None  # type: ignore[assignment]

        def __init__(self) -> None:
            self.inner: Future[int] = Future()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    future = Plain()
    flow: Flow[int] = Flow.from_future(future)  # type: ignore[arg-type]
    listener = Listener(1)
    flow.subscribe(listener)
    future.inner.set_result(7)
    assert listener.elements == [7]


def test_a_future_that_takes_no_callback_fails_the_flow() -> None:
    class Closed(Future[int]):
        def add_done_callback(self, fn: Any) -> None:
            raise OSError("no callbacks here")

    future = Closed()
    listener = Listener(1)
    for _ in range(2):
        Flow.from_future(future).subscribe(listener)
    assert [str(end) for end in listener.ends] == ["no callbacks here"] * 2


def test_a_pool_is_not_kept_waiting() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert Flow.from_future(pool.submit(lambda: 7)).block(timeout=PATIENCE) == 7


def test_an_element_that_is_refused_wakes_no_reader() -> None:
    hot: PublishProcessor[int] = PublishProcessor(capacity=1)
    sink = Sink()
    Flow.merge(hot, Flow.never()).subscribe(sink)
    hot.subscribe(Sink(demand=0))
    assert hot.emit(1) is EmitResult.OK
    parked = dict(hot._multicaster._parked)
    assert hot.emit(2) is EmitResult.OVERFLOW
    assert sink.elements == [1]
    assert parked
    assert hot._multicaster._parked == parked
