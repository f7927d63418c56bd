"""Answers of HTTP servers: read by demand, closed by a cancel wherever it finds them, and no secret in an error."""

from __future__ import annotations

import gzip
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import httpx
import pytest
from sinks import PATIENCE, Sink, until

from connect.http_servers import Scripted, answer, served, stream
from examples.connect import limited_client, prices_over_http
from reactive_runtime import DeadLetter, Flow
from reactive_runtime._core.runtime import eventloop
from reactive_runtime.connect._http import response_reader
from reactive_runtime.connect.asgi import EventStream, StreamBody, json_line
from reactive_runtime.connect.http import Event, body, events, lines, retry_after
from reactive_runtime.hooks import captured
from reactive_runtime.hot import ReplayProcessor

ROOT = Path(__file__).parents[2]
SECRET = "s%2Fcr3t"
"""A password in a URL, and its plain text below."""


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1, thread_name_prefix="http") as pool:
        yield pool
    assert eventloop.wait_until_ended(PATIENCE), "a connection is still open"


def all_of(flow: Flow[Any]) -> list[Any]:
    return flow.to_list().block(timeout=PATIENCE) or []


def failure(flow: Flow[Any]) -> Exception:
    """The error that the flow fails with."""
    sink = Sink()
    flow.subscribe(sink)
    error = sink.wait().error
    assert isinstance(error, Exception)
    return error


def shown(error: BaseException) -> str:
    """All that a log would have of an error."""
    return "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))


# -- bodies and lines ---------------------------------------------------------------------------------------------


def test_a_body_comes_as_it_is(pool: ThreadPoolExecutor) -> None:
    data = os.urandom(300_000)
    server = Scripted(answer(data))
    sink = Sink()
    body(server.url, executor=pool).subscribe(sink)
    sink.wait()
    assert sink.end == ("on_complete",)
    assert b"".join(sink.elements) == data
    assert max(len(chunk) for chunk in sink.elements) <= 65_536
    assert sink.threads == {"http_0"}
    server.done()
    assert server.sent("accept-encoding") == ["identity"]


def test_lines_have_no_ends(pool: ThreadPoolExecutor) -> None:
    server = Scripted(answer("a\r\nb\n\nc\rd\u2028e\nä".encode()))
    assert all_of(lines(server.url, executor=pool)) == ["a", "b", "", "c\rd\u2028e", "ä"]
    server.done()


def test_lines_have_the_encoding_of_the_answer(pool: ThreadPoolExecutor) -> None:
    server = Scripted(answer(b"\xe4\n", kind="text/plain; charset=latin-1"), answer(b"\xe4\n"))
    assert all_of(lines(server.url, executor=pool)) == ["ä"]
    assert all_of(lines(server.url, executor=pool)) == ["\ufffd"]
    server.done()


@pytest.mark.parametrize(
    "name", ["base64", "rot13", "idna", "punycode", "undefined", "unicode_escape", "hex", "zlib", "nonsense"]
)
def test_lines_of_an_encoding_that_is_none_are_utf_8(pool: ThreadPoolExecutor, name: str) -> None:
    server = Scripted(answer("ä\\d\n".encode() + b"\xe4\n", kind=f"text/plain; charset={name}"))
    assert all_of(lines(server.url, executor=pool)) == ["ä\\d", "\ufffd"]
    server.done()


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_the_end_of_a_line_does_not_count(pool: ThreadPoolExecutor, end: str) -> None:
    server = Scripted(answer(f"{'x' * 10}{end}".encode()))
    assert all_of(lines(server.url, executor=pool, max_size=10)) == ["x" * 10]
    server.done()


def test_what_is_sent_is_what_the_user_says(pool: ThreadPoolExecutor) -> None:
    server = Scripted(answer(b"x"))
    flow = body(
        f"{server.url}?n=1",
        executor=pool,
        method="post",
        headers={"X-Of": "tests", "Accept-Encoding": "gzip"},
        content="{}",
    )
    assert all_of(flow) == [b"x"]
    server.done()
    assert server.requests[0].startswith("POST /path?n=1 HTTP/1.1\r\n")
    assert server.sent("x-of") == ["tests"]
    assert server.sent("accept-encoding") == ["gzip"]
    assert server.requests[0].endswith("\r\n\r\n") or server.requests[0].endswith("{}")


