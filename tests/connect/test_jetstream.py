"""NATS JetStream, against a real server: by demand, at least once, and never a hang."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from nats.aio.transport import TcpTransport
from nats.js import api
from sinks import PATIENCE, Sink, until

from connect.nats_server import NAME, NatsServer
from connect.redis_server import free_port
from examples.connect import orders_in_nats
from reactive_runtime import Flow
from reactive_runtime._core.runtime import eventloop
from reactive_runtime.connect import AckedFlow
from reactive_runtime.connect.jetstream import JetStreamError, Message, Writer, read
from reactive_runtime.errors import RejectedError
from reactive_runtime.hooks import Dropped, captured

ROOT = Path(__file__).parents[2]
names = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    yield server
    server.close()


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[NatsServer]:
    """A server of its own, to be killed."""
    server = NatsServer(tmp_path)
    yield server
    server.close()


@pytest.fixture
def stream(server: NatsServer) -> str:
    name = f"S{next(names)}"
    server.make(name)
    return name


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1, thread_name_prefix="nats") as pool:
        yield pool


@pytest.fixture(autouse=True)
def loop_ends() -> Iterator[None]:
    """Each connection gives the event loop back."""
    yield
    gc.collect()
    assert eventloop.wait_until_ended(PATIENCE), "a connection is open"


def reading(server: NatsServer, stream: str, pool: ThreadPoolExecutor, **more: Any) -> AckedFlow[Message]:
    return read(server.url, stream, "c", executor=pool, options={"name": NAME}, **more)


def number(message: Message) -> int:
    return int(message.data.split()[0])


def numbers(sink: Sink) -> list[int]:
    return [number(element.value) for element in sink.elements]


def handled(flow: AckedFlow[Message], n: int) -> list[int]:
    """The numbers of the first `n` messages, each acknowledged."""
    taken = flow.through(lambda elements: elements.take(n)).map(number).acknowledge()
    return taken.to_list().block(timeout=PATIENCE) or []


def all_handled(flow: AckedFlow[Message], expected: set[int]) -> None:
    """Acknowledge messages until these have come; one may come twice."""
    got: set[int] = set()

    def one(message: Message) -> Message:
        got.add(number(message))
        return message

    sink = Sink(then=lambda sink, _: sink.subscription.cancel() if got == expected else None)
    flow.map(one).acknowledge().subscribe(sink)
    until(lambda: got >= expected)
    assert got == expected


def error_of(sink: Sink) -> BaseException:
    end = sink.wait().end
    assert end is not None
    assert isinstance(end[1], BaseException)
    return end[1]


def settle_all(elements: Iterable[Any]) -> None:
    for element in elements:
        element.acknowledge()


def closed(server: NatsServer) -> None:
    until(lambda: server.connections() == 0)


# -- every value, by demand --------------------------------------------------------------------------------------


def test_each_message_comes_once_in_order_and_is_acknowledged(
    server: NatsServer, stream: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(stream, range(5_000))
    assert handled(reading(server, stream, pool), 5_000) == list(range(5_000))
    closed(server)
    until(lambda: server.left(stream) == 0)
    assert server.delivered(stream) == 5_000


def test_what_a_message_has(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.run(server.stream.publish, f"{stream}.eu", b"body", headers={"Kind": "tea", "Status": "404"})
    [message] = reading(server, stream, pool).through(lambda flow: flow.take(1)).acknowledge().to_list().block() or []
    assert (message.subject, message.data, message.sequence, message.deliveries) == (f"{stream}.eu", b"body", 1, 1)
    assert message.headers["Kind"] == "tea"


def test_messages_that_come_later_are_read(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    sink = Sink()
    reading(server, stream, pool).acknowledge().subscribe(sink)
    for n in range(3):
        server.fill(stream, range(n, n + 1))
        sink.wait_for(1)
    assert [number(message) for message in sink.elements] == [0, 1, 2]
    assert sink.threads == {"nats_0"}
    sink.subscription.cancel()
    closed(server)


def test_no_thread_is_busy_while_there_is_no_message(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    sink = Sink()
    reading(server, stream, pool).elements().subscribe(sink)
    until(lambda: server.has_consumer(stream) and bool(server.info(stream).num_waiting))
    assert pool.submit(lambda: 7).result(PATIENCE) == 7
    sink.subscription.cancel()
    closed(server)


def test_no_more_is_pulled_than_is_demanded(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(100))
    sink = Sink(demand=0)
    reading(server, stream, pool).elements().subscribe(sink)
    read = 0
    for n in (1, 3, 7, 20):
        sink.subscription.request(n)
        sink.wait_for(n)
        read += n
        assert server.delivered(stream) == server.pending(stream) == read
    sink.subscription.cancel()
    assert numbers(sink) == list(range(read))
    settle_all(sink.elements)
    closed(server)
    assert server.delivered(stream) == read


def test_without_demand_there_is_no_connection(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    sink = Sink(demand=0)
    before = server.connected()
    reading(server, stream, pool).elements().subscribe(sink)
    sink.subscription.cancel()
    pool.submit(lambda: None).result(PATIENCE)
    assert server.connected() == before


@pytest.mark.parametrize(
    ("through", "most"),
    [
        (lambda flow, other: flow.take(10), 10),
        (lambda flow, other: flow.filter(lambda element: number(element.value) % 2), 20),
        (lambda flow, other: flow.publish_on(other, prefetch=8), 18),
        (lambda flow, other: flow.map_parallel(lambda element: element, other, concurrency=4), 14),
    ],
    ids=["take", "filter", "publish_on", "map_parallel"],
)
def test_operators_pull_no_more_than_they_hold(
    server: NatsServer,
    stream: str,
    pool: ThreadPoolExecutor,
    through: Callable[[Flow[Any], ThreadPoolExecutor], Flow[Any]],
    most: int,
) -> None:
    server.fill(stream, range(1_000))
    sink = Sink(demand=10)
    with ThreadPoolExecutor(4) as other, captured() as dropped:
        through(reading(server, stream, pool).elements(), other).subscribe(sink)
        sink.wait_for(10)
        delivered = server.delivered(stream)
        sink.subscription.cancel()

        def is_closed() -> bool:  # what was dropped is held by `dropped`
            settle_all([*sink.elements, *(drop.element for drop in dropped)])
            return server.connections() == 0

        until(is_closed)
    assert 10 <= delivered <= most


def test_at_most_bounds_one_pull(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(50))
    sizes = []
    flow = reading(server, stream, pool, at_most=5).through(lambda elements: elements.take(50))
    flow.for_each(lambda _: sizes.append(server.delivered(stream)), timeout=PATIENCE)
    assert all(size <= 5 * (n // 5 + 1) for n, size in enumerate(sizes))
    assert sizes[-1] == 50


def test_two_flows_share_the_messages(server: NatsServer, stream: str) -> None:
    server.fill(stream, range(400))
    with ThreadPoolExecutor(1) as pool:  # one thread for both
        flows = [reading(server, stream, pool, at_most=10).map(number).acknowledge() for _ in "ab"]
        got = Flow.merge(*flows).take(400).to_list().block(timeout=PATIENCE)
    assert sorted(got or []) == list(range(400))
    closed(server)


def test_a_new_consumer_gets_its_subject_from_its_start(
    server: NatsServer, stream: str, pool: ThreadPoolExecutor
) -> None:
    for n, name in enumerate(("eu", "us", "eu")):
        server.run(server.stream.publish, f"{stream}.{name}", b"%d" % n)
    flow = read(server.url, stream, "eu", executor=pool, subject=f"{stream}.eu")
    assert handled(flow, 2) == [0, 2]
    assert handled(read(server.url, stream, "last", executor=pool, start="last"), 1) == [2]
    sink = Sink()
    read(server.url, stream, "new", executor=pool, start="new").elements().subscribe(sink)
    until(lambda: server.has_consumer(stream, "new"))
    server.run(server.stream.publish, f"{stream}.eu", b"3")
    sink.wait_for(1)
    assert numbers(sink) == [3]
    sink.subscription.cancel()
    sink.elements[0].acknowledge()


# -- acknowledgements --------------------------------------------------------------------------------------------


def test_acknowledgements_go_out_without_demand(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(10))
    sink = Sink(demand=5)
    reading(server, stream, pool).elements().subscribe(sink)
    sink.wait_for(5)
    for left, element in enumerate(reversed(sink.elements)):
        assert element.acknowledge()
        until(lambda left=left: server.pending(stream) == 4 - left)  # type: ignore[misc]
    sink.subscription.cancel()
    closed(server)


def test_what_is_acknowledged_after_a_cancel_is_sent(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(3))
    sink = Sink(demand=3)
    reading(server, stream, pool).elements().subscribe(sink)
    sink.wait_for(3)
    sink.subscription.cancel()
    assert server.pending(stream) == 3
    threads = [threading.Thread(target=element.acknowledge) for element in sink.elements[:2]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    until(lambda: server.pending(stream) == 1)
    assert server.connections() == 1  # one element is not settled
    sink.elements[2].acknowledge()
    closed(server)
    until(lambda: server.pending(stream) == 0)


def test_elements_that_no_code_has_any_more_close_the_connection(
    server: NatsServer, stream: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(stream, range(3))
    sink = Sink(demand=3)
    reading(server, stream, pool).elements().subscribe(sink)
    sink.wait_for(3)
    sink.elements[0].acknowledge()
    sink.subscription.cancel()
    del sink
    until(lambda: gc.collect() >= 0 and server.connections() == 0)
    until(lambda: server.pending(stream) == 2)


def test_elements_of_a_flow_that_has_failed_close_its_connection(
    server: NatsServer, stream: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(stream, range(1))
    sink = Sink(demand=2)
    reading(server, stream, pool).elements().subscribe(sink)
    sink.wait_for(1)
    server.run(server.stream.delete_consumer, stream, "c")
    sink.wait()
    del sink
    until(lambda: gc.collect() >= 0 and server.connections() == 0)


def test_a_handler_that_fails_refuses_its_message(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(10))
    with pytest.raises(ZeroDivisionError):
        reading(server, stream, pool).for_each(lambda message: 1 // (7 - number(message)), timeout=PATIENCE)
    closed(server)
    all_handled(reading(server, stream, pool), {7, 8, 9})  # 7, and those pulled behind it
    closed(server)


def test_a_refused_message_comes_again_after_its_time(
    server: NatsServer, stream: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(stream, range(3))
    sink = Sink(demand=4)
    reading(server, stream, pool, refused_after=0.2).elements().subscribe(sink)
    sink.wait_for(3)
    sink.elements[1].refuse(ValueError("not now"))
    sink.wait_for(1)
    assert numbers(sink) == [0, 1, 2, 1]
    assert [element.value.deliveries for element in sink.elements] == [1, 1, 1, 2]
    sink.subscription.cancel()
    settle_all(sink.elements)
    closed(server)
    until(lambda: server.left(stream) == 0)


def test_what_is_not_settled_comes_again(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(2))
    sink = Sink(demand=4)
    reading(server, stream, pool, ack_wait=1).elements().subscribe(sink)
    sink.wait_for(4)
    assert sorted(numbers(sink)) == [0, 0, 1, 1]
    sink.subscription.cancel()
    settle_all(sink.elements)
    closed(server)


WORKER = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
from reactive_runtime.connect.jetstream import Writer, read

url, stream, handled, dead = sys.argv[1:]

def handle(message):
    with open(handled, "a") as file:
        print(message.data.decode(), file=file)
    if message.data == b"5":
        os._exit(9)
    return message.data

def bury(message):
    with open(dead, "a") as file:
        print(message.data.decode(), message.deliveries, file=file)

with ThreadPoolExecutor(1) as pool:
    flow = read(
        url, stream, "c", executor=pool, at_most=1, ack_wait=3, max_deliveries=3, dead_letters=bury,
    )
    flow.map(handle).acknowledge().run()
"""


