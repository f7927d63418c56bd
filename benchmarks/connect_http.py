"""The adapters of HTTP: slow clients of one hot source, how fast a cancel is, and both directions beside code by hand.

python benchmarks/connect_http.py [--clients 1000] [--events 20000] [--pairs 5]

By hand, out: a queue of asyncio, with a producer and with heartbeats, in a `StreamingResponse` of Starlette. In: the
lines of a stream of httpx, put together to events, on the thread that handles them; it has no bound, connects to no
server anew, and no other thread can cancel it.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
from connect.http_servers import Client, Scripted, answer, served, stream
from rich.table import Table
from side_by_side import console
from sinks import Sink, until
from starlette.responses import StreamingResponse

from reactive_runtime import Flow
from reactive_runtime.connect.asgi import EventStream
from reactive_runtime.connect.http import body, events
from reactive_runtime.hot import PublishProcessor

ELEMENT = b"x" * 10_000
TEXT = "sixteen bytes .."


class Held:
    """Counts the elements of one client. The event loop's thread, and the one that emits."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now = self.most = self.sent = 0  # lock
        self.cancelled_at = 0.0
        self.ahead = False  # whether its flow has an executor

    def add(self, n: int) -> None:
        with self.lock:
            self.now += n
            self.most = max(self.most, self.now)
            self.sent += n < 0

    def cancelled(self) -> None:
        self.cancelled_at = time.perf_counter()


def counted(source: Flow[bytes], all_held: dict[int, Held], pool: ThreadPoolExecutor) -> Any:
    """The application; the port of a client says which it is. Every second flow has an executor."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        held = all_held[scope["client"][1]] = Held()

        async def taken(message: Any) -> None:
            await send(message)
            if b"data:" in message.get("body", b""):
                held.add(-1)

        flow = source.on_overflow_latest().do_on_next(lambda _: held.add(1)).do_on_cancel(held.cancelled)
        held.ahead = len(all_held) % 2 == 0
        await EventStream(flow.subscribe_on(pool) if held.ahead else flow)(scope, receive, taken)

    return app


def resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def milliseconds(times: list[float]) -> str:
    ordered = sorted(times)
    return (
        f"median {statistics.median(ordered) * 1e3:.1f} ms, 99 % {ordered[int(len(ordered) * 0.99)] * 1e3:.1f} ms,"
        f" longest {ordered[-1] * 1e3:.1f} ms, {sum(item <= 0.1 for item in ordered) / len(ordered):.1%} within 100 ms"
    )


def is_idle() -> bool:
    """Whether what was emitted is with the clients that have room, or is dropped."""
    before = time.process_time()
    time.sleep(0.2)
    return time.process_time() - before < 0.02


def slow_clients(n: int) -> None:
    """None of them reads; then one after the other leaves, while the source goes on."""
    source = PublishProcessor[bytes]()
    all_held: dict[int, Held] = {}
    with ThreadPoolExecutor(1) as pool, served(counted(source, all_held, pool)) as port:
        before = resident()
        clients = []
        for _ in range(n):
            clients.append(Client(port))
            clients[-1].until(b":\n\n")
        connected = resident()
        begun = time.perf_counter()
        for _ in range(200):
            source.emit(ELEMENT)
        taken = time.perf_counter() - begun
        until(is_idle)
        full = resident()
        console.print(
            f"{n:,} clients that don't read, 200 elements of 10,000 bytes from one hot source in {taken:.1f} s:"
        )
        most = {ahead: max(held.most for held in all_held.values() if held.ahead is ahead) for ahead in (False, True)}
        console.print(f"  most held for a client: {most[False]} elements, {most[True]} where the flow has an executor")
        console.print(
            f"  sent to a client: at most {max(held.sent for held in all_held.values())}, then its socket was full"
        )
        each = (full - connected) / n * 1e3
        console.print(
            f"  memory: {(connected - before) / n * 1e3:.0f} kB for each connection (both ends of it), {each:.0f} kB"
            " more with 64 KiB in the buffer of uvicorn"
        )
        over = threading.Event()

        def go_on() -> None:
            while not over.wait(0.05):
                source.emit(ELEMENT)

        going = threading.Thread(target=go_on)
        going.start()
        time.sleep(0.5)
        times = []
        for client in clients[: n // 2]:
            held = all_held[client.socket.getsockname()[1]]
            left = time.perf_counter()
            client.close()
            until(lambda held=held: bool(held.cancelled_at))  # type: ignore[misc]
            times.append(held.cancelled_at - left)
        console.print(f"  from a client's disconnect to the cancel, {n // 2} of them: {milliseconds(times)}")
        at_once = {}
        worked = time.process_time()
        for client in clients[n // 2 :]:
            at_once[client.socket.getsockname()[1]] = time.perf_counter()
            client.close()
        until(lambda: all(all_held[port].cancelled_at for port in at_once))
        worked = time.process_time() - worked
        times = [all_held[port].cancelled_at - left for port, left in at_once.items()]
        console.print(
            f"  the same, {len(at_once)} at once: {milliseconds(times)}; {worked * 1e3:.0f} ms of processor time"
        )
        over.set()
        going.join()


def cancels(n: int) -> None:
    """From `cancel` to the server's end of the connection."""
    times: dict[str, list[float]] = {"the headers": [], "the body": []}
    with ThreadPoolExecutor(1) as pool:
        for what, sent in (("the headers", b""), ("the body", answer(b"", size=10))):
            for _ in range(n):
                asked = threading.Event()

                def answering(connection: Any, sent: bytes = sent, asked: threading.Event = asked) -> None:
                    connection.sendall(sent)
                    asked.set()

                server, sink = Scripted(answering), Sink()
                body(server.url, executor=pool, timeout=None).subscribe(sink)
                asked.wait()
                time.sleep(0.005)
                begun = time.perf_counter()
                sink.subscription.cancel()
                returned = time.perf_counter() - begun
                server.done()
                times[what].append(time.perf_counter() - begun)
                assert returned < 0.1
    for what, taken in times.items():
        console.print(f"from `cancel` to the end of a connection that waits for {what}: {milliseconds(taken)}")


