"""Flows as answers of ASGI servers: by demand of the socket, and cancelled when the client has gone."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi import BackgroundTasks, FastAPI
from sinks import PATIENCE, until
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.routing import Mount, Route

from connect.http_servers import Client, body_of, head_of, served
from reactive_runtime import Flow
from reactive_runtime.connect.asgi import Event, EventStream, StreamBody, json_line
from reactive_runtime.hot import PublishProcessor

ROOT = Path(__file__).parents[2]
STREAM = b"text/event-stream"


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


class Watched:
    """Counts what becomes of a flow: subscriptions, elements, cancels."""

    def __init__(self, flow: Flow[Any]) -> None:
        self._lock = threading.Lock()
        self.subscribed = self.made = self.asked = self.cancelled = 0  # _lock
        self.flow = (
            flow.do_on_subscribe(lambda: self.count("subscribed"))
            .do_on_next(lambda _: self.count("made"))
            .do_on_request(lambda n: self.count("asked", n))
            .do_on_cancel(lambda: self.count("cancelled"))
        )

    def count(self, what: str, n: int = 1) -> None:
        with self._lock:
            setattr(self, what, getattr(self, what) + n)


def answer(app: Any, path: str = "/", **more: Any) -> bytes:
    """The whole answer of a server with this application."""
    with served(app) as port:
        return Client(port, path, **more).all()


# -- what is sent -------------------------------------------------------------------------------------------------


def test_each_kind_of_element_is_a_record() -> None:
    elements = ["text", b"bytes", {"n": 1}, [1, "ä"], 7, True, "", "two\nlines", "a\r\nb\rc", "\u2028\x0b\x85"]
    got = answer(EventStream(Flow.from_iterable(elements), heartbeat=None))
    status, headers = head_of(got)
    assert status == 200
    assert headers["content-type"] == "text/event-stream"
    assert headers["cache-control"] == "no-store"
    assert "content-length" not in headers
    records = body_of(got).decode().split("\n\n")
    assert records[0] == ":"
    assert records[1:5] == ["data: text", "data: bytes", 'data: {"n":1}', 'data: [1,"ä"]']
    assert records[5:8] == ["data: 7", "data: true", "data: "]
    assert records[8:] == ["data: two\ndata: lines", "data: a\ndata: b\ndata: c", "data: \u2028\x0b\x85", ""]


def test_an_event_has_a_type_and_an_id() -> None:
    flow = Flow.just(Event({"n": 1}, "sum", "7"), Event("tea"), Event("x", id=""))
    got = body_of(answer(EventStream(flow, retry=1.5, headers={"X-Of": "tests", "Cache-Control": "private"})))
    assert got == b'retry: 1500\n\nevent: sum\nid: 7\ndata: {"n":1}\n\ndata: tea\n\nid: \ndata: x\n\n'


def test_headers_and_status_are_those_of_the_user() -> None:
    for app in (
        EventStream(Flow.empty(), status=201, headers={"X-Of": "tests", "Cache-Control": "private"}),
        StreamBody(Flow.empty(), media_type="a/b", status=201, headers={"X-Of": "tests", "Cache-Control": "private"}),
    ):
        status, headers = head_of(answer(app))
        assert (status, headers["x-of"], headers["cache-control"]) == (201, "tests", "private")


def test_elements_are_encoded_as_the_user_says() -> None:
    flow = Flow.just(1, Event(2, "two"), 3)
    assert body_of(answer(EventStream(flow, encode=lambda n: f"n{n}".encode()))).split(b"\n\n")[1:] == [
        b"data: n1",
        b"event: two\ndata: n2",
        b"data: n3",
        b"",
    ]


def test_a_body_is_bytes_and_text_as_they_are() -> None:
    got = answer(StreamBody(Flow.just("ä", b"\x00\xff", bytearray(b"b"), memoryview(b"m")), media_type="a/b"))
    assert head_of(got)[1]["content-type"] == "a/b"
    assert body_of(got) == b"\xc3\xa4\x00\xffbm"


def test_a_body_of_json_lines() -> None:
    flow = Flow.range(3).map(lambda n: {"n": n})
    got = answer(StreamBody(flow, media_type="application/x-ndjson", encode=json_line))
    assert body_of(got) == b'{"n":0}\n{"n":1}\n{"n":2}\n'


@pytest.mark.parametrize("app", [EventStream(Flow.empty()), StreamBody(Flow.empty(), media_type="text/plain")])
def test_an_empty_flow_is_an_empty_answer(app: Any) -> None:
    assert body_of(answer(app)) in (b"", b":\n\n")


def test_each_request_subscribes_anew() -> None:
    watched = Watched(Flow.range(2))
    with served(StreamBody(watched.flow, media_type="text/plain", encode=str)) as port:
        for _ in range(3):
            assert body_of(Client(port).all()) == b"01"
    assert watched.subscribed == 3


# -- where it stands ----------------------------------------------------------------------------------------------


def numbers() -> EventStream:
    return EventStream(Flow.range(3))


def fast() -> FastAPI:
    app = FastAPI()

    @app.get("/sync")
    def sync() -> EventStream:
        return numbers()

    @app.get("/async")
    async def asynchronous() -> EventStream:
        return numbers()

    @app.get("/body")
    def body() -> StreamBody:
        return StreamBody(Flow.range(3), media_type="text/plain", encode=str)

    @app.get("/later")
    def later(tasks: BackgroundTasks) -> EventStream:
        tasks.add_task(after.append, "done")
        return numbers()

    return app


after: list[str] = []


class Passing(BaseHTTPMiddleware):
    async def dispatch(self, request: Any, call_next: Callable[..., Any]) -> Any:
        response = await call_next(request)
        response.headers["X-Passed"] = "yes"
        return response


def star() -> Starlette:
    return Starlette(
        routes=[
            Route("/route", lambda request: numbers()),
            Mount("/mount", numbers()),
            Mount("/fast", fast()),
            Route("/posted", lambda request: numbers(), methods=["POST"]),
        ],
        middleware=[Middleware(Passing), Middleware(GZipMiddleware)],
    )


@pytest.mark.parametrize("path", ["/route", "/mount/", "/fast/sync", "/fast/async"])
def test_a_handler_returns_one_and_a_mount_has_one(path: str) -> None:
    got = answer(star(), path, headers="Accept-Encoding: gzip\r\n")
    assert head_of(got)[1]["x-passed"] == "yes"
    assert body_of(got) == b":\n\ndata: 0\n\ndata: 1\n\ndata: 2\n\n"


def test_a_handler_of_fastapi_returns_a_body() -> None:
    assert body_of(answer(fast(), "/body")) == b"012"


def test_background_tasks_of_fastapi_run_after_it() -> None:
    after.clear()
    assert b"data: 2" in answer(fast(), "/later")
    until(lambda: after == ["done"])


def test_a_posted_body_that_is_not_read_is_no_disconnect() -> None:
    got = answer(star(), "/posted", method="POST", headers="Content-Length: 4\r\n\r\nbody")
    assert body_of(got).endswith(b"data: 2\n\n")


def test_head_has_headers_and_no_subscription() -> None:
    watched = Watched(Flow.range(2))
    got = answer(EventStream(watched.flow), method="HEAD")
    assert head_of(got)[1]["content-type"] == "text/event-stream"
    assert got.endswith(b"\r\n\r\n")
    assert watched.subscribed == 0


def test_starlette_sees_a_response() -> None:
    response: Any = EventStream(Flow.empty())
    assert isinstance(response, Response)
    response.set_cookie("name", "value")
    assert "name=value" in head_of(answer(response))[1]["set-cookie"]


def test_nothing_but_http_is_answered() -> None:
    with pytest.raises(RuntimeError, match="EventStream: it answers http, not websocket"):
        asyncio.run(numbers()({"type": "websocket"}, never, never))


async def never(*_: object) -> Any:
    raise AssertionError("called")


def test_no_framework_is_needed() -> None:
    program = """