def test_a_message_that_kills_its_workers_becomes_a_dead_letter(
    server: NatsServer, stream: str, tmp_path: Path
) -> None:
    server.fill(stream, range(20))
    handled, dead = tmp_path / "handled", tmp_path / "dead"
    command = [sys.executable, "-c", WORKER, server.url, stream, str(handled), str(dead)]
    ends: list[int | None] = []

    def over(worker: subprocess.Popen[bytes]) -> bool:
        return worker.poll() is not None or (dead.exists() and server.left(stream) == 0)

    while None not in ends:
        with subprocess.Popen(command, cwd=ROOT) as worker:
            until(partial(over, worker))
            ends.append(worker.poll())
            worker.kill()
    assert ends == [9, 9, 9, None]
    assert dead.read_text() == "5 3\n"
    done = [int(n) for n in handled.read_text().split()]
    assert set(done) == set(range(20))
    assert done.count(5) == 3


ONE_READ = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from reactive_runtime._core.runtime import eventloop
from reactive_runtime.connect.jetstream import read

loop = eventloop.borrow()
def handle(message):
    if message.sequence == 300:
        loop.call_soon_threadsafe(time.sleep, 1)  # the loop is busy when the main thread has ended
    return message
with ThreadPoolExecutor(1) as pool:
    flow = read(sys.argv[1], sys.argv[2], "c", executor=pool).through(lambda elements: elements.take(300)).map(handle)
    assert flow.acknowledge().count().block(timeout=60) == 300