def send_ours(n: int) -> Any:
    return EventStream(Flow.range(n).map(lambda _: TEXT))


def send_by_hand(n: int) -> Any:
    async def records() -> AsyncIterator[str]:
        queue: asyncio.Queue[str | None] = asyncio.Queue(16)

        async def produce() -> None:
            for _ in range(n):
                await queue.put(TEXT)
            await queue.put(None)

        producing = asyncio.ensure_future(produce())
        try:
            while True:
                try:
                    async with asyncio.timeout(15):
                        element = await queue.get()
                except TimeoutError:
                    yield ": heartbeat\n\n"
                    continue
                if element is None:
                    return
                yield "".join(f"data: {line}\n" for line in element.split("\n")) + "\n"
        finally:
            producing.cancel()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await StreamingResponse(records(), media_type="text/event-stream")(scope, receive, send)

    return app


def send(app: Any) -> float:
    with served(app, buffer=2**20) as port:
        client = Client(port)
        client.socket.setsockopt(1, 8, 2**20)  # SO_RCVBUF
        begun = time.perf_counter()
        while client.socket.recv(2**16):
            pass
        client.close()
        return time.perf_counter() - begun


def read_ours(url: str, n: int) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert events(url, executor=pool).take(n).map(lambda event: len(event.data)).sum().block() == n * len(TEXT)


def read_by_hand(url: str, n: int) -> None:
    got, data = 0, []
    with httpx.Client(headers={"accept-encoding": "identity"}) as client, client.stream("GET", url) as response:
        for line in response.iter_lines():
            if line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
            elif not line and data:
                got += len("\n".join(data))
                data = []
    assert got == n * len(TEXT)


def read(fn: Callable[[str, int], None], n: int) -> float:
    server = Scripted(stream(f"data: {TEXT}\n\n".encode() * n), buffer=2**20)
    begun = time.perf_counter()
    fn(server.url, n)
    return time.perf_counter() - begun


def beside(n: int, pairs: int) -> None:
    table = Table("what", "by hand, events/s", "ours, events/s", "ours / by hand")
    parts: dict[str, tuple[Callable[[], float], Callable[[], float]]] = {
        "send events of 16 bytes": (lambda: send(send_by_hand(n)), lambda: send(send_ours(n))),
        "read events of 16 bytes": (lambda: read(read_by_hand, n), lambda: read(read_ours, n)),
    }
    for name, (by_hand, ours) in parts.items():
        taken = []
        for at in range(pairs + 1):
            if at % 2:
                pair = (by_hand(), ours())
            else:
                mine = ours()
                pair = (by_hand(), mine)
            if at:  # the first pair is to get warm
                taken.append(pair)
        hand, mine = (statistics.median(pair[which] for pair in taken) for which in (0, 1))
        ratio = statistics.median(pair[0] / pair[1] for pair in taken)
        table.add_row(name, f"{n / hand:,.0f}", f"{n / mine:,.0f}", f"{ratio:.2f}")
    console.print(table)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--clients", type=int, default=1_000)
    arguments.add_argument("--events", type=int, default=20_000)
    arguments.add_argument("--pairs", type=int, default=5)
    options = arguments.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4 * options.clients + 1_000), most))
    slow_clients(options.clients)
    cancels(50)
    beside(options.events, options.pairs)


if __name__ == "__main__":
    main()
