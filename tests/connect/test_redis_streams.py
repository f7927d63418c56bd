"""Redis Streams, against a real server: by demand, at least once, and never a hang."""

from __future__ import annotations

import gc
import itertools
import logging
import shutil
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis
from sinks import PATIENCE, Sink, until

from connect.redis_server import NAME, RedisServer, free_port
from examples.connect import orders_in_redis
from reactive_runtime import Flow
from reactive_runtime.connect import AckedFlow
from reactive_runtime.connect._redis.group import Reading
from reactive_runtime.connect.redis_streams import Message, Writer, read
from reactive_runtime.errors import RejectedError
from reactive_runtime.hooks import Dropped, captured

ROOT = Path(__file__).parents[2]
names = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.close()


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[RedisServer]:
    """A server of its own, to be killed. It confirms only after its data is on the disk."""
    server = RedisServer(tmp_path, "--appendfsync", "always")
    yield server
    server.close()


@pytest.fixture
def stream() -> str:
    return f"stream-{next(names)}"


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1, thread_name_prefix="redis") as pool:
        yield pool


def reading(server: RedisServer, stream: str, pool: ThreadPoolExecutor, **more: Any) -> AckedFlow[Message]:
    return read(server.url, stream, "g", "me", executor=pool, options={"client_name": NAME}, **more)


def number(message: Message) -> int:
    return int(message.fields[b"n"])


def numbers(sink: Sink) -> list[int]:
    return [number(element.value) for element in sink.elements]


def handled(flow: AckedFlow[Message], n: int) -> list[int]:
    """The numbers of the first `n` entries, each acknowledged."""
    return (
        flow.through(lambda elements: elements.take(n)).map(number).acknowledge().to_list().block(timeout=PATIENCE)
        or []
    )


def error_of(sink: Sink) -> BaseException:
    """The error that the flow has failed with."""
    end = sink.wait().end
    assert end is not None
    assert isinstance(end[1], BaseException)
    return end[1]


def closed(server: RedisServer) -> None:
    until(lambda: server.connections() == 0)


# -- every value, by demand --------------------------------------------------------------------------------------