"""


def test_the_end_of_the_process_sends_what_is_acknowledged(server: NatsServer, stream: str) -> None:
    server.fill(stream, range(300))
    subprocess.run([sys.executable, "-c", ONE_READ, server.url, stream], cwd=ROOT, check=True, timeout=PATIENCE)
    assert server.left(stream) == 0


def test_a_dead_letter_that_is_refused_comes_again(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(1))
    got: list[Message] = []

    def refuse(message: Message) -> None:
        got.append(message)
        raise OSError("the disk is full")

    def fail(message: Message) -> None:
        raise ValueError("no")

    flow = reading(server, stream, pool, max_deliveries=1, dead_letters=refuse)
    with pytest.raises(ValueError, match="no"):
        flow.for_each(fail, timeout=PATIENCE)
    with pytest.raises(OSError, match="the disk is full") as raised:
        flow.for_each(fail, timeout=PATIENCE)
    assert "for the message 1" in "".join(traceback.format_exception(raised.value))
    closed(server)
    assert [message.deliveries for message in got] == [1]
    reading(server, stream, pool, max_deliveries=1, dead_letters=got.append).elements().subscribe(sink := Sink())
    until(lambda: len(got) == 2 and server.left(stream) == 0)
    sink.subscription.cancel()
    assert not sink.elements


# -- cancel --------------------------------------------------------------------------------------------------------


def test_a_cancel_while_the_stream_is_empty(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    sink = Sink()
    reading(server, stream, pool).elements().subscribe(sink)
    until(lambda: server.connections() == 1)
    sink.subscription.cancel()
    closed(server)
    assert sink.end is None


def test_a_cancel_while_the_server_does_not_answer(mortal: NatsServer, pool: ThreadPoolExecutor) -> None:
    mortal.make("orders")
    sink = Sink()
    mortal.stop()
    with captured() as dropped:
        reading(mortal, "orders", pool, timeout=0.5).elements().subscribe(sink)
        sink.subscription.cancel()
        pool.submit(lambda: None).result(PATIENCE)
        assert eventloop.wait_until_ended(PATIENCE)
        mortal.go_on()
    closed(mortal)
    assert sink.signals == [("on_subscribe",)]
    assert not dropped


def test_a_cancel_while_a_connected_server_does_not_answer(mortal: NatsServer, pool: ThreadPoolExecutor) -> None:
    mortal.make("orders")
    sink = Sink()
    with captured() as dropped:
        reading(mortal, "orders", pool, timeout=0.5).elements().subscribe(sink)
        until(lambda: mortal.has_consumer("orders") and bool(mortal.info("orders").num_waiting))
        mortal.stop()
        sink.subscription.cancel()
        pool.submit(lambda: None).result(PATIENCE)
        assert eventloop.wait_until_ended(PATIENCE)
        mortal.go_on()
    closed(mortal)
    assert sink.signals == [("on_subscribe",)]
    assert {type(drop.error) for drop in dropped} <= {JetStreamError}


def test_nothing_comes_after_a_cancel_inside_of_a_pull(
    server: NatsServer, stream: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(stream, range(50))
    sink = Sink(then=lambda sink, element: sink.subscription.cancel() if len(sink.elements) == 7 else None)
    with captured() as dropped:
        reading(server, stream, pool).elements().subscribe(sink)
        sink.wait_for(7)
        assert len(sink.elements) == 7
    assert numbers(sink) == list(range(7))
    assert not [drop for drop in dropped if drop.error is not None]
    for element in sink.elements:
        element.refuse()
    closed(server)
    all_handled(reading(server, stream, pool), set(range(50)))


def test_a_flow_that_is_garbage_closes_its_connection(
    server: NatsServer, stream: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(stream, range(3))
    sink = Sink(demand=1)
    reading(server, stream, pool).elements().subscribe(sink)
    sink.wait_for(1)
    pool.submit(lambda: None).result(PATIENCE)
    assert server.connections() == 1
    del sink
    until(lambda: gc.collect() >= 0 and server.connections() == 0)


def test_a_pool_that_is_shut_down_ends_the_flow(server: NatsServer, stream: str) -> None:
    sink = Sink()
    pool = ThreadPoolExecutor(1)
    reading(server, stream, pool).elements().subscribe(sink)
    until(lambda: server.has_consumer(stream))
    pool.shutdown()
    server.fill(stream, range(1))
    assert isinstance(error_of(sink), RejectedError)
    closed(server)


# -- servers that fail -----------------------------------------------------------------------------------------------

PASSWORD = "sEcr3t@w0rd"
QUOTED = "sEcr3t%40w0rd"


def everything_said(error: BaseException, flow: AckedFlow[Any], caplog: pytest.LogCaptureFixture) -> str:
    texts = [str(error), repr(error), *traceback.format_exception(error), flow.elements().explain(), repr(flow)]
    return "\n".join([*texts, caplog.text, *getattr(error, "__notes__", ())])


def failure(flow: AckedFlow[Any]) -> JetStreamError:
    with pytest.raises(JetStreamError) as raised:
        flow.for_each(print, timeout=PATIENCE)
    return raised.value


def test_a_server_that_is_down_is_named(pool: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    port = free_port()
    flow = read(f"nats://me:{QUOTED}@127.0.0.1:{port}", "orders", "c", executor=pool)
    error = failure(flow)
    assert f"read('orders' at 127.0.0.1:{port}): can't connect" in str(error)
    said = everything_said(error, flow, caplog)
    assert PASSWORD not in said
    assert QUOTED not in said


@pytest.mark.parametrize("right", ["me:right", "right"], ids=["password", "token"])
def test_a_wrong_password_is_not_shown(
    tmp_path: Path, pool: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture, right: str
) -> None:
    caplog.set_level(logging.DEBUG)
    settings = ["--user", "me", "--pass", "right"] if ":" in right else ["--auth", "right"]
    server = NatsServer(tmp_path, *settings, user=f"{right}@")
    try:
        server.make("orders")
        server.fill("orders", range(1))
        for user in (f"me:{QUOTED}@", f"{QUOTED}@", ""):
            flow = read(f"nats://{user}127.0.0.1:{server.port}", "orders", "c", executor=pool)
            error = failure(flow)
            assert f"127.0.0.1:{server.port}): it refuses the user" in str(error)
            said = everything_said(error, flow, caplog)
            assert PASSWORD not in said
            assert QUOTED not in said
        assert handled(read(server.url, "orders", "c", executor=pool), 1) == [0]
        assert eventloop.wait_until_ended(PATIENCE)
    finally:
        server.close()


@pytest.mark.parametrize(
    "url",
    [
        f"nats://me:{PASSWORD}/x@host:4222",
        f"http://me:{PASSWORD}@host",
        f"nats://me:1#{PASSWORD}@host",
        "nats://[::",
        f"nats://host,nats://me:a/{PASSWORD}@host",
        "",
    ],
)
def test_a_url_that_cannot_be_read_is_not_shown(url: str, pool: ThreadPoolExecutor) -> None:
    with pytest.raises(ValueError, match="the URL can't be read") as raised:
        read(url, "orders", "c", executor=pool)
    assert "sEcr3t" not in "".join(traceback.format_exception(raised.value))


def test_several_servers_are_tried(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(1))
    url = f"127.0.0.1:{free_port()}, {server.url}"
    assert handled(read(url, stream, "c", executor=pool), 1) == [0]


def test_a_server_without_jetstream_is_named(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    config = tmp_path / "config"
    config.write_text("accounts { A { users: [{user: me, password: right}] } }\n")
    server = NatsServer(tmp_path, "-c", str(config), user="me:right@")
    try:
        error = failure(read(server.url, "orders", "c", executor=pool, timeout=2))
        assert f"read('orders' at 127.0.0.1:{server.port}): JetStream does not answer" in str(error)
        assert eventloop.wait_until_ended(PATIENCE)
    finally:
        server.close()


def test_a_stream_that_is_not_there_is_named(server: NatsServer, pool: ThreadPoolExecutor) -> None:
    error = failure(read(server.url, "NONE", "c", executor=pool))
    assert f"read('NONE' at 127.0.0.1:{server.port}): there is no such stream" in str(error)


def test_a_consumer_of_another_kind_is_refused(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    config = api.ConsumerConfig(durable_name="c", deliver_subject="there", ack_policy=api.AckPolicy.EXPLICIT)
    server.run(server.stream.add_consumer, stream, config)
    assert "is none that pulls" in str(failure(reading(server, stream, pool)))


def test_a_consumer_that_is_deleted_fails_the_flow(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    sink = Sink()
    reading(server, stream, pool).elements().subscribe(sink)
    until(lambda: server.has_consumer(stream) and bool(server.info(stream).num_waiting))
    server.run(server.stream.delete_consumer, stream, "c")
    with pytest.raises(JetStreamError, match=f"{stream}.*the consumer 'c' can't be read: Consumer Deleted"):
        raise error_of(sink)
    closed(server)


def test_a_server_that_stays_away_fails_the_flow(mortal: NatsServer, pool: ThreadPoolExecutor) -> None:
    mortal.make("orders")
    mortal.fill("orders", range(3))
    sink = Sink()
    reading(mortal, "orders", pool, reconnect=0.5).acknowledge().subscribe(sink)
    sink.wait_for(3)
    until(lambda: mortal.left("orders") == 0)
    mortal.kill()
    with pytest.raises(JetStreamError, match=f"read\\('orders' at 127.0.0.1:{mortal.port}\\): the connection is lost"):
        raise error_of(sink)


@pytest.mark.parametrize("comes", ["an error", "a connection"])
def test_a_lost_cancel_of_a_reconnect_is_made_up_for(
    mortal: NatsServer, pool: ThreadPoolExecutor, comes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `asyncio.wait_for` of Python 3.11 loses it: the outcome comes together with the cancel."""
    connect = TcpTransport.connect
    connecting, ends = threading.Event(), threading.Event()

    async def connect_late(self: TcpTransport, *arguments: Any, **more: Any) -> None:
        if threading.current_thread().name == "reactive-loop" and not ends.is_set():  # and not the test's own client
            connecting.set()
            try:
                await asyncio.sleep(PATIENCE)
            except asyncio.CancelledError:
                ends.set()
                if comes == "an error":
                    raise ConnectionRefusedError from None
        await connect(self, *arguments, **more)

    mortal.make("orders")
    mortal.fill("orders", range(3))
    sink = Sink()
    reading(mortal, "orders", pool).acknowledge().subscribe(sink)
    sink.wait_for(3)
    until(lambda: mortal.left("orders") == 0)
    monkeypatch.setattr(TcpTransport, "connect", connect_late)
    mortal.kill()
    mortal.start()
    assert connecting.wait(PATIENCE)
    sink.subscription.cancel()
    assert ends.wait(PATIENCE)  # and `loop_ends` waits for the end of the connection