import asyncio, sys
sys.modules.update(starlette=None, fastapi=None, httpx=None, uvicorn=None)
from reactive_runtime import Flow
from reactive_runtime.connect.asgi import EventStream

async def main():
    sent = []
    async def send(message): sent.append(message.get("body", message["type"]))
    async def receive(): await asyncio.Event().wait()
    await EventStream(Flow.range(2))({"type": "http", "method": "GET", "headers": []}, receive, send)
    print(sent)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "['http.response.start', b':\\n\\ndata: 0\\n\\n', b'data: 1\\n\\n', b'']"


# -- heartbeats, and the last id ----------------------------------------------------------------------------------


def test_a_comment_is_sent_where_no_element_comes() -> None:
    source = PublishProcessor[str]()
    watched = Watched(source)
    with served(EventStream(watched.flow, heartbeat=0.01)) as port:
        client = Client(port)
        client.until(b": heartbeat\n\n\r\nd\r\n: heartbeat")
        source.emit("tea")
        client.until(b"data: tea\n\n")
        client.got = b""
        client.until(b": heartbeat")
        source.on_complete()
        assert client.all().endswith(b"\r\n0\r\n\r\n")
    assert (watched.subscribed, watched.made) == (1, 1)


def test_a_timeout_of_the_flow_is_no_heartbeat() -> None:
    got = answer(EventStream(Flow.never().timeout(0.01), heartbeat=PATIENCE))
    assert body_of(got) == b":\n\nevent: error\ndata: the stream has failed\n\n"