@pytest.mark.parametrize(
    ("asked", "coded"), [({}, "gzip"), ({}, "gzip, gzip"), ({"Accept-Encoding": "gzip, br;q=0.5"}, "gzip, gzip")]
)
@pytest.mark.parametrize("of", [body, lines, events])
def test_an_encoding_that_was_not_asked_for_is_refused(
    pool: ThreadPoolExecutor, of: Callable[..., Flow[Any]], asked: dict[str, str], coded: str
) -> None:
    kind = "text/event-stream" if of is events else "text/plain"
    data = gzip.compress(gzip.compress(b"data: x\n\n"))
    server = Scripted(answer(data, kind=kind, more=f"Content-Encoding: {coded}\r\n"))
    error = failure(of(server.url, executor=pool, headers=asked))
    assert type(error) is ValueError
    assert str(error).startswith(
        f"{of.__name__}(GET {server.url}): the server sent the body with the content-encoding '{coded}', for which"
    )
    server.done()


@pytest.mark.parametrize(("asked", "coded"), [({"Accept-Encoding": "br, GZIP;q=0.5"}, "Gzip"), ({}, "identity")])
def test_an_encoding_that_was_asked_for_is_decoded(pool: ThreadPoolExecutor, asked: dict[str, str], coded: str) -> None:
    data = gzip.compress(b"x") if asked else b"x"
    server = Scripted(answer(data, more=f"Content-Encoding: {coded}\r\n"))
    assert all_of(body(server.url, executor=pool, headers=asked)) == [b"x"]
    server.done()


def test_user_and_password_are_sent_as_a_header(pool: ThreadPoolExecutor) -> None:
    server = Scripted(answer(b"x"))
    assert all_of(body(server.url.replace("://", f"://me:{SECRET}@"), executor=pool)) == [b"x"]
    server.done()
    assert server.sent("authorization") == ["Basic bWU6cy9jcjN0"]


def test_a_redirect_is_followed(pool: ThreadPoolExecutor) -> None:
    server = Scripted(answer(b"", status="302 Found", more="Location: /other?token=cr3t\r\n"), answer(b"x"))
    assert all_of(body(server.url, executor=pool)) == [b"x"]
    server.done()
    assert server.requests[1].startswith("GET /other?token=cr3t ")


def test_the_body_of_a_redirect_is_not_read(pool: ThreadPoolExecutor) -> None:
    def endless(connection: socket.socket) -> None:
        connection.sendall(answer(b"x", size=10**12, status="302 Found", more="Location: /other\r\n"))

    server = Scripted(endless, answer(b"x"))
    assert all_of(body(server.url, executor=pool, timeout=None)) == [b"x"]
    server.done()


def test_a_redirect_elsewhere_gets_no_credentials(pool: ThreadPoolExecutor) -> None:
    other = Scripted(answer(b"", status="302 Found", more="Location: /more\r\n"), answer(b"x"))
    there = other.url.replace("127.0.0.1", "localhost")
    server = Scripted(
        answer(b"", status="302 Found", more="Location: /same\r\n"),
        answer(b"", status="302 Found", more=f"Location: {there}\r\n"),
    )
    assert all_of(body(server.url.replace("://", f"://me:{SECRET}@"), executor=pool)) == [b"x"]
    server.done()
    other.done()
    assert server.sent("authorization") == ["Basic bWU6cy9jcjN0"] * 2
    assert other.sent("authorization") == [None, None]


def test_redirects_have_an_end(pool: ThreadPoolExecutor) -> None:
    server = Scripted(*[answer(b"", status="302 Found", more="Location: /path\r\n")] * 3)
    error = failure(body(server.url, executor=pool, options={"max_redirects": 2}))
    assert isinstance(error, httpx.TooManyRedirects)
    assert str(error) == f"body(GET {server.url}): more than 2 redirects: look at the URL"
    server.done()
    assert len(server.requests) == 3


def test_an_empty_body_is_an_empty_flow(pool: ThreadPoolExecutor) -> None:
    for of in (body, lines):
        assert all_of(of(Scripted(answer(b"")).url, executor=pool)) == []
        assert all_of(of(Scripted(b"HTTP/1.1 204 No Content\r\n\r\n").url, executor=pool)) == []


def test_each_subscription_sends_a_request(pool: ThreadPoolExecutor) -> None:
    server = Scripted(answer(b"a"), answer(b"b"))
    flow = body(server.url, executor=pool)
    assert server.requests == []
    assert [all_of(flow), all_of(flow)] == [[b"a"], [b"b"]]
    server.done()


# -- demand -------------------------------------------------------------------------------------------------------


