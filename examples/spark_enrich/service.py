"""The service: an HTTP server that takes its time, and now and then is too busy to answer."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """`GET /name/7` answers "customer 7", after `seconds`, or 503, for a `fraction` of the calls."""

    protocol_version = "HTTP/1.1"
    seconds = 0.002
    fraction = 0.02

    def do_GET(self) -> None:
        threading.Event().wait(self.seconds)
        busy = random.random() < self.fraction
        answer = b"busy" if busy else f"customer {self.path.rpartition('/')[2]}".encode()
        self.send_response(503 if busy else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: there are a million calls."""


class Server(ThreadingHTTPServer):
    """Many callers at once."""

    request_queue_size = 256
    daemon_threads = True


@contextmanager
def service() -> Iterator[str]:
    """The service, running; its address."""
    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="service")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/name"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