@pytest.mark.parametrize(
    ("sent", "expected"), [("", None), ("Last-Event-ID: 7\r\n", "7"), ("last-event-id: \xc3\xa4\xff\r\n", "ä\ufffd")]
)
def test_the_last_id_makes_the_flow(sent: str, expected: str | None) -> None:
    seen: list[str | None] = []

    def after(id: str | None) -> Flow[str]:
        seen.append(id)
        return Flow.just("tea")

    assert b"data: tea" in answer(EventStream(after), headers=sent)
    assert seen == [expected]


def test_an_error_of_the_function_is_the_answer_of_the_framework() -> None:
    def after(id: str | None) -> Flow[str]:
        raise HTTPException(410, "too old")

    app = Starlette(routes=[Route("/", lambda request: EventStream(after))])
    got = answer(app)
    assert head_of(got)[0] == 410
    assert got.endswith(b"too old")


def test_a_function_that_makes_no_flow_is_named(caplog: pytest.LogCaptureFixture) -> None:
    assert head_of(answer(EventStream(lambda last: [1, 2])))[0] == 500  # type: ignore[arg-type, return-value]
    assert "EventStream: of the function a Flow is needed, not" in caplog.text


# -- errors -------------------------------------------------------------------------------------------------------


def failing() -> Flow[str]:
    return Flow.just("tea").concat_with(Flow.error(OSError("postgres://me:secret@db")))


def test_an_error_is_a_record_without_internals(caplog: pytest.LogCaptureFixture) -> None:
    got = body_of(answer(EventStream(failing())))
    assert got == b":\n\ndata: tea\n\nevent: error\ndata: the stream has failed\n\n"
    assert "OSError: postgres" in caplog.text  # the server's log has it


def test_the_last_record_is_of_the_user_and_the_server_hears_no_error(caplog: pytest.LogCaptureFixture) -> None:
    def last(error: Exception) -> Event:
        return Event({"kind": type(error).__name__}, "gone", "9")

    assert body_of(answer(EventStream(failing(), on_error=last))).endswith(
        b'event: gone\nid: 9\ndata: {"kind":"OSError"}\n\n'
    )
    assert body_of(answer(EventStream(failing(), on_error=lambda error: None))) == b":\n\ndata: tea\n\n"
    assert "Exception in ASGI" not in caplog.text


