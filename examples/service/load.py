"""Loads the service, kills parts of it at random, and counts what is lost.

python -m examples.service.load --jobs 8000 --kills 40

Senders post jobs, and post them again where no answer came. Live clients follow the results, and come back where their
stream breaks. Meanwhile parts are killed as by `kill -9`: workers, the web process, the slow service, the servers.
Nothing is lost if each accepted job has its row, with the place of its city, and each client has seen each result.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import psycopg

from examples.service.parts import PATIENCE, Service
from examples.service.places import CITIES
from reactive_runtime.connect.http import Event, events

__all__ = ["Outcome", "run"]

BATCH = 50
"""How many jobs one request has."""
NOWHERE = "Atlantis"
"""A city that the slow service does not know: one job in fifty."""


class Client:
    """A live client: it comes back where its stream breaks, behind the last result that it has seen.

    Args:
        url: The address of the service.
        pool: One thread reads while the client is there.
    """

    def __init__(self, url: str, pool: ThreadPoolExecutor) -> None:
        self.seen: Counter[str] = Counter()  # the thread that reads
        results = events(f"{url}/live", executor=pool, retry=0.1, attempts=1_000, timeout=15)
        self.done = results.filter(lambda event: event.event == "message").map(self.see).to_future()

    def see(self, event: Event) -> str:
        """Count the result."""
        id: str = json.loads(event.data)["id"]
        self.seen[id] += 1
        return id

    def leave(self) -> None:
        """Close its stream.

        Raises:
            Exception: The stream has failed before.
        """
        if not self.done.cancel():
            self.done.result()


@dataclass(frozen=True)
class Outcome:
    """The result of a run.

    Args:
        accepted: How many jobs were sent and accepted.
        lost: Accepted jobs without a row.
        wrong: Rows that are not those of their job.
        unseen: Results that a live client has not seen, of all clients.
        seen_twice: Results that a live client has seen more than once, of all clients.
        kills: How often each part was killed.
        seconds: How long it took, from the first job to the last result.
    """

    accepted: int
    lost: int
    wrong: int
    unseen: int
    seen_twice: int
    kills: dict[str, int]
    seconds: float

    def __str__(self) -> str:
        killed = ", ".join(f"{name} {n}" for name, n in sorted(self.kills.items())) or "none"
        return (
            f"{self.accepted} jobs accepted, in {self.seconds:.0f} s with {sum(self.kills.values())} kills ({killed})\n"
            f"lost: {self.lost}; wrong rows: {self.wrong}\n"
            f"of the live clients: {self.unseen} results not seen, {self.seen_twice} seen more than once"
        )


def run(service: Service, *, jobs: int, kills: int, clients: int, pause: float, seed: int) -> Outcome:
    """Load a service that runs.

    Args:
        service: The service.
        jobs: How many jobs are sent.
        kills: How many times a part is killed; it is started again.
        clients: How many live clients follow the results.
        pause: Seconds from one kill to the next, on average.
        seed: Of what is sent and killed.
    """
    chance = random.Random(seed)
    cities = {f"{seed}-{n}": NOWHERE if n % 50 == 7 else chance.choice(sorted(CITIES)) for n in range(jobs)}
    begun = time.monotonic()
    with ThreadPoolExecutor(clients + 1, "load") as pool:
        followers = [Client(service.url, pool) for _ in range(clients)]
        try:
            killing = pool.submit(kill_parts, service, chance, kills, pause)
            send(service.url, cities)
            killed = killing.result()
            rows = wait_for(lambda: rows_of(service, cities), len(cities))
            wait_for(lambda: min((follower.seen for follower in followers), key=len, default=cities), len(cities))
            seconds = time.monotonic() - begun
        finally:
            for follower in followers:
                follower.leave()
    return Outcome(
        accepted=len(cities),
        lost=len(cities.keys() - rows.keys()),
        wrong=sum(row != expected(cities[id]) for id, row in rows.items()),
        unseen=sum(len(cities.keys() - follower.seen.keys()) for follower in followers),
        seen_twice=sum(n > 1 for follower in followers for n in follower.seen.values()),
        kills=killed,
        seconds=seconds,
    )


def send(url: str, cities: dict[str, str]) -> None:
    """Post all jobs; a request without an answer is sent again."""
    jobs = [{"id": id, "city": city} for id, city in cities.items()]
    with httpx.Client(base_url=url, timeout=30) as http:
        for begin in range(0, len(jobs), BATCH):
            while not is_accepted(http, jobs[begin : begin + BATCH]):
                time.sleep(0.1)


def is_accepted(http: httpx.Client, jobs: list[dict[str, str]]) -> bool:
    """Whether the service has said that it has these jobs."""
    try:
        return http.post("/jobs", json=jobs).status_code == 202
    except httpx.HTTPError:
        return False


def kill_parts(service: Service, chance: random.Random, kills: int, pause: float) -> dict[str, int]:
    """Kill parts at random; returns how often each was killed."""
    killed: Counter[str] = Counter()
    for _ in range(kills):
        time.sleep(chance.uniform(0, 2 * pause))
        name = chance.choice(sorted(service.parts))
        service.kill(name)
        killed[name] += 1
    return dict(killed)


def wait_for(read: Callable[[], Any], size: int) -> Any:
    """The answer of `read` when it has the size; or the last one, when it has not grown for `PATIENCE` seconds."""
    last, since = read(), time.monotonic()
    while len(last) < size and time.monotonic() < since + PATIENCE:
        time.sleep(0.2)
        now = read()
        if len(now) != len(last):
            since = time.monotonic()
        last = dict(now)
    return last


def rows_of(service: Service, cities: dict[str, str]) -> dict[str, tuple[Any, ...]]:
    """The rows of these jobs."""
    try:
        with psycopg.connect(service.settings.database, connect_timeout=5) as connection:
            parcels = connection.execute("SELECT id, city, lat, lon FROM parcels").fetchall()
            failed = connection.execute("SELECT id FROM failed").fetchall()
    except psycopg.OperationalError:
        return {}
    rows = {id: tuple(place) for id, *place in parcels} | {id: () for (id,) in failed}
    return {id: row for id, row in rows.items() if id in cities}


def expected(city: str) -> tuple[Any, ...]:
    """The row of a job."""
    return (city, *CITIES[city]) if city in CITIES else ()


def main() -> None:
    """Run it, and print what it has found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--pause", type=float, default=1.5, help="seconds between kills, on average")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with Service(asked.workers) as service:
        found = run(
            service, jobs=asked.jobs, kills=asked.kills, clients=asked.clients, pause=asked.pause, seed=asked.seed
        )
    print(found)
    raise SystemExit(1 if found.lost or found.wrong or found.unseen else 0)


if __name__ == "__main__":
    main()