def test_each_entry_comes_once_in_order_and_is_acknowledged(
    server: RedisServer, stream: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(stream, range(5_000))
    assert handled(reading(server, stream, pool), 5_000) == list(range(5_000))
    closed(server)
    assert server.pending(stream) == 0
    assert server.delivered(stream) == 5_000


@pytest.mark.parametrize(
    "options", [{"protocol": 3}, {"decode_responses": True}, {"protocol": 3, "decode_responses": True}]
)
def test_other_settings_of_the_client(
    server: RedisServer, stream: str, pool: ThreadPoolExecutor, options: dict[str, Any]
) -> None:
    server.fill(stream, range(20))
    server.client.xgroup_create(stream, "g", "0")
    for name in ("me", "dead"):
        server.client.xreadgroup("g", name, {stream: ">"}, count=5)
    flow = read(server.url, stream, "g", "me", executor=pool, claim_after=0.01, options=options)
    got: list[Message] = []
    flow.through(lambda flow: flow.take(20)).for_each(got.append, timeout=PATIENCE)
    assert sorted(int(next(iter(message.fields.values()))) for message in got) == list(range(20))
    assert sorted(message.deliveries for message in got) == [1] * 10 + [2] * 10
    assert {type(key) for message in got for key in message.fields} == {str if "decode_responses" in options else bytes}
    until(lambda: server.pending(stream) == 0)


def test_entries_that_come_later_are_read(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
    sink = Sink()
    reading(server, stream, pool).acknowledge().subscribe(sink)
    for n in range(3):
        server.fill(stream, range(n, n + 1))
        sink.wait_for(1)
    assert [number(message) for message in sink.elements] == [0, 1, 2]
    assert sink.elements[0].deliveries == 1
    assert sink.threads == {"redis_0"}
    sink.subscription.cancel()
    closed(server)


def test_no_more_is_fetched_than_is_demanded(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
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
    closed(server)
    assert server.delivered(stream) == read
    assert numbers(sink) == list(range(read))


def test_without_demand_there_is_no_connection(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
    sink = Sink(demand=0)
    before = server.client.info("stats")["total_connections_received"]
    reading(server, stream, pool).elements().subscribe(sink)
    sink.subscription.cancel()
    pool.submit(lambda: None).result(PATIENCE)
    assert server.client.info("stats")["total_connections_received"] == before


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
def test_operators_fetch_no_more_than_they_hold(
    server: RedisServer,
    stream: str,
    pool: ThreadPoolExecutor,
    through: Callable[[Flow[Any], ThreadPoolExecutor], Flow[Any]],
    most: int,
) -> None:
    server.fill(stream, range(1_000))
    sink = Sink(demand=10)
    with ThreadPoolExecutor(4) as other:
        through(reading(server, stream, pool).elements(), other).subscribe(sink)
        sink.wait_for(10)
        sink.subscription.cancel()
        closed(server)
    assert 10 <= server.delivered(stream) <= most


def test_at_most_bounds_one_fetch(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(50))
    sizes = []
    before = server.calls("xreadgroup")
    flow = reading(server, stream, pool, at_most=5).through(lambda elements: elements.take(50))
    flow.for_each(lambda _: sizes.append(server.delivered(stream)), timeout=PATIENCE)
    assert sizes == [5 * (n // 5 + 1) for n in range(50)]
    assert server.calls("xreadgroup") - before == 10


def test_two_consumers_share_the_entries(server: RedisServer, stream: str) -> None:
    server.fill(stream, range(400))
    with ThreadPoolExecutor(1) as pool:  # one thread for both
        flows = [
            read(server.url, stream, "g", name, executor=pool, at_most=10).map(number).acknowledge() for name in "ab"
        ]
        got = Flow.merge(*flows).take(400).to_list().block(timeout=PATIENCE)
    assert sorted(got or []) == list(range(400))


# -- acknowledgements --------------------------------------------------------------------------------------------


def test_acknowledgements_go_out_without_demand(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(10))
    sink = Sink(demand=5)
    reading(server, stream, pool).elements().subscribe(sink)
    sink.wait_for(5)
    for left, element in enumerate(reversed(sink.elements)):
        assert element.acknowledge()
        until(lambda left=left: server.pending(stream) == 4 - left)  # type: ignore[misc]
    sink.subscription.cancel()
    closed(server)


def test_acknowledgements_go_out_while_the_stream_is_empty(
    server: RedisServer, stream: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(stream, range(3))
    sink = Sink()
    reading(server, stream, pool).elements().subscribe(sink)
    sink.wait_for(3)
    for element in sink.elements:
        element.acknowledge()
    until(lambda: server.pending(stream) == 0)
    sink.subscription.cancel()
    closed(server)


def test_acknowledgements_are_sent_in_batches(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(2_560))
    before = server.calls("xack")
    handled(reading(server, stream, pool), 2_560)
    closed(server)
    assert server.pending(stream) == 0
    assert server.calls("xack") - before < 256  # a slow machine sends more often than at each fetch


@pytest.mark.parametrize("n", [999, 1_001, 2_500])
def test_no_command_acknowledges_more_than_a_thousand(
    server: RedisServer, stream: str, pool: ThreadPoolExecutor, n: int
) -> None:
    server.fill(stream, range(n))
    sink = Sink(demand=n)
    reading(server, stream, pool).elements().subscribe(sink)
    sink.wait_for(n)
    pool.submit(lambda: [element.acknowledge() for element in sink.elements]).result(PATIENCE)
    until(lambda: server.pending(stream) == 0)
    sink.subscription.cancel()
    closed(server)


def test_what_is_acknowledged_is_so_at_the_server_when_the_pool_has_ended(server: RedisServer, stream: str) -> None:
    server.fill(stream, range(100))
    with ThreadPoolExecutor(1) as pool:
        assert handled(reading(server, stream, pool), 70) == list(range(70))
    assert server.pending(stream) == 0
    assert server.connections() == 0


def test_what_is_acknowledged_after_a_cancel_is_sent(
    server: RedisServer, stream: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(stream, range(3))
    sink = Sink(demand=3)
    reading(server, stream, pool).elements().subscribe(sink)
    sink.wait_for(3)
    sink.subscription.cancel()
    closed(server)
    assert server.pending(stream) == 3
    threads = [threading.Thread(target=element.acknowledge) for element in sink.elements[:2]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert server.pending(stream) == 1
    closed(server)


def test_an_error_of_a_late_acknowledgement_goes_to_the_one_who_acknowledges(
    mortal: RedisServer, pool: ThreadPoolExecutor
) -> None:
    mortal.fill("orders", range(1))
    sink = Sink(demand=1)
    reading(mortal, "orders", pool).elements().subscribe(sink)
    sink.wait_for(1)
    sink.subscription.cancel()
    closed(mortal)
    mortal.kill()
    with pytest.raises(redis.ConnectionError, match=f"'orders' at 127.0.0.1:{mortal.port}"):
        sink.elements[0].acknowledge()


def test_a_handler_that_fails_leaves_its_entry_pending(
    server: RedisServer, stream: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(stream, range(10))
    with pytest.raises(ZeroDivisionError):
        reading(server, stream, pool).for_each(lambda message: 1 // (7 - number(message)), timeout=PATIENCE)
    closed(server)
    left = server.client.xpending_range(stream, "g", "-", "+", 10)
    assert len(left) == 3  # 7, and those fetched behind it
    assert handled(reading(server, stream, pool), 3) == [7, 8, 9]
    closed(server)
    assert server.pending(stream) == 0


# -- what was delivered before ---------------------------------------------------------------------------------------


def test_its_own_pending_entries_come_first(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(600))
    sink = Sink(demand=600)
    reading(server, stream, pool).elements().subscribe(sink)
    sink.wait_for(600)
    for element in sink.elements[::2]:
        element.acknowledge()
    sink.subscription.cancel()
    closed(server)
    server.fill(stream, range(600, 610))
    got: list[Message] = []
    again = reading(server, stream, pool).through(lambda flow: flow.take(310)).map(lambda message: message)
    again.for_each(got.append, timeout=PATIENCE)
    assert [number(message) for message in got] == [*range(1, 600, 2), *range(600, 610)]
    assert {message.deliveries for message in got[:300]} == {2}
    assert {message.deliveries for message in got[300:]} == {1}


def test_what_others_have_left_behind_is_claimed(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(600))
    server.client.xgroup_create(stream, "g", "0")
    server.client.xreadgroup("g", "dead", {stream: ">"}, count=500)
    got: list[Message] = []
    flow = reading(server, stream, pool, claim_after=0.01).through(lambda flow: flow.take(600))
    flow.for_each(got.append, timeout=PATIENCE)
    assert sorted(map(number, got)) == list(range(600))
    assert {number(message) for message in got if message.deliveries == 2} == set(range(500))
    closed(server)
    assert server.pending(stream) == 0


def test_what_others_handle_is_not_claimed(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(10))
    server.client.xgroup_create(stream, "g", "0")
    server.client.xreadgroup("g", "alive", {stream: ">"}, count=5)
    assert handled(reading(server, stream, pool, claim_after=3600), 5) == [5, 6, 7, 8, 9]
    assert server.pending(stream) == 5


def test_what_it_handles_itself_does_not_come_twice(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(3))
    sink = Sink()
    reading(server, stream, pool, claim_after=0.01).elements().subscribe(sink)
    sink.wait_for(3)
    before = server.calls("xautoclaim")
    until(lambda: server.calls("xautoclaim") > before + 5)
    assert len(sink.elements) == 3
    sink.subscription.cancel()
    closed(server)


def test_a_refused_element_comes_again(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(3))
    sink = Sink()
    reading(server, stream, pool, claim_after=0.01).elements().subscribe(sink)
    sink.wait_for(3)
    sink.elements[1].refuse(ValueError("not now"))
    sink.wait_for(1)
    assert numbers(sink) == [0, 1, 2, 1]
    assert sink.elements[3].value.deliveries == 2
    sink.subscription.cancel()
    closed(server)


def test_entries_that_the_stream_has_no_more_are_passed_over(
    server: RedisServer, stream: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(stream, range(10))
    server.client.xgroup_create(stream, "g", "0")
    server.client.xreadgroup("g", "me", {stream: ">"}, count=6)
    server.client.xtrim(stream, minid=server.client.xrange(stream)[4][0], approximate=False)
    assert handled(reading(server, stream, pool), 6) == [4, 5, 6, 7, 8, 9]


WORKER = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
import redis
from reactive_runtime.connect.redis_streams import read

url, stream = sys.argv[1:]
client = redis.Redis.from_url(url)

def handle(message):
    client.rpush(stream + "-handled", message.fields[b"n"])
    if message.fields[b"n"] == b"5":
        os._exit(9)
    return message.fields[b"n"]

with ThreadPoolExecutor(1) as pool:
    flow = read(
        url, stream, "g", "me", executor=pool, max_deliveries=3,
        dead_letters=lambda dead: client.xadd(stream + "-dead", {**dead.fields, "deliveries": dead.deliveries}),
    )
    for number in flow.map(handle).acknowledge():
        if number == b"19":
            break
"""


def test_an_entry_that_kills_its_workers_becomes_a_dead_letter(server: RedisServer, stream: str) -> None:
    server.fill(stream, range(20))
    ends = []
    while 0 not in ends:
        command = [sys.executable, "-c", WORKER, server.url, stream]
        ends.append(subprocess.run(command, cwd=ROOT, timeout=PATIENCE, check=False).returncode)
        assert len(ends) < 9
    assert ends == [9, 9, 9, 0]
    dead = [entry for _, entry in server.client.xrange(f"{stream}-dead")]
    assert dead == [{b"n": b"5", b"deliveries": b"3"}]
    handled = [int(n) for n in server.client.lrange(f"{stream}-handled", 0, -1)]
    assert set(handled) == set(range(20))
    assert handled.count(5) == 3
    assert server.pending(stream) == 0


def test_a_dead_letter_that_is_refused_stays_pending(
    server: RedisServer, stream: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(stream, range(1))
    server.client.xgroup_create(stream, "g", "0")
    [[_, [(id, _)]]] = server.client.xreadgroup("g", "me", {stream: ">"})

    def refuse(message: Message) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full") as raised:
        reading(server, stream, pool, max_deliveries=1, dead_letters=refuse).for_each(print, timeout=PATIENCE)
    assert id.decode() in "".join(traceback.format_exception(raised.value))
    closed(server)
    assert server.pending(stream) == 1


# -- cancel --------------------------------------------------------------------------------------------------------


def test_a_cancel_while_the_stream_is_empty(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
    sink = Sink()
    reading(server, stream, pool).elements().subscribe(sink)
    until(lambda: server.connections() == 1)
    sink.subscription.cancel()
    pool.submit(lambda: None).result(PATIENCE)  # its thread is free
    closed(server)
    assert sink.end is None


def test_a_cancel_while_the_server_does_not_answer(
    mortal: RedisServer, pool: ThreadPoolExecutor, dropped: list[Dropped]
) -> None:
    sink = Sink()
    reading(mortal, "orders", pool, timeout=0.5).elements().subscribe(sink)
    until(lambda: mortal.connections() == 1)
    mortal.stop()
    sink.subscription.cancel()
    pool.submit(lambda: None).result(PATIENCE)
    mortal.go_on()
    closed(mortal)
    assert sink.signals == [("on_subscribe",)]
    assert {type(drop.error) for drop in dropped} <= {redis.TimeoutError}


def test_a_server_that_does_not_answer_fails_the_flow(mortal: RedisServer, pool: ThreadPoolExecutor) -> None:
    sink = Sink()
    reading(mortal, "orders", pool, timeout=0.5).elements().subscribe(sink)
    until(lambda: mortal.connections() == 1)
    mortal.stop()
    with pytest.raises(redis.TimeoutError, match=f"'orders' at 127.0.0.1:{mortal.port}"):
        raise error_of(sink)


def test_nothing_comes_after_a_cancel_inside_of_a_fetch(
    server: RedisServer, stream: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(stream, range(50))
    sink = Sink(then=lambda sink, element: sink.subscription.cancel() if len(sink.elements) == 7 else None)
    with captured() as dropped:
        reading(server, stream, pool).elements().subscribe(sink)
        sink.wait_for(7)
        closed(server)
    assert numbers(sink) == list(range(7))
    assert server.pending(stream) == 50
    assert not [drop for drop in dropped if drop.error is not None]
    assert handled(reading(server, stream, pool), 50) == list(range(50))


def test_a_flow_that_is_garbage_closes_its_connection(
    server: RedisServer, stream: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(stream, range(3))
    sink = Sink(demand=1)
    reading(server, stream, pool).elements().subscribe(sink)
    sink.wait_for(1)
    pool.submit(lambda: None).result(PATIENCE)
    assert server.connections() == 1
    del sink
    until(lambda: gc.collect() >= 0 and server.connections() == 0)


def test_a_pool_that_is_shut_down_ends_the_flow(server: RedisServer, stream: str) -> None:
    sink = Sink()
    pool = ThreadPoolExecutor(1)
    reading(server, stream, pool).elements().subscribe(sink)
    until(lambda: server.connections() == 1)
    pool.shutdown()
    assert isinstance(error_of(sink), RejectedError)
    closed(server)


# -- servers that fail -----------------------------------------------------------------------------------------------

PASSWORD = "sEcr3t@w0rd"
QUOTED = "sEcr3t%40w0rd"


def everything_said(error: BaseException, flow: AckedFlow[Any] | Flow[Any], caplog: pytest.LogCaptureFixture) -> str:
    elements = flow.elements() if isinstance(flow, AckedFlow) else flow
    texts = [str(error), repr(error), *traceback.format_exception(error), elements.explain(), repr(flow), caplog.text]
    return "\n".join([*texts, *getattr(error, "__notes__", ())])


def failure(flow: AckedFlow[Any]) -> redis.RedisError:
    with pytest.raises(redis.RedisError) as raised:
        flow.for_each(print, timeout=PATIENCE)
    return raised.value


def test_a_server_that_is_down_is_named(pool: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    port = free_port()
    url = f"redis://me:{QUOTED}@127.0.0.1:{port}/0"
    flow = read(url, "orders", "g", "me", executor=pool)
    error = failure(flow)
    assert isinstance(error, redis.ConnectionError)
    assert f"read('orders' at 127.0.0.1:{port})" in str(error)
    said = everything_said(error, flow, caplog)
    assert PASSWORD not in said
    assert QUOTED not in said


def test_a_wrong_password_is_not_shown(
    tmp_path: Path, pool: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server = RedisServer(tmp_path, "--requirepass", "right")
    try:
        flow = read(server.url.replace("//", f"//:{QUOTED}@"), "orders", "g", "me", executor=pool)
        error = failure(flow)
        assert isinstance(error, redis.AuthenticationError)
        assert f"127.0.0.1:{server.port}" in str(error)
        said = everything_said(error, flow, caplog)
        assert PASSWORD not in said
        assert QUOTED not in said
        assert isinstance(failure(read(server.url, "orders", "g", "me", executor=pool)), redis.AuthenticationError)
        server.fill("orders", range(1))
        right = read(server.url.replace("//", "//:right@"), "orders", "g", "me", executor=pool)
        assert handled(right, 1) == [0]
    finally:
        server.close()


@pytest.mark.parametrize(
    "url",
    [
        f"redis://me:{PASSWORD}/x@host:port/0",
        f"http://me:{PASSWORD}@host/",
        f"redis://:1#{PASSWORD}@host/0",
        "redis://[::",
    ],
)
def test_a_url_that_cannot_be_read_is_not_shown(url: str, pool: ThreadPoolExecutor) -> None:
    with pytest.raises(ValueError, match="the URL can't be read") as raised:
        read(url, "orders", "g", "me", executor=pool)
    assert "sEcr3t" not in "".join(traceback.format_exception(raised.value))


def test_a_server_that_is_killed_fails_the_flow(mortal: RedisServer, pool: ThreadPoolExecutor) -> None:
    mortal.fill("orders", range(3))
    sink = Sink()
    reading(mortal, "orders", pool).acknowledge().subscribe(sink)
    sink.wait_for(3)
    mortal.kill()
    with pytest.raises(redis.ConnectionError, match=f"read\\('orders' at 127.0.0.1:{mortal.port}\\)"):
        raise error_of(sink)


def test_a_retry_goes_on_when_the_server_is_back(mortal: RedisServer, pool: ThreadPoolExecutor) -> None:
    """At least once: none is lost, and only those come again that were under way."""
    mortal.fill("orders", range(2_001))
    got: list[int] = []
    half, back = threading.Event(), threading.Event()

    def handle(message: Message) -> int:
        got.append(number(message))
        if len(got) == 1_000:
            half.set()
            assert back.wait(PATIENCE)
        return number(message)

    flow = (
        reading(mortal, "orders", pool)
        .map(handle)
        .acknowledge()
        .retry_backoff(20, first=0.05, when=redis.ConnectionError)
        .take_while(lambda n: n < 2_000)
    )
    sink = Sink()
    flow.subscribe(sink)
    assert half.wait(PATIENCE)
    mortal.kill()
    mortal.start()
    back.set()
    assert sink.wait().end == ("on_complete",)
    assert set(got) == set(range(2_001))
    assert len(got) < 2_001 + 2 * 256
    closed(mortal)
    assert mortal.pending("orders") == 0


@pytest.mark.parametrize("claim_after", [300.0, 0.01])
def test_acknowledgements_that_the_server_loses_come_again(
    mortal: RedisServer, pool: ThreadPoolExecutor, tmp_path: Path, claim_after: float
) -> None:
    """A server with `appendfsync everysec` may lose what it has confirmed; here it gets its older files back."""
    mortal.fill("orders", range(6))
    sink = Sink(demand=5)
    reading(mortal, "orders", pool, claim_after=claim_after).elements().subscribe(sink)
    sink.wait_for(5)
    shutil.copytree(tmp_path / "appendonlydir", tmp_path / "older")
    for element in sink.elements:
        element.acknowledge()
    until(lambda: mortal.pending("orders") == 0)
    mortal.kill()
    shutil.rmtree(tmp_path / "appendonlydir")
    (tmp_path / "older").rename(tmp_path / "appendonlydir")
    mortal.start()
    assert mortal.pending("orders") == 5
    if claim_after < 1:  # to the same subscription, which has not noticed
        sink.subscription.request(6)
        sink.wait_for(6)
        again = sink.elements[5:]
    else:  # to the next one
        sink.subscription.cancel()
        closed(mortal)
        sink = Sink(demand=6)
        reading(mortal, "orders", pool).elements().subscribe(sink)
        sink.wait_for(6)
        again = sink.elements
    assert [(number(element.value), element.value.deliveries) for element in again] == [
        *((n, 2) for n in range(5)),
        (5, 1),
    ]
    for element in again:
        assert element.acknowledge()
    until(lambda: mortal.pending("orders") == 0)
    sink.subscription.cancel()
    closed(mortal)


@pytest.mark.parametrize(("more", "wait"), [({}, 50), ({"timeout": 0.04}, 20), ({"socket_timeout": 0.004}, 2)])
def test_the_server_waits_for_less_time_than_the_client(
    server: RedisServer,
    stream: str,
    pool: ThreadPoolExecutor,
    more: dict[str, float],
    wait: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a flow with a short `timeout` fails while its stream is empty."""
    waits: set[int] = set()
    exchange = Reading.exchange

    def recorded(self: Reading, *commands: tuple[Any, ...]) -> list[Any]:
        waits.update(command[command.index("BLOCK") + 1] for command in commands if "BLOCK" in command)
        return exchange(self, *commands)

    monkeypatch.setattr(Reading, "exchange", recorded)
    options = {"client_name": NAME, **{name: seconds for name, seconds in more.items() if name != "timeout"}}
    timeout = more.get("timeout", 10.0)
    flow = read(server.url, stream, "g", "me", executor=pool, claim_after=None, timeout=timeout, options=options)
    with captured():  # errors behind a cancel: a server that is busy may be too late for a short timeout
        while not waits:
            sink = Sink()
            flow.elements().subscribe(sink)
            until(lambda sink=sink: bool(waits or sink.end))  # type: ignore[misc]
            sink.subscription.cancel()
            closed(server)
    assert waits == {wait}


def test_bytes_that_are_no_text_are_named(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.client.xadd(stream, {"n": b"\xff"})
    flow = read(server.url, stream, "g", "me", executor=pool, options={"decode_responses": True})
    error = failure(flow)
    assert f"read({stream!r} at 127.0.0.1:{server.port}): the answer has bytes that are no text" in str(error)
    assert "leave `decode_responses` out" in str(error)
    [entry] = reading(server, stream, pool).through(lambda flow: flow.take(1)).acknowledge()
    assert entry.fields == {b"n": b"\xff"}
    closed(server)


def test_a_user_without_permission_is_advised(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.client.acl_setuser("reader", enabled=True, passwords=["+pw123"], keys=["*"], commands=["+xreadgroup"])
    url = server.url.replace("//", "//reader:pw123@")
    error = failure(read(url, stream, "g", "me", executor=pool))
    assert "look at the user and the password in the URL, and at what the server allows" in str(error)
    assert "pw123" not in str(error)


def test_a_group_that_is_deleted_fails_the_flow(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
    sink = Sink()
    reading(server, stream, pool).elements().subscribe(sink)
    until(lambda: server.connections() == 1 and bool(server.client.exists(stream)))
    server.client.delete(stream)
    with pytest.raises(redis.ResponseError, match=r"(?s)NOGROUP|UNBLOCKED") as raised:
        raise error_of(sink)
    assert f"{stream!r} at 127.0.0.1" in str(raised.value)
    assert "a new subscription makes them again" in str(raised.value)
    closed(server)


def test_a_key_that_is_no_stream_is_named(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.client.set(stream, "text")
    error = failure(reading(server, stream, pool))
    assert "WRONGTYPE" in str(error)
    assert repr(stream) in str(error)


# -- the writer ----------------------------------------------------------------------------------------------------


def writer(server: RedisServer, stream: str, **more: Any) -> Writer:
    return Writer(server.url, stream, fields=lambda n: {"n": n}, options={"client_name": NAME}, **more)


def test_a_writer_appends_in_order(server: RedisServer, stream: str) -> None:
    with writer(server, stream) as to:
        ids = Flow.range(1_000).batch(64).map(to.append).flat_map_iterable(list).to_list().block(timeout=PATIENCE)
    entries = server.client.xrange(stream)
    assert [int(entry[b"n"]) for _, entry in entries] == list(range(1_000))
    assert [id.decode() for id, _ in entries] == ids
    assert server.connections() == 0


@pytest.mark.parametrize(("exact", "most"), [(True, 100), (False, 200)])
def test_a_writer_bounds_the_stream(server: RedisServer, stream: str, exact: bool, most: int) -> None:
    with writer(server, stream, maxlen=100, exact=exact) as to:
        Flow.range(2_000).batch(64).map(to.append).run()
    left = [int(entry[b"n"]) for _, entry in server.client.xrange(stream)]
    assert 100 <= len(left) <= most
    assert left == list(range(2_000 - len(left), 2_000))


def test_a_writer_appends_by_demand(server: RedisServer, stream: str) -> None:
    sink = Sink(demand=0)
    with writer(server, stream) as to:
        Flow.range(1_000).batch(10).map(to.append).subscribe(sink)
        for n in (1, 2):
            sink.subscription.request(n)
        assert server.client.xlen(stream) == 30
        sink.subscription.cancel()


def test_what_is_relayed_is_acknowledged_when_it_is_there(
    server: RedisServer, stream: str, pool: ThreadPoolExecutor
) -> None:
    server.fill(stream, range(500))
    with Writer(server.url, f"{stream}-out") as to:
        flow = reading(server, stream, pool).through(lambda flow: flow.take(500)).map(lambda message: message.fields)
        flow.buffer_timeout(100, 0.01).map(to.append).acknowledge().run(timeout=PATIENCE)
    until(lambda: server.pending(stream) == 0)
    assert [int(entry[b"n"]) for _, entry in server.client.xrange(f"{stream}-out")] == list(range(500))


def test_what_cannot_be_relayed_is_not_acknowledged(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(100))
    server.client.set(f"{stream}-out", "text")
    with Writer(server.url, f"{stream}-out") as to, pytest.raises(redis.ResponseError, match=f"'{stream}-out' at 127"):
        reading(server, stream, pool).map(lambda message: message.fields).batch(50).map(to.append).acknowledge().run()
    closed(server)
    assert server.pending(stream) == 100


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({}, "element 1 of the list has no fields, {}"),
        ({"n": None}, "element 1 of the list can't be sent: Invalid input of type: 'NoneType'"),
        ({"n": True}, "element 1 of the list can't be sent: Invalid input of type: 'bool'"),
        ({None: 1}, "element 1 of the list can't be sent: Invalid input of type: 'NoneType'"),
        ({"n": "\ud800"}, "element 1 of the list can't be sent: 'utf-8' codec can't encode"),
    ],
)
def test_a_writer_names_an_entry_that_redis_has_not(
    server: RedisServer, stream: str, bad: dict[Any, Any], said: str
) -> None:
    good = {"a": "é", b"b": b"\xff", "c": 1, "d": 0.5, "e": bytearray(b"f")}
    with Writer(server.url, stream) as to:
        with pytest.raises(redis.DataError) as raised:
            to.append([good, bad, good])
        assert f"Writer({stream!r} at 127.0.0.1:{server.port}): {said}" in str(raised.value)
        assert not server.client.exists(stream)
        [id] = to.append([good])
    wanted = {b"a": "é".encode(), b"b": b"\xff", b"c": b"1", b"d": b"0.5", b"e": b"f"}
    assert server.client.xrange(stream) == [(id.encode(), wanted)]


def test_a_writer_whose_fields_fail_sends_nothing(server: RedisServer, stream: str) -> None:
    with Writer(server.url, stream, fields=lambda n: {"n": 1 // n}) as to, pytest.raises(ZeroDivisionError):
        to.append([3, 2, 0])
    assert not server.client.exists(stream)


def test_a_writer_names_a_server_that_is_down() -> None:
    port = free_port()
    with (
        Writer(f"redis://me:{QUOTED}@127.0.0.1:{port}", "out") as to,
        pytest.raises(redis.ConnectionError, match=f"Writer\\('out' at 127.0.0.1:{port}\\)") as raised,
    ):
        to.append([{"n": 1}])
    assert "sEcr3t" not in "".join(traceback.format_exception(raised.value))


def test_a_writer_closes_a_connection_that_is_in_use_later(mortal: RedisServer) -> None:
    with ThreadPoolExecutor(1) as pool:
        with writer(mortal, "out") as to:
            to.append([1])
            mortal.stop()
            late = pool.submit(to.append, [2])
            until(late.running)
        mortal.go_on()
        assert len(late.result(PATIENCE)) == 1
    closed(mortal)


# -- memory, and arguments -------------------------------------------------------------------------------------------


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_a_long_backlog_needs_no_memory(server: RedisServer, stream: str, pool: ThreadPoolExecutor) -> None:
    server.fill(stream, range(100_000), text="x" * 100)
    sizes = []
    flow = reading(server, stream, pool).map(number)
    for n in flow.through(lambda flow: flow.take(100_000)).acknowledge():
        if n % 10_000 == 9_999:
            sizes.append(resident())
    assert len(sizes) == 10
    assert sizes[-1] - sizes[0] < 8_000_000  # the backlog has 100 bytes of text alone an entry
    server.client.delete(stream)


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"url": 7}, TypeError, "url must be a str"),
    ({"url": b"redis://host"}, TypeError, "url must be a str"),
    ({"stream": None}, TypeError, "stream must be a str"),
    ({"group": 7}, TypeError, "group must be a str"),
    ({"consumer": 7}, TypeError, "consumer must be a str"),
    ({"start": 0}, TypeError, "start must be a str"),
    ({"executor": None}, TypeError, "Executor is needed"),
    ({"at_most": 0}, ValueError, "at_most must be at least 1"),
    ({"at_most": 1.5}, TypeError, "at_most must be an int"),
    ({"claim_after": 0}, ValueError, "claim_after must be a number of seconds above 0"),
    ({"claim_after": "1"}, TypeError, "claim_after must be a number of seconds"),
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
    arguments = {"url": "redis://localhost", "stream": "s", "group": "g", "consumer": "c", "executor": pool, **bad}
    with pytest.raises(kind, match=text):
        read(**arguments)


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ({"fields": 7}, TypeError),
        ({"maxlen": -1}, ValueError),
        ({"maxlen": 1.5}, TypeError),
        ({"timeout": 0}, ValueError),
    ],
)
def test_bad_arguments_of_a_writer_are_refused_at_once(bad: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind, match=f"Writer: {next(iter(bad))} must be"):
        Writer("redis://localhost", "s", **bad)


def test_explain_shows_the_stream_and_the_pool(pool: ThreadPoolExecutor) -> None:
    flow = read("redis://me:secret@localhost", "orders", "billing", "me", executor=pool)
    assert "read('orders', 'billing')" in flow.elements().explain()
    assert "secret" not in flow.elements().explain()


def test_the_example_bills_orders(server: RedisServer, pool: ThreadPoolExecutor) -> None:
    orders = [("tea", "2"), ("milk", "four"), ("beer", "1"), ("milk", "4")]
    for name, count in orders:
        server.client.xadd("orders", {"name": name, "count": count})
    with Writer(server.url, "bills") as bills, Writer(server.url, "unbilled") as unbilled:
        sink = Sink()
        orders_in_redis.billing(server.url, pool, bills, unbilled).subscribe(sink)
        until(lambda: server.client.xlen("bills") == 2 and server.client.xlen("unbilled") == 2)
        until(lambda: server.pending("orders", "billing") == 0)
        sink.subscription.cancel()
    assert [entry[b"sum"] for _, entry in server.client.xrange("bills")] == [b"6", b"4"]
    assert [entry[b"name"] for _, entry in server.client.xrange("unbilled")] == [b"milk", b"beer"]


def test_a_group_is_read_while_the_memory_is_full(mortal: RedisServer, pool: ThreadPoolExecutor) -> None:
    mortal.fill("orders", range(3))
    flow = read(mortal.url, "orders", "g", "c", executor=pool).acknowledge()
    assert len(list(flow.take(1))) == 1
    mortal.client.config_set("maxmemory", "1mb")
    assert len(list(flow.take(2))) == 2
    until(lambda: mortal.pending("orders") == 0)
    with pytest.raises(redis.ResponseError, match="used memory > 'maxmemory'"):
        read(mortal.url, "orders", "another", "c", executor=pool).acknowledge().run()