def test_the_error_is_raised_although_the_answer_is_complete() -> None:
    """A server says that the client has gone as soon as it has the last part, whose `send` may not have returned."""
    complete = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await complete.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if not message.get("more_body", True):
            complete.set()
            for _ in range(5):
                await asyncio.sleep(0)

    async def main() -> None:
        await EventStream(failing())({"type": "http", "method": "GET", "headers": []}, receive, send)

    with pytest.raises(OSError, match="secret@db"):
        asyncio.run(main())


def test_a_body_that_fails_has_no_end(caplog: pytest.LogCaptureFixture) -> None:
    got = answer(StreamBody(failing(), media_type="text/plain"))
    assert got.endswith(b"\r\n\r\n3\r\ntea\r\n")  # and no last chunk
    assert "OSError: postgres" in caplog.text


def test_a_body_that_fails_at_once_is_an_error_of_the_server() -> None:
    status, _ = head_of(answer(StreamBody(Flow.error(OSError("no table")), media_type="text/plain")))
    assert status == 500


@pytest.mark.parametrize(
    ("app", "text"),
    [
        (EventStream(Flow.just(object())), "EventStream could not send <object"),
        (EventStream(Flow.just(float("nan"))), "EventStream could not send nan"),
        (EventStream(Flow.just(1), encode=lambda n: n), "encode must return a str or bytes, not int"),
        (EventStream(Flow.just(b"\xff")), "EventStream could not send b'\\xff'"),
        (EventStream(Flow.just(Event("x", "a\nb"))), "event of an Event must be one line without a NUL, not 'a\\nb'"),
        (EventStream(Flow.just(Event("x", id="a\r"))), "id of an Event must be one line without a NUL"),
        (EventStream(Flow.just(Event("x", id="a\0"))), "id of an Event must be one line without a NUL"),
        (EventStream(Flow.just(Event("x", id=7))), "id of an Event must be a str, not int"),  # type: ignore[arg-type]
        (StreamBody(Flow.just({"n": 1}), media_type="a/b"), "StreamBody: bytes or text is needed, not dict"),
    ],
)
def test_an_element_that_cannot_be_sent_is_named(app: Any, text: str, caplog: pytest.LogCaptureFixture) -> None:
    answer(app)
    assert text in caplog.text


# -- demand -------------------------------------------------------------------------------------------------------


class Exchange:
    """One request whose `send` returns when a test lets it, on the event loop of the test."""

    def __init__(self, app: Any) -> None:
        self.sent: list[bytes] = []
        self.sending = asyncio.Semaphore(0)  # a send begins
        self.room = asyncio.Semaphore(0)  # the socket has room for one more
        self.gone = asyncio.Event()
        scope = {"type": "http", "method": "GET", "headers": []}
        self.task = asyncio.ensure_future(app(scope, self.receive, self.send))

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body" and message["body"][:1] not in (b":", b""):
            self.sending.release()
            await self.room.acquire()
            self.sent.append(message["body"])


@pytest.mark.parametrize("prefetch", [1, 2, 16, 64])
def test_the_next_element_is_requested_when_the_socket_has_taken_one(pool: ThreadPoolExecutor, prefetch: int) -> None:
    watched = Watched(Flow.range(1_000))

    async def main() -> None:
        exchange = Exchange(EventStream(watched.flow.subscribe_on(pool), prefetch=prefetch))
        for taken in range(200):
            await asyncio.wait_for(exchange.sending.acquire(), PATIENCE)
            pool.submit(int).result()  # what was requested has been made
            assert watched.asked <= taken + prefetch
            assert watched.made <= taken + prefetch
            exchange.room.release()
        exchange.gone.set()
        await asyncio.wait_for(exchange.task, PATIENCE)

    asyncio.run(main())
    until(lambda: watched.cancelled == 1)  # the pool's thread cancels it


def test_a_flow_without_an_executor_is_pulled_one_at_a_time() -> None:
    watched = Watched(Flow.range(1_000))

    async def main() -> None:
        exchange = Exchange(StreamBody(watched.flow, media_type="a/b", encode=str))
        for taken in range(50):
            await asyncio.wait_for(exchange.sending.acquire(), PATIENCE)
            assert watched.made == taken + 1
            exchange.room.release()
        exchange.gone.set()
        await asyncio.wait_for(exchange.task, PATIENCE)

    asyncio.run(main())


