"""Kafka, against a real broker: by demand, at least once, in order for each key, and never a hang."""

from __future__ import annotations

import gc
import itertools
import json
import logging
import socket
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from sinks import PATIENCE, Sink, until

from connect import kafka_kills
from connect.kafka_server import PASSWORD, KafkaServer, free_ports
from examples.connect import orders_in_kafka
from reactive_runtime import Flow
from reactive_runtime.connect import AckedFlow, NotHandledError
from reactive_runtime.connect._kafka import member
from reactive_runtime.connect.kafka import Record, Writer, read, read_lists
from reactive_runtime.errors import RejectedError
from reactive_runtime.hooks import captured

names = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    server = KafkaServer(tmp_path_factory.mktemp("kafka"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A broker that tests kill; each leaves it running."""
    server = KafkaServer(tmp_path_factory.mktemp("mortal"))
    yield server
    server.close()


QUICK: dict[str, Any] = {"heartbeat.interval.ms": 200, "session.timeout.ms": 2_000}
"""A member hears of a rebalance with its next heartbeat; one that is gone without a word is so after its session."""


def made(server: KafkaServer, partitions: int = 1) -> str:
    """A new topic; its name is that of the group that reads it too."""
    topic = f"topic-{next(names)}"
    server.make(topic, partitions)
    return topic


@pytest.fixture
def topic(server: KafkaServer) -> str:
    return made(server)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1, thread_name_prefix="kafka") as pool:
        yield pool


def reading(server: KafkaServer, topic: str, pool: ThreadPoolExecutor, **more: Any) -> AckedFlow[Record]:
    return read(server.servers, topic, topic, executor=pool, **more)


def number(record: Record) -> int:
    assert record.value is not None
    return int(record.value.split()[0])


def numbers(sink: Sink) -> list[int]:
    return [number(element.value) for element in sink.elements]


def handled(flow: AckedFlow[Record], n: int) -> list[int]:
    """The numbers of the first `n` records, each acknowledged."""
    return flow.map(number).acknowledge().take(n).to_list().block(timeout=PATIENCE) or []


def free(pool: ThreadPoolExecutor) -> None:
    """Wait until the flow has given its thread back."""
    pool.submit(lambda: None).result(PATIENCE)


def gone(server: KafkaServer, topic: str) -> None:
    """Wait until the group has no member."""
    until(lambda: server.members(topic) == 0)


# -- every value, by demand --------------------------------------------------------------------------------------


def test_each_record_comes_once_in_order_and_is_committed(
    server: KafkaServer, topic: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(topic, range(5_000))
    assert handled(reading(server, topic, pool), 5_000) == list(range(5_000))
    free(pool)
    assert server.committed(topic, topic) == {0: 5_000}
    assert server.members(topic) == 0


def test_a_record_has_all_that_was_written(server: KafkaServer, topic: str, pool: ThreadPoolExecutor) -> None:
    with Writer(
        server.servers, topic, key=lambda n: str(n) if n else None, headers=lambda n: {"n": b"%d" % n}, value=str
    ) as to:
        assert to.append([0, 1]) == 2
    with Writer(server.servers, topic, key=lambda _: b"gone", value=lambda _: None) as to:
        to.append([2])
    got: list[Record] = []
    flow = reading(server, topic, pool)
    flow.acknowledge().do_on_next(got.append).take(3).run(timeout=PATIENCE)
    free(pool)
    assert [record[:-1] for record in got] == [
        (topic, 0, 0, None, b"0", [("n", b"0")]),
        (topic, 0, 1, b"1", b"1", [("n", b"1")]),
        (topic, 0, 2, b"gone", None, ()),
    ]
    assert all(record.timestamp > 1_700_000_000_000 for record in got)
    assert server.committed(topic, topic) == {0: 3}


def test_records_that_come_later_are_read(server: KafkaServer, topic: str, pool: ThreadPoolExecutor) -> None:
    sink = Sink()
    reading(server, topic, pool).acknowledge().subscribe(sink)
    for n in range(3):
        server.fill(topic, range(n, n + 1))
        sink.wait_for(1)
    assert [number(record) for record in sink.elements] == [0, 1, 2]
    assert sink.threads == {"kafka_0"}
    until(lambda: server.committed(topic, topic) == {0: 3})
    sink.subscription.cancel()
    gone(server, topic)


def test_several_topics_and_partitions(server: KafkaServer, pool: ThreadPoolExecutor) -> None:
    topics = [made(server, 3), made(server)]
    for topic in topics:
        server.fill(topic, range(300))
    flow = read(server.servers, topics, topics[0], executor=pool)
    got: list[Record] = []
    flow.acknowledge().do_on_next(got.append).take(600).run(timeout=PATIENCE)
    for topic in topics:
        mine = [record for record in got if record.topic == topic]
        assert sorted(map(number, mine)) == list(range(300))
        for partition in range(3):
            offsets = [record.offset for record in mine if record.partition == partition]
            assert offsets == list(range(len(offsets)))


def test_no_more_is_delivered_than_is_demanded(server: KafkaServer, topic: str, pool: ThreadPoolExecutor) -> None:
    server.fill(topic, range(100))
    sink = Sink(demand=0)
    reading(server, topic, pool).elements().subscribe(sink)
    got = 0
    for n in (1, 3, 7, 20):
        sink.subscription.request(n)
        sink.wait_for(n)
        got += n
        assert numbers(sink) == list(range(got))
    sink.subscription.cancel()
    gone(server, topic)
    assert server.committed(topic, topic).get(0, -1) < 0
    assert handled(reading(server, topic, pool), 100) == list(range(100))


def test_without_demand_the_group_has_no_member(server: KafkaServer, topic: str, pool: ThreadPoolExecutor) -> None:
    sink = Sink(demand=0)
    with captured() as dropped:
        reading(server, topic, pool).elements().subscribe(sink)
        sink.subscription.cancel()
        free(pool)
    assert server.members(topic) == 0
    assert dropped == []


def received(statistics: list[str]) -> int:
    """How many bytes the client has got from the brokers."""
    return sum(broker["rxbytes"] for broker in json.loads(statistics[-1])["brokers"].values())


def test_little_is_fetched_ahead_and_once_without_demand(
    server: KafkaServer, topic: str, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polling goes on; the rest gets full, the partition is paused and resumed: none is lost, and none comes twice."""
    monkeypatch.setattr(member, "REST", 8)
    server.fill(topic, range(2_000), text=b"x" * 20_000)
    statistics: list[str] = []
    sink = Sink(demand=3)
    options = {"stats_cb": statistics.append, "statistics.interval.ms": 100, "queued.max.messages.kbytes": 1_000}
    reading(server, topic, pool, at_most=4, options=options).elements().subscribe(sink)
    sink.wait_for(3)
    for _ in range(20):  # the rest has room for 12 records, and each poll brings one
        seen = len(statistics)
        until(lambda seen=seen: len(statistics) > seen)  # type: ignore[misc]
    before = received(statistics)
    assert before < 8_000_000  # of 40 MB; one answer of the broker has a MB
    sink.subscription.request(500)
    sink.wait_for(500)
    assert numbers(sink) == list(range(503))
    assert received(statistics) < before + 500 * 20_000 + 8_000_000
    sink.subscription.cancel()
    gone(server, topic)


def test_at_most_bounds_what_is_taken(server: KafkaServer, topic: str, pool: ThreadPoolExecutor) -> None:
    server.fill(topic, range(50))
    assert handled(reading(server, topic, pool, at_most=1), 50) == list(range(50))


def test_keys_are_handled_in_order_on_several_threads(server: KafkaServer, pool: ThreadPoolExecutor) -> None:
    topic = made(server, 2)
    server.fill(topic, range(1_000))
    seen: dict[int, list[int]] = {key: [] for key in range(10)}

    def handle(record: Record) -> int:
        n = number(record)
        seen[n % 10].append(n)
        return n

    with ThreadPoolExecutor(4) as workers:
        flow = reading(server, topic, pool).map_by_key(handle, lambda record: record.key, workers, concurrency=4)
        flow.acknowledge().take(1_000).run(timeout=PATIENCE)
    assert seen == {key: list(range(key, 1_000, 10)) for key in range(10)}
    free(pool)
    until(lambda: sum(server.committed(topic, topic).values()) > 900)  # those in flight at the end are not counted


# -- commits -----------------------------------------------------------------------------------------------------


def test_the_lowest_that_is_open_is_committed(server: KafkaServer, topic: str, pool: ThreadPoolExecutor) -> None:
    server.fill(topic, range(10))
    sink = Sink(demand=10)
    reading(server, topic, pool).elements().subscribe(sink)
    sink.wait_for(10)
    for n, committed in ((0, 1), (2, 1), (3, 1), (1, 4), (9, 4), (4, 5)):
        assert sink.elements[n].acknowledge()
        until(lambda committed=committed: server.committed(topic, topic) == {0: committed})  # type: ignore[misc]
    sink.subscription.cancel()
    gone(server, topic)
    assert server.committed(topic, topic) == {0: 5}
    assert handled(reading(server, topic, pool), 5) == [5, 6, 7, 8, 9]


def test_acknowledgements_of_other_threads_are_committed(
    server: KafkaServer, topic: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(topic, range(1_000))
    sink = Sink(demand=1_000)
    reading(server, topic, pool).elements().subscribe(sink)
    sink.wait_for(1_000)
    with ThreadPoolExecutor(8) as others:
        assert all(others.map(lambda element: element.acknowledge(), reversed(sink.elements)))
    until(lambda: server.committed(topic, topic) == {0: 1_000})
    sink.subscription.cancel()
    gone(server, topic)


def test_what_is_acknowledged_is_committed_when_the_pool_has_ended(server: KafkaServer, topic: str) -> None:
    server.fill(topic, range(100))
    with ThreadPoolExecutor(1) as pool:
        assert handled(reading(server, topic, pool), 70) == list(range(70))
    assert server.committed(topic, topic) == {0: 70}
    assert server.members(topic) == 0


def test_what_is_acknowledged_after_a_cancel_is_not_committed(
    server: KafkaServer, topic: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(topic, range(3))
    sink = Sink(demand=3)
    reading(server, topic, pool).elements().subscribe(sink)
    sink.wait_for(3)
    sink.elements[0].acknowledge()
    sink.subscription.cancel()
    gone(server, topic)
    assert sink.elements[1].acknowledge()
    assert not sink.elements[1].acknowledge()
    assert server.committed(topic, topic) == {0: 1}
    assert handled(reading(server, topic, pool), 2) == [1, 2]


def test_a_handler_that_fails_is_not_passed(server: KafkaServer, topic: str, pool: ThreadPoolExecutor) -> None:
    server.fill(topic, range(10))
    with pytest.raises(ZeroDivisionError):
        reading(server, topic, pool).for_each(lambda record: 1 // (7 - number(record)), timeout=PATIENCE)
    free(pool)
    assert server.committed(topic, topic) == {0: 7}
    assert handled(reading(server, topic, pool), 3) == [7, 8, 9]


def test_a_handler_that_fails_on_another_thread_fails_the_flow_with_its_error(
    server: KafkaServer, topic: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(topic, range(100))
    with ThreadPoolExecutor(4) as others:
        flow = reading(server, topic, pool).map_parallel(lambda record: 1 // (7 - number(record)) or 1, others)
        with pytest.raises(ZeroDivisionError):
            flow.acknowledge().run(timeout=PATIENCE)
    free(pool)
    assert server.committed(topic, topic).get(0, 0) <= 7


@pytest.mark.parametrize(("error", "kind"), [(OSError("no disk"), OSError), (None, NotHandledError)])
def test_a_refused_element_fails_the_flow_and_comes_again(
    server: KafkaServer, topic: str, pool: ThreadPoolExecutor, error: Exception | None, kind: type[Exception]
) -> None:
    server.fill(topic, range(5))
    sink = Sink(demand=3)
    reading(server, topic, pool).elements().subscribe(sink)
    sink.wait_for(3)
    sink.elements[0].acknowledge()
    sink.elements[2].acknowledge()
    sink.elements[1].refuse(error)
    sink.wait()
    assert type(sink.error) is kind
    assert f"{topic}[0] offset 1 was refused" in "".join(traceback.format_exception(sink.error))
    free(pool)
    assert server.committed(topic, topic) == {0: 1}
    assert handled(reading(server, topic, pool), 4) == [1, 2, 3, 4]


def test_a_poison_message_becomes_a_dead_letter(server: KafkaServer, topic: str, pool: ThreadPoolExecutor) -> None:
    with Writer(server.servers, topic) as to:
        to.append(["1", "two", "3"])
    dead: list[Any] = []
    flow = reading(server, topic, pool).on_error_continue(
        lambda record: record.map(number), to=lambda letter: dead.append(letter.element.value)
    )
    assert flow.acknowledge().take(2).to_list().block(timeout=PATIENCE) == [1, 3]
    free(pool)
    assert dead == [b"two"]
    assert server.committed(topic, topic) == {0: 3}


# -- lists -------------------------------------------------------------------------------------------------------


def lists(server: KafkaServer, topic: str, pool: ThreadPoolExecutor, **more: Any) -> AckedFlow[list[Record]]:
    return read_lists(server.servers, topic, topic, executor=pool, **more)


def test_lists_have_each_record_once_in_order(server: KafkaServer, pool: ThreadPoolExecutor) -> None:
    topic = made(server, 3)
    server.fill(topic, range(3_000))
    got: list[Record] = []

    def keep(records: list[Record]) -> list[Record]:
        got.extend(records)
        return records

    flow = lists(server, topic, pool, at_most=100).map(keep)
    sizes = flow.acknowledge().take_while(lambda _: len(got) < 3_000).map(len).to_list().block(timeout=PATIENCE) or []
    free(pool)
    assert max(sizes) <= 100
    assert sorted(map(number, got)) == list(range(3_000))
    for partition in range(3):
        offsets = [record.offset for record in got if record.partition == partition]
        assert offsets == list(range(len(offsets)))
    assert sum(server.committed(topic, topic).values()) == 3_000


def test_one_list_is_delivered_for_one_of_demand(server: KafkaServer, topic: str, pool: ThreadPoolExecutor) -> None:
    server.fill(topic, range(100))
    sink = Sink(demand=1)
    lists(server, topic, pool, at_most=7).elements().subscribe(sink)
    sink.wait_for(1)
    assert len(sink.elements) == 1
    sink.subscription.request(2)
    sink.wait_for(2)
    got = [record for element in sink.elements for record in element.value]
    assert list(map(number, got)) == list(range(len(got)))
    assert all(len(element.value) <= 7 for element in sink.elements)
    sink.elements[0].acknowledge()
    sink.elements[2].acknowledge()
    until(lambda: server.committed(topic, topic) == {0: len(sink.elements[0].value)})
    sink.subscription.cancel()
    gone(server, topic)


def test_a_refused_list_fails_the_flow_and_comes_again(
    server: KafkaServer, topic: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(topic, range(30))

    def handle(records: list[Record]) -> int:
        if any(number(record) == 12 for record in records):
            raise OSError("no disk")
        return len(records)

    with pytest.raises(OSError, match="no disk"):
        lists(server, topic, pool, at_most=10).for_each(handle, timeout=PATIENCE)
    free(pool)
    [committed] = server.committed(topic, topic).values()
    assert committed <= 12
    again = lists(server, topic, pool, at_most=10).acknowledge().take(1).to_list().block(timeout=PATIENCE) or []
    assert number(again[0][0]) == committed


# -- rebalances --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [QUICK, {**QUICK, "partition.assignment.strategy": "range"}, {"group.protocol": "consumer"}],
    ids=["cooperative", "eager", "by the broker"],
)
def test_a_rebalance_loses_nothing(server: KafkaServer, options: dict[str, Any]) -> None:
    topic = made(server, 4)
    server.fill(topic, range(1_000))
    seen: dict[str, list[int]] = {"a": [], "b": []}
    every = threading.Event()
    lock = threading.Lock()

    def handle(name: str, record: Record) -> int:
        n = number(record)
        with lock:
            seen[name].append(n)
            if {*seen["a"], *seen["b"]} == set(range(3_000)):
                every.set()
        return n

    sinks = {name: Sink() for name in "ab"}
    with ThreadPoolExecutor(1) as a, ThreadPoolExecutor(1) as b:
        pools = {"a": a, "b": b}
        for name, sink in sinks.items():
            flow = reading(server, topic, pools[name], options=options)
            flow.map(lambda record, name=name: handle(name, record)).acknowledge().subscribe(sink)  # type: ignore[misc]
            until(lambda name=name: len(seen[name]) > 0 or name == "b")  # type: ignore[misc]
        until(lambda: server.members(topic) == 2)
        numbers = itertools.count(1_000)
        while not seen["b"]:  # until it has partitions
            first = next(numbers)
            if first < 2_000:
                server.fill(topic, range(first, first + 1))
            threading.Event().wait(0.01)
        server.fill(topic, range(next(numbers), 2_000))
        sinks["a"].subscription.cancel()  # its partitions go to the other one
        server.fill(topic, range(2_000, 3_000))
        assert every.wait(PATIENCE)
        until(lambda: sum(server.committed(topic, topic).values()) == 3_000)
        sinks["b"].subscription.cancel()
    assert sinks["a"].end is None
    assert sinks["b"].end is None


def test_lists_of_a_partition_that_has_gone_are_not_committed(server: KafkaServer) -> None:
    topic = made(server, 2)
    for partition in (0, 1):
        server.fill(topic, range(10), partition=partition)
    first, second = Sink(), Sink()
    with ThreadPoolExecutor(1) as a, ThreadPoolExecutor(1) as b:
        lists(server, topic, a, options=QUICK).elements().subscribe(first)
        until(lambda: sum(len(element.value) for element in first.elements) == 20)
        lists(server, topic, b, options=QUICK).elements().subscribe(second)
        until(lambda: sum(len(element.value) for element in second.elements) == 10)
        gone_to = second.elements[0].value[0].partition
        for element in first.elements:
            element.acknowledge()
        until(lambda: server.committed(topic, topic).get(1 - gone_to) == 10)
        second.elements[0].acknowledge()
        until(lambda: server.committed(topic, topic).get(gone_to) == len(second.elements[0].value))
        first.subscription.cancel()
        second.subscription.cancel()


def test_elements_of_a_partition_that_has_gone_are_not_committed(server: KafkaServer) -> None:
    topic = made(server, 2)
    for partition in (0, 1):
        server.fill(topic, range(10), partition=partition)
    first, second = Sink(demand=20), Sink()
    with ThreadPoolExecutor(1) as a, ThreadPoolExecutor(1) as b:
        reading(server, topic, a, options=QUICK).elements().subscribe(first)
        first.wait_for(20)
        reading(server, topic, b, options=QUICK).elements().subscribe(second)
        second.wait_for(10)
        gone_to = second.elements[0].value.partition
        for element in first.elements:
            element.acknowledge()
        until(lambda: server.committed(topic, topic).get(1 - gone_to) == 10)
        for element in second.elements[:4]:
            element.acknowledge()
        until(lambda: server.committed(topic, topic).get(gone_to) == 4)
        assert [element.value.offset for element in second.elements] == list(range(10))
        first.subscription.cancel()
        second.subscription.cancel()
    assert server.committed(topic, topic) == {gone_to: 4, 1 - gone_to: 10}


def test_a_refusal_in_a_partition_that_has_gone_fails_nothing(server: KafkaServer) -> None:
    topic = made(server, 2)
    for partition in (0, 1):
        server.fill(topic, range(1), partition=partition)
    first, second = Sink(), Sink()
    with ThreadPoolExecutor(1) as a, ThreadPoolExecutor(1) as b:
        reading(server, topic, a, options=QUICK).elements().subscribe(first)
        first.wait_for(2)
        reading(server, topic, b, options=QUICK).elements().subscribe(second)
        second.wait_for(1)
        gone_to = second.elements[0].value.partition
        for element in first.elements:
            if element.value.partition == gone_to:
                element.refuse(OSError("too late"))
        server.fill(topic, range(1, 2), partition=1 - gone_to)
        first.wait_for(1)
        assert first.end is None
        first.subscription.cancel()
        second.subscription.cancel()


def test_a_consumer_that_is_slow_stays_in_the_group(server: KafkaServer, topic: str, pool: ThreadPoolExecutor) -> None:
    """Neither without demand, nor between two elements of one fetch, does polling stop."""
    server.fill(topic, range(3))
    options = {"session.timeout.ms": 1_000, "heartbeat.interval.ms": 300, "max.poll.interval.ms": 1_000}
    sink = Sink(demand=1)
    slow = threading.Event()
    flow = reading(server, topic, pool, options=options).through(
        lambda flow: flow.do_on_next(lambda _: slow.wait(0.6) and None)
    )
    flow.elements().subscribe(sink)
    sink.wait_for(1)
    slow.wait(2.5)
    sink.subscription.request(2)
    sink.wait_for(2)
    for element in sink.elements:
        element.acknowledge()
    until(lambda: server.committed(topic, topic) == {0: 3})
    assert numbers(sink) == [0, 1, 2]
    sink.subscription.cancel()
    gone(server, topic)


def test_a_consumer_that_blocks_for_too_long_joins_again(
    server: KafkaServer, topic: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(topic, range(3))
    options = {"session.timeout.ms": 1_000, "heartbeat.interval.ms": 300, "max.poll.interval.ms": 1_000}
    got: list[int] = []

    def handle(record: Record) -> int:
        got.append(number(record))
        if got == [0]:
            until(lambda: server.members(topic) == 0)
        return got[-1]

    sink = Sink()
    reading(server, topic, pool, options=options).map(handle).acknowledge().subscribe(sink)
    until(lambda: server.committed(topic, topic) == {0: 3})
    assert got.count(0) == 2  # its partition was lost when it was handled
    assert set(got) == {0, 1, 2}
    assert sink.end is None
    sink.subscription.cancel()
    gone(server, topic)


# -- cancel --------------------------------------------------------------------------------------------------------


def test_a_cancel_while_the_topic_is_empty(server: KafkaServer, topic: str, pool: ThreadPoolExecutor) -> None:
    sink = Sink()
    reading(server, topic, pool).elements().subscribe(sink)
    until(lambda: server.members(topic) == 1)
    sink.subscription.cancel()
    free(pool)
    assert server.members(topic) == 0
    assert sink.end is None


def test_nothing_comes_after_a_cancel_inside_of_a_fetch(
    server: KafkaServer, topic: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(topic, range(50))
    sink = Sink(then=lambda sink, element: sink.subscription.cancel() if len(sink.elements) == 7 else None)
    with captured() as dropped:
        reading(server, topic, pool).elements().subscribe(sink)
        sink.wait_for(7)
        gone(server, topic)
    assert numbers(sink) == list(range(7))
    assert not [drop for drop in dropped if drop.error is not None]
    assert handled(reading(server, topic, pool), 50) == list(range(50))


@pytest.mark.parametrize("demand", [1, 1_000])
def test_a_flow_that_is_garbage_leaves_the_group(
    server: KafkaServer, topic: str, pool: ThreadPoolExecutor, demand: int
) -> None:
    server.fill(topic, range(3))
    sink = Sink(demand=demand)
    reading(server, topic, pool).elements().subscribe(sink)
    sink.wait_for(1)
    if demand > 1:
        sink.subscription.cancel()
    assert server.members(topic) == (demand == 1) or demand > 1
    del sink
    until(lambda: gc.collect() >= 0 and server.members(topic) == 0)


def test_a_pool_that_is_shut_down_ends_the_flow(server: KafkaServer, topic: str) -> None:
    sink = Sink()
    pool = ThreadPoolExecutor(1)
    reading(server, topic, pool).elements().subscribe(sink)
    until(lambda: server.members(topic) == 1)
    pool.shutdown()
    sink.wait()
    assert isinstance(sink.error, RejectedError)
    gone(server, topic)


# -- brokers that fail -------------------------------------------------------------------------------------------------


def everything_said(error: BaseException, flow: AckedFlow[Any], caplog: pytest.LogCaptureFixture) -> str:
    elements = flow.elements()
    texts = [str(error), repr(error), *traceback.format_exception(error), elements.explain(), repr(flow), caplog.text]
    return "\n".join([*texts, *getattr(error, "__notes__", ())])


def failure(flow: AckedFlow[Any]) -> KafkaException:
    with pytest.raises(KafkaException) as raised:
        flow.for_each(print, timeout=PATIENCE)
    return raised.value


SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "me"}


def test_a_broker_that_is_down_is_named(pool: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    [port] = free_ports(1)
    options = {**SASL, "sasl.password": PASSWORD}
    flow = read(f"127.0.0.1:{port}", "orders", "g", executor=pool, timeout=0.2, options=options)
    error = failure(flow)
    assert error.args[0].code() == KafkaError._ALL_BROKERS_DOWN
    assert f"read('orders' at 127.0.0.1:{port})" in str(error)
    assert "refused" in str(error)
    assert PASSWORD not in everything_said(error, flow, caplog)


def test_a_wrong_password_is_not_shown(
    server: KafkaServer, topic: str, pool: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.fill(topic, range(1))
    options = {**SASL, "sasl.password": "wr0ng.w0rd", "debug": "conf,security"}
    flow = read(server.guarded, topic, topic, executor=pool, options=options)
    error = failure(flow)
    assert error.args[0].code() == KafkaError._AUTHENTICATION
    assert server.guarded in str(error)
    assert "wr0ng.w0rd" not in everything_said(error, flow, caplog)


def test_a_right_password_opens_a_guarded_port(server: KafkaServer, topic: str, pool: ThreadPoolExecutor) -> None:
    options = {**SASL, "sasl.password": PASSWORD}
    with Writer(server.guarded, topic, options=options) as to:
        to.append(["7"])
    assert handled(read(server.guarded, topic, topic, executor=pool, options=options), 1) == [7]


@pytest.mark.parametrize(
    "options",
    [
        {"sasl.pasword": "sEcr3t"},
        {"ssl.key.pem": "sEcr3t", "security.protocol": "SSL"},
        {"sasl.password": "sEcr3t", "security.protocol": "sEcr3t"},
    ],
)
def test_a_setting_that_is_wrong_is_named_and_no_secret_is(options: dict[str, Any], pool: ThreadPoolExecutor) -> None:
    error = failure(read("127.0.0.1:1", "orders", "g", executor=pool, options=options))
    said = "".join(traceback.format_exception(error))
    assert "read('orders' at 127.0.0.1:1)" in said
    assert "sEcr3t" not in said


def test_what_is_no_broker_fails_the_flow(pool: ThreadPoolExecutor) -> None:
    """As a broker before 0.10 does: it takes the connection, does not know the first question, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as old, ThreadPoolExecutor(1) as other:
        port = old.getsockname()[1]
        over = threading.Event()

        def hang_up() -> None:
            while True:
                connection, _ = old.accept()
                connection.close()
                if over.is_set():
                    return

        other.submit(hang_up)
        error = failure(read(f"127.0.0.1:{port}", "orders", "g", executor=pool, timeout=0.2))
        over.set()
        socket.create_connection(("127.0.0.1", port)).close()
    assert f"127.0.0.1:{port}" in str(error)
    assert "2.1 or later" in str(error)


def test_a_topic_that_is_missing_is_named(server: KafkaServer, pool: ThreadPoolExecutor) -> None:
    error = failure(reading(server, "nowhere", pool))
    assert error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert "read('nowhere' at 127.0.0.1" in str(error)


def test_a_broker_that_comes_back_is_not_noticed(mortal: KafkaServer, pool: ThreadPoolExecutor) -> None:
    """At least once: none is lost, and what comes again was under way."""
    topic = made(mortal)
    mortal.fill(topic, range(1_000))
    sink = Sink()
    reading(mortal, topic, pool, timeout=PATIENCE).acknowledge().subscribe(sink)
    sink.wait_for(1_000)
    mortal.kill()
    mortal.start()
    mortal.fill(topic, range(1_000, 2_000))
    until(lambda: {number(record) for record in list(sink.elements)} == set(range(2_000)))
    until(lambda: mortal.committed(topic, topic) == {0: 2_000})
    assert sink.end is None
    sink.subscription.cancel()
    gone(mortal, topic)


def test_a_broker_that_stays_away_fails_the_flow_and_a_retry_goes_on(
    mortal: KafkaServer, pool: ThreadPoolExecutor
) -> None:
    topic = made(mortal)
    mortal.fill(topic, range(100))
    sink = Sink()
    errors: list[BaseException] = []
    flow = reading(mortal, topic, pool, timeout=0.5, options=QUICK).acknowledge().do_on_error(errors.append)
    flow.retry_backoff(1_000, first=0.1, most=0.2, when=KafkaException).subscribe(sink)
    sink.wait_for(100)
    until(lambda: mortal.committed(topic, topic) == {0: 100})
    mortal.kill()
    until(lambda: len(errors) > 0)
    mortal.start()
    mortal.fill(topic, range(100, 200))
    until(lambda: len(sink.elements) >= 200)
    assert [number(record) for record in sink.elements] == list(range(200))
    assert f"read({topic!r} at {mortal.servers})" in str(errors[0])
    sink.subscription.cancel()
    gone(mortal, topic)


def test_a_cancel_while_the_broker_does_not_answer(mortal: KafkaServer, pool: ThreadPoolExecutor) -> None:
    topic = made(mortal)
    mortal.fill(topic, range(10))
    sink = Sink()
    with captured() as dropped:
        reading(mortal, topic, pool, timeout=0.5, options=QUICK).elements().subscribe(sink)
        sink.wait_for(10)
        mortal.stop()
        try:
            for element in sink.elements:
                element.acknowledge()
            sink.subscription.cancel()
            free(pool)
        finally:
            mortal.go_on()
    assert sink.end is None
    [error] = [drop.error for drop in dropped if drop.error is not None]
    assert mortal.servers in str(error)
    gone(mortal, topic)


def test_a_broker_that_does_not_answer_fails_the_flow(mortal: KafkaServer, pool: ThreadPoolExecutor) -> None:
    topic = made(mortal)
    sink = Sink()
    reading(mortal, topic, pool, timeout=0.5, options=QUICK).elements().subscribe(sink)
    mortal.fill(topic, range(1))
    sink.wait_for(1)  # it has joined: a broker may take minutes for the answer to one that joins
    mortal.stop()
    try:
        sink.wait()
    finally:
        mortal.go_on()
    assert isinstance(sink.error, KafkaException)
    assert mortal.servers in str(sink.error)
    gone(mortal, topic)


def test_what_a_killed_worker_has_left_comes_again(mortal: KafkaServer) -> None:
    figures = kafka_kills.run(mortal, "kills", kills=3, restarts=1, seed=7)
    assert figures["lost"] == 0
    assert figures["records"] == 1_500


def test_a_worker_that_finds_nothing_left_does_not_hold_up_the_count(mortal: KafkaServer) -> None:
    assert kafka_kills.run(mortal, "idle", kills=0, restarts=0, seed=0)["records"] == 0


# -- the writer ----------------------------------------------------------------------------------------------------


def test_a_writer_writes_in_order_for_each_key(server: KafkaServer) -> None:
    topic = made(server, 3)
    with Writer(server.servers, topic, key=lambda n: str(n % 7), value=str) as to:
        assert Flow.range(1_000).batch(64).map(to.append).reduce(lambda a, b: a + b).block(timeout=PATIENCE) == 1_000
    partitions = server.values(topic, 3)
    assert sum(map(len, partitions)) == 1_000
    for key in range(7):
        [mine] = [of for part in partitions if (of := [int(v or 0) for k, v in part if k == b"%d" % key])]
        assert mine == list(range(key, 1_000, 7))


def test_a_writer_writes_by_demand(server: KafkaServer, topic: str) -> None:
    sink = Sink(demand=0)
    with Writer(server.servers, topic, value=str) as to:
        Flow.range(1_000).batch(10).map(to.append).subscribe(sink)
        for n in (1, 2):
            sink.subscription.request(n)
        assert len(server.values(topic)[0]) == 30
        sink.subscription.cancel()


def test_a_list_longer_than_the_queue_is_written(server: KafkaServer, topic: str) -> None:
    with Writer(server.servers, topic, value=str, options={"queue.buffering.max.messages": 100}) as to:
        assert to.append(range(2_000)) == 2_000
    assert [int(value or 0) for _, value in server.values(topic)[0]] == list(range(2_000))


def test_several_threads_write(server: KafkaServer, topic: str) -> None:
    with ThreadPoolExecutor(4) as others, Writer(server.servers, topic, value=str) as to:
        flow = Flow.range(1_000).batch(20).map_parallel(to.append, others, concurrency=4)
        assert flow.to_list().block(timeout=PATIENCE) == [20] * 50
    assert sorted(int(value or 0) for _, value in server.values(topic)[0]) == list(range(1_000))


def test_what_is_relayed_is_committed_when_it_is_there(
    server: KafkaServer, topic: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(topic, range(500))
    to_topic = made(server)
    with Writer(server.servers, to_topic) as to:
        flow = reading(server, topic, pool).map(lambda record: record.value).buffer_timeout(100, 0.05)
        flow.map(to.append).acknowledge().scan(lambda a, b: a + b, 0).take_while(lambda n: n < 500).run(
            timeout=PATIENCE
        )
    free(pool)
    assert server.committed(topic, topic) == {0: 500}
    assert [int((value or b"").split()[0]) for _, value in server.values(to_topic)[0]] == list(range(500))


def test_a_record_that_is_too_large_is_named(server: KafkaServer, topic: str, pool: ThreadPoolExecutor) -> None:
    with Writer(server.servers, topic, key=lambda value: f"key-{len(value)}") as to:
        with pytest.raises(KafkaException) as raised:
            to.append([b"1", b"x" * 2_000_000, b"3"])
        to.append([b"4"])
    assert raised.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    for part in (f"Writer({topic!r} at {server.servers})", "key-2000000"):
        assert part in str(raised.value)
    assert [value for _, value in server.values(topic)[0]] == [b"1", b"4"]


def test_a_topic_that_is_missing_is_named_by_the_writer(server: KafkaServer) -> None:
    with (
        Writer(server.servers, "nowhere", key=lambda _: "a key", timeout=2) as to,
        pytest.raises(KafkaException, match=r"Writer\('nowhere' at 127.0.0.1.*key b?'a key'.*make the topic") as raised,
    ):
        to.append(["1"])
    assert raised.value.args[0].code() in (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART)


def test_a_writer_whose_function_fails_sends_nothing(server: KafkaServer, topic: str) -> None:
    with Writer(server.servers, topic, value=lambda n: str(1 // n)) as to, pytest.raises(ZeroDivisionError):
        to.append([3, 2, 0])
    with Writer(server.servers, topic, key=lambda _: "k") as to, pytest.raises(TypeError) as raised:
        to.append(["1", object()])
    [note] = raised.value.__notes__
    assert f"Writer({topic!r} at {server.servers}): the value <object" in note
    assert "with the key 'k' can't be sent; those before it may be there" in note
    assert [value for _, value in server.values(topic)[0]] == [b"1"]


def test_a_writer_names_a_broker_that_is_down(caplog: pytest.LogCaptureFixture) -> None:
    [port] = free_ports(1)
    options = {**SASL, "sasl.password": PASSWORD}
    with (
        Writer(f"127.0.0.1:{port}", "out", timeout=0.5, options=options) as to,
        pytest.raises(KafkaException, match=rf"Writer\('out' at 127.0.0.1:{port}\)") as raised,
    ):
        to.append(["1"])
    assert "refused" in str(raised.value)
    assert PASSWORD not in "".join(traceback.format_exception(raised.value)) + caplog.text


def test_a_writer_goes_on_when_the_broker_is_back(mortal: KafkaServer) -> None:
    topic = made(mortal)
    with Writer(mortal.servers, topic, timeout=PATIENCE) as to, ThreadPoolExecutor(1) as other:
        to.append(["1"])
        mortal.kill()
        late = other.submit(to.append, ["2", "3"])
        mortal.start()
        assert late.result(PATIENCE) == 2
    assert [value for _, value in mortal.values(topic)[0]] == [b"1", b"2", b"3"]


# -- memory, and arguments -------------------------------------------------------------------------------------------


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_a_long_backlog_needs_no_memory(server: KafkaServer, topic: str, pool: ThreadPoolExecutor) -> None:
    server.fill(topic, range(100_000), text=b"x" * 100)
    sizes = []
    for n in reading(server, topic, pool).map(number).acknowledge().take(100_000):
        if n % 10_000 == 9_999:
            sizes.append(resident())
    assert len(sizes) == 10
    assert sizes[-1] - sizes[1] < 8_000_000  # the backlog has 100 bytes of text alone a record


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"servers": 7}, TypeError, "servers must be a str"),
    ({"servers": ""}, ValueError, "servers must be host:port"),
    ({"servers": "SASL_PLAINTEXT://me:secret@host:9092"}, ValueError, "servers must be host:port"),
    ({"topics": 7}, TypeError, "topics must be"),
    ({"topics": ""}, ValueError, "topics must be"),
    ({"topics": []}, ValueError, "topics must be"),
    ({"topics": ["a", 7]}, TypeError, "topics must be"),
    ({"group": 7}, TypeError, "group must be a str"),
    ({"group": ""}, TypeError, "group must be a str"),
    ({"start": "newest"}, ValueError, "start must be"),
    ({"executor": None}, TypeError, "Executor is needed"),
    ({"at_most": 0}, ValueError, "at_most must be at least 1"),
    ({"at_most": 1.5}, TypeError, "at_most must be an int"),
    ({"timeout": -1}, ValueError, "timeout must be a number of seconds above 0"),
    ({"options": {"enable.auto.commit": True}}, ValueError, "the adapter sets enable.auto.commit"),
    ({"options": {"group.id": "x", "error_cb": print}}, ValueError, "the adapter sets error_cb, group.id"),
]


@pytest.mark.parametrize(
    ("bad", "kind", "text"), BAD, ids=[f"{next(iter(bad))}-{n}" for n, (bad, *_) in enumerate(BAD)]
)
def test_bad_arguments_are_refused_at_once(
    pool: ThreadPoolExecutor, bad: dict[str, Any], kind: type[Exception], text: str
) -> None:
    arguments = {"servers": "localhost:1", "topics": "s", "group": "g", "executor": pool, **bad}
    with pytest.raises(kind, match=text) as raised:
        read(**arguments)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ({"topic": 7}, TypeError),
        ({"topic": ""}, ValueError),
        ({"key": 7}, TypeError),
        ({"value": 7}, TypeError),
        ({"headers": 7}, TypeError),
        ({"timeout": 0}, ValueError),
    ],
)
def test_bad_arguments_of_a_writer_are_refused_at_once(bad: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind, match=f"Writer: {next(iter(bad))} must"):
        Writer(**{"servers": "localhost:1", "topic": "s", **bad})


def test_explain_shows_the_topic_and_the_pool(pool: ThreadPoolExecutor) -> None:
    flow = read("localhost:1", "orders", "billing", executor=pool, options={"sasl.password": "secret"})
    assert "read('orders', 'billing')" in flow.elements().explain()
    assert "secret" not in flow.elements().explain()


def test_the_example_bills_orders(server: KafkaServer, pool: ThreadPoolExecutor) -> None:
    for name in ("orders", "bills", "unbilled"):
        server.make(name)
    orders = [b"tea 2", b"milk four", b"beer 1", b"milk 4"]
    with (
        Writer(server.servers, "orders", key=lambda order: order[:1]) as writer,
        ThreadPoolExecutor(4) as workers,
        orders_in_kafka.writers(server.servers) as (bills, unbilled),
    ):
        writer.append(orders)
        sink = Sink()
        orders_in_kafka.billing(server.servers, pool, workers, bills, unbilled).subscribe(sink)
        until(lambda: server.committed("orders", "billing") == {0: 4})
        sink.subscription.cancel()
    assert sorted(server.values("bills")[0]) == [(b"m", b"4"), (b"t", b"6")]
    assert sorted(value or b"" for _, value in server.values("unbilled")[0]) == [b"beer 1", b"milk four"]