@pytest.mark.parametrize("reconnect", [60, 0], ids=["of its own", "by a retry"])
def test_a_flow_goes_on_when_the_server_is_back(
    mortal: NatsServer, pool: ThreadPoolExecutor, reconnect: float, dropped: list[Dropped]
) -> None:
    """At least once: none is lost, and only those come again that were under way.

    The hook hears of acknowledgements that a closed connection may have lost.
    """
    mortal.make("orders")
    mortal.fill("orders", range(2_001))
    got: list[int] = []
    half, back = threading.Event(), threading.Event()

    def handle(message: Message) -> int:
        got.append(number(message))
        if len(got) == 1_000:
            half.set()
            assert back.wait(PATIENCE)
        return number(message)

    flow = reading(mortal, "orders", pool, reconnect=reconnect, ack_wait=2).map(handle).acknowledge()
    if not reconnect:
        flow = flow.retry_backoff(50, first=0.05, when=JetStreamError)
    sink = Sink(then=lambda sink, _: sink.subscription.cancel() if set(got) == set(range(2_001)) else None)
    flow.subscribe(sink)
    assert half.wait(PATIENCE)
    mortal.kill()
    mortal.start()
    back.set()
    until(lambda: set(got) == set(range(2_001)))
    closed(mortal)
    assert {type(drop.error) for drop in dropped if drop.error} <= {JetStreamError}
    assert len(got) < 2 * 2_001  # a server that is killed forgets acknowledgements that it has not written
    assert sink.end is None
    if mortal.left("orders"):  # an acknowledgement that the kill took along
        rest = Sink()
        reading(mortal, "orders", pool).acknowledge().subscribe(rest)
        until(lambda: mortal.left("orders") == 0)
        rest.subscription.cancel()