def test_slow_clients_of_a_hot_source_hold_little_each() -> None:
    """None of them reads; one that does gets the newest."""
    source = PublishProcessor[bytes]()
    clients: list[Held] = []

    def flow(_: object) -> Flow[bytes]:
        held = Held()
        clients.append(held)
        return source.on_overflow_latest().do_on_next(lambda _: held.add(1)).do_on_cancel(held.cancelled.set)

    app = EventStream(flow)

    async def counted(scope: Any, receive: Any, send: Any) -> None:
        mine: list[Held] = []

        async def taken(message: Any) -> None:
            mine.extend(clients[-1:] if not mine else [])
            await send(message)
            if b"data:" in message.get("body", b""):
                mine[0].add(-1)

        await app(scope, receive, taken)

    with served(counted) as port:
        slow = []
        for n in range(50):
            slow.append(Client(port))
            slow[n].until(b":\n\n")
        element = b"x" * 10_000
        for _ in range(100):
            source.emit(element)
        reader = Client(port)
        reader.until(b":\n\n")
        source.emit(b"newest")
        reader.until(b"data: newest\n\n")
        for client in (*slow, reader):
            client.close()
        for held in clients:
            assert held.cancelled.wait(PATIENCE)
    assert len(clients) == 51
    assert max(held.most for held in clients) <= 16