class Endless:
    """An answer without end, of lines of 1,000 characters; counts what the socket has taken.

    Args:
        patience: Seconds without room for more, after which it is stalled.
    """

    def __init__(self, patience: float = 0.5) -> None:
        self.patience = patience
        self.sent = 0  # the server's thread
        self.stalled = threading.Event()

    def __call__(self, connection: socket.socket) -> None:
        connection.sendall(answer(b"", size=10**12))
        connection.setblocking(False)
        chunk = (b"x" * 999 + b"\n") * 64
        while True:
            _, room, _ = select.select([], [connection], [], self.patience)
            if room:
                self.sent += connection.send(chunk)
            else:
                self.stalled.set()
                connection.setblocking(True)
                return


def test_no_more_is_read_than_is_demanded(pool: ThreadPoolExecutor) -> None:
    """But three chunks, and what the buffers of the sockets have."""
    endless = Endless()
    server = Scripted(endless)
    sink = Sink(demand=0)
    lines(server.url, executor=pool).subscribe(sink)
    pool.submit(int).result()
    assert server.requests == []
    sink.subscription.request(1)
    sink.wait_for(1)
    assert endless.stalled.wait(PATIENCE)
    assert len(sink.elements) == 1
    assert endless.sent < 16_000_000
    with captured():
        sink.subscription.cancel()
        server.done()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_a_long_answer_needs_no_memory(pool: ThreadPoolExecutor) -> None:
    lot = (b"x" * 399 + b"\n") * 100
    with served(StreamBody(Flow.range(1_000).map(lambda _: lot), media_type="text/plain"), buffer=2**20) as port:
        sizes, count = [], 0
        for _ in lines(f"http://127.0.0.1:{port}", executor=pool).iterate():
            count += 1
            if count % 10_000 == 0:
                sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * 4096)
    assert count == 100_000
    assert sizes[-1] - sizes[0] < 8_000_000  # the answer has 40 million bytes


# -- cancel -------------------------------------------------------------------------------------------------------


def hangs(connection: socket.socket) -> None:
    """Send nothing more."""


def after_headers(connection: socket.socket) -> None:
    connection.sendall(answer(b"", size=100))


def after_an_event(connection: socket.socket) -> None:
    connection.sendall(stream(b"data: x\n\n"))


@pytest.mark.parametrize("hanging", [hangs, after_headers])
@pytest.mark.parametrize("of", [body, lines, events])
def test_a_cancel_closes_a_connection_that_waits(
    pool: ThreadPoolExecutor, of: Callable[..., Flow[Any]], hanging: Callable[[socket.socket], object]
) -> None:
    asked = threading.Event()

    def answering(connection: socket.socket) -> None:
        if hanging is after_headers and of is events:
            connection.sendall(stream(b": comment\n"))
        else:
            hanging(connection)
        asked.set()

    server = Scripted(answering)
    sink = Sink()
    of(server.url, executor=pool, timeout=None).subscribe(sink)
    assert asked.wait(PATIENCE)
    pool.submit(int).result(PATIENCE)  # no thread is kept
    sink.subscription.cancel()
    server.done()
    assert sink.signals == [("on_subscribe",)]


def test_a_cancel_ends_the_wait_before_a_new_connection(pool: ThreadPoolExecutor) -> None:
    server = Scripted(stream(b"data: x\n\n"))
    sink = Sink()
    events(server.url, executor=pool, retry=10 * PATIENCE).subscribe(sink)
    sink.wait_for(1)
    server.done()
    sink.subscription.cancel()
    assert eventloop.wait_until_ended(PATIENCE)
    assert sink.end is None