# -- the writer ----------------------------------------------------------------------------------------------------


def writer(server: NatsServer, stream: str, **more: Any) -> Writer:
    return Writer(server.url, stream, data=lambda n: b"%d" % n, options={"name": NAME}, **more)


def test_a_writer_publishes_in_order(server: NatsServer, stream: str) -> None:
    with writer(server, stream, in_flight=10) as to:
        found = Flow.range(1_000).batch(64).map(to.append).flat_map_iterable(list).to_list().block(timeout=PATIENCE)
    assert found == list(range(1, 1_001))
    assert server.stored(stream) == [b"%d" % n for n in range(1_000)]
    closed(server)


def test_threads_share_the_connection_of_a_writer(server: NatsServer, stream: str) -> None:
    with writer(server, stream) as to, ThreadPoolExecutor(4) as pool:
        flow = Flow.range(400).batch(10).map_parallel(to.append, pool, concurrency=4)
        assert len(flow.flat_map_iterable(list).to_list().block(timeout=PATIENCE) or []) == 400
        assert server.connections() == 1
    closed(server)
    assert sorted(map(int, server.stored(stream))) == list(range(400))


def test_what_is_published_twice_with_its_id_is_there_once(server: NatsServer, stream: str) -> None:
    with writer(server, stream, ids=str) as to:
        assert to.append([1, 2]) == to.append([1, 2]) == [1, 2]
        assert to.append([2, 3]) == [2, 3]
    assert server.stored(stream) == [b"1", b"2", b"3"]


