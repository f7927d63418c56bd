"""A server of live prices, and a program that follows them, over restarts of the server.

    python -m examples.connect.prices_over_http serve
    python -m examples.connect.prices_over_http follow http://localhost:8000

Needs uvicorn and FastAPI for the server.
"""

from __future__ import annotations

import json
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import uvicorn
from fastapi import FastAPI

from reactive_runtime import Flow
from reactive_runtime.connect.asgi import EventStream, StreamBody, json_line
from reactive_runtime.connect.http import Event, events, lines
from reactive_runtime.hot import ReplayProcessor

RUN = f"{time.time_ns():x}"
"""The numbers of the prices begin anew with each run."""


def price_of(number: int) -> Event:
    """The price with this number."""
    return Event({"price": round(random.uniform(9, 11), 2)}, id=f"{RUN}-{number}")


def is_behind(event: Event, last: str) -> bool:
    """Whether a client whose last event is `last` does not have this one."""
    (run, _, number), (last_run, _, last_number) = (id.partition("-") for id in (event.id or "", last))
    return run != last_run or int(number) > int(last_number)


def application(prices: ReplayProcessor[Event], history: Flow[dict[str, float]]) -> FastAPI:
    """Live prices for any number of clients, and the old ones."""
    app = FastAPI()

    def behind(last: str | None) -> Flow[Event]:
        live = prices.on_overflow_buffer(1_000, drop="oldest")
        return live if last is None else live.skip_while(lambda event: not is_behind(event, last))

    @app.get("/prices")
    def live() -> EventStream:
        return EventStream(behind, retry=1)

    @app.get("/history")
    def old() -> StreamBody:
        return StreamBody(history, media_type="application/x-ndjson", encode=json_line)

    return app


def follow(url: str, pool: ThreadPoolExecutor) -> Flow[float]:
    """The old prices, and then the live ones."""
    old = lines(f"{url}/history", executor=pool).map(json.loads)
    live = events(f"{url}/prices", executor=pool, attempts=100).map(lambda event: json.loads(event.data))
    return old.concat_with(live).map(lambda price: float(price["price"]))


def main(what: str, url: str = "http://localhost:8000") -> None:
    """Serve, or follow, until Ctrl-C."""
    if what == "serve":
        prices = ReplayProcessor[Event](1_000)
        ticking = Flow.interval(0.1).map(price_of).subscribe(prices.emit)
        history = Flow.range(3).map(lambda n: {"price": 10.0 + n})
        uvicorn.run(application(prices, history), timeout_graceful_shutdown=1)
        ticking.cancel()
    else:
        with ThreadPoolExecutor(1) as pool:
            follow(url, pool).for_each(print)


if __name__ == "__main__":
    main(*sys.argv[1:])
