"""The slow service that the workers call: it answers in 10 to 50 ms, takes 32 calls at a time, and fails now and then.

It stands for a service of another team, which you can't change. Its answers:

    200  the place of a city
    404  there is no such city: no retry helps
    429  too many calls at a time; `Retry-After` says when to come again
    503  it is out of order, for a second out of every twenty
"""

from __future__ import annotations

import asyncio
import random
import sys
import time

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

CITIES = {
    "Bergen": (60.39, 5.32),
    "Ghent": (51.05, 3.72),
    "Porto": (41.15, -8.61),
    "Turin": (45.07, 7.69),
    "Vilnius": (54.69, 25.28),
}
AT_A_TIME = 32


class Places:
    """The calls that it works on, and the answers that it gives."""

    def __init__(self) -> None:
        self.calls = 0  # the event loop's

    async def answer(self, request: Request) -> Response:
        """The place of the city."""
        if self.calls >= AT_A_TIME:
            return Response(status_code=429, headers={"Retry-After": "1"})
        if time.time() % 20 < 1:
            return Response(status_code=503)
        self.calls += 1
        try:
            await asyncio.sleep(random.uniform(0.01, 0.05))
        finally:
            self.calls -= 1
        place = CITIES.get(request.path_params["city"])
        if place is None:
            return Response(status_code=404)
        return JSONResponse({"lat": place[0], "lon": place[1]})


def main(port: str) -> None:
    """Serve until SIGTERM."""
    app = Starlette(routes=[Route("/places/{city}", Places().answer)])
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