class Held:
    """How many elements one client holds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = self.most = 0  # _lock
        self.cancelled = threading.Event()

    def add(self, n: int) -> None:
        with self._lock:
            self._now += n
            self.most = max(self.most, self._now)


# -- a client that leaves -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("middleware", [[], [Middleware(Passing)]])
def test_a_client_that_leaves_cancels_a_flow_that_waits(middleware: list[Middleware]) -> None:
    watched = Watched(Flow.never())
    app = Starlette(routes=[Route("/", lambda request: EventStream(watched.flow))], middleware=middleware)
    with served(app) as port:
        client = Client(port)
        client.until(b":\n\n")
        client.close()
        until(lambda: watched.cancelled == 1)


@pytest.mark.parametrize("kind", ["events", "body"])
def test_a_client_that_leaves_cancels_a_flow_whose_socket_is_full(pool: ThreadPoolExecutor, kind: str) -> None:
    watched = Watched(Flow.range(1_000).map(lambda _: "x" * 100_000))
    flow = watched.flow.subscribe_on(pool)
    app = EventStream(flow) if kind == "events" else StreamBody(flow, media_type="text/plain")
    with served(app) as port:
        client = Client(port)
        client.until(b"xxx")
        until(lambda: watched.made == 16)
        assert watched.cancelled == 0
        client.close()
        until(lambda: watched.cancelled == 1)
        assert watched.made < 50


def test_a_send_that_never_waits_leaves_the_event_loop_its_turns() -> None:
    watched = Watched(Flow.range(100_000))

    async def send(message: object) -> None:
        pass

    async def receive() -> dict[str, Any]:
        for _ in range(10):
            await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    async def main() -> None:
        await EventStream(watched.flow)({"type": "http", "method": "GET", "headers": []}, receive, send)

    asyncio.run(main())
    assert watched.cancelled == 1
    assert watched.made < 100


def test_one_of_two_fast_clients_leaves() -> None:
    watched = Watched(Flow.just("tea").repeat())
    with served(EventStream(watched.flow)) as port:
        client, other = Client(port), Client(port)
        for one in (client, other):
            one.until(b"data: tea\n\n")
        reading = threading.Thread(target=other.all)
        reading.start()
        client.close()
        until(lambda: watched.cancelled == 1)
        other.socket.shutdown(socket.SHUT_RDWR)
        reading.join(PATIENCE)
        until(lambda: watched.cancelled == 2)


def test_a_server_that_cancels_the_task_cancels_the_flow() -> None:
    watched = Watched(Flow.never())

    async def main() -> None:
        exchange = Exchange(EventStream(watched.flow))
        while not watched.subscribed:
            await asyncio.sleep(0)
        exchange.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await exchange.task
        assert watched.cancelled == 1
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


@pytest.mark.parametrize("error", [OSError("gone"), TimeoutError("gone")])
def test_a_send_that_says_that_the_client_has_gone_ends_it(error: OSError) -> None:
    watched = Watched(Flow.range(10))

    async def send(message: Any) -> None:
        if b"data: 3" in message.get("body", b""):
            raise error

    async def main() -> None:
        await EventStream(watched.flow)({"type": "http", "method": "GET", "headers": []}, forever, send)

    asyncio.run(main())
    assert (watched.made, watched.cancelled) == (4, 1)


async def forever() -> Any:
    await asyncio.Event().wait()


def test_an_error_of_receive_ends_it() -> None:
    watched = Watched(Flow.never())

    async def receive() -> Any:
        raise LookupError("no message")

    async def send(message: object) -> None:
        pass

    async def main() -> None:
        await EventStream(watched.flow)({"type": "http", "method": "GET", "headers": []}, receive, send)

    with pytest.raises(LookupError, match="no message"):
        asyncio.run(main())


def test_a_client_that_takes_nothing_for_too_long_is_left(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(Flow.just("x" * 100_000).repeat())
    with served(EventStream(watched.flow, send_timeout=0.1)) as port:
        client = Client(port)
        until(lambda: watched.cancelled == 1)
        until(lambda: "EventStream: the client took nothing for 0.1 s (send_timeout), and is left" in caplog.text)
        client.close()


# -- arguments ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (
            lambda: EventStream([1]),  # type: ignore[arg-type]
            TypeError,
            "EventStream: a Flow, or a function that makes one, is needed, not list",
        ),
        (lambda: EventStream(forever), TypeError, "flow is a coroutine function"),  # type: ignore[arg-type]
        (lambda: EventStream(Flow.empty(), heartbeat=0), ValueError, "EventStream: heartbeat must be a number"),
        (lambda: EventStream(Flow.empty(), retry=-1), ValueError, "EventStream: retry must be a number"),
        (lambda: EventStream(Flow.empty(), prefetch=0), ValueError, "EventStream: prefetch must be at least 1"),
        (
            lambda: EventStream(Flow.empty(), prefetch=65),
            ValueError,
            "EventStream: prefetch must be at most 64, not 65",
        ),
        (lambda: EventStream(Flow.empty(), send_timeout=0), ValueError, "EventStream: send_timeout must be a number"),
        (lambda: EventStream(Flow.empty(), encode=7), TypeError, "EventStream: encode must be callable"),  # type: ignore[arg-type]
        (lambda: EventStream(Flow.empty(), on_error="x"), TypeError, "EventStream: on_error must be callable"),  # type: ignore[arg-type]
        (lambda: EventStream(Flow.empty(), status=100), ValueError, "EventStream: status must be at least 200"),
        (lambda: EventStream(Flow.empty(), headers=[]), TypeError, "EventStream: headers must be a mapping"),  # type: ignore[arg-type]
        (lambda: EventStream(Flow.empty(), headers={"a": 7}), TypeError, "EventStream: headers must be of str"),  # type: ignore[dict-item]
        (lambda: EventStream(Flow.empty(), headers={"a": "b\r\nc: d"}), ValueError, "the header a must be one line"),
        (lambda: EventStream(Flow.empty(), headers={"a\n": "b"}), ValueError, "is no name of a header"),
        (lambda: StreamBody(Flow.empty(), media_type="a/b\nc: d"), ValueError, "the header content-type must be one"),
        (lambda: StreamBody(Flow.empty, media_type="a/b"), TypeError, "StreamBody: a Flow is needed"),  # type: ignore[arg-type]
        (lambda: StreamBody(Flow.empty(), media_type=7), TypeError, "StreamBody: media_type must be a str"),  # type: ignore[arg-type]
    ],
)
def test_bad_arguments_are_refused_at_once(make: Callable[[], object], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()
