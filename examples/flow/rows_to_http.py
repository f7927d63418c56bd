"""Rows from a database cursor, in batches, to an HTTP service: 32 calls in flight, retries, a bounded buffer.

The database is sqlite3, the service a server of this program's own, which answers one call in ten with 503.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from reactive_runtime import Flow

ROWS = 2_000


class Service(BaseHTTPRequestHandler):
    """Adds up what it is sent; fails now and then."""

    protocol_version = "HTTP/1.1"
    lock = threading.Lock()
    calls = 0

    def do_POST(self) -> None:
        amounts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with Service.lock:
            Service.calls += 1
            status = 503 if Service.calls % 10 == 0 else 200
        body = json.dumps(sum(amounts)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


class Server(ThreadingHTTPServer):
    """32 callers come at the same time."""

    request_queue_size = 128


def is_worth_another_call(error: Exception) -> bool:
    """503, and connections that break: both are OSErrors."""
    return isinstance(error, OSError)


def main(database: str = "file:orders?mode=memory&cache=shared") -> int:
    """The sum of all amounts, as the service sees it."""
    keep = sqlite3.connect(database, uri=True)
    keep.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER)")
    keep.executemany("INSERT INTO orders (amount) VALUES (?)", ((n,) for n in range(ROWS)))
    keep.commit()
    server = Server(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"

    def rows() -> Iterator[int]:
        connection = sqlite3.connect(database, uri=True)
        try:
            for (amount,) in connection.execute("SELECT amount FROM orders ORDER BY id"):
                yield amount
        finally:
            connection.close()

    def send(batch: list[int]) -> int:
        request = urllib.request.Request(url, json.dumps(batch).encode())
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return int(json.load(answer))
        except urllib.error.HTTPError as refused:
            refused.close()  # it is an answer as well
            raise

    with ThreadPoolExecutor(1) as cursor, ThreadPoolExecutor(32) as calls:
        total = (
            Flow.from_supplier(rows)
            .subscribe_on(cursor)  # the cursor keeps to its thread
            .batch(25)
            .limit_rate(64)  # no more batches than that wait
            .flat_map(
                lambda batch: (
                    Flow.from_callable(lambda: send(batch))
                    .subscribe_on(calls)
                    .retry_backoff(5, first=0.01, when=is_worth_another_call)
                ),
                concurrency=32,
            )
            .sum()
            .block(timeout=60)
        )
    server.shutdown()
    server.server_close()
    keep.close()
    assert total is not None
    return total


if __name__ == "__main__":
    print(f"{ROWS} orders, {main():,} in all; the service was called {Service.calls} times")
