"""NATS JetStream, against a real server: nothing waits without end, is lost by its id, or tells a password."""

from __future__ import annotations

import gc
import itertools
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from sinks import PATIENCE, Sink, until

from connect.nats_server import NatsServer
from reactive_runtime.connect._elements import last_notes
from reactive_runtime.connect._jetstream import pulls
from reactive_runtime.connect.jetstream import JetStreamError, Writer, read

names = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    yield server
    server.close()


@pytest.fixture
def stream(server: NatsServer) -> str:
    name = f"GUARD{next(names)}"
    server.make(name)
    return name


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1, thread_name_prefix="nats") as pool:
        yield pool


@pytest.fixture(autouse=True)
def each_connection_is_closed() -> Iterator[None]:
    """With its test: what it has to say of its end belongs to no other."""
    yield
    until(lambda: not last_notes._closing)


# -- a pull without an answer ------------------------------------------------------------------------------------------


def test_a_consumer_deleted_between_two_pulls_fails_the_flow(
    server: NatsServer, stream: str, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulls, "EXPIRES", 0.1)
    server.fill(stream, range(3))
    sink = Sink(1)
    read(server.url, stream, "c", executor=pool, timeout=1.0).acknowledge().subscribe(sink)
    sink.wait_for(1)
    server.run(server.stream.delete_consumer, stream, "c")
    sink.subscription.request(1)
    sink.wait()
    kind, error = sink.signals[-1]
    assert (kind, type(error)) == ("on_error", JetStreamError)
    assert "the consumer 'c' was deleted" in str(error)


def test_a_server_that_answers_no_more_fails_the_flow(
    tmp_path: Path, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch, dropped: list[Any]
) -> None:
    monkeypatch.setattr(pulls, "EXPIRES", 0.1)
    server = NatsServer(tmp_path)
    try:
        server.make("S")
        server.fill("S", range(1))
        sink = Sink()
        read(server.url, "S", "c", executor=pool, timeout=0.2, reconnect=0.5).acknowledge().subscribe(sink)
        sink.wait_for(1)
        server.stop()
        sink.wait()
        server.go_on()
        kind, error = sink.signals[-1]
        assert (kind, type(error)) == ("on_error", JetStreamError)
        assert "it does not answer within 0.2 s" in str(error)
        until(lambda: not last_notes._closing)
        # whether the server goes on before the connection has given up is the machine's business
        assert all("the last acknowledgements may be lost" in str(drop.error) for drop in dropped)
    finally:
        server.close()


def test_a_pull_that_the_server_has_forgotten_is_sent_again(
    server: NatsServer, stream: str, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish: Any = Client.publish
    lost: list[bytes] = []

    async def lose_one(self: Client, subject: str, payload: bytes = b"", *more: Any, **named: Any) -> None:
        if "CONSUMER.MSG.NEXT" in subject and not lost:
            lost.append(payload)
        else:
            await publish(self, subject, payload, *more, **named)

    monkeypatch.setattr(pulls, "EXPIRES", 0.1)
    monkeypatch.setattr(Client, "publish", lose_one)
    server.fill(stream, range(3))
    flow = read(server.url, stream, "c", executor=pool, timeout=0.2).acknowledge()
    assert [message.data for message in flow.take(3).to_list().block(timeout=PATIENCE) or ()] == [b"0", b"1", b"2"]
    assert lost


# -- what is published -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["", "7 ", " 7", "7\n", "7\r\nX: 1", "\u00a07"])
def test_an_id_that_a_header_would_change_is_refused(server: NatsServer, stream: str, id: str) -> None:
    with Writer(server.url, stream, ids=lambda body: id if body == b"b" else "7") as writer:
        with pytest.raises(ValueError, match=r"Writer: an id must not be empty, .* of b'b'"):
            writer.append([b"a", b"b"])
        assert server.size(stream) == 0
        assert writer.append([b"a"]) == [1]


def test_a_message_too_large_is_named_and_those_before_it_are_there(server: NatsServer, stream: str) -> None:
    with Writer(server.url, stream) as writer:
        with pytest.raises(JetStreamError, match=r"element 2 is not taken: .*maximum payload exceeded"):
            writer.append([b"a", b"b", b"c" * 2_000_000, b"d"])
        assert server.size(stream) == 2


# -- what is sent in clear, and what an error says ---------------------------------------------------------------------


@pytest.mark.parametrize("by", ["url", "options"])
def test_no_password_is_sent_in_clear_where_tls_is_asked_for(
    server: NatsServer, pool: ThreadPoolExecutor, by: str
) -> None:
    scheme = "tls" if by == "url" else "nats"
    options = {"tls": ssl.create_default_context()} if by == "options" else {}
    flow = read(f"{scheme}://me:secret@127.0.0.1:{server.port}", "S", "c", executor=pool, options=options)
    with pytest.raises(JetStreamError, match="ask for TLS, and the server has none; no password was sent"):
        flow.for_each(print, timeout=PATIENCE)


def test_an_option_that_the_client_does_not_know_is_named(server: NatsServer, pool: ThreadPoolExecutor) -> None:
    flow = read(server.url, "S", "c", executor=pool, options={"bogus": 1})
    with pytest.raises(JetStreamError, match=r"the client refuses what the URL and the options say, .*'bogus'"):
        flow.for_each(print, timeout=PATIENCE)


def test_a_message_too_large_with_its_id_is_refused_here(server: NatsServer, stream: str) -> None:
    """The server would close the connection, and the others that are in flight would fail too."""
    with Writer(server.url, stream, ids=lambda body: f"id{body[:1]!r}") as writer:
        with pytest.raises(JetStreamError, match="element 1 is not taken: it refuses: nats: maximum payload exceeded"):
            writer.append([b"a", b"b" * (1024 * 1024 - 20)])
        before = server.connected()
        assert writer.append([b"c", b"d" * (1024 * 1024 - 36)]) == [2, 3]
        assert server.connected() == before


def test_a_writer_that_no_code_has_any_more_is_closed(server: NatsServer, stream: str) -> None:
    options = {"name": "dropped"}
    assert Writer(server.url, stream, options=options).append([b"a"]) == [1]
    gc.collect()
    until(lambda: server.connections("dropped") == 0)
    with Writer(server.url, stream, options=options) as writer:
        writer.append([b"b"])
        assert server.connections("dropped") == 1
