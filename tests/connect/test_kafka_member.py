"""A member of a group of Kafka that leaves: the group hears it, or the client waits until it can."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition
from sinks import PATIENCE, Sink, until

from connect.kafka_server import KafkaServer
from reactive_runtime.connect._elements import last_notes
from reactive_runtime.connect._kafka.cluster import Cluster
from reactive_runtime.connect._kafka.member import Member
from reactive_runtime.connect._kafka.records import Topics, rows_of
from reactive_runtime.connect.kafka import Writer, read

UP = '{"brokers": {"b": {"state":"UP"}}, "cgrp": { "state": "up", "join_state": "steady" }}'
AWAY = '{"brokers": {"b": {"state":"INIT"}}, "cgrp": { "state": "query-coord", "join_state": "steady" }}'


class Client:
    """A consumer whose broker does something with each poll."""

    def __init__(self, *polls: Callable[[], object]) -> None:
        self.name: str | None = None
        self.polls = list(polls)
        self.answers = True
        self.left = ""
        self.closed = threading.Event()

    def memberid(self) -> str | None:
        return self.name

    def poll(self, timeout: float) -> None:
        if self.polls:
            self.polls.pop(0)()

    def committed(self, partitions: Any, timeout: float) -> Any:
        if not self.answers:
            self.answers = True  # the next time
            raise KafkaException(KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS))
        self.left += "answered, "
        return partitions

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> None:
        self.left += "".join(f"commit {each.offset}, " for each in offsets)

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition("orders", 0)]

    def pause(self, partitions: list[TopicPartition]) -> None:
        self.left += "pause, "

    def close(self) -> None:
        self.left += f"closed as {self.name}, {len(self.polls)} polls before its time"
        self.closed.set()


def member(client: Client) -> Member:
    cluster = Cluster("read", "localhost:1", "'orders'", 10.0, None, ())
    made = Member(Topics(cluster, ("orders",), "g", "earliest", 256), lambda: None)
    made.consumer = client
    return made


def test_a_member_that_joins_leaves_when_it_has_joined() -> None:
    client = Client()
    joining = member(client)

    def named() -> None:
        client.name = "me"

    client.polls = [named, lambda: joining.on_assign(client, [])]
    joining.leave(failed=False)
    assert client.closed.wait(PATIENCE)
    assert client.left == "answered, closed as me, 0 polls before its time"


def test_an_error_of_a_callback_as_a_member_leaves_goes_to_the_hook(dropped: list[Any]) -> None:
    failure = ValueError("of a callback")

    def fail() -> None:
        raise failure

    client = Client(fail)
    joining = member(client)
    joining.leave(failed=False)
    until(lambda: bool(dropped) and client.closed.is_set() and joining not in last_notes._closing)
    assert [drop.error for drop in dropped] == [failure]


def test_a_member_whose_partitions_go_leaves_when_it_has_joined_again() -> None:
    client = Client()
    joining = member(client)
    client.name = "me"
    joining.on_assign(client, [])
    joining.on_revoke(client, [])
    client.polls = [lambda: None, lambda: joining.health.on_statistics(UP)]
    joining.leave(failed=False)
    assert client.closed.wait(PATIENCE)
    assert client.left == "answered, closed as me, 0 polls before its time"


def test_a_member_leaves_when_the_broker_has_read_its_groups() -> None:
    client = Client()
    client.name = "me"
    client.answers = False
    away = member(client)
    away.health.on_statistics(AWAY)
    away.health.failure = KafkaError(KafkaError._ALL_BROKERS_DOWN)
    client.polls = [lambda: None, lambda: away.health.on_statistics(UP), lambda: None]
    away.leave(failed=True)
    assert client.closed.wait(PATIENCE)
    assert client.left == "answered, closed as me, 0 polls before its time"


def test_a_member_in_its_place_leaves_at_once() -> None:
    client = Client()
    client.name = "me"
    joined = member(client)
    joined.on_assign(client, [])
    joined.leave(failed=False)
    assert client.closed.is_set()


def test_a_member_that_waits_for_its_last_commit_takes_no_records() -> None:
    client = Client()
    client.name = "me"
    joined = member(client)
    [place] = [TopicPartition("orders", 0)]
    joined.on_assign(client, [place])
    [row] = rows_of([Message("orders", partition=0, offset=7)], joined.offsets, as_lists=False)
    [element] = row.elements
    element.acknowledge()
    place.offset = 8
    client.polls = [lambda: None, lambda: joined.on_commit(None, [place])]
    joined.leave(failed=False)
    assert client.left == "commit 8, pause, closed as me, 0 polls before its time"


def test_a_member_that_no_broker_knows_leaves_at_once() -> None:
    client = Client(lambda: None)
    unknown = member(client)
    unknown.health.failure = KafkaError(KafkaError._ALL_BROKERS_DOWN)
    unknown.leave(failed=True)
    assert client.left == "closed as None, 1 polls before its time"


def test_the_end_of_the_process_waits_for_a_member_that_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    monkeypatch.setattr(last_notes, "begin", lambda member: heard.append("begin"))
    monkeypatch.setattr(last_notes, "end", lambda member: heard.append("end"))
    client = Client()
    client.name = "me"
    joining = member(client)
    client.polls = [lambda: joining.on_assign(client, [])]
    joining.leave(failed=False)
    assert client.closed.wait(PATIENCE)
    until(lambda: heard == ["begin", "end"])


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1, thread_name_prefix="kafka") as pool:
        yield pool


def test_a_retry_does_not_wait_for_the_session_of_the_member_before(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    server = KafkaServer(tmp_path)
    try:
        server.make("orders")
        server.fill("orders", range(3))
        long = {"session.timeout.ms": 5 * 60 * 1_000}
        flow = read(server.servers, "orders", "g", executor=pool, timeout=1.0, options=long).acknowledge()
        first = Sink()
        flow.subscribe(first)
        first.wait_for(3)
        until(lambda: server.committed("orders") == {0: 3})
        server.kill()
        first.wait()
        server.start()
        server.fill("orders", range(3, 4))
        again = Sink()
        flow.subscribe(again)
        again.wait_for(1)
        again.subscription.cancel()
        until(lambda: server.members() == 0)
    finally:
        server.close()


# -- settings and secrets --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [0, "0", 60_000, "60000"])
def test_statistics_cannot_be_switched_off(interval: Any, pool: ThreadPoolExecutor) -> None:
    told: list[str] = []
    options = {"statistics.interval.ms": interval, "stats_cb": told.append}
    flow = read("localhost:1", "orders", "g", executor=pool, timeout=0.2, options=options)
    with pytest.raises(KafkaException, match="no broker can be reached"):
        flow.for_each(print, timeout=PATIENCE)
    assert told


def test_a_pattern_that_is_none_is_named(pool: ThreadPoolExecutor) -> None:
    before = threading.active_count()
    with pytest.raises(KafkaException, match=r"read\('\^\[' at localhost:1\)"):
        read("localhost:1", "^[", "g", executor=pool).for_each(print, timeout=PATIENCE)
    assert threading.active_count() <= before + 1  # that of the pool


def test_a_secret_inside_of_another_is_hidden(pool: ThreadPoolExecutor) -> None:
    options = {"sasl.password": "tiger", "ssl.key.password": "tigerlily", "sasl.mechanism": "tigerlily"}
    options["security.protocol"] = "sasl_plaintext"
    with pytest.raises(KafkaException) as raised:
        read("localhost:1", "orders", "g", executor=pool, options=options).for_each(print, timeout=PATIENCE)
    said = raised.value.args[0].str()
    assert "mechanism" in said
    assert "lily" not in said


def test_a_secret_of_one_letter_hides_no_words(pool: ThreadPoolExecutor) -> None:
    options = {"sasl.password": "e", "security.protocol": "none"}
    with pytest.raises(KafkaException, match=r"read\('orders' at localhost:1\): .*security\.protocol"):
        read("localhost:1", "orders", "g", executor=pool, options=options).for_each(print, timeout=PATIENCE)


def test_a_writer_with_transactions_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the adapter sets transactional\.id"):
        Writer("localhost:1", "orders", options={"transactional.id": "me"})