def test_a_relay_loses_and_doubles_nothing(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(500))
    server.make(f"{stream}-out")
    with Writer(server.url, f"{stream}-out", ids=bytes.decode) as to:
        flow = reading(server, stream, pool).through(lambda flow: flow.take(500)).map(lambda message: message.data)
        flow.buffer_timeout(100, 0.01).map(to.append).acknowledge().run(timeout=PATIENCE)
    until(lambda: server.left(stream) == 0)
    assert [int(body) for body in server.stored(f"{stream}-out")] == list(range(500))


def test_what_cannot_be_relayed_is_not_acknowledged(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(100))
    with Writer(server.url, "nowhere") as to, pytest.raises(JetStreamError, match="'nowhere' at 127"):
        reading(server, stream, pool).map(lambda message: message.data).batch(50).map(to.append).acknowledge().run()
    closed(server)
    assert server.left(stream) == 100


def test_a_message_that_is_refused_is_named(server: NatsServer, stream: str) -> None:
    server.run(server.stream.update_stream, name=stream, subjects=[stream, f"{stream}.*"], max_msg_size=100)
    with Writer(server.url, stream) as to, pytest.raises(JetStreamError, match=r"element 2 is not taken: .*maximum"):
        to.append([b"1", b"2", b"3" * 200, b"4"])


