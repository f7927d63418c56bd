"""The web process: accepts jobs, and streams results to live clients over Server-Sent Events.

A live client gets what it has missed from the stream of Redis (it says the last id that it has seen), and then what
comes. A client that reads too slowly is cut when 64 results wait for it; it comes back, and goes on from its last id.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import psycopg
import redis
import uvicorn
from fastapi import Body, FastAPI, Header, HTTPException
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field

from examples.service import metrics
from examples.service.settings import QUEUE, RESULTS, Settings
from reactive_runtime import Flow, KillSwitch, live
from reactive_runtime.connect.asgi import Event, EventStream
from reactive_runtime.connect.postgres import PostgresError
from reactive_runtime.connect.postgres_queue import enqueue
from reactive_runtime.connect.redis_streams import Message, read
from reactive_runtime.hot import PublishProcessor
from reactive_runtime.scopes import scope
from reactive_runtime.telemetry import observe

WAITING = 64
"""How many results wait for a live client, at most."""
PAGE = 256
"""How many results are read at once for a client that catches up."""


Text = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00]*$")]
"""A text that PostgreSQL can keep."""


Id = Annotated[str, Header(pattern=r"^\d{1,19}(-\d{1,19})?$")]
"""The id of an entry in a stream of Redis."""


class Job(BaseModel):
    """A parcel whose city has to be found."""

    id: Text
    city: Text


class Results:
    """The results of the workers, for live clients."""

    def __init__(self, settings: Settings, pool: ThreadPoolExecutor) -> None:
        self.pool = pool
        self.redis = redis.Redis.from_url(settings.redis, decode_responses=True, socket_timeout=5)
        self.url = settings.redis
        self.hot: PublishProcessor[Event] = PublishProcessor(auto_cancel=False)

    def run(self) -> Flow[Event]:
        """The results that come, given to the clients that are there."""
        new = read(self.url + "?decode_responses=true", RESULTS, "web", "web", executor=self.pool, start="$")
        events = new.map(event_of).acknowledge()
        return events.retry_backoff(1_000_000, first=0.1, most=2.0, when=redis.ConnectionError)

    def after(self, last: str) -> Flow[Event]:
        """The results after this id: first those that are in the stream, then those that come."""
        missed = Flow.generate(last, self.page_after).flat_map_iterable(list).subscribe_on(self.pool)
        coming = self.hot.on_overflow_buffer(WAITING).on_error_complete(when=OverflowError)
        both = Flow.just(missed, coming).flat_map_sequential(lambda part: part, concurrency=2, prefetch=WAITING)
        return both.filter(newer_than(last))

    def page_after(self, last: str) -> tuple[list[Event], str] | None:
        """The next results, and the id of the last of them."""
        entries: Any = self.redis.xrange(RESULTS, f"({last}", "+", PAGE)
        events = [event_of(Message(id, fields, 1)) for id, fields in entries]
        return (events, entries[-1][0]) if entries else None


def event_of(message: Message) -> Event:
    """A result, as live clients get it."""
    return Event(data=message.fields, id=message.id)


def newer_than(last: str) -> Callable[[Event], bool]:
    """Keeps an event only if its id is higher than those before: what was missed may also come."""
    highest = place_of(last)

    def is_newer(event: Event) -> bool:
        nonlocal highest
        place = place_of(event.id or "")
        if place <= highest:
            return False
        highest = place
        return True

    return is_newer


def place_of(id: str) -> tuple[int, int]:
    """An id of a stream, to compare."""
    milliseconds, _, number = id.partition("-")
    return int(milliseconds or 0), int(number or 0)


def application(settings: Settings, leaving: KillSwitch) -> FastAPI:
    """The application, with its flows; the switch ends the streams of the live clients."""
    pool = ThreadPoolExecutor(8, "web")
    results = Results(settings, pool)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with pool:
            async with scope() as s:
                s.start(observe(results.run(), "results"), results.hot)
                results.hot.subscribe(lambda event: None)  # what comes while no client looks goes on, too
                yield
                s.cancel()
        print("the web process has closed its flows", flush=True)

    app = FastAPI(title="Parcels", lifespan=lifespan)

    @app.get("/")
    def page() -> FileResponse:
        return FileResponse(Path(__file__).with_name("page.html"))

    @app.post("/jobs", status_code=202)
    def accept(jobs: Annotated[list[Job], Body(max_length=1_000)]) -> dict[str, int]:
        """The answer says that all of them are in the queue, and committed."""
        bodies = Flow.from_iterable(jobs).map(Job.model_dump)
        try:
            return {"accepted": enqueue(bodies, settings.database, QUEUE).block(timeout=30) or 0}
        except PostgresError as error:
            raise HTTPException(503, str(error), {"Retry-After": "1"}) from error

    @app.get("/live")
    def follow(last_event_id: Id = "0") -> EventStream:
        """All results from the beginning, or after the last one that the client has seen; and then those that come."""
        return EventStream(observe(results.after(last_event_id).kill_switch(leaving), "clients"), heartbeat=10)

    @app.get("/stats")
    def stats() -> dict[str, Any]:
        """The numbers that the page shows beside the results."""
        with psycopg.connect(settings.database, connect_timeout=5) as connection:
            counts = [
                connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in (QUEUE, "parcels", "failed")
            ]
        names = ("waiting", "written", "failed")
        return {name: row[0] for name, row in zip(names, counts, strict=True) if row}

    @app.get("/health")
    def health() -> dict[str, Any]:
        """The flows of this process that have stalled, with the cause."""
        return {"stalled": [flow.cause.text for flow in live.snapshot().stalled if flow.cause]}

    return app


class Server(uvicorn.Server):
    """Ends the streams of the live clients at SIGTERM: it waits until its connections have closed.

    Args:
        config: That of Uvicorn.
        leaving: The switch of the streams.
    """

    def __init__(self, config: uvicorn.Config, leaving: KillSwitch) -> None:
        super().__init__(config)
        self.leaving = leaving

    async def on_tick(self, counter: int) -> bool:
        """Uvicorn calls this ten times a second."""
        leaves = await super().on_tick(counter)
        if leaves:
            await asyncio.to_thread(self.leaving.throw, within=1)
        return leaves


def main(port: str) -> None:
    """Serve until SIGTERM."""
    metrics.serve()
    leaving = KillSwitch()
    app = application(Settings.from_environment(), leaving)
    config = uvicorn.Config(app, "127.0.0.1", int(port), log_level="warning", timeout_graceful_shutdown=5)
    Server(config, leaving).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