def test_look_ups_that_hang_hold_back_no_other_flow(pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    look_up, go_on, hanging = socket.getaddrinfo, threading.Event(), threading.Semaphore(0)

    def slow(host: Any, *others: Any, **named: Any) -> Any:
        if "slow" in str(host):
            hanging.release()
            go_on.wait(PATIENCE)
            raise socket.gaierror(socket.EAI_NONAME, "no such host")
        return look_up(host, *others, **named)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    server, sinks = Scripted(answer(b"x")), [Sink() for _ in range(40)]
    try:
        for sink in sinks:
            body("http://slow.example", executor=pool, timeout=None).subscribe(sink)
        for _ in sinks:
            assert hanging.acquire(timeout=PATIENCE)
        for sink in sinks[1:]:
            sink.subscription.cancel()
        assert all_of(body(server.url.replace("127.0.0.1", "localhost"), executor=pool)) == [b"x"]
    finally:
        go_on.set()
    assert isinstance(sinks[0].wait().error, httpx.ConnectError)
    server.done()


def test_a_subscriber_that_leaves_closes_the_connection(pool: ThreadPoolExecutor) -> None:
    server = Scripted(after_an_event)
    assert all_of(events(server.url, executor=pool).take(1)) == [Event("x")]
    server.done()


def test_a_loop_that_is_dropped_closes_the_connection(pool: ThreadPoolExecutor) -> None:
    server = Scripted(after_an_event)
    for event in events(server.url, executor=pool):
        assert event == Event("x")
        break
    server.done()


def test_many_flows_wait_and_keep_no_thread(pool: ThreadPoolExecutor) -> None:
    with served(EventStream(Flow.never(), heartbeat=0.05)) as port:
        sinks = [Sink() for _ in range(50)]
        for sink in sinks:
            events(f"http://127.0.0.1:{port}", executor=pool).subscribe(sink)
        pool.submit(int).result(PATIENCE)  # it is free
        for sink in sinks:
            sink.subscription.cancel()


# -- errors -------------------------------------------------------------------------------------------------------


def cut(connection: socket.socket) -> None:
    connection.sendall(answer(b"data: x\n\n", size=100))
    connection.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("of", [body, lines, events])
def test_a_server_that_is_down_is_named_without_secrets(
    pool: ThreadPoolExecutor, of: Callable[..., Flow[Any]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    flow = of(f"http://me:{SECRET}@127.0.0.1:{port}/path?token=cr3t#cr3t", executor=pool)
    error = failure(flow)
    assert isinstance(error, httpx.ConnectError)
    assert str(error).startswith(f"{of.__name__}(GET http://127.0.0.1:{port}/path?…): All connection attempts failed: ")
    assert str(error).endswith(": see whether the server runs")
    assert "cr3t" not in shown(error) + flow.explain() + repr(flow) + caplog.text


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        ("401 Unauthorized", "look at the user and the password, or at the token"),
        ("404 Not Found", "look at the URL and at the request"),
        ("429 Too Many Requests", "it has too much to do; `retry_after` says how long to wait"),
        ("500 Oops", "see the server's log"),
        ("302 Found", "look at the URL and at the request"),
    ],
)
@pytest.mark.parametrize("of", [body, lines, events])
def test_another_status_is_an_error(
    pool: ThreadPoolExecutor,
    of: Callable[..., Flow[Any]],
    status: str,
    advice: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    server = Scripted(answer(b"cr3t", status=status, more="Retry-After: 7\r\n"))
    url = server.url.replace("://", f"://me:{SECRET}@") + "?token=cr3t"
    error = failure(of(url, executor=pool, headers={"X-Key": "cr3t"}, content="cr3t"))
    assert isinstance(error, httpx.HTTPStatusError)
    assert str(error) == f"{of.__name__}(GET {server.url}?…): the server answered {status}: {advice}"
    assert retry_after(error) == 7
    assert "cr3t" not in shown(error) + caplog.text
    assert f"{server.url}?…" in caplog.text  # the line of httpx
    server.done()


def test_a_redirect_leaves_no_secret_in_the_log(pool: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = Scripted(answer(b"", status="302 Found", more="Location: /other?token=cr3t\r\n"), answer(b"x"))
    all_of(body(server.url, executor=pool))
    assert "/other?…" in caplog.text
    assert "cr3t" not in caplog.text
    server.done()


def test_a_body_of_gzip_comes_whole_or_fails(pool: ThreadPoolExecutor) -> None:
    """All of its members; it fails behind what has come where it is cut off, and where it is no gzip."""
    asked, packed = {"Accept-Encoding": "gzip"}, gzip.compress(b"one\n" * 100_000)
    outcomes: list[tuple[bytes, int, type[Exception] | None, str]] = [
        (packed + gzip.compress(b"two\n"), 100_001, None, ""),
        (packed[:-3], 100_000, httpx.RemoteProtocolError, "before the end of the gzip body"),
        (b"no gzip", 0, httpx.DecodingError, "the body is not in the encoding that the server says"),
        (b"", 0, None, ""),
    ]
    for data, count, kind, text in outcomes:
        server, sink = Scripted(answer(data, more="Content-Encoding: gzip\r\n")), Sink()
        lines(server.url, executor=pool, headers=asked).subscribe(sink)
        assert sink.wait().signals[-1][0] == ("on_complete" if kind is None else "on_error")
        assert len(sink.elements) == count
        assert kind is None or (type(sink.error) is kind and text in str(sink.error))
        server.done()


def test_events_out_of_gzip_that_is_cut_off_connect_anew(pool: ThreadPoolExecutor) -> None:
    packed = gzip.compress(b"data: x\n\n")[:-8]
    server = Scripted(stream(packed, more="Content-Encoding: gzip\r\n"), answer(b"", status="204 No Content"))
    flow = events(server.url, executor=pool, retry=0.1, headers={"Accept-Encoding": "gzip"})
    assert [event.data for event in all_of(flow)] == ["x"]
    server.done()


def test_a_redirect_to_another_scheme_is_named(pool: ThreadPoolExecutor) -> None:
    server = Scripted(answer(b"", status="302 Found", more="Location: ftp://me:cr3t@localhost/\r\n"))
    error = failure(body(server.url, executor=pool))
    assert "where the server redirects to" in str(error)
    assert "cr3t" not in shown(error)
    server.done()


def test_a_header_that_cannot_be_sent_is_not_shown(pool: ThreadPoolExecutor) -> None:
    for value in ("cr3t\n", " cr3t", "cr\r\n3t", "cr3té"):
        with pytest.raises(
            ValueError, match="body: the value of the header 'Authorization' has a line break"
        ) as raised:
            body("http://localhost", executor=pool, headers={"Authorization": value})
        assert "cr3t" not in shown(raised.value)
    server = Scripted(b"")
    error = failure(events(server.url, executor=pool, last_event_id="cr\n3t"))
    assert isinstance(error, httpx.LocalProtocolError)
    assert "the request can't be sent" in str(error)
    assert "3t" not in shown(error)
    server.done()


@pytest.mark.parametrize(
    ("what", "kind", "text"),
    [
        (cut, httpx.RemoteProtocolError, "peer closed connection"),
        (b"", httpx.RemoteProtocolError, "Server disconnected without sending a response"),
        (b"SSH-2.0\r\n\r\n", httpx.RemoteProtocolError, "the connection broke"),
    ],
)
def test_a_connection_that_breaks_is_an_error_behind_what_has_come(
    pool: ThreadPoolExecutor, what: Any, kind: type[Exception], text: str
) -> None:
    server = Scripted(what)
    sink = Sink()
    lines(server.url, executor=pool).subscribe(sink)
    error = sink.wait().error
    assert sink.elements == (["data: x", ""] if what is cut else [])
    assert type(error) is kind
    assert f"lines(GET {server.url}): " in str(error)
    assert text in str(error)
    server.done()


def test_a_server_that_is_too_slow_is_an_error(pool: ThreadPoolExecutor) -> None:
    server = Scripted(hangs)
    error = failure(body(server.url, executor=pool, timeout=0.05))
    assert isinstance(error, httpx.ReadTimeout)
    assert "did not answer in time" in str(error)
    server.done()


def test_a_pause_of_the_subscriber_is_no_pause_of_the_server(pool: ThreadPoolExecutor) -> None:
    """The time counts while the flow waits for the server."""
    endless = Endless(patience=2.5)
    server = Scripted(endless)
    sink = Sink(demand=1)
    lines(server.url, executor=pool, timeout=2).subscribe(sink)
    assert endless.stalled.wait(PATIENCE)
    sink.subscription.request(500)
    sink.wait_for(501)
    with captured():
        sink.subscription.cancel()
        server.done()


@pytest.mark.parametrize("of", [lines, events])
def test_a_record_that_is_too_long_is_an_error(pool: ThreadPoolExecutor, of: Callable[..., Flow[Any]]) -> None:
    server = Scripted(stream(b"data: x\n\n" + b"y" * 2_000 + b"\n\n"))
    sink = Sink()
    of(server.url, executor=pool, max_size=1_000).subscribe(sink)
    error = sink.wait().error
    assert sink.elements == ([Event("x")] if of is events else ["data: x", ""])
    assert type(error) is ValueError
    assert str(error).startswith(f"{of.__name__}(GET {server.url}): a line has more than 1,000 characters: ")
    assert "larger `max_size`" in str(error)
    server.done()


# -- events -------------------------------------------------------------------------------------------------------


def test_events_go_on_over_connections(pool: ThreadPoolExecutor) -> None:
    server = Scripted(
        stream(b"retry: 1\nid: 1\ndata: a\n\ndata: b\n\nid: 9\ndata: unfinished\n"),
        stream(b"data: c\n\nid\ndata: d\n\n"),
        stream(b"id: \xc3\xa4\ndata: e\n\n"),
        b"HTTP/1.1 204 No Content\r\n\r\n",
    )
    got = all_of(events(server.url, executor=pool, retry=10 * PATIENCE))
    assert [(event.data, event.id) for event in got] == [("a", "1"), ("b", "1"), ("c", "1"), ("d", None), ("e", "ä")]
    server.done()
    assert server.sent("last-event-id") == [None, "1", None, "\xc3\xa4"]
    assert server.sent("accept") == ["text/event-stream"] * 4


def test_the_first_request_may_have_an_id(pool: ThreadPoolExecutor) -> None:
    server = Scripted(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert all_of(events(server.url, executor=pool, last_event_id="7")) == []
    assert server.done().sent("last-event-id") == ["7"]


def test_broken_connections_and_busy_servers_are_tried_again(pool: ThreadPoolExecutor) -> None:
    def broken(connection: socket.socket) -> None:
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nContent-Length: 99\r\n\r\n"
        )
        connection.sendall(b"id: 1\ndata: a\n\n")
        connection.shutdown(socket.SHUT_WR)

    busy = [answer(b"", status=f"{status} Busy", more="Retry-After: 0\r\n") for status in (429, 502, 503, 504)]
    server = Scripted(broken, *busy, b"", stream(b"data: b\n\n"), b"HTTP/1.1 204 No Content\r\n\r\n")
    assert [event.data for event in all_of(events(server.url, executor=pool, retry=0, attempts=6))] == ["a", "b"]
    server.done()
    assert server.sent("last-event-id") == [None, *["1"] * 7]


def test_a_silent_connection_is_left_for_a_new_one(pool: ThreadPoolExecutor) -> None:
    server = Scripted(after_an_event, b"HTTP/1.1 204 No Content\r\n\r\n")
    assert all_of(events(server.url, executor=pool, retry=0, timeout=2)) == [Event("x")]
    server.done()


@pytest.mark.parametrize("attempts", [0, 2])
def test_attempts_in_a_row_have_a_bound(pool: ThreadPoolExecutor, attempts: int) -> None:
    server = Scripted(stream(b"data: x\n\n"), *[b""] * attempts, stream(b"data: y\n\n"), *[b""] * (attempts + 1))
    if not attempts:
        server = Scripted(stream(b"data: x\n\n"), stream(b"data: y\n\n"), b"")
    sink = Sink()
    events(server.url, executor=pool, retry=0, attempts=attempts).subscribe(sink)
    assert isinstance(sink.wait().error, httpx.RemoteProtocolError)
    assert [event.data for event in sink.elements] == ["x", "y"]
    server.done()


def test_other_errors_end_it_also_later(pool: ThreadPoolExecutor) -> None:
    server = Scripted(stream(b"data: x\n\n"), answer(b"", status="404 Not Found"))
    error = failure(events(server.url, executor=pool, retry=0))
    assert isinstance(error, httpx.HTTPStatusError)
    server.done()


@pytest.mark.parametrize("status", ["201 Created", "206 Partial Content"])
def test_a_stream_with_another_status_is_an_error(pool: ThreadPoolExecutor, status: str) -> None:
    server = Scripted(stream(b"data: x\n\n").replace(b"200 OK", status.encode()))
    error = failure(events(server.url, executor=pool))
    assert isinstance(error, httpx.HTTPStatusError)
    assert str(error).startswith(f"events(GET {server.url}): the server answered {status}: ")
    server.done()


@pytest.mark.parametrize(
    ("id", "sent"), [("7 ", "7"), ("7\t", "7"), ("  7", "7"), (" a b ", "a b"), ("\x0b7", None), ("a\fb", None)]
)
def test_an_id_that_no_header_has_breaks_no_connection(pool: ThreadPoolExecutor, id: str, sent: str | None) -> None:
    server = Scripted(stream(f"id: {id}\ndata: a\n\n".encode()), b"HTTP/1.1 204 No Content\r\n\r\n")
    assert all_of(events(server.url, executor=pool, retry=0)) == [Event("a", id=id)]
    server.done()
    assert server.sent("last-event-id") == [None, sent]


@pytest.mark.parametrize(
    ("first", "busy", "expected"),
    [
        (b"id: 1\ndata: a\n\n", ["600", "9999"], [3, 600, 3600]),
        (b"retry: 0\ndata: a\n\n", ["0"] * 3, [0.1, 0.1, 0.2, 0.4]),
        (b"retry: 0\ndata: a\n\n", ["0"] * 1_100, [0.1, *(min(0.1 * 2**n, 3600) for n in range(20)), *[3600] * 1_080]),
    ],
)
def test_waits_before_a_new_connection_have_bounds(
    first: bytes, busy: list[str], expected: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a server, since there are many."""
    busy = list(busy)
    answers = [
        httpx.Response(200, headers={"content-type": "text/event-stream"}, content=first),
        *[httpx.Response(503, headers={"retry-after": seconds}) for seconds in busy],
        httpx.Response(204),
    ]
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(response_reader, "asyncio", SimpleNamespace(sleep=sleep))
    options = {"transport": httpx.MockTransport(lambda request: answers.pop(0))}
    with ThreadPoolExecutor(1) as pool:
        all_of(events("http://localhost", executor=pool, attempts=2_000, options=options))
    assert waits == pytest.approx(expected)


def test_an_answer_that_is_no_stream_is_an_error(pool: ThreadPoolExecutor) -> None:
    server = Scripted(answer(b"data: x\n\n"))
    error = failure(events(server.url, executor=pool, retry=0))
    assert type(error) is ValueError
    assert f"events(GET {server.url}): the server answered with the type 'text/plain', where" in str(error)
    assert "where text/event-stream is needed: look at the URL" in str(error)
    server.done()


PROGRAM = """
import sys, uvicorn
from examples.connect import limited_client, prices_over_http
from reactive_runtime import DeadLetter, Flow
from reactive_runtime.connect.asgi import Event, EventStream

def after(last):
    return Flow.range(int(last or -1) + 1, 3_000).map(lambda n: Event(n, id=str(n)))

uvicorn.run(EventStream(after, retry=0.05), port=int(sys.argv[1]), log_level="error")
"""


def test_a_server_that_is_killed_loses_nothing(pool: ThreadPoolExecutor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", PROGRAM, str(port)], cwd=ROOT, env={**os.environ})

    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    server, got = start(), []
    try:
        until(answers)
        flow = events(f"http://127.0.0.1:{port}", executor=pool, attempts=20)
        for event in flow.take(3_000).iterate(prefetch=16):
            got.append(int(event.data))
            if len(got) in (500, 1_500):
                server.send_signal(signal.SIGKILL)
                server.wait()
                server = start()
                until(answers)
    finally:
        server.kill()
        server.wait()
    assert got == list(range(3_000))


def test_one_adapter_reads_what_the_other_has_sent(pool: ThreadPoolExecutor) -> None:
    elements = [Event("a\nb", "kind", "1"), Event("ä"), Event("", id="")]
    with served(EventStream(Flow.from_iterable(elements))) as port:
        got = all_of(events(f"http://127.0.0.1:{port}", executor=pool).take(3))
    assert got == [Event("a\nb", "kind", "1"), Event("ä", id="1"), Event("")]
    with served(StreamBody(Flow.range(1_000), media_type="a/b", encode=json_line)) as port:
        assert all_of(lines(f"http://127.0.0.1:{port}", executor=pool).map(int)) == list(range(1_000))


def test_the_example_follows_prices_over_a_restart(pool: ThreadPoolExecutor) -> None:
    prices = ReplayProcessor[Event](1_000)
    for n in range(50):
        prices.emit(prices_over_http.price_of(n))
    app = prices_over_http.application(prices, Flow.range(3).map(lambda n: {"price": float(n)}))
    with served(app) as port:
        sink = Sink()
        prices_over_http.follow(f"http://127.0.0.1:{port}", pool).subscribe(sink)
        sink.wait_for(53)
        assert sink.elements[:3] == [0.0, 1.0, 2.0]
    with served(app, port=port):
        prices.emit(prices_over_http.price_of(50))
        sink.wait_for(1)
        sink.subscription.cancel()
    assert len(sink.elements) == 54
    assert prices_over_http.is_behind(Event(1, id="other-0"), f"{prices_over_http.RUN}-7")


def test_the_example_with_limits_asks_again_after_a_pause(pool: ThreadPoolExecutor) -> None:
    calls: dict[str, int] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        calls[path] = calls.get(path, 0) + 1
        status = 404 if path == "/users/7" else 200 if calls[path] > 1 else 429 if len(calls) % 4 else 503
        now = datetime.now(UTC) - timedelta(days=9)  # the clock of this server is wrong
        headers = [(b"date", format_datetime(now, usegmt=True).encode())]
        headers.append((b"retry-after", b"0" if len(calls) % 3 else format_datetime(now, usegmt=True).encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": path[7:].encode()})

    letters: list[DeadLetter] = []
    with served(app, date=False) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        users = limited_client.Users(client, pool, calls=1_000)
        names = all_of(users.names(Flow.range(20), letters))
    assert sorted(map(int, names)) == [n for n in range(20) if n != 7]
    assert [letter.element for letter in letters] == [7]
    assert sum(calls.values()) == 2 * 20 - 1


# -- Retry-After --------------------------------------------------------------------------------------------------


def status_error(headers: dict[str, str]) -> httpx.HTTPStatusError:
    request = httpx.Request("GET", "http://localhost")
    return httpx.HTTPStatusError("busy", request=request, response=httpx.Response(503, headers=headers))


NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)


def date(seconds: float) -> str:
    return format_datetime(NOON + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"Retry-After": "0"}, 0),
        ({"Retry-After": " 7 "}, 7),
        ({"Retry-After": "99999999999999999999"}, 300),
        ({"Retry-After": "-7"}, None),
        ({"Retry-After": "1.5"}, None),
        ({"Retry-After": "\u0661"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": date(90), "Date": date(0)}, 90),  # years away from the clock of this machine
        ({"Retry-After": date(-90), "Date": date(0)}, 0),
        ({"Retry-After": date(9_000), "Date": date(0)}, 300),
        ({"Retry-After": date(90)}, 0),  # without a `Date`: this machine's clock
        ({"Retry-After": date(90), "Date": "today"}, 0),
        ({"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, 300),
        ({"Retry-After": "Wed, 01 Jan 2020 12:00:07", "Date": date(0)}, 7),
        ({"Retry-After": "Sun, 99 Nov 2026 99:99:99 GMT"}, None),
    ],
)
def test_retry_after_reads_seconds_and_dates(headers: dict[str, str], expected: float | None) -> None:
    raw = {name: value for name, value in headers.items() if value.isascii()}
    assert retry_after(status_error(raw)) == (expected if raw == headers else None)


def test_retry_after_of_other_errors() -> None:
    error = HTTPError("http://localhost", 503, "busy", {"Retry-After": "7"}, None)  # type: ignore[arg-type]
    assert retry_after(error) == 7
    assert retry_after(error, at_most=3) == 3
    error.close()
    assert retry_after(OSError()) is None
    with pytest.raises(ValueError, match="retry_after: at_most must be a number of seconds"):
        retry_after(OSError(), at_most=-1)


# -- arguments ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "kind", "text"),
    [
        ({"url": 7}, TypeError, "events: url must be a str, not int"),
        ({"executor": None}, TypeError, "Executor is needed"),
        ({"method": 7}, TypeError, "method must be a str"),
        ({"headers": [("a", "b")]}, TypeError, "headers must be a mapping"),
        ({"headers": {"a": b"b"}}, TypeError, "headers must be of str"),
        ({"content": 7}, TypeError, "content must be a str or bytes"),
        ({"timeout": 0}, ValueError, "timeout must be a number of seconds above 0"),
        ({"retry": -1}, ValueError, "retry must be a number of seconds"),
        ({"attempts": -1}, ValueError, "attempts must be at least 0"),
        ({"max_size": 0}, ValueError, "max_size must be at least 1"),
        ({"last_event_id": 7}, TypeError, "last_event_id must be a str"),
    ],
)
def test_bad_arguments_are_refused_at_once(
    pool: ThreadPoolExecutor, bad: dict[str, Any], kind: type[Exception], text: str
) -> None:
    arguments = {"url": "http://localhost", "executor": pool, **bad}
    with pytest.raises(kind, match=text):
        events(arguments.pop("url"), **arguments)


@pytest.mark.parametrize(
    "url",
    [
        "http://me:s/cr3t@host/",
        "http://me:12/cr3t@host/",
        "cr3t",
        "ftp://me:cr3t@host/",
        "http:///cr3t",
        "http://host:cr3t/",
        "http://me:cr\n3t@host",
        "",
    ],
)
def test_a_url_that_cannot_be_read_is_not_shown(pool: ThreadPoolExecutor, url: str) -> None:
    with pytest.raises(ValueError, match="body: the URL can't be read, and is not shown") as raised:
        body(url, executor=pool)
    assert "cr3t" not in shown(raised.value)


def test_explain_shows_the_request(pool: ThreadPoolExecutor) -> None:
    flow = body("http://me:cr3t@host:80/@path?cr3t", executor=pool, method="post")
    assert "body(POST http://host/@path?…)" in flow.explain()
    assert "cr3t" not in flow.explain()
