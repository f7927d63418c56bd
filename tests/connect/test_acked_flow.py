"""`AckedFlow`: each message is settled once, whatever the operators and however the flow ends."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sinks import PATIENCE, Sink, settle, until

from connect.messages import Messages
from reactive_runtime import Flow
from reactive_runtime.connect import Acked, AckedFlow, NotHandledError

COUNT = 20

Region = Callable[[AckedFlow[Any], ThreadPoolExecutor], AckedFlow[Any]]


def failing_at(bad: int) -> Callable[[Any], Any]:
    def fn(value: Any) -> Any:
        if value == bad:
            raise OSError(f"no {bad}")
        return value

    return fn


async def same(value: Any) -> Any:
    return value


def number(value: Any) -> int:
    return value if isinstance(value, int) else len(value)


def retried() -> Callable[[Any], Any]:
    """Fails at every first attempt."""
    seen: set[int] = set()

    def fn(value: Any) -> Any:
        if id(value) not in seen:
            seen.add(id(value))
            raise OSError("at first")
        return value

    return fn


REGIONS: dict[str, Region] = {
    "map": lambda f, p: f.map(lambda v: (v,)),
    "filter": lambda f, p: f.filter(lambda v: number(v) % 2),
    "batch": lambda f, p: f.batch(3),
    "buffer_timeout": lambda f, p: f.buffer_timeout(3, 60.0),
    "flat_map": lambda f, p: f.flat_map(lambda v: Flow.range(number(v) % 4)),
    "flat_map, one at a time": lambda f, p: f.flat_map(lambda v: Flow.range(number(v) % 4), concurrency=1),
    "flat_map, on a pool": lambda f, p: f.flat_map(lambda v: Flow.range(number(v) % 4).subscribe_on(p), concurrency=3),
    "flat_map, coroutines": lambda f, p: f.flat_map(same),
    "map_parallel": lambda f, p: f.map_parallel(lambda v: v, p),
    "map_parallel, as they are done": lambda f, p: f.map_parallel(lambda v: v, p, ordered=False),
    "map_parallel, coroutines": lambda f, p: f.map_parallel(same),
    "map_by_key": lambda f, p: f.map_by_key(lambda v: v, lambda v: number(v) % 3, p),
    "publish_on": lambda f, p: f.publish_on(p, prefetch=4),
    "windows": lambda f, p: f.through(lambda g: g.window(4).concat_map(lambda w: AckedFlow(w).map(number).elements())),
    "dead letters": lambda f, p: f.on_error_continue(lambda one: one.map(failing_at(3)), lambda letter: None),
    "dead letters, side by side": lambda f, p: f.on_error_continue(
        lambda one: one.publish_on(p).map(failing_at(3)), lambda letter: None, concurrency=4
    ),
    "retry": lambda f, p: f.on_error_continue(
        lambda one: one.map(retried()).through(lambda g: g.retry(1)), lambda letter: None
    ),
    "map fails": lambda f, p: f.map(failing_at(7)),
    "filter fails": lambda f, p: f.filter(failing_at(7)),
    "map_parallel fails": lambda f, p: f.map_parallel(failing_at(7), p),
    "map_by_key fails": lambda f, p: f.map_by_key(failing_at(7), lambda v: number(v) % 3, p),
    "a key fails": lambda f, p: f.map_by_key(lambda v: v, failing_at(7), p),
    "flat_map fails": lambda f, p: f.flat_map(failing_at(7)),
    "an inner flow fails": lambda f, p: f.flat_map(lambda v: Flow.range(3).map(failing_at(2 if v == 5 else 9))),
    "a dead letter fails": lambda f, p: f.on_error_continue(
        lambda one: one.map(failing_at(3)), lambda letter: failing_at(3)(letter.element)
    ),
    "an error that is none": lambda f, p: f.on_error_continue(
        lambda one: one.map(failing_at(3)), lambda letter: None, when=ValueError
    ),
}


WORKERS = 4


@pytest.fixture(scope="module")
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(WORKERS, "acked") as executor:
        yield executor


@pytest.fixture
def pool(threads: ThreadPoolExecutor, dropped: list[Any]) -> Iterator[ThreadPoolExecutor]:
    """A pool that has nothing to do any more when the test is over: what fails late goes to the hook of that test."""
    yield threads
    settle(threads, WORKERS)


def ends() -> dict[str, Callable[[Flow[Any]], Sink]]:
    def whole(flow: Flow[Any]) -> Sink:
        sink = Sink()
        flow.subscribe(sink)
        return sink.wait()

    def one_by_one(flow: Flow[Any]) -> Sink:
        sink = Sink(1, lambda sink, _: sink.subscription.request(1))
        flow.subscribe(sink)
        return sink.wait()

    def taken(flow: Flow[Any]) -> Sink:
        return whole(flow.take(3))

    def cancelled_inside(flow: Flow[Any]) -> Sink:
        def leave(sink: Sink, _: Any) -> None:
            sink.subscription.cancel()
            sink.ended.set()

        sink = Sink(2, leave)
        flow.do_finally(lambda way: sink.ended.set()).subscribe(sink)
        return sink.wait()

    def cancelled_elsewhere(flow: Flow[Any]) -> Sink:
        sink = Sink(2)
        flow.subscribe(sink)
        thread = threading.Thread(target=sink.subscription.cancel)
        thread.start()
        thread.join()
        return sink

    def never_asked(flow: Flow[Any]) -> Sink:
        sink = Sink(0)
        flow.subscribe(sink)
        sink.subscription.cancel()
        return sink

    return {end.__name__: end for end in (whole, one_by_one, taken, cancelled_inside, cancelled_elsewhere, never_asked)}


ENDS = ends()


def settled_once(messages: Messages) -> None:
    until(lambda: not messages.open)
    assert messages.twice == []


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("first", REGIONS)
def test_each_message_is_settled_once(first: str, end: str, pool: ThreadPoolExecutor) -> None:
    for second in [None, *REGIONS]:
        messages = Messages()
        region = REGIONS[first](messages.flow(COUNT), pool)
        if second is not None:
            region = REGIONS[second](region, pool)
        ENDS[end](region.acknowledge())
        settled_once(messages)


@pytest.mark.nightly
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("first", REGIONS)
def test_each_message_is_settled_once_at_random_cancels(first: str, pool: ThreadPoolExecutor) -> None:
    chance = random.Random(first)
    for second in REGIONS:
        for _ in range(50):
            messages, sink = Messages(), Sink(chance.choice([1, 3, COUNT]))
            region = REGIONS[second](REGIONS[first](messages.flow(COUNT), pool), pool)
            region.acknowledge().subscribe(sink)
            threading.Event().wait(chance.random() / 500)
            sink.subscription.cancel()
            settled_once(messages)


FAILS = [name for name in REGIONS if "fail" in name or "none" in name]


@pytest.mark.parametrize("name", [name for name in REGIONS if name not in FAILS])
def test_a_flow_that_ends_well_has_all_acknowledged(name: str, pool: ThreadPoolExecutor) -> None:
    messages = Messages()
    REGIONS[name](messages.flow(COUNT), pool).acknowledge().run(timeout=PATIENCE)
    assert messages.acknowledged == list(range(COUNT))


@pytest.mark.parametrize("name", FAILS)
def test_the_message_that_fails_is_refused_with_the_error(name: str, pool: ThreadPoolExecutor) -> None:
    messages = Messages()
    with pytest.raises((OSError, TypeError)) as raised:
        REGIONS[name](messages.flow(COUNT), pool).acknowledge().run(timeout=PATIENCE)
    settled_once(messages)
    errors = {number: error for number, error in messages.refused.items() if not isinstance(error, NotHandledError)}
    (number,) = errors
    assert number in (0, 3, 5, 7)
    assert type(errors[number]) is type(raised.value)
    assert all(number not in messages.acknowledged for number in messages.refused)


def test_a_list_is_settled_together() -> None:
    messages = Messages()
    with pytest.raises(OSError, match="no disk"):
        messages.flow(6).batch(3).map(lambda v: v if v[0] == 0 else no_disk()).acknowledge().run(timeout=PATIENCE)
    assert messages.acknowledged == [0, 1, 2]
    assert [type(error) for error in messages.refused.values()] == [OSError] * 3


def wrong() -> Any:
    return 7


def no_disk() -> Any:
    raise OSError("no disk")


def test_a_message_waits_for_all_elements_that_were_made_of_it() -> None:
    messages, open_at = Messages(), dict[int, list[int]]()
    inner = messages.flow(2).flat_map(lambda v: Flow.range(2), concurrency=1).map(len_of(messages, open_at))
    inner.acknowledge().run(timeout=PATIENCE)
    assert open_at == {0: [0], 1: [0], 2: [1], 3: [1]}


def len_of(messages: Messages, open_at: dict[int, list[int]]) -> Callable[[int], int]:
    def look(value: int) -> int:
        open_at[len(open_at)] = messages.open
        return value

    return look


def test_a_dead_letter_has_the_value_the_error_and_the_attempts() -> None:
    messages, letters = Messages(), list[Any]()
    part = messages.flow(3).on_error_continue(
        lambda one: one.map(failing_at(1)).through(lambda flow: flow.retry(2)), letters.append
    )
    assert list(part.acknowledge()) == [0, 2]
    (letter,) = letters
    assert (letter.element, str(letter.error), letter.attempts) == (1, "no 1", 3)
    assert messages.acknowledged == [0, 1, 2]


def test_a_letter_is_written_before_its_message_is_acknowledged() -> None:
    messages = Messages()
    at_letter: list[list[int]] = []
    part = messages.flow(1).on_error_continue(
        lambda one: one.map(failing_at(0)), lambda _: at_letter.append(messages.open)
    )
    part.acknowledge().run(timeout=PATIENCE)
    assert at_letter == [[0]]
    assert messages.acknowledged == [0]


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_list_of_what_came_through_a_part_is_acknowledged(concurrency: int) -> None:
    """The part has ended long before the list is full."""
    messages = Messages()
    flow = messages.flow(5).on_error_continue(
        lambda one: one.map(failing_at(1)), lambda letter: None, concurrency=concurrency
    )
    lists = list(flow.batch(3).acknowledge())
    assert [len(one) for one in lists] == [3, 1]
    assert sorted(value for one in lists for value in one) == [0, 2, 3, 4]
    assert messages.refused == {}
    assert sorted(messages.acknowledged) == [0, 1, 2, 3, 4]


def test_a_part_that_does_not_take_its_message_has_it_refused() -> None:
    messages = Messages()
    flow = messages.flow(2).on_error_continue(lambda one: one.through(lambda part: part.take(0)), lambda letter: None)
    assert list(flow.acknowledge()) == []
    assert sorted(messages.refused) == [0, 1]


def test_for_each_acknowledges_when_the_function_has_returned() -> None:
    messages = Messages()
    seen: list[tuple[int, list[int]]] = []
    messages.flow(2).for_each(lambda v: seen.append((v, messages.acknowledged)), timeout=PATIENCE)
    assert seen == [(0, []), (1, [0])]
    assert messages.acknowledged == [0, 1]


def test_elements_of_a_subscriber_are_its_own_to_settle() -> None:
    messages, sink = Messages(), Sink(2)
    messages.flow(3).elements().subscribe(sink)
    sink.subscription.cancel()
    assert messages.open == [0, 1]
    first, second = sink.elements
    assert (first.acknowledge(), second.refuse(OSError("no disk"))) == (True, True)
    assert messages.open == []


@pytest.mark.parametrize(
    "call",
    [
        lambda flow: flow.map(7),
        lambda flow: flow.filter(7),
        lambda flow: flow.flat_map(7),
        lambda flow: flow.map_parallel(7),
        lambda flow: flow.map_by_key(7, len, None),
        lambda flow: flow.for_each(7),
        lambda flow: flow.through(7),
        lambda flow: flow.through(lambda flow: 7),
        lambda flow: flow.on_error_continue(7, print),
        lambda flow: flow.on_error_continue(len, 7),
        lambda _: AckedFlow(wrong()),
    ],
)
def test_what_can_not_be_called_is_refused_where_it_is_given(call: Any) -> None:
    with pytest.raises(TypeError):
        call(Messages().flow(1))


@pytest.mark.parametrize("size", [0, -1])
def test_a_list_has_an_element(size: int) -> None:
    with pytest.raises(ValueError, match="batch: n must be at least 1"):
        Messages().flow(1).batch(size)


def test_an_element_that_is_not_acked_ends_the_flow() -> None:
    flow: AckedFlow[Any] = AckedFlow(Flow.just(7))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="AckedFlow: 7 came, and is not Acked"):
        flow.acknowledge().run(timeout=PATIENCE)
    with pytest.raises(TypeError, match=r"through\(.*\): 0 came, and is not Acked"):
        Messages().flow(1).through(values).acknowledge().run(timeout=PATIENCE)


def values(flow: Flow[Acked[Any]]) -> Flow[Any]:
    return flow.map(lambda one: one.value)


def test_a_part_that_returns_no_flow_of_this_kind_is_named(dropped: list[Any]) -> None:
    messages = Messages()
    part: Any = lambda one: Flow.just(1)  # noqa: E731
    with pytest.raises(TypeError, match="must return an AckedFlow, not Flow"):
        messages.flow(1).on_error_continue(part, print, when=ValueError).acknowledge().run(timeout=PATIENCE)
    settled_once(messages)


def test_none_is_no_result() -> None:
    messages = Messages()
    with pytest.raises(TypeError, match="returned None for 0"):
        messages.flow(1).map(lambda v: None).acknowledge().run(timeout=PATIENCE)
    assert type(messages.refused[0]) is TypeError


def test_an_acknowledgement_that_fails_ends_the_flow() -> None:
    def settle(error: BaseException | None) -> None:
        raise ConnectionError("the server is down")

    with pytest.raises(ConnectionError, match="the server is down"):
        AckedFlow(Flow.just(Acked(1, settle))).acknowledge().run(timeout=PATIENCE)


def test_acked_flow_needs_no_import_of_flow() -> None:
    program = "from reactive_runtime.connect import AckedFlow; AckedFlow(7)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (
        done.stderr.splitlines()[-1]
        == "TypeError: AckedFlow: source must be a publisher, not int (Flow.just makes one of it)"
    )