def test_a_stream_that_is_full_is_named(server: NatsServer, stream: str) -> None:
    full = api.DiscardPolicy.NEW
    server.run(server.stream.update_stream, name=stream, subjects=[stream], max_msgs=1, discard=full)
    with (
        Writer(server.url, stream) as to,
        pytest.raises(JetStreamError, match=r"element 1 .*.*; look at its limits.*exceeded"),
    ):
        to.append([b"1", b"2"])


def test_a_writer_whose_functions_fail_sends_nothing(server: NatsServer, stream: str) -> None:
    with Writer(server.url, stream, data=lambda n: b"%d" % (1 // n)) as to, pytest.raises(ZeroDivisionError):
        to.append([3, 2, 0])
    with Writer(server.url, stream) as to, pytest.raises(TypeError, match="a body must be bytes"):
        to.append([b"1", "2"])
    with Writer(server.url, stream, ids=len) as to, pytest.raises(TypeError, match="an id must be a str"):  # type: ignore[arg-type]
        to.append([b"1"])
    assert server.stored(stream) == []


def test_a_writer_names_a_server_that_is_down() -> None:
    port = free_port()
    with (
        Writer(f"nats://me:{QUOTED}@127.0.0.1:{port}", "out") as to,
        pytest.raises(JetStreamError, match=f"Writer\\('out' at 127.0.0.1:{port}\\): can't connect") as raised,
    ):
        to.append([b"1"])
    assert "sEcr3t" not in "".join(traceback.format_exception(raised.value))


def test_a_writer_goes_on_when_the_server_is_back(mortal: NatsServer) -> None:
    mortal.make("out")
    with Writer(mortal.url, "out", ids=bytes.decode, timeout=0.5) as to:
        to.append([b"1"])
        mortal.stop()
        with pytest.raises(JetStreamError, match=r"has not confirmed element 0 within 0\.5 s"):
            to.append([b"2"])
        mortal.go_on()
        mortal.kill()
        mortal.start()
        flow = Flow.just([b"2", b"3"]).map(to.append).retry_backoff(20, first=0.05, when=JetStreamError)
        assert flow.block(timeout=PATIENCE)
    assert sorted(mortal.stored("out")) == [b"1", b"2", b"3"]


def test_append_on_the_event_loop_is_refused(server: NatsServer, stream: str) -> None:
    with writer(server, stream) as to:

        async def one() -> int:
            await asyncio.sleep(0)
            to.append([1])
            return 1

        with pytest.raises(RuntimeError, match="was called on its thread"):
            Flow.from_coroutine(one).block(timeout=PATIENCE)


def test_a_writer_that_is_closed_refuses(server: NatsServer, stream: str) -> None:
    with writer(server, stream) as to:
        to.append([1])
    with pytest.raises(ValueError, match="the writer is closed"):
        to.append([2])


# -- memory, and arguments -------------------------------------------------------------------------------------------


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_a_long_backlog_needs_no_memory(server: NatsServer, stream: str, pool: ThreadPoolExecutor) -> None:
    for begin in range(0, 100_000, 20_000):
        server.fill(stream, range(begin, begin + 20_000), b" " + b"x" * 100)
    sizes = []
    flow = reading(server, stream, pool).map(number)
    for n in flow.through(lambda flow: flow.take(100_000)).acknowledge():
        if n % 10_000 == 9_999:
            sizes.append(resident())
    assert len(sizes) == 10
    assert sizes[-1] - sizes[0] < 8_000_000  # the backlog has 10 MB
    closed(server)
    server.run(server.stream.delete_stream, stream)


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"url": 7}, TypeError, "url must be a str"),
    ({"stream": None}, TypeError, "name must be a str"),
    ({"consumer": 7}, TypeError, "must be str"),
    ({"consumer": "a.b"}, ValueError, "must be a name without dots"),
    ({"consumer": ""}, ValueError, "must be a name"),
    ({"subject": 7}, TypeError, "must be str"),
    ({"start": "first"}, ValueError, "start"),
    ({"executor": None}, TypeError, "Executor is needed"),
    ({"at_most": 0}, ValueError, "at_most must be at least 1"),
    ({"ack_wait": 0}, ValueError, "ack_wait must be a number of seconds above 0"),
    ({"refused_after": -1}, ValueError, "refused_after must be"),
    ({"reconnect": "1"}, TypeError, "reconnect must be a number of seconds"),
    ({"timeout": -1}, ValueError, "timeout must be a number of seconds above 0"),
    ({"max_deliveries": 3}, ValueError, "need each other"),
    ({"dead_letters": print}, ValueError, "need each other"),
    ({"max_deliveries": 0, "dead_letters": print}, ValueError, "max_deliveries must be at least 1"),
    ({"max_deliveries": 1, "dead_letters": 7}, TypeError, "dead_letters must be callable"),
]


@pytest.mark.parametrize(
    ("bad", "kind", "text"), BAD, ids=[f"{next(iter(bad))}-{n}" for n, (bad, *_) in enumerate(BAD)]
)
def test_bad_arguments_are_refused_at_once(
    pool: ThreadPoolExecutor, bad: dict[str, Any], kind: type[Exception], text: str
) -> None:
    arguments = {"url": "nats://localhost", "stream": "s", "consumer": "c", "executor": pool, **bad}
    with pytest.raises(kind, match=text):
        read(**arguments)


@pytest.mark.parametrize(
    ("bad", "kind"),
    [({"data": 7}, TypeError), ({"ids": 7}, TypeError), ({"in_flight": 0}, ValueError), ({"timeout": 0}, ValueError)],
)
def test_bad_arguments_of_a_writer_are_refused_at_once(bad: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind, match=f"Writer: {next(iter(bad))} must be"):
        Writer("nats://localhost", "s", **bad)


def test_explain_shows_the_stream_and_no_password(pool: ThreadPoolExecutor) -> None:
    flow = read("nats://me:secret@localhost", "orders", "billing", executor=pool)
    assert "read('orders', 'billing')" in flow.elements().explain()
    assert "secret" not in flow.elements().explain()


def test_the_example_bills_orders(server: NatsServer, pool: ThreadPoolExecutor) -> None:
    for name in ("ORDERS", "BILLS", "UNBILLED"):
        server.run(server.stream.add_stream, name=name, subjects=[name.lower()])
    for order in (b'{"name": "tea", "count": 2}', b'{"name": "tea"}', b"beer", b'{"name": "milk", "count": 4}'):
        server.run(server.stream.publish, "orders", order)
    with (
        Writer(server.url, "bills", data=orders_in_nats.as_json, ids=orders_in_nats.number) as bills,
        Writer(server.url, "unbilled") as unbilled,
    ):
        sink = Sink()
        orders_in_nats.billing(server.url, pool, bills, unbilled).subscribe(sink)
        until(lambda: len(server.stored("BILLS")) == 2 and len(server.stored("UNBILLED")) == 2)
        until(lambda: not server.info("ORDERS", "billing").num_ack_pending)
        sink.subscription.cancel()
    assert server.stored("BILLS") == [b'{"order": 1, "sum": 6}', b'{"order": 4, "sum": 4}']
    assert server.stored("UNBILLED") == [b'{"name": "tea"}', b"beer"]
